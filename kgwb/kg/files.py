"""Opening RDF files: finding and loading them, and keeping large graphs in a cache folder."""

from __future__ import annotations

import gzip
import hashlib
import json
import logging
import os
import re
import shutil
import sqlite3
import tempfile
import time
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pyoxigraph import RdfFormat, Store

from kgwb.disk import cache_dir
from kgwb.errors import GraphFileError
from kgwb.kg.base import Vocabulary
from kgwb.kg.label_index import Label, LabelIndex
from kgwb.kg.labels import collect_labels
from kgwb.kg.loading import (
    LABELS_SHARE,
    READING_SHARE,
    STORING_SHARE,
    Load,
    WatchedNQuads,
    load_with_bar,
)
from kgwb.kg.parsing import open_as_nquads

MIN_CACHED_BYTES = 1_000_000
"""Graphs whose files are larger than this are kept in the cache folder."""
CACHE_VERSION = 2
"""Must be raised when a cache or a label index of before would give other results."""
_FOLDER_PREFIX = "labels3-"
"""Of folders in the cache. Its number must be raised when labels are kept or found in another way.

CACHE_VERSION would change the identity of each graph, and no recorded run would be found again.
"""
FORMAT_BY_EXTENSION = {
    ".ttl": RdfFormat.TURTLE,
    ".nt": RdfFormat.N_TRIPLES,
    ".nq": RdfFormat.N_QUADS,
    ".trig": RdfFormat.TRIG,
    ".n3": RdfFormat.N3,
    ".rdf": RdfFormat.RDF_XML,
    ".xml": RdfFormat.RDF_XML,
    ".owl": RdfFormat.RDF_XML,
    ".jsonld": RdfFormat.JSON_LD,
    ".json": RdfFormat.JSON_LD,
}
_EXTENSIONS_HINT = (
    f"the extensions of RDF files are {', '.join(FORMAT_BY_EXTENSION)}, each also with .gz"
)
_FIX_FILE_HINT = "fix the file, download it again, or convert it with another tool"
_REMOTE_CONTEXT_HINT = (
    "JSON-LD contexts are not fetched: write the context into the file, or convert it to Turtle"
)
_CHECKSUMS_FILE = "checksums.json"
_MAX_PREFIX_FILES = 5
_MAX_PREFIX_BYTES = 20_000
_PREFIX_DECLARATION = re.compile(
    r"(?:prefix\s+([a-z]\w{0,20}):\s*<|xmlns:([a-z]\w{0,20})=[\"'])(\w+:[^\s<>\"']{1,200}[/#])",
    re.I | re.A,
)
"""Finds a prefix in Turtle (group 1) or in RDF/XML (group 2), and its namespace (group 3)."""
_CHECKSUM_CHUNK_BYTES = 1 << 20
_STALE_AFTER_S = 86_400
"""After this time an unfinished folder in the cache belongs to a process that was killed."""
_DAMAGED_CACHE_ERRORS = (
    OSError,
    ValueError,
    RuntimeError,  # the errors of RocksDB, Oxigraph's store
    sqlite3.Error,
)
_log = logging.getLogger("kgwb")


def open_files(
    path: Path, vocabulary: Vocabulary, *, cache: bool = True
) -> tuple[Store, LabelIndex, str, dict[str, str]]:
    """Open a file, or all RDF files in a folder and its subfolders, as one graph.

    A file or folder whose name begins with "." is left out. A graph larger than MIN_CACHED_BYTES is
    loaded from the cache folder, or kept there; it is loaded into memory if the cache folder cannot
    be used. Returns the store, the label index, the identity, which is a digest of the content,
    and the prefixes by namespace.

    Raises GraphFileError if there is no RDF file, a file cannot be read or parsed, or no file has
    a triple.
    """

    def open_them(load: Load) -> tuple[Store, LabelIndex, str, dict[str, str]]:
        """Open the files, and tell how far they are."""
        return _open_while_watched(path, vocabulary, load, cache=cache)

    return load_with_bar(open_them, path.name, vocabulary)


