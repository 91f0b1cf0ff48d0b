"""A record as a person reads it, by the types of its fields: as text, as HTML, and field by field to compare.

``str(record)`` is its line and ``outcome`` its few words. A record that deserves a picture of its own has a
view, registered by ``view`` in the module of its system.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import is_dataclass, replace
from functools import singledispatch
from typing import Any

from rdflib import BNode, Literal, URIRef

from kgwb import flow
from kgwb.flow import Answer, Value, marks_of
from kgwb.kg.text import local_name
from kgwb.run.record import Step
from kgwb.show import html as h
from kgwb.show.html import Html
from kgwb.show.terms import (
    MOST_SUPPORT,
    Around,
    candidate_line,
    curie,
    readable,
    sparql,
    term,
    triple_text,
    triples,
)
from kgwb.text import and_more, display_name, first_items, pluralize, shorten, single_line

BEST, VALUES, TRIPLES = 3, 5, 3
"""Parts, values and triples of a value that text shows; HTML shows more."""
MOST_LINE = 2_000
"""Letters of the line of a record."""
DEGREE_CAP = 1_000
"""Degrees are counted up to this many."""
MOST_ANSWERS = 12
"""Values of an answer whose triples are shown at once."""
LEADS = {"how": "by", "subquestion": "to answer", "words": "says"}
"""What stands before an explanation, by its field; else "because"."""


def line(value: Any) -> str:
    """The one line that shows what a record is."""
    if isinstance(value, list | tuple):
        return pluralize(len(value), "item")
    return type(value).__name__ if _wordless(value) else single_line(shorten(str(value), MOST_LINE))


def _wordless(value: Any) -> bool:
    """Whether a record has no line of its own, so that its fields stand for it."""
    return is_dataclass(value) and type(value).__str__ is object.__str__


def _is_table(part: Any) -> bool:
    return isinstance(part, tuple) and bool(part) and is_dataclass(part[0])


def outcome(step: Step) -> str:
    """What a step came to, in at most a few words."""
    if not step.done:
        return single_line(f"failed: {step.error}") if step.error else "not done"
    return single_line(shorten(str(getattr(step.output, "outcome", None) or line(step.output)), 80))


def shown_fields(value: Any) -> list[tuple[str, Any, str]]:
    """The fields of a record that are shown: name, value and mark."""
    if not is_dataclass(value) or isinstance(value, type):
        return []
    marks = marks_of(type(value)).items()
    return [(name, getattr(value, name), mark) for name, mark in marks if mark != "hidden"]


def records_in(value: Any) -> Iterator[Any]:
    """A record and the records within it; the values of an answer are not looked into."""
    if isinstance(value, tuple):
        for part in value:
            yield from records_in(part)
    elif is_dataclass(value) and not isinstance(value, type | Value):
        yield value
        for name in marks_of(type(value)):
            yield from records_in(getattr(value, name))


def lines(value: Any, names: Mapping[str, str] | None = None) -> list[str]:
    """The line of a record, and a line for each of its parts that text has room for."""
    if isinstance(value, list | tuple):
        return [line(value), *map(line, value)]
    if not isinstance(value, Answer):
        return [line(value), *_parts(value, BEST)]
    known = {**{str(iri): name for iri, name in value.names}, **(names or {})}

    def stands_on(item: Value) -> str:
        support = first_items(item.support, TRIPLES, lambda triple: triple_text(triple, known))
        return single_line(f"{shorten(item.label)}: {'; '.join(support) or 'no triple'}")

    return [line(value), *first_items(value.values, VALUES, stands_on)]


def compared(value: Any, names: Mapping[str, str] | None = None) -> list[str]:
    """The lines of a record and of all its parts, nothing left out, to set beside those of another."""
    if isinstance(value, list | tuple):
        return [text for part in value for text in compared(part, names)]
    if isinstance(value, Answer):
        return [
            line(value),
            *(single_line(triple_text(triple, names or {})) for triple in value.support),
        ]
    return [part_line(value), *_parts(value, None)]


def _parts(value: Any, most: int | None) -> Iterator[str]:
    """A line for each part of a record; of a table at most so many."""
    for name, part, mark in shown_fields(value):
        if mark == "explanation":
            if part:
                yield f"{LEADS.get(name, 'because')}: {single_line(shorten(part, MOST_LINE))}"
        elif _is_table(part) and most is None:
            yield from compared(part)
        elif _wordless(value):
            yield f"{name}: {line(part)}"
        elif _is_table(part) and str(part[0]) not in str(value):
            yield from first_items(part, most or len(part), part_line)


def part_line(value: Any) -> str:
    """The line of a record that stands among others, with its score before it."""
    scores = (f"{part:.2f}" for _, part, mark in shown_fields(value) if mark == "score")
    return " ".join([*scores, line(value)])


def says_more(value: Any) -> bool:
    """Whether a record has more to show than its line."""
    return view.dispatch(type(value)) is not view.dispatch(object) or len(lines(value)) > 1


@singledispatch
def view(value: Any, around: Around) -> Html:
    """A record as HTML, by the types of its fields; register a view for a type that deserves its own."""
    if isinstance(value, list | tuple):
        return h.div("body", parts_table(value, around)) if value else h.div("body soft", "nothing")
    if not is_dataclass(value):
        text = (
            h.preformatted(value)
            if "\n" in str(value)
            else h.tag("bdi", shorten(str(value), MOST_LINE))
        )
        return h.div("body", text)
    pieces = [h.div("b", line(value))]
    for name, part, mark in shown_fields(value):
        if part in ("", (), None) or str(part) == str(value):
            continue
        if mark == "explanation":
            pieces.append(because(part, LEADS.get(name, "because")))
        elif _is_table(part):
            pieces.append(parts_table(part, around))
        elif mark == "sparql":
            pieces.append(sparql(part, around))
        elif is_dataclass(part) or isinstance(part, tuple) or _wordless(value) or mark == "score":
            pieces.append(
                h.div("", h.span("soft", f"{display_name(name)} "), cell(part, mark, around))
            )
    return h.div("body stack", *pieces)


def because(text: str, lead: str = "because") -> Html:
    """An explanation after what it is."""
    return h.div("why", h.span("soft", f"{lead} "), h.tag("bdi", text)) if text else Html()


def parts_table(parts: Sequence[Any], around: Around) -> Html:
    """Records of one form as a table, a column for each field that any of them has."""
    if not is_dataclass(parts[0]):
        return h.table((), [(cell(part, "", around),) for part in parts])
    marks = {name: mark for name, _, mark in shown_fields(parts[0])}
    used = [
        name
        for name in marks
        if any(getattr(part, name, None) not in ("", (), None) for part in parts)
    ]
    heads = ["IRI" if name == "iri" else display_name(name) for name in used]
    rows = [[cell(getattr(part, name, ""), marks[name], around) for name in used] for part in parts]
    return h.table(heads, rows)


def cell(part: Any, mark: str, around: Around) -> Html:
    """A value in a table or beside its name."""
    if mark == "score":
        return h.scored(part)
    if mark == "sparql":
        return sparql(part, around)
    if isinstance(part, URIRef):
        return curie(part, around)
    if isinstance(part, Literal | BNode):
        return term(part, around)
    if isinstance(part, list | tuple):
        if part and isinstance(part[0], URIRef):
            return h.join(*(h.div("", curie(iri, around)) for iri in part))
        part = ", ".join(map(line, part))
    return h.tag("bdi", shorten(str(part)) if part is not None else "")


def choice_rows(lines: Sequence[object], taken: int, nothing: str, around: Around) -> Html:
    """A row for each thing one can choose from; the one taken is marked, a click on another takes it."""
    rows = []
    for place, contents in [*enumerate(lines), (-1, h.span("soft", nothing))]:
        here = place == taken
        click = (
            h.span("btn ghost", "take this one" if place >= 0 else "take none")
            if around.live
            else ""
        )
        sign = h.span("take", h.state_sign("ok", "taken") if here else click)
        sent = {"data_do": "take", "data_arg": place, "id": f"take-{place}"} if around.live else {}
        state: dict[str, object] = {"type": "button", "aria_pressed": str(here).lower(), **sent}
        row = h.tag(
            "button", h.span("mark"), h.span("grow", contents), sign, class_="cand", **state
        )
        rows.append(h.tag("li", row, class_="taken" if here else None))
    return h.tag("ol", *rows, class_="rows")


@view.register
def _(value: flow.Link, around: Around) -> Html:
    vertices = (value.vertex,) if value.vertex else ()
    options = list(dict.fromkeys((*value.candidates, *vertices)))[: h.MOST_ROWS]
    taken = options.index(value.vertex) if value.vertex in options else -1
    rows = [_candidate(option, around) for option in options]
    return h.join(
        choice_rows(rows, taken, "none of them: the graph does not have it", around),
        _cut(len(value.candidates) - len(options)),
        h.div("band", because(value.reason)) if value.reason else "",
        _among(value, around),
    )


@view.register
def _(value: flow.Retrieved, around: Around) -> Html:
    rows = []
    for place, candidate in enumerate(value.candidates[: h.MOST_ROWS], 1):
        bar, number = (
            h.span("minibar", h.bar(candidate.score)),
            h.span("num", f"{candidate.score:.2f}"),
        )
        score = h.span("take row", bar, number)
        line = h.span("grow", _candidate(candidate, around))
        rows.append(h.tag("li", h.div("cand plain", h.span("num", place), line, score)))
    how = h.span("soft", f" by {value.how}" if value.how else "")
    sent = h.fold(h.aside("the search as it was sent"), h.span("id", shorten(value.query)))
    return h.join(
        h.div("band", h.tag("b", str(value)), how),
        h.tag("ol", *rows, class_="rows"),
        _cut(len(value.candidates) - h.MOST_ROWS),
        h.div("band", sent) if value.query else "",
        _among(value, around),
    )


def _cut(number: int) -> Html:
    return h.div("band soft", and_more(number)) if number > 0 else Html()


def _candidate(candidate: flow.Candidate, around: Around) -> Html:
    """A vertex, and how many triples it has, once that was asked."""
    degree = around.more.get("degrees", {}).get(candidate.iri)
    shown = "" if degree is None else f"degree {degree:,}{'+' if degree >= DEGREE_CAP else ''}"
    return h.join(candidate_line(candidate, around), h.span("under soft", shown) if shown else "")


def _among(asked: flow.Retrieved | flow.Link, around: Around) -> Html:
    """The questions about candidates: is this one among them, how well are they connected."""
    if not around.live:
        return Html()
    label = f"Is this among the candidates for “{asked.entity}”?"
    named = {"type": "text", "name": "name", "placeholder": "a name or an IRI", "id": "among"}
    typed = h.tag(
        "label", h.span("", label), h.tag("input", **named, aria_label=label), class_="f grow"
    )
    look = h.button("Look for it", "where")
    degrees = (
        h.button("Show degrees", "degrees")
        if asked.candidates and "degrees" not in around.more
        else ""
    )
    form = h.tag("form", typed, look, degrees, class_="row ends controls", data_do="where")
    return h.div("band stack", form, shown_of("where", around))


def shown_of(question: str, around: Around) -> Html:
    """What the graph replied to a question, if it was asked: a record, or some lines."""
    if question not in around.more:
        return Html()
    reply = around.more[question]
    lines = h.join(*(h.div("", text) for text in reply)) if isinstance(reply, list) else None
    return h.div("well", lines or view(reply, around))


def query_block(
    number: int,
    query: str,
    around: Around,
    *,
    head: object = "",
    usable: bool = False,
    empty: bool = False,
) -> Html:
    """A query as it reads; where the person may, to edit and run, and why it is empty if it is."""
    shown = sparql(query, around)
    if not around.live:
        return h.div("", head, shown)
    text = readable(query, around)
    executed, key = around.more.get(f"query {number}"), f"{'empty' if empty else 'edit'}-{number}"
    unfolded, empty = empty, executed.empty if executed is not None else empty
    named = {"name": "sparql", "rows": min(text.count("\n") + 1, 16), "id": f"sparql-{number}"}
    kept = {"spellcheck": "false", "aria_label": "SPARQL", "data_rev": shorten(query, 40)}
    buttons = (
        h.button("Run query", "query", "run", arg=number),
        h.button("Use this query", "use", arg=number) if usable else "",
        h.button("Why is it empty?", "why", arg=number) if empty else "",
    )
    typed = h.tag("textarea", text, class_="mono", **named, **kept)
    sent = {"data_do": "query", "data_arg": number}
    form = h.tag("form", typed, h.div("row controls", *buttons), class_="stack tight", **sent)
    editor = h.fold(h.aside("edit and run"), form, key=key, unfolded=unfolded)
    answers = (shown_of(f"{question} {number}", around) for question in ("query", "why"))
    return h.div(
        "", head, h.div("edited", editor, shown), *answers
    )  # open, it is in the text's place


@view.register
def _(value: flow.Answer, around: Around) -> Html:
    return h.div("body stack", *answer_parts(value, around))


def answer_parts(value: flow.Answer, around: Around) -> list[Html]:
    """What an answer stands on, or why there is none, and the queries it came from."""
    around = _told_apart(value, around.named(value.names))
    parts = [h.note(flow.UNGROUNDED, kind="bad")] if value.ungrounded else []
    if value.text:
        parts.append(h.div("b", shorten(value.text, MOST_LINE)))
    if not value.values:
        why = f"The graph holds no answer: {value.reason.removeprefix('not in this graph: ')}"
        parts.append(h.note(value.reason if value.reason.startswith(flow.CANNOT_EXPRESS) else why))
    if value.columns:
        first = value.values[: h.MOST_ROWS]
        rows = [["" if c is None else term(c, around) for c in item.row] for item in first]
        parts.append(h.table(value.columns, rows, of=len(value.values)))
    shown = []
    for number, item in enumerate(value.values[: h.MOST_ROWS], 1):
        support = (
            triples(item.support, around, [item.term]) if item.support else h.aside("no triple")
        )
        label = Html()  # the triples show the name of an answer that is an end of them
        if not any(str(end) == str(item.term) for triple in item.support for end in triple[::2]):
            exact = term(item.term, around) if str(item.term) != item.label else ""
            exact = curie(item.term, around) if isinstance(item.term, URIRef) else exact
            name = item.label if item.row else around.names.get(str(item.term), item.label)
            label = h.div("row", h.tag("b", shorten(name)), exact)
        shown.append(
            h.div("row top", h.span("num", number), h.div("grow stack tight", label, support))
        )
    if value.columns:
        parts.append(h.fold(h.aside("the triples that each row stands on"), *shown, key="support"))
        shown = []
    parts += shown[:MOST_ANSWERS]
    if shown[MOST_ANSWERS:]:
        parts.append(h.fold(h.aside(f"{len(shown) - MOST_ANSWERS} more"), *shown[MOST_ANSWERS:]))
    parts.append(h.left_out(len(value.values) - h.MOST_ROWS))
    empty = not value.values or (value.kind == "boolean" and value.labels == ("false",))
    blocks = [query_block(n, query, around, empty=empty) for n, query in enumerate(value.queries)]
    if blocks:
        head = h.join("The SPARQL it came from ", h.aside(pluralize(len(blocks), "query")))
        # Another key: a page keeps a fold as the person left it, and why it is empty must be seen.
        key, unfolded = ("queries", False) if value.values else ("empty", around.live)
        parts.append(h.fold(head, *blocks, key=key, unfolded=unfolded))
    return parts


def _told_apart(answer: flow.Answer, around: Around) -> Around:
    """The names, with the local name beside it where an answer shows several vertices of one name."""
    vertices = (value for value in answer.values[: h.MOST_ROWS] if isinstance(value.term, URIRef))
    labels = {str(value.term): value.label for value in vertices}
    alike: dict[str, list[str]] = {}
    support = (
        triple for value in answer.values[: h.MOST_ROWS] for triple in value.support[:MOST_SUPPORT]
    )
    iris = {str(term) for triple in support for term in triple if isinstance(term, URIRef)}
    for iri in sorted({*iris, *labels}):
        alike.setdefault(around.names.get(iri) or labels.get(iri) or local_name(iri), []).append(
            iri
        )
    names = dict(around.names)
    for name, same in alike.items():
        tails = [re.split(r"[/#:]", iri.rstrip("/#:"))[-1] for iri in same]
        beside = tails if len(set(tails)) == len(same) else same
        for iri, tail in zip(same, beside, strict=True):
            names[iri] = f"{shorten(name)} ({tail})" if same[1:] else name
    return replace(around, names=names)
