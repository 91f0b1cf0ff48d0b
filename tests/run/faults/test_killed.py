"""Processes that are killed in the middle, or share a folder: nothing that was recorded is lost."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import faulty
import pytest
from faulty import by_form, graph_server, large_graph, model_server, serving
from jupyter_client.manager import KernelManager
from page import wait_for
from small import DIRECTED, EX, HOMONYMS

from kgwb.bench.results import CONFIG_FILE, RESULTS_FILE, Results
from kgwb.errors import InputError
from kgwb.kg import open_kg
from kgwb.llm import model as open_model
from kgwb.workbench import Workbench, load_run

WAIT_S = 300


# --- a run in a kernel

ASKING = """
import kgwb
from kgwb.kg.embeddings import Embeddings
kg = kgwb.open_kg({graph!r}, dialect="generic")
workbench = kgwb.Workbench(kg, {model!r}, embeddings=Embeddings("lexical"))
workbench.ask("Who directed Dune?", path={path!r})
"""


@pytest.mark.parametrize(("place", "seed"), [("model", 1), ("model", 2), ("graph", 3)])
def test_a_run_in_a_killed_kernel_goes_on_from_the_call_in_flight(
    tmp_path: Path, place: str, seed: int
) -> None:
    graph, model = graph_server(), model_server("openai", by_form(HOMONYMS))
    path = tmp_path / "run.jsonl"
    with serving(graph, model):
        spec = f"openai:tiny@{model.url}"
        kg = open_kg(graph.url, dialect="generic")
        whole = Workbench(kg, spec).ask("Who directed Dune?")
        asked = {"graph": len(graph.seen), "model": len(model.seen)}
        slow = {"graph": graph, "model": model}[place]
        number = random.Random(seed).randint(1, asked[place])
        graph.seen.clear()
        model.seen.clear()
        slow.fault, slow.hit = faulty.slow, lambda asked: len(slow.seen) >= number
        code = ASKING.format(graph=graph.url, model=spec, path=str(path))
        _kill_kernel(code, lambda: len(slow.seen) >= number)
        slow.fault = None
        kept = load_run(path)
        assert kept.status == "failed" and kept.question == "Who directed Dune?"
        made = [call.kind for call in kept.calls.values()]
        assert made.count("model") == len(model.seen) - (place == "model")
        kg = open_kg(graph.url, dialect="generic")
        resumed = load_run(path, kg=kg, model=open_model(spec), resume=True)
        assert (resumed.status, resumed.answer) == ("done", whole.answer)
        assert len(model.seen) == asked["model"] + (place == "model")
        assert all(resumed.calls[key].taken_at == call.taken_at for key, call in kept.calls.items())
        assert load_run(path).answer == whole.answer


def _kill_kernel(code: str, ready: Callable[[], bool]) -> None:
    manager = KernelManager()
    manager.start_kernel(env=dict(os.environ))
    try:
        client = manager.client()
        client.start_channels()
        client.wait_for_ready(WAIT_S)
        client.execute(code)
        wait_for(ready, WAIT_S)
        manager.signal_kernel(signal.SIGKILL)
        wait_for(lambda: not manager.is_alive(), WAIT_S)
        client.stop_channels()
    finally:
        manager.shutdown_kernel(now=True)


# --- a benchmark

FILM_COUNT = 24
MANY = "".join(
    f'<{EX}f{n}> <http://www.w3.org/2000/01/rdf-schema#label> "Film {n}" ; <{EX}director> <{EX}d{n}> .\n'
    f'<{EX}d{n}> <http://www.w3.org/2000/01/rdf-schema#label> "Director {n}" .\n'
    for n in range(10, 10 + FILM_COUNT)
)
KILLS = 10
WORKERS = 3
CALLS_A_QUESTION = 2


def _of_films(body: dict[str, Any]) -> str:
    texts = " ".join(str(message["content"]) for message in body["messages"])
    if "entities" not in body["response_format"]["json_schema"]["schema"]["properties"]:
        return json.dumps(DIRECTED["chatty_kg/predicate_selection"])
    film = "Film " + texts.rpartition("directed Film ")[2][:2]
    time.sleep(0.02)  # so that workers are at work side by side when the process is killed
    return json.dumps(DIRECTED["chatty_kg/qir"]).replace("Arrival", film)


class Benchmark:
    """``kgwb bench`` over the films, a part of them in dialogues."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.graph, self.questions = folder / "films.ttl", folder / "questions.jsonl"
        self.graph.write_text(MANY, encoding="utf-8")
        with self.questions.open("w", encoding="utf-8") as file:
            for n in range(10, 10 + FILM_COUNT):
                dialogue = {"dialogue": f"d{n % 2}", "turn": n} if n < 16 else {}
                asked = {
                    "id": str(n),
                    "question": f"Who directed Film {n}?",
                    "answers": [f"{EX}d{n}"],
                }
                file.write(json.dumps(asked | dialogue) + "\n")
        self.model = model_server("openai", _of_films)

    def start(self, out: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "kgwb", "bench", "--kg", str(self.graph)]
        command += ["--set", "multi_turn=false", "--model", f"openai:tiny@{self.model.url}"]
        command += ["--questions", str(self.questions)]
        command += ["--out", str(self.folder / out), "--workers", str(WORKERS)]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def finish(self, out: str) -> list[dict[str, Any]]:
        process = self.start(out)
        _, said = process.communicate(timeout=WAIT_S)
        assert process.returncode == 0, said.decode()
        lines = (self.folder / out / RESULTS_FILE).read_text(encoding="utf-8").splitlines()
        times = dict.fromkeys(("seconds", "model_seconds", "stages", "stage_model_seconds"))
        rows = ({**json.loads(line), **times} for line in lines)
        return sorted(rows, key=lambda row: row["id"])


