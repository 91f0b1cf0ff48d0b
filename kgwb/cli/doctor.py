"""``kgwb doctor``: what works on this machine, with a remedy for what does not. No key is shown."""

from __future__ import annotations

import importlib.metadata
import platform
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from kgwb.cli.arguments import option
from kgwb.disk import cache_dir
from kgwb.errors import KgwbError
from kgwb.text import list_first, single_line

if TYPE_CHECKING:
    from kgwb.llm.base import ChatModel

INSTALL_HINT = "run `make lab` in the checkout, or `pip install kgwb`"
REQUIRED_PACKAGES = "kgwb rdflib oxrdflib pyoxigraph SPARQLWrapper pydantic openai ollama".split()
LAB_PACKAGES = "jupyterlab ipywidgets pyvis".split()
PACKAGES = dict.fromkeys(REQUIRED_PACKAGES, INSTALL_HINT) | dict.fromkeys(
    LAB_PACKAGES, f"needed for `kgwb lab`: {INSTALL_HINT}"
)
"""The packages that must be installed, each with what to do if it is not."""
CACHE_TRIAL_BYTES = 100_000
"""Bytes that are written to the cache folder to see whether the disk has space."""


class HealthCheck(NamedTuple):
    """One thing that was checked, and the result."""

    name: str
    ok: bool
    detail: str
    remedy: str = ""
    """What to do if it does not work."""
    required: bool = True
    """Whether kgwb needs it for its main work."""


def run_health_checks(source: str, model: str, system: str = "") -> Iterator[HealthCheck]:
    """Check the installation, a graph and a model, and yield each result as soon as it is known.

    The order is: Python and the packages, installed systems, graph, models, embeddings, memory
    limit, cache folder. ``source`` is what ``open_kg`` can open, ``model`` what
    ``open_model`` can. A check of graph, model or embeddings that raises KgwbError yields a failed
    result with the error's message and hint; the others go on. Some checks take seconds.

    ``system`` is the system that must work, by default any of kgwb's. Embeddings are not required
    for a pipeline: nothing of it asks kgwb for any.
    """
    from kgwb.adapt.pipelines import ANSWER_AGENT
    from kgwb.run.systems import resolve_system

    yield from _check_packages()
    yield from _check_systems()
    is_pipeline = False
    if system:
        try:
            wanted = resolve_system(system)
            yield HealthCheck("system", True, f"{wanted.name}, from {wanted.origin or 'kgwb'}")
            is_pipeline = ANSWER_AGENT in wanted.specs_by_name
        except KgwbError as exc:
            yield HealthCheck("system", False, exc.message, exc.hint)
    for name, check in (
        ("graph", partial(_check_graph, source)),
        ("model", partial(_check_models, model)),
        ("embeddings", _check_embeddings),
    ):
        try:
            yield from check()
        except KgwbError as exc:
            is_required = not (is_pipeline and name == "embeddings")
            yield HealthCheck(name, False, exc.message, exc.hint, is_required)
    yield _check_memory_limit()
    yield _check_cache_folder()


def _check_packages() -> Iterator[HealthCheck]:
    """Yield a result for the version of Python, and one for each of PACKAGES.

    Python must be 3.11 or newer. A package passes, with its version as the detail, if its metadata
    are installed: it is not imported. A missing one has what to do as its remedy.
    """
    is_supported = sys.version_info >= (3, 11)
    version = platform.python_version()
    yield HealthCheck("python", is_supported, version, "use Python 3.11 or newer")
    for name, remedy in PACKAGES.items():
        try:
            yield HealthCheck(name, True, importlib.metadata.version(name))
        except importlib.metadata.PackageNotFoundError:
            yield HealthCheck(name, False, "not installed", remedy)


def _check_systems() -> Iterator[HealthCheck]:
    """Import each system that an installed package announces, and yield a result for each.

    The detail of a success has the system's name, its package and where it is defined. A system
    that raises KgwbError is a failed result with the reason, but it is not required. Nothing is
    yielded if none is announced.
    """
    from kgwb.run.systems import installed_systems, load_system

    for name, entry_point in installed_systems().items():
        try:
            system = load_system(name)
        except KgwbError as exc:
            yield HealthCheck("system", False, f"{name}: {exc.message}", exc.hint, required=False)
            continue
        package = entry_point.dist.name if entry_point.dist else "a package"
        yield HealthCheck("system", True, f"{name} of {package}, from {system.origin}")


