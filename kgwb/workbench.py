"""The workbench: a graph, a model and a system, and the dialogue held with them."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kgwb import disk
from kgwb.errors import InputError, SettingError
from kgwb.kg import Graph, GraphSource, cache_dir, open_kg
from kgwb.kg.embeddings import Embeddings
from kgwb.llm.base import ChatModel
from kgwb.run import Run, Setup, System, systems
from kgwb.run.answers import Dialogue, Turn
from kgwb.run.models import open_model
from kgwb.run.prompts import Prompts
from kgwb.run.record import ConversationFile, KeptConversation, new_conversation_id
from kgwb.run.systems import SystemSource
from kgwb.settings import Settings

if TYPE_CHECKING:
    from kgwb.bench.comparisons import SystemComparison
    from kgwb.bench.questions import BenchQuestion
    from kgwb.bench.report import Report
    from kgwb.run.gold import RightAnswer
    from kgwb.ui.cell import AgentCell
    from kgwb.ui.chat import Chat
    from kgwb.ui.debugger import ComparisonPanel, Debugger
    from kgwb.ui.subgraph import SubgraphPanel

model = open_model
load_run = systems.load_run

RECORDING_SUFFIX = ".jsonl.gz"
MAX_SIMILAR_NAMES = 3
MAX_NAME_CHARS = 80


class Workbench:
    """Asks questions of one system over one graph, and remembers the dialogue.

    ``system`` is a System, or a name, an import path (mytog.tog:SYSTEM) or a file (./tog.py).
    ``kg`` is a graph, or what ``open_kg`` opens. ``model`` is a model or its specification: "rules",
    "openai:gpt-4o", "ollama:phi4". ``models`` gives single agents another one, or all agents of a
    role, by name. ``settings`` are those of ``kgwb.profile``, the name of a profile, or a mapping of
    the settings that differ from the profile "fast". ``prompts`` is a folder whose files replace
    kgwb's own of the same name. ``conversations`` is a file in which the dialogue is kept, turn by
    turn; by default nothing is kept.

    Raises what opening the graph, the models and the system raises, all of them KgwbErrors.
    """

    def __init__(  # noqa: PLR0913  # all that a question is asked of, by keywords
        self,
        kg: GraphSource,
        model: ChatModel | str = "rules",
        *,
        system: SystemSource = "chatty_kg",
        models: Mapping[str, ChatModel | str] | None = None,
        settings: Settings | Mapping[str, Any] | str | None = None,
        prompts: Prompts | str | Path | None = None,
        embeddings: Embeddings | None = None,
        conversations: str | Path | None = None,
    ) -> None:
        """Open the graph and the models, and begin an empty dialogue.

        ``embeddings`` compare labels; by default they are those of kgwb, with vectors kept in the
        cache folder. The names in ``models`` must be agents or roles of the system that ask a
        model, else SettingError is raised.
        """
        self.system = systems.resolve_system(system)
        models_by_agent = {"": model, **(models or {})}
        for agent in models_by_agent:
            if agent:
                self.system.check_model_user(agent)
        self.kg = open_kg(kg)
        self.models = {}
        for agent, spec in models_by_agent.items():
            self.models[agent] = open_model(spec)
        if embeddings is None:
            embeddings = Embeddings(cache_folder=cache_dir())
        self.setup = Setup(
            self.kg,
            self.system,
            self.models,
            self.system.settings.of(settings),
            Prompts.of(prompts),
            embeddings,
        )
        self.runs: list[Run] = []
        """The turns of the dialogue, oldest first."""
        self._earlier_turns: tuple[Turn, ...] = ()
        self.conversation_file: ConversationFile | None = None
        """The file in which the dialogue is kept; None if it is not."""
        if conversations is not None:
            self.conversation_file = ConversationFile(conversations)
        self.conversation_id = new_conversation_id()
        """The id of the dialogue in the file."""
        self._kept_turns: tuple[Turn, ...] = ()
        """The turns of the dialogue as they are in the file."""

    @property
    def dialogue(self) -> Dialogue:
        """The finished turns so far, oldest first; turns of a dialogue that was continued come before them.

        A run that is not finished, or that failed, has no turn and is left out.
        """
        turns = [run.turn for run in self.runs if run.turn]
        return Dialogue((*self._earlier_turns, *turns))

    def begin(self, question: str, *, path: str | Path | None = None) -> Run:
        """Return a run of the next turn that is not executed yet, and add it to ``runs``.

        ``path`` is a file that the run is written to, call by call.
        """
        run = self.setup.begin(question, self.dialogue, path)
        self.runs.append(run)
        return run

    def ask(self, question: str, *, path: str | Path | None = None) -> Run:
        """Execute the next question of the dialogue to its end, and return the run.

        The run is added to ``runs`` before it is executed, so it is the last one there also if it
        fails. Raises the KgwbError that it failed with. ``path`` is a file that the run is written
        to, call by call.
        """
        run = self.begin(question, path=path)
        run.go()
        self.keep_turns()
        return run

    def ask_all(
        self,
        question: str | BenchQuestion,
        system_names: Sequence[SystemSource] | SystemSource = (),
    ) -> SystemComparison:
        """Ask several systems the next question, and return their answers side by side.

        By default these are all systems; a single one may be given without a list. They have this
        workbench's graph, model, prompts, and those of its settings that they know. The dialogue
        and ``runs`` stay as they are. A question of ``kgwb.bench.load_questions`` has a gold
        answer, so that the result tells which systems are right, and which agent the others lost
        the question at. Raises SettingError for a system that there is not.
        """
        from kgwb.bench.comparisons import ask_all

        sources: Sequence[SystemSource]
        if isinstance(system_names, System | str | Path):
            sources = [system_names]
        else:
            sources = system_names or systems.list_systems()
        setups = []
        for source in sources:
            system = systems.resolve_system(source)
            setups.append(self.setup.of_system(system))
        return ask_all(setups, question, self.dialogue)

    def new_dialogue(self) -> None:
        """Begin a new dialogue: forget all turns."""
        self.continue_dialogue(Dialogue())

    def continue_dialogue(self, dialogue: Dialogue) -> None:
        """Continue an earlier dialogue: its turns replace those of this workbench.

        In the file of conversations it is another one from now on.
        """
        self.runs = []
        self._earlier_turns = dialogue.turns
        self.conversation_id = new_conversation_id()
        self._kept_turns = ()

    # Conversations in a file

    @property
    def conversations(self) -> tuple[KeptConversation, ...]:
        """The conversations in the file, the one that was written last at the end.

        None without a file. Raises InputError for a file with another content.
        """
        if self.conversation_file is None:
            return ()
        return self.conversation_file.read()

    def open_conversation(self, id_: str) -> None:
        """Go on with a conversation of the file: its turns replace those of this workbench.

        Raises SettingError without a file, or if it was held over another graph, and InputError if
        the file does not have it.
        """
        if self.conversation_file is None:
            raise SettingError(
                "no conversation can be opened: this workbench keeps none",
                hint="name a file: Workbench(..., conversations='chats.jsonl')",
            )
        kept = self.conversation_file.find(id_)
        if kept.graph != self.kg.identity and kept.source != self.kg.source:
            raise SettingError(
                f"the conversation {kept.id} was held over another graph: {kept.source}",
                hint="open it in a workbench of that graph: kgwb.Workbench(...)",
            )
        self.continue_dialogue(Dialogue(kept.turns))
        self.conversation_id = kept.id
        self._kept_turns = kept.turns

    def keep_turns(self) -> None:
        """Write the turns of the dialogue that are new, or were asked again, to the file.

        Nothing happens without a file. Raises InputError if it cannot be written.
        """
        if self.conversation_file is None:
            return
        dialogue = self.dialogue
        changed = []
        for number, turn in enumerate(dialogue.turns):
            is_kept = number < len(self._kept_turns) and self._kept_turns[number] == turn
            if not is_kept:
                changed.append(number)
        self.conversation_file.keep(
            self.conversation_id, dialogue, changed, self.system.name, self.kg
        )
        self._kept_turns = dialogue.turns

    def cell(self, agent: str) -> AgentCell:
        """Return the widget of an agent of the latest run, or of the step with this key.

        Raises SettingError if there is no run, or no such agent.
        """
        from kgwb.ui.cell import AgentCell
        from kgwb.ui.session import session_of

        return AgentCell(session_of(self._latest_run()), agent)

    def debug(self, question: str | Run | None = None) -> Debugger:
        """Return the debugger widget of a question or of a run; nothing is executed yet.

        A text is begun as the next turn and added to ``runs``. Without ``question`` the debugger is
        that of the latest run. Raises SettingError if there is none.
        """
        if isinstance(question, str):
            return debug(self.begin(question))
        return debug(question or self._latest_run())

    def subgraph(self, run: Run | None = None) -> SubgraphPanel:
        """Return the widget with the linked subgraph of a run, by default of the latest one.

        Raises SettingError if there is none.
        """
        from kgwb.ui.session import session_of
        from kgwb.ui.subgraph import SubgraphPanel

        return SubgraphPanel(session_of(run or self._latest_run()))

    def chat(self) -> Chat:
        """Return the widget of the dialogue, in which any turn can be opened in the debugger."""
        from kgwb.ui.chat import Chat

        return Chat(self)

    def _latest_run(self) -> Run:
        """Return the last of ``runs``, whatever its state.

        Raises SettingError, with an example, if there are none.
        """
        if not self.runs:
            raise SettingError(
                "no question has been asked yet", hint="ask one first: workbench.ask('Who ...?')"
            )
        return self.runs[-1]

    def __repr__(self) -> str:
        """Return the system, the graph, each model by its agent, and the number of finished turns."""
        parts = [f"{self.system.name} on {self.kg.source}"]
        for agent, model in self.models.items():
            parts.append(f"{agent or 'model'} {model.name}")
        parts.append(f"{len(self.dialogue.turns)} turns")
        listed = ", ".join(parts)
        return f"Workbench({listed})"


def debug(
    run: Run | Workbench | Report | str | Path, question: str = "", **options: Any
) -> Debugger:
    """Return the debugger on a run, on the file of a saved run, or on a question of a report.

    Of a workbench it is opened on the latest run. A file is replayed from its recorded calls. A
    question of a benchmark report is named by its id in ``question``; its run is opened at the step
    that lost the question, beside the gold answer. ``question`` and ``options``, which are those of
    ``Report.measured_run``, are ignored for anything but a report. Raises RunFileError for a file
    that is not a run file, InputError for a question whose run was not kept, and SettingError for a
    workbench that was asked nothing.
    """
    from kgwb.bench.report import Report
    from kgwb.ui.debugger import Debugger, debug_question
    from kgwb.ui.session import session_of

    if isinstance(run, Report):
        return debug_question(run, question, **options)
    if isinstance(run, Workbench):
        return run.debug()
    return Debugger(session_of(_run_of(run)))


def compare(
    first: Run | str | Path, second: Run | str | Path, names: tuple[str, str] = ("first", "second")
) -> ComparisonPanel:
    """Return a widget with two runs, or files of saved ones, side by side by step.

    ``names`` are their headings. ``first.diff(second)`` is the same without widgets. A file is
    replayed. Raises RunFileError for a file that is not a run file.
    """
    from kgwb.ui.debugger import ComparisonPanel

    return ComparisonPanel(_run_of(first), _run_of(second), names)


def _run_of(run: Run | str | Path) -> Run:
    """Return a run as it is, or replay it from the file of a saved run. Raises RunFileError."""
    if isinstance(run, Run):
        return run
    return load_run(run)


@cache
def list_recordings() -> Mapping[str, Path]:
    """Return the files of the recorded runs that come with kgwb, by name: "films/triad/3".

    The files are those in ``recordings`` of the checkout, else those installed with the package.
    They are sorted by folder and then by number. The mapping is empty if there are none. It is
    computed once in a process.
    """
    folder = disk.shipped_folder("recordings")
    files = list(folder.glob(f"*/*/*{RECORDING_SUFFIX}"))
    files.sort(key=lambda file: (file.parent, len(file.name), file))  # 10 comes after 9
    recordings = {}
    for file in files:
        name = file.relative_to(folder).as_posix()
        recordings[name.removesuffix(RECORDING_SUFFIX)] = file
    return recordings


def recording(name: str, *, kg: Graph | None = None, model: ChatModel | str | None = None) -> Run:
    """Replay a recorded run that comes with kgwb, by its graph, system and number, such as "films/triad/3".

    Replaying needs no key, network or graph. ``right_answer`` of the run is set from the gold
    answers of its graph, or to None. After an edit, calls that are not in the record are made to
    ``kg`` and ``model``, if these are given; recorded replies are used also if they came from
    another model. Raises InputError if there is no recording of this name.
    """
    recordings = list_recordings()
    if name not in recordings:
        hint = "install kgwb again: its recordings are missing"
        similar = difflib.get_close_matches(name, recordings, MAX_SIMILAR_NAMES)
        shown = similar or list(recordings)[:MAX_SIMILAR_NAMES]
        if shown:
            hint = f"name one, for example: {', '.join(shown)}"
        raise InputError(f"kgwb has no recording {name[:MAX_NAME_CHARS]!r}", hint=hint)
    run = load_run(recordings[name], kg=kg)
    run.right_answer = _right_answer_of_recording(recordings[name])
    if model is not None:
        run.models = {"": open_model(model)}
        run.prefer_recorded = True
    return run


def _right_answer_of_recording(file: Path) -> RightAnswer | None:
    """Return the gold answer of a recording, by its values and their labels; None if its graph has no gold.

    Gold is the file GRAPH.questions.jsonl beside the graph's folder. The number in the recording's
    file name is the line of its question, counted from 1.
    """
    from kgwb.bench.results import known_right_answer

    folder = file.parents[2]
    graph = file.parents[1].name
    questions_file = folder / f"{graph}.questions.jsonl"
    if not questions_file.is_file():
        return None
    number = int(file.name.removesuffix(RECORDING_SUFFIX))
    question = dict(disk.read_json_lines(questions_file))[number]
    return known_right_answer(question["answers"], question["answer_labels"])
