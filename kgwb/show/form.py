"""Forms as data: fields made from a JSON schema, and the data that a person typed into them.

A page sends the text of each input by the name of the input. That name is the path of a value in
the data: "facts.0.1" is the second column of the first fact. A form of one input has the name
"value".

``parse_form_values(field, to_form_values(field, data)) == data`` holds for every field that
``fit_field`` returns. A part of the data that inputs cannot show without a loss is edited as JSON.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, is_dataclass, replace
from typing import Any, Literal

from pydantic import ValidationError

from kgwb.errors import OverrideError
from kgwb.kg.sparql import LONE_SURROGATE, is_valid_iri
from kgwb.records import field_marks, from_data, type_adapter
from kgwb.text import display_name

InputKind = Literal[
    "text", "iri", "number", "flag", "choice", "texts", "table", "group", "json", "ticks"
]
"""How a field is edited: "texts" has one text in each line, "table" has a group in each row,
"choice" is one of several options, and "ticks" are any number of them."""
JsonSchema = Mapping[str, Any]
FormValues = Mapping[str, str]
"""The texts of inputs by their names. A check box is there only if it is ticked."""
MAX_FORM_ROWS = 60
"""A table with more rows is edited as JSON."""
MAX_PROBLEMS = 5
"""Problems of a record that an error names."""
KINDS_BY_JSON_TYPE: Mapping[str, InputKind] = {
    "string": "text",
    "number": "number",
    "integer": "number",
    "boolean": "flag",
}
DEFAULTS_BY_KIND: Mapping[InputKind, Any] = {
    "text": "",
    "iri": "",
    "number": 0,
    "flag": False,
    "texts": [],
    "table": [],
}
MISSING = object()
"""The default of a field that has none; None may be a default."""


@dataclass(frozen=True, slots=True)
class FormField:
    """A part of a form."""

    name: str
    """The name of the value in the data. Empty for a whole form, and for a column that is a row."""
    kind: InputKind
    choices: tuple[Any, ...] = ()
    """The options to choose from, as JSON data."""
    subfields: tuple[FormField, ...] = ()
    """The parts of a group, or the columns of a table."""
    default: Any = MISSING
    choice_labels: tuple[str, ...] = ()
    """The options as people read them; empty if the JSON data does for that."""

    @property
    def label(self) -> str:
        return "IRI" if self.name == "iri" else display_name(self.name)

    def parts(self, path: str) -> Iterator[tuple[FormField, str]]:
        """Yield the subfields, each with its path.

        ``path`` is that of a group, or of a row of a table. The parts of a group are found by
        their names, and the cells of a row by their numbers.
        """
        for number, part in enumerate(self.subfields):
            name = part.name if self.kind == "group" else str(number)
            yield part, join_path(path, name)


# From a type to fields


def field_for_type(value_type: Any) -> FormField:
    """Return the form of a type: that of its JSON schema, without hidden fields of a record class."""
    field = field_for_schema(type_adapter(value_type).json_schema(mode="serialization"))
    if field.kind != "group" or not is_dataclass(value_type):
        return field
    record_class: Any = value_type
    marks = field_marks(record_class)
    shown = [part for part in field.subfields if marks.get(part.name) != "hidden"]
    return replace(field, subfields=tuple(shown))


def field_for_schema(
    schema: JsonSchema, name: str = "", definitions: JsonSchema | None = None, *seen: str
) -> FormField:
    """Return the form of the data that a JSON schema describes.

    An object with properties is a group, and an enum or a constant is a choice. A list of texts is
    "texts", and any other list is a table. A text named "iri" is an IRI. Numbers, flags and other
    texts have inputs of their own. Everything else is edited as JSON: data of several types,
    objects with any keys, and types that contain themselves.

    ``definitions`` and ``seen`` are for a part of a schema: the definitions of the whole one, and
    the references that lead to the part.
    """
    if definitions is None:
        definitions = schema.get("$defs", {})
    field = FormField(name, "json", default=schema.get("default", MISSING))
    reference = schema.get("$ref")
    if reference in seen:
        # The type contains itself: its form would have no end.
        return field
    if reference:
        definition = definitions[reference.removeprefix("#/$defs/")]
        target = {**definition, **schema}
        del target["$ref"]
        return field_for_schema(target, name, definitions, *seen, reference)
    if "enum" in schema or "const" in schema:
        choices = schema.get("enum", [schema.get("const")])
        return replace(field, kind="choice", choices=tuple(choices))
    items = schema.get("items")
    if isinstance(items, Mapping):
        return _list_field(field, field_for_schema(items, "", definitions, *seen))

    parts = []
    for key, part in schema.get("properties", {}).items():
        parts.append(field_for_schema(part, key, definitions, *seen))
    if parts:
        return replace(field, kind="group", subfields=tuple(parts))
    kind = KINDS_BY_JSON_TYPE.get(schema.get("type", ""), "json")
    if name == "iri" and kind == "text":
        kind = "iri"
    return replace(field, kind=kind)


def _list_field(field: FormField, item: FormField) -> FormField:
    """Return the field for a list of items.

    Texts become "texts". Groups become a table with a column for each part, and other items a table
    with one column. If an item is edited as JSON, the whole list is.
    """
    if item.kind == "json":
        return field
    if item.kind == "text":
        return replace(field, kind="texts")
    if item.kind != "group":
        return replace(field, kind="table", subfields=(item,))
    columns = tuple(_column_field(part) for part in item.subfields)
    return replace(field, kind="table", subfields=columns)


def _column_field(part: FormField) -> FormField:
    """Return the column for a part of a group: JSON for a group or a table, as a cell is one input."""
    return replace(part, kind="json") if part.kind in ("group", "table") else part


def empty_data(field: FormField) -> Any:
    """Return the data of a form in which nothing was typed: defaults, and the first choice."""
    if field.default is not MISSING:
        return field.default
    if field.kind == "group":
        return {part.name: empty_data(part) for part in field.subfields}
    if field.kind == "choice":
        return field.choices[0]
    return DEFAULTS_BY_KIND.get(field.kind)


def fit_field(field: FormField, data: Any) -> FormField:
    """Return the field for this data: parts that would lose something of it are edited as JSON.

    A part loses something if the data, filled into its inputs and read again, is not the same JSON.
    A table of more than MAX_FORM_ROWS rows is edited as JSON, too.
    """
    if field.kind == "ticks":
        # Its data is read in the order of the options.
        return field
    if field.kind == "group" and isinstance(data, Mapping):
        fitted = [fit_field(part, data.get(part.name)) for part in field.subfields]
        field = replace(field, subfields=tuple(fitted))
    is_long = isinstance(data, list) and len(data) > MAX_FORM_ROWS
    if field.kind == "table" and is_long:
        return replace(field, kind="json")
    return field if _keeps(field, data) else replace(field, kind="json")


def _keeps(field: FormField, data: Any) -> bool:
    """Return whether data stays the same JSON when it is filled into a field and read again.

    It is also False if the data cannot be filled in or read.
    """
    with suppress(OverrideError, TypeError, KeyError, ValueError, AttributeError):
        typed = parse_form_values(field, to_form_values(field, data))
        # Compared as JSON: in Python, True equals 1.
        typed_json = json.dumps(typed, sort_keys=True)
        return typed_json == json.dumps(data, sort_keys=True)
    return False


# From data to inputs


def to_form_values(field: FormField, data: Any, path: str = "") -> dict[str, str]:
    """Return the values of a field's inputs in which the data is typed, by input name.

    A choice and a tick are the position of an option, a list of texts has one in each line, and a
    box that is not ticked has no value. ``path`` is the path of the field in the data. The field
    must be fitted to the data, see ``fit_field``.
    """
    values: dict[str, str] = {}
    match field.kind:
        case "group":
            for part, part_path in field.parts(path):
                values |= to_form_values(part, data[part.name], part_path)
        case "table":
            for n, row in enumerate(data):
                values |= _row_values(field, row, join_path(path, n))
        case "ticks":
            for choice in data:
                position = field.choices.index(choice)
                values[join_path(path, position)] = "on"
        case "flag":
            if data:
                values[input_name(path)] = "on"
        case "choice":
            values[input_name(path)] = str(field.choices.index(data))
        case "texts":
            values[input_name(path)] = "\n".join(data)
        case "json":
            values[input_name(path)] = json.dumps(data, ensure_ascii=False)
        case _:
            values[input_name(path)] = str(data)
    return values


def _row_values(table: FormField, row: Any, path: str) -> dict[str, str]:
    """Return the values of the inputs in one row of a table; ``path`` is that of the row."""
    values: dict[str, str] = {}
    for column, cell_path in table.parts(path):
        cell = row[column.name] if column.name else row
        values |= to_form_values(column, cell, cell_path)
    return values


def join_path(path: str, name: str | int) -> str:
    """Return a path in the data with a name or a number added: "facts" and 0 are "facts.0".

    An empty path or name is left out.
    """
    return ".".join(filter(None, [path, str(name)]))


def input_name(path: str) -> str:
    """Return the name of the input for a path in the data."""
    return path or "value"


# From inputs to data


def parse_form_values(field: FormField, values: FormValues) -> Any:
    """Return the data of a form that a person filled in.

    Raises OverrideError with the problem of each input that is wrong, and the place of the input.
    """
    reader = FormReader(values)
    data = reader.read(field, "", ())
    if reader.problems:
        hint = "fix these fields; the others stay as they are"
        raise OverrideError("; ".join(reader.problems), hint=hint)
    return data


class FormReader:
    """Reads the values of a form, and collects the problems of all its inputs."""

    def __init__(self, values: FormValues) -> None:
        self.values = values
        self.problems: list[str] = []

    def read(self, field: FormField, path: str, place: tuple[str, ...]) -> Any:
        """Return the data of a field.

        ``place`` are the labels of the parts of the form that the field is in. If an input has a
        problem, the data is None there, and the problem is added to ``problems``.
        """
        place = (*place, field.label)
        match field.kind:
            case "group":
                return self._read_parts(field, path, place)
            case "table":
                return self._read_rows(field, path, place)
            case "ticks":
                return self._read_ticks(field, path)
            case "flag":
                return input_name(path) in self.values
        text = self.values.get(input_name(path), "")
        try:
            return _parse_input(field, text.replace("\r\n", "\n"))
        except ValueError as exc:
            self.problems.append(_describe_problem(place, str(exc)))
            return None

    def _read_parts(self, field: FormField, path: str, place: tuple[str, ...]) -> dict[str, Any]:
        """Return the data of a group, or of a row of a table, by the names of its parts."""
        data = {}
        for part, part_path in field.parts(path):
            data[part.name] = self.read(part, part_path, place)
        return data

    def _read_rows(self, table: FormField, path: str, place: tuple[str, ...]) -> list[Any]:
        """Return the rows of a table, in the order of their numbers.

        The numbers need not be consecutive, because rows may have been removed.
        """
        rows = []
        for number, n in enumerate(row_numbers(self.values, path), 1):
            row_place = (*place, f"row {number}")
            row = self._read_parts(table, join_path(path, n), row_place)
            # A column without a name is the whole row.
            rows.append(row.get("", row))
        return rows

    def _read_ticks(self, field: FormField, path: str) -> list[Any]:
        """Return the options that are ticked, in the order of the options."""
        choices = []
        for n, choice in enumerate(field.choices):
            if join_path(path, n) in self.values:
                choices.append(choice)
        return choices


def row_numbers(values: FormValues, path: str) -> list[int]:
    """Return the numbers of the rows for which a table has values, in ascending order.

    ``path`` is that of the table; the name of each of its inputs begins with the path and the
    number.
    """
    cell_name = re.compile(rf"{re.escape(path)}\.?(\d+)\.")
    matches = [cell_name.match(name) for name in values]
    return sorted({int(match[1]) for match in matches if match})


def _describe_problem(place: Iterable[str], problem: str) -> str:
    """Return a problem with the place where it is: "facts, row 2, IRI: ..."."""
    labels = ", ".join(label for label in place if label)
    return f"{labels}: {problem}" if labels else problem


def _parse_input(field: FormField, text: str) -> Any:
    """Return the data of the text in one input, by the kind of the field.

    Text is stripped, and empty lines of "texts" are left out. Raises ValueError with the problem if
    the text is not of that kind, or if it contains half a character (a lone surrogate), which
    cannot be stored.
    """
    value: Any = text.strip()
    match field.kind:
        case "texts":
            value = [line for line in text.split("\n") if line]
        case "json":
            value = _parse_json(text)
        case "iri":
            value = _parse_iri(text)
        case "number":
            value = _parse_number(value)
        case "choice":
            value = _parse_choice(field, text)
    if LONE_SURROGATE.search(json.dumps(value, ensure_ascii=False)):
        raise ValueError("it contains half a character, such as half an emoji; type all of it")
    return value


def _parse_json(text: str) -> Any:
    """Return the data of a JSON text. Raises ValueError if it is not JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise ValueError(f"this is not JSON: {exc}") from exc


