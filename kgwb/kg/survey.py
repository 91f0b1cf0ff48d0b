"""A survey of a graph: its classes, the predicates that their instances really use, and what the values are.

Everything comes from some twenty aggregate queries, none of which depends on the question. A survey is kept
in the cache folder, by the graph's identity.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from rdflib import OWL, RDFS, BNode, Literal, URIRef

from kgwb import disk
from kgwb.errors import GraphError
from kgwb.flow import Iri, Term, from_data, to_data
from kgwb.kg.base import SCHEMA_CLASSES, WIKIBASE, Graph
from kgwb.kg.queries import counted, describe
from kgwb.kg.sparql import n3, writable
from kgwb.kg.text import local_name

LARGE, SAMPLE = 5_000_000, 10_000
"""Of a graph of more triples, or of one that does not count them, so many typed things are looked at."""
FEW = 12
"""A predicate of a class with at most so many different values has all of them in the survey."""
KEPT_S = 86_400.0
"""How long the survey of an endpoint is kept; a file is known by its content."""
VERSION = 1
UNTYPED = URIRef("urn:kgwb:without-a-class")
"""Stands in queries for the class of things that have none."""


@dataclass(frozen=True, slots=True)
class Values:
    """The values of a predicate that are of one sort."""

    sort: str
    """ "class", "IRI" (without a class), "node" (blank), or the datatype's local name; text has its tag."""
    of: Iri | None
    """The class, or the datatype."""
    triples: int
    distinct: int
    examples: tuple[Term, ...]
    """Of numbers and dates first the least and the greatest."""
    whole: bool = False
    """Whether the examples are all values there are."""


@dataclass(frozen=True, slots=True)
class Property:
    """A predicate as the instances of one class use it."""

    predicate: Iri
    things: int
    """Instances that have it."""
    triples: int
    values: tuple[Values, ...] = ()
    inner: tuple[Property, ...] = ()
    """The predicates of the nodes that it leads to, where these only hold structure."""
    unnamed: int = 0
    """Distinct IRIs among its values that have no label."""


@dataclass(frozen=True, slots=True)
class Class:
    """A class with what its instances use; without an IRI, the things that have no class."""

    iri: Iri | None
    name: str
    size: int
    """Its own instances."""
    total: int
    """Its instances with those of its subclasses."""
    parents: tuple[Iri, ...] = ()
    properties: tuple[Property, ...] = ()


@dataclass(frozen=True, slots=True)
class Survey:
    """What there is in a graph. None is what it did not count."""

    triples: int | None
    things: int | None
    predicates: int | None
    classes: tuple[Class, ...]
    """The largest first; superclasses are there, though they may have no instances of their own."""
    unlabelled: int | None
    """Things without a label."""
    languages: tuple[tuple[str, int], ...]
    """How many things have a label in each language; "" is none."""
    unused: tuple[Iri, ...] = ()
    """Predicates and classes that are declared, and of which there is no triple or instance."""
    both_ways: tuple[tuple[Iri, int, int], ...] = ()
    """Predicates within one class: their triples, and how many of them are also asserted in reverse."""
    notes: tuple[tuple[Iri, str], ...] = ()
    """What the graph's own descriptions say of predicates and classes."""
    names: tuple[tuple[Iri, str], ...] = ()
    """What IRIs in it are called."""
    sampled: bool = False
    queries: int = 0
    seconds: float = 0.0

    def __str__(self) -> str:
        of = "a sample" if self.sampled or self.triples is None else f"{self.triples:,} triples"
        return f"{sum(c.iri is not None for c in self.classes)} classes in {of}"

    def __repr__(self) -> str:
        return f"Survey({self})"


# --- keeping


