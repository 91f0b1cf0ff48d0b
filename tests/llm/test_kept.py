"""What the rules keep of a graph."""

from small import films

from kgwb.kg import Graph
from kgwb.llm.rules.mentions import MAX_KEPT, kept_by_graph


def test_the_last_findings_of_a_graph_are_kept_and_those_of_another_are_not() -> None:
    found: list[int] = []

    @kept_by_graph
    def find(_: Graph, number: int) -> int:
        found.append(number)
        return number

    first, second = films(), films()
    for number in (*range(MAX_KEPT + 1), MAX_KEPT, 1):
        assert find(first, number) == number
    assert len(found) == MAX_KEPT + 1
    find(first, 0)
    find(second, MAX_KEPT)
    assert found[MAX_KEPT + 1 :] == [0, MAX_KEPT]
