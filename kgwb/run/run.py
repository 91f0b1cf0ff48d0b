"""What a person does with a run."""

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

from kgwb import disk, llm
from kgwb.aside import undisturbed
from kgwb.display import Shown
from kgwb.errors import (
    InputError,
    OverrideError,
    QuestionError,
    RunFileError,
    SettingError,
    Stopped,
)
from kgwb.flow import Dialogue, Question, Triple, Triples, Turn, adapter, from_data, to_data
from kgwb.kg import Source, open_kg
from kgwb.kg.base import Graph, Vocabulary
from kgwb.kg.embeddings import Embeddings
from kgwb.llm.base import ChatModel, ChatRequest
from kgwb.run.agents import System
from kgwb.run.engine import Engine, Goal
from kgwb.run.prompts import Prompts
from kgwb.run.record import (
    DAMAGED,
    FORMAT,
    Call,
    Differences,
    RunFile,
    Step,
    Totals,
    difference,
    now,
)
from kgwb.run.recorded import RecordedGraph
from kgwb.settings import Settings
from kgwb.version import __version__

Models = Mapping[str, ChatModel | str] | ChatModel | str | None


@dataclass(frozen=True)
class Setup:
    """What a question is asked of: a system with its models and settings on a graph."""

    kg: Graph
    system: System
    models: Mapping[str, ChatModel]
    """By agent name; "" is the default."""
    settings: Settings
    prompts: Prompts
    embeddings: Embeddings

    def begin(
        self, question: str, dialogue: Dialogue | None = None, path: str | Path | None = None
    ) -> Run:
        """A run of one question, not executed yet; see Run."""
        setup = {
            field.name: getattr(self, field.name) for field in fields(Setup)
        }  # not what a subclass adds
        return Run(question=question, dialogue=dialogue, path=path, **setup)


