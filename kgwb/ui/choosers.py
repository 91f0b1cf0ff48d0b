"""Choosing a graph and a model: what there is, what was opened, and what to do where that failed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

import ipywidgets as widgets

from kgwb import llm
from kgwb.errors import KgwbError, ModelError
from kgwb.kg import SAMPLES, Graph, open_kg
from kgwb.kg.local import LocalGraph
from kgwb.kg.sparql import n3
from kgwb.llm import ChatModel, ModelStatus, OllamaModel, OpenAIModel, available
from kgwb.masking import shown
from kgwb.render.html import Html, aside, join, page, table, tag
from kgwb.render.words import clean
from kgwb.ui.entry import Entry
from kgwb.ui.kit import Panel, body, field, markup, row

T = TypeVar("T")
MOST_LISTED = 100
"""Models of one server that are listed; others are chosen by writing their name."""
KEYS = "Keys are read from the environment that JupyterLab was started in, never from a notebook."
LIST_S = 3.0
"""How long a server may take to list its models."""


class Chooser(Panel, Generic[T]):
    """A text that names something, and ``chosen``, the latest thing of that kind that could be opened.

    ``start`` is opened at once; "" opens nothing.
    """

    asks = example = lists = ""
    """The labels of the text and of the list beside it, and an example of the text."""

    def __init__(self, start: str) -> None:
        super().__init__()
        self.chosen: T | None = None
        """A failure leaves it as it was."""
        self.name = ""
        """How it was named, without passwords and keys."""
        self._latest: object = None
        self._told = markup()
        wide = widgets.Layout(width="34em")
        self._text = Entry(self, self.choose, value=start, placeholder=self.example, layout=wide)
        self._listed = widgets.Dropdown(layout=widgets.Layout(width="18em"))
        self.watch(self._listed, self._pick)
        choose = self.button("Choose", self.choose, button_style="primary")
        fields = (field(self.lists, self._listed), field(self.asks, self._text), choose)
        self._parts = (row(*fields, align_items="flex-end"), self._told)
        self.show(*self._parts)
        if start:
            self._open(start, None)

    def choose(self, name: str = "") -> threading.Thread:
        """Open what is named, or what the text says, on a thread of its own; the latest wish counts."""
        name = name.strip() or self._text.spoken()
        wish = self._latest = object()
        self.message.say(f"opening {clean(shown(name))} ...")
        return _meanwhile(self._open, name, wish)

    def static(self) -> str:
        """See Panel."""
        return page(tag("b", self.name or "none chosen"), Html(self._told.value))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({clean(self.name) or 'none'})"

    def make(self, name: str) -> tuple[T, Html]:
        """What a name means, and what there is to say of it. Raises KgwbError."""
        raise NotImplementedError

    def _offer(self, names: Iterable[str]) -> None:
        self._listed.options = [("choose ...", ""), *((clean(name), name) for name in names)]
        self._listed.index = 0

    def _pick(self, name: str) -> None:
        if name:
            self._text.value = name
            self.choose(name)

    def _open(self, name: str, wish: object) -> None:
        with self.message.guarding():
            try:
                made, told = self.make(name)
            except KgwbError:
                if wish is self._latest:
                    raise
                return
            if wish is self._latest:
                self.chosen, self.name, self._told.value = made, shown(name), body(told)
                self.message.clear()


class GraphChooser(Chooser[Graph]):
    """Opens a sample, a file, a folder or an endpoint; ``kg`` is the graph that was opened latest."""

    lists, asks = "Samples", "Graph: a sample, an RDF file or folder, or the URL of an endpoint"
    example = "my_graph.ttl, or http://localhost:8890/sparql"

    def __init__(self, start: str = "films") -> None:
        super().__init__(start)
        self._offer(SAMPLES)

    @property
    def kg(self) -> Graph | None:
        """The graph that was opened latest."""
        return self.chosen

    def make(self, name: str) -> tuple[Graph, Html]:
        """See Chooser; an endpoint that does not answer is not opened."""
        kg = open_kg(name)
        size = f"{len(kg.store):,} triples" if isinstance(kg, LocalGraph) else "an endpoint that answers"
        told = tag("b", f"✓ {clean(kg.source)}: ")
        return kg, tag("div", told, f"{size}. ", _example(kg), class_="kgwb-good")


def _example(kg: Graph) -> Html:
    """A label of the graph, so that one has something to ask about."""
    labels = " ".join(n3(predicate) for predicate in kg.vocabulary.labels)
    rows = kg.select(f"SELECT ?label WHERE {{ VALUES ?by {{ {labels} }} ?vertex ?by ?label }} LIMIT 1").rows
    if not rows:
        return aside(f"No label found under {labels}: names are taken from the IRIs.")
    return join("It knows, for example, ", tag("i", clean(rows[0][0])), ".")


class ModelChooser(Chooser[ChatModel]):
    """Chooses among the models that can be reached; ``model`` is the one that was chosen latest."""

    lists, asks = "What there is", "Model, by its specification"
    example = "ollama:phi4, or openai:MODEL@http://HOST:PORT/v1"

    def __init__(self, start: str = "rules") -> None:
        super().__init__(start)
        self._kinds = markup()
        forms = markup(aside(f"A specification is one of {', '.join(llm.FORMS)}"))
        self.show(*self._parts, forms, self._kinds, row(self.button("Look again", self.look)))
        self.look()

    @property
    def model(self) -> ChatModel | None:
        """The model that was chosen latest."""
        return self.chosen

    def look(self) -> threading.Thread:
        """Ask the servers, on a thread of its own, what they have."""
        self._kinds.value = body(aside("looking for models ..."))
        return _meanwhile(self._look)

    def make(self, name: str) -> tuple[ChatModel, Html]:
        """See Chooser; a model whose server does not answer now is chosen, and that is said."""
        model = llm.model(name)
        told, class_ = _reached(model)
        return model, tag("div", tag("b", f"{clean(model.name)}: "), told, class_=class_)

    def _look(self) -> None:
        with self.message.guarding():
            found = available()
            plain = [form for form in llm.FORMS if ":" not in form]
            listed = [f"{one.kind}:{name}" for one in found for name in sorted(one.models)[:MOST_LISTED]]
            self._offer([*plain, *listed])
            self._kinds.value = body(table(("kind", "", "what was seen"), map(_seen, found)), aside(KEYS))


def _seen(one: ModelStatus) -> tuple[str, str, str]:
    left = len(one.models) - MOST_LISTED
    more = f"; {left:,} of them are not listed here: write their name" if left > 0 else ""
    return one.kind, "✓ usable" if one.usable else "✗ not now", clean(one.detail) + more


def _reached(model: ChatModel) -> tuple[str, str]:
    """What is known of a model's server now, and how good that is."""
    if not isinstance(model, OpenAIModel | OllamaModel):
        return "✓ ready", "kgwb-good"
    try:
        listed = model.models(LIST_S)
    except ModelError as error:
        return f"chosen, but: {error.message}. What to do: {error.hint}", "kgwb-bad"
    if model.model in listed or f"{model.model}:latest" in listed:
        return "✓ its server answers and has it", "kgwb-good"
    return f"its server answers, but does not list it among {len(listed):,} models", "kgwb-note"


def _meanwhile(work: Callable[..., None], *given: object) -> threading.Thread:
    thread = threading.Thread(target=work, args=given, name="kgwb-choosing", daemon=True)
    thread.start()
    return thread