def _parse_iri(text: str) -> str:
    """Return the IRI of a text, without angle brackets around it.

    Raises ValueError if it has no scheme, such as "http:", or has characters that an IRI must not
    have.
    """
    iri = text.strip().removeprefix("<").removesuffix(">")
    has_scheme = re.match(r"[A-Za-z][\w+.-]*:.", iri)
    if has_scheme and is_valid_iri(iri):
        return iri
    advice = "copy one from a table of results or from your graph"
    raise ValueError(f"{text!r} is not an IRI; {advice}, as in http://example.org/Arrival")


def _parse_number(text: str) -> int | float:
    """Return an int if possible, else a float. Raises ValueError for other texts, infinity and NaN."""
    for number_type in (int, float):
        with suppress(ValueError, OverflowError):
            number = number_type(text)
            if math.isfinite(number):
                return number
    raise ValueError(f"{text!r} is not a number")


def _parse_choice(field: FormField, text: str) -> Any:
    """Return the option whose position, counted from 0, is the text.

    Raises ValueError, which lists all options, if there is none.
    """
    choices = field.choices
    if text.isdecimal() and int(text) < len(choices):
        return choices[int(text)]
    options = ", ".join(map(str, choices))
    raise ValueError(f"{text!r} is not one of these: {options}")


