"""A browser and three servers, started once for all tests of this folder, and the times they measured."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from typing import Any

import pytest
from engines import leave_out
from playwright.sync_api import Browser

from browser.harness import CHROMIUM, PAINTED, Site, browsing
from browser.servers import serving

# The scope is the folder: Playwright keeps an event loop running, which tests elsewhere do not expect.


@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    if not CHROMIUM:
        leave_out("Chromium is not here; on Debian and Ubuntu: apt install chromium")
    with browsing() as browser:
        yield browser


def _site(kind: str) -> Any:
    @pytest.fixture(scope="package")
    def site(chromium: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
        with serving(kind, tmp_path_factory.mktemp(kind)) as server:
            yield Site(server, chromium)

    return site


lab, notebook7, voila = _site("lab"), _site("notebook"), _site("voila")


@pytest.fixture(params=["lab", "notebook7", "voila"])
def site(request: pytest.FixtureRequest) -> Site:
    """Each place where a notebook may be."""
    return request.getfixturevalue(request.param)  # type: ignore[no-any-return]


@pytest.fixture(autouse=True)
def nothing_goes_wrong(request: pytest.FixtureRequest) -> Iterator[None]:
    """Nor on a page that the tests of a file share."""
    yield
    if "page" in request.fixturenames:
        request.getfixturevalue("page").assert_clean()


TARGETS = {"view": ("clicks that run nothing", 60), "step": ("steps", 150)}
"""How each kind of click is called, and the median it shall have, in milliseconds."""


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how long a person waits after a click; no test fails by it, for machines differ."""
    if PAINTED:
        terminalreporter.write_sep("-", "from click to the new text painted")
    for kind, (name, target) in TARGETS.items():
        times = [(ms, what) for of, what, ms in PAINTED if of == kind]
        if times:
            slowest, what = max(times)
            terminalreporter.write_line(
                f"{len(times)} {name}: median {statistics.median(ms for ms, _ in times):.0f} ms "
                f"(target {target}); the slowest, {what!r}, {slowest:.0f} ms"
            )
