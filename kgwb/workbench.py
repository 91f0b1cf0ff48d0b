"""The workbench: a graph, a model and a system, and the dialogue held with them."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kgwb import systems
from kgwb.deprecated import RenamedAttribute
from kgwb.errors import InputError, SettingError
from kgwb.flow import Dialogue, Turn
from kgwb.kg import Graph, GraphSource, cache_dir, open_kg
from kgwb.kg.embeddings import Embeddings
from kgwb.llm.base import ChatModel
from kgwb.run import Run, Setup, System
from kgwb.run.conversations import ConversationFile, KeptConversation, new_conversation_id
from kgwb.run.gold import RightAnswer
from kgwb.run.models import open_model
from kgwb.run.prompts import Prompts
from kgwb.settings import Settings
from kgwb.systems.sources import SystemSource

if TYPE_CHECKING:
    from kgwb.bench.questions import BenchQuestion
    from kgwb.bench.report import Report
    from kgwb.bench.side_by_side import SystemComparison
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
        self.system = systems.resolve_system(system)
        models_by_agent = {"": model, **(models or {})}
        for agent in models_by_agent:
            if agent:
                self.system.check_model_user(agent)
        self.kg = open_kg(kg)
        self.models = {agent: open_model(spec) for agent, spec in models_by_agent.items()}
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
        """The finished turns so far, those that were continued from first.

        Runs that did not come to their end are left out.
        """
        turns = list(self._earlier_turns)
        for run in self.runs:
            if run.turn:
                turns.append(run.turn)
        return Dialogue(tuple(turns))

    def begin(self, question: str, *, path: str | Path | None = None) -> Run:
        """Return a run of the next turn that is not executed yet, and add it to ``runs``.

        ``path`` is a file that the run is written to, call by call.
        """
        run = self.setup.begin(question, self.dialogue, path)
        self.runs.append(run)
        return run

    def ask(self, question: str, *, path: str | Path | None = None) -> Run:
        """Return the run that answers the next question of the dialogue.

        Raises the KgwbError that the run failed with; the run is the last of ``runs`` in any case.
        ``path`` is a file that the run is written to, call by call.
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

        By default these are all systems. They have this workbench's graph, model, prompts, and those
        of its settings that they know. The dialogue stays as it is. A question of
        ``kgwb.bench.load_questions`` has a gold answer, so that the result tells which systems are
        right, and which agent the others lost the question at.
        """
        from kgwb.bench.side_by_side import ask_all

        sources: Sequence[SystemSource]
        if isinstance(system_names, System | str | Path):
            sources = [system_names]
        else:
            sources = system_names or systems.list_systems()
        setups = [self.setup.of_system(systems.resolve_system(source)) for source in sources]
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
                "this workbench keeps no conversations",
                hint="name a file: Workbench(..., conversations='chats.jsonl')",
            )
        kept = self.conversation_file.find(id_)
        if kept.graph != self.kg.identity and kept.source != self.kg.source:
            raise SettingError(
                f"the conversation {kept.id} was held over another graph: {kept.source}",
                hint="open it in a workbench of that graph",
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
            if self._kept_turns[number : number + 1] != (turn,):
                changed.append(number)
        system = self.system.name
        self.conversation_file.keep(self.conversation_id, dialogue, changed, system, self.kg)
        self._kept_turns = dialogue.turns

    def cell(self, agent: str) -> AgentCell:
        """Return the widget of an agent of the latest run, or of the step with this key.

        Raises SettingError if there is no run, or no such agent.
        """
        from kgwb.ui.cell import AgentCell
        from kgwb.ui.session import session_of

        run = self._latest_run()
        return AgentCell(session_of(run), agent)

    def debug(self, question: str | Run | None = None) -> Debugger:
        """Return the debugger of a new turn that is not executed yet, or of a run.

        Without ``question`` it is that of the latest run. Raises SettingError if there is none.
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

        shown_run = run or self._latest_run()
        return SubgraphPanel(session_of(shown_run))

    def chat(self) -> Chat:
        """Return the widget of the dialogue, in which any turn can be opened in the debugger."""
        from kgwb.ui.chat import Chat

        return Chat(self)

    def _latest_run(self) -> Run:
        """Return the latest run. Raises SettingError if no question has been asked."""
        if not self.runs:
            hint = "ask one first: workbench.ask('Who ...?')"
            raise SettingError("no question has been asked yet", hint=hint)
        return self.runs[-1]

    def __repr__(self) -> str:
        models = ""
        for agent, agent_model in self.models.items():
            label = agent or "model"
            models += f", {label} {agent_model.name}"
        turn_count = len(self.dialogue.turns)
        return f"Workbench({self.system.name} on {self.kg.source}{models}, {turn_count} turns)"

    forget = RenamedAttribute("forget", "new_dialogue")
    remember = RenamedAttribute("remember", "continue_dialogue")
    turns = RenamedAttribute("turns", "runs")


