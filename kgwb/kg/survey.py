"""The survey of a graph: its classes, the predicates that their instances use, and the values.

It does not depend on any question. A survey is kept in the cache folder, by the graph's identity.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from rdflib import OWL, RDFS, Literal, URIRef

from kgwb import disk
from kgwb.errors import GraphError
from kgwb.kg.base import SCHEMA_NAMESPACES, WIKIBASE_NAMESPACE, Graph
from kgwb.kg.queries import IRIS_PER_NAME_QUERY, parse_count, rank_description
from kgwb.kg.sparql import is_valid_iri, n3, union_over_predicates, values_clause
from kgwb.kg.survey_queries import (
    DISTINCT_VERTICES,
    MISSING_PREDICATE,
    PREDICATES_PART,
    SURVEY_TIMEOUT_S,
    UNTYPED_CLASS,
    VALUES_PART,
    ClassProperties,
    InstancePart,
    Instances,
    PropertyCollector,
    RelationFinder,
    Row,
    SurveyQueries,
    count_incoming,
    count_unions,
    largest_first,
    untyped_pattern,
    values_of_pairs,
)
from kgwb.kg.survey_records import (
    NUMERIC_DATATYPES,
    ClassSurvey,
    Survey,
    by_frequency,
    group_classes,
)
from kgwb.records import from_data, to_data
from kgwb.terms import Term, name_from_iri
from kgwb.text import pluralize

CACHE_LIFETIME_S = 86_400.0
"""How long the survey of an endpoint is used. That of a file is used as long as it is unchanged."""
SURVEY_VERSION = 6
"""Part of a survey's identity: surveys of other versions are built again."""
INCOMPLETE_LIFETIME_S = 600.0
"""How long a survey that lacked time is used: else each question of a slow endpoint would wait for another."""
_survey_locks: dict[str, Lock] = {}
"""By survey: one thread builds it, while the others wait."""
_incomplete_surveys: dict[Path, tuple[float, Survey]] = {}
"""By the file in which a whole one would be: the last one that lacked time, with the time at which it was made."""
_loaded_surveys: dict[Path, tuple[int, Survey]] = {}
"""Surveys that this process has read, with the times (ns) at which their files were written."""


def survey_graph(
    kg: Graph, only_classes: Sequence[URIRef] = (), *, timeout_s: float | None = None
) -> Survey:
    """Return the survey of a graph: from the cache folder if it is there, else a new one.

    A new survey takes seconds and is stored in the cache folder, unless that cannot be written. It
    is not stored either if a query took too long or no time was left for one, since a later call
    may have more: this process uses it for INCOMPLETE_LIFETIME_S. The stored survey of an endpoint
    is used for CACHE_LIFETIME_S. Surveys with different time limits are stored apart. No query is
    sent after ``timeout_s`` seconds, SURVEY_TIMEOUT_S by default. Triples that are muted in ``kg``
    are in the survey nevertheless. With ``only_classes``, a sample of the instances of these
    classes is surveyed, and the cache is neither read nor written.

    Parts whose queries the graph refuses, and for which no time is left, are left out, and the
    survey says so (``lacks``). Raises GraphError if the graph answers nothing.
    """
    kg = kg.whole_graph
    if only_classes:
        return SurveyBuilder(kg, only_classes, timeout_s).build()
    identity = f"{SURVEY_VERSION} {kg.identity} {kg.vocabulary!r}"
    if timeout_s not in (None, SURVEY_TIMEOUT_S):
        identity += f" {timeout_s}"
    hashed = hashlib.sha256(identity.encode())
    digest = hashed.hexdigest()
    file_name = f"survey-{digest[:32]}.json"
    path = disk.cache_dir() / file_name
    lock = _survey_locks.setdefault(digest, Lock())
    with lock:  # several questions may be asked of one graph at the same time
        survey = _read_survey(path, kg.remote)
        if survey is not None:
            return survey
        made_at, incomplete = _incomplete_surveys.get(path, (0.0, None))
        if incomplete is not None and time.monotonic() - made_at < INCOMPLETE_LIFETIME_S:
            return incomplete
        builder = SurveyBuilder(kg, timeout_s=timeout_s)
        survey = builder.build()
        if builder.queries.lacked_time:
            _incomplete_surveys[path] = (time.monotonic(), survey)
            return survey
        text = json.dumps(to_data(survey))
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            disk.write_atomically(path, [text], "surrogatepass")
    return survey


def _read_survey(path: Path, is_remote: bool) -> Survey | None:
    """Return the survey in a file. It is read again only if the file has changed.

    None if there is no file, if it is damaged, or if it is older than CACHE_LIFETIME_S and the
    graph is remote.
    """
    with suppress(OSError, ValueError):
        file = path.stat()
        age_s = time.time() - file.st_mtime
        if is_remote and age_s >= CACHE_LIFETIME_S:
            return None
        written_at, survey = _loaded_surveys.get(path, (None, None))
        if survey is None or written_at != file.st_mtime_ns:
            data = json.loads(disk.read_text(path))
            survey = from_data(data, Survey)
            _loaded_surveys[path] = (file.st_mtime_ns, survey)
        return survey
    return None


