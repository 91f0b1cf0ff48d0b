"""The agents of Surveyor that write a query, execute it, and review its result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from rdflib import URIRef

from kgwb.errors import GraphError, GraphUnreachableError
from kgwb.kg.findings import SchemaFacts, inspect_result
from kgwb.kg.sparql import validate_query
from kgwb.kg.term_text import Prefixes, add_missing_prefixes, quote_text, short_name
from kgwb.run import Run, agent
from kgwb.run.ask import Check, Reply, ask, schema_config
from kgwb.systems.queries import execute_sparql, get_names_in_rows
from kgwb.systems.surveyor.mentions import format_mentions
from kgwb.systems.surveyor.records import Asked, Draft, Executed, Mentions, Part, Review
from kgwb.systems.surveyor.settings import SurveyorSettings
from kgwb.terms import DisplayNames, Term
from kgwb.text import pluralize

MAX_SHOWN_ERROR_CHARS = 600
"""Characters of an error that the reviewer sees."""
MAX_SHOWN_LITERAL_CHARS = 80
"""Characters of a literal that the reviewer sees."""


# The drafter


class DraftReply(Reply):
    """A query and the kind of answer it gives, or what the graph does not have."""

    model_config = schema_config(
        "DraftReply", "A query with what it asks for, or what the graph has nothing for."
    )

    reason: str
    sparql: str
    asked: Asked
    columns: list[str]
    assumptions: list[str]
    missing: str
    more: list[str]


def find_draft_problems(draft: Draft, mentions: Mentions, part: Part) -> Iterator[str]:
    """Yield what is wrong with a draft that a person puts in by hand.

    Its query must be a valid SELECT or ASK that only reads the graph. A draft without a query has
    no problems.
    """
    if not draft.sparql:
        return
    try:
        form = validate_query(draft.sparql).form
    except GraphError as error:
        yield error.message
    else:
        if form not in ("select", "ask"):
            yield f"the query is a {form.upper()}, but only SELECT and ASK can be used here"


@agent("drafter", check=find_draft_problems, kind="model")
def draft_query(mentions: Mentions, part: Part, run: Run) -> Draft:
    """Ask the model for a query that answers the question, given an excerpt of the survey.

    The draft has no query if the model replies that the graph lacks something (``missing``), or
    that it has to see other classes first (``more``). The model's request to see classes is ignored
    if it also wrote a query, or if the excerpt left no class out. Raises InvalidReplyError if no
    reply has the right form.
    """
    variables = {
        "question": mentions.question,
        "survey": part.text,
        "names": format_mentions(mentions, part.prefixes),
    }
    reply = ask("surveyor/drafter", variables, DraftReply, run)
    query = add_prefixes(reply.sparql, part.prefixes)
    if reply.more and part.left and not query:
        return Draft("", reply.asked, reason=reply.reason, more=tuple(reply.more))
    return Draft(
        query,
        reply.asked,
        columns=tuple(reply.columns),
        assumptions=tuple(reply.assumptions),
        missing="" if query else reply.missing,
        reason=reply.reason,
    )


def add_prefixes(text: str, prefixes: Prefixes) -> str:
    """Return a query with the PREFIX lines that it lacks.

    A text that is not a valid query is returned without the spaces around it. The error is shown to
    the reviewer when the query is executed.
    """
    query = text.strip()
    try:
        return add_missing_prefixes(query, prefixes)
    except GraphError:
        return query


# The executor


@agent("executor", subject="place", kind="sparql")
def execute_draft(place: str, sparql: str, facts: SchemaFacts, run: Run) -> Executed:
    """Execute a query, and look for signs of a mistake in its result.

    ``place`` is "draft" or "revision 1" and so on. An error of the query is part of the result, so
    that the reviewer can correct it. The rows have no display names if the graph cannot be asked
    for them. Raises GraphUnreachableError.
    """
    try:
        result = execute_sparql(run.kg, sparql)
    except GraphUnreachableError:  # a revision of the query does not help
        raise
    except GraphError as error:
        return Executed(sparql, error=error.message)
    findings = tuple(inspect_result(run.kg, sparql, result, facts))
    if isinstance(result, bool):
        return Executed(sparql, truth=result, findings=findings)

    names: Mapping[URIRef, str] = {}
    try:
        names = get_names_in_rows(result.rows, run)
    except GraphError as error:
        run.note(f"the names of the things in the rows could not be read: {error.message}")
    return Executed(
        sparql, result.variables, result.rows, findings, names=tuple(sorted(names.items()))
    )


def format_result(executed: Executed, max_rows: int) -> str:
    """Return a result as the reviewer reads it: its size, the findings, and the first rows.

    A finding that is likely to be a mistake begins with "!". Everything that the graph says is in
    quotes. Of a query that could not be executed, the error is returned.
    """
    if executed.error:
        return f"! It could not be run: {quote_text(executed.error, MAX_SHOWN_ERROR_CHARS)}"
    lines = [str(executed)]
    for finding in executed.findings:
        bullet = "!" if finding.wrong else "-"
        lines.append(f"{bullet} {finding}")
    if executed.rows:
        lines.append(" | ".join(f"?{column}" for column in executed.columns))
    names = {str(iri): name for iri, name in executed.names}
    for row in executed.rows[:max_rows]:
        lines.append(" | ".join(_format_cell(term, names) for term in row))
    if len(executed.rows) > max_rows:
        lines.append(f"and {pluralize(len(executed.rows) - max_rows, 'more row')}")
    return "\n".join(lines)


def _format_cell(term: Term | None, names: DisplayNames) -> str:
    """Return an IRI as its local part and its name in quotes, and any other term in quotes.

    An empty cell is an empty text.
    """
    if term is None:
        return ""
    if isinstance(term, URIRef):
        return f"{short_name(term)} {quote_text(names.get(str(term), ''))}"
    return quote_text(term, MAX_SHOWN_LITERAL_CHARS)


# The reviewer


class ReviewReply(Reply):
    """The verdict on a query, with a better query if the verdict is "revise"."""

    model_config = schema_config(
        "ReviewReply", "The verdict, with the better query where there is one."
    )

    reason: str
    verdict: Literal["fine", "revise", "not in this graph"]
    sparql: str
    columns: list[str]
    missing: str


@agent("reviewer", subject="place", kind="model")
def review_draft(
    place: str, mentions: Mentions, part: Part, drafted: Draft, executed: Executed, run: Run
) -> Review:
    """Ask the model whether a query and its result answer the question.

    The model must reply with a query if its verdict is "revise", and only then. The revised draft
    keeps the kind of answer and the assumptions of the old one, and also the columns unless the
    model names others. ``place`` is that of the old one, see ``execute_draft``. Raises
    InvalidReplyError if no reply is valid.
    """
    variables = {
        "question": mentions.question,
        "survey": part.text,
        "names": format_mentions(mentions, part.prefixes),
        "draft": _format_draft(drafted),
        "result": format_result(executed, SurveyorSettings.of_run(run).shown_rows),
    }
    check = Check("a query if and only if it revises", _find_review_problem)
    reply = ask("surveyor/reviewer", variables, ReviewReply, run, checks=(check,))
    if reply.verdict != "revise":
        return Review(reply.verdict, reply.missing or reply.reason)
    revised = Draft(
        add_prefixes(reply.sparql, part.prefixes),
        drafted.asked,
        columns=tuple(reply.columns) or drafted.columns,
        assumptions=drafted.assumptions,
        reason=reply.reason,
    )
    return Review("revise", reply.reason, revised)


def _format_draft(draft: Draft) -> str:
    """Return a query without its PREFIX lines, with each assumption as a comment below it."""
    lines = [draft.sparql_without_prefixes]
    for assumption in draft.assumptions:
        lines.append(f"# assumed: {' '.join(assumption.split())}")
    return "\n".join(lines)


def _find_review_problem(reply: ReviewReply) -> str:
    """Return the problem if a query comes without the verdict "revise", or the reverse; else ""."""
    has_query = bool(reply.sparql.strip())
    if has_query == (reply.verdict == "revise"):
        return ""
    return "sparql goes with revise, and only with it"
