"""The command line: ask, bench, doctor, lab, demo."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import kgwb
from kgwb.errors import InputError, KgwbError, SettingError

if TYPE_CHECKING:
    from kgwb.record import Step
    from kgwb.run import Run
    from kgwb.settings import Settings
    from kgwb.workbench import Workbench

FAILED, INTERRUPTED = 2, 130
START = "notebooks/00_start.ipynb"
HISTORY = """a JSON list of the dialogue so far, oldest first: a text is an earlier question, asked first;
an object {"question": ..., "answers": [...]} is a turn as it went, with "standalone" (its self-contained form) and
"entities" (the names in it) where known"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command. Returns the exit code: 0 if all went well, 2 after an error, 130 after an interrupt."""
    _speak_anyhow()
    parser = _parser()
    args, rest = parser.parse_known_args(argv)
    if rest and args.command != "lab":
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    args.rest = rest
    try:
        return int(args.run(args))
    except KeyboardInterrupt:
        print("kgwb: stopped", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # whoever read our output has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KgwbError as exc:
        print(f"kgwb: {exc}", file=sys.stderr)
        return FAILED


def _speak_anyhow() -> None:
    """Where the terminal's encoding lacks a character, "?" stands for it."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


def _colors() -> bool:
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ


# --- arguments ----------------------------------------------------------------------------------------------------


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "kgwb", description="Question answering over RDF knowledge graphs by LLM agents, step by step."
    )
    parser.add_argument("--version", action="version", version=f"kgwb {kgwb.__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(name: str, run: Callable[[argparse.Namespace], int], purpose: str) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=purpose, description=purpose)
        added.set_defaults(run=run)
        return added

    _ask_arguments(command("ask", _ask, "answer one question and show the way to the answer"))
    _bench_arguments(command("bench", _bench, "ask every question of a file and score the answers"))
    doctor = command("doctor", _doctor, "say what works here, and what to do about the rest")
    doctor.add_argument("--kg", default="films", help="graph to try (default: the sample films)")
    doctor.add_argument("--model", default="rules", help="model to try (default: rules)")
    lab = command("lab", _lab, f"open JupyterLab on {START}; all other arguments are JupyterLab's")
    lab.epilog = "for example: kgwb lab --no-browser --port 8899"
    command("demo", _demo, "play a dialogue about Harry Potter, agent by agent, offline")
    return parser


def _ask_arguments(ask: argparse.ArgumentParser) -> None:
    _setup_arguments(ask)
    ask.add_argument("--history", type=Path, metavar="FILE", help=HISTORY)
    ask.add_argument("--json", action="store_true", help="print answer, steps and totals as JSON")
    ask.add_argument("--save", type=Path, metavar="FILE", help="write the run to this file, call by call")
    ask.add_argument("question", metavar="QUESTION")


def _bench_arguments(bench: argparse.ArgumentParser) -> None:
    _setup_arguments(bench)
    bench.add_argument(
        "--questions", type=Path, required=True, metavar="FILE", help="JSON lines: id, question, answers"
    )
    bench.add_argument(
        "--out", type=Path, required=True, metavar="DIR", help="folder of the results; resumes"
    )
    bench.add_argument("--limit", type=_positive, metavar="N", help="only the first N questions")
    bench.add_argument(
        "--workers", type=_positive, default=1, metavar="N", help="questions asked side by side"
    )
    bench.add_argument("--save-runs", action="store_true", help="keep every run in DIR/runs")
    bench.add_argument(
        "--retry-errors", action="store_true", help="ask questions that ended in an error again"
    )


def _setup_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--kg",
        required=True,
        metavar="GRAPH",
        help="RDF file or folder, endpoint URL, or the name of a sample",
    )
    parser.add_argument(
        "--model",
        default="rules",
        metavar="SPEC",
        help="rules (default), openai:MODEL, ollama:MODEL, replay:FILE",
    )
    parser.add_argument(
        "--agent-model", action="append", default=[], metavar="AGENT=SPEC", help="for one agent"
    )
    parser.add_argument("--system", default="chatty_kg")
    parser.add_argument("--profile", default="fast", help="fast (default) or paper")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="change a setting")
    parser.add_argument(
        "--prompts", type=Path, metavar="DIR", help="folder whose prompts go before kgwb's own"
    )


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def _pairs(given: Sequence[str], form: str) -> dict[str, str]:
    """NAME=VALUE arguments by name."""
    split = [text.partition("=") for text in given]
    wrong = [name for name, sign, _ in split if not sign]
    if wrong:
        raise InputError(f"{wrong[0]!r} is not {form}", hint=f"write it as {form}")
    return {name: value for name, _, value in split}


def _settings(args: argparse.Namespace) -> Settings:
    """The profile with the settings given; values are read by the type of their setting."""
    from typing import get_type_hints

    from kgwb.flow import from_data
    from kgwb.settings import Settings, profile

    types = get_type_hints(Settings)
    changes: dict[str, Any] = {}
    for name, value in _pairs(args.set, "NAME=VALUE").items():
        try:
            changes[name] = from_data(value, types[name]) if name in types else value
        except ValueError as exc:
            raise SettingError(f"{name} cannot be {value!r}", hint=f"it is {types[name]}") from exc
    return profile(args.profile).changed(**changes)


def _workbench(args: argparse.Namespace) -> Workbench:
    from kgwb import systems
    from kgwb.kg import open_kg
    from kgwb.workbench import Workbench

    settings = _settings(args)
    agents = [spec.name for spec in systems.system(args.system).agents]
    models = _pairs(args.agent_model, "AGENT=SPEC")
    if unknown := sorted(set(models) - set(agents)):
        raise SettingError(
            f"{args.system} has no agent {unknown[0]!r}", hint=f"its agents are {', '.join(agents)}"
        )
    kg = open_kg(args.kg, query_timeout_s=settings.query_timeout_s, row_limit=settings.row_limit)
    return Workbench(
        kg, args.model, system=args.system, models=models, settings=settings, prompts=args.prompts
    )


def _warn_of_rules(workbench: Workbench) -> None:
    from kgwb.render.words import BASELINE

    if any(model.name == "rules" for model in workbench.models.values()):
        print(f"kgwb: {BASELINE}", file=sys.stderr)


# --- ask ----------------------------------------------------------------------------------------------------------


def _ask(args: argparse.Namespace) -> int:
    workbench = _workbench(args)
    if args.history:
        _recall(workbench, args.history)
    run = workbench.begin(args.question, path=args.save)
    try:
        run.go()
    finally:
        if args.save:
            run.save(args.save)
        if not args.json:
            _print_run(run)
    if args.json:
        print(json.dumps(_run_data(run), ensure_ascii=False, indent=2))
    _warn_of_rules(workbench)
    return 0


def _recall(workbench: Workbench, path: Path) -> None:
    """Hold the dialogue of a history file: ask its questions, remember its turns."""
    from kgwb.flow import Dialogue, Turn, from_data

    form = 'a JSON list of questions, or of {"question": ..., "answers": [...]}'
    try:
        entries = from_data(json.loads(path.read_text(encoding="utf-8")), list[str | Turn])
    except (OSError, ValueError) as exc:
        raise InputError(f"cannot use the history {path}: {exc}", hint=f"write it as {form}") from exc
    for entry in entries:
        if isinstance(entry, str):
            workbench.ask(entry)
        else:
            workbench.remember(Dialogue((*workbench.dialogue.turns, entry)))


def _print_run(run: Run) -> None:
    from kgwb.render.text import tree
    from kgwb.render.words import clean, totals_text

    print(clean(run.question))
    print(tree(run.steps, run.calls, color=_colors()))
    print(f"{run.status}: {totals_text(run.totals)}")
    _print_answer(run)


def _print_answer(run: Run) -> None:
    from kgwb.render.text import paint
    from kgwb.render.words import clean, lines, names_in

    if run.answer is None:
        return
    first, *support = lines(run.answer, names_in(run.steps, run.calls))
    print(paint(f"→ {clean(first)}", "key", _colors()))
    for line in support:
        print(f"    {clean(line)}")


def _run_data(run: Run) -> dict[str, Any]:
    """What ``kgwb ask --json`` prints."""
    from kgwb.bench.runner import term_string

    answer, totals = run.answer, run.totals
    assert answer is not None
    return {
        "answer": {
            "kind": answer.kind,
            "values": [term_string(value.term) for value in answer.values],
            "labels": list(answer.labels),
            "text": answer.text or ", ".join(answer.labels),
            "support": [[str(term) for term in triple] for triple in answer.support],
            "reason": answer.reason,
        },
        "steps": [step.to_data() for step in run.steps],
        "totals": {
            "model_calls": totals.model_calls,
            "tokens": totals.prompt_tokens + totals.completion_tokens,
            "prompt_tokens": totals.prompt_tokens,
            "completion_tokens": totals.completion_tokens,
            "queries": totals.queries,
            "seconds": round(totals.seconds, 6),
        },
    }


# --- bench --------------------------------------------------------------------------------------------------------


def _bench(args: argparse.Namespace) -> int:
    from tqdm import tqdm

    from kgwb.bench.metrics import groups, table
    from kgwb.bench.questions import read_questions
    from kgwb.bench.results import Results
    from kgwb.bench.runner import Bench, Setup

    questions = read_questions(args.questions, args.limit)
    bench = _workbench(args)
    setup = Setup(bench.kg, bench.system, bench.models, bench.settings, bench.prompts, bench.embeddings)
    results = Results(args.out, setup.config())
    if args.retry_errors:
        results.retry_errors()
    done = len(results.of(questions))
    with tqdm(total=len(questions), initial=done, unit="question", mininterval=0.5) as bar:
        runner = Bench(
            setup, results, workers=args.workers, save_runs=args.save_runs, finished=lambda row: bar.update()
        )
        try:
            rows = runner.run(questions)
        except KeyboardInterrupt:
            bar.close()
            done = len(results.of(questions))
            print(f"kgwb: stopped with {done} of {len(questions)} questions asked", file=sys.stderr)
            print("  What to do: give the same command again, and it goes on from there", file=sys.stderr)
            return INTERRUPTED
    print(table(groups(rows)))
    _warn_of_rules(bench)
    return 0


# --- doctor, lab, demo --------------------------------------------------------------------------------------------


def _doctor(args: argparse.Namespace) -> int:
    from kgwb.doctor import examine
    from kgwb.render.words import clean

    healthy = True
    for finding in examine(args.kg, args.model):
        healthy = healthy and (finding.works or not finding.required)
        state = "ok" if finding.works else "missing" if finding.required else "absent"
        print(f"{state:<8} {finding.name:<14} {clean(finding.detail)}", flush=True)
        if not finding.works and finding.remedy:
            print(f"{'':<24}{clean(finding.remedy)}")
    print("everything needed is there" if healthy else "something needed is missing, see above")
    return 0 if healthy else 1


def _lab(args: argparse.Namespace) -> int:
    command = lab_command(notebooks_home(), args.rest)
    sys.stdout.flush()
    os.execv(command[0], command)


def lab_command(home: Path, rest: Sequence[str]) -> list[str]:
    """The command that starts JupyterLab on the first notebook; ``rest`` goes before kgwb's defaults."""
    defaults = {"--ServerApp.root_dir": str(home), "--LabApp.default_url": f"/lab/tree/{START}"}
    given = {argument.partition("=")[0] for argument in rest}
    chosen = [f"{name}={value}" for name, value in defaults.items() if name not in given]
    root = ["--allow-root"] if os.geteuid() == 0 and "--allow-root" not in given else []
    return [sys.executable, "-m", "jupyterlab", *chosen, *root, *rest]


def notebooks_home() -> Path:
    """The folder that holds ``notebooks``: the checkout, else the current one, where copies are put."""
    package = Path(kgwb.__file__).parent
    if (package.parent / START).is_file() and (package.parent / "pyproject.toml").is_file():
        return package.parent
    shipped = package / "_data" / "notebooks"
    if not shipped.is_dir():
        raise InputError("this kgwb came without notebooks", hint="install it again, or use a checkout")
    Path("notebooks").mkdir(exist_ok=True)
    for notebook in shipped.glob("*.ipynb"):
        copy = Path("notebooks") / notebook.name
        if not copy.exists():
            copy.write_bytes(notebook.read_bytes())
    return Path.cwd()


def _demo(args: argparse.Namespace) -> int:
    from kgwb.bench.questions import read_questions
    from kgwb.kg import open_kg, sample_path
    from kgwb.render.text import paint
    from kgwb.workbench import Workbench

    asked = read_questions(sample_path("films").with_suffix(".questions.jsonl"))
    turns = sorted((one for one in asked if one.dialogue == "films-hp"), key=lambda one: one.turn)
    print(
        "Chatty-KG, agent by agent, on the sample graph films; the model is rules, so nothing leaves this machine."
    )
    workbench = Workbench(open_kg("films"))
    for number, turn in enumerate(turns, 1):
        print(f"\n{paint(f'{number}. {turn.question}', 'key', _colors())}")
        run = workbench.begin(turn.question)
        run.listeners.append(lambda event, step, run=run: _print_agent(event, step, run))
        run.go()
        _print_answer(run)
    print("\nTo see, edit and re-run every step: kgwb lab")
    _warn_of_rules(workbench)
    return 0


def _print_agent(event: str, step: Step, run: Run) -> None:
    """A line for an agent that has finished; those that only supervise others get none."""
    from kgwb.render.text import outcome, paint
    from kgwb.render.words import made

    if event == "end" and not any(other.parent == step.key for other in run.steps):
        cost = paint(f"({', '.join(made(step, run.calls))})", "aside", _colors())
        print(f"   {step.agent:<20} {outcome(step)}  {cost}", flush=True)
