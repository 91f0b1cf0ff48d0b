"""The mechanism of a run: executing a system against a record, and stopping where a person wants.

Stepping, editing, resuming and replaying are one thing: the same function is executed again, and
every recorded call is taken from the record by its content.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeVar

from kgwb.deprecated import RenamedAttribute
from kgwb.errors import (
    Cancelled,
    KgwbError,
    NotRecordedError,
    OverrideError,
    SettingError,
    Stopped,
)
from kgwb.flow import Answer
from kgwb.kg.base import Graph, ResultSet
from kgwb.kg.embeddings import EmbeddingIndex, Embeddings
from kgwb.llm.base import ChatModel, ChatReply, ChatRequest
from kgwb.records import from_data, to_data
from kgwb.run.agents import AgentSpec, System, agent_of_key, subject_of
from kgwb.run.calls import BUILT_IN_KINDS, RESULT_TYPES, Call, call_key, utc_now
from kgwb.run.prompts import Prompts
from kgwb.run.run_file import RunFile
from kgwb.run.steps import Attempt, Step
from kgwb.settings import Settings
from kgwb.terms import Triples
from kgwb.threads import POLL_INTERVAL_S, run_in_thread, shielded

T = TypeVar("T")
R = TypeVar("R")
Status = Literal["new", "running", "paused", "done", "failed", "cancelled"]
CANCEL_TIMEOUT_S = 60.0
"""How long a new execution waits for a cancelled one to end the slow call that it is in."""


@dataclass(frozen=True, slots=True)
class Frame:
    """The position of the execution on this thread."""

    step: Step
    """The step that is being executed. Outside of all steps, one without a key."""
    steps: list[Step]
    """The list that the next step is added to."""


_frame: ContextVar[Frame] = ContextVar("kgwb_frame")


@dataclass(frozen=True, slots=True)
class StopCondition:
    """Where an execution stops. By default it does not stop before its end."""

    count: int | None = None
    """Stop when so many steps are done."""
    after: frozenset[str] = frozenset()
    """Stop after a step with one of these keys, or of one of these agents."""
    after_position: int = 0
    """Steps up to this position do not count for ``after``: the run has paused there before."""
    before: frozenset[str] = frozenset()
    """Stop before a step with one of these keys, or of one of these agents."""
    begun: frozenset[str] = frozenset()
    """Keys of steps that had begun when the run paused; they do not count for ``before``."""
    preview_of: str = ""
    """Stop where this agent or step would ask its model, or at any call that is not recorded."""

    @property
    def is_stepping(self) -> bool:
        return self.count is not None or bool(self.after) or bool(self.before)

    def stops_before(self, step: Step) -> bool:
        if step.key in self.begun:
            return False
        return bool(self.before & {step.key, step.agent})

    def stops_after(self, step: Step, position: int) -> bool:
        if self.count is not None and position >= self.count:
            return True
        return position > self.after_position and bool(self.after & {step.key, step.agent})


class Engine:
    """A run as its system and agents see it, and its execution.

    ``kgwb.run.Run`` adds what a person does with it.
    """

    system: System
    settings: Settings
    models: Mapping[str, ChatModel]
    """By agent; the default under ""."""
    prompts: Prompts
    embeddings: Embeddings
    kg: Graph
    """The graph. Everything that is asked of it is recorded."""

    def __init__(self) -> None:
        self.calls: dict[str, Call] = {}
        """Every recorded call by key, also those that the latest execution did not use."""
        self.overrides: dict[str, Any] = {}
        """Values that a person put in, by step key."""
        self.listeners: list[Callable[[str, Step], None]] = []
        """Called with "start" or "end" and the step."""
        self.steps: list[Step] = []
        """The steps of the latest execution; a supervisor stands before what it supervises."""
        self.status: Status = "new"
        self.answer: Answer | None = None
        self.error: KgwbError | None = None
        self.position = 0
        """How many steps the latest execution has done."""
        self.widget_state: object = None
        """For widgets to keep their state of this run; the run itself does not use it."""
        self.prefer_recorded = False
        """Whether recorded replies are used even if they came from another model."""
        self._recorded_models: Mapping[str, str] = {}
        self._used_prompts: dict[str, str] = {}
        self._lock = threading.RLock()
        self._executing_lock = threading.Lock()
        self._cancel = threading.Event()
        """Ends the latest execution when it is next looked at."""
        self._stop_condition = StopCondition()
        self._step_counts: dict[str, int] = {}
        self._request_counts: dict[tuple[str, str, str], int] = {}
        self._pending: dict[str, Future[Call] | None] = {}
        """Calls that are being made. The future is made if another thread waits for the call."""
        self._outdated: set[str] = set()
        """Keys of recorded calls that the next execution makes again."""
        self._seconds = 0.0
        self._previewed_request: ChatRequest | None = None
        self._file: RunFile | None = None

    # What systems and agents call

    def model_for(self, agent_name: str) -> ChatModel | None:
        """Return the model of an agent: its own, else the default; None in a replay."""
        return self.models.get(agent_name, self.models.get(""))

    def model_name(self, agent_name: str) -> str:
        """Return the name of an agent's model, or in a replay of the model that was recorded.

        The name is part of the key of every model call.
        """
        model = self.model_for(agent_name)
        return self._recorded_model_name(agent_name) if model is None else model.name

    def _recorded_model_name(self, agent_name: str) -> str:
        return self._recorded_models.get(agent_name, self._recorded_models.get("", ""))

    @property
    def unrecorded_graph(self) -> Graph | None:
        """The graph without recording; None in a replay."""
        unrecorded: Graph | None = getattr(self.kg, "inner", None)
        return unrecorded

    def chat(self, request: ChatRequest) -> tuple[Call, ChatReply]:
        """Ask the model of the current agent.

        A recorded reply is used if and only if model, content and repeat number are equal. The
        repeat number counts how often this agent, for its subject, has sent the same request in
        this execution, so that a loop that asks again gets a new reply.

        Raises what the model raises, and NotRecordedError in a replay that lacks the call.
        """
        step = self._current_frame().step
        agent_name = step.agent or request.task
        if step.key and self._stop_condition.preview_of in (step.agent, step.key):
            self._previewed_request = request
            raise Stopped
        model = self.model_for(agent_name)
        content = self._request_to_record(self.model_name(agent_name), request)
        if self.prefer_recorded:
            recorded = self._request_to_record(self._recorded_model_name(agent_name), request)
            if self._is_recorded(recorded, agent_name, step.subject):
                content = recorded
        repeat = self._count_request(content, agent_name, step.subject)
        make = (
            None
            if model is None
            else partial(model.complete, request, self.unrecorded_graph, self._cancel)
        )
        is_remote = self.kg.remote or (model is not None and model.remote)
        missing = f"the reply of {content['model'] or 'the model'} to {request.task}"
        call = self._call("model", content, repeat, make, is_remote, missing)
        return call, call.result

    def _request_to_record(self, model_name: str, request: ChatRequest) -> dict[str, Any]:
        """Return the JSON data under which a model call is recorded."""
        content = {"model": model_name, "task": request.task, "content": request.recorded_content()}
        if model_name.partition(":")[0] == "rules":  # which reads the graph, too
            content["graph"] = self.kg.identity
            if self.kg.muted:
                content["muted"] = to_data(self.kg.muted, Triples)
        return content

    def _is_recorded(self, content: Mapping[str, Any], agent_name: str, subject: str) -> bool:
        """Return whether the next call with this content is in the record."""
        counter = (agent_name, subject, call_key("model", content, 0))
        key = call_key("model", content, self._request_counts.get(counter, 0))
        return key in self.calls and key not in self._outdated

    def _count_request(self, content: Mapping[str, Any], agent_name: str, subject: str) -> int:
        """Return how often the agent has sent this request before, and count it."""
        counter = (agent_name, subject, call_key("model", content, 0))
        with self._lock:
            repeat = self._request_counts.get(counter, 0)
            self._request_counts[counter] = repeat + 1
        return repeat

    def call(
        self,
        kind: str,
        request: Mapping[str, Any],
        make: Callable[[], T] | None,
        result_type: Any = None,
    ) -> T:
        """Return the recorded result of a call, else that of ``make``, which is then recorded.

        ``kind`` and ``request``, which is JSON data, decide whether a recorded result is used.
        ``make`` is None where the call cannot be made. ``result_type`` is needed for a kind that
        is not in ``calls.RESULT_TYPES``.

        Raises what ``make`` raises, and NotRecordedError without ``make`` and record.
        """
        result_type = RESULT_TYPES.setdefault(kind, result_type or Any)
        asks_graph = kind != "similarity"
        missing = f"a {kind} on the graph" if asks_graph else f"a {kind}"
        is_remote = self.kg.remote and asks_graph
        result: T = self._call(kind, request, 0, make, is_remote, missing).result
        if kind not in BUILT_IN_KINDS:
            result = from_data(
                result, result_type
            )  # it may be data, read before its type was known
        if isinstance(result, ResultSet) and result.cut:
            self.note(f"the result was cut at {len(result.rows)} rows")
        return result

    def similarity(self, phrase: str, names: Sequence[str]) -> tuple[float, ...]:
        """Return the similarity of a phrase with each name, -1 to 1.

        It is that of the embeddings, mixed with that of the spelling (setting ``spelling``).
        """
        spelling = self.settings.spelling
        request = {
            "embeddings": self.embeddings.name,
            "spelling": spelling,
            "phrase": phrase,
            "names": list(names),
        }
        is_replay = self.unrecorded_graph is None and not self.models
        if is_replay:  # which computes nothing
            return self.call("similarity", request, None)
        make = partial(self.embeddings.similarity, phrase, names, spelling)
        return self.call("similarity", request, make)

    def nearest(self, phrase: str, index: EmbeddingIndex, k: int) -> tuple[tuple[int, float], ...]:
        """Return position and cosine of the ``k`` texts of an index nearest to a phrase."""
        request = {"index": index.identity, "phrase": phrase, "k": k}
        return self.call("nearest", request, lambda: index.nearest(phrase, k))

    def map(self, function: Callable[..., R], items: Sequence[Any], *rest: Any) -> tuple[R, ...]:
        """Return ``function(item, *rest, run)`` for each item, in the order of the items.

        The calls run at the same time if the function is an agent whose subject is the item, the
        graph or a model is remote, and the person is not stepping. In any case all are made, also
        after one has failed; then the first error is raised.
        """
        if not self._can_run_at_the_same_time(function, items):
            return _results_of_all([partial(function, item, *rest, self) for item in items])
        step_lists: list[list[Step]] = [[] for _ in items]

        def execute(item: Any, steps: list[Step]) -> R:
            _frame.set(Frame(self._current_frame().step, steps))
            return function(item, *rest, self)

        try:
            with ThreadPoolExecutor(self.settings.workers, thread_name_prefix="kgwb") as pool:
                futures = []
                for item, steps in zip(items, step_lists, strict=True):
                    futures.append(pool.submit(copy_context().run, execute, item, steps))
        finally:
            for steps in step_lists:
                self._current_frame().steps.extend(steps)
        return _results_of_all([future.result for future in futures])

    def _can_run_at_the_same_time(self, function: Callable[..., Any], items: Sequence[Any]) -> bool:
        spec: AgentSpec | None = getattr(function, "spec", None)
        if spec is None or not spec.subject or len(items) < 2 or self._stop_condition.is_stepping:
            return False
        subjects = {subject_of(item) for item in items}
        is_remote = self.kg.remote or any(model.remote for model in self.models.values())
        return is_remote and len(subjects) == len(items)

    def note(self, text: str) -> None:
        """Leave a remark for the person on the current step."""
        notes = self._current_frame().step.notes
        if text not in notes:
            notes.append(text)

    def add_attempt(self, attempt: Attempt) -> None:
        """Keep an attempt on the current step."""
        self._current_frame().step.attempts.append(attempt)

    def prompt_text(self, name: str) -> str:
        """Return the text of a prompt, and keep it with the run.

        Raises PromptError if there is no such prompt.
        """
        text = self.prompts.text(name)
        prompts = self._current_frame().step.prompts
        if name not in prompts:
            prompts.append(name)
        if self._used_prompts.get(name) != text:
            self._used_prompts[name] = text
            self._append_to_file(prompt={"name": name, "text": text})
        return text

    def execute(
        self, spec: AgentSpec, inputs: Mapping[str, Any], function: Callable[[], Any]
    ) -> Any:
        """Execute one step: return the value that a person put in, else that of the function.

        Raises Stopped where the stop condition says so, and what the function raises.
        """
        self._stop_if_cancelled()
        parent = self._current_frame()
        step = self._new_step(spec, inputs, parent.step)
        parent.steps.append(step)
        if self._stop_condition.stops_before(step):
            raise Stopped
        self._notify_listeners("start", step)
        token = _frame.set(Frame(step, parent.steps))
        started = time.perf_counter()
        try:
            override_key = self._override_key(step)
            if override_key:
                step.output = self.overrides[override_key]
                step.origin = "by hand"
                self._check_override(spec, step.key, step.output, inputs)
            else:
                step.output = function()
            step.done = True
        except Exception as exc:
            step.error = step.error or getattr(exc, "message", "") or repr(exc)
            raise
        finally:
            step.seconds = time.perf_counter() - started
            _frame.reset(token)
            self._notify_listeners("end", step)
        with self._lock:
            self.position += 1
            if self._stop_condition.stops_after(step, self.position):
                raise Stopped
        return step.output

    def _new_step(self, spec: AgentSpec, inputs: Mapping[str, Any], parent: Step) -> Step:
        """Return a step with its key: agent, subject, and occurrence from the second on."""
        subject = subject_of(inputs[spec.subject]) if spec.subject else ""
        if not subject:
            subject = parent.subject
        elif parent.subject not in ("", subject):
            subject = f"{parent.subject}/{subject}"
        key = f"{spec.name}[{subject}]" if subject else spec.name
        with self._lock:
            occurrence = self._step_counts.get(key, 0) + 1
            self._step_counts[key] = occurrence
        if occurrence > 1:
            key = f"{key}#{occurrence}"
        return Step(
            key=key,
            agent=spec.name,
            subject=subject,
            parent=parent.key,
            inputs=inputs,
            output_type=spec.output_type,
            known_calls=self.calls,
            views=self.system.views,
        )

    # The mechanism

    @contextmanager
    def _exclusive_execution(self, cancel: threading.Event) -> Iterator[None]:
        """Keep other executions of this run out. Each has a ``cancel`` of its own.

        Raises SettingError if another execution goes on.
        """
        deadline = time.monotonic() + CANCEL_TIMEOUT_S
        while not self._executing_lock.acquire(timeout=POLL_INTERVAL_S):
            if not self._cancel.is_set() or time.monotonic() > deadline:
                raise SettingError(
                    "this run is being executed already", hint="wait for it, or cancel it"
                )
        try:
            if cancel.is_set():  # it was cancelled while it waited
                raise Cancelled
            self._cancel = cancel
            yield
        finally:
            self._executing_lock.release()

    @contextmanager
    def _execution(self, stop_condition: StopCondition) -> Iterator[None]:
        """Begin an execution. Afterwards status, error and position say how it ended."""
        self.steps = []
        self.answer = None
        self.error = None
        self.status = "running"
        self.position = 0
        self._step_counts = {}
        self._request_counts = {}
        self._stop_condition = stop_condition
        root = Step("", "", "", "", {}, None)
        token = _frame.set(Frame(root, self.steps))
        started = time.perf_counter()
        try:
            yield
            self.status = "done"
            self._outdated.clear()
        except Stopped:
            self.status = "paused"
        except Cancelled:
            self.status = "cancelled"
        except KeyboardInterrupt:
            # An agent or a model raised it: an interrupt by a person hits the main thread, which
            # only waits for this one.
            self.status = "cancelled"
            raise
        except BaseException as exc:
            self.status = "failed"
            self.error = exc if isinstance(exc, KgwbError) else None
            raise
        finally:
            self._seconds = time.perf_counter() - started
            _frame.reset(token)
            self._stop_condition = StopCondition()

    def _override_key(self, step: Step) -> str:
        """Return the key of the value put in for a step; empty if there is none.

        A value that was put in before the step was reached stands under its agent's name. Raises
        OverrideError if the agent turns out to have several steps.
        """
        if step.key in self.overrides:
            return step.key
        with self._lock:
            begun = [name for name in self._step_counts if agent_of_key(name) == step.agent]
        if step.agent not in self.overrides or step.agent in begun:
            return ""
        if len(begun) > 1:
            raise OverrideError(
                f"{step.agent} has several steps",
                hint="put it in for one of them: " + ", ".join(begun),
            )
        return step.agent

    def _check_override(
        self, spec: AgentSpec, key: str, value: Any, inputs: Mapping[str, Any]
    ) -> None:
        """Raise OverrideError if a value put in fails the agent's own check."""
        problems = tuple(spec.check(value, *inputs.values())) if spec.check else ()
        if problems:
            raise OverrideError(
                f"{key}: {'; '.join(problems)}",
                hint="change the value put in, or restore the step",
            )

    def _notify_listeners(self, event: str, step: Step) -> None:
        for listener in list(self.listeners):
            listener(event, step)

    def _call(
        self,
        kind: str,
        request: Mapping[str, Any],
        repeat: int,
        make: Callable[[], Any] | None,
        is_remote: bool,
        missing: str,
    ) -> Call:
        """Return the recorded call, or make it and record it.

        A call that two threads want at the same time is made once. A remote call is made on a
        thread of its own, so that a cancel can leave it behind. ``missing`` names the call in the
        error where it cannot be made.
        """
        self._stop_if_cancelled()
        step = self._current_frame().step
        key = call_key(kind, request, repeat)
        call, is_mine, future = self._find_or_claim(key)
        if is_mine:
            call = Call(key, kind, step.key, request, repeat, None, utc_now(), 0.0)
            self._make_claimed(call, make, is_remote, missing)
            if step.origin == "record":
                step.origin = "live"
            if kind == "model":
                step.live_calls += 1
        elif call is None:
            assert future is not None, "another thread makes the call"
            call = future.result()
        assert call is not None
        step.calls.append(key)
        return call

    def _find_or_claim(self, key: str) -> tuple[Call | None, bool, Future[Call] | None]:
        """Return a recorded call, or whether this thread has to make it, or a future of it.

        Raises Stopped for a call that is not recorded, while a prompt is only looked at.
        """
        with self._lock:
            call = None if key in self._outdated else self.calls.get(key)
            if call is not None:
                return call, False, None
            if self._stop_condition.preview_of:
                raise Stopped
            if key not in self._pending:
                self._pending[key] = None
                return None, True, None
            future = self._pending[key]
            if future is None:
                future = self._pending[key] = Future()
            return None, False, future

    def _make_claimed(
        self, call: Call, make: Callable[[], Any] | None, is_remote: bool, missing: str
    ) -> None:
        """Make a call, record it in memory and on disk, and give it to threads that wait for it."""
        started = time.perf_counter()
        try:
            if make is None:
                raise NotRecordedError(
                    f"{call.step or self.system.name} needs {missing}, "
                    "which this recording does not hold",
                    hint="open the run with a model and a graph, or undo the edit that leads away "
                    "from the record",
                )
            if is_remote:
                call.result = run_in_thread(make, poll=self._stop_if_cancelled)
            else:
                call.result = make()
        except BaseException as exc:
            with self._lock:
                future = self._pending.pop(call.key)
            if future is not None:
                future.set_exception(exc)
            raise
        call.seconds = time.perf_counter() - started
        with self._lock:  # in memory first, so that a full disk loses nothing
            self.calls[call.key] = call
            self._outdated.discard(call.key)
            future = self._pending.pop(call.key)
        if future is not None:
            future.set_result(call)
        if self._file:
            self._append_to_file(call=call.to_data())

    def _append_to_file(self, **entry: Any) -> None:
        """Add an entry to the file that the run is written to, if there is one."""
        if self._file:
            self._write(partial(self._file.append, **entry))

    def _write(self, write: Callable[[], None]) -> None:
        """Write to a file where no interrupt can hit, one writer at a time."""

        def write_alone() -> None:
            with self._lock:  # an earlier save must not replace a later one
                write()

        shielded(write_alone)

    def _stop_if_cancelled(self) -> None:
        if self._cancel.is_set():
            raise Cancelled

    def _current_frame(self) -> Frame:
        frame = _frame.get(None)
        if frame is None:
            raise SettingError(
                "an agent works only inside a run", hint="use Run.go, or Workbench.ask"
            )
        return frame

    graph = RenamedAttribute("graph", "unrecorded_graph")


def _results_of_all(calls: Sequence[Callable[[], R]]) -> tuple[R, ...]:
    """Return the result of each call; if some failed, raise the first error after all were made.

    So a replay has all steps that the run had.
    """
    results: list[R] = []
    errors: list[KgwbError] = []
    for call in calls:
        try:
            results.append(call())
        except KgwbError as error:
            errors.append(error)
    if errors:
        raise errors[0]
    return tuple(results)
