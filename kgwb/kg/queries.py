"""Questions that several agents ask a graph, in SPARQL 1.1."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain, pairwise
from operator import itemgetter
from typing import NamedTuple

from rdflib import BNode, Literal, URIRef
from rdflib.namespace import RDF, RDFS, XSD

from kgwb.errors import QueryError
from kgwb.kg.algebra import (
    PATH_PLACEHOLDER,
    TriplePattern,
    analyze_query,
    constants_of,
    instantiate_patterns,
    patterns_and_filters_to_sparql,
    patterns_to_sparql,
    variables_of,
)
from kgwb.kg.base import (
    MAX_SUPPORTED_ROWS,
    SCHEMA_NAMESPACES,
    WIKIBASE_PROPERTY,
    Direction,
    Graph,
    Vocabulary,
)
from kgwb.kg.label_search import language_rank, normalize
from kgwb.kg.labels import fact_condition
from kgwb.kg.sparql import (
    LANGUAGE_TAG,
    Token,
    is_serializable,
    n3,
    split_clauses,
    string_literal,
    tokenize,
    union_clause,
    values_clause,
    word_of,
)
from kgwb.records import Hidden, Record, Score, Sparql, frozen
from kgwb.terms import Iri, Term, Triple, Triples, local_part, split_into_batches

IRIS_PER_NAME_QUERY = 100
"""IRIs whose names are asked of an endpoint at a time."""
MAX_SAMPLED_LABELS = 10_000
"""Labels of each predicate that are read to find the languages of a graph."""
MAX_LANGUAGES = 8
"""Languages that are read, the most frequent first."""
MAX_INCOMING_TRIPLES = 1_000
"""Triples with a class or predicate as object that are read to find a fact about it."""
MAX_EXACT_SUBJECTS = 2
MAX_VALUE_MATCHES = 40
"""Values that contain the letters of a name, read to find those that contain its words."""


class Description(NamedTuple):
    """The types and the description of a vertex, as the graph has them."""

    types: tuple[str, ...] = ()
    """Display names of its types, in the order of the types' IRIs."""
    description: str = ""
    """In the preferred language; empty if there is none."""


def describe_vertices(kg: Graph, iris: Sequence[URIRef]) -> dict[URIRef, Description]:
    """Return the types and the description of each vertex, by its IRI.

    One query is sent, and one request for the names of the types. The types are their names, each
    once, sorted by the IRIs of the types. Of several descriptions, the one in the most preferred
    language is returned, then that of the first predicate for descriptions in the vocabulary. A
    vertex without a description has "".
    """
    if not iris:
        return {}
    vocabulary = kg.vocabulary
    vertices = values_clause("?v", iris)
    asked = (*vocabulary.types, *vocabulary.descriptions)
    predicates = values_clause("?p", asked)
    query = f"SELECT ?v ?p ?o WHERE {{ {vertices} {predicates} ?v ?p ?o }}"
    result = kg.select(query)
    types: dict[Term | None, list[URIRef]] = defaultdict(list)
    texts: dict[Term | None, list[tuple[int, int, str]]] = defaultdict(list)
    for vertex, predicate, value in result.rows:
        if isinstance(value, URIRef) and predicate in vocabulary.types:
            types[vertex].append(value)
        elif isinstance(value, Literal) and predicate in vocabulary.descriptions:
            ranked_text = rank_description(value, URIRef(predicate), vocabulary)
            texts[vertex].append(ranked_text)

    all_types = set(chain.from_iterable(types.values()))
    names = kg.names(sorted(all_types))
    descriptions = {}
    for iri in iris:
        type_names = [names[type_iri] for type_iri in sorted(types[iri])]
        distinct_names = dict.fromkeys(type_names)
        _, _, text = min(texts[iri], default=(0, 0, ""))
        descriptions[iri] = Description(tuple(distinct_names), text)
    return descriptions


def rank_description(
    text: Literal, predicate: URIRef, vocabulary: Vocabulary
) -> tuple[int, int, str]:
    """Return the key that the descriptions of a vertex are sorted by: the smallest is the best.

    The language decides, then the position of the predicate among those for descriptions in the
    vocabulary, then the text, which is last in the key.
    """
    language = language_rank(text.language or "", vocabulary.languages)
    order = vocabulary.descriptions.index(predicate)
    return language, order, str(text)


