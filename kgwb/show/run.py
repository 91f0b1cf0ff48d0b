"""A run as HTML: its answer, its agents, and its steps, each of which expands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kgwb.flow import Answer
from kgwb.records import one_line
from kgwb.run import Run
from kgwb.run.steps import Step, group_by_supervisor
from kgwb.show.answer_state import ANSWER_STATE_LABELS, ERROR
from kgwb.show.answers import render_answer_parts
from kgwb.show.html import (
    Html,
    agent_kind_badge,
    div,
    icon,
    muted_text,
    render_template,
    span,
    static_section,
    table,
    tag,
)
from kgwb.show.run_state import RunState, answer_view, displayed_agent_kind, setup_text
from kgwb.show.step import render_step_body
from kgwb.show.terms import RenderContext, context_of
from kgwb.show.timeline import render_pipeline, render_row_badge, render_step_time, skipped_model
from kgwb.show.waterfall import render_waterfall
from kgwb.text import display_name, shorten, shorten_at_word

MAX_BANNER_CHARS = 1_000
"""Characters of the question, and of the answer, at the top."""
MAX_LARGE_CHARS = 160
"""A longer answer is not in the largest type."""


def render_run_page(run: Run) -> str:
    """Render a run as HTML that stands alone."""
    title = shorten(run.question)
    return static_section(render_run(run), aria_label=title)


def render_run(run: Run, blamed_step: str = "") -> Html:
    """Render a run: question, answer with its support, agents, steps, and where the time went.

    Steps are collapsed, and stand below their supervisors. ``blamed_step`` is the key of the step that
    lost the answer, if it is known: it is marked and open. The values of the answer are only shown
    once the run is done.
    """
    state = RunState.of(run)
    context = context_of(run)
    answer_parts = []
    if run.answer and run.status == "done":  # why there is no answer is part of the banner
        answer_parts = render_answer_parts(run.answer, context)
    groups = group_by_supervisor(run.steps)
    return render_template(
        "show/templates/run.html",
        question=shorten(run.question, MAX_BANNER_CHARS),
        setup=setup_text(run),
        answer_banner=render_answer_banner(state),
        answer_parts=answer_parts,
        flow_strip=render_pipeline(state),
        steps=_render_steps(groups, None, 0, state, context, blamed_step),
        waterfall=render_waterfall(run.steps, run.calls),
    )


def render_question_header(run: Run) -> Html:
    """Render the question, and the system, models and settings that answer it."""
    question = shorten(run.question, MAX_BANNER_CHARS)
    title = tag("h2", question, class_="question grow")
    setup = span("soft small", setup_text(run))
    return div("head", title, setup)


def render_answer_banner(state: RunState) -> Html:
    """Render the answer in large letters, and below it its state, its cost, and the right answer.

    The right answer is shown as far as it is known. A failure is announced at once to screen
    readers (role "alert"). A wrong answer is none: the run did what it should.
    """
    answer = answer_view(state)
    has_failed = answer.label == ANSWER_STATE_LABELS[ERROR]
    css_class = answer.icon
    icon_class = ""
    if answer.icon == "wait":
        css_class = "run"
        icon_class = "spin"
    return render_template(
        "show/templates/answer_banner.html",
        css_class=css_class,
        role="alert" if has_failed else "status",
        icon=icon(answer.icon, icon_class),
        headline=shorten_at_word(answer.headline, MAX_BANNER_CHARS),
        is_long=len(answer.headline) > MAX_LARGE_CHARS,
        label=answer.label,
        details=answer.small_text(MAX_BANNER_CHARS),
        right_answer=_render_right_answer(state.run, state.answer),
    )


def _render_right_answer(run: Run, answer: Answer | None) -> Html:
    """Render what is known to be the right answer of a run; nothing if it is not known.

    Values that have the same name as other ones in ``answer`` are told apart from these.
    """
    if run.right_answer is None or not run.right_answer.labels:
        return Html()
    label = muted_text("the right answer is ")
    right_text = shorten(run.right_answer.text_beside(answer), MAX_BANNER_CHARS)
    text = tag("b", right_text, class_="right")
    return div("", label, text)


def _render_steps(
    groups: Mapping[str | None, Sequence[Step]],
    supervisor: str | None,
    depth: int,
    state: RunState,
    context: RenderContext,
    blamed_step: str,
) -> list[Html]:
    """Render the steps of one supervisor, each with those that it supervises inside it.

    ``groups`` are the steps by the key of their supervisor; those at the top stand under None. The
    step with the key ``blamed_step`` is marked.
    """
    rendered = []
    for step in groups.get(supervisor, ()):
        supervised = _render_steps(groups, step.key, depth + 1, state, context, blamed_step)
        is_blamed = step.key == blamed_step
        collapsed = _render_collapsed_step(
            step, depth, supervised, state, context, is_blamed=is_blamed
        )
        rendered.append(collapsed)
    return rendered


def _render_collapsed_step(
    step: Step,
    depth: int,
    supervised: list[Html],
    state: RunState,
    context: RenderContext,
    *,
    is_blamed: bool,
) -> Html:
    """Render a step as one line that expands to the step in full and to those it supervises.

    ``supervised`` are these, already rendered. A step that failed or is blamed, and a supervisor at
    the top, are expanded at once. ``depth`` is the number of supervisors above the step, by which
    it is indented.
    """
    run = state.run
    kind = displayed_agent_kind(run, step.agent)
    is_silent = skipped_model(step, kind)
    badge = Html()
    if kind != "group":  # the mark of the fold is mark enough
        badge = agent_kind_badge(kind, small=True, outlined=is_silent)
    step_state = state.step_state(step.key)
    supervises = bool(supervised)
    is_top_supervisor = supervises and depth == 0
    inputs = _render_input_table(step)
    return render_template(
        "show/templates/run_step.html",
        is_expanded=step.error or is_blamed or is_top_supervisor,
        is_blamed=is_blamed,
        depth=depth,
        kind_badge=badge,
        agent_name=display_name(step.agent),
        role=display_name(step.role),
        state_badge=render_row_badge(step, step_state, False),
        outcome=step.outcome if step.done else "",
        duration=render_step_time(step),
        body=render_step_body(step, context, run.calls, inputs, supervises=supervises),
        supervised_steps=supervised,
    )


def _render_input_table(step: Step) -> Html:
    """Render the inputs of a step as a table: the name of each, and its value in one line."""
    rows = []
    for name, value in step.inputs.items():
        line = tag("bdi", one_line(value))
        rows.append((display_name(name), line))
    return table((), rows)
