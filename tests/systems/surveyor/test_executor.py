"""Executing a draft: errors as results, findings, names and the measure of a superlative."""

from __future__ import annotations

from unittest.mock import Mock

import pytest
import rdflib
from nasty_graphs import a, b
from small import FILMS, SLOW, answer_of, asked, films
from surveying import (
    DIRECTED,
    FINE,
    answered,
    ask_twins,
    draft,
    revise,
    script,
    serious_findings,
    surveyor,
    variables_of,
)

import kgwb
from kgwb.bench.serve import EMPTY_QUERY, make_answer_query
from kgwb.errors import GraphTimeoutError
from kgwb.kg.sparql import SYNTAX_HINT
from kgwb.llm import Scripted

REFUSED = {
    "does not parse": "SELECT ?film WHERE { ?film org:director }",
    "DESCRIBE": "DESCRIBE org:dune",
    "INSERT": "INSERT DATA { org:a org:b org:c }",
    "SERVICE": "SELECT ?x WHERE { SERVICE <http://evil.example/> { ?x ?y ?z } }",
    "declare nope": "SELECT ?x WHERE { ?x nope:director ?y }",
    "took longer": SLOW,
    "parse at line 1": "Welche Filme hat er gedreht?",
}


@pytest.mark.parametrize("problem", REFUSED)
def test_a_query_that_cannot_be_executed_is_feedback(problem: str) -> None:
    kg = kgwb.open_kg(rdflib.Graph().parse(data=FILMS), query_timeout_s=1)
    run, model = answered(draft(REFUSED[problem]), [revise(DIRECTED, "film"), FINE], kg=kg)
    error = run.output("executor[draft]").error
    assert "What to do" not in error and SYNTAX_HINT not in error  # hints are for people
    assert problem in error and variables_of(model, "reviewer", "result")[0].startswith("! ")
    assert len(answer_of(run).values) == 3
    refused, model = answered(draft(REFUSED[problem]), revise("SELECT nonsense", "x"), kg=kg)
    assert refused.answer is not None and not refused.answer
    assert refused.answer.reason.endswith(refused.output("executor[revision 1]").error)
    assert (asked(model)["reviewer"], refused.status) == (2, "done")
    assert make_answer_query(refused) == EMPTY_QUERY


def test_too_many_rows_are_cut_and_the_reviewer_sees_that() -> None:
    kg = kgwb.open_kg(rdflib.Graph().parse(data=FILMS), row_limit=5)
    run, model = answered(draft("SELECT ?a ?e WHERE { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i }"), kg=kg)
    [finding] = [text for text in serious_findings(run) if "cut" in text]
    assert "5" in finding and f"! {finding}" in variables_of(model, "reviewer", "result")[0]
    assert 0 < len(answer_of(run).values) <= 5


@pytest.mark.parametrize(
    ("condition", "functions"),
    [
        ("FILTER(YEAR(NOW()) > 2000)", "NOW()"),
        ("FILTER(rand() < 2 && isIRI(uuid()))", "RAND(), UUID()"),
        ('FILTER("NOW()" != "RAND()")', ""),
        ("FILTER(?now != 3) # NOW()", ""),
    ],
)
def test_a_query_whose_result_depends_on_the_time_has_a_remark(
    condition: str, functions: str
) -> None:
    query = f"SELECT ?film WHERE {{ ?film org:director org:denis BIND(1 AS ?now) {condition}\n}}"
    run, _ = answered(draft(query))
    answer = answer_of(run)
    assert len(answer.values) == 3
    if functions:
        [remark] = answer.remarks
        assert functions in remark
    else:
        assert answer.remarks == ()


def test_rows_have_no_names_if_the_graph_cannot_be_asked_for_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kg = films()
    run = surveyor(Scripted(script()), kg=kg).go(until="drafter")
    monkeypatch.setattr(kg, "names", Mock(side_effect=GraphTimeoutError("too slow")))
    run.go(until="reviewer[draft]")
    [note] = run["executor[draft]"].notes
    assert note.endswith(": too slow")
    executed = run.output("executor[draft]")
    assert len(executed.rows) == 3 and not executed.names


def test_findings_name_predicates_and_things_of_one_name_differently() -> None:
    run, _ = ask_twins(draft("SELECT ?x WHERE { ?x a:director a:dune ; b:director b:dune }"))
    findings = [finding.text for finding in run.output("executor[draft]").findings]
    assert len(set(findings)) == len(findings) == 2
    assert f"<{a('director')}>" in findings[0] and f"<{b('dune')}>" in findings[1]
