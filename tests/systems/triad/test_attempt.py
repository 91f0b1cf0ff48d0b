"""Attempts: a query is found, or the next attempt goes back to the phase at fault."""

import pytest
from small import answer_of, iri
from triads import (
    answered,
)

from kgwb.errors import InvalidReplyError, OverrideError
from kgwb.run.answers import Candidate
from kgwb.systems.triad.records import Choice, Triplet


def test_replies_that_are_no_json_end_the_run_unless_there_is_own_knowledge() -> None:
    garbage = {"triplets": "I do not know.", "own_knowledge_fact": {"answer": "Moscow"}}
    with pytest.raises(InvalidReplyError, match="triplets"):
        answered(**garbage)
    run, _ = answered(**garbage, settings={"own_knowledge": True})
    assert (answer_of(run).labels, answer_of(run).ungrounded) == (("Moscow",), True)


def test_an_override_must_be_among_the_options() -> None:
    run, _ = answered()
    relation = run.output("relation_choice[try 1/parsing/⟨?person, born in, ?city⟩]")
    entity = run.output("entity_choice[try 1/parsing/Dune]")
    other = Choice("Dune", (Candidate(iri("made_up"), "Made up"),))
    for key, value, problem in (
        ("entity_choice[try 1/parsing/Dune]", other, "not one of the options"),
        (
            "relation_choice[try 1/parsing/⟨?person, born in, ?city⟩]",
            entity,
            "not one of the options",
        ),
        ("query_choice[try 1/parsing]", relation, "not one of the options"),
        ("template[try 1/parsing]", "ASK { <a:a> <a:b> <a:c> }", "lacks"),
        ("triplets[try 1/parsing]", (Triplet("?a", "b", "?c"),), "names an entity"),
    ):
        with pytest.raises(OverrideError, match=problem):
            run.override(key, value)
