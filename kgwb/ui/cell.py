"""One agent as a cell: what came in, its prompt, its attempts, its result, and a form to put in another."""

from __future__ import annotations

import difflib
import threading
from collections.abc import Callable
from typing import Any

import ipywidgets as widgets

from kgwb.agents import spec_at
from kgwb.errors import KgwbError, PromptError
from kgwb.llm.human import Human
from kgwb.record import Step
from kgwb.render.html import Html, aside, badges, fold, tag
from kgwb.render.records import record, says_more
from kgwb.render.text import summary
from kgwb.render.views import attempt, maker_of, sent_html, step_html
from kgwb.render.words import BASELINE, clean, count, made, names_in
from kgwb.ui.forms import Editor, editor
from kgwb.ui.human import HumanPanel
from kgwb.ui.kit import Panel, body, dim, markup, row
from kgwb.ui.results import result_view
from kgwb.ui.session import Session, State

SECTIONS = ("Result", "What came in", "Prompt", "Attempts", "Edit the result")
HINT = "The checks that judge a model judge you too. What follows is stale until it is run again."
STALE_HINT = "This step is stale: run it first, as the form offers what came in before the change."
SAID: dict[State, str] = {
    "not run": "not run yet",
    "running": "running …",
    "stale": "stale: something before it was changed; run it again",
    "failed": "failed",
    "unfinished": "begun, not done",
    "done": "done",
    "ahead": "done before; the run stands before it now",
}
"""What each state of a step is called on screen."""


