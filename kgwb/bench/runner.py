"""Asking a system every question of a set, and writing a row for each as it finishes.

Questions are asked in parallel, by threads or by any executor, and an interrupt cancels them. A benchmark
that was stopped continues where it was.
"""

from __future__ import annotations

import hashlib
import json
import platform
import threading
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Literal, NamedTuple
from urllib.parse import quote

from kgwb.background import shielded
from kgwb.bench.assertions import resolve_assertions
from kgwb.bench.cost import (
    Budget,
    add_usage,
    list_served_models,
    merge_versions,
    sum_usage,
)
from kgwb.bench.questions import BenchQuestion, find_topic, group_by_dialogue
from kgwb.bench.results import (
    ALIKE,
    RUNS_FOLDER,
    SEED_IGNORED,
    BenchRow,
    ResultRowSchema,
    Results,
    add_remembered_turn,
    describe_config_changes,
    describe_reading,
    find_run_file,
    is_lost,
    make_row,
    rescore_results,
    scores_of_row,
)
from kgwb.disk import __version__
from kgwb.errors import (
    BenchmarkStoppedError,
    Cancelled,
    GraphUnreachableError,
    InputError,
    InvalidReplyError,
    KeyRefusedError,
    KgwbError,
    ModelUnreachableError,
)
from kgwb.llm.base import seed_of_repeat
from kgwb.llm.remote import announce_models
from kgwb.records import JsonObject, encode_compact, frozen, to_data
from kgwb.run import Run
from kgwb.run import Setup as RunSetup
from kgwb.run.agents import agent_of_key
from kgwb.run.answers import Dialogue, Turn
from kgwb.run.models import request_of_call
from kgwb.run.steps import Call, used_calls
from kgwb.run.store import CallStore, find_store
from kgwb.settings import Settings
from kgwb.text import pluralize

Task = Generator[tuple[Any, ...], Any, None]
"""Yields calls, each a function with its arguments, one after another, and is sent each result."""


class RunCanceller:
    """Knows the runs that this process is executing, so that an interrupt can cancel them.

    When it is sent to another process, it becomes a new one there.
    """

    def __init__(self) -> None:
        self.cancelled = threading.Event()
        self.running_runs: set[Run] = set()

    def __reduce__(self) -> tuple[type[RunCanceller], tuple[()]]:
        return RunCanceller, ()

    def cancel_all(self) -> None:
        """Cancel the runs that are being executed, and all that would be executed later."""
        self.cancelled.set()
        for run in list(self.running_runs):
            run.cancel()

    def execute(self, run: Run) -> str | None:
        """Execute a run to its end, and return the message of the error that it ended in, or None.

        Exceptions other than KgwbError are bugs, and are returned as an error of this run, so that
        the other questions are still asked. Raises Cancelled if the run or all runs were cancelled.
        """
        self.running_runs.add(run)
        try:
            if self.cancelled.is_set():
                raise Cancelled
            run.go_explained()
        except KgwbError as exc:
            return exc.without_hint
        except Exception as exc:  # noqa: BLE001  # see above
            return f"{type(exc).__name__}: {exc}"
        finally:
            self.running_runs.discard(run)
        if run.status == "cancelled":
            raise Cancelled
        return None


UNREACHABLE_ERRORS = (ModelUnreachableError, GraphUnreachableError, KeyRefusedError)
"""The model or the graph could not be reached, or the key is refused: this says nothing about a run's agents."""


def raise_if_unreachable(run: Run) -> None:
    """Raise the run's error if the model or the graph could not be reached."""
    if isinstance(run.error, UNREACHABLE_ERRORS):
        raise run.error


