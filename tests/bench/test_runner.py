"""A benchmark that is stopped, resumed, and kept apart from others."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import rdflib
from rdflib import Literal, URIRef

from kgwb.bench.metrics import groups, table
from kgwb.bench.questions import BenchQuestion, conversations, read_questions, term_string
from kgwb.bench.results import CONFIG, RESULTS, Results, Row, locked
from kgwb.bench.runner import Bench, Setup
from kgwb.embeddings import Embeddings
from kgwb.errors import InputError, ModelUnreachableError
from kgwb.flow import Answer, Dialogue, Question, Term, Turn, Value
from kgwb.kg import open_kg
from kgwb.llm import ChatRequest, Message, Scripted
from kgwb.prompts import Prompts
from kgwb.run import Run, agent, spec_of
from kgwb.settings import Settings

EX = "http://example.org/"
GRAPH = """
@prefix : <http://example.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:arrival rdfs:label "Arrival" ; :director :villeneuve ; :year 2016 .
:dune rdfs:label "Dune" ; :director :villeneuve .
:villeneuve rdfs:label "Denis Villeneuve" ; :birthPlace :trois .
:trois rdfs:label "Trois-Rivières" .
"""
QUESTIONS = [
    BenchQuestion(id="1", question="director of Arrival", answers=(EX + "villeneuve",), hops=1, type="list"),
    BenchQuestion(id="2", question="year of Arrival", answers=("2016", "2017"), hops=1),
    BenchQuestion(id="3", question="director of Atlantis", answers=()),
    BenchQuestion(
        id="d2", question="birthPlace of him", answers=(EX + "trois",), dialogue="d", turn=2, hops=1
    ),
    BenchQuestion(id="d1", question="director of Dune", answers=(EX + "villeneuve",), dialogue="d", turn=1),
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


class Toy:
    name = "toy"
    agents = (spec_of(lookup),)

    def answer(self, question: Question, dialogue: Dialogue, run: Run) -> Answer:
        return lookup(question.text, dialogue, run)

    def turn(self, run: Run) -> Turn:
        return Turn(run.question, run.answer.labels if run.answer else ())


def setup(model: Scripted | None = None, **settings: object) -> Setup:
    graph = open_kg(rdflib.Graph().parse(data=GRAPH, format="turtle"))
    models = {"": model or Scripted(lambda request: "ok")}
    return Setup(graph, Toy(), models, Settings().changed(**settings), Prompts(), Embeddings("lexical"))


def bench(
    folder: Path, given: Setup | None = None, questions: list[BenchQuestion] = QUESTIONS, **how: int
) -> list[Row]:
    given = given or setup()
    return Bench(given, Results(folder, given.config()), **how).run(questions)  # type: ignore[arg-type]


def lines(folder: Path) -> list[Row]:
    return [json.loads(line) for line in (folder / RESULTS).read_text().splitlines()]


def timeless(rows: list[Row]) -> list[Row]:
    return sorted(({**row, "seconds": 0} for row in rows), key=lambda row: row["id"])


# --- what is written


def test_a_line_has_exactly_these_fields(tmp_path: Path) -> None:
    row = bench(tmp_path)[1]
    assert isinstance(row.pop("seconds"), float)
    assert row == {
        "id": "2",
        "hops": 1,
        "question": "year of Arrival",
        "answers": ["2016"],
        "gold": ["2016", "2017"],
        "precision": 1.0,
        "recall": 0.5,
        "f1": 2 / 3,
        "hits1": 1.0,
        "model_calls": 1,
        "queries": 1,
        "error": None,
    }
    assert timeless(lines(tmp_path)) == timeless(bench(tmp_path))


def test_answers_of_own_knowledge_are_told_apart_where_they_are_allowed(tmp_path: Path) -> None:
    [row, *_] = bench(tmp_path, setup(own_knowledge=True))
    assert row["source"] == "the graph"
    assert "source the graph" in table(groups([row, {**row, "source": "own knowledge"}]))
    assert "source own knowledge" in table(groups([row, {**row, "source": "own knowledge"}]))


def test_the_turns_of_a_dialogue_are_asked_in_order_with_what_was_answered(tmp_path: Path) -> None:
    rows = {row["id"]: row for row in bench(tmp_path)}
    assert rows["d2"]["answers"] == [EX + "trois"]
    assert [row["id"] for row in lines(tmp_path)][-2:] == ["d1", "d2"]


def test_right_and_withheld_answers_of_an_unanswerable_question(tmp_path: Path) -> None:
    assert bench(tmp_path)[2]["f1"] == 1.0


@pytest.mark.parametrize("workers", [1, 4])
def test_side_by_side_gives_the_same(tmp_path: Path, workers: int) -> None:
    rows = bench(tmp_path, workers=workers)
    assert [row["f1"] for row in rows] == [1.0, pytest.approx(2 / 3), 1.0, 1.0, 1.0]
    assert len(lines(tmp_path)) == 5


def test_the_first_queries_of_a_process_may_come_side_by_side() -> None:
    code = """
