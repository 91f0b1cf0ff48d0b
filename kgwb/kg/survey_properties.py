"""The predicates that the instances of each class use, with their values."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from rdflib import RDF, XSD, BNode, Literal, URIRef

from kgwb.kg.queries import parse_count
from kgwb.kg.sparql import n3, values_clause
from kgwb.kg.survey_queries import UNTYPED_CLASS, Instances, Row, SurveyQueries, values_of_pairs
from kgwb.kg.survey_records import SORTS_WITHOUT_DATATYPE, PropertySurvey, ValueSurvey
from kgwb.terms import Term, local_part

MAX_INNER_PREDICATES = 4
"""Predicates of a class whose instances only hold structure."""
MAX_LISTED_VALUES = 12
"""If a predicate of a class has at most so many distinct values, all are in the survey."""
MAX_PAIRS_PER_QUERY = 300
"""Pairs of class and predicate in one query for all values."""
PREDICATES_PART = "the predicates of classes"
VALUES_PART = "the values of predicates"
"""These parts of a survey are what a scan of the instances gives."""
ClassProperties = Mapping[URIRef, Sequence[PropertySurvey]]
"""The predicates of each class."""
PropertyKey = tuple[URIRef, ...]
"""A class and a predicate; for structure also an inner predicate."""
ValuesByKey = Mapping[PropertyKey, Sequence[ValueSurvey]]


class PropertyCollector:
    """Asks for the predicates and values of instances."""

    def __init__(self, queries: SurveyQueries, instances: Instances, labels: str) -> None:
        """Prepare to ask for the properties of ``instances``.

        ``labels`` is a property path over label predicates.
        """
        self.queries = queries
        self.instances = instances
        self.labels = labels
        self.not_surveyed: set[URIRef] = set()
        """Classes with a sample whose predicates the graph did not return."""
        self.refused_whole = False
        """Whether the graph refused to look at all instances. They must then be sampled."""

    def collect(self) -> ClassProperties:
        """Ask the graph which predicates the instances of each class use; return them by class.

        A predicate has the number of instances that have it, of its triples, its values by sort,
        its inner predicates, and the number of values without a label. Type predicates are left
        out. Numbers of a sample are scaled to the whole class. The predicates are in the order in
        which the graph returns them. The largest classes of a sample are asked for first. If the
        graph refuses a query about all instances, nothing is returned, and ``refused_whole`` is set.
        """
        instances = self.instances
        queries = self.queries
        values_by_key: dict[PropertyKey, Sequence[ValueSurvey]] = {}
        rows: list[Row] = []
        for part in instances.parts:
            fact = f"?v ?p ?o FILTER(?p NOT IN ({instances.not_a_type}))"
            facts = f"{part.pattern} {fact}"
            queries.part = VALUES_PART
            failed_before = queries.failed
            values_by_key.update(self._collect_values("?c ?p", facts))
            if not instances.is_sample and queries.failed > failed_before:
                self.refused_whole = True
                return {}
            queries.part = PREDICATES_PART
            failed_before = queries.failed
            if instances.is_sample:
                # Without OPTIONAL, Virtuoso may read the whole graph instead of these instances.
                # A row without a predicate, of an instance that has none, is left out.
                facts = f"{part.pattern} OPTIONAL {{ {fact} }}"
            counts = "(COUNT(DISTINCT ?v) AS ?things) (COUNT(*) AS ?n)"
            rows += queries.select_grouped("?c ?p", counts, facts)
            if queries.failed > failed_before:
                self.not_surveyed.update(part.classes)
                if not instances.is_sample:
                    self.refused_whole = True
                    return {}
        queries.part = "the predicates of nodes that only hold structure"
        inner = self._collect_inner(values_by_key)
        value_sets: Mapping[PropertyKey, list[Term]] = {}
        if not instances.is_sample:
            queries.part = "all values of predicates that have few"
            value_sets = self._list_small_value_sets(values_by_key)
        queries.part = "which values have no label"
        unnamed = self._count_unnamed(values_by_key)

        properties: dict[URIRef, list[PropertySurvey]] = defaultdict(list)
        for class_iri, predicate, things, triples in rows:
            key = (class_iri, predicate)
            sorts = values_by_key.get(key, ())
            surveyed = PropertySurvey(
                predicate=predicate,
                things=instances.scale(class_iri, things),
                triples=instances.scale(class_iri, triples),
                values=self._complete_values(sorts, value_sets.get(key)),
                inner=tuple(inner.get(key, ())),
                unnamed=unnamed.get(key, 0),
            )
            properties[class_iri].append(surveyed)
        return properties

    def _collect_values(self, keys: str, facts: str) -> ValuesByKey:
        """Return the sorts of the values ?o in a pattern, for each binding of ``keys``.

        ``keys`` is "?c ?p" or "?c ?p ?q". A sort is a class, a datatype, a language, IRIs without a
        class, or blank nodes, with its number of triples and of distinct values and with examples.
        The most frequent sort comes first. One query is sent; an engine other than Oxigraph gets
        another form of it.
        """
        triples = "COUNT(*)"
        distinct = "COUNT(DISTINCT ?o)"
        pattern = facts
        if not self.queries.kg.remote:
            # This takes Oxigraph half the time, but Virtuoso 7 may return no row at all for it.
            triples = "SUM(?m)"
            distinct = "COUNT(*)"
            pattern = (
                f"{{ SELECT {keys} ?o (COUNT(*) AS ?m) WHERE {{ {facts} }} GROUP BY {keys} ?o }}"
            )
        query = (
            f"SELECT {keys} ({triples} AS ?n) ({distinct} AS ?d) ?k ?type ?tag"
            " (MIN(?o) AS ?least) (MAX(?o) AS ?most) (SAMPLE(?o) AS ?some)"
            f" WHERE {{ {pattern} OPTIONAL {{ ?o ({self.instances.types}) ?k }}"
            " BIND(isBlank(?o) AS ?blank) BIND(DATATYPE(?o) AS ?type) BIND(LANG(?o) AS ?tag) }"
            f" GROUP BY {keys} ?k ?blank ?type ?tag"
        )
        key_count = keys.count("?")
        values_by_key: dict[PropertyKey, list[ValueSurvey]] = defaultdict(list)
        for row in self.queries.select(query, key_count):
            surveyed = self._read_values(row[0], row[key_count:])
            if surveyed:
                values_by_key[row[:key_count]].append(surveyed)

        def rank(values: ValueSurvey) -> tuple[int, str, str]:
            """Return the sort key of values: the most triples first, then by sort and class."""
            return -values.triples, values.sort, str(values.of)

        for sorts in values_by_key.values():
            sorts.sort(key=rank)
        return values_by_key

    def _read_values(self, class_iri: URIRef, row: Row) -> ValueSurvey | None:
        """Return the values of one sort from a row of ``_collect_values``, without its keys.

        A literal has the sort of its datatype and language, an IRI that of its class or "IRI", a
        blank node "node". The examples are the least, the greatest and any value, each once,
        without blank nodes and empty texts. Triples of a sample are scaled. None if the class of
        the values is a blank node.
        """
        triples, distinct, value_class, datatype, language, *terms = row
        shown = [term for term in terms if term is not None and str(term)]
        example = terms[0]
        if shown:
            example = shown[0]
        value_type = value_class
        if isinstance(example, Literal):
            language = str(language or "")
            sort = literal_sort(datatype, language)
            value_type = URIRef(datatype or XSD.string)
            if language:
                value_type = RDF.langString
        elif isinstance(value_class, BNode):
            return None
        elif value_class:
            sort = "class"
        elif isinstance(example, BNode):
            sort = "node"
        else:
            sort = "IRI"
        if isinstance(example, BNode):
            shown = []
        distinct_examples = dict.fromkeys(shown)
        return ValueSurvey(
            sort=sort,
            of=value_type,
            triples=self.instances.scale(class_iri, triples),
            distinct=parse_count(distinct),
            examples=tuple(distinct_examples),
        )

    def _collect_inner(
        self, values_by_key: ValuesByKey
    ) -> Mapping[PropertyKey, list[PropertySurvey]]:
        """Return the predicates of nodes that only hold structure, such as amount and unit.

        The key is the class and the predicate that lead to the nodes. A node only holds structure
        if it is blank and without a class, or an instance of a class from
        ``_find_structure_classes``. Inner predicates are sorted by IRI. Their number of triples
        also stands for the number of nodes.
        """
        types = self.instances.types
        patterns = []
        with_nodes = _classes_with(values_by_key, lambda values: values.sort == "node")
        for part in self.instances.parts_with(with_nodes) if with_nodes else ():
            patterns.append(
                f"{part.pattern} ?v ?p ?b FILTER(isBlank(?b))"
                f" FILTER NOT EXISTS {{ ?b ({types}) ?t }} ?b ?q ?o"
            )
        structure_classes = self._find_structure_classes(values_by_key)
        if structure_classes:
            leading = _classes_with(values_by_key, lambda values: values.of in structure_classes)
            of_class = f"{values_clause('?t', structure_classes)} ?b ({types}) ?t ."
            if self.instances.is_sample:
                # With VALUES, Oxigraph reads all instances of these classes.
                listed = ", ".join(map(n3, structure_classes))
                of_class = f"?b ({types}) ?t FILTER(?t IN ({listed}))"
            is_no_type = f"FILTER(?q NOT IN ({self.instances.not_a_type}))"
            for part in self.instances.parts_with(leading):
                patterns.append(f"{part.pattern} ?v ?p ?b . {of_class} ?b ?q ?o {is_no_type}")

        inner: dict[PropertyKey, list[PropertySurvey]] = defaultdict(list)
        for facts in patterns:
            inner_values = self._collect_values("?c ?p ?q", facts)
            for key, sorts in sorted(inner_values.items()):
                class_iri, predicate, inner_predicate = key
                triples = sum(values.triples for values in sorts)
                complete = self._complete_values(sorts, None)
                surveyed = PropertySurvey(inner_predicate, triples, triples, complete)
                inner[class_iri, predicate].append(surveyed)
        return inner

    def _find_structure_classes(self, values_by_key: ValuesByKey) -> list[URIRef]:
        """Return the classes whose instances only hold structure.

        Instances of such a class are values of predicates, and have what ``holds_structure`` asks
        of their own predicates.
        """
        values_of: dict[URIRef, dict[URIRef, Sequence[ValueSurvey]]] = defaultdict(dict)
        value_classes: set[URIRef | None] = set()
        for (class_iri, predicate), sorts in values_by_key.items():
            values_of[class_iri][predicate] = sorts
            for values in sorts:
                value_classes.add(values.of)

        labels = self.queries.kg.vocabulary.labels
        found = []
        for class_iri, values_by_predicate in values_of.items():
            if class_iri in value_classes and holds_structure(values_by_predicate, labels):
                found.append(class_iri)
        return found

    def _list_small_value_sets(
        self, values_by_key: ValuesByKey
    ) -> Mapping[PropertyKey, list[Term]]:
        """Return all values of each class and predicate that has few, by class and predicate.

        It is not for a sample, whose values need not be all of a class.

        Few are at most MAX_LISTED_VALUES, of which at least one occurs several times, or exactly
        three of one sort. Predicates with blank nodes as values are left out, and so are things
        without a class. The values are asked of the graph, MAX_PAIRS_PER_QUERY pairs of class and
        predicate at a time.
        """
        pairs = []
        for (class_iri, predicate), sorts in values_by_key.items():
            if class_iri != UNTYPED_CLASS and _is_small_value_set(sorts):
                pairs.append((class_iri, predicate))

        instances = f"?v ({self.instances.types}) ?c ."
        value_sets: dict[PropertyKey, list[Term]] = defaultdict(list)
        for start in range(0, len(pairs), MAX_PAIRS_PER_QUERY):
            end = start + MAX_PAIRS_PER_QUERY
            listed = values_of_pairs("?c ?p", pairs[start:end])
            query = f"SELECT DISTINCT ?c ?p ?o WHERE {{ {listed} {instances} ?v ?p ?o }}"
            rows = self.queries.select(query, 2)
            for class_iri, predicate, value in rows:
                value_sets[class_iri, predicate].append(value)
        return value_sets

    def _count_unnamed(self, values_by_key: ValuesByKey) -> dict[PropertyKey, int]:
        """Return the number of distinct IRIs without a label among the values of a predicate.

        The key is class and predicate. Only predicates are counted that have IRIs without a class
        as values in any class; others have no entry. One query is sent, or none; of a sample one for
        each of its parts.
        """
        predicates = set()
        for (_, predicate), sorts in values_by_key.items():
            if any(values.sort == "IRI" for values in sorts):
                predicates.add(predicate)
        if not predicates:
            return {}
        classes = {class_iri for class_iri, predicate in values_by_key if predicate in predicates}
        listed = values_clause("?p", sorted(predicates))
        unnamed: dict[PropertyKey, int] = {}
        for part in self.instances.parts_with(classes):
            pattern = (
                f"{listed} {part.pattern}"
                f" ?v ?p ?o FILTER(isIRI(?o)) FILTER NOT EXISTS {{ ?o ({self.labels}) ?label }}"
            )
            rows = self.queries.select_grouped("?c ?p", "(COUNT(DISTINCT ?o) AS ?n)", pattern)
            for class_iri, predicate, number in rows:
                unnamed[class_iri, predicate] = parse_count(number)
        return unnamed

    def _complete_values(
        self, sorts: Sequence[ValueSurvey], value_set: Sequence[Term] | None
    ) -> tuple[ValueSurvey, ...]:
        """Return the values of each sort with all of them as examples, if they are known.

        ``value_set`` has all values of the predicate, of every sort; None if they were not listed.
        One or two values are known in any case: they are the least and the greatest. In a sample
        it is never known whether there are others.
        """
        completed = []
        for values in sorts:
            examples: Sequence[Term] = values.examples
            if value_set is None:
                is_complete = values.distinct == len(examples) < 3
            else:
                listed = [term for term in value_set if _may_be_one_of(term, values)]
                is_complete = values.distinct == len(listed)
                if is_complete:
                    examples = sorted(listed, key=str)
            is_whole = is_complete and not self.instances.is_sample
            with_examples = replace(values, examples=tuple(examples), whole=is_whole)
            completed.append(with_examples)
        return tuple(completed)


def holds_structure(
    values_by_predicate: Mapping[URIRef, Sequence[ValueSurvey]], labels: Collection[URIRef]
) -> bool:
    """Return whether things with these predicates only hold structure, such as a number and a unit.

    They have two to MAX_INNER_PREDICATES predicates, none of the ``labels`` among them, and all but
    at most one have only literals as values.
    """
    not_literal = 0
    for sorts in values_by_predicate.values():
        if not all(values.is_literal for values in sorts):
            not_literal += 1
    is_small = 1 < len(values_by_predicate) <= MAX_INNER_PREDICATES
    is_labelled = not values_by_predicate.keys().isdisjoint(labels)
    return is_small and not_literal <= 1 and not is_labelled


def _classes_with(
    values_by_key: ValuesByKey, is_meant: Callable[[ValueSurvey], bool]
) -> set[URIRef]:
    """Return the classes with a predicate that has values of a sort that is meant."""
    classes = set()
    for (class_iri, *_), sorts in values_by_key.items():
        if any(map(is_meant, sorts)):
            classes.add(class_iri)
    return classes


def literal_sort(datatype: str | None, language: str | None) -> str:
    """Return the sort of a literal: "text@en" with a language, else the datatype's local part.

    It is the IRI of a datatype whose local part means something else as a sort.
    """
    if language:
        return f"text@{language}"
    datatype = str(datatype or XSD.string)
    local = local_part(datatype)
    is_taken = local in SORTS_WITHOUT_DATATYPE or "@" in local
    is_other_string = local == "string" and datatype != str(XSD.string)
    if is_taken or is_other_string:
        return datatype
    return local


def _is_small_value_set(sorts: Sequence[ValueSurvey]) -> bool:
    """Return whether all values of a predicate are to be listed.

    They are if they are at most MAX_LISTED_VALUES, no blank nodes, and a value occurs in several
    triples. Exactly three values of one sort are listed without the last condition.
    """
    number = sum(values.distinct for values in sorts)
    has_nodes = any(values.sort == "node" for values in sorts)
    if has_nodes or number > MAX_LISTED_VALUES:
        return False
    if len(sorts) == 1 and number == 3:
        return True
    return any(values.distinct < values.triples for values in sorts)


def _may_be_one_of(term: Term, values: ValueSurvey) -> bool:
    """Return whether a term could be one of the values that ``values`` describes, by its sort.

    An IRI could be of any class. A literal must have the language, or the datatype.
    """
    if isinstance(term, URIRef):
        return values.sort in ("class", "IRI")
    if isinstance(term, BNode):
        return values.sort == "node"
    if literal_sort(term.datatype, term.language) != values.sort:
        return False
    if term.language:
        return True
    datatype = term.datatype or XSD.string
    return values.of == datatype
