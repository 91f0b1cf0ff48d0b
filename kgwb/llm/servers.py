"""Models that a server runs: that of OpenAI, all with its chat protocol (vLLM, llama.cpp, LM Studio, ...), and Ollama.

Ollama is asked in its own protocol. Its OpenAI-compatible one ignores ``num_ctx``.
"""

from __future__ import annotations

import json
import os
import re
import weakref
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from kgwb.errors import UnknownModelError
from kgwb.llm.base import ChatRequest, parse_token_count, said_in
from kgwb.llm.remote import (
    CONNECT_TIMEOUT_S,
    RemoteModel,
    ReplyPart,
    RequestFailure,
    RequestFormat,
    error_message,
    failure_from_report,
    failure_from_status,
    httpx_package,
    join_arguments,
    make_client,
    messages_to_data,
    require_all,
    validate_url,
)
from kgwb.network import identify_certificates
from kgwb.records import JsonObject

if TYPE_CHECKING:
    import ollama
    import openai

OPENAI_URL = "https://api.openai.com/v1"


class ReportedError(Exception):
    """A server reports an error inside a reply. The argument is the error, as JSON data."""


class OpenAIModel(RemoteModel):
    """A model behind the chat protocol of OpenAI.

    The form of replies is enforced by JSON schema. If the server refuses that, it is enforced by
    JSON mode, and else by the prompt alone. The format that the server accepted is kept, so that
    each refusal happens once.
    """

    def __init__(
        self, model: str, *, base_url: str | None = None, client: openai.OpenAI | None = None
    ) -> None:
        """Prepare the client; no connection is opened.

        A ``client`` that is given has its own address and key. Without one, the address is
        ``base_url``, or the environment variable OPENAI_BASE_URL, or OpenAI's own. The key is taken
        from OPENAI_API_KEY. Only OpenAI's own servers always need one.

        Raises UnknownModelError if OpenAI's key is missing, the key has characters that no key has,
        or the address is not usable.
        """
        default_url = os.environ.get("OPENAI_BASE_URL", "").strip() or OPENAI_URL
        if client is not None:
            base_url = str(client.base_url).rstrip("/")
        url = validate_url(base_url or default_url)
        host = urlsplit(url).hostname
        is_openai = f".{host}".endswith(".openai.com")
        key = os.environ.get("OPENAI_API_KEY", "").strip()
        if client is None:
            _check_key(key, is_needed=is_openai)
        # Other servers know the older field for the length, and may ignore the newer one
        form = RequestFormat(("schema", "json with schema", "json", "prompt"))
        if is_openai:
            form = replace(form, omitted_fields=frozenset(["max_tokens"]))
        name = f"openai:{model}"
        if url != OPENAI_URL:
            name = f"{name}@{url}"
        verb = "check" if key else "set"
        hints = (
            f"{verb} the environment variable OPENAI_API_KEY",
            "check the model's name, and the address: it usually ends in /v1",
            "look into the server's log, and check the address: for an OpenAI-compatible server it "
            "usually ends in /v1",
        )
        super().__init__(name, model, url, form, hints)
        self._certificates: object = None
        """Those that the client was made with. None if the client was given."""
        if client is not None:
            self._newest_client = client.with_options(max_retries=0)
            return
        self._certificates = identify_certificates()
        self._newest_client = self._make_client(key or "no-key-needed")

    @property
    def _client(self) -> openai.OpenAI:
        """The client; a new one if the certificates have changed since it was made.

        Calls that another thread is making go on with the client before it. Raises
        UnknownModelError if the environment does not allow a new client.
        """
        if self._certificates is not None:
            present = identify_certificates()
            if present != self._certificates:
                self._newest_client = self._make_client(self._api_key())
                self._certificates = present
        return self._newest_client

    def _make_client(self, key: str) -> openai.OpenAI:
        """Return a new client with a key, whose sockets are closed at the end of this model at the latest.

        The SDK does not repeat: it would repeat after timeouts too, and its waits cannot be
        cancelled.
        """
        import openai

        client_class = openai.DefaultHttpxClient
        package = httpx_package(client_class)
        client = openai.OpenAI(
            api_key=key,
            base_url=self.url,
            max_retries=0,
            http_client=make_client(client_class, self.url, package),
        )
        # Otherwise its sockets stay open until the garbage collector runs
        weakref.finalize(self, client.close)
        return client

    def _stream_reply(self, form: RequestFormat, request: ChatRequest) -> Iterator[ReplyPart]:
        """Send one chat request, and yield the parts of the reply.

        Streamed (``RequestFormat.is_streamed``), that is one part for each chunk, else one part with
        all of the reply.

        Raises ReportedError for an error inside the reply, ValueError for a whole reply without a
        choice, and what the SDK raises.
        """
        create: Any = self._client.chat.completions.create
        body = self._request_body(form, request)
        answer = create(**body, timeout=_timeout(request.timeout_s))
        if "stream" in body:
            with answer:
                for chunk in answer:
                    yield _parse_chunk(chunk)
            return
        reply = ReplyPart("", finish_reason="")
        if not isinstance(answer, str):
            reply = _parse_chunk(answer)
        if not reply.finish_reason:
            raise ValueError(f"no choice with a message in {answer}")
        if request.tools:
            reply = replace(reply, text=said_in(answer.choices[0].message.to_dict()))
        yield reply

    def _request_body(self, form: RequestFormat, request: ChatRequest) -> JsonObject:
        """Return the fields of a chat request, by name.

        Fields without a value are left out, and those that the format omits. The length is limited
        by "max_tokens", or by "max_completion_tokens" if the format omits that. A streamed request
        asks for the token counts.
        """
        body: JsonObject = {
            "model": self.model,
            "messages": messages_to_data(request),
            "max_tokens": request.max_output_tokens,
        }
        if "max_tokens" in form.omitted_fields:
            body["max_completion_tokens"] = request.max_output_tokens
        body["temperature"] = request.temperature
        body["seed"] = request.seed
        body.update(request.tools)
        if form.is_streamed(request):
            body["stream"] = True
            body["stream_options"] = {"include_usage": True}
        body["response_format"] = _response_format(form.modes[0], request)

        return form.select_fields(body)

    def _model_names(self, timeout_s: float) -> Iterable[Any]:
        """Return the ids of the models that the server lists."""
        models = self._client.models.list(timeout=_timeout(timeout_s))
        return [entry.id for entry in models.data]

    def _classify_error(self, error: Exception) -> RequestFailure:
        """Return the failure for an exception.

        For an error with an HTTP status this has the status, the server's message and headers, and
        the field of the request that the server names. An error inside a reply has the status that
        fits it. Any other error is classified by the base class, by its cause if it is a connection
        error of the SDK.
        """
        import openai

        if isinstance(error, openai.APIStatusError):
            message = error_message(error.body) or error.message
            param = str(error.param or "")
            return failure_from_status(error.status_code, message, error.response.headers, param)
        if isinstance(error, ReportedError):
            return failure_from_report(error.args[0])
        if isinstance(error, openai.APIError) and error.body:
            return failure_from_report(error.body)
        cause = error.__cause__
        if isinstance(error, openai.APIConnectionError) and isinstance(cause, Exception):
            error = cause
        return super()._classify_error(error)

    def _api_key(self) -> str:
        return self._newest_client.api_key