def count_degrees(kg: Graph, iris: Sequence[URIRef], limit: int) -> dict[URIRef, int]:
    """Return how many triples have each vertex as subject or object, counted up to ``limit``.

    All triples count, labels and types too. A triple with the vertex in both places counts twice.
    One query is sent for all vertices. A vertex without triples has 0.
    """
    if not iris:
        return {}
    # Each vertex has a subquery with a LIMIT, so that one with millions of triples costs no more
    # than others.
    subqueries = []
    for term in map(n3, dict.fromkeys(iris)):
        subqueries.append(
            f"SELECT ({term} AS ?v) (COUNT(*) AS ?n) WHERE {{ SELECT ?p WHERE {{"
            f" {{ {term} ?p ?o }} UNION {{ ?s ?p {term} }} }} LIMIT {limit} }}"
        )
    counts = union_clause(subqueries)
    result = kg.select(f"SELECT ?v ?n WHERE {{ {counts} }}")
    degrees = dict.fromkeys(iris, 0)
    for vertex, count in result.rows:
        if isinstance(vertex, URIRef):
            degrees[vertex] = parse_count(count)
    return degrees


def find_predicates(
    kg: Graph, *vertices: URIRef | Literal, keeps_all: bool = False
) -> tuple[tuple[URIRef, Direction], ...]:
    """Return the predicates of any of the vertices, each with its direction; each pair once.

    They come by IRI, "out" before "in". Labels, descriptions, types and noise are left out, unless
    ``keeps_all``. One query is sent, without a limit of its own.
    """
    values = values_clause("?v", vertices)
    outgoing = f'{{ {values} ?v ?p ?o BIND("out" AS ?d) }}'
    incoming = f'{{ {values} ?s ?p ?v BIND("in" AS ?d) }}'
    query = f"SELECT DISTINCT ?p ?d WHERE {{ {outgoing} UNION {incoming} }}"
    result = kg.select(query)
    excluded = kg.vocabulary.excluded_predicates
    predicates: list[tuple[URIRef, Direction]] = []
    for predicate, bound in result.rows:
        direction: Direction = "in"
        if str(bound) == "out":
            direction = "out"
        if isinstance(predicate, URIRef) and (keeps_all or predicate not in excluded):
            predicates.append((predicate, direction))
    predicates.sort(key=itemgetter(1), reverse=True)  # "out" before "in"
    predicates.sort(key=itemgetter(0))
    return tuple(predicates)


def find_label_usage(kg: Graph) -> tuple[tuple[URIRef, ...], tuple[str, ...]]:
    """Return the label predicates that the graph uses, and the languages of its labels.

    The predicates are in the order of ``Vocabulary.all_labels``, the languages from frequent to rare ("" for
    labels without a language). Both are empty if no label predicate is used. MAX_SAMPLED_LABELS
    labels of each predicate are read, and MAX_LANGUAGES languages. If a limit was reached, or the
    graph cut the result, the preferred languages of the vocabulary come first. At most two queries
    are sent.
    """
    vocabulary = kg.vocabulary
    predicates = find_used_predicates(kg, vocabulary.all_labels)
    if not predicates:
        return (), ()
    samples = []
    for term in map(n3, predicates):
        samples.append(f"SELECT ?label WHERE {{ ?v {term} ?label }} LIMIT {MAX_SAMPLED_LABELS}")
    labels = union_clause(samples)
    where = f"{labels} BIND(LANG(?label) AS ?tag)"
    most_frequent = f"GROUP BY ?tag ORDER BY DESC(?n) ?tag LIMIT {MAX_LANGUAGES}"
    tags = kg.select(f"SELECT ?tag (COUNT(*) AS ?n) WHERE {{ {where} }} {most_frequent}")
    languages = []
    label_count = 0
    for tag, count in tags.rows:
        label_count += parse_count(count)
        if tag is None:
            continue
        if not str(tag) or LANGUAGE_TAG.fullmatch(tag):
            languages.append(str(tag))
    is_complete = len(tags.rows) < MAX_LANGUAGES and label_count < MAX_SAMPLED_LABELS
    if tags.cut or not is_complete:
        languages = [*vocabulary.languages, *languages]
    distinct_languages = dict.fromkeys(languages)
    return predicates, tuple(distinct_languages)


