"""Query choice: each query that is offered can be chosen, or refused."""

from typing import Any

import pytest
from page import record_html
from small import answer_of, asked
from triads import (
    CASE,
    NUMBERS,
    URIS,
    answered,
    choice,
    on_offers,
    on_twins,
    template,
    triplets,
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


DIRECT = {
    "triad/triplets": triplets("Bolt M8 | supplied by | ?supplier"),
    "triad/template": template("SELECT ?supplier WHERE { <Bolt M8> <supplied by> ?supplier . }"),
}


IN_TWO_STEPS = {
    "triad/triplets": triplets("Bolt M8 | offered in | ?offer", "?offer | supplier | ?supplier"),
    "triad/template": template(
        "SELECT ?supplier WHERE { <Bolt M8> <offered in> ?offer . ?offer <supplier> ?supplier . }"
    ),
}


def number_of(name: str, shown: Any) -> dict[str, Any]:
    """The reply that chooses the relations of this name."""
    return choice(*[each["number"] for each in shown["relations"] if each["triple"][1] == name])


def test_a_single_query_whose_results_are_of_another_kind_is_refused_and_parsed_anew() -> None:
    def answer(request: Any) -> Any:
        shown = request.variables
        task = request.task
        if task == "triad/relation_choice":
            named = {"offered in": "offered in", "supplied by": "offered in"}
            return number_of(named.get(shown["triplet"][1], "supplier"), shown)
        if task == "triad/query_choice_judgement":
            is_offer = shown["queries"][0]["first"] == ["Offer 17"]
            return {"reason": "an offer is no supplier", "numbers": []} if is_offer else choice(1)
        script = DIRECT if not shown["failed"] else IN_TWO_STEPS
        return script[task]

    run, model = on_offers(answer)
    assert answer_of(run).labels == ("Acme",)
    first, _ = (step.output for step in run.steps if step.agent == "attempt")
    assert (first.back, "an offer is no supplier" in first.fault) == ("parsing", True)
    assert asked(model)["query_choice_judgement"] == 2
    run, _ = on_offers(answer, may_refuse_queries=False)
    assert answer_of(run).labels == ("Offer 17",)


def test_a_chosen_query_is_shown_as_code() -> None:
    sparql = "SELECT ?x WHERE { <http://example.org/a> <http://example.org/p> ?x }"
    filled = Filled(CandidateQuery(sparql, (), ("p",), 1.0), ("a",), sparql, ("b",), 1)
    shown = record_html(Choice("query", (filled,)), of_system="triad")
    assert 'class="kw">SELECT' in shown


def test_exactly_one_query_is_chosen_where_none_may_be_refused() -> None:
    replies = [choice(), choice(1, 2), choice(2)]
    run, model = answered(query_choice=replies, settings={"may_refuse_queries": False})
    assert answer_of(run).labels == ("Missoula",)
    assert asked(model)["query_choice"] == 3
