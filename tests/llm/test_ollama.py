from __future__ import annotations

import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor

import pytest
from model_servers import SCHEMA, Answer, OllamaServer, ask, ollama_reply

from kgwb.errors import (
    Cancelled,
    ModelRefusedError,
    ModelTimeoutError,
    ModelUnreachableError,
    UnknownModelError,
)
from kgwb.llm import ChatReply, ChatRequest, Message, OllamaModel


def tiny(server: OllamaServer) -> OllamaModel:
    return OllamaModel("tiny", base_url=server.url)


def complete(model: OllamaModel, request: ChatRequest | None = None) -> ChatReply:
    return model.complete(request or ask(), None, threading.Event())


def test_a_request_carries_schema_and_options(ollama_server: OllamaServer) -> None:
    reply = complete(tiny(ollama_server))

    (body,) = ollama_server.chats
    assert (body["model"], body["stream"], body["format"]) == ("tiny", True, SCHEMA)
    assert body["options"] == {"temperature": 0.0, "seed": 7, "num_predict": 2048, "num_ctx": 4096}
    assert [message["content"] for message in body["messages"]] == ["Answer in JSON.", "Who wrote Faust?"]
    assert (reply.text, reply.mode, reply.model) == ('{"answer": "Goethe"}', "schema", "tiny")
    assert (reply.prompt_tokens, reply.completion_tokens, reply.tries) == (12, 5, 1)
    assert reply.finish_reason == "stop"


def test_half_an_emoji_is_sent_as_a_question_mark(ollama_server: OllamaServer) -> None:
    complete(tiny(ollama_server), ask(messages=(Message("user", "Fun \ud83d"),)))
    assert ollama_server.chats[0]["messages"][0]["content"] == "Fun ?"


def test_free_text_asks_for_no_form(ollama_server: OllamaServer) -> None:
    model = tiny(ollama_server)
    assert complete(model, ask(schema=None, seed=None)).mode == "none"
    assert not ollama_server.chats[0].get("format")
    assert "seed" not in ollama_server.chats[0]["options"]
    assert complete(model).mode == "schema"


def test_the_context_grows_with_the_prompt_and_stays(ollama_server: OllamaServer) -> None:
    model = tiny(ollama_server)
    long = ask(messages=(Message("user", "word " * 6000),))
    for request in (ask(), long, ask()):
        complete(model, request)
    assert [body["options"]["num_ctx"] for body in ollama_server.chats] == [4096, 16384, 16384]


@pytest.mark.parametrize("status", [400, 422, 500])
@pytest.mark.parametrize(
    ("refuses", "mode", "formats"),
    [
        ({"schema"}, "json", [SCHEMA, "json", "json"]),
        ({"schema", "json"}, "prompt", [SCHEMA, "json", None, None]),
    ],
)
def test_the_ladder_is_climbed_once(
    ollama_server: OllamaServer, refuses: set[str], mode: str, formats: list[object], status: int
) -> None:
    ollama_server.refuses, ollama_server.refusal_status = refuses, status
    model = tiny(ollama_server)

    first, second = complete(model), complete(model)

    assert [body.get("format") for body in ollama_server.chats] == formats
    assert (first.mode, first.tries) == (mode, len(formats) - 1)
    assert (second.mode, second.tries) == (mode, 1)


def test_one_refused_schema_does_not_condemn_the_others(ollama_server: OllamaServer) -> None:
    model = tiny(ollama_server)
    complete(model)
    ollama_server.queue.append(Answer({"error": "invalid JSON schema in format"}, 500))
    assert [complete(model).mode, complete(model).mode] == ["json", "schema"]


def test_many_threads_share_one_model(ollama_server: OllamaServer) -> None:
    model = tiny(ollama_server)
    with ThreadPoolExecutor(4) as pool:
        assert {reply.mode for reply in pool.map(lambda _: complete(model), range(8))} == {"schema"}


def test_a_busy_server_is_asked_again(ollama_server: OllamaServer) -> None:
    ollama_server.queue.append(Answer({"error": "server busy, please try again"}, 503))
    assert complete(tiny(ollama_server)).tries == 2


