"""The results of benchmarks as one HTML file, which opens anywhere and loads nothing from elsewhere.

Its figures and tables are those of kgwb.bench.figures and of the comparisons (kgwb.bench.comparisons);
templates say where they stand.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import quote

from kgwb import disk
from kgwb.bench import comparisons, figures
from kgwb.bench.assertions import list_failed
from kgwb.bench.comparisons import QuestionChange, ResultsComparison
from kgwb.bench.cost import Prices, summarize_costs
from kgwb.bench.figures import (
    MEASURE_LABELS,
    AllResults,
    LoadedResults,
    distinct_groups,
    distinct_keys,
)
from kgwb.bench.judgements import (
    make_agreement_table,
    make_ratings_table,
    make_scores_table,
    read_ratings,
)
from kgwb.bench.ladder import LADDER_FILE
from kgwb.bench.metrics import is_iri, read_names, score_row
from kgwb.bench.questions import BenchQuestion
from kgwb.bench.results import (
    BenchRow,
    find_run_file,
    flatten_config,
    get_label,
    get_verdict,
    is_lost,
    is_shown,
    row_right_answer,
)
from kgwb.errors import InputError, KgwbError
from kgwb.kg import Graph, open_kg
from kgwb.llm.base import ChatModel
from kgwb.llm.rules import BASELINE_REMARK
from kgwb.records import frozen
from kgwb.run import Run, systems
from kgwb.run.differences import StepDifference, output_lines
from kgwb.run.gold import RightAnswer
from kgwb.run.run import restore_times
from kgwb.run.steps import Step
from kgwb.show import html as h
from kgwb.show import run_state
from kgwb.show.html import ChartBar, Html, render_template, tag
from kgwb.show.run import render_run
from kgwb.show.static_form import load_style
from kgwb.text import (
    and_more,
    format_seconds,
    pluralize,
    shorten,
    shortest_distinct_names,
    single_line,
    tell_apart,
)

TEMPLATES = "bench/templates"
SETUP_ENTRIES = ("kgwb", "system", "models", "source", "kg", "embeddings", "questions")
"""Entries of a configuration that are shown first."""
MAX_SHOWN_VALUES = 5
"""Values, or rows of a table, that are shown of an answer."""
MAX_LABEL_BESIDE_IRI = 80
"""Characters of a label that has its IRI beside it."""
PAGE_SIGNATURE = b"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="generator" content="kgwb">
"""
"""The beginning of every page of kgwb (templates/page.html). No other file is replaced by a page."""
LinkToRun = Callable[[LoadedResults, BenchRow, object], Html | None]
"""Returns a text as a link to the page of a row's run; None if the run was not saved."""
RenderLink = Callable[[LoadedResults, QuestionChange], object]
"""Returns the link from a question of a results folder to its run, or its text without a link."""


@frozen
class MeasuredRun:
    """The run of a question that was measured, and what is known about its answer."""

    run: Run
    """It knows what is right, if the question has gold."""
    blamed_step: str
    """Key of the step that lost the answer; empty if none is known."""


