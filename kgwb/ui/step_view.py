"""What is shown of one step: its state, its sections, and its form."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from kgwb.errors import KgwbError
from kgwb.kg.base import Graph
from kgwb.run.agents import agent_of_key
from kgwb.run.models import NewReplies
from kgwb.run.sampled import StepSample
from kgwb.run.steps import Step
from kgwb.show import explain
from kgwb.show import html as h
from kgwb.show.html import Html
from kgwb.show.output_form import OutputForm
from kgwb.show.prompt_form import estimate_tokens, render_template_editor
from kgwb.show.records import render
from kgwb.show.run import (
    render_attempts,
    render_inputs,
    render_new_replies,
    render_source,
    render_step_header,
    render_step_notes,
)
from kgwb.show.run_state import displayed_agent_kind, subject_text
from kgwb.show.terms import RenderContext, context_of
from kgwb.show.thing_predicates import Thing, render_predicates, things_of_refusal
from kgwb.show.timeline import model_calls_of
from kgwb.text import display_name, pluralize, shorten
from kgwb.ui.human import Person
from kgwb.ui.live import (
    Live,
    Part,
    TabOption,
    render_page,
    render_progress,
    text_input,
)
from kgwb.ui.prompt_editor import PromptEditor
from kgwb.ui.session import Session
from kgwb.ui.worker import Worker

MAX_SUBJECT_CHARS = 60
NOT_RUN_YET = (
    "Not run yet. Press “Run” to run the system up to the end of this agent. "
    "Its result can then be seen, and edited."
)


@dataclass(slots=True)
class StepResults:
    """What the panel knows of a step beyond the run, as long as the step's output is the same."""

    output: Any
    graph_results: dict[str, Any] = field(default_factory=dict)
    """Replies of the graph to questions about the output, by the name of the question."""
    new_replies: NewReplies | None = None
    """The replies to its model call, when it was asked again last."""
    typed_models: str = ""
    """The models that were typed then, and how often each was to be asked."""
    typed_times: str = "1"
    typed_form: Mapping[str, str] | None = None
    """The values of the form as they were typed."""


@dataclass(slots=True)
class SampleState:
    """One step's call, asked many times: what was typed, and what came of it."""

    typed_times: str = "5"
    typed_models: str = ""
    """Empty for the agent's own model."""
    cost: str = ""
    """What the typed number of calls takes, as it was estimated last."""
    sample: StepSample | None = None


