"""The program of the process that parses RDF. ``kgwb.kg.files`` starts it, and explains why.

Standard input is a JSON list of sources: path, media type, base IRI, what the names of its blank
nodes begin with, bytes of memory, bytes of output, seconds of processor time. All triples go to
standard output as N-Quads. Standard error gets lines of JSON: one with the number of each source
before it is parsed, some with how many of its bytes were read, one with what was changed in it, one
with the error of a source that does not parse, or one at the end of all.

With an argument, a number of bytes, it only tries whether its memory can be limited to so many. The
exit code is then 0 if it can, else 1.
"""

from __future__ import annotations

import gzip
import importlib
import json
import math
import os
import re
import sys
import threading
import time
import zlib
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any, NamedTuple

import pyoxigraph

resource: Any = None
with suppress(ImportError):  # Windows has no such limits
    resource = importlib.import_module("resource")

EXPANSION_MESSAGE = "it is nested too deeply or expands to far more than its size"
TOO_SLOW_MESSAGE = (
    "it takes far longer to parse than its size explains, as if it were nested too deeply"
)
INVALID_GZIP_MESSAGE = "it is not a complete gzip file"
FORMULA_MESSAGE = "it has an N3 formula in braces, and RDF has none"
MAX_STACK_BYTES = 2 << 20
"""Less than a thread has: what is parsed here cannot overflow the stack that reads the N-Quads."""
TOO_SLOW_EXIT_CODE = 124
"""The exit code where this process itself keeps to its processor time. ``timeout`` has it too."""
REPORT_INTERVAL_S = 0.25
"""How often it is reported how many bytes of a source were read."""
POLL_INTERVAL_S = 0.1
"""How often this process looks at its processor time then."""
BLANK_NODE = re.compile(
    rb"""
    ((?: <[^<> ]*+> | "(?:[^"\\]++ | \\.)*+" | [^<"_]++ | < | _(?!:) )*+)
    (?: _:([^ ]+) | \Z )
    """,
    re.VERBOSE,
)
"""Finds what stands before the next blank node in lines of N-Quads, and its name.

What looks like a blank node within an IRI or a literal is passed over. After the last blank node
the name is empty.
"""
BASE_DIRECTION = re.compile(
    rb'("@[A-Za-z0-9-]+?)--(?:ltr|rtl)(?= (?:<[^<> ]*> |_:[^ ]+ )?\.$)', re.MULTILINE
)
"""The base direction of a text in N-Quads (RDF 1.2), after its language."""
READ_BYTES = 1 << 16
GZIP_MARK = b"\x1f\x8b"
UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
UTF8_MARK = b"\xef\xbb\xbf"
"""Programs of Windows put it before UTF-8."""


class LanguageTags(NamedTuple):
    """How a format writes language tags."""

    pattern: re.Pattern[bytes]
    """Finds a tag, which is the group 1."""
    empty: bytes
    """What stands in the place of all that the pattern finds if the tag is empty."""
    end: bytes
    """A byte that never stands within a match."""


LANGUAGE_TAGS = {
    "application/rdf+xml": LanguageTags(
        re.compile(rb"""\sxml:lang\s*=\s*["']([^"'<>]*)["']"""), b"", b">"
    ),
    "application/ld+json": LanguageTags(
        re.compile(rb'"@language"\s*:\s*"([^"\\{}]*)"'), b'"@language":"und"', b"}"
    ),
}
LANGUAGE_TAGS_IN_TEXT = LanguageTags(
    re.compile(rb"(?<=[^\\][\"'])@(\w+(?:-\w+)*)", re.ASCII), b"", b"\n"
)
"""Those of Turtle and its relatives. A quote after a backslash does not end a text."""


