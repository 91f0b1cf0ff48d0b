"""Asks a system every question and writes what came of each as it finishes; goes on where it stopped."""

from __future__ import annotations

import hashlib
import json
import platform
import threading
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence, Set
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import nullcontext, suppress
from dataclasses import KW_ONLY, asdict, dataclass, field, replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Literal
from urllib.parse import quote

from kgwb.bench.cost import Budget, sum_seconds_by_stage, sum_usage
from kgwb.bench.metrics import ZERO_SCORES, score_answers, score_columns
from kgwb.bench.questions import (
    BenchQuestion,
    answer_to_strings,
    group_by_dialogue,
    read_gold_query_of,
    term_to_string,
)
from kgwb.bench.results import (
    RUNS_FOLDER,
    BenchRow,
    ResultRowSchema,
    Results,
    describe_config_changes,
    find_run_file,
    is_lost,
)
from kgwb.deprecated import RenamedAttribute
from kgwb.errors import (
    Cancelled,
    GraphUnreachableError,
    InputError,
    InvalidReplyError,
    KgwbError,
    ModelUnreachableError,
)
from kgwb.flow import Dialogue, Turn
from kgwb.llm.base import ChatModel
from kgwb.records import from_data, to_data
from kgwb.run import Run
from kgwb.run import Setup as RunSetup
from kgwb.run.calls import Call
from kgwb.run.differences import compare_steps
from kgwb.run.prompts import shipped_folder
from kgwb.threads import shielded
from kgwb.version import __version__

RECORDED_LIBRARIES = (
    "numpy ollama openai oxrdflib pydantic pyoxigraph rdflib sentence-transformers torch".split()
)
"""Libraries whose versions are kept beside results."""
SaveRunsMode = bool | Literal["lost"]


@dataclass(frozen=True)
class BenchSetup(RunSetup):
    """What is measured: a system with its models and settings on a graph."""

    factory: Callable[[], BenchSetup] | None = None
    """Makes the same set-up in another process, where graphs and models cannot be sent."""

    @classmethod
    def from_workbench(cls, workbench: Any) -> BenchSetup:
        """What a ``kgwb.Workbench`` asks with."""
        return cls(**vars(workbench.setup))

    @classmethod
    def from_factory(cls, factory: Callable[[], BenchSetup]) -> BenchSetup:
        """A set-up for executors of other processes: ``recipe`` is sent, and makes it there again."""
        return replace(factory(), factory=factory)

    def __reduce__(self) -> tuple[Callable[..., BenchSetup], tuple[object, ...]]:
        if self.factory is None:
            hint = "make it with Setup.made_by(function), where the function makes it"
            raise InputError("this set-up cannot be sent to other processes", hint=hint)
        return _rebuild_setup, (self.factory, json.dumps(self.to_config(), sort_keys=True))

    def to_config(self, questions: Sequence[BenchQuestion] = ()) -> dict[str, Any]:
        """What results depend on, as JSON data; those of another configuration are not mixed with them."""
        texts = (
            json.dumps(each.model_dump(), ensure_ascii=False, separators=(",", ":"))
            for each in questions
        )
        folders = (
            self.system.name,
            "linking",
        )  # any system may link entities by the shared prompts
        paths = [path for folder in folders for path in shipped_folder().glob(f"{folder}/*.md")]
        prompts = sorted(f"{path.parent.name}/{path.stem}" for path in paths)
        return {
            "kgwb": __version__,
            "kg": self.kg.identity,
            "source": self.kg.source,
            "system": self.system.name,
            "models": {name: model.name for name, model in self.models.items()},
            "embeddings": self.embeddings.name,
            "prompts": {name: fingerprint(self.prompts.text(name)) for name in prompts},
            "settings": self.settings.to_data(),
            "questions": {"count": len(questions), "fingerprint": fingerprint("\n".join(texts))},
            "versions": _get_versions(),
        }

    config = RenamedAttribute("config", "to_config")
    made_by = RenamedAttribute("made_by", "from_factory")
    of = RenamedAttribute("of", "from_workbench")


@cache  # a set-up that is sent to other processes has them with every question
def _get_versions() -> dict[str, str]:
    return {
        "python": platform.python_version(),
        **{name: version(name) for name in RECORDED_LIBRARIES},
    }


_setups_by_config: dict[str, BenchSetup] = {}
_setups_lock = threading.Lock()


