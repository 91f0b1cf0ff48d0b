"""Forms without widgets: from a JSON schema to fields, and between JSON data and what a person types.

Typed are texts (also for numbers and JSON), yes or no, and choices; a table is a list of typed rows. Whatever
a form cannot show is typed as JSON, that part only: ``read(field, typed(field, data)) == data`` holds for
the fields that ``fitted`` returns.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal

from pydantic import ValidationError

from kgwb.errors import OverrideError
from kgwb.flow import adapter, from_data

Kind = Literal["text", "number", "whole", "flag", "choice", "texts", "table", "group", "json"]
"""``flag`` is yes or no, ``texts`` a text a line, ``table`` a group a row."""

LABELS = {"iri": "IRI", "sparql": "SPARQL"}
MOST_TABLE_ROWS = 60
"""A longer table is typed as JSON: a widget for each of its cells would make the page slow."""
PLAIN: Mapping[str, Kind] = {"string": "text", "number": "number", "integer": "whole", "boolean": "flag"}
"""The kind of field for a type of JSON schema."""
EMPTY: Mapping[Kind, Any] = {"text": "", "number": 0, "whole": 0, "flag": False, "texts": [], "table": []}
NO_DATA = object()


@dataclass(frozen=True, slots=True)
class Field:
    """One part of a form."""

    name: str
    kind: Kind
    label: str = ""
    """The name in words."""
    help: str = ""
    choices: tuple[Any, ...] = ()
    """JSON values to choose from; of a ``choice`` only."""
    fields: tuple[Field, ...] = ()
    """Parts of a ``group``, columns of a ``table``; a column without a name stands for the whole row."""
    optional: bool = False
    """Whether an empty text stands for null."""
    default: Any = NO_DATA


def field_of(schema: Mapping[str, Any], name: str = "") -> Field:
    """The form of what a JSON schema describes; ``name`` is the name of the whole."""
    return _field(schema, name, schema.get("$defs", {}), ())


def form_field(form: Any, name: str = "") -> Field:
    """The form of a type: a flow record's, a reply class's."""
    return field_of(adapter(form).json_schema(mode="serialization"), name)


def blank(field: Field) -> Any:
    """The data of a form in which nothing was typed yet."""
    if field.default is not NO_DATA:
        return field.default
    if field.kind == "group":
        return {part.name: blank(part) for part in field.fields}
    if field.kind == "choice":
        return field.choices[0]
    return None if field.optional else EMPTY.get(field.kind)


def fitted(field: Field, data: Any) -> Field:
    """The form that shows this data and loses nothing of it; parts that would are typed as JSON."""
    fields = field.fields
    if field.kind == "group" and isinstance(data, Mapping):
        fields = tuple(fitted(part, data.get(part.name)) for part in fields)
    if field.kind == "table" and isinstance(data, list) and all(_is_row(field, row) for row in data):
        columns = [[_cell(part, row) for row in data] for part in fields]
        fields = tuple(
            part if all(_fits(part, value) for value in column) else replace(part, kind="json")
            for part, column in zip(fields, columns, strict=True)
        )
    made = replace(field, fields=fields)
    return made if _fits(made, data) else replace(field, kind="json")


def typed(field: Field, data: Any) -> Any:
    """What somebody would have typed to say ``data``, which the field must be fitted to."""
    if field.kind == "group":
        return {part.name: typed(part, data[part.name]) for part in field.fields}
    if field.kind == "table":
        return [[typed(part, _cell(part, row)) for part in field.fields] for row in data]
    if field.kind == "json":
        return json.dumps(data, ensure_ascii=False)
    if data is None and field.optional and field.kind != "choice":
        return ""
    if field.kind == "texts":
        return "\n".join(data)
    return str(data) if field.kind in ("number", "whole") else data


def read(field: Field, values: Any) -> Any:
    """The data of what was typed. Raises OverrideError that says for each wrong field what is wrong."""
    problems: list[str] = []
    data = _read(field, values, field.label, problems)
    if problems:
        raise OverrideError("; ".join(problems), hint="mend these fields; the others stay as they are")
    return data


def record_of(data: Any, form: Any) -> Any:
    """The typed record of JSON data. Raises OverrideError that says which part has not the form."""
    try:
        return from_data(data, form)
    except ValidationError as exc:
        wrong = (f"{_place(error['loc'])}{error['msg']}" for error in exc.errors(include_url=False)[:5])
        raise OverrideError("; ".join(wrong), hint="mend these fields") from exc


# --- from a schema


def _field(schema: Mapping[str, Any], name: str, defs: Mapping[str, Any], seen: tuple[str, ...]) -> Field:
    made = Field(name, "json", LABELS.get(name, " ".join(name.split("_"))), schema.get("description", ""))
    made = replace(made, default=schema.get("default", NO_DATA))
    if reference := schema.get("$ref"):
        if reference in seen:  # a form without an end
            return made
        target = {**defs[reference.removeprefix("#/$defs/")], **schema}
        del target["$ref"]
        return _field(target, name, defs, (*seen, reference))
    if "anyOf" in schema:
        return _optional(schema["anyOf"], made, defs, seen)
    if "const" in schema or "enum" in schema:
        choices = tuple(schema.get("enum", [schema.get("const")]))
        return replace(made, kind="choice", choices=choices)
    if isinstance(schema.get("items"), Mapping):
        return _array(schema["items"], made, defs, seen)
    parts = tuple(_field(part, key, defs, seen) for key, part in schema.get("properties", {}).items())
    kind = "group" if parts else PLAIN.get(schema.get("type", ""), "json")
    return replace(made, kind=kind, fields=parts)


def _optional(options: Any, made: Field, defs: Mapping[str, Any], seen: tuple[str, ...]) -> Field:
    """A text or number that may be left empty; a choice that may be null."""
    rest = [option for option in options if option.get("type") != "null"]
    if len(rest) != 1 or len(rest) == len(options):
        return made
    part = replace(_field(rest[0], made.name, defs, seen), default=made.default, optional=True)
    if part.kind == "choice":
        return replace(part, choices=(None, *part.choices))
    return part if part.kind in ("text", "number", "whole") else replace(made, optional=True)


def _array(items: Mapping[str, Any], made: Field, defs: Mapping[str, Any], seen: tuple[str, ...]) -> Field:
    item = _field(items, "", defs, seen)
    if item.kind == "text" and not item.optional:
        return replace(made, kind="texts")
    if item.kind != "group":
        return replace(made, kind="table", fields=(item,)) if item.kind != "json" else made
    nested = ("group", "table")
    columns = (replace(part, kind="json") if part.kind in nested else part for part in item.fields)
    return replace(made, kind="table", fields=tuple(columns), help=made.help or item.help)


# --- from data, and from what was typed


def _cell(column: Field, row: Any) -> Any:
    return row[column.name] if column.name else row


def _is_row(field: Field, row: Any) -> bool:
    names = [column.name for column in field.fields]
    return names == [""] or (isinstance(row, Mapping) and set(row) == set(names))


def _fits(field: Field, data: Any) -> bool:
    if field.kind == "table" and isinstance(data, list) and len(data) > MOST_TABLE_ROWS:
        return False
    try:
        return bool(_same(read(field, typed(field, data)), data))
    except (OverrideError, TypeError, KeyError, ValueError, AttributeError):
        return False


def _same(one: Any, other: Any) -> bool:
    """Equal as JSON: in Python, True is 1."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def _read(field: Field, values: Any, where: str, problems: list[str]) -> Any:
    if field.kind == "group":
        return {
            part.name: _read(part, values[part.name], _path(where, part.label), problems)
            for part in field.fields
        }
    if field.kind == "table":
        return [
            _read_row(field, row, _path(where, f"row {number}"), problems)
            for number, row in enumerate(values, 1)
        ]
    try:
        return _read_plain(field, values)
    except ValueError as exc:
        problems.append(f"{where}: {exc}" if where else str(exc))
        return None


