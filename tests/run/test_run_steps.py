"""A run can be stepped through, stopped and cancelled, and asks nothing twice."""

import asyncio
import pickle
import threading
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small import (
    CALLS,
    HOMONYMS,
    KEYS,
    SCRIPT,
    films,
    keys,
    look_up,
    made_up,
    sure,
    unsure,
    workbench,
)

from kgwb.errors import ModelTimeoutError, SettingError
from kgwb.llm import ChatRequest, Scripted
from kgwb.run import Run, System, agent
from kgwb.run.answers import Answer

GRAPH = films()


# --- loops, steps, breakpoints


@pytest.mark.parametrize(
    ("how", "is_done", "stops", "calls"),
    [
        ({"until": "guess"}, True, ["guess", "guess#2", "guess#3"], [4, 5, 6]),
        ({"before": "guess"}, False, ["guess", "guess#2", "guess#3"], [3, 4, 5]),
        ({}, True, [KEYS[1], KEYS[2], "guess#2"], [2, 3, 5]),  # at breakpoints
    ],
)
def test_a_run_stops_in_every_round_of_a_loop_and_can_be_resumed(
    how: dict[str, Any], is_done: bool, stops: list[str], calls: list[int]
) -> None:
    model = Scripted(SCRIPT)
    run = made_up(model)
    run.breakpoints = set() if how else {"look_up", "guess#2"}
    for stop, call_count in zip(stops, calls, strict=True):
        assert run.go(**how).status == "paused"
        assert (keys(run)[-1], model.call_count()) == (stop, call_count)
        assert run.steps[-1].done == is_done
    assert run.go(**how).status == "done"
    assert (run["guess#2"].parent, run.output("guess#2").guess) == ("deciding", "two")
    assert (keys(run), model.call_count()) == (KEYS, CALLS)


def test_step_and_step_back_move_by_one_step_and_not_before_the_start() -> None:
    model = Scripted(SCRIPT, remote=True)
    run = made_up(model)
    places = []
    while run.step().status != "done":
        places.append((run.position, sum(step.done for step in run.steps)))
    assert places == [(n, n) for n in range(1, len(KEYS) + 1)]
    assert (keys(run), str(run.answer), model.call_count()) == (KEYS, "three", CALLS)
    assert [run.step_back().position for _ in KEYS] == [*reversed(range(len(KEYS)))]
    assert (keys(run.step_back()), run.status, run.position) == ([], "paused", 0)
    assert (keys(run.step()), model.call_count()) == (KEYS[:1], CALLS)


def test_after_an_edit_the_edited_step_is_the_next() -> None:
    run = made_up(Scripted(SCRIPT)).go()
    run.override("look_up[Dune]", "a film 2").step()
    assert keys(run)[-1] == "look_up[Dune]"
    run.go(before="deciding")
    run.override("split", ["Arrival"]).go(before="look_up")
    assert keys(run) == ["split", "look_up[Arrival]"]


def test_a_run_has_a_status_and_refuses_a_second_execution_at_the_same_time() -> None:
    model = Scripted({**SCRIPT, "made_up/guess": [unsure("one"), KeyboardInterrupt(), sure("two")]})
    run = made_up(model)
    seen: list[str] = [run.status]

    def listener(event: str, step: Any) -> None:
        seen.append(run.status)
        with pytest.raises(SettingError, match="already being executed"):
            run.go()

    run.listeners.append(listener)
    run.go(until="split")
    run.listeners.remove(listener)
    assert (seen, run.status, run.answer) == (["new", "running", "running"], "paused", None)
    with pytest.raises(KeyboardInterrupt):
        run.go()
    assert run.status == "cancelled"
    assert (str(run.go().answer), run.status) == ("two", "done")


