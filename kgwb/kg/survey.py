"""The survey of a graph: its classes, the predicates that their instances use, and the values.

It does not depend on any question. A survey is kept in the cache folder, by the graph's identity.
``suggest_questions`` makes questions of it that the graph may answer.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from threading import Lock
from typing import NamedTuple, TypeVar

from rdflib import OWL, RDF, RDFS, URIRef

from kgwb import disk
from kgwb.errors import GraphError
from kgwb.kg.base import SCHEMA_NAMESPACES, WIKIBASE_NAMESPACE, Graph
from kgwb.kg.queries import (
    IRIS_PER_NAME_QUERY,
    describe_vertices,
    parse_count,
    values_table,
)
from kgwb.kg.sparql import is_valid_iri, n3, union_clause, values_clause
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
    LinkFinder,
    PropertyCollector,
    Row,
    SurveyQueries,
    largest_first,
    path_over,
    untyped_pattern,
)
from kgwb.kg.survey_records import (
    ClassSurvey,
    Survey,
    by_frequency,
    group_classes,
    iris_in_properties,
)
from kgwb.records import from_data, to_data
from kgwb.terms import Term, find_reached, name_from_iri, split_into_batches
from kgwb.text import pluralize

CACHE_LIFETIME_S = 86_400.0
"""How long the survey of an endpoint is used. That of a file is used as long as it is unchanged."""
SURVEY_VERSION = 8
"""Part of a survey's identity: surveys of other versions are built again."""
INCOMPLETE_LIFETIME_S = 600.0
"""How long a survey that lacked time is used: else each question of a slow endpoint would wait for another."""
_survey_locks: dict[Path, Lock] = {}
"""By the file of a survey: one thread builds it, while the others wait."""
_incomplete_surveys: dict[Path, tuple[float, Survey]] = {}
"""By the file in which a whole one would be: the last one that lacked time, with the time at which it was made."""
_loaded_surveys: dict[Path, tuple[int, Survey]] = {}
"""Surveys that this process has read, with the times (ns) at which their files were written."""


