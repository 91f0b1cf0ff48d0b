"""A run is exported as a trace: OpenTelemetry spans under OpenInference's names."""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from openinference.semconv import trace as openinference
from traces_of import of_kind, parsed, receiver, spans_of_file

import kgwb
from kgwb.errors import InputError, SettingError
from kgwb.llm import Scripted
from kgwb.llm.base import ChatRequest, Message
from kgwb.run import Run, System, agent
from kgwb.run.steps import used_calls

NAMES = ("films/chatty_kg/1", "paper/ragonite/3")
KEY = "sk-proj-abcdef0123456789"


@pytest.fixture(params=NAMES)
def run(request: pytest.FixtureRequest) -> Run:
    return kgwb.recording(request.param)


@pytest.fixture
def spans(run: Run, tmp_path: Path) -> list[dict[str, Any]]:
    run.export(tmp_path / "trace.json")
    return spans_of_file(tmp_path / "trace.json")


def test_each_call_is_one_span(run: Run, spans: list[dict[str, Any]]) -> None:
    calls = Counter(call.kind for call in used_calls(run.steps, run.calls))
    calls.update(run.calls[key].kind for key in run.own_calls)
    assert len(of_kind(spans, "LLM")) == calls["model"] == run.totals.model_calls
    assert len(of_kind(spans, "RETRIEVER")) == calls["search"] + calls["exact"] + calls["nearest"]
    assert len(of_kind(spans, "RERANKER")) == calls["similarity"]
    assert len(of_kind(spans, "AGENT")) == 1 + len(run.steps)
    assert len(spans) == 1 + len(run.steps) + calls.total()
    assert len({span["spanId"] for span in spans}) == len(spans)
    sought = {span["attributes"]["input.value"] for span in of_kind(spans, "RETRIEVER")}
    for call in run.calls.values():
        if call.kind == "exact":
            assert ", ".join(call.request["labels"]) in sought


def test_its_attributes_are_those_of_openinference(spans: list[dict[str, Any]]) -> None:
    classes = [value for value in vars(openinference).values() if isinstance(value, type)]
    known = {text for each in classes for text in vars(each).values() if isinstance(text, str)}
    used = set()
    for span in spans:
        for name in span["attributes"]:
            used |= set(re.split(r"\.\d+\.", name))
    assert used - known == {"kgwb.step"}


def test_spans_stand_below_their_steps_and_within_the_run(
    run: Run, spans: list[dict[str, Any]]
) -> None:
    by_id = {span["spanId"]: span for span in spans}
    [root] = [span for span in spans if "parentSpanId" not in span]
    assert root["name"] == run.system.name
    assert root["attributes"]["input.value"] == run.question
    assert {span["traceId"] for span in spans} == {root["traceId"]}
    for span in spans:
        key = span["attributes"].get("kgwb.step")
        if key is not None and run[key].parent:
            parent = by_id[span["parentSpanId"]]
            assert parent["attributes"]["kgwb.step"] == run[key].parent
        assert int(span["startTimeUnixNano"]) <= int(span["endTimeUnixNano"])
        assert int(root["startTimeUnixNano"]) <= int(span["startTimeUnixNano"])
        assert int(span["endTimeUnixNano"]) <= int(root["endTimeUnixNano"])


def test_a_model_call_has_messages_reply_and_tokens(run: Run, spans: list[dict[str, Any]]) -> None:
    shown = []
    for span in of_kind(spans, "LLM"):
        attributes = span["attributes"]
        messages = []
        while f"llm.input_messages.{len(messages)}.message.role" in attributes:
            place = f"llm.input_messages.{len(messages)}.message"
            messages.append([attributes[f"{place}.role"], attributes[f"{place}.content"]])
        reply = attributes["llm.output_messages.0.message.content"]
        tokens = attributes["llm.token_count.prompt"], attributes["llm.token_count.completion"]
        shown.append((messages, reply, tuple(map(int, tokens))))
    expected = []
    for call in run.calls.values():
        if call.kind == "model":
            reply = call.result
            counts = reply.prompt_tokens, reply.completion_tokens
            expected.append((call.request["content"]["messages"], reply.text, counts))
    assert sorted(shown, key=str) == sorted(expected, key=str)


