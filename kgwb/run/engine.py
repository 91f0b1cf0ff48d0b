"""What the agents of a system ask: of models, of the graph and of embeddings, recorded by its content."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import (
    Callable,
    Mapping,
    Sequence,
)
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from kgwb.background import run_in_thread
from kgwb.errors import (
    KgwbError,
    NotRecordedError,
)
from kgwb.kg.base import Graph, ResultSet
from kgwb.kg.embeddings import EmbeddingIndex, Embeddings
from kgwb.llm.base import (
    DEFAULT_TIMEOUT_S,
    PUT_IN,
    ChatModel,
    ChatReply,
    ChatRequest,
    DataNotice,
    notices_collected_by,
)
from kgwb.records import JsonObject, from_data, to_data
from kgwb.run.agents import AgentSpec, System, subject_of
from kgwb.run.answers import Answer, Dialogue
from kgwb.run.diagnostics import (
    VARYING_HINT,
    call_in_its_place,
    describe_change,
    make_recorded,
    recorded_call_of,
)
from kgwb.run.execution import Execution
from kgwb.run.prompts import Prompts
from kgwb.run.record import Record
from kgwb.run.steps import (
    HTTP_KIND,
    RESULT_TYPES,
    Attempt,
    Call,
    CallIdentity,
    CallSource,
    Frame,
    RecordedGraph,
    Sent,
    Status,
    Step,
    Totals,
    current_frame,
    the_frame,
    utc_now,
)
from kgwb.settings import Settings

T = TypeVar("T")
R = TypeVar("R")
FIRST_ERROR_STATUS = 400
LASTING_REFUSALS = (400, 413, 414, 422)
"""HTTP statuses with which the same request will be refused again: it is wrong in itself."""


class Engine:
    """A run as its system and agents see it: what they ask is answered from the record, or made.

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
    graph: RecordedGraph
    """The graph without a recorder: see ``kg``."""
    execution: Execution
    """The latest execution; before the first one, one that has not begun."""

    _executing_kg: RecordedGraph | None = None
    """``kg`` while the run is executed."""
    _has_edits = False
    """Whether a person has changed something, so that other calls than the recorded are expected."""

    def __init__(self) -> None:
        self.record = Record()
        self.calls = self.record.calls
        """Every recorded call by key, also those that the latest execution did not use."""
        self.overrides = self.record.overrides
        """Values that a person put in, by step key."""
        self.edited_messages = self.record.edited_messages
        """Messages that a person put in place of an agent's, by step key and number of the call."""
        self.prefer_recorded = False
        """Whether recorded replies are used even if they came from another model."""

    @property
    def kg(self) -> RecordedGraph:
        """The graph. Everything that is asked of it is recorded.

        The run keeps it only while it is executed. Otherwise each would keep the other, and a run that
        nobody needs any more would stay until Python looks for garbage.
        """
        return self._executing_kg or self.graph.with_recorder(self.call)

    # The latest execution

    @property
    def steps(self) -> list[Step]:
        """The steps of the latest execution; a supervisor stands before what it supervises."""
        return self.execution.steps

    @property
    def status(self) -> Status:
        """How far the latest execution is, or how it ended; "new" before the first."""
        return self.execution.status

    @property
    def answer(self) -> Answer | None:
        """The answer of the latest execution; None if it has not come to its end."""
        return self.execution.answer

    @property
    def error(self) -> KgwbError | None:
        """What stopped the latest execution; None if nothing did."""
        return self.execution.error

    @property
    def position(self) -> int:
        """How many steps the latest execution has done."""
        return self.execution.position

    @property
    def totals(self) -> Totals:
        """What the latest execution used: calls, tokens, queries and seconds; see ``Totals``."""
        return self.execution.totals

    @property
    def past_calls(self) -> Counter[str]:
        """How many requests the latest execution made that the run did not record, by host."""
        return self.execution.past_calls

    @property
    def own_calls(self) -> tuple[str, ...]:
        """The keys of the calls that the latest execution made outside of its agents."""
        return tuple(self.execution.root.calls)

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
        return self._of_agent(self.record.models, agent_name) or ""

    def chat(
        self, request: ChatRequest, own_model: ChatModel | None = None
    ) -> tuple[Call, ChatReply]:
        """Ask the model of the current agent, and return the call and the reply.

        ``own_model`` is asked in its place, except in a replay: the client of a pipeline.

        A recorded reply is used if and only if model, content and repeat number are equal. The
        repeat number counts how often this agent, for its subject, has sent the same request in
        this execution, so that a loop that asks again gets a new reply. A request of ``own_model``
        that fails does not count.

        A reply that a person put in for this call of the step is returned in place of any other.

        Raises what the model raises, NotRecordedError in a replay that lacks the call, and Stopped
        if this is the request that is previewed.
        """
        step = the_frame().step
        request = self._edited_request(step, request)
        timeout_s = self.settings.model_timeout_s
        if request.timeout_s == DEFAULT_TIMEOUT_S and timeout_s != DEFAULT_TIMEOUT_S:
            request = replace(request, timeout_s=timeout_s)
        if self.execution.stop_condition.is_preview(step):
            self.execution.previewed_request = request
            self.execution.stop()
        if own_model is None:
            agent_name = step.agent or request.task
            content = self._content_to_record(request, agent_name)
            model = self.model_for(agent_name)
        else:
            content = self._content_for_client(own_model.name, request)
            model = None if self.is_replay else own_model
        identity = self.execution.count_request(content)
        place = (step.key, len(step.model_calls))
        if place in self.record.edited_replies:
            call = self._put_in_reply(step, content, self.record.edited_replies[place])
            return call, call.result

        is_remote = self.graph.remote
        make = None
        if model is not None:
            is_remote = is_remote or model.remote
            make = partial(self._ask_model, model, request)
        model_name = content["model"] or "the model"
        missing = f"the reply of {model_name} to {request.task}"
        try:
            call = self._call(identity, make, is_remote, missing, ChatReply)
        except Exception:
            if own_model is not None:  # the client may send it again, which is no other request
                self.execution.forget_request(content)
            raise
        return call, call.result

    def has_reply(self, model_name: str, request: ChatRequest) -> bool:
        """Return whether the reply to the next request of a pipeline's own model is recorded."""
        request = self._edited_request(the_frame().step, request)
        content = self._content_for_client(model_name, request)
        return self.execution.find_next(content) is not None

    def _put_in_reply(self, step: Step, content: JsonObject, text: str) -> Call:
        """Return a call with a reply that a person put in, and add it to the step with a note.

        It is recorded beside the call that it stands for: nothing is asked, and both stay.
        """
        request = {**content, "put_in": text}
        key, kind, _, repeat, _ = CallIdentity.of("model", request, 0)
        if key not in self.calls:
            reply = ChatReply(text, model=PUT_IN)
            call = Call(key, kind, step.key, request, repeat, reply, utc_now(), 0.0, ChatReply)
            self.calls[key] = call
            self.record.append_json(f'{{"call":{call.to_json()}}}')
        self.note(f"the reply of model call {len(step.model_calls) + 1} was put in by hand")
        step.calls.append(key)
        return self.calls[key]

    @property
    def notices(self) -> tuple[DataNotice, ...]:
        """What left the machine, and where it went: one for each hosted model that was asked."""
        return tuple(self.record.notices)

    def _ask_model(self, model: ChatModel, request: ChatRequest) -> ChatReply:
        """Ask a model, and keep the notice of what leaves the machine with the request, if any."""
        with notices_collected_by(self._keep_notice):
            return model.complete(request, self.unrecorded_graph, self.execution.cancelled)

    def _keep_notice(self, notice: DataNotice) -> None:
        """Add a notice to the run and to its file, unless the run has it already."""
        if self.record.add_notice(notice):
            self.record.append(notice=to_data(notice))

    def _edited_request(self, step: Step, request: ChatRequest) -> ChatRequest:
        """Return a request with the messages that a person put in for it; as it is without any.

        Those messages stand under the key of the step and the number of model calls that it has
        made so far.
        """
        if not self.edited_messages:
            return request
        place = (step.key, len(step.model_calls))
        messages = self.edited_messages.get(place)
        if messages is None:
            return request
        return replace(request, messages=messages)

    def _content_to_record(self, request: ChatRequest, agent_name: str) -> JsonObject:
        """Return the JSON data under which a model call is recorded, and found again.

        It names the agent's model. With ``prefer_recorded`` it names the recorded model of the
        agent instead, if the record has that model's reply to the request.
        """
        if self.prefer_recorded:
            model_name = self._recorded_model_name(agent_name)
            content = self._content_for_model(model_name, request)
            if self.execution.find_next(content):
                return content
        return self._content_for_model(self.model_name(agent_name), request)

    def _content_for_client(self, client_name: str, request: ChatRequest) -> JsonObject:
        """Return the JSON data under which a call of a pipeline's own client is recorded and found.

        It names model and address, "openai:MODEL@URL", because another server may reply otherwise.
        A replay sends nothing: if it has no recorded call at this address, that of the same model
        at another address is used.
        """
        content = self._content_for_model(client_name, request)
        if not self.is_replay or self.execution.find_next(content):
            return content
        recorded_names: dict[str, None] = {}
        for call in self.calls.values():
            if call.kind == "model":
                recorded_names[call.request["model"]] = None
        for recorded_name in recorded_names:
            if _without_address(recorded_name) != _without_address(client_name):
                continue
            elsewhere = self._content_for_model(recorded_name, request)
            if self.execution.find_next(elsewhere):
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
            content["graph"] = self.graph.identity
            content |= self.graph.muted_data
        return content

    # Graph, embeddings and tools

    @property
    def unrecorded_graph(self) -> Graph | None:
        """The graph without recording; None in a replay."""
        return self.graph.inner

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
        result: T = self.find_or_make_call(kind, request, make, result_type).result
        if kind not in RESULT_TYPES:  # it is JSON data if the call was read from a file
            result = from_data(result, result_type or Any)
        return result

    def find_or_make_call(
        self,
        kind: str,
        request: JsonObject,
        make: Callable[[], Any] | None,
        result_type: Any = None,
    ) -> Call:
        """Return the call itself whose result ``call`` returns; the arguments are the same."""
        missing = f"a {kind}"
        is_remote = False
        if kind != "similarity":
            missing = f"a {kind} on the graph"
            is_remote = self.graph.remote
        result_type = RESULT_TYPES.get(kind, result_type or Any)
        identity = CallIdentity.of(kind, request, 0)
        call = self._call(identity, make, is_remote, missing, result_type)
        result = call.result
        if not isinstance(result, ResultSet):
            return call
        if result.cut:
            self.note(f"the result was cut at {len(result.rows)} rows")
        # Most queries have none, and the pattern for it takes ten times as long as this.
        if kind == "select" and "group_concat" in request["query"].lower():
            from kgwb.kg.findings import describe_unbound_concat

            unbound = describe_unbound_concat(request["query"], result)
            if unbound:
                self.note(unbound)
        return call

    def exchange(self, request: JsonObject, make: Callable[[], JsonObject] | None) -> Call:
        """Return the recorded call of a request over HTTP; without one, make and record it.

        ``request`` is JSON data that says what is sent. The repeat number counts how often it was
        sent before, as for a model call: a pipeline may ask until the reply is another one.
        """
        self.find_exchange(request)
        identity = self.execution.count_request(request, HTTP_KIND)
        missing = f"the reply to {request['method']} {request['url']}"
        try:
            return self._call(identity, make, True, missing, Any)
        except Exception:
            self.execution.forget_request(request, HTTP_KIND)
            raise

    def find_exchange(self, request: JsonObject) -> Call | None:
        """Return the recorded call that ``exchange`` would return next for a request, or None.

        A refusal that may pass, such as that of a busy server, is used in replays only.
        """
        call = self.execution.find_next(request, HTTP_KIND)
        if call is None or self.is_replay:
            return call
        status = call.result["status"]
        if status >= FIRST_ERROR_STATUS and status not in LASTING_REFUSALS:
            self.record.outdated.add(call.key)
            return None
        return call

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
        make = None
        if not self.is_replay:
            make = partial(self.embeddings.similarity, phrase, names, spelling)
        return self.call("similarity", request, make)

    def nearest(self, phrase: str, index: EmbeddingIndex, k: int) -> tuple[tuple[int, float], ...]:
        """Return position and cosine of the ``k`` texts of an index nearest to a phrase."""
        request = {"index": index.identity, "phrase": phrase, "k": k}
        return self.call("nearest", request, partial(index.nearest, phrase, k))

    # Calls

    def use_store(self, store: CallSource | None) -> None:
        """Look for calls that are not recorded in a store, and keep there what is made."""
        self.record.store = store

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
        self.execution.stop_if_cancelled()
        step = the_frame().step
        key, kind, request, repeat, request_json = identity
        if self.execution.stop_condition.preview_of or self.execution.earlier_steps:
            # Otherwise it does not matter yet, and a store need not be asked twice.
            is_recorded = self.record.find(key) is not None
            if self.execution.stop_condition.preview_of and not is_recorded:
                self.execution.stop()
            if not is_recorded:
                self._note_change(step, kind, request)

        def make_call() -> Call:
            """Make the call for the step, on this thread or for a remote one on another, and return it.

            It has its result, the time at which it began, and how long it took.
            """
            call = Call(key, kind, step.key, request, repeat, None, utc_now(), 0.0, result_type)
            started = time.perf_counter()
            call.result = self._make_result(step, call, make, is_remote, missing)
            if isinstance(call.result, Sent):
                call.result, call.response = call.result
            call.seconds = time.perf_counter() - started
            if step.origin == "record":
                step.origin = "live"
            step.live_calls += kind == "model"
            return call

        call, is_new = self.record.find_or_make(
            key, kind, make_call, self.execution.stop_if_cancelled
        )
        if is_new:
            call.step = step.key  # in the store it may be one of another question
            if self.record.file:
                self.record.append_json(f'{{"call":{call.to_json(request_json)}}}')
        step.calls.append(key)
        return call

    def _note_change(self, step: Step, kind: str, request: JsonObject) -> None:
        """Add a note to a step that asks something else than in the execution before.

        Compared is the call at the same position of the same step (``call_in_its_place``). There is
        no note if there was no such call, or after an edit.
        """
        earlier = self.execution.earlier_steps.get(step.key)
        before = call_in_its_place(step, kind, earlier, self.calls)
        if before is None:
            return
        change = describe_change(step, request, before)
        if change:
            self.note(f"{change}. If it uses random numbers or the time: {VARYING_HINT}")

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
            make = partial(run_in_thread, make, poll=self.execution.stop_if_cancelled)
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
        if before.request.get("graph") != call.request.get("graph"):
            raise NotRecordedError(
                f"the run was recorded over another graph, and {step.key} asks something else of this one",
                hint="open it with the graph that it was asked of, or give a model, too, that is asked again",
            )
        change = describe_change(step, call.request, before)
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
        frame = the_frame()
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
        if len(items) < 2 or self.execution.stop_condition.is_stepping:
            return False
        subjects = {subject_of(item) for item in items}
        if len(subjects) < len(items):
            return False
        if self.graph.remote:
            return True
        return any(model.remote for model in self.models.values())

    # Steps

    def note(self, text: str) -> None:
        """Leave a remark for the person on the current step, if it does not have the same yet."""
        notes = the_frame().step.notes
        if text not in notes:
            notes.append(text)

    def add_attempt(self, attempt: Attempt) -> None:
        """Keep an attempt on the current step."""
        the_frame().step.attempts.append(attempt)

    def prompt_text(self, name: str) -> str:
        """Return the text of a prompt, and keep it as used by the run and by the current step.

        It is a text given to the run, else the system's own, else that of the prompt's file. A text
        that the run has not used for this prompt yet is also written to the run's file. Raises
        PromptError if there is no such prompt.
        """
        text = self.prompts.text(name)
        prompts = the_frame().step.prompts
        if name not in prompts:
            prompts.append(name)
        if self.record.used_prompts.get(name) != text:
            self.record.used_prompts[name] = text
            self.record.append(prompt={"name": name, "text": text})
        return text


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
