"""The labels of a local graph: which there are, and their index, SQLite FTS5 over labels in normal form."""

from __future__ import annotations

import json
import sqlite3
import threading
import time
import weakref
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from difflib import SequenceMatcher
from functools import partial
from math import log
from pathlib import Path
from typing import Any, NamedTuple

from pyoxigraph import Literal, NamedNode, Store
from rdflib import URIRef
from rdflib.namespace import RDF

from kgwb.errors import GraphFileError
from kgwb.kg.base import (
    SCHEMA_CLASSES,
    SCHEMA_NAMESPACES,
    WIKIBASE_NAMESPACE,
    SearchResult,
    Vocabulary,
)
from kgwb.kg.sparql import n3, values_clause
from kgwb.kg.text import MAX_SEARCH_CHARS, language_rank, normalize, normalized_words, rank_labels
from kgwb.terms import name_from_iri

MIN_SPELLING_SIMILARITY = 0.75
"""How like a word must be to stand in for one that no label has (difflib's ratio)."""
SPELLING_SEARCH_TIMEOUT_S = 0.2
"""Seconds spent at most on looking for close spellings of one word."""
_MAX_MATCHES_PER_WORD = 20_000
_TABLES_SQL = """
CREATE TEMP TABLE unsorted (length, key, text, iri, shown);
CREATE TABLE labels (id INTEGER PRIMARY KEY, length INTEGER, key TEXT, text TEXT, iri TEXT, shown INTEGER);
CREATE VIRTUAL TABLE words USING fts5(key, content='', detail=none, columnsize=0, tokenize=ascii);
CREATE VIRTUAL TABLE terms USING fts5vocab(words, row);
"""
# Reading ``terms`` counts every label of each word, so its words are kept once more, in ``vocabulary``.
# The keys are in normal form already: cutting at ASCII blanks (tokenize=ascii) finds the words of text.py.
_INDEXES_SQL = """
CREATE INDEX by_iri ON labels (iri) WHERE shown;
CREATE INDEX by_key ON labels (key) WHERE length;
CREATE TABLE vocabulary (word TEXT PRIMARY KEY) WITHOUT ROWID;
INSERT INTO vocabulary SELECT term FROM terms;
"""
_COLUMNS = "length, key, text, iri, shown"
_CACHE_SIZE_SQL = "PRAGMA cache_size=-65536;"  # in KiB: what building takes of memory, however many labels there are
_CLAIM_PREDICATES = ("directClaim", "claim", "statementProperty", "qualifier")
_LENGTH_CONDITION = "AND length(word) BETWEEN ? AND ?"
_MATCH_SQL = "SELECT rowid FROM words WHERE words MATCH ? LIMIT ?"
_SELECT_LABELS_SQL = "SELECT iri, text, key FROM labels WHERE "
_GIVEN_VALUES_SQL = "(SELECT value FROM json_each(?))"


class Label(NamedTuple):
    """One label of an IRI."""

    iri: str
    text: str
    is_display_name: bool
    """Whether it is the name to show; true of one label of each IRI."""
    is_searchable: bool
    """Whether the IRI can be found by it."""


