"""The written query: in place of a template, it must be one that can be run."""

import pytest
from small import iri
from triads import answered, requests_of

from kgwb.errors import OverrideError
from kgwb.kg.queries import CandidateQuery

GOOD = f"SELECT ?x WHERE {{ <{iri('dune')}> <{iri('director')}> ?x }}"
SETTINGS = {"ablation": "no_query_choice", "tries": 1}


def test_the_model_sees_the_uris_that_were_linked() -> None:
    run, model = answered(written_query={"reason": "", "sparql": f" {GOOD} "}, settings=SETTINGS)
    assert run.answer
    assert (run.answer.labels, run.answer.queries) == (("Denis Villeneuve",), (GOOD,))
    shown = requests_of(model, "written_query")[0].variables
    assert shown["uris"]["Dune"] == [str(iri("dune")), str(iri("lynchs_dune"))]
    assert shown["triplets"][0] == ["Dune", "directed by", "?person"]


@pytest.mark.parametrize(
    "sparql", ["Which?", f"ASK {{ ?x <{iri('a')}> }}", "DELETE WHERE { ?a ?b ?c }"]
)
def test_a_query_that_cannot_be_run_is_sent_back(sparql: str) -> None:
    replies = [{"reason": "", "sparql": text} for text in (sparql, GOOD)]
    run, model = answered(written_query=replies, settings=SETTINGS)
    assert len(requests_of(model, "written_query")) == 2
    with pytest.raises(OverrideError):
        run.override("written_query[try 1/parsing]", CandidateQuery(sparql, (), (), 1.0))


def test_a_select_without_rows_is_a_fault_and_an_ask_is_not() -> None:
    nothing = f"{{ <{iri('dune')}> <{iri('author')}> ?x }}"
    for head, labels in (("SELECT ?x WHERE", ()), ("ASK", ("false",))):
        reply = {"reason": "", "sparql": f"{head} {nothing}"}
        run, _ = answered(written_query=reply, settings=SETTINGS)
        assert run.answer is not None
        assert run.answer.labels == labels
