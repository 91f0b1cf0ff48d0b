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

from kgwb.kg.base import SCHEMA_CLASSES, SCHEMA_SPACES, Vocabulary
from kgwb.kg.survey import PLAIN
from kgwb.kg.survey_text import quoted
from kgwb.kg.text import normal
from kgwb.systems.ragonite.records import Column, Table
from kgwb.terms import Term, Triple, local_part, term_to_data

SCHEMA, WIDE = "it describes a class or a predicate", "its table has too many columns"
MOST_COLUMNS, LONGEST, FEW, LETTERS, OBJECTS, SMALL = 400, 60, 8, 900, 12, 4
"""Columns of a table, letters of a name, values that are all shown; of a passage letters, things, parts."""
NUMERIC = {
    XSD[name]
    for name in "integer int long short byte decimal double float gYear nonNegativeInteger".split()
}
Names = Mapping[Term, str]
N = r"[-+]?(?:0|[1-9]\d*)(?:\.\d+)?"
MEASURE = re.compile(rf"({N})(?:\s?[-–]\s?({N}))?\s?([^\W\d_]{{1,6}}|[%°€$£])?")
"""A number or a range, with a unit; leading zeros make a text, as in 007."""
HIDDEN = """
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
GROUPS = """
SELECT home, predicate, tag, count(*), count(DISTINCT subject),
  count(low) = count(*) AND count(DISTINCT unit) = 1
  AND (max(unit) = '' OR count(*) > 1), max(unit), min(low), max(high), max(low <> high),
  sum(typeof(low) = 'integer' AND typeof(high) = 'integer') = count(*),
  count(object) = count(*), count(DISTINCT target), group_concat(DISTINCT target)