@pytest.mark.parametrize(
    ("act", "problem", "hint"),
    [
        (
            lambda run: run.go(until="gess"),
            "made_up has no agent 'gess'",
            "split, look_up, deciding, guess",
        ),
        (
            lambda run: run.go(before="gess[Dune]"),
            "made_up has no agent 'gess'",
            "name one of its agents: split",
        ),
        (
            lambda run: run.output("look_up"),
            "look_up has several steps",
            "look_up[Arrival], look_up[Dune]",
        ),
        (lambda run: run.output("guess#9"), "was not reached", "run.go"),
        (lambda run: look_up("Dune", run), "outside of a run", "Workbench.ask"),
    ],
)
def test_unknown_and_ambiguous_steps_are_named(act: Any, problem: str, hint: str) -> None:
    run = made_up(Scripted(SCRIPT)).go()
    with pytest.raises(SettingError, match=problem) as caught:
        act(run)
    assert hint in caught.value.hint


MOVES = {
    "step": Run.step,
    "back": Run.step_back,
    "until a word": lambda run: run.go(until="look_up"),
    "until the second guess": lambda run: run.go(until="guess#2"),
    "before a guess": lambda run: run.go(before="guess"),
    "four steps": lambda run: run.go(until=4),
    "the end": Run.go,
    "the same by hand": lambda run: run.override("look_up[Dune]", "a film 2") if run.steps else run,
    "as it was": lambda run: run.remove_override("look_up[Dune]"),
}


@given(st.lists(st.sampled_from(list(MOVES)), max_size=12))
def test_any_sequence_of_moves_leads_to_the_same_answer_and_repeats_no_call(
    moves: list[str],
) -> None:
    model = Scripted(SCRIPT)
    run = made_up(model, GRAPH)
    for move in moves:
        MOVES[move](run)
        assert (
            run.position == sum(step.done for step in run.steps)
            or "by hand" in move
            or "was" in move
        )
    run.remove_override("look_up[Dune]").go()
    assert (str(run.answer), keys(run), model.call_count()) == ("three", KEYS, CALLS)


# --- cancel


def test_cancel_does_not_wait_for_a_slow_model_and_the_run_can_be_resumed() -> None:
    asked, gone = threading.Event(), threading.Event()
    replies = Scripted(SCRIPT)

    def script(request: ChatRequest) -> Any:
        if request.task == "made_up/guess" and not gone.is_set():
            asked.set()
            gone.wait(60)
            return "of a call left behind, whose line is not taken"
        return replies.complete(request, None, threading.Event())

    run = made_up(Scripted(script, remote=True))
    threading.Thread(target=lambda: asked.wait(30) and run.cancel()).start()
    started = time.monotonic()
    run.go()
    assert time.monotonic() - started < 30
    assert (run.status, run["look_up[Dune]"].done, run["guess"].done) == ("cancelled", True, False)
    gone.set()
    assert (run.go().status, str(run.answer), run.totals.live_model_calls) == ("done", "three", 3)


def test_go_async_does_not_block_the_loop_and_cancelling_its_task_cancels_the_run() -> None:
    replies, ticked = Scripted(SCRIPT), threading.Event()

    def script(request: ChatRequest) -> Any:
        assert ticked.wait(60), "the loop was blocked"
        return replies.complete(request, None, threading.Event())

    async def answer() -> str:
        task = asyncio.create_task(made_up(Scripted(script, remote=True)).go_async())
        for _ in range(4):
            await asyncio.sleep(0.01)
        ticked.set()
        return str((await task).answer)

    async def cancelled() -> str:
        run = made_up(Scripted(SCRIPT, remote=True, delay_s=30))
        task = asyncio.create_task(run.go_async(before="deciding"))
        while run.status != "running":
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        while run.status == "running":
            await asyncio.sleep(0.01)
        return run.status

    assert asyncio.run(answer()) == "three"
    assert asyncio.run(cancelled()) == "cancelled"


