"""Models behind a server: requests in a format that it accepts, repeats, and errors by their cause."""

from __future__ import annotations

import json
import re
import threading
import time
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, TypeVar

from kgwb.background import run_in_thread
from kgwb.errors import (
    Cancelled,
    ModelError,
    ModelRefusedError,
    ModelTimeoutError,
    ModelUnreachableError,
)
from kgwb.kg.base import Graph
from kgwb.llm.base import (
    ChatModel,
    ChatReply,
    ChatRequest,
    ReplyMode,
)
from kgwb.llm.notice import announce
from kgwb.llm.transport import abandoned_event, transport_errors
from kgwb.network import MAX_ERROR_BYTES, RedirectError, read_retry_after
from kgwb.text import KEY_PATTERN, MASK, is_distinctive_secret, mask_secrets

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


T = TypeVar("T")
MAX_RETRIES = 2
"""How often a request is repeated after transient failures."""
INITIAL_BACKOFF_S = 0.5
"""Wait before the first repeat if the server does not name one. It is doubled for the next."""
MAX_RETRY_AFTER_S = 60.0
"""A server that asks for a longer wait is not asked again."""
CONNECT_TIMEOUT_S = 5.0
"""How long the connection itself may take."""
LISTING_TIMEOUT_S = 2.0
MAX_NAMED_MODELS = 8
"""How many models of a server an error names."""
MAX_REPLY_CHARS = 1_000_000
"""Length of a reply's text. A longer one would be sent back to the model with its problems."""
OPTIONAL_FIELDS = (
    "max_tokens",
    "max_completion_tokens",
    "stream_options",
    "stream",
    "temperature",
    "seed",
)
"""Fields of a request that some servers refuse."""
STATUSES_WITHOUT_LIST = (404, 405, 501)
"""HTTP statuses of a server that has no list of its models."""
REPLY_MODES: dict[str, ReplyMode] = {
    "schema": "schema",
    "json with schema": "json",
    "json": "json",
    "prompt": "prompt",
}
"""The mode of a reply, by the mode of the RequestFormat."""


