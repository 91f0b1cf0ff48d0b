"""The form of any schema as widgets: labelled inputs, tables with a row of inputs each, groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ipywidgets as widgets

from kgwb.ui.fields import Field, blank, fitted, read, typed
from kgwb.ui.kit import Panel, field, markup, tag

WIDE = "min(100%, 75em)"
HINTS = {"texts": "one a line", "json": "JSON", "number": "a number", "iri": "http://..."}


class SchemaForm(widgets.VBox):
    """A field and its parts, filled with data."""

    def __init__(self, field: Field, data: Any, panel: Panel) -> None:
        super().__init__(layout=widgets.Layout(width="auto"))
        self.field, self._panel = fitted(field, data), panel
        build = {"group": self._group, "table": self._table}.get(self.field.kind, self._plain)
        self.children = build(data)

    def value(self) -> Any:
        """The JSON data. Raises OverrideError that says what is wrong where."""
        return read(self.field, self.typed())

    def typed(self) -> Any:
        """What stands in the fields, right or wrong."""
        if self.field.kind == "group":
            return {part.field.name: part.typed() for part in self._parts}
        if self.field.kind == "table":
            return [[cell.value for cell in cells] for *cells, _ in self._rows]
        return self.children[0].value

    def _plain(self, data: Any) -> tuple[widgets.Widget, ...]:
        return (_input(self.field, typed(self.field, data)),)

    def _group(self, data: Any) -> tuple[widgets.Widget, ...]:
        """Parts with parts stand under a heading, the others carry their labels themselves."""
        self._parts = [SchemaForm(part, data[part.name], self._panel) for part in self.field.fields]
        nested = ("group", "table")
        return tuple(
            field(part.field.label, part) if part.field.kind in nested else part for part in self._parts
        )

    def _table(self, data: Any) -> tuple[widgets.Widget, ...]:
        widths = (f"minmax(5em, {3 if column.kind == 'iri' else 1}fr)" for column in self.field.fields)
        layout = {"grid_template_columns": f"{' '.join(widths)} auto", "grid_gap": "2px 6px"}
        self._grid = widgets.GridBox(layout=widgets.Layout(width=WIDE, align_items="flex-start", **layout))
        self._rows = [self._row(cells) for cells in typed(self.field, data)]
        self._arrange()
        left = widgets.Layout(align_self="flex-start")
        return (self._grid, self._panel.button("Add row", self._add, layout=left))

    def _row(self, values: Sequence[Any]) -> list[widgets.Widget]:
        """A row's cells, and the button that takes it away."""
        cells = [_input(column, value) for column, value in zip(self.field.fields, values, strict=True)]
        for cell in cells:
            cell.description, cell.tooltip = "", cell.description
            cell.layout = widgets.Layout(width="auto", min_width="5em")
        return [*cells, self._panel.button("Remove", lambda: self._remove(cells[0]))]

    def _add(self) -> None:
        self._rows.append(self._row([typed(column, blank(column)) for column in self.field.fields]))
        self._arrange()

    def _remove(self, first: widgets.Widget) -> None:
        self._rows = [one for one in self._rows if one[0] is not first]
        self._arrange()

    def _arrange(self) -> None:
        heads = [markup(tag("b", column.label)) for column in self.field.fields]
        cells = (cell for one in self._rows for cell in one)
        self._grid.children = (*heads, markup(), *cells) if self._rows else (markup("none yet"),)


def _input(field: Field, value: Any) -> widgets.Widget:
    """The widget of a field that has no parts; a number is a text, so that whatever is typed stays."""
    traits: dict[str, Any] = {"description": field.label, "style": {"description_width": "8em"}}
    if field.kind == "choice":
        options = [("(none)" if choice in (None, "") else str(choice), choice) for choice in field.choices]
        return widgets.Dropdown(options=options, value=value, **traits)
    traits["layout"] = widgets.Layout(width=WIDE)
    if field.kind == "flag":
        return widgets.Checkbox(value=value, indent=False, **traits)
    traits["placeholder"] = HINTS.get(field.kind, "")
    if field.kind not in ("texts", "json") and len(value) <= 80 and "\n" not in value:
        return widgets.Text(value, **traits)
    rows = min(max(value.count("\n") + 1, len(value) // 80, 2), 12)
    return widgets.Textarea(value, rows=rows, **traits)
