"""Servers that behave like those of known providers, and troubles that any server may have, as data."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from model_servers import Answer, ModelServer, OllamaServer, OpenAIServer
from rdflib import RDFS
from small import qir

Body = dict[str, Any]
PEOPLE = ("Ann", "Ben", "Cyd", "Dot")
TURTLE = "".join(
    f'<x:{name}> <{RDFS.label}> "{name} Lee" ; <http://e/birthPlace> <x:{name}ton> . '
    f'<x:{name}ton> <{RDFS.label}> "{name}ton" .\n'
    for name in PEOPLE
)
"""A graph on which each question costs Chatty-KG one request, for its triples."""


def ask_for(name: str) -> str:
    return f"Where was {name} Lee born?"


def reply_to(body: Body) -> str:
    """The triples of the question that is asked last in the messages of a request."""
    texts = " ".join(message["content"] for message in body["messages"])
    [*_, person] = re.findall(r"Where was (\w+ Lee) born", texts)
    return json.dumps(qir(f"{person} | birth place | ?place"))


@dataclass(frozen=True)
class Refusal:
    """A part of a request that a provider refuses."""

    part: str
    """One of ``parts_of``."""
    status: int
    body: Any


def parts_of(body: Body) -> set[str]:
    """Return what a request uses: its fields and options, and how it wants the form enforced."""
    sent = {**body, **body.get("options", {})}
    parts = {
        name
        for name, value in sent.items()
        if value is not None and value != [] and value is not False
    }
    wanted = body.get("response_format") or {}
    if wanted:
        parts.add(wanted["type"])
        if "schema" in wanted:
            parts.add("schema in JSON mode")
    if isinstance(body.get("format"), dict):
        parts.add("json_schema")
    return parts


def openai_error(message: str, param: str | None, code: str | None = None) -> Body:
    error = {"message": message, "type": "invalid_request_error", "param": param, "code": code}
    return {"error": error}


def gemini_error(name: str, place: str = "") -> list[Body]:
    message = f'Invalid JSON payload received. Unknown name "{name}"{place}: Cannot find field.'
    return [{"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}}]


def fastapi_error(*names: str) -> Body:
    details = [
        {"type": "extra_forbidden", "loc": ["body", name], "msg": "Extra inputs are not permitted"}
        for name in names
    ]
    return {"detail": details}


@dataclass(frozen=True)
class Provider:
    """How the server of a provider behaves."""

    name: str
    api: type[ModelServer] = OpenAIServer
    refusals: tuple[Refusal, ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    usage: Mapping[str, Any] | None = field(default_factory=dict)
    """What is added to the usage of a reply; None if the server reports no usage."""
    wrap: str = "{}"
    """How it wraps the JSON that it was asked for, by a schema or not."""
    first: str | None = None
    """The text of its first reply, which is not what was asked for."""
    finish: str = "stop"

    @contextmanager
    def started(self, trouble: Trouble | None = None) -> Iterator[ProviderServer]:
        """Start a server of this provider, with a trouble or without."""
        server = make_server(self, trouble)
        try:
            yield server
        finally:
            server.close()


OPENAI_LIMITS = {
    "x-ratelimit-limit-requests": "500",
    "x-ratelimit-remaining-requests": "499",
    "x-ratelimit-limit-tokens": "30000",
    "x-ratelimit-reset-tokens": "12ms",
}
PROVIDERS = (
    Provider("openai", headers=OPENAI_LIMITS, usage={"completion_tokens_details": {"reasoning_tokens": 0}}),
    Provider(
        "openai, reasoning",
        headers=OPENAI_LIMITS,
        refusals=(
            Refusal("max_tokens", 400, openai_error(
                "Unsupported parameter: 'max_tokens' is not supported with this model. "
                "Use 'max_completion_tokens' instead.", "max_tokens", "unsupported_parameter")),
            Refusal("temperature", 400, openai_error(
                "Unsupported value: 'temperature' does not support 0 with this model. "
                "Only the default (1) value is supported.", "temperature", "unsupported_value")),
        ),
        usage={"completion_tokens_details": {"reasoning_tokens": 64}},
    ),
    Provider(
        "anthropic's compatible one",
        # It ignores seed and response_format, and its model tells a story around the JSON
        headers={"anthropic-ratelimit-requests-limit": "50", "request-id": "req_1"},
        refusals=(
            Refusal("temperature", 400, openai_error("`temperature` is deprecated for this model.", None)),
        ),
        wrap="Here is the JSON:\n```json\n{}\n```",
        first="I would rather explain it in words.",
    ),
    Provider(
        "gemini's compatible one",
        refusals=(
            Refusal("seed", 400, gemini_error("seed")),
            Refusal("stream_options", 400, gemini_error("stream_options")),
            Refusal("json_schema", 400, gemini_error(
                "additionalProperties", " at 'generation_config.response_schema'")),
            Refusal("schema in JSON mode", 400, gemini_error("schema", " at 'response_format'")),
        ),
    ),
    Provider(
        "a strict server (FastAPI)",
        refusals=(
            Refusal("seed", 422, fastapi_error("seed")),
            Refusal("stream", 422, fastapi_error("stream")),
            Refusal("json_schema", 422, {"detail": "response_format json_schema is not implemented"}),
            Refusal("schema in JSON mode", 422, {"detail": "response_format.schema: unexpected"}),
            Refusal("json_object", 422, {"detail": "response_format is not implemented"}),
        ),
        wrap="{} I hope this helps!",
    ),
    Provider("ollama", OllamaServer),
    Provider(
        "ollama, an old one",
        OllamaServer,
        refusals=(
            Refusal("json_schema", 400, {"error": "json: cannot unmarshal object into Go struct field "
                                                  "ChatRequest.format of type string"}),
        ),
        usage=None,
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Trouble:
    """What a server does to some of its requests."""

    name: str
    spoil: Callable[[ProviderServer, Answer], Answer]
    """Returns what is sent in place of a good answer."""
    every: int = 2
    """Of so many requests the first is spoiled; 0 for all requests after ``first``."""
    first: int = 0
    """How many requests are answered well before."""
    is_repeated: bool = True
    """Whether the same request is sent again, so that the answer is none the worse for it."""


def _limited(**headers: str) -> Callable[[ProviderServer, Answer], Answer]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda server, good: server.error(429, "Rate limit reached", headers=named)


def _failing(status: int) -> Callable[[ProviderServer, Answer], Answer]:
    return lambda server, good: server.error(status, "Overloaded")


def _cut(server: ProviderServer, good: Answer) -> Answer:
    """Return an answer of which half is sent, before the connection ends."""
    streamed = server.as_stream(good, {}) if server.is_streaming else good
    return replace(streamed, sent=len(streamed.payload) // 2, end="reset")


def _by_length(server: ProviderServer, good: Answer) -> Answer:
    """Return a reply that the limit of tokens has cut."""
    return server.reply(server.text[: len(server.text) // 2], "length")


TROUBLES = (
    Trouble("429 with seconds", _limited(retry_after="0")),
    Trouble("429 alone", _limited()),
    Trouble("529", _failing(529)),
    Trouble("cut in the middle", _cut, every=3),
    Trouble("ended by length", _by_length, every=3, is_repeated=False),
)  # fmt: skip


OUTAGES = (
    Trouble("503", _failing(503), every=0, first=2),
    Trouble("429 for an hour", _limited(retry_after="3600"), every=0, first=2),
    Trouble("no connection", lambda server, good: Answer(hang_up=True, end="reset"), every=0, first=2),
    Trouble("the key is refused", lambda server, good: server.error(401, "Incorrect key"), every=0, first=2),
    Trouble("no credit", lambda server, good: server.error(402, "Your credit is used up"), every=0, first=2),
)  # fmt: skip
"""Troubles that do not end: a benchmark stops, and continues when they are over."""


class ProviderServer(ModelServer):
    """A server of a provider; it is also of the class of its protocol. See ``make_server``."""

    provider: Provider
    trouble: Trouble | None
    text = ""
    """The text of the latest good reply."""
    is_streaming = False
    """Whether the latest request wants a stream."""
    answered = 0
    """How many requests were not refused."""
    well_answered: Counter[str]
    """How often each list of messages got its whole reply."""


def make_server(provider: Provider, trouble: Trouble | None = None) -> ProviderServer:
    """Start a server that behaves like a provider's, and has a trouble."""
    api = provider.api

    class Server(api, ProviderServer):  # type: ignore[valid-type,misc]
        def chat(self, body: Body) -> Answer:
            parts = parts_of(body)
            for refusal in provider.refusals:
                if refusal.part in parts:
                    return Answer(refusal.body, refusal.status, provider.headers)
            self.is_streaming = bool(body.get("stream", api.streams_unasked))
            self.text = provider.wrap.replace("{}", reply_to(body))
            if provider.first is not None and not self.answered:
                self.text = provider.first
            self.answered += 1
            good = self._good_answer()
            if self._is_in_trouble():
                assert self.trouble is not None
                return self.trouble.spoil(self, good)
            self.well_answered[json.dumps(body["messages"])] += 1
            return good

        def _is_in_trouble(self) -> bool:
            """Return whether the present request is to be spoiled."""
            if self.trouble is None or self.answered <= self.trouble.first:
                return False
            if not self.trouble.every:
                return True
            return self.answered % self.trouble.every == 1

        def _good_answer(self) -> Answer:
            """Return the reply with the headers and the usage of the provider."""
            answer: Answer = api.reply(self.text, provider.finish)
            body = dict(answer.body)
            if provider.usage is None:
                for name in ("usage", "prompt_eval_count", "eval_count"):
                    body.pop(name, None)
            elif "usage" in body:
                body["usage"] = {**body["usage"], **provider.usage}
            return replace(answer, body=body, headers=provider.headers)

    server = Server()
    server.provider = provider
    server.trouble = trouble
    server.well_answered = Counter()
    return server
