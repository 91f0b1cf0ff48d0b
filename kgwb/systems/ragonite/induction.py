"""Induction: the tables of a graph's triples (RAGonite, section 2.1).

Each class has a table with a row for each instance. A predicate is a column of that table, or a
table of its own if a subject has several values. Links are named by their predicate and stand at
their subject: the published code names them by tables only, so that two predicates between the same
tables overwrite each other. A triple that is in no table is marked with the reason.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from itertools import filterfalse
from sqlite3 import Connection
from typing import NamedTuple
from urllib.parse import quote, urlsplit

from rdflib import RDFS, XSD, BNode, Literal, URIRef

from kgwb.build import (
    GENERIC_CLASSES,
    SCHEMA_NAMESPACES,
    Term,
    Triple,
    Vocabulary,
    local_part,
    name_from_iri,
    quote_text,
    term_to_data,
)
from kgwb.systems.ragonite.records import Column, Table
from kgwb.systems.ragonite.settings import RagoniteSettings

NUMERIC_DATATYPES = {
    XSD[name]
    for name in "integer int long short byte decimal double float gYear nonNegativeInteger".split()
}
NUMBER = r"[-+]?(?:0|[1-9]\d*)(?:\.\d+)?"
"""A number without leading zeros: "007" is a text."""
QUANTITY = re.compile(rf"({NUMBER})(?:\s?[-–]\s?({NUMBER}))?\s?([^\W\d_]{{1,6}}|[%°€$£])?")
"""A number or a range of two numbers, with or without a unit."""
NUMBER_LIMIT = 2**63
"""SQLite has no integers from here on."""


class Quantity(NamedTuple):
    """A range of numbers with a unit. Both ends of a single number are the same."""

    low: float
    high: float
    unit: str
    """Empty if there is none."""


def parse_quantity(value: Term) -> Quantity | None:
    """Return the number or range in a literal, with its unit: "95-130", "4 m", or 2001 as an integer.

    Plain texts and literals of the NUMERIC_DATATYPES are read. None for other terms, for a text
    that is not a quantity, for NaN, for a range whose end is below its start, and for numbers that
    SQLite cannot store as integers. Both ends of a single number are the same. The unit is "" if
    there is none.
    """
    if not isinstance(value, Literal) or value.language:
        return None
    is_numeric = value.datatype in NUMERIC_DATATYPES
    if not is_numeric and value.datatype not in (None, XSD.string):
        return None
    match = QUANTITY.fullmatch(value)
    if match:
        low = _parse_number(match[1])
        high = _parse_number(match[2] or match[1])
        is_storable = -NUMBER_LIMIT < low <= high < NUMBER_LIMIT
        if is_storable:
            return Quantity(low, high, match[3] or "")
        return None
    if is_numeric:
        with suppress(ValueError):
            number = float(value)  # in a form that QUANTITY does not have, such as 1e5
            if abs(number) < NUMBER_LIMIT:
                return Quantity(number, number, "")
    return None


def _parse_number(text: str) -> float:
    """Return an int, or a float if the text has a decimal point."""
    if "." in text:
        return float(text)
    return int(text)


MAX_IDENTIFIER_CHARS = 60
"""Characters of an id, or of the name of a table or column, before a number is added."""
FORBIDDEN_TABLE_PREFIXES = ("_", "sqlite_", "pragma_")
"""Beginnings of the names of tables that a query may not read: those of SQLite, and helpers."""
SEPARATORS = re.compile(r"[\s,'\"]+")
"""Characters that no id has. A comma separates ids in a result of group_concat."""
TermNames = Mapping[Term, str]
"""Display names by IRI."""


def assign_ids(
    triples: Iterable[Triple], names: TermNames, table_by_term: Mapping[Term, str]
) -> dict[Term, str]:
    """Return a distinct id for each IRI in ``names`` and each blank node in the triples.

    The id of an IRI in a table is its local part, that of another IRI its display name, without
    SEPARATORS and cut after MAX_IDENTIFIER_CHARS. The id of a blank node is the name of its table,
    or "node". The id of an IRI whose name is the IRI is the IRI itself. Equal ids get numbers. Terms
    are taken in a fixed order, IRIs in tables first, so that the ids do not depend on the order of
    the triples.
    """
    used_ids: set[str] = set()
    ids: dict[Term, str] = {}
    for iri in sorted(names, key=lambda iri: (iri not in table_by_term, iri)):
        if iri in table_by_term:
            text = SEPARATORS.sub("_", local_part(iri) or iri)
        elif names[iri] == str(iri):
            ids[iri] = make_unique(text_of_page(iri), used_ids)
            continue
        else:
            text = SEPARATORS.sub(" ", names[iri])
        ids[iri] = make_unique(text[:MAX_IDENTIFIER_CHARS], used_ids)
    for node in _blank_nodes_by_triples(triples):
        ids[node] = make_unique(f"{table_by_term.get(node, 'node')}_1", used_ids)
    return ids


def text_of_page(iri: str) -> str:
    """Return an IRI as an id: whole, but for characters that no id has, which are escaped."""
    return SEPARATORS.sub(lambda found: quote(found[0], safe=""), iri)


def find_pages(triples: Iterable[Triple], names: TermNames) -> set[URIRef]:
    """Return the IRIs that lead out of a graph, such as the page of a car: they are kept whole.

    They are objects only, have no display name but the one that is made of the IRI, and are at no
    host that an IRI of a subject or a predicate is at.
    """
    objects: set[URIRef] = set()
    own_terms: set[Term] = set()
    for subject, predicate, object_ in triples:
        own_terms.update((subject, predicate))
        if isinstance(object_, URIRef):
            objects.add(object_)
    own_hosts = set()
    for term in own_terms:
        if isinstance(term, URIRef):
            own_hosts.add(_host_of(term))
    pages = set()
    for iri in objects - own_terms:
        is_web_page = str(iri).startswith(("http://", "https://"))
        if is_web_page and names.get(iri) == name_from_iri(iri) and _host_of(iri) not in own_hosts:
            pages.add(iri)
    return pages


def _host_of(iri: str) -> str:
    """Return the host of an IRI; empty if it has none, or is malformed."""
    try:
        return urlsplit(iri).netloc.lower()
    except ValueError:
        return ""


def _blank_nodes_by_triples(triples: Iterable[Triple]) -> list[BNode]:
    """Return the blank nodes in the triples, sorted by the predicates and neighbours of each.

    So their order does not depend on their labels, which a parser may choose at random, unless they
    have equal triples. A neighbour that is a blank node does not count.
    """
    descriptions: dict[BNode, list[str]] = defaultdict(list)
    for subject, predicate, object_ in triples:
        for node, neighbour in ((subject, object_), (object_, subject)):
            if isinstance(node, BNode):
                description = ""
                if not isinstance(neighbour, BNode):
                    description = f"{predicate} {neighbour}"
                descriptions[node].append(description)
    return sorted(descriptions, key=lambda node: (sorted(descriptions[node]), node))


def make_unique(text: str, used: set[str]) -> str:
    """Return a text that is not used yet, and add it to ``used`` in lower case.

    If the text is used, it gets a number: "film_2". A text that ends in "_1" counts as the first of
    such a series. Upper and lower case are not distinguished, because SQL names do not.
    """
    base = text.removesuffix("_1")
    number = 1
    while text.casefold() in used:
        number += 1
        text = f"{base}_{number}"
    used.add(text.casefold())
    return text


def make_identifier(text: str, used: set[str]) -> str:
    """Return a valid SQL name for a table or column that is not in ``used``, and add it there.

    It is the text in lower case with "_" between words, so that it needs no quotes. Where SQLite
    does not accept that as a name, such as "select" or "1st", "_" is added behind it or "x_" before
    it. A text without words is "x".
    """
    name = _join_words(text) or "x"
    for candidate in (name, f"{name}_"):
        with closing(sqlite3.connect(":memory:")) as scratch, suppress(sqlite3.Error):
            scratch.execute(f"CREATE TABLE {candidate} ({candidate} TEXT)")
            return make_unique(candidate, used)
    return make_unique(f"x_{name}", used)


def make_table_name(text: str, used: set[str]) -> str:
    """Return a name for a table as ``make_identifier`` does, but one that queries may read.

    A name that begins like those of FORBIDDEN_TABLE_PREFIXES gets "x_" before it.
    """
    if _join_words(text).startswith(FORBIDDEN_TABLE_PREFIXES):
        text = f"x {text}"
    return make_identifier(text, used)


def _join_words(text: str) -> str:
    """Return the words of a text in lower case with "_" between them, cut after the limit."""
    words = re.sub(r"\W+", "_", text.lower()).strip("_")
    return words[:MAX_IDENTIFIER_CHARS]


TableGroup = tuple[URIRef, ...]
"""The classes that a table is for, or the predicate that leads to its blank nodes, or nothing."""


class GraphClasses:
    """The classes of a graph, read from its triples.

    Classes that say nothing, such as owl:Thing, are types like others, but no superclasses.
    """

    def __init__(self, triples: Iterable[Triple], vocabulary: Vocabulary) -> None:
        """Read types, superclasses and schema terms from the triples, once."""
        self.types: dict[Term, set[URIRef]] = defaultdict(set)
        """The types of each term that has one."""
        self.class_sizes = Counter[URIRef]()
        """How many terms have a class as their type, for each class that is one."""
        self.schema_terms: set[Term] = set()
        """Classes, predicates, and terms whose type is one of RDF, RDFS, OWL or Wikibase."""
        self._superclasses: dict[Term, URIRef] = {}
        self._incoming_predicates: dict[Term, URIRef] = {}
        """The predicate that leads to a blank node."""
        for subject, predicate, object_ in triples:
            self.schema_terms.add(predicate)
            if isinstance(object_, BNode):
                _keep_least(self._incoming_predicates, object_, predicate)
            elif not isinstance(object_, URIRef):
                continue
            elif predicate in vocabulary.types:
                self.types[subject].add(object_)
            elif predicate == RDFS.subClassOf and object_ not in GENERIC_CLASSES:
                _keep_least(self._superclasses, subject, object_)

        for term, types in self.types.items():
            self.class_sizes.update(types)
            if any(map(_is_of_schema, types.difference(GENERIC_CLASSES))):
                self.schema_terms.add(term)
        self.schema_terms.update(self.class_sizes)

    def group_subjects(
        self, triples: Iterable[Triple], *, by_combination: bool = False
    ) -> dict[Term, TableGroup]:
        """Return for each subject the IRIs whose table it is in.

        That is the highest superclass of its types; if there are several, the one with the most
        instances, then the first by IRI. Types of RDF, RDFS, OWL and Wikibase, such as owl:Thing, do
        not count. ``by_combination``, these are all of its types, in the order of their IRIs (section
        2.1, figure 2). For a blank node without a type it is the predicate that leads to it. For any
        other subject without a type there is none. Schema terms are left out, unless they are also
        instances of a class that counts: a genre may be a class of films.
        """
        classes_by_subject: dict[Term, set[URIRef]] = {}
        sizes = Counter[URIRef]()
        for subject, _, _ in triples:
            if subject in classes_by_subject:
                continue
            classes = self.types.get(subject, set())
            if not by_combination:
                classes = self._find_root_classes(classes)
            if classes or subject not in self.schema_terms:
                classes_by_subject[subject] = classes
                sizes.update(classes)

        groups: dict[Term, TableGroup] = {}
        for subject, classes in classes_by_subject.items():
            if classes and by_combination:
                groups[subject] = tuple(sorted(classes))
            elif classes:
                groups[subject] = (min(classes, key=lambda root: (-sizes[root], root)),)
            elif subject in self._incoming_predicates:
                groups[subject] = (self._incoming_predicates[subject],)
            else:
                groups[subject] = ()
        return groups

    def _find_root_classes(self, types: Iterable[URIRef]) -> set[URIRef]:
        """Return the highest superclasses of types, but for those of RDF, RDFS, OWL and Wikibase."""
        own = filterfalse(_is_of_schema, types)
        return {find_root_class(type_, self._superclasses) for type_ in own}


def _is_of_schema(iri: URIRef) -> bool:
    """Return whether a class is one of RDF, RDFS, OWL or Wikibase."""
    # URIRef has a startswith of its own, which takes no tuple.
    return str(iri).startswith(SCHEMA_NAMESPACES)


def find_root_class(class_iri: URIRef, superclasses: Mapping[Term, URIRef]) -> URIRef:
    """Return the highest superclass of a class, or the class itself if it has no superclass.

    ``superclasses`` has one superclass of each class. In a cycle, it is the first IRI, by order, of
    all that were visited.
    """
    visited = {class_iri}
    while class_iri in superclasses:
        class_iri = superclasses[class_iri]
        if class_iri in visited:
            return min(visited)
        visited.add(class_iri)
    return class_iri


def _keep_least(least: dict[Term, URIRef], key: Term, iri: URIRef) -> None:
    """Put an IRI in under a key, unless the IRI that is there comes first by order."""
    least[key] = min(iri, least.get(key, iri))


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
  cell TEXT, low, high, unit TEXT, home TEXT, target TEXT, pair TEXT, place TEXT);
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
(``home`` and ``target``), the latter once more where each pair of tables is stored by itself
(``pair``), and where it is stored (``place``): "table.column", or why it is in no table. ``_facts``
says which triples are in which passage, and ``_words`` is the index of passages.
"""
PREDICATE_GROUPS_SQL = """
SELECT home, predicate, tag, pair, count(*), count(DISTINCT subject),
  count(low) = count(*) AND count(DISTINCT unit) = 1
  AND (max(unit) = '' OR count(*) > 1), max(unit), min(low), max(high), max(low <> high),
  sum(typeof(low) = 'integer' AND typeof(high) = 'integer') = count(*),
  count(object) = count(*), count(DISTINCT target), group_concat(DISTINCT target)
FROM _triples WHERE home IS NOT NULL AND place IS NULL
GROUP BY home, predicate, tag, pair ORDER BY home, count(DISTINCT subject) DESC, predicate, tag, pair
"""
"""Selects the fields of PredicateGroup."""


