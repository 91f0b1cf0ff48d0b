"""Models of Ollama, through its own protocol. Its OpenAI-compatible one ignores ``num_ctx``."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from kgwb.llm.base import ChatRequest, parse_token_count
from kgwb.llm.remote import (
    CONNECT_TIMEOUT_S,
    RemoteModel,
    ReplyPart,
    RequestFailure,
    RequestFormat,
    error_message,
    failure_from_report,
    failure_from_status,
    join_arguments,
    make_client,
    messages_to_data,
    require_all,
    validate_url,
)

if TYPE_CHECKING:
    import ollama

OLLAMA_URL = "http://127.0.0.1:11434"
MIN_CONTEXT_TOKENS = 4096
"""Context that is asked for at least."""
BYTES_PER_TOKEN = 3
"""A cautious estimate: English has about 4 bytes a token, Chinese about 3."""
TOKENS_PER_MESSAGE = 16
"""An estimate of what each message takes besides its text."""
MAX_SHOWN_ERRORS = 100
"""From so many errors on, a reply that pydantic refuses is a list of models without models."""


class OllamaModel(RemoteModel):
    """A model that Ollama runs.

    The form of replies is enforced by the field ``format``: the JSON schema, else "json", else by
    the prompt alone. Ollama does not show the schema to the model, so the prompt has to describe
    the form.
    """

    def __init__(self, model: str, *, base_url: str | None = None) -> None:
        """Set the address; no connection is opened.

        It is ``base_url``, or the environment variable OLLAMA_HOST, or port 11434 of this machine.

        Raises UnknownModelError if the address is not usable.
        """
        host = base_url or os.environ.get("OLLAMA_HOST", "").strip()
        url = _complete_url(host) if host else OLLAMA_URL
        name = f"ollama:{model}"
        if url != OLLAMA_URL:
            name = f"{name}@{url}"
        form = RequestFormat(("schema", "json", "prompt"))
        hints = (
            "check the environment variable OLLAMA_API_KEY",
            f"fetch it with: ollama pull {model}",
            "look into Ollama's log, and check the address: it ends in no path such as /v1",
        )
        super().__init__(name, model, url, form, hints)
        self._context_tokens = MIN_CONTEXT_TOKENS

    def _stream_reply(self, form: RequestFormat, request: ChatRequest) -> Iterator[ReplyPart]:
        """Send one request to /api/chat, and yield the parts of the reply.

        Streamed, that is one part for each line; the last one has the token counts and the finish
        reason. If the format omits "stream", it is one part with all of the reply. The field
        ``format`` is the JSON schema, "json" or absent, by the first mode of the format.
        """
        is_streamed = "stream" not in form.omitted_fields
        reply_format: Any = None
        if request.schema and form.modes[0] == "schema":
            reply_format = require_all(request.schema)
        elif request.schema and form.modes[0] == "json":
            reply_format = "json"
        chat: Any = self._client(request.timeout_s).chat
        answer = chat(
            self.model,
            messages_to_data(request),
            format=reply_format,
            stream=is_streamed,
            options=self._options(form, request),
        )
        parts = answer if is_streamed else [answer]
        for part in parts:
            finish_reason = ""
            if part.done:
                finish_reason = part.done_reason or "stop"
            functions = [call.function for call in part.message.tool_calls or ()]
            yield ReplyPart(
                text=(part.message.content or "") + join_arguments(functions),
                model=part.model or "",
                prompt_tokens=parse_token_count(part.prompt_eval_count),
                completion_tokens=parse_token_count(part.eval_count),
                finish_reason=finish_reason,
                reasoning=part.message.thinking or "",
            )

    def _options(self, form: RequestFormat, request: ChatRequest) -> dict[str, Any]:
        """Return Ollama's options: temperature, seed, length of the reply, and size of the context.

        Those that the format omits are left out, and a seed of None.
        """
        options = {
            "temperature": request.temperature,
            "seed": request.seed,
            "num_predict": request.max_output_tokens,
            "num_ctx": self._reserve_context(request),
        }
        return form.select_fields(options)

    def _reserve_context(self, request: ChatRequest) -> int:
        """Return the context to ask for, in tokens: the last one, doubled until the request fits.

        The size of a request is estimated from its bytes, plus ``max_output_tokens``. Ollama cuts
        what its context does not hold, and does not report it. The context never gets smaller,
        because Ollama loads the model anew for every other size.
        """
        size = 0
        for message in request.messages:
            content = message.content.encode("utf-8", "replace")
            size += len(content)
        prompt_tokens = size // BYTES_PER_TOKEN + TOKENS_PER_MESSAGE * len(request.messages)
        with self._lock:
            while self._context_tokens < prompt_tokens + request.max_output_tokens:
                self._context_tokens *= 2
            return self._context_tokens

    def _model_names(self, timeout_s: float) -> Iterable[Any]:
        """Return the names of the models that Ollama lists."""
        listing = self._client(timeout_s).list()
        return [entry.model for entry in listing.models]

    def _client(self, timeout_s: float) -> ollama.Client:
        """Return a new client of Ollama for one call, whose requests end after ``timeout_s``.

        A client is made for each call because the timeout belongs to the client. With the header
        "Connection: close" it leaves no socket open. Raises UnknownModelError if the environment
        does not allow a client.
        """
        import httpx  # the transport of ollama

        def create_client(**options: Any) -> ollama.Client:
            """Create the client with options for httpx.

            The SDK is imported here, where errors are handled: it makes a client for OLLAMA_HOST.
            """
            import ollama

            options["headers"]["Connection"] = "close"
            connect_s = min(timeout_s, CONNECT_TIMEOUT_S)
            timeout = httpx.Timeout(timeout_s, connect=connect_s)
            return ollama.Client(self.url, timeout=timeout, **options)

        return make_client(create_client, self.url, "httpx")

    def _classify_error(self, error: Exception) -> RequestFailure:
        """Return the failure for an exception.

        An error of Ollama becomes a failure with its HTTP status, or with the one that it would have
        had if it came inside a stream. A refused connection is transient. A reply that has not the
        SDK's form is "nonsense", with the first part of it that is wrong. The base class handles the
        others.
        """
        import ollama
        import pydantic

        response = getattr(error.__context__, "response", None)
        # For a body that is a list or a text the SDK raises AttributeError
        if response is not None:
            message = error_message(getattr(error, "error", response.text))
            return failure_from_status(response.status_code, message, response.headers)
        if isinstance(error, ollama.ResponseError):
            return failure_from_report(error.error)
        if isinstance(error, ConnectionError) or type(error).__name__ == "ConnectError":
            return RequestFailure(
                "connection", "no connection; is Ollama running?", is_transient=True
            )
        if isinstance(error, pydantic.ValidationError):
            # The SDK makes an object of every line
            if error.error_count() >= MAX_SHOWN_ERRORS:
                return RequestFailure("nonsense", "no list of models")
            first = error.errors()[0]
            return RequestFailure("nonsense", str(first["input"]))
        return super()._classify_error(error)

    def _api_key(self) -> str:
        return os.environ.get("OLLAMA_API_KEY", "")


def _complete_url(host: str) -> str:
    """Return the URL for a value of OLLAMA_HOST, which may lack the scheme, host name or port.

    These are http, 127.0.0.1 and 11434 then; a URL with a scheme gets no port. The host 0.0.0.0
    becomes 127.0.0.1.

    Raises UnknownModelError if it is not usable.
    """
    if "://" not in host:
        if host.startswith(":"):
            host = f"127.0.0.1{host}"
        authority, slash, path = host.partition("/")
        if not re.search(r":\d+$", authority):
            authority = f"{authority}:11434"
        host = f"http://{authority}{slash}{path}"
    # A server listens at 0.0.0.0, and cannot be called there
    return validate_url(host.replace("//0.0.0.0", "//127.0.0.1"))
