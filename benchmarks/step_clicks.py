"""Measure in JupyterLab how long a click on Step takes until the next step is painted, and what it sends.

    python benchmarks/step_clicks.py [rounds [other checkout]]

A round goes through a question of Chatty-KG in the debugger, with the model ``rules``. With another checkout, the
debuggers of both stand on pages of their own, and each step is clicked in both, one after the other, every second step
in the other order: what else the machine does meets both alike. A ratio is between the medians, or the 95th
percentiles, of all clicks.

After each step, two bare ipywidgets buttons on the same page are clicked. One puts a single word into an
ipywidgets.HTML: that is the share of JupyterLab, its server, the kernel's messages and the browser, which no widget can
go below. The other one puts the whole HTML of the same step into it.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from browser_steps import REST_MS, ROOT, SETUP  # it makes the tests importable
from table import Row, show

# isort: split
from browser.harness import HELD_MS, WAIT_MS, NotebookPage, Site, browsing
from browser.screenshots import AGENTS
from browser.scripts import REST
from browser.servers import serving

SHOWN = "debugger = workbench.debug()\ndebugger"
BARE = """import ipywidgets

bare = ipywidgets.HTML("<p data-seen='0'></p>")
word_button = ipywidgets.Button(description="Word")
same_button = ipywidgets.Button(description="Same")
count = 0

def press(button):
    global count
    count += 1
    html = debugger.html.replace("data-seen", "data-was") if button is same_button else "done"
    bare.value = f'<div aria-busy="false" data-seen="{count}">{html}</div>'

word_button.on_click(press)
same_button.on_click(press)
ipywidgets.VBox([ipywidgets.HBox([word_button, same_button]), bare])"""
WATCH = """(output, button) => {
  const shown = () => output.querySelector("[data-seen]");
  const before = shown().dataset.seen;
  let clicked = null;
  button.addEventListener("click", event => { clicked = event.timeStamp }, {capture: true, once: true});
  window.kgwbClick = new Promise(done => {
    const observer = new MutationObserver(() => {
      if (clicked === null || shown().dataset.seen === before || shown().ariaBusy === "true") return;
      const changed = performance.now();
      observer.disconnect();
      requestAnimationFrame(() => requestAnimationFrame(() => done([performance.now() - clicked, changed - clicked])));
    });
    observer.observe(output, {subtree: true, childList: true, attributes: true});
  });
}"""
"""The second frame after the change begins when the first, which has the change in it, was painted."""
FRAMES = """(() => {
  window.kgwbBytes = 0;
  const size = (data) => data.byteLength ?? data.length;
  window.WebSocket = class extends WebSocket {
    constructor(...given) {
      super(...given);
      this.addEventListener("message", ({data}) => { window.kgwbBytes += size(data) });
    }
    send(data) {
      window.kgwbBytes += size(data);
      super.send(data);
    }
  };
})()"""
"""Counts what goes over the wire in both directions: all messages of the kernel, whatever they are about."""
MEANS = (
    ("browser_ms", "CPU of the page", "ms"),
    ("layout_ms", "CPU of the page's layout and style", "ms"),
    ("kernel_ms", "CPU of the kernel", "ms"),
    ("wire_bytes", "bytes on the wire", ""),
)
KINDS = {
    "Step": "a click on Step",
    "Word": "a bare button, one word",
    "Same": "a bare button, the same HTML",
}
"""What is clicked, by the labels of the buttons."""


@dataclass(slots=True)
class Measured:
    """The clicks of one kind on one page."""

    painted_ms: list[float] = field(default_factory=list)
    """From the click until the new state is painted."""
    changed_ms: list[float] = field(default_factory=list)
    """From the click until the new state is in the page, before it is laid out and painted."""
    browser_ms: list[float] = field(default_factory=list)
    """CPU time of the page's main thread until the page is at rest; a busy machine changes it little."""
    layout_ms: list[float] = field(default_factory=list)
    """The share of layout and style in it."""
    kernel_ms: list[float] = field(default_factory=list)
    """CPU time of the kernel until then."""
    wire_bytes: list[float] = field(default_factory=list)
    """What was sent and received from the click until the page is at rest."""


