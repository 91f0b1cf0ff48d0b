"""The database of a graph: the induced tables, and the passages, in SQLite."""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from rdflib import URIRef

from kgwb.build import EmbeddingIndex, Embeddings, from_data, normalized_words
from kgwb.systems.ragonite.aggregates import use_decimal_sums
from kgwb.systems.ragonite.cells import CellReader, format_cell, term_from_json
from kgwb.systems.ragonite.documents import read_places
from kgwb.systems.ragonite.identifiers import FORBIDDEN_TABLE_PREFIXES
from kgwb.systems.ragonite.records import MAX_CELL_CHARS, Schema, Source, Table
from kgwb.systems.ragonite.settings import RagoniteSettings

MAX_SOURCE_TRIPLES = 300
"""Triples of the support of one source."""
RRF_CONSTANT = 60
"""The constant of reciprocal rank fusion (Cormack et al., SIGIR 2009)."""
MAX_RANKS = 100
"""Passages of each of the two rankings that are fused."""
MAX_VALUE_CHARS = 10_000_000
"""Characters of a value that a query computes; SQLite's own limit is 1 GB."""
OPERATIONS_PER_TIME_CHECK = 10_000
"""SQLite operations, after each of which the time limit is checked."""
ALLOWED_ACTIONS = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_RECURSIVE, sqlite3.SQLITE_FUNCTION)
FORBIDDEN_FUNCTIONS = ("load_extension", "random", "randomblob")
"""Functions that run other code, or whose result differs in a replay."""
SUPPORT_OF_ROWS_SQL = """
WITH things AS (SELECT value AS id FROM json_each(?1))
SELECT n FROM (SELECT n, place FROM _triples WHERE subject IN things
  UNION SELECT n, place FROM _triples WHERE object IN things) WHERE place IN (SELECT value FROM json_each(?2))
"""
"""Selects the triples in the given columns at the things with the given ids."""
THINGS_SQL = "SELECT id, name, term FROM _terms WHERE id IN (SELECT value FROM json_each(?))"
SUPPORT_OF_PASSAGE_SQL = "SELECT triple FROM _facts WHERE passage = ?"


class ReadAuthorizer:
    """Allows a query to read the induced tables, and nothing else.

    It is called by SQLite while a query is prepared, once for each thing that the query does.
    """

    def __init__(self) -> None:
        self.columns_read: set[str] = set()
        """The columns that the query reads, as "table.column"."""
        self.tables_read: set[str] = set()
        """The names of the tables that the query reads, in lower case."""

    def __call__(self, action: int, first: str | None, second: str | None, *_: str | None) -> int:
        """Return SQLITE_OK or SQLITE_DENY. The arguments depend on the action.

        For SQLITE_READ they are the table and the column, for a function the second is its name.
        """
        if action == sqlite3.SQLITE_READ:
            # SQLite gives the name as the query writes it, and it may write it in capitals.
            if not first or first.lower().startswith(FORBIDDEN_TABLE_PREFIXES):
                return sqlite3.SQLITE_DENY
            self.columns_read.add(f"{first}.{second}")
            self.tables_read.add(first.lower())
            return sqlite3.SQLITE_OK
        if action in ALLOWED_ACTIONS and second not in FORBIDDEN_FUNCTIONS:
            return sqlite3.SQLITE_OK
        return sqlite3.SQLITE_DENY


