"""Whole runs of Surveyor, which are compared with those that were recorded."""

from __future__ import annotations

from typing import Any

from conformance.whole_runs import (
    WholeRuns,
    check_whole_runs,
    open_in_order,
    read_cases,
    run_to_end,
)
from nasty_graphs import TWINS
from small import FILMS
from surveying import DIRECTED, FINE, SURVEYOR, WARD, YARD, draft, mention, script, surveyor

from kgwb.llm import Scripted
from kgwb.run import Run
from kgwb.run.answers import Dialogue, Turn

GRAPHS = {"films": FILMS, "yard": YARD, "twins": TWINS, "ward": WARD}


def read_draft(told: dict[str, Any]) -> dict[str, Any]:
    """The reply of the drafter as a case has it."""
    whole = {"sparql": DIRECTED, "asked": "list", "columns": [], **told}
    return draft(whole.pop("sparql"), whole.pop("asked"), *whole.pop("columns"), **whole)


def make_whole_runs() -> WholeRuns:
    """The runs of all cases, and of some of their readings."""
    runs: dict[str, tuple[Run, Scripted]] = {}
    for graph_name, cases in read_cases("surveyor").items():
        kg = open_in_order(GRAPHS.get(graph_name) or cases.pop("turtle"))
        for title, case in cases.items():
            named = {"names": [], "classes": [], **case.get("names", {})}
            if graph_name == "films" and "names" not in case:
                named = {"names": ["Denis Villeneuve"]}
            drafts = [read_draft(told) for told in case.get("drafts", [{}])]
            replies = script(
                [*drafts, *drafts[-1:] * 2],
                [{**FINE, **told} for told in case.get("reviews", [{}] * 3)],
                mention(*named.pop("names"), **named),
            )
            is_reviewed = not case.get("unreviewed", graph_name == "yard")
            settings = SURVEYOR.settings(always_reviews=is_reviewed, **case.get("settings", {}))
            model = Scripted(replies)
            turns = (Turn(asked, tuple(told)) for asked, told in case.get("dialogue", {}).items())
            dialogue = Dialogue(tuple(turns))
            run = run_to_end(surveyor(model, kg=kg, settings=settings, dialogue=dialogue))
            runs[f"{graph_name}: {title}"] = (run, model)
            for number, reading in enumerate(run.readings, 1):
                is_chosen = graph_name == "yard" and reading.sparql
                if is_chosen or number == case.get("other"):
                    other = run_to_end(run.read_as(number))
                    runs[f"{graph_name}: {title}, read as {number}"] = (other, model)
    return runs


def test_whole_runs_send_and_do_what_they_did() -> None:
    check_whole_runs("surveyor", make_whole_runs())