def run_tasks(
    tasks: Iterable[Task],
    executor: Executor | int,
    canceller: RunCanceller,
    should_stop: Callable[[], object] = lambda: False,
    max_pending: int | None = None,
) -> None:
    """Make the calls of all tasks on an executor, or on a number of threads, and return when all are done.

    A task is a generator: it yields the function to call with its arguments, and is sent the
    result. The calls of one task are made one after another, and the tasks themselves are executed
    on one thread. At most ``max_pending`` calls are made at the same time. Once ``should_stop()``
    is true, no further call begins, and the function returns when the pending ones are done. Raises
    the first error of a call or a task; before that, waiting calls and the runs of the canceller
    are cancelled.
    """
    waiting_tasks = iter(tasks)
    finished: SimpleQueue[Future[Any]] = SimpleQueue()
    pending: dict[Future[Any], Task] = {}

    def submit_next_call(pool: Executor, task: Task, result: Any = None) -> None:
        """Send a task the result of its last call, and submit the call that it yields next to the pool.

        Nothing is submitted if the task has ended or ``should_stop()`` is true. ``result`` is None
        at first.
        """
        try:
            call = task.send(result)
        except StopIteration:
            return
        if not should_stop():
            future = pool.submit(*call)
            pending[future] = task
            future.add_done_callback(finished.put)

    def submit_waiting_tasks(pool: Executor) -> None:
        """Start tasks until none is left, or ``max_pending`` calls are pending."""
        while max_pending is None or len(pending) < max_pending:
            task = next(waiting_tasks, None)
            if task is None:
                return
            submit_next_call(pool, task)

    def run_or_cancel() -> None:
        """Start tasks and continue each when its call ends, until no call is pending.

        After any exception, cancel waiting calls and running runs, and raise it.
        """
        with _pool_of(executor) as pool:
            try:
                submit_waiting_tasks(pool)
                while pending:
                    future = finished.get()
                    submit_next_call(pool, pending.pop(future), future.result())
                    submit_waiting_tasks(pool)
            except BaseException:
                for future in list(pending):
                    future.cancel()
                canceller.cancel_all()
                raise

    shielded(run_or_cancel, on_abandon=canceller.cancel_all)


def _pool_of(executor: Executor | int) -> AbstractContextManager[Executor]:
    """Return a context manager with a pool: new threads, which end with the block, or the given executor.

    The given executor is not shut down.
    """
    if isinstance(executor, int):
        return ThreadPoolExecutor(executor, "kgwb-bench")
    return nullcontext(executor)


RECORDED_LIBRARIES = (
    "numpy ollama openai oxrdflib pydantic pyoxigraph rdflib sentence-transformers torch".split()
)
"""Libraries whose versions are stored with the results."""
MAX_FILE_NAME_CHARS = 150
MAX_UNREACHABLE_IN_A_ROW = 5
"""A benchmark stops after so many questions whose model or graph could not be reached.

With more workers it is their number, since a short failure meets all that are asked at the same time.
"""
MAX_SEED_PROBES = 5
"""A benchmark sends so many requests once more at most, to see whether a server ignores seeds."""
SaveRunsMode = bool | Literal["lost"]


