"""Forms: fields made from a JSON schema, their inputs as HTML, and the data that a person typed into them.

A page sends the text of each input by the name of the input. That name is the path of a value in
the data: "facts.0.1" is the second column of the first fact. A form of one input has the name
"value".

``parse_form_values(field, to_form_values(field, data)) == data`` holds for every field that
``fit_field`` returns. A part of the data that inputs cannot show without a loss is edited as JSON.

``OutputForm`` is the form in which a person edits the output of a step, or chooses among its inputs.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import is_dataclass, replace
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from pydantic import ValidationError

from kgwb.errors import OverrideError
from kgwb.kg.sparql import LONE_SURROGATE, is_valid_iri
from kgwb.records import field_marks, from_data, frozen, is_record, one_line, to_data, type_adapter
from kgwb.run.steps import Step
from kgwb.show.html import Html, render_template
from kgwb.text import display_name, tell_apart

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
Place = tuple[str, ...]
"""The labels of the parts of a form that lead to an input."""
MISSING = object()
"""The default of a field that has none; None may be a default."""


@frozen
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
        return field_label(self.name)

    def parts(self, path: str) -> Iterator[tuple[FormField, str]]:
        """Yield each subfield with its path; ``path`` is that of a group or of a table's row.

        A part of a group is found by its name, a cell of a row by its number.
        """
        for number, part in enumerate(self.subfields):
            name: str | int = number
            if self.kind == "group":
                name = part.name
            yield part, join_path(path, name)


def field_label(name: str) -> str:
    """Return the name of a field as people read it: in words, and "IRI" for "iri"."""
    if name == "iri":
        return "IRI"
    return display_name(name)


# From a type to fields


def field_for_type(value_type: Any) -> FormField:
    """Return the form field in which values of a type are edited, made from the type's JSON schema.

    Fields of a record class that are marked as hidden are left out; those of records inside of it
    are not.
    """
    schema = type_adapter(value_type).json_schema(mode="serialization")
    field = field_for_schema(schema)
    if field.kind != "group" or not is_dataclass(value_type):
        return field
    record_class: Any = value_type
    marks = field_marks(record_class)
    shown = [part for part in field.subfields if marks.get(part.name) != "hidden"]
    return replace(field, subfields=tuple(shown))


def field_for_schema(schema: JsonSchema) -> FormField:
    """Return the form of the data that a JSON schema describes.

    An object with properties is a group, and an enum or a constant is a choice. A list of texts is
    "texts", and any other list is a table. A text named "iri" is an IRI. Numbers, flags and other
    texts have inputs of their own. Everything else is edited as JSON: data of several types,
    objects with any keys, and types that contain themselves.
    """
    reader = SchemaReader(schema)
    return reader.read(schema, "", ())


class SchemaReader:
    """Reads a JSON schema part by part, and makes a field of each part."""

    def __init__(self, schema: JsonSchema) -> None:
        self.definitions: JsonSchema = schema.get("$defs", {})

    def read(self, schema: JsonSchema, name: str, seen: tuple[str, ...]) -> FormField:
        """Return the form field for a part of a JSON schema, under this name.

        ``seen`` are the references that lead to the part. An enumeration becomes a choice, a list
        of items a table or texts, an object with properties a group, and a text named "iri" an IRI.
        Any other part has the kind of its JSON type, or "json". A type that contains itself is
        edited as JSON there.
        """
        field = FormField(name, "json", default=schema.get("default", MISSING))
        reference = schema.get("$ref")
        if reference in seen:
            # The type contains itself: its form would have no end.
            return field
        if reference:
            definition = self.definitions[reference.removeprefix("#/$defs/")]
            target = {**definition, **schema}
            del target["$ref"]
            return self.read(target, name, (*seen, reference))
        if "enum" in schema or "const" in schema:
            choices = schema.get("enum", [schema.get("const")])
            return replace(field, kind="choice", choices=tuple(choices))
        items = schema.get("items")
        if isinstance(items, Mapping):
            item = self.read(items, "", seen)
            return _list_field(field, item)
        properties = schema.get("properties")
        if properties:
            parts = [self.read(part, key, seen) for key, part in properties.items()]
            return replace(field, kind="group", subfields=tuple(parts))
        json_type = schema.get("type", "")
        kind = KINDS_BY_JSON_TYPE.get(json_type, "json")
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
    columns = [_column_field(part) for part in item.subfields]
    return replace(field, kind="table", subfields=tuple(columns))


def _column_field(part: FormField) -> FormField:
    """Return the column for a part of a group: JSON for a group or a table, as a cell is one input."""
    if part.kind in ("group", "table"):
        return replace(part, kind="json")
    return part


def empty_data(field: FormField) -> Any:
    """Return the data of a form in which nothing was typed.

    It is the field's default, else the first option of a choice, the empty data of each part of a
    group, or the default of the kind; None for other kinds.
    """
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
    A table of more than MAX_FORM_ROWS rows is edited as JSON, too. The parts of a group are fitted
    first.
    """
    if field.kind == "ticks":
        # Its data is read in the order of the options.
        return field
    if field.kind == "group" and isinstance(data, Mapping):
        fitted = [fit_field(part, data.get(part.name)) for part in field.subfields]
        field = replace(field, subfields=tuple(fitted))
    is_long_list = isinstance(data, list) and len(data) > MAX_FORM_ROWS
    is_long_table = is_long_list and field.kind == "table"
    if is_long_table or not _keeps(field, data):
        return replace(field, kind="json")
    return field