def find_used_predicates(kg: Graph, predicates: Sequence[URIRef]) -> tuple[URIRef, ...]:
    """Return those of some predicates that the graph uses, in their order. One query is sent."""
    values = values_clause("?p", predicates)
    used = kg.select(f"SELECT ?p WHERE {{ {values} FILTER EXISTS {{ ?v ?p ?label }} }}")
    return tuple(predicate for predicate in predicates if (predicate,) in used.rows)


def find_schema_terms(kg: Graph, iris: Sequence[URIRef]) -> frozenset[URIRef]:
    """Return those of the IRIs that are only a predicate or a class in the graph.

    Such an IRI is used as a predicate, used as a type, or a property entity of Wikidata, and the
    graph has no fact about it: no triple with it as subject or object, apart from labels,
    descriptions, noise, and the predicates of RDF, RDFS, OWL and Wikibase themselves. Of the
    triples with it as object, MAX_INCOMING_TRIPLES are read. A class or property that is only
    declared is none: an ontology is about such things. Two queries are sent at most.
    """
    if not iris:
        return frozenset()
    vocabulary = kg.vocabulary
    is_fact = fact_condition(vocabulary)
    vertices = values_clause("?v", iris)
    type_predicates = values_clause("?t", vocabulary.types)
    result = kg.select(
        f"SELECT ?v WHERE {{ {vertices} FILTER(EXISTS {{ ?s ?v ?o }}"
        f" || EXISTS {{ {type_predicates} ?s ?t ?v }}"
        f" || EXISTS {{ ?v {n3(RDF.type)} {n3(WIKIBASE_PROPERTY)} }})"
        f" FILTER NOT EXISTS {{ ?v ?p ?o FILTER({is_fact}) }} }}"
    )
    candidates = frozenset(vertex for (vertex,) in result.rows if isinstance(vertex, URIRef))
    if not candidates:
        return candidates
    # Each candidate has a subquery with a LIMIT, because a class can have millions of instances.
    subqueries = []
    for term in map(n3, sorted(candidates)):
        subqueries.append(
            f"SELECT ({term} AS ?v) ?p WHERE {{ ?s ?p {term} }} LIMIT {MAX_INCOMING_TRIPLES}"
        )
    incoming = union_clause(subqueries)
    facts = kg.select(f"SELECT DISTINCT ?v WHERE {{ {incoming} FILTER({is_fact}) }}")
    return candidates.difference(chain.from_iterable(facts.rows))


def parse_count(number: Term | None) -> int:
    """Return the number that a graph counted. Raises QueryError if it is not a whole number."""
    try:
        return int(str(number))
    except ValueError as error:
        hint = "ask again; if it happens again, the endpoint does not count as SPARQL 1.1 says"
        raise QueryError(f"the graph returned {number!r} in place of a count", hint=hint) from error


def find_triples(
    kg: Graph,
    subjects: Sequence[Term],
    predicates: Sequence[Term],
    objects: Sequence[Term],
    max_triples: int,
    *,
    noise: bool = False,
) -> tuple[list[Triple], bool]:
    """Return triples, sorted by their text, and whether these are all there are.

    A triple has one of the subjects, one of the predicates and one of the objects; an empty
    sequence allows any term. One query with a LIMIT of ``max_triples`` is sent; they are not all if
    it returned as many, or if the graph cut its result. Triples with blank nodes are left out. If
    no predicates are given, labels, descriptions and noise are left out, but not types; with
    ``noise`` nothing is.
    """
    allowed = {"?s": subjects, "?p": predicates, "?o": objects}
    values = ""
    for variable, terms in allowed.items():
        if terms:
            values += f"{values_clause(variable, terms)} "
    where = f"{values}?s ?p ?o"
    query = f"SELECT DISTINCT ?s ?p ?o WHERE {{ {where} }} LIMIT {max_triples}"
    result = kg.select(query)
    excluded: set[URIRef] = set()
    if not predicates and not noise:
        excluded.update(kg.vocabulary.excluded_predicates)
        excluded.difference_update(kg.vocabulary.types)
    triples: list[Triple] = []
    for subject, predicate, object_ in result.rows:
        if isinstance(subject, BNode | None) or isinstance(object_, BNode | None):
            continue
        if isinstance(predicate, URIRef) and predicate not in excluded:
            triples.append((subject, predicate, object_))
    triples.sort(key=str)
    are_all = len(result.rows) < max_triples and not result.cut
    return triples, are_all


