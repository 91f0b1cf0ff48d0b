"""Knowledge graphs: files, folders and SPARQL endpoints behind one read-only interface."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import rdflib

from kgwb import disk
from kgwb.disk import cache_dir
from kgwb.errors import GraphFileError, SettingError
from kgwb.kg.base import (
    VOCABULARIES,
    Graph,
    Hit,
    QueryLimits,
    ResultSet,
    SearchResult,
    Vocabulary,
    load_vocabulary,
)
from kgwb.text import mask_url

if TYPE_CHECKING:
    from kgwb.kg.dialects import Dialect

__all__ = [
    "SAMPLE_NAMES",
    "VOCABULARIES",
    "Graph",
    "GraphSource",
    "Hit",
    "QueryLimits",
    "ResultSet",
    "SearchResult",
    "Vocabulary",
    "cache_dir",
    "is_endpoint_url",
    "open_kg",
    "sample_path",
]

GraphSource: TypeAlias = Graph | str | os.PathLike[str] | rdflib.Graph
"""What ``open_kg`` can open."""
SAMPLE_NAMES = ("films", "cars", "scholars", "wikidata_slice")
"""Names of the graphs that come with kgwb."""


def open_kg(
    source: GraphSource,
    *,
    dialect: str | Dialect | None = None,
    vocabulary: str | Vocabulary | None = None,
    cache: bool = True,
    allow_service: bool = False,
    query_timeout_s: float = 30.0,
    row_limit: int = 10_000,
) -> Graph:
    """Open a graph: an RDF file, a folder of them, an rdflib Graph, an endpoint's URL, or a sample.

    A graph that is open already is returned as it is; the other arguments then have no effect.

    - ``dialect`` is how an endpoint's labels are searched, as NAME or NAME:ARGUMENT of
      ``kgwb.kg.dialects.DIALECTS``. Without it, the endpoint is probed at the first search.
    - ``vocabulary`` says which predicates are labels and which are noise. It is a name of
      VOCABULARIES, a JSON file, or a Vocabulary. Without it, that of the well-known graph at this
      URL is used, else the default.
    - ``cache`` allows a graph from large files to be kept in the cache folder.
    - ``allow_service`` allows queries to ask other endpoints (SERVICE), and to call an engine's
      functions that may do more than read.
    - ``row_limit`` is how many rows or triples of a result are read.

    ``query_timeout_s`` is in seconds.

    An rdflib graph that asks an endpoint (``SPARQLStore``) is opened as that endpoint.

    Raises GraphFileError, or SettingError for an unknown dialect or vocabulary. An endpoint is not
    contacted.
    """
    if not isinstance(source, str | os.PathLike | rdflib.Graph):
        if not hasattr(source, "select"):
            hint = "give a file, a folder, an endpoint's URL, a sample's name or an rdflib Graph"
            raise GraphFileError(f"{source!r} cannot be opened as a graph", hint=hint)
        return source
    limits = QueryLimits(query_timeout_s, row_limit, allow_service)
    if isinstance(vocabulary, str):
        vocabulary = load_vocabulary(vocabulary)
    if not isinstance(vocabulary, Vocabulary | None):
        raise SettingError(
            f"the graph cannot be opened with {vocabulary!r}, which is not a vocabulary",
            hint="give the name of a vocabulary, such as 'wikidata', or a Vocabulary",
        )
    if isinstance(source, rdflib.Graph):
        source = endpoint_of(source) or source
    if isinstance(source, str) and is_endpoint_url(source):
        from kgwb.kg.endpoint import Endpoint

        return Endpoint(source, dialect=dialect, vocabulary=vocabulary, limits=limits)
    from kgwb.kg.local import LocalGraph

    if isinstance(source, rdflib.Graph):
        return LocalGraph.from_rdflib(source, vocabulary=vocabulary, limits=limits)
    if dialect is not None:
        raise SettingError(
            "a dialect was named, but this graph is not an endpoint",
            hint="leave the dialect (--dialect) out: it says how the labels of an endpoint are searched",
        )
    path = _resolve_path(source)
    graph = LocalGraph.open(path, vocabulary=vocabulary, limits=limits, cache=cache)
    graph.source = str(source)  # as the person wrote it, for example the name of a sample
    return graph


def endpoint_of(graph: rdflib.Graph) -> str:
    """Return the address of the endpoint that an rdflib graph asks (``SPARQLStore``); else ""."""
    address = getattr(graph.store, "query_endpoint", None)
    return address if isinstance(address, str) else ""


def is_endpoint_url(source: str) -> bool:
    """Return whether ``open_kg`` takes a text for the URL of an endpoint."""
    return source.lower().startswith(("http://", "https://"))


def _resolve_path(source: str | os.PathLike[str]) -> Path:
    """Return the path of an existing file or folder, or the file of a sample.

    A file named like a sample is preferred to the sample. Raises GraphFileError if there is
    neither, and for a path that is not UTF-8, because run files and web pages could not hold it.
    "~" is the home folder. Passwords in a name are masked in the error.
    """
    samples = ", ".join(SAMPLE_NAMES)
    hint = f"check the name, seen from {Path.cwd()}, or open a sample: {samples}"
    if re.match(r"[\w.-]+:\d", str(source)):
        hint = f"an endpoint begins with http:// or https://; else {hint}"
    name = mask_url(str(source))[:300] or "of the name ''"
    try:
        path = Path(source).expanduser()
        if str(source) in SAMPLE_NAMES and not path.exists():
            path = sample_path(str(source))
        if source != "" and path.exists():
            str(path).encode()
            return path
    except UnicodeEncodeError as error:
        raise GraphFileError(
            f"the file name {name} is not valid UTF-8", hint="rename the file"
        ) from error
    except (OSError, RuntimeError) as error:
        # OSError for a name that is too long, RuntimeError for the home folder of an unknown user.
        reason = getattr(error, "strerror", None) or error
        raise GraphFileError(f"the graph {name} cannot be opened: {reason}", hint=hint) from error
    raise GraphFileError(f"there is no file or folder {name}", hint=hint)


def find_graph_file(source: str) -> Path | None:
    """Return the file that ``open_kg`` reads for a source, such as that of a sample.

    Returns None for an endpoint, a folder, and what is not there.
    """
    if is_endpoint_url(source):
        return None
    try:
        path = _resolve_path(source)
    except GraphFileError:
        return None
    return path if path.is_file() else None


def sample_path(name: str) -> Path:
    """Return the Turtle file of a sample, by its name.

    The checkout is looked into first, then the installed package. Raises GraphFileError, which
    lists the samples, if there is no sample of this name.
    """
    path = disk.shipped_folder("sample_kgs") / f"{name}.ttl"
    if name in SAMPLE_NAMES and path.exists():
        return path
    raise GraphFileError(
        f"kgwb has no sample graph named {name!r}",
        hint=f"choose one of {', '.join(SAMPLE_NAMES)}; a graph of your own cannot be used here",
    )
