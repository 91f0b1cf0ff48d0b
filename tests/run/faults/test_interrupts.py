"""Ctrl-C at any time: the run goes on from there, others work, and nothing hangs.

``KGWB_INTERRUPTS=5000`` asks for so many interrupts; the usual number takes some seconds.
"""

from __future__ import annotations

import _thread
import gc
import os
import random
import signal
import sys
import threading
import time
import timeit
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from small import CHATTY, FILMS, films

from kgwb import Workbench, model, open_kg
from kgwb.bench.questions import BenchQuestion
from kgwb.bench.results import Results
from kgwb.bench.runner import Benchmark, BenchSetup
from kgwb.kg.embeddings import Embeddings
from kgwb.run import Run

INTERRUPTS = int(os.environ.get("KGWB_INTERRUPTS", "200"))
QUESTIONS = [
    BenchQuestion(id=f"{n}", question=f"Who directed {film}?", answers=())
    for n, film in enumerate(("Arrival", "Sicario", "Dune", "Arival"))
]
LOAD_S = 0.005


def doing(work: Callable[[], object]) -> None:
    work()


def interrupts(work: Callable[[], object], after_s: float) -> bool:
    """Do some work, interrupted after so long, and again each millisecond; whether that hit it."""
    signal.setitimer(signal.ITIMER_REAL, after_s, 1e-3)
    try:
        doing(work)
    except KeyboardInterrupt:
        return True
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return False


@pytest.fixture
def alarm() -> Iterator[list[int]]:
    """How many interrupts are left. Each is raised in the main thread, wherever ``doing`` is then."""
    left = [0]

    def interrupt(_: int, frame: FrameType | None) -> None:
        while frame and frame.f_code is not doing.__code__:
            frame = frame.f_back
        if frame and left[0]:
            left[0] -= 1
            raise KeyboardInterrupt

    handler = signal.signal(signal.SIGALRM, interrupt)
    timer = signal.setitimer(signal.ITIMER_REAL, 0)  # pytest-timeout's
    yield left
    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, *timer)


class Slow(Embeddings):
    """Embeddings that take a while to load."""

    loaded = False

    def encode(self, texts: Any) -> list[Any]:
        if not self.loaded:
            time.sleep(LOAD_S)
            self.loaded = True
        return super().encode(texts)


class World:
    """A graph, and what is done with it when an interrupt comes."""

    def __init__(self, folder: Path) -> None:
        self.kg, self.model, self.embeddings = films(), model("rules"), Embeddings("lexical")
        self.file, self.path, self.out = folder / "films.ttl", folder / "run.jsonl", folder / "out"
        self.file.write_text(FILMS, encoding="utf-8")
        self.run = self.begin()

    def begin(self, question: str = "Who directed Arrival?", path: Path | None = None) -> Run:
        given: Any = {"kg": self.kg, "models": self.model, "embeddings": self.embeddings}
        self.run = Run(CHATTY, question, path=path, **given)
        return self.run

    def begin_in_file(self) -> Run:
        self.path.unlink(missing_ok=True)
        return self.begin(path=self.path)

    def begin_slow(self) -> Run:
        self.embeddings = Slow("lexical")
        return self.begin()

    def first_look(self) -> None:
        """The label index of a file is opened, and connected to as it is first searched."""
        self.kg = open_kg(self.file)
        self.begin().go()

    def look(self) -> None:
        """What a person asks a graph outside a run."""
        hits = self.kg.search("Dune", 5).hits + self.kg.search("Vileneuve", 5).hits
        self.kg.names([hit.iri for hit in hits])
        self.kg.select("SELECT ?s { ?s ?p ?o } LIMIT 5")
        self.kg.exact(["Arrival"])

    def bench(self) -> list[dict[str, Any]]:
        setup = BenchSetup.from_workbench(
            Workbench(self.kg, self.model, embeddings=self.embeddings)
        )
        return Benchmark(setup, Results(self.out, setup.to_config()), workers=2).run(QUESTIONS)

    def bench_anew(self) -> None:
        (self.out / "results.jsonl").unlink(missing_ok=True)
        self.bench()


PLACES: dict[str, Callable[[World], Callable[[], object]]] = {
    "a run": lambda world: world.begin().go,
    "a run kept in a file": lambda world: world.begin_in_file().go,
    "the first look into the label index": lambda world: world.first_look,
    "embeddings that load": lambda world: world.begin_slow().go,
    "a save": lambda world: lambda: world.run.save(world.path),
    "a graph asked outside a run": lambda world: world.look,
    "a benchmark": lambda world: world.bench_anew,
}


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("place", PLACES)
def test_after_an_interrupt_everything_goes_on(
    place: str, times: int, alarm: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kgwb.kg.files.MIN_CACHED_BYTES", 0)
    # Python itself loses an interrupt that hits a finalizer, and a file that one hits as it is opened
    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)
    world, chosen = World(tmp_path), random.Random(place)
    whole = world.begin().go().answer
    answers = [row["answers"] for row in world.bench()]

    def work() -> None:
        PLACES[place](world)()

    took = min(timeit.repeat(work, number=1, repeat=4))
    hits = 0
    for _ in range(INTERRUPTS // len(PLACES) // 2):
        alarm[0] = times
        hits += interrupts(PLACES[place](world), chosen.uniform(1e-5, took))
        # What hangs now ends by the time limit of the test.
        assert world.run.go().answer == whole
        if place in ("a run kept in a file", "a save"):
            path = world.path if "file" in place else world.run.save(world.path)
            assert Run.load(path, CHATTY).go().answer == whole
        world.look()
        assert world.begin().go().answer == whole
        if place == "a benchmark":
            assert [row["answers"] for row in world.bench()] == answers
    gc.collect()
    assert hits


def test_a_slow_call_is_left_behind_and_the_run_goes_on_when_it_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kgwb.background.ABANDON_TIMEOUT_S", 0.1)
    loading, loaded = threading.Event(), threading.Event()

    class Loading(Embeddings):
        def encode(self, texts: Any) -> list[Any]:
            loading.set()
            assert loaded.wait(30)
            return super().encode(texts)

    world = World(tmp_path)
    world.embeddings = Loading("lexical")
    run = world.begin()

    def interrupt() -> None:
        loading.wait(30)
        _thread.interrupt_main()

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        run.go()
    assert run.status == "running"
    threading.Timer(0.2, loaded.set).start()
    assert run.go().answer is not None
    assert run.status == "done"
