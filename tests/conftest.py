"""What every test stands on: no torch, a cache folder of its own, and the engines that tests share."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TypeVar

import engines
import hypothesis
import model_server
import pytest

T = TypeVar("T")
LONG = {
    "browser",
    "faults",
    "hostile",
    "test_engines.py",
    "test_nasty_graphs.py",
    "test_nasty_pages.py",
    "test_notebooks.py",
    "test_parser_bombs.py",
    "test_phoenix.py",
    "test_real_server.py",
    "test_same_answers.py",
}
"""Folders and files whose tests are all long: `make test-all` runs them, `make test` does not.

A test is long if it starts an engine, a model's server or a browser, or needs torch, MetaQA or
another large graph. So is one that asks all questions of the samples, that goes through all systems
and pages with a nasty graph, that runs a paper's whole experiment, that tests whole commands in
other processes, or that sets up and tests a whole project. In any other file such a test is marked:
``@pytest.mark.long``.
"""
LONG_TIMEOUT_S = 600
"""What a long test may take that has no mark `timeout` of its own, so that a busy machine fails none."""
hypothesis.settings.register_profile("kgwb", deadline=None)  # a busy machine is no failure
hypothesis.settings.load_profile("kgwb")


def pytest_configure() -> None:
    """Let Ctrl+C interrupt again: a shell that starts the tests in its background ignores it."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not even import the files of long tests where none of them is run: that takes seconds."""
    if config.getoption("markexpr") == "not long" and _is_long(collection_path):
        return True
    return None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if _is_long(item.path):
            item.add_marker("long")
        if item.get_closest_marker("long") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(LONG_TIMEOUT_S))


def _is_long(path: Path) -> bool:
    """Tell whether a path is one of `LONG`, or stands in one of its folders."""
    tests = Path(__file__).parent
    return path.is_relative_to(tests) and not LONG.isdisjoint(path.relative_to(tests).parts)


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Lexical embeddings and an empty cache; a test that wants others sets them itself."""
    monkeypatch.setenv("KGWB_EMBEDDINGS", "lexical")
    monkeypatch.setenv("KGWB_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty working folder, and nobody's key."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def only_long(pytestconfig: pytest.Config) -> None:
    """For fixtures that make a test long: `make test` fails where such a test is not marked."""
    if pytestconfig.getoption("markexpr") == "not long":
        pytest.fail("a test that uses this fixture is long: mark it with @pytest.mark.long")


@pytest.fixture(scope="session")
def virtuoso(only_long: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[engines.Engine]:
    """A real Virtuoso, the same for all tests; skipped where it is not installed."""
    with _started(engines.virtuoso, tmp_path_factory.mktemp("virtuoso")) as engine:
        yield engine


@pytest.fixture(scope="session")
def oxigraph(only_long: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[engines.Engine]:
    """Oxigraph's own server, the same for all tests."""
    with _started(engines.oxigraph, tmp_path_factory.mktemp("oxigraph")) as engine:
        yield engine


@pytest.fixture(scope="session")
def metaqa(only_long: None) -> Path:
    """The file of MetaQA's graph; skipped where it is not here."""
    if not (file := engines.metaqa()).exists():
        pytest.skip(f"no {file}: KGWB_DATA names the folder that holds metaqa/")
    return file


@pytest.fixture(scope="session")
def llama(only_long: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a real OpenAI-compatible server with a small model; skipped where it was not built."""
    with _started(model_server.llama, tmp_path_factory.mktemp("llama")) as url:
        yield url


@contextmanager
def _started(start: Callable[[Path], AbstractContextManager[T]], folder: Path) -> Iterator[T]:
    try:
        with start(folder) as server:
            yield server
    except engines.EngineMissingError as missing:
        engines.leave_out(str(missing))
