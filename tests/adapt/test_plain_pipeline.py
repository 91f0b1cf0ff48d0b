"""A plain pipeline of openai and SPARQLWrapper, with ten added lines or with none, in all that a run can do."""

from __future__ import annotations

import json
import random
import sys
import threading
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pipeline_scripts import PIPELINES, plain_text
from pipeline_servers import ChatServer, Endpoint
from rdflib import Literal
from small import films

import kgwb
from kgwb.build import (
    System,
    agent,
    check_system,
    make_answer,
    system_from_file,
    system_from_function,
)
from kgwb.run import Run
from kgwb.run.systems import resolve_system
from kgwb.show.run_state import setup_text

QUESTION = "Who directed Arrival?"


@pytest.fixture
def system(chats: ChatServer, endpoint: Endpoint, pipeline: Any) -> System:
    return resolve_system(pipeline("plain"))


@pytest.fixture
def run(system: System) -> Run:
    return Run(system, QUESTION, kg=films(), models=None).go()


def test_its_functions_are_steps_with_prompts_replies_tokens_and_queries(run: Run) -> None:
    assert run["link"].output == ["http://example.org/arrival"]
    [call] = [run.calls[key] for key in run["mentions"].calls]
    assert call.request["content"]["messages"][1] == ["user", QUESTION]
    assert call.request["content"]["options"] == {"model": "tiny", "temperature": 0}
    assert call.result.prompt_tokens == 12
    assert run.totals.prompt_tokens == 24


def test_it_is_exported_as_a_trace(run: Run, tmp_path: Path) -> None:
    run.export(tmp_path / "trace.json")
    text = (tmp_path / "trace.json").read_text(encoding="utf-8")
    spans = json.loads(text)["resourceSpans"][0]["scopeSpans"][0]["spans"]
    parameters = []
    for span in spans:
        for attribute in span["attributes"]:
            if attribute["key"] == "llm.invocation_parameters":
                parameters.append(json.loads(attribute["value"]["stringValue"]))
    assert parameters == [{"model": "tiny", "temperature": 0}] * 2


def test_its_own_models_are_shown_and_not_the_one_of_the_workbench(system: System) -> None:
    workbench = kgwb.Workbench(films(), system=system)
    run = workbench.begin(QUESTION)
    assert setup_text(run) == "plain · fast"
    run.go(until="mentions")
    assert setup_text(run) == "plain · openai:tiny · fast"


