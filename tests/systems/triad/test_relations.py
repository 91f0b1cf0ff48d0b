"""The relations around a triplet: their direction, and an example of what each leads to."""

from typing import Any

import triads
from small import answer_of
from triads import (
    answered,
    choice,
    on_offers,
    template,
    triplets,
)

DIRECT = {
    "triad/triplets": triplets("Bolt M8 | supplied by | ?supplier"),
    "triad/template": template("SELECT ?supplier WHERE { <Bolt M8> <supplied by> ?supplier . }"),
}


def test_a_relation_is_shown_with_what_it_leads_to() -> None:
    def answer(request: Any) -> Any:
        return {
            **DIRECT,
            "triad/relation_choice": choice(),
            "triad/answer_type": {"type": "select"},
        }[request.task]

    run, model = on_offers(answer)
    shown = triads.requests_of(model, "relation_choice")[0].variables["relations"]
    leads_to = {each["triple"][1]: each["leads to"] for each in shown}
    assert leads_to == {"offered in": "Offer 17 (Offer)", "width": "8", "fits": "Nut"}
    run, model = on_offers(answer, relation_examples=False)
    shown = triads.requests_of(model, "relation_choice")[0].variables["relations"]
    assert all("leads to" not in each for each in shown)
    assert not run.answer


def test_a_value_is_no_relation_between_two_named_things() -> None:
    def answer(request: Any) -> Any:
        return {
            "triad/triplets": triplets("Bolt M8 | sold by | Acme"),
            "triad/relation_choice": choice(),
            "triad/answer_type": {"type": "yes or no"},
        }[request.task]

    run, _ = on_offers(answer, tries=1)
    [step] = [step for step in run.steps if step.agent == "relations"]
    assert "width" not in {relation.name for relation in step.output}


def test_relations_have_the_direction_of_the_graph_or_as_published_of_the_triplet() -> None:
    backwards = {
        "triplets": triplets("?x | directs | Arrival"),
        "template": template("SELECT DISTINCT ?x WHERE { ?x <directs> <Arrival> . }"),
        "query_choice_judgement": choice(1),
    }
    run, model = answered(**backwards)
    assert answer_of(run).labels == ("Denis Villeneuve",)
    shown = next(
        r.variables["relations"] for r in model.requests if r.task == "triad/relation_choice"
    )
    assert next(each["triple"] for each in shown) == ["Arrival", "director", "?x"]
    published, _ = answered(**backwards, settings={"as_written": True, "tries": 1})
    assert not published.answer