def survey_graph(
    kg: Graph, only_classes: Sequence[URIRef] = (), *, timeout_s: float = SURVEY_TIMEOUT_S
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
    if timeout_s != SURVEY_TIMEOUT_S:
        identity += f" {timeout_s}"
    digest = hashlib.sha256(identity.encode()).hexdigest()
    path = disk.cache_dir() / f"survey-{digest[:32]}.json"
    # Several questions may be asked of one graph at the same time.
    with _survey_locks.setdefault(path, Lock()):
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
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            disk.write_atomically(path, [json.dumps(to_data(survey))], "surrogatepass")
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
        if written_at != file.st_mtime_ns:
            survey = from_data(json.loads(disk.read_text(path)), Survey)
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
MAX_QUERIES_FOR_NAMES = 5
"""What an endpoint may send for the names, or descriptions, of IRIS_PER_NAME_QUERY IRIs.

Two find out which labels there are, and two read them: those in preferred languages, then others.
One reads descriptions.
"""
INSTANCES_PART = "some instances of each class"
EXACT_NUMBERS_PART = "the exact numbers of predicates and values"
"""The part of a survey that a sample lacks which was taken since the graph refused more."""
MAX_UNIT_INSTANCES = 12
"""A class with more instances is not taken for units."""
MAX_LANGUAGES = 12
NO_LABEL = "-"
"""Stands in a query for the language of a thing without a label."""
GENERIC_CLASSES = (OWL.Thing, RDFS.Resource, OWL.NamedIndividual)
"""Classes that say nothing about their instances."""
DECLARING_PREDICATES = (RDFS.domain, RDFS.range, OWL.inverseOf)
"""Whatever has one of these is a predicate."""
T = TypeVar("T")
ParentClasses = Mapping[URIRef, set[URIRef]]
"""The direct superclasses of each class."""


class SurveyBuilder:
    """Asks a graph for everything that its survey holds."""

    is_large: bool
    schema_classes: list[URIRef]
    """Classes of RDF, RDFS, OWL and Wikibase that have instances, such as owl:Class."""
    classes_are_iris: bool
    """Whether it is known that no class is a blank node, which takes an engine long to tell."""
    typed: int | None
    """How many subjects have a class, blank nodes included; not set of a sample."""

    def __init__(
        self,
        kg: Graph,
        only_classes: Sequence[URIRef] = (),
        timeout_s: float = SURVEY_TIMEOUT_S,
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
        sizes = self._count_instances(triples_by_predicate)
        queries.part = "the superclasses"
        parents = self._find_parents()
        queries.part = INSTANCES_PART
        instances = self._choose_instances(sizes, {*triples_by_predicate, *sizes})
        things = self._count_things(instances)
        if things is not None:
            with_class = things - sizes.get(UNTYPED_CLASS, 0)
            instances = replace(instances, are_iris=with_class == self.typed)
        above = chain.from_iterable(parents.get(iri, ()) for iri in sizes)
        classes = sizes.keys() | find_reached(above, parents)
        classes.discard(UNTYPED_CLASS)
        queries.part = "the names of classes"
        names = self._find_names(classes)
        collector, properties = self._collect_properties(instances, sizes)
        instances = collector.instances

        unused: tuple[URIRef, ...] = ()
        if not self.is_large:
            queries.part = "which declarations are not used"
            unused = self._find_unused(classes)
        queries.part = "the names of predicates and values"
        all_properties = list(chain.from_iterable(properties.values()))
        unnamed_iris = {*unused, *iris_in_properties(all_properties)}.difference(names)
        names |= self._find_names(unnamed_iris)
        queries.part = "the languages of labels"
        unlabelled, languages = self._count_labels(instances, things, sizes, properties)
        queries.part = "the instances of superclasses"
        totals = self._count_totals(sizes, parents)
        queries.part = "the descriptions of classes and predicates"
        predicates = {surveyed.predicate for surveyed in all_properties}
        notes = self._find_descriptions([*triples_by_predicate, *predicates, *classes, *unused])
        inner = chain.from_iterable(surveyed.inner for surveyed in all_properties)
        described = predicates.union(surveyed.predicate for surveyed in inner)

        survey = Survey(
            triples=triples,
            things=things,
            predicates=len(triples_by_predicate) or None,
            classes=make_class_surveys(properties, sizes, totals, parents, names),
            unlabelled=unlabelled,
            languages=languages,
            unused=unused,
            undescribed=tuple(sorted(triples_by_predicate.keys() - described)),
            notes=notes,
            names=tuple(sorted(names.items())),
            sampled=instances.is_sample,
            sample_limit=instances.limit,
        )
        if not instances.is_sample:
            queries.part = "the predicates of superclasses"
            survey = self._count_overlapping(survey)
            queries.part = "which predicates say the same"
            survey = self._compare_predicates(survey, triples_by_predicate)
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

    def _count_overlapping(self, survey: Survey) -> Survey:
        """Return the survey with the predicates of superclasses whose instances have several classes.

        They are asked for together. The survey is returned as it is if there are none, or if the
        graph refuses: their subclasses are then groups of their own.
        """
        pairs = []
        for group in group_classes(survey, keeps_uncounted=True):
            top_class = group.top_class.iri
            if top_class and not group.properties:
                pairs += [(member, top_class) for member in group.iris]
        if not pairs:
            return survey
        members = f"{values_table('?m ?c', pairs)} ?v ({self.queries.types}) ?m"
        pattern = f"{{ SELECT DISTINCT ?v ?c WHERE {{ {members} }} }}"
        part = InstancePart(pattern, pattern)
        properties = PropertyCollector(self.queries, Instances((part,), {})).collect()
        overlapping = []
        for iri, used in sorted(properties.items()):
            overlapping.append((iri, tuple(sorted(used, key=by_frequency))))
        return replace(survey, overlapping=tuple(overlapping))

    def _compare_predicates(self, survey: Survey, triples: Mapping[URIRef, int]) -> Survey:
        """Return the survey with what its predicates have in common, by their triples.

        Predicates of which at least a tenth of the triples lead from a group of classes to itself
        have the number of those of which the reverse is there, too.
        """
        groups = group_classes(survey)
        within: Counter[URIRef] = Counter()
        for group in groups:
            for prop in group.properties:
                for values in prop.values:
                    within[prop.predicate] += (values.of in group.iris) * values.triples
        predicates = sorted(iri for iri in within if 0 < triples.get(iri, 0) <= 10 * within[iri])
        both: Mapping[URIRef, int] = {}
        if predicates:
            listed = values_clause("?p", predicates)
            both = self.queries.count_by("?p", "*", f"{listed} ?a ?p ?b . ?b ?p ?a")
        return replace(
            survey,
            both_ways=tuple((iri, triples[iri], both.get(iri, 0)) for iri in predicates),
            texts_of_links=LinkFinder(self.queries, groups).find(),
            factors=self._find_factors(survey),
        )

    def _find_factors(self, survey: Survey) -> tuple[tuple[URIRef, URIRef, Term], ...]:
        """Return the numbers of things that nodes have as their unit, such as a factor; sorted.

        A class counts if nodes that only hold structure lead to it, it has at most
        MAX_UNIT_INSTANCES instances, and a predicate has one value for each: 1 for the base unit.
        One query is sent, or none.
        """
        units: set[URIRef | None] = set()
        for surveyed in survey.classes:
            for prop in surveyed.properties:
                for inner in prop.inner:
                    units.update(values.of for values in inner.values)
        pairs = []
        for surveyed in survey.classes:
            if surveyed.iri is None or surveyed.iri not in units:
                continue
            for prop in surveyed.properties:
                if prop.triples == prop.things == surveyed.size <= MAX_UNIT_INSTANCES:
                    pairs.append((surveyed.iri, prop.predicate))
        if not pairs:
            return ()
        listed = values_table("?c ?p", pairs)
        pattern = f"{listed} ?v ({self.queries.types}) ?c . ?v ?p ?n FILTER(isIRI(?v))"
        rows = self.queries.select(f"SELECT DISTINCT ?v ?p ?n WHERE {{ {pattern} }}", 2)
        with_base = {predicate for _, predicate, value in rows if value.toPython() == 1}
        return tuple(sorted(row for row in rows if row[1] in with_base))

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

    def _count_instances(self, triples: Mapping[URIRef, int]) -> dict[URIRef, int]:
        """Return the number of instances of each class, the largest first.

        ``schema_classes`` and ``classes_are_iris`` are set, by the triples of each predicate. Classes
        of a schema, such as owl:Class, are left out and put into ``schema_classes``, and so
        is owl:NamedIndividual left out. With ``only_classes``, these alone are counted. In a large
        graph, the triples that give a class are counted instead of distinct instances.
        """
        only = ""
        if self.only_classes:
            only = values_clause("?c", self.only_classes)
        counted = DISTINCT_VERTICES
        if self.is_large:
            counted = "*"
        pattern = f"{only} ?v ({self.queries.types}) ?c"
        sizes = self.queries.count_by("?c", counted, pattern)

        typing = sum(triples.get(iri, 0) for iri in self.kg.vocabulary.types)
        self.classes_are_iris = typing == sum(sizes.values())
        self.schema_classes = []
        for iri in sizes:
            # URIRef has a startswith of its own, which takes no tuple
            is_schema = str(iri).startswith(SCHEMA_NAMESPACES)
            if is_schema and iri not in GENERIC_CLASSES:
                self.schema_classes.append(iri)
        for hidden in (*self.schema_classes, OWL.NamedIndividual):
            sizes.pop(hidden, None)
        return sizes

    def _choose_instances(self, sizes: dict[URIRef, int], used: Iterable[URIRef]) -> Instances:
        """Return the instances whose predicates are surveyed, as a pattern of ?v and its class ?c.

        They are all instances, or a sample if the graph is large or ``only_classes`` are given. If
        there are things without a class, these become instances of UNTYPED_CLASS, and their number
        is added to ``sizes``, which is changed. ``used`` are the predicates and classes in use.
        """
        if self.is_large or self.only_classes:
            return self._sample_instances(sizes)

        number = self._count_untyped(used)
        if number > 0:
            sizes[UNTYPED_CLASS] = number
        pattern = self._pattern_of_all("isIRI(?c) && ", has_untyped=number > 0)
        quick = pattern
        if self.classes_are_iris:
            quick = self._pattern_of_all("", has_untyped=number > 0)
        return Instances((InstancePart(pattern, quick),), {})

    def _pattern_of_all(self, is_class: str, *, has_untyped: bool) -> str:
        """Return a pattern of all instances ?v of each class ?c that is not hidden.

        ``is_class`` is a further condition for classes.
        """
        hidden = ", ".join(map(n3, (*self.schema_classes, OWL.NamedIndividual)))
        types = self.queries.types
        pattern = f"{{ ?v ({types}) ?c FILTER({is_class}?c NOT IN ({hidden})) }}"
        if has_untyped:
            untyped = f"{{ SELECT DISTINCT ?v WHERE {{ {untyped_pattern(types)} }} }}"
            of_no_class = f"{untyped} BIND({n3(UNTYPED_CLASS)} AS ?c)"
            pattern = f"{{ {pattern} UNION {{ {of_no_class} }} }}"
        return pattern

    def _count_untyped(self, used: Iterable[URIRef]) -> int:
        """Return the number of things without a class, but for the predicates and classes in use.

        They are what is left of all subjects: engines take long to look for them. Blank nodes are no
        things. To tell them apart, Oxigraph reads each subject, so it is asked only if some are
        left. 0 if the graph refuses to count the subjects.
        """
        has_type = f"?v ({self.queries.types}) ?type"
        subject = "?v ?any ?value"
        subjects = self.queries.count(DISTINCT_VERTICES, subject)
        self.typed = self.queries.count(DISTINCT_VERTICES, has_type)
        untyped = f"FILTER NOT EXISTS {{ {has_type} }}"
        used_subjects = f"{values_clause('?v', used)} FILTER EXISTS {{ {subject} }} {untyped}"
        schema = self.queries.count("*", used_subjects)
        left = (subjects or 0) - (self.typed or 0) - (schema or 0)
        if left > 0:
            blank = f"{subject} FILTER(isBlank(?v)) {untyped}"
            left -= self.queries.count(DISTINCT_VERTICES, blank) or 0
        return left

    def _count_things(self, instances: Instances) -> int | None:
        """Return how many things there are; None for a sample, or if the graph refuses to count them.

        Things are IRIs with a class that is not one of the schema, and those without a class.
        """
        if instances.is_sample:
            return None
        self.queries.part = "the number of things"
        things = f"{instances.parts[0].quick} FILTER(isIRI(?v))"
        return self.queries.count(DISTINCT_VERTICES, things)

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
            instances = f"?v ({self.queries.types}) {class_term} FILTER(isIRI(?v))"
            parts.append(
                f"{{ SELECT ?v ({class_term} AS ?c) WHERE {{ {instances} }} LIMIT {limit} }}"
            )
        if not classes:
            any_instance = f"?v ({self.queries.types}) ?c"
            if self.queries.types == MISSING_PREDICATE:
                any_instance = f"?v ?any ?value FILTER(isIRI(?v)) BIND({n3(UNTYPED_CLASS)} AS ?c)"
            parts = [f"{{ SELECT DISTINCT ?v ?c WHERE {{ {any_instance} }} LIMIT {limit} }}"]

        def write(some: Sequence[str]) -> str:
            """Return the query for the instances of some classes."""
            return f"SELECT ?v ?c WHERE {{ {' UNION '.join(some)} }}"

        rows = list(self.queries.select_batches(parts, MAX_CLASSES_PER_QUERY, write))
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
        parents: dict[URIRef, set[URIRef]] = defaultdict(set)
        for child, parent in self.queries.select(query, 2):
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
            for ancestor in sorted(find_reached(parents.get(iri, ()), parents)):
                pairs.append((iri, ancestor))
                subclass_sizes[ancestor].append(size)

        totals = dict(sizes)
        if pairs and not self.is_large:
            pairs += [(ancestor, ancestor) for ancestor in subclass_sizes]
            values = values_table("?c ?d", pairs)
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

    def _find_unused(self, classes: Collection[URIRef]) -> tuple[URIRef, ...]:
        """Return the predicates and classes that are declared and that no triple uses.

        A declaration has a type such as owl:Class, a domain or a range, or is the inverse of another
        one. Properties of Wikibase and ``classes`` are left out. Predicates come before classes.
        Empty if the graph refuses.
        """
        kinds = []
        for iri in self.schema_classes:
            if iri.endswith(("Class", "Property")) and not iri.startswith(WIKIBASE_NAMESPACE):
                kinds.append(iri)
        listed = values_clause("?k", kinds)
        typed = f"{listed} ?p ({self.queries.types}) ?k"
        related = f"?p {path_over(DECLARING_PREDICATES)} ?other"
        inverse = f"?other {n3(OWL.inverseOf)} ?p"
        declared = union_clause([typed, related, inverse])
        is_no_predicate = "FILTER NOT EXISTS { ?s ?p ?o }"
        is_no_class = f"FILTER NOT EXISTS {{ ?v ({self.queries.types}) ?p }}"
        where = f"{declared} {is_no_predicate} {is_no_class}"
        rows = self.queries.select(f"SELECT DISTINCT ?p ?k WHERE {{ {where} }}", 1)
        unused = set()
        for iri, kind in rows:
            if iri not in classes and not str(iri).startswith(SCHEMA_NAMESPACES):
                unused.add((str(kind).endswith("Class"), iri))
        return tuple(dict.fromkeys(iri for _, iri in sorted(unused)))

    def _find_names(self, iris: Iterable[URIRef]) -> dict[URIRef, str]:
        """Return the display names of IRIs, by IRI."""
        return self._ask_about(iris, self.kg.names)

    def _find_descriptions(self, iris: Iterable[URIRef]) -> tuple[tuple[URIRef, str], ...]:
        """Return the IRIs that the graph describes, sorted, with their descriptions."""
        if not self.queries.descriptions:
            return ()
        found = self._ask_about(iris, partial(describe_vertices, self.kg))
        descriptions = []
        for iri, described in found.items():
            if described.description:
                descriptions.append((iri, described.description))
        return tuple(sorted(descriptions))

    def _ask_about(
        self, iris: Iterable[URIRef], ask: Callable[[Sequence[URIRef]], Mapping[URIRef, T]]
    ) -> dict[URIRef, T]:
        """Return what ``ask`` returns for IRIs, IRIS_PER_NAME_QUERY at a time, by IRI.

        IRIs that no query can contain are left out. Those are missing for which the graph refuses a
        request.
        """
        asked = sorted(set(filter(is_valid_iri, iris)))
        found: dict[URIRef, T] = {}
        for batch in split_into_batches(asked, IRIS_PER_NAME_QUERY):
            send = partial(ask, batch)
            found.update(self.queries.attempt(send, MAX_QUERIES_FOR_NAMES) or {})
        return found

    def _count_labels(
        self,
        instances: Instances,
        things: int | None,
        sizes: Mapping[URIRef, int],
        properties: ClassProperties,
    ) -> tuple[int | None, tuple[tuple[str, int], ...]]:
        """Return how many things have no label, and languages with how many have one in each.

        A language is a tag, "" for none; there are at most MAX_LANGUAGES, the most frequent first.
        Of a sample, the first number is None, and the labels are counted in place of the things. It
        is also None if the graph refuses to count. No query is sent if ``properties`` tell that each
        thing has a label, and that all labels are in one language.
        """
        counts = self._labels_by_language(properties)
        unlabelled = None
        if instances.is_sample:
            return unlabelled, tuple(largest_first(+counts)[:MAX_LANGUAGES])
        if things is not None and len(counts) == 1 and self._are_labelled(sizes, properties):
            return 0, tuple((language, things) for language in counts)

        instance = f"{instances.parts[0].quick} FILTER(isIRI(?v))"
        label = self.queries.read_first("?v ?label", f"?v ({self.queries.labels}) ?label")
        tag = f'BIND(IF(BOUND(?label), LANG(?label), "{NO_LABEL}") AS ?tag)'
        pattern = f"{instance} OPTIONAL {{ {label} }} {tag}"
        rows = self.queries.select(
            f"SELECT ?tag (COUNT(DISTINCT ?v) AS ?n) WHERE {{ {pattern} }} GROUP BY ?tag"
        )
        counts = Counter()
        for language, number in rows:
            counts[str(language or "")] += parse_count(number)
        if rows:
            unlabelled = counts.pop(NO_LABEL, 0)
        return unlabelled, tuple(largest_first(+counts)[:MAX_LANGUAGES])

    def _labels_by_language(self, properties: ClassProperties) -> Counter[str]:
        """Return the number of labels in each language, by class."""
        counts: Counter[str] = Counter()
        for surveyed in chain.from_iterable(properties.values()):
            if surveyed.predicate in self.kg.vocabulary.labels:
                for values in surveyed.values:
                    language = ""
                    if values.of == RDF.langString:
                        language = values.sort.partition("@")[2]
                    counts[language] += values.triples
        return counts

    def _are_labelled(self, sizes: Mapping[URIRef, int], properties: ClassProperties) -> bool:
        """Return whether each instance has a label, and the sorts of all labels are known."""
        for class_iri, size in sizes.items():
            labels = []
            for surveyed in properties.get(class_iri, ()):
                if surveyed.predicate in self.kg.vocabulary.labels:
                    labels.append(surveyed)
            if not any(label.things == size for label in labels):
                return False
            for label in labels:
                if sum(values.triples for values in label.values) != label.triples:
                    return False
        return True


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
        surveyed = ClassSurvey(
            iri=iri,
            name=names.get(iri) or name_from_iri(iri),
            size=sizes.get(iri, 0),
            total=total,
            parents=tuple(sorted(parents.get(iri, ()))),
            properties=tuple(sorted(properties.get(iri, ()), key=by_frequency)),
        )
        if iri == UNTYPED_CLASS:
            surveyed = replace(surveyed, iri=None, name="without a class")
        classes.append(surveyed)
    classes.sort(key=lambda each: (each.iri is None, -each.total, str(each.iri)))
    return tuple(classes)


def _parts_of_sample(
    rows: Iterable[Row], classes_in_order: Iterable[URIRef]
) -> tuple[InstancePart, ...]:
    """Return sampled instances in parts of at most MAX_INSTANCES_PER_QUERY, each class in one part.

    ``rows`` have an instance and its class. The parts name the instances: joined with a subquery that
    has a LIMIT, Virtuoso would read the whole graph.
    """
    by_class: dict[URIRef, list[Row]] = defaultdict(list)
    for row in rows:
        by_class[row[1]].append(row)
    batches: list[list[Row]] = [[]]
    for class_iri in classes_in_order:
        if len(batches[-1]) + len(by_class[class_iri]) > MAX_INSTANCES_PER_QUERY:
            batches.append([])
        batches[-1] += by_class[class_iri]
    parts = []
    for pairs in filter(None, batches):
        classes = dict.fromkeys(class_iri for _, class_iri in pairs)
        pattern = values_table("?v ?c", pairs)
        parts.append(InstancePart(pattern, pattern, tuple(classes)))
    return tuple(parts)


# Questions that a graph may answer


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
    types = path_over(kg.vocabulary.types)
    for round_number, surveyed, predicate in _choose_predicates(kg, survey):
        with suppress(GraphError):
            instances = untyped_pattern(types)
            if surveyed.iri:
                instances = f"?v ({types}) {n3(surveyed.iri)} FILTER(isIRI(?v))"
            found = _find_named(kg, instances, predicate, round_number)
            if found:
                name, answer = found
                predicate_name = names.get(predicate) or name_from_iri(predicate)
                yield SuggestedQuestion(f"What is the {predicate_name} of {name}?", answer)


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
    labelled_first = sorted(survey.classes, key=lambda each: labels.isdisjoint(each.predicates))
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
    names = kg.names([vertex for vertex, _ in values])
    vertices_by_name = kg.exact([names[vertex] for vertex, _ in values])
    for vertex, value in values[round_number:] + values[:round_number]:
        name = names[vertex]
        if len(vertices_by_name.get(name, ())) == 1:
            return name, value
    return None
