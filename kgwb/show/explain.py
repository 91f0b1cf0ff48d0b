"""Questions that a person asks about a result: why it is empty, where a vertex is, and so on.

They are put to the graph itself when the person asks. The record of the run does not change.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rdflib import URIRef

from kgwb.errors import QueryError
from kgwb.flow import Answer, Candidate, CandidateQuery, Direction, Link, RetrievedCandidates
from kgwb.kg.algebra import TriplePattern, analyze_query, extract_patterns
from kgwb.kg.base import Graph, ResultSet
from kgwb.kg.queries import EmptyResultCause, explain_empty_result
from kgwb.kg.sparql import is_valid_iri, n3, validate_query
from kgwb.kg.text import normalize
from kgwb.records import QueryPart, Record, nested_records
from kgwb.run.steps import Step
from kgwb.show import html as h
from kgwb.show.html import Html
from kgwb.show.terms import RenderContext, render_term, render_triples
from kgwb.terms import DisplayNames, Iri, Triple, name_from_iri
from kgwb.text import pluralize, shorten

IriNames = tuple[tuple[Iri, str], ...]
"""Display names of IRIs."""
SEARCH_LIMIT_FACTOR = 10
"""A vertex that is no candidate is looked for among so many times v_limit vertices."""
MAX_VERTICES = 5
"""Vertices named where several have a name, or are nearest to one that none has."""
MAX_EXAMPLES = 5
"""Triples shown as examples of a predicate."""


# Why is it empty?


def explain_empty_query(kg: Graph, sparql: str, steps: Iterable[Step]) -> EmptyResultCause:
    """Find the parts of a query that keep it from having rows.

    A candidate query of the run is analysed by its own patterns. Any other query must be
    conjunctive. Raises a GraphError.
    """
    for step in steps:
        for record in nested_records(step.output) if step.done else ():
            if isinstance(record, CandidateQuery) and record.sparql == sparql:
                return explain_empty_result(kg, record.patterns, record.filters)
    return explain_empty_result(kg, *extract_patterns(sparql))


def queries_in(output: Any) -> tuple[str, ...]:
    """Return the SPARQL queries that the field ``queries`` of a record holds."""
    queries: Any = getattr(output, "queries", ())
    if not isinstance(queries, tuple):  # some records have a number of queries there
        return ()
    return tuple(str(getattr(query, "sparql", query)) for query in queries)


def is_unanswered(output: Any) -> bool:
    """Return whether an output is an answer without values."""
    return isinstance(output, Answer) and not output.values and not output.ungrounded


def reasons_for_no_answer(output: Any, steps: Sequence[Step]) -> list[str]:
    """Return what the steps before an empty answer looked for, and the graph lacks."""
    if not is_unanswered(output):
        return []
    reasons: dict[str, None] = {}
    for step in steps:
        if step.done and isinstance(step.output, Record):
            reason = step.output.missing_from_graph()
            if reason:
                reasons[reason] = None
    return list(reasons)


def render_reasons(output: Any, steps: Sequence[Step]) -> Html:
    """Render ``reasons_for_no_answer``; nothing if there is none."""
    reasons = [h.div("", reason) for reason in reasons_for_no_answer(output, steps)]
    if not reasons:
        return Html()
    return h.div("stack tight", h.tag("b", "Why is it empty?"), *reasons)


def render_blocking(found: EmptyResultCause, context: RenderContext) -> Html:
    """Render why a query has no rows: each part that is to blame, and the steps that wrote it."""
    if not found.is_empty:
        return h.div("", "This query has rows, or is true.")
    rows = []
    for part in dict.fromkeys((*found.blocking_patterns, *found.unmatched_patterns)):
        reasons = []
        if part in found.blocking_patterns:
            reasons.append("without it the query has rows")
        if part in found.unmatched_patterns:
            reasons.append("nothing in the graph matches it")
        authors = "; ".join(authors_of(context.steps, part, context.names))
        authors = authors or "no step of this run wrote it"
        head = h.tag("b", shorten(query_part_text(part, context.names)))
        rows.append(h.div("", head, f": {', and '.join(reasons)}. ", h.muted_text(f"{authors}.")))
    if not rows:
        return h.div(
            "", "Each pattern has matches, but no one of them brings rows back once removed."
        )
    return h.join(*rows)


def query_part_text(part: TriplePattern | str, names: DisplayNames) -> str:
    """Return a triple pattern by the names of its IRIs: "?film — director → Denis Villeneuve".

    The text of FILTERs is returned as it is.
    """
    if isinstance(part, str):
        return part
    subject, predicate, object_ = (pattern_term_text(term, names) for term in part)
    return f"{subject} — {predicate} → {object_}"


def pattern_term_text(term: str, names: DisplayNames) -> str:
    """Return a term in N-Triples form; an IRI by its name."""
    if not term.startswith("<"):
        return term
    iri = term[1:-1]
    return names.get(iri) or name_from_iri(iri)


def authors_of(steps: Iterable[Step], part: TriplePattern | str, names: DisplayNames) -> list[str]:
    """Return who put a part into a query: ["relation_linking[...] wrote the predicate director"]."""
    # A supervisor stands before the steps it supervises, so the last author of a part is right.
    author_of: dict[QueryPart, str] = {}
    for step in steps:
        for record in nested_records(step.output) if step.done else ():
            if isinstance(record, Record):
                author_of.update((written, step.key) for written in record.query_parts())
    if isinstance(part, str):
        written = QueryPart("filters", part)
        return [f"{author_of[written]} wrote the filters"] if written in author_of else []
    subject, predicate, object_ = part
    texts = []
    for written in (
        QueryPart("predicate", predicate),
        QueryPart("vertex", subject),
        QueryPart("vertex", object_),
    ):
        if written in author_of:
            name = pattern_term_text(written.text, names)
            texts.append(f"{author_of[written]} wrote the {written.kind} {name}")
    return texts


# Where is this vertex?


def locate_vertices(
    kg: Graph, name: str, mention: RetrievedCandidates | Link, limit: int
) -> list[str]:
    """Say where the vertices of a name, or the vertex of an IRI, are among a mention's candidates.

    Returns a line for each vertex. ``limit`` is the v_limit with which the candidates were searched.
    Raises a GraphError.
    """
    name = name.strip()
    iri = name.removeprefix("<").removesuffix(">")
    looks_like_iri = iri != name or "://" in iri or iri.startswith("urn:")
    if looks_like_iri and is_valid_iri(iri):
        is_there = kg.ask(f"ASK {{ {{ <{iri}> ?p ?o }} UNION {{ ?s ?q <{iri}> }} }}")
        vertices = [URIRef(iri)] if is_there else []
        wanted_label = None
    else:
        vertices = _vertices_called(kg, name, mention.candidates)
        wanted_label = normalize(name)
    if not vertices:
        nearest = [hit.label for hit in kg.search(name, MAX_VERTICES).hits] if name else []
        line = f"the graph has no vertex called {name!r}"
        return [f"{line}; nearest are {', '.join(nearest)}" if nearest else line]
    names = kg.names(vertices)
    places = _describe_positions(kg, vertices, mention, limit, wanted_label)
    return [f"{names[vertex]} <{vertex}> {places[vertex]}" for vertex in vertices]


def _vertices_called(kg: Graph, name: str, candidates: Iterable[Candidate]) -> list[URIRef]:
    """Return the first vertices that have a name as their label, candidates before others."""
    wanted = normalize(name)
    vertices = [candidate.iri for candidate in candidates if normalize(candidate.label) == wanted]
    vertices += kg.exact([name]).get(name, ())
    return list(dict.fromkeys(vertices))[:MAX_VERTICES]


def _describe_positions(
    kg: Graph,
    vertices: Sequence[URIRef],
    mention: RetrievedCandidates | Link,
    limit: int,
    wanted_label: str | None,
) -> dict[URIRef, str]:
    """Say for each vertex whether it is a candidate, and if not, why not."""
    positions = {
        candidate.iri: position for position, candidate in enumerate(mention.candidates, 1)
    }
    ranks: dict[URIRef, int] = {}
    if set(vertices) - positions.keys():
        hits = kg.search(mention.entity, SEARCH_LIMIT_FACTOR * limit).hits
        ranks = {hit.iri: rank for rank, hit in enumerate(hits, 1)}
    places = {}
    for vertex in vertices:
        if vertex in positions:
            label = mention.candidates[positions[vertex] - 1].label
            place = f"is candidate {positions[vertex]}"
            if wanted_label is not None and normalize(label) != wanted_label:
                place += f", found by its label {label!r}"
        elif vertex not in ranks:
            place = (
                f"is in the graph, but no label of it is found by the words of {mention.entity!r}"
            )
        elif ranks[vertex] > limit:
            place = f"is found at rank {ranks[vertex]:,}, beyond the v_limit of {limit:,}"
        else:
            number = len(mention.candidates)
            place = (
                f"is found at rank {ranks[vertex]:,}, but only the best {number:,} "
                "became candidates"
            )
        places[vertex] = place
    return places


# What does this predicate hold?


@dataclass(frozen=True, slots=True)
class PredicateExamples:
    """Some triples of a predicate."""

    triples: tuple[Triple, ...]
    from_anywhere: bool
    """Whether the linked vertices have none, so that these triples are of other vertices."""
    names: IriNames = ()


def find_examples(
    kg: Graph,
    mentions: tuple[str, str],
    predicate: URIRef,
    direction: Direction,
    steps: Iterable[Step],
) -> PredicateExamples:
    """Return triples of a predicate at the vertices that a fact is about, else of any vertices.

    ``ends`` are the mentions at the ends of the fact, in the order of the question; ``steps`` say
    to which vertices they were linked. Raises a GraphError.
    """
    vertices: dict[str, str] = {}
    for step in steps:
        link = step.output
        if step.done and isinstance(link, Link) and link.vertex:
            vertices.setdefault(link.entity, n3(link.vertex.iri))
    subject, object_ = (
        vertices.get(end) for end in (mentions if direction == "out" else mentions[::-1])
    )
    patterns = []
    if subject:
        patterns.append(f"{subject} {n3(predicate)} ?o")
    if object_:
        patterns.append(f"?s {n3(predicate)} {object_}")
    for pattern in patterns:
        triples = _example_triples(kg, pattern)
        if triples:
            return PredicateExamples(triples, False, names_of_terms(kg, triples))
    triples = _example_triples(kg, f"?s {n3(predicate)} ?o")
    return PredicateExamples(triples, True, names_of_terms(kg, triples))


def _example_triples(kg: Graph, pattern: str) -> tuple[Triple, ...]:
    return kg.construct(f"CONSTRUCT WHERE {{ {pattern} }} LIMIT {MAX_EXAMPLES}")


def names_of_terms(kg: Graph, rows: Iterable[Iterable[Any]]) -> IriNames:
    """Return the display names of the IRIs in rows of terms. Raises a GraphError."""
    iris = {term for row in rows for term in row if isinstance(term, URIRef)}
    return tuple(sorted(kg.names(sorted(iris)).items()))


def render_examples(examples: PredicateExamples, context: RenderContext) -> Html:
    """Render example triples of a predicate."""
    if not examples.triples:
        return h.div("", "no triple in the graph has this predicate")
    triples = render_triples(examples.triples, context.with_names(examples.names))
    if not examples.from_anywhere:
        return triples
    return h.join(
        triples, h.muted_text("from anywhere in the graph: the linked vertices have none")
    )


# What does this query return?


@dataclass(frozen=True, slots=True)
class QueryResult:
    """The result of a query that a person typed."""

    rows: ResultSet
    """Without variables and rows for an ASK."""
    ask_result: bool | None = None
    """The result of an ASK."""
    names: IriNames = ()
    """Display names of the IRIs in the rows that are shown."""

    @property
    def is_empty(self) -> bool:
        """Whether there is no row, or the ASK is false."""
        return not self.rows.rows and not self.ask_result


def execute_query(kg: Graph, sparql: str) -> QueryResult:
    """Run a SELECT or an ASK. Raises a GraphError if it is refused, rejected or too slow."""
    if validate_query(sparql, allow_service=True).form == "ask":  # the graph refuses SERVICE itself
        return QueryResult(ResultSet((), ()), kg.ask(sparql))
    rows = kg.select(sparql)
    return QueryResult(rows, None, names_of_terms(kg, rows.rows[: h.MAX_ROWS]))


def render_query_result(executed: QueryResult, context: RenderContext) -> Html:
    """Render the rows of a query, or the truth of an ASK."""
    if executed.ask_result is not None:
        return h.div("", h.tag("b", str(executed.ask_result).lower()), h.muted_text(" (ASK)"))
    context = context.with_names(executed.names)
    result = executed.rows
    rows = []
    for row in result.rows[: h.MAX_ROWS]:
        rows.append(["" if cell is None else render_term(cell, context) for cell in row])
    heads = [f"?{variable}" for variable in result.variables]
    number = h.tag("b", pluralize(len(result.rows), "row"))
    cut = "; the result was cut there by the row limit" if result.cut else ""
    return h.join(h.div("", number, cut), h.table(heads, rows, total=len(result.rows)))


def edit_candidate_query(query: CandidateQuery, sparql: str) -> CandidateQuery:
    """Return a candidate query with the SPARQL that a person typed.

    Raises QueryRefusedError for an update, and QueryError for a query that is not conjunctive or
    asks for something else than the candidate query.
    """
    patterns, filters = extract_patterns(sparql)
    asked, expected = _describe_projection(sparql), _describe_projection(query.sparql)
    if asked != expected:
        raise QueryError(
            f"the query is {asked} where {expected} is expected",
            hint="keep what the query asks for, as the answer is made of it",
        )
    names = {
        pattern[1]: name for pattern, name in zip(query.patterns, query.predicates, strict=False)
    }
    predicates = [
        names.get(predicate) or pattern_term_text(predicate, {}) for _, predicate, _ in patterns
    ]
    return replace(
        query,
        sparql=sparql,
        patterns=patterns,
        predicates=tuple(predicates),
        filters=filters,
    )


def _describe_projection(sparql: str) -> str:
    parts = analyze_query(sparql)
    return f"a SELECT of {parts.projected_variables[0]}" if parts.projected_variables else "an ASK"
