"""A notebook's page, driven as a person drives it, and everything that goes wrong in it.

    with lab.visit("00_start.ipynb") as page:
        page.run_all()
        page.cell("workbench.ask").wait("Andrei Tarkovsky")

``visit`` fails on leaving if anything went wrong that the test did not take with ``page.expect_problem``.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import (
    Browser,
    ConsoleMessage,
    Error,
    FrameLocator,
    Locator,
    Page,
    Route,
    ViewportSize,
    WebSocket,
    expect,
    sync_playwright,
)

from browser.scripts import CHANGE_THEME, PAINTED_MS, READY, REST, SHOW, WATCH
from browser.servers import Server

CHROMIUM = next(
    (
        found
        for name in ("chromium", "chromium-browser", "google-chrome")
        if (found := shutil.which(name))
    ),
    "",
)
"""The program; empty if there is none."""
FLAGS = (
    "--no-sandbox",  # tests may run as root
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-features=IsolateSandboxedIframes",  # or what such a frame requests would not be told of
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",  # also what no request tells of: prefetching
)
WIDTH = 1280
"""Of the window, in pixels."""
WAIT_MS = 120_000
"""The longest wait for anything: a page, a cell that finishes, a text, a button that can be pressed.

Nothing takes so long but on a machine that is busy with other work.
"""
expect.set_options(timeout=WAIT_MS)
HELD_MS = 80
"""How long a person holds the button of a mouse down; meanwhile JupyterLab makes the cell active."""
SETTLE_MS = 200
"""What a page may still be about to do when a test is through with it."""
PAINTED: list[tuple[str, str, float]] = []
"""The kind of a click, what was clicked, and the milliseconds until the awaited text was painted."""
STEPS = ("run", "step", "go", "back", "start", "take", "apply", "restore", "try", "anew")
VIEWS = ("section", "view", "choose", "which", "class", "show", "open", "debug", "node", None)
"""What a click is sent as that runs an agent, and one that runs nothing; None is a fold."""
KINDS = dict.fromkeys(STEPS, "step") | dict.fromkeys(VIEWS, "view")

# What the programs around kgwb do on every page; each as narrow as can be.
# anywidget says so after 2 s, which a slow machine may exceed; live.js mends what it means.
LATE = r"(?s)(page error|console): Error: \[anywidget\] Failed to initialize model\..*"
# Jupyter's server says so where its kernels are listed while one of them begins; the page asks again.
LISTED = (
    r"console: Failed to load resource: the server responded with a status of 500 "
    r"\(Internal Server Error\) \(http://127\.0\.0\.1:\d+/api/kernels\?\d+\)"
)
ALLOWED = {
    "lab": (LATE, LISTED),
    # Notebook 7.6 asks for the settings of a plugin that it does not have, with every notebook it opens.
    "notebook": (
        LATE,
        LISTED,
        r"page error: TypeError: Cannot read properties of undefined \(reading 'schema'\)",
    ),
    # Voila 0.5's own template wants the icons of its spinner from there; the request is blocked here.
    "voila": (
        LATE,
        r"request to https://cdn\.jsdelivr\.net/npm/@fortawesome/fontawesome-free@%5E5/css/[a-z4-]+\.min\.css",
        r"console: Failed to load resource: net::ERR_FAILED "
        r"\(https://cdn\.jsdelivr\.net/npm/@fortawesome/fontawesome-free@%5E5/css/[a-z4-]+\.min\.css\)",
    ),
}
CONTROL = "jupyter.widget.control"
SEEN = {
    "error output": '.jp-OutputArea [data-mime-type="application/vnd.jupyter.error"], '
    '.jp-OutputArea [data-mime-type="application/vnd.jupyter.stderr"]',
    "message": ".jp-OutputArea [role=alert]",
    "widget": ".jupyter-widgets-error-widget",
    "dialog": ".jp-Dialog",
    "notification": ".Toastify__toast--error",
}
"""What shows on a page that something went wrong."""


@contextmanager
def browsing() -> Iterator[Browser]:
    """Chromium, without a window."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@dataclass(frozen=True, slots=True)
