"""The mechanism of a run: executing a system against a record, and stopping where a person wants.

Stepping, editing, resuming and replaying are one thing: the same function is executed again, and
every recorded call is taken from the record by its content.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import replace
from functools import partial
from typing import Any, Literal, NoReturn, TypeVar

from kgwb.background import POLL_INTERVAL_S, run_in_thread, shielded
from kgwb.errors import (
    Cancelled,
    KgwbError,
    NotRecordedError,
    OutputError,
    OverrideError,
    SettingError,
    Stopped,
)
from kgwb.kg.base import Graph, ResultSet
from kgwb.kg.embeddings import EmbeddingIndex, Embeddings
from kgwb.kg.findings import describe_unbound_concat
from kgwb.llm.base import DEFAULT_TIMEOUT_S, ChatModel, ChatReply, ChatRequest, Message
from kgwb.llm.notice import DataNotice, notices_collected_by
from kgwb.records import JsonObject, from_data, to_data
from kgwb.run.agents import AgentSpec, System, agent_of_key, subject_of
from kgwb.run.answers import Answer, Dialogue, Turn
from kgwb.run.calls import (
    RESULT_TYPES,
    Call,
    CallIdentity,
    CallRecord,
    CallSource,
    RecordedGraph,
    call_key,
    utc_now,
)
from kgwb.run.diagnostics import (
    VARYING_HINT,
    call_in_its_place,
    describe_change,
    explain_failure,
    make_recorded,
    matches_type,
    recorded_call_of,
    type_text,
    value_text,
    watch_requests,
)
from kgwb.run.prompts import Prompts
from kgwb.run.run_file import RunFile
from kgwb.run.steps import Attempt, Frame, Inputs, Step, StopCondition, Totals, current_frame
from kgwb.settings import Settings
from kgwb.text import pluralize

T = TypeVar("T")
R = TypeVar("R")
Status = Literal["new", "running", "paused", "done", "failed", "cancelled"]
CANCEL_TIMEOUT_S = 60.0
"""How long a new execution waits for a cancelled one to end the slow call that it is in."""


class Engine:
    """A run as its system and agents see it, and its execution.

    ``kgwb.run.Run`` adds what a person does with it.
    """

    id: str
    created: str
    """UTC, ISO 8601."""
    question: str
    dialogue: Dialogue
    """The earlier turns."""
    system: System
    settings: Settings
    models: Mapping[str, ChatModel]
    """By agent or role; the default under ""."""
    prompts: Prompts
    embeddings: Embeddings
    kg: RecordedGraph
    """The graph. Everything that is asked of it is recorded."""

    read_only = ""
    """Why the run can only be read, as its system is missing; empty for any other run."""
    read_only_hint = "name its system: kgwb.load_run(path, system='./mine.py')"
    """What to do instead, if the run can only be read."""
    recorded_seconds = 0.0
    """For a run with the times of its file: how long the execution in it took; 0 for any other."""
    _has_edits = False
    """Whether a person has changed something, so that other calls than the recorded are expected."""
    _is_edited = False
    """Whether a person has changed something since the latest execution began."""

    _has_stopped = False
    """Whether the latest execution has raised Stopped, at which every branch of it ends."""

    _begun: frozenset[str] = frozenset()
    """Keys of the steps that the latest execution began."""

    _branch_count = 0
    """How many branches a pipeline's executor has begun in the latest execution."""

    _raised: list[tuple[Exception, str]]
    """What steps raised in the present execution, with their keys; an inner step comes first."""

    def __init__(self) -> None:
        self._record = CallRecord()
        self.calls = self._record.calls
        """Every recorded call by key, also those that the latest execution did not use."""
        self.overrides: dict[str, Any] = {}
        """Values that a person put in, by step key."""
        self.edited_messages: dict[tuple[str, int], tuple[Message, ...]] = {}
        """Messages that a person put in place of an agent's, by step key and number of the call."""
        self.used_prompts: dict[str, str] = {}
        """The texts of the prompts that were used, by name."""
        self.recorded_models: dict[str, str] = {}
        """For a run from a file: the names of its models, by agent."""
        self.recorded_status = ""
        """For a run from a file: the status with which the latest execution in it ended."""
        self.recorded_position = 0
        """For a run from a file: how many steps that execution had done."""
        self.prefer_recorded = False
        """Whether recorded replies are used even if they came from another model."""
        self.listeners: list[Callable[[str, Step], None]] = []
        """Called with "start" or "end" and the step."""
        self.widget_state: object = None
        """For widgets to keep their state of this run; the run itself does not use it."""

        # The latest execution
        self.steps: list[Step] = []
        """The steps of the latest execution; a supervisor stands before what it supervises."""
        self.status: Status = "new"
        self.answer: Answer | None = None
        self.error: KgwbError | None = None
        self.position = 0
        """How many steps the latest execution has done."""
        self.turn: Turn | None = None
        """What a dialogue remembers of the latest finished execution; None again after an edit."""
        self._seconds = 0.0
        self._stop_condition = StopCondition()
        self._previewed_request: ChatRequest | None = None
        self._step_counts: Counter[str] = Counter()
        """How many steps had the same agent and subject, by the key of the first of them."""
        self._request_counts: Counter[tuple[str, str, str]] = Counter()
        """How often the same request was sent, by agent, subject and key of the first call."""

        self._root = Step("", "", "", "", {}, None)
        """What the system itself did outside of its agents."""
        self._earlier_steps: dict[str, Step] = {}
        """The steps of the execution before, by key; empty if something was edited since."""

        self._lock = threading.RLock()
        """Guards the counts, the position and the file."""
        self._executing_lock = threading.Lock()
        """Held while the run is executed."""
        self._cancel = threading.Event()
        """Set to cancel the latest execution."""
        self._file: RunFile | None = None
        """The file that every call is written to as it ends."""

    # Models

    def model_for(self, agent_name: str) -> ChatModel | None:
        """Return the model of an agent: its own, its role's, or the default; None in a replay."""
        return self._of_agent(self.models, agent_name)

    def _of_agent(self, values: Mapping[str, T], agent_name: str) -> T | None:
        """Return the value for an agent: that under its name, else under its role, else under "".

        "" is the default for all agents. Returns None if there is none of the three.
        """
        for name in (agent_name, self.system.role_of(agent_name), ""):
            if name in values:
                return values[name]
        return None

    def model_name(self, agent_name: str) -> str:
        """Return the name of an agent's model, or in a replay of the model that was recorded.

        Empty if neither is known. The name is part of the key of every model call.
        """
        model = self.model_for(agent_name)
        if model is None:
            return self._recorded_model_name(agent_name)
        return model.name

    def _recorded_model_name(self, agent_name: str) -> str:
        """Return the name of the model that was recorded for an agent; "" if none was."""
        return self._of_agent(self.recorded_models, agent_name) or ""

    def chat(
        self, request: ChatRequest, own_model: ChatModel | None = None
    ) -> tuple[Call, ChatReply]:
        """Ask the model of the current agent, and return the call and the reply.

        ``own_model`` is asked in its place, except in a replay: the client of a pipeline.

        A recorded reply is used if and only if model, content and repeat number are equal. The
        repeat number counts how often this agent, for its subject, has sent the same request in
        this execution, so that a loop that asks again gets a new reply.

        Raises what the model raises, NotRecordedError in a replay that lacks the call, and Stopped
        if this is the request that is previewed.
        """
        step = self._current_frame().step
        request = self._edited_request(step, request)
        timeout_s = self.settings.model_timeout_s
        if request.timeout_s == DEFAULT_TIMEOUT_S and timeout_s != DEFAULT_TIMEOUT_S:
            request = replace(request, timeout_s=timeout_s)
        if self._stop_condition.is_preview(step):
            self._previewed_request = request
            self._stop()
        agent_name = step.agent or request.task
        if own_model is None:
            content = self._content_to_record(request, agent_name, step.subject)
            model = self.model_for(agent_name)
        else:
            content = self._content_for_client(own_model.name, request, agent_name, step.subject)
            model = None if self.is_replay else own_model
        identity = self._count_request(content, agent_name, step.subject)

        is_remote = self.kg.remote
        make = None
        if model is not None:
            is_remote = is_remote or model.remote
            make = partial(self._ask_model, model, request)
        model_name = content["model"] or "the model"
        missing = f"the reply of {model_name} to {request.task}"
        call = self._call(identity, make, is_remote, missing, ChatReply)
        return call, call.result

    @property
    def notices(self) -> tuple[DataNotice, ...]:
        """What left the machine, and where it went: one for each hosted model that was asked."""
        return tuple(self._record.notices)

    def _ask_model(self, model: ChatModel, request: ChatRequest) -> ChatReply:
        """Ask a model, and keep the notice of what leaves the machine with the request, if any."""
        with notices_collected_by(self._keep_notice):
            return model.complete(request, self.unrecorded_graph, self._cancel)

    def _keep_notice(self, notice: DataNotice) -> None:
        """Add a notice to the run and to its file, unless the run has it already."""
        if self._record.add_notice(notice):
            self._append_to_file(notice=to_data(notice))

    def _edited_request(self, step: Step, request: ChatRequest) -> ChatRequest:
        """Return a request with the messages that a person put in for it; as it is without any.

        Those messages stand under the key of the step and the number of model calls that it has
        made so far.
        """
        if not self.edited_messages:
            return request
        number = self._count_model_calls(step)
        messages = self.edited_messages.get((step.key, number))
        if messages is None:
            return request
        return replace(request, messages=messages)

    def _count_model_calls(self, step: Step) -> int:
        """Return how many of the calls of a step asked a model."""
        kinds = [self.calls[key].kind for key in step.calls]
        return kinds.count("model")

    def _content_to_record(self, request: ChatRequest, agent_name: str, subject: str) -> JsonObject:
        """Return the JSON data under which a model call is recorded, and found again.

        It names the agent's model. With ``prefer_recorded`` it names the recorded model of the
        agent instead, if the record has that model's reply to the request.
        """
        if self.prefer_recorded:
            model_name = self._recorded_model_name(agent_name)
            content = self._content_for_model(model_name, request)
            if self._is_recorded(content, agent_name, subject):
                return content
        return self._content_for_model(self.model_name(agent_name), request)

    def _content_for_client(
        self, client_name: str, request: ChatRequest, agent_name: str, subject: str
    ) -> JsonObject:
        """Return the JSON data under which a call of a pipeline's own client is recorded and found.

        It names model and address, "openai:MODEL@URL", because another server may reply otherwise.
        A replay sends nothing: if it has no recorded call at this address, that of the same model
        at another address is used.
        """
        content = self._content_for_model(client_name, request)
        if not self.is_replay or self._is_recorded(content, agent_name, subject):
            return content
        recorded_names: dict[str, None] = {}
        for call in self.calls.values():
            if call.kind == "model":
                recorded_names[call.request["model"]] = None
        for recorded_name in recorded_names:
            if _without_address(recorded_name) != _without_address(client_name):
                continue
            elsewhere = self._content_for_model(recorded_name, request)
            if self._is_recorded(elsewhere, agent_name, subject):
                return elsewhere
        return content

    def _content_for_model(self, model_name: str, request: ChatRequest) -> JsonObject:
        """Return the JSON data by which a model call is recorded: model, task and content.

        For the model ``rules``, which reads the graph, also the identity of the graph and the muted
        triples.
        """
        recorded = request.recorded_content()
        content = {"model": model_name, "task": request.task, "content": recorded}
        kind, _, _ = model_name.partition(":")
        if kind == "rules":
            content["graph"] = self.kg.identity
            content.update(self.kg.muted_data)
        return content

    def _is_recorded(self, content: JsonObject, agent_name: str, subject: str) -> bool:
        """Return whether the next model call of an agent with this content is recorded.

        It is the call whose repeat number ``_count_request`` will return next. An outdated call
        does not count as recorded.
        """
        first_key = call_key("model", content, 0)
        repeat = self._request_counts[agent_name, subject, first_key]
        key = call_key("model", content, repeat)
        return self._record.find(key) is not None

    def _count_request(self, content: JsonObject, agent_name: str, subject: str) -> CallIdentity:
        """Count a request, and return the identity of its call.

        Its repeat number is how often the request was sent before: 0 the first time. Requests of
        the same agent for the same subject are equal if their content is. Counting begins anew with
        each execution. It is safe on several threads.
        """
        first = CallIdentity.of("model", content, 0)
        counter = (agent_name, subject, first.key)
        with self._lock:
            repeat = self._request_counts[counter]
            self._request_counts[counter] += 1
        if not repeat:
            return first  # the key of a long prompt is not computed twice
        return first.with_repeat(repeat)

    # Graph, embeddings and tools

    @property
    def unrecorded_graph(self) -> Graph | None:
        """The graph without recording; None in a replay."""
        return self.kg.inner

    @property
    def is_replay(self) -> bool:
        """Whether everything comes from the record: the run has neither a graph nor a model."""
        return self.unrecorded_graph is None and not self.models

    def call(
        self,
        kind: str,
        request: JsonObject,
        make: Callable[[], T] | None,
        result_type: Any = None,
    ) -> T:
        """Return the recorded result of a call; without one, make the call and record it.

        ``kind`` and ``request``, which is JSON data, decide whether a recorded result is used.
        ``make`` returns the result; it is None where the call cannot be made. ``result_type`` is
        the type of the result of a kind that is not in ``calls.RESULT_TYPES``. The step gets a note
        if a result set was cut, or if a GROUP_CONCAT in a query left a variable unbound.

        Raises what ``make`` raises, and NotRecordedError without a recorded result and ``make``.
        """
        missing = f"a {kind}"
        is_remote = False
        if kind != "similarity":
            missing = f"a {kind} on the graph"
            is_remote = self.kg.remote
        result_type = RESULT_TYPES.get(kind, result_type or Any)
        identity = CallIdentity.of(kind, request, 0)
        call = self._call(identity, make, is_remote, missing, result_type)
        result: T = call.result
        if kind not in RESULT_TYPES:  # it is JSON data if the call was read from a file
            result = from_data(result, result_type)
        if isinstance(result, ResultSet) and result.cut:
            self.note(f"the result was cut at {len(result.rows)} rows")
        if kind == "select" and isinstance(result, ResultSet):
            unbound = describe_unbound_concat(request["query"], result)
            if unbound:
                self.note(unbound)
        return result

    def similarity(self, phrase: str, names: Sequence[str]) -> tuple[float, ...]:
        """Return the similarity of a phrase with each name, -1 to 1.

        It is that of the embeddings, mixed with that of the spelling (setting ``spelling``). In a
        replay nothing is computed: NotRecordedError is raised if it was not recorded.
        """
        spelling = self.settings.spelling
        request = {
            "embeddings": self.embeddings.name,
            "spelling": spelling,
            "phrase": phrase,
            "names": list(names),
        }
        if self.is_replay:
            return self.call("similarity", request, None)
        make = partial(self.embeddings.similarity, phrase, names, spelling)
        return self.call("similarity", request, make)

    def nearest(self, phrase: str, index: EmbeddingIndex, k: int) -> tuple[tuple[int, float], ...]:
        """Return position and cosine of the ``k`` texts of an index nearest to a phrase."""
        request = {"index": index.identity, "phrase": phrase, "k": k}
        make = partial(index.nearest, phrase, k)
        return self.call("nearest", request, make)

    # Calls

    def use_store(self, store: CallSource | None) -> None:
        """Look for calls that are not recorded in a store, and keep there what is made."""
        self._record.store = store

    def _call(
        self,
        identity: CallIdentity,
        make: Callable[[], Any] | None,
        is_remote: bool,
        missing: str,
        result_type: Any,
    ) -> Call:
        """Return a recorded call, else one of the store, else make it; add it to the step.

        A new call is written to the run's file. A call that two threads need at the same time is
        made once. A remote call is made on a background thread, so that a cancelled execution need
        not wait for it. The origin of the step becomes "live" if the call was made for it. ``make``
        is None if the call cannot be made; ``missing`` names the call in the error.

        Raises Cancelled, NotRecordedError, what ``make`` raises, and Stopped for a call that is not
        recorded while a request is previewed.
        """
        self._stop_if_cancelled()
        step = self._current_frame().step
        key, kind, request, repeat, request_json = identity
        if self._stop_condition.preview_of or self._earlier_steps:
            # Otherwise it does not matter yet, and a store need not be asked twice.
            is_recorded = self._record.find(key) is not None
            if self._stop_condition.preview_of and not is_recorded:
                self._stop()
            if not is_recorded:
                self._note_change(step, kind, request)

        made_calls = []

        def make_call() -> Call:
            """Make the call, on this thread or for a remote one on another, and return it.

            It has its result, the time at which it began, and how long it took. It is also added to
            ``made_calls``.
            """
            call = Call(
                key,
                kind,
                step.key,
                request,
                repeat,
                result=None,
                taken_at=utc_now(),
                seconds=0.0,
                result_type=result_type,
            )
            started = time.perf_counter()
            call.result = self._make_result(step, call, make, is_remote, missing)
            call.seconds = time.perf_counter() - started
            made_calls.append(call)
            return call

        call, is_new = self._record.find_or_make(key, kind, make_call, self._stop_if_cancelled)
        if is_new:
            call.step = step.key  # in the store it may be one of another question
            self._append_call_to_file(call, request_json)
        if made_calls:
            if step.origin == "record":
                step.origin = "live"
            if kind == "model":
                step.live_calls += 1
        step.calls.append(key)
        return call

    def _note_change(self, step: Step, kind: str, request: JsonObject) -> None:
        """Add a note to a step that asks something else than in the execution before.

        Compared is the call at the same position of the same step (``call_in_its_place``). There is
        no note if there was no such call, or after an edit.
        """
        earlier = self._earlier_steps.get(step.key)
        before = call_in_its_place(step, kind, earlier, self.calls)
        if before is None:
            return
        change = describe_change(step, kind, request, before)
        if change:
            step.notes.append(f"{change}. If it uses random numbers or the time: {VARYING_HINT}")

    def _make_result(
        self,
        step: Step,
        call: Call,
        make: Callable[[], Any] | None,
        is_remote: bool,
        missing: str,
    ) -> Any:
        """Return the result of ``make()``, called on a background thread if ``is_remote``.

        Raises NotRecordedError if ``make`` is None; in a replay whose step asks something else than
        was recorded, the error says what has changed. Raises Cancelled if the execution is
        cancelled while it waits for a remote call.
        """
        if make is None:
            self._refuse_change(step, call)
            raise NotRecordedError(
                f"{step.key or self.system.name} needs {missing}, which is not in this recording",
                hint="open the run with a model and a graph, or undo the edit that leads away "
                "from the record",
            )
        if is_remote:
            make = partial(run_in_thread, make, poll=self._stop_if_cancelled)
        return make_recorded(make)

    def _refuse_change(self, step: Step, call: Call) -> None:
        """Raise NotRecordedError, which shows both, if a step asks what was not recorded.

        Nothing is raised after an edit by a person, or if no unused call of this kind is recorded
        for the step.
        """
        if self._has_edits:
            return
        before = recorded_call_of(step, call.kind, list(self.calls.values()))
        if before is None:
            return
        change = describe_change(step, call.kind, call.request, before)
        if change:
            raise NotRecordedError(
                change,
                hint="either its code was changed, or it uses random numbers or the time: in that "
                f"case {VARYING_HINT}",
            )

    # Several items

    def map(self, function: Callable[..., R], items: Sequence[Any], *rest: Any) -> tuple[R, ...]:
        """Return ``function(item, *rest, run)`` for each item, in the order of the items.

        The calls run at the same time, on at most ``workers`` threads (a setting), if the function
        is an agent with different subjects for the items, the graph or a model is remote, and the
        person is not stepping. Otherwise they run one after another. If some raise a KgwbError, the
        others are made all the same, and then the first error is raised.
        """
        if not self._can_run_in_parallel(function, items):
            calls = [partial(function, item, *rest, self) for item in items]
            return _results_of_all(calls)
        frame = self._current_frame()
        branches = [Frame(frame.step, [], self) for _ in items]

        def execute(item: Any, branch: Frame) -> R:
            """Call the function for one item; the steps of this thread go into ``branch``."""
            current_frame.set(branch)
            return function(item, *rest, self)

        try:
            with ThreadPoolExecutor(self.settings.workers, thread_name_prefix="kgwb") as pool:
                futures = []
                for item, branch in zip(items, branches, strict=True):
                    context = copy_context()
                    future = pool.submit(context.run, execute, item, branch)
                    futures.append(future)
        finally:
            for branch in branches:
                frame.steps.extend(branch.steps)
        results = [future.result for future in futures]
        return _results_of_all(results)

    def next_branch_number(self) -> int:
        """Return how many branches a pipeline's executor has begun before in this execution."""
        with self._lock:
            number = self._branch_count
            self._branch_count += 1
        return number

    def _can_run_in_parallel(self, function: Callable[..., Any], items: Sequence[Any]) -> bool:
        """Return whether a function is called for several items at the same time.

        The function must be an agent whose steps have subjects, and all items must have different
        subjects, so that no key of a step depends on which is executed first. The graph or a model
        must be remote: only waiting is saved. A person who is stepping sees one step after another.
        Fewer than two items are not called in parallel.
        """
        spec: AgentSpec | None = getattr(function, "spec", None)
        if spec is None or not spec.subject:
            return False
        if len(items) < 2 or self._stop_condition.is_stepping:
            return False
        subjects = {subject_of(item) for item in items}
        if len(subjects) < len(items):
            return False
        if self.kg.remote:
            return True
        return any(model.remote for model in self.models.values())

    # Steps

    def note(self, text: str) -> None:
        """Leave a remark for the person on the current step, if it does not have the same yet."""
        notes = self._current_frame().step.notes
        if text not in notes:
            notes.append(text)

    def add_attempt(self, attempt: Attempt) -> None:
        """Keep an attempt on the current step."""
        step = self._current_frame().step
        step.attempts.append(attempt)

    def prompt_text(self, name: str) -> str:
        """Return the text of a prompt, and keep it as used by the run and by the current step.

        It is a text given to the run, else the system's own, else that of the prompt's file. A text
        that the run has not used for this prompt yet is also written to the run's file. Raises
        PromptError if there is no such prompt.
        """
        text = self.prompts.text(name)
        prompts = self._current_frame().step.prompts
        if name not in prompts:
            prompts.append(name)
        if self.used_prompts.get(name) != text:
            self.used_prompts[name] = text
            self._append_to_file(prompt={"name": name, "text": text})
        return text

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
            if not self._take_override(spec, step):
                self._set_output(spec, step, function())
        self._count_step(step)
        return step.output

    async def execute_async(
        self, spec: AgentSpec, inputs: Inputs, function: Callable[[], Awaitable[Any]]
    ) -> Any:
        """Execute one step of an agent that is awaited: return the value put in, else the output.

        It does and raises what ``execute`` does.
        """
        with self._executed_step(spec, inputs) as step:
            if not self._take_override(spec, step):
                self._set_output(spec, step, await function())
        self._count_step(step)
        return step.output

    @contextmanager
    def _executed_step(self, spec: AgentSpec, inputs: Inputs) -> Iterator[Step]:
        """Begin a step, let the code inside set its output, and end it.

        Listeners are notified of start and end. At the end the step is done, or has the error that
        the code raised, and how long it took. Raises Stopped, Cancelled and SettingError as
        ``execute`` does.
        """
        self._stop_if_cancelled()
        self._check_is_listed(spec)
        parent = self._current_frame()
        step = self._new_step(spec, inputs, parent.step)
        parent.steps.append(step)
        position = len(parent.steps)
        if self._stop_condition.stops_before(step):
            self._stop()

        self._notify_listeners("start", step)
        token = current_frame.set(Frame(step, parent.steps, self))
        started = time.perf_counter()
        try:
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
            self._notify_listeners("end", step)

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
            self._record.live_seconds[place] = live_s
        elif place in self._record.live_seconds:
            live_s = self._record.live_seconds[place]
        else:
            live_s = step.seconds + saved_s + self._seconds_of_own_calls(step)
        is_replayed = saved_s or step.origin == "record"
        if is_replayed and live_s != step.seconds:
            step.recorded_seconds = live_s

    def _seconds_of_own_calls(self, step: Step) -> float:
        """Return how long the calls of a step took that were first made for this step."""
        calls = [self.calls[key] for key in set(step.calls)]
        return sum(call.seconds for call in calls if call.step == step.key)

    def _count_step(self, step: Step) -> None:
        """Raise ``position`` by one for a step that is done.

        Raises Stopped if the execution is to stop after this step.
        """
        with self._lock:
            self.position += 1
            if self._stop_condition.stops_after(step, self.position):
                self._stop()

    def _stop(self) -> NoReturn:
        """Raise Stopped, here and at whatever another branch of the execution begins after it."""
        self._has_stopped = True
        raise Stopped

    def _note_past_calls(self, step: Step) -> None:
        """Add a note to a step for each host that it asked without the run's recording.

        The note has the number of requests and the host.
        """
        for host, number in step.past_calls.items():
            requests = pluralize(number, "request")
            step.notes.append(
                f"{requests} to {host} went past the run: not recorded, and made again each time; "
                "use run.chat, run.kg or run.call"
            )

    def _check_is_listed(self, spec: AgentSpec) -> None:
        """Raise SettingError if the system does not list an agent of this name.

        The agent itself may be another one with the same name.
        """
        for listed in self.system.agents:
            if listed.name == spec.name:
                return
        function_name = spec.function.__name__
        raise SettingError(
            f"{spec.name} is not among the agents of {self.system.name}, which called it",
            hint=f"add it: System({self.system.name!r}, answer, [..., {function_name}])",
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
            inputs=inputs,
            output_type=spec.output_type,
            role=self.system.role_of(spec.name),
            known_calls=self.calls,
            views=self.system.views,
        )

    def _set_output(self, spec: AgentSpec, step: Step, output: Any) -> None:
        """Set the output of a step to what its function returned; a generator gets a note.

        A generator is not read here: it may have no end. Raises OutputError for an output of another
        type than the agent promises.
        """
        if not matches_type(output, spec.output_type):
            promised = type_text(spec.output_type)
            raise OutputError(
                f"the step {step.key} promises {promised} and returned {value_text(output)}",
                hint=f"return {promised}, or change the annotation of {spec.name}",
            )
        if isinstance(output, Iterator | AsyncIterator):
            step.notes.append(
                f"it returned a {type(output).__name__}: what that asks belongs to the step that "
                "reads it, and its values are neither shown nor saved; return a list"
            )
        step.output = output

    def _take_override(self, spec: AgentSpec, step: Step) -> bool:
        """Set the output of a step to the value that a person put in, if there is one.

        Returns whether there is one; then the origin of the step is "by hand". Raises OverrideError
        for a value that fails the agent's check.
        """
        override_key = self._override_key(step)
        if not override_key:
            return False
        step.output = self.overrides[override_key]
        step.origin = "by hand"
        self._check_override(spec, step.key, step.output, step.inputs)
        return True

    def _override_key(self, step: Step) -> str:
        """Return the key in ``overrides`` of the value put in for a step; "" if there is none.

        It is the key of the step. It is the agent's name if the value was put in before the step
        was reached and this is the agent's only step; if the agent has several, OverrideError is
        raised.
        """
        if not self.overrides:
            return ""
        if step.key in self.overrides:
            return step.key
        with self._lock:
            begun = [key for key in self._step_counts if agent_of_key(key) == step.agent]
        if step.agent not in self.overrides or step.agent in begun:
            return ""
        if len(begun) > 1:
            raise OverrideError(
                f"the value put in for the agent {step.agent} was not used: the agent has several steps",
                hint="put the value in for one of them: " + ", ".join(begun),
            )
        return step.agent

    def _check_override(self, spec: AgentSpec, key: str, value: Any, inputs: Inputs) -> None:
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

    def _notify_listeners(self, event: str, step: Step) -> None:
        """Call each listener with the event, "start" or "end", and the step."""
        for listener in list(self.listeners):
            listener(event, step)

    # Executions

    @property
    def past_calls(self) -> Counter[str]:
        """How many requests the latest execution made that the run did not record, by host.

        Requests that the system made outside of its agents count, too.
        """
        counts = Counter(self._root.past_calls)
        for step in self.steps:
            counts.update(step.past_calls)
        return counts

    @property
    def own_calls(self) -> tuple[str, ...]:
        """The keys of the calls that the latest execution made outside of its agents."""
        return tuple(self._root.calls)

    @property
    def totals(self) -> Totals:
        """What the latest execution used: calls, tokens, queries and seconds; see ``Totals``.

        A call that several steps used counts once. Calls that the system made outside of its agents
        do not count.
        """
        calls: dict[str, Call] = {}
        live_model_calls = 0
        for step in self.steps:
            live_model_calls += step.live_calls
            for key in step.calls:
                if key in self.calls:
                    calls[key] = self.calls[key]
        if self.recorded_seconds:
            return Totals.of(calls.values(), live_model_calls, self.recorded_seconds)
        recorded_seconds = self._root.recorded_seconds
        return Totals.of(calls.values(), live_model_calls, self._seconds, recorded_seconds)

    @contextmanager
    def _exclusive_execution(self, cancel: threading.Event) -> Iterator[None]:
        """Run the code inside as the only execution of this run, which setting ``cancel`` cancels.

        If a cancelled execution has not ended yet, this one waits for it, at most CANCEL_TIMEOUT_S.
        For one that was not cancelled it waits POLL_INTERVAL_S, and then raises SettingError.
        Raises Cancelled if ``cancel`` is set meanwhile.
        """
        deadline = time.monotonic() + CANCEL_TIMEOUT_S
        while not self._executing_lock.acquire(timeout=POLL_INTERVAL_S):
            if not self._cancel.is_set() or time.monotonic() > deadline:
                raise SettingError(
                    "the run was not continued: it is already being executed",
                    hint="wait until it has ended, or cancel it with run.cancel()",
                )
        try:
            if cancel.is_set():
                raise Cancelled
            self._cancel = cancel
            yield
        finally:
            self._executing_lock.release()

    @contextmanager
    def _execution(self, stop_condition: StopCondition) -> Iterator[None]:
        """Run the code inside as a new execution: clear the latest one, and set the status.

        Steps, answer, error, position and counters begin anew. ``status`` is "running", then
        "done"; "paused" after Stopped and "cancelled" after Cancelled, which are caught; "failed"
        after another error, which is kept in ``error`` and raised; "cancelled" after a
        KeyboardInterrupt, which is raised. After "done" no call is outdated any more. HTTP requests
        of this process are watched from now on.
        """
        self._earlier_steps = {}
        if not self._is_edited:
            self._earlier_steps = {step.key: step for step in self.steps}
        self._is_edited = False
        self.steps = []
        self.answer = None
        self.error = None
        self.status = "running"
        self.position = 0
        self._step_counts.clear()
        self._request_counts.clear()
        self._branch_count = 0
        self._raised = []
        self._stop_condition = stop_condition
        self._has_stopped = False
        root = Step("", "", "", "", {}, None)
        self._root = root
        watch_requests()
        token = current_frame.set(Frame(root, self.steps, self))
        started = time.perf_counter()
        try:
            yield
            self.status = "done"
            self._record.outdated.clear()
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
            root.seconds = time.perf_counter() - started
            self._seconds = root.seconds
            self.recorded_seconds = 0.0
            self._keep_time(root, self.steps)
            current_frame.reset(token)
            self._begun = frozenset(step.key for step in self.steps)
            self._stop_condition = StopCondition()
            self._raised = []

    def _failed_step(self, error: Exception) -> str:
        """Return the key of the innermost step that raised an error; "" if none did."""
        for raised, key in self._raised:
            if raised is error:
                return key
        return ""

    def _stop_if_cancelled(self) -> None:
        """Raise Cancelled if the execution has been cancelled, or Stopped if it has stopped."""
        if self._cancel.is_set():
            raise Cancelled
        if self._has_stopped:
            raise Stopped

    def _current_frame(self) -> Frame:
        """Return the Frame of the execution on this thread: the current step and the list of steps.

        Raises SettingError outside of an execution.
        """
        frame = current_frame.get(None)
        if frame is None:
            raise SettingError(
                "an agent was called outside of a run, and it works only inside one",
                hint="ask a question with Workbench.ask, or continue a run with Run.go",
            )
        return frame

    def _refuse_if_read_only(self) -> None:
        """Raise SettingError, with the reason, if the run can only be read."""
        if self.read_only:
            raise SettingError(
                f"this run can only be read: {self.read_only}",
                hint=self.read_only_hint,
            )

    # The file

    @contextmanager
    def _open_file(self) -> Iterator[None]:
        """Keep the run's file open while the code inside runs; without a file, do nothing."""
        file = self._file
        if file is None:
            yield
            return
        file.keep_open()
        try:
            yield
        finally:
            with self._lock:
                file.close()

    def _append_to_file(self, **entry: Any) -> None:
        """Add an entry, such as ``call={...}``, to the run's file; without a file, do nothing."""
        if self._file:
            self._write(partial(self._file.append, **entry))

    def _append_call_to_file(self, call: Call, request_json: str) -> None:
        """Add the entry of a call, whose request is also given as JSON text, to the run's file.

        Without a file, do nothing.
        """
        if self._file:
            entry = f'{{"call":{call.to_json(request_json)}}}'
            self._write(partial(self._file.append_json, entry))

    def _write(self, write: Callable[[], None]) -> None:
        """Call ``write`` where no interrupt can hit it, and on one thread at a time.

        So a save is never left half done, and an earlier one does not replace a later one.
        """

        def write_alone() -> None:
            """Call ``write`` while this run's lock is held."""
            with self._lock:
                write()

        shielded(write_alone)


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


def _results_of_all(calls: Sequence[Callable[[], R]]) -> tuple[R, ...]:
    """Make all calls, and return their results in order.

    If some raise a KgwbError, the others are made all the same, and then the first error is raised.
    So a replay, which makes one after the other, has all steps that the run had. Another exception
    is raised at once.
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


def _without_address(model_name: str) -> str:
    """Return the name of a model without the address of its server: "openai:tiny"."""
    name, _, _ = model_name.partition("@")
    return name