@cache
def _valid_language(tag: bytes) -> bytes:
    """Return a tag if it is valid, else the longest beginning that is, with "-" for "_".

    "en_US" gives "en-US", and "zh-classical", a code of Wikipedia with a part of nine letters, "zh".
    If no beginning is valid, it is "und", the tag of an undetermined language.
    """
    parts = tag.decode(errors="replace").replace("_", "-").split("-")
    while parts:
        shorter = "-".join(parts)
        with suppress(ValueError):
            pyoxigraph.Literal("", language=shorter)
            return shorter.encode()
        parts.pop()
    return b"und"


class _RepairedStream:
    """A stream of RDF in which invalid language tags are replaced by valid ones."""

    def __init__(self, source: Any, tags: LanguageTags) -> None:
        self._source = source
        self._tags = tags
        self._unread = b""
        """What is repaired and was not read yet."""
        self._rest = b""
        """What follows, from the last end on: a tag in it may not be complete."""
        self.is_repaired = False
        """Whether anything was replaced so far."""
        self.replaced: Counter[tuple[bytes, bytes]] = Counter()
        """How often each tag was replaced by which."""

    def read(self, size: int) -> bytes:
        """Return at most ``size`` bytes, and none at the end."""
        while not self._unread:
            data = self._source.read(READ_BYTES)
            whole, end, self._rest = (self._rest + data).rpartition(self._tags.end)
            if not data:
                whole, end, self._rest = whole + end, self._rest, b""
            self._unread = self._tags.pattern.sub(self._repair, whole + end)
            if not data:
                break
        result = self._unread[:size]
        self._unread = self._unread[size:]
        return result

    def _repair(self, match: re.Match[bytes]) -> bytes:
        """Return what stands in the place of a match, and count it if its tag is not valid."""
        tag = match[1]
        valid = _valid_language(tag)
        if valid == tag:
            return match[0]
        self.is_repaired = True
        if not tag:  # valid in XML: it says that there is no language
            return self._tags.empty
        self.replaced[tag, valid] += 1
        before = match.string[match.start() : match.start(1)]
        after = match.string[match.end(1) : match.end()]
        return before + valid + after


class _LineOutput:
    """Standard output for lines of N-Quads, which are written whole, without base directions.

    More than ``max_bytes`` raise MemoryError. ``report`` is called every REPORT_INTERVAL_S.
    Blank nodes are numbered in their order. The parser gives random names to blank nodes without a
    name. By their numbers a file has the same triples each time. ``prefix`` stands before each
    number; without one, blank nodes keep their names. The last line is held back until ``finish``:
    before the error in "o"@en_US Oxigraph writes a triple with "o"@en.
    """

    def __init__(self, prefix: str, max_bytes: int, report: Callable[[], None]) -> None:
        self.directions = 0
        """How many base directions were left out: no term of RDF 1.1 has one."""
        self._remaining_bytes = max_bytes
        self._report = report
        self._next_report_at = time.monotonic() + REPORT_INTERVAL_S
        self._prefix = f"_:{prefix}".encode()
        self._is_numbered = prefix != ""
        self._names: dict[bytes, bytes] = {}
        """The new names of blank nodes by those of the parser."""
        self._pieces: list[bytes] = []
        """The last line, and the beginning of one that is not complete."""

    def write(self, data: bytes) -> int:
        """Write all lines that are complete now, but the last, and return how many bytes were given."""
        self._pieces.append(data)
        if b"\n" in data:
            lines = b"".join(self._pieces)
            last_end = lines.rindex(b"\n")
            last_start = lines.rfind(b"\n", 0, last_end) + 1
            self._write_lines(lines[:last_start])
            self._pieces = [lines[last_start:]]
        return len(data)

    def flush(self) -> None:
        sys.stdout.buffer.flush()

    def finish(self) -> None:
        """Write the last line."""
        self._write_lines(b"".join(self._pieces))
        self._pieces.clear()

    def _write_lines(self, lines: bytes) -> None:
        """Write lines with the new names of their blank nodes, and without base directions."""
        if self._is_numbered and b"_:" in lines:
            lines = self._number_blank_nodes(lines)
        if b"--" in lines:
            lines, left_out = BASE_DIRECTION.subn(rb"\1", lines)
            self.directions += left_out
        self._remaining_bytes -= len(lines)
        if self._remaining_bytes < 0:
            raise MemoryError
        now = time.monotonic()
        if now >= self._next_report_at:
            self._next_report_at = now + REPORT_INTERVAL_S
            self._report()
        sys.stdout.buffer.write(lines)

    def _number_blank_nodes(self, lines: bytes) -> bytes:
        """Return lines with the new names of their blank nodes."""
        pieces = []
        for before, name in BLANK_NODE.findall(lines):
            pieces.append(before)
            if name:
                next_number = len(self._names) + 1
                pieces.append(self._names.setdefault(name, b"%s%d" % (self._prefix, next_number)))
        return b"".join(pieces)


