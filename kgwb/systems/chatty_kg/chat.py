"""Chat agent, classifier and rephraser: what is asked in a dialogue, and how it is answered (4.1, 4.2)."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, Literal

from kgwb.flow import NOT_IN_GRAPH, Answer, Context, Dialogue, Question
from kgwb.run import Run, agent
from kgwb.run.ask import Check, Reply, ask, schema_config
from kgwb.systems.chatty_kg.records import Classification, RephrasedQuestion
from kgwb.systems.chatty_kg.settings import ChattySettings

MAX_REWORDED_VALUES = 5
"""Values of an answer that may be reworded; longer lists read better as lists."""

EXCLUDING_WORDS = frozenset(("else", "besides", "other", "others"))
ENGLISH_WORDS = frozenset(
    "the of is was were are did does do has have who what when where which how whose whom in and by for with "
    "that he she it his her its they to on from an name list give show tell".split()
)
FOREIGN_WORDS = frozenset(
    "der das den dem ein eine ist war wer wie wo welche welcher welches wurde hat haben und von im zum "
    "el la los las es fue quien quién que qué cual cuál cuando cuándo donde dónde en del por una "
    "le les un une est qui quel quelle quand où du des dans par il lo gli chi che quale dove di "
    "o os as quem quando onde em da het een wie wat wanneer waar welke van zijn".split()
)


class TranslationReply(Reply):
    """The question in English."""

    model_config = schema_config("TranslationReply", "The question in English.")

    question: str


class RephraserReply(Reply):
    """The standalone question."""

    model_config = schema_config("RephraserReply", "The standalone question.")

    question: str


NOT_EMPTY_CHECKS: tuple[Check[Any], ...] = (
    Check("not empty", lambda reply: "" if reply.question.strip() else "the question is empty"),
)


class RewordedReply(Reply):
    """The answer as a sentence."""

    model_config = schema_config("RewordedReply", "The answer as a sentence.")

    sentence: str


@agent("context")
def build_context(dialogue: Dialogue, run: Run) -> Context:
    """Every earlier turn with its answers, cut to L answers each (C_q in section 4.1)."""
    most = ChattySettings.of_run(run).answers_in_context
    turns = tuple(replace(turn, answers=turn.answers[:most]) for turn in dialogue.turns)
    cut = sum(len(turn.answers) for turn in dialogue.turns) - sum(
        len(turn.answers) for turn in turns
    )
    if cut:
        run.note(f"{cut} earlier answers left out of the context: at most {most} a turn")
    return Context(turns, cut)


@agent("translator", kind="model")
def translate_question(question: Question, run: Run) -> Question:
    """The question in English; one that looks English already costs no model call."""
    words = re.findall(r"[^\W\d_]+", question.text.casefold())
    english, foreign = (
        sum(word in known for word in words) for known in (ENGLISH_WORDS, FOREIGN_WORDS)
    )
    looks_english = english >= foreign if english or foreign else question.text.isascii()
    if looks_english or not ChattySettings.of_run(run).translate:
        return question
    variables = {"question": question.text}
    reply = ask("chatty_kg/translator", variables, TranslationReply, run, checks=NOT_EMPTY_CHECKS)
    return Question(reply.question.strip(), original=question.text)


@agent("answer_writer", kind="model")
def reword_answer(answer: Answer, question: str, run: Run) -> Answer:
    """A short answer as a sentence, zero-shot (equation 1); every value must still be in it."""

    def complete(reply: RewordedReply) -> str:
        lost = [
            label for label in answer.labels if label.casefold() not in reply.sentence.casefold()
        ]
        return f"the sentence does not hold {', '.join(lost)}" if lost else ""

    variables = {"question": question, "answer": list(answer.labels)}
    checks = (Check("holds every value", complete),)
    reply = ask("chatty_kg/answer_writer", variables, RewordedReply, run, checks=checks)
    return replace(answer, text=reply.sentence.strip())


def can_be_reworded(answer: Answer, run: Run) -> bool:
    """Whether the answer shall be reworded: asked for, and short."""
    return (
        ChattySettings.of_run(run).reword_answer and 0 < len(answer.values) <= MAX_REWORDED_VALUES
    )


def asks_for_others(question: str, context: Context, run: Run) -> bool:
    """Whether a follow-up asks for what is new, as the dialogue of the paper's Figure 1 does."""
    words = re.findall(r"\w+", question.casefold())
    return run.settings.is_fast and bool(context.turns) and not EXCLUDING_WORDS.isdisjoint(words)


@agent("what_else")
def leave_out_mentioned(answer: Answer, context: Context, run: Run) -> Answer:
    """The answer without the vertices that earlier answers already stood on."""
    mentioned = {vertex for turn in context.turns for vertex in turn.vertices}
    left = tuple(value for value in answer.values if value.term not in mentioned)
    if len(left) < len(answer.values):
        dropped = (value.label for value in answer.values if value.term in mentioned)
        run.note(f"left out as already talked about: {', '.join(dropped)}")
    if not left and answer.values:
        return replace(
            answer, values=(), reason=f"{NOT_IN_GRAPH}: nothing else than what was said already"
        )
    return replace(answer, values=left)


class ClassifierReply(Reply):
    """The label with what in the question decided it."""

    model_config = schema_config(
        "ClassifierReply", "The label with what in the question decided it."
    )

    reason: str
    label: Literal["self-contained", "dependent"]


PRONOUN_WORD = re.compile(r"\b(he|she|him|his|hers?|it|its|they|them|theirs?)\b(?!')")
NAME_START = re.compile(r"(?<=[\s(])[\"'“«]?[^\W\d_a-z]|\d")
"""A capital after the first word, or a digit."""


@agent("classifier", kind="model")
def classify_question(question: str, context: Context, run: Run) -> Classification:
    """Self-contained or dependent, from the question alone.

    ``fast`` does not ask a model where there is no doubt: nothing was said before, or a pronoun stands
    before any name.
    """
    if run.settings.is_fast and not context.turns:
        return Classification("self-contained", "nothing was said before")
    pronoun, name = PRONOUN_WORD.search(question), NAME_START.search(question)
    if run.settings.is_fast and pronoun and not (name and name.start() < pronoun.start()):
        return Classification(
            "dependent", f"nothing before {pronoun.group()!r} says what it stands for"
        )
    reply = ask("chatty_kg/classifier", {"question": question}, ClassifierReply, run)
    return Classification(reply.label, reply.reason)


@agent("rephraser", kind="model")
def rephrase_question(question: str, context: Context, run: Run) -> RephrasedQuestion:
    """The question with pronouns and omissions resolved from the dialogue, and nothing added."""
    dialogue = [
        {
            "question": t.standalone or t.question,
            "answers": list(t.answers),
            "about": list(t.entities),
        }
        for t in context.turns
    ]
    variables = {"question": question, "dialogue": dialogue}
    reply = ask("chatty_kg/rephraser", variables, RephraserReply, run, checks=NOT_EMPTY_CHECKS)
    return RephrasedQuestion(" ".join(reply.question.split()), question)
