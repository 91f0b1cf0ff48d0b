"""Texts beside the graph: the passages of documents (RAGonite, section 2.6).

They are fused and cited like the passages of the graph. What they say is text, and no triple.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from kgwb.build import list_first, normalize, pluralize
from kgwb.systems.ragonite.document_files import Documents, DocumentText, read_documents
from kgwb.systems.ragonite.extensions import Extension, read_schema, write_schema

DOCUMENTS_SQL = "CREATE TABLE _documents (passage INTEGER PRIMARY KEY, file TEXT, place TEXT)"
"""The table with the file of each passage that comes from a document."""
_read_folders: dict[str, tuple[FolderState, Documents]] = {}
"""The documents of the folders that this process has read, with the state of the folder then."""

FolderState = tuple[tuple[str, int, int], ...]
"""The path, the size and the time of change of every file in a folder."""


def open_documents(folder: str) -> Extension:
    """Return the documents in a folder as an extension of the database.

    They are read again if a file has changed. Raises what ``read_documents`` raises.
    """
    documents = _read_if_changed(folder)
    add = partial(add_documents, documents.texts)
    notes = []
    if documents.skipped_files:
        number = pluralize(len(documents.skipped_files), "file")
        names = list_first(documents.skipped_files)
        notes.append(f"{number} of {folder} not read, for the format is not known: {names}")
    return Extension("documents", folder, documents.identity, add, tuple(notes))


def _read_if_changed(folder: str) -> Documents:
    """Return the documents in a folder; from memory if no file has changed since they were read."""
    state = _state_of(folder)
    known = _read_folders.get(folder)
    if known is not None and known[0] == state:
        return known[1]
    documents = read_documents(folder)
    _read_folders[folder] = (state, documents)
    return documents


def _state_of(folder: str) -> FolderState:
    """Return the state of the files in a folder; empty for one that is not there."""
    states = []
    for place, _, names in os.walk(Path(folder).expanduser()):
        for name in names:
            path = Path(place, name)
            status = path.lstat()
            states.append((str(path), status.st_size, status.st_mtime_ns))
    return tuple(sorted(states))


def add_documents(texts: Iterable[DocumentText], connection: sqlite3.Connection) -> None:
    """Add texts to the passages of a database, and to its index of words.

    A passage has the file, the place and the heading as its title, and no triples.
    """
    connection.execute(DOCUMENTS_SQL)
    [(first,)] = connection.execute("SELECT coalesce(max(n) + 1, 0) FROM _passages").fetchall()
    number = first
    for text in texts:
        title = f"{text.file}, {text.place}"
        if text.heading:
            title = f"{title}: {text.heading}"
        connection.execute("INSERT INTO _passages VALUES (?, ?, ?)", (number, title, text.text))
        words = (number, normalize(title), normalize(text.text))
        connection.execute("INSERT INTO _words (rowid, title, key) VALUES (?, ?, ?)", words)
        row = (number, text.file, text.place)
        connection.execute("INSERT INTO _documents VALUES (?, ?, ?)", row)
        number += 1
    schema = read_schema(connection)
    write_schema(connection, replace(schema, document_passages=number - first))


def read_places(connection: sqlite3.Connection) -> Mapping[int, tuple[str, str]]:
    """Return the file and the place of each passage of a document, by the passage's number.

    Empty for a database without documents.
    """
    tables = connection.execute("SELECT 1 FROM sqlite_master WHERE name = '_documents'").fetchall()
    if not tables:
        return {}
    rows = connection.execute("SELECT passage, file, place FROM _documents")
    return {number: (file, place) for number, file, place in rows}
