"""What benchmarks found, as one HTML file that opens anywhere: it asks for nothing outside itself."""

from __future__ import annotations

import os
import pkgutil
import shlex
import tomllib
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from string import Template
from typing import Any
from urllib.parse import quote

from kgwb import disk, systems
from kgwb.bench.changes import (
    MAX_SHOWN_VALUES,
    QuestionChange,
    RenderLink,
    ResultsComparison,
    render_answers,
    render_best_results,
    render_values,
)
from kgwb.bench.cost import Prices, summarize_costs
from kgwb.bench.figures import (
    MEASURE_LABELS,
    AllResults,
    LoadedResults,
    find_missing_prices,
    make_cost_table,
    make_linking_table,
    make_loss_table,
    make_quality_table,
)
from kgwb.bench.metrics import score_row
from kgwb.bench.results import (
    VERDICT_STATES,
    BenchRow,
    find_run_file,
    flatten_config,
    get_label,
    get_verdict,
    is_lost,
)
from kgwb.errors import InputError, KgwbError
from kgwb.kg import Graph, open_kg
from kgwb.llm.base import ChatModel
from kgwb.llm.rules import BASELINE_REMARK
from kgwb.run import Run
from kgwb.show import html as h
from kgwb.show.html import ChartBar, Html, tag
from kgwb.show.run import render_run
from kgwb.text import first_items, format_seconds, pluralize, shorten, single_line

BENCH_FOLDER = Path(__file__).parent
PAGE_TEMPLATE, FILTER_HTML = (
    (BENCH_FOLDER / name).read_text(encoding="utf-8") for name in ("page.html", "filter.html")
)
PAGE_SIGNATURE = PAGE_TEMPLATE[: PAGE_TEMPLATE.index('<meta name="viewport"')].encode()
"""How every page of kgwb begins; no other file is replaced by one."""
_SETUP_ENTRIES = ("kgwb", "system", "models", "source", "kg", "embeddings", "questions")


@dataclass(frozen=True, slots=True)
class MeasuredRun:
    """The run of a question that was measured, and what is known of its answer."""

    run: Run
    gold: str
    """The first gold answers, in one line."""
    blamed_step: str
    """Key of the step that is to blame for a lost answer; empty if none is known."""


