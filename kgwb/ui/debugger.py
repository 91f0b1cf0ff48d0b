"""The debugger of a run of any system, and the comparison of two runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from kgwb.bench.formats import DEFAULT_FILE, Gold, keep_as_gold
from kgwb.bench.report import Report
from kgwb.errors import SettingError
from kgwb.records import nested_records
from kgwb.run import Run
from kgwb.run.agents import agent_of_key
from kgwb.run.answers import Answer
from kgwb.run.differences import compare_steps
from kgwb.run.models import open_model
from kgwb.run.steps import Step
from kgwb.show import html as h
from kgwb.show.answers import render_answer_parts
from kgwb.show.comparison import ComparedRun, render_comparison
from kgwb.show.explain import render_predicates, render_reasons
from kgwb.show.html import Html
from kgwb.show.records import render
from kgwb.show.run import render_answer_banner, render_notices, render_question_header, render_run
from kgwb.show.run_state import RunState, answer_view
from kgwb.show.terms import context_of, triple_key
from kgwb.show.timeline import render_pipeline, render_timeline, render_waterfall
from kgwb.terms import Triple
from kgwb.text import display_name, single_line
from kgwb.ui.conversation import find_able_system, hand_over, offered_readings
from kgwb.ui.live import (
    Event,
    Live,
    Part,
    TabOption,
    argument_of,
    form_of,
    read_name,
    render_page,
    render_progress,
    typed_text,
)
from kgwb.ui.session import Session, session_of
from kgwb.ui.step_panel import StepPanel
from kgwb.ui.subgraph import SubgraphPanel

VIEW_LABELS = {"step": "Step", "answer": "Answer", "graph": "Subgraph", "compare": "Compare"}
"""The labels of the debugger's views, by name."""
WIDE_VIEWS = ("graph", "compare")
"""The views that take the room of the timeline too.

Beside it, the answer at the right end of a graph's picture would be out of sight.
"""
ALL_ROLES = "all roles"
"""The tab that shows the steps of all roles, and of agents without one."""


class Fork(NamedTuple):
    """A fork of the debugger's run that is compared with it."""

    name: str
    """What was changed, in words."""
    session: Session


