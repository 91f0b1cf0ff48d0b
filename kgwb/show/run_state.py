"""The state of a run and of its steps, with the labels and icons that people see."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from rdflib import Literal

from kgwb.errors import KgwbError
from kgwb.flow import CANNOT_EXPRESS, NOT_IN_GRAPH, Answer, Value
from kgwb.run import Run
from kgwb.run.steps import Step, Totals
from kgwb.terms import format_triple
from kgwb.text import format_seconds, pluralize, shorten, single_line

STEP_STATES = {
    "failed": ("bad", "failed"),
    "stale": ("stale", "stale"),
    "running": ("wait", "running"),
    "not run": ("off", "not run"),
    "not needed": ("off", "not needed"),
    "ahead": ("off", "ahead"),
    "unfinished": ("wait", "in progress"),
    "done": ("ok", "done"),
}
"""The icon and the label of each state of a step."""
RUN_STATUS_LABELS = {
    "new": "Not run yet",
    "running": "Running",
    "paused": "Stopped on the way",
    "cancelled": "Cancelled",
    "failed": "Failed",
}
"""The label of a run without an answer, by its status."""


@dataclass(frozen=True, slots=True)
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
    """The answer before the latest edit."""
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
    without_brackets = subject.replace("⟨", "").replace("⟩", "")
    return without_brackets.replace("/", " · ")


def setup_text(run: Run) -> str:
    """Return system, models, profile and muted triples: "chatty_kg · rules · fast · without ...".

    A replay has "recorded replies" in the place of models. Of a run that can only be read, it is
    said what is missing. Each model is named once. The parts are separated by " · ".
    """
    names = [model.name for model in run.models.values()]
    models = ", ".join(dict.fromkeys(names))
    parts = [
        run.system.name,
        single_line(models or "recorded replies"),
        run.settings.profile,
    ]
    if run.kg.muted:
        parts.append(f"without {_muted_text(run)}")
    if run.read_only:
        parts.append(f"can only be read: {single_line(run.read_only)}")
    return " · ".join(parts)


def _muted_text(run: Run) -> str:
    """Return the muted triples of a run by their display names, in one line."""
    names = run.display_names()
    triples = [single_line(format_triple(triple, names)) for triple in run.kg.muted]
    return "; ".join(triples)


# The answer


class AnswerState(NamedTuple):
    """How the answer of a run is shown."""

    icon: str
    label: str
    headline: str
    """The large text: the answer, or what stands for it."""
    details: str
    """The small text below it: the reason, or the support and the cost."""


def answer_state(state: RunState) -> AnswerState:
    """Return how the answer of a run is shown now.

    A task that is being executed comes first, then a failure, then stale steps, then the answer.
    Without any of these it is "No answer yet" with the status of the run.
    """
    if state.current_task:
        return AnswerState("wait", _capitalized(state.current_task), "…", "")
    if state.failure is not None:
        return _state_of_failure(state.run, state.failure)
    if state.has_stale_steps:
        return _state_of_stale_answer(state.previous_answer)
    if state.answer is None or state.status != "done":
        label = RUN_STATUS_LABELS.get(state.status, state.status)
        return AnswerState("off", label, "No answer yet", "")
    cost = _cost_text(state.totals)
    return _state_of_answer(state.run.question, state.answer, cost)


def _capitalized(text: str) -> str:
    return text[:1].upper() + text[1:]


def _cost_text(totals: Totals) -> str:
    """Return the duration, model calls and queries: "2.1 s · 3 model calls · 1 query"."""
    duration = format_seconds(totals.seconds)
    model_calls = pluralize(totals.model_calls, "model call")
    queries = pluralize(totals.queries, "query")
    return f"{duration} · {model_calls} · {queries}"


def _state_of_failure(run: Run, failure: KgwbError) -> AnswerState:
    """Return how a run is shown that failed: the message without the system's name, and the hint."""
    message = failure.message.removeprefix(f"{run.system.name}/")
    details = ""
    if failure.hint:
        details = f"What to do: {failure.hint}"
    return AnswerState("bad", "Failed", _capitalized(message), details)