@frozen
class ValueMatch:
    """A value of a predicate that contains the words of a name."""

    predicate: Iri
    value: Term
    triples: int
    """How many triples have this predicate and value."""
    exact: bool = False
    """Whether the value is the name, and does not only contain it."""
    subjects: tuple[Iri, ...] = ()
    """If the value is exact, the first things that have it, at most MAX_EXACT_SUBJECTS."""


def find_exact_values(kg: Graph, texts: Sequence[str]) -> tuple[ValueMatch, ...]:
    """Return the values of any predicate that are one of the texts, the rarest first.

    A text is compared as ``literals_of`` writes it. Labels are left out. A value has the first
    things that have it. One query is sent, which every engine answers from its index. At most
    MAX_VALUE_MATCHES values are returned.
    """
    literals = literals_of(filter(None, texts), kg.vocabulary)
    if not literals:
        return ()
    listed = values_clause("?o", literals)
    result = kg.select(
        f"SELECT ?p ?o (COUNT(*) AS ?n) (MIN(?s) AS ?first) (MAX(?s) AS ?last)"
        f" WHERE {{ {listed} ?s ?p ?o FILTER(isIRI(?s)) }} GROUP BY ?p ?o"
        f" ORDER BY ?n ?p LIMIT {MAX_VALUE_MATCHES}"
    )
    matches = []
    for predicate, value, count, *subjects in result.rows:
        iris = dict.fromkeys(subject for subject in subjects if isinstance(subject, URIRef))
        is_label = predicate in kg.vocabulary.labels
        if isinstance(predicate, URIRef) and isinstance(value, Literal) and not is_label:
            matches.append(ValueMatch(predicate, value, parse_count(count), True, tuple(iris)))
    return tuple(matches)


def find_values_containing(
    kg: Graph, predicates: Sequence[URIRef], name: str
) -> tuple[ValueMatch, ...]:
    """Return the values of the predicates that contain a name as whole words, the shortest first.

    Each value comes with its predicate and the number of triples that have it. A literal is
    compared by its text and an IRI by its local part, both in normal form (see ``normalize``). The
    graph is asked for MAX_VALUE_MATCHES values that contain the name in lower case, with spaces for
    "_" and "-". Blank nodes are left out. Empty, without a query, for a name of fewer than two
    letters.
    """
    normal_name = normalize(name)
    if not predicates or len(normal_name) < 2:
        return ()
    text = "LCASE(REPLACE(STR(?o), '[_-]', ' '))"
    listed = values_clause("?p", predicates)
    searched = string_literal(name.lower())
    result = kg.select(
        f"SELECT ?p ?o (COUNT(*) AS ?n) WHERE {{ {listed} ?s ?p ?o"
        f" FILTER(!isBlank(?o) && CONTAINS({text}, {searched})) }}"
        f" GROUP BY ?p ?o ORDER BY STRLEN(STR(?o)) ?p LIMIT {MAX_VALUE_MATCHES}"
    )
    escaped_name = re.escape(normal_name)
    whole_words = re.compile(rf"(?<![^\W_]){escaped_name}(?![^\W_])")
    matches = []
    for predicate, value, count in result.rows:
        if predicate is None or value is None:
            continue
        shown: str = value
        if isinstance(value, URIRef):
            shown = local_part(value)
        if whole_words.search(normalize(shown)):
            matches.append(ValueMatch(URIRef(predicate), value, parse_count(count)))
    return tuple(matches)


def literals_of(texts: Iterable[str], vocabulary: Vocabulary) -> list[Literal]:
    """Return each text as a literal without a language and in each preferred language.

    Digits are also an integer, and "true" and "false" truth values.
    """
    literals = []
    for text in dict.fromkeys(texts):
        if text.isascii() and text.isdigit():
            literals.append(Literal(text, datatype=XSD.integer))
        if text in ("true", "false"):
            literals.append(Literal(text, datatype=XSD.boolean))
        for tag in dict.fromkeys(("", *vocabulary.languages)):
            literals.append(Literal(text, lang=tag or None))
    return literals


