"""A run can be stepped, edited, resumed and replayed, and asks nothing twice."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small import (
    CALLS,
    DIRECTED,
    KEYS,
    SCRIPT,
    TEXTS,
    MadeUp,
    chatty,
    films,
    iri,
    look_up,
    made_up,
    predicates,
    qir,
    sure,
    unsure,
    vertex,
    workbench,
)

import kgwb
from kgwb.errors import (
    GraphTimeoutError,
    InvalidReplyError,
    ModelTimeoutError,
    NotRecordedError,
    OverrideError,
    PromptError,
    RunFileError,
    SettingError,
)
from kgwb.flow import Candidate, Link
from kgwb.llm import ChatRequest, Scripted
from kgwb.prompts import Prompts
from kgwb.record import RunFile
from kgwb.run import Run, agent, listening, spec_of

GRAPH = films()
QIR_PROMPT = Prompts().text("chatty_kg/qir")


def keys(run: Run) -> list[str]:
    return [step.key for step in run.steps]


def asked(model: Scripted) -> Counter[str]:
    return Counter(request.task.rpartition("/")[2] for request in model.requests)


# --- edits: a prompt


def test_editing_the_qir_prompt_asks_the_qir_agent_again_and_nobody_else_if_it_says_the_same() -> None:
    model = Scripted(DIRECTED)
    run = chatty("Who directed Arrival?", model).go()
    assert asked(model) == {"qir": 1, "predicate_selection": 1}
    run.edit_prompt("chatty_kg/qir", QIR_PROMPT + "\nThink twice.").go()
    assert asked(model) == {"qir": 2, "predicate_selection": 1}
    assert [step.key for step in run.steps if step.origin == "live"] == ["qir"]


def test_what_the_new_result_changes_is_asked_again() -> None:
    script = {
        "chatty_kg/qir": [DIRECTED["chatty_kg/qir"], qir("Arrival | is based on | ?story")],
        "chatty_kg/predicate_selection": [predicates(["director"]), predicates(["based on"])],
    }
    model = Scripted(script)
    run = chatty("Who directed Arrival?", model).go()
    run.edit_prompt("chatty_kg/qir", QIR_PROMPT + "\nThink twice.").go()
    assert asked(model) == {"qir": 2, "predicate_selection": 2}
    assert run["entity_linking[Arrival]"].origin == "record"  # the entity is the same
    assert str(run.answer) == "Story of Your Life"


def test_a_fork_with_other_prompts_asks_only_for_what_they_change() -> None:
    model = Scripted(DIRECTED)
    run = chatty("Who directed Arrival?", model).go()
    fork = run.fork(prompts=run.prompts.with_text("chatty_kg/qir", QIR_PROMPT + "\nThink twice.")).go()
    assert asked(model) == {"qir": 2, "predicate_selection": 1}
    assert fork.answer == run.answer
    assert run.go().totals.live_model_calls == 0


def test_a_prompt_that_does_not_parse_is_refused_and_changes_nothing() -> None:
    run = made_up(Scripted(SCRIPT)).go()
    with pytest.raises(PromptError):
        run.edit_prompt("made_up/guess", "no header")
    assert run.go().totals.live_model_calls == 0


# --- edits: a value put in by hand

HOMONYMS = {
    "chatty_kg/qir": qir("Dune | directed by | ?person"),
    "chatty_kg/vertex_selection": vertex(1, "Dune"),
    "chatty_kg/predicate_selection": DIRECTED["chatty_kg/predicate_selection"],
}


def test_replacing_a_vertex_repeats_nothing_before_it_and_runs_what_depends_on_it() -> None:
    model = Scripted(HOMONYMS)
    run = chatty("Who directed Dune?", model).go()
    link = run.output("vertex_selection[Dune]")
    other = next(candidate for candidate in link.candidates if candidate != link.vertex)
    before = asked(model)
    run.replace("vertex_selection[Dune]", replace(link, vertex=other)).go()
    assert asked(model) - before == {}  # the predicate is the same, so even that reply is reused
    assert {run["qir"].origin, run["entity_retriever[Dune]"].origin} == {"record"}
    assert run["vertex_selection[Dune]"].origin == "by hand"
    assert run["relation_linking[⟨Dune, directed by, ?person⟩]"].origin == "live"
    assert run.answer is not None
    assert len(run.answer.values) == 1
    assert run.answer.values[0].support == ((other.iri, iri("director"), run.answer.values[0].term),)


def test_a_value_by_hand_can_be_json_data_and_be_taken_out_again() -> None:
    run = made_up(Scripted(SCRIPT)).go()
    run.replace("split", ["Sicario"]).replace("look_up[Sicario]", "a thriller")
    with pytest.raises(Exception, match="3 answers for task 'made_up/guess', and this is call 4"):
        run.go()
    assert keys(run) == ["split", "look_up[Sicario]", "deciding", "guess"]
    assert run.restore("split").restore("split").go().answer
    assert (keys(run), run.totals.live_model_calls) == (KEYS, 0)


@pytest.mark.parametrize(
    ("value", "problem"),
    [(7, "valid tuple"), (["a", 1], "valid string"), ([], "split: no word of"), (None, "valid tuple")],
)
def test_a_value_of_the_wrong_form_or_that_fails_the_checks_is_refused(value: Any, problem: str) -> None:
    run = made_up(Scripted(SCRIPT)).go()
    with pytest.raises(OverrideError, match=problem) as caught:
        run.replace("split", value)
    assert caught.value.hint
    assert run.overrides == {}


def test_a_record_with_a_wrong_part_is_refused() -> None:
    run = chatty("Who directed Arrival?", Scripted(DIRECTED)).go()
    wrong: Any = Link("Arrival", "not a candidate")  # type: ignore[arg-type]
    with pytest.raises(OverrideError, match=r"vertex_selection\[Arrival\]"):
        run.replace("vertex_selection", wrong)


def test_a_value_put_in_before_its_step_is_checked_when_it_is_reached() -> None:
    run = chatty("Who directed Arrival?", Scripted(DIRECTED))
    run.replace("vertex_selection[Arrival]", Link("Sicario", Candidate(iri("sicario"), "Sicario")))
    with pytest.raises(OverrideError, match="the link is for 'Sicario'"):
        run.go()
    assert run.status == "failed"
    assert run["qir"].done
    assert run.restore("vertex_selection[Arrival]").go().answer


def test_the_supervisor_replaced_leaves_its_agents_out() -> None:
    model = Scripted(SCRIPT)
    run = made_up(model).replace("deciding", "by hand").go()
    assert keys(run) == KEYS[:4]
    assert (str(run.answer), asked(model)["guess"]) == ("by hand", 0)


# --- replay


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("the network was used")

    monkeypatch.setattr(socket.socket, "connect", refuse)


@pytest.mark.usefixtures("no_network")
def test_a_saved_run_replays_without_model_and_graph(tmp_path: Path) -> None:
    run = chatty("Who directed Dune?", Scripted(HOMONYMS)).go()
    again = kgwb.load_run(run.save(tmp_path / "run.jsonl"))
    assert again.graph is None
    assert again.answer == run.answer
    assert [(s.key, s.output, s.calls, s.attempts) for s in again.steps] == [
        (s.key, s.output, s.calls, s.attempts) for s in run.steps
    ]
    assert again.totals.live_model_calls == 0
    assert {difference.status for difference in run.diff(again)} == {"same"}


@pytest.mark.usefixtures("no_network")
def test_a_replay_keeps_values_by_hand_and_the_prompts_as_they_were(tmp_path: Path) -> None:
    run = made_up(Scripted(SCRIPT)).replace("look_up[Dune]", "a book")
    with pytest.raises(RuntimeError):  # the file is written when the system has a bug, too
        Scripted({"a": RuntimeError()}).complete(ChatRequest("a", ()), None, threading.Event())
    run.go()
    again = Run.load(run.save(tmp_path / "run.jsonl"), MadeUp()).go()
    assert again.output("look_up[Dune]") == "a book"
    assert again["look_up[Dune]"].origin == "by hand"
    assert dict(again.prompts.texts) == TEXTS


def test_a_replay_that_leaves_the_record_says_so(tmp_path: Path) -> None:
    path = made_up(Scripted(SCRIPT)).go().save(tmp_path / "run.jsonl")
    again = Run.load(path, MadeUp()).go()
    again.edit_prompt("made_up/guess", TEXTS["made_up/guess"] + "!")
    with pytest.raises(NotRecordedError, match="guess needs the reply of scripted to made_up/") as caught:
        again.go()
    assert "undo the edit" in caught.value.hint
    with pytest.raises(NotRecordedError, match=r"look_up\[Sicario\] needs a search"):
        again.replace("split", ["Sicario"]).fork(models=Scripted(SCRIPT)).go()


def test_a_fork_of_a_replay_is_a_replay(tmp_path: Path) -> None:
    run = made_up(Scripted(SCRIPT)).go()
    again = Run.load(run.save(tmp_path / "run.jsonl"), MadeUp()).go()
    fork = again.fork(path=tmp_path / "fork.jsonl").go()
    assert fork.answer == run.answer
    assert Run.load(tmp_path / "fork.jsonl", MadeUp()).go().answer == run.answer


def test_an_edited_prompt_is_saved_before_it_was_used(tmp_path: Path) -> None:
    run = made_up(Scripted(SCRIPT)).go()
    run.edit_prompt("made_up/guess", TEXTS["made_up/guess"] + "!")
    loaded = Run.load(run.save(tmp_path / "run.jsonl"), MadeUp())
    assert loaded.prompts.text("made_up/guess").endswith("!")


# --- killed

KILLED = """
import os, signal, sys, time
sys.path.insert(0, {tests!r})
from small import SCRIPT, made_up
from kgwb.llm import Scripted

