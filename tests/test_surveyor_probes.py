"""Drafts of another author are sent to the reviewer alone, and each gold of a question with two is looked for."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import surveying
from small import EX, films

from kgwb import Workbench
from kgwb.kg.survey import survey_graph
from kgwb.kg.survey_text import SurveyWriter
from kgwb.llm import Scripted

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))

import surveyor_probes

PREFIX = f"PREFIX k: <{EX}>\n"
GOLD = [[f"{EX}arrival"], [f"{EX}dune"], [f"{EX}sicario"]]
RIGHT = f"{PREFIX}SELECT ?f WHERE {{ ?f k:director k:denis }}"
WRONG = f"{PREFIX}SELECT ?f WHERE {{ ?f k:director k:lynch }}"


def row(id_: str, sparql: str, right: bool) -> dict[str, Any]:
    fault = None if right else "lost filter"
    told = {"id": id_, "question": surveying.QUESTION, "sparql": sparql, "right": right}
    return {**told, "fault": fault, "answers": GOLD}


def probed(
    rows: list[dict[str, Any]], script: Any, ask: Any, **settings: Any
) -> tuple[list[surveyor_probes.Probe], Scripted]:
    model = Scripted(script)
    workbench = Workbench(films(), model, system="surveyor", settings=settings)
    return surveyor_probes.probe_all(rows, ask, workbench, 1), model


def reviewed(rows: list[dict[str, Any]], reply: Any) -> tuple[list[str], Scripted]:
    probes, model = probed(
        rows,
        {"surveyor/reviewer": reply},
        surveyor_probes.review,
        always_reviews=True,
        reviews=1,
    )
    assert [probe.error for probe in probes] == [""] * len(rows)
    return surveyor_probes.summarize_reviews(probes), model


ROWS = [row("a", RIGHT, True), row("b", WRONG, False)]


def test_only_the_reviewer_is_asked_and_shown_the_query_with_the_prefixes_of_the_survey() -> None:
    _, model = reviewed(ROWS, surveying.FINE)
    assert [request.task for request in model.requests] == ["surveyor/reviewer"] * 2
    variables = model.requests[0].variables
    assert variables["draft"] == "SELECT ?f WHERE { ?f org:director org:denis }"
    assert "Denis Villeneuve" in variables["names"]


def test_each_gold_of_an_ambiguous_question_is_looked_for_among_the_readings() -> None:
    other = surveying.draft("SELECT ?film WHERE { ?film org:director org:lynch }")
    assumed = {"taken": "by him", "others": ["by Lynch"]}
    golds = [{"reading": "a", "answers": GOLD}, {"reading": "b", "answers": [[f"{EX}lynchs_dune"]]}]
    question = {"id": "a", "question": surveying.QUESTION, "readings": golds}
    for assumptions, offered in (([assumed], True), ([], False)):
        drafts = [surveying.draft(assumptions=assumptions), other]
        [probe], _ = probed([question], surveying.script(drafts), surveyor_probes.offer)
        assert (probe.error, probe.found) == ("", offered)


def test_texts_and_iris_keep_what_looks_like_a_prefix() -> None:
    writer = SurveyWriter(survey_graph(films()))
    sparql = f'{PREFIX}SELECT ?k WHERE {{ ?k k:name "k:name" . ?k <http://e/k:name> k:x }}'
    assert surveyor_probes.with_prefixes_of(writer, sparql) == (
        'SELECT ?k WHERE { ?k org:name "k:name" . ?k <http://e/k:name> org:x }'
    )


def test_what_a_query_is_written_with_is_no_name() -> None:
    kg = films()
    sparql = (
        "SELECT ?f { ?f rdf:type/rdfs:subClassOf* org:Film . ?f org:director org:denis, <http://example.org/amy>"
        ' FILTER(xsd:date(?d) > "2020-01-01"^^xsd:date && ?f != "org:ted") }'
    )
    writer = SurveyWriter(survey_graph(kg))
    workbench = Workbench(kg, Scripted({}), system="surveyor")
    assert surveyor_probes.names_in(sparql, writer, workbench) == ["Denis Villeneuve", "Amy Adams"]
