"""When two answers are the same: they are compared by value, never by spelling."""

from __future__ import annotations

import re
from collections.abc import Hashable
from datetime import UTC, datetime
from decimal import Decimal
from unicodedata import normalize
from urllib.parse import quote, unquote_to_bytes, urlsplit

_NUMBER = re.compile(r"[+-]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")
_DATE_OR_DATETIME = re.compile(
    r"(-?[0-9]{4,}-[0-9]{2}-[0-9]{2})(T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?)?(Z|[+-][0-9]{2}:[0-9]{2})?"
)
_MIDNIGHT = re.compile(r"T00:00:00(?:\.0+)?")
_IRI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://\S+")
_ESCAPES = re.compile(r"(?:%[0-9A-Fa-f]{2})+")
_UNRESERVED = re.compile(r"[A-Za-z0-9._~-]")
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}


def is_iri(text: str) -> bool:
    """Return whether an answer's text is an IRI with a scheme and a place: "http://e/a".

    Results have no kinds of terms, so a literal that is an address as a whole counts, too.
    """
    return _IRI.fullmatch(text) is not None


def normalize_value(text: str) -> Hashable:
    """Return the value that is compared in place of an answer's text.

    Gold answers have no datatypes, so the kind of a value is recognized by its lexical form:
    - A number is its numeric value: "3999", "3999.0" and "+3.999E3" are equal. With leading zeros
      it is a code and stays text ("007").
    - A dateTime at midnight is its date, because Wikidata and DBpedia write dates like that. Any
      other dateTime is its moment in UTC; without a time zone it is taken to be in UTC. The time
      zone of a date is dropped.
    - An IRI is brought into the normal form of RFC 3987, section 5.3: scheme and host in lower
      case, no needless escapes, no default port. http and https stay different, and so do upper and
      lower case in a path.
    - Anything else is its text in Unicode's form NFC. Letter case counts.
    """
    if _NUMBER.fullmatch(text):
        return Decimal(text)
    moment = _DATE_OR_DATETIME.fullmatch(text)
    if moment:
        day, time, zone = moment.groups()
        if time is None or _MIDNIGHT.fullmatch(time):
            return str(day)
        return _in_utc(text if zone else f"{text}Z")
    if is_iri(text):
        text = _normalize_iri(text)
    return normalize("NFC", text)


def _in_utc(text: str) -> str:
    """Return a dateTime in UTC, or unchanged if Python's calendar lacks its year."""
    try:
        return datetime.fromisoformat(text).astimezone(UTC).isoformat()
    except (ValueError, OverflowError):
        return text


def _normalize_iri(iri: str) -> str:
    """Return an IRI in its normal form, or unchanged if it cannot be parsed ("http://[").

    Scheme and host are in lower case, the default port is left out, an empty path is "/", and
    needless escapes are decoded.
    """
    try:
        parts = urlsplit(iri)
    except ValueError:
        return iri
    host = parts.netloc.lower()
    default_port = _DEFAULT_PORTS.get(parts.scheme, ":")
    normalized = parts._replace(netloc=host.removesuffix(default_port), path=parts.path or "/")
    return _ESCAPES.sub(lambda match: _decode_escapes(match[0]), normalized.geturl())


def _decode_escapes(escapes: str) -> str:
    """Decode a sequence of percent escapes, as far as an IRI may contain the characters, and return the text.

    Reserved and control characters stay escaped. If the bytes are not UTF-8, all stay escaped, in
    upper case.
    """
    try:
        text = unquote_to_bytes(escapes).decode()
    except UnicodeDecodeError:
        return escapes.upper()
    decoded = ""
    for char in text:
        may_stand_alone = char > "\x9f" or _UNRESERVED.fullmatch(char)
        decoded += char if may_stand_alone else quote(char, safe="")
    return decoded
