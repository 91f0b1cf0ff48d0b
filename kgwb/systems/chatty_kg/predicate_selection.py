"""Predicate selection (Chatty-KG, section 5.2.3): what a model is shown of predicates, and which queries it keeps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from rdflib import BNode, URIRef

from kgwb.build import (
    CandidateQuery,
    Check,
    Reply,
    Run,
    Term,
    TriplePattern,
    agent,
    patterns_to_sparql,
    split_into_batches,
    term_from_text,
    try_to_ask,
    variables_of,
)
from kgwb.systems.chatty_kg.records import (
    QIR,
    GeneratedQueries,
    LinkedRelation,
    LinkingResult,
    QuerySelection,
    RankedPredicate,
    pattern_predicates,
    predicate_names,
)
from kgwb.systems.chatty_kg.relation_linking import (
    TermByEnd,
    assign_terms,
    find_restrictions,
    make_patterns,
    restrict,
)
from kgwb.systems.chatty_kg.settings import ChattySettings

MIN_SIMILARITY = 0.7
"""A predicate is certain without a model only if it is at least so similar to its relation."""
MIN_LEAD = 0.25
"""It must be more similar than all others by so much."""
MIN_SETTLING_SCORE = 0.6
"""The least score of a query whose direction is taken as that of the question.

"relatives" is both father and child, so a query of low score leaves the direction open.
"""
MAX_REPEATED_NAMES = 5
"""Invalid names of a reply that its problem repeats."""
PREDICATES_CHECK_NAME = "predicates from the list"
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

Offer = tuple[str, Sequence[TriplePattern]]
"""The name that a model sees of a predicate, and the triple patterns of an example.

