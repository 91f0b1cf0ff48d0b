"""A disk that takes no more is said, and what was there before stays."""

from __future__ import annotations

import json
import logging
import re
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from faulty import large_graph
from small import CALLS, MADE_UP, SCRIPT, films, made_up

from kgwb import load_run
from kgwb.bench.questions import BenchQuestion
from kgwb.bench.results import RESULTS_FILE, Results
from kgwb.bench.runner import Benchmark, BenchSetup
from kgwb.cli import main
from kgwb.errors import InputError, RunFileError
from kgwb.kg import cache_dir, open_kg
from kgwb.kg.embeddings import Embeddings
from kgwb.llm import Scripted
from kgwb.run import Run
from kgwb.run.prompts import Prompts
from kgwb.run.systems import load_system
from kgwb.settings import Settings


@contextmanager
def no_room(room: int = 0) -> Iterator[None]:
    """No file may become longer than that, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


FULL = "File too large"


def test_a_run_that_cannot_be_recorded_stops_and_goes_on(tmp_path: Path) -> None:
    path, model = tmp_path / "run.jsonl", Scripted(SCRIPT)
    run = made_up(model, path=path)
    run.go(until="split")
    before = path.read_bytes()
    with no_room():
        with pytest.raises(RunFileError, match=FULL) as caught:
            run.step()
        assert "not lost" in caught.value.hint
        assert run.status == "failed" and run.error is caught.value
    assert path.read_bytes().startswith(before) and path.read_bytes().endswith(b"\n")
    assert (str(run.go().answer), model.call_count()) == ("three", CALLS)
    assert Run.load(path, MADE_UP).go().answer == run.answer


@pytest.mark.parametrize("room", [0, 8_000])
@pytest.mark.parametrize("form", [[], ["--json"]])
def test_the_answer_comes_first_where_its_run_cannot_be_saved(
    room: int, form: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.jsonl"
    command = ["ask", "--kg", "films", *form, "--save", str(path), "Who directed Stalker?"]
    with no_room(room):
        assert main(command) == 2
    answer, problem = capsys.readouterr()
    assert "Andrei Tarkovsky" in answer
    assert re.search(rf"kgwb: cannot write the run to .*({FULL})", problem)
    assert path.exists() == bool(room)  # what there was room for
    assert main(command) == 0 and load_run(path).answer


def _bench(out: Path) -> Benchmark:
    setup = BenchSetup(
        films(), load_system("chatty_kg"), {"": Scripted(lambda request: "?")}, Settings(theta=1), Prompts(),
        Embeddings("lexical"),
    )  # fmt: skip
    return Benchmark(setup, Results(out, setup.to_config()))


QUESTIONS = [BenchQuestion(id=str(n), question=f"Who directed {n}?", answers=()) for n in range(40)]


def test_a_benchmark_stops_and_goes_on(tmp_path: Path) -> None:
    out = tmp_path / "out"
    _bench(out).run(QUESTIONS[:3])
    before = (out / RESULTS_FILE).read_bytes()
    with no_room(len(before)), pytest.raises(InputError) as caught:
        _bench(out).run(QUESTIONS)
    assert "continues" in caught.value.hint
    written = (out / RESULTS_FILE).read_bytes()
    assert written.startswith(before) and written.endswith(b"\n")
    results = Results(out, _bench(out).setup.to_config())
    for row in results.rows.values():
        row["error"] = None  # to be kept, and so to be written anew
    with no_room(), pytest.raises(InputError, match=FULL):
        results.drop_errors()
    assert ((out / RESULTS_FILE).read_bytes(), len(results.rows)) == (written, written.count(b"\n"))
    assert [row["id"] for row in _bench(out).run(QUESTIONS)] == [
        question.id for question in QUESTIONS
    ]
    lines = (out / RESULTS_FILE).read_text().splitlines()
    assert len({json.loads(line)["id"] for line in lines}) == len(lines) == len(QUESTIONS)


def test_a_graph_that_cannot_be_cached_is_opened_in_memory(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    source = large_graph(tmp_path)
    with no_room(), caplog.at_level(logging.WARNING, "kgwb"):
        kg = open_kg(source)
    assert "is loaded into memory: the cache folder cannot be used" in caplog.text
    assert str(kg.search("vertex 4711", 1).hits[0].iri) == "urn:v4711"
    assert not list(cache_dir().glob("graphs/*"))
    assert open_kg(source).search("vertex 4711", 1) == kg.search("vertex 4711", 1)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device to write to")
@pytest.mark.parametrize("form", [[], ["--json"]])
def test_output_to_a_full_disk_is_an_error_in_words(form: list[str]) -> None:
    command = [sys.executable, "-m", "kgwb", "ask", "--kg", "films", *form, "Who directed Stalker?"]
    with Path("/dev/full").open("w") as output:
        done = subprocess.run(
            command, stdout=output, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 2
    assert "kgwb: the output cannot be written: No space left on device" in done.stderr
    assert "Traceback" not in done.stderr and "Exception ignored" not in done.stderr
