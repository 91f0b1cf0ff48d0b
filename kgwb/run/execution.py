"""Where an execution is, and where it stops."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, NamedTuple

from kgwb.run.steps import Step


class Frame(NamedTuple):
    """The position of the execution on one thread."""

    step: Step
    """The step that is being executed. Outside of all steps, one without a key."""
    steps: list[Step]
    """The list that the next step is added to."""
    run: Any
    """The run that is executed; an ``Engine``."""


current_frame: ContextVar[Frame] = ContextVar("kgwb_frame")
"""The position of the execution on this thread or task; not set outside of executions."""


def current_run() -> Any:
    """Return the run that is being executed here; None outside of an execution."""
    frame = current_frame.get(None)
    if frame is None:
        return None
    return frame.run


@dataclass(frozen=True, slots=True)
class StopCondition:
    """Where an execution stops. By default it does not stop before its end."""

    count: int | None = None
    """Stop when so many steps are done."""
    after: frozenset[str] = frozenset()
    """Stop after a step with one of these keys, or of one of these agents."""
    after_position: int = 0
    """Steps up to this position do not count for ``after``: the run has paused there before."""
    before: frozenset[str] = frozenset()
    """Stop before a step with one of these keys, or of one of these agents."""
    begun: frozenset[str] = frozenset()
    """Keys of steps that had begun when the run paused; they do not count for ``before``."""
    preview_of: str = ""
    """Stop where this agent or step would ask its model, or at any call that is not recorded."""

    @property
    def is_stepping(self) -> bool:
        """Whether the execution is to stop at certain steps, so that their order matters."""
        if self.count is not None:
            return True
        return bool(self.after) or bool(self.before)

    def stops_before(self, step: Step) -> bool:
        """Return whether the execution stops before it executes this step."""
        if step.key in self.begun:
            return False
        return step.key in self.before or step.agent in self.before

    def stops_after(self, step: Step, position: int) -> bool:
        """Return whether the execution stops after this step; ``position`` steps are done with it.

        It does once ``count`` steps are done, or if ``after`` has the key or the agent of the step
        and the step lies beyond ``after_position``, where a paused execution goes on.
        """
        if self.count is not None and position >= self.count:
            return True
        if position <= self.after_position:
            return False
        return step.key in self.after or step.agent in self.after

    def is_preview(self, step: Step) -> bool:
        """Return whether it is the request of this step to its model that is previewed."""
        if not step.key:
            return False
        return self.preview_of in (step.agent, step.key)
