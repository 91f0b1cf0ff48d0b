"""Choosing a graph, and an overview of the chosen graph."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from functools import partial
from itertools import islice
from weakref import WeakKeyDictionary

from kgwb import disk
from kgwb.errors import GraphFileError, KgwbError, SettingError
from kgwb.kg import SAMPLE_NAMES, Graph, open_kg, sample_path
from kgwb.kg.embeddings import LEXICAL_MODEL, Embeddings
from kgwb.kg.survey import SuggestedQuestion, suggest_questions, survey_graph
from kgwb.kg.survey_records import Survey
from kgwb.run import Run, systems
from kgwb.run.answers import Answer
from kgwb.run.models import open_model
from kgwb.show import html as h
from kgwb.show.html import Html
from kgwb.show.survey import render_survey
from kgwb.show.terms import RenderContext
from kgwb.terms import Term
from kgwb.text import mask_url, single_line, source_name
from kgwb.ui.live import (
    Event,
    Live,
    argument_of,
    read_name,
    render_page,
    render_progress,
)
from kgwb.ui.worker import Worker

MAX_EXAMPLE_QUESTIONS = 3
"""Answered questions that are shown."""
MAX_TRIED_QUESTIONS = 12
"""Questions that are tried to find them."""
MAX_ANSWER_CHARS = 60
SURVEY_TIMEOUT_S = 2.0
"""How long the static HTML of a chooser waits for the survey of the graph."""


class Glance(Worker):
    """An overview of a graph: its survey, and example questions that the graph can answer.

    A worker makes it in the background as soon as the object is made.
    """

    def __init__(self, kg: Graph) -> None:
        """Begin to survey a graph on the worker's thread."""
        super().__init__()
        self.kg = kg
        self.survey: Survey | None = None
        """None until the graph is surveyed."""
        self.search_text = ""
        """What the person searches for in the survey."""
        self.example_answers: dict[str, Answer] = {}
        """Questions with the answers that the system Chatty-KG found by rules, without a model."""
        self.submit("surveying the graph", self._look)

    def _look(self) -> None:
        """Survey the graph, and then try questions until MAX_EXAMPLE_QUESTIONS are answered.

        The survey is kept in ``survey`` and the answers in ``example_answers``; listeners are
        notified after the survey and after each answer. At most MAX_TRIED_QUESTIONS are tried, and
        a cancel ends the trying. Raises GraphError if the graph cannot be surveyed.
        """
        self.survey = survey_graph(self.kg)
        self.current_task = "trying example questions"
        self.notify()
        questions = islice(self._questions(self.survey), MAX_TRIED_QUESTIONS)
        for question, right_answer in questions:
            has_enough = len(self.example_answers) == MAX_EXAMPLE_QUESTIONS
            if self.cancelled or has_enough:
                break
            answer = self._try_question(question, right_answer)
            if answer is not None:
                self.example_answers[question] = answer
                self.notify()

    def _questions(self, survey: Survey) -> Iterator[SuggestedQuestion]:
        """Yield the questions of a sample graph, and then those that the survey suggests."""
        yield from sample_questions(self.kg.source)
        yield from suggest_questions(self.kg, survey)

    def _try_question(self, question: str, right_answer: Term | None) -> Answer | None:
        """Ask Chatty-KG with the model "rules" and lexical embeddings, and return its answer.

        Returns None if it fails or finds nothing, or if the right answer is known and not among the
        values of the answer.
        """
        system = systems.load_system("chatty_kg")
        model = open_model("rules")
        embeddings = Embeddings(LEXICAL_MODEL)
        try:
            run = Run(system, question, kg=self.kg, models=model, embeddings=embeddings)
            run.go()
        except KgwbError:
            return None
        answer = run.answer
        if not answer:
            return None
        values = [str(value.term) for value in answer.values]
        if right_answer is not None and str(right_answer) not in values:
            return None
        return answer

    def view(self, *, interactive: bool = True) -> Html:
        """Render the survey with the example questions, as far as they are known, and the progress.

        The name of the graph stands above, with its whole source as the tooltip. ``interactive``
        adds a field that searches the survey.
        """
        title = h.tag("h2", "Your graph at a glance", class_="title grow")
        source_in_full = single_line(self.kg.source)
        source = h.span("id", source_name(source_in_full), title=source_in_full)
        head = h.div("head", title, source)
        survey = Html()
        if self.survey is not None:
            prefixes = getattr(self.kg, "prefixes", {})
            context = RenderContext(prefixes=prefixes)
            examples = self._render_examples()
            search_text = self.search_text if interactive else None
            survey = render_survey(self.survey, context, examples, search_text)
        return h.join(head, survey, render_progress(self))

    def _render_examples(self) -> Html:
        """Render the example questions with their answers, shortened; nothing without any."""
        examples = dict(self.example_answers)  # the worker may add one meanwhile
        if not examples:
            return Html()
        return render_page("graph_examples.html", examples=examples, max_chars=MAX_ANSWER_CHARS)