class Report:
    """The results of one folder, or of several compared with the first."""

    def __init__(
        self,
        *folders: str | Path | LoadedResults,
        published: str | None = None,
        prices: Prices | None = None,
        finished: Callable[[], object] = lambda: None,
        questions: Sequence[BenchQuestion] = (),
        drawn_by: LoadedResults | None = None,
    ) -> None:
        """Read the results of the folders, as far as they are not read, and score them all by the same gold.

        The gold is that of ``questions``, and without these that of the first folder. ``published``
        names the question set whose published figures are shown too (published.toml); ``prices`` is
        used to show money. ``drawn_by`` is that of ``ResultsComparison``. ``finished`` is called
        after each run that was replayed. Raises InputError without a folder, for a folder that is
        named twice or holds no results, and for an unknown question set.
        """
        if not folders:
            raise InputError(
                "no report can be made: no folder of results is named",
                hint="name a folder that kgwb bench --out has written",
            )
        paths = _check_named_once(folders)
        names = map(single_line, shortest_distinct_names(paths))
        all_results: list[LoadedResults] = []
        for given, path, name in zip(folders, paths, names, strict=True):
            results = given if isinstance(given, LoadedResults) else LoadedResults.read(path, name)
            known_gold = all_results[0].questions() if all_results else ()
            results = results.with_gold([*known_gold, *questions])
            label_suffix = f", {results.name}" if len(paths) > 1 else ""
            all_results.append(replace(results, label_suffix=label_suffix))
        self.results = tuple(all_results)
        """The results of each folder."""
        self._prices = prices
        self._on_progress = finished
        self._drawn_by = drawn_by
        self._published = Html()
        if published is not None:
            self._published = render_published(self.results, published)

    @cached_property
    def comparisons(self) -> list[ResultsComparison]:
        """A comparison with the first folder, for each further one."""
        first, *others = self.results
        return comparisons.compare_with_each(first, others, self._on_progress, self._drawn_by)

    def headline(self) -> Iterator[str]:
        """Yield the main figures as lines of text: those of each folder, then what changed since the first one."""
        for results in self.results:
            yield f"{results.name}: {results.headline}"
        for comparison in self.comparisons:
            yield from comparison.summary_lines()
        if self.comparisons:
            grid = comparisons.make_grid_table(self.comparisons)
            if grid.rows:
                yield f"{grid}\n{grid.caption}"

    def save(self, path: str | Path) -> Path:
        """Write the report's page, and a page for every saved run beside its file; return the path.

        The page of a run is written again only if its run or its loss has changed: it gets the
        latest modification time of their files. Raises InputError if a page cannot be written, or
        if the path is a file that is not a page of kgwb.
        """
        path = Path(path)
        with disk.os_errors_as_input_error(f"cannot write the report {path}", "name another file"):
            if not _can_be_replaced(path):
                raise InputError(
                    f"cannot write {path}: the file there was not written by kgwb report",
                    hint="name another file for the report; that one was left as it is",
                )
            run_pages = dict(self._write_run_pages())
            page_folder = os.path.dirname(os.path.realpath(path))

            def link_to_run(results: LoadedResults, row: BenchRow, text: object) -> Html | None:
                """Render a text as a link to a run's page, or to its file if it has no page.

                The link's tooltip is the code that opens the debugger. Returns None if the run was not
                saved.
                """
                file = find_run_file(results.folder, row)
                if file is None:
                    return None
                target = os.path.relpath(run_pages.get(file, file), page_folder)
                code = _code_to_debug(results, row)
                return tag("a", text, href=quote(target), title=code)

            def link_question(results: LoadedResults, change: QuestionChange) -> object:
                """Render the question of a change as a link to its run, as far as the run was saved."""
                text = _title_of_question(results, change)
                return link_to_run(results, change.after, text) or text

            names = ", ".join(results.name for results in self.results)
            page = _render_page(
                "report.html",
                f"Benchmark {names}",
                question_table=render_question_table(self.results, link_to_run),
                **self._section_values(link_question),
            )
            disk.write_atomically(path, [page], "replace")
        return path

    def _write_run_pages(self) -> Iterator[tuple[Path, Path]]:
        """Write the page of every saved run if needed, and yield the run's file and its page.

        A file in its place that is not a page of kgwb is left alone, and so is a link, which may
        lead anywhere; neither is yielded. Rows without a saved run are passed over. Raises OSError.
        """
        for results in self.results:
            for row in results.rows.values():
                file = find_run_file(results.folder, row)
                if file is None:
                    continue
                page = file.with_suffix(".html")
                if page.is_symlink() or not _can_be_replaced(page):
                    continue
                modified_ns = file.stat().st_mtime_ns
                loss = results.losses_by_id.get(row["id"], {})
                if loss:  # the ladder may have been applied later
                    ladder = results.folder / LADDER_FILE
                    modified_ns = max(modified_ns, ladder.stat().st_mtime_ns)
                if not page.exists() or page.stat().st_mtime_ns != modified_ns:
                    blamed_step = loss.get("step") or ""
                    text = render_run_page(file, row_right_answer(row), blamed_step)
                    disk.write_atomically(page, [text], "replace")
                    os.utime(page, ns=(modified_ns, modified_ns))
                self._on_progress()
                yield file, page

    def measured_run(
        self,
        question: str,
        *,
        kg: Graph | str | None = None,
        model: ChatModel | str | Mapping[str, ChatModel] | None = None,
        number: int = 0,
        agent: str = "",
    ) -> MeasuredRun:
        """Return the run of a question, by its id, in results folder ``number``, with the step to show.

        The run is live: its graph and model are those of the setup, or ``kg`` and ``model``. If
        those of the setup cannot be opened any more, or the model is at an address that only the
        folder names, the run has only its record. ``agent`` is the agent to blame, by default the
        one that the oracle ladder blamed. The step to show is its first one, "" if there is none.
        Raises InputError if the run was not kept, and RunFileError if its file is damaged.
        """
        results = self.results[number]
        row = results.rows.get(question)
        file = find_run_file(results.folder, row) if row else None
        if row is None or file is None:
            raise InputError(
                f"the run of {question!r} cannot be opened: it was not saved with the results",
                hint="measure again with kgwb bench --save-runs (in Python: save_runs=True)",
            )
        graph = open_kg(kg) if isinstance(kg, str) else kg
        with suppress(KgwbError):
            graph = graph or results.open_graph()
            model = model or {name: results.model(name) for name in results.model_specs}
        run = systems.load_run(file, kg=graph, model=model)
        loss = results.losses_by_id.get(question, {})
        blamed_agent = agent or loss.get("agent")
        blamed_steps = [step.key for step in run.steps if step.agent == blamed_agent]
        if not agent and loss.get("step") in run.steps_by_key:
            blamed_steps.insert(0, loss["step"])
        blamed_step = blamed_steps[0] if blamed_steps else ""
        run.right_answer = row_right_answer(row)
        return MeasuredRun(run, blamed_step)

    def render_changes(self, link: RenderLink) -> Html:
        """Render what changed in the further folders, and every question before and after.

        Empty if there is only one folder. ``link`` renders the question of a change.
        """
        if not self.comparisons:
            return Html()
        return render_template(
            f"{TEMPLATES}/changes.html",
            h=h,
            record=comparisons,
            comparisons=self.comparisons,
            figures=figures,
            report=sys.modules[__name__],
            link=link,
        )

    def _section_values(self, link: RenderLink) -> dict[str, object]:
        """Return what templates/sections.html shows, by the names that the template uses."""
        configs = [flatten_config(results.config) for results in self.results]
        return {
            "all_results": self.results,
            "configs": configs,
            "config_entries": distinct_keys(configs),
            "report": sys.modules[__name__],
            "states": run_state,
            "prices": self._prices,
            "changes": self.render_changes(link),
            "published": self._published,
            "own_scores": make_scores_table(self.results).render(),
            "ratings": self._render_ratings(),
            "figures": figures,
            "model_remarks": find_model_remarks(self.results),
            "f1_chart": render_f1_chart(self.results),
            "seconds_chart": _render_seconds_chart(self.results),
            "loss_chart": _render_loss_chart(self.results),
        }

    def _render_ratings(self) -> Html:
        """Render tables of the grades that raters gave in each folder, and how far they agree; empty without any."""
        rendered = []
        for results in self.results:
            ratings = read_ratings(results)
            for table in (make_ratings_table(ratings), make_agreement_table(ratings)):
                rendered.append(table.render())
        return h.join(*rendered)

    def _repr_html_(self) -> str:
        values = self._section_values(_title_of_question)
        return h.static_page(render_template(f"{TEMPLATES}/sections.html", **values))

    def __repr__(self) -> str:
        sizes = []
        for results in self.results:
            count = pluralize(len(results.rows), "question")
            sizes.append(f"{results.name}: {count}")
        return f"Report({'; '.join(sizes)})"


