"""What requests to endpoints and to model servers share: redirects, bounds of a body, keys that come back."""

from __future__ import annotations

import time
import zlib
from collections.abc import Iterable, Iterator
from urllib.parse import urlsplit

MAX_ERROR_BYTES = 10_000
"""Bytes read of the body of an error."""
MAX_TIMEOUT_S = 1e6
"""Seconds that a request may be allowed at most; clocks take no more."""
_DEFAULT_PORTS = {"http": 80, "https": 443}
_CHUNK_BYTES = 1 << 16
_GZIP_OR_ZLIB_WBITS = 47  # of zlib: gzip's or its own


class RedirectError(ValueError):
    """A redirect leads to a server that must not get the request."""


def check_redirect(url: str, redirect_url: str) -> None:
    """Raises RedirectError if a redirect leaves scheme, host and port of ``url``.

    The request would carry prompt, query and keys elsewhere. From http to https of the same host, each on its
    usual port, is no other server.
    """
    (scheme, host, port), new = _origin(url), _origin(redirect_url)
    upgraded = (scheme, port) == ("http", 80) and new == ("https", host, 443)
    if new[0] not in _DEFAULT_PORTS or not (new == (scheme, host, port) or upgraded):
        there = f"{new[0]}://{urlsplit(redirect_url).netloc.rpartition('@')[2][:200]}"
        raise RedirectError(
            f"it redirects to {there}, another server, which does not get the request"
        )


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or _DEFAULT_PORTS.get(parts.scheme)


def read_body(
    chunks: Iterable[bytes], content_encoding: str, max_bytes: int, deadline: float
) -> Iterator[bytes]:
    """The first ``most`` bytes of a body, in parts, without its ``Content-Encoding``.

    Raises ValueError for an encoding other than gzip and deflate, or a broken one, and TimeoutError when the
    clock passes ``until``.
    """
    size = 0
    for part in _decompress(chunks, content_encoding.strip().lower()):
        if time.monotonic() > deadline:
            raise TimeoutError
        yield part[: max_bytes - size]
        size += len(part)
        if size >= max_bytes:
            return


def _decompress(chunks: Iterable[bytes], coding: str) -> Iterator[bytes]:
    if coding in ("", "identity"):
        yield from chunks
        return
    if coding not in ("gzip", "x-gzip", "deflate"):
        raise ValueError(f"its Content-Encoding is {coding[:100]!r}, which it was not asked for")
    unpacker = zlib.decompressobj(_GZIP_OR_ZLIB_WBITS)
    for chunk in chunks:
        rest = chunk
        while rest:
            if unpacker.eof:  # a gzip file may have several members
                unpacker = zlib.decompressobj(_GZIP_OR_ZLIB_WBITS)
            try:  # in small parts, because 1 KB may unpack to 1 MB
                yield unpacker.decompress(rest, _CHUNK_BYTES)
            except zlib.error as error:
                raise ValueError(f"its {coding} is broken: {error}") from error
            rest = unpacker.unused_data or unpacker.unconsumed_tail
    if not unpacker.eof:
        raise ValueError(f"its {coding} breaks off")
