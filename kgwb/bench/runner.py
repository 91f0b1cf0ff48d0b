"""Asking a system every question of a set, and writing a row for each as it finishes.

A benchmark that was stopped continues where it was.
"""

from __future__ import annotations

import hashlib
import json
import platform
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

from kgwb.bench.cost import Budget, sum_usage
from kgwb.bench.questions import BenchQuestion, group_by_dialogue
from kgwb.bench.results import (
    RUNS_FOLDER,
    BenchRow,
    ResultRowSchema,
    Results,
    describe_config_changes,
    find_run_file,
    is_lost,
)
from kgwb.bench.rows import make_row, rescore_results
from kgwb.bench.tasks import (
    RunCanceller,
    Task,
    is_unreachable,
    raise_if_unreachable,
    run_tasks,
)
from kgwb.deprecated import RenamedAttribute
from kgwb.errors import BenchmarkStoppedError, InputError, InvalidReplyError, KgwbError
from kgwb.flow import Dialogue, Turn
from kgwb.llm.base import ChatModel
from kgwb.records import from_data, to_data
from kgwb.run import Run
from kgwb.run import Setup as RunSetup
from kgwb.run.agents import agent_of_key
from kgwb.run.calls import Call
from kgwb.run.differences import compare_steps
from kgwb.run.steps import Step
from kgwb.version import __version__

RECORDED_LIBRARIES = (
    "numpy ollama openai oxrdflib pydantic pyoxigraph rdflib sentence-transformers torch".split()
)
"""Libraries whose versions are stored with the results."""
MAX_FILE_NAME_CHARS = 150
MAX_UNREACHABLE_IN_A_ROW = 5
"""A benchmark stops after so many questions whose model or graph could not be reached.

With more workers it is their number, since a short failure meets all that are asked at the same time.
"""
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
                "this setup cannot be sent to other processes",
                hint="make it with BenchSetup.from_factory(function), whose function returns the setup",
            )
        return _rebuild_setup, (self.factory, json.dumps(self.to_config(), sort_keys=True))

    def to_config(self, questions: Sequence[BenchQuestion] = ()) -> dict[str, Any]:
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

    def _prompt_fingerprints(self) -> dict[str, str]:
        """Return the fingerprint of each prompt that the system may use, by its name.

        These are the prompts of the system and those of the shared entity linking.
        """
        prompts = self.prompts.for_system(self.system.prompts)
        names = sorted(self.system.prompt_names)
        return {name: fingerprint(prompts.text(name)) for name in names}

    config = RenamedAttribute("config", "to_config")
    made_by = RenamedAttribute("made_by", "from_factory")
    of = RenamedAttribute("of", "from_workbench")


@cache  # a setup that is sent to other processes needs them for every question
def _get_versions() -> dict[str, str]:
    """Return the versions of Python and of those RECORDED_LIBRARIES that are installed."""
    versions = {"python": platform.python_version()}
    for name in RECORDED_LIBRARIES:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    return versions


def _fingerprint_of(questions: Sequence[BenchQuestion]) -> str:
    """Return the fingerprint of all fields of all questions, which depends on their order."""
    lines = []
    for question in questions:
        data = question.model_dump()
        lines.append(json.dumps(data, ensure_ascii=False, separators=(",", ":")))
    return fingerprint("\n".join(lines))


_setups_by_config: dict[str, BenchSetup] = {}
_setups_lock = threading.Lock()


def _rebuild_setup(factory: Callable[[], BenchSetup], config: str) -> BenchSetup:
    """Return the setup that another process sent; a process makes it once.

    ``config`` is the sender's configuration as JSON. Raises InputError if the factory makes a setup
    of another configuration here.
    """
    with _setups_lock:
        if config not in _setups_by_config:
            setup = BenchSetup.from_factory(factory)
            changes = "; ".join(describe_config_changes(json.loads(config), setup.to_config()))
            if changes:
                raise InputError(
                    f"a worker process has another setup than this one: {changes}",
                    hint="let every worker have the same kgwb, graph, models and prompts",
                )
            _setups_by_config[config] = setup
        return _setups_by_config[config]