import sys, threading
from kgwb.kg.sparql import check
sys.setswitchinterval(1e-5)
queries = [f"SELECT ?x{number} {{ <http://example.org/a> ?p ?x{number} }}" for number in range(4)]
threads = [threading.Thread(target=check, args=(query,)) for query in queries]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(check("ASK { ?s ?p ?o }"))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("ask\n", "")


def test_runs_are_saved_where_asked_for(tmp_path: Path) -> None:
    bench(tmp_path, save_runs=True)
    saved = Run.load(tmp_path / "runs" / "1.jsonl", Toy()).go()
    assert saved.answer is not None and saved.answer.labels == ("Denis Villeneuve",)


# --- what goes wrong


def test_a_question_that_fails_is_written_and_the_others_go_on(tmp_path: Path) -> None:
    def fails_for_dune(request: ChatRequest) -> str | Exception:
        return ModelUnreachableError("no route") if "Dune" in request.messages[0].content else "ok"

    rows = {row["id"]: row for row in bench(tmp_path, setup(Scripted(fails_for_dune)))}
    assert (rows["d1"]["error"], rows["d1"]["f1"], rows["1"]["f1"]) == ("no route", 0.0, 1.0)
    assert rows["d2"]["error"].startswith("IndexError")  # the toy has a bug: nobody was answered before
    results = Results(tmp_path, setup().config())
    results.retry_errors()
    assert [row["f1"] for row in Bench(setup(), results).run(QUESTIONS)][-2:] == [1.0, 1.0]


def test_an_empty_question_is_an_error_of_its_own_line(tmp_path: Path) -> None:
    [row] = bench(tmp_path, questions=[BenchQuestion(id="1", question=" ", answers=())])
    assert row["error"] == "the question is empty"
    assert row["f1"] == 0.0


