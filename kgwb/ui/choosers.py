"""Choosing a graph, which is then seen at a glance, and a model."""

from __future__ import annotations

import json
from collections.abc import Iterable
from concurrent.futures import Future
from contextlib import suppress
from itertools import chain, islice
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

from kgwb import llm, systems
from kgwb.errors import GraphFileError, KgwbError, ModelError, SettingError
from kgwb.flow import Answer
from kgwb.kg import SAMPLES, Graph, open_kg, sample_path
from kgwb.kg.embeddings import LEXICAL, Embeddings
from kgwb.kg.glance import SAMPLE, Glance, Kind, Share, Try, glance, said_of, tries
from kgwb.llm import ChatModel, ModelStatus, OllamaModel, OpenAIModel, available
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
    table,
    tag,
)
from kgwb.ui.live import Event, Live, progress, text_field, typed_name
from kgwb.ui.session import Worker

T = TypeVar("T")
OFFERED, MOST_TRIED = 3, 12
"""Questions that are offered, and that are tried to find them."""
MOST_CLASSES, MOST_ANSWER = 11, 60
"""Classes that are shown at once, and letters of an answer."""
MOST_LISTED = 100
"""Models of one server that are listed; others are chosen by writing their name."""
KEYS = "Keys are read from the environment that JupyterLab was started in, never from a notebook."
STATIC_S = 2.0
"""How long the form for where no kernel is waits for what is counted."""
LIST_S = 3.0
"""How long a server may take to list its models."""
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
        """What is said of the classes that were looked at."""
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
        """Four numbers, questions with their answers, classes with what is said of the chosen one, labels."""
        title = tag("h2", "Your graph at a glance", class_="title grow")
        head = div("head", title, span("id", clean(self.kg.source)))
        if (seen := self.seen) is None:
            return join(head, progress(self))
        sampled = f"It is large: classes, predicates and labels are of a sample of {SAMPLE:,}."
        chips = [
            span("chip", state_sign("ok", ""), short(question), " ", aside(short(str(answer), MOST_ANSWER)))
            for question, answer in self.answered.items()
        ]
        caption = span("caption", "Questions it can answer: asked just now")
        return join(
            head,
            _numbers(seen),
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
        return div("", head, *map(_share, self.shares.get(chosen, ())))


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


def _numbers(seen: Glance) -> Html:
    classes = sum(kind.iri is not None for kind in seen.kinds)
    numbers = {"triples": seen.triples, "things": seen.things, "classes": classes}
    numbers["predicates"] = seen.predicates
    tiles = (div("", div("big", "–" if n is None else f"{n:,}"), aside(noun)) for noun, n in numbers.items())
    return div("tiles", *tiles)


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


def _share(share: Share) -> Html:
    name = span("cut", short(share.name), title=share.predicate)
    example = span("soft cut", short(share.example), title=short(share.example))
    return div("hbar wide sparql", name, bar(share.share), span("num", f"{share.share:.0%}"), example)


def _labels(seen: Glance) -> Iterable[Html]:
    yield span("caption", "Labels")
    if seen.unlabelled is not None and seen.things:
        yield span("", f"{1 - seen.unlabelled / seen.things:.0%} of the things have one")
        if seen.unlabelled:
            yield aside(f"{seen.unlabelled:,} have none: they are found by their IRI's last part")
    for language, number in seen.languages:
        yield span("chip", f"{LANGUAGES.get(language, language)} {number:,}")


# --- choosing


class Chooser(Live, Generic[T]):
    """A text that names something, and ``chosen``, the latest thing of that kind that could be opened.

    ``start`` is opened at once; "" opens nothing.
    """

    asks = example = ""
    """The label of the text, and an example of it."""

    def __init__(self, start: str) -> None:
        self.chosen: T | None = None
        """A failure leaves it as it was."""
        self.name = ""
        """How it was named, without passwords and keys."""
        self.typed, self.revision = start, 0
        self.remarks = Html()
        """What there is to say of what was chosen."""
        self.opening = Worker()
        super().__init__(self.opening)
        if start:
            try:
                self._open(start)
            except KgwbError as exc:
                self.problem = exc

    def choose(self, name: str) -> Future[None]:
        """Open what is named, on a thread of its own."""
        name = name.strip()
        self.typed = shown(name)
        return self.opening.do(f"opening {clean(self.typed)}", lambda: self._open(name))

    def make(self, name: str) -> tuple[T, Html]:
        """What a name means, and what there is to say of it. Raises KgwbError."""
        raise NotImplementedError

    def offered(self) -> Iterable[str]:
        """Names to choose from by a click."""
        return ()

    def below(self) -> Html:
        """What stands under what was chosen."""
        return Html()

    def view(self) -> Html:
        typed = text_field("name", self.asks, self.typed, placeholder=self.example, data_rev=self.revision)
        choose = button("Choose", "choose", "", "primary", off=bool(self.opening.busy))
        label = tag("label", span("", self.asks), typed, class_="f grow")
        form = tag("form", label, choose, class_="row ends", data_do="choose")
        chips = (
            tag("button", name, class_="chip", type="button", data_do="pick", data_arg=name)
            for name in self.offered()
        )
        body = div("body stack controls", form, div("chips", *chips))
        return join(body, progress(self.opening), self.remarks, self.below())

    def static_view(self) -> Html:
        return join(div("body", tag("b", self.name or "none chosen")), self.remarks, self.below())

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

    def _open(self, name: str) -> None:
        self.chosen, self.remarks = self.make(name)
        self.name = shown(name)


class GraphChooser(Chooser[Graph]):
    """Opens a sample, a file, a folder or an endpoint; ``kg`` is the graph that was opened latest."""

    asks = "Graph: a sample, an RDF file or folder, or the URL of an endpoint"
    example = "my_graph.ttl, or http://localhost:8890/sparql"

    def __init__(self, start: str = "films") -> None:
        self.survey: Survey | None = None
        """Of the graph that was opened latest."""
        super().__init__(start)

    @property
    def kg(self) -> Graph | None:
        """The graph that was opened latest."""
        return self.chosen

    def offered(self) -> Iterable[str]:
        return SAMPLES

    def make(self, name: str) -> tuple[Graph, Html]:
        """See Chooser; an endpoint that does not answer is not opened."""
        kg = open_kg(name)
        kg.ask("ASK { ?s ?p ?o }")
        self.survey = survey_of(kg)
        self.follow(self.survey)
        return kg, Html()

    def below(self) -> Html:
        return self.survey.view() if self.survey is not None else Html()

    def static_view(self) -> Html:
        if self.survey is not None and self.survey.worker is not None:
            self.survey.worker.join(STATIC_S)
        return super().static_view()

    def do_class(self, event: Event) -> None:
        if self.survey is not None:
            self.survey.choose(str(event["arg"]))


class ModelChooser(Chooser[ChatModel]):
    """Chooses among the models that can be reached; ``model`` is the one that was chosen latest."""

    asks = "Model, by its specification"
    example = "ollama:phi4, or openai:MODEL@http://HOST:PORT/v1"

    def __init__(self, start: str = "rules") -> None:
        self.listed: tuple[ModelStatus, ...] = ()
        self.looking = Worker()
        super().__init__(start)
        self.follow(self.looking)
        self.look()

    @property
    def model(self) -> ChatModel | None:
        """The model that was chosen latest."""
        return self.chosen

    def look(self) -> Future[None]:
        """Ask the servers, on a thread of its own, what they have."""

        def look() -> None:
            self.listed = tuple(available())

        return self.looking.do("looking for models", look)

    def do_look(self, event: Event) -> None:
        self.look()

    def offered(self) -> Iterable[str]:
        yield from (form for form in llm.FORMS if ":" not in form)
        for status in self.listed:
            yield from (f"{status.kind}:{name}" for name in sorted(status.models)[:MOST_LISTED])

    def below(self) -> Html:
        forms = aside(f"A specification is one of {', '.join(llm.FORMS)}")
        seen = table(("kind", "", "what was seen"), map(_seen, self.listed))
        there = fold(aside("What there is"), seen, forms, unfolded=True, key="found")
        busy = aside(f"{self.looking.busy} …") if self.looking.busy else button("Look again", "look")
        return div("body stack", there, aside(KEYS), div("controls", busy))

    def make(self, name: str) -> tuple[ChatModel, Html]:
        """See Chooser; a model whose server does not answer now is chosen, and that is said."""
        model = llm.model(name)
        sign, words = _reached(model)
        return model, div("band", state_sign(sign, clean(model.name)), f" {words}")


def _seen(status: ModelStatus) -> tuple[str, str, str]:
    left = len(status.models) - MOST_LISTED
    more = f"; {left:,} of them are not listed here: write their name" if left > 0 else ""
    return status.kind, "✓ usable" if status.usable else "✗ not now", clean(status.detail) + more


def _reached(model: ChatModel) -> tuple[str, str]:
    """What is known of a model's server now, and how good that is."""
    if not isinstance(model, OpenAIModel | OllamaModel):
        return "ok", "is ready"
    try:
        listed = model.models(LIST_S)
    except ModelError as error:
        return "bad", f"is chosen, but: {error.message}. What to do: {error.hint}"
    if model.model in listed or f"{model.model}:latest" in listed:
        return "ok", "its server answers and has it"
    return "none", f"its server answers, but does not list it among {len(listed):,} models"