There are no patterns of a type predicate, nor of one that was not linked: a query that a person
wrote may have such.
"""
OfferedName = tuple[int, str]
"""The position of a fact, and the name of a predicate that is offered for it."""
LinkedPredicate = tuple[RankedPredicate, Sequence[TriplePattern]]
"""A predicate of a fact, with the triple patterns of the fact with it."""


class SelectionReply(Reply):
    """The relevant predicates of each triple after a word of reasoning (zero-shot chain of thought)."""

    reasoning: str
    predicates: list[list[str]]


class PooledReply(Reply):
    """The relevant predicates of one pool after a word of reasoning, as published."""

    reasoning: str
    predicates: list[str]


def find_selection_problems(
    selection: QuerySelection, generated: GeneratedQueries, question: str, linked: LinkingResult
) -> Iterator[str]:
    """Yield a problem for each query of a person's selection that is not one of the candidate queries.

    Queries are compared by their text. ``question`` and ``linked`` are not used.
    """
    candidates = {query.sparql for query in generated.queries}
    for query in selection.queries:
        if query.sparql not in candidates:
            yield f"not a candidate query: {query.sparql}"


@agent("predicate_selection", check=find_selection_problems, kind="model")
def select_predicates(
    generated: GeneratedQueries, question: str, linked: LinkingResult, run: Run
) -> QuerySelection:
    """Keep the queries whose predicates are relevant to the question (Algorithm 3, lines 3 to 17).

    With ``unasked_predicates``, no model is asked if ``_find_certain_predicate`` decides for every
    relation; the step notes that. Otherwise a model is shown the predicates of all queries in one
    list ("pooled" in ``predicate_choice``), or those of each fact, with ``predicate_examples`` also
    with directions and examples. All queries are kept, and no model is asked, if they were put in by a
    person without linked facts. The selection is empty if there are no queries.
    """
    settings = ChattySettings.of_run(run)
    if not generated.queries:
        return QuerySelection((), ())
    if not linked.linked_relations:
        run.note("the queries were put in without linked facts, so all of them are kept")
        return QuerySelection(generated.queries, predicate_names(generated.queries))
    certain = [_find_certain_predicate(relation) for relation in linked.relations]
    names_by_query = [query.predicates for query in generated.queries]
    if settings.unasked_predicates and all(certain):
        run.note("one predicate is certain for each relation, so no model was asked")
        return _keep_by_fact(generated, names_by_query, certain)
    if settings.predicate_choice == "pooled":
        return _select_from_pool(generated, question, run)
    if settings.predicate_examples:
        return _select_with_examples(generated, question, linked, run)
    offered = _list_names_by_fact(names_by_query)
    shown = []
    for relation, names in zip(linked.linked_relations, offered, strict=True):
        shown.append({"triple": relation.fact.as_tuple, "predicates": names})
    relevant = _ask_for_predicates(question, shown, offered, run)
    return _keep_by_fact(generated, names_by_query, relevant)


def _select_with_examples(
    generated: GeneratedQueries, question: str, linked: LinkingResult, run: Run
) -> QuerySelection:
    """Ask a model which predicates are relevant, with directions and examples, and keep the queries that have them.

    With ``wording_decides_direction``, queries that differ from the kept ones in directions only
    come behind them, unless a predicate was chosen in both directions: they are executed if the
    chosen ones have no rows. The graph is asked for examples.
    """
    qir = QIR(tuple(relation.fact for relation in linked.relations))
    terms = assign_terms(qir, linked.links)
    columns = []
    for position, relation in enumerate(linked.linked_relations):
        columns.append(_offer_predicates(relation, position, generated.queries, terms))
    names_by_query = []
    for row in zip(*columns, strict=True):
        names_by_query.append([name for name, _ in row])
    shown = _describe_offers(linked, columns, find_restrictions(linked.links, terms), run)
    offered = _list_names_by_fact(names_by_query)
    relevant = _ask_for_predicates(question, shown, offered, run)
    selection = _keep_by_fact(generated, names_by_query, relevant)
    if unites_directions(relevant):
        return replace(selection, unites_directions=True)
    if ChattySettings.of_run(run).wording_decides_direction:
        others = _find_other_directions(selection.queries, generated)
        return replace(selection, queries=(*selection.queries, *others))
    return selection


def _find_other_directions(
    kept: Sequence[CandidateQuery], generated: GeneratedQueries
) -> list[CandidateQuery]:
    """Return the generated queries that differ from a kept one in directions only, and are not kept.

    Both must have a score of at least MIN_SETTLING_SCORE: below it, the results of the other
    direction would be united with those of the chosen one.
    """
    settling = set()
    for query in kept:
        if query.score >= MIN_SETTLING_SCORE:
            settling.add((query.predicates, pattern_predicates(query)))
    others = []
    for query in generated.queries:
        is_alike = (query.predicates, pattern_predicates(query)) in settling
        if is_alike and query.score >= MIN_SETTLING_SCORE and query not in kept:
            others.append(query)
    return others


def _list_names_by_fact(names_by_query: Sequence[Sequence[str]]) -> list[list[str]]:
    """Return for each fact the names of the predicates that the queries have for it, each once."""
    return [list(dict.fromkeys(names)) for names in zip(*names_by_query, strict=True)]


def _keep_by_fact(
    generated: GeneratedQueries,
    names_by_query: Sequence[Sequence[str]],
    relevant: Sequence[Sequence[str]],
) -> QuerySelection:
    """Return the selection of the queries in which every fact has a relevant predicate, in their order.

    ``names_by_query`` has for each query the names of its predicates, and ``relevant`` for each fact
    the names of the relevant ones. The selection lists those of them that some query has for the
    fact, each once.
    """
    kept = []
    for query, names in zip(generated.queries, names_by_query, strict=True):
        pairs = zip(names, relevant, strict=True)
        if all(name in chosen for name, chosen in pairs):
            kept.append(query)
    listed: dict[str, None] = {}
    for chosen, offered in zip(relevant, _list_names_by_fact(names_by_query), strict=True):
        for name in chosen:
            if name in offered:
                listed[name] = None
    return QuerySelection(tuple(kept), tuple(listed))


def _find_certain_predicate(relation: LinkedRelation) -> list[str]:
    """Return a list with the one predicate that a relation certainly means; an empty list if there is none.

    It is the only one that has the name of the relation, but for letter case. If none has, it is
    the first one if its similarity is at least MIN_SIMILARITY and leads by MIN_LEAD. There is none
    for a relation without predicates, or if the best is a pair over a node.
    """
    if not relation.predicates or relation.predicates[0].onward is not None:
        return []
    relation_name = relation.fact.relation.casefold()
    similarities: dict[str, float] = {}
    for predicate in relation.predicates:
        similarities.setdefault(predicate.name, predicate.similarity)
    same_name = [name for name in similarities if name.casefold() == relation_name]
    if same_name:
        if len(same_name) == 1:
            return same_name
        return []
    best, *others = similarities
    similarity = similarities[best]
    is_ahead = all(similarity - similarities[name] >= MIN_LEAD for name in others)
    return [best] if similarity >= MIN_SIMILARITY and is_ahead else []


def _ask_for_predicates(
    question: str, shown: Sequence[Mapping[str, object]], offered: Sequence[list[str]], run: Run
) -> list[list[str]]:
    """Ask a model which of the predicates offered for each triple are relevant, and return a list for each.

    ``shown`` is what it sees of the triples, and ``offered`` has the names that it may choose. The
    reply must have a list for each triple (Chatty-KG, section 5.2.3), and none may have only names
    that were not offered; the returned lists may still have such names among others. An empty list
    is valid: the graph does not have the relation. Without a valid reply all lists are empty if the
    settings say to abstain, else InvalidReplyError is raised.
    """

    def find_unlisted(reply: SelectionReply) -> str:
        """Return a problem if there is not a list for each triple, or if a list has only names not offered; else "".

        An empty list is no problem.
        """
        if len(reply.predicates) != len(offered):
            return f"{len(reply.predicates)} lists for {len(offered)} triples"
        pairs = zip(reply.predicates, offered, strict=True)
        for number, (names, listed) in enumerate(pairs, 1):
            if names and set(names).isdisjoint(listed):
                return f"none of triple {number}'s predicates is in its list: {_quote(names)}"
        return ""

    variables = {"question": question, "relations": list(shown)}
    checks = [Check(PREDICATES_CHECK_NAME, find_unlisted)]
    prompt = "chatty_kg/predicate_selection"
    reply = try_to_ask(prompt, variables, SelectionReply, run, checks=checks)
    if reply is None:
        return [[] for _ in offered]
    return reply.predicates


def _select_from_pool(generated: GeneratedQueries, question: str, run: Run) -> QuerySelection:
    """Ask a model which predicates are relevant, and keep the queries with at least one of them.

    It is shown the predicates of all queries in one list. Names that are not in it are dropped, and
    a reply without any name of the list is invalid (section 5.2.3). After theta such replies no
    query is kept, as the algorithm then goes on without predicates. Source: Algorithm 3, line 17.
    """
    listed = predicate_names(generated.queries)

    def find_unlisted(reply: PooledReply) -> str:
        """Return a problem if no name of a reply is in the list, else ""."""
        if set(listed).isdisjoint(reply.predicates):
            return f"none of the predicates is in the list: {_quote(reply.predicates)}"
        return ""

    reply = try_to_ask(
        "chatty_kg/predicate_selection_published",
        {"question": question, "predicates": list(listed)},
        PooledReply,
        run,
        checks=[Check(PREDICATES_CHECK_NAME, find_unlisted)],
        last_resort=lambda reply: True,
    )
    named = reply.predicates if reply else []
    relevant = tuple(name for name in listed if name in named)
    kept = []
    for query in generated.queries:
        if not set(relevant).isdisjoint(query.predicates):
            kept.append(query)
    return QuerySelection(tuple(kept), relevant)


def _quote(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:MAX_REPEATED_NAMES]))


# What is offered


def _offer_predicates(
    relation: LinkedRelation, position: int, queries: Sequence[CandidateQuery], terms: TermByEnd
) -> list[Offer]:
    """Return what each query has for the fact at a position, as a model is asked about it.

    REVERSE is behind the name of a predicate that leads from object to subject, if one of that name
    also leads from subject to object.
    """
    linked: list[LinkedPredicate] = []
    for predicate in relation.predicates:
        patterns, _ = make_patterns(relation.fact, predicate, terms)
        linked.append((predicate, patterns))
    found = [_find_predicate(query, position, linked) for query in queries]
    outgoing = set()
    for linked_predicate in found:
        if linked_predicate is not None and linked_predicate[0].direction == "out":
            outgoing.add(linked_predicate[0].name)

    offers: list[Offer] = []
    for query, linked_predicate in zip(queries, found, strict=True):
        name = query.predicates[position]
        example: Sequence[TriplePattern] = ()
        if linked_predicate is not None:
            predicate, example = linked_predicate
            if predicate.direction == "in" and name in outgoing:
                name += REVERSE
            if predicate.classes:
                example = ()
        offers.append((name, example))
    return offers


def _find_predicate(
    query: CandidateQuery, position: int, linked: Iterable[LinkedPredicate]
) -> LinkedPredicate | None:
    """Return the linked predicate that a query has for the fact at a position.

    It has the name, and the query has its triple patterns. None if no linked predicate fits, as in
    a query that a person wrote.
    """
    name = query.predicates[position]
    for predicate, patterns in linked:
        if predicate.name == name and set(patterns).issubset(query.patterns):
            return predicate, patterns
    return None


def _describe_offers(
    linked: LinkingResult,
    columns: Sequence[Sequence[Offer]],
    restrictions: Mapping[str, str],
    run: Run,
) -> list[dict[str, object]]:
    """Return what a model is shown, for each fact: its "triple", and its "predicates" by name.

    ``columns`` has what the queries have for each fact, best query first. A predicate has a triple
    of the graph as its "example", if there is one. One query is sent for MAX_EXAMPLES_PER_QUERY
    predicates, and one for names.
    """
    patterns_by_name: dict[OfferedName, Sequence[TriplePattern]] = {}
    for position, offers in enumerate(columns):
        for name, patterns in offers:
            patterns_by_name.setdefault((position, name), patterns)
    examples = _find_examples(patterns_by_name, restrictions, run)
    entries: list[list[dict[str, str]]] = [[] for _ in columns]
    for position, name in patterns_by_name:
        entry = {"name": name}
        if (position, name) in examples:
            entry["example"] = examples[position, name]
        entries[position].append(entry)
    shown: list[dict[str, object]] = []
    for relation, predicates in zip(linked.linked_relations, entries, strict=True):
        shown.append({"triple": relation.fact.as_tuple, "predicates": predicates})
    return shown


def unites_directions(chosen: Iterable[Sequence[str]]) -> bool:
    """Return whether, for any fact, a predicate was chosen in both directions.

    ``chosen`` has the shown names for each fact.
    """
    for names in chosen:
        reversed_names = {f"{name}{REVERSE}" for name in names}
        if not reversed_names.isdisjoint(names):
            return True
    return False


# Examples of the offered predicates


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
    offered = [name for name, patterns in patterns_by_name.items() if patterns]
    branches = []
    for number, name in enumerate(offered):
        patterns = patterns_by_name[name]
        branches.append(_make_branch(number, patterns, restrict(patterns, restrictions)))
    cells_by_name: dict[OfferedName, list[Term]] = {}
    for batch in split_into_batches(branches, MAX_EXAMPLES_PER_QUERY):
        where = " UNION ".join(batch)
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
    return [URIRef(term_from_text(predicate)) for _, predicate, _ in patterns]


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
    ends = []
    for cell in cells:
        ends.append(_write_end(cell, names))
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
