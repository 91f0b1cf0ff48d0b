"""The widget of one agent of a run."""

from __future__ import annotations

from kgwb.run.answers import Reading
from kgwb.show import html as h
from kgwb.show.html import Html
from kgwb.show.run import render_answer_banner, render_notices, render_step_header
from kgwb.ui.conversation import offered_readings
from kgwb.ui.live import Event, argument_of, render_failure, render_page
from kgwb.ui.session import Session, session_of
from kgwb.ui.step_panel import StepPanel


class AgentCell(StepPanel):
    """The cell of one agent. If the agent has several steps, the person chooses one of them.

    While a person who plays the agent is asked, only the form of the reply is shown. The cell of the
    agent that gives the answer offers the other readings of the question.
    """

    def __init__(self, session: Session, agent: str) -> None:
        """``agent`` is the name of an agent or the key of a step.

        Raises SettingError if the system has no such agent.
        """
        session.run.system.agent_spec(agent)
        self.readings: dict[tuple[int, Reading], Session] = {}
        """The runs that read the question in another way, by number and reading."""
        super().__init__(session, agent)

    def view(self) -> Html:
        """Render what leaves the machine, the panel of the step, the current task, and a failure of another step.

        If the person is asked for a reply, only the form of the reply is rendered.
        """
        person = self.render_child("person")
        if self.human_reply.shown_request is not None:
            return person
        return h.join(
            person,
            render_notices(self.session.notices),
            self.render_panel(),
            self._render_readings(),
            self._render_task(),
            self._render_failure_elsewhere(),
        )

    def do_reading(self, event: Event) -> None:
        """Answer the question as another reading has it, and show that answer below this one.

        The run of the cell stays as it is. The event has the number of the reading. Raises
        SettingError if there is no such reading.
        """
        number = int(argument_of(event))
        fork = self.session.run.read_as(number)
        session = session_of(fork)
        self.subscribe_to(session)
        self.readings[number, self.session.run.readings[number - 1]] = session
        session.go()

    def _render_readings(self) -> Html:
        """Render a button for each other reading that is offered, and the answers of those chosen.

        Nothing is rendered if the step of the cell does not give the answer of the run.
        """
        run = self.session.run
        step = self.step
        if step is None or run.answer is None:
            return Html()
        if not run.answer.is_given_by(step.output):
            return Html()
        offered = offered_readings(run)
        texts = {number: text for number, text, _ in offered}
        readings = dict(enumerate(run.readings, 1))
        answers = []
        # A copy: the person may choose another reading while a worker draws.
        for (number, reading), session in tuple(self.readings.items()):
            # After an edit, the answer may have other readings under these numbers
            if readings.get(number) == reading:
                text = texts.get(number, reading.other)
                answer = render_answer_banner(session.run_state())
                answers.append((text, answer))
        return render_page("readings.html", offered=offered, answers=answers)

    def _render_task(self) -> Html:
        """Render the session's current task, or while it is idle the loading of the embeddings.

        Nothing is rendered if there is neither.
        """
        task = self.session.current_task or self.session.embeddings_loader.current_task
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
        header = render_step_header(self.session.run_state(), self.key)
        remark = h.div("body soft", "Not run when this was displayed.")
        return h.join(header, remark)

    def __repr__(self) -> str:
        if self.step is None:
            return f"{self.key}: not run yet"
        return repr(self.step)

    @property
    def accessible_name(self) -> str:
        return f"cell: {self.key}"
