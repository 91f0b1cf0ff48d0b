"""Opening RDF files: found, fingerprinted, loaded, and the large ones kept in a cache folder."""

from __future__ import annotations

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
from urllib.parse import quote

from pyoxigraph import RdfFormat, Store

from kgwb.errors import GraphFileError
from kgwb.kg import cache_dir
from kgwb.kg.base import Vocabulary
from kgwb.kg.labels import LabelIndex
from kgwb.kg.naming import collect
from kgwb.kg.parsing import files_parsed

CACHED_FROM_BYTES = 1_000_000
"""Sources larger than this are kept in the cache folder once loaded."""
CHECKSUMS = "checksums.json"
"""The file in a cached graph's folder that holds the checksums of the others."""
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
        if _suffix(path) not in FORMATS:
            raise GraphFileError(f"{path} has no extension of an RDF format", hint=_KNOWN)
        return [path]
    if not path.is_dir():
        raise GraphFileError(
            f"there is no file or folder {path}", hint="check the name and the folder you are in"
        )
    files = sorted(
        file
        for file in path.rglob("*")
        if _suffix(file) in FORMATS
        and not any(part.startswith(".") for part in file.relative_to(path).parts)
        and file.is_file()
    )
    if not files:
        raise GraphFileError(f"there is no RDF file in the folder {path}", hint=_KNOWN)
    return files


_KNOWN = f"known are {', '.join(FORMATS)}, each also with .gz"


def _suffix(file: Path) -> str:
    return Path(file.name.lower().removesuffix(".gz")).suffix


def _fingerprint(path: Path, files: Sequence[Path], vocabulary: Vocabulary) -> str:
    # The vocabulary belongs to it: it decides what a label search finds.
    total = hashlib.sha256(f"{CACHE_VERSION}\n{vocabulary!r}\n".encode())
    for file in files:
        try:
            with file.open("rb") as stream:
                digest = hashlib.file_digest(stream, "sha256").hexdigest()
        except OSError as error:
            raise GraphFileError(f"{file} cannot be read: {error.strerror}") from error
        name = file.relative_to(path).as_posix() if file != path else "".join(file.suffixes[-2:])
        total.update(os.fsencode(f"{name}\n{digest}\n"))
    return total.hexdigest()


def _load(store: Store, path: Path, files: Sequence[Path]) -> None:
    sources = [(file, FORMATS[_suffix(file)], _base(path, file)) for file in files]
    with files_parsed(sources) as quads:
        store.bulk_load(quads, RdfFormat.N_QUADS, lenient=True)  # the IRIs were checked by the parser
    if next(store.quads_for_pattern(None, None, None, None), None) is None:
        raise GraphFileError(f"{path} holds no triple", hint="check that it is the file you mean")


def _base(path: Path, file: Path) -> str:
    # Relative IRIs must not depend on where the file lies.
    return f"file:///{quote(os.fsencode(file.relative_to(path.parent)))}"


def _cached(
    folder: Path, path: Path, files: Sequence[Path], vocabulary: Vocabulary
) -> tuple[Store, LabelIndex]:
    _sweep(folder.parent)
    try:
        return _reopen(folder)
    except FileNotFoundError:
        pass
    except _DAMAGED as error:
        _log.warning("the cached copy of %s is damaged (%s): it is made anew", path, error)
    folder.parent.mkdir(parents=True, exist_ok=True)
    making = Path(tempfile.mkdtemp(prefix=".making-", dir=folder.parent))
    try:
        _make(making / "graph", path, files, vocabulary)
        if _fingerprint(path, files, vocabulary) != folder.name:  # other triples under its name, for ever
            raise GraphFileError(f"{path} changed while it was read", hint="open it again")
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
    (folder / CHECKSUMS).write_text(json.dumps(_checksums(folder)), encoding="utf-8")


def _reopen(folder: Path) -> tuple[Store, LabelIndex]:
    """What was cached; nothing is opened before all of it was read, as damage may end the process there."""
    if json.loads((folder / CHECKSUMS).read_text(encoding="utf-8")) != _checksums(folder):
        raise ValueError("its files are not as they were written")
    return Store.read_only(str(folder / "store")), LabelIndex.open(folder / "labels.sqlite")


def _checksums(folder: Path) -> dict[str, int]:
    """The CRC-32 of each file; it finds chance damage, and reads several times faster than a digest."""
    files = (file for file in sorted(folder.rglob("*")) if file.is_file() and file.name != CHECKSUMS)
    return {file.name: _checksum(file) for file in files}


def _checksum(file: Path) -> int:
    total = 0
    with file.open("rb") as stream:
        while part := stream.read(1 << 20):
            total = zlib.crc32(part, total)
    return total


def _sweep(folder: Path) -> None:
    """Removes what a process that was killed a day ago or more has left."""
    for left in folder.glob(".making-*"):
        if time.time() - left.lstat().st_mtime > 86_400:
            shutil.rmtree(left, ignore_errors=True)
