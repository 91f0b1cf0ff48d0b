"""A run, and what a person does with it: execute it, edit, fork and compare it, see, save and load it.

``read_only_run`` is one whose system is not there, from what its steps recorded.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from copy import copy
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from kgwb import disk
from kgwb.background import POLL_INTERVAL_S, shielded
from kgwb.errors import (
    Cancelled,
    InputError,
    ModelError,
    OutputError,
    OverrideError,
    QuestionError,
    RunFileError,
    SettingError,
    Stopped,
)
from kgwb.kg import GraphSource, open_kg
from kgwb.kg.base import Graph
from kgwb.kg.embeddings import Embeddings
from kgwb.llm.base import ChatModel, ChatRequest, Message
from kgwb.records import describe_validation_error, from_data, to_data, type_adapter
from kgwb.run.agents import AgentKind, AgentSpec, System, agent, agent_of_key
from kgwb.run.answers import Answer, Dialogue, Question, Reading, Turn
from kgwb.run.diagnostics import explained_failure, value_text
from kgwb.run.differences import Differences, compare_steps
from kgwb.run.engine import Engine
from kgwb.run.execution import Execution, Listener, check_override
from kgwb.run.models import (
    Models,
    NewReplies,
    StandIn,
    ask_call_again,
    check_times,
    open_model,
    open_models,
)
from kgwb.run.prompts import Prompts, messages_from_text
from kgwb.run.record import (
    DAMAGED_FILE_ERRORS,
    End,
    Header,
    RunFile,
    SavedRun,
    current_settings,
    damage_errors,
    messages_entry,
    put_or_remove,
)
from kgwb.run.steps import (
    RecordedGraph,
    Step,
    StopCondition,
    format_tree,
    names_in_steps,
    utc_now,
)
from kgwb.settings import Settings
from kgwb.terms import Triple
from kgwb.text import list_first, pluralize, single_line

if TYPE_CHECKING:
    from kgwb.run.gold import RightAnswer

_log = logging.getLogger("kgwb")
CANCEL_TIMEOUT_S = 60.0
"""How long a new execution waits for a cancelled one to end the slow call that it is in."""
LOADED_KINDS = ("call", "notice", "prompt", "settings", "override", "messages", "reply", "end")
"""The entries of a file from which a run is loaded; its steps are for readers."""
FORK_PARAMETERS = (
    "question",
    "dialogue",
    "kg",
    "system",
    "models",
    "settings",
    "prompts",
    "embeddings",
)
"""Parameters of ``Run`` that a fork takes from the run, unless it changes them."""


@dataclass(frozen=True)
class Setup:
    """Everything that a question is asked of: a graph, and a system with its models and settings."""

    kg: Graph
    system: System
    models: Mapping[str, ChatModel]
    """By agent name; the default under ""."""
    settings: Settings
    prompts: Prompts
    embeddings: Embeddings

    def of_system(self, system: System) -> Setup:
        """Return a copy of this setup for another system.

        Models of agents and roles that the other system lacks are left out, and so are settings
        that it does not have. Settings that were not changed from the profile become those of the
        other system's profile of the same name.
        """
        users = {"", *system.roles}  # "" is for all without their own
        users.update(system.specs_by_name)
        models = {user: model for user, model in self.models.items() if user in users}
        all_changes = self.settings.changes_from_profile()
        changes = system.settings.select_known(all_changes)
        settings = system.settings.of_profile(self.settings.profile, **changes)
        return replace(self, system=system, models=models, settings=settings)

    def begin(
        self, question: str, dialogue: Dialogue | None = None, path: str | Path | None = None
    ) -> Run:
        """Return a new run of one question with this setup, not executed yet.

        ``dialogue`` are the turns before it. The run is written to the file at ``path``, if there
        is one. Raises what ``Run`` raises.
        """
        return Run(
            self.system,
            question,
            dialogue,
            kg=self.kg,
            models=self.models,
            settings=self.settings,
            prompts=self.prompts,
            embeddings=self.embeddings,
            path=path,
        )


class Run(Engine):
    """One question to one system over one graph, recorded. See ``kgwb.run``.

    An edit changes what the next execution does. After it, the edited step is the next one to be
    done, and the run is no turn of its dialogue until it is finished again.
    """

    read_only = ""
    """Why the run can only be read, as its system is missing; empty for any other run."""
    read_only_hint = "name its system: kgwb.load_run(path, system='./mine.py')"
    """What to do instead, if the run can only be read."""
    _is_edited = False
    """Whether a person has changed something since the latest execution began."""

    def __init__(  # noqa: PLR0913  # everything that a run depends on, by keyword
        self,
        system: System,
        question: str,
        dialogue: Dialogue | None = None,
        *,
        kg: GraphSource | None,
        models: Models,
        settings: Settings | Mapping[str, Any] | str | None = None,
        prompts: Prompts | str | Path | None = None,
        embeddings: Embeddings | None = None,
        path: str | Path | None = None,
    ) -> None:
        """Prepare a run; ``go`` executes it.

        ``path`` names a file to which every call is written as it ends. If it is the file of a run
        of the same question that was not finished, the calls in it are used.

        Raises QuestionError for an empty or far too long question, SettingError for a model of an
        unknown agent or role, RunFileError if ``path`` cannot be written or is a file of another
        kind, and what opening a graph, a model or prompts by name raises.
        """
        super().__init__()
        self.id = os.urandom(6).hex()
        self.created = utc_now()
        self.system = system
        self.settings = system.settings.of(settings)
        self.question = check_question(question, self.settings)
        self.dialogue = dialogue or Dialogue()
        self.models = open_models(models)
        for agent_name in self.models:
            if agent_name:
                system.check_model_user(agent_name)
        self.prompts = Prompts.of(prompts).for_system(system.prompts)
        self.embeddings = embeddings or Embeddings()
        self.execution = Execution(system, self.record)
        self.turn: Turn | None = None
        """What a dialogue remembers of the latest finished execution; None again after an edit."""
        self.recorded_status = ""
        """For a run from a file: the status with which the latest execution in it ended."""
        self.recorded_position = 0
        """For a run from a file: how many steps that execution had done."""
        self.listeners: list[Listener] = []
        """Called with "start" or "end" and the step."""
        self.widget_state: object = None
        """For widgets to keep their state of this run; the run itself does not use it."""
        self._executing_lock = threading.Lock()
        """Held while the run is executed."""
        self.breakpoints: set[str] = set()
        """Names of agents, or keys of steps, after which ``go`` stops."""
        graph = None if kg is None else open_kg(kg)
        if isinstance(graph, RecordedGraph):
            self.graph = graph.with_recorder(None)
        else:
            self.graph = RecordedGraph(graph)
        self.right_answer: RightAnswer | None = None
        """What is known to be right; set by whoever has the gold of the question."""
        self._write_to(path)

    # Executing

    def go(self, until: str | int | None = None, *, before: str | None = None) -> Run:
        """Execute to the end, to the next breakpoint, or to where the arguments say.

        ``until`` is the name of an agent or the key of a step that shall be done, or a number of
        steps. ``before`` is an agent or step at whose beginning to stop. What is recorded is not
        asked again.

        Returns the run. Raises the KgwbError that stopped the execution. Everything up to there is
        kept, and the next ``go`` resumes. A KeyboardInterrupt cancels the execution, and is raised.
        """
        return self._run(self._stop_condition_of(until, before))

    def go_explained(self, until: str | int | None = None) -> Run:
        """Do what ``go`` does, and raise AgentFailedError where the code of the system raises another error.

        It says which agent failed, with what, and where: for places at which a person reads the
        message and not a traceback, such as the terminal. A KgwbError is raised as it is.
        """
        with explained_failure(self):
            return self.go(until)

    def _stop_condition_of(self, until: str | int | None, before: str | None) -> StopCondition:
        """Return where ``go`` stops: after a breakpoint, after ``until``, or before ``before``.

        A number as ``until`` is how many steps are to be done. A paused run does not stop again
        where it has paused. Raises SettingError if a breakpoint or an argument names an agent that
        the system does not have.
        """
        count = until if isinstance(until, int) else None
        after = set(self.breakpoints)
        if isinstance(until, str):
            after.add(until)
        before_keys = set()
        if before:
            before_keys.add(before)
        for key in after | before_keys:
            self.system.agent_spec(key)

        condition = StopCondition(count, frozenset(after), before=frozenset(before_keys))
        if self.status == "paused":
            condition = replace(condition, after_position=self.position, begun=self.execution.begun)
        return condition

    def step(self) -> Run:
        """Execute until one more step is done. Returns and raises what ``go`` does."""
        return self._run(StopCondition(self.position + 1))

    def step_back(self, steps: int = 1) -> Run:
        """Go back to where so many steps fewer were done. Returns and raises what ``go`` does."""
        count = max(self.position - steps, 0)
        return self._run(StopCondition(count))

    async def go_async(self, until: str | int | None = None, *, before: str | None = None) -> Run:
        """Do what ``go`` does without blocking the event loop, for notebooks that await.

        Cancelling the task cancels the execution.
        """
        import asyncio

        cancel = threading.Event()  # of this execution alone: another one may still be running
        stop_condition = self._stop_condition_of(until, before)
        try:
            await asyncio.to_thread(self._execute, stop_condition, cancel)
        except asyncio.CancelledError:
            cancel.set()
            raise
        return self

    def cancel(self) -> None:
        """Stop the execution at its next call; a slow remote call is left behind."""
        self.execution.cancelled.set()

    def _run(self, stop_condition: StopCondition) -> Run:
        """Execute the system until it stops, and return this run.

        On the main thread, the work is done on another one, and an interrupt cancels it.
        """
        cancel = threading.Event()
        shielded(partial(self._execute, stop_condition, cancel), on_abandon=cancel.set)
        return self

    def _execute(self, stop_condition: StopCondition, cancel: threading.Event) -> None:
        """Execute the system from its beginning, and add how that ended to the run's file.

        An execution that comes to its end sets ``answer`` and ``turn``. Setting ``cancel`` cancels
        it. Raises the errors of the system, SettingError if another execution goes on or if the run
        can only be read, and RunFileError if the file cannot be written.
        """
        self._refuse_if_read_only()
        with self._begun_execution(stop_condition, cancel) as execution:
            try:
                with execution.running(self):
                    if stop_condition.count == 0:
                        raise Stopped
                    self._check_models(stop_condition)
                    question = Question(self.question)
                    answer = self.system.answer(question, self.dialogue, self)
                    self._check_answer(answer)
                    from kgwb.run.doubts import complete_answer

                    execution.answer = complete_answer(answer, self)
                    self.turn = self.system.remember(self)
            except BaseException:
                with suppress(RunFileError):  # the first failure is the one to report
                    self._append_end()
                raise
            self._append_end()

    @contextmanager
    def _begun_execution(
        self, stop_condition: StopCondition, cancel: threading.Event
    ) -> Iterator[Execution]:
        """Run the code inside as the only execution of this run, a new one, and give it to the code.

        If a cancelled execution has not ended yet, this one waits for it, at most CANCEL_TIMEOUT_S.
        For one that was not cancelled it waits POLL_INTERVAL_S, and then raises SettingError.
        Raises Cancelled if ``cancel`` is set meanwhile.
        """
        deadline = time.monotonic() + CANCEL_TIMEOUT_S
        while not self._executing_lock.acquire(timeout=POLL_INTERVAL_S):
            if not self.execution.cancelled.is_set() or time.monotonic() > deadline:
                raise SettingError(
                    "the run was not continued: it is already being executed",
                    hint="wait until it has ended, or cancel it with run.cancel()",
                )
        try:
            if cancel.is_set():
                raise Cancelled
            earlier_steps = {} if self.has_pending_edits else self.steps_by_key
            self._is_edited = False
            self.execution = Execution(
                self.system, self.record, self.listeners, stop_condition, cancel, earlier_steps
            )
            self._executing_kg = self.graph.with_recorder(self.call)
            yield self.execution
        finally:
            self._executing_kg = None
            self._executing_lock.release()

    def _append_end(self) -> None:
        """Add how the latest execution ended to the run's file, and close it; without a file, do nothing."""
        if self.record.file:
            self.record.append_json(self._end().to_json())
            self.record.write(self.record.file.close)

    def _check_models(self, stop_condition: StopCondition) -> None:
        """Raise ModelError, before any work, if ``rules`` is the model of a system without rules.

        It is checked only for an execution to the end, without recorded calls and without values
        put in: others may need no model.
        """
        may_stop = stop_condition.is_stepping or stop_condition.preview_of
        if may_stop or self.calls or self.overrides or self.system.rules:
            return
        agent_names = []
        for spec in self.system.agents:
            model = self.model_for(spec.name)
            if spec.kind == "model" and model and model.name == "rules":
                agent_names.append(spec.name)
        if agent_names:
            raise ModelError(
                f"the system {self.system.name} has no rules by which the model rules could answer",
                hint=f"choose another model for {list_first(agent_names)}, such as openai:NAME",
            )

    def _check_answer(self, answer: Any) -> None:
        """Raise OutputError, which shows the value, unless it is an Answer."""
        if not isinstance(answer, Answer):
            raise OutputError(
                f"the system {self.system.name} returned {value_text(answer)}, not an Answer",
                hint="return Answer(kind, values), or Answer(kind, reason='...') without values",
            )

    def _refuse_if_read_only(self) -> None:
        """Raise SettingError, with the reason, if the run can only be read."""
        if self.read_only:
            raise SettingError(
                f"this run can only be read: {self.read_only}",
                hint=self.read_only_hint,
            )

    # Looking up

    @property
    def has_pending_edits(self) -> bool:
        """Whether the run was edited since it was last executed, so that its answer is the old one."""
        return self._is_edited

    @property
    def steps_by_key(self) -> dict[str, Step]:
        """The steps of the latest execution by key."""
        return {step.key: step for step in self.steps}

    def __getitem__(self, step: str) -> Step:
        """Return a step of the latest execution by its key, or by its agent if that has one step.

        Raises SettingError if the step was not reached, or if the agent has several steps.
        """
        key = self._key_of(step)
        steps = self.steps_by_key
        if key not in steps:
            raise SettingError(
                f"the step {step} was not reached yet",
                hint=f"continue the run to it: run.go(until={step!r})",
            )
        return steps[key]

    def output(self, step: str) -> Any:
        """Return the output of a step, given by its key or by the name of an agent with one step.

        Raises SettingError if the step is not done, if the system has no such agent, or if the
        agent has several steps.
        """
        reached = self[step]
        if not reached.done:
            raise SettingError(
                f"the step {step} has no output: it is not done",
                hint=f"continue the run to it: run.go(until={reached.key!r})",
            )
        return reached.output

    def _key_of(self, step: str) -> str:
        """Return the key of a step that is given by its key or its agent's name.

        A step that was not reached is returned as it is given. Raises SettingError if the agent has
        several steps, or the system has no such agent.
        """
        keys = [reached.key for reached in self.steps if step in (reached.key, reached.agent)]
        if step in keys:
            return step
        if len(keys) > 1:
            choices = ", ".join(keys)
            raise SettingError(
                f"the agent {step} has several steps, so its name is not enough",
                hint=f"name one of {choices}",
            )
        self.system.agent_spec(step)
        return keys[0] if keys else step

    # Values

    def override(self, step: str, value: Any) -> Run:
        """Put in a value by hand: the step returns it from the next execution on.

        ``step`` is a key, or the name of an agent that has one step or none yet. ``value`` is a
        record or its JSON data. Nothing is executed now; the position goes back to before the step,
        if it was reached. The value is also written to the run's file.

        Returns the run. Raises OverrideError if the value has not the type of the step's output, or
        fails the agent's check, which is made only if the step was reached; and SettingError if the
        system has no such agent, the agent has several steps, or the run can only be read.
        """
        self._refuse_if_read_only()
        key = self._key_of(step)
        spec = self.system.agent_spec(key)
        typed_value = self._typed_override(key, spec, value)
        reached = self.steps_by_key.get(key)
        if reached is not None:
            check_override(spec, key, typed_value, reached.inputs)
        self.overrides[key] = typed_value
        data = to_data(typed_value, spec.output_type)
        return self._edited([key], override={"step": key, "value": data})

    def _typed_override(self, key: str, spec: AgentSpec, value: Any) -> Any:
        """Return a value that a person put in, as a value of the agent's output type.

        The value may be of that type or its JSON data; the fields of a record are checked. Without
        an annotation it is returned as it is, unless it is a dict for a record. Raises
        OverrideError, which names the step ``key``, for any other value.
        """
        output_type = spec.output_type
        data = value
        if output_type is Any:
            self._refuse_data_for_record(key, spec, value)
            return value
        try:
            if isinstance(output_type, type) and isinstance(value, output_type):
                # A record may have fields of wrong types. Reading its data finds them.
                adapter = type_adapter(output_type)
                data = adapter.dump_python(value, mode="json", warnings=False)
            _refuse_unknown_fields(data, output_type)
            return from_data(data, output_type)
        except (ValueError, TypeError) as exc:
            type_name = getattr(output_type, "__name__", str(output_type))
            problem = describe_validation_error(exc)
            hint = f"give a {type_name}, or its fields as JSON data"
            if is_dataclass(output_type):
                field_names = ", ".join(field.name for field in fields(output_type))
                hint += f": {field_names}"
            raise OverrideError(
                f"the value put in for {key} cannot be used: {problem}", hint=hint
            ) from exc

    def _refuse_data_for_record(self, key: str, spec: AgentSpec, value: Any) -> None:
        """Raise OverrideError for a dict in place of a record, from an agent without annotation.

        Nothing says which record the dict stands for, so it would stay a dict, and fail where its
        fields are read. That the agent returns records is known only of a step that is done.
        """
        step = self.steps_by_key.get(key)
        if step is None or not isinstance(value, dict):
            return
        output = step.output
        if is_dataclass(output) or isinstance(output, BaseModel):
            record = type(output).__name__
            raise OverrideError(
                f"a dict cannot be put in as the result of {key}: it returned a {record}",
                hint=f"give a {record}; or, in your own code, annotate the agent: "
                f"def {spec.function.__name__}(...) -> {record}, and dicts are converted",
            )

    def remove_override(self, step: str) -> Run:
        """Remove a value that was put in by hand; if there is none, do nothing. Returns the run.

        The removal is written to the run's file. Raises SettingError if the system has no such
        agent, or if the agent has several steps. A value that was put in by the agent's name,
        before its step was reached, is removed as well.
        """
        self._refuse_if_read_only()
        key = step if step in self.overrides else self._key_of(step)
        entries = [key]
        agent_name = self.system.agent_spec(key).name
        if agent_name not in self.steps_by_key:
            # The value may have been put in by the agent's name, before the step was reached.
            entries.append(agent_name)
        for entry in entries:
            if entry in self.overrides:
                del self.overrides[entry]
                self._edited([key], override={"step": entry, "value": None})
        return self

    # Calls and prompts

    def refresh(self, step: str) -> Run:
        """Make the calls of a step, and of the steps it supervises, again in the next execution.

        This is for a live graph that has changed, or a model that may answer better. Nothing is
        executed now; the position goes back to before the step. Returns the run. Raises
        SettingError if the step was not reached, or if the run can only be read.
        """
        self._refuse_if_read_only()
        refreshed = {self[step].key}
        for reached in self.steps:  # supervisors stand before what they supervise
            if reached.parent in refreshed:
                refreshed.add(reached.key)
            if reached.key in refreshed:
                self.record.outdated.update(reached.calls)
        return self._edited(refreshed)

    def undo_refresh(self) -> Run:
        """Undo ``refresh``: use the recorded calls after all. Returns the run."""
        self.record.outdated.clear()
        return self

    def edit_prompt(self, name: str, text: str) -> Run:
        """Use another text for a prompt in this run, from the next execution on. Returns the run.

        The prompt's file does not change; the text is written to the run's file. The position goes
        back to before the first step that used the prompt. Raises PromptError if the text is not a
        prompt, and SettingError if the run can only be read.
        """
        self._refuse_if_read_only()
        self.prompts = self.prompts.with_text(name, text)
        edited_keys = [step.key for step in self.steps if name in step.prompts]
        return self._edited(edited_keys, prompt={"name": name, "text": text})

    def edit_settings(self, **changes: Any) -> Run:
        """Change some settings of this run. The next execution begins anew with them.

        Recorded calls are used where their content is the same. The settings are written to the
        run's file. Returns the run. Raises SettingError for an unknown or impossible setting.
        """
        self._refuse_if_read_only()
        self.settings = self.settings.with_changes(**changes)
        every_key = [step.key for step in self.steps]
        return self._edited(every_key, settings=self.settings.to_data())

    def edit_messages(
        self, step: str, messages: str | Sequence[Message] | None, number: int = 0
    ) -> Run:
        """Send other messages in a model call of a step from now on. Returns the run.

        ``number`` counts the model calls of the step from 0. ``messages`` may be a text with a line
        [system], [user] or [assistant] above each. None takes back an earlier edit. The edit is
        written to the run's file, and the position goes back to before the step.

        Raises PromptError for a text without roles. Raises SettingError if the system has no such
        agent, if the agent has several steps, if the step was executed and made no such call, or if
        the run can only be read.
        """
        key = self._key_of_call(step, number, messages)
        if isinstance(messages, str):
            messages = messages_from_text(messages)
        sent = None
        if messages is not None:
            sent = tuple(messages)
        put_or_remove(self.edited_messages, (key, number), sent)
        return self._edited([key], **messages_entry(key, number, sent))

    def edit_reply(self, step: str, text: str | None, number: int = 0) -> Run:
        """Put in a text as the reply of a model call of a step. Returns the run.

        From the next execution on, the step gets it in place of the model's reply, and it must pass
        the same checks; only what follows is asked. The client of a pipeline gets it as its server
        would send it, streamed or not. ``number`` counts the model calls of the step from 0. None
        takes back an earlier edit. The edit is written to the run's file, and the position goes back
        to before the step.

        Raises SettingError as ``edit_messages`` does.
        """
        key = self._key_of_call(step, number, text)
        put_or_remove(self.record.edited_replies, (key, number), text)
        return self._edited([key], reply={"step": key, "call": number, "value": text})

    def _key_of_call(self, step: str, number: int, edit: object) -> str:
        """Return the key of a step of which a model call is edited; None takes back an edit.

        Raises SettingError if the run can only be read, or if the step was executed and made no model
        call of this number. A step that is not done, or whose output was put in by hand, passes: its
        calls are not known.
        """
        self._refuse_if_read_only()
        key = self._key_of(step)
        reached = self.steps_by_key.get(key)
        if edit is not None and reached and reached.done and reached.origin != "by hand":
            self._check_model_call(reached, number)
        return key

    def _check_model_call(self, step: Step, number: int) -> None:
        """Raise SettingError if a step has no model call of this number."""
        calls = len(step.model_calls)
        if 0 <= number < calls:
            return
        problem = f"made {pluralize(calls, 'model call')}, and there is no number {number}"
        hint = f"give a number from 0 to {calls - 1}"
        if not calls:
            problem = "made no model call"
            asking = [other.key for other in self.steps if other.model_calls]
            hint = f"name a step that made one: {', '.join(asking)}"
            if not asking:
                hint = "no step of this run made one"
        raise SettingError(f"the step {step.key} {problem}", hint=hint)

    def _edited(self, edited_keys: Collection[str], **entry: Any) -> Run:
        """Write an edit to the run's file, and set the position back to before the first edited step.

        The position becomes the number of steps that were done before that step, unless it is lower
        already, so that ``go`` can stop after the step. ``turn`` becomes None. If no edited step
        was reached, the position stays. Returns the run.
        """
        if entry:
            self.record.append(**entry)
        self.turn = None
        self._is_edited = True
        self._has_edits = True
        edited = [number for number, step in enumerate(self.steps) if step.key in edited_keys]
        if not edited:
            return self
        first = edited[0]
        first_edited = self.steps[first]
        earlier = self.steps[:first]
        self.execution.begun = frozenset(step.key for step in earlier)

        supervisors = _supervisors_of(first_edited, earlier)  # they end only after it
        done = [step for step in earlier if step.done and step.key not in supervisors]
        self.execution.position = min(self.position, len(done))
        return self

    # Forks

    def fork(self, **changes: Any) -> Run:
        """Return a new run of the same question, with some things changed.

        The changes may be: question, dialogue, kg, system, models, settings, prompts, embeddings,
        path. The new run starts with the record, the store and the overrides of this one, so only
        calls with another content are made. ``models`` is a model for all agents, or models by agent; the
        other agents keep theirs then. ``path`` is the file that the new run is written to; without
        it, the new run has none.

        Raises SettingError for another change, and what ``Run`` raises.
        """
        path = changes.pop("path", None)
        unknown = sorted(set(changes) - set(FORK_PARAMETERS))
        if unknown:
            raise SettingError(
                f"run.fork cannot change {', '.join(unknown)}",
                hint=f"give it any of {', '.join(FORK_PARAMETERS)}",
            )
        arguments = {name: getattr(self, name) for name in FORK_PARAMETERS}
        arguments.update(changes)
        models = changes.get("models")
        if isinstance(models, Mapping):
            arguments["models"] = {**self.models, **models}
        forked = Run(**arguments)
        forked.record.take_over(self.record)
        forked.prefer_recorded = self.prefer_recorded and "models" not in changes
        if forked.question == self.question:
            forked.right_answer = self.right_answer
        forked._has_edits = True
        forked._write_to(path)
        return forked

    @property
    def readings(self) -> tuple[Reading, ...]:
        """How else the question may be read, in the order of the numbers of ``read_as``."""
        if self.answer is None:  # an answer without values is falsy, and may have readings
            return ()
        return self.answer.readings

    def read_as(self, number: int) -> Run:
        """Return a fork that answers the question as one of ``readings`` has it, not executed yet.

        Numbers begin with 1. Only the steps that depend on the reading make new calls. Raises
        SettingError if there is no such reading.
        """
        take = self.system.read_as
        if take is None or not 1 <= number <= len(self.readings):
            offered = pluralize(len(self.readings), "other reading")
            raise SettingError(
                f"the answer has no other reading {number}: it has {offered}",
                hint="run.readings shows them, and the first one has the number 1",
            )
        fork: Run = take(self, self.readings[number - 1])
        return fork

    def mute(self, *triples: Triple) -> Run:
        """Return a fork whose graph is a copy that lacks these triples.

        The graph of this run does not change. A survey of the graph still counts the triples.
        ``run.diff(run.mute(t).go())`` shows what follows.

        Raises SettingError in a replay, and what ``Graph.without`` raises: GraphError for an
        endpoint, QueryError for a triple with a blank node.
        """
        muted_graph = self.graph.without(*triples)
        return self.fork(kg=muted_graph.inner)

    def preview_request(self, step: str, *, prompts: Prompts | None = None) -> ChatRequest | None:
        """Return the first request that an agent or step will send to its model, without asking.

        Nothing is called, and this run does not change. ``prompts`` are used in place of the run's.

        Returns None if the agent asks no model, or if an earlier step must be run first. Raises
        PromptError for a prompt that its agent cannot fill, and what an agent raises before.
        """
        self.system.agent_spec(step)
        copy = self.fork(prompts=prompts or self.prompts)
        stop_condition = StopCondition(after=frozenset({step}), preview_of=step)
        copy._run(stop_condition)
        return copy.execution.previewed_request

    def fork_to_ask(self, step: str, model: ChatModel, *, prompts: Prompts | None = None) -> Run:
        """Return a fork in which a step asks this model even if its reply is recorded.

        The fork is not executed yet: ``go(step)`` asks. The recorded calls of the agent's other
        steps are used, since the model goes by the name of the agent's own one. A value put in for
        the step is removed. ``prompts`` are used in place of the run's.

        Raises SettingError if the agent asks no model, or if an earlier step must be run first, and
        PromptError for a prompt that the agent cannot fill.
        """
        request = self.preview_request(step, prompts=prompts)
        if request is None:
            raise SettingError(
                f"no model can be asked at {step}, which asks none in the present state of the run",
                hint="execute the steps before it first, or name an agent that asks a model",
            )
        agent = agent_of_key(step)
        stand_in = StandIn(model, self.model_name(agent))
        copy = self.fork(models={agent: stand_in}, prompts=prompts or self.prompts)
        copy.prefer_recorded = self.prefer_recorded
        if step in copy.overrides:
            copy.remove_override(step)
        content = request.recorded_content()
        for key, call in copy.calls.items():
            if call.kind == "model" and call.request["content"] == content:
                copy.record.outdated.add(key)
        return copy

    def ask_again(
        self,
        step: str,
        model: ChatModel | str | Sequence[ChatModel | str],
        *,
        messages: str | Sequence[Message] | None = None,
        times: int = 1,
        number: int = 0,
    ) -> NewReplies:
        """Ask a model call of a step again, and return the new replies beside the recorded one.

        This also works for a run that can only be read. ``model`` is a model or its specification,
        or several. ``messages`` are sent in place of the recorded ones; they may be a text with a
        line [system], [user] or [assistant] above each. Each model is asked ``times`` times, 1 to
        MAX_TIMES, each time but the first with another seed if the call has one. ``number`` counts
        the model calls of the step from 0. The tools of a pipeline's call are offered again, in the
        protocol of each model, and the replies have the names and arguments of the tools that are
        called. Nothing is recorded, and the run does not change.

        Raises SettingError if the step has no such call or for another ``times``, PromptError for a
        text without roles, and the ModelErrors of the models.
        """
        asked = self[step]
        self._check_model_call(asked, number)
        check_times(times)
        if isinstance(messages, str):
            messages = messages_from_text(messages)
        models = model if isinstance(model, list | tuple) else [model]
        opened = [open_model(each) for each in models]
        return ask_call_again(
            asked.model_calls[number], opened, messages, times, self.unrecorded_graph
        )

    def diff(self, other: Run) -> Differences:
        """Return this run's steps beside the other's, aligned by key."""
        return compare_steps(self.steps_by_key, other.steps_by_key)

    # Text

    def display_names(self) -> dict[str, str]:
        """Return every display name in the answer and in the record, by IRI as a string.

        If both name an IRI, the name in the record is returned.
        """
        names = {}
        if self.answer is not None:
            for iri, name in self.answer.names:
                names[str(iri)] = name
        return names | names_in_steps(self.steps, self.calls)

    def __str__(self) -> str:
        """Return question, status, number of steps and answer in one line.

        Without an answer the status takes its place.
        """
        muted = ""
        if self.graph.muted:
            triples = pluralize(len(self.graph.muted), "triple")
            muted = f", without {triples}"
        outcome: str = self.status
        if self.answer is not None:
            outcome = single_line(self.answer)
        steps = pluralize(len(self.steps), "step")
        text = f"Run({self.question!r}{muted}, {self.status}, {steps}: {outcome})"
        if self.read_only:
            text += f" (can only be read: {single_line(self.read_only)})"
        return text

    def summary(self, *, color: bool = False) -> str:
        """Return the steps as a tree of lines; ``color`` adds ANSI codes."""
        names = self.display_names()
        return format_tree(self.steps, self.calls, names=names, color=color)

    def __repr__(self) -> str:
        return str(self)

    # Run files

    def save(self, path: str | Path) -> Path:
        """Write the whole run to a file, which is made or replaced (docs/run_format.md).

        Returns the path. Raises RunFileError if the file cannot be written, or is one of another
        kind.
        """

        def write() -> None:
            """Write all entries of the run to the file."""
            saved = self._to_saved()
            RunFile(Path(path)).write(saved.entries())

        self.record.write(write)
        return Path(path)

    def _to_saved(self, *, with_steps: bool = True) -> SavedRun:
        """Return what a file of this run says; without steps, what is known before its end."""
        saved = SavedRun(self._header(), self.record)
        if self.overrides:
            saved.record = copy(self.record)
            saved.record.overrides = {}
        for key, value in self.overrides.items():
            output_type = self.system.agent_spec(key).output_type
            saved.record.overrides[key] = to_data(value, output_type)
        if with_steps:
            saved.steps = [step.to_data() for step in self.steps]
            saved.end = self._end()
        return saved

    def _header(self) -> Header:
        """Return the first line of this run's file.

        Models are the present ones, and the recorded ones for agents without a model.
        """
        models = dict(self.record.models)
        for agent_name, model in self.models.items():
            models[agent_name] = model.name
        return Header(
            id=self.id,
            created=self.created,
            system=self.system.name,
            system_from=self.system.origin,
            question=self.question,
            dialogue=self.dialogue,
            settings=self.settings.to_data(),
            models=models,
            embeddings=self.embeddings.name,
            graph=self.graph.identity,
            source=self.graph.source,
            muted=self.graph.muted,
            vocabulary=self.graph.vocabulary,
            prompts={**self.record.used_prompts, **self.prompts.texts},
        )

    def _end(self) -> End:
        """Return how the latest execution ended. The error is its message, "" without one."""
        error = self.error.message if self.error else ""
        return End(self.status, self.position, self.answer, error, self.totals)

    def export(self, target: str | Path, *, to: str = "openinference") -> str:
        """Write the run's trace to a file, or send it to an address that begins with http.

        The trace has the latest execution as OpenTelemetry spans under OpenInference's names: as
        OTLP JSON in a file, or by OTLP over HTTP. Phoenix, Langfuse and others show it. Secrets in
        texts are masked. "openinference" is the only form so far.

        Returns the id of the trace: the same content has the same id. Raises SettingError for
        another form, and InputError if the extra "traces" is not installed, or if the trace cannot
        be written or sent.
        """
        if to != "openinference":
            raise SettingError(
                f"a run cannot be exported to {to!r}",
                hint='write run.export(path, to="openinference")',
            )
        try:
            from kgwb.run import otlp
        except ModuleNotFoundError as exc:
            raise InputError(
                f"exporting a trace needs the package {exc.name}",
                hint="install the extra: pip install 'kgwb[traces]'",
            ) from exc
        if str(target).lower().startswith(("http://", "https://")):
            return otlp.send_trace(self, str(target))
        return otlp.write_trace(self, Path(target))

    def _write_to(self, path: str | Path | None) -> None:
        """Write the run to a file now, and then each further call; without a path, do nothing.

        If there is such a file, its calls of this question are first added to the record
        (``resume``); then it is replaced.
        """
        if path:
            file = RunFile(Path(path))
            self.record.file = file
            saved = self._to_saved(with_steps=False)
            if not file.create(saved.entries()):
                self.resume(path)
                saved = self._to_saved(with_steps=False)
                file.write(saved.entries())

    def resume(self, path: str | Path) -> None:
        """Add the calls and notices of a run file to the record of this run, if it has the same question.

        A file whose run was finished is not used. Nothing is raised: a file that is missing or
        cannot be read is ignored. So is each damaged line, which a warning counts; the calls in
        these lines are made again.
        """
        saved = SavedRun(self._header())
        damaged: list[int] = []
        with suppress(RunFileError):
            for entry in RunFile(Path(path)).entries(damaged):
                try:
                    if entry.get("question", self.question) != self.question:
                        return
                    saved.add_entries([entry], ("call", "notice", "end"))
                except DAMAGED_FILE_ERRORS:
                    damaged.append(0)  # a line that is JSON; only their count matters
        if saved.end and saved.end.status == "done":
            return
        if damaged:
            lines = pluralize(len(damaged), "line")
            _log.warning("%s of %s cannot be read; all others are used", lines, path)
        self.record.calls.update(saved.record.calls)
        for notice in saved.record.notices:
            self.record.add_notice(notice)

    @classmethod
    def load(
        cls,
        path: str | Path,
        system: System,
        *,
        kg: GraphSource | None = None,
        models: Models = None,
        append: bool = False,
    ) -> Run:
        """Return the run of a file, with its record, settings and edits, not executed yet.

        ``kg`` is a graph, or what ``open_kg`` opens. Without ``kg`` and ``models`` every call must
        come from the file. With ``append`` new calls are written to the same file.

        Raises RunFileError for a file that is no run file, is damaged, or has another version.
        Raises SettingError if a value was put in for an agent that the system does not have.
        """
        saved = SavedRun.read(path, *LOADED_KINDS)
        with damage_errors(path):
            run = cls.of_saved(system, saved, kg=kg, models=models)
        if append:
            disk.truncate_unfinished_line(Path(path))
            run.record.file = RunFile(Path(path))
        return run

    @classmethod
    def of_saved(
        cls,
        system: System,
        saved: SavedRun,
        *,
        kg: GraphSource | None = None,
        models: Models = None,
    ) -> Run:
        """Return the run that a run file describes, not executed yet.

        Settings are read as ``current_settings`` says; one that has been removed is left out. The
        triples that were muted are muted again in ``kg``, if it is given. Embeddings that the file
        names are not loaded: a file could name any. Raises DAMAGED_FILE_ERRORS and InputErrors if
        something lacks its form.
        """
        header = saved.header
        graph = open_kg(kg) if kg is not None else None
        if graph is not None and header.muted:
            graph = graph.without(*header.muted)
        settings = current_settings(saved.settings or header.settings, system.name)
        prompts = Prompts(texts=header.prompts)
        for name, text in saved.prompts.items():
            prompts = prompts.with_text(name, text)
        run = cls(
            system,
            header.question,
            header.dialogue,
            kg=graph,
            models=models,
            settings=system.settings.select_known(settings),
            prompts=prompts,
            embeddings=Embeddings(header.embeddings, trusted=False),
        )
        run.id = header.id
        run.created = header.created
        if graph is None:
            run.graph.identity = header.graph
            run.graph.vocabulary = header.vocabulary
            run.graph.muted = header.muted
        run.record.take_over(saved.record)
        run.record.models = header.models
        for key, value in saved.record.overrides.items():
            run.overrides[key] = from_data(value, system.agent_spec(key).output_type)
        if saved.end and not saved.has_later_calls:
            run.recorded_status = saved.end.status
            run.recorded_position = saved.end.position
        return run


