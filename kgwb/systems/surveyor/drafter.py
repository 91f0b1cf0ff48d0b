"""What a question names, the part of the survey that matters to it, a query, its result, and its revision."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Literal

from rdflib import URIRef

from kgwb.errors import GraphError, GraphUnreachableError
from kgwb.flow import Candidate, Dialogue, RetrievedCandidates
from kgwb.kg.embeddings import EmbeddingIndex
from kgwb.kg.findings import SchemaFacts, inspect_result
from kgwb.kg.queries import describe_vertices, find_values_containing
from kgwb.kg.sparql import validate_query
from kgwb.kg.survey_groups import ClassGroup
from kgwb.kg.survey_text import SurveyWriter
from kgwb.kg.term_text import Prefixes, add_missing_prefixes, quote_text, short_name, to_curie
from kgwb.run import Run, agent
from kgwb.run.ask import Check, Reply, ask, schema_config
from kgwb.systems.linking import find_relation_names
from kgwb.systems.queries import execute_sparql, get_names_in_rows
from kgwb.systems.surveyor.records import Asked, Draft, Executed, Mention, Mentions, Part, Review
from kgwb.systems.surveyor.settings import SurveyorSettings
from kgwb.terms import Term, name_from_iri
from kgwb.text import pluralize

MAX_NAMES, MAX_EARLIER_TURNS = 8, 4
"""Names looked up, and earlier turns that a question may point back to."""
MAX_NAME_CHARS, MAX_CANDIDATES_WITH_RELATIONS = 200, 2
"""Letters of a name, and candidates of which it is told which predicates they have."""


class MentionReply(Reply):
    """What to look up, and the classes the question is about."""

    model_config = schema_config(
        "MentionReply", "What to look up, and the classes the question is about."
    )

    reason: str
    question: str
    names: list[str]
    classes: list[str]


@agent("mention_finder", kind="model")
def find_mentions(
    question: str, dialogue: Dialogue, classes: tuple[str, ...], run: Run
) -> Mentions:
    """The names that a question has, and the classes it is about."""
    turns = dialogue.turns[-MAX_EARLIER_TURNS:]
    earlier = [
        {"question": t.standalone or t.question, "answers": list(t.answers[:5])} for t in turns
    ]
    variables = {"question": question, "earlier": earlier, "classes": list(classes)}
    reply = ask("surveyor/mention_finder", variables, MentionReply, run)
    names = dict.fromkeys(
        filter(None, (" ".join(name.split())[:MAX_NAME_CHARS] for name in reply.names))
    )
    known = {name.casefold(): name for name in classes}
    chosen = dict.fromkeys(
        known[name.casefold()] for name in reply.classes if name.casefold() in known
    )
    alone = " ".join(reply.question.split()) or question
    return Mentions(alone, tuple(map(Mention, names))[:MAX_NAMES], tuple(chosen), reply.reason)


@agent("value_finder", subject="name", kind="search")
def find_values(
    name: str, retrieved: RetrievedCandidates, predicates: tuple[URIRef, ...], run: Run
) -> Mention:
    """The name with its candidates, the best of each type first, and the values that hold its words."""
    most = SurveyorSettings.of_run(run).name_candidates
    alike = Counter[tuple[str, ...]]()
    ranks: dict[Candidate, tuple[bool, int]] = {}
    for each in retrieved.candidates:
        ranks[each] = each.score < 1, alike[each.types]
        alike[each.types] += 1
    candidates = tuple(sorted(ranks, key=ranks.__getitem__))
    try:
        values = find_values_containing(run.kg, predicates, name)[:most]
    except GraphError as error:
        run.note(f"values were not searched for {name!r}: {error.message}")
        values = ()
    known = {each.iri for each in retrieved.candidates}
    shown = candidates[:most]
    if len(shown) <= MAX_CANDIDATES_WITH_RELATIONS:
        iris = [each.iri for each in shown]
        kinds, uses = (
            describe_vertices(run.kg, iris),
            find_relation_names(iris, run) if iris else {},
        )
        shown = tuple(replace(c, types=kinds[c.iri].types, relations=uses[c.iri]) for c in shown)
    return Mention(name, shown, tuple(v for v in values if v.value not in known))


CHARS_PER_TOKEN = 4
"""Of a token, on average."""


def excerpt_for_question(
    writer: SurveyWriter, mentions: Mentions, run: Run, requested_classes: Iterable[str] = ()
) -> Part:
    """The classes named, those of candidates, then the nearest to the question, as far as there is room."""
    wanted = {name.casefold() for name in (*requested_classes, *mentions.classes)}
    wanted |= {
        kind.casefold() for m in mentions.found for c in m.candidates[:3] for kind in c.types
    }
    used = {value.predicate for mention in mentions.found for value in mention.values}
    plain = []  # what each group is about, in words
    for group in writer.groups:
        uses = (
            writer.names.get(str(p.predicate)) or name_from_iri(p.predicate)
            for p in group.properties[:16]
        )
        plain.append(", ".join([*group.names[:8], *uses]))
    near = (
        dict(run.nearest(mentions.question, EmbeddingIndex(plain, run.embeddings), len(plain)))
        if plain
        else {}
    )

    def rank(place: int) -> tuple[bool, bool, float]:
        group = writer.groups[place]
        names = {name.casefold() for name in group.names}
        names |= {
            writer.to_curie(str(each.iri)).casefold() for each in (group.top_class, *group.members)
        }
        valued = any(each.predicate in used for each in group.properties)
        return not names & wanted, not valued, -near.get(place, 0)

    order = [writer.groups[place] for place in sorted(range(len(plain)), key=rank)]
    order = [
        g for g in order if not writer.is_inlined(g) or {n.casefold() for n in g.names} & wanted
    ]
    return _write_excerpt(
        order, writer, SurveyorSettings.of_run(run).survey_tokens, list_omitted=True
    )


def excerpt_for_query(writer: SurveyWriter, sparql: str, run: Run) -> Part:
    """The classes that a query is about, in half the room: for who reviews it."""
    terms = set(re.findall(r"[\w-]+:[\w-]+|<[^<>\s]+>", sparql))

    def uses(group: ClassGroup) -> int:
        iris = [each.iri for each in (group.top_class, *group.members)]
        iris += [each.predicate for each in group.properties]
        return len({writer.to_curie(str(iri)) for iri in iris} & terms)

    order = [group for group in writer.groups if uses(group) and not writer.is_inlined(group)]
    tokens = SurveyorSettings.of_run(run).survey_tokens // 2
    return _write_excerpt(sorted(order, key=uses, reverse=True), writer, tokens)


def _write_excerpt(
    groups: Iterable[ClassGroup],
    writer: SurveyWriter,
    max_tokens: int,
    *,
    list_omitted: bool = False,
) -> Part:
    """The groups that there is room for, the first in any case; with ``rest`` the names of the others."""
    room = max_tokens * CHARS_PER_TOKEN
    shown: dict[str, str] = {}
    left: list[ClassGroup] = []
    for group in groups:
        text = writer.format_group(group)
        if len(text) <= room or not shown:
            room -= len(text)
            shown[group.top_class.name] = text
        else:
            left.append(group)
    lines = [*shown.values(), *writer.remarks(shown.values())]
    if left and list_omitted:
        lines.append(f"Other classes, not shown here: {', '.join(map(writer.format_title, left))}")
    prefixes = tuple((prefix, space) for space, prefix in writer.prefixes.items())
    return Part(
        "\n".join(lines), tuple(shown), tuple(group.top_class.name for group in left), prefixes
    )


# --- a query, what it gives, and its revision


class DraftReply(Reply):
    """A query with what it asks for, or what the graph has nothing for."""

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
    """What is wrong with a query put in by hand."""
    try:
        if draft.sparql and validate_query(draft.sparql).form not in ("select", "ask"):
            yield "the query is no SELECT or ASK"
    except GraphError as error:
        yield error.message


@agent("drafter", check=find_draft_problems, kind="model")
def draft_query(mentions: Mentions, part: Part, run: Run) -> Draft:
    """A query for the question, or what the graph has nothing for; ``more`` names classes to be shown."""
    names = format_mentions(mentions, part.prefixes)
    variables = {"question": mentions.question, "survey": part.text, "names": names}
    reply = ask("surveyor/drafter", variables, DraftReply, run)
    if reply.more and not reply.sparql.strip() and part.left:
        return Draft("", reply.asked, reason=reply.reason, more=tuple(reply.more))
    query, missing = (
        add_prefixes(reply.sparql, part.prefixes),
        "" if reply.sparql.strip() else reply.missing,
    )
    columns, assumed = tuple(reply.columns), tuple(reply.assumptions)
    return Draft(query, reply.asked, columns, assumed, missing, reply.reason)


def add_prefixes(text: str, prefixes: Prefixes) -> str:
    """A query with its PREFIX lines; a text that does not parse stays as it is, and fails when it is run."""
    with suppress(GraphError):
        return add_missing_prefixes(text, prefixes) if text.strip() else ""
    return text.strip()


def format_mentions(mentions: Mentions, prefixes: Prefixes) -> str:
    """What was looked up: a line for each candidate with its IRI, and its label and types in quotes."""
    lines, prefix_of = [], {space: prefix for prefix, space in prefixes}
    for mention in mentions.found:
        nothing = "" if mention.candidates or mention.values else ": nothing found"
        lines.append(f"{quote_text(mention.name)}{nothing}")
        for each in mention.candidates:
            about = filter(None, (each.label, *each.types[:2], each.description))
            uses = f" [{', '.join(map(quote_text, each.relations[:16]))}]" if each.relations else ""
            lines.append(
                f"  {to_curie(each.iri, prefix_of)} {', '.join(map(quote_text, about))}{uses}"
            )
        for value in mention.values:
            is_iri = isinstance(value.value, URIRef)
            shown = to_curie(value.value, prefix_of) if is_iri else quote_text(value.value)
            of = f"{to_curie(value.predicate, prefix_of)}, {pluralize(value.triples, 'triple')}"
            lines.append(f"  {shown} is a value of {of}")
    return "\n".join(lines) or "none"


@agent("executor", subject="place", kind="sparql")
def execute_draft(place: str, sparql: str, facts: SchemaFacts, run: Run) -> Executed:
    """The rows of a query with what is odd about them; what the graph refuses is told, and is no error."""
    try:
        result = execute_sparql(run.kg, sparql)
    except GraphUnreachableError:
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
        run.note(f"the rows stay without names: {error.message}")
    return Executed(
        sparql, result.variables, result.rows, findings, names=tuple(sorted(names.items()))
    )


def format_result(executed: Executed, max_rows: int) -> str:
    """A result as a reviewer reads it: the findings, then the first rows with labels in quotes."""
    if executed.error:
        return f"! It could not be run: {quote_text(executed.error, 600)}"
    names = dict(executed.names)
    lines = [
        str(executed),
        *(f"{'! ' if each.wrong else '- '}{each}" for each in executed.findings),
    ]

    def cell(term: Term | None) -> str:
        if isinstance(term, URIRef):
            return f"{short_name(term)} {quote_text(names.get(term, ''))}"
        return "" if term is None else quote_text(term, 80)

    if executed.rows:
        lines.append(" | ".join(f"?{column}" for column in executed.columns))
        lines += [" | ".join(map(cell, row)) for row in executed.rows[:max_rows]]
        if len(executed.rows) > max_rows:
            lines.append(f"and {pluralize(len(executed.rows) - max_rows, 'more row')}")
    return "\n".join(lines)


class ReviewReply(Reply):
    """The verdict, with the better query where there is one."""

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
    """Whether the query and its result stand."""
    variables = {
        "question": mentions.question,
        "survey": part.text,
        "names": format_mentions(mentions, part.prefixes),
        "draft": drafted.sparql_without_prefixes
        + "".join(f"\n# assumed: {' '.join(a.split())}" for a in drafted.assumptions),
        "result": format_result(executed, SurveyorSettings.of_run(run).shown_rows),
    }

    def revised(reply: ReviewReply) -> str:
        same = (reply.verdict == "revise") == bool(reply.sparql.strip())
        return "" if same else "sparql goes with revise, and only with it"

    checks = (Check("a query if and only if it revises", revised),)
    reply = ask("surveyor/reviewer", variables, ReviewReply, run, checks=checks)
    if reply.verdict != "revise":
        return Review(reply.verdict, reply.missing or reply.reason)
    columns = tuple(reply.columns) or drafted.columns
    query = add_prefixes(reply.sparql, part.prefixes)
    better = Draft(query, drafted.asked, columns, drafted.assumptions, reason=reply.reason)
    return Review("revise", reply.reason, better)
