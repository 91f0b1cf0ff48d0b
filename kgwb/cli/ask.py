"""``kgwb ask``: one question, with its steps; ``demo``: a dialogue; ``chats`` and ``export`` of what is kept."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Self

from kgwb import disk
from kgwb.cli.arguments import (
    EXIT_FAILED,
    PositiveInt,
    color,
    flag,
    option,
    parse_assignments,
    positional,
    print_error,
    use_color,
    warn_about_rules,
)
from kgwb.errors import InputError, RunFileError
from kgwb.kg import is_endpoint_url, open_kg, sample_path
from kgwb.kg.base import Graph
from kgwb.llm import Scripted
from kgwb.llm.base import ChatModel
from kgwb.records import JsonObject, describe_validation_error, from_data, to_data
from kgwb.run import Run, systems
from kgwb.run.answers import Dialogue, Turn
from kgwb.run.prompts import Prompts
from kgwb.run.record import ConversationFile, RunFile
from kgwb.run.run import check_question
from kgwb.run.steps import Step, step_costs
from kgwb.run.systems import load_file, load_run, profile, resolve_system
from kgwb.settings import Settings
from kgwb.show.run_state import state_of_output
from kgwb.text import CONTROL_CHARACTERS, mask_url, single_line
from kgwb.workbench import Workbench

HISTORY_HELP = """JSON list of the dialogue so far, oldest first. A text is an earlier question, which is asked
first; an object {"question": ..., "answers": [labels]} is a turn that is remembered as it is, with "standalone"
(the question outside its dialogue) and "entities" (the names in it) if known"""
HISTORY_FORM = 'a JSON list of questions, or of {"question": ..., "answers": [...]}'


@dataclass(kw_only=True)
class GraphArguments:
    """The arguments that say how a graph is opened."""

    kg: str = option("GRAPH", "RDF file or folder, endpoint URL, or the name of a sample", MISSING)
    dialect: str | None = option(
        "NAME[:ARGUMENT]",
        "how the labels of an endpoint are searched (default: found out when it is opened); "
        "CONTRIBUTING.md lists them",
    )
    vocabulary: str | None = option(
        "NAME",
        "the predicates of labels and noise: dbpedia, wikidata, yago, dblp, mag, freebase, or a .json file "
        "(default: by the URL)",
    )
    query_timeout: float = option("SECONDS", "timeout of a query", 30.0)
    row_limit: PositiveInt = option("N", "rows of a result at most", 10_000)

    def open_graph(self, source: str) -> Graph:
        """Open a graph with the vocabulary, timeout and row limit of these arguments.

        The dialect is used only for ``kg`` itself and for endpoints. What was left out or changed
        when files were read is printed to standard error. Raises what ``open_kg`` raises.
        """
        dialect = None
        if source == self.kg or is_endpoint_url(source):
            dialect = self.dialect
        kg = open_kg(
            source,
            dialect=dialect,
            vocabulary=self.vocabulary,
            query_timeout_s=self.query_timeout,
            row_limit=self.row_limit,
        )
        for note in getattr(kg, "notes", ()):
            print(f"kgwb: {single_line(note)}", file=sys.stderr)
        return kg


@dataclass(kw_only=True)
class QuestionArguments(GraphArguments):
    """The arguments that say which system, with which models and settings, is asked on which graph."""

    model: str = option(
        "SPEC",
        "rules (default), openai:MODEL, ollama:MODEL, replay:FILE, scripted:FILE.py; human needs "
        "a notebook",
        "rules",
    )
    agent_model: list[str] = option("AGENT=SPEC", "model of one agent, or of all of a role", [])
    system: str = option(
        "SYSTEM",
        "a name, an import path (mytog.tog:SYSTEM) or a file (./tog.py); default: chatty_kg",
        "chatty_kg",
    )
    profile: str = option("", "fast (default), paper or reference", "fast")
    set: list[str] = option("NAME=VALUE", "change a setting", [])
    prompts: Path | None = option("DIR", "folder of prompts that are used in place of kgwb's own")

    @property
    def given_settings(self) -> dict[str, str]:
        """The values of ``set``, by the names of the settings. Raises InputError for one without "="."""
        return parse_assignments(self.set, "NAME=VALUE")

    @property
    def settings(self) -> Settings:
        """The settings of ``profile`` for ``system``, with the changes of ``set``, whose values are parsed.

        Raises SettingError for an unknown setting or an impossible value, and InputError for a
        ``set`` without "=".
        """
        changes: dict[str, Any] = {**self.given_settings}
        return profile(self.profile, system=self.system, are_strings=True, **changes)

    def for_systems(self, names: Sequence[str]) -> Self:
        """Return these arguments with ``system`` set to the first of several systems that has all given settings.

        Given are the names in ``set``. If no system has all of them, the first system is taken.
        Without names the arguments are returned unchanged. Raises InputError for a wrong ``set``,
        and SettingError for an unknown system.
        """
        if not names:
            return self
        lacking = find_missing_settings(names, self.given_settings)
        system = next((name for name in names if name not in lacking), names[0])
        return replace(self, system=system)

    def make_workbench(self, graph: Graph | None = None) -> Workbench:
        """Open the models and the graph, and return a workbench with the settings and prompts of the arguments.

        ``graph`` is the graph if it is open already. Settings, agents and prompts are checked
        before the graph is opened. Raises what opening the graph and the models raises,
        SettingError for an unknown setting, system or agent, and PromptError for prompts that the
        system cannot use.
        """
        settings = self.settings
        model_specs = parse_assignments(self.agent_model, "AGENT=SPEC")
        models = open_model_arguments({"": self.model, **model_specs})
        system = systems.resolve_system(self.system)
        for agent in model_specs:
            system.check_model_user(agent)
        prompts = Prompts.of(self.prompts)
        system.check_prompts(prompts)
        return Workbench(
            graph or self.open_graph(self.kg),
            system=system,
            models=models,
            settings=settings,
            prompts=prompts,
        )


def open_model_arguments(specs: Mapping[str, str]) -> dict[str, ChatModel | str]:
    """Return the model of each agent; a script is opened, and every other specification stays a text.

    "scripted:FILE.py" executes a file of Python. So it is opened only here, where a person has
    written it, and not by ``open_model``, which also opens the models that files name. Raises
    InputError if the file has no script.
    """
    models: dict[str, ChatModel | str] = {}
    for agent, spec in specs.items():
        kind, _, path = spec.partition(":")
        models[agent] = spec
        if kind == "scripted":
            models[agent] = _open_script(Path(path))
    return models


def _open_script(path: Path) -> ChatModel:
    """Execute a file of Python and return the scripted model of its value SCRIPT, see ``Scripted``.

    SCRIPT is a mapping of replies or a function. The model is named "scripted:" and the file's
    name. Raises InputError if the file has no such SCRIPT, and what ``load_file`` raises.
    """
    module = load_file(path)
    script = getattr(module, "SCRIPT", None)
    if not callable(script) and not isinstance(script, Mapping):
        raise InputError(
            f"the file {path} does not define SCRIPT",
            hint='add a line such as SCRIPT = {"PROMPT": [{"field": "value"}, ...]}, '
            "or a function of the request",
        )
    return Scripted(script, name=f"scripted:{path.name}")


def parse_system_names(text: str) -> tuple[str, ...]:
    """Return the system names of a list with commas, each once, in their order; "all" stands for all systems.

    A name may also be an import path or a file, as ``resolve_system`` reads it. Raises SettingError
    for a system that there is not.
    """
    if text == "all":
        return systems.list_systems()
    names = tuple(dict.fromkeys(text.split(",")))
    for name in names:
        systems.resolve_system(name)
    return names


def find_missing_settings(names: Sequence[str], settings: Iterable[str]) -> dict[str, list[str]]:
    """Return, for each system that lacks some of the given settings, the names that it lacks.

    Systems that have all of them are left out, so the result is empty if all is well. Raises
    SettingError for an unknown system.
    """
    missing: dict[str, list[str]] = {}
    for name in names:
        known = resolve_system(name).settings.setting_names()
        unknown = [setting for setting in settings if setting not in known]
        if unknown:
            missing[name] = unknown
    return missing


def describe_missing_settings(missing: Mapping[str, Sequence[str]]) -> str:
    """Return which system lacks which settings: "dog has no theta; triad has no theta, beta"."""
    parts = []
    for name, settings in missing.items():
        listed = ", ".join(settings)
        parts.append(f"{name} has no {listed}")
    return "; ".join(parts)


def load_history(workbench: Workbench, path: Path) -> None:
    """Read a history file, and add its questions and turns to the dialogue of a workbench in their order.

    The file has the form HISTORY_FORM. A text is a question, which is asked now; an object is a
    turn, which is remembered as it is. Raises InputError if the file cannot be read or has another
    form, and what asking raises.
    """
    try:
        data = json.loads(disk.read_text(path))
        entries = from_data(data, list[str | Turn])
    except (OSError, ValueError, RecursionError) as exc:
        problem = describe_validation_error(exc)
        raise InputError(
            f"cannot use the history {path}: {problem}", hint=f"write it as {HISTORY_FORM}"
        ) from exc
    for entry in entries:
        if isinstance(entry, str):
            workbench.begin(entry).go_explained()
            workbench.keep_turns()
        else:
            turns = (*workbench.dialogue.turns, entry)
            workbench.continue_dialogue(Dialogue(turns))


@dataclass(kw_only=True)
class AskCommand(QuestionArguments):
    """The arguments of ``kgwb ask``, and its work."""

    chats: Path | None = option(
        "FILE", "keep the conversation in this file, and go on with the last one in it"
    )
    chat: str = option(
        "ID or new", "with --chats: go on with this conversation, or begin a new one", ""
    )
    history: Path | None = option("FILE", HISTORY_HELP)
    json: bool = flag("print answer, steps and totals as JSON")
    reading: int | None = option("NUMBER", "read the question as this other reading of the answer")
    save: Path | None = option("FILE", "write the run to this file, call by call")
    steps: bool = flag("also print the steps, as a tree")
    systems: str | None = option(
        "NAME,NAME,... or all", "ask several systems, and show their answers side by side"
    )
    question: str = positional("QUESTION")

    def run(self) -> int:
        """Ask the question, print the answer, and save the run if wanted.

        With ``systems`` all of these are asked, and a table is printed. Otherwise the run is
        printed as text, or as JSON if it succeeds; with ``reading``, it is the one that reads the
        question so. A run that fails is saved too, as far as it came, and its steps are printed
        unless JSON is wanted. If the disk is full, the run goes on without its file. Returns
        EXIT_FAILED if the run could not be saved, else 0. Raises InputError for ``systems`` with
        arguments of a single run, and the KgwbError that the run failed with.
        """
        names = parse_system_names(self.systems) if self.systems else ()
        if names:
            self._check_arguments_of_several()
        workbench = self.for_systems(names).make_workbench()
        self._open_conversation(workbench)
        if self.save:
            _check_save_file(self.save, workbench, self.question)
        if self.history:
            load_history(workbench, self.history)
        if names:
            self._warn_about_missing_settings(names)
            print(workbench.ask_all(self.question, names))
            warn_about_rules(workbench)
            return 0
        run = self._begin(workbench)
        try:
            try:
                run.go_explained()
                if self.reading is not None:
                    run = run.read_as(self.reading)
                    run.go_explained()
            except RunFileError:
                # The disk got full. A fork has no file, and reuses the calls made so far.
                run = run.fork()
                run.go_explained()
            finally:
                if not self.json:
                    print_answer_and_steps(run, self.steps)
            if self.json:
                print(_to_json(run))
            sys.stdout.flush()
            warn_about_rules(workbench)
            workbench.runs[-1] = run
            workbench.keep_turns()
        finally:
            # A run that failed is saved too, as far as it came.
            is_saved = self._save(run)
        if not is_saved:
            return EXIT_FAILED
        return 0

    def _open_conversation(self, workbench: Workbench) -> None:
        """Go on with a conversation of the file ``chats``, if one is given: the last by default.

        Raises InputError for ``chat`` without ``chats``, with a history or with several systems; and
        if there is no such conversation, or it was held over another graph.
        """
        if not self.chats:
            if self.chat:
                raise InputError(
                    "--chat needs the file of the conversation", hint="name it with --chats FILE"
                )
            return
        if self.history or self.systems:
            raise InputError(
                "--chats cannot be used with --history or --systems",
                hint="a conversation has its own history, and one system",
            )

        workbench.conversation_file = ConversationFile(self.chats)
        conversations = workbench.conversations
        if self.chat == "new" or not (self.chat or conversations):
            return
        workbench.open_conversation(self.chat or conversations[-1].id)

    def _check_arguments_of_several(self) -> None:
        """Raise InputError for arguments that only the run of one system can have."""
        if self.reading is not None:
            raise InputError(
                "--reading cannot be used with --systems: each system has readings of its own",
                hint="ask one system: --system NAME",
            )
        if self.json or self.save or self.steps:
            raise InputError(
                "--json, --save and --steps cannot be used with --systems, which prints a table",
                hint="to use them, ask one system: --system NAME",
            )

    def _warn_about_missing_settings(self, names: Sequence[str]) -> None:
        """Print on the error output which of the systems are asked without a given setting that they lack."""
        missing = find_missing_settings(names, self.given_settings)
        if missing:
            print_error(f"asked without these settings: {describe_missing_settings(missing)}")

    def _begin(self, workbench: Workbench) -> Run:
        """Return a run of the question, not yet executed, which writes its calls to ``save`` as they are made.

        If the disk is full, the run has no file. Raises RunFileError for any other problem with the
        file.
        """
        try:
            return workbench.begin(self.question, path=self.save)
        except RunFileError as exc:
            cause = exc.__cause__
            is_full = isinstance(cause, OSError) and cause.errno in disk.DISK_FULL_ERRNOS
            if not is_full:
                raise
            return workbench.begin(self.question)

    def _save(self, run: Run) -> bool:
        """Save the run to ``save``, and return whether that succeeded; True also if no file is given.

        If the file cannot be written, print the error instead of raising it.
        """
        try:
            if self.save:
                run.save(self.save)
        except RunFileError as exc:
            print_error(exc)
            return False
        return True


def _check_save_file(path: Path, workbench: Workbench, question: str) -> None:
    """Raise InputError if the file to save to already has a run of another question or another system.

    Only the header of the file is read. A file that is missing or is no run file passes here:
    saving decides about it.
    """
    try:
        header = next(RunFile(path).entries())
    except RunFileError:
        return
    asked = (header.get("system"), header.get("question"))
    if asked != (workbench.system.name, check_question(question, workbench.setup.settings)):
        raise InputError(
            f"{path} already has another run, in which {asked[0]} was asked {asked[1]!r}",
            hint="name another file with --save; this one was left as it is",
        )


def print_answer_and_steps(run: Run, steps: bool) -> None:
    """Print the question, the answer with its support, and a last line with the status and the totals.

    The steps are printed before that line if ``steps`` is set, or if there is no answer.
    """
    print(single_line(run.question))
    print_answer(run)
    if steps or run.answer is None:
        print(run.summary(color=use_color()))
    print(f"{run.status}: {run.totals}")


def print_answer(run: Run) -> None:
    """Print the answer of a run in a line, its state in the next, and then each triple that supports it.

    The state says whether it was proved or is in doubt. Nothing is printed without an answer.
    """
    if run.answer is None:
        return

    first, *support = run.answer.summary(run.display_names()).splitlines()
    print(color(f"→ {single_line(first)}", "key"))
    print(f"  {single_line(state_of_output(run, run.answer))}")
    for line in support:
        print(f"    {single_line(line)}")
    for number, reading in enumerate(run.readings, 1):
        print(f"  --reading {number}: {single_line(str(reading))}")


def _to_json(run: Run) -> str:
    """Return answer, steps and totals of a run as JSON text, with control characters escaped."""
    text = json.dumps(_run_to_data(run), ensure_ascii=False, indent=2)
    return CONTROL_CHARACTERS.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _run_to_data(run: Run) -> JsonObject:
    """Return "answer", "steps" and "totals" of a run as JSON data; the run must have an answer.

    IRIs and literals are strings. Seconds are rounded to six decimals. "text" of the answer is its
    text, else its labels with commas.
    """
    from kgwb.bench.cost import COUNT_FIELDS
    from kgwb.bench.questions import term_to_string

    answer = run.answer
    assert answer is not None
    state = state_of_output(run, answer)
    totals: dict[str, float] = {name: getattr(run.totals, name) for name in COUNT_FIELDS}
    totals["tokens"] = run.totals.prompt_tokens + run.totals.completion_tokens
    totals["seconds"] = round(run.totals.seconds, 6)
    return {
        "answer": {
            "kind": answer.kind,
            "values": [term_to_string(value.term) for value in answer.values],
            "labels": list(answer.labels),
            "text": answer.text or ", ".join(answer.labels),
            "support": [list(map(str, triple)) for triple in answer.support],
            "texts": [
                {"file": cited.file, "place": cited.place, "text": cited.text}
                for cited in answer.texts
            ],
            "reason": answer.reason,
            "ungrounded": answer.ungrounded,
            "state": state.name,
            "doubt": state.doubt,
            "readings": [to_data(reading) for reading in answer.readings],
            "measure": answer.measure,
            "measures": [
                None if value.measure is None else term_to_string(value.measure)
                for value in answer.values
            ],
            "remarks": list(answer.remarks),
        },
        "steps": [step.to_data() for step in run.steps],
        "totals": totals,
    }


@dataclass(kw_only=True)
class ChatsCommand:
    """The arguments of ``kgwb chats``, and its work."""

    show: str = option("ID", "print the questions and answers of this conversation", "")
    file: Path = positional("FILE", "the file of --chats FILE")

    def run(self) -> None:
        """Print a line for each conversation, or the turns of one. Raises InputError."""
        conversations = ConversationFile(self.file)
        if not self.show:
            lines = map(str, conversations.read())
            print("\n".join(lines) or f"no conversation was kept yet in {self.file}")
            return

        conversation = conversations.find(self.show)
        for number, turn in enumerate(conversation.turns, 1):
            answers = ", ".join(turn.answers) or "no answer"
            print(f"{number}  {single_line(turn.question)}")
            print(f"   {single_line(answers)}")


@dataclass(kw_only=True)
class ExportCommand:
    """The arguments of ``kgwb export``, and its work."""

    to: str = option("openinference", "the form of the export (default)", "openinference")
    out: str = option(
        "FILE or ADDRESS",
        "OTLP JSON is written to a file; an address that begins with http gets OTLP "
        "(default: trace.json)",
        "trace.json",
    )
    system: str | None = option("SYSTEM", "the system of the run, if the file's name is not known")
    path: Path = positional("RUN", "a file of kgwb ask --save or Run.save")

    def run(self) -> None:
        """Replay the saved run, write its trace to a file or send it to a server, and print its id and place.

        Raises what ``load_run`` and ``Run.export`` raise.
        """
        run = load_run(self.path, system=self.system)
        trace_id = run.export(self.out, to=self.to)
        print(f"trace {trace_id}: {mask_url(self.out)}")


@dataclass(kw_only=True)
class DemoCommand:
    """The arguments of ``kgwb demo``, and its work."""

    def run(self) -> None:
        """Ask the questions of the dialogue "films-hp" of the sample graph films, and print each step.

        Chatty-KG answers them with the model ``rules``, so nothing is sent over a network. A step
        is printed as it ends, and the answer with its support after each question.
        """
        from kgwb.bench import load_questions

        print(
            "Chatty-KG, agent by agent, on the sample graph films. "
            "The model is rules: nothing is sent over the network."
        )
        workbench = Workbench(open_kg("films"))
        questions = load_questions(sample_path("films").with_suffix(".questions.jsonl"))
        for question in questions:
            if question.dialogue == "films-hp":
                print(f"\n{color(f'{question.turn}. {question.question}', 'key')}")
                run = workbench.begin(question.question)
                run.listeners.append(partial(_print_step, run))
                run.go()
                print_answer(run)
        print("\nTo see, edit and re-run every step: kgwb lab")
        warn_about_rules(workbench)


def _print_step(run: Run, event: str, step: Step) -> None:
    """Print a step that has ended in one line: agent, outcome, and cost in brackets.

    It is a listener of the run. Nothing is printed for any other event, and for steps that
    supervise others.
    """
    is_supervisor = any(other.parent == step.key for other in run.steps)
    if event != "end" or is_supervisor:
        return
    costs = ", ".join(step_costs(step, run.calls))
    aside = color(f"({costs})", "aside")
    print(f"   {step.agent:<20} {step.outcome}  {aside}", flush=True)
