"""Models of OpenAI and of every server that speaks its chat protocol (vLLM, llama.cpp, LM Studio, ...)."""

from __future__ import annotations

import os
import re
import weakref
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from kgwb.errors import UnknownModelError
from kgwb.llm.base import ChatReply, ChatRequest, parse_token_count
from kgwb.llm.remote import (
    CONNECT_TIMEOUT_S,
    RemoteModel,
    RequestFailure,
    RequestFormat,
    failure_from_status,
    make_client,
    messages_to_data,
    validate_url,
)

if TYPE_CHECKING:
    import openai

OPENAI_URL = "https://api.openai.com/v1"


class OpenAIModel(RemoteModel):
    """A model behind the chat protocol of OpenAI.

    A reply's form is enforced by JSON schema; where the server refuses that by JSON mode, else by the prompt
    alone. The form of request that the server accepted is remembered, so refusals are met once.
    """

    def __init__(self, model: str, *, base_url: str | None = None) -> None:
        """Opens no connection. The address is ``base_url``, or OPENAI_BASE_URL, or OpenAI's own.

        The key is taken from OPENAI_API_KEY; only OpenAI itself always needs one. Raises UnknownModelError if
        that key is missing, or the address is none.
        """
        import openai

        url = validate_url(base_url or os.environ.get("OPENAI_BASE_URL", "").strip() or OPENAI_URL)
        # Others know the older field for the length, and may pass over the newer one in silence
        theirs = f".{urlsplit(url).hostname}".endswith(".openai.com")
        without = frozenset({"max_tokens"} if theirs else ())
        form = RequestFormat(("schema", "json with schema", "json", "prompt"), without)
        key = os.environ.get("OPENAI_API_KEY", "").strip()
        if not key and theirs:
            raise UnknownModelError(
                "the models of OpenAI need a key, and the environment variable OPENAI_API_KEY is not set",
                hint="set OPENAI_API_KEY, or use the model `rules`, which needs no key",
            )
        # Raised here because the transport's own error for such a key shows it
        if not (key.isascii() and key.isprintable()):
            raise UnknownModelError(
                "the environment variable OPENAI_API_KEY holds characters that no key has",
                hint="copy the key again",
            )
        hints = (
            f"{'check' if key else 'set'} the environment variable OPENAI_API_KEY",
            "check the model's name, and the address: it usually ends in /v1",
        )
        name = f"openai:{model}" + (f"@{url}" if url != OPENAI_URL else "")
        super().__init__(name, model, url, form, hints)
        # Repeats are ours: the SDK would repeat timeouts too, and its waits cannot be cancelled
        client = make_client(openai.DefaultHttpxClient, url)
        self._client = openai.OpenAI(
            api_key=key or "no-key-needed", base_url=url, max_retries=0, http_client=client
        )
        weakref.finalize(
            self, self._client.close
        )  # else its open sockets wait for the garbage collector

    def _stream_reply(self, form: RequestFormat, request: ChatRequest) -> Iterator[ChatReply]:
        mode = form.modes[0]
        shape: dict[str, Any] | None = None
        if request.schema is not None and mode == "schema":
            name = re.sub(r"[^A-Za-z0-9_-]", "_", request.task)[:64] or "reply"
            strict = request.schema.get("additionalProperties") is False
            named = {"name": name, "schema": dict(request.schema), "strict": strict}
            shape = {"type": "json_schema", "json_schema": named}
        elif request.schema is not None and mode != "prompt":
            # llama-cpp-python, Together and Fireworks take the schema in this place
            inside = {"schema": dict(request.schema)} if mode == "json with schema" else {}
            shape = {"type": "json_object", **inside}
        body = {
            "model": self.model,
            "messages": messages_to_data(request),
            "max_tokens": request.max_output_tokens,
            "max_completion_tokens": request.max_output_tokens
            if "max_tokens" in form.omitted_fields
            else None,
            "temperature": request.temperature,
            "seed": request.seed,
            "stream": True,
            "stream_options": None if "stream" in form.omitted_fields else {"include_usage": True},
            "response_format": shape,
        }
        body = {
            name: value
            for name, value in body.items()
            if value is not None and name not in form.omitted_fields
        }
        create: Any = self._client.chat.completions.create
        answer = create(**body, timeout=_timeout(request.timeout_s))
        if "stream" not in form.omitted_fields:
            with answer:
                yield from map(_parse_chunk, answer)
            return
        if isinstance(answer, str) or not (part := _parse_chunk(answer)).finish_reason:
            raise ValueError(f"no choice with a message in {answer}")
        yield part

    def _model_names(self, timeout_s: float) -> Iterable[Any]:
        return [entry.id for entry in self._client.models.list(timeout=_timeout(timeout_s)).data]

    def _classify_error(self, error: Exception) -> RequestFailure:
        import openai

        if isinstance(error, openai.APIStatusError):
            words = _error_message(error.body) or error.message
            return failure_from_status(
                error.status_code, words, error.response.headers, str(error.param or "")
            )
        if isinstance(error, openai.APIConnectionError) and isinstance(error.__cause__, Exception):
            error = error.__cause__
        return super()._classify_error(error)

    def _api_key(self) -> str:
        return self._client.api_key


def _timeout(timeout_s: float) -> openai.Timeout:
    import openai

    return openai.Timeout(timeout_s, connect=min(timeout_s, CONNECT_TIMEOUT_S))


def _parse_chunk(answer: Any) -> ChatReply:
    """What a whole answer, or a chunk of one, says. The SDK checks no types: any of it may be None or odd."""
    choice = next((choice for choice in answer.choices or () if choice.index in (0, None)), None)
    if error := getattr(answer, "error", None) or getattr(choice, "error", None):
        raise ValueError(_error_message(error))
    message = getattr(choice, "delta", None) or getattr(choice, "message", None)
    content, refusal = getattr(message, "content", None), getattr(message, "refusal", None)
    if isinstance(content, list):  # some servers send the text in parts
        content = "".join(str(part.get("text") or "") for part in content)
    whole = "stop" if hasattr(choice, "message") and message else ""
    return ChatReply(
        text=str(content or refusal or ""),
        model=str(answer.model or ""),
        prompt_tokens=parse_token_count(getattr(answer.usage, "prompt_tokens", 0)),
        completion_tokens=parse_token_count(getattr(answer.usage, "completion_tokens", 0)),
        finish_reason="refusal"
        if refusal
        else str(getattr(choice, "finish_reason", None) or whole),
    )


def _error_message(body: Any) -> str:
    """The message in an error, which servers lay out differently."""
    message = body.get("message") if isinstance(body, dict) else body
    return str(message or body or "")
