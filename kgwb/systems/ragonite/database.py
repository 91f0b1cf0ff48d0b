"""The database of a graph: the induced tables, and the passages, in SQLite."""

from __future__ import annotations

import json
import math
import re
import sqlite3
import threading
import time
import weakref
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from decimal import Context, Decimal
from itertools import chain
from typing import Any, NamedTuple

from rdflib import XSD, Literal, URIRef

from kgwb.build import (
    EmbeddingIndex,
    Embeddings,
    Term,
    from_data,
    normalize,
    normalized_words,
    term_from_data,
    to_data,
)
from kgwb.systems.ragonite.induction import FORBIDDEN_TABLE_PREFIXES
from kgwb.systems.ragonite.records import (
    MAX_CELL_CHARS,
    MAX_VALUE_CHARS,
    Column,
    Meaning,
    MeaningKind,
    Schema,
    Source,
    Table,
)
from kgwb.systems.ragonite.settings import RagoniteSettings

CONTEXT = Context(prec=60, traps=[])
"""The sums of any numbers in a graph are exact with so many digits. No computation raises an error."""
INTEGER_LIMIT = 2**63
"""SQLite has no integers from here on."""
NUMBER_AT_START = re.compile(r"\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)")
INTEGER = re.compile(r"\s*[-+]?\d{1,18}\s*")
Cell = float | str | bytes | None
"""A value in SQLite."""


class DecimalSum:
    """The sum of a group or of a window, as SQLite's sum(): NULL if there is no number.

    It is computed with the decimal numbers of the graph. SQLite adds numbers in binary, so that two
    averages which are level in the graph may come out as 0.962 and 0.9620000000000001. A comparison
    in a query then loses one of them.
    """

    def __init__(self) -> None:
        self._total = Decimal(0)
        self._count = 0
        self._fractions = 0
        """The values that are no integers. Without any, the result is an integer."""

    def step(self, cell: Cell, sign: int = 1) -> None:
        """Add a value, unless it is NULL; take it out with ``sign`` -1."""
        if cell is None:
            return
        number = parse_number(cell)
        # As it is written: 0.1, and not 0.1000000000000000055.
        signed = CONTEXT.multiply(Decimal(repr(number)), Decimal(sign))
        self._total = CONTEXT.add(self._total, signed)
        self._count += sign
        if isinstance(number, float):
            self._fractions += sign

    def inverse(self, cell: Cell) -> None:
        """Take out a value that left the window."""
        self.step(cell, -1)

    def value(self) -> float | None:
        """Return the present result."""
        if not self._count:
            return None
        if not self._fractions and abs(self._total) < INTEGER_LIMIT:
            return int(self._total)
        return float(self._total)

    def finalize(self) -> float | None:
        """Return the result of a whole group."""
        return self.value()


class DecimalAverage(DecimalSum):
    """The average as SQLite's avg(): NULL if there is no number."""

    def value(self) -> float | None:
        """Return the present result."""
        if not self._count:
            return None
        return float(CONTEXT.divide(self._total, Decimal(self._count)))


def parse_number(cell: float | str | bytes) -> float:
    """Return a value as the number for which SQLite's sum() takes it: "125 kW" is 125.0, other texts are 0.0."""
    if isinstance(cell, int | float):
        return cell
    if isinstance(cell, str) and INTEGER.fullmatch(cell):
        return int(cell)
    if isinstance(cell, bytes):
        cell = cell.decode("utf-8", "replace")
    match = NUMBER_AT_START.match(cell)
    if match:
        return float(match[1])
    return 0.0


def use_decimal_sums(connection: sqlite3.Connection) -> None:
    """Replace the functions sum and avg of a connection, also as window functions."""
    connection.create_window_function("sum", 1, DecimalSum)
    connection.create_window_function("avg", 1, DecimalAverage)