class LabelIndex:
    """Finds vertices by their labels, and names for IRIs. May be used by several threads at once.

    Made by ``build``, reopened from its file by ``open``; both raise sqlite3.Error if it cannot be used.
    """

    def __init__(self, connection: sqlite3.Connection, path: Path | None = None) -> None:
        self._connection, self._path = connection, path
        self._lock = (
            threading.Lock()
        )  # always released: an interrupt can hit any other way of lending
        self._spellings: dict[str, dict[str, float]] = {}
        self.close = weakref.finalize(self, connection.close)

    @classmethod
    def open(cls, path: Path) -> LabelIndex:
        """The index in a file."""
        uri = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
        connection = sqlite3.connect(uri, uri=True, check_same_thread=False)
        connection.execute("SELECT id FROM labels LIMIT 1").fetchall()
        return cls(connection, path)

    @classmethod
    def build(cls, labels: Iterable[Label], path: Path | None = None) -> LabelIndex:
        """An index in a file, or in memory."""
        connection = sqlite3.connect(
            path or ":memory:", check_same_thread=False, isolation_level=None
        )
        # In memory no disk is needed, not even for what is sorted: it may be full
        sorting = "" if path else "PRAGMA temp_store=MEMORY;"
        connection.executescript(
            f"PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; {sorting} {_CACHE_SIZE_SQL} {_TABLES_SQL}"
        )
        keys = ((label, normalize(label.text) if label.is_searchable else "") for label in labels)
        rows = (
            (len(key), key, label.text, label.iri, label.is_display_name) for label, key in keys
        )
        connection.execute("BEGIN")
        connection.executemany("INSERT INTO unsorted VALUES (?, ?, ?, ?, ?)", rows)
        # Short labels first: where rows are cut, those left out are the ones that say most besides.
        connection.execute(
            f"INSERT INTO labels ({_COLUMNS}) SELECT * FROM unsorted ORDER BY {_COLUMNS}"
        )
        connection.execute("DROP TABLE unsorted")
        connection.execute("INSERT INTO words (rowid, key) SELECT id, key FROM labels WHERE length")
        connection.execute("COMMIT")
        connection.executescript(_INDEXES_SQL)
        return cls(connection, path)

    def search(self, text: str, limit: int) -> SearchResult:
        """At most ``limit`` vertices by label, best first; a stage is tried if those before find none."""
        key, asked = normalize(text[:MAX_SEARCH_CHARS]), normalized_words(text)
        exact = self._fetch(
            _SELECT_LABELS_SQL + "length AND key = ? ORDER BY iri LIMIT ?", key, limit
        )
        for how, query in (
            ("all words", " ".join(f'"{word}"' for word in asked)),
            ("prefix", " ".join(f'"{word}"*' for word in asked)),
        ):
            rows = (
                self._fetch(f"{_SELECT_LABELS_SQL} id IN ({_MATCH_SQL})", query, 4 * limit)
                if query
                else []
            )
            if rows or exact:
                return SearchResult(tuple(rank_labels(key, exact + rows, limit)), how, query or key)
        known = "SELECT 1 FROM vocabulary WHERE word = ?"
        spellings = {
            word: self._similar_words(word) for word in asked if not self._fetch(known, word)
        }
        near = [list(spellings.get(word, [word])) for word in asked]
        queries = [" OR ".join(f'"{word}"' for word in some) for some in near if some]
        # The labels that the most, and among them the rarest, of the queries match
        count: Counter[int] = Counter()
        weight: dict[int, float] = defaultdict(float)
        for query in queries:
            numbers = [
                number for (number,) in self._fetch(_MATCH_SQL, query, _MAX_MATCHES_PER_WORD)
            ]
            count.update(numbers)
            for number in numbers:
                weight[number] += 1 / log(2 + len(numbers))
        best = sorted(count, key=lambda number: (-count[number], -weight[number], number))[
            : 4 * limit
        ]
        labels = self._fetch(f"{_SELECT_LABELS_SQL} id IN {_GIVEN_VALUES_SQL}", json.dumps(best))
        verbatim = len(spellings) < len(asked)
        how = ("any word" if verbatim else "close spelling") if labels else "nothing"
        return SearchResult(
            tuple(rank_labels(key, labels, limit, spellings)), how, " OR ".join(queries)
        )

    def exact(self, labels: Sequence[str]) -> dict[str, tuple[URIRef, ...]]:
        """For each text that is, in normal form, the whole label of some vertex: those vertices, by IRI."""
        keys = {label: normalize(label) for label in labels}
        bearers: dict[str, set[str]] = {}
        for iri, _, key in self._fetch(
            f"{_SELECT_LABELS_SQL} length AND key IN {_GIVEN_VALUES_SQL}",
            json.dumps([*keys.values()]),
        ):
            bearers.setdefault(key, set()).add(iri)
        return {
            label: tuple(map(URIRef, sorted(bearers[key])))
            for label, key in keys.items()
            if key in bearers
        }

    def names(self, iris: Sequence[URIRef]) -> dict[URIRef, str]:
        """A name to show for each IRI: its preferred label, else its local name as words."""
        names = dict(
            self._fetch(
                f"SELECT iri, text FROM labels WHERE shown AND iri IN {_GIVEN_VALUES_SQL}",
                json.dumps(iris),
            )
        )
        return {iri: names.get(str(iri)) or name_from_iri(iri) for iri in iris}

    def _similar_words(self, word: str) -> dict[str, float]:
        """At most five words of the index that are spelled like this one, the likest first."""
        if word not in self._spellings:
            if len(self._spellings) > 10_000:
                self._spellings.clear()
            until, window = time.monotonic() + SPELLING_SEARCH_TIMEOUT_S, max(1, len(word) // 3)
            values = (word[0], word[0] + "\U0010ffff", len(word) - window, len(word) + window)
            near: list[tuple[str, float]] = []
            for no in ("", "NOT "):  # by far most slips leave the first letter
                sql = f"SELECT word FROM vocabulary WHERE {no}word BETWEEN ? AND ? {_LENGTH_CONDITION}"
                near += self._fetch(sql, *values, read=partial(_filter_similar, word, until))
            self._spellings[word] = dict(sorted(near, key=lambda pair: (-pair[1], pair[0]))[:5])
        return self._spellings[word]

    def _fetch(
        self, sql: str, *values: Any, read: Callable[[sqlite3.Cursor], list[Any]] = list
    ) -> list[Any]:
        try:
            with self._lock:
                return read(self._connection.execute(sql, values))
        except sqlite3.DatabaseError as error:  # the cached file was damaged since it was opened
            what = f"the label index {self._path} cannot be read: {error}"
            raise GraphFileError(
                what, hint="open the graph again: what is damaged is made anew"
            ) from error


def _filter_similar(
    word: str, until: float, terms: Iterable[tuple[str]]
) -> list[tuple[str, float]]:
    """Those of the words that are spelled like this one, with their likeness, as far as the time allows."""
    letters, spellings = set(word), []
    for number, (term,) in enumerate(terms):
        if number % 256 == 0 and time.monotonic() > until:
            break
        if len(letters & set(term)) >= MIN_SPELLING_SIMILARITY * len(letters) - 1:
            matcher = SequenceMatcher(None, word, term)
            if (
                matcher.quick_ratio() >= MIN_SPELLING_SIMILARITY
                and (likeness := matcher.ratio()) >= MIN_SPELLING_SIMILARITY
            ):
                spellings.append((term, likeness))
    return spellings


# --- which names the things of a graph have


def collect_labels(store: Store, vocabulary: Vocabulary) -> list[Label]:
    """The labels of every IRI that has one, or that facts are about: such a vertex is named by its IRI.

    Predicates and classes have names but cannot be searched for, unless facts are about them as about any
    other vertex.
    """
    # The labels of every IRI with their rank: first those in a preferred language, then by predicate
    ranked: dict[str, list[tuple[bool, int, int, str]]] = {}
    with ThreadPoolExecutor(1) as executor:
        asked = executor.submit(
            _find_unlabelled_and_schema, store, vocabulary
        )  # meanwhile, as both mostly wait for Oxigraph
        for order, predicate in enumerate(vocabulary.labels):
            for quad in store.quads_for_pattern(None, NamedNode(predicate), None, None):
                label = quad.object
                if (
                    isinstance(label, Literal)
                    and isinstance(quad.subject, NamedNode)
                    and label.value.strip()
                ):
                    language = language_rank(label.language or "", vocabulary.languages)
                    rank = (
                        language >= len(vocabulary.languages),
                        order,
                        language,
                        label.value.strip(),
                    )
                    ranked.setdefault(quad.subject.value, []).append(rank)
        facts, unlabelled, schema = asked.result()
    schema &= ranked.keys()
    if schema:
        listed = values_clause("?v", map(URIRef, sorted(schema)))
        schema -= _select_iris(store, *(f"{listed} {fact}" for fact in facts))
    labels: list[Label] = []
    for iri, ranks in ranked.items():
        texts = dict.fromkeys(rank[-1] for rank in sorted(ranks))
        labels += [Label(iri, text, not n, iri not in schema) for n, text in enumerate(texts)]
    labels += [Label(iri, name_from_iri(iri), True, True) for iri in unlabelled]
    # Wikidata's predicates are named by the property entity they stand for.
    for claim in _CLAIM_PREDICATES:
        for quad in store.quads_for_pattern(
            None, NamedNode(WIKIBASE_NAMESPACE + claim), None, None
        ):
            if isinstance(quad.subject, NamedNode) and isinstance(quad.object, NamedNode):
                entity, claimed = quad.subject.value, quad.object.value
                if entity in ranked and claimed not in ranked and claimed not in unlabelled:
                    labels.append(Label(claimed, min(ranked[entity])[-1], True, False))
    return labels


def _find_unlabelled_and_schema(
    store: Store, vocabulary: Vocabulary
) -> tuple[tuple[str, str], set[str], set[str]]:
    """Patterns of ?v as subject and as object of a fact, IRIs without label in one, and the schema's IRIs."""
    predicates = _select_iris(store, "?s ?v ?o")
    hidden = {str(predicate) for predicate in vocabulary.excluded_predicates}
    noise = [
        iri for iri in sorted(predicates) if iri in hidden or iri.startswith(SCHEMA_NAMESPACES)
    ]
    only = " && ".join(f"!sameTerm(?p, {n3(URIRef(iri))})" for iri in noise) or "true"
    facts = f"?v ?p ?o FILTER({only})", f"?s ?p ?v FILTER({only})"
    # MINUS on distinct terms is far faster than FILTER NOT EXISTS: it compares numbers and reads no text.
    labelled = f"MINUS {{ {values_clause('?l', vocabulary.labels)} ?v ?l ?text }}"
    unlabelled = _select_iris(
        store, *(f"{{ SELECT DISTINCT ?v {{ {fact} }} }} {labelled}" for fact in facts)
    )
    classes = f"{values_clause('?c', SCHEMA_CLASSES)} ?v {n3(RDF.type)} ?c"
    typed = f"{values_clause('?t', vocabulary.types)} ?s ?t ?v", classes
    return facts, unlabelled, predicates | _select_iris(store, *typed)


def _select_iris(store: Store, *patterns: str) -> set[str]:
    """The IRIs that ?v stands for in any of the patterns."""
    iris: set[str] = set()
    for pattern in patterns:
        text = f"SELECT DISTINCT ?v WHERE {{ {pattern} }}"
        rows: Callable[[], Any] = partial(store.query, text, use_default_graph_as_union=True)
        # The result has no name, as a frame may outlive the thread that alone may drop it
        iris.update(term.value for (term,) in rows() if isinstance(term, NamedNode))
    return iris
