"""Opening RDF files: finding, parsing and loading them, and keeping large graphs in a cache folder.

The format of a file is recognized by its beginning, since its extension is often wrong: Turtle in
``.owl``, RDF/XML in ``.ttl``, a web page in place of a download. ``rdf_formats.toml`` is the table of
what files begin with.

RDF is parsed in a process of its own. The parsers have no limits. A few kilobytes that are nested
deeply overflow the stack, which ends the process, and the entities, prefixes or contexts of a few
more expand to gigabytes. XML that is nested takes time in proportion to the square of its depth. So
``parser_process`` parses with limits on its stack, its memory, its output and its processor time.
This process only reads the N-Quads that it writes, which can neither be nested nor expand.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import logging
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from functools import cache, partial
from itertools import islice
from math import inf
from pathlib import Path
from subprocess import PIPE
from tempfile import TemporaryDirectory
from threading import Thread, Timer
from typing import IO, Any, NamedTuple, TypeVar
from urllib.parse import quote

from pyoxigraph import DefaultGraph, Quad, RdfFormat, Store, parse

from kgwb import disk
from kgwb.background import run_in_thread, transient_bar
from kgwb.disk import cache_dir
from kgwb.errors import GraphError, GraphFileError
from kgwb.kg.base import Vocabulary
from kgwb.kg.label_search import LabelIndex
from kgwb.kg.labels import LabelReader, split_by_blank_nodes, split_plain_lines
from kgwb.kg.parser_process import (
    EXPANSION_MESSAGE,
    GZIP_MARK,
    TOO_SLOW_EXIT_CODE,
    TOO_SLOW_MESSAGE,
    UTF8_MARK,
)
from kgwb.network import MAX_TIMEOUT_S
from kgwb.records import JsonObject
from kgwb.text import list_first, pluralize

_TABLE = disk.read_table("kg/rdf_formats.toml")
FORMAT_BY_EXTENSION: Mapping[str, str] = _TABLE["extensions"]
"""Names of ``pyoxigraph.RdfFormat``."""
EXTENSIONS_HINT = (
    "open a file of triples, or a folder with such files; their extensions are"
    f" {', '.join(FORMAT_BY_EXTENSION)}, each also with .gz"
)
BEGINNING_BYTES = 1 << 16
"""So many bytes of a file are looked at."""


class FileKind(NamedTuple):
    """A kind of file: a row of ``rdf_formats.toml``, where the fields are explained."""

    name: str
    begins: str = ""
    format: str = ""
    also: Sequence[str] = ()
    only: str = ""
    remedy: str = ""

    @property
    def rdf_format(self) -> RdfFormat | None:
        """The format that a file of this kind is read in; None if kgwb does not read it."""
        return getattr(RdfFormat, self.format, None)


KINDS = [FileKind(**row) for row in _TABLE["kind"]]
UNKNOWN = FileKind("no RDF that kgwb knows", remedy=EXTENSIONS_HINT)


@cache
def _compile(begins: str) -> re.Pattern[bytes]:
    """Return the pattern of a beginning, in which names in braces stand for parts of the table."""
    for name, part in reversed(_TABLE["parts"].items()):
        begins = begins.replace(f"{{{name}}}", part)
    return re.compile(begins.encode(), re.DOTALL)


def extension_of(file: Path) -> str:
    """Return the extension of a file in lower case, without ".gz"."""
    return Path(file.name.lower().removesuffix(".gz")).suffix


def read_beginning(file: Path) -> bytes:
    """Return the first BEGINNING_BYTES of a file, unpacked if it is gzip, without a byte order mark.

    Of a broken gzip file nothing is returned. Raises OSError.
    """
    with file.open("rb") as stream:
        packed = stream.read(BEGINNING_BYTES)
    beginning = packed
    if packed.startswith(GZIP_MARK):
        try:
            with gzip.open(file) as unpacked:
                beginning = unpacked.read(BEGINNING_BYTES)
        except (OSError, EOFError, zlib.error):
            return b""
    return beginning.removeprefix(UTF8_MARK)


def identify_kind(file: Path) -> FileKind:
    """Return the kind of a file, with the format that it is to be read in.

    What the file begins with decides, then its extension. A file that kgwb does not read has no
    format. Raises OSError.
    """
    by_extension = FORMAT_BY_EXTENSION.get(extension_of(file), "")
    beginning = read_beginning(file)
    for kind in KINDS:
        if kind.only in ("", by_extension) and _compile(kind.begins).match(beginning):
            if by_extension in kind.also:
                return kind._replace(format=by_extension)
            return kind
    if not by_extension:
        return UNKNOWN
    return FileKind(by_extension, format=by_extension)


# Opening files


MIN_CACHED_BYTES = 1_000_000
"""Graphs whose files are larger than this are kept in the cache folder."""
CACHE_VERSION = 2
"""Must be raised when a cache or a label index of before would give other results."""
_FOLDER_VERSION = 7
"""Of folders in the cache: it must be raised when labels are kept or found, blank nodes named, or
named graphs merged in another way. Folders of lower versions are removed.