class Bench:
    """A page with the debugger of one checkout."""

    def __init__(self, page: NotebookPage, kernel: psutil.Process) -> None:
        self.page = page
        self.kernel = kernel
        self.clicks = {kind: Measured() for kind in KINDS}
        self._devtools = page.page.context.new_cdp_session(page.page)
        self._devtools.send("Performance.enable", {"timeDomain": "threadTicks"})

    def restart(self) -> None:
        """Go to the start of the run, whose calls are recorded."""
        debugger = self.page.cell("workbench.debug")
        debugger.click("To the start").wait("No answer yet")

    def step(self) -> None:
        """Click on Step, then on the bare buttons."""
        self._click("workbench.debug", "Step")
        self._click("ipywidgets", "Word")
        self._click("ipywidgets", "Same")

    def _click(self, source: str, label: str) -> None:
        measured = self.clicks[label]
        tab = self.page.page
        tab.bring_to_front()
        cell = self.page.cell(source)
        button = cell.button(label)
        button.scroll_into_view_if_needed()
        self._rest()
        before = self._totals()
        cell.output.evaluate(WATCH, button.element_handle())
        button.click(delay=HELD_MS)
        painted, changed = tab.evaluate("window.kgwbClick")
        self._rest()
        measured.painted_ms.append(painted)
        measured.changed_ms.append(changed)
        for name, now in self._totals().items():
            getattr(measured, name).append(now - before[name])

    def _totals(self) -> dict[str, float]:
        """Return the CPU time of the page's main thread and of the kernel, and the bytes on the wire, so far."""
        metrics = self._devtools.send("Performance.getMetrics")["metrics"]
        seconds = {metric["name"]: metric["value"] for metric in metrics}
        times = self.kernel.cpu_times()
        return {
            "browser_ms": 1_000 * seconds["TaskDuration"],
            "layout_ms": 1_000 * (seconds["LayoutDuration"] + seconds["RecalcStyleDuration"]),
            "kernel_ms": 1_000 * (times.user + times.system),
            "wire_bytes": self.page.page.evaluate("window.kgwbBytes"),
        }

    def _rest(self) -> None:
        """Wait until nothing has changed on the page for a while."""
        self.page.page.locator(".jp-Notebook").first.evaluate(REST, REST_MS)


@contextmanager
def opened(site: Site) -> Iterator[Bench]:
    """Open the notebook, run it once to the end, and leave the debugger there."""
    notebook = site.server.write("step_clicks.ipynb", SETUP, SHOWN, BARE)
    context = site.browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(5 * WAIT_MS)
    context.add_init_script(FRAMES)
    page = NotebookPage(site.server, context.new_page())
    try:
        page.open(notebook, "light")
        page.run_all()
        page.cell("workbench.debug").click("Continue").settle()
        yield Bench(page, kernel_of(site))
        page.assert_clean()
    finally:
        page.leave()
        context.close()


def kernel_of(site: Site) -> psutil.Process:
    """Return the process of the one kernel of a server."""
    found = [
        process
        for process in psutil.process_iter(["cmdline", "environ"])
        if "ipykernel_launcher" in (process.info["cmdline"] or ())
        and (process.info["environ"] or {}).get("PYTHONPATH") == str(site.server.folder)
    ]
    return found[0]


def measure(rounds: int, checkouts: list[Path]) -> list[Bench]:
    """Return the clicks in each checkout, each step clicked in all of them in turn."""
    with ExitStack() as stack:
        browser = stack.enter_context(browsing())
        benches = []
        for root in checkouts:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            server = stack.enter_context(serving("lab", folder, root))
            benches.append(stack.enter_context(opened(Site(server, browser))))
        for _ in range(rounds):
            for bench in benches:
                bench.restart()
            for place, _ in enumerate(AGENTS):
                for bench in benches if place % 2 else benches[::-1]:
                    bench.step()
    return benches


def rows_of(here: Bench, other: Bench | None) -> list[Row]:
    """Return what a click costs, with the ratios to the other checkout."""
    rows = []
    for kind, label in KINDS.items():
        clicks = here.clicks[kind]
        before = other.clicks[kind] if other else None
        for name, what in (("painted_ms", "painted"), ("changed_ms", "in the page")):
            for title, share in (("p50", 0.5), ("p95", 0.95)):
                value = percentile(getattr(clicks, name), share)
                ratio = value / percentile(getattr(before, name), share) if before else None
                rows.append(Row(f"{label}: {what}, {title}", value, "ms", ratio, "the other"))
        for name, what, unit in MEANS:
            value = statistics.mean(getattr(clicks, name))
            ratio = value / statistics.mean(getattr(before, name)) if before else None
            rows.append(Row(f"{label}: {what}, mean", value, unit, ratio, "the other"))
        rows.append(Row(f"{label}: bytes on the wire, most", max(clicks.wire_bytes), "", None))
    above = above_one_word(here)
    ratio = above / above_one_word(other) if other else None
    rows.append(
        Row("a click on Step: painted, p50 above one word", above, "ms", ratio, "the other")
    )
    return rows


def above_one_word(bench: Bench) -> float:
    """Return how much later a step is painted than the word of a bare button, in milliseconds."""
    step, word = (percentile(bench.clicks[kind].painted_ms, 0.5) for kind in ("Step", "Word"))
    return step - word


def percentile(values: list[float], share: float) -> float:
    """Return the value that this share of the values does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, round(share * (len(ordered) - 1)))]


def main() -> None:
    """Print the table."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    others = [Path(name).resolve() for name in sys.argv[2:3]]
    *before, here = measure(rounds, [*others, ROOT])
    show(rows_of(here, before[0] if before else None))


if __name__ == "__main__":
    main()
