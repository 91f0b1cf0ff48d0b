"""Lines of N-Quads in the form in which Oxigraph writes them: single spaces, and no comments.

N-Triples in this form are N-Quads, too. One regular expression reads a line, because nothing else
in Python is as fast.
"""

from __future__ import annotations

import re

Line = tuple[bytes, bytes, bytes, bytes, bytes, bytes]
"""What tells of a line whether and how it names something.

They are the subject if it is an IRI, the predicate, the object if it is an IRI, the text and the language of the
object if it is a literal without escaped characters, and the rest up to the " ." at the end. It
begins with the object if that is anything else. Each is empty if the line has no such part. IRIs
have their "<" and ">".
"""
_IRI = rb"<[^<>\"{}|^`\\\x00-\x20]*+>"
_TEXT = rb'"([^"\\\n\r]*+)"(?:@([A-Za-z]+(?:-[A-Za-z0-9]+)*+)|\^\^IRI)?+'
_ESCAPED = rb'"[^"\\\n\r]*+(?:\\.[^"\\\n\r]*+)*+"(?:@[A-Za-z0-9-]++|\^\^IRI)?+'


def _compile(pattern: bytes) -> re.Pattern[bytes]:
    """Return a regular expression in which IRI, TEXT and ESCAPED stand for those of these terms."""
    pattern = pattern.replace(b"TEXT", _TEXT).replace(b"ESCAPED", _ESCAPED)
    return re.compile(pattern.replace(b"IRI", _IRI), re.MULTILINE)


_LINE = _compile(rb"^(?:(<[^ ]+)|[^ ]+) ([^ ]+) (?:(<[^ <]+)|TEXT|)(.*) \.\n")
_PLAIN_LINE = _compile(rb"^(IRI) (IRI) (?:(IRI)|TEXT|(ESCAPED))(?: IRI)?+ \.\n")
"""A line without blank nodes and triples in triples. Its rest is a literal with escaped characters."""


def split_lines(data: bytes) -> list[Line]:
    """Return the parts of whole lines of N-Quads in the form in which Oxigraph writes them."""
    return _LINE.findall(data)


def split_plain_lines(data: bytes) -> list[Line] | None:
    """Return the parts of lines, or None if one is not in the form in which Oxigraph writes them.

    It is also None for blank nodes, triples in triples, escaped characters in IRIs, bytes that are
    not UTF-8, and a last line without its end. Whether IRIs and literals are valid is not checked.
    """
    lines = _PLAIN_LINE.findall(data)
    ends_with_line = data.endswith(b"\n")
    if len(lines) != data.count(b"\n") or not ends_with_line or not _is_utf8(data):
        return None
    return lines


def split_by_blank_nodes(data: bytes) -> tuple[bytes, bytes]:
    """Return the lines without blank nodes, and the others.

    A line where "_:" stands in an IRI or a literal may be among the others, too.
    """
    if b"_:" not in data:
        return data, b""
    without = []
    others = []
    for line in data.splitlines(keepends=True):
        if b"_:" in line:
            others.append(line)
        else:
            without.append(line)
    return b"".join(without), b"".join(others)


def _is_utf8(data: bytes) -> bool:
    """Return whether bytes are a text in UTF-8."""
    if data.isascii():
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