def _keeps(field: FormField, data: Any) -> bool:
    """Return whether data stays the same JSON if it is filled into a field and read again.

    False if it cannot be filled in or read.
    """
    with suppress(OverrideError, TypeError, KeyError, ValueError, AttributeError):
        values = to_form_values(field, data)
        typed = parse_form_values(field, values)
        # Compared as JSON: in Python, True equals 1.
        typed_json = json.dumps(typed, sort_keys=True)
        return typed_json == json.dumps(data, sort_keys=True)
    return False


# From data to inputs


def to_form_values(field: FormField, data: Any, path: str = "") -> dict[str, str]:
    """Return the values of a field's inputs in which the data is typed, by input name.

    A choice and a tick are the position of an option, a list of texts has one in each line, and a
    box that is not ticked has no value. ``path`` is the path of the field in the data. The field
    must be fitted to the data, see ``fit_field``. Raises a KeyError, ValueError, TypeError or
    AttributeError for data that does not fit.
    """
    values: dict[str, str] = {}
    name = input_name(path)
    match field.kind:
        case "group":
            for part, part_path in field.parts(path):
                values |= to_form_values(part, data[part.name], part_path)
        case "table":
            for number, row in enumerate(data):
                row_path = join_path(path, number)
                values |= _row_values(field, row, row_path)
        case "ticks":
            for choice in data:
                position = field.choices.index(choice)
                values[join_path(path, position)] = "on"
        case "flag":
            if data:
                values[name] = "on"
        case "choice":
            values[name] = str(field.choices.index(data))
        case "texts":
            values[name] = "\n".join(data)
        case "json":
            values[name] = _json_input(field, data)
        case _:
            values[name] = str(data)
    return values


def _json_input(field: FormField, data: Any) -> str:
    """Return data as JSON; empty for None if that is the default of the field."""
    if data is None and field.default is None:
        return ""
    return json.dumps(data, ensure_ascii=False)


def _row_values(table: FormField, row: Any, path: str) -> dict[str, str]:
    """Return the values of the inputs in one row of a table, by input name.

    ``path`` is that of the row. A column without a name has the row itself as its data.
    """
    values: dict[str, str] = {}
    for column, cell_path in table.parts(path):
        cell = row[column.name] if column.name else row
        values |= to_form_values(column, cell, cell_path)
    return values


def join_path(path: str, name: str | int) -> str:
    """Return a path in the data with a name or a number added: "facts" and 0 are "facts.0".

    An empty path or name is left out.
    """
    names = [path, str(name)]
    return ".".join(filter(None, names))


