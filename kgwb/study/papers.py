"""The experiments of the papers: their data, settings and published figures, and ours beside them.

What an experiment consists of stands in ``experiments/*.toml``, one file for each paper. Figures there
are those that the paper prints; nothing in these files was measured by kgwb.
"""

from __future__ import annotations

import random
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Self, cast

from pydantic import BaseModel, model_validator

from kgwb.bench.figures import MEASURE_LABELS, ReportTable
from kgwb.bench.metrics import MEASURES, Estimate, QuestionGroup, estimate_mean
from kgwb.bench.questions import BenchQuestion, make_standalone_questions
from kgwb.bench.results import BenchRow
from kgwb.errors import InputError
from kgwb.kg import SAMPLE_NAMES, sample_path
from kgwb.show.html import Html, load_style, render_template
from kgwb.study.charts import Bar, Chart, Panel, Series
from kgwb.study.tables import fingerprint_setups
from kgwb.text import pluralize

EXPERIMENTS_FOLDER = Path(__file__).with_name("experiments")
COST_LABELS = {
    "seconds": "seconds",
    "model_calls": "model calls",
    "prompt_tokens": "prompt tokens",
    "completion_tokens": "completion tokens",
    "executed_queries": "executed queries",
}
"""The costs of a question that papers print: the fields of a row, with their labels."""
LABELS = MEASURE_LABELS | COST_LABELS
"""The label of each measure that an experiment may have."""
SAMPLE_SEED = 0
"""The seed by which questions are drawn where a paper measured an unpublished sample."""
Published = Mapping[str, tuple[float, ...]]
"""The printed figures of a row of a table: by question set, one for each measure."""


class _Part(BaseModel, frozen=True, extra="forbid"):
    """A part of a file of experiments: an unknown key is an error."""


class GraphOrigin(_Part):
    """A graph that a paper measured on, and where to get it."""

    title: str
    origin: str


class StandIn(_Part):
    """Questions that can be asked in place of those that a paper asked. They are not comparable."""

    file: str
    reason: str
    """What these questions are, as an apposition: "questions of the dev split"."""
    hops: int | None = None
    """The questions of the file that are asked: those of so many hops. None: all."""
    graph: str | None = None
    """The name of the graph that they are asked of, a key of ``Paper.graphs``. None: that of the set."""


class QuestionSet(_Part):
    """A set of questions that a paper asked."""

    title: str
    questions: int
    """How many questions the paper asked."""
    file: str
    """The path of the file below the person's data folder, as its authors named it."""
    origin: str
    graph: str
    """The name of the graph, a key of ``Paper.graphs``."""
    language: str | None = None
    sample: int | None = None
    """How many questions are drawn if the file has more: the paper drew as many."""
    settings: Mapping[str, Any] = {}
    """Settings that this set is measured with, in every configuration."""
    gold_is_names: bool = False
    """Whether gold answers that the file only names stay names.

    Otherwise each name is looked up in the graph, and a question has no gold where a name has no
    vertex or several. A paper that compares names itself loses no question so.
    """
    stand_in: StandIn | None = None


class PublishedRow(_Part):
    """A row of a paper's table that kgwb does not measure: another system, or another model."""

    name: str
    published: Published = {}


class Configuration(PublishedRow):
    """A row of a paper's table that kgwb measures, with the settings that it stands for."""

    settings: Mapping[str, Any]
    language: str | None = None
    """The language in which the questions are asked; None: that of the set."""
    standalone: bool = False
    """Whether the questions of dialogues are asked alone, in their standalone wording."""


class Cost(_Part):
    """What a question costs about, and how that is known."""

    calls: float
    tokens: float
    """Tokens of prompts and completions together."""
    source: str


class AskedQuestion(_Part):
    """A question that a paper prints, with the verdict that its authors gave the answer by hand."""

    id: str
    question: str
    verdict: str


