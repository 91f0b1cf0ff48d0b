"""What requests to endpoints and to model servers share: redirects, bounds of a body, keys that come back."""

from __future__ import annotations

import time
import zlib
from collections.abc import Iterable, Iterator
from urllib.parse import urlsplit

ERROR_BYTES = 10_000
"""Bytes read of the body of an error."""
LONGEST_S = 1e6
"""Seconds that a request may be allowed at most; clocks take no more."""
_PORTS = {"http": 80, "https": 443}
_PART_BYTES = 1 << 16
_ANY_HEADER = 47  # of zlib: gzip's or its own


class RedirectError(ValueError):
    """A redirect leads to a server that must not get the request."""


def check_redirect(url: str, target: str) -> None:
    """Raises RedirectError if a redirect leaves scheme, host and port of ``url``.

    The request would carry prompt, query and keys elsewhere. From http to https of the same host, each on its
    usual port, is no other server.
    """
    (scheme, host, port), new = _server(url), _server(target)
    upgraded = (scheme, port) == ("http", 80) and new == ("https", host, 443)
    if new[0] not in _PORTS or not (new == (scheme, host, port) or upgraded):
        there = f"{new[0]}://{urlsplit(target).netloc.rpartition('@')[2][:200]}"
        raise RedirectError(
            f"it redirects to {there}, another server, which does not get the request"
        )


def _server(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or _PORTS.get(parts.scheme)


def received(chunks: Iterable[bytes], coding: str, most: int, until: float) -> Iterator[bytes]:
    """The first ``most`` bytes of a body, in parts, without its ``Content-Encoding``.

    Raises ValueError for an encoding other than gzip and deflate, or a broken one, and TimeoutError when the
    clock passes ``until``.
    """
    size = 0
    for part in _unpacked(chunks, coding.strip().lower()):
        if time.monotonic() > until:
            raise TimeoutError
        yield part[: most - size]
        size += len(part)
        if size >= most:
            return


def _unpacked(chunks: Iterable[bytes], coding: str) -> Iterator[bytes]:
    if coding in ("", "identity"):
        yield from chunks
        return
    if coding not in ("gzip", "x-gzip", "deflate"):
        raise ValueError(f"its Content-Encoding is {coding[:100]!r}, which it was not asked for")
    unpacker = zlib.decompressobj(_ANY_HEADER)
    for chunk in chunks:
        rest = chunk
        while rest:
            if unpacker.eof:  # a gzip file may have several members
                unpacker = zlib.decompressobj(_ANY_HEADER)
            try:  # in small parts, because 1 KB may unpack to 1 MB
                yield unpacker.decompress(rest, _PART_BYTES)
            except zlib.error as error:
                raise ValueError(f"its {coding} is broken: {error}") from error
            rest = unpacker.unused_data or unpacker.unconsumed_tail
    if not unpacker.eof:
        raise ValueError(f"its {coding} breaks off")
