from __future__ import annotations

import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from model_servers import SCHEMA, Answer, OpenAIServer, ask, openai_error, openai_reply

from kgwb.errors import (
    Cancelled,
    ModelError,
    ModelRefusedError,
    ModelTimeoutError,
    ModelUnreachableError,
    UnknownModelError,
)
from kgwb.llm import ChatReply, ChatRequest, Message, OpenAIModel

HTML = Answer("<html><title>Welcome</title></html>", headers={"Content-Type": "text/html"})


def tiny(server: OpenAIServer) -> OpenAIModel:
    return OpenAIModel("tiny", base_url=server.url)


def complete(model: OpenAIModel, request: ChatRequest | None = None) -> ChatReply:
    return model.complete(request or ask(), None, threading.Event())


def test_a_request_carries_the_schema_in_strict_form(openai_server: OpenAIServer) -> None:
    reply = complete(tiny(openai_server))

    (body,) = openai_server.chats
    assert body == {
        "model": "tiny",
        "messages": [
            {"role": "system", "content": "Answer in JSON."},
            {"role": "user", "content": "Who wrote Faust?"},
        ],
        "max_tokens": 2048,
        "stream": True,
        "stream_options": {"include_usage": True},
        "temperature": 0.0,
        "seed": 7,
        "response_format": {
            "type": "json_schema",
            "json_schema": {
                "name": "chatty_kg_qir",
                "strict": True,
                "schema": {
                    "type": "object",
                    "title": "Reply",
                    "properties": {"answer": {"type": "string"}},
                    "required": ["answer"],
                    "additionalProperties": False,
                },
            },
        },
    }
    assert (reply.text, reply.mode, reply.model) == ('{"answer": "Goethe"}', "schema", "tiny-1")
    assert (reply.prompt_tokens, reply.completion_tokens, reply.tries) == (12, 5, 1)
    assert 0 < reply.seconds < 5


def test_a_schema_that_cannot_be_strict_goes_as_it_is(openai_server: OpenAIServer) -> None:
    free = {"type": "object", "additionalProperties": {"type": "string"}}
    complete(tiny(openai_server), ask(schema=free))
    sent = openai_server.chats[0]["response_format"]["json_schema"]
    assert (sent["strict"], sent["schema"]) == (False, free)


def test_half_an_emoji_is_sent_as_a_question_mark(openai_server: OpenAIServer) -> None:
    complete(tiny(openai_server), ask(messages=(Message("user", "Fun \ud83d"),)))
    assert openai_server.chats[0]["messages"][0]["content"] == "Fun ?"


def test_free_text_asks_for_no_form(openai_server: OpenAIServer) -> None:
    reply = complete(tiny(openai_server), ask(schema=None, seed=None))
    assert not {"response_format", "seed"} & openai_server.chats[0].keys()
    assert reply.mode == "none"


@pytest.mark.parametrize("says_param", [True, False])
@pytest.mark.parametrize(
    ("refuses", "mode", "formats"),
    [
        ({"json_schema"}, "json", ["json_schema", "json_object", "json_object"]),
        (
            {"json_schema", "json_object"},
            "prompt",
            ["json_schema", "json_object", "json_object", None, None],
        ),
    ],
)
def test_the_ladder_is_climbed_once(
    openai_server: OpenAIServer, refuses: set[str], mode: str, formats: list[str | None], says_param: bool
) -> None:
    openai_server.refuses, openai_server.says_param = refuses, says_param
    model = tiny(openai_server)

    first, second = complete(model), complete(model)

    assert [body.get("response_format", {}).get("type") for body in openai_server.chats] == formats
    assert (first.mode, first.tries) == (mode, len(formats) - 1)
    assert (second.mode, second.tries) == (mode, 1)


def test_a_422_that_names_nothing_climbs_the_ladder_too(openai_server: OpenAIServer) -> None:
    openai_server.queue.append(Answer({"detail": "Unprocessable"}, 422))
    assert complete(tiny(openai_server)).mode == "json"


def test_one_refused_schema_does_not_condemn_a_server_that_honours_others(
    openai_server: OpenAIServer,
) -> None:
    model = tiny(openai_server)
    complete(model)
    openai_server.queue.append(openai_error(400, "Invalid schema", param="response_format"))
    assert [complete(model).mode, complete(model).mode] == ["json", "schema"]