SHOWN_DIGITS = 15
"""Digits of a fraction that is shown. Later ones come from computing with binary numbers."""
STORED_SQL = (
    'SELECT DISTINCT "{column}" FROM "{table}" WHERE "{column}" IN (SELECT value FROM json_each(?))'
)
"""Selects those of some values that a column has."""
TERMS_BY_ID_SQL = "SELECT id, name, term FROM _terms WHERE id IN (SELECT value FROM json_each(?))"
TERMS_BY_NAME_SQL = "SELECT id, term FROM _terms WHERE home = ? AND name = ?"
TRIPLES_SQL = """
SELECT subject, s.name, s.term, value, cell, low FROM _triples JOIN _terms s ON s.id = subject
WHERE place = ? AND (cell = ? OR low = ?)
"""
"""Selects the triples in a column that show a value, as a text or as a number."""
TRIPLES_OF_SUBJECTS_SQL = f"{TRIPLES_SQL} AND subject IN (SELECT value FROM json_each(?))"


@dataclass(frozen=True, slots=True)
class Place:
    """A column of an induced table that a query reads."""

    table: Table
    column: Column
    stored: frozenset[Cell]
    """Those of the values in the result that it has."""

    @property
    def id_table(self) -> str:
        """The table whose ids it holds; empty if it holds names or other values."""
        if self.column.is_primary_key:
            return self.table.name
        return self.column.references

    @property
    def is_name(self) -> bool:
        """Whether it holds the display names of the things in its table."""
        is_second = self.is_of_class_table and self.column == self.table.columns[1]
        return is_second and self.column.predicate is None

    @property
    def is_value(self) -> bool:
        """Whether it holds neither ids nor names."""
        return not self.id_table and not self.is_name

    @property
    def is_of_class_table(self) -> bool:
        """Whether its table has a row for each thing, and not for each value of a predicate."""
        return not self.table.columns[0].references


Row = Sequence[tuple[Cell, Place]]
"""The cells of a row, each as often as there are columns that it may come from."""


class StoredTriple(NamedTuple):
    """A triple in a column: its subject with id and name, and its object."""

    subject_id: str
    subject_name: str
    subject: Term
    object: Term


