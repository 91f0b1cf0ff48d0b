"""The database of a graph: tables and passages in one SQLite file, kept beside the graph's label index."""

from __future__ import annotations

import hashlib
import json
import secrets
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from rdflib import URIRef

from kgwb import disk
from kgwb.errors import GraphError, GraphUnreachableError, SettingError
from kgwb.kg.base import Graph
from kgwb.kg.embeddings import EmbeddingIndex, Embeddings
from kgwb.kg.queries import parse_count
from kgwb.kg.sparql import is_valid_iri, n3, values_clause
from kgwb.kg.survey import CACHE_LIFETIME_S
from kgwb.kg.text import normalized_words
from kgwb.records import from_data, to_data
from kgwb.systems.ragonite.induction import DatabaseBuilder
from kgwb.systems.ragonite.records import MAX_CELL_CHARS, Schema, Source
from kgwb.systems.ragonite.settings import RagoniteSettings
from kgwb.terms import Term, Triple, term_from_data

DATABASE_VERSION, TRIPLES_PER_QUERY, NAMES_PER_QUERY = 1, 10_000, 500
"""Of the file; triples, and names, asked for at once."""
SECONDS_PER_1000_TRIPLES, MEGABYTES_PER_1000_TRIPLES = 1.5, 1.2
"""What a thousand triples take, about."""
MAX_SOURCE_TRIPLES, RRF_CONSTANT, MAX_RANKS = 300, 60, 100
"""Triples of one source; the constant of reciprocal rank fusion, and the ranks that it looks at."""
MAX_EMBEDDED_CHARS = 160
"""Letters of a passage that are compared by meaning: what a thing is, and its description."""
MAX_VALUE_CHARS = 10_000_000
"""Letters that a value made by a query may have."""
ALLOWED_ACTIONS = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_RECURSIVE, sqlite3.SQLITE_FUNCTION)
SUPPORT_SQL = """
WITH asked AS (SELECT value AS text FROM json_each(?1)), things AS (
  SELECT id FROM _terms WHERE id IN asked
  UNION SELECT max(id) FROM _terms WHERE name IN asked GROUP BY name HAVING count(*) = 1)
SELECT n FROM (SELECT n, place FROM _triples WHERE subject IN things
  UNION SELECT n, place FROM _triples WHERE object IN things) WHERE place IN (SELECT value FROM json_each(?2))
"""
"""The triples in the columns that a query read, of the things whose ids, or only names, are in its rows."""
NamedTerms = tuple[tuple[str, Term], ...]
FORBIDDEN_TABLE_PREFIXES = ("_", "sqlite_", "pragma_")
"""How tables begin that no query may read."""
FORBIDDEN_FUNCTIONS = ("load_extension", "random", "randomblob")


