"""Measure in JupyterLab how long a click takes until the new state is painted: steps, and clicks that run nothing.

    python benchmarks/browser_steps.py [pairs [other checkout]]

A question of Chatty-KG over the films sample, with the model ``rules``: each agent is run by the button of its cell,
then stepped through in the debugger. With another checkout, both are visited in turn, the other one first, and each
ratio is the median of the pairs: the figures of one busy machine differ more from hour to hour than from version to
version. Chromium and the packages of the tests in a browser are needed.

The time of a click has two parts. The first ends when the last message with the new state reaches the page: it has
the kernel in it, and JupyterLab's server. The second is the browser's: the HTML is parsed, compared and painted.
"""

from __future__ import annotations

import re
import statistics
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from table import Row, show

ROOT = Path(__file__).parent.parent
sys.path.append(str(ROOT / "tests"))

from browser.harness import HELD_MS, Cell, NotebookPage, Site, browsing  # noqa: E402
from browser.screenshots import AGENTS  # noqa: E402
from browser.scripts import REST  # noqa: E402
from browser.servers import serving  # noqa: E402
from playwright.sync_api import Locator  # noqa: E402

SETUP = """import kgwb

workbench = kgwb.Workbench(kgwb.open_kg("films"), kgwb.model("rules"))
workbench.ask("Who is the author of Harry Potter?")
run = workbench.begin("When was its first movie released?")"""
STEPPED = "a step of the debugger"
RUN = "a step by its cell"
KINDS = (STEPPED, RUN, "another view", "another step shown", "another tab of a cell", "a fold")
"""The kinds of clicks; those after the first two run nothing."""
TABS = ("Inputs|What came in", "Edit as a form", "Result")
"""Patterns of the labels; the second name of the first is that of older checkouts."""
VIEWS = ("Answer", "Compare", "Step")
TIMES = "Where the time went"
REST_MS = 300
"""Nothing may change on the page for so long before the next click: other widgets are drawn after the clicked one."""

RECORD = """(() => {
  window.kgwbMessages = [];
  window.WebSocket = class extends WebSocket {
    constructor(...given) {
      super(...given);
      this.addEventListener("message", ({data}) => window.kgwbMessages.push([performance.now(), data]));
    }
  };
})()"""
"""Keeps what the kernels send. It is read after the click is measured, so that reading costs no time in it."""
WATCH = """button => {
  const top = () => button.closest("[data-seen]") ?? widget.querySelector("[data-seen]");
  const fold = button.closest("summary")?.parentElement;
  const widget = top().parentElement;
  const seen = Number(top().dataset.seen), open = fold?.open;
  const isShown = () => fold ? fold.open !== open
    : Number(widget.querySelector("[data-seen]").dataset.seen) > seen
      && widget.querySelector("[data-seen]").getAttribute("aria-busy") === "false";
  let clicked = null;
  document.addEventListener("click", event => { clicked = event.timeStamp }, {capture: true, once: true});
  window.kgwbMessages.length = 0;
  window.kgwbClick = new Promise(done => {
    const observer = new MutationObserver(() => {
      if (clicked === null || !isShown()) return;
      const changed = performance.now();
      observer.disconnect();
      requestAnimationFrame(() => requestAnimationFrame(() => done(
        {clicked, changed, painted: performance.now(), id: widget.querySelector("[data-seen]").id})));
    });
    observer.observe(widget, {subtree: true, childList: true, characterData: true, attributes: true});
  });
}"""
"""The second frame after the change begins when the first, which has the change in it, was painted."""
MEASURED = """async () => {
  const {clicked, changed, painted, id} = await window.kgwbClick;
  const decoder = new TextDecoder();
  const text = (data) => typeof data === "string" ? data : decoder.decode(data);
  const states = window.kgwbMessages.filter(([at, data]) =>
    at <= changed && (text(data).includes(id) || text(data).includes('"packed"')));
  const [reached, data] = states.at(-1) ?? [clicked, ""];
  return [painted - clicked, reached - clicked, painted - reached, data.byteLength ?? data.length];
}"""


class Click(NamedTuple):
    """One click."""

    total_ms: float
    """Until the new state was painted."""
    message_ms: float
    """Until the last message with the new state reached the page; 0 without a message."""
    browser_ms: float
    """From there on."""
    message_bytes: float


