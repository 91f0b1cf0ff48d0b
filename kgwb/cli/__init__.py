"""The command line: ask, bench, retry, keep, report, serve, doctor, lab, and the others of COMMANDS."""

from __future__ import annotations

import argparse
import errno
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from kgwb import disk
from kgwb.cli.arguments import (
    QuestionArguments,
    add_arguments,
    describe_missing_settings,
    find_missing_settings,
    load_history,
    option,
    parse_assignments,
    parse_system_names,
    positional,
)
from kgwb.cli.bench import (
    BenchCommand,
    CompareProfilesCommand,
    ReportCommand,
    RetryCommand,
    ServeCommand,
)
from kgwb.cli.chats import ChatsCommand
from kgwb.cli.errors import ErrorsCommand
from kgwb.cli.experiment import ExperimentCommand
from kgwb.cli.export import ExportCommand
from kgwb.cli.keep import KeepCommand
from kgwb.cli.labs import LabsCommand
from kgwb.cli.new import NewCommand
from kgwb.cli.pack import PackCommand
from kgwb.cli.rate import RateCommand
from kgwb.cli.score import ScoreCommand
from kgwb.cli.terminal import (
    EXIT_BUDGET_SPENT,
    EXIT_FAILED,
    EXIT_INTERRUPTED,
    BudgetSpentError,
    color,
    print_error,
    use_color,
    warn_about_rules,
)
from kgwb.disk import __version__
from kgwb.errors import InputError, KgwbError, RunFileError
from kgwb.text import CONTROL_CHARACTERS, mask_url, remove_controls, single_line

if TYPE_CHECKING:
    from kgwb.run import Run
    from kgwb.run.steps import Step
    from kgwb.workbench import Workbench

START_NOTEBOOK = "notebooks/00_start.ipynb"
NOTEBOOK_FILES = (".ipynb", ".py", ".jsonl")
"""The suffixes of the notebooks, and of the pipelines and recordings that one of them shows."""
HISTORY_HELP = """JSON list of the dialogue so far, oldest first. A text is an earlier question, which is asked
first; an object {"question": ..., "answers": [labels]} is a turn that is remembered as it is, with "standalone"
(the question outside its dialogue) and "entities" (the names in it) if known"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command that the arguments name, and return the exit code.

    It is 0 after success, 2 after a KgwbError, 3 if a budget is used up, 4 if a condition of
    --fail-if is met, 130 after an interrupt. ``doctor`` returns 1 if something needed is missing.
    These errors, and those of a system of one's own, are printed with what to do, not raised. Exits
    with 2 for wrong arguments.
    """
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # "?" takes the place of characters that the terminal's encoding lacks
            stream.reconfigure(errors="replace")
    command = _parse_command(argv)
    try:
        code: int = command.run() or 0
        sys.stdout.flush()
        return code
    except KeyboardInterrupt as exc:
        print_error(*(exc.args or ("stopped",)))
        return EXIT_INTERRUPTED
    except OSError as exc:
        return _handle_output_error(exc)
    except BudgetSpentError as exc:
        print_error(exc)
        return EXIT_BUDGET_SPENT
    except KgwbError as exc:
        print_error(exc)
        return EXIT_FAILED
    except Exception as exc:
        # What a run raises is explained where the run is. A system has functions besides its agents,
        # such as ``read_as`` and those of ``gold``.
        failure = _explain_own_failure(exc)
        if failure is None:
            raise
        print_error(failure)
        return EXIT_FAILED


def _explain_own_failure(error: Exception) -> KgwbError | None:
    """Return what to print of an error that the person's own code raised; None for another error."""
    from kgwb.run.diagnostics import explain_failure, last_own_frame

    if last_own_frame(error) is None:
        return None
    return explain_failure(error)


def _parse_command(argv: Sequence[str] | None) -> Any:
    """Return an instance of the class in COMMANDS that the arguments name, with its arguments as fields.

    If they are wrong, print the usage and a message and exit with code 2. Only ``lab`` takes
    arguments that it does not know; they are passed on to JupyterLab as ``rest``.
    """
    parser = _make_parser()
    arguments, rest = parser.parse_known_args(argv)
    values = vars(arguments)
    command_class = COMMANDS[values.pop("command")]
    if command_class is JupyterLabCommand:
        values["rest"] = rest
    elif rest:
        message = f"unrecognized arguments: {' '.join(rest)}"
        if command_class is AskCommand:
            message += "; put a question of several words in quotes"
        parser.error(message)
    return command_class(**values)


def _handle_output_error(error: OSError) -> int:
    """Return the exit code if the output cannot be written; raise any other error again.

    A reader that has closed the pipe, such as ``head``, has read what it wanted: the code is 0. On
    a full disk the error is printed, and the code is EXIT_FAILED.
    """
    if error.errno not in (errno.EPIPE, *disk.DISK_FULL_ERRNOS):
        raise error
    # What is still buffered must not fail again when Python exits.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if error.errno == errno.EPIPE:
        return 0
    print_error(f"the output cannot be written: {error.strerror}")
    return EXIT_FAILED


