"""Choosing a graph and a model: what there is, what was opened, and what to do where that failed."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Future
from typing import Generic, TypeVar

from kgwb import llm
from kgwb.errors import KgwbError, ModelError, SettingError
from kgwb.kg import SAMPLES, Graph, open_kg
from kgwb.llm import ChatModel, ModelStatus, OllamaModel, OpenAIModel, available
from kgwb.masking import shown
from kgwb.show.html import Html, aside, button, clean, div, fold, join, span, state_sign, table, tag
from kgwb.ui.glance import Survey, glance_view, survey_of
from kgwb.ui.live import Event, Live, failure, typed_name
from kgwb.ui.session import Worker

T = TypeVar("T")
MOST_LISTED = 100
"""Models of one server that are listed; others are chosen by writing their name."""
KEYS = "Keys are read from the environment that JupyterLab was started in, never from a notebook."
STATIC_S = 2.0
"""How long the form for where no kernel is waits for what is counted."""
LIST_S = 3.0
"""How long a server may take to list its models."""


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
        self.seen = Html()
        """What there is to say of what was chosen."""
        self.opening = Worker(self.redraw)
        super().__init__()
        if start:
            try:
                self._open(start)
            except KgwbError as exc:
                self.problem = exc
        self.redraw()

    @property
    def working(self) -> bool:
        return bool(self.opening.busy)

    def choose(self, name: str) -> Future[None]:
        """Open what is named, on a thread of its own. Raises SettingError while something is opened."""
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
        typed = tag(
            "input",
            type="text",
            name="name",
            value=self.typed,
            placeholder=self.example,
            aria_label=self.asks,
            id="name",
            data_rev=self.revision,
            autocomplete="off",
        )
        form = tag(
            "form",
            tag("label", span("", self.asks), typed, class_="f grow"),
            button("Choose", "choose", "", "primary", off=self.working),
            class_="row ends",
            data_do="choose",
        )
        chips = (
            tag("button", one, class_="chip", type="button", data_do="pick", data_arg=one)
            for one in self.offered()
        )
        busy = aside(f"{self.opening.busy} …") if self.opening.busy else ""
        failed = failure(self.opening.failure) if self.opening.failure else ""
        return join(
            div("body stack controls", form, div("chips", *chips), busy, failed), self.seen, self.below()
        )

    def static_view(self) -> Html:
        return join(div("body", tag("b", self.name or "none chosen")), self.seen, self.below())

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
        self.chosen, self.seen = self.make(name)
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
        self.survey.listeners.append(self.redraw)
        return kg, Html()

    def below(self) -> Html:
        return glance_view(self.survey) if self.survey is not None else Html()

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
        self.found: tuple[ModelStatus, ...] = ()
        self.looking = Worker(self.redraw)
        super().__init__(start)
        self.look()

    @property
    def model(self) -> ChatModel | None:
        """The model that was chosen latest."""
        return self.chosen

    def look(self) -> Future[None]:
        """Ask the servers, on a thread of its own, what they have."""

        def look() -> None:
            self.found = tuple(available())

        return self.looking.do("looking for models", look)

    def do_look(self, event: Event) -> None:
        self.look()

    def offered(self) -> Iterable[str]:
        plain = [form for form in llm.FORMS if ":" not in form]
        return [
            *plain,
            *(f"{one.kind}:{name}" for one in self.found for name in sorted(one.models)[:MOST_LISTED]),
        ]

    def below(self) -> Html:
        forms = aside(f"A specification is one of {', '.join(llm.FORMS)}")
        seen = table(("kind", "", "what was seen"), map(_seen, self.found))
        busy = aside(f"{self.looking.busy} …") if self.looking.busy else button("Look again", "look")
        return div(
            "body stack",
            fold(aside("What there is"), seen, forms, unfolded=True, key="found"),
            aside(KEYS),
            div("controls", busy),
        )

    def make(self, name: str) -> tuple[ChatModel, Html]:
        """See Chooser; a model whose server does not answer now is chosen, and that is said."""
        model = llm.model(name)
        sign, words = _reached(model)
        return model, div("band", state_sign(sign, clean(model.name)), f" {words}")


def _seen(one: ModelStatus) -> tuple[str, str, str]:
    left = len(one.models) - MOST_LISTED
    more = f"; {left:,} of them are not listed here: write their name" if left > 0 else ""
    return one.kind, "✓ usable" if one.usable else "✗ not now", clean(one.detail) + more


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
