"""What works on this machine, and what to do about the rest. Never shows a key."""

from __future__ import annotations

import importlib.metadata
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import NamedTuple

from kgwb.disk import cache_dir
from kgwb.errors import KgwbError
from kgwb.run.models import open_model

INSTALL_HINT = "run `make lab` in the checkout, or `pip install kgwb`"
PACKAGES = {
    **dict.fromkeys(
        "kgwb rdflib oxrdflib pyoxigraph SPARQLWrapper pydantic openai ollama".split(), INSTALL_HINT
    ),
    **dict.fromkeys(
        ("jupyterlab", "ipywidgets", "pyvis"), f"needed for `kgwb lab`: {INSTALL_HINT}"
    ),
}
"""What must be installed, and what to do where it is not."""
CHROMIUM_COMMANDS = ("chromium", "chromium-browser", "google-chrome")


class HealthCheck(NamedTuple):
    """One thing that was looked at."""

    name: str
    ok: bool
    detail: str
    remedy: str = ""
    """What to do if it does not work."""
    required: bool = True
    """Whether kgwb cannot do its main work without."""


def run_health_checks(source: str, model: str) -> Iterator[HealthCheck]:
    """Look at everything, one finding after another; some take seconds."""
    fits = (3, 11) <= sys.version_info[:2] <= (3, 13)
    yield HealthCheck("python", fits, platform.python_version(), "use Python 3.11, 3.12 or 3.13")
    for name, remedy in PACKAGES.items():
        try:
            yield HealthCheck(name, True, importlib.metadata.version(name))
        except importlib.metadata.PackageNotFoundError:
            yield HealthCheck(name, False, "not installed", remedy)
    for part, look in (
        ("graph", _check_graph),
        ("model", _check_models),
        ("embeddings", _check_embeddings),
    ):
        try:
            yield from look(source if part == "graph" else model)
        except KgwbError as exc:
            yield HealthCheck(part, False, exc.message, exc.hint)
    browser, remedy = (
        next(filter(None, map(shutil.which, CHROMIUM_COMMANDS)), ""),
        "needed for kgwb's own tests only",
    )
    yield HealthCheck("chromium", bool(browser), browser or "not found", remedy, False)
    folder, remedy = cache_dir(), "kgwb works without, slower; KGWB_CACHE names another folder"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            yield HealthCheck("cache folder", True, f"{folder} can be written")
    except OSError as exc:
        yield HealthCheck("cache folder", False, f"{folder}: {exc.strerror or exc}", remedy, False)


def _check_graph(source: str) -> Iterator[HealthCheck]:
    from kgwb.kg import open_kg

    started = time.perf_counter()
    kg = open_kg(source)
    full = kg.ask("ASK { ?s ?p ?o }")
    seconds = time.perf_counter() - started
    yield HealthCheck(
        "graph", full, f"{kg.source}, opened in {seconds:.2f} s", "it holds no triple: load some"
    )
    yield HealthCheck("dialect", True, str(getattr(kg, "dialect", None) or "label index of kgwb"))


def survey_lines(source: str) -> Iterator[str]:
    """What there is in a graph, in some fifteen lines, or why that is not known."""
    from kgwb.kg import open_kg
    from kgwb.kg.survey import survey_graph

    try:
        yield from survey_graph(open_kg(source)).summary().splitlines()
    except KgwbError as exc:
        yield f"no survey: {exc.message}"


def _check_models(spec: str) -> Iterator[HealthCheck]:
    """The model, and the servers that could be asked; the one that is asked for must be there."""
    from kgwb import llm

    for status in llm.check_models():
        remedy = f"needed for {status.kind}:MODEL only"
        asked_for = status.kind == spec.partition(":")[0]
        yield HealthCheck(status.kind, status.is_usable, status.detail, remedy, asked_for)
    yield HealthCheck("model", True, open_model(spec).name)


def _check_embeddings(_: str) -> Iterator[HealthCheck]:
    from kgwb.kg.embeddings import DEFAULT_MODEL, LEXICAL_MODEL, Embeddings, bundled_model_folder

    embeddings, started = Embeddings(), time.perf_counter()
    embeddings.similarity("author", ("written by",))
    seconds = time.perf_counter() - started
    place = bundled_model_folder() if embeddings.name == DEFAULT_MODEL else "the model named"
    origin = "no model: character trigrams" if embeddings.name == LEXICAL_MODEL else f"from {place}"
    yield HealthCheck("embeddings", True, f"{embeddings.name}, {origin}, in {seconds:.1f} s")
