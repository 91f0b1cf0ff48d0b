"""Lab 2: prompts and validators. Students write the prompt of an agent, and reply as its model."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import Any

from kgwb import disk
from kgwb.errors import InvalidReplyError
from kgwb.labs.answers import NEGATION, NamedCount, NumberedChoice, ReplyText
from kgwb.labs.changed_graphs import (
    RIGHT_ANSWERS,
    Triples,
    find_unknowns,
    judge_live,
    judge_triples,
)
from kgwb.labs.material import QirReply, TripleReply
from kgwb.labs.recorded import DATA, add_choice, answer_labels
from kgwb.labs.tasks import Lab, TriedQuestion, is_nearest, open_sample
from kgwb.labs.texts import Problem, say
from kgwb.llm import ChatModel, Scripted
from kgwb.llm import model as open_model
from kgwb.run import Run
from kgwb.run.ask import find_json, schema_of
from kgwb.run.prompts import Prompts, parse_prompt
from kgwb.workbench import Workbench

LAB = Lab(2, "lab2.title")
MUSIC_QUESTION = "Who composed the music for Psycho?"
NOVELS_QUESTION = "Who wrote the novels that films by Andrei Tarkovsky are based on?"
MIN_COPIED_CHARS = 40
"""A shorter line of a prompt may be equal by chance."""
MIN_DESCRIPTION_WORDS = 2
"""Words that say what goes into a field."""
REQUEST = (
    r"\b(?:reply|answer|respond|write|return|output|antworte|schreibe?|gib)\b[^.\n]{0,30}?"
    r"\b(?:FORM)(?:s|e|en)?\b"
)
"""A request for a reply in a form, in an English or a German prompt."""
PHRASE_END = r"[.,;:\n]|\b(?:but|except|(?<!rather )than|besides|sondern|außer|als)\b"
"""What ends a denial: "no text but JSON" asks for JSON."""


def try_prompt(task: str, text: str, model: ChatModel | str) -> list[TriedQuestion]:
    """Ask a model questions with a prompt file for the QIR agent, and return what came of each.

    ``text`` is the text of the file. The questions are those that ``right_answers.toml`` has for the task, each
    alone over the graph films; the other agents use the model ``rules``. Raises PromptError for an invalid
    prompt, and what opening the model raises.
    """
    models = {"qir": open_model(model)}
    tried = []
    for question, labels in DATA["tried_questions"][task].items():
        run = Workbench(open_sample("films"), "rules", models=models).begin(question)
        run.edit_prompt("chatty_kg/qir", text)
        tried.append(judge_live(run, set(labels)))
    return tried


@LAB.task(
    stage="understand",
    is_free=True,
    try_live=partial(try_prompt, "2.1"),
)
def check_prompt_file(text: str) -> Problem:
    """Return "" if a prompt says all that a model must know to reply in the expected form, else feedback.

    It must have one variable, question, and must not be the prompt that comes with kgwb. What it
    lacks is judged by its effect: by the recorded reply to a prompt that lacks the same. If the
    system rejects this reply or answers wrongly, the feedback shows it. No model is asked;
    ``try_prompt`` does that. Raises PromptError if the text is not a valid prompt file.
    """
    parsed = parse_prompt("chatty_kg/qir", text)
    if not parsed.header:
        return "2.1.no-header"
    if parsed.variables != ("question",):
        return "2.1.variables"
    messages = "\n".join(message.content for message in parsed.messages)
    if _is_shipped_prompt(messages):
        return "2.1.shipped"
    for recorded in RECORDED_REPLIES:
        if "lack" not in recorded:
            continue
        lack = _find_lack(recorded, messages)
        question = recorded["question"]
        reply = recorded["reply"].strip()
        problem = lack and _check_reply(question, reply)
        if problem:
            return say(
                "2.1.recorded",
                lack=lack,
                question=question,
                reply=reply,
                problem=problem,
            )
    return ""


def _find_lack(recorded: Mapping[str, Any], messages: str) -> Problem:
    """Return what a prompt lacks that a recorded reply is to the lack of; "" if it has that.

    Where it says something after a NEGATION, it does not say it.
    """
    said = ""
    name = recorded.get("of", "")
    if "needs_description" in recorded:
        texts = re.findall(rf"\b{name}\b(.*)", messages)
        is_lacking = not any(_is_described(name, text) for text in texts)
    elif "asks_for" in recorded:
        request = f"(?i){REQUEST.replace('FORM', recorded['asks_for'])}"
        said = _find_said(request, messages, r"[.\n]")
        is_lacking = bool(said)
    else:
        is_lacking = not _find_said(recorded["needs"], messages, PHRASE_END)
    return say(recorded["lack"], name=name, text=said) if is_lacking else ""


def _find_said(pattern: str, messages: str, ends: str) -> str:
    """Return the first match of a pattern with no NEGATION before it in its sentence, which follows one of ``ends``."""
    for match in re.finditer(pattern, messages):
        said = messages[: match.end()]
        sentence = re.split(ends, said)[-1]
        if not NEGATION.search(sentence):
            return match[0]
    return ""


def _is_shipped_prompt(messages: str) -> bool:
    """Return whether more than half of a prompt's long lines are in kgwb's own prompt, whitespace aside.

    Long is a line of at least MIN_COPIED_CHARS characters. A prompt without long lines is not.
    """
    shipped = " ".join(Prompts().text("chatty_kg/qir").split())
    are_copied = []
    for line in messages.splitlines():
        words = " ".join(line.split())
        if len(words) >= MIN_COPIED_CHARS:
            are_copied.append(words in shipped)
    return sum(are_copied) > len(are_copied) / 2


def _is_described(field: str, text: str) -> bool:
    """Return whether the text after a field's name in a line says what goes into the field.

    At least MIN_DESCRIPTION_WORDS of its words are no fields. For fields whose names say little, its first
    sentence is nearer to a right description of ``right_answers.toml`` than to those of other things.
    """
    fields = (*schema_of(QirReply)["properties"], *TripleReply.model_fields)
    words = [word for word in re.findall(r"[^\W_]\w+", text) if word not in fields]
    if len(words) < MIN_DESCRIPTION_WORDS:
        return False
    known = DATA["descriptions"].get(field)
    if known is None:
        return True
    sentence = re.split(r"(?<=\w)[.;] ", text)[0]
    return is_nearest(sentence, known["right"], known["other"])


def _add_reply_task(question: str) -> None:
    """Add a task to LAB: to write the reply of the QIR agent to a question."""

    @LAB.task(stage="understand", is_free=True)
    def check_right_reply(reply: ReplyText) -> Problem:
        """Return "" if a reply leads to the right answer, and its fields agree, else feedback."""
        return _check_reply(question, reply) or _find_field_problem(question, reply)


_add_reply_task(MUSIC_QUESTION)


add_choice(LAB, NumberedChoice, stage="understand")


_add_reply_task(NOVELS_QUESTION)


@LAB.task(
    stage="understand",
    is_free=True,
    try_live=partial(try_prompt, "2.5"),
)
def check_misleading_reply(reply: ReplyText) -> Problem:
    """Return "" if a reply to MUSIC_QUESTION is accepted, but leads to a wrong answer, else feedback.

    A reply that is rejected gets the reason, and one that leads to the right answer or to none is told so. One
    that is right in task 2.2 counts as leading to the right answer, also where the linking finds more.
    """
    run, problem = _run_with_reply(MUSIC_QUESTION, reply)
    if problem:
        return problem
    if RIGHT_ANSWERS[MUSIC_QUESTION].is_of(run.go()) or not LAB.tasks["2.2"].check(reply):
        return "2.5.right"
    if not answer_labels(run):
        return "2.5.no-answer"
    return ""


@LAB.task(beside="f1 mean about ragonite mittleres mittlere etwa")
def check_mean_f1(f1: float) -> Problem:
    """Return "" for the right mean F1 of ``right_answers.toml``, else the feedback there on another number.

    It says that F1 is from 0 to 1, that the number is the part of answers with F1 1, or that it is another
    number, without the direction.
    """
    for row in DATA["mean_f1"]:
        if row["lowest"] <= f1 <= row["highest"]:
            return str(row["feedback"])
    return "2.6.range"


add_choice(LAB, NamedCount)


def _check_reply(question: str, reply: str) -> Problem:
    """Return "" if a reply of the QIR agent leads to the right answer, else feedback.

    The feedback says why it is not accepted, what is answered, which triple is the wrong way
    round, why the answer is right by chance, or why there is none.
    """
    run, problem = _run_with_reply(question, reply)
    if problem:
        return problem
    judged = judge_triples(run.go())
    if judged is not None:
        return judged
    if answer_labels(run):
        return say("reply.wrong-answer", answer=run.answer)
    beyond = run.output("qir").beyond
    if beyond:
        return say("reply.beyond", parts=", ".join(beyond))
    return Triples(run).find_wrong_one() or say("reply.no-answer", answer=run.answer)


def _find_field_problem(question: str, reply: str) -> Problem:
    """Return "" if the fields of an accepted reply agree with its triples and the question, else feedback.

    The question asks for a list, the unknowns are those of the triples, one of them is the target, each
    name of the question is an entity, and each entity is in the question.
    """
    fields = QirReply.model_validate(find_json(reply).values[0])
    unknowns: set[str] = set()
    for triple in fields.triples:
        unknowns.update(find_unknowns((triple.subject, triple.predicate, triple.object)))
    entities = {entity.strip().casefold() for entity in fields.entities}
    foreign = {entity for entity in entities if entity not in question.casefold()}
    problems: dict[str, set[str]] = {
        "reply.question-type": {str(fields.question_type)} - {"list"},
        "reply.unknowns": unknowns.symmetric_difference(fields.unknowns),
        "reply.target": {fields.target.strip()} - unknowns,
        "reply.entities": set(RIGHT_ANSWERS[question].names) - entities | foreign,
    }
    for key, found in problems.items():
        if found:
            listed = ", ".join(sorted(found))
            return say(key, found=listed)
    return ""


def _run_with_reply(question: str, reply: str) -> tuple[Run, Problem]:
    """Execute Chatty-KG on a question over films up to the QIR agent, whose model always gives this reply.

    Return the run, and "" if the reply is accepted at the first attempt, else why not, in the words of
    the system. The other agents use ``rules``.
    """
    scripted = Scripted({"chatty_kg/qir": [reply] * 3})
    workbench = Workbench(open_sample("films"), "rules", models={"qir": scripted})
    run = workbench.begin(question)
    try:
        run.go("qir")
    except InvalidReplyError as exc:  # its hint is for people who have a model
        _, _, problem = exc.message.rpartition("the last one ")
        return run, say("reply.rejected", problem=problem)
    first, *again = run["qir"].attempts
    if again:
        return run, say("reply.asked-again", problem=first.problems[0].problem)
    return run, ""


RECORDED_REPLIES: list[dict[str, Any]] = disk.read_table("labs/prompt_replies.toml")["replies"]
"""Replies to prompts, written by hand, in the order of their file, which says what they have."""