def test_after_a_kill_in_the_middle_of_a_line_the_rest_is_asked_and_the_results_are_equal(
    tmp_path: Path,
) -> None:
    whole = bench(tmp_path / "whole")
    written = (tmp_path / "whole" / RESULTS).read_bytes()
    for end in (0, 10, len(written) // 2, len(written) - 1):
        folder = tmp_path / str(end)
        bench(folder, questions=[])
        (folder / RESULTS).write_bytes(written[:end])
        assert timeless(bench(folder)) == timeless(whole)
        assert len(lines(folder)) == len(QUESTIONS)


def test_resuming_asks_only_what_is_missing_and_earlier_turns_for_their_answers(tmp_path: Path) -> None:
    bench(tmp_path)
    kept = [row for row in lines(tmp_path) if row["id"] != "d2"]
    (tmp_path / RESULTS).write_text("".join(json.dumps(row) + "\n" for row in kept))
    model = Scripted(lambda request: "ok")
    bench(tmp_path, setup(model))
    assert [request.messages[0].content for request in model.requests] == [
        "director of Dune",
        "birthPlace of him",
    ]
    assert [row["id"] for row in lines(tmp_path)] == [*(row["id"] for row in kept), "d2"]


def test_an_interrupt_keeps_what_is_done(tmp_path: Path) -> None:
    def stop_at_year(request: ChatRequest) -> str | BaseException:
        return KeyboardInterrupt() if "year" in request.messages[0].content else "ok"

    with pytest.raises(KeyboardInterrupt):
        bench(tmp_path, setup(Scripted(stop_at_year)))
    done = [row["id"] for row in lines(tmp_path)]
    assert done[0] == "1"
    assert "2" not in done
    assert [row["f1"] for row in bench(tmp_path)] == [1.0, pytest.approx(2 / 3), 1.0, 1.0, 1.0]


def test_results_of_another_set_up_are_not_mixed_in(tmp_path: Path) -> None:
    bench(tmp_path)
    with pytest.raises(InputError, match="settings theta was 3 and is now 1") as complaint:
        bench(tmp_path, setup(theta=1))
    assert "another --out folder" in complaint.value.hint
    with pytest.raises(InputError, match="models default was 'scripted' and is now 'other'"):
        bench(tmp_path, setup(Scripted({}, name="other")))


def test_other_questions_under_the_same_ids_are_not_mixed_in(tmp_path: Path) -> None:
    bench(tmp_path)
    with pytest.raises(InputError, match="another question or gold under the id '1'"):
        bench(tmp_path, questions=[BenchQuestion(id="1", question="year of Dune", answers=())])


@pytest.mark.parametrize(("name", "text"), [(CONFIG, "{"), (RESULTS, "{}\n")])
def test_a_damaged_folder_is_named(tmp_path: Path, name: str, text: str) -> None:
    bench(tmp_path)
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=name):
        bench(tmp_path)


def test_an_out_folder_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    with pytest.raises(InputError, match="cannot be used"):
        bench(tmp_path / "out")


# --- question files


def test_gold_may_be_written_as_json_booleans_and_numbers(tmp_path: Path) -> None:
    path = tmp_path / "questions.jsonl"
    path.write_text('{"id": 7, "question": "?", "answers": [true, 3, "x"], "topic_entity": "ignored"}\n\n')
    [question] = read_questions(path)
    assert (question.id, question.answers) == ("7", ("true", "3", "x"))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "no question"),
        ("{", "line 1 is not JSON"),
        ('{"id": "1", "question": "?"}', "line 1: answers: Field required"),
        ('{"id": "1", "question": "?", "answers": []}\n' * 2, "line 2: the id '1' was used before"),
    ],
)
def test_a_question_file_that_cannot_be_used(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "questions.jsonl"
    path.write_text(text)
    with pytest.raises(InputError, match=complaint):
        read_questions(path)


def test_a_missing_question_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read the questions"):
        read_questions(tmp_path / "none.jsonl")


def test_conversations_are_dialogues_by_turn_and_single_questions() -> None:
    assert [[one.id for one in turns] for turns in conversations(QUESTIONS)] == [
        ["1"],
        ["2"],
        ["3"],
        ["d1", "d2"],
    ]


@pytest.mark.parametrize(
    ("term", "text"),
    [
        (URIRef(EX + "a"), EX + "a"),
        (Literal("2001-07-20", datatype=rdflib.XSD.date), "2001-07-20"),
        (Literal("Zürich", lang="de"), "Zürich"),
        (Literal(True), "true"),
        (Literal("0", datatype=rdflib.XSD.boolean, normalize=False), "false"),
    ],
)
def test_terms_are_written_as_gold_is(term: Term, text: str) -> None:
    assert term_string(term) == text


def test_two_benchmarks_do_not_write_to_one_folder(tmp_path: Path) -> None:
    with locked(tmp_path / "out"), pytest.raises(InputError, match="another benchmark"):
        locked(tmp_path / "out").__enter__()
    with locked(tmp_path / "out"):
        pass