CACHE_VERSION would change the identity of each graph, and no recorded run would be found again.
"""
_FOLDER_NAME = re.compile(r"labels([0-9]+)-[0-9a-f]{64}")
"""The name of a graph's folder in the cache, with its version."""
_PLAIN_FORMATS = (RdfFormat.N_TRIPLES, RdfFormat.N_QUADS)
_FIX_FILE_HINT = "fix the file, download it again, or convert it with another tool"
_PARSE_HINTS: Mapping[str, str] = _TABLE["remedies"]
"""What to do about an error of a parser, by a part of its message."""
READING_SHARE = 0.25
"""The share of reading in the time of loading a graph into the cache, estimated from profiles."""
STORING_SHARE = 0.9
"""The share of all up to the triples in the store, and the labels in their index."""
_BAR_FORMAT = "{desc}{percentage:3.0f}%|{bar}| {remaining} left"  # the description ends with ": "
_READ_BYTES = 1 << 16
"""So many bytes of N-Quads are read at once. More are slower: they do not fit the processor's cache."""
_CHECKSUMS_FILE = "checksums.json"
_NOTES_FILE = "notes.json"
_MAX_SHOWN_TAGS = 5
_MAX_PREFIX_FILES = 5
_MAX_PREFIX_BYTES = 20_000
_PREFIX_DECLARATION = re.compile(
    r"(?:prefix\s+([a-z]\w{0,20}):\s*<|xmlns:([a-z]\w{0,20})=[\"'])(\w+:[^\s<>\"']{1,200}[/#])",
    re.I | re.A,
)
"""Finds a prefix in Turtle (group 1) or in RDF/XML (group 2), and its namespace (group 3)."""
_CHECKSUM_CHUNK_BYTES = 1 << 20
_QUADS_BETWEEN_CHECKS = 10_000
_DRAFT_BYTES = 1 << 16
"""So many bytes of a draft are parsed at once."""
_STALE_AFTER_S = {".making-*": 86_400, ".muted-*": 30 * 86_400}
"""After this time an unfinished folder, or a copy, in the cache belongs to a process that was killed."""
MAX_COPIES = 8
"""So many copies of stores are in folders at the same time: each has a dozen files open."""
_copies: set[Path] = set()
"""The folders of the copies in use."""
MAX_REMOVALS = 10
"""How often the folder of a copy is removed: what is left then is removed when it is stale."""
_DAMAGED_CACHE_ERRORS = (
    OSError,
    ValueError,
    RuntimeError,  # the errors of RocksDB, Oxigraph's store
    sqlite3.Error,
)
_log = logging.getLogger("kgwb")
T = TypeVar("T")


class OpenedFiles(NamedTuple):
    """A graph that was opened from files."""

    store: Store
    labels: LabelIndex
    identity: str
    """A digest of the content."""
    prefixes: dict[str, str]
    """The prefixes that the files declare, by namespace."""
    notes: tuple[str, ...]
    """What was left out or changed, a sentence each."""


def open_files(path: Path, vocabulary: Vocabulary, *, cache: bool = True) -> OpenedFiles:
    """Open a file, or all RDF files in a folder and its subfolders, as one graph.

    What is in a file is recognized by its beginning (``kgwb.kg.files``). In a folder only
    files with the extension of an RDF format are read. Those that hold something else are left out,
    with a note, and so is a file or folder whose name begins with ".". A graph larger than
    MIN_CACHED_BYTES is loaded from the cache folder, or kept there; it is loaded into memory if the
    cache folder cannot be used.

    Raises GraphFileError if there is no RDF file, a file cannot be read or parsed, or no file has
    a triple.
    """
    formats, left_out = _find_rdf_files(path)
    notes = []
    for file, kind in left_out.items():
        notes.append(f"{file.relative_to(path)} was left out: it is {kind.name}; {kind.remedy}")
    load = Load(path, formats, vocabulary)
    opened = load_with_bar(load, partial(_open_while_watched, load, cache=cache))
    return opened._replace(notes=(*notes, *opened.notes))


def identify_files(path: Path, vocabularies: Iterable[Vocabulary]) -> list[str]:
    """Return the identity that a graph in files would have with each vocabulary if it were opened now.

    Each file is read once, and nothing is parsed. Raises GraphFileError if there is no RDF file, or
    one cannot be read.
    """
    formats, _ = _find_rdf_files(path)
    digests = _digest_files(path, formats, vocabularies)
    return [f"sha256:{digest}" for digest in digests]