def _rebuild_setup(recipe: Callable[[], BenchSetup], config: str) -> BenchSetup:
    """The set-up of a recipe, made once in a process. Raises InputError if it is not what was sent."""
    with _setups_lock:
        if config not in _setups_by_config:
            setup = BenchSetup.from_factory(recipe)
            if changes := "; ".join(describe_config_changes(json.loads(config), setup.to_config())):
                hint = "let every worker have the same kgwb, graph, models and prompts"
                raise InputError(f"a worker has another set-up: {changes}", hint=hint)
            _setups_by_config[config] = setup
        return _setups_by_config[config]


def fingerprint(text: str) -> str:
    """The first 16 hexadecimal digits of the SHA-256 of a text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


# --- work side by side


class RunCanceller:
    """What runs in this process, so that an interrupt stops it; sent to another process, it is a new one."""

    def __init__(self) -> None:
        self.cancelled = threading.Event()
        self.running_runs: set[Run] = set()

    def __reduce__(self) -> tuple[type[RunCanceller], tuple[()]]:
        return RunCanceller, ()

    def cancel_all(self) -> None:
        self.cancelled.set()
        for run in list(self.running_runs):
            run.cancel()

    def execute(self, run: Run) -> str | None:
        """Execute a run; the error it ended in, or None. Raises Cancelled."""
        self.running_runs.add(run)
        try:
            if self.cancelled.is_set():
                raise Cancelled
            run.go()
        except KgwbError as exc:
            return exc.message
        except Exception as exc:  # noqa: BLE001  # a bug met on one question is its result; the others go on
            return f"{type(exc).__name__}: {exc}"
        finally:
            self.running_runs.discard(run)
        if run.status == "cancelled":
            raise Cancelled
        return None


Task = Generator[tuple[Any, ...], Any, None]
"""Yields calls (a function and its arguments) one after another, and is sent what each returns."""


def run_tasks(
    tasks: Iterable[Task],
    executor: Executor | int,
    canceller: RunCanceller,
    should_stop: Callable[[], object] = lambda: False,
    max_pending: int | None = None,
) -> None:
    """Make the calls of all works on an executor, or on a number of threads, until ``enough``.

    Then what runs finishes. The works themselves go on here, one at a time; at most ``most`` calls are under
    way. Raises the first error, with nothing left waiting and what ``watch`` sees interrupted.
    """
    left = iter(tasks)
    ended: SimpleQueue[Future[Any]] = SimpleQueue()
    waiting: dict[Future[Any], Task] = {}
    pool = (
        ThreadPoolExecutor(executor, "kgwb-bench")
        if isinstance(executor, int)
        else nullcontext(executor)
    )

    def submit_next(running: Executor, work: Task, result: Any = None) -> None:
        with suppress(StopIteration):
            call = work.send(result)
            if not should_stop():
                future = running.submit(*call)
                waiting[future] = work
                future.add_done_callback(ended.put)

    def work_on() -> None:
        with pool as running:
            try:
                while True:
                    while (max_pending is None or len(waiting) < max_pending) and (
                        work := next(left, None)
                    ):
                        submit_next(running, work)
                    if not waiting:
                        return
                    future = ended.get()
                    submit_next(running, waiting.pop(future), future.result())
            except BaseException:
                for future in list(waiting):
                    future.cancel()
                canceller.cancel_all()
                raise

    shielded(work_on, on_abandon=canceller.cancel_all)


@dataclass(frozen=True)
class EarlierRuns:
    """Results whose kept runs lend their calls, so that only what they lack is asked."""

    folder: Path
    models: Mapping[str, ChatModel]
    """What they were measured with; asked where ``repeats`` is above 1."""
    repeats: int = 1
    """How often what differs is asked in all, before and after, to see which decisions vary by themselves."""


@dataclass
class Benchmark:
    """Asks what has no result yet: dialogues turn by turn, conversations side by side."""

    setup: BenchSetup
    results: Results
    _: KW_ONLY
    workers: int = 1
    executor: Executor | None = None
    """Asks in place of threads; one of other processes needs ``Setup.made_by``."""
    save_runs: SaveRunsMode = False
    """Keeps every run, or those that lost something, in the results' folder, which all machines share."""
    budget: Budget = field(default_factory=lambda: Budget({}))
    """At most ``workers`` questions are under way with one, which it may be exceeded by."""
    earlier_runs: EarlierRuns | None = None
    on_row: Callable[[BenchRow], object] = lambda row: None
    """Called with every line written."""
    stop_reason: str = field(default="", init=False)
    """Which budget stopped the latest ``run``; empty if none did."""

    def run(self, questions: Sequence[BenchQuestion]) -> list[BenchRow]:
        """Ask what is not asked yet, within the budget; all lines there are. Raises what interrupts it."""
        for row in self.results.rows_for(questions):
            self.budget.add(row)
        watch = RunCanceller()
        works = (self._ask_dialogue(turns, watch) for turns in group_by_dialogue(questions))
        most = self.workers if self.budget.limits else None
        run_tasks(works, self.executor or self.workers, watch, lambda: self.budget.exhausted, most)
        rows = self.results.rows_for(questions)
        self.stop_reason = self.budget.exhausted if len(rows) < len(questions) else ""
        return rows

    def _ask_dialogue(self, turns: Sequence[BenchQuestion], watch: RunCanceller) -> Task:
        """Ask the turns of a conversation that have no line; lines keep what a dialogue remembers of them."""
        dialogue = Dialogue()
        folder = self.results.folder.resolve()
        for question in turns:
            if known := self._find_finished_row(question):
                turn = from_data(known.get("remembered"), Turn | None)
            else:
                asked = (
                    self.setup,
                    question,
                    dialogue,
                    folder,
                    self.save_runs,
                    watch,
                    self.earlier_runs,
                )
                row, turn, unsaved = yield ask_question, *asked
                self.budget.add(row)
                self.results.append(row)
                self.on_row(row)
                if unsaved:
                    raise unsaved
            dialogue = Dialogue((*dialogue.turns, turn)) if turn else dialogue

    def _find_finished_row(self, question: BenchQuestion) -> BenchRow | None:
        """The line of a question that need not be asked again, for a run left unsaved or more repeats."""
        row = self.results.rows.get(question.id)
        unsaved = row and self.save_runs and row.get("run") == ""
        wanted = self.earlier_runs.repeats if self.earlier_runs else 1
        return None if row and (unsaved or row.get("repeats", 1) < wanted) else row


