"""Models of OpenAI and of every server that speaks its chat protocol (vLLM, llama.cpp, LM Studio, ...)."""

from __future__ import annotations

import json
import os
import re
import threading
import weakref
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from kgwb.errors import UnknownModelError
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
from kgwb.llm.strict import strict_schema

if TYPE_CHECKING:
    from collections.abc import Callable

    import openai

OPENAI_URL = "https://api.openai.com/v1"
_NO_KEY = "no-key-needed"


class OpenAIModel(RemoteModel):
    """A model behind the chat protocol of OpenAI.

    A reply's form is enforced by JSON schema; where the server refuses that by JSON mode, else by the prompt
    alone. The form of request that the server took is remembered, so refusals are met once.
    """

    def __init__(self, model: str, *, base_url: str | None = None) -> None:
        """Opens no connection. The address is ``base_url``, or OPENAI_BASE_URL, or OpenAI's own.

        The key is taken from OPENAI_API_KEY; only OpenAI itself always needs one. Raises UnknownModelError if
        that key is missing, or the address is none.
        """
        import openai

        url = checked_url(base_url or os.environ.get("OPENAI_BASE_URL", "").strip() or OPENAI_URL)
        super().__init__("openai", model, url, OPENAI_URL)
        if not _is_openai(url):  # others know this older field, and may pass over the newer in silence
            self._form = Form(tokens_field="max_tokens")
        # Repeats are ours: the SDK would repeat timeouts too, and its waits cannot be cancelled
        client = client_of(lambda: openai.DefaultHttpxClient(headers=HEADERS, event_hooks=hooks(url)))
        self._client = openai.OpenAI(api_key=_key(url), base_url=url, max_retries=0, http_client=client)
        weakref.finalize(self, self._client.close)  # else its open sockets wait for the garbage collector

    def _send(self, form: Form, request: ChatRequest, left: threading.Event) -> ChatReply | Failure:
        create = self._client.chat.completions.with_streaming_response.create
        body = _body(self.model, request, form)
        page = _Page(Arriving(request, self._keys()))
        failure = self._ask(lambda timeout: create(**body, timeout=timeout), page, left, request.timeout_s)
        return failure or page.reply()

    def _list(self, timeout_s: float) -> tuple[str, ...] | Failure:
        listing = self._client.models.with_streaming_response.list
        page = _Page(Arriving(ChatRequest("", ()), ()))
        failure = self._ask(lambda timeout: listing(timeout=timeout), page, threading.Event(), timeout_s)
        answer = failure or page.data()
        if isinstance(answer, Failure):
            return answer
        entries = answer.get("data")
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            return Failure("nonsense", json.dumps(answer))
        return tuple(sorted(str(entry["id"]) for entry in entries if "id" in entry))

    def _ask(
        self, call: Callable[[openai.Timeout], Any], page: _Page, left: threading.Event, timeout_s: float
    ) -> Failure | None:
        """Fill the page; a failure after the whole reply has come is none."""
        import openai

        failure = None
        try:
            with call(openai.Timeout(timeout_s, connect=min(timeout_s, CONNECT_S))) as response:
                failure = page.take(response.iter_bytes(), left)
        except openai.APIConnectionError as error:
            failure = transport_failure(error.__cause__ or error)
        except openai.APIStatusError as error:
            said = _said(error.body) or error.message
            failure = status_failure(error.status_code, said, error.response.headers, str(error.param or ""))
        except transport_errors() as error:
            failure = page.arriving.cut(transport_failure(error))
        except ValueError as error:
            failure = Failure("nonsense", str(error))
        return None if page.done else failure

    def _key(self) -> str:
        return self._client.api_key

    def _hints(self) -> tuple[str, str]:
        set_or_check = "set" if self._key() == _NO_KEY else "check"
        return (
            f"{set_or_check} the environment variable OPENAI_API_KEY",
            "check the model's name, and the address: it usually ends in /v1",
        )


def _key(url: str) -> str:
    key = os.environ.get("OPENAI_API_KEY", "").strip()
    if not key and _is_openai(url):
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


def _is_openai(url: str) -> bool:
    return f".{urlsplit(url).hostname}".endswith(".openai.com")


def _body(model: str, request: ChatRequest, form: Form) -> dict[str, Any]:
    body = {
        "model": model,
        "messages": chat_messages(request),
        form.tokens_field: request.max_output_tokens,
        "temperature": request.temperature,
        "seed": request.seed,
        "stream": True,
        "stream_options": {"include_usage": True},
        "response_format": _response_format(request, form),
    }
    without = form.without | ({"stream_options"} if "stream" in form.without else set())
    return {name: value for name, value in body.items() if value is not None and name not in without}