def _read_row(field: Field, row: Any, where: str, problems: list[str]) -> Any:
    cells = {
        part.name: _read(part, cell, _path(where, part.label), problems)
        for part, cell in zip(field.fields, row, strict=True)
    }
    return cells.get("", cells)


def _read_plain(field: Field, value: Any) -> Any:
    """Raises ValueError that says what is wrong."""
    if field.optional and value == "":
        return None
    if field.kind == "texts":
        return [line for line in value.split("\n") if line]
    if field.kind == "json":
        return _json(value)
    if field.kind in ("number", "whole"):
        return _number(value.strip(), whole=field.kind == "whole")
    if field.kind == "choice" and value not in field.choices:
        raise ValueError(f"{value!r} is none of {', '.join(map(str, field.choices))}")
    return value


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise ValueError(f"this is no JSON: {exc}") from exc


def _number(text: str, *, whole: bool) -> int | float:
    with suppress(ValueError):
        return int(text)
    with suppress(ValueError):
        if not whole and math.isfinite(number := float(text)):
            return number
    raise ValueError(f"{text!r} is no {'whole ' if whole else ''}number")


def _path(where: str, part: str) -> str:
    return ", ".join(filter(None, (where, part)))


def _place(location: tuple[int | str, ...]) -> str:
    """Where an error is, counted from 1 as a person counts."""
    parts = (f"row {part + 1}" if isinstance(part, int) else str(part) for part in location)
    return ", ".join(parts) + ": " if location else ""
