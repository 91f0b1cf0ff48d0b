"""What a run leaves behind: calls, attempts and steps as data, their file, and the difference of two runs.

The file is JSON lines; ``docs/run_format.md`` describes it for other programs.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from kgwb import disk
from kgwb.display import Shown
from kgwb.errors import RunFileError
from kgwb.flow import Iri, Triple, decision, from_data, to_data
from kgwb.kg.base import Found, Rows
from kgwb.llm.base import ChatReply

FORMAT = 1
"""Version of the run file; a change that old programs cannot read raises it."""

DAMAGED = (LookupError, ValueError, TypeError, AttributeError, ArithmeticError, RecursionError)
"""What comes of a file whose entries have not their form, or do not fit together."""

Origin = Literal["live", "record", "by hand"]

FORMS: dict[str, Any] = {
    "model": ChatReply,
    "select": Rows,
    "ask": bool,
    "construct": tuple[Triple, ...],
    "search": Found,
    "exact": dict[str, tuple[Iri, ...]],
    "names": dict[Iri, str],
    "similarity": tuple[float, ...],
    "nearest": tuple[tuple[int, float], ...],
}
"""What each kind of call yields; ``Run.call`` adds the kinds of systems."""
BUILT_IN = frozenset(FORMS)

QUERIES = frozenset({"select", "ask", "construct"})
SEARCHES = frozenset({"search", "exact"})


@dataclass(slots=True)
class Call:
    """One thing that cost, varied or could fail: a model call, a graph query, a similarity."""

    key: str
    kind: str
    step: str
    """Key of the step that first made it."""
    request: Mapping[str, Any]
    """JSON data; with kind and repeat it decides whether the result may be used again."""
    repeat: int
    result: Any
    taken_at: str
    """UTC, ISO 8601."""
    seconds: float

    def to_data(self) -> dict[str, Any]:
        return {
            "key": self.key,
            "kind": self.kind,
            "step": self.step,
            "request": self.request,
            "repeat": self.repeat,
            "reply": to_data(self.result, FORMS.get(self.kind)),
            "taken_at": self.taken_at,
            "seconds": round(self.seconds, 6),
        }

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Call:
        """The call of its file form; a key that does not fit the content is a ValueError."""
        kind, request, repeat = data["kind"], data["request"], data["repeat"]
        key = call_key(kind, request, repeat)
        if key != data["key"]:
            raise ValueError(f"call {data['key']} does not have the content its key says")
        result = from_data(data["reply"], FORMS.get(kind, Any))
        step, taken_at, seconds = from_data(
            (data["step"], data["taken_at"], data["seconds"]), tuple[str, str, float]
        )
        return cls(
            key, kind, step, from_data(request, dict[str, Any]), repeat, result, taken_at, seconds
        )


_canonical = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, check_circular=False
).encode
_compact = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode


def call_key(kind: str, request: Mapping[str, Any], repeat: int) -> str:
    """SHA-256 (hex) of the canonical JSON of a call's content."""
    text = _canonical([kind, request, repeat])
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def now() -> str:
    """The present time, UTC, ISO 8601 with milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The outcome of one named check on one reply."""

    name: str
    problem: str = ""
    """Empty if the check passed."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One reply of a model with the checks it went through; those after a failed one may not have run."""

    call: str
    """Key of the model call; its content and reply are the call's."""
    reply: str
    checks: tuple[CheckResult, ...]

    @property
    def accepted(self) -> bool:
        return not any(check.problem for check in self.checks)


@dataclass(slots=True, repr=False)
class Step(Shown):
    """One agent at work once: what came in, what came out, and everything it asked for."""

    key: str
    agent: str
    subject: str
    parent: str
    """Key of the supervising step; empty at the top."""
    inputs: Mapping[str, Any]
    form: Any
    """The type of the output."""
    output: Any = None
    done: bool = False
    origin: Origin = "record"
    calls: list[str] = field(default_factory=list)
    """Keys of the calls, in the order they were used; those of supervised steps are theirs."""
    live_calls: int = 0
    attempts: list[Attempt] = field(default_factory=list)
    prompts: list[str] = field(default_factory=list)
    """Names of the prompt files used."""
    notes: list[str] = field(default_factory=list)
    """What the agent wants the person to know: a result cut, a fallback taken."""
    seconds: float = 0.0
    error: str = ""
    known: Mapping[str, Call] = field(default_factory=dict, compare=False, repr=False)
    """The run's calls, so that a step on its own can show its prompts, its cost and what IRIs are called."""

    def to_data(self) -> dict[str, Any]:
        kept = [field.name for field in fields(self) if field.name not in ("form", "known")]
        return {name: getattr(self, name) for name in kept} | {
            "inputs": {name: to_data(value) for name, value in self.inputs.items()},
            "output": to_data(self.output, self.form) if self.done else None,
            "attempts": [to_data(attempt) for attempt in self.attempts],
            "seconds": round(self.seconds, 6),
        }


