"""Live, recorded and replayed time are three things: replaying a step does not change its live time."""

from collections import defaultdict
from pathlib import Path

import kgwb
from kgwb.llm import Scripted
from kgwb.run import Run
from tests.small import DIRECTED, chatty


def finished() -> Run:
    """A run whose model takes so long that its time cannot be mistaken for that of a replay."""
    run = chatty("Who directed Arrival?", Scripted(DIRECTED)).go()
    for call in run.calls.values():
        if call.kind == "model":
            call.seconds = 0.335
    return run


def test_going_back_and_on_again_keeps_the_live_time_of_each_step() -> None:
    run = chatty("Who directed Arrival?", Scripted(DIRECTED)).go()
    live = {step.key: step.seconds for step in run.steps if step.calls}
    assert all(step.recorded_seconds is None for step in run.steps)
    assert run.totals.recorded_seconds is None
    total = run.totals.seconds
    assert "from the record" not in run.summary()
    run.step_back(2).go()
    assert "from the record" in run.summary()
    for key, seconds in live.items():
        assert run[key].recorded_seconds == run[key].live_seconds == seconds
        assert run[key].seconds != seconds
    assert run.totals.recorded_seconds == total
    assert run.fork().go()["qir"].recorded_seconds == live["qir"]


def test_stepping_gives_a_supervisor_the_time_of_all_that_it_supervises() -> None:
    run = chatty("Who directed Arrival?", Scripted(DIRECTED))
    while run.step().status == "paused":
        pass
    inside: dict[str, float] = defaultdict(float)
    for step in run.steps:
        if step.parent:
            inside[step.parent] += step.live_seconds
    for key, seconds in inside.items():
        assert run[key].live_seconds >= seconds
    busiest = max(inside, key=lambda key: inside[key])
    assert run[busiest].live_seconds > run[busiest].seconds


def test_a_run_from_a_file_has_the_time_of_its_recorded_calls(tmp_path: Path) -> None:
    path = finished().save(tmp_path / "run.jsonl")
    again = kgwb.load_run(path).go()
    qir = again["qir"]
    assert qir.recorded_seconds is not None
    assert 0.335 < qir.recorded_seconds < 0.335 + again.totals.seconds
    assert qir.to_data()["recorded_seconds"] == round(qir.recorded_seconds, 6)
    assert kgwb.load_run(again.save(path)).go()["qir"].live_seconds > 0.335
