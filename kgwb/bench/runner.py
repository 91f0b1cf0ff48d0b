"""Asks a system every question and writes what came of each as it finishes; goes on where it stopped."""

from __future__ import annotations

import hashlib
import json
import platform
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from urllib.parse import quote

from kgwb.aside import undisturbed
from kgwb.bench.cost import Budget, by_model, stages
from kgwb.bench.gold import standard
from kgwb.bench.metrics import NOTHING, Scores, score
from kgwb.bench.questions import BenchQuestion, conversations, term_string
from kgwb.bench.results import FOR_PEOPLE, RUNS, Result, Results, Row, run_file
from kgwb.errors import Cancelled, InputError, InvalidReplyError, KgwbError
from kgwb.flow import Dialogue, Turn, from_data, to_data
from kgwb.kg.base import Graph
from kgwb.kg.embeddings import Embeddings
from kgwb.llm.base import ChatModel
from kgwb.run import Run, System
from kgwb.run.prompts import Prompts, shipped_folder
from kgwb.settings import Settings
from kgwb.systems import oracle
from kgwb.systems.gold import read
from kgwb.version import __version__

if TYPE_CHECKING:
    from kgwb.workbench import Workbench


@dataclass(frozen=True, slots=True)
class Setup:
    """What is measured: a system with its models and settings on a graph."""

    kg: Graph
    system: System
    models: Mapping[str, ChatModel]
    settings: Settings
    prompts: Prompts
    embeddings: Embeddings
    recipe: Callable[[], Setup] | None = None
    """Makes the same set-up in another process, where graphs and models cannot be sent."""

    @classmethod
    def of(cls, bench: Workbench) -> Setup:
        """What a workbench asks with."""
        setup = bench.setup
        return cls(bench.kg, setup.system, setup.models, setup.settings, setup.prompts, setup.embeddings)

    @classmethod
    def made_by(cls, recipe: Callable[[], Setup]) -> Setup:
        """A set-up for executors of other processes: ``recipe`` is sent, and makes it there again."""
        return replace(recipe(), recipe=recipe)

    def __reduce__(self) -> tuple[Callable[..., Setup], tuple[object, ...]]:
        if self.recipe is None:
            hint = "make it with Setup.made_by(function), where the function makes it"
            raise InputError("this set-up cannot be sent to other processes", hint=hint)
        return _made_again, (self.recipe, json.dumps(self.config(), sort_keys=True))

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

    def config(self, questions: Sequence[BenchQuestion] = ()) -> dict[str, Any]:
        """What results depend on, as JSON data; those of another configuration are not mixed with them."""
        return {
            "kgwb": __version__,
            "kg": self.kg.identity,
            "source": self.kg.source,
            "system": self.system.name,
            "models": {name: model.name for name, model in self.models.items()},
            "embeddings": self.embeddings.name,
            "prompts": {name: _fingerprint(self.prompts.text(name)) for name in _prompts(self.system.name)},
            "settings": self.settings.to_data(),
            "questions": {
                "count": len(questions),
                "fingerprint": _fingerprint("\n".join(map(_json, questions))),
            },
            "versions": _versions(),
        }


LIBRARIES = tuple(
    "numpy ollama openai oxrdflib pydantic pyoxigraph rdflib sentence-transformers torch".split()
)
"""Libraries whose versions are told beside results."""


@cache  # a set-up that is sent to other processes tells them with every question
def _versions() -> dict[str, str]:
    return {"python": platform.python_version(), **{name: version(name) for name in LIBRARIES}}


_made: dict[str, Setup] = {}
_making = threading.Lock()


def _made_again(recipe: Callable[[], Setup], config: str) -> Setup:
    """The set-up of a recipe, made once in a process. Raises InputError if it is not what was sent."""
    with _making:
        if config not in _made:
            made = Setup.made_by(recipe)
            here, there = made.config(), json.loads(config)
            names = [name for name in there if name not in FOR_PEOPLE and here.get(name) != there[name]]
            if names:
                hint = "let every worker have the same kgwb, graph, models and prompts"
                raise InputError(f"a worker has another {', '.join(names)}", hint=hint)
            _made[config] = made
        return _made[config]


def _prompts(system: str) -> list[str]:
    """Names of a system's prompts, and of those by which every system may link its entities."""
    forms = (f"{system}/*.md", "linking/vertex_selection*.md")
    paths = {path for form in forms for path in shipped_folder().glob(form)}
    return sorted(f"{path.parent.name}/{path.stem}" for path in paths)


def _json(question: BenchQuestion) -> str:
    """As ``model_dump_json`` writes it, which refuses half characters."""
    return json.dumps(question.model_dump(), ensure_ascii=False, separators=(",", ":"))


