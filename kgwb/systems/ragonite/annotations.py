"""Annotations: a person improves the induced tables (RAGonite, section 2.1 and figure 2, step 3).

They are a JSON Lines file beside the graph, one change a line, in the order in which they were made.
A change names its table and column as induction named them.
"""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

from kgwb.build import (
    Record,
    SettingError,
    append_text,
    from_data,
    list_first,
    pluralize,
    quote_text,
    read_json_lines,
    to_data,
    write_atomically,
)
from kgwb.systems.ragonite.database import read_reasons, read_schema, write_schema
from kgwb.systems.ragonite.database_file import Extension
from kgwb.systems.ragonite.induction import (
    FORBIDDEN_TABLE_PREFIXES,
    MAX_IDENTIFIER_CHARS,
    create_table,
)
from kgwb.systems.ragonite.records import Column, Table

FORMAT_KEY = "kgwb_annotations"
FORMAT_VERSION = 1
FIRST_LINE = json.dumps({FORMAT_KEY: FORMAT_VERSION}) + "\n"


@dataclass(frozen=True, slots=True)
class Change(Record):
    """What a person changed of a table or a column, which is named as induction named it.

    None is left as it is. An empty name or comment is the induced one.
    """

    table: str
    column: str = ""
    """Empty for the table itself."""
    name: str | None = None
    comment: str | None = None
    """What a model is told of the column."""
    dropped: bool | None = None
    strip_unit: bool | None = None
    """Whether texts such as "125 kW" become numbers."""

    def __str__(self) -> str:
        if self.column:
            return f"{self.table}.{self.column}"
        return self.table


def open_annotations(source: str) -> Extension:
    """Return the annotations in a file as an extension of the database.

    Raises SettingError for a file that is not there or has something else in it.
    """
    path = Path(source).expanduser()
    changes = merge_changes(read_changes(path))
    content = json.dumps([_to_full_data(change) for change in changes])
    identity = hashlib.sha256(content.encode()).hexdigest()
    return Extension("annotations", source, identity, partial(apply_annotations, changes))


def _to_full_data(change: Change) -> dict[str, Any]:
    """Return a change as JSON data, with what it leaves as it is as empty or false."""
    whole = Change("", name="", comment="", dropped=False, strip_unit=False)
    return _to_given_data(whole) | _to_given_data(change)


def _to_given_data(change: Change) -> dict[str, Any]:
    """Return a change as JSON data, without what it leaves as it is."""
    return {name: value for name, value in to_data(change).items() if value is not None}


def read_changes(path: Path) -> list[Change]:
    """Return the changes in a file, the oldest first. Raises SettingError, which names the line."""
    changes = []
    hint = "name a file that RAGonite's cell has written with the setting annotations"
    try:
        for number, entry in read_json_lines(path):
            if number == 1:
                if not isinstance(entry, dict) or entry.get(FORMAT_KEY) != FORMAT_VERSION:
                    raise SettingError(f"{path} is not a file of annotations", hint=hint)
                continue
            try:
                changes.append(_read_change(entry))
            except ValueError as error:
                raise SettingError(
                    f"line {number} of the annotations {path} is not an annotation",
                    hint="correct or remove this line; its fields are "
                    + ", ".join(field.name for field in fields(Change)),
                ) from error
    except OSError as error:
        reason = error.strerror or error
        raise SettingError(f"the annotations {path} cannot be read: {reason}", hint=hint) from error
    except ValueError as error:
        raise SettingError(f"{path} is not a file of annotations: {error}", hint=hint) from error
    return changes


def _read_change(entry: Any) -> Change:
    """Return the change in a line. Raises ValueError if it is none, or has an unknown field."""
    known = {field.name for field in fields(Change)}
    if isinstance(entry, dict) and not known.issuperset(entry):
        raise ValueError("an unknown field")
    change: Change = from_data(entry, Change)
    return change


def merge_changes(changes: list[Change]) -> tuple[Change, ...]:
    """Return what several changes make of each table and column; later ones replace earlier ones.

    They are in the order in which the tables and columns were first changed.
    """
    merged: dict[tuple[str, str], Change] = {}
    for change in changes:
        place = (change.table, change.column)
        known = merged.get(place, Change(*place))
        merged[place] = replace(known, **_to_given_data(change))
    return tuple(merged.values())