# --- one question


def run_file_path(id_: str) -> str:
    """The file that the run of a question is kept in, below the folder of the results."""
    name = quote(id_.encode("utf-8", "surrogatepass"), safe="")
    name = name if len(name) <= 150 else f"{name[:133]}-{fingerprint(id_)}"
    return f"{RUNS_FOLDER}/{name}.jsonl"


def ask_question(  # what a question is asked with, for executors that take no closures
    setup: BenchSetup,
    question: BenchQuestion,
    dialogue: Dialogue,
    folder: Path,
    save_runs: SaveRunsMode,
    watch: RunCanceller,
    earlier: EarlierRuns | None = None,
) -> tuple[BenchRow, Turn | None, InputError | None]:
    """The line of one question, what its dialogue remembers if it was answered, and why no run was saved.

    A run that is in the folder and was not answered is resumed. Raises Cancelled.
    """
    run, turn, unsaved = None, None, None
    lent: set[str] = set()
    name = run_file_path(question.id)
    kept, before = find_run_file(folder, {"run": name}), None
    try:
        run = setup.begin(question.question, dialogue)
        if earlier and (before := find_run_file(earlier.folder, {"run": name})):
            run.resume(before, include_finished=True)
            lent = set(run.calls)
            if kept:
                run.resume(kept, include_finished=True)
        error = _execute_from_record(run, kept, watch)
        turn = run.turn if error is None else None
    except KgwbError as exc:
        error = exc.message
    row = make_row(question, run, error)
    try:
        ResultRowSchema.check_row(row)
    except ValueError as exc:  # what a server or a recording says may be no figure that can be kept
        row = make_row(question, None, f"its result cannot be kept: {exc}")
    if question.dialogue is not None:
        row["remembered"] = to_data(turn, Turn | None)
    if run and (save_runs is True or (save_runs and is_lost(row))):
        row["run"] = ""
        try:
            run.save(folder / name)
            row["run"] = name
        except InputError as exc:  # raised once the answer is safe
            unsaved = exc
    if run and earlier:
        calls = [call for key, call in run.calls.items() if key not in lent]
        if before and earlier.repeats > 1:
            row["repeats"] = earlier.repeats
            first = Run.load(before, setup.system, kg=setup.kg, models=earlier.models)
            row["varies"] = _find_varying_agent(run, first, earlier.repeats, watch, calls)
        row["paid"] = sum_usage(calls)
    return row, turn, unsaved


