"""Failed requests to model servers: what failed, and whether another request may succeed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from kgwb.masking import KEY_PATTERN, MASK, mask_secrets
from kgwb.network import MAX_ERROR_BYTES, read_retry_after

MAX_EXCERPT_CHARS = 300
"""Characters of a server's own words that an error shows."""
TRANSIENT_STATUSES = frozenset({408, 409, 429})
"""HTTP statuses below 500 after which the same request may succeed."""
FORMAT_WORDS = ("format", "schema", "grammar")


@dataclass(frozen=True, slots=True)
class RequestFailure:
    """Why one request brought no reply.

    It is a value and not an exception: the exceptions of the SDKs hold the request with its key, and
    must not become the cause of another exception.
    """

    kind: Literal["timeout", "connection", "status", "nonsense"]
    message: str = field(default="", repr=False)
    """The whole message of the server or the SDK. It may hold a key."""
    status: int = 0
    """HTTP status, for kind "status"."""
    refused_field: str = field(default="", repr=False)
    """The field of the request that the server refuses."""
    is_format_problem: bool = False
    """Whether a request in another format may succeed, independent of the status."""
    is_transient: bool = False
    """Whether the same request may succeed a moment later. After a timeout there is no time left."""
    retry_after_s: float | None = None
    """How long the server asks to wait."""


INTERRUPTED_STREAM = RequestFailure(
    "connection",
    "the reply broke off in the middle",
    refused_field="stream",
    is_format_problem=True,
)
"""A stream without an end. Some servers cannot keep one up, so it is asked again without a stream."""
EMPTY_RESPONSE = replace(INTERRUPTED_STREAM, kind="nonsense", message="an empty page")
"""A response without a body. The server may not stream, or report its error only without a stream."""


def failure_from_status(status: int, text: str, headers: Any, param: str = "") -> RequestFailure:
    """Return the failure that an HTTP status stands for.

    ``text`` is the message of the server, and ``param`` the field of the request that it names. The
    failure is transient for TRANSIENT_STATUSES and from 500 on; but a 500 whose text has one of
    FORMAT_WORDS is a problem of the request's format. ``retry_after_s`` is that of the header
    "retry-after".
    """
    # Ollama and llama.cpp answer 500, and not 400, if they cannot make a grammar of a schema
    names_format = any(word in text.lower() for word in FORMAT_WORDS)
    is_format_problem = status == 500 and names_format
    is_transient = status in TRANSIENT_STATUSES or status >= 500
    return RequestFailure(
        "status",
        text,
        status=status,
        refused_field=param,
        is_format_problem=is_format_problem,
        is_transient=is_transient and not is_format_problem,
        retry_after_s=read_retry_after(headers),
    )


def masked_excerpt(text: str, secrets: Iterable[str] = ()) -> str:
    """Return the beginning of a server's text in one line, with keys masked.

    It has up to MAX_EXCERPT_CHARS characters. Masked are ``secrets``, and text that looks like a
    key. " …" is added to a text that is cut.
    """
    # The text is cut first, because masking takes far more time and memory than a text of this size
    masked = mask_secrets(text[: 2 * MAX_ERROR_BYTES], secrets)
    masked = KEY_PATTERN.sub(MASK, masked[:MAX_ERROR_BYTES])
    line = " ".join(masked.split())
    if len(line) <= MAX_EXCERPT_CHARS:
        return line
    return line[:MAX_EXCERPT_CHARS] + " …"
