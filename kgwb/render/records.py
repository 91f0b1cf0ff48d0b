"""Each form of record as a piece of HTML, a table where it has several parts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import singledispatch
from typing import Any

from rdflib import Literal, URIRef

from kgwb.explain import Author, Blocking, Examples, Executed, Whereabouts, part_text
from kgwb.flow import (
    QIR,
    Answer,
    Candidate,
    CandidateQuery,
    Classified,
    Context,
    Fact,
    Generated,
    Link,
    Linked,
    LinkedRelation,
    RankedPredicate,
    Rephrased,
    Retrieved,
    Selection,
    Term,
    Triple,
    is_unknown,
)
from kgwb.kg.text import local_name
from kgwb.record import Step
from kgwb.render.html import Html, aside, bar, fold, iri, join, page, preformatted, safe, table, tag
from kgwb.render.pictures import changes, marked, qir_picture
from kgwb.render.sparql import sparql
from kgwb.render.words import ARROWS, Names, count, lines, term_text

MOST_SUPPORT = 20
"""Supporting triples shown of one value."""
UNFOLDED_QUERIES = 8
"""Candidate queries shown at once; the rest unfolds."""
MOST_LETTERS = 300
"""Letters shown of a literal; its length is said where it has more."""
DEGREE_CAP = 1_000
"""Degrees are counted up to this many."""


def record_html(value: Any, names: Names | None = None) -> str:
    """A flow record as static HTML that stands alone; ``names`` are display names by IRI."""
    return page(record(value, names or {}))


def step_record(step: Step, names: Names, degrees: Mapping[URIRef, int] | None = None) -> Html:
    """What a step yielded, told with what came in to it: the words that decided, the cuts so far.

    ``degrees`` are those of the candidates, counted up to DEGREE_CAP.
    """
    given = list(step.inputs.values())
    match step.output:
        case Classified() as made:
            return _classified(made, next((text for text in given if isinstance(text, str)), ""))
        case Rephrased() as made:
            contexts = (fold("the dialogue as it came in", record(one, names)) for one in _of(Context, given))
            return join(record(made, names), *contexts)
        case Retrieved() as made:
            return _retrieved(made, names, degrees)
        case Link() as made:
            searched = (aside(f"search as sent: {one.query}") for one in _of(Retrieved, given) if one.query)
            return join(_link(made, names, degrees), *searched)
        case Selection() as made:
            generated = next(iter(_of(Generated, given)), None)
            return _selection(made, names, generated)
    return record(step.output, names)


def _of(kind: type[Any], given: Iterable[Any]) -> list[Any]:
    return [one for one in given if isinstance(one, kind)]


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
def _(value: Classified, names: Names) -> Html:
    return _classified(value, "")


def _classified(value: Classified, question: str) -> Html:
    quoted = re.findall(r"['\"‘“]([^'\"‘’“”]+)['\"’”]", value.reason)
    asked = tag("div", aside("question "), marked(question, quoted)) if question else Html()
    return join(
        tag("div", tag("span", value.label, class_="kgwb-badge kgwb-label")),
        asked,
        tag("div", aside("because "), value.reason) if value.reason else Html(),
    )


@record.register
def _(value: Rephrased, names: Names) -> Html:
    if value.question == value.original:
        return join(tag("div", value.question), aside("nothing was changed"))
    before, after = changes(value.original, value.question)
    return table(("", "question"), [("before", before), ("after", after)])


@record.register
def _(value: QIR, names: Names) -> Html:
    rows = [(_end(fact.subject, value), fact.relation, _end(fact.object, value)) for fact in value.facts]
    asked = (
        f"{value.kind}, asks for {value.target}" if value.target else f"{value.kind}, asks whether it is so"
    )
    return join(tag("div", asked), table(("subject", "relation", "object"), rows), qir_picture(value))


def _end(name: str, qir: QIR) -> Html:
    if not is_unknown(name):
        return tag("span", name, class_="kgwb-entity")
    told = "unknown, asked for" if name == qir.target else "unknown"
    return join(tag("span", name, class_="kgwb-variable"), " ", aside(told))


@record.register
def _(value: Retrieved, names: Names) -> Html:
    return _retrieved(value, names)


def _retrieved(value: Retrieved, names: Names, degrees: Mapping[URIRef, int] | None = None) -> Html:
    search = aside(f"search as sent: {value.query}") if value.query else Html()
    return join(tag("div", lines(value, names)[0]), _candidates(value.candidates, degrees=degrees), search)


@record.register
def _(value: Link, names: Names) -> Html:
    return _link(value, names)


def _link(value: Link, names: Names, degrees: Mapping[URIRef, int] | None = None) -> Html:
    chosen = value.candidates.index(value.vertex) if value.vertex in value.candidates else -1
    because = tag("div", aside("because "), value.reason) if value.reason else Html()
    told = tag("div", tag("b", lines(value, names)[0]))
    return join(told, because, _candidates(value.candidates, chosen, degrees))


def _candidates(
    candidates: Sequence[Candidate], chosen: int = -1, degrees: Mapping[URIRef, int] | None = None
) -> Html:
    known = degrees or {}
    columns: dict[str, list[object]] = {
        "rank": [f"{rank}" for rank in range(1, len(candidates) + 1)],
        "": ["chosen" if number == chosen else "" for number in range(len(candidates))],
        "label": [c.label for c in candidates],
        "type": [", ".join(c.types) for c in candidates],
        "description": [shortened(c.description) for c in candidates],
        "relations": [", ".join(c.relations) for c in candidates],
        "match score": [f"{c.score:.2f}" for c in candidates],
        "degree": [_degree(known[c.iri]) if c.iri in known else "" for c in candidates],
        "IRI": [iri(c.iri) for c in candidates],
    }
    shown = {head: cells for head, cells in columns.items() if any(cells)}
    return table(tuple(shown), zip(*shown.values(), strict=True), chosen=chosen)


def _degree(number: int) -> str:
    return f"{number:,}+" if number >= DEGREE_CAP else f"{number:,}"


@record.register
def _(value: LinkedRelation, names: Names) -> Html:
    told = tag("div", tag("b", str(value.fact)))
    return join(told, _predicates(value) or tag("div", "no predicate: nothing linked touches it"))


def _predicates(relation: LinkedRelation) -> Html:
    ranked, fact = relation.predicates, relation.fact
    heads = ("rank", "similarity", "direction", "reads as", "IRI")
    rows = [
        (rank, bar(p.similarity), f"{ARROWS[p.direction]} {p.direction}", _reading(p, fact), iri(p.iri))
        for rank, p in enumerate(ranked, 1)
    ]
    return table(heads, rows)


def _reading(predicate: RankedPredicate, fact: Fact) -> Html:
    start, end = fact.ends if predicate.direction == "out" else fact.ends[::-1]
    return join(start, " — ", tag("b", predicate.name), " → ", end)


@record.register
def _(value: Linked, names: Names) -> Html:
    return join(*(record(part, names) for part in (*value.links, *value.relations)))


@record.register
def _(value: Generated, names: Names) -> Html:
    return join(tag("div", _cuts(value)), _queries(value.queries, names))


@record.register
def _(value: Selection, names: Names) -> Html:
    return _selection(value, names)


def _selection(value: Selection, names: Names, generated: Generated | None = None) -> Html:
    cuts = f"{_cuts(generated)}, {len(value.queries):,} selected" if generated else lines(value, names)[0]
    relevant = tag("div", aside("relevant predicates "), ", ".join(value.predicates) or "none")
    return join(tag("div", cuts), relevant, _queries(value.queries, names))


def _cuts(value: Generated) -> str:
    """ "120 combinations, 40 kept (query_num)" """
    kept = len(value.queries)
    told = f"{kept:,} kept (query_num)" if kept < value.before_truncation else "all kept"
    return f"{count(value.before_truncation, 'combination')}, {told}" if kept else "no combination"


def _queries(queries: Sequence[CandidateQuery], names: Names) -> Html:
    heads = ("rank", "score", "predicates", "reads as", "SPARQL")
    rows = [
        (
            rank,
            bar(one.score),
            ", ".join(one.predicates),
            join(*(tag("div", part_text(pattern, names)) for pattern in one.patterns)),
            fold("SPARQL", sparql(one.sparql, names)),
        )
        for rank, one in enumerate(queries, 1)
    ]
    left = len(rows) - UNFOLDED_QUERIES
    more = fold(f"{left} more", table(heads, rows[UNFOLDED_QUERIES:])) if left > 0 else Html()
    return join(table(heads, rows[:UNFOLDED_QUERIES]), more)


@record.register
def _(value: Answer, names: Names) -> Html:
    if not value.values:
        return join(tag("div", value.reason or "nothing found"), _executed(value, names))
    names = told_apart(value, {**{str(iri): name for iri, name in value.names}, **names})
    rows = [
        (shortened(names.get(str(one.term), one.label)), term(one.term), triples(one.support, names))
        for one in value.values
    ]
    said = tag("div", value.text) if value.text else Html()
    head = "value" if value.kind == "list" else value.kind
    return join(said, table((head, "term", "stands on"), rows), _executed(value, names))


def told_apart(value: Answer, names: Names) -> Names:
    """The names of what an answer shows; beside a name that several vertices share stands the local name."""
    values = {str(one.term): one.label for one in value.values if isinstance(one.term, URIRef)}
    shown = {str(t) for triple in value.support for t in triple if isinstance(t, URIRef)} | set(values)
    called = {one: names.get(one) or values.get(one) or local_name(one) for one in sorted(shown)}
    for name in set(called.values()):
        same = [one for one, other in called.items() if other == name]
        tails = [re.split(r"[/#:]", one.rstrip("/#:"))[-1] for one in same]
        beside = tails if len(set(tails)) == len(same) else same
        if same[1:]:
            called.update((one, f"{name} ({tail})") for one, tail in zip(same, beside, strict=True))
    return called


def _executed(value: Answer, names: Names) -> Html:
    if not value.queries:
        return Html()
    told = (sparql(query, names) for query in value.queries)
    return fold(f"SPARQL executed: {count(len(value.queries), 'query')}", *told)


def term(value: Term, label: str = "") -> Html:
    """An IRI by its label, or a literal with its language or datatype, cut if it is huge."""
    if isinstance(value, URIRef):
        return iri(value, label)
    kind = value.language or local_name(value.datatype or "") if isinstance(value, Literal) else "blank node"
    text = shortened(str(value))
    return join(text, " ", aside(kind)) if kind else text


def shortened(text: str) -> Html:
    """A text, or its beginning with its length beside it."""
    if len(text) <= MOST_LETTERS:
        return safe(text)
    return join(text[:MOST_LETTERS], "… ", aside(f"({len(text):,} letters)"))


def triples(support: Sequence[Triple], names: Names) -> Html:
    """Triples a line each, every IRI by its name and under the pointer as it is."""
    rows = [tag("div", _triple(triple, names)) for triple in support[:MOST_SUPPORT]]
    left = len(support) - MOST_SUPPORT
    return join(*rows, aside(f"and {count(left, 'more triple')}") if left > 0 else Html())


def _triple(triple: Triple, names: Names) -> Html:
    subject, predicate, object_ = (
        term(part, term_text(part, names) if isinstance(part, URIRef) else "") for part in triple
    )
    return join(subject, " — ", predicate, " → ", object_)


# --- what was asked of the graph on demand ------------------------------------------------------------------


@record.register
def _(value: Whereabouts, names: Names) -> Html:
    return join(*(tag("div", line) for line in str(value).splitlines()))


@record.register
def _(value: Examples, names: Names) -> Html:
    known = {**names, **{str(iri): name for iri, name in value.names}}
    if not value.triples:
        return tag("div", "no triple in the graph has this predicate")
    where = "from anywhere in the graph: the linked vertices have none" if value.anywhere else ""
    return join(triples(value.triples, known), aside(where))


@record.register
def _(value: Executed, names: Names) -> Html:
    if value.truth is not None:
        return tag("div", tag("b", str(value.truth).lower()), aside(" (ASK)"))
    known = {**names, **{str(iri): name for iri, name in value.names}}
    found = value.rows
    heads = [f"?{variable}" for variable in found.variables]
    rows = [["" if one is None else term(one, known.get(str(one), "")) for one in row] for row in found.rows]
    cut = "; the result was cut there by the row limit" if found.cut else ""
    return join(tag("div", tag("b", count(len(rows), "row")), cut), table(heads, rows))


def blocking_html(value: Blocking, authors: Mapping[Any, Sequence[Author]], names: Names) -> Html:
    """Why a query has no rows, and by its part, which steps wrote it."""
    if not value.empty:
        return tag("div", "This query has rows, or is true.")
    told = []
    for part in dict.fromkeys((*value.culprits, *value.unmatched)):
        reasons = ["without it the query has rows"] if part in value.culprits else []
        reasons += ["nothing in the graph matches it"] if part in value.unmatched else []
        shown = tag("b", part_text(part, names))
        wrote = "; ".join(one.told(names) for one in authors.get(part, ())) or "no step of this run wrote it"
        told.append(tag("div", shown, f": {', and '.join(reasons)}. ", aside(f"{wrote}.")))
    return join(*told) or tag("div", f"{str(value).capitalize()}.")
