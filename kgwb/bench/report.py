"""What benchmarks found, as one HTML file that opens anywhere: it asks for nothing outside itself."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from rdflib import URIRef

from kgwb import disk, llm
from kgwb.bench import sections
from kgwb.bench.cost import Prices
from kgwb.bench.metrics import score_row
from kgwb.bench.results import Row
from kgwb.bench.runner import lost
from kgwb.bench.sections import Measured, measured_in
from kgwb.errors import InputError, KgwbError
from kgwb.kg.text import local_name
from kgwb.show.html import (
    Html,
    aside,
    clean,
    count,
    div,
    first_of,
    iri_link,
    join,
    note,
    page,
    preformatted,
    seconds,
    section,
    short,
    style,
    tag,
)

if TYPE_CHECKING:
    from kgwb.kg import Graph
    from kgwb.llm.base import ChatModel
    from kgwb.ui.debugger import Debugger

MOST_VALUES = 5
"""Values shown of an answer."""
HEAD = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="generator" content="kgwb">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy"
  content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<style>
:root { color-scheme: light dark }
body { max-width: 100em; margin: 0 auto; padding: 1em; background: light-dark(#fff, #131417) }
h1.h1 { font-size: 20px; font-weight: 650 }
h2.h2 { font-size: 17px; font-weight: 650; margin-top: 18px !important }
#questions button:focus-visible { outline: 2px solid } #questions tr:target td { background: var(--bg3) }
#questions :is(th, td) { max-width: 20em; overflow-wrap: anywhere }
#questions td:is(:nth-child(4), :nth-child(5)) { min-width: 10em }
#filter :is(input, select) { width: auto }
</style>
"""
MARK = HEAD[: HEAD.index('<meta name="viewport"')].encode()
"""How every page of kgwb begins; no other file is replaced by one."""
SCRIPT = """<script>
const table = document.getElementById("questions"), rows = [...table.tBodies[0].rows];
const words = document.getElementById("words"), which = document.getElementById("which");
function show() {
  const wanted = words.value.toLowerCase();
  for (const row of rows)
    row.hidden = !(row.textContent.toLowerCase().includes(wanted) && row.className.includes(which.value));
  document.getElementById("shown").textContent = rows.filter(row => !row.hidden).length + " shown";
}
words.oninput = which.onchange = show;
table.tHead.onclick = event => {
  const head = event.target.closest("th"), place = head.cellIndex, up = head.ariaSort !== "ascending";
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  head.ariaSort = up ? "ascending" : "descending";
  const order = new Intl.Collator(undefined, {numeric: true}).compare;
  const told = rows.map(row => [row.cells[place].textContent, row]);
  told.sort(([one], [other]) => (up ? 1 : -1) * order(one, other));
  table.tBodies[0].append(...told.map(([, row]) => row));
};
document.getElementById("filter").hidden = false;
show();
</script>
"""


