"""The trace of another program is shown as a run that can only be read."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any, Protocol

import pytest
from openinference.semconv import trace as openinference
from opentelemetry.semconv._incubating.attributes import db_attributes, gen_ai_attributes
from page import do, page, text
from rdflib import URIRef
from tables import read_table
from traces_of import DATA

import kgwb
from kgwb.adapt.traces import FORMS, TracedQuery
from kgwb.errors import InputError, PromptError, SettingError
from kgwb.llm import Scripted
from kgwb.run import Run
from kgwb.run.spans import NAMES
from kgwb.show.subgraph import build_subgraph

LANGGRAPH = DATA / "langgraph.json"
FILMS = "https://kgwb.example/films/"
KEY = "sk-proj-abcdef0123456789"
QUERY = f"SELECT ?who WHERE {{ <{FILMS}Arrival> <{FILMS}director> ?who }}"


# --- a LangGraph program, recorded by OpenInference's instrumentation (tests/traces/README.md)


def test_a_langgraph_program_is_a_tree_of_steps() -> None:
    run = kgwb.open_trace(LANGGRAPH)
    assert run.question == "Who directed Arrival?"
    assert str(run.answer) == "Denis Villeneuve directed Arrival."
    assert [f"{step.parent} > {step.key}" for step in run.steps] == [
        " > LangGraph",
        *("LangGraph > draft", "draft > Model"),
        *("LangGraph > execute", "execute > sparql", "execute > RunnableCallable"),
        *("LangGraph > draft#2", "draft#2 > Model#2"),
        *("LangGraph > execute#2", "execute#2 > sparql#2", "execute#2 > RunnableCallable#2"),
        *("LangGraph > say", "say > Model#3"),
    ]


def test_its_model_calls_have_messages_replies_and_tokens() -> None:
    run = kgwb.open_trace(LANGGRAPH)
    call = run.calls[run["Model#2"].calls[0]]
    content = call.request["content"]
    roles = [role for role, _ in content["messages"]]
    assert roles == ["system", "user", "assistant", "user"]
    assert content["messages"][1][1] == "Who directed Arrival?"
    assert content["temperature"] == 0.2
    assert "director" in call.result.text
    assert (call.result.prompt_tokens, call.result.completion_tokens) == (88, 24)
    totals = run.totals
    assert (totals.model_calls, totals.queries, totals.prompt_tokens) == (3, 2, 61 + 88 + 40)
    assert totals.seconds == run["LangGraph"].seconds > call.seconds


def test_its_queries_are_highlighted_and_run_again_on_a_graph() -> None:
    without_graph = kgwb.open_trace(LANGGRAPH).output("sparql#2")
    assert isinstance(without_graph, TracedQuery)
    assert "f:director" in without_graph.sparql
    assert without_graph.run_again is None
    run = kgwb.open_trace(LANGGRAPH, kg="films")
    again = run.output("sparql#2").run_again
    assert again.labels == ("Denis Villeneuve",)
    assert run.output("sparql").run_again.values == ()
    assert run.answer is not None
    [triple] = run.answer.support
    assert triple[0] == URIRef(f"{FILMS}Arrival")
    assert [edge.triple for edge in build_subgraph(run).edges] == [triple]


def test_it_can_only_be_read_and_saved(tmp_path: Path) -> None:
    run = kgwb.open_trace(LANGGRAPH)
    with pytest.raises(SettingError) as caught:
        run.go()
    assert "ask_again" in caught.value.hint
    again = kgwb.load_run(run.save(tmp_path / "run.jsonl"))
    assert [step.key for step in again.steps] == [step.key for step in run.steps]
    assert again.read_only


# --- asking again


def test_a_call_is_asked_again_with_other_messages_and_models_several_times() -> None:
    run = kgwb.open_trace(LANGGRAPH)
    before = dict(run.calls)
    first, second = Scripted(lambda request: request.messages[-1].content), Scripted(lambda _: "no")
    asked = run.ask_again("Model", [first, second], messages="[user]\nAnd Dune?", times=3)
    assert [reply.text for reply in asked.replies] == ["And Dune?"] * 3 + ["no"] * 3
    assert "f:producer" in asked.before
    assert {request.temperature for request in first.requests} == {0.2}
    assert run.calls == before
    [reply] = run.ask_again("Model", first).replies
    assert reply.text == "Who directed Arrival?"


def test_what_cannot_be_asked_is_said() -> None:
    run = kgwb.open_trace(LANGGRAPH)
    model = Scripted(lambda _: "")
    wrong: tuple[tuple[str, dict[str, int]], ...] = (
        ("sparql", {}),
        ("Model", {"number": 1}),
        ("Model", {"times": 0}),
    )
    for step, options in wrong:
        with pytest.raises(SettingError):
            run.ask_again(step, model, **options)
    with pytest.raises(PromptError):
        run.ask_again("Model", model, messages="no role")


def test_the_calls_of_any_run_are_asked_again_with_further_seeds() -> None:
    run = kgwb.recording("films/chatty_kg/1")
    model = Scripted(lambda _: "{}")
    run.ask_again("qir", model, times=2)
    first, second = model.requests
    assert first.seed is not None and second.seed not in (None, first.seed)
    assert first.schema == second.schema is not None


def test_the_debugger_shows_the_trace_and_the_subgraph_of_its_queries() -> None:
    debugger = kgwb.debug(kgwb.open_trace(LANGGRAPH, kg="films"))
    assert "Denis Villeneuve directed Arrival." in text(debugger)
    buttons = [each.label for each in page(debugger).elements if each.tag == "button"]
    assert {"Continue", "Back", "Run again", "Ask anew", "Edit as a form"}.isdisjoint(buttons)
    assert not any(label.startswith("stop after") for label in buttons)
    debugger.update({"do": "choose", "arg": "sparql#2"})
    assert "f:director" in text(debugger)
    classes = {each.attributes.get("class") for each in page(debugger).elements}
    assert "kw" in classes
    debugger.update({"do": "view", "arg": "graph"})
    assert debugger.event_error is None
    assert "Denis Villeneuve" in text(debugger)


def test_a_call_is_asked_again_in_the_debugger(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Scripted(lambda request: request.messages[-1].content)
    monkeypatch.setattr("kgwb.ui.step_panel.open_model", lambda name: model)
    debugger = kgwb.debug(kgwb.open_trace(LANGGRAPH))
    debugger.update({"do": "choose", "arg": "Model#2"})
    debugger.update({"do": "section", "arg": "prompt"})
    assert "This query has no rows. Write another one." in text(debugger)
    do(debugger, "Ask again")
    assert "no model is named" in text(debugger)
    do(debugger, "Ask again", model="openai:any", times="2", template="[user]\nAnd Dune?\n")
    assert [request.messages[-1].content for request in model.requests] == ["And Dune?"] * 2
    assert "reply 2" in text(debugger)
    assert "And Dune?" in text(debugger)
    do(debugger, "Ask again")  # what was typed stays
    assert len(model.requests) == 4
    do(debugger, "Ask again", model="openai:any", times="many")
    assert "many" in str(debugger.event_error)
    do(debugger, "Ask again", model=KEY)
    assert KEY not in text(debugger)


# --- kgwb's own traces


@pytest.mark.parametrize("name", ["films/chatty_kg/1", "films/ragonite/1", "scholars/triad/1"])
def test_a_run_that_was_exported_is_opened_again(name: str, tmp_path: Path) -> None:
    run = kgwb.recording(name)
    run.export(tmp_path / "trace.json")
    trace = kgwb.open_trace(tmp_path / "trace.json")
    assert trace.question == run.question
    assert str(trace.answer) == str(run.answer)
    calls = [call for call in run.calls.values() if call.kind == "model"]
    read = [call for call in trace.calls.values() if call.kind == "model"]
    assert sorted(call.result.text for call in read) == sorted(call.result.text for call in calls)
    for figure in ("model_calls", "queries", "prompt_tokens"):
        assert getattr(trace.totals, figure) == getattr(run.totals, figure)
    queries = {step.output.sparql for step in trace.steps if isinstance(step.output, TracedQuery)}
    asked = {call.request["query"] for call in run.calls.values() if call.kind in ("select", "ask")}
    assert queries == asked


# --- OpenTelemetry's names for generative AI


KINDS: dict[type, str] = {int: "intValue", float: "doubleValue"}


def otlp(*spans: dict[str, Any]) -> dict[str, Any]:
    """OTLP JSON of spans that are given by name, parent, attributes, and other fields."""
    written = []
    for number, span in enumerate(spans, 1):
        attributes = []
        for key, value in span.get("attributes", {}).items():
            kind = KINDS.get(type(value), "stringValue")
            written_value = str(value) if kind == "intValue" else value
            attributes.append({"key": key, "value": {kind: written_value}})
        written.append(
            {
                "traceId": span.get("trace", "0af7651916cd43dd8448eb211c80319c"),
                "spanId": f"{number:016x}",
                "parentSpanId": f"{span['parent']:016x}" if "parent" in span else "",
                "name": span["name"],
                "startTimeUnixNano": str(1_700_000_000_000_000_000 + number * 1_000_000),
                "endTimeUnixNano": str(1_700_000_001_000_000_000),
                "attributes": attributes,
                **span.get("more", {}),
            }
        )
    return {"resourceSpans": [{"scopeSpans": [{"spans": written}]}]}


class Opened(Protocol):
    def __call__(self, *spans: dict[str, Any], **options: Any) -> Run: ...


@pytest.fixture
def opened(tmp_path: Path) -> Opened:
    """Opens a trace of these spans."""

    def opened_trace(*spans: dict[str, Any], **options: Any) -> Run:
        path = tmp_path / "trace.json"
        path.write_text(json.dumps(otlp(*spans)))
        return kgwb.open_trace(path, **options)

    return opened_trace


def span(kind: str, attributes: dict[str, Any], name: str = "m", **more: Any) -> dict[str, Any]:
    """A span of OpenInference."""
    return {"name": name, "attributes": {"openinference.span.kind": kind, **attributes}, **more}


def test_a_trace_under_opentelemetrys_names() -> None:
    run = kgwb.open_trace(DATA / "gen_ai.json", kg="films")
    assert run.question == "Who made Arrival?"
    assert [run.system.agent_kind(step.key) for step in run.steps] == ["group", "model", "sparql"]
    call = run.calls[run["chat gpt-4o"].calls[0]]
    assert call.request["model"] == "gpt-4o-2024"
    assert call.request["content"]["messages"] == [
        ["system", "Be short."],
        ["user", "Who made Arrival?"],
    ]
    assert (call.request["content"]["temperature"], call.request["content"]["seed"]) == (0.5, 3)
    assert "sparql({" in call.result.text
    assert (call.result.prompt_tokens, call.result.completion_tokens) == (30, 5)
    query = run.output("execute_tool sparql")
    assert (query.sparql, query.result) == (QUERY, "Denis Villeneuve")
    assert query.run_again.labels == ("Denis Villeneuve",)


def test_traces_without_a_common_root_are_opened_together() -> None:
    file = DATA / "gen_ai_roots.json"
    with pytest.raises(InputError) as caught:
        kgwb.open_trace(file)
    assert "all" in caught.value.hint
    run = kgwb.open_trace(file, kg="films", trace="all")
    assert run.question == "Who made Arrival?"
    keys = ["chat gpt-4o", "execute_tool sparql", "chat again", "goodbye"]
    assert [step.key for step in run.steps] == keys
    assert str(run.answer) == "By Villeneuve."
    assert [edge.triple[0] for edge in build_subgraph(run).edges] == [URIRef(f"{FILMS}Arrival")]
    assert 0.9 < run.totals.seconds <= 1


def test_ids_that_two_traces_share_are_told_apart(tmp_path: Path) -> None:
    first, second = (otlp({"name": name, "trace": letter * 32}) for name, letter in ("1a", "2b"))
    file = tmp_path / "trace.jsonl"
    file.write_text(f"{json.dumps(first)}\n{json.dumps(second)}\n")
    assert [step.key for step in kgwb.open_trace(file, trace="all").steps] == ["1", "2"]


HUMAN = {"content": "Who made Arrival?", "additional_kwargs": {}}
CALL = {"name": "sparql", "args": {"query": QUERY}, "id": "1"}


def message(form: str, kind: str, **fields: Any) -> dict[str, Any]:
    """A message of LangChain as ``message_to_dict``, or as its ``dumpd``, writes it."""
    if form == "data":
        return {"type": kind, "data": fields}
    path = ["langchain", "schema", "messages", {"human": "HumanMessage", "ai": "AIMessage"}[kind]]
    return {"lc": 1, "type": "constructor", "id": path, "kwargs": fields}


@pytest.mark.parametrize("form", ["data", "kwargs"])
def test_messages_of_langchain_are_read(opened: Opened, form: str) -> None:
    asked = message(form, "human", **HUMAN)
    called = message(form, "ai", content="", tool_calls=[CALL])
    said = message(form, "ai", content="By Villeneuve.")
    chain = {"input.value": json.dumps({"messages": [asked]})}
    chain["output.value"] = json.dumps({"messages": [asked, called, said], "steps": 2})
    model = span("LLM", {"input.value": json.dumps({"messages": [[asked, called]]})}, parent=1)
    run = opened({"name": "agent", "attributes": chain}, model)
    assert (run.question, str(run.answer)) == ("Who made Arrival?", "By Villeneuve.")
    [call] = run.calls.values()
    sent = call.request["content"]["messages"]
    assert sent == [["user", "Who made Arrival?"], ["assistant", f'sparql({{"query": "{QUERY}"}})']]


def test_a_query_in_the_output_of_a_chain_has_its_subgraph(opened: Opened) -> None:
    inner = {"output.value": json.dumps({"query": QUERY})}
    said = json.dumps({"sparql": f"```sparql\n{QUERY}\n```", "result": "He."})
    outer = span("CHAIN", {"input.value": "Who?", "output.value": said}, "chain")
    run = opened(outer, span("CHAIN", inner, "draft", parent=1), kg="films")
    assert isinstance(run.output("draft"), TracedQuery)
    assert not isinstance(run.output("chain"), TracedQuery)
    assert str(run.answer) == "He."
    assert len(build_subgraph(run).edges) == 1


@pytest.mark.parametrize("form", ["schemas", "definitions", "parameters"])
def test_the_tools_of_a_traced_call_are_offered_again(opened: Opened, form: str) -> None:
    function = {"name": "sparql", "description": "Asks.", "parameters": {"type": "object"}}
    tool = {"type": "function", "function": function}
    attributes = {
        "schemas": {"llm.tools.0.tool.json_schema": json.dumps(tool)},
        "definitions": {"gen_ai.tool.definitions": json.dumps([{"type": "function", **function}])},
        "parameters": {"llm.invocation_parameters": json.dumps({"tools": [tool]})},
    }[form]
    model = Scripted(lambda _: "yes")
    opened(span("LLM", {"input.value": "Who?", **attributes})).ask_again("m", model)
    assert model.requests[0].tools["tools"] == [tool]


def test_messages_in_events_and_under_older_names(opened: Opened) -> None:
    messages = {"stringValue": '[{"role": "user", "parts": [{"content": "One"}]}]'}
    event = {"name": "gen_ai.client.inference.operation.details"}
    event["attributes"] = [{"key": "gen_ai.input.messages", "value": messages}]
    chat = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
    older = {"gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.content": "Two"}
    older |= {"gen_ai.completion.0.content": "Three", "gen_ai.usage.prompt_tokens": 4}
    spans = (
        {"name": "new", "attributes": chat, "more": {"events": [event]}},
        {"name": "old", "attributes": chat | older},
    )
    new, old = opened(*spans).calls.values()
    assert new.request["content"]["messages"] == [["user", "One"]]
    assert old.request["content"]["messages"] == [["user", "Two"]]
    assert (old.result.text, old.result.prompt_tokens) == ("Three", 4)


@pytest.mark.parametrize("row", read_table(DATA / "spans.jsonl"), ids=str)
def test_what_a_span_says_is_read_from_its_attributes(opened: Opened, row: dict[str, Any]) -> None:
    run = opened(span(row["kind"], row["attributes"]))
    assert run.question == row.get("question", run.question)
    if "answer" in row:
        assert str(run.answer) == row["answer"]
    elif "messages" in row:
        [call] = run.calls.values()
        assert call.request["content"]["messages"] == row["messages"]
        assert call.result.text == row["reply"]
        model = Scripted(lambda _: "yes")
        run.ask_again("m", model)
        assert not model.requests[0].tools
    else:
        [step] = run.steps
        found = json.dumps([step.inputs, step.output], default=dict)
        assert json.loads(found) == [row["inputs"], row["output"]]


def test_a_span_under_the_names_of_both_conventions(opened: Opened) -> None:
    model = {"llm.model_name": "", "gen_ai.request.model": "tiny"}
    agent = {"gen_ai.operation.name": "invoke_agent", "input.value": QUERY}
    run = opened(span("LLM", model), span("TOOL", agent, "find"))
    [call] = run.calls.values()
    assert call.request["model"] == "tiny"
    assert run.system.agent_kind("find") == "code"


def test_the_names_are_those_of_the_conventions() -> None:
    classes = [value for value in vars(openinference).values() if isinstance(value, type)]
    modules = [*classes, gen_ai_attributes, db_attributes]
    known = {text for each in modules for text in vars(each).values() if isinstance(text, str)}
    assert {name for names in NAMES.values() for name in names} <= known
    operations = {each.value for each in gen_ai_attributes.GenAiOperationNameValues}
    assert set(FORMS["model_kinds"]) - {"LLM"} <= operations


# --- files


def test_keys_in_spans_are_masked(opened: Opened, tmp_path: Path) -> None:
    attributes = {
        "input.value": json.dumps({"question": "Who?", "api_key": "abcdef0123456789"}),
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.content": f"the key is {KEY}",
        "output.value": f"see http://me:{KEY}@host.example/?token=abcdef0123456789",
    }
    failed = {"status": {"code": 2, "message": f"401 for {KEY}"}}
    run = opened(
        span("LLM", attributes, f"call {KEY}"),
        span("TOOL", attributes, "tool", parent=1),
        {"name": "failed", "parent": 1, "more": failed},
    )
    shown = run.save(tmp_path / "run.jsonl").read_text() + str(kgwb.debug(run).view())
    assert KEY not in shown
    assert "abcdef0123456789" not in shown
    assert run["failed"].error == "401 for ***"


def test_lines_lists_and_gzipped_files_are_read(tmp_path: Path) -> None:
    root: dict[str, Any] = {"name": "one"}
    parts = [json.dumps(otlp(*spans)) for spans in ((root,), (root, {"name": "two", "parent": 1}))]
    lines = "".join(f"{part}\n" for part in parts)
    for name, content in (
        ("lines.jsonl", lines.encode()),
        ("trace.jsonl.gz", gzip.compress(lines.encode())),
        ("list.json", f"[{','.join(parts)}]".encode()),
    ):
        (tmp_path / name).write_bytes(content)
        assert len(kgwb.open_trace(tmp_path / name).steps) == 2


def test_one_of_several_traces_is_chosen(opened: Opened) -> None:
    spans = {"name": "one", "trace": "a1"}, {"name": "two", "trace": "b2"}
    with pytest.raises(InputError, match="2 traces") as caught:
        opened(*spans)
    assert "trace=2 (two)" in caught.value.hint
    for chosen, name in ((2, "two"), ("a1", "one")):
        assert [step.key for step in opened(*spans, trace=chosen).steps] == [name]
    with pytest.raises(InputError, match="no trace 3"):
        opened(*spans, trace=3)


def test_odd_spans_are_steps_all_the_same(opened: Opened) -> None:
    run = opened(
        {"name": "a[b]#2", "parent": 9},
        {"name": "", "parent": 3},
        {"name": "circle", "parent": 2},
        {"name": "same", "attributes": {"openinference.span.kind": "LLM"}},
        {"name": "same"},
        {"name": "deep", "parent": 4, "attributes": {"input.value": "[" * 5000}},
        span("LLM", {"gen_ai.request.temperature": 10**400, "llm.cost.total": 10**400}),
    )
    assert len(run.steps) == len({step.key for step in run.steps}) == 7
    assert str(kgwb.debug(run).view())
    assert run.summary()


def test_spans_below_each_other_without_end_are_shown(opened: Opened) -> None:
    spans = [{"name": f"span {number % 7}", "parent": number} for number in range(3_000)]
    run = opened(*spans)
    assert len(run.steps) == 3_000
    assert len(run.summary().splitlines()) == 3_000


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{}",
        "7",
        '{"resourceSpans": 7}',
        '{"resourceSpans": [{"scopeSpans": [{"spans": [7]}]}]}',
        json.dumps(otlp({"name": "x", "more": {"startTimeUnixNano": "9" * 40}})),
        json.dumps(otlp({"name": "x", "more": {"attributes": [{"value": 3}]}})),
        "[" * 100_000,
    ],
)
def test_a_malformed_file_is_a_clear_error(content: str, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text(content)
    with pytest.raises(InputError, match=r"trace\.json") as caught:
        kgwb.open_trace(path)
    assert caught.value.hint


def test_a_missing_file_and_a_run_file_are_clear_errors(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="missing"):
        kgwb.open_trace(tmp_path / "missing.json")
    run = kgwb.recording("films/chatty_kg/1").save(tmp_path / "run.jsonl")
    with pytest.raises(InputError, match="not a trace"):
        kgwb.open_trace(run)