def input_name(path: str) -> str:
    """Return the name of the input for a path in the data."""
    return path or "value"


# From inputs to data


def parse_form_values(field: FormField, values: FormValues) -> Any:
    """Return the data of a form that a person filled in.

    An input without a value counts as empty. The record is not validated.

    Raises OverrideError with the problem of each input that is wrong, and the place of the input.
    """
    reader = FormReader(values)
    data = reader.read(field, "", ())
    if reader.problems:
        problems = "; ".join(reader.problems)
        hint = "correct these fields of the form; the others stay as they are"
        raise OverrideError(problems, hint=hint)
    return data


class FormReader:
    """Reads the values of a form, and collects the problems of all its inputs."""

    def __init__(self, values: FormValues) -> None:
        self.values = values
        self.problems: list[str] = []

    def read(self, field: FormField, path: str, place: Place) -> Any:
        """Return the data that a person typed into a field.

        ``path`` is the field's path in the data, and ``place`` the labels of the parts that it is
        in. For an input with a problem the data is None, and the problem is added to ``problems``.
        """
        name = input_name(path)
        place = (*place, field.label)
        match field.kind:
            case "group":
                return self._read_parts(field, path, place)
            case "table":
                return self._read_rows(field, path, place)
            case "ticks":
                return self._read_ticks(field, path)
            case "flag":
                return name in self.values
        typed = self.values.get(name, "")
        text = typed.replace("\r\n", "\n")
        try:
            return _parse_input(field, text)
        except ValueError as exc:
            self.problems.append(_describe_problem(place, str(exc)))
            return None

    def _read_parts(self, field: FormField, path: str, place: Place) -> dict[str, Any]:
        """Return the data of a group, or of a row of a table, by the names of its parts."""
        data = {}
        for part, part_path in field.parts(path):
            data[part.name] = self.read(part, part_path, place)
        return data

    def _read_rows(self, table: FormField, path: str, place: Place) -> list[Any]:
        """Return the rows of a table, in the order of their numbers.

        The numbers need not be consecutive, because rows may have been removed. A table of one
        unnamed column has plain items. A problem names the row by its position, counted from 1.
        """
        rows = []
        numbers = row_numbers(self.values, path)
        for position, number in enumerate(numbers, 1):
            row_path = join_path(path, number)
            row_place = (*place, f"row {position}")
            row = self._read_parts(table, row_path, row_place)
            # A column without a name is the whole row.
            rows.append(row.get("", row))
        return rows

    def _read_ticks(self, field: FormField, path: str) -> list[Any]:
        """Return the options that are ticked, in the order of the options.

        An option is ticked if there is a value under the field's path with its position.
        """
        ticked = []
        for position, choice in enumerate(field.choices):
            if join_path(path, position) in self.values:
                ticked.append(choice)
        return ticked


def row_numbers(values: FormValues, path: str) -> list[int]:
    """Return the numbers of the rows for which a table has values, in ascending order.

    ``path`` is that of the table; the name of each of its inputs begins with the path and the
    number.
    """
    cell_name = re.compile(rf"{re.escape(path)}\.?(\d+)\.")
    numbers = set()
    for name in values:
        match = cell_name.match(name)
        if match:
            numbers.add(int(match[1]))
    return sorted(numbers)


def _describe_problem(place: Iterable[str], problem: str) -> str:
    """Return a problem with the place where it is: "facts, row 2, IRI: ..."."""
    labels = ", ".join(filter(None, place))
    if not labels:
        return problem
    return f"{labels}: {problem}"


def _parse_input(field: FormField, text: str) -> Any:
    """Return the data of the text in one input, by the kind of the field.

    A text is stripped; "texts" are its lines without empty ones; an empty JSON input is None if
    that is the default of the field. Raises ValueError with the problem if the text is not of that
    kind, or if it contains half a character (a lone surrogate), which cannot be stored.
    """
    value: Any = text.strip()
    match field.kind:
        case "texts":
            value = [line for line in text.split("\n") if line]
        case "json" if not value and field.default is None:
            value = None
        case "json":
            value = _parse_json(text)
        case "iri":
            value = _parse_iri(text)
        case "number":
            value = _parse_number(value)
        case "choice":
            value = _parse_choice(field, text)
    value_json = json.dumps(value, ensure_ascii=False)
    if LONE_SURROGATE.search(value_json):
        raise ValueError("it contains half a character, such as half an emoji; type all of it")
    return value