def _check_graph(source: str) -> Iterator[HealthCheck]:
    """Open a graph and yield three results: "graph", "dialect" and "names".

    "graph" fails if the graph has no triple; its detail has the source and the seconds that opening
    and one query took. "dialect" never fails: its detail is how an endpoint's labels are searched,
    or "label index of kgwb" for a file. "names" has the predicates that the graph names its things
    by, the preferred first, and the languages. It fails if there is none, but is not required. A
    failed result "file" for each note tells what was left out or changed when files were read.
    Raises GraphError if the graph cannot be opened or asked.
    """
    from kgwb.kg import open_kg
    from kgwb.kg.base import NAME_LINKS
    from kgwb.kg.queries import find_label_usage, find_used_predicates
    from kgwb.kg.term_text import to_curie
    from kgwb.terms import KNOWN_PREFIXES

    started = time.perf_counter()
    kg = open_kg(source)
    has_triples = kg.ask("ASK { ?s ?p ?o }")
    seconds = time.perf_counter() - started
    detail = f"{kg.source}, opened in {seconds:.2f} s"
    yield HealthCheck("graph", has_triples, detail, "the graph is empty: load triples into it")
    dialect = getattr(kg, "dialect", None) or "label index of kgwb"
    yield HealthCheck("dialect", True, str(dialect))
    for note in getattr(kg, "notes", ()):
        yield HealthCheck("file", False, note, required=False)
    predicates, languages = find_label_usage(kg)
    used = [*predicates, *find_used_predicates(kg, NAME_LINKS)]
    shown = list_first([to_curie(predicate, KNOWN_PREFIXES) for predicate in used])
    if languages:
        shown += f"; languages: {list_first([tag or 'none' for tag in languages])}"
    remedy = (
        "things are named by predicates that are called name or title, else by their IRIs; to name"
        " another predicate of labels, use --vocabulary (see docs/how-to/my-graph.md)"
    )
    detail = shown or "no predicate of labels that kgwb knows"
    yield HealthCheck("names", bool(used), detail, remedy, required=False)


def survey_lines(source: str) -> Iterator[str]:
    """Yield the summary of a graph's survey line by line, some fifteen lines.

    If the graph cannot be opened or surveyed, yield one line that says why, instead of raising.
    """
    from kgwb.kg import open_kg
    from kgwb.kg.survey import survey_graph

    try:
        yield from survey_graph(open_kg(source)).summary().splitlines()
    except KgwbError as exc:
        yield f"no survey: {exc.message}"


def _check_models(spec: str) -> Iterator[HealthCheck]:
    """Yield a result for every kind of model server, and then one for the model itself.

    A server is required only if it is the one that ``spec`` names ("ollama:phi4", without an address
    of its own). The last result is that of ``_check_model``. Raises ModelError if the model cannot
    be opened, or its server cannot be used.
    """
    from kgwb import llm
    from kgwb.run.models import open_model

    kind, _, rest = spec.partition(":")
    has_address = "@http" in rest
    for status in llm.check_models():
        yield HealthCheck(
            status.kind,
            status.is_usable,
            status.detail,
            remedy=f"needed for {status.kind}:MODEL only",
            required=status.kind == kind and not has_address,
        )
    yield _check_model(open_model(spec))


def _check_model(model: ChatModel) -> HealthCheck:
    """Return whether a model can be used, as far as its server's list of models tells it.

    The model itself is not asked. A model without a server passes. One that Ollama does not list
    fails. Other servers may take models that they do not list: the detail says so. Raises
    ModelError if the server cannot be reached, refuses the key or fails.
    """
    from kgwb.llm import OllamaModel, RemoteModel

    name = model.name
    if not isinstance(model, RemoteModel):
        return HealthCheck("model", True, name)
    listed = model.find_listed_models()
    if listed is None:
        return HealthCheck("model", True, f"{name}: its server answers, and has no list of models")
    if model.model in listed or f"{model.model}:latest" in listed:
        return HealthCheck("model", True, f"{name}, which its server lists")
    others = list_first(listed) or "none"
    detail = f"{name}: its server does not list it, but {others}"
    if isinstance(model, OllamaModel):
        return HealthCheck("model", False, detail, f"pull it: ollama pull {model.model}")
    return HealthCheck("model", True, detail)


