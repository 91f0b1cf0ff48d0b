"""Questions asked again after a change: what is asked, what it takes, and what became of them."""

import json
import shutil
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from commands import DENIS, FILMS_QUESTIONS, bench, retries, retry

import kgwb
from kgwb import llm
from kgwb.bench import Benchmark, BenchSetup, Report, Results, load_prices, load_questions
from kgwb.bench.comparisons import ResultsComparison, make_grid_table
from kgwb.bench.figures import LoadedResults
from kgwb.bench.lab import CostEstimate, RetryExperiment
from kgwb.bench.questions import BenchQuestion
from kgwb.bench.results import read_results
from kgwb.errors import BenchmarkStoppedError, InputError, ModelUnreachableError
from kgwb.kg import Graph, sample_path
from kgwb.kg.embeddings import Embeddings
from kgwb.llm.base import ChatModel, ChatReply, ChatRequest
from kgwb.run.prompts import Prompts
from kgwb.run.store import find_store

QIR = "chatty_kg/qir"
PRICES = load_prices()
Capture = pytest.CaptureFixture[str]


class Counting(ChatModel):
    """The baseline, counted by task; ``change`` may put another reply in its place."""

    remote = False
    name = "rules"

    def __init__(
        self, change: Callable[[ChatRequest, dict[str, Any]], dict[str, Any]] | None = None
    ) -> None:
        self.calls: Counter[str] = Counter()
        self.change, self.rules = change, llm.model("rules", embeddings=Embeddings("lexical"))

    def complete(
        self, request: ChatRequest, kg: Graph | None, cancel: threading.Event
    ) -> ChatReply:
        self.calls[request.task] += 1
        reply = self.rules.complete(request, kg, cancel)
        if self.change is None:
            return reply
        return ChatReply(json.dumps(self.change(request, json.loads(reply.text))), model=self.name)


bench_films = partial(bench, questions=FILMS_QUESTIONS)


@pytest.fixture(scope="module")
def graph() -> Graph:
    return kgwb.open_kg("films")


@pytest.fixture(scope="module")
def questions() -> list[BenchQuestion]:
    return load_questions(sample_path("films").with_suffix(".questions.jsonl"))


@pytest.fixture(scope="module")
def measured_once(
    tmp_path_factory: pytest.TempPathFactory, graph: Graph, questions: list[BenchQuestion]
) -> Path:
    """The 60 questions of films, measured with every run kept."""
    folder = tmp_path_factory.mktemp("lab") / "first"
    measure(folder, graph, Counting(), questions, save_runs=True)
    return folder


@pytest.fixture
def measured(measured_once: Path, tmp_path: Path) -> Path:
    """The same, with a store of calls of its own: models of other tests have the same name."""
    folder = tmp_path / "first"
    shutil.copytree(measured_once, folder)
    return folder


def edited(words: str = "Take care.") -> Prompts:
    return Prompts().with_text(QIR, f"{Prompts().text(QIR)}\n{words}\n")


def model_that_asks(relation: str, is_other: Callable[[str], bool]) -> Counting:
    """The baseline, with another relation in all triples of a question whose prompt is so."""

    def change(request: ChatRequest, reply: dict[str, Any]) -> dict[str, Any]:
        if request.task == QIR and is_other(request.messages[-1].content):
            reply["triples"] = [{**triple, "predicate": relation} for triple in reply["triples"]]
        return reply

    return Counting(change)


def compare(before: Path, after: Path) -> ResultsComparison:
    return ResultsComparison(LoadedResults.read(before), LoadedResults.read(after))


def write_prompt(words: str = "Take care.") -> Path:
    """Write the folder of prompts "mine" with a changed prompt."""
    path = Path("mine", f"{QIR}.md")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{Prompts().text(QIR)}\n{words}\n")
    return path


def measure(
    folder: Path, graph: Graph, model: ChatModel, questions: list[BenchQuestion], **how: Any
) -> None:
    workbench = kgwb.Workbench(graph, model, embeddings=Embeddings("lexical"))
    setup = BenchSetup.from_workbench(workbench)
    Benchmark(setup, Results(folder, setup.to_config(questions)), **how).run(questions)


