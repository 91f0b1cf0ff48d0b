"""Choosing a graph and a model: what there is, what was opened, and what to do where that failed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Generic, TypeVar

import ipywidgets as widgets

from kgwb import llm
from kgwb.errors import KgwbError, ModelError
from kgwb.kg import SAMPLES, Graph, open_kg
from kgwb.kg.endpoint import Endpoint
from kgwb.kg.local import LocalGraph
from kgwb.kg.sparql import n3
from kgwb.llm import ChatModel, ModelStatus, OllamaModel, OpenAIModel, available
from kgwb.render.html import Html, aside, join, page, table, tag
from kgwb.render.words import clean
from kgwb.ui.entry import Entry
from kgwb.ui.kit import Panel, body, field, markup, row

T = TypeVar("T")
MOST_LISTED = 100
"""Models of one server that are listed; others are chosen by writing their name."""
LIST_S = 3.0
"""How long a server may take to list its models."""
OWN = {"replay": "replay:", "openai": "openai:", "ollama": "ollama:"}
"""What begins the specification of a model that is not listed."""


class Chooser(Panel, Generic[T]):
    """A text that names something, and the latest thing of that kind that could be opened.

    ``on_choice`` is called with it on the thread that opened it.
    """

    kind = ""

    def __init__(self, on_choice: Callable[[T], Any] | None, start: str, *, placeholder: str) -> None:
        super().__init__()
        self.chosen: T | None = None
        """What was opened latest; a failure leaves it as it was."""
        self.name = ""
        """How it was named."""
        self._on_choice = on_choice
        self._wanted = 0
        self._lock = threading.RLock()
        self._told = markup()
        self._text = Entry(self._entered, value=start, placeholder=placeholder, layout=_wide("34em"))
        self._button = self.button("Open", self.choose, button_style="primary")
        if start:
            self._open(start, self._wanted)

    def choose(self, name: str = "") -> Future[None]:
        """Open what is named, or what the text says, on a thread of its own; the latest wish counts."""
        name = name.strip() or self._text.spoken()
        with self._lock:
            self._wanted += 1
            wanted = self._wanted
        self.message.say(f"opening {clean(name)} ...")
        return _meanwhile(lambda: self._open(name, wanted))

    def static(self) -> str:
        """See Panel."""
        return page(tag("div", f"{self.kind}: ", tag("b", self.name or "none chosen")), *self._about())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({clean(self.name) or 'none'})"

    def make(self, name: str) -> tuple[T, Html]:
        """What a name means, and what there is to say of it. Raises KgwbError."""
        raise NotImplementedError

    def _about(self) -> tuple[Html, ...]:
        return (Html(self._told.value),)

    def _entered(self, _: str) -> None:
        with self.message.guarding():
            self.choose()

    def _open(self, name: str, wanted: int) -> None:
        with self.message.guarding():
            try:
                made, told = self.make(name)
            except KgwbError as exc:
                self._fail(exc, wanted)
                return
            with self._lock:
                if wanted != self._wanted:
                    return
                self.chosen, self.name, self._told.value = made, name, body(told)
                self.message.clear()
            if self._on_choice is not None:
                self._on_choice(made)

    def _fail(self, error: KgwbError, wanted: int) -> None:
        with self._lock:
            if wanted == self._wanted:
                self.message.fail(error)
                kept = tag("div", f"Still chosen: {clean(self.name)}") if self.name else ""
                self.message.value = join(Html(self.message.value), body(kept))


class GraphChooser(Chooser[Graph]):
    """Opens a sample, a file, a folder or an endpoint; ``kg`` is the graph that was opened latest.

    ``start`` is opened at once; "" opens nothing.
    """

    kind = "graph"

    def __init__(self, on_choice: Callable[[Graph], Any] | None = None, *, start: str = "films") -> None:
        super().__init__(on_choice, start, placeholder="my_graph.ttl, or http://localhost:8890/sparql")
        samples = widgets.Dropdown(
            options=[("choose ...", ""), *((name, name) for name in SAMPLES)], layout=_wide("12em")
        )
        self.watch(samples, self._sample)
        text = field("Graph: a sample, an RDF file or folder, or the URL of an endpoint", self._text)
        line = row(field("Samples", samples), text, self._button, align_items="flex-end")
        self.show(line, self._told)

    @property
    def kg(self) -> Graph | None:
        """The graph that was opened latest."""
        return self.chosen

    def make(self, name: str) -> tuple[Graph, Html]:
        """See Chooser; an endpoint that does not answer is not opened."""
        kg = open_kg(name)
        example = _example(kg)
        if isinstance(kg, LocalGraph):
            told = f"{len(kg.store):,} triples"
        elif isinstance(kg, Endpoint):
            told = f"an endpoint; labels are searched in the dialect {type(kg.dialect).__name__.lower()}"
        else:
            told = "open"
        return kg, tag("div", tag("b", f"✓ {clean(kg.source)}: "), told, ". ", example, class_="kgwb-good")

    def _sample(self, name: str) -> None:
        if name:
            self._text.value = name
            self.choose(name)


def _example(kg: Graph) -> Html:
    """A label of the graph, so that one has something to ask about."""
    labels = " ".join(n3(predicate) for predicate in kg.vocabulary.labels)
    rows = kg.select(f"SELECT ?label WHERE {{ VALUES ?by {{ {labels} }} ?vertex ?by ?label }} LIMIT 1").rows
    if not rows:
        what = "No label found: names are taken from the IRIs. Labels are looked for under "
        return aside(what + ", ".join(kg.vocabulary.labels))
    return join("It knows, for example, ", tag("i", clean(rows[0][0])), ".")


class ModelChooser(Chooser[ChatModel]):
    """Chooses among the models that can be reached; ``model`` and ``spec`` are what was chosen latest."""

    kind = "model"

    def __init__(
        self, on_choice: Callable[[ChatModel], Any] | None = None, *, start: str = "rules", look: bool = True
    ) -> None:
        """``look`` asks the servers at once what they have; else when the person wants it."""
        super().__init__(on_choice, start, placeholder="ollama:phi4, or openai:MODEL@http://HOST:PORT/v1")
        self._kinds = markup()
        self._listed = widgets.Dropdown(options=[("choose ...", "")], layout=_wide("18em"))
        self.watch(self._listed, self._pick)
        self._button.description = "Choose"
        again = self.button("Look again", self.look)
        listed = row(field("What there is", self._listed), again, align_items="flex-end")
        text = row(field("Model, by its specification", self._text), self._button, align_items="flex-end")
        forms = markup(aside(f"A specification is one of {', '.join(llm.FORMS)}"))
        self.show(row(listed, text, grid_gap="10px"), forms, self._told, self._kinds)
        self._list(())
        if look:
            self.look()

    @property
    def model(self) -> ChatModel | None:
        """The model that was chosen latest."""
        return self.chosen

    @property
    def spec(self) -> str:
        """Its specification."""
        return self.name

    def look(self) -> Future[None]:
        """Ask the servers, on a thread of its own, what they have."""
        self._kinds.value = body(aside("looking for models ..."))
        return _meanwhile(self._look)

    def make(self, name: str) -> tuple[ChatModel, Html]:
        """See Chooser; a model whose server does not answer now is chosen, and that is said."""
        model = llm.model(name)
        told, class_ = _reached(model)
        mark = "✓ " if class_ == "kgwb-good" else ""
        return model, tag("div", tag("b", f"{mark}{clean(model.name)}: "), told, class_=class_)

    def _about(self) -> tuple[Html, ...]:
        return (*super()._about(), Html(self._kinds.value))

    def _look(self) -> None:
        with self.message.guarding():
            self._list(available())

    def _list(self, found: tuple[ModelStatus, ...]) -> None:
        plain = [form for form in llm.FORMS if ":" not in form]
        listed = [
            f"{status.kind}:{clean(name)}" for status in found for name in sorted(status.models)[:MOST_LISTED]
        ]
        others = [(f"{kind}: another, write its name", start) for kind, start in OWN.items()]
        with self._lock:
            self._listed.options = [
                ("choose ...", ""),
                *((spec, spec) for spec in (*plain, *listed)),
                *others,
            ]
            self._kinds.value = body(_kinds(found)) if found else ""

    def _pick(self, spec: str) -> None:
        if spec:
            self._text.value = spec
        if spec and spec not in OWN.values():
            self.choose(spec)


def _reached(model: ChatModel) -> tuple[str, str]:
    """What is known of a model's server now."""
    if model.name == "rules":
        return "a baseline that needs no key and no network; it reads no prompts", "kgwb-good"
    if not isinstance(model, OpenAIModel | OllamaModel):
        return "ready", "kgwb-good"
    try:
        listed = model.models(LIST_S)
    except ModelError as error:
        return f"chosen, but: {error.message}. What to do: {error.hint}", "kgwb-bad"
    if model.model in listed or f"{model.model}:latest" in listed:
        return "its server answers and has it", "kgwb-good"
    known = ", ".join(clean(other) for other in listed[:8]) or "no model"
    more = f" and {len(listed) - 8:,} more" if len(listed) > 8 else ""
    return f"its server answers, but lists {known}{more}", "kgwb-note"


def _kinds(found: tuple[ModelStatus, ...]) -> Html:
    rows = [
        (status.kind, "✓ usable" if status.usable else "✗ not now", join(clean(status.detail), _left(status)))
        for status in found
    ]
    keys = "Keys are read from the environment that JupyterLab was started in, never from a notebook."
    return join(table(("kind", "", "what was seen"), rows), tag("div", aside(keys)))


def _left(status: ModelStatus) -> str:
    left = len(status.models) - MOST_LISTED
    return f"; {left:,} of them are not listed here: write their name" if left > 0 else ""


def _meanwhile(work: Callable[[], None]) -> Future[None]:
    """Do it on a thread of its own; the future is done when the work is."""
    promise = Future[None]()

    def run() -> None:
        try:
            work()
        finally:
            promise.set_result(None)

    threading.Thread(target=run, name="kgwb-choosing", daemon=True).start()
    return promise


def _wide(width: str) -> widgets.Layout:
    return widgets.Layout(width=width, max_width="100%")