def _check_key(key: str, *, is_needed: bool) -> None:
    """Raise UnknownModelError if a key is needed and missing, or cannot be a key.

    A key is ASCII without control characters. The error does not show the key.
    """
    if is_needed and not key:
        raise UnknownModelError(
            "the models of OpenAI need a key, and the environment variable OPENAI_API_KEY is not set",
            hint="set OPENAI_API_KEY, or use the model `rules`, which needs no key",
        )
    # Checked here because the transport's own error for such a key shows the key
    if not (key.isascii() and key.isprintable()):
        raise UnknownModelError(
            "the environment variable OPENAI_API_KEY has characters that no key has",
            hint="copy the key again, without blanks and line breaks, into this variable",
        )


def _response_format(mode: str, request: ChatRequest) -> JsonObject | None:
    """Return the value of the field "response_format" for a mode of a RequestFormat.

    It is the JSON schema under the name of the task, JSON mode with the schema, or JSON mode alone.
    The schema is that of ``require_all``, and strict if it allows no other fields. Returns None for
    the mode "prompt" and for a request without a schema.
    """
    if request.schema is None or mode == "prompt":
        return None
    schema = require_all(request.schema)
    if mode == "schema":
        name = re.sub(r"[^A-Za-z0-9_-]", "_", request.task)[:64] or "reply"
        strict = schema.get("additionalProperties") is False
        named_schema = {"name": name, "schema": schema, "strict": strict}
        return {"type": "json_schema", "json_schema": named_schema}
    if mode == "json with schema":
        # llama-cpp-python, Together and Fireworks accept the schema in this place
        return {"type": "json_object", "schema": schema}
    return {"type": "json_object"}


