"""Where DoG lost an answer: a fault put in at one step, and the ladder that names it (figure 5)."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from debate import LEFT, filtering, remark, trying
from small import EX, find_losses

from kgwb import profile
from kgwb.bench.questions import BenchQuestion
from kgwb.bench.results import BenchRow
from kgwb.llm import ChatRequest

QUESTION = "Where was the director of Arrival born?"
BORN = f"PREFIX : <{EX}> SELECT ?city WHERE {{ :arrival :director ?d . ?d :birthPlace ?city }}"


class Model:
    """Says what is right to every agent of DoG, or what it is told to say instead.

    What it is told is by the prompt's name, or by that name and the head: "relation_filtering
    Arrival".
    """

    def __init__(self, **wrong: Any) -> None:
        self.wrong = wrong

    def __call__(self, request: ChatRequest) -> Any:
        agent = request.task.rpartition("/")[2]
        told = request.variables
        entity = str(told.get("entity", ""))
        if "found" in told:
            entity = told["found"][0]["entity"]
        is_first_hop = "Denis" not in entity
        key = agent if is_first_hop or not entity else f"{agent}_2"
        if key in self.wrong:
            return self.wrong[key]
        match agent:
            case "topic_entity":
                return {"entities": ["Arrival"]}
            case "relation_filtering":
                return filtering("director" if is_first_hop else "birth place")
            case "answer_trying":
                found = [triple[-1] for triple in told["found"][0]["triples"]]
                return trying(*(name for name in found if name in ("Gentilly", "Missoula")))
            case "vertex_selection":
                return {"reason": "", "number": 0, "label": ""}
        return remark(LEFT)


def lose(folder: Path, model: Callable[[ChatRequest], Any], question: str = QUESTION) -> BenchRow:
    """The row of the ladder of one question that is lost because of what a model says."""
    asked = BenchQuestion(id="1", question=question, sparql=BORN, answers=(EX + "gentilly",))
    settings = profile("fast", only_relation="asked", theta=1)
    _, [row] = find_losses(folder, asked, model, system="dog", settings=settings)
    return row


UNFINISHED = remark("Where was the director of [Arrival] born?")


@pytest.mark.parametrize(
    ("wrong", "stage", "step"),
    [
        ({"topic_entity": {"entities": ["director"]}}, "topic entity", "topic_entity"),
        (
            {"relation_filtering_2": filtering("number of children")},
            "relation filtering",
            "relation_filtering[hop 2/Denis Villeneuve]",
        ),
        (
            {"answer_trying": trying("Denis Villeneuve")},
            "iteration stopping",
            "answer_trying[hop 1]",
        ),
        ({"answer_trying_2": trying()}, "iteration stopping", "answer_trying[hop 2]"),
        (
            {"answer_trying_2": trying("Denis Villeneuve")},
            "answer generation",
            "answer_trying[hop 2]",
        ),
    ],
)
def test_the_step_that_lost_the_answer_is_named(
    tmp_path: Path, wrong: dict[str, Any], stage: str, step: str
) -> None:
    row = lose(tmp_path, Model(**wrong))
    assert (row["agent"], row["stage"]) == (step.partition("[")[0], stage)
    assert row["step"] == step
    assert row["first_wrong_step"] == step
    assert row["rungs"][row["mended_by"]] == 1.0


def test_a_question_that_does_not_go_on_is_the_debate_s_fault(tmp_path: Path) -> None:
    """The second hop is right only after a question that goes on from what was found."""

    def choose(request: ChatRequest) -> Any:
        told = request.variables
        if request.task == "dog/relation_filtering" and "Denis" in told["entity"]:
            goes_on = "[Denis Villeneuve]" in told["question"]
            return filtering("birth place" if goes_on else "~director")
        if request.task == "dog/answer_trying" and "Denis" in told["found"][0]["entity"]:
            goes_on = "[Denis Villeneuve]" in told["question"]
            names = [triple[-1] for triple in told["found"][0]["triples"]]
            return trying(*names) if goes_on else trying("Sicario")
        if "debate" in told:
            return UNFINISHED
        return Model()(request)

    row = lose(tmp_path, choose)
    assert (row["agent"], row["stage"]) == ("simplifying", "question simplifying")
    assert row["step"] == "simplifying[hop 1]"


def test_a_wrong_vertex_is_the_choice_s_or_the_search_s_fault(tmp_path: Path) -> None:
    question = "Where was the director of that movie born?"
    row = lose(tmp_path, Model(topic_entity={"entities": ["that movie"]}), question)
    assert (row["agent"], row["stage"]) == ("entity_retriever", "topic entity")