def validate_record(data: Any, value_type: Any) -> Any:
    """Return the record, or any value of a type, that JSON data describes.

    Raises OverrideError with the first MAX_PROBLEMS parts of the data that are missing or have a
    wrong type.
    """
    try:
        return from_data(data, value_type)
    except ValidationError as exc:
        problems = []
        for error in exc.errors(include_url=False)[:MAX_PROBLEMS]:
            place = map(_describe_position, error["loc"])
            problems.append(_describe_problem(place, error["msg"]))
        raise OverrideError("; ".join(problems), hint="fix these fields") from exc


def _describe_position(part: int | str) -> str:
    return f"row {part + 1}" if isinstance(part, int) else part


# Rows of tables


def add_or_remove_row(
    field: FormField, values: FormValues, path: str, *, remove: bool = False
) -> dict[str, str]:
    """Return the values of a form with one more row at the end of a table, or with one row less.

    ``path`` is that of the table, or of the row to remove. Nothing changes if there is no such row.
    Raises OverrideError if the path does not lead to a table.
    """
    names = [name for name in path.split(".") if name not in ("", "value")]
    row = ""
    if remove and names:
        row = names.pop()
    table = _find_subfield(field, names)
    if table.kind != "table":
        hint = "press a button beside a row"
        raise OverrideError(f"{path!r} is not a row of a table", hint=hint)
    table_path = ".".join(names)
    if not remove:
        return {**values, **_empty_row_values(table, values, table_path)}
    removed = join_path(table_path, row) + "."
    kept = {}
    for name, text in values.items():
        if not name.startswith(removed):
            kept[name] = text
    return kept


def _find_subfield(field: FormField, names: Sequence[str]) -> FormField:
    """Return the subfield to which names lead. A name that no subfield has is skipped."""
    for name in names:
        for part in field.subfields:
            if part.name == name:
                field = part
                break
    return field


def _empty_row_values(table: FormField, values: FormValues, path: str) -> dict[str, str]:
    """Return the values of a new, empty row of a table, with a number after that of the last row."""
    row_number = max(row_numbers(values, path), default=-1) + 1
    row_values: dict[str, str] = {}
    for column, cell_path in table.parts(join_path(path, row_number)):
        cell = fit_field(column, empty_data(column))
        data = empty_data(cell)
        row_values |= to_form_values(cell, data, cell_path)
    return row_values