def add_changes(path: Path, changes: list[Change]) -> None:
    """Write changes at the end of a file, which is created if it is missing. Raises SettingError."""
    lines = list(map(_to_line, changes))
    try:
        if not path.exists():
            lines.insert(0, FIRST_LINE)
        append_text(path, "".join(lines))
    except OSError as error:
        raise _not_written(path, error) from error


def undo_change(path: Path) -> Change:
    """Remove the last change from a file, and return it. Raises SettingError if there is none."""
    changes = read_changes(path)
    if not changes:
        raise SettingError(
            f"the annotations {path} have no change to undo",
            hint="change a table or a column first",
        )
    try:
        write_atomically(path, [FIRST_LINE, *map(_to_line, changes[:-1])])
    except OSError as error:
        raise _not_written(path, error) from error
    return changes[-1]


def _to_line(change: Change) -> str:
    """Return the line of a change in the file. What it leaves as it is, is left out."""
    given = _to_given_data(change)
    if not change.column:
        del given["column"]
    return json.dumps(given, ensure_ascii=True) + "\n"


def _not_written(path: Path, error: OSError) -> SettingError:
    reason = error.strerror or error
    return SettingError(
        f"the annotations {path} cannot be written: {reason}",
        hint="name a file in another folder with the setting annotations",
    )


DROPPED_REASON = "a person dropped its column"
MAX_COMMENT_CHARS = 300
IDENTIFIER = re.compile(r"[^\W\d]\w*")
SET_PLACE_SQL = "UPDATE _triples SET place = ? WHERE place = ?"
UNITS_SQL = "SELECT DISTINCT unit FROM _triples WHERE place = ? AND low IS NOT NULL AND low = high"
FRACTION_SQL = "SELECT 1 FROM _triples WHERE place = ? AND low = high AND typeof(low) = 'real'"
WITHOUT_NUMBER_SQL = (
    "SELECT count(*) FROM _triples WHERE place = ? AND (low IS NULL OR low <> high)"
)
NUMBER_SQL = (
    "SELECT low FROM _triples WHERE subject = {table}.{key} AND place = ? AND cell = {table}.{column}"
    " AND low = high"
)


def apply_annotations(annotations: Iterable[Change], connection: sqlite3.Connection) -> None:
    """Change the tables and the schema of a database as annotations say.

    Raises SettingError if a table or column is not there, if a name is taken or is none, and if
    something cannot be dropped or has no unit to strip. Nothing may be used of the database then.
    """
    annotator = Annotator(connection)
    columns_first = sorted(annotations, key=lambda annotation: not annotation.column)
    for annotation in columns_first:
        annotator.apply(annotation)
    annotator.finish(len(columns_first))


