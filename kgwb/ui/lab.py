"""The prompt lab in a notebook: edit a prompt, ask again what was lost, see what is fixed and broken."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from kgwb.bench.changes import Change, texts_of
from kgwb.bench.cost import Budget, load_prices
from kgwb.bench.figures import Measured
from kgwb.bench.lab import Lab
from kgwb.bench.questions import BenchQuestion
from kgwb.bench.report import Report
from kgwb.bench.results import Row
from kgwb.bench.runner import Setup
from kgwb.errors import Cancelled, InputError
from kgwb.kg import Graph
from kgwb.llm.base import ChatModel
from kgwb.run.prompts import Prompts
from kgwb.show.form import changed_lines, editor, split_prompt, with_template
from kgwb.show.html import Html, button, div, join, note, span, tabs, tag
from kgwb.text import display_name, pluralize, shorten
from kgwb.ui.debugger import Debugger, debug_question
from kgwb.ui.live import Event, Live, Part, progress, text_field
from kgwb.ui.session import Worker


class PromptLab(Live):
    """The results of a benchmark's folder, to be asked again with a prompt that is edited here.

    ``others`` are folders that were asked again before, to be shown at once. Graph and models are those that
    were measured, or the ones given. ``prices`` is a TOML table of prices. Raises InputError.
    """

    def __init__(
        self,
        folder: str | Path,
        *others: str | Path,
        kg: Graph | str | None = None,
        model: ChatModel | str | None = None,
        models: Mapping[str, ChatModel | str] | None = None,
        prices: str | Path | None = None,
        workers: int = 4,
    ) -> None:
        self.lab = Lab(folder, kg=kg, model=model, models=models)
        self.prices, self.workers = load_prices(prices), workers
        earlier = self.lab.earlier
        self.texts = texts_of(earlier, earlier.config.get("prompts") or {})
        """The prompts that were sent, by name."""
        self.drafts: dict[str, str] = {}  # what was typed over their templates, by name
        names = [name for name in self.texts if name.startswith(f"{self.lab.system.name}/")]
        self.chosen = next(iter([*names, *self.texts]), "")
        self.folders = [Path(other) for other in others]  # what was asked again, oldest first
        self.report: Report | None = None
        self.estimate = self.question = ""
        self.options = {"only": "", "repeats": "1", "budget": ""}  # the options as they were typed
        self.revision = 0
        self.debugger: Debugger | None = None
        self.worker = Worker()
        super().__init__(self.worker)
        self._show(*self.folders)

    def parts(self) -> Mapping[str, Part]:
        return {"debugger": self.debugger} if self.debugger else {}

    def _show(self, *folders: Path) -> None:
        self.folders = list(dict.fromkeys([*self.folders, *folders]))
        self.report = Report(self.lab.earlier.folder, *self.folders) if self.folders else None
        _ = (
            self.report.effects if self.report else None
        )  # computed here, on the thread that waits for it

    def view(self) -> Html:
        return join(
            self._head(),
            self._editor()
            if self.chosen
            else note("No run was kept: measure with --save-runs.", kind="bad"),
            progress(self.worker),
            self._page(live=True),
            self.inside("debugger") if self.debugger else "",
        )

    def static_view(self) -> Html:
        return join(self._head(), self._page(live=False))

    def _head(self) -> Html:
        earlier = self.lab.earlier
        title = tag("h2", "Prompt lab", class_="title")
        return div("head", title, span("soft grow", f"{earlier.name}: {earlier.headline}"))

    def _editor(self) -> Html:
        """The prompt as it is typed, what that changes, and what to ask."""
        template = split_prompt(self.texts[self.chosen])[1]
        text = self.drafts.get(self.chosen, template)
        edited = {name for name in self.drafts if self._text(name) != self.texts[name]}
        labels = {name: display_name(name.rpartition("/")[2]) for name in self.texts}
        options = [
            (name, label, "edited" if name in edited else "") for name, label in labels.items()
        ]
        busy = bool(self.worker.busy)
        hints = {
            "only": "which (lost and as many right): lost, wrong, errors, right, all, blamed=AGENT, an id",
            "repeats": "times, to see what varies by itself",
            "budget": "budget, as model_calls=100",
        }
        width = {"only": "grow", "repeats": "", "budget": ""}
        fields = (
            tag(
                "label",
                span("", hint),
                text_field(name, hint, self.options[name]),
                class_=f"f {width[name]}",
            )
            for name, hint in hints.items()
        )
        actions = (
            button("What will it take?", "estimate", off=busy),
            button("Ask again", "again", "run", "primary", off=busy),
            button("Cancel", "cancel", "stop") if busy else "",
            span("hint", self.estimate),
        )
        form = (
            editor(text, f"{self.chosen} {self.revision}"),
            changed_lines(template, text),
            div("row ends", *fields),
            div("row controls", *actions),
        )
        return join(
            tabs(options, self.chosen, "prompt"),
            tag("form", *form, class_="body stack", data_do="again", id="lab-form"),
        )

    def _page(self, *, live: bool) -> Html:
        if self.report is None:
            return Html()

        def link(measured: Measured, change: Change) -> object:
            text = shorten(change.after["question"])
            if not live:
                return text
            sets = self.report.sets if self.report else ()
            number = next(n for n, each in enumerate(sets) if each is measured)
            arg = f"{number} {change.agent}\t{change.after['id']}"
            return button(text, "open", class_="ghost", arg=arg, title="open it in the debugger")

        return div("body stack", *self.report.changed(link))

    def _text(self, name: str) -> str:
        """A prompt with what was typed over it."""
        sent, draft = self.texts[name], self.drafts.get(name)
        return sent if draft in (None, split_prompt(sent)[1]) else with_template(sent, draft)

    def _typed(self, event: Event) -> tuple[Setup, list[BenchQuestion], int]:
        """Keep what was typed; the set-up with every prompt that was edited, what to ask it, and how often.

        Raises InputError, and PromptError for a prompt that cannot be used.
        """
        form = event.get("form", {})
        self.options |= {
            name: str(form.get(name, text)).strip() for name, text in self.options.items()
        }
        if "template" in form:
            self.drafts[self.chosen] = str(form["template"]).replace("\r\n", "\n")
        if not self.options["repeats"].isdecimal() or not 1 <= int(self.options["repeats"]) <= 100:
            raise InputError(
                f"{self.options['repeats']!r} is no number of times", hint="type 1 to 100"
            )
        prompts = Prompts(texts={})
        for name in self.texts:
            prompts = prompts.with_text(name, self._text(name))
        questions = self.lab.choose(self.options["only"].split())
        return self.lab.changed(prompts), questions, int(self.options["repeats"])

    def do_prompt(self, event: Event) -> None:
        self.chosen = str(event["arg"]) if event["arg"] in self.texts else self.chosen

    def do_draft(self, event: Event) -> None:
        self.drafts[self.chosen] = str(event["value"]).replace("\r\n", "\n")

    def do_estimate(self, event: Event) -> None:
        setup, questions, repeats = self._typed(event)

        def work() -> None:
            self.estimate = str(
                self.lab.estimate(setup, questions, prices=self.prices, repeats=repeats)
            )

        self.worker.do("looking at what is recorded", work)

    def do_again(self, event: Event) -> None:
        """Say what it will take, ask, and show what became of it."""
        self.do_estimate(event)
        setup, questions, repeats = self._typed(event)
        limits = [part.partition("=") for part in self.options["budget"].split()]
        budget = Budget({name: limit for name, _, limit in limits}, self.prices)
        names = [
            name.rpartition("/")[2] for name in self.texts if self._text(name) != self.texts[name]
        ]
        folder = self.lab.folder_of(setup, ", ".join(names) or "prompts")
        asked: list[Row] = []

        def finished(row: Row) -> None:
            asked.append(row)
            self.worker.busy = f"asking again: {len(asked)} of {len(questions)} questions"
            self.worker.tell_soon()
            if self.worker.cancelled:
                raise Cancelled

        def work() -> None:
            try:
                stopped = self.lab.ask(
                    setup,
                    questions,
                    folder,
                    repeats=repeats,
                    workers=self.workers,
                    budget=budget,
                    finished=finished,
                )
            except Cancelled:
                stopped = "cancelled"
            self._show(folder)
            if stopped:
                hint = "ask again: it goes on from there"
                raise InputError(
                    f"stopped with {pluralize(len(asked), 'question')} asked: {stopped}", hint=hint
                )

        self.worker.do("asking again", work)

    def do_cancel(self, event: Event) -> None:
        self.worker.cancel()

    def do_open(self, event: Event) -> None:
        """Open a question of the page in the debugger, live, at the agent that decided otherwise."""
        place, _, question = str(event["arg"]).partition("\t")
        number, _, agent = place.partition(" ")
        if self.report is not None:
            self.debugger = debug_question(
                self.report,
                question,
                kg=self.lab.kg,
                model=self.lab.models,
                number=int(number),
                agent=agent,
            )
            self.debugger.outer = self

    def __repr__(self) -> str:
        effects = self.report.effects if self.report else []
        lines = (line for effect in effects for line in effect.lines())
        return "\n".join(
            [f"PromptLab({self.lab.earlier.name}: {self.lab.earlier.headline})", *lines]
        )
