"""The command line: ask, bench, retry, report, serve, doctor, lab, labs, demo."""

from __future__ import annotations

import argparse
import errno
import json
import os
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import kgwb
from kgwb import disk
from kgwb.arguments import (
    GraphArguments,
    PositiveInt,
    QuestionArguments,
    add_arguments,
    commands_for_each,
    load_history,
    option,
    parse_assignments,
    positional,
)
from kgwb.errors import InputError, KgwbError, RunFileError
from kgwb.masking import mask_url
from kgwb.text import CONTROL_CHARACTERS, remove_controls, single_line

if TYPE_CHECKING:
    from kgwb.bench.cost import Budget, Prices
    from kgwb.bench.figures import ReportTable
    from kgwb.bench.questions import BenchQuestion
    from kgwb.bench.results import BenchRow
    from kgwb.bench.runner import BenchSetup
    from kgwb.run import Run
    from kgwb.run.steps import Step
    from kgwb.workbench import Workbench

EXIT_FAILED, EXIT_BUDGET_SPENT, EXIT_INTERRUPTED = 2, 3, 130
START_NOTEBOOK = "notebooks/00_start.ipynb"
HISTORY_HELP = """JSON list of the dialogue so far, oldest first: a text is an earlier question, asked before;
an object {"question": ..., "answers": [labels]} is a turn as it went, with "standalone" (its self-contained
form) and "entities" (the names in it) where known"""
EACH_HELP = (
    "measure each value of a setting, of prompts (folders) or of model, in folders of their own"
)
BUDGET_HELP = (
    "stop at this much money, tokens, model_calls or seconds of work, over all that DIR holds"
)
PRICES_HELP = "TOML table of prices (default: kgwb's)"
MAX_LISTED_FAILURES = 10
"""Lost answers that are printed; the report has them all."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command.

    Returns the exit code: 0 if all went well, 2 after an error, 3 if a budget is used up, 130 after an
    interrupt.
    """
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(
                errors="replace"
            )  # "?" stands for what the terminal's encoding lacks
    parser = _make_parser()
    arguments, rest = parser.parse_known_args(argv)
    values = vars(arguments)
    form = COMMANDS[values.pop("command")]
    if form is JupyterLabCommand:
        values["rest"] = rest
    elif rest:
        quotes = "; put a question of several words in quotes" if form is AskCommand else ""
        parser.error(f"unrecognized arguments: {' '.join(rest)}{quotes}")
    try:
        code: int = form(**values).run() or 0
        sys.stdout.flush()
        return code
    except KeyboardInterrupt as exc:
        _print_error(*(exc.args or ("stopped",)))
        return EXIT_INTERRUPTED
    except OSError as exc:
        if exc.errno not in (errno.EPIPE, *disk.DISK_FULL_ERRNOS):
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if exc.errno == errno.EPIPE:  # whoever read our output has read enough
            return 0
        _print_error(f"the output cannot be written: {exc.strerror}")
        return EXIT_FAILED
    except KgwbError as exc:
        _print_error(exc)
        return EXIT_BUDGET_SPENT if isinstance(exc, _BudgetSpentError) else EXIT_FAILED


class _BudgetSpentError(KgwbError):
    """A budget is used up."""


def _print_error(problem: object, hint: str = "") -> None:
    print(f"kgwb: {problem}" + (f"\n  What to do: {hint}" if hint else ""), file=sys.stderr)


def _use_color() -> bool:
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ


def _color(text: str, style: str) -> str:
    from kgwb.run.steps import add_color

    return add_color(text, style, _use_color())


class _MaskingParser(argparse.ArgumentParser):
    """Repeats what was typed without its passwords and keys."""

    def error(self, message: str) -> NoReturn:
        super().error(remove_controls(" ".join(map(mask_url, message.split(" ")))))


