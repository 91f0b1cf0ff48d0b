"""The program of the process that parses RDF. ``kgwb.kg.parsing`` starts it, and explains why.

Standard input is a JSON list of sources: path, media type, base IRI, whether blank nodes are
renamed, bytes of memory, bytes of output, seconds of processor time. All triples go to standard
output as N-Quads. Standard error gets lines of JSON: one with the number of each source before it
is parsed, one with the error of a source that does not parse, or one at the end of all.
"""

from __future__ import annotations

import gzip
import json
import math
import resource
import sys
import time
import zlib
from contextlib import suppress
from typing import Any

import pyoxigraph

EXPANSION_MESSAGE = "it is nested too deeply or expands to far more than its size"
TOO_SLOW_MESSAGE = (
    "it takes far longer to parse than its size explains, as if it were nested too deeply"
)
INVALID_GZIP_MESSAGE = "it is not a complete gzip file"
MAX_STACK_BYTES = 2 << 20
"""Less than a thread has: what is parsed here cannot overflow the stack that reads the N-Quads."""
UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
UTF8_MARK = b"\xef\xbb\xbf"
"""Programs of Windows put it before UTF-8."""


class _LimitedOutput:
    """Standard output for a number of bytes. Writing more raises MemoryError."""

    def __init__(self, max_bytes: int) -> None:
        self.remaining_bytes = max_bytes

    def write(self, data: bytes) -> int:
        """Write bytes. Raises MemoryError if they are more than the limit leaves."""
        self.remaining_bytes -= len(data)
        if self.remaining_bytes < 0:
            raise MemoryError
        return sys.stdout.buffer.write(data)

    def flush(self) -> None:
        sys.stdout.buffer.flush()


def _set_resource_limit(kind: int, limit: int) -> None:
    """Set a limit of this process, one of ``resource``, within what the system allows.

    macOS refuses some limits. They are left as they are: a crash still ends only this process.
    """
    _, hard_limit = resource.getrlimit(kind)
    if hard_limit != resource.RLIM_INFINITY:
        limit = min(limit, hard_limit)
    with suppress(ValueError, OSError):
        resource.setrlimit(kind, (limit, hard_limit))


def _convert_to_nquads(
    path: str,
    media_type: str,
    base_iri: str,
    rename_blank_nodes: bool,
    memory_bytes: int,
    output_bytes: int,
    processor_s: float,
) -> None:
    """Write the triples of a file to standard output as N-Quads, within limits.

    A file whose name ends in ".gz" is unpacked. The mark at the start of UTF-8 files is skipped.
    Raises SyntaxError, MemoryError, OSError or ValueError for a file that cannot be read or
    parsed, and EOFError, zlib.error or gzip.BadGzipFile for a broken .gz file. A signal, SIGXCPU,
    ends the process if it needs more processor time than ``processor_s``.
    """
    _set_resource_limit(resource.RLIMIT_AS, memory_bytes)
    used_s = time.process_time()
    _set_resource_limit(resource.RLIMIT_CPU, math.ceil(used_s + processor_s))
    source: Any = open(path, "rb")  # noqa: SIM115 (the process ends soon)
    if path.lower().endswith(".gz"):
        source = gzip.GzipFile(fileobj=source)
    start = source.peek(3)
    if start.startswith(UTF16_MARKS):
        raise SyntaxError("it is UTF-16, and RDF is read as UTF-8")
    if start.startswith(UTF8_MARK):
        source.read(len(UTF8_MARK))
    rdf_format = pyoxigraph.RdfFormat.from_media_type(media_type)
    quads = pyoxigraph.parse(
        source, rdf_format, base_iri=base_iri, rename_blank_nodes=rename_blank_nodes
    )
    output: Any = _LimitedOutput(output_bytes)
    pyoxigraph.serialize(quads, output, pyoxigraph.RdfFormat.N_QUADS)


def _report(**data: Any) -> None:
    """Write a line of JSON to standard error, at once."""
    sys.stderr.write(f"{json.dumps(data)}\n")
    sys.stderr.flush()


def _main() -> int:
    """Convert all sources until one fails, and return the exit code: 0 if all were converted, or 1.

    The sources are read as JSON from standard input. Reports are written to standard error: the
    number of each source as it begins, an error with its line and column, and "done" at the end.
    """
    _set_resource_limit(resource.RLIMIT_CORE, 0)
    _set_resource_limit(resource.RLIMIT_STACK, MAX_STACK_BYTES)
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