LARGE_GRAPH_TRIPLES = 250_000
"""A graph with more triples is large, and so is one that does not count them.

The survey of a large graph looks at a sample of its instances.
"""
SAMPLED_INSTANCES = 2_500
"""Instances in a sample, divided equally among its classes."""
MAX_SAMPLED_CLASSES = 200
"""Classes in a sample: the largest."""
MAX_INSTANCES_PER_QUERY = 200
"""Sampled instances in one query, and of one class. Virtuoso takes long for queries that name more."""
MAX_CLASSES_PER_QUERY = 20
"""Classes in one query for a sample of their instances."""
MAX_IRIS_PER_QUERY = 500
"""IRIs whose descriptions are asked for at a time."""
MAX_QUERIES_FOR_NAMES = 4
"""What an endpoint may send for the names of IRIS_PER_NAME_QUERY IRIs.

Two find out which labels there are, and two read them: those in preferred languages, then others.
"""
INSTANCES_PART = "some instances of each class"
EXACT_NUMBERS_PART = "the exact numbers of predicates and values"
"""The part of a survey that a sample lacks which was taken since the graph refused more."""
MAX_UNIT_INSTANCES = 12
"""A class with more instances is not taken for units."""
MAX_LANGUAGES = 12
GENERIC_CLASSES = (OWL.Thing, RDFS.Resource, OWL.NamedIndividual)
"""Classes that say nothing about their instances."""
ParentClasses = Mapping[URIRef, set[URIRef]]
"""The direct superclasses of each class."""