def test_a_replay_does_not_depend_on_the_address_of_the_server(
    run: Run, pipeline: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHAT_URL", "http://127.0.0.1:9/v1")
    elsewhere = resolve_system(pipeline("plain"))
    module = sys.modules[elsewhere.answer.__module__]
    assert str(module.client.base_url) == "http://127.0.0.1:9/v1/"
    loaded = kgwb.load_run(run.save(tmp_path / "run.jsonl"), system=elsewhere)
    assert loaded.answer == run.answer
    assert loaded.totals.live_model_calls == 0


@pytest.mark.parametrize(("step", "number"), [("answer", 0), ("link", 0), ("draft", 1)])
def test_messages_of_a_call_that_was_not_made_are_refused(run: Run, step: str, number: int) -> None:
    with pytest.raises(kgwb.errors.SettingError, match=step):
        run.edit_messages(step, "[user]\nWho?", number)
    assert run.edited_messages == {}
    assert not run.has_pending_edits


def test_a_system_without_a_line_in_the_file_does_the_same(
    run: Run, chats: ChatServer, endpoint: Endpoint, pipeline: Any
) -> None:
    path = pipeline("plain").with_name("untouched.py")
    path.write_text(plain_text(PIPELINES / "plain.py"))
    untouched = system_from_file(
        f"{path}:answer",
        ["mentions", "link", "draft"],
        to_answer=lambda found: make_answer(found["values"], [found["query"]]),
    )
    again = Run(untouched, QUESTION, kg=films(), models=None).go()
    assert [step.key for step in again.steps] == [step.key for step in run.steps]
    assert again.answer == run.answer
    assert not again.past_calls


def test_a_file_or_a_function_that_is_not_there_is_said(pipeline: Any) -> None:
    with pytest.raises(kgwb.errors.SettingError, match="a file and a function"):
        system_from_file("plain", [])
    with pytest.raises(kgwb.errors.SettingError, match="missing"):
        system_from_file("missing.py:answer", [])


def test_a_variable_that_is_not_set_is_said_with_the_line_of_the_pipeline(
    pipeline: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CHAT_URL", raising=False)
    path = pipeline("plain")
    lines = path.read_text().splitlines()
    [number] = [n for n, line in enumerate(lines, 1) if "CHAT_URL" in line]
    with pytest.raises(kgwb.errors.SettingError, match="CHAT_URL") as error:
        resolve_system(path)
    assert f"{path.name}, line {number}" in (error.value.hint or "")


def test_a_check_finds_chance_and_requests_past_the_run(
    chats: ChatServer, endpoint: Endpoint
) -> None:
    @agent
    def guess(question: str) -> float:
        url = f"{endpoint.url}?query=ASK%7B%7D"
        thread = threading.Thread(target=urllib.request.urlopen, args=(url,))
        thread.start()
        thread.join()
        return random.random()

    def answer(question: str) -> float:
        return guess(question)

    system = system_from_function("chance", answer, agents=[guess])
    checked = check_system(system, QUESTION)
    assert not checked
    texts = "\n".join(checked.problems)
    assert "127.0.0.1" in texts
    assert "guess returned something else" in texts


@dataclass
class Finding:
    people: list[str]


def system_of_findings(finder: Any) -> System:
    """A system whose finder is not annotated, or is."""

    def answer(question: str) -> list[str]:
        people: list[str] = finder(question).people
        return people

    return system_from_function("finding", answer, agents=[finder])


def test_a_dict_for_a_record_needs_the_annotation() -> None:
    @agent
    def find(question: str):  # type: ignore[no-untyped-def]
        return Finding(["Ann"])

    run = Run(system_of_findings(find), QUESTION, kg=films(), models=None).go()
    with pytest.raises(kgwb.errors.OverrideError, match="Finding") as error:
        run.override("find", {"people": ["Bob"]})
    assert "-> Finding" in (error.value.hint or "")
    answer = run.override("find", Finding(["Bob"])).go().answer
    assert answer is not None
    assert answer.labels == ("Bob",)


def test_a_dict_for_a_record_is_read_by_the_annotation() -> None:
    @agent
    def find(question: str) -> Finding:
        return Finding(["Ann"])

    run = Run(system_of_findings(find), QUESTION, kg=films(), models=None).go()
    answer = run.override("find", {"people": ["Bob"]}).go().answer
    assert answer is not None
    assert answer.labels == ("Bob",)


def test_what_has_no_json_form_is_saved_as_a_line(tmp_path: Path) -> None:
    @agent
    def use(client: Any, text: str) -> Any:
        return object() if text == "object" else [text, {"n": 1}]

    def answer(question: str) -> str:
        use(threading.Lock(), "object")
        return str(use(threading.Lock(), question))

    system = system_from_function("using", answer, agents=[use])
    run = Run(system, QUESTION, kg=films(), models=None).go()
    loaded = kgwb.load_run(run.save(tmp_path / "run.jsonl"), system=system)
    assert loaded.output("use#2") == [QUESTION, {"n": 1}]


def test_the_debugger_opens_on_the_latest_run_of_a_workbench(system: System) -> None:
    bench = kgwb.Workbench(films(), system=system)
    with pytest.raises(kgwb.errors.SettingError):
        kgwb.debug(bench)
    run = bench.ask(QUESTION)
    assert kgwb.debug(bench).run is run


@agent
def first(text: str) -> str:
    return text


@agent
def second(text: str, other: str) -> str:
    return text + other


@agent
def third(texts: list[str]) -> list[str]:
    return texts


def nested(question: str) -> list[str]:
    return third([second(name, "") for name in first(question)])


def passed_on(question: str) -> list[str]:
    return third(list(map(second, question, first(question))))


@pytest.mark.parametrize("pipeline", [nested, passed_on])
def test_the_steps_of_nested_calls_are_listed_as_they_are_executed(pipeline: Any) -> None:
    system = system_from_function("nested", pipeline)
    names = [spec.name for spec in system.agents]
    run = Run(system, "ab", kg=films(), models=None).go()
    executed = dict.fromkeys(step.agent for step in run.steps)
    assert names == list(executed)


@pytest.mark.parametrize(
    ("value", "supporting"),
    [
        (Literal("Dune", lang="en"), [Literal("Dune", lang="en")]),
        ({"type": "literal", "value": "Dune"}, [Literal("Dune")]),
        ("Dune", [Literal("Dune"), Literal("Dune", lang="de"), Literal("Dune", lang="en")]),
        (Literal("Dune", lang="fr"), 3),  # no row has it, so its text counts
    ],
)
def test_a_term_that_a_pipeline_gives_stands_on_its_own_triples(
    value: Any, supporting: Any
) -> None:
    query = "SELECT ?x { <http://example.org/dune> <http://example.org/title> ?x }"

    @agent
    def look_up(run: Run) -> Any:
        run.kg.select(query)
        return make_answer([value], [query])

    def answer(question: Any, dialogue: Any, run: Run) -> Any:
        return look_up(run)

    kg = films('@prefix : <http://example.org/> . :dune :title "Dune", "Dune"@en, "Dune"@de .')
    run = Run(System("titles", answer, [look_up]), "Which?", kg=kg, models=None).go()
    assert run.answer is not None
    objects = [object_ for _, _, object_ in run.answer.values[0].support]
    if isinstance(supporting, int):
        assert len(objects) == supporting
    else:
        assert sorted(objects) == sorted(supporting)
