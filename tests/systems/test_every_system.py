"""For every system: a run can be stepped, saved, resumed and replayed, and nothing is asked twice."""

import gzip
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from asked import ASKED
from small import FILMS, answer_of, films, keys, run_of

import kgwb
from kgwb.bench.results import read_results
from kgwb.cli import main
from kgwb.errors import GraphUnreachableError, ModelError
from kgwb.llm import Scripted
from kgwb.records import from_data
from kgwb.run.answers import NOT_IN_GRAPH, Answer
from kgwb.run.systems import list_systems, load_system
from kgwb.workbench import list_recordings


@pytest.mark.parametrize("name", list_systems())
def test_steps_saved_runs_and_recordings_make_no_call_twice(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("films.ttl").write_text(FILMS)
    question, replies = ASKED[name]
    model, kg = Scripted(replies), kgwb.open_kg("films.ttl")
    whole = run_of(load_system(name), question, model, kg=kg).go()
    calls = model.call_count()
    order = [spec.name for spec in whole.system.agents]
    places = [order.index(agent) for agent in dict.fromkeys(step.agent for step in whole.steps)]
    # Agents first run in the order in which the system lists them, except the tools of RoboData.
    assert places == sorted(places) or name == "robodata"
    assert all(spec.purpose for spec in whole.system.agents)
    run = run_of(load_system(name), question, Scripted(replies), kg=kg).go(until=3)
    run.save("half.jsonl")
    half = run.totals.live_model_calls
    while run.status == "paused":
        run.step()
    run.save("run.jsonl")
    answer = run.answer
    assert answer and (keys(run), answer) == (keys(whole), whole.answer)
    loaded = kgwb.load_run("run.jsonl")
    assert (keys(loaded), loaded.answer, loaded.totals.live_model_calls) == (keys(run), answer, 0)
    assert [loaded.output(key) for key in keys(run)] == [run.output(key) for key in keys(run)]
    rest = kgwb.model("replay:run.jsonl")
    resumed = kgwb.load_run("half.jsonl", kg=kg, model=rest, resume=True).go()
    assert (keys(resumed), resumed.answer) == (keys(run), answer)
    assert resumed.totals.live_model_calls == calls - half
    given = ["--kg", "films.ttl", "--system", name, "--model", "replay:run.jsonl"]
    assert main(["ask", *given, run.question]) == 0
    assert (answer.text or answer.labels[0]) in " ".join(capsys.readouterr().out.split())
    line = {"id": "1", "question": run.question, "answers": [str(answer.values[0].term)]}
    Path("questions.jsonl").write_text(json.dumps(line) + "\n")
    assert main(["bench", *given, "--questions", "questions.jsonl", "--out", "results"]) == 0
    _, [row] = read_results("results")
    assert (len(row["answers"]), row["error"]) == (len(answer.values), None)


@pytest.mark.parametrize(
    ("name", "until"),
    [("chatty_kg", 3), ("dog", 3), ("robodata", 3), ("surveyor", "drafter"), ("triad", 3)],
)
def test_an_unreachable_graph_ends_the_run(
    name: str, until: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    question, replies = ASKED[name]
    kg = films()
    run = run_of(load_system(name), question, Scripted(replies), kg=kg).go(until=until)
    monkeypatch.setattr(kg, "select", Mock(side_effect=GraphUnreachableError("gone")))
    with pytest.raises(GraphUnreachableError):
        run.go()


@pytest.mark.parametrize("name", ["ragonite", "robodata", "surveyor"])
def test_a_system_that_needs_a_model_says_so_before_it_works(name: str) -> None:
    question, _ = ASKED[name]
    bench = kgwb.Workbench(films(), "rules")
    with pytest.raises(ModelError, match=f"{name} has no rules"):
        kgwb.Workbench(films(), "rules", system=name).ask(question)
    comparison = bench.ask_all(question, [name, "chatty_kg"])
    run = comparison[name]
    assert (run.steps, run.calls, run.status) == ([], {}, "failed")
    assert comparison["chatty_kg"].status == "done"
    # One can look at what it does without a model.
    paused = kgwb.Workbench(films(), "rules", system=name).begin(question).go(until=1)
    assert paused.status == "paused"


RECORDED = list_recordings()
NOT_LOOKED_UP = re.compile(rf"{NOT_IN_GRAPH}: (no vertex for |[^⟨].*: nothing in the graph \()")
"""How recorded reasons begin that said too much: an agent found no vertex, and looked nothing up."""


@pytest.mark.parametrize("name", RECORDED)
def test_every_recording_gives_the_answer_that_was_recorded(name: str) -> None:
    run = kgwb.load_run(RECORDED[name])
    assert (run.status, run.totals.live_model_calls) == ("done", 0)
    with gzip.open(RECORDED[name], "rt", encoding="utf-8") as lines:
        *_, last = lines
    recorded = from_data(json.loads(last)["end"]["answer"], Answer)
    if NOT_LOOKED_UP.match(recorded.reason):
        recorded = replace(recorded, reason=recorded.reason.removeprefix(f"{NOT_IN_GRAPH}: "))
    answer = answer_of(run)
    # In which order a count has its triples says nothing.
    found, expected = (
        {(value.terms, value.label, frozenset(value.support)) for value in each.values}
        for each in (answer, recorded)
    )
    assert found == expected
    assert (answer.kind, answer.reason) == (recorded.kind, recorded.reason)
