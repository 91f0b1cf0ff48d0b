"""Drafter: a query for a question, written from the part of the survey that matters."""

from __future__ import annotations

import json
from collections.abc import Iterator

from pydantic import BaseModel, ConfigDict

from kgwb.errors import GraphError
from kgwb.kg.sparql import checked
from kgwb.run import Run, agent
from kgwb.run.ask import ask
from kgwb.systems.surveyor.part import with_prefixes
from kgwb.systems.surveyor.records import Asked, Draft, Mentions, Part, Prefixes


class DraftReply(BaseModel):
    """A query with what it asks for, or what the graph has nothing for."""

    model_config = ConfigDict(extra="forbid")
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
    variables = {
        "question": mentions.question,
        "survey": part.text,
        "names": names_text(mentions, part.prefixes),
    }
    reply = ask("surveyor/drafter", variables, DraftReply, run)
    if reply.more and not reply.sparql.strip() and part.left:
        return Draft(
            "", reply.asked, missing=", ".join(reply.more), reason=reply.reason, more=tuple(reply.more)
        )
    return Draft(
        as_query(reply.sparql, part.prefixes),
        reply.asked,
        tuple(reply.columns),
        tuple(reply.assumptions),
        reply.missing if not reply.sparql.strip() else "",
        reply.reason,
    )


def as_query(text: str, prefixes: Prefixes) -> str:
    """A query with its PREFIX lines; a text that does not parse stays as it is, and fails when it is run."""
    try:
        return with_prefixes(text, prefixes) if text.strip() else ""
    except GraphError:
        lines = (f"PREFIX {prefix}: <{space}>" for prefix, space in prefixes)
        return text.strip() if "PREFIX" in text.upper() else "\n".join([*lines, text.strip()])


def names_text(mentions: Mentions, prefixes: Prefixes) -> str:
    """What was looked up, a line for each candidate: its IRI, and in quotes its label, types and relations."""
    lines = []
    for mention in mentions.found:
        lines.append(
            f"{json.dumps(mention.name, ensure_ascii=False)}{'' if mention.candidates or mention.values else ': nothing found'}"
        )
        for each in mention.candidates:
            about = [each.description[:80], *each.relations[:8]]
            told = ", ".join(
                json.dumps(text, ensure_ascii=False)
                for text in (each.label, *each.types[:2], *filter(None, about))
            )
            lines.append(f"  {curie(each.iri, prefixes)} {told}")
        for value in mention.values:
            shown = curie(value.value, prefixes) if hasattr(value.value, "defrag") else value.value.n3()
            lines.append(
                f"  {shown} is a value of {curie(value.predicate, prefixes)}, {value.triples} triples"
            )
    return "\n".join(lines) or "none"


def curie(iri: str, prefixes: Prefixes) -> str:
    """An IRI with one of these prefixes, or in brackets."""
    from kgwb.systems.surveyor.part import LOCAL

    for prefix, space in prefixes:
        if iri.startswith(space) and LOCAL.fullmatch(iri[len(space) :]):
            return f"{prefix}:{iri[len(space) :]}"
    return f"<{iri}>"
