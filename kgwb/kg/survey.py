"""A survey of a graph: its classes, the predicates that their instances really use, and what the values are.

Everything comes from some twenty aggregate queries, none of which depends on the question. A survey is kept
in the cache folder, by the graph's identity.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from rdflib import OWL, RDF, RDFS, XSD, BNode, Literal, URIRef

from kgwb import disk
from kgwb.deprecated import renamed_names
from kgwb.errors import GraphError, GraphUnreachableError
from kgwb.kg.base import SCHEMA_NAMESPACES, WIKIBASE_NAMESPACE, Graph
from kgwb.kg.queries import describe_vertices, parse_count
from kgwb.kg.sparql import is_valid_iri, n3, values_clause
from kgwb.kg.survey_records import ClassSurvey, PropertySurvey, Survey, ValueSurvey
from kgwb.records import from_data, to_data
from kgwb.terms import Term, local_part, name_from_iri

T = TypeVar("T")
LARGE_GRAPH_TRIPLES = 5_000_000
"""Of a graph of more triples, or of one that does not count them, a sample is looked at."""
SAMPLED_INSTANCES, MAX_SAMPLED_CLASSES = 1_000, 40
"""Instances of a sample, and the classes that they are taken from: the largest."""
MAX_INNER_PREDICATES = 4
"""Predicates of a class that only holds structure."""
MAX_LISTED_VALUES = 12
"""A predicate of a class with at most so many different values has all of them in the survey."""
SURVEY_TIMEOUT_S = 120.0
"""After this time nothing more is asked, and the survey is what is known by then."""
CACHE_LIFETIME_S = 86_400.0
"""How long the survey of an endpoint is kept; a file is known by its content."""
SURVEY_VERSION = 2
UNTYPED_CLASS = URIRef("urn:kgwb:without-a-class")
"""Stands in queries for the class of things that have none."""
GENERIC_CLASSES = (OWL.Thing, RDFS.Resource, OWL.NamedIndividual)
"""Classes that say nothing."""
MISSING_PREDICATE = "<urn:kgwb:none>"
"""Stands in queries for predicates that the graph lacks."""
DISTINCT_VERTICES = "DISTINCT ?v"
MAX_SUGGESTED_CLASSES, MAX_SUGGESTED_PREDICATES = 5, 6
"""Classes, and predicates of each, that questions are made from."""


ParentClasses = Mapping[URIRef, set[URIRef]]
UsedProperties = Mapping[URIRef, Sequence[PropertySurvey]]


# --- keeping


def survey_graph(kg: Graph, only_classes: Sequence[URIRef] = ()) -> Survey:
    """The survey of a graph, kept; with ``only``, a fresh one of some classes of a large graph.

    A query that the graph refuses leaves its part out. Muted triples are in it: it is kept with the graph.
    Raises GraphError if nothing can be asked.
    """
    kg = kg.whole_graph
    if only_classes:
        return _SurveyBuilder(kg, only_classes).build()
    digest = hashlib.sha256(
        f"{SURVEY_VERSION} {kg.identity} {kg.vocabulary!r}".encode()
    ).hexdigest()
    path = disk.cache_dir() / f"survey-{digest[:32]}.json"
    with _survey_locks.setdefault(digest, Lock()):  # many questions may be asked of it at once
        with suppress(OSError, ValueError):
            written = path.stat()
            if not kg.remote or time.time() - written.st_mtime < CACHE_LIFETIME_S:
                if _loaded_surveys.get(path, (None, None))[0] != written.st_mtime_ns:
                    known = from_data(json.loads(disk.read_text(path)), Survey)
                    _loaded_surveys[path] = written.st_mtime_ns, known
                return _loaded_surveys[path][1]
        seen = _SurveyBuilder(kg).build()
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            disk.write_atomically(path, [json.dumps(to_data(seen))], "surrogatepass")
        return seen


_survey_locks: dict[str, Lock] = {}
"""By survey, so that one thread makes it and the others wait."""
_loaded_surveys: dict[Path, tuple[int, Survey]] = {}
"""Surveys that this process read, with when their files were written."""


# --- looking


class _SurveyBuilder:
    """Asks a graph everything that its survey holds."""

    def __init__(self, kg: Graph, only: Sequence[URIRef] = ()) -> None:
        self.kg, self.only_classes = kg, only
        self.queries, self.started = 0, time.perf_counter()
        self.first_error: GraphError | None = None
        self.sampling_fractions: dict[URIRef, float] = {}
        """The part of a class's instances that is in the sample, where one is looked at."""

    def build(self) -> Survey:
        """Everything that is asked."""
        triples = self.count("*", "?s ?p ?o")
        if (
            triples is None
            and self.first_error
            and not self.rows("SELECT ?s WHERE { ?s ?p ?o } LIMIT 1")
        ):
            raise self.first_error
        self.is_large = triples is None or triples > LARGE_GRAPH_TRIPLES
        self.types = self._path_over_existing(self.kg.vocabulary.types)
        self.labels = self._path_over_existing(self.kg.vocabulary.labels)
        by_predicate = {} if self.is_large else self.count_by("?p", "*", "?s ?p ?o")
        some = values_clause("?c", self.only_classes) if self.only_classes else ""
        what = "*" if self.is_large else DISTINCT_VERTICES
        sizes = self.count_by("?c", what, f"{some} ?v ({self.types}) ?c FILTER(isIRI(?c))")
        self.schema_classes = [
            c for c in sizes if str(c).startswith(SCHEMA_NAMESPACES) and c not in GENERIC_CLASSES
        ]
        for hidden in (*self.schema_classes, OWL.NamedIndividual):
            sizes.pop(hidden, None)
        schema = [] if self.is_large else self._find_schema_terms([*by_predicate, *sizes])
        things = (
            None
            if self.is_large
            else self.count(DISTINCT_VERTICES, "?v ?any ?value FILTER(isIRI(?v))")
        )
        things = None if things is None else things - len(schema)
        self._define_instances(sizes, things, schema)
        parents: dict[URIRef, set[URIRef]] = defaultdict(set)
        for child, parent in self.rows(f"SELECT ?c ?d WHERE {{ ?c {n3(RDFS.subClassOf)} ?d }}", 2):
            if child != parent and parent not in GENERIC_CLASSES:
                parents[child].add(parent)
        used = self._collect_properties()
        iris = [iri for iri in (*sizes, *_ancestors(sizes, parents)) if iri != UNTYPED_CLASS]
        unused = () if self.sampling_fractions else self._find_unused({*iris})
        shown = sorted({*iris, *unused, *_iris_of(used)})
        names = (self.try_query(lambda: dict(self.kg.names(shown))) if shown else None) or {}
        labelled, languages = self._count_labels(schema)
        totals = self._count_totals(sizes, parents)
        both_ways = self._count_symmetric_use(used, by_predicate)
        described = [
            *by_predicate,
            *(p.predicate for each in used.values() for p in each),
            *iris,
            *unused,
        ]
        described = list(dict.fromkeys(filter(is_valid_iri, described)))
        notes = self.try_query(lambda: describe_vertices(self.kg, described)) or {}
        classes = [
            _make_class_survey(
                iri, names.get(iri, ""), sizes.get(iri, 0), totals[iri], parents.get(iri, ()), used
            )
            for iri in dict.fromkeys((*sizes, *totals))
        ]
        return Survey(
            triples=triples,
            things=things,
            predicates=len(by_predicate) or None,
            classes=tuple(sorted(classes, key=lambda c: (c.iri is None, -c.total, str(c.iri)))),
            unlabelled=None if things is None or labelled is None else things - labelled,
            languages=languages,
            unused=unused,
            both_ways=both_ways,
            notes=tuple(
                (iri, notes[iri].description) for iri in sorted(notes) if notes[iri].description
            ),
            names=tuple(sorted(names.items())),
            sampled=bool(self.sampling_fractions),
            queries=self.queries,
            seconds=round(time.perf_counter() - self.started, 3),
        )

    # --- asking

    def try_query(self, ask: Callable[[], T]) -> T | None:
        """What is asked, or None where the graph refuses or the time is over."""
        if time.perf_counter() - self.started > SURVEY_TIMEOUT_S:
            return None
        self.queries += 1
        try:
            return ask()
        except GraphUnreachableError:
            raise
        except GraphError as error:
            self.first_error = self.first_error or error
            return None

    def rows(self, query: str, keys: int = 0) -> list[tuple[Any, ...]]:
        """The rows whose first ``keys`` terms are IRIs: some engines give a row for no group at all."""
        rows: Sequence[tuple[Any, ...]] = self.try_query(lambda: self.kg.select(query).rows) or ()
        return [
            row
            for row in rows
            if all(isinstance(k, URIRef) and is_valid_iri(k) for k in row[:keys])
        ]

    def select_grouped(self, by: str, numbers: str, pattern: str) -> list[tuple[Any, ...]]:
        """Numbers by variables that stand for IRIs."""
        return self.rows(
            f"SELECT {by} {numbers} WHERE {{ {pattern} }} GROUP BY {by}", by.count("?")
        )

    def count(self, what: str, pattern: str) -> int | None:
        """How many solutions, or different values of a variable, a pattern has."""
        rows = self.rows(f"SELECT (COUNT({what}) AS ?n) WHERE {{ {pattern} }}")
        return parse_count(rows[0][0]) if rows else None

    def count_by(self, key: str, what: str, pattern: str) -> dict[URIRef, int]:
        """The number of each IRI that a pattern binds the key to, the largest first."""
        rows = self.select_grouped(key, f"(COUNT({what}) AS ?n)", pattern)
        return dict(
            sorted(((iri, parse_count(n)) for iri, n in rows), key=lambda pair: (-pair[1], pair[0]))
        )

    def _path_over_existing(self, predicates: Sequence[URIRef]) -> str:
        """A path over those of the predicates that the graph has: the others cost an engine time."""
        rows = self.rows(
            f"SELECT ?p WHERE {{ {values_clause('?p', predicates)} FILTER EXISTS {{ ?s ?p ?o }} }}"
        )
        return "|".join(n3(iri) for iri in predicates if (iri,) in rows) or MISSING_PREDICATE

    # --- classes and their instances

    def _find_schema_terms(self, used: Iterable[URIRef]) -> list[URIRef]:
        """Classes and predicates that something is said of: they are no things."""
        rows = self.rows(
            f"SELECT ?v WHERE {{ {values_clause('?v', used)} FILTER EXISTS {{ ?v ?a ?b }} }}", 1
        )
        declared = f"{values_clause('?m', self.schema_classes)} ?v ({self.types}) ?m"
        rows += (
            self.rows(f"SELECT DISTINCT ?v WHERE {{ {declared} }}", 1)
            if self.schema_classes
            else []
        )
        return sorted({v for (v,) in rows})

    def _define_instances(
        self, sizes: dict[URIRef, int], things: int | None, schema: Sequence[URIRef]
    ) -> None:
        """Make the pattern that binds every instance ?v, or those of a sample, to its classes ?c."""
        if self.is_large or self.only_classes:
            # Instances by name: joined with a subquery that has a LIMIT, Virtuoso reads the whole graph
            classes = list(sizes)[:MAX_SAMPLED_CLASSES]
            each = SAMPLED_INSTANCES // max(1, len(classes))
            parts = [
                f"{{ SELECT ?v ({n3(c)} AS ?c) WHERE {{ ?v ({self.types}) {n3(c)} FILTER(isIRI(?v)) }}"
                f" LIMIT {each} }}"
                for c in classes
            ]
            bare = f"?v ?any ?value FILTER(isIRI(?v)) BIND({n3(UNTYPED_CLASS)} AS ?c)"
            any_ = bare if self.types == MISSING_PREDICATE else f"?v ({self.types}) ?c"
            pattern = (
                " UNION ".join(parts)
                or f"{{ SELECT DISTINCT ?v ?c WHERE {{ {any_} }} LIMIT {each} }}"
            )
            rows = self.rows(f"SELECT ?v ?c WHERE {{ {pattern} }}", 2)
            here = Counter(c for _, c in rows)
            sizes.update({c: n for c, n in here.items() if c not in sizes})
            self.sampling_fractions = {c: n / sizes[c] for c, n in here.items()} or {
                UNTYPED_CLASS: 1.0
            }
            self.instances_pattern = (
                f"VALUES (?v ?c) {{ {' '.join(f'({n3(v)} {n3(c)})' for v, c in rows)} }}"
            )
            return
        hidden = ", ".join(map(n3, (*self.schema_classes, OWL.NamedIndividual)))
        self.instances_pattern = (
            f"{{ ?v ({self.types}) ?c FILTER(isIRI(?c) && ?c NOT IN ({hidden})) }}"
        )
        typed = f"?v ({self.types}) ?type FILTER(isIRI(?v))"
        number = (self.count(DISTINCT_VERTICES, typed) or 0) - (
            self.count(DISTINCT_VERTICES, f"{values_clause('?v', schema)} {typed}") or 0
        )
        bare = f"{{ SELECT DISTINCT ?v WHERE {{ {_untyped_pattern(self.types)} }} }}"
        if things is not None and things > number and (size := self.count(DISTINCT_VERTICES, bare)):
            sizes[UNTYPED_CLASS] = size
            self.instances_pattern = (
                f"{{ {self.instances_pattern} UNION {{ {bare} BIND({n3(UNTYPED_CLASS)} AS ?c) }} }}"
            )

    def _count_totals(
        self, sizes: Mapping[URIRef, int], parents: ParentClasses
    ) -> dict[URIRef, int]:
        """Instances with those of subclasses; an instance may be typed as both."""
        above = [(c, d) for c in sizes for d in _ancestors([c], parents)]
        below = defaultdict(list)
        for c, d in above:
            below[d].append(sizes[c])
        pairs = " ".join(f"({n3(c)} {n3(d)})" for c, d in (*above, *((d, d) for d in below)))
        exact: dict[URIRef, int] = {}
        if above and not self.sampling_fractions:
            exact = self.count_by(
                "?d", DISTINCT_VERTICES, f"VALUES (?c ?d) {{ {pairs} }} ?v ({self.types}) ?c"
            )
        sums = {d: sizes.get(d, 0) + sum(some) for d, some in below.items()}
        typed_as_both = {d: sizes[d] for d, some in below.items() if sizes.get(d, 0) >= max(some)}
        return {**sizes, **(exact or sums | typed_as_both)}

    # --- what instances use

    def _collect_properties(self) -> dict[URIRef, list[PropertySurvey]]:
        facts = (
            f"{self.instances_pattern} ?v ?p ?o FILTER(?p NOT IN ({self.types.replace('|', ', ')}))"
        )
        values = self._collect_values(2, "?c ?p", facts)
        # A node only holds structure if it is blank and without a class, or an instance of a class that has
        # few predicates, most of them with literals, and no label
        ways: list[str] = []
        if any(v.sort == "node" for sorts in values.values() for v in sorts):
            ways += [
                f"?v ?p ?b FILTER(isBlank(?b)) FILTER NOT EXISTS {{ ?b ({self.types}) ?t }} ?b ?q ?o"
            ]
        literal: dict[Any, dict[Any, bool]] = defaultdict(dict)
        for (c, p), sorts in values.items():
            literal[c][p] = all(v.sort not in ("class", "IRI", "node") for v in sorts)
        reached = {v.of for sorts in values.values() for v in sorts}
        structure = [
            c
            for c, by in literal.items()
            if 1 < len(by) <= MAX_INNER_PREDICATES and sum(by.values()) >= len(by) - 1
            if c in reached and not by.keys() & {*self.kg.vocabulary.labels}
        ]
        if structure:
            kinds = f"{values_clause('?t', structure)} ?b ({self.types}) ?t"
            ways += [
                f"?v ?p ?b . {kinds} . ?b ?q ?o FILTER(?q NOT IN ({self.types.replace('|', ', ')}))"
            ]
        inner: dict[tuple[Any, ...], list[PropertySurvey]] = defaultdict(list)
        for nodes in ways:
            for (c, p, q), each in sorted(
                self._collect_values(3, "?c ?p ?q", f"{self.instances_pattern} {nodes}").items()
            ):
                n = sum(v.triples for v in each)
                inner[c, p].append(
                    PropertySurvey(
                        q,
                        n,
                        n,
                        tuple(_with_all_values(v, None, not self.sampling_fractions) for v in each),
                    )
                )
        few = self._list_small_value_sets(values)
        loose = sorted(
            {p for (_, p), sorts in values.items() if any(v.sort == "IRI" for v in sorts)}
        )
        nameless = (
            f"{values_clause('?p', loose)} {self.instances_pattern} ?v ?p ?o FILTER(isIRI(?o))"
        )
        nameless += f" FILTER NOT EXISTS {{ ?o ({self.labels}) ?label }}"
        rows = self.select_grouped("?c ?p", "(COUNT(DISTINCT ?o) AS ?n)", nameless) if loose else []
        unnamed = {(c, p): parse_count(n) for c, p, n in rows}
        used: dict[URIRef, list[PropertySurvey]] = defaultdict(list)
        numbers = "(COUNT(DISTINCT ?v) AS ?things) (COUNT(*) AS ?n)"
        for c, p, *counts in self.select_grouped("?c ?p", numbers, facts):
            whole = tuple(
                _with_all_values(v, few.get((c, p)), not self.sampling_fractions)
                for v in values[c, p]
            )
            things, n = (self._scale_to_class(c, number) for number in counts)
            used[c].append(
                PropertySurvey(p, things, n, whole, tuple(inner[c, p]), unnamed.get((c, p), 0))
            )
        return used

    def _scale_to_class(self, c: URIRef, n: Any) -> int:
        """A number of triples or things of a sample as it is for the whole class."""
        return round(parse_count(n) / self.sampling_fractions.get(c, 1.0))

    def _collect_values(
        self, keys: int, by: str, facts: str
    ) -> dict[tuple[Any, ...], list[ValueSurvey]]:
        """What the ?o of a pattern are, by its keys, and by their class or datatype; the commonest first."""
        n, d, pattern = "COUNT(*)", "COUNT(DISTINCT ?o)", facts
        if (
            not self.kg.remote
        ):  # takes Oxigraph half the time; of Virtuoso 7 it may have no row at all
            n, d = "SUM(?m)", "COUNT(*)"
            pattern = f"{{ SELECT {by} ?o (COUNT(*) AS ?m) WHERE {{ {facts} }} GROUP BY {by} ?o }}"
        values: dict[tuple[Any, ...], list[ValueSurvey]] = defaultdict(list)
        for row in self.rows(
            f"SELECT {by} ({n} AS ?n) ({d} AS ?d) ?k ?type ?tag (MIN(?o) AS ?least) (MAX(?o) AS ?most)"
            f" (SAMPLE(?o) AS ?some) WHERE {{ {pattern} OPTIONAL {{ ?o ({self.types}) ?k }}"
            f" BIND(isBlank(?o) AS ?blank) BIND(DATATYPE(?o) AS ?type) BIND(LANG(?o) AS ?tag) }}"
            f" GROUP BY {by} ?k ?blank ?type ?tag",
            keys,
        ):
            number, distinct, kind, type_, tag, *terms = row[keys:]
            shown = tuple(dict.fromkeys(term for term in terms if term is not None and str(term)))
            example, of, sort = next(iter(shown), terms[0]), kind, "class" if kind else "IRI"
            if isinstance(example, Literal):
                of = RDF.langString if str(tag or "") else URIRef(type_ or XSD.string)
                sort = f"text@{tag}" if str(tag or "") else local_part(of)
            elif isinstance(kind, BNode):
                continue
            elif isinstance(example, BNode):
                sort, shown = sort if kind else "node", ()
            triples = self._scale_to_class(row[0], number)
            values[row[:keys]].append(ValueSurvey(sort, of, triples, parse_count(distinct), shown))
        for some in values.values():
            some.sort(key=lambda v: (-v.triples, v.sort, str(v.of)))
        return values

    def _list_small_value_sets(
        self, values: Mapping[tuple[Any, ...], list[ValueSurvey]]
    ) -> dict[tuple[Any, ...], list[Term]]:
        """All values of the predicates that have few, classes apart."""
        pairs = [
            (c, p)
            for (c, p), sorts in values.items()
            if sum(v.distinct for v in sorts) <= MAX_LISTED_VALUES and not any(v.sort == "node" for v in sorts)
            and (any(v.distinct < v.triples for v in sorts) or (len(sorts) == 1 and sorts[0].distinct == 3))
            and c != UNTYPED_CLASS
        ]  # fmt: skip
        of = self.instances_pattern if self.sampling_fractions else f"?v ({self.types}) ?c ."
        few: dict[tuple[Any, ...], list[Term]] = defaultdict(list)
        for start in range(0, len(pairs), 300):
            these = " ".join(f"({n3(c)} {n3(p)})" for c, p in pairs[start : start + 300])
            query = (
                f"SELECT DISTINCT ?c ?p ?o WHERE {{ VALUES (?c ?p) {{ {these} }} {of} ?v ?p ?o }}"
            )
            for c, p, o in self.rows(query, 2):
                few[c, p].append(o)
        return few

    # --- the rest

    def _find_unused(self, classes: set[URIRef]) -> tuple[URIRef, ...]:
        schema = [iri for iri in self.schema_classes if not iri.startswith(WIKIBASE_NAMESPACE)]
        rows = self.rows(
            f"SELECT DISTINCT ?p WHERE {{ {values_clause('?k', schema)} ?p ({self.types}) ?k"
            f" FILTER NOT EXISTS {{ ?s ?p ?o }} FILTER NOT EXISTS {{ ?v ({self.types}) ?p }} }}",
            1,
        )
        return tuple(sorted({p for (p,) in rows} - classes))

    def _count_symmetric_use(
        self, used: UsedProperties, triples: Mapping[URIRef, int]
    ) -> tuple[tuple[URIRef, int, int], ...]:
        """Of predicates a tenth of whose triples at least stay within a class."""
        within: Counter[URIRef] = Counter()
        for c, properties in used.items():
            for p in properties:
                within[p.predicate] += sum(v.triples for v in p.values if v.of == c)
        some = sorted(p for p, n in within.items() if n and n * 10 >= triples.get(p, n * 10 + 1))
        both = (
            self.count_by("?p", "*", f"{values_clause('?p', some)} ?a ?p ?b . ?b ?p ?a")
            if some
            else {}
        )
        return tuple((p, triples[p], both.get(p, 0)) for p in some)

    def _count_labels(
        self, schema: Sequence[URIRef]
    ) -> tuple[int | None, tuple[tuple[str, int], ...]]:
        """How many things have a label, in any language and in each."""
        tags: Counter[str] = Counter()
        every: int | None = None
        label = f"?v ({self.labels}) ?label FILTER(isIRI(?v))"
        without = [(values_clause("?v", schema), -1)] if schema else []
        for pattern, sign in (
            (self.instances_pattern if self.sampling_fractions else "", 1),
            *without,
        ):
            number = self.count(DISTINCT_VERTICES, f"{pattern} {label}")
            every = None if number is None else (every or 0) + sign * number
            for tag, n in self.rows(
                f"SELECT ?tag (COUNT(DISTINCT ?v) AS ?n) WHERE {{ {pattern} {label}"
                " BIND(LANG(?label) AS ?tag) } GROUP BY ?tag"
            ):
                tags[str(tag or "")] += sign * parse_count(n)
        return every, tuple(sorted((+tags).items(), key=lambda item: (-item[1], item[0]))[:12])


