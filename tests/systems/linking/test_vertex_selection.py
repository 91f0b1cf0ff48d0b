"""Vertex selection: replies of the model, when it is not asked, and the vertex validator."""

from typing import Any

import pytest
from small import DIRECTED, FILMS, PAPER, REFERENCE, alone, chatty, films, iri, vertex

from kgwb import profile
from kgwb.errors import InvalidReplyError, OverrideError
from kgwb.llm import Scripted
from kgwb.run.answers import Candidate, Context, Link, RetrievedCandidates, Turn
from kgwb.run.linking import number_candidates, retrieve_candidates, select_vertex
from kgwb.settings import Settings

DUNES = (
    Candidate(iri("dune"), "Dune", 1.0, ("film",)),
    Candidate(iri("lynchs_dune"), "Dune", 1.0, ("film",), "of 1984", ("director",)),
)


NEAR = (Candidate(iri("story"), "Story of Your Life", 0.6),)


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


@pytest.mark.parametrize(
    ("candidates", "settings"),
    [
        (DUNES[:1], Settings()),
        (NEAR, REFERENCE),  # also if the label is not the entity
        ((), Settings()),
        ((), PAPER),
    ],
)
def test_without_a_choice_no_model_is_asked(
    candidates: tuple[Candidate, ...], settings: Settings
) -> None:
    link, _, model = selected(candidates, settings=settings)
    assert (link.vertex, model.call_count()) == (next(iter(candidates), None), 0)
    assert link.reason


@pytest.mark.parametrize(
    ("unasked_choice", "candidates", "calls"),
    [
        ("exact_match", DUNES[:1], 0),
        ("exact_match", NEAR, 1),
        ("only_candidate", NEAR, 0),
        ("only_candidate", DUNES, 1),
        ("never", DUNES[:1], 1),
    ],
)
def test_a_setting_says_when_a_vertex_is_chosen_without_a_model(
    unasked_choice: str, candidates: tuple[Candidate, ...], calls: int
) -> None:
    settings = profile("fast", unasked_choice=unasked_choice)
    reply = vertex(1, candidates[0].label)
    link, _, model = selected(candidates, reply, settings=settings)
    assert (link.vertex, model.call_count()) == (candidates[0], calls)


@pytest.mark.parametrize("candidates", [DUNES, NEAR])
def test_homonyms_and_near_labels_are_the_models_choice(candidates: tuple[Candidate, ...]) -> None:
    reply = vertex(len(candidates), candidates[-1].label.upper() + " ", "the year")
    link, _, model = selected(candidates, reply)
    assert (link.vertex, link.reason, model.call_count()) == (candidates[-1], "the year", 1)
    link, _, _ = selected(candidates, vertex(0, "", "none is"))
    assert (link.vertex, link.reason, link.candidates) == (None, "none is", candidates)


def test_the_model_sees_what_tells_homonyms_apart() -> None:
    _, _, model = selected(DUNES, vertex(1, "Dune"))
    assert model.requests[0].variables["candidates"] == [
        {"number": 1, "label": "Dune", "type": "film", "description": ""},
        {
            "number": 2,
            "label": "Dune",
            "type": "film",
            "description": "of 1984",
            "relations": ["director"],
        },
    ]


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        (vertex(3, "Dune"), "there is no candidate 3; they go from 1 to 2"),
        (vertex(-1, "Dune"), "there is no candidate -1"),
        (vertex(1, "Dune (1984)"), "candidate 1 is 'Dune', not 'Dune (1984)'"),
        (vertex(0, "Dune"), "number 0 means none, but a label is given"),
        (
            {"reason": "", "number": "one", "label": "Dune"},
            "number: Input should be a valid integer",
        ),
    ],
)
def test_a_choice_outside_the_list_is_invalid(reply: Any, problem: str) -> None:
    link, run, _ = selected(DUNES, reply, vertex(2, "Dune"))
    assert link.vertex == DUNES[1]
    assert problem in run["vertex_selection"].attempts[0].checks[-1].problem
    with pytest.raises(InvalidReplyError):
        selected(DUNES, reply, reply, reply)


def test_a_link_by_hand_may_be_any_vertex_but_for_its_entity() -> None:
    run = chatty("Who directed Arrival?", Scripted(DIRECTED), films(FILMS)).go()
    with pytest.raises(OverrideError, match="'Dune'"):
        run.override("vertex_selection", Link("Dune", DUNES[0]))
    run.override("vertex_selection", Link("Arrival", Candidate(iri("lynchs_dune"), "Dune"))).go()
    assert str(run.answer) == "David Lynch"


EARLIER = (Turn("Is Dune long?", entities=("dune",), linked=(iri("dune"),)),)


