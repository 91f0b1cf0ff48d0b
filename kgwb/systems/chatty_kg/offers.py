"""What a model is shown of the predicates that a relation may mean: names, directions, examples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet

from rdflib import BNode, URIRef

from kgwb.build import CandidateQuery, Run, Term, TriplePattern, patterns_to_sparql, variables_of
from kgwb.systems.chatty_kg.records import (
    QIR,
    GeneratedQueries,
    LinkingResult,
    RankedPredicate,
)
from kgwb.systems.chatty_kg.relation_linking import (
    assign_terms,
    find_restrictions,
    make_patterns,
    restrict,
)

REVERSE = " (reverse)"
"""Behind the name of a predicate that is offered in both directions: from object to subject."""
MAX_EXAMPLE_CHARS = 60
"""Characters that a model sees of one end of an example."""
NAMELESS = "(a node without a name)"
"""What a model sees of a blank node."""
CELLS = ("?_a", "?_b", "?_c", "?_d")
"""The variables of an example: subject and object of its first triple, and of its second."""
MAX_EXAMPLES_PER_QUERY = 30
"""Predicates for which one query asks for examples: some engines refuse a query with hundreds of subqueries."""
MAX_EXAMPLE_NODES = 10_000
"""Nodes between two predicates that are looked at for an example of both."""

Offer = dict[str, RankedPredicate | None]
"""The predicates that are offered for one fact, by the name that a model sees.