class Report:
    """The results of one folder, or of several side by side; the first is what the others are set against.

    ``published`` names the question set whose published figures are shown beside (published.toml), for what
    was asked is known to the person alone; with ``prices`` money is shown. ``finished`` is called after each
    run that was looked at. Raises InputError.
    """

    def __init__(
        self,
        *folders: str | Path,
        published: str | None = None,
        prices: Prices | None = None,
        finished: Callable[[], object] = lambda: None,
    ) -> None:
        if not folders:
            raise InputError(
                "there is nothing to report on", hint="name a folder of kgwb bench --out"
            )
        paths = [Path(os.path.realpath(folder)) for folder in folders]  # links in a circle, too
        if len({*paths}) < len(paths):
            raise InputError("a folder is named twice", hint="give each once")
        own = [path.name for path in paths]
        names = [single_line(path.name if own.count(path.name) == 1 else path) for path in paths]
        tails = [f", {name}" if len(names) > 1 else "" for name in names]
        self.results = tuple(map(LoadedResults.read, paths, names, tails))
        """The results, folder by folder."""
        self._prices, self._finished = prices, finished
        self._published = (
            [*_render_published(self.results, published)] if published is not None else []
        )

    @cached_property
    def comparisons(self) -> list[ResultsComparison]:
        """What became of each question in the further folders."""
        first, *others = self.results
        return [ResultsComparison(first, other, self._finished) for other in others]

    def headline(self) -> Iterator[str]:
        """The first lines of the report: how many are right and lost, and what further folders changed."""
        yield from (f"{measured.name}: {measured.headline}" for measured in self.results)
        for effect in self.comparisons:
            yield from effect.summary_lines()

    def save(self, path: str | Path) -> Path:
        """Write the page, and beside every run that was kept a page of it.

        A run's page has the time of the run, and is made again when the run has another. Returns the path.
        Raises InputError, also for a file that is there already and is no page of kgwb.
        """
        path = Path(path)
        with disk.os_errors_as_input_error(f"cannot write {path}", "give another file"):
            if not _can_be_replaced(path):
                hint = "give another file, or delete that one"
                raise InputError(
                    f"cannot write {path}: what is there is no report of kgwb", hint=hint
                )
            pages = dict(self._write_run_pages())
            title = f"Benchmark {', '.join(measured.name for measured in self.results)}"

            def link(measured: LoadedResults, row: BenchRow, text: object) -> Html | None:
                """A text that leads to the page of a run; None if the run was not kept."""
                if (file := find_run_file(measured.folder, row)) is None:
                    return None
                shown = os.path.relpath(
                    pages.get(file, file), os.path.dirname(os.path.realpath(path))
                )
                return tag(
                    "a", text, href=quote(shown), title=f'kgwb.debug(kgwb.load_run("{file}"))'
                )

            def after(measured: LoadedResults, change: QuestionChange) -> object:
                text = shorten(change.after["question"])
                return link(measured, change.after, text) or text

            sections = (*self._render_sections(after), *_render_question_table(self.results, link))
            disk.write_atomically(
                path, [render_document(title, tag("h1", title, class_="h1"), *sections)], "replace"
            )
        return path

    def _write_run_pages(self) -> Iterator[tuple[Path, Path]]:
        """The file of every run that was kept, with its page."""
        for measured in self.results:
            for file in filter(
                None, (find_run_file(measured.folder, row) for row in measured.rows.values())
            ):
                shown = file.with_suffix(".html")
                if shown.is_symlink() or not _can_be_replaced(shown):  # a link may lead anywhere
                    continue
                written = file.stat().st_mtime_ns
                if not shown.exists() or shown.stat().st_mtime_ns != written:
                    disk.write_atomically(shown, [render_run_page(file)], "replace")
                    os.utime(shown, ns=(written, written))
                self._finished()
                yield file, shown

    def measured_run(
        self,
        question: str,
        *,
        kg: Graph | str | None = None,
        model: ChatModel | str | Mapping[str, ChatModel] | None = None,
        number: int = 0,
        agent: str = "",
    ) -> MeasuredRun:
        """Return the run of a question, by its id, in results folder ``number``.

        The run is live: its graph and model are those of the setup, or ``kg`` and ``model``. If those
        of the setup cannot be opened any more, or the model is at an address that only the folder
        names, the run has only its record. ``agent`` is the agent to blame, by default the one that
        the oracle ladder blamed.

        Raises InputError if the run was not kept, and RunFileError if its file is damaged.
        """
        measured = self.results[number]
        row = measured.rows.get(question, {})
        file = find_run_file(measured.folder, row) if row else None
        if file is None:
            raise InputError(
                f"the run of {question!r} was not kept",
                hint="measure with --save-runs (save_runs=True)",
            )
        graph = open_kg(kg) if isinstance(kg, str) else kg
        with suppress(KgwbError):
            graph = graph or measured.open_graph()
            model = model or {name: measured.model(name) for name in measured.model_specs}
        run = systems.load_run(file, kg=graph, model=model)
        blamed_agent = agent or measured.losses_by_id.get(question, {}).get("agent")
        blamed_steps = [step.key for step in run.steps if step.agent == blamed_agent]
        gold = first_items(row["gold"] or (), MAX_SHOWN_VALUES, lambda value: get_label(row, value))
        return MeasuredRun(run, ", ".join(gold), blamed_steps[0] if blamed_steps else "")

    def debug(self, question_id: str, **options: Any) -> Any:
        """Open the debugger on the run of a question. Use ``kgwb.debug(report, question)``."""
        warnings.warn(
            "Report.debug(question) is now kgwb.debug(report, question)",
            DeprecationWarning,
            stacklevel=2,
        )
        return pkgutil.resolve_name("kgwb.workbench:debug")(self, question_id, **options)

    def render_changes(self, link: RenderLink) -> Iterator[Html]:
        """What was changed in the further folders, what that did, and every question."""
        for effect in self.comparisons:
            yield from (*effect.render_config_changes(), *effect.render_summary())
        yield from render_best_results(self.comparisons)
        for effect in self.comparisons:
            yield from effect.render_questions(link)

    def _repr_html_(self) -> str:
        return h.static_page(
            *self._render_sections(lambda measured, change: shorten(change.after["question"]))
        )

    def __repr__(self) -> str:
        sizes = (
            f"{measured.name}: {pluralize(len(measured.rows), 'question')}"
            for measured in self.results
        )
        return f"Report({'; '.join(sizes)})"

    def _render_sections(self, link: RenderLink) -> Iterator[Html]:
        """The headlines and what changed; the rest folded."""
        for measured in self.results:
            counts = Counter(map(get_verdict, measured.rows.values()))
            shown = (
                word
                for word in VERDICT_STATES
                if counts[word] or word not in ("error", "without gold")
            )
            signs = (
                h.state_badge(VERDICT_STATES[word], f"{counts[word]} {word}", pill=True)
                for word in shown
            )
            figure = f"F1 {measured.groups['all'].estimate('f1') or '–'}"
            yield h.div("row", tag("b", measured.name), *signs, tag("b", figure))
        yield from self.render_changes(link)
        parts = {
            "What was measured": _render_setup(self.results),
            "How good": (*_render_quality(self.results), *self._published),
            "How fast, and how dear": _render_costs(self.results, self._prices),
            "Where answers were lost": _render_losses(self.results),
        }
        for title, contents in parts.items():
            yield h.collapsible(title, h.div("stack across", *contents), key=title)


