"""One agent as a cell: its result, what came in, its prompt, its attempts, and a form to edit the result."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from kgwb.errors import GraphError, InputError, KgwbError, PromptError
from kgwb.kg.queries import degrees
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
from kgwb.show.form import (
    StepForm,
    followed,
    prompt_form,
    split_prompt,
    taken,
    with_row,
    with_template,
)
from kgwb.show.html import Html, button, div, join, note, span, tabs, tag
from kgwb.show.records import MAX_DEGREE, render
from kgwb.show.run import render_attempts, render_inputs, step_head, step_notes
from kgwb.show.run_state import kind_of_agent, subject_text
from kgwb.show.terms import RenderContext, context_of, readable_query
from kgwb.text import shorten
from kgwb.threads import run_in_thread as left_behind
from kgwb.ui.human import Person
from kgwb.ui.live import Event, Live, Part, failure, progress
from kgwb.ui.session import Session, Worker

FORM_HINT = (
    "The checks that judge a model judge you too. What follows is stale until it is run again."
)
REPLAY = (
    "A recording without its graph: nothing more can be asked. Open it with its graph, by kg=..."
)
BY_HAND = "Its result was put in by hand. Try once takes that out again, and asks the model."


class StepPanel(Live):
    """What the agent's cell and the debugger show of one step, and what they let the person do to it."""

    framed = False
    """Whether the run's controls stand around it."""

    def __init__(self, session: Session, key: str) -> None:
        self.session, self.run = session, session.run
        self.wanted = key  # the agent or the step that is shown
        self.section = ""  # the chosen section; empty for the one that fits
        self.drafts: dict[
            str, str
        ] = {}  # templates of prompts as they were typed, by the step's key
        self.revision = 0  # raised whenever Python overwrites what was typed
        self.asking = Worker()
        self.person = Person(session, self)
        self._about: dict[str, tuple[object, dict[str, Any]]] = {}
        super().__init__(session, self.asking)

    def parts(self) -> Mapping[str, Part]:
        return {"person": self.person}

    def about(self, step: Step) -> dict[str, Any]:
        """What the graph was asked about a step's result, and what was typed over it; forgotten with it."""
        content, known = self._about.get(step.key, (None, {}))
        if content != step.output:
            known = {}
            self._about[step.key] = step.output, known
        return known

    @property
    def key(self) -> str:
        """The key of the step that is shown; the agent's name if it has none."""
        steps = self.session.steps
        if self.wanted in steps or (not self.framed and "[" in self.wanted):
            return self.wanted
        return next(
            (step.key for step in steps.values() if step.agent == agent_of_key(self.wanted)),
            self.wanted,
        )

    @property
    def step(self) -> Step | None:
        """The step that is shown, as far as it was run."""
        return self.session.steps.get(self.key)

    @property
    def mutable(self) -> bool:
        """Whether the run can be asked again without a triple."""
        return self.framed and self.run.graph is not None and self.session.run_state().has_ended

    @property
    def working(self) -> bool:
        return bool(self.session.busy or self.asking.busy)

    def spoken(self) -> str:
        step = self.step
        result = f", {step.outcome}" if step is not None and step.done else ""
        return f"{agent_of_key(self.key).replace('_', ' ')}: {self.session.state(self.key)}{result}"

    def panel(self) -> Html:
        """The step in full."""
        key, step, standing = self.key, self.step, self.session.run_state()
        sections = self.sections(key, step)
        chosen = "prompt" if kind_of_agent(self.run, agent_of_key(key)) == "model" else "in"
        if self.section in [name for name, _, _ in sections]:
            chosen = self.section
        elif step is not None and (step.done or step.error):
            chosen = "result"
        which, stale = Html(), Html()
        if not self.framed and len(steps := self.session.steps_of(agent_of_key(key))) > 1:
            subjects = [
                (other.key, shorten(subject_text(other), 60) or other.key, "") for other in steps
            ]
            which = div("band", tabs(subjects, key, "which", bare=True))
        if standing.step_state(key) == "stale":
            words = "Stale: something before it was changed. What is shown is from before; press "
            stale = div(
                "body notes", note(words, tag("b", "Continue" if self.framed else "Run again"), ".")
            )
        return join(
            step_head(standing, key, div("row controls", *self._controls(step))),
            which,
            tabs(sections, chosen, "section"),
            stale,
            step_notes(step),
            div("", self._contents(chosen, key, step), id=f"panel-{chosen}", role="tabpanel"),
        )

    def sections(self, key: str, step: Step | None) -> list[tuple[str, str, object]]:
        """The sections there are, as tabs; an agent that asks no model has no prompt."""
        sections: list[tuple[str, str, object]] = [
            ("result", "Result", ""),
            ("in", "What came in", ""),
        ]
        if kind_of_agent(self.run, agent_of_key(key)) in ("model", "person") or (
            step and step.prompts
        ):
            number = len(step.attempts) if step and len(step.attempts) > 1 else ""
            sections += [("prompt", "Prompt", ""), ("attempts", "Attempts", number)]
        if self.run.system.agent_kind(key) != "group":
            sections.append(("form", "Edit as a form", ""))
        return sections

    def _controls(self, step: Step | None) -> Iterator[Html]:
        busy, done = self.working, bool(step and step.done)
        class_ = "fold" if self.framed or done else "fold primary"
        about = {"key": "Enter", "title": "up to the end of this agent (Enter)"}
        yield button("Run again" if done else "Run", "run", "run", class_, off=busy, **about)
        off = busy or not (step and step.calls)
        yield button(
            "Ask anew", "anew", "stale", "fold", off=off, title="have its calls made again"
        )
        if step is not None and step.origin == "by hand":
            yield button("Undo the edit", "restore", "hand", off=busy)
        if busy and (not self.framed or self.asking.busy):
            yield button("Cancel", "cancel", "stop")

    def _contents(self, section: str, key: str, step: Step | None) -> Html:
        if section == "prompt":
            return self._prompt(key, step)
        if step is None:
            ended = self.session.run_state().has_ended
            return div("body soft", "The run ended without it." if ended else "Not run yet.")
        if section == "in":
            return render_inputs(step, self._around(step))
        if section == "attempts":
            return render_attempts(step, self.run.calls)
        return self._form(step) if section == "form" else self._result(step)

    def _result(self, step: Step) -> Html:
        if not step.done:
            return div("body soft", "No result." if step.error else "No result yet.")
        parts = [render(step.output, self._around(step))]
        if why := render_reasons(step.output, tuple(self.session.steps.values())):
            parts.append(div("band", why))
        if self.run.graph is None and not self.framed:
            parts.append(div("band", note(REPLAY, kind="calm")))
        return join(*parts, progress(self.asking))

    def _around(self, step: Step) -> RenderContext:
        known, graph, queries = self.about(step), self.run.graph, explain.queries_in(step.output)
        context = context_of(self.run, step, self.session.steps.values())
        if graph and not graph.remote and queries and not known and is_unanswered(step.output):
            with suppress(KgwbError):  # a query that is not conjunctive cannot be taken apart
                known["why 0"] = explain.why_empty(graph, queries[0], context.steps)
        return replace(context, live=graph is not None, can_mute=self.mutable, replies=known)

    def _form(self, step: Step) -> Html:
        if not (step.done or step.error):
            return div("body soft", "Run this agent first: the form is that of its result.")
        inputs = StepForm(step).html(self.about(step).get("typed"), self.revision)
        use = button("Use this result", "apply", "hand", "primary")
        row = div("row controls", use, span("hint", FORM_HINT))
        return tag("form", inputs, row, class_="body stack", data_do="apply", id="result-form")

    def _prompt_name(self, key: str) -> str:
        """The prompt file of a step: what it used, what it will use, or what a file is named."""
        agent, versions = agent_of_key(key), reversed(self.session.versions)
        steps = [
            known[key]
            for known in (self.session.steps, *(v.steps for v in versions))
            if key in known
        ]
        for step in (*steps, *self.session.steps_of(agent)):
            if step.prompts:
                return step.prompts[-1]
        done = bool(steps) and steps[0].done
        request = None if self.session.busy or done else self.session.peek(key)
        return request.task if request is not None else f"{self.run.system.name}/{agent}"

    def _prompt(self, key: str, step: Step | None) -> Html:
        name = self._prompt_name(key)
        try:
            used = self.run.prompts.text(name)
        except PromptError:
            return div("body soft", "This agent has no prompt file.")
        draft, problem, request = self.drafts.get(key), "", None
        if not self.session.busy:
            try:
                request = self.session.peek(
                    key, name, used if draft is None else with_template(used, draft)
                )
            except KgwbError as exc:
                problem = exc.message
        remark = f"{BASELINE_REMARK}." if self.run.model_name(agent_of_key(key)) == "rules" else ""
        if step is not None and step.origin == "by hand":
            remark = BY_HAND
        about = {
            "request": request,
            "problem": problem,
            "remark": remark,
            "revision": self.revision,
        }
        return prompt_form(name, self._in_file(name), used, draft, **about)  # type: ignore[arg-type]

    def _in_file(self, name: str) -> str | None:
        try:
            return self.run.prompts.path(name).read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError, PromptError):
            return None

    def do_run(self, event: Event) -> None:
        self.section = ""
        self.session.run_to(self.key)

    def do_anew(self, event: Event) -> None:
        self.section = ""
        self.session.refresh(self.key)

    def do_restore(self, event: Event) -> None:
        self.session.restore(self.key)

    def do_cancel(self, event: Event) -> None:
        self.asking.cancel()
        self.session.cancel()

    def do_section(self, event: Event) -> None:
        self.section = str(event["arg"])

    def do_which(self, event: Event) -> None:
        self.wanted, self.section = self._known(event), ""

    def _known(self, event: Event) -> str:
        """The agent or step that an event names. Raises SettingError for one the system has not."""
        key = str(event["arg"])
        self.run.system.spec(key)
        return key

    def do_take(self, event: Event) -> None:
        step = self.session.steps[self.key]
        value = taken(step, int(event["arg"]))
        if value != step.output:
            self.session.replace(self.key, value)

    def do_draft(self, event: Event) -> None:
        self.drafts[self.key] = str(event["value"]).replace("\r\n", "\n")

    def _edited(self, event: Event) -> tuple[str, str]:
        name = self._prompt_name(self.key)
        used = self.run.prompts.text(name)
        draft = event.get("form", {}).get("template", self.drafts.get(self.key))
        return name, used if draft is None else with_template(used, draft)

    def do_try(self, event: Event) -> None:
        key, step = self.key, self.step
        self.session.edit_prompt(*self._edited(event))
        self.drafts.pop(key, None)
        self.section = ""
        if step is not None and step.origin == "by hand":
            self.session.restore(key)
        else:
            self.session.go(key)

    def do_save(self, event: Event) -> str:
        path = self.session.save_prompt(*self._edited(event))
        self.drafts.pop(self.key, None)
        return f"saved to {path}; the next run uses it"

    def do_revert(self, event: Event) -> None:
        name = self._prompt_name(self.key)
        text = self._in_file(name)
        if text is None:
            hint = "keep this text, or save it to make the file anew"
            raise PromptError(f"there is no readable file prompts/{name}.md", hint=hint)
        self.drafts.pop(self.key, None)
        if self.run.prompts.text(name) != text:
            self.drafts[self.key] = split_prompt(text)[1]
        self.revision += 1

    def _typed(self, event: Event) -> tuple[Step, StepForm, Any]:
        step, values = self.session.steps[self.key], event.get("form", {})
        self.about(step)["typed"] = values
        return step, StepForm(step), values

    def do_apply(self, event: Event) -> None:
        step, form, values = self._typed(event)
        self.session.replace(self.key, form.value(values))
        self.about(step).pop("typed", None)
        self.section = ""
        self.revision += 1

    def do_more(self, event: Event) -> None:
        step, form, values = self._typed(event)
        less = event["do"] == "less"
        self.about(step)["typed"] = with_row(form.field, values, str(event["arg"]), less=less)
        self.revision += 1

    do_less = do_more

    def _ask(self, question: str, ask: Callable[[Any], Any]) -> None:
        """Ask the graph about the step's result, on a thread that a cancel leaves behind."""
        step, graph = self.session.steps[self.key], self.run.graph
        if graph is None:
            raise InputError(
                "this run is a replay: there is no graph to ask", hint="open it with kg=..."
            )

        def watch() -> None:
            if self.asking.cancelled:
                hint = "it may work on until its time limit; ask for less"
                raise GraphError("stopped: nobody waits for the graph any more", hint=hint)

        def work() -> None:
            self.about(step)[question] = left_behind(lambda: ask(graph), poll=watch)

        self.asking.do("asking the graph", work)

    def do_where(self, event: Event) -> None:
        name, output = (
            str(event["form"].get("name", "")).strip(),
            self.session.steps[self.key].output,
        )
        if not name:
            raise InputError(
                "nothing was typed to look for", hint="type a name or an IRI, then look again"
            )
        self._ask("where", lambda kg: locate_vertices(kg, name, output, self.run.settings.v_limit))

    def do_degrees(self, event: Event) -> None:
        iris = [candidate.iri for candidate in self.session.steps[self.key].output.candidates]
        self._ask("degrees", lambda kg: degrees(kg, iris, MAX_DEGREE))

    def do_examples(self, event: Event) -> None:
        place, output = int(event["arg"]), self.session.steps[self.key].output
        ends, predicate, steps = (
            output.fact.ends,
            output.predicates[place],
            self.session.steps.values(),
        )
        iri, direction = predicate.iri, predicate.direction
        self._ask(f"examples {place}", lambda kg: find_examples(kg, ends, iri, direction, steps))

    def _query(self, event: Event) -> tuple[int, str]:
        """The number of a query, and its SPARQL as it was typed; as it is, if it was not."""
        number, step = int(event["arg"]), self.session.steps[self.key]
        known = explain.queries_in(step.output)[number]
        text = str(event.get("form", {}).get("sparql", "")).replace("\r\n", "\n") or known
        return number, known if text == readable_query(known, self._around(step)) else text

    def do_query(self, event: Event) -> None:
        number, text = self._query(event)
        self._ask(f"query {number}", lambda kg: execute_query(kg, text))

    def do_why(self, event: Event) -> None:
        number, text = self._query(event)
        steps = tuple(self.session.steps.values())
        self._ask(f"why {number}", lambda kg: explain.why_empty(kg, text, steps))

    def do_use(self, event: Event) -> None:
        """Put an edited query in the place of the one it was made from."""
        number, text = self._query(event)
        output = self.session.steps[self.key].output
        if text != output.queries[number].sparql:
            queries = list(output.queries)
            queries[number] = edit_candidate_query(queries[number], text)
            self.session.replace(self.key, followed(replace(output, queries=tuple(queries))))


class AgentCell(StepPanel):
    """The cell of one agent of a run; with several steps, the person chooses which is shown."""

    def __init__(self, session: Session, agent: str) -> None:
        """``agent`` is an agent's name or a step's key. Raises SettingError for one the system has not."""
        session.run.system.spec(agent)
        super().__init__(session, agent)

    def view(self) -> Html:
        person = self.inside("person")
        if self.person.asked is not None:
            return person
        session = self.session
        elsewhere = (
            session.failure is not None and not session.busy and not (self.step and self.step.error)
        )
        failed = (
            div("band", failure(session.failure), role="alert")
            if elsewhere and session.failure
            else ""
        )
        busy = session.busy or session.loading.busy
        return join(person, self.panel(), div("band soft", busy, " …") if busy else "", failed)

    def static_view(self) -> Html:
        if self.step is not None:
            return self.panel()
        words = div("body soft", "Not run when this was displayed.")
        return join(step_head(self.session.run_state(), self.key), words)

    def __repr__(self) -> str:
        return repr(self.step) if self.step is not None else f"{self.key}: not run yet"
