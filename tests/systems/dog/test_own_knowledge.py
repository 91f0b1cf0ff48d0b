"""Own knowledge: the model answers without the graph, by a setting."""

import pytest
from debate import (
    QUESTION,
    filtering,
    two_hops,
)
from small import answer_of, dog

from kgwb.settings import Settings
from kgwb.systems.dog import NOT_IN_GRAPH


@pytest.mark.parametrize("known", [["Quebec"], []])
def test_own_knowledge_is_used_where_the_graph_gave_no_answer_and_is_marked(
    known: list[str],
) -> None:
    model = two_hops(relation_filtering=filtering(""), own_knowledge={"answers": known})
    answer = answer_of(dog(QUESTION, model, settings=Settings(own_knowledge=True)).go())
    assert (list(answer.labels), answer.ungrounded, answer.support) == (known, bool(known), ())
    assert answer.reason.startswith(NOT_IN_GRAPH)