class Report:
    """The results of one folder, or of several side by side; the first is what the others are set against.

    ``published`` names the question set whose published figures are shown beside (published.toml), for what
    was asked is known to the person alone; with ``prices`` money is told. Raises InputError.
    """

    def __init__(
        self, *folders: str | Path, published: str | None = None, prices: Prices | None = None
    ) -> None:
        if not folders:
            raise InputError("there is nothing to report on", hint="name a folder of kgwb bench --out")
        paths = [Path(os.path.realpath(folder)) for folder in folders]  # links in a circle, too
        own = [path.name for path in paths]
        names = [clean(path.name if own.count(path.name) == 1 else path) for path in paths]
        tails = [f", {name}" if len(names) > 1 else "" for name in names]
        self.sets: tuple[Measured, ...] = tuple(map(measured_in, paths, names, tails))
        """The results, folder by folder."""
        self._prices = prices
        self._published = [*sections.published(self.sets, published)] if published is not None else []

    def save(self, path: str | Path, *, runs: bool = True) -> Path:
        """Write the page, and beside every run that was kept a page of it, unless ``runs`` is False.

        A run's page has the time of the run, and is made again when the run has another. Returns the path.
        Raises InputError, also for a file that is there already and is no page of kgwb.
        """
        path = Path(path)
        try:
            if not _is_ours(path):
                hint = "give another file, or delete that one"
                raise InputError(f"cannot write {path}: what is there is no report of kgwb", hint=hint)
            made = dict(self._run_pages()) if runs else {}
            disk.replace(path, [self._page(path, made)], "replace")
        except OSError as exc:
            raise InputError(f"cannot write {path}: {exc.strerror or exc}", hint="give another file") from exc
        return path

    def debug(
        self,
        question: str,
        *,
        kg: Graph | str | None = None,
        model: ChatModel | str | None = None,
        number: int = 0,
    ) -> Debugger:
        """The debugger on the run of a question, by its id, in results folder ``number``.

        Gold stands beside the answer, and the agent that lost it is chosen. It is live: graph and model are
        those of the set-up, or ``kg`` and ``model``, also by their names. Where the set-up's cannot be opened
        any more, or the model is at an address that only the folder names, what is on record stands for
        them. Raises InputError if the run was not kept, and RunFileError.
        """
        from kgwb.kg import open_kg
        from kgwb.systems import load_run
        from kgwb.ui.debugger import Debugger
        from kgwb.ui.session import session_of

        one = self.sets[number]
        row = one.rows.get(question)
        file = one.run_file(row) if row else None
        if row is None or file is None:
            hint = "measure with --save-runs (save_runs=True)"
            raise InputError(f"the run of {question!r} was not kept", hint=hint)
        graph = open_kg(kg) if isinstance(kg, str) else kg or graph_of(one)
        own = None if model or graph is None else models_of(one)
        run = load_run(file, kg=graph, model=llm.model(model) if isinstance(model, str) else model or own)
        agent = str(one.ladder.get(question, {}).get("agent", ""))
        blamed = next((step.key for step in run.steps if step.agent == agent), "")
        gold = [*(row["gold"] or ())]
        iris = [URIRef(value) for value in gold[:MOST_VALUES] if "://" in value]
        names = {str(iri): name for iri, name in graph.names(iris).items()} if graph and iris else {}
        texts = first_of(gold, MOST_VALUES, lambda value: names.get(value) or local_text(value))
        return Debugger(session_of(run), chosen=blamed, gold=", ".join(texts))

    def _repr_html_(self) -> str:
        return page(*self._sections())

    def __repr__(self) -> str:
        told = (f"{one.name}: {count(len(one.rows), 'question')}" for one in self.sets)
        return f"Report({clean('; '.join(told))})"

    def _sections(self) -> Iterator[Html]:
        yield from sections.measured(self.sets)
        yield tag("h2", "How good", class_="h2")
        yield from sections.quality(self.sets)
        yield from self._published
        if len(self.sets) > 1:
            yield from sections.compared(self.sets)
        yield tag("h2", "How fast, and how dear", class_="h2")
        yield from sections.cost(self.sets, self._prices)
        yield tag("h2", "Where answers were lost", class_="h2")
        yield from sections.lost_at(self.sets)

    def _page(self, path: Path, made: Mapping[Path, Path]) -> str:
        title = f"Benchmark {', '.join(one.name for one in self.sets)}"
        told = (tag("h1", title, class_="h1"), *self._sections(), *_questions(self.sets, path, made))
        return standalone(title, *told) + SCRIPT

    def _run_pages(self) -> Iterator[tuple[Path, Path]]:
        """The file of every run that was kept, with its page."""
        for one in self.sets:
            for file in filter(None, map(one.run_file, one.rows.values())):
                shown = file.with_suffix(".html")
                if shown.is_symlink() or not _is_ours(shown):  # a link may lead anywhere
                    continue
                written = file.stat().st_mtime_ns
                if not shown.exists() or shown.stat().st_mtime_ns != written:
                    disk.replace(shown, [run_page(file)], "replace")
                    os.utime(shown, ns=(written, written))
                yield file, shown


def graph_of(one: Measured) -> Graph | None:
    """The graph of a set-up, if it can be opened and is still that one."""
    from kgwb.kg import open_kg

    with suppress(KgwbError):
        kg = open_kg(str(one.config.get("source")))
        return kg if kg.identity == one.config.get("kg") else None
    return None


def models_of(one: Measured) -> dict[str, ChatModel] | None:
    """The models of a set-up; a folder from elsewhere may not say where the person's key is sent."""
    models = one.config.get("models")
    specs = {str(name): str(spec) for name, spec in models.items()} if isinstance(models, dict) else {}
    with suppress(KgwbError):
        return None if "@" in "".join(specs.values()) else {n: llm.model(spec) for n, spec in specs.items()}
    return None


def local_text(value: str) -> str:
    """A value as it is, an IRI by its last part."""
    return local_name(value) if "://" in value else short(value)


