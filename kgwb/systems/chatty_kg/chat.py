"""Chat agent (Chatty-KG, section 4): the dialogue around a question, and the words of the answer."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, ClassVar, Literal

import rdflib

from kgwb.build import (
    NOT_IN_GRAPH,
    Answer,
    Check,
    Context,
    Dialogue,
    InvalidReplyError,
    Question,
    Reply,
    Run,
    Turn,
    Value,
    agent,
    ask_model,
    find_named_term,
    looks_english,
    try_to_ask,
)
from kgwb.systems.chatty_kg.qir import determine_kind
from kgwb.systems.chatty_kg.records import Classification, RephrasedQuestion
from kgwb.systems.chatty_kg.settings import ChattySettings

NO_VALID_REPLY = "no valid reply within the attempts"
MAX_REWORDED_VALUES = 5
"""Values of an answer that may be reworded; longer lists read better as lists."""

EXCLUDING_WORDS = frozenset(("else", "besides", "other", "others"))
"""Words of a follow-up question that asks for values which earlier answers do not have."""
PRONOUN_WORD = re.compile(r"\b(he|she|him|his|hers?|it|its|they|them|theirs?)\b(?!')")
NAME_START = re.compile(r"(?<=[\s(])[\"'“«]?[^\W\d_a-z]|\d")
"""A capital letter after the first word, or a digit: the start of a name or a number."""


class TranslationReply(Reply):
    """The question in English."""

    question: str


class RephraserReply(Reply):
    """The standalone question."""

    question: str


class RewordedReply(Reply):
    """The answer as a sentence."""

    sentence: str


class ClassifierLabelReply(Reply):
    """Whether the question can be understood alone."""

    label: Literal["self-contained", "dependent"]
    reason: ClassVar = ""


class ClassifierReply(Reply):
    """The label with what in the question decided it."""

    reason: str
    label: Literal["self-contained", "dependent"]


def _find_empty_question(reply: TranslationReply | RephraserReply) -> str:
    """Return a problem if the question of a reply is blank."""
    return "" if reply.question.strip() else "the question is empty"


NOT_EMPTY_CHECKS: tuple[Check[Any], ...] = (Check("not empty", _find_empty_question),)
"""The checks of a translation or a rephrased question."""


# Before the answer


@agent("context")
def build_context(dialogue: Dialogue, run: Run) -> Context:
    """Keep the first L answers of each earlier turn (Chatty-KG, section 4.1, C_q).

    L is the setting ``answers_in_context``. The step notes how many answers were left out.
    """
    limit = ChattySettings.of_run(run).answers_in_context
    turns = []
    cut = 0
    for turn in dialogue.turns:
        turns.append(replace(turn, answers=turn.answers[:limit]))
        cut += len(turn.answers[limit:])
    if cut:
        run.note(f"{cut} earlier answers left out of the context: at most {limit} a turn")
    return Context(tuple(turns), cut)


@agent("translator", kind="model")
def translate_question(question: Question, run: Run) -> Question:
    """Translate the question to English (Chatty-KG, section 4.1).

    The settings ``question_language`` and ``translate`` say when the translator is asked. Returns
    the translation with the original text, or the question itself if no translator is needed, if it
    leaves the question as it is, or if it gives no valid reply. The step notes the last two.
    """
    if not _needs_translator(question.text, ChattySettings.of_run(run)):
        return question
    reply = try_to_ask(
        "chatty_kg/translator",
        {"question": question.text},
        TranslationReply,
        run,
        checks=NOT_EMPTY_CHECKS,
    )
    if reply is None:
        return question
    if reply.question.strip() == question.text.strip():
        run.note("not translated: the model gave the question back as it was")
        return question
    return Question(reply.question.strip(), original=question.text)


def _needs_translator(text: str, settings: ChattySettings) -> bool:
    """Return whether the translator is asked for a question.

    If ``question_language`` is given, it is for any language but English. Otherwise the setting
    ``translate`` decides: "by_words" if the text does not look English, "model" always, "never" not
    at all.
    """
    language = settings.question_language.casefold()
    if language:
        return language.partition("-")[0] != "en"
    if settings.translate == "by_words":
        return not looks_english(text)
    return settings.translate == "model"


@agent("classifier", kind="model")
def classify_question(question: str, context: Context, run: Run) -> Classification:
    """Classify a question as self-contained or dependent, from its words alone.

    Source: Chatty-KG, section 4.2.1, equation 2. With ``unasked_classification`` no model is asked
    in two cases: a question without earlier turns is self-contained, and one with a pronoun before
    any name is dependent. Without a valid reply a question is taken for self-contained. The reason
    is empty without ``classifies_with_reason``.
    """
    settings = ChattySettings.of_run(run)
    if settings.unasked_classification:
        if not context.turns:
            return Classification("self-contained", "nothing was said before")
        pronoun = find_leading_pronoun(question)
        if pronoun:
            reason = f"no name stands before the pronoun {pronoun!r}"
            return Classification("dependent", reason)
    prompt = "chatty_kg/classifier"
    reply_class: type[ClassifierReply | ClassifierLabelReply] = ClassifierReply
    if not settings.classifies_with_reason:
        prompt = "chatty_kg/classifier_published"
        reply_class = ClassifierLabelReply
    reply = try_to_ask(prompt, {"question": question}, reply_class, run)
    if reply is None:
        return Classification("self-contained", NO_VALID_REPLY)
    return Classification(reply.label, reply.reason)


def find_leading_pronoun(question: str) -> str:
    """Return the first pronoun of a question; "" if there is none or a name stands before it.

    Only pronouns of the third person in lower case count, and not a contraction ("it's"). A digit
    counts as a name, and so does a capital letter that does not begin the question.
    """
    pronoun = PRONOUN_WORD.search(question)
    if not pronoun or NAME_START.search(question[: pronoun.start()]):
        return ""
    return pronoun.group()


@agent("rephraser", kind="model")
def rephrase_question(question: str, context: Context, run: Run) -> RephrasedQuestion:
    """Rephrase a question so that it can be understood without the dialogue.

    The setting ``context_content`` says what the model is shown of each earlier turn, and so which
    prompt is used. The result has the rephrased question, with single spaces, and the given one.
    Without a valid reply the question stays as it is. Source: Chatty-KG, section 4.2.2, equation 3.
    """
    content = ChattySettings.of_run(run).context_content
    prompt = "chatty_kg/rephraser"
    if content != "standalone_and_entities":
        prompt = "chatty_kg/rephraser_published"
    dialogue = [describe_turn(turn, content) for turn in context.turns]
    variables = {"question": question, "dialogue": dialogue}
    reply = try_to_ask(prompt, variables, RephraserReply, run, checks=NOT_EMPTY_CHECKS)
    rephrased = question if reply is None else " ".join(reply.question.split())
    return RephrasedQuestion(rephrased, question)


def describe_turn(turn: Turn, content: str) -> dict[str, Any]:
    """Return what the rephraser is shown of an earlier turn, as data for the prompt.

    ``content`` is the value of the setting ``context_content``. "questions_and_answers" gives both
    as they were, "questions_and_rephrasings" the question with its standalone form, and any other
    value the standalone question with its answers and entities. The question takes the place of a
    missing standalone form.
    """
    answers = list(turn.answers)
    if content == "questions_and_answers":
        return {"question": turn.question, "answers": answers}
    standalone = turn.standalone or turn.question
    if content == "questions_and_rephrasings":
        return {"question": turn.question, "rephrased": standalone}
    return {"question": standalone, "answers": answers, "about": list(turn.entities)}


# After the answer


def asks_for_others(question: str, context: Context, run: Run) -> bool:
    """Return whether a follow-up question asks for values that earlier answers do not have.

    It does if it has one of EXCLUDING_WORDS, as "What else has he starred in?" in Figure 1 of the
    paper. Always False without earlier turns, and with ``leaves_out_mentioned`` off.
    """
    if not context.turns or not ChattySettings.of_run(run).leaves_out_mentioned:
        return False
    return has_excluding_word(question)


def has_excluding_word(question: str) -> bool:
    """Return whether one of EXCLUDING_WORDS is a word of a question: "Who else?"."""
    words = re.findall(r"\w+", question.casefold())
    return not EXCLUDING_WORDS.isdisjoint(words)


@agent("what_else")
def answer_what_else(answer: Answer, context: Context, run: Run) -> Answer:
    """Leave out values that were in earlier answers or in the support of these.

    These are the vertices of earlier turns. The step notes the values that were left out. If no
    value remains, the answer has a reason that says so. The order of the others stays.
    """
    mentioned: set[object] = set()
    for turn in context.turns:
        mentioned.update(turn.vertices)
    new_values = []
    left_out = []
    for value in answer.values:
        if value.term in mentioned:
            left_out.append(value.label)
        else:
            new_values.append(value)
    if left_out:
        run.note(f"left out, as earlier answers mentioned them: {', '.join(left_out)}")
        if not new_values:
            reason = f"{NOT_IN_GRAPH}: no value besides those of earlier answers"
            return replace(answer, values=(), reason=reason)
    return replace(answer, values=tuple(new_values))


def can_be_reworded(answer: Answer, run: Run) -> bool:
    """Return whether an answer has 1 to MAX_REWORDED_VALUES values, and ``reword_answer`` is on."""
    is_short = 0 < len(answer.values) <= MAX_REWORDED_VALUES
    return is_short and ChattySettings.of_run(run).reword_answer


@agent("answer_writer", kind="model")
def write_answer(answer: Answer, question: str, run: Run) -> Answer:
    """Write the answer as a sentence; with ``checks_sentence`` one that has the label of every value.

    The model is asked until a sentence has all labels, but for letter case. Source: Chatty-KG,
    section 4.1, equation 1 (zero-shot). The sentence becomes the text of the answer; its values stay
    as they are. Without a valid sentence the answer has none, and the step has a note.
    """

    def find_missing_labels(reply: RewordedReply) -> str:
        """Return a problem that names the labels which the sentence lacks, regardless of letter case; "" if none."""
        sentence = reply.sentence.casefold()
        missing = [label for label in answer.labels if label.casefold() not in sentence]
        if not missing:
            return ""
        return f"the sentence does not hold {', '.join(missing)}"

    variables = {"question": question, "answer": list(answer.labels)}
    checks = []
    if ChattySettings.of_run(run).checks_sentence:
        checks.append(Check("holds every value", find_missing_labels))
    try:
        reply = ask_model("chatty_kg/answer_writer", variables, RewordedReply, run, checks=checks)
    except InvalidReplyError as error:
        run.note(error.message)
        return answer
    sentence = reply.sentence.strip()
    return replace(answer, text=sentence)


class ModelAloneReply(Reply):
    """The answers, best first; an empty list if none is known."""

    answers: list[str]


@agent("model_alone", kind="model")
def ask_model_alone(question: str, context: Context, run: Run) -> Answer:
    """Ask the model alone, with the dialogue as it was spoken; its answer is not grounded.

    A name that is the label of exactly one vertex is compared as that vertex, as the gold answers
    are vertices; any other name is a literal. Of a question for yes or no, the first answer is true
    if it is "yes" or "true", else false. The answer has no values if the model knows none or gives
    no valid reply. Each name is a value once, in the model's order. The graph is asked only for
    labels.
    """
    dialogue = [describe_turn(turn, "questions_and_answers") for turn in context.turns]
    variables = {"question": question, "dialogue": dialogue}
    reply = try_to_ask("chatty_kg/model_alone", variables, ModelAloneReply, run)
    names: dict[str, None] = {}
    if reply:
        for answer in reply.answers:
            names[answer.strip()] = None
    names.pop("", None)
    kind = determine_kind(question, None) or "list"
    values = []
    for name in names:
        if kind != "boolean":
            values.append(Value(find_named_term(name, run), name))
        elif not values:
            truth = name.casefold() in ("yes", "true")
            values.append(Value(rdflib.Literal(truth), str(truth).lower()))
    reason = ""
    if not values:
        reason = "the model knows no answer"
    return Answer(kind, tuple(values), reason=reason, ungrounded=bool(values))
