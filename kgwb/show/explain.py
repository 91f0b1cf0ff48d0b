"""Questions that a person asks about a result: why it is empty, where a vertex is, and so on.

The answers come from the graph itself, when the person asks. The record of the run does not change.
The predicates of the things that a refused question is about can each be seen by one click.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple
from weakref import WeakKeyDictionary

from rdflib import URIRef

from kgwb.errors import GraphError, InputError, QueryError, QueryRefusedError
from kgwb.kg.algebra import TriplePattern, analyze_query, extract_patterns
from kgwb.kg.base import Direction, Graph, ResultSet
from kgwb.kg.label_search import exact_form, normalize
from kgwb.kg.queries import (
    CandidateQuery,
    EmptyResultCause,
    Row,
    explain_empty_result,
    find_predicates,
    find_schema_terms,
)
from kgwb.kg.sparql import is_valid_iri, n3, split_clauses, validate_query
from kgwb.records import QueryPart, Record, frozen, nested_records
from kgwb.run.agents import View
from kgwb.run.answers import Answer, Candidate, Link, RetrievedCandidates
from kgwb.run.ask import get_names_in_rows
from kgwb.run.steps import Step
from kgwb.show.html import MAX_ROWS, Html, div, join, muted_text, render_template, tag
from kgwb.show.terms import RenderContext, render_cell, render_triples
from kgwb.terms import DisplayNames, Iri, Triple, name_from_iri
from kgwb.text import shorten

IriNames = tuple[tuple[Iri, str], ...]
"""Display names of IRIs."""
SEARCH_LIMIT_FACTOR = 10
"""A vertex that is not a candidate is looked for among this many times ``v_limit`` vertices."""
MAX_VERTICES = 5
"""Vertices that are named: of those that have a name, or whose names are nearest to it."""
MAX_READ_TRIPLES = 300_000
"""Triples whose predicates are read, to know whether a graph has a predicate."""
MAX_EXAMPLES = 5
"""Triples shown as examples of a predicate."""


# Why is it empty?


def explain_empty_query(kg: Graph, sparql: str, steps: Iterable[Step]) -> EmptyResultCause:
    """Return the parts of a query that keep it from having rows; the graph is queried for this.

    Patterns and filters are those of the first candidate query in the steps with this SPARQL, else
    they are read from its text. If these have matches, the clauses around them may leave out all of
    them, such as OFFSET: the query itself tells. Raises QueryError for a text that is not a
    conjunctive query, and the GraphError of a query.
    """
    patterns: Sequence[TriplePattern] = ()
    for record in records_in(steps):
        if isinstance(record, CandidateQuery) and record.sparql == sparql:
            patterns = record.patterns
            filters = record.filters
            break
    else:
        patterns, filters = extract_patterns(sparql)
    cause = explain_empty_result(kg, patterns, filters)
    clauses = split_clauses(sparql)
    around = " ".join(f"{clauses.dataset} {clauses.modifiers}".split())
    if cause.is_empty or not around or not execute_query(kg, sparql).is_empty:
        return cause
    return EmptyResultCause(is_empty=True, excluding_clauses=around)


def records_in(steps: Iterable[Step]) -> Iterator[Any]:
    """Yield the outputs of the steps that are done, each followed by all records inside it."""
    for step in steps:
        if step.done:
            yield from nested_records(step.output)


def queries_in(output: Any) -> tuple[str, ...]:
    """Return the SPARQL queries that the field ``queries`` of a record holds; none without it.

    The queries may be texts or records with a field ``sparql``.
    """
    queries: Any = getattr(output, "queries", ())
    if not isinstance(queries, tuple):
        # Some records have the number of queries there.
        return ()
    texts = []
    for query in queries:
        text = getattr(query, "sparql", query)
        texts.append(str(text))
    return tuple(texts)


def is_unanswered(output: Any) -> bool:
    """Return whether an output is an answer without values that should come from the graph."""
    if not isinstance(output, Answer):
        return False
    return not output.values and not output.ungrounded


def reasons_for_no_answer(output: Any, steps: Sequence[Step], kg: Graph | None = None) -> list[str]:
    """Return what the steps before an empty answer looked for in vain; [] for other outputs.

    Each reason is a text, and occurs once. If ``kg`` is a local graph, the reason says whether it
    has the predicate that a thing lacks.
    """
    if not is_unanswered(output):
        return []
    reasons: dict[str, None] = {}
    for step in steps:
        if step.done and isinstance(step.output, Record):
            reason = step.output.missing_from_graph()
            if reason:
                reason += _describe_predicate(step.output.missing_relation(), kg)
                reasons[reason] = None
    return list(reasons)


def _describe_predicate(relation: str, kg: Graph | None) -> str:
    """Return ". The graph has ..." on the predicate with the name of a relation, to end a sentence.

    It says that the graph has the predicate but no value here, or that it has no such predicate. ""
    without a relation, for a remote graph, if only a similar name exists, and if a large graph was
    not read whole.
    """
    if not relation or kg is None or kg.remote:
        return ""
    names, is_complete = _predicate_names(kg)
    if exact_form(relation) in map(exact_form, names):
        return f". The graph has the predicate “{relation}”, but no value of it here"
    has_similar = normalize(relation) in map(normalize, names)  # it may be written otherwise
    if is_complete and not has_similar:
        return f". The graph has no predicate “{relation}”"
    return ""


_PREDICATE_NAMES: WeakKeyDictionary[Graph, tuple[frozenset[str], bool]] = WeakKeyDictionary()


def _predicate_names(kg: Graph) -> tuple[frozenset[str], bool]:
    """Return the names of a graph's predicates, and whether these are all of them.

    They are those of the first MAX_READ_TRIPLES triples, read once for each graph. If the graph
    fails, no name is returned, and False.
    """
    if kg not in _PREDICATE_NAMES:
        triples = f"SELECT ?p WHERE {{ ?s ?p ?o }} LIMIT {MAX_READ_TRIPLES}"
        try:
            found = kg.select(f"SELECT DISTINCT ?p WHERE {{ {{ {triples} }} }}")
            further = kg.select(f"SELECT ?p WHERE {{ ?s ?p ?o }} LIMIT 1 OFFSET {MAX_READ_TRIPLES}")
        except GraphError:
            return frozenset(), False
        first_cells = [row[0] for row in found.rows]
        iris = [cell for cell in first_cells if isinstance(cell, URIRef)]
        names = frozenset(kg.names(iris).values())
        _PREDICATE_NAMES[kg] = (names, not found.cut and not further.rows)
    return _PREDICATE_NAMES[kg]


def render_reasons(output: Any, steps: Sequence[Step], kg: Graph | None) -> Html:
    """Render the title "Why is it empty?" and the reasons why a graph has no answer.

    Nothing is rendered for an output that is not an empty answer, or without reasons
    (``reasons_for_no_answer``).
    """
    reasons = reasons_for_no_answer(output, steps, kg)
    if not reasons:
        return Html()
    title = tag("b", "Why is it empty?")
    lines = [div("", reason) for reason in reasons]
    return div("stack tight", title, *lines)


def render_blocking(found: EmptyResultCause, context: RenderContext) -> Html:
    """Render why a query has no rows: the parts that keep it empty, and the steps that wrote them.

    A part keeps a query empty if the query has rows without it, or if nothing in the graph matches
    the part by itself. If there is no such part, the clauses around the patterns leave out all
    matches, or the query is not empty, a sentence says so.
    """
    if not found.is_empty:
        return div("", "This query has rows, or is true.")
    if found.excluding_clauses:
        clauses = tag("b", shorten(found.excluding_clauses))
        return div("", "The patterns have matches, but ", clauses, " leaves out all of them.")
    parts = {}
    for part in (*found.blocking_patterns, *found.unmatched_patterns):
        authors = "; ".join(authors_of(context.steps, part, context.names))
        parts[part] = (query_part_text(part, context.names), authors)
    return render_template("show/templates/blocking.html", found=found, parts=parts)


def query_part_text(part: TriplePattern | str, names: DisplayNames) -> str:
    """Return a triple pattern by the names of its IRIs: "?film — director → Denis Villeneuve".

    The text of FILTERs is returned as it is.
    """
    if isinstance(part, str):
        return part
    subject, predicate, object_ = [pattern_term_text(term, names) for term in part]
    return f"{subject} — {predicate} → {object_}"


def pattern_term_text(term: str, names: DisplayNames) -> str:
    """Return the display name of an IRI in angle brackets; any other term of a pattern as it is."""
    if not term.startswith("<"):
        return term
    iri = term[1:-1]
    return names.get(iri) or name_from_iri(iri)


def authors_of(steps: Iterable[Step], part: TriplePattern | str, names: DisplayNames) -> list[str]:
    """Return which steps wrote a part of a query, as texts; [] if none did.

    For example "relation_linking[...] wrote the predicate director". The part is the text of the
    filters, or a triple pattern: then there is a text for its predicate, its subject and its
    object, in this order, as far as a step wrote them. If several steps wrote the same, the last
    one is named.
    """
    # A supervisor stands before the steps it supervises, so the last author of a part is right.
    author_of: dict[QueryPart, str] = {}
    for step in steps:
        for record in records_in([step]):
            if isinstance(record, Record):
                author_of |= dict.fromkeys(record.query_parts(), step.key)

    if isinstance(part, str):
        filters = QueryPart("filters", part)
        if filters not in author_of:
            return []
        return [f"{author_of[filters]} wrote the filters"]
    subject, predicate, object_ = part
    written = (
        QueryPart("predicate", predicate),
        QueryPart("vertex", subject),
        QueryPart("vertex", object_),
    )
    texts = []
    for query_part in written:
        if query_part in author_of:
            author = author_of[query_part]
            term = pattern_term_text(query_part.text, names)
            texts.append(f"{author} wrote the {query_part.kind} {term}")
    return texts


# Where is this vertex?


def locate_vertices(
    kg: Graph, name: str, mention: RetrievedCandidates | Link, limit: int
) -> list[str]:
    """Return a line for each vertex with a name: whether it is a candidate, or why not.

    ``name`` is a label, or an IRI with or without angle brackets. ``limit`` is the ``v_limit`` with
    which the candidates were searched. A vertex that is not a candidate is searched again with
    SEARCH_LIMIT_FACTOR times that limit, for its rank. Each line has the display name, the IRI and
    the place; at most MAX_VERTICES vertices are described, candidates first. If no vertex has the
    name, the only line has the nearest labels. Raises a GraphError.
    """
    name = name.strip()
    iri = _iri_of_name(name)
    if iri is None:
        vertices = _vertices_called(kg, name, mention.candidates)
        wanted_label = name
    else:
        vertices = _vertex_with_iri(kg, iri)
        wanted_label = None
    if not vertices:
        return [_describe_unknown_name(kg, name)]

    names = kg.names(vertices)
    candidates = [candidate.iri for candidate in mention.candidates]
    ranks: dict[URIRef, int] = {}
    if not set(vertices).issubset(candidates):
        result = kg.search(mention.entity, SEARCH_LIMIT_FACTOR * limit)
        ranks = {hit.iri: rank for rank, hit in enumerate(result.hits, 1)}
    lines = []
    for vertex in vertices:
        if vertex in candidates:
            position = candidates.index(vertex)
            place = _describe_candidate(mention, position, wanted_label)
        else:
            rank = ranks.get(vertex)
            place = _describe_rank(mention, rank, limit)
        lines.append(f"{names[vertex]} <{vertex}> {place}")
    return lines


def _iri_of_name(name: str) -> str | None:
    """Return a name without angle brackets if it is an IRI; None if it is a label.

    It is an IRI if it has angle brackets, contains "://", or begins with "urn:", and has only
    characters that an IRI may have.
    """
    iri = name.removeprefix("<").removesuffix(">")
    looks_like_iri = iri != name or "://" in iri or iri.startswith("urn:")
    if looks_like_iri and is_valid_iri(iri):
        return iri
    return None


def _vertex_with_iri(kg: Graph, iri: str) -> list[URIRef]:
    """Return [vertex] for an IRI that is subject or object of a triple; [] if the graph has none.

    An ASK is sent.
    """
    outgoing = f"{{ <{iri}> ?p ?o }}"
    incoming = f"{{ ?s ?q <{iri}> }}"
    if kg.ask(f"ASK {{ {outgoing} UNION {incoming} }}"):
        return [URIRef(iri)]
    return []


def _vertices_called(kg: Graph, name: str, candidates: Iterable[Candidate]) -> list[URIRef]:
    """Return at most MAX_VERTICES vertices that have a name as their label.

    Candidates come first; their labels are compared without letter case (``exact_form``). The
    graph's exact search finds the others.
    """
    wanted = exact_form(name)
    vertices = []
    for candidate in candidates:
        if exact_form(candidate.label) == wanted:
            vertices.append(candidate.iri)
    vertices += kg.exact([name]).get(name, ())
    distinct = list(dict.fromkeys(vertices))
    return distinct[:MAX_VERTICES]


def _describe_unknown_name(kg: Graph, name: str) -> str:
    """Return that no vertex has a name, with at most MAX_VERTICES labels that a search finds.

    An empty name is not searched for.
    """
    line = f"the graph has no vertex called {name!r}"
    if not name:
        return line
    result = kg.search(name, MAX_VERTICES)
    if not result.hits:
        return line
    nearest = ", ".join(hit.label for hit in result.hits)
    return f"{line}; nearest are {nearest}"


def _describe_candidate(
    mention: RetrievedCandidates | Link, position: int, wanted_label: str | None
) -> str:
    """Return "is candidate N", counted from 1, and its label if that is not the wanted one.

    ``wanted_label`` is None if the candidate was not asked for by a label. Letter case does not
    matter.
    """
    place = f"is candidate {position + 1}"
    label = mention.candidates[position].label
    if wanted_label is not None and exact_form(label) != exact_form(wanted_label):
        place += f", found by its label {label!r}"
    return place


def _describe_rank(mention: RetrievedCandidates | Link, rank: int | None, limit: int) -> str:
    """Return why a vertex is not a candidate, as a text that follows its name.

    ``rank`` is its place in a search for the mention: None if it was not found. A rank up to the
    limit means that worse vertices than the last candidate were dropped.
    """
    if rank is None:
        return f"is in the graph, but the search for {mention.entity!r} does not find any of its labels"
    if rank > limit:
        return f"is found at rank {rank:,}, beyond the v_limit of {limit:,}"
    number = len(mention.candidates)
    return f"is found at rank {rank:,}, but only the best {number:,} became candidates"


# What does this predicate hold?


@frozen
class PredicateExamples:
    """Some triples of a predicate."""

    triples: tuple[Triple, ...]
    from_anywhere: bool = False
    """Whether the linked vertices have none, so that these triples are of other vertices."""
    names: IriNames = ()


def find_examples(
    kg: Graph,
    mentions: tuple[str, str],
    predicate: URIRef,
    direction: Direction,
    steps: Iterable[Step],
) -> PredicateExamples:
    """Return triples of a predicate at the vertices that a fact is about, else at any vertices.

    ``mentions`` are the two ends of the fact as the question has them; the vertices are those that
    the outputs of ``steps`` link them to, the first link of each. With the direction "in", the
    first mention is the object. Triples at the subject are tried before those at the object. At
    most MAX_EXAMPLES are returned, with the display names of their IRIs; ``from_anywhere`` says
    that they are at any vertices. Raises a GraphError.
    """
    vertices: dict[str, str] = {}
    for name, vertex in _names_linked_by(steps):
        vertices.setdefault(name, n3(vertex))
    subject_mention, object_mention = mentions
    if direction == "in":
        object_mention, subject_mention = mentions

    iri = n3(predicate)
    patterns = []
    if subject_mention in vertices:
        patterns.append(f"{vertices[subject_mention]} {iri} ?o")
    if object_mention in vertices:
        patterns.append(f"?s {iri} {vertices[object_mention]}")
    for pattern in patterns:
        examples = _find_matches(kg, pattern)
        if examples.triples:
            return examples
    return replace(_find_matches(kg, f"?s {iri} ?o"), from_anywhere=True)


def _find_matches(kg: Graph, pattern: str) -> PredicateExamples:
    """Return at most MAX_EXAMPLES triples that match a pattern, with names. Raises a GraphError."""
    triples = kg.construct(f"CONSTRUCT WHERE {{ {pattern} }} LIMIT {MAX_EXAMPLES}")
    return PredicateExamples(triples, names=names_of_terms(kg, triples))


def names_of_terms(kg: Graph, rows: Iterable[Row]) -> IriNames:
    """Return the display names of the IRIs in rows of terms, sorted by IRI. Raises a GraphError."""
    return tuple(sorted(get_names_in_rows(rows, kg).items()))


def render_examples(examples: PredicateExamples, context: RenderContext) -> Html:
    """Render example triples of a predicate, and a remark if they are of other vertices.

    Without triples, a text says that the graph has none.
    """
    if not examples.triples:
        return div("", "no triple in the graph has this predicate")
    triples = render_triples(examples.triples, context.with_names(examples.names))
    if not examples.from_anywhere:
        return triples
    remark = muted_text("from anywhere in the graph: the linked vertices have none")
    return join(triples, remark)


# What does this query return?


@frozen
class QueryResult:
    """The result of a SELECT or an ASK that a person typed."""

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
    """Run a SELECT or an ASK, and look up the names in the first MAX_ROWS rows.

    A query that the gate of the graph refuses is not sent. Of a boolean query there are no rows,
    and ``ask_result`` has the value.

    Raises a GraphError if the query is refused, rejected or too slow.
    """
    # The graph refuses SERVICE itself, with a message of its own.
    query = validate_query(sparql, allow_service=True)
    if query.form == "ask":
        no_rows = ResultSet((), ())
        return QueryResult(no_rows, kg.ask(sparql))
    result = kg.select(sparql)
    shown_rows = result.rows[:MAX_ROWS]
    names = names_of_terms(kg, shown_rows)
    return QueryResult(result, names=names)


@frozen
class QueryFailure:
    """A query that was refused or could not be read, and why."""

    sparql: str
    error: GraphError
    is_empty: ClassVar[bool] = False

    @property
    def line_number(self) -> int | None:
        """The line of the query that the error names, from 1; None if it names none."""
        match = re.search(r"\bat line (\d+)", self.error.message)
        if match is None:
            return None
        return int(match[1])


def try_query(kg: Graph, sparql: str) -> QueryResult | QueryFailure:
    """Return the result of ``execute_query``, or the failure of a query that is wrong.

    Raises a GraphError if the graph itself fails: if it cannot be reached, or is too slow.
    """
    try:
        return execute_query(kg, sparql)
    except (QueryError, QueryRefusedError) as error:
        return QueryFailure(sparql, error)


def render_query_failure(failure: QueryFailure, context: RenderContext) -> Html:
    """Render the message of a query's error with its hint, and the line of the query that it names.

    Without a line number in the message there is no line.
    """
    lines = failure.sparql.split("\n")
    number = failure.line_number
    line = None
    if number is not None and number <= len(lines):
        line = lines[number - 1]
    return render_template(
        "show/templates/query_failure.html", error=failure.error, number=number, line=line
    )


def render_query_result(executed: QueryResult, context: RenderContext) -> Html:
    """Render the number of rows and the first MAX_ROWS rows of a query, or the result of an ASK.

    The columns are headed by the variables. It is said if the row limit cut the result, and how
    many rows are not shown.
    """
    return render_template(
        "show/templates/query_result.html",
        executed=executed,
        result=executed.rows,
        context=context.with_names(executed.names),
        render_cell=render_cell,
    )


def edit_candidate_query(query: CandidateQuery, sparql: str) -> CandidateQuery:
    """Return a copy of a candidate query with the SPARQL that a person typed.

    Patterns, filters and predicates are read from it. A predicate that the candidate query had
    keeps its name; any other is named by its local part. Raises QueryRefusedError for an update,
    and QueryError for a query that is not conjunctive, or that asks for another variable than the
    candidate query.
    """
    patterns, filters = extract_patterns(sparql)
    asked = _describe_projection(sparql)
    expected = _describe_projection(query.sparql)
    if asked != expected:
        raise QueryError(
            f"the query was not changed: it is {asked}, and {expected} is expected here",
            hint="keep what the query asks for, because the answer is made from it",
        )
    known_predicates = [predicate for _, predicate, _ in query.patterns]
    names = dict(zip(known_predicates, query.predicates, strict=False))
    predicates = []
    for _, predicate, _ in patterns:
        name = names.get(predicate) or pattern_term_text(predicate, {})
        predicates.append(name)
    return replace(
        query,
        sparql=sparql,
        patterns=patterns,
        predicates=tuple(predicates),
        filters=filters,
    )


def _describe_projection(sparql: str) -> str:
    """Return "an ASK", or "a SELECT of ?x" with the first selected variable."""
    variables = analyze_query(sparql).projected_variables
    if not variables:
        return "an ASK"
    return f"a SELECT of {variables[0]}"


REPLY_VIEWS: Mapping[type, View] = {
    EmptyResultCause: render_blocking,
    PredicateExamples: render_examples,
    QueryFailure: render_query_failure,
    QueryResult: render_query_result,
}
"""How replies of the graph that are records are rendered."""


def render_graph_result(question: str, context: RenderContext) -> Html:
    """Render what the graph replied to a question; nothing if it was not asked.

    ``question`` is a name in ``context.graph_results``. A reply is a list of lines, or a record of
    a class in REPLY_VIEWS. Raises KeyError for a reply of any other class.
    """
    if question not in context.graph_results:
        return Html()
    reply = context.graph_results[question]
    if isinstance(reply, list):
        lines = [div("", line) for line in reply]
        return div("well", *lines)
    view = REPLY_VIEWS[type(reply)]
    return div("well", Html(view(reply, context)))


MAX_THINGS = 2
"""Things of a question whose predicates are named."""
MAX_PREDICATES = 16
"""Predicates that are named of a thing."""
MAX_NAME_WORDS = 6
"""Words of a question that are looked up as one name."""
MAX_WORDS = 60
"""Words of a question of which names are looked up."""
WORD = re.compile(r"[^\s?!,;:“”\"()]+")


class ThingPredicate(NamedTuple):
    """A predicate that a thing has."""

    iri: URIRef
    name: str
    direction: Direction


@frozen
class Thing:
    """A vertex that a question is about, and what the graph says of it."""

    iri: URIRef
    label: str
    predicates: tuple[ThingPredicate, ...]
    """By name, "out" before "in"; at most MAX_PREDICATES."""


MAX_KEPT_REFUSALS = 200
"""Refused questions of a graph whose things are kept; then they are looked up anew."""
Refusal = tuple[str, tuple[URIRef, ...]]
"""A refused question, and the vertices that its steps linked."""
_THINGS: WeakKeyDictionary[Graph, dict[Refusal, tuple[Thing, ...]]] = WeakKeyDictionary()
"""The things of refusals, by graph: a widget is drawn again after each event."""


def things_of_refusal(
    output: Any, question: str, steps: Iterable[Step], kg: Graph | None
) -> tuple[Thing, ...]:
    """Return the things that an unanswered question is about, with their predicates.

    They are the vertices that the steps linked, else those that have words of the question as their
    label; at most MAX_THINGS, and only those with a predicate. Empty for any other output, without
    a graph, for a remote graph, and if the graph fails. The graph is asked once for the same
    question and links.
    """
    if kg is None or kg.remote or not is_unanswered(output):
        return ()
    kept = _THINGS.setdefault(kg, {})
    linked = _linked_vertices(steps)
    things = kept.get((question, linked))
    if things is None:
        try:
            things = _things(linked or _vertices_named_in(question, kg), kg)
        except GraphError:
            return ()
        if len(kept) >= MAX_KEPT_REFUSALS:
            kept.clear()
        kept[question, linked] = things
    return things


def _linked_vertices(steps: Iterable[Step]) -> tuple[URIRef, ...]:
    """Return the vertices that steps have linked names to, each once; the first MAX_THINGS.

    Only the first vertex of a link counts. Steps that are not done are left out.
    """
    iris = [iri for _, iri in _names_linked_by(steps)]
    return tuple(dict.fromkeys(iris))[:MAX_THINGS]


def _names_linked_by(steps: Iterable[Step]) -> Iterator[tuple[str, URIRef]]:
    """Yield the names that steps have linked, each with its vertex, the first of its link."""
    for step in steps:
        link = step.output
        if step.done and isinstance(link, Link) and link.vertex:
            yield link.entity, link.vertex.iri


def _vertices_named_in(question: str, kg: Graph) -> tuple[URIRef, ...]:
    """Return the vertices that have the most words of a question in a row as their label.

    At most MAX_WORDS words are looked at, MAX_NAME_WORDS in a row, and MAX_THINGS vertices
    returned. Predicates and classes are left out, and so is a single word in small letters.
    """
    words = []
    for word in WORD.findall(question)[:MAX_WORDS]:
        without_s = word.removesuffix("'s").removesuffix("’s")
        words.append(without_s.rstrip("."))
    for length in range(MAX_NAME_WORDS, 0, -1):
        names = []
        for start in range(len(words) - length + 1):
            end = start + length
            name = " ".join(words[start:end])
            if length > 1 or not name.islower():
                names.append(name)
        found = kg.exact(names)
        iris: list[URIRef] = []
        for name in names:
            iris += found.get(name, ())
        schema_terms = find_schema_terms(kg, iris)
        distinct = dict.fromkeys(iris)
        vertices = [iri for iri in distinct if iri not in schema_terms]
        if vertices:
            return tuple(vertices[:MAX_THINGS])
    return ()


def _things(iris: Sequence[URIRef], kg: Graph) -> tuple[Thing, ...]:
    """Return vertices as things with their predicates; those without any are left out.

    At most MAX_PREDICATES predicates each, those that lead away first, then by name. Raises a
    GraphError.
    """
    things = []
    for iri in iris:
        found = find_predicates(kg, iri)
        names = kg.names([iri, *(predicate for predicate, _ in found)])
        predicates = []
        for predicate, direction in found:
            name = names[predicate]
            predicates.append(ThingPredicate(predicate, name, direction))
        predicates.sort(key=lambda predicate: (predicate.direction == "in", predicate.name))
        if predicates:
            shown = tuple(predicates[:MAX_PREDICATES])
            things.append(Thing(iri, names[iri], shown))
    return tuple(things)


def question_about(thing: Thing, predicate: ThingPredicate) -> str:
    """Return a question for the values of a predicate of a thing."""
    if predicate.direction == "in":
        return f"What is {thing.label} the {predicate.name} of?"
    return f"What is the {predicate.name} of {thing.label}?"


def values_of(kg: Graph, thing: URIRef, predicate: ThingPredicate) -> PredicateExamples:
    """Return triples of a predicate at a thing, which is the object with the direction "in".

    At most MAX_EXAMPLES are returned, with the display names of their IRIs. Raises a GraphError.
    """
    if predicate.direction == "in":
        return _find_matches(kg, f"?s {n3(predicate.iri)} {n3(thing)}")
    return _find_matches(kg, f"{n3(thing)} {n3(predicate.iri)} ?o")


def predicate_of_event(things: Sequence[Thing], argument: str) -> tuple[Thing, ThingPredicate]:
    """Return the thing and the predicate that a click has sent as positions, such as "0 3".

    Raises InputError if there are none at these positions: the page shows another answer by now.
    """
    positions = re.fullmatch(r"(\d+) (\d+)", argument)
    if positions:
        thing_number, number = map(int, positions.groups())
        if thing_number < len(things) and number < len(things[thing_number].predicates):
            thing = things[thing_number]
            return thing, thing.predicates[number]
    raise InputError(
        "nothing was done: this predicate is not shown any more", hint="click one that is shown"
    )


def result_name(thing: Thing, predicate: ThingPredicate) -> str:
    """Return the name under which the values of a predicate stand in ``graph_results``."""
    return f"values {thing.iri} {predicate.direction} {predicate.iri}"


def render_questions(things: Sequence[Thing]) -> Html:
    """Render things with their predicates as buttons that write a question into a chat."""
    return render_template(
        "show/templates/things.html",
        things=things,
        question_about=question_about,
        render_reply=None,
    )


def render_predicates(things: Sequence[Thing], context: RenderContext) -> Html:
    """Render things with their predicates as buttons that ask the graph for values.

    The replies so far are shown below each thing.
    """

    def render_reply(thing: Thing, predicate: ThingPredicate) -> Html:
        """Render what the graph replied to the button of a predicate; nothing before a click."""
        return render_graph_result(result_name(thing, predicate), context)

    return render_template("show/templates/things.html", things=things, render_reply=render_reply)