@dataclass(frozen=True)
class BenchSetup(RunSetup):
    """What is measured: a system with its models and settings, on a graph."""

    factory: Callable[[], BenchSetup] | None = None
    """Makes the same setup in another process, since graphs and models cannot be sent there."""

    @classmethod
    def from_workbench(cls, workbench: Any) -> BenchSetup:
        """Return the setup of a ``kgwb.Workbench``."""
        return cls(**vars(workbench.setup))

    @classmethod
    def from_factory(cls, factory: Callable[[], BenchSetup]) -> BenchSetup:
        """Return a setup that can be sent to other processes, which make it again by ``factory()``."""
        return replace(factory(), factory=factory)

    def __reduce__(self) -> tuple[Callable[..., BenchSetup], tuple[object, ...]]:
        """Send the factory and the configuration to another process.

        Raises InputError without a factory.
        """
        if self.factory is None:
            raise InputError(
                "this BenchSetup cannot be used with several worker processes, since it holds open objects",
                hint="make it with BenchSetup.from_factory(function), whose function returns the setup",
            )
        return _rebuild_setup, (self.factory, json.dumps(self.to_config(), sort_keys=True))

    def to_config(self, questions: Sequence[BenchQuestion] = ()) -> JsonObject:
        """Return everything that results depend on, as JSON data by name.

        These are kgwb's version, graph, system, models, embeddings, prompts, settings, questions,
        and the versions of libraries. Graph, prompts and questions are represented by fingerprints.
        """
        return {
            "kgwb": __version__,
            "kg": self.kg.identity,
            "source": self.kg.source,
            "system": self.system.name,
            "models": {name: model.name for name, model in self.models.items()},
            "embeddings": self.embeddings.name,
            "prompts": self._prompt_fingerprints(),
            "settings": self.settings.to_data(),
            "questions": {"count": len(questions), "fingerprint": _fingerprint_of(questions)},
            "versions": _get_versions(),
        }

    def for_repeat(self, number: int) -> BenchSetup:
        """Return the setup with the seed of a repeat; 0 is the first ask."""
        seed = seed_of_repeat(self.settings.seed, number)
        return replace(self, settings=self.settings.with_changes(seed=seed))

    def _prompt_fingerprints(self) -> dict[str, str]:
        """Return the fingerprint of each prompt that the system may use, by its name.

        These are the prompts of the system and those of the shared entity linking.
        """
        prompts = self.prompts.for_system(self.system.prompts)
        fingerprints = {}
        for name in sorted(self.system.prompt_names):
            text = prompts.text(name)
            fingerprints[name] = fingerprint(text)
        return fingerprints


def check_repeats(settings: Settings, repeats: int, given_settings: Collection[str] = ()) -> None:
    """Raise InputError for several asks at temperature 0, unless a person has given the temperature.

    At temperature 0 a model gives the same reply with each seed, so that the repeats would say
    nothing. ``given_settings`` are the names of the settings that were given.
    """
    if repeats > 1 and not settings.temperature and "temperature" not in given_settings:
        raise InputError(
            "the questions are not repeated: the setting temperature is 0, at which a model gives "
            "the same reply each time",
            hint="measure with --set temperature=0.7; or give --set temperature=0 to repeat them "
            "all the same, for a server that varies by itself or a pipeline with models of its own",
        )


@cache  # a setup that is sent to other processes needs them for every question
def _get_versions() -> dict[str, str]:
    """Return the versions of Python and of those RECORDED_LIBRARIES that are installed."""
    versions = {"python": platform.python_version()}
    for name in RECORDED_LIBRARIES:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    return versions


def _fingerprint_of(questions: Sequence[BenchQuestion]) -> str:
    """Return the fingerprint of all fields of all questions; it depends on their order.

    Those are left out that change neither what is asked nor the scores, such as ``right`` and tags.
    """
    lines = []
    for question in questions:
        data = question.model_dump(exclude={"right", "tags", "split", "assertions"})
        lines.append(encode_compact(data))
    return fingerprint("\n".join(lines))


_setups_by_config: dict[str, BenchSetup] = {}
_setups_lock = threading.Lock()


def _rebuild_setup(factory: Callable[[], BenchSetup], config: str) -> BenchSetup:
    """Return the setup that another process sent, made by ``factory`` once in this process.

    ``config`` is the sender's configuration as JSON. Raises InputError if the factory makes a setup
    of another configuration here.
    """
    with _setups_lock:
        if config not in _setups_by_config:
            setup = BenchSetup.from_factory(factory)
            changes = "; ".join(describe_config_changes(json.loads(config), setup.to_config()))
            if changes:
                raise InputError(
                    f"the setup of a worker process differs from this one: {changes}",
                    hint="use the same version of kgwb, graph, models and prompts in every worker",
                )
            _setups_by_config[config] = setup
        return _setups_by_config[config]


