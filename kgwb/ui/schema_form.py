"""The form of any schema as widgets: labelled inputs, tables with a row of inputs each, groups."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import ipywidgets as widgets

from kgwb.ui.fields import Field, blank, fitted, read, typed
from kgwb.ui.kit import Panel, field, markup, row, tag

WIDE = "min(100%, 75em)"
LABELS = {"description_width": "8em"}


class SchemaForm(widgets.VBox):
    """A field and its parts, filled with data; ``changed`` is called after every change."""

    def __init__(
        self, field: Field, data: Any, panel: Panel, changed: Callable[[], None] = lambda: None
    ) -> None:
        super().__init__(layout=widgets.Layout(width="auto"))
        self.field, self._panel, self._changed = fitted(field, data), panel, changed
        build = {"group": self._build_group, "table": self._build_table}.get(
            self.field.kind, self._build_input
        )
        self.children = build(data)

    def value(self) -> Any:
        """The JSON data. Raises OverrideError that says what is wrong where."""
        return read(self.field, self.typed())

    def typed(self) -> Any:
        """What stands in the fields, right or wrong."""
        if self.field.kind == "group":
            return {name: part.typed() for name, part in self._parts.items()}
        if self.field.kind == "table":
            return [[cell.value for cell in one.cells] for one in self._rows]
        return self._input.value

    def input(self, field: Field, value: Any) -> widgets.Widget:
        """The widget of a field that has no parts, watched."""
        made = _input(field, value)
        self._panel.watch(made, lambda _: self._changed())
        return made

    def buttons(self, one: _Row) -> widgets.HBox:
        """What can be done to a row of the table."""
        actions = {"Up": -1, "Down": 1, "Remove": 0}
        made = (self._panel.button(text, partial(self._move, one, by)) for text, by in actions.items())
        return row(*made, flex_flow="row")

    def _build_input(self, data: Any) -> tuple[widgets.Widget, ...]:
        self._input = self.input(self.field, typed(self.field, data))
        return (self._input,)

    def _build_group(self, data: Any) -> tuple[widgets.Widget, ...]:
        self._parts = {
            part.name: SchemaForm(part, data[part.name], self._panel, self._changed)
            for part in self.field.fields
        }
        return tuple(map(_labelled, self._parts.values()))

    def _build_table(self, data: Any) -> tuple[widgets.Widget, ...]:
        rows = typed(self.field, data)
        columns = f"{_widths(self.field, rows)} auto"
        layout = widgets.Layout(
            grid_template_columns=columns, grid_gap="2px 6px", align_items="flex-start", width=WIDE
        )
        self._grid = widgets.GridBox(layout=layout)
        self._rows = [_Row(self, cells) for cells in rows]
        self._arrange()
        left = widgets.Layout(align_self="flex-start")
        return (self._grid, self._panel.button("Add row", self._add, layout=left))

    def _add(self) -> None:
        self._rows.append(_Row(self, [typed(column, blank(column)) for column in self.field.fields]))
        self._arrange()
        self._changed()

    def _move(self, one: _Row, by: int) -> None:
        place = self._rows.index(one)
        self._rows.remove(one)
        if by:
            self._rows.insert(max(place + by, 0), one)
        self._arrange()
        self._changed()

    def _arrange(self) -> None:
        heads = [markup(tag("b", column.label)) for column in self.field.fields]
        rows = (part for one in self._rows for part in (*one.cells, one.buttons))
        self._grid.children = (*heads, markup(), *rows) if self._rows else (markup("none yet"),)


class _Row:
    """A row of a table: its cells, and what can be done to it."""

    def __init__(self, table: SchemaForm, cells: Sequence[Any]) -> None:
        columns = table.field.fields
        self.cells = [table.input(column, cell) for column, cell in zip(columns, cells, strict=True)]
        for column, cell in zip(columns, self.cells, strict=True):
            cell.description, cell.layout = "", widgets.Layout(width="auto", min_width="5em")
            cell.tooltip = column.label
        self.buttons = table.buttons(self)


def _input(field: Field, value: Any) -> widgets.Widget:
    """The widget of a field that has no parts; a number is a text, so that whatever is typed stays."""
    traits: dict[str, Any] = {
        "description": field.label,
        "style": LABELS,
        "layout": widgets.Layout(width=WIDE),
    }
    if field.kind == "choice":
        options = [("(none)" if choice in (None, "") else str(choice), choice) for choice in field.choices]
        return widgets.Dropdown(options=options, value=value, **{**traits, "layout": widgets.Layout()})
    if field.kind == "flag":
        return widgets.Checkbox(value=value, indent=False, **traits)
    hint = {"texts": "one a line", "json": "JSON", "number": "a number", "whole": "a whole number"}
    long = field.kind in ("texts", "json") or len(value) > 80 or "\n" in value
    if not long:
        return widgets.Text(value, placeholder=hint.get(field.kind, ""), **traits)
    rows = min(max(value.count("\n") + 1, len(value) // 80, 2), 12)
    return widgets.Textarea(value, placeholder=hint.get(field.kind, ""), rows=rows, **traits)


def _widths(table: Field, rows: Sequence[Sequence[Any]]) -> str:
    """Columns as wide as what stands in them asks for, within limits."""
    longest = (max((len(str(row[place])) for row in rows), default=0) for place in range(len(table.fields)))
    return " ".join(f"minmax(5em, {min(max(length, 12), 48)}fr)" for length in longest)


def _labelled(part: SchemaForm) -> widgets.Widget:
    """Parts of a group: a table and a group under a heading, the others carry their labels themselves."""
    if part.field.kind in ("group", "table"):
        return field(part.field.label, part)
    return part
