"""``kgwb ask``: one question, with its steps; ``demo``: a dialogue; ``chats`` and ``export`` of what is kept."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from kgwb import disk
from kgwb.cli.arguments import (
    QuestionArguments,
    describe_missing_settings,
    find_missing_settings,
    flag,
    load_history,
    option,
    parse_system_names,
    positional,
)
from kgwb.cli.terminal import EXIT_FAILED, color, print_error, use_color, warn_about_rules
from kgwb.errors import InputError, RunFileError
from kgwb.kg import open_kg, sample_path
from kgwb.records import JsonObject
from kgwb.run import Run
from kgwb.run.record import ConversationFile, RunFile
from kgwb.run.run import check_question
from kgwb.run.steps import Step, step_costs
from kgwb.run.systems import load_run
from kgwb.show.run_state import state_of_output
from kgwb.text import CONTROL_CHARACTERS, mask_url, single_line
from kgwb.workbench import Workbench

HISTORY_HELP = """JSON list of the dialogue so far, oldest first. A text is an earlier question, which is asked
first; an object {"question": ..., "answers": [labels]} is a turn that is remembered as it is, with "standalone"
(the question outside its dialogue) and "entities" (the names in it) if known"""


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


def print_answer_and_steps(run: Run, steps: bool = False) -> None:
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
    from kgwb.records import to_data
    from kgwb.show.run_state import state_of_output

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
            print("\n".join(lines) or "no conversation was kept yet")
            return

        conversation = conversations.find(self.show)
        for number, turn in enumerate(conversation.turns, 1):
            question = single_line(turn.question)
            answers = ", ".join(turn.answers) or "no answer"
            answer_line = single_line(answers)
            print(f"{number}  {question}")
            print(f"   {answer_line}")


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