def _supervisors_of(step: Step, earlier: Sequence[Step]) -> set[str]:
    """Return the keys of the supervisor of a step, of the supervisor's supervisor, and so on.

    They are looked for among the earlier steps. The set is empty for a step without a supervisor.
    """
    supervisors = set()
    supervisor = step.parent
    for candidate in reversed(earlier):
        if candidate.key == supervisor:
            supervisors.add(candidate.key)
            supervisor = candidate.parent
    return supervisors


def _refuse_unknown_fields(data: Any, output_type: Any) -> None:
    """Raise ValueError if data for a record have a field that the record does not have.

    Files of other versions may have such fields, which are ignored there. From a person it is a
    slip, and the value would silently stay as it was.
    """
    if not is_dataclass(output_type) or not isinstance(data, dict):
        return
    known = {field.name for field in fields(output_type)}
    for name in data:
        if name not in known:
            raise ValueError(f"there is no field {name!r}")


def check_question(text: str, settings: Settings) -> str:
    """Return the question with single spaces, and "?" in place of lone surrogates.

    Raises QuestionError if it is empty or no text, or if it has more words than the setting
    ``max_question_words`` allows.
    """
    words = []
    if isinstance(text, str):
        words = text.split()
    if not words:
        raise QuestionError(
            "the question is empty", hint="ask something, for example: Who directed Arrival?"
        )
    limit = settings.max_question_words
    if len(words) > limit:
        raise QuestionError(
            f"the question has {len(words):,} words; at most {limit:,} are taken",
            hint="shorten it, or raise the setting max_question_words",
        )
    question = " ".join(words)
    return question.encode("utf-8", "replace").decode()


