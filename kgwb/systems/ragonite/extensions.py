"""What a person adds to the induced database: a copy of it is changed, and kept beside it."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kgwb.build import Run, SettingError, from_data, to_data
from kgwb.systems.ragonite.records import Schema


@dataclass(frozen=True, slots=True)
class Extension:
    """A change of the induced database: a folder of documents, or a file of annotations."""

    kind: str
    """The setting that names the folder or the file."""
    source: str
    """Its path."""
    identity: str
    """A hash of its content."""
    apply: Callable[[sqlite3.Connection], None]
    """Changes a database. Raises SettingError if the content does not fit it."""
    notes: tuple[str, ...] = ()
    """What a person should know of it, such as files that were left out."""


def identify_extensions(extensions: Sequence[Extension]) -> str:
    """Return a hash of what some extensions do to a database, in their order."""
    parts = [f"{extension.kind} {extension.identity}" for extension in extensions]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]


def resolve_extension(
    kind: str, source: str, read: Callable[[str], Extension], run: Run
) -> Extension:
    """Return the extension that a setting names, as it is now.

    In a replay, or if the folder or file is gone, it is the one that the run has recorded: only its
    identity is known then, by which recorded calls are found. Raises what ``read`` raises.
    """
    recorded_identity = ""
    for call in run.calls.values():
        if call.kind == f"ragonite.{kind}" and call.request["source"] == source:
            recorded_identity = call.request["identity"]

    def refuse(connection: sqlite3.Connection) -> None:
        read(source)

    recorded = Extension(kind, source, recorded_identity, refuse)
    if run.unrecorded_graph is None:
        return recorded
    try:
        return read(source)
    except SettingError:
        if recorded_identity:
            return recorded
        raise


def record_extension(extension: Extension, run: Run) -> None:
    """Write to the run's record which content an extension has, and add its notes to the step."""
    request = {"source": extension.source, "identity": extension.identity}
    kind = f"ragonite.{extension.kind}"
    for note in run.call(kind, request, lambda: extension.notes, tuple[str, ...]):
        run.note(note)


def read_schema(connection: sqlite3.Connection) -> Schema:
    """Return the schema that is stored in a database."""
    [(text,)] = connection.execute("SELECT json FROM _schema").fetchall()
    schema: Schema = from_data(json.loads(text), Schema)
    return schema


def write_schema(connection: sqlite3.Connection, schema: Schema) -> None:
    """Replace the schema that is stored in a database."""
    text = json.dumps(to_data(schema))
    connection.execute("UPDATE _schema SET json = ?", (text,))
