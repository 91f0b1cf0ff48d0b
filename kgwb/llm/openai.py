"""Models of OpenAI and of every server that speaks its chat protocol (vLLM, llama.cpp, LM Studio, ...)."""

from __future__ import annotations

import json
import os
import re
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from kgwb.errors import ModelError, UnknownModelError
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
from kgwb.llm.strict import strict_schema

if TYPE_CHECKING:
    from collections.abc import Callable

    import openai

    from kgwb.kg.base import Graph

OPENAI_URL = "https://api.openai.com/v1"
_NO_KEY = "no-key-needed"
_NEXT_MODE: dict[str, Literal["json", "prompt"]] = {"schema": "json", "json": "prompt"}
_OTHER_TOKENS_FIELD = {"max_completion_tokens": "max_tokens", "max_tokens": "max_completion_tokens"}


@dataclass(frozen=True, slots=True)
class _Form:
    """How a request is put; servers differ in what they take."""

    mode: Literal["schema", "json", "prompt"] = "schema"
    tokens_field: str = "max_completion_tokens"
    temperature: bool = True
    seed: bool = True


class OpenAIModel(ChatModel):
    """A model behind the chat protocol of OpenAI.

    A reply's form is enforced by JSON schema; where the server refuses that by JSON mode, else by the prompt
    alone. The form of request that the server took is remembered, so refusals are met once.
    """

    remote = True

    def __init__(self, model: str, *, base_url: str | None = None) -> None:
        """Opens no connection. The address is ``base_url``, or OPENAI_BASE_URL, or OpenAI's own.

        The key is taken from OPENAI_API_KEY; only OpenAI itself always needs one. Raises UnknownModelError if
        that key is missing, or the address is none.
        """
        import openai

        self.model = model
        self.url = checked_url(base_url or os.environ.get("OPENAI_BASE_URL", "").strip() or OPENAI_URL)
        self.name = f"openai:{model}" if self.url == OPENAI_URL else f"openai:{model}@{self.url}"
        # Repeats are ours: the SDK would repeat timeouts too, and its waits cannot be cancelled
        self._client = openai.OpenAI(api_key=_key(self.url), base_url=self.url, max_retries=0)
        self._lock = threading.Lock()
        self._form = _Form()
        self._schema_works = False

    def __repr__(self) -> str:
        return f"OpenAIModel({self.name!r})"

    def complete(self, request: ChatRequest, kg: Graph | None, cancel: threading.Event) -> ChatReply:
        """The model's answer; raises Cancelled or a ModelError (unreachable, timeout, refused)."""
        started = time.perf_counter()
        with self._lock:
            form = self._form
        with_schema = request.schema is not None
        refused: set[_Form] = set()
        tries = 0
        while True:
            outcome, sent = self._send_as(form, request, cancel)
            tries += sent
            if not isinstance(outcome, Failure):
                break
            refused.add(form)
            gentler = _gentler(form, outcome, with_schema=with_schema)
            if gentler is None or gentler in refused:
                raise self._error(outcome, request.timeout_s)
            form = gentler
        self._remember(form, with_schema=with_schema)
        mode: Mode = form.mode if with_schema else "none"
        return replace(outcome, mode=mode, seconds=time.perf_counter() - started, tries=tries)

    def models(self, timeout_s: float = 2.0) -> tuple[str, ...]:
        """Names of the models that the server lists, sorted; raises a ModelError. Asks once only."""
        outcome = self._list(timeout_s)
        if isinstance(outcome, Failure):
            raise self._error(outcome, timeout_s, name_models=False)
        return outcome

    def _send_as(
        self, form: _Form, request: ChatRequest, cancel: threading.Event
    ) -> tuple[ChatReply | Failure, int]:
        return send_repeatedly(lambda: self._send(form, request), cancel, request.timeout_s)

    def _send(self, form: _Form, request: ChatRequest) -> ChatReply | Failure:
        create = self._client.chat.completions.with_raw_response.create
        body = _body(self.model, request, form)
        answer = self._ask(lambda timeout: create(**body, timeout=timeout), request.timeout_s)
        reply = answer if isinstance(answer, Failure) else _reply(answer)
        key = self._client.api_key
        if isinstance(reply, Failure) or key == _NO_KEY:
            return reply
        return replace(reply, text=reply.text.replace(key, "***"), model=reply.model.replace(key, "***"))

    def _list(self, timeout_s: float) -> tuple[str, ...] | Failure:
        listing = self._client.models.with_raw_response.list
        answer = self._ask(lambda timeout: listing(timeout=timeout), timeout_s)
        if isinstance(answer, Failure):
            return answer
        entries = answer.get("data")
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            return Failure("nonsense", json.dumps(answer))
        return tuple(sorted(str(entry["id"]) for entry in entries if "id" in entry))

    def _ask(self, call: Callable[[openai.Timeout], Any], timeout_s: float) -> dict[str, Any] | Failure:
        import openai

        try:
            text = call(openai.Timeout(timeout_s, connect=min(timeout_s, CONNECT_S))).text
        except openai.APIConnectionError as error:
            return transport_failure(error.__cause__ or error)
        except openai.APIStatusError as error:
            return _status_failure(error)
        try:
            answer = json.loads(text)
        except (ValueError, RecursionError):
            return Failure("nonsense", text or "an empty page")
        if not isinstance(answer, dict) or answer.get("error"):
            return Failure("nonsense", _said(answer))
        return answer

    def _remember(self, form: _Form, *, with_schema: bool) -> None:
        with self._lock:
            self._schema_works |= with_schema and form.mode == "schema"
            # A server that has honoured a schema refused this one, not all of them
            lower = with_schema and not self._schema_works
            self._form = replace(form, mode=form.mode if lower else self._form.mode)

    def _error(self, failure: Failure, timeout_s: float, *, name_models: bool = True) -> ModelError:
        if failure.status == 404 and name_models:
            listed = self._list(min(timeout_s, 2.0))
            hint = "check the model's name, and the address: it usually ends in /v1"
            return no_such_model(self.model, self.url, () if isinstance(listed, Failure) else listed, hint)
        key = self._client.api_key
        keyless = key == _NO_KEY
        hint = f"{'set' if keyless else 'check'} the environment variable OPENAI_API_KEY"
        keys = () if keyless else (key,)
        return as_error(failure, self.url, timeout_s=timeout_s, keys=keys, key_hint=hint)