class SurveyBuilder:
    """Asks a graph for everything that its survey holds."""

    is_large: bool
    schema_classes: list[URIRef]
    """Classes of RDF, RDFS, OWL and Wikibase that have instances, such as owl:Class."""

    def __init__(
        self,
        kg: Graph,
        only_classes: Sequence[URIRef] = (),
        timeout_s: float | None = None,
    ) -> None:
        """With ``only_classes``, the survey is of samples of these classes.

        ``timeout_s`` is how long it may take, see ``SurveyQueries``.
        """
        self.only_classes = only_classes
        self.queries = SurveyQueries(kg, timeout_s)
        self.kg = self.queries.kg

    def build(self) -> Survey:
        """Ask the graph everything, what matters most first, and return the survey.

        The parts whose queries the graph refuses, and those for which no time is left, are left
        out; ``lacks`` of the survey names them. Raises GraphError if the graph neither counts its
        triples nor returns one, and GraphUnreachableError if an endpoint cannot be reached.
        """
        queries = self.queries
        triples = self._count_triples()
        self.is_large = triples is None or triples > LARGE_GRAPH_TRIPLES
        queries.find_vocabulary()
        triples_by_predicate = {}
        if not self.is_large:
            queries.part = "the triples of each predicate"
            triples_by_predicate = queries.count_by("?p", "*", "?s ?p ?o")
        queries.part = "the instances of each class"
        sizes = self._count_instances()
        queries.part = "the number of things"
        schema_terms = self._find_schema_terms([*triples_by_predicate, *sizes])
        things = self._count_things(schema_terms)

        queries.part = "the superclasses"
        parents = self._find_parents()
        queries.part = INSTANCES_PART
        instances = self._choose_instances(sizes, things, schema_terms)
        classes = [*sizes, *find_ancestors(sizes, parents)]
        classes = [iri for iri in classes if iri != UNTYPED_CLASS]
        queries.part = "the names of classes"
        names = self._find_names(classes)
        collector, properties = self._collect_properties(instances, sizes)
        instances = collector.instances

        unused: tuple[URIRef, ...] = ()
        if not self.is_large:
            queries.part = "which declarations are not used"
            unused = self._find_unused(classes)
        queries.part = "the names of predicates and values"
        in_properties = _iris_in_properties(properties)
        unnamed_iris = {*unused, *in_properties}.difference(names)
        names |= self._find_names(unnamed_iris)
        queries.part = "the languages of labels"
        labelled, languages = self._count_labels(schema_terms, properties)
        unlabelled = None
        if things is not None and labelled is not None:
            unlabelled = things - labelled
        queries.part = "the instances of superclasses"
        totals = self._count_totals(sizes, parents)
        queries.part = "which predicates hold both ways"
        both_ways = self._count_symmetric_use(properties, triples_by_predicate)
        predicates = list(triples_by_predicate)
        for used in properties.values():
            for surveyed in used:
                predicates.append(surveyed.predicate)
        queries.part = "the descriptions of classes and predicates"
        notes = self._find_descriptions([*predicates, *classes, *unused])

        survey = Survey(
            triples=triples,
            things=things,
            predicates=len(triples_by_predicate) or None,
            classes=make_class_surveys(properties, sizes, totals, parents, names),
            unlabelled=unlabelled,
            languages=languages,
            unused=unused,
            both_ways=both_ways,
            notes=notes,
            names=tuple(sorted(names.items())),
            sampled=instances.is_sample,
            sample_limit=instances.limit,
        )
        if not instances.is_sample:
            queries.part = "which predicates say the same"
            survey = self._compare_groups(survey)
        queries.lacks.update(self._name_unsampled(sizes, instances, collector))
        return replace(
            survey,
            lacks=tuple(queries.lacks.items()),
            queries=queries.sent,
            seconds=round(queries.seconds, 3),
        )

    def _collect_properties(
        self, instances: Instances, sizes: dict[URIRef, int]
    ) -> tuple[PropertyCollector, ClassProperties]:
        """Return the predicates that instances use, by class, with the collector that asked for them.

        If the graph refuses to look at all instances, they are those of a sample, as of a large
        graph; ``lacks`` then says so of the exact numbers, and not of what the sample gives.
        """
        collector = PropertyCollector(self.queries, instances)
        properties = collector.collect()
        if not collector.refused_whole:
            return collector, properties
        lacks = self.queries.lacks
        for part in (VALUES_PART, PREDICATES_PART):
            if part in lacks:
                lacks[EXACT_NUMBERS_PART] = lacks.pop(part)
        self.queries.part = INSTANCES_PART
        sample = self._sample_instances(sizes)
        collector = PropertyCollector(self.queries, sample)
        return collector, collector.collect()

    def _name_unsampled(
        self, sizes: Mapping[URIRef, int], instances: Instances, collector: PropertyCollector
    ) -> dict[str, str]:
        """Return how many classes of a sample have no predicates in the survey, and why.

        It is a text and a reason, as in ``lacks``; nothing if the predicates of all are known.
        """
        if not instances.is_sample:
            return {}
        lacks = self.queries.lacks
        reason = f"only those of the {MAX_SAMPLED_CLASSES} largest were asked for"
        for part in (PREDICATES_PART, INSTANCES_PART):
            reason = lacks.pop(part, reason)
        missing = collector.not_surveyed.union(sizes.keys() - instances.fractions.keys())
        if not missing:
            return {}
        return {f"the predicates of {pluralize(len(missing), 'class')}": reason}

    def _compare_groups(self, survey: Survey) -> Survey:
        """Return the survey with what predicates have in common, and groups of classes.

        Of classes that have instances in common, numbers are counted anew, each instance once.
        """
        groups = group_classes(survey)
        unions = count_unions(self.queries, groups)
        incoming = count_incoming(self.queries, groups)
        counted = replace(survey, unions=unions, incoming=incoming)
        groups = group_classes(counted)
        relations = RelationFinder(self.queries, groups)
        inverses, twins = relations.find()
        factors = self._find_factors(counted)
        return replace(counted, inverses=inverses, twins=twins, factors=factors)

    def _find_factors(self, survey: Survey) -> tuple[tuple[URIRef, URIRef, Term], ...]:
        """Return the numbers of things that nodes have as their unit, such as a factor; sorted.

        A class counts if nodes that only hold structure lead to it, it has at most
        MAX_UNIT_INSTANCES instances, which have names, and a predicate has one number for each. One query is sent, or
        none.
        """
        units: set[URIRef | None] = set()
        for surveyed in survey.classes:
            for prop in surveyed.properties:
                for inner in prop.inner:
                    for values in inner.values:
                        if values.sort == "class":
                            units.add(values.of)
        labels = set(self.kg.vocabulary.labels)
        pairs = []
        for surveyed in survey.classes:
            has_names = not labels.isdisjoint(surveyed.predicates)
            is_small = 0 < surveyed.size <= MAX_UNIT_INSTANCES
            if surveyed.iri not in units or not has_names or not is_small:
                continue
            for prop in surveyed.properties:
                are_numbers = all(values.of in NUMERIC_DATATYPES for values in prop.values)
                has_one_each = prop.triples == prop.things == surveyed.size
                if are_numbers and has_one_each and surveyed.iri:
                    pairs.append((surveyed.iri, prop.predicate))
        if not pairs:
            return ()
        listed = values_of_pairs("?c ?p", pairs)
        pattern = f"{listed} ?v ({self.queries.types}) ?c . ?v ?p ?n FILTER(isIRI(?v))"
        query = f"SELECT DISTINCT ?v ?p ?n WHERE {{ {pattern} }}"
        rows = self.queries.select(query, 2)
        return tuple(sorted(rows))

    def _count_triples(self) -> int | None:
        """Return the number of triples; None if the graph refuses to count them.

        If it refuses, one triple is asked for: if the graph does not return it either, the
        GraphError of the refusal is raised. With ``only_classes`` the graph is not asked.
        """
        if self.only_classes:
            return None
        self.queries.part = "the number of triples"
        triples = self.queries.count("*", "?s ?p ?o")
        refusal = self.queries.first_error
        if triples is not None or refusal is None:
            return triples
        if not self.queries.select("SELECT ?s WHERE { ?s ?p ?o } LIMIT 1"):
            raise refusal
        return None

    # Classes and their instances

    def _count_instances(self) -> dict[URIRef, int]:
        """Return the number of instances of each class, the largest first; set ``schema_classes``.

        Classes of a schema, such as owl:Class, are left out and put into ``schema_classes``, and so
        is owl:NamedIndividual left out. With ``only_classes``, these alone are counted. In a large
        graph, the triples that give a class are counted instead of distinct instances.
        """
        only = ""
        if self.only_classes:
            only = values_clause("?c", self.only_classes)
        counted = DISTINCT_VERTICES
        if self.is_large:
            counted = "*"
        pattern = f"{only} ?v ({self.queries.types}) ?c FILTER(isIRI(?c))"
        sizes = self.queries.count_by("?c", counted, pattern)

        self.schema_classes = []
        for iri in sizes:
            # URIRef has a startswith of its own, which takes no tuple
            is_schema = str(iri).startswith(SCHEMA_NAMESPACES)
            if is_schema and iri not in GENERIC_CLASSES:
                self.schema_classes.append(iri)
        for hidden in (*self.schema_classes, OWL.NamedIndividual):
            sizes.pop(hidden, None)
        return sizes

    def _find_schema_terms(self, used: Iterable[URIRef]) -> list[URIRef]:
        """Return the classes and predicates that are the subject of a triple, sorted.

        They are not counted as things. ``used`` are the predicates and classes in use. Declared
        ones, which are the instances of ``schema_classes``, are asked of the graph. Empty for a
        large graph.
        """
        if self.is_large:
            return []
        used_iris = values_clause("?v", used)
        query = f"SELECT ?v WHERE {{ {used_iris} FILTER EXISTS {{ ?v ?a ?b }} }}"
        rows = self.queries.select(query, 1)
        if self.schema_classes:
            classes = values_clause("?m", self.schema_classes)
            query = f"SELECT DISTINCT ?v WHERE {{ {classes} ?v ({self.queries.types}) ?m }}"
            rows += self.queries.select(query, 1)
        terms = {iri for (iri,) in rows}
        return sorted(terms)

    def _count_things(self, schema_terms: Sequence[URIRef]) -> int | None:
        """Return the number of IRIs that are subjects of triples, without schema terms.

        None if the graph is large, or refuses to count them.
        """
        if self.is_large:
            return None
        subjects = self.queries.count(DISTINCT_VERTICES, "?v ?any ?value FILTER(isIRI(?v))")
        if subjects is None:
            return None
        return subjects - len(schema_terms)

    def _choose_instances(
        self, sizes: dict[URIRef, int], things: int | None, schema_terms: Sequence[URIRef]
    ) -> Instances:
        """Return the instances whose predicates are surveyed, as a pattern of ?v and its class ?c.

        They are all instances, or a sample if the graph is large or ``only_classes`` are given. If
        there are things without a class, these become instances of UNTYPED_CLASS, and their number
        is added to ``sizes``, which is changed.
        """
        if self.is_large or self.only_classes:
            return self._sample_instances(sizes)

        hidden_classes = (*self.schema_classes, OWL.NamedIndividual)
        hidden = ", ".join(map(n3, hidden_classes))
        pattern = f"{{ ?v ({self.queries.types}) ?c FILTER(isIRI(?c) && ?c NOT IN ({hidden})) }}"
        typed_things = self._count_typed_things(schema_terms)
        if things is not None and things > typed_things:
            without_type = untyped_pattern(self.queries.types)
            untyped = f"{{ SELECT DISTINCT ?v WHERE {{ {without_type} }} }}"
            number = self.queries.count(DISTINCT_VERTICES, untyped)
            if number:
                sizes[UNTYPED_CLASS] = number
                of_no_class = f"{untyped} BIND({n3(UNTYPED_CLASS)} AS ?c)"
                pattern = f"{{ {pattern} UNION {{ {of_no_class} }} }}"
        return Instances((InstancePart(pattern),), {})

    def _count_typed_things(self, schema_terms: Sequence[URIRef]) -> int:
        """Return the number of IRIs with a type, without schema terms.

        What the graph refuses to count is taken for 0. Two queries are sent.
        """
        typed = f"?v ({self.queries.types}) ?type FILTER(isIRI(?v))"
        all_typed = self.queries.count(DISTINCT_VERTICES, typed) or 0
        terms = values_clause("?v", schema_terms)
        terms_with_type = f"{terms} {typed}"
        typed_terms = self.queries.count(DISTINCT_VERTICES, terms_with_type) or 0
        return all_typed - typed_terms

    def _sample_instances(self, sizes: dict[URIRef, int]) -> Instances:
        """Return a sample of at most SAMPLED_INSTANCES instances, equally many of each class.

        The classes are the first MAX_SAMPLED_CLASSES of ``sizes``, the largest. Without any, the
        sample is of any instances, or of any things if the graph has no types, and their classes
        are added to ``sizes``. Things without a class are asked for last, in a query of their own,
        if ``sizes`` has them. The result names the instances, and has the fraction of each class
        that they are. There are at most MAX_INSTANCES_PER_QUERY instances of a class.
        """
        classes = list(sizes)[:MAX_SAMPLED_CLASSES]
        share = SAMPLED_INSTANCES // max(1, len(classes))
        limit = min(share, MAX_INSTANCES_PER_QUERY)
        parts = []
        for class_iri in classes:
            if class_iri == UNTYPED_CLASS:
                continue
            class_term = n3(class_iri)
            parts.append(
                f"{{ SELECT ?v ({class_term} AS ?c)"
                f" WHERE {{ ?v ({self.queries.types}) {class_term} FILTER(isIRI(?v)) }} LIMIT {limit} }}"
            )
        if not classes:
            any_instance = f"?v ({self.queries.types}) ?c"
            if self.queries.types == MISSING_PREDICATE:
                any_instance = f"?v ?any ?value FILTER(isIRI(?v)) BIND({n3(UNTYPED_CLASS)} AS ?c)"
            parts = [f"{{ SELECT DISTINCT ?v ?c WHERE {{ {any_instance} }} LIMIT {limit} }}"]

        def write(some: Sequence[str]) -> str:
            """Return the query for the instances of some classes."""
            return f"SELECT ?v ?c WHERE {{ {' UNION '.join(some)} }}"

        rows = list(self.queries.select_batches(parts, MAX_CLASSES_PER_QUERY, write, 2))
        if UNTYPED_CLASS in classes:
            without_type = f"{untyped_pattern(self.queries.types)} BIND({n3(UNTYPED_CLASS)} AS ?c)"
            query = f"SELECT DISTINCT ?v ?c WHERE {{ {without_type} }} LIMIT {limit}"
            rows += self.queries.select(query, 2)

        sampled = Counter(class_iri for _, class_iri in rows)
        fractions = {}
        for iri, number in sampled.items():
            size = sizes.setdefault(iri, number)
            fractions[iri] = number / size
        if not fractions:
            fractions = {UNTYPED_CLASS: 1.0}
        return Instances(_parts_of_sample(rows, sizes), fractions, limit)

    def _find_parents(self) -> ParentClasses:
        """Return the direct superclasses of each class by rdfs:subClassOf.

        A class itself and GENERIC_CLASSES are left out. Classes without a superclass have no entry.
        Empty if the graph refuses the query.
        """
        query = f"SELECT ?c ?d WHERE {{ ?c {n3(RDFS.subClassOf)} ?d }}"
        rows = self.queries.select(query, 2)
        parents: dict[URIRef, set[URIRef]] = defaultdict(set)
        for child, parent in rows:
            if child != parent and parent not in GENERIC_CLASSES:
                parents[child].add(parent)
        return parents

    def _count_totals(
        self, sizes: Mapping[URIRef, int], parents: ParentClasses
    ) -> dict[URIRef, int]:
        """Return each class's and superclass's number of instances, with those of subclasses.

        An instance of several subclasses counts once. In a large graph, or if the graph refuses to
        count, a superclass's number is estimated: its own instances, plus those of all its
        subclasses if one of these is larger than itself.
        """
        pairs = []
        subclass_sizes: dict[URIRef, list[int]] = defaultdict(list)
        for iri, size in sizes.items():
            for ancestor in find_ancestors([iri], parents):
                pairs.append((iri, ancestor))
                subclass_sizes[ancestor].append(size)

        totals = dict(sizes)
        if pairs and not self.is_large:
            for ancestor in subclass_sizes:
                pairs.append((ancestor, ancestor))
            values = values_of_pairs("?c ?d", pairs)
            pattern = f"{values} ?v ({self.queries.types}) ?c"
            exact = self.queries.count_by("?d", DISTINCT_VERTICES, pattern)
            if exact:
                return totals | exact
        for ancestor, below in subclass_sizes.items():
            total = sizes.get(ancestor, 0)
            if total < max(below):
                total += sum(below)
            totals[ancestor] = total
        return totals

    # What classes and predicates have besides

    def _find_unused(self, classes: Iterable[URIRef]) -> tuple[URIRef, ...]:
        """Return the predicates and classes that are declared and that no triple uses, sorted.

        Properties of Wikibase are left out, and so are ``classes``. Empty if the graph refuses.
        """
        schema = []
        for iri in self.schema_classes:
            if not iri.startswith(WIKIBASE_NAMESPACE):
                schema.append(iri)
        values = values_clause("?k", schema)
        declared = f"{values} ?p ({self.queries.types}) ?k"
        is_no_predicate = "FILTER NOT EXISTS { ?s ?p ?o }"
        is_no_class = f"FILTER NOT EXISTS {{ ?v ({self.queries.types}) ?p }}"
        where = f"{declared} {is_no_predicate} {is_no_class}"
        query = f"SELECT DISTINCT ?p WHERE {{ {where} }}"
        rows = self.queries.select(query, 1)
        unused = {iri for (iri,) in rows}
        unused.difference_update(classes)
        return tuple(sorted(unused))

    def _find_names(self, iris: Iterable[URIRef]) -> dict[URIRef, str]:
        """Return the display names of IRIs, by IRI, IRIS_PER_NAME_QUERY at a time.

        Those are missing for which the graph refuses a request.
        """
        shown = sorted(set(iris))
        names: dict[URIRef, str] = {}
        for start in range(0, len(shown), IRIS_PER_NAME_QUERY):
            asked = shown[start : start + IRIS_PER_NAME_QUERY]
            send = partial(self.kg.names, asked)
            found = self.queries.attempt(send, MAX_QUERIES_FOR_NAMES)
            names.update(found or {})
        return names

    def _find_descriptions(self, iris: Iterable[URIRef]) -> tuple[tuple[URIRef, str], ...]:
        """Return the IRIs that the graph describes, sorted, with their descriptions.

        Of several descriptions of an IRI, the one in the most preferred language is returned, then
        that of the first predicate for descriptions in the vocabulary. Those are missing for which
        the graph refuses a query.
        """
        if not self.queries.descriptions:
            return ()
        valid_iris = list(dict.fromkeys(filter(is_valid_iri, iris)))
        texts: dict[URIRef, list[tuple[int, int, str]]] = defaultdict(list)

        def write(some: Sequence[URIRef]) -> str:
            """Return the query for the descriptions of some IRIs."""
            vertices = values_clause("?v", some)
            union = union_over_predicates(vertices, "?v", self.queries.descriptions, "?text")
            return f"SELECT ?v ?p ?text WHERE {{ {union} }}"

        rows = self.queries.select_batches(valid_iris, MAX_IRIS_PER_QUERY, write, 2)
        for iri, predicate, text in rows:
            if isinstance(text, Literal):
                ranked_text = rank_description(text, predicate, self.kg.vocabulary)
                texts[iri].append(ranked_text)
        descriptions = []
        for iri, found in sorted(texts.items()):
            _, _, description = min(found)
            if description:
                descriptions.append((iri, description))
        return tuple(descriptions)

    def _count_symmetric_use(
        self, properties: ClassProperties, triples: Mapping[URIRef, int]
    ) -> tuple[tuple[URIRef, int, int], ...]:
        """Return for each predicate between instances of one class: (predicate, triples, reversed).

        ``reversed`` is how many of its triples are also asserted with subject and object exchanged.
        Only predicates count of whose triples at least a tenth connect instances of one class.
        Sorted by IRI. Empty in a large graph, where triples are not counted by predicate.
        """
        within: Counter[URIRef] = Counter()
        for class_iri, used in properties.items():
            for surveyed in used:
                for values in surveyed.values:
                    if values.of == class_iri:
                        within[surveyed.predicate] += values.triples

        predicates = []
        for predicate, number in sorted(within.items()):
            total = triples.get(predicate, 0)
            if 0 < total <= number * 10:
                predicates.append(predicate)
        if not predicates:
            return ()
        listed = values_clause("?p", predicates)
        both = self.queries.count_by("?p", "*", f"{listed} ?a ?p ?b . ?b ?p ?a")
        counted = []
        for predicate in predicates:
            numbers = (predicate, triples[predicate], both.get(predicate, 0))
            counted.append(numbers)
        return tuple(counted)

    def _count_labels(
        self, schema_terms: Sequence[URIRef], properties: ClassProperties
    ) -> tuple[int | None, tuple[tuple[str, int], ...]]:
        """Return how many things have a label, and pairs of a language and how many have one in it.

        The first number is None if the graph refuses to count it. A language is a tag, "" for none;
        there are at most MAX_LANGUAGES, the most frequent first. ``schema_terms`` are subtracted.
        Of a large graph, the first number is None, and the labels in ``properties`` are counted.
        """
        if self.is_large:
            languages = largest_first(self._count_label_languages(properties))
            return None, tuple(languages[:MAX_LANGUAGES])
        counts: Counter[str] = Counter()
        numbers: list[int | None] = []
        label = f"?v ({self.queries.labels}) ?label FILTER(isIRI(?v))"
        # The sign tells whether the things of a pattern are added or subtracted.
        signs = {"": 1}
        if schema_terms:
            signs[values_clause("?v", schema_terms)] = -1
        for pattern, sign in signs.items():
            number = self.queries.count(DISTINCT_VERTICES, f"{pattern} {label}")
            if number is not None:
                number *= sign
            numbers.append(number)
            rows = self.queries.select(
                "SELECT ?tag (COUNT(DISTINCT ?v) AS ?n)"
                f" WHERE {{ {pattern} {label} BIND(LANG(?label) AS ?tag) }} GROUP BY ?tag"
            )
            for language, vertices in rows:
                counts[str(language or "")] += sign * parse_count(vertices)
        labelled = None
        known = [number for number in numbers if number is not None]
        if len(known) == len(numbers):
            labelled = sum(known)
        languages = largest_first(+counts)
        return labelled, tuple(languages[:MAX_LANGUAGES])

    def _count_label_languages(self, properties: ClassProperties) -> Counter[str]:
        """Return how many labels there are in each language, by the surveys of the predicates.

        The numbers of classes are added up. Of several label predicates, the one that has the most
        labels in a language counts.
        """
        by_predicate: dict[URIRef, Counter[str]] = defaultdict(Counter)
        for used in properties.values():
            for surveyed in used:
                if surveyed.predicate not in self.kg.vocabulary.labels:
                    continue
                for values in surveyed.values:
                    if values.is_text_or_iri and values.is_literal:
                        language = values.sort.partition("@")[2]
                        by_predicate[surveyed.predicate][language] += values.triples
        languages: Counter[str] = Counter()
        for counts in by_predicate.values():
            languages |= counts
        return languages


