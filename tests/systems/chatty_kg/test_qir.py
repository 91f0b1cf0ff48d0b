"""QIR agent: the checks of the triples validator, the last resort, and the QIR of a reply."""

from typing import Any

import pytest
from small import PAPER, REFERENCE, alone, published, qir

from kgwb.errors import InvalidReplyError, OverrideError
from kgwb.kg.base import AnswerKind
from kgwb.settings import Settings
from kgwb.systems.chatty_kg.qir import determine_kind, extract_qir
from kgwb.systems.chatty_kg.records import QIR, Fact

GOOD = qir("Dune | director | ?person")


def extracted(
    *replies: Any, question: str = "Who directed Dune?", settings: Settings | None = None
) -> Any:
    script = {"qir": list(replies)}
    if settings in (PAPER, REFERENCE):
        script = {"qir_published": list(map(published, replies))}
    return alone(lambda run: extract_qir(question, run), script, settings=settings)


# --- the triples validator


@pytest.mark.parametrize(
    ("reply", "check", "problem"),
    [
        ("Dune, director, ?person", "well-formed JSON", "no JSON"),
        (qir("Dune | | ?person"), "subject, predicate, object", "triple 1 lacks a part"),
        (
            qir("Dune | director | ?p", " | born in | ?p"),
            "subject, predicate, object",
            "triple 2 lacks a part",
        ),
        (qir("?film | director | ?person"), "at least one entity", "no triple names an entity"),
        ({**GOOD, "triples": []}, "at least one entity", "no triple names an entity"),
        (
            qir("Dune | director | David Lynch"),
            "at least one unknown unless boolean",
            "no triple has an unknown",
        ),
        ({**GOOD, "target": "?film"}, "the target is one of the unknowns", "?film is in no triple"),
        ({**GOOD, "question_type": "factoid"}, "the reply's form", "question_type"),
        ({**GOOD, "sure": True}, "the reply's form", "sure: Extra inputs"),
    ],
)
def test_an_invalid_reply_is_shown_its_problem_and_asked_again(
    reply: Any, check: str, problem: str
) -> None:
    record, run, model = extracted(reply, GOOD)
    assert record == QIR((Fact("Dune", "director", "?person"),), "?person", "list")
    first, second = run["qir"].attempts
    assert problem in next(result.problem for result in first.checks if result.name == check)
    assert second.accepted
    assert problem in model.requests[1].messages[-1].content


def test_the_last_resort_uses_a_whole_triple_that_fails_another_check() -> None:
    record, run, model = extracted(*[qir("?film | director | ?person")] * 3)
    assert record.facts == (Fact("?film", "director", "?person"),)
    assert model.call_count() == 3
    assert len(run["qir"].notes) == 1


@pytest.mark.parametrize("reply", [qir("Dune | | ?person"), {**GOOD, "triples": []}, "nothing"])
def test_a_reply_without_a_whole_triple_is_not_used_as_the_last_resort(reply: Any) -> None:
    with pytest.raises(InvalidReplyError) as caught:
        extracted(reply, reply, reply)
    assert len(caught.value.attempts) == 3


# --- from reply to QIR


@pytest.mark.parametrize(
    ("triples", "facts"),
    [
        (["Dune | director | ?"], [("Dune", "director", "?unknown")]),
        (["Dune | director | ?the person"], [("Dune", "director", "?the_person")]),
        (["Dune | director | ??p-1"], [("Dune", "director", "?p_1")]),
        (["Dune | director | ?größe"], [("Dune", "director", "?gruf6udfe")]),
        (["Dune |  directed   by | ?p"], [("Dune", "directed by", "?p")]),
        (["Dune | director | ?p", "dune | Director | ?p"], [("Dune", "director", "?p")]),
        (
            ["Dune | director | ?p", "Dune | star | ?p"],
            [("Dune", "director", "?p"), ("Dune", "star", "?p")],
        ),
    ],
)
def test_names_are_cleaned_and_near_duplicates_dropped(
    triples: list[str], facts: list[tuple[str, str, str]]
) -> None:
    record, _, _ = extracted({**qir(*triples), "target": ""})
    assert [(fact.subject, fact.relation, fact.object) for fact in record.facts] == facts


@pytest.mark.parametrize(
    ("question", "said", "kind"),
    [
        ("Is Dune by Lynch?", "list", "boolean"),
        ("Has he won?", "list", "boolean"),
        ("Can it fly?", "count", "boolean"),
        ("Do they act?", "list", "boolean"),
        ("Were, by chance, both there?", "list", "boolean"),
        ("How many films are there?", "list", "count"),
        ("In how many films did he act?", "list", "count"),
        ("What is the number of seats?", "list", "count"),
        ("Who directed Dune?", "boolean", "list"),
        ("Could you name the film?", "list", "list"),
        ("Does anyone know who directed Dune?", "boolean", "list"),
        ("Does anyone in the cast speak Dutch?", "boolean", "boolean"),
        ("Does anyone in the cast speak Dutch?", "list", "list"),
        ("Is it a drama, or what? Which genre is it?", "boolean", "list"),
        ("Has she any credits, and what are they?", "list", "list"),
        ("Name the film.", "count", "count"),
        ("", "list", "list"),
    ],
)
def test_the_kind_goes_by_the_opening_words(
    question: str, said: AnswerKind, kind: AnswerKind
) -> None:
    assert determine_kind(question, said) == kind


# --- by hand


@pytest.mark.parametrize(
    ("facts", "target", "problem"),
    [
        ((), "?b", "no triple names an entity"),
        ((Fact("?a", "director", "?b"),), "?b", "no triple names an entity"),
        ((Fact("Dune", "", "?b"),), "?b", "triple 1 lacks a part"),
        ((Fact("Dune", "director", "Lynch"),), "", "no triple has an unknown"),
        ((Fact("Dune", "director", "?b"),), "?c", "the target ?c is in no triple"),
        ((Fact("Dune", "director", "?b"),), "", "the target is empty"),
        ((Fact("Dune", "director", "?a b"),), "?a b", "write ?a_b"),
        ((Fact("Dune", "director", "?"),), "?", "write ?unknown"),
    ],
)
def test_a_qir_by_hand_goes_through_the_same_checks(
    facts: tuple[Fact, ...], target: str, problem: str
) -> None:
    _, run, _ = extracted(GOOD)
    with pytest.raises(OverrideError) as caught:
        run.override("qir", QIR(facts, target))
    assert problem in caught.value.message
    run.override(
        "qir",
        {"facts": [{"subject": "Dune", "relation": "writer", "object": "?b"}], "target": "?b"},
    )
    assert [fact.relation for fact in run.go().output("qir").facts] == ["writer"]


@pytest.mark.parametrize(
    ("reply", "question"),
    [
        (qir("Dune | director | Lynch", target="?x", kind="boolean"), "Did Lynch direct Dune?"),
        ({**GOOD, "target": "?film", "beyond": ["an order"]}, "Who directed the first Dune?"),
        (qir("?a | director | ?b", beyond=["an order"]), "Who directed the first film?"),
        ({**GOOD, "triples": [], "target": "", "beyond": ["an order"]}, "Which is the first?"),
    ],
)
def test_what_is_not_looked_for_needs_no_target_and_no_entity(reply: Any, question: str) -> None:
    _, run, model = extracted(reply, question=question)
    assert (model.call_count(), run["qir"].attempts[0].accepted) == (1, True)