def _make_parser() -> argparse.ArgumentParser:
    purpose = "Question answering over RDF knowledge graphs by LLM agents, step by step."
    parser = _MaskingParser("kgwb", description=purpose)
    parser.add_argument("--version", action="version", version=f"kgwb {kgwb.__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, form in COMMANDS.items():
        command = commands.add_parser(name, help=form.__doc__, description=form.__doc__)
        if form is JupyterLabCommand:
            command.epilog = "for example: kgwb lab --no-browser --port 8899"
        else:
            add_arguments(command, form)
    return parser


def _warn_about_rules(workbench: Workbench) -> None:
    from kgwb.llm.rules import BASELINE_REMARK

    if any(model.name == "rules" for model in workbench.models.values()):
        _print_error(BASELINE_REMARK)


# --- ask


@dataclass(kw_only=True)
class AskCommand(QuestionArguments):
    """answer one question, and with --steps show the way to the answer"""

    history: Path | None = option("FILE", HISTORY_HELP)
    json: bool = option("", "print answer, steps and totals as JSON", False)
    save: Path | None = option("FILE", "write the run to this file, call by call")
    steps: bool = option("", "print the way to the answer too, as a tree", False)
    systems: str | None = option(
        "NAME,NAME,... or all", "ask several systems, and show them side by side"
    )
    question: str = positional("QUESTION")

    def run(self) -> int:
        names = parse_system_names(self.systems) if self.systems else ()
        if names and (self.json or self.save or self.steps):
            why = "--systems prints a table, without --json, --save and --steps"
            raise InputError(why, hint="ask one system for these, with --system NAME")
        workbench = self.for_systems(names).make_workbench()
        if self.history:
            load_history(workbench, self.history)
        if names:
            print(workbench.ask_all(self.question, names))
            _warn_about_rules(workbench)
            return 0
        saved = True
        try:
            run = workbench.begin(self.question, path=self.save)
        except RunFileError as exc:  # where the disk is full, the run is kept in no file
            if not (
                isinstance(exc.__cause__, OSError) and exc.__cause__.errno in disk.DISK_FULL_ERRNOS
            ):
                raise
            run = workbench.begin(self.question)
        try:
            try:
                run.go()
            except RunFileError:  # a full disk: the answer comes without the file, and why after it
                run = run.fork()
                run.go()
            finally:
                if not self.json:
                    print_answer_and_steps(run, self.steps)
            if self.json:
                text = json.dumps(_run_to_data(run), ensure_ascii=False, indent=2)
                print(CONTROL_CHARACTERS.sub(lambda control: f"\\u{ord(control[0]):04x}", text))
            sys.stdout.flush()
            _warn_about_rules(workbench)
        finally:
            try:
                if self.save:
                    run.save(self.save)
            except RunFileError as exc:
                _print_error(exc)
                saved = False
        return 0 if saved else EXIT_FAILED


def print_answer_and_steps(run: Run, steps: bool = False) -> None:
    """The answer with its triples first; then, if it is wanted or there is none, the way to it."""

    print(single_line(run.question))
    _print_answer(run)
    if steps or run.answer is None:
        print(run.summary(color=_use_color()))
    print(f"{run.status}: {run.totals}")


def _print_answer(run: Run) -> None:
    if run.answer is None:
        return
    first, *support = run.answer.summary(run.display_names()).splitlines()
    print(_color(f"→ {single_line(first)}", "key"))
    for line in support:
        print(f"    {single_line(line)}")


def _run_to_data(run: Run) -> dict[str, Any]:
    from kgwb.bench.cost import COUNT_FIELDS
    from kgwb.bench.questions import term_to_string

    answer, totals = run.answer, run.totals
    assert answer is not None
    return {
        "answer": {
            "kind": answer.kind,
            "values": [term_to_string(value.term) for value in answer.values],
            "labels": list(answer.labels),
            "text": answer.text or ", ".join(answer.labels),
            "support": [[str(term) for term in triple] for triple in answer.support],
            "reason": answer.reason,
            "ungrounded": answer.ungrounded,
        },
        "steps": [step.to_data() for step in run.steps],
        "totals": {
            **{name: getattr(totals, name) for name in COUNT_FIELDS},
            "tokens": totals.prompt_tokens + totals.completion_tokens,
            "seconds": round(totals.seconds, 6),
        },
    }


# --- bench


@dataclass(kw_only=True)
class BenchCommand(QuestionArguments):
    """ask every question of a file and score the answers"""

    questions: Path = option("FILE", "QALD, LC-QuAD, MetaQA, JSON lines, ...", ...)
    language: str | None = option("TAG", "of the questions, where they are in several")
    out: Path = option("DIR", "folder of the results; resumes", ...)
    limit: PositiveInt | None = option("N", "only the first N questions")
    workers: PositiveInt = option("N", "questions asked side by side", 1)
    systems: str | None = option(
        "NAME,NAME,... or all", "measure each system, in a folder of its own"
    )
    each: str | None = option("NAME=V1,V2,...", EACH_HELP)
    save_runs: bool = option("", "keep every run in DIR/runs", False)
    retry_errors: bool = option("", "ask questions that ended in an error again", False)
    budget: list[str] = option("NAME=NUMBER", BUDGET_HELP, [])
    prices: Path | None = option("FILE", PRICES_HELP)
    ladder: bool = option(
        "", "name the agent that lost each answer; asks up to 5 times more", False
    )
    retention: bool = option("", "ask dialogues' questions alone too, in DIR/standalone", False)

    def run(self) -> None:
        from kgwb.bench import figures, load_questions

        questions = load_questions(self.questions, self.language)[: self.limit]
        if self.retention and all(question.dialogue is None for question in questions):
            why = f"no question of {self.questions} is in a dialogue"
            raise InputError(why, hint="leave --retention out, or ask more with --limit")
        names = parse_system_names(self.systems) if self.systems else ()
        of_systems = [replace(self, system=name, out=self.out / name) for name in names] or [self]
        commands: list[BenchCommand] = []
        for base in of_systems:
            known: list[object] = []
            for name, command in commands_for_each(base, self.each):
                about = command.settings, command.prompts, command.model
                if about in known:
                    raise InputError(f"--each has {name} twice", hint="give each value once")
                known.append(about)
                commands.append(replace(command, out=base.out / name))
        for command in commands:
            if self.each or self.systems:
                print(command.out.relative_to(self.out))
            command._run_benchmark(questions)
        if self.each:
            _write_report(
                [command.out for command in commands], self.out / "report.html", self.prices
            )
        elif names:
            outs = [base.out for base in of_systems]
            sets = [figures.LoadedResults.read(out, out.name, f", {out.name}") for out in outs]
            print("\nside by side:")
            _print_tables(
                figures.make_quality_table(sets),
                figures.make_cost_table(sets),
                figures.make_loss_table(sets),
            )

    def _run_benchmark(self, questions: list[BenchQuestion]) -> None:
        from kgwb import bench
        from kgwb.bench.ladder import gold_decisions_of
        from kgwb.bench.questions import make_standalone_questions

        budget = bench.Budget(
            parse_assignments(self.budget, "NAME=NUMBER"), bench.load_prices(self.prices)
        )
        workbench = self.make_workbench()
        if self.ladder:
            gold_decisions_of(workbench.system)
        if "money" in budget.limits:
            _ = [budget.prices.find_price(model.name) for model in workbench.models.values()]
        with _progress_bar(
            iterable=bench.add_gold_queries(questions, workbench.kg), unit="gold answer"
        ) as wanted:
            questions = bench.add_gold_answers(wanted, workbench.kg)
        if missing := [question for question in questions if question.answers is None]:
            why = f"{missing[0].id}: {single_line(missing[0].gold_error or '')}"
            _print_error(f"{len(missing)} of {len(questions)} questions have no gold: {why}")
        measure = partial(self._ask_questions, bench.BenchSetup.from_workbench(workbench), budget)
        rows = measure(self.out, questions)
        if self.retention:
            print("\nthe same questions of dialogues, asked alone:")
            alone = make_standalone_questions(
                question for question in questions if question.dialogue is not None
            )
            alone_rows = measure(self.out / "standalone", alone)
            known = {row["id"] for row in alone_rows if row["gold"] is not None}
            share = bench.compute_retention(
                *([row for row in of if row["id"] in known] for of in (rows, alone_rows))
            )
            kept = (
                "F1 alone is 0"
                if share is None
                else f"{share:.2f} % of F1 (as the paper computes it)"
            )
            print(f"\nkept in dialogues, over {len(known)} questions: {kept}")
        _warn_about_rules(workbench)

    def _ask_questions(
        self, setup: BenchSetup, budget: Budget, folder: Path, questions: list[BenchQuestion]
    ) -> list[BenchRow]:
        """Ask the questions, and print what came of it; their lines."""
        from kgwb import bench
        from kgwb.bench.results import is_lost, lock_folder

        save_runs: Any = self.save_runs or ("lost" if self.ladder else False)
        with lock_folder(folder):
            results = bench.Results(folder, setup.to_config(questions))
            if self.retry_errors:
                results.drop_errors()
            runner = bench.Benchmark(
                setup, results, workers=self.workers, save_runs=save_runs, budget=budget
            )
            try:
                done = len(results.rows_for(questions))
                with _progress_bar(total=len(questions), initial=done, unit="question") as bar:
                    runner.on_row = lambda row: bar.update()
                    rows = runner.run(questions)
                if self.ladder and not runner.stop_reason:
                    with _progress_bar(total=sum(map(is_lost, rows)), unit="lost answer") as bar:
                        how: Any = {"workers": self.workers, "on_row": lambda row: bar.update()}
                        bench.locate_losses(setup, results, questions, **how)
            except KeyboardInterrupt as exc:
                asked = f"{len(results.rows_for(questions))} of {len(questions)} questions asked"
                hint = "give the same command again, and it goes on from there"
                raise KeyboardInterrupt(f"stopped with {asked}", hint) from exc
            _print_metrics(folder, rows, budget.prices)
        if runner.stop_reason:
            why = f"{len(rows)} of {len(questions)} questions asked: the budget is used up ({runner.stop_reason})"
            raise _BudgetSpentError(
                f"stopped with {why}", hint="give the same command with a larger budget to go on"
            )
        return rows


def parse_system_names(text: str) -> tuple[str, ...]:
    """The systems of a list with commas; ``all`` are all that are there. Raises SettingError."""
    from kgwb import systems

    names = systems.list_systems() if text == "all" else tuple(dict.fromkeys(text.split(",")))
    for name in names:
        systems.load_system(name)
    return names


def _print_tables(*tables: ReportTable) -> None:
    print("\n\n".join(str(table) for table in tables if table.rows))


def _print_metrics(folder: Path, rows: list[BenchRow], prices: Prices) -> None:
    from kgwb.bench import figures
    from kgwb.bench.results import get_label, get_verdict, is_lost
    from kgwb.text import shorten

    read = figures.LoadedResults.read(folder)
    ladder = {
        row["id"]: read.losses_by_id[row["id"]] for row in rows if row["id"] in read.losses_by_id
    }
    measured = [replace(read, rows={row["id"]: row for row in rows}, losses_by_id=ladder)]
    print(f"{_color(measured[0].headline, 'key')}\n")
    lost_rows = [row for row in rows if is_lost(row)]
    for row in lost_rows[:MAX_LISTED_FAILURES]:
        answers, right = (
            ", ".join(get_label(row, v) for v in row[side]) for side in ("answers", "gold")
        )
        words = f"{row['id']}: {row['question']} → {row['error'] or answers or 'nothing'}; right: {right}"
        print(f"{_color(f'{get_verdict(row):<10}', 'failure')} {shorten(single_line(words))}")
    if len(lost_rows) > MAX_LISTED_FAILURES:
        print(f"and {len(lost_rows) - MAX_LISTED_FAILURES:,} more: kgwb report {folder}")
    print()
    for reason in figures.find_missing_prices(measured, prices):
        _print_error(reason)
    _print_tables(
        figures.make_quality_table(measured),
        figures.make_cost_table(measured, prices),
        figures.make_linking_table(measured),
        figures.make_loss_table(measured),
    )
    if errors := Counter(row["error"] for row in rows if row["error"] is not None):
        [(error, times)] = errors.most_common(1)
        hint = "fix its cause and give the same command with --retry-errors"
        _print_error(f"the most frequent error, {times} times: {single_line(error)}", hint)


# --- retry, report, serve


@dataclass(kw_only=True)
class RetryCommand(GraphArguments):
    """ask questions of a benchmark again after a change, and show what it fixed and what it broke"""

    folder: Path = positional(
        "DIR", "what kgwb bench --out wrote; with --save-runs little is asked again"
    )
    kg: str = option("GRAPH", "default: the one that was measured", "")
    prompts: Path | None = option("DIR", "folder whose prompts go before kgwb's own")
    model: str = option("SPEC", "default: the one that was measured", "")
    agent_model: list[str] = option("AGENT=SPEC", "for one agent", [])
    set: list[str] = option("NAME=VALUE", "change a setting", [])
    each: str | None = option("NAME=V1,V2,...", EACH_HELP)
    only: list[str] = option(
        "WHAT",
        "lost, wrong, errors, right, all, blamed=AGENT, type=NAME, an id (default: lost, and as many right)",
        [],
    )
    repeats: PositiveInt = option(
        "N", "ask what differs N times, to see which decisions vary by themselves", 1
    )
    workers: PositiveInt = option("N", "questions asked side by side", 1)
    budget: list[str] = option("NAME=NUMBER", BUDGET_HELP, [])
    prices: Path | None = option("FILE", PRICES_HELP)
    out: Path | None = option(
        "FILE", "HTML file to write (default: report.html in DIR/retries/CHANGE)"
    )

    def run(self) -> int:
        from kgwb import bench
        from kgwb.bench.lab import RetryExperiment as PromptLab
        from kgwb.run.prompts import Prompts

        budget = bench.Budget(
            parse_assignments(self.budget, "NAME=NUMBER"), bench.load_prices(self.prices)
        )
        graph = self.open_graph(self.kg) if self.kg else None
        folders, stopped = [self.folder], ""
        for name, command in commands_for_each(self, self.each):
            default = {"": command.model} if command.model else {}
            models = {**default, **parse_assignments(command.agent_model, "AGENT=SPEC")}
            lab = PromptLab(command.folder, kg=graph, models=models)
            graph = lab.kg  # opened once, for all that is varied
            setup = lab.make_setup(
                Prompts.of(command.prompts), parse_assignments(command.set, "NAME=VALUE")
            )
            changes = [command.prompts.resolve().name] if command.prompts else []
            changes += [*models.values(), *command.set]
            folders.append(lab.get_results_folder(setup, name or ", ".join(changes) or "prompts"))
            questions = lab.choose_questions(self.only)
            with _progress_bar(iterable=questions, unit="question looked at") as looked:
                estimate = lab.estimate_cost(
                    setup, looked, prices=budget.prices, repeats=self.repeats
                )
            print(f"{folders[-1].name}: {estimate}", flush=True)
            with _progress_bar(total=len(questions), unit="question") as bar:
                how: Any = {"workers": self.workers, "on_row": lambda row, bar=bar: bar.update()}
                stopped = lab.ask_again(
                    setup, questions, folders[-1], repeats=self.repeats, budget=budget, **how
                )
            if stopped:
                _print_error(
                    f"stopped: the budget is used up ({stopped})", "give the same with a larger one"
                )
                break
        page = folders[1] if len(folders) == 2 else folders[1].parent
        _write_report(folders, self.out or page / "report.html", self.prices)
        return EXIT_BUDGET_SPENT if stopped else 0


def _progress_bar(**options: Any) -> Any:
    """A bar on the terminal for what may take more than a second."""
    from tqdm import tqdm

    return tqdm(mininterval=0.5, delay=1.0, **options)


@dataclass(kw_only=True)
class ReportCommand:
    """make one HTML file of one or several results folders"""

    folders: list[Path] = positional("DIR", "what kgwb bench --out wrote")
    out: Path | None = option("FILE", "HTML file to write (default: report.html in the first DIR)")
    published: str | None = option(
        "SET", "set the papers' figures on this question set beside; it is yours"
    )
    prices: Path | None = option("FILE", PRICES_HELP)

    def run(self) -> None:
        _write_report(
            self.folders, self.out or self.folders[0] / "report.html", self.prices, self.published
        )


def _write_report(
    folders: Sequence[Path], page: Path, prices: Path | None = None, published: str | None = None
) -> None:
    """Write the page of results folders, and print what it says first and where it is."""
    from kgwb.bench import Report as Page
    from kgwb.bench import load_prices

    with _progress_bar(unit="run") as bar:
        report = Page(
            *folders, published=published, prices=load_prices(prices), finished=bar.update
        )
        lines, path = [*report.headline()], report.save(page)
    print(*lines, path, sep="\n")


@dataclass(kw_only=True)
class ServeCommand(QuestionArguments):
    """answer with SPARQL over HTTP, as TEXT2SPARQL asks"""

    kg: str = option("GRAPH", "RDF file or folder, endpoint URL, or the name of a sample", "")
    dataset: list[str] = option(
        "IRI=GRAPH",
        "answer questions on this dataset from this graph; --kg answers for all that are not named",
        [],
    )
    host: str = option("", "address to listen on (default: this machine)", "127.0.0.1")
    port: int = option("", "default: 8000; 0 takes a free one", 8000)
    workers: PositiveInt = option("N", "questions answered at once (default: 4)", 4)

    def run(self) -> None:
        from kgwb.bench.runner import BenchSetup
        from kgwb.bench.serve import ANY_DATASET, Text2SparqlServer
        from kgwb.kg import is_endpoint_url

        graphs = parse_assignments(self.dataset, "IRI=GRAPH")
        if len(graphs) < len(self.dataset):
            raise InputError("a dataset is named twice", hint="give each --dataset IRI=GRAPH once")
        graphs |= {ANY_DATASET: self.kg} if self.kg else {}
        if not graphs:
            hint = "give --kg GRAPH, or --dataset IRI=GRAPH"
            raise InputError("there is no graph to answer from", hint=hint)
        self.kg = max(graphs.values(), key=is_endpoint_url)
        workbench = self.make_workbench()
        opened = {self.kg: workbench.kg}
        opened |= {source: self.open_graph(source) for source in {*graphs.values()} - {self.kg}}
        setups = {
            iri: replace(BenchSetup.from_workbench(workbench), kg=opened[graph])
            for iri, graph in graphs.items()
        }
        with Text2SparqlServer((self.host, self.port), setups, workers=self.workers) as service:
            _warn_about_rules(workbench)
            for iri, setup in setups.items():
                answers = f"answers for {iri or 'every other dataset'} from {setup.kg.source}"
                print(f"{service.url} {single_line(answers)}", flush=True)
            print("Ctrl+C stops it.", flush=True)
            service.serve_forever()


# --- doctor, lab, demo


@dataclass(kw_only=True)
class DoctorCommand:
    """say what works here, and what to do about the rest"""

    kg: str = option(
        "", "graph to try, and to survey (default: the sample films, without a survey)", ""
    )
    model: str = option("", "model to try (default: rules)", "rules")

    def run(self) -> int:
        from kgwb.doctor import run_health_checks, survey_lines

        healthy = True
        for finding in run_health_checks(self.kg or "films", self.model):
            healthy = healthy and (finding.ok or not finding.required)
            state = "ok" if finding.ok else "missing" if finding.required else "absent"
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
        home = _find_notebooks_root()
        defaults = {
            "--ServerApp.root_dir": str(home),
            "--LabApp.default_url": f"/lab/tree/{START_NOTEBOOK}",
            # No news and no updates: JupyterLab would ask over the first notebook whether to fetch them
            "--LabApp.app_settings_dir": str(Path(__file__).parent / "lab_settings"),
            "--LabApp.extension_manager": "readonly",
            # A notebook that is opened again shows what its widgets showed
            "--ServerApp.contents_manager_class": "kgwb.ui.saved.Notebooks",
        }
        passed = {argument.partition("=")[0] for argument in self.rest}
        options = [f"{name}={value}" for name, value in defaults.items() if name not in passed]
        if os.geteuid() == 0 and "--allow-root" not in passed:
            options.append("--allow-root")
        sys.stdout.flush()
        # A JupyterHub names the address of the server it starts, which must then ask the hub who may enter
        server = "jupyterhub.singleuser" if "JUPYTERHUB_SERVICE_URL" in os.environ else "jupyterlab"
        os.execv(sys.executable, [sys.executable, "-m", server, *options, *self.rest])


def _find_notebooks_root() -> Path:
    """The folder that holds ``notebooks``: the checkout, else the current one, where copies are put."""
    package = Path(kgwb.__file__).parent
    if (package.parent / START_NOTEBOOK).is_file() and (
        package.parent / "pyproject.toml"
    ).is_file():
        return package.parent
    shipped = package / "_data" / "notebooks"
    if not shipped.is_dir():
        raise InputError(
            "this kgwb came without notebooks", hint="install it again, or use a checkout"
        )
    hint = "go to a folder of your own with some space left"
    with disk.os_errors_as_input_error(f"cannot copy the notebooks to {Path.cwd()}", hint):
        for notebook in shipped.rglob("*.ipynb"):
            if not (copy := Path("notebooks") / notebook.relative_to(shipped)).exists():
                disk.write_atomically(copy, [notebook.read_text(encoding="utf-8")])
    return Path.cwd()


@dataclass(kw_only=True)
class LabsCommand:
    """collect the hand-ins of the teaching labs: one page of the class"""

    out: Path = option("FILE", "the page (default: labs.html)", Path("labs.html"))
    action: str = positional("collect", "what to do")
    folder: Path = positional("FOLDER", "where the students' files are")

    def run(self) -> None:
        from kgwb.labs.pages import collect_hand_ins, save_class_page

        if self.action != "collect":
            raise InputError(
                f"kgwb labs cannot {self.action}", hint="give: kgwb labs collect FOLDER"
            )
        collected = collect_hand_ins(self.folder)
        print(*collected, sep="\n")
        print(f"the page of the class: {save_class_page(collected, self.out)}")


@dataclass(kw_only=True)
class DemoCommand:
    """play a dialogue about Harry Potter, agent by agent, offline"""

    def run(self) -> None:
        from kgwb.bench import load_questions
        from kgwb.kg import open_kg, sample_path
        from kgwb.workbench import Workbench

        questions = load_questions(sample_path("films").with_suffix(".questions.jsonl"))
        print(
            "Chatty-KG, agent by agent, on the sample graph films, with rules for a model:", end=" "
        )
        print("nothing goes out.")
        workbench = Workbench(open_kg("films"))
        for each in (each for each in questions if each.dialogue == "films-hp"):
            print(f"\n{_color(f'{each.turn}. {each.question}', 'key')}")
            run = workbench.begin(each.question)
            run.listeners.append(partial(_print_step, run))
            run.go()
            _print_answer(run)
        print("\nTo see, edit and re-run every step: kgwb lab")
        _warn_about_rules(workbench)


def _print_step(run: Run, event: str, step: Step) -> None:
    """A line for an agent that has finished; those that only supervise others get none."""
    from kgwb.run.steps import step_costs

    if event == "end" and not any(other.parent == step.key for other in run.steps):
        cost = _color(f"({', '.join(step_costs(step, run.calls))})", "aside")
        print(f"   {step.agent:<20} {step.outcome}  {cost}", flush=True)


COMMANDS: dict[str, type[Any]] = {
    "ask": AskCommand,
    "bench": BenchCommand,
    "retry": RetryCommand,
    "report": ReportCommand,
    "serve": ServeCommand,
    "doctor": DoctorCommand,
    "lab": JupyterLabCommand,
    "labs": LabsCommand,
    "demo": DemoCommand,
}
