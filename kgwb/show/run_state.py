"""The state of a run and of its steps, in the words and signs by which people see it."""

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
"""The icon and the word of each state of a step."""
RUN_STATUS_TEXTS = {
    "new": "Not run yet",
    "running": "Running",
    "paused": "Stopped on the way",
    "cancelled": "Cancelled",
    "failed": "Failed",
}


@dataclass(frozen=True, slots=True)
class RunState:
    """A run as it is shown: its steps, also stale ones, and what is being done to it now."""

    run: Run
    steps: Mapping[str, Step]
    """By key. Steps that an edit made stale are among them."""
    states: Mapping[str, str] = field(default_factory=dict)
    """The state of each step that is not simply done or failed, by key; see STEP_STATES."""
    current_task: str = ""
    """What is being done now; empty if nothing is."""
    failure: KgwbError | None = None
    previous_answer: Answer | None = None
    """The answer before the latest edit."""
    answer: Answer | None = None
    status: str = "done"
    totals: Totals = field(default_factory=Totals)

    @classmethod
    def of(cls, run: Run) -> RunState:
        """Return the state of a run that nobody steps through."""
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
        """Whether the run came to its end, and nothing was changed since."""
        return self.status == "done" and not self.has_stale_steps

    def step_state(self, key: str) -> str:
        """Return the state of a step or agent, one of STEP_STATES."""
        step = self.steps.get(key)
        if step is None:
            return "not needed" if self.has_ended else "not run"
        if key in self.states:
            return self.states[key]
        if step.done:
            return "done"
        return "failed" if step.error else "unfinished"


def displayed_agent_kind(run: Run, agent: str) -> str:
    """Return the kind of an agent; "person" if a person answers its prompts."""
    kind = run.system.agent_kind(agent)
    return "person" if kind == "model" and run.model_name(agent) == "human" else kind


def subject_text(step: Step) -> str:
    """Return what a step is about in plain words."""
    return single_line(step.subject).replace("⟨", "").replace("⟩", "").replace("/", " · ")


def setup_text(run: Run) -> str:
    """Return system, models, profile and muted triples: "chatty_kg · rules · fast"."""
    models = ", ".join(dict.fromkeys(model.name for model in run.models.values()))
    parts = [run.system.name, single_line(models or "recorded replies"), run.settings.profile]
    if run.kg.muted:
        names = run.display_names()
        muted = [single_line(format_triple(triple, names)) for triple in run.kg.muted]
        parts.append(f"without {'; '.join(muted)}")
    return " · ".join(parts)


# The answer


class AnswerState(NamedTuple):
    """How the answer of a run is shown."""

    icon: str
    label: str
    headline: str
    """The large text: the answer, or what stands for it."""
    details: str
    """What is written below it."""


def answer_state(state: RunState) -> AnswerState:
    """Return how the answer of a run is shown now."""
    if state.current_task:
        return AnswerState("wait", _capitalized(state.current_task), "…", "")
    if state.failure is not None:
        message = state.failure.message.removeprefix(f"{state.run.system.name}/")
        hint = f"What to do: {state.failure.hint}" if state.failure.hint else ""
        return AnswerState("bad", "Failed", _capitalized(message), hint)
    if state.has_stale_steps:
        previous = state.previous_answer
        details = "" if previous is None else f"before your edit: {previous}"
        text = "Continue to see the answer after your edit"
        return AnswerState("stale", "Stale", text, details)
    if state.answer is None or state.status != "done":
        word = RUN_STATUS_TEXTS.get(state.status, state.status)
        return AnswerState("off", word, "No answer yet", "")
    return _state_of_answer(state.run.question, state.answer, _cost_text(state.totals))


def _capitalized(text: str) -> str:
    return text[:1].upper() + text[1:]


def _cost_text(totals: Totals) -> str:
    costs = (
        format_seconds(totals.seconds),
        pluralize(totals.model_calls, "model call"),
        pluralize(totals.queries, "query"),
    )
    return " · ".join(costs)


def _state_of_answer(question: str, answer: Answer, cost: str) -> AnswerState:
    if answer.ungrounded:
        text = str(answer.text or ", ".join(answer.labels))
        return AnswerState("none", "Not grounded", text, f"from the model's own knowledge · {cost}")
    if answer:
        text = single_line(shorten(str(answer)))
        details = f"stands on {pluralize(len(answer.support), 'triple')} · {cost}"
        doubt = describe_type_mismatch(question, answer)
        if doubt:
            return AnswerState("none", "Answered, with doubt", text, f"{doubt} · {details}")
        return AnswerState("ok", "Answered", text, details)
    reason = answer.reason.removeprefix(f"{NOT_IN_GRAPH}: ")
    details = f"{reason} · {cost}" if reason else cost
    if reason.startswith(CANNOT_EXPRESS):
        return AnswerState("none", "Not answered", "The question was not answered", details)
    return AnswerState("none", "Not in this graph", "No answer in this graph", details)


EXPECTED_VALUE_TYPES = {
    "where": ("a place", {"a thing", "a text"}),
    "when": ("a time", {"a date", "a number", "a text"}),
    "who": ("somebody", {"a thing", "a text"}),
    "how many": ("a number", {"a number"}),
}
"""What each question word asks for, and the kinds of values that can be it."""
QUESTION_WORD_PATTERN = re.compile(rf"\b({'|'.join(EXPECTED_VALUE_TYPES)})\b")
MAX_MISMATCH_CHARS = 200


def describe_type_mismatch(question: str, answer: Answer) -> str:
    """Return values of a kind that was not asked for: "1967-10-03 is a date where a place was asked".

    Returns an empty text if there is none, and for tables, counts and yes or no.
    """
    question_word = QUESTION_WORD_PATTERN.search(question.casefold())
    if question_word is None or answer.kind != "list" or answer.columns:
        return ""
    wanted, fitting_kinds = EXPECTED_VALUE_TYPES[question_word[1]]
    unfitting = []
    for value in answer.values:
        kind = _value_type(value)
        if kind not in fitting_kinds:
            unfitting.append(f"{shorten(value.label, 60)} is {kind}")
    if not unfitting:
        return ""
    return f"{shorten('; '.join(unfitting), MAX_MISMATCH_CHARS)} where {wanted} was asked"


def _value_type(value: Value) -> str:
    """Return "a thing", "a date", "a number" or "a text"."""
    if not isinstance(value.term, Literal):
        return "a thing"
    text = str(value.term)
    datatype = str(value.term.datatype or "").rpartition("#")[2].casefold()
    is_date_type = "date" in datatype or datatype.startswith("g")  # xsd:gYear and its kin
    if is_date_type or re.fullmatch(r"-?\d{4}(-\d\d){0,2}", text):
        return "a date"
    if re.fullmatch(r"[-+]?[\d.,]+", text):
        return "a number"
    return "a text"
