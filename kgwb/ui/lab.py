"""The prompt lab: edit a prompt, ask lost questions again, and see what is fixed and broken."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from kgwb.bench.comparisons import QuestionChange, load_prompt_texts
from kgwb.bench.cost import Budget, load_prices
from kgwb.bench.figures import LoadedResults, make_luck_table, show_folder_name
from kgwb.bench.formats import load_questions, locate_questions
from kgwb.bench.lab import (
    TEST_SLICE,
    PromptHistory,
    RetryExperiment,
    list_retries,
    read_measured_prompts,
    write_note,
)
from kgwb.bench.ladder import locate_losses
from kgwb.bench.questions import (
    NAMED_GOLD_HINT,
    BenchQuestion,
    add_gold_answers,
    describe_named_gold,
    find_named_gold,
    select_slices,
)
from kgwb.bench.report import Report, name_values, render_answers, render_gold
from kgwb.bench.results import BenchRow, QuestionSample, Results, is_lost, is_shown, lock_folder
from kgwb.bench.runner import Benchmark, BenchSetup, check_repeats
from kgwb.errors import Cancelled, InputError
from kgwb.kg import Graph
from kgwb.llm.base import ChatModel
from kgwb.run.prompts import Prompts
from kgwb.run.systems import SystemSource
from kgwb.show import html as h
from kgwb.show.html import Html
from kgwb.show.prompt_form import (
    DEFAULT_FOLDER,
    render_template_diff,
    render_template_editor,
    replace_template,
    split_prompt,
)
from kgwb.text import display_name, pluralize, tell_apart
from kgwb.ui.conversation import DialogueWorkbench
from kgwb.ui.debugger import Debugger, debug_question
from kgwb.ui.live import (
    Event,
    Live,
    Part,
    argument_of,
    form_of,
    render_page,
    render_progress,
    typed_text,
)
from kgwb.ui.worker import Worker

MAX_REPEATS = 100
OPTION_LABELS = {
    "only": "questions: lost, wrong, errors, right, all, failed, blamed=AGENT, an id (default: the lost ones "
    "and as many right ones)",
    "slice": "only of slices, such as tag=person, split=dev",
    "repeats": "times each is asked",
    "budget": "budget, such as model_calls=100",
    "note": "note, to remember why",
}
"""The labels of the options, by name."""


class Retry(NamedTuple):
    """What is to be asked again."""

    setup: BenchSetup
    """With every edited prompt."""
    questions: list[BenchQuestion]
    sample: QuestionSample
    """What they say about all questions."""
    repeats: int
    """How often each question is asked."""
    folder: Path
    """Where its results are written. It is named by setup and prompts, so that the same retry continues there."""
    remark: str
    """What to know before it; "" if there is nothing."""


class PromptLab(Live):
    """The widget in which a benchmark's questions are asked again with edited prompts."""

    def __init__(
        self,
        folder: str | Path,
        *others: str | Path,
        kg: Graph | str | None = None,
        model: ChatModel | str | None = None,
        models: Mapping[str, ChatModel | str] | None = None,
        prices: str | Path | None = None,
        workers: int = 4,
        system: SystemSource | None = None,
    ) -> None:
        """Open the results folder of a benchmark.

        ``others`` are the folders of earlier retries, to be shown at once. Graph and models are
        those of the results, or the ones given; ``models`` are by agent. ``prices`` is a TOML table
        of prices. ``workers`` questions are asked at the same time. ``system`` is needed if the one
        that was measured is not among the names of systems.

        Raises InputError if the folder holds no results, or if the graph or a model is another one
        now.
        """
        self.lab = RetryExperiment(folder, kg=kg, model=model, models=models, system=system)
        self.prices = load_prices(prices)
        self.worker_count = workers
        earlier = self.lab.earlier_results
        sent_prompts = earlier.config.get("prompts") or {}
        self.prompt_texts = load_prompt_texts(earlier, sent_prompts)
        """The prompts that were sent, by name."""
        self.template_drafts: dict[str, str] = {}
        """Their templates as they were typed, by name."""
        self.selected_prompt = self._first_prompt()
        """The name of the prompt that is edited; empty if no prompt is known."""
        folders = dict.fromkeys(map(Path, others))
        self.result_folders = list(folders)
        """The folders of the retries, oldest first."""
        self._asked: dict[Path, Retry] = {}
        """What was asked of the retries that were made here: the report has no other questions of them."""
        self.report = Report(folder)
        """Compares the retries with the first results."""
        self.kept_folder = DEFAULT_FOLDER
        """The folder in which prompts are kept."""
        self.estimate_text = ""
        """The cost of the retry, as it was estimated last."""
        self.option_texts = {**dict.fromkeys(OPTION_LABELS, ""), "repeats": "1"}
        """The options as they were typed, by name."""
        self.debugger: Debugger | None = None
        """Of the question that was opened last."""
        self.gold_remark = ""
        """Which gold of the question file is a text that is a name; "" if none is known to be."""
        self._debugged_texts: dict[str, str] = {}
        """The prompts of its run when they were last looked at, by name."""
        self._editor_revision = 0
        """Increased whenever the editor must take over a draft."""
        self.worker = Worker()
        super().__init__(self.worker)
        self._load_report()

    @classmethod
    def measure(
        cls,
        questions: str | Path,
        workbench: DialogueWorkbench,
        folder: str | Path,
        *,
        limit: int | None = None,
        slices: Sequence[str] = (),
        ladder: bool = False,
        workers: int = 4,
        **options: Any,
    ) -> PromptLab:
        """Ask a workbench the questions of a file, and return a lab with the results.

        ``folder`` is the results folder; questions that it has are not asked again. It blocks until
        the first ``limit`` questions of those in all ``slices``, or all, are asked. With ``ladder``
        the agent that lost each answer is found, which asks several times more. ``options`` are
        those of the lab. It shows which gold texts of the file are names of things in the graph. Raises
        InputError if the file cannot be used, if the folder holds results of another setup, or if
        the system has no ladder.
        """
        chosen = select_slices(load_questions(questions), slices)[:limit]
        named_gold = find_named_gold(chosen, workbench.kg)
        asked = add_gold_answers(chosen, workbench.kg)
        setup = BenchSetup.from_workbench(workbench)
        with lock_folder(Path(folder)):
            results = Results(folder, setup.to_config(asked))
            benchmark = Benchmark(setup, results, workers=workers, save_runs=True)
            benchmark.run(asked)
            if ladder:
                locate_losses(setup, results, asked, workers=workers)
        given = {"kg": workbench.kg, "models": setup.models, "system": setup.system, **options}
        lab = cls(folder, workers=workers, **given)
        if named_gold:
            remark = describe_named_gold(named_gold, locate_questions(questions))
            lab.gold_remark = f"{remark}. To mend it, {NAMED_GOLD_HINT}"
        return lab

    def _first_prompt(self) -> str:
        """Return the first prompt of the system's own folder, else the first of all, else ""."""
        folder = f"{self.lab.system.name}/"
        for name in self.prompt_texts:
            if name.startswith(folder):
                return name
        return next(iter(self.prompt_texts), "")

    def children(self) -> Mapping[str, Part | None]:
        """Return the debugger of the lost question that is open, under "debugger"; None without one."""
        return {"debugger": self.debugger}

    def _load_report(self) -> None:
        """Read the results and retries of the folders again, and compare them.

        This takes long, and is done here so that no view has to wait for it. The comparison is in
        ``report``.
        """
        shown: list[Path | LoadedResults] = []
        for folder in self.result_folders:
            asked = self._asked.get(folder)
            if asked:
                shown.append(self.lab.read_asked(folder, asked.questions, asked.sample))
            else:
                shown.append(folder)
        report = Report(self.lab.earlier_results.folder, *shown)
        for comparison in report.comparisons:
            _ = comparison.changes
        self.report = report
        self._retries = list_retries(self.lab.earlier_results)

    # The page

    def view(self) -> Html:
        """Render the results, the editor of the selected prompt, the options, and the report.

        The editor has the template that was typed, and below it what differs from the one that was
        sent. The estimate and the progress of a retry are shown.
        """
        template = ""
        text = ""
        prompt_name = self.selected_prompt
        if prompt_name:
            _header, template = split_prompt(self.prompt_texts[prompt_name])
            text = self.template_drafts.get(prompt_name, template)
        return self._render(
            is_interactive=True,
            prompt_tabs=self._render_prompt_tabs(),
            form_id=self._form_id,
            editor=render_template_editor(text, f"{prompt_name} {self._editor_revision}"),
            template_diff=render_template_diff(template, text),
            option_labels=OPTION_LABELS,
            progress=render_progress(self.worker),
            retries=self._retries,
            show_folder_name=show_folder_name,
            list_kept=lambda: PromptHistory(self.kept_folder).to_table(),
        )

    def render_static(self) -> Html:
        return self._render(is_interactive=False)

    def _render(self, *, is_interactive: bool, **values: object) -> Html:
        """Render the template lab.html with the results and the report.

        If interactive, the rest of the page is rendered too, from ``values``; and an open debugger.
        A click on a question then opens it in the debugger.
        """
        results = self.lab.earlier_results
        debugger = Html()
        if is_interactive:
            debugger = self.render_child("debugger")

        def render_question(number: int, id_: str, agent: str = "") -> object:
            """Return a question's title; if interactive, a button that opens its run."""
            results = self.report.results[number]
            title = results.question_titles[id_]
            if not is_interactive:
                return title
            tooltip = "open it in the debugger"
            if agent or results.losses_by_id.get(id_, {}).get("agent"):
                tooltip += ", at the step to blame"
            arg = f"{number} {agent}\t{id_}"
            return h.button(title, "open", class_="ghost", arg=arg, title=tooltip)

        def render_changed(results: LoadedResults, change: QuestionChange) -> object:
            number = _position_of(results, self.report.results)
            return render_question(number, change.after["id"], change.agent)

        render_first = partial(render_question, 0)
        return render_page(
            "lab.html",
            lab=self,
            results=results,
            is_interactive=is_interactive,
            lost_questions=_list_lost_questions(results, render_first),
            lucky_questions=make_luck_table([results], show_question=render_first),
            changes=self.report.render_changes(render_changed),
            debugger=debugger,
            **values,
        )

    def _render_prompt_tabs(self) -> Html:
        """Render the prompts as tabs, by their short names; edited ones are marked "edited".

        A prompt is edited if its template differs from what was sent.
        """
        edited = self._edited_prompts()
        labels = tell_apart(self.prompt_texts, (_short_name, display_name, str))
        options = []
        for name, label in labels.items():
            mark = "edited" if name in edited else ""
            options.append((name, label, mark))
        return h.tabs(options, self.selected_prompt, "prompt", self._form_id)

    @property
    def _form_id(self) -> str:
        """The id of the form with the editor on a page, which may show several labs."""
        return f"lab-form-{id(self):x}"

    # The retry

    def _edited_prompt(self, name: str) -> str:
        """Return the text of a prompt with the template that was typed in place of its own.

        If nothing was typed, or the same, it is exactly the text that was sent.
        """
        sent = self.prompt_texts[name]
        _header, template = split_prompt(sent)
        draft = self.template_drafts.get(name, template)
        if draft == template:
            return sent
        return replace_template(sent, draft)

    def _edited_prompts(self) -> list[str]:
        """Return the names of the prompts whose text differs from what was sent."""
        edited = []
        for name, text in self.prompt_texts.items():
            if self._edited_prompt(name) != text:
                edited.append(name)
        return edited

    def _read_form(self, event: Event) -> Retry:
        """Keep what was typed into the form, and return the retry that it asks for.

        Raises InputError for options that are not valid, or if nothing differs from the results,
        and PromptError for a prompt that its agent cannot use.
        """
        self._keep_form(form_of(event))
        repeats = self._typed_repeats()
        prompts = Prompts(texts={})
        for name in self.prompt_texts:
            text = self._edited_prompt(name)
            prompts = prompts.with_text(name, text)

        selection = self.option_texts["only"].split()
        typed_slices = map(str.strip, self.option_texts["slice"].split(","))
        slices = [name for name in typed_slices if name]
        questions = self.lab.choose_questions(selection, slices)
        setup = self.lab.make_setup(prompts)
        check_repeats(setup.settings, repeats)
        sample = self.lab.sample(selection, slices)
        names = [_short_name(name) for name in self._edited_prompts()]
        is_test = TEST_SLICE in slices
        changes = ", ".join(names) or "prompts"
        folder = self.lab.get_results_folder(setup, changes, is_test=is_test)
        remark = self.lab.describe_test_look(folder) if is_test else ""
        return Retry(setup, questions, sample, repeats, folder, remark)

    def _keep_form(self, form: Mapping[str, str]) -> None:
        """Keep the options and the template that were typed; fields that are missing stay.

        Blanks around options are removed. The template is the draft of the selected prompt.
        """
        for name, text in self.option_texts.items():
            typed = str(form.get(name, text))
            self.option_texts[name] = typed.strip()
        if "template" in form:
            self.template_drafts[self.selected_prompt] = typed_text(form["template"])

    def _typed_repeats(self) -> int:
        """Return the typed number of repeats. Raises InputError unless it is 1 to MAX_REPEATS."""
        text = self.option_texts["repeats"]
        if not text.isdecimal() or not 1 <= int(text) <= MAX_REPEATS:
            raise InputError(
                f"the number of repeats cannot be {text!r}", hint=f"type 1 to {MAX_REPEATS}"
            )
        return int(text)

    def _typed_budget(self) -> Budget:
        """Return the typed budget, such as "model_calls=100 seconds=60". Raises InputError.

        An empty text sets no limit.
        """
        limits = {}
        for limit in self.option_texts["budget"].split():
            name, _, number = limit.partition("=")
            limits[name] = number
        return Budget(limits, self.prices)

    def _submit_estimate(self, retry: Retry) -> None:
        """Submit an estimate of a retry's cost from what is recorded; no model is asked.

        Its text is then in ``estimate_text``.
        """

        def estimate() -> None:
            """Keep the estimate as a text."""
            cost = self.lab.estimate_cost(
                retry.setup, retry.questions, prices=self.prices, repeats=retry.repeats
            )
            parts = (str(cost), retry.remark)
            self.estimate_text = "; ".join(filter(None, parts))

        self.worker.submit("estimating the cost", estimate)

    def _ask_again(self, retry: Retry, budget: Budget) -> None:
        """Ask the questions, write the results to the retry's folder, and load the report with them.

        It is called on the worker's thread.

        Raises InputError if the retry was cancelled or reached the budget. What was asked until
        then is in the report.
        """
        asked: list[BenchRow] = []

        def on_row(row: BenchRow) -> None:
            """Show on the page how many questions are done. Raises Cancelled after a cancel."""
            asked.append(row)
            progress = f"{len(asked)} of {len(retry.questions)} questions"
            self.worker.current_task = f"asking again: {progress}"
            self.worker.notify_soon()
            if self.worker.cancelled:
                raise Cancelled

        try:
            benchmark = self.lab.ask_again(
                retry.setup,
                retry.questions,
                retry.folder,
                sample=retry.sample,
                repeats=retry.repeats,
                workers=self.worker_count,
                budget=budget,
                on_row=on_row,
            )
            stopped = benchmark.stop_reason
        except Cancelled:
            stopped = "cancelled"
        write_note(retry.folder, self.option_texts["note"])
        self._asked[retry.folder] = retry
        self._show_folder(retry.folder)
        if stopped:
            raise InputError(
                f"stopped after {pluralize(len(asked), 'question')}: {stopped}",
                hint="to continue from there, press “Ask again”",
            )

    def _show_folder(self, folder: Path) -> None:
        """Make a results folder the latest one of the report, and load the report again."""
        if folder in self.result_folders:
            self.result_folders.remove(folder)
        self.result_folders.append(folder)
        self._load_report()

    # From the debugger

    def _handle(self, event: Event, part: Part) -> None:
        """Handle an event, and take prompts that were edited in the debugger into the editor."""
        super()._handle(event, part)
        self._take_edited_prompts()

    def _take_edited_prompts(self) -> None:
        """Make drafts of the prompts that were edited in the debugger since the last call."""
        if self.debugger is None:
            return
        texts = dict(self.debugger.run.prompts.texts)
        for name, text in texts.items():
            if name in self.prompt_texts and text != self._debugged_texts.get(name):
                self._set_draft(name, text)
        self._debugged_texts = texts

    def _set_draft(self, name: str, text: str) -> None:
        """Put the template of a prompt's text into the editor, and select the prompt."""
        _header, self.template_drafts[name] = split_prompt(text)
        self.selected_prompt = name
        self._editor_revision += 1

    # Events

    def do_start(self, event: Event) -> None:
        """Show an earlier retry, and take its prompts into the editor as drafts.

        The event's ``arg`` is the name of its folder; nothing happens if there is no such retry.
        Prompts that no saved run of it used are those that were measured first. Other drafts are
        dropped. The report is loaded on the worker's thread.
        """
        folders = {retry.folder.name: retry.folder for retry in reversed(self._retries)}
        folder = folders.get(argument_of(event))
        if folder is None:
            return
        self.template_drafts.clear()
        sent_texts = load_prompt_texts(LoadedResults.read(folder), self.prompt_texts)
        for name, text in sent_texts.items():
            if text != self.prompt_texts[name]:
                self._set_draft(name, text)
        self._editor_revision += 1
        self.worker.submit("comparing", lambda: self._show_folder(folder))

    def do_keep(self, event: Event) -> str:
        """Keep the prompts of a retry in a folder, and return a message that says how to use them.

        The form has the retry's folder, the folder to keep in (DEFAULT_FOLDER if empty), and a note
        for the history. Raises InputError if the folder has these prompts already, or cannot be
        written.
        """
        form = form_of(event)
        folders = {str(folder): folder for folder in self.result_folders}
        winner = folders[form["winner"]]
        self.kept_folder = form["kept_folder"].strip() or DEFAULT_FOLDER
        base = self.lab.earlier_results.folder
        history = PromptHistory(self.kept_folder)
        measured = read_measured_prompts(winner, base, self.lab.system, history.kept_results)
        change = history.keep(measured, form["kept_note"].strip())
        changed = ", ".join(change.after)
        kept = f"kept {changed}; Workbench(..., prompts={self.kept_folder!r}) uses it"
        return "; ".join(filter(None, (kept, change.remark, *measured.losses)))

    def do_undo(self, event: Event) -> str:
        """Take back the latest change of the folder in which prompts are kept.

        Returns a message with its note and the prompts.
        """
        history = PromptHistory(self.kept_folder)
        change = history.undo()
        changed = ", ".join(change.after)
        return f"{change.note}: {changed}"

    def do_prompt(self, event: Event) -> None:
        """Select the prompt that the event's ``arg`` names; nothing happens for another name."""
        name = argument_of(event)
        if name in self.prompt_texts:
            self.selected_prompt = name

    def do_draft(self, event: Event) -> None:
        """Keep what is being typed as the draft of the selected prompt."""
        self.template_drafts[self.selected_prompt] = typed_text(event["value"])

    def do_estimate(self, event: Event) -> None:
        """Submit an estimate of the cost of what was typed. Raises what ``_read_form`` does."""
        self._submit_estimate(self._read_form(event))

    def do_again(self, event: Event) -> None:
        """Submit an estimate of the cost, and then the retry, with what was typed.

        Everything that was typed is checked first: if something is not valid, the error is raised
        and nothing is submitted.
        """
        retry = self._read_form(event)
        budget = self._typed_budget()
        self._submit_estimate(retry)
        self.worker.submit("asking again", partial(self._ask_again, retry, budget))

    def do_cancel(self, event: Event) -> None:
        """Cancel the estimate or the retry at the next question."""
        self.worker.cancel()

    def do_open(self, event: Event) -> None:
        """Open a question of the report in a debugger, at the agent that decided otherwise.

        The event's ``arg`` is "NUMBER AGENT<tab>QUESTION": the position of the results, the agent,
        and the question's id. Without an agent it is opened at the step that the ladder blames.
        Raises InputError if the question's run was not saved.
        """
        place, _, question = argument_of(event).partition("\t")
        number, _, agent = place.partition(" ")
        self.debugger = debug_question(
            self.report,
            question,
            kg=self.lab.kg,
            model=self.lab.models,
            number=int(number),
            agent=agent or None,
        )
        self.debugger.parent = self
        self._debugged_texts = dict(self.debugger.run.prompts.texts)

    def __repr__(self) -> str:
        """Return the headline of the results, and the summary of each retry, as lines."""
        results = self.lab.earlier_results
        lines = [f"PromptLab({results.name}: {results.headline})"]
        for comparison in self.report.comparisons:
            lines += comparison.summary_lines()
        return "\n".join(lines)


