"""The first agents of Surveyor: the names that a question mentions, and what they may refer to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from rdflib import Literal, URIRef

from kgwb.build import (
    Candidate,
    Dialogue,
    GraphError,
    Reply,
    RetrievedCandidates,
    Run,
    Term,
    agent,
    ask_model,
    schema_config,
)
from kgwb.build.graph import describe_vertices, find_values_containing
from kgwb.build.linking import find_relation_names
from kgwb.build.text import (
    Prefixes,
    format_exactly,
    format_typed_literal,
    pluralize,
    quote_text,
    tell_apart,
    to_curie,
)
from kgwb.systems.surveyor.class_names import choose_titles
from kgwb.systems.surveyor.records import Mention, Mentions
from kgwb.systems.surveyor.settings import SurveyorSettings

MAX_NAMES = 8
"""Names of a question that are looked up."""
MAX_NAME_CHARS = 200
"""Characters of a name that are kept."""
MAX_EARLIER_TURNS = 4
"""Earlier turns that the model sees, the latest ones."""
MAX_EARLIER_ANSWERS = 5
"""Answers of an earlier turn that the model sees."""
MAX_CANDIDATES_WITH_RELATIONS = 2
"""The predicates of candidates are looked up only if a name has at most so many candidates."""
MAX_SHOWN_TYPES = 2
MAX_SHOWN_RELATIONS = 16


class MentionReply(Reply):
    """What to look up in the graph, and the classes that the question is about."""

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
    """Ask the model for the names that a question mentions, and for the classes it is about.

    The model sees the latest turns of the dialogue, and completes a question that depends on them.
    ``classes`` are the titles of the graph's classes; others that the model replies are dropped. At
    most MAX_NAMES names are kept. They have no candidates yet. Raises InvalidReplyError if no reply
    has the right form.
    """
    earlier = _describe_turns(dialogue)
    variables = {"question": question, "earlier": earlier, "classes": list(classes)}
    reply = ask_model("surveyor/mention_finder", variables, MentionReply, run)
    names = _clean_names(reply.names)[:MAX_NAMES]
    full_question = " ".join(reply.question.split()) or question
    known_classes = choose_titles(reply.classes, classes)
    return Mentions(full_question, tuple(map(Mention, names)), known_classes, reply.reason)


def _describe_turns(dialogue: Dialogue) -> list[dict[str, object]]:
    """Return the last MAX_EARLIER_TURNS turns as data for the prompt, oldest first.

    A turn has its question, in full if that is known, and its first MAX_EARLIER_ANSWERS answers.
    """
    described: list[dict[str, object]] = []
    for turn in dialogue.turns[-MAX_EARLIER_TURNS:]:
        answers = list(turn.answers[:MAX_EARLIER_ANSWERS])
        described.append({"question": turn.standalone or turn.question, "answers": answers})
    return described


def _clean_names(names: Iterable[str]) -> list[str]:
    """Return names in one line each, cut at MAX_NAME_CHARS; without empty and repeated ones."""
    cleaned = [" ".join(name.split())[:MAX_NAME_CHARS] for name in names]
    return list(dict.fromkeys(filter(None, cleaned)))


@agent("value_finder", subject="name", kind="search")
def find_values(
    name: str, retrieved: RetrievedCandidates, predicates: tuple[URIRef, ...], run: Run
) -> Mention:
    """Select the best candidates for a name, and search the graph for values that contain it.

    Candidates with exactly this label come first, and different types before several of one type.
    Values are searched at ``predicates``; those that are candidates are left out. If the graph
    raises an error, there are no values, and the step has a note. The setting ``name_candidates``
    limits both. Up to MAX_CANDIDATES_WITH_RELATIONS candidates get the names of their types and
    predicates, for which the graph is queried; more candidates stay as they are.
    """
    limit = SurveyorSettings.of_run(run).name_candidates
    candidates = _alternate_types(retrieved.candidates)[:limit]
    try:
        matches = find_values_containing(run.kg, predicates, name)[:limit]
    except GraphError as error:
        run.note(f"values that contain {name!r} could not be searched: {error.message}")
        matches = ()
    candidate_iris = {candidate.iri for candidate in retrieved.candidates}
    values = [match for match in matches if match.value not in candidate_iris]
    if 0 < len(candidates) <= MAX_CANDIDATES_WITH_RELATIONS:
        candidates = _add_relations(candidates, run)
    return Mention(name, tuple(candidates), tuple(values))


def _alternate_types(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Return candidates sorted so that different types alternate, those with an exact label first.

    Both parts begin with the first candidate of each combination of types, then come the second
    ones, and so on, so that a limit does not cut off a type because another one has many
    candidates.
    """
    ranks: dict[Candidate, tuple[bool, int]] = {}
    counts = Counter[tuple[str, ...]]()
    for candidate in candidates:
        is_inexact = candidate.score < 1
        ranks[candidate] = (is_inexact, counts[candidate.types])
        counts[candidate.types] += 1
    return sorted(ranks, key=ranks.__getitem__)


