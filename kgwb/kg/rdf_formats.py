"""What format a file of a graph has, recognized by its beginning.

The extension of a file is often wrong: Turtle in ``.owl``, RDF/XML in ``.ttl``, a web page in place
of a download. ``rdf_formats.toml`` is the table of what files begin with.
"""

from __future__ import annotations

import gzip
import re
import tomllib
import zlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from pyoxigraph import RdfFormat

from kgwb.kg.parser_process import GZIP_MARK, UTF8_MARK

FORMAT_BY_EXTENSION = {
    ".ttl": "TURTLE",
    ".nt": "N_TRIPLES",
    ".nq": "N_QUADS",
    ".trig": "TRIG",
    ".n3": "N3",
    ".rdf": "RDF_XML",
    ".xml": "RDF_XML",
    ".owl": "RDF_XML",
    ".jsonld": "JSON_LD",
    ".json": "JSON_LD",
}
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


_TABLE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
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
    name = file.name.lower()
    unpacked = Path(name.removesuffix(".gz"))
    return unpacked.suffix


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