def set_resource_limit(name: str, limit: int) -> None:
    """Set a limit of this process, such as "RLIMIT_AS", at most to what the system allows.

    The limit is left as it is on Windows, which has none, and where the system refuses it, as macOS
    does for some.
    """
    if resource is None:
        return
    kind = getattr(resource, name)
    _, hard_limit = resource.getrlimit(kind)
    if hard_limit != resource.RLIM_INFINITY:
        limit = min(limit, hard_limit)
    with suppress(ValueError, OSError):
        resource.setrlimit(kind, (limit, hard_limit))


class _ProcessorTime:
    """The processor time that this process may use.

    The system ends the process by the signal SIGXCPU. Where the system has no such limit, as on
    Windows, a thread ends it, with the exit code TOO_SLOW_EXIT_CODE.
    """

    def __init__(self) -> None:
        self._limit_s = math.inf

    def limit(self, limit_s: float) -> None:
        """End the process when it has used ``limit_s`` seconds of processor time since its start.

        A later call replaces the limit. Where the system has no such limit, a thread watches the
        time.
        """
        is_watched = self._limit_s < math.inf
        self._limit_s = limit_s
        if resource is not None:
            set_resource_limit("RLIMIT_CPU", math.ceil(limit_s))
        elif not is_watched:
            threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        """Wait until the processor time is used up, and end the process."""
        while time.process_time() < self._limit_s:
            time.sleep(POLL_INTERVAL_S)
        os._exit(TOO_SLOW_EXIT_CODE)


_processor_time = _ProcessorTime()


def _convert_to_nquads(
    path: str,
    media_type: str,
    base_iri: str,
    blank_node_prefix: str,
    memory_bytes: int,
    output_bytes: int,
    processor_s: float,
) -> None:
    """Write the triples of a file to standard output as N-Quads, within limits.

    The limits are bytes of memory, bytes of output, and ``processor_s`` seconds of processor time
    from now, after which the process ends. Blank nodes are numbered in their order, after
    ``blank_node_prefix``; without one they keep their names. A gzip file is unpacked, and a byte
    order mark of UTF-8 skipped. Raises SyntaxError for a file that does not parse or is UTF-16,
    MemoryError above a limit, OSError or ValueError, and EOFError, zlib.error or gzip.BadGzipFile
    for a broken gzip file.

    Language tags that are not valid are replaced, and reported. Only in JSON-LD is that done at
    once, because Oxigraph leaves such texts out without an error. Another file is parsed again, and
    its first triples are written twice.
    """
    set_resource_limit("RLIMIT_AS", memory_bytes)
    _processor_time.limit(time.process_time() + processor_s)
    rdf_format = pyoxigraph.RdfFormat.from_media_type(media_type)
    tags = LANGUAGE_TAGS.get(media_type, LANGUAGE_TAGS_IN_TEXT)
    has_quiet_errors = rdf_format == pyoxigraph.RdfFormat.JSON_LD

    def convert(*, repairs: bool) -> None:
        """Write the triples, and report what was changed."""
        file = open(path, "rb")  # noqa: SIM115 (the process ends soon)
        source = _unpack(file)
        if repairs:
            source = _RepairedStream(source, tags)
        output: Any = _LineOutput(
            blank_node_prefix, output_bytes, lambda: _report(position=file.tell())
        )
        quads: Any = pyoxigraph.parse(source, rdf_format, base_iri=base_iri)
        if rdf_format == pyoxigraph.RdfFormat.N3:
            quads = map(_refuse_formula, quads)
        pyoxigraph.serialize(quads, output, pyoxigraph.RdfFormat.N_QUADS)
        output.finish()
        replaced = []
        if repairs:
            for (tag, valid), number in source.replaced.most_common():
                replaced.append((tag.decode(errors="replace"), valid.decode(), number))
        if replaced or output.directions:
            _report(changes={"languages": replaced, "directions": output.directions})

    try:
        convert(repairs=has_quiet_errors)
    except SyntaxError:
        if has_quiet_errors or not _has_invalid_language(path, tags):
            raise
        convert(repairs=True)


