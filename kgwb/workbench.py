"""The workbench: a graph, a model and a system, and the dialogue held with them."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import replace
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
from kgwb.run import Run, Setup
from kgwb.run.models import open_model
from kgwb.run.prompts import Prompts
from kgwb.settings import Settings

model = open_model
load_run = systems.load_run

if TYPE_CHECKING:
    from kgwb.bench.questions import BenchQuestion
    from kgwb.bench.report import Report
    from kgwb.bench.side_by_side import SystemComparison
    from kgwb.ui.cell import AgentCell
    from kgwb.ui.chat import Chat
    from kgwb.ui.debugger import ComparisonPanel, Debugger
    from kgwb.ui.subgraph import SubgraphPanel


class Workbench:
    """Asks questions of one system over one graph, and remembers the dialogue.

    ``kg`` is a graph, or what ``open_kg`` opens. ``model`` is a model or its specification ("rules",
    "openai:gpt-4o", "ollama:phi4"); ``models`` gives single agents another one. ``settings`` are those of
    ``kgwb.profile``, a profile's name, or what differs from ``fast`` by name. ``prompts`` is a folder whose
    files go before kgwb's own. Raises KgwbErrors of graph, model and system.
    """

    def __init__(
        self,
        kg: GraphSource,
        model: ChatModel | str = "rules",
        *,
        system: str = "chatty_kg",
        models: Mapping[str, ChatModel | str] | None = None,
        settings: Settings | Mapping[str, Any] | str | None = None,
        prompts: str | Path | None = None,
        embeddings: Embeddings | None = None,
    ) -> None:
        chosen = systems.load_system(system)
        for agent in filter(None, models or ()):
            chosen.agent_spec(agent)
        self.setup = Setup(
            open_kg(kg),
            chosen,
            {name: open_model(spec) for name, spec in {"": model, **(models or {})}.items()},
            chosen.settings.of(settings),
            Prompts.of(prompts),
            embeddings or Embeddings(cache_folder=cache_dir()),
        )
        self.kg, self.system, self.models = self.setup.kg, chosen, self.setup.models
        self.runs: list[Run] = []
        """The turns of the dialogue, oldest first."""
        self._earlier_turns: tuple[Turn, ...] = ()

    @property
    def dialogue(self) -> Dialogue:
        """The finished turns so far."""
        return Dialogue((*self._earlier_turns, *(run.turn for run in self.runs if run.turn)))

    def begin(self, question: str, *, path: str | Path | None = None) -> Run:
        """A run of the next turn, not executed yet; ``path`` writes it to disk call by call."""
        self.runs.append(self.setup.begin(question, self.dialogue, path))
        return self.runs[-1]

    def ask(self, question: str, *, path: str | Path | None = None) -> Run:
        """The run that answers the next question of the dialogue. Raises what stops it; see ``runs``."""
        return self.begin(question, path=path).go()

    def ask_all(
        self, question: str | BenchQuestion, system_names: Sequence[str] | str = ()
    ) -> SystemComparison:
        """Ask several systems (default: all that are there) the next question; the dialogue stays as it is.

        A question of ``kgwb.bench.load_questions`` has gold, which tells who is right and where the others
        lost it. Each has this workbench's graph, model, prompts, and those of its settings that it has too.
        """
        from kgwb.bench.side_by_side import ask_all

        setups, settings = [], self.setup.settings
        for name in (
            [system_names]
            if isinstance(system_names, str)
            else system_names or systems.list_systems()
        ):
            other = systems.load_system(name)
            has = other.settings.setting_names()
            changes = {
                key: value for key, value in settings.changes_from_profile().items() if key in has
            }
            agents = {"", *(spec.name for spec in other.agents)}  # they keep their own models
            models = {agent: model for agent, model in self.models.items() if agent in agents}
            own = other.settings.of_profile(settings.profile, **changes)
            setups.append(replace(self.setup, system=other, settings=own, models=models))
        return ask_all(setups, question, self.dialogue)

    def new_dialogue(self) -> None:
        """Begin a new dialogue."""
        self.runs, self._earlier_turns = [], ()

    def continue_dialogue(self, dialogue: Dialogue) -> None:
        """Go on from a dialogue held before."""
        self.runs, self._earlier_turns = [], dialogue.turns

    def cell(self, agent: str) -> AgentCell:
        """The widget of an agent, or a step by its key, of the latest run. Raises SettingError without it."""
        from kgwb.ui.cell import AgentCell
        from kgwb.ui.session import session_of

        return AgentCell(session_of(self._latest()), agent)

    def debug(self, question: str | Run | None = None) -> Debugger:
        """The debugger on a new turn, nothing of it executed yet, or on a run (the latest)."""
        run = self.begin(question) if isinstance(question, str) else question or self._latest()
        return debug(run)

    def subgraph(self, run: Run | None = None) -> SubgraphPanel:
        """The linked subgraph of a run (the latest)."""
        from kgwb.ui.session import session_of
        from kgwb.ui.subgraph import SubgraphPanel

        return SubgraphPanel(session_of(run or self._latest()))

    def chat(self) -> Chat:
        """The dialogue as a widget; any turn opens in the debugger."""
        from kgwb.ui.chat import Chat

        return Chat(self)

    def _latest(self) -> Run:
        if not self.runs:
            raise SettingError(
                "no question was asked yet", hint="begin one: workbench.begin('Who ...?')"
            )
        return self.runs[-1]

    def __repr__(self) -> str:
        models = ", ".join(f"{name or 'model'} {model.name}" for name, model in self.models.items())
        turns = len(self.dialogue.turns)
        return f"Workbench({self.system.name} on {self.kg.source}, {models}, {turns} turns)"

    forget = RenamedAttribute("forget", "new_dialogue")
    remember = RenamedAttribute("remember", "continue_dialogue")
    turns = RenamedAttribute("turns", "runs")


def debug(run: Run | Report | str | Path, question: str = "", **options: Any) -> Debugger:
    """Open the debugger on a run, on the file of a saved run, or on a question of a report.

    The file is replayed. A question of a report is named by its id; the debugger shows the gold
    answer beside the run's. ``options`` are those of ``Report.measured_run``.

    Raises RunFileError for a file that is no run file, and InputError for a question whose run was
    not kept.
    """
    from kgwb.bench.report import Report
    from kgwb.ui.debugger import Debugger, debug_question
    from kgwb.ui.session import session_of

    if isinstance(run, Report):
        return debug_question(run, question, **options)
    return Debugger(session_of(_as_run(run)))


def compare(
    first: Run | str | Path, second: Run | str | Path, names: tuple[str, str] = ("first", "second")
) -> ComparisonPanel:
    """Two runs, or files of saved ones, side by side by step, as a widget.

    ``first.diff(second)`` is the same without widgets.
    """
    from kgwb.ui.debugger import ComparisonPanel

    return ComparisonPanel(_as_run(first), _as_run(second), names)


def _as_run(run: Run | str | Path) -> Run:
    return run if isinstance(run, Run) else load_run(run)


@cache
def list_recordings() -> Mapping[str, Path]:
    """The files of the recorded runs that come with kgwb, by their names ("films/triad/3")."""
    package, end = Path(__file__).parent, ".jsonl.gz"
    for folder in (package.parent / "recordings", package / "_data" / "recordings"):
        files = sorted(
            folder.glob(f"*/*/*{end}"), key=lambda file: (file.parent, len(file.name), file)
        )
        if files:
            return {file.relative_to(folder).as_posix().removesuffix(end): file for file in files}
    return {}


def recording(name: str, *, kg: Graph | None = None, model: ChatModel | str | None = None) -> Run:
    """A recorded run that comes with kgwb, by its name: graph, system and number, "films/triad/3".

    It is replayed without key, network and graph; what an edit needs beyond the record is asked of ``kg`` and
    ``model``, where they are given. Raises InputError for a name that is none.
    """
    known = list_recordings()
    if name not in known:
        close = difflib.get_close_matches(name, known, 3) or list(known)[:3]
        hint = (
            f"for example: {', '.join(close)}"
            if known
            else "install kgwb again: it came without any"
        )
        raise InputError(f"there is no recording {name[:80]!r}", hint=hint)
    run = load_run(known[name], kg=kg)
    if model is not None:
        run.models, run.prefer_recorded = {"": open_model(model)}, True
    return run
