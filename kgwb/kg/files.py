"""Opening RDF files: found, fingerprinted, loaded, and the large ones kept in a cache folder."""

from __future__ import annotations

import gzip
import hashlib
import json
import logging
import os
import shutil
import sqlite3
import tempfile
import time
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import IO, cast
from urllib.parse import quote

from pyoxigraph import RdfFormat, Store

from kgwb.errors import GraphFileError
from kgwb.kg import cache_dir
from kgwb.kg.base import Vocabulary
from kgwb.kg.labels import LabelIndex
from kgwb.kg.naming import collect

CACHED_FROM_BYTES = 1_000_000
"""Sources larger than this are kept in the cache folder once loaded."""
CACHE_VERSION = 2
"""Raised whenever an older cache or an older label index would give other results."""
FORMATS = {
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
_DAMAGED = (OSError, ValueError, RuntimeError, sqlite3.Error)  # RocksDB's own come as RuntimeError
_log = logging.getLogger("kgwb")


def open_files(path: Path, vocabulary: Vocabulary, *, cache: bool = True) -> tuple[Store, LabelIndex, str]:
    """The store, label index and identity of a file or of all RDF files in a folder.

    Raises GraphFileError: nothing there, an unknown extension, no triple, or a file that does not parse.
    """
    files = _files(path)
    digest = _fingerprint(path, files, vocabulary)
    identity = f"sha256:{digest}"
    if cache and sum(file.stat().st_size for file in files) > CACHED_FROM_BYTES:
        try:
            return (*_cached(cache_dir() / "graphs" / digest, path, files, vocabulary), identity)
        except _DAMAGED as error:
            _log.warning("%s is loaded into memory: the cache folder cannot be used (%s)", path, error)
    store = Store()
    _load(store, path, files)
    return store, LabelIndex.build(collect(store, vocabulary)), identity


def _files(path: Path) -> list[Path]:
    if path.is_file():
        if _format(path) is None:
            raise GraphFileError(f"{path} has no extension of an RDF format", hint=_KNOWN)
        return [path]
    if not path.is_dir():
        raise GraphFileError(
            f"there is no file or folder {path}", hint="check the name and the folder you are in"
        )
    files = sorted(
        file
        for file in path.rglob("*")
        if _format(file)
        and not any(part.startswith(".") for part in file.relative_to(path).parts)
        and file.is_file()
    )
    if not files:
        raise GraphFileError(f"there is no RDF file in the folder {path}", hint=_KNOWN)
    return files


_KNOWN = f"known are {', '.join(FORMATS)}, each also with .gz"


def _format(file: Path) -> RdfFormat | None:
    name = file.name.lower().removesuffix(".gz")
    return FORMATS.get(Path(name).suffix)


def _fingerprint(path: Path, files: Sequence[Path], vocabulary: Vocabulary) -> str:
    # The vocabulary belongs to it: it decides what a label search finds.
    total = hashlib.sha256(f"{CACHE_VERSION}\n{vocabulary!r}\n".encode())
    for file in files:
        with _readable(file), file.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        name = file.relative_to(path).as_posix() if file != path else "".join(file.suffixes[-2:])
        total.update(f"{name}\n{digest}\n".encode())
    return total.hexdigest()


class _readable:
    """Turns what reading or parsing a file raises into GraphFileError."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, SyntaxError):
            remote = "remote contexts" in error.msg
            raise GraphFileError(
                f"{self.file} does not parse: {error.msg}",
                hint=_REMOTE if remote else "mend the file there, or convert it with another tool",
                line=error.lineno,
                column=error.offset,
            ) from error
        if isinstance(error, EOFError | zlib.error | gzip.BadGzipFile):
            raise GraphFileError(f"{self.file} is no whole gzip file: {error}", hint=_AGAIN) from error
        if isinstance(error, PermissionError | FileNotFoundError) and error.filename == str(self.file):
            raise GraphFileError(f"{self.file} cannot be read: {error.strerror}") from error


_AGAIN = "fetch the file again"
_REMOTE = "JSON-LD contexts are not fetched: write the context into the file, or convert it to Turtle"


def _load(store: Store, path: Path, files: Sequence[Path]) -> None:
    for file in files:
        # Relative IRIs must not depend on where the file lies.
        base = f"file:///{quote(file.relative_to(path.parent).as_posix())}"
        packed = file.suffix.lower() == ".gz"
        with _readable(file), cast(IO[bytes], gzip.open(file) if packed else file.open("rb")) as stream:
            store.bulk_load(stream, _format(file), base_iri=base)
    if next(store.quads_for_pattern(None, None, None, None), None) is None:
        raise GraphFileError(f"{path} holds no triple", hint="check that it is the file you mean")


def _cached(
    folder: Path, path: Path, files: Sequence[Path], vocabulary: Vocabulary
) -> tuple[Store, LabelIndex]:
    _sweep(folder.parent)
    try:
        return _reopen(folder)
    except FileNotFoundError:
        pass
    except _DAMAGED as error:
        _log.warning("the cached %s is damaged (%s) and made anew", path, error)
    folder.parent.mkdir(parents=True, exist_ok=True)
    making = Path(tempfile.mkdtemp(prefix=".making-", dir=folder.parent))
    try:
        _make(making / "graph", path, files, vocabulary)
        try:
            os.rename(making / "graph", folder)
        except OSError:
            # There is one: of another process that was first, or the damaged one.
            try:
                return _reopen(folder)
            except _DAMAGED:
                os.rename(folder, making / "damaged")
                os.rename(making / "graph", folder)
        return _reopen(folder)
    finally:
        shutil.rmtree(making, ignore_errors=True)


def _make(folder: Path, path: Path, files: Sequence[Path], vocabulary: Vocabulary) -> None:
    folder.mkdir()
    store = Store(folder / "store")
    _load(store, path, files)
    LabelIndex.build(collect(store, vocabulary), folder / "labels.sqlite").close()
    del store
    (folder / "sizes.json").write_text(json.dumps(_sizes(folder)), encoding="utf-8")


def _reopen(folder: Path) -> tuple[Store, LabelIndex]:
    expected = json.loads((folder / "sizes.json").read_text(encoding="utf-8"))
    if expected != _sizes(folder):
        raise ValueError("files are missing or cut")
    return Store.read_only(str(folder / "store")), LabelIndex.open(folder / "labels.sqlite")


def _sizes(folder: Path) -> dict[str, int]:
    files = [*folder.glob("store/*.sst"), folder / "labels.sqlite"]
    return {file.name: file.stat().st_size for file in sorted(files)}


def _sweep(folder: Path) -> None:
    """Removes what a process that was killed a day ago or more has left."""
    for left in folder.glob(".making-*"):
        if time.time() - left.stat().st_mtime > 86_400:
            shutil.rmtree(left, ignore_errors=True)