class Site:
    """A server and the browser that visits it."""

    server: Server
    browser: Browser

    @contextmanager
    def visit(self, notebook: str, **how: Any) -> Iterator[NotebookPage]:
        """The page of a notebook whose kernel is ready, see ``open``; fails at the end if it is not clean."""
        with self.open(notebook, **how) as page:
            yield page
            page.assert_clean()

    @contextmanager
    def open(
        self,
        notebook: str,
        *,
        theme: str = "light",
        scale: float = 1,
        width: int = WIDTH,
        height: int = 900,
        outputs: bool = False,
    ) -> Iterator[NotebookPage]:
        """The same for a page that several tests share: each of them asks it ``assert_clean``."""
        self.server.renew(outputs=outputs)
        window = ViewportSize(width=width, height=height)
        context = self.browser.new_context(
            viewport=window, device_scale_factor=scale, service_workers="block"
        )
        context.set_default_timeout(WAIT_MS)
        page = NotebookPage(self.server, context.new_page())
        try:
            page.open(notebook, theme)
            yield page
        except BaseException as exc:
            page.tell_of(exc)
            raise
        finally:
            page.leave()
            context.close()


class NotebookPage:
    """The page of one notebook."""

    def __init__(self, server: Server, page: Page) -> None:
        self.server, self.page = server, page
        self._problems: list[str] = []
        self._refused: set[str] = set()
        self._sources: tuple[str, ...] = ()
        self._listen()

    # --- what a person does ---------------------------------------------------------------------------------

    def open(self, notebook: str, theme: str) -> None:
        """Load the page, wait for the kernel and choose the theme, "light" or "dark"."""
        self._sources = self.server.sources(notebook)
        self.page.goto(self.server.url(notebook, theme), wait_until="domcontentloaded")
        if self.server.kind == "voila":  # it executes every cell before the page is there
            self.page.locator("#rendered_cells").wait_for()
            return
        self.page.wait_for_function(READY)
        self.choose_theme(theme)

    def reload(self) -> None:
        """Load the page again, whose kernel stays alive."""
        self.page.reload(wait_until="domcontentloaded")
        self.page.wait_for_function(READY)

    def choose_theme(self, theme: str) -> None:
        """Switch to "light" or "dark", as the menu does."""
        splash = self.page.locator("#jupyterlab-splash")
        splash.wait_for(state="detached")  # JupyterLab fails over two at once
        self.page.evaluate(CHANGE_THEME, f"JupyterLab {theme.title()}")
        splash.wait_for(state="detached")
        is_light = str(theme == "light").lower()
        self.page.locator(f"body[data-jp-theme-light={is_light}]").wait_for(state="attached")

    @property
    def text(self) -> str:
        """The visible text of all outputs."""
        return " ".join(self.cell(place).text for place in range(len(self._sources)))

    def cell(self, which: int | str) -> Cell:
        """A code cell: the n-th from 0, or the first whose source in the file has that text."""
        if isinstance(which, str):
            places = [place for place, source in enumerate(self._sources) if which in source]
            assert places, f"no code cell has {which!r} in it"
            which = places[0]
        return Cell(self, self.page.locator(".jp-CodeCell").nth(which))

    def run_all(self) -> None:
        """Run every code cell from the first to the last, each when the one before has finished.

        Under Voila they have been run already.
        """
        if self.server.kind == "voila":
            return
        for place in range(len(self._sources)):
            self.cell(place).run()

    # --- what went wrong ------------------------------------------------------------------------------------

    def problems(self) -> list[str]:
        """Everything that went wrong so far, a line each, in the order it was noticed."""
        self.page.wait_for_timeout(SETTLE_MS)
        for kind, selector in SEEN.items():
            for text in self.page.locator(selector).filter(visible=True).all_inner_texts():
                if (line := f"{kind}: {text.strip()[:500]}") not in self._problems:
                    self._problems.append(line)
        return list(self._problems)

    def expect_problem(self, *parts: str) -> None:
        """Take out the problems that hold one of these texts; fails if one of the texts is in none."""
        found = self.problems()
        for part in parts:
            assert any(part in problem for problem in found), f"{part!r} is in none of {found}"
        self._problems = [
            problem for problem in found if not any(part in problem for part in parts)
        ]

    def assert_clean(self) -> None:
        """Fail if anything went wrong."""
        if found := self.problems():
            raise AssertionError("on the page:\n" + "\n".join(found))

    def tell_of(self, failure: BaseException) -> None:
        """Add to a test's failure what went wrong on the page, and a picture of it."""
        picture = Path(tempfile.mkdtemp(prefix="kgwb-page-")) / "failed.png"
        try:
            self.page.screenshot(path=picture)
            failure.add_note(f"a picture of the page: {picture}; on it: {self.problems()}")
        except Error as exc:
            failure.add_note(f"the page is gone: {exc}")

    def leave(self) -> None:
        """End the kernel; what happens on the page from here on is nobody's problem."""
        if self.server.kind == "voila":
            self.page.close(run_before_unload=True)
        else:
            self.page.evaluate("window.jupyterapp?.serviceManager.sessions.shutdownAll()")

    def _listen(self) -> None:
        own = re.escape(self.server.origin)
        self.page.route(re.compile(rf"^(?!{own}/|data:|blob:|about:)"), self._on_foreign_request)
        self.page.on("console", self._on_console)
        self.page.on(
            "pageerror", lambda error: self._note(f"page error: {error.name}: {error.message}")
        )
        self.page.on("crash", lambda _: self._note("the page crashed"))
        self.page.on("websocket", self._on_websocket)

    def _note(self, problem: str) -> None:
        if not any(re.fullmatch(allowed, problem) for allowed in ALLOWED[self.server.kind]):
            self._problems.append(problem)

    def _on_foreign_request(self, route: Route) -> None:
        self._note(f"request to {route.request.url}")
        route.abort()

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "assert"):
            self._note(f"console: {message.text} ({message.location.get('url')})")

    def _on_websocket(self, socket: WebSocket) -> None:
        if not socket.url.startswith(self.server.origin.replace("http", "ws", 1) + "/"):
            self._note(f"request to {socket.url}")
        elif "/channels" in socket.url:
            socket.on("framesent", self._on_sent_message)
            socket.on("framereceived", self._on_kernel_message)

    def _on_kernel_message(self, frame: str | bytes) -> None:
        """A callback's failure belongs to no cell: only the kernel's messages tell of it."""
        kind, content = kernel_message(frame)
        if kind == "error":
            self._note(f"kernel: {content['ename']}: {content['evalue']}")
        elif kind == "stream" and content["name"] == "stderr":
            for line in content["text"].strip().splitlines():
                if line not in self._refused:
                    self._note(f"kernel, stderr: {line}")

    def _on_sent_message(self, frame: str | bytes) -> None:
        """On opening, the page asks for widgets of before, which a kernel without ipywidgets cannot tell."""
        kind, content = kernel_message(frame)
        if kind == "comm_open" and content["target_name"] == CONTROL:
            self._refused |= {
                f"No such comm: {content['comm_id']}",
                f"No such comm target registered: {CONTROL}",
            }


