"""Induction: the tables of a graph's triples (RAGonite, section 2.1).

Each class has a table with a row for each instance. A predicate is a column of that table, or a
table of its own if a subject has several values. Links are named by their predicate and stand at
their subject: the published code names them by tables only, so that two predicates between the same
tables overwrite each other. A triple that is in no table is marked with the reason.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from sqlite3 import Connection
from typing import NamedTuple

from rdflib import URIRef

from kgwb.build import Term, Triple, Vocabulary, quote_text, term_to_data
from kgwb.systems.ragonite.classes import GraphClasses, TableGroup
from kgwb.systems.ragonite.identifiers import (
    TermNames,
    assign_ids,
    make_identifier,
    make_table_name,
    make_unique,
)
from kgwb.systems.ragonite.quantities import parse_quantity
from kgwb.systems.ragonite.records import Column, Table

SCHEMA_REASON = "it describes a class or a predicate"
TOO_WIDE_REASON = "its table has too many columns"
MAX_TABLE_COLUMNS = 400
NUMBER_AT_END = re.compile(r"_\d+$")
"""What is added to a name that is taken."""
MAX_LISTED_VALUES = 8
"""A column's comment lists all of its values if there are so many at most, else two of them."""
HELPER_TABLES_SQL = """
CREATE TABLE _terms (id TEXT PRIMARY KEY, name TEXT, term TEXT, home TEXT);
CREATE TABLE _triples (n INTEGER PRIMARY KEY, subject TEXT, predicate TEXT, object TEXT, value TEXT, tag TEXT,
  cell TEXT, low, high, unit TEXT, home TEXT, target TEXT, place TEXT);
CREATE TABLE _passages (n INTEGER PRIMARY KEY, title TEXT, text TEXT);
CREATE TABLE _facts (passage INTEGER, triple INTEGER);
CREATE INDEX _by_name ON _terms (name);
CREATE INDEX _by_subject ON _triples (subject, place);
CREATE INDEX _by_object ON _triples (object);
CREATE INDEX _by_place ON _triples (place);
CREATE INDEX _by_passage ON _facts (passage);
CREATE VIRTUAL TABLE _words USING fts5(title, key, content='', tokenize=ascii);
"""
"""The tables behind the induced ones. No query of a model may read them.

``_triples`` has for each triple the ids of its ends, the object as JSON (``value``), its language
(``tag``), what a cell shows of it (``cell``), its quantity, the tables of subject and object
(``home`` and ``target``), and where it is stored (``place``): "table.column", or why it is in no
table. ``_facts`` says which triples are in which passage, and ``_words`` is the index of passages.
"""
PREDICATE_GROUPS_SQL = """
SELECT home, predicate, tag, count(*), count(DISTINCT subject),
  count(low) = count(*) AND count(DISTINCT unit) = 1
  AND (max(unit) = '' OR count(*) > 1), max(unit), min(low), max(high), max(low <> high),
  sum(typeof(low) = 'integer' AND typeof(high) = 'integer') = count(*),
  count(object) = count(*), count(DISTINCT target), group_concat(DISTINCT target)
FROM _triples WHERE home IS NOT NULL AND place IS NULL
GROUP BY home, predicate, tag ORDER BY home, count(DISTINCT subject) DESC, predicate, tag
"""
"""Selects the fields of PredicateGroup."""


class PredicateGroup(NamedTuple):
    """The triples of one predicate in one language, with subjects in one table, in numbers."""

    table: str
    predicate: str
    language: str
    triples: int
    subjects: int
    is_numeric: bool
    """Whether all values are quantities of the same unit.

    A single value with a unit does not count: the unit may be any word behind a number.
    """
    unit: str
    low: float
    high: float
    has_ranges: bool
    is_whole: bool
    """Whether all numbers are integers."""
    has_links: bool
    """Whether all values are IRIs or blank nodes."""
    target_count: int
    """The number of tables that the values are in."""
    targets: str | None
    """The names of these tables, joined by commas."""


@dataclass(slots=True)
class ClassTable:
    """The table of a class, to which columns are still added."""

    name: str
    group: TableGroup
    rows: int
    columns: list[Column]
    used_names: set[str]


