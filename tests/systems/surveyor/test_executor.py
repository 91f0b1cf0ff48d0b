"""Executing a draft: errors as results, findings, names and the measure of a superlative."""

from __future__ import annotations

from unittest.mock import Mock

import pytest
from small import answer_of, films
from surveying import (
    answered,
    draft,
    script,
    surveyor,
    variables_of,
)

from kgwb.errors import GraphTimeoutError
from kgwb.llm import Scripted


def test_too_many_rows_are_cut_and_the_reviewer_sees_that() -> None:
    kg = films(row_limit=5)
    run, model = answered(draft("SELECT ?a ?e WHERE { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i }"), kg=kg)
    [finding] = [each for each in run.output("executor[draft]").findings if "cut" in each.text]
    assert finding.wrong and "5" in finding.text
    assert f"! {finding}" in variables_of(model, "reviewer", "result")[0]
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
