"""The file of a database: it is made once for each graph, and kept in the cache folder."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path

from rdflib import URIRef

from kgwb.build import CACHE_LIFETIME_S, Embeddings, Graph, Term, cache_dir, draft_of, to_data
from kgwb.systems.ragonite.database import Database
from kgwb.systems.ragonite.extensions import Extension, identify_extensions
from kgwb.systems.ragonite.graph_triples import read_triples
from kgwb.systems.ragonite.identifiers import find_pages
from kgwb.systems.ragonite.induction import DatabaseBuilder
from kgwb.systems.ragonite.records import Schema
from kgwb.systems.ragonite.settings import RagoniteSettings
from kgwb.systems.ragonite.verbalization import PassageWriter

DATABASE_VERSION = 5
"""Changes with the content of the file, so that older files are not used."""
_build_locks: dict[Path, threading.Lock] = {}
"""By file. One thread makes a database while others that need it wait."""
_open_databases: dict[Path, Database] = {}
"""The databases that this process uses, by file."""


def open_database(
    kg: Graph,
    settings: RagoniteSettings,
    embeddings: Embeddings,
    extensions: Sequence[Extension] = (),
) -> Database:
    """Return the database of a graph, or of the part of it that the settings choose.

    It is taken from memory, else from its file in the cache folder, else it is made and the file
    is written. A database of an endpoint is made again after CACHE_LIFETIME_S. A file that is
    damaged is replaced. If no file can be written, the database is in memory only. With extensions
    it is a copy to which they were applied, in a file of its own.

    Raises GraphError for a graph without triples or with too many, SettingError for an invalid
    setting ``part`` or an extension that does not fit, EmbeddingError, and what the graph raises.
    """
    path = _database_path(kg, settings)
    induced = _open_induced(path, kg, settings, embeddings)
    if not extensions:
        return induced
    extended_path = path.with_stem(f"{path.stem}-{identify_extensions(extensions)}")
    with _build_locks.setdefault(extended_path, threading.Lock()):
        database = _open_databases.get(extended_path)
        if database is None or database.made_at < induced.made_at:
            database = _load_database(extended_path, kg)
        if database is None or database.made_at < induced.made_at:
            database = _extend_database(extended_path, induced, extensions, embeddings)
        _open_databases[extended_path] = database
        return database


def _open_induced(
    path: Path, kg: Graph, settings: RagoniteSettings, embeddings: Embeddings
) -> Database:
    """Return the database of a graph without extensions; see ``open_database``."""
    with _build_locks.setdefault(path, threading.Lock()):
        database = _open_databases.get(path)
        if database is None or not _is_current(kg, database.made_at):
            database = _load_database(path, kg)
            if database is None:
                database = _make_database(path, kg, settings, embeddings)
            _open_databases[path] = database
        return database


def _database_path(kg: Graph, settings: RagoniteSettings) -> Path:
    """Return the path of a database's file in the cache folder; it need not exist.

    Its name is a hash of all that the content depends on: the version, the identity and vocabulary
    of the graph, muted triples, and ``RagoniteSettings.database_options``.
    """
    graph = f"{kg.identity} {kg.vocabulary!r}"
    content = f"{DATABASE_VERSION} {graph} {dict(settings.database_options)!r}"
    if kg.muted:
        content += f" {kg.muted!r}"
    digest = hashlib.sha256(content.encode()).hexdigest()[:32]
    return cache_dir() / f"ragonite-{digest}.sqlite"


def _is_current(kg: Graph, made_at: float) -> bool:
    """Return whether a database made at a time may still be used: always for a file's graph.

    One of an endpoint may for CACHE_LIFETIME_S. A file's content is part of its identity.
    """
    return not kg.remote or time.time() - made_at < CACHE_LIFETIME_S


def _load_database(path: Path, kg: Graph) -> Database | None:
    """Return the database in a file; None without a file, or if it is damaged or out of date.

    It is opened read-only.
    """
    with suppress(OSError, sqlite3.Error, ValueError):
        made_at = path.stat().st_mtime
        if _is_current(kg, made_at):
            uri = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
            connection = sqlite3.connect(uri, uri=True, check_same_thread=False)
            return Database(connection, made_at)
    return None


def _make_database(
    path: Path, kg: Graph, settings: RagoniteSettings, embeddings: Embeddings
) -> Database:
    """Make the database of a graph in memory, compute the vectors of its passages, and write the file.

    It has the tables of the classes, all triples with their places, the passages, and the schema as
    JSON. A file that cannot be written is no error. Raises what reading the graph and computing the
    vectors raise.
    """
    triples = list(read_triples(kg, settings))
    terms = chain.from_iterable(triples)
    iris = {term for term in terms if isinstance(term, URIRef)}
    names: dict[Term, str] = dict(kg.names(sorted(iris)).items())
    for page in find_pages(triples, names):
        names[page] = str(page)
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    with connection:
        by_combination = settings.tables == "type_combination"
        builder = DatabaseBuilder(
            triples, names, kg.vocabulary, connection, by_combination=by_combination
        )
        tables = builder.create_tables()
        writer = PassageWriter(builder, settings)
        passage_count = writer.write_passages()
        # The place of a triple in a table has a dot; any other is the reason why it is in none.
        reasons = connection.execute(
            "SELECT place, count(*) FROM _triples WHERE instr(place, '.') = 0 GROUP BY place"
        )
        schema = Schema(tables, len(triples), passage_count, tuple(reasons))
        connection.execute("CREATE TABLE _schema (json TEXT)")
        connection.execute("INSERT INTO _schema VALUES (?)", (json.dumps(to_data(schema)),))
    database = Database(connection, time.time())
    database.find_nearest_passages("", embeddings)  # computes the vectors, which are kept
    _write_file(path, connection)
    return database


def _extend_database(
    path: Path, induced: Database, extensions: Sequence[Extension], embeddings: Embeddings
) -> Database:
    """Apply extensions to a copy of a database, compute the new vectors, and write the file.

    Raises SettingError if an extension does not fit the database, and EmbeddingError.
    """
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    induced.copy_to(connection)
    with connection:
        for extension in extensions:
            extension.apply(connection)
    database = Database(connection, time.time())
    database.find_nearest_passages("", embeddings)  # computes the vectors, which are kept
    _write_file(path, connection)
    return database


def _write_file(path: Path, connection: sqlite3.Connection) -> None:
    """Write a database in memory to a file, by way of a draft that then takes its place.

    If that fails, nothing is raised, and there is no file.
    """
    with suppress(OSError, sqlite3.Error), draft_of(path) as draft:
        connection.execute("VACUUM INTO ?", (str(draft),))
