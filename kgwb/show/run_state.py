"""The state of a run, of its steps and of its answer, with the labels and icons that people see.

The state of an answer (right, wrong, in doubt, given, ...) is decided here for everything that
shows it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import NamedTuple

from rdflib import Literal

from kgwb.errors import KgwbError
from kgwb.kg.base import MAX_SUPPORTED_ROWS
from kgwb.records import frozen
from kgwb.run import Run
from kgwb.run.answers import NO_SUPPORT, NOT_IN_GRAPH, Answer, Value, was_graph_asked
from kgwb.run.doubts import find_cut_result
from kgwb.run.gold import RightAnswer
from kgwb.run.steps import Step, Totals, used_calls
from kgwb.terms import format_term, format_triple
from kgwb.text import (
    first_items,
    format_seconds,
    list_first,
    pluralize,
    shorten,
    shorten_at_word,
    single_line,
)

RIGHT = "right"
WRONG = "wrong"
UNANSWERED = "unanswered"
GAVE_UP = "gave up"
ERROR = "error"
IN_DOUBT = "in doubt"
OWN_KNOWLEDGE = "own knowledge"
GIVEN = "given"
ANSWER_STATE_ICONS = {
    RIGHT: "ok",
    WRONG: "bad",
    UNANSWERED: "none",
    GAVE_UP: "none",
    ERROR: "bad",
    IN_DOUBT: "doubt",
    OWN_KNOWLEDGE: "doubt",
    GIVEN: "given",
}
"""The states of an answer, each with the icon that shows it. The icon decides the colour.

