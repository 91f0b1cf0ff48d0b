"""Excerpts of a survey: the classes that matter to a question or to a query, as a model reads them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from rdflib import URIRef

from kgwb.kg.embeddings import EmbeddingIndex
from kgwb.kg.survey_groups import ClassGroup
from kgwb.kg.survey_text import SurveyWriter
from kgwb.run import Run
from kgwb.systems.surveyor.records import Mentions, Part
from kgwb.systems.surveyor.settings import SurveyorSettings
from kgwb.terms import name_from_iri

CHARS_PER_TOKEN = 4
"""Characters of a token on average."""
MAX_TYPED_CANDIDATES = 3
"""Candidates of a mention whose types are shown to the drafter."""
MAX_EMBEDDED_CLASSES = 8
"""Names of a group of classes that are compared with the question."""
MAX_EMBEDDED_PREDICATES = 16
"""Predicates of a group of classes that are compared with the question."""


def excerpt_for_question(
    writer: SurveyWriter, mentions: Mentions, run: Run, requested_classes: Iterable[str] = ()
) -> Part:
    """Return the classes that matter most to a question, as many as ``survey_tokens`` allows.

    First come the classes that the drafter requested, that the question is about, or that a mention
    has candidates of; then those that have a value found for a mention; then the others. Among
    equals, the classes nearest to the question by embeddings come first. A class that the survey
    describes at the predicates that lead to it is left out, unless it is wanted by name.
    """
    wanted_names = _wanted_class_names(mentions, requested_classes)
    value_predicates: set[URIRef] = set()
    for mention in mentions.found:
        for match in mention.values:
            value_predicates.add(match.predicate)
    similarities = _similarities_to_question(writer, mentions.question, run)

    ranks: dict[int, tuple[bool, bool, float]] = {}
    for position, group in enumerate(writer.groups):
        names = set(map(str.casefold, group.names))
        if writer.is_inlined(group) and not names & wanted_names:
            continue
        names.update(map(str.casefold, _class_curies(group, writer)))
        is_unwanted = names.isdisjoint(wanted_names)
        lacks_value = value_predicates.isdisjoint(prop.predicate for prop in group.properties)
        ranks[position] = (is_unwanted, lacks_value, -similarities.get(position, 0))
    positions = sorted(ranks, key=ranks.__getitem__)
    return _write_excerpt(positions, writer, run)


def _wanted_class_names(mentions: Mentions, requested_classes: Iterable[str]) -> set[str]:
    """Return the names of classes that should be shown, in lower case.

    These are the requested ones, those that the question is about, and the types of the first
    candidates of each mention.
    """
    names = [*requested_classes, *mentions.classes]
    for mention in mentions.found:
        for candidate in mention.candidates[:MAX_TYPED_CANDIDATES]:
            names += candidate.types
    return set(map(str.casefold, names))


def _similarities_to_question(writer: SurveyWriter, question: str, run: Run) -> Mapping[int, float]:
    """Return the cosine of the question with each group of classes, by the position of the group.

    A group is compared by the names of its first classes and predicates. Empty without groups.
    """
    texts = []
    for group in writer.groups:
        names = group.names[:MAX_EMBEDDED_CLASSES]
        for prop in group.properties[:MAX_EMBEDDED_PREDICATES]:
            names.append(writer.names.get(str(prop.predicate)) or name_from_iri(prop.predicate))
        texts.append(", ".join(names))
    if not texts:
        return {}
    index = EmbeddingIndex(texts, run.embeddings)
    return dict(run.nearest(question, index, len(texts)))


def excerpt_for_query(writer: SurveyWriter, sparql: str, run: Run) -> Part:
    """Return the classes that a query uses, in half of ``survey_tokens``, for the reviewer.

    A group of classes is used if the query has a CURIE of one of its classes or predicates. The
    group with the most of them comes first. Classes that the survey describes at the predicates
    that lead to them are left out.
    """
    curies_in_query = set(re.findall(r"[\w-]+:[\w-]+|<[^<>\s]+>", sparql))
    counts: dict[int, int] = {}
    for position, group in enumerate(writer.groups):
        curies = _class_curies(group, writer)
        curies.update(writer.to_curie(prop.predicate) for prop in group.properties)
        count = len(curies & curies_in_query)
        if count and not writer.is_inlined(group):
            counts[position] = count
    positions = sorted(counts, key=counts.__getitem__, reverse=True)
    return _write_excerpt(positions, writer, run, for_reviewer=True)


def _class_curies(group: ClassGroup, writer: SurveyWriter) -> set[str]:
    """Return the CURIEs of the classes in a group."""
    return {writer.to_curie(str(surveyed.iri)) for surveyed in (group.top_class, *group.members)}


def _write_excerpt(
    positions: Iterable[int], writer: SurveyWriter, run: Run, *, for_reviewer: bool = False
) -> Part:
    """Return an excerpt with the groups at these positions that fit in ``survey_tokens``, in order.

    The first group is in it even if it is too long. A group that does not fit is left out, and a
    shorter one after it may still fit. Remarks on the predicates follow, and a line that names the
    groups that were left out; these lines are not counted. The reviewer gets half as many tokens,
    and not the last line.
    """
    max_tokens = SurveyorSettings.of_run(run).survey_tokens
    if for_reviewer:
        max_tokens = max_tokens // 2
    remaining_chars = max_tokens * CHARS_PER_TOKEN
    texts: dict[str, str] = {}
    omitted_names: list[str] = []
    omitted_titles: list[str] = []
    for position in positions:
        group = writer.groups[position]
        text = writer.format_group(group)
        if texts and len(text) > remaining_chars:
            omitted_names.append(group.top_class.name)
            omitted_titles.append(writer.format_title(group))
            continue
        remaining_chars -= len(text)
        texts[group.top_class.name] = text

    lines = [*texts.values(), *writer.remarks(texts.values())]
    if omitted_titles and not for_reviewer:
        lines.append(f"Other classes, not shown here: {', '.join(omitted_titles)}")
    prefixes = tuple((prefix, namespace) for namespace, prefix in writer.prefixes.items())
    return Part("\n".join(lines), tuple(texts), tuple(omitted_names), prefixes)
