"""Models of a local Ollama, through its native protocol: the OpenAI-compatible one drops ``num_ctx``."""

from __future__ import annotations

import json
import os
import re
import threading
from functools import partial
from typing import TYPE_CHECKING, Any

from kgwb.llm.base import ChatReply, ChatRequest, token_count
from kgwb.llm.remote import (
    BROKEN_OFF,
    CONNECT_S,
    EMPTY,
    HEADERS,
    Arriving,
    Failure,
    Form,
    RemoteModel,
    chat_messages,
    checked_url,
    client_of,
    hooks,
    status_failure,
    transport_errors,
    transport_failure,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    import ollama

OLLAMA_URL = "http://127.0.0.1:11434"
LEAST_CONTEXT = 4096
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
        url = _address(base_url or os.environ.get("OLLAMA_HOST", "").strip() or OLLAMA_URL)
        super().__init__("ollama", model, url, OLLAMA_URL)
        self._form = Form(without=frozenset({"schema"}))  # its "json" takes none
        self._context = LEAST_CONTEXT

    def _send(self, form: Form, request: ChatRequest, left: threading.Event) -> ChatReply | Failure:
        stream, options = "stream" not in form.without, self._options(request, form)
        shape: Any = {"schema": request.schema, "json": "json", "prompt": None}[form.mode]
        shape = shape if request.schema else None
        arriving = Arriving(request, self._keys())
        parts: list[ollama.ChatResponse] = []

        def chat(client: ollama.Client) -> None:
            put: Any = client.chat
            answer = put(self.model, chat_messages(request), format=shape, stream=stream, options=options)
            for part in answer if stream else (answer,):
                parts.append(part)
                arriving.add(part.message.content or "")
                if left.is_set():
                    break

        failure = self._ask(chat, request.timeout_s)
        if isinstance(failure, Failure):
            return arriving.cut(failure)
        if not parts:
            return EMPTY
        last = parts[-1]
        if not last.done:
            return BROKEN_OFF
        return ChatReply(
            text=arriving.text,
            model=last.model or "",
            prompt_tokens=token_count(last.prompt_eval_count),
            completion_tokens=token_count(last.eval_count),
            first_token_s=arriving.first_token_s if len(parts) > 1 else None,
            finish_reason=last.done_reason or "stop",
        )

    def _list(self, timeout_s: float) -> tuple[str, ...] | Failure:
        answer = self._ask(lambda client: client.list(), timeout_s)
        if isinstance(answer, Failure):
            return answer
        return tuple(sorted(entry.model for entry in answer.models if entry.model))

    def _ask(self, call: Callable[[ollama.Client], Any], timeout_s: float) -> Any:
        import httpx  # the transport of ollama

        client = client_of(partial(self._client, httpx.Timeout(timeout_s, connect=min(timeout_s, CONNECT_S))))
        import ollama

        try:
            return call(client)
        except ollama.ResponseError as error:
            return _refusal(error)
        except (ConnectionError, httpx.ConnectError):
            return Failure("connection", "no connection; is Ollama running?")
        except transport_errors() as error:
            return transport_failure(error)
        except (AttributeError, RecursionError, TypeError, ValueError) as error:
            return Failure("nonsense", _seen(error))  # the SDK takes every line for an object of its own

    def _client(self, timeout: Any) -> ollama.Client:
        import ollama  # which makes a client for OLLAMA_HOST as well

        # One client a call, because only the client has a timeout; "close" leaves no socket behind
        headers = HEADERS | {"Connection": "close"}
        return ollama.Client(self.url, timeout=timeout, headers=headers, event_hooks=hooks(self.url))

    def _options(self, request: ChatRequest, form: Form) -> dict[str, Any]:
        options: dict[str, Any] = {
            "temperature": request.temperature,
            "seed": request.seed,
            "num_predict": request.max_output_tokens,
            "num_ctx": self._context_for(request),
        }
        left_out = form.without if request.seed is not None else form.without | {"seed"}
        return {name: value for name, value in options.items() if name not in left_out}

    def _context_for(self, request: ChatRequest) -> int:
        """Tokens of context that hold prompt and reply: Ollama cuts what does not fit, and says nothing."""
        size = sum(len(message.content.encode("utf-8", "replace")) for message in request.messages)
        needed = size // _BYTES_PER_TOKEN + 16 * len(request.messages) + request.max_output_tokens
        with self._lock:
            # Doubled and never lowered, because Ollama loads the model anew for every other size
            while self._context < needed:
                self._context *= 2
            return self._context

    def _key(self) -> str:
        return os.environ.get("OLLAMA_API_KEY", "")

    def _hints(self) -> tuple[str, str]:
        return "check the environment variable OLLAMA_API_KEY", f"fetch it with: ollama pull {self.model}"


def _refusal(error: ollama.ResponseError) -> Failure:
    text = str(error.error)
    if error.status_code < 0:  # said inside a reply that had begun well
        return Failure("nonsense", text)
    response = getattr(error.__context__, "response", None)
    return status_failure(error.status_code, text, response.headers if response is not None else {})


def _seen(error: Exception) -> str:
    import pydantic

    if isinstance(error, json.JSONDecodeError):
        return error.doc or "an empty page"
    if not isinstance(error, pydantic.ValidationError):
        return str(error)
    count = error.error_count()
    return str(error.errors()[0]["input"]) if count < 100 else f"{count:,} times what does not belong there"


def _address(host: str) -> str:
    """OLLAMA_HOST may lack scheme, name or port; and 0.0.0.0, where a server listens, is no place to call."""
    if "://" not in host:
        host = f"http://127.0.0.1{host}" if host.startswith(":") else f"http://{host}"
        authority = host.removeprefix("http://").split("/")[0]
        if not re.search(r":\d+$", authority):
            host = host.replace(authority, f"{authority}:11434", 1)
    return checked_url(host.replace("//0.0.0.0", "//127.0.0.1"))