def _capitalize(text: str) -> str:
    """Return a text with its first letter in upper case, and the others as they are."""
    return text[:1].upper() + text[1:]


def find_literal(kg: Graph, text: str) -> Literal | None:
    """Return the literal of the graph that is a text, in one query; None if there is none.

    The text is compared as it is, in lower case, with a capital first letter, and with one for each
    word, without a language and in the preferred languages; "true" and "false" also as truth values.
    Of several literals the most frequent is returned.
    """
    title = " ".join(map(_capitalize, text.split(" ")))
    spellings = (text, text.lower(), _capitalize(text), title)
    values = values_clause("?o", literals_of(spellings, kg.vocabulary))
    result = kg.select(
        f"SELECT ?o (COUNT(*) AS ?n) WHERE {{ {values} ?s ?p ?o }}"
        " GROUP BY ?o ORDER BY DESC(?n) ?o LIMIT 1"
    )
    for literal, _ in result.rows:
        if isinstance(literal, Literal):
            return literal
    return None


# Why a query has no rows


@frozen
class EmptyResultCause:
    """Why a query has no rows."""

    is_empty: bool
    """Whether it has no rows at all."""
    blocking_patterns: tuple[TriplePattern | str, ...] = ()
    """The patterns, or the text of all filters, each of which gives rows if it alone is removed."""
    unmatched_patterns: tuple[TriplePattern, ...] = ()
    """The patterns that no triple of the graph matches, each asked for by itself."""
    excluding_clauses: str = ""
    """The clauses outside of WHERE that leave out all matches: FROM, LIMIT or OFFSET."""


def explain_empty_result(
    kg: Graph, patterns: Sequence[TriplePattern], filters: str = ""
) -> EmptyResultCause:
    """Return which patterns of a conjunctive query are the reason that it has no rows.

    ``unmatched_patterns`` are the patterns that match nothing alone. ``blocking_patterns`` are the
    patterns, and all filters together as one text, without which the query would have rows; a
    pattern is tried only if all others have matches. For a query that has rows, ``is_empty`` is
    False and nothing is named. Equal patterns count once. Sends at most two ASK queries for each
    pattern, and two more. Raises a GraphError if the graph cannot be queried.
    """

    def has_rows(patterns: Sequence[TriplePattern], filters: str = "") -> bool:
        """Return whether the graph has a solution of the patterns and filters, by an ASK."""
        where = patterns_and_filters_to_sparql(patterns, filters)
        return kg.ask(f"ASK {{ {where} }}")

    patterns = list(dict.fromkeys(patterns))
    if has_rows(patterns, filters):
        return EmptyResultCause(is_empty=False)
    unmatched = [pattern for pattern in patterns if not has_rows([pattern])]
    blocking: list[TriplePattern | str] = []
    for pattern in patterns:
        others = [other for other in patterns if other != pattern]
        # A pattern is the only reason at most if every other pattern has matches.
        others_match = unmatched in ([], [pattern])
        if others and others_match and has_rows(others, filters):
            blocking.append(pattern)
    if filters and not unmatched and has_rows(patterns):
        blocking.append(filters.strip())
    return EmptyResultCause(True, tuple(blocking), tuple(unmatched))


MAX_SUPPORT_BINDINGS = 500
"""Bindings that one query for the support of values reads at most."""
VALUES_PER_QUERY = 50
"""Values that one query names, for the values that had no binding among those read first."""
MAX_TRIPLES_PER_VALUE = 60
"""Supporting triples that are kept for one row, and about so many for one value.

A value can have thousands of bindings, for example at the end of a chain of patterns.
"""
MAX_SOLUTIONS = 2_000
"""Solutions that are read to find the support of the rows."""
TRIPLES_PER_QUERY = 500
"""Triples that one query checks for existence."""
AGGREGATES = frozenset(("COUNT", "SUM", "MIN", "MAX", "AVG", "SAMPLE", "GROUP_CONCAT"))

Row = tuple[Term | None, ...]
"""A row of a result; None where a variable is unbound."""
TripleSet = dict[Triple, None]
"""Triples in the order in which they were added, each once."""
Binding = dict[str, Term | None]
"""The terms of variables ("?x") in a row or a solution."""


# Support of a query that is known by its triple patterns


