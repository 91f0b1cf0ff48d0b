"""Excerpts of a survey: the classes that matter to a question or to a query, as a model reads them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from rdflib import URIRef

from kgwb.build import Run
from kgwb.build.graph import EmbeddingIndex
from kgwb.build.survey import ClassGroup, SurveyWriter
from kgwb.build.text import name_from_iri
from kgwb.systems.surveyor.class_names import ClassNames, NamedClasses
from kgwb.systems.surveyor.records import Mentions, Part
from kgwb.systems.surveyor.settings import SurveyorSettings

CHARS_PER_TOKEN = 4
"""Characters of a token on average."""
MAX_TYPED_CANDIDATES = 3
"""Candidates of a mention whose types are shown to the drafter."""
MAX_EMBEDDED_CLASSES = 8
"""Names of a group of classes that are compared with the question."""
MAX_EMBEDDED_PREDICATES = 16
"""Predicates of a group of classes that are compared with the question."""
PREFIX_DECLARATION = re.compile(r"\bPREFIX\s+([\w-]*):\s*<([^<>\s]*)>", re.IGNORECASE)
STRING = re.compile(r"\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'")
IRI_REFERENCE = re.compile(r"<([^<>\s]+)>")
CURIE = re.compile(r"([\w-]*):([\w-]+)")


def excerpt_for_question(
    writer: SurveyWriter, mentions: Mentions, run: Run, requested: Iterable[URIRef] = ()
) -> Part:
    """Return the excerpt of the survey with the classes that matter most to a question, within ``survey_tokens``.

    First come the classes that the drafter requested; then those that the question is about, or
    that a mention has candidates of; then those that have a value found for a mention; then the
    others. Among equals, the classes nearest to the question by embeddings come first. A class that
    the survey describes at the predicates that lead to it is left out, unless it is wanted by name.
    """
    requested = set(requested)
    wanted = requested.union(ClassNames.of_survey(writer).find_all(_class_names_in(mentions)))
    value_predicates: set[URIRef] = set()
    for mention in mentions.found:
        for match in mention.values:
            value_predicates.add(match.predicate)
    similarities = _similarities_to_question(writer, mentions.question, run)

    ranks: dict[int, tuple[bool, bool, bool, float]] = {}
    for position, group in enumerate(writer.groups):
        classes = _classes_of(group)
        is_unrequested = requested.isdisjoint(classes)
        is_unwanted = wanted.isdisjoint(classes)
        if is_unwanted and writer.is_position_inlined(position):
            continue
        lacks_value = value_predicates.isdisjoint(prop.predicate for prop in group.properties)
        distance = -similarities.get(position, 0)
        ranks[position] = (is_unrequested, is_unwanted, lacks_value, distance)
    positions = sorted(ranks, key=ranks.__getitem__)
    return _write_excerpt(positions, writer, run)


def _class_names_in(mentions: Mentions) -> list[str]:
    """Return the names of the classes that a question is about; names may be repeated.

    After those that the model named come the types of the first MAX_TYPED_CANDIDATES candidates of
    each mention. A candidate has the names of its types, and not their IRIs: of several classes of
    one name, all are meant.
    """
    names = list(mentions.classes)
    for mention in mentions.found:
        for candidate in mention.candidates[:MAX_TYPED_CANDIDATES]:
            names += candidate.types
    return names


def _classes_of(group: ClassGroup) -> set[URIRef]:
    """Return the classes in a group; empty for the things without a class."""
    classes = set()
    for surveyed in (group.top_class, *group.members):
        if surveyed.iri:
            classes.add(surveyed.iri)
    return classes


def _similarities_to_question(writer: SurveyWriter, question: str, run: Run) -> Mapping[int, float]:
    """Return the cosine of the question with each group of classes, by the position of the group.

    A group is compared by the names of its first MAX_EMBEDDED_CLASSES classes and
    MAX_EMBEDDED_PREDICATES predicates. Empty without groups.
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
    """Return the excerpt with the classes that a query uses, in half of ``survey_tokens``, for the reviewer.

    A group of classes is used if the query has the IRI of one of its classes or predicates. The
    group with the most of them comes first, equals in the order of the survey. Classes that the
    survey describes at the predicates that lead to them are left out.
    """
    iris_in_query = _find_iris(sparql, writer)
    counts: dict[int, int] = {}
    for position, group in enumerate(writer.groups):
        iris = _classes_of(group)
        iris.update(prop.predicate for prop in group.properties)
        count = len(iris & iris_in_query)
        if count and not writer.is_position_inlined(position):
            counts[position] = count
    positions = sorted(counts, key=counts.__getitem__, reverse=True)
    return _write_excerpt(positions, writer, run, for_reviewer=True)


def _find_iris(sparql: str, writer: SurveyWriter) -> set[URIRef]:
    """Return the IRIs that a query has, in full or as CURIEs. The query need not be valid.

    A prefix means what the query declares it for, else what it means in the survey. What is inside
    strings does not count, nor do prefixes that neither knows.
    """
    namespaces = {prefix: namespace for namespace, prefix in writer.prefixes.items()}
    namespaces.update(PREFIX_DECLARATION.findall(sparql))
    text = STRING.sub(" ", PREFIX_DECLARATION.sub(" ", sparql))
    iris = set(map(URIRef, IRI_REFERENCE.findall(text)))
    for prefix, local in CURIE.findall(IRI_REFERENCE.sub(" ", text)):
        if prefix in namespaces:
            iris.add(URIRef(namespaces[prefix] + local))
    return iris


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
    texts: list[str] = []
    shown: list[ClassGroup] = []
    omitted: list[ClassGroup] = []
    for position in positions:
        group = writer.groups[position]
        text = writer.group_text(position)
        if texts and len(text) > remaining_chars:
            omitted.append(group)
            continue
        remaining_chars -= len(text)
        texts.append(text)
        shown.append(group)

    lines = [*texts, *writer.remarks(texts)]
    if omitted and not for_reviewer:
        titles = ", ".join(map(writer.format_title, omitted))
        lines.append(f"Other classes, not shown here: {titles}")
    names = ClassNames.of_survey(writer)
    return Part(
        "\n".join(lines),
        tuple(_title_of(group, names) for group in shown),
        tuple(_title_of(group, names) for group in omitted),
        tuple((prefix, namespace) for namespace, prefix in writer.prefixes.items()),
        _find_unseen_classes(shown, writer),
    )


def _title_of(group: ClassGroup, names: ClassNames) -> str:
    """Return the title of the top class of a group."""
    if group.top_class.iri is None:
        return group.top_class.name
    return names.titles[group.top_class.iri]


def _find_unseen_classes(shown: Iterable[ClassGroup], writer: SurveyWriter) -> NamedClasses:
    """Return the classes of a survey, with their names, that the shown groups do not describe.

    In the survey of a large graph, a class may have no predicates because its instances were not
    looked at; such a class is not described either. Each stands once, those of the largest groups
    first.
    """
    described: set[URIRef] = set()
    for group in shown:
        described.update(_classes_of(group))
    unseen: dict[URIRef, str] = {}
    for group in writer.groups:
        for surveyed in (group.top_class, *group.members):
            is_unknown = writer.survey.sampled and surveyed.size and not surveyed.properties
            if surveyed.iri and (is_unknown or surveyed.iri not in described):
                unseen[surveyed.iri] = surveyed.name
    return tuple(unseen.items())
