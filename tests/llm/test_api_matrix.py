"""What comes of a chat request, by what the server does, in both protocols: a reply, or a clear error."""

from __future__ import annotations

import re
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import pytest
from model_servers import (
    EVENT_STREAM,
    GOETHE,
    Answer,
    ModelServer,
    OllamaServer,
    OpenAIServer,
    ask,
    complete,
    ndjson,
    openai_events,
    sse,
)
from page import wait_for

from kgwb.errors import (
    Cancelled,
    KeyRefusedError,
    ModelError,
    ModelRefusedError,
    ModelTimeoutError,
    ModelUnreachableError,
)
from kgwb.llm import Message
from kgwb.llm.remote import failure_from_status

Api = type[ModelServer]
"""One of the two protocols: the class of its server."""


@dataclass(frozen=True)
class Case:
    """What the server does, and the reply or error that is expected."""

    name: str
    answers: Callable[[Api], list[Answer]] = lambda api: []
    """The first answers of the server, in order. After them it replies as usual."""
    forever: Callable[[Api], Answer] | None = None
    text: str = GOETHE
    error: type[ModelError] | None = None
    says: str = ""
    hint: str = ""
    chats: int = 1
    expect: dict[str, Any] = field(default_factory=dict)
    """Fields of the reply."""
    first_token: bool = True
    request: dict[str, Any] = field(default_factory=dict)
    server: dict[str, Any] = field(default_factory=dict)
    only: str = ""
    waits: float | None = None
    """Seconds before the repeat."""


def stream(body: str, **how: Any) -> Answer:
    return Answer(body, headers=EVENT_STREAM, **how)


def half(api: Api, **how: Any) -> Answer:
    """The beginning of a reply, as a stream."""
    return stream(api.beginning('{"answer": "Goe'), **how)