@frozen
class CandidateQuery(Record):
    """A SPARQL query that may answer the question, and its triple patterns."""

    sparql: Sparql
    patterns: Hidden[tuple[tuple[str, str, str], ...]]
    """Subject, predicate and object in N-Triples form; variables as "?x"."""
    predicates: tuple[str, ...]
    """The name of the predicate of each fact, in the order of the QIR."""
    score: Score
    """Geometric mean of the similarities of its predicates, 0 to 1."""
    filters: Hidden[str] = ""
    """The FILTERs of the query. They hold for the support too."""

    def __str__(self) -> str:
        return self.sparql


def where_clause(query: CandidateQuery) -> str:
    """Return the triple patterns and filters of a query as the inside of a WHERE clause."""
    patterns = patterns_to_sparql(query.patterns)
    return f"{patterns} {query.filters}".strip()


def find_support_by_value(
    kg: Graph, query: CandidateQuery, target: str, values: Sequence[Term]
) -> dict[Term, Triples]:
    """Return the support of each value of the variable ``target`` ("?x").

    The support of a value is the triples that the patterns become in each binding with this value;
    () if there is no such binding. One query is sent for all values, and further ones for values
    that it found nothing for; values that cannot be written in a query are not asked for again. At
    MAX_TRIPLES_PER_VALUE triples, further bindings of a value are ignored. If the target is the
    only variable, no query is sent. Raises a GraphError if the graph cannot be queried.
    """
    if variables_of(query.patterns) == (target,):
        constants = constants_of(query.patterns)
        made = {}
        for value in values:
            made[value] = instantiate_patterns(query.patterns, {**constants, target: value})
        return made
    support: dict[Term | None, TripleSet] = {value: {} for value in values}
    _add_support(kg, query, target, support)

    # The limit may have cut off all bindings of some values, so further queries name these values.
    # The limit may do the same there. So a batch is tried again as long as a query finds any value
    # of it, and dropped after a query that finds none.
    missing = [value for value in values if not support[value] and is_serializable(value)]
    while missing:
        batch = missing[:VALUES_PER_QUERY]
        restriction = values_clause(target, batch)
        _add_support(kg, query, target, support, f"{restriction} ")
        still_missing = [value for value in missing if not support[value]]
        if len(still_missing) == len(missing):
            still_missing = missing[VALUES_PER_QUERY:]
        missing = still_missing
    return {value: tuple(support[value]) for value in values}


def _add_support(
    kg: Graph,
    query: CandidateQuery,
    target: str,
    support: dict[Term | None, TripleSet],
    values: str = "",
) -> None:
    """Add the triples of the first bindings to the support of the values.

    At most MAX_SUPPORT_BINDINGS bindings are read. The triples of each are added to ``support``
    under its value of ``target``, if that is a key and has fewer than MAX_TRIPLES_PER_VALUE
    triples. ``values`` is a VALUES clause that restricts the bindings.
    """
    variables = variables_of(query.patterns)
    columns = " ".join(variables)
    where = values + where_clause(query)
    result = kg.select(
        f"SELECT DISTINCT {columns} WHERE {{ {where} }} LIMIT {MAX_SUPPORT_BINDINGS}"
    )
    constants = constants_of(query.patterns)
    for row in result.rows:
        binding = {**constants, **dict(zip(variables, row, strict=True))}
        triples = support.get(binding[target])
        if triples is None or len(triples) >= MAX_TRIPLES_PER_VALUE:
            continue
        found = instantiate_patterns(query.patterns, binding)
        triples.update(dict.fromkeys(found))


def find_ask_support(kg: Graph, query: CandidateQuery) -> Triples:
    """Return the triples of one binding that makes an ASK of the query true.

    Empty if it is false. If the patterns have no variables, they are returned as triples without
    asking the graph.
    """
    variables = variables_of(query.patterns)
    if not variables:
        return instantiate_patterns(query.patterns, {})
    columns = " ".join(variables)
    where = where_clause(query)
    rows = kg.select(f"SELECT {columns} WHERE {{ {where} }} LIMIT 1").rows
    if not rows:
        return ()
    binding = dict(zip(variables, rows[0], strict=True))
    return instantiate_patterns(query.patterns, binding)


# Support of any query