def make_class_surveys(
    properties: ClassProperties,
    sizes: Mapping[URIRef, int],
    totals: Mapping[URIRef, int],
    parents: ParentClasses,
    names: Mapping[URIRef, str],
) -> tuple[ClassSurvey, ...]:
    """Return a survey of each class in ``totals``, the class with the largest total first.

    UNTYPED_CLASS becomes a class without an IRI, named "without a class", and comes last. The
    predicates of a class are sorted by how many instances have them. Equal totals come by IRI.
    """
    classes = []
    for iri, total in totals.items():
        used = properties.get(iri, ())
        superclasses = parents.get(iri, ())
        surveyed = ClassSurvey(
            iri=iri,
            name=names.get(iri) or name_from_iri(iri),
            size=sizes.get(iri, 0),
            total=total,
            parents=tuple(sorted(superclasses)),
            properties=tuple(sorted(used, key=by_frequency)),
        )
        if iri == UNTYPED_CLASS:
            surveyed = replace(surveyed, iri=None, name="without a class")
        classes.append(surveyed)

    def rank(surveyed: ClassSurvey) -> tuple[bool, int, str]:
        """Return the sort key of a class: with an IRI first, then by largest total, then by IRI."""
        return surveyed.iri is None, -surveyed.total, str(surveyed.iri)

    classes.sort(key=rank)
    return tuple(classes)


