"""Answers that a person found right become a question set that bench reads."""

import json
from pathlib import Path
from typing import Any

import pytest
from commands import DENIS, bench
from page import do, press, settle, text

import kgwb
from kgwb.bench import add_gold_answers, load_questions
from kgwb.bench.formats import DEFAULT_FILE, Gold, keep_as_gold
from kgwb.errors import InputError, QueryRefusedError
from kgwb.run import Run
from kgwb.ui.chat import Chat
from kgwb.ui.debugger import Debugger
from kgwb.ui.session import Session

FILE = Path(DEFAULT_FILE)


@pytest.fixture(scope="module")
def answered() -> Run:
    return kgwb.Workbench("films", "rules").ask("Who directed Arrival?")


def entries() -> list[dict[str, Any]]:
    return [json.loads(line) for line in FILE.read_text().splitlines()]


def test_an_answer_is_kept_and_measured(answered: Run, here: Path) -> None:
    keep_as_gold(answered, who="ada")
    [entry] = entries()
    assert entry["who"] == "ada" and entry["when"].startswith("20")
    [question] = load_questions(FILE)
    assert question.question == "Who directed Arrival?"
    assert question.answers == (DENIS,)
    assert "SELECT" in str(question.sparql)
    assert bench("--fail-if", "right<1", questions=str(FILE)) == 0


@pytest.mark.parametrize(
    ("name", "has_query"),
    [
        ("films/chatty_kg/5", True),  # a number, counted by the system
        ("films/chatty_kg/12", False),  # some of the values that the query finds
        ("films/surveyor/5", True),
    ],
)
def test_a_query_is_only_kept_as_gold_if_it_gives_the_answer(
    name: str, has_query: bool, here: Path
) -> None:
    entry = keep_as_gold(kgwb.recording(name))
    assert ("sparql" in entry) == has_query
    if has_query:
        [question] = load_questions(FILE)
        without_answers = question.model_copy(update={"answers": None})
        [found] = add_gold_answers([without_answers], kgwb.open_kg("films"))
        assert set(found.answers or ()) == set(entry["answers"])


def test_a_correction_replaces_the_gold_and_remembers_it(answered: Run, here: Path) -> None:
    keep_as_gold(answered, who="ada")
    keep_as_gold(answered, gold=["http://example.org/someone"], who="bob")
    [entry] = entries()
    assert entry["answers"] == ["http://example.org/someone"]
    assert entry["earlier_gold"][0]["answers"] == [DENIS]
    assert entry["earlier_gold"][0]["who"] == "ada"
    assert (entry["id"], "sparql" in entry) == ("1", False)
    keep_as_gold(answered, gold=Gold(None, "SELECT ?x WHERE { ?x ?p ?o } LIMIT 1"))
    [question] = load_questions(FILE)
    assert question.answers is None and question.sparql


def test_what_is_not_known_or_not_ours_is_refused(answered: Run, here: Path) -> None:
    begun = kgwb.Workbench("films", "rules").begin("Who directed Arrival?")
    with pytest.raises(InputError, match="no answer"):
        keep_as_gold(begun)
    FILE.write_text(
        '{"questions": [{"id": 1, "question": [{"language": "en", "string": "Who?"}]}]}'
    )
    with pytest.raises(InputError, match="JSON lines"):
        keep_as_gold(answered)
    with pytest.raises(QueryRefusedError):
        Gold.from_text("", "DELETE WHERE { ?s ?p ?o }")


def test_a_table_keeps_its_rows(here: Path) -> None:
    rows = Gold([["a", "1"], ["b", None]], "", ("name", "number"))
    assert Gold.from_text(rows.to_text(), "", rows.columns) == rows
    assert Gold.from_text(" a \n\nb\n") == Gold(["a", "b"])


def test_the_debugger_keeps_an_answer_that_was_corrected_by_hand(here: Path) -> None:
    session = Session(kgwb.Workbench("films", "rules").begin("Who directed Arrival?"))
    debugger = Debugger(session)
    debugger.update({"do": "view", "arg": "answer"})
    assert "keep as gold" not in text(debugger)
    debugger.update({"do": "view", "arg": "step"})
    do(debugger, "Continue")
    debugger.update({"do": "view", "arg": "answer"})
    press(debugger, "Keep as gold", answers=f"{DENIS}\nhttp://example.org/another")
    assert "question 1 of my_questions.jsonl" in text(debugger)
    [question] = load_questions(FILE)
    assert question.answers == (DENIS, "http://example.org/another")


def test_a_turn_of_a_chat_is_kept_in_words_that_stand_alone(here: Path) -> None:
    chat = Chat(kgwb.Workbench("films", "rules"))
    for question in ("Who directed Arrival?", "When was he born?"):
        press(chat, "Ask", question=question)
        settle(chat.conversation)
    chat.update({"do": "open", "arg": "1"})
    press(chat, "Right: keep as gold")
    [question] = load_questions(FILE)
    assert question.question == chat.conversation.runs[1].turn.standalone
    assert "Villeneuve" in question.question


def test_a_lab_starts_from_a_question_set(answered: Run, here: Path) -> None:
    keep_as_gold(answered, gold=["http://example.org/someone"])
    lab = kgwb.PromptLab.measure(FILE, kgwb.Workbench("films", "rules"), "r")
    assert "1 lost" in text(lab) and "Lost questions" in text(lab)
