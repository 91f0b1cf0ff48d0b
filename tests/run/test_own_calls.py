"""Calls that agents make by themselves: shown and edited, or noticed if they go past the run."""

from __future__ import annotations

import http.client
import random
import sys
import threading
import types
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from hostile.servers import serving
from page import wait_for
from small import films, run_agent, system_of

import kgwb
from kgwb.build import (
    Answer,
    ChatRequest,
    Check,
    Message,
    Reply,
    Run,
    Scripted,
    Settings,
    System,
    agent,
    ask_model,
)
from kgwb.errors import NotRecordedError, PromptError, SettingError
from kgwb.run.steps import call_key
from kgwb.ui.debugger import Debugger
from kgwb.ui.session import session_of


@agent(kind="model")
def greet(name: str, run: Run) -> str:
    """Greet somebody."""
    _, reply = run.chat(ChatRequest("greet", (Message("user", f"Greet {name}."),)))
    return reply.text


@agent(kind="model")
def greet_twice(name: str, run: Run) -> str:
    """Send the same request twice: the second is another call."""
    request = ChatRequest("greet", (Message("user", f"Greet {name}."),))
    _, first = run.chat(request)
    _, second = run.chat(request)
    return first.text + second.text


def test_a_request_that_is_sent_again_is_another_call() -> None:
    run = run_agent(greet_twice, Scripted({"greet": ["hello", "again"]}))
    keys = [call_key("model", call.request, call.repeat) for call in run.calls.values()]
    assert [*run.calls] == keys
    assert [call.repeat for call in run.calls.values()] == [0, 1]
    assert run.output("greet_twice") == "helloagain"


def test_a_call_outside_of_all_agents_is_recorded_and_belongs_to_no_step() -> None:
    system = System(
        "direct",
        lambda question, _, run: Answer("list", text=greet.spec.function("Ann", run)),
        [greet],
    )
    run = Run(system, "?", kg=films(), models=Scripted(reply_to)).go()
    assert (run.steps, run.totals.model_calls) == ([], 0)
    [call] = run.calls.values()
    assert (run.own_calls, call.step, call.result.text) == ((call.key,), "", "reply to Greet Ann.")
    assert run.go().own_calls == (call.key,)


@agent
def shout(text: str) -> str:
    """The text in capitals."""
    return text.upper()


def answer(question: Any, dialogue: Any, run: Run) -> Answer:
    return Answer("list", text=shout(greet(question.text, run)), reason="it only greets")


GREETER = System("greeter", answer, [greet, shout])


def reply_to(request: ChatRequest) -> str:
    return f"reply to {request.messages[-1].content}"


def greeting() -> tuple[Run, Scripted]:
    model = Scripted(reply_to)
    return Run(GREETER, "Bob", kg=films(), models=model).go(), model


# --- messages of an agent's own


@pytest.mark.parametrize(("own", "expected"), [({}, 7.0), ({"timeout_s": 3.0}, 3.0)])
def test_a_request_has_the_time_limit_of_the_settings_or_its_own(own: Any, expected: float) -> None:
    @agent(kind="model")
    def hail(text: str, run: Run) -> str:
        return run.chat(ChatRequest("hail", (Message("user", text),), **own))[1].text

    model = Scripted(reply_to)
    run_agent(hail, model, settings=Settings(model_timeout_s=7.0))
    assert [request.timeout_s for request in model.requests] == [expected]


def test_the_messages_are_edited_and_only_what_follows_is_made(tmp_path: Path) -> None:
    run, model = greeting()
    run.edit_messages("greet", [Message("user", "Say goodbye.")]).go()
    assert run.output("shout") == "REPLY TO SAY GOODBYE."
    assert model.call_count() == 2
    loaded = kgwb.load_run(run.save(tmp_path / "run.jsonl"), system=GREETER)
    assert loaded.answer == run.answer
    assert run.fork().go().totals.live_model_calls == 0
    run.edit_messages("greet", None).go()
    assert run.output("greet") == "reply to Greet Bob."
    assert model.call_count() == 2