def _check_embeddings() -> Iterator[HealthCheck]:
    """Load the default embeddings, compare two texts with them, and yield one successful result.

    Its detail has the embeddings' name, where the model comes from, and the seconds that both took.
    Raises EmbeddingError if they cannot be loaded.
    """
    from kgwb.kg.embeddings import DEFAULT_MODEL, LEXICAL_MODEL, Embeddings, bundled_model_folder

    started = time.perf_counter()
    embeddings = Embeddings()
    embeddings.similarity("author", ("written by",))
    seconds = time.perf_counter() - started
    origin = "from the model named"
    if embeddings.name == DEFAULT_MODEL:
        origin = f"from {bundled_model_folder()}"
    elif embeddings.name == LEXICAL_MODEL:
        origin = "no model: character trigrams"
    yield HealthCheck("embeddings", True, f"{embeddings.name}, {origin}, in {seconds:.1f} s")


def _check_memory_limit() -> HealthCheck:
    """Return whether the memory of the process that parses RDF can be limited on this machine.

    The check is not required. It fails where the platform has no such limit, or if the process
    cannot be started; the detail says which.
    """
    from kgwb.kg.files import is_memory_limited

    name = "memory limit"
    try:
        if is_memory_limited():
            return HealthCheck(name, True, "a file that expands cannot fill the memory")
        detail = "this system has none for the process that parses RDF"
    except OSError as exc:
        detail = f"the process that parses RDF cannot be started: {exc.strerror or exc}"
    remedy = "open only files that you trust: one made to expand may take all the memory"
    return HealthCheck(name, False, detail, remedy, required=False)


def _check_cache_folder() -> HealthCheck:
    """Create the cache folder if it is missing, write a temporary file to it, and return the result.

    The file has CACHE_TRIAL_BYTES: an empty one can be made on a full disk, too. The detail has the
    folder and, if one of the two failed, the reason. The check is not required.
    """
    folder = cache_dir()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(CACHE_TRIAL_BYTES))
            file.flush()
            return HealthCheck("cache folder", True, f"{folder} can be written")
    except OSError as exc:
        return HealthCheck(
            "cache folder",
            False,
            f"{folder}: {exc.strerror or exc}",
            "kgwb works without it, but slower; set KGWB_CACHE to another folder",
            required=False,
        )


@dataclass(kw_only=True)
class DoctorCommand:
    """The arguments of ``kgwb doctor``, and its work."""

    kg: str = option(
        "", "graph to try, and to survey (default: the sample films, without a survey)", ""
    )
    model: str = option("", "model to try (default: rules)", "rules")
    system: str = option(
        "", "system that must work: a pipeline of your own (./mine.py) needs no embeddings", ""
    )

    def run(self) -> int:
        """Run the checks, and print state, name and detail of each as it is made, and a remedy if it failed.

        The state is "ok", "missing" for what is needed, or "absent" for what is not. A last line
        says whether everything needed is there. With ``kg`` the survey of the graph follows. Returns
        1 if something needed is missing, else 0.
        """
        healthy = True
        for finding in run_health_checks(self.kg or "films", self.model, self.system):
            state = "ok"
            if not finding.ok:
                state = "missing" if finding.required else "absent"
            if state == "missing":
                healthy = False
            print(f"{state:<8} {finding.name:<14} {single_line(finding.detail)}", flush=True)
            if not finding.ok and finding.remedy:
                print(f"{'':<24}{single_line(finding.remedy)}")
        print("everything needed is there" if healthy else "something needed is missing, see above")
        if self.kg:
            print("", *survey_lines(self.kg), sep="\n")
        return 0 if healthy else 1