def _open_while_watched(
    path: Path, vocabulary: Vocabulary, load: Load, *, cache: bool
) -> tuple[Store, LabelIndex, str, dict[str, str]]:
    """Open files as ``open_files`` does. Raises LoadStoppedError too, after ``load.stop``."""
    files = _find_rdf_files(path)
    digest = _fingerprint(path, files, vocabulary)
    identity = f"sha256:{digest}"
    prefixes = _read_prefixes(files[:_MAX_PREFIX_FILES])
    size = sum(file.stat().st_size for file in files)
    if cache and size > MIN_CACHED_BYTES:
        try:
            folder = cache_dir() / "graphs" / (_FOLDER_PREFIX + digest)
            cached = _open_or_build_cache(folder, path, files, load)
            return (*cached, identity, prefixes)
        except _DAMAGED_CACHE_ERRORS as error:
            load.check()
            _log.warning(
                "%s is loaded into memory: the cache folder cannot be used (%s)", path, error
            )
    store = Store()
    labels = _load_with_labels(store, path, files, load)
    return store, LabelIndex.build(labels), identity, prefixes


def _find_rdf_files(path: Path) -> list[Path]:
    """Return the file, or the RDF files in a folder and its subfolders, sorted by path.

    An RDF file has one of the extensions in FORMAT_BY_EXTENSION, which ".gz" may follow. Names that
    begin with "." are left out. Raises GraphFileError if no file is left.
    """
    is_file = path.is_file()
    candidates = [path]
    if not is_file:
        candidates = sorted(path.rglob("*"))
    files = []
    for file in candidates:
        inner_path = file.relative_to(path)
        is_hidden = any(part.startswith(".") for part in inner_path.parts)
        has_extension = _suffix(file) in FORMAT_BY_EXTENSION
        if has_extension and not is_hidden and file.is_file():
            files.append(file)
    if not files:
        problem = f"there is no RDF file in the folder {path}"
        if is_file:
            problem = f"the graph file {path} has no extension of an RDF format"
        raise GraphFileError(problem, hint=_EXTENSIONS_HINT)
    return files


def _suffix(file: Path) -> str:
    """Return the extension of a file in lower case, without ".gz"."""
    name = file.name.lower()
    unpacked = Path(name.removesuffix(".gz"))
    return unpacked.suffix


def _read_prefixes(files: Sequence[Path]) -> dict[str, str]:
    """Return the prefixes that files declare in their first _MAX_PREFIX_BYTES, by namespace.

    The first declaration of a namespace counts. Files that cannot be read have none. Prefixes of
    Turtle, SPARQL and XML are found, by a search in the text, in comments as well.
    """
    prefixes: dict[str, str] = {}
    for file in files:
        open_file: Callable[..., Any] = open
        if file.suffix.lower() == ".gz":
            open_file = gzip.open
        with suppress(OSError, EOFError, zlib.error), open_file(file, "rb") as stream:
            beginning = stream.read(_MAX_PREFIX_BYTES)
            text = beginning.decode(errors="replace")
            declarations = _PREFIX_DECLARATION.findall(text)
            for turtle_prefix, xml_prefix, namespace in declarations:
                prefix = turtle_prefix or xml_prefix
                prefixes.setdefault(namespace, prefix)
    return prefixes


def _fingerprint(path: Path, files: Sequence[Path], vocabulary: Vocabulary) -> str:
    """Return a SHA-256 digest of the content of files, their names, and the vocabulary.

    A name is the path of a file within ``path``. The vocabulary counts because it decides what a
    label search finds, CACHE_VERSION because it decides how. Of the name of a single file only the
    extension counts. Raises GraphFileError for a file that cannot be read.
    """
    settings = f"{CACHE_VERSION}\n{vocabulary!r}\n"
    total = hashlib.sha256(settings.encode())
    for file in files:
        try:
            with file.open("rb") as stream:
                digest = hashlib.file_digest(stream, "sha256")
        except OSError as error:
            raise GraphFileError(
                f"{file} cannot be read: {error.strerror}",
                hint="check that it is there, and that you may read it",
            ) from error
        name = file.relative_to(path).as_posix()
        if file == path:
            name = "".join(file.suffixes[-2:])
        entry = f"{name}\n{digest.hexdigest()}\n"
        total.update(os.fsencode(entry))
    return total.hexdigest()


