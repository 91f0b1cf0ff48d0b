"""What a graph holds and what it can be asked, found out on a thread of its own; its widgets share it."""

from __future__ import annotations

from contextlib import suppress
from itertools import islice
from weakref import WeakKeyDictionary

from kgwb import llm, systems
from kgwb.embeddings import LEXICAL, Embeddings
from kgwb.errors import KgwbError
from kgwb.kg import Graph
from kgwb.kg.glance import Glance, Kind, Share, Try, glance, said_of, tries
from kgwb.run import Run
from kgwb.ui.session import Worker

OFFERED, MOST_TRIED = 3, 12
"""Questions that are offered, and that are tried to find them."""


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
        self.questions: tuple[str, ...] = ()
        self.do("looking at the graph", self._look)

    def choose(self, name: str) -> None:
        """Look at the class of that name. Raises SettingError while something else is asked."""
        self.chosen = (
            next((kind for kind in self.seen.kinds if kind.name == name), None) if self.seen else None
        )
        if self.chosen is not None and self.chosen not in self.said:
            self.do("asking the graph", self._describe)

    def _describe(self) -> None:
        if self.seen is not None and self.chosen is not None:
            self.said[self.chosen] = said_of(self.kg, self.chosen, sampled=self.seen.sampled)

    def _look(self) -> None:
        self.seen = glance(self.kg)
        self.chosen = next(iter(self.seen.kinds), None)
        self._describe()
        self.busy = "trying questions on it"
        self.tell()
        for one in islice(tries(self.kg, self.seen), MOST_TRIED):
            if len(self.questions) < OFFERED and not self.cancelled and self._answers(one):
                self.questions += (one.question,)
                self.tell()

    def _answers(self, one: Try) -> bool:
        with suppress(KgwbError):
            made = Run(
                systems.system("chatty_kg"),
                one.question,
                kg=self.kg,
                models=llm.model("rules"),
                embeddings=Embeddings(LEXICAL),
            )
            answer = made.go().answer
            return answer is not None and any(str(value.term) == str(one.answer) for value in answer.values)
        return False


_KNOWN: WeakKeyDictionary[Graph, Survey] = WeakKeyDictionary()


def survey_of(kg: Graph) -> Survey:
    """The one survey of a graph, begun with the first who asks for it."""
    if kg not in _KNOWN:
        _KNOWN[kg] = Survey(kg)
    return _KNOWN[kg]
