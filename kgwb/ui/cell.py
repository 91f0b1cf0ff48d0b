"""One agent as a cell: its result, what came in, its prompt, its attempts, and a form to edit the result."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from kgwb.errors import GraphError, InputError, KgwbError, PromptError
from kgwb.kg.queries import count_degrees
from kgwb.llm.rules import BASELINE_REMARK
from kgwb.run.agents import agent_of_key
from kgwb.run.steps import Step
from kgwb.show import explain
from kgwb.show.explain import (
    edit_candidate_query,
    execute_query,
    find_examples,
    is_unanswered,
    locate_vertices,
    render_reasons,
)
from kgwb.show.form import add_or_remove_row
from kgwb.show.html import Html, button, div, join, note, span, tabs, tag
from kgwb.show.output_form import OutputForm, choose_option, update_derived_fields
from kgwb.show.prompt_form import render_prompt_form, replace_template, split_prompt
from kgwb.show.records import MAX_DEGREE, render
from kgwb.show.run import render_attempts, render_inputs, render_step_header, render_step_notes
from kgwb.show.run_state import displayed_agent_kind, subject_text
from kgwb.show.terms import RenderContext, context_of, readable_query
from kgwb.text import shorten
from kgwb.threads import run_in_thread as left_behind
from kgwb.ui.human import Person
from kgwb.ui.live import Event, Live, Part, render_failure, render_progress
from kgwb.ui.session import Session, Worker

OVERRIDE_HINT = (
    "The checks that judge a model judge you too. What follows is stale until it is run again."
)
REPLAY_NOTE = (
    "A recording without its graph: nothing more can be asked. Open it with its graph, by kg=..."
)
OVERRIDDEN_NOTE = (
    "Its result was put in by hand. Try once takes that out again, and asks the model."
)


class StepPanel(Live):
    """What the agent's cell and the debugger show of one step, and what they let the person do to it."""

    is_in_debugger = False
    """Whether the run's controls stand around it."""

    def __init__(self, session: Session, key: str) -> None:
        self.session, self.run = session, session.run
        self.requested_key = key  # the agent or the step that is shown
        self.selected_section = ""  # the chosen section; empty for the one that fits
        self.prompt_drafts: dict[
            str, str
        ] = {}  # templates of prompts as they were typed, by the step's key
        self.revision = 0  # raised whenever Python overwrites what was typed
        self.graph_worker = Worker()
        self.human_reply = Person(session, self)
        self._results_by_step: dict[str, tuple[object, dict[str, Any]]] = {}
        super().__init__(session, self.graph_worker)

    def children(self) -> Mapping[str, Part]:
        return {"person": self.human_reply}

    def results_of(self, step: Step) -> dict[str, Any]:
        """What the graph was asked about a step's result, and what was typed over it; forgotten with it."""
        content, known = self._results_by_step.get(step.key, (None, {}))
        if content != step.output:
            known = {}
            self._results_by_step[step.key] = step.output, known
        return known

    @property
    def key(self) -> str:
        """The key of the step that is shown; the agent's name if it has none."""
        steps = self.session.steps
        if self.requested_key in steps or (not self.is_in_debugger and "[" in self.requested_key):
            return self.requested_key
        return next(
            (step.key for step in steps.values() if step.agent == agent_of_key(self.requested_key)),
            self.requested_key,
        )

    @property
    def step(self) -> Step | None:
        """The step that is shown, as far as it was run."""
        return self.session.steps.get(self.key)

    @property
    def can_mute(self) -> bool:
        """Whether the run can be asked again without a triple."""
        return (
            self.is_in_debugger
            and self.run.unrecorded_graph is not None
            and self.session.run_state().has_ended
        )

    @property
    def is_busy(self) -> bool:
        return bool(self.session.current_task or self.graph_worker.current_task)

    def announcement(self) -> str:
        step = self.step
        result = f", {step.outcome}" if step is not None and step.done else ""
        return f"{agent_of_key(self.key).replace('_', ' ')}: {self.session.step_state(self.key)}{result}"

    def render_panel(self) -> Html:
        """The step in full."""
        key, step, standing = self.key, self.step, self.session.run_state()
        sections = self.sections(key, step)
        chosen = "prompt" if displayed_agent_kind(self.run, agent_of_key(key)) == "model" else "in"
        if self.selected_section in [name for name, _, _ in sections]:
            chosen = self.selected_section
        elif step is not None and (step.done or step.error):
            chosen = "result"
        which, stale = Html(), Html()
        if not self.is_in_debugger and len(steps := self.session.steps_of(agent_of_key(key))) > 1:
            subjects = [
                (other.key, shorten(subject_text(other), 60) or other.key, "") for other in steps
            ]
            which = div("band", tabs(subjects, key, "which", borderless=True))
        if standing.step_state(key) == "stale":
            words = "Stale: something before it was changed. What is shown is from before; press "
            stale = div(
                "body notes",
                note(words, tag("b", "Continue" if self.is_in_debugger else "Run again"), "."),
            )
        return join(
            render_step_header(standing, key, div("row controls", *self._render_controls(step))),
            which,
            tabs(sections, chosen, "section"),
            stale,
            render_step_notes(step),
            div("", self._render_panel(chosen, key, step), id=f"panel-{chosen}", role="tabpanel"),
        )

    def sections(self, key: str, step: Step | None) -> list[tuple[str, str, object]]:
        """The sections there are, as tabs; an agent that asks no model has no prompt."""
        sections: list[tuple[str, str, object]] = [
            ("result", "Result", ""),
            ("in", "What came in", ""),
        ]
        if displayed_agent_kind(self.run, agent_of_key(key)) in ("model", "person") or (
            step and step.prompts
        ):
            number = len(step.attempts) if step and len(step.attempts) > 1 else ""
            sections += [("prompt", "Prompt", ""), ("attempts", "Attempts", number)]
        if self.run.system.agent_kind(key) != "group":
            sections.append(("form", "Edit as a form", ""))
        return sections

    def _render_controls(self, step: Step | None) -> Iterator[Html]:
        busy, done = self.is_busy, bool(step and step.done)
        class_ = "fold" if self.is_in_debugger or done else "fold primary"
        about = {"shortcut": "Enter", "title": "up to the end of this agent (Enter)"}
        yield button("Run again" if done else "Run", "run", "run", class_, disabled=busy, **about)
        off = busy or not (step and step.calls)
        yield button(
            "Ask anew", "anew", "stale", "fold", disabled=off, title="have its calls made again"
        )
        if step is not None and step.origin == "by hand":
            yield button("Undo the edit", "restore", "hand", disabled=busy)
        if busy and (not self.is_in_debugger or self.graph_worker.current_task):
            yield button("Cancel", "cancel", "stop")

    def _render_panel(self, section: str, key: str, step: Step | None) -> Html:
        if section == "prompt":
            return self._render_prompt(key, step)
        if step is None:
            ended = self.session.run_state().has_ended
            return div("body soft", "The run ended without it." if ended else "Not run yet.")
        if section == "in":
            return render_inputs(step, self._context_of(step))
        if section == "attempts":
            return render_attempts(step, self.run.calls)
        return self._render_form(step) if section == "form" else self._render_result(step)

    def _render_result(self, step: Step) -> Html:
        if not step.done:
            return div("body soft", "No result." if step.error else "No result yet.")
        parts = [render(step.output, self._context_of(step))]
        if why := render_reasons(step.output, tuple(self.session.steps.values())):
            parts.append(div("band", why))
        if self.run.unrecorded_graph is None and not self.is_in_debugger:
            parts.append(div("band", note(REPLAY_NOTE, level="calm")))
        return join(*parts, render_progress(self.graph_worker))

    def _context_of(self, step: Step) -> RenderContext:
        known, graph, queries = (
            self.results_of(step),
            self.run.unrecorded_graph,
            explain.queries_in(step.output),
        )
        context = context_of(self.run, step, self.session.steps.values())
        if graph and not graph.remote and queries and not known and is_unanswered(step.output):
            with suppress(KgwbError):  # a query that is not conjunctive cannot be taken apart
                known["why 0"] = explain.explain_empty_query(graph, queries[0], context.steps)
        return replace(
            context, is_interactive=graph is not None, can_mute=self.can_mute, graph_results=known
        )

    def _render_form(self, step: Step) -> Html:
        if not (step.done or step.error):
            return div("body soft", "Run this agent first: the form is that of its result.")
        inputs = OutputForm(step).render(self.results_of(step).get("typed"), self.revision)
        use = button("Use this result", "apply", "hand", "primary")
        row = div("row controls", use, span("hint", OVERRIDE_HINT))
        return tag("form", inputs, row, class_="body stack", data_do="apply", id="result-form")

    def _prompt_name(self, key: str) -> str:
        """The prompt file of a step: what it used, what it will use, or what a file is named."""
        agent, versions = agent_of_key(key), reversed(self.session.history)
        steps = [
            known[key]
            for known in (self.session.steps, *(v.steps for v in versions))
            if key in known
        ]
        for step in (*steps, *self.session.steps_of(agent)):
            if step.prompts:
                return step.prompts[-1]
        done = bool(steps) and steps[0].done
        request = None if self.session.current_task or done else self.session.peek(key)
        return request.task if request is not None else f"{self.run.system.name}/{agent}"

    def _render_prompt(self, key: str, step: Step | None) -> Html:
        name = self._prompt_name(key)
        try:
            used = self.run.prompts.text(name)
        except PromptError:
            return div("body soft", "This agent has no prompt file.")
        draft, problem, request = self.prompt_drafts.get(key), "", None
        if not self.session.current_task:
            try:
                request = self.session.peek(
                    key, name, used if draft is None else replace_template(used, draft)
                )
            except KgwbError as exc:
                problem = exc.message
        remark = f"{BASELINE_REMARK}." if self.run.model_name(agent_of_key(key)) == "rules" else ""
        if step is not None and step.origin == "by hand":
            remark = OVERRIDDEN_NOTE
        about = {
            "request": request,
            "problem": problem,
            "note": remark,
            "revision": self.revision,
        }
        return render_prompt_form(name, self._prompt_file_text(name), used, draft, **about)  # type: ignore[arg-type]

    def _prompt_file_text(self, name: str) -> str | None:
        try:
            return self.run.prompts.path(name).read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError, PromptError):
            return None

    def do_run(self, event: Event) -> None:
        self.selected_section = ""
        self.session.run_to(self.key)

    def do_anew(self, event: Event) -> None:
        self.selected_section = ""
        self.session.refresh(self.key)

    def do_restore(self, event: Event) -> None:
        self.session.restore(self.key)

    def do_cancel(self, event: Event) -> None:
        self.graph_worker.cancel()
        self.session.cancel()

    def do_section(self, event: Event) -> None:
        self.selected_section = str(event["arg"])

    def do_which(self, event: Event) -> None:
        self.requested_key, self.selected_section = self._checked_key(event), ""

    def _checked_key(self, event: Event) -> str:
        """The agent or step that an event names. Raises SettingError for one the system has not."""
        key = str(event["arg"])
        self.run.system.agent_spec(key)
        return key

    def do_take(self, event: Event) -> None:
        step = self.session.steps[self.key]
        value = choose_option(step, int(event["arg"]))
        if value != step.output:
            self.session.replace(self.key, value)

    def do_draft(self, event: Event) -> None:
        self.prompt_drafts[self.key] = str(event["value"]).replace("\r\n", "\n")

    def _edited_prompt(self, event: Event) -> tuple[str, str]:
        name = self._prompt_name(self.key)
        used = self.run.prompts.text(name)
        draft = event.get("form", {}).get("template", self.prompt_drafts.get(self.key))
        return name, used if draft is None else replace_template(used, draft)

    def do_try(self, event: Event) -> None:
        key, step = self.key, self.step
        self.session.edit_prompt(*self._edited_prompt(event))
        self.prompt_drafts.pop(key, None)
        self.selected_section = ""
        if step is not None and step.origin == "by hand":
            self.session.restore(key)
        else:
            self.session.go(key)

    def do_save(self, event: Event) -> str:
        path = self.session.save_prompt(*self._edited_prompt(event))
        self.prompt_drafts.pop(self.key, None)
        return f"saved to {path}; the next run uses it"

    def do_revert(self, event: Event) -> None:
        name = self._prompt_name(self.key)
        text = self._prompt_file_text(name)
        if text is None:
            hint = "keep this text, or save it to make the file anew"
            raise PromptError(f"there is no readable file prompts/{name}.md", hint=hint)
        self.prompt_drafts.pop(self.key, None)
        if self.run.prompts.text(name) != text:
            self.prompt_drafts[self.key] = split_prompt(text)[1]
        self.revision += 1

    def _read_form(self, event: Event) -> tuple[Step, OutputForm, Any]:
        step, values = self.session.steps[self.key], event.get("form", {})
        self.results_of(step)["typed"] = values
        return step, OutputForm(step), values

    def do_apply(self, event: Event) -> None:
        step, form, values = self._read_form(event)
        self.session.replace(self.key, form.parse(values))
        self.results_of(step).pop("typed", None)
        self.selected_section = ""
        self.revision += 1

    def do_more(self, event: Event) -> None:
        step, form, values = self._read_form(event)
        less = event["do"] == "less"
        self.results_of(step)["typed"] = add_or_remove_row(
            form.field, values, str(event["arg"]), remove=less
        )
        self.revision += 1

    do_less = do_more

    def _ask_graph(self, question: str, ask: Callable[[Any], Any]) -> None:
        """Ask the graph about the step's result, on a thread that a cancel leaves behind."""
        step, graph = self.session.steps[self.key], self.run.unrecorded_graph
        if graph is None:
            raise InputError(
                "this run is a replay: there is no graph to ask", hint="open it with kg=..."
            )

        def watch() -> None:
            if self.graph_worker.cancelled:
                hint = "it may work on until its time limit; ask for less"
                raise GraphError("stopped: nobody waits for the graph any more", hint=hint)

        def work() -> None:
            self.results_of(step)[question] = left_behind(lambda: ask(graph), poll=watch)

        self.graph_worker.submit("asking the graph", work)

    def do_where(self, event: Event) -> None:
        name, output = (
            str(event["form"].get("name", "")).strip(),
            self.session.steps[self.key].output,
        )
        if not name:
            raise InputError(
                "nothing was typed to look for", hint="type a name or an IRI, then look again"
            )
        self._ask_graph(
            "where", lambda kg: locate_vertices(kg, name, output, self.run.settings.v_limit)
        )

    def do_degrees(self, event: Event) -> None:
        iris = [candidate.iri for candidate in self.session.steps[self.key].output.candidates]
        self._ask_graph("degrees", lambda kg: count_degrees(kg, iris, MAX_DEGREE))

    def do_examples(self, event: Event) -> None:
        place, output = int(event["arg"]), self.session.steps[self.key].output
        ends, predicate, steps = (
            output.fact.ends,
            output.predicates[place],
            self.session.steps.values(),
        )
        iri, direction = predicate.iri, predicate.direction
        self._ask_graph(
            f"examples {place}", lambda kg: find_examples(kg, ends, iri, direction, steps)
        )

    def _edited_query(self, event: Event) -> tuple[int, str]:
        """The number of a query, and its SPARQL as it was typed; as it is, if it was not."""
        number, step = int(event["arg"]), self.session.steps[self.key]
        known = explain.queries_in(step.output)[number]
        text = str(event.get("form", {}).get("sparql", "")).replace("\r\n", "\n") or known
        return number, known if text == readable_query(known, self._context_of(step)) else text

    def do_query(self, event: Event) -> None:
        number, text = self._edited_query(event)
        self._ask_graph(f"query {number}", lambda kg: execute_query(kg, text))

    def do_why(self, event: Event) -> None:
        number, text = self._edited_query(event)
        steps = tuple(self.session.steps.values())
        self._ask_graph(f"why {number}", lambda kg: explain.explain_empty_query(kg, text, steps))

    def do_use(self, event: Event) -> None:
        """Put an edited query in the place of the one it was made from."""
        number, text = self._edited_query(event)
        output = self.session.steps[self.key].output
        if text != output.queries[number].sparql:
            queries = list(output.queries)
            queries[number] = edit_candidate_query(queries[number], text)
            self.session.replace(
                self.key, update_derived_fields(replace(output, queries=tuple(queries)))
            )


class AgentCell(StepPanel):
    """The cell of one agent of a run; with several steps, the person chooses which is shown."""

    def __init__(self, session: Session, agent: str) -> None:
        """``agent`` is an agent's name or a step's key. Raises SettingError for one the system has not."""
        session.run.system.agent_spec(agent)
        super().__init__(session, agent)

    def view(self) -> Html:
        person = self.render_child("person")
        if self.human_reply.shown_request is not None:
            return person
        session = self.session
        elsewhere = (
            session.failure is not None
            and not session.current_task
            and not (self.step and self.step.error)
        )
        failed = (
            div("band", render_failure(session.failure), role="alert")
            if elsewhere and session.failure
            else ""
        )
        busy = session.current_task or session.embeddings_loader.current_task
        return join(
            person, self.render_panel(), div("band soft", busy, " …") if busy else "", failed
        )

    def render_static(self) -> Html:
        if self.step is not None:
            return self.render_panel()
        words = div("body soft", "Not run when this was displayed.")
        return join(render_step_header(self.session.run_state(), self.key), words)

    def __repr__(self) -> str:
        return repr(self.step) if self.step is not None else f"{self.key}: not run yet"
