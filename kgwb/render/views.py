"""Whole views of a record: a run, a step, an answer, the difference of two runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from kgwb.flow import Answer
from kgwb.llm.base import Message
from kgwb.record import Attempt, Call, Step
from kgwb.render.html import Html, aside, badges, fold, join, page, preformatted, table, tag
from kgwb.render.records import record, says_more, step_record
from kgwb.render.text import NO_CALLS, outcome, summary
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
        step_record(step, names) if shown else "",
        inputs(step, names, steps),
        *(attempt(number, one, calls) for number, one in enumerate(step.attempts, 1)),
        *(_step(other, calls, names, steps) for other in below),
        unfolded=unfolded or bool(step.error),
    )


def inputs(step: Step, names: Names, steps: Sequence[Step]) -> Html:
    """What came in, and which earlier step yielded it."""

    def told(value: object) -> str:
        maker = maker_of(value, step, steps)
        return f"{summary(value, names)} (from {maker})" if maker else summary(value, names)

    rows = [(name, told(value)) for name, value in step.inputs.items()]
    return fold(count(len(rows), "input"), table(("name", "value"), rows)) if rows else Html()


def maker_of(value: object, step: Step, steps: Sequence[Step]) -> str:
    """Key of the earlier step that yielded what came in to a step; empty if it came from the question."""
    earlier = [*steps[: steps.index(step)]] if step in steps else []
    return next(
        (one.key for one in earlier if one.key != step.parent and one.done and one.output is value), ""
    )


def attempt(number: int, made: Attempt, calls: Mapping[str, Call]) -> Html:
    """The prompt as it was sent, the reply as it came, and each check by name."""
    checks = [
        tag("div", f"✗ failed: {check.name}: {check.problem}", class_="kgwb-bad")
        if check.problem
        else tag("div", f"✓ passed: {check.name}", class_="kgwb-good")
        for check in made.checks
    ]
    call = calls.get(made.call)
    head = f"attempt {number}: {'accepted' if made.accepted else 'not accepted'}"
    return fold(head, *_sent(call), tag("div", "reply"), preformatted(made.reply), *checks)


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


def sent_html(messages: Sequence[Message]) -> Html:
    """The messages of a request, each under its role."""
    return join(*(join(aside(message.role), preformatted(message.content)) for message in messages))
