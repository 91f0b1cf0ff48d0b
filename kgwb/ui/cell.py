"""The widget of one agent of a run."""

from __future__ import annotations

from kgwb.show import html as h
from kgwb.show.data_notice import render_notices
from kgwb.show.html import Html
from kgwb.show.step import render_step_header
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
        """Render what leaves the machine, the panel of the step, the current task, and a failure of another step.

        If the person is asked for a reply, only the form of the reply is rendered.
        """
        person = self.render_child("person")
        if self.human_reply.shown_request is not None:
            return person
        notices = render_notices(self.session.notices)
        panel = self.render_panel()
        task = self._render_task()
        failure = self._render_failure_elsewhere()
        return h.join(person, notices, panel, task, failure)

    def _render_task(self) -> Html:
        """Render the session's current task, or while it is idle the loading of the embeddings.

        Nothing is rendered if there is neither.
        """
        task = self.session.current_task
        if not task:
            task = self.session.embeddings_loader.current_task
        if not task:
            return Html()
        return h.div("band soft", task, " …")

    def _render_failure_elsewhere(self) -> Html:
        """Render the failure of the session's latest task, if it is not one of this step.

        Nothing is rendered while a task is executed, or if this step has an error, which its panel
        shows.
        """
        failure = self.session.failure
        if failure is None or self.session.current_task:
            return Html()
        step = self.step
        if step is not None and step.error:
            return Html()
        return h.div("band", render_failure(failure), role="alert")

    def render_static(self) -> Html:
        """Render the panel of the step; if it was not run, its header and a remark."""
        if self.step is not None:
            return self.render_panel()
        state = self.session.run_state()
        header = render_step_header(state, self.key)
        remark = h.div("body soft", "Not run when this was displayed.")
        return h.join(header, remark)

    def __repr__(self) -> str:
        if self.step is None:
            return f"{self.key}: not run yet"
        return repr(self.step)
