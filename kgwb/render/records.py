"""Each form of record as a piece of HTML, a table where it has several parts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from typing import Any

from rdflib import Literal, URIRef

from kgwb.flow import (
    QIR,
    Answer,
    Candidate,
    CandidateQuery,
    Context,
    Generated,
    Link,
    Linked,
    LinkedRelation,
    RankedPredicate,
    Retrieved,
    Selection,
    Term,
    Triple,
)
from kgwb.kg.text import local_name
from kgwb.render.html import Html, aside, bar, fold, iri, join, page, preformatted, safe, table, tag
from kgwb.render.words import ARROWS, Names, count, lines, term_text

MOST_SUPPORT = 20
"""Supporting triples shown of one value."""
UNFOLDED_QUERIES = 8
"""Candidate queries shown at once; the rest unfolds."""


def record_html(value: Any, names: Names | None = None) -> str:
    """A flow record as static HTML that stands alone; ``names`` are display names by IRI."""
    return page(record(value, names or {}))


@singledispatch
def record(value: Any, names: Names) -> Html:
    """A record as a piece of a page; one that has no table of its own as its lines."""
    first, *rest = lines(value, names)
    return join(tag("div", first), preformatted("\n".join(rest)) if rest else Html())


def says_more(value: Any) -> bool:
    """Whether a record has more to show than its summary."""
    return record.dispatch(type(value)) is not record.dispatch(object) or len(lines(value, {})) > 1


@record.register
def _(value: Context, names: Names) -> Html:
    rows = [(turn.question, turn.standalone, ", ".join(turn.answers)) for turn in value.turns]
    return join(tag("div", lines(value, names)[0]), table(("question", "self-contained", "answers"), rows))


@record.register
def _(value: QIR, names: Names) -> Html:
    rows = [(fact.subject, fact.relation, fact.object) for fact in value.facts]
    asked = f"{value.kind}, asks for {value.target}" if value.target else value.kind
    return join(tag("div", asked), table(("subject", "relation", "object"), rows))


@record.register
def _(value: Retrieved, names: Names) -> Html:
    search = aside(f"search: {value.query}")
    return join(tag("div", lines(value, names)[0]), _candidates(value.candidates), search)


@record.register
def _(value: Link, names: Names) -> Html:
    chosen = value.candidates.index(value.vertex) if value.vertex in value.candidates else -1
    told = tag("div", lines(value, names)[0])
    return join(told, tag("div", value.reason), _candidates(value.candidates, chosen))


def _candidates(candidates: Sequence[Candidate], chosen: int = -1) -> Html:
    columns: dict[str, list[object]] = {
        "": ["chosen" if number == chosen else "" for number in range(len(candidates))],
        "label": [c.label for c in candidates],
        "type": [", ".join(c.types) for c in candidates],
        "description": [c.description for c in candidates],
        "relations": [", ".join(c.relations) for c in candidates],
        "score": [f"{c.score:.2f}" for c in candidates],
        "IRI": [iri(c.iri) for c in candidates],
    }
    shown = {head: cells for head, cells in columns.items() if any(cells)}
    return table(tuple(shown), zip(*shown.values(), strict=True), chosen=chosen)


@record.register
def _(value: LinkedRelation, names: Names) -> Html:
    return join(tag("div", str(value.fact)), _predicates(value.predicates))


def _predicates(ranked: Sequence[RankedPredicate]) -> Html:
    rows = [(bar(p.similarity), f"{ARROWS[p.direction]} {p.direction}", p.name, iri(p.iri)) for p in ranked]
    return table(("similarity", "direction", "predicate", "IRI"), rows)


@record.register
def _(value: Linked, names: Names) -> Html:
    return join(*(record(part, names) for part in (*value.links, *value.relations)))


@record.register
def _(value: Generated, names: Names) -> Html:
    return join(tag("div", lines(value, names)[0]), _queries(value.queries))


@record.register
def _(value: Selection, names: Names) -> Html:
    return join(tag("div", lines(value, names)[0]), _queries(value.queries))


def _queries(queries: Sequence[CandidateQuery]) -> Html:
    heads = ("score", "predicates", "SPARQL")
    rows = [(bar(query.score), ", ".join(query.predicates), preformatted(query.sparql)) for query in queries]
    left = len(rows) - UNFOLDED_QUERIES
    more = fold(f"{left} more", table(heads, rows[UNFOLDED_QUERIES:])) if left > 0 else Html()
    return join(table(heads, rows[:UNFOLDED_QUERIES]), more)


@record.register
def _(value: Answer, names: Names) -> Html:
    if not value.values:
        return join(tag("div", value.reason or "nothing found"), _executed(value))
    names = {**{str(iri): name for iri, name in value.names}, **names}
    rows = [(one.label, term(one.term), triples(one.support, names)) for one in value.values]
    said = tag("div", value.text) if value.text else Html()
    head = "value" if value.kind == "list" else value.kind
    return join(said, table((head, "term", "stands on"), rows), _executed(value))


def _executed(value: Answer) -> Html:
    if not value.queries:
        return Html()
    return fold(f"SPARQL executed: {count(len(value.queries), 'query')}", *map(preformatted, value.queries))


def term(value: Term, label: str = "") -> Html:
    """An IRI by its label, or a literal with its language or datatype."""
    if isinstance(value, URIRef):
        return iri(value, label)
    kind = value.language or local_name(value.datatype or "") if isinstance(value, Literal) else "blank node"
    return join(str(value), " ", aside(kind)) if kind else safe(str(value))


def triples(support: Sequence[Triple], names: Names) -> Html:
    """Triples a line each, every IRI by its name and under the pointer as it is."""
    rows = [tag("div", _triple(triple, names)) for triple in support[:MOST_SUPPORT]]
    left = len(support) - MOST_SUPPORT
    return join(*rows, aside(f"and {count(left, 'more triple')}") if left > 0 else Html())


def _triple(triple: Triple, names: Names) -> Html:
    subject, predicate, object_ = (term(part, term_text(part, names)) for part in triple)
    return join(subject, " — ", predicate, " → ", object_)
