"""The prompt lab in a notebook: edit a prompt, ask again what was lost, see what is fixed and broken."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from kgwb.bench.changes import QuestionChange, load_prompt_texts
from kgwb.bench.cost import Budget, load_prices
from kgwb.bench.figures import LoadedResults
from kgwb.bench.lab import RetryExperiment
from kgwb.bench.questions import BenchQuestion
from kgwb.bench.report import Report
from kgwb.bench.results import BenchRow
from kgwb.bench.runner import BenchSetup
from kgwb.errors import Cancelled, InputError
from kgwb.kg import Graph
from kgwb.llm.base import ChatModel
from kgwb.run.prompts import Prompts
from kgwb.show.html import Html, button, div, join, note, span, tabs, tag
from kgwb.show.prompt_form import (
    render_template_diff,
    render_template_editor,
    replace_template,
    split_prompt,
)
from kgwb.text import display_name, pluralize, shorten
from kgwb.ui.debugger import Debugger, debug_question
from kgwb.ui.live import Event, Live, Part, render_progress, text_input
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
        self.lab = RetryExperiment(folder, kg=kg, model=model, models=models)
        self.prices = load_prices(prices)
        self.worker_count = workers
        earlier = self.lab.earlier_results
        self.prompt_texts = load_prompt_texts(earlier, earlier.config.get("prompts") or {})
        """The prompts that were sent, by name."""
        self.template_drafts: dict[str, str] = {}  # what was typed over their templates, by name
        names = [name for name in self.prompt_texts if name.startswith(f"{self.lab.system.name}/")]
        self.selected_prompt = next(iter([*names, *self.prompt_texts]), "")
        self.result_folders = [
            Path(other) for other in others
        ]  # what was asked again, oldest first
        self.report: Report | None = None
        self.estimate_text = self.question = ""
        self.option_texts = {
            "only": "",
            "repeats": "1",
            "budget": "",
        }  # the options as they were typed
        self.revision = 0
        self.debugger: Debugger | None = None
        self.worker = Worker()
        super().__init__(self.worker)
        self._load_report(*self.result_folders)

    def children(self) -> Mapping[str, Part]:
        return {"debugger": self.debugger} if self.debugger else {}

    def _load_report(self, *folders: Path) -> None:
        self.result_folders = list(dict.fromkeys([*self.result_folders, *folders]))
        self.report = (
            Report(self.lab.earlier_results.folder, *self.result_folders)
            if self.result_folders
            else None
        )
        _ = (
            self.report.comparisons if self.report else None
        )  # computed here, on the thread that waits for it

    def view(self) -> Html:
        return join(
            self._render_header(),
            self._render_editor()
            if self.selected_prompt
            else note("No run was kept: measure with --save-runs.", level="bad"),
            render_progress(self.worker),
            self._render_report(live=True),
            self.render_child("debugger") if self.debugger else "",
        )

    def render_static(self) -> Html:
        return join(self._render_header(), self._render_report(live=False))

    def _render_header(self) -> Html:
        earlier = self.lab.earlier_results
        title = tag("h2", "Prompt lab", class_="title")
        return div("head", title, span("soft grow", f"{earlier.name}: {earlier.headline}"))

    def _render_editor(self) -> Html:
        """The prompt as it is typed, what that changes, and what to ask."""
        template = split_prompt(self.prompt_texts[self.selected_prompt])[1]
        text = self.template_drafts.get(self.selected_prompt, template)
        edited = {
            name
            for name in self.template_drafts
            if self._edited_prompt(name) != self.prompt_texts[name]
        }
        labels = {name: display_name(name.rpartition("/")[2]) for name in self.prompt_texts}
        options = [
            (name, label, "edited" if name in edited else "") for name, label in labels.items()
        ]
        busy = bool(self.worker.current_task)
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
                text_input(name, hint, self.option_texts[name]),
                class_=f"f {width[name]}",
            )
            for name, hint in hints.items()
        )
        actions = (
            button("What will it take?", "estimate", disabled=busy),
            button("Ask again", "again", "run", "primary", disabled=busy),
            button("Cancel", "cancel", "stop") if busy else "",
            span("hint", self.estimate_text),
        )
        form = (
            render_template_editor(text, f"{self.selected_prompt} {self.revision}"),
            render_template_diff(template, text),
            div("row ends", *fields),
            div("row controls", *actions),
        )
        return join(
            tabs(options, self.selected_prompt, "prompt"),
            tag("form", *form, class_="body stack", data_do="again", id="lab-form"),
        )

    def _render_report(self, *, live: bool) -> Html:
        if self.report is None:
            return Html()

        def link(measured: LoadedResults, change: QuestionChange) -> object:
            text = shorten(change.after["question"])
            if not live:
                return text
            sets = self.report.results if self.report else ()
            number = next(n for n, each in enumerate(sets) if each is measured)
            arg = f"{number} {change.agent}\t{change.after['id']}"
            return button(text, "open", class_="ghost", arg=arg, title="open it in the debugger")

        return div("body stack", *self.report.render_changes(link))

    def _edited_prompt(self, name: str) -> str:
        """A prompt with what was typed over it."""
        sent, draft = self.prompt_texts[name], self.template_drafts.get(name)
        return sent if draft in (None, split_prompt(sent)[1]) else replace_template(sent, draft)

    def _read_form(self, event: Event) -> tuple[BenchSetup, list[BenchQuestion], int]:
        """Keep what was typed; the set-up with every prompt that was edited, what to ask it, and how often.

        Raises InputError, and PromptError for a prompt that cannot be used.
        """
        form = event.get("form", {})
        self.option_texts |= {
            name: str(form.get(name, text)).strip() for name, text in self.option_texts.items()
        }
        if "template" in form:
            self.template_drafts[self.selected_prompt] = str(form["template"]).replace("\r\n", "\n")
        if (
            not self.option_texts["repeats"].isdecimal()
            or not 1 <= int(self.option_texts["repeats"]) <= 100
        ):
            raise InputError(
                f"{self.option_texts['repeats']!r} is no number of times", hint="type 1 to 100"
            )
        prompts = Prompts(texts={})
        for name in self.prompt_texts:
            prompts = prompts.with_text(name, self._edited_prompt(name))
        questions = self.lab.choose_questions(self.option_texts["only"].split())
        return self.lab.make_setup(prompts), questions, int(self.option_texts["repeats"])

    def do_prompt(self, event: Event) -> None:
        self.selected_prompt = (
            str(event["arg"]) if event["arg"] in self.prompt_texts else self.selected_prompt
        )

    def do_draft(self, event: Event) -> None:
        self.template_drafts[self.selected_prompt] = str(event["value"]).replace("\r\n", "\n")

    def do_estimate(self, event: Event) -> None:
        setup, questions, repeats = self._read_form(event)

        def work() -> None:
            self.estimate_text = str(
                self.lab.estimate_cost(setup, questions, prices=self.prices, repeats=repeats)
            )

        self.worker.submit("looking at what is recorded", work)

    def do_again(self, event: Event) -> None:
        """Say what it will take, ask, and show what became of it."""
        self.do_estimate(event)
        setup, questions, repeats = self._read_form(event)
        limits = [part.partition("=") for part in self.option_texts["budget"].split()]
        budget = Budget({name: limit for name, _, limit in limits}, self.prices)
        names = [
            name.rpartition("/")[2]
            for name in self.prompt_texts
            if self._edited_prompt(name) != self.prompt_texts[name]
        ]
        folder = self.lab.get_results_folder(setup, ", ".join(names) or "prompts")
        asked: list[BenchRow] = []

        def finished(row: BenchRow) -> None:
            asked.append(row)
            self.worker.current_task = f"asking again: {len(asked)} of {len(questions)} questions"
            self.worker.notify_soon()
            if self.worker.cancelled:
                raise Cancelled

        def work() -> None:
            try:
                stopped = self.lab.ask_again(
                    setup,
                    questions,
                    folder,
                    repeats=repeats,
                    workers=self.worker_count,
                    budget=budget,
                    on_row=finished,
                )
            except Cancelled:
                stopped = "cancelled"
            self._load_report(folder)
            if stopped:
                hint = "ask again: it goes on from there"
                raise InputError(
                    f"stopped with {pluralize(len(asked), 'question')} asked: {stopped}", hint=hint
                )

        self.worker.submit("asking again", work)

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
            self.debugger.parent = self

    def __repr__(self) -> str:
        effects = self.report.comparisons if self.report else []
        lines = (line for effect in effects for line in effect.summary_lines())
        return "\n".join(
            [
                f"PromptLab({self.lab.earlier_results.name}: {self.lab.earlier_results.headline})",
                *lines,
            ]
        )