class _MaskingParser(argparse.ArgumentParser):
    """A parser whose errors repeat the arguments without their passwords and keys."""

    def error(self, message: str) -> NoReturn:
        """Print the usage and the message with secrets masked, and exit with 2."""
        masked = " ".join(map(mask_url, message.split(" ")))
        super().error(remove_controls(masked))


def _make_parser() -> argparse.ArgumentParser:
    """Return the parser of --version and of all COMMANDS, of which one must be given.

    A command's arguments are the fields of its class, its help is the docstring, and its epilog is
    EPILOG, if there is one. JupyterLab's command has no arguments of its own. Secrets in arguments
    are masked in the messages of errors.
    """
    parser = _MaskingParser(
        "kgwb",
        description="Question answering over RDF knowledge graphs by LLM agents, step by step.",
    )
    parser.add_argument("--version", action="version", version=f"kgwb {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, command_class in COMMANDS.items():
        help_text = command_class.__doc__
        command = commands.add_parser(name, help=help_text, description=help_text)
        command.epilog = getattr(command_class, "EPILOG", None)
        if command_class is JupyterLabCommand:
            command.epilog = "for example: kgwb lab --no-browser --port 8899"
        else:
            add_arguments(command, command_class)
    return parser


# --- ask


@dataclass(kw_only=True)
class AskCommand(QuestionArguments):
    """answer one question, and with --steps show how the answer was found"""

    chats: Path | None = option(
        "FILE", "keep the conversation in this file, and go on with the last one in it"
    )
    chat: str = option(
        "ID or new", "with --chats: go on with this conversation, or begin a new one", ""
    )
    history: Path | None = option("FILE", HISTORY_HELP)
    json: bool = option("", "print answer, steps and totals as JSON", False)
    reading: int | None = option("NUMBER", "read the question as this other reading of the answer")
    save: Path | None = option("FILE", "write the run to this file, call by call")
    steps: bool = option("", "also print the steps, as a tree", False)
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
        from kgwb.run.conversations import ConversationFile

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
        missing = find_missing_settings(names, parse_assignments(self.set, "NAME=VALUE"))
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
    from kgwb.run.run import check_question
    from kgwb.run.run_file import RunFile

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
    _print_answer(run)
    if steps or run.answer is None:
        print(run.summary(color=use_color()))
    print(f"{run.status}: {run.totals}")


def _print_answer(run: Run) -> None:
    """Print the answer of a run in a line, its state in the next, and then each triple that supports it.

    The state says whether it was proved or is in doubt. Nothing is printed without an answer.
    """
    if run.answer is None:
        return
    from kgwb.show.run_state import state_of_output

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


def _run_to_data(run: Run) -> dict[str, Any]:
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


# --- doctor, lab, labs, demo


@dataclass(kw_only=True)
class DoctorCommand:
    """check what works on this machine, and say what to do about the rest"""

    kg: str = option(
        "", "graph to try, and to survey (default: the sample films, without a survey)", ""
    )
    model: str = option("", "model to try (default: rules)", "rules")

    def run(self) -> int:
        """Run the checks, and print state, name and detail of each as it is made, and a remedy if it failed.

        The state is "ok", "missing" for what is needed, or "absent" for what is not. A last line
        says whether everything needed is there. With ``kg`` the survey of the graph follows. Returns
        1 if something needed is missing, else 0.
        """
        from kgwb.cli.doctor import run_health_checks, survey_lines

        healthy = True
        for finding in run_health_checks(self.kg or "films", self.model):
            state = "ok"
            if not finding.ok:
                state = "missing" if finding.required else "absent"
            if state == "missing":
                healthy = False
            print(f"{state:<8} {finding.name:<14} {single_line(finding.detail)}", flush=True)
            if not finding.ok and finding.remedy:
                print(f"{'':<24}{single_line(finding.remedy)}")
        print("everything needed is there" if healthy else "something needed is missing, see above")
        if self.kg:
            print("", *survey_lines(self.kg), sep="\n")
        return 0 if healthy else 1


@dataclass(kw_only=True)
class JupyterLabCommand:
    """open JupyterLab on notebooks/00_start.ipynb; all other arguments are JupyterLab's"""

    rest: list[str] = field(default_factory=list)

    def run(self) -> None:
        """Replace this process by JupyterLab, which opens START_NOTEBOOK; it does not return.

        Options of kgwb, such as the root folder, are added unless ``rest`` has them; the superuser
        also gets --allow-root. In a JupyterHub its single-user server is started in place of
        JupyterLab. Raises InputError if there are no notebooks.
        """
        defaults = {
            "--ServerApp.root_dir": str(_find_notebooks_root()),
            "--LabApp.default_url": f"/lab/tree/{START_NOTEBOOK}",
            # Otherwise JupyterLab asks, in front of the first notebook, whether to fetch news
            "--LabApp.app_settings_dir": str(Path(__file__).parent / "lab_settings"),
            "--LabApp.extension_manager": "readonly",
            # A notebook that is opened again shows what its widgets showed
            "--ServerApp.contents_manager_class": "kgwb.ui.saved.Notebooks",
        }
        given = {argument.partition("=")[0] for argument in self.rest}
        options = [f"{name}={value}" for name, value in defaults.items() if name not in given]
        is_root = hasattr(os, "geteuid") and os.geteuid() == 0
        if is_root and "--allow-root" not in given:
            options.append("--allow-root")
        server = "jupyterlab"
        if "JUPYTERHUB_SERVICE_URL" in os.environ:
            # A JupyterHub passes the address to its server, which must ask the hub who may enter
            server = "jupyterhub.singleuser"
        sys.stdout.flush()
        _run_instead([sys.executable, "-m", server, *options, *self.rest])


def _run_instead(command: list[str]) -> NoReturn:
    """Replace this process by a command, and never return.

    Windows would start the command beside this process, and the shell would not wait for it. So
    there it is started as a child: this process waits for its end, ignores interrupts, which the
    command gets too, and exits with its code.
    """
    if hasattr(os, "fork"):
        os.execv(command[0], command)
    process = subprocess.Popen(command)
    while process.poll() is None:
        with suppress(KeyboardInterrupt):
            process.wait()
    sys.exit(process.returncode)


def _find_notebooks_root() -> Path:
    """Return the folder that holds ``notebooks``, and copy the notebooks there if kgwb is installed.

    In a checkout this is the checkout, and nothing is copied. Otherwise it is the current folder,
    to which the package's notebooks and their files (NOTEBOOK_FILES) are copied; files that are
    there stay as they are. Raises InputError if the package has no notebooks, or they cannot be
    copied.
    """
    shipped = disk.shipped_folder("notebooks")
    if shipped.parent.name != "_data":
        return shipped.parent
    if not shipped.is_dir():
        raise InputError(
            "the notebooks cannot be opened: this installation of kgwb has none",
            hint="install kgwb again, or run kgwb lab in a checkout of its repository",
        )
    with disk.os_errors_as_input_error(
        f"cannot copy the notebooks to {Path.cwd()}",
        "go to a folder of your own with some space left",
    ):
        for file in shipped.rglob("*"):
            copy = Path("notebooks") / file.relative_to(shipped)
            if file.suffix in NOTEBOOK_FILES and not copy.exists():
                disk.write_atomically(copy, [file.read_text(encoding="utf-8")])
    return Path.cwd()


@dataclass(kw_only=True)
class DemoCommand:
    """play a dialogue about Harry Potter, agent by agent, offline"""

    def run(self) -> None:
        """Ask the questions of the dialogue "films-hp" of the sample graph films, and print each step.

        Chatty-KG answers them with the model ``rules``, so nothing is sent over a network. A step
        is printed as it ends, and the answer with its support after each question.
        """
        from kgwb.bench import load_questions
        from kgwb.kg import open_kg, sample_path
        from kgwb.workbench import Workbench

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
                _print_answer(run)
        print("\nTo see, edit and re-run every step: kgwb lab")
        warn_about_rules(workbench)


def _print_step(run: Run, event: str, step: Step) -> None:
    """Print a step that has ended in one line: agent, outcome, and cost in brackets.

    It is a listener of the run. Nothing is printed for any other event, and for steps that
    supervise others.
    """
    from kgwb.run.steps import step_costs

    is_supervisor = any(other.parent == step.key for other in run.steps)
    if event != "end" or is_supervisor:
        return
    costs = ", ".join(step_costs(step, run.calls))
    aside = color(f"({costs})", "aside")
    print(f"   {step.agent:<20} {step.outcome}  {aside}", flush=True)


COMMANDS: dict[str, type[Any]] = {
    "ask": AskCommand,
    "bench": BenchCommand,
    "compare-profiles": CompareProfilesCommand,
    "experiment": ExperimentCommand,
    "retry": RetryCommand,
    "keep": KeepCommand,
    "score": ScoreCommand,
    "rate": RateCommand,
    "errors": ErrorsCommand,
    "pack": PackCommand,
    "report": ReportCommand,
    "serve": ServeCommand,
    "chats": ChatsCommand,
    "export": ExportCommand,
    "doctor": DoctorCommand,
    "lab": JupyterLabCommand,
    "labs": LabsCommand,
    "demo": DemoCommand,
    "new": NewCommand,
}
