"""Models of a local Ollama, through its native protocol: the OpenAI-compatible one drops ``num_ctx``."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

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
    import ollama

OLLAMA_URL = "http://127.0.0.1:11434"
MIN_CONTEXT_TOKENS = 4096
"""Tokens of context to ask for at the least."""
_BYTES_PER_TOKEN = 3  # cautious: English has about 4, Chinese about 3


class OllamaModel(RemoteModel):
    """A model that Ollama runs.

    A reply's form is enforced by ``format``: the JSON schema, else "json", else by the prompt alone. Ollama
    does not show the schema to the model, so the prompt has to describe the form.
    """

    def __init__(self, model: str, *, base_url: str | None = None) -> None:
        """Opens no connection. The address is ``base_url``, or OLLAMA_HOST, or port 11434 of this machine.

        Raises UnknownModelError if the address is none.
        """
        host = base_url or os.environ.get("OLLAMA_HOST", "").strip() or OLLAMA_URL
        if "://" not in host:  # OLLAMA_HOST may lack scheme, name or port
            host = f"http://127.0.0.1{host}" if host.startswith(":") else f"http://{host}"
            authority = host.removeprefix("http://").split("/")[0]
            if not re.search(r":\d+$", authority):
                host = host.replace(authority, f"{authority}:11434", 1)
        # 0.0.0.0, where a server listens, is no place to call
        url = validate_url(host.replace("//0.0.0.0", "//127.0.0.1"))
        name = f"ollama:{model}" + (f"@{url}" if url != OLLAMA_URL else "")
        hints = (
            "check the environment variable OLLAMA_API_KEY",
            f"fetch it with: ollama pull {model}",
        )
        super().__init__(name, model, url, RequestFormat(("schema", "json", "prompt")), hints)
        self._context_tokens = MIN_CONTEXT_TOKENS

    def _stream_reply(self, form: RequestFormat, request: ChatRequest) -> Iterator[ChatReply]:
        stream, mode = (
            "stream" not in form.omitted_fields,
            form.modes[0] if request.schema else "prompt",
        )
        shape = {"schema": request.schema, "json": "json", "prompt": None}[mode]
        chat: Any = self._client(request.timeout_s).chat
        # Ollama cuts what its context does not hold, and does not report it
        size = sum(len(message.content.encode("utf-8", "replace")) for message in request.messages)
        needed = size // _BYTES_PER_TOKEN + 16 * len(request.messages) + request.max_output_tokens
        with self._lock:
            # Doubled and never lowered, because Ollama loads the model anew for every other size
            while self._context_tokens < needed:
                self._context_tokens *= 2
            context = self._context_tokens
        options = {
            "temperature": request.temperature,
            "seed": request.seed,
            "num_predict": request.max_output_tokens,
            "num_ctx": context,
        }
        left_out = (
            form.omitted_fields if request.seed is not None else form.omitted_fields | {"seed"}
        )
        options = {name: value for name, value in options.items() if name not in left_out}
        answer = chat(
            self.model, messages_to_data(request), format=shape, stream=stream, options=options
        )
        for part in answer if stream else (answer,):
            yield ChatReply(
                text=part.message.content or "",
                model=part.model or "",
                prompt_tokens=parse_token_count(part.prompt_eval_count),
                completion_tokens=parse_token_count(part.eval_count),
                finish_reason=(part.done_reason or "stop") if part.done else "",
            )

    def _model_names(self, timeout_s: float) -> Iterable[Any]:
        return [entry.model for entry in self._client(timeout_s).list().models]

    def _client(self, timeout_s: float) -> ollama.Client:
        import httpx  # the transport of ollama

        def client(**options: Any) -> ollama.Client:
            import ollama  # which makes a client for OLLAMA_HOST as well

            # One client a call, because only the client has a timeout; "close" leaves no socket behind
            options["headers"]["Connection"] = "close"
            timeout = httpx.Timeout(timeout_s, connect=min(timeout_s, CONNECT_TIMEOUT_S))
            return ollama.Client(self.url, timeout=timeout, **options)

        return make_client(client, self.url)

    def _classify_error(self, error: Exception) -> RequestFailure:
        import ollama
        import pydantic

        if isinstance(error, ollama.ResponseError):
            words = str(error.error)
            if error.status_code < 0:  # sent inside a reply that had begun well
                return RequestFailure("nonsense", words)
            response = getattr(error.__context__, "response", None)
            return failure_from_status(error.status_code, words, getattr(response, "headers", {}))
        if isinstance(error, ConnectionError) or type(error).__name__ == "ConnectError":
            return RequestFailure(
                "connection", "no connection; is Ollama running?", is_transient=True
            )
        if isinstance(
            error, pydantic.ValidationError
        ):  # the SDK takes every line for an object of its own
            few = error.error_count() < 100
            return RequestFailure(
                "nonsense", str(error.errors()[0]["input"]) if few else "no list of models"
            )
        return super()._classify_error(error)

    def _api_key(self) -> str:
        return os.environ.get("OLLAMA_API_KEY", "")
