"""Ctrl-C at any time: the run goes on from there, others work, and nothing hangs.

``KGWB_INTERRUPTS=5000`` asks for so many interrupts; the usual number takes some seconds.
"""

from __future__ import annotations

import _thread
import faulthandler
import gc
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
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

INTERRUPTS = int(os.environ.get("KGWB_INTERRUPTS", "300"))
HANGS_TICKS = 60
"""How many ticks of a timer that ticks each second work may take, until it is said to hang.

A machine that pauses ticks once when it goes on, however long the pause was.
"""
QUESTIONS = [
    BenchQuestion(id=f"{n}", question=f"Who directed {film}?", answers=())
    for n, film in enumerate(("Arrival", "Sicario", "Dune", "Arival"))
]
LOAD_S = 0.005


class Hangs(BaseException):
    """What is done after an interrupt does not end."""


def doing(work: Callable[[], object]) -> None:
    work()


class Alarm:
    """Raises errors in the main thread, wherever ``doing`` is then."""

    def __init__(self) -> None:
        self.errors: list[type[BaseException]] = []
        self.ticks_left = 0
        """How many signals are still let pass."""

    def __call__(self, _: int, frame: FrameType | None) -> None:
        if self.ticks_left:
            self.ticks_left -= 1
            return
        while frame and frame.f_code is not doing.__code__:
            frame = frame.f_back
        if frame and self.errors:
            error = self.errors.pop()
            if error is Hangs:
                faulthandler.dump_traceback(sys.__stderr__)
            raise error

    def interrupts(self, work: Callable[[], object], after_s: float, times: int) -> bool:
        """Do some work, interrupted after so long, and again a millisecond later; whether that hit it."""
        self.ticks_left = 0
        try:
            self._during(work, after_s, 1e-3, [KeyboardInterrupt] * times)
        except KeyboardInterrupt:
            return True
        return False

    def must_end(self, work: Callable[[], object]) -> None:
        """Do some work that is not to hang; if it does, print where each thread is."""
        self.ticks_left = HANGS_TICKS
        self._during(work, 1.0, 1.0, [Hangs])

    def _during(
        self,
        work: Callable[[], object],
        after_s: float,
        interval_s: float,
        errors: Sequence[type[BaseException]],
    ) -> None:
        self.errors = [*errors]
        signal.setitimer(signal.ITIMER_REAL, after_s, interval_s)
        try:
            doing(work)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)


@pytest.fixture
def alarm() -> Iterator[Alarm]:
    alarm = Alarm()
    handler = signal.signal(signal.SIGALRM, alarm)
    timer = signal.setitimer(signal.ITIMER_REAL, 0)  # pytest-timeout's
    yield alarm
    signal.setitimer(signal.ITIMER_REAL, 0)
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
    place: str, times: int, alarm: Alarm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kgwb.kg.files.MIN_CACHED_BYTES", 0)
    # Python itself loses an interrupt that hits a finalizer, and a file that one hits as it is opened
    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)
    world, chosen = World(tmp_path), random.Random(place)
    whole = world.begin().go().answer
    answers = [row["answers"] for row in world.bench()]
    took = min(_seconds(PLACES[place](world)) for _ in range(5))

    def everything_goes_on() -> None:
        assert world.run.go().answer == whole
        if place == "a run kept in a file":
            assert Run.load(world.path, CHATTY).go().answer == whole
        if place == "a save":
            assert Run.load(world.run.save(world.path), CHATTY).go().answer == whole
        world.look()
        assert world.begin().go().answer == whole
        if place == "a benchmark":
            assert [row["answers"] for row in world.bench()] == answers

    hits = 0
    for _ in range(INTERRUPTS // len(PLACES) // 2):
        work = PLACES[place](world)
        hits += alarm.interrupts(work, chosen.uniform(1e-5, took), times)
        alarm.must_end(everything_goes_on)
    gc.collect()
    assert hits


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


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
