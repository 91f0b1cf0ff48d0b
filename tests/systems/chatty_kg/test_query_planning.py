"""Query planning: from a QIR to an answer, or to why there is none."""

from typing import Any

import pytest
from small import (
    BOATS,
    DIRECTED,
    PAPER,
    answer_of,
    boats_asked,
    chatty,
    films,
    predicates,
    published,
    qir,
)

from kgwb.bench.serve import make_answer_query
from kgwb.llm import Scripted
from kgwb.run.answers import CANNOT_EXPRESS, Answer
from kgwb.show.notebook import to_html
from kgwb.systems.chatty_kg import HANDOVER_HINT
from kgwb.systems.chatty_kg.records import QIR

PUBLISHED = {
    "chatty_kg/translator": {"question": "Who directed Arrival?"},
    "linking/vertex_selection_labels": {"label": "Arrival"},
    "chatty_kg/classifier_published": {"label": "self-contained"},
    "chatty_kg/qir_published": published(qir("Arrival | directed by | ?person")),
    "chatty_kg/predicate_selection_published": {"reasoning": "", "predicates": ["director"]},
}


TRANSLATED = {**DIRECTED, "chatty_kg/translator": {"question": "Who directed Arrival?"}}


SOLARIS = {"chatty_kg/qir": qir("Solaris | directed by | ?person")}


JOINED = {"chatty_kg/predicate_selection": predicates(["director"], ["birth place"])}


@pytest.mark.parametrize(
    ("question", "script", "settings", "answer", "calls"),
    [
        ("Who directed Arrival?", PUBLISHED, PAPER, "Denis Villeneuve", 5),
        ("Wer hat bei Arrival Regie geführt?", TRANSLATED, None, "Denis Villeneuve", 3),
        ("Who directed Solaris?", SOLARIS, None, "no vertex for Solaris", 1),
    ],
)
def test_a_question_is_answered(
    question: str, script: dict[str, Any], settings: Any, answer: str, calls: int
) -> None:
    run = chatty(question, Scripted(script), settings=settings).go()
    assert (str(run.answer), run.totals.model_calls) == (answer, calls)


@pytest.mark.parametrize("name", ["?p", "?o", "?s", "?n", "?v"])
def test_an_unknown_of_any_name_can_be_joined_on(name: str) -> None:
    facts = qir(f"Arrival | director | {name}", f"{name} | birth place | ?x", target="?x")
    model = Scripted({**JOINED, "chatty_kg/qir": facts})
    run = chatty("Where was the director of Arrival born?", model).go()
    assert str(run.answer) == "Gentilly"


OLDEST = qir(
    "?boat | type | boat",
    "?boat | passengers | ?n",
    target="?boat",
    beyond=["the largest: an order by ?n"],
)


@pytest.mark.parametrize("reply", [OLDEST, {**OLDEST, "triples": [], "entities": [], "target": ""}])
def test_a_question_that_triples_cannot_express_is_not_answered(reply: Any) -> None:
    run, model = boats_asked("Which boat is the largest?", reply)
    [beyond] = OLDEST["beyond"]
    reason = f"{CANNOT_EXPRESS}: {beyond}; {HANDOVER_HINT}"
    assert answer_of(run) == Answer("list", reason=reason)
    assert (model.call_count(), run.totals.queries) == (1, 0)
    assert str(run["qir"].output) == f"{CANNOT_EXPRESS}: {beyond}"
    assert reason in to_html(run)
    assert not films(BOATS).select(make_answer_query(run)).rows


def test_the_rest_is_answered_once_a_person_takes_the_part_out() -> None:
    run, _ = boats_asked("Which boat is the largest?", OLDEST)
    qir_record = run["qir"].output
    run.override("qir", QIR(qir_record.facts[:1], qir_record.target)).go()
    assert answer_of(run).labels == ("Brisk", "Gale", "Mary")
