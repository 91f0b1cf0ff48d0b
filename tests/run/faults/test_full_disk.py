"""A disk that takes no more is said, and what was there before stays."""

from __future__ import annotations

import json
import logging
import os
import re
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from faulty import large_graph
from small import CALLS, MADE_UP, SCRIPT, films, made_up, prompt

from kgwb import load_run
from kgwb.bench.questions import BenchQuestion
from kgwb.bench.results import CONFIG_FILE, RESULTS_FILE, Results
from kgwb.bench.runner import Benchmark, BenchSetup
from kgwb.cli import main
from kgwb.errors import InputError, PromptError, RunFileError
from kgwb.kg import open_kg
from kgwb.kg.embeddings import Embeddings
from kgwb.llm import Scripted
from kgwb.run import Run
from kgwb.run.prompts import Prompts
from kgwb.run.systems import load_system
from kgwb.settings import Settings

FULL_AFTER = 4_000_000
Full = Callable[[], AbstractContextManager[None]]


@pytest.fixture(params=["tmpfs", "limit"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Path, Full]]:
    """A folder, and a context in which nothing more can be written there.

    A small file system where this user may mount one; everywhere a process that may make no file longer.
    """
    folder = tmp_path / "disk"
    folder.mkdir()
    if request.param == "limit":
        yield folder, _no_longer_files
        return
    command = ["mount", "-t", "tmpfs", "-o", f"size={FULL_AFTER}", "tmpfs", str(folder)]
    if os.geteuid() or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip(
            "no small disk can be mounted here: run the tests as root; the limit stands for it"
        )
    try:
        yield folder, partial(_filled, folder)
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@contextmanager
def _no_longer_files(room: int = 0) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@contextmanager
def _filled(folder: Path) -> Iterator[None]:
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file, pytest.raises(OSError, match="No space left"):
        while True:
            file.write(b"x" * 4096)
    try:
        yield
    finally:
        filler.unlink()


FULL = "No space left|File too large"


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name != "filler")


def test_a_run_that_cannot_be_recorded_stops_and_goes_on(disk: tuple[Path, Full]) -> None:
    folder, full = disk
    path, model = folder / "run.jsonl", Scripted(SCRIPT)
    run = made_up(model, path=path)
    run.go(until="split")
    before = path.read_bytes()
    with full():
        with pytest.raises(RunFileError, match=FULL) as caught:
            while True:  # what is left of a page of the disk takes a few lines yet
                run.step()
                assert run.status == "paused"
        assert "not lost" in caught.value.hint
        assert run.status == "failed" and run.error is caught.value
    assert path.read_bytes().startswith(before) and path.read_bytes().endswith(b"\n")
    assert (str(run.go().answer), model.call_count()) == ("three", CALLS)
    assert Run.load(path, MADE_UP).go().answer == run.answer


def test_a_run_that_cannot_be_begun_in_a_file_says_so(disk: tuple[Path, Full]) -> None:
    folder, full = disk
    with full(), pytest.raises(RunFileError, match=FULL):
        made_up(Scripted(SCRIPT), path=folder / "run.jsonl")
    assert names(folder) == []


