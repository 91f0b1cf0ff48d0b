"""The store of calls: nothing is asked twice, by whatever command, in whichever process."""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random

import pytest
from commands import FILMS_QUESTIONS, bench

from kgwb.bench.results import read_results
from kgwb.cli import main
from kgwb.errors import InputError
from kgwb.llm import ChatReply
from kgwb.run.prompts import Prompts
from kgwb.run.steps import Call, call_key
from kgwb.run.store import (
    MAX_UNWRITTEN_CALLS,
    QUICK_CALL_S,
    STORE_FILE,
    CallStore,
    find_store,
    read_calls,
)

Capture = pytest.CaptureFixture[str]
QIR = "chatty_kg/qir"
SELECTION = "chatty_kg/predicate_selection"

SCRIPT = '''
"""A model that answers from the text of the prompt: with mistakes that a prompt cures, and seeded flips.

It writes down each request, as a line of its own in a file.
"""
import hashlib, json, os, threading, time
from kgwb import llm

RULES = llm.model("rules")
FLIPS = float(os.environ.get("SCRIPT_FLIPS", "0"))


def draw(*parts):
    """A number from 0 to 1 that only the parts decide."""
    digest = hashlib.sha256(repr(parts).encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


def SCRIPT(request):
    from kgwb.kg import open_kg

    text = request.messages[-1].content
    system = request.messages[0].content
    content = [os.environ.get("SCRIPT_NAME"), request.task, request.messages, request.seed]
    asked = hashlib.sha256(repr(content).encode()).hexdigest()
    with open(os.environ["SCRIPT_LOG"], "a") as log:
        log.write(json.dumps([os.environ.get("SCRIPT_NAME", "A"), request.task, asked]) + "\\n")
    time.sleep(float(os.environ.get("SCRIPT_DELAY", "0")))
    reply = RULES.complete(request, open_graph(), threading.Event())
    data = json.loads(reply.text)
    if request.task == "chatty_kg/qir":
        is_cured = "Take care." in text or "Take care." in system
        mistake = draw("mistake", text[-80:]) < 0.3 and not is_cured
        with open(os.environ["SCRIPT_LOG"] + ".count", "a") as count:
            count.write(asked + "\\n")
        with open(os.environ["SCRIPT_LOG"] + ".count") as count:
            times = count.read().count(asked)
        if mistake or draw("flip", asked, times) < FLIPS:
            data["triples"] = [{**triple, "predicate": "composer"} for triple in data["triples"]]
    return json.dumps(data)


_graph = []


def open_graph():
    from kgwb.kg import open_kg

    if not _graph:
        _graph.append(open_kg("films"))
    return _graph[0]
'''


class Shop:
    """A folder with the model's script and prompts, in which commands are given."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        Path("script.py").write_text(SCRIPT)
        Path("other.py").write_text(SCRIPT)
        monkeypatch.setenv("SCRIPT_LOG", str(Path("asked.jsonl").absolute()))

    def prompts(self, folder: str, **words: str) -> None:
        """Write a folder of prompts, each with words added."""
        for name, added in words.items():
            path = Path(folder) / "chatty_kg" / f"{name}.md"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{Prompts().text(f'chatty_kg/{name}')}\n{added}\n")

    def asked(self) -> list[str]:
        """What the model was asked, each request as a text."""
        path = Path("asked.jsonl")
        return path.read_text().splitlines() if path.exists() else []

    def bench(self, out: str, *more: str, model: str = "script.py") -> int:
        """Measure, and return how many calls were made."""
        before = len(self.asked())
        given = ["--model", f"scripted:{model}", *more]
        assert bench(*given, out=out, questions=FILMS_QUESTIONS) == 0
        return len(self.asked()) - before

    def retry(self, folder: str, *more: str, model: str = "script.py") -> int:
        """Ask again, and return how many calls were made."""
        before = len(self.asked())
        assert main(["retry", folder, "--model", f"scripted:{model}", *more]) == 0
        return len(self.asked()) - before


@pytest.fixture
def shop(here: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    return Shop(monkeypatch)


@pytest.mark.long
def test_an_iteration_asks_only_what_was_never_asked(
    shop: Shop, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each number of calls is that of requests that differ, and 0 where nothing changed."""
    monkeypatch.setenv("SCRIPT_NAME", "script.py")
    shop.prompts("v2", qir="Take care.")
    shop.prompts("v3", qir="Take care.", predicate_selection="Choose well.")
    shop.prompts("v4", qir="Take more care.")
    first = shop.bench("r")
    assert first == len(set(shop.asked()))
    assert shop.bench("r") == 0

    def made_and_needed(*command: str, model: str = "script.py") -> tuple[int, int]:
        monkeypatch.setenv("SCRIPT_NAME", model)
        known = set(shop.asked())
        made = shop.retry("r", "--only", "all", *command, model=model)
        return made, len(set(shop.asked()) - known)

    v2, needed = made_and_needed("--prompts", "v2")
    assert 60 <= v2 == needed < first + 60
    assert made_and_needed("--prompts", "v2") == (0, 0)
    v3, needed = made_and_needed("--prompts", "v3")  # v2 with a second prompt: qir is known
    tasks = Counter(json.loads(line)[1] for line in shop.asked()[-v3:])
    assert v3 == needed and set(tasks) == {SELECTION}
    v4, needed = made_and_needed("--each", "prompts=v2,v3,v4")  # of which two are known
    assert v4 == needed
    model, needed = made_and_needed("--prompts", "v3", model="other.py")
    assert model == needed
    monkeypatch.setenv("SCRIPT_NAME", "script.py")
    assert shop.bench("winner", "--prompts", "v2", "--reuse", "r") == 0
    assert shop.bench("r/winner", "--prompts", "v2") == 0
    assert "0 model calls made" in capsys.readouterr().out