class Database:
    """The induced database of a graph. May be used by several threads at once."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection, self._lock = connection, threading.Lock()
        self.schema = from_data(
            json.loads(self._fetch_all("SELECT json FROM _schema")[0][0]), Schema
        )
        self.passages: list[tuple[str, str]] = self._fetch_all(
            "SELECT title, text FROM _passages ORDER BY n"
        )
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE_CHARS)
        connection.setlimit(sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, MAX_CELL_CHARS)
        connection.text_factory = lambda text: text.decode("utf-8", "replace")

    def _fetch_all(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        return self._connection.execute(sql, values).fetchall()

    def execute_sql(self, query: str, settings: RagoniteSettings) -> Source:
        """The rows of a SELECT, which can do nothing else; why it cannot be run is in the Source."""
        read: set[str] = set()
        until = 0.0

        def allow(action: int, first: str | None, second: str | None, *_: str | None) -> int:
            if (
                action == sqlite3.SQLITE_READ
                and first
                and not first.startswith(FORBIDDEN_TABLE_PREFIXES)
            ):
                read.add(f"{first}.{second}")
                return sqlite3.SQLITE_OK
            return (
                sqlite3.SQLITE_OK
                if action in ALLOWED_ACTIONS and second not in FORBIDDEN_FUNCTIONS
                else sqlite3.SQLITE_DENY
            )

        with self._lock:
            until = time.monotonic() + settings.sql_timeout_s
            self._connection.set_authorizer(allow)
            self._connection.set_progress_handler(lambda: time.monotonic() > until, 10_000)
            try:
                cursor = self._connection.execute(query)
                columns = tuple(column for column, *_ in cursor.description or ())
                rows = cursor.fetchmany(settings.rows + 1)
            except (sqlite3.Error, sqlite3.Warning, ValueError) as error:
                late = f" after {settings.sql_timeout_s:g} s" if time.monotonic() > until else ""
                return Source("sql", query, error=f"{error}{late}")
            finally:
                self._connection.set_authorizer(None)
                self._connection.set_progress_handler(None, 0)
            if not columns:
                return Source("sql", query, error="it is no SELECT")
            cut, rows = len(rows) > settings.rows, rows[: settings.rows]
            texts = {cell for row in rows for cell in row if isinstance(cell, str)}
            parts = json.dumps(
                sorted({part for text in texts for part in (text, *text.split(","))})
            )
            triples, terms = self._find_support(SUPPORT_SQL, (parts, json.dumps(sorted(read))))
        shown = tuple(
            tuple("" if cell is None else str(cell)[:MAX_CELL_CHARS] for cell in row)
            for row in rows
        )
        return Source("sql", query, "", columns, shown, cut, triples=triples, terms=terms)

    def search_passages(
        self, sentence: str, embeddings: Embeddings, limit: int
    ) -> tuple[Source, ...]:
        """The passages nearest to a sentence, by embeddings and words, fused. Raises EmbeddingError."""
        asked = " OR ".join(f'"{word}"' for word in normalized_words(sentence))
        near = [place for place, _ in self.find_nearest_passages(sentence, embeddings)]
        with self._lock:
            matching = "SELECT rowid FROM _words WHERE _words MATCH ? ORDER BY bm25(_words, 4), rowid LIMIT ?"
            holding = (
                [place for (place,) in self._fetch_all(matching, (asked, MAX_RANKS))]
                if asked
                else []
            )
            scores: dict[int, float] = {}
            for ranking in (near, holding):
                for rank, place in enumerate(ranking):
                    scores[place] = scores.get(place, 0.0) + RRF_CONSTANT / 2 / (
                        RRF_CONSTANT + rank
                    )
            best = sorted(scores, key=lambda place: (-scores[place], place))[:limit]
            which = "SELECT triple FROM _facts WHERE passage = ?"
            standing = {n: self._find_support(which, (n,)) for n in best}
        return tuple(
            Source(
                "passages",
                *self.passages[n],
                score=round(scores[n], 4),
                triples=triples,
                terms=terms,
            )
            for n, (triples, terms) in standing.items()
        )

    def find_nearest_passages(
        self, sentence: str, embeddings: Embeddings
    ) -> tuple[tuple[int, float], ...]:
        """Number and cosine of the passages nearest in meaning, whose vectors the embeddings keep."""
        return EmbeddingIndex(
            [text[:MAX_EMBEDDED_CHARS] for _, text in self.passages], embeddings
        ).nearest(sentence, MAX_RANKS)

    def _find_support(
        self, triples_sql: str, parameters: Sequence[Any]
    ) -> tuple[tuple[Triple, ...], NamedTerms]:
        """The triples of some numbers, and the ids and names of their ends."""
        rows = self._fetch_all(
            "SELECT s.term, predicate, value, s.id, s.name, o.id, o.name, o.term FROM _triples"
            " JOIN _terms s ON s.id = subject LEFT JOIN _terms o ON o.id = object"
            f" WHERE n IN ({triples_sql}) ORDER BY n LIMIT {MAX_SOURCE_TRIPLES}",
            parameters,
        )
        triples = tuple((_term_from_json(s), URIRef(p), _term_from_json(o)) for s, p, o, *_ in rows)
        names = {(s[3], s[4], s[0]) for s in rows} | {s[5:] for s in rows if s[5]}
        pairs = [
            (known[place], known[2]) for place in (0, 1) for known in sorted(names)
        ]  # ids first
        return triples, tuple((text, _term_from_json(term)) for text, term in pairs)


def _term_from_json(data: str) -> Term:
    return term_from_data(json.loads(data))


# --- making and keeping


def open_database(kg: Graph, settings: RagoniteSettings, embeddings: Embeddings) -> Database:
    """The database of a graph, kept in the cache folder. Raises GraphError for a graph that is too large."""
    asked = f"{DATABASE_VERSION} {kg.identity} {kg.vocabulary!r} {settings.part} {settings.reverse_facts}"
    asked += f" {kg.muted!r}" if kg.muted else ""
    digest = hashlib.sha256(asked.encode()).hexdigest()[:32]
    path = disk.cache_dir() / f"ragonite-{digest}.sqlite"
    with _build_locks.setdefault(
        path, threading.Lock()
    ):  # many questions may be asked of it at once
        written, known = _open_databases.get(path, (0.0, None))
        if known is not None and not (kg.remote and time.time() - written > CACHE_LIFETIME_S):
            return known
        with suppress(OSError, sqlite3.Error, ValueError):
            written = path.stat().st_mtime
            if not kg.remote or time.time() - written < CACHE_LIFETIME_S:
                uri = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
                _open_databases[path] = (
                    written,
                    Database(sqlite3.connect(uri, uri=True, check_same_thread=False)),
                )
                return _open_databases[path][1]
        connection = sqlite3.connect(":memory:", check_same_thread=False)
        triples = list(_read_triples(kg, settings))
        iris = sorted({end for triple in triples for end in triple if isinstance(end, URIRef)})
        parts = (
            kg.names(iris[start : start + NAMES_PER_QUERY])
            for start in range(0, len(iris), NAMES_PER_QUERY)
        )
        names: dict[Term, str] = {iri: name for part in parts for iri, name in part.items()}
        with connection:
            induced = DatabaseBuilder(triples, names, kg.vocabulary, connection)
            passages = induced.write_passages(reverse_facts=settings.reverse_facts)
            left = "SELECT place, count(*) FROM _triples WHERE instr(place, '.') = 0 GROUP BY place"
            schema = Schema(induced.tables, len(triples), passages, tuple(connection.execute(left)))
            connection.execute("CREATE TABLE _schema (json TEXT)")
            connection.execute("INSERT INTO _schema VALUES (?)", (json.dumps(to_data(schema)),))
        known = Database(connection)
        known.find_nearest_passages("", embeddings)  # makes the vectors, which are kept
        draft = path.with_name(f".kgwb-{secrets.token_hex(8)}.part")
        with suppress(OSError, sqlite3.Error):  # where it cannot be written, it stays in memory
            path.parent.mkdir(parents=True, exist_ok=True)
            connection.execute("VACUUM INTO ?", (str(draft),))
            draft.replace(path)
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        _open_databases[path] = time.time(), known
        return known


_build_locks: dict[Path, threading.Lock] = {}
"""By file, so that one thread makes it and the others wait."""
_open_databases: dict[Path, tuple[float, Database]] = {}
"""Databases that this process uses, with when they were made."""


def _read_triples(kg: Graph, settings: RagoniteSettings) -> Iterator[Triple]:
    """The triples of the graph, or of the instances of some classes with their blank nodes.

    Raises GraphError if there are too many, or none.
    """
    types = "|".join(map(n3, kg.vocabulary.types))
    pattern, classes = "?s ?p ?o", [URIRef(iri.strip("<>")) for iri in settings.part.split()]
    if wrong := [iri for iri in classes if not is_valid_iri(iri)]:
        raise SettingError(f"part names {wrong[0]!r}, which is no IRI", hint="give IRIs of classes")
    if classes:
        of = values_clause("?c", classes)
        node = f"{of} ?v ({types}) ?c . ?v ?leads ?s FILTER(isBlank(?s))"
        pattern = f"{{ {{ {of} ?s ({types}) ?c }} UNION {{ {node} }} }} ?s ?p ?o"
    try:
        [(number,)] = kg.select(f"SELECT (COUNT(*) AS ?n) WHERE {{ {pattern} }}").rows
        triples, why = parse_count(number), ""
    except GraphUnreachableError:
        raise
    except (GraphError, ValueError) as error:
        triples, why = 0, f"its triples cannot be counted: {error}"
    if triples > settings.max_triples:
        minutes = triples * SECONDS_PER_1000_TRIPLES / 60_000
        megabytes = triples * MEGABYTES_PER_1000_TRIPLES / 1000
        takes = f"{minutes:,.0f} minutes and {megabytes:,.0f} MB"
        why = f"{triples:,} triples would take about {takes}; at most max_triples, {settings.max_triples:,}"
        why += ", are taken"
    elif not triples:
        why = why or "there is no triple in it"
    if why:
        hint = "name a part by the IRIs of classes, --set part=http://example.org/Film, or raise max_triples"
        raise GraphError(f"{kg.source} cannot be made a database: {why}", hint=hint)
    order = " ORDER BY ?s ?p ?o" if kg.remote else ""  # a file's order stays the same
    inner = f"SELECT DISTINCT ?s ?p ?o WHERE {{ {pattern} }}{order}"
    start = 0
    while rows := kg.select(
        f"SELECT ?s ?p ?o WHERE {{ {{ {inner} }} }} LIMIT {TRIPLES_PER_QUERY} OFFSET {start}"
    ).rows:
        start += len(rows)
        yield from (
            (s, URIRef(p), o)
            for s, p, o in rows
            if s is not None and p is not None and o is not None
        )