def test_a_search_has_what_was_sought_and_found_and_a_model_call_its_model(
    run: Run, spans: list[dict[str, Any]]
) -> None:
    shown = [span["attributes"] for span in of_kind(spans, "RETRIEVER")]
    sought = {attributes["input.value"] for attributes in shown}
    first = {attributes.get("retrieval.documents.0.document.id") for attributes in shown}
    models = {span["attributes"]["llm.model_name"] for span in of_kind(spans, "LLM")}
    queries = {span["attributes"]["input.value"] for span in of_kind(spans, "TOOL")}
    for call in used_calls(run.steps, run.calls):
        if call.kind in ("search", "nearest"):
            assert (call.request.get("text") or call.request["phrase"]) in sought
        if call.kind == "search" and call.result.hits:
            assert str(call.result.hits[0].iri) in first
        if call.kind == "select":
            assert call.request["query"] in queries
        if call.kind == "model":
            assert (call.result.model or call.request["model"]) in models


def test_a_server_gets_the_spans_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "api_key=secret")
    run = kgwb.recording(NAMES[0])
    with receiver() as server:
        trace = run.export(f"http://127.0.0.1:{server.server_port}")
    assert run.export(tmp_path / "trace.json") == trace
    [(path, headers, body)] = server.received
    assert path == "/v1/traces"
    assert headers["api_key"] == "secret"
    sent = {span.span_id.hex(): span.name for span in parsed(body)}
    written = {span["spanId"]: span["name"] for span in spans_of_file(tmp_path / "trace.json")}
    assert sent == written


def test_a_server_that_refuses_is_an_error_with_the_reason() -> None:
    run = kgwb.recording(NAMES[0])
    with receiver(401) as server, pytest.raises(InputError, match="401") as caught:
        run.export(f"http://me:{KEY}@127.0.0.1:{server.server_port}/v1/traces")
    assert KEY not in str(caught.value)


@agent(kind="model")
def think(question: str, run: Run) -> str:
    """Ask with a key in the prompt."""
    run.note(f"the key is {KEY}")
    request = ChatRequest("think", (Message("user", f"{question} with {KEY}"),) * 60)
    _, reply = run.chat(request)
    if "fail" in question:
        raise SettingError(f"no such thing: http://me:{KEY}@host.example/")
    return reply.text


def answer(question, dialogue, run):  # type: ignore[no-untyped-def]
    from kgwb.run.answers import Answer

    return Answer("list", reason=think(question.text, run))


SYSTEM = System("thinker", answer, [think])


def ask(question: str) -> Run:
    model = Scripted({"think": f"the reply has {KEY}"})
    return kgwb.Workbench("films", model, system=SYSTEM).begin(question)


def test_keys_are_masked_and_no_message_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ATTRIBUTE", "SPAN_ATTRIBUTE"):
        monkeypatch.setenv(f"OTEL_{name}_COUNT_LIMIT", "3")
        monkeypatch.setenv(f"OTEL_{name}_VALUE_LENGTH_LIMIT", "5")
    ask("Who?").go().export(tmp_path / "trace.json")
    assert KEY not in (tmp_path / "trace.json").read_text()
    [call] = of_kind(spans_of_file(tmp_path / "trace.json"), "LLM")
    assert call["attributes"]["openinference.span.kind"] == "LLM"
    for number in (0, 59):
        at = f"llm.input_messages.{number}.message.content"
        assert call["attributes"][at] == "Who? with ***"


def test_a_failed_step_is_a_span_with_an_error(tmp_path: Path) -> None:
    run = ask("Do fail?")
    with pytest.raises(SettingError):
        run.go()
    run.export(tmp_path / "trace.json")
    assert KEY not in (tmp_path / "trace.json").read_text()
    statuses = [span["status"] for span in spans_of_file(tmp_path / "trace.json")]
    assert [status["code"] for status in statuses].count(2) == 2  # the run and its step


def test_without_the_extra_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "kgwb.run.otlp", raising=False)
    monkeypatch.delattr("kgwb.run.otlp", raising=False)
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.resources", None)
    with pytest.raises(InputError) as caught:
        kgwb.recording(NAMES[0]).export(tmp_path / "trace.json")
    assert "kgwb[traces]" in caught.value.hint


def test_another_form_and_a_place_that_cannot_be_written_are_errors(tmp_path: Path) -> None:
    run = kgwb.recording(NAMES[0])
    with pytest.raises(SettingError, match="graphml"):
        run.export(tmp_path / "trace.json", to="graphml")
    with pytest.raises(InputError):
        run.export(tmp_path)