def fingerprint(text: str) -> str:
    """Return the first 16 hexadecimal digits of the SHA-256 of a text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


@frozen
class EarlierRuns:
    """Earlier results that are compared with what is asked now."""

    folder: Path
    rows: Mapping[str, BenchRow]
    """By question id."""
    setup: BenchSetup | None = None
    """The setup that was measured; it is asked if questions are repeated."""


@frozen
class AskPlaces:
    """Where calls come from when a question is asked, and where its run is kept."""

    folder: Path
    """The results folder."""
    store: Path
    """The store of calls. What it has is not asked again."""
    save_runs: SaveRunsMode = False
    asks_readings: bool = False
    """Whether each reading that an answer offers is asked, too."""
    earlier_folder: Path | None = None
    """A results folder whose saved runs supply calls, too: it may be older than its store."""


@dataclass
class Benchmark:
    """Asks the questions that have no row yet.

    The turns of a dialogue are asked in order; dialogues and single questions in parallel.
    """

    setup: BenchSetup
    results: Results
    _: KW_ONLY
    workers: int = 1
    executor: Executor | None = None
    """Makes the calls instead of threads. One of other processes needs ``BenchSetup.from_factory``."""
    save_runs: SaveRunsMode = False
    """Saves every run, or with "lost" those whose answer is not right.

    They are saved in the results folder, which all machines must share.
    """
    asks_readings: bool = False
    """Whether the question is asked again as each other reading has it that its answer offers."""
    budget: Budget = field(default_factory=lambda: Budget({}))
    """With a limit, at most ``workers`` questions are asked at a time; it may be exceeded by these."""
    earlier_runs: EarlierRuns | None = None
    store: Path | None = None
    """The store of calls; by default that of the earlier results, or of the results folder."""
    repeats: int = 1
    """How often a question is asked in all, to see how often it comes out right.

    After earlier results these are only questions that come out otherwise, and these are asked with
    the earlier setup as often.
    """
    on_row: Callable[[BenchRow], object] = lambda row: None
    """Called with every row once it is written."""
    stop_reason: str = field(default="", init=False)
    """The limits that stopped the latest ``run``; empty if it asked all questions."""
    rescored: int = field(default=0, init=False)
    """How many answers were scored again, since the gold of their questions has changed."""
    made_calls: int = field(default=0, init=False)
    """How many model calls were made."""
    reused_calls: int = field(default=0, init=False)
    """How many model calls came from the store in place of being made."""
    _unreachable_in_a_row: int = field(default=0, init=False)
    """The questions, up to the latest one, whose model or graph could not be reached."""
    _seed_probes: int = field(default=MAX_SEED_PROBES, init=False)
    """How many further questions may show that the model's server ignores seeds."""

    def run(self, questions: Sequence[BenchQuestion]) -> list[BenchRow]:
        """Ask the questions that have no row yet, within the budget, and return the rows of all that have one.

        Answers to questions whose gold has changed are scored again first; nothing is asked for
        that. What leaves the machine with hosted models is said before the first question. Each row
        is written as it is finished. If the budget stops it, ``stop_reason`` has the limits. Raises
        KeyboardInterrupt and the first error that is not of a single question, such as InputError
        on a full disk; all finished rows are written. Raises BenchmarkStoppedError if the model or
        the graph could not be reached for MAX_UNREACHABLE_IN_A_ROW questions in a row, or the
        model's server refuses the key.
        """
        self._unreachable_in_a_row = 0
        self._places = self._find_places()
        questions = resolve_assertions(questions, self.setup.kg)
        self.rescored += rescore_results(self.results, questions, self._load_finished_run)
        for row in self.results.rows_for(questions):
            self.budget.add(row, self.results.folder)
        is_finished = len(self.results.rows_for(questions)) == len(questions)
        if not is_finished:
            announce_models(self.setup.models.values(), self.setup.kg)
        canceller = RunCanceller()
        # An executor of other machines has workers of its own, which are to have something to do
        may_wait = self.executor is not None and not self.budget.limits
        with closing(self.results), nullcontext() if is_finished else self._store_kept_open():
            run_tasks(
                (self._ask_dialogue(turns, canceller) for turns in group_by_dialogue(questions)),
                self.executor or self.workers,
                canceller,
                should_stop=lambda: self.budget.exhausted,
                max_pending=None if may_wait else self.workers,
            )
        rows = self.results.rows_for(questions)
        self.stop_reason = ""
        if len(rows) < len(questions):
            self.stop_reason = self.budget.exhausted
        return rows

    def describe_calls(self) -> str:
        """Return a sentence with the model calls made and, if there are any, those taken from the store."""
        text = f"{pluralize(self.made_calls, 'model call')} made"
        if self.reused_calls:
            text += f", {self.reused_calls} taken from {self._places.store}"
        return text

    @contextmanager
    def _store_kept_open(self) -> Iterator[None]:
        """Keep the store of calls open inside the block: opening it for each question takes long.

        Not if other processes ask. Raises InputError if it cannot be opened.
        """
        if self.executor is not None:
            yield
            return
        with CallStore(self._places.store, self.setup.kg.identity):
            yield

    def _find_places(self) -> AskPlaces:
        """Return where calls come from, and where runs are kept, for all questions.

        The store is the given one, else that of the earlier results, else that of the results
        folder.
        """
        folder = self.results.folder.resolve()
        earlier_folder = None
        if self.earlier_runs:
            earlier_folder = self.earlier_runs.folder.resolve()
        store = self.store or find_store(earlier_folder or folder)
        return AskPlaces(folder, store, self.save_runs, self.asks_readings, earlier_folder)

    def _load_finished_run(self, row: BenchRow) -> Run | None:
        """Replay the saved run of a row, and return it; None if there is none, or if that fails."""
        file = find_run_file(self.results.folder, row)
        if file is None:
            return None
        with suppress(KgwbError):
            run = Run.load(file, self.setup.system)
            return run.go_explained()
        return None

    def _count_unreachable(self, row: BenchRow) -> None:
        """Count rows in a row whose model or graph could not be reached; any other row ends the count.

        Raises BenchmarkStoppedError at MAX_UNREACHABLE_IN_A_ROW, or at the number of workers if
        that is higher; and at the first row whose key was refused.
        """
        if not row.get("unreachable"):
            self._unreachable_in_a_row = 0
            return
        self._unreachable_in_a_row += 1
        is_over = self._unreachable_in_a_row == max(MAX_UNREACHABLE_IN_A_ROW, self.workers)
        if is_over or row.get("key_refused"):
            asked = pluralize(self._unreachable_in_a_row, "question")
            raise BenchmarkStoppedError(
                f"the benchmark stopped, since {asked} in a row ended in the error: {row['error']}",
                hint="give the same command again when the server can be reached and takes the key: "
                "it asks these questions again, and continues",
            )

    def _ask_dialogue(self, turns: Sequence[BenchQuestion], canceller: RunCanceller) -> Task:
        """Ask the turns of a dialogue that have no row, in order, and write their rows; a task for ``run_tasks``.

        A row holds what the dialogue remembers of its turn, so a dialogue can be continued. Turns
        are repeated where that is wanted. Raises InputError if a run could not be saved, after its
        row is written.
        """
        dialogue = Dialogue()
        earlier_dialogue = Dialogue()
        for question in turns:
            row = self._find_finished_row(question)
            if row:
                row = yield from self._repeat(question, row, dialogue, earlier_dialogue, canceller)
            else:
                asks_invalid_again = question.id in self.results.dropped_ids
                row, save_error = yield (
                    ask_question,
                    self.setup,
                    question,
                    dialogue,
                    self._places,
                    canceller,
                    asks_invalid_again,
                )
                self._add_row(row)
                if save_error:
                    raise save_error
                self._count_unreachable(row)
                row = yield from self._repeat(question, row, dialogue, earlier_dialogue, canceller)
                self.on_row(row)
            dialogue = add_remembered_turn(dialogue, row)
            if self.earlier_runs:
                earlier_row = self.earlier_runs.rows.get(question.id)
                earlier_dialogue = add_remembered_turn(earlier_dialogue, earlier_row)

    def _add_row(self, row: BenchRow) -> None:
        """Add what was paid for a row to the budget and to the counts of calls, and write the row."""
        self.budget.add(row, self.results.folder)
        with suppress(InputError):  # a model without a price
            row["money"] = self.budget.prices.compute_money(row)
        paid = row.get("paid", row)["model_calls"]
        self.made_calls += paid
        self.reused_calls += max(0, row["model_calls"] - paid)
        self.results.append(row)

    def _repeat(
        self,
        question: BenchQuestion,
        row: BenchRow,
        dialogue: Dialogue,
        earlier_dialogue: Dialogue,
        canceller: RunCanceller,
    ) -> Generator[tuple[Any, ...], Any, BenchRow]:
        """Ask a question as often as it must be repeated, write its row again, and return the row.

        After earlier results, only a question that comes out otherwise is repeated, with both
        setups. A row that needs no repeats is returned as it is, and not written. It yields calls
        for ``run_tasks``.
        """
        if not self._needs_repeats(row):
            return row
        setups = [("asks", self.setup, dialogue)]
        if self.earlier_runs and self.earlier_runs.setup:
            setups.append(("asks_before", self.earlier_runs.setup, earlier_dialogue))
        row = dict(row)
        paid = row.get("paid", _usage_of_row(row))
        seeds = set()
        for name, setup, turns in setups:
            repeated = yield (
                repeat_question,
                setup,
                question,
                turns,
                self._places,
                self.repeats,
                canceller,
                self._seed_probes > 0,
            )
            if not repeated.seeds:
                self._seed_probes -= 1
            row[name] = repeated.asks
            usage = sum_usage(repeated.made_calls)
            self.budget.add(usage)
            self.made_calls += usage["model_calls"]
            paid = add_usage(paid, usage)
            seeds.add(repeated.seeds)
            served = list_served_models(repeated.made_calls)
            if name == "asks" and served:
                row["served"] = merge_versions(row.get("served", {}), served)
        row["paid"] = paid
        if SEED_IGNORED in seeds:
            self._seed_probes = 0
            row["seeds"] = SEED_IGNORED
        elif seeds == {ALIKE}:
            row["seeds"] = ALIKE
        self.results.append(row)
        return row

    def _needs_repeats(self, row: BenchRow) -> bool:
        """Return whether a question must be asked more often than its row says.

        Never without gold, after an error, with ``repeats`` 1, or if it was asked often enough.
        After earlier results, only if exactly one of the two answers is lost.
        """
        if row["gold"] is None or row["error"] is not None:
            return False
        if self.repeats == 1 or len(row.get("asks", ())) >= self.repeats:
            return False
        if self.earlier_runs is None:
            return True
        earlier_row = self.earlier_runs.rows.get(row["id"])
        if earlier_row is None or earlier_row["error"] is not None:
            return False
        return is_lost(earlier_row) != is_lost(row)

    def _find_finished_row(self, question: BenchQuestion) -> BenchRow | None:
        """Return the row of a question; None if the question must be asked.

        It must be asked without a row, if its model or graph could not be reached, or if its run
        should be saved and could not be. A row with another error counts as finished.
        """
        row = self.results.rows.get(question.id)
        if row is None or row.get("unreachable"):
            return None
        if self.save_runs and row.get("run") == "":
            return None
        return row


