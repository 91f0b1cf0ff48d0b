"""The edits that a person makes in a run: values, prompts, and calls to be made again."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, Self

from pydantic import BaseModel, ValidationError

from kgwb.errors import OverrideError, SettingError
from kgwb.llm.base import Message
from kgwb.records import describe_validation_error, from_data, to_data, type_adapter
from kgwb.run.agents import AgentSpec
from kgwb.run.answers import Turn
from kgwb.run.engine import Engine
from kgwb.run.execution import check_override
from kgwb.run.prompts import messages_from_text
from kgwb.run.record import messages_entry
from kgwb.run.steps import Step
from kgwb.text import pluralize


class EditableRun(Engine):
    """A run whose steps can be looked up and edited.

    An edit changes what the next execution does. After it, the edited step is the next one to be
    done, and the run is no turn of its dialogue until it is finished again.
    """

    turn: Turn | None
    read_only = ""
    """Why the run can only be read, as its system is missing; empty for any other run."""
    read_only_hint = "name its system: kgwb.load_run(path, system='./mine.py')"
    """What to do instead, if the run can only be read."""
    _is_edited = False
    """Whether a person has changed something since the latest execution began."""

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
        keys = []
        for reached in self.steps:
            if step in (reached.key, reached.agent):
                keys.append(reached.key)
        if step in keys:
            return step
        if len(keys) > 1:
            choices = ", ".join(keys)
            raise SettingError(
                f"the agent {step} has several steps, so its name is not enough",
                hint=f"name one of {choices}",
            )
        self._check_agent(step)
        if not keys:
            return step
        return keys[0]

    def _check_agent(self, key: str) -> None:
        """Raise SettingError unless a step's key, or an agent's name, names one of the agents."""
        self.system.agent_spec(key)

    # Values

    def override(self, step: str, value: Any) -> Self:
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
        self.record.append(override={"step": key, "value": data})
        self._return_to([key])
        return self

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
            problem = str(exc)
            if isinstance(exc, ValidationError):
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

    def remove_override(self, step: str) -> Self:
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
                self.record.append(override={"step": entry, "value": None})
                self._return_to([key])
        return self

    # Calls and prompts

    def refresh(self, step: str) -> Self:
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
        self._return_to(refreshed)
        return self

    def undo_refresh(self) -> Self:
        """Undo ``refresh``: use the recorded calls after all. Returns the run."""
        self.record.outdated.clear()
        return self

    def edit_prompt(self, name: str, text: str) -> Self:
        """Use another text for a prompt in this run, from the next execution on. Returns the run.

        The prompt's file does not change; the text is written to the run's file. The position goes
        back to before the first step that used the prompt. Raises PromptError if the text is not a
        prompt, and SettingError if the run can only be read.
        """
        self._refuse_if_read_only()
        self.prompts = self.prompts.with_text(name, text)
        self.record.append(prompt={"name": name, "text": text})
        edited_keys = [step.key for step in self.steps if name in step.prompts]
        self._return_to(edited_keys)
        return self

    def edit_settings(self, **changes: Any) -> Self:
        """Change some settings of this run. The next execution begins anew with them.

        Recorded calls are used where their content is the same. The settings are written to the
        run's file. Returns the run. Raises SettingError for an unknown or impossible setting.
        """
        self._refuse_if_read_only()
        self.settings = self.settings.with_changes(**changes)
        self.record.append(settings=self.settings.to_data())
        self._return_to([step.key for step in self.steps[:1]])
        return self

    def edit_messages(
        self, step: str, messages: str | Sequence[Message] | None, number: int = 0
    ) -> Self:
        """Send other messages in a model call of a step from now on. Returns the run.

        ``number`` counts the model calls of the step from 0. ``messages`` may be a text with a line
        [system], [user] or [assistant] above each. None takes back an earlier edit. The edit is
        written to the run's file, and the position goes back to before the step.

        Raises PromptError for a text without roles. Raises SettingError if the system has no such
        agent, if the agent has several steps, if the step was executed and made no such call, or if
        the run can only be read.
        """
        self._refuse_if_read_only()
        key = self._key_of(step)
        if messages is not None:
            self._check_model_call(key, number)
        if isinstance(messages, str):
            messages = messages_from_text(messages)
        if messages is None:
            self.edited_messages.pop((key, number), None)
        else:
            self.edited_messages[key, number] = tuple(messages)
        self.record.append(**messages_entry(key, number, messages))
        self._return_to([key])
        return self

    def edit_reply(self, step: str, text: str | None, number: int = 0) -> Self:
        """Put in a text as the reply of a model call of a step. Returns the run.

        From the next execution on, the step gets it in place of the model's reply, and it must pass
        the same checks; only what follows is asked. The client of a pipeline gets it as its server
        would send it, streamed or not. ``number`` counts the model calls of the step from 0. None
        takes back an earlier edit. The edit is written to the run's file, and the position goes back
        to before the step.

        Raises SettingError as ``edit_messages`` does.
        """
        self._refuse_if_read_only()
        key = self._key_of(step)
        if text is None:
            self.record.edited_replies.pop((key, number), None)
        else:
            self._check_model_call(key, number)
            self.record.edited_replies[key, number] = text
        self.record.append(reply={"step": key, "call": number, "value": text})
        self._return_to([key])
        return self

    def _check_model_call(self, key: str, number: int) -> None:
        """Raise SettingError if a step was executed and made no model call of this number.

        A step that is not done, or whose output was put in by hand, passes: its calls are not
        known.
        """
        step = self.steps_by_key.get(key)
        if step is None or not step.done or step.origin == "by hand":
            return
        calls = len(step.model_calls)
        if number < calls:
            return
        if calls:
            made = pluralize(calls, "model call")
            raise SettingError(
                f"the step {key} made {made}, and there is no number {number}",
                hint=f"give a number from 0 to {calls - 1}",
            )
        asking = [other.key for other in self.steps if other.model_calls]
        hint = "no step of this run made one"
        if asking:
            hint = "name a step that made one: " + ", ".join(asking)
        raise SettingError(
            f"no messages can be edited: the step {key} made no model call", hint=hint
        )

    def _return_to(self, edited_keys: Collection[str]) -> None:
        """Mark the run as edited, and set its position back to before the first edited step.

        The position becomes the number of steps that were done before that step, unless it is lower
        already, so that ``go`` can stop after the step. ``turn`` becomes None. If no edited step
        was reached, the position stays.
        """
        self.turn = None
        self._is_edited = True
        self._has_edits = True
        edited = [number for number, step in enumerate(self.steps) if step.key in edited_keys]
        if not edited:
            return
        first = edited[0]
        first_edited = self.steps[first]
        earlier = self.steps[:first]
        self.execution.begun = frozenset(step.key for step in earlier)

        supervisors = _supervisors_of(first_edited, earlier)  # they end only after it
        done = [step for step in earlier if step.done and step.key not in supervisors]
        self.execution.position = min(self.position, len(done))


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
