"""The command line: ask, bench, report, serve, doctor, lab, demo."""

from __future__ import annotations

import argparse
import errno
import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import kgwb
from kgwb import disk
from kgwb.arguments import (
    HISTORY_HELP,
    add_setup,
    kg_of,
    numbers,
    pairs,
    positive,
    recall,
    settings_of,
    workbench_of,
)
from kgwb.errors import CONTROLS, InputError, KgwbError, RunFileError, harmless
from kgwb.lab import START, lab_command, notebooks_home
from kgwb.masking import shown

if TYPE_CHECKING:
    from kgwb.bench.cost import Budget, Prices
    from kgwb.bench.questions import BenchQuestion
    from kgwb.bench.results import Results
    from kgwb.bench.runner import Setup
    from kgwb.run import Run
    from kgwb.run.record import Step
    from kgwb.workbench import Workbench

FAILED, SPENT, INTERRUPTED = 2, 3, 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command.

    Returns the exit code: 0 if all went well, 2 after an error, 3 if a budget is used up, 130 after an
    interrupt.
    """
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
    except OSError as exc:
        if exc.errno not in (errno.EPIPE, *disk.FULL):
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if exc.errno == errno.EPIPE:  # whoever read our output has read enough
            return 0
        print(f"kgwb: the output cannot be written: {exc.strerror}", file=sys.stderr)
        return FAILED
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


class _Parser(argparse.ArgumentParser):
    """Repeats what was typed without its passwords and keys."""

    def error(self, message: str) -> NoReturn:
        super().error(harmless(" ".join(map(shown, message.split(" ")))))


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        "kgwb", description="Question answering over RDF knowledge graphs by LLM agents, step by step."
    )
    parser.add_argument("--version", action="version", version=f"kgwb {kgwb.__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(name: str, run: Callable[[argparse.Namespace], int], purpose: str) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=purpose, description=purpose)
        added.set_defaults(run=run)
        return added

    _ask_arguments(command("ask", _ask, "answer one question, and with --steps show the way to the answer"))
    _bench_arguments(command("bench", _bench, "ask every question of a file and score the answers"))
    _report_arguments(command("report", _report, "make one HTML file of one or several results folders"))
    _serve_arguments(command("serve", _serve, "answer with SPARQL over HTTP, as TEXT2SPARQL asks"))
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
    ask.add_argument("--steps", action="store_true", help="print the way to the answer too, as a tree")
    ask.add_argument("question", metavar="QUESTION")


def _bench_arguments(bench: argparse.ArgumentParser) -> None:
    add_setup(bench)
    bench.add_argument(
        "--questions", type=Path, required=True, metavar="FILE", help="QALD, LC-QuAD, MetaQA, JSON lines, ..."
    )
    bench.add_argument("--language", metavar="TAG", help="of the questions, where they are in several")
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
    bench.add_argument(
        "--budget",
        action="append",
        default=[],
        metavar="NAME=NUMBER",
        help="stop at this much money, tokens, model_calls or seconds of work, over all that DIR holds",
    )
    bench.add_argument("--prices", type=Path, metavar="FILE", help="TOML table of prices (default: kgwb's)")
    bench.add_argument(
        "--priced-as", action="append", default=[], metavar="MODEL", help="the same tokens at its prices too"
    )
    bench.add_argument(
        "--ladder", action="store_true", help="name the agent that lost each answer; asks up to 5 times more"
    )
    bench.add_argument(
        "--retention", action="store_true", help="ask dialogues' questions alone too, in DIR/standalone"
    )


def _report_arguments(report: argparse.ArgumentParser) -> None:
    report.add_argument("folders", nargs="+", type=Path, metavar="DIR", help="what kgwb bench --out wrote")
    report.add_argument(
        "--out", type=Path, metavar="FILE", help="HTML file to write (default: report.html in the first DIR)"
    )
    report.add_argument(
        "--published", metavar="SET", help="set the papers' figures on this question set beside; it is yours"
    )
    report.add_argument("--prices", type=Path, metavar="FILE", help="TOML table of prices (default: kgwb's)")


def _serve_arguments(serve: argparse.ArgumentParser) -> None:
    add_setup(serve, kg_required=False)
    serve.add_argument(
        "--dataset",
        action="append",
        default=[],
        metavar="IRI=GRAPH",
        help="answer questions on this dataset from this graph; --kg answers for all that are not named",
    )
    serve.add_argument("--host", default="127.0.0.1", help="address to listen on (default: this machine)")
    serve.add_argument("--port", type=int, default=8000, help="default: 8000; 0 takes a free one")
    serve.add_argument(
        "--workers", type=positive, default=4, metavar="N", help="questions answered at once (default: 4)"
    )


def _warn_of_rules(workbench: Workbench) -> None:
    from kgwb.show.text import BASELINE

    if any(model.name == "rules" for model in workbench.models.values()):
        print(f"kgwb: {BASELINE}", file=sys.stderr)


# --- ask


def _ask(args: argparse.Namespace) -> int:
    workbench = workbench_of(args)
    if args.history:
        recall(workbench, args.history)
    run = _begun(workbench, args)
    try:
        try:
            run.go()
        except RunFileError:  # a full disk: the answer comes without the file, and why after it
            run = run.fork()
            run.go()
        finally:
            if not args.json:
                _print_run(run, args.steps)
        if args.json:
            _print_json(run)
        sys.stdout.flush()
        _warn_of_rules(workbench)
    finally:
        saved = not args.save or _save(run, args.save)
    return 0 if saved else FAILED


def _begun(workbench: Workbench, args: argparse.Namespace) -> Run:
    """The run, kept in the file where the disk is not full."""
    try:
        return workbench.begin(args.question, path=args.save)
    except RunFileError as exc:
        if not (isinstance(exc.__cause__, OSError) and exc.__cause__.errno in disk.FULL):
            raise
        return workbench.begin(args.question)


def _save(run: Run, path: Path) -> bool:
    """Whether the run could be saved; if not, why has been printed."""
    try:
        run.save(path)
    except RunFileError as exc:
        print(f"kgwb: {exc}", file=sys.stderr)
        return False
    return True


def _print_json(run: Run) -> None:
    told = json.dumps(_run_data(run), ensure_ascii=False, indent=2)
    print(CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", told))


def _print_run(run: Run, steps: bool) -> None:
    """The answer with its triples first; then, if it is wanted or there is none, the way to it."""
    from kgwb.show.html import clean
    from kgwb.show.terms import names_of
    from kgwb.show.text import totals_text, tree

    print(clean(run.question))
    _print_answer(run)
    if steps or run.answer is None:
        print(tree(run.steps, run.calls, names=names_of(run), color=_colors()))
    print(f"{run.status}: {totals_text(run.totals)}")


def _print_answer(run: Run) -> None:
    from kgwb.show.html import clean
    from kgwb.show.tell import lines
    from kgwb.show.terms import names_of
    from kgwb.show.text import paint

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
    from kgwb.bench import load_questions

    questions = load_questions(args.questions, args.language)[: args.limit]
    if args.retention and all(question.dialogue is None for question in questions):
        raise InputError(f"no question of {args.questions} is in a dialogue", hint="leave --retention out")
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
    [(name, values)] = pairs([args.each], "NAME=V1,V2,...").items()
    given = [f"{name}={value}" for value in values.split(",")]
    varied = [
        argparse.Namespace(**{**vars(args), "set": [*args.set, one], "out": args.out / one}) for one in given
    ]
    settings = [settings_of(one) for one in varied]
    for place, one in enumerate(given):
        if settings[place] in settings[:place]:
            raise InputError(f"--each has {one} twice", hint="give each value once")
    return varied


def _bench_once(args: argparse.Namespace, questions: list[BenchQuestion]) -> int:
    from kgwb.bench.cost import Budget, load_prices
    from kgwb.bench.gold import with_gold, with_queries
    from kgwb.bench.questions import standalone_forms
    from kgwb.bench.runner import Setup
    from kgwb.systems import oracle

    prices = load_prices(args.prices)
    budget = Budget(numbers(args.budget), prices)
    bench = workbench_of(args)
    if args.ladder and oracle(args.system) is None:
        why = f"{args.system} does not say what gold means to its agents"
        raise InputError(why, hint=f"leave --ladder out, or write kgwb/systems/{args.system}/gold.py")
    if "money" in budget.limits:
        _ = [prices.of(model.name) for model in bench.models.values()]
    questions = with_gold(with_queries(questions, bench.kg), bench.kg)
    _tell_of_gold(questions)
    setup, measure = Setup.of(bench), Measure(args, prices, budget)
    code, rows = measure(setup, args.out, questions)
    if args.retention and code == 0:
        print("\nthe same questions of dialogues, asked alone:")
        asked = standalone_forms(one for one in questions if one.dialogue is not None)
        code, alone = measure(setup, args.out / "standalone", asked)
        if code == 0:
            _print_retention(rows, alone)
    if code == 0:
        _warn_of_rules(bench)
    return code


def _tell_of_gold(questions: list[BenchQuestion]) -> None:
    from kgwb.show.html import clean

    if missing := [question for question in questions if question.answers is None]:
        why = f"{missing[0].id}: {clean(missing[0].gold_error or '')}"
        print(f"kgwb: {len(missing)} of {len(questions)} questions have no gold: {why}", file=sys.stderr)


class Measure:
    """One benchmark of ``kgwb bench``: asks, and prints what came of it."""

    def __init__(self, args: argparse.Namespace, prices: Prices, budget: Budget) -> None:
        self.args, self.prices, self.budget = args, prices, budget

    def __call__(
        self, setup: Setup, folder: Path, questions: list[BenchQuestion]
    ) -> tuple[int, list[dict[str, Any]]]:
        """The exit code, and the lines of these questions."""
        from kgwb.bench.results import Results, locked

        with locked(folder):
            results = Results(folder, setup.config(questions))
            if self.args.retry_errors:
                results.retry_errors()
            try:
                rows, spent = self._asked(setup, results, questions)
                self._print(rows)
                if self.args.ladder and not spent:
                    self._climb(setup, results, questions)
            except KeyboardInterrupt:
                done = len(results.of(questions))
                print(f"kgwb: stopped with {done} of {len(questions)} questions asked", file=sys.stderr)
                print("  What to do: give the same command again, and it goes on from there", file=sys.stderr)
                return INTERRUPTED, []
        if spent:
            asked = f"{len(rows)} of {len(questions)} questions asked"
            print(f"kgwb: stopped with {asked}: the budget is used up ({spent})", file=sys.stderr)
            print("  What to do: give the same command with a larger budget to go on", file=sys.stderr)
        return SPENT if spent else 0, rows

    def _asked(
        self, setup: Setup, results: Results, questions: list[BenchQuestion]
    ) -> tuple[list[dict[str, Any]], str]:
        from tqdm import tqdm

        from kgwb.bench.runner import Bench

        args, done = self.args, len(results.of(questions))
        with tqdm(total=len(questions), initial=done, unit="question", mininterval=0.5) as bar:
            runner = Bench(
                setup,
                results,
                workers=args.workers,
                save_runs=args.save_runs or ("lost" if args.ladder else False),
                budget=self.budget,
                finished=lambda row: bar.update(),
            )
            return runner.run(questions), runner.stopped

    def _print(self, rows: list[dict[str, Any]]) -> None:
        from kgwb.bench.cost import cost_table, costs
        from kgwb.bench.ladder import recall
        from kgwb.bench.metrics import groups, table
        from kgwb.show.html import clean

        print(table(groups(rows)))
        try:
            told = costs(rows, self.prices, self.args.priced_as)
        except InputError as exc:
            print(f"kgwb: {exc}", file=sys.stderr)
            told = costs(rows)
        print(f"\n{cost_table(told)}")
        for what in ("vertices", "predicates"):
            if (share := recall(rows, what)) is not None:
                offered = recall(rows, what, "candidates")
                print(f"gold {what} linked: {share:.3f}, among the candidates: {offered:.3f}")
        if errors := Counter(row["error"] for row in rows if row["error"] is not None):
            [(error, times)] = errors.most_common(1)
            print(f"kgwb: the most frequent error, {times} times: {clean(error)}", file=sys.stderr)
            hint = "mend its cause and give the same command with --retry-errors"
            print(f"  What to do: {hint}", file=sys.stderr)

    def _climb(self, setup: Setup, results: Results, questions: list[BenchQuestion]) -> None:
        from tqdm import tqdm

        from kgwb.bench.ladder import loss_table, losses, where_lost
        from kgwb.bench.runner import lost

        missed = sum(map(lost, results.of(questions)))
        with tqdm(total=missed, unit="lost answer", mininterval=0.5) as bar:
            lines = where_lost(
                setup, results, questions, workers=self.args.workers, finished=lambda line: bar.update()
            )
        agents = [spec.name for spec in setup.system.agents]
        print(f"\n{loss_table(losses(lines, agents))}" if lines else "\nno answer was lost")


def _print_retention(dialogues: list[dict[str, Any]], alone: list[dict[str, Any]]) -> None:
    from kgwb.bench import retention

    known = {row["id"] for row in alone if row["gold"] is not None}
    share = retention(*([row for row in rows if row["id"] in known] for rows in (dialogues, alone)))
    said = "F1 alone is 0" if share is None else f"{share:.2f} % of F1 (as the paper computes it)"
    print(f"\nkept in dialogues, over {len(known)} questions: {said}")


# --- report, serve


def _report(args: argparse.Namespace) -> int:
    from kgwb.bench.cost import load_prices
    from kgwb.bench.report import Report

    report = Report(*args.folders, published=args.published, prices=load_prices(args.prices))
    print(report.save(args.out or args.folders[0] / "report.html"))
    return 0


def _serve(args: argparse.Namespace) -> int:
    from kgwb.bench.runner import Setup
    from kgwb.bench.serve import ANY, Service
    from kgwb.kg import is_endpoint
    from kgwb.show.html import clean

    named = pairs(args.dataset, "IRI=GRAPH")
    if len(named) < len(args.dataset):
        raise InputError("a dataset is named twice", hint="give each --dataset IRI=GRAPH once")
    graphs = named | ({ANY: args.kg} if args.kg else {})
    if not graphs:
        raise InputError("there is no graph to answer from", hint="give --kg GRAPH, or --dataset IRI=GRAPH")
    args.kg = max(graphs.values(), key=is_endpoint)
    bench = workbench_of(args)
    first = Setup.of(bench)
    opened = {args.kg: first.kg} | {one: kg_of(args, one) for one in {*graphs.values()} - {args.kg}}
    setups = {iri: replace(first, kg=opened[graph]) for iri, graph in graphs.items()}
    with Service((args.host, args.port), setups, workers=args.workers) as service:
        _warn_of_rules(bench)
        for iri, setup in setups.items():
            answers = f"answers for {iri or 'every other dataset'} from {setup.kg.source}"
            print(f"{service.url} {clean(answers)}", flush=True)
        print("Ctrl+C stops it.", flush=True)
        service.serve_forever()
    return 0


# --- doctor, lab, demo


def _doctor(args: argparse.Namespace) -> int:
    from kgwb.doctor import examine
    from kgwb.show.html import clean

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
    from kgwb.bench import load_questions
    from kgwb.kg import open_kg, sample_path
    from kgwb.show.text import paint
    from kgwb.workbench import Workbench

    asked = load_questions(sample_path("films").with_suffix(".questions.jsonl"))
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
    from kgwb.show.tell import outcome
    from kgwb.show.text import paint, spent

    if event == "end" and not any(other.parent == step.key for other in run.steps):
        cost = paint(f"({', '.join(spent(step, run.calls))})", "aside", _colors())
        print(f"   {step.agent:<20} {outcome(step)}  {cost}", flush=True)