A query that a person wrote may have a predicate that was not linked: it has a name only.
"""
OfferedName = tuple[int, str]
"""The position of a fact, and the name of a predicate that is offered for it."""
LinkedPredicate = tuple[RankedPredicate, frozenset[TriplePattern]]
"""A predicate of a fact, with the triple patterns of the fact with it."""


class Offers:
    """The predicates of the candidate queries, by fact, as a model is asked about them."""

    def __init__(self, generated: GeneratedQueries, linked: LinkingResult) -> None:
        """Collect, for each fact with predicates, those that the queries have for it, best query first.

        Nothing is asked of the graph.
        """
        self.relations = [relation for relation in linked.relations if relation.predicates]
        qir = QIR(tuple(relation.fact for relation in linked.relations))
        self.terms = assign_terms(qir, linked.links)
        self.restrictions = find_restrictions(linked.links, self.terms)
        self.by_fact: list[Offer] = []
        self.names_by_query: list[list[str]] = [[] for _ in generated.queries]
        patterns_by_query = [frozenset(query.patterns) for query in generated.queries]
        for position in range(len(self.relations)):
            self._add_fact(position, generated.queries, patterns_by_query)

    def _add_fact(
        self,
        position: int,
        queries: Sequence[CandidateQuery],
        patterns_by_query: Sequence[AbstractSet[TriplePattern]],
    ) -> None:
        """Append the predicates that the queries have for the fact at a position to ``by_fact``, by shown name.

        REVERSE is behind the name of a predicate that leads from object to subject, if one of that
        name also leads from subject to object. The shown name is added for each query, too.
        """
        linked = self._list_linked_predicates(position)
        predicates = []
        for query, patterns in zip(queries, patterns_by_query, strict=True):
            predicates.append(_find_predicate(query.predicates[position], patterns, linked))
        both = _find_names_of_both_directions(predicates)
        offer: Offer = {}
        for query, predicate, names in zip(queries, predicates, self.names_by_query, strict=True):
            name = query.predicates[position]
            if name in both and predicate is not None and predicate.direction == "in":
                name += REVERSE
            offer.setdefault(name, predicate)
            names.append(name)
        self.by_fact.append(offer)

    def _list_linked_predicates(self, position: int) -> list[LinkedPredicate]:
        """Return the linked predicates of the fact at a position, each with its triple patterns."""
        relation = self.relations[position]
        linked = []
        for predicate in relation.predicates:
            patterns, _ = make_patterns(relation.fact, predicate, self.terms)
            linked.append((predicate, frozenset(patterns)))
        return linked

    def is_chosen(self, position: int, chosen: Sequence[Sequence[str]]) -> bool:
        """Return whether the query at a position has a chosen name for every fact."""
        pairs = zip(self.names_by_query[position], chosen, strict=True)
        return all(name in names for name, names in pairs)

    def describe(self, run: Run) -> list[dict[str, object]]:
        """Return what a model is shown, for each fact: its "triple", and its "predicates" by name.

        A predicate has a triple of the graph as its "example", if there is one. One query is sent
        for MAX_EXAMPLES_PER_QUERY predicates, and one for names.
        """
        examples = _find_examples(self._list_patterns(), self.restrictions, run)
        shown = []
        for position, offer in enumerate(self.by_fact):
            predicates = []
            for name in offer:
                entry = {"name": name}
                if (position, name) in examples:
                    entry["example"] = examples[position, name]
                predicates.append(entry)
            fact = self.relations[position].fact
            shown.append({"triple": list(fact.as_tuple), "predicates": predicates})
        return shown

    def _list_patterns(self) -> dict[OfferedName, list[TriplePattern]]:
        """Return the triple patterns of each offered predicate; none of type predicates.

        Predicates that were not linked are left out.
        """
        patterns_by_name = {}
        for position, offer in enumerate(self.by_fact):
            fact = self.relations[position].fact
            for name, predicate in offer.items():
                if predicate is not None and not predicate.classes:
                    patterns, _ = make_patterns(fact, predicate, self.terms)
                    patterns_by_name[position, name] = patterns
        return patterns_by_name


def _find_predicate(
    name: str, query_patterns: AbstractSet[TriplePattern], linked: Iterable[LinkedPredicate]
) -> RankedPredicate | None:
    """Return the linked predicate that has a name, and whose triple patterns a query has.

    None if no linked predicate fits, as in a query that a person wrote.
    """
    for predicate, patterns in linked:
        if predicate.name == name and patterns <= query_patterns:
            return predicate
    return None


def unites_directions(chosen: Iterable[Iterable[str]]) -> bool:
    """Return whether, for any fact, a predicate was chosen in both directions.

    ``chosen`` has the shown names for each fact.
    """
    for names in chosen:
        listed = set(names)
        for name in listed:
            if f"{name}{REVERSE}" in listed:
                return True
    return False


def _find_names_of_both_directions(predicates: Iterable[RankedPredicate | None]) -> set[str]:
    """Return the names that occur both among predicates with direction "in" and among those with "out"."""
    names: dict[str, set[str]] = {"in": set(), "out": set()}
    for predicate in predicates:
        if predicate is not None:
            names[predicate.direction].add(predicate.name)
    return names["in"] & names["out"]


# Examples


def _find_examples(
    patterns_by_name: Mapping[OfferedName, Sequence[TriplePattern]],
    restrictions: Mapping[str, str],
    run: Run,
) -> dict[OfferedName, str]:
    """Return, by offered name, a triple of the graph with this predicate, as text.

    It is two triples for a predicate that leads over a node. The triple has the linked ends of the
    fact, if it has any. Names without a triple are missing. One query is sent for
    MAX_EXAMPLES_PER_QUERY of them, and one for the names of what is in the triples.
    """
    offered = list(patterns_by_name)
    branches = []
    for number, patterns in enumerate(patterns_by_name.values()):
        branches.append(_make_branch(number, patterns, restrict(patterns, restrictions)))
    cells_by_name: dict[OfferedName, list[Term]] = {}
    for start in range(0, len(branches), MAX_EXAMPLES_PER_QUERY):
        where = " UNION ".join(branches[start : start + MAX_EXAMPLES_PER_QUERY])
        query = f"SELECT ?_i {' '.join(CELLS)} WHERE {{ {where} }}"
        for position, *cells in run.kg.select(query).rows:
            name = offered[int(str(position))]
            cells_by_name[name] = [cell for cell in cells if cell is not None]
    iris: set[URIRef] = set()
    for name, ends in cells_by_name.items():
        iris.update(_list_predicates(patterns_by_name[name]))
        iris.update(end for end in ends if isinstance(end, URIRef))
    display_names = run.kg.names(sorted(iris))
    examples = {}
    for name, ends in cells_by_name.items():
        examples[name] = _write_example(patterns_by_name[name], ends, display_names)
    return examples


def _list_predicates(patterns: Sequence[TriplePattern]) -> list[URIRef]:
    """Return the IRIs of the predicates of triple patterns, in order."""
    return [URIRef(predicate[1:-1]) for _, predicate, _ in patterns]


def _make_branch(number: int, patterns: Sequence[TriplePattern], filters: str) -> str:
    """Return a subquery that binds one match of patterns: ``number`` to ?_i, and the ends to CELLS."""
    ends = []
    for subject, _, object_ in patterns:
        ends += [subject, object_]
    selected = [f'("{number}" AS ?_i)']
    for end, cell in zip(ends, CELLS, strict=False):
        selected.append(f"({end} AS {cell})")
    where = f"{_order_patterns(patterns)} {filters}".strip()
    return f"{{ SELECT {' '.join(selected)} WHERE {{ {where} }} LIMIT 1 }}"


def _order_patterns(patterns: Sequence[TriplePattern]) -> str:
    """Return triple patterns as SPARQL, so that an engine finds their first match soon.

    Where two of them meet in a node, and their other ends are open, the nodes are listed first, and
    each is tried once. An engine would try it again for each triple that leads to it, and a genre
    has thousands of films. At most MAX_EXAMPLE_NODES are tried.
    """
    variables = variables_of(patterns)
    if len(patterns) != 2 or len(variables) != 3:
        return patterns_to_sparql(patterns)
    first, second = patterns
    [node] = set(first).intersection(second, variables)
    nodes = f"SELECT DISTINCT {node} WHERE {{ {patterns_to_sparql([first])} }}"
    return f"{{ {nodes} LIMIT {MAX_EXAMPLE_NODES} }} {patterns_to_sparql([second, first])}"


def _write_example(
    patterns: Sequence[TriplePattern], cells: Sequence[Term], names: Mapping[URIRef, str]
) -> str:
    """Return triples as text: "subject | predicate | object", two of them joined by ";".

    ``cells`` are the ends of the triples, in order, and ``names`` the display names.
    """
    predicates = _list_predicates(patterns)
    ends = [_write_end(cell, names) for cell in cells]
    triples = []
    for subject, iri, object_ in zip(ends[::2], predicates, ends[1::2], strict=True):
        triples.append(f"{subject} | {names[iri]} | {object_}")
    return " ; ".join(triples)


def _write_end(term: Term, names: Mapping[URIRef, str]) -> str:
    """Return the name of an IRI, the text of a literal, or NAMELESS.

    It is cut at MAX_EXAMPLE_CHARS characters.
    """
    if isinstance(term, BNode):
        return NAMELESS
    text = names[term] if isinstance(term, URIRef) else str(term)
    return text[:MAX_EXAMPLE_CHARS]
