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
from small import answer_of, films, run_of
from traces_of import spans_of_file

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
    return run_of(system, QUESTION, None).go()


def test_its_prompts_and_tokens_are_recorded_and_exported(run: Run, tmp_path: Path) -> None:
    [call] = [run.calls[key] for key in run["mentions"].calls]
    assert call.request["content"]["messages"][1] == ["user", QUESTION]
    assert call.request["content"]["options"] == {"model": "tiny", "temperature": 0}
    assert (call.result.prompt_tokens, run.totals.prompt_tokens) == (12, 24)
    run.export(tmp_path / "trace.json")
    spans = spans_of_file(tmp_path / "trace.json")
    named = [span["attributes"].get("llm.invocation_parameters") for span in spans]
    assert [json.loads(text) for text in named if text] == [call.request["content"]["options"]] * 2


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


@pytest.mark.parametrize(
    ("step", "number", "said"),
    [
        ("answer", 0, "step answer made no model call"),
        ("link", 0, "name a step that made one: mentions"),
        ("draft", 1, "no number 1\n.* from 0 to 0"),
    ],
)
def test_messages_of_a_call_that_was_not_made_are_refused(
    run: Run, step: str, number: int, said: str
) -> None:
    with pytest.raises(kgwb.errors.SettingError, match=said):
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
    again = run_of(untouched, QUESTION, None).go()
    assert [step.key for step in again.steps] == [step.key for step in run.steps]
    assert again.answer == run.answer
    assert not again.past_calls


def test_a_file_or_a_function_that_is_not_there_is_said() -> None:
    for name in ("plain", "missing.py:answer"):
        with pytest.raises(kgwb.errors.SettingError):
            system_from_file(name, [])


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


@pytest.mark.parametrize("is_annotated", [True, False])
def test_a_dict_for_a_record_needs_the_annotation(is_annotated: bool) -> None:
    @agent
    def find(question: str) -> Finding:
        return Finding(["Ann"])

    @agent("find")
    def find_unannotated(question: str):  # type: ignore[no-untyped-def]
        return Finding(["Ann"])

    finder = find if is_annotated else find_unannotated
    system = system_from_function("finding", lambda asked: finder(asked).people, agents=[finder])
    run = run_of(system, QUESTION, None).go()
    given: Any = {"people": ["Bob"]}
    if not is_annotated:
        with pytest.raises(kgwb.errors.OverrideError, match="Finding") as error:
            run.override("find", given)
        assert "-> Finding" in (error.value.hint or "")
        given = Finding(["Bob"])
    assert answer_of(run.override("find", given).go()).labels == ("Bob",)


def test_what_has_no_json_form_is_saved_as_a_line(tmp_path: Path) -> None:
    @agent
    def use(client: Any, text: str) -> Any:
        return object() if text == "object" else [text, {"n": 1}]

    def answer(question: str) -> str:
        use(threading.Lock(), "object")
        return str(use(threading.Lock(), question))

    system = system_from_function("using", answer, agents=[use])
    run = run_of(system, QUESTION, None).go()
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
    run = run_of(system, "ab", None).go()
    executed = dict.fromkeys(step.agent for step in run.steps)
    assert names == list(executed)


@pytest.mark.parametrize(
    ("value", "languages"),
    [
        (Literal("Dune", lang="en"), ["en"]),
        ({"type": "literal", "value": "Dune"}, [None]),
        ("Dune", [None, "de", "en"]),
        (Literal("Dune", lang="fr"), [None, "de", "en"]),  # no row has it, so its text counts
    ],
)
def test_a_term_that_a_pipeline_gives_stands_on_its_own_triples(
    value: Any, languages: list[str | None]
) -> None:
    query = "SELECT ?x { <http://example.org/dune> <http://example.org/title> ?x }"

    @agent
    def look_up(run: Run) -> Any:
        run.kg.select(query)
        return make_answer([value], [query])

    kg = films('@prefix : <http://example.org/> . :dune :title "Dune", "Dune"@en, "Dune"@de .')
    system = System("titles", lambda question, dialogue, run: look_up(run), [look_up])
    [found] = answer_of(run_of(system, "Which?", None, kg=kg).go()).values
    objects: list[Any] = [object_ for _, _, object_ in found.support]
    assert sorted(str(each.language) for each in objects) == sorted(map(str, languages))
