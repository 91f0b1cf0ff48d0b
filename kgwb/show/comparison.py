"""Two runs side by side: their answers, the first decision that differs, then the other steps.

Below are the objects of kgwb as HTML in a notebook. Runs, steps, differences and records stand below
this room, and cannot import it. So they have no ``_repr_html_``; ``import kgwb`` tells IPython to show
them with ``to_html``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, NamedTuple, TypeAlias

from kgwb.kg.survey_records import Survey
from kgwb.llm.base import DataNotice
from kgwb.records import Record, summarize
from kgwb.run import Run
from kgwb.run.agents import agent_of_key
from kgwb.run.answers import Answer
from kgwb.run.differences import Differences, StepDifference, compare_steps, output_lines
from kgwb.run.steps import Call, Step, names_in_steps, step_costs
from kgwb.show.html import (
    Html,
    agent_kind_badge,
    div,
    join,
    mark_changed_words,
    muted_text,
    note,
    render_line_diff,
    render_template,
    span,
    state_badge,
    static_section,
)
from kgwb.show.records import render
from kgwb.show.run import (
    render_answer_banner,
    render_notice_page,
    render_run_page,
    render_step_page,
)
from kgwb.show.run_state import RunState, setup_text, subject_text
from kgwb.show.survey import render_survey_page
from kgwb.show.terms import RenderContext, prefixes_of, replace_iris
from kgwb.terms import DisplayNames
from kgwb.text import display_name, pluralize

SIDE_LETTERS = (span("letter", "A"), span("letter", "B"))
NO_DIFFERENCE = "No step differs."
NO_DIFFERENT_DECISION = (
    "No decision differs. The steps differ in their inputs, calls, replies or reasons."
)
SAME_IN_SHORT = " (the results differ, though not in this short form: see in full)"
"""What is said of two results that differ and have the same outcome."""
NO_STEP = "no such step"
"""Stands for the outcome of a step that only the other run has."""
MAX_REPEATED_LINES = 4
"""So many lines of two runs are shown again where they come again; of more it is said where they stand."""
Sides: TypeAlias = tuple[tuple[str, ...], tuple[str, ...]]
"""The lines of a part of a step in both runs."""


class ComparedRun(NamedTuple):
    """One of two runs that are compared."""

    name: str
    state: RunState


def render_comparison(first: ComparedRun, second: ComparedRun) -> Html:
    """Render two runs: their answers, and their steps beside each other.

    Each run is given with its name, and has a letter, A or B. If the second one mutes more triples,
    it is said whether the answer stands without them.
    """
    differences = compare_steps(first.state.steps, second.state.steps)
    runs = (first.state.run, second.state.run)
    return render_template(
        "show/templates/comparison.html",
        sides=zip(SIDE_LETTERS, (first, second), strict=True),
        setup_text=setup_text,
        render_answer_banner=render_answer_banner,
        muting_verdict=_render_muting_verdict(first.state, second.state),
        differences=render_differences(differences, runs),
    )


def _render_muting_verdict(full: RunState, muted: RunState) -> Html:
    """Render whether the answer has the same values without triples that only the second run mutes.

    The values are compared without their order. A remark is added if a step of the second run is a
    survey, which counts muted triples. Nothing is rendered if the second run mutes no further
    triple, if one of the runs has not ended, or if the first one has no answer.
    """
    already_muted = full.run.kg.muted
    triples = [triple for triple in muted.run.kg.muted if triple not in already_muted]
    if not triples or not full.has_ended or not muted.has_ended:
        return Html()
    if not full.answer or muted.answer is None:
        return Html()
    without = "this triple"
    if len(triples) > 1:
        without = pluralize(len(triples), "muted triple")
    verdict = state_badge("doubt", f"The answer does not stand without {without}.")
    if _values_of(full.answer) == _values_of(muted.answer):
        verdict = state_badge("done", f"The answer stands without {without}.")
    remark = Html()
    if any(isinstance(step.output, Survey) for step in muted.steps.values()):
        remark = muted_text(" The survey of the graph still counts muted triples.")
    return div("band", verdict, remark)


def _values_of(answer: Answer) -> set[object]:
    """Return the values of an answer, each as its terms, without their order."""
    return {value.terms for value in answer.values}


# Differences


def render_differences_page(differences: Differences) -> str:
    """Render the differences of two runs as HTML that stands alone."""
    return static_section(render_differences(differences))


def render_differences(differences: Differences, runs: Sequence[Run] = ()) -> Html:
    """Render the first decision that differs in full, then every step with its two outcomes.

    Neighbouring steps that are the same are collapsed into one row; supervisors are left out.
    ``runs`` are the two runs, or none, and then agents have no icons. If no decision differs, a
    line says so.
    """
    context = RenderContext(_names_in(differences))
    if runs:
        context = replace(context, prefixes=prefixes_of(runs[0]))
    message = NO_DIFFERENT_DECISION
    if all(map(_is_same, differences)):
        message = NO_DIFFERENCE
    return render_template(
        "show/templates/differences.html",
        comparison=sys.modules[__name__],
        agent_of_key=agent_of_key,
        subject_text=subject_text,
        decision=differences.first_difference,
        message=message,
        groups=[(same, list(pairs)) for same, pairs in groupby(differences.leaves, _is_same)],
        runs=runs,
        context=context,
        shown={},
    )


def _is_same(pair: StepDifference) -> bool:
    return pair.status == "same"


def _names_in(differences: Differences) -> DisplayNames:
    """Return the display names in the records of both runs, by IRI; those of the second run win."""
    first_steps = [pair.first for pair in differences if pair.first]
    second_steps = [pair.second for pair in differences if pair.second]
    names: dict[str, str] = {}
    for steps in (first_steps, second_steps):
        if steps:
            calls = steps[0].known_calls  # those of its whole run
            names |= names_in_steps(steps, calls)
    return names


def either_step(pair: StepDifference) -> Step:
    """Return the step of the first run, or of the second if only that has it."""
    step = pair.first or pair.second
    assert step is not None, "a difference has at least one step"
    return step


def render_icon(pair: StepDifference, runs: Sequence[Run], *, small: bool = False) -> Html:
    """Render the icon of a step's agent; nothing without runs.

    It is the kind of the agent in the first run, or in the second if only that has the step.
    """
    if not runs:
        return Html()
    run, second_run = runs
    if pair.first is None:  # the first run's system may have no such agent
        run = second_run
    kind = run.system.agent_kind(pair.key)
    return agent_kind_badge(kind, small=small)


def render_output(step: Step | None, context: RenderContext) -> Html:
    """Render the output of a step, or why there is none.

    That is NO_STEP if the run has no such step, else the outcome of a step that failed or is not
    done.
    """
    if step is None:
        return div("body", span("missing", NO_STEP))
    if not step.done:
        return note(step.outcome, level="bad")
    context = replace(context, steps=(step,), views=step.views)
    return render(step.output, context)


def render_outcomes(pair: StepDifference) -> tuple[Html, Html]:
    """Render the outcomes of both runs, with the words marked that differ.

    If the outcomes are the same, the first names the parts of the step that differ. Two results
    that differ may have the same outcome, since an outcome is short; this is then said. A run
    without the step has "no such step" as its outcome.
    """
    if pair.first is None or pair.second is None:
        return _render_lone_outcome(pair.first), _render_lone_outcome(pair.second)
    first = pair.first.outcome
    second = pair.second.outcome
    if first != second:
        return mark_changed_words(first, second)
    if pair.changes_decision:
        return join(first, muted_text(SAME_IN_SHORT)), span("", second)
    parts = [part for part in pair.changed_parts if part != "output"]
    different = ", ".join(parts) or "details"
    remark = muted_text(f" (the same outcome; {different} differ)")
    return join(first, remark), muted_text(second)


def _render_lone_outcome(step: Step | None) -> Html:
    """Render the outcome of a step that only one run has; for the other, None, "no such step"."""
    if step is None:
        return span("missing", NO_STEP)
    return span("", step.outcome)


def render_different_sections(
    pair: StepDifference, context: RenderContext, shown: dict[Sides, str]
) -> list[Html]:
    """Render the parts of a step that differ, each with its title and the lines that differ.

    Parts that do not differ are left out. Deleted and added lines are marked. ``shown`` says where
    lines stand already, such as an output that is now an input: if they are more than
    MAX_REPEATED_LINES, that place is named instead. What is rendered is added to it.
    """
    first_sections = _sections_as_lines(pair.first, context)
    second_sections = _sections_as_lines(pair.second, context)
    agent_name = display_name(agent_of_key(pair.key))
    rendered = []
    for title in {**first_sections, **second_sections}:
        first = first_sections.get(title, [])
        second = second_sections.get(title, [])
        if first == second:
            continue
        sides = (tuple(first), tuple(second))
        if sides in shown and len(first + second) > MAX_REPEATED_LINES:
            lines = muted_text(f" as in the {shown[sides]}")
        else:
            _, lines = render_line_diff(first, second)
        shown.setdefault(sides, f"{title} of {agent_name}")
        rendered.append(div("", span("caption", title), lines))
    return rendered


def _sections_as_lines(step: Step | None, context: RenderContext) -> dict[str, list[str]]:
    """Return the lines of each part of a step by title: output, notes, inputs, calls, replies, cost.

    Each input is a part of its own. IRIs are CURIEs, but for what models were sent and replied. A
    part without content has no lines. Returns an empty dictionary without a step.
    """
    if step is None:
        return {}
    sections = {"output": output_lines(step, context.names), "notes": step.notes}
    for name, value in step.inputs.items():
        summary = summarize(value, context.names, limit=None)
        sections[f"input {display_name(name)}"] = summary.splitlines()
    for title, lines in sections.items():
        sections[title] = [replace_iris(line, context, {}) for line in lines]
    costs = step_costs(step, step.known_calls)
    return {
        **sections,
        "calls": _lines_of_calls(step, context),
        "replies": _reply_lines(step),
        "cost": [" · ".join(costs)],
    }


def _lines_of_calls(step: Step, context: RenderContext) -> list[str]:
    """Return what the calls of a step asked, as lines, without calls that the step does not know."""
    lines = []
    for key in step.calls:
        if key in step.known_calls:
            lines += _call_lines(step.known_calls[key], context)
    return lines


def _reply_lines(step: Step) -> list[str]:
    """Return the lines of the model's replies, and after each reply the checks that it failed.

    Attempts come in their order.
    """
    lines = []
    for attempt in step.attempts:
        lines += attempt.reply.splitlines()
        for check in attempt.problems:
            lines.append(f"✗ failed: {check.name}: {check.problem}")
    return lines


def _call_lines(call: Call, context: RenderContext) -> list[str]:
    """Return the lines of what a call asked.

    Of a model call these are the model's name and each message below its role. Of a call to the
    graph it is the query with CURIEs, or the text that was searched for, after the kind of the call;
    another call has no lines.
    """
    lines = []
    if call.kind == "model":
        lines.append(f"model {call.request['model']}")
        messages = call.request["content"]["messages"]
        for role, content in messages:
            lines.append(f"{role}:")
            lines += content.splitlines()
        return lines
    for name in ("query", "text", "phrase"):
        if name in call.request:
            asked = replace_iris(call.request[name], context, {})
            lines.append(f"{call.kind}: {asked}")
    return lines


# Any object of kgwb in a notebook


def render_record_page(record: Record) -> str:
    """Render a record as HTML that stands alone."""
    return static_section(render(record, RenderContext()))


RENDERERS: Mapping[type, Callable[[Any], str]] = {
    Run: render_run_page,
    Step: render_step_page,
    Differences: render_differences_page,
    Survey: render_survey_page,
    DataNotice: render_notice_page,
    Record: render_record_page,
}
"""How objects are shown in a notebook. A class comes before those it derives from."""


def to_html(value: object) -> str:
    """Render a run, a step, differences, a survey or any other record as HTML that stands alone.

    The first class of RENDERERS that the value is an instance of decides.

    Raises TypeError for anything else.
    """
    for shown_type, function in RENDERERS.items():
        if isinstance(value, shown_type):
            return function(value)
    raise TypeError(f"kgwb does not show a {type(value).__name__} as HTML")
