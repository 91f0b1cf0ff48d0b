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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from math import inf
from pathlib import Path
from subprocess import PIPE
from tempfile import NamedTemporaryFile
from threading import Thread, Timer
from typing import IO, Any

from pyoxigraph import Quad, RdfFormat, parse

from kgwb.errors import GraphError
from kgwb.kg.parser_process import EXPANSION_MESSAGE
from kgwb.network import MAX_TIMEOUT_S

MEMORY_BYTES, OUTPUT_BYTES = 400_000_000, 100_000_000
EXPANSION_FACTOR = 50
"""Bytes of memory, and of N-Quads, allowed besides for each byte of the source."""
GZIP_RATIO = 10
"""Bytes of RDF that a byte of a .gz file is taken for."""
MAX_COUNTED_REPLY_BYTES = 4_000_000
"""Bytes of an endpoint's reply that count for its limits; a file is as large as its owner wants."""
PARSER_COMMAND = (sys.executable, "-P", str(Path(__file__).with_name("parser_process.py")))
RdfSource = tuple[Path, RdfFormat, str, bool]
"""A file, its format, its base IRI, and whether its blank nodes get names that no other file has."""


@contextmanager
def open_as_nquads(
    sources: Sequence[RdfSource], timeout_s: float = inf, max_counted_bytes: int = sys.maxsize
) -> Iterator[IO[bytes]]:
    """N-Quads of files, to be read to the end; ``most_bytes`` of each count for what its parser may take.

    Raises SyntaxError, with file, line and column, for the first that does not parse (what was read until
    then is not all), TimeoutError, or GraphError where no process can be started.
    """
    jobs = []
    for file, form, base_iri, rename in sources:
        size = file.stat().st_size * (GZIP_RATIO if file.suffix.lower() == ".gz" else 1)
        extra = EXPANSION_FACTOR * min(size, max_counted_bytes)
        limits = (MEMORY_BYTES + extra, OUTPUT_BYTES + extra)
        jobs.append((str(file), form.media_type, base_iri, rename, *limits))
    try:
        process = subprocess.Popen(PARSER_COMMAND, stdin=PIPE, stdout=PIPE, stderr=PIPE)
    except OSError as error:
        message = f"the process that parses RDF cannot be started: {error}"
        raise GraphError(
            message, hint="close other programs, or files that this one holds open"
        ) from error
    with process:
        assert process.stdin and process.stdout and process.stderr
        lines: deque[bytes] = deque(maxlen=20)
        reader = Thread(target=lines.extend, args=(process.stderr,), name="kgwb-parser")
        reader.start()
        timer = Timer(min(timeout_s, MAX_TIMEOUT_S), process.kill)
        timer.daemon = True
        timer.start()
        cut: SyntaxError | None = None
        try:
            with suppress(BrokenPipeError), process.stdin as stdin:
                stdin.write(json.dumps(jobs).encode())
            yield process.stdout
        except SyntaxError as error:
            cut = error  # N-Quads end anywhere if the process died
        except BaseException:
            process.kill()
            raise
        finally:
            process.stdout.close()  # a process that still writes is ended by this
            code = process.wait()
            late = timer.finished.is_set()
            timer.cancel()
            reader.join()
    # The code says less than the reports: it is 0 for a killed process where SIGCHLD is ignored.
    report: dict[str, Any] = {
        "source": 0,
        "message": EXPANSION_MESSAGE if code < 0 else f"the parser ended with {code}",
    }
    for line in lines:
        if line.startswith(b"{"):  # a killed process may write besides
            report |= json.loads(line)
    if "done" not in report:
        if late:
            raise TimeoutError
        place = (str(sources[report["source"]][0]), report.get("line"), report.get("column"), None)
        raise SyntaxError(report["message"], place)
    if cut:
        raise cut


def parse_response(body: bytes, form: RdfFormat, base_iri: str, timeout_s: float) -> Iterator[Quad]:
    """The quads of an endpoint's reply. Raises what ``parsed`` does."""
    with NamedTemporaryFile(prefix="kgwb-") as file:
        file.write(body)
        file.flush()
        with open_as_nquads(
            [(Path(file.name), form, base_iri, False)], timeout_s, MAX_COUNTED_REPLY_BYTES
        ) as quads:
            data = quads.read()
    return parse(data, RdfFormat.N_QUADS, lenient=True)
