"""Processes that are killed in the middle, or share a folder: nothing that was recorded is lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import faulty
import pytest
from faulty import large_graph, model_server, serving
from page import wait_for
from small import DIRECTED, EX

from kgwb.bench.results import CONFIG_FILE, RESULTS_FILE, Results
from kgwb.errors import InputError
from kgwb.kg import open_kg
from kgwb.workbench import Workbench, load_run

WAIT_S = 300


# --- a benchmark

FILM_COUNT = 16
MANY = "".join(
    f'<{EX}f{n}> <http://www.w3.org/2000/01/rdf-schema#label> "Film {n}" ; <{EX}director> <{EX}d{n}> .\n'
    f'<{EX}d{n}> <http://www.w3.org/2000/01/rdf-schema#label> "Director {n}" .\n'
    for n in range(10, 10 + FILM_COUNT)
)
WORKERS = 3
CALLS_A_QUESTION = 2


def _of_films(body: dict[str, Any]) -> str:
    texts = " ".join(str(message["content"]) for message in body["messages"])
    if "entities" not in body["response_format"]["json_schema"]["schema"]["properties"]:
        return json.dumps(DIRECTED["chatty_kg/predicate_selection"])
    film = "Film " + texts.rpartition("directed Film ")[2][:2]
    time.sleep(0.02)  # so that workers are at work side by side when the process is killed
    return json.dumps(DIRECTED["chatty_kg/qir"]).replace("Arrival", film)


def test_a_benchmark_killed_again_and_again_asks_no_question_twice(tmp_path: Path) -> None:
    graph, questions, out = tmp_path / "films.ttl", tmp_path / "questions.jsonl", tmp_path / "out"
    graph.write_text(MANY, encoding="utf-8")
    asked = [
        {"id": str(n), "question": f"Who directed Film {n}?", "answers": [f"{EX}d{n}"]}
        for n in range(10, 10 + FILM_COUNT)
    ]
    questions.write_text("".join(f"{json.dumps(one)}\n" for one in asked), encoding="utf-8")
    model = model_server("openai", _of_films)
    command = [sys.executable, "-m", "kgwb", "bench", "--kg", str(graph), "--out", str(out)]
    command += ["--set", "multi_turn=false", "--model", f"openai:tiny@{model.url}"]
    command += ["--questions", str(questions), "--workers", str(WORKERS)]
    with serving(model):
        for after in (3, 11, 22):
            # No reply is given from there on: on a busy machine the process would end before it is killed
            model.fault, model.hit = faulty.slow, lambda _: len(model.seen) >= after  # noqa: B023
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
            wait_for(lambda: len(model.seen) >= after, WAIT_S)  # noqa: B023
            process.kill()
            process.wait(WAIT_S)
            # what a process that is killed in the middle of writing can leave behind
            with (out / RESULTS_FILE).open("ab") as file:
                file.write('{"id": "11", "question": "Who directed Fü'.encode()[:-1])
        model.fault = None
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=WAIT_S)
    rows = [json.loads(line) for line in (out / RESULTS_FILE).read_text().splitlines()]
    assert {row["id"]: row["f1"] for row in rows} == {one["id"]: 1.0 for one in asked}
    assert len(rows) == FILM_COUNT
    assert len(model.seen) <= (FILM_COUNT + 3 * WORKERS) * CALLS_A_QUESTION


@pytest.mark.parametrize("torn", [b"", b'{"kgwb": "0.1', None])
def test_a_benchmark_killed_before_its_first_result_begins_anew(
    tmp_path: Path, torn: bytes | None
) -> None:
    (tmp_path / RESULTS_FILE).touch()
    if torn is not None:
        (tmp_path / CONFIG_FILE).write_bytes(torn)
    results = Results(tmp_path, {"kg": "films"})
    assert json.loads((tmp_path / CONFIG_FILE).read_text()) == {"kg": "films"}
    said = {"question": "Who?", "answers": [], "gold": None, "error": None}
    results.append({"id": "1", **said, "seconds": 0.0, "model_calls": 0, "queries": 0})
    (tmp_path / CONFIG_FILE).write_bytes(b'{"kgwb": "0.1')
    with pytest.raises(InputError, match="is not JSON") as caught:
        Results(tmp_path, {"kg": "films"})
    assert "delete config.json" in caught.value.hint
    (tmp_path / CONFIG_FILE).unlink()
    assert list(Results(tmp_path, {"kg": "films"}).rows) == ["1"]


@pytest.mark.parametrize("end", [b"", b"\n"])
def test_a_run_file_of_a_header_alone_goes_on(tmp_path: Path, end: bytes) -> None:
    path = tmp_path / "run.jsonl"
    films = open_kg("films")
    run = Workbench(films).begin("Who directed Stalker?", path=path)
    path.write_bytes(path.read_bytes().rstrip(b"\n") + end)
    resumed = load_run(path, kg=films, model="rules", resume=True)
    assert load_run(path).answer == resumed.answer is not None
    run.save(path)
    assert [file.name for file in tmp_path.iterdir() if file.is_file()] == ["run.jsonl"]


# --- one cache folder

OPENING = """
import sys
import numpy as np
from kgwb.kg.embeddings import Embeddings
from kgwb.kg import cache_dir, open_kg