def is_refused(field: FormField, text: str) -> bool:
    """Return whether ``parse_form_values`` refuses this text in an input of the field."""
    try:
        _parse_input(field, text)
    except ValueError:
        return True
    return False


def _parse_json(text: str) -> Any:
    """Return the data of a JSON text. Raises ValueError if it is not JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise ValueError(f"this is not JSON: {exc}") from exc


def _parse_iri(text: str) -> str:
    """Return the IRI of a text, without angle brackets around it.

    Blanks around it are removed. Whether the graph has it is not asked.

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
    if text.isdecimal():
        position = int(text)
        if position < len(choices):
            return choices[position]
    options = ", ".join(map(str, choices))
    raise ValueError(f"{text!r} is not one of these: {options}")


def validate_record(data: Any, value_type: Any) -> Any:
    """Return the record, or any value of a type, that JSON data describes.

    Raises OverrideError with the first MAX_PROBLEMS parts of the data that are missing or have a
    wrong type, each with its place.
    """
    try:
        return from_data(data, value_type)
    except ValidationError as exc:
        problems = []
        for error in exc.errors(include_url=False)[:MAX_PROBLEMS]:
            place = [part if isinstance(part, str) else f"row {part + 1}" for part in error["loc"]]
            problems.append(_describe_problem(place, error["msg"]))
        raise OverrideError("; ".join(problems), hint="correct these fields") from exc


# Rows of tables


def add_or_remove_row(
    field: FormField, values: FormValues, path: str, *, remove: bool = False
) -> dict[str, str]:
    """Return the values of a form with one more row at the end of a table, or with one row less.

    ``path`` is that of the table, or of the row to remove. Nothing changes if there is no such row.
    Raises OverrideError if the path does not lead to a table. A new row has the defaults of its
    columns and the next free number. The given values do not change.
    """
    parts = path.split(".")
    names = [name for name in parts if name not in ("", "value")]
    row = ""
    if remove and names:
        row = names.pop()
    table = _find_subfield(field, names)
    if table.kind != "table":
        hint = "press a button beside a row"
        raise OverrideError(f"{path!r} is not a row of a table", hint=hint)
    table_path = ".".join(names)
    if not remove:
        new_row = _empty_row_values(table, values, table_path)
        return {**values, **new_row}
    removed = join_path(table_path, row) + "."
    kept = {}
    for name, text in values.items():
        if not name.startswith(removed):
            kept[name] = text
    return kept


def _find_subfield(field: FormField, names: Sequence[str]) -> FormField:
    """Return the field that names lead to, from subfield to subfield.

    A name that no subfield has, such as the number of a row, is skipped.
    """
    for name in names:
        parts = {part.name: part for part in field.subfields}
        field = parts.get(name, field)
    return field


def _empty_row_values(table: FormField, values: FormValues, path: str) -> dict[str, str]:
    """Return the values of a new, empty row of a table, with a number after that of the last row.

    A table without rows begins with 0.
    """
    numbers = row_numbers(values, path)
    row_number = max(numbers, default=-1) + 1
    row_path = join_path(path, row_number)
    row_values: dict[str, str] = {}
    for column, cell_path in table.parts(row_path):
        cell = fit_field(column, empty_data(column))
        data = empty_data(cell)
        row_values |= to_form_values(cell, data, cell_path)
    return row_values


PLACEHOLDERS: dict[InputKind, str] = {
    "texts": "one per line",
    "json": "JSON",
    "number": "a number",
    "iri": "http://...",
}
"""What an empty input shows, by the kind of its field."""
MAX_LINE_CHARS = 80
"""Characters of the longest text that is edited in an input of one line."""
MAX_OPTION_CHARS = 120
"""Characters shown of an option."""


