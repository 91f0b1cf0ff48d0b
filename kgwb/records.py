"""Records: what agents pass to each other, described once by the types of their fields.

A record is a frozen dataclass with slots, below ``Record``. Its collections are tuples, and its RDF
terms are rdflib terms. Because every field has a type, a record is saved, compared, shown and edited
without further code. It has three renderings: ``str(record)`` is one line, ``summary()`` is text of
several lines for a terminal, a log or a comparison, and HTML is made by ``kgwb.show`` or by a view
of its system.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import lru_cache, partial
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias, TypeVar, get_type_hints

from pydantic import GetCoreSchemaHandler, TypeAdapter
from pydantic_core import CoreSchema, core_schema

from kgwb import old_names
from kgwb.terms import DisplayNames, Term, Triple
from kgwb.text import first_items, pluralize, shorten, single_line

T = TypeVar("T")
MAX_LINE_CHARS = 2_000
"""Characters of one line of a record."""
MAX_SUMMARY_PARTS = 3
"""Parts of a record that its summary shows, unless told otherwise."""
NO_NAMES: DisplayNames = {}

FieldMarkName = Literal["explanation", "score", "sparql", "hidden"]


@dataclass(frozen=True, slots=True)
class FieldMark:
    """What a field of a record means to a person, beyond its type."""

    name: FieldMarkName


Explanation: TypeAlias = Annotated[str, FieldMark("explanation")]
"""Why something was decided. It is shown, but two records that differ in it decide the same."""
Score: TypeAlias = Annotated[float, FieldMark("score")]
"""A number from 0 to 1, shown as a bar. Two records that differ in it decide the same."""
Sparql: TypeAlias = Annotated[str, FieldMark("sparql")]
"""A query, shown highlighted. A person edits it by editing the record that it stands in."""
Hidden = Annotated[T, FieldMark("hidden")]
"""A value that follows from other fields, and is not shown by itself."""

EXPLANATION_PREFIXES = {"how": "by", "subquestion": "to answer", "words": "says"}
"""The words before an explanation, by the name of its field; before any other "because"."""

RoleKind = Literal["linked", "unknown", "reached", "answer", "support", "relation", "neighbour"]
ROLE_TEXTS: Mapping[RoleKind, str] = {
    "linked": "linked to “{}”",
    "unknown": "bound to {}",
    "reached": "reached by “{}”",
    "answer": "answer",
    "support": "support",
    "relation": "stands for “{}”",
    "neighbour": "found by expanding",
}


@dataclass(frozen=True, slots=True)
class Role:
    """The role that a term or a triple plays in a run, as the subgraph of the run shows it."""

    kind: RoleKind
    detail: str = ""
    """The mention that is linked, the unknown that is bound, or the relation that is meant."""

    def __str__(self) -> str:
        return ROLE_TEXTS[self.kind].format(self.detail)


QueryPartKind = Literal["vertex", "predicate", "filters"]


class QueryPart(NamedTuple):
    """A part of a SPARQL query that the output of a step decided."""

    kind: QueryPartKind
    text: str
    """The term in N-Triples form, or the text of the FILTERs."""


class Record:
    """Base of the records that agents pass to each other.

    The methods below may be overridden. What they return here is right for most records.
    """

    __slots__: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return the record in one line: the text of its first field."""
        first, *_ = fields(self)  # type: ignore[arg-type]  # subclasses are dataclasses
        return str(getattr(self, first.name))

    def summary(
        self, names: DisplayNames = NO_NAMES, *, limit: int | None = MAX_SUMMARY_PARTS
    ) -> str:
        """Return the record as lines of text: the line of ``str()``, then its parts.

        ``names`` are display names by IRI. At most ``limit`` parts of each kind are listed; None
        lists all, and the parts of these parts.
        """
        return summarize_fields(self, names, limit=limit)

    def roles(self) -> Iterable[tuple[Term | Triple, Role]]:
        """Return the terms and triples that this record gives a role in the subgraph."""
        return ()

    def relation_phrases(self) -> tuple[str, ...]:
        """Return the words of the question behind each triple pattern of the queries, in order."""
        return ()

    def query_parts(self) -> Iterable[QueryPart]:
        """Return the parts of later queries that this record decided."""
        return ()

    def missing_from_graph(self) -> str:
        """Return what this step looked for and the graph lacks, and what is nearest; or ""."""
        return ""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Let JSON data of earlier versions have the old names of fields."""
        schema = handler(source)
        record_class = f"{cls.__module__}.{cls.__name__}"
        if record_class in old_names.FIELDS:
            # The schema of the fields is changed in place: pydantic makes it once for each class,
            # and refers to it wherever the class is used.
            record_schema: Any = handler.resolve_ref_schema(schema)
            if record_schema["schema"]["type"] != "function-before":
                rename = partial(old_names.current_fields, record_class)
                record_schema["schema"] = core_schema.no_info_before_validator_function(
                    rename, record_schema["schema"]
                )
        return schema


# Fields


def field_marks(record_class: type) -> Mapping[str, str]:
    """Return the mark of each field of a record class by the field's name; "" for none."""
    hashable: Any = record_class
    return _field_marks(hashable)


@lru_cache(maxsize=256)
def _field_marks(record_class: Any) -> Mapping[str, str]:
    hints = get_type_hints(record_class, include_extras=True)
    marks = dict.fromkeys((field.name for field in fields(record_class)), "")
    for name in marks:
        for annotation in getattr(hints[name], "__metadata__", ()):
            if isinstance(annotation, FieldMark):
                marks[name] = annotation.name
                break
    return marks