def _state_of_stale_answer(previous: Answer | None) -> AnswerState:
    """Return how a run with stale steps is shown: with the answer before the edit, if it had one."""
    details = ""
    if previous is not None:
        details = f"before your edit: {previous}"
    headline = "Continue to see the answer after your edit"
    return AnswerState("stale", "Stale", headline, details)


def _state_of_answer(question: str, answer: Answer, cost: str) -> AnswerState:
    """Return how an answer is shown, with its support and cost.

    An answer from a model's own knowledge is shown as not grounded, and one whose values are not of
    the type that was asked for is shown with doubt.
    """
    if answer.ungrounded:
        text = str(answer.text or ", ".join(answer.labels))
        details = f"from the model's own knowledge · {cost}"
        return AnswerState("none", "Not grounded", text, details)
    if not answer:
        return _state_without_values(answer.reason, cost)
    text = single_line(shorten(str(answer)))
    support = pluralize(len(answer.support), "triple")
    details = f"stands on {support} · {cost}"
    doubt = describe_type_mismatch(question, answer)
    if doubt:
        return AnswerState("none", "Answered, with doubt", text, f"{doubt} · {details}")
    return AnswerState("ok", "Answered", text, details)


def _state_without_values(reason: str, cost: str) -> AnswerState:
    """Return how it is shown that a question has no answer, with the reason.

    "Not answered" if the system cannot express the question, else "Not in this graph". A leading
    NOT_IN_GRAPH is removed from the reason.
    """
    reason = reason.removeprefix(f"{NOT_IN_GRAPH}: ")
    details = cost
    if reason:
        details = f"{reason} · {cost}"
    if reason.startswith(CANNOT_EXPRESS):
        return AnswerState("none", "Not answered", "The question was not answered", details)
    return AnswerState("none", "Not in this graph", "No answer in this graph", details)


# Whether an answer is what the question asks for

EXPECTED_VALUES = {
    "where": ("a place", {"a thing", "a text"}),
    "when": ("a time", {"a date", "a number", "a text"}),
    "who": ("somebody", {"a thing", "a text"}),
    "how many": ("a number", {"a number"}),
}
"""What each question word asks for, and the types of values that can be it."""
QUESTION_WORD_PATTERN = re.compile(rf"\b({'|'.join(EXPECTED_VALUES)})\b")
MAX_VALUE_CHARS = 60
MAX_MISMATCH_CHARS = 200


def describe_type_mismatch(question: str, answer: Answer) -> str:
    """Return which values of an answer are not of the type that the question word asks for.

    Such as "1967-10-03 is a date where a place was asked". The first of EXPECTED_VALUES in the
    question counts, wherever it stands. Returns "" if all values fit, if the question has no such
    word, and for tables, counts and yes or no.
    """
    question_word = QUESTION_WORD_PATTERN.search(question.casefold())
    if question_word is None or answer.kind != "list" or answer.columns:
        return ""
    expected, fitting_types = EXPECTED_VALUES[question_word[1]]
    unfitting = []
    for value in answer.values:
        value_type = _value_type(value)
        if value_type not in fitting_types:
            label = shorten(value.label, MAX_VALUE_CHARS)
            unfitting.append(f"{label} is {value_type}")
    if not unfitting:
        return ""
    text = shorten("; ".join(unfitting), MAX_MISMATCH_CHARS)
    return f"{text} where {expected} was asked"


def _value_type(value: Value) -> str:
    """Return "a thing" for an IRI or blank node, and "a date", "a number" or "a text" for a literal.

    A literal is a date by its datatype, or if its text is like "1967", "1967-10" or "1967-10-03".
    Else it is a number if its text has only digits, points and commas, with or without a sign.
    """
    if not isinstance(value.term, Literal):
        return "a thing"
    text = str(value.term)
    datatype_iri = str(value.term.datatype or "").casefold()
    _, _, datatype = datatype_iri.rpartition("#")
    is_date_type = "date" in datatype or datatype.startswith("g")  # xsd:gYear, xsd:gMonthDay, ...
    if is_date_type or re.fullmatch(r"-?\d{4}(-\d\d){0,2}", text):
        return "a date"
    if re.fullmatch(r"[-+]?[\d.,]+", text):
        return "a number"
    return "a text"