@pytest.fixture
def ask_again(measured: Path, graph: Graph, tmp_path: Path) -> Any:
    """Asks questions again with the changed prompt, in the folder again, and compares them."""

    def ask(model: ChatModel, *selectors: str, **how: Any) -> ResultsComparison:
        lab = RetryExperiment(measured, kg=graph, model=model)
        chosen = lab.choose_questions(selectors)
        lab.ask_again(lab.make_setup(edited()), chosen, tmp_path / "again", **how)
        return compare(measured, tmp_path / "again")

    return ask


def test_only_the_changed_agent_is_asked_again_and_what_its_changed_results_change(
    measured: Path, graph: Graph, tmp_path: Path
) -> None:
    rows = {row["id"]: row for row in read_results(measured)[1]}
    model = model_that_asks(
        "music written by", lambda text: "Take care." in text and "Who directed Arrival?" in text
    )
    lab = RetryExperiment(measured, kg=graph, model=model)
    setup, chosen = lab.make_setup(edited()), lab.choose_questions(["all"])
    estimate = lab.estimate_cost(setup, chosen, prices=PRICES)
    assert not model.calls
    lab.ask_again(setup, chosen, tmp_path / "again")
    after = LoadedResults.read(tmp_path / "again")
    assert len(rows) == len(after.rows) == 60
    assert model.calls == {QIR: 60, "chatty_kg/predicate_selection": 1}
    assert estimate.calls[0] == 60 <= sum(model.calls.values()) <= estimate.calls[1]
    assert sum(row["paid"]["model_calls"] for row in after.rows.values()) == 61
    changes = compare(measured, tmp_path / "again").changes
    [broken] = [change for change in changes if change.outcome == "broken"]
    assert (broken.before["id"], broken.agent) == ("films-001", "qir")


def test_an_agent_that_matters_is_named_with_the_earlier_turn_that_was_answered_otherwise(
    ask_again: Any, measured: Path, tmp_path: Path
) -> None:
    """Later turns would be filed under "context", which only hands on what was answered."""

    def is_other(text: str) -> bool:
        return "Take care." in text and ("Who directed Stalker?" in text or "based on" in text)

    effect = ask_again(model_that_asks("composer", is_other), "dialogue=films-stalker")
    changes = {}
    for change in effect.changes:
        turn = change.earlier_turn["id"] if change.earlier_turn else None
        assert change.first_difference is not None
        if change.outcome == "broken":
            assert change.agent == "qir"
            changes[change.before["id"]] = (change.first_difference.key, turn)
    assert changes == {
        "films-stalker-1": ("qir", None),
        "films-stalker-2": ("context", "films-stalker-1"),
        "films-stalker-3": ("qir", "films-stalker-2"),
    }
    assert set(effect.by_agent) == {"qir"}
    [line] = [line for line in effect.summary_lines() if "When did he die?" in line]
    assert "3 questions" in line
    report = Report(measured, tmp_path / "again")
    page = "".join(report.render_changes(lambda results, change: "a question"))
    assert "after another answer to: Who directed Stalker?" in page


def test_the_turns_of_a_dialogue_without_a_name_are_replayed_from_the_store(
    graph: Graph, questions: list[BenchQuestion], tmp_path: Path
) -> None:
    turns = []
    for question in questions:
        if question.dialogue == "films-stalker":
            turns.append(question.model_copy(update={"dialogue": ""}))
    measure(tmp_path, graph, Counting(), turns)
    lab = RetryExperiment(tmp_path, kg=graph)
    for question in turns:
        assert len(lab.load_run(question).dialogue.turns) == question.turn - 1


def test_lost_questions_are_asked_and_as_many_that_were_right_with_the_turns_before(
    measured: Path, graph: Graph
) -> None:
    lab = RetryExperiment(measured, kg=graph)
    chosen, all_rows = lab.choose_questions(), lab.earlier_results.rows
    missed = {key for key, row in all_rows.items() if row["f1"] < 1}
    ids = {question.id for question in chosen}
    assert missed < ids and len(ids) >= 2 * len(missed) == 22
    for question in chosen:
        assert question.turn < 2 or f"{question.id[:-1]}{question.turn - 1}" in ids
    wrong = {key for key in missed if all_rows[key]["answers"]}
    with_earlier = {"films-women-1", "films-women-2"}
    asked = {q.id for q in lab.choose_questions(["wrong", "films-001"])}
    assert "films-women-3" in wrong and asked == {"films-001", *with_earlier, *wrong}
    assert {q.id for q in lab.choose_questions(["films-women-2"])} == with_earlier
    assert all(
        question.type == "count"
        for question in lab.choose_questions(["type=count"])
        if not question.turn
    )
    with pytest.raises(InputError, match="'blamed=qir'"):
        lab.choose_questions(["blamed=qir"])