def find_support_by_row(
    kg: Graph, sparql: str, columns: Sequence[str], rows: Sequence[Row]
) -> dict[Row, Triples]:
    """Return the support of the first MAX_SUPPORTED_ROWS rows of a SELECT or ASK.

    ``columns`` are the names of the variables in a row. The support of a row is the triples of the
    graph that its solutions match; of a row that groups many solutions, those of the first. At most
    MAX_TRIPLES_PER_VALUE triples are kept for a row. Without rows, as for an ASK, the support of
    one solution is returned under the key ().

    Patterns in OPTIONAL and UNION give triples where they match. Property paths and the patterns in
    NOT EXISTS and MINUS give none. Raises a GraphError if the query cannot be analyzed or executed.
    """
    analyzed = analyze_query(sparql).patterns
    patterns = [pattern for pattern in analyzed if PATH_PLACEHOLDER not in pattern]
    limit = MAX_SOLUTIONS
    if not rows:  # one solution is enough, for a row without columns
        limit = 1
        columns = ()
        rows = [()]
    bindings = {row: _bind(columns, row) for row in rows[:MAX_SUPPORTED_ROWS]}
    query = _solutions_query(sparql, patterns, list(bindings.values()), limit)
    solutions = kg.select(query)

    # A solution belongs to the rows that have the same terms in the columns that it has variables
    # for.
    shared = [f"?{column}" for column in columns if column in solutions.variables]
    support: dict[Row, TripleSet] = defaultdict(dict)
    for solution in solutions.rows:
        binding = _bind(solutions.variables, solution)
        matched = [pattern for pattern in patterns if _is_bound(pattern, binding)]
        found = instantiate_patterns(matched, binding)
        triples = support[_project(binding, shared)]
        room = MAX_TRIPLES_PER_VALUE - len(triples)
        triples.update(dict.fromkeys(found[:room]))

    all_triples = set(chain.from_iterable(support.values()))
    existing = existing_triples(kg, all_triples)
    support_by_row = {}
    for row, binding in bindings.items():
        triples = support.get(_project(binding, shared), {})
        support_by_row[row] = tuple(triple for triple in triples if triple in existing)
    return support_by_row


def _bind(names: Iterable[str], row: Row) -> Binding:
    """Return the terms of a row by its variables. ``names`` are the variables without "?"."""
    return {f"?{name}": term for name, term in zip(names, row, strict=True)}


def _is_bound(pattern: TriplePattern, binding: Binding) -> bool:
    """Return whether all variables of a pattern have a term."""
    variables = variables_of([pattern])
    return None not in _project(binding, variables)


def _project(binding: Binding, variables: Iterable[str]) -> Row:
    """Return the terms of these variables ("?x") in a binding, in order; None if unbound."""
    return tuple(map(binding.get, variables))


def _solutions_query(
    sparql: str, patterns: Iterable[TriplePattern], rows: Sequence[Binding], limit: int
) -> str:
    """Return a SELECT of the solutions that a query's rows were made of, without groups and order.

    All variables are selected, and at most ``limit`` solutions. The FROM and WHERE clauses and the
    VALUES behind them are those of the query, with a VALUES clause of the rows in the columns that
    are variables of the patterns. An expression with a name is added as a BIND, unless it is an
    aggregate or uses the name of one.
    """
    clauses = split_clauses(sparql)
    pattern_variables = variables_of(patterns)
    columns = [variable for variable in rows[0] if variable in pattern_variables]
    values = ""
    if columns:
        cells = [_project(row, columns) for row in rows]
        values = values_table(" ".join(columns), cells)
    body = clauses.where
    if "BIND" in clauses.words:
        # The variable of a BIND must not be bound before it in its group, but may be by the VALUES
        # of the rows.
        body = f"{{ {body} }}"
    binds = _binds_of_aliases(clauses.aliases)
    where = f"{{ {values} {body}{binds} }}"
    query = f"{clauses.prologue}SELECT * {clauses.dataset}WHERE {where} LIMIT {limit}"
    values_start = _find_values(clauses.modifiers)
    if values_start is not None:
        # The character before it is kept if it is a blank: recorded runs know the query as it is.
        blank = clauses.modifiers[:values_start][-1:]
        if not blank.isspace():
            blank = " "
        own_values = clauses.modifiers[values_start:]
        query += f"{blank}{own_values}"
    return query