class DatabaseBuilder:
    """Writes the tables of some triples into an empty SQLite database."""

    def __init__(
        self,
        triples: Sequence[Triple],
        names: TermNames,
        vocabulary: Vocabulary,
        connection: Connection,
        *,
        by_combination: bool = False,
    ) -> None:
        """Decide which table and which id each term has. ``names`` has all IRIs of the triples.

        ``by_combination`` there is a table for each combination of types, else for each highest
        class.
        """
        self.triples = triples
        self.names = names
        self.vocabulary = vocabulary
        self.connection = connection
        self.classes = GraphClasses(triples, vocabulary)
        self.table_by_term: dict[Term, str] = {}
        """The table of each subject. Classes and predicates are in one only as instances."""
        self._used_table_names: set[str] = set()
        self._class_tables: dict[str, ClassTable] = {}
        self._assign_tables(by_combination=by_combination)
        self.id_by_term = assign_ids(triples, names, self.table_by_term)

    def _assign_tables(self, *, by_combination: bool) -> None:
        """Make a ClassTable for each group of subjects, the largest first, and assign these to it.

        It is named after the display names of its classes, or "thing" without one. Equally large
        groups come by IRI. Every table begins with the columns ``id`` and ``name``.
        """
        group_by_subject = self.classes.group_subjects(self.triples, by_combination=by_combination)
        sizes = Counter(group_by_subject.values())
        name_by_group: dict[TableGroup, str] = {}
        for group in sorted(sizes, key=lambda group: (-sizes[group], group)):
            label = " ".join(self.names[iri] for iri in group) or "thing"
            name = make_table_name(label, self._used_table_names)
            name_by_group[group] = name
            columns = [Column("id", "TEXT PRIMARY KEY"), Column("name", "TEXT")]
            self._class_tables[name] = ClassTable(
                name, group, sizes[group], columns, {"id", "name"}
            )
        for subject, group in group_by_subject.items():
            self.table_by_term[subject] = name_by_group[group]

    def create_tables(self) -> tuple[Table, ...]:
        """Create and fill all tables, and return the induced ones, the largest first.

        For each predicate, language and class table there is a new table if a subject has several
        values, else one or more columns of the class table. Above MAX_TABLE_COLUMNS no columns are
        added, and the triples are in no table.
        """
        self.connection.executescript(HELPER_TABLES_SQL)
        self._write_terms()
        self._write_triples()
        for name in self._class_tables:
            self.connection.execute(f"CREATE TABLE {name} (id TEXT PRIMARY KEY, name TEXT)")
            rows = "SELECT id, name FROM _terms WHERE home = ? ORDER BY id"
            self.connection.execute(f"INSERT INTO {name} {rows}", (name,))

        value_tables: dict[Table, ClassTable] = {}
        for row in self.connection.execute(PREDICATE_GROUPS_SQL).fetchall():
            group = PredicateGroup(*row)
            table = self._class_tables[group.table]
            label = f"{self.names[URIRef(group.predicate)]} {group.language}"
            column_name = make_identifier(label, table.used_names)
            if group.triples > group.subjects:
                value_tables[self._create_value_table(group, column_name)] = table
            elif len(table.columns) < MAX_TABLE_COLUMNS:
                self._add_columns(table, group, column_name)
            else:
                self._set_place(group, TOO_WIDE_REASON)

        columns_by_class: dict[str, list[Column]] = {}
        for table in self._class_tables.values():
            columns_by_class[table.name] = list(table.columns)
        for value_table, table in value_tables.items():
            columns_by_class[table.name] += value_table.columns
        tables = []
        for value_table, table in value_tables.items():
            columns = explain_numbered_columns(value_table.columns, columns_by_class[table.name])
            tables.append(replace(value_table, columns=columns))
        for table in self._class_tables.values():
            class_iri = self._choose_class(table.group)
            columns = explain_numbered_columns(table.columns, columns_by_class[table.name])
            tables.append(Table(table.name, table.rows, columns, class_iri))
        tables.sort(key=lambda table: -table.rows)
        return explain_numbered_tables(tables)

    def _choose_class(self, group: TableGroup) -> URIRef | None:
        """Return the class by which a query finds the things of a table, or None if none does.

        A superclass may have no instances of its own, and a predicate is not a class: a query for
        instances of either finds nothing. Of several classes it is the one with the fewest
        instances.
        """
        sizes = self.classes.class_sizes
        classes = [iri for iri in group if iri in sizes]
        return min(classes, key=lambda iri: (sizes[iri], iri), default=None)

    def _write_terms(self) -> None:
        """Fill ``_terms``: id, name, JSON form, and table if any, of each IRI and blank node.

        A term without a display name has its id as the name.
        """
        for term, id_ in self.id_by_term.items():
            name = self.names.get(term, id_)
            row = (id_, name, _term_to_json(term), self.table_by_term.get(term))
            self.connection.execute("INSERT INTO _terms VALUES (?, ?, ?, ?)", row)

    def _write_triples(self) -> None:
        """Fill the table ``_triples``: a row for each triple, numbered from 0.

        A row has the ids of its ends, the JSON form, language and cell text of the object, the
        number or range in it, the tables of both ends, and the place. The place is filled in
        already for a triple that needs no column of its own, and else is NULL.
        """
        single_class_tables = self._find_single_class_tables()
        insert = f"INSERT INTO _triples VALUES ({', '.join('?' * 13)})"
        for number, triple in enumerate(self.triples):
            subject, predicate, object_ = triple
            row = (
                number,
                self.id_by_term[subject],
                predicate,
                self.id_by_term.get(object_),
                _term_to_json(object_),
                getattr(object_, "language", None) or "",
                self.id_by_term.get(object_, str(object_)),
                *(parse_quantity(object_) or (None, None, None)),
                self.table_by_term.get(subject),
                self.table_by_term.get(object_),
                self._find_initial_place(triple, single_class_tables),
            )
            self.connection.execute(insert, row)

    def _find_single_class_tables(self) -> set[str]:
        """Return the names of the tables whose rows all have the types of the table, and no other."""
        single_class_tables = set(self._class_tables)
        for subject, table in self.table_by_term.items():
            group = self._class_tables[table].group
            if self.classes.types.get(subject) != set(group):
                single_class_tables.discard(table)
        return single_class_tables

    def _find_initial_place(self, triple: Triple, single_class_tables: set[str]) -> str | None:
        """Return the place of a triple that needs no column of its own, or None if it needs one.

        It is SCHEMA_REASON if the subject is in no table; the column ``id`` for a type, if all rows
        of the table have only the table's types; and the column ``name`` for the display name.
        """
        subject, predicate, _ = triple
        table = self.table_by_term.get(subject)
        if table is None:
            return SCHEMA_REASON
        if predicate in self.vocabulary.types and table in single_class_tables:
            return f"{table}.id"
        if self.is_display_name(triple):
            return f"{table}.name"
        return None

    def is_display_name(self, triple: Triple) -> bool:
        """Return whether a triple states the display name of its subject.

        That is so if its predicate is one for labels, and its object is the display name, apart
        from blanks around it.
        """
        subject, predicate, object_ = triple
        if predicate not in self.vocabulary.labels:
            return False
        return str(object_).strip() == self.names.get(subject)

    def _set_place(self, group: PredicateGroup, place: str) -> None:
        """Write to ``_triples`` the place of all triples of a group: "table.column", or why they are in no table."""
        self.connection.execute(
            "UPDATE _triples SET place = ? WHERE home = ? AND predicate = ? AND tag = ?",
            (place, group.table, group.predicate, group.language),
        )

    def _create_value_table(self, group: PredicateGroup, column_name: str) -> Table:
        """Create and fill a table with a row for each triple of a group: the subject's id and the value.

        Its name is that of the class table with the column's name. The key column is named after
        the class table, with "_" behind it if the value column has that name. All columns are NOT
        NULL. Returns the table's schema.
        """
        name = make_table_name(f"{group.table} {column_name}", self._used_table_names)
        place = f"{name}.{column_name}"
        self._set_place(group, place)
        key_name = group.table if group.table != column_name else f"{group.table}_"
        used_names = {key_name, column_name}
        values = self._describe_columns(group, column_name, place, used_names, not_null=" NOT NULL")
        key = Column(key_name, "TEXT NOT NULL", group.table)

        columns = (key, *values.values())
        definitions = ", ".join(f"{column.name} {column.type}" for column in columns)
        self.connection.execute(f"CREATE TABLE {name} ({definitions})")
        sources = ", ".join(["subject", *values])
        rows = f"SELECT {sources} FROM _triples WHERE place = ? ORDER BY n"
        self.connection.execute(f"INSERT INTO {name} {rows}", (place,))
        return Table(name, group.triples, columns)

    def _add_columns(self, table: ClassTable, group: PredicateGroup, column_name: str) -> None:
        """Add the columns of a group to the class table of its subjects, in SQLite and in its schema, and fill them.

        In the schema they are NOT NULL if every row has a value, but not in SQLite.
        """
        place = f"{table.name}.{column_name}"
        self._set_place(group, place)
        not_null = " NOT NULL" if group.triples == table.rows else ""
        columns = self._describe_columns(
            group, column_name, place, table.used_names, not_null=not_null
        )
        for source, column in columns.items():
            table.columns.append(column)
            # SQLite cannot add a column that is NOT NULL to a table with rows.
            definition = f"{column.name} {column.type.removesuffix(' NOT NULL')}"
            self.connection.execute(f"ALTER TABLE {table.name} ADD COLUMN {definition}")
            value = f"SELECT {source} FROM _triples WHERE subject = {table.name}.id AND place = ?"
            update = f"UPDATE {table.name} SET {column.name} = ({value})"
            self.connection.execute(update, (place,))

    def _describe_columns(
        self, group: PredicateGroup, name: str, place: str, used_names: set[str], *, not_null: str
    ) -> dict[str, Column]:
        """Return the columns for the values of a group, each by the column of ``_triples`` that fills it.

        Numbers without ranges are one column ("low"), with their range and unit as the comment.
        Links to one table are a column ("cell") that references it. Any other values are a column
        of texts ("cell"), with examples as the comment; ranges have two number columns more, named
        with "_low" and "_high" at the end, made unique and added to ``used_names``. ``not_null`` is
        " NOT NULL" or "". Nothing is written.
        """
        text_type = f"TEXT{not_null}"
        number_type = f"INTEGER{not_null}" if group.is_whole else f"REAL{not_null}"
        unit_note = f"in {quote_text(group.unit)}" if group.unit else ""
        predicate = URIRef(group.predicate)
        if group.is_numeric and not group.has_ranges:
            comment = f"{group.low} … {group.high}"
            if unit_note:
                comment += f", {unit_note}"
            return {"low": Column(name, number_type, "", comment, predicate)}
        if group.has_links and group.targets and group.target_count == 1:
            direction = f"from {group.table} to {group.targets}"
            return {"cell": Column(name, text_type, group.targets, direction, predicate)}

        comment = self._list_values(place)
        if group.targets:
            comment = f"ids of {group.targets}; from {group.table} to these; {comment}"
        columns = {"cell": Column(name, text_type, "", comment, predicate)}
        if group.is_numeric:
            for end in ("low", "high"):
                end_name = make_unique(f"{name}_{end}", used_names)
                columns[end] = Column(end_name, number_type, "", unit_note, predicate)
        return columns

    def _list_values(self, place: str) -> str:
        """Return a comment with values of a column in quotes, the most frequent first, equals by the alphabet.

        It is "one of" with all values if these are at most MAX_LISTED_VALUES, else "such as" with
        two.
        """
        rows = self.connection.execute(
            "SELECT cell FROM _triples WHERE place = ?"
            " GROUP BY cell ORDER BY count(*) DESC, cell LIMIT ?",
            (place, MAX_LISTED_VALUES + 1),
        )
        values = [quote_text(cell) for (cell,) in rows]
        if len(values) <= MAX_LISTED_VALUES:
            return f"one of {', '.join(values)}"
        return f"such as {', '.join(values[:2])}"


