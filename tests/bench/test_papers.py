"""The papers' experiments: what is listed holds together, and each runs whole on an excerpt.

An excerpt has five questions over the sample films, in the form in which the set was published.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from commands import rows

from kgwb import open_kg
from kgwb.bench import load_questions
from kgwb.bench.papers import (
    LABELS,
    Configuration,
    Experiment,
    Measurement,
    Paper,
    QuestionFile,
    QuestionSet,
    find_experiment,
    find_question_file,
    list_differences,
    load_measured,
    load_papers,
    make_experiment_table,
    make_kinds_table,
    select_questions,
)
from kgwb.bench.questions import BenchQuestion, add_gold_answers
from kgwb.cli import main
from kgwb.cli.experiment import ExperimentCommand
from kgwb.errors import InputError
from kgwb.kg import sample_path
from kgwb.run import systems

Capture = pytest.CaptureFixture[str]
FILMS = load_questions(sample_path("films").with_suffix(".questions.jsonl"))
ASKED = [question for question in FILMS if question.hops == 1 and question.dialogue is None][:5]
CONVERSATIONS = sample_path("films").with_suffix(".conversations.jsonl")
BATCHES = sample_path("wikidata_slice").with_suffix(".batches.jsonl")
EXCERPT_REPLIES = Path(__file__).with_name("excerpt_replies.py")
DOCS = Path(__file__).parents[2] / "docs"
EXPERIMENTS = [
    (name, paper, experiment)
    for name, paper in load_papers().items()
    for experiment in paper.experiments
]
REPEATABLE = list(
    {
        (name, experiment.sets, experiment.measures): pytest.param(
            f"{name}.{experiment.id}", paper, experiment, id=f"{name}.{experiment.id}"
        )
        for name, paper, experiment in EXPERIMENTS
        if not experiment.cannot
    }.values()
)
"""An experiment for each choice of sets and measures."""


def values_of(question: BenchQuestion) -> list[dict[str, Any]]:
    """The gold answers of a question with their labels, as the sets on Freebase name their parts."""
    pairs = zip(question.answers or (), question.answer_labels, strict=True)
    return [
        {"answer_id": iri, "AnswerArgument": iri, "answer_argument": iri, "answer": label}
        for iri, label in pairs
    ]


def qald(question: BenchQuestion) -> dict[str, Any]:
    languages = ("en", "de", "pt", "hi", "fr", "nl", "it")
    cells = [{"x": {"type": "uri", "value": iri}} for iri in question.answers or ()]
    return {
        "id": question.id,
        "question": [{"language": tag, "string": question.question} for tag in languages],
        "query": {"sparql": question.sparql},
        "answers": [{"head": {"vars": ["x"]}, "results": {"bindings": cells}}],
    }


def on_freebase(question: BenchQuestion) -> dict[str, Any]:
    """An entry that has the fields of CWQ, WebQSP, WebQuestions, GrailQA and LC-QuAD 1.0."""
    labels = "".join(f'(description "{label}")' for label in question.answer_labels)
    answers = values_of(question)
    return {
        **dict.fromkeys(("_id", "ID", "qid", "QuestionId"), question.id),
        **dict.fromkeys(("question", "utterance", "RawQuestion"), question.question),
        **dict.fromkeys(("sparql", "sparql_query"), question.sparql),
        **{"answers": answers, "answer": answers, "targetValue": f"(list {labels})", "url": ""},
        "Parses": [{"Sparql": question.sparql, "Answers": answers}],
    }


DISTINCT = {
    "test-data.json": ("_id", "question", "sparql_query"),
    "WebQSP.test.json": ("QuestionId", "RawQuestion", "Parses"),
    "ComplexWebQuestions_test.json": ("ID", "question", "sparql", "answers"),
    "webquestions.examples.test.json": ("utterance", "targetValue", "url"),
    "grailqa_v1.0_dev.json": ("qid", "question", "answer", "sparql_query"),
}
"""The fields of an entry, by the name of the file of the set."""
MARKS = {
    "test-data.json": "intermediary_question",
    "ComplexWebQuestions_test.json": "compositionality_type",
}
METAQA = """who directed [Arrival]\tDenis Villeneuve
who directed [Sicario]\tDenis Villeneuve
who directed the films starring [Amy Adams]\tDenis Villeneuve
who starred in the films directed by the director of [Arrival]\tZendaya|Ryan Gosling
who directed [Parasite]\tBong Joon-ho"""


def excerpt(name: str) -> object:
    """The content of a file of a set with this name: five questions."""
    if name in DISTINCT:
        entries = []
        for entry in map(on_freebase, ASKED):
            fields = {field: entry[field] for field in DISTINCT[name]}
            entries.append(fields | ({MARKS[name]: "x"} if name in MARKS else {}))
        return {"Questions": entries} if name == "WebQSP.test.json" else entries
    if "dialogues" in name:
        texts = [question.question for question in ASKED]
        queries = [question.sparql for question in ASKED]
        return {"data": [{"dialogue": texts, "original": texts, "queries": queries}]}
    return {"questions": list(map(qald, ASKED))}


def write_excerpt(question_set: QuestionSet, folder: Path) -> None:
    path = folder / question_set.file
    path.parent.mkdir(parents=True, exist_ok=True)
    is_text = path.suffix == ".txt"
    path.write_text(METAQA if is_text else json.dumps(excerpt(path.name)))


# --- what is listed


def test_every_paper_has_its_experiments_with_settings_that_its_system_has() -> None:
    papers = load_papers()
    assert set(papers) == {"chatty_kg", "dog", "ragonite", "robodata", "triad"}
    for paper in papers.values():
        for question_set in paper.sets.values():
            stand_in = question_set.stand_in
            assert paper.graphs.keys() >= {question_set.graph, stand_in and stand_in.graph} - {None}
    for _, paper, experiment in EXPERIMENTS:
        system = systems.load_system(paper.system)
        assert experiment.cannot or (experiment.configurations and paper.cost is not None)
        assert paper.sets.keys() >= {*experiment.sets}
        assert LABELS.keys() >= {*experiment.measures}
        for row in (*experiment.configurations, *experiment.others):
            assert {*experiment.sets} >= row.published.keys()
            assert all(len(each) == len(experiment.measures) for each in row.published.values())
        for configuration in experiment.configurations:
            for name in experiment.sets:
                changes = {**paper.sets[name].settings, **configuration.settings}
                system.settings.of_profile(paper.profile, **changes)


@pytest.mark.parametrize(("name", "said"), [("dog.table9", "dog.figure3"), ("cat.t", "chatty_kg")])
def test_an_unknown_experiment_is_named_with_those_that_there_are(name: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        find_experiment(name)
    assert said in caught.value.hint


# --- what kgwb has measured itself


MEASURED = [
    pytest.param(f"{name}.{experiment.id}", paper, experiment, id=f"{name}.{experiment.id}")
    for name, paper, experiment in EXPERIMENTS
    if any(set_name.startswith("metaqa") for set_name in experiment.sets)
]


@pytest.mark.parametrize(("name", "paper", "experiment"), MEASURED)
def test_each_experiment_on_metaqa_comes_with_what_rules_scores_on_the_dev_split(
    name: str, paper: Paper, experiment: Experiment, capsys: Capture
) -> None:
    measurements = load_measured(name)
    parts = {(each.set_name, each.configuration) for each in measurements}
    assert parts == {
        (set_name, row.name) for set_name in experiment.sets for row in experiment.configurations
    }
    for measurement in measurements:
        assert measurement.model == "rules"
        assert measurement.stand_in == paper.sets[measurement.set_name].stand_in is not None
        assert len({row["id"] for row in measurement.rows}) == 500
        assert measurement.config["settings"]["profile"] == paper.profile
        assert "source" not in measurement.config
        assert set(measurement.rows[0]) == {"id", "error", *experiment.measures}
    table = make_experiment_table(paper, experiment, measurements)
    assert not [row for row in table.rows if row[4] == "–"]
    if name == "dog.table1_metaqa":
        assert main(["experiment", name]) == 0
        out = capsys.readouterr().out
        assert "dev split" in out and "not comparable" in out
        assert all(str(row[4]) in out for row in table.rows)
    page = (DOCS / "how-to" / "my-paper.md").read_text(encoding="utf-8")
    if experiment.where.startswith("Table"):
        for row in table.rows:
            cells = (experiment.where, row[0], row[2], row[3], row[4])
            assert f"| {' | '.join(map(str, cells))} |" in page


@pytest.mark.long
@pytest.mark.parametrize(("name", "paper", "experiment"), MEASURED)
def test_what_is_kept_of_metaqa_is_what_rules_scores_today(
    name: str,
    paper: Paper,
    experiment: Experiment,
    metaqa: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("KGWB_EMBEDDINGS")
    command = ExperimentCommand(
        name=name, model="rules", data=metaqa.parent, out=tmp_path, limit=10
    )
    measured = command.measure(paper, experiment)
    [measure] = experiment.measures
    for kept, today in zip(load_measured(name), measured, strict=True):
        assert (kept.set_name, kept.configuration) == (today.set_name, today.configuration)
        first = {row["id"]: row[measure] for row in kept.rows[:10]}
        assert first == {row["id"]: row[measure] for row in today.rows}
        assert kept.config["embeddings"] == today.config["embeddings"]
        # A setting that came later may be missing; the scores above are those of today all the same.
        assert kept.config["settings"].items() <= today.config["settings"].items()


# --- what is asked


def test_a_sample_is_the_same_each_time_and_keeps_the_order() -> None:
    questions = [BenchQuestion(id=str(n), question=f"{n}?") for n in range(50)]
    question_set = QuestionSet(title="", questions=9, file="f", origin="", graph="g", sample=9)
    row = Configuration(name="x", settings={})
    selected = select_questions(questions, question_set, None, row)
    positions = [int(question.id) for question in selected]
    assert len(positions) == 9
    assert positions == sorted(positions) != list(range(9))
    assert selected == select_questions(questions, question_set, None, row)
    assert select_questions(questions, question_set, None, row, 3) == selected[:3]


def test_what_is_not_as_in_the_paper_is_said() -> None:
    paper, experiment = find_experiment("dog.table1_metaqa")
    stand_in = paper.sets["metaqa-1"].stand_in
    assert stand_in is not None
    measurements = [
        Measurement("metaqa-1", "DoG", "openai:m", [{}] * 500, stand_in),  # type: ignore[list-item]
        Measurement("metaqa-2", "DoG", "openai:m", [{}] * 7),  # type: ignore[list-item]
    ]
    model, first, second, *others = list_differences(paper, experiment, measurements)
    assert "openai:m" in model and "GPT-3.5" in model
    assert stand_in.reason in first
    assert "7 questions of the paper's 500" in second
    assert tuple(others) == experiment.differs
    paper, experiment = find_experiment("triad.table3")
    gold = [["a"]] * 149 + [None]
    answered = [{"gold": each, "answers": ["a"], "error": None} for each in gold]
    measurement = Measurement("qald-9", "the whole system", "m", answered)
    sentences = list(list_differences(paper, experiment, [measurement]))
    assert [text for text in sentences if "1 question" in text and "no gold" in text]


def test_gold_that_a_set_only_names_stays_names_where_the_paper_compares_names() -> None:
    paper, experiment = find_experiment("dog.table1_freebase")
    named = BenchQuestion(id="1", question="?", answer_labels=("Dune", "207"))
    known = BenchQuestion(id="2", question="?", answers=("a",), answer_labels=("Dune",))
    row = experiment.configurations[0]
    kept = select_questions([named, known], paper.sets["webquestions"], None, row)
    assert [question.answers for question in kept] == [("Dune", "207"), ("a",)]
    looked_up = select_questions([named], paper.sets["webqsp"], None, row)
    assert looked_up == [named]


def test_questions_that_people_judged_are_listed_with_their_verdicts(capsys: Capture) -> None:
    _, experiment = find_experiment("robodata.batches")
    assert main(["experiment", "robodata.batches"]) == 0
    out = capsys.readouterr().out
    for asked in experiment.asked:
        [line] = [each for each in out.splitlines() if each.startswith(f"{asked.id} ")]
        assert asked.question in line and line.endswith(asked.verdict)
    asked_here = {question.id: question.question for question in load_questions(BATCHES)}
    for asked in experiment.asked:
        assert asked.question == asked_here.get(asked.id, asked.question)


def test_the_questions_of_robodata_are_asked_over_the_slice_that_kgwb_brings(
    tmp_path: Path,
) -> None:
    for name, count in (("batches", 9), ("consistency", 1)):
        paper, experiment = find_experiment(f"robodata.{name}")
        question_set = paper.sets[experiment.sets[0]]
        file = find_question_file(question_set, tmp_path)
        assert file is not None and file.graph == "wikidata_slice"
        questions = load_questions(file.path)
        row = experiment.configurations[0]
        selected = select_questions(questions, question_set, file.stand_in, row)
        assert len(selected) == count
    assert [question.question for question in selected] == ["What is the capital of Canada?"]
    seeds = {row.settings["seed"] for row in experiment.configurations}
    assert len(seeds) == len(experiment.configurations) == 5


# --- the command


def test_the_list_says_what_is_at_hand(tmp_path: Path, capsys: Capture) -> None:
    paper, _ = find_experiment("dog.table1_metaqa")
    write_excerpt(paper.sets["metaqa-2"], tmp_path)
    assert main(["experiment", "--data", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    [line] = [line for line in lines if line.startswith("  dog.table1_metaqa ")]
    assert line.endswith("1 of 3 question sets at hand")
    assert len([line for line in lines if line.startswith("  ")]) == len(EXPERIMENTS)


def test_what_cannot_be_repeated_says_why(capsys: Capture) -> None:
    assert main(["experiment", "ragonite.runtimes", "--model", "rules"]) == 2
    assert "not published" in capsys.readouterr().err


def test_a_missing_set_or_graph_is_named_with_its_origin(tmp_path: Path, capsys: Capture) -> None:
    command = ["experiment", "triad.table2", "--model", "rules", "--data", str(tmp_path)]
    paper, _ = find_experiment("triad.table2")
    for options, said in (
        ([], "triad.table2"),
        (["--sets", "yago"], "https://github.com/CoDS-GCS/KGQAn"),
        ([], "--graph yago="),  # its questions are at hand now
        (["--configuration", "none"], "'none'"),
        (["--sets", "mars"], "lc-quad-1, qald-9, yago"),
        (["--sets", ""], "no question set ''"),
    ):
        assert main([*command, *options]) == 2
        assert said in capsys.readouterr().err
        if options:
            write_excerpt(paper.sets["yago"], tmp_path)


@pytest.mark.long
@pytest.mark.parametrize(("name", "paper", "experiment"), REPEATABLE)
def test_an_experiment_runs_whole_on_excerpts_and_resumes(
    name: str, paper: Paper, experiment: Experiment, here: Path
) -> None:
    command = ["experiment", name, "--model", f"scripted:{EXCERPT_REPLIES}", "--data", "."]
    for set_name in experiment.sets:
        write_excerpt(paper.sets[set_name], here)
        command += ["--graph", f"{paper.sets[set_name].graph}=films"]
    assert main([*command, "--limit", "2"]) == 0
    folder = Path("experiments", name)
    begun = {path.parent: rows(path.parent) for path in folder.glob("*/results.jsonl")}
    assert main(command) == 0
    assert len(begun) == len(experiment.sets) * len(experiment.configurations)
    answered = 0
    for part, first in begun.items():
        asked = rows(part)
        assert asked[:2] == first and len(asked) == 5  # the first were not asked again
        assert not [row["id"] for row in asked if row["gold"] is None]
        answered += sum(bool(row["answers"]) for row in asked)
    # RAGonite and RoboData have no rules. The replies that tests/bench/test_section4.py has are RAGonite's.
    assert answered > 0 or paper.system in ("ragonite", "robodata")
    page = (folder / "experiment.html").read_text(encoding="utf-8")
    for configuration in experiment.configurations:
        assert configuration.name in page
        for figures in configuration.published.values():
            assert f"{figures[0]:g}" in page
    assert main(command) == 0
    assert (folder / "experiment.html").read_text(encoding="utf-8") == page


def test_our_figures_stand_in_the_scale_of_the_paper() -> None:
    row = {"gold": ["a"], "answers": ["a"], "error": None}
    for name, question_set, figures in (
        ("triad.table3", "qald-9", ["0.416", "1.000 [1.000, 1.000]"]),
        ("dog.table2_metaqa", "metaqa-2", ["96.6", "100.0 [100.0, 100.0]"]),
    ):
        paper, experiment = find_experiment(name)
        measured = Measurement(question_set, "the whole system", "m", [row])  # type: ignore[list-item]
        table = make_experiment_table(paper, experiment, [measured])
        assert [row[3:] for row in table.rows if row[4] != "–"] == [figures]
    paper, experiment = find_experiment("chatty_kg.cost")  # with the decimals that the paper prints
    figures = [row[3] for row in make_experiment_table(paper, experiment, ()).rows]
    assert figures == ["3.38", "2173", "51.5"]


# --- RAGonite, section 4: conversations that kgwb brings


@pytest.mark.parametrize(("file", "graph"), [(CONVERSATIONS, "films"), (BATCHES, "wikidata_slice")])
def test_the_gold_of_questions_that_kgwb_brings_follows_from_their_queries(
    file: Path, graph: str
) -> None:
    questions = load_questions(file)
    without_gold = []
    for question in questions:
        without_gold.append(question.model_copy(update={"answers": None, "answer_labels": ()}))
    found = add_gold_answers(without_gold, open_kg(graph))
    for question, computed in zip(questions, found, strict=True):
        assert computed.answers is not None, computed.gold_error
        assert sorted(question.answers or ()) == sorted(computed.answers), question.id
        labels = computed.answer_labels or computed.answers
        assert sorted(question.answer_labels) == sorted(labels), question.id
        assert question.answers, question.id


def test_conversations_that_kgwb_brings_stand_in_unless_the_papers_own_are_at_hand(
    tmp_path: Path,
) -> None:
    paper, _ = find_experiment("ragonite.section4")
    question_set = paper.sets["conversations"]
    assert find_question_file(question_set, tmp_path) == QuestionFile(
        CONVERSATIONS, question_set.stand_in, "films"
    )
    write_excerpt(question_set, tmp_path)
    own = find_question_file(question_set, tmp_path)
    assert own is not None
    assert (own.path.parent, own.stand_in, own.graph) == (tmp_path, None, "bmw")


def test_figures_by_kind_are_of_the_questions_of_this_kind() -> None:
    paper, experiment = find_experiment("ragonite.section4")
    answered = [
        {"type": "lookup", "gold": ["a"], "answers": ["a"], "error": None},
        {"type": "complex", "gold": ["a"], "answers": ["b"], "error": None},
    ]
    measurement = Measurement("conversations", "SQL only", "m", answered)
    [row] = make_kinds_table(paper, experiment, [measurement]).rows
    assert row[2:] == ["SQL only", "100.0 [100.0, 100.0]", "0.0 [0.0, 0.0]", "–"]
    paper, experiment = find_experiment("triad.table3")
    assert make_kinds_table(paper, experiment, [measurement]).rows == []