class Counted(Embeddings):
    def encode(self, texts):
        return [np.full(4, len(text), dtype=np.float32) / 1000 for text in texts]

print("ready", flush=True)
sys.stdin.readline()
kg = open_kg({path!r})
rows = kg.select("SELECT (COUNT(*) AS ?n) {{ ?s ?p ?o }}").rows
hits = [hit.iri for hit in kg.search("vertex 4711", 3).hits]
embeddings = Counted("shared/model", cache_folder=cache_dir())
close = [embeddings.similarity(f"text {{number}}", ["a", "bb"]) for number in range(200)]
print(kg.identity, rows, hits, sum(map(sum, close)), flush=True)
"""


def opener(path: Path) -> subprocess.Popen[str]:
    """A process that opens the graph when it reads a line."""
    pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    process = subprocess.Popen(
        [sys.executable, "-c", OPENING.format(path=str(path))], text=True, **pipes
    )
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    return process


def opened(*processes: subprocess.Popen[str]) -> str:
    """What processes that open at the same time all print."""
    for process in processes:
        begin(process)
    ends = [(*process.communicate(timeout=WAIT_S), process.returncode) for process in processes]
    assert {code for _, _, code in ends} == {0}, ends
    (out,) = {out for out, _, _ in ends}
    return out


def begin(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()


@pytest.mark.parametrize("damaged", [False, True])
def test_processes_share_one_cold_cache(tmp_path: Path, damaged: bool) -> None:
    path = large_graph(tmp_path)
    graphs = Path(os.environ["KGWB_CACHE"]) / "graphs"
    if damaged:
        open_kg(path)
        (folder,) = graphs.iterdir()
        (folder / "labels.sqlite").write_bytes(b"broken")
    assert "v4711" in opened(*(opener(path) for _ in range(3)))
    assert [entry.name for entry in graphs.iterdir()] == [
        entry.name for entry in graphs.glob("[!.]*")
    ]
    assert len(list(graphs.iterdir())) == 1


def test_a_process_killed_while_it_builds_harms_nobody_and_is_cleared_away(tmp_path: Path) -> None:
    path = large_graph(tmp_path)
    graphs = Path(os.environ["KGWB_CACHE"]) / "graphs"
    killed = opener(path)
    begin(killed)
    wait_for(lambda: list(graphs.glob(".making-*/graph/*")), WAIT_S)
    killed.kill()
    killed.communicate(timeout=WAIT_S)
    (left,) = graphs.glob(".making-*")
    opened(opener(path), opener(path))
    os.utime(left, (time.time() - 200_000,) * 2)
    open_kg(path)
    assert len(list(graphs.iterdir())) == 1 and not left.exists()
