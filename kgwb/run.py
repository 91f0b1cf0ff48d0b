"""The run that can be re-run.

A system is a plain function from a question and its dialogue to an answer. Whatever it does that costs, varies or can
fail goes through its Run, which records it by content. Stepping, editing, resuming and replaying are all one thing:
executing the same function again against the record.
"""

from __future__ import annotations

import functools
import inspect
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, ParamSpec, Protocol, TypeVar, get_type_hints

from kgwb import __version__
from kgwb.embeddings import Embeddings
from kgwb.errors import (
    Cancelled,
    KgwbError,
    NotRecordedError,
    OverrideError,
    QuestionError,
    RunFileError,
    SettingError,
    Stopped,
)
from kgwb.flow import Answer, Dialogue, Question, Turn, from_data, to_data
from kgwb.kg.base import Graph, Vocabulary
from kgwb.llm.base import ChatModel, ChatReply, ChatRequest
from kgwb.prompts import Prompts
from kgwb.record import (
    FORMAT,
    Attempt,
    Call,
    Origin,
    RunFile,
    Step,
    StepDifference,
    Totals,
    call_key,
    difference,
    now,
)
from kgwb.recorded import RecordedGraph
from kgwb.settings import Settings

P = ParamSpec("P")
T = TypeVar("T")
R = TypeVar("R")
Status = Literal["new", "running", "paused", "done", "failed", "cancelled"]


class System(Protocol):
    """What a module ``kgwb.systems.<name>.pipeline`` offers as ``SYSTEM``."""

    name: str
    agents: tuple[AgentSpec, ...]
    """In flow order."""

    def answer(self, question: Question, dialogue: Dialogue, run: Run) -> Answer:
        """The answer to one turn; everything that costs, varies or fails goes through ``run``."""
        ...

    def turn(self, run: Run) -> Turn:
        """What a dialogue remembers of a finished run."""
        ...


@dataclass(frozen=True, slots=True)
class AgentSpec:
    """What is known of an agent without running it."""

    name: str
    form: Any
    """The type of its output."""
    subject: str | None
    """Name of the parameter that tells several steps of this agent apart."""
    check: Callable[..., Iterable[str]] | None
    """Problems of an output, given the output and the agent's arguments; judges values put in by hand."""
    purpose: str


AGENTS: dict[Callable[..., Any], AgentSpec] = {}
"""Every agent defined so far, filled by the decorator."""