def sample_questions(source: str) -> list[SuggestedQuestion]:
    """Return three or four questions of a sample graph, spread over the first half of its set.

    Their right answers are not given. Returns an empty list for any other graph. At least six
    questions must be in the set.
    """
    try:
        path = sample_path(source).with_suffix(".questions.jsonl")
        entries = [entry for _, entry in disk.read_json_lines(path)]
    except (GraphFileError, OSError):
        return []
    questions = [SuggestedQuestion(entry["question"], None) for entry in entries]
    middle = len(questions) // 2
    distance = len(questions) // 6
    return questions[:middle:distance]


_OVERVIEWS: WeakKeyDictionary[Graph, Glance] = WeakKeyDictionary()


def overview_of(kg: Graph) -> Glance:
    """Return the overview of a graph, and begin to make it when it is first asked for."""
    if kg not in _OVERVIEWS:
        _OVERVIEWS[kg] = Glance(kg)
    return _OVERVIEWS[kg]


class GraphChooser(Live):
    """A widget that opens a graph: a sample, a file, a folder, or an endpoint.

    A failure leaves the graph that was open before.
    """

    def __init__(self, start: str = "films") -> None:
        """Open a graph at once; an empty ``start`` opens none. A failure is shown in the widget."""
        self.kg: Graph | None = None
        """The graph opened last."""
        self.name = ""
        """The name under which it was opened, without passwords and keys."""
        self.input_text = start
        self.revision = 0
        """Increased whenever the text field must take over ``input_text``."""
        self.overview: Glance | None = None
        """Of the graph opened last."""
        self.worker = Worker()
        super().__init__(self.worker)
        if start:
            try:
                self._open(start)
            except KgwbError as exc:
                self.event_error = exc

    def open_graph(self, name: str) -> Future[None]:
        """Open a graph by its name, path or URL, on the worker's thread.

        Returns a future that is done when the graph is open or has failed; the error is in
        ``worker.failure``. Passwords in an address are masked where it is shown.
        """
        name = name.strip()
        self.input_text = mask_url(name)
        shown_name = single_line(self.input_text)
        open_named = partial(self._open, name)
        return self.worker.submit(f"opening {shown_name}", open_named)

    def _open(self, name: str) -> None:
        """Open a graph, make it the chosen one, and begin its overview in the background.

        It is asked one query first, so that an endpoint that does not answer fails at once. Raises
        KgwbError; the graph chosen before stays then.
        """
        kg = open_kg(name)
        kg.ask("ASK { ?s ?p ?o }")
        self.overview = overview_of(kg)
        self.subscribe_to(self.overview)
        self.kg = kg
        self.name = mask_url(name)

    def view(self) -> Html:
        """Render the field for a graph's name, the samples, the progress, and the overview.

        The button beside the field is disabled while a graph is being opened. The overview is left
        out before a graph was opened.
        """
        return render_page(
            "graph_chooser.html",
            chooser=self,
            sample_names=SAMPLE_NAMES,
            progress=render_progress(self.worker),
        )

    def render_static(self) -> Html:
        """Render the name of the graph and its overview.

        The overview is waited for SURVEY_TIMEOUT_S at most; then it is rendered as far as it is.
        """
        name = h.tag("b", source_name(self.name) or "none chosen", title=self.name or None)
        chosen = h.div("body", name)
        overview = self.overview
        if overview is None:
            return chosen
        if overview.thread is not None:
            overview.thread.join(SURVEY_TIMEOUT_S)
        return h.join(chosen, overview.view(interactive=False))

    def __repr__(self) -> str:
        name = source_name(self.name) or "none"
        return f"{type(self).__name__}({name})"

    def do_choose(self, event: Event) -> None:
        """Open the graph that was typed, on the worker's thread.

        A text that looks like a secret is removed from the field, and SettingError is raised.
        """
        try:
            name = read_name(event, "name")
        except SettingError:
            self.input_text = ""
            self.revision += 1
            raise
        self.open_graph(name)

    def do_pick(self, event: Event) -> None:
        """Open the sample graph that was clicked."""
        self.revision += 1
        self.open_graph(argument_of(event))

    def do_find(self, event: Event) -> None:
        """Search the survey for the text that was typed."""
        if self.overview is not None:
            self.overview.search_text = str(event["value"])