def test_a_failed_climb_teaches_nothing(openai_server: OpenAIServer) -> None:
    model = tiny(openai_server)
    openai_server.queue.extend(openai_error(400, "maximum context length is 512 tokens") for _ in range(4))
    with pytest.raises(ModelRefusedError, match="maximum context length"):
        complete(model)
    assert complete(model).mode == "schema"


def test_an_error_about_another_field_climbs_nothing(openai_server: OpenAIServer) -> None:
    openai_server.always = openai_error(400, "too long", param="messages", code="context_length_exceeded")
    with pytest.raises(ModelRefusedError, match="answers 400: too long"):
        complete(tiny(openai_server))
    assert len(openai_server.chats) == 1


@pytest.mark.parametrize("says_param", [True, False])
@pytest.mark.parametrize("field", ["max_tokens", "temperature", "seed", "stream", "stream_options"])
def test_a_refused_field_is_left_out_from_then_on(
    openai_server: OpenAIServer, field: str, says_param: bool
) -> None:
    openai_server.refuses, openai_server.says_param = {field}, says_param
    model = tiny(openai_server)

    replies = [complete(model), complete(model)]

    assert [field in body for body in openai_server.chats] == [True, False, False]
    assert [(reply.mode, reply.tries) for reply in replies] == [("schema", 2), ("schema", 1)]
    assert ("max_completion_tokens" in openai_server.chats[-1]) == (field == "max_tokens")


def test_openai_itself_is_asked_in_its_newer_words(key: str) -> None:
    assert OpenAIModel("gpt-5")._form.tokens_field == "max_completion_tokens"


def test_json_mode_carries_the_schema_where_the_server_takes_it(openai_server: OpenAIServer) -> None:
    openai_server.refuses = {"json_schema"}
    model = tiny(openai_server)
    complete(model)
    assert openai_server.chats[-1]["response_format"] == {"type": "json_object", "schema": SCHEMA}
    openai_server.queue.append(openai_error(400, "Unknown parameter", param="response_format.schema"))
    assert complete(model).mode == "json"
    assert openai_server.chats[-1]["response_format"] == {"type": "json_object"}


def test_a_server_that_refuses_everything_new_is_still_asked(openai_server: OpenAIServer) -> None:
    fields = {"max_tokens", "temperature", "seed", "stream", "stream_options"}
    openai_server.refuses = {"json_schema", "json_object"} | fields
    assert complete(tiny(openai_server)).mode == "prompt"
    assert openai_server.chats[-1].keys() == {"model", "messages", "max_completion_tokens"}


def test_a_server_that_takes_neither_length_field_ends_in_an_error(openai_server: OpenAIServer) -> None:
    openai_server.refuses = {"max_completion_tokens", "max_tokens"}
    with pytest.raises(ModelRefusedError, match="max_completion_tokens"):
        complete(tiny(openai_server))
    assert len(openai_server.chats) == 2


def test_many_threads_share_one_model(openai_server: OpenAIServer) -> None:
    openai_server.refuses = {"json_schema", "temperature"}
    model = tiny(openai_server)
    with ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda _: complete(model), range(24)))
    assert {reply.mode for reply in replies} == {"json"}
    assert complete(model).tries == 1


@pytest.mark.parametrize("header", [{"retry-after-ms": "5"}, {"Retry-After": "0"}, {}])
def test_a_busy_server_is_asked_again(openai_server: OpenAIServer, header: dict[str, str]) -> None:
    openai_server.queue.append(openai_error(429, "slow down", headers=header))
    assert complete(tiny(openai_server)).tries == 2


@pytest.mark.parametrize("status", [408, 409, 429, 500, 503])
def test_a_server_that_keeps_failing_is_given_up(openai_server: OpenAIServer, status: int) -> None:
    openai_server.always = openai_error(status, "sorry")
    with pytest.raises(ModelUnreachableError, match=f"answers {status}: sorry"):
        complete(tiny(openai_server))
    assert len(openai_server.chats) == 3