@pytest.fixture
def benchmark(tmp_path: Path) -> Iterator[Benchmark]:
    found = Benchmark(tmp_path)
    with serving(found.model):
        yield found


def test_a_benchmark_killed_again_and_again_asks_no_question_twice(benchmark: Benchmark) -> None:
    whole = benchmark.finish("whole")
    assert [row["f1"] for row in whole] == [1.0] * FILM_COUNT
    chosen = random.Random(7)
    seen = benchmark.model.seen
    usual = len(seen)
    assert usual == FILM_COUNT * CALLS_A_QUESTION
    seen.clear()
    left, killed = usual, 0
    for kill in range(KILLS):
        # Each time a little further than before, so that there is something left to kill
        after = len(seen) + chosen.randint(1, max(1, 2 * left // KILLS))
        # No reply is given from there on: on a busy machine the process would end before it is killed
        benchmark.model.hit = lambda _: len(seen) >= after  # noqa: B023
        benchmark.model.fault = faulty.slow
        process = benchmark.start("killed")
        wait_for(lambda: len(seen) >= after or process.poll() is not None, WAIT_S)  # noqa: B023
        process.kill()
        process.communicate(timeout=WAIT_S)
        killed += process.returncode == -signal.SIGKILL
        if kill % 2:  # what a process that is killed in the middle of writing can leave behind
            with (benchmark.folder / "killed" / RESULTS_FILE).open("ab") as file:
                file.write('{"id": "11", "question": "Who directed Fü'.encode()[:-1])
    assert killed == KILLS
    benchmark.model.fault = None
    resumed = benchmark.finish("killed")
    for row in resumed:
        row.pop("paid", None)  # said of a row whose calls were partly in the store
    assert resumed == whole
    assert len(seen) <= usual + KILLS * WORKERS * CALLS_A_QUESTION
    told = Counter(
        json.dumps(asked.data["messages"]) for asked in seen if asked.data
    )  # else cut off
    assert max(told.values()) <= KILLS + 1


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