class Debugger(StepPanel):
    """The debugger of one run: step, continue, stop at breakpoints, go back, edit, compare."""

    is_in_debugger = True

    def __init__(self, session: Session, *, step_key: str = "") -> None:
        """``step_key`` is a step to show first; by default it is the step done last."""
        self.selected_view = "step"
        self.selected_role = ""
        """The role whose steps the timeline shows; "" for all steps."""
        self.follows_latest_step = not step_key
        """Whether the step that was done last is shown. A click on another step ends it."""
        self.forks: list[Fork] = []
        """The latest fork is the last."""
        self.subgraph_panel: SubgraphPanel | None = None
        """Made when it is first shown."""
        self.gold_file = DEFAULT_FILE
        """The question set in which the answer is kept as gold."""
        super().__init__(session, step_key)

    def children(self) -> Mapping[str, Part | None]:
        """Return the person's form, and the subgraph once it was shown."""
        return {**super().children(), "graph": self.subgraph_panel}

    @property
    def key(self) -> str:
        """The key of the step that is shown.

        It is the one that the person chose, else the one that was begun last, else the name of the
        system's first agent.
        """
        if self.requested_key and not self.follows_latest_step:
            return super().key
        if self.run.steps:
            return self.run.steps[-1].key
        return self.run.system.agents[0].name

    def announcement(self) -> str:
        """Return what the selected view shows: the step, the clicked node, or the compared run.

        At the end of the run the answer is in it, and after an edit, how to see the new answer.
        """
        if self.selected_view == "graph" and self.subgraph_panel is not None:
            return self.subgraph_panel.announcement()
        if self.selected_view == "compare" and self.forks:
            name, session = self.forks[-1]
            run = session.run
            return f"{name}: {session.current_task or run.answer or run.status}"
        spoken = super().announcement()
        state = self.session.run_state()
        if state.has_stale_steps and not state.current_task:
            return f"{spoken}; {answer_view(state).headline}"
        answer = single_line(self.run.answer)
        if self.follows_latest_step and self.run.status == "done" and answer not in spoken:
            return f"{answer}; {spoken}"
        return spoken

    # The page

    @property
    def _view_id(self) -> str:
        """The id of the selected view on a page, which may show several debuggers."""
        return f"view-{id(self):x}"

    def view(self) -> Html:
        """Render the whole debugger: answer, notices, buttons, pipeline, timeline, and the selected view.

        If a person plays an agent, their form is shown, too. Buttons that cannot be pressed now are
        disabled: going back without a step, going on when the run has ended, and both while a
        command is executed.
        """
        state = self.session.run_state()
        key = self.key
        return render_page(
            "debugger.html",
            header=render_question_header(self.run),
            answer_banner=render_answer_banner(state),
            able_system=find_able_system(self.run),
            readings=offered_readings(self.run),
            notices=render_notices(self.session.notices),
            person=self.render_child("person"),
            debugger=self,
            session=self.session,
            has_ended=state.has_ended,
            view_tabs=self._render_view_tabs(),
            view_id=self._view_id,
            view_label=VIEW_LABELS[self.selected_view],
            pipeline=render_pipeline(state, key),
            role_tabs=self._render_role_tabs(),
            timeline=render_timeline(state, key, self.selected_role),
            contents=self._render_contents(),
            is_wide=self.selected_view in WIDE_VIEWS,
        )

    def _render_view_tabs(self) -> Html:
        """Render the views as tabs; "Compare" has the number of things to compare with.

        These are the states before each edit, and the forks. A run that can only be read has no
        such tab.
        """
        options: list[TabOption] = []
        for name, label in VIEW_LABELS.items():
            if name == "compare" and self.run.read_only:
                continue
            number: object = ""
            if name == "compare":
                number = len(self.session.history) + len(self.forks)
            options.append((name, label, number))
        return h.tabs(options, self.selected_view, "view", self._view_id, borderless=True)

    def _render_role_tabs(self) -> Html:
        """Render the roles of the system as tabs, which filter the timeline; nothing without any.

        The first tab shows all roles.
        """
        roles = self.run.system.roles
        if not roles:
            return Html()
        options = []
        for role in (ALL_ROLES, *roles):
            options.append((role, display_name(role), ""))
        selected = self.selected_role or ALL_ROLES
        return h.tabs(options, selected, "role", f"steps-{self._view_id}", borderless=True)

    def _render_contents(self) -> Html:
        """Render the selected view: the answer, the subgraph, the comparison, or else the step."""
        if self.selected_view == "answer":
            return self._render_answer()
        if self.selected_view == "graph":
            return self._render_subgraph()
        if self.selected_view == "compare":
            return self._render_comparison()
        return self.render_panel()

    def render_static(self) -> Html:
        """Render the run as it stands: answer, steps and times."""
        return render_run(self.run)

    def __repr__(self) -> str:
        return repr(self.run)

    @property
    def accessible_name(self) -> str:
        return f"debugger: {self.run.question}"

    # The views

    def _render_answer(self) -> Html:
        """Render the answer, why it is empty if it is, and the time of each step, collapsed.

        Before the run is done, a text stands in the place of the answer.
        """
        steps = self.session.all_steps
        answer = self.run.answer
        parts = [h.muted_text("No answer yet.")]
        if answer is not None and self.run.status == "done":
            context = context_of(self.run, can_mute=self.can_mute)
            is_doubt_shown = answer_view(self.session.run_state()).has_doubt
            parts = render_answer_parts(answer, context, is_doubt_shown=is_doubt_shown)
            reasons = render_reasons(answer, steps, self.run.unrecorded_graph)
            parts.append(reasons)
            parts.append(self._render_things(answer))
            parts += self._render_empty_results(answer, steps)
        title = h.muted_text("Where the time went")
        waterfall = render_waterfall(steps, self.run.calls)
        times = h.collapsible(title, waterfall, key="time")
        return h.div("body stack", *parts, self._render_gold_form(), times)

    def _render_things(self, answer: Answer) -> Html:
        """Render the things that an unanswered question is about, with their predicates.

        Nothing is rendered without a step that is shown, or without such things. Replies of the
        graph are kept with the step.
        """
        step = self.step
        things = self.things_of(answer)
        if step is None or not things:
            return Html()
        predicates = render_predicates(things, self._context_of(step))
        return h.join(predicates, render_progress(self.graph_worker))

    def _render_gold_form(self) -> Html:
        """Render the form that keeps the run's answer as gold, filled with its values and query.

        Nothing is rendered before the run is done.
        """
        if self.run.answer is None or self.run.status != "done":
            return Html()
        gold = Gold.of_run(self.run)
        return render_page(
            "gold_form.html",
            answers=gold.to_text(),
            row_count=max(2, len(gold.answers or ())),
            sparql=gold.sparql,
            file=self.gold_file,
        )

    def _render_empty_results(self, answer: Answer, steps: tuple[Step, ...]) -> list[Html]:
        """Render what the graph replied to "Why is it empty?" for the queries of an answer.

        The replies are kept with the last step whose output is the answer. Empty if there are none.
        """
        answering = [step for step in steps if step.done and answer.is_given_by(step.output)]
        if not answering:
            return []
        context = self._context_of(answering[-1])
        replies = []
        # A copy: another thread may add a reply meanwhile.
        for question, reply in tuple(context.graph_results.items()):
            if question.startswith("why"):
                replies.append(render(reply, context))
        return replies

    def _render_subgraph(self) -> Html:
        """Render the subgraph panel, which is made when it is first shown."""
        if self.subgraph_panel is None:
            self.subgraph_panel = SubgraphPanel(self.session, outer=self)
        return self.render_child("graph")

    def _render_comparison(self) -> Html:
        """Render two compared runs, and the buttons that run the question with changes.

        The changes are the profiles of the system, and a model whose name is typed.
        """
        return render_page(
            "debugger_comparison.html",
            comparison=self._render_compared_runs(),
            profiles=self.run.system.settings.profile_changes(),
        )

    def _render_compared_runs(self) -> Html:
        """Render the run beside its latest fork, else before and after the latest edit.

        Without forks and edits, and for a fork that is still executed, it is a text. A remark says
        if steps are stale after the edit.
        """
        now = ComparedRun("now", self.session.run_state())
        if self.forks:
            return self._render_latest_fork(now)
        history = self.session.history
        if not history:
            hint = "Nothing to compare yet. Edit a step and continue, or run the question again:"
            return h.div("body soft", hint)
        before = ComparedRun("before the edit", history[-1])
        remarks = None
        if now.state.has_stale_steps:
            remark = h.note("Some steps are stale. To compare them too, continue to the end.")
            remarks = h.div("body notes", remark)
        return h.join(remarks, render_comparison(before, now))

    def _render_latest_fork(self, now: ComparedRun) -> Html:
        """Render the run beside its latest fork; one that is still executed is a text and "Cancel"."""
        name, session = self.forks[-1]
        task = session.current_task
        if task:
            text = h.muted_text(f"{name}: {task} …")
            cancel = h.button("Cancel this run", "cancel_fork", "stop")
            return h.div("body row controls", text, cancel)
        return render_comparison(now, ComparedRun(name, session.run_state()))

    # Events

    def do_choose(self, event: Event) -> None:
        """Show the step of the event's ``arg``, a key or an agent's name, in the view "step".

        The debugger stays at this step when the run goes on. Raises SettingError if the system has
        no such agent.
        """
        key = self._checked_key(event)
        self.follows_latest_step = False
        self.requested_key = key
        self.selected_view = "step"
        self.selected_section = ""

    def do_view(self, event: Event) -> None:
        """Select the view that the event's ``arg`` names; "step" for any other name."""
        name = argument_of(event)
        self.selected_view = name if name in VIEW_LABELS else "step"

    def do_role(self, event: Event) -> None:
        """Show only the steps of the role in the event's ``arg``; all for another name."""
        role = argument_of(event)
        self.selected_role = role if role in self.run.system.roles else ""

    def do_stop(self, event: Event) -> None:
        """Set a breakpoint after the agent of the event's ``arg``, or remove it.

        ``arg`` is a step's key or an agent's name. Breakpoints of the step and of its agent are
        both removed. Raises SettingError if the system has no such agent.
        """
        key = self._checked_key(event)
        agent = agent_of_key(key)
        stops = {key, agent}
        breakpoints = self.run.breakpoints
        if breakpoints.isdisjoint(stops):
            breakpoints.add(agent)
        else:
            breakpoints.difference_update(stops)

    def do_step(self, event: Event) -> None:
        """Submit one more step, and follow it. Raises SettingError if the run has ended."""
        self._check_not_ended()
        self._follow_latest_step()
        self.session.step()

    def do_go(self, event: Event) -> None:
        """Submit an execution to the next breakpoint or the end, and follow it.

        Raises SettingError if the run has ended.
        """
        self._check_not_ended()
        self._follow_latest_step()
        self.session.go()

    def do_back(self, event: Event) -> None:
        """Submit going back by one step, and show the latest step then."""
        self._follow_latest_step()
        self.session.back()

    def do_start(self, event: Event) -> None:
        """Submit going back to the start of the run."""
        self._follow_latest_step()
        self.session.go(0)

    def _check_not_ended(self) -> None:
        """Raise SettingError if the run has ended and nothing is stale."""
        if self.session.run_state().has_ended:
            raise SettingError(
                "there is no next step: the run has ended",
                hint="go back, edit a step, or ask a step anew",
            )

    def _follow_latest_step(self) -> None:
        """Show the step that is done last, now and after each move."""
        self.follows_latest_step = True
        self.selected_section = ""
        self.selected_view = "step"

    def do_profile(self, event: Event) -> None:
        """Execute a fork under the profile in the event's ``arg``, and compare both runs.

        Raises SettingError for another name.
        """
        name = argument_of(event)
        self.run_fork(f"under profile {name}", settings=self.run.system.settings.of_profile(name))

    def do_model(self, event: Event) -> None:
        """Execute a fork with the model that was typed for all agents, and compare it with the run.

        Raises SettingError for a text that looks like a key, and UnknownModelError.
        """
        name = read_name(event, "model")
        self.run_fork(f"with model {name}", models=open_model(name))

    def do_cancel_fork(self, event: Event) -> None:
        """Cancel the forks that are being executed; what they have asked is kept."""
        for fork in self.forks:
            if fork.session.current_task:
                fork.session.cancel()

    def do_handover(self, event: Event) -> None:
        """Ask the system that can express the question, and show its run beside this one.

        Raises SettingError if there is no such system.
        """
        other_run = hand_over(self.run)
        self._run_beside(f"asked {other_run.system.name}", other_run)

    def do_reading(self, event: Event) -> None:
        """Execute a fork that reads the question in another way, and show it beside this run.

        The event has the number of the reading. Raises SettingError if there is no such reading.
        """
        number = int(argument_of(event))
        fork = self.run.read_as(number)
        text = self.run.readings[number - 1].other
        for offered, offered_text, _ in offered_readings(self.run):
            if offered == number:
                text = offered_text
        self._run_beside(f"read as: {text}", fork)

    def do_gold(self, event: Event) -> str:
        """Keep the question in a file with the answers and the query of the form, as gold.

        Returns a message that says so. Raises InputError if the file cannot be used, and QueryError
        or QueryRefusedError for a query that the gate refuses.
        """
        form = form_of(event)
        self.gold_file = form["gold_file"].strip() or DEFAULT_FILE
        columns = Gold.of_run(self.run).columns
        answers = typed_text(form["answers"])
        sparql = typed_text(form["sparql"])
        gold = Gold.from_text(answers, sparql, columns)
        entry = keep_as_gold(self.run, self.gold_file, gold)
        return f"kept as question {entry['id']} of {self.gold_file}, which kgwb bench reads"

    def do_mute(self, event: Event) -> None:
        """Execute a fork without a triple that supports an answer, and show it beside the run.

        Raises SettingError if the event names no such triple, or in a replay, and GraphError for
        an endpoint.
        """
        triple = self._supporting_triples().get(argument_of(event))
        graph = self.run.unrecorded_graph
        if triple is None or graph is None:
            raise SettingError(
                "the triple was not muted: the run has changed, and its answer does not stand on it any more",
                hint="open the tab Answer, and press Mute beside a triple that is listed there",
            )
        self.run_fork("one triple muted", kg=graph.without(triple))

    def _supporting_triples(self) -> dict[str, Triple]:
        """Return the triples that support the answers of all steps, by ``triple_key``.

        Answers inside of other outputs count. Empty if no step has an answer.
        """
        outputs = tuple(step.output for step in self.run.steps if step.done)
        triples = {}
        for record in nested_records(outputs):
            if isinstance(record, Answer):
                for triple in record.support:
                    triples[triple_key(triple)] = triple
        return triples

    def run_fork(self, name: str, **changes: Any) -> None:
        """Execute a fork with changes, those of ``Run.fork``, in the fork's own session.

        The view "Compare" is opened, and shows it beside the run. Raises what ``Run.fork`` raises.
        """
        self._run_beside(name, self.run.fork(**changes))

    def _run_beside(self, name: str, run: Run) -> None:
        """Execute another run in its own session, and open the view "Compare" with both.

        It is added to ``forks``; the debugger is drawn again when its session changes.
        """
        session = session_of(run)
        self.subscribe_to(session)
        self.forks.append(Fork(name, session))
        self.selected_view = "compare"
        session.go()


