"""The views of RAGonite's records: schema with diagram, source, answer with its sources."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

from rdflib import URIRef

from kgwb.build import (
    Command,
    CommandResult,
    Edge,
    Html,
    InputError,
    Node,
    RenderContext,
    Role,
    Run,
    SettingError,
    Settings,
    Subgraph,
    View,
    button,
    collapsible,
    div,
    join,
    muted_text,
    note,
    pluralize,
    render,
    render_explanation,
    render_svg,
    render_triples,
    score_bar,
    shorten,
    span,
    state_badge,
    table,
    tag,
)
from kgwb.systems.ragonite import records
from kgwb.systems.ragonite.annotations import (
    Change,
    add_changes,
    apply_annotations,
    merge_changes,
    read_changes,
    undo_change,
)
from kgwb.systems.ragonite.database_file import open_database
from kgwb.systems.ragonite.records import Column, Schema, Table
from kgwb.systems.ragonite.settings import RagoniteSettings

MAX_DRAWN_TABLES = 12
"""Tables in the diagram of a schema. More of them are a list, since their links would cross."""
MAX_LINK_NAMES_CHARS = 24
"""Characters of the names of several links on one line; more of them are their number."""


def render_schema(value: records.Schema, context: RenderContext) -> Html:
    """Render a schema as numbers, its links, the triples in no table, and each table's SQL.

    The links between the tables of classes are a diagram, or a list if there are more than
    MAX_DRAWN_TABLES of them. The SQL is collapsed. In an interactive context a person can improve a
    table, and switch the tools.
    """
    links = _find_links(value)
    tables = [each for each in value.tables if not each.columns[0].references]
    shown_links = _list_links(links)
    if len(tables) <= MAX_DRAWN_TABLES:
        shown_links = render_svg(_draw_tables(tables, links))
    parts = [div("b", str(value)), shown_links, render_annotation_tools(value)]
    if context.is_interactive:
        parts.insert(1, render_configurations(context.settings))
    for reason, number in value.only_passages:
        triples = pluralize(number, "triple")
        parts.append(div("soft", f"{triples} only in passages: {reason}"))
    for sql_table in value.tables:
        row_count = muted_text(pluralize(sql_table.rows, "row"))
        head = join(tag("b", sql_table.name), row_count)
        statement = tag("pre", str(sql_table), class_="src")
        form = render_table_form(sql_table) if context.is_interactive else Html()
        parts.append(collapsible(head, statement, form, key=sql_table.name))
    return div("body stack", *parts)


Links = Mapping[tuple[str, str], Sequence[str]]
"""The columns by which one table refers to another, by the names of both tables."""


def _find_links(schema: records.Schema) -> Links:
    """Return the columns by which the tables of classes refer to each other, by the names of both tables.

    A table that only holds values of a predicate is not one of them: its link starts at the table
    that its first column references.
    """
    links: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for sql_table in schema.tables:
        start = sql_table.columns[0].references or sql_table.name
        for column in sql_table.columns[1:]:
            if column.references:
                links[start, column.references].append(column.name)
    return links


def _draw_tables(tables: Sequence[records.Table], links: Links) -> Subgraph:
    """Return a graph to draw: tables as nodes with their number of rows, and one edge for all links between two.

    An edge is labelled by the names of the columns, or by their number if the names have more than
    MAX_LINK_NAMES_CHARS; its tooltip names them all.
    """
    iris = {}
    for each in tables:
        iris[each.name] = URIRef(f"urn:kgwb:table:{each.name}")
    nodes = []
    for sql_table in tables:
        label = f"{sql_table.name} ({sql_table.rows:,})"
        nodes.append(Node(iris[sql_table.name], label, (Role("support"),)))
    edges = []
    for (start, end), columns in links.items():
        if start in iris and end in iris:
            label = ", ".join(columns)
            if len(label) > MAX_LINK_NAMES_CHARS:
                label = pluralize(len(columns), "link")
            predicate = URIRef(f"urn:kgwb:{','.join(columns)}")
            roles = tuple(Role("relation", column) for column in columns)
            edges.append(Edge((iris[start], predicate, iris[end]), label, roles))
    return Subgraph(tuple(nodes), tuple(edges))


def _list_links(links: Links) -> Html:
    """Render a table with a row for each two tables of which one refers to the other, with the columns."""
    rows = []
    previous = ""
    for (start, end), columns in sorted(links.items()):
        name = tag("b", start) if start != previous else ""
        rows.append((name, ", ".join(columns), f"→ {end}"))
        previous = start
    return table(("table", "columns", "refers to"), rows)


def render_source(value: records.Source, context: RenderContext) -> Html:
    """Render a passage with its score, or a query with its rows or error; then the supporting triples.

    A passage of a document is marked as a text. The support is collapsed, and left out if there is
    none.
    """
    if value.tool == "passages":
        mark = None
        if value.file:
            mark = span("chip", "text")
        title = tag("b", shorten(value.title))
        head = div("row", mark, title, score_bar(max(value.score, 0.0)))  # a cosine may be negative
        parts = [head, tag("bdi", value.text)]
    else:
        parts = [tag("pre", value.title, class_="src")]
        if value.error:
            parts.append(note(value.error, level="bad"))
        else:
            row_count = str(value)
            if value.cut:
                row_count += " and more"
            parts += [div("b", row_count), table(value.columns, value.rows)]
    if value.triples:
        head = muted_text(pluralize(len(value.triples), "triple"))
        triples = render_triples(value.triples, context)
        parts.append(collapsible(head, triples, key=value.title[:60]))
    return div("body stack", *parts)


def render_cited_answer(value: records.CitedAnswer, context: RenderContext) -> Html:
    """Render the answer, its reason, its values with citations, and each source, cited or not.

    The sources are numbered from 1 and collapsed; a badge says whether the text or a value cites one.
    """
    rows = []
    for cited in value.values:
        citations = ", ".join(f"[{number}]" for number in cited.sources)
        rows.append((cited.value, citations))
    parts = [
        div("b", value.text),
        render_explanation(value.reason),
        table(("value", "sources"), rows),
    ]
    for number, source in enumerate(value.sources, 1):
        badge = span("soft", "not cited")
        if number in value.cited_numbers:
            badge = state_badge("kept", "cited")
        title = shorten(source.title, 80)
        kind: str = source.tool
        if source.file:
            kind = "text"
        head = join(tag("b", f"[{number}] "), kind, " ", title, " ", badge)
        details = render(source, context)
        parts.append(collapsible(head, details, key=f"source {number}"))
    return div("body stack", *parts)


VIEWS: Mapping[type, View] = {
    records.CitedAnswer: render_cited_answer,
    records.Schema: render_schema,
    records.Source: render_source,
}

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
    shown_label = label
    if is_present:
        shown_label = f"✓ {label}"
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
    induced = shown.name_by_induction
    rows = []
    for column in shown.columns:
        rows.append(_render_column(shown, column))
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

    A key can be neither renamed nor dropped here, and only texts have a unit in them.
    """
    induced = column.name_by_induction
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
        "" if is_key else drop,
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
        id=f"improve-{shown.name_by_induction}-{name}",
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
        id=f"improve-{shown.name_by_induction}-{name}",
        aria_label=spoken or None,
    )
    return tag("label", box, " ", label, class_="tick")


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
        if shown.name_by_induction == induced:
            break
    else:
        raise SettingError(
            f"there is no table {induced} in the database of this graph any more, so it is not changed",
            hint="press Run in this cell to make the database again, and change it there",
        )
    changes = []
    for column in shown.columns:
        column_name = column.name_by_induction
        comment = form.get(f"comment {column_name}", column.remark).strip()
        change = Change(
            induced,
            column_name,
            name=_find_new_name(form, f"name {column_name}", column),
            comment=comment if comment != column.remark else None,
            dropped=f"dropped {column_name}" in form or None,
            strip_unit=f"unit {column_name}" in form or None,
        )
        changes.append(change)
    new_name = _find_new_name(form, "table_name", shown)
    changes.append(Change(induced, name=new_name, dropped="table_dropped" in form or None))
    return [change for change in changes if change != Change(induced, change.column)]


def _find_new_name(form: Mapping[str, str], field: str, named: Table | Column) -> str | None:
    """Return the new name of a table or column; None if it is the present one, "" for the induced."""
    typed = form.get(field, named.name).strip()
    if typed == named.name:
        return None
    return "" if typed == named.name_by_induction else typed


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
    changes = {}
    for setting in CONFIGURATIONS:
        if setting in form:
            changes[setting] = form[setting]
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
