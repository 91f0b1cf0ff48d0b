"""Other readings of a question: those that follow from the query, and those that are drafted anew."""

from __future__ import annotations

import pytest
from small import films
from surveying import UNREVIEWED, YARD, answered, draft, mention

NOBODY = mention(classes=(), question="Which ships?")


@pytest.mark.parametrize("row_limit", [20, 100])
def test_rows_of_a_reading_that_the_graph_has_cut_are_not_counted_as_all(row_limit: int) -> None:
    more = " ".join(f":s{number} a :Ship ; :built {number} ." for number in range(30))
    kg = films(YARD + more, row_limit=row_limit)
    run, _ = answered(draft("ASK { ?s org:built ?y }"), names=NOBODY, kg=kg, settings=UNREVIEWED)
    [reading] = [reading for reading in run.readings if "which" in reading.other]
    assert ("at least" in reading.rows[-1]) == (row_limit == 20)


def test_a_pair_of_text_and_link_that_several_classes_have_gives_one_reading() -> None:
    firms = ":x a :Firm ; :port :oslo, :bergen ; :portName 'Oslo' . :y a :Firm ; :port :oslo ."
    firms += " :y :portName 'Oslo' ."
    query = draft("SELECT DISTINCT ?p { ?s org:portName ?p }")
    run, _ = answered(query, names=NOBODY, kg=films(YARD + firms), settings=UNREVIEWED)
    assert [reading.other for reading in run.readings if reading.sparql] == ["by org:port"]
