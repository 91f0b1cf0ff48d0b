"""The view of a graph at a glance: four numbers, questions it answers, its classes and labels."""

from __future__ import annotations

from collections.abc import Sequence

from kgwb.kg.glance import SAMPLE, Glance, Kind, Share
from kgwb.show.html import Html, aside, bar, clean, count, div, fold, icon, join, note, short, span, tag

MOST_CLASSES = 11
"""Classes that are shown at once."""
LANGUAGES = {
    **{"": "no language", "ar": "Arabic", "de": "German", "en": "English", "es": "Spanish", "fr": "French"},
    **{"it": "Italian", "ja": "Japanese", "ko": "Korean", "nl": "Dutch", "pl": "Polish", "pt": "Portuguese"},
    **{"ru": "Russian", "zh": "Chinese"},
}


def glance_view(
    source: str,
    seen: Glance,
    chosen: Kind | None,
    said: Sequence[Share],
    questions: Sequence[str],
    busy: str = "",
) -> Html:
    """``said`` is what is said of the class ``chosen``; ``busy`` is what is still asked."""
    numbers = (
        (seen.triples, "triples"),
        (seen.things, "things"),
        (sum(kind.iri is not None for kind in seen.kinds), "classes"),
        (seen.predicates, "predicates"),
    )
    tiles = (div("", div("big", "–" if n is None else f"{n:,}"), aside(noun)) for n, noun in numbers)
    chips = (
        tag("button", icon("run"), " ", short(one), class_="chip", type="button", data_do="try", data_arg=one)
        for one in questions
    )
    sampled = f"It is large: classes, predicates and labels are of a sample of {SAMPLE:,}."
    return join(
        div("head", tag("h2", "Your graph at a glance", class_="question grow"), span("id", clean(source))),
        div("tiles", *tiles),
        div("band", note(sampled, kind="calm")) if seen.sampled else "",
        div("band stack tight", span("caption", "Questions it can answer"), div("chips", *chips))
        if questions
        else "",
        div("two", _classes(seen, chosen), _said(chosen, said)) if seen.kinds else "",
        div("band row", *_labels(seen)),
        div("band soft", busy, " …") if busy else "",
    )


def _classes(seen: Glance, chosen: Kind | None) -> Html:
    most = seen.kinds[0].size or 1
    rows = (
        tag(
            "button",
            span("cut", short(kind.name)),
            bar(kind.size / most),
            span("num", f"{kind.size:,}"),
            class_="hbar search b" if kind == chosen else "hbar",
            type="button",
            data_do="class",
            data_arg=kind.name,
            aria_pressed=str(kind == chosen).lower(),
            title=kind.iri,
        )
        for kind in seen.kinds[:MOST_CLASSES]
    )
    rest = seen.kinds[MOST_CLASSES:]
    smaller = ", ".join(f"{short(kind.name)} {kind.size:,}" for kind in rest)
    more = fold(aside(f"{count(len(rest), 'smaller class')}"), smaller, key="classes") if rest else ""
    return div("", span("caption", "Classes"), *rows, more)


def _said(chosen: Kind | None, said: Sequence[Share]) -> Html:
    if chosen is None:
        return div("")
    of = f"a {chosen.name}" if chosen.iri else "things without a class"
    rows = (
        div(
            "hbar wide sparql",
            span("cut", short(one.name), title=one.predicate),
            bar(one.share),
            span("num", f"{one.share:.0%}"),
            span("soft cut", short(one.example), title=short(one.example)),
        )
        for one in said
    )
    head = div(
        "row", span("caption", f"What is said of {of}"), aside("share of them that have it, and an example")
    )
    return div("", head, *rows)


def _labels(seen: Glance) -> list[Html]:
    parts = [span("caption", "Labels")]
    if seen.unlabelled is not None and seen.things:
        parts.append(span("", f"{1 - seen.unlabelled / seen.things:.0%} of the things have one"))
        if seen.unlabelled:
            parts.append(aside(f"{seen.unlabelled:,} have none: they are found by their IRI's last part"))
    return [
        *parts,
        *(span("chip", f"{LANGUAGES.get(name, name)} {number:,}") for name, number in seen.languages),
    ]
