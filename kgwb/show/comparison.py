"""Two runs side by side: their answers, the first decision that differs, then the other steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from typing import NamedTuple

from kgwb.kg.survey_records import Survey
from kgwb.records import summarize
from kgwb.run import Run
from kgwb.run.agents import agent_of_key
from kgwb.run.calls import Call
from kgwb.run.differences import Differences, StepDifference, compare_steps, output_lines
from kgwb.run.steps import Step, names_in_steps, step_costs
from kgwb.show import html as h
from kgwb.show.html import Html
from kgwb.show.records import render
from kgwb.show.run import render_answer_banner
from kgwb.show.run_state import RunState, setup_text, subject_text
from kgwb.show.terms import RenderContext, prefixes_of
from kgwb.terms import DisplayNames
from kgwb.text import display_name, pluralize

SIDE_LABELS = (h.span("letter", "A"), h.span("letter", "B"))
NO_STEP = "no such step"


class ComparedRun(NamedTuple):
    """One of two runs that are compared."""

    name: str
    state: RunState


def render_comparison(first: ComparedRun, second: ComparedRun) -> Html:
    """Render two runs: their answers, and their steps beside each other."""
    heads = []
    for letter, (name, state) in zip(SIDE_LABELS, (first, second), strict=True):
        setup = h.span("soft small", setup_text(state.run))
        title = h.div("row lead", letter, h.tag("b", name), setup)
        heads.append(h.div("", title, render_answer_banner(state)))
    differences = compare_steps(first.state.steps, second.state.steps)
    runs = (first.state.run, second.state.run)
    return h.join(
        h.div("ab heads", *heads),
        _render_muting_verdict(first.state, second.state),
        render_differences(differences, runs),
    )


def _render_muting_verdict(full: RunState, muted: RunState) -> Html:
    """Render whether the answer stays the same without triples that only the second run mutes.

    Nothing is rendered if no triple is muted, or if one of the runs has no answer.
    """
    triples = [triple for triple in muted.run.kg.muted if triple not in full.run.kg.muted]
    both_ended = full.has_ended and muted.has_ended
    if not triples or not both_ended or not full.answer or muted.answer is None:
        return Html()
    without = pluralize(len(triples), "muted triple") if len(triples) > 1 else "this triple"
    values = {value.terms for value in full.answer.values}
    if values == {value.terms for value in muted.answer.values}:
        verdict = h.state_badge("ok", f"The answer stands without {without}.")
    else:
        verdict = h.state_badge("none", f"The answer does not stand without {without}.")
    has_survey = any(isinstance(step.output, Survey) for step in muted.steps.values())
    remark = h.muted_text(" The survey of the graph still counts it.") if has_survey else ""
    return h.div("band", verdict, remark)


def render_differences_page(differences: Differences) -> str:
    """Render the differences of two runs as HTML that stands alone."""
    return h.static_section(render_differences(differences))


def render_differences(differences: Differences, runs: Sequence[Run] = ()) -> Html:
    """Render the first decision that differs in full, then every step with its two outcomes.

    Steps that are the same are collapsed together. Without ``runs`` agents have no icons.
    """
    names = _names_in(differences)
    rows: list[Html] = []
    for are_same, group in groupby(differences.leaves, lambda pair: pair.status == "same"):
        pairs = list(group)
        if are_same:
            rows.append(_render_same_steps(pairs, key=f"same-{len(rows)}"))
        else:
            rows += [_render_different_step(pair, runs, names) for pair in pairs]
    heads: object = ""
    if rows:
        heads = h.div("cmp", h.span("sign"), h.span("caption", "step"), *SIDE_LABELS)
    first = differences.first_difference
    if first is not None:
        return h.join(_render_first_difference(first, runs, names), heads, *rows)
    is_equal = all(pair.status == "same" for pair in differences)
    message = "No step differs." if is_equal else "No decision differs: only the way does."
    return h.join(h.div("band", message), heads, *rows)


def _names_in(differences: Differences) -> DisplayNames:
    """Return the display names that the records of both runs hold."""
    names: dict[str, str] = {}
    for steps in (
        [pair.first for pair in differences if pair.first],
        [pair.second for pair in differences if pair.second],
    ):
        if steps:
            names |= names_in_steps(steps, steps[0].known_calls)
    return names


def _render_icon(pair: StepDifference, runs: Sequence[Run], *, small: bool = False) -> Html | None:
    """Render the icon of a step's agent; None without runs."""
    if not runs:
        return None
    run = runs[0] if pair.first else runs[1]  # the other run's system may have no such agent
    return h.agent_kind_badge(run.system.agent_kind(agent_of_key(pair.key)), small=small)


