"""One step: its state, its sections and its form, and what the person can do with it.

The person can run it, edit it, and ask the graph about its output. The cell of an agent and the
debugger are such panels.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from kgwb.background import run_in_thread
from kgwb.errors import GraphError, InputError, KgwbError, SettingError
from kgwb.kg.base import Graph
from kgwb.kg.queries import count_degrees
from kgwb.llm.base import ChatModel
from kgwb.run.agents import agent_of_key
from kgwb.run.answers import Answer
from kgwb.run.models import MAX_TIMES, NewReplies, open_model
from kgwb.run.prompts import messages_from_text
from kgwb.run.sampled import StepSample, sample_step
from kgwb.run.steps import Step
from kgwb.show import explain
from kgwb.show import html as h
from kgwb.show.explain import (
    Thing,
    predicate_of_event,
    render_predicates,
    result_name,
    things_of_refusal,
    values_of,
)
from kgwb.show.form import OutputForm, add_or_remove_row, choose_option, update_derived_fields
from kgwb.show.html import Html
from kgwb.show.prompt_form import estimate_tokens, render_template_editor
from kgwb.show.records import MAX_DEGREE, render
from kgwb.show.run import (
    render_attempts,
    render_inputs,
    render_new_replies,
    render_source,
    render_step_header,
    render_step_notes,
    step_badge,
)
from kgwb.show.run_state import displayed_agent_kind, subject_text
from kgwb.show.terms import RenderContext, context_of, declare_known_prefixes, readable_query
from kgwb.text import display_name, pluralize, shorten
from kgwb.ui.human import Person
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


class StepPanel(Live):
    """A step, or an agent that was not run yet: what is shown of it, and a ``do_`` method for each event."""

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

    def children(self) -> Mapping[str, Part | None]:
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

        The state is that of its badge, such as "by hand"; of a step with the answer it is "done, Answered".

        Without a finished step it is agent and state.
        """
        agent = display_name(agent_of_key(self.key))
        step = self.step
        run_state = self.session.run_state()
        _, state = step_badge(run_state, step, run_state.step_state(self.key))
        if step is None or not step.done:
            return f"{agent}: {state}"
        if isinstance(step.output, Answer) and run_state.step_state(self.key) == "done":
            state = f"done, {state}"
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
        return render_page(
            "step_panel.html",
            header=render_step_header(state, key, controls),
            step_tabs=self._render_step_tabs(key, panel_id),
            section_tabs=h.tabs(sections, section, "section", panel_id),
            is_stale=state.step_state(key) == "stale",
            update_label="Continue" if self.is_in_debugger else "Run again",
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
        if step is not None and (step.prompts or step.model_calls):
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

    def _render_step_tabs(self, key: str, panel_id: str) -> Html:
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
        return h.tabs(options, key, "which", panel_id, borderless=True)

    def _render_controls(self, step: Step | None) -> Html:
        """Render the buttons that run the step, ask its model again, undo an edit, and cancel.

        While something is executed all but cancelling are disabled, and asking again also for a
        step without calls. Undoing is there only for a step whose output was put in. In a debugger,
        cancelling is only for questions to the graph. A run that can only be read has no buttons.
        """
        if self.run.read_only:
            return Html()
        return render_page(
            "step_controls.html",
            step=step,
            is_busy=self.is_busy,
            is_asking_graph=bool(self.graph_worker.current_task),
            is_in_debugger=self.is_in_debugger,
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
        if not self.tries[key]:
            return Html()
        task = self.session.current_task
        result = replies = Html()
        if step is not None and not task:
            replies = render_attempts(step, self.run.calls)
            result = self._render_result(step) if step.done else render_step_notes(step)
        return render_page(
            "tried.html",
            tries=self.tries[key],
            task=task,
            step=step,
            result=result,
            replies=replies,
        )

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
        return render_page(
            "sample_form.html",
            state=state,
            own_model=self.run.model_name(agent_of_key(key)),
            is_busy=self.is_busy,
            cost=cost,
            progress=render_progress(self.graph_worker),
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
            results=results,
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
        graph = self.run.unrecorded_graph
        reasons = explain.render_reasons(output, context.steps, graph)
        predicates = render_predicates(self.things_of(output), context)
        return render_page(
            "step_result.html",
            output=render(output, context),
            reasons=h.join(reasons, predicates),
            has_no_graph=graph is None and not self.is_in_debugger,
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
            self.results_of(step).graph_results["why 0"] = cause

    def _render_form(self, step: Step) -> Html:
        """Render the output of a step as a form, with the values that were typed into it.

        A step that has neither ended nor failed has no form, but a text that says so.
        """
        if not (step.done or step.error):
            return h.div("body soft", "Run this agent first: the form shows its result.")
        typed = self.results_of(step).typed_form
        inputs = OutputForm(step).render(typed, self.revision)
        return render_page("result_form.html", inputs=inputs)

    # Running

    def do_run(self, event: Event) -> None:
        """Submit an execution up to the end of the step that is shown."""
        self.selected_section = ""
        self.session.run_to(self.key)

    def do_anew(self, event: Event) -> None:
        """Submit an execution up to the step that is shown, in which its calls are made again."""
        self.selected_section = ""
        self.session.refresh(self.key)

    def do_restore(self, event: Event) -> None:
        """Remove the value that was put in for the step, and submit an execution up to the step."""
        self.session.restore(self.key)

    def do_cancel(self, event: Event) -> None:
        """Cancel the question to the graph and the command on the run."""
        self.graph_worker.cancel()
        self.session.cancel()

    def do_section(self, event: Event) -> None:
        """Show the section that the event's ``arg`` names."""
        self.selected_section = argument_of(event)

    def do_which(self, event: Event) -> None:
        """Show the step of the event's ``arg``. Raises SettingError for no such agent."""
        self.requested_key = self._checked_key(event)
        self.selected_section = ""

    def _checked_key(self, event: Event) -> str:
        """Return the step or agent that an event names. Raises SettingError for no such agent."""
        key = argument_of(event)
        self.run.system.agent_spec(key)
        return key

    def do_command(self, event: Event) -> str:
        """Do what a form or a button of the system's views asks for, and run the step again.

        The event's ``arg`` is the name of one of the system's commands. Returns what came of it.
        Raises SettingError for an unknown command, for a run that can only be read, and while
        something is executed, and what the command raises.
        """
        name = argument_of(event)
        command = self.run.system.commands.get(name)
        if command is None or self.run.read_only:
            raise SettingError(
                f"this run has no command {name!r}", hint="use a button of this cell"
            )
        self.session.require_idle()
        result = command(self.run, form_of(event))
        self.session.edit_settings(**result.settings)
        self.session.go(self.key)
        return result.message

    # The prompt

    def do_draft(self, event: Event) -> None:
        """Keep what is being typed into the template as the draft of the step's prompt."""
        self.prompt_editor.keep_draft(self.key, event["value"])

    def do_try(self, event: Event) -> None:
        """Use the edited prompt in this run, and submit an execution up to the step.

        For an agent without a prompt file, the edited messages are sent. A result put in by hand is
        removed, and the draft discarded. The reply is shown below the buttons, so that the person's
        place in the page stays. Raises PromptError if the agent cannot use the prompt.
        """
        key = self.key
        step = self.step
        if self.prompt_editor.own_messages(step) is not None:
            text = typed_text(form_of(event)["template"])
            self.session.edit_messages(key, text)
        else:
            prompt = self.prompt_editor.edited_prompt(key, event)
            self.session.edit_prompt(prompt.name, prompt.text)
        self.prompt_editor.discard_draft(key)
        self.selected_section = "prompt"
        self.tries[key] += 1
        if step is not None and step.origin == "by hand":
            self.session.restore(key)
        else:
            self.session.go(key)

    def do_reply(self, event: Event) -> None:
        """Put in the typed reply for a model call, and submit an execution up to the step."""
        form = form_of(event)
        self._edit_reply(typed_text(form["reply"]), int(form["number"]))

    def do_take_back(self, event: Event) -> None:
        """Take back the reply that was put in for a model call; the event's ``arg`` is its number."""
        self._edit_reply(None, int(event["arg"]))

    def _edit_reply(self, text: str | None, number: int) -> None:
        """Put in a reply, or take it back with None, and submit an execution up to the step."""
        key = self.key
        self.session.edit_reply(key, text, number)
        self.selected_section = "attempts"
        self.session.go(key)

    def do_again(self, event: Event) -> None:
        """Ask the first model call of the step again, as often as typed, with the typed messages.

        It is for a run that can only be read. Each of the typed models is asked, on the worker's
        thread; the new replies are shown below the form at the end. Raises SettingError without a
        model or for another number than 1 to MAX_TIMES, PromptError for messages without roles, and
        UnknownModelError.
        """
        step = self._shown_step()
        results = self.results_of(step)
        results.typed_models = read_name(event, "model")
        results.typed_times = read_name(event, "times")
        models = _open_typed_models(results.typed_models)
        times = _read_times(results.typed_times)
        text = typed_text(form_of(event)["template"])
        messages = messages_from_text(text)
        self.prompt_editor.keep_draft(self.key, text)
        ask_again = partial(self.run.ask_again, step.key, models, messages=messages, times=times)

        def keep(replies: NewReplies) -> None:
            """Keep the new replies below the form."""
            results.new_replies = replies

        self._submit_question("asking the model", ask_again, keep)

    # One call, many times

    def do_sample_cost(self, event: Event) -> None:
        """Estimate what asking the step as often as typed takes. Nothing is asked."""
        self._read_sample_form(event)

    def do_sample(self, event: Event) -> None:
        """Ask the model of the step as often as typed, with the draft of its prompt.

        The decisions that the replies lead to are shown below the form. The run does not change, and
        nothing after the step is asked. Raises SettingError for another number, PromptError for a
        prompt that the agent cannot use, and UnknownModelError.
        """
        key = self.key
        state, models = self._read_sample_form(event)
        prompt = self.prompt_editor.edited_prompt(key, {})
        prompts = self.run.prompts.with_text(prompt.name, prompt.text)
        ask = partial(
            sample_step,
            self.run,
            key,
            models,
            int(state.typed_times),
            prompts=prompts,
            check=self._stop_if_graph_cancelled,
        )

        def keep(sample: StepSample) -> None:
            """Keep the decisions below the form."""
            state.sample = sample

        self._submit_question(f"asking: {state.cost}", ask, keep)

    def _read_sample_form(self, event: Event) -> tuple[SampleState, list[ChatModel]]:
        """Keep what was typed into the form of the sample; return its state and the models to ask.

        The state has the cost as a text. Without a typed name the model is the agent's own. Raises
        SettingError for another number than 1 to MAX_TIMES, or without a model, and
        UnknownModelError.
        """
        key = self.key
        state = self.sample_states.setdefault(key, SampleState())
        state.typed_models = read_name(event, "sample_models")
        state.typed_times = read_name(event, "sample_times")
        own_model = self.run.model_for(agent_of_key(key))
        models = _open_typed_models(state.typed_models, own_model)
        calls = _read_times(state.typed_times) * len(models)
        state.cost = pluralize(calls, "call")
        request = self.prompt_editor.drafted_request(key)
        if request is not None:
            tokens = calls * estimate_tokens(request)
            state.cost += f", about {tokens:,} tokens and the replies"
        return state, models

    def do_take_sample(self, event: Event) -> None:
        """Put in one of the decisions as the step's output, and run up to the step.

        The event's ``arg`` is its position. Nothing is done without such a decision.
        """
        sample = self.sample_states.setdefault(self.key, SampleState()).sample
        position = int(event["arg"])
        if sample is None or not 0 <= position < len(sample.decisions):
            return
        self.session.replace(self.key, sample.decisions[position].output)
        self.selected_section = ""

    def do_save(self, event: Event) -> str:
        """Write the edited prompt to its file, and use it in this run.

        The file is in the folder of the form, if the form asks for one. Returns a message with the
        path. The draft is discarded. Raises PromptError if the agent cannot use the prompt, or the
        file cannot be written.
        """
        prompt = self.prompt_editor.edited_prompt(self.key, event)
        form = form_of(event)
        folder = typed_text(form.get("folder", "")).strip()
        path = self.session.save_prompt(prompt.name, prompt.text, folder)
        self.prompt_editor.discard_draft(self.key)
        if folder:
            return f"saved to {path}; Workbench(..., prompts={folder!r}) uses it"
        return f"saved to {path}; the next run uses it"

    def do_revert(self, event: Event) -> None:
        """Put the template of the prompt's file into the editor. Raises PromptError without one."""
        self.prompt_editor.revert(self.key)

    # The output

    def do_take(self, event: Event) -> None:
        """Put in the output with the option that was clicked, and run up to the step.

        The event's ``arg`` is the position of the option. Nothing is done if the step chose it
        itself. Raises OverrideError for a position that is not one of an option.
        """
        step = self._shown_step()
        value = choose_option(step, int(event["arg"]))
        if value != step.output:
            self.session.replace(self.key, value)

    def do_apply(self, event: Event) -> None:
        """Put in the values of the form as the step's output, and run up to the step.

        Raises OverrideError for wrong values; they stay in the form then.
        """
        step = self._keep_typed_form(event)
        value = OutputForm(step).parse(form_of(event))
        self.session.replace(self.key, value)
        self.results_of(step).typed_form = None
        self.selected_section = ""
        self.revision += 1

    def do_more(self, event: Event) -> None:
        """Add a row to a list of the form; for the event "less", remove one.

        The event's ``arg`` is the path of the list, or of the row to remove. What was typed is
        kept. Raises OverrideError if the path is not one of a list.
        """
        step = self._keep_typed_form(event)
        self.results_of(step).typed_form = add_or_remove_row(
            OutputForm(step).field,
            form_of(event),
            argument_of(event),
            remove=event["do"] == "less",
        )
        self.revision += 1

    do_less = do_more

    def _keep_typed_form(self, event: Event) -> Step:
        """Keep the values of the form, and return the step that it belongs to."""
        step = self._shown_step()
        self.results_of(step).typed_form = form_of(event)
        return step

    # Questions to the graph

    def _ask_graph(self, question: str, ask: Callable[..., Any], *arguments: Any) -> None:
        """Submit a question to the graph, and keep the reply under the question's name.

        ``ask`` gets the graph and the arguments, and returns the reply. A cancel leaves the graph
        working on its thread. Raises InputError in a replay.
        """
        step = self._shown_step()
        graph = self.run.unrecorded_graph
        if graph is None:
            raise InputError(
                "the graph cannot be searched: this run is a replay without a graph",
                hint="open the run with its graph: kgwb.load_run(path, kg=kgwb.open_kg(...))",
            )
        results = self.results_of(step)

        def keep(reply: Any) -> None:
            """Keep the reply with the output that was shown when the person asked."""
            results.graph_results[question] = reply

        self._submit_question("asking the graph", partial(ask, graph, *arguments), keep)

    def _submit_question(
        self, label: str, ask: Callable[[], Any], keep: Callable[[Any], None]
    ) -> None:
        """Submit a question to the worker, which keeps the reply. A cancel leaves it on its thread."""

        def work() -> None:
            """Ask the question, and keep the reply."""
            reply = run_in_thread(ask, poll=self._stop_if_graph_cancelled)
            keep(reply)

        self.graph_worker.submit(label, work)

    def _stop_if_graph_cancelled(self) -> None:
        """Raise GraphError if the person has cancelled the question to the graph."""
        if self.graph_worker.cancelled:
            raise GraphError(
                "the search was not finished: you cancelled the query",
                hint="the server may still work on it until its time limit; wait until then before you search again",
            )

    def do_where(self, event: Event) -> None:
        """Ask where the vertices of a typed name or IRI are among the candidates.

        The reply is shown below the candidates.

        Raises InputError if nothing was typed.
        """
        name = form_of(event).get("name", "").strip()
        if not name:
            raise InputError(
                "nothing was searched: the search field is empty",
                hint="type a name or an IRI into it",
            )
        output = self._shown_step().output
        self._ask_graph("where", explain.locate_vertices, name, output, self.run.settings.v_limit)

    def do_degrees(self, event: Event) -> None:
        """Ask for the degree of each candidate."""
        iris = [candidate.iri for candidate in self._shown_step().output.candidates]
        self._ask_graph("degrees", count_degrees, iris, MAX_DEGREE)

    def do_examples(self, event: Event) -> None:
        """Ask the graph for triples of the step's fact with one of its predicates.

        The event's ``arg`` is the position of the predicate. The reply is shown below it. Raises
        InputError in a replay.
        """
        position = int(event["arg"])
        output = self._shown_step().output
        predicate = output.predicates[position]
        self._ask_graph(
            f"examples {position}",
            explain.find_examples,
            output.fact.ends,
            predicate.iri,
            predicate.direction,
            self.session.all_steps,
        )

    def do_values(self, event: Event) -> None:
        """Ask the graph for the values of a predicate that a thing of a refused question has.

        The event's ``arg`` has the positions of the thing and of its predicate. The reply is shown
        below the predicates. Raises InputError if they are not shown any more.
        """
        things = self.things_of(self._shown_step().output) or self.things_of(self.run.answer)
        thing, predicate = predicate_of_event(things, argument_of(event))
        self._ask_graph(result_name(thing, predicate), values_of, thing.iri, predicate)

    def do_query(self, event: Event) -> None:
        """Execute a query as it was edited on the graph, and keep its result, or why it was refused."""
        number, sparql = self._edited_query(event)
        self._ask_graph(f"query {number}", explain.try_query, sparql)

    def do_why(self, event: Event) -> None:
        """Ask the graph which pattern of a query, as it was edited, leaves it without rows.

        The event's ``arg`` is the number of the query.
        """
        number, sparql = self._edited_query(event)
        steps = self.session.all_steps
        self._ask_graph(f"why {number}", explain.explain_empty_query, sparql, steps)

    def do_use(self, event: Event) -> None:
        """Put in the output with the edited query. Nothing is done if the query was not changed.

        The run is executed up to the step then. Raises QueryError if the query is not conjunctive
        or asks for something else.
        """
        number, sparql = self._edited_query(event)
        output = self._shown_step().output
        queries = list(output.queries)
        if sparql == queries[number].sparql:
            return
        queries[number] = explain.edit_candidate_query(queries[number], sparql)
        edited = replace(output, queries=tuple(queries))
        self.session.replace(self.key, update_derived_fields(edited))

    def _edited_query(self, event: Event) -> tuple[int, str]:
        """Return the number of the query that an event names, and the text typed in its place.

        A query is shown with prefixes and line breaks; if that text was not changed, the query
        itself is returned. Prefixes that the page or the graph knows are declared in it.
        """
        number = int(event["arg"])
        step = self._shown_step()
        query = explain.queries_in(step.output)[number]
        context = self._context_of(step)
        typed = typed_text(form_of(event).get("sparql", ""))
        if typed in ("", readable_query(query, context)):
            return number, query
        return number, declare_known_prefixes(typed, context)


def _read_times(typed: str) -> int:
    """Return how often a model is to be asked. Raises SettingError unless it is 1 to MAX_TIMES."""
    if not typed.isdecimal() or not 1 <= int(typed) <= MAX_TIMES:
        raise SettingError(
            f"the number of times cannot be {typed!r}", hint=f"type 1 to {MAX_TIMES}"
        )
    return int(typed)


def _open_typed_models(typed: str, own_model: ChatModel | None = None) -> list[ChatModel]:
    """Return the models whose names were typed, else the agent's own.

    Raises SettingError without either, and UnknownModelError.
    """
    models = [open_model(name) for name in typed.replace(",", " ").split()]
    if not models and own_model is not None:
        models = [own_model]
    if not models:
        raise SettingError(
            "nothing was asked: no model is named", hint="type a model, such as openai:gpt-4o"
        )
    return models
