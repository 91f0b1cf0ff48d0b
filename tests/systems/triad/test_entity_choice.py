"""Entity choice: each vertex that is offered can be chosen, at most K."""

import pytest
from page import record_html
from rdflib import URIRef
from small import iri
from triads import (
    NUMBERS,
    on_twins,
)

from kgwb.run.answers import Candidate, RetrievedCandidates
from kgwb.systems.triad.records import Choice


@pytest.mark.parametrize("name", ["river", "fruit"])
def test_every_entity_can_be_put_in_by_hand(name: str) -> None:
    run, _ = on_twins({"entities": 3, "relations": 9}, **NUMBERS)
    candidates = run.output("entity_retriever[try 1/parsing/Orange]").candidates
    [wanted] = [each for each in candidates if each.iri == iri(f"orange_{name}")]
    run.override("entity_choice[try 1/parsing/Orange]", Choice("Orange", (wanted,))).go()
    assert run.answer
    assert str(wanted.iri) in run.answer.queries[0]


def test_a_choice_is_shown_among_all_that_it_was_chosen_from() -> None:
    """Of two films of one name the second is taken; the query is shown as SPARQL."""
    films = tuple(
        Candidate(URIRef(f"http://example.org/{year}"), "The Mummy", score, ("film",))
        for year, score in (("1932", 0.9), ("1999", 0.8))
    )
    retrieved = RetrievedCandidates("The Mummy", films)
    taken = Choice("The Mummy", films[1:], "it has a composer")
    shown = record_html(taken, of_system="triad", inputs=(retrieved,))
    rows = shown.partition("<table")[2].split("<tr>")[2:]
    assert ["taken" in row for row in rows] == [False, True]
    assert ["0.90" in rows[0], "0.80" in rows[1]] == [True, True]
    alone = record_html(taken, of_system="triad")
    assert alone.count("The Mummy") == 2