def explain_numbered_columns(
    columns: Sequence[Column], all_columns: Sequence[Column]
) -> tuple[Column, ...]:
    """Return the columns of a table with comments that tell those apart whose names differ by a number only.

    Of ``name`` and ``name_2``, the one says that it is the label, and the other the predicate.
    ``all_columns`` has the columns of the class table and of the tables of its values: twins may
    stand in different tables.
    """
    words = Counter(_without_number(column.name) for column in all_columns if not _is_key(column))
    explained = []
    for column in columns:
        explanation = ""
        if words[_without_number(column.name)] > 1 and not _is_key(column):
            explanation = "the key" if column.name == "id" else "the label"
            if column.predicate is not None:
                explanation = f"values of {quote_text(column.predicate)}"
        comment = "; ".join(filter(None, [explanation, column.comment]))
        explained.append(replace(column, comment=comment))
    return tuple(explained)


def explain_numbered_tables(tables: Sequence[Table]) -> tuple[Table, ...]:
    """Return tables with comments that tell those apart whose names differ by a number only.

    Of ``agent`` and ``agent_2``, each says its class; a table of values says its predicate.
    """
    words = Counter(_without_number(table.name) for table in tables)
    explained = []
    for table in tables:
        comment = ""
        predicate = table.columns[-1].predicate
        if words[_without_number(table.name)] > 1:
            if table.of is not None:
                comment = f"instances of {quote_text(table.of)}"
            elif table.columns[0].references and predicate is not None:
                comment = f"values of {quote_text(predicate)}"
        explained.append(replace(table, comment=comment))
    return tuple(explained)


def _without_number(name: str) -> str:
    """Return the name of a table or column without the number that was added because it was taken."""
    return NUMBER_AT_END.sub("", name)


def _is_key(column: Column) -> bool:
    """Return whether a column is the key of a table of values: the id of the thing that has them."""
    return column.predicate is None and bool(column.references)


def _term_to_json(term: Term) -> str:
    """Return the JSON form of a term as text."""
    return json.dumps(term_to_data(term))