def survey(kg: Graph, only: Sequence[URIRef] = ()) -> Survey:
    """The survey of a graph, kept; with ``only``, a fresh one of some classes of a large graph.

    A query that the graph refuses leaves its part out. Raises GraphError if nothing can be asked.
    """
    if only:
        return _Surveyor(kg, only).look()
    digest = hashlib.sha256(f"{VERSION} {kg.identity} {kg.vocabulary!r}".encode()).hexdigest()
    path = disk.cache_dir() / f"survey-{digest[:32]}.json"
    with suppress(OSError, ValueError):
        fresh = not kg.remote or time.time() - path.stat().st_mtime < KEPT_S
        if fresh and (known := from_data(json.loads(disk.read_text(path)), Survey)):
            return known  # type: ignore[no-any-return]
    made = _Surveyor(kg).look()
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        disk.replace(path, [json.dumps(to_data(made))], "surrogatepass")
    return made


# --- looking


class _Surveyor:
    """Asks a graph everything that its survey holds."""

    def __init__(self, kg: Graph, only: Sequence[URIRef] = ()) -> None:
        self.kg, self.only = kg, only
        self.queries, self.refused = 0, ""
        type_predicates = self._there(kg.vocabulary.types)
        self.types = "|".join(f"<{iri}>" for iri in type_predicates) or "<urn:kgwb:none>"
        self.meta = self._meta()
        self.labels = "|".join(f"<{iri}>" for iri in self._there(kg.vocabulary.labels)) or "<urn:kgwb:none>"

    def look(self) -> Survey:
        started = time.perf_counter()
        triples = self.number("SELECT (COUNT(*) AS ?n) WHERE { ?s ?p ?o }")
        if triples is None and self.refused and not self.rows("SELECT ?s WHERE { ?s ?p ?o } LIMIT 1"):
            raise GraphError(self.refused)
        large = triples is None or triples > LARGE
        schema = self._schema()
        subject = f"?v ({self.types}) ?t" if large else "?v ?any ?value"
        things = f"{{ SELECT DISTINCT ?v WHERE {{ {subject} FILTER(isIRI(?v)) }}{_limit(large)} }}"
        number = self.number(_count(things))
        number = None if number is None else number - len(schema)
        typed = f"?v ({self.types}) ?t FILTER(isIRI(?v))"
        some = (self.number(_count(typed)) or 0) - (self.number(_count(f"{_these(schema)} {typed}")) or 0)
        untyped = not large and not self.only and (number or 0) > some
        bare = f"{things} FILTER NOT EXISTS {{ ?v ({self.types}) ?t }} {_none_of(schema)}"
        self.of = self._instances(large, bare if untyped else "")
        sizes = self._sizes()
        parents = self._parents()
        used: dict[URIRef, list[Property]] = self._properties()
        iris = list(dict.fromkeys((*sizes, *_ancestors(sizes, parents))))
        unused = () if large else self._unused({*iris})
        both = () if large else self._both_ways(used)
        shown = {iri for iri in iris if iri != UNTYPED} | {*unused} | {*_iris_of(used)}
        names = self._names(sorted(shown))
        totals = self._totals(sizes, parents)
        classes = [
            Class(
                None if iri == UNTYPED else iri,
                "without a class" if iri == UNTYPED else names.get(iri) or local_name(iri),
                sizes.get(iri, 0),
                totals.get(iri, 0),
                tuple(sorted(parents.get(iri, ()))),
                tuple(sorted(used.get(iri, ()), key=lambda p: (-p.things, p.predicate))),
            )
            for iri in iris
        ]
        predicates = "SELECT (COUNT(DISTINCT ?p) AS ?n) WHERE { ?s ?p ?o }"
        predicates = (
            predicates if not large else _count(f"{{ SELECT (?p AS ?v) {{ ?s ?p ?o }} LIMIT {SAMPLE} }}")
        )
        labelled, languages = self._labels(things if large else "", schema)
        described = [*_predicates_of(used), *(iri for iri in iris if iri != UNTYPED), *unused]
        return Survey(
            triples=triples,
            things=number,
            predicates=self.number(predicates),
            classes=tuple(sorted(classes, key=lambda c: (c.iri is None, -c.total, str(c.iri)))),
            unlabelled=None if number is None else number - labelled,
            languages=languages,
            unused=unused,
            both_ways=both,
            notes=self._notes(described),
            names=tuple(sorted(names.items())),
            sampled=large,
            queries=self.queries,
            seconds=round(time.perf_counter() - started, 3),
        )

    # --- asking

    def rows(self, query: str) -> tuple[tuple[Any, ...], ...]:
        """The rows; none where the graph refuses."""
        self.queries += 1
        try:
            return self.kg.select(query).rows
        except GraphError as error:
            self.refused = self.refused or error.message
            return ()

    def number(self, query: str) -> int | None:
        rows = self.rows(query)
        return counted(rows[0][0]) if rows else None

    def _meta(self) -> list[URIRef]:
        """Classes of classes and predicates that the graph uses."""
        rows = self.rows(
            f"SELECT ?c WHERE {{ VALUES ?c {{ {' '.join(map(n3, SCHEMA_CLASSES))} }}"
            f" FILTER EXISTS {{ ?v ({self.types}) ?c }} }}"
        )
        return [c for (c,) in rows]

    def _there(self, predicates: Iterable[URIRef]) -> list[URIRef]:
        values = " ".join(map(n3, predicates))
        rows = self.rows(f"SELECT ?p WHERE {{ VALUES ?p {{ {values} }} FILTER EXISTS {{ ?s ?p ?o }} }}")
        return [iri for iri in predicates if (iri,) in rows]

    def _schema(self) -> list[URIRef]:
        """Classes and predicates that something is said of: they are no things."""
        rows = self.rows(
            f"SELECT DISTINCT ?v WHERE {{ {{ SELECT DISTINCT ?v WHERE {{ ?i ({self.types}) ?v }} LIMIT {SAMPLE} }}"
            f" FILTER EXISTS {{ ?v ?a ?b }} }}"
        )
        rows += self.rows(
            f"SELECT DISTINCT ?v WHERE {{ VALUES ?s {{ {' '.join(map(n3, self.meta))} }} ?v ({self.types}) ?s }}"
        )
        rows += self.rows(
            f"SELECT DISTINCT ?v WHERE {{ {{ SELECT DISTINCT ?v WHERE {{ ?x ?v ?y }} LIMIT {SAMPLE} }}"
            f" FILTER EXISTS {{ ?v ?a ?b }} }}"
        )
        return sorted({v for (v,) in rows if isinstance(v, URIRef) and writable(v)})

    def _labels(self, things: str, schema: Sequence[URIRef]) -> tuple[int, tuple[tuple[str, int], ...]]:
        """How many things have a label, in any language and in each."""
        by_tag: dict[str, int] = defaultdict(int)
        every = 0
        for pattern, sign in ((things, 1), (_these(schema), -1)):
            label = f"{pattern} ?v ({self.labels}) ?label FILTER(isIRI(?v))"
            every += sign * (self.number(_count(label)) or 0)
            for tag, n in self.rows(
                f"SELECT ?tag (COUNT(DISTINCT ?v) AS ?n) WHERE {{ {label} BIND(LANG(?label) AS ?tag) }} GROUP BY ?tag"
            ):
                by_tag[str(tag or "")] += sign * counted(n)
        tags = sorted((item for item in by_tag.items() if item[1] > 0), key=lambda item: (-item[1], item[0]))
        return every, tuple(tags[:12])

    def _instances(self, large: bool, bare: str) -> str:
        """The pattern that binds every thing ?v to its classes ?c."""
        meta = f" && ?c NOT IN ({', '.join(map(n3, self.meta))})" if self.meta else ""
        these = f"VALUES ?c {{ {' '.join(map(n3, self.only))} }} " if self.only else ""
        typed = f"{these}?v ({self.types}) ?c FILTER(isIRI(?c){meta})"
        if large or self.only:
            return f"{{ SELECT ?v ?c WHERE {{ {typed} }} LIMIT {SAMPLE} }}"
        if bare:
            untyped = f"{{ SELECT DISTINCT ?v WHERE {{ {bare} }} }} BIND({n3(UNTYPED)} AS ?c)"
            return f"{{ {typed} }} UNION {{ {untyped} }}"
        return typed

    def _sizes(self) -> dict[URIRef, int]:
        rows = self.rows(
            f"SELECT ?c (COUNT(DISTINCT ?v) AS ?n) WHERE {{ {self._in()} }} GROUP BY ?c ORDER BY DESC(?n) ?c"
        )
        return {c: counted(n) for c, n in rows if isinstance(c, URIRef) and writable(c)}

    @property
    def said(self) -> str:
        """What keeps the types of a thing out of its properties."""
        return f"FILTER(?p NOT IN ({self.types.replace('|', ', ')}))"

    def _in(self) -> str:
        return f"{{ {self.of} }}"

    def _parents(self) -> dict[URIRef, set[URIRef]]:
        rows = self.rows(
            f"SELECT ?c ?d WHERE {{ ?c {n3(RDFS.subClassOf)} ?d FILTER(isIRI(?c) && isIRI(?d)) }}"
        )
        parents = defaultdict(set)
        for child, parent in rows:
            if child != parent and parent not in (OWL.Thing, RDFS.Resource):
                parents[child].add(parent)
        return parents

    def _totals(self, sizes: dict[URIRef, int], parents: dict[URIRef, set[URIRef]]) -> dict[URIRef, int]:
        """Instances with those of subclasses; their sum, unless the graph types them as both."""
        above = defaultdict(set)
        for iri in sizes:
            for parent in _ancestors([iri], parents):
                above[parent].add(iri)
        one = next(((child, up) for child in sizes for up in parents.get(child, ()) if up in sizes), None)
        inferred = one and self.rows(
            f"SELECT ?v WHERE {{ ?v ({self.types}) {n3(one[0])}, {n3(one[1])} }} LIMIT 1"
        )
        return {
            iri: sizes.get(iri, 0) if inferred and iri in sizes else
            sizes.get(iri, 0) + sum(sizes[child] for child in above[iri] - {iri})
            for iri in {*sizes, *above}
        }  # fmt: skip

    def _properties(self) -> dict[URIRef, list[Property]]:
        of = self._in()
        values: dict[tuple[Any, ...], list[Values]] = defaultdict(list)
        for c, p, k, blank, n, d, some in self.rows(
            f"SELECT ?c ?p ?k ?blank (COUNT(*) AS ?n) (COUNT(DISTINCT ?o) AS ?d)"
            f" (SAMPLE(?o) AS ?some) WHERE {{ {of} ?v ?p ?o FILTER(!isLiteral(?o)) {self.said}"
            f" OPTIONAL {{ ?o ({self.types}) ?k }} BIND(isBlank(?o) AS ?blank) }} GROUP BY ?c ?p ?k ?blank"
        ):
            node = isinstance(some, BNode) or str(blank).lower() in ("true", "1")
            sort = "class" if k is not None else "node" if node else "IRI"
            shown = () if node else _distinct(some)
            values[c, p].append(Values(sort, k, counted(n), counted(d), shown))
        for c, p, *rest in self._literals(of, f"?v ?p ?o {self.said}", "?c ?p"):
            values[c, p].append(_literals(*rest))
        inner = self._inner(of) if any(v.sort == "node" for each in values.values() for v in each) else {}
        few = self._few(values)
        loose = {p for (_, p), sorts in values.items() if any(v.sort == "IRI" for v in sorts)}
        unnamed = {
            (c, p): counted(n)
            for c, p, n in self.rows(
                f"SELECT ?c ?p (COUNT(DISTINCT ?o) AS ?n) WHERE {{ VALUES ?p {{ {' '.join(map(n3, loose))} }} {of}"
                f" ?v ?p ?o FILTER(isIRI(?o)) FILTER NOT EXISTS {{ ?o ({self.labels}) ?label }} }} GROUP BY ?c ?p"
            )
            if loose
        }
        used: dict[URIRef, list[Property]] = defaultdict(list)
        for c, p, things, n in self.rows(
            f"SELECT ?c ?p (COUNT(DISTINCT ?v) AS ?things) (COUNT(*) AS ?n) WHERE {{"
            f" {of} ?v ?p ?o {self.said} }} GROUP BY ?c ?p"
        ):
            if isinstance(p, URIRef) and writable(p):
                sorts = tuple(_told(each, few.get((c, p))) for each in _largest(values[c, p]))
                used[c].append(
                    Property(
                        p,
                        counted(things),
                        counted(n),
                        sorts,
                        tuple(inner.get((c, p), ())),
                        unnamed.get((c, p), 0),
                    )
                )
        return used

    def _literals(self, of: str, pattern: str, keys: str) -> tuple[tuple[Any, ...], ...]:
        return self.rows(
            f"SELECT {keys} ?type ?tag (COUNT(*) AS ?n) (COUNT(DISTINCT ?o) AS ?d) (MIN(?o) AS ?least)"
            f" (MAX(?o) AS ?most) (SAMPLE(?o) AS ?some) WHERE {{ {of} {pattern} FILTER(isLiteral(?o))"
            f" BIND(DATATYPE(?o) AS ?type) BIND(LANG(?o) AS ?tag) }} GROUP BY {keys} ?type ?tag"
        )

    def _inner(self, of: str) -> dict[tuple[Any, Any], list[Property]]:
        """The predicates of blank nodes without a class, by the class and predicate that lead to them."""
        inner: dict[tuple[Any, Any], dict[Any, list[Values]]] = defaultdict(lambda: defaultdict(list))
        nodes = f"?v ?p ?b FILTER(isBlank(?b)) ?b ?q ?o FILTER NOT EXISTS {{ ?b ({self.types}) ?k }}"
        for c, p, q, *rest in self._literals(of, nodes, "?c ?p ?q"):
            inner[c, p][q].append(_literals(*rest))
        for c, p, q, n, d, least, some in self.rows(
            f"SELECT ?c ?p ?q (COUNT(*) AS ?n) (COUNT(DISTINCT ?o) AS ?d) (MIN(STR(?o)) AS ?least)"
            f" (SAMPLE(?o) AS ?some) WHERE {{ {of} {nodes} FILTER(isIRI(?o)) }} GROUP BY ?c ?p ?q"
        ):
            shown = _distinct(URIRef(least), some)
            inner[c, p][q].append(
                Values("IRI", None, counted(n), counted(d), shown, counted(d) <= len(shown))
            )
        return {
            key: [
                Property(q, sum(v.triples for v in sorts), sum(v.triples for v in sorts), tuple(sorts))
                for q, sorts in sorted(by.items())
            ]
            for key, by in inner.items()
        }

    def _few(self, values: dict[tuple[Any, ...], list[Values]]) -> dict[tuple[Any, Any], list[Term]]:
        """All values of the predicates that have few, classes apart."""
        pairs = [
            (c, p)
            for (c, p), sorts in values.items()
            if sum(v.distinct for v in sorts) <= FEW and not any(v.sort == "node" for v in sorts)
            and any(v.distinct < v.triples for v in sorts) and c != UNTYPED
        ]  # fmt: skip
        few: dict[tuple[Any, Any], list[Term]] = defaultdict(list)
        for start in range(0, len(pairs), 300):
            these = " ".join(f"({n3(c)} {n3(p)})" for c, p in pairs[start : start + 300])
            for c, p, o in self.rows(
                f"SELECT DISTINCT ?c ?p ?o WHERE {{ VALUES (?c ?p) {{ {these} }}"
                f" ?v ({self.types}) ?c . ?v ?p ?o }}"
            ):
                few[c, p].append(o)
        return few

    def _unused(self, classes: set[URIRef]) -> tuple[URIRef, ...]:
        schema = " ".join(n3(iri) for iri in self.meta if not iri.startswith(WIKIBASE))
        rows = self.rows(
            f"SELECT DISTINCT ?p WHERE {{ VALUES ?k {{ {schema} }} ?p ({self.types}) ?k FILTER(isIRI(?p))"
            f" FILTER NOT EXISTS {{ ?s ?p ?o }} FILTER NOT EXISTS {{ ?v ({self.types}) ?p }} }}"
        )
        return tuple(sorted({p for (p,) in rows} - classes))

    def _both_ways(self, used: dict[URIRef, list[Property]]) -> tuple[tuple[URIRef, int, int], ...]:
        within = {
            p.predicate for c, properties in used.items() for p in properties for v in p.values if v.of == c
        }
        if not within:
            return ()
        these = f"VALUES ?p {{ {' '.join(map(n3, sorted(within)))} }}"
        all_of = dict(self.rows(f"SELECT ?p (COUNT(*) AS ?n) WHERE {{ {these} ?a ?p ?b }} GROUP BY ?p"))
        both = dict(
            self.rows(f"SELECT ?p (COUNT(*) AS ?n) WHERE {{ {these} ?a ?p ?b . ?b ?p ?a }} GROUP BY ?p")
        )
        return tuple((p, counted(n), counted(both.get(p, 0))) for p, n in sorted(all_of.items()))

    def _notes(self, iris: Iterable[URIRef]) -> tuple[tuple[URIRef, str], ...]:
        self.queries += 1
        try:
            described = describe(self.kg, list(dict.fromkeys(filter(writable, iris))))
        except GraphError:
            return ()
        return tuple((iri, known.description) for iri, known in described.items() if known.description)

    def _names(self, iris: Sequence[URIRef]) -> dict[URIRef, str]:
        self.queries += 1
        with suppress(GraphError):
            return dict(self.kg.names(iris)) if iris else {}
        return {}