class Experiment(_Part):
    """An experiment of a paper: a table or a figure."""

    id: str
    title: str
    where: str
    """Table, figure or section of the paper."""
    measures: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    """The kinds of question (``BenchQuestion.type``) whose figures are also shown apart."""
    sets: tuple[str, ...] = ()
    configurations: tuple[Configuration, ...] = ()
    others: tuple[PublishedRow, ...] = ()
    differs: tuple[str, ...] = ()
    """What is not as in the paper, beside the model: a sentence each."""
    cannot: str = ""
    """Why the experiment cannot be repeated; empty if it can."""
    asked: tuple[AskedQuestion, ...] = ()
    """The questions of an experiment whose answers were judged by hand, as far as the paper prints them."""


class Paper(_Part):
    """A paper with its experiments: a file of ``experiments/``."""

    paper: str
    """How the paper is cited."""
    model: str
    """The model of its configurations."""
    system: str
    profile: str
    scale: float = 100
    """What a score of 1 is in the paper's tables: 100 if it prints per cent."""
    cost: Cost | None = None
    graphs: Mapping[str, GraphOrigin] = {}
    sets: Mapping[str, QuestionSet] = {}
    experiments: tuple[Experiment, ...]

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        """Return the paper itself, or raise ValueError if it names a graph, set or measure that there is not.

        Each row of figures must also fit its experiment (``_check_figures``).
        """
        for question_set in self.sets.values():
            names = [question_set.graph]
            if question_set.stand_in and question_set.stand_in.graph:
                names.append(question_set.stand_in.graph)
            for name in names:
                if name not in self.graphs:
                    raise ValueError(f"no graph {name}")
        for experiment in self.experiments:
            for measure in experiment.measures:
                if measure not in LABELS:
                    raise ValueError(f"{experiment.id}: no measure {measure}")
            for name in experiment.sets:
                if name not in self.sets:
                    raise ValueError(f"{experiment.id}: no set {name}")
            for row in (*experiment.configurations, *experiment.others):
                _check_figures(experiment, row)
        return self


def _check_figures(experiment: Experiment, row: PublishedRow) -> None:
    """Raise ValueError unless a row has one figure for each measure, in sets of the experiment."""
    for name, figures in row.published.items():
        if name not in experiment.sets or len(figures) != len(experiment.measures):
            raise ValueError(f"{experiment.id}, {row.name}: the figures of {name} do not fit")


@cache
def load_papers() -> dict[str, Paper]:
    """Read all files of EXPERIMENTS_FOLDER, and return the papers by the name of their file, in alphabetical order.

    They are read once in a process.
    """
    papers = {}
    for file in sorted(EXPERIMENTS_FOLDER.glob("*.toml")):
        papers[file.stem] = Paper.model_validate(tomllib.loads(file.read_text(encoding="utf-8")))
    return papers


def count_questions(
    paper: Paper,
    experiment: Experiment,
    limit: int | None = None,
    set_names: Sequence[str] | None = None,
) -> int:
    """Return how many questions an experiment asks.

    ``set_names`` has a question set once for each configuration that it is measured with; None
    stands for all sets and configurations. ``limit`` bounds the questions of each set.
    """
    if set_names is None:
        set_names = experiment.sets * len(experiment.configurations)
    count = 0
    for name in set_names:
        size = paper.sets[name].questions
        count += min(size, limit or size)
    return count


def find_experiment(name: str) -> tuple[Paper, Experiment]:
    """Return the paper and the experiment that a name such as "dog.table1_metaqa" stands for.

    Raises InputError for an unknown name; it lists the experiments of that paper, or the papers.
    """
    paper_name, _, experiment_id = name.partition(".")
    paper = load_papers().get(paper_name)
    if paper is None:
        raise InputError(
            f"kgwb has no experiments of a paper {paper_name!r}",
            hint=f"name one of {', '.join(load_papers())}, as in dog.table1_metaqa",
        )
    for experiment in paper.experiments:
        if experiment.id == experiment_id:
            return paper, experiment
    known = ", ".join(f"{paper_name}.{experiment.id}" for experiment in paper.experiments)
    raise InputError(f"kgwb has no experiment {name!r}", hint=f"name one of {known}")