def render_fields(field: FormField, values: FormValues, revision: int = 0) -> Html:
    """Render the inputs of a form, filled with the values.

    A page keeps what a person is typing when the form is rendered again, until the ``revision``
    changes.
    """
    return render_template(
        "show/templates/form.html",
        form=sys.modules[__name__],
        field=field,
        values=values,
        revision=revision,
    )


MANUAL_REASON = "chosen by hand"
"""The reason of an output in which a person chose another option, and did not write a reason."""


class OutputForm:
    """The form of a step's output.

    It is filled with the output; before the step is done, with the inputs that have the names of
    its fields.
    """

    def __init__(self, step: Step) -> None:
        """Make the form of a step, and fill it with the output or, before that, with inputs.

        Fields that are chosen among records of the inputs become choices, see ``choice_fields``.
        """
        self.step = step
        self.choice_fields = choice_fields(step)
        field = field_for_type(step.output_type)
        is_group = field.kind == "group"
        if step.done:
            data = to_data(step.output, step.output_type)
        else:
            data = empty_data(field)
            if is_group:
                data |= self._inputs_by_field(field)
        if is_group:
            data = {part.name: data[part.name] for part in field.subfields}
            parts = [self.choice_fields.get(part.name, part) for part in field.subfields]
            field = replace(field, subfields=tuple(parts))
        self.field = fit_field(field, data)
        self.initial_values = to_form_values(self.field, data)
        self.data = parse_form_values(self.field, self.initial_values)
        """The data of the form as long as nothing was typed."""

    def _inputs_by_field(self, group: FormField) -> dict[str, Any]:
        """Return the step's inputs that have the name of a field of the group, as data.

        Inputs that are None, and fields that are chosen among records, are left out.
        """
        inputs = {}
        for part in group.subfields:
            value = self.step.inputs.get(part.name)
            if value is not None and part.name not in self.choice_fields:
                inputs[part.name] = to_data(value)
        return inputs

    def render(self, values: FormValues | None = None, revision: int = 0) -> Html:
        """Render the form with the given values, or with the initial ones; see ``render_fields``."""
        if values is None:
            values = self.initial_values
        return render_fields(self.field, values, revision)

    def parse(self, values: FormValues) -> Any:
        """Return the output that a person typed; the step's own output if nothing was changed.

        Fields that the form does not show keep their values, and values that follow from other
        fields are computed again. If another option was chosen and the reason was not edited, the
        reason becomes MANUAL_REASON. Raises OverrideError with the problem of each field that is
        wrong. A step that is not done has no own output: all fields come from the form.
        """
        step = self.step
        data = parse_form_values(self.field, values)
        if step.done and data == self.data:
            return step.output
        if step.done and self.field.kind == "group":
            old_data = to_data(step.output, step.output_type)
            data = {**old_data, **data}
            old_reason = getattr(step.output, "reason", MISSING)
            has_old_reason = data.get("reason") == old_reason
            if has_old_reason and self._has_other_choice(data):
                data["reason"] = MANUAL_REASON
        record = validate_record(data, step.output_type)
        return update_derived_fields(record)

    def _has_other_choice(self, data: Mapping[str, Any]) -> bool:
        """Return whether another option is chosen than in the step's own output."""
        return any(data[name] != self.data[name] for name in self.choice_fields)


def update_derived_fields(value: Any) -> Any:
    """Return a record with the fields computed again that follow from others.

    A value without the method ``with_derived_fields`` is returned as it is.
    """
    if hasattr(value, "with_derived_fields"):
        return value.with_derived_fields()
    return value


def choose_option(step: Step, position: int) -> Any:
    """Return the output of a step with another option chosen in its first choice field.

    ``position`` counts the records to choose from, from 0; -1 chooses none of them. Where several
    can be chosen, only this one is chosen then. A position that does not exist raises OverrideError
    where one record is chosen, and chooses none where several can be. The output must have a choice
    field.
    """
    form = OutputForm(step)
    name = next(iter(form.choice_fields))
    values = {}
    for key, text in form.initial_values.items():
        field_name, _, _ = key.partition(".")
        if field_name != name:
            values[key] = text
    if _find_subfield(form.field, [name]).kind == "choice":
        values[name] = str(position + 1)
    else:
        values[f"{name}.{position}"] = "on"
    return form.parse(values)