def _key(url: str) -> str:
    key = os.environ.get("OPENAI_API_KEY", "").strip()
    if not key and f".{urlsplit(url).hostname}".endswith(".openai.com"):
        raise UnknownModelError(
            "the models of OpenAI need a key, and the environment variable OPENAI_API_KEY is not set",
            hint="set OPENAI_API_KEY, or use the model `rules`, which needs no key",
        )
    # Said here because the transport's own error for such a key shows it
    if not (key.isascii() and key.isprintable()):
        raise UnknownModelError(
            "the environment variable OPENAI_API_KEY holds characters that no key has",
            hint="copy the key again",
        )
    return key or _NO_KEY


def _body(model: str, request: ChatRequest, form: _Form) -> dict[str, Any]:
    body: dict[str, Any] = {
        "model": model,
        "messages": chat_messages(request),
        form.tokens_field: request.max_output_tokens,
    }
    if form.temperature:
        body["temperature"] = request.temperature
    if form.seed and request.seed is not None:
        body["seed"] = request.seed
    if request.schema is not None and form.mode == "schema":
        body["response_format"] = _response_format(request.task, request.schema)
    if request.schema is not None and form.mode == "json":
        body["response_format"] = {"type": "json_object"}
    return body


def _response_format(task: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    strict = strict_schema(schema)
    name = re.sub(r"[^A-Za-z0-9_-]", "_", task)[:64] or "reply"
    named = {"name": name, "schema": dict(schema) if strict is None else strict, "strict": strict is not None}
    return {"type": "json_schema", "json_schema": named}


def _gentler(form: _Form, failure: Failure, *, with_schema: bool) -> _Form | None:
    """The form without what the server seems to refuse: a field it names, else the enforcement."""
    if failure.status not in (400, 422):
        return None
    named = failure.param or failure.text
    if "response_format" not in named:
        if re.search(rf"\b{form.tokens_field}\b", named):
            return replace(form, tokens_field=_OTHER_TOKENS_FIELD[form.tokens_field])
        if form.temperature and re.search(r"\btemperature\b", named):
            return replace(form, temperature=False)
        if form.seed and re.search(r"\bseed\b", named):
            return replace(form, seed=False)
    # JSON mode may be refused by naming "messages", where they lack the word
    elsewhere = failure.param and not failure.param.startswith("response_format") and form.mode == "schema"
    if not with_schema or elsewhere or form.mode == "prompt":
        return None
    return replace(form, mode=_NEXT_MODE[form.mode])


def _reply(answer: dict[str, Any]) -> ChatReply | Failure:
    choices = answer.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        return Failure("nonsense", f"no choice with a message in {json.dumps(answer)}")
    if choice.get("error"):
        return Failure("nonsense", _said(choice["error"]))
    refusal = message.get("refusal")
    return ChatReply(
        text=str(refusal) if refusal else _text(message.get("content")),
        model=str(answer.get("model") or ""),
        prompt_tokens=_count(answer, "prompt_tokens"),
        completion_tokens=_count(answer, "completion_tokens"),
        finish_reason="refusal" if refusal else str(choice.get("finish_reason") or "stop"),
    )


def _count(answer: dict[str, Any], name: str) -> int:
    usage = answer.get("usage")
    count = usage.get(name) if isinstance(usage, dict) else 0
    return count if isinstance(count, int) else 0


def _text(content: Any) -> str:
    """Some servers send the text in parts."""
    if isinstance(content, list):
        return "".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    return str(content or "")


def _status_failure(error: openai.APIStatusError) -> Failure:
    headers = error.response.headers
    return Failure(
        "status",
        _said(error.body) or error.message,
        status=error.status_code,
        param=str(error.param or ""),
        wait_s=_wait_s(headers),
        final=headers.get("x-should-retry") == "false",
    )


def _wait_s(headers: Mapping[str, str]) -> float | None:
    for name, parts_of_a_second in (("retry-after-ms", 1000), ("retry-after", 1)):
        try:
            return max(0.0, float(headers[name]) / parts_of_a_second)
        except (KeyError, ValueError):  # absent, or a date
            continue
    return None


def _said(body: Any) -> str:
    """The message inside an error body, which servers lay out differently."""
    while isinstance(body, dict) and (inner := body.get("error") or body.get("message")):
        body = inner
    return body if isinstance(body, str) else json.dumps(body) if body else ""
