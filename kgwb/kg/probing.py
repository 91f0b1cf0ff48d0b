"""Which dialect an endpoint's labels are searched in: found by probing, and then remembered."""

from __future__ import annotations

import hashlib
import json
import logging
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from kgwb import disk
from kgwb.errors import GraphError, GraphTimeoutError
from kgwb.kg.base import ResultSet
from kgwb.kg.dialects import DIALECTS, Dialect, SearchStage
from kgwb.kg.sparql import is_valid_iri, string_literal, values_clause
from kgwb.kg.sparql_client import SparqlClient
from kgwb.kg.text import lowercase_words, normalize
from kgwb.kg.wikibase import LabelledVertices, search_wikibase

DIALECT_CACHE_LIFETIME_S = 30 * 24 * 3600
"""After this time an endpoint is probed again: it may have got an index."""
MAX_PROBE_LABELS = 20
"""The number of labels from which the one to probe with is chosen."""
MAX_PROBE_HITS = 50
MAX_PROBE_WORDS = 3
MIN_PROBE_WORD_LETTERS = 4
"""Shorter words may be missing from a full-text index."""
_log = logging.getLogger("kgwb")


def choose_dialect(client: SparqlClient) -> Dialect:
    """Return the dialect for an endpoint: the remembered one, else the first that finds a label.

    A label is taken from the graph and searched for in each dialect; those that the URL or the
    server's name suggest come first. That an engine accepts a query proves nothing: the index may
    be off, empty, or not for labels. If no search finds the label, ``generic`` is chosen, which
    needs no full-text index.

    The choice is kept in the cache folder for DIALECT_CACHE_LIFETIME_S, except where the graph has
    no label to search for. ``selection_reason`` of the result says why it was chosen. Raises
    GraphError if the endpoint fails.
    """
    digest = hashlib.sha256(client.identity.encode())
    name = f"{digest.hexdigest()}.json"
    cache_file = disk.cache_dir() / "dialects" / name
    remembered = _read_remembered(cache_file)
    if remembered is not None:
        return replace(remembered, selection_reason=f"remembered in {cache_file}")

    label = _find_probe_label(client)
    if not label:
        return replace(DIALECTS["generic"], selection_reason="no label to probe with")
    chosen = DIALECTS["generic"]
    for dialect in _dialects_to_probe(client):
        if _finds_label(client, dialect, label):
            chosen = dialect
            break
    _remember(cache_file, client.identity, chosen)
    return replace(chosen, selection_reason="probed")


def _read_remembered(file: Path) -> Dialect | None:
    """Return the dialect in a file of the cache folder.

    None if the file is missing, damaged, or older than DIALECT_CACHE_LIFETIME_S.
    """
    with suppress(OSError, ValueError, LookupError, TypeError, RecursionError):
        age_s = time.time() - file.stat().st_mtime
        if age_s >= DIALECT_CACHE_LIFETIME_S:
            return None
        remembered = json.loads(file.read_bytes())
        dialect = DIALECTS[remembered["dialect"]]
        if dialect.is_complete:
            return dialect
    return None


def _remember(file: Path, identity: str, dialect: Dialect) -> None:
    """Write the endpoint and the name of its dialect to a file, in JSON.

    If the file cannot be written, a warning is logged, and nothing raised.
    """
    data = {"endpoint": identity, "dialect": dialect.name}
    try:
        disk.write_atomically(file, [json.dumps(data)])
    except OSError as error:
        _log.warning("%s cannot be written (%s); the endpoint will be probed again", file, error)


def _find_probe_label(client: SparqlClient) -> str:
    """Return a label of the graph to search for in each dialect; "" if none is suitable.

    MAX_PROBE_LABELS labels in the preferred languages are read, and if none of them is suitable, as
    many in any language. The one with the most words to search for is returned, then the shortest.
    """
    predicates = values_clause("?p", client.vocabulary.labels)
    languages = ", ".join(map(string_literal, client.vocabulary.languages))
    is_preferred = f" && LANG(?label) IN ({languages})"
    is_long = f"STRLEN(STR(?label)) >= {MIN_PROBE_WORD_LETTERS}"
    for language_condition in (is_preferred, ""):
        conditions = f"isIRI(?v) && {is_long}{language_condition}"
        where = f"{predicates} ?v ?p ?label FILTER({conditions})"
        query = f"SELECT ?label WHERE {{ {where} }} LIMIT {MAX_PROBE_LABELS}"
        rows = client.select_complete(query).rows
        texts = [str(label) for (label,) in rows if label is not None]
        labels = list(filter(_probe_words, texts))
        if labels:
            return max(labels, key=_probe_quality)
    return ""