class CellReader:
    """Finds what the cells of one result stand for.

    SQLite does not tell which column a value comes from. So a column of a result is taken for one
    that the query reads, that has all of its values, and of several for those of the same name.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        schema: Schema,
        columns_read: Iterable[str],
        max_chars: int,
    ) -> None:
        """Prepare to read a result; nothing is queried yet.

        ``columns_read`` are the columns that the query reads, as "table.column". A cell is shown
        with at most ``max_chars`` characters.
        """
        self._max_chars = max_chars
        self.thing_ids: set[str] = set()
        """The ids of the things that the rows are certainly about."""
        self._connection = connection
        self._columns_read: list[tuple[Table, Column]] = []
        names = set(columns_read)
        for table in schema.tables:
            for column in table.columns:
                if f"{table.name}.{column.name}" in names:
                    self._columns_read.append((table, column))
        self._triples: dict[tuple[str, Cell], list[StoredTriple]] = {}
        """The triples of all subjects that show a value, by column and value."""

    @property
    def places_read(self) -> list[str]:
        """The columns that the query reads, as "table.column", and those of ranges that it reads.

        The ends of a range have columns of their own, without triples.
        """
        places = []
        for table, column in self._columns_read:
            place = f"{table.name}.{column.name}"
            places.append(place)
            has_triples = self._fetch("SELECT 1 FROM _triples WHERE place = ? LIMIT 1", place)
            for other in table.columns:
                is_same = column.predicate is not None and other.predicate == column.predicate
                if is_same and not has_triples:
                    places.append(f"{table.name}.{other.name}")
        return list(dict.fromkeys(places))

    def read(self, columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> tuple[Meaning, ...]:
        """Return what the texts in the rows stand for, each meaning once, and set ``thing_ids``.

        Rows are read in order. A cell that no column explains, such as a sum, and an empty cell
        have no meaning.
        """
        places = self._find_places(rows)
        origins: list[tuple[int, Place]] = []
        for position, name in enumerate(columns):
            cells = [row[position] for row in rows]
            for place in _choose_origins(name, cells, places):
                origins.append((position, place))
        meanings: dict[Meaning, None] = {}
        for row in rows:
            found = self._read_row([(row[position], place) for position, place in origins])
            meanings.update(dict.fromkeys(found))
        return tuple(meanings)

    def _find_places(self, rows: Sequence[Sequence[Cell]]) -> list[Place]:
        """Return the columns that the query reads and that have values of its result, in the order of reading.

        The parts of a cell between commas count as values too.
        """
        wanted: set[Cell] = set()
        for cell in chain.from_iterable(rows):
            wanted.update(_parts_of(cell))
        places = []
        for table, column in self._columns_read:
            query = STORED_SQL.format(table=table.name, column=column.name)
            values = frozenset(value for (value,) in self._fetch(query, _to_json(wanted)))
            if values:
                places.append(Place(table, column, values))
        return places

    def _read_row(self, row: Row) -> list[Meaning]:
        """Return the meanings of the cells of a row: those of ids first, then names and values.

        The ids in the row say which things its names and values belong to. Meanings may be
        repeated. ``thing_ids`` is added to.
        """
        ids_in_row: set[str] = set()
        for cell, place in row:
            if place.id_table:
                ids_in_row.update(_ids_in(cell, place))
        meanings = self._read_ids(ids_in_row)
        for cell, place in row:
            if place.id_table or cell not in place.stored:
                continue
            if place.is_name:
                meanings += self._read_name(cell, place, ids_in_row, row)
            else:
                meanings += self._read_value(cell, place, ids_in_row)
        return meanings

    def _read_ids(self, ids: Set[str]) -> list[Meaning]:
        """Return the meanings of the ids of things in a row, and add the ids to ``thing_ids``."""
        self.thing_ids |= ids
        rows = self._fetch(TERMS_BY_ID_SQL, _to_json(ids))
        return [Meaning(self._to_text(id_), term_from_json(term), "id") for id_, _, term in rows]

    def _read_name(self, cell: Cell, place: Place, ids_in_row: Set[str], row: Row) -> list[Meaning]:
        """Return a meaning for each thing of a table that a name may stand for.

        Of several things with the name, these are the ones whose id is in the row, else those that
        have the other values in the row. The meaning is certain if one thing is left, which is then
        added to ``thing_ids``. Empty if the table has no such name.
        """
        terms = dict(self._fetch(TERMS_BY_NAME_SQL, place.table.name, cell))
        candidates = terms.keys() & ids_in_row or set(terms)
        for value, other in row:
            is_same_table = other.table.name == place.table.name
            is_value = is_same_table and other.is_value and value in other.stored
            if len(candidates) > 1 and is_value:
                triples = self._find_triples(value, other, candidates)
                candidates = {triple.subject_id for triple in triples} or candidates
        is_certain = len(candidates) == 1
        if is_certain:
            self.thing_ids |= candidates
        text = self._to_text(cell)
        named = [term_from_json(terms[id_]) for id_ in sorted(candidates)]
        return [Meaning(text, term, "name", is_certain) for term in named]

    def _read_value(self, cell: Cell, place: Place, ids_in_row: Set[str]) -> list[Meaning]:
        """Return a meaning for each term that a value may be, of the things in the row if it has any of them.

        A text that is the name of its subject stands for the subject. A value that is an IRI or a
        blank node is shown by its id. The meaning is certain if there is only one term. If the row
        does not say which thing has the value, and only one has it, that is added to ``thing_ids``.
        """
        triples = self._find_triples(cell, place, ids_in_row)
        if not triples:
            triples = self._find_triples(cell, place)
            subject_ids = {triple.subject_id for triple in triples}
            if len(subject_ids) == 1:
                self.thing_ids |= subject_ids
        found: dict[tuple[Term, MeaningKind], None] = {}
        for triple in triples:
            if not isinstance(triple.object, Literal):
                found[triple.object, "id"] = None
            elif is_name_of(triple.object, triple.subject_name):
                found[triple.subject, "name"] = None
            else:
                found[triple.object, "value"] = None
        text = self._to_text(cell)
        return [Meaning(text, term, kind, len(found) == 1) for term, kind in found]

    def _find_triples(
        self, cell: Cell, place: Place, subject_ids: Set[str] | None = None
    ) -> list[StoredTriple]:
        """Return the triples in a column that show a value, of some subjects (by id) or of all.

        Results for all subjects are kept. Columns with the ends of ranges have no triples: such a
        number is no value of the graph.
        """
        name = f"{place.table.name}.{place.column.name}"
        if subject_ids is not None:
            ids = _to_json(subject_ids)
            return _to_triples(self._fetch(TRIPLES_OF_SUBJECTS_SQL, name, cell, cell, ids), cell)
        if (name, cell) not in self._triples:
            rows = self._fetch(TRIPLES_SQL, name, cell, cell)
            self._triples[name, cell] = _to_triples(rows, cell)
        return self._triples[name, cell]

    def _to_text(self, cell: Cell) -> str:
        """Return a cell as a model is shown it, on one line."""
        return " ".join(format_cell(cell, self._max_chars).split())

    def _fetch(self, sql: str, *parameters: Cell) -> list[Any]:
        return self._connection.execute(sql, parameters).fetchall()


def _to_triples(rows: Iterable[Sequence[Any]], cell: Cell) -> list[StoredTriple]:
    """Return the rows of TRIPLES_SQL that show exactly this value, as triples.

    Its type counts: 5 is not "5", which SQLite takes for equal.
    """
    triples = []
    for subject_id, name, subject, value, *cells in rows:
        if cell in cells:
            subject_term = term_from_json(subject)
            triples.append(StoredTriple(subject_id, name, subject_term, term_from_json(value)))
    return triples


def is_name_of(literal: Literal, name: str) -> bool:
    """Return whether a literal is the display name of its subject: the same text, and no number."""
    is_text = literal.datatype in (None, XSD.string)
    return is_text and str(literal).strip() == name


def _choose_origins(name: str, cells: Sequence[Cell], places: Sequence[Place]) -> list[Place]:
    """Return the columns that a column of a result may come from, by its values and its name.

    They have all of its values; of several, those of the same name. If none has all values, they
    are those that have any, as in a UNION. Empty cells do not count. Empty if no column has any.
    """
    values = [cell for cell in cells if cell is not None]
    complete = []
    for place in places:
        if all(_has(place, cell) for cell in values):
            complete.append(place)
    if not complete:
        return [place for place in places if any(_has(place, cell) for cell in values)]
    same_name = [place for place in complete if place.column.name == name.lower()]
    return same_name or complete


def _has(place: Place, cell: Cell) -> bool:
    """Return whether a column has a value, or, if it holds ids, all ids in a list of them."""
    return cell in place.stored or bool(place.id_table and _ids_in(cell, place))


def _ids_in(cell: Cell, place: Place) -> list[str]:
    """Return the ids in a cell: the cell itself, or the parts of a list that group_concat made.

    Empty if the cell is no text, or a part is not a value of the column.
    """
    if not isinstance(cell, str):
        return []
    if cell in place.stored:
        return [cell]
    parts = cell.split(",")
    if place.stored.issuperset(parts):
        return parts
    return []


def _parts_of(cell: Cell) -> list[Cell]:
    """Return a cell and, if it is a text, its parts between commas.

    Empty for what JSON cannot hold: None, bytes, NaN and infinity.
    """
    if isinstance(cell, str):
        return [cell, *cell.split(",")]
    if isinstance(cell, int | float) and math.isfinite(cell):
        return [cell]
    return []


def _to_json(values: Iterable[Cell]) -> str:
    return json.dumps(list(values))


def format_cell(cell: Cell, max_chars: int) -> str:
    """Return a cell as a text of at most so many characters; NULL is empty.

    A fraction has SHOWN_DIGITS digits: 0.1 + 0.2 is 0.3, and not 0.30000000000000004.
    """
    if cell is None:
        return ""
    if isinstance(cell, float):
        cell = float(f"{cell:.{SHOWN_DIGITS}g}")
    return str(cell)[:max_chars]


def term_from_json(text: str) -> Term:
    """Return the term of a JSON text."""
    return term_from_data(json.loads(text))


def meanings_of_rows(
    rows: Iterable[Sequence[Term | None]], names: Mapping[URIRef, str], texts: Mapping[Term, str]
) -> tuple[Meaning, ...]:
    """Return what the texts in the rows of a SPARQL query stand for, each meaning once.

    ``texts`` has the text of each term, and ``names`` the display names of the IRIs, which stand
    for them too. A literal that is the name of an IRI in the same row stands for this IRI; any
    other one for itself.
    """
    meanings: dict[Meaning, None] = {}
    for row in rows:
        terms = [term for term in row if term is not None]
        iris = [term for term in terms if isinstance(term, URIRef)]
        for term in terms:
            text = texts[term]
            found = [Meaning(text, term, "id")]
            if isinstance(term, Literal):
                found = []
                for iri in iris:
                    if is_name_of(term, names[iri]):
                        found.append(Meaning(text, iri, "name"))
                found = found or [Meaning(text, term, "value")]
            elif isinstance(term, URIRef):
                found.append(Meaning(names[term], term, "name"))
            meanings.update(dict.fromkeys(found))
    return tuple(meanings)


MAX_SOURCE_TRIPLES = 300
"""Triples of the support of one source."""
RRF_CONSTANT = 60
"""The constant of reciprocal rank fusion (Cormack et al., SIGIR 2009)."""
MAX_RANKS = 100
"""Passages of each of the two rankings that are fused."""
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
        # Python 3.13 and later warn of a connection that is not closed
        weakref.finalize(self, connection.close).atexit = False
        self._lock = threading.Lock()
        self.schema = read_schema(connection)
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
            max_chars = MAX_VALUE_CHARS if settings.whole_values else MAX_CELL_CHARS
            reader = CellReader(self._connection, self.schema, authorizer.columns_read, max_chars)
            read = authorizer.tables_read
            source = Source(
                "sql",
                query,
                columns=columns,
                rows=tuple(_format_row(row, max_chars) for row in kept_rows),
                whole=settings.whole_values,
                cut=len(rows) > len(kept_rows),
                meanings=reader.read(columns, kept_rows),
                tables=tuple(each for each in self.schema.tables if each.name.lower() in read),
            )
            thing_ids = json.dumps(sorted(reader.thing_ids))
            places = json.dumps(sorted(reader.places_read))
            things = self._fetch_all(TERMS_BY_ID_SQL, (thing_ids,))
            return self._add_support(source, SUPPORT_OF_ROWS_SQL, (thing_ids, places), things)

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
                source = replace(source, whole=settings.whole_values)
                sources.append(self._add_support(source, SUPPORT_OF_PASSAGE_SQL, (number,)))
        return tuple(sources)

    @staticmethod
    def _fuse(nearest: Iterable[tuple[int, float]], by_words: Iterable[int]) -> dict[int, float]:
        """Return the scores of passages in two rankings, by reciprocal rank fusion.

        A passage that is the first of both has the score 1.
        """
        scores: dict[int, float] = defaultdict(float)
        by_meaning = [number for number, _ in nearest]
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


def _format_row(row: Iterable[Any], max_chars: int) -> tuple[str, ...]:
    """Return the cells as texts; see ``format_cell``."""
    return tuple(format_cell(cell, max_chars) for cell in row)


def read_places(connection: sqlite3.Connection) -> Mapping[int, tuple[str, str]]:
    """Return the file and the place of each passage of a document, by the passage's number.

    Empty for a database without documents.
    """
    is_there = "SELECT 1 FROM sqlite_master WHERE name = '_documents'"
    if not connection.execute(is_there).fetchall():
        return {}
    rows = connection.execute("SELECT passage, file, place FROM _documents")
    return {number: (file, place) for number, file, place in rows}


def read_schema(connection: sqlite3.Connection) -> Schema:
    """Return the schema that is stored in a database."""
    [(text,)] = connection.execute("SELECT json FROM _schema").fetchall()
    schema: Schema = from_data(json.loads(text), Schema)
    return schema


def write_schema(connection: sqlite3.Connection, schema: Schema) -> None:
    """Replace the schema that is stored in a database."""
    connection.execute("UPDATE _schema SET json = ?", (json.dumps(to_data(schema)),))


def read_reasons(connection: sqlite3.Connection) -> tuple[tuple[str, int], ...]:
    """Return why triples are in no table, with the number of triples of each reason."""
    # The place of a triple in a table has a dot; any other is the reason why it is in none.
    rows = connection.execute(
        "SELECT place, count(*) FROM _triples WHERE instr(place, '.') = 0 GROUP BY place"
    )
    return tuple(rows)


def insert_passage(connection: sqlite3.Connection, number: int, title: str, text: str) -> None:
    """Write a passage. Title and text are in the index of words in their normal form."""
    connection.execute("INSERT INTO _passages VALUES (?, ?, ?)", (number, title, text))
    words = (number, normalize(title), normalize(text))
    connection.execute("INSERT INTO _words (rowid, title, key) VALUES (?, ?, ?)", words)