Only what gold says is right is green. What is merely answered is neutral.
"""
ANSWER_STATE_LABELS = {
    RIGHT: "Right",
    WRONG: "Wrong",
    UNANSWERED: "Not in this graph",
    GAVE_UP: "Not answered",
    ERROR: "Failed",
    IN_DOUBT: "In doubt",
    OWN_KNOWLEDGE: "Not grounded",
    GIVEN: "Answered",
}
"""The words for each state of an answer."""


class AnswerState(NamedTuple):
    """The state of an answer, as it is shown everywhere."""

    name: str
    """One of ANSWER_STATE_ICONS."""
    label: str
    doubt: str = ""
    """Which values do not fit the question, or are not proved; empty if all is well."""

    @property
    def icon(self) -> str:
        """The icon, whose CSS class is the colour of the state."""
        return ANSWER_STATE_ICONS[self.name]

    def __str__(self) -> str:
        """Return the label, and what is in doubt: "In doubt: Chester is a thing where ..."."""
        if self.doubt:
            return f"{self.label}: {self.doubt}"
        return self.label


def choose_answer_state(
    *,
    is_right: bool | None,
    has_values: bool,
    reason: str,
    doubt: str,
    is_ungrounded: bool,
) -> str:
    """Return the name of an answer's state, one of ANSWER_STATE_ICONS.

    The first of these that applies: RIGHT if ``is_right``; without values, UNANSWERED if by its
    ``reason`` the graph holds none, else GAVE_UP; WRONG if ``is_right`` is False; OWN_KNOWLEDGE if it
    is ungrounded; IN_DOUBT if there is a doubt; GIVEN. ``is_right`` is what gold says; None if it is
    not known.
    """
    if is_right:
        return RIGHT
    if not has_values:
        return UNANSWERED if was_graph_asked(reason) else GAVE_UP
    if is_right is not None:
        return WRONG
    if is_ungrounded:
        return OWN_KNOWLEDGE
    if doubt:
        return IN_DOUBT
    return GIVEN


def judge_answer(
    question: str, answer: Answer, right_answer: RightAnswer | None = None
) -> AnswerState:
    """Return the state of an answer to a question, with its label and its doubts.

    ``right_answer`` is what is known to be right. A value that is not of the type that the question
    word asks for is a doubt; doubts are kept in the state IN_DOUBT only.
    """
    is_right = None
    if right_answer is not None:
        is_right = right_answer.is_right(answer)
    mismatch = describe_type_mismatch(question, answer)
    doubt = "; ".join(filter(None, [mismatch, answer.doubt]))
    name = choose_answer_state(
        is_right=is_right,
        has_values=bool(answer) or is_text_alone(answer),
        reason=answer.reason,
        doubt=doubt,
        is_ungrounded=answer.ungrounded,
    )
    if name != IN_DOUBT:
        doubt = ""
    return AnswerState(name, ANSWER_STATE_LABELS[name], doubt)


def is_text_alone(answer: Answer) -> bool:
    """Return whether an answer is only a text, as another program gives it: no values, no reason."""
    if answer or answer.reason or answer.ungrounded:
        return False
    return bool(answer.text)


# Whether an answer is what the question asks for

EXPECTED_VALUES = {
    "where": ("a place", {"a thing", "a text"}),
    "when": ("a time", {"a date", "a time of day", "a duration", "a number", "a text"}),
    "who": ("somebody", {"a thing", "a text"}),
    "how many": ("a number", {"a number", "a duration"}),
}
"""What each question word asks for, and the types of values that can be it."""
QUESTION_WORD_PATTERN = re.compile(r"\b(how many|how|where|when|whom|whose|who|what|which|why)\b")
CLAUSE_START = re.compile(r"[,;:.!?()\u2013\u2014]")
"""Signs that separate the clauses of a question."""
LEAD_IN_WORDS = frozenset(
    "about after and at before but by can could do during exactly for from i in know me now of ok on or "
    "please say since so tell than then through till to until us we with wonder would you".split()
)
"""Words that may stand before a question word that asks. After any other word, it is relative."""
MAX_VALUE_CHARS = 60
MAX_MISMATCHES = 3


def describe_type_mismatch(question: str, answer: Answer) -> str:
    """Return which values of an answer are not of the type that was asked for; "" if none.

    The text is that of ``describe_unfitting_values``. "" also for tables and yes or no.
    """
    if answer.kind == "boolean" or answer.columns:
        return ""
    typed_labels = []
    for value in answer.values:
        typed_labels.append((value.label, _value_type(value)))
    return describe_unfitting_values(question, typed_labels)


def describe_unfitting_values(question: str, typed_labels: Iterable[tuple[str, str]]) -> str:
    """Return a text such as "1967-10-03 is a date where a place was asked"; "" if all values fit.

    ``typed_labels`` has the label and the type of each value. What is asked for is told by the
    question word that asks (``_find_expected_values``); without one the text is "". Labels
    are cut at MAX_VALUE_CHARS. The first MAX_MISMATCHES values are named, and how many more there are.
    """
    expected, fitting_types = _find_expected_values(question)
    if not expected:
        return ""
    unfitting = []
    for full_label, value_type in typed_labels:
        if value_type not in fitting_types:
            label = shorten(full_label, MAX_VALUE_CHARS)
            unfitting.append(f"{label} is {value_type}")
    if not unfitting:
        return ""
    text = "; ".join(first_items(unfitting, MAX_MISMATCHES))
    return f"{text} where {expected} was asked"


def _find_expected_values(question: str) -> tuple[str, set[str]]:
    """Return what a question asks for, such as "a place", and the types of values that can be it.

    A question word asks at the beginning of a clause, also after LEAD_IN_WORDS: "in Arrival, who
    ...", "tell me where ...". Elsewhere it is relative: "the city where ...". Of several that ask,
    each may be meant: "When he was king, who ...". Both are empty if none asks, or if one
    that asks is not among EXPECTED_VALUES, such as "which".
    """
    expected = []
    fitting_types: set[str] = set()
    for clause in CLAUSE_START.split(question.casefold()):
        question_word = QUESTION_WORD_PATTERN.search(clause)
        if question_word is None:
            continue
        words_before = clause[: question_word.start()].split()
        if not LEAD_IN_WORDS.issuperset(words_before):
            continue
        if question_word[1] not in EXPECTED_VALUES:
            return "", set()
        name, types = EXPECTED_VALUES[question_word[1]]
        expected.append(name)
        fitting_types |= types
    distinct_names = dict.fromkeys(expected)
    return " or ".join(distinct_names), fitting_types


def _value_type(value: Value) -> str:
    """Return "a thing", "a date", "a number", "a text" and so on for a value.

    A thing is an IRI or blank node. The datatype of a literal decides, and else its text
    (``literal_type``).
    """
    if not isinstance(value.term, Literal):
        return "a thing"
    datatype_iri = str(value.term.datatype or "").casefold()
    _, _, datatype = datatype_iri.rpartition("#")
    if datatype == "time":
        return "a time of day"
    if datatype == "boolean":
        return "a truth value"
    if datatype.endswith("duration"):
        return "a duration"
    is_date_type = "date" in datatype or datatype.startswith("g")  # xsd:gYear, xsd:gMonthDay, ...
    if is_date_type:
        return "a date"
    return literal_type(str(value.term))


def literal_type(text: str) -> str:
    """Return "a date", "a number" or "a text" for the text of a literal.

    It is a date if it is like "1967-10" or "1967-10-03". A number has digits, single points, commas
    or spaces between them, and perhaps a sign and an exponent. "1967" is a number: it may be a year
    or a count.
    """
    if re.fullmatch(r"-?\d{4}(-\d\d){1,2}", text):
        return "a date"
    if re.fullmatch(r"[-+]?[.,]?\d+([.,\s]\d+)*[.,]?([eE][-+]?\d+)?", text):
        return "a number"
    return "a text"


STEP_STATES = {
    "failed": ("bad", "failed"),
    "stale": ("stale", "stale"),
    "waiting": ("wait", "waits for you"),
    "running": ("wait", "running"),
    "not run": ("off", "not run"),
    "not needed": ("off", "not needed"),
    "ahead": ("off", "ahead"),
    "unfinished": ("wait", "in progress"),
    "done": ("done", "done"),
}
"""The icon and the label of each state of a step."""
MAX_ANSWER_CHARS = 1_000
"""Characters of an answer in the head of a run; the whole answer is in its step."""
MIN_CAPPED_TRIPLES = 30
"""Systems keep at most so many supporting triples of a value, or up to twice as many."""
RUN_STATUS_LABELS = {
    "new": "Not run yet",
    "running": "Running",
    "paused": "Stopped on the way",
    "cancelled": "Cancelled",
    "failed": "Failed",
}
"""The label of a run without an answer, by its status."""


@frozen
class RunState:
    """A run as it is shown: its steps, stale ones too, and the task that is being executed on it."""

    run: Run
    steps: Mapping[str, Step]
    """By key. Steps that an edit made stale are among them."""
    states: Mapping[str, str] = field(default_factory=dict)
    """The states of steps that do not follow from the steps themselves, by key; see STEP_STATES."""
    current_task: str = ""
    """The name of the task that is being executed; "" for none."""
    failure: KgwbError | None = None
    previous_answer: Answer | None = None
    """The answer before the latest edit, or before the latest edit was undone."""
    answer: Answer | None = None
    status: str = "done"
    totals: Totals = field(default_factory=Totals)

    @classmethod
    def of(cls, run: Run) -> RunState:
        """Return the state of a run outside of a session: no step is stale, no task is executed."""
        return cls(
            run,
            run.steps_by_key,
            failure=run.error,
            answer=run.answer,
            status=run.status,
            totals=run.totals,
        )

    @property
    def has_stale_steps(self) -> bool:
        return "stale" in self.states.values()

    @property
    def has_ended(self) -> bool:
        """Whether the run has come to its end, and no edit has made a step stale since."""
        return self.status == "done" and not self.has_stale_steps

    def step_state(self, key: str) -> str:
        """Return the state of a step, one of STEP_STATES.

        ``key`` may also be the name of an agent that has no step. Without a step it is "not needed"
        once the run has ended, else "not run". A state in ``states``, which a session sets, comes
        first; else the step is "done", "failed" or "unfinished".
        """
        step = self.steps.get(key)
        if step is None:
            if self.has_ended:
                return "not needed"
            return "not run"
        if key in self.states:
            return self.states[key]
        if step.done:
            return "done"
        if step.error:
            return "failed"
        return "unfinished"


def displayed_agent_kind(run: Run, agent: str) -> str:
    """Return the kind of an agent; "person" if a person answers its prompts."""
    kind = run.system.agent_kind(agent)
    if kind == "model" and run.model_name(agent) == "human":
        return "person"
    return kind


def subject_text(step: Step) -> str:
    """Return the subject of a step for people: without the brackets and slashes of a triple."""
    subject = single_line(step.subject)
    return subject.replace("⟨", "").replace("⟩", "").replace("/", " · ")


def setup_text(run: Run) -> str:
    """Return system, models, profile and muted triples: "chatty_kg · rules · fast · without ...".

    Each model is named once; a replay has "recorded replies" in their place. A pipeline with clients
    of its own has the models that it has asked. A run that can only be read has the names of its
    recorded models, no profile, and the reason at the end.
    """
    names = _usable_models(run) or _asked_models(run)
    if run.read_only:
        names = list(run.record.models.values())
    if not names and not run.models:
        names = ["recorded replies"]
    models = ", ".join(dict.fromkeys(names))
    parts = [run.system.name]
    if models:
        parts.append(single_line(models))
    if not run.read_only:
        parts.append(run.settings.profile)
    if run.kg.muted:
        parts.append(f"without {_muted_text(run)}")
    if run.read_only:
        parts.append(f"can only be read: {single_line(run.read_only)}")
    return " · ".join(parts)


def _usable_models(run: Run) -> list[str]:
    """Return the names of a run's models, without ``rules`` if the system has no rules for it."""
    names = [model.name for model in run.models.values()]
    return [name for name in names if name != "rules" or run.system.rules]