# --- one question


def begin_question(setup: RunSetup, question: BenchQuestion, dialogue: Dialogue) -> Run:
    """Return a new run of a question, with its topic entity put in if the system takes it from the question set.

    Raises what ``Setup.begin`` raises.
    """
    run = setup.begin(question.question, dialogue)
    if setup.system.give_topic:
        setup.system.give_topic(run, partial(find_topic, question, setup.kg))
    return run


def run_file_path(question_id: str) -> str:
    """Return the path of a question's saved run, inside the results folder.

    A long id is cut, and its fingerprint added. Characters that a file's name cannot have are
    percent-encoded.
    """
    name = quote(question_id.encode("utf-8", "surrogatepass"), safe="")
    if len(name) > MAX_FILE_NAME_CHARS:
        ending = f"-{fingerprint(question_id)}"
        name = name[: MAX_FILE_NAME_CHARS - len(ending)] + ending
    return f"{RUNS_FOLDER}/{name}.jsonl"


def ask_question(  # a function with arguments, since executors take no closures
    setup: BenchSetup,
    question: BenchQuestion,
    dialogue: Dialogue,
    places: AskPlaces,
    canceller: RunCanceller,
    asks_invalid_again: bool = False,
) -> tuple[BenchRow, InputError | None]:
    """Ask one question. Calls that the store has, or a saved run of it, are not made again.

    Returns its row, and the error if its run or its calls could not be saved. If ``places`` asks for
    readings, the row has the answers of those that were offered; what they cost is in ``paid``. The row of a dialogue's
    turn has what is remembered of it. If calls were not made again, the row says what the others cost
    (``paid``). With ``asks_invalid_again``, an agent whose recorded replies were all invalid is asked
    again. Raises Cancelled, and InputError if the store cannot be opened.
    """
    run = None
    turn = None
    readings: list[BenchRow] | None = None
    with open_store(setup, question, places) as store:
        try:
            run = begin_question(setup, question, dialogue)
            run.use_store(store)
            error = canceller.execute(run)
            if asks_invalid_again and _has_recorded_invalid_replies(run, store):
                error = _ask_invalid_again(run, canceller)
            if error is None:
                turn = run.turn
                if places.asks_readings:
                    readings = list(_ask_readings(run, canceller))
            cause: BaseException | None = run.error
        except KgwbError as exc:
            error = exc.message
            cause = exc
    paid = None
    if store.reused_keys or places.earlier_folder or readings:
        paid = sum_usage(store.made_calls)
    row = _make_valid_row(question, run, error, paid)
    if readings is not None:
        row["readings"] = readings
    if error is not None and isinstance(cause, UNREACHABLE_ERRORS):
        row["unreachable"] = True
        row["key_refused"] = isinstance(cause, KeyRefusedError)
    if question.dialogue is not None:
        row["remembered"] = to_data(turn, Turn | None)
    save_error = store.error
    if run and (places.save_runs is True or (places.save_runs and is_lost(row))):
        file_name = run_file_path(question.id)
        row["run"] = ""
        try:
            run.save(places.folder / file_name)
            row["run"] = file_name
        except InputError as exc:
            save_error = exc  # raised when the answer is written
    return row, save_error


