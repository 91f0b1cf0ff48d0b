"""One execution of a system: its steps, where it stops, and how it ended.

Stepping, editing, resuming and replaying are one thing: the same function is executed again, and
every recorded call is taken from the record by its content.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections import Counter
from collections.abc import (
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NoReturn

from kgwb.errors import Cancelled, KgwbError, OutputError, OverrideError, SettingError, Stopped
from kgwb.llm.base import ChatRequest
from kgwb.records import JsonObject, copy_containers
from kgwb.run.agents import AgentSpec, System, agent_of_key, subject_of
from kgwb.run.answers import Answer
from kgwb.run.diagnostics import (
    explain_failure,
    matches_type,
    type_text,
    value_text,
)
from kgwb.run.record import Record
from kgwb.run.steps import (
    NO_STOP,
    Call,
    CallIdentity,
    Frame,
    Inputs,
    Status,
    Step,
    StopCondition,
    Totals,
    call_key,
    current_frame,
    the_frame,
    used_calls,
)
from kgwb.text import pluralize

Listener = Callable[[str, Step], None]
"""Called with "start" or "end" and the step."""


@dataclass(eq=False)
class Execution:
    """An execution of a system against the record of a run.

    A run shows its latest one: steps, status, answer, error and position.
    """

    system: System
    record: Record
    listeners: Sequence[Listener] = ()
    stop_condition: StopCondition = NO_STOP
    cancelled: threading.Event = field(default_factory=threading.Event)
    """Set to cancel the execution."""
    earlier_steps: Mapping[str, Step] = field(default_factory=dict)
    """The steps of the execution before, by key; empty if something was edited since."""

    steps: list[Step] = field(default_factory=list)
    """A supervisor stands before what it supervises."""
    status: Status = "new"
    answer: Answer | None = None
    error: KgwbError | None = None
    position: int = 0
    """How many steps are done."""
    seconds: float = 0.0
    recorded_seconds: float = 0.0
    """With the times of a run file: how long the execution in it took; 0 for any other."""
    begun: frozenset[str] = frozenset()
    """Keys of the steps that had begun when it ended."""
    previewed_request: ChatRequest | None = None
    root: Step = field(default_factory=lambda: Step("", "", "", "", {}))
    """What the system itself did outside of its agents."""

    _has_stopped: bool = False
    """Whether it has raised Stopped, at which every branch of it ends."""
    branch_numbers: Iterator[int] = field(default_factory=itertools.count)
    """The numbers of the branches that a pipeline's executor begins."""
    _step_counts: Counter[str] = field(default_factory=Counter)
    """How many steps had the same agent and subject, by the key of the first of them."""
    _request_counts: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """How often the same request was sent, by agent, subject and key of the first call."""
    _raised: list[tuple[Exception, str]] = field(default_factory=list)
    """What steps raised, with their keys; an inner step comes first."""
    _lock: Any = field(default_factory=threading.Lock)
    """Guards the counts and the position."""

    # Its course

    @contextmanager
    def running(self, run: Any) -> Iterator[None]:
        """Run the code inside as this execution of a run, and keep how it ended.

        ``status`` is "running", then "done"; "paused" after Stopped and "cancelled" after
        Cancelled, which are caught; "failed" after another error, which is kept in ``error`` and
        raised; "cancelled" after a KeyboardInterrupt, which is raised. After "done" no call is
        outdated any more. HTTP requests of runs are recorded from now on, and connections of
        replays refused.
        """
        from kgwb.run.http_clients import guard_replays, watch_requests

        self.status = "running"
        watch_requests()
        if run.is_replay:
            guard_replays()
        self.root.known_calls = self.record.calls
        token = current_frame.set(Frame(self.root, self.steps, run))
        started = time.perf_counter()
        try:
            yield
            self.status = "done"
            self.record.outdated.clear()
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
            if isinstance(exc, KgwbError):
                self.error = exc
            elif isinstance(exc, Exception):
                self.error = explain_failure(exc, self._failed_step(exc))
            raise
        finally:
            self.seconds = time.perf_counter() - started
            self.root.seconds = self.seconds
            self._keep_time(self.root, self.steps)
            current_frame.reset(token)
            self.begun = frozenset(step.key for step in self.steps)
            self._raised.clear()

    def _failed_step(self, error: Exception) -> str:
        """Return the key of the innermost step that raised an error; "" if none did."""
        for raised, key in self._raised:
            if raised is error:
                return key
        return ""

    def stop_if_cancelled(self) -> None:
        """Raise Cancelled if the execution has been cancelled, or Stopped if it has stopped."""
        if self.cancelled.is_set():
            raise Cancelled
        if self._has_stopped:
            raise Stopped

    def stop(self) -> NoReturn:
        """Raise Stopped, here and at whatever another branch of the execution begins after it."""
        self._has_stopped = True
        raise Stopped

    # Steps

    def execute(self, spec: AgentSpec, inputs: Inputs, function: Callable[[], Any]) -> Any:
        """Execute one step: return the value that a person put in, else that of the function.

        The step is added to ``steps`` before it runs, and listeners are notified of its start and
        its end. If it fails, it keeps the error and how long it took. Each step that is done raises
        ``position`` by one.

        Raises Stopped before or after the step where the stop condition says so, Cancelled,
        SettingError for an agent that the system does not list, OverrideError for a value that
        fails the agent's check, OutputError for an output of another type than promised, and what
        the function raises.
        """
        with self._executed_step(spec, inputs) as step:
            if step.origin == "by hand":
                return copy_containers(step.output)
            output = function()
            self._set_output(spec, step, output)
            return output

    async def execute_async(
        self, spec: AgentSpec, inputs: Inputs, function: Callable[[], Awaitable[Any]]
    ) -> Any:
        """Execute one step of an agent that is awaited: return the value put in, else the output.

        It does and raises what ``execute`` does.
        """
        with self._executed_step(spec, inputs) as step:
            if step.origin == "by hand":
                return copy_containers(step.output)
            output = await function()
            self._set_output(spec, step, output)
            return output

    @contextmanager
    def _executed_step(self, spec: AgentSpec, inputs: Inputs) -> Iterator[Step]:
        """Begin a step, let the code inside set its output, and end it.

        The step has its output already if a person put one in: its origin is "by hand". Listeners
        are notified of start and end. At the end the step is done, or has the error that the code
        raised, and how long it took. Raises what ``execute`` raises.
        """
        self.stop_if_cancelled()
        self._check_is_listed(spec)
        parent = the_frame()
        step = self._new_step(spec, inputs, parent.step)
        parent.steps.append(step)
        position = len(parent.steps)
        if self.stop_condition.stops_before(step):
            self.stop()

        self._notify("start", step)
        token = current_frame.set(Frame(step, parent.steps, parent.run))
        started = time.perf_counter()
        try:
            self._take_override(spec, step)
            yield step
            step.done = True
        except Exception as exc:
            message = getattr(exc, "message", "") or repr(exc)
            step.error = step.error or message
            self._raised.append((exc, step.key))
            raise
        finally:
            step.seconds = time.perf_counter() - started
            current_frame.reset(token)
            if step.done:
                self._keep_time(step, parent.steps[position:])
            self._note_past_calls(step)
            self._notify("end", step)
        self._count_step(step)

    def _check_is_listed(self, spec: AgentSpec) -> None:
        """Raise SettingError if the system does not list an agent of this name.

        The agent itself may be another one with the same name.
        """
        if spec.name in self.system.specs_by_name:
            return
        system = self.system.name
        raise SettingError(
            f"{spec.name} is not among the agents of {system}, which called it",
            hint=f"add it: System({system!r}, answer, [..., {spec.function.__name__}])",
        )

    def _new_step(self, spec: AgentSpec, inputs: Inputs, parent: Step) -> Step:
        """Return a new step of an agent, below its supervisor ``parent``.

        Its key is "AGENT[SUBJECT]", or "AGENT" without a subject, and ends in "#2" for the second
        step with the same agent and subject. A step without a subject takes that of its supervisor.
        If both have one and they differ, the subject is "SUPERVISOR'S/OWN".
        """
        subject = parent.subject
        if spec.subject:
            own_subject = subject_of(inputs[spec.subject])
            if not subject:
                subject = own_subject
            elif own_subject and own_subject != subject:
                subject = f"{subject}/{own_subject}"
        key = spec.name
        if subject:
            key = f"{spec.name}[{subject}]"
        with self._lock:
            self._step_counts[key] += 1
            occurrence = self._step_counts[key]
        if occurrence > 1:
            key = f"{key}#{occurrence}"
        return Step(
            key=key,
            agent=spec.name,
            subject=subject,
            parent=parent.key,
            inputs={name: copy_containers(value) for name, value in inputs.items()},
            output_type=spec.output_type,
            role=self.system.role_of(spec.name),
            varying=self.system.varying,
            known_calls=self.record.calls,
            views_source=self.system.views_source,
        )

    def _set_output(self, spec: AgentSpec, step: Step, output: Any) -> None:
        """Set the output of a step to a copy of what its function returned; a generator gets a note.

        A generator is not read here: it may have no end. Raises OutputError for an output of another
        type than the agent promises.
        """
        if not matches_type(output, spec.output_type):
            promised = type_text(spec.output_type)
            raise OutputError(
                f"the step {step.key} promises {promised} and returned {value_text(output)}",
                hint=f"return {promised}, or change the annotation of {spec.name}",
            )
        if hasattr(type(output), "__next__") or hasattr(type(output), "__anext__"):
            step.notes.append(
                f"it returned a {type(output).__name__}: what that asks belongs to the step that "
                "reads it, and its values are neither shown nor saved; return a list"
            )
        step.output = copy_containers(output)

    def _take_override(self, spec: AgentSpec, step: Step) -> None:
        """Set the output of a step to the value that a person put in, if there is one.

        Then the origin of the step is "by hand". Raises OverrideError for a value that fails the
        agent's check.
        """
        override_key = self._override_key(step)
        if override_key:
            step.output = copy_containers(self.record.overrides[override_key])
            step.origin = "by hand"
            check_override(spec, step.key, step.output, step.inputs)

    def _override_key(self, step: Step) -> str:
        """Return the key in ``overrides`` of the value put in for a step; "" if there is none.

        It is the key of the step. It is the agent's name if the value was put in before the step
        was reached and this is the agent's only step; if the agent has several, OverrideError is
        raised.
        """
        if not self.record.overrides:
            return ""
        if step.key in self.record.overrides:
            return step.key
        with self._lock:
            begun = [key for key in self._step_counts if agent_of_key(key) == step.agent]
        if step.agent not in self.record.overrides or step.agent in begun:
            return ""
        if len(begun) > 1:
            raise OverrideError(
                f"the value put in for the agent {step.agent} was not used: the agent has several steps",
                hint="put the value in for one of them: " + ", ".join(begun),
            )
        return step.agent

    def _count_step(self, step: Step) -> None:
        """Raise ``position`` by one for a step that is done.

        Raises Stopped if the execution is to stop after this step.
        """
        with self._lock:
            self.position += 1
            if self.stop_condition.stops_after(step, self.position):
                self.stop()

    def _note_past_calls(self, step: Step) -> None:
        """Add a note to a step for each host that it asked without the run's recording.

        The note has the number of requests and the host.
        """
        for host, number in step.past_calls.items():
            requests = pluralize(number, "request")
            step.notes.append(
                f"{requests} to {host} went past the run: not recorded, and made again each time; "
                "send them on the run's own thread by httpx, requests, urllib or aiohttp, or use "
                "run.chat, run.kg or run.call"
            )

    def _notify(self, event: str, step: Step) -> None:
        """Call each listener with the event, "start" or "end", and the step."""
        for listener in list(self.listeners):
            listener(event, step)

    # Requests to models

    def count_request(self, content: JsonObject, kind: str = "model") -> CallIdentity:
        """Count a request of the current step, and return the identity of its call.

        Its repeat number is how often the request was sent before: 0 the first time. Requests of
        the same agent for the same subject are equal if their content is. Counting begins anew with
        each execution. It is safe on several threads.
        """
        first = CallIdentity.of(kind, content, 0)
        counter = _counter_of(first.key)
        with self._lock:
            repeat = self._request_counts[counter]
            self._request_counts[counter] += 1
        if not repeat:
            return first  # the key of a long prompt is not computed twice
        return first.with_repeat(repeat)

    def forget_request(self, content: JsonObject, kind: str = "model") -> None:
        """Take back the count of a request that got no reply; sent again, it has the same number."""
        counter = _counter_of(call_key(kind, content, 0))
        with self._lock:
            self._request_counts[counter] -= 1

    def find_next(self, content: JsonObject, kind: str = "model") -> Call | None:
        """Return the recorded call that the step's next request with this content will use, or None.

        It is the call whose repeat number ``count_request`` will return next. An outdated call
        does not count as recorded.
        """
        first_key = call_key(kind, content, 0)
        repeat = self._request_counts[_counter_of(first_key)]
        return self.record.find(call_key(kind, content, repeat))

    # What it used

    def _keep_time(self, step: Step, later: Sequence[Step]) -> None:
        """Set how long a step took when its calls were made, if that is not how long it took now.

        ``later`` are the steps that began after it. The time of a step with live calls is
        remembered in the record. For a replayed step, ``recorded_seconds`` becomes the time
        remembered, or, as for a run from a file, an estimate by the recorded time of its calls. For
        a supervisor the times of replayed steps below it are replaced in this way. A step without
        calls and without steps below it takes as long each time.
        """
        below = _steps_below(step, later)
        if not below and not step.calls:
            return
        calls = set(step.calls)
        is_live = step.origin == "live"
        saved_s = 0.0
        for each in below:
            calls.update(each.calls)
            is_live = is_live or each.origin == "live"
            if each.parent == step.key:
                saved_s += each.live_seconds - each.seconds
        place = (step.key, frozenset(calls))
        if is_live:
            live_s = step.seconds + saved_s
            self.record.live_seconds[place] = live_s
        elif place in self.record.live_seconds:
            live_s = self.record.live_seconds[place]
        else:
            live_s = step.seconds + saved_s + self._seconds_of_own_calls(step)
        if live_s != step.seconds:
            step.recorded_seconds = live_s

    def _seconds_of_own_calls(self, step: Step) -> float:
        """Return how long the calls of a step took that were first made for this step."""
        calls = [self.record.calls[key] for key in set(step.calls)]
        return sum(call.seconds for call in calls if call.step == step.key)

    @property
    def past_calls(self) -> Counter[str]:
        """How many requests it made that the run did not record, by host.

        Requests that the system made outside of its agents count, too.
        """
        counts = Counter(self.root.past_calls)
        for step in self.steps:
            counts.update(step.past_calls)
        return counts

    @property
    def totals(self) -> Totals:
        """What it used: calls, tokens, queries and seconds; see ``Totals``.

        A call that several steps used counts once. Calls that the system made outside of its agents
        do not count.
        """
        calls = used_calls(self.steps, self.record.calls)
        live_model_calls = sum(step.live_calls for step in self.steps)
        if self.recorded_seconds:
            return Totals.of(calls, live_model_calls, self.recorded_seconds)
        return Totals.of(calls, live_model_calls, self.seconds, self.root.recorded_seconds)


def _counter_of(first_key: str) -> tuple[str, str, str]:
    """Return under what the requests of the current step are counted whose first call has this key."""
    step = the_frame().step
    return step.agent, step.subject, first_key


def check_override(spec: AgentSpec, key: str, value: Any, inputs: Inputs) -> None:
    """Raise OverrideError if a value put in for a step fails the agent's own check.

    The check gets the value and the step's inputs; the error lists all its problems. An agent
    without a check accepts every value.
    """
    if spec.check is None:
        return
    problems = list(spec.check(value, *inputs.values()))
    if problems:
        listed = "; ".join(problems)
        raise OverrideError(
            f"the value put in for {key} cannot be used: {listed}",
            hint="put in another value, or remove it: run.remove_override(...)",
        )


def _steps_below(step: Step, later: Iterable[Step]) -> list[Step]:
    """Return the steps below a step, at all levels, in their order.

    They are looked for among ``later``, the steps that began after it.
    """
    keys = {step.key}
    below = []
    for each in later:
        if each.parent in keys:
            keys.add(each.key)
            below.append(each)
    return below
