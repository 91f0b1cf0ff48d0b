"""The views of the records that all systems share, and of what is asked of the graph about them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from rdflib import URIRef

from kgwb import flow
from kgwb.kg.text import local_name
from kgwb.show import explain
from kgwb.show.alignment import aligned
from kgwb.show.html import (
    MOST_ROWS,
    Html,
    aside,
    bar,
    button,
    count,
    div,
    fold,
    join,
    note,
    safe,
    short,
    span,
    state_sign,
    table,
    tag,
)
from kgwb.show.tell import MOST_LINE, because, view
from kgwb.show.terms import (
    Around,
    candidate_line,
    curie,
    readable,
    sparql,
    supporting,
    term,
    triples,
)

DEGREE_CAP = 1_000
"""Degrees are counted up to this many."""
MOST_ANSWERS = 12
"""Values of an answer whose triples are shown at once."""


# --- rows of which one is taken


def choice_rows(
    lines: Sequence[object], taken: int, nothing: str, around: Around, *, ends: Sequence[object] = ()
) -> Html:
    """A row for each thing one can choose from; the one taken is marked, a click on another takes it."""
    rows = []
    for place, contents in [*enumerate(lines), (-1, span("soft", nothing))]:
        here = place == taken
        click = span("btn ghost", "take this one" if place >= 0 else "take none") if around.live else ""
        sign = state_sign("ok", "taken") if here else click
        end = ends[place] if ends and place >= 0 else ""
        parts = (span("mark"), span("grow", contents, end), span("take", sign))
        at = {"data_do": "take", "data_arg": place, "id": f"take-{place}"} if around.live else {}
        row = tag("button", *parts, class_="cand", type="button", aria_pressed=str(here).lower(), **at)
        rows.append(tag("li", row, class_="taken" if here else None))
    return tag("ol", *rows, class_="rows")


@view.register
def _(value: flow.Link, around: Around) -> Html:
    options = list(dict.fromkeys((*value.candidates, *((value.vertex,) if value.vertex else ()))))[:MOST_ROWS]
    taken = options.index(value.vertex) if value.vertex in options else -1
    rows = [candidate_line(one, around) for one in options]
    left = len(value.candidates) - len(options)
    more = div("band soft", f"and {left:,} more") if left > 0 else ""
    why = div("band", because(value.reason)) if value.reason else ""
    near = around.of(flow.Retrieved) or value
    nothing = "none of them: the graph does not have it"
    return join(
        choice_rows(rows, taken, nothing, around, ends=_degrees(options, around)),
        more,
        why,
        _among(value.entity, near, around),
    )


@view.register
def _(value: flow.Retrieved, around: Around) -> Html:
    ends = _degrees(value.candidates[:MOST_ROWS], around)
    rows = [
        tag(
            "li",
            div(
                "cand plain",
                span("num", place),
                span("grow", candidate_line(one, around), end),
                scores(one.score),
            ),
        )
        for place, (one, end) in enumerate(zip(value.candidates[:MOST_ROWS], ends, strict=True), 1)
    ]
    left = len(value.candidates) - MOST_ROWS
    of = f" of {value.found:,} found" if value.found > len(value.candidates) else ""
    head = div(
        "band", tag("b", f"{value.outcome}{of}"), span("soft", f" by {value.how}" if value.how else "")
    )
    sent = fold(aside("the search as it was sent"), span("id", short(value.query))) if value.query else ""
    return join(
        head,
        tag("ol", *rows, class_="rows"),
        div("band soft", f"and {left:,} more") if left > 0 else "",
        div("band", sent) if sent else "",
        _among(value.entity, value, around),
    )


def scores(share: float) -> Html:
    return span("take row", span("minibar", bar(share)), span("num", f"{share:.2f}"))


def _degrees(candidates: Iterable[flow.Candidate], around: Around) -> list[Html]:
    """How many triples each vertex has, once that was asked."""
    known = around.more.get("degrees", {})
    numbers = [known.get(one.iri) for one in candidates]
    return [
        span("under soft", f"degree {n:,}{'+' if n >= DEGREE_CAP else ''}") if n is not None else Html()
        for n in numbers
    ]


def _among(entity: str, asked: flow.Retrieved | flow.Link, around: Around) -> Html:
    """The questions about candidates: is this one among them, how well are they connected."""
    if not around.live:
        return Html()
    label = f"Is this among the candidates for “{entity}”?"
    typed = tag(
        "input", type="text", name="name", placeholder="a name or an IRI", aria_label=label, id="among"
    )
    degrees = button("Show degrees", "degrees") if asked.candidates and "degrees" not in around.more else ""
    form = tag(
        "form",
        tag("label", span("", label), typed, class_="f grow"),
        button("Look for it", "where"),
        degrees,
        class_="row ends controls",
        data_do="where",
    )
    return div("band stack", form, shown_of("where", around))


def shown_of(question: str, around: Around) -> Html:
    """What the graph said to a question, if it was asked."""
    return div("well", view(around.more[question], around)) if question in around.more else Html()


# --- queries


def query_block(
    number: int, query: str, around: Around, *, head: object = "", usable: bool = False, empty: bool = False
) -> Html:
    """A query as it reads; where the person may, to edit and run, and why it is empty if it is."""
    shown = sparql(query, around)
    if not around.live:
        return div("", head, shown)
    text = readable(query, around)
    asked = around.more.get(f"query {number}")
    empty = asked.empty if isinstance(asked, explain.Executed) else empty
    typed = tag(
        "textarea",
        text,
        name="sparql",
        rows=min(text.count("\n") + 1, 16),
        class_="mono",
        id=f"sparql-{number}",
        spellcheck="false",
        aria_label="SPARQL",
        data_rev=short(query, 40),
    )
    buttons = div(
        "row controls",
        button("Run query", "query", "run", arg=number),
        button("Use this query", "use", arg=number) if usable else "",
        button("Why is it empty?", "why", arg=number) if empty else "",
    )
    form = tag("form", typed, buttons, class_="stack tight", data_do="query", data_arg=number)
    return div(
        "",
        head,
        shown,
        fold(aside("edit and run"), form, key=f"edit-{number}", unfolded=empty),
        shown_of(f"query {number}", around),
        shown_of(f"why {number}", around),
    )


# --- answers


@view.register
def _(value: flow.Answer, around: Around) -> Html:
    return div("body stack", *answer_parts(value, around))


def answer_parts(value: flow.Answer, around: Around) -> list[Html]:
    """What an answer stands on, or why there is none, and the queries it came from."""
    around = told_apart(value, around.named(value.names))
    parts = [note(flow.UNGROUNDED, kind="bad")] if value.ungrounded else []
    if value.text:
        parts.append(div("b", short(value.text, MOST_LINE)))
    if not value.values:
        parts.append(note(f"The graph holds no answer: {value.reason.removeprefix('not in this graph: ')}"))
    shown = [_value(place, one, around) for place, one in enumerate(value.values[:MOST_ROWS], 1)]
    parts += shown[:MOST_ANSWERS]
    if shown[MOST_ANSWERS:]:
        parts.append(fold(aside(f"{len(shown) - MOST_ANSWERS} more"), *shown[MOST_ANSWERS:]))
    if len(value.values) > MOST_ROWS:
        parts.append(aside(f"and {len(value.values) - MOST_ROWS:,} more"))
    no = value.kind == "boolean" and value.labels == ("false",)
    blocks = [
        query_block(n, query, around, empty=no or not value.values) for n, query in enumerate(value.queries)
    ]
    if blocks:
        head = join("The SPARQL it came from ", aside(count(len(blocks), "query")))
        parts.append(fold(head, *blocks, key="queries", unfolded=around.live and not value.values))
    return parts


def _value(number: int, one: flow.Value, around: Around) -> Html:
    support = triples(one.support, around, [one.term]) if one.support else aside("no triple")
    alone = not any(str(end) == str(one.term) for triple in one.support for end in triple[::2])
    name = around.names.get(str(one.term), one.label)
    label = (
        div(
            "row",
            tag("b", short(name)),
            curie(one.term, around)
            if isinstance(one.term, URIRef)
            else term(one.term, around)
            if str(one.term) != one.label
            else "",
        )
        if alone
        else ""
    )
    return div("row top", span("num", number), div("grow stack tight", label, support))


def told_apart(answer: flow.Answer, around: Around) -> Around:
    """The names, with the local name beside it where an answer shows several vertices of one name."""
    labels = {str(one.term): one.label for one in answer.values[:MOST_ROWS] if isinstance(one.term, URIRef)}
    alike: dict[str, list[str]] = {}
    for iri in sorted({*map(str, supporting(answer)), *labels}):
        alike.setdefault(around.names.get(iri) or labels.get(iri) or local_name(iri), []).append(iri)
    names = dict(around.names)
    for name, same in alike.items():
        tails = [re.split(r"[/#:]", iri.rstrip("/#:"))[-1] for iri in same]
        beside = tails if len(set(tails)) == len(same) else same
        for iri, tail in zip(same, beside, strict=True):
            names[iri] = f"{short(name)} ({tail})" if same[1:] else name
    return replace(around, names=names)


# --- texts


def word_changes(before: str, after: str) -> tuple[Html, Html]:
    """Two texts, each with the words marked that the other has not."""
    old, new = (re.findall(r"\w+|\W", text) for text in (before, after))
    sides: tuple[list[Html], list[Html]] = ([], [])
    for part in aligned(old, new):
        for side, mark, words in ((0, "del", old[part.first]), (1, "ins", new[part.second])):
            text = "".join(words)
            sides[side].append(safe(text) if part.same or not text else tag(mark, text))
    return join(*sides[0]), join(*sides[1])


def marked(text: str, words: Iterable[str]) -> Html:
    """A text with some of its words marked, letter case aside."""
    wanted = "|".join(re.escape(word) for word in words if word.strip())
    if not wanted:
        return safe(text)
    parts = re.split(rf"(?<!\w)({wanted})(?!\w)", text, flags=re.IGNORECASE)
    return join(
        *(
            tag("mark", part, class_="filled") if number % 2 else safe(part)
            for number, part in enumerate(parts)
        )
    )


# --- what was asked of the graph


@view.register
def _(value: explain.Whereabouts, around: Around) -> Html:
    return join(*(div("", line) for line in str(value).splitlines()))


@view.register
def _(value: explain.Examples, around: Around) -> Html:
    if not value.triples:
        return div("", "no triple in the graph has this predicate")
    where = "from anywhere in the graph: the linked vertices have none" if value.anywhere else ""
    return join(triples(value.triples, around.named(value.names)), aside(where) if where else "")


@view.register
def _(value: explain.Executed, around: Around) -> Html:
    if value.truth is not None:
        return div("", tag("b", str(value.truth).lower()), aside(" (ASK)"))
    around, found = around.named(value.names), value.rows
    rows = [["" if one is None else term(one, around) for one in row] for row in found.rows[:MOST_ROWS]]
    cut = "; the result was cut there by the row limit" if found.cut else ""
    heads = [f"?{variable}" for variable in found.variables]
    return join(div("", tag("b", count(len(found.rows), "row")), cut), table(heads, rows, of=len(found.rows)))


@view.register
def _(value: explain.Blocking, around: Around) -> Html:
    """Why a query has no rows, and by its part, which steps wrote it."""
    if not value.empty:
        return div("", "This query has rows, or is true.")
    shown = []
    for part in dict.fromkeys((*value.culprits, *value.unmatched)):
        reasons = ["without it the query has rows"] if part in value.culprits else []
        reasons += ["nothing in the graph matches it"] if part in value.unmatched else []
        authors = explain.author(around.steps, part)
        wrote = "; ".join(one.told(around.names) for one in authors) or "no step of this run wrote it"
        head = tag("b", short(explain.part_text(part, around.names)))
        shown.append(div("", head, f": {', and '.join(reasons)}. ", aside(f"{wrote}.")))
    return join(*shown) if shown else div("", f"{str(value).capitalize()}.")
