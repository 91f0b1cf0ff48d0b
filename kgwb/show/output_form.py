"""The form in which a person edits the output of a step, or chooses among the inputs of the step, as HTML."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass, replace
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

from kgwb.records import field_marks, is_record, one_line, to_data
from kgwb.run.steps import Step
from kgwb.show.form import (
    MISSING,
    FormField,
    FormValues,
    InputKind,
    empty_data,
    field_for_type,
    fit_field,
    input_name,
    join_path,
    parse_form_values,
    row_numbers,
    to_form_values,
    validate_record,
)
from kgwb.show.html import Html, button, div, span, tag
from kgwb.text import shorten, tell_apart

PLACEHOLDERS: dict[InputKind, str] = {
    "texts": "one per line",
    "json": "JSON",
    "number": "a number",
    "iri": "http://...",
}
"""What an empty input shows, by the kind of its field."""
MAX_LINE_CHARS = 80
"""Characters of the longest text that is edited in an input of one line."""
MIN_TEXTAREA_LINES = 2
MAX_TEXTAREA_LINES = 12
MAX_OPTION_CHARS = 120
"""Characters shown of an option."""


def render_fields(field: FormField, values: FormValues, path: str = "", revision: int = 0) -> Html:
    """Render the inputs of a field, filled with the values.

    ``path`` is the path of the field in the data. A page keeps what a person is typing when the
    form is rendered again, until the ``revision`` changes.
    """
    renderer = FormRenderer(values, revision)
    return renderer.render(field, path)


class FormRenderer:
    """Renders the fields of a form, each with its path in the data; see ``render_fields``."""

    def __init__(self, values: FormValues, revision: int) -> None:
        self.values = values
        self.revision = revision

    def render(self, field: FormField, path: str) -> Html:
        """Render the inputs of a field, by its kind, with the values of the form.

        ``path`` is the path of the field in the data; the names of the inputs are made of it.
        """
        match field.kind:
            case "group":
                return self._render_group(field, path)
            case "table":
                return self._render_table(field, path)
            case "ticks":
                return self._render_ticks(field, path)
        return self._render_input(field, path)

    def _render_group(self, group: FormField, path: str) -> Html:
        """Render the parts of a group below each other, each with its label above its inputs.

        A part with one input that is no check box is a label element: a click on the label selects
        the input.
        """
        parts = []
        for part, part_path in group.parts(path):
            element = "label"
            if part.kind in ("group", "table", "ticks", "flag"):
                element = "div"
            caption = span("b", part.label)
            inputs = self.render(part, part_path)
            parts.append(tag(element, caption, inputs, class_="f"))
        return div("stack", *parts)

    def _render_table(self, table: FormField, path: str) -> Html:
        """Render a table: labels of the columns, the rows, and a button to add a row.

        Each row has a button to remove it. The buttons send "more" with the path of the table, and
        "less" with that of the row.
        """
        columns = len(table.subfields)
        grid = f"grid-template-columns: repeat({columns}, minmax(0, 1fr)) 24px"
        captions = [span("caption", column.label) for column in table.subfields]
        lines = [div("triple-in", *captions, style=grid)]
        name = input_name(path)
        add_id = f"more-{name}"
        for number in row_numbers(self.values, path):
            row_path = join_path(path, number)
            cells = []
            for column, cell_path in table.parts(row_path):
                cell = self.render(column, cell_path)
                cells.append(cell)
            remove = button(
                "Remove this row", "less", "bad", "ghost square", arg=row_path, data_then=add_id
            )
            cells.append(remove)
            lines.append(div("triple-in", *cells, style=grid))
        add = button("Add a row", "more", "plus", "ghost", arg=name, id=add_id)
        return div("stack tight", *lines, add)

    def _render_ticks(self, field: FormField, path: str) -> Html:
        """Render a check box for each option.

        Its name is the path with the position of the option.
        """
        ticks = []
        for position, label in enumerate(field.choice_labels):
            name = join_path(path, position)
            is_ticked = name in self.values
            box = tag("input", type="checkbox", name=name, checked=is_ticked)
            text = tag("bdi", label)
            tick = tag("label", box, " ", text, class_="tick")
            ticks.append(tick)
        return div("stack tight scroll", *ticks)

    def _render_input(self, field: FormField, path: str) -> Html:
        """Render one input: a check box, a list of options, a line of text, or several lines.

        JSON and lists of texts have several lines, and so has a text that is longer than
        MAX_LINE_CHARS or has a line end. A choice is a list of its options. ``data_rev`` makes a
        page replace what was typed when the revision changes.
        """
        name = input_name(path)
        text = self.values.get(name, "")
        attributes = {
            "name": name,
            "id": f"field-{path}",
            "aria_label": _input_label(field, path),
            "data_rev": self.revision,
        }
        if field.kind == "flag":
            is_ticked = name in self.values
            return tag("input", type="checkbox", checked=is_ticked, **attributes)
        if field.kind == "choice":
            options = _render_options(field, text)
            return tag("select", *options, **attributes)

        placeholder = PLACEHOLDERS.get(field.kind)
        fits_one_line = len(text) <= MAX_LINE_CHARS and "\n" not in text
        if fits_one_line and field.kind not in ("texts", "json"):
            return tag(
                "input",
                type="text",
                value=text,
                placeholder=placeholder,
                autocomplete="off",
                **attributes,
            )
        return tag(
            "textarea",
            "\n",  # a browser drops the first line end
            text,
            rows=_textarea_height(text),
            placeholder=placeholder,
            **attributes,
        )


def _textarea_height(text: str) -> int:
    """Return the lines that a text needs, but between MIN_ and MAX_TEXTAREA_LINES."""
    typed_lines = text.count("\n") + 1
    wrapped_lines = len(text) // MAX_LINE_CHARS
    height = max(typed_lines, wrapped_lines, MIN_TEXTAREA_LINES)
    return min(height, MAX_TEXTAREA_LINES)


def _input_label(field: FormField, path: str) -> str:
    """Return the label of an input for screen readers.

    It has the number of the row in a table: "relation 2". A field without a label is called
    "value".
    """
    names = path.split(".")
    positions = list(filter(str.isdigit, names))
    if positions and field.name:
        row = int(positions[0]) + 1
        return f"{field.label} {row}"
    return field.label or "value"


def _render_options(field: FormField, selected: str) -> list[Html]:
    """Return the option elements of a choice; the value of an option is its position.

    ``selected`` is the value of the option that is selected. Labels are cut at MAX_OPTION_CHARS
    characters.
    """
    labels = field.choice_labels or [str(choice) for choice in field.choices]
    options = []
    for n, label in enumerate(labels):
        text = shorten(label, MAX_OPTION_CHARS)
        is_selected = str(n) == selected
        option = tag("option", text, value=n, selected=is_selected)
        options.append(option)
    return options


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
            shown_data = {}
            parts = []
            for part in field.subfields:
                name = part.name
                shown_data[name] = data[name]
                parts.append(self.choice_fields.get(name, part))
            data = shown_data
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
        return render_fields(self.field, values, "", revision)

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
        changed = [name for name in self.choice_fields if data[name] != self.data[name]]
        return bool(changed)


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
    [field] = [part for part in form.field.subfields if part.name == name]
    values = {}
    for key, text in form.initial_values.items():
        if key.partition(".")[0] != name:
            values[key] = text
    if field.kind == "choice":
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
            is_tuple = get_origin(type_hint) is tuple
            fields[name] = _choice_field(name, options, has_many=is_tuple)
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
        for record in current:
            if record not in options:
                return []
        return options
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
        names = field_marks(type(source))
        parts = [getattr(source, name) for name in names]
    records = []
    for part in parts:
        if not isinstance(part, tuple):
            continue
        for record in part:
            if isinstance(record, record_class):
                records.append(record)
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
