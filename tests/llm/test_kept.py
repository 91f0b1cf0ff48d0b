"""What the rules keep of a graph."""

from small import films

from kgwb.llm.rules.mentions import MAX_KEPT, KeptByGraph


def test_the_last_findings_of_a_graph_are_kept_and_those_of_another_are_not() -> None:
    kept: KeptByGraph[int] = KeptByGraph()
    first, second = films(), films()
    for number in range(MAX_KEPT + 1):
        kept.keep(first, number, number)
    assert kept.get(first, 0) is None
    assert kept.get(first, MAX_KEPT) == MAX_KEPT
    assert kept.get(second, MAX_KEPT) is None
