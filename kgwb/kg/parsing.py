"""Parsing RDF in a process of its own.

The parsers have no limits. A few kilobytes that are nested deeply overflow the stack, which ends
the process, and the entities, prefixes or contexts of a few more expand to gigabytes. XML that is
nested takes time in proportion to the square of its depth. So ``parser_process`` parses with limits
on its stack, its memory, its output and its processor time. This process only reads the N-Quads
that it writes, which can neither be nested nor expand.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from math import inf
from pathlib import Path
from subprocess import PIPE
from tempfile import TemporaryDirectory
from threading import Thread, Timer
from typing import IO, Any

from pyoxigraph import Quad, RdfFormat, parse

from kgwb.errors import GraphError
from kgwb.kg.parser_process import EXPANSION_MESSAGE, TOO_SLOW_EXIT_CODE, TOO_SLOW_MESSAGE
from kgwb.network import MAX_TIMEOUT_S

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
"""How many bytes of RDF a byte of a .gz file counts as."""
MAX_COUNTED_REPLY_BYTES = 4_000_000
"""How much of an endpoint's reply counts for its limits. A file counts whole: a person chose it."""
MAX_REPORT_LINES = 20
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


@contextmanager
def open_as_nquads(
    sources: Sequence[RdfSource],
    timeout_s: float = inf,
    max_counted_bytes: int = sys.maxsize,
    on_position: Callable[[int, int], None] = lambda number, position: None,
) -> Iterator[IO[bytes]]:
    """Parse files, and give the block their N-Quads as one stream, which it must read to the end.

    The parser may take memory and processor time, and write N-Quads, in proportion to the size of a
    file, of which ``max_counted_bytes`` count. ``on_position`` is called on another thread with the
    number of a file and how many of its bytes were read, from time to time.

    Raises SyntaxError with file, line and column for the first file that does not parse, also if
    the parser dies. The block may have read a part of the N-Quads by then. Raises TimeoutError
    after ``timeout_s``, and GraphError if no process can be started.
    """
    jobs = [_parser_job(source, max_counted_bytes) for source in sources]
    try:
        process = subprocess.Popen(PARSER_COMMAND, stdin=PIPE, stdout=PIPE, stderr=PIPE)
    except OSError as error:
        raise GraphError(
            f"the process that parses RDF cannot be started: {error}",
            hint="if memory or processes are short, close other programs; if too many files are open, "
            "restart the kernel of the notebook, or give the command again",
        ) from error
    with process:
        assert process.stdin and process.stdout and process.stderr
        report_lines: deque[bytes] = deque(maxlen=MAX_REPORT_LINES)
        reports = _watch_reports(process.stderr, on_position)
        reader = Thread(target=report_lines.extend, args=(reports,), name="kgwb-parser")
        reader.start()
        timer = Timer(min(timeout_s, MAX_TIMEOUT_S), process.kill)
        timer.daemon = True
        timer.start()
        nquads_error: SyntaxError | None = None
        try:
            with suppress(OSError), process.stdin as stdin:  # the parser died, see its report
                stdin.write(json.dumps(jobs).encode())
            yield process.stdout
        except SyntaxError as error:
            nquads_error = error  # N-Quads end in the middle of a line if the parser died
        except BaseException:
            process.kill()
            raise
        finally:
            process.stdout.close()  # this ends a parser that is still writing
            exit_code = process.wait()
            is_timeout = timer.finished.is_set()
            timer.cancel()
            reader.join()

    report = _last_report(report_lines, exit_code)
    if "done" not in report:
        if is_timeout:
            raise TimeoutError
        file, *_ = sources[report["source"]]
        line = report.get("line")
        column = report.get("column")
        place = (str(file), line, column, None)
        raise SyntaxError(report["message"], place)
    if nquads_error:
        raise nquads_error


def _watch_reports(
    lines: Iterable[bytes], on_position: Callable[[int, int], None]
) -> Iterator[bytes]:
    """Yield the lines that the parser process reports, without positions, which are told."""
    number = 0
    for line in lines:
        if line.startswith(b'{"position"'):
            on_position(number, json.loads(line)["position"])
            continue
        if line.startswith(b'{"source"'):
            number = json.loads(line)["source"]
        yield line


def _parser_job(source: RdfSource, max_counted_bytes: int) -> tuple[Any, ...]:
    """Return a source as the parser process gets it, as JSON data.

    It is the path, media type, base IRI, what the names of blank nodes begin with, and what is
    allowed: the bytes of memory and of output, and the seconds of processor time. A byte of a .gz
    file counts as GZIP_RATIO bytes.
    """
    file, rdf_format, base_iri, blank_node_prefix = source
    size = file.stat().st_size
    if file.suffix.lower() == ".gz":
        size *= GZIP_RATIO
    counted_bytes = min(size, max_counted_bytes)
    extra = EXPANSION_FACTOR * counted_bytes
    processor_s = PROCESSOR_S + PROCESSOR_S_PER_MB * counted_bytes / 1e6
    limits = (MEMORY_BYTES + extra, OUTPUT_BYTES + extra, processor_s)
    return (str(file), rdf_format.media_type, base_iri, blank_node_prefix, *limits)


def _last_report(lines: Iterable[bytes], exit_code: int) -> dict[str, Any]:
    """Return the reports of the parser process, merged into one dict.

    Of each key the last value counts. "source" is the number of the source that was begun last, and
    "done" is there only if all were parsed. An error has "message" and perhaps "line" and "column".
    If the parser reported no error, "message" is TOO_SLOW_MESSAGE for a process whose processor
    time was over, EXPANSION_MESSAGE for one that another signal ended (on Windows, an exception of
    the system), else it names the exit code. Lines that are not JSON objects are ignored.
    """
    message = f"the parser ended with {exit_code}"
    if exit_code < 0 or exit_code >= FIRST_WINDOWS_EXCEPTION:
        message = EXPANSION_MESSAGE
    if exit_code in TOO_SLOW_EXIT_CODES:
        message = TOO_SLOW_MESSAGE
    report: dict[str, Any] = {"source": 0, "message": message}
    for line in lines:
        if line.startswith(b"{"):  # a process that is killed may write something else
            report |= json.loads(line)
    return report


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
    what ``open_as_nquads`` does.
    """
    # A file in a folder, because Windows opens a temporary file only once.
    with TemporaryDirectory(prefix="kgwb-") as folder:
        file = Path(folder, "reply")
        file.write_bytes(body)
        source = (file, rdf_format, base_iri, "")
        with open_as_nquads([source], timeout_s, MAX_COUNTED_REPLY_BYTES) as nquads:
            data = nquads.read()
    return parse(data, RdfFormat.N_QUADS, lenient=True)
