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
from kgwb.kg import SAMPLE_NAMES, Graph, open_kg, sample_path
from kgwb.kg.embeddings import LEXICAL_MODEL, Embeddings
from kgwb.kg.survey import SuggestedQuestion, suggest_questions, survey_graph
from kgwb.kg.survey_records import Survey
from kgwb.masking import mask_url
from kgwb.run import Run
from kgwb.run.models import open_model
from kgwb.show.html import Html, button, div, join, muted_text, span, state_badge, tag
from kgwb.show.survey import render_survey_browser
from kgwb.show.terms import RenderContext
from kgwb.text import shorten, single_line
from kgwb.ui.live import Event, Live, read_name, render_progress, text_input
from kgwb.ui.session import Worker

MAX_EXAMPLE_QUESTIONS, MAX_TRIED_QUESTIONS = 3, 12
"""Questions that are offered, and that are tried to find them."""
MAX_ANSWER_CHARS = 60
"""Letters of an answer."""
SURVEY_TIMEOUT_S = 2.0
"""How long the form for where no kernel is waits for what is counted."""


class Glance(Worker):
    """A graph at a glance: its survey, and questions that ``rules`` answered on it just now."""

    def __init__(self, kg: Graph) -> None:
        super().__init__()
        self.kg = kg
        self.survey: Survey | None = None
        self.search_text = ""  # what is searched for in the survey
        self.example_answers: dict[
            str, Answer
        ] = {}  # questions that ``rules`` answered, with what it answered
        self.submit("looking at the graph", self._survey_graph)

    def _survey_graph(self) -> None:
        self.survey = seen = survey_graph(self.kg)
        self.current_task = "trying questions on it"
        self.notify()
        system, rules, names = (
            systems.load_system("chatty_kg"),
            open_model("rules"),
            Embeddings(LEXICAL_MODEL),
        )
        for text, known_answer in islice(
            chain(sample_questions(self.kg.source), suggest_questions(self.kg, seen)),
            MAX_TRIED_QUESTIONS,
        ):
            if len(self.example_answers) == MAX_EXAMPLE_QUESTIONS or self.cancelled:
                break
            answer = None
            with suppress(KgwbError):
                answer = Run(system, text, kg=self.kg, models=rules, embeddings=names).go().answer
            values = [str(value.term) for value in answer.values] if answer else []
            if answer and (known_answer is None or str(known_answer) in values):
                self.example_answers[text] = answer
                self.notify()

    def view(self, *, interactive: bool = True) -> Html:
        """Four numbers, questions with answers, classes with their predicates, labels."""
        title = tag("h2", "Your graph at a glance", class_="title grow")
        head = div("head", title, span("id", single_line(self.kg.source)))
        if (seen := self.survey) is None:
            return join(head, render_progress(self))
        chips = [
            span(
                "chip",
                state_badge("ok", ""),
                shorten(question),
                " ",
                muted_text(shorten(str(answer), MAX_ANSWER_CHARS)),
            )
            for question, answer in self.example_answers.items()
        ]
        caption = span("caption", "Questions it can answer: asked just now")
        offered = div("band stack tight", caption, div("chips", *chips)) if chips else ""
        around = RenderContext(prefixes=getattr(self.kg, "prefixes", {}))
        return join(
            head,
            render_survey_browser(seen, around, offered, self.search_text if interactive else None),
            render_progress(self),
        )


def sample_questions(source: str) -> list[SuggestedQuestion]:
    """Questions that come with a sample graph."""
    with suppress(GraphFileError, OSError):
        text = sample_path(source).with_suffix(".questions.jsonl").read_text(encoding="utf-8")
        questions = [json.loads(line)["question"] for line in text.splitlines()]
        return [
            SuggestedQuestion(question, None)
            for question in questions[: len(questions) // 2 : len(questions) // 6]
        ]
    return []


_OVERVIEWS: WeakKeyDictionary[Graph, Glance] = WeakKeyDictionary()


def overview_of(kg: Graph) -> Glance:
    """The one glance at a graph, begun with the first who asks for it."""
    if kg not in _OVERVIEWS:
        _OVERVIEWS[kg] = Glance(kg)
    return _OVERVIEWS[kg]


class GraphChooser(Live):
    """Opens a sample, a file, a folder or an endpoint; ``kg`` is the graph that was opened latest.

    ``start`` is opened at once; "" opens nothing. A failure leaves the graph as it was.
    """

    def __init__(self, start: str = "films") -> None:
        self.kg: Graph | None = None
        self.name = ""  # how it was named, without passwords and keys
        self.input_text, self.revision = start, 0
        self.overview: Glance | None = None  # of the graph
        self.worker = Worker()
        super().__init__(self.worker)
        if start:
            try:
                self._open(start)
            except KgwbError as exc:
                self.event_error = exc

    def open_graph(self, name: str) -> Future[None]:
        """Open what is named, on a thread of its own."""
        self.input_text = mask_url(name.strip())
        return self.worker.submit(
            f"opening {single_line(self.input_text)}", lambda: self._open(name.strip())
        )

    def _open(self, name: str) -> None:
        kg = open_kg(name)
        kg.ask("ASK { ?s ?p ?o }")  # an endpoint that does not answer is not opened
        self.overview = overview_of(kg)
        self.subscribe_to(self.overview)
        self.kg, self.name = kg, mask_url(name)

    def view(self) -> Html:
        label = "Graph: a sample, an RDF file or folder, or the URL of an endpoint"
        example = "my_graph.ttl, or http://localhost:8890/sparql"
        typed = text_input(
            "name", label, self.input_text, placeholder=example, data_rev=self.revision
        )
        choose = button("Choose", "choose", "", "primary", disabled=bool(self.worker.current_task))
        field = tag("label", span("", label), typed, class_="f grow")
        form = tag("form", field, choose, class_="row ends", data_do="choose")
        chips = (
            tag("button", name, class_="chip", type="button", data_do="pick", data_arg=name)
            for name in SAMPLE_NAMES
        )
        body = div("body stack controls", form, div("chips", *chips))
        return join(
            body, render_progress(self.worker), self.overview.view() if self.overview else ""
        )

    def render_static(self) -> Html:
        if self.overview is not None and self.overview.thread is not None:
            self.overview.thread.join(SURVEY_TIMEOUT_S)
        chosen = div("body", tag("b", self.name or "none chosen"))
        return join(chosen, self.overview.view(interactive=False) if self.overview else "")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({single_line(self.name) or 'none'})"

    def do_choose(self, event: Event) -> None:
        try:
            name = read_name(event, "name")
        except SettingError:
            self.input_text, self.revision = "", self.revision + 1
            raise
        self.open_graph(name)

    def do_pick(self, event: Event) -> None:
        self.revision += 1
        self.open_graph(str(event["arg"]))

    def do_find(self, event: Event) -> None:
        if self.overview is not None:
            self.overview.search_text = str(event["value"])
