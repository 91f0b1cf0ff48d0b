"""The written query: in place of a template, it must be one that can be run."""

import pytest
from small import iri
from triads import answered, requests_of

from kgwb.errors import OverrideError
from kgwb.kg.queries import CandidateQuery

GOOD = f"SELECT ?x WHERE {{ <{iri('dune')}> <{iri('director')}> ?x }}"
SETTINGS = {"ablation": "no_query_choice", "tries": 1}


@pytest.mark.parametrize(
    "sparql", ["Which?", f"ASK {{ ?x <{iri('a')}> }}", "DELETE WHERE { ?a ?b ?c }"]
)
def test_a_query_that_cannot_be_run_is_sent_back(sparql: str) -> None:
    replies = [{"reason": "", "sparql": text} for text in (sparql, GOOD)]
    run, model = answered(written_query=replies, settings=SETTINGS)
    assert len(requests_of(model, "written_query")) == 2
    with pytest.raises(OverrideError):
        run.override("written_query[try 1/parsing]", CandidateQuery(sparql, (), (), 1.0))
