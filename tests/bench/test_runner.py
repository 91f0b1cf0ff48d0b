"""A benchmark that is stopped, resumed, and kept apart from others."""

import json
import pickle
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import commands
import pytest
import rdflib
from commands import write_lines, write_questions
from rdflib import URIRef
from small import CHATTY, DIRECTED, asked, films, workbench

from kgwb import profile
from kgwb.bench.cost import summarize_costs
from kgwb.bench.figures import LoadedResults, make_quality_table
from kgwb.bench.metrics import group_questions
from kgwb.bench.questions import BenchQuestion
from kgwb.bench.report import render_question_table
from kgwb.bench.results import (
    CONFIG_FILE,
    RESULTS_FILE,
    BenchRow,
    Results,
    find_run_file,
    lock_folder,
    read_results,
)
from kgwb.bench.runner import Benchmark, BenchSetup
from kgwb.errors import InputError, ModelUnreachableError
from kgwb.kg import open_kg
from kgwb.kg.embeddings import Embeddings
from kgwb.llm import ChatReply, ChatRequest, Message, Scripted
from kgwb.run import Run, System, agent
from kgwb.run.answers import Answer, Dialogue, Value
from kgwb.run.prompts import Prompts

EX = "http://example.org/"
GRAPH = """
@prefix : <http://example.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:arrival rdfs:label "Arrival" ; :director :villeneuve ; :year 2016 .
:dune rdfs:label "Dune" ; :director :villeneuve .
:villeneuve rdfs:label "Denis Villeneuve" ; :birthPlace :trois .
:trois rdfs:label "Trois-Rivières" .
"""
SECOND: dict[str, Any] = {"dialogue": "d", "turn": 2}
QUESTIONS = [
    BenchQuestion(
        id="1", question="director of Arrival", answers=(EX + "villeneuve",), hops=1, type="list"
    ),
    BenchQuestion(id="2", question="year of Arrival", answers=("2016", "2017"), hops=1),
    BenchQuestion(id="3", question="director of Atlantis", answers=()),
    BenchQuestion(id="d2", question="birthPlace of him", answers=(EX + "trois",), hops=1, **SECOND),
    BenchQuestion(
        id="d1", question="director of Dune", answers=(EX + "villeneuve",), dialogue="d", turn=1
    ),
]


@agent("lookup")
def lookup(question: str, dialogue: Dialogue, run: Run) -> Answer:
    """Answers "RELATION of LABEL", where "him" is who was answered last, after a model call for show."""
    run.chat(ChatRequest("toy/lookup", (Message("user", question),)))
    relation, _, label = question.partition(" of ")
    label = dialogue.turns[-1].answers[0] if label == "him" else label
    rows = run.kg.select(f'SELECT ?o {{ ?s ?label "{label}" ; <{EX}{relation}> ?o }}').rows
    names = run.kg.names([term for (term,) in rows if isinstance(term, URIRef)])
    return Answer("list", tuple(Value(term, names.get(term, str(term))) for (term,) in rows))  # type: ignore[arg-type,call-overload]


TOY = System("toy", lambda question, dialogue, run: lookup(question.text, dialogue, run), (lookup,))


def setup(model: Scripted | None = None, **settings: object) -> BenchSetup:
    graph = open_kg(rdflib.Graph().parse(data=GRAPH, format="turtle"))
    models = {"": model or Scripted(lambda request: "ok")}
    return BenchSetup(
        graph, TOY, models, profile("fast", **settings), Prompts(), Embeddings("lexical")
    )


def bench(
    folder: Path,
    given: BenchSetup | None = None,
    questions: list[BenchQuestion] = QUESTIONS,
    **how: Any,
) -> list[BenchRow]:
    given = given or setup()
    return Benchmark(given, Results(folder, given.to_config()), **how).run(questions)


def lines(folder: Path) -> list[BenchRow]:
    return [json.loads(line) for line in (folder / RESULTS_FILE).read_text().splitlines()]