def _position_of(results: LoadedResults, all_results: Sequence[LoadedResults]) -> int:
    """Return the position of these very results; equal ones of another folder do not count.

    Raises ValueError if they are not there.
    """
    for position, other in enumerate(all_results):
        if other is results:
            return position
    raise ValueError("the report does not hold these results")


def _list_lost_questions(
    results: LoadedResults, render_question: Callable[[str], object]
) -> list[tuple[str, list[Sequence[object]]]]:
    """Return the blamed agents, each with a table of the questions that it lost: kind, question, answer, gold.

    Agents that lost most come first, and questions are sorted by kind. "" stands for questions of
    which no agent is known. ``render_question`` shows the question of an id.
    """
    groups: dict[str, list[BenchRow]] = {}
    for id_, row in results.rows.items():
        if is_lost(row) and is_shown(row):
            agent = results.losses_by_id.get(id_, {}).get("agent") or ""
            groups.setdefault(agent, []).append(row)
    listed = []
    for agent in sorted(groups, key=lambda agent: (-len(groups[agent]), agent)):
        lines: list[Sequence[object]] = []
        for row in sorted(groups[agent], key=_kind_of):
            names = name_values([row])
            question = render_question(row["id"])
            answers = render_answers(row, names)
            gold = render_gold(row, names)
            lines.append((_kind_of(row), question, answers, gold))
        listed.append((agent, lines))
    return listed


def _kind_of(row: BenchRow) -> str:
    """Return the type and the hops of a question, as far as they are known: "count, 2 hops"."""
    hops = row.get("hops")
    if isinstance(hops, int):
        hops = pluralize(hops, "hop")
    elif hops is not None:
        hops = f"{hops} hops"
    parts = (row.get("type"), hops)
    return ", ".join(filter(None, parts))


def _short_name(prompt_name: str) -> str:
    """Return the name of a prompt without its folder, in words."""
    return display_name(prompt_name.rpartition("/")[2])