def _asked_models(run: Run) -> list[str]:
    """Return the names of the models that a run with models has asked, without their addresses."""
    if not run.models:
        return []
    names = []
    for call in run.calls.values():
        if call.kind == "model":
            name, _, _ = str(call.request["model"]).partition("@http")
            names.append(name)
    return names


def _muted_text(run: Run) -> str:
    """Return the muted triples of a run by their display names, in one line with "; " between."""
    names = run.display_names()
    triples = [format_triple(triple, names) for triple in run.kg.muted]
    return "; ".join(map(single_line, triples))


# The answer


class AnswerView(NamedTuple):
    """How the answer of a run is shown."""

    icon: str
    label: str
    headline: str
    """The large text: the answer, or what stands for it."""
    details: str
    """The small text below it: the reason, or the support."""
    cost: str = ""
    """Duration, model calls and queries, which end the small text; "" without an answer."""

    @property
    def has_doubt(self) -> bool:
        """Whether the details tell what is in doubt: an answer that is right or wrong has none."""
        return self.label == ANSWER_STATE_LABELS[IN_DOUBT]

    def small_text(self, limit: int) -> str:
        """Return the details, shortened to ``limit`` characters, and then the whole cost."""
        parts = [shorten(self.details, limit), self.cost]
        return " · ".join(filter(None, parts))