def test_an_id_is_not_taken_for_a_selector_nor_the_other_way_round(
    graph: Graph, tmp_path: Path
) -> None:
    right = BenchQuestion(id="lost", question="Who directed Arrival?", answers=(DENIS,))
    second = right.model_copy(update={"id": "2", "answers": ("nobody",)})
    third = second.model_copy(update={"id": "3", "dialogue": "", "turn": 1})
    odd = [right, second, third]
    measure(tmp_path, graph, Counting(), odd)
    experiment = RetryExperiment(tmp_path, kg=graph)

    def ids(selector: str) -> list[str]:
        return [question.id for question in experiment.choose_questions([selector])]

    assert (ids("lost"), ids("id=lost")) == (["2", "3"], ["lost"])
    assert (ids("2"), ids("id=2"), ids("3")) == (["2"], ["2"], ["3"])


def test_a_setup_without_a_change_is_refused(measured: Path, graph: Graph) -> None:
    with pytest.raises(InputError, match="nothing was changed"):
        RetryExperiment(measured, kg=graph).make_setup()
    with pytest.raises(InputError, match="measured on another"):
        RetryExperiment(measured, kg="cars")


def test_a_question_that_comes_out_otherwise_once_is_told_from_one_that_is_broken(
    ask_again: Any, tmp_path: Path
) -> None:
    asked: Counter[str] = Counter()

    def is_other(text: str) -> bool:
        asked[text] += 1
        is_odd = "Who directed Arrival?" in text and asked[text] == 1
        return "Take care." in text and (is_odd or "How long is Seven Samurai?" in text)

    model = model_that_asks("composer", is_other)
    chosen = ["films-001", "films-005", "films-027", "films-002", "films-003"]
    ask_again(model, *chosen)
    assert model.calls[QIR] == 5
    effect = ask_again(model, *chosen, repeats=3)  # what was asked once is asked more often
    rows = LoadedResults.read(tmp_path / "again").rows
    repeated = {id_ for id_, row in rows.items() if "asks" in row}
    outcome_by_id = {change.before["id"]: change.outcome for change in effect.changes}
    odd, broken = "films-001", "films-005"
    assert "Seven Samurai" in rows[broken]["question"]
    assert repeated == {odd, broken}
    assert (outcome_by_id[odd], outcome_by_id[broken]) == ("varies by itself", "broken")
    for id_, name, scores in (
        (odd, "asks", [0, 1, 1]),
        (odd, "asks_before", [1, 1, 1]),
        (broken, "asks", [0, 0, 0]),
    ):
        assert [each["f1"] for each in rows[id_][name]] == scores
    text = "\n".join(effect.summary_lines())
    assert "4 of 4 times before, 2 of 4 after" in text
    assert "-0.200" in text


def test_a_retry_of_older_results_keeps_what_was_done_before_a_setting_was_added(
    tmp_path: Path, graph: Graph, questions: list[BenchQuestion]
) -> None:
    """Triad's setting ``relation_examples`` is on by default, and was not there before."""
    folder = tmp_path / "older"
    workbench = kgwb.Workbench(graph, "rules", system="triad", embeddings=Embeddings("lexical"))
    setup = BenchSetup.from_workbench(workbench)
    Benchmark(setup, Results(folder, setup.to_config(questions[:1]))).run(questions[:1])
    config = folder / "config.json"
    data = json.loads(config.read_text(encoding="utf-8"))
    del data["settings"]["relation_examples"]
    config.write_text(json.dumps(data), encoding="utf-8")
    setup = RetryExperiment(folder, kg=graph).make_setup(typed_settings={"theta": "5"})
    changed: Any = setup.settings
    assert (changed.theta, changed.relation_examples) == (5, False)


# --- errors are not the change's


