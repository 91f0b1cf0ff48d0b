"""Forms without widgets: from a JSON schema to fields, and between JSON data and what a person types.

Typed are texts (also for numbers and JSON), yes or no, and choices; a table is a list of typed rows. Whatever
a form cannot show is typed as JSON, that part only: ``read(field, typed(field, data)) == data`` holds for
the fields that ``fitted`` returns.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal

from pydantic import ValidationError

from kgwb.errors import OverrideError
from kgwb.flow import adapter, from_data
from kgwb.kg.sparql import HALF, writable

Kind = Literal["text", "iri", "number", "flag", "choice", "texts", "table", "group", "json"]
"""``flag`` is yes or no, ``texts`` a text a line, ``table`` a group a row."""

MOST_TABLE_ROWS = 60
"""A longer table is typed as JSON: a widget for each of its cells would make the page slow."""
PLAIN: Mapping[str, Kind] = {"string": "text", "number": "number", "integer": "number", "boolean": "flag"}
"""The kind of field for a type of JSON schema."""
EMPTY: Mapping[Kind, Any] = {"text": "", "iri": "", "number": 0, "flag": False, "texts": [], "table": []}
NO_DATA = object()


@dataclass(frozen=True, slots=True)
class Field:
    """One part of a form."""

    name: str
    kind: Kind
    label: str = ""
    """The name in words."""
    choices: tuple[Any, ...] = ()
    """JSON values to choose from; of a ``choice`` only."""
    fields: tuple[Field, ...] = ()
    """Parts of a ``group``, columns of a ``table``; a column without a name stands for the whole row."""
    default: Any = NO_DATA


def field_of(schema: Mapping[str, Any]) -> Field:
    """The form of what a JSON schema describes."""
    return _field(schema, "", schema.get("$defs", {}), ())


def form_field(form: Any) -> Field:
    """The form of a type: a flow record's, a reply class's."""
    return field_of(adapter(form).json_schema(mode="serialization"))


def blank(field: Field) -> Any:
    """The data of a form in which nothing was typed yet."""
    if field.default is not NO_DATA:
        return field.default
    if field.kind == "group":
        return {part.name: blank(part) for part in field.fields}
    if field.kind == "choice":
        return field.choices[0]
    return EMPTY.get(field.kind)


def fitted(field: Field, data: Any) -> Field:
    """The form that shows this data and loses nothing of it; parts that would are typed as JSON."""
    if field.kind == "group" and isinstance(data, Mapping):
        field = replace(field, fields=tuple(fitted(part, data.get(part.name)) for part in field.fields))
    return field if _fits(field, data) else replace(field, kind="json")


def typed(field: Field, data: Any) -> Any:
    """What somebody would have typed to say ``data``, which the field must be fitted to."""
    if field.kind == "group":
        return {part.name: typed(part, data[part.name]) for part in field.fields}
    if field.kind == "table":
        return [[typed(part, row[part.name] if part.name else row) for part in field.fields] for row in data]
    if field.kind == "json":
        return json.dumps(data, ensure_ascii=False)
    if field.kind == "texts":
        return "\n".join(data)
    return str(data) if field.kind == "number" else data


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
    label = "IRI" if name == "iri" else name.replace("_", " ")
    made = Field(name, "json", label, default=schema.get("default", NO_DATA))
    if reference := schema.get("$ref"):
        if reference in seen:  # a form without an end
            return made
        target = {**defs[reference.removeprefix("#/$defs/")], **schema}
        del target["$ref"]
        return _field(target, name, defs, (*seen, reference))
    if "const" in schema or "enum" in schema:
        return replace(made, kind="choice", choices=tuple(schema.get("enum", [schema.get("const")])))
    if isinstance(schema.get("items"), Mapping):
        return _array(_field(schema["items"], "", defs, seen), made)
    parts = tuple(_field(part, key, defs, seen) for key, part in schema.get("properties", {}).items())
    kind: Kind = "group" if parts else PLAIN.get(schema.get("type", ""), "json")
    return replace(made, kind="iri" if (name, kind) == ("iri", "text") else kind, fields=parts)


def _array(item: Field, made: Field) -> Field:
    if item.kind == "json":
        return made
    if item.kind == "text":
        return replace(made, kind="texts")
    nested = ("group", "table")
    parts = item.fields if item.kind == "group" else (item,)
    columns = (replace(one, kind="json") if one.kind in nested and one.name else one for one in parts)
    return replace(made, kind="table", fields=tuple(columns))


# --- from data, and from what was typed


def _fits(field: Field, data: Any) -> bool:
    if field.kind == "table" and isinstance(data, list) and len(data) > MOST_TABLE_ROWS:
        return False
    try:
        again = read(field, typed(field, data))
    except (OverrideError, TypeError, KeyError, ValueError, AttributeError):
        return False
    # equal as JSON: in Python, True is 1
    return json.dumps(again, sort_keys=True) == json.dumps(data, sort_keys=True)


def _read(field: Field, values: Any, where: str, problems: list[str]) -> Any:
    def parts(typed: Iterable[Any], where: str) -> dict[str, Any]:
        pairs = zip(field.fields, typed, strict=True)
        return {part.name: _read(part, one, _path(where, part.label), problems) for part, one in pairs}

    if field.kind == "group":
        return parts((values[part.name] for part in field.fields), where)
    if field.kind == "table":
        rows = [parts(row, _path(where, f"row {number}")) for number, row in enumerate(values, 1)]
        return [row.get("", row) for row in rows]
    try:
        return _read_plain(field, values)
    except ValueError as exc:
        problems.append(_path(where, str(exc), ": "))
        return None


def _read_plain(field: Field, value: Any) -> Any:
    """Raises ValueError that says what is wrong."""
    if field.kind == "text":
        value = value.strip()
    elif field.kind == "texts":
        value = [line for line in value.split("\n") if line]
    elif field.kind == "json":
        value = _json(value)
    elif field.kind == "iri":
        value = _iri(value.strip())
    elif field.kind == "number":
        value = _number(value.strip())
    elif field.kind == "choice" and value not in field.choices:
        raise ValueError(f"{value!r} is none of {', '.join(map(str, field.choices))}")
    if HALF.search(json.dumps(value, ensure_ascii=False)):
        raise ValueError("it holds half a character, such as half an emoji; write the whole one")
    return value


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise ValueError(f"this is no JSON: {exc}") from exc


def _iri(text: str) -> str:
    plain = text.removeprefix("<").removesuffix(">")
    if re.match(r"[A-Za-z][\w+.-]*:.", plain) and writable(plain):
        return plain
    source = "copy one from a table of results or from your graph, as in http://example.org/Arrival"
    raise ValueError(f"{text!r} is not an IRI; {source}")


def _number(text: str) -> int | float:
    for made in (int, float):
        with suppress(ValueError, OverflowError):
            if math.isfinite(number := made(text)):
                return number
    raise ValueError(f"{text!r} is no number")


def _path(where: str, part: str, between: str = ", ") -> str:
    return between.join(filter(None, (where, part)))


def _place(location: tuple[int | str, ...]) -> str:
    """Where an error is, counted from 1 as a person counts."""
    parts = (f"row {part + 1}" if isinstance(part, int) else str(part) for part in location)
    return ", ".join(parts) + ": " if location else ""