def find_ancestors(iris: Iterable[URIRef], parents: ParentClasses) -> list[URIRef]:
    """Return the superclasses of classes at any distance, each once, the nearest first.

    The classes themselves are left out, unless one is above another. Equally near ones come by IRI.
    """
    ancestors: dict[URIRef, None] = {}
    waiting = list(iris)
    for iri in waiting:
        for parent in sorted(parents.get(iri, ())):
            if parent not in ancestors:
                ancestors[parent] = None
                waiting.append(parent)
    return list(ancestors)


def _parts_of_sample(
    rows: Iterable[Row], classes_in_order: Iterable[URIRef]
) -> tuple[InstancePart, ...]:
    """Return sampled instances in parts of at most MAX_INSTANCES_PER_QUERY, each class in one part.

    ``rows`` have an instance and its class. The parts name the instances: joined with a subquery that
    has a LIMIT, Virtuoso would read the whole graph.
    """
    pairs_by_class: dict[URIRef, list[Row]] = defaultdict(list)
    for row in rows:
        pairs_by_class[row[1]].append(row)
    parts = []
    classes: list[URIRef] = []
    pairs: list[Row] = []
    for class_iri in classes_in_order:
        of_class = pairs_by_class.get(class_iri, [])
        if not of_class:
            continue
        if pairs and len(pairs) + len(of_class) > MAX_INSTANCES_PER_QUERY:
            parts.append(InstancePart(values_of_pairs("?v ?c", pairs), tuple(classes)))
            classes = []
            pairs = []
        classes.append(class_iri)
        pairs += of_class
    if pairs:
        parts.append(InstancePart(values_of_pairs("?v ?c", pairs), tuple(classes)))
    return tuple(parts)


