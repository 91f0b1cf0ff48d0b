"""Drafter, executor and reviewer: a query for a question, run, and revised by what came back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Literal

from rdflib import URIRef

from kgwb.errors import GraphError, GraphUnreachableError
from kgwb.flow import Term, counted
from kgwb.kg.findings import Facts, findings_of
from kgwb.kg.sparql import checked
from kgwb.kg.survey_text import Prefixes, curie, quoted, short_name, with_prefixes
from kgwb.run import Run, agent
from kgwb.run.ask import Check, Reply, ask
from kgwb.systems.queries import names_in, result_of
from kgwb.systems.surveyor.records import Asked, Draft, Executed, Mentions, Part, Review
from kgwb.systems.surveyor.settings import settings_of


@agent("executor", subject="place", kind="sparql")
def execute(place: str, sparql: str, facts: Facts, run: Run) -> Executed:
    """The rows of a query with what is odd about them; what the graph refuses is told, and is no error."""
    try:
        result = result_of(run.kg, sparql)
    except GraphUnreachableError:
        raise
    except GraphError as error:
        return Executed(sparql, error=error.message)
    findings = tuple(findings_of(run.kg, sparql, result, facts))
    if isinstance(result, bool):
        return Executed(sparql, truth=result, findings=findings)
    names: Mapping[URIRef, str] = {}
    try:
        names = names_in(result.rows, run)
    except GraphError as error:
        run.note(f"the rows stay without names: {error.message}")
    return Executed(sparql, result.variables, result.rows, findings, names=tuple(sorted(names.items())))


def result_text(executed: Executed, most: int) -> str:
    """A result as a reviewer reads it: the findings, then the first rows with labels in quotes."""
    if executed.error:
        return f"! It could not be run: {quoted(executed.error, 600)}"
    names = dict(executed.names)
    lines = [str(executed), *(f"{'! ' if each.wrong else '- '}{each}" for each in executed.findings)]

    def cell(term: Term | None) -> str:
        if isinstance(term, URIRef):
            return f"{short_name(term)} {quoted(names.get(term, ''))}"
        return "" if term is None else quoted(term, 80)

    if executed.rows:
        lines.append(" | ".join(f"?{column}" for column in executed.columns))
        lines += [" | ".join(map(cell, row)) for row in executed.rows[:most]]
        if len(executed.rows) > most:
            lines.append(f"and {counted(len(executed.rows) - most, 'more row')}")
    return "\n".join(lines)


class DraftReply(Reply):
    """A query with what it asks for, or what the graph has nothing for."""

    reason: str
    sparql: str
    asked: Asked
    columns: list[str]
    assumptions: list[str]
    missing: str
    more: list[str]


def problems(draft: Draft, mentions: Mentions, part: Part) -> Iterator[str]:
    """What is wrong with a query put in by hand."""
    try:
        if draft.sparql and checked(draft.sparql).form not in ("select", "ask"):
            yield "the query is no SELECT or ASK"
    except GraphError as error:
        yield error.message


@agent("drafter", check=problems, kind="model")
def draft(mentions: Mentions, part: Part, run: Run) -> Draft:
    """A query for the question, or what the graph has nothing for; ``more`` names classes to be shown."""
    names = names_text(mentions, part.prefixes)
    variables = {"question": mentions.question, "survey": part.text, "names": names}
    reply = ask("surveyor/drafter", variables, DraftReply, run)
    if reply.more and not reply.sparql.strip() and part.left:
        return Draft("", reply.asked, reason=reply.reason, more=tuple(reply.more))
    query, missing = as_query(reply.sparql, part.prefixes), "" if reply.sparql.strip() else reply.missing
    columns, assumed = tuple(reply.columns), tuple(reply.assumptions)
    return Draft(query, reply.asked, columns, assumed, missing, reply.reason)


def as_query(text: str, prefixes: Prefixes) -> str:
    """A query with its PREFIX lines; a text that does not parse stays as it is, and fails when it is run."""
    with suppress(GraphError):
        return with_prefixes(text, prefixes) if text.strip() else ""
    return text.strip()


def names_text(mentions: Mentions, prefixes: Prefixes) -> str:
    """What was looked up: a line for each candidate with its IRI, and its label and types in quotes."""
    lines, prefix_of = [], {space: prefix for prefix, space in prefixes}
    for mention in mentions.found:
        nothing = "" if mention.candidates or mention.values else ": nothing found"
        lines.append(f"{quoted(mention.name)}{nothing}")
        for each in mention.candidates:
            about = filter(None, (each.label, *each.types[:2], each.description))
            uses = f" [{', '.join(map(quoted, each.relations[:16]))}]" if each.relations else ""
            lines.append(f"  {curie(each.iri, prefix_of)} {', '.join(map(quoted, about))}{uses}")
        for value in mention.values:
            is_iri = isinstance(value.value, URIRef)
            shown = curie(value.value, prefix_of) if is_iri else quoted(value.value)
            of = f"{curie(value.predicate, prefix_of)}, {counted(value.triples, 'triple')}"
            lines.append(f"  {shown} is a value of {of}")
    return "\n".join(lines) or "none"


class ReviewReply(Reply):
    """The verdict, with the better query where there is one."""

    reason: str
    verdict: Literal["fine", "revise", "not in this graph"]
    sparql: str
    columns: list[str]
    missing: str


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

    def revised(reply: ReviewReply) -> str:
        same = (reply.verdict == "revise") == bool(reply.sparql.strip())
        return "" if same else "sparql goes with revise, and only with it"

    checks = (Check("a query if and only if it revises", revised),)
    reply = ask("surveyor/reviewer", variables, ReviewReply, run, checks=checks)
    if reply.verdict != "revise":
        return Review(reply.verdict, reply.missing or reply.reason)
    columns = tuple(reply.columns) or drafted.columns
    query = as_query(reply.sparql, part.prefixes)
    better = Draft(query, drafted.asked, columns, drafted.assumptions, reason=reply.reason)
    return Review("revise", reply.reason, better)