def _check_named_once(folders: Sequence[str | Path | LoadedResults]) -> list[Path]:
    """Return the real paths of folders. Raises InputError if one is named twice."""
    paths: list[Path] = []
    for given in folders:
        folder = given.folder if isinstance(given, LoadedResults) else given
        path = Path(os.path.realpath(folder))  # links in a circle, too
        if path in paths:
            hint = "name each folder once"
            raise InputError(f"the folder of results {path} is named twice", hint=hint)
        paths.append(path)
    return paths


def _title_of_question(results: LoadedResults, change: QuestionChange) -> str:
    """Return the question of a change, told apart from the others of its results."""
    return results.question_titles[change.after["id"]]


def _code_to_debug(results: LoadedResults, row: BenchRow) -> str:
    """Return the code that opens the debugger with the run of a row."""
    report = f"Report({str(results.folder)!r})"
    return f"from kgwb.bench import Report; kgwb.debug({report}, {row['id']!r})"


# --- pages


def _can_be_replaced(path: Path) -> bool:
    """Return whether a page may be written to a path: nothing is there, or an empty file, or a page of kgwb.

    A folder cannot be replaced. Raises OSError if the file cannot be read.
    """
    if not path.is_file():
        return not path.exists()
    with path.open("rb") as file:
        beginning = file.read(len(PAGE_SIGNATURE))
    return beginning in (b"", PAGE_SIGNATURE)