def _iris_in_properties(properties: ClassProperties) -> Iterator[URIRef]:
    """Yield every IRI in the surveys of predicates; one may come several times.

    For each predicate, and each of its inner ones, these are the predicate itself, the classes and
    datatypes of its values, and the examples that are IRIs.
    """
    for used in properties.values():
        for surveyed in used:
            for part in (surveyed, *surveyed.inner):
                yield part.predicate
                for values in part.values:
                    for term in (values.of, *values.examples):
                        if isinstance(term, URIRef):
                            yield term


MAX_CLASSES = 5
"""Classes that questions are about: the largest."""
MAX_PREDICATES = 6
"""Predicates of each class that questions are about."""
PREPOSITIONS = ("at", "by", "for", "from", "in", "of", "on", "to", "with")
NON_NOUN_ENDINGS = tuple(f" {preposition}" for preposition in PREPOSITIONS)
"""A predicate whose name ends like this is no noun: "the directed by of" is not English."""


class SuggestedQuestion(NamedTuple):
    """A question that the graph may answer, and a right answer if one is known."""

    question: str
    answer: Term | None


def suggest_questions(kg: Graph, survey: Survey) -> Iterator[SuggestedQuestion]:
    """Yield questions "What is the PREDICATE of THING?", each with one of its right answers.

    They are about things of the largest classes. A thing has many triples, and a name that no other
    thing has. First comes one question about each class, then one with another predicate for each,
    up to MAX_PREDICATES rounds. Queries are sent as the questions are taken; a question whose query
    the graph refuses is left out. A system may still be unable to answer one, so run it before
    showing it.
    """
    names = dict(survey.names)
    type_predicates = map(n3, kg.vocabulary.types)
    types = "|".join(type_predicates)
    for round_number, surveyed, predicate in _choose_predicates(kg, survey):
        with suppress(GraphError):
            instances = untyped_pattern(types)
            if surveyed.iri:
                class_term = n3(surveyed.iri)
                instances = f"?v ({types}) {class_term} FILTER(isIRI(?v))"
            found = _find_named(kg, instances, predicate, round_number)
            if found:
                name, answer = found
                predicate_name = names.get(predicate) or name_from_iri(predicate)
                question = f"What is the {predicate_name} of {name}?"
                yield SuggestedQuestion(question, answer)