class ShownField(NamedTuple):
    """A field of a record that people see."""

    name: str
    value: Any
    mark: str
    """The name of its FieldMark; "" for none."""


def shown_fields(value: Any) -> list[ShownField]:
    """Return the fields of a record that are shown; none for a value that is no record."""
    if not is_record(value):
        return []
    return [
        ShownField(name, getattr(value, name), mark)
        for name, mark in field_marks(type(value)).items()
        if mark != "hidden"
    ]


def is_record(value: Any) -> bool:
    """Return whether a value is an instance of a dataclass."""
    return is_dataclass(value) and not isinstance(value, type)


def has_custom_str(value: Any) -> bool:
    """Return whether ``str(value)`` says more than a dataclass does by itself."""
    own: Any = type(value).__str__
    return not is_record(value) or own is not object.__str__


def is_table(value: Any) -> bool:
    """Return whether a value is a tuple of records, which is shown as a table."""
    return isinstance(value, tuple) and bool(value) and is_dataclass(value[0])


def nested_records(value: Any) -> Iterator[Any]:
    """Yield a record, then the records in its fields, in theirs, and so on.

    Records of a class with ``searched_for_records = False`` are left out: the values of an answer
    may be thousands.
    """
    if isinstance(value, tuple):
        for part in value:
            yield from nested_records(part)
    elif is_record(value) and getattr(type(value), "has_nested_records", True):
        yield value
        for name in field_marks(type(value)):
            yield from nested_records(getattr(value, name))


def decision_of(value: Any) -> Any:
    """Return what a value decides, to be compared with another one.

    Explanations, scores and hidden fields are left out. Unknowns ("?film") are renamed in their
    order, so that two records that differ only in such names decide the same.
    """
    new_names: dict[str, str] = {}

    def rename_unknown(match: re.Match[str]) -> str:
        return new_names.setdefault(match[0], f"?{len(new_names)}")

    def decision_of_part(part: Any) -> Any:
        if isinstance(part, str):
            return re.sub(r"\?[A-Za-z_]\w*", rename_unknown, part) if "?" in part else str(part)
        if isinstance(part, list | tuple):
            return tuple(decision_of_part(item) for item in part)
        if not is_record(part):
            return part
        decided = [type(part).__name__]
        for name, mark in field_marks(type(part)).items():
            if mark in ("", "sparql"):
                decided.append(decision_of_part(getattr(part, name)))
        return tuple(decided)

    return decision_of_part(value)


# Text


def one_line(value: Any) -> str:
    """Return a value in one line of at most MAX_LINE_CHARS characters.

    A list or tuple is the number of its items. A record without a text of its own is the name of
    its class.
    """
    if isinstance(value, list | tuple):
        return pluralize(len(value), "item")
    if not has_custom_str(value):
        return type(value).__name__
    return single_line(shorten(str(value), MAX_LINE_CHARS))


def summarize(
    value: Any, names: DisplayNames = NO_NAMES, *, limit: int | None = MAX_SUMMARY_PARTS
) -> str:
    """Return any value as lines of text; see ``Record.summary``."""
    if isinstance(value, Record):
        return value.summary(names, limit=limit)
    if isinstance(value, list | tuple):
        if limit is None:
            return "\n".join(summarize(item, names, limit=None) for item in value)
        return "\n".join([one_line(value), *map(one_line, value)])
    return summarize_fields(value, names, limit=limit)


def summarize_fields(value: Any, names: DisplayNames, *, limit: int | None) -> str:
    """Return the line of a record and its parts, by the types of its fields."""
    head = one_line(value) if limit is not None else line_with_scores(value)
    lines = [head]
    for field in shown_fields(value):
        lines += _field_lines(value, field, names, limit)
    return "\n".join(lines)


def _field_lines(
    record: Any, field: ShownField, names: DisplayNames, limit: int | None
) -> Iterable[str]:
    """Return the lines of one field in the summary of its record."""
    if field.mark == "explanation":
        if not field.value:
            return ()
        lead = EXPLANATION_PREFIXES.get(field.name, "because")
        return (f"{lead}: {single_line(shorten(field.value, MAX_LINE_CHARS))}",)
    if not is_table(field.value):
        return () if has_custom_str(record) else (f"{field.name}: {one_line(field.value)}",)
    if limit is None:
        return [summarize(part, names, limit=None) for part in field.value]
    if str(field.value[0]) in str(record):
        return ()
    return first_items(field.value, limit, line_with_scores)


def line_with_scores(value: Any) -> str:
    """Return the line of a record with its scores before it: "0.87 director"."""
    scores = [f"{field.value:.2f}" for field in shown_fields(value) if field.mark == "score"]
    return " ".join([*scores, one_line(value)])


# JSON

JsonObject: TypeAlias = dict[str, Any]
"""A JSON object: values, which are JSON data, by name."""


@lru_cache(maxsize=256)
def type_adapter(value_type: Any) -> TypeAdapter[Any]:
    """Return the pydantic adapter of a type. It is made once, since that takes long."""
    return TypeAdapter(value_type)


def to_data(value: Any, value_type: Any = None) -> Any:
    """Return the JSON data of a record, or of any value of the given type."""
    actual_type: Any = type(value)
    adapter = type_adapter(value_type or actual_type)
    return adapter.dump_python(value, mode="json")


def from_data(data: Any, value_type: Any) -> Any:
    """Return the value of the given type that JSON data describes.

    Raises pydantic's ValidationError, which is a ValueError.
    """
    return type_adapter(value_type).validate_python(data)