@pytest.mark.parametrize("header", [{"Retry-After": "3600"}, {"x-should-retry": "false"}])
def test_a_server_that_wants_no_repeat_gets_none(openai_server: OpenAIServer, header: dict[str, str]) -> None:
    openai_server.always = openai_error(429, "quota used up", headers=header)
    with pytest.raises(ModelUnreachableError, match="quota"):
        complete(tiny(openai_server))
    assert len(openai_server.chats) == 1


def test_a_cancel_ends_the_wait_for_a_repeat(openai_server: OpenAIServer) -> None:
    openai_server.always = openai_error(429, "slow down", headers={"Retry-After": "30"})
    cancel = threading.Event()
    threading.Timer(0.1, cancel.set).start()
    started = time.perf_counter()
    with pytest.raises(Cancelled):
        tiny(openai_server).complete(ask(), None, cancel)
    assert time.perf_counter() - started < 5


def test_a_cancelled_call_sends_nothing(openai_server: OpenAIServer) -> None:
    cancel = threading.Event()
    cancel.set()
    with pytest.raises(Cancelled):
        tiny(openai_server).complete(ask(), None, cancel)
    assert not openai_server.seen


def test_a_connection_closed_at_once_is_repeated(openai_server: OpenAIServer) -> None:
    openai_server.queue.append(Answer(hang_up=True))
    assert complete(tiny(openai_server)).tries == 2

    openai_server.always = Answer(hang_up=True)
    with pytest.raises(ModelUnreachableError, match="cannot be reached: Server disconnected"):
        complete(tiny(openai_server))


def test_nobody_at_the_address(free_url: str) -> None:
    with pytest.raises(ModelUnreachableError, match=f"{free_url} cannot be reached") as caught:
        complete(OpenAIModel("tiny", base_url=free_url))
    assert "check that the server runs" in caught.value.hint


def test_a_late_answer_is_a_timeout_and_not_repeated(openai_server: OpenAIServer) -> None:
    openai_server.always = Answer({}, delay_s=10)
    started = time.perf_counter()
    with pytest.raises(ModelTimeoutError, match=r"no reply from .* within 0\.2 s"):
        complete(tiny(openai_server), ask(timeout_s=0.2))
    assert time.perf_counter() - started < 2
    assert len(openai_server.chats) == 1


def test_a_wrong_key_is_refused_with_a_hint(openai_server: OpenAIServer, key: str) -> None:
    openai_server.always = openai_error(401, f"Incorrect API key provided: {key}")
    with pytest.raises(ModelRefusedError, match="answers 401: Incorrect API key provided") as caught:
        complete(tiny(openai_server))
    assert caught.value.hint == "check the environment variable OPENAI_API_KEY"
    assert len(openai_server.chats) == 1


def test_a_server_that_wants_a_key_after_all(openai_server: OpenAIServer) -> None:
    openai_server.always = openai_error(403, "no key")
    with pytest.raises(ModelRefusedError) as caught:
        complete(tiny(openai_server))
    assert caught.value.hint == "set the environment variable OPENAI_API_KEY"


def test_an_unknown_model_names_the_known_ones(openai_server: OpenAIServer) -> None:
    openai_server.model_names = [f"m{number}" for number in range(10)]
    with pytest.raises(ModelRefusedError, match=f"no model named tiny at {openai_server.url}") as caught:
        complete(tiny(openai_server))
    assert caught.value.hint == "it has m0, m1, m2, m3, m4, m5, m6, m7 and 2 more"


def test_an_unknown_model_where_the_list_fails_too(openai_server: OpenAIServer, monkeypatch: Any) -> None:
    openai_server.model_names = []
    monkeypatch.setattr(openai_server, "listing", lambda: Answer("Not Found", 404))
    with pytest.raises(ModelRefusedError, match="no model named tiny") as caught:
        complete(tiny(openai_server))
    assert "/v1" in caught.value.hint