def _choose_predicates(kg: Graph, survey: Survey) -> Iterator[tuple[int, ClassSurvey, URIRef]]:
    """Yield the predicates to ask for: the number of the round from 0, the class, the predicate.

    There are MAX_PREDICATES rounds. Each has the next predicate of each of MAX_CLASSES classes,
    largest first, but classes whose instances have labels before others. A class without a further
    predicate is left out of a round. Labels, descriptions, noise and predicates with
    NON_NOUN_ENDINGS are not asked for.
    """
    names = dict(survey.names)
    labels = set(kg.vocabulary.labels)
    hidden = kg.vocabulary.excluded_predicates

    def lacks_labels(surveyed: ClassSurvey) -> bool:
        """Return whether no instance of a class has a label, as the survey shows."""
        return labels.isdisjoint(surveyed.predicates)

    labelled_first = sorted(survey.classes, key=lacks_labels)
    classes = labelled_first[:MAX_CLASSES]
    nouns_of_classes = []
    for surveyed in classes:
        nouns = []
        for iri in surveyed.predicates:
            name = names.get(iri) or name_from_iri(iri)
            if iri not in hidden and not name.endswith(NON_NOUN_ENDINGS):
                nouns.append(iri)
        nouns_of_classes.append(nouns)

    for round_number in range(MAX_PREDICATES):
        for surveyed, nouns in zip(classes, nouns_of_classes, strict=True):
            if round_number < len(nouns):
                yield round_number, surveyed, nouns[round_number]