class StepView(Live):
    """What is shown of a step, or of an agent that was not run yet."""

    is_in_debugger = False
    """Whether it is shown in a debugger, which has buttons to move through the run."""

    def __init__(self, session: Session, key: str) -> None:
        """``key`` is the key of a step or the name of an agent."""
        self.session = session
        self.run = session.run
        self.requested_key = key
        """The step or agent that the person wants to see."""
        self.selected_section = ""
        """The section that the person chose; empty for the one that fits the step's state."""
        self.revision = 0
        """Increased whenever the form must take over values from Python."""
        self.prompt_editor = PromptEditor(session)
        self.graph_worker = Worker()
        """Asks the graph questions about the output of the step."""
        self.human_reply = Person(session, self)
        self._results_by_step: dict[str, StepResults] = {}
        self.sample_states: dict[str, SampleState] = {}
        """What came of calls that were asked many times, by step."""
        self.tries: Counter[str] = Counter()
        """How often the prompt of a step was tried, by the key of the step."""
        super().__init__(session, self.graph_worker)

    def children(self) -> Mapping[str, Part]:
        return {"person": self.human_reply}

    # The step

    @property
    def key(self) -> str:
        """The key of the step that is shown; the name of the agent if it has no step.

        The name of an agent stands for its first step. So does, in a debugger only, the key of a
        step that the run does not have.
        """
        steps = self.session.steps
        if self.requested_key in steps:
            return self.requested_key
        if "[" in self.requested_key and not self.is_in_debugger:
            return self.requested_key
        agent = agent_of_key(self.requested_key)
        for step in steps.values():
            if step.agent == agent:
                return step.key
        return self.requested_key

    @property
    def step(self) -> Step | None:
        """The step that is shown; None if it was not run yet."""
        return self.session.steps.get(self.key)

    def _shown_step(self) -> Step:
        """Return the step that is shown. Raises KeyError if it was not run."""
        return self.session.steps[self.key]

    def results_of(self, step: Step) -> StepResults:
        """Return the graph's replies about a step's output, and the values typed into its form.

        They are kept as long as the output is the same.
        """
        results = self._results_by_step.get(step.key)
        if results is None or results.output != step.output:
            results = StepResults(step.output)
            self._results_by_step[step.key] = results
        return results

    @property
    def can_mute(self) -> bool:
        """Whether the run can be repeated without a triple.

        That is in a debugger, with a graph, once the run has ended, unless it can only be read.
        """
        if not self.is_in_debugger or self.run.read_only:
            return False
        if self.run.unrecorded_graph is None:
            return False
        return self.session.run_state().has_ended

    @property
    def is_busy(self) -> bool:
        return bool(self.session.current_task or self.graph_worker.current_task)

    def announcement(self) -> str:
        """Return agent, state and outcome of the step, and what the graph replied: "qir: done, 1 fact".

        Without a finished step it is agent and state.
        """
        agent = display_name(agent_of_key(self.key))
        state = self.session.step_state(self.key)
        step = self.step
        if step is None or not step.done:
            return f"{agent}: {state}"
        spoken = f"{agent}: {state}, {step.outcome}"
        task = self.graph_worker.current_task
        if task:
            return f"{spoken}; {task}"
        replies = list(self.results_of(step).graph_results)
        if replies:
            spoken += f"; reply {len(replies)} of the graph is shown: {replies[-1]}"
        return spoken

    # The panel

    def render_panel(self) -> Html:
        """Render a step with its header and tabs, and the selected section.

        Notes and errors of the step stand above the section, and a stale step has a button to run
        it again. The step need not have been run.
        """
        key = self.key
        step = self.step
        state = self.session.run_state()
        controls = self._render_controls(step)
        sections = self.sections(key, step)
        labels = {name: label for name, label, _ in sections}
        section = self._section_to_show(key, step, list(labels))
        panel_id = f"panel-{section}-{id(self):x}"
        update_label = "Run again"
        if self.is_in_debugger:
            update_label = "Continue"
        return render_page(
            "step_panel.html",
            header=render_step_header(state, key, controls),
            step_tabs=self._render_step_tabs(key),
            section_tabs=h.tabs(sections, section, "section", panel_id=panel_id),
            is_stale=state.step_state(key) == "stale",
            update_label=update_label,
            remarks=render_step_notes(step),
            panel_id=panel_id,
            section_label=labels[section],
            panel=self._render_section_body(section, key, step),
        )

    def sections(self, key: str, step: Step | None) -> list[TabOption]:
        """Return the sections of a step as tabs: result, inputs, prompt, attempts and form.

        Agents that ask no model have no prompt and no attempts. Supervisors, and runs that can only
        be read, have no form. The number of attempts is shown if there are several.
        """
        sections: list[TabOption] = [("result", "Result", ""), ("in", "Inputs", "")]
        if self._asks_model(key, step):
            count: object = ""
            if step is not None and len(step.attempts) > 1:
                count = len(step.attempts)
            sections.append(("prompt", "Prompt", ""))
            sections.append(("attempts", "Attempts", count))
        is_group = self.run.system.agent_kind(key) == "group"
        if not is_group and not self.run.read_only:
            sections.append(("form", "Edit as a form", ""))
        return sections

    def _asks_model(self, key: str, step: Step | None) -> bool:
        """Return whether an agent asks a model, or a person in the place of one."""
        if step is not None and (step.prompts or model_calls_of(step)):
            return True
        kind = displayed_agent_kind(self.run, agent_of_key(key))
        return kind in ("model", "person")

    def _section_to_show(self, key: str, step: Step | None, names: list[str]) -> str:
        """Return the section that the person selected, if the step has it; else a fitting one.

        That is the result once there is one or an error; before, the prompt of an agent with a
        model, else the inputs.
        """
        if self.selected_section in names:
            return self.selected_section
        if step is not None and (step.done or step.error):
            return "result"
        if displayed_agent_kind(self.run, agent_of_key(key)) == "model":
            return "prompt"
        return "in"

    def _render_step_tabs(self, key: str) -> Html:
        """Render the steps of the agent as tabs, by their subjects, or by their keys without one.

        Nothing is rendered in a debugger, or if there is only one.
        """
        steps = self.session.steps_of(agent_of_key(key))
        if self.is_in_debugger or len(steps) < 2:
            return Html()
        options: list[TabOption] = []
        for step in steps:
            subject = shorten(subject_text(step), MAX_SUBJECT_CHARS)
            label = subject or step.key
            options.append((step.key, label, ""))
        return h.tabs(options, key, "which", borderless=True)

    def _render_controls(self, step: Step | None) -> Html:
        """Render the buttons that run the step, ask its model again, undo an edit, and cancel.

        While something is executed all but cancelling are disabled, and asking again also for a
        step without calls. Undoing is there only for a step whose output was put in. In a debugger,
        cancelling is only for questions to the graph. A run that can only be read has no buttons.
        """
        if self.run.read_only:
            return Html()
        is_busy = self.is_busy
        is_done = False
        has_calls = False
        is_overridden = False
        if step is not None:
            is_done = step.done
            has_calls = bool(step.calls)
            is_overridden = step.origin == "by hand"
        run_class = "fold primary"
        if is_done or self.is_in_debugger:
            run_class = "fold"
        can_cancel = is_busy
        if self.is_in_debugger:  # there, another button cancels the run
            can_cancel = bool(self.graph_worker.current_task)
        return render_page(
            "step_controls.html",
            run_label="Run again" if is_done else "Run",
            run_class=run_class,
            is_busy=is_busy,
            cannot_refresh=is_busy or not has_calls,
            is_overridden=is_overridden,
            can_cancel=can_cancel,
        )

    def _render_section_body(self, section: str, key: str, step: Step | None) -> Html:
        """Render a section by its name: "prompt", "in", "attempts", "form", or else the result.

        Only the prompt is shown before the step was run; the other sections then say that it was
        not, or that the run ended without it. Inputs have the source of the agent's function below
        them.
        """
        if section == "prompt":
            return self._render_prompt(key, step)
        if step is None:
            text = NOT_RUN_YET
            if self.session.run_state().has_ended:
                text = "The run ended without this step."
            elif self.run.read_only:
                text = "This step is not in the record."
            return h.div("body soft", text)
        if section == "in":
            return self._render_inputs(step)
        if section == "attempts":
            return render_attempts(step, self.run.calls, can_edit=not self.run.read_only)
        if section == "form":
            return self._render_form(step)
        return self._render_result(step)

    def _render_prompt(self, key: str, step: Step | None) -> Html:
        """Render the form of a step's prompt, and below it the form to ask it many times.

        For a run that can only be read, it is the form that asks its first model call again.
        """
        if self.run.read_only:
            return self._render_frozen_call(key, step)
        form = self.prompt_editor.render(key, step, self._render_reply(key, step))
        if step is not None and not step.prompts:
            return form
        return h.join(form, self._render_sample(key))

    def _render_reply(self, key: str, step: Step | None) -> Html:
        """Render what trying a prompt gave: the result of the step, and its replies collapsed.

        A step that failed has its notes in place of the result. While the run is executed, its task
        is shown. Nothing is rendered if the prompt was not tried. The page scrolls to it whenever
        it changes.
        """
        tries = self.tries[key]
        task = self.session.current_task
        if not tries:
            return Html()
        if task or step is None:
            parts = [h.div("body soft", task or "it was not run", " …")]
        else:
            replies = render_attempts(step, self.run.calls)
            result = self._render_result(step) if step.done else render_step_notes(step)
            title = h.tag("b", "What came of it ")
            outcome = h.span("soft", step.outcome)
            lead = h.div("body row", title, outcome)
            folded = h.collapsible("The reply of the model", replies, key="tried-replies")
            parts = [lead, result, h.div("body", folded)]
        state = f"{tries} {bool(task)}"
        return h.div("tried", *parts, id="tried", data_follow=state)

    def _render_sample(self, key: str) -> Html:
        """Render the form in which a step's call is asked many times, and the decisions.

        Nothing is rendered for an agent that sends nothing now.
        """
        state = self.sample_states.setdefault(key, SampleState())
        request = self.prompt_editor.drafted_request(key)
        if request is None and state.sample is None and not self.is_busy:
            return Html()
        cost = state.cost
        if not cost and request is not None:
            cost = f"Each time takes a call of about {estimate_tokens(request):,} tokens, and the reply."
        sample = state.sample
        usage = ""
        if sample is not None:
            calls = pluralize(sample.calls, "call")
            usage = f"{calls}, {sample.tokens:,} tokens"
        return render_page(
            "sample_form.html",
            times_input=text_input("sample_times", "times", state.typed_times),
            models_input=text_input(
                "sample_models",
                "models",
                state.typed_models,
                placeholder=f"models, such as openai:gpt-4o (default: {self.run.model_name(agent_of_key(key))})",
            ),
            is_busy=self.is_busy,
            cost=cost,
            progress=render_progress(self.graph_worker),
            decisions=sample.decisions if sample is not None else (),
            usage=usage,
        )

    def _render_inputs(self, step: Step) -> Html:
        """Render the inputs of a step, and below them the source of its agent's function.

        A run that can only be read has no source.
        """
        inputs = render_inputs(step, self._context_of(step))
        if self.run.read_only:
            return inputs
        source = render_source(self.run.system.agent_spec(step.agent))
        if not source:
            return inputs
        return h.join(inputs, h.div("body", source))

    def _render_frozen_call(self, key: str, step: Step | None) -> Html:
        """Render the form in which the first model call of a step is asked again, and the replies.

        It is for a run that can only be read. A step without a model call is a line that says so.
        """
        text = self.prompt_editor.frozen_messages(key, step)
        if step is None or text is None:
            return h.div("body soft", "This step made no model call.")
        results = self.results_of(step)
        replies = Html()
        if results.new_replies is not None:
            replies = render_new_replies(results.new_replies, self._context_of(step))
        return render_page(
            "frozen_call.html",
            editor=render_template_editor(text, self.prompt_editor.revision),
            model_input=text_input(
                "model", "model", results.typed_models, placeholder="openai:gpt-4o"
            ),
            times_input=text_input("times", "times", results.typed_times),
            is_busy=self.is_busy,
            progress=render_progress(self.graph_worker),
            replies=replies,
        )

    def _render_result(self, step: Step) -> Html:
        """Render the output of a step, and why it is empty if it is.

        A step without output says that it has none, or none yet. Below stands the progress of
        questions to the graph.
        """
        if not step.done:
            text = "No result." if step.error else "No result yet."
            return h.div("body soft", text)
        output = step.output
        context = self._context_of(step)
        reasons = explain.render_reasons(output, context.steps, self.run.unrecorded_graph)
        things = self.things_of(output)
        is_replay = self.run.unrecorded_graph is None
        return render_page(
            "step_result.html",
            output=render(output, context),
            reasons=h.join(reasons, render_predicates(things, context)),
            has_no_graph=is_replay and not self.is_in_debugger,
            progress=render_progress(self.graph_worker),
        )

    def things_of(self, output: Any) -> tuple[Thing, ...]:
        """Return the things that an unanswered question is about, see ``things_of_refusal``."""
        steps = self.session.all_steps
        return things_of_refusal(output, self.run.question, steps, self.run.unrecorded_graph)

    def _context_of(self, step: Step) -> RenderContext:
        """Return the context for rendering a step's output: names, steps, the graph's replies.

        If the output is an empty answer that was not explained yet, a local graph is first asked
        why.
        """
        results = self.results_of(step)
        graph = self.run.unrecorded_graph
        context = context_of(self.run, step, self.session.all_steps)
        if graph is not None and not graph.remote and not results.graph_results:
            self._explain_empty_result(graph, step, context.steps)
        return replace(
            context,
            is_interactive=graph is not None,
            can_mute=self.can_mute,
            graph_results=results.graph_results,
        )

    def _explain_empty_result(self, graph: Graph, step: Step, steps: tuple[Step, ...]) -> None:
        """Ask a graph why a step's first query has no rows, and keep the reply.

        Nothing is asked if the query has rows, or if the output has no query. If the query cannot
        be taken apart, or the graph fails, nothing is kept and nothing raised.
        """
        queries = explain.queries_in(step.output)
        if not queries or not explain.is_unanswered(step.output):
            return
        with suppress(KgwbError):  # a query that is not conjunctive cannot be taken apart
            cause = explain.explain_empty_query(graph, queries[0], steps)
            results = self.results_of(step)
            results.graph_results["why 0"] = cause

    def _render_form(self, step: Step) -> Html:
        """Render the output of a step as a form, with the values that were typed into it.

        A step that has neither ended nor failed has no form, but a text that says so.
        """
        if not (step.done or step.error):
            return h.div("body soft", "Run this agent first: the form shows its result.")
        results = self.results_of(step)
        form = OutputForm(step)
        inputs = form.render(results.typed_form, self.revision)
        return render_page("result_form.html", inputs=inputs)