def _fingerprint(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


class Watch:
    """What runs in this process, so that an interrupt stops it; sent to another process, it is a new one."""

    def __init__(self) -> None:
        self.stop = threading.Event()
        self.running: set[Run] = set()

    def __reduce__(self) -> tuple[type[Watch], tuple[()]]:
        return Watch, ()

    def interrupt(self) -> None:
        self.stop.set()
        for run in list(self.running):
            run.cancel()


class Task(NamedTuple):
    """A call to make on an executor, and what its result leads to."""

    call: tuple[Any, ...]
    """A function and its arguments."""
    then: Callable[[Any], Task | None]


def work_off(
    tasks: Iterable[Task],
    executor: Executor | int,
    watch: Watch,
    enough: Callable[[], object] = lambda: False,
    most: int | None = None,
) -> None:
    """Do all tasks, and those they lead to, until there is none left, or ``enough``: then what runs finishes.

    ``executor`` can be a number of threads. ``then`` is called one at a time; at most ``most`` tasks are on
    their way. Raises the first error, with nothing left waiting and what ``watch`` sees interrupted.
    """
    undisturbed(lambda: _work_off(tasks, executor, watch, enough, most), leave=watch.interrupt)


def _work_off(
    tasks: Iterable[Task],
    executor: Executor | int,
    watch: Watch,
    enough: Callable[[], object],
    most: int | None,
) -> None:
    ended: SimpleQueue[Future[Any]] = SimpleQueue()
    waiting: dict[Future[Any], Task] = {}
    left = iter(tasks)
    own = ThreadPoolExecutor(executor, "kgwb-bench") if isinstance(executor, int) else nullcontext(executor)

    def submit(task: Task | None) -> None:
        if task and not enough():
            future = pool.submit(*task.call)
            waiting[future] = task
            future.add_done_callback(ended.put)

    with own as pool:
        try:
            for task in islice(left, most):
                submit(task)
            while waiting:
                future = ended.get()
                task = waiting.pop(future)
                submit(task.then(future.result()) or next(left, None))
        except BaseException:
            for future in list(waiting):
                future.cancel()
            watch.interrupt()
            raise


class Bench:
    """Asks what has no result yet: dialogues turn by turn, conversations side by side."""

    def __init__(
        self,
        setup: Setup,
        results: Results,
        *,
        workers: int = 1,
        executor: Executor | None = None,
        save_runs: bool | Literal["lost"] = False,
        budget: Budget | None = None,
        finished: Callable[[Row], object] = lambda row: None,
    ) -> None:
        """``executor`` asks in place of threads; one of other processes needs ``Setup.made_by``. With a
        ``budget`` at most ``workers`` questions are on their way, which it may be exceeded by.

        ``save_runs`` keeps every run in the folder of the results, or those that lost something; with other
        machines it must be a folder that they share. ``finished`` is told of every line written.
        """
        self.setup, self.results, self.budget = setup, results, budget
        self.workers, self.executor = workers, executor
        self.save_runs, self.finished = save_runs, finished
        self.stopped = ""
        """Which budget stopped the latest ``run``; empty if none did."""

    def run(self, questions: Sequence[BenchQuestion]) -> list[Row]:
        """Ask what is not asked yet, within the budget; the lines of all ``questions`` that there are.

        Raises what interrupts it.
        """
        for row in self.results.of(questions):
            self._count(row)
        watch = Watch()
        first = (self._next(turns, (), watch) for turns in conversations(questions))
        most = self.workers if self.budget and self.budget.limits else None
        work_off(filter(None, first), self.executor or self.workers, watch, self._spent, most)
        rows = self.results.of(questions)
        self.stopped = self._spent() if len(rows) < len(questions) else ""
        return rows

    def _spent(self) -> str:
        return self.budget.spent if self.budget else ""

    def _count(self, row: Row) -> None:
        if self.budget:
            self.budget.add(row)

    def _next(self, turns: Sequence[BenchQuestion], earlier: tuple[Turn, ...], watch: Watch) -> Task | None:
        """The next turn of a conversation to be asked; None if all that is left has its line.

        Lines keep what a dialogue remembers of them; a turn whose line does not is asked again for that.
        """
        if all(self._line(turn) for turn in turns):
            return None
        question, *later = turns
        known = self._line(question)
        if known is not None and "remembered" in known:
            turn = from_data(known["remembered"], Turn | None)
            return self._next(later, (*earlier, turn) if turn else earlier, watch)

        def then(answered: tuple[Row, Turn | None, InputError | None]) -> Task | None:
            row, turn, unsaved = answered
            self._count(row)
            if known is None:
                self.results.add(row)
                self.finished(row)
            if unsaved:
                raise unsaved
            return self._next(later, (*earlier, turn) if turn else earlier, watch)

        folder = self.results.folder.resolve()
        call = (ask, self.setup, question, Dialogue(earlier), folder, self.save_runs, watch)
        return Task(call, then)

    def _line(self, question: BenchQuestion) -> Row | None:
        """The line of a question; none if its run is wanted and a full disk left it unsaved."""
        row = self.results.rows.get(question.id)
        return None if row and self.save_runs and row.get("run") == "" else row


def ask(
    setup: Setup,
    question: BenchQuestion,
    dialogue: Dialogue,
    folder: Path,
    save_runs: bool | Literal["lost"],
    watch: Watch,
) -> tuple[Row, Turn | None, InputError | None]:
    """The line of one question, what its dialogue remembers if it was answered, and why no run was saved.

    A run that is in the folder and was not answered is resumed. Raises Cancelled.
    """
    run, turn, unsaved = None, None, None
    name = f"{RUNS}/{_file_name(question.id)}.jsonl"
    try:
        run = setup.begin(question.question, dialogue)
        error = _resumed(run, run_file(folder, {"run": name}), watch)
        turn = setup.system.remember(run) if error is None else None
    except KgwbError as exc:
        error = exc.message
    row = row_of(question, run, error)
    try:
        Result.text(row)
    except ValueError as exc:  # what a server or a recording says may be no figure that can be kept
        row = row_of(question, None, f"its result cannot be kept: {exc}")
    if question.dialogue is not None:
        row["remembered"] = to_data(turn, Turn | None)
    if run and (save_runs is True or (save_runs and lost(row))):
        row["run"] = ""
        try:
            run.save(folder / name)
            row["run"] = name
        except InputError as exc:  # told once the answer is safe
            unsaved = exc
    return row, turn, unsaved


def _resumed(run: Run, kept: Path | None, watch: Watch) -> str | None:
    """``go`` with the calls of a kept run; replies among them that failed their checks are asked for anew."""
    if kept:
        run.resume(kept)
    recorded = set(run.calls)
    error = go(run, watch)
    if isinstance(run.error, InvalidReplyError) and {one.call for one in run.error.attempts} <= recorded:
        for step in run.steps:
            if step.error and step.attempts and not step.attempts[-1].accepted:
                run.refresh(step.key)
        error = go(run, watch)
    return error


def _file_name(key: str) -> str:
    """An id as a file's name of 150 bytes at most."""
    name = quote(key.encode("utf-8", "surrogatepass"), safe="")
    return name if len(name) <= 150 else f"{name[:133]}-{_fingerprint(key)}"


def go(run: Run, watch: Watch) -> str | None:
    """Execute a run; the error it ended in, or None. Raises Cancelled."""
    watch.running.add(run)
    try:
        if watch.stop.is_set():
            raise Cancelled
        run.go()
    except KgwbError as exc:
        return exc.message
    except Exception as exc:  # noqa: BLE001  # a bug met on one question is its result; the others go on
        return f"{type(exc).__name__}: {exc}"
    finally:
        watch.running.discard(run)
    if run.status == "cancelled":
        raise Cancelled
    return None


def lost(row: Row) -> bool:
    """Whether a question with gold was not answered by all of it and nothing else, strictly."""
    return row["gold"] is not None and (row["error"] is not None or row["f1"] < 1)


def row_of(question: BenchQuestion, run: Run | None, error: str | None) -> Row:
    """The line of the results file; an error counts 0 throughout, and without gold there are no scores."""
    answer = run.answer if run is not None and error is None else None
    answers = [term_string(value.term) for value in answer.values] if answer else []
    names = ("hops", "type", "language", "dialogue")
    given = {name: getattr(question, name) for name in names} | {"turn": question.turn or None}
    if run is not None and run.settings.own_knowledge:
        ungrounded = answer is not None and answer.ungrounded
        given["source"] = "own knowledge" if ungrounded else "the graph"
    return {
        "id": question.id,
        **{name: value for name, value in given.items() if value is not None},
        "question": question.question,
        "answers": answers,
        "gold": question.gold,
        **(asdict(_scores(answers, question, error)) if question.answers is not None else {}),
        **_cost(run),
        **({"linking": linking} if run and (linking := linking_of(question, run)) else {}),
        "error": error,
    }


def _scores(answers: Sequence[str], question: BenchQuestion, error: str | None) -> Scores:
    return NOTHING if error is not None else score(answers, question.answers or ())


def _cost(run: Run | None) -> Row:
    if run is None:
        return {"seconds": 0.0, "model_calls": 0, "queries": 0}
    totals = run.totals
    used = dict.fromkeys(key for step in run.steps for key in step.calls)
    return {
        "seconds": round(totals.seconds, 6),
        "stages": stages(run.system, run.steps),
        "model_calls": totals.model_calls,
        "prompt_tokens": totals.prompt_tokens,
        "completion_tokens": totals.completion_tokens,
        "models": by_model(run.calls[key] for key in used if key in run.calls),
        "queries": totals.queries,
    }


def linking_of(question: BenchQuestion, run: Run) -> Row:
    """How many of the gold query's vertices and predicates a run linked, and had to choose from.

    Empty if the question has no gold query that can be read, or the system does not tell.
    """
    known = oracle(run.system.name) if question.sparql else None
    gold = read(standard(question.sparql), run.kg.vocabulary) if known and question.sparql else None
    if known is None or gold is None:
        return {}
    found = known.linked(run)
    return {
        name: {
            "gold": len(right),
            "linked": len(right & linked),
            "candidates": len(right & (linked | candidates)),
        }
        for name, right, linked, candidates in (
            ("vertices", gold.vertices, found.vertices, found.vertex_candidates),
            ("predicates", gold.predicates, found.predicates, found.predicate_candidates),
        )
    }