def _find_varying_agent(
    run: Run, earlier: Run, repeats: int, watch: RunCanceller, calls: list[Call]
) -> str:
    """The agent whose decision varies where a run, or the one before the change, is asked again; "" if none.

    Asked again is what one of the two asked and the other did not. ``calls`` gets what was asked.
    """
    watch.execute(earlier)
    asked = [{key for step in each.steps for key in step.calls} for each in (run, earlier)]
    for each, others in zip((run, earlier), reversed(asked), strict=True):
        steps = each.steps_by_key
        fresh = [
            step.key
            for step in each.steps
            if any(each.calls[key].kind == "model" and key not in others for key in step.calls)
        ]
        for _ in range(repeats - 1 if fresh else 0):
            known = dict(each.calls)
            for key in fresh:
                if key in each.steps_by_key:
                    each.refresh(key)
            watch.execute(each)
            if isinstance(each.error, ModelUnreachableError | GraphUnreachableError):
                raise each.error
            calls += [call for key, call in each.calls.items() if known.get(key) is not call]
            if parting := compare_steps(steps, each.steps_by_key).first_difference:
                return parting.key.partition("[")[0]
    return ""


def _execute_from_record(run: Run, kept: Path | None, watch: RunCanceller) -> str | None:
    """Execute a run with the calls of a kept one; its replies that failed their checks are asked for anew."""
    if kept:
        run.resume(kept)
    recorded = set(run.calls)
    error = watch.execute(run)
    if (
        isinstance(run.error, InvalidReplyError)
        and {each.call for each in run.error.attempts} <= recorded
    ):
        for step in run.steps:
            if step.error and step.attempts and not step.attempts[-1].accepted:
                run.refresh(step.key)
        error = watch.execute(run)
    return error


def make_row(question: BenchQuestion, run: Run | None, error: str | None) -> BenchRow:
    """The line of the results file; an error counts 0 throughout, and without gold there are no scores."""
    answer = run.answer if run is not None and error is None else None
    answers = answer_to_strings(answer)
    about = {
        name: getattr(question, name) for name in ("id", "hops", "type", "language", "dialogue")
    }
    about["turn"] = question.turn or None
    row: BenchRow = {name: value for name, value in about.items() if value is not None}
    if run is not None and run.settings.own_knowledge:
        row["source"] = "own knowledge" if answer is not None and answer.ungrounded else "the graph"
    row |= {"question": question.question, "answers": answers, "gold": question.gold}
    table = []
    if answer is not None and answer.columns:
        cells = (value.row for value in answer.values)
        table = [
            [None if cell is None else term_to_string(cell) for cell in line] for line in cells
        ]
        row["table"] = table
    if question.rows:
        row |= {"columns": question.columns, "gold_table": question.rows}
        row["by_column"] = score_columns(question.columns, question.rows, table)
    # What the vertices among gold and answers are called
    gold, values = question.answers or (), answer.values if answer else ()
    known = len(gold) == len(question.answer_labels)
    labels = dict(zip(gold, question.answer_labels, strict=True)) if known else {}
    labels |= {str(iri): name for iri, name in (answer.names if answer else ())}
    labels |= {str(value.term): value.label for value in values if not value.row}
    shown = {value for value in (*gold, *answers) if "://" in value}
    if labels := {value: label for value, label in labels.items() if value in shown}:
        row["labels"] = labels
    if question.answers is not None:
        row |= asdict(
            ZERO_SCORES if error is not None else score_answers(answers, question.answers, table)
        )
    if run is None:
        row |= {"seconds": 0.0, "model_calls": 0, "queries": 0}
    else:
        keys = dict.fromkeys(key for step in run.steps for key in step.calls)
        row |= sum_usage([run.calls[key] for key in keys if key in run.calls])
        row |= {
            "seconds": round(run.totals.seconds, 6),
            "stages": sum_seconds_by_stage(run.system, run.steps),
        }
        if linking := _count_linked(question, run):
            row["linking"] = linking
    return row | {"error": error}


def _count_linked(question: BenchQuestion, run: Run) -> BenchRow:
    """How many of the gold query's vertices and predicates a run linked, and had to choose from, if known."""
    known = run.system.gold
    gold = read_gold_query_of(question, run.kg) if known else None
    if known is None or gold is None:
        return {}
    links = known.linked(run)

    def counts(right: Set[str], linked: Set[str], offered: Set[str]) -> dict[str, int]:
        shares = {"gold": right, "linked": right & linked, "candidates": right & (linked | offered)}
        return {name: len(share) for name, share in shares.items()}

    return {
        "vertices": counts(gold.vertices, links.vertices, links.vertex_candidates),
        "predicates": counts(gold.predicates, links.predicates, links.predicate_candidates),
    }