class AgentCell(Panel):
    """The cell of one agent of a run; with several steps, the person chooses which is shown."""

    def __init__(self, session: Session, agent: str, *, inside: bool = False) -> None:
        """``agent`` is an agent's name or a step's key; ``inside`` leaves out what the panel around it has.

        Raises SettingError for an agent that the system has not.
        """
        super().__init__()
        self._inside = inside
        self.session = session
        self._lock = threading.RLock()
        self._seen: tuple[object, object] | None = None
        self._head = markup()
        self._which = widgets.Dropdown(description="step", layout=widgets.Layout(width="auto"))
        self._sections = widgets.ToggleButtons(options=SECTIONS, value="Prompt")
        self._section = widgets.VBox()
        self._controls = self._make_controls()
        self._human: HumanPanel | None = None
        self._hint = markup()
        self._prompts: dict[str, PromptSection] = {}
        self._editors: dict[str, tuple[object, Editor[Any]]] = {}
        """Kept by step, so that what was typed is there when the person comes back."""
        self.watch(self._which, self._chosen)
        self.watch(self._sections, lambda _: self._draw())
        self.choose(agent)
        session.listeners.append(self.refresh)

    def choose(self, agent: str) -> None:
        """Show another agent or step."""
        with self._lock:
            self.agent = agent
            self._told_to_run = self._drawn = False
            self.spec = spec_at(self.session.run.system, agent)
            self.key, self._seen = "", None
        self.refresh()

    def refresh(self) -> None:
        """Show the run as it stands, if anything that this cell shows has changed."""
        with self._lock, self.message.guarding():
            steps = self.session.steps_of(self.agent)
            keys = [step.key for step in steps]
            if self.key not in keys:
                self.key = keys[0] if keys else ""
            state = self.session.state(self.key) if self.key else "not run"
            run = self.session.run
            around = (self.session.busy, id(self.session.failure), id(run.steps), run.status, state, keys)
            shown = (self.key, state == "not run", _content(self.step))
            if (around, shown) == self._seen:
                return
            anew = self._seen is None or shown != self._seen[1]
            self._seen = (around, shown)
            self._show_head(state)
            self._show_controls(keys, state)
            self._tell_failure(state)
            self._hint.value = body(aside(STALE_HINT if state == "stale" else HINT))
            if anew:
                self._show_section(state)
            elif self._sections.value == "Prompt" and not self.session.busy:
                self._draw()  # what an agent before this one yielded fills the prompt

    def _show_section(self, state: State) -> None:
        """Draw what is chosen; a result that has come is shown at once if this cell was told to run."""
        wanted = self._sections.value
        if state == "done" and (self._told_to_run or not self._drawn):
            wanted = "Result"
        elif state == "not run" and wanted == "Result":
            wanted = "Prompt"
        self._told_to_run = self._told_to_run and state != "done"
        self._drawn = True
        if wanted != self._sections.value:
            self._sections.value = wanted  # draws it
        else:
            self._draw()

    @property
    def step(self) -> Step | None:
        """The step that is shown, as far as it was run."""
        return self.session.steps.get(self.key)

    def run_agent(self) -> None:
        """Run up to the end of this agent."""
        self.message.clear()
        self._told_to_run = True
        self.session.go(self.key or self.agent)

    def static(self) -> str:
        step = self.step
        if step is not None:
            return step_html(step, self.session.run.calls)
        return body(tag("b", self.agent), f": {self.spec.purpose} Not run when this was displayed.")

    def __repr__(self) -> str:
        step = self.step
        return repr(step) if step is not None else f"{self.agent}: not run yet"

    # --- head and controls ----------------------------------------------------------------------------------

    def _make_controls(self) -> dict[str, widgets.Widget]:
        buttons: dict[str, tuple[str, Callable[[], Any]]] = {
            "run": ("Run", self.run_agent),
            "cancel": ("Cancel", self.session.cancel),
            "anew": ("Ask anew", lambda: self.session.refresh(self.key)),
            "restore": ("Undo the edit by hand", lambda: self.session.restore(self.key)),
        }
        made = {name: self.button(text, action) for name, (text, action) in buttons.items()}
        made["run"].button_style = "primary"
        return made

    def _show_head(self, state: State) -> None:
        step = self.step
        facts = [self._said(state), *(made(step, self.session.run.calls) if step and step.done else [])]
        model = self.session.run.model_name(self.spec.name)
        if step and step.attempts:
            facts += [_tokens(step, self.session), model]
        self._head.value = body(
            tag("span", self.key or self.agent, class_="kgwb-head"),
            badges(filter(None, facts)),
            tag("div", aside(self.spec.purpose.replace("``", ""))),
            *(tag("div", note, class_="kgwb-note") for note in (step.notes if step else ())),
            class_=f"kgwb-{state}",
        )

    def _said(self, state: State) -> str:
        if state == "not run" and self.session.run.status == "done":
            return "the run ended without it"
        return SAID[state]

    def _show_controls(self, keys: list[str], state: State) -> None:
        self._which.layout.display = "" if len(keys) > 1 else "none"
        options = tuple((clean(key), key) for key in keys)
        if self._which.options != options:
            self._which.options = options
        if keys and self._which.value != self.key:
            self._which.value = self.key
        step, busy = self.step, bool(self.session.busy)
        dim(self._controls["run"], busy)
        dim(self._controls["cancel"], not busy)
        self._controls["cancel"].layout.display = "none" if self._inside else ""
        dim(self._controls["anew"], busy or step is None or not step.calls)
        by_hand = step is not None and step.origin == "by hand"
        self._controls["restore"].layout.display = "" if by_hand else "none"
        self._human = self._human_panel()
        human = (self._human,) if self._human else ()
        wanted = (
            self._head,
            self._which,
            row(*self._controls.values()),
            *human,
            self._sections,
            self._section,
        )
        if len(self.children) != len(wanted) + 2:
            self.show(*wanted)

    def _human_panel(self) -> HumanPanel | None:
        model = self.session.run.model_for(self.spec.name)
        if self._inside or not isinstance(model, Human):
            return None
        return self._human or HumanPanel(model, self.session)

    def _tell_failure(self, state: State) -> None:
        failure, step = self.session.failure, self.step
        if failure is not None and (state == "failed" or not self.session.steps):
            self.message.fail(failure)
        elif step is not None and step.error:
            self.message.fail(KgwbError(step.error))
        elif state == "done":
            self.message.clear()

    def _chosen(self, key: str | None) -> None:
        if key and key != self.key:
            with self._lock:
                self.key = key
            self.refresh()

    # --- sections -------------------------------------------------------------------------------------------

    def _draw(self) -> None:
        with self._lock:
            drawn = {
                "Result": self._result,
                "What came in": self._inputs,
                "Prompt": self._prompt,
                "Attempts": self._attempts,
                "Edit the result": self._edit,
            }[self._sections.value]()
            self._section.children = drawn

    def _result(self) -> tuple[widgets.Widget, ...]:
        step = self.step
        if step is None or not step.done:
            return (markup(f"Nothing yet: {self._said('not run')}."),)
        return (result_view(step, self.session, self),)

    def _inputs(self) -> tuple[widgets.Widget, ...]:
        step = self.step
        if step is None:
            return (markup("Nothing yet: run the agents before this one, or press Run."),)
        steps = tuple(self.session.steps.values())
        names = names_in(steps, self.session.run.calls)
        told: list[object] = []
        for name, value in step.inputs.items():
            maker = maker_of(value, step, steps)
            origin = aside(f" from {maker}" if maker else " from the question")
            told.append(tag("div", tag("b", name), origin))
            told.append(record(value, names) if says_more(value) else tag("div", summary(value, names)))
        return (markup(*(told or ("Nothing comes in.",))),)

    def _prompt(self) -> tuple[widgets.Widget, ...]:
        kept = self._prompts.get(self.key) or self._prompts.get(self.agent)
        if kept is None or kept.overtaken():
            kept = PromptSection(self)
        else:
            kept.preview()
        self._prompts[self.key or self.agent] = kept
        return (kept,)

    def _attempts(self) -> tuple[widgets.Widget, ...]:
        step = self.step
        if step is None:
            return (markup("Nothing yet: press Run."),)
        if not step.attempts:
            return (markup("This step asked no model."),)
        calls = self.session.run.calls
        return (markup(*(attempt(number, one, calls) for number, one in enumerate(step.attempts, 1))),)

    def _edit(self) -> tuple[widgets.Widget, ...]:
        step = self.step
        if step is None or not (step.done or step.error):
            return (markup("Run this agent first: the form is that of its result."),)
        content, form = self._editors.get(self.key, (None, None))
        if form is None or content != _content(step):
            form = editor(step, self.session, self)
            self._editors[self.key] = _content(step), form
        use = self.button("Use this result", self._apply, button_style="primary")
        return (form.widget, row(use), self._hint)

    def _apply(self) -> None:
        _, form = self._editors[self.key]
        value = form.value()
        self.message.clear()
        self._told_to_run = True
        self.session.replace(self.key, value)


