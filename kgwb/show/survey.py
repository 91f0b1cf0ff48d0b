"""A survey as a page that can be searched, and as lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from rdflib import URIRef

from kgwb.kg.base import Vocabulary
from kgwb.kg.survey_records import ClassSurvey, PropertySurvey, Survey
from kgwb.kg.text import normal
from kgwb.show import html as h
from kgwb.show.html import Html
from kgwb.show.terms import RenderContext, curie, curie_text
from kgwb.terms import local_name, local_part, term_text
from kgwb.text import and_more, first_items, pluralize, shorten, single_line

MOST_CLASSES, MOST_PROPERTIES, MOST_SORTS = 40, 25, 4
"""Classes that are shown at once, predicates of a class, and sorts of values of a predicate."""
MOST_LINES, MOST_WORDS, MOST_VALUE = 12, 5, 50
"""Classes in a terminal, predicates on the line of each, and letters of a value."""
UNORDERED = ("string", "boolean", "anyURI", "IRI", "class", "node")
LANGUAGES = {
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


def lines(survey: Survey) -> Iterator[str]:
    """Some fifteen lines: the numbers, the largest classes with their commonest predicates, the labels."""
    names, hidden = {str(iri): name for iri, name in survey.names}, Vocabulary().hidden
    numbers = [f"{n:,} {noun}" for noun, n in _numbers(survey).items() if n is not None]
    yield ", ".join(numbers) + (" (classes and predicates of a sample)" if survey.sampled else "")
    largest = [kind for kind in survey.classes if kind.total]
    for kind in largest[:MOST_LINES]:
        shown = [p for p in kind.properties if p.predicate not in hidden][:MOST_WORDS]
        uses = [
            f"{_cut(term_text(p.predicate, names))} {_percent(p.things, kind.size)}" for p in shown
        ]
        uses = uses or first_items(_below(survey, kind), MOST_WORDS)
        yield f"{single_line(_cut(kind.name, 22)):<24}{kind.total:>9,}  {single_line(', '.join(uses))}"
    if left := and_more(len(largest) - MOST_LINES):
        yield left
    yield single_line(", ".join(_labels(survey)))


def _below(survey: Survey, kind: ClassSurvey) -> list[str]:
    """The subclasses of a class with their sizes."""
    below = (each for each in survey.classes if kind.iri and kind.iri in each.parents)
    return [f"{_cut(each.name)} {each.total:,}" for each in below]


def _numbers(survey: Survey) -> dict[str, int | None]:
    classes = sum(kind.iri is not None for kind in survey.classes)
    known = {"triples": survey.triples, "things": survey.things}
    return {**known, "classes": classes, "predicates": survey.predicates}


def _labels(survey: Survey) -> Iterator[str]:
    if survey.unlabelled is not None and survey.things:
        yield f"{_percent(survey.things - survey.unlabelled, survey.things)} of the things have a label"
    for language, number in survey.languages:
        yield f"{LANGUAGES.get(language, _cut(language))} {number:,}"


def _percent(n: int, of: int) -> str:
    """A share; it is 100% only of all, and 0% only of none."""
    if n and n * 100 < of:
        return "<1%"
    return f"{100 if n >= of else min(99, round(n / of * 100))}%"


def _cut(text: str, most: int = MOST_VALUE) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def survey_html(survey: Survey) -> str:
    """Render a survey as HTML that stands alone."""
    return h.page(page(survey, RenderContext()))


def render_survey(survey: Survey, context: RenderContext) -> Html:
    """Render a survey that is the output of a step."""
    return page(survey, context)


def page(
    survey: Survey, context: RenderContext, under: object = "", words: str | None = None
) -> Html:
    """Four numbers, what stands ``under`` them, the classes that ``words`` name, and the labels.

    What is typed to search for is sent as ``find``; without ``words``, nothing can be typed.
    """
    shown = _numbers(survey).items()
    big = (
        h.div("", h.div("big", "–" if n is None else f"{n:,}"), h.aside(noun)) for noun, n in shown
    )
    some = "It is large: what classes have, and how often, is estimated by some instances of the largest."
    label = "Search classes and predicates"
    about = {"type": "text", "name": "words", "id": "find", "value": words, "aria_label": label}
    field = h.tag("input", placeholder=label, autocomplete="off", data_input="find", **about)
    return h.join(
        h.div("tiles", *big),
        h.div("band", h.note(some, kind="calm")) if survey.sampled else "",
        under,
        h.div("band", field) if words is not None and survey.classes else "",
        classes(survey, context, words or "", opened=words is not None),
        _band(survey),
    )


def classes(
    survey: Survey, context: RenderContext, words: str = "", *, opened: bool = False
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
        return any(_matches(words, name, iri) for name, iri in parts)

    matching: list[tuple[ClassSurvey, tuple[PropertySurvey, ...]]] = []
    for kind in survey.classes:
        if _matches(words, kind.name, kind.iri or ""):
            matching.append((kind, ()))
        elif some := tuple(filter(named, kind.properties)):
            matching.append((kind, some))
    most = max((kind.total for kind in survey.classes), default=0) or 1
    rows = []
    for place, (kind, some) in enumerate(matching[:MOST_CLASSES]):
        below = ", ".join(first_items(_below(survey, kind), MOST_PROPERTIES))
        lead = tuple(
            filter(None, (notes.get(str(kind.iri), ""), f"Subclasses: {below}" if below else ""))
        )
        shown = replace(kind, properties=some or kind.properties)
        unfolded = bool(some) or (opened and not place)
        rows.append(_class(shown, kind.total / most, lead, context, notes, unfolded=unfolded))
    rest = [kind for kind, _ in matching[MOST_CLASSES:]]
    smaller = ", ".join(f"{_cut(kind.name)} {kind.total:,}" for kind in rest)
    more = (
        h.fold(h.aside(pluralize(len(rest), "smaller class")), smaller, key="classes")
        if rest
        else ""
    )
    nothing = (
        ""
        if matching
        else h.aside("no class and no predicate has these words" if words else "no class")
    )
    return h.div("band kinds", *rows, more, nothing)


def _matches(words: str, name: str, iri: str) -> bool:
    text = normal(f"{name} {local_name(iri)} {local_part(iri)}")
    return all(word in text for word in normal(words).split())


def _class(
    kind: ClassSurvey,
    share: float,
    lead: Iterable[str],
    context: RenderContext,
    notes: Mapping[str, str],
    *,
    unfolded: bool,
) -> Html:
    """A class to unfold, with its predicates."""
    above = ", ".join(term_text(parent, context.names) for parent in kind.parents)
    own = f"{kind.size:,} of its own" if kind.iri and 0 < kind.size < kind.total else ""
    known = h.span("id", shorten(curie_text(kind.iri, context))) if kind.iri else ""
    about = h.aside(h.dotted(f"in {above}" if above else "", own))
    name = h.span("row", h.tag("b", shorten(kind.name)), known, about)
    face = h.span("hbar grow", name, h.bar(share), h.span("num", f"{kind.total:,}"))
    shown = kind.properties[:MOST_PROPERTIES]
    rows = []
    for p in shown:  # and each path through the nodes that it leads to
        rows.append(_row((p.predicate,), p, kind.size, context, notes.get(str(p.predicate), "")))
        rows += [
            _row((p.predicate, inner.predicate), inner, p.triples, context, "") for inner in p.inner
        ]
    first = (h.div("soft", h.tag("bdi", shorten(text))) for text in lead)
    inside = (*first, *rows, h.left_out(len(kind.properties) - len(shown)))
    return h.fold(face, *inside, unfolded=unfolded, key=f"class-{kind.iri}-{unfolded}")


def _row(
    path: tuple[URIRef, ...], p: PropertySurvey, of: int, context: RenderContext, about: str
) -> Html:
    name = " / ".join(term_text(iri, context.names) for iri in path)
    known = h.span(
        "", h.tag("bdi", name, title=shorten(about) or None), " ", curie(path[-1], context)
    )
    share = p.things / of if of else 0.0
    number = h.span("num", _percent(p.things, of or 1), title=f"{p.things:,} of {of:,}")
    sorts = []
    for v in p.values[
        :MOST_SORTS
    ]:  # a class with their number, or a datatype with the least and greatest
        kind, _, language = v.sort.partition("@")
        sort = {"node": "structure", "IRI": "without a class"}.get(kind, kind)
        sort = f"{LANGUAGES.get(language, _cut(language))} {sort}" if language else sort
        sort = term_text(v.of, context.names) if v.sort == "class" and v.of else sort
        shown = [h.tag("bdi", _cut(term_text(term, context.names))) for term in v.examples]
        if v.whole:
            text = h.join(": ", h.between(", ", shown))
        elif v.sort not in UNORDERED and "@" not in v.sort and len(shown) > 1:
            text = h.join(": ", shown[0], " … ", shown[1])
        else:
            text = h.join(": ", h.between(", ", shown[:3]), ", …") if shown else Html()
        sorts.append(
            h.join(
                h.tag("bdi", sort), f" {v.triples:,}" if v.sort in ("class", "IRI") else "", text
            )
        )
    more = and_more(len(p.values) - MOST_SORTS)
    loose = f"{p.unnamed:,} without a name" if p.unnamed else ""
    return h.div(
        "hbar prop", known, h.bar(share), number, h.span("soft", h.dotted(*sorts, more, loose))
    )


def _band(survey: Survey) -> Html:
    """The labels by language; then what is declared and not used, and what is asserted both ways."""
    names = {str(iri): name for iri, name in survey.names}
    labels = h.div(
        "row", h.span("caption", "Labels"), *(h.span("chip", text) for text in _labels(survey))
    )
    both = [f"{term_text(iri, names)} ({n:,} of {of:,})" for iri, of, n in survey.both_ways if n]
    unused = [term_text(iri, names) for iri in survey.unused]
    lists = (
        ("unused", "Declared and never used", unused),
        ("both", "Asserted in both directions", both),
    )
    folds = [
        h.fold(f"{title}: {len(items):,}", ", ".join(first_items(items, 200)), key=key)
        for key, title, items in lists
        if items
    ]
    unlabelled = (
        h.aside(f"{pluralize(survey.unlabelled, 'thing')} without a label")
        if survey.unlabelled
        else ""
    )
    return h.div("band stack tight", labels, unlabelled, *folds)
