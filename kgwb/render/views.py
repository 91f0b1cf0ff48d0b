"""Whole views of a record: a run, a step, an answer, the difference of two runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from kgwb.flow import Answer
from kgwb.record import Attempt, Call, Step, StepDifference
from kgwb.render.html import Html, aside, badges, fold, join, page, preformatted, table, tag
from kgwb.render.records import record, says_more
from kgwb.render.text import NO_CALLS, outcome, summary, unequal_lines
from kgwb.render.words import BASELINE, Names, count, made, names_in, names_of, totals_text

if TYPE_CHECKING:
    from kgwb.run import Run


def run_html(run: Run) -> str:
    """A run: question, answer with the triples it stands on, totals, and every step to unfold."""
    names = names_of(run)
    known = {step.key for step in run.steps}
    roots = [step for step in run.steps if step.parent not in known]
    return page(
        tag("div", "Question: ", tag("b", run.question)),
        _answered(run, names),
        tag("div", aside(f"{run.status}: {totals_text(run.totals)}")),
        tag("div", aside(_set_up(run))),
        *(_step(step, run.calls, names, run.steps) for step in roots),
    )


def _answered(run: Run, names: Names) -> Html:
    if run.error is not None:
        return tag("div", preformatted(f"failed: {run.error}"), class_="kgwb-bad")
    return _answer(run.answer, names) if run.answer is not None else Html()


def _set_up(run: Run) -> str:
    models = {name: model.name for name, model in run.models.items()} or {"": "recorded replies"}
    told = ", ".join(f"{name}: {model}" if name else model for name, model in models.items())
    about = f"{run.system.name} on {run.kg.source}, model {told}, profile {run.settings.profile}"
    return f"{about}. {BASELINE}." if "rules" in models.values() else about


def step_html(step: Step, calls: Mapping[str, Call] = NO_CALLS) -> str:
    """One step: what came in and out, prompt and replies; ``calls`` (``Run.calls``) hold the prompts."""
    return page(_step(step, calls, names_in([step], calls), (), unfolded=True))


def answer_html(answer: Answer) -> str:
    """An answer with the triples that each value stands on."""
    return page(_answer(answer, {}))


def _answer(answer: Answer, names: Names) -> Html:
    first = summary(answer, names) if answer else "No answer"
    return join(tag("div", first, class_="kgwb-answer"), record(answer, names))


def _step(
    step: Step, calls: Mapping[str, Call], names: Names, steps: Sequence[Step], *, unfolded: bool = False
) -> Html:
    """A step with those it supervises among ``steps``, whose records are then not shown twice."""
    below = [other for other in steps if other.parent == step.key]
    shown = step.done and not below and says_more(step.output)
    return fold(
        join(tag("b", step.key), " ", outcome(step), badges(made(step, calls))),
        tag("div", step.error, class_="kgwb-bad") if step.error else "",
        *(tag("div", note, class_="kgwb-note") for note in step.notes),
        record(step.output, names) if shown else "",
        _inputs(step, names, steps),
        *(_attempt(number, attempt, calls) for number, attempt in enumerate(step.attempts, 1)),
        *(_step(other, calls, names, steps) for other in below),
        unfolded=unfolded or bool(step.error),
    )


def _inputs(step: Step, names: Names, steps: Sequence[Step]) -> Html:
    """What came in, and which earlier step yielded it."""
    earlier = [one for one in steps[: steps.index(step)] if one.key != step.parent] if steps else []

    def told(value: object) -> str:
        maker = next((one.key for one in earlier if one.done and one.output is value), "")
        return f"{summary(value, names)} (from {maker})" if maker else summary(value, names)

    rows = [(name, told(value)) for name, value in step.inputs.items()]
    return fold(count(len(rows), "input"), table(("name", "value"), rows)) if rows else Html()


def _attempt(number: int, attempt: Attempt, calls: Mapping[str, Call]) -> Html:
    """The prompt as it was sent, the reply as it came, and each check by name."""
    checks = [
        tag("div", f"✗ failed: {check.name}: {check.problem}", class_="kgwb-bad")
        if check.problem
        else tag("div", f"✓ passed: {check.name}", class_="kgwb-good")
        for check in attempt.checks
    ]
    call = calls.get(attempt.call)
    head = f"attempt {number}: {'accepted' if attempt.accepted else 'not accepted'}"
    return fold(head, *_sent(call), tag("div", "reply"), preformatted(attempt.reply), *checks)


def _sent(call: Call | None) -> list[Html]:
    if call is None:
        return []
    reply = call.result
    tokens = f"{reply.prompt_tokens} + {reply.completion_tokens} tokens"
    told = (
        f"{call.request['model']}, mode {reply.mode}, {tokens}, {call.seconds:.2f} s, taken {call.taken_at}"
    )
    messages = [join(aside(role), preformatted(text)) for role, text in call.request["content"]["messages"]]
    return [tag("div", aside(told)), fold("prompt as sent", *messages)]


def difference_html(differences: Sequence[StepDifference]) -> str:
    """Two runs side by side; each step that differs unfolds into what it yielded in either."""
    unequal = [one for one in differences if one.status != "same"]
    head = f"{len(unequal)} of {count(len(differences), 'step')} differ" if unequal else "no step differs"
    return page(tag("div", tag("b", head)), *map(_difference, unequal))


def _difference(one: StepDifference) -> Html:
    what = f" in {', '.join(one.what)}" if one.what else ""
    head = join(tag("b", one.key), f": {one.status}{what}")
    sides = [join(*(tag("div", line) for line in told)) for told in unequal_lines(one)]
    return fold(head, table(("first", "second"), [sides]))
