"""What works on this machine, and what to do about the rest. Never tells a key."""

from __future__ import annotations

import importlib
import importlib.metadata
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass

from kgwb.errors import KgwbError

PACKAGES = ("kgwb", "rdflib", "oxrdflib", "pyoxigraph", "SPARQLWrapper", "pydantic", "openai", "ollama")
BROWSER_PARTS = ("jupyterlab", "ipywidgets", "pyvis")
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
INSTALL = "run `make lab` in the checkout, or `pip install kgwb`"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    name: str
    works: bool
    detail: str
    remedy: str = ""
    """What to do if it does not work."""
    required: bool = True
    """Whether kgwb cannot do its main work without."""


def examine(source: str, model: str) -> Iterator[Finding]:
    """Look at everything, one finding after another; some take seconds."""
    yield _python()
    yield from map(_package, PACKAGES)
    yield from _graph(source)
    yield _model(model)
    yield from _other_models(model)
    yield _embeddings()
    yield from map(_browser_part, BROWSER_PARTS)
    yield _chromium()
    yield _cache()


def _python() -> Finding:
    fits = (3, 11) <= sys.version_info[:2] <= (3, 13)
    return Finding("python", fits, platform.python_version(), "use Python 3.11, 3.12 or 3.13")


def _package(name: str) -> Finding:
    try:
        return Finding(name, True, importlib.metadata.version(name))
    except importlib.metadata.PackageNotFoundError:
        return Finding(name, False, "not installed", INSTALL)


def _graph(source: str) -> Iterator[Finding]:
    from kgwb.kg import open_kg

    started = time.perf_counter()
    try:
        kg = open_kg(source)
        full = kg.ask("ASK { ?s ?p ?o }")
        seconds = time.perf_counter() - started
        dialect = getattr(kg, "dialect", None)
    except KgwbError as exc:
        yield Finding("graph", False, exc.message, exc.hint)
        return
    yield Finding("graph", full, f"{kg.source}, opened in {seconds:.2f} s", "it holds no triple: load some")
    yield Finding("dialect", True, "label index of kgwb" if dialect is None else str(dialect))


def _model(spec: str) -> Finding:
    from kgwb import llm

    try:
        return Finding("model", True, llm.model(spec).name)
    except KgwbError as exc:
        return Finding("model", False, exc.message, exc.hint)


def _other_models(spec: str) -> Iterator[Finding]:
    """The servers that could be asked; the one that is asked for must be there."""
    from kgwb import llm

    wanted = spec.partition(":")[0]
    for status in llm.available():
        remedy = f"needed for {status.kind}:MODEL only"
        yield Finding(status.kind, status.usable, status.detail, remedy, required=status.kind == wanted)


def _embeddings() -> Finding:
    from kgwb.kg.embeddings import DEFAULT, LEXICAL, Embeddings, bundled_model

    embeddings = Embeddings()
    started = time.perf_counter()
    try:
        embeddings.similarity("author", ("written by",))
    except KgwbError as exc:
        return Finding("embeddings", False, exc.message, exc.hint)
    place = bundled_model() if embeddings.name == DEFAULT else None
    made = (
        "no model: character trigrams" if embeddings.name == LEXICAL else f"from {place or 'the model named'}"
    )
    return Finding("embeddings", True, f"{embeddings.name}, {made}, in {time.perf_counter() - started:.1f} s")


def _browser_part(name: str) -> Finding:
    try:
        importlib.import_module(name)
    except ImportError as exc:
        return Finding(name, False, str(exc), f"needed for `kgwb lab`: {INSTALL}")
    return Finding(name, True, importlib.metadata.version(name))


def _chromium() -> Finding:
    found = next(filter(None, map(shutil.which, CHROMIUM)), None)
    return Finding(
        "chromium", bool(found), found or "not found", "needed for kgwb's own tests only", required=False
    )


def _cache() -> Finding:
    from kgwb.kg import cache_dir

    folder = cache_dir()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return Finding("cache folder", True, f"{folder} can be written")
    except OSError as exc:
        remedy = "kgwb works without, slower; KGWB_CACHE names another folder"
        return Finding("cache folder", False, f"{folder}: {exc.strerror or exc}", remedy, required=False)
