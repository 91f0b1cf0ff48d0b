"""The command line: ask, bench, retry, keep, report, serve, doctor, lab, and the others of COMMANDS."""

from __future__ import annotations

import argparse
import atexit
import errno
import gc
import os
import pkgutil
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from kgwb import disk
from kgwb.cli.arguments import (
    EXIT_BUDGET_SPENT,
    EXIT_FAILED,
    EXIT_INTERRUPTED,
    BudgetSpentError,
    add_arguments,
    print_error,
)
from kgwb.disk import __version__
from kgwb.errors import KgwbError
from kgwb.text import mask_url, remove_controls

COMMANDS: dict[str, dict[str, str]] = disk.read_table("cli/commands.toml")


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
    # Looking for garbage takes a tenth of a short command's time. At the exit, looking for it among all
    # objects takes as long as half of the imports, and the memory is returned in any case.
    gc.set_threshold(5_000)
    atexit.register(gc.freeze)
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
        from kgwb.run.diagnostics import explain_failure, last_own_frame

        if last_own_frame(exc) is None:
            raise
        print_error(explain_failure(exc))
        return EXIT_FAILED


def _parse_command(argv: Sequence[str] | None) -> Any:
    """Return an instance of the class of the command that the arguments name, with its arguments as fields.

    If they are wrong, print the usage and a message and exit with code 2. Only ``lab`` takes
    arguments that it does not know; they are passed on to JupyterLab as ``rest``.
    """
    words = sys.argv[1:] if argv is None else argv
    parser = _make_parser(next((word for word in words if not word.startswith("-")), ""))
    arguments, rest = parser.parse_known_args(words)
    values = vars(arguments)
    name = values.pop("command")
    if name == "lab":
        values["rest"] = rest
    elif rest:
        message = f"unrecognized arguments: {' '.join(rest)}"
        if name == "ask":
            message += "; put a question of several words in quotes"
        parser.error(message)
    return _load_class(name)(**values)


def _load_class(name: str) -> type[Any]:
    """Return the class of a command, whose module is imported now."""
    command_class: type[Any] = pkgutil.resolve_name(COMMANDS[name]["class"])
    return command_class


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


def _make_parser(*names: str) -> argparse.ArgumentParser:
    """Return the parser of --version and of all COMMANDS, of which those with these names have their arguments.

    A command's arguments are the fields of its class, and its epilog is EPILOG, if there is one.
    JupyterLab's command has no arguments of its own. Secrets in arguments are masked in the messages
    of errors.
    """
    parser = _MaskingParser(
        "kgwb",
        description="Question answering over RDF knowledge graphs by LLM agents, step by step.",
    )
    parser.add_argument("--version", action="version", version=f"kgwb {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, entry in COMMANDS.items():
        command = commands.add_parser(name, help=entry["help"], description=entry["help"])
        if name in names:
            command_class = _load_class(name)
            command.epilog = getattr(command_class, "EPILOG", None)
            if name != "lab":
                add_arguments(command, command_class)
    return parser
