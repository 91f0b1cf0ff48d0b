"""The entity retriever: candidates by their labels, with what tells them apart."""

import pytest
from small import FILMS, PAPER, alone, films

from kgwb.run.linking import retrieve_candidates
from kgwb.settings import Settings

MANY_DUNES = (
    FILMS
    + ':dune rdfs:comment "film of 2021" . :dunes rdfs:label "Dunes of Arabia" ; :director :denis .'
)


@pytest.mark.parametrize(
    ("text", "settings", "labels", "number", "notes"),
    [
        ("winter", Settings(shown_candidates=4), [f"Winter film {n}" for n in range(4)], 9, []),
        ("Arrival", Settings(), ["Arrival"], 1, []),  # exact, and nothing to distinguish
        (
            "Dune",
            Settings(v_limit=1),
            ["Dune"],
            1,
            ["v_limit cut the search for 'Dune' at 1 vertices"],
        ),
        ("Dune", PAPER, ["Dune", "Dune"], 2, []),
        ("story", PAPER, ["Story", "Story of Your Life"], 1, []),  # the first one is a class
        ("Xyzzy", Settings(), [], 0, []),
    ],
)
def test_the_best_candidates_are_shown_and_what_is_cut_is_noted(
    text: str, settings: Settings, labels: list[str], number: int, notes: list[str]
) -> None:
    many = MANY_DUNES + "".join(
        f':w{n} rdfs:label "Winter film {n}" ; :director :denis .' for n in range(9)
    )
    retrieved, run, _ = alone(
        lambda run: retrieve_candidates(text, run), kg=films(many), settings=settings
    )
    assert ([candidate.label for candidate in retrieved.candidates], retrieved.found) == (
        labels,
        number,
    )
    assert run["entity_retriever"].notes == notes
    if text in ("Arrival", "Dune"):  # labels alone, and in paper those of the classes
        assert all(not (c.types or c.description or c.relations) for c in retrieved.candidates)
        assert run.totals.queries == settings.whole_graph