def _load_with_labels(
    store: Store, path: Path, files: Sequence[Path], load: Load, draft: Path | None = None
) -> list[Label]:
    """Load files into a store, and return their labels. See ``_load_into_store``."""
    _load_into_store(store, path, files, load, draft)
    load.begin("finding the labels", STORING_SHARE)
    labels = collect_labels(store, load.vocabulary, load.labels.ranked)
    load.begin("indexing the labels", LABELS_SHARE)
    return labels


def _load_into_store(
    store: Store, path: Path, files: Sequence[Path], load: Load, draft: Path | None
) -> None:
    """Load files into a store, one after the other.

    With ``draft``, the path of a file that is not there, the triples are written to this file
    before: Oxigraph loads a file several times as fast as a stream. The file is removed at the end.

    Relative IRIs are resolved against the path within the folder of ``path``, so that they do not
    depend on where the files are. Raises GraphFileError, with line and column where they are known,
    for the first file that does not parse, and if there is no triple, and LoadStoppedError after
    ``load.stop``. The store may have a part of the triples then.
    """
    load.restart()
    sources = []
    for file in files:
        file_format = FORMAT_BY_EXTENSION[_suffix(file)]
        inner_path = file.relative_to(path.parent).as_posix()
        base_iri = f"file:///{quote(os.fsencode(inner_path))}"
        sources.append((file, file_format, base_iri, True))
    try:
        sizes = [file.stat().st_size for file in files]
        on_position = load.watch_positions(sizes)
        with open_as_nquads(sources, on_position=on_position) as quads:
            watched: Any = WatchedNQuads(quads, load)
            # Lenient, because the parser has checked the IRIs already.
            if draft is None:
                store.bulk_load(watched, RdfFormat.N_QUADS, lenient=True)
            else:
                watched.write_to(draft)
        if draft is not None:
            load.begin("storing the triples", READING_SHARE)
            _load_nquads(store, draft, may_be_nested=load.may_be_nested)
            draft.unlink()
    except SyntaxError as error:
        hint = _FIX_FILE_HINT
        if "remote contexts" in error.msg:
            hint = _REMOTE_CONTEXT_HINT
        message = f"{error.filename} does not parse: {error.msg}"
        raise GraphFileError(message, hint=hint, line=error.lineno, column=error.offset) from error
    has_triples = any(store.quads_for_pattern(None, None, None, None))
    if not has_triples:
        raise GraphFileError(
            f"the graph {path} contains no triples", hint="check that this is the right file"
        )


def _load_nquads(store: Store, file: Path, *, may_be_nested: bool) -> None:
    """Load a file of N-Quads that was written by the parser into a store.

    Oxigraph reads a file with threads of its own. Their stack is as large as that of the parser, so
    triples in triples, which need a part of the stack for each, are read from a stream on this
    thread. Raises OSError.
    """
    if not may_be_nested:
        store.bulk_load(path=str(file), format=RdfFormat.N_QUADS, lenient=True)
        return
    with file.open("rb") as stream:
        store.bulk_load(stream, RdfFormat.N_QUADS, lenient=True)


# The cache folder: in a folder named by the fingerprint, the store, the label index, and checksums


