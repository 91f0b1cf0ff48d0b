"""Which dialect an endpoint speaks: the first that finds a label that is there; and that is remembered."""

from __future__ import annotations

import hashlib
import json
import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from kgwb import disk
from kgwb.errors import GraphError, GraphTimeoutError
from kgwb.kg import cache_dir, wikibase
from kgwb.kg.base import Rows
from kgwb.kg.dialects import DIALECTS, Dialect
from kgwb.kg.sparql import n3, quoted
from kgwb.kg.text import normal, spelled

if TYPE_CHECKING:
    from kgwb.kg.endpoint import Endpoint

REMEMBERED_S = 30 * 24 * 3600
"""After this time an endpoint is probed again: it may have got an index."""
_LABELS, _HITS, _WORDS, _LETTERS = 20, 50, 3, 4  # labels to choose from; hits; words asked for, of 4 letters
_log = logging.getLogger("kgwb")

Ask = Callable[[str, str], Rows]
"""The rows of a query that may use the magic service named."""


def recognised(endpoint: Endpoint, ask: Ask) -> Dialect:
    """The dialect remembered for an endpoint, else probed now. Raises what the endpoint does when it fails.

    A site whose full-text index is off, empty or not for labels is asked in ``generic``: that a query is
    understood proves nothing, as an unknown predicate is an ordinary one that happens to have no triples.
    """
    file = cache_dir() / "dialects" / f"{hashlib.sha256(endpoint.identity.encode()).hexdigest()}.json"
    if dialect := _remembered(file):
        return dialect
    label = _label(endpoint, ask)
    found = next(
        filter(lambda one: _finds(one, label, endpoint, ask), _likely(endpoint)), DIALECTS["generic"]
    )
    if label:
        _remember(file, {"endpoint": endpoint.identity, "dialect": found.name})
    return replace(found, known="probed" if label else "no label to probe with")


def _label(endpoint: Endpoint, ask: Ask) -> str:
    """A label of the graph to look for, in a preferred language if there is one; empty if there is none."""
    predicates = " ".join(map(n3, endpoint.vocabulary.labels))
    languages = ", ".join(map(quoted, endpoint.vocabulary.languages))
    for only in (f" && LANG(?label) IN ({languages})", ""):
        rows = ask(
            f"SELECT ?label WHERE {{ VALUES ?p {{ {predicates} }} ?v ?p ?label"
            f" FILTER(isIRI(?v) && STRLEN(STR(?label)) >= {_LETTERS}{only}) }} LIMIT {_LABELS}",
            "",
        ).rows
        if labels := [str(label) for (label,) in rows if label is not None and _words(str(label))]:
            return max(labels, key=lambda label: (len(_words(label)), -len(label), label))
    return ""


def _words(label: str) -> list[str]:
    """Some words that any index should have: short ones may be left out of it."""
    return [word for word in spelled(label) if len(word) >= _LETTERS][:_WORDS]


def _likely(endpoint: Endpoint) -> Iterator[Dialect]:
    """The dialects to try, those first that URL or server hint at."""
    seen = f"{endpoint.identity} {endpoint.server}".lower()
    hinted = [one for one in DIALECTS.values() if any(hint in seen for hint in one.hints)]
    tried = dict.fromkeys(one.name for one in (*hinted, *(one for one in DIALECTS.values() if one.blind)))
    return (DIALECTS[name] for name in tried if name != "generic" and DIALECTS[name].whole)


def _finds(dialect: Dialect, label: str, endpoint: Endpoint, ask: Ask) -> bool:
    """Whether a label with these words comes back."""
    words = _words(label)
    if not words:
        return False
    try:
        if dialect.pattern:
            query = dialect.search_query(words, _HITS, "all words", endpoint.vocabulary) or ""
            labels = [str(found) for _, found in ask(query, dialect.magic).rows]
        else:
            rows, _ = wikibase.find(dialect.names["api"], label, _HITS, endpoint.vocabulary, endpoint.limits)
            labels = [found for _, found in rows]
    except GraphTimeoutError as error:
        what = f"{error.message} (asked for a label in the dialect {dialect.name})"
        raise GraphTimeoutError(what, hint='name the dialect: dialect="generic", for one') from error
    except GraphError:
        endpoint.ask("ASK { ?s ?p ?o }")  # is it the dialect that fails, or the endpoint?
        return False
    wanted = set(normal(" ".join(words)).split())
    return any(wanted <= set(normal(found).split()) for found in labels)


def _remembered(file: Path) -> Dialect | None:
    try:
        if time.time() - file.stat().st_mtime < REMEMBERED_S:
            found = DIALECTS[json.loads(file.read_bytes())["dialect"]]
            return replace(found, known=f"remembered in {file}") if found.whole else None
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        pass  # not there, or damaged: it can be made again
    return None


def _remember(file: Path, data: dict[str, str]) -> None:
    try:
        disk.replace(file, [json.dumps(data)])
    except OSError as error:
        _log.warning("%s cannot be written (%s); the endpoint will be probed again", file, error)