# --- the questions


@dataclass(frozen=True)
class QuestionFile:
    """The file of a question set that a person has."""

    path: Path
    stand_in: StandIn | None
    """What stands in for the paper's questions; None if the file has these."""
    graph: str
    """The name of the graph that they are asked of, a key of ``Paper.graphs``."""


def find_question_file(question_set: QuestionSet, folder: Path) -> QuestionFile | None:
    """Return the file of a question set in a data folder, else that of its stand-in, else None.

    Both may also lie in a direct subfolder of the data folder. A stand-in that is not there may be
    a question set of a sample graph, which kgwb brings.
    """
    path = find_file_below(folder, [question_set.file])
    if path:
        return QuestionFile(path, None, question_set.graph)
    stand_in = question_set.stand_in
    if stand_in is None:
        return None
    graph = stand_in.graph or question_set.graph
    path = find_file_below(folder, [stand_in.file])
    if path is None and graph in SAMPLE_NAMES:
        path = sample_path(graph).with_name(stand_in.file)
    if path is None or not path.is_file():
        return None
    return QuestionFile(path, stand_in, graph)


def find_file_below(folder: Path, names: Sequence[str]) -> Path | None:
    """Return the first file with one of these names in a folder or its direct subfolders; None without one.

    The folder itself comes first, then the subfolders by name; in each, the names are tried in
    their order.
    """
    for place in (folder, *sorted(filter(Path.is_dir, folder.glob("*")))):
        for name in names:
            if (place / name).is_file():
                return place / name
    return None


def select_questions(
    questions: Sequence[BenchQuestion],
    question_set: QuestionSet,
    stand_in: StandIn | None,
    configuration: Configuration,
    limit: int | None = None,
) -> list[BenchQuestion]:
    """Return the questions of a file that are asked in a configuration, in the order of the file.

    A stand-in may keep only those of some hops. If the set is a sample and there are more
    questions, as many are drawn, with the seed SAMPLE_SEED. ``standalone`` takes the questions out
    of their dialogues. At last ``limit`` keeps the first ones. Raises InputError if none is left.
    """
    selected = list(questions)
    if stand_in and stand_in.hops is not None:
        selected = [question for question in selected if question.hops == stand_in.hops]
    if question_set.sample and len(selected) > question_set.sample:
        positions = random.Random(SAMPLE_SEED).sample(range(len(selected)), question_set.sample)
        selected = [selected[position] for position in sorted(positions)]
    if question_set.gold_is_names:
        selected = list(map(_keep_gold_names, selected))
    if configuration.standalone:
        selected = make_standalone_questions(selected)
    selected = selected[:limit]
    if not selected:
        raise InputError(
            f"the file of {question_set.title} has no question that this experiment asks",
            hint=f"replace it by the set from {question_set.origin}",
        )
    return selected


def _keep_gold_names(question: BenchQuestion) -> BenchQuestion:
    """Return a question whose gold answers are the names that its file has, if it has nothing else."""
    if question.answers is not None or question.sparql or not question.answer_labels:
        return question
    return question.model_copy(update={"answers": question.answer_labels})


# --- the figures


@dataclass(frozen=True)
class Measurement:
    """What was measured of one configuration on one question set."""

    set_name: str
    configuration: str
    model: str
    rows: Sequence[BenchRow] = field(repr=False)
    stand_in: StandIn | None = None
    config: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """The configuration of its results folder; empty if it is not known."""
    day: str = ""
    """The day of its last result, in UTC: "2026-01-31"; "" if it is not known."""

    @property
    def has_scores_alone(self) -> bool:
        """Whether the rows have no answers and gold, as in what kgwb brings (``measured/``)."""
        return not any("gold" in row for row in self.rows)

    def estimate(self, measure: str) -> Estimate | None:
        """Return the mean of a measure over questions, with its 95 % bootstrap interval; None if no row has it.

        Scores are from 0 to 1. Costs are the mean of a question, in the unit of the row's field.
        """
        if measure in MEASURES and not self.has_scores_alone:
            return QuestionGroup("all", self.rows).estimate(measure)
        amounts = []
        for row in self.rows:
            if measure in row:
                amounts.append(float(cast("Mapping[str, Any]", row)[measure]))
        if not amounts:
            return None
        return estimate_mean(amounts)


