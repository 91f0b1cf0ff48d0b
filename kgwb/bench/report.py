"""The results of benchmarks as one HTML file, which opens anywhere and loads nothing from elsewhere."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import quote

from kgwb import disk
from kgwb.bench import figures
from kgwb.bench import report_parts as parts
from kgwb.bench.changes import (
    QuestionChange,
    RenderLink,
    ResultsComparison,
    render_best_by_agent,
    render_best_by_question,
)
from kgwb.bench.cost import Prices
from kgwb.bench.figures import LoadedResults
from kgwb.bench.judgements import (
    make_agreement_table,
    make_ratings_table,
    make_scores_table,
    read_ratings,
)
from kgwb.bench.ladder import LADDER_FILE
from kgwb.bench.questions import BenchQuestion
from kgwb.bench.results import BenchRow, find_run_file, row_right_answer
from kgwb.errors import InputError, KgwbError
from kgwb.kg import Graph, open_kg
from kgwb.llm.base import ChatModel
from kgwb.run import Run, systems
from kgwb.run.gold import RightAnswer
from kgwb.run.recorded import restore_times
from kgwb.show import html as h
from kgwb.show.html import Html, render_template, tag
from kgwb.show.run import render_run
from kgwb.text import (
    pluralize,
    shortest_distinct_names,
    single_line,
)

TEMPLATES = "bench/templates"
PAGE_SIGNATURE = b"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="generator" content="kgwb">
"""
"""The beginning of every page of kgwb (templates/page.html). No other file is replaced by a page."""


@dataclass(frozen=True, slots=True)
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
        *folders: str | Path,
        published: str | None = None,
        prices: Prices | None = None,
        finished: Callable[[], object] = lambda: None,
        questions: Sequence[BenchQuestion] = (),
    ) -> None:
        """Read the results of the folders, and score them all by the same gold.

        It is the gold of ``questions``, and without these that of the first folder. ``published``
        names the question set whose published figures are shown too (published.toml); ``prices`` is
        used to show money. ``finished`` is called after each run that was replayed. Raises
        InputError without a folder, for a folder that is named twice or holds no results, and for
        an unknown question set.
        """
        if not folders:
            raise InputError(
                "no report can be made: no folder of results is named",
                hint="name a folder that kgwb bench --out has written",
            )
        paths = _check_named_once(folders)
        names = map(single_line, shortest_distinct_names(paths))
        all_results: list[LoadedResults] = []
        for path, name in zip(paths, names, strict=True):
            label_suffix = f", {name}" if len(paths) > 1 else ""
            results = LoadedResults.read(path, name, label_suffix)
            known_gold = all_results[0].questions() if all_results else ()
            all_results.append(results.with_gold([*known_gold, *questions]))
        self.results = tuple(all_results)
        """The results of each folder."""
        self._prices = prices
        self._on_progress = finished
        self._published = Html()
        if published is not None:
            self._published = parts.render_published(self.results, published)

    @cached_property
    def comparisons(self) -> list[ResultsComparison]:
        """A comparison with the first folder, for each further one."""
        first, *others = self.results
        return [ResultsComparison(first, other, self._on_progress) for other in others]

    def headline(self) -> Iterator[str]:
        """Yield the main figures as lines of text: those of each folder, then what changed since the first one."""
        for results in self.results:
            yield f"{results.name}: {results.headline}"
        for comparison in self.comparisons:
            yield from comparison.summary_lines()

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
                question_table=parts.render_question_table(self.results, link_to_run),
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
        run.right_answer = row_right_answer(row)
        return MeasuredRun(run, blamed_steps[0] if blamed_steps else "")

    def render_changes(self, link: RenderLink) -> list[Html]:
        """Render two sections as HTML: what changed in the further folders, and every question before and after.

        Returns none if there is only one folder. ``link`` renders the question of a change.
        """
        if not self.comparisons:
            return []
        changes = render_template(
            f"{TEMPLATES}/changes.html",
            comparisons=self.comparisons,
            best_by_agent=render_best_by_agent,
            best_by_question=render_best_by_question,
        )
        questions = render_template(
            f"{TEMPLATES}/changed_questions.html", comparisons=self.comparisons, link=link
        )
        return [changes, questions]

    def _section_values(self, link: RenderLink) -> dict[str, object]:
        """Return what templates/sections.html shows, by the names that the template uses.

        That is the results, the prices, the rendered changes, published figures, scores and
        ratings, and the three modules whose functions the template calls.
        """
        return {
            "all_results": self.results,
            "prices": self._prices,
            "changes": self.render_changes(link),
            "published": self._published,
            "own_scores": make_scores_table(self.results).render(),
            "ratings": self._render_ratings(),
            "figures": figures,
            "parts": parts,
        }

    def _render_ratings(self) -> Html:
        """Render tables of the grades that raters gave in each folder, and how far they agree; empty without any."""
        rendered = []
        for results in self.results:
            ratings = read_ratings(results)
            for table in (make_ratings_table(ratings), make_agreement_table(ratings)):
                if table.rows:
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


def _check_named_once(folders: Sequence[str | Path]) -> list[Path]:
    """Return the real paths of folders. Raises InputError if one is named twice."""
    paths: list[Path] = []
    for folder in folders:
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
    return render_template(
        f"{TEMPLATES}/{template}",
        title=title,
        style=Html(h.load_style()),
        **values,
    )