class PromptSection(widgets.VBox):
    """A prompt file to edit, and what will be sent when it is filled with what came in."""

    def __init__(self, cell: AgentCell) -> None:
        super().__init__()
        self.children: tuple[widgets.Widget, ...]
        self.cell, self.session = cell, cell.session
        self._agent = cell.key or cell.spec.name
        self.name, self._why = self._find()
        if not self.name:
            self.children = (markup(self._why),)
            return
        self._used = self.session.run.prompts.text(self.name)
        self._text = widgets.Textarea(
            value=self._used,
            rows=14,
            layout=widgets.Layout(width="99%"),
            continuous_update=False,
            tooltip="the text of the prompt file, to edit",
        )
        self._file, self._diff, self._sent = markup(), markup(), markup()
        self.cell.watch(self._text, lambda _: self.preview())
        controls = row(
            cell.button("Try this once", self._try, tooltip="for this run only; the file stays as it is"),
            cell.button("Save to file", self._save),
            cell.button("Back to the file's text", self._revert),
        )
        self.children = (self._file, self._text, controls, self._diff, self._sent)
        self.preview()

    def overtaken(self) -> bool:
        """Whether another prompt, or another text of it, is in use than when this was drawn."""
        if not self.name or not self.session.busy:
            name, _ = self._find()
            return name != self.name or bool(name and self.session.run.prompts.text(name) != self._used)
        return False

    def _find(self) -> tuple[str, str]:
        """The name of the prompt file, or in words why there is none."""
        step = self.cell.step
        if step is not None and step.prompts:
            return step.prompts[-1], ""
        asked = None if step is not None and step.done else self.session.peek(self._agent)
        if asked is not None:
            return asked.task, ""
        if step is not None and step.done:
            return "", "This step asked no model, so it used no prompt."
        name = f"{self.session.run.system.name}/{self.cell.spec.name}"
        try:
            self.session.run.prompts.path(name)
        except PromptError:
            return "", "This agent asks no model."
        return name, ""

    def preview(self) -> None:
        """Show what will be sent with the text as it is edited, and how it differs from the file."""
        if not self.name:
            return
        in_file, text = self._in_file(), self._text.value
        said = "no such file now" if in_file is None else "as in the file" if text == in_file else "edited"
        where = tag("code", f"prompts/{self.name}.md")
        model = self.session.run.model_name(self.cell.spec.name)
        baseline = tag("div", f"{BASELINE}.", class_="kgwb-note") if model == "rules" else ""
        self._file.value = body(where, badges([said]), baseline)
        self._diff.value = body(_difference(in_file, text)) if said == "edited" and in_file else ""
        self._sent.value = body(self._filled(text))

    def _filled(self, text: str) -> Html:
        try:
            asked = self.session.peek(self._agent, self.name, text)
        except KgwbError as exc:
            return tag("div", tag("b", "This prompt cannot be used: "), exc.message, class_="kgwb-bad")
        if asked is None:
            return aside(
                "Nothing to send yet: the agents before this one must run first, or it asks no model."
            )
        head = f"As it will be sent ({count(sum(len(m.content) for m in asked.messages), 'character')})"
        return fold(head, sent_html(asked.messages), unfolded=True)

    def _in_file(self) -> str | None:
        prompts = self.session.run.prompts
        try:
            return prompts.path(self.name).read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError, PromptError):
            return None

    def _try(self) -> None:
        self.session.edit_prompt(self.name, self._text.value)
        self.cell.run_agent()

    def _save(self) -> None:
        path = self.session.save_prompt(self.name, self._text.value)
        self.preview()
        self.cell.message.say(f"saved to {path}; the next run uses it")

    def _revert(self) -> None:
        text = self._in_file()
        if text is None:
            hint = "keep this text, or save it to make the file anew"
            raise PromptError(f"there is no readable file prompts/{self.name}.md", hint=hint)
        self._text.value = text
        self.preview()


def _difference(before: str, after: str) -> Html:
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), "file", "edited", lineterm="", n=1)
    kinds = {"+": "kgwb-added", "-": "kgwb-removed"}
    drawn = [tag("div", line or " ", class_=kinds.get(line[:1], "kgwb-kept")) for line in lines]
    return fold("difference from the file", tag("pre", *drawn, class_="kgwb-pre"), unfolded=True)


def _content(step: Step | None) -> object:
    """What a cell shows of a step, whichever execution it is of."""
    return step and (step.inputs, step.done, step.output, step.error, step.attempts, step.prompts)


def _tokens(step: Step, session: Session) -> str:
    replies = [session.run.calls[one.call].result for one in step.attempts if one.call in session.run.calls]
    tokens = sum(reply.prompt_tokens + reply.completion_tokens for reply in replies)
    return f"{count(tokens, 'token')}" if tokens else ""