def _render_same_steps(pairs: Sequence[StepDifference], key: str) -> Html:
    outcomes = []
    for pair in pairs:
        if pair.first:
            outcomes.append(f"{display_name(agent_of_key(pair.key))}: {pair.first.outcome}")
    title = h.muted_text(f"{pluralize(len(pairs), 'step')} the same")
    fold = h.collapsible(title, ", ".join(outcomes), key=key)
    return h.div("cmp same", h.span("sign", "="), h.div("wide", fold))


def _render_first_difference(
    pair: StepDifference, runs: Sequence[Run], names: DisplayNames
) -> Html:
    """Render the first decision that differs: the outputs of both steps in full."""
    step = pair.first or pair.second
    assert step is not None, "a difference has at least one step"
    prefixes = prefixes_of(runs[0]) if runs else {}
    context = RenderContext(names, prefixes)
    sides = []
    for letter, side in zip(SIDE_LABELS, (pair.first, pair.second), strict=True):
        is_by_hand = side is not None and side.origin == "by hand"
        badge = h.state_badge("hand", "by hand") if is_by_hand else ""
        sides.append(h.div("", h.div("row", letter, badge), _render_output(side, context)))
    return h.div(
        "decide",
        h.div("row", _render_icon(pair, runs), h.span("caption", "First decision that differs")),
        h.div(
            "row",
            h.tag("h3", display_name(step.agent), class_="title"),
            h.span("soft", subject_text(step)),
        ),
        h.div("ab", *sides),
    )


def _render_output(step: Step | None, context: RenderContext) -> Html:
    if step is None:
        return h.muted_text(NO_STEP)
    if not step.done:
        return h.note(step.outcome, level="bad")
    return render(step.output, replace(context, steps=(step,), views=step.views))


def _render_different_step(pair: StepDifference, runs: Sequence[Run], names: DisplayNames) -> Html:
    """Render a step that differs: its outcomes with different words marked, and all other parts."""
    step = pair.first or pair.second
    first_text = pair.first.outcome if pair.first else NO_STEP
    second_text = pair.second.outcome if pair.second else NO_STEP
    if first_text == second_text:
        parts = ", ".join(part for part in pair.changed_parts if part != "output") or "its parts"
        first = h.join(first_text, h.muted_text(f" the same outcome; {parts} differ"))
        second = h.muted_text(second_text)
    else:
        first, second = h.mark_changed_words(first_text, second_text)
    subject = ""
    if step is not None and step.subject:
        subject = h.span("small", h.muted_text(f" {subject_text(step)}"))
    name = h.div("", h.tag("b", display_name(agent_of_key(pair.key))), subject)
    icon = _render_icon(pair, runs, small=True) or h.span("sign", "≠")
    details = h.collapsible(
        h.muted_text("in full"), *_render_different_sections(pair, names), key=f"full-{pair.key}"
    )
    return h.div("cmp", icon, name, h.div("", first), h.div("", second), h.div("wide", details))


def _render_different_sections(pair: StepDifference, names: DisplayNames) -> list[Html]:
    """Render the parts of a step that differ, line by line."""
    before, after = _sections_as_lines(pair.first, names), _sections_as_lines(pair.second, names)
    sections = []
    for part in {**before, **after}:
        old, new = before.get(part, []), after.get(part, [])
        if old != new:
            sections.append(h.div("", h.span("caption", part), h.render_line_diff(old, new)[1]))
    return sections


def _sections_as_lines(step: Step | None, names: DisplayNames) -> dict[str, list[str]]:
    """Return the output, inputs, calls, replies and cost of a step as lines."""
    if step is None:
        return {}
    inputs = []
    for name, value in step.inputs.items():
        inputs += [f"{name}: {line}" for line in summarize(value, names, limit=None).splitlines()]
    calls = []
    for key in step.calls:
        if key in step.known_calls:
            calls += _call_lines(step.known_calls[key])
    replies = []
    for attempt in step.attempts:
        replies += attempt.reply.splitlines()
        replies += [f"✗ failed: {check.name}: {check.problem}" for check in attempt.problems]
    return {
        "yielded": [*output_lines(step, names), *(f"note: {note}" for note in step.notes)],
        "came in": inputs,
        "calls": calls,
        "replies": replies,
        "cost": [" · ".join(step_costs(step, step.known_calls))],
    }


def _call_lines(call: Call) -> list[str]:
    """Return what a call asked: the messages of a model call, the query or text of another."""
    if call.kind == "model":
        lines = [f"model {call.request['model']}"]
        for role, content in call.request["content"]["messages"]:
            lines += [f"{role}:", *content.splitlines()]
        return lines
    asked = [call.request[name] for name in ("query", "text", "phrase") if name in call.request]
    return [f"{call.kind}: {text}" for text in asked]