def test_a_server_that_goes_away_breaks_nothing_and_its_questions_are_asked_again(
    measured: Path, graph: Graph, tmp_path: Path
) -> None:
    model = Counting()
    is_down = threading.Event()

    def reply_or_fail(request: ChatRequest, reply: dict[str, Any]) -> dict[str, Any]:
        if is_down.is_set() and request.task == QIR:
            raise ModelUnreachableError("the server refuses the connection")
        return reply

    model.change = reply_or_fail
    experiment = RetryExperiment(measured, kg=graph, model=model)
    setup = experiment.make_setup(edited())
    questions = experiment.choose_questions(["all"])
    folder = tmp_path / "again"
    experiment.ask_again(setup, questions[:10], folder)
    is_down.set()
    with pytest.raises(BenchmarkStoppedError, match="the server refuses the connection"):
        experiment.ask_again(setup, questions, folder)
    comparison = compare(measured, folder)
    assert len(read_results(folder)[1]) == 15
    assert (comparison.counts["broken"], comparison.counts["ended in an error"]) == (0, 5)
    text = "\n".join(comparison.summary_lines())
    assert "5 questions" in text and "the server refuses the connection" in text
    assert "+0.000 [+0.000, +0.000]" in text
    is_down.clear()
    asked_before = model.calls[QIR]
    experiment.ask_again(setup, questions, folder)
    assert model.calls[QIR] - asked_before == 50
    after = LoadedResults.read(folder)
    assert [row["error"] for row in after.rows.values()] == [None] * 60


def test_a_retry_says_that_a_file_must_be_named_again(here: Path, capsys: Capture) -> None:
    Path("own.py").write_text(
        "from kgwb.build import Answer, System\n"
        "def answer(question, dialogue, run):\n"
        "    return Answer('list', reason='nothing')\n"
        "SYSTEM = System('own', answer, [])\n"
    )
    Path("script.py").write_text("SCRIPT = {}\n")
    assert bench_films("--limit", "2", "--system", "./own.py", "--model", "scripted:script.py") == 0
    again = ["--set", "theta=2"]
    for missing in "--system", "--model":
        capsys.readouterr()
        assert retry(*again) == 2
        assert missing in capsys.readouterr().err
        again += ["--system", "./own.py"]
    assert retry(*again, "--model", "scripted:script.py") == 0


def test_prompts_that_were_measured_stay_unless_others_are_given(
    here: Path, capsys: Capture
) -> None:
    prompts = write_prompt()
    assert bench_films("--limit", "4", "--save-runs", "--prompts", "mine") == 0
    prompts.unlink()  # the file is gone; the saved runs have its text
    capsys.readouterr()
    assert retry("--only", "all", "--set", "theta=1") == 0
    lines = capsys.readouterr().out.splitlines()
    changes = [line.strip() for line in lines if " and is now " in line]
    assert changes == ["settings theta was 3 and is now 1"]
    [folder] = retries()
    measured, retried = (read_results(path)[0]["prompts"] for path in (Path("r"), folder))
    assert retried == measured
    write_prompt("Take more care.")
    assert retry("--only", "all", "--prompts", "mine") == 0
    text = capsys.readouterr().out
    assert f"prompts {QIR} was " in text and "theta" not in text


@pytest.mark.parametrize("each", [["theta=1", "theta=2"], ["theta=3"]])
def test_a_matrix_of_one_thing_twice_or_of_what_was_measured_is_refused(
    here: Path, each: list[str]
) -> None:
    assert bench_films("--limit", "2") == 0
    assert retry(*(part for text in each for part in ("--each", text))) == 2
    assert not retries()