def cut(answer: Answer, **how: Any) -> Answer:
    """An answer of which half is sent."""
    return replace(answer, sent=len(answer.payload) // 2, **how)


def busy(**headers: str) -> Callable[[Api], list[Answer]]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda api: [api.error(429, "slow down", headers=named)]


RESET = Answer(hang_up=True, end="reset")
EVENTS = openai_events({"content": GOETHE}, "stop", None)
PASSING_ERRORS: list[Any] = [
    {"error": {"message": "slow down", "code": "502"}},
    {"error": {"message": "slow down", "type": "rate_limit_error"}},
    {"error": {"message": "x", "type": "server_error", "code": "1302"}},
    {"error": "the server is overloaded"},
    [{"error": {"message": "x", "code": 503, "status": "UNAVAILABLE"}}],
    {"object": "error", "message": "engine died", "type": "InternalServerError", "code": 500},
    {"choices": [{"delta": {"content": ""}, "finish_reason": "error"}],
     "error": {"message": "Provider disconnected", "code": 502}},
    {"choices": [{"delta": {"content": ""}, "finish_reason": "error", "error": {"message": "x", "code": 502}}]},
]  # fmt: skip
"""Errors inside a stream after which the request is repeated, in the forms of several servers."""
REFUSING_ERRORS: list[Any] = [
    {"error": {"message": "no", "code": 403}},
    {"error": {"message": "no", "type": "invalid_request_error", "code": "too_long"}},
    {"object": "error", "message": "no", "type": "BadRequestError", "code": 400},
]
ASKED_WAITS = {
    "Rate limit reached for gpt-4o. Please try again in 1.5s. Visit https://platform.openai.com": 1.5,
    "Please try again in 240ms.": 0.24,
    "Please try again in 0m7.2s.": 7.2,
    "Please retry after 7 seconds.": 7.0,
    "Please retry in 37.5s.": 37.5,
    "Try again in a while, you have 3 requests": 0.001,
}
"""Seconds to wait, by the message of the server."""
CASES = [
    # Replies
    Case("schema", expect={"mode": "schema", "prompt_tokens": 12, "completion_tokens": 5, "tries": 1}),
    Case("cut off by length", lambda api: [api.reply('{"an', "length")], text='{"an',
         expect={"finish_reason": "length"}),
    # Streams
    Case("stream passed over", server={"streams": False}, first_token=False, only="ollama",
         expect={"prompt_tokens": 12, "completion_tokens": 5}),
    Case("stream passed over", server={"streams": False}, first_token=False, only="openai", chats=2,
         expect={"prompt_tokens": 12, "completion_tokens": 5}),
    Case("fingerprint", lambda api: [Answer({**api.reply(GOETHE).body, "system_fingerprint": "fp_1"})] * 2,
         server={"streams": False}, first_token=False, only="openai", chats=2, expect={"fingerprint": "fp_1"}),
    Case("stream_options refused by FastAPI", only="openai", chats=2, answers=lambda api: [Answer(
         {"detail": [{"type": "extra_forbidden", "loc": ["body", "stream_options"]}]}, 422)]),
    Case("no usage", lambda api: [api.reply(GOETHE, prompt_eval_count=None, eval_count=None)],
         only="ollama", expect={"prompt_tokens": 0, "completion_tokens": 0}),
    Case("comments, event names and CRLF", lambda api: [stream(": ping\r\n\r\n" + "".join(
         f"event: message\r\nid: 1\r\n{line}\r\n: ping\r\n\r\n"
         for line in sse(*EVENTS, "[DONE]").split("\n\n")))], only="openai"),
    Case("[DONE] in the middle", lambda api: [stream(api.beginning('{"an') + sse("[DONE]"))],
         only="openai", chats=2, first_token=False),
    Case("always broken off", forever=lambda api: cut(api.reply(GOETHE * 9), end="reset"),
         server={"streams": False}, error=ModelUnreachableError, says="was interrupted", chats=3,
         hint="look into the server's log"),
    Case("error inside the stream", lambda api: [
         stream(api.beginning('{"an') + api.said("CUDA out of memory"))], chats=2, expect={"tries": 2}),
    Case("error inside the stream for ever", forever=lambda api: stream(
         api.beginning('{"an') + api.said("CUDA out of memory")), chats=3, error=ModelUnreachableError,
         says="CUDA out of memory", hint="look into the server's log"),
    *(Case(f"error inside the stream: {error}", lambda api, error=error: [
           stream(sse(error)), stream(api.beginning('{"an') + sse(error, "[DONE]"))], only="openai", chats=3)
      for error in PASSING_ERRORS),
    *(Case(f"error inside the stream, a refusal: {error}", lambda api, error=error: [stream(sse(error))],
           only="openai", request={"schema": None}, error=ModelRefusedError, says="no")
      for error in REFUSING_ERRORS),
    Case("the key is refused inside the stream", lambda api: [stream(sse({"error": {
         "message": "no", "code": 401}}))], only="openai", error=KeyRefusedError, says="no", hint="OPENAI_API_KEY"),
    Case("a wait is asked for inside the stream", lambda api: [stream(sse({"error": {
         "message": "Rate limit reached. Please try again in 1m2.5s.", "code": "rate_limit_exceeded"}}))],
         only="openai", error=ModelUnreachableError, says="status 429"),
    *(Case(f"status 429, whose body is {body}", lambda api, body=body: [Answer(body, 429)], chats=2)
      for body in (["busy"], '"busy"', {"error": {"message": "busy"}}, {}, "<p>busy")),
    Case("error inside the stream of llama.cpp", lambda api: [
         stream('error: {"code": 500, "message": "context shift is disabled"}\n\n'),
         api.error(500, "context shift is disabled")], only="openai", chats=3, first_token=False),
    Case("error event inside the stream", lambda api: [
         stream(api.beginning('{"an') + 'event: error\ndata: {"message": "boom"}\n\n'),
         api.error(403, "boom")], only="openai", chats=2, error=ModelRefusedError, says="boom"),
    Case("several choices", lambda api: [stream(sse(*(
        {**event, "choices": [{"index": 1, "delta": {"content": "B"}}, *event["choices"]]}
        for event in EVENTS), "[DONE]"))], only="openai"),
    Case("a stream of no JSON", lambda api: [stream(sse("<p>busy</p>"))], only="openai",
         error=ModelUnreachableError, says="reply: .*<p>busy</p>"),
    *(Case(f"200 without a reply: {seen}", forever=lambda api, body=body: Answer(body), chats=chats,
           error=ModelUnreachableError, says=f"reply: .*{seen}", only=only)
      for body, seen, only, chats in (
          ("", "an empty page", "", 2), ("<title>Hi" + "far too much " * 1000, "<title>Hi", "openai", 2),
          ("<p>Hi" + "far too much " * 1000, "<p>Hi", "ollama", 1), ({"choices": []}, "no choice", "openai", 2),
          ({"choices": [{"message": None}]}, "no choice", "openai", 2), (["what"], "list", "openai", 2))),
    *(Case(f"status 200 with {body}", forever=lambda api, body=body: Answer(body), only="openai",
           error=ModelUnreachableError, says="upstream is down", chats=4)
      for body in ({"error": {"message": "upstream is down", "code": 502}},
                   {"choices": [{"message": {"content": ""}, "error": {"message": "upstream is down"}}]},
                   {"error": "upstream is down"})),
    Case("status 200 with an error", forever=lambda api: Answer({"error": "the runner has stopped"}), only="ollama",
         error=ModelUnreachableError, says="runner has stopped", chats=3, hint="log"),
    # Reasoning
    *(Case(f"{name} alone", lambda api, name=name: [stream(sse(*(
           {"choices": [{"delta": delta}]} for delta in ({name: '{"a'}, {name: '":1}', "content": None})),
           {"choices": [{"delta": {}, "finish_reason": "stop"}]}))], only="openai", text='<think>{"a":1}',
           first_token=False)
      for name in ("reasoning_content", "reasoning", "thinking")),
    Case("reasoning_content alone, not streamed", lambda api: [api.reply(None, reasoning_content="Hm")] * 2,
         server={"streams": False}, only="openai", chats=2, text="<think>Hm", first_token=False),
    Case("thinking alone", lambda api: [stream(ndjson(
         {"message": {"role": "assistant", "content": "", "thinking": "H"}, "done": False},
         {"message": {"role": "assistant", "content": "", "thinking": "m"}, "done": True, "done_reason": "length"}))],
         only="ollama", text="<think>Hm", first_token=False, expect={"finish_reason": "length"}),
    Case("reasoning before the text", lambda api: [stream(sse(
         {"choices": [{"delta": {"reasoning_content": "Hm"}}]}, *EVENTS))], only="openai"),
    Case("content in parts, with thoughts", lambda api: [api.reply([
         {"type": "thinking", "thinking": [{"type": "text", "text": "Hm"}]}, {"type": "text", "text": GOETHE}])],
         only="openai"),
    # Fields
    Case("json_schema unknown, said with 500", lambda api: [api.error(500, "1 validation error: "
         "{'loc': ('body', 'response_format', 'type'), 'msg': \"Input should be 'text' or 'json_object'\"}")],
         only="openai", chats=2, expect={"mode": "json", "tries": 2}),
    # Refusals
    Case("404 model", server={"model_names": [f"m{number}" for number in range(10)]}, error=ModelRefusedError,
         says="has no model named tiny", hint="its models: m0, m1, m2, m3, m4, m5, m6, m7 and 2 more"),
    Case("404 model, no list", server={"model_names": [], "listing": lambda: Answer("Not Found", 404)},
         error=ModelRefusedError, says="no model named tiny", hint="tiny|/v1"),
    Case("429, milliseconds", busy(retry_after_ms="1500", retry_after="2"), chats=2, waits=1.5),
    Case("429, no milliseconds", busy(retry_after_ms="soon", retry_after="2"), chats=2, waits=2),
    *(Case(f"429, {text}", lambda api, text=text: [api.error(429, text)], chats=2, waits=wait)
      for text, wait in ASKED_WAITS.items()),
    Case("429, a date", busy(retry_after="Wed, 21 Oct 2015 07:28:00 GMT"), chats=2, waits=0.0),
    Case("429, a date in years", busy(retry_after="Wed, 21 Oct 2093 07:28:00 GMT"),
         error=ModelUnreachableError, says="429: slow down"),
    Case("429, no seconds", busy(retry_after="soon"), chats=2, waits=0.001),
    Case("500", lambda api: [api.error(500, "out of memory")] * 2, chats=3, expect={"tries": 3}),
    *(Case(f"{status} for ever", forever=lambda api, status=status: api.error(status, "sorry"),
           chats=3, error=ModelUnreachableError, says=f"answers with HTTP status {status}: sorry")
      for status in (408, 409, 429, 503)),
    Case("429, not a number", busy(retry_after="nan"), chats=2, waits=0.001),
    Case("429, an hour", busy(retry_after="3600"), error=ModelUnreachableError, says="429: slow down"),
    Case("an error that is a list", forever=lambda api: Answer(["what"], 400), chats=1,
         request={"schema": None}, error=ModelError, says="what|no attribute"),
    # Connections
    Case("reset before the reply", lambda api: [RESET] * 2, chats=3, expect={"tries": 3}),
    Case("reset in the middle of the body", lambda api: [cut(api.reply(GOETHE), end="reset")],
         server={"streams": False}, only="openai", chats=3, first_token=False),
    Case("reset in the middle of an error", lambda api: [cut(api.error(500, "x" * 99), end="reset")],
         chats=2),
    Case("a reply that takes a while", lambda api: [replace(api.reply(GOETHE), delay_s=0.5)], expect={"tries": 1}),
    Case("a reply after the timeout", forever=lambda api: Answer({}, delay_s=60), request={"timeout_s": 0.3},
         error=ModelTimeoutError, says=r"within 0\.3 s", hint="model_timeout_s"),
    Case("a stream that stalls", forever=lambda api: half(api, end="stall"),
         request={"timeout_s": 0.3}, error=ModelTimeoutError, says=r"within 0\.3 s", hint="model_timeout_s"),
]  # fmt: skip
TABLE = [
    pytest.param(api, case, id=f"{api.kind}: {case.name}")
    for case in CASES
    for api in (OpenAIServer, OllamaServer)
    if case.only in ("", api.kind)
]


class Waits(threading.Event):
    """A cancel event that is never set, and keeps how long was waited for it."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds: list[float] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.seconds.append(timeout or 0.0)
        return False


@pytest.mark.parametrize(("server", "case"), TABLE, indirect=["server"])
def test_matrix(server: ModelServer, case: Case) -> None:
    for name, value in case.server.items():
        setattr(server, name, value)
    server.queue.extend(case.answers(type(server)))
    server.always = case.forever(type(server)) if case.forever else None
    asked = ask(**({"timeout_s": 30.0} | case.request))
    model, waits = server.tiny(), Waits()

    if case.error is not None:
        with pytest.raises(case.error, match=case.says) as caught:
            model.complete(asked, None, waits)
        assert re.search(case.hint or ".", caught.value.hint)
        assert len(str(caught.value)) < 700
    else:
        reply = model.complete(asked, None, waits)
        assert reply.text == case.text
        assert {name: getattr(reply, name) for name in case.expect} == case.expect
        assert (reply.first_token_s is not None) == case.first_token
        assert reply.first_token_s is None or 0 < reply.first_token_s <= reply.seconds
    assert len(server.chats) == case.chats
    assert case.waits in (None, *waits.seconds[:1])


def test_a_date_to_wait_for_is_read_by_the_clock_of_the_server() -> None:
    headers = {
        "retry-after": "Wed, 21 Oct 2015 07:28:30 GMT",
        "date": "Wed, 21 Oct 2015 07:28:00 GMT",
    }
    assert failure_from_status(429, "slow down", headers).retry_after_s == 30.0


ECHOES: dict[str, Callable[[Api, str], Answer]] = {
    "400": lambda api, key: api.error(400, f"bad header Authorization: Bearer {key}", param="x"),
    "500": lambda api, key: Answer(f"<pre>api_key={key}</pre>", 500),
    "200": lambda api, key: Answer({"error": f"no quota for {key}"}),
    "a key of somebody else": lambda api, key: api.error(401, "use sk-live-abcdefTHEKEY instead"),
}


@pytest.mark.parametrize("echo", ECHOES)
def test_a_key_never_shows(server: ModelServer, key: str, echo: str) -> None:
    server.always = ECHOES[echo](type(server), key)
    model = server.tiny()
    with pytest.raises(ModelError) as caught:
        complete(model)
    assert server.seen[0].headers["authorization"] == f"Bearer {key}"
    error = caught.value
    shown = [str(error), repr(error), repr(model), str(model), model.name, repr(vars(model))]
    assert "THEKEY" not in "".join((*traceback.format_exception(error), *shown))
    assert error.__context__ is None


@pytest.mark.parametrize("how", ["refused", "broken off"])
def test_a_server_that_cannot_stream_is_not_asked_to_again(server: ModelServer, how: str) -> None:
    server.queue.append(
        server.error(400, "cannot stream") if how == "refused" else half(type(server))
    )
    model = server.tiny()
    assert [complete(model).text, complete(model).text] == [GOETHE, GOETHE]
    assert [bool(body.get("stream")) for body in server.chats] == [True, False, False]


@pytest.mark.parametrize("how", ["cancel", "timeout"])
def test_a_cancel_or_timeout_closes_the_connection(
    openai_server: OpenAIServer, how: str, monkeypatch: Any
) -> None:
    """The connection is closed in the middle of the reply, while the server still sends."""
    monkeypatch.setattr("kgwb.llm.remote.CONNECT_TIMEOUT_S", 0.2)
    openai_server.always = half(OpenAIServer, end="drip")
    cancel = threading.Event()
    model = openai_server.tiny()
    if how == "cancel":
        threading.Thread(
            target=lambda: (wait_for(lambda: openai_server.chats), cancel.set())
        ).start()
        with pytest.raises(Cancelled):
            model.complete(ask(timeout_s=60.0), None, cancel)
    else:
        with pytest.raises(ModelTimeoutError):
            model.complete(ask(timeout_s=2.0), None, cancel)
    assert openai_server.left.wait(60)
    assert len(openai_server.chats) == 1


@pytest.mark.parametrize(
    ("end", "is_reused"), [("silence", False), ("silence", True), ("stall", False)]
)
def test_a_cancel_closes_a_connection_on_which_nothing_comes(
    server: ModelServer, end: Literal["silence", "stall"], is_reused: bool
) -> None:
    """The server is still thinking, before its first token or after some of them."""
    model, cancel = server.tiny(), threading.Event()
    if is_reused:
        complete(model)
    asked_before = len(server.chats)
    server.always = replace(half(type(server)), end=end)
    waiting = threading.Thread(
        target=lambda: (wait_for(lambda: server.chats[asked_before:]), cancel.set())
    )
    waiting.start()
    with pytest.raises(Cancelled):
        model.complete(ask(timeout_s=60.0), None, cancel)
    waiting.join()
    assert server.left.wait(60)


def test_what_is_sent_and_when(server: ModelServer) -> None:
    """Nothing after a cancel; half an emoji, which has no UTF-8, as "?"; no form for free text."""
    model, cancelled = server.tiny(), threading.Event()
    cancelled.set()
    with pytest.raises(Cancelled):
        model.complete(ask(), None, cancelled)
    assert not server.seen
    emoji = (Message("user", "Fun \ud83d"),)
    assert complete(model, messages=emoji, schema=None, seed=None).mode == "none"
    [body] = server.chats
    assert body["messages"][0]["content"] == "Fun ?"
    assert not body.get("response_format") and not body.get("format")
    assert "seed" not in body | body.get("options", {})