def answer_view(state: RunState) -> AnswerView:
    """Return how the answer of a run is shown now: icon, label, headline and details.

    A task that is being executed comes first, which may wait for the person's reply. Then come a
    failure, stale steps, and the answer. Without any of these the label is the status of the run, and
    the headline does not say that there is no answer once a step, which may have one, was done.
    """
    if "waiting" in state.states.values():
        return AnswerView("wait", "Waiting for your reply", "…", "")
    if state.current_task:
        return AnswerView("wait", _capitalized(state.current_task), "…", "")
    if state.failure is not None:
        return _view_of_failure(state.run, state.failure)
    if state.has_stale_steps:
        return _view_of_stale_answer(state.previous_answer)
    if state.answer is None or state.status != "done":
        label = RUN_STATUS_LABELS.get(state.status, state.status)
        is_on_the_way = state.status == "paused" and bool(state.run.steps)
        headline = "Not at its end yet" if is_on_the_way else "No answer yet"
        return AnswerView("off", label, headline, "")
    judged = judge_answer(state.run.question, state.answer, state.run.right_answer)
    cost = _cost_text(state.totals)
    return _view_of_answer(state.run, judged, state.answer, cost)


def state_of_output(run: Run, output: Answer) -> AnswerState:
    """Return the state of an answer that a step of a run put out.

    What is known to be right counts only for the answer of the run itself, which also has the
    doubts that were found at its end.
    """
    right_answer = None
    if run.answer is not None and run.answer.is_given_by(output):
        output = run.answer
        right_answer = run.right_answer
    return judge_answer(run.question, output, right_answer)


def answer_icon(run: Run) -> str:
    """Return the icon of the state of a run's answer; that of GIVEN if there is no answer yet."""
    if run.answer is None:
        return ANSWER_STATE_ICONS[GIVEN]
    return state_of_output(run, run.answer).icon


def _capitalized(text: str) -> str:
    """Return a text that begins with a capital, unless it begins with an address, a file or an agent."""
    first_word, _, _ = text.partition(" ")
    if not first_word.rstrip(",").replace("'", "").isalpha():
        return text
    return text[0].upper() + text[1:]


def _cost_text(totals: Totals) -> str:
    """Return the duration, model calls and queries of a run: "2.1 s · 3 model calls · 1 query".

    The duration is that of the calls when they were made (``live_seconds``).
    """
    model_calls = pluralize(totals.model_calls, "model call")
    queries = pluralize(totals.queries, "query")
    return f"{format_seconds(totals.live_seconds)} · {model_calls} · {queries}"