def test_an_edit_is_in_the_file_that_is_written_call_by_call(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    run = Run(GREETER, "Bob", kg=films(), models=Scripted(reply_to), path=path).go()
    run.edit_messages("greet", "[system]\nBe short.\n\n[user]\nHello\n").go()
    loaded = kgwb.load_run(path, system=GREETER)
    assert loaded.output("greet") == "reply to Hello"
    assert loaded.edited_messages["greet", 0][0] == Message("system", "Be short.")
    run.edit_messages("greet", None).override("shout", "HI").remove_override("shout")
    loaded = kgwb.load_run(path, system=GREETER)
    assert (loaded.edited_messages, loaded.overrides) == ({}, {})
    assert loaded.output("shout") == "REPLY TO GREET BOB."


@pytest.mark.parametrize("text", ["Hello", "Hello\n[user]\nHi", ""])
def test_a_text_without_roles_is_refused(text: str) -> None:
    run, _ = greeting()
    with pytest.raises(PromptError, match="role"):
        run.edit_messages("greet", text)


def test_the_messages_are_edited_in_the_debugger() -> None:
    run, _ = greeting()
    debugger = Debugger(session_of(run), step_key="greet")
    debugger.selected_section = "prompt"
    assert "Greet Bob." in str(debugger.render_panel())
    debugger.do_try({"form": {"template": "[user]\nSay goodbye.\n"}})
    wait_for(lambda: run.status == "paused" and run.output("greet").endswith("goodbye."))
    assert run.output("greet") == "reply to Say goodbye."


def test_a_reply_is_put_in_in_the_debugger_and_taken_back() -> None:
    run, _ = greeting()
    before = run.output("greet")
    debugger = Debugger(session_of(run), step_key="greet")
    debugger.selected_section = "attempts"
    assert 'data-do="take_back"' not in str(debugger.render_panel())
    debugger.do_reply({"form": {"reply": "Hi from a person", "number": "0"}})
    wait_for(lambda: run.status == "paused" and "person" in run.output("greet"))
    assert 'data-do="take_back"' in str(debugger.render_panel())
    assert run.totals.live_model_calls == 0
    debugger.do_take_back({"arg": "0"})
    wait_for(lambda: run.status == "paused" and run.output("greet") == before)


@agent(kind="model")
def count_films(text: str, run: Run) -> int:
    """How many films there are, checked."""
    odd = Check("it is even", lambda reply: "" if reply.number % 2 == 0 else "odd")
    return ask_model("count", {"text": text}, Counted, run, checks=[odd]).number


class Counted(Reply):
    number: int


def test_a_reply_that_is_put_in_passes_the_same_checks(tmp_path: Path) -> None:
    (tmp_path / "count.md").write_text("[user]\nHow many? {{text}}\n")
    model = Scripted(lambda request: '{"number": 4}')
    run = run_agent(count_films, model, prompts=tmp_path)
    assert run.fork().edit_reply("count_films", '{"number": 6}').go().output("count_films") == 6
    wrong = run.fork().edit_reply("count_films", '{"number": 5}').go()
    assert [attempt.accepted for attempt in wrong["count_films"].attempts] == [False, True]
    assert wrong.totals.live_model_calls == 1
    with pytest.raises(SettingError):
        run.edit_reply("count_films", "{}", 7)


# --- requests past the run


@pytest.fixture
def server() -> Iterator[str]:
    """A server on loopback that replies "ok" to everything."""
    with serving(lambda seen: (200, {}, "ok")) as made:
        yield made.url


def test_requests_past_the_run_are_noticed_and_counted(server: str) -> None:
    @agent
    def ask_alone(text: str, run: Run) -> str:
        for function in (httpx.get, urllib.request.urlopen):
            thread = threading.Thread(target=function, args=(server,))
            thread.start()
            thread.join()
        connection = http.client.HTTPConnection(urlsplit(server).netloc)
        connection.request("GET", "/")
        return str(connection.getresponse().read())

    @agent
    def ask_recorded(text: str, run: Run) -> str:
        return run.call("test.get", {"url": server}, lambda: httpx.get(server).text, str)

    run = run_agent(ask_alone)
    assert run.past_calls == {"127.0.0.1": 3}
    [note] = run["ask_alone"].notes
    assert "3 requests to 127.0.0.1" in note
    run = run_agent(ask_recorded)
    assert (run.past_calls, run["ask_recorded"].notes) == ({}, [])


# --- what differs the second time


@agent(kind="model")
def guess(text: str, run: Run) -> str:
    """Ask something else each time."""
    content = f"Guess {random.random()}"
    return run.chat(ChatRequest("guess", (Message("user", content),)))[1].text


CHANCE = system_of(guess, "chance")


def guessed(run: Run) -> str:
    """What the agent asked."""
    return str(run.calls[run["guess"].calls[0]].request["content"]["messages"][0][1])


def test_a_step_that_asks_something_else_the_second_time_says_so_with_both() -> None:
    run = Run(CHANCE, "Who?", kg=films(), models=Scripted(reply_to)).go()
    first = guessed(run)
    run.go()
    [note] = run["guess"].notes
    assert first in note and guessed(run) in note


def test_a_request_that_is_made_again_after_an_error_is_noted_once() -> None:
    asked = iter([1, 2, 2])
    errors = iter([None, ValueError("busy"), None])

    @agent
    def look(text: str, run: Run) -> str:
        def find() -> str:
            error = next(errors)
            if error is not None:
                raise error
            return "found"

        try:
            return run.call("look", {"number": next(asked)}, find)
        except ValueError:
            return run.call("look", {"number": next(asked)}, find)

    run = run_agent(look, Scripted(reply_to)).go()
    [note] = run["look"].notes
    assert "asked something else the second time" in note


def test_a_saved_run_that_asks_something_else_says_so_with_both(tmp_path: Path) -> None:
    run = Run(CHANCE, "Who?", kg=films(), models=Scripted(reply_to)).go()
    path = run.save(tmp_path / "run.jsonl")
    with pytest.raises(NotRecordedError, match="guess asked something else") as error:
        kgwb.load_run(path, system=CHANCE)
    assert guessed(run) in error.value.message
    assert error.value.message.count("Guess 0.") == 2


@pytest.mark.parametrize("is_generator", [True, False])
def test_a_step_that_returns_a_generator_says_that_its_values_are_not_kept(
    is_generator: bool,
) -> None:
    @agent
    def words(text: str, run: Run) -> Any:
        return (word for word in text.split()) if is_generator else text.split()

    notes = run_agent(words)["words"].notes
    assert ["generator" in note for note in notes] == [True] * is_generator


def test_a_library_that_another_thread_is_importing_keeps_no_run_from_starting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "httpx2", types.ModuleType("httpx2"))
    run, _ = greeting()
    assert run.status == "done"