def _untyped_pattern(types: str) -> str:
    """The pattern of things that have no class, and are neither classes nor predicates."""
    return (
        f"?v ?any ?value FILTER(isIRI(?v)) FILTER NOT EXISTS {{ ?v ({types}) ?type }}"
        f" FILTER NOT EXISTS {{ ?instance ({types}) ?v }} FILTER NOT EXISTS {{ ?a ?v ?b }}"
    )


def _ancestors(iris: Iterable[URIRef], parents: ParentClasses) -> list[URIRef]:
    left = [parent for iri in iris for parent in sorted(parents.get(iri, ()))]
    above: dict[URIRef, None] = {}
    for iri in left:
        if iri not in above:
            above[iri] = None
            left += sorted(parents.get(iri, ()))
    return list(above)


def _make_class_survey(
    iri: URIRef, name: str, size: int, total: int, above: Iterable[URIRef], used: UsedProperties
) -> ClassSurvey:
    properties = tuple(sorted(used.get(iri, ()), key=lambda p: (-p.things, p.predicate)))
    if iri == UNTYPED_CLASS:
        return ClassSurvey(None, "without a class", size, total, (), properties)
    return ClassSurvey(
        iri, name or name_from_iri(iri), size, total, tuple(sorted(above)), properties
    )


def _with_all_values(values: ValueSurvey, few: list[Term] | None, all_seen: bool) -> ValueSurvey:
    """With all values where there are few of them."""
    if few is None:
        return replace(values, whole=all_seen and values.distinct == len(values.examples) < 3)

    def sort(term: Term) -> str:
        if isinstance(term, Literal):
            return (
                f"text@{term.language}" if term.language else local_part(term.datatype or "string")
            )
        return "IRI" if isinstance(term, URIRef) else "node"

    mine = [
        term for term in few if sort(term) == (values.sort if values.sort != "class" else "IRI")
    ]
    if len(mine) != values.distinct:
        return values
    return replace(values, examples=tuple(sorted(mine, key=str)), whole=all_seen)