def _timeout(timeout_s: float) -> openai.Timeout:
    """Return the SDK's timeout of a request; connecting may take CONNECT_TIMEOUT_S at most."""
    import openai

    return openai.Timeout(timeout_s, connect=min(timeout_s, CONNECT_TIMEOUT_S))


REASONING_FIELDS = ("reasoning_content", "reasoning", "thinking")
"""Fields in which servers send a model's thoughts apart from the text."""


def _parse_chunk(answer: Any) -> ReplyPart:
    """Return the first choice of a whole answer, or of a chunk of a streamed one, as a part of a reply.

    The first choice is the first with the index 0 or none. The text is that of its message or
    delta; a refusal is the text if there is none, and sets the finish reason "refusal". The arguments
    of tools follow, as models write the whole reply there. Without a choice the text is empty. A
    whole answer without a finish reason counts as finished ("stop"). The SDK does not check types,
    so any attribute may be None, absent or of another type.

    Raises ReportedError if the answer or the choice has an error, or the answer is one.
    """
    choice = None
    for candidate in reversed(getattr(answer, "choices", None) or ()):
        if candidate.index in (0, None):
            choice = candidate
    # Gemini sends a list of one error
    for part in answer if isinstance(answer, list) else (answer, choice):
        error = getattr(part, "error", None)
        if error:
            raise ReportedError(error)
    # As vLLM sent it once, or "event: error"
    if choice is None and getattr(answer, "message", None):
        raise ReportedError(answer.to_dict())

    delta = getattr(choice, "delta", None)
    message = delta or getattr(choice, "message", None)
    text = _join_texts(getattr(message, "content", None))
    reasoning = ""
    for name in REASONING_FIELDS:
        reasoning = reasoning or _join_texts(getattr(message, name, None))
    refusal = getattr(message, "refusal", None)
    functions = [getattr(message, "function_call", None)]  # an older form of tool calls
    for call in getattr(message, "tool_calls", None) or ():
        functions.append(getattr(call, "function", None))
    finish_reason = getattr(choice, "finish_reason", None)
    if refusal:
        finish_reason = "refusal"
    elif finish_reason == "error":  # OpenRouter and Mistral
        raise ReportedError("the reply ended in an error")
    elif not finish_reason and message and hasattr(choice, "message"):
        finish_reason = "stop"
    usage = getattr(answer, "usage", None)
    return ReplyPart(
        text=(text or str(refusal or "")) + join_arguments(functions),
        model=str(answer.model or ""),
        prompt_tokens=parse_token_count(getattr(usage, "prompt_tokens", 0)),
        completion_tokens=parse_token_count(getattr(usage, "completion_tokens", 0)),
        finish_reason=str(finish_reason or ""),
        fingerprint=str(getattr(answer, "system_fingerprint", None) or ""),
        reasoning=reasoning,
    )


def _join_texts(content: Any) -> str:
    """Return the content of a message as text. Some servers send a list of its parts."""
    if not isinstance(content, list):
        return str(content or "")
    texts = []
    for part in content:
        text = part
        if isinstance(part, dict):
            text = part.get("text") or part.get("refusal")
        texts.append(str(text or ""))
    return "".join(texts)


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
        reason. Otherwise (``RequestFormat.is_streamed``) it is one part with all of the reply. The field
        ``format`` is the JSON schema, "json" or absent, by the first mode of the format.
        """
        is_streamed = form.is_streamed(request)
        reply_format: Any = None
        if request.schema and form.modes[0] == "schema":
            reply_format = require_all(request.schema)
        elif request.schema and form.modes[0] == "json":
            reply_format = "json"
        chat: Any = self._client(request.timeout_s).chat
        messages = messages_to_data(request)
        for message in messages:
            for call in message.get("tool_calls", ()):
                function = call["function"]
                with suppress(ValueError):  # else Ollama says what is wrong with it
                    function["arguments"] = json.loads(function["arguments"])
        answer = chat(
            self.model,
            messages,
            tools=request.tools.get("tools"),
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
            text = (part.message.content or "") + join_arguments(functions)
            if request.tools:
                text = said_in(part.message.model_dump())
            yield ReplyPart(
                text=text,
                model=part.model or "",
                prompt_tokens=parse_token_count(part.prompt_eval_count),
                completion_tokens=parse_token_count(part.eval_count),
                finish_reason=finish_reason,
                reasoning=part.message.thinking or "",
            )

    def _options(self, form: RequestFormat, request: ChatRequest) -> JsonObject:
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
        # For a body that is a list or a text the SDK raises AttributeError. Any other error broke the body off
        if response is not None and isinstance(error, ollama.ResponseError | AttributeError):
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
