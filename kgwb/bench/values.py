"""When two answers are the same: by their values, never by their spelling.

Gold answers are strings (most question sets give no datatypes), so the lexical form shows what a value is.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from datetime import UTC, datetime
from decimal import Decimal
from unicodedata import normalize
from urllib.parse import quote, unquote_to_bytes, urlsplit

_NUMBER = re.compile(r"[+-]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")
_MOMENT = re.compile(
    r"(-?[0-9]{4,}-[0-9]{2}-[0-9]{2})(T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?)?(Z|[+-][0-9]{2}:[0-9]{2})?"
)
_MIDNIGHT = re.compile(r"T00:00:00(?:\.0+)?")
_IRI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://\S+")
_ESCAPES = re.compile(r"(?:%[0-9A-Fa-f]{2})+")
_UNRESERVED = re.compile(r"[A-Za-z0-9._~-]")
_PORTS = {"http": ":80", "https": ":443"}


def value_of(text: str) -> Hashable:
    """What is compared in place of an answer's string.

    - A number of any numeric datatype is its number: "3999", "3999.0", "+3.999E3". With leading zeros it is a
      code and stays text ("007").
    - A dateTime at midnight is that day, as Wikidata and DBpedia write days; any other dateTime is its moment
      in UTC (taken for UTC where it names no zone). A day's own time zone is dropped.
    - An IRI is in the normal form of RFC 3987, section 5.3: letter case of scheme and host, escapes that need
      not be, the default port. http and https, and upper and lower case of a path, stay apart.
    - Anything else is its text in Unicode's form NFC: language tags are not part of it, letter case is.
    """
    if _NUMBER.fullmatch(text):
        return Decimal(text)
    if moment := _MOMENT.fullmatch(text):
        day, time, zone = moment.groups()
        if time is None or _MIDNIGHT.fullmatch(time):
            return str(day)
        try:
            return datetime.fromisoformat(text if zone else text + "Z").astimezone(UTC).isoformat()
        except (ValueError, OverflowError):  # a year that datetime does not know
            return text
    return _iri(text) if _IRI.fullmatch(text) else normalize("NFC", text)


def _iri(text: str) -> str:
    try:
        parts = urlsplit(text)
    except ValueError:
        return text
    host = parts.netloc.lower().removesuffix(_PORTS.get(parts.scheme, ":"))
    same = parts._replace(netloc=host, path=parts.path or "/").geturl()
    return normalize("NFC", _ESCAPES.sub(lambda escapes: _needed(escapes[0]), same))


def _needed(escapes: str) -> str:
    """The escapes an IRI cannot do without, the others as the characters they stand for."""
    try:
        text = unquote_to_bytes(escapes).decode()
    except UnicodeDecodeError:
        return escapes.upper()
    return "".join(
        char if char > "\x9f" or _UNRESERVED.fullmatch(char) else quote(char, safe="") for char in text
    )