def _count(pattern: str) -> str:
    return f"SELECT (COUNT(DISTINCT ?v) AS ?n) WHERE {{ {pattern} }}"


def _these(iris: Sequence[URIRef]) -> str:
    return f"VALUES ?v {{ {' '.join(map(n3, iris))} }}"


def _none_of(iris: Sequence[URIRef]) -> str:
    return f"FILTER(?v NOT IN ({', '.join(map(n3, iris))}))" if iris else ""


def _limit(large: bool) -> str:
    return f" LIMIT {SAMPLE}" if large else ""


def _ancestors(iris: Iterable[URIRef], parents: dict[URIRef, set[URIRef]]) -> list[URIRef]:
    found: dict[URIRef, None] = {}
    left = [parent for iri in iris for parent in sorted(parents.get(iri, ()))]
    for iri in left:
        if iri not in found:
            found[iri] = None
            left += sorted(parents.get(iri, ()))
    return list(found)


def _literals(type_: Any, tag: Any, n: Any, d: Any, least: Any, most: Any, some: Any) -> Values:
    sort = f"text@{tag}" if str(tag or "") else local_part(type_ or "string")
    return Values(
        sort, URIRef(type_) if type_ else None, counted(n), counted(d), _distinct(least, most, some)
    )


def local_part(iri: str) -> str:
    return iri[max(iri.rfind("/"), iri.rfind("#")) + 1 :]