@contextmanager
def open_store(
    setup: BenchSetup, question: BenchQuestion, places: AskPlaces
) -> Iterator[CallStore]:
    """Open the store inside the ``with`` block, with the calls of the question's saved runs added to it.

    These are the runs in the earlier results and in the results folder. Raises InputError if the
    store cannot be opened.
    """
    with CallStore(places.store, setup.kg.identity) as store:
        run_row = {"run": run_file_path(question.id)}
        for folder in (places.earlier_folder, places.folder):
            file = find_run_file(folder, run_row) if folder else None
            if file:
                store.add_run_file(file)
        yield store


class Repeats(NamedTuple):
    """What came of a question that was asked several times."""

    asks: list[dict[str, float] | None]
    """The scores of each ask; None after an error."""
    made_calls: list[Call]
    seeds: str
    """ALIKE, SEED_IGNORED, or "" if there is nothing to say of the seeds."""


def repeat_question(
    setup: BenchSetup,
    question: BenchQuestion,
    dialogue: Dialogue,
    places: AskPlaces,
    times: int,
    canceller: RunCanceller,
    probes_seed: bool = False,
) -> Repeats:
    """Ask a question ``times`` times in all, each time with another seed and as if nothing had been asked.

    The store has the first ask, and all that were made before. With ``probes_seed``, the last call
    that was made is sent once more with the same seed if the replies differ. Raises Cancelled, the
    error if the model or the graph cannot be reached, and InputError if the store cannot be used.
    """
    asks: list[dict[str, float] | None] = []
    made_calls: list[Call] = []
    replies = []
    for ask in range(times):
        with CallStore(places.store, setup.kg.identity, ask) as store:
            run = begin_question(setup.for_repeat(ask), question, dialogue)
            run.use_store(store)
            error = canceller.execute(run)
            made_calls += store.made_calls
        raise_if_unreachable(run)
        if store.error:
            raise store.error
        row = make_row(question, run, error)
        asks.append(scores_of_row(row) if error is None else None)
        calls = used_calls(run.steps, run.calls)
        replies.append([call.result.text for call in calls if call.kind == "model"])
    seeds = ""
    if replies[0] and replies.count(replies[0]) == times:
        seeds = ALIKE
    elif probes_seed and _is_seed_ignored(run, made_calls, canceller):
        seeds = SEED_IGNORED
    return Repeats(asks, made_calls, seeds)