def _find_named(
    kg: Graph, instances: str, predicate: URIRef, round_number: int
) -> tuple[str, Term] | None:
    """Return the name of an instance and a value that it has for the predicate, or None.

    ``instances`` is the SPARQL pattern of the instances ?v. Of the first 200 pairs of an instance
    and a value, the instances with the most triples are tried, beginning with number
    ``round_number``, so that the questions are not all about the same one. The first whose name no
    other vertex has is returned. Raises a GraphError.
    """
    limit = MAX_PREDICATES * 2
    result = kg.select(
        "SELECT ?v (COUNT(?any) AS ?n) (SAMPLE(?one) AS ?o) WHERE { { SELECT DISTINCT ?v ?one"
        f" WHERE {{ {instances} ?v {n3(predicate)} ?one }} LIMIT 200 }} ?v ?any ?value }}"
        f" GROUP BY ?v ORDER BY DESC(?n) ?v LIMIT {limit}"
    )
    values = []
    for vertex, _, value in result.rows:
        if isinstance(vertex, URIRef) and value is not None:
            values.append((vertex, value))
    if not values:
        return None
    vertices = [vertex for vertex, _ in values]
    names = kg.names(vertices)
    names_of_vertices = [names[vertex] for vertex in vertices]
    vertices_by_name = kg.exact(names_of_vertices)
    in_turn = values[round_number:] + values[:round_number]
    for vertex, value in in_turn:
        name = names[vertex]
        same_name = vertices_by_name.get(name, ())
        if len(same_name) == 1:
            return name, value
    return None