def make_experiment_table(
    paper: Paper, experiment: Experiment, measurements: Sequence[Measurement]
) -> ReportTable:
    """Return the paper's table with our measurements in a column beside its own.

    There is a row for each question set, measure and configuration, with the published figure and
    ours, which has its interval. A figure that is not known is "–".
    """
    measured = {}
    for measurement in measurements:
        measured[measurement.set_name, measurement.configuration] = measurement
    headers = ["questions", "measure", "configuration", f"published, {paper.model}", "here"]
    rows = []
    for set_name in experiment.sets:
        for position, measure in enumerate(experiment.measures):
            for configuration in experiment.configurations:
                ours = measured.get((set_name, configuration.name))
                row = [
                    paper.sets[set_name].title,
                    LABELS[measure],
                    configuration.name,
                    _format_published(experiment, configuration, set_name, position),
                    _format_measured(ours, measure, paper.scale),
                ]
                rows.append(row)
    return ReportTable(headers, rows)


def make_experiment_chart(
    paper: Paper, experiment: Experiment, measurements: Sequence[Measurement]
) -> Chart:
    """Return the figure of an experiment: the published figures, and ours with their intervals.

    There is a panel for each measure, and a pair of bars for each question set and configuration.
    Where the paper prints no number, ours stand alone. The caption is that of the table.
    """
    measured = {}
    for measurement in measurements:
        measured[measurement.set_name, measurement.configuration] = measurement
    set_names = [name for name in experiment.sets if any(name == key[0] for key in measured)]
    panels = []
    for position, measure in enumerate(experiment.measures):
        categories = []
        published: list[Bar | None] = []
        ours: list[Bar | None] = []
        factor = paper.scale if measure in MEASURES else 1
        for set_name in set_names:
            for configuration in experiment.configurations:
                title = paper.sets[set_name].title
                categories.append(_name_bars(experiment, set_names, title, configuration))
                figures = configuration.published.get(set_name)
                published.append(Bar(*3 * [figures[position]]) if figures else None)
                own = measured.get((set_name, configuration.name))
                estimate = own.estimate(measure) if own else None
                bar = Bar(*(factor * number for number in estimate)) if estimate else None
                ours.append(bar)
        series = [Series("here", ours)]
        if any(row.published for row in experiment.configurations):
            series.insert(0, Series(f"published, {paper.model}", published))
        panels.append(Panel(LABELS[measure], categories, series))
    title = f"{paper.paper}, {experiment.where}"
    return Chart(title, make_caption(paper, experiment, measurements), panels)


def _name_bars(
    experiment: Experiment,
    set_names: Sequence[str],
    set_title: str,
    configuration: Configuration,
) -> str:
    """Return the label of a pair of bars: the question set, the configuration, or both if there are several."""
    if len(experiment.configurations) == 1:
        return set_title
    if len(set_names) == 1:
        return configuration.name
    return f"{set_title}: {configuration.name}"


def make_list_table(folder: Path) -> ReportTable:
    """Return a table of all experiments: name, place in the paper, what it is, and what is at hand.

    Question sets are looked for in ``folder``. Of an experiment that cannot be repeated the table
    says so.
    """
    rows = []
    for paper_name, paper in load_papers().items():
        for experiment in paper.experiments:
            name = f"{paper_name}.{experiment.id}"
            at_hand = describe_availability(paper, experiment, folder)
            rows.append((name, experiment.where, experiment.title, at_hand))
    return ReportTable(("experiment", "where", "what", "question sets"), rows)


