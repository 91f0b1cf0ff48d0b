"""What a model is shown of the predicates that a relation may mean: names, directions, examples."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from rdflib import BNode, URIRef

from kgwb.flow import CandidateQuery
from kgwb.kg.algebra import TriplePattern, patterns_to_sparql
from kgwb.run import Run
from kgwb.systems.chatty_kg.records import (
    QIR,
    GeneratedQueries,
    LinkedRelation,
    LinkingResult,
    RankedPredicate,
)
from kgwb.systems.chatty_kg.relations import TermByEnd, assign_terms, make_patterns
from kgwb.terms import Term

REVERSE = " (reverse)"
"""Behind the name of a predicate that is offered in both directions: from object to subject."""
MAX_EXAMPLE_CHARS = 60
"""Characters that a model sees of one end of an example."""
NAMELESS = "(a node without a name)"
"""What a model sees of a blank node."""

Offer = Mapping[str, RankedPredicate | None]
"""The predicates that are offered for one fact, by the name that a model sees.

A query that a person wrote may have a predicate that was not linked: it has a name only.
"""


class Offers:
    """The predicates of the candidate queries, by fact, as a model is asked about them."""

    def __init__(self, generated: GeneratedQueries, linked: LinkingResult) -> None:
        """Collect the predicates that the queries have for each fact, best query first."""
        self.relations = [relation for relation in linked.relations if relation.predicates]
        qir = QIR(tuple(relation.fact for relation in linked.relations))
        self.terms = assign_terms(qir, linked.links)
        columns = []
        for position in range(len(self.relations)):
            column = [self._find_predicate(each, position) for each in generated.queries]
            names = [query.predicates[position] for query in generated.queries]
            columns.append(_mark_directions(names, column))
        marked_names = [[name for name, _ in column] for column in columns]
        self.names_by_query = tuple(zip(*marked_names, strict=True))
        self.by_fact: tuple[Offer, ...] = tuple(map(_collect_offer, columns))

    def _find_predicate(self, query: CandidateQuery, position: int) -> RankedPredicate | None:
        """Return the predicate that a query has for the fact at a position; None if none fits."""
        relation = self.relations[position]
        for predicate in relation.predicates:
            patterns, _ = make_patterns(relation.fact, predicate, self.terms)
            if predicate.name == query.predicates[position] and set(patterns) <= set(
                query.patterns
            ):
                return predicate
        return None

    def is_chosen(self, position: int, chosen: Sequence[Sequence[str]]) -> bool:
        """Return whether the query at a position has a chosen name for every fact."""
        pairs = zip(self.names_by_query[position], chosen, strict=True)
        return all(name in names for name, names in pairs)

    def has_both_directions(self, chosen: Sequence[Iterable[str]]) -> bool:
        """Return whether a predicate was chosen in both directions for a fact."""
        for names in chosen:
            listed = set(names)
            if any(f"{name}{REVERSE}" in listed for name in listed):
                return True
        return False

    def describe(self, run: Run) -> list[dict[str, object]]:
        """Return what a model sees: each triple, and its predicates by name with an example."""
        shown = []
        for relation, offer in zip(self.relations, self.by_fact, strict=True):
            examples = _find_examples(relation, offer, self.terms, run)
            predicates = []
            for name in offer:
                entry = {"name": name}
                if name in examples:
                    entry["example"] = examples[name]
                predicates.append(entry)
            shown.append({"triple": list(relation.fact.as_tuple), "predicates": predicates})
        return shown


def _mark_directions(
    names: Sequence[str], predicates: Sequence[RankedPredicate | None]
) -> list[tuple[str, RankedPredicate | None]]:
    """Return names with their predicates; REVERSE is behind a name if it has both directions.

    It marks the direction from the object of the fact to its subject.
    """
    directions: dict[str, set[str]] = {}
    for name, predicate in zip(names, predicates, strict=True):
        if predicate is not None:
            directions.setdefault(name, set()).add(predicate.direction)
    marked = []
    for name, predicate in zip(names, predicates, strict=True):
        has_both = len(directions.get(name, ())) > 1
        is_reverse = has_both and predicate is not None and predicate.direction == "in"
        marked.append((f"{name}{REVERSE}" if is_reverse else name, predicate))
    return marked


def _collect_offer(column: Iterable[tuple[str, RankedPredicate | None]]) -> Offer:
    """Return the first predicate of each name, in the order of the names."""
    offer: dict[str, RankedPredicate | None] = {}
    for name, predicate in column:
        offer.setdefault(name, predicate)
    return offer


def _find_examples(
    relation: LinkedRelation, offer: Offer, terms: TermByEnd, run: Run
) -> dict[str, str]:
    """Return for each name a triple of the graph, or two over a node, in one query.

    The triple has the linked ends of the fact, if it has any. Names without a triple, and those of
    type predicates, have none.
    """
    branches = []
    patterns_by_name: dict[str, Sequence[TriplePattern]] = {}
    for name, predicate in offer.items():
        if predicate is None or predicate.classes:
            continue
        patterns, _ = make_patterns(relation.fact, predicate, terms)
        binding = f'("{len(patterns_by_name)}" AS ?_i)'
        cells = " ".join(_select_cell(*cell) for cell in _list_cells(patterns))
        where = patterns_to_sparql(patterns)
        branches.append(f"{{ SELECT {binding} {cells} WHERE {{ {where} }} LIMIT 1 }}")
        patterns_by_name[name] = patterns
    if not branches:
        return {}
    rows = run.kg.select(
        f"SELECT ?_i ?_a ?_b ?_c ?_d WHERE {{ {' UNION '.join(branches)} }}"
    ).rows
    names = list(patterns_by_name)
    examples = {}
    for number, *cells in rows:
        name = names[int(str(number))]
        examples[name] = _write_example(patterns_by_name[name], cells, run)
    return examples


def _list_cells(patterns: Sequence[TriplePattern]) -> Iterator[tuple[str, str]]:
    """Yield subject and object of each pattern, each with the variable that shows it."""
    ends = [end for subject, _, object_ in patterns for end in (subject, object_)]
    yield from zip(ends, ("?_a", "?_b", "?_c", "?_d"), strict=False)


def _select_cell(end: str, variable: str) -> str:
    return f"({end} AS {variable})"


def _write_example(patterns: Sequence[TriplePattern], cells: Sequence[Term | None], run: Run) -> str:
    """Return triples as text: "subject | predicate | object", two of them joined by ";"."""
    predicates = [URIRef(predicate[1:-1]) for _, predicate, _ in patterns]
    iris = [cell for cell in cells if isinstance(cell, URIRef)]
    names = run.kg.names(sorted({*iris, *predicates}))
    ends = [_write_end(cell, names) for cell in cells if cell is not None]
    triples = []
    for number, predicate in enumerate(predicates):
        subject, object_ = ends[2 * number : 2 * number + 2]
        triples.append(f"{subject} | {names[predicate]} | {object_}")
    return " ; ".join(triples)


def _write_end(term: Term, names: Mapping[URIRef, str]) -> str:
    """Return the name of an IRI, the text of a literal, or NAMELESS."""
    if isinstance(term, BNode):
        return NAMELESS
    text = names[term] if isinstance(term, URIRef) else str(term)
    return text[:MAX_EXAMPLE_CHARS]