@dataclass(frozen=True, slots=True)
class Clicks:
    """The clicks of one visit to the notebook."""

    page: NotebookPage
    by_kind: dict[str, list[Click]]

    def measure(self, kind: str, button: Locator) -> None:
        """Click, wait until the new state is painted, and keep how long it took."""
        self.page.page.locator(".jp-Notebook").first.evaluate(REST, REST_MS)
        button.scroll_into_view_if_needed()
        button.evaluate(WATCH)
        button.click(delay=HELD_MS)
        self.by_kind[kind].append(Click(*self.page.page.evaluate(MEASURED)))

    def run_agents(self) -> None:
        """Run each agent by the button of its cell, then look at the tabs of some of them."""
        for name in AGENTS:
            cell = self._agent(name)
            self.measure(RUN, cell.button("Run"))
        for name in ("qir", "vertex_selection", "execution"):
            cell = self._agent(name)
            for label in TABS:
                self.measure("another tab of a cell", _tab(cell, label))

    def step(self) -> None:
        """Go to the start in the debugger, and step to the end."""
        debugger = self._debugger()
        debugger.click("To the start").wait("No answer yet")
        for _ in AGENTS:
            self.measure(STEPPED, debugger.button("Step"))

    def look_around(self) -> None:
        """Click what runs nothing in the debugger: views, steps of the timeline, and a fold."""
        debugger = self._debugger()
        for label in VIEWS:
            self.measure("another view", _tab(debugger, label))
        for name in AGENTS[::2]:
            self.measure("another step shown", debugger.row(name.replace("_", " ")).first)
        _tab(debugger, "Answer").click()
        fold = debugger.wait(TIMES).output.locator("summary").filter(has_text=TIMES)
        for _ in range(4):
            self.measure("a fold", fold)
        _tab(debugger, "Step").click()

    def _agent(self, name: str) -> Cell:
        return self.page.cell(f'workbench.cell("{name}")')

    def _debugger(self) -> Cell:
        return self.page.cell("workbench.debug()")


def _tab(cell: Cell, label: str) -> Locator:
    return cell.output.get_by_role("tab", name=re.compile(label))


def visit(site: Site) -> dict[str, list[Click]]:
    """Return the clicks of a visit, by kind. Raises AssertionError if anything went wrong on the page."""
    cells = [f'workbench.cell("{name}")' for name in AGENTS]
    notebook = site.server.write("browser_steps.ipynb", SETUP, *cells, "workbench.debug()")
    with _opened(site, notebook) as page:
        page.run_all()
        clicks = Clicks(page, defaultdict(list))
        clicks.run_agents()
        for _ in range(2):
            clicks.step()
            clicks.look_around()
        page.assert_clean()
    return dict(clicks.by_kind)


@contextmanager
def _opened(site: Site, notebook: str) -> Iterator[NotebookPage]:
    """Open a notebook on a page that keeps what the kernel sends."""
    context = site.browser.new_context(viewport={"width": 1280, "height": 900})
    context.add_init_script(RECORD)
    page = NotebookPage(site.server, context.new_page())
    try:
        page.open(notebook, "light")
        yield page
    finally:
        page.leave()
        context.close()


def in_pairs(pairs: int, checkouts: list[Path]) -> list[list[dict[str, list[Click]]]]:
    """Return the clicks of each visit, by checkout, which are visited in turn after a first visit to warm up."""
    visits: list[list[dict[str, list[Click]]]] = [[] for _ in checkouts]
    with ExitStack() as stack:
        browser = stack.enter_context(browsing())
        sites = []
        for root in checkouts:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            sites.append(Site(stack.enter_context(serving("lab", folder, root)), browser))
        for pair in range(pairs + 1):
            for root, measured, site in zip(checkouts, visits, sites, strict=True):
                clicks = visit(site)
                if pair:
                    measured.append(clicks)
                    print(f"pair {pair}, {root.name}: {_totals(clicks)}", flush=True)
    return visits


def _totals(clicks: dict[str, list[Click]]) -> str:
    """Return the median of each kind of click as a line of text."""
    texts = []
    for kind in KINDS:
        total_ms = statistics.median(click.total_ms for click in clicks[kind])
        texts.append(f"{kind} {total_ms:.0f} ms")
    return ", ".join(texts)


def rows_of(visits: list[dict[str, list[Click]]], other: list[dict[str, list[Click]]]) -> list[Row]:
    """Return the medians of each kind of click, with the median ratio to the other checkout if there is one."""
    rows = []
    units = ("ms", "ms", "ms", "")
    whats = ("", ", of it until the message", ", of it the browser", ", bytes of the message")
    for kind in KINDS:
        for field, unit, what in zip(Click._fields, units, whats, strict=True):
            medians = _medians(visits, kind, field)
            ratio = None
            before = _medians(other, kind, field)
            if before and all(before):
                ratio = statistics.median(a / b for a, b in zip(medians, before, strict=True))
            row = Row(f"{kind}{what}", statistics.median(medians), unit, ratio, "the other")
            rows.append(row)
    return rows


def _medians(visits: list[dict[str, list[Click]]], kind: str, field: str) -> list[float]:
    """Return the median of a kind of click in each visit."""
    return [statistics.median(getattr(click, field) for click in clicks[kind]) for clicks in visits]


def main() -> None:
    """Print a table for each checkout, the other one first."""
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 4
    others = [Path(name).resolve() for name in sys.argv[2:3]]
    *before, here = in_pairs(pairs, [*others, ROOT])
    for visits in before:
        print("the other checkout")
        show(rows_of(visits, []))
        print("this checkout")
    show(rows_of(here, before[0] if before else []))


if __name__ == "__main__":
    main()
