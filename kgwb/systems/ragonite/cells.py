"""What the cells of a query's result stand for: terms of the graph, by column and row."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

from rdflib import XSD, Literal, URIRef

from kgwb.build import Term, term_from_data
from kgwb.systems.ragonite.records import (
    MAX_CELL_CHARS,
    Column,
    Meaning,
    MeaningKind,
    Schema,
    Table,
)

SHOWN_DIGITS = 15
"""Digits of a fraction that is shown. Later ones come from computing with binary numbers."""
Cell = Any
"""A value that SQLite returned: a text, a number, or None."""
STORED_SQL = (
    'SELECT DISTINCT "{column}" FROM "{table}" WHERE "{column}" IN (SELECT value FROM json_each(?))'
)
"""Selects those of some values that a column has."""
TERMS_BY_ID_SQL = "SELECT id, term FROM _terms WHERE id IN (SELECT value FROM json_each(?))"
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
        if self.column.name == "id" and self.is_of_class_table and self.column.predicate is None:
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


Row = Sequence[tuple[Cell, Sequence[Place]]]
"""The cells of a row, each with the columns that it may come from."""


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
        self, connection: sqlite3.Connection, schema: Schema, columns_read: Iterable[str]
    ) -> None:
        """Prepare to read a result; nothing is queried yet.

        ``columns_read`` are the columns that the query reads, as "table.column".
        """
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
        origins = []
        for position, name in enumerate(columns):
            cells = [row[position] for row in rows]
            origins.append(_choose_origins(name, cells, places))
        meanings: dict[Meaning, None] = {}
        for row in rows:
            found = self._read_row(list(zip(row, origins, strict=True)))
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

        Each cell is given with the columns that it may come from. The ids in the row say which
        things its names and values belong to. Meanings may be repeated. ``thing_ids`` is added to.
        """
        ids_in_row: set[str] = set()
        for cell, origins in row:
            for place in origins:
                if place.id_table:
                    ids_in_row.update(_ids_in(cell, place))
        meanings = self._read_ids(ids_in_row)
        for cell, origins in row:
            for place in origins:
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
        return [Meaning(_to_text(id_), term_from_json(term), "id") for id_, term in rows]

    def _read_name(self, cell: Cell, place: Place, ids_in_row: Set[str], row: Row) -> list[Meaning]:
        """Return a meaning for each thing of a table that a name may stand for.

        Of several things with the name, these are the ones whose id is in the row, else those that
        have the other values in the row. The meaning is certain if one thing is left, which is then
        added to ``thing_ids``. Empty if the table has no such name.
        """
        terms = dict(self._fetch(TERMS_BY_NAME_SQL, place.table.name, cell))
        candidates = set(terms)
        if len(candidates) > 1:
            candidates = candidates & ids_in_row or candidates
        for value, origins in row:
            for other in origins:
                is_same_table = other.table.name == place.table.name
                is_value = is_same_table and other.is_value and value in other.stored
                if len(candidates) > 1 and is_value:
                    triples = self._find_triples(value, other, candidates)
                    candidates = {triple.subject_id for triple in triples} or candidates
        is_certain = len(candidates) == 1
        if is_certain:
            self.thing_ids |= candidates
        text = _to_text(cell)
        return [
            Meaning(text, term_from_json(terms[id_]), "name", is_certain)
            for id_ in sorted(candidates)
        ]

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
        text = _to_text(cell)
        is_certain = len(found) == 1
        return [Meaning(text, term, kind, is_certain) for term, kind in found]

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
            rows = self._fetch(TRIPLES_OF_SUBJECTS_SQL, name, cell, cell, ids)
            return _to_triples(rows, cell)
        if (name, cell) not in self._triples:
            rows = self._fetch(TRIPLES_SQL, name, cell, cell)
            self._triples[name, cell] = _to_triples(rows, cell)
        return self._triples[name, cell]

    def _fetch(self, sql: str, *parameters: Cell) -> list[Any]:
        return self._connection.execute(sql, parameters).fetchall()


def _to_triples(rows: Iterable[Sequence[Any]], cell: Cell) -> list[StoredTriple]:
    """Return the rows of TRIPLES_SQL that show exactly this value, as triples.

    Its type counts: 5 is not "5", which SQLite takes for equal.
    """
    triples = []
    for subject_id, name, subject, value, *cells in rows:
        if cell in cells:
            triples.append(
                StoredTriple(subject_id, name, term_from_json(subject), term_from_json(value))
            )
    return triples


def is_name_of(literal: Literal, name: str) -> bool:
    """Return whether a literal is the display name of its subject: the same text, and no number."""
    is_text = literal.datatype in (None, XSD.string) or bool(literal.language)
    return is_text and str(literal).strip() == name


def _choose_origins(name: str, cells: Sequence[Cell], places: Sequence[Place]) -> list[Place]:
    """Return the columns that a column of a result may come from, by its values and its name.

    They have all of its values; of several, those of the same name. If none has all values, they
    are those that have any, as in a UNION. Empty cells do not count. Empty if no column has any.
    """
    values = [cell for cell in cells if cell is not None]
    complete = [place for place in places if all(_has(place, cell) for cell in values)]
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
    if all(part in place.stored for part in parts):
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


def _to_text(cell: Cell) -> str:
    """Return a cell as a model is shown it: on one line, with at most MAX_CELL_CHARS characters."""
    return " ".join(format_cell(cell).split())


def format_cell(cell: Cell) -> str:
    """Return a cell as a text of at most MAX_CELL_CHARS characters; NULL is empty.

    A fraction has SHOWN_DIGITS digits: 0.1 + 0.2 is 0.3, and not 0.30000000000000004.
    """
    if cell is None:
        return ""
    if isinstance(cell, float):
        cell = float(f"{cell:.{SHOWN_DIGITS}g}")
    return str(cell)[:MAX_CELL_CHARS]


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
            named = []
            if isinstance(term, Literal):
                named = [iri for iri in iris if is_name_of(term, names.get(iri, ""))]
            if named:
                found = [Meaning(texts[term], iri, "name") for iri in named]
            elif isinstance(term, Literal):
                found = [Meaning(texts[term], term, "value")]
            else:
                found = [Meaning(texts[term], term, "id")]
            if isinstance(term, URIRef) and names.get(term):
                found.append(Meaning(names[term], term, "name"))
            meanings.update(dict.fromkeys(found))
    return tuple(meanings)
