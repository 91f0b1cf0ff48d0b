"""Certificates, redirects, bodies and asked waits of HTTP replies, for endpoints and model servers."""

from __future__ import annotations

import os
import ssl
import time
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from ipaddress import ip_address
from math import isfinite
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

MAX_ERROR_BYTES = 10_000
"""How much of the body of an error is read."""
MAX_TIMEOUT_S = 1e6
"""The longest timeout of a request. Longer ones overflow the clocks of some systems."""
_DEFAULT_PORTS = {"http": 80, "https": 443}
_CHUNK_BYTES = 1 << 16
_GZIP_OR_ZLIB_WBITS = 47
"""The argument of zlib that lets it recognise either format."""


class RedirectError(ValueError):
    """A redirect leads to a server that must not get the request."""


def identify_certificates() -> tuple[object, ...]:
    """Return what tells whether the certificates that servers are checked with have changed.

    That is the values of SSL_CERT_FILE and SSL_CERT_DIR, and for the file and the folder in use,
    which may be the system's own, the time of change and the size. A connection that was made
    before stays as it is.
    """
    variables = (os.environ.get("SSL_CERT_FILE", ""), os.environ.get("SSL_CERT_DIR", ""))
    in_use = ssl.get_default_verify_paths()
    versions = []
    for path in (in_use.cafile, in_use.capath):
        version = None
        if path is not None:
            with suppress(OSError):
                found = Path(path).stat()
                version = (found.st_mtime_ns, found.st_size)
        versions.append(version)
    return (*variables, *versions)


def check_redirect(url: str, redirect_url: str) -> None:
    """Raise RedirectError unless a redirect keeps scheme, host and port of ``url``.

    Another server would get the prompt, the query and the keys. A redirect from http to https on
    the same host, each on its default port, is allowed. The error names the other host, without a
    login.
    """
    origin = _origin(url)
    target = _origin(redirect_url)
    scheme, host, _ = target
    is_upgrade = origin == ("http", host, 80) and target == ("https", host, 443)
    if scheme in _DEFAULT_PORTS and (target == origin or is_upgrade):
        return
    _, _, shown_host = urlsplit(redirect_url).netloc.rpartition("@")
    raise RedirectError(
        f"it redirects to {scheme}://{shown_host[:200]}, another server,"
        " which does not get the request"
    )


def _origin(url: str) -> tuple[str, str | None, int | None]:
    """Return scheme, host, and port of a URL, which may be the default port of the scheme."""
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or _DEFAULT_PORTS.get(parts.scheme)


def read_body(
    chunks: Iterable[bytes], content_encoding: str, max_bytes: int, deadline: float
) -> Iterator[bytes]:
    """Yield the first ``max_bytes`` bytes of a body in chunks, unpacked.

    ``content_encoding`` is the header of that name. ``deadline`` is a value of
    ``time.monotonic()``. Raises ValueError if the encoding is not gzip or deflate, or is broken,
    and TimeoutError after the deadline.
    """
    size = 0
    for chunk in _decompress(chunks, content_encoding.strip().lower()):
        if time.monotonic() > deadline:
            raise TimeoutError
        yield chunk[: max_bytes - size]
        size += len(chunk)
        if size >= max_bytes:
            return


def _decompress(chunks: Iterable[bytes], coding: str) -> Iterator[bytes]:
    """Yield the unpacked bytes of a body in pieces.

    A piece of a packed body has at most _CHUNK_BYTES, because 1 KB may unpack to 1 MB. Raises
    ValueError if the coding is not gzip or deflate, or if the body is broken or ends too early.
    """
    if coding in ("", "identity"):
        yield from chunks
        return
    if coding not in ("gzip", "x-gzip", "deflate"):
        raise ValueError(f"its Content-Encoding is {coding[:100]!r}, which it was not asked for")
    decompressor = zlib.decompressobj(_GZIP_OR_ZLIB_WBITS)
    for chunk in chunks:
        rest = chunk
        while rest:
            if decompressor.eof:  # the body may consist of several gzip files
                decompressor = zlib.decompressobj(_GZIP_OR_ZLIB_WBITS)
            try:
                yield decompressor.decompress(rest, _CHUNK_BYTES)
            except zlib.error as error:
                raise ValueError(f"its {coding} is broken: {error}") from error
            rest = decompressor.unused_data or decompressor.unconsumed_tail
    if not decompressor.eof:
        raise ValueError(f"its {coding} breaks off")


def read_retry_after(headers: Any) -> float | None:
    """Return how many seconds the headers ask to wait, at least 0; None if they do not say.

    The header "retry-after-ms" of OpenAI and Azure has milliseconds. The header "retry-after" is a number
    of seconds or a date (RFC 9110, section 10.2.3). A date is compared with the
    server's own clock, the header "date", and without that with the clock of this machine.
    """
    text = headers.get("retry-after", "")
    for number, unit_s in ((headers.get("retry-after-ms", ""), 0.001), (text, 1.0)):
        with suppress(ValueError):
            seconds = float(number) * unit_s
            if isfinite(seconds):
                return max(0.0, seconds)
    until = _parse_date(text)
    if until is None:
        return None
    now = _parse_date(headers.get("date", "")) or datetime.now(UTC)
    return max(0.0, (until - now).total_seconds())


def _parse_date(text: str) -> datetime | None:
    """Return the date of an HTTP header; None for any other text. It is in UTC if it names no zone."""
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError):
        return None
    return date if date.tzinfo else date.replace(tzinfo=UTC)


def is_loopback_host(host: str) -> bool:
    """Return whether a host is this machine: "localhost", a name below it, or a loopback address."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:  # a name
        return False