def test_a_server_that_keeps_failing_is_given_up(ollama_server: OllamaServer) -> None:
    ollama_server.always = Answer({"error": "llama runner process has terminated"}, 500)
    with pytest.raises(ModelUnreachableError, match="answers 500: llama runner process"):
        complete(tiny(ollama_server))
    assert len(ollama_server.chats) == 3


def test_a_connection_closed_at_once_is_repeated(ollama_server: OllamaServer) -> None:
    ollama_server.queue.append(Answer(hang_up=True))
    assert complete(tiny(ollama_server)).tries == 2


def test_nobody_at_the_address(free_url: str) -> None:
    with pytest.raises(ModelUnreachableError, match=f"{free_url} cannot be reached"):
        complete(OllamaModel("tiny", base_url=free_url))


def test_a_late_answer_is_a_timeout_and_not_repeated(ollama_server: OllamaServer) -> None:
    ollama_server.always = Answer({}, delay_s=10)
    started = time.perf_counter()
    with pytest.raises(ModelTimeoutError, match=r"no reply from .* within 0\.2 s"):
        complete(tiny(ollama_server), ask(timeout_s=0.2))
    assert time.perf_counter() - started < 2
    assert len(ollama_server.chats) == 1


def test_a_cancelled_call_sends_nothing(ollama_server: OllamaServer) -> None:
    cancel = threading.Event()
    cancel.set()
    with pytest.raises(Cancelled):
        tiny(ollama_server).complete(ask(), None, cancel)
    assert not ollama_server.seen


@pytest.mark.parametrize(
    ("names", "hint"), [(["a:1b", "b:2b"], "it has a:1b, b:2b"), ([], "ollama pull tiny")]
)
def test_an_unknown_model_names_the_known_ones(
    ollama_server: OllamaServer, names: list[str], hint: str
) -> None:
    ollama_server.model_names = names
    with pytest.raises(ModelRefusedError, match="no model named tiny at") as caught:
        complete(tiny(ollama_server))
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    ("answer", "seen"),
    [
        (Answer("<html>Welcome</html>"), "<html>Welcome"),
        (Answer(""), "an empty page"),
        (Answer({"error": "model is still loading"}), "model is still loading"),
    ],
)
def test_a_200_without_a_reply_is_an_error(ollama_server: OllamaServer, answer: Answer, seen: str) -> None:
    ollama_server.always = answer
    with pytest.raises(ModelUnreachableError, match=f"other than a model's reply: .*{seen}"):
        complete(tiny(ollama_server))


def test_a_cut_reply_says_so(ollama_server: OllamaServer) -> None:
    ollama_server.always = ollama_reply('{"ans', done_reason="length")
    assert complete(tiny(ollama_server)).finish_reason == "length"


def test_missing_counts_are_zero(ollama_server: OllamaServer) -> None:
    ollama_server.always = ollama_reply("{}", prompt_eval_count=None, eval_count=None)
    reply = complete(tiny(ollama_server))
    assert (reply.prompt_tokens, reply.completion_tokens) == (0, 0)


def test_a_key_never_shows(ollama_server: OllamaServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_API_KEY", "0123THEKEY")
    ollama_server.always = Answer({"error": "0123THEKEY is not known"}, 401)
    model = tiny(ollama_server)
    with pytest.raises(ModelRefusedError, match="answers 401") as caught:
        complete(model)
    assert "THEKEY" not in "".join(traceback.format_exception(caught.value)) + repr(model)
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("", "ollama:tiny"),
        ("127.0.0.1:11434", "ollama:tiny"),
        ("0.0.0.0", "ollama:tiny"),
        (":9000", "ollama:tiny@http://127.0.0.1:9000"),
        ("gpu.example", "ollama:tiny@http://gpu.example:11434"),
        ("[::1]", "ollama:tiny@http://[::1]:11434"),
        ("gpu.example/ollama", "ollama:tiny@http://gpu.example:11434/ollama"),
        ("https://gpu.example/", "ollama:tiny@https://gpu.example"),
    ],
)
def test_the_address_comes_from_the_environment(
    monkeypatch: pytest.MonkeyPatch, host: str, name: str
) -> None:
    monkeypatch.setenv("OLLAMA_HOST", host)
    assert OllamaModel("tiny").name == name


def test_an_address_that_is_none() -> None:
    with pytest.raises(UnknownModelError, match="not the address of a server"):
        OllamaModel("tiny", base_url="http://gpu.example:port")
