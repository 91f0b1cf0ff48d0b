"""Reviewer: does the result answer the question? If not, a better query, or none at all."""

from __future__ import annotations

from collections.abc import Iterator
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
    return (
        ""
        if (reply.verdict == "revise") == bool(reply.sparql.strip())
        else "sparql goes with revise, and only with it"
    )


CHECKS = (Check("a query if and only if it revises", _revised),)


def problems(
    review: Review, place: str, mentions: Mentions, part: Part, drafted: Draft, executed: Executed
) -> Iterator[str]:
    """What is wrong with a verdict put in by hand."""
    if (review.verdict == "revise") != (review.draft is not None):
        yield "a draft goes with revise, and only with it"


@agent("reviewer", subject="place", check=problems, kind="model")
def review(
    place: str, mentions: Mentions, part: Part, drafted: Draft, executed: Executed, run: Run
) -> Review:
    """Whether the query and its result stand."""
    variables = {
        "question": mentions.question,
        "survey": part.text,
        "names": names_text(mentions, part.prefixes),
        "draft": short(drafted.sparql),
        "result": result_text(executed, settings_of(run).shown_rows),
    }
    reply = ask("surveyor/reviewer", variables, ReviewReply, run, checks=CHECKS)
    if reply.verdict != "revise":
        return Review(reply.verdict, reply.missing or reply.reason)
    columns = tuple(reply.columns) or drafted.columns
    revised = Draft(
        as_query(reply.sparql, part.prefixes),
        drafted.asked,
        columns,
        drafted.assumptions,
        reason=reply.reason,
    )
    return Review("revise", reply.reason, revised)


def short(sparql: str) -> str:
    """A query without its PREFIX lines, which the survey's CURIEs repeat."""
    return "\n".join(line for line in sparql.splitlines() if not line.startswith("PREFIX "))