def test_prompts_and_models_are_a_grid_with_effects_of_either_and_of_both(
    here: Path, capsys: Capture
) -> None:
    """The second model errs without the changed prompt, and the first with it."""
    write_prompt()
    script = """
import json, threading
from kgwb import llm, open_kg
RULES = llm.model("rules")
def SCRIPT(request):
    reply = json.loads(RULES.complete(request, open_kg("films"), threading.Event()).text)
    if request.task == "chatty_kg/qir" and ("Take care." in request.messages[-1].content) == ERRS:
        reply["triples"] = [{**triple, "predicate": "composer"} for triple in reply["triples"]]
    return json.dumps(reply)
"""
    for name, errs in (("one", "True"), ("two", "False")):
        Path(f"{name}.py").write_text(script.replace("ERRS", errs))
    assert bench_films("--limit", "4", "--save-runs", "--model", "scripted:one.py") == 0
    matrix = ["--each", "prompts=measured,mine", "--each", "model=scripted:one.py,scripted:two.py"]
    # What was asked under another name is named as it is asked for now
    alone = ["--only", "all", "--prompts", "mine"]
    assert retry(*alone, "--model", "scripted:one.py") == 0
    capsys.readouterr()
    assert retry("--only", "all", *matrix) == 0
    out, err = capsys.readouterr()
    assert "A: r; B: prompts=mine" in out
    assert "prompts=measured, model=scripted:one.py: this is what was measured" in out
    assert err.count("kgwb keep") == 2 and "prompts=measured" not in err
    report = Report("r", *sorted(retries(), reverse=True))
    grid = make_grid_table(report.comparisons)
    assert grid.headers == ("F1", "scripted:one.py", "scripted:two.py")
    assert grid.caption.startswith("A: r; B: prompts=mine")
    [first, with_model], [with_prompts, with_both] = [row[1:] for row in grid.rows]
    f1 = report.results[0].groups["all"].mean_scores.f1
    lost = [cell.split(", ")[:2] for cell in map(str, (with_model, with_prompts))]
    assert first == f"{f1:.3f}, measured first" and lost[0] == lost[1]
    effect = float(lost[0][1])
    assert effect < 0
    assert with_both == (
        f"{f1:.3f}, +0.000, no answer differs, n 4; {-2 * effect:+.3f} beyond the sum of both alone"
    )
    assert str(grid) in out and "Prompts and models" in report._repr_html_()
    assert make_grid_table(report.comparisons[-1:]).rows == ()


def test_a_model_that_answers_the_same_call_otherwise_is_said_to_have_changed(
    measured: Path, graph: Graph, questions: list[BenchQuestion], tmp_path: Path
) -> None:
    updated = model_that_asks("composer", lambda text: "Who directed Arrival?" in text)
    for name, model in (("same", Counting()), ("updated", updated)):
        measure(tmp_path / name, graph, model, questions[:3], save_runs=True)
    assert compare(measured, tmp_path / "same").remarks == []
    [remark] = compare(measured, tmp_path / "updated").remarks
    assert remark.startswith("1 question: ") and "(qir)" in remark
    assert "temperature 0" in Report(measured, tmp_path / "updated")._repr_html_()


def test_another_version_behind_a_model_s_name_is_said(
    graph: Graph, questions: list[BenchQuestion], tmp_path: Path
) -> None:
    class Served(Counting):
        def __init__(self, version: str) -> None:
            super().__init__()
            self.version = version

        def complete(
            self, request: ChatRequest, kg: Graph | None, cancel: threading.Event
        ) -> ChatReply:
            return replace(super().complete(request, kg, cancel), fingerprint=self.version)

    for folder, version in (("a", "fp_1"), ("b", "fp_1"), ("c", "fp_2")):
        measure(tmp_path / folder, graph, Served(version), questions[:2])
    measure(tmp_path / "a", graph, Served("fp_9"), questions[:2], repeats=2)
    first, same, other = (LoadedResults.read(tmp_path / name) for name in "abc")
    assert first.served_models == {"rules": ["fp_1", "fp_9"]}
    remark, _alike = first.model_remarks
    assert "fp_1, fp_9" in remark and "fp_9" in Report(tmp_path / "a")._repr_html_()
    assert same.model_remarks == []
    assert ResultsComparison(first, same).remarks == []
    [remark] = ResultsComparison(same, other).remarks
    assert remark == "rules is another version now: fp_2; it was fp_1"


def test_an_estimate_does_not_need_the_tokens_that_a_server_did_not_report(
    measured: Path, graph: Graph
) -> None:
    lab = RetryExperiment(measured, kg=graph, model=Counting())

    def estimate() -> CostEstimate:
        asked = lab.choose_questions(["films-001"])
        return lab.estimate_cost(lab.make_setup(edited()), asked, prices=PRICES)

    known = estimate()
    assert known.tokens == (0, 0) and "about 0 tokens" in str(known)
    half = {"calls": 1, "uncounted_calls": 1, "prompt_tokens": 0, "completion_tokens": 5}
    lab.earlier_results.rows["films-001"]["models"] = {"openai:large": half}
    shutil.rmtree(measured / "runs")
    find_store(measured).unlink()
    part = estimate()
    assert part.tokens is None and "an unknown number of tokens" in str(part)
