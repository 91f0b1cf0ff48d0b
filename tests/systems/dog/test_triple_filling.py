"""Triple filling: the tails of a relation, their triples, and what is said of them."""

from pathlib import Path
from typing import Any

import pytest
from small import DOG, FILMS, alone, films, iri
from tables import read_table

from kgwb import profile
from kgwb.kg import Graph
from kgwb.run.answers import Value
from kgwb.systems.dog.hop import (
    fill_triples,
)
from kgwb.systems.dog.records import (
    FilledTriples,
    FilteredRelation,
    Head,
    Relation,
)


def head(*names: str) -> Head:
    terms = tuple(iri(name) for name in names)
    return Head("these", tuple(map(Value, terms, names)), terms)


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


@pytest.mark.parametrize(
    ("names", "relation", "fan_out", "row_limit", "note"),
    [
        (["arrival", "dune"], "director", 9, 9, "all triples"),
        (["arrival", "gentilly"], "director", 9, 9, "all triples; no triple for gentilly"),
        (["gentilly", "missoula"], "director", 9, 9, "no triple for gentilly, missoula"),
        (
            ["arrival", "dune", "gentilly"],
            "starring",
            2,
            9,
            "cut: 2 of 3 triples; no triple for gentilly",
        ),
        (["arrival", "dune", "gentilly"], "starring", 9, 2, "cut: 2 of more than 2 triples"),
    ],
)
def test_the_note_of_a_result_names_vertices_without_a_triple_and_says_if_it_was_cut(
    names: list[str], relation: str, fan_out: int, row_limit: int, note: str
) -> None:
    kg = films(row_limit=row_limit)
    result, _ = filled(relation, "out", head(*names), kg=kg, fan_out=fan_out)
    assert result.note == note


@pytest.mark.parametrize(
    ("turtle", "names", "relation", "way", "settings", "expected"),
    read_table(Path(__file__).with_name("filled_triples.jsonl")),
)
def test_tails_are_found_behind_nodes_without_a_name_and_in_lists(
    turtle: str, names: list[str], relation: str, way: str, settings: Any, expected: Any
) -> None:
    result, notes = filled(relation, way, head(*names), turtle, **settings)
    sizes = [len(value.support) for value in result.values]
    triples = [" ".join(words) for words in result.triples]
    said = [[*result.labels], sizes, sorted(triples), bool(result.reason), len(notes)]
    assert [*said, len(result.queries), result.found] == expected