def _is_seed_ignored(run: Run, made_calls: list[Call], canceller: RunCanceller) -> bool:
    """Send the last model call that was made again, with its seed, and return whether the reply differs.

    The new call is added to those that were made. Only a model behind a server is asked; a pipeline's
    own client is not.
    """
    model_calls = [call for call in made_calls if call.kind == "model"]
    if not model_calls:
        return False
    call = model_calls[-1]
    model = run.model_for(agent_of_key(call.step))
    if model is None or not model.remote or "options" in call.request["content"]:
        return False
    reply = model.complete(request_of_call(call), run.kg.inner, canceller.cancelled)
    made_calls.append(replace(call, result=reply))
    return bool(reply.text != call.result.text)


def _make_valid_row(
    question: BenchQuestion, run: Run | None, error: str | None, paid: JsonObject | None
) -> BenchRow:
    """Return the row of a question; if a results file cannot hold it, a row with that as the error.

    A server or a recording may report figures that are out of range. ``paid`` is what the calls
    cost that were made; None if these are all.
    """
    row = make_row(question, run, error)
    if paid is not None:
        row["paid"] = paid
    try:
        ResultRowSchema.check_row(row)
    except ValueError as exc:
        return make_row(question, None, f"its result cannot be kept: {exc}")
    return row


