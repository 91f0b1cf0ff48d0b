"""Lab 2: prompts and validators. The student writes the prompt of an agent, and is its model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from statistics import fmean

from kgwb.errors import InvalidReplyError
from kgwb.labs.recorded import answers_of_system
from kgwb.labs.tasks import Lab, open_sample
from kgwb.llm import Scripted, model
from kgwb.run import Run
from kgwb.run.prompts import parse_prompt
from kgwb.systems.chatty_kg.qir import QirReply, TripleReply
from kgwb.workbench import Workbench

LAB = Lab(2, "Prompts and validators")
MUSIC_QUESTION, NOVELS_QUESTION = (
    "Who composed the music for Psycho?",
    "Who wrote the novels that films by Andrei Tarkovsky are based on?",
)
GOLD_ANSWERS = {
    MUSIC_QUESTION: {"Bernard Herrmann"},
    NOVELS_QUESTION: {"Arkady Strugatsky", "Boris Strugatsky", "Stanisław Lem"},
}
OTHER_FIELDS = {"question_type": "list", "beyond": []}
REPLIES = tuple(
    json.dumps(
        {
            "entities": names,
            "unknowns": ["?who"],
            "triples": triples,
            "target": "?who",
            **OTHER_FIELDS,
        }
    )
    if names is not None
    else "Sure! The composer of Psycho is Bernard Herrmann."
    for names, triples in (
        (["Psycho"], []),
        (["Psycho"], [{"subject": "Psycho", "predicate": "shoe size", "object": "?who"}]),
        (None, None),
        ([], [{"subject": "?film", "predicate": "composer", "object": "?who"}]),
    )
)
"""Replies of the third task, numbered from 1: which are sent back?"""
F1_TOLERANCE = 0.005


@LAB.task(
    "Write a prompt file for the QIR agent",
    "Five header lines between two lines of ---, then [system] and [user]; CONTRIBUTING.md shows the form.",
    "The one variable is {{question}}, and it belongs under [user].",
    "Name every field of the reply, with what goes into it: "
    + ", ".join(QirReply.model_fields)
    + ".",
)
def check_prompt_file(text: str) -> str:
    parsed = parse_prompt("chatty_kg/qir", text)
    written = " ".join(message.content for message in parsed.messages)
    if parsed.variables != ("question",):
        return "this agent fills in one variable, question"
    fields = [*QirReply.model_fields, *TripleReply.model_fields]
    if missing := [name for name in fields if name not in written]:
        return (
            f"it does not ask for {missing[0]}: the model cannot know that the reply must have it"
        )
    if "?" not in written.replace("{{question}}", ""):
        return "it does not say how an unknown is written"
    return "" if "json" in written.casefold() else "it does not say in which form to reply"


@LAB.task(
    "Be the model: the reply to '" + MUSIC_QUESTION + "'",
    "Reply with one JSON object; its fields are those that your prompt had to name.",
    "One triple is enough: what is known stands at one end, the unknown at the other.",
    'The unknown is written as in "?who", and is the target too.',
)
def check_simple_reply(reply: str) -> str:
    return _check_reply(MUSIC_QUESTION, reply)


@LAB.task(
    "Which of the four replies are sent back?",
    "A validator sees the reply alone. It does not know the graph, and not what is true.",
    "It must be JSON, have a whole triple, and name at least one entity.",
    "Only one of the four passes, and it is not a sensible one.",
)
def check_rejected_replies(numbers: Sequence[int]) -> str:
    right = {
        number for number, reply in enumerate(REPLIES, 1) if not _is_accepted(MUSIC_QUESTION, reply)
    }
    if extra := sorted(set(numbers) - right):
        return f"reply {extra[0]} is {'not sent back' if extra[0] in range(1, 5) else 'none of the four'}"
    return "there is another one that is sent back" if set(numbers) != right else ""


@LAB.task(
    "Be the model: the reply to '" + NOVELS_QUESTION + "'",
    "How many steps lead from Tarkovsky to whoever wrote a novel?",
    "Film, novel and writer: the films and the novels are unknowns, too, each with a name of its own.",
    "Three triples in a chain: directed by, based on, written by.",
)
def check_chain_reply(reply: str) -> str:
    return _check_reply(NOVELS_QUESTION, reply)


@LAB.task(
    "Break the validator",
    "Which replies pass every check, and still say something else than the question?",
    "Name a real entity, and a relation that this question does not ask for.",
    "Turn the question into another one about Psycho that the graph can answer.",
)
def check_misleading_reply(reply: str) -> str:
    if not _is_accepted(MUSIC_QUESTION, reply):
        return "the validator sends this one back"
    run = _run_with_reply(MUSIC_QUESTION, reply)
    labels = set(run.answer.labels) if run.answer else set()
    if labels == GOLD_ANSWERS[MUSIC_QUESTION]:
        return "it passes, and its answer is right: find one whose answer is wrong"
    return (
        "" if labels else "it passes, and nothing is answered: find one that answers, but wrongly"
    )


@LAB.task(
    "Measure: mean F1 of the recorded Chatty-KG",
    "A row has the labels that were answered, row.labels, and the gold ones, row.gold. Which do they share?",
    "F1 of one question: 2 · shared / (number answered + number of gold). Both empty is 1.",
    "The mean of the F1 of all recorded questions of both graphs, to two digits.",
)
def check_mean_f1(f1: float) -> str:
    right = fmean(each.f1 for each in answers_of_system("chatty_kg"))
    if abs(f1 - right) <= F1_TOLERANCE:
        return ""
    return f"that is too {'high' if f1 > right else 'low'}"


@LAB.task(
    "Which agent lost most of the recorded questions?",
    "Open a lost one: kgwb.debug(kgwb.recording(...)). Which step is the first that is wrong?",
    "`answer.reason` says why nothing was answered.",
    "Of the questions that were not answered at all: what do their reasons have in common?",
)
def check_blamed_agent(agent: str) -> str:
    lost = [each for each in answers_of_system("chatty_kg") if each.f1 < 1]
    agent = agent.strip().replace(" ", "_")  # the debugger shows names with spaces
    if agent not in {spec.name for spec in lost[0].run.system.agents}:
        return "Chatty-KG has no agent of that name; write it as the steps do"
    first = [  # the agent that decided not to answer, else the one that chose the queries
        "qir"
        if any(getattr(step.output, "beyond", ()) for step in each.run.steps)
        else "predicate_selection"
        for each in lost
    ]
    most = max(map(first.count, first))
    return "" if first.count(agent) == most else "another agent lost more of them"


def _check_reply(question: str, reply: str) -> str:
    try:
        json.loads(reply)
    except (ValueError, RecursionError) as exc:
        return f"it is not JSON: {exc}"
    try:
        run = _run_with_reply(question, reply)
    except InvalidReplyError as exc:  # its hint is for those who have a model
        return f"it is sent back, for it {exc.message.rpartition('the last one ')[2]}"
    labels = set(run.answer.labels) if run.answer else set()
    if labels == GOLD_ANSWERS[question]:
        return ""
    return f"it passes, and leads to {'' if labels else 'nothing: '}{run.answer}"


def _run_with_reply(question: str, reply: str, until: str | None = None) -> Run:
    """The question with this reply for the QIR agent, and ``rules`` for the others."""
    written = Scripted({"chatty_kg/qir": [reply] * 3})
    return (
        Workbench(open_sample("films"), model("rules"), models={"qir": written})
        .begin(question)
        .go(until)
    )


def _is_accepted(question: str, reply: str) -> bool:
    try:
        return len(_run_with_reply(question, reply, until="qir")["qir"].attempts) == 1
    except InvalidReplyError:
        return False