class Annotator:
    """Applies annotations to a database, those of columns before those of their tables.

    Until the end, tables have their induced names as keys of ``tables``.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._schema = read_schema(connection)
        self._tables = {table.name: table for table in self._schema.tables}
        """The tables as they are now, by their induced names."""

    def apply(self, annotation: Change) -> None:
        """Apply an annotation. Raises SettingError."""
        if annotation.table not in self._tables:
            known = list_first(self._tables, 10)
            raise _refuse(annotation, "there is no such table", f"the tables are {known}")
        if annotation.column:
            self._change_column(annotation)
        elif annotation.dropped:
            self._drop_table(annotation)
        elif annotation.name:
            self._rename_table(annotation)

    def finish(self, count: int) -> None:
        """Store the changed schema, with the number of annotations."""
        schema = replace(
            self._schema,
            tables=tuple(self._tables.values()),
            only_passages=read_reasons(self._connection),
            annotations=count,
        )
        write_schema(self._connection, schema)

    # Columns

    def _change_column(self, annotation: Change) -> None:
        self._find_column(annotation)
        if annotation.dropped:
            self._drop_column(annotation)
            return
        if annotation.strip_unit:
            self._strip_unit(annotation)
        if annotation.name:
            self._rename_column(annotation)
        if annotation.comment:
            remark = " ".join(annotation.comment.split())[:MAX_COMMENT_CHARS]
            _, column = self._find_column(annotation)
            # Whoever shares a file writes into a prompt: in quotes, it is data like a text of the graph.
            parts = [quote_text(remark, MAX_COMMENT_CHARS), column.comment]
            comment = "; ".join(filter(None, parts))
            self._set_column(annotation, replace(column, comment=comment, remark=remark))

    def _find_column(self, annotation: Change) -> tuple[Table, Column]:
        """Return the table and the column of an annotation as they are now. Raises SettingError."""
        table = self._tables[annotation.table]
        for column in table.columns:
            if column.name_by_induction == annotation.column:
                return table, column
        known = list_first((column.name_by_induction for column in table.columns), 20)
        raise _refuse(annotation, "there is no such column", f"its columns are {known}")

    def _set_column(self, annotation: Change, *changed: Column) -> None:
        """Put a column into the schema in the place of the one of an annotation, or remove that."""
        table, before = self._find_column(annotation)
        columns = list(table.columns)
        position = columns.index(before)
        columns[position : position + 1] = changed
        self._tables[annotation.table] = replace(table, columns=tuple(columns))

    def _rename_column(self, annotation: Change) -> None:
        table, column = self._find_column(annotation)
        taken = [other.name for other in table.columns if other is not column]
        name = self._check_name(annotation, taken)
        rename = f"ALTER TABLE {table.name} RENAME COLUMN {column.name} TO {name}"
        self._execute(annotation, rename)
        places = (f"{table.name}.{name}", f"{table.name}.{column.name}")
        self._connection.execute(SET_PLACE_SQL, places)
        induced = column.name_by_induction
        self._set_column(annotation, replace(column, name=name, induced_name=induced))
        if column.is_primary_key:
            self._redirect(table.name, table.name, name)

    def _drop_column(self, annotation: Change) -> None:
        table, column = self._find_column(annotation)
        if column is table.columns[0]:
            raise _refuse(annotation, "the key of a table cannot be dropped", "rename it")
        if len(table.columns) == 2:
            raise _refuse(
                annotation, "a table needs two columns", "drop the table with all that is in it"
            )
        self._execute(annotation, f"ALTER TABLE {table.name} DROP COLUMN {column.name}")
        self._connection.execute(SET_PLACE_SQL, (DROPPED_REASON, f"{table.name}.{column.name}"))
        self._set_column(annotation)

    def _strip_unit(self, annotation: Change) -> None:
        """Make numbers of texts such as "125 kW", if all that are one have the same unit.

        The unit becomes the comment. Texts that are no number become NULL; it is said how many. If
        there are none, a column that is NOT NULL stays so.
        """
        table, column = self._find_column(annotation)
        place = f"{table.name}.{column.name}"
        units = [unit for (unit,) in self._connection.execute(UNITS_SQL, (place,))]
        if column.type.startswith(("REAL", "INTEGER")) or not units:
            raise _refuse(
                annotation, "its values have no unit to strip", "choose a column of texts"
            )
        if len(units) > 1:
            shown = list_first(sorted(units))
            raise _refuse(
                annotation,
                f"its values have several units: {shown}",
                "add a comment instead: numbers of different units cannot be compared",
            )
        [(lost,)] = self._connection.execute(WITHOUT_NUMBER_SQL, (place,)).fetchall()
        fractions = self._connection.execute(FRACTION_SQL, (place,)).fetchall()
        comment = f"in {quote_text(units[0])}" if units[0] else "a number"
        type_ = "REAL" if fractions else "INTEGER"
        if lost:
            comment += f"; {pluralize(lost, 'value')} without a number not here"
        elif column.type.endswith("NOT NULL"):
            type_ += " NOT NULL"
        self._set_column(annotation, replace(column, type=type_, comment=comment))
        self._create_anew(self._tables[annotation.table], column.name, place)

    def _create_anew(self, table: Table, column: str, place: str) -> None:
        """Create a table anew with its columns as they are now, and with the numbers of one of them.

        SQLite cannot change the type of a column.
        """
        key = table.columns[0].name
        number = NUMBER_SQL.format(table=table.name, key=key, column=column)
        values = []
        for each in table.columns:
            value = each.name
            if value == column:
                value = f"({number})"
            values.append(value)
        rows = f"SELECT {', '.join(values)} FROM {table.name} ORDER BY rowid"
        create_table(self._connection, "_new", table.columns, rows, place)
        self._connection.execute(f"DROP TABLE {table.name}")
        self._connection.execute(f"ALTER TABLE _new RENAME TO {table.name}")

    # Tables

    def _rename_table(self, annotation: Change) -> None:
        table = self._tables[annotation.table]
        taken = [other.name for other in self._tables.values() if other is not table]
        name = self._check_name(annotation, taken)
        if name.lower().startswith(FORBIDDEN_TABLE_PREFIXES):
            raise _refuse(
                annotation,
                f"no table can be named {name}: a query may not read it",
                "choose a name that begins in another way",
            )
        self._execute(annotation, f"ALTER TABLE {table.name} RENAME TO {name}")
        for helper, column in (("_terms", "home"), ("_triples", "home"), ("_triples", "target")):
            set_name = f"UPDATE {helper} SET {column} = ? WHERE {column} = ?"
            self._connection.execute(set_name, (name, table.name))
        for shown in table.columns:
            places = (f"{name}.{shown.name}", f"{table.name}.{shown.name}")
            self._connection.execute(SET_PLACE_SQL, places)
        self._redirect(table.name, name)
        induced = table.name_by_induction
        renamed = replace(self._tables[annotation.table], name=name, induced_name=induced)
        self._tables[annotation.table] = renamed

    def _drop_table(self, annotation: Change) -> None:
        table = self._tables[annotation.table]
        users = []
        for other in self._tables.values():
            if other.columns[0].references == table.name:
                users.append(other.name)
        if users:
            raise _refuse(
                annotation,
                f"the tables {list_first(users)} have values of its things",
                "drop these tables first",
            )
        if len(self._tables) == 1:
            raise _refuse(annotation, "the last table cannot be dropped", "drop columns instead")
        self._execute(annotation, f"DROP TABLE {table.name}")
        for column in table.columns:
            places = (DROPPED_REASON, f"{table.name}.{column.name}")
            self._connection.execute(SET_PLACE_SQL, places)
        del self._tables[annotation.table]
        self._redirect(table.name, "")

    def _redirect(self, name: str, new_name: str, new_key: str = "") -> None:
        """Let the columns that refer to a table refer to another name of it or of its key.

        An empty name refers to no table.
        """
        for induced_name, table in list(self._tables.items()):
            columns = []
            for column in table.columns:
                changed = column
                if column.references == name:
                    key = new_key or column.referenced_key
                    changed = replace(column, references=new_name, referenced_key=key)
                columns.append(changed)
            self._tables[induced_name] = replace(table, columns=tuple(columns))

    # Names

    def _check_name(self, annotation: Change, taken: Sequence[str]) -> str:
        """Return the new name. Raises SettingError if it is taken, or if SQL could not read it."""
        name = annotation.name or ""
        if len(name) > MAX_IDENTIFIER_CHARS or not IDENTIFIER.fullmatch(name):
            raise _refuse(
                annotation,
                f"it cannot be named {quote_text(name, MAX_IDENTIFIER_CHARS)}",
                f"use letters, digits and _, at most {MAX_IDENTIFIER_CHARS} of them",
            )
        if name.lower() in map(str.lower, taken):
            raise _refuse(annotation, f"the name {name} is taken", "choose another name for it")
        return name

    def _execute(self, annotation: Change, statement: str) -> None:
        """Execute a change of the tables. Raises SettingError if a name is a keyword of SQL."""
        try:
            self._connection.execute(statement)
        except sqlite3.Error as error:
            raise _refuse(
                annotation, f"SQLite refuses it: {error}", "choose another name for it"
            ) from error


def _refuse(annotation: Change, problem: str, hint: str) -> SettingError:
    """Return the error for an annotation that does not fit the database."""
    return SettingError(
        f"the annotation of {quote_text(str(annotation), 120)} cannot be used: {problem}", hint=hint
    )
