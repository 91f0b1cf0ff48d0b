"""A run, and what a person does with it."""

from __future__ import annotations

import re
import threading
import uuid
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any

from kgwb import disk, old_names
from kgwb.deprecated import RenamedAttribute
from kgwb.errors import (
    InputError,
    OverrideError,
    QuestionError,
    RunFileError,
    SettingError,
    Stopped,
)
from kgwb.flow import Dialogue, Question, Turn
from kgwb.kg import GraphSource, open_kg
from kgwb.kg.base import Graph, Vocabulary
from kgwb.kg.embeddings import Embeddings
from kgwb.llm.base import ChatModel, ChatRequest
from kgwb.records import from_data, to_data, type_adapter
from kgwb.run.agents import AgentSpec, System
from kgwb.run.calls import Call, utc_now
from kgwb.run.differences import Differences, compare_steps
from kgwb.run.engine import Engine, StopCondition
from kgwb.run.models import open_model
from kgwb.run.prompts import Prompts
from kgwb.run.replay import RecordedGraph
from kgwb.run.run_file import DAMAGED_FILE_ERRORS, FORMAT_VERSION, RunFile
from kgwb.run.steps import Step, Totals, format_tree, names_in_steps
from kgwb.settings import Settings
from kgwb.terms import Triple, Triples
from kgwb.text import pluralize, single_line
from kgwb.threads import shielded
from kgwb.version import __version__

Models = Mapping[str, ChatModel | str] | ChatModel | str | None
"""A model or its specification for all agents, or for single agents by name; "" is the default."""


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

    def begin(
        self, question: str, dialogue: Dialogue | None = None, path: str | Path | None = None
    ) -> Run:
        """Return a run of one question, not executed yet. ``path`` is explained in ``Run``."""
        setup = {field.name: getattr(self, field.name) for field in fields(Setup)}
        return Run(question=question, dialogue=dialogue, path=path, **setup)


FORK_PARAMETERS = ("question", "dialogue", *(field.name for field in fields(Setup)))


