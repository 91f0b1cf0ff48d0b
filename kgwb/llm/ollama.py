"""Models of a local Ollama, through its native protocol: the OpenAI-compatible one drops ``num_ctx``."""

from __future__ import annotations

import json
import os
import re
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from kgwb.llm.base import ChatModel, ChatReply, ChatRequest, Mode
from kgwb.llm.remote import (
    CONNECT_S,
    Failure,
    as_error,
    chat_messages,
    checked_url,
    no_such_model,
    send_repeatedly,
    transport_failure,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    import ollama

    from kgwb.errors import ModelError
    from kgwb.kg.base import Graph

OLLAMA_URL = "http://127.0.0.1:11434"
LEAST_CONTEXT = 4096
"""Tokens of context to ask for at the least."""
_Form = Literal["schema", "json", "prompt"]
_NEXT_FORM: dict[_Form, _Form] = {"schema": "json", "json": "prompt"}
_BYTES_PER_TOKEN = 3  # cautious: English has about 4, Chinese about 3


class OllamaModel(ChatModel):
    """A model that Ollama runs.

    A reply's form is enforced by ``format``: the JSON schema, else "json", else by the prompt alone. Ollama
    does not show the schema to the model, so the prompt has to describe the form.
    """

    remote = True

    def __init__(self, model: str, *, base_url: str | None = None) -> None:
        """Opens no connection. The address is ``base_url``, or OLLAMA_HOST, or port 11434 of this machine.

        Raises UnknownModelError if the address is none.
        """
        self.model = model
        self.url = _address(base_url or os.environ.get("OLLAMA_HOST", "").strip() or OLLAMA_URL)
        self.name = f"ollama:{model}" if self.url == OLLAMA_URL else f"ollama:{model}@{self.url}"
        self._lock = threading.Lock()
        self._form: _Form = "schema"
        self._schema_works = False
        self._context = LEAST_CONTEXT

    def __repr__(self) -> str:
        return f"OllamaModel({self.name!r})"

    def complete(self, request: ChatRequest, kg: Graph | None, cancel: threading.Event) -> ChatReply:
        """The model's answer; raises Cancelled or a ModelError (unreachable, timeout, refused)."""
        started = time.perf_counter()
        with_schema = request.schema is not None
        with self._lock:
            form = self._form if with_schema else "prompt"
        tries = 0
        while True:
            outcome, sent = self._send_as(form, request, cancel)
            tries += sent
            if not isinstance(outcome, Failure):
                break
            if form == "prompt" or not _may_refuse_format(outcome):
                raise self._error(outcome, request.timeout_s)
            form = _NEXT_FORM[form]
        if with_schema:
            self._remember(form)
        mode: Mode = form if with_schema else "none"
        return replace(outcome, mode=mode, seconds=time.perf_counter() - started, tries=tries)

    def models(self, timeout_s: float = 2.0) -> tuple[str, ...]:
        """Names of the models that Ollama has, sorted; raises a ModelError. Sends one request, no repeats."""
        outcome = self._list(timeout_s)
        if isinstance(outcome, Failure):
            raise self._error(outcome, timeout_s, name_models=False)
        return outcome

    def _send_as(
        self, form: _Form, request: ChatRequest, cancel: threading.Event
    ) -> tuple[ChatReply | Failure, int]:
        return send_repeatedly(lambda: self._send(form, request), cancel, request.timeout_s)

    def _send(self, form: _Form, request: ChatRequest) -> ChatReply | Failure:
        options = self._options(request)
        shape: Any = {"schema": dict(request.schema or {}), "json": "json", "prompt": None}[form]

        def chat(client: ollama.Client) -> ollama.ChatResponse:
            return client.chat(self.model, chat_messages(request), format=shape, options=options)

        answer = self._ask(chat, request.timeout_s)
        if isinstance(answer, Failure):
            return answer
        return ChatReply(
            text=answer.message.content or "",
            model=answer.model or "",
            prompt_tokens=answer.prompt_eval_count or 0,
            completion_tokens=answer.eval_count or 0,
            finish_reason=answer.done_reason or "stop",
        )

    def _list(self, timeout_s: float) -> tuple[str, ...] | Failure:
        answer = self._ask(lambda client: client.list(), timeout_s)
        if isinstance(answer, Failure):
            return answer
        return tuple(sorted(entry.model for entry in answer.models if entry.model))

    def _ask(self, call: Callable[[ollama.Client], Any], timeout_s: float) -> Any:
        import httpx  # the transport of ollama
        import ollama
        import pydantic

        timeout = httpx.Timeout(timeout_s, connect=min(timeout_s, CONNECT_S))
        # One client a call, because only the client has a timeout; "close" leaves no socket behind
        client = ollama.Client(self.url, timeout=timeout, headers={"Connection": "close"})
        try:
            return call(client)
        except ollama.ResponseError as error:
            text = str(error.error)
            return Failure("status", text, status=error.status_code, final=_names_format(text))
        except ConnectionError:
            return Failure("connection", "no connection; is Ollama running?")
        except httpx.TransportError as error:
            return transport_failure(error)
        except json.JSONDecodeError as error:
            return Failure("nonsense", error.doc or "an empty page")
        except pydantic.ValidationError as error:
            return Failure("nonsense", str(error.errors()[0]["input"]))

    def _options(self, request: ChatRequest) -> dict[str, Any]:
        options: dict[str, Any] = {
            "temperature": request.temperature,
            "num_predict": request.max_output_tokens,
            "num_ctx": self._context_for(request),
        }
        return options if request.seed is None else {**options, "seed": request.seed}

    def _context_for(self, request: ChatRequest) -> int:
        """Tokens of context that hold prompt and reply: Ollama cuts what does not fit, and says nothing."""
        size = sum(len(message.content.encode("utf-8", "replace")) for message in request.messages)
        needed = size // _BYTES_PER_TOKEN + 16 * len(request.messages) + request.max_output_tokens
        with self._lock:
            # Doubled and never lowered, because Ollama loads the model anew for every other size
            while self._context < needed:
                self._context *= 2
            return self._context

    def _remember(self, form: _Form) -> None:
        with self._lock:
            self._schema_works |= form == "schema"
            # An Ollama that has honoured a schema refused this one, not all of them
            self._form = "schema" if self._schema_works else form

    def _error(self, failure: Failure, timeout_s: float, *, name_models: bool = True) -> ModelError:
        if failure.status == 404 and name_models:
            listed = self._list(min(timeout_s, 2.0))
            hint = f"fetch it with: ollama pull {self.model}"
            return no_such_model(self.model, self.url, () if isinstance(listed, Failure) else listed, hint)
        keys = (os.environ.get("OLLAMA_API_KEY", ""),)
        hint = "check the environment variable OLLAMA_API_KEY"
        return as_error(failure, self.url, timeout_s=timeout_s, keys=keys, key_hint=hint)


def _may_refuse_format(failure: Failure) -> bool:
    return failure.status in (400, 422) or (failure.status == 500 and failure.final)


def _names_format(text: str) -> bool:
    """Ollama answers 500, and not 400, to a schema that it cannot make a grammar of."""
    return any(word in text.lower() for word in ("format", "schema", "grammar"))


def _address(host: str) -> str:
    """OLLAMA_HOST may lack scheme, name or port; and 0.0.0.0, where a server listens, is no place to call."""
    if "://" not in host:
        host = f"http://127.0.0.1{host}" if host.startswith(":") else f"http://{host}"
        authority = host.removeprefix("http://").split("/")[0]
        if not re.search(r":\d+$", authority):
            host = host.replace(authority, f"{authority}:11434", 1)
    return checked_url(host.replace("//0.0.0.0", "//127.0.0.1"))
