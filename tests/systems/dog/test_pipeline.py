"""DoG as a whole: its walk, its debate, its ablations, and what a person may override."""

from __future__ import annotations

import json
from typing import Any

import pytest
from debate import CALLS, KEYS, LEFT, MARKED, QUESTION, TWO_HOPS, filtering, remark, trying
from small import DOG, FILMS, alone, answer_of, asked, dog, films, iri, keys

from kgwb.errors import OverrideError
from kgwb.llm import Scripted
from kgwb.run.answers import Dialogue, Turn, Value
from kgwb.run.prompts import Prompts
from kgwb.run.systems import profile
from kgwb.settings import Settings
from kgwb.systems.dog import NOT_IN_GRAPH
from kgwb.systems.dog.question import RemarkReply, make_question_checks, simplify_as_critic
from kgwb.systems.dog.records import FilledTriples, Remark, SolvedHop, TriedAnswer

MISSING = "goes on from what was found"
REMAINING = "the solved entity is gone"
ROLES = ("simplifying_expert", "critic", "linguist")
TRIPLES = [
    ["Arrival", "director", "Denis Villeneuve"],
    ["Denis Villeneuve", "birth place", "Gentilly"],
]


def two_hops(**changed: Any) -> Scripted:
    """A model for the two hops, with other replies where given."""
    return Scripted({**TWO_HOPS, **{f"dog/{name}": reply for name, reply in changed.items()}})


# --- the loop


def test_two_hops_with_a_debate_between_them() -> None:
    model = two_hops()
    run = dog(QUESTION, model).go()
    assert (keys(run), model.call_count(), str(run.answer)) == (KEYS, CALLS, "Gentilly")
    walked = ("arrival", "director", "denis"), ("denis", "birthPlace", "gentilly")
    assert answer_of(run).values[0].support == tuple(tuple(map(iri, triple)) for triple in walked)
    assert run.output("topic_entity").question == MARKED
    assert run.output("simplifying").question == LEFT
    assert len(answer_of(run).queries) == 2


@pytest.mark.parametrize(
    ("topic", "changed", "settings", "answer", "calls"),
    [
        # without a debate
        ("Arrival", {"answer_trying": trying("Denis Villeneuve")}, None, "Denis Villeneuve", 3),
        (
            "Arrival",
            {"relation_filtering": filtering("")},
            None,
            f"{NOT_IN_GRAPH}: [Arrival]: it says so",
            2,
        ),
        ("Solaris", {}, None, f"{NOT_IN_GRAPH}: no vertex for Solaris", 1),
        (
            "Arrival",
            {"answer_trying": trying()},
            profile("fast", iteration_limit=1),
            f"{NOT_IN_GRAPH}: no answer within the iteration limit of 1; the question left is: {MARKED}",
            3,
        ),
    ],
)
def test_a_walk_ends_with_an_answer_or_with_the_reason_why_there_is_none(
    topic: str, changed: dict[str, Any], settings: Settings | None, answer: str, calls: int
) -> None:
    model = two_hops(topic_entity={"entities": [topic]}, **changed)
    run = dog(QUESTION.replace("Arrival", topic), model, settings=settings).go()
    assert (str(run.answer), bool(run.answer)) == (answer, not answer.startswith("not"))
    assert model.call_count() == calls


def test_the_walk_starts_at_every_topic_entity() -> None:
    model = two_hops(
        topic_entity={"entities": ["Amy Adams", "Jeremy Renner"]},
        relation_filtering=filtering("~starring"),
        answer_trying=trying("Arrival"),
    )
    run = dog("Which film stars Amy Adams and Jeremy Renner?", model).go()
    names = ("Amy Adams", "Jeremy Renner")
    assert [key for key in keys(run) if "filling" in key] == [
        f"triple_filling[hop 1/{n}]" for n in names
    ]
    assert str(run.answer) == "Arrival"
    assert {triple[2] for triple in answer_of(run).support} == {iri("amy"), iri("jeremy")}


COMMENTS = ':dune rdfs:comment "film of 2021" . :lynchs_dune rdfs:comment "film of 1984" .'


