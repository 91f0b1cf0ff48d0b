"""Knowledge graphs: files, folders and SPARQL endpoints behind one read-only interface."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import rdflib

from kgwb.deprecated import renamed_names
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
from kgwb.masking import mask_url

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
"""What can be opened as a graph."""
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
    """The graph of an RDF file, a folder of them, an rdflib Graph, an endpoint's URL or a sample's name.

    One that is open already is itself.
    ``dialect`` names an endpoint's label search, as NAME or NAME:ARGUMENT of ``kgwb.kg.dialects.DIALECTS``,
    instead of probing it. ``vocabulary`` (one of VOCABULARIES by name, a JSON file, or your own) says which
    predicates carry labels and which are noise; without it, that of the well-known graph at this URL, or else
    the default. ``cache`` lets large files be kept, loaded, in the cache folder. ``allow_service`` lets
    SERVICE clauses pass, and functions by which an engine may do more than read.

    Raises GraphFileError, SettingError for an unknown dialect or vocabulary, or GraphUnreachableError.
    """
    if not isinstance(source, str | os.PathLike | rdflib.Graph):
        if not hasattr(source, "select"):
            hint = "give a file, a folder, an endpoint's URL, a sample's name or an rdflib Graph"
            raise GraphFileError(f"{source!r} is no graph", hint=hint)
        return source
    limits = QueryLimits(query_timeout_s, row_limit, allow_service)
    if isinstance(vocabulary, str):
        vocabulary = load_vocabulary(vocabulary)
    if not isinstance(vocabulary, Vocabulary | None):
        raise SettingError(f"{vocabulary!r} is no vocabulary", hint="give a name, or a Vocabulary")
    if isinstance(source, str) and is_endpoint_url(source):
        from kgwb.kg.endpoint import Endpoint

        return Endpoint(source, dialect=dialect, vocabulary=vocabulary, limits=limits)
    from kgwb.kg.local import LocalGraph

    if not isinstance(source, str | os.PathLike):
        return LocalGraph.from_rdflib(source, vocabulary=vocabulary, limits=limits)
    if dialect is not None:
        raise SettingError(
            "a dialect is for endpoints, and this is a file", hint="leave dialect out"
        )
    graph = LocalGraph.open(
        _resolve_path(source), vocabulary=vocabulary, limits=limits, cache=cache
    )
    graph.source = str(source)  # as the person wrote it: a sample's name, not where it lies
    return graph


def is_endpoint_url(source: str) -> bool:
    """Whether a source of ``open_kg`` is an endpoint's URL."""
    return source.lower().startswith(("http://", "https://"))


def _resolve_path(source: str | os.PathLike[str]) -> Path:
    """The file or folder of a path or of a sample's name."""
    hint = f"check the name, seen from {Path.cwd()}, or open a sample: {', '.join(SAMPLE_NAMES)}"
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
    except UnicodeEncodeError as error:  # no run file and no page could say where the graph is
        raise GraphFileError(f"the name {name} is not UTF-8", hint="rename it") from error
    except (
        OSError,
        RuntimeError,
    ) as error:  # a name that is too long, or ~ of a user who is not there
        reason = getattr(error, "strerror", None) or error
        raise GraphFileError(f"{name} cannot be opened: {reason}", hint=hint) from error
    raise GraphFileError(f"there is no file or folder {name}", hint=hint)


def sample_path(name: str) -> Path:
    """The file of a sample, in the checkout or the installed package; raises GraphFileError."""
    package = Path(__file__).parent.parent
    for folder in (package.parent / "sample_kgs", package / "_data" / "sample_kgs"):
        if name in SAMPLE_NAMES and (folder / f"{name}.ttl").exists():
            return folder / f"{name}.ttl"
    raise GraphFileError(
        f"there is no sample {name!r}", hint=f"the samples are {', '.join(SAMPLE_NAMES)}"
    )


if not TYPE_CHECKING:  # a type checker would take every name for known
    __getattr__ = renamed_names(__name__)