@dataclass(frozen=True, slots=True)
class RequestFormat:
    """The format of requests. Servers differ in the formats that they accept."""

    modes: tuple[str, ...]
    """Ways to enforce the form of a reply that the server has not refused, the best first."""
    omitted_fields: frozenset[str] = frozenset()
    """Fields of OPTIONAL_FIELDS that are not sent."""

    def select_fields(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Return the fields of a request that have a value and are not omitted."""
        selected = {}
        for name, value in fields.items():
            if value is not None and name not in self.omitted_fields:
                selected[name] = value
        return selected

    def fallback_for(self, failure: RequestFailure, *, with_schema: bool) -> RequestFormat | None:
        """Return the format of request to try after a failure; None if no other format would help.

        Another format is tried for a problem of the format and for the statuses 400 and 422. It is
        this one without the optional field that the failure names. If it names none, the first of
        ``modes`` is dropped: that is only done for a request with a schema, if another mode is
        left, and if the failure does not name another field.
        """
        may_be_format = failure.is_format_problem or failure.status in (400, 422)
        if not may_be_format or failure.refused_field in self.omitted_fields:
            return None
        refused_text = failure.refused_field or failure.message
        if "response_format" not in refused_text:
            for field in OPTIONAL_FIELDS:
                is_named = re.search(rf"\b{field}\b", refused_text)
                if is_named and field not in self.omitted_fields:
                    return replace(self, omitted_fields=self.omitted_fields | {field})

        if not with_schema or len(self.modes) == 1:
            return None
        # In JSON mode a server may name "messages" as the field, if they lack the word "JSON"
        is_mode_named = failure.refused_field.startswith("response_format")
        if self.modes[0] == "schema" and failure.refused_field and not is_mode_named:
            return None
        return replace(self, modes=self.modes[1:])


class RemoteModel(ChatModel):
    """A model behind a server.

    The format of requests that the server has accepted is kept for the next request. The adapters
    of the SDKs implement the abstract methods, which raise what the SDK raises.
    """

    remote = True

    def __init__(
        self, name: str, model: str, url: str, form: RequestFormat, hints: tuple[str, str]
    ) -> None:
        """Set the specification, the model's name on the server, and the format of the first request.

        ``hints`` say what to do about a refused key, and about a model that is not there.
        """
        self.name = name
        self.model = model
        self.url = url
        self._key_hint, self._model_hint = hints
        self._lock = threading.Lock()
        self._request_format = form
        self._schema_works = False
        """Whether the server has ever replied to a request with a JSON schema."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    def complete(
        self, request: ChatRequest, kg: Graph | None, cancel: threading.Event
    ) -> ChatReply:
        """Send the request until the server replies, and return the reply. ``kg`` is not used.

        The reply is streamed if the server can, so that the server stops when a cancel closes the
        connection. If the server refuses the format of the request, another format is tried at
        once, and kept for later requests. After a transient failure the request is repeated up to
        MAX_RETRIES times. The wait before a retry is what the server asks for, else
        INITIAL_BACKOFF_S, doubled each time; a longer wait than MAX_RETRY_AFTER_S is an error at
        once. The reply has the mode, the duration in seconds and the number of requests. Before
        the first request, a notice says what leaves the machine (``kgwb.llm.notice``).

        Raises Cancelled if ``cancel`` is set, ModelUnreachableError, ModelTimeoutError and
        ModelRefusedError.
        """
        self.announce(kg)
        started = time.perf_counter()
        with_schema = request.schema is not None
        stop_if_cancelled = partial(_stop_if_set, cancel)
        with self._lock:
            form = self._request_format
        tries = 0
        retries = 0
        while True:
            stop_if_cancelled()
            outcome = self._read_reply(form, request, stop_if_cancelled)
            tries += 1
            if isinstance(outcome, ChatReply):
                break
            fallback = form.fallback_for(outcome, with_schema=with_schema)
            wait_s = outcome.retry_after_s
            if wait_s is None:
                wait_s = INITIAL_BACKOFF_S * 2**retries
            if fallback is not None:
                form = fallback
                retries = 0
            elif outcome.is_transient and retries < MAX_RETRIES and wait_s <= MAX_RETRY_AFTER_S:
                cancel.wait(wait_s)
                retries += 1
            else:
                raise self._error_of(outcome, request.timeout_s)

        self._keep_format(form, with_schema=with_schema)
        mode: ReplyMode = "none"
        if with_schema:
            mode = REPLY_MODES[form.modes[0]]
        seconds = time.perf_counter() - started
        return replace(outcome, mode=mode, seconds=seconds, tries=tries)

    def announce(self, kg: Graph | None) -> None:
        """Show what leaves the machine with requests about a graph, unless it was shown before."""
        announce(self.name, self.url, kg)

    def _keep_format(self, form: RequestFormat, *, with_schema: bool) -> None:
        """Remember the format that the server has just accepted, for later requests.

        The omitted fields are always remembered. The mode is remembered if the request had a
        schema, unless the server has ever accepted a JSON schema: then it has refused this schema
        and not all of them.
        """
        with self._lock:
            if with_schema and form.modes[0] == "schema":
                self._schema_works = True
            if not with_schema or self._schema_works:
                form = replace(form, modes=self._request_format.modes)
            self._request_format = form

    def list_models(self, timeout_s: float = LISTING_TIMEOUT_S) -> tuple[str, ...]:
        """Ask the server for its models, and return their names, sorted.

        It is asked once, without a retry, and may take up to 1.5 times ``timeout_s``. The tuple is
        empty if the server lists none. Raises a ModelError if it fails.
        """
        names = self._try_list_models(timeout_s)
        if isinstance(names, RequestFailure):
            raise self._error_of(names, timeout_s, is_listing=True)
        return names

    def find_listed_models(self, timeout_s: float = LISTING_TIMEOUT_S) -> tuple[str, ...] | None:
        """Ask the server for its models, as ``list_models`` does, to see whether it can be used.

        None if it answers but has no list: some servers reply to questions alone. Raises a ModelError
        if it cannot be reached, refuses the key or fails.
        """
        names = self._try_list_models(timeout_s)
        if isinstance(names, RequestFailure):
            if names.status in STATUSES_WITHOUT_LIST:
                return None
            raise self._error_of(names, timeout_s, is_listing=True)
        return names

    @abstractmethod
    def _stream_reply(self, form: RequestFormat, request: ChatRequest) -> Iterator[ChatReply]:
        """Send one request, and yield the parts of the reply.

        A part with a finish reason ends the text. Only counts may follow it.
        """

    @abstractmethod
    def _model_names(self, timeout_s: float) -> Iterable[Any]:
        """Return the names of the models that the server lists."""

    @abstractmethod
    def _api_key(self) -> str:
        """Return the key that the server is given; it may be empty."""

    def _classify_error(self, error: Exception) -> RequestFailure:
        """Return the failure for an exception of the transport or of reading a reply.

        Refused redirects, and connections that took too long, are of kind "connection", other
        timeouts of kind "timeout"; these are not transient. Any other error of the transport is a
        transient "connection" failure. An empty body is EMPTY_RESPONSE, and every other exception
        is "nonsense", with the text that could not be read. Adapters extend this by the exceptions
        of their SDK.
        """
        name = type(error).__name__  # equal in httpx and httpx2
        if isinstance(error, RedirectError) or name == "TooManyRedirects":
            return RequestFailure("connection", str(error))
        if name in ("ConnectTimeout", "PoolTimeout"):
            return RequestFailure("connection", "no connection in time")
        if name in ("ReadTimeout", "WriteTimeout", "TimeoutError"):
            return RequestFailure("timeout")
        if isinstance(error, transport_errors()):
            return RequestFailure("connection", str(error) or name, is_transient=True)
        if not isinstance(error, json.JSONDecodeError):
            return RequestFailure("nonsense", str(error))
        return RequestFailure("nonsense", error.doc) if error.doc.strip() else EMPTY_RESPONSE

    def _call_sdk(
        self, work: Callable[[], T], timeout_s: float, poll: Callable[[], None] | None = None
    ) -> T | RequestFailure:
        """Call ``work`` on a thread; return its result, or the failure that its exception means.

        After ``timeout_s`` the thread is abandoned, and its connection closed. The SDK's own
        timeouts are not enough: they begin anew with every byte, and do not include the lookup of a
        host name. ``poll`` is called meanwhile; what it raises, and a ModelError of ``work``, is
        raised.
        """
        abandoned = threading.Event()

        def call() -> T:
            """Do the work, which can see in ``abandoned_event`` that nobody waits for it."""
            abandoned_event.set(abandoned)
            return work()

        try:
            return run_in_thread(call, poll=poll, timeout_s=timeout_s)
        except ModelError:
            raise
        except Exception as error:  # noqa: BLE001  # of an SDK that reads what any server may send
            return self._classify_error(error)
        finally:
            abandoned.set()

    def _read_reply(
        self, form: RequestFormat, request: ChatRequest, poll: Callable[[], None]
    ) -> ChatReply | RequestFailure:
        """Send one request, and return the whole reply or the failure.

        A reply with a finish reason is whole, even if an error follows it. INTERRUPTED_STREAM means
        that it broke off, EMPTY_RESPONSE that no part came. Raises what ``poll`` raises, which is
        called while the reply is read.
        """
        started = time.perf_counter()
        parts: list[ChatReply] = []

        def read_parts() -> None:
            """Add the parts of the reply, each with the time since the request was sent."""
            for part in self._stream_reply(form, request):
                elapsed_s = time.perf_counter() - started
                parts.append(replace(part, first_token_s=elapsed_s))

        timeout_s = request.timeout_s + CONNECT_TIMEOUT_S
        failure = self._call_sdk(read_parts, timeout_s, poll)
        if any(part.finish_reason for part in parts):
            return self._join_parts(parts)
        if failure is None:
            return INTERRUPTED_STREAM if parts else EMPTY_RESPONSE
        has_text = any(part.text for part in parts)
        if has_text and failure.is_transient:
            return replace(INTERRUPTED_STREAM, message=failure.message)
        return failure

    def _join_parts(self, parts: list[ChatReply]) -> ChatReply | RequestFailure:
        """Return the reply that is made of parts, with the key masked in it.

        The texts are joined. Model and fingerprint are the first that are named, and the counts are the highest.
        The finish reason is "refusal" if any part has that, else the last one. The time to the first
        token is None for a single part. Returns a failure of kind "nonsense" if the text is longer
        than MAX_REPLY_CHARS.
        """
        text = "".join(part.text for part in parts)
        if len(text) > MAX_REPLY_CHARS:
            message = f"{len(text):,} letters: {text[:MAX_EXCERPT_CHARS]}"
            return RequestFailure("nonsense", message)
        model = ""
        fingerprint = ""
        finish_reason = ""
        first_token_s = None
        for part in parts:
            model = model or part.model
            fingerprint = fingerprint or part.fingerprint
            if part.text and first_token_s is None:
                first_token_s = part.first_token_s
            if part.finish_reason and finish_reason != "refusal":
                finish_reason = part.finish_reason
        if len(parts) == 1:  # not streamed
            first_token_s = None
        secrets = self._secrets()
        return ChatReply(
            text=mask_secrets(text, secrets),
            model=mask_secrets(model, secrets),
            prompt_tokens=max(part.prompt_tokens for part in parts),
            completion_tokens=max(part.completion_tokens for part in parts),
            first_token_s=first_token_s,
            finish_reason=mask_secrets(finish_reason, secrets),
            fingerprint=mask_secrets(fingerprint, secrets),
        )

    def _try_list_models(self, timeout_s: float) -> tuple[str, ...] | RequestFailure:
        """Return the names of the server's models, sorted and with the key masked, or the failure.

        It takes up to 1.5 times ``timeout_s``.
        """

        def list_names() -> tuple[str, ...]:
            """Return the names that are not empty."""
            names = []
            for name in self._model_names(timeout_s):
                if name:
                    names.append(mask_secrets(str(name), self._secrets()))
            return tuple(sorted(names))

        return self._call_sdk(list_names, 1.5 * timeout_s)

    def _secrets(self) -> list[str]:
        """Return the key in a list, or [] if it is too plain to be masked in texts."""
        key = self._api_key()
        return [key] if is_distinctive_secret(key) else []

    def _error_of(
        self, failure: RequestFailure, timeout_s: float, *, is_listing: bool = False
    ) -> ModelError:
        """Return the error to raise for a failure, with a hint and without the key.

        ``timeout_s`` is the timeout of the request; ``is_listing`` is whether models were listed.
        For status 404 the server is asked which models it has, and the hint names them. A timeout
        is a ModelTimeoutError, no connection and an unreadable answer a ModelUnreachableError, 404
        a ModelRefusedError, and other statuses as in ``_error_of_status``.
        """
        text = masked_excerpt(failure.message, self._secrets())
        if failure.kind == "timeout":
            return ModelTimeoutError(
                f"no reply from the model server {self.url} within {timeout_s:g} s",
                hint="allow more with the setting model_timeout_s, or take a smaller model",
            )
        if failure.kind == "connection":
            return ModelUnreachableError(
                f"the model server {self.url} cannot be reached: {text}",
                hint="check that the server runs, and that the address is right",
            )
        if failure.kind == "nonsense":
            return ModelUnreachableError(
                f"the model server {self.url} answers with something other than a model's reply: {text}",
                hint="look into the server's log, and check the address: for an OpenAI-compatible "
                "server it usually ends in /v1",
            )
        if failure.status == 404 and not is_listing:
            return ModelRefusedError(
                f"the model server {self.url} has no model named {self.model}",
                hint=self._hint_for_missing_model(timeout_s),
            )
        message = f"the model server {self.url} answers with HTTP status {failure.status}: {text}"
        return self._error_of_status(failure, message)

    def _error_of_status(self, failure: RequestFailure, message: str) -> ModelError:
        """Return the error for a failure with an HTTP status, with a hint for that status.

        It is ModelUnreachableError for 429 and transient failures, and else ModelRefusedError.
        """
        if failure.status in (401, 403):
            return ModelRefusedError(message, hint=self._key_hint)
        if failure.status == 429:
            hint = "wait a little, or check the quota of the key"
            return ModelUnreachableError(message, hint=hint)
        if failure.is_transient:
            hint = "try again later, or look into the server's log"
            return ModelUnreachableError(message, hint=hint)
        return ModelRefusedError(
            message,
            hint="shorten the request or take another model, depending on the server's message",
        )

    def _hint_for_missing_model(self, timeout_s: float) -> str:
        """Return a hint that names up to MAX_NAMED_MODELS models of the server.

        The server is asked for them, with LISTING_TIMEOUT_S at most. If it lists none, it is the hint
        of the adapter.
        """
        names = self._try_list_models(min(timeout_s, LISTING_TIMEOUT_S))
        if not names or isinstance(names, RequestFailure):
            return self._model_hint
        shown = masked_excerpt(", ".join(names[:MAX_NAMED_MODELS]))
        more = len(names) - MAX_NAMED_MODELS
        if more > 0:
            return f"name one of its models: {shown} and {more} more"
        return f"name one of its models: {shown}"


def announce_models(models: Iterable[ChatModel], kg: Graph | None) -> None:
    """Show what leaves the machine with each hosted model, unless it was shown before."""
    for model in models:
        if isinstance(model, RemoteModel):
            model.announce(kg)


def _stop_if_set(cancel: threading.Event) -> None:
    """Raise Cancelled if the event is set."""
    if cancel.is_set():
        raise Cancelled


def messages_to_data(request: ChatRequest) -> list[dict[str, str]]:
    """Return the messages of a request as dicts with "role" and "content".

    Both protocols have this form. Half a surrogate pair, as models sometimes write it, becomes "?",
    because it cannot be encoded as UTF-8.
    """
    messages = []
    for message in request.messages:
        content = message.content.encode("utf-8", "replace").decode()
        messages.append({"role": message.role, "content": content})
    return messages
