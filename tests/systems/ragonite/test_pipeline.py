"""RAGonite as a whole: two tools in a loop, errors as feedback, and answers with their support."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from engines import Engine
from page import record_html
from ragonite import (
    ARRIVAL,
    DIRECTED,
    FINISH,
    QUESTION,
    RAGONITE,
    answered,
    cited,
    passages,
    ragonite,
    script,
    sql,
    use,
)
from rdflib import Literal
from small import answer_of, films, iri, keys

import kgwb
from kgwb.cli import main
from kgwb.errors import GraphError, InvalidReplyError, OverrideError
from kgwb.kg import sample_path
from kgwb.llm import Scripted
from kgwb.records import to_data
from kgwb.run.answers import NOT_IN_GRAPH, Dialogue, Turn
from kgwb.show.run_state import GIVEN, judge_answer
from kgwb.systems.ragonite.records import CitedAnswer, Source
from kgwb.systems.ragonite.tool_selector import list_earlier_turns


def test_rows_become_terms_with_the_triples_that_the_query_read() -> None:
    run, model = answered()
    assert keys(run) == [
        *("ragonite", "tool_selector", "sql[turn 1]", "passages[turn 2]", "finish[turn 3]"),
        *("answerer", "answer"),
    ]
    values = {value.term: value.support for value in answer_of(run).values}
    films = [iri(name) for name in ("arrival", "dune", "sicario")]
    assert list(values) == films
    assert all((film, iri("director"), iri("denis")) in values[film] for film in films)
    assert answer_of(run).labels == ("Arrival", "Dune", "Sicario")
    assert (model.call_count(), run.totals.live_model_calls) == (4, 4)
    sources = model.requests[-1].variables["sources"]
    assert '"arrival" | "Arrival"' in sources
    assert "[2] passages" in sources


def test_a_passage_gives_its_value_and_triples() -> None:
    run, _ = answered(answer=cited(("Denis Villeneuve", 2)))
    [value] = answer_of(run).values
    assert value.term == iri("denis")
    assert value.support and all(iri("denis") in triple for triple in value.support)


def test_a_count_is_supported_by_the_ids_that_were_counted() -> None:
    query = "SELECT count(*) AS n, group_concat(id) AS ids FROM film WHERE director = 'denis'"
    run, _ = answered(sql(query), passages(), FINISH, answer=cited(("3", 1), kind="count"))
    [value] = answer_of(run).values
    directed = [triple for triple in value.support if triple[1:] == (iri("director"), iri("denis"))]
    assert (value.term, len(directed)) == (Literal(3), 3)
    run, _ = answered(answer=cited(("true", 1), kind="boolean"))
    assert answer_of(run).values[0].term == Literal(True)


def test_a_literal_keeps_its_datatype_also_where_it_is_false() -> None:
    kg = films("@prefix : <http://e/> . :f a :Film ; :oscars 0 ; :sequel false . :g a :Film .")
    for text, term in (("0", Literal(0)), ("false", Literal(False))):
        run, _ = answered(
            sql("SELECT * FROM film"), passages(), FINISH, answer=cited((text, 1)), kg=kg
        )
        assert [value.term for value in answer_of(run).values] == [term]


def test_a_muted_triple_is_in_no_row_and_in_no_passage() -> None:
    run, _ = answered()
    muted = (iri("dune"), iri("director"), iri("denis"))
    run.models[""] = Scripted(script(answer=cited(("arrival", 1), ("sicario", 1))))
    without = run.mute(muted).go()
    assert [row[0] for row in without.output("sql[turn 1]").rows] == ["arrival", "sicario"]
    sources = [without.output("sql[turn 1]"), *without.output("passages[turn 2]")]
    assert all(muted not in source.triples for source in sources)
    assert run.output("ragonite").triples - without.output("ragonite").triples == 1


def test_a_tool_that_the_model_did_not_use_is_offered_alone() -> None:
    run, model = answered(sql(), FINISH, passages())
    assert keys(run)[2:5] == ["sql[turn 1]", "finish[turn 2]", "passages[turn 1]"]
    offered = [request.variables["tools"] for request in model.requests[:3]]
    assert offered == [["sql", "passages", "finish"]] * 2 + [["passages"]]
    assert model.requests[2].variables["so_far"] == "nothing yet"


def test_there_are_at_most_three_rounds() -> None:
    run, model = answered(sql("SELECT 1"), sql("SELECT 2"), sql("SELECT 3"), passages())
    assert (model.call_count("ragonite/tool_selector"), model.call_count()) == (4, 5)
    assert keys(run)[5] == "passages[turn 1]"


FAILED = {
    "no such column": "SELECT director_name FROM film",
    "syntax error": "SELECT FROM",
    "not authorized": "DELETE FROM film",
    "prohibited": "SELECT value FROM _triples",
    "one statement": "SELECT 1; SELECT 2",
    "interrupted after": "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x FROM n) SELECT max(x) FROM n",
}


@pytest.mark.parametrize("problem", FAILED)
def test_the_error_of_a_query_is_shown_to_the_model(problem: str) -> None:
    settings = RAGONITE.settings(sql_timeout_s=2)
    run, model = answered(sql(FAILED[problem]), sql(), passages(), settings=settings)
    assert problem in run.output("sql[turn 1]").error
    assert problem in model.requests[1].variables["so_far"]
    assert len(answer_of(run).values) == 3


def test_the_model_is_shown_that_rows_were_cut() -> None:
    settings = RAGONITE.settings(rows=2)
    run, model = answered(sql("SELECT id FROM film"), passages(), FINISH, settings=settings)
    source = run.output("sql[turn 1]")
    assert (len(source.rows), source.cut) == (2, True)
    assert "and more" in model.requests[1].variables["so_far"]


def test_an_answer_without_values_has_the_reason_of_the_model() -> None:
    nothing = {**cited(), "answer": "No budget is given.", "reason": "no column for it"}
    run, _ = answered(answer=nothing)
    assert not run.answer
    assert answer_of(run).text == nothing["answer"]
    assert answer_of(run).reason == f"{NOT_IN_GRAPH}: {nothing['reason']}"


def test_all_rows_of_a_source_need_not_be_copied() -> None:
    query = sql("SELECT f.id AS ID, f.name, f.runtime FROM film f ORDER BY f.id")
    uses = (query, passages(), FINISH)
    wrong = cited(("all rows: id, budget", 1))
    wrong_source = cited(("all rows: id", 2))
    run, model = answered(*uses, answer=[wrong, wrong_source, cited(("all rows: id", 1))])
    assert "no column 'budget'" in model.requests[-2].messages[-1].content
    assert "source 2 has no column 'id'" in model.requests[-1].messages[-1].content
    copied = ["arrival", "dune", "lynchs_dune", "sicario"]
    same, _ = answered(*uses, answer=cited(*[(text, 1) for text in copied]))
    assert answer_of(run) == answer_of(same)
    assert len(answer_of(run).values) == 4
    several, _ = answered(*uses, answer=cited(("All rows: id, RUNTIME", 1)))
    terms = [value.term for value in answer_of(several).values]
    assert terms == [iri("arrival"), Literal(116), *map(iri, copied[1:])]
    both = {**cited(), "values": [{"value": "all rows: id", "sources": [1, 2]}]}
    with pytest.raises(InvalidReplyError, match="must cite one source"):
        answered(*uses, answer=[both] * 3)


def test_what_binary_numbers_add_is_not_shown() -> None:
    query = sql("SELECT 0.7 + 0.262 + 0.1 - 0.1 AS a, 0.1 + 0.2, 1.0, 1e300, 7")
    run, _ = answered(query, passages(), FINISH, answer=cited())
    [row] = run.output("sql[turn 1]").rows
    assert row == ("0.962", "0.3", "1.0", "1e+300", "7")


def test_that_nothing_fits_is_an_answer_with_its_evidence() -> None:
    text = "None of them is by David Lynch [1]."
    none = {**cited(("none", 1), text=text), "reason": "the directors of all films are known"}
    run, _ = answered(answer=none)
    answer = answer_of(run)
    assert (answer.values, answer.text, answer.reason) == ((), text, "")
    assert (iri("dune"), iri("director"), iri("denis")) in answer.support
    assert judge_answer(QUESTION, answer).name == GIVEN
    shown = record_html(answer, of_system="ragonite")
    assert "Denis Villeneuve" in shown
    assert "no answer" not in shown
    kg = films(
        "@prefix : <http://e/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> ."
        ' :none a :Film ; rdfs:label "None" . :g a :Film .'
    )
    query = sql("SELECT id, name FROM film")
    run, _ = answered(query, passages(), FINISH, answer=cited(("none", 1)), kg=kg)
    assert answer_of(run).labels == ("None",)


def test_a_passage_that_two_sentences_find_is_one_source() -> None:
    run, _ = answered(passages("Dune"), passages("Dune by Villeneuve"), sql())
    sources = run.output("tool_selector")
    found = [(source.title, source.text) for source in sources if source.tool == "passages"]
    assert len(found) == len(set(found)) > 5


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("So [1]. And so [3]", [1, 3]),
        ("So [1, 3].", [1, 3]),
        ("So [2-4][1].", [2, 3, 4, 1]),
        ("In [4-2] and [1-999]", [4, 2, 1, 999]),
        ("No number [a], [] or 7", []),
    ],
)
def test_a_source_that_the_text_cites_is_shown_as_cited(text: str, numbers: list[int]) -> None:
    source = Source("passages", "t", "x")
    answer = CitedAnswer(text, "list", (), (source,) * 5)
    assert answer.cited_numbers == set(numbers)
    drawn = record_html(answer, of_system="ragonite")
    assert drawn.count("not cited") == 5 - len(set(numbers) & set(range(1, 6)))


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        (cited(("arrival", 99)), "there is no source 99"),
        (cited(("arrival", 1), text="So [77]."), "there is no source 77"),
        (cited(("yes", 1), kind="boolean"), "true or false"),
        ({**cited(), "values": [{"value": "arrival", "sources": []}]}, "has no source"),
        ({**cited(), "values": [{"value": "arrival", "sources": [True]}]}, "this is no number"),
    ],
)
def test_the_model_is_shown_what_is_wrong_with_its_citations(wrong: Any, problem: str) -> None:
    run, model = answered(answer=[wrong, ARRIVAL])
    assert problem in model.requests[-1].messages[-1].content
    assert len(answer_of(run).values) == 3
    with pytest.raises(InvalidReplyError, match=problem):
        answered(answer=[wrong] * 3)


# Ablations


@pytest.mark.parametrize(
    ("ablation", "other"), [("sql_only", passages()), ("passages_only", sql())]
)
def test_an_ablation_offers_one_tool_alone(ablation: str, other: Any) -> None:
    mine = sql() if ablation == "sql_only" else passages()
    settings = RAGONITE.settings(ablation=ablation)
    run, model = answered(other, mine, FINISH, settings=settings)
    assert len([key for key in keys(run) if "turn" in key]) == 2
    assert model.requests[0].variables["tools"] == [mine["action"]["tool"], "finish"]


def test_the_ablation_with_sparql_queries_the_graph_itself() -> None:
    query = f"SELECT ?f WHERE {{ ?f <{iri('director')}> <{iri('denis')}> }} ORDER BY ?f"
    uses = [use("sparql", query="nonsense"), use("sparql", query=query), FINISH]
    replies = script(answer=cited((str(iri("arrival")), 1), ("Dune", 1)))
    model = Scripted({**replies, "ragonite/tool_selector_sparql": uses})
    run = ragonite(model, settings=RAGONITE.settings(ablation="sparql_only")).go()
    assert [value.term for value in answer_of(run).values] == [iri("arrival"), iri("dune")]
    assert answer_of(run).queries == (query,)
    assert "parse" in model.requests[1].variables["so_far"]
    assert f"<{iri('director')}>" in model.requests[0].variables["schema"]


# Dialogues, overrides, parts


def test_a_dialogue_is_shown_to_both_agents() -> None:
    model = Scripted(
        script(*[sql(), passages(), FINISH] * 2, answer=[ARRIVAL, cited(("Gentilly", 2))])
    )
    bench = kgwb.Workbench(films(), model, system="ragonite")
    bench.ask(QUESTION)
    run = bench.ask("And where was he born?")
    for request in model.requests[4:]:
        [turn] = request.variables["earlier"]
        answers = ["Arrival", "Dune", "Sicario"]
        assert turn == {"question": QUESTION, "answers": answers, "text": "These."}
    assert run.status == "done"


def test_the_text_of_an_answer_without_values_is_remembered() -> None:
    nothing = {**cited(), "answer": "No budget is given [1].", "reason": "no column for it"}
    model = Scripted(script(*[sql(), passages(), FINISH] * 2, answer=[nothing, ARRIVAL]))
    bench = kgwb.Workbench(films(), model, system="ragonite")
    bench.ask("What did it cost?")
    bench.ask(QUESTION)
    [turn] = model.requests[-1].variables["earlier"]
    assert turn == {
        "question": "What did it cost?",
        "answers": [],
        "text": "No budget is given.",
    }


def test_the_newest_turns_have_room_and_what_is_left_out_is_said() -> None:
    turns = [Turn(f"question {number}", text="word " * 20) for number in range(9)]
    turns.append(Turn("Which?", tuple(f"answer {number}" for number in range(100)), text="Many."))
    settings = RAGONITE.settings(dialogue_tokens=400)
    first, *shown = list_earlier_turns(Dialogue(tuple(turns)), settings)
    assert 0 < len(json.dumps([first, *shown])) < 400 * 4 + 100
    assert first == {"left out": f"{10 - len(shown)} earlier turns"}
    assert [turn["question"] for turn in shown[:-1]] == ["question 8"] * (len(shown) - 1)
    assert shown[-1]["text"] == "Many."
    small = RAGONITE.settings(dialogue_tokens=50)
    [_, latest] = list_earlier_turns(Dialogue(tuple(turns)), small)
    assert latest["answers"] == [f"answer {number}" for number in range(len(latest["answers"]))]
    assert latest["left out"] == f"{100 - len(latest['answers'])} answers"


def test_an_override_of_a_result_changes_the_answer() -> None:
    run = ragonite(Scripted(script())).go()
    source = Source("sql", DIRECTED, columns=("id",), rows=(("nothing",),))
    run.override("sql[turn 1]", to_data(source))
    run.models[""] = Scripted(script(passages(), FINISH, answer=cited(("nothing", 1))))
    run.go()
    assert answer_of(run).labels == ("nothing",)
    wrong = {**to_data(run.output("answerer")), "values": [{"value": "x", "sources": [9]}]}
    with pytest.raises(OverrideError, match="source 9"):
        run.override("answerer", wrong)


def test_a_graph_that_is_too_large_stops_before_a_model_is_asked() -> None:
    model = Scripted(script())
    with pytest.raises(GraphError, match="max_triples"):
        ragonite(model, settings=RAGONITE.settings(max_triples=3)).go()
    assert model.call_count() == 0


@pytest.mark.long
def test_a_named_part_of_an_endpoint_gives_the_tables_of_that_part_of_the_file(
    virtuoso: Engine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = virtuoso.load(sample_path("films"))
    there, here, model = kgwb.open_kg(url), kgwb.open_kg("films"), Scripted(script())
    part = {"part": "https://kgwb.example/films/Film", "max_triples": 1_500}
    with pytest.raises(GraphError, match=r"2,863 triples .*max_triples\) is 1,500") as error:
        ragonite(model, kg=there, settings=RAGONITE.settings(max_triples=1_500)).go()
    assert ("--set part=" in error.value.hint, model.call_count()) == (True, 0)
    query = sql("SELECT film, genre FROM film_genre ORDER BY film, genre")
    answer = cited(("Dune_2021_film", 1))
    options: Any = {"answer": answer, "settings": RAGONITE.settings(**part)}
    runs = [answered(query, passages(), FINISH, kg=kg, **options)[0] for kg in (there, here)]
    assert runs[0].output("ragonite") == runs[1].output("ragonite")
    assert runs[0].output("sql[turn 1]").rows == runs[1].output("sql[turn 1]").rows != ()
    [value], [other] = (answer_of(run).values for run in runs)
    assert (value.term, {*value.support}) == (other.term, {*other.support})
    runs[0].save(tmp_path / "run.jsonl")
    given = [
        *("--kg", url, "--system", "ragonite", "--model", f"replay:{tmp_path / 'run.jsonl'}"),
        QUESTION,
    ]
    assert main(["ask", *given, *(f"--set={name}={value}" for name, value in part.items())]) == 0
    assert answer["answer"] in capsys.readouterr().out
    assert main(["ask", *given, "--set=max_triples=1500"]) != 0
    assert "max_triples" in capsys.readouterr().err
