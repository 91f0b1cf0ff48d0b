"""Gold texts that are names of things: found in any set, and said with their place and their IRI."""

from pathlib import Path
from typing import Any

import pytest
import rdflib
from commands import bench, write_questions

from kgwb import PromptLab, Workbench
from kgwb.bench import BenchSetup, load_questions
from kgwb.bench.figures import LoadedResults, make_quality_table
from kgwb.bench.metrics import QuestionGroup
from kgwb.bench.questions import BenchQuestion, NamedGold, find_named_gold
from kgwb.bench.report import render_question_table
from kgwb.bench.results import Results
from kgwb.bench.runner import Benchmark
from kgwb.build import System, system_from_function
from kgwb.errors import GraphUnreachableError
from kgwb.kg import Graph, open_kg, sample_path
from kgwb.llm import Scripted

EX = "http://example.org/"
GRAPH = """
@prefix : <http://example.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:arrival rdfs:label "Arrival" ; :director :villeneuve ; :year 2016 ; :genre "drama" ; :code "Twin" .
:nineteen rdfs:label "1984" . :villeneuve rdfs:label "Denis Villeneuve" .
:drama rdfs:label "Drama" . :a rdfs:label "Twin" . :b rdfs:label "Twin" . :yes rdfs:label "true" .
"""


@pytest.fixture
def kg() -> Graph:
    return open_kg(rdflib.Graph().parse(data=GRAPH, format="turtle"))


def gives(predicate: str) -> str:
    return f"SELECT ?x {{ <{EX}arrival> <{EX}{predicate}> ?x }}"


@pytest.mark.parametrize(
    ("fields", "things"),
    [
        ({"answers": ("Denis Villeneuve", EX + "arrival")}, ["villeneuve"]),
        ({"answers": ("Twin",)}, ["a", "b"]),
        ({"answers": ("Twin",), "sparql": gives("director")}, ["a", "b"]),
        ({"answers": ("Twin",), "sparql": gives("code")}, []),  # the query gives the text
        ({"answers": ("drama",)}, []),  # the thing is called Drama, and a film has the text
        ({"answers": (f"{EX}villeneuve",)}, []),
        ({"answers": ("1984",)}, []),
        ({"answers": ("true",)}, []),
        ({"answer_labels": ("Denis Villeneuve",)}, []),  # left to the graph
    ],
)
def test_a_gold_text_that_is_exactly_a_name_is_found(
    kg: Graph, fields: dict[str, Any], things: list[str]
) -> None:
    question = BenchQuestion(id="q", question="Who?", **fields)
    names = tuple(EX + thing for thing in things)
    expected = [NamedGold("q", fields["answers"][0], names)] if things else []
    assert find_named_gold([question], kg) == expected


def test_a_graph_that_cannot_be_asked_gives_no_remark(
    kg: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(labels: object) -> object:
        raise GraphUnreachableError("http://example.org/sparql")

    monkeypatch.setattr(kg, "exact", refuse)
    question = BenchQuestion(id="q", question="Who?", answers=("Twin",))
    assert find_named_gold([question], kg) == []


@pytest.mark.parametrize("name", ["films", "cars", "scholars", "wikidata_slice"])
def test_the_shipped_sets_have_no_such_gold(name: str) -> None:
    path = sample_path(name)
    questions = load_questions(path.with_suffix(".questions.jsonl"))
    assert find_named_gold(questions, open_kg(path)) == []


def test_bench_and_the_prompt_lab_say_the_line_and_what_to_write(
    here: Path, kg: Graph, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("films.ttl").write_text(GRAPH)
    write_questions({"answers": [EX + "denis"]}, {"answers": ["Denis Villeneuve"]})
    bench(kg="films.ttl")
    said = capsys.readouterr().err
    assert "2 (line 2)" in said and f"<{EX}villeneuve>" in said
    assert "1 (line 1)" not in said
    workbench = Workbench(kg, model=Scripted(lambda request: "no JSON"))
    lab = PromptLab.measure("q.jsonl", workbench, "lab", workers=1)
    for shown in (lab.gold_remark, lab.view(), lab.render_static()):
        assert "2 (line 2)" in str(shown)


# --- answers that are names


def said(*values: str) -> System:
    return system_from_function("selects_names", lambda question: list(values), agents=[])


@pytest.mark.parametrize(
    ("answers", "gold", "is_named", "f1"),
    [
        (["Denis Villeneuve"], ["villeneuve"], True, 1.0),
        (["Denis Villeneuve", "nobody"], ["villeneuve"], True, 2 / 3),
        (["Twin"], ["a", "b"], True, 1.0),  # one name of both
        ([EX + "villeneuve"], ["villeneuve"], False, 1.0),
        (["Twin", EX + "a"], ["a", "Twin"], False, 1.0),  # the gold has the name, too
        (["Arrival"], ["villeneuve"], False, 0.0),  # the name of another thing
    ],
)
def test_an_answer_with_the_name_of_a_gold_thing_is_counted_apart(
    kg: Graph, tmp_path: Path, answers: list[str], gold: list[str], is_named: bool, f1: float
) -> None:
    setup = BenchSetup.from_workbench(Workbench(kg, system=said(*answers)))
    values = tuple(name if name.istitle() else EX + name for name in gold)
    question = BenchQuestion(id="1", question="Who?", answers=values)
    [row] = Benchmark(setup, Results(tmp_path, setup.to_config())).run([question])
    group = QuestionGroup("all", [row])
    assert group.named_answers == is_named
    assert group.f1_with_names == pytest.approx(f1)
    assert (row["f1"] == 0) is (is_named or f1 == 0)
    results = LoadedResults.read(tmp_path)
    assert ("names of gold" in make_quality_table([results]).headers) is is_named
    assert ("with names of the gold things" in results.headline) is is_named
    shown = str(render_question_table([results], lambda *_: None))
    assert ("a name of a gold thing" in shown) is is_named
