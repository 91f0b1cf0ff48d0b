"""``kgwb experiment``: the experiments of the papers, listed, and run with a model of one's own."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from kgwb.bench import load_questions, read_results
from kgwb.bench.papers import (
    Configuration,
    Experiment,
    Measurement,
    Paper,
    QuestionFile,
    QuestionSet,
    check_chart_format,
    count_questions,
    describe_availability,
    describe_measurements,
    find_day,
    find_experiment,
    find_file_below,
    find_question_file,
    list_measured_differences,
    load_measured,
    load_papers,
    make_asked_table,
    make_caption,
    make_experiment_chart,
    make_experiment_table,
    make_kinds_table,
    make_others_table,
    render_experiment,
    select_questions,
)
from kgwb.bench.questions import select_slices
from kgwb.cli.arguments import (
    SLICE_HELP,
    PositiveInt,
    flag,
    option,
    parse_assignments,
    positional,
    print_tables,
    write_and_print,
)
from kgwb.cli.bench import BenchCommand, SharedQuestions, WorkArguments
from kgwb.cli.report import print_chart
from kgwb.errors import InputError
from kgwb.kg import SAMPLE_NAMES
from kgwb.kg.files import FORMAT_BY_EXTENSION
from kgwb.records import frozen
from kgwb.show.tables import check_table_format
from kgwb.text import pluralize, single_line

GRAPH_SYNTAX = "NAME=GRAPH"
OTHER_FOLDER = "name another folder with --out"
SUFFIXES = {"latex": "tex", "markdown": "md", "csv": "csv", "svg": "svg", "pdf": "pdf"}
"""The suffix of the file of a table or figure, by the format that ``to`` names."""


@frozen
class _Part:
    """A part of an experiment: one configuration on one question set."""

    set_name: str
    file: QuestionFile
    configuration: Configuration
    command: BenchCommand


@dataclass(kw_only=True)
class ExperimentCommand(WorkArguments):
    """The arguments of ``kgwb experiment``, and its work."""

    EPILOG = (
        "for example: kgwb experiment; kgwb experiment dog.table1_metaqa; "
        "kgwb experiment dog.table1_metaqa --model openai:M --data DIR"
    )

    model: str | None = option(
        "SPEC", "the model to measure, as in kgwb ask (default: only show what would be done)"
    )
    agent_model: list[str] = option("AGENT=SPEC", "model of one agent, or of all of a role", [])
    data: Path = option("DIR", "folder with the question sets (default: this folder)", Path())
    graph: list[str] = option(
        GRAPH_SYNTAX,
        "where a graph of the experiment is: an endpoint URL or a file (default: NAME.nt.gz and the "
        "like in --data)",
        [],
    )
    sets: str | None = option("SET,SET,...", "only these question sets (default: those at hand)")
    configuration: list[str] = option(
        "NAME", "only this configuration, such as 'SQL only'; may be repeated", []
    )
    limit: PositiveInt | None = option("N", "only the first N questions of each set")
    slice: list[str] = option("tag=NAME", SLICE_HELP, [])
    set: list[str] = option("NAME=VALUE", "change a setting of every configuration", [])
    out: Path = option("DIR", "folder of the results; continues what is there", Path("experiments"))
    to: str | None = option(
        "FORMAT",
        "print the table for a paper: latex, markdown or csv; with --figure: svg, pdf or latex",
    )
    figure: bool = flag("with --to: draw a figure in place of the table, in OUT/NAME/figure.FORMAT")
    name: str | None = positional("NAME", "such as dog.table1_metaqa (default: list all)", None)

    def run(self) -> int:
        """List the experiments, show one, or repeat it with ``model``; return 0.

        Without ``name`` all experiments are listed; without ``model`` the named one is shown, and
        nothing is asked. Otherwise it is measured, which continues what an earlier start has asked,
        and its page is written. Raises InputError for an unknown experiment or set, for one that
        cannot be repeated, if no question set or graph is at hand, and what measuring raises.
        """
        if self.name is None:
            for paper_name, paper in load_papers().items():
                self._print_paper(paper_name, paper)
            print("To see what one needs: kgwb experiment NAME")
            return 0
        paper, experiment = find_experiment(self.name)
        if self.model is None:
            self._print_experiment(paper, experiment)
            return 0
        self._repeat(paper, experiment)
        return 0

    # Showing

    def _print_paper(self, paper_name: str, paper: Paper) -> None:
        """Print a paper, and a line for each of its experiments with name, place, title, and what is at hand."""
        print(paper.paper)
        for experiment in paper.experiments:
            name = f"{paper_name}.{experiment.id}"
            at_hand = describe_availability(paper, experiment, self.data)
            print(f"  {name:<32} {experiment.where}: {experiment.title}; {at_hand}")
        print()

    def _print_experiment(self, paper: Paper, experiment: Experiment) -> None:
        """Print what an experiment needs, what is at hand, what it costs, how it differs, and published figures.

        What kgwb has measured itself with ``rules`` is in the table, too, with its set-up. Verdicts
        that the paper prints have a table of their own. Of an experiment that cannot be repeated,
        only the reason is printed. The last line is the command that runs it. Nothing is asked.
        """
        print(f"{paper.paper}, {experiment.where}: {experiment.title}")
        if experiment.cannot:
            print(f"This cannot be repeated: {experiment.cannot}.")
            return
        for line in self._describe_sets(paper, experiment):
            print(line)
        for configuration in experiment.configurations:
            settings = " ".join(_setting_arguments(configuration.settings)) or "no further setting"
            print(f"configuration {configuration.name}: profile {paper.profile}, {settings}")
        self._print_cost(paper, experiment)
        measured = load_measured(str(self.name))
        for difference in experiment.differs:
            print(f"differs: {difference}")
        print()
        print_tables(make_experiment_table(paper, experiment, measured))
        if measured:
            setup = describe_measurements(paper, measured)
            for sentence in (setup, *list_measured_differences(paper, measured)):
                print(f"here: {sentence}")
        for table in (make_asked_table(experiment), make_others_table(paper, experiment)):
            if table.rows:
                print()
                print_tables(table)
        names = self._graph_names(paper, experiment)
        missing = [name for name in names if self._find_graph(name) is None]
        graphs = "".join(f" --graph {name}=URL" for name in missing)
        print(f"\nTo run it: kgwb experiment {self.name} --model SPEC --data DIR{graphs}")

    def _describe_sets(self, paper: Paper, experiment: Experiment) -> Iterator[str]:
        """Yield a line for each question set, then one for each graph, that says where it is or where to get it.

        A stand-in for a question set is named as such, with the reason.
        """
        for name in experiment.sets:
            question_set = paper.sets[name]
            file = find_question_file(question_set, self.data)
            state = f"missing; get {question_set.file} from {question_set.origin}"
            if file is not None:
                state = str(file.path)
                if file.stand_in:
                    state += f", {file.stand_in.reason}, in place of the paper's"
            count = pluralize(question_set.questions, "question")
            settings = " ".join(_setting_arguments(question_set.settings))
            title = ", ".join(filter(None, (question_set.title, count, settings)))
            yield f"set {name} ({title}): {state}"
        for name in self._graph_names(paper, experiment):
            origin = paper.graphs[name]
            source = self._find_graph(name)
            state = source or f"missing; {origin.origin}; then give --graph {name}=URL or FILE"
            yield f"graph {name} ({origin.title}): {state}"

    def _graph_names(self, paper: Paper, experiment: Experiment) -> list[str]:
        """Return the names of the graphs that an experiment asks, each once."""
        names: dict[str, None] = {}
        for set_name in experiment.sets:
            question_set = paper.sets[set_name]
            file = find_question_file(question_set, self.data)
            names[file.graph if file else question_set.graph] = None
        return list(names)

    # Repeating

    def _repeat(self, paper: Paper, experiment: Experiment) -> None:
        """Measure an experiment, print its table, or draw its figure, and write its page.

        The page is OUT/NAME/experiment.html, which is replaced. Raises what ``measure`` raises, and
        InputError if a file cannot be written.
        """
        measurements = self.measure(paper, experiment)
        print()
        self._print_table(paper, experiment, measurements)
        kinds = make_kinds_table(paper, experiment, measurements)
        if kinds.rows and self.to is None:
            print()
            print_tables(kinds)
        page = self.out / str(self.name) / "experiment.html"
        write_and_print(page, render_experiment(paper, experiment, measurements), OTHER_FOLDER)

    def measure(self, paper: Paper, experiment: Experiment) -> list[Measurement]:
        """Measure every configuration on every question set at hand, and return what was measured.

        What an earlier start has asked is not asked again. Missing sets and graphs are found before
        the first question is asked. Raises InputError if the experiment cannot be repeated, for an
        unknown ``to``, and what ``_plan`` and measuring raise.
        """
        if experiment.cannot:
            raise InputError(
                f"{self.name} cannot be repeated: {experiment.cannot}",
                hint="see the other experiments with: kgwb experiment",
            )
        self._check_format()
        parts = self._plan(paper, experiment)
        self._print_cost(paper, experiment, [part.set_name for part in parts])
        shared: dict[tuple[str | bool | None, ...], SharedQuestions] = {}
        chosen = []
        for part in parts:
            question_set = paper.sets[part.set_name]
            language = part.configuration.language or question_set.language
            key = (part.set_name, language, part.configuration.standalone)
            if key not in shared:
                questions = select_questions(
                    select_slices(load_questions(part.file.path, language), self.slice),
                    question_set,
                    part.file.stand_in,
                    part.configuration,
                    self.limit,
                )
                shared[key] = SharedQuestions(questions)
            chosen.append(shared[key])
        measurements = []
        for part, questions_of_part in zip(parts, chosen, strict=True):
            print(f"{paper.sets[part.set_name].title}, {part.configuration.name}")
            rows = part.command.run_benchmark(questions_of_part, prints_metrics=False)
            config, _ = read_results(part.command.out)
            measurement = Measurement(
                part.set_name,
                part.configuration.name,
                str(self.model),
                rows,
                part.file.stand_in,
                config=config,
                day=find_day(part.command.out),
            )
            measurements.append(measurement)
        return measurements

    def _print_cost(
        self, paper: Paper, experiment: Experiment, set_names: Sequence[str] | None = None
    ) -> None:
        """Print the expected model calls and tokens; nothing if the paper's cost is not known.

        ``set_names`` has a question set once for each configuration that it is measured with; None
        stands for all sets and configurations.
        """
        if paper.cost is None:
            return
        count = count_questions(paper, experiment, self.limit, set_names)
        line = single_line(
            f"cost: {pluralize(count, 'question')}, about {paper.cost.calls * count:,.0f} model calls and "
            f"{paper.cost.tokens * count:,.0f} tokens ({paper.cost.source})"
        )
        if self.slice:
            line += "; fewer, as only a slice is asked"
        print(line)

    def _print_table(
        self, paper: Paper, experiment: Experiment, measurements: Sequence[Measurement]
    ) -> None:
        """Print the paper's table with our figures beside its own, as text or in the form that ``to`` names.

        In another form than text, the caption has the set-up and how it differs from the paper's,
        and the table is also written to OUT/NAME/table.tex, .md or .csv. With ``figure``, a figure
        is drawn in place of the table, and its caption and files are printed.
        """
        folder = self.out / str(self.name)
        if self.to is not None and self.figure:
            path = folder / f"figure.{SUFFIXES[self.to]}"
            print_chart(make_experiment_chart(paper, experiment, measurements), path, self.to)
            return
        table = make_experiment_table(paper, experiment, measurements)
        if self.to is None:
            print_tables(table)
            return
        caption = make_caption(paper, experiment, measurements)
        text = table.with_caption(caption).to_format(self.to)
        print(text)
        path = folder / f"table.{SUFFIXES[self.to]}"
        write_and_print(path, text, OTHER_FOLDER)

    def _check_format(self) -> None:
        """Raise InputError for an unknown ``to``, one that ``figure`` cannot have, or ``figure`` without ``to``."""
        if self.figure:
            check_chart_format(self.to or "")
        elif self.to is not None:
            check_table_format(self.to)

    def _plan(self, paper: Paper, experiment: Experiment) -> list[_Part]:
        """Return what is measured, one part for each question set at hand and each configuration.

        Sets that are not at hand are skipped, unless ``sets`` names them. Raises InputError if a
        named set, all sets, or the graph of a set are missing, and for an unknown configuration.
        """
        wanted_sets: Sequence[str] = ()
        if self.sets is not None:
            wanted_sets = self.sets.split(",")
        set_names = self._choose("question set", wanted_sets, experiment.sets)
        configurations = {each.name: each for each in experiment.configurations}
        chosen = self._choose("configuration", self.configuration, configurations)
        parts = []
        for set_name in set_names:
            question_set = paper.sets[set_name]
            file = find_question_file(question_set, self.data)
            if file is None:
                if wanted_sets:
                    raise InputError(
                        f"the folder {self.data} has no question set {question_set.file}",
                        hint=f"get it from {question_set.origin}",
                    )
                continue
            for name in chosen:
                configuration = configurations[name]
                command = self._make_command(paper, question_set, set_name, file, configuration)
                parts.append(_Part(set_name, file, configuration, command))
        if not parts:
            raise InputError(
                f"the folder {self.data} has no question set of the experiment {self.name}",
                hint=f"see which it needs, and where to get them: kgwb experiment {self.name}",
            )
        return parts

    def _choose(self, noun: str, wanted: Sequence[str], known: Collection[str]) -> Collection[str]:
        """Return the wanted names, or without any all that are known. Raises InputError for an unknown one."""
        for name in wanted:
            if name not in known:
                raise InputError(
                    f"the experiment {self.name} has no {noun} {name!r}",
                    hint=f"choose one of these: {', '.join(known)}",
                )
        return wanted or known

    def _make_command(
        self,
        paper: Paper,
        question_set: QuestionSet,
        set_name: str,
        file: QuestionFile,
        configuration: Configuration,
    ) -> BenchCommand:
        """Return the command that measures a configuration on a question set.

        Its results have a folder of their own; all folders of the experiment share their calls. The
        person's settings are the last, so they count. Raises InputError if the graph is missing.
        """
        source = self._find_graph(file.graph)
        if source is None:
            origin = paper.graphs[file.graph]
            raise InputError(
                f"{self.name} cannot be repeated: the graph {file.graph} ({origin.title}) was not found",
                hint=f"get it from {origin.origin}, and give --graph {file.graph}=URL or FILE",
            )
        settings = {**question_set.settings, **configuration.settings}
        folder = self.out / str(self.name)
        return BenchCommand(
            kg=source,
            model=str(self.model),
            agent_model=self.agent_model,
            system=paper.system,
            profile=paper.profile,
            set=[*_setting_arguments(settings), *self.set],
            questions=file.path,
            out=folder / f"{set_name} {quote(configuration.name, safe=' ')}",
            reuse=folder,
            workers=self.workers,
            budget=self.budget,
            prices=self.prices,
        )

    def _find_graph(self, name: str) -> str | None:
        """Return the source of a graph, as ``graph`` says, else a file NAME.* below the data folder, else None.

        The file's suffix is that of an RDF format, also with ".gz"; the file may lie in a
        subfolder. The name of a sample that is not there stands for the sample. Raises InputError
        for a ``graph`` without "=".
        """
        given = parse_assignments(self.graph, GRAPH_SYNTAX)
        if name in given:
            return given[name]

        file_names = []
        for suffix in FORMAT_BY_EXTENSION:
            file_names += [f"{name}{suffix}", f"{name}{suffix}.gz"]
        path = find_file_below(self.data, file_names)
        if path is not None:
            return str(path)
        return name if name in SAMPLE_NAMES else None


def _setting_arguments(settings: Mapping[str, Any]) -> list[str]:
    """Return settings as texts NAME=VALUE, as --set reads them: True is written "true"."""
    arguments = []
    for name, value in settings.items():
        text = str(value)
        if isinstance(value, bool):
            text = text.lower()
        arguments.append(f"{name}={text}")
    return arguments