def _open_while_watched(load: Load, *, cache: bool) -> OpenedFiles:
    """Open files as ``open_files`` does. Raises LoadStoppedError too, after ``load.stop``."""
    digest = load.digest_files()
    identity = f"sha256:{digest}"
    prefixes = _read_prefixes(load.files[:_MAX_PREFIX_FILES])
    if cache and load.size > MIN_CACHED_BYTES:
        try:
            store, labels, notes = _open_or_build_cache(load, digest)
            return OpenedFiles(store, labels, identity, prefixes, notes)
        except _DAMAGED_CACHE_ERRORS as error:
            load.check()
            _log.warning(
                "%s is loaded into memory: the cache folder cannot be used (%s)", load.path, error
            )
    store = _load_into_memory(load)
    load.begin("indexing the labels", STORING_SHARE)
    return OpenedFiles(store, _build_index(load), identity, prefixes, tuple(load.notes))


def _find_rdf_files(path: Path) -> tuple[dict[Path, RdfFormat], dict[Path, FileKind]]:
    """Return the format of the file, or of the RDF files in a folder and its subfolders, sorted by path.

    In a folder an RDF file has one of the extensions in FORMAT_BY_EXTENSION, which ".gz" may
    follow. Names that begin with "." are left out. Also returned are the other files with such an
    extension, with their kinds. Raises GraphFileError if no file is left, or one cannot be read.
    """
    if path.is_file():
        with _reading(path):
            kind = identify_kind(path)
        if kind.rdf_format is None:
            raise GraphFileError(f"{path} is {kind.name}", hint=kind.remedy)
        return {path: kind.rdf_format}, {}
    formats = {}
    left_out = {}
    for file in sorted(path.rglob("*")):
        inner_path = file.relative_to(path)
        is_hidden = any(part.startswith(".") for part in inner_path.parts)
        has_extension = extension_of(file) in FORMAT_BY_EXTENSION
        if not has_extension or is_hidden or not file.is_file():
            continue
        with _reading(file):
            kind = identify_kind(file)
        if kind.rdf_format is None:
            left_out[file] = kind
        else:
            formats[file] = kind.rdf_format
    if not formats:
        problem = f"there is no RDF file in the folder {path}"
        hint = EXTENSIONS_HINT
        for file, kind in left_out.items():
            problem += f"; {file.name} is {kind.name}"
            hint = kind.remedy
        raise GraphFileError(problem, hint=hint)
    return formats, left_out


def _reading(file: Path) -> AbstractContextManager[None]:
    """Raise GraphFileError in place of an OSError while a file is read."""
    return disk.os_errors_as_input_error(
        f"{file} cannot be read", "check that it is there, and that you may read it", GraphFileError
    )


def _read_prefixes(files: Sequence[Path]) -> dict[str, str]:
    """Return the prefixes that files declare in their first _MAX_PREFIX_BYTES, by namespace.

    The first declaration of a namespace counts. Files that cannot be read have none. Prefixes of
    Turtle, SPARQL and XML are found, by a search in the text, in comments as well.
    """
    prefixes: dict[str, str] = {}
    for file in files:
        with suppress(OSError):
            beginning = read_beginning(file)[:_MAX_PREFIX_BYTES]
            text = beginning.decode(errors="replace")
            declarations = _PREFIX_DECLARATION.findall(text)
            for turtle_prefix, xml_prefix, namespace in declarations:
                prefix = turtle_prefix or xml_prefix
                prefixes.setdefault(namespace, prefix)
    return prefixes


def _digest_files(
    path: Path, files: Iterable[Path], vocabularies: Iterable[Vocabulary]
) -> list[str]:
    """Return a SHA-256 digest of the content of files, their names, and each of the vocabularies.

    A vocabulary counts because it decides what a label search finds, CACHE_VERSION because it
    decides how. A name is the path of a file within ``path``. Of the name of a single file only the
    extension counts. Raises GraphFileError for a file that cannot be read.
    """
    entries = b""
    for file in files:
        with _reading(file), file.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256")
        name = file.relative_to(path).as_posix()
        if file == path:
            name = "".join(file.suffixes[-2:])
        entries += os.fsencode(f"{name}\n{digest.hexdigest()}\n")
    digests = []
    for vocabulary in vocabularies:
        settings = f"{CACHE_VERSION}\n{vocabulary!r}\n"
        digests.append(hashlib.sha256(settings.encode() + entries).hexdigest())
    return digests


# Parsing and storing


class LoadStoppedError(Exception):
    """Loading was stopped, because nobody waits for it any more."""


