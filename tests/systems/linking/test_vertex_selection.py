"""Vertex selection: replies of the model, when it is not asked, and the vertex validator."""

from typing import Any

import pytest
from small import DIRECTED, FILMS, alone, chatty, films, iri, vertex

from kgwb import profile
from kgwb.errors import OverrideError
from kgwb.llm import Scripted
from kgwb.run.answers import Candidate, Context, Link, RetrievedCandidates, Turn
from kgwb.run.linking import retrieve_candidates, select_vertex

DUNES = (
    Candidate(iri("dune"), "Dune", 1.0, ("film",)),
    Candidate(iri("lynchs_dune"), "Dune", 1.0, ("film",), "of 1984", ("director",)),
)


def selected(
    candidates: tuple[Candidate, ...],
    *replies: Any,
    name: str = "vertex_selection",
    question: str = "Who directed Dune?",
    earlier: tuple[Turn, ...] = (),
    **options: Any,
) -> Any:
    retrieved = RetrievedCandidates("Dune", candidates)
    return alone(
        lambda run: select_vertex(retrieved, question, Context(earlier), run),
        {name: list(replies)},
        **options,
    )


def test_a_link_by_hand_may_be_any_vertex_but_for_its_entity() -> None:
    run = chatty("Who directed Arrival?", Scripted(DIRECTED), films(FILMS)).go()
    with pytest.raises(OverrideError, match="'Dune'"):
        run.override("vertex_selection", Link("Dune", DUNES[0]))
    run.override("vertex_selection", Link("Arrival", Candidate(iri("lynchs_dune"), "Dune"))).go()
    assert str(run.answer) == "David Lynch"


SAID = (Turn("Is Dune long?", entities=("dune",), linked=(iri("dune"),)),)
ANSWERED = Turn("Who wrote it?", answers=("Dune",), vertices=(iri("lynchs_dune"), iri("book")))
TWO_ANSWERS = Turn("Which?", answers=("Dune", "Dune"), vertices=(iri("dune"), iri("lynchs_dune")))


@pytest.mark.parametrize(
    ("question", "earlier", "kept"),
    [
        ("Who directed Dune?", SAID, DUNES[0]),
        ("Who directed the Dune of 1984?", SAID, None),  # only the other one is of 1984
        ("Is Dune long?", (Turn("Emma?", entities=("Emma",), linked=(iri("dune"),)),), None),
        ("Is Dune long?", (Turn("Dune?", entities=("Dune",), linked=(iri("planet"),)),), None),
        ("Is Dune long?", (*SAID, ANSWERED), DUNES[1]),  # the latest turn counts
        ("Is Dune long?", (ANSWERED, *SAID), DUNES[0]),
        ("Is Dune long?", (TWO_ANSWERS,), None),
        # the name was no answer, although its vertex was near one
        ("Is Dune long?", (Turn("Who?", answers=("Sting",), vertices=(iri("dune"),)),), None),
    ],
)
def test_a_name_keeps_the_vertex_of_the_dialogue_unless_it_may_mean_another_now(
    question: str, earlier: tuple[Turn, ...], kept: Candidate | None
) -> None:
    chosen = vertex(2, "Dune")
    link, _, model = selected(DUNES, chosen, question=question, earlier=earlier)
    assert (link.vertex, model.call_count()) == (kept or DUNES[1], int(kept is None))


LANGUAGES = """
@prefix : <http://example.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:c :designer :ritchie ; rdfs:label "C" . :sharp :designer :anders ; rdfs:label "C#" .
"""


@pytest.mark.parametrize(
    ("entity", "asked", "meant"), [("c#", 0, "sharp"), ("C", 0, "c"), ("C++", 1, None)]
)
def test_a_label_with_other_signs_is_not_taken_without_a_model(
    entity: str, asked: int, meant: str | None
) -> None:
    def choose(run: Any) -> Link:
        retrieved = retrieve_candidates(entity, run)
        return select_vertex(retrieved, f"Who designed {entity}?", Context(), run)

    replies = {"vertex_selection": [vertex(0, "")]}
    link, _, model = alone(choose, replies, kg=films(LANGUAGES))
    assert (link.vertex and link.vertex.iri, model.call_count()) == (meant and iri(meant), asked)


def several(*replies: Any) -> Any:
    """The link of a name that may mean several candidates together, and the model."""
    retrieved = RetrievedCandidates("dune", DUNES, may_be_several=True)
    script = {"vertex_selection_several": list(replies)}
    link, _, model = alone(
        lambda run: select_vertex(retrieved, "Who made the dunes?", Context(), run), script
    )
    return link, model


@pytest.mark.parametrize(
    ("numbers", "labels", "chosen"),
    [
        ([2, 1], ["Dune", "dune"], (DUNES[1], DUNES[0])),
        ([2, 2], ["Dune", "Dune"], DUNES[1:]),
        ([], [], ()),
    ],
)
def test_several_vertices_are_meant_together(
    numbers: list[int], labels: list[str], chosen: tuple[Candidate, ...]
) -> None:
    link, model = several({"reason": "all", "numbers": numbers, "labels": labels})
    assert (link.vertices, model.call_count()) == (chosen, 1)
    assert [iri for iri, _ in link.roles()] == [candidate.iri for candidate in chosen]
    assert link.with_derived_fields().vertices == chosen[:1]


@pytest.mark.parametrize(
    ("numbers", "labels"), [([1, 3], ["Dune", "Dune"]), ([1, 2], ["Dune"]), ([1], ["Dunes"])]
)
def test_numbers_and_labels_of_several_vertices_must_fit(
    numbers: list[int], labels: list[str]
) -> None:
    right = {"reason": "", "numbers": [1], "labels": ["Dune"]}
    link, model = several({"reason": "", "numbers": numbers, "labels": labels}, right)
    assert (link.vertices, model.call_count()) == (DUNES[:1], 2)


@pytest.mark.parametrize(
    ("labels", "names", "chosen"),
    [
        (["Arrival"], [], "arrival"),
        (["Dune"], ["lynchs_dune"], "lynchs_dune"),
        (["dune", "Dune"], ["Dune", "dune"], "dune"),
        (["Sicario"] * 9, [], ""),
        (["Dune"], ["arrival"] * 9, ""),
    ],
)
def test_a_label_is_chosen_and_of_equal_ones_a_local_part(
    labels: list[str], names: list[str], chosen: str
) -> None:
    retrieved = RetrievedCandidates("Dune", (*DUNES, Candidate(iri("arrival"), "Arrival")))
    replies = {
        "vertex_selection_labels": [{"label": label} for label in labels],
        "vertex_selection_names": [{"name": name} for name in names],
    }
    settings = profile("fast", vertex_choice="label", exhausted_attempts="abstain")
    link, _, _ = alone(
        lambda run: select_vertex(retrieved, "Who made Dune?", Context(), run),
        replies,
        settings=settings,
    )
    assert [each.iri for each in link.vertices] == ([iri(chosen)] if chosen else [])
