"""The widget of one agent of a run."""

from __future__ import annotations

from kgwb.show import html as h
from kgwb.show.html import Html
from kgwb.show.run import render_step_header
from kgwb.ui.live import render_failure
from kgwb.ui.session import Session
from kgwb.ui.step_panel import StepPanel


class AgentCell(StepPanel):
    """The cell of one agent. If the agent has several steps, the person chooses one of them.

    While a person who plays the agent is asked, only the form of the reply is shown.
    """

    def __init__(self, session: Session, agent: str) -> None:
        """``agent`` is the name of an agent or the key of a step.

        Raises SettingError if the system has no such agent.
        """
        session.run.system.agent_spec(agent)
        super().__init__(session, agent)

    def view(self) -> Html:
        """Render the panel of the step, the current task, and a failure of another step.

        If the person is asked for a reply, only the form of the reply is rendered.
        """
        person = self.render_child("person")
        if self.human_reply.shown_request is not None:
            return person
        return h.join(
            person, self.render_panel(), self._render_task(), self._render_failure_elsewhere()
        )

    def _render_task(self) -> Html:
        task = self.session.current_task or self.session.embeddings_loader.current_task
        return h.div("band soft", task, " …") if task else Html()

    def _render_failure_elsewhere(self) -> Html:
        """Render the failure of the session, unless this step has an error or a task is executed."""
        failure = self.session.failure
        step_shows_error = self.step is not None and bool(self.step.error)
        if failure is None or step_shows_error or self.session.current_task:
            return Html()
        return h.div("band", render_failure(failure), role="alert")

    def render_static(self) -> Html:
        """Render the panel of the step, or its header alone if it was not run."""
        if self.step is not None:
            return self.render_panel()
        header = render_step_header(self.session.run_state(), self.key)
        return h.join(header, h.div("body soft", "Not run when this was displayed."))

    def __repr__(self) -> str:
        return repr(self.step) if self.step is not None else f"{self.key}: not run yet"
