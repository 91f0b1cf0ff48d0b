"""Choosing a graph, which is then seen at a glance."""

from __future__ import annotations

import json
from collections.abc import Iterable
from concurrent.futures import Future
from contextlib import suppress
from itertools import chain, islice
from weakref import WeakKeyDictionary

from kgwb import llm, systems
from kgwb.errors import GraphFileError, KgwbError, SettingError
from kgwb.flow import Answer
from kgwb.kg import SAMPLES, Graph, open_kg, sample_path
from kgwb.kg.embeddings import LEXICAL, Embeddings
from kgwb.kg.glance import SAMPLE, Glance, Kind, Share, Try, glance, said_of, tries
from kgwb.masking import shown
from kgwb.run import Run
from kgwb.show.html import (
    Html,
    aside,
    bar,
    button,
    clean,
    count,
    div,
    fold,
    join,
    note,
    short,
    span,
    state_sign,
    tag,
)
from kgwb.ui.live import Event, Live, progress, text_field, typed_name
from kgwb.ui.session import Worker

OFFERED, MOST_TRIED = 3, 12
"""Questions that are offered, and that are tried to find them."""
MOST_CLASSES, MOST_ANSWER = 11, 60
"""Classes that are shown at once, and letters of an answer."""
STATIC_S = 2.0
"""How long the form for where no kernel is waits for what is counted."""
LANGUAGES = {
    **{"": "no language", "ar": "Arabic", "de": "German", "en": "English", "es": "Spanish", "fr": "French"},
    **{"it": "Italian", "ja": "Japanese", "ko": "Korean", "nl": "Dutch", "pl": "Polish", "pt": "Portuguese"},
    **{"ru": "Russian", "zh": "Chinese"},
}


# --- a graph at a glance


class Survey(Worker):
    """A graph at a glance, and questions that ``rules`` answered on it just now."""

    def __init__(self, kg: Graph) -> None:
        super().__init__()
        self.kg = kg
        self.seen: Glance | None = None
        self.chosen: Kind | None = None
        """The class that is looked at."""
        self.shares: dict[Kind, tuple[Share, ...]] = {}
        """The predicates of the classes that were looked at."""
        self.answered: dict[str, Answer] = {}
        """Questions that ``rules`` answered, with what it answered."""
        self.do("looking at the graph", self._look)

    def choose(self, name: str) -> None:
        """Look at the class of that name or IRI."""
        seen = self.seen
        kinds = seen.kinds if seen else ()
        chosen = next((kind for kind in kinds if name in (str(kind.iri), kind.name)), None)
        if seen and chosen and chosen not in self.shares:
            self.do("asking the graph", lambda: self._describe(seen, chosen))
        self.chosen = chosen

    def _describe(self, seen: Glance, kind: Kind) -> None:
        self.shares[kind] = said_of(self.kg, kind, sampled=seen.sampled)

    def _look(self) -> None:
        self.seen = seen = glance(self.kg)
        if seen.kinds:
            self.chosen = seen.kinds[0]
            self._describe(seen, seen.kinds[0])
        self.busy = "trying questions on it"
        self.tell()
        for question in islice(chain(known(self.kg.source), tries(self.kg, seen)), MOST_TRIED):
            if len(self.answered) < OFFERED and not self.cancelled:
                with suppress(KgwbError):
                    self._try(question)

    def _try(self, question: Try) -> None:
        system, rules, names = systems.system("chatty_kg"), llm.model("rules"), Embeddings(LEXICAL)
        answer = Run(system, question.question, kg=self.kg, models=rules, embeddings=names).go().answer
        values = [str(value.term) for value in answer.values] if answer else []
        if answer and (question.answer is None or str(question.answer) in values):
            self.answered[question.question] = answer
            self.tell()

    def view(self) -> Html:
        """Four numbers, questions with answers, classes with the predicates of the chosen one, labels."""
        title = tag("h2", "Your graph at a glance", class_="title grow")
        head = div("head", title, span("id", clean(self.kg.source)))
        if (seen := self.seen) is None:
            return join(head, progress(self))
        sampled = f"It is large: classes, predicates and labels are of a sample of {SAMPLE:,}."
        classes = sum(kind.iri is not None for kind in seen.kinds)
        numbers = {"triples": seen.triples, "things": seen.things, "classes": classes}
        numbers["predicates"] = seen.predicates
        tiles = [
            div("", div("big", "–" if n is None else f"{n:,}"), aside(noun)) for noun, n in numbers.items()
        ]
        chips = [
            span("chip", state_sign("ok", ""), short(question), " ", aside(short(str(answer), MOST_ANSWER)))
            for question, answer in self.answered.items()
        ]
        caption = span("caption", "Questions it can answer: asked just now")
        return join(
            head,
            div("tiles", *tiles),
            div("band", note(sampled, kind="calm")) if seen.sampled else "",
            div("band stack tight", caption, div("chips", *chips)) if chips else "",
            div("two", _classes(seen, self.chosen), self._shares()) if seen.kinds else "",
            div("band row", *_labels(seen)),
            progress(self),
        )

    def _shares(self) -> Html:
        chosen = self.chosen
        if chosen is None:
            return div("")
        of = f"each {chosen.name}" if chosen.iri else "things without a class"
        caption = span("caption", f"What is said of {of}")
        head = div("row", caption, aside("share of them that have it, and an example"))
        rows = []
        for share in self.shares.get(chosen, ()):
            name = span("cut", short(share.name), title=share.predicate)
            number = span("num", f"{share.share:.0%}")
            example = span("soft cut", short(share.example), title=short(share.example))
            rows.append(div("hbar wide sparql", name, bar(share.share), number, example))
        return div("", head, *rows)


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