TIMES = ("seconds", "model_seconds", "stages", "stage_model_seconds")
"""The fields of a row that differ from run to run."""


def timeless(rows: list[BenchRow]) -> list[BenchRow]:
    without_times = []
    for row in rows:
        without_times.append({name: row[name] for name in row if name not in TIMES})
    return sorted(without_times, key=lambda row: row["id"])


# --- what is written


def test_a_row_has_exactly_these_fields(tmp_path: Path) -> None:
    row, *_, turn = bench(tmp_path)[1:4]
    # The toy does not name its stages.
    assert row["stages"] == {"other": row["seconds"]}
    assert row["stage_model_seconds"] == {"other": row["model_seconds"]}
    assert 0 < row["model_seconds"] < row["seconds"]
    [row] = timeless([row])
    assert (turn["dialogue"], turn["turn"]) == ("d", 2)
    assert turn["remembered"]["question"] == "birthPlace of him"
    tokens = {"prompt_tokens": 0, "completion_tokens": 0}
    ones = "precision hits1 mrr hit5 paper_precision hit_any hit_substring"
    assert row == {
        **{"id": "2", "hops": 1, "question": "year of Arrival", "words": 3},
        **{"answers": ["2016"], "gold": ["2016", "2017"], "error": None},
        **{"recall": 0.5, "f1": 2 / 3, "exact": 0.0, "lenient": 2 / 3},
        **dict.fromkeys(ones.split(), 1.0),
        **{"model_calls": 1, "queries": 1, "models": {"scripted": {"calls": 1, **tokens}}},
        # The toy names no queries
        **{"executed_queries": 0, "answer_queries": [], "support_predicates": [], **tokens},
    }
    assert timeless(lines(tmp_path)) == timeless(bench(tmp_path))


@agent("listing")
def list_films(run: Run) -> Answer:
    """All films, by one query that the answer names."""
    query = f"SELECT ?film {{ ?film <{EX}director> ?person }}"
    films = [film for (film,) in run.kg.select(query).rows]
    values = tuple(Value(film, str(film)) for film in films if isinstance(film, URIRef))
    return Answer("list", values, queries=(query,))


LISTING = System("listing", lambda question, dialogue, run: list_films(run), (list_films,))


@pytest.mark.parametrize(("row_limit", "cut_rows"), [(1, 1), (10_000, None)])
def test_a_row_and_the_report_say_that_a_limit_cut_the_result(
    tmp_path: Path, row_limit: int, cut_rows: int | None
) -> None:
    graph = open_kg(rdflib.Graph().parse(data=GRAPH, format="turtle"), row_limit=row_limit)
    given = replace(setup(), kg=graph, system=LISTING)
    question = BenchQuestion(id="1", question="Which films are there?", answers=(EX + "dune",))
    bench(tmp_path / "out", given, [question])
    [row] = lines(tmp_path / "out")
    assert row.get("cut_rows") == cut_rows
    results = LoadedResults.read(tmp_path / "out")
    table = make_quality_table([results])
    is_cut = cut_rows is not None
    assert ("cut results" in table.headers) is is_cut
    assert not is_cut or {cells[-1] for cells in table.rows} == {1}
    assert ("1 from a result that a limit cut" in results.headline) is is_cut
    shown = str(render_question_table([results], lambda *_: None))
    assert ("cut at 1 row" in shown) is is_cut


def test_answers_of_own_knowledge_are_marked_if_they_are_allowed(tmp_path: Path) -> None:
    [row, *_] = bench(tmp_path, setup(own_knowledge=True))
    assert row["source"] == "the graph"
    parts = [group.name for group in group_questions([row, {**row, "source": "own knowledge"}])]
    assert parts[-2:] == ["source own knowledge", "source the graph"]