class ComparisonPanel(Live):
    """Two runs side by side by step. It follows those that are given as sessions."""

    def __init__(
        self,
        first: Run | Session,
        second: Run | Session,
        names: tuple[str, str] = ("first", "second"),
    ) -> None:
        self.runs = (first, second)
        self.names = names
        super().__init__()
        for run in self.runs:
            if isinstance(run, Session):
                self.subscribe_to(run)

    def _compared_runs(self) -> list[ComparedRun]:
        """Return both runs with their names and present states, in order.

        The state of a run that has a session is that of the session, which knows stale steps.
        """
        compared = []
        for name, run in zip(self.names, self.runs, strict=True):
            if isinstance(run, Session):
                state = run.run_state()
            else:
                state = RunState.of(run)
            compared.append(ComparedRun(name, state))
        return compared

    def view(self) -> Html:
        return render_comparison(*self._compared_runs())

    def __repr__(self) -> str:
        """Return the names of both runs, and their differences in one line."""
        first, second = self._compared_runs()
        first_name = single_line(first.name)
        second_name = single_line(second.name)
        differences = compare_steps(first.state.steps, second.state.steps)
        return f"ComparisonPanel({first_name} and {second_name}: {differences})"


def debug_question(report: Report, question: str, **options: Any) -> Debugger:
    """Return the debugger of a question of a report, at the step to blame, with the gold answer.

    ``question`` is an id. ``options`` are those of ``Report.measured_run``, which raises InputError
    if the question's run was not kept.
    """
    measured = report.measured_run(question, **options)
    session = session_of(measured.run)
    return Debugger(session, step_key=measured.blamed_step)