def _add_relations(candidates: Sequence[Candidate], run: Run) -> list[Candidate]:
    """Return copies of candidates with the names of their types and of their predicates, in their order.

    The graph is queried for both. Raises a GraphError if it fails.
    """
    iris = [candidate.iri for candidate in candidates]
    descriptions = describe_vertices(run.kg, iris)
    relations = find_relation_names(iris, run)
    described = []
    for candidate in candidates:
        types = descriptions[candidate.iri].types
        described.append(replace(candidate, types=types, relations=relations[candidate.iri]))
    return described


# Mentions as a model reads them


def format_mentions(mentions: Mentions, prefixes: Prefixes) -> str:
    """Return what was found for each name, as text for the drafter and the reviewer; "none" without names.

    A name has one line, and each of its candidates and values has an indented line below it. IRIs
    are CURIEs. Everything that the graph or the question says is in quotes, so that it cannot pass
    for an instruction. Different values never look the same.
    """
    prefix_of = {namespace: prefix for prefix, namespace in prefixes}
    values: dict[Term, None] = {}
    for mention in mentions.found:
        values.update(dict.fromkeys(match.value for match in mention.values))
    text_of = _format_values(values, prefix_of)
    lines = []
    for mention in mentions.found:
        heading = quote_text(mention.name)
        if not mention.candidates and not mention.values:
            heading += ": nothing found"
        lines.append(heading)
        for candidate in mention.candidates:
            lines.append(f"  {_format_candidate(candidate, prefix_of)}")
        for match in mention.values:
            predicate = to_curie(match.predicate, prefix_of)
            number = pluralize(match.triples, "triple")
            lines.append(f"  {text_of[match.value]} is a value of {predicate}, {number}")
    return "\n".join(lines) or "none"


def _format_values(values: Iterable[Term], prefix_of: Mapping[str, str]) -> dict[Term, str]:
    """Return a text for each value: the CURIE of an IRI, or a literal in quotes; no two are the same.

    Literals that would read the same have their language or datatype behind them. ``prefix_of`` has
    the prefix of each namespace.
    """

    def format_shortly(value: Term) -> str:
        if isinstance(value, URIRef):
            return to_curie(value, prefix_of)
        return quote_text(value)

    def format_fully(value: Term) -> str:
        if isinstance(value, Literal):
            return format_typed_literal(value, prefix_of)
        return format_exactly(value)

    return tell_apart(values, (format_shortly, format_fully, format_exactly))


def _format_candidate(candidate: Candidate, prefix_of: Mapping[str, str]) -> str:
    """Return a candidate as its CURIE, label, first types, description, and first predicates.

    There are at most MAX_SHOWN_TYPES types and MAX_SHOWN_RELATIONS predicates. All but the CURIE is
    in quotes, and the predicates are in brackets. ``prefix_of`` has the prefix of each namespace.
    """
    details = [candidate.label, *candidate.types[:MAX_SHOWN_TYPES], candidate.description]
    quoted = ", ".join(quote_text(detail) for detail in details if detail)
    text = f"{to_curie(candidate.iri, prefix_of)} {quoted}"
    if candidate.relations:
        relations = map(quote_text, candidate.relations[:MAX_SHOWN_RELATIONS])
        text += f" [{', '.join(relations)}]"
    return text