class Load:
    """Loading a graph. One thread loads it, and others may ask how far it is, or stop it."""

    def __init__(
        self, path: Path, formats: Mapping[Path, RdfFormat], vocabulary: Vocabulary
    ) -> None:
        self.path = path
        self.files = list(formats)
        self.vocabulary = vocabulary
        self.formats = formats
        """The format of each file, by its content."""
        self._sizes = [file.stat().st_size for file in self.files]
        self.size = sum(self._sizes)
        """The bytes of all files."""
        self._stopped = threading.Event()
        self.restart()

    def restart(self) -> None:
        """Begin from the start: nothing is read yet."""
        self.task = "reading"
        self.triples = 0
        """How many were read so far."""
        self.share = 0.0
        """How much of the work is done, from 0 to 1. It is estimated."""
        self.labels = LabelReader(self.vocabulary)
        self.notes: list[str] = []
        """What was changed in the files, a sentence each."""

    def stop(self) -> None:
        """Make the thread that loads the graph end soon, with LoadStoppedError."""
        self._stopped.set()

    def begin(self, task: str, share: float) -> None:
        """Begin another part of the work, when ``share`` of all is done.

        Raises LoadStoppedError after ``stop``.
        """
        self.check()
        self.task = task
        self.share = share

    def is_stopped(self) -> bool:
        """Return whether ``stop`` was called."""
        return self._stopped.is_set()

    def check(self) -> None:
        """Raise LoadStoppedError after ``stop``, else do nothing."""
        if self.is_stopped():
            raise LoadStoppedError

    def digest_files(self) -> str:
        """Return a digest of the files as they are now, and the vocabulary; see ``_digest_files``."""
        [digest] = _digest_files(self.path, self.files, [self.vocabulary])
        return digest

    def tell_position(self, number: int, position: int) -> None:
        """Note that so many bytes of the file with this number were read."""
        read = sum(self._sizes[:number]) + position
        self.share = READING_SHARE * read / max(1, self.size)

    def read_if_plain(self) -> bool:
        """Read the labels of the files, if all are N-Triples or N-Quads in the form of Oxigraph.

        In this form a line has single spaces between its terms, and no blank nodes, comments,
        triples in triples, or escaped characters in IRIs. Such files can be loaded as they are.
        Returns whether all have this form, to the end of the last line; if not, a part was read.
        Whether IRIs and literals are valid is not checked. Raises LoadStoppedError after ``stop``,
        and OSError.
        """
        self.restart()
        if not set(self.formats.values()).issubset(_PLAIN_FORMATS):
            return False
        for number, file in enumerate(self.files):
            with file.open("rb") as stream:
                while data := stream.read(_READ_BYTES):
                    self.check()
                    lines = split_plain_lines(data + stream.readline())
                    if lines is None:
                        return False
                    self.triples += len(lines)
                    self.labels.read_lines(lines)
                    self.tell_position(number, stream.tell())
        return True

    def parse(self) -> Iterator[tuple[bytes, bytes]]:
        """Parse the files, and yield lines of N-Quads without blank nodes, and lines with them.

        Their labels are read. Relative IRIs are resolved against the path within the folder of
        ``path``, so that they do not depend on where the files are. Blank nodes have the same names
        each time: "_:f2n17" is the 17th of the second file. Raises GraphFileError, with line and
        column where they are known, for the first file that does not parse, and LoadStoppedError
        after ``stop``.
        """
        self.restart()
        sources = []
        for number, file in enumerate(self.files, start=1):
            inner_path = file.relative_to(self.path.parent).as_posix()
            base_iri = f"file:///{quote(os.fsencode(inner_path))}"
            sources.append((file, self.formats[file], base_iri, f"f{number}n"))
        try:
            for data in parse_as_nquads(sources, on_report=self._read_report):
                self._count(data)
                self.labels.read(data)
                yield split_by_blank_nodes(data)
        except SyntaxError as error:
            hint = _FIX_FILE_HINT
            for part, remedy in _PARSE_HINTS.items():
                if part in error.msg:
                    hint = remedy
            message = f"{error.filename} does not parse: {error.msg}"
            raise GraphFileError(
                message, hint=hint, line=error.lineno, column=error.offset
            ) from error

    def _read_report(self, number: int, report: JsonObject) -> None:
        """Note how much of the file with this number was read, or what the parser changed in it."""
        if "position" in report:
            self.tell_position(number, report["position"])
        changes = report.get("changes")
        if not changes:
            return
        name = self.files[number].name
        replaced = [f"@{tag} as @{valid} ({count:,})" for tag, valid, count in changes["languages"]]
        if replaced:
            shown = list_first(replaced, _MAX_SHOWN_TAGS)
            self.notes.append(
                f"{name}: language tags that are not valid were read otherwise: {shown}"
            )
        if changes["directions"]:
            texts = pluralize(changes["directions"], "text")
            self.notes.append(
                f"{name}: {texts} lost the base direction, which RDF 1.1 does not have"
            )

    def _count(self, lines: bytes) -> None:
        """Count lines as triples that were read. Raises LoadStoppedError after ``stop``."""
        self.check()
        self.triples += lines.count(b"\n")


def _load_into_memory(load: Load) -> Store:
    """Load files into a store in memory, and read their labels.

    Raises GraphFileError for a file that does not parse, and if there is no triple, and
    LoadStoppedError after ``load.stop``.
    """
    store = Store()
    for lines, lines_with_blank_nodes in load.parse():
        # Lenient, because the parser has checked the IRIs already.
        store.bulk_load(lines, RdfFormat.N_QUADS, lenient=True)
        # bulk_load would rename blank nodes.
        store.bulk_extend(parse(lines_with_blank_nodes, RdfFormat.N_QUADS, lenient=True))
    _finish_store(store, load)
    return store