FROM _triples WHERE home IS NOT NULL AND place IS NULL
GROUP BY home, predicate, tag ORDER BY home, count(DISTINCT subject) DESC, predicate, tag
"""
"""What the values of a predicate are, by the table of their subjects and by language."""


class Induction:
    """Writes the tables and passages of some triples into a database."""

    def __init__(
        self, triples: list[Triple], names: Names, vocabulary: Vocabulary, db: Connection
    ) -> None:
        self.triples, self.names, self.vocabulary, self.db = triples, names, vocabulary, db
        self.types: dict[Term, set[URIRef]] = defaultdict(set)
        self.taken: set[str] = set()
        parents, leads = dict[Term, URIRef](), dict[Term, URIRef]()
        for s, p, o in triples:
            if p in vocabulary.types and isinstance(o, URIRef):
                self.types[s].add(o)
            elif p == RDFS.subClassOf and isinstance(o, URIRef) and o not in PLAIN:
                parents[s] = min(o, parents.get(s, o))
            elif isinstance(o, BNode):
                leads[o] = min(p, leads.get(o, p))
        self.schema = set[Term](p for _, p, _ in triples).union(*self.types.values())
        for thing, some in self.types.items():
            spaced = any(str(kind).startswith(SCHEMA_SPACES) for kind in some.difference(PLAIN))
            if spaced or not some.isdisjoint(SCHEMA_CLASSES):  # it is itself a class or a predicate
                self.schema.add(thing)
        # The highest class of each thing, of several the commonest; of a node without, what leads to it
        things = [s for s in dict.fromkeys(s for s, _, _ in triples) if s not in self.schema]
        kinds = {s: self.types.get(s, set()).difference(PLAIN) for s in things}
        tops = {s: {_top(kind, parents) for kind in some} for s, some in kinds.items()}
        common = Counter(top for some in tops.values() for top in some)
        homes = {
            s: min(tops[s], key=lambda top: (-common[top], top), default=leads.get(s))
            for s in things
        }
        sizes = Counter(homes.values())
        order = sorted(sizes, key=lambda home: (-sizes[home], str(home)))
        self.of = {identifier(names[home] if home else "thing", self.taken): home for home in order}
        tables = {home: table for table, home in self.of.items()}
        self.home = {term: tables[home] for term, home in homes.items()}
        """The table that a subject is in."""
        self.ids: dict[Term, str] = {}
        """A short one for each IRI and node, the same each time; for what is in no table its name."""
        ids, nodes = set[str](), defaultdict[BNode, list[str]](list)
        ends = {end for triple in triples for end in triple if isinstance(end, URIRef)}
        for iri in sorted(ends, key=lambda iri: (iri not in self.home, iri)):
            text, blank = (local_part(iri) or iri, "_") if iri in self.home else (names[iri], " ")
            self.ids[iri] = _unique(re.sub(r"[\s,'\"]+", blank, text)[:LONGEST], ids)
        for s, p, o in triples:
            for node, other in ((s, o), (o, s)):
                if isinstance(node, BNode):
                    nodes[node].append("" if isinstance(other, BNode) else f"{p} {other}")
        for node in sorted(nodes, key=lambda node: (sorted(nodes[node]), node)):
            self.ids[node] = _unique(f"{self.home.get(node, 'node')}_1", ids)
        db.executescript(HIDDEN)
        self._write_triples()
        self.tables = tuple(sorted(self._tables(), key=lambda table: -table.rows))

    def _write_triples(self) -> None:
        typed: dict[str, set[frozenset[URIRef]]] = defaultdict(set)
        for s, table in self.home.items():
            typed[table].add(frozenset(self.types.get(s, ())))
        constant = {
            table for table, kinds in typed.items() if kinds == {frozenset([self.of[table]])}
        }
        named = ((i, self.names.get(t, i), t) for t, i in self.ids.items())
        terms = ((i, name, json.dumps(term_to_data(t)), self.home.get(t)) for i, name, t in named)
        self.db.executemany("INSERT INTO _terms VALUES (?, ?, ?, ?)", terms)
        rows = []
        for n, (s, p, o) in enumerate(self.triples):
            place: str | None = None
            home, tag = self.home.get(s), getattr(o, "language", None) or ""
            if home is None:
                place = SCHEMA
            elif p in self.vocabulary.types and home in constant:
                place = f"{home}.id"
            elif p in self.vocabulary.labels and str(o).strip() == self.names.get(s):
                place = f"{home}.name"
            measure, target = _measure(o) or (None, None, None), self.home.get(o)
            cell, value = self.ids.get(o, str(o)), json.dumps(term_to_data(o))
            rows.append(
                (
                    n,
                    self.ids[s],
                    p,
                    self.ids.get(o),
                    value,
                    tag,
                    cell,
                    *measure,
                    home,
                    target,
                    place,
                )
            )
        self.db.executemany(f"INSERT INTO _triples VALUES ({', '.join('?' * 13)})", rows)

    def _tables(self) -> Iterator[Table]:
        """Makes the tables, and gives them as the model sees them."""
        sizes = Counter(self.home.values())
        first = Column("id", "TEXT PRIMARY KEY"), Column("name", "TEXT")
        columns, labels = (
            {home: [*first] for home in self.of},
            {home: {"id", "name"} for home in self.of},
        )
        for home in self.of:
            self.db.execute(f"CREATE TABLE {home} (id TEXT PRIMARY KEY, name TEXT)")
            things = "SELECT id, name FROM _terms WHERE home = ? ORDER BY id"
            self.db.execute(f"INSERT INTO {home} {things}", (home,))
        placed = "UPDATE _triples SET place = ? WHERE home = ? AND predicate = ? AND tag = ?"
        for home, p, tag, triples, subjects, *kind in self.db.execute(GROUPS).fetchall():
            label = identifier(f"{self.names[URIRef(p)]} {tag}", labels[home])
            several, wide = triples > subjects, len(columns[home]) >= MOST_COLUMNS
            table = identifier(f"{home} {label}", self.taken) if several else home
            place = f"{table}.{label}" if several or not wide else WIDE
            self.db.execute(placed, (place, home, p, tag))
            own = self._columns(
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
                self.db.execute(f"CREATE TABLE {table} ({created})")
                self.db.execute(f"INSERT INTO {table} {values}", (place,))
                yield Table(table, triples, (of, *own.values()))
            elif not wide:
                columns[home] += own.values()
                for source, column in own.items():
                    value = f"SELECT {source} FROM _triples WHERE subject = {home}.id AND place = ?"
                    self.db.execute(
                        f"ALTER TABLE {home} ADD COLUMN {column.name} {column.type.split()[0]}"
                    )
                    self.db.execute(f"UPDATE {home} SET {column.name} = ({value})", (place,))
        classes = set().union(*self.types.values())
        for home, of_class in self.of.items():
            yield Table(
                home, sizes[home], tuple(columns[home]), of_class if of_class in classes else None
            )

    def _columns(
        self, label: str, place: str, p: str, full: str, kind: Sequence[Any]
    ) -> dict[str, Column]:
        """The columns that hold the values of a predicate, by what of a triple is in them."""
        numbers, unit, low, high, ranges, whole, linked, targets, target = kind
        iri, number = URIRef(p), ("INTEGER" if whole else "REAL") + full
        if numbers and not ranges:
            comment = f"{low} … {high}" + (f", in {quoted(unit)}" if unit else "")
            return {"low": Column(label, number, "", comment, iri)}
        if linked and targets == 1:  # ids of things that the graph says nothing else of do not join
            return {"cell": Column(label, "TEXT" + full, target, "", iri)}
        sql = "SELECT cell FROM _triples WHERE place = ? GROUP BY cell ORDER BY count(*) DESC, cell LIMIT ?"
        shown = [quoted(cell) for (cell,) in self.db.execute(sql, (place, FEW + 1))]
        comment = (
            f"one of {', '.join(shown)}" if len(shown) <= FEW else f"such as {', '.join(shown[:2])}"
        )
        comment = f"ids of {target}; {comment}" if target else comment
        columns = {"cell": Column(label, "TEXT" + full, "", comment, iri)}
        if numbers:
            in_unit = f"in {quoted(unit)}" if unit else ""
            columns |= {
                end: Column(f"{label}_{end}", number, "", in_unit, iri) for end in ("low", "high")
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
            small = 0 < len(own.get(thing, ())) <= SMALL and len(leading[thing]) == 1
            labelled = any(self.triples[n][1] in self.vocabulary.labels for n in own.get(thing, ()))
            return isinstance(thing, BNode) or (small and not labelled and thing in self.home)

        def fact(n: int, seen: frozenset[Term]) -> tuple[str, str, list[int]]:
            s, p, o = self.triples[n]
            if p in self.vocabulary.labels and str(o).strip() == self.names.get(s):
                return "", "", [n]  # the title says it
            relation = "is a" if p in self.vocabulary.types else f"has {self._relation(p)}"
            if o in seen or not within(o):
                return relation, self._name(o), [n]
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
            if reverse_facts and not node and thing not in self.schema:
                leads = ((n, *self.triples[n]) for n in leading.get(thing, ()))
                facts += [
                    (f"is {self._relation(p)} of", self._name(s), [n])
                    for n, s, p, _ in leads
                    if not isinstance(s, BNode) and p not in self.vocabulary.types
                ]
            name = self._name(thing)
            for text, places in _parted(name, facts):
                described.update(places)
                title = name if name == self.ids[thing] else f"{name} [{self.ids[thing]}]"
                self.db.execute("INSERT INTO _passages VALUES (?, ?, ?)", (number, title, text))
                searched = (number, normal(title), normal(text))
                self.db.execute("INSERT INTO _words (rowid, title, key) VALUES (?, ?, ?)", searched)
                self.db.executemany(
                    "INSERT INTO _facts VALUES (?, ?)", ((number, n) for n in places)
                )
                number += 1
        return number

    def _relation(self, p: URIRef) -> str:
        return self.names[p].removeprefix("has ")

    def _name(self, term: Term) -> str:
        if isinstance(term, Literal):
            return f"{term} ({term.language})" if term.language else str(term)
        return self.names.get(term) or self.ids[term]


def _parted(
    name: str, facts: Sequence[tuple[str, str, list[int]]]
) -> Iterator[tuple[str, list[int]]]:
    """Sentences about a thing in passages of some length, with the triples in them."""
    by = defaultdict[str, list[tuple[str, list[int]]]](list)
    for relation, other, places in facts:
        by[relation].append((other, places))
    text, inside = "", [place for _, places in by.pop("", ()) for place in places]
    for relation, some in by.items():
        for start in range(0, len(some), OBJECTS):
            part = some[start : start + OBJECTS]
            sentence = f"{relation} {', '.join(other for other, _ in part)}."
            if text and len(text) + len(sentence) > LETTERS:
                yield text, inside
                text, inside = "", []
            text += f" It {sentence}" if text else f"{name} {sentence}"
            inside = [*inside, *(place for _, places in part for place in places)]
    if inside:
        yield text or name, inside


def _measure(value: Term) -> tuple[float, float, str] | None:
    """The ends of a number or a range, and its unit; None for a text, or what SQLite has no number for."""
    if (
        not isinstance(value, Literal)
        or value.language
        or value.datatype not in (None, XSD.string, *NUMERIC)
    ):
        return None
    if parts := MEASURE.fullmatch(value):
        low, high = (
            float(end) if "." in end else int(end) for end in (parts[1], parts[2] or parts[1])
        )
        return (low, high, parts[3] or "") if -(2**63) < low <= high < 2**63 else None
    with suppress(ValueError):
        if value.datatype in NUMERIC and abs(number := float(value)) < 2**63:  # not NaN either
            return number, number, ""
    return None


def _top(kind: URIRef, parents: Mapping[Term, URIRef]) -> URIRef:
    """The highest superclass; of a circle, its least."""
    seen = {kind}
    while (kind := parents.get(kind, kind)) not in seen:
        seen.add(kind)
    return min(seen) if kind in parents else kind


def _unique(text: str, taken: set[str]) -> str:
    """The text, numbered if it is taken; SQL does not tell letter case in names."""
    base, number = text.removesuffix("_1"), 1
    while text.casefold() in taken:
        number += 1
        text = f"{base}_{number}"
    taken.add(text.casefold())
    return text


def identifier(text: str, taken: set[str]) -> str:
    """A name for a table or column that needs no quotes, not even if it is a word of SQL."""
    name = re.sub(r"\W+", "_", text.lower()).strip("_")[:LONGEST] or "x"
    for candidate in (name, f"{name}_", f"x_{name}"):
        with closing(sqlite3.connect(":memory:")) as scratch, suppress(sqlite3.Error):
            scratch.execute(f"CREATE TABLE {candidate} ({candidate} TEXT)")
            return _unique(candidate, taken)
    return _unique("x", taken)