def _open_or_build_cache(
    folder: Path, path: Path, files: Sequence[Path], load: Load
) -> tuple[Store, LabelIndex]:
    """Open a graph's store and label index in the cache; build them first if missing or damaged.

    ``folder`` is the graph's folder, named by its fingerprint. Unfinished folders of killed
    processes are removed before. The graph is built in a temporary folder and then renamed, so that
    other processes never see a part of it. Raises GraphFileError as ``open_files`` does, and if the
    files changed while they were read, and one of _DAMAGED_CACHE_ERRORS if the cache cannot be
    used.
    """
    _remove_stale_folders(folder.parent)
    try:
        return _open_cached(folder)
    except FileNotFoundError:
        pass
    except _DAMAGED_CACHE_ERRORS as error:
        _log.warning("the cached copy of %s is damaged (%s): it is built again", path, error)
    folder.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=".making-", dir=folder.parent))
    try:
        _build_cache(draft / "graph", path, files, load)
        if _FOLDER_PREFIX + _fingerprint(path, files, load.vocabulary) != folder.name:
            # Otherwise the cache would have the wrong triples under this fingerprint for ever.
            raise GraphFileError(
                f"the graph {path} changed while it was read",
                hint="wait until it is written, then open it again",
            )
        return _move_into_cache(draft, folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _remove_stale_folders(cache: Path) -> None:
    """Remove the unfinished folders that killed processes left in the cache.

    They are older than _STALE_AFTER_S; younger ones may be in use.
    """
    for draft in cache.glob(".making-*"):
        age_s = time.time() - draft.lstat().st_mtime
        if age_s > _STALE_AFTER_S:
            shutil.rmtree(draft, ignore_errors=True)


def _build_cache(folder: Path, path: Path, files: Sequence[Path], load: Load) -> None:
    """Write the store of the files, its label index, and the checksums of both to a new folder.

    Raises GraphFileError for a file that does not parse, and if there is no triple. Both are closed
    at the end.
    """
    folder.mkdir()
    store = Store(folder / "store")
    labels = _load_with_labels(store, path, files, load, folder.parent / "triples.nq")
    index = LabelIndex.build(labels, folder / "labels.sqlite")
    index.close()
    del store  # this closes it
    checksums = json.dumps(_compute_checksums(folder))
    checksums_file = folder / _CHECKSUMS_FILE
    checksums_file.write_text(checksums, encoding="utf-8")


def _move_into_cache(draft: Path, folder: Path) -> tuple[Store, LabelIndex]:
    """Rename the graph folder in ``draft`` to ``folder``, and return what is opened there.

    If ``folder`` exists, another process was first: its graph is opened and the draft is not used,
    unless it is damaged. A damaged one is moved into ``draft``, and replaced.
    """
    graph = draft / "graph"
    try:
        os.rename(graph, folder)
    except OSError:
        try:
            return _open_cached(folder)
        except _DAMAGED_CACHE_ERRORS:
            os.rename(folder, draft / "damaged")
            os.rename(graph, folder)
    return _open_cached(folder)


def _open_cached(folder: Path) -> tuple[Store, LabelIndex]:
    """Open the store (read-only) and the label index in a folder of the cache.

    The checksums of all files are compared first, because opening a damaged store may end the
    process. Raises ValueError if they differ, FileNotFoundError if there is no such folder, or
    another of _DAMAGED_CACHE_ERRORS.
    """
    checksums_file = folder / _CHECKSUMS_FILE
    checksums = json.loads(checksums_file.read_text(encoding="utf-8"))
    if checksums != _compute_checksums(folder):
        raise ValueError("its files are not as they were written")
    store = Store.read_only(str(folder / "store"))
    labels = LabelIndex.open(folder / "labels.sqlite")
    return store, labels


def _compute_checksums(folder: Path) -> dict[str, int]:
    """Return the CRC-32 of each file in a folder and its subfolders, by file name.

    The name is without folders. The file with the checksums is left out. CRC-32 finds accidental
    damage, and is several times faster than a digest.
    """
    checksums: dict[str, int] = {}
    for file in sorted(folder.rglob("*")):
        if not file.is_file() or file.name == _CHECKSUMS_FILE:
            continue
        checksum = 0
        with file.open("rb") as stream:
            while chunk := stream.read(_CHECKSUM_CHUNK_BYTES):
                checksum = zlib.crc32(chunk, checksum)
        checksums[file.name] = checksum
    return checksums