# Choices among the inputs


def choice_fields(step: Step) -> dict[str, FormField]:
    """Return the fields of a step's output that are chosen among records of its inputs, by name.

    The type of such a field is a tuple of records, or a record or None. The options are the records
    of that class in tuples of the inputs and, for a single record, also those in tuples of the
    output, and the present one. A tuple becomes check boxes, and a single record becomes a choice
    with "none" as its first option. Left out are hidden fields, fields without options, and a tuple
    with a record that is not among the inputs.
    """
    fields: dict[str, FormField] = {}
    if not is_dataclass(step.output_type):
        return fields
    output_type: Any = step.output_type
    marks = field_marks(output_type)
    for name, type_hint in get_type_hints(output_type).items():
        record_class = _record_class_in(type_hint)
        if record_class is None or marks[name] == "hidden":
            continue
        options = _find_options(step, name, type_hint, record_class)
        if options:
            has_many = get_origin(type_hint) is tuple
            fields[name] = _choice_field(name, options, has_many=has_many)
    return fields


def _record_class_in(type_hint: Any) -> type | None:
    """Return the first record class among the arguments of a type hint; None if there is none."""
    for argument in get_args(type_hint):
        if isinstance(argument, type) and is_dataclass(argument):
            return argument
    return None


def _find_options(step: Step, name: str, type_hint: Any, record_class: type) -> list[Any]:
    """Return the records that a field of the output can be chosen from.

    They are the records of the class in tuples of the inputs and, for a single record, also those
    in tuples of the output, and the present record. Returns nothing if the field cannot be a
    choice: a tuple holds a record that is not among the inputs, or a single record may not be None.
    """
    options: list[Any] = []
    for source in step.inputs.values():
        options += _records_in(source, record_class)
    current: Any = ()
    if step.done:
        current = getattr(step.output, name)
    if isinstance(current, tuple):
        if all(record in options for record in current):
            return options
        return []
    if NoneType not in get_args(type_hint):
        return []
    options += _records_in(step.output, record_class)
    if options and current is not None:
        options.append(current)
    return options


def _records_in(source: Any, record_class: type) -> list[Any]:
    """Return the records of a class in a tuple, or in the fields of a record that are tuples.

    Returns nothing for any other value. They are in order, with repetitions. Tuples deeper inside
    are not searched.
    """
    parts = [source]
    if is_record(source):
        source_class: Any = type(source)
        parts = [getattr(source, name) for name in field_marks(source_class)]
    records = []
    for part in parts:
        if isinstance(part, tuple):
            records += [record for record in part if isinstance(record, record_class)]
    return records


def _choice_field(name: str, options: list[Any], *, has_many: bool) -> FormField:
    """Return a field to choose among options, each option once.

    With ``has_many``, any number of them can be ticked. Otherwise it is one of them, or "none",
    which comes first and is None.
    """
    distinct = list(dict.fromkeys(options))
    choices = [to_data(option) for option in distinct]
    labels = _label_options(distinct)
    kind: InputKind = "ticks"
    if not has_many:
        kind = "choice"
        choices = [None, *choices]
        labels = ["none", *labels]
    return FormField(name, kind, choices=tuple(choices), choice_labels=tuple(labels))


def _label_options(options: Sequence[Any]) -> list[str]:
    """Return a label for each option in one line; all its data where two labels would be the same."""

    def format_line(position: int) -> str:
        """Return the option at a position in one line."""
        return one_line(options[position])

    def format_data(position: int) -> str:
        """Return all data of the option at a position as JSON."""
        return json.dumps(to_data(options[position]))

    labels = tell_apart(range(len(options)), (format_line, format_data))
    return list(labels.values())