def test_an_estimate_counts_what_the_store_has(shop: Shop, capsys: Capture) -> None:
    shop.prompts("v2", qir="Take care.")
    shop.bench("r", "--limit", "9")
    capsys.readouterr()

    for said, is_asked in (("9 to ", True), ("0 model calls", False), ("0 model calls", False)):
        made = shop.retry("r", "--only", "all", "--prompts", "v2")
        assert f"9 questions, {said}" in capsys.readouterr().out
        assert (made >= 9) if is_asked else made == 0
        if not is_asked:
            shutil.rmtree("r/retries")  # the calls are in the store


def test_a_store_that_was_deleted_is_made_again_from_saved_runs(shop: Shop) -> None:
    shop.prompts("v2", qir="Take care.")
    first = shop.bench("r", "--limit", "5", "--save-runs")
    Path("r", STORE_FILE).unlink()
    made = shop.retry("r", "--only", "all", "--prompts", "v2")
    assert 5 <= made <= first
    shutil.rmtree("r/runs")
    Path("r", STORE_FILE).unlink()
    shutil.rmtree("r/retries")
    assert shop.retry("r", "--only", "all", "--prompts", "v2") > made


def test_the_ladder_asks_nothing_that_the_benchmark_asked(shop: Shop) -> None:
    shop.bench("r", "--limit", "8")
    asked = Counter(shop.asked())
    shop.bench("r", "--limit", "8", "--ladder")
    assert not [line for line in asked if Counter(shop.asked())[line] > 1]