def _ask_readings(run: Run, canceller: RunCanceller) -> Iterator[BenchRow]:
    """Ask a question as each reading has it that its answer offers, and yield what was answered.

    Only the steps that depend on the reading make calls. Raises Cancelled, and the error if the
    model or the graph cannot be reached.
    """
    for number, reading in enumerate(run.readings, 1):
        fork = run.read_as(number)
        error = canceller.execute(fork)
        raise_if_unreachable(fork)
        yield describe_reading(reading, fork, error)


def _usage_of_row(row: BenchRow) -> JsonObject:
    """Return what the question of a row used, in the form of ``sum_usage``."""
    return {name: row[name] for name in sum_usage(()) if name in row}


def _has_recorded_invalid_replies(run: Run, store: CallStore) -> bool:
    """Return whether a run failed because all attempts of an agent were invalid, and all came from the record."""
    if not isinstance(run.error, InvalidReplyError):
        return False
    made_keys = {call.key for call in store.made_calls}
    return not any(attempt.call in made_keys for attempt in run.error.attempts)


def _ask_invalid_again(run: Run, canceller: RunCanceller) -> str | None:
    """Execute a run again, with new replies for the steps whose attempts were all invalid.

    Returns the message of the error that it ended in, or None. Raises Cancelled.
    """
    for step in run.steps:
        if step.error and step.attempts and not step.attempts[-1].accepted:
            run.refresh(step.key)
    return canceller.execute(run)