def describe_availability(paper: Paper, experiment: Experiment, folder: Path) -> str:
    """Return how many of an experiment's question sets are in a folder: "2 of 3 question sets at hand".

    Of an experiment that cannot be repeated, return just that.
    """
    if experiment.cannot:
        return "cannot be repeated"
    there = 0
    for name in experiment.sets:
        there += find_question_file(paper.sets[name], folder) is not None
    return f"{there} of {pluralize(len(experiment.sets), 'question set')} at hand"


def make_kinds_table(
    paper: Paper, experiment: Experiment, measurements: Sequence[Measurement]
) -> ReportTable:
    """Return a table of our figures by kind of question, which has no row if the experiment has no kinds.

    There is a row for each measurement and measure, and a column for each kind.
    """
    headers = ["questions", "measure", "configuration", *experiment.kinds]
    rows: list[list[str]] = []
    if not experiment.kinds:
        return ReportTable(headers, rows)
    for measurement in measurements:
        for measure in experiment.measures:
            title = paper.sets[measurement.set_name].title
            row = [title, LABELS[measure], measurement.configuration]
            for kind in experiment.kinds:
                of_kind = [each for each in measurement.rows if each.get("type") == kind]
                part = replace(measurement, rows=of_kind) if of_kind else None
                row.append(_format_measured(part, measure, paper.scale))
            rows.append(row)
    return ReportTable(headers, rows)


def make_others_table(paper: Paper, experiment: Experiment) -> ReportTable:
    """Return a table of the paper's other rows, which kgwb does not measure: other systems and models.

    There is a column for each question set and measure; a figure that the paper lacks is "–".
    """
    headers = ["system"]
    for set_name in experiment.sets:
        for measure in experiment.measures:
            headers.append(f"{paper.sets[set_name].title}, {LABELS[measure]}")
    rows = []
    for other in experiment.others:
        row = [other.name]
        for set_name in experiment.sets:
            for position in range(len(experiment.measures)):
                row.append(_format_published(experiment, other, set_name, position))
        rows.append(row)
    return ReportTable(headers, rows)


def make_asked_table(experiment: Experiment) -> ReportTable:
    """Return a table of the questions that a paper prints, with the authors' verdicts; without any it has no rows."""
    rows = [(asked.id, asked.question, asked.verdict) for asked in experiment.asked]
    return ReportTable(("id", "question", "published"), rows)


def _format_published(
    experiment: Experiment, row: PublishedRow, set_name: str, position: int
) -> str:
    """Return the figure at a position of a row that the paper prints for a set, as text; "–" if it has none.

    All figures of a measure have as many decimals as the paper prints for it.
    """
    figures = row.published.get(set_name)
    if not figures:
        return "–"
    return f"{figures[position]:.{_count_decimals(experiment, position)}f}"


def _count_decimals(experiment: Experiment, position: int) -> int:
    """Return the largest number of decimals of the published figures of a measure."""
    most = 0
    for row in (*experiment.configurations, *experiment.others):
        for figures in row.published.values():
            text = f"{figures[position]:.6f}".rstrip("0")
            most = max(most, len(text.partition(".")[2]))
    return most


def _format_measured(measurement: Measurement | None, measure: str, scale: float) -> str:
    """Return the mean of a measure with its interval, as text: "85.1 [80.2, 89.0]"; "–" without one.

    A score is multiplied by ``scale``, that of the paper's table.
    """
    estimate = measurement.estimate(measure) if measurement else None
    if estimate is None:
        return "–"
    factor = scale if measure in MEASURES else 1
    digits = 3 if factor == 1 else 1
    value, low, high = (f"{factor * number:.{digits}f}" for number in estimate)
    return f"{value} [{low}, {high}]"


def list_differences(
    paper: Paper, experiment: Experiment, measurements: Sequence[Measurement]
) -> Iterator[str]:
    """Yield a sentence for everything that differs from the paper's set-up: the model, the questions, and more.

    First come the sentences of ``list_measured_differences``, then what the experiment itself
    lists.
    """
    yield from list_measured_differences(paper, measurements)
    yield from experiment.differs


