"""What a person played: which step a request belongs to, and what a model would have said in that place."""

from __future__ import annotations

from collections.abc import Iterable

from kgwb.errors import InputError, KgwbError
from kgwb.llm.base import ChatModel
from kgwb.llm.human import Asked, Human
from kgwb.record import Step
from kgwb.run import Run
from kgwb.ui.session import Session


def step_of(asked: Asked, running: Iterable[Step]) -> Step | None:
    """Which of the steps that are running waits for the reply; None if the request is none of theirs."""
    request = asked.request
    waiting = [step for step in running if request.task in step.prompts]
    if len(waiting) > 1:  # entities side by side
        said = list(request.variables.values())
        waiting = [step for step in waiting if step.subject in said] or waiting
    return waiting[0] if waiting else None


def played(session: Session) -> tuple[Step, ...]:
    """The finished steps in which a person replied, in flow order."""
    return tuple(
        step
        for step in session.steps.values()
        if step.done and any(step.known[key].request.get("model") == Human.name for key in step.calls)
    )


def beside(run: Run, key: str, model: ChatModel) -> Step:
    """The same step with its agent's replies from another model; a failure is in the step's ``error``.

    All before it is as in ``run``, which stays as it is. Raises whatever keeps the other run from getting to
    this step.
    """
    other = run.fork(models={**run.models, run[key].agent: model})
    other.restore(key)
    try:
        other.go(until=key)
    except InputError:
        raise
    except KgwbError:
        if key not in other.by_key:
            raise
    return other[key]