def by_supervisor(steps: Collection[Step]) -> dict[str | None, list[Step]]:
    """The steps below each of some steps, by its key; by None those that none of them supervises."""
    keys = {step.key for step in steps if step.key}  # the one at the top of an execution has none
    below: dict[str | None, list[Step]] = {}
    for step in steps:
        below.setdefault(step.parent if step.parent in keys else None, []).append(step)
    return below


@dataclass(frozen=True, slots=True)
class Totals:
    """What one execution used, from the record or live, and how much of it was live."""

    model_calls: int = 0
    live_model_calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    queries: int = 0
    searches: int = 0
    seconds: float = 0.0
    model_seconds: float = 0.0
    graph_seconds: float = 0.0

    @classmethod
    def of(cls, calls: Iterable[Call], live_model_calls: int, seconds: float) -> Totals:
        """The totals over the calls of one execution."""
        calls = list(calls)
        replies = [call.result for call in calls if call.kind == "model"]
        graph = [call for call in calls if call.kind in QUERIES | SEARCHES or call.kind == "names"]
        return cls(
            model_calls=len(replies),
            live_model_calls=live_model_calls,
            prompt_tokens=sum(reply.prompt_tokens for reply in replies),
            completion_tokens=sum(reply.completion_tokens for reply in replies),
            queries=sum(call.kind in QUERIES for call in calls),
            searches=sum(call.kind in SEARCHES for call in calls),
            seconds=seconds,
            model_seconds=sum(call.seconds for call in calls if call.kind == "model"),
            graph_seconds=sum(call.seconds for call in graph),
        )


WRITTEN_BY = "give a file that Run.save or kgwb ask --save wrote"


