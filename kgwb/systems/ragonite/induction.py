"""Induction: tables, keys and links of a graph's triples (RAGonite, section 2.1), and passages (section 2.2).

Every triple is in a passage, and in a table or on the list of those that are in none. A link is named by its
predicate and stands at its subject; several values of one subject are a table of their own.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from sqlite3 import Connection
from typing import Any

from rdflib import RDFS, XSD, BNode, Literal, URIRef

from kgwb.kg.base import SCHEMA_CLASSES, SCHEMA_NAMESPACES, Vocabulary
from kgwb.kg.survey_builder import GENERIC_CLASSES
from kgwb.kg.term_text import quote_text
from kgwb.kg.text import normalize
from kgwb.systems.ragonite.records import Column, Table
from kgwb.terms import Term, Triple, local_part, term_to_data

SCHEMA_REASON, TOO_WIDE_REASON = (
    "it describes a class or a predicate",
    "its table has too many columns",
)
(
    MAX_TABLE_COLUMNS,
    MAX_IDENTIFIER_CHARS,
    MAX_LISTED_VALUES,
    MAX_PASSAGE_CHARS,
    MAX_OBJECTS_PER_SENTENCE,
    MAX_NESTED_TRIPLES,
) = 400, 60, 8, 900, 12, 4
"""Columns of a table, letters of a name, values that are all shown; of a passage letters, things, parts."""
NUMERIC_DATATYPES = {
    XSD[name]
    for name in "integer int long short byte decimal double float gYear nonNegativeInteger".split()
}
TermNames = Mapping[Term, str]
NUMBER = r"[-+]?(?:0|[1-9]\d*)(?:\.\d+)?"
QUANTITY = re.compile(rf"({NUMBER})(?:\s?[-–]\s?({NUMBER}))?\s?([^\W\d_]{{1,6}}|[%°€$£])?")
"""A number or a range, with a unit; leading zeros make a text, as in 007."""
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
PREDICATE_GROUPS_SQL = """
SELECT home, predicate, tag, count(*), count(DISTINCT subject),
  count(low) = count(*) AND count(DISTINCT unit) = 1
  AND (max(unit) = '' OR count(*) > 1), max(unit), min(low), max(high), max(low <> high),
  sum(typeof(low) = 'integer' AND typeof(high) = 'integer') = count(*),
  count(object) = count(*), count(DISTINCT target), group_concat(DISTINCT target)