@pytest.mark.parametrize("room", [0, 8_000])
@pytest.mark.parametrize("form", [[], ["--json"]])
def test_the_answer_comes_first_where_its_run_cannot_be_saved(
    room: int, form: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.jsonl"
    command = ["ask", "--kg", "films", *form, "--save", str(path), "Who directed Stalker?"]
    with _no_longer_files(room):
        assert main(command) == 2
    answer, problem = capsys.readouterr()
    assert "Andrei Tarkovsky" in answer
    assert re.search(rf"kgwb: cannot write the run to .*({FULL})", problem)
    assert path.exists() == bool(room)  # what there was room for
    assert main(command) == 0 and load_run(path).answer


def test_a_save_leaves_the_earlier_file(disk: tuple[Path, Full]) -> None:
    folder, full = disk
    path = made_up(Scripted(SCRIPT)).save(folder / "run.jsonl")
    before = path.read_bytes()
    run = made_up(Scripted(SCRIPT)).go()
    with full(), pytest.raises(RunFileError, match=FULL) as caught:
        run.save(path)
    assert caught.value.hint
    assert (names(folder), path.read_bytes()) == (["run.jsonl"], before)
    assert Run.load(run.save(path), MADE_UP).go().answer == run.answer


def _bench(out: Path) -> Benchmark:
    setup = BenchSetup(
        films(), load_system("chatty_kg"), {"": Scripted(lambda request: "?")}, Settings(theta=1), Prompts(),
        Embeddings("lexical"),
    )  # fmt: skip
    return Benchmark(setup, Results(out, setup.to_config()))


QUESTIONS = [BenchQuestion(id=str(n), question=f"Who directed {n}?", answers=()) for n in range(40)]


def test_a_benchmark_stops_and_goes_on(disk: tuple[Path, Full]) -> None:
    folder, full = disk
    out = folder / "out"
    _bench(out).run(QUESTIONS[:3])
    before = (out / RESULTS_FILE).read_bytes()
    with (
        full(),
        pytest.raises(
            InputError, match=f"cannot (write to|be used).*({FULL}|disk is full)"
        ) as caught,
    ):
        _bench(out).run(QUESTIONS)
    assert "continues" in caught.value.hint
    written = (out / RESULTS_FILE).read_bytes()
    assert written.startswith(before) and written.endswith(b"\n")
    results = Results(out, _bench(out).setup.to_config())
    for row in results.rows.values():
        row["error"] = None  # to be kept, and so to be written anew
    with full(), pytest.raises(InputError, match=FULL):
        results.drop_errors()
    assert ((out / RESULTS_FILE).read_bytes(), len(results.rows)) == (written, written.count(b"\n"))
    assert [row["id"] for row in _bench(out).run(QUESTIONS)] == [
        question.id for question in QUESTIONS
    ]
    lines = (out / RESULTS_FILE).read_text().splitlines()
    assert len({json.loads(line)["id"] for line in lines}) == len(lines) == len(QUESTIONS)


def test_a_benchmark_that_cannot_begin_says_so(disk: tuple[Path, Full]) -> None:
    folder, full = disk
    (folder / "out").mkdir()
    with full(), pytest.raises(InputError, match=FULL):
        _bench(folder / "out")
    assert names(folder / "out") == []
    _bench(folder / "out")
    assert names(folder / "out") == [CONFIG_FILE]


def test_a_graph_that_cannot_be_cached_is_opened_in_memory(
    disk: tuple[Path, Full],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    folder, full = disk
    source = large_graph(tmp_path)
    monkeypatch.setenv("KGWB_CACHE", str(folder))
    with full(), caplog.at_level(logging.WARNING, "kgwb"):
        kg = open_kg(source)
    assert "is loaded into memory: the cache folder cannot be used" in caplog.text
    assert str(kg.search("vertex 4711", 1).hits[0].iri) == "urn:v4711"
    assert names(folder) in ([], ["graphs"]) and not list(folder.glob("graphs/*"))
    assert open_kg(source).search("vertex 4711", 1) == kg.search("vertex 4711", 1)


class Counted(Embeddings):
    def encode(self, texts: object) -> list[np.ndarray]:
        return [np.ones(2_000, dtype=np.float32) / 2_000**0.5 for _ in texts]  # type: ignore[attr-defined]


def test_vectors_that_cannot_be_kept_are_used_all_the_same(
    disk: tuple[Path, Full], caplog: pytest.LogCaptureFixture
) -> None:
    folder, full = disk
    Counted("some/model", cache_folder=folder).similarity("a", ["b"])
    with full(), caplog.at_level(logging.WARNING, "kgwb"):
        assert (
            Counted("some/model", cache_folder=folder).similarity("c", ["d", "e", "f"])
            == (1.0,) * 3
        )
    assert "vectors are not kept" in caplog.text
    caplog.clear()
    assert Counted("some/model", cache_folder=folder).similarity("c", ["d", "a"]) == (1.0,) * 2
    assert caplog.text == ""


def test_a_prompt_that_cannot_be_saved_leaves_the_earlier_one(disk: tuple[Path, Full]) -> None:
    folder, full = disk
    prompts = Prompts(folder)
    path = prompts.save("made_up/split", prompt("question", "Split: {{question}}"))
    before = path.read_bytes()
    with full(), pytest.raises(PromptError, match=FULL) as caught:
        prompts.save("made_up/split", prompt("question", "Split anew: {{question}}" + "." * 5_000))
    assert "free some space" in caught.value.hint
    assert (names(path.parent), path.read_bytes()) == ([path.name], before)


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