def _classes(seen: Glance, chosen: Kind | None) -> Html:
    most = max(kind.size for kind in seen.kinds) or 1

    def row(kind: Kind) -> Html:
        parts = span("cut", short(kind.name)), bar(kind.size / most), span("num", f"{kind.size:,}")
        chooses = {"data_do": "class", "data_arg": kind.iri or kind.name, "title": kind.iri}
        class_ = "hbar search b" if kind == chosen else "hbar"
        pressed = str(kind == chosen).lower()
        return tag("button", *parts, type="button", class_=class_, aria_pressed=pressed, **chooses)

    rest = seen.kinds[MOST_CLASSES:]
    smaller = ", ".join(f"{short(kind.name)} {kind.size:,}" for kind in rest)
    more = fold(aside(f"{count(len(rest), 'smaller class')}"), smaller, key="classes") if rest else ""
    return div("", span("caption", "Classes"), *map(row, seen.kinds[:MOST_CLASSES]), more)


def _labels(seen: Glance) -> Iterable[Html]:
    yield span("caption", "Labels")
    if seen.unlabelled is not None and seen.things:
        yield span("", f"{1 - seen.unlabelled / seen.things:.0%} of the things have one")
        if seen.unlabelled:
            yield aside(f"{seen.unlabelled:,} have none: they are found by their IRI's last part")
    for language, number in seen.languages:
        yield span("chip", f"{LANGUAGES.get(language, language)} {number:,}")


# --- choosing


class GraphChooser(Live):
    """Opens a sample, a file, a folder or an endpoint; ``kg`` is the graph that was opened latest.

    ``start`` is opened at once; "" opens nothing. A failure leaves the graph as it was.
    """

    def __init__(self, start: str = "films") -> None:
        self.kg: Graph | None = None
        self.name = ""
        """How it was named, without passwords and keys."""
        self.typed, self.revision = start, 0
        self.survey: Survey | None = None
        """Of the graph."""
        self.opening = Worker()
        super().__init__(self.opening)
        if start:
            try:
                self._open(start)
            except KgwbError as exc:
                self.problem = exc

    def choose(self, name: str) -> Future[None]:
        """Open what is named, on a thread of its own."""
        self.typed = shown(name.strip())
        return self.opening.do(f"opening {clean(self.typed)}", lambda: self._open(name.strip()))

    def _open(self, name: str) -> None:
        kg = open_kg(name)
        kg.ask("ASK { ?s ?p ?o }")  # an endpoint that does not answer is not opened
        self.survey = survey_of(kg)
        self.follow(self.survey)
        self.kg, self.name = kg, shown(name)

    def view(self) -> Html:
        label = "Graph: a sample, an RDF file or folder, or the URL of an endpoint"
        example = "my_graph.ttl, or http://localhost:8890/sparql"
        typed = text_field("name", label, self.typed, placeholder=example, data_rev=self.revision)
        choose = button("Choose", "choose", "", "primary", off=bool(self.opening.busy))
        field = tag("label", span("", label), typed, class_="f grow")
        form = tag("form", field, choose, class_="row ends", data_do="choose")
        chips = (
            tag("button", name, class_="chip", type="button", data_do="pick", data_arg=name)
            for name in SAMPLES
        )
        body = div("body stack controls", form, div("chips", *chips))
        return join(body, progress(self.opening), self.survey.view() if self.survey else "")

    def static_view(self) -> Html:
        if self.survey is not None and self.survey.worker is not None:
            self.survey.worker.join(STATIC_S)
        chosen = div("body", tag("b", self.name or "none chosen"))
        return join(chosen, self.survey.view() if self.survey else "")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({clean(self.name) or 'none'})"

    def do_choose(self, event: Event) -> None:
        try:
            name = typed_name(event, "name")
        except SettingError:
            self.typed, self.revision = "", self.revision + 1
            raise
        self.choose(name)

    def do_pick(self, event: Event) -> None:
        self.revision += 1
        self.choose(str(event["arg"]))

    def do_class(self, event: Event) -> None:
        if self.survey is not None:
            self.survey.choose(str(event["arg"]))