def test_a_question_without_gold_is_not_scored_and_an_empty_one_is_an_error(tmp_path: Path) -> None:
    asked = [
        BenchQuestion(id="1", question="director of Arrival"),
        BenchQuestion(id="2", question=" "),
    ]
    row, empty = bench(tmp_path, questions=asked)
    assert (row["answers"], row["gold"], "f1" in row) == ([EX + "villeneuve"], None, False)
    assert "empty" in empty["error"]


# --- other executors


@contextmanager
def dask() -> Iterator[Executor]:
    from distributed import Client

    options = {"n_workers": 1, "threads_per_worker": 2, "dashboard_address": ":0"}
    with Client(processes=False, **options) as client, client.get_executor() as pool:
        yield pool


@pytest.mark.parametrize(
    "executor",
    [
        lambda: ThreadPoolExecutor(3),
        pytest.param(
            lambda: ProcessPoolExecutor(2, mp_context=get_context("spawn")), marks=pytest.mark.long
        ),
        dask,
    ],
)
def test_any_executor_asks_the_same(tmp_path: Path, executor: Any) -> None:
    """Other processes make the set-up anew from its recipe; the lines are written here."""
    with executor() as pool:
        folder = tmp_path / "executor"
        rows = bench(folder, BenchSetup.from_factory(setup), executor=pool, save_runs=True)
        assert pool.submit(len, "it is left open").result() == 15
    assert timeless(rows) == timeless(bench(tmp_path / "threads", save_runs=True))
    assert timeless(rows) == timeless(lines(folder))
    assert Run.load(folder / rows[0]["run"], TOY).go().answer


def test_a_setup_is_sent_by_its_factory_and_must_be_the_same_there() -> None:
    with pytest.raises(InputError, match="processes") as complaint:
        pickle.dumps(setup())
    assert "BenchSetup.from_factory" in complaint.value.hint
    with pytest.raises(InputError, match="settings theta"):
        pickle.loads(pickle.dumps(replace(setup(theta=2), factory=setup)))


# --- everything needed to repeat it


def test_the_configuration_has_all_that_is_needed_to_repeat_it(tmp_path: Path) -> None:
    given = setup(Scripted({}, name="one"))
    Results(tmp_path, given.to_config(QUESTIONS))
    config, rows = read_results(tmp_path)
    assert rows == []
    assert {"kgwb", "kg", "system", "models", "embeddings", "prompts", "settings"} < {*config}
    assert {"python", "rdflib", "pyoxigraph", "torch", "openai"} < {*config["versions"]}
    assert config["questions"]["count"] == len(QUESTIONS)
    assert config["questions"] != given.to_config(QUESTIONS[1:])["questions"]
    assert "chatty_kg/rephraser" in replace(given, system=CHATTY).to_config()["prompts"]


def test_rows_of_earlier_versions_are_read(tmp_path: Path) -> None:
    bench(tmp_path)
    new = "stages prompt_tokens completion_tokens models remembered dialogue turn"
    old = []
    for row in lines(tmp_path):
        old.append({name: row[name] for name in row if name not in new.split()})
    write_lines(tmp_path / RESULTS_FILE, old)
    ids = [question.id for question in QUESTIONS]
    assert bench(tmp_path) == sorted(old, key=lambda row: ids.index(row["id"]))
    assert read_results(tmp_path)[1] == old
    assert summarize_costs(old)["seconds"].questions == len(old)


def test_reading_a_folder_changes_nothing_in_it(tmp_path: Path) -> None:
    bench(tmp_path)
    with (tmp_path / RESULTS_FILE).open("ab") as file:
        file.write(b'{"id": "1')
    torn = (tmp_path / RESULTS_FILE).read_bytes()
    assert len(read_results(tmp_path)[1]) == len(QUESTIONS)
    assert (tmp_path / RESULTS_FILE).read_bytes() == torn
    with pytest.raises(InputError, match="elsewhere"):
        read_results(tmp_path / "elsewhere")


