"""A survey as a page that can be searched, and as lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from rdflib import URIRef

from kgwb.kg.base import Vocabulary
from kgwb.kg.survey_records import ClassSurvey, PropertySurvey, Survey
from kgwb.kg.text import normalize
from kgwb.show import html as h
from kgwb.show.html import Html
from kgwb.show.terms import RenderContext, curie_text, render_curie
from kgwb.terms import format_term, local_part, name_from_iri
from kgwb.text import and_more, first_items, pluralize, shorten, single_line

MAX_CLASSES, MAX_PROPERTIES, MAX_VALUE_TYPES = 40, 25, 4
"""Classes that are shown at once, predicates of a class, and sorts of values of a predicate."""
MAX_SUMMARY_CLASSES, MAX_SUMMARY_PREDICATES, MAX_VALUE_CHARS = 12, 5, 50
"""Classes in a terminal, predicates on the line of each, and letters of a value."""
UNORDERED_TYPES = ("string", "boolean", "anyURI", "IRI", "class", "node")
LANGUAGE_NAMES = {
    **{
        "": "no language",
        "ar": "Arabic",
        "de": "German",
        "en": "English",
        "es": "Spanish",
        "fr": "French",
    },
    **{
        "it": "Italian",
        "ja": "Japanese",
        "ko": "Korean",
        "nl": "Dutch",
        "pl": "Polish",
        "pt": "Portuguese",
    },
    **{"ru": "Russian", "zh": "Chinese"},
}


def summary_lines(survey: Survey) -> Iterator[str]:
    """Some fifteen lines: the numbers, the largest classes with their commonest predicates, the labels."""
    names, hidden = {str(iri): name for iri, name in survey.names}, Vocabulary().excluded_predicates
    numbers = [f"{n:,} {noun}" for noun, n in _survey_counts(survey).items() if n is not None]
    yield ", ".join(numbers) + (" (classes and predicates of a sample)" if survey.sampled else "")
    largest = [kind for kind in survey.classes if kind.total]
    for kind in largest[:MAX_SUMMARY_CLASSES]:
        shown = [p for p in kind.properties if p.predicate not in hidden][:MAX_SUMMARY_PREDICATES]
        uses = [
            f"{_truncate(format_term(p.predicate, names))} {_format_percent(p.things, kind.size)}"
            for p in shown
        ]
        uses = uses or first_items(_list_subclasses(survey, kind), MAX_SUMMARY_PREDICATES)
        yield f"{single_line(_truncate(kind.name, 22)):<24}{kind.total:>9,}  {single_line(', '.join(uses))}"
    if left := and_more(len(largest) - MAX_SUMMARY_CLASSES):
        yield left
    yield single_line(", ".join(_describe_labels(survey)))


def _list_subclasses(survey: Survey, kind: ClassSurvey) -> list[str]:
    """The subclasses of a class with their sizes."""
    below = (each for each in survey.classes if kind.iri and kind.iri in each.parents)
    return [f"{_truncate(each.name)} {each.total:,}" for each in below]


def _survey_counts(survey: Survey) -> dict[str, int | None]:
    classes = sum(kind.iri is not None for kind in survey.classes)
    known = {"triples": survey.triples, "things": survey.things}
    return {**known, "classes": classes, "predicates": survey.predicates}


def _describe_labels(survey: Survey) -> Iterator[str]:
    if survey.unlabelled is not None and survey.things:
        yield f"{_format_percent(survey.things - survey.unlabelled, survey.things)} of the things have a label"
    for language, number in survey.languages:
        yield f"{LANGUAGE_NAMES.get(language, _truncate(language))} {number:,}"


def _format_percent(n: int, of: int) -> str:
    """A share; it is 100% only of all, and 0% only of none."""
    if n and n * 100 < of:
        return "<1%"
    return f"{100 if n >= of else min(99, round(n / of * 100))}%"


def _truncate(text: str, max_chars: int = MAX_VALUE_CHARS) -> str:
    return text if len(text) <= max_chars else f"{text[: max_chars - 1]}…"


def render_survey_page(survey: Survey) -> str:
    """Render a survey as HTML that stands alone."""
    return h.static_page(render_survey_browser(survey, RenderContext()))


def render_survey(survey: Survey, context: RenderContext) -> Html:
    """Render a survey that is the output of a step."""
    return render_survey_browser(survey, context)


def render_survey_browser(
    survey: Survey,
    context: RenderContext,
    below_counts: object = "",
    search_text: str | None = None,
) -> Html:
    """Four numbers, what stands ``under`` them, the classes that ``words`` name, and the labels.

    What is typed to search for is sent as ``find``; without ``words``, nothing can be typed.
    """
    shown = _survey_counts(survey).items()
    big = (
        h.div("", h.div("big", "–" if n is None else f"{n:,}"), h.muted_text(noun))
        for noun, n in shown
    )
    some = "It is large: what classes have, and how often, is estimated by some instances of the largest."
    label = "Search classes and predicates"
    about = {
        "type": "text",
        "name": "words",
        "id": "find",
        "value": search_text,
        "aria_label": label,
    }
    field = h.tag("input", placeholder=label, autocomplete="off", data_input="find", **about)
    return h.join(
        h.div("tiles", *big),
        h.div("band", h.note(some, level="calm")) if survey.sampled else "",
        below_counts,
        h.div("band", field) if search_text is not None and survey.classes else "",
        render_classes(survey, context, search_text or "", expand_largest=search_text is not None),
        _render_labels_and_unused(survey),
    )


def render_classes(
    survey: Survey, context: RenderContext, search_text: str = "", *, expand_largest: bool = False
) -> Html:
    """The classes, each to unfold, or those that the words name or that have a predicate of that name.

    Open are the largest, if ``opened``, and those whose predicates are named.
    """
    context = context.with_names(survey.names)
    notes = {str(iri): text for iri, text in survey.notes}

    def named(p: PropertySurvey) -> bool:
        parts = (
            (context.names.get(str(each.predicate), ""), each.predicate) for each in (p, *p.inner)
        )
        return any(_matches_search(search_text, name, iri) for name, iri in parts)

    matching: list[tuple[ClassSurvey, tuple[PropertySurvey, ...]]] = []
    for kind in survey.classes:
        if _matches_search(search_text, kind.name, kind.iri or ""):
            matching.append((kind, ()))
        elif some := tuple(filter(named, kind.properties)):
            matching.append((kind, some))
    most = max((kind.total for kind in survey.classes), default=0) or 1
    rows = []
    for place, (kind, some) in enumerate(matching[:MAX_CLASSES]):
        below = ", ".join(first_items(_list_subclasses(survey, kind), MAX_PROPERTIES))
        lead = tuple(
            filter(None, (notes.get(str(kind.iri), ""), f"Subclasses: {below}" if below else ""))
        )
        shown = replace(kind, properties=some or kind.properties)
        unfolded = bool(some) or (expand_largest and not place)
        rows.append(
            _render_class(shown, kind.total / most, lead, context, notes, unfolded=unfolded)
        )
    rest = [kind for kind, _ in matching[MAX_CLASSES:]]
    smaller = ", ".join(f"{_truncate(kind.name)} {kind.total:,}" for kind in rest)
    more = (
        h.collapsible(h.muted_text(pluralize(len(rest), "smaller class")), smaller, key="classes")
        if rest
        else ""
    )
    nothing = (
        ""
        if matching
        else h.muted_text(
            "no class and no predicate has these words" if search_text else "no class"
        )
    )
    return h.div("band kinds", *rows, more, nothing)


def _matches_search(words: str, name: str, iri: str) -> bool:
    text = normalize(f"{name} {name_from_iri(iri)} {local_part(iri)}")
    return all(word in text for word in normalize(words).split())


def _render_class(
    kind: ClassSurvey,
    relative_size: float,
    notes_before: Iterable[str],
    context: RenderContext,
    notes: Mapping[str, str],
    *,
    unfolded: bool,
) -> Html:
    """A class to unfold, with its predicates."""
    above = ", ".join(format_term(parent, context.names) for parent in kind.parents)
    own = f"{kind.size:,} of its own" if kind.iri and 0 < kind.size < kind.total else ""
    known = h.span("id", shorten(curie_text(kind.iri, context))) if kind.iri else ""
    about = h.muted_text(h.join_with_dots(f"in {above}" if above else "", own))
    name = h.span("row", h.tag("b", shorten(kind.name)), known, about)
    face = h.span("hbar grow", name, h.bar(relative_size), h.span("num", f"{kind.total:,}"))
    shown = kind.properties[:MAX_PROPERTIES]
    rows = []
    for p in shown:  # and each path through the nodes that it leads to
        rows.append(
            _render_property((p.predicate,), p, kind.size, context, notes.get(str(p.predicate), ""))
        )
        rows += [
            _render_property((p.predicate, inner.predicate), inner, p.triples, context, "")
            for inner in p.inner
        ]
    first = (h.div("soft", h.tag("bdi", shorten(text))) for text in notes_before)
    inside = (*first, *rows, h.omitted_count(len(kind.properties) - len(shown)))
    return h.collapsible(face, *inside, expanded=unfolded, key=f"class-{kind.iri}-{unfolded}")


def _render_property(
    path: tuple[URIRef, ...],
    p: PropertySurvey,
    instance_count: int,
    context: RenderContext,
    about: str,
) -> Html:
    name = " / ".join(format_term(iri, context.names) for iri in path)
    known = h.span(
        "", h.tag("bdi", name, title=shorten(about) or None), " ", render_curie(path[-1], context)
    )
    share = p.things / instance_count if instance_count else 0.0
    number = h.span(
        "num",
        _format_percent(p.things, instance_count or 1),
        title=f"{p.things:,} of {instance_count:,}",
    )
    sorts = []
    for v in p.values[
        :MAX_VALUE_TYPES
    ]:  # a class with their number, or a datatype with the least and greatest
        kind, _, language = v.sort.partition("@")
        sort = {"node": "structure", "IRI": "without a class"}.get(kind, kind)
        sort = f"{LANGUAGE_NAMES.get(language, _truncate(language))} {sort}" if language else sort
        sort = format_term(v.of, context.names) if v.sort == "class" and v.of else sort
        shown = [h.tag("bdi", _truncate(format_term(term, context.names))) for term in v.examples]
        if v.whole:
            text = h.join(": ", h.join_with(", ", shown))
        elif v.sort not in UNORDERED_TYPES and "@" not in v.sort and len(shown) > 1:
            text = h.join(": ", shown[0], " … ", shown[1])
        else:
            text = h.join(": ", h.join_with(", ", shown[:3]), ", …") if shown else Html()
        sorts.append(
            h.join(
                h.tag("bdi", sort), f" {v.triples:,}" if v.sort in ("class", "IRI") else "", text
            )
        )
    more = and_more(len(p.values) - MAX_VALUE_TYPES)
    loose = f"{p.unnamed:,} without a name" if p.unnamed else ""
    return h.div(
        "hbar prop",
        known,
        h.bar(share),
        number,
        h.span("soft", h.join_with_dots(*sorts, more, loose)),
    )


def _render_labels_and_unused(survey: Survey) -> Html:
    """The labels by language; then what is declared and not used, and what is asserted both ways."""
    names = {str(iri): name for iri, name in survey.names}
    labels = h.div(
        "row",
        h.span("caption", "Labels"),
        *(h.span("chip", text) for text in _describe_labels(survey)),
    )
    both = [f"{format_term(iri, names)} ({n:,} of {of:,})" for iri, of, n in survey.both_ways if n]
    unused = [format_term(iri, names) for iri in survey.unused]
    lists = (
        ("unused", "Declared and never used", unused),
        ("both", "Asserted in both directions", both),
    )
    folds = [
        h.collapsible(f"{title}: {len(items):,}", ", ".join(first_items(items, 200)), key=key)
        for key, title, items in lists
        if items
    ]
    unlabelled = (
        h.muted_text(f"{pluralize(survey.unlabelled, 'thing')} without a label")
        if survey.unlabelled
        else ""
    )
    return h.div("band stack tight", labels, unlabelled, *folds)