FROM _triples WHERE home IS NOT NULL AND place IS NULL
GROUP BY home, predicate, tag ORDER BY home, count(DISTINCT subject) DESC, predicate, tag
"""
"""What the values of a predicate are, by the table of their subjects and by language."""


class DatabaseBuilder:
    """Writes the tables and passages of some triples into a database."""

    def __init__(
        self, triples: list[Triple], names: TermNames, vocabulary: Vocabulary, db: Connection
    ) -> None:
        self.triples, self.names, self.vocabulary, self.connection = triples, names, vocabulary, db
        self.types_by_term: dict[Term, set[URIRef]] = defaultdict(set)
        self.used_identifiers: set[str] = set()
        parents, leads = dict[Term, URIRef](), dict[Term, URIRef]()
        for s, p, o in triples:
            if p in vocabulary.types and isinstance(o, URIRef):
                self.types_by_term[s].add(o)
            elif p == RDFS.subClassOf and isinstance(o, URIRef) and o not in GENERIC_CLASSES:
                parents[s] = min(o, parents.get(s, o))
            elif isinstance(o, BNode):
                leads[o] = min(p, leads.get(o, p))
        self.schema_terms = set[Term](p for _, p, _ in triples).union(*self.types_by_term.values())
        for thing, some in self.types_by_term.items():
            spaced = any(
                str(kind).startswith(SCHEMA_NAMESPACES) for kind in some.difference(GENERIC_CLASSES)
            )
            if spaced or not some.isdisjoint(SCHEMA_CLASSES):  # it is itself a class or a predicate
                self.schema_terms.add(thing)
        # The highest class of each thing, of several the commonest; of a node without, what leads to it
        things = [s for s in dict.fromkeys(s for s, _, _ in triples) if s not in self.schema_terms]
        kinds = {s: self.types_by_term.get(s, set()).difference(GENERIC_CLASSES) for s in things}
        tops = {s: {_find_root_class(kind, parents) for kind in some} for s, some in kinds.items()}
        common = Counter(top for some in tops.values() for top in some)
        homes = {
            s: min(tops[s], key=lambda top: (-common[top], top), default=leads.get(s))
            for s in things
        }
        sizes = Counter(homes.values())
        order = sorted(sizes, key=lambda home: (-sizes[home], str(home)))
        self.class_by_table = {
            make_identifier(names[home] if home else "thing", self.used_identifiers): home
            for home in order
        }
        tables = {home: table for table, home in self.class_by_table.items()}
        self.table_by_term = {term: tables[home] for term, home in homes.items()}
        """The table that a subject is in."""
        self.id_by_term: dict[Term, str] = {}
        """A short one for each IRI and node, the same each time; for what is in no table its name."""
        ids, nodes = set[str](), defaultdict[BNode, list[str]](list)
        ends = {end for triple in triples for end in triple if isinstance(end, URIRef)}
        for iri in sorted(ends, key=lambda iri: (iri not in self.table_by_term, iri)):
            text, blank = (
                (local_part(iri) or iri, "_") if iri in self.table_by_term else (names[iri], " ")
            )
            self.id_by_term[iri] = _make_unique(
                re.sub(r"[\s,'\"]+", blank, text)[:MAX_IDENTIFIER_CHARS], ids
            )
        for s, p, o in triples:
            for node, other in ((s, o), (o, s)):
                if isinstance(node, BNode):
                    nodes[node].append("" if isinstance(other, BNode) else f"{p} {other}")
        for node in sorted(nodes, key=lambda node: (sorted(nodes[node]), node)):
            self.id_by_term[node] = _make_unique(f"{self.table_by_term.get(node, 'node')}_1", ids)
        db.executescript(HELPER_TABLES_SQL)
        self._write_triples()
        self.tables = tuple(sorted(self._create_tables(), key=lambda table: -table.rows))

    def _write_triples(self) -> None:
        typed: dict[str, set[frozenset[URIRef]]] = defaultdict(set)
        for s, table in self.table_by_term.items():
            typed[table].add(frozenset(self.types_by_term.get(s, ())))
        constant = {
            table
            for table, kinds in typed.items()
            if kinds == {frozenset([self.class_by_table[table]])}
        }
        named = ((i, self.names.get(t, i), t) for t, i in self.id_by_term.items())
        terms = (
            (i, name, json.dumps(term_to_data(t)), self.table_by_term.get(t))
            for i, name, t in named
        )
        self.connection.executemany("INSERT INTO _terms VALUES (?, ?, ?, ?)", terms)
        rows = []
        for n, (s, p, o) in enumerate(self.triples):
            place: str | None = None
            home, tag = self.table_by_term.get(s), getattr(o, "language", None) or ""
            if home is None:
                place = SCHEMA_REASON
            elif p in self.vocabulary.types and home in constant:
                place = f"{home}.id"
            elif p in self.vocabulary.labels and str(o).strip() == self.names.get(s):
                place = f"{home}.name"
            measure, target = _parse_quantity(o) or (None, None, None), self.table_by_term.get(o)
            cell, value = self.id_by_term.get(o, str(o)), json.dumps(term_to_data(o))
            rows.append(
                (
                    n,
                    self.id_by_term[s],
                    p,
                    self.id_by_term.get(o),
                    value,
                    tag,
                    cell,
                    *measure,
                    home,
                    target,
                    place,
                )
            )
        self.connection.executemany(f"INSERT INTO _triples VALUES ({', '.join('?' * 13)})", rows)

    def _create_tables(self) -> Iterator[Table]:
        """Makes the tables, and gives them as the model sees them."""
        sizes = Counter(self.table_by_term.values())
        first = Column("id", "TEXT PRIMARY KEY"), Column("name", "TEXT")
        columns, labels = (
            {home: [*first] for home in self.class_by_table},
            {home: {"id", "name"} for home in self.class_by_table},
        )
        for home in self.class_by_table:
            self.connection.execute(f"CREATE TABLE {home} (id TEXT PRIMARY KEY, name TEXT)")
            things = "SELECT id, name FROM _terms WHERE home = ? ORDER BY id"
            self.connection.execute(f"INSERT INTO {home} {things}", (home,))
        placed = "UPDATE _triples SET place = ? WHERE home = ? AND predicate = ? AND tag = ?"
        for home, p, tag, triples, subjects, *kind in self.connection.execute(
            PREDICATE_GROUPS_SQL
        ).fetchall():
            label = make_identifier(f"{self.names[URIRef(p)]} {tag}", labels[home])
            several, wide = triples > subjects, len(columns[home]) >= MAX_TABLE_COLUMNS
            table = make_identifier(f"{home} {label}", self.used_identifiers) if several else home
            place = f"{table}.{label}" if several or not wide else TOO_WIDE_REASON
            self.connection.execute(placed, (place, home, p, tag))
            own = self._describe_columns(
                label, place, p, " NOT NULL" * (several or triples == sizes[home]), kind
            )
            if several:
                of = Column(f"{home}_" if label == home else home, "TEXT NOT NULL", home)
                values = (
                    f"SELECT subject, {', '.join(own)} FROM _triples WHERE place = ? ORDER BY n"
                )
                created = ", ".join(
                    f"{column.name} {column.type}" for column in (of, *own.values())
                )
                self.connection.execute(f"CREATE TABLE {table} ({created})")
                self.connection.execute(f"INSERT INTO {table} {values}", (place,))
                yield Table(table, triples, (of, *own.values()))
            elif not wide:
                columns[home] += own.values()
                for source, column in own.items():
                    value = f"SELECT {source} FROM _triples WHERE subject = {home}.id AND place = ?"
                    self.connection.execute(
                        f"ALTER TABLE {home} ADD COLUMN {column.name} {column.type.split()[0]}"
                    )
                    self.connection.execute(
                        f"UPDATE {home} SET {column.name} = ({value})", (place,)
                    )
        classes = set().union(*self.types_by_term.values())
        for home, of_class in self.class_by_table.items():
            yield Table(
                home, sizes[home], tuple(columns[home]), of_class if of_class in classes else None
            )

    def _describe_columns(
        self,
        column_name: str,
        location: str,
        predicate: str,
        not_null: str,
        statistics: Sequence[Any],
    ) -> dict[str, Column]:
        """The columns that hold the values of a predicate, by what of a triple is in them."""
        numbers, unit, low, high, ranges, whole, linked, targets, target = statistics
        iri, number = URIRef(predicate), ("INTEGER" if whole else "REAL") + not_null
        if numbers and not ranges:
            comment = f"{low} … {high}" + (f", in {quote_text(unit)}" if unit else "")
            return {"low": Column(column_name, number, "", comment, iri)}
        if linked and targets == 1:  # ids of things that the graph says nothing else of do not join
            return {"cell": Column(column_name, "TEXT" + not_null, target, "", iri)}
        sql = "SELECT cell FROM _triples WHERE place = ? GROUP BY cell ORDER BY count(*) DESC, cell LIMIT ?"
        shown = [
            quote_text(cell)
            for (cell,) in self.connection.execute(sql, (location, MAX_LISTED_VALUES + 1))
        ]
        comment = (
            f"one of {', '.join(shown)}"
            if len(shown) <= MAX_LISTED_VALUES
            else f"such as {', '.join(shown[:2])}"
        )
        comment = f"ids of {target}; {comment}" if target else comment
        columns = {"cell": Column(column_name, "TEXT" + not_null, "", comment, iri)}
        if numbers:
            in_unit = f"in {quote_text(unit)}" if unit else ""
            columns |= {
                end: Column(f"{column_name}_{end}", number, "", in_unit, iri)
                for end in ("low", "high")
            }
        return columns

    # --- passages

    def write_passages(self, *, reverse_facts: bool) -> int:
        """Put every triple into words, with ``reverse_facts`` also at its object; the number of passages.

        A blank node stands in brackets where a fact leads to it; one that none leads to has its own passage.
        """
        own, leading = defaultdict[Term, list[int]](list), defaultdict[Term, list[int]](list)
        for n, (s, _, o) in enumerate(self.triples):
            own[s].append(n)
            leading[o].append(n)
        described, number = set[int](), 0
        telling = [self.names[p] for p in self.vocabulary.descriptions if p in self.names]
        first = {"is a": 0, **{f"has {name}": 1 for name in telling}}

        def within(thing: Term) -> bool:
            """Whether it only holds the parts of a value: a blank node, or a small thing without a label."""
            small = 0 < len(own.get(thing, ())) <= MAX_NESTED_TRIPLES and len(leading[thing]) == 1
            labelled = any(self.triples[n][1] in self.vocabulary.labels for n in own.get(thing, ()))
            return isinstance(thing, BNode) or (
                small and not labelled and thing in self.table_by_term
            )

        def fact(n: int, seen: frozenset[Term]) -> tuple[str, str, list[int]]:
            s, p, o = self.triples[n]
            if p in self.vocabulary.labels and str(o).strip() == self.names.get(s):
                return "", "", [n]  # the title says it
            relation = "is a" if p in self.vocabulary.types else f"has {self._relation_text(p)}"
            if o in seen or not within(o):
                return relation, self._term_text(o), [n]
            inner = [fact(each, seen | {o}) for each in own[o]]
            parts = "; ".join(
                f"{relation.removeprefix('has ')} {other}" for relation, other, _ in inner
            )
            return relation, f"({parts})", [n, *(place for *_, places in inner for place in places)]

        ends = (
            end
            for end in (*own, *(leading if reverse_facts else ()))
            if not isinstance(end, Literal)
        )
        for thing in sorted(dict.fromkeys(ends), key=within):
            node = within(thing)
            facts = [
                fact(n, frozenset([thing]))
                for n in own.get(thing, ())
                if not (node and n in described)
            ]
            facts.sort(key=lambda fact: first.get(fact[0], len(first)))
            if reverse_facts and not node and thing not in self.schema_terms:
                leads = ((n, *self.triples[n]) for n in leading.get(thing, ()))
                facts += [
                    (f"is {self._relation_text(p)} of", self._term_text(s), [n])
                    for n, s, p, _ in leads
                    if not isinstance(s, BNode) and p not in self.vocabulary.types
                ]
            name = self._term_text(thing)
            for text, places in _split_into_passages(name, facts):
                described.update(places)
                title = (
                    name if name == self.id_by_term[thing] else f"{name} [{self.id_by_term[thing]}]"
                )
                self.connection.execute(
                    "INSERT INTO _passages VALUES (?, ?, ?)", (number, title, text)
                )
                searched = (number, normalize(title), normalize(text))
                self.connection.execute(
                    "INSERT INTO _words (rowid, title, key) VALUES (?, ?, ?)", searched
                )
                self.connection.executemany(
                    "INSERT INTO _facts VALUES (?, ?)", ((number, n) for n in places)
                )
                number += 1
        return number

    def _relation_text(self, p: URIRef) -> str:
        return self.names[p].removeprefix("has ")

    def _term_text(self, term: Term) -> str:
        if isinstance(term, Literal):
            return f"{term} ({term.language})" if term.language else str(term)
        return self.names.get(term) or self.id_by_term[term]


def _split_into_passages(
    name: str, facts: Sequence[tuple[str, str, list[int]]]
) -> Iterator[tuple[str, list[int]]]:
    """Sentences about a thing in passages of some length, with the triples in them."""
    by = defaultdict[str, list[tuple[str, list[int]]]](list)
    for relation, other, places in facts:
        by[relation].append((other, places))
    text, inside = "", [place for _, places in by.pop("", ()) for place in places]
    for relation, some in by.items():
        for start in range(0, len(some), MAX_OBJECTS_PER_SENTENCE):
            part = some[start : start + MAX_OBJECTS_PER_SENTENCE]
            sentence = f"{relation} {', '.join(other for other, _ in part)}."
            if text and len(text) + len(sentence) > MAX_PASSAGE_CHARS:
                yield text, inside
                text, inside = "", []
            text += f" It {sentence}" if text else f"{name} {sentence}"
            inside = [*inside, *(place for _, places in part for place in places)]
    if inside:
        yield text or name, inside


def _parse_quantity(value: Term) -> tuple[float, float, str] | None:
    """The ends of a number or a range, and its unit; None for a text, or what SQLite has no number for."""
    if (
        not isinstance(value, Literal)
        or value.language
        or value.datatype not in (None, XSD.string, *NUMERIC_DATATYPES)
    ):
        return None
    if parts := QUANTITY.fullmatch(value):
        low, high = (
            float(end) if "." in end else int(end) for end in (parts[1], parts[2] or parts[1])
        )
        return (low, high, parts[3] or "") if -(2**63) < low <= high < 2**63 else None
    with suppress(ValueError):
        if (
            value.datatype in NUMERIC_DATATYPES and abs(number := float(value)) < 2**63
        ):  # not NaN either
            return number, number, ""
    return None


def _find_root_class(kind: URIRef, parents: Mapping[Term, URIRef]) -> URIRef:
    """The highest superclass; of a circle, its least."""
    seen = {kind}
    while (kind := parents.get(kind, kind)) not in seen:
        seen.add(kind)
    return min(seen) if kind in parents else kind


def _make_unique(text: str, used: set[str]) -> str:
    """The text, numbered if it is taken; SQL does not tell letter case in names."""
    base, number = text.removesuffix("_1"), 1
    while text.casefold() in used:
        number += 1
        text = f"{base}_{number}"
    used.add(text.casefold())
    return text


def make_identifier(text: str, used: set[str]) -> str:
    """A name for a table or column that needs no quotes, not even if it is a word of SQL."""
    name = re.sub(r"\W+", "_", text.lower()).strip("_")[:MAX_IDENTIFIER_CHARS] or "x"
    for candidate in (name, f"{name}_", f"x_{name}"):
        with closing(sqlite3.connect(":memory:")) as scratch, suppress(sqlite3.Error):
            scratch.execute(f"CREATE TABLE {candidate} ({candidate} TEXT)")
            return _make_unique(candidate, used)
    return _make_unique("x", used)
