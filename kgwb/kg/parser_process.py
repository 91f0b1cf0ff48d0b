"""The program of the process that parses RDF: ``kgwb.kg.parsing`` starts it, and says why it is a process.

Stdin holds a JSON list of sources: path, media type, base IRI, whether blank nodes are renamed, bytes of
memory and of output. All triples go to stdout as N-Quads. Stderr gets a line of JSON when a source is begun,
one that says what is wrong with it, and one when all were parsed.
"""

from __future__ import annotations

import gzip
import json
import resource
import sys
import zlib
from contextlib import suppress
from typing import Any

import pyoxigraph

EXPANSION_MESSAGE = "it is nested too deeply or expands to far more than its size"
INVALID_GZIP_MESSAGE = "it is no whole gzip file"
MAX_STACK_BYTES = 2 << 20
"""Less than a thread has: what can be parsed here does not overflow the stack of who reads the N-Quads."""


class _LimitedOutput:
    """Stdout, for a number of bytes."""

    def __init__(self, most: int) -> None:
        self.remaining_bytes = most

    def write(self, data: bytes) -> int:
        self.remaining_bytes -= len(data)
        if self.remaining_bytes < 0:
            raise MemoryError
        return sys.stdout.buffer.write(data)

    def flush(self) -> None:
        sys.stdout.buffer.flush()


def _set_resource_limit(kind: int, most: int) -> None:
    _, hard = resource.getrlimit(kind)
    with suppress(
        ValueError, OSError
    ):  # macOS refuses some limits; a crash still ends this process alone
        resource.setrlimit(
            kind, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard)
        )


def _convert_to_nquads(
    path: str, media_type: str, base_iri: str, rename: bool, memory: int, output: int
) -> None:
    _set_resource_limit(resource.RLIMIT_AS, memory)
    source: Any = open(path, "rb")  # noqa: SIM115 (the process ends soon)
    if path.lower().endswith(".gz"):
        source = gzip.GzipFile(fileobj=source)
    start = source.peek(3)[:3]
    if start[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise SyntaxError("it is UTF-16, and RDF is read as UTF-8")
    if start == b"\xef\xbb\xbf":  # UTF-8 with the mark that Windows puts first
        source.read(3)
    form, sink = pyoxigraph.RdfFormat.from_media_type(media_type), _LimitedOutput(output)
    quads = pyoxigraph.parse(source, form, base_iri=base_iri, rename_blank_nodes=rename)
    pyoxigraph.serialize(quads, sink, pyoxigraph.RdfFormat.N_QUADS)  # type: ignore[arg-type]


def _report(**data: Any) -> None:
    sys.stderr.write(f"{json.dumps(data)}\n")
    sys.stderr.flush()


def _main() -> int:
    _set_resource_limit(resource.RLIMIT_CORE, 0)
    _set_resource_limit(resource.RLIMIT_STACK, MAX_STACK_BYTES)
    for number, source in enumerate(json.load(sys.stdin.buffer)):
        _report(source=number)
        try:
            _convert_to_nquads(*source)
        except SyntaxError as error:
            _report(message=error.msg, line=error.lineno, column=error.offset)
        except MemoryError as error:
            _report(
                message=str(error) or EXPANSION_MESSAGE
            )  # Oxigraph names its limit of a term's size
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