def render_run_page(
    file: Path, right_answer: RightAnswer | None = None, blamed_step: str = ""
) -> str:
    """Replay a saved run, and render it as a complete page, with its right answer and the step that lost it.

    The times are those of the file. If the run cannot be read, the page shows why.
    """
    try:
        run = systems.load_run(file)
        restore_times(run, file)
        run.right_answer = right_answer
        rendered = render_run(run, blamed_step)
    except KgwbError as exc:
        rendered = h.note(h.preformatted(exc), level="bad")
    return _render_page("run.html", f"Run {file.stem}", run=rendered, file_name=repr(file.name))


def _render_page(template: str, title: str, **values: Any) -> str:
    """Render a template that extends templates/page.html."""
    style = Html(load_style())
    return render_template(f"{TEMPLATES}/{template}", title=title, style=style, **values)


# --- what was measured


def count_states(results: LoadedResults) -> Counter[str]:
    """Count the answers in each of ``run_state.ANSWER_STATE_ICONS``."""
    return Counter(map(get_verdict, results.rows.values()))


def find_model_remarks(all_results: AllResults) -> list[str]:
    """Return remarks on the models: that ``rules`` is only a baseline, and that several versions answered.

    The first is there if an agent used ``rules``. A pipeline that asks its own clients leaves it
    unused, though it is the default.
    """
    remarks = []
    if any(map(_has_used_rules, all_results)):
        remarks.append(BASELINE_REMARK)
    for results in all_results:
        remarks += results.model_remarks
    return remarks


def _has_used_rules(results: LoadedResults) -> bool:
    """Return whether an agent used the model ``rules``, as the rows say.

    If no row names its models, as in early versions, the configuration decides.
    """
    if "rules" not in results.model_specs.values():
        return False
    used_models = [row["models"] for row in results.rows.values() if "models" in row]
    return not used_models or any("rules" in models for models in used_models)


def command_for(results: LoadedResults) -> str:
    """Return the ``kgwb bench`` command that measures the same again, as text for a shell.

    Settings are given as far as they differ from the profile. FILE and DIR stand for the questions
    and the new folder: the results do not hold them. Prompts and embeddings are not in it. A system
    that is not installed has its settings compared with the common defaults.
    """
    config = results.config
    system = str(config.get("system"))
    settings = config.get("settings") or {}
    profile = str(settings.get("profile", "fast"))
    words = ["kgwb", "bench", "--kg", str(config.get("source")), "--system", system]
    for agent, model in results.model_specs.items():
        if agent:
            words += ["--agent-model", f"{agent}={model}"]
        else:
            words += ["--model", model]
    words += ["--profile", profile]
    known_system = system if system in systems.list_systems() else ""
    defaults = systems.profile(profile, system=known_system).to_data()
    for name, value in settings.items():
        if value != defaults.get(name):
            words += ["--set", f"{name}={value}"]
    command = shlex.join(map(single_line, words))
    return f"{command} --questions FILE --out DIR"


# --- charts


def render_f1_chart(all_results: AllResults) -> Html:
    """Render a bar chart of F1 with its interval, for all questions and for each kind of question.

    The bars of one kind stand together, one for each folder. Questions without gold do not count;
    kinds without any gold have no bar.
    """
    bars = []
    for name in distinct_groups(all_results):
        for number, results in enumerate(all_results):
            group = results.groups.get(name)
            f1 = group.estimate("f1") if group else None
            if group and f1:
                count = len(group.rows) - group.without_gold
                questions = pluralize(count, "question")
                text = f"{f1.value:.3f} ({questions})"
                label = name + results.label_suffix
                bars.append(ChartBar(label, f1.value, text, f1.low, f1.high, number))
    return h.bar_chart("Strict F1 by kind of question, with its interval", bars, 1.0)


def _render_seconds_chart(all_results: AllResults) -> Html:
    """Render a bar chart of the seconds of a question: in all, and by each stage, for each folder.

    A bar is the median, and its line goes on to the 95th percentile.
    """
    bars = []
    for number, results in enumerate(all_results):
        for name, cost in summarize_costs(results.rows.values()).items():
            if name.startswith("seconds"):
                _, _, stage = name.partition(", ")
                label = (stage or "in all") + results.label_suffix
                median = format_seconds(cost.median)
                p95 = format_seconds(cost.p95)
                text = f"{median}, 95 % within {p95}"
                bars.append(ChartBar(label, cost.median, text, cost.median, cost.p95, number))
    title = "Seconds a question by stage: the median, and a line to the 95th percentile"
    return h.bar_chart(title, bars)


