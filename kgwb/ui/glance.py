"""A graph at a glance: what it holds and what it can be asked, found out on a thread of its own."""

from __future__ import annotations

import json
from contextlib import suppress
from itertools import chain, islice
from weakref import WeakKeyDictionary

from kgwb import llm, systems
from kgwb.errors import GraphFileError, KgwbError
from kgwb.flow import Answer
from kgwb.kg import Graph, sample_path
from kgwb.kg.embeddings import LEXICAL, Embeddings
from kgwb.kg.glance import SAMPLE, Glance, Kind, Share, Try, glance, said_of, tries
from kgwb.run import Run
from kgwb.show.html import Html, aside, bar, clean, count, div, fold, join, note, short, span, state_sign, tag
from kgwb.ui.live import failure
from kgwb.ui.session import Worker

OFFERED, MOST_TRIED = 3, 12
"""Questions that are offered, and that are tried to find them."""
MOST_CLASSES, MOST_ANSWER = 11, 60
"""Classes that are shown at once, and letters of an answer."""
LANGUAGES = {
    **{"": "no language", "ar": "Arabic", "de": "German", "en": "English", "es": "Spanish", "fr": "French"},
    **{"it": "Italian", "ja": "Japanese", "ko": "Korean", "nl": "Dutch", "pl": "Polish", "pt": "Portuguese"},
    **{"ru": "Russian", "zh": "Chinese"},
}


class Survey(Worker):
    """A graph at a glance, and questions that ``rules`` answered on it just now."""

    def __init__(self, kg: Graph) -> None:
        super().__init__()
        self.kg = kg
        self.seen: Glance | None = None
        self.chosen: Kind | None = None
        """The class that is looked at."""
        self.said: dict[Kind, tuple[Share, ...]] = {}
        """What is said of the classes that were looked at."""
        self.answered: dict[str, Answer] = {}
        """Questions that ``rules`` answered, with what it answered."""
        self.do("looking at the graph", self._look)

    def choose(self, name: str) -> None:
        """Look at the class of that name or IRI. Raises SettingError while something else is asked."""
        seen = self.seen
        kinds = seen.kinds if seen else ()
        chosen = next((kind for kind in kinds if name in (str(kind.iri), kind.name)), None)
        if seen and chosen and chosen not in self.said:
            self.do("asking the graph", lambda: self._describe(seen, chosen))
        self.chosen = chosen

    def _describe(self, seen: Glance, kind: Kind) -> None:
        self.said[kind] = said_of(self.kg, kind, sampled=seen.sampled)

    def _look(self) -> None:
        self.seen = seen = glance(self.kg)
        if seen.kinds:
            self.chosen = seen.kinds[0]
            self._describe(seen, seen.kinds[0])
        self.busy = "trying questions on it"
        self.tell()
        for one in islice(chain(known(self.kg.source), tries(self.kg, self.seen)), MOST_TRIED):
            if len(self.answered) < OFFERED and not self.cancelled:
                self._try(one)

    def _try(self, one: Try) -> None:
        with suppress(KgwbError):
            made = Run(
                systems.system("chatty_kg"),
                one.question,
                kg=self.kg,
                models=llm.model("rules"),
                embeddings=Embeddings(LEXICAL),
            )
            answer = made.go().answer
            if answer and (
                one.answer is None or str(one.answer) in [str(value.term) for value in answer.values]
            ):
                self.answered[one.question] = answer
                self.tell()


def known(source: str) -> list[Try]:
    """Questions that come with a sample graph."""
    with suppress(GraphFileError, OSError):
        text = sample_path(source).with_suffix(".questions.jsonl").read_text(encoding="utf-8")
        questions = [json.loads(line)["question"] for line in text.splitlines()]
        return [Try(question, None) for question in questions[: len(questions) // 2 : len(questions) // 6]]
    return []


_KNOWN: WeakKeyDictionary[Graph, Survey] = WeakKeyDictionary()


def survey_of(kg: Graph) -> Survey:
    """The one survey of a graph, begun with the first who asks for it."""
    if kg not in _KNOWN:
        _KNOWN[kg] = Survey(kg)
    return _KNOWN[kg]


# --- as HTML


def glance_view(survey: Survey) -> Html:
    """Four numbers, questions with their answers, classes with what is said of the chosen one, labels."""
    head = div(
        "head", tag("h2", "Your graph at a glance", class_="title grow"), span("id", clean(survey.kg.source))
    )
    busy = div("band soft", survey.busy, " …") if survey.busy else ""
    busy = div("band", failure(survey.failure)) if survey.failure else busy
    if (seen := survey.seen) is None:
        return join(head, busy)
    numbers = (
        (seen.triples, "triples"),
        (seen.things, "things"),
        (sum(kind.iri is not None for kind in seen.kinds), "classes"),
        (seen.predicates, "predicates"),
    )
    tiles = (div("", div("big", "–" if n is None else f"{n:,}"), aside(noun)) for n, noun in numbers)
    chips = [
        span("chip", state_sign("ok", ""), short(question), " ", aside(short(str(answer), MOST_ANSWER)))
        for question, answer in survey.answered.items()
    ]
    caption = span("caption", "Questions it can answer: asked just now")
    sampled = f"It is large: classes, predicates and labels are of a sample of {SAMPLE:,}."
    return join(
        head,
        div("tiles", *tiles),
        div("band", note(sampled, kind="calm")) if seen.sampled else "",
        div("band stack tight", caption, div("chips", *chips)) if chips else "",
        div("two", _classes(seen, survey.chosen), _said(survey)) if seen.kinds else "",
        div("band row", *_labels(seen)),
        busy,
    )


def _classes(seen: Glance, chosen: Kind | None) -> Html:
    most = max(kind.size for kind in seen.kinds) or 1
    rows = (
        tag(
            "button",
            span("cut", short(kind.name)),
            bar(kind.size / most),
            span("num", f"{kind.size:,}"),
            class_="hbar search b" if kind == chosen else "hbar",
            type="button",
            data_do="class",
            data_arg=kind.iri or kind.name,
            aria_pressed=str(kind == chosen).lower(),
            title=kind.iri,
        )
        for kind in seen.kinds[:MOST_CLASSES]
    )
    rest = seen.kinds[MOST_CLASSES:]
    smaller = ", ".join(f"{short(kind.name)} {kind.size:,}" for kind in rest)
    more = fold(aside(f"{count(len(rest), 'smaller class')}"), smaller, key="classes") if rest else ""
    return div("", span("caption", "Classes"), *rows, more)


def _said(survey: Survey) -> Html:
    chosen = survey.chosen
    if chosen is None:
        return div("")
    of = f"each {chosen.name}" if chosen.iri else "things without a class"
    rows = (
        div(
            "hbar wide sparql",
            span("cut", short(one.name), title=one.predicate),
            bar(one.share),
            span("num", f"{one.share:.0%}"),
            span("soft cut", short(one.example), title=short(one.example)),
        )
        for one in survey.said.get(chosen, ())
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