class PredicateGroup(NamedTuple):
    """The triples of one predicate in one language, with subjects in one table, in numbers.

    If each pair of tables is stored by itself, links have their objects in one table, too.
    """

    table: str
    predicate: str
    language: str
    pair: str
    """The table of the objects, if the triples are only those with objects in it."""
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
    fillings: list[tuple[str, str]]
    """For each column after the first two, what fills it: the column and the place in ``_triples``."""


class DatabaseBuilder:
    """Writes the tables of some triples into an empty SQLite database."""

    def __init__(
        self,
        triples: Sequence[Triple],
        names: TermNames,
        vocabulary: Vocabulary,
        connection: Connection,
        settings: RagoniteSettings,
    ) -> None:
        """Decide which table and which id each term has. ``names`` has all IRIs of the triples."""
        self.triples = triples
        self.names = names
        self.vocabulary = vocabulary
        self.connection = connection
        self.by_combination = settings.tables == "type_combination"
        self.reads_units = settings.reads_units
        self.writes_comments = settings.writes_comments
        self.classes = GraphClasses(triples, vocabulary)
        self.table_by_term: dict[Term, str] = {}
        """The table of each subject. Classes and predicates are in one only as instances."""
        self._used_table_names: set[str] = set()
        self._class_tables: dict[str, ClassTable] = {}
        self._assign_tables()
        self.id_by_term = assign_ids(triples, names, self.table_by_term)

    def _assign_tables(self) -> None:
        """Make a ClassTable for each group of subjects, the largest first, and assign these to it.

        It is named after the display names of its classes, or "thing" without one. Equally large
        groups come by IRI. Every table begins with the columns ``id`` and ``name``, or ``label``.
        """
        self._groups = self.classes.group_subjects(self.triples, by_combination=self.by_combination)
        sizes = Counter(self._groups.values())
        self._name_predicates: dict[TableGroup, URIRef] = {}
        groups_with_name: set[TableGroup] = set()
        if self.by_combination:
            self._find_name_predicates()
            groups_with_name = self._find_groups_with_name()
        name_by_group: dict[TableGroup, str] = {}
        for group in sorted(sizes, key=lambda group: (-sizes[group], group)):
            label = " ".join(self.names[iri] for iri in group) or "thing"
            name = make_table_name(label, self._used_table_names)
            name_by_group[group] = name
            label_name = "label" if group in groups_with_name else "name"
            type_ = "TEXT NOT NULL" if self.by_combination else "TEXT"
            columns = [Column("id", "TEXT PRIMARY KEY"), Column(label_name, type_)]
            used_names = {"id", label_name}
            self._class_tables[name] = ClassTable(
                name, group, sizes[group], columns, used_names, []
            )
        for subject, group in self._groups.items():
            self.table_by_term[subject] = name_by_group[group]

    def _find_name_predicates(self) -> None:
        """Choose for each group the predicate whose values are its second column.

        It is the first predicate for labels, in the order of the vocabulary, that has display names
        of its subjects. Any other one has a column of its own (section 2.1, figure 2).
        """
        rank = self.vocabulary.labels.index
        for triple in self.triples:
            subject, predicate, _ = triple
            if subject in self._groups and self._has_display_name(triple):
                group = self._groups[subject]
                chosen = self._name_predicates.get(group, predicate)
                self._name_predicates[group] = min(chosen, predicate, key=rank)

    def _find_groups_with_name(self) -> set[TableGroup]:
        """Return the groups whose subjects have a predicate called "name" that is another than the chosen one."""
        found: set[TableGroup] = set()
        for subject, predicate, _ in self.triples:
            group = self._groups.get(subject, ())
            is_chosen = predicate == self._name_predicates.get(group)
            if not is_chosen and _join_words(self.names[predicate]) == "name":
                found.add(group)
        return found

    def create_tables(self) -> tuple[Table, ...]:
        """Create and fill all tables, and return the induced ones, the largest first.

        For each predicate, language and class table there is a new table if a subject has several
        values, else one or more columns of the class table; if tables are by combination of types,
        also for each table that links lead to. Above MAX_TABLE_COLUMNS no columns are added, and the
        triples are in no table.
        """
        self.connection.executescript(HELPER_TABLES_SQL)
        self._write_terms()
        self._write_triples()
        tables = []
        for row in self.connection.execute(PREDICATE_GROUPS_SQL).fetchall():
            group = PredicateGroup(*row)
            table = self._class_tables[group.table]
            label = f"{self.names[URIRef(group.predicate)]} {group.language}"
            if group.pair and _join_words(label) in table.used_names:
                label += f" {group.pair}"
            column_name = make_identifier(label, table.used_names)
            if group.triples > group.subjects:
                tables.append(self._create_value_table(group, column_name))
            elif len(table.columns) < MAX_TABLE_COLUMNS:
                self._add_columns(table, group, column_name)
            else:
                self._set_place(group, TOO_WIDE_REASON)

        for table in self._class_tables.values():
            self._create_class_table(table)
            class_iri = self._choose_class(table.group)
            tables.append(Table(table.name, table.rows, tuple(table.columns), class_iri))
        tables.sort(key=lambda table: -table.rows)
        if self.writes_comments:
            return explain_numbered_names(tables)
        return tuple(map(_without_comments, tables))

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
        insert = f"INSERT INTO _triples VALUES ({', '.join('?' * 14)})"
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
                self.table_by_term.get(object_, "") if self.by_combination else "",
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
        of the table have only the table's types; and the second column for the display name.
        """
        subject, predicate, _ = triple
        table = self.table_by_term.get(subject)
        if table is None:
            return SCHEMA_REASON
        if predicate in self.vocabulary.types and table in single_class_tables:
            return f"{table}.id"
        if self.is_display_name(triple):
            return f"{table}.{self._class_tables[table].columns[1].name}"
        return None

    def is_display_name(self, triple: Triple) -> bool:
        """Return whether a triple states the display name of its subject.

        That is so if its predicate is one for labels, and its object is the display name, apart
        from blanks around it. If a predicate was chosen for the group of the subject, it is this one.
        """
        subject, predicate, _ = triple
        chosen = self._name_predicates.get(self._groups.get(subject, ()), predicate)
        return predicate == chosen and self._has_display_name(triple)

    def _has_display_name(self, triple: Triple) -> bool:
        """Return whether the object of a triple is the display name of its subject, by any predicate for labels."""
        subject, predicate, object_ = triple
        if predicate not in self.vocabulary.labels:
            return False
        return str(object_).strip() == self.names.get(subject)

    def _set_place(self, group: PredicateGroup, place: str) -> None:
        """Write to ``_triples`` the place of all triples of a group: "table.column", or why they are in no table."""
        self.connection.execute(
            "UPDATE _triples SET place = ? WHERE place IS NULL AND home = ? AND predicate = ? AND tag = ?"
            " AND pair = ?",
            (place, group.table, group.predicate, group.language, group.pair),
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
        sources = ", ".join(["subject", *values])
        rows = f"SELECT {sources} FROM _triples WHERE place = ? ORDER BY n"
        create_table(self.connection, name, columns, rows, place)
        return Table(name, group.triples, columns)

    def _add_columns(self, table: ClassTable, group: PredicateGroup, column_name: str) -> None:
        """Add the columns of a group to the class table of its subjects, which is not created yet.

        They are NOT NULL if every row has a value.
        """
        place = f"{table.name}.{column_name}"
        self._set_place(group, place)
        not_null = " NOT NULL" if group.triples == table.rows else ""
        columns = self._describe_columns(
            group, column_name, place, table.used_names, not_null=not_null
        )
        for source, column in columns.items():
            table.columns.append(column)
            table.fillings.append((source, place))

    def _create_class_table(self, table: ClassTable) -> None:
        """Create the table of a class with its constraints, and a row for each thing in it."""
        values = ["id", "name"]
        places = []
        for source, place in table.fillings:
            values.append(f"(SELECT {source} FROM _triples WHERE subject = t.id AND place = ?)")
            places.append(place)
        rows = f"SELECT {', '.join(values)} FROM _terms t WHERE home = ? ORDER BY id"
        create_table(self.connection, table.name, table.columns, rows, *places, table.name)

    def _describe_columns(
        self, group: PredicateGroup, name: str, place: str, used_names: set[str], *, not_null: str
    ) -> dict[str, Column]:
        """Return the columns for the values of a group, each by the column of ``_triples`` that fills it.

        Without ``reads_units`` only single numbers without a unit count as numbers. Numbers without
        ranges are one column ("low"), with their range and unit as the comment. Links to one table
        are a column ("cell") that references it. Any other values are a column of texts ("cell"),
        with examples as the comment; ranges have two number columns more, named with "_low" and
        "_high" at the end, made unique and added to ``used_names``. ``not_null`` is " NOT NULL" or
        "". Nothing is written. Comments are made also without ``writes_comments``:
        ``create_tables`` drops them then.
        """
        text_type = f"TEXT{not_null}"
        number_type = f"INTEGER{not_null}" if group.is_whole else f"REAL{not_null}"
        unit_note = ""
        if group.unit:
            unit_note = f"in {quote_text(group.unit)}"
        predicate = URIRef(group.predicate)
        is_numeric = group.is_numeric
        if not self.reads_units:
            is_numeric = is_numeric and not group.unit and not group.has_ranges
        if is_numeric and not group.has_ranges:
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
        if is_numeric:
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
        values = []
        for (cell,) in rows:
            values.append(quote_text(cell))
        if len(values) <= MAX_LISTED_VALUES:
            return f"one of {', '.join(values)}"
        return f"such as {', '.join(values[:2])}"


def create_table(
    connection: Connection, name: str, columns: Iterable[Column], query: str, *parameters: str
) -> None:
    """Create a table, and fill it with the rows of a query, which has the parameters."""
    definitions = ", ".join(map(str, columns))
    connection.execute(f"CREATE TABLE {name} ({definitions})")
    connection.execute(f"INSERT INTO {name} {query}", parameters)


def _without_comments(table: Table) -> Table:
    columns = []
    for column in table.columns:
        columns.append(replace(column, comment=""))
    return replace(table, columns=tuple(columns))


def explain_numbered_names(tables: Sequence[Table]) -> tuple[Table, ...]:
    """Return tables with comments that tell those apart whose names differ by a number only, and columns.

    Of ``agent`` and ``agent_2``, each says its class; a table of values says its predicate. Of
    ``name`` and ``name_2``, the one says that it is the label, and the other the predicate. Columns
    are compared with those of the class table and of the tables of its values: twins may stand in
    different tables.
    """
    table_words = Counter(_without_number(table.name) for table in tables)
    column_words: dict[str, Counter[str]] = defaultdict(Counter)
    for table in tables:
        names = []
        for each in table.columns:
            if not _is_key(each):
                names.append(_without_number(each.name))
        column_words[table.columns[0].references or table.name].update(names)
    explained = []
    for table in tables:
        key = table.columns[0]
        words = column_words[key.references or table.name]
        columns = []
        for column in table.columns:
            columns.append(_explain_numbered_column(column, words))
        comment = ""
        predicate = table.columns[-1].predicate
        if table_words[_without_number(table.name)] > 1:
            if table.of is not None:
                comment = f"instances of {quote_text(table.of)}"
            elif key.references and predicate is not None:
                comment = f"values of {quote_text(predicate)}"
        explained.append(replace(table, columns=tuple(columns), comment=comment))
    return tuple(explained)


def _explain_numbered_column(column: Column, words: Mapping[str, int]) -> Column:
    """Return a column with a comment on what it is if it is one of several of these words."""
    if words[_without_number(column.name)] < 2 or _is_key(column):
        return column
    explanation = "the label"
    if column.is_primary_key:
        explanation = "the key"
    if column.predicate is not None:
        explanation = f"values of {quote_text(column.predicate)}"
    comment = "; ".join(filter(None, [explanation, column.comment]))
    return replace(column, comment=comment)


def _without_number(name: str) -> str:
    """Return the name of a table or column without the number that was added because it was taken."""
    return NUMBER_AT_END.sub("", name)


def _is_key(column: Column) -> bool:
    """Return whether a column is the key of a table of values: the id of the thing that has them."""
    return column.predicate is None and bool(column.references)


def _term_to_json(term: Term) -> str:
    """Return the JSON form of a term as text."""
    return json.dumps(term_to_data(term))
