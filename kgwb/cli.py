"""The command line: ask, bench, doctor, lab, demo."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import kgwb
from kgwb.arguments import HISTORY_HELP, add_setup, positive, recall, workbench_of
from kgwb.errors import KgwbError
from kgwb.lab import START, lab_command, notebooks_home

if TYPE_CHECKING:
    from kgwb.bench.questions import BenchQuestion
    from kgwb.bench.results import Results
    from kgwb.bench.runner import Setup
    from kgwb.record import Step
    from kgwb.run import Run
    from kgwb.workbench import Workbench

FAILED, INTERRUPTED = 2, 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command. Returns the exit code: 0 if all went well, 2 after an error, 130 after an interrupt."""
    _speak_anyhow()
    parser = _parser()
    args, rest = parser.parse_known_args(argv)
    if rest and args.command != "lab":
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    args.rest = rest
    try:
        code = int(args.run(args))
        sys.stdout.flush()
        return code
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
    add_setup(ask)
    ask.add_argument("--history", type=Path, metavar="FILE", help=HISTORY_HELP)
    ask.add_argument("--json", action="store_true", help="print answer, steps and totals as JSON")
    ask.add_argument("--save", type=Path, metavar="FILE", help="write the run to this file, call by call")
    ask.add_argument("question", metavar="QUESTION")


def _bench_arguments(bench: argparse.ArgumentParser) -> None:
    add_setup(bench)
    bench.add_argument(
        "--questions", type=Path, required=True, metavar="FILE", help="JSON lines: id, question, answers"
    )
    bench.add_argument(
        "--out", type=Path, required=True, metavar="DIR", help="folder of the results; resumes"
    )
    bench.add_argument("--limit", type=positive, metavar="N", help="only the first N questions")
    bench.add_argument(
        "--workers", type=positive, default=1, metavar="N", help="questions asked side by side"
    )
    bench.add_argument(
        "--each", metavar="NAME=V1,V2,...", help="measure each value of a setting, in folders of its own"
    )
    bench.add_argument("--save-runs", action="store_true", help="keep every run in DIR/runs")
    bench.add_argument(
        "--retry-errors", action="store_true", help="ask questions that ended in an error again"
    )


def _warn_of_rules(workbench: Workbench) -> None:
    from kgwb.render.words import BASELINE

    if any(model.name == "rules" for model in workbench.models.values()):
        print(f"kgwb: {BASELINE}", file=sys.stderr)


# --- ask


def _ask(args: argparse.Namespace) -> int:
    workbench = workbench_of(args)
    if args.history:
        recall(workbench, args.history)
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


def _print_run(run: Run) -> None:
    from kgwb.render.text import tree
    from kgwb.render.words import clean, names_of, totals_text

    print(clean(run.question))
    print(tree(run.steps, run.calls, names=names_of(run), color=_colors()))
    print(f"{run.status}: {totals_text(run.totals)}")
    _print_answer(run)


def _print_answer(run: Run) -> None:
    from kgwb.render.text import paint
    from kgwb.render.words import clean, lines, names_of

    if run.answer is None:
        return
    first, *support = lines(run.answer, names_of(run))
    print(paint(f"→ {clean(first)}", "key", _colors()))
    for line in support:
        print(f"    {clean(line)}")


def _run_data(run: Run) -> dict[str, Any]:
    """What ``kgwb ask --json`` prints."""
    from kgwb.bench.questions import term_string

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
            "ungrounded": answer.ungrounded,
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


# --- bench


def _bench(args: argparse.Namespace) -> int:
    from kgwb.bench.questions import read_questions

    questions = read_questions(args.questions, args.limit)
    for varied in _varied(args):
        if args.each:
            print(varied.out.name)
        if code := _bench_once(varied, questions):
            return code
    return 0


def _varied(args: argparse.Namespace) -> list[argparse.Namespace]:
    """The arguments as they are, or once for each value of the setting that is varied."""
    if not args.each:
        return [args]
    name, _, values = args.each.partition("=")
    given = [f"{name}={value}" for value in values.split(",")]
    return [
        argparse.Namespace(**{**vars(args), "set": [*args.set, one], "out": args.out / one}) for one in given
    ]


def _bench_once(args: argparse.Namespace, questions: list[BenchQuestion]) -> int:
    from kgwb.bench.results import Results, locked
    from kgwb.bench.runner import Setup

    bench = workbench_of(args)
    setup = Setup(bench.kg, bench.system, bench.models, bench.settings, bench.prompts, bench.embeddings)
    with locked(args.out):
        results = Results(args.out, setup.config())
        if args.retry_errors:
            results.retry_errors()
        code = _measure(args, setup, results, questions)
    if code == 0:
        _warn_of_rules(bench)
    return code


def _measure(args: argparse.Namespace, setup: Setup, results: Results, questions: list[BenchQuestion]) -> int:
    from tqdm import tqdm

    from kgwb.bench.metrics import groups, table
    from kgwb.bench.runner import Bench
    from kgwb.render.words import clean

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
    if errors := Counter(row["error"] for row in rows if row["error"] is not None):
        [(error, times)] = errors.most_common(1)
        print(f"kgwb: the most frequent error, {times} times: {clean(error)}", file=sys.stderr)
        print("  What to do: mend its cause and give the same command with --retry-errors", file=sys.stderr)
    return 0


# --- doctor, lab, demo


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


def _demo(args: argparse.Namespace) -> int:
    from kgwb.bench.questions import read_questions
    from kgwb.kg import open_kg, sample_path
    from kgwb.render.text import paint
    from kgwb.workbench import Workbench

    asked = read_questions(sample_path("films").with_suffix(".questions.jsonl"))
    turns = sorted((one for one in asked if one.dialogue == "films-hp"), key=lambda one: one.turn)
    print("Chatty-KG, agent by agent, on the sample graph films, with rules for a model: nothing goes out.")
    workbench = Workbench(open_kg("films"))
    for number, turn in enumerate(turns, 1):
        print(f"\n{paint(f'{number}. {turn.question}', 'key', _colors())}")
        run = workbench.begin(turn.question)
        run.listeners.append(partial(_print_agent, run))
        run.go()
        _print_answer(run)
    print("\nTo see, edit and re-run every step: kgwb lab")
    _warn_of_rules(workbench)
    return 0


def _print_agent(run: Run, event: str, step: Step) -> None:
    """A line for an agent that has finished; those that only supervise others get none."""
    from kgwb.render.text import outcome, paint
    from kgwb.render.words import made

    if event == "end" and not any(other.parent == step.key for other in run.steps):
        cost = paint(f"({', '.join(made(step, run.calls))})", "aside", _colors())
        print(f"   {step.agent:<20} {outcome(step)}  {cost}", flush=True)
