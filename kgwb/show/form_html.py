"""The inputs of a form as HTML."""

from __future__ import annotations

from kgwb.show.form import FormField, FormValues, InputKind, input_name, join_path, row_numbers
from kgwb.show.html import Html, button, div, span, tag
from kgwb.text import shorten

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
        for number in row_numbers(self.values, path):
            row_path = join_path(path, number)
            cells = []
            for column, cell_path in table.parts(row_path):
                cell = self.render(column, cell_path)
                cells.append(cell)
            remove = button("Remove this row", "less", "bad", "ghost square", arg=row_path)
            cells.append(remove)
            lines.append(div("triple-in", *cells, style=grid))
        name = input_name(path)
        add = button("Add a row", "more", "plus", "ghost", arg=name)
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