def _render_loss_chart(all_results: AllResults) -> Html:
    """Render a bar chart of the answers that each agent lost, over all its stages, for each folder.

    Reasons for which no agent is known have bars, too. Empty without losses.
    """
    bars = []
    for number, results in enumerate(all_results):
        for agent, total in results.count_losses().items():
            label = agent + results.label_suffix
            bars.append(ChartBar(label, total, str(total), 0, 0, number))
    return h.bar_chart("Answers lost, by agent", bars)


# --- published figures


def render_published(all_results: AllResults, name: str) -> Html:
    """Render the figures that papers print for a question set, beside those measured here.

    ``name`` is a set of published.toml, which comes with kgwb. The person who makes the report
    names it: the results do not tell which questions were asked. A warning is shown if the number
    of questions differs. Raises InputError for an unknown set.
    """
    data = disk.read_table("bench/published.toml")
    known_sets = data["sets"]
    if name not in known_sets:
        raise InputError(
            f"kgwb has no published figures for a question set named {name!r}",
            hint=f"name one of {', '.join(known_sets)} with --published, or leave --published out",
        )
    question_set = known_sets[name]
    rows: dict[tuple[object, ...], None] = {}
    for entry in data["published"]:
        if entry["set"] == name:
            rows.update(dict.fromkeys(_rows_beside(entry, all_results)))
    headers = ("questions", "measure", "per cent", "system", "source", "how it was measured")
    return render_template(
        f"{TEMPLATES}/published.html",
        question_set=question_set,
        all_results=all_results,
        table=h.table(headers, rows),
    )


def _rows_beside(entry: Mapping[str, Any], all_results: AllResults) -> Iterator[tuple[object, ...]]:
    """Yield the rows of a table for an entry of published.toml: measured figures first, then published ones.

    A row has the group of questions, the measure, the figure in per cent with two digits, the
    system, the source, and how it was measured. Folders without the figure have no row.
    """
    questions = entry.get("group", "all")
    label = MEASURE_LABELS[entry["measure"]]
    for results in all_results:
        group = results.groups.get(questions)
        figure = group.estimate(entry["measure"]) if group else None
        if figure:
            value = tag("b", f"{100 * figure.value:.2f}")
            name = tag("b", results.name)
            yield questions, label, value, name, "measured here", f"as {label}"
    source = f"published: {entry['source']}"
    if entry.get("note"):
        source += f"; {entry['note']}"
    for system, printed in entry["figures"].items():
        yield questions, label, f"{printed:.2f}", system, source, entry["how"]


# --- the answer to a question


def render_verdict(row: BenchRow) -> Html:
    """Render the state of a row's answer as a badge."""
    verdict = get_verdict(row)
    return h.state_badge(run_state.ANSWER_STATE_ICONS[verdict], verdict)


def name_values(rows: Iterable[BenchRow]) -> dict[str, str]:
    """Return the shown name of each value among the answers and the gold of some rows, by the value.

    An IRI whose label is also that of another value has its IRI added: "Dune (http://e/dune2)".
    """
    labels: dict[str, str] = {}
    for row in rows:
        for value in (*row["answers"], *(row["gold"] or ())):
            labels.setdefault(value, get_label(row, value))

    def shown_label(value: str) -> str:
        return shorten(labels[value])

    def label_with_iri(value: str) -> str:
        if not is_iri(value):
            return shown_label(value)
        label = shorten(labels[value], MAX_LABEL_BESIDE_IRI)
        return f"{label} ({value})"

    return tell_apart(labels, (shown_label, label_with_iri))


def render_answers(row: BenchRow, names: Mapping[str, str]) -> Html:
    """Render the verdict on a row as a badge, and below it the answers or the error.

    A lost answer that should be a table also has the F1 of each gold column. An answer from a
    result that a limit cut says so, one that is the name of a gold thing, and one of which an assertion
    does not hold. ``names`` are those of ``name_values``.
    """
    return render_template(
        f"{TEMPLATES}/answer.html",
        h=h,
        shorten=shorten,
        pluralize=pluralize,
        row=row,
        verdict=render_verdict(row),
        values=_render_values(row, "answers", names),
        is_lost=is_lost(row),
        has_names=read_names(row) != row["answers"],
        failed_assertions=list_failed(row),
    )


