"""Reviewer: does the result answer the question? If not, a better query, or none at all."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from kgwb.run import Run, agent
from kgwb.run.ask import Check, ask
from kgwb.systems.surveyor.drafter import as_query, names_text
from kgwb.systems.surveyor.executor import result_text
from kgwb.systems.surveyor.records import Draft, Executed, Mentions, Part, Review
from kgwb.systems.surveyor.settings import settings_of


class ReviewReply(BaseModel):
    """The verdict, with the better query where there is one."""

    model_config = ConfigDict(extra="forbid")
    reason: str
    verdict: Literal["fine", "revise", "not in this graph"]
    sparql: str
    columns: list[str]
    missing: str


def _revised(reply: ReviewReply) -> str:
    same = (reply.verdict == "revise") == bool(reply.sparql.strip())
    return "" if same else "sparql goes with revise, and only with it"


CHECKS = (Check("a query if and only if it revises", _revised),)


@agent("reviewer", subject="place", kind="model")
def review(
    place: str, mentions: Mentions, part: Part, drafted: Draft, executed: Executed, run: Run
) -> Review:
    """Whether the query and its result stand."""
    variables = {
        "question": mentions.question,
        "survey": part.text,
        "names": names_text(mentions, part.prefixes),
        "draft": drafted.body + "".join(f"\n# assumed: {' '.join(a.split())}" for a in drafted.assumptions),
        "result": result_text(executed, settings_of(run).shown_rows),
    }
    reply = ask("surveyor/reviewer", variables, ReviewReply, run, checks=CHECKS)
    if reply.verdict != "revise":
        return Review(reply.verdict, reply.missing or reply.reason)
    columns = tuple(reply.columns) or drafted.columns
    query = as_query(reply.sparql, part.prefixes)
    revised = Draft(query, drafted.asked, columns, drafted.assumptions, reason=reply.reason)
    return Review("revise", reply.reason, revised)