def test_the_first_queries_of_a_process_may_be_parallel() -> None:
    code = """
import sys, threading
from kgwb.kg.sparql import validate_query
sys.setswitchinterval(1e-5)
queries = [f"SELECT ?x{number} {{ <http://example.org/a> ?p ?x{number} }}" for number in range(4)]
threads = [threading.Thread(target=validate_query, args=(query,)) for query in queries]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")


# --- what goes wrong


def test_a_question_that_fails_is_written_and_the_others_go_on(tmp_path: Path) -> None:
    def fails_for_dune(request: ChatRequest) -> str | Exception:
        return ModelUnreachableError("no route") if "Dune" in request.messages[0].content else "ok"

    rows = {row["id"]: row for row in bench(tmp_path, setup(Scripted(fails_for_dune)))}
    assert (rows["d1"]["error"], rows["d1"]["f1"], rows["1"]["f1"]) == ("no route", 0.0, 1.0)
    assert "cut_rows" not in rows["d1"]
    assert rows["d2"]["error"].startswith(
        "IndexError"
    )  # the toy has a bug: nobody was answered before
    results = Results(tmp_path, setup().to_config())
    results.drop_errors()
    assert [row["f1"] for row in Benchmark(setup(), results).run(QUESTIONS)][-2:] == [1.0, 1.0]


@pytest.mark.parametrize("tokens", [2**63, -1])
def test_a_result_that_could_not_be_read_again_is_an_error_of_its_row(
    tmp_path: Path, tokens: int
) -> None:
    def odd_for_dune(request: ChatRequest) -> ChatReply:
        return ChatReply("ok", prompt_tokens=tokens if "Dune" in request.messages[0].content else 1)

    bench(tmp_path, setup(Scripted(odd_for_dune)))
    assert read_results(tmp_path)[1][0]["f1"] == 1.0
    again = bench(tmp_path, setup(Scripted(odd_for_dune)))
    [error] = [row["error"] for row in again if row["error"]]
    assert "prompt_tokens" in error


def test_after_a_kill_in_the_middle_of_a_line_the_rest_is_asked_and_the_results_are_equal(
    tmp_path: Path,
) -> None:
    whole = bench(tmp_path / "whole")
    written = (tmp_path / "whole" / RESULTS_FILE).read_bytes()
    for end in (10, len(written) // 2, len(written) - 1):
        folder, model = tmp_path / str(end), Scripted(lambda request: "ok")
        bench(folder, questions=[])
        (folder / RESULTS_FILE).write_bytes(written[:end])
        assert timeless(bench(folder, setup(model))) == timeless(whole)
        assert len(lines(folder)) == len(QUESTIONS)
        assert model.call_count() == len(QUESTIONS) - written[:end].count(b"\n")


def test_results_of_another_setup_or_of_other_questions_are_refused(tmp_path: Path) -> None:
    bench(tmp_path)
    changed = rdflib.Graph().parse(data=GRAPH.replace("Dune", "Tenet"), format="turtle")
    other = [BenchQuestion(id="1", question="year of Dune", answers=())]
    for given, questions, said in (
        (setup(theta=1), QUESTIONS, "theta was 3"),
        (setup(Scripted({}, name="other")), QUESTIONS, "'scripted' .* 'other'"),
        (replace(setup(), kg=films()), QUESTIONS, "the graph of .* is not that of"),
        (replace(setup(), kg=open_kg(changed)), QUESTIONS, "the graph .* has changed since"),
        (setup(), other, "id '1'"),
    ):
        with pytest.raises(InputError, match=said):
            bench(tmp_path, given, questions)


@pytest.mark.parametrize(
    ("name", "text"),
    [*((CONFIG_FILE, text) for text in ("[]", "[" * 200_000)), (RESULTS_FILE, "{}\n")],
)
def test_a_damaged_folder_is_named(tmp_path: Path, name: str, text: str) -> None:
    bench(tmp_path)
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=name):
        bench(tmp_path)


def test_a_folder_that_is_a_file_or_that_another_benchmark_writes_to(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="file"):
        bench(tmp_path / "file")
    with lock_folder(tmp_path / "out"), pytest.raises(InputError, match="another benchmark"):
        lock_folder(tmp_path / "out").__enter__()
    with lock_folder(tmp_path / "out"):
        pass


def test_any_id_has_a_file_and_a_fingerprint(tmp_path: Path) -> None:
    ids = ["x" * 400, "x" * 401, "ä" * 100, "\ud800", "a/../b", "plain"]
    asked = [BenchQuestion(id=id_, question="director of \ud800") for id_ in ids]
    given = setup()
    prints = {given.to_config([one])["questions"]["fingerprint"] for one in asked}
    assert len(prints) == len(ids)
    bench(tmp_path / "out", given, asked, save_runs=True)
    files = [tmp_path / "out" / row["run"] for row in read_results(tmp_path / "out")[1]]
    assert len({*files}) == len(ids)
    assert all(file.is_file() and len(file.stem.encode()) <= 150 for file in files)
    assert files[-1].name == "plain.jsonl"


@pytest.mark.parametrize("wanted", [True, False])
def test_an_answer_whose_run_cannot_be_saved_is_kept_until_a_later_run_can_be(
    tmp_path: Path, wanted: bool
) -> None:
    (tmp_path / "runs").write_text("in the way")
    with pytest.raises(InputError, match="cannot write"):
        bench(tmp_path, save_runs=True)
    [row] = lines(tmp_path)
    assert (row["id"], row["answers"], row["run"]) == ("1", [EX + "villeneuve"], "")
    (tmp_path / "runs").unlink()
    model = Scripted(lambda request: "ok")
    for _ in range(2):
        rows = bench(tmp_path, setup(model), save_runs=wanted)
        assert [find_run_file(tmp_path, row) is not None for row in rows] == [wanted] * len(
            QUESTIONS
        )
        assert model.call_count() < len(QUESTIONS)  # at least the first was answered


@pytest.mark.parametrize("failure", [ModelUnreachableError("no route"), "no JSON"])
@pytest.mark.parametrize("damaged", [False, True])
def test_a_question_that_is_asked_again_continues_its_saved_run(
    tmp_path: Path, failure: str | Exception, damaged: bool
) -> None:
    selection, kg = "chatty_kg/predicate_selection", films()
    questions = [BenchQuestion(id="1", question="Who directed Arrival?", answers=(EX + "denis",))]
    outcomes = []
    for reply in (failure, failure, DIRECTED[selection]):
        model = Scripted({**DIRECTED, selection: reply})
        how: Any = {"settings": profile("fast", theta=1), "embeddings": Embeddings("lexical")}
        given = BenchSetup.from_workbench(workbench(model, kg, **how))
        results = Results(tmp_path, given.to_config())
        results.drop_errors()
        [row] = Benchmark(given, results, save_runs=True).run(questions)
        outcomes.append((row["f1"], dict(asked(model))))
        if damaged:
            path = tmp_path / row["run"]
            path.write_text(path.read_text().replace('"key"', '"kex"'))
    again = {"predicate_selection": 1}
    assert outcomes == [(0, {"qir": 1, **again}), (0, again), (1, again)]


# --- in the terminal


@pytest.mark.usefixtures("here")
def test_dialogues_and_their_questions_asked_alone_in_one_go(
    capsys: pytest.CaptureFixture[str],
) -> None:
    second = {"question": "When was he born?", "answers": ["1967-10-03"], **SECOND}
    second["standalone"] = "When was Atlantis born?"  # so that F1 differs
    write_questions({"dialogue": "d", "turn": 1}, second, {"answers": ["nobody"]})
    assert commands.bench("--retention") == 0
    assert "150.00 %" in capsys.readouterr().out
    alone = {row["id"]: row["question"] for row in read_results("r/standalone")[1]}
    assert alone == {"1": "Who directed Arrival?", "2": "When was Atlantis born?"}