def read_only_run(path: str | Path, missing: str) -> Run:
    """Return the run of a file as its steps recorded it. It cannot be executed or edited.

    Outputs and inputs are the JSON data of the file. ``missing`` says what is missing to execute
    the run; it is ``run.read_only``. A file that was written call by call has no steps, so the run
    has its calls and its answer only.

    Raises RunFileError if the file is damaged or is not a run file.
    """
    saved = SavedRun.read(path, "call", "notice", "step", "end")
    with damage_errors(path):
        return read_only_run_of(saved, missing)


def read_only_run_of(saved: SavedRun, missing: str, kg: Graph | None = None) -> Run:
    """Return a run that can only be read, from what a run file says.

    ``kg`` is the graph that a person can ask about the run. Raises DAMAGED_FILE_ERRORS and
    InputErrors if something lacks its form.
    """
    run = Run.of_saved(_recorded_system(saved), saved, kg=kg)
    execution = run.execution
    execution.steps = [Step.from_data(data, run.calls) for data in saved.steps]
    end = saved.end
    if end:
        execution.status = end.status
        execution.position = end.position
        execution.answer = from_data(end.answer, Answer | None)
        execution.recorded_seconds = end.totals.live_seconds
        if end.error:
            execution.error = SettingError(end.error)
    run.read_only = missing
    return run