def test_repeats_are_asks_of_their_own_and_are_kept(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCRIPT_FLIPS", "0.5")
    command = ("r", "--limit", "6", "--set", "temperature=0.5")
    once = shop.bench(*command)
    more = shop.bench(*command, "--repeats", "3")
    assert more >= 2 * 6 and once >= 6
    assert shop.bench(*command, "--repeats", "3") == 0
    rows = read_results(Path("r"))[1]
    rates = [[scores["f1"] for scores in row["asks"]] for row in rows]
    assert all(len(rate) == 3 for rate in rates)
    assert [rate[0] for rate in rates] == [row["f1"] for row in rows]
    assert any(len(set(rate)) > 1 for rate in rates)


def call_of(number: int, size: int = 100) -> Call:
    """A call of a graph; its result cannot be compressed."""
    request = {"query": str(number)}
    result = bool(number % 2)
    noise = Random(number).randbytes(size).hex()
    key = call_key("ask", {**request, "noise": noise}, 0)
    return Call(key, "ask", "", {**request, "noise": noise}, 0, result, "", 0.0, bool)


def test_a_store_is_bounded_and_drops_its_oldest_calls(tmp_path: Path) -> None:
    path = tmp_path / STORE_FILE
    with CallStore(path, "g", max_bytes=100_000) as store:
        for number in range(200):
            store.make(lambda number=number: call_of(number, 1000))
        assert store.find(call_of(199, 1000).key) and not store.find(call_of(0, 1000).key)
    assert path.stat().st_size <= 150_000


def test_a_graph_finds_no_results_of_another_one_and_a_repeat_none_of_the_first(
    tmp_path: Path,
) -> None:
    path = tmp_path / STORE_FILE
    call = call_of(1)
    with CallStore(path, "one") as store:
        store.make(lambda: call)
        assert store.find_or_make(call.key, "ask", pytest.fail, pytest.fail) == call
    for graph, ask in (("two", 0), ("one", 1)):
        with CallStore(path, graph, ask) as store:
            assert store.find(call.key) is None
    assert find_store(tmp_path / "retries" / "x") == path


def test_quick_calls_are_written_together_and_a_model_call_at_once(tmp_path: Path) -> None:
    path = tmp_path / STORE_FILE
    quick = [call_of(number) for number in range(MAX_UNWRITTEN_CALLS + 2)]
    slow = replace(call_of(100), seconds=QUICK_CALL_S)
    asked = model_call("yes")
    with CallStore(path, "g") as store:

        def is_written(call: Call) -> bool:
            return call.key in {written.key for written in read_calls(path)}

        store.make(lambda: quick[0])
        assert store.find(quick[0].key) and not is_written(quick[0])
        store.find_or_make(asked.key, "model", lambda: asked, lambda: None)
        assert is_written(asked) and is_written(quick[0])
        store.make(lambda: quick[1])
        assert not is_written(quick[1])
        store.make(lambda: slow)
        assert is_written(slow) and is_written(quick[1])
        for call in quick[2:]:
            store.make(partial(replace, call))
        assert all(map(is_written, quick))
        last = call_of(101)
        store.make(lambda: last)
    with CallStore(path, "g") as store:
        assert store.find(last.key)


def test_a_call_is_read_once_and_each_run_has_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = call_of(1)
    with CallStore(tmp_path / STORE_FILE, "g") as store:
        store.make(lambda: call)
    reads = []

    def read(data: bytes) -> Call:
        reads.append(data)
        return replace(call)

    monkeypatch.setattr("kgwb.run.store._unpack", read)
    with CallStore(tmp_path / STORE_FILE, "g") as store, CallStore(store.path, "g") as other:
        for user in (store, other, store):
            found = user.find(call.key)
            assert found == call
            found.step = "of this run"
    assert len(reads) == 1


def model_call(text: str) -> Call:
    request = {"model": "m", "task": "t", "content": {"text": text}}
    key = call_key("model", request, 0)
    return Call(key, "model", "", request, 0, ChatReply(text), "", 0.0, ChatReply)


def test_threads_of_a_process_ask_each_thing_once(tmp_path: Path) -> None:
    path = tmp_path / STORE_FILE
    asked = model_call("a")
    made = []
    polled = threading.Event()

    def make() -> Call:
        made.append(asked)
        assert polled.wait(30)  # until another thread waits for it
        return asked

    def ask(_: int) -> Call:
        with CallStore(path, "g") as store:
            return store.find_or_make(asked.key, "model", make, polled.set)

    with ThreadPoolExecutor(4) as pool:
        calls = list(pool.map(ask, range(8)))
    assert [call.result for call in calls] == [asked.result] * 8
    assert len(made) == 1


def test_a_call_that_fails_can_be_asked_by_the_next_one(tmp_path: Path) -> None:
    path = tmp_path / STORE_FILE
    asked = model_call("a")

    def fail() -> Call:
        raise KeyError("no reply")

    with CallStore(path, "g") as store, CallStore(path, "g") as other:
        store.make(lambda: call_of(1))
        with pytest.raises(KeyError):
            store.find_or_make(asked.key, "model", fail, lambda: None)
        assert other.find_or_make(asked.key, "model", lambda: asked, lambda: None) is asked


def test_the_calls_of_a_store_are_read_in_order_and_nothing_is_written(tmp_path: Path) -> None:
    path = tmp_path / STORE_FILE
    with pytest.raises(InputError):
        list(read_calls(path))
    assert not path.exists()
    calls = [model_call("ü"), call_of(2), call_of(1)]
    with CallStore(path, "g") as store:
        for call in calls:
            store.make(partial(replace, call))
    content = path.read_bytes()
    assert [(call.key, call.result) for call in read_calls(path)] == [
        (call.key, call.result) for call in calls
    ]
    assert (path.read_bytes(), list(tmp_path.iterdir())) == (content, [path])
    path.write_bytes(b"no database" * 1000)
    with pytest.raises(InputError):
        list(read_calls(path))


def test_a_store_that_is_closed_twice_stays_open_for_others(tmp_path: Path) -> None:
    path = tmp_path / STORE_FILE
    with CallStore(path, "g") as store:
        other = CallStore(path, "g")
        other.close()
        other.close()
        call = store.make(partial(replace, call_of(1)))
        assert store.find(call.key) and not store.error


@pytest.mark.parametrize("is_killed", [False, True])
def test_the_call_of_a_forked_process_is_waited_for_unless_it_was_killed(
    tmp_path: Path, is_killed: bool
) -> None:
    path = tmp_path / STORE_FILE
    asked = model_call("a")
    claimed, polled = os.pipe(), os.pipe()
    made = []

    def make_in_child() -> Call:
        os.write(claimed[1], b"x")
        if is_killed:
            os._exit(1)
        os.read(polled[0], 1)  # until the parent waits for it
        return asked

    def make() -> Call:
        made.append(asked)
        return asked

    with CallStore(path, "g") as store:
        child = os.fork()
        if not child:
            os.close(polled[1])
            with CallStore(path, "g") as own:  # which it opens by itself
                own.find_or_make(asked.key, "model", make_in_child, lambda: None)
            os._exit(0)
        os.close(claimed[1])
        os.read(claimed[0], 1)
        call = store.find_or_make(asked.key, "model", make, lambda: os.write(polled[1], b"x"))
        assert (call.result, len(made)) == (asked.result, is_killed)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == is_killed