# --- pages


def _can_be_replaced(path: Path) -> bool:
    """Whether a page may be written there: nothing, an empty file or a page of kgwb is. Raises OSError."""
    if not path.is_file():
        return not path.exists()
    with path.open("rb") as file:
        return file.read(len(PAGE_SIGNATURE)) in (b"", PAGE_SIGNATURE)


def render_document(title: str, *contents: object) -> str:
    """A whole page, light or dark as the browser is."""
    body = h.section(h.div("body stack", *contents))
    return Template(PAGE_TEMPLATE).substitute(title=h.join(title), style=h.load_style(), body=body)


def render_run_page(file: Path) -> str:
    """A saved run as a page; where it cannot be opened, why."""
    debug = f"import kgwb; kgwb.debug(kgwb.load_run({file.name!r}))"
    hint = h.muted_text("In a notebook beside this page, this opens it in the debugger:")
    try:
        shown = render_run(systems.load_run(file))
    except KgwbError as exc:
        shown = h.note(h.preformatted(exc), level="bad")
    return render_document(f"Run {file.stem}", hint, h.preformatted(debug), shown)


# --- what was measured


def _render_setup(sets: AllResults) -> Iterator[Html]:
    """Everything needed to repeat it; what differs between the folders is marked."""
    configs = [flatten_config(measured.config) for measured in sets]
    heads = ["", *(measured.name for measured in sets)]
    first: list[Sequence[object]] = []
    rest: list[Sequence[object]] = []
    for name in dict.fromkeys(name for config in configs for name in config):
        values = [str(config.get(name, "–")) for config in configs]
        cells = [tag("mark", value) if len({*values}) > 1 else value for value in values]
        (first if name.partition(" ")[0] in _SETUP_ENTRIES else rest).append((name, *cells))
    yield h.table(heads, first)
    if any("rules" in measured.model_specs.values() for measured in sets):
        yield h.note(BASELINE_REMARK, level="calm")
    for measured in sets:  # where the questions lie is not kept, only what they are
        config, entries = measured.config, flatten_config(measured.config)
        chosen = "paper" if entries.get("settings profile") == "paper" else "fast"
        system = str(config.get("system"))
        words = ["kgwb", "bench", "--kg", str(config.get("source")), "--system", system]
        for agent, model in measured.model_specs.items():
            words += ["--agent-model", f"{agent}={model}"] if agent else ["--model", model]
        words += ["--profile", chosen]
        usual = systems.profile(
            chosen, system=system if system in systems.list_systems() else ""
        ).to_data()
        for name, value in entries.items():
            kind, _, setting = name.partition(" ")
            if kind == "settings" and usual.get(setting) != value:
                words += ["--set", f"{setting}={value}"]
        command = f"{shlex.join(map(single_line, words))} --questions FILE --out DIR"
        yield h.collapsible(f"the command that asks {measured.name} again", h.preformatted(command))
    yield h.collapsible("all prompts, settings and versions", h.table(heads, rest))


# --- figures


def _render_quality(sets: AllResults) -> Iterator[Html]:
    yield h.muted_text(
        "From 0 to 1, averaged over questions, F1 with its 95 % bootstrap interval. What is not of the paper "
        "is strict: an answer withheld counts 0. In Chatty-KG's paper it counts precision 1, and F1 is the "
        "harmonic mean of the averages. An error counts 0; a question without gold is not counted."
    )
    yield make_quality_table(sets).render()
    chart = []
    for part in dict.fromkeys(part for measured in sets for part in measured.groups):
        for number, measured in enumerate(sets):
            group = measured.groups.get(part)
            if group and (f1 := group.estimate("f1")):
                text = f"{f1.value:.3f} ({pluralize(len(group.rows), 'question')})"
                chart.append(
                    ChartBar(part + measured.label_suffix, f1.value, text, f1.low, f1.high, number)
                )
    yield h.bar_chart("Strict F1 by part of the questions, with its interval", chart, 1.0)