class Run(Shown, Engine):
    """One question to one system over one graph, recorded; see ``kgwb.run``.

    ``steps`` are those of the latest execution, supervisors before what they supervise.
    """

    def __init__(  # noqa: PLR0913  # everything a run depends on, by name
        self,
        system: System,
        question: str,
        dialogue: Dialogue | None = None,
        *,
        kg: Source | None,
        models: Models,
        settings: Settings | Mapping[str, Any] | str | None = None,
        prompts: Prompts | str | Path | None = None,
        embeddings: Embeddings | None = None,
        path: str | Path | None = None,
    ) -> None:
        """``models`` maps agent names to models, "" to the default; ``path`` keeps every call on disk.

        Raises QuestionError for an empty or far too long question, SettingError for a model of an unknown
        agent, and RunFileError if ``path`` cannot be written or is a file of another kind.
        """
        super().__init__()
        self.id = uuid.uuid4().hex[:12]
        self.created = now()
        self.system = system
        self.settings = system.settings.of(settings)
        self.question = check_question(question, self.settings)
        self.dialogue = dialogue or Dialogue()
        by_agent = models if isinstance(models, Mapping) else {"": models}
        self.models = {
            name: llm.model(model) for name, model in by_agent.items() if model is not None
        }
        self._know(*(name for name in self.models if name))
        self.prompts = Prompts.of(prompts)
        self.embeddings = embeddings or Embeddings()
        self.breakpoints: set[str] = set()
        """Names of agents, or keys of steps, that ``go`` stops after."""
        self.turn: Turn | None = None
        """What a dialogue remembers of the latest execution that came to an end, until an edit."""
        kg = None if kg is None else open_kg(kg)
        self.kg = (
            kg.recorded_by(self.call)
            if isinstance(kg, RecordedGraph)
            else RecordedGraph(kg, self.call)
        )
        self.recorded_status, self.recorded_position = "", 0
        """How the latest execution in the file of a loaded run ended, and the steps done then."""
        self._begun: frozenset[str] = frozenset()
        self._keep_in(path)

    # --- what the person does -------------------------------------------------------------------------------

    def go(self, until: str | int | None = None, *, before: str | None = None) -> Run:
        """Execute up to the end, the next breakpoint, or the named agent or step; then say where it stands.

        ``until`` is an agent's name or a step's key that shall be done, or a number of steps in all;
        ``before`` stops as the named agent or step begins. What is recorded is not asked again. Raises the
        KgwbError that stopped it; everything up to there is kept, and the next ``go`` resumes. An interrupt
        cancels it, and is raised.
        """
        return self._run(self._goal_of(until, before))

    def _goal_of(self, until: str | int | None, before: str | None) -> Goal:
        names = frozenset({until} if isinstance(until, str) else ()) | self.breakpoints
        stops = frozenset({before} if before else ())
        self._know(*names, *stops)
        count = until if isinstance(until, int) else None
        if self.status != "paused":
            return Goal(count, names, before=stops)
        return Goal(count, names, self.position, stops, self._begun)

    def step(self) -> Run:
        """Execute until one more step is done."""
        return self._run(Goal(count=self.position + 1))

    def back(self, steps: int = 1) -> Run:
        """Go back to where so many steps fewer were done."""
        return self._run(Goal(count=max(self.position - steps, 0)))

    async def ago(self, until: str | int | None = None, *, before: str | None = None) -> Run:
        """``go`` for notebooks that await.

        The event loop stays free, and cancelling the task cancels the run.
        """
        import asyncio

        cancel = threading.Event()  # of this execution alone: the run may be in another one still
        try:
            await asyncio.to_thread(self._carry_out, self._goal_of(until, before), cancel)
        except asyncio.CancelledError:
            cancel.set()
            raise
        return self

    def cancel(self) -> None:
        """Stop the execution at its next call, leaving a slow one behind; what is recorded stays."""
        self._cancel.set()

    def replace(self, step: str, value: Any) -> Run:
        """Put a value in by hand: the step yields it from now on, and what depends on it runs again.

        ``step`` is a key, or an agent's name where it has one step. ``value`` is a record or its JSON data.
        Raises OverrideError if it has not the form of the step's output or does not pass its checks.
        """
        key = self._key_of(step)
        spec = self.system.spec(key)
        form = spec.form
        own = isinstance(form, type) and isinstance(value, form)
        try:
            data = adapter(form).dump_python(value, mode="json", warnings=False) if own else value
            typed = from_data(data, form)
        except (ValueError, TypeError) as exc:
            name = getattr(form, "__name__", str(form))
            wrong = re.sub(r"\s*For further information visit \S+", "", str(exc))
            raise OverrideError(
                f"{key}: {wrong}", hint=f"give a {name}, or its fields as JSON data"
            ) from exc
        current = self.by_key.get(key)
        if current is not None:
            self._check_override(spec, key, typed, current.inputs)
        self.overrides[key] = typed
        self._append(override={"step": key, "value": to_data(typed, form)})
        self._return_to(key)
        return self

    def restore(self, step: str) -> Run:
        """Take a value put in by hand out again."""
        key = step if step in self.overrides else self._key_of(step)
        agent = self.system.spec(key).name
        for kept in {key, agent if agent not in self.by_key else key} & set(self.overrides):
            del self.overrides[kept]
            self._append(override={"step": kept, "value": None})
            self._return_to(key)
        return self

    def refresh(self, step: str) -> Run:
        """Have the calls of a step, and of those it supervises, made anew at the next execution.

        A live graph changes, and a model may be kinder. Raises SettingError if the step was not reached.
        """
        wanted = {self[step].key}
        for reached in self.steps:  # supervisors come before what they supervise
            if reached.parent in wanted:
                wanted.add(reached.key)
            if reached.key in wanted:
                self._forgotten.update(reached.calls)
        self._return_to(*wanted)
        return self

    def keep(self) -> Run:
        """Take the recorded calls after all that ``refresh`` set aside."""
        self._forgotten.clear()
        return self

    def edit_prompt(self, name: str, text: str) -> Run:
        """Use this text for a prompt in this run.

        The file stays as it is. Raises PromptError if it does not parse.
        """
        self.prompts = self.prompts.with_text(name, text)
        self._append(prompt={"name": name, "text": text})
        self._return_to(*(step.key for step in self.steps if name in step.prompts))
        return self

    def fork(self, **changes: Any) -> Run:
        """A new run with other settings, models, prompts, kg, embeddings, dialogue, question, system or path.

        It starts from this run's record and overrides, so only calls whose own content differs are made.
        ``models`` is a model for all agents, or models by agent where the others keep theirs. Raises what
        opening a graph, a model or prompts by name does.
        """
        path = changes.pop("path", None)
        names = ("question", "dialogue", *(field.name for field in fields(Setup)))
        if unknown := sorted(set(changes) - set(names)):
            raise SettingError(
                f"a run has no {', '.join(unknown)}", hint=f"change {', '.join(names)}"
            )
        if isinstance(changes.get("models"), Mapping):
            changes["models"] = {**self.models, **changes["models"]}
        forked = Run(**{name: getattr(self, name) for name in names} | changes)
        forked._recorded_models = self._recorded_models
        forked.record_first = self.record_first and "models" not in changes
        forked.calls.update(self.calls)
        forked.overrides.update(self.overrides)
        forked._keep_in(path)
        return forked

    def mute(self, *triples: Triple) -> Run:
        """A fork whose graph lacks these triples; ``run.diff(run.mute(triple).go())`` shows what follows.

        The graph stays as it is: every query is changed so that it passes over them, see ``kg.muting``. Its
        survey still counts them. Raises SettingError in a replay, and QueryError for a blank node's triple.
        """
        if self.graph is None:
            hint = "open the run with its graph: kgwb.load_run(path, kg=kgwb.open_kg(...))"
            raise SettingError("this run is a replay: there is no graph to ask", hint=hint)
        return self.fork(kg=self.graph.without(*triples))

    def peek(self, step: str, *, prompts: Prompts | None = None) -> ChatRequest | None:
        """What the named agent or step will ask its model first, as it will be sent, without asking.

        ``prompts`` fills it from these instead. Nothing is called and this run stays as it is. None if the
        agent asks no model, or if an earlier step must be run first. Raises PromptError for a prompt that its
        agent cannot fill, and whatever an agent raises on the way.
        """
        self._know(step)
        copy = self.fork(prompts=prompts or self.prompts)
        copy._run(Goal(names=frozenset({step}), peek=step))
        return copy._peeked

    def diff(self, other: Run) -> Differences:
        """This run's steps beside the other's, aligned by key."""
        return difference(self.by_key, other.by_key)

    # --- what the person sees -------------------------------------------------------------------------------

    @property
    def totals(self) -> Totals:
        """What the latest execution used."""
        used = dict.fromkeys(key for step in self.steps for key in step.calls)
        live = sum(step.live_calls for step in self.steps)
        return Totals.of(
            (self.calls[key] for key in used if key in self.calls), live, self._seconds
        )

    @property
    def by_key(self) -> dict[str, Step]:
        """The steps of the latest execution by key."""
        return {step.key: step for step in self.steps}

    def output(self, step: str) -> Any:
        """What a step of the latest execution yielded. Raises SettingError if it is not done."""
        reached = self[step]
        if not reached.done:
            raise SettingError(
                f"step {step} is not done", hint="run on until it is: run.go(until=...)"
            )
        return reached.output

    def __getitem__(self, step: str) -> Step:
        """A step of the latest execution by key, or by agent where it has one step."""
        key = self._key_of(step)
        if key not in self.by_key:
            raise SettingError(
                f"step {step} was not reached", hint="run on until it is: run.go(until=...)"
            )
        return self.by_key[key]

    # --- on disk (docs/run_format.md) ---------------------------------------------------------------------

    def save(self, path: str | Path) -> Path:
        """Write the run to a new or replaced file (docs/run_format.md).

        Returns its path. Raises RunFileError.
        """

        def write() -> None:
            steps = ({"step": step.to_data()} for step in self.steps)
            RunFile(Path(path)).write([self._header(), *self._entries(), *steps, self._ending()])

        self._write(write)
        return Path(path)

    def _read(self, lines: Iterator[dict[str, Any]]) -> None:
        for entry in lines:
            if "call" in entry:
                call = Call.from_data(entry["call"])
                self.calls[call.key] = call
                self.recorded_status = ""  # an execution that began after the last one ended
            elif "prompt" in entry:
                self.prompts = self.prompts.with_text(
                    entry["prompt"]["name"], entry["prompt"]["text"]
                )
            elif "override" in entry:
                key, value = entry["override"]["step"], entry["override"]["value"]
                if value is None:
                    self.overrides.pop(key, None)
                else:
                    self.overrides[key] = from_data(value, self.system.spec(key).form)
            elif "end" in entry:
                self.recorded_status = entry["end"]["status"]
                self.recorded_position = entry["end"]["position"]

    def _keep_in(self, path: str | Path | None) -> None:
        """Begin a file that every further call is written to as it ends, with what it holds already."""
        if path:
            self._file = RunFile(Path(path))
            self.resume(path)
            self._file.write([self._header(), *self._entries()])

    def resume(self, path: str | Path, *, ended: bool = False) -> None:
        """Take the calls of a file that holds this question, if its run did not come to an end.

        With ``ended`` also if it did.
        """
        with suppress(RunFileError, *DAMAGED):  # what cannot be read is asked again
            header, *entries = RunFile(Path(path)).lines()
            endings = [entry["end"]["status"] for entry in entries if "end" in entry]
            if header["question"] == self.question and (ended or endings[-1:] != ["done"]):
                self._read(entry for entry in entries if "call" in entry)

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
            "models": {
                **self._recorded_models,
                **{name: model.name for name, model in self.models.items()},
            },
            "embeddings": self.embeddings.name,
            "graph": self.kg.identity,
            "source": self.kg.source,
            **({"muted": to_data(self.kg.muted, Triples)} if self.kg.muted else {}),
            "vocabulary": to_data(self.kg.vocabulary),
            "prompts": {**self._used_prompts, **self.prompts.texts},
        }

    def _entries(self) -> Iterator[dict[str, Any]]:
        for call in list(self.calls.values()):
            yield {"call": call.to_data()}
        for key, value in self.overrides.items():
            yield {"override": {"step": key, "value": to_data(value, self.system.spec(key).form)}}

    def _ending(self) -> dict[str, Any]:
        return {
            "end": {
                "status": self.status,
                "position": self.position,
                "answer": to_data(self.answer) if self.answer is not None else None,
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
        resume: bool = False,
    ) -> Run:
        """A saved run, not executed yet. Without ``kg`` and ``models`` every call must come from the file.

        ``resume`` goes on writing to the same file. Raises RunFileError for a file that is none or of another
        version.
        """
        file = RunFile(Path(path))
        lines = file.lines()
        header = next(lines)
        try:
            names = system.settings.names()  # those that another version had are left out
            settings = {name: value for name, value in header["settings"].items() if name in names}
            muted = from_data(header.get("muted", []), Triples)
            kg = kg.without(*muted) if kg and muted else kg
            run = cls(
                system,
                header["question"],
                from_data(header["dialogue"], Dialogue),
                kg=kg,
                models=models,
                settings=system.settings(**settings),
                prompts=Prompts(texts=from_data(header["prompts"], dict[str, str])),
                embeddings=Embeddings(from_data(header["embeddings"], str), trusted=False),
            )
            run.id, run.created = from_data([header["id"], header["created"]], tuple[str, str])
            vocabulary = from_data(header["vocabulary"], Vocabulary)
            identity = from_data(header["graph"], str)
            run.kg = RecordedGraph(
                kg, run.call, identity=identity, vocabulary=vocabulary, muted=muted
            )
            run._recorded_models = from_data(header["models"], dict[str, str])
            run._read(lines)
        except RunFileError:
            raise
        except (*DAMAGED, InputError) as exc:
            raise RunFileError(
                f"{path} is damaged: {exc!r}", hint="restore the file from a copy"
            ) from exc
        if resume:
            disk.cut_unfinished(file.path)
            run._file = file
        return run

    # --- the mechanism --------------------------------------------------------------------------------------

    def _run(self, goal: Goal) -> Run:
        cancel = threading.Event()
        undisturbed(partial(self._carry_out, goal, cancel), leave=cancel.set)
        return self

    def _carry_out(self, goal: Goal, cancel: threading.Event) -> None:
        with self._alone(cancel):
            try:
                with self._executing(goal):
                    if goal.count == 0:
                        raise Stopped
                    self.answer = self.system.answer(Question(self.question), self.dialogue, self)
                    self.turn = self.system.remember(self)
            except BaseException:
                with suppress(RunFileError):  # the first failure is the one to show
                    self._append(**self._ending())
                raise
            finally:
                self._begun = frozenset(step.key for step in self.steps)
            self._append(**self._ending())

    def _know(self, *names: str) -> None:
        for name in names:
            self.system.spec(name)

    def _key_of(self, step: str) -> str:
        keys = [reached.key for reached in self.steps if step in (reached.key, reached.agent)]
        if len(keys) > 1 and step not in keys:
            raise SettingError(f"{step} has several steps", hint=f"say which: {', '.join(keys)}")
        self._know(step)
        return keys[0] if keys and step not in keys else step

    def _return_to(self, *edited: str) -> None:
        """Going on after an edit counts breakpoints from the first edited step."""
        self.turn = None
        places = [place for place, step in enumerate(self.steps) if step.key in edited]
        if not places:
            return
        before = self.steps[: min(places)]
        above = self.steps[min(places)].parent
        supervisors = set()
        for step in reversed(before):
            if step.key == above:
                supervisors.add(step.key)
                above = step.parent
        self._begun = frozenset(step.key for step in before)
        self.position = min(
            self.position, sum(step.done and step.key not in supervisors for step in before)
        )


def check_question(text: str, settings: Settings) -> str:
    """The question, trimmed. Raises QuestionError if it is empty or far too long."""
    words = text.split() if isinstance(text, str) else []
    if not words:
        raise QuestionError(
            "the question is empty", hint="ask something, for example: Who directed Arrival?"
        )
    if len(words) > settings.max_question_words:
        raise QuestionError(
            f"the question has {len(words):,} words; at most {settings.max_question_words:,} are taken",
            hint="shorten it, or raise the setting max_question_words",
        )
    return " ".join(words).encode("utf-8", "replace").decode()