class Run(Engine):
    """One question to one system over one graph, recorded. See ``kgwb.run``."""

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

        ``path`` names a file to which every call is written as it ends.

        Raises QuestionError for an empty or far too long question, SettingError for a model of an
        unknown agent, RunFileError if ``path`` cannot be written or is a file of another kind, and
        what opening a graph, a model or prompts by name raises.
        """
        super().__init__()
        self.id = uuid.uuid4().hex[:12]
        self.created = utc_now()
        self.system = system
        self.settings = system.settings.of(settings)
        self.question = check_question(question, self.settings)
        self.dialogue = dialogue or Dialogue()
        by_agent = models if isinstance(models, Mapping) else {"": models}
        self.models = {
            agent_name: open_model(model)
            for agent_name, model in by_agent.items()
            if model is not None
        }
        self._check_agents(*(agent_name for agent_name in self.models if agent_name))
        self.prompts = Prompts.of(prompts)
        self.embeddings = embeddings or Embeddings()
        self.breakpoints: set[str] = set()
        """Names of agents, or keys of steps, after which ``go`` stops."""
        self.turn: Turn | None = None
        """What a dialogue remembers of the latest finished execution; None again after an edit."""
        graph = None if kg is None else open_kg(kg)
        if isinstance(graph, RecordedGraph):
            self.kg = graph.with_recorder(self.call)
        else:
            self.kg = RecordedGraph(graph, self.call)
        self.recorded_status = ""
        """For a run from a file: the status with which the latest execution in it ended."""
        self.recorded_position = 0
        """For a run from a file: how many steps that execution had done."""
        self._begun: frozenset[str] = frozenset()
        """Keys of the steps that the latest execution began."""
        self._write_to(path)

    # What the person does

    def go(self, until: str | int | None = None, *, before: str | None = None) -> Run:
        """Execute to the end, to the next breakpoint, or to where the arguments say.

        ``until`` is the name of an agent or the key of a step that shall be done, or a number of
        steps. ``before`` is an agent or step at whose beginning to stop. What is recorded is not
        asked again.

        Returns the run. Raises the KgwbError that stopped the execution. Everything up to there is
        kept, and the next ``go`` resumes. A KeyboardInterrupt cancels the execution, and is raised.
        """
        return self._run(self._stop_condition_of(until, before))

    def _stop_condition_of(self, until: str | int | None, before: str | None) -> StopCondition:
        after = frozenset(self.breakpoints)
        if isinstance(until, str):
            after |= {until}
        stops_before = frozenset({before} if before else ())
        self._check_agents(*after, *stops_before)
        count = until if isinstance(until, int) else None
        if self.status != "paused":
            return StopCondition(count, after, before=stops_before)
        return StopCondition(count, after, self.position, stops_before, self._begun)

    def step(self) -> Run:
        """Execute until one more step is done. Returns and raises what ``go`` does."""
        return self._run(StopCondition(count=self.position + 1))

    def step_back(self, steps: int = 1) -> Run:
        """Go back to where so many steps fewer were done. Returns and raises what ``go`` does."""
        return self._run(StopCondition(count=max(self.position - steps, 0)))

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
        self._cancel.set()

    def override(self, step: str, value: Any) -> Run:
        """Put in a value by hand: the step returns it from now on, and what follows runs again.

        ``step`` is a key, or the name of an agent that has one step. ``value`` is a record or its
        JSON data.

        Returns the run. Raises OverrideError if the value has not the type of the step's output, or
        fails the agent's check.
        """
        key = self._key_of(step)
        spec = self.system.agent_spec(key)
        typed = self._typed_override(key, spec, value)
        current = self.steps_by_key.get(key)
        if current is not None:
            self._check_override(spec, key, typed, current.inputs)
        self.overrides[key] = typed
        data = to_data(typed, spec.output_type)
        self._append_to_file(override={"step": key, "value": data})
        self._return_to(key)
        return self

    def _typed_override(self, key: str, spec: AgentSpec, value: Any) -> Any:
        """Return a value as the type of the agent's output. Raises OverrideError if it is none."""
        output_type = spec.output_type
        is_record = isinstance(output_type, type) and isinstance(value, output_type)
        try:
            data = value
            if is_record:  # its fields may still have wrong values
                adapter = type_adapter(output_type)
                data = adapter.dump_python(value, mode="json", warnings=False)
            return from_data(data, output_type)
        except (ValueError, TypeError) as exc:
            type_name = getattr(output_type, "__name__", str(output_type))
            problem = re.sub(r"\s*For further information visit \S+", "", str(exc))
            raise OverrideError(
                f"{key}: {problem}", hint=f"give a {type_name}, or its fields as JSON data"
            ) from exc

    def remove_override(self, step: str) -> Run:
        """Remove a value that was put in by hand. Returns the run."""
        key = step if step in self.overrides else self._key_of(step)
        agent_name = self.system.agent_spec(key).name
        entries = {key}
        if agent_name not in self.steps_by_key:  # the value may stand under the agent's name
            entries.add(agent_name)
        for entry in entries & set(self.overrides):
            del self.overrides[entry]
            self._append_to_file(override={"step": entry, "value": None})
            self._return_to(key)
        return self

    def refresh(self, step: str) -> Run:
        """Make the calls of a step, and of the steps it supervises, again in the next execution.

        A live graph changes, and a model may answer better. Returns the run. Raises SettingError if
        the step was not reached.
        """
        refreshed = {self[step].key}
        for reached in self.steps:  # supervisors stand before what they supervise
            if reached.parent in refreshed:
                refreshed.add(reached.key)
            if reached.key in refreshed:
                self._outdated.update(reached.calls)
        self._return_to(*refreshed)
        return self

    def undo_refresh(self) -> Run:
        """Undo ``refresh``: use the recorded calls after all. Returns the run."""
        self._outdated.clear()
        return self

    def edit_prompt(self, name: str, text: str) -> Run:
        """Use another text for a prompt in this run. The prompt's file does not change.

        Returns the run. Raises PromptError if the text is wrong.
        """
        self.prompts = self.prompts.with_text(name, text)
        self._append_to_file(prompt={"name": name, "text": text})
        self._return_to(*(step.key for step in self.steps if name in step.prompts))
        return self

    def fork(self, **changes: Any) -> Run:
        """Return a new run of the same question, with some things changed.

        The changes may be: question, dialogue, kg, system, models, settings, prompts, embeddings,
        path. The new run starts with the record and the overrides of this one, so only calls with
        another content are made. ``models`` is a model for all agents, or models by agent; the
        other agents keep theirs then.

        Raises SettingError for another change, and what ``Run`` raises.
        """
        path = changes.pop("path", None)
        unknown = sorted(set(changes) - set(FORK_PARAMETERS))
        if unknown:
            raise SettingError(
                f"a run has no {', '.join(unknown)}", hint=f"change {', '.join(FORK_PARAMETERS)}"
            )
        if isinstance(changes.get("models"), Mapping):
            changes["models"] = {**self.models, **changes["models"]}
        forked = Run(**{name: getattr(self, name) for name in FORK_PARAMETERS} | changes)
        forked._recorded_models = self._recorded_models
        forked.prefer_recorded = self.prefer_recorded and "models" not in changes
        forked.calls.update(self.calls)
        forked.overrides.update(self.overrides)
        forked._write_to(path)
        return forked

    def mute(self, *triples: Triple) -> Run:
        """Return a fork whose graph seems to lack these triples.

        The graph does not change: every query is rewritten to pass over the triples, see
        ``kgwb.kg.muting``. A survey of the graph still counts them. ``run.diff(run.mute(t).go())``
        shows what follows.

        Raises SettingError in a replay, and QueryError for a triple with a blank node.
        """
        if self.unrecorded_graph is None:
            raise SettingError(
                "this run is a replay: there is no graph to ask",
                hint="open the run with its graph: kgwb.load_run(path, kg=kgwb.open_kg(...))",
            )
        return self.fork(kg=self.unrecorded_graph.without(*triples))

    def preview_request(self, step: str, *, prompts: Prompts | None = None) -> ChatRequest | None:
        """Return the first request that an agent or step will send to its model, without asking.

        Nothing is called, and this run does not change. ``prompts`` are used in place of the run's.

        Returns None if the agent asks no model, or if an earlier step must be run first. Raises
        PromptError for a prompt that its agent cannot fill, and what an agent raises before.
        """
        self._check_agents(step)
        copy = self.fork(prompts=prompts or self.prompts)
        copy._run(StopCondition(after=frozenset({step}), preview_of=step))
        return copy._previewed_request

    def diff(self, other: Run) -> Differences:
        """Return this run's steps beside the other's, aligned by key."""
        return compare_steps(self.steps_by_key, other.steps_by_key)

    # What the person sees

    @property
    def totals(self) -> Totals:
        """What the latest execution used."""
        keys = dict.fromkeys(key for step in self.steps for key in step.calls)
        calls = [self.calls[key] for key in keys if key in self.calls]
        live_model_calls = sum(step.live_calls for step in self.steps)
        return Totals.of(calls, live_model_calls, self._seconds)

    @property
    def steps_by_key(self) -> dict[str, Step]:
        """The steps of the latest execution by key."""
        return {step.key: step for step in self.steps}

    def output(self, step: str) -> Any:
        """Return the output of a step. Raises SettingError if the step is not done."""
        reached = self[step]
        if not reached.done:
            raise SettingError(
                f"step {step} is not done", hint="run on until it is: run.go(until=...)"
            )
        return reached.output

    def __getitem__(self, step: str) -> Step:
        """Return a step of the latest execution by its key, or by its agent if that has one step.

        Raises SettingError if the step was not reached.
        """
        key = self._key_of(step)
        if key not in self.steps_by_key:
            raise SettingError(
                f"step {step} was not reached", hint="run on until it is: run.go(until=...)"
            )
        return self.steps_by_key[key]

    def display_names(self) -> dict[str, str]:
        """Return every display name in the record and in the answer, by IRI."""
        names = {} if self.answer is None else {str(iri): name for iri, name in self.answer.names}
        return names | names_in_steps(self.steps, self.calls)

    def __str__(self) -> str:
        """Return question, status and answer in one line."""
        outcome = self.status if self.answer is None else single_line(self.answer)
        muted = f", without {pluralize(len(self.kg.muted), 'triple')}" if self.kg.muted else ""
        steps = f"{len(self.steps)} steps"
        return f"Run({self.question!r}{muted}, {self.status}, {steps}: {outcome})"

    def summary(self, *, color: bool = False) -> str:
        """Return the steps as a tree of lines; ``color`` adds ANSI codes."""
        return format_tree(self.steps, self.calls, names=self.display_names(), color=color)

    def __repr__(self) -> str:
        return str(self)

    # Run files

    def save(self, path: str | Path) -> Path:
        """Write the run to a file, which is made or replaced (docs/run_format.md).

        Returns the path. Raises RunFileError.
        """

        def write() -> None:
            steps = ({"step": step.to_data()} for step in self.steps)
            entries = [self._header(), *self._entries(), *steps, self._end_entry()]
            RunFile(Path(path)).write(entries)

        self._write(write)
        return Path(path)

    def _read_entries(self, entries: Iterator[dict[str, Any]]) -> None:
        """Take calls, prompts, overrides and the latest ending from the entries of a file."""
        for entry in entries:
            if "call" in entry:
                call = Call.from_data(entry["call"])
                self.calls[call.key] = call
                self.recorded_status = ""  # an execution that began after the latest ending
            elif "prompt" in entry:
                name = old_names.current_prompt(entry["prompt"]["name"])
                self.prompts = self.prompts.with_text(name, entry["prompt"]["text"])
            elif "override" in entry:
                self._read_override(entry["override"])
            elif "end" in entry:
                self.recorded_status = entry["end"]["status"]
                self.recorded_position = entry["end"]["position"]

    def _read_override(self, data: Mapping[str, Any]) -> None:
        key = old_names.current_step_key(self.system.name, data["step"])
        if data["value"] is None:
            self.overrides.pop(key, None)
        else:
            self.overrides[key] = from_data(data["value"], self.system.agent_spec(key).output_type)

    def _write_to(self, path: str | Path | None) -> None:
        """Begin a file to which every further call is written, with what the run holds already."""
        if path:
            self._file = RunFile(Path(path))
            self.resume(path)
            self._file.write([self._header(), *self._entries()])

    def resume(self, path: str | Path, *, include_finished: bool = False) -> None:
        """Take the calls of a file of the same question whose run did not come to its end.

        With ``ended`` also of one that did. A file that cannot be read is ignored, and its calls
        are made again.
        """
        with suppress(RunFileError, *DAMAGED_FILE_ERRORS):
            header, *entries = RunFile(Path(path)).entries()
            statuses = [entry["end"]["status"] for entry in entries if "end" in entry]
            has_ended = statuses[-1:] == ["done"]
            if header["question"] == self.question and (include_finished or not has_ended):
                self._read_entries(entry for entry in entries if "call" in entry)

    def _header(self) -> dict[str, Any]:
        models = {name: model.name for name, model in self.models.items()}
        header = {
            "kgwb_run": FORMAT_VERSION,
            "kgwb": __version__,
            "id": self.id,
            "created": self.created,
            "system": self.system.name,
            "question": self.question,
            "dialogue": to_data(self.dialogue),
            "settings": self.settings.to_data(),
            "models": {**self._recorded_models, **models},
            "embeddings": self.embeddings.name,
            "graph": self.kg.identity,
            "source": self.kg.source,
        }
        if self.kg.muted:
            header["muted"] = to_data(self.kg.muted, Triples)
        header["vocabulary"] = to_data(self.kg.vocabulary)
        header["prompts"] = {**self._used_prompts, **self.prompts.texts}
        return header

    def _entries(self) -> Iterator[dict[str, Any]]:
        for call in list(self.calls.values()):
            yield {"call": call.to_data()}
        for key, value in self.overrides.items():
            data = to_data(value, self.system.agent_spec(key).output_type)
            yield {"override": {"step": key, "value": data}}

    def _end_entry(self) -> dict[str, Any]:
        return {
            "end": {
                "status": self.status,
                "position": self.position,
                "answer": None if self.answer is None else to_data(self.answer),
                "error": self.error.message if self.error else "",
                "totals": to_data(self.totals),
            }
        }

    @classmethod
    def load(
        cls,
        path: str | Path,
        system: System,
        *,
        kg: Graph | None = None,
        models: Models = None,
        append: bool = False,
    ) -> Run:
        """Return a saved run, not executed yet.

        Without ``kg`` and ``models`` every call must come from the file. With ``resume`` new calls
        are written to the same file.

        Raises RunFileError for a file that is no run file, is damaged, or has another version.
        """
        file = RunFile(Path(path))
        entries = file.entries()
        header = next(entries)
        try:
            run = cls._from_header(header, system, kg, models)
            run._read_entries(entries)
        except RunFileError:
            raise
        except (*DAMAGED_FILE_ERRORS, InputError) as exc:
            raise RunFileError(
                f"{path} is damaged: {exc!r}", hint="restore the file from a copy"
            ) from exc
        if append:
            disk.truncate_unfinished_line(file.path)
            run._file = file
        return run

    @classmethod
    def _from_header(
        cls, header: Mapping[str, Any], system: System, kg: Graph | None, models: Models
    ) -> Run:
        """Return a run as the header of a run file describes it, without calls."""
        settings = old_names.current_settings(header["settings"])
        known_settings = {  # a setting that has been removed is left out
            name: value
            for name, value in settings.items()
            if name in system.settings.setting_names()
        }
        prompts = from_data(header["prompts"], dict[str, str])
        muted = from_data(header.get("muted", []), Triples)
        if kg and muted:
            kg = kg.without(*muted)
        run = cls(
            system,
            header["question"],
            from_data(header["dialogue"], Dialogue),
            kg=kg,
            models=models,
            settings=system.settings(**known_settings),
            prompts=Prompts(
                texts={old_names.current_prompt(name): text for name, text in prompts.items()}
            ),
            embeddings=Embeddings(from_data(header["embeddings"], str), trusted=False),
        )
        run.id = from_data(header["id"], str)
        run.created = from_data(header["created"], str)
        run.kg = RecordedGraph(
            kg,
            run.call,
            identity=from_data(header["graph"], str),
            vocabulary=from_data(header["vocabulary"], Vocabulary),
            muted=muted,
        )
        recorded_models = from_data(header["models"], dict[str, str])
        run._recorded_models = {
            old_names.current_step_key(system.name, name): model
            for name, model in recorded_models.items()
        }
        return run

    # The mechanism

    def _run(self, stop_condition: StopCondition) -> Run:
        cancel = threading.Event()
        shielded(partial(self._execute, stop_condition, cancel), on_abandon=cancel.set)
        return self

    def _execute(self, stop_condition: StopCondition, cancel: threading.Event) -> None:
        """Execute the system from its beginning, and write how that ended to the run's file."""
        with self._exclusive_execution(cancel):
            try:
                with self._execution(stop_condition):
                    if stop_condition.count == 0:
                        raise Stopped
                    question = Question(self.question)
                    self.answer = self.system.answer(question, self.dialogue, self)
                    self.turn = self.system.remember(self)
            except BaseException:
                with suppress(RunFileError):  # the first failure is the one to report
                    self._append_to_file(**self._end_entry())
                raise
            finally:
                self._begun = frozenset(step.key for step in self.steps)
            self._append_to_file(**self._end_entry())

    def _check_agents(self, *keys: str) -> None:
        """Raise SettingError unless each key names an agent of the system."""
        for key in keys:
            self.system.agent_spec(key)

    def _key_of(self, step: str) -> str:
        """Return the key of a step that is given by its key or its agent's name.

        Raises SettingError if the agent has several steps, or the system has no such agent.
        """
        keys = [reached.key for reached in self.steps if step in (reached.key, reached.agent)]
        if step in keys:
            return step
        if len(keys) > 1:
            raise SettingError(f"{step} has several steps", hint=f"say which: {', '.join(keys)}")
        self._check_agents(step)
        return keys[0] if keys else step

    def _return_to(self, *edited: str) -> None:
        """Move the position back to the first edited step, so that breakpoints after it count."""
        self.turn = None
        edited_positions = [
            position for position, step in enumerate(self.steps) if step.key in edited
        ]
        if not edited_positions:
            return
        first = min(edited_positions)
        earlier = self.steps[:first]
        supervisors = self._supervisors_of(self.steps[first], earlier)
        self._begun = frozenset(step.key for step in earlier)
        done = sum(step.done and step.key not in supervisors for step in earlier)
        self.position = min(self.position, done)

    @staticmethod
    def _supervisors_of(step: Step, earlier: list[Step]) -> set[str]:
        """Return the keys of the steps that supervise a step: they end only after it."""
        supervisors = set()
        parent = step.parent
        for candidate in reversed(earlier):
            if candidate.key == parent:
                supervisors.add(candidate.key)
                parent = candidate.parent
        return supervisors

    back = RenamedAttribute("back", "step_back")
    by_key = RenamedAttribute("by_key", "steps_by_key")
    keep = RenamedAttribute("keep", "undo_refresh")
    peek = RenamedAttribute("peek", "preview_request")
    replace = RenamedAttribute("replace", "override")
    restore = RenamedAttribute("restore", "remove_override")


def check_question(text: str, settings: Settings) -> str:
    """Return the question with single spaces.

    Raises QuestionError if it is empty, or longer than the setting ``max_question_words``.
    """
    words = text.split() if isinstance(text, str) else []
    if not words:
        raise QuestionError(
            "the question is empty", hint="ask something, for example: Who directed Arrival?"
        )
    if len(words) > settings.max_question_words:
        limit = f"{settings.max_question_words:,}"
        raise QuestionError(
            f"the question has {len(words):,} words; at most {limit} are taken",
            hint="shorten it, or raise the setting max_question_words",
        )
    return " ".join(words).encode("utf-8", "replace").decode()