@dataclass(frozen=True, slots=True)
class Cell:
    """A code cell of a page, and what stands in its output."""

    page: NotebookPage
    root: Locator

    @property
    def output(self) -> Locator:
        """Everything the cell put out, widgets included."""
        return self.root.locator(".jp-Cell-outputArea, .jp-OutputArea").first

    @property
    def text(self) -> str:
        """The visible text of the output, its spaces and line breaks made one space each."""
        self.show()
        return " ".join(self.output.inner_text().split())

    def show(self) -> Cell:
        """Scroll to the output; the page has no text of cells that are out of sight."""
        self.output.evaluate(SHOW)
        return self

    def run(self) -> Cell:
        """Execute it by Shift+Enter, and wait until it has finished."""
        return self.start().finish()

    def start(self) -> Cell:
        """Execute it by Shift+Enter, and wait for nothing but its beginning."""
        before = self._prompt.inner_text()
        self._prompt.click()
        self.page.page.keyboard.press("Shift+Enter")
        expect(self._prompt).not_to_have_text(before)
        return self

    def finish(self) -> Cell:
        """Wait until it has finished."""
        expect(self._prompt).to_have_text(re.compile(r"\[\d+\]"))
        return self

    @property
    def busy(self) -> bool:
        """Whether it is being executed, or waits for its turn."""
        return "*" in self._prompt.inner_text()

    @property
    def active(self) -> bool:
        """Whether it is the cell that Shift+Enter executes."""
        is_active = "cell => cell.classList.contains('jp-mod-active')"
        return bool(self.root.evaluate(is_active))

    @property
    def _prompt(self) -> Locator:
        return self.root.locator(".jp-InputArea-prompt")

    def button(self, label: str) -> Locator:
        """The button with that label."""
        return self.output.get_by_role("button", name=label, exact=True)

    def field(self, label: str) -> Locator:
        """The text area, box or list of that label."""
        return self.output.get_by_label(label, exact=True).first

    def tab(self, label: str, *, until: str = "") -> Cell:
        """Click the tab of that label."""
        return self.click(
            self.output.get_by_role("tab", name=re.compile(rf"^{label}( \d+)?$")), until=until
        )

    def row(self, name: str) -> Locator:
        """The lines of a debugger's timeline for an agent."""
        return self.output.locator(".tl .go").filter(
            has=self.page.page.get_by_text(name, exact=True)
        )

    def frame(self) -> FrameLocator:
        """What is in the frame of the output."""
        return self.output.frame_locator("iframe")

    def click(self, what: str | Locator, *, until: str = "") -> Cell:
        """Click a button; with ``until``, wait for a text that was not there, and measure how long it took.

        The measure goes into the report of the tests: for work that a model delays, click and then ``wait``.
        A text may be there before the work that brings it has ended, so that is waited for, too: an edit is
        refused before.
        """
        button = self.button(what) if isinstance(what, str) else what
        if not until:
            button.click()
            return self
        assert until not in self.text, f"{until!r} is there before the click"
        self.output.evaluate(WATCH, until)
        kind, label = (
            KINDS.get(button.get_attribute("data-do"), "other"),
            " ".join(button.inner_text().split()),
        )
        button.click(delay=HELD_MS)
        self.wait(until)
        PAINTED.append((kind, label[:40], self.page.page.evaluate(PAINTED_MS)))
        return self.settle()

    def fill(self, where: str | Locator, text: str) -> Cell:
        """Write into the text box of that label, once the output has stopped changing."""
        self.output.evaluate(REST, SETTLE_MS)
        (self.field(where) if isinstance(where, str) else where).fill(text)
        return self

    def wait(self, text: str | re.Pattern[str], *, gone: bool = False) -> Cell:
        """Wait until a text is visible in the output, or until it is gone."""
        shown = expect(self.show().output)
        verb = shown.not_to_contain_text if gone else shown.to_contain_text
        verb(text, use_inner_text=True)
        return self

    def settle(self) -> Cell:
        """Wait until the widgets of the output show what came of the latest press, and nothing runs.

        Then no state comes any more that would replace what a test measures, types into or presses.
        """
        expect(self.output.locator(".kg[aria-busy=true]")).to_have_count(0)
        return self

    def picture(self, path: Path, *, most: int = 1200) -> Path:
        """A picture of the output alone, or of its upper ``most`` pixels; the window must be as high."""
        place = self.output.locator(".jp-OutputArea-output").first
        self.page.page.mouse.move(0, 0)
        place.evaluate("output => output.scrollIntoView({block: 'start'})")
        self.output.evaluate(REST, SETTLE_MS)
        box = place.bounding_box()
        assert box is not None, "there is no output"
        clip = {**box, "height": min(box["height"], most)}
        self.page.page.screenshot(path=path, clip=clip, animations="disabled", caret="hide")
        return path


def kernel_message(frame: str | bytes) -> tuple[str, dict[str, Any]]:
    """The type and the content of a message on a kernel's socket.

    In Jupyter's binary form, v1.kernel.websocket.jupyter.org, or in the older one, a JSON text.
    """
    if isinstance(frame, str):
        message = json.loads(frame)
        return message["header"]["msg_type"], message["content"]
    count = int.from_bytes(frame[:8], "little")
    places = [int.from_bytes(frame[8 * n : 8 * n + 8], "little") for n in range(1, count + 1)]
    header, content = (json.loads(frame[places[n] : places[n + 1]]) for n in (1, 4))
    return header["msg_type"], content