def _distinct(*terms: Term | None) -> tuple[Term, ...]:
    return tuple(dict.fromkeys(term for term in terms if term is not None and str(term)))


def _largest(values: Iterable[Values]) -> list[Values]:
    return sorted(values, key=lambda v: (-v.triples, str(v.of)))


def _told(values: Values, few: list[Term] | None) -> Values:
    """With all values where there are few of them."""
    if few is None:
        return replace(values, whole=values.distinct <= len(values.examples) and values.sort != "node")
    mine = [term for term in few if _sort(term) == (values.sort if values.sort != "class" else "IRI")]
    fits = len(mine) == values.distinct
    return replace(values, examples=tuple(sorted(mine, key=str)), whole=True) if fits else values


def _sort(term: Term) -> str:
    if isinstance(term, Literal):
        return f"text@{term.language}" if term.language else local_part(term.datatype or "string")
    return "IRI" if isinstance(term, URIRef) else "node"


def _predicates_of(used: dict[URIRef, list[Property]]) -> Iterator[URIRef]:
    for properties in used.values():
        for each in properties:
            yield each.predicate
            yield from (inner.predicate for inner in each.inner)


def _iris_of(used: dict[URIRef, list[Property]]) -> Iterator[URIRef]:
    """Every IRI that a survey shows."""
    for properties in used.values():
        for each in (*properties, *(inner for p in properties for inner in p.inner)):
            yield each.predicate
            for values in each.values:
                yield from (term for term in (values.of, *values.examples) if isinstance(term, URIRef))


# --- questions to try


class Try(NamedTuple):
    """A question that the graph may answer, with an answer that would be right, if one is known."""

    question: str
    answer: Term | None