def agent(
    name: str, *, subject: str | None = None, check: Callable[..., Iterable[str]] | None = None
) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Make a function ``(..., run) -> record`` an agent: each of its executions is a step of the run."""

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        signature = inspect.signature(function)
        names = tuple(signature.parameters)[:-1]

        @functools.wraps(function)
        def execute(*args: P.args, **kwargs: P.kwargs) -> T:
            bound = signature.bind(*args, **kwargs).arguments
            run: Run = bound["run"]
            inputs = {name: bound[name] for name in names if name in bound}
            result: T = run._execute(spec_of(execute), inputs, lambda: function(*args, **kwargs))
            return result

        purpose = (function.__doc__ or "").strip().partition("\n")[0]
        AGENTS[execute] = AgentSpec(name, function, subject, check, purpose)
        return execute

    return decorate


@functools.cache
def spec_of(function: Callable[..., Any]) -> AgentSpec:
    """The specification of an agent function."""
    spec = AGENTS[function]
    return replace(spec, form=get_type_hints(spec.form)["return"])


@dataclass(slots=True)
class _Frame:
    """Where the execution stands on this thread: the step, and the list its child steps go to."""

    step: Step | None
    steps: list[Step]
    asked: dict[str, int] = field(default_factory=dict)
    """How often each model request was made in this step: the repeat number of the next."""


_frame: ContextVar[_Frame] = ContextVar("kgwb_frame")


@dataclass(frozen=True, slots=True)
class _Goal:
    """Where to stop: after so many steps, or after a step of one of these names beyond ``beyond``."""

    count: int | None = None
    names: frozenset[str] = frozenset()
    before: frozenset[str] = frozenset()
    beyond: int = 0

    @property
    def stepping(self) -> bool:
        return self.count is not None or bool(self.names) or bool(self.before)


class Run:
    """One question to one system over one graph, recorded; see the module's docstring.

    ``steps`` are those of the latest execution, supervisors before what they supervise.
    """

    def __init__(
        self,
        system: System,
        question: str,
        dialogue: Dialogue | None = None,
        *,
        kg: Graph | None,
        models: Mapping[str, ChatModel] | ChatModel | None,
        settings: Settings | None = None,
        prompts: Prompts | None = None,
        embeddings: Embeddings | None = None,
        path: str | Path | None = None,
    ) -> None:
        """``models`` maps agent names to models, "" to the default; ``path`` writes every call to disk as it ends.

        Raises QuestionError for an empty or far too long question.
        """
        self.id = uuid.uuid4().hex[:12]
        self.created = now()
        self.system = system
        self.settings = settings or Settings()
        self.question = check_question(question, self.settings)
        self.dialogue = dialogue or Dialogue()
        self.models = _by_agent(models)
        self.prompts = prompts or Prompts()
        self.embeddings = embeddings or Embeddings()
        self.calls: dict[str, Call] = {}
        self.overrides: dict[str, Any] = {}
        """Values put in by hand, by step key."""
        self.breakpoints: set[str] = set()
        """Names of agents, or keys of steps, that ``go`` stops after."""
        self.listeners: list[Callable[[str, Step], None]] = []
        """Called with "start" or "end" and the step."""
        self.kg: Graph = RecordedGraph(kg, self.call)
        self.steps: list[Step] = []
        self.status: Status = "new"
        self.answer: Answer | None = None
        self.error: KgwbError | None = None
        self.position = 0
        """Steps done when the latest execution ended."""
        self._used_prompts: dict[str, str] = {}
        self._file = RunFile(Path(path)) if path else None
        self._lock = threading.RLock()
        self._busy = threading.Lock()
        self._cancel = threading.Event()
        self._goal = _Goal()
        self._counts: dict[str, int] = {}
        self._pending: dict[str, Future[Any]] = {}
        self._forgotten: set[str] = set()
        self._seconds = 0.0
        self._begin_file()

    # --- what the person does -------------------------------------------------------------------------------------

    def go(self, until: str | int | None = None, *, before: str | None = None) -> Run:
        """Execute up to the end, the next breakpoint, or the named agent or step; then say where it stands.

        ``until`` is an agent's name or a step's key that shall be done, or a number of steps in all; ``before`` stops
        as the named agent or step begins. What is recorded is not asked again. Raises the KgwbError that stopped it;
        everything up to there is kept, and the next ``go`` resumes.
        """
        names = frozenset({until} if isinstance(until, str) else ()) | self.breakpoints
        self._know(*(names | ({before} if before else set())))
        count = until if isinstance(until, int) else None
        beyond = self.position if self.status == "paused" else 0
        return self._run(_Goal(count, names, frozenset({before} if before else ()), beyond))

    def step(self) -> Run:
        """Execute until one more step is done."""
        return self._run(_Goal(count=self.position + 1))

    def back(self) -> Run:
        """Go back to where one step less was done."""
        return self._run(_Goal(count=max(self.position - 1, 0)))

    async def ago(self, until: str | int | None = None) -> Run:
        """``go`` for notebooks that await: the event loop stays free."""
        import asyncio

        return await asyncio.to_thread(self.go, until)

    def cancel(self) -> None:
        """Stop the execution at its next call, leaving a slow one behind; what is recorded stays."""
        self._cancel.set()

    def replace(self, step: str, value: Any) -> Run:
        """Put a value in by hand: the step yields it from now on, and what depends on it runs again.

        ``step`` is a key, or an agent's name where it has one step. ``value`` is a record or its JSON data. Raises
        OverrideError if it has not the form of the step's output or does not pass its checks.
        """
        key = self._key_of(step)
        spec = self._spec(key)
        try:
            typed = from_data(to_data(value, spec.form) if isinstance(value, _classes(spec.form)) else value, spec.form)
        except (ValueError, TypeError) as exc:
            form = getattr(spec.form, "__name__", str(spec.form))
            raise OverrideError(f"{key}: {exc}", hint=f"give a {form}, or its fields as JSON data") from exc
        made = self.by_key.get(key)
        if made is not None:
            self._check_override(spec, key, typed, made.inputs)
        self.overrides[key] = typed
        self._append(override={"step": key, "value": to_data(typed, spec.form)})
        self._return_to(key)
        return self

    def restore(self, step: str) -> Run:
        """Take a value put in by hand out again."""
        key = self._key_of(step)
        if self.overrides.pop(key, None) is not None:
            self._append(override={"step": key, "value": None})
            self._return_to(key)
        return self

    def refresh(self, step: str) -> Run:
        """Have the calls of a step made anew at the next execution: a live graph changes, a model may be kinder."""
        key = self._key_of(step)
        with self._lock:
            self._forgotten.update(self.by_key[key].calls if key in self.by_key else ())
        self._return_to(key)
        return self

    def edit_prompt(self, name: str, text: str) -> Run:
        """Use this text for a prompt in this run; the file stays as it is. Raises PromptError if it does not parse."""
        self.prompts = self.prompts.with_text(name, text)
        users = [step.key for step in self.steps if name in step.prompts]
        self._return_to(users[0] if users else "")
        return self

    def fork(self, **changes: Any) -> Run:
        """A new run of the same question with other ``settings``, ``models``, ``prompts``, ``kg`` or ``question``.

        It starts from this run's record and overrides, so only calls whose own content differs are made.
        """
        kept = {
            "system": self.system,
            "question": self.question,
            "dialogue": self.dialogue,
            "kg": self.graph,
            "models": self.models,
            "settings": self.settings,
            "prompts": self.prompts,
            "embeddings": self.embeddings,
        }
        unknown = sorted(set(changes) - set(kept) - {"path"})
        if unknown:
            raise SettingError(f"a run has no {', '.join(unknown)}", hint=f"change {', '.join(kept)}")
        other = Run(**{**kept, **changes})
        other.calls.update(self.calls)
        other.overrides.update(self.overrides)
        if other._file:
            for call in other.calls.values():
                other._append(call=call.to_data())
            other._write_overrides(other._file)
        return other

    def diff(self, other: Run) -> tuple[StepDifference, ...]:
        """This run's steps beside the other's, aligned by key."""
        return difference(self.by_key, other.by_key)

    # --- what the person sees -------------------------------------------------------------------------------------

    @property
    def by_key(self) -> dict[str, Step]:
        """The steps of the latest execution by key."""
        return {step.key: step for step in self.steps}

    @property
    def graph(self) -> Graph | None:
        """The graph itself, unrecorded; None in a replay."""
        inner: Graph | None = getattr(self.kg, "inner", None)
        return inner

    @property
    def totals(self) -> Totals:
        """What the latest execution used."""
        used = dict.fromkeys(key for step in self.steps for key in step.calls)
        live = sum(step.live_calls for step in self.steps)
        return Totals.of((self.calls[key] for key in used if key in self.calls), live, self._seconds)

    def output(self, step: str) -> Any:
        """What a step of the latest execution yielded. Raises SettingError if it is not done."""
        made = self[step]
        if not made.done:
            raise SettingError(f"step {step} is not done", hint="run on until it is: run.go(until=...)")
        return made.output

    def __getitem__(self, step: str) -> Step:
        """A step of the latest execution by key, or by agent where it has one step."""
        key = self._key_of(step)
        if key not in self.by_key:
            raise SettingError(f"step {step} was not reached", hint="run on until it is: run.go(until=...)")
        return self.by_key[key]

    def __repr__(self) -> str:
        shown = str(self.answer) if self.answer is not None else self.status
        return f"Run({self.question!r}, {self.status}, {len(self.steps)} steps: {shown})"

    def _repr_html_(self) -> str:
        from kgwb.render import run_html

        return run_html(self)

    # --- on disk --------------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> Path:
        """Write the run to a new or replaced file (docs/run_format.md); returns its path."""
        target = Path(path)
        draft = RunFile(target.with_name(target.name + ".part"))
        draft.path.unlink(missing_ok=True)
        draft.append(**self._header())
        for call in list(self.calls.values()):
            draft.append(call=call.to_data())
        self._write_overrides(draft)
        for step in self.steps:
            draft.append(step=step.to_data())
        draft.append(**self._ending())
        draft.path.replace(target)
        return target

    @classmethod
    def load(
        cls,
        path: str | Path,
        system: System,
        *,
        kg: Graph | None = None,
        models: Mapping[str, ChatModel] | ChatModel | None = None,
        resume: bool = False,
    ) -> Run:
        """A saved run, not executed yet. Without ``kg`` and ``models`` every call must come from the file.

        ``resume`` goes on writing to the same file. Raises RunFileError for a file that is none or of another version.
        """
        file = RunFile(Path(path))
        lines = file.lines()
        header = next(lines, None)
        if header is None:
            raise RunFileError(f"{path} is empty", hint="give a file that Run.save or kgwb ask --save wrote")
        try:
            run = cls(
                system,
                header["question"],
                from_data(header["dialogue"], Dialogue),
                kg=kg,
                models=models,
                settings=Settings(**header["settings"]),
                prompts=Prompts(texts=header["prompts"]),
            )
            run.id, run.created = header["id"], header["created"]
            run.kg = RecordedGraph(
                kg, run.call, identity=header["graph"], vocabulary=from_data(header["vocabulary"], Vocabulary)
            )
            run._recorded_models = dict(header["models"])
            run._recorded_embeddings = header["embeddings"]
            run._read(lines)
        except (KeyError, ValueError, TypeError) as exc:
            raise RunFileError(f"{path} is damaged: {exc!r}", hint="restore the file from a copy") from exc
        if resume:
            file.mend()
            run._file = file
        return run

    _recorded_models: Mapping[str, str] = {}
    _recorded_embeddings = ""

    def _read(self, lines: Iterator[dict[str, Any]]) -> None:
        for entry in lines:
            if "call" in entry:
                call = Call.from_data(entry["call"])
                self.calls[call.key] = call
            elif "prompt" in entry:
                self.prompts = Prompts(texts={**self.prompts.texts, entry["prompt"]["name"]: entry["prompt"]["text"]})
            elif "override" in entry:
                key, value = entry["override"]["step"], entry["override"]["value"]
                if value is None:
                    self.overrides.pop(key, None)
                else:
                    self.overrides[key] = from_data(value, self._spec(key).form)

    def _header(self) -> dict[str, Any]:
        return {
            "kgwb_run": FORMAT,
            "kgwb": __version__,
            "id": self.id,
            "created": self.created,
            "system": self.system.name,
            "question": self.question,
            "dialogue": to_data(self.dialogue),
            "settings": self.settings.to_data(),
            "models": {**self._recorded_models, **{name: model.name for name, model in self.models.items()}},
            "embeddings": self._embeddings_name(),
            "graph": self.kg.identity,
            "source": self.kg.source,
            "vocabulary": to_data(self.kg.vocabulary),
            "prompts": {**self.prompts.texts, **self._used_prompts},
        }

    def _ending(self) -> dict[str, Any]:
        return {
            "end": {
                "status": self.status,
                "answer": to_data(self.answer) if self.answer else None,
                "error": self.error.message if self.error else "",
                "totals": to_data(self.totals),
            }
        }

    def _begin_file(self) -> None:
        if self._file:
            self._file.path.unlink(missing_ok=True)
            self._append(**self._header())

    def _append(self, **entry: Any) -> None:
        if self._file:
            with self._lock:
                self._file.append(**entry)

    def _write_overrides(self, file: RunFile) -> None:
        for key, value in self.overrides.items():
            file.append(override={"step": key, "value": to_data(value, self._spec(key).form)})

    # --- what systems call ----------------------------------------------------------------------------------------

    def model_for(self, agent_name: str) -> ChatModel | None:
        """The model that serves an agent: its own, else the default; None in a replay."""
        return self.models.get(agent_name, self.models.get(""))

    def model_name(self, agent_name: str) -> str:
        """The name that keys this agent's model calls: the model's, or in a replay the recorded one's."""
        model = self.model_for(agent_name)
        if model is not None:
            return model.name
        return self._recorded_models.get(agent_name, self._recorded_models.get("", ""))

    def chat(self, request: ChatRequest) -> tuple[Call, ChatReply]:
        """Ask the current agent's model; a recorded reply is used iff model, content and repeat number are equal."""
        step = self._here().step
        name = step.agent if step else request.task
        model = self.model_for(name)
        asked: dict[str, Any] = {"model": self.model_name(name), "task": request.task, "content": request.content()}
        if asked["model"].partition(":")[0] == "rules":
            asked["graph"] = self.kg.identity
        frame = self._here()
        repeat = frame.asked.get(digest := call_key("model", asked, 0), 0)
        frame.asked[digest] = repeat + 1

        def make() -> ChatReply:
            if model is None:
                raise self._missing(f"the reply of {asked['model'] or 'the model'} to {request.task}")
            if not model.remote:
                return model.complete(request, self.graph, self._cancel)
            return self._interruptible(lambda: model.complete(request, self.graph, self._cancel))

        call = self._call("model", asked, repeat, make)
        return call, call.result

    def call(self, kind: str, request: Mapping[str, Any], make: Callable[[], T] | None) -> T:
        """The recorded result of a graph query or other call, else that of ``make``; None means it cannot be made."""

        def checked() -> T:
            if make is None:
                raise self._missing(f"a {kind} on the graph")
            if self.graph is not None and self.graph.remote and kind != "similarity":
                return self._interruptible(make)
            return make()

        result: T = self._call(kind, request, 0, checked).result
        return result

    def similarity(self, phrase: str, names: Sequence[str]) -> tuple[float, ...]:
        """Similarity of a phrase with each name, -1 to 1, by the run's sentence embeddings and its share of spelling."""
        share = self.settings.spelling
        asked = {"embeddings": self._embeddings_name(), "spelling": share, "phrase": phrase, "names": list(names)}
        return self.call("similarity", asked, lambda: self.embeddings.similarity(phrase, names, share))

    def map(self, function: Callable[..., R], items: Sequence[Any], *rest: Any) -> tuple[R, ...]:
        """``function(item, *rest, run)`` for each item, side by side where that helps, results in the items' order.

        While stepping, and where nothing is remote, one after another. All are waited for; the first error is raised.
        """
        remote = self.kg.remote or any(model.remote for model in self.models.values())
        if self._goal.stepping or not remote or len(items) < 2:
            return tuple(function(item, *rest, self) for item in items)
        sinks: list[list[Step]] = [[] for _ in items]

        def branch(item: Any, sink: list[Step]) -> R:
            here = self._here()
            _frame.set(_Frame(here.step, sink))
            return function(item, *rest, self)

        with ThreadPoolExecutor(self.settings.workers, thread_name_prefix="kgwb") as pool:
            futures = [
                pool.submit(copy_context().run, branch, item, sink) for item, sink in zip(items, sinks, strict=True)
            ]
        self._here().steps.extend(step for sink in sinks for step in sink)
        return tuple(future.result() for future in futures)

    def note(self, text: str) -> None:
        """Leave a remark on the current step for the person to read."""
        step = self._here().step
        if step is not None and text not in step.notes:
            step.notes.append(text)

    def attempted(self, attempt: Attempt) -> None:
        """Keep one attempt on the current step."""
        step = self._here().step
        if step is not None:
            step.attempts.append(attempt)

    def prompt_text(self, name: str) -> str:
        """The text of a prompt as this execution uses it; remembered with the run."""
        text = self.prompts.text(name)
        step = self._here().step
        if step is not None and name not in step.prompts:
            step.prompts.append(name)
        if self._used_prompts.get(name) != text:
            self._used_prompts[name] = text
            self._append(prompt={"name": name, "text": text})
        return text

    # --- the mechanism --------------------------------------------------------------------------------------------

    def _run(self, goal: _Goal) -> Run:
        if not self._busy.acquire(blocking=False):
            raise SettingError("this run is being executed already", hint="wait for it, or cancel it")
        self._cancel.clear()
        self.steps, self._counts, self.error, self.answer = [], {}, None, None
        self._goal, self.status, self.position = goal, "running", 0
        token = _frame.set(_Frame(None, self.steps))
        started = time.perf_counter()
        try:
            if goal.count == 0:
                raise Stopped
            self.answer = self.system.answer(Question(self.question), self.dialogue, self)
            self.status = "done"
        except Stopped:
            self.status = "paused"
        except Cancelled:
            self.status = "cancelled"
        except KgwbError as exc:
            self.status, self.error = "failed", exc
            raise
        finally:
            if self.status == "running":
                self.status = "failed"
            self._seconds = time.perf_counter() - started
            self._forgotten.clear()
            _frame.reset(token)
            self._goal = _Goal()
            self._busy.release()
            self._append(**self._ending())
        return self

    def _execute(self, spec: AgentSpec, inputs: Mapping[str, Any], function: Callable[[], Any]) -> Any:
        """One step: take the value put in by hand, or run the agent; stop where the goal says."""
        self._stop_if_cancelled()
        parent = self._here()
        step = self._enter(spec, inputs, parent)
        parent.steps.append(step)
        if self._matches(step, self._goal.before):
            raise Stopped
        self._tell("start", step)
        token = _frame.set(_Frame(step, parent.steps))
        started = time.perf_counter()
        try:
            if step.key in self.overrides:
                step.output, step.origin = self.overrides[step.key], "by hand"
                self._check_override(spec, step.key, step.output, inputs)
            else:
                step.output = function()
            step.done = True
        except KgwbError as exc:
            step.error = step.error or exc.message
            raise
        finally:
            step.seconds = time.perf_counter() - started
            _frame.reset(token)
            self._tell("end", step)
        self._count(step)
        return step.output

    def _enter(self, spec: AgentSpec, inputs: Mapping[str, Any], parent: _Frame) -> Step:
        own = str(inputs[spec.subject]) if spec.subject else ""
        above = parent.step.subject if parent.step else ""
        subject = f"{above}/{own}" if own and above else own or above
        name = f"{spec.name}[{subject}]" if subject else spec.name
        with self._lock:
            self._counts[name] = occurrence = self._counts.get(name, 0) + 1
        key = name if occurrence == 1 else f"{name}#{occurrence}"
        return Step(key, spec.name, subject, parent.step.key if parent.step else "", inputs, spec.form)

    def _count(self, step: Step) -> None:
        with self._lock:
            self.position += 1
            goal = self._goal
            reached = goal.count is not None and self.position >= goal.count
            if reached or (self.position > goal.beyond and self._matches(step, goal.names)):
                raise Stopped

    def _matches(self, step: Step, names: frozenset[str]) -> bool:
        return bool(names) and (step.key in names or step.agent in names)

    def _tell(self, event: str, step: Step) -> None:
        for listener in self.listeners:
            listener(event, step)

    def _call(self, kind: str, request: Mapping[str, Any], repeat: int, make: Callable[[], Any]) -> Call:
        """The recorded call, or the call made now; the same call wanted by two threads is made once."""
        self._stop_if_cancelled()
        key = call_key(kind, request, repeat)
        step = self._here().step
        with self._lock:
            known = self.calls.get(key) if key not in self._forgotten else None
            pending = None if known else self._pending.get(key)
            mine: Future[Any] | None = None
            if known is None and pending is None:
                mine = self._pending[key] = Future()
        if known is None and pending is not None:
            known = pending.result()
        if known is None and mine is not None:
            known = self._make(key, kind, request, repeat, make, step, mine)
        assert known is not None
        if step is not None:
            step.calls.append(key)
        return known

    def _make(
        self,
        key: str,
        kind: str,
        request: Mapping[str, Any],
        repeat: int,
        make: Callable[[], Any],
        step: Step | None,
        mine: Future[Any],
    ) -> Call:
        started, taken_at = time.perf_counter(), now()
        try:
            result = make()
        except BaseException as exc:
            mine.set_exception(exc)
            raise
        else:
            seconds = time.perf_counter() - started
            call = Call(key, kind, step.key if step else "", request, repeat, result, taken_at, seconds)
            with self._lock:
                self.calls[key] = call
                self._forgotten.discard(key)
            if self._file:
                self._append(call=call.to_data())
            mine.set_result(call)
            if step is not None and step.origin == "record":
                step.origin = "live"
            if step is not None and kind == "model":
                step.live_calls += 1
            return call
        finally:
            with self._lock:
                self._pending.pop(key, None)

    def _interruptible(self, make: Callable[[], T]) -> T:
        """Run a slow call on a thread of its own, so that a cancel can leave it behind."""
        box: Future[T] = Future()

        def work() -> None:
            try:
                box.set_result(make())
            except BaseException as exc:  # noqa: BLE001  # handed to the waiting thread, which raises it
                box.set_exception(exc)

        threading.Thread(target=work, name="kgwb-call", daemon=True).start()
        while True:
            try:
                return box.result(timeout=0.05)
            except TimeoutError:
                if box.done():
                    return box.result()
                self._stop_if_cancelled()

    def _stop_if_cancelled(self) -> None:
        if self._cancel.is_set():
            raise Cancelled

    def _here(self) -> _Frame:
        frame = _frame.get(None)
        if frame is None:
            raise SettingError("an agent works only inside a run", hint="use Run.go, or Workbench.ask")
        return frame

    def _missing(self, what: str) -> NotRecordedError:
        step = self._here().step
        return NotRecordedError(
            f"{step.key if step else self.system.name} needs {what}, which this recording does not hold",
            hint="open the run with a model and a graph, or undo the edit that leads away from what was recorded",
        )

    def _check_override(self, spec: AgentSpec, key: str, value: Any, inputs: Mapping[str, Any]) -> None:
        problems = tuple(spec.check(value, *inputs.values())) if spec.check else ()
        if problems:
            raise OverrideError(f"{key}: " + "; ".join(problems), hint="change the value put in, or restore the step")

    def _spec(self, key: str) -> AgentSpec:
        name = key.partition("[")[0].partition("#")[0]
        found = next((spec for spec in self.system.agents if spec.name == name), None)
        if found is None:
            known = ", ".join(spec.name for spec in self.system.agents)
            raise SettingError(f"{self.system.name} has no agent {name!r}", hint=f"its agents are {known}")
        return found

    def _know(self, *names: str) -> None:
        for name in names:
            self._spec(name)

    def _key_of(self, step: str) -> str:
        keys = [made.key for made in self.steps if made.key == step or made.agent == step]
        if len(keys) > 1 and step not in keys:
            raise SettingError(f"{step} has several steps", hint=f"say which: {', '.join(keys)}")
        self._know(step)
        return keys[0] if keys and step not in keys else step

    def _return_to(self, key: str) -> None:
        """Going on after an edit counts breakpoints from the edited step."""
        done = [step.key for step in self.steps if step.done]
        if key in done:
            self.position = min(self.position, done.index(key))

    def _embeddings_name(self) -> str:
        return self._recorded_embeddings or self.embeddings.name


def check_question(text: str, settings: Settings) -> str:
    """The question, trimmed. Raises QuestionError if it is empty or far too long."""
    words = text.split()
    if not words:
        raise QuestionError("the question is empty", hint="ask something, for example: Who directed Arrival?")
    if len(words) > settings.max_question_words:
        raise QuestionError(
            f"the question has {len(words):,} words; at most {settings.max_question_words:,} are taken",
            hint="shorten it, or raise the setting max_question_words",
        )
    return " ".join(words)


def _by_agent(models: Mapping[str, ChatModel] | ChatModel | None) -> dict[str, ChatModel]:
    if models is None:
        return {}
    return dict(models) if isinstance(models, Mapping) else {"": models}


def _classes(form: Any) -> tuple[type, ...]:
    return (form,) if isinstance(form, type) else ()


@contextmanager
def listening(run: Run, listener: Callable[[str, Step], None]) -> Iterator[None]:
    """Have ``listener`` told of every step while the block runs."""
    run.listeners.append(listener)
    try:
        yield
    finally:
        run.listeners.remove(listener)


__all__ = ["AgentSpec", "Origin", "Run", "System", "agent", "listening", "spec_of"]
