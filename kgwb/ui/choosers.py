"""Choosing a graph, which is then seen at a glance."""

from __future__ import annotations

import json
from concurrent.futures import Future
from contextlib import suppress
from itertools import chain, islice
from weakref import WeakKeyDictionary

from kgwb import systems
from kgwb.errors import GraphFileError, KgwbError, SettingError
from kgwb.flow import Answer
from kgwb.kg import SAMPLES, Graph, open_kg, sample_path
from kgwb.kg.embeddings import LEXICAL, Embeddings
from kgwb.kg.survey import Try, survey, tries
from kgwb.kg.survey_records import Survey
from kgwb.masking import shown
from kgwb.run import Run
from kgwb.run.models import open_model
from kgwb.show.html import Html, aside, button, div, join, span, state_sign, tag
from kgwb.show.survey import page
from kgwb.show.terms import RenderContext
from kgwb.text import shorten, single_line
from kgwb.ui.live import Event, Live, progress, text_field, typed_name
from kgwb.ui.session import Worker

OFFERED, MOST_TRIED = 3, 12
"""Questions that are offered, and that are tried to find them."""
MOST_ANSWER = 60
"""Letters of an answer."""
STATIC_S = 2.0
"""How long the form for where no kernel is waits for what is counted."""


class Glance(Worker):
    """A graph at a glance: its survey, and questions that ``rules`` answered on it just now."""

    def __init__(self, kg: Graph) -> None:
        super().__init__()
        self.kg = kg
        self.seen: Survey | None = None
        self.words = ""  # what is searched for in the survey
        self.answered: dict[
            str, Answer
        ] = {}  # questions that ``rules`` answered, with what it answered
        self.do("looking at the graph", self._look)

    def _look(self) -> None:
        self.seen = seen = survey(self.kg)
        self.busy = "trying questions on it"
        self.tell()
        system, rules, names = systems.system("chatty_kg"), open_model("rules"), Embeddings(LEXICAL)
        for text, known_answer in islice(
            chain(known(self.kg.source), tries(self.kg, seen)), MOST_TRIED
        ):
            if len(self.answered) == OFFERED or self.cancelled:
                break
            answer = None
            with suppress(KgwbError):
                answer = Run(system, text, kg=self.kg, models=rules, embeddings=names).go().answer
            values = [str(value.term) for value in answer.values] if answer else []
            if answer and (known_answer is None or str(known_answer) in values):
                self.answered[text] = answer
                self.tell()

    def view(self, *, live: bool = True) -> Html:
        """Four numbers, questions with answers, classes with their predicates, labels."""
        title = tag("h2", "Your graph at a glance", class_="title grow")
        head = div("head", title, span("id", single_line(self.kg.source)))
        if (seen := self.seen) is None:
            return join(head, progress(self))
        chips = [
            span(
                "chip",
                state_sign("ok", ""),
                shorten(question),
                " ",
                aside(shorten(str(answer), MOST_ANSWER)),
            )
            for question, answer in self.answered.items()
        ]
        caption = span("caption", "Questions it can answer: asked just now")
        offered = div("band stack tight", caption, div("chips", *chips)) if chips else ""
        around = RenderContext(prefixes=getattr(self.kg, "prefixes", {}))
        return join(head, page(seen, around, offered, self.words if live else None), progress(self))


def known(source: str) -> list[Try]:
    """Questions that come with a sample graph."""
    with suppress(GraphFileError, OSError):
        text = sample_path(source).with_suffix(".questions.jsonl").read_text(encoding="utf-8")
        questions = [json.loads(line)["question"] for line in text.splitlines()]
        return [
            Try(question, None)
            for question in questions[: len(questions) // 2 : len(questions) // 6]
        ]
    return []


_KNOWN: WeakKeyDictionary[Graph, Glance] = WeakKeyDictionary()


def survey_of(kg: Graph) -> Glance:
    """The one glance at a graph, begun with the first who asks for it."""
    if kg not in _KNOWN:
        _KNOWN[kg] = Glance(kg)
    return _KNOWN[kg]


class GraphChooser(Live):
    """Opens a sample, a file, a folder or an endpoint; ``kg`` is the graph that was opened latest.

    ``start`` is opened at once; "" opens nothing. A failure leaves the graph as it was.
    """

    def __init__(self, start: str = "films") -> None:
        self.kg: Graph | None = None
        self.name = ""  # how it was named, without passwords and keys
        self.typed, self.revision = start, 0
        self.survey: Glance | None = None  # of the graph
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
        return self.opening.do(
            f"opening {single_line(self.typed)}", lambda: self._open(name.strip())
        )

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
        return join(chosen, self.survey.view(live=False) if self.survey else "")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({single_line(self.name) or 'none'})"

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

    def do_find(self, event: Event) -> None:
        if self.survey is not None:
            self.survey.words = str(event["value"])
