"""The mechanism of a run: executing a system against a record, and stopping where the person wants.

Stepping, editing, resuming and replaying are all one thing: executing the same function again, with every
call that is recorded taken from the record by its content.
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

from kgwb.aside import LOOK_S, aside, undisturbed
from kgwb.errors import Cancelled, KgwbError, NotRecordedError, OverrideError, SettingError, Stopped
from kgwb.flow import Answer, Triples, from_data, to_data
from kgwb.kg.base import Graph, Rows
from kgwb.kg.embeddings import Embeddings, Index
from kgwb.llm.base import ChatModel, ChatReply, ChatRequest
from kgwb.run.agents import AgentSpec, System, subject_of
from kgwb.run.prompts import Prompts
from kgwb.run.record import BUILT_IN, FORMS, Attempt, Call, RunFile, Step, call_key, now
from kgwb.settings import Settings

T = TypeVar("T")
R = TypeVar("R")
Status = Literal["new", "running", "paused", "done", "failed", "cancelled"]
LEFT_S = 60.0
"""How long a new execution waits for a cancelled one to end the slow call it is in."""


@dataclass(frozen=True, slots=True)
class Frame:
    """Where the execution stands on this thread: the step, and the list its child steps go to."""

    step: Step
    """At the top one without a key, which is in no list."""
    steps: list[Step]


_frame: ContextVar[Frame] = ContextVar("kgwb_frame")


@dataclass(frozen=True, slots=True)
class Goal:
    """Where to stop: after so many steps, or after or before a step of one of these names."""

    count: int | None = None
    names: frozenset[str] = frozenset()
    beyond: int = 0
    """Only after steps beyond this many count for ``names``: it paused there already."""
    before: frozenset[str] = frozenset()
    begun: frozenset[str] = frozenset()
    """Keys of steps that had begun when it paused; going on passes them."""
    peek: str = ""
    """Stop where this agent or step would ask its model, and before any call that is not recorded."""

    @property
    def stepping(self) -> bool:
        return self.count is not None or bool(self.names) or bool(self.before)

    def stops_before(self, step: Step) -> bool:
        return step.key not in self.begun and bool(self.before & {step.key, step.agent})

    def stops_after(self, step: Step, position: int) -> bool:
        reached = self.count is not None and position >= self.count
        return reached or (position > self.beyond and bool(self.names & {step.key, step.agent}))


def _all_of(calls: Sequence[Callable[[], R]]) -> tuple[R, ...]:
    """What each call gives, or the first error after all were made: a replay has the steps of the run."""
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


class Engine:
    """What systems and agents see of a run, and how it is executed.

    ``kgwb.run.Run`` is what a person sees.
    """

    system: System
    settings: Settings
    models: Mapping[str, ChatModel]
    prompts: Prompts
    embeddings: Embeddings
    kg: Graph
    """The graph; every answer of it goes through the record."""
    answer: Answer | None

    def __init__(self) -> None:
        self.calls: dict[str, Call] = {}
        self.overrides: dict[str, Any] = {}
        """Values put in by hand, by step key."""
        self.listeners: list[Callable[[str, Step], None]] = []
        """Called with "start" or "end" and the step."""
        self.steps: list[Step] = []
        self.status: Status = "new"
        self.answer = None
        self.error: KgwbError | None = None
        self.position = 0
        """Steps done when the latest execution ended."""
        self.attached: object = None
        """What a person's tools keep with this run; the run itself makes no use of it."""
        self.record_first = False
        """Whether replies that were recorded with another model are used where there are such."""
        self._recorded_models: Mapping[str, str] = {}
        self._used_prompts: dict[str, str] = {}
        self._lock = threading.RLock()
        self._busy = threading.Lock()
        self._cancel = threading.Event()
        """Of the latest execution: ends it at its next look."""
        self._goal = Goal()
        self._counts: dict[str, int] = {}
        self._asked: dict[tuple[str, str, str], int] = {}
        self._pending: dict[str, Future[Call] | None] = {}
        """Calls being made, with a promise where another thread waits for one."""
        self._forgotten: set[str] = set()
        self._seconds = 0.0
        self._peeked: ChatRequest | None = None
        self._file: RunFile | None = None

    # --- what systems call ----------------------------------------------------------------------------------

    def model_for(self, agent_name: str) -> ChatModel | None:
        """The model that serves an agent: its own, else the default; None in a replay."""
        return self.models.get(agent_name, self.models.get(""))

    def model_name(self, agent_name: str) -> str:
        """The name that keys this agent's model calls: the model's, or in a replay the recorded one's."""
        model = self.model_for(agent_name)
        return self._recorded_name(agent_name) if model is None else model.name

    def _recorded_name(self, agent_name: str) -> str:
        return self._recorded_models.get(agent_name, self._recorded_models.get("", ""))

    @property
    def graph(self) -> Graph | None:
        """The graph itself, unrecorded; None in a replay."""
        inner: Graph | None = getattr(self.kg, "inner", None)
        return inner

    def chat(self, request: ChatRequest) -> tuple[Call, ChatReply]:
        """Ask the current agent's model; a recorded reply is used iff model, content and repeat are equal.

        The repeat number counts how often this agent, for its subject, has asked the same in this execution,
        so that a loop that asks again gets a new reply.
        """
        step = self._here().step
        name = step.agent or request.task
        if step.key and self._goal.peek in (step.agent, step.key):
            self._peeked = request
            raise Stopped
        model = self.model_for(name)
        asked = self._asked_of(self.model_name(name), request)
        place = (name, step.subject, call_key("model", asked, 0))
        if self.record_first:
            recorded = self._asked_of(self._recorded_name(name), request)
            place_there = (name, step.subject, call_key("model", recorded, 0))
            key = call_key("model", recorded, self._asked.get(place_there, 0))
            if key in self.calls and key not in self._forgotten:
                asked, place = recorded, place_there
        with self._lock:
            repeat = self._asked.get(place, 0)
            self._asked[place] = repeat + 1
        make = None if model is None else partial(model.complete, request, self.graph, self._cancel)
        remote = self.kg.remote or (model is not None and model.remote)
        missing = f"the reply of {asked['model'] or 'the model'} to {request.task}"
        call = self._call("model", asked, repeat, make, remote, missing)
        return call, call.result

    def _asked_of(self, model_name: str, request: ChatRequest) -> dict[str, Any]:
        """What a call of a model is recorded under; ``rules`` reads the graph too."""
        asked: dict[str, Any] = {
            "model": model_name,
            "task": request.task,
            "content": request.content(),
        }
        if model_name.partition(":")[0] == "rules":
            asked["graph"] = self.kg.identity
            asked |= {"muted": to_data(self.kg.muted, Triples)} if self.kg.muted else {}
        return asked

    def call(
        self, kind: str, request: Mapping[str, Any], make: Callable[[], T] | None, form: Any = None
    ) -> T:
        """The recorded result of a graph query or other call, else that of ``make``; None cannot be made.

        ``request`` is JSON data; with ``kind`` it decides whether a recorded result is used. ``form`` is the
        type of the result, for a kind that is not in ``record.FORMS``.
        """
        form = FORMS.setdefault(kind, form or Any)
        on_graph = kind != "similarity"
        missing = f"a {kind} on the graph" if on_graph else f"a {kind}"
        result: T = self._call(kind, request, 0, make, self.kg.remote and on_graph, missing).result
        if kind not in BUILT_IN:  # read from a file before its form was known
            result = from_data(result, form)
        if isinstance(result, Rows) and result.cut:
            self.note(f"the result was cut at {len(result.rows)} rows")
        return result

    def similarity(self, phrase: str, names: Sequence[str]) -> tuple[float, ...]:
        """Similarity of a phrase with each name, -1 to 1, by embeddings and, in part, letters."""
        share = self.settings.spelling
        name = self.embeddings.name
        asked = {"embeddings": name, "spelling": share, "phrase": phrase, "names": list(names)}
        alone = self.graph is None and not self.models  # a replay computes nothing
        make = None if alone else lambda: self.embeddings.similarity(phrase, names, share)
        return self.call("similarity", asked, make)

    def nearest(self, phrase: str, index: Index, k: int) -> tuple[tuple[int, float], ...]:
        """Place and cosine of the ``k`` texts of an index nearest to a phrase, best first."""
        asked = {"index": index.identity, "phrase": phrase, "k": k}
        return self.call("nearest", asked, lambda: index.nearest(phrase, k))

    def map(self, function: Callable[..., R], items: Sequence[Any], *rest: Any) -> tuple[R, ...]:
        """``function(item, *rest, run)`` for each item, side by side where that helps, in the items' order.

        Side by side only an agent whose subject is the item works, on a remote graph or model and not while
        stepping. Either way all are done, also after one has failed, and the first error is raised.
        """
        remote = self.kg.remote or any(model.remote for model in self.models.values())
        spec: AgentSpec | None = getattr(function, "spec", None)
        apart = spec and spec.subject and len({*map(subject_of, items)}) == len(items) > 1
        if self._goal.stepping or not remote or not apart:
            return _all_of([partial(function, item, *rest, self) for item in items])
        sinks: list[list[Step]] = [[] for _ in items]

        def branch(item: Any, sink: list[Step]) -> R:
            _frame.set(Frame(self._here().step, sink))
            return function(item, *rest, self)

        try:
            with ThreadPoolExecutor(self.settings.workers, thread_name_prefix="kgwb") as pool:
                pairs = zip(items, sinks, strict=True)
                futures = [
                    pool.submit(copy_context().run, branch, item, sink) for item, sink in pairs
                ]
        finally:
            self._here().steps.extend(step for sink in sinks for step in sink)
        return _all_of([future.result for future in futures])

    def note(self, text: str) -> None:
        """Leave a remark on the current step for the person to read."""
        notes = self._here().step.notes
        if text not in notes:
            notes.append(text)

    def attempted(self, attempt: Attempt) -> None:
        """Keep one attempt on the current step."""
        self._here().step.attempts.append(attempt)

    def prompt_text(self, name: str) -> str:
        """The text of a prompt as this execution uses it; remembered with the run."""
        text = self.prompts.text(name)
        names = self._here().step.prompts
        if name not in names:
            names.append(name)
        if self._used_prompts.get(name) != text:
            self._used_prompts[name] = text
            self._append(prompt={"name": name, "text": text})
        return text

    def execute(
        self, spec: AgentSpec, inputs: Mapping[str, Any], function: Callable[[], Any]
    ) -> Any:
        """One step: take the value put in by hand, or run the agent; stop where the goal says."""
        self._stop_if_cancelled()
        parent = self._here()
        own = subject_of(inputs[spec.subject]) if spec.subject else ""
        above = parent.step.subject
        subject = f"{above}/{own}" if own and above not in ("", own) else own or above
        name = f"{spec.name}[{subject}]" if subject else spec.name
        with self._lock:
            self._counts[name] = occurrence = self._counts.get(name, 0) + 1
        key = name if occurrence == 1 else f"{name}#{occurrence}"
        step = Step(key, spec.name, subject, parent.step.key, inputs, spec.form, known=self.calls)
        parent.steps.append(step)
        if self._goal.stops_before(step):
            raise Stopped
        self._tell("start", step)
        token = _frame.set(Frame(step, parent.steps))
        started = time.perf_counter()
        try:
            if put_in := self._by_hand(step):
                step.output, step.origin = self.overrides[put_in], "by hand"
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
            self._tell("end", step)
        with self._lock:
            self.position += 1
            if self._goal.stops_after(step, self.position):
                raise Stopped
        return step.output

    # --- the mechanism --------------------------------------------------------------------------------------

    @contextmanager
    def _alone(self, cancel: threading.Event) -> Iterator[None]:
        """Keep other executions of this run out, of which each has its own ``cancel``."""
        until = time.monotonic() + LEFT_S
        while not self._busy.acquire(timeout=LOOK_S):
            if not self._cancel.is_set() or time.monotonic() > until:
                raise SettingError(
                    "this run is being executed already", hint="wait for it, or cancel it"
                )
        try:
            if cancel.is_set():  # whoever wanted this execution left while it waited
                raise Cancelled
            self._cancel = cancel
            yield
        finally:
            self._busy.release()

    @contextmanager
    def _executing(self, goal: Goal) -> Iterator[None]:
        """One execution from the start: afterwards status, error and position say how it ended."""
        self.steps, self._counts, self._asked, self.error, self.answer = [], {}, {}, None, None
        self._goal, self.status, self.position = goal, "running", 0
        token = _frame.set(Frame(Step("", "", "", "", {}, None), self.steps))
        started = time.perf_counter()
        try:
            yield
            self.status = "done"
            self._forgotten.clear()
        except Stopped:
            self.status = "paused"
        except Cancelled:
            self.status = "cancelled"
        except (
            KeyboardInterrupt
        ):  # raised by an agent or a model; those of a person hit the main thread
            self.status = "cancelled"
            raise
        except BaseException as exc:
            self.status, self.error = "failed", exc if isinstance(exc, KgwbError) else None
            raise
        finally:
            self._seconds = time.perf_counter() - started
            _frame.reset(token)
            self._goal = Goal()

    def _by_hand(self, step: Step) -> str:
        """Where the value put in for a step is kept: under its key or, before that was known, its agent."""
        if step.key in self.overrides:
            return step.key
        with self._lock:
            entered = [name for name in self._counts if name.partition("[")[0] == step.agent]
        if step.agent not in self.overrides or step.agent in entered:
            return ""
        if len(entered) > 1:
            hint = "put it in for one of them: " + ", ".join(entered)
            raise OverrideError(f"{step.agent} has several steps", hint=hint)
        return step.agent

    def _tell(self, event: str, step: Step) -> None:
        for listener in list(self.listeners):
            listener(event, step)

    def _call(
        self,
        kind: str,
        request: Mapping[str, Any],
        repeat: int,
        make: Callable[[], Any] | None,
        remote: bool,
        missing: str,
    ) -> Call:
        """The recorded call, or one made now; what two threads want at a time is made once.

        ``remote`` makes it where a cancel can leave it behind; ``missing`` says what cannot be made.
        """
        self._stop_if_cancelled()
        key, step = call_key(kind, request, repeat), self._here().step
        with self._lock:
            known = self.calls.get(key) if key not in self._forgotten else None
            if known is None and self._goal.peek:
                raise Stopped
            first = known is None and key not in self._pending
            if first:
                self._pending[key] = None
            elif known is None:
                promise = self._pending[key] = self._pending[key] or Future[Call]()
        if first:
            known = Call(key, kind, step.key, request, repeat, None, now(), 0.0)
            started = time.perf_counter()
            try:
                if make is None:
                    raise NotRecordedError(
                        f"{step.key or self.system.name} needs {missing}, which this recording does not hold",
                        hint="open the run with a model and a graph, or undo the edit that leads away from "
                        "the record",
                    )
                known.result = aside(make, watch=self._stop_if_cancelled) if remote else make()
            except BaseException as exc:
                with self._lock:
                    waiting = self._pending.pop(key)
                if waiting is not None:
                    waiting.set_exception(exc)
                raise
            known.seconds = time.perf_counter() - started
            with self._lock:  # first in memory, so that a full disk loses nothing
                self.calls[key] = known
                self._forgotten.discard(key)
                waiting = self._pending.pop(key)
            if waiting is not None:
                waiting.set_result(known)
            if self._file:
                self._append(call=known.to_data())
            step.origin = "live" if step.origin == "record" else step.origin
            step.live_calls += kind == "model"
        elif known is None:
            known = promise.result()
        step.calls.append(key)
        return known

    def _append(self, **entry: Any) -> None:
        """Add an entry to the file that the run is kept in, if there is one."""
        if self._file:
            self._write(partial(self._file.append, **entry))

    def _write(self, write: Callable[[], None]) -> None:
        """Write where no interrupt can hit it, and in order: an earlier save must not replace a later one."""

        def alone() -> None:
            with self._lock:
                write()

        undisturbed(alone)

    def _stop_if_cancelled(self) -> None:
        if self._cancel.is_set():
            raise Cancelled

    def _here(self) -> Frame:
        frame = _frame.get(None)
        if frame is None:
            raise SettingError(
                "an agent works only inside a run", hint="use Run.go, or Workbench.ask"
            )
        return frame

    def _check_override(
        self, spec: AgentSpec, key: str, value: Any, inputs: Mapping[str, Any]
    ) -> None:
        problems = tuple(spec.check(value, *inputs.values())) if spec.check else ()
        if problems:
            hint = "change the value put in, or restore the step"
            raise OverrideError(f"{key}: " + "; ".join(problems), hint=hint)