def _is_ours(path: Path) -> bool:
    """Whether a page may be written there: nothing, an empty file or a page of kgwb is. Raises OSError."""
    if not path.is_file():
        return not path.exists()
    with path.open("rb") as file:
        return file.read(len(MARK)) in (b"", MARK)


def standalone(title: str, *contents: object) -> str:
    """A whole page, light or dark as the browser is."""
    body = section(div("body stack", *contents))
    return (
        f"{HEAD}{tag('title', title)}\n<style>{style()}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def run_page(file: Path) -> str:
    """A saved run as a page; where it cannot be opened, why."""
    from kgwb.show.run import run_body
    from kgwb.systems import load_run

    debug = f"import kgwb; kgwb.debug(kgwb.load_run({file.name!r}))"
    told = join(aside("In a notebook beside this page, this opens it in the debugger:"), preformatted(debug))
    try:
        return standalone(f"Run {file.stem}", told, run_body(load_run(file)))
    except KgwbError as exc:
        return standalone(f"Run {file.stem}", told, note(preformatted(exc), kind="bad"))


# --- every question


def _questions(sets: Sequence[Measured], path: Path, made: Mapping[Path, Path]) -> Iterator[Html]:
    yield tag("h2", "Every question", class_="h2")
    choices = {"": "all", "lost": "lost", "error": "ended in an error"}
    if len(sets) > 1:
        choices["differs"] = "scored differently"
    options = (tag("option", said, value=value) for value, said in choices.items())
    yield tag(
        "p",
        *("Show ", tag("select", *options, id="which", aria_label="Which questions"), " with the words "),
        *(tag("input", id="words", aria_label="Words"), " "),
        *(tag("span", id="shown", role="status"), ". A column's head sorts by it."),
        id="filter",
        hidden="",
    )
    named = (f"{head}{one.tail}" for one in sets for head in ("answers", "F1", "lost at", "run"))
    heads = ("id", "hops", "type", "question", "gold", *named)
    ids = dict.fromkeys(key for one in sets for key in one.rows)
    rows = (_question(number, key, sets, path, made) for number, key in enumerate(ids, 1))
    head = tag("thead", tag("tr", *(tag("th", tag("button", head)) for head in heads)))
    yield tag("table", head, tag("tbody", *rows), id="questions")


def _question(number: int, key: str, sets: Sequence[Measured], path: Path, made: Mapping[Path, Path]) -> Html:
    rows = [one.rows.get(key) for one in sets]
    row = next(row for row in rows if row)
    told = [
        short(str(key)),
        row.get("hops", ""),
        row.get("type", ""),
        short(row["question"]),
        _values(row["gold"]),
    ]
    for one, its in zip(sets, rows, strict=True):
        told += _result(one, its, path, made) if its else ["not asked", *[""] * 3]
    kinds = [f"{'lost ' if lost(its) else ''}{'error' if its['error'] else ''}" for its in rows if its]
    differs = len({its and its.get("f1") for its in rows}) > 1
    cells = (tag("td", cell) for cell in told)
    return tag("tr", *cells, id=f"question-{number}", class_=" ".join([*kinds, "differs" if differs else ""]))


def _result(one: Measured, row: Row, path: Path, made: Mapping[Path, Path]) -> list[object]:
    scores = score_row(row)
    answers = note(short(row["error"]), kind="bad") if row["error"] else _values(row["answers"])
    line = one.ladder.get(row["id"], {})
    return [
        answers,
        f"{scores.f1:.2f}" if scores else "",
        line.get("agent") or line.get("why") or "",
        join(_link(one, row, path, made), " ", aside(seconds(row["seconds"]))),
    ]


def _link(one: Measured, row: Row, path: Path, made: Mapping[Path, Path]) -> Html:
    file = one.run_file(row)
    if file is None:
        return aside("not kept")
    shown = os.path.relpath(made.get(file, file), os.path.dirname(os.path.realpath(path)))
    return tag("a", "run", href=quote(shown), title=f'kgwb.debug(kgwb.load_run("{file}"))')


def _values(values: Sequence[str] | None) -> Html:
    if values is None:
        return aside("not known")
    if not values:
        return aside("none")
    texts = first_of([*values], MOST_VALUES)
    shown = [iri_link(value, local_text(value)) if "://" in value else short(value) for value in texts]
    return join(*(tag("div", value) for value in shown))
