"""RDF parsed in a process of its own.

The parsers have no limits: a few kilobytes nested deeply overflow the stack, which ends the process, and the
entities, prefixes or contexts of a few more expand to gigabytes. So ``parser_process`` parses, with limits on
its stack, its memory and its output, and what is read here is N-Quads, which neither nest nor expand.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from subprocess import PIPE
from threading import Thread
from typing import IO, Any

from pyoxigraph import Quad, RdfFormat, parse

from kgwb.errors import GraphError, GraphFileError
from kgwb.kg import parser_process

MEMORY_BYTES, OUTPUT_BYTES = 400_000_000, 100_000_000
EXPANSION = 50
"""Bytes of memory, and of N-Quads, allowed besides for each byte of the source."""
GZIP_RATIO = 10
"""Bytes of RDF that a byte of a .gz file is taken for."""
REPLY_BYTES = 4_000_000
"""Bytes of an endpoint's reply that count for its limits; a file is as large as its owner wants."""
_COMMAND = (sys.executable, "-P", parser_process.__file__)
_FIX = "mend the file there, or convert it with another tool"
_REMOTE = "JSON-LD contexts are not fetched: write the context into the file, or convert it to Turtle"


@contextmanager
def files_parsed(files: Sequence[tuple[Path, RdfFormat, str]]) -> Iterator[IO[bytes]]:
    """N-Quads of files (with their format and base IRI), to be read to the end.

    Raises GraphFileError for the first that does not parse; what was read until then is not all. Raises
    GraphError where no process can be started.
    """
    sources = [(str(file), form.media_type, base, *_limits(_size(file))) for file, form, base in files]
    with _started() as process:
        assert process.stdin and process.stdout and process.stderr
        lines: deque[bytes] = deque(maxlen=20)
        reader = Thread(target=lines.extend, args=(process.stderr,), name="kgwb-parser")
        reader.start()
        cut: SyntaxError | None = None
        try:
            with suppress(BrokenPipeError), process.stdin as stdin:
                stdin.write(json.dumps(sources).encode() + b"\n")
            yield process.stdout
        except SyntaxError as error:
            cut = error  # N-Quads end anywhere if the process died
        except BaseException:
            process.kill()
            raise
        finally:
            process.stdout.close()  # a process that still writes is ended by this
            code = process.wait()
            reader.join()
    report = _report(code, lines)
    if "done" not in report:
        raise _unparsed(files[report["source"]][0], report)
    if cut:
        raise cut


def reply_parsed(body: bytes, form: RdfFormat, base_iri: str, timeout_s: float) -> Iterator[Quad]:
    """The quads of an endpoint's reply. Raises SyntaxError, or TimeoutError if parsing takes longer.

    Raises GraphError as ``files_parsed`` does.
    """
    source = ("", form.media_type, base_iri, *_limits(min(len(body), REPLY_BYTES)))
    job = json.dumps([source]).encode() + b"\n" + body
    with _started() as process:
        try:
            quads, lines = process.communicate(job, timeout_s)
        except subprocess.TimeoutExpired:
            raise TimeoutError from None
        finally:
            process.kill()
    report = _report(process.returncode, lines.splitlines())
    if "done" not in report:
        raise SyntaxError(report["message"])
    return parse(quads, RdfFormat.N_QUADS, lenient=True)


def _started() -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(_COMMAND, stdin=PIPE, stdout=PIPE, stderr=PIPE)
    except OSError as error:
        message = f"the process that parses RDF cannot be started: {error}"
        raise GraphError(message, hint="close other programs, or files that this one holds open") from error


def _size(file: Path) -> int:
    return file.stat().st_size * (GZIP_RATIO if file.suffix.lower() == ".gz" else 1)


def _limits(size: int) -> tuple[int, int]:
    return MEMORY_BYTES + EXPANSION * size, OUTPUT_BYTES + EXPANSION * size


def _report(code: int, lines: Iterable[bytes]) -> dict[str, Any]:
    """What a process wrote: the source it was at, what is wrong with it, and "done" if it came to the end.

    Its code says less: it is 0 for a process that was killed where SIGCHLD is ignored.
    """
    message = parser_process.TOO_MUCH if code < 0 else f"the parser ended with {code}"
    report: dict[str, Any] = {"source": 0, "message": message}
    for line in lines:
        if line.startswith(b"{"):  # a killed process may write besides
            report |= json.loads(line)
    return report


def _unparsed(file: Path, report: dict[str, Any]) -> GraphFileError:
    message, line, column = (report.get(name) for name in ("message", "line", "column"))
    if report.get("gzip"):
        return GraphFileError(f"{file} is no whole gzip file: {message}", hint="fetch the file again")
    hint = _REMOTE if "remote contexts" in str(message) else _FIX
    return GraphFileError(f"{file} does not parse: {message}", hint=hint, line=line, column=column)
