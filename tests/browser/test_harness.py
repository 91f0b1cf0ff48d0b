"""The harness drives what a person drives, and reports what goes wrong."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from browser.harness import PAINTED, SEEN, SETTLE_MS, WAIT_MS, NotebookPage, Site

PLAIN = """
import ipywidgets as widgets
text, said, button = widgets.Textarea(description="Text"), widgets.HTML("nothing"), widgets.Button(description="Say it")
button.on_click(lambda _: setattr(said, "value", f"<b>you</b> said {text.value}"))
widgets.VBox((text, button, said))
"""

BUTTON = """
import threading, ipywidgets as widgets
from IPython.display import HTML, Javascript, display
def button(action):
    made = widgets.Button(description="Go")
    made.on_click(lambda _: action())
    display(made)
def fail(): raise ValueError("in vain")
"""
BROKEN = {
    "a cell fails": ("1 / 0", "kernel: ZeroDivisionError"),
    "a cell's error is shown": ("1 / 0", "error output: "),
    "a click fails": ("button(fail)", "kernel: ValueError: in vain"),
    "a thread fails": (
        "button(threading.Thread(target=fail).start)",
        "kernel, stderr: Exception in thread",
    ),
    "an observer fails": (
        "box = widgets.IntText(); box.observe(lambda _: fail()); button(lambda: box.set_trait('value', 3))",
        "kernel: ValueError: in vain",
    ),
    "something is written to stderr": (
        "import sys; print('oh', file=sys.stderr)",
        "kernel, stderr: oh",
    ),
    "a script complains": ("Javascript('console.error(\"no good\")')", "console: no good"),
    "a script fails": (
        "Javascript('setTimeout(() => { throw new Error(\"late\") })')",
        "page error: Error: late",
    ),
    "a picture is wanted": (
        "HTML('<img src=\"http://example.invalid/x.png\">')",
        "request to http://example.invalid/x.png",
    ),
    "a frame wants a script": (
        'HTML(\'<p><iframe sandbox="allow-scripts" srcdoc="\''
        " '&lt;script src=https://example.invalid/x.js&gt;&lt;/script&gt;\"></iframe>')",
        "request to https://example.invalid/x.js",
    ),
    "a socket is wanted": (
        "Javascript('new WebSocket(\"ws://example.invalid/x\")')",
        "request to ws://example.invalid/x",
    ),
    "a widget says that something failed": (
        "widgets.HTML('<div role=\"alert\">Failed: all</div>')",
        "message: Failed: all",
    ),
}


def test_a_page_is_driven_as_a_person_drives_it_and_fails_if_something_went_wrong(
    lab: Site,
) -> None:
    name = lab.server.write("plain.ipynb", PLAIN, "1 / 0")
    with pytest.raises(AssertionError, match="ZeroDivisionError"), lab.visit(name) as page:
        page.run_all()
        cell = page.cell(0)
        cell.fill("Text", "hello")
        started = time.monotonic()
        cell.click("Say it", until="you said hello")
        *_, ms = PAINTED.pop()
        assert 0 < ms <= 1000 * (time.monotonic() - started)
        page.choose_theme("dark")


@pytest.fixture(scope="module")
def broken(lab: Site) -> Iterator[NotebookPage]:
    name = lab.server.write("broken.ipynb", BUTTON, *(code for code, _ in BROKEN.values()))
    with lab.open(name) as page:
        page.cell(0).run()
        page.assert_clean()
        yield page


@pytest.mark.parametrize("what", BROKEN)
def test_what_goes_wrong_is_reported(broken: NotebookPage, what: str) -> None:
    cell = broken.cell(1 + list(BROKEN).index(what))
    problem = BROKEN[what][1]
    cell.run()
    if "button(" in BROKEN[what][0]:
        cell.button("Go").click()  # waits until it is drawn
    for _ in range(WAIT_MS // SETTLE_MS):
        if any(problem in found for found in broken.problems()):
            break
    with pytest.raises(AssertionError, match=r"on the page"):
        broken.assert_clean()
    broken.expect_problem(problem)
    broken.page.evaluate("jupyterapp.commands.execute('notebook:clear-all-cell-outputs')")
    for selector in SEEN.values():
        expect(broken.page.locator(selector).filter(visible=True)).to_have_count(0)
    broken._problems.clear()  # the same trouble is told of in several ways
