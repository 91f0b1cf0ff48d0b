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
from kgwb.flow import Candidate, Dialogue, Retrieved
from kgwb.kg.embeddings import Index
from kgwb.kg.findings import Facts, findings_of
from kgwb.kg.queries import describe, holding
from kgwb.kg.sparql import checked
from kgwb.kg.survey_text import Group, Prefixes, Writer, curie, quoted, short_name, with_prefixes
from kgwb.run import Run, agent
from kgwb.run.ask import Check, Reply, ask, schema_config
from kgwb.systems.linking import relations_of
from kgwb.systems.queries import names_in, result_of
from kgwb.systems.surveyor.records import Asked, Draft, Executed, Mention, Mentions, Part, Review
from kgwb.systems.surveyor.settings import SurveyorSettings
from kgwb.terms import Term, local_name
from kgwb.text import pluralize

MOST_NAMES, TURNS = 8, 4
"""Names looked up, and earlier turns that a question may point back to."""
LONGEST_NAME, FULLY_SHOWN = 200, 2
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
def find_names(question: str, dialogue: Dialogue, classes: tuple[str, ...], run: Run) -> Mentions:
    """The names that a question has, and the classes it is about."""
    turns = dialogue.turns[-TURNS:]
    earlier = [
        {"question": t.standalone or t.question, "answers": list(t.answers[:5])} for t in turns
    ]
    variables = {"question": question, "earlier": earlier, "classes": list(classes)}
    reply = ask("surveyor/mention_finder", variables, MentionReply, run)
    names = dict.fromkeys(
        filter(None, (" ".join(name.split())[:LONGEST_NAME] for name in reply.names))
    )
    known = {name.casefold(): name for name in classes}
    chosen = dict.fromkeys(
        known[name.casefold()] for name in reply.classes if name.casefold() in known
    )
    alone = " ".join(reply.question.split()) or question
    return Mentions(alone, tuple(map(Mention, names))[:MOST_NAMES], tuple(chosen), reply.reason)


@agent("value_finder", subject="name", kind="search")
def find_values(
    name: str, retrieved: Retrieved, predicates: tuple[URIRef, ...], run: Run
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
        values = holding(run.kg, predicates, name)[:most]
    except GraphError as error:
        run.note(f"values were not searched for {name!r}: {error.message}")
        values = ()
    known = {each.iri for each in retrieved.candidates}
    shown = candidates[:most]
    if len(shown) <= FULLY_SHOWN:
        iris = [each.iri for each in shown]
        kinds, uses = describe(run.kg, iris), relations_of(iris, run) if iris else {}
        shown = tuple(replace(c, types=kinds[c.iri].types, relations=uses[c.iri]) for c in shown)
    return Mention(name, shown, tuple(v for v in values if v.value not in known))


LETTERS = 4
"""Of a token, on average."""


def relevant(writer: Writer, mentions: Mentions, run: Run, more: Iterable[str] = ()) -> Part:
    """The classes named, those of candidates, then the nearest to the question, as far as there is room."""
    wanted = {name.casefold() for name in (*more, *mentions.classes)}
    wanted |= {
        kind.casefold() for m in mentions.found for c in m.candidates[:3] for kind in c.types
    }
    used = {value.predicate for mention in mentions.found for value in mention.values}
    plain = []  # what each group is about, in words
    for group in writer.groups:
        uses = (
            writer.names.get(str(p.predicate)) or local_name(p.predicate)
            for p in group.properties[:16]
        )
        plain.append(", ".join([*group.names[:8], *uses]))
    near = (
        dict(run.nearest(mentions.question, Index(plain, run.embeddings), len(plain)))
        if plain
        else {}
    )

    def rank(place: int) -> tuple[bool, bool, float]:
        group = writer.groups[place]
        names = {name.casefold() for name in group.names}
        names |= {writer.curie(str(each.iri)).casefold() for each in (group.head, *group.members)}
        valued = any(each.predicate in used for each in group.properties)
        return not names & wanted, not valued, -near.get(place, 0)

    order = [writer.groups[place] for place in sorted(range(len(plain)), key=rank)]
    order = [
        g for g in order if not writer.is_structure(g) or {n.casefold() for n in g.names} & wanted
    ]
    return _written(order, writer, SurveyorSettings.of_run(run).survey_tokens, rest=True)


def of_query(writer: Writer, sparql: str, run: Run) -> Part:
    """The classes that a query is about, in half the room: for who reviews it."""
    terms = set(re.findall(r"[\w-]+:[\w-]+|<[^<>\s]+>", sparql))

    def uses(group: Group) -> int:
        iris = [each.iri for each in (group.head, *group.members)]
        iris += [each.predicate for each in group.properties]
        return len({writer.curie(str(iri)) for iri in iris} & terms)

    order = [group for group in writer.groups if uses(group) and not writer.is_structure(group)]
    tokens = SurveyorSettings.of_run(run).survey_tokens // 2
    return _written(sorted(order, key=uses, reverse=True), writer, tokens)


def _written(order: Iterable[Group], writer: Writer, tokens: int, *, rest: bool = False) -> Part:
    """The groups that there is room for, the first in any case; with ``rest`` the names of the others."""
    room = tokens * LETTERS
    shown: dict[str, str] = {}
    left: list[Group] = []
    for group in order:
        text = writer.group(group)
        if len(text) <= room or not shown:
            room -= len(text)
            shown[group.head.name] = text
        else:
            left.append(group)
    lines = [*shown.values(), *writer.remarks(shown.values())]
    if left and rest:
        lines.append(f"Other classes, not shown here: {', '.join(map(writer.title, left))}")
    prefixes = tuple((prefix, space) for space, prefix in writer.prefixes.items())
    return Part("\n".join(lines), tuple(shown), tuple(group.head.name for group in left), prefixes)


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
    query, missing = (
        as_query(reply.sparql, part.prefixes),
        "" if reply.sparql.strip() else reply.missing,
    )
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
            of = f"{curie(value.predicate, prefix_of)}, {pluralize(value.triples, 'triple')}"
            lines.append(f"  {shown} is a value of {of}")
    return "\n".join(lines) or "none"


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
    return Executed(
        sparql, result.variables, result.rows, findings, names=tuple(sorted(names.items()))
    )


def result_text(executed: Executed, most: int) -> str:
    """A result as a reviewer reads it: the findings, then the first rows with labels in quotes."""
    if executed.error:
        return f"! It could not be run: {quoted(executed.error, 600)}"
    names = dict(executed.names)
    lines = [
        str(executed),
        *(f"{'! ' if each.wrong else '- '}{each}" for each in executed.findings),
    ]

    def cell(term: Term | None) -> str:
        if isinstance(term, URIRef):
            return f"{short_name(term)} {quoted(names.get(term, ''))}"
        return "" if term is None else quoted(term, 80)

    if executed.rows:
        lines.append(" | ".join(f"?{column}" for column in executed.columns))
        lines += [" | ".join(map(cell, row)) for row in executed.rows[:most]]
        if len(executed.rows) > most:
            lines.append(f"and {pluralize(len(executed.rows) - most, 'more row')}")
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
def review(
    place: str, mentions: Mentions, part: Part, drafted: Draft, executed: Executed, run: Run
) -> Review:
    """Whether the query and its result stand."""
    variables = {
        "question": mentions.question,
        "survey": part.text,
        "names": names_text(mentions, part.prefixes),
        "draft": drafted.body
        + "".join(f"\n# assumed: {' '.join(a.split())}" for a in drafted.assumptions),
        "result": result_text(executed, SurveyorSettings.of_run(run).shown_rows),
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