def test_cancelling_the_task_cancels_an_execution_that_waits_for_another_to_end() -> None:
    leave = threading.Event()
    model = Scripted(SCRIPT)
    run = made_up(model)
    run.listeners.append(lambda event, step: leave.wait(60) and None)
    first = threading.Thread(target=run.go)
    first.start()

    async def cancelled() -> None:
        while run.status != "running":
            await asyncio.sleep(0.01)
        run.cancel()
        task = asyncio.create_task(run.go_async())
        await asyncio.sleep(0.2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        leave.set()

    asyncio.run(cancelled())  # ends when the thread of its task has ended
    first.join(60)
    assert (run.status, model.call_count()) == ("cancelled", 0)


# --- side by side

WORDS = ["word 1", "word 2"]


def in_turn(request: ChatRequest) -> Any:
    match request.task:
        case "made_up/split":
            return {"words": WORDS}
        case "made_up/look_up":
            return sure(request.variables["word"])
    return sure("done")


def test_parallel_steps_have_the_order_of_the_items_whichever_ends_first() -> None:
    last_asked = threading.Event()

    def racing(request: ChatRequest) -> Any:
        """The first word has its reply after the last one was asked for."""
        word = request.variables.get("word")
        if word == WORDS[0]:
            assert last_asked.wait(60), "the words are looked up one after another"
        if word == WORDS[-1]:
            last_asked.set()
        return in_turn(request)

    run = made_up(Scripted(racing, remote=True)).go()
    sequential = made_up(Scripted(in_turn)).go()
    assert (
        keys(run)
        == keys(sequential)
        == ["split", *(f"look_up[{w}]" for w in WORDS), "deciding", "guess"]
    )
    assert run["deciding"].inputs == sequential["deciding"].inputs
    assert set(run.calls) == set(sequential.calls)


def test_items_with_equal_subjects_are_executed_one_after_another() -> None:
    def count(request: ChatRequest) -> Any:
        time.sleep(0.1)  # a request at the same time would be counted, too
        return sure(f"reply {model.call_count(request.task)}")

    script = {**SCRIPT, "made_up/split": {"words": ["Dune", "Dune"]}, "made_up/look_up": count}
    model = Scripted(script, remote=True)
    run = made_up(model).go()
    assert keys(run)[1:3] == ["look_up[Dune]", "look_up[Dune]#2"]
    assert run["deciding"].inputs["known"] == ("reply 1 2", "reply 2 2")


@pytest.mark.parametrize(
    "remote", [True, False]
)  # a replay goes one by one, and has the same steps
def test_an_error_for_one_item_keeps_the_calls_of_the_others(remote: bool) -> None:
    failing = {"word 2"}

    def script(request: ChatRequest) -> Any:
        if request.task == "made_up/look_up" and request.variables["word"] in failing:
            return ModelTimeoutError("too slow")
        return in_turn(request)

    model = Scripted(script, remote=remote)
    run = made_up(model)
    with pytest.raises(ModelTimeoutError):
        run.go()
    done = [step.key for step in run.steps if step.done]
    assert done == ["split", *(f"look_up[{word}]" for word in WORDS if word not in failing)]
    failing.clear()
    before = model.call_count()
    assert run.go().status == "done"
    assert model.call_count() - before == 2  # the word that failed, and the guess


def test_the_same_call_from_two_threads_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    @agent("same", subject="word")
    def same(word: str, run: Run) -> int:
        return len(run.kg.search("Arrival", 5).hits)

    kg, searches = films(), list[str]()
    search = kg.search

    def slow(text: str, limit: int) -> Any:
        searches.append(text)
        time.sleep(0.1)
        return search(text, limit)

    def answer(question: Any, dialogue: Any, run: Run) -> Answer:
        assert run.map(same, ["a", "b", "c"]) == (1, 1, 1)
        return Answer("list")

    monkeypatch.setattr(kg, "search", slow)
    monkeypatch.setattr(kg, "remote", True)
    both = Run(System("both", answer, (same,)), "Which?", kg=kg, models=None).go()
    assert (searches, keys(both)) == (["Arrival"], ["same[a]", "same[b]", "same[c]"])
    assert sorted(step.origin for step in both.steps) == ["live", "record", "record"]


def test_a_step_can_be_sent_to_another_process_and_knows_its_views_there() -> None:
    bench = workbench(Scripted(HOMONYMS))
    step = bench.ask("Who directed Dune?").steps[0]
    assert pickle.loads(pickle.dumps(step)).views == bench.system.views != {}