def _write_drafts(load: Load, draft: Path, blank_nodes_draft: Path) -> None:
    """Parse files, and write their triples to two new files of N-Quads.

    Oxigraph loads a file several times as fast as a stream. The triples with blank nodes are in the
    second, because loading it as a file would rename the nodes. Raises what ``Load.parse`` does.
    """
    with draft.open("wb") as output, blank_nodes_draft.open("wb") as blank_nodes_output:
        for lines, lines_with_blank_nodes in load.parse():
            output.write(lines)
            blank_nodes_output.write(lines_with_blank_nodes)


def _load_drafts(store: Store, load: Load, draft: Path, blank_nodes_draft: Path) -> None:
    """Load what ``_write_drafts`` wrote into a store, and remove it.

    Oxigraph reads a file with threads of its own. Their stack is as large as that of the parser, so
    triples in triples, which need a part of the stack for each, are read from a stream on this
    thread. Raises OSError, and LoadStoppedError after ``load.stop``.
    """
    if load.labels.may_be_nested:
        with draft.open("rb") as stream:
            store.bulk_load(stream, RdfFormat.N_QUADS, lenient=True)
    else:
        store.bulk_load(path=str(draft), format=RdfFormat.N_QUADS, lenient=True)

    def quads_with_blank_nodes() -> Iterator[Quad]:
        """Yield them in small pieces, since other threads can take over only between two of them."""
        with blank_nodes_draft.open("rb") as stream:
            while lines := stream.readlines(_DRAFT_BYTES):
                load.check()
                yield from parse(b"".join(lines), RdfFormat.N_QUADS, lenient=True)

    store.bulk_extend(quads_with_blank_nodes())
    draft.unlink()
    blank_nodes_draft.unlink()


def _load_plain_files(store: Store, load: Load, drafts: tuple[Path, Path]) -> None:
    """Load files for which ``Load.read_if_plain`` is true into a store.

    Raises GraphFileError, with line and column, for the first file that does not parse.
    """
    try:
        for file, rdf_format in load.formats.items():
            store.bulk_load(path=str(file), format=rdf_format)
    except SyntaxError:
        # Each of Oxigraph's threads has a part of the file, and does not know the line. The parser
        # knows it, and reads language tags that are not valid.
        _write_drafts(load, *drafts)
        _load_drafts(store, load, *drafts)


def _finish_store(store: Store, load: Load) -> None:
    """Make each triple of a store one, also if it stands in several named graphs.

    ``merge_named_graphs`` says how. Raises GraphFileError if the store has no triple.
    """
    if not any(store.quads_for_pattern(None, None, None, None)):
        hint = "check that this is the right file"
        if RdfFormat.JSON_LD in load.formats.values():
            hint += "; JSON without an @context, and a context alone, have no triples"
        raise GraphFileError(f"the graph {load.path} contains no triples", hint=hint)
    merge_named_graphs(store, load.check)


def merge_named_graphs(store: Store, check: Callable[[], object] = lambda: None) -> None:
    """Add the triples of the named graphs to the default graph, if any triple is in several graphs.

    A query that names no graph then has each triple once. Over the union of all graphs Oxigraph
    gives a triple as often as there are graphs with it. ``check`` is called now and then, and may
    raise.
    """

    def named_quads() -> Iterator[Quad]:
        """Yield the quads of the named graphs, and call ``check`` now and then."""
        for graph_name in store.named_graphs():
            for place, quad in enumerate(store.quads_for_pattern(None, None, None, graph_name)):
                if place % _QUADS_BETWEEN_CHECKS == 0:
                    check()
                yield quad

    def is_repeated(quad: Quad) -> bool:
        """Return whether the triple of a quad is in several graphs."""
        places = store.quads_for_pattern(quad.subject, quad.predicate, quad.object, None)
        return len(list(islice(places, 2))) > 1

    has_default = any(store.quads_for_pattern(None, None, None, DefaultGraph()))
    first_names = list(islice(store.named_graphs(), 2))
    graph_count = len(first_names)
    if has_default:
        graph_count += 1
    if graph_count > 1 and any(map(is_repeated, named_quads())):
        store.bulk_extend(map(_without_graph, named_quads()))


def _without_graph(quad: Quad) -> Quad:
    """Return the triple of a quad as a quad of the default graph."""
    return Quad(quad.subject, quad.predicate, quad.object)


def reads_union(store: Store) -> bool:
    """Return whether a query that names no graph must be asked of the union of all graphs.

    It must if there are named graphs, unless ``merge_named_graphs`` has merged them.
    """
    for graph_name in store.named_graphs():
        for quad in store.quads_for_pattern(None, None, None, graph_name):
            return _without_graph(quad) not in store
    return False


# The cache folder: in a folder named by the fingerprint, the store, the label index, and checksums


