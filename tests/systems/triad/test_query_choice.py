"""Query choice: each query that is offered can be chosen, or refused."""

import pytest
from page import record_html
from triads import (
    CASE,
    NUMBERS,
    URIS,
    choice,
    on_twins,
)

from kgwb.kg.queries import CandidateQuery
from kgwb.systems.triad.records import Choice, Filled


@pytest.mark.parametrize("number", range(6))
@pytest.mark.parametrize("shows_sparql", [False, True])
def test_every_query_that_is_offered_can_be_chosen(number: int, shows_sparql: bool) -> None:
    replies = {**NUMBERS, **URIS}
    replies["query_choice_judgement"] = lambda shown: choice(number + 1)
    replies["query_choice_published"] = lambda shown: {
        "sparql": shown["queries"].splitlines()[number]
    }
    settings = {"query_options": "sparql"} if shows_sparql else {}
    run, _ = on_twins({**CASE, **settings}, **replies)
    kept = run.output("queries[try 1/parsing]").kept
    assert run.answer
    assert run.answer.queries == (kept[number].query.sparql,)


def test_a_chosen_query_is_shown_as_code() -> None:
    sparql = "SELECT ?x WHERE { <http://example.org/a> <http://example.org/p> ?x }"
    filled = Filled(CandidateQuery(sparql, (), ("p",), 1.0), ("a",), sparql, ("b",), 1)
    shown = record_html(Choice("query", (filled,)), of_system="triad")
    assert 'class="kw">SELECT' in shown
