"""A record as a person reads it, by the types of its fields: as text, as HTML, and field by field to compare.

``str(record)`` is its line and ``outcome`` its few words. A record that deserves a picture of its own has a
view, registered by ``view`` in the module of its system.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass
from functools import singledispatch
from typing import Any

from rdflib import BNode, Literal, URIRef

from kgwb.flow import Answer, marks_of
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
    if is_dataclass(value) and type(value).__str__ is object.__str__:
        return type(value).__name__
    return clean(short(str(value), MOST_LINE))


def outcome(step: Step) -> str:
    """What a step came to, in at most a few words."""
    if not step.done:
        return clean(f"failed: {step.error}") if step.error else "not done"
    return clean(short(str(getattr(step.output, "outcome", None) or line(step.output)), 80))


def lines(value: Any, names: Mapping[str, str] | None = None) -> list[str]:
    """The line of a record, and a line for each of its parts that text has room for."""
    if isinstance(value, Answer):
        return [line(value), *_answer_lines(value, {**{str(i): n for i, n in value.names}, **(names or {})})]
    if isinstance(value, list | tuple):
        return [line(value), *map(line, value)]
    return [line(value), *(text for name, mark in _shown(value) for text in _part_lines(value, name, mark))]


def _part_lines(value: Any, name: str, mark: str) -> list[str]:
    part = getattr(value, name)
    if mark == "explanation":
        lead = LEADS.get(name, "because")
        return [f"{lead}: {clean(short(part, MOST_LINE))}"] if part else []
    if is_dataclass(value) and type(value).__str__ is object.__str__:
        return [f"{name}: {line(part)}"]
    if isinstance(part, tuple) and part and is_dataclass(part[0]) and str(part[0]) not in str(value):
        return first_of(part, BEST, part_line)
    return []


def part_line(value: Any) -> str:
    """The line of a record that stands among others, with its score before it."""
    scores = [getattr(value, name) for name, mark in _shown(value) if mark == "score"]
    return " ".join([*(f"{score:.2f}" for score in scores), line(value)])


def _answer_lines(answer: Answer, names: Mapping[str, str]) -> list[str]:
    def stands_on(value: Any) -> str:
        support = first_of(value.support, TRIPLES, lambda triple: triple_text(triple, names))
        return clean(f"{short(value.label)}: {'; '.join(support) or 'no triple'}")

    return first_of(answer.values, VALUES, stands_on)


def fields_of(value: Any) -> list[tuple[str, Any]]:
    """The fields of a record that are shown, by name."""
    return [(name, getattr(value, name)) for name, _ in _shown(value)]


def _shown(value: Any) -> list[tuple[str, str]]:
    if not is_dataclass(value) or isinstance(value, type):
        return []
    return [(name, mark) for name, mark in marks_of(value.__class__).items() if mark != "hidden"]


# --- HTML


@singledispatch
def view(value: Any, around: Around) -> Html:
    """A record as HTML; register a view of its own for a type that deserves one."""
    return generic(value, around)


def generic(value: Any, around: Around) -> Html:
    """A record by the types of its fields: its line, then tables, queries and explanations."""
    if isinstance(value, list | tuple):
        return div("body", parts_table(value, around)) if value else div("body soft", "nothing")
    if not is_dataclass(value):
        return div(
            "body", preformatted(value) if "\n" in str(value) else tag("bdi", short(str(value), MOST_LINE))
        )
    marks = marks_of(value.__class__)
    pieces = [div("b", line(value))]
    for name, part in fields_of(value):
        if part in ("", (), None) or str(part) == str(value):
            continue
        if marks[name] == "explanation":
            pieces.append(because(part, LEADS.get(name, "because")))
        elif isinstance(part, tuple) and is_dataclass(part[0]):
            pieces.append(parts_table(part, around))
        elif marks[name] == "sparql" or (name == "queries" and isinstance(part, tuple)):
            pieces += [sparql(query, around) for query in ([part] if isinstance(part, str) else part)]
        elif is_dataclass(part) or isinstance(part, tuple):
            pieces.append(div("", span("soft", f"{spoken(name)} "), cell(part, "", around)))
        elif type(value).__str__ is object.__str__ or marks[name] == "score":
            pieces.append(div("", span("soft", f"{spoken(name)} "), cell(part, marks[name], around)))
    return div("body stack", *pieces)


def because(text: str, lead: str = "because") -> Html:
    """An explanation after what it is."""
    return div("why", span("soft", f"{lead} "), tag("bdi", text)) if text else Html()


def parts_table(parts: Sequence[Any], around: Around) -> Html:
    """Records of one form as a table, a column for each field that any of them has."""
    if not is_dataclass(parts[0]):
        return table((), [(cell(part, "", around),) for part in parts])
    marks = {name: mark for name, mark in marks_of(parts[0].__class__).items() if mark != "hidden"}
    used = [name for name in marks if any(getattr(part, name, None) not in ("", (), None) for part in parts)]
    heads = ["IRI" if name == "iri" else spoken(name) for name in used]
    rows = [[cell(getattr(part, name, ""), marks[name], around) for name in used] for part in parts]
    return table(heads, rows)


def cell(part: Any, mark: str, around: Around) -> Html:  # noqa: PLR0911  # a case a type
    """A value in a table or beside its name."""
    if mark == "score":
        return scored(part)
    if mark == "sparql":
        return sparql(part, around)
    if isinstance(part, URIRef):
        return curie(part, around)
    if isinstance(part, Literal | BNode):
        return term(part, around)
    if isinstance(part, tuple) and part and isinstance(part[0], URIRef):
        return join(*(div("", curie(one, around)) for one in part))
    if isinstance(part, list | tuple):
        return tag("bdi", short(", ".join(map(line, part))))
    return tag("bdi", short(str(part)) if part is not None else "")


def says_more(value: Any) -> bool:
    """Whether a record has more to show than its line."""
    return view.dispatch(type(value)) is not view.dispatch(object) or len(lines(value)) > 1


def compared(value: Any, names: Mapping[str, str] | None = None) -> list[str]:
    """The lines of a record and of all its parts, nothing left out, to set beside those of another."""
    if isinstance(value, list | tuple):
        return [text for part in value for text in compared(part, names)]
    if isinstance(value, Answer):
        return [line(value), *(clean(triple_text(triple, names or {})) for triple in value.support)]
    made = [part_line(value)]
    for name, mark in _shown(value):
        part = getattr(value, name)
        if mark == "explanation" and part:
            made.append(f"{LEADS.get(name, 'because')}: {clean(part)}")
        elif isinstance(part, tuple) and part and is_dataclass(part[0]):
            made += [text for one in part for text in compared(one, names)]
    return made