def render_gold(row: BenchRow, names: Mapping[str, str]) -> Html:
    """Render the gold of a row, and below it what counts as right, if the question set says it."""
    gold = _render_values(row, "gold", names)
    if row.get("right"):
        return h.join(gold, h.div("soft", f"right: {row['right']}"))
    return gold


def _render_values(row: BenchRow, name: str, names: Mapping[str, str]) -> Html:
    """Render the "answers" or the "gold" of a row, whichever ``name`` says.

    Vertices are links with their names (``name_values``); values of several columns are a table. Of
    more than MAX_SHOWN_VALUES values or rows, the first are shown, with the number of the others.
    Without values it says "none", and "not known" for missing gold.
    """
    values = row[name]
    if not values:
        return h.muted_text("not known" if values is None else "none")
    table = row.get("table" if name == "answers" else "gold_table")
    if not table:
        table = [[value] for value in values]
    rows = []
    for cells in table[:MAX_SHOWN_VALUES]:
        rows.append([_render_value(cell or "", names) for cell in cells])
    if len(table[0]) > 1:
        rendered = h.table((), rows)
    else:
        rendered = h.join(*(h.div("", *cells) for cells in rows))
    return h.join(rendered, and_more(len(table) - MAX_SHOWN_VALUES))


def _render_value(value: str, names: Mapping[str, str]) -> Html | str:
    """Render an IRI as a link with its name. Return any other value as text, shortened."""
    if is_iri(value):
        return h.iri_link(value, names.get(value, value))
    return shorten(value)


# --- every question


def render_question_table(all_results: AllResults, link: LinkToRun) -> Html:
    """Render a table with a row for each question of any folder, and columns for each folder's result.

    A question that a folder lacks is "not asked" there. The script of the page sorts and filters
    the rows.
    """
    questions = []
    for id_ in distinct_keys(results.rows for results in all_results):
        rows = [results.rows.get(id_) for results in all_results]
        if all(is_shown(row or {}) for row in rows):
            questions.append(_describe_question(all_results, rows))
    return render_template(
        f"{TEMPLATES}/questions.html",
        h=h,
        shorten=shorten,
        format_seconds=format_seconds,
        score_row=score_row,
        render_answers=render_answers,
        render_gold=render_gold,
        link=link,
        all_results=all_results,
        questions=questions,
    )


def _describe_question(
    all_results: AllResults, rows: Sequence[BenchRow | None]
) -> dict[str, object]:
    """Return what templates/questions.html shows of a question, of which each folder has a row or None.

    What describes the question is of the first folder that has it. "states" are what the page's
    filter looks for: "lost" and "error", if that happened in one of the folders, and "differs", if
    F1 is not the same in all.
    """
    known_rows = [row for row in rows if row is not None]
    states = {
        "lost": any(map(is_lost, known_rows)),
        "error": any(row["error"] for row in known_rows),
        "differs": len({row and row.get("f1") for row in rows}) > 1,
    }
    return {
        "first_row": known_rows[0],
        "names": name_values(known_rows),
        "states": [name for name, is_so in states.items() if is_so],
        "columns": list(zip(all_results, rows, strict=True)),
    }


# --- every question before and after a change


def render_measures(comparison: ResultsComparison) -> Html:
    """Render F1 before and after, with its difference; if it cannot be compared, a note with the reason."""
    try:
        return h.div("across", comparison.make_measure_table().render())
    except InputError as exc:
        return h.note(f"{comparison.after.name} cannot be compared: {exc}", level="bad")


def render_decisions(difference: StepDifference | None) -> tuple[Html, Html]:
    """Render the outcome of the first step that differs, before and after, with changed words marked.

    If the outcomes of the two steps have the same text, their outputs are rendered instead. Both
    are "–" without a difference, and a step that one run lacks is named as such.
    """
    if difference is None:
        return h.muted_text("–"), h.muted_text("–")
    first, second = difference.first, difference.second
    before = first.outcome if first else "no such step"
    after = second.outcome if second else "no such step"
    if before == after:
        before = _output_of(first)
        after = _output_of(second)
    return h.mark_changed_words(shorten(before), shorten(after))


def _output_of(step: Step | None) -> str:
    """Return the whole output of a step in one line; "" if it has none."""
    if step is None or not step.done:
        return ""
    return "; ".join(output_lines(step))