def _response_format(request: ChatRequest, form: Form) -> dict[str, Any] | None:
    if request.schema is None or form.mode == "prompt":
        return None
    if form.mode == "json":
        # llama-cpp-python, Together and Fireworks take the schema in this place
        return {"type": "json_object"} | (
            {} if "schema" in form.without else {"schema": dict(request.schema)}
        )
    strict = strict_schema(request.schema)
    name = re.sub(r"[^A-Za-z0-9_-]", "_", request.task)[:64] or "reply"
    schema = dict(request.schema) if strict is None else strict
    named = {"name": name, "schema": schema, "strict": strict is not None}
    return {"type": "json_schema", "json_schema": named}


class _Page:
    """What a server answers: a stream of events or, where it does not stream, one JSON object."""

    def __init__(self, arriving: Arriving) -> None:
        self.arriving = arriving
        self.done = False
        """The stream said that it has ended."""
        self._streamed = False
        self._plain: list[str] = []
        self._answer: dict[str, Any] = {}
        self._chosen = False
        self._finish = ""
        self._refusal = ""

    def take(self, chunks: Iterable[bytes], left: threading.Event) -> Failure | None:
        """Read to the end, or until nobody waits any more; the failure is what the server said inside."""
        kind = ""
        for line in _lines(chunks, left):
            name, colon, value = line.partition(":")
            kind = value.strip() if name == "event" else kind if line.strip() else ""
            if not colon or name not in _EVENT_FIELDS:
                self._plain.append(line)
            elif name in ("data", "error") and not self.done:
                failure = self._event("error" if kind == "error" else name, value)
                if failure:
                    return failure
        return None

    def data(self) -> dict[str, Any] | Failure:
        """The answer that came in one piece."""
        text = "\n".join(self._plain).strip()
        answer = _loads(text)
        if answer is None:
            return Failure("nonsense", text) if text else EMPTY
        if not isinstance(answer, dict) or answer.get("error"):
            return Failure("nonsense", _said(answer))
        return answer

    def reply(self) -> ChatReply | Failure:
        """The reply, or why there is none."""
        if not self._streamed:
            answer = self.data()
            if failure := answer if isinstance(answer, Failure) else self._add(answer):
                return failure
        if not self._chosen:
            return Failure("nonsense", f"no choice with a message in {json.dumps(self._answer)}")
        if self._streamed and not self._finish:  # llama-cpp-python says [DONE] to whom it interrupts
            return BROKEN_OFF
        return ChatReply(
            text=self._refusal or self.arriving.text,
            model=str(self._answer.get("model") or ""),
            prompt_tokens=_count(self._answer, "prompt_tokens"),
            completion_tokens=_count(self._answer, "completion_tokens"),
            first_token_s=self.arriving.first_token_s if self._streamed else None,
            finish_reason="refusal" if self._refusal else self._finish or "stop",
        )

    def _event(self, name: str, text: str) -> Failure | None:
        self.done = text.strip() == "[DONE]"
        if self.done or not text.strip():
            return None
        chunk = _loads(text)
        if not isinstance(chunk, dict) or "error" in (name, chunk.get("object")) or chunk.get("error"):
            return Failure("nonsense", _said(chunk) or text)
        self._streamed = True
        return self._add(chunk)

    def _add(self, answer: dict[str, Any]) -> Failure | None:
        """Take a whole answer, or what a chunk of one adds."""
        self._answer |= {name: value for name, value in answer.items() if value}
        choices = answer.get("choices")
        dicts = [one for one in choices if isinstance(one, dict)] if isinstance(choices, list) else []
        choice = next((one for one in dicts if one.get("index") in (0, None)), None)
        if choice is None:
            return None
        if choice.get("error"):
            return Failure("nonsense", _said(choice["error"]))
        self._finish = str(choice.get("finish_reason") or self._finish)
        message = choice["delta"] if isinstance(choice.get("delta"), dict) else choice.get("message")
        if isinstance(message, dict):
            self._chosen = True
            self._refusal += str(message.get("refusal") or "")
            self.arriving.add(_text(message.get("content")))
        return None


_EVENT_FIELDS = frozenset({"", "data", "error", "event", "id", "retry"})
"""Before the colon of a line of an event stream; nothing stands there in a comment, llama.cpp has "error"."""


def _lines(chunks: Iterable[bytes], left: threading.Event) -> Iterator[str]:
    """Lines as they end in line feeds: splitlines would break JSON at other separators inside its texts."""
    rest = bytearray()
    for chunk in chunks:
        if left.is_set():
            return
        rest += chunk
        if b"\n" in chunk:
            *whole, rest = rest.split(b"\n")
            yield from (line.decode() for line in whole)
    yield rest.decode()


def _loads(text: str) -> Any:
    """None for what is no JSON, too."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _count(answer: dict[str, Any], name: str) -> int:
    usage = answer.get("usage")
    return token_count(usage.get(name) if isinstance(usage, dict) else 0)


def _text(content: Any) -> str:
    """Some servers send the text in parts."""
    if isinstance(content, list):
        return "".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    return str(content or "")


def _said(body: Any) -> str:
    """The message inside an error body, which servers lay out differently."""
    while isinstance(body, dict) and (inner := body.get("error") or body.get("message")):
        body = inner
    return body if isinstance(body, str) else json.dumps(body) if body else ""