def debug(
    run: Run | Workbench | Report | str | Path, question: str = "", **options: Any
) -> Debugger:
    """Open the debugger on a run, on the file of a saved run, or on a question of a report.

    Of a workbench it is opened on the latest run. The file is replayed. A question of a benchmark
    report is named by its id; its run is opened at the step that lost the question, beside the gold
    answer. ``options`` are those of ``Report.measured_run``.

    Raises RunFileError for a file that is not a run file, InputError for a question whose run was
    not kept, and SettingError for a workbench that was asked nothing.
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

    first_run = _run_of(first)
    second_run = _run_of(second)
    return ComparisonPanel(first_run, second_run, names)


def _run_of(run: Run | str | Path) -> Run:
    if isinstance(run, Run):
        return run
    return load_run(run)


@cache
def list_recordings() -> Mapping[str, Path]:
    """Return the files of the recorded runs that come with kgwb, by name: "films/triad/3".

    They are in the order of graph, system and number. Returns none if the package lacks them.
    """
    package = Path(__file__).parent
    source_folder = package.parent / "recordings"
    installed_folder = package / "_data" / "recordings"
    for folder in (source_folder, installed_folder):
        files = folder.glob(f"*/*/*{RECORDING_SUFFIX}")
        recordings = {}
        for file in sorted(files, key=_recording_order):
            name = file.relative_to(folder).as_posix()
            recordings[name.removesuffix(RECORDING_SUFFIX)] = file
        if recordings:
            return recordings
    return {}


def _recording_order(file: Path) -> tuple[Path, int, Path]:
    """Return the sort key of a recording's file; of two numbers the longer one is the greater."""
    return file.parent, len(file.name), file


def recording(name: str, *, kg: Graph | None = None, model: ChatModel | str | None = None) -> Run:
    """Return a recorded run that comes with kgwb, by graph, system and number: "films/triad/3".

    It is replayed, which needs no key, network or graph. What gold says of it is in
    ``right_answer``. After an edit, calls that are not in the
    record are made to ``kg`` and ``model``, if these are given; recorded replies are used also if
    they came from another model.

    Raises InputError if there is no recording of this name.
    """
    recordings = list_recordings()
    if name not in recordings:
        raise _unknown_recording(name, list(recordings))
    run = load_run(recordings[name], kg=kg)
    run.right_answer = _right_answer_of_recording(recordings[name])
    if model is not None:
        run.models = {"": open_model(model)}
        run.prefer_recorded = True
    return run


def _right_answer_of_recording(file: Path) -> RightAnswer | None:
    """Return what is right of a recording, by the questions of its graph; None if there are none.

    The number of the recording is the line of its question.
    """
    from kgwb.bench.verdicts import known_right_answer

    folder = file.parents[2]
    graph = file.parents[1].name
    questions_file = folder / f"{graph}.questions.jsonl"
    if not questions_file.is_file():
        return None
    number = int(file.name.removesuffix(RECORDING_SUFFIX))
    lines = questions_file.read_text(encoding="utf-8").splitlines()
    question = json.loads(lines[number - 1])
    return known_right_answer(question["answers"], question["answer_labels"])


def _unknown_recording(name: str, known: list[str]) -> InputError:
    """Return the error for the name of a recording that does not exist.

    Its hint has up to MAX_SIMILAR_NAMES similar names, else the first ones.
    """
    shown_name = name[:MAX_NAME_CHARS]
    hint = "install kgwb again: its recordings are missing"
    if known:
        similar = difflib.get_close_matches(name, known, MAX_SIMILAR_NAMES)
        examples = ", ".join(similar or known[:MAX_SIMILAR_NAMES])
        hint = f"for example: {examples}"
    return InputError(f"there is no recording {shown_name!r}", hint=hint)