class Database:
    """The induced database of a graph. It may be used by several threads at once."""

    def __init__(self, connection: sqlite3.Connection, made_at: float) -> None:
        """Read schema and passages, and limit the size of what a query may compute.

        Raises sqlite3.Error or ValueError if the connection is not to an induced database.
        """
        self.made_at = made_at
        """The time when the database was made, in seconds since the epoch."""
        self._connection = connection
        self._lock = threading.Lock()
        [(schema,)] = self._fetch_all("SELECT json FROM _schema")
        self.schema: Schema = from_data(json.loads(schema), Schema)
        self.passages: list[tuple[str, str]] = self._fetch_all(
            "SELECT title, text FROM _passages ORDER BY n"
        )
        """Titles and texts, by the number of the passage."""
        self._windows: dict[str, list[tuple[int, str]]] = {}
        """What is embedded of the passages, by the name of the embeddings."""
        self._places = read_places(connection)
        """File and place of the passages of documents, by the number of the passage."""
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE_CHARS)
        connection.setlimit(sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, MAX_CELL_CHARS)
        use_decimal_sums(connection)
        connection.text_factory = lambda text: text.decode("utf-8", "replace")

    def copy_to(self, connection: sqlite3.Connection) -> None:
        """Copy everything into another, empty database."""
        with self._lock:
            self._connection.backup(connection)

    def _fetch_all(self, sql: str, parameters: Sequence[Any] = ()) -> list[Any]:
        return self._connection.execute(sql, parameters).fetchall()

    def execute_sql(self, query: str, settings: RagoniteSettings) -> Source:
        """Execute a SELECT on the induced tables, and return its rows with their support as a source.

        At most ``settings.rows`` rows are returned; the source says whether rows were cut. If the
        query cannot be run, does anything but read the induced tables, or takes longer than
        ``settings.sql_timeout_s``, the source has the error instead. Other threads wait meanwhile.
        """
        authorizer = ReadAuthorizer()
        with self._lock:
            deadline = time.monotonic() + settings.sql_timeout_s
            self._connection.set_authorizer(authorizer)
            self._connection.set_progress_handler(
                lambda: time.monotonic() > deadline, OPERATIONS_PER_TIME_CHECK
            )
            try:
                cursor = self._connection.execute(query)
                columns = tuple(column[0] for column in cursor.description or ())
                rows = cursor.fetchmany(settings.rows + 1)
            except (sqlite3.Error, sqlite3.Warning, ValueError) as error:
                message = str(error)
                if time.monotonic() > deadline:
                    message += f" after {settings.sql_timeout_s:g} s"
                return Source("sql", query, error=message)
            finally:
                self._connection.set_authorizer(None)
                self._connection.set_progress_handler(None, 0)
            if not columns:
                return Source("sql", query, error="it is no SELECT")
            kept_rows = rows[: settings.rows]
            reader = CellReader(self._connection, self.schema, authorizer.columns_read)
            source = Source(
                "sql",
                query,
                columns=columns,
                rows=tuple(map(_format_row, kept_rows)),
                cut=len(rows) > len(kept_rows),
                meanings=reader.read(columns, kept_rows),
                tables=self._tables_named(authorizer.tables_read),
            )
            thing_ids = json.dumps(sorted(reader.thing_ids))
            places = json.dumps(sorted(reader.places_read))
            things = self._fetch_all(THINGS_SQL, (thing_ids,))
            return self._add_support(source, SUPPORT_OF_ROWS_SQL, (thing_ids, places), things)

    def _tables_named(self, names: set[str]) -> tuple[Table, ...]:
        """Return the induced tables of these names, which are in lower case, the largest first."""
        return tuple(table for table in self.schema.tables if table.name.lower() in names)

    def search_passages(
        self, sentence: str, embeddings: Embeddings, settings: RagoniteSettings
    ) -> tuple[Source, ...]:
        """Return the passages nearest to a sentence, the best first.

        At most ``settings.passages`` are returned. The setting ``passage_ranking`` says how they
        are ranked: by embeddings alone, with the cosine as the score, or also by words. Raises
        EmbeddingError.
        """
        nearest = self.find_nearest_passages(sentence, embeddings)
        with self._lock:
            scores = dict(nearest)
            if settings.passage_ranking == "fused":
                scores = self._fuse(nearest, self._rank_by_words(sentence))
            best = sorted(scores, key=lambda number: (-scores[number], number))
            sources = []
            for number in best[: settings.passages]:
                title, text = self.passages[number]
                file, place = self._places.get(number, ("", ""))
                score = round(scores[number], 4)
                source = Source("passages", title, text, score=score, file=file, place=place)
                sources.append(self._add_support(source, SUPPORT_OF_PASSAGE_SQL, (number,)))
        return tuple(sources)

    @staticmethod
    def _fuse(nearest: Iterable[tuple[int, float]], by_words: Iterable[int]) -> dict[int, float]:
        """Return the scores of passages in two rankings, by reciprocal rank fusion.

        A passage that is the first of both has the score 1.
        """
        by_meaning = [number for number, _ in nearest]
        scores: dict[int, float] = defaultdict(float)
        for ranking in (by_meaning, by_words):
            for rank, number in enumerate(ranking):
                scores[number] += RRF_CONSTANT / 2 / (RRF_CONSTANT + rank)
        return scores

    def find_nearest_passages(
        self, sentence: str, embeddings: Embeddings
    ) -> tuple[tuple[int, float], ...]:
        """Return number and cosine of the MAX_RANKS passages nearest in meaning to a sentence, best first.

        A passage that the model of the embeddings cannot read whole has several vectors, of which
        the nearest counts. The embeddings keep the vectors. Raises EmbeddingError.
        """
        windows = self._windows_of(embeddings)
        texts = [text for _, text in windows]
        cosines: dict[int, float] = {}
        for position, cosine in EmbeddingIndex(texts, embeddings).nearest(sentence, len(texts)):
            passage, _ = windows[position]
            if passage not in cosines:
                cosines[passage] = cosine
            if len(cosines) == MAX_RANKS:
                break
        return tuple(cosines.items())

    def _windows_of(self, embeddings: Embeddings) -> list[tuple[int, str]]:
        """Return the texts that are embedded, each with the number of its passage.

        Together, those of a passage are its text. Raises EmbeddingError.
        """
        if embeddings.name not in self._windows:
            windows = []
            for number, (_, text) in enumerate(self.passages):
                windows += [(number, part) for part in embeddings.split(text)]
            self._windows[embeddings.name] = windows
        return self._windows[embeddings.name]

    def _rank_by_words(self, sentence: str) -> list[int]:
        """Return the numbers of up to MAX_RANKS passages that have a word of a sentence, best by BM25 first.

        A word in the title counts four times. Empty for a sentence without words.
        """
        any_word = " OR ".join(f'"{word}"' for word in normalized_words(sentence))
        if not any_word:
            return []
        rows = self._fetch_all(
            "SELECT rowid FROM _words WHERE _words MATCH ? ORDER BY bm25(_words, 4), rowid LIMIT ?",
            (any_word, MAX_RANKS),
        )
        return [number for (number,) in rows]

    def _add_support(
        self,
        source: Source,
        numbers_sql: str,
        parameters: Sequence[Any],
        things: Iterable[tuple[str, str, str]] = (),
    ) -> Source:
        """Return a copy of a source with its support: triples of the graph, and the terms in them.

        ``numbers_sql`` selects the numbers of the triples. At most MAX_SOURCE_TRIPLES are added.
        The terms, and those of ``things`` (id, name and JSON form), are given first by their ids,
        then by their names.
        """
        rows = self._fetch_all(
            "SELECT s.id, s.name, s.term, predicate, o.id, o.name, value FROM _triples"
            " JOIN _terms s ON s.id = subject LEFT JOIN _terms o ON o.id = object"
            f" WHERE n IN ({numbers_sql}) ORDER BY n LIMIT {MAX_SOURCE_TRIPLES}",
            parameters,
        )
        triples = []
        ends = set(things)
        for subject_id, subject_name, subject, predicate, object_id, object_name, object_ in rows:
            triples.append((term_from_json(subject), URIRef(predicate), term_from_json(object_)))
            ends.add((subject_id, subject_name, subject))
            if object_id:
                ends.add((object_id, object_name, object_))
        ids = []
        names = []
        for id_, name, term in sorted(ends):
            ids.append((id_, term_from_json(term)))
            names.append((name, term_from_json(term)))
        return replace(source, triples=tuple(triples), terms=(*ids, *names))


def _format_row(row: Iterable[Any]) -> tuple[str, ...]:
    """Return the cells as texts; see ``format_cell``."""
    return tuple(format_cell(cell) for cell in row)