def _unpack(file: Any) -> Any:
    """Return a stream of what is in a file: unpacked if it is gzip, without a byte order mark.

    Raises SyntaxError for UTF-16.
    """
    source = file
    if file.peek(2).startswith(GZIP_MARK):
        source = gzip.GzipFile(fileobj=file)
    start = source.peek(3)
    if start.startswith(UTF16_MARKS):
        raise SyntaxError("it is UTF-16, and RDF is UTF-8")
    if start.startswith(UTF8_MARK):
        source.read(len(UTF8_MARK))
    return source


def _refuse_formula(quad: pyoxigraph.Quad) -> pyoxigraph.Quad:
    """Return a quad as it is. Raises SyntaxError for one in a formula, which is not asserted."""
    if quad.graph_name != pyoxigraph.DefaultGraph():
        raise SyntaxError(FORMULA_MESSAGE)
    return quad


def _has_invalid_language(path: str, tags: LanguageTags) -> bool:
    """Return whether a file has a language tag that is to be replaced."""
    with open(path, "rb") as file:
        stream = _RepairedStream(_unpack(file), tags)
        while stream.read(READ_BYTES):
            if stream.is_repaired:
                return True
    return False


def _report(**data: Any) -> None:
    """Write a line of JSON to standard error, at once."""
    sys.stderr.write(f"{json.dumps(data)}\n")
    sys.stderr.flush()


def _try_memory_limit(memory_bytes: int) -> int:
    """Limit this process's memory; return 0 if twice as much can then not be allocated, else 1."""
    set_resource_limit("RLIMIT_AS", memory_bytes)
    try:
        bytearray(2 * memory_bytes)
    except MemoryError:
        return 0
    return 1


def _main() -> int:
    """Convert all sources until one fails, and return the exit code: 0 if all were converted, or 1.

    The sources are read as JSON from standard input. Reports are written to standard error: the
    number of each source as it begins, an error with its line and column, and "done" at the end.
    With an argument, only the limit of memory is tried, and its result returned.
    """
    if len(sys.argv) > 1:
        return _try_memory_limit(int(sys.argv[1]))
    set_resource_limit("RLIMIT_CORE", 0)
    set_resource_limit("RLIMIT_STACK", MAX_STACK_BYTES)
    for number, source in enumerate(json.load(sys.stdin.buffer)):
        _report(source=number)
        try:
            _convert_to_nquads(*source)
        except SyntaxError as error:
            _report(message=error.msg, line=error.lineno, column=error.offset)
        except MemoryError as error:
            # Oxigraph has a message for a term that is too long; other errors have none.
            _report(message=str(error) or EXPANSION_MESSAGE)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            _report(message=f"{INVALID_GZIP_MESSAGE}: {error}")
        except (OSError, ValueError) as error:
            _report(message=str(error))
        else:
            continue
        return 1
    sys.stdout.flush()
    _report(done=True)
    return 0


if __name__ == "__main__":
    sys.exit(_main())