def list_measured_differences(paper: Paper, measurements: Sequence[Measurement]) -> Iterator[str]:
    """Yield a sentence for each model, and for each set with other questions than the paper's.

    A set with questions that do not count, since they have no gold, has a sentence of its own.
    """
    models = dict.fromkeys(measurement.model for measurement in measurements)
    for model in models:
        yield f"The model here is {model}; the paper's is {paper.model}."
    titles: dict[tuple[str, str], dict[str, None]] = {}  # configurations of a set have one reason
    for measurement in measurements:
        question_set = paper.sets[measurement.set_name]
        reason = _why_incomparable(question_set, measurement)
        if reason:
            count = pluralize(len(measurement.rows), "question")
            titles.setdefault((count, reason), {})[question_set.title] = None
    for (count, reason), titles_of_reason in titles.items():
        each = " each" if len(titles_of_reason) > 1 else ""
        yield f"{'; '.join(titles_of_reason)}: {count}{each}{reason}"
    yield from dict.fromkeys(_describe_missing_gold(paper, measurements))


def _describe_missing_gold(paper: Paper, measurements: Sequence[Measurement]) -> Iterator[str]:
    """Yield a sentence for each measurement with questions that have no gold."""
    for measurement in measurements:
        count = 0
        for row in measurement.rows:
            count += row.get("gold", ()) is None
        if count:
            title = paper.sets[measurement.set_name].title
            verb = "has" if count == 1 else "have"
            yield f"{title}: {pluralize(count, 'question')} {verb} no gold answer here, and no score."


def _why_incomparable(question_set: QuestionSet, measurement: Measurement) -> str:
    """Return how the questions that were asked differ from the paper's; "" if they do not.

    It goes on with a sentence that begins with their number.
    """
    if measurement.stand_in:
        return (
            f", {measurement.stand_in.reason}. "
            "They are not those of the paper, so the figures are not comparable."
        )
    if len(measurement.rows) != question_set.questions:
        return f" of the paper's {question_set.questions:,}, so the figures are not comparable."
    return ""


def describe_measurements(paper: Paper, measurements: Sequence[Measurement]) -> str:
    """Return a sentence with what our figures were measured with, and when: a part of a caption.

    It has system, profile, models, the days, and the version of kgwb with a fingerprint of all
    set-ups. Without a known configuration it has the first three.
    """
    models = ", ".join(dict.fromkeys(measurement.model for measurement in measurements))
    text = f"Measured with system {paper.system}, profile {paper.profile}, model {models}"
    configs = [measurement.config for measurement in measurements if measurement.config]
    days = sorted({measurement.day for measurement in measurements if measurement.day})
    if days:
        period = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
        text += f", {period}"
    if configs:
        versions = ", ".join(dict.fromkeys(str(config.get("kgwb")) for config in configs))
        text += f", kgwb {versions}, set-up {fingerprint_setups(configs)}"
    return f"{text}."


def make_caption(paper: Paper, experiment: Experiment, measurements: Sequence[Measurement]) -> str:
    """Return the caption of an experiment's table or figure: what it is, the set-up, and what differs."""
    title = f"{paper.paper}, {experiment.where}: {experiment.title}."
    if not measurements:
        return title
    differences = list_differences(paper, experiment, measurements)
    return " ".join([title, describe_measurements(paper, measurements), *differences])


def render_experiment(
    paper: Paper, experiment: Experiment, measurements: Sequence[Measurement]
) -> str:
    """Render the page of an experiment as a complete HTML document.

    It has the paper's table with our column, our figures by kind of question, the paper's other
    rows, and all that differs.
    """
    return render_template(
        "study/templates/experiment.html",
        title=f"{paper.paper}, {experiment.where}",
        style=Html(load_style()),
        experiment=experiment,
        table=make_experiment_table(paper, experiment, measurements).render(),
        kinds=make_kinds_table(paper, experiment, measurements).render(),
        others=make_others_table(paper, experiment).render(),
        setup=describe_measurements(paper, measurements),
        differences=list(list_differences(paper, experiment, measurements)),
        unit="in per cent" if paper.scale == 100 else "from 0 to 1",
    )
