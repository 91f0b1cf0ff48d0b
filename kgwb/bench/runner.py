"""Asks a system every question and writes what came of each as it finishes; goes on where it stopped."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import quote

from kgwb import __version__
from kgwb.bench.metrics import NOTHING, score
from kgwb.bench.questions import BenchQuestion, conversations, term_string
from kgwb.bench.results import Results, Row
from kgwb.embeddings import Embeddings
from kgwb.errors import Cancelled, KgwbError
from kgwb.flow import Dialogue, Turn
from kgwb.kg.base import Graph
from kgwb.llm.base import ChatModel
from kgwb.prompts import Prompts, shipped_folder
from kgwb.run import Run, System
from kgwb.settings import Settings

RUNS = "runs"
"""Folder of the saved runs, below that of the results."""


@dataclass(frozen=True, slots=True)
class Setup:
    """What is measured: a system with its models and settings on a graph."""

    kg: Graph
    system: System
    models: Mapping[str, ChatModel]
    settings: Settings
    prompts: Prompts
    embeddings: Embeddings

    def begin(self, question: str, dialogue: Dialogue) -> Run:
        """A run of one question, not executed yet. Raises QuestionError."""
        return Run(
            self.system,
            question,
            dialogue,
            kg=self.kg,
            models=self.models,
            settings=self.settings,
            prompts=self.prompts,
            embeddings=self.embeddings,
        )

    def config(self) -> dict[str, Any]:
        """What results depend on, as JSON data; those of another configuration are not mixed with them."""
        return {
            "kgwb": __version__,
            "kg": self.kg.identity,
            "source": self.kg.source,
            "system": self.system.name,
            "models": {name: model.name for name, model in self.models.items()},
            "embeddings": self.embeddings.name,
            "prompts": _fingerprint(self.prompts, self.system.name),
            "settings": self.settings.to_data(),
        }


def _fingerprint(prompts: Prompts, system: str) -> str:
    shared = "chatty_kg/vertex_selection*.md"  # which every system may link its entities by
    paths = {path for form in (f"{system}/*.md", shared) for path in shipped_folder().glob(form)}
    names = sorted(f"{path.parent.name}/{path.stem}" for path in paths)
    return hashlib.sha256("\0".join(prompts.text(name) for name in names).encode()).hexdigest()[:16]


class Bench:
    """Asks what has no result yet: dialogues turn by turn, ``workers`` conversations side by side."""

    def __init__(
        self,
        setup: Setup,
        results: Results,
        *,
        workers: int = 1,
        save_runs: bool = False,
        finished: Callable[[Row], object] = lambda row: None,
    ) -> None:
        """``finished`` is told of every line written, one at a time."""
        self.setup, self.results = setup, results
        self.workers, self.save_runs, self.finished = workers, save_runs, finished
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._running: set[Run] = set()

    def run(self, questions: Sequence[BenchQuestion]) -> list[Row]:
        """Ask what is not asked yet; the lines of all ``questions``. Raises what interrupts it."""
        done = {row["id"] for row in self.results.of(questions)}
        todo = [turns for turns in conversations(questions) if any(turn.id not in done for turn in turns)]
        with ThreadPoolExecutor(self.workers, thread_name_prefix="kgwb-bench") as pool:
            try:
                for future in as_completed([pool.submit(self._hold, turns) for turns in todo]):
                    future.result()
            except BaseException:
                self._interrupt()
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        return self.results.of(questions)

    def _interrupt(self) -> None:
        self._stop.set()
        for run in list(self._running):
            run.cancel()

    def _hold(self, turns: Sequence[BenchQuestion]) -> None:
        """Ask the turns of one conversation; those that have a result only for the sake of later ones."""
        earlier: tuple[Turn, ...] = ()
        left = [number for number, turn in enumerate(turns) if turn.id not in self.results.rows]
        for question in turns[: left[-1] + 1]:
            if self._stop.is_set():
                return
            row, turn = self._ask(question, Dialogue(earlier))
            earlier = (*earlier, turn) if turn else earlier
            if question.id not in self.results.rows:
                with self._lock:
                    self.results.add(row)
                    self.finished(row)

    def _ask(self, question: BenchQuestion, dialogue: Dialogue) -> tuple[Row, Turn | None]:
        """What came of one question, and what its dialogue remembers if it was answered."""
        try:
            run = self.setup.begin(question.question, dialogue)
        except KgwbError as exc:
            return row_of(question, None, exc.message), None
        error = self._go(run)
        if self.save_runs:
            run.save(self.results.folder / RUNS / f"{quote(question.id, safe='')}.jsonl")
        return row_of(question, run, error), self.setup.system.turn(run) if error is None else None

    def _go(self, run: Run) -> str | None:
        """Execute a run; the error it ended in, or None. Raises Cancelled."""
        self._running.add(run)
        try:
            run.go()
        except KgwbError as exc:
            return exc.message
        except Exception as exc:  # noqa: BLE001  # a bug met on one question is its result; the others go on
            return f"{type(exc).__name__}: {exc}"
        finally:
            self._running.discard(run)
        if run.status == "cancelled":
            raise Cancelled
        return None


def row_of(question: BenchQuestion, run: Run | None, error: str | None) -> Row:
    """The line of the results file; an error counts 0 throughout."""
    answer = run.answer if run is not None and error is None else None
    answers = [term_string(value.term) for value in answer.values] if answer else []
    scores = score(answers, question.answers) if error is None else NOTHING
    given = {name: getattr(question, name) for name in ("hops", "type")}
    if run is not None and run.settings.own_knowledge:
        ungrounded = answer is not None and answer.ungrounded
        given["source"] = "own knowledge" if ungrounded else "the graph"
    return {
        "id": question.id,
        **{name: value for name, value in given.items() if value is not None},
        "question": question.question,
        "answers": answers,
        "gold": list(question.answers),
        **asdict(scores),
        "seconds": round(run.totals.seconds, 6) if run else 0.0,
        "model_calls": run.totals.model_calls if run else 0,
        "queries": run.totals.queries if run else 0,
        "error": error,
    }
