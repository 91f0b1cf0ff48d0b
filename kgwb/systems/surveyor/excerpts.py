"""Excerpts of a survey: the classes that matter to a question or to a query, as a model reads them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from itertools import repeat

from rdflib import URIRef

from kgwb.build import ClassGroup, EmbeddingIndex, Run, SurveyWriter, name_from_iri
from kgwb.systems.surveyor.class_names import ClassNames, NamedClasses
from kgwb.systems.surveyor.records import Mentions, Part
from kgwb.systems.surveyor.settings import SurveyorSettings

CHARS_PER_TOKEN = 4
"""Characters of a token on average."""
FILLED_SHARE = 0.5
"""The share of the tokens that is filled with classes that the question does not name."""
MAX_TYPED_CANDIDATES = 3
"""Candidates of a mention whose types are shown to the drafter."""
MAX_EMBEDDED_CLASSES = 8
"""Names of a group of classes that are compared with the question."""
MAX_EMBEDDED_PREDICATES = 16
"""Predicates of a group of classes that are compared with the question."""
PREFIX_DECLARATION = re.compile(r"\bPREFIX\s+([\w-]*):\s*<([^<>\s]*)>", re.IGNORECASE)
TERM = re.compile(
    r"\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'"
    r"|<(?P<iri>[^<>\s]*)>|[?$]\w+|(?P<prefix>[\w-]*):(?P<local>[\w-]+)"
)
"""A text, an IRI, a variable or a CURIE in a query. What is inside a text is no term."""


def excerpt_for_question(
    writer: SurveyWriter, mentions: Mentions, run: Run, requested: Iterable[URIRef] = ()
) -> Part:
    """Return the excerpt of the survey with the classes that matter most to a question.

    It has at most ``survey_tokens``, and of these at most FILLED_SHARE for classes that the question
    does not name. First come the classes that the drafter requested; then those that the question is about, or
    that a mention has candidates of; then those that have a value found for a mention; then the
    others. Among equals, the classes nearest to the question by embeddings come first. A class that
    the survey describes at the predicates that lead to it is left out, unless it is wanted by name.
    """
    requested = set(requested)
    wanted = requested.union(ClassNames.of_survey(writer).find_all(_class_names_in(mentions)))
    value_predicates: set[URIRef] = set()
    for mention in mentions.found:
        for match in mention.values:
            if match.predicate not in writer.labels:
                value_predicates.add(match.predicate)
    similarities = _similarities_to_question(writer, mentions.question, run)

    ranks: dict[int, tuple[bool, bool, bool, float]] = {}
    for position, group in enumerate(writer.groups):
        classes = _classes_of(position, writer)
        is_unrequested = requested.isdisjoint(classes)
        is_unwanted = wanted.isdisjoint(classes)
        if is_unwanted and writer.is_position_inlined(position):
            continue
        lacks_value = value_predicates.isdisjoint(prop.predicate for prop in group.properties)
        distance = -similarities.get(position, 0)
        ranks[position] = (is_unrequested, is_unwanted, lacks_value, distance)
    positions = sorted(ranks, key=ranks.__getitem__)
    named = {position for position, rank in ranks.items() if not rank[1] or not rank[2]}
    return _write_excerpt(positions, writer, run, named)


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


def _classes_of(position: int, writer: SurveyWriter) -> set[URIRef]:
    """Return the classes in the group at a position; empty for the things without a class."""
    classes = set()
    for surveyed in writer.classes_of(position):
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


def excerpt_for_query(
    writer: SurveyWriter, sparql: str, run: Run, mentions: Mentions | None = None
) -> Part:
    """Return the excerpt with the classes that a query uses, in half of ``survey_tokens``, for the reviewer.

    First come the groups with a class that the query names, or that a thing in it has, then those
    that its predicates lead to or come from. Only if none of them has a predicate of the query, the
    groups with that predicate follow. Groups with a class of the same name as one that the query
    names come last, since the query may have the wrong one of both. A line names the other classes
    that have predicates of the query. A class that the survey describes at the predicates that lead
    to it is left out, unless the query names it.
    """
    iris = _find_iris(sparql, writer)
    named = _find_named_groups(iris, writer, mentions)
    used = _follow_predicates(named, iris, writer)
    shown = [
        position
        for position in used
        if position in named or not writer.is_position_inlined(position)
    ]
    twins = []
    names = {name.casefold() for position in named for name in writer.groups[position].names}
    for position, group in enumerate(writer.groups):
        is_twin = any(name.casefold() in names for name in group.names)
        if is_twin and position not in shown and not writer.is_position_inlined(position):
            twins.append(position)
    positions = [*shown, *twins]
    others = _name_other_classes(positions, iris, writer)
    return _write_excerpt(positions, writer, run, last_lines=others, for_reviewer=True)


def _find_named_groups(
    iris: set[URIRef], writer: SurveyWriter, mentions: Mentions | None
) -> list[int]:
    """Return the positions of the groups with a class that is among the IRIs of a query.

    A class of a thing among them counts, too, as far as the mentions know it.
    """
    classes = set(iris)
    for mention in mentions.found if mentions else ():
        for terms in mention.used:
            if terms.iri in iris:
                classes.update(URIRef(iri) for iri, _ in terms.classes)
    positions = range(len(writer.groups))
    return [each for each in positions if not classes.isdisjoint(_classes_of(each, writer))]


def _predicates_of(group: ClassGroup) -> set[URIRef]:
    """Return the predicates of a group, and those of the nodes that they lead to."""
    predicates: set[URIRef] = set()
    for prop in group.properties:
        predicates.add(prop.predicate)
        predicates.update(inner.predicate for inner in prop.inner)
    return predicates


def _follow_predicates(named: Iterable[int], iris: set[URIRef], writer: SurveyWriter) -> list[int]:
    """Return the groups that a query uses: the named ones, and those that it reaches from them.

    A group is reached by a predicate of the query that leads to it from a group that is used, or
    from it to one, if it has a predicate of the query itself. A predicate that no used group has
    adds the group that has the most predicates of the query, and what is reached from there.
    """
    used = dict.fromkeys(named)
    predicates: dict[int, set[URIRef]] = {}
    for position, group in enumerate(writer.groups):
        predicates[position] = _predicates_of(group) & iris
    while True:
        _add_reached(used, predicates, writer)
        explained = set().union(*(predicates[position] for position in used))
        waiting = set().union(*predicates.values()) - explained
        if not waiting:
            return list(used)
        best = max(
            predicates,
            key=lambda each: (len(predicates[each] & waiting), len(predicates[each]), -each),
        )
        used[best] = None


def _add_reached(
    used: dict[int, None], predicates: Mapping[int, set[URIRef]], writer: SurveyWriter
) -> None:
    """Add the groups that are reached from the used ones by predicates of a query, in both directions."""
    leads: dict[int, set[int]] = {}
    nodes_lead: dict[int, set[int]] = {}
    for position, group in enumerate(writer.groups):
        asked = [prop for prop in group.properties if prop.predicate in predicates[position]]
        inner = [
            each for prop in asked for each in prop.inner if each.predicate in predicates[position]
        ]
        leads[position] = writer.positions_led_to(asked)
        nodes_lead[position] = writer.positions_led_to(inner)
    is_growing = True
    while is_growing:
        before = len(used)
        for position in list(used):
            used.update(dict.fromkeys(sorted(leads[position] | nodes_lead[position])))
        for position, targets in leads.items():
            # A thing of any class may lead to those that are used by a predicate of the query.
            if not targets.isdisjoint(used):
                used.setdefault(position)
        is_growing = len(used) > before


def _name_other_classes(shown: Iterable[int], iris: set[URIRef], writer: SurveyWriter) -> list[str]:
    """Return a line with the classes that have predicates of a query and are not shown; or no line."""
    shown = set(shown)
    others = []
    for position, group in enumerate(writer.groups):
        shared = [prop for prop in group.properties if prop.predicate in iris]
        shared = [prop for prop in shared if prop.predicate not in writer.labels]
        if position in shown or not shared or not group.top_class.iri:
            continue
        if writer.is_position_inlined(position):
            continue
        listed = ", ".join(f"{writer.to_curie(prop.predicate)} {prop.things}" for prop in shared)
        others.append(f"{writer.format_title(group)} ({listed})")
    return [f"Predicates of the query at other classes: {'; '.join(others)}"] if others else []


def _find_iris(sparql: str, writer: SurveyWriter) -> set[URIRef]:
    """Return the IRIs that a query has, in full or as CURIEs. The query need not be valid.

    A prefix means what the query declares it for, else what it means in the survey. What is inside
    strings does not count, nor do prefixes that neither knows.
    """
    namespaces = {prefix: namespace for namespace, prefix in writer.prefixes.items()}
    namespaces.update(PREFIX_DECLARATION.findall(sparql))
    iris = set()
    for term in TERM.finditer(PREFIX_DECLARATION.sub(" ", sparql)):
        if term["iri"]:
            iris.add(URIRef(term["iri"]))
        elif term["local"] and term["prefix"] in namespaces:
            iris.add(URIRef(namespaces[term["prefix"]] + term["local"]))
    return iris


def _write_excerpt(
    positions: Iterable[int],
    writer: SurveyWriter,
    run: Run,
    named: Collection[int] = (),
    *,
    last_lines: Iterable[str] = (),
    for_reviewer: bool = False,
) -> Part:
    """Return an excerpt with the groups at these positions that fit in ``survey_tokens``, in order.

    Groups that are not ``named`` only fill FILLED_SHARE of the tokens. The reviewer gets all.

    The first group is in it even if it is too long. A group that does not fit is left out, and a
    shorter one after it may still fit. Remarks on the predicates follow, and a line that names the
    groups that were left out; these lines are not counted. The reviewer gets half as many tokens,
    and not the last line.
    """
    max_tokens = SurveyorSettings.of_run(run).survey_tokens
    if for_reviewer:
        max_tokens = max_tokens // 2
    max_chars = max_tokens * CHARS_PER_TOKEN
    used_chars = 0
    texts: list[str] = []
    shown: list[int] = []
    omitted: list[ClassGroup] = []
    for position in positions:
        group = writer.groups[position]
        text = writer.group_text(position)
        is_filling = not for_reviewer and position not in named
        limit = max_chars * FILLED_SHARE if is_filling else max_chars
        if texts and used_chars + len(text) > limit:
            omitted.append(group)
            continue
        used_chars += len(text)
        texts.append(text)
        shown.append(position)

    lines = [*texts, *writer.remarks(texts), *last_lines]
    if omitted and not for_reviewer:
        titles = ", ".join(map(_format_omitted, omitted, repeat(writer)))
        lines.append(f"Other classes, not shown here: {titles}")
    names = ClassNames.of_survey(writer)
    return Part(
        "\n".join(lines),
        tuple(_title_of(writer.groups[position], names) for position in shown),
        tuple(_title_of(group, names) for group in omitted),
        tuple((prefix, namespace) for namespace, prefix in writer.prefixes.items()),
        _find_unseen_classes(shown, writer),
    )


def _format_omitted(group: ClassGroup, writer: SurveyWriter) -> str:
    """Return the title of a group, and whether it has subclasses."""
    title = writer.format_title(group)
    return f"{title} with subclasses" if len(group.members) > 1 else title


def _title_of(group: ClassGroup, names: ClassNames) -> str:
    """Return the title of the top class of a group."""
    if group.top_class.iri is None:
        return group.top_class.name
    return names.titles[group.top_class.iri]


def _find_unseen_classes(shown: Iterable[int], writer: SurveyWriter) -> NamedClasses:
    """Return the classes of a survey, with their names, that the shown groups do not describe.

    In the survey of a large graph, a class may have no predicates because its instances were not
    looked at; such a class is not described either. Each stands once, those of the largest groups
    first.
    """
    described: set[URIRef] = set()
    for position in shown:
        described.update(_classes_of(position, writer))
    unseen: dict[URIRef, str] = {}
    for group in writer.groups:
        for surveyed in (group.top_class, *group.members):
            is_unknown = writer.survey.sampled and surveyed.size and not surveyed.properties
            if surveyed.iri and (is_unknown or surveyed.iri not in described):
                unseen[surveyed.iri] = surveyed.name
    return tuple(unseen.items())