def _iris_of(used: UsedProperties) -> Iterator[URIRef]:
    """Every IRI that a survey shows of what instances use."""
    for properties in used.values():
        for each in (*properties, *(inner for p in properties for inner in p.inner)):
            yield each.predicate
            for values in each.values:
                yield from (
                    term for term in (values.of, *values.examples) if isinstance(term, URIRef)
                )


# --- questions to try


NON_NOUN_ENDINGS = tuple(f" {word}" for word in "at by for from in of on to with".split())
"""How the name of a predicate ends that nobody asks for as "the directed by of"."""


class SuggestedQuestion(NamedTuple):
    """A question that the graph may answer, with an answer that would be right, if one is known."""

    question: str
    answer: Term | None


def suggest_questions(kg: Graph, survey: Survey) -> Iterator[SuggestedQuestion]:
    """Questions about well described things of the largest classes; to be run before they are offered."""
    labels, hidden, called = (
        {*kg.vocabulary.labels},
        kg.vocabulary.excluded_predicates,
        dict(survey.names),
    )
    types = "|".join(map(n3, kg.vocabulary.types))
    kinds = sorted(
        survey.classes, key=lambda kind: labels.isdisjoint(p.predicate for p in kind.properties)
    )
    predicates = [
        [p.predicate for p in kind.properties if p.predicate not in hidden] for kind in kinds
    ]
    nouns = [
        [iri for iri in iris if not called[iri].endswith(NON_NOUN_ENDINGS)] for iris in predicates
    ]
    asked = [
        (place, kind, facts[place])
        for place in range(MAX_SUGGESTED_PREDICATES)
        for kind, facts in [*zip(kinds, nouns, strict=True)][:MAX_SUGGESTED_CLASSES]
        if place < len(facts)
    ]
    for place, kind, predicate in asked:
        with suppress(GraphError):
            of = (
                f"?v ({types}) {n3(kind.iri)} FILTER(isIRI(?v))"
                if kind.iri
                else _untyped_pattern(types)
            )
            rows = kg.select(
                "SELECT ?v (COUNT(?any) AS ?n) (SAMPLE(?one) AS ?o) WHERE { { SELECT DISTINCT ?v ?one"
                f" WHERE {{ {of} ?v {n3(predicate)} ?one }} LIMIT 200 }} ?v ?any ?value }}"
                f" GROUP BY ?v ORDER BY DESC(?n) ?v LIMIT {MAX_SUGGESTED_PREDICATES * 2}"
            ).rows
            things = [(v, o) for v, _, o in rows if isinstance(v, URIRef) and o is not None]
            names = kg.names([v for v, _ in things]) if things else {}
            alone = kg.exact([names[v] for v, _ in things]) if things else {}
            # Each question is about another instance, which has a name of its own
            own = [
                (v, o)
                for v, o in (*things[place:], *things[:place])
                if len(alone.get(names[v], ())) == 1
            ]
            if own:
                yield SuggestedQuestion(
                    f"What is the {called[predicate]} of {names[own[0][0]]}?", own[0][1]
                )


if not TYPE_CHECKING:  # a type checker would take every name for known
    __getattr__ = renamed_names(__name__)