def _find_values(text: str) -> int | None:
    """Return the position at which VALUES first stands in a part of a query, or None.

    A word inside of a string, an IRI or a name does not count.
    """
    for token in tokenize(text).tokens:
        if token.lastgroup == "word" and word_of(token) == "VALUES":
            return token.start()
    return None


def values_table(variables: str, rows: Iterable[Row]) -> str:
    """Return "VALUES (?x ?y) { (...) (...) }" of several variables ("?x ?y") and the distinct rows.

    A cell that is unbound, or a term that cannot stand in a query, becomes UNDEF.
    """
    lines: dict[str, None] = {}
    for row in rows:
        cells = " ".join(map(_cell_to_sparql, row))
        lines[f"({cells})"] = None
    body = " ".join(lines)
    return f"VALUES ({variables}) {{ {body} }}"


def _cell_to_sparql(term: Term | None) -> str:
    """Return a term as SPARQL; "UNDEF" for an unbound cell, and for a term no query can contain."""
    if term is None or not is_serializable(term):
        return "UNDEF"
    return n3(term)


def _binds_of_aliases(aliases: Iterable[tuple[str, str]]) -> str:
    """Return "BIND(expression AS ?name)" for each alias that a single solution gives a value.

    ``aliases`` are pairs of an expression and a name without "?". Aggregates are left out, and
    expressions that use the name of an aggregate. The BINDs stand in one text, with a space before
    each.
    """
    binds = ""
    aggregates: set[str] = set()
    for expression, name in aliases:
        tokens = tokenize(expression).tokens
        used = {token[0][1:] for token in tokens if token.lastgroup == "variable"}
        uses_aggregate = not aggregates.isdisjoint(used)
        if uses_aggregate or _has_aggregate(tokens):
            aggregates.add(name)
        else:
            binds += f" BIND({expression} AS ?{name})"
    return binds


def _has_aggregate(tokens: Sequence[Token]) -> bool:
    """Return whether one of AGGREGATES is called: a word of these, followed by a bracket."""
    for token, following in pairwise(tokens):
        is_aggregate = token.lastgroup == "word" and word_of(token) in AGGREGATES
        if is_aggregate and following[0] == "(":
            return True
    return False


def existing_triples(kg: Graph, triples: Collection[Triple]) -> set[Triple]:
    """Return those of the triples that the graph has, asking for TRIPLES_PER_QUERY at a time.

    Triples with a blank node, or an invalid IRI, cannot be looked up and count as existing. Support
    must be checked in this way: a solution of one branch of a UNION can bind all variables of the
    other branch, without matching it.
    """
    known = []
    existing = set()
    for triple in triples:
        if all(map(is_serializable, triple)):
            known.append(triple)
        else:
            existing.add(triple)
    known.sort(key=str)
    for batch in split_into_batches(known, TRIPLES_PER_QUERY):
        values = values_table("?s ?p ?o", batch)
        result = kg.select(f"SELECT ?s ?p ?o WHERE {{ {values} ?s ?p ?o }}")
        existing |= set(batch).intersection(result.rows)
    return existing


MAX_SAMPLED_TYPES = 100_000
"""Type statements that are read to find the classes of a graph."""
MAX_CLASSES = 1_000
"""Classes of a graph that are considered."""


def find_class_names(kg: Graph) -> Mapping[URIRef, str]:
    """Return the names of a graph's classes by IRI, in one query.

    A class is the type of a vertex, or stands in a subclass statement. Classes of the schema
    languages themselves, such as owl:Class, are left out. At most MAX_SAMPLED_TYPES types are
    looked at, and at most MAX_CLASSES classes returned, sorted by IRI.
    """
    types = values_clause("?t", kg.vocabulary.types)
    subclass_of = n3(RDFS.subClassOf)
    rows = kg.select(
        f"SELECT DISTINCT ?c WHERE {{"
        f" {{ SELECT ?c WHERE {{ {types} ?v ?t ?c }} LIMIT {MAX_SAMPLED_TYPES} }}"
        f" UNION {{ ?c {subclass_of} ?other }} UNION {{ ?other {subclass_of} ?c }} }}"
        f" LIMIT {MAX_CLASSES}"
    ).rows
    classes = set()
    for (iri,) in rows:
        if isinstance(iri, URIRef) and not str(iri).startswith(SCHEMA_NAMESPACES):
            classes.add(iri)
    return kg.names(sorted(classes))