def counted(request):
    with open({counter!r}, "a") as file:
        file.write(request.task + "\\n")
    count = len(open({counter!r}).read().split())
    if count == {last}:
        print("asking", flush=True)
        time.sleep(60)
    return model._next_line(SCRIPT, request.task)

model = Scripted(counted)
made_up(model, path={path!r}).go()
"""


def killed_while_asking(tmp_path: Path, last: int) -> tuple[Path, Path]:
    """A run file of a process that was killed while it waited for model call ``last``, and what it asked."""
    path, counter = tmp_path / "run.jsonl", tmp_path / "asked"
    names = {"tests": str(Path(__file__).parent), "counter": str(counter), "path": str(path), "last": last}
    environment = {**os.environ, "KGWB_EMBEDDINGS": "lexical"}
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED.format(**names)], stdout=subprocess.PIPE, text=True, env=environment
    )
    assert process.stdout is not None
    with process.stdout:
        assert process.stdout.readline() == "asking\n"
        process.send_signal(signal.SIGKILL)
        process.wait()
    return path, counter


@pytest.mark.parametrize("last", [2, 5])
@pytest.mark.parametrize("torn", [b"", b'{"call": {"key": "ab', '{"prompt":{"text":"ü'.encode()[:-1]])
def test_a_killed_run_resumes_and_asks_nothing_twice(tmp_path: Path, last: int, torn: bytes) -> None:
    path, counter = killed_while_asking(tmp_path, last)
    with path.open("ab") as file:
        file.write(torn)
    first = counter.read_text().split()
    told = {task: count - (task == first[-1]) for task, count in Counter(first).items()}
    rest = {**SCRIPT, "made_up/guess": SCRIPT["made_up/guess"][told.get("made_up/guess", 0) :]}
    model = Scripted(rest)
    resumed = Run.load(path, MadeUp(), kg=films(), models=model, resume=True).go()
    assert (keys(resumed), str(resumed.answer)) == (KEYS, "three")
    assert len(first) + model.calls() == CALLS + 1  # the one it was killed in has to be asked again
    assert model.requests[0].task == first[-1]
    assert Run.load(path, MadeUp()).go().answer == resumed.answer  # and the file is whole


def test_a_killed_run_can_be_looked_at(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    chatty("Who directed Arrival?", Scripted(DIRECTED), path=path).go(until="qir")
    run = kgwb.load_run(path)
    assert (run.status, run["qir"].done) == ("failed", True)
    assert isinstance(run.error, NotRecordedError)


# --- loops, steps, breakpoints


def test_each_round_of_a_loop_is_a_step_and_a_new_question_to_the_model() -> None:
    model = Scripted(SCRIPT)
    run = made_up(model).go()
    assert (keys(run), model.calls()) == (KEYS, CALLS)
    assert [run.output(key).guess for key in ("guess", "guess#2", "guess#3")] == ["one", "two", "three"]
    assert run["guess#2"].parent == "deciding"


def test_until_stops_after_each_round_and_goes_on() -> None:
    model = Scripted(SCRIPT)
    run = made_up(model)
    stops = [keys(run.go(until="guess"))[-1] for _ in range(3)]
    assert stops == ["guess", "guess#2", "guess#3"]
    assert run.status == "paused"
    assert (run.go(until="guess").status, model.calls()) == ("done", CALLS)


def test_until_one_round_and_replace_it() -> None:
    model = Scripted(SCRIPT)
    run = made_up(model).go(until="guess#2")
    run.replace("guess#2", sure("mine")).go()
    assert (str(run.answer), keys(run), model.calls()) == ("mine", KEYS[:-1], CALLS - 1)


def test_a_failed_round_resumes() -> None:
    model = Scripted({**SCRIPT, "made_up/guess": [unsure("one"), ModelTimeoutError("slow"), sure("two")]})
    run = made_up(model)
    with pytest.raises(ModelTimeoutError):
        run.go()
    assert (run.status, run["guess#2"].done, run["guess#2"].error) == ("failed", False, "slow")
    assert str(run.go().answer) == "two"
    assert model.calls() == CALLS


def test_stepping_through_gives_the_same_answer_and_asks_nothing_twice() -> None:
    straight = made_up(Scripted(SCRIPT)).go()
    model = Scripted(SCRIPT, remote=True)
    run = made_up(model)
    places = []
    while run.step().status != "done":
        places.append((run.position, sum(step.done for step in run.steps)))
    assert places == [(n, n) for n in range(1, len(KEYS) + 1)]
    assert (keys(run), run.answer, model.calls()) == (keys(straight), straight.answer, CALLS)


def test_stepping_through_chatty_kg() -> None:
    straight = chatty("Who directed Dune?", Scripted(HOMONYMS)).go()
    model = Scripted(HOMONYMS)
    run = chatty("Who directed Dune?", model)
    while run.status != "done":
        run.step()
    assert (keys(run), run.answer, model.calls()) == (keys(straight), straight.answer, 3)


def test_back_takes_one_step_back_and_not_further_than_the_start() -> None:
    model = Scripted(SCRIPT)
    run = made_up(model).go(until=3)
    assert (keys(run), run.status) == (KEYS[:3], "paused")
    assert keys(run.back()) == KEYS[:2]
    assert keys(run.back().back().back()) == []
    assert (run.status, run.position) == ("paused", 0)
    assert keys(run.step()) == KEYS[:1]
    assert model.calls() == 3


def test_breakpoints_by_agent_and_by_step() -> None:
    run = made_up(Scripted(SCRIPT))
    run.breakpoints = {"look_up", "guess#2"}
    stops = []
    while run.go().status == "paused":
        stops.append(keys(run)[-1])
    assert stops == ["look_up[Arrival]", "look_up[Dune]", "guess#2"]


def test_before_stops_as_a_step_begins_and_going_on_passes_it() -> None:
    model = Scripted(SCRIPT)
    run = made_up(model).go(before="guess")
    assert (keys(run)[-1], run["guess"].done, model.calls()) == ("guess", False, 3)
    stops = [keys(run.go(before="guess"))[-1] for _ in range(2)]
    assert (stops, run.go(before="guess").status) == (["guess#2", "guess#3"], "done")


def test_after_an_edit_the_edited_step_is_the_next() -> None:
    run = made_up(Scripted(SCRIPT)).go()
    run.replace("look_up[Dune]", "a film 2").step()
    assert keys(run)[-1] == "look_up[Dune]"
    run.go(before="deciding")
    run.replace("split", ["Arrival"]).go(before="look_up")
    assert keys(run) == ["split", "look_up[Arrival]"]


def test_status_tells_where_it_stands() -> None:
    run = made_up(Scripted(SCRIPT))
    seen = [run.status]
    with listening(run, lambda event, step: seen.append(run.status)):
        run.go(until="split")
    assert seen == ["new", "running", "running"]
    assert (run.status, run.answer) == ("paused", None)
    assert run.go().status == "done"


@pytest.mark.parametrize("edit", [{"until": "gess"}, {"before": "gess[Dune]"}])
def test_an_unknown_agent_is_named_with_those_there_are(edit: dict[str, str]) -> None:
    with pytest.raises(SettingError, match="made_up has no agent 'gess'") as caught:
        made_up(Scripted(SCRIPT)).go(**edit)  # type: ignore[arg-type]
    assert caught.value.hint == "its agents are split, look_up, deciding, guess"


def test_an_agent_with_several_steps_is_not_guessed_at() -> None:
    run = made_up(Scripted(SCRIPT)).go()
    with pytest.raises(SettingError, match="look_up has several steps") as caught:
        run.output("look_up")
    assert "look_up[Arrival], look_up[Dune]" in caught.value.hint
    with pytest.raises(SettingError, match="was not reached"):
        run.output("guess#9")


def test_an_agent_works_only_inside_a_run() -> None:
    with pytest.raises(SettingError, match="only inside a run"):
        look_up("Dune", made_up(Scripted(SCRIPT)))


MOVES = {
    "step": Run.step,
    "back": Run.back,
    "until a word": lambda run: run.go(until="look_up"),
    "until the second guess": lambda run: run.go(until="guess#2"),
    "before a guess": lambda run: run.go(before="guess"),
    "four steps": lambda run: run.go(until=4),
    "the end": Run.go,
    "the same by hand": lambda run: run.replace("look_up[Dune]", "a film 2") if run.steps else run,
    "as it was": lambda run: run.restore("look_up[Dune]"),
}


@given(st.lists(st.sampled_from(list(MOVES)), max_size=12))
def test_whatever_way_a_person_goes_through_the_answer_is_the_same_and_nothing_is_asked_twice(
    moves: list[str],
) -> None:
    model = Scripted(SCRIPT)
    run = made_up(model, GRAPH)
    for move in moves:
        MOVES[move](run)
        assert run.position == sum(step.done for step in run.steps) or "by hand" in move or "was" in move
    run.restore("look_up[Dune]").go()
    assert (str(run.answer), keys(run), model.calls()) == ("three", KEYS, CALLS)


# --- cancel


def test_cancel_leaves_a_slow_model_behind_and_the_run_resumes() -> None:
    slow = {"now": False}
    gone = threading.Event()

    def script(request: ChatRequest) -> Any:
        if slow["now"] and request.task == "made_up/guess":
            gone.wait(20)
        return model._next_line(SCRIPT, request.task)

    model = Scripted(script, remote=True)
    run = made_up(model).go(until="guess")
    slow["now"] = True
    timer = threading.Timer(0.2, run.cancel)
    timer.start()
    started = time.monotonic()
    run.go()
    assert time.monotonic() - started < 2
    assert (run.status, run["guess"].done, run["guess#2"].done) == ("cancelled", True, False)
    asked_before = model.calls()
    gone.set()
    slow["now"] = False
    run.go()
    assert run.status == "done"
    assert run.totals.live_model_calls == model.calls() - asked_before


def test_cancel_wakes_a_scripted_model_that_waits() -> None:
    run = made_up(Scripted(SCRIPT, remote=True, delay_s=30))
    threading.Timer(0.1, run.cancel).start()
    started = time.monotonic()
    assert run.go().status == "cancelled"
    assert time.monotonic() - started < 2


def test_a_keyboard_interrupt_is_a_cancel() -> None:
    model = Scripted({**SCRIPT, "made_up/guess": [unsure("one"), KeyboardInterrupt(), sure("two")]})
    run = made_up(model)
    with pytest.raises(KeyboardInterrupt):
        run.go()
    assert run.status == "cancelled"
    assert str(run.go().answer) == "two"


def test_a_run_is_executed_once_at_a_time() -> None:
    run = made_up(Scripted(SCRIPT, remote=True, delay_s=0.3))
    worker = threading.Thread(target=run.go)
    worker.start()
    time.sleep(0.1)
    with pytest.raises(SettingError, match="being executed already"):
        run.go()
    run.cancel()
    worker.join(5)
    assert run.status == "cancelled"


def test_awaiting_keeps_the_loop_free_and_cancelling_the_task_cancels_the_run() -> None:
    async def answer() -> tuple[str, int]:
        ticks = 0
        run = made_up(Scripted(SCRIPT, remote=True, delay_s=0.02))
        task = asyncio.create_task(run.ago())
        while not task.done():
            ticks += 1
            await asyncio.sleep(0.01)
        return str((await task).answer), ticks

    async def cancelled() -> str:
        run = made_up(Scripted(SCRIPT, remote=True, delay_s=30))
        task = asyncio.create_task(run.ago(before="deciding"))
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        while run.status == "running":
            await asyncio.sleep(0.01)
        return run.status

    said, ticks = asyncio.run(answer())
    assert (said, ticks > 3) == ("three", True)
    assert asyncio.run(cancelled()) == "cancelled"


# --- fork, diff, refresh


def test_a_fork_with_another_setting_asks_again_only_where_the_content_changed() -> None:
    model = Scripted({**SCRIPT, "made_up/guess": sure("three")})
    run = made_up(model).go()
    run.fork(settings=run.settings.changed(theta=1, query_num=3)).go()
    assert model.calls() == 4
    run.fork(settings=run.settings.changed(max_output_tokens=99)).go()
    assert model.calls() == 8


def test_a_fork_with_a_model_for_one_agent_asks_that_agent_alone() -> None:
    run = made_up(Scripted(SCRIPT)).go()
    other = Scripted({"made_up/guess": sure("other")}, name="other")
    fork = run.fork(models={**run.models, "guess": other}).go()
    assert (asked(other), fork.totals.live_model_calls) == ({"guess": 1}, 1)
    differences = {difference.key: difference for difference in run.diff(fork)}
    assert [key for key, difference in differences.items() if difference.status == "same"] == KEYS[:3]
    assert differences["guess"].what == ("output", "calls", "replies")
    assert differences["guess#2"].status == "only in first"
    assert fork.diff(run)[-1].status == "only in second"


def test_a_fork_keeps_values_by_hand_and_refuses_what_a_run_has_not() -> None:
    run = made_up(Scripted(SCRIPT)).replace("deciding", "mine")
    assert str(run.fork().go().answer) == "mine"
    with pytest.raises(SettingError, match="a run has no modle"):
        run.fork(modle=None)


def test_a_model_for_an_unknown_agent_is_refused() -> None:
    with pytest.raises(SettingError, match="no agent 'qri'"):
        chatty("Who?", {"": Scripted(DIRECTED), "qri": Scripted({})})  # type: ignore[arg-type]


@pytest.mark.parametrize(("step", "again"), [("guess#2", {"guess": 1}), ("deciding", {"guess": 3})])
def test_refresh_asks_a_step_and_what_it_supervises_again(step: str, again: dict[str, int]) -> None:
    model = Scripted({**SCRIPT, "made_up/guess": [*SCRIPT["made_up/guess"], *SCRIPT["made_up/guess"]]})
    run = made_up(model).go()
    before = asked(model)
    run.refresh(step).go(until="split")  # not there yet: it stays to be refreshed
    run.go()
    assert asked(model) - before == again
    run.go()
    assert asked(model) - before == again


def test_refresh_takes_a_graph_anew() -> None:
    run = chatty("Who directed Arrival?", Scripted(DIRECTED)).go()
    taken = {key: run.calls[key].taken_at for key in run["entity_retriever"].calls}
    time.sleep(0.002)
    run.refresh("entity_retriever").go()
    assert run["entity_retriever"].origin == "live"
    assert all(run.calls[key].taken_at > taken[key] for key in taken)
    with pytest.raises(SettingError, match="was not reached"):
        run.refresh("answer_writer")


# --- side by side

WORDS = [f"word {n}" for n in range(8)]


def racing(request: ChatRequest) -> Any:
    """The later a word, the sooner its reply."""
    match request.task:
        case "made_up/split":
            return {"words": WORDS}
        case "made_up/look_up":
            time.sleep(0.02 * (8 - int(request.variables["word"].split()[1])))
            return sure(request.variables["word"])
    return sure("done")


def test_side_by_side_keys_and_results_follow_the_items_whoever_finishes_first() -> None:
    run = made_up(Scripted(racing, remote=True)).go()
    sequential = made_up(Scripted(racing)).go()
    assert keys(run) == keys(sequential) == ["split", *(f"look_up[{w}]" for w in WORDS), "deciding", "guess"]
    assert run["deciding"].inputs == sequential["deciding"].inputs
    assert run.steps[1].seconds > run.steps[8].seconds
    assert set(run.calls) == set(sequential.calls)


def test_an_error_in_one_branch_keeps_what_the_others_asked() -> None:
    failing = {"word 2"}

    def script(request: ChatRequest) -> Any:
        if request.task == "made_up/look_up" and request.variables["word"] in failing:
            return ModelTimeoutError("too slow")
        return racing(request)

    model = Scripted(script, remote=True)
    run = made_up(model)
    with pytest.raises(ModelTimeoutError):
        run.go()
    done = [step.key for step in run.steps if step.done]
    assert done == ["split", *(f"look_up[{word}]" for word in WORDS if word not in failing)]
    failing.clear()
    before = model.calls()
    assert run.go().status == "done"
    assert model.calls() - before == 2  # the word that failed, and the guess


def test_the_same_call_from_two_threads_is_made_once() -> None:
    @agent("same", subject="word")
    def same(word: str, run: Run) -> int:
        return len(run.kg.search("Arrival", 5).hits)

    made: list[str] = []

    class Slow:
        def __init__(self) -> None:
            self.inner, self.remote = films(), True
            self.identity, self.source, self.vocabulary = "slow", "slow", self.inner.vocabulary

        def search(self, text: str, limit: int) -> Any:
            made.append(text)
            time.sleep(0.1)
            return self.inner.search(text, limit)

    class Both(MadeUp):
        agents = (spec_of(same),)

        def answer(self, question: Any, dialogue: Any, run: Run) -> Any:
            assert run.map(same, ["a", "b", "c"]) == (1, 1, 1)
            return None

    both = Run(Both(), "Which?", kg=Slow(), models=None).go()  # type: ignore[arg-type]
    assert (made, keys(both)) == (["Arrival"], ["same[a]", "same[b]", "same[c]"])
    assert sorted(step.origin for step in both.steps) == ["live", "record", "record"]


# --- failures


def test_a_reply_that_never_becomes_valid_keeps_all_attempts_and_resumes_after_an_edit() -> None:
    bad: list[Any] = ["I cannot say.", '{"guess": 3}', {"guess": "", "sure": True}]
    model = Scripted({**SCRIPT, "made_up/guess": [*bad, sure("good")]})
    run = made_up(model)
    with pytest.raises(InvalidReplyError, match="no valid reply in 3 attempts") as caught:
        run.go()
    assert [attempt.reply for attempt in caught.value.attempts] == [bad[0], bad[1], json.dumps(bad[2])]
    step = run["guess"]
    assert (run.status, step.done, len(step.attempts), step.error) == ("failed", False, 3, run.error.message)  # type: ignore[union-attr]
    assert run["deciding"].error == step.error
    with pytest.raises(InvalidReplyError):
        run.go()
    assert model.calls() == 6  # the bad replies are on the record, too
    run.edit_prompt("made_up/guess", TEXTS["made_up/guess"] + "Reply with JSON.").go()
    assert str(run.answer) == "good"
    assert asked(model) == {"split": 1, "look_up": 2, "guess": 4}


def test_a_failed_run_is_loaded_as_far_as_it_went(tmp_path: Path) -> None:
    run = chatty("Who directed Arrival?", Scripted({"chatty_kg/qir": "no"}))
    with pytest.raises(InvalidReplyError):
        run.go()
    loaded = kgwb.load_run(run.save(tmp_path / "run.jsonl"))
    assert (loaded.status, len(loaded["qir"].attempts)) == ("failed", 3)
    assert isinstance(loaded.error, InvalidReplyError)


def test_a_graph_that_fails_in_the_middle_and_recovers() -> None:
    class Moody:
        def __init__(self, fail_on: int) -> None:
            self.inner, self.fail_on, self.queries = films(), fail_on, 0

        def __getattr__(self, name: str) -> Any:
            return getattr(self.inner, name)

        def select(self, query: str) -> Any:
            self.queries += 1
            if self.queries == self.fail_on:
                raise GraphTimeoutError("the query took longer than 30 s", hint="wait")
            return self.inner.select(query)

    kg: Any = Moody(fail_on=2)
    model = Scripted(DIRECTED)
    run = chatty("Who directed Arrival?", model, kg)
    with pytest.raises(GraphTimeoutError):
        run.go()
    assert run.status == "failed"
    assert [step.key for step in run.steps if step.error][-1].startswith("relation_linking")
    assert str(run.go().answer) == "Denis Villeneuve"
    assert model.calls() == 2


def test_a_bug_in_a_system_is_raised_and_the_steps_are_kept() -> None:
    class Buggy(MadeUp):
        def answer(self, question: Any, dialogue: Any, run: Run) -> Any:
            super().answer(question, dialogue, run)
            raise ZeroDivisionError("one by none")

    run = made_up(Scripted(SCRIPT))
    run.system = Buggy()
    with pytest.raises(ZeroDivisionError):
        run.go()
    assert (run.status, keys(run)) == ("failed", KEYS)
    run.system = MadeUp()
    assert run.go().totals.live_model_calls == 0


# --- run files


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    return made_up(Scripted(SCRIPT)).go().save(tmp_path / "run.jsonl")


def with_lines(path: Path, change: Any) -> Path:
    lines = path.read_text().splitlines()
    path.write_text("\n".join(change(lines)) + "\n")
    return path


@pytest.mark.parametrize(
    ("version", "age"), [(0, "format 0, by an older kgwb"), (99, "format 99, by a newer kgwb")]
)
def test_a_run_file_of_another_version(saved: Path, version: int, age: str) -> None:
    with_lines(saved, lambda lines: [lines[0].replace('"kgwb_run":1', f'"kgwb_run":{version}'), *lines[1:]])
    with pytest.raises(RunFileError, match=age) as caught:
        kgwb.load_run(saved)
    assert caught.value.hint == "open it with the version that wrote it, or ask the question again"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "is empty"),
        (b'{"kgwb_run":1', "is not a kgwb run file"),
        (b"[1, 2]\n", "is not a kgwb run file"),
        (b'{"kgwb_run":true}\n', "is not a kgwb run file"),
        (b"\x89PNG\r\n\x1a\n", "is not a kgwb run file"),
        (b"@prefix : <http://example.org/> .\n", "is not a kgwb run file"),
        (b'{"kgwb_run":1}\n', "is damaged: KeyError"),
    ],
)
def test_a_file_that_is_no_run(tmp_path: Path, content: bytes, problem: str) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(content)
    with pytest.raises(RunFileError, match=problem) as caught:
        kgwb.load_run(path)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda lines: [lines[0], "{broken", *lines[1:]], "line 2, is not JSON"),
        (lambda lines: [lines[0], lines[1].replace("Split", "Spilt"), *lines[2:]], "not have the content"),
        (lambda lines: [lines[0], lines[1].replace('"reply":{"text"', '"reply":{"words"')], "is damaged"),
        (lambda lines: [lines[0], '{"call":{"kind":"dance"}}'], "is damaged"),
        (lambda lines: [lines[0], "[]", "7"], "is damaged"),
        (lambda lines: [lines[0].replace('"theta":3', '"theta":"three"')], "is damaged|theta"),
    ],
)
def test_damage_in_the_middle_is_found(saved: Path, change: Any, problem: str) -> None:
    with_lines(saved, change)
    with pytest.raises((RunFileError, SettingError), match=problem) as caught:
        Run.load(saved, MadeUp())
    assert caught.value.hint


def test_a_finished_run_that_lacks_a_call_says_so(tmp_path: Path) -> None:
    path = chatty("Who directed Arrival?", Scripted(DIRECTED)).go().save(tmp_path / "run.jsonl")
    with_lines(path, lambda lines: [line for line in lines if '"task":"chatty_kg/qir"' not in line])
    with pytest.raises(NotRecordedError, match="qir needs the reply of scripted"):
        kgwb.load_run(path)


def test_no_such_file_and_a_folder(tmp_path: Path) -> None:
    for path in (tmp_path / "none.jsonl", tmp_path):
        with pytest.raises(RunFileError, match="cannot read the run file"):
            kgwb.load_run(path)
    with pytest.raises(RunFileError, match="cannot write the run"):
        made_up(Scripted(SCRIPT)).save(tmp_path)


@pytest.mark.parametrize("keep", [True, False])
def test_a_file_of_another_kind_is_not_overwritten(tmp_path: Path, keep: bool) -> None:
    notes = tmp_path / "notes.md"
    notes.write_text("my notes")
    with pytest.raises(RunFileError, match="is there already and is not a kgwb run file"):
        made_up(Scripted(SCRIPT), path=notes) if keep else made_up(Scripted(SCRIPT)).save(notes)
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["notes.md"]
    assert notes.read_text() == "my notes"


def test_a_full_disk_is_said_clearly_and_nothing_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Scripted(SCRIPT)
    path = tmp_path / "run.jsonl"
    run = made_up(model, path=path).go(until="guess")
    real = Path.open

    def full(self: Path, mode: str = "r", **options: Any) -> Any:
        file = real(self, mode, **options)
        if "a" in mode or "w" in mode:

            def half(text: str) -> None:
                file.buffer.write(text[: len(text) // 2].encode())
                file.buffer.flush()
                raise OSError(errno.ENOSPC, "No space left on device")

            monkeypatch.setattr(file, "write", half)
        return file

    with monkeypatch.context() as disk:
        disk.setattr(Path, "open", full)
        with pytest.raises(RunFileError, match="No space left on device") as caught:
            run.go()
        assert "not lost" in caught.value.hint
        assert (run.status, run["guess"].done) == ("failed", True)
    assert (str(run.go().answer), model.calls()) == ("three", CALLS)
    assert Run.load(path, MadeUp()).go().answer == run.answer


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device to write to")
def test_a_save_that_fails_leaves_the_older_file(saved: Path) -> None:
    before = saved.read_bytes()
    Path(f"{saved}.part").symlink_to("/dev/full")
    with pytest.raises(RunFileError, match="cannot write the run"):
        made_up(Scripted(SCRIPT)).go().save(saved)
    assert saved.read_bytes() == before
    assert [path.name for path in saved.parent.iterdir()] == [saved.name]


def test_a_run_file_is_json_lines_that_any_program_can_read(saved: Path) -> None:
    entries = [json.loads(line) for line in saved.read_text().splitlines()]
    assert [next(iter(entry)) for entry in entries] == [
        "kgwb_run",
        *["call"] * (CALLS + 2),
        *["step"] * len(KEYS),
        "end",
    ]
    assert [entry["step"]["key"] for entry in entries if "step" in entry] == KEYS
    assert entries[-1]["end"]["answer"]["values"][0]["term"] == {"type": "literal", "value": "three"}
    assert RunFile(saved).lines()


def test_text_that_is_no_unicode_survives_the_file(tmp_path: Path) -> None:
    odd = ['{"guess": "a", "sure": true} \ud800', {"guess": "\udfff b", "sure": True}]
    run = made_up(Scripted({**SCRIPT, "made_up/look_up": odd}), path=tmp_path / "run.jsonl").go()
    assert run.output("look_up[Dune]").startswith("\udfff b")
    for path in (tmp_path / "run.jsonl", run.save(tmp_path / "saved.jsonl")):
        assert Run.load(path, MadeUp()).go().answer == run.answer


# --- the workbench


def test_the_dialogue_remembers_finished_turns_only() -> None:
    bench = workbench(
        Scripted(
            {
                "chatty_kg/qir": ["no", "no", "no", DIRECTED["chatty_kg/qir"]],
                **{"chatty_kg/predicate_selection": DIRECTED["chatty_kg/predicate_selection"]},
            }
        )
    )
    with pytest.raises(InvalidReplyError):
        bench.ask("Who directed Arrival?")
    assert (bench.runs[-1].status, bench.dialogue.turns) == ("failed", ())
    bench.ask("Who directed Arrival?")
    assert [turn.answers for turn in bench.dialogue.turns] == [("Denis Villeneuve",)]
    said = bench.dialogue
    bench.forget()
    assert bench.dialogue.turns == ()
    bench.remember(said)
    assert bench.dialogue == said
    assert "chatty_kg" in repr(bench)