def fingerprint(text: str) -> str:
    """Return the first 16 hexadecimal digits of the SHA-256 of a text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


@dataclass(frozen=True)
class EarlierRuns:
    """Earlier results whose saved runs are reused: only calls that they lack are made."""

    folder: Path
    models: Mapping[str, ChatModel]
    """The models that made the earlier results. They are asked if ``repeats`` is above 1."""
    repeats: int = 1
    """How often calls that differ are made in all, before and after the change.

    Repeating shows which decisions vary without a change.
    """


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
    budget: Budget = field(default_factory=lambda: Budget({}))
    """With a limit, at most ``workers`` questions are asked at a time; it may be exceeded by these."""
    earlier_runs: EarlierRuns | None = None
    on_row: Callable[[BenchRow], object] = lambda row: None
    """Called with every row once it is written."""
    stop_reason: str = field(default="", init=False)
    """The limits that stopped the latest ``run``; empty if it asked all questions."""
    rescored: int = field(default=0, init=False)
    """How many answers were scored again, since the gold of their questions has changed."""
    _unreachable_in_a_row: int = field(default=0, init=False)
    """The questions, up to the latest one, whose model or graph could not be reached."""

    def run(self, questions: Sequence[BenchQuestion]) -> list[BenchRow]:
        """Ask the questions that have no row yet, within the budget.

        Answers to questions whose gold has changed are scored again first; nothing is asked for that.

        Returns the rows of all questions that have one. Raises KeyboardInterrupt and the first error
        that is not of a single question, such as InputError on a full disk; all finished rows are
        written. Raises BenchmarkStoppedError if the model or the graph could not be reached for
        MAX_UNREACHABLE_IN_A_ROW questions in a row.
        """
        self._unreachable_in_a_row = 0
        self.rescored += rescore_results(self.results, questions, self._load_finished_run)
        for row in self.results.rows_for(questions):
            self.budget.add(row)
        canceller = RunCanceller()
        run_tasks(
            (self._ask_dialogue(turns, canceller) for turns in group_by_dialogue(questions)),
            self.executor or self.workers,
            canceller,
            should_stop=lambda: self.budget.exhausted,
            max_pending=self.workers if self.budget.limits else None,
        )
        rows = self.results.rows_for(questions)
        self.stop_reason = self.budget.exhausted if len(rows) < len(questions) else ""
        return rows

    def _load_finished_run(self, row: BenchRow) -> Run | None:
        """Return the saved run of a row, executed from its record; None if that is not possible."""
        file = find_run_file(self.results.folder, row)
        if file is None:
            return None
        try:
            return Run.load(file, self.setup.system).go()
        except KgwbError:
            return None

    def _count_unreachable(self, row: BenchRow) -> None:
        """Count a row whose model or graph could not be reached; another row ends the count.

        Raises BenchmarkStoppedError at MAX_UNREACHABLE_IN_A_ROW, or at the number of workers if that
        is higher.
        """
        if not row.get("unreachable"):
            self._unreachable_in_a_row = 0
            return
        self._unreachable_in_a_row += 1
        if self._unreachable_in_a_row == max(MAX_UNREACHABLE_IN_A_ROW, self.workers):
            raise BenchmarkStoppedError(
                f"stopped after {self._unreachable_in_a_row} questions in a row that ended in: "
                f"{row['error']}",
                hint="give the same command again when the server is there: it asks these questions "
                "again, and goes on",
            )

    def _ask_dialogue(self, turns: Sequence[BenchQuestion], canceller: RunCanceller) -> Task:
        """Ask the turns of a dialogue that have no row, in order, and write their rows.

        A row holds what the dialogue remembers of its turn, so a dialogue can be continued. Raises
        InputError if a run could not be saved, after its row is written.
        """
        dialogue = Dialogue()
        folder = self.results.folder.resolve()
        for question in turns:
            row = self._find_finished_row(question)
            if row:
                turn = from_data(row.get("remembered"), Turn | None)
            else:
                row, turn, save_error = yield (
                    ask_question,
                    self.setup,
                    question,
                    dialogue,
                    folder,
                    self.save_runs,
                    canceller,
                    self.earlier_runs,
                )
                self.budget.add(row)
                self.results.append(row)
                self.on_row(row)
                if save_error:
                    raise save_error
                self._count_unreachable(row)
            if turn:
                dialogue = Dialogue((*dialogue.turns, turn))

    def _find_finished_row(self, question: BenchQuestion) -> BenchRow | None:
        """Return the row of a question; None if the question must be asked.

        A question is asked again if its model or graph could not be reached, if its run should be
        saved and could not be, or if it was repeated less often than wanted. A row with another error
        counts as finished.
        """
        row = self.results.rows.get(question.id)
        if row is None or row.get("unreachable"):
            return None
        if self.save_runs and row.get("run") == "":
            return None
        if self.earlier_runs and row.get("repeats", 1) < self.earlier_runs.repeats:
            return None
        return row


# --- one question


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
    folder: Path,
    save_runs: SaveRunsMode,
    canceller: RunCanceller,
    earlier: EarlierRuns | None = None,
) -> tuple[BenchRow, Turn | None, InputError | None]:
    """Ask one question.

    Returns its row, what a dialogue remembers of it if it was answered, and the error if its run
    could not be saved. A run of it that is in the folder and did not end is continued. With
    ``earlier``, recorded calls are reused, and the row says what the other calls cost (``paid``) and
    which agent varied (``varies``). Raises Cancelled.
    """
    file_name = run_file_path(question.id)
    kept_file = find_run_file(folder, {"run": file_name})
    earlier_file = find_run_file(earlier.folder, {"run": file_name}) if earlier else None
    run = None
    turn = None
    borrowed_keys: set[str] = set()
    try:
        run = setup.begin(question.question, dialogue)
        if earlier_file:
            run.resume(earlier_file, include_finished=True)
            borrowed_keys.update(run.calls)
            if kept_file:
                run.resume(kept_file, include_finished=True)
        error = _execute_from_record(run, kept_file, canceller)
        if error is None:
            turn = run.turn
        is_cut_off = is_unreachable(run.error)
    except KgwbError as exc:
        error = exc.message
        is_cut_off = is_unreachable(exc)
    row = _make_valid_row(question, run, error)
    if error is not None and is_cut_off:
        row["unreachable"] = True
    if question.dialogue is not None:
        row["remembered"] = to_data(turn, Turn | None)
    save_error = None
    if run and (save_runs is True or (save_runs and is_lost(row))):
        row["run"] = ""
        try:
            run.save(folder / file_name)
            row["run"] = file_name
        except InputError as exc:
            save_error = exc  # raised when the answer is written
    if run and earlier:
        own_calls = [call for key, call in run.calls.items() if key not in borrowed_keys]
        if earlier_file and earlier.repeats > 1:
            earlier_run = Run.load(earlier_file, setup.system, kg=setup.kg, models=earlier.models)
            agent_name, repeated_calls = _find_varying_agent(
                run, earlier_run, earlier.repeats, canceller
            )
            row["repeats"] = earlier.repeats
            row["varies"] = agent_name
            own_calls += repeated_calls
        row["paid"] = sum_usage(own_calls)
    return row, turn, save_error


def _make_valid_row(question: BenchQuestion, run: Run | None, error: str | None) -> BenchRow:
    """Return the row of a question, or one with an error if a results file cannot hold that.

    A server or a recording may report figures that are out of range.
    """
    row = make_row(question, run, error)
    try:
        ResultRowSchema.check_row(row)
    except ValueError as exc:
        return make_row(question, None, f"its result cannot be kept: {exc}")
    return row


def _execute_from_record(run: Run, kept_file: Path | None, canceller: RunCanceller) -> str | None:
    """Execute a run with the calls of a saved one. Returns the error that it ended in, or None.

    If all attempts of an agent were recorded and failed their checks, its model is asked again.
    """
    if kept_file:
        run.resume(kept_file)
    recorded_keys = set(run.calls)
    error = canceller.execute(run)
    if not isinstance(run.error, InvalidReplyError):
        return error
    if any(attempt.call not in recorded_keys for attempt in run.error.attempts):
        return error
    for step in run.steps:
        if step.error and step.attempts and not step.attempts[-1].accepted:
            run.refresh(step.key)
    return canceller.execute(run)


def _find_varying_agent(
    run: Run, earlier_run: Run, repeats: int, canceller: RunCanceller
) -> tuple[str, list[Call]]:
    """Find the agent whose decision varies when the same is asked again, with no change.

    Both runs, before and after the change, are executed ``repeats`` - 1 times more. Only steps whose
    model calls the other run does not have are executed anew. Returns the agent, "" if none varies,
    and the calls that were made.
    """
    canceller.execute(earlier_run)
    keys_of_run = _used_calls(run)
    keys_of_earlier_run = _used_calls(earlier_run)
    repeated_calls: list[Call] = []
    for repeated_run, other_keys in ((run, keys_of_earlier_run), (earlier_run, keys_of_run)):
        step_keys = _steps_with_other_calls(repeated_run, other_keys)
        if not step_keys:
            continue
        first_steps = repeated_run.steps_by_key
        for _ in range(repeats - 1):
            repeated_calls += _repeat_steps(repeated_run, step_keys, canceller)
            difference = compare_steps(first_steps, repeated_run.steps_by_key).first_difference
            if difference:
                return agent_of_key(difference.key), repeated_calls
    return "", repeated_calls


def _used_calls(run: Run) -> set[str]:
    """Return the keys of the calls that the run's steps used.

    Steps that failed count, too.
    """
    keys: set[str] = set()
    for step in run.steps:
        keys.update(step.calls)
    return keys


def _steps_with_other_calls(run: Run, other_keys: set[str]) -> list[str]:
    """Return the keys of the steps that made a model call that is not among ``other_keys``."""

    def has_other_call(step: Step) -> bool:
        own_keys = [key for key in step.calls if key not in other_keys]
        return any(run.calls[key].kind == "model" for key in own_keys)

    return [step.key for step in run.steps if has_other_call(step)]


def _repeat_steps(run: Run, step_keys: Sequence[str], canceller: RunCanceller) -> list[Call]:
    """Execute a run with these steps anew. Returns the calls that were made.

    Steps that the run does not have are ignored.

    Raises the error if the model or the graph cannot be reached.
    """
    known_calls = dict(run.calls)
    for key in step_keys:
        if key in run.steps_by_key:
            run.refresh(key)
    canceller.execute(run)
    raise_if_unreachable(run)
    return [call for key, call in run.calls.items() if known_calls.get(key) is not call]