@pytest.mark.parametrize(
    ("question", "earlier", "chosen", "calls"),
    [
        ("Who directed Dune?", EARLIER, DUNES[0], 0),
        ("Who directed the Dune of 1984?", EARLIER, DUNES[1], 1),  # only the other one is of 1984
        (
            "Who directed Dune?",
            (Turn("Emma?", entities=("Emma",), linked=(iri("emma"),)),),
            DUNES[1],
            1,
        ),
        (
            "Who directed Dune?",
            (Turn("Dune?", entities=("Dune",), linked=(iri("planet"),)),),
            DUNES[1],
            1,
        ),
    ],
)
def test_a_name_keeps_its_vertex_through_the_dialogue_unless_it_may_mean_another_now(
    question: str, earlier: tuple[Turn, ...], chosen: Candidate, calls: int
) -> None:
    link, _, model = selected(DUNES, vertex(2, "Dune"), question=question, earlier=earlier)
    assert (link.vertex, model.call_count()) == (chosen, calls)


ANSWERED = Turn("Who wrote it?", answers=("Dune",), vertices=(iri("lynchs_dune"), iri("book")))


@pytest.mark.parametrize(
    ("earlier", "chosen", "calls"),
    [
        ((ANSWERED,), DUNES[1], 0),
        ((*EARLIER, ANSWERED), DUNES[1], 0),  # the latest turn counts
        ((ANSWERED, *EARLIER), DUNES[0], 0),
        # two answers of this name
        (
            (Turn("Which?", answers=("Dune", "Dune"), vertices=(iri("dune"), iri("lynchs_dune"))),),
            DUNES[0],
            1,
        ),
        # the name was no answer, although its vertex was near one
        ((Turn("Who?", answers=("Sting",), vertices=(iri("lynchs_dune"),)),), DUNES[0], 1),
    ],
)
def test_a_name_that_was_an_answer_means_the_vertex_that_was_the_answer(
    earlier: tuple[Turn, ...], chosen: Candidate, calls: int
) -> None:
    link, _, model = selected(DUNES, vertex(1, "Dune"), question="Is Dune long?", earlier=earlier)
    assert (link.vertex, model.call_count()) == (chosen, calls)


FRUIT = (Candidate(iri("colour"), "orange", 1.0), Candidate(iri("company"), "Orange", 1.0))


@pytest.mark.parametrize(("label", "chosen"), [("Orange", FRUIT[1]), ("orange", FRUIT[0])])
def test_a_label_means_exactly_the_same_before_one_in_other_letter_case(
    label: str, chosen: Candidate
) -> None:
    for settings in (PAPER, REFERENCE):
        link, _, model = selected(
            FRUIT, {"label": label}, name="vertex_selection_labels", settings=settings
        )
        assert link.vertex == chosen
        assert model.requests[0].variables["labels"] == ["orange", "Orange"]
    number = FRUIT.index(chosen) + 1
    link, run, _ = selected(FRUIT, vertex(3 - number, label), vertex(number, label))
    assert link.vertex == chosen
    assert len(run["vertex_selection"].attempts) == 2  # the number of the other one is refused


def test_a_label_in_other_letter_case_than_all_of_several_is_not_in_the_list() -> None:
    replies = [{"label": "ORANGE"}, {"label": "Orange"}]
    link, _, model = selected(FRUIT, *replies, name="vertex_selection_labels", settings=PAPER)
    assert (link.vertex, model.call_count()) == (FRUIT[1], 2)


def test_vertices_of_one_local_name_are_both_offered() -> None:
    twins = (
        Candidate(iri("a/dune"), "Dune", 1.0),
        Candidate(iri("b/dune"), "Dune", 1.0),
        Candidate(iri("novel"), "Dune", 1.0),
    )
    replies = {
        "vertex_selection_labels": {"label": "Dune"},
        "vertex_selection_names": {"name": str(twins[0].iri)},
    }
    retrieved = RetrievedCandidates("Dune", twins)
    link, _, model = alone(
        lambda run: select_vertex(retrieved, "Who?", Context(), run), replies, settings=PAPER
    )
    assert link.vertex == twins[0]
    names = [str(twins[0].iri), str(twins[1].iri), "novel"]
    assert model.requests[1].variables["names"] == names


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


def test_candidates_that_would_be_the_same_row_have_their_iri() -> None:
    twins = (Candidate(iri("a"), "Dune"), Candidate(iri("b"), "Dune"), Candidate(iri("c"), "Dunes"))
    first, second, third = number_candidates(twins)
    assert (first["iri"], second["iri"]) == (str(iri("a")), str(iri("b")))
    assert "iri" not in third


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
