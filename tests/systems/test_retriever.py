"""Entity retriever: what is shown to the vertex selection."""

from __future__ import annotations

from small import FILMS, PAPER, alone, films, iri

from kgwb.settings import Settings
from kgwb.systems.retriever import retrieve

DUNES = FILMS + ':dune rdfs:comment "film of 2021" . :dunes rdfs:label "Dunes of Arabia" ; :director :denis .'


def test_homonyms_are_told_apart_by_type_description_and_relations() -> None:
    novel = DUNES + ':novel a :Novel ; rdfs:label "Dune" ; :author :ted . :Novel rdfs:label "novel" .'
    retrieved, _, _ = alone(lambda run: retrieve("dune", run), kg=films(novel))
    shown = {candidate.iri: candidate for candidate in retrieved.candidates}
    assert set(shown) == {iri("dune"), iri("lynchs_dune"), iri("novel")}  # exact labels only
    assert shown[iri("novel")].types == ("novel",)
    assert shown[iri("novel")].relations == ("author",)
    assert "director" in shown[iri("dune")].relations
    assert shown[iri("dune")].description == "film of 2021"
    assert retrieved.found >= 3


def test_one_vertex_needs_no_description() -> None:
    retrieved, run, _ = alone(lambda run: retrieve("Arrival", run))
    [candidate] = retrieved.candidates
    assert (candidate.iri, candidate.score, candidate.types) == (iri("arrival"), 1.0, ())
    assert run.totals.queries == 0


def test_without_an_exact_label_the_best_are_shown() -> None:
    many = FILMS + "".join(f':w{n} rdfs:label "Winter film {n}" ; :director :denis .' for n in range(9))
    settings = Settings(shown_candidates=4)
    retrieved, _, _ = alone(lambda run: retrieve("winter", run), kg=films(many), settings=settings)
    assert (len(retrieved.candidates), retrieved.found) == (4, 9)


def test_v_limit_bounds_the_search_and_is_told() -> None:
    settings = Settings(v_limit=1)
    retrieved, run, _ = alone(lambda run: retrieve("Dune", run), settings=settings)
    assert retrieved.found == 1
    assert run["entity_retriever[Dune]"].notes == ["v_limit cut the search for 'Dune' at 1 vertices"]


def test_as_published_labels_alone() -> None:
    retrieved, run, _ = alone(lambda run: retrieve("Dune", run), kg=films(DUNES), settings=PAPER)
    assert {candidate.label for candidate in retrieved.candidates} <= {"Dune", "Dunes of Arabia"}
    assert all(candidate.types == () and candidate.relations == () for candidate in retrieved.candidates)
    assert run.totals.queries == 0


def test_nothing_found_is_an_answer() -> None:
    retrieved, _, _ = alone(lambda run: retrieve("Xyzzy", run))
    assert (retrieved.candidates, retrieved.found) == ((), 0)
