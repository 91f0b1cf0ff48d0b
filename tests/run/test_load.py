"""16 workers over one graph and one model server: each run is as it was alone, and nothing stays behind."""

from __future__ import annotations

import gc
import json
import os
import threading
from pathlib import Path
from typing import Any

import engines
import pytest
from model_servers import Answer, OpenAIServer
from page import wait_for

import kgwb
from kgwb.bench.formats import load_questions
from kgwb.bench.questions import group_by_dialogue
from kgwb.bench.results import Results
from kgwb.bench.runner import Benchmark, BenchSetup, find_run_file
from kgwb.kg import Graph, sample_path
from kgwb.kg.embeddings import Embeddings
from kgwb.run import Run
from kgwb.run.record import RunFile

pytestmark = pytest.mark.long
WORKERS, TIMES = 16, 2
FILMS = sample_path("films")
QUESTIONS = load_questions(FILMS.with_suffix(".questions.jsonl"))
REPEATED = [
    question.model_copy(
        update={
            "id": f"{question.id} {time}",
            "dialogue": question.dialogue and f"{question.dialogue} {time}",
        }
    )
    for time in range(TIMES)
    for question in QUESTIONS
]
DIFFERENT = ("seconds", "_s", "_at", "origin", "live_calls", "live_model_calls")
"""Ends of the names of fields that differ from one run of a question to the next."""


class RulesServer(OpenAIServer):
    """Answers by the messages alone what the rules say."""

    def __init__(self) -> None:
        self.replies: dict[str, str] = {}
        super().__init__()

    def learn(self, run: Run) -> None:
        for call in run.calls.values():
            if call.kind == "model":
                self.replies[json.dumps(call.request["content"]["messages"])] = call.result.text

    def chat(self, body: dict[str, Any]) -> Answer:
        messages = [[message["role"], message["content"]] for message in body["messages"]]
        return self.reply(self.replies[json.dumps(messages)])


def ask_all(kg: Graph, server: RulesServer, folder: Path, workers: int) -> list[list[str]]:
    """What the saved run of each question says. Calls have no order: some are made side by side."""
    model = kgwb.model(f"openai:tiny@{server.url}")
    bench = kgwb.Workbench(kg, model, embeddings=Embeddings("lexical"))
    setup = BenchSetup.from_workbench(bench)
    results = Results(folder, setup.to_config())
    files: list[int] = []

    def count_files(row: object) -> None:
        files.append(len(os.listdir("/proc/self/fd")))

    how: Any = {"workers": workers, "save_runs": True, "on_row": count_files}
    rows = Benchmark(setup, results, **how).run(REPEATED)
    assert [(row["id"], row["error"]) for row in rows] == [(one.id, None) for one in REPEATED]
    assert max(files) < 400, "connections pile up"
    found = []
    for row in rows:
        file = find_run_file(folder, row)
        assert file is not None
        header, *entries = RunFile(file).entries()
        assert header["question"] == row["question"]
        parts = [header["dialogue"], *entries]
        found.append(sorted(json.dumps(without_differences(part)) for part in parts))
    return found


def without_differences(data: Any) -> Any:
    if isinstance(data, dict):
        return {
            name: without_differences(value)
            for name, value in sorted(data.items())
            if not name.endswith(DIFFERENT)
        }
    return [without_differences(each) for each in data] if isinstance(data, list) else data


def count_left() -> tuple[int, int, int]:
    """How many threads, open files and runs there are."""
    gc.collect()
    # Not isinstance: it asks each object for its class, and the objects of a library may answer with a warning.
    runs = sum(type(each) is Run for each in gc.get_objects())
    return threading.active_count(), len(os.listdir("/proc/self/fd")), runs


@pytest.mark.parametrize("is_endpoint", [False, True])
def test_runs_side_by_side_are_as_they_were_alone(
    is_endpoint: bool, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    source: Any = FILMS
    if is_endpoint:
        oxigraph: engines.Engine = request.getfixturevalue("oxigraph")
        source = oxigraph.load(FILMS)
    before = count_left()
    kg, server = kgwb.open_kg(source), RulesServer()
    try:
        for turns in group_by_dialogue(QUESTIONS):
            rules = kgwb.Workbench(kg, "rules", embeddings=Embeddings("lexical"))
            for question in turns:
                server.learn(rules.ask(question.question))
        alone = ask_all(kg, server, tmp_path / "alone", 1)
        connections, requests = server.connections, len(server.seen)
        at_once = ask_all(kg, server, tmp_path / "at once", WORKERS)
        assert [parts for parts in at_once if parts not in alone] == []
        assert at_once == alone
        assert server.connections - connections < (len(server.seen) - requests) / 2
    finally:
        server.close()
    del kg, rules

    def is_all_freed() -> bool:
        """Return whether no more is left than before; threads of other tests may have ended meanwhile."""
        return all(now <= then for now, then in zip(count_left(), before, strict=True))

    wait_for(is_all_freed)  # the threads of closed connections end by themselves
