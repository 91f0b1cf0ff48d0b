"""Opening RDF files: found, fingerprinted, loaded, and the large ones kept in a cache folder."""

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
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

from pyoxigraph import RdfFormat, Store

from kgwb.disk import cache_dir
from kgwb.errors import GraphFileError
from kgwb.kg.base import Vocabulary
from kgwb.kg.labels import LabelIndex, collect_labels
from kgwb.kg.parsing import open_as_nquads

MIN_CACHED_BYTES = 1_000_000
"""Sources larger than this are kept in the cache folder once loaded."""
CACHE_VERSION = 2
"""Raised whenever an older cache or an older label index would give other results."""
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
_EXTENSIONS_HINT = f"known are {', '.join(FORMAT_BY_EXTENSION)}, each also with .gz"
_FIX_FILE_HINT = "fix the file there, fetch it again, or convert it with another tool"
_REMOTE_CONTEXT_HINT = (
    "JSON-LD contexts are not fetched: write the context into the file, or convert it to Turtle"
)
_CHECKSUMS_FILE = "checksums.json"
_MAX_PREFIX_FILES, _MAX_PREFIX_BYTES = 5, 20_000
_PREFIX_DECLARATION = re.compile(
    r"(?:prefix\s+([a-z]\w{0,20}):\s*<|xmlns:([a-z]\w{0,20})=[\"'])(\w+:[^\s<>\"']{1,200}[/#])",
    re.I | re.A,
)
_STALE_AFTER_S = 86_400
"""After this time what a killed process left in the cache folder is removed."""
_DAMAGED_CACHE_ERRORS = (
    OSError,
    ValueError,
    RuntimeError,
    sqlite3.Error,
)  # RocksDB's own come as RuntimeError
_log = logging.getLogger("kgwb")


def open_files(
    path: Path, vocabulary: Vocabulary, *, cache: bool = True
) -> tuple[Store, LabelIndex, str, dict[str, str]]:
    """The store, label index, identity and prefixes of a file or of all RDF files in a folder, at any depth.

    Raises GraphFileError: nothing there, an unknown extension, no triple, or a file that does not parse.
    """
    files = [path] if path.is_file() else sorted(path.rglob("*"))
    files = [file for file in files if _suffix(file) in FORMAT_BY_EXTENSION and file.is_file()]
    files = [
        file for file in files if not any(part[0] == "." for part in file.relative_to(path).parts)
    ]
    if not files:
        here = f"there is no RDF file in the folder {path}"
        raise GraphFileError(
            f"{path} has no extension of an RDF format" if path.is_file() else here,
            hint=_EXTENSIONS_HINT,
        )
    digest = _fingerprint(path, files, vocabulary)
    identity, prefixes = f"sha256:{digest}", _read_prefixes(files[:_MAX_PREFIX_FILES])
    if cache and sum(file.stat().st_size for file in files) > MIN_CACHED_BYTES:
        try:
            cached = _open_or_build_cache(cache_dir() / "graphs" / digest, path, files, vocabulary)
            return (*cached, identity, prefixes)
        except _DAMAGED_CACHE_ERRORS as error:
            _log.warning(
                "%s is loaded into memory: the cache folder cannot be used (%s)", path, error
            )
    store = Store()
    _load_into_store(store, path, files)
    return store, LabelIndex.build(collect_labels(store, vocabulary)), identity, prefixes


def _read_prefixes(files: Sequence[Path]) -> dict[str, str]:
    """The prefixes that files declare at their beginning, by namespace."""
    prefixes: dict[str, str] = {}
    for file in files:
        packed = file.suffix.lower() == ".gz"
        with (
            suppress(OSError, EOFError, zlib.error),
            gzip.open(file) if packed else file.open("rb") as stream,
        ):
            text = stream.read(_MAX_PREFIX_BYTES).decode(errors="replace")
            for turtle, xml, namespace in _PREFIX_DECLARATION.findall(text):
                prefixes.setdefault(namespace, turtle or xml)
    return prefixes


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


def _load_into_store(store: Store, path: Path, files: Sequence[Path]) -> None:
    # Relative IRIs must not depend on where the file lies.
    bases = [f"file:///{quote(os.fsencode(file.relative_to(path.parent)))}" for file in files]
    sources = [
        (file, FORMAT_BY_EXTENSION[_suffix(file)], base, True)
        for file, base in zip(files, bases, strict=True)
    ]
    try:
        with open_as_nquads(sources) as quads:
            store.bulk_load(
                quads, RdfFormat.N_QUADS, lenient=True
            )  # the IRIs were checked by the parser
    except SyntaxError as error:
        hint = _REMOTE_CONTEXT_HINT if "remote contexts" in error.msg else _FIX_FILE_HINT
        message = f"{error.filename} does not parse: {error.msg}"
        raise GraphFileError(message, hint=hint, line=error.lineno, column=error.offset) from error
    if next(store.quads_for_pattern(None, None, None, None), None) is None:
        raise GraphFileError(f"{path} holds no triple", hint="check that it is the file you mean")


# --- the cache folder


def _open_or_build_cache(
    folder: Path, path: Path, files: Sequence[Path], vocabulary: Vocabulary
) -> tuple[Store, LabelIndex]:
    for left in folder.parent.glob(".making-*"):
        if time.time() - left.lstat().st_mtime > _STALE_AFTER_S:
            shutil.rmtree(left, ignore_errors=True)
    try:
        return _open_cached(folder)
    except FileNotFoundError:
        pass
    except _DAMAGED_CACHE_ERRORS as error:
        _log.warning("the cached copy of %s is damaged (%s): it is made anew", path, error)
    folder.parent.mkdir(parents=True, exist_ok=True)
    making = Path(tempfile.mkdtemp(prefix=".making-", dir=folder.parent))
    graph = making / "graph"
    try:
        graph.mkdir()
        store = Store(graph / "store")
        _load_into_store(store, path, files)
        LabelIndex.build(collect_labels(store, vocabulary), graph / "labels.sqlite").close()
        del store  # which closes it
        (graph / _CHECKSUMS_FILE).write_text(
            json.dumps(_compute_checksums(graph)), encoding="utf-8"
        )
        if (
            _fingerprint(path, files, vocabulary) != folder.name
        ):  # other triples under its name, for ever
            raise GraphFileError(f"{path} changed while it was read", hint="open it again")
        try:
            os.rename(graph, folder)
        except OSError:  # There is one: of another process that was first, or the damaged one.
            try:
                return _open_cached(folder)
            except _DAMAGED_CACHE_ERRORS:
                os.rename(folder, making / "damaged")
                os.rename(graph, folder)
        return _open_cached(folder)
    finally:
        shutil.rmtree(making, ignore_errors=True)


def _open_cached(folder: Path) -> tuple[Store, LabelIndex]:
    """What was cached; nothing is opened before all of it was read, as damage may end the process there."""
    if json.loads((folder / _CHECKSUMS_FILE).read_text(encoding="utf-8")) != _compute_checksums(
        folder
    ):
        raise ValueError("its files are not as they were written")
    return Store.read_only(str(folder / "store")), LabelIndex.open(folder / "labels.sqlite")


def _compute_checksums(folder: Path) -> dict[str, int]:
    """The CRC-32 of each file; it finds chance damage, and reads several times faster than a digest."""
    sums: dict[str, int] = {}
    for file in sorted(folder.rglob("*")):
        if file.is_file() and file.name != _CHECKSUMS_FILE:
            total = 0
            with file.open("rb") as stream:
                while part := stream.read(1 << 20):
                    total = zlib.crc32(part, total)
            sums[file.name] = total
    return sums