_Cached = tuple[Store, LabelIndex, tuple[str, ...]]
"""What a folder of the cache has: the store, the label index, and the notes on what was changed."""


def _open_or_build_cache(load: Load, digest: str) -> _Cached:
    """Open a graph's store, label index and notes in the cache; build them first if missing or damaged.

    ``digest`` is that of the files. Folders that killed processes and lower versions left are
    removed before. The graph is built in a temporary folder and then renamed, so that other
    processes never see a part of it. Raises GraphFileError as ``open_files`` does, and if the files
    changed while they were read, and one of _DAMAGED_CACHE_ERRORS if the cache cannot be used.
    """
    cache = cache_dir() / "graphs"
    folder = cache / f"labels{_FOLDER_VERSION}-{digest}"
    _remove_stale_folders(cache)
    try:
        return _open_cached(folder)
    except FileNotFoundError:
        pass
    except _DAMAGED_CACHE_ERRORS as error:
        _log.warning("the cached copy of %s is damaged (%s): it is built again", load.path, error)
    cache.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=".making-", dir=cache))
    try:
        _build_cache(draft / "graph", load)
        if load.digest_files() != digest:
            # Otherwise the cache would have the wrong triples under this digest for ever.
            raise GraphFileError(
                f"the graph {load.path} changed while it was read",
                hint="wait until it is written, then open it again",
            )
        return _move_into_cache(draft, folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _remove_stale_folders(cache: Path) -> None:
    """Remove the folders that killed processes left in the cache, and those of lower versions.

    Left ones are older than _STALE_AFTER_S; younger ones may be in use. Folders of a lower
    _FOLDER_VERSION are not read any more: an earlier kgwb that still uses them builds its own again.
    """
    for folder in cache.glob("*"):
        named = _FOLDER_NAME.fullmatch(folder.name)
        if named and int(named[1]) < _FOLDER_VERSION:
            shutil.rmtree(folder, ignore_errors=True)
    for pattern, longest_use_s in _STALE_AFTER_S.items():
        for left in cache.glob(pattern):
            with suppress(FileNotFoundError):  # a copy may be removed meanwhile
                age_s = time.time() - left.lstat().st_mtime
                if age_s > longest_use_s:
                    shutil.rmtree(left, ignore_errors=True)


def copy_store(store: Store) -> tuple[Store, Path | None]:
    """Return a copy of a store that can be changed, and its folder, which is to be removed after use.

    The copy of a store in the cache shares its files by hard links. The copy of one in memory is in
    memory, without a folder, and so is any copy if the cache folder cannot be used, or if
    MAX_COPIES are in folders.
    """
    folder = cache_dir() / "graphs" / f".muted-{os.urandom(16).hex()}"
    if len(_copies) < MAX_COPIES:
        _copies.add(folder)
        try:
            store.backup(folder)
            return Store(folder), folder
        except _DAMAGED_CACHE_ERRORS:  # a RuntimeError for a store in memory
            remove_copy(folder)
    in_memory = Store()
    in_memory.bulk_extend(store)
    return in_memory, None


def remove_copy(folder: Path) -> None:
    """Remove the folder of a copied store. A store writes until it is closed, so it is tried again."""
    _copies.discard(folder)
    for _ in range(MAX_REMOVALS):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return


def _build_cache(folder: Path, load: Load) -> None:
    """Write the store of the files, its label index, notes, and checksums of all to a new folder.

    Raises GraphFileError for a file that does not parse, and if there is no triple, and
    LoadStoppedError after ``load.stop``. Both are closed at the end.
    """
    folder.mkdir()
    store = Store(folder / "store")
    drafts = (folder.with_name("triples.nq"), folder.with_name("blank_nodes.nq"))
    try:
        is_plain = load.read_if_plain()
        if not is_plain:
            _write_drafts(load, *drafts)
        load.begin("storing the triples", READING_SHARE)
        with ThreadPoolExecutor(1) as executor:
            # At the same time, because Oxigraph loads a file without Python.
            indexing = executor.submit(_write_index, folder / "labels.sqlite", load)
            if is_plain:
                _load_plain_files(store, load, drafts)
            else:
                _load_drafts(store, load, *drafts)
            _finish_store(store, load)
            indexing.result()
    finally:
        # This closes it. An open store goes on writing to its folder, which could not be removed.
        del store
    (folder / _NOTES_FILE).write_text(json.dumps(load.notes), encoding="utf-8")
    load.begin("checking the files", STORING_SHARE)
    checksums = json.dumps(_compute_checksums(folder))
    checksums_file = folder / _CHECKSUMS_FILE
    checksums_file.write_text(checksums, encoding="utf-8")


def _write_index(file: Path, load: Load) -> None:
    """Write the index of the labels that were read to a file. Raises what ``_build_index`` does."""
    index = _build_index(load, file)
    index.close()


def _build_index(load: Load, file: Path | None = None) -> LabelIndex:
    """Build the index of the labels that were read, in a new file, or in memory without one.

    Raises LoadStoppedError soon after ``load.stop``: the process waits at its exit for the thread
    that writes the index. Raises sqlite3.Error if the index cannot be written.
    """
    try:
        return LabelIndex.build(load.labels.labels(), file, load.is_stopped)
    except sqlite3.Error:
        load.check()
        raise


def _move_into_cache(draft: Path, folder: Path) -> _Cached:
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
    return _open_written(folder)


def _open_cached(folder: Path) -> _Cached:
    """Open the store, the label index and the notes in a folder of the cache, if they are as they were written.

    The checksums of all files are compared first, because opening a damaged store may end the
    process. The store is read-only. Raises ValueError if they differ, FileNotFoundError if there is
    no such folder, or another of _DAMAGED_CACHE_ERRORS.
    """
    checksums_file = folder / _CHECKSUMS_FILE
    checksums = json.loads(checksums_file.read_text(encoding="utf-8"))
    if checksums != _compute_checksums(folder):
        raise ValueError("its files are not as they were written")
    return _open_written(folder)


def _open_written(folder: Path) -> _Cached:
    """Open the store, the label index and the notes in a folder of the cache."""
    store = Store.read_only(str(folder / "store"))
    labels = LabelIndex.open(folder / "labels.sqlite")
    notes = json.loads((folder / _NOTES_FILE).read_text(encoding="utf-8"))
    return store, labels, tuple(notes)


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


def load_with_bar(load: Load, work: Callable[[], T]) -> T:
    """Return what ``work`` returns, and show a progress bar meanwhile if it takes long.

    The work is done on another thread, so that an interrupt can stop it at any time. Only the main
    thread has interrupts and shows a bar; other threads do the work themselves. Raises what the
    work raises.
    """
    if threading.current_thread() is not threading.main_thread():
        return work()
    with transient_bar(total=1.0, bar_format=_BAR_FORMAT) as bar:

        def show() -> None:
            """Draw the bar as far as the work is done."""
            text = f"{load.path.name}: {load.task}, {load.triples:,} triples"
            bar.set_description(text, refresh=False)
            bar.update(load.share - bar.n)

        return run_in_thread(work, poll=show, on_abandon=load.stop)


MEMORY_BYTES = 400_000_000
"""Memory of the parser for a source of no size."""
OUTPUT_BYTES = 100_000_000
"""N-Quads of a source of no size."""
EXPANSION_FACTOR = 50
"""Further bytes of memory, and of N-Quads, for each byte of the source."""
PROCESSOR_S = 20.0
"""Seconds of processor time for a source of no size."""
PROCESSOR_S_PER_MB = 1.0
"""Further seconds for each megabyte of the source. The slowest format, JSON-LD, takes 0.02."""
GZIP_RATIO = 10
"""How many bytes of RDF a byte of a gzip file counts as."""
MAX_COUNTED_REPLY_BYTES = 4_000_000
"""How much of an endpoint's reply counts for its limits. A file counts whole: a person chose it."""
FIRST_WINDOWS_EXCEPTION = 0xC0000000
"""On Windows the least exit code of a process that an error ended, such as a stack that is full."""
TOO_SLOW_EXIT_CODES = [TOO_SLOW_EXIT_CODE]
"""The exit codes of a parser whose processor time is over."""
if hasattr(signal, "SIGXCPU"):  # Windows has no such signal
    TOO_SLOW_EXIT_CODES.append(-signal.SIGXCPU)
PARSER_COMMAND = (sys.executable, "-P", str(Path(__file__).with_name("parser_process.py")))
RdfSource = tuple[Path, RdfFormat, str, str]
"""A file, its format, its base IRI, and what the names of its blank nodes begin with.

A number follows, and the same file has the same numbers each time. If it is empty, names are kept.
"""


def parse_as_nquads(
    sources: Sequence[RdfSource],
    timeout_s: float = inf,
    max_counted_bytes: int = sys.maxsize,
    on_report: Callable[[int, JsonObject], None] = lambda number, report: None,
) -> Iterator[bytes]:
    """Parse files, and yield whole lines of N-Quads, some _READ_BYTES at once.

    The parser may take memory and processor time, and write N-Quads, in proportion to the size of a
    file, of which ``max_counted_bytes`` count. ``on_report`` is called on another thread with the
    number of a file and what the parser reports of it: "position" is how many bytes were read so
    far, and "changes" what was changed. Of these, "languages" has each language tag that is not
    valid with the one in its place and how often, and "directions" how many base directions were
    left out.

    Raises SyntaxError with file, line and column for the first file that does not parse, also if
    the parser dies. A part of the N-Quads was yielded by then. Raises TimeoutError
    after ``timeout_s``, and GraphError if no process can be started.
    """
    jobs = [_parser_job(source, max_counted_bytes) for source in sources]
    with disk.os_errors_as_input_error(
        "the process that parses RDF cannot be started",
        "if memory or processes are short, close other programs; if too many files are open, "
        "restart the kernel of the notebook, or give the command again",
        GraphError,
    ):
        process = subprocess.Popen(PARSER_COMMAND, stdin=PIPE, stdout=PIPE, stderr=PIPE)
    with process:
        assert process.stdin and process.stdout and process.stderr
        report: JsonObject = {"source": 0}
        reader = Thread(
            target=_read_reports, args=(process.stderr, report, on_report), name="kgwb-parser"
        )
        reader.start()
        timer = Timer(min(timeout_s, MAX_TIMEOUT_S), process.kill)
        timer.daemon = True
        timer.start()
        try:
            with suppress(OSError), process.stdin as stdin:  # the parser died, see its report
                stdin.write(json.dumps(jobs).encode())
            yield from _read_lines(process.stdout)
        except BaseException:
            process.kill()
            raise
        finally:
            process.stdout.close()  # this ends a parser that is still writing
            exit_code = process.wait()
            is_timeout = timer.finished.is_set()
            timer.cancel()
            reader.join()

    if "done" not in report:
        if is_timeout:
            raise TimeoutError
        file, *_ = sources[report["source"]]
        place = (str(file), report.get("line"), report.get("column"), None)
        raise SyntaxError(report.get("message") or _explain_exit(exit_code), place)


def _read_lines(stream: IO[bytes]) -> Iterator[bytes]:
    """Yield the lines of a stream, some _READ_BYTES at once, without a last one that has no end.

    N-Quads end in the middle of a line if their parser died.
    """
    while data := stream.read(_READ_BYTES):
        data += stream.readline()
        if data.endswith(b"\n"):
            yield data


def _read_reports(
    lines: Iterable[bytes], merged: JsonObject, on_report: Callable[[int, JsonObject], None]
) -> None:
    """Merge what the parser process reports into one object, and tell each report.

    "source" is the number of the source that was begun last, and "done" is there only if all were
    parsed. An error has "message" and perhaps "line" and "column". Lines that are not JSON objects
    are ignored: a process that is killed may write something else.
    """
    for line in lines:
        if line.startswith(b"{"):
            report = json.loads(line)
            merged.update(report)
            on_report(merged["source"], report)


def _parser_job(source: RdfSource, max_counted_bytes: int) -> tuple[Any, ...]:
    """Return a source as the parser process gets it, as JSON data.

    It is the path, media type, base IRI, what the names of blank nodes begin with, and what is
    allowed: the bytes of memory and of output, and the seconds of processor time. A byte of a gzip
    file counts as GZIP_RATIO bytes.
    """
    file, rdf_format, base_iri, blank_node_prefix = source
    size = file.stat().st_size
    with suppress(OSError), file.open("rb") as stream:
        if stream.read(len(GZIP_MARK)) == GZIP_MARK:
            size *= GZIP_RATIO
    counted_bytes = min(size, max_counted_bytes)
    extra = EXPANSION_FACTOR * counted_bytes
    processor_s = PROCESSOR_S + PROCESSOR_S_PER_MB * counted_bytes / 1e6
    limits = (MEMORY_BYTES + extra, OUTPUT_BYTES + extra, processor_s)
    return (str(file), rdf_format.media_type, base_iri, blank_node_prefix, *limits)


def _explain_exit(exit_code: int) -> str:
    """Return why a parser process ended that reported no error.

    That is TOO_SLOW_MESSAGE if its processor time was over, and EXPANSION_MESSAGE if another signal
    ended it (on Windows, an exception of the system).
    """
    if exit_code in TOO_SLOW_EXIT_CODES:
        return TOO_SLOW_MESSAGE
    if exit_code < 0 or exit_code >= FIRST_WINDOWS_EXCEPTION:
        return EXPANSION_MESSAGE
    return f"the parser ended with {exit_code}"


def is_memory_limited() -> bool:
    """Return whether this system limits the memory of the process that parses RDF.

    Windows and macOS do not. Raises OSError if no process can be started.
    """
    command = (*PARSER_COMMAND, str(MEMORY_BYTES))
    finished = subprocess.run(command, check=False)
    return finished.returncode == 0


def parse_response(
    body: bytes, rdf_format: RdfFormat, base_iri: str, timeout_s: float
) -> Iterator[Quad]:
    """Parse the body of an endpoint's reply, and return an iterator of its quads.

    Blank nodes keep their names. The body is written to a temporary file, which is removed. Raises
    what ``parse_as_nquads`` does.
    """
    # A file in a folder, because Windows opens a temporary file only once.
    with TemporaryDirectory(prefix="kgwb-") as folder:
        file = Path(folder, "reply")
        file.write_bytes(body)
        source = (file, rdf_format, base_iri, "")
        data = b"".join(parse_as_nquads([source], timeout_s, MAX_COUNTED_REPLY_BYTES))
    return parse(data, RdfFormat.N_QUADS, lenient=True)
