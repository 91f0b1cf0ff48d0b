"""A survey of a graph as a page, whose classes can be expanded and searched."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import NamedTuple

from rdflib import URIRef

from kgwb.kg.label_search import normalize
from kgwb.kg.survey_records import (
    ClassSurvey,
    PropertySurvey,
    Survey,
    ValueSurvey,
    format_percent,
    language_name,
    shorten_name,
)
from kgwb.show.html import (
    Html,
    collapsible,
    join_with_dots,
    omitted_count,
    render_template,
    static_page,
)
from kgwb.show.terms import RenderContext, curie_text, render_curie, texts_by_iri
from kgwb.terms import DisplayNames, format_term, local_part, name_from_iri
from kgwb.text import list_first, pluralize, shorten, tell_apart

MAX_CLASSES = 40
"""Classes that are shown with their predicates. Of smaller ones the name and the size are shown."""
MAX_PROPERTIES = 25
"""Predicates, and subclasses, that are shown of a class."""
MAX_VALUE_TYPES = 4
"""Sorts of values that are shown of a predicate."""
MAX_EXAMPLES = 3
"""Example values that are shown of a sort, where they are not all its values."""
MAX_LISTED_IRIS = 200
SEARCH_LABEL = "Search classes and predicates"
UNORDERED_SORTS = ("string", "boolean", "anyURI", "IRI", "class", "node")
"""Sorts of values without a least and a greatest value."""
SORT_LABELS = {"node": "structure", "IRI": "without a class"}
"""What sorts are called whose own name does not speak for itself."""


def render_survey_page(survey: Survey) -> str:
    """Render a survey as HTML that stands alone."""
    return static_page(render_survey(survey, RenderContext()))


def render_survey(
    survey: Survey,
    context: RenderContext,
    below_counts: object = "",
    search_text: str | None = None,
) -> Html:
    """Render the counts of a survey, its classes, its labels, and what is not used.

    ``below_counts`` is shown below the counts. ``search_text`` is the text of the search field,
    whose changes send the event "find"; only classes that match it are shown, and the first of them
    is expanded. With an empty text all classes match. With None there is no field, all classes are
    shown, and none is expanded. Counts that are not known are "–". What the survey lacks is named.
    """
    names = texts_by_iri(survey.names)
    both_ways = []
    for iri, triples, reversed_triples in survey.both_ways:
        if reversed_triples:
            both_ways.append(f"{format_term(iri, names)} ({reversed_triples:,} of {triples:,})")
    unused = [format_term(iri, names) for iri in survey.unused]
    can_search = search_text is not None
    return render_template(
        "show/templates/survey.html",
        survey=survey,
        below_counts=below_counts,
        can_search=can_search,
        search_label=SEARCH_LABEL,
        search_text=search_text or "",
        classes=render_classes(survey, context, search_text or "", expand_largest=can_search),
        unused=_render_list("Declared and never used", unused, key="unused"),
        both_ways=_render_list("Asserted in both directions", both_ways, key="both"),
    )


def _render_list(title: str, items: Sequence[str], key: str) -> Html:
    """Render the title and number of items, which expands to them; nothing if there are none.

    At most MAX_LISTED_IRIS items are shown, and then how many more there are.
    """
    if not items:
        return Html()
    heading = f"{title}: {len(items):,}"
    text = list_first(items, MAX_LISTED_IRIS)
    return collapsible(heading, text, key=key)


# The classes


class FoundClass(NamedTuple):
    """A class that a search found."""

    surveyed: ClassSurvey
    properties: Sequence[PropertySurvey]
    """The predicates to show: all if the class was found by its own name, else those that match."""
    is_found_by_predicate: bool


def render_classes(
    survey: Survey, context: RenderContext, search_text: str, *, expand_largest: bool = False
) -> Html:
    """Render the classes of a survey that a search finds, each collapsed; all for an empty text.

    A class is found by its name, or by the name of a predicate: then it is expanded, and only the
    predicates that match are shown. ``expand_largest`` expands the first class shown. The first
    MAX_CLASSES are shown in full; of the others the names and sizes are listed.
    """
    context = context.with_names(survey.names)
    descriptions = texts_by_iri(survey.notes)
    found = _find_classes(survey, search_text, context.names)
    rows = []
    for position, found_class in enumerate(found[:MAX_CLASSES]):
        is_first = position == 0 and expand_largest
        rows.append(_class_row(survey, found_class, context, descriptions, is_first))
    return render_template(
        "show/templates/survey_classes.html",
        view=sys.modules[__name__],
        names=context.names,
        rows=rows,
        largest=max((each.total for each in survey.classes), default=0) or 1,
        smaller_classes=[_name_and_size(smaller.surveyed) for smaller in found[MAX_CLASSES:]],
        is_search=bool(search_text),
    )


def _name_and_size(surveyed: ClassSurvey) -> str:
    """Return the name of a class and the number of its instances: "Film 1,204"."""
    return f"{shorten_name(surveyed.name)} {surveyed.total:,}"


def _find_classes(survey: Survey, search_text: str, names: DisplayNames) -> list[FoundClass]:
    """Return the classes that a search finds, in the order of the survey, which is by size.

    A class whose name or IRI matches has all its predicates; any other class is found if some of
    its predicates match, and has only these. An empty text finds all classes.
    """
    found = []
    for surveyed in survey.classes:
        if _matches_search(search_text, surveyed.name, surveyed.iri or ""):
            found.append(FoundClass(surveyed, surveyed.properties, False))
            continue
        properties = []
        for prop in surveyed.properties:
            if _property_matches(search_text, prop, names):
                properties.append(prop)
        if properties:
            found.append(FoundClass(surveyed, properties, True))
    return found


def _property_matches(search_text: str, prop: PropertySurvey, names: DisplayNames) -> bool:
    """Return whether a predicate or an inner predicate of it matches a search.

    It does if its name and the local part of its IRI together contain every word searched for.
    """
    for part in (prop, *prop.inner):
        name = names.get(str(part.predicate), "")
        if _matches_search(search_text, name, part.predicate):
            return True
    return False


def _matches_search(search_text: str, name: str, iri: str) -> bool:
    """Return whether a name and the local part of an IRI together contain every word searched for.

    Letter case and accents do not count; an empty search matches everything.
    """
    shown_name = name_from_iri(iri)
    local_name = local_part(iri)
    text = normalize(f"{name} {shown_name} {local_name}")
    words = normalize(search_text).split()
    return all(word in text for word in words)


def _class_row(
    survey: Survey,
    found_class: FoundClass,
    context: RenderContext,
    descriptions: Mapping[str, str],
    is_first: bool,
) -> SimpleNamespace:
    """Return what the template shows of a class, which expands to its first MAX_PROPERTIES predicates.

    It has name, CURIE, place, number of instances with a bar relative to the largest class, and the
    descriptions. ``descriptions`` are the graph's own of classes and predicates, by IRI.
    """
    surveyed, found_properties, is_found_by_predicate = found_class
    properties: list[SimpleNamespace] = []
    for prop in found_properties[:MAX_PROPERTIES]:
        properties += _property_rows(prop, surveyed.size, context, descriptions)
    return SimpleNamespace(
        surveyed=surveyed,
        curie=curie_text(surveyed.iri, context) if surveyed.iri else "",
        place=_render_place(surveyed, context),
        descriptions=_describe_class(survey, surveyed, descriptions),
        properties=properties,
        omitted=omitted_count(len(found_properties) - MAX_PROPERTIES),
        is_expanded=is_found_by_predicate or is_first,
    )


def _render_place(surveyed: ClassSurvey, context: RenderContext) -> Html:
    """Render the superclasses of a class, and how many instances it has itself.

    The number is only shown if there are some, and its subclasses have others.
    """
    superclasses = [format_term(iri, context.names) for iri in surveyed.parents]
    parts = []
    if superclasses:
        text = ", ".join(superclasses)
        parts.append(f"in {text}")
    if surveyed.iri and 0 < surveyed.size < surveyed.total:
        parts.append(pluralize(surveyed.size, "direct instance"))
    return join_with_dots(*parts)


def _describe_class(
    survey: Survey, surveyed: ClassSurvey, descriptions: Mapping[str, str]
) -> list[str]:
    """Return the graph's own description of a class, and a line that lists its subclasses.

    What does not exist is left out. At most MAX_PROPERTIES subclasses are listed, each with the
    number of its instances, in the order of the survey.
    """
    texts = []
    description = descriptions.get(str(surveyed.iri), "")
    if description:
        texts.append(shorten(description))
    subclasses = [other for other in survey.classes if surveyed.iri in other.parents]
    if subclasses:
        listed = list_first(map(_name_and_size, subclasses), MAX_PROPERTIES)
        texts.append(shorten(f"Subclasses: {listed}"))
    return texts


def _property_rows(
    prop: PropertySurvey,
    instance_count: int,
    context: RenderContext,
    descriptions: Mapping[str, str],
) -> Iterator[SimpleNamespace]:
    """Yield the row of a predicate, then those of the predicates of the nodes that it leads to.

    ``instance_count`` is the number of instances of the class, of which the share of the predicate
    is computed. The shares of the others are of the triples of the predicate.
    """
    description = descriptions.get(str(prop.predicate), "")
    path = [prop.predicate]
    yield _property_row(path, prop, instance_count, context, description)
    for inner in prop.inner:
        inner_path = [*path, inner.predicate]
        yield _property_row(inner_path, inner, prop.triples, context)


def _property_row(
    path: Sequence[URIRef],
    prop: PropertySurvey,
    subject_count: int,
    context: RenderContext,
    description: str = "",
) -> SimpleNamespace:
    """Return the row of the last predicate of a path, named by all predicates of the path.

    ``subject_count`` is the number of subjects that could have it, which 100% stands for.
    """
    names = [format_term(iri, context.names) for iri in path]
    share = 0.0
    if subject_count:
        share = prop.things / subject_count
    return SimpleNamespace(
        name=" / ".join(names),
        description=description,
        curie=render_curie(path[-1], context),
        share=share,
        percent=format_percent(prop.things, subject_count or 1),
        counts=f"{prop.things:,} of {subject_count:,}",
        prop=prop,
        sort_names=_name_sorts(prop.values[:MAX_VALUE_TYPES], context),
    )


def _name_sorts(sorts: Sequence[ValueSurvey], context: RenderContext) -> list[str]:
    """Return a name for each sort of values; with the CURIE where the name occurs several times."""

    def name_sort(number: int) -> str:
        """Return the name of the sort with this number."""
        return _sort_name(sorts[number], context.names)

    def name_with_curie(number: int) -> str:
        """Return the name of the sort, and the CURIE of its class or datatype, if any."""
        name = name_sort(number)
        of = sorts[number].of
        if not of:
            return name
        return f"{name} ({curie_text(of, context)})"

    names = tell_apart(range(len(sorts)), (name_sort, name_with_curie))
    return list(names.values())


def is_ordered(sort: str) -> bool:
    """Return whether a sort of values has a least and a greatest one, as numbers and dates have."""
    return sort not in UNORDERED_SORTS and "@" not in sort


def _sort_name(values: ValueSurvey, names: DisplayNames) -> str:
    """Return what a sort of values is called: the name of a class or of a datatype.

    A datatype comes after the language, if it has one: "English text". Blank nodes are
    "structure", and IRIs of no class are "without a class".
    """
    if values.sort == "class" and values.of:
        return format_term(values.of, names)
    sort, _, language = values.sort.partition("@")
    label = SORT_LABELS.get(sort, sort)
    if not language:
        return label
    return f"{language_name(language)} {label}"
