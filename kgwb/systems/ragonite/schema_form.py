"""What a person does with the schema in RAGonite's cell: improve the tables, undo it, switch the tools."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from kgwb.build import (
    Command,
    CommandResult,
    Html,
    InputError,
    Run,
    SettingError,
    Settings,
    button,
    collapsible,
    div,
    join,
    muted_text,
    pluralize,
    span,
    table,
    tag,
)
from kgwb.systems.ragonite.annotated_tables import apply_annotations
from kgwb.systems.ragonite.annotations import (
    Change,
    add_changes,
    merge_changes,
    read_changes,
    undo_change,
)
from kgwb.systems.ragonite.database_file import open_database
from kgwb.systems.ragonite.records import Column, Schema, Table
from kgwb.systems.ragonite.settings import RagoniteSettings

DEFAULT_FILE = "annotations.jsonl"
CONFIGURATIONS: Mapping[str, Mapping[str, str]] = {
    "ablation": {
        "none": "tables and passages",
        "sql_only": "tables alone",
        "passages_only": "passages alone",
        "sparql_only": "SPARQL over the graph",
    },
    "passage_ranking": {
        "fused": "passages by meaning and words",
        "vectors": "passages by meaning, as published",
    },
}
"""What a person can switch, by the name and the value of a setting (section 4 and figure 4)."""
HEADINGS = ("column", "name", "comment for the model", "drop", "strip the unit")

# The forms


def render_configurations(settings: Settings | None) -> Html:
    """Render a row of buttons for each setting that can be switched; the value in use is marked."""
    present = RagoniteSettings.of(settings)
    rows = []
    for setting, labels in CONFIGURATIONS.items():
        buttons = []
        for value, label in labels.items():
            is_present = value == getattr(present, setting)
            buttons.append(_render_switch(setting, value, label, is_present=is_present))
        rows.append(div("row controls", muted_text("use"), *buttons))
    return div("stack tight", *rows)


def _render_switch(setting: str, value: str, label: str, *, is_present: bool) -> Html:
    """Render the button that gives a setting a value; disabled if it has that value."""
    field = tag("input", type="hidden", name=setting, value=value)
    shown_label = f"✓ {label}" if is_present else label
    choose = button(
        shown_label,
        "command",
        class_="ghost",
        arg="configure",
        disabled=is_present,
        aria_pressed=str(is_present).lower(),
    )
    return tag("form", field, choose, data_do="command", data_arg="configure")


def render_annotation_tools(schema: Schema) -> Html:
    """Render how many annotations there are, with a button that undoes the last change."""
    if not schema.annotations:
        return Html()
    number = pluralize(schema.annotations, "annotation")
    undo = button("Undo the last change", "command", "back", "ghost", arg="undo_annotation")
    return div("row", span("soft", f"improved by {number}"), span("controls", undo))


def render_table_form(shown: Table) -> Html:
    """Render a collapsed form in which a person renames, comments and drops what a table has."""
    induced = induced_name_of(shown)
    rows = [_render_column(shown, column) for column in shown.columns]
    name = _text_input(shown, "table_name", "name of the table", shown.name)
    file = _text_input(shown, "file", "file of the changes", "", placeholder=DEFAULT_FILE)
    parts = (
        tag("input", type="hidden", name="table", value=induced),
        div(
            "row",
            muted_text("table"),
            div("grow", name),
            _tick(shown, "table_dropped", "drop the table"),
        ),
        table(HEADINGS, rows),
        div(
            "row",
            muted_text("save to"),
            div("grow", file),
            muted_text("empty for the file in use"),
        ),
        button("Save and run again", "command", "hand", "primary", arg="annotate"),
    )
    form = tag(
        "form",
        *parts,
        class_="stack controls",
        id=f"improve-form-{induced}",
        data_do="command",
        data_arg="annotate",
    )
    return collapsible(muted_text("improve this table"), form, key=f"improve-{induced}")


def _render_column(shown: Table, column: Column) -> tuple[object, ...]:
    """Return the cells of a column in the form: what it is, and the fields to change it.

    A key cannot be renamed, neither keys nor names dropped, and only texts have a unit in them.
    """
    induced = induced_name_of(column)
    kind = muted_text(column.references or column.type)
    label = join(tag("b", induced), " ", kind)
    is_key = column is shown.columns[0]
    is_name = column is shown.columns[1] and not shown.columns[0].references
    is_text = column.type.startswith("TEXT") and not column.references
    name = _text_input(shown, f"name {induced}", f"name of {induced}", column.name)
    drop = _tick(shown, f"dropped {induced}", "", f"drop {induced}")
    strip = _tick(shown, f"unit {induced}", "", f"strip the unit of {induced}")
    return (
        label,
        column.name if is_key else name,
        _text_input(shown, f"comment {induced}", f"comment for {induced}", column.remark),
        "" if is_key or is_name else drop,
        strip if is_text and not is_key and not is_name else "",
    )


def _text_input(
    shown: Table, name: str, label: str, value: str, placeholder: str | None = None
) -> Html:
    """Render a field with a text, which is replaced when the text changes in Python."""
    return tag(
        "input",
        type="text",
        name=name,
        value=value,
        id=f"improve-{induced_name_of(shown)}-{name}",
        aria_label=label,
        placeholder=placeholder,
        autocomplete="off",
        data_rev=value,
    )


def _tick(shown: Table, name: str, label: str, spoken: str = "") -> Html:
    """Render a check box. ``spoken`` is what screen readers say of one without a label."""
    box = tag(
        "input",
        type="checkbox",
        name=name,
        id=f"improve-{induced_name_of(shown)}-{name}",
        aria_label=spoken or None,
    )
    return tag("label", box, " ", label, class_="tick")


def induced_name_of(value: Table | Column) -> str:
    """Return the name that induction gave to a table or a column."""
    return value.induced_name or value.name


# The commands


def annotate(run: Run, form: Mapping[str, str]) -> CommandResult:
    """Write what a person changed in the form of a table to the file of annotations.

    The changes are tried on a copy of the database first. Raises SettingError if nothing was
    changed, if a change does not fit, or if the file cannot be written.
    """
    settings = RagoniteSettings.of_run(run)
    source = form.get("file", "").strip() or settings.annotations or DEFAULT_FILE
    path = Path(source).expanduser()
    changes = _find_changes(run.output("ragonite"), form)
    if not changes:
        raise SettingError(
            "nothing was changed in the table, so nothing was saved",
            hint="first type another name or a comment",
        )
    known = read_changes(path) if path.exists() else []
    _try_changes(run, [*known, *changes])
    add_changes(path, changes)
    number = pluralize(len(changes), "change")
    message = f"{number} saved to {source}; the setting annotations={source} uses them"
    return CommandResult({"annotations": source}, message)


def _find_changes(schema: Schema, form: Mapping[str, str]) -> list[Change]:
    """Return what differs between the form of a table and the schema. Raises SettingError."""
    induced = form.get("table", "")
    for shown in schema.tables:
        if induced_name_of(shown) == induced:
            break
    else:
        raise SettingError(
            f"there is no table {induced} in the database of this graph any more, so it is not changed",
            hint="press Run in this cell to make the database again, and change it there",
        )
    changes = []
    for column in shown.columns:
        column_name = induced_name_of(column)
        name = form.get(f"name {column_name}", column.name).strip()
        comment = form.get(f"comment {column_name}", column.remark).strip()
        change = Change(
            induced,
            column_name,
            name=_changed_name(name, column),
            comment=comment if comment != column.remark else None,
            dropped=True if f"dropped {column_name}" in form else None,
            strip_unit=True if f"unit {column_name}" in form else None,
        )
        if change != Change(induced, column_name):
            changes.append(change)
    table_name = form.get("table_name", shown.name).strip()
    table_change = Change(
        induced,
        name=_changed_name(table_name, shown),
        dropped=True if "table_dropped" in form else None,
    )
    if table_change != Change(induced):
        changes.append(table_change)
    return changes


def _changed_name(typed: str, named: Table | Column) -> str | None:
    """Return the new name of a table or column; None if it is the present one, "" for the induced."""
    if typed == named.name:
        return None
    return "" if typed == induced_name_of(named) else typed


def _try_changes(run: Run, changes: list[Change]) -> None:
    """Apply changes to a copy of the database in memory.

    Raises SettingError if they do not fit, and InputError in a replay.
    """
    graph = run.unrecorded_graph
    if graph is None:
        raise InputError(
            "the change was not saved: this run is a replay without a graph, on which it could be tried",
            hint="open the run with its graph: kgwb.load_run(path, kg=kgwb.open_kg(...))",
        )
    induced = open_database(graph, RagoniteSettings.of_run(run), run.embeddings)
    with closing(sqlite3.connect(":memory:")) as connection:
        induced.copy_to(connection)
        apply_annotations(merge_changes(changes), connection)


def undo_annotation(run: Run, form: Mapping[str, str]) -> CommandResult:
    """Remove the last change from the file of annotations. Raises SettingError if there is none."""
    source = RagoniteSettings.of_run(run).annotations
    if not source:
        raise SettingError(
            "there is nothing to undo: this run has no annotations",
            hint="change a table first, in the cell of its tables",
        )
    change = undo_change(Path(source).expanduser())
    return CommandResult({"annotations": source}, f"the change of {change} was undone in {source}")


def configure(run: Run, form: Mapping[str, str]) -> CommandResult:
    """Let the run use other tools, or another ranking of passages. Raises SettingError."""
    changes = {setting: form[setting] for setting in CONFIGURATIONS if setting in form}
    if not changes:
        raise SettingError(
            "nothing was changed: the event names neither tools nor a ranking",
            hint="press one of the buttons of this cell that name tools, or a ranking of passages",
        )
    labels = []
    for setting, value in changes.items():
        labels.append(CONFIGURATIONS[setting].get(value, value))
    return CommandResult(changes, f"this run uses {', '.join(labels)}")


COMMANDS: Mapping[str, Command] = {
    "annotate": annotate,
    "undo_annotation": undo_annotation,
    "configure": configure,
}
