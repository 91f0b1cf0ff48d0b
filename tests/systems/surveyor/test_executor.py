"""Executing a draft: errors as results, findings, names and the measure of a superlative."""

from __future__ import annotations

from unittest.mock import Mock

import pytest
import rdflib
from small import FILMS, SLOW, answer_of, films
from surveying import (
    DIRECTED,
    FINE,
    answered,
    draft,
    revise,
    script,
    serious_findings,
    surveyor,
    variables_of,
)

import kgwb
from kgwb.errors import GraphTimeoutError
from kgwb.llm import Scripted


def test_too_many_rows_are_cut_and_the_reviewer_sees_that() -> None:
    kg = kgwb.open_kg(rdflib.Graph().parse(data=FILMS), row_limit=5)
    run, model = answered(draft("SELECT ?a ?e WHERE { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i }"), kg=kg)
    [finding] = [text for text in serious_findings(run) if "cut" in text]
    assert "5" in finding and f"! {finding}" in variables_of(model, "reviewer", "result")[0]
    assert 0 < len(answer_of(run).values) <= 5


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


def test_a_query_that_takes_too_long_is_feedback() -> None:
    kg = kgwb.open_kg(rdflib.Graph().parse(data=FILMS), query_timeout_s=1)
    run, model = answered(draft(SLOW), [revise(DIRECTED, "film"), FINE], kg=kg)
    assert "took longer" in run.output("executor[draft]").error
    assert variables_of(model, "reviewer", "result")[0].startswith("! ")
    assert len(answer_of(run).values) == 3