@pytest.mark.parametrize(
    ("described", "newer", "older"),
    [
        ("", "Dune (dune)", "Dune (lynchs_dune)"),
        (COMMENTS, "Dune (film of 2021)", "Dune (film of 1984)"),
        (":dune a :Part .", "Dune (Film, Part)", "Dune (Film)"),
    ],
)
def test_films_of_one_name_have_different_names_in_the_walk(
    described: str, newer: str, older: str
) -> None:
    turtle = f"{FILMS} :novel rdfs:label 'The Novel' . :dune :basedOn :novel . :lynchs_dune :basedOn :novel ."
    model = two_hops(
        topic_entity={"entities": ["The Novel"]},
        relation_filtering=filtering("director"),
        answer_trying=[trying(), trying(older)],
        simplifying_expert=remark(f"Which of [{newer} | {older}] did Lynch direct?"),
    )
    run = dog(
        "Which film of The Novel did Lynch direct?", model, films(turtle + described), Settings()
    ).go()
    first, second = (
        request.variables["found"] for request in model.requests if "found" in request.variables
    )
    assert [triple[-1] for triple in first[0]["triples"]] == [newer, older]
    assert [older, "director", "David Lynch"] in second[0]["triples"]
    assert [(value.term, value.label) for value in answer_of(run).values] == [
        (iri("lynchs_dune"), "Dune")
    ]


def test_an_entity_whose_turn_comes_later_stays_a_head() -> None:
    debated = remark("Which of [Arrival | 2 others] is based on [Story of Your Life]?")
    model = two_hops(
        topic_entity={"entities": ["Denis Villeneuve", "Story of Your Life"]},
        relation_filtering=[filtering(name) for name in ("~director", "", "based on", "~based on")],
        answer_trying=[trying(), trying("Arrival")],
        **dict.fromkeys(ROLES, debated),
    )
    run = dog("Which film by Denis Villeneuve is based on Story of Your Life?", model).go()
    assert str(run.answer) == "Arrival"
    [relations] = [step for step in run.steps if step.key.startswith("relations[hop 2/Story")]
    assert relations.inputs["head"].values[0].term == iri("story")


def test_dog_reads_each_question_alone() -> None:
    earlier = Dialogue((Turn("Who directed Sicario?", ("Denis Villeneuve",)),))
    model = two_hops()
    run = dog(QUESTION, model, dialogue=earlier).go()
    assert str(run.answer) == "Gentilly"
    assert not any("Sicario" in str(request.messages) for request in model.requests)
    vertices = tuple(map(iri, ("arrival", "denis", "gentilly")))
    assert run.turn == Turn(
        QUESTION, ("Gentilly",), entities=("Arrival",), linked=vertices[:1], vertices=vertices
    )


# --- the debate


def test_each_role_sees_all_earlier_remarks_of_all_rounds() -> None:
    model = two_hops()
    run = dog(QUESTION, model, settings=profile("fast", debate_rounds=2)).go()
    spoken = [key for key in keys(run) if "round" in key]
    assert spoken == [f"{role}[hop 1/round {number}]" for number in (1, 2) for role in ROLES]
    heard = [
        len(request.variables["debate"])
        for request in model.requests
        if "debate" in request.variables
    ]
    assert heard == [0, 1, 2, 3, 4, 5]
    roles = [remark.role for remark in run.output("simplifying").debate[:3]]
    assert roles == ["simplifying expert", "critic", "linguist"]


@pytest.mark.parametrize("role", ROLES)
def test_the_question_of_a_role_is_checked_and_after_theta_attempts_used_as_it_is(
    role: str,
) -> None:
    lost = remark("What are some of his films?")
    still = remark("Where was the director [Denis Villeneuve] of [Arrival] born?")
    run = dog(QUESTION, two_hops(**{role: [lost, still, lost]})).go()
    assert str(run.answer) == "Gentilly"  # the walk goes on from what was found
    problems = [attempt.problems for attempt in run[role].attempts]
    first, second, _ = [problem for [problem] in problems]
    assert (first.name, "[Denis Villeneuve]" in first.problem) == (MISSING, True)
    assert (second.name, "[Arrival]" in second.problem) == (REMAINING, True)
    assert len(run[role].notes) == 1


def test_a_name_that_is_not_solved_must_stay_in_the_question() -> None:
    hops = (SolvedHop("Denis Villeneuve", "~director", "Arrival | Dune"),)
    checks = make_question_checks("Which film by [Denis Villeneuve] is based on [Emma]?", hops)
    reply = RemarkReply(remark="", question="Which of [Arrival | Dune] is based on a story?")
    missing, remaining = (check.test(reply) for check in checks)
    assert missing.endswith("[Emma]")
    assert not remaining


