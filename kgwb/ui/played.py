"""What a person played: which step a request belongs to, and what a model would have said in that place."""

from __future__ import annotations

from collections.abc import Iterable

from kgwb.errors import InputError, InvalidReplyError, KgwbError
from kgwb.llm.base import ChatModel
from kgwb.llm.human import Asked, Human
from kgwb.record import Step
from kgwb.run import Run
from kgwb.ui.session import Session


def step_of(asked: Asked, steps: Iterable[Step]) -> Step | None:
    """Which of the steps waits for the reply; None if the request is none of theirs."""
    request = asked.request
    waiting = [step for step in steps if request.task in step.prompts and not (step.done or step.error)]
    said = list(request.variables.values())
    about = [step for step in waiting if step.subject in said]  # entities side by side
    return next(iter(about or waiting), None)


def played(session: Session) -> tuple[Step, ...]:
    """The steps in which a person replied, in flow order."""
    return tuple(
        step
        for step in session.steps.values()
        if any(step.known[key].request.get("model") == Human.name for key in step.calls)
    )


def refused(session: Session) -> Step | None:
    """The step that ended the run because no reply of the person passed its checks."""
    attempts = session.failure.attempts if isinstance(session.failure, InvalidReplyError) else None
    return next((step for step in played(session) if tuple(step.attempts) == attempts), None)


def beside(run: Run, key: str, model: ChatModel) -> Step:
    """The same step with its agent's replies from another model; a failure is in the step's ``error``.

    All before it is as in ``run``, which stays as it is. Raises whatever keeps the other run from getting to
    this step.
    """
    other = run.fork(models={**run.models, run[key].agent: model})
    other.restore(key)
    try:
        other.go(until=key)
    except KgwbError as exc:
        if isinstance(exc, InputError) or key not in other.by_key:
            raise
    return other[key]