@pytest.mark.parametrize(
    ("answer", "seen"),
    [
        (HTML, "<title>Welcome"),
        (Answer("", headers={"Content-Type": "application/json"}), "an empty page"),
        (Answer({"error": {"message": "upstream is down", "code": 502}}), "upstream is down"),
        (Answer({"error": "overloaded"}), "overloaded"),
        (Answer({"choices": []}), "no choice"),
        (Answer({"choices": None}), "no choice"),
        (Answer({"choices": [{"message": None}]}), "no choice"),
        (Answer({"choices": [{"message": {"content": ""}, "error": {"message": "cut"}}]}), "cut"),
        (Answer(["what"]), "what"),
    ],
)
def test_a_200_without_a_reply_is_an_error(openai_server: OpenAIServer, answer: Answer, seen: str) -> None:
    openai_server.always = answer
    with pytest.raises(ModelUnreachableError, match=f"other than a model's reply: .*{seen}"):
        complete(tiny(openai_server))


def test_a_long_page_is_shown_in_part(openai_server: OpenAIServer) -> None:
    openai_server.always = Answer("<p>" + "far too much " * 1000)
    with pytest.raises(ModelUnreachableError) as caught:
        complete(tiny(openai_server))
    assert len(str(caught.value)) < 600


def test_a_refusal_is_a_reply(openai_server: OpenAIServer) -> None:
    openai_server.always = openai_reply(None, refusal="I cannot help with that.")
    reply = complete(tiny(openai_server))
    assert (reply.text, reply.finish_reason) == ("I cannot help with that.", "refusal")


def test_a_cut_reply_says_so(openai_server: OpenAIServer) -> None:
    openai_server.always = openai_reply('{"answer": "Goe', "length")
    reply = complete(tiny(openai_server))
    assert (reply.text, reply.finish_reason) == ('{"answer": "Goe', "length")


@pytest.mark.parametrize(
    ("content", "text"), [(None, ""), ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "ab")]
)
def test_other_shapes_of_content(openai_server: OpenAIServer, content: Any, text: str) -> None:
    openai_server.always = openai_reply(content)
    assert complete(tiny(openai_server)).text == text


@pytest.mark.parametrize("usage", [None, {}, "many", {"prompt_tokens": 2**63, "completion_tokens": -1}])
def test_missing_usage_counts_as_zero(openai_server: OpenAIServer, usage: Any) -> None:
    openai_server.always = Answer({**openai_reply("x").body, "usage": usage})
    reply = complete(tiny(openai_server))
    assert (reply.prompt_tokens, reply.completion_tokens) == (0, 0)


def test_models_are_listed(openai_server: OpenAIServer) -> None:
    assert tiny(openai_server).models() == ("small", "tiny")


def test_a_listing_that_is_none(openai_server: OpenAIServer, monkeypatch: Any) -> None:
    monkeypatch.setattr(openai_server, "listing", lambda: HTML)
    with pytest.raises(ModelUnreachableError):
        tiny(openai_server).models()


ECHOES = {
    "401": lambda key: openai_error(401, f"Incorrect key {key}"),
    "400": lambda key: openai_error(400, f"bad header Authorization: Bearer {key}", param="x"),
    "500": lambda key: Answer(f"<pre>api_key={key}</pre>", 500),
    "200": lambda key: Answer({"error": f"no quota for {key}"}),
    "a key of somebody else": lambda key: openai_error(401, "use sk-live-abcdefTHEKEY instead"),
}


@pytest.mark.parametrize("echo", ECHOES)
def test_a_key_never_shows(openai_server: OpenAIServer, key: str, echo: str) -> None:
    openai_server.always = ECHOES[echo](key)
    model = tiny(openai_server)
    with pytest.raises(ModelError) as caught:
        complete(model)

    assert openai_server.seen[0].headers["authorization"] == f"Bearer {key}"
    shown = "".join(traceback.format_exception(caught.value))
    for text in (
        shown,
        str(caught.value),
        repr(caught.value),
        repr(model),
        str(model),
        model.name,
        repr(vars(model)),
    ):
        assert "THEKEY" not in text
    assert caught.value.__context__ is None


def test_a_key_with_odd_characters_is_refused_unseen(
    openai_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-THEKEY–with–dashes")
    with pytest.raises(UnknownModelError) as caught:
        tiny(openai_server)
    assert "THEKEY" not in str(caught.value)


def test_a_key_with_a_line_end_works(openai_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-local\n")
    complete(tiny(openai_server))
    assert openai_server.seen[0].headers["authorization"] == "Bearer sk-local"