@pytest.mark.parametrize(
    ("first", "speakers"),
    [
        (LEFT, ["simplifying_expert"]),
        ("Where was he born?", ["simplifying_expert", "critic"]),
        ("Where was the director of [Arrival] born?", ["simplifying_expert", "critic"]),
    ],
)
def test_the_debate_ends_with_the_first_question_that_passes_the_checks(
    first: str, speakers: list[str]
) -> None:
    model = two_hops(simplifying_expert=remark(first))
    settings = profile("fast", debate_rounds=2, debate_end="first_valid")
    run = dog(QUESTION, model, settings=settings).go()
    assert str(run.answer) == "Gentilly"
    assert [step.agent for step in run.steps if "round" in step.key] == speakers
    attempts = (
        {"simplifying_expert": 1} if len(speakers) == 1 else {"simplifying_expert": 3, "critic": 1}
    )
    assert {role: count for role, count in asked(model).items() if role in ROLES} == attempts
    assert model.call_count() == 5 + sum(attempts.values())


@pytest.mark.parametrize(("found", "cut"), [(12, None), (110, "the first 12 of 110")])
def test_the_roles_see_three_triples_and_how_many_tails_the_name_stands_for(
    found: int, cut: str | None
) -> None:
    solved = (SolvedHop("Arrival", "starring", "A | 11 others"),)
    names = [f"A{number}" for number in range(12)]
    triples = tuple(("Arrival", "starring", name) for name in names)
    values = tuple(Value(iri(name), name) for name in names)
    filled = (FilledTriples("list", values, triples=triples, found=found),)
    script = {"critic": remark("Where were [A | 11 others] born?")}
    _, _, model = alone(
        lambda run: simplify_as_critic("round 1", MARKED, solved, (), filled, run), script, of=DOG
    )
    [shown] = model.requests[0].variables["solved"]
    assert (shown["count"], shown["examples"]) == (12, [list(triple) for triple in triples[:3]])
    assert ("cut" in shown) == bool(cut)
    assert shown.get("cut", "").startswith(cut or "")


@pytest.mark.parametrize("role", [*ROLES, "fused_agent"])
def test_the_examples_in_the_prompt_of_a_role_pass_the_checks(role: str) -> None:
    examples = Prompts().load(f"dog/{role}").examples
    assert len(examples) == 3
    for _, example in examples:
        question, solved, _, text = example.splitlines()
        hops = []
        for hop in json.loads(solved.removeprefix("Solved: ")):
            hops.append(SolvedHop(hop["entity"], hop["relation"], hop["found"]))
        reply = RemarkReply.model_validate_json(text)
        assert [check.test(reply) for check in make_question_checks(question, hops)] == ["", ""]
        assert not any(hop.entity in reply.question for hop in hops)


@pytest.mark.parametrize(
    ("ablation", "calls", "speakers"),
    [
        ("none", 8, ["simplifying_expert", "critic", "linguist"]),
        ("no_linguist", 7, ["simplifying_expert", "critic"]),
        ("expert_only", 6, ["simplifying_expert"]),
        ("fused_agent", 6, ["fused_agent"]),
        ("no_focusing", 5, []),
    ],
)
def test_the_ablations_of_table_2(ablation: Any, calls: int, speakers: list[str]) -> None:
    changed: dict[str, Any] = {
        name: remark(LEFT) for name in ("fused_agent", "simplifying_expert", "critic")
    }
    if (
        ablation == "no_focusing"
    ):  # two hops, the third has no relation; then one try over all triples
        changed["relation_filtering"] = [*TWO_HOPS["dog/relation_filtering"], filtering("")]
        changed["answer_trying"] = trying("Gentilly")
    model = two_hops(**changed)
    run = dog(QUESTION, model, settings=profile("fast", ablation=ablation)).go()
    assert (str(run.answer), model.call_count()) == ("Gentilly", calls)
    assert [step.agent for step in run.steps if "round" in step.key] == speakers
    tried = [
        request.variables for request in model.requests if request.task == "dog/answer_trying"
    ][-1]
    triples = [triple for result in tried["found"] for triple in result["triples"]]
    first, second = TRIPLES
    assert (tried["question"], triples) == (
        (LEFT, [second]) if speakers else (MARKED, [first, second])
    )


# --- the model's own knowledge


