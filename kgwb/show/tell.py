"""A record as a person reads it, by the types of its fields: as text, as HTML, and field by field to compare.

``str(record)`` is its line and ``outcome`` its few words. A record that deserves a picture of its own has a
view, registered by ``view`` in the module of its system.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from functools import singledispatch
from typing import Any

from rdflib import BNode, Literal, URIRef

from kgwb.flow import Answer, Value, marks_of
from kgwb.run.record import Step
from kgwb.show.html import (
    Html,
    clean,
    count,
    div,
    first_of,
    join,
    preformatted,
    scored,
    short,
    span,
    spoken,
    table,
    tag,
)
from kgwb.show.terms import Around, curie, sparql, term, triple_text

BEST, VALUES, TRIPLES = 3, 5, 3
"""Parts, values and triples of a value that text shows; HTML shows more."""
MOST_LINE = 2_000
"""Letters of the line of a record."""
LEADS = {"how": "by", "subquestion": "to answer", "words": "says"}
"""What stands before an explanation, by its field; else "because"."""


def line(value: Any) -> str:
    """The one line that says what a record is."""
    if isinstance(value, list | tuple):
        return count(len(value), "item")
    return type(value).__name__ if _wordless(value) else clean(short(str(value), MOST_LINE))


def _wordless(value: Any) -> bool:
    """Whether a record has no line of its own, so that its fields stand for it."""
    return is_dataclass(value) and type(value).__str__ is object.__str__


def _is_table(part: Any) -> bool:
    return isinstance(part, tuple) and bool(part) and is_dataclass(part[0])


def outcome(step: Step) -> str:
    """What a step came to, in at most a few words."""
    if not step.done:
        return clean(f"failed: {step.error}") if step.error else "not done"
    return clean(short(str(getattr(step.output, "outcome", None) or line(step.output)), 80))


def shown_fields(value: Any) -> list[tuple[str, Any, str]]:
    """The fields of a record that are shown: name, value and mark."""
    if not is_dataclass(value) or isinstance(value, type):
        return []
    return [
        (name, getattr(value, name), mark) for name, mark in marks_of(type(value)).items() if mark != "hidden"
    ]


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

    def stands_on(one: Value) -> str:
        support = first_of(one.support, TRIPLES, lambda triple: triple_text(triple, known))
        return clean(f"{short(one.label)}: {'; '.join(support) or 'no triple'}")

    return [line(value), *first_of(value.values, VALUES, stands_on)]


def compared(value: Any, names: Mapping[str, str] | None = None) -> list[str]:
    """The lines of a record and of all its parts, nothing left out, to set beside those of another."""
    if isinstance(value, list | tuple):
        return [text for part in value for text in compared(part, names)]
    if isinstance(value, Answer):
        return [line(value), *(clean(triple_text(triple, names or {})) for triple in value.support)]
    return [part_line(value), *_parts(value, None)]


def _parts(value: Any, most: int | None) -> Iterator[str]:
    """A line for each part of a record; of a table at most so many."""
    for name, part, mark in shown_fields(value):
        if mark == "explanation":
            if part:
                yield f"{LEADS.get(name, 'because')}: {clean(short(part, MOST_LINE))}"
        elif _is_table(part) and most is None:
            yield from compared(part)
        elif _wordless(value):
            yield f"{name}: {line(part)}"
        elif _is_table(part) and str(part[0]) not in str(value):
            yield from first_of(part, most or len(part), part_line)


def part_line(value: Any) -> str:
    """The line of a record that stands among others, with its score before it."""
    scores = (f"{part:.2f}" for _, part, mark in shown_fields(value) if mark == "score")
    return " ".join([*scores, line(value)])


def says_more(value: Any) -> bool:
    """Whether a record has more to show than its line."""
    return view.dispatch(type(value)) is not view.dispatch(object) or len(lines(value)) > 1


# --- HTML


@singledispatch
def view(value: Any, around: Around) -> Html:
    """A record as HTML, by the types of its fields; register a view for a type that deserves its own."""
    if isinstance(value, list | tuple):
        return div("body", parts_table(value, around)) if value else div("body soft", "nothing")
    if not is_dataclass(value):
        text = preformatted(value) if "\n" in str(value) else tag("bdi", short(str(value), MOST_LINE))
        return div("body", text)
    pieces = [div("b", line(value))]
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
            pieces.append(div("", span("soft", f"{spoken(name)} "), cell(part, mark, around)))
    return div("body stack", *pieces)


def because(text: str, lead: str = "because") -> Html:
    """An explanation after what it is."""
    return div("why", span("soft", f"{lead} "), tag("bdi", text)) if text else Html()


def parts_table(parts: Sequence[Any], around: Around) -> Html:
    """Records of one form as a table, a column for each field that any of them has."""
    if not is_dataclass(parts[0]):
        return table((), [(cell(part, "", around),) for part in parts])
    marks = {name: mark for name, _, mark in shown_fields(parts[0])}
    used = [name for name in marks if any(getattr(part, name, None) not in ("", (), None) for part in parts)]
    heads = ["IRI" if name == "iri" else spoken(name) for name in used]
    return table(
        heads, [[cell(getattr(part, name, ""), marks[name], around) for name in used] for part in parts]
    )


def cell(part: Any, mark: str, around: Around) -> Html:
    """A value in a table or beside its name."""
    if mark == "score":
        return scored(part)
    if mark == "sparql":
        return sparql(part, around)
    if isinstance(part, URIRef):
        return curie(part, around)
    if isinstance(part, Literal | BNode):
        return term(part, around)
    if isinstance(part, list | tuple):
        links = part and isinstance(part[0], URIRef)
        return (
            join(*(div("", curie(one, around)) for one in part))
            if links
            else _plain(", ".join(map(line, part)))
        )
    return _plain(str(part) if part is not None else "")


def _plain(text: str) -> Html:
    return tag("bdi", short(text))