def _recorded_system(saved: SavedRun) -> System:
    """Return a system with the agents of the recorded steps, which cannot be executed.

    An agent is of the kind "model" if its first step has attempts or prompts, else "code" or what
    the step says, as those of a trace do. Supervisors are read from the parents of the steps, in
    order.
    """
    agents = {}
    supervisors: dict[str, list[str]] = {}
    agent_of_step = {}
    for data in saved.steps:
        agent_name = from_data(data["agent"], str)
        agent_of_step[data["key"]] = agent_name
        kind = data.get("kind", "code")
        if data["attempts"] or data["prompts"]:
            kind = "model"
        if agent_name not in agents:
            decorate = agent(agent_name, kind=from_data(kind, AgentKind))
            agents[agent_name] = decorate(_cannot_execute)
        supervisor = agent_of_step.get(data["parent"])
        if supervisor is not None:
            supervised = supervisors.setdefault(supervisor, [])
            if agent_name not in supervised:
                supervised.append(agent_name)
    return System(
        saved.header.system,
        _cannot_execute,
        agents.values(),
        supervisors=supervisors,
    )


# Without a docstring, which would be an agent's purpose, and without annotations: these are texts,
# which Python compiles to read them, and nothing that a file of a stranger leads to may do that.
def _cannot_execute(*_):  # type: ignore[no-untyped-def]
    raise SettingError(
        "the run cannot be continued: its system was not found",
        hint="name the system when you load the run: kgwb.load_run(path, system='./mine.py')",
    )


def restore_times(run: Run, path: Path) -> None:
    """Set the times of a run to those in its file, in place of those of the replay that opened it.

    Steps that the file does not have keep theirs; the next execution takes its own times. Raises
    RunFileError if the file cannot be read.
    """
    saved = SavedRun.read(path, "step", "end")
    for data in saved.steps:
        step = run.steps_by_key.get(data["key"])
        if step is not None:
            step.seconds = from_data(data.get("seconds", step.seconds), float)
            step.recorded_seconds = from_data(data.get("recorded_seconds"), float | None)
    if saved.end:
        run.execution.recorded_seconds = saved.end.totals.live_seconds
