"""Answer trying: what the model sees of the triples, and which replies are sent back."""

from typing import Any

import pytest
from debate import trying
from small import DOG, FILMS, alone, films, iri

from kgwb import profile
from kgwb.errors import InvalidReplyError
from kgwb.kg import Graph
from kgwb.systems.dog.hop import (
    fill_triples,
    try_answer,
)
from kgwb.systems.dog.records import (
    FilledTriples,
    FilteredRelation,
    Head,
    Relation,
    TriedAnswer,
)


def filled(
    name: str, way: Any, start: Head, turtle: str = "", kg: Graph | None = None, **settings: Any
) -> tuple[FilledTriples, list[str]]:
    """The triples of a head and a predicate, and the notes on the step."""
    chosen = FilteredRelation(start.name, "", Relation(name, way, (iri(name),)))
    kg, fast = kg or films(FILMS + turtle), profile("fast", **settings)
    result, run, _ = alone(
        lambda run: fill_triples(chosen, start, run), kg=kg, settings=fast, of=DOG
    )
    return result, run.steps[-1].notes


TRIPLES = (("Arrival", "starring", "Amy Adams"), ("Arrival", "starring", "…", "as", "Louise Banks"))


FILLED = FilledTriples("list", head="Arrival", triples=TRIPLES, note="all triples")


def tried(*replies: Any, filled: tuple[FilledTriples, ...] = (FILLED,)) -> tuple[TriedAnswer, Any]:
    script = {"answer_trying": list(replies)}
    decision, _, model = alone(lambda run: try_answer("who?", filled, run), script, of=DOG)
    return decision, model


def test_answers_are_names_in_the_triples_and_letter_case_and_spaces_are_ignored() -> None:
    nothing = FilledTriples("list", reason="nothing", head="Roma", note="no triple")
    decision, model = tried(
        trying("amy  adams", "Louise Banks", "Arrival"), filled=(FILLED, nothing)
    )
    assert (decision.sufficient, len(decision.answers)) == ("yes", 3)
    assert model.requests[0].variables["found"] == [
        {
            "entity": "Arrival",
            "triples": [list(triple) for triple in TRIPLES],
            "note": "all triples",
        },
        {"entity": "Roma", "triples": [], "note": "no triple; nothing"},
    ]


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        (trying("Jeremy Renner"), "'Jeremy Renner' is not in the triples"),
        (trying("starring"), "'starring' is not in the triples"),
        ({**trying(), "sufficient": "yes"}, "the reply is yes, but gives no answer"),
        ({**trying("Amy Adams"), "sufficient": "no"}, "the reply is no, with answers"),
        ({**trying(), "sufficient": "No, yes is too early"}, "Input should be 'yes' or 'no'"),
        ("Yes, and here is why not.", "no JSON"),
    ],
)
def test_a_reply_that_contradicts_itself_or_the_triples_is_sent_back(
    reply: Any, problem: str
) -> None:
    assert tried(reply, trying())[0].sufficient == "no"
    with pytest.raises(InvalidReplyError, match=problem):
        tried(reply, reply, reply)
