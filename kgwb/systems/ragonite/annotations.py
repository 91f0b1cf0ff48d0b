"""Annotations: a person improves the induced tables (RAGonite, section 2.1 and figure 2, step 3).

They are a JSON Lines file beside the graph, one change a line, in the order in which they were made.
A change names its table and column as induction named them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

from kgwb.build import (
    Record,
    SettingError,
    append_text,
    from_data,
    read_json_lines,
    to_data,
    write_atomically,
)
from kgwb.systems.ragonite.annotated_tables import apply_annotations
from kgwb.systems.ragonite.extensions import Extension
from kgwb.systems.ragonite.records import Annotation

FORMAT_KEY = "kgwb_annotations"
FORMAT_VERSION = 1
MAX_ANNOTATIONS = 10_000


@dataclass(frozen=True, slots=True)
class Change(Record):
    """One line of a file: what a person changed of a table or a column. None is left as it is."""

    table: str
    column: str = ""
    """Empty for the table itself."""
    name: str | None = None
    comment: str | None = None
    dropped: bool | None = None
    strip_unit: bool | None = None

    def __str__(self) -> str:
        return f"{self.table}.{self.column}" if self.column else self.table


def open_annotations(source: str) -> Extension:
    """Return the annotations in a file as an extension of the database.

    Raises SettingError for a file that is not there or has something else in it.
    """
    changes = read_changes(Path(source).expanduser())
    annotations = merge_changes(changes)
    content = json.dumps([to_data(annotation) for annotation in annotations])
    identity = hashlib.sha256(content.encode()).hexdigest()
    return Extension("annotations", source, identity, partial(apply_annotations, annotations))


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
    if len(changes) > MAX_ANNOTATIONS:
        raise SettingError(
            f"{path} has more than {MAX_ANNOTATIONS:,} annotations",
            hint="remove some lines of this file, the last ones first",
        )
    return changes


def _read_change(entry: Any) -> Change:
    """Return the change in a line. Raises ValueError if it is none, or has an unknown field."""
    known = {field.name for field in fields(Change)}
    if isinstance(entry, dict) and not known.issuperset(entry):
        raise ValueError("an unknown field")
    change: Change = from_data(entry, Change)
    return change


def merge_changes(changes: list[Change]) -> tuple[Annotation, ...]:
    """Return what several changes make of each table and column; later ones replace earlier ones.

    They are in the order in which the tables and columns were first changed.
    """
    merged: dict[tuple[str, str], Annotation] = {}
    for change in changes:
        place = (change.table, change.column)
        known = merged.get(place, Annotation(*place))
        data = to_data(change)
        values = {name: value for name, value in data.items() if value is not None}
        merged[place] = replace(known, **values)
    return tuple(merged.values())


def add_changes(path: Path, changes: list[Change]) -> None:
    """Write changes at the end of a file, which is created if it is missing. Raises SettingError."""
    lines = [_to_line(change) for change in changes]
    try:
        if not path.exists():
            lines.insert(0, json.dumps({FORMAT_KEY: FORMAT_VERSION}) + "\n")
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
    header = json.dumps({FORMAT_KEY: FORMAT_VERSION}) + "\n"
    lines = [_to_line(change) for change in changes[:-1]]
    try:
        write_atomically(path, [header, *lines])
    except OSError as error:
        raise _not_written(path, error) from error
    return changes[-1]


def _to_line(change: Change) -> str:
    """Return the line of a change in the file. What it leaves as it is, is left out."""
    data: Mapping[str, Any] = to_data(change)
    given = {name: value for name, value in data.items() if value not in (None, "")}
    for name in ("name", "comment"):  # an empty one takes an earlier one back
        if data[name] == "":
            given[name] = ""
    return json.dumps(given, ensure_ascii=True) + "\n"


def _not_written(path: Path, error: OSError) -> SettingError:
    reason = error.strerror or error
    return SettingError(
        f"the annotations {path} cannot be written: {reason}",
        hint="name a file in another folder with the setting annotations",
    )
