"""Each form of record as a piece of HTML, a table where it has several parts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import singledispatch
from typing import Any, TypeVar

from rdflib import Literal, URIRef

from kgwb import flow, walk
from kgwb.explain import Author, Blocking, Examples, Executed, Whereabouts, part_text
from kgwb.kg.text import local_name
from kgwb.record import Step
from kgwb.render.html import (
    MOST_ROWS,
    Html,
    aside,
    bar,
    fold,
    iri,
    join,
    page,
    preformatted,
    short,
    table,
    tag,
)
from kgwb.render.pictures import changes, marked, qir_picture
from kgwb.render.sparql import sparql
from kgwb.render.words import ARROWS, MOST_SUPPORT, Names, count, lines, supporting, term_text, with_names

__all__ = ["MOST_SUPPORT", "record", "record_html", "says_more", "step_record"]

T = TypeVar("T")
UNFOLDED_QUERIES = 8
"""Candidate queries shown at once; the rest unfolds."""
DEGREE_CAP = 1_000
"""Degrees are counted up to this many."""


def record_html(value: Any, names: Names | None = None) -> str:
    """A flow record as static HTML that stands alone; ``names`` are display names by IRI."""
    return page(record(value, names or {}))


def record(value: Any, names: Names) -> Html:
    """A record as a piece of a page; one that has no form of its own as its lines."""
    return _form(value, _Around(names))


def step_record(step: Step, names: Names, degrees: Mapping[URIRef, int] | None = None) -> Html:
    """What a step yielded, told with what came in to it: the words that decided, the cuts so far.

    ``degrees`` are those of the candidates, counted up to DEGREE_CAP.
    """
    return _form(step.output, _Around(names, tuple(step.inputs.values()), degrees or {}))


def says_more(value: Any) -> bool:
    """Whether a record has more to show than its summary."""
    return _form.dispatch(type(value)) is not _form.dispatch(object) or len(lines(value, {})) > 1


@dataclass(frozen=True, slots=True)
class _Around:
    """What else is known where a record is shown."""

    names: Names
    given: tuple[Any, ...] = ()
    """What came in to the step that yielded it."""
    degrees: Mapping[URIRef, int] = field(default_factory=dict)

    def of(self, kind: type[T]) -> T | None:
        return next((one for one in self.given if isinstance(one, kind)), None)


@singledispatch
def _form(value: Any, around: _Around) -> Html:
    first, *rest = lines(value, around.names)
    return join(tag("div", first), preformatted("\n".join(rest)) if rest else "")


def _after(lead: str, text: str) -> Html:
    """A line of text after what it is; nothing if there is none."""
    return tag("div", aside(f"{lead} "), text) if text else Html()


@_form.register
def _(value: flow.Context, around: _Around) -> Html:
    rows = [(turn.question, turn.standalone, ", ".join(map(short, turn.answers))) for turn in value.turns]
    return join(tag("div", lines(value, {})[0]), table(("question", "self-contained", "answers"), rows))


@_form.register
def _(value: flow.Classified, around: _Around) -> Html:
    quoted = re.findall(r"['\"‘“]([^'\"‘’“”]+)['\"’”]", value.reason)
    label = tag("div", tag("span", value.label, class_="kgwb-badge kgwb-label"))
    return join(
        label, _after("question", marked(around.of(str) or "", quoted)), _after("because", value.reason)
    )


@_form.register
def _(value: flow.Rephrased, around: _Around) -> Html:
    shown = join(tag("div", value.question), aside("nothing was changed"))
    if value.question != value.original:
        before, after = changes(value.original, value.question)
        shown = table(("", "question"), [("before", before), ("after", after)])
    context = around.of(flow.Context)
    return join(shown, fold("the dialogue as it came in", _form(context, around)) if context else "")


@_form.register
def _(value: flow.QIR, around: _Around) -> Html:
    def end(name: str) -> Html:
        if not flow.is_unknown(name):
            return tag("span", name, class_="kgwb-entity")
        told = "unknown, asked for" if name == value.target else "unknown"
        return join(tag("span", name, class_="kgwb-variable"), " ", aside(told))

    rows = [(end(fact.subject), fact.relation, end(fact.object)) for fact in value.facts]
    asked = f"asks for {value.target}" if value.target else "asks whether it is so"
    facts = table(("subject", "relation", "object"), rows)
    return join(tag("div", f"{value.kind}, {asked}"), facts, qir_picture(value))


@_form.register
def _(value: flow.Retrieved, around: _Around) -> Html:
    found = tag("div", lines(value, {})[0])
    return join(found, _candidates(value.candidates, around), _after("search as sent:", value.query))


@_form.register
def _(value: flow.Link, around: _Around) -> Html:
    chosen = value.candidates.index(value.vertex) if value.vertex in value.candidates else -1
    searched = around.of(flow.Retrieved)
    return join(
        tag("div", tag("b", lines(value, {})[0])),
        _after("because", value.reason),
        _candidates(value.candidates, around, chosen),
        _after("search as sent:", searched.query if searched else ""),
    )


def _candidates(candidates: Sequence[flow.Candidate], around: _Around, chosen: int = -1) -> Html:
    def degree(vertex: URIRef) -> str:
        number = around.degrees.get(vertex)
        return "" if number is None else f"{number:,}{'+' if number >= DEGREE_CAP else ''}"

    columns: dict[str, list[object]] = {
        "rank": [f"{rank}" for rank in range(1, len(candidates) + 1)],
        "": ["chosen" if number == chosen else "" for number in range(len(candidates))],
        "label": [short(c.label) for c in candidates],
        "type": [short(", ".join(c.types)) for c in candidates],
        "description": [short(c.description) for c in candidates],
        "relations": [short(", ".join(c.relations)) for c in candidates],
        "match score": [f"{c.score:.2f}" for c in candidates],
        "degree": [degree(c.iri) for c in candidates],
        "IRI": [iri(c.iri) for c in candidates],
    }
    shown = {head: cells for head, cells in columns.items() if any(cells)}
    return table(tuple(shown), zip(*shown.values(), strict=True), chosen=chosen)


@_form.register
def _(value: flow.LinkedRelation, around: _Around) -> Html:
    def reading(predicate: flow.RankedPredicate) -> Html:
        start, end = value.fact.ends if predicate.direction == "out" else value.fact.ends[::-1]
        return join(start, " — ", tag("b", short(predicate.name)), " → ", end)

    rows = [
        (rank, bar(one.similarity), f"{ARROWS[one.direction]} {one.direction}", reading(one), iri(one.iri))
        for rank, one in enumerate(value.predicates, 1)
    ]
    ranked = table(("rank", "similarity", "direction", "reads as", "IRI"), rows)
    told = tag("div", tag("b", str(value.fact)))
    return join(told, ranked or tag("div", "no predicate: nothing linked touches it"))


@_form.register
def _(value: flow.Linked, around: _Around) -> Html:
    return join(*(_form(part, around) for part in (*value.links, *value.relations)))


@_form.register
def _(value: flow.Generated, around: _Around) -> Html:
    return join(tag("div", _cuts(value)), _queries(value.queries, around.names))


@_form.register
def _(value: flow.Selection, around: _Around) -> Html:
    generated = around.of(flow.Generated)
    selected = f"{len(value.queries):,} selected"
    cuts = f"{_cuts(generated)}, {selected}" if generated else lines(value, {})[0]
    relevant = _after("relevant predicates", short(", ".join(value.predicates)) or "none")
    return join(tag("div", cuts), relevant, _queries(value.queries, around.names))


def _cuts(value: flow.Generated) -> str:
    """ "120 combinations, 40 kept (query_num)" """
    kept = len(value.queries)
    told = f"{kept:,} kept (query_num)" if kept < value.before_truncation else "all kept"
    return f"{count(value.before_truncation, 'combination')}, {told}" if kept else "no combination"


def _queries(queries: Sequence[flow.CandidateQuery], names: Names) -> Html:
    heads = ("rank", "score", "predicates", "reads as", "SPARQL")
    rows = [
        (
            rank,
            bar(one.score),
            short(", ".join(one.predicates)),
            join(*(tag("div", short(part_text(pattern, names))) for pattern in one.patterns)),
            fold("SPARQL", sparql(one.sparql, names)),
        )
        for rank, one in enumerate(queries, 1)
    ]
    left = len(rows) - UNFOLDED_QUERIES
    more = fold(f"{left} more", table(heads, rows[UNFOLDED_QUERIES:])) if left > 0 else ""
    return join(table(heads, rows[:UNFOLDED_QUERIES]), more)


@_form.register
def _(value: flow.Answer, around: _Around) -> Html:
    return join(
        tag("div", flow.UNGROUNDED, class_="kgwb-bad") if value.ungrounded else "", _answer(value, around)
    )


def _answer(value: flow.Answer, around: _Around) -> Html:
    names = _told_apart(value, with_names(around.names, value.names))
    rows = [
        (short(names.get(str(one.term), one.label)), term(one.term), triples(one.support, names))
        for one in value.values[:MOST_ROWS]
    ]
    said = "" if value.values and not value.text else lines(value, names)[0]
    head = "value" if value.kind == "list" else value.kind
    executed = (sparql(query, names) for query in value.queries)
    return join(
        tag("div", said) if said else "",
        table((head, "term", "stands on"), rows, of=len(value.values)),
        fold(f"SPARQL executed: {count(len(value.queries), 'query')}", *executed) if value.queries else "",
    )


def _told_apart(answer: flow.Answer, names: Names) -> Names:
    """The names, where an answer shows several vertices of one name with the local name beside it."""
    labels = {str(one.term): one.label for one in answer.values[:MOST_ROWS] if isinstance(one.term, URIRef)}
    alike: dict[str, list[str]] = {}
    for one in sorted({*map(str, supporting(answer)), *labels}):
        alike.setdefault(names.get(one) or labels.get(one) or local_name(one), []).append(one)
    told = dict(names)
    for name, same in alike.items():
        tails = [re.split(r"[/#:]", one.rstrip("/#:"))[-1] for one in same]
        beside = tails if len(set(tails)) == len(same) else same
        for one, tail in zip(same, beside, strict=True):
            told[one] = f"{short(name)} ({tail})" if same[1:] else name
    return told


def term(value: flow.Term, label: str = "") -> Html:
    """An IRI by its label, or a literal with its language or datatype, cut if it is huge."""
    if isinstance(value, URIRef):
        return iri(value, label)
    kind = value.language or local_name(value.datatype or "") if isinstance(value, Literal) else "blank node"
    return join(tag("bdi", short(str(value))), *((" ", aside(kind)) if kind else ()))


def shortened(text: str) -> Html:
    """A text, or its beginning with its length."""
    return join(short(text))


def triples(support: Sequence[flow.Triple], names: Names) -> Html:
    """Triples a line each, every IRI by its name and under the pointer as it is."""

    def told(part: flow.Term) -> Html:
        return term(part, term_text(part, names) if isinstance(part, URIRef) else "")

    left = len(support) - MOST_SUPPORT
    return join(
        *(tag("div", told(s), " — ", told(p), " → ", told(o)) for s, p, o in support[:MOST_SUPPORT]),
        aside(f"and {count(left, 'more triple')}") if left > 0 else "",
    )


# --- a walk over the graph, and its debate ------------------------------------------------------------------


def _in_question(text: str) -> Html:
    """A question with its linked names framed."""
    parts = walk.MARKED.split(text)
    return join(*(tag("span", part, class_="kgwb-entity") if n % 2 else part for n, part in enumerate(parts)))


@_form.register
def _(value: walk.Topics | walk.Focus, around: _Around) -> Html:
    return tag("div", _in_question(value.question))


@_form.register
def _(value: walk.Relations, around: _Around) -> Html:
    return _offered(value, None)


@_form.register
def _(value: walk.Filtered, around: _Around) -> Html:
    offered = around.of(walk.Relations) or walk.Relations(value.head, ())
    return join(
        tag("div", tag("b", lines(value, {})[0])),
        _after("to answer", value.subquestion),
        _after("because", value.reason),
        _offered(offered, value.relation),
    )


def _offered(offered: walk.Relations, chosen: walk.Relation | None) -> Html:
    """The relations of a head, which way each is gone, and which was chosen."""
    ways = {"out": f"{offered.head} → …", "in": f"… → {offered.head}"}
    rows = [
        (
            "chosen" if one == chosen else "",
            str(one),
            ways[one.direction],
            join(*(tag("div", iri(predicate)) for predicate in one.iris)),
        )
        for one in offered.found
    ]
    return table(("", "relation", "in the graph", "predicate"), rows)


@_form.register
def _(value: walk.Filled, around: _Around) -> Html:
    wide = max((len(triple) for triple in value.triples), default=3)
    heads = ("head", "relation", "tail") if wide == 3 else ("head", "relation", "between", "relation", "tail")
    rows = [triple if len(triple) == wide else (*triple[:2], "", "", triple[2]) for triple in value.triples]
    of = f"{count(value.found, 'tail')} found, {len(value.values)} kept"
    return join(
        tag("div", tag("b", f"[{value.head}] {value.relation or ''}")),
        tag("div", of if value.values else value.reason, aside(f" ({value.note})") if value.note else ""),
        table(heads, rows[:MOST_ROWS], of=len(rows)),
        fold("what each tail stands on, from where the walk began", _answer(value, around)),
    )


@_form.register
def _(value: walk.Tried, around: _Around) -> Html:
    label = f"{value.sufficient}: {'these triples answer it' if value.answers else 'another hop is needed'}"
    asked = around.of(str)
    return join(
        tag("div", tag("span", label, class_="kgwb-badge kgwb-label")),
        tag("div", aside("question "), _in_question(asked)) if asked else "",
        _after("answers", ", ".join(value.answers)),
        _after("because", value.reason),
    )


@_form.register
def _(value: walk.Remark, around: _Around) -> Html:
    said = around.given[-2] if len(around.given) > 1 else ()
    earlier = [one for one in said if isinstance(one, walk.Remark)] if isinstance(said, tuple) else []
    return _conversation([*earlier, value], now=len(earlier))


@_form.register
def _(value: walk.Simplified, around: _Around) -> Html:
    before, after = changes(value.original, value.question)
    return join(table(("", "question"), [("before", before), ("after", after)]), _conversation(value.debate))


def _conversation(debate: Sequence[walk.Remark], now: int = -1) -> Html:
    """A debate as its speakers had it, each with the question proposed; who speaks ``now`` stands out."""
    roles = list(dict.fromkeys(one.role for one in debate))
    return join(
        *(
            tag(
                "div",
                tag("b", one.role),
                tag("div", one.words),
                tag("div", aside("→ "), _in_question(one.question)),
                class_=f"kgwb-said kgwb-turn-{roles.index(one.role)}{' kgwb-now' if place == now else ''}",
            )
            for place, one in enumerate(debate)
        )
    )


@_form.register
def _(value: walk.Hop, around: _Around) -> Html:
    """The question as it shrank up to here, and what this hop went along."""
    questions = [*value.before, value.question, *([value.left.question] if value.left else [])]
    left = len(questions) - 1 if value.left else -1
    rows = [
        (f"{n}", _in_question(text), "left" if n - 1 == left else "") for n, text in enumerate(questions, 1)
    ]
    gone = [tag("div", _in_question(lines(one, around.names)[0])) for one in value.filled]
    tried = _form(value.tried, _Around(around.names)) if value.tried else Html()
    return join(table(("", "the question, shorter by each hop", ""), rows), *gone, tried)


# --- what was asked of the graph on demand ------------------------------------------------------------------


@_form.register
def _(value: Whereabouts, around: _Around) -> Html:
    return join(*(tag("div", line) for line in str(value).splitlines()))


@_form.register
def _(value: Examples, around: _Around) -> Html:
    if not value.triples:
        return tag("div", "no triple in the graph has this predicate")
    where = "from anywhere in the graph: the linked vertices have none" if value.anywhere else ""
    return join(triples(value.triples, with_names(around.names, value.names)), aside(where))


@_form.register
def _(value: Executed, around: _Around) -> Html:
    if value.truth is not None:
        return tag("div", tag("b", str(value.truth).lower()), aside(" (ASK)"))
    names, found = with_names(around.names, value.names), value.rows
    rows = [
        ["" if one is None else term(one, names.get(str(one), "")) for one in row]
        for row in found.rows[:MOST_ROWS]
    ]
    cut = "; the result was cut there by the row limit" if found.cut else ""
    heads = [f"?{variable}" for variable in found.variables]
    told = tag("div", tag("b", count(len(found.rows), "row")), cut)
    return join(told, table(heads, rows, of=len(found.rows)))


def blocking_html(value: Blocking, authors: Mapping[Any, Sequence[Author]], names: Names) -> Html:
    """Why a query has no rows, and by its part, which steps wrote it."""
    if not value.empty:
        return tag("div", "This query has rows, or is true.")
    told = []
    for part in dict.fromkeys((*value.culprits, *value.unmatched)):
        reasons = ["without it the query has rows"] if part in value.culprits else []
        reasons += ["nothing in the graph matches it"] if part in value.unmatched else []
        shown = tag("b", short(part_text(part, names)))
        wrote = "; ".join(one.told(names) for one in authors.get(part, ())) or "no step of this run wrote it"
        told.append(tag("div", shown, f": {', and '.join(reasons)}. ", aside(f"{wrote}.")))
    return join(*told) or tag("div", f"{str(value).capitalize()}.")