def _render_published(sets: AllResults, name: str) -> Iterator[Html]:
    """What papers print for the question set of that name, beside what was measured. Raises InputError."""
    data = tomllib.loads((BENCH_FOLDER / "published.toml").read_text(encoding="utf-8"))
    if name not in data["sets"]:
        hint = f"name one of {', '.join(data['sets'])}, or leave it out"
        raise InputError(f"no figures are known for a question set {name!r}", hint=hint)
    known = data["sets"][name]
    yield tag("h2", "Beside published figures")
    yield tag("div", f"Question set, as whoever made this report says: {known['name']}. Per cent.")
    for measured in sets:
        if known.get("questions", len(measured.rows)) != len(measured.rows):
            sizes = f"{len(measured.rows):,} questions, the published set {known['questions']:,}"
            yield h.note(
                f"{measured.name} has {sizes}: these figures are not of the same questions.",
                level="bad",
            )
    rows: list[tuple[object, ...]] = []
    for entry in (entry for entry in data["published"] if entry["set"] == name):
        part, measure = entry.get("group", "all"), entry["measure"]
        for measured in sets:
            if (group := measured.groups.get(part)) and (figure := group.estimate(measure)):
                value = tag("b", f"{100 * figure.value:.2f}")
                rows.append(
                    (part, MEASURE_LABELS[measure], value, tag("b", measured.name), "measured here")
                )
        source = h.join(
            "published: ", entry["source"], f"; {entry['note']}" if "note" in entry else ""
        )
        for who, printed in entry["figures"].items():
            rows.append((part, MEASURE_LABELS[measure], f"{printed:.2f}", who, source))
    yield h.table(("questions", "measure", "per cent", "system", "where from"), dict.fromkeys(rows))


def _render_costs(sets: AllResults, prices: Prices | None) -> Iterator[Html]:
    yield from (h.note(reason, level="calm") for reason in find_missing_prices(sets, prices))
    chart = []
    for number, measured in enumerate(sets):
        for name, cost in summarize_costs(measured.rows.values()).items():
            if name.startswith("seconds"):
                label = (name.partition(", ")[2] or "in all") + measured.label_suffix
                text = f"{format_seconds(cost.median)}, 95 % within {format_seconds(cost.p95)}"
                chart.append(ChartBar(label, cost.median, text, cost.median, cost.p95, number))
    yield h.bar_chart(
        "Seconds a question by stage: the median, and a line to the 95th percentile", chart
    )
    yield make_cost_table(sets, prices).render()


def _render_losses(sets: AllResults) -> Iterator[Html]:
    """The oracle ladder's agents by stage, and the recall of linking."""
    about = (
        "Gold was put in at one agent after another until the answer came right; the first agent whose "
        "gold fixed it is to blame."
    )
    unknown = "Nothing is known of where: kgwb bench --ladder finds it out, if an answer was lost."
    yield h.muted_text(about if any(measured.losses_by_agent for measured in sets) else unknown)
    chart = [
        ChartBar(f"{name}{measured.label_suffix}", by_hops[""], str(by_hops[""]), 0, 0, number)
        for number, measured in enumerate(sets)
        for (name, _), by_hops in measured.losses_by_agent.items()
    ]
    yield h.bar_chart("Answers lost, by agent", chart)
    yield make_loss_table(sets).render()
    yield make_linking_table(sets).render()


# --- every question


def _render_question_table(
    sets: AllResults, link: Callable[[LoadedResults, BenchRow, object], Html | None]
) -> Iterator[Html]:
    yield tag("h2", "Every question", class_="title")
    yield Html(FILTER_HTML)
    by_set = (
        f"{head}{measured.label_suffix}"
        for measured in sets
        for head in ("answers", "F1", "lost at", "run")
    )
    heads = ("id", "hops", "type", "question", "gold", *by_set)
    ids = dict.fromkeys(key for measured in sets for key in measured.rows)

    def line_of(number: int, key: str) -> Html:
        rows = [measured.rows.get(key) for measured in sets]
        row = next(row for row in rows if row)
        cells = [shorten(key), row.get("hops", ""), row.get("type", ""), shorten(row["question"])]
        cells.append(render_values(row, "gold"))
        for measured, its in zip(sets, rows, strict=True):
            if its is None:
                cells += ["not asked", "", "", ""]
                continue
            scores, line = score_row(its), measured.losses_by_id.get(key, {})
            cells += [render_answers(its), f"{scores.f1:.2f}" if scores else ""]
            cells.append(line.get("agent") or line.get("why") or "")
            shown = link(measured, its, "run") or h.muted_text("not kept")
            cells.append(h.join(shown, " ", h.muted_text(format_seconds(its["seconds"]))))
        kinds = [
            f"{'lost ' if is_lost(its) else ''}{'error' if its['error'] else ''}"
            for its in rows
            if its
        ]
        if len({its and its.get("f1") for its in rows}) > 1:
            kinds.append("differs")
        return tag(
            "tr",
            *(tag("td", cell) for cell in cells),
            id=f"question-{number}",
            class_=" ".join(kinds),
        )

    head = tag("thead", tag("tr", *(tag("th", tag("button", head)) for head in heads)))
    body = tag("tbody", *(line_of(number, key) for number, key in enumerate(ids, 1)))
    yield h.div("across", tag("table", head, body, id="questions"))