class RunFile:
    """A run on disk, as JSON lines that are only ever appended; a gzipped one can be read.

    A killed process loses at most its last line.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._unwritten: list[str] = []

    def append(self, **entry: Any) -> None:
        """Add one line and hand it to the operating system.

        Raises RunFileError if the disk takes no more; the line is then written with the next one.
        """
        with self._writing():
            self._unwritten.append(_line(entry))
            disk.append(self.path, "".join(self._unwritten), "surrogatepass")
        self._unwritten.clear()

    def write(self, entries: Iterable[Mapping[str, Any]]) -> None:
        """Make a new file of these entries, or replace a run file, which stays until the new one is whole.

        Raises RunFileError if that is not possible, and for a file that is no run file.
        """
        with self._writing():
            if self.path.exists() and (not self.path.is_file() or self.path.stat().st_size):
                first = None
                with suppress(IsADirectoryError, disk.NotJsonError):
                    _, first = next(disk.json_lines(self.path), (0, None))
                if not isinstance(first, dict) or "kgwb_run" not in first:
                    hint = "choose another name for the run; this file was left as it is"
                    raise RunFileError(
                        f"{self.path} is there already and is not a kgwb run file", hint=hint
                    )
            disk.replace(self.path, map(_line, entries), "surrogatepass")

    def lines(self) -> Iterator[dict[str, Any]]:
        """The entries.

        An unfinished last line is left out. Raises RunFileError for anything that is no run file.
        """
        header: Any = None
        try:
            for _, entry in disk.json_lines(self.path):
                if header is None:
                    self._check(entry)
                    header = entry
                yield entry
        except OSError as exc:
            problem = f"cannot read the run file {self.path}: {exc.strerror or exc}"
            raise RunFileError(problem, hint="check the path") from exc
        except disk.NotJsonError as exc:
            if header is None:
                self._check(None)
            hint = "restore the file from a copy"
            raise RunFileError(f"{self.path}, line {exc.number}, is not JSON", hint=hint) from exc
        if header is None:
            raise RunFileError(f"{self.path} is empty", hint=WRITTEN_BY)

    def _check(self, header: Any) -> None:
        """Raise RunFileError unless it is the first line of a run file of this version."""
        version = header.get("kgwb_run") if isinstance(header, dict) else None
        if type(version) is not int:
            raise RunFileError(f"{self.path} is not a kgwb run file", hint=WRITTEN_BY)
        if version != FORMAT:
            age = "an older" if version < FORMAT else "a newer"
            writer = f"{age} kgwb ({header.get('kgwb', 'unknown version')})"
            written = f"{self.path} was written in run format {version}, by {writer}"
            hint = "open it with the version that wrote it, or ask the question again"
            raise RunFileError(f"{written}; this kgwb reads format {FORMAT}", hint=hint)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        if self.path.suffix == ".gz":
            hint = "give a name without .gz, and gzip the file when the run has ended"
            raise RunFileError(
                f"a run is not written to {self.path}: it is kept as plain lines", hint=hint
            )
        try:
            yield
        except OSError as exc:
            problem = f"cannot write the run to {self.path}: {exc.strerror or exc}"
            hint = "free some space or save elsewhere; what is in memory is not lost"
            raise RunFileError(problem, hint=hint) from exc


def _line(entry: Mapping[str, Any]) -> str:
    return _compact(entry) + "\n"


Status = Literal["same", "changed", "only in first", "only in second"]


@dataclass(frozen=True, slots=True)
class StepDifference:
    """One step of two runs side by side."""

    key: str
    status: Status
    what: tuple[str, ...] = ()
    """Which parts differ: "inputs", "output", "calls", "replies", "error"."""
    first: Step | None = None
    second: Step | None = None

    @property
    def decides(self) -> bool:
        """Whether the step decided otherwise, or is in one run alone; reasons and scores are no decision."""
        if self.first is None or self.second is None:
            return True
        first, second = ((step.done, decision(step.output)) for step in (self.first, self.second))
        return first != second


class Differences(Shown, tuple[StepDifference, ...]):
    """The steps of two runs side by side; in a notebook, a table."""

    __slots__ = ()

    @property
    def leaves(self) -> tuple[StepDifference, ...]:
        """The steps without those that only supervise others."""
        above = {step.parent for pair in self for step in (pair.first, pair.second) if step}
        return tuple(pair for pair in self if pair.key not in above)

    @property
    def parting(self) -> StepDifference | None:
        """The first step of both that decided otherwise, else the first of one alone, if there is any."""
        unequal = [pair for pair in self.leaves if pair.status != "same" and pair.decides]
        return next(
            (pair for pair in unequal if pair.first and pair.second), next(iter(unequal), None)
        )


def difference(first: Mapping[str, Step], second: Mapping[str, Step]) -> Differences:
    """Steps of two executions aligned by key, unknowns that are only renamed aside.

    Where both have steps of their own, the first's come first.
    """
    renamed = dict(zip(decision(list(first)), first, strict=True))
    second = {
        renamed.get(key, own): second[own]
        for key, own in zip(decision(list(second)), second, strict=True)
    }
    places: dict[
        str, tuple[int, bool, int]
    ] = {}  # after which step of both, of which run, and its number
    for keys, others in ((first, second), (second, first)):
        shared = -1
        for number, key in enumerate(keys):
            if key in others:
                shared = places[key][0] if key in places else number
            places.setdefault(key, (shared, keys is second, number))
    differences: list[StepDifference] = []
    for key in sorted(places, key=places.__getitem__):
        mine, theirs = first.get(key), second.get(key)
        if mine is None or theirs is None:
            status: Status = "only in first" if mine else "only in second"
            differences.append(StepDifference(key, status, (), mine, theirs))
            continue
        parts = {
            "inputs": (mine.inputs, theirs.inputs),
            "output": (mine.output, theirs.output),
            "calls": (mine.calls, theirs.calls),
            "replies": ([a.reply for a in mine.attempts], [a.reply for a in theirs.attempts]),
            "error": (mine.error, theirs.error),
        }
        what = tuple(name for name, (left, right) in parts.items() if left != right)
        differences.append(StepDifference(key, "changed" if what else "same", what, mine, theirs))
    return Differences(differences)
