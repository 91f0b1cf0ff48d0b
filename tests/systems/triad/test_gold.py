"""Gold decisions of Triad: the agent that lost an answer, and the recall of linking in a report."""

from pathlib import Path
from typing import Any

import pytest
from small import EX, find_losses
from triads import choice, template, triplets

from kgwb.bench.figures import make_linking_table
from kgwb.bench.questions import BenchQuestion
from kgwb.bench.report import Report

TEXT = "Where was the director of Arrival born?"
SPARQL = f"PREFIX : <{EX}> SELECT DISTINCT ?city WHERE {{ :arrival :director ?d . ?d :birthPlace ?city }}"
ASKED = BenchQuestion(id="1", question=TEXT, sparql=SPARQL, answers=(f"{EX}gentilly",))
TWO_HOPS = triplets("Arrival | directed by | ?person", "?person | born in | ?city")


class Model:
    """Says what is right to every agent, or what it is told to say instead."""

    def __init__(self, **wrong: Any) -> None:
        self.wrong = wrong

    def __call__(self, request: Any) -> Any:
        agent = request.task.removeprefix("triad/")
        if agent in self.wrong:
            return self.wrong[agent]
        shown = request.variables
        if agent == "relation_choice":
            names = ("director", "birth place")
            right = [each["number"] for each in shown["relations"] if each["triple"][1] in names]
            return choice(*right[:2])
        if agent == "template":
            return template(self.template_for(shown["triplets"]))
        return {
            "triplets": TWO_HOPS,
            "entity_choice": choice(1),
            "query_choice_judgement": choice(1),
            "answer_type": {"type": "select"},
        }[agent]

    def template_for(self, shown: Any) -> str:
        triples = []
        for subject, relation, object_ in shown:
            ends = [end if end.startswith("?") else f"<{end}>" for end in (subject, object_)]
            triples.append(f"{ends[0]} <{relation}> {ends[1]} .")
        target = shown[-1][2]
        return f"SELECT DISTINCT {target} WHERE {{ {' '.join(triples)} }}"


SHORT = template(
    "SELECT DISTINCT ?person WHERE { <Arrival> <directed by> ?person . ?person <born in> ?city . }"
)


@pytest.mark.parametrize(
    ("wrong", "agent", "mended_by"),
    [
        ({"triplets": triplets("Arrival | directed by | ?city")}, "triplets", "triplets"),
        ({"triplets": triplets("?x | was born in | ?y")}, "triplets", "triplets"),
        ({"relation_choice": choice()}, "relation_choice", "relations"),
        ({"template": SHORT}, "template", "template"),
        ({"query_choice_judgement": choice()}, "query_choice", "choice"),
    ],
)
def test_the_agent_that_lost_the_answer_is_named(
    tmp_path: Path, wrong: dict[str, Any], agent: str, mended_by: str
) -> None:
    _, [row] = find_losses(tmp_path, ASKED, Model(**wrong), system="triad")
    assert (row["agent"], row["mended_by"]) == (agent, mended_by)
    phases = {"triplets": "parsing", "relation_choice": "linking"}
    assert row["stage"] == phases.get(agent, "construction")


def test_a_report_has_the_recall_of_linking(tmp_path: Path) -> None:
    find_losses(tmp_path, ASKED, Model(relation_choice=choice()), system="triad")
    text = str(make_linking_table(Report(tmp_path).results).render())
    assert "1.000" in text
    assert "0.000" in text