def _probe_words(label: str) -> list[str]:
    """Return the first words of a label that any full-text index should have, in lower case."""
    words = [word for word in lowercase_words(label) if len(word) >= MIN_PROBE_WORD_LETTERS]
    return words[:MAX_PROBE_WORDS]


def _probe_quality(label: str) -> tuple[int, int, str]:
    """Return a sort key: the greatest label has the most probe words, then the fewest letters."""
    words = _probe_words(label)
    return len(words), -len(label), label


def _dialects_to_probe(client: SparqlClient) -> list[Dialect]:
    """Return the dialects that can be probed, those first that URL or server name suggest.

    Dialects that need an argument are left out, and those that may only be probed on a hint. Within
    both groups the order is that of DIALECTS. ``generic`` is left out.
    """
    seen = f"{client.identity} {client.server}".lower()
    suggested = []
    others = []
    for dialect in DIALECTS.values():
        if not dialect.is_complete or dialect.name == "generic":
            continue
        if any(hint in seen for hint in dialect.engine_hints):
            suggested.append(dialect)
        elif dialect.probe_without_hint:
            others.append(dialect)
    return suggested + others


def _finds_label(client: SparqlClient, dialect: Dialect, label: str) -> bool:
    """Return whether a search in a dialect finds a label with all the probe words of this one.

    A search that the endpoint refuses finds nothing. Then an ordinary query is sent as well, which
    raises GraphError if the endpoint fails for it, too. Raises GraphTimeoutError if the search
    takes too long.
    """
    words = _probe_words(label)
    try:
        found = search_labels(
            client, dialect, label, words, MAX_PROBE_HITS, require_valid_text=False
        )
    except GraphTimeoutError as error:
        raise GraphTimeoutError(
            f"{error.message} (asked for a label in the dialect {dialect.name})",
            hint='name the dialect when you open the graph: open_kg(..., dialect="generic")',
        ) from error
    except GraphError:
        client.ask("ASK { ?s ?p ?o }")
        return False
    if found is None:
        return False
    vertices, _ = found
    wanted = set(normalize(" ".join(words)).split())
    for _, text in vertices:
        found_words = normalize(text).split()
        if wanted.issubset(found_words):
            return True
    return False


def search_labels(
    client: SparqlClient,
    dialect: Dialect,
    text: str,
    words: Sequence[str],
    limit: int,
    stage: SearchStage = "all words",
    *,
    require_valid_text: bool = True,
) -> tuple[LabelledVertices, str] | None:
    """Search the labels of an endpoint in a dialect, in one stage of a search.

    ``words`` are those of ``text``, in lower case, at least one. A dialect without a pattern
    searches for ``text`` by Wikibase's API. Returns pairs of an IRI and the label that matched, at
    most ``limit``, with the query or URL that was sent. Returns None if the dialect has no such
    stage. ``require_valid_text`` is as for ``SparqlClient.select_complete``.
    """
    if not dialect.pattern:
        if stage != "all words":
            return None
        api = dialect.argument_fields["api"]
        return search_wikibase(api, text, limit, client.vocabulary, client.limits)
    query = dialect.build_search_query(words, limit, stage, client.vocabulary)
    if not query:
        return None
    result = client.select_complete(
        query, dialect.service_iri, require_valid_text=require_valid_text
    )
    return labelled_vertices(result), query


def labelled_vertices(result: ResultSet) -> LabelledVertices:
    """Return pairs of vertex and label, both as strings, from a result with these two columns.

    Rows without a label are left out, and rows whose vertex is not an IRI that a query could hold.
    """
    vertices: LabelledVertices = []
    for vertex, label in result.rows:
        if not vertex or label is None:
            continue
        if is_valid_iri(vertex):
            vertices.append((str(vertex), str(label)))
    return vertices