def _view_of_failure(run: Run, failure: KgwbError) -> AnswerView:
    """Return how a failed run is shown: the message as the headline, the hint as the details.

    The system's name at the beginning of the message is removed.
    """
    message = failure.message.removeprefix(f"{run.system.name}/")
    details = ""
    if failure.hint:
        details = f"What to do: {failure.hint}"
    state = AnswerState(ERROR, ANSWER_STATE_LABELS[ERROR])
    return AnswerView(state.icon, state.label, _capitalized(message), details)


def _view_of_stale_answer(previous: Answer | None) -> AnswerView:
    """Return how a run with stale steps is shown; ``previous`` is its answer, if it had one.

    The headline asks the person to continue; the details have the answer before the
    change: an edit, or the undoing of one.
    """
    details = ""
    if previous is not None:
        details = f"before your change: {previous}"
    headline = "Continue to see the answer after your change"
    return AnswerView("stale", "Stale", headline, details)


def _view_of_answer(run: Run, judged: AnswerState, answer: Answer, cost: str) -> AnswerView:
    """Return how an answer is shown: its text, and as details doubts, measure, remarks and origin.

    The text is cut at MAX_ANSWER_CHARS, except from a model's own knowledge. An answer without
    values is shown by its reason.
    """
    is_text = is_text_alone(answer)
    if answer.ungrounded:
        text = str(answer.text or ", ".join(answer.labels))
    elif is_text:
        text = single_line(shorten_at_word(answer.text, MAX_ANSWER_CHARS))
    elif answer:
        text = single_line(shorten_at_word(str(answer), MAX_ANSWER_CHARS))
    else:
        return _view_without_values(judged, answer, cost)
    remarks = map(single_line, answer.remarks)
    parts = [judged.doubt, _measures_of(answer), *remarks, *_origins_of(run, answer)]
    details = " · ".join(filter(None, parts))
    return AnswerView(judged.icon, judged.label, text, details, cost)


def _measures_of(answer: Answer) -> str:
    """Return the measure of a superlative with its values, each once; "" if there is none."""
    if not answer.measure:
        return ""
    names = {str(iri): name for iri, name in answer.names}
    texts = []
    for value in answer.values:
        if value.measure is not None:
            texts.append(format_term(value.measure, names))
    distinct = dict.fromkeys(texts)
    return single_line(f"decided by {answer.measure}: {list_first(distinct)}")


def _origins_of(run: Run, answer: Answer) -> list[str]:
    """Return texts that say where an answer comes from; [] for the text of a program alone.

    "from the model's own knowledge", or "stands on N triples", and "in the words of a model" if the
    answer has a text. It is "at least N" where not all were looked for. Without support it is
    NO_SUPPORT, as for a "no".
    """
    if answer.ungrounded:
        return ["from the model's own knowledge"]
    if is_text_alone(answer):
        return []
    support = pluralize(len(answer.support), "triple")
    if _may_lack_support(run, answer):
        support = f"at least {support}"
    if answer.texts:
        texts = f"{pluralize(len(answer.texts), 'text')} beside the graph"
        support = f"{support} and {texts}" if answer.support else texts
    origins = [f"stands on {support}"]
    if not answer.support and not answer.texts:
        origins = [NO_SUPPORT]
    if answer.text:
        origins.append("in the words of a model")
    return origins


def _may_lack_support(run: Run, answer: Answer) -> bool:
    """Return whether an answer may stand on more triples than those that it has.

    That is so if a result was cut, if there are values beyond those whose support is looked for, or
    if a value has as many triples as systems keep of one.
    """
    calls = used_calls(run.steps, run.calls)
    if find_cut_result(answer, calls) is not None:
        return True
    if not all(value.support for value in answer.values[MAX_SUPPORTED_ROWS:]):
        return True
    return any(len(value.support) >= MIN_CAPPED_TRIPLES for value in answer.values)


def _view_without_values(judged: AnswerState, answer: Answer, cost: str) -> AnswerView:
    """Return how it is shown that a question has no answer, with the reason and the remarks.

    A leading NOT_IN_GRAPH is removed from the reason.
    """
    headline = "The question was not answered"
    if was_graph_asked(answer.reason):
        headline = "No answer in this graph"
    reason = answer.reason.removeprefix(f"{NOT_IN_GRAPH}: ")
    remarks = map(single_line, answer.remarks)
    details = " · ".join(filter(None, [reason, *remarks]))
    return AnswerView(judged.icon, judged.label, headline, details, cost)
