"""The relations around a triplet: their direction, and an example of what each leads to."""

from typing import Any

from triads import (
    choice,
    on_offers,
    triplets,
)


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