@pytest.mark.parametrize("known", [["Quebec"], []])
def test_own_knowledge_is_used_where_the_graph_gave_no_answer_and_is_marked(
    known: list[str],
) -> None:
    model = two_hops(relation_filtering=filtering(""), own_knowledge={"answers": known})
    assert not dog(QUESTION, model).go().answer
    assert model.call_count("dog/own_knowledge") == 0  # off by default
    run = dog(QUESTION, model, settings=Settings(own_knowledge=True)).go()
    answer = answer_of(run)
    assert (list(answer.labels), answer.ungrounded, answer.support) == (known, bool(known), ())
    assert ("not grounded" in str(answer)) == bool(known)
    assert answer.reason.startswith(NOT_IN_GRAPH)
    grounded = answer_of(dog(QUESTION, two_hops(), settings=Settings(own_knowledge=True)).go())
    assert (str(grounded), grounded.ungrounded) == ("Gentilly", False)


# --- what a person may do to a run


def test_a_remark_by_hand_is_seen_by_later_roles_which_are_asked_again() -> None:
    model = two_hops()
    run = dog(QUESTION, model).go()
    before = asked(model)
    own = Remark("critic", "say where, not what", "In which place was [Denis Villeneuve] born?")
    run.override("critic[hop 1/round 1]", own).go()
    assert asked(model) - before == {
        "linguist": 1
    }  # whose remark is the same as before, so that nothing else changes
    assert run["critic"].origin == "by hand"
    assert run.output("simplifying").debate[1] == own


def test_the_last_remark_by_hand_changes_the_next_hop() -> None:
    model = two_hops(
        relation_filtering=[*TWO_HOPS["dog/relation_filtering"], filtering("number of children")],
        answer_trying=[trying(), trying("Gentilly"), trying("3")],
    )
    run = dog(QUESTION, model).go()
    before = asked(model)
    question = "How many children has [Denis Villeneuve]?"
    run.override("linguist", {"role": "linguist", "words": "", "question": question}).go()
    assert asked(model) - before == {"relation_filtering": 1, "answer_trying": 1}
    assert str(run.answer) == "3"


FILTERED, TRIED = "relation_filtering[hop 1/Arrival]", "answer_trying[hop 1]"
STRANGE = {"name": "x", "direction": "in", "iris": []}


@pytest.mark.parametrize(
    ("step", "value", "problem"),
    [
        ("topic_entity", {"question": QUESTION, "entities": ["Arrival"]}, "is not in the question"),
        ("topic_entity", {"question": MARKED, "entities": []}, "no topic entity"),
        (
            FILTERED,
            {"head": "Arrival", "subquestion": "", "relation": STRANGE},
            "~x is not in the list",
        ),
        (
            FILTERED,
            {"head": "Dune", "subquestion": "", "relation": None},
            "the relation is for 'Dune'",
        ),
        (TRIED, {"sufficient": "yes", "reason": "", "answers": ["Paris"]}, "not in the triples"),
        (TRIED, {"sufficient": "no", "reason": "", "answers": ["Arrival"]}, "with answers"),
        (
            "simplifying",
            {"question": " ", "original": MARKED, "debate": []},
            "the question is empty",
        ),
        ("critic", {"role": "critic", "words": "no", "question": ""}, "the question is empty"),
        ("critic", "no", "Remark"),
    ],
)
def test_an_override_is_checked(step: str, value: Any, problem: str) -> None:
    run = dog(QUESTION, two_hops()).go()
    with pytest.raises(OverrideError, match=problem):
        run.override(step, value)
    assert run.overrides == {}


def test_an_answer_by_hand_ends_the_walk_there() -> None:
    model = two_hops()
    run = dog(QUESTION, model).go()
    run.override("answer_trying[hop 1]", TriedAnswer("yes", "enough", ("Denis Villeneuve",))).go()
    assert (str(run.answer), model.call_count()) == ("Denis Villeneuve", CALLS)
    assert "iteration[hop 2]" not in keys(run)
    assert str(run.remove_override("answer_trying[hop 1]").go().answer) == "Gentilly"


@pytest.mark.parametrize("number", [2, 10])
def test_the_number_of_exemplars_is_a_setting(number: int) -> None:
    model = two_hops(relation_filtering=filtering("director"))
    dog(QUESTION, model, settings=Settings(exemplars=number)).go(until="relation_filtering")
    assert model.requests[-1].messages[0].content.count("\nExample\n") == number
