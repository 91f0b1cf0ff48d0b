"""Lab 2: prompts and validators. Students write the prompt of an agent, and reply as its model."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence

from kgwb.errors import InvalidReplyError
from kgwb.labs.material import REPLIES, QirReply, TripleReply
from kgwb.labs.recorded import answers_of_system, mean_f1
from kgwb.labs.tasks import Lab, compare_choices, open_sample, open_samples
from kgwb.llm import Scripted, model
from kgwb.run import Run
from kgwb.run.prompts import parse_prompt
from kgwb.workbench import Workbench


def prepare_checks() -> None:
    """Open the sample graphs, and replay the recordings of Chatty-KG."""
    open_samples()
    answers_of_system("chatty_kg")


LAB = Lab(2, "Prompts and validators", prepare=prepare_checks)
MUSIC_QUESTION = "Who composed the music for Psycho?"
NOVELS_QUESTION = "Who wrote the novels that films by Andrei Tarkovsky are based on?"
GOLD_ANSWERS = {
    MUSIC_QUESTION: {"Bernard Herrmann"},
    NOVELS_QUESTION: {"Arkady Strugatsky", "Boris Strugatsky", "Stanisław Lem"},
}
"""The labels of the right answers."""
F1_TOLERANCE = 0.005
"""How far a mean F1 may be from the right one, so that two decimals are enough."""


@LAB.task(
    "Write a prompt file for the QIR agent",
    "The file has five header lines between two lines of ---, then [system] and [user]. "
    "CONTRIBUTING.md shows an example.",
    "The only variable is {{question}}, and it belongs below [user].",
    f"Name every field of the reply, and what goes into it: {', '.join(QirReply.model_fields)}.",
    stage="understand",
    is_free=True,
)
def check_prompt_file(text: str) -> str:
    """Return "" if a prompt has one variable, question, and names every field of the reply.

    It must also have a question mark, for unknowns, and the word JSON. Otherwise feedback on the
    first problem is returned. Raises PromptError if the text is not a valid prompt file.
    """
    parsed = parse_prompt("chatty_kg/qir", text)
    if parsed.variables != ("question",):
        return "the prompt must have exactly one variable, question"
    messages = " ".join(message.content for message in parsed.messages)
    for name in (*QirReply.model_fields, *TripleReply.model_fields):
        if name not in messages:
            return (
                f"the prompt does not name the field {name}, "
                "so the model cannot know that the reply must have it"
            )
    if "?" not in messages.replace("{{question}}", ""):
        return "the prompt does not say how an unknown is written"
    if "json" not in messages.casefold():
        return "the prompt does not say in which format to reply"
    return ""


@LAB.task(
    f"Be the model: the reply to '{MUSIC_QUESTION}'",
    "Reply with one JSON object. Its fields are those that your prompt had to name.",
    "One triple is enough: what is known is at one end, and the unknown is at the other.",
    'Write the unknown as in "?who". It is the target, too.',
    stage="understand",
    is_free=True,
)
def check_simple_reply(reply: str) -> str:
    """Return "" if a reply to MUSIC_QUESTION leads to the right answer, else feedback."""
    return _check_reply(MUSIC_QUESTION, reply)


@LAB.task(
    "Which of the four replies are rejected?",
    "A validator sees only the reply. It does not know the graph, or what is true.",
    "The reply must be JSON, have a complete triple, and name at least one entity.",
    "Only one of the four is accepted, and it makes no sense.",
    stage="understand",
)
def check_rejected_replies(numbers: Sequence[int]) -> str:
    """Return "" for the numbers of the REPLIES that the validator rejects, else feedback.

    Numbers count from 1. A reply is rejected if the checks of the QIR agent do not accept it for
    MUSIC_QUESTION.
    """
    rejected = []
    for number, reply in enumerate(REPLIES, 1):
        if not _is_accepted(MUSIC_QUESTION, reply):
            rejected.append(number)
    return compare_choices(
        numbers,
        rejected,
        range(1, len(REPLIES) + 1),
        unknown="there is no reply {}; the replies have the numbers 1 to 4",
        wrong="reply {} is accepted",
        missing="there is another reply that is rejected",
    )


@LAB.task(
    f"Be the model: the reply to '{NOVELS_QUESTION}'",
    "How many steps lead from Tarkovsky to the writer of a novel?",
    "The films, the novels and the writers are unknowns. Each of them needs a name of its own.",
    "Write three triples in a chain: directed by, based on, written by.",
    stage="understand",
    is_free=True,
)
def check_chain_reply(reply: str) -> str:
    """Return "" if a reply to NOVELS_QUESTION leads to the right answer, else feedback."""
    return _check_reply(NOVELS_QUESTION, reply)


@LAB.task(
    "Break the validator",
    "Which replies pass every check, but do not say what the question says?",
    "Name a real entity, but a relation that this question does not ask for.",
    "Turn the question into another one about Psycho that the graph can answer.",
    stage="understand",
    is_free=True,
)
def check_misleading_reply(reply: str) -> str:
    """Return "" if a reply to MUSIC_QUESTION is accepted, but leads to a wrong answer.

    Otherwise return feedback, also if the reply leads to no answer.
    """
    if not _is_accepted(MUSIC_QUESTION, reply):
        return "the validator rejects this reply"
    labels = _answer_labels(_run_with_reply(MUSIC_QUESTION, reply))
    if labels == GOLD_ANSWERS[MUSIC_QUESTION]:
        return "the reply is accepted, but its answer is right; find one with a wrong answer"
    if not labels:
        return "the reply is accepted, but it has no answer; find one with a wrong answer"
    return ""


@LAB.task(
    "Measure: mean F1 of the recorded Chatty-KG",
    "A row has the labels that were answered, row.labels, and the right ones, row.gold_labels. "
    "Which of them are in both?",
    "F1 of one question is 2 · shared / (number answered + number of gold); 1 if both are empty.",
    "Take the mean of the F1 of all recorded questions of both graphs, with two decimals.",
)
def check_mean_f1(f1: float) -> str:
    """Return "" for the mean F1 of Chatty-KG, within F1_TOLERANCE, else whether it is too high.

    It is the mean over its recorded questions, 0 to 1.
    """
    right = mean_f1("chatty_kg")
    if abs(f1 - right) <= F1_TOLERANCE:
        return ""
    return f"this is too {'high' if f1 > right else 'low'}"


@LAB.task(
    "Which agent lost most of the recorded questions?",
    "Open a question that was lost: kgwb.debug(row.run). Which step is the first that is wrong?",
    "`answer.reason` says why there is no answer.",
    "Look at the questions that have no answer at all. What do their reasons have in common?",
)
def check_blamed_agent(agent: str) -> str:
    """Return "" if no other agent of Chatty-KG lost more of the recorded questions, else feedback.

    A question is lost if its F1 is below 1. See ``_blamed_agent`` for the agent that lost it.
    """
    lost_runs = [answer.run for answer in answers_of_system("chatty_kg") if answer.f1 < 1]
    agent = agent.strip().replace(" ", "_")  # the debugger shows names with spaces
    if agent not in {spec.name for spec in lost_runs[0].system.agents}:
        return "Chatty-KG has no agent of this name; write it as the steps do"
    counts = Counter(map(_blamed_agent, lost_runs))
    if counts[agent] < max(counts.values()):
        return "another agent lost more of them"
    return ""


def _blamed_agent(run: Run) -> str:
    """Return the agent that lost the answer of a run.

    It is "qir" if a step found that the question goes beyond triples, else "predicate_selection",
    which chose the queries.
    """
    for step in run.steps:
        if getattr(step.output, "beyond", ()):
            return "qir"
    return "predicate_selection"


def _check_reply(question: str, reply: str) -> str:
    """Return "" if a reply leads to the right answer, else feedback.

    The feedback says that the reply is not JSON, why it is rejected, or what it is answered.
    """
    try:
        json.loads(reply)
    except (ValueError, RecursionError) as exc:
        return f"the reply is not JSON: {exc}"
    try:
        run = _run_with_reply(question, reply)
    except InvalidReplyError as exc:  # its hint is for people who have a model
        _, _, problem = exc.message.rpartition("the last one ")
        return f"the reply is rejected: it {problem}"
    labels = _answer_labels(run)
    if labels == GOLD_ANSWERS[question]:
        return ""
    if labels:
        return f"the reply is accepted, but the answer is wrong: {run.answer}"
    return f"the reply is accepted, but there is no answer: {run.answer}"


def _run_with_reply(question: str, reply: str, *, until: str | None = None) -> Run:
    """Ask Chatty-KG the question. The QIR agent's model gives this reply; others are ``rules``.

    The run stops after the step ``until``. Raises InvalidReplyError if the reply is rejected three
    times.
    """
    scripted = Scripted({"chatty_kg/qir": [reply] * 3})
    workbench = Workbench(open_sample("films"), model("rules"), models={"qir": scripted})
    return workbench.begin(question).go(until)


def _answer_labels(run: Run) -> set[str]:
    """Return the labels of a run's answer; empty without an answer."""
    return set(run.answer.labels) if run.answer else set()


def _is_accepted(question: str, reply: str) -> bool:
    """Return whether the checks of the QIR agent accept a reply at the first attempt."""
    try:
        run = _run_with_reply(question, reply, until="qir")
    except InvalidReplyError:
        return False
    return len(run["qir"].attempts) == 1
