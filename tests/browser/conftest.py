"""A browser and three servers, started once for all tests of this folder, and the times they measured."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

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


@pytest.fixture(scope="package")
def lab(chromium: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """JupyterLab, as `kgwb lab` starts it."""
    with serving("lab", tmp_path_factory.mktemp("lab")) as server:
        yield Site(server, chromium)


@pytest.fixture(scope="package")
def notebook7(chromium: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with serving("notebook", tmp_path_factory.mktemp("notebook")) as server:
        yield Site(server, chromium)


@pytest.fixture(scope="package")
def voila(chromium: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with serving("voila", tmp_path_factory.mktemp("voila")) as server:
        yield Site(server, chromium)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how long a person waits after a click."""
    if PAINTED:
        median = statistics.median(ms for _, ms in PAINTED)
        slowest, most = max(PAINTED, key=lambda measured: measured[1])
        terminalreporter.write_sep("-", "from click to the new text painted")
        terminalreporter.write_line(
            f"median {median:.0f} ms of {len(PAINTED)} clicks; the slowest, {slowest!r}, {most:.0f} ms"
        )
