"""The records of a walk over the graph, hop by hop, and of the debate on the way (DoG), in flow order."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from kgwb.deprecated import renamed_names
from kgwb.flow import Answer, Direction, Value
from kgwb.records import Explanation, Hidden, Record, Role
from kgwb.terms import Iri, Term, Triple
from kgwb.text import list_first, pluralize

INVERSE_PREFIX = "~"
"""Before a relation that is gone from object to subject (DoG, "Relation Filtering")."""
BRACKETED_NAME = re.compile(r"\[([^\[\]]+)\]")
"""A linked name in a question."""


@dataclass(frozen=True, slots=True)
class TopicEntities(Record):
    """The question with its topic entities in square brackets."""

    question: str
    entities: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Head(Record):
    """Where the walk stands for one topic entity: vertices, and the name they have in the question."""

    name: str
    values: tuple[Value, ...]
    """Each with the triples that lead to it from the topic entity."""
    start: tuple[Term, ...] = ()
    """The vertices that this walk began at; what was asked about is no answer."""


@dataclass(frozen=True, slots=True)
class HopInput(Record):
    """What one iteration starts from: the question as it is by now, and the heads it names in brackets."""

    question: str
    heads: tuple[Head, ...]
    before: tuple[str, ...] = ()
    """The longer questions that it came from, oldest first."""


@dataclass(frozen=True, slots=True)
class Relation(Record):
    """A relation as a model sees it, by name and direction; "in" goes from object to subject."""

    name: str
    direction: Direction
    iris: tuple[Iri, ...]
    """Several predicates can have one name."""

    def __str__(self) -> str:
        return f"{INVERSE_PREFIX if self.direction == 'in' else ''}{self.name}"


@dataclass(frozen=True, slots=True)
class Relations(Record):
    """The relations of a head in both directions, each name once."""

    head: str
    found: tuple[Relation, ...]

    def find_relation(self, text: str) -> Relation | None:
        """The relation that a text names, letter case and spaces aside."""
        return next(
            (
                relation
                for relation in self.found
                if normalize_name(str(relation)) == normalize_name(text)
            ),
            None,
        )

    @property
    def step_subject(self) -> str:
        """The name by which the steps of several heads are distinguished."""
        return self.head

    def __str__(self) -> str:
        return f"[{self.head}]: {pluralize(len(self.found), 'relation')}"


@dataclass(frozen=True, slots=True)
class FilteredRelation(Record):
    """The relation chosen for a head; none if none fits, or if the head's turn comes later."""

    head: str
    subquestion: Explanation
    """The first hop of the question, which decided it."""
    relation: Relation | None
    reason: Explanation = ""

    @property
    def step_subject(self) -> str:
        """See Relations."""
        return self.head

    def __str__(self) -> str:
        return f"[{self.head}] → {self.relation or 'no relation'}"


@dataclass(frozen=True, slots=True)
class FilledTriples(Answer):
    """The triples of a head and a relation: an answer to that hop, its values the tails."""

    head: str = ""
    relation: Relation | None = None
    triples: Hidden[tuple[tuple[str, ...], ...]] = ()
    """In words, as a model sees them; five parts where a node without a name lies between."""
    ends: Hidden[tuple[tuple[Term, Term], ...]] = ()
    """Head and tail of each of the triples: two vertices can have one name."""
    note: str = ""
    """Whether the triples are all of them, and which vertices of the head have none."""
    found: Hidden[int] = 0
    """Tails found; more than there are values if the fan-out was cut."""

    def __str__(self) -> str:
        return f"[{self.head}] {self.relation or ''} → {list_first(self.labels, 3) or self.reason}"

    def roles(self) -> Iterable[tuple[Term | Triple, Role]]:
        return [(tail.term, Role("reached", str(self.relation))) for tail in self.values]


@dataclass(frozen=True, slots=True)
class TriedAnswer(Record):
    """Whether the triples answer the question, and with which of their names."""

    sufficient: Literal["yes", "no"]
    reason: Explanation
    answers: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.sufficient == "no":
            return "not enough"
        return ": ".join(filter(None, ("enough", ", ".join(self.answers))))


@dataclass(frozen=True, slots=True)
class SolvedHop(Record):
    """One hop that is done, in words: what the debate leaves out of the question."""

    entity: str
    """The name in brackets that was gone on from."""
    relation: str
    found: str
    """The name in brackets that stands for what was found."""

    def __str__(self) -> str:
        return f"[{self.entity}] {self.relation} → [{self.found}]"


@dataclass(frozen=True, slots=True)
class Remark(Record):
    """What one role says in the debate, and the question it proposes."""

    role: str
    words: Explanation
    question: str

    def __str__(self) -> str:
        return self.question


@dataclass(frozen=True, slots=True)
class SimplifiedQuestion(Record):
    """The question with one hop less, and the debate that led to it."""

    question: str
    original: str
    debate: Hidden[tuple[Remark, ...]] = ()


@dataclass(frozen=True, slots=True)
class Hop(Record):
    """What one iteration did: the triples it went along, whether they answered, and the question left."""

    question: str
    filled: tuple[FilledTriples, ...]
    tried: TriedAnswer | None = None
    """None if nothing was found to try, or without focusing."""
    left: HopInput | None = None
    """None if the walk ends here."""
    before: tuple[str, ...] = ()
    """The longer questions that this one came from, oldest first."""

    def __str__(self) -> str:
        further = self.tried if self.tried and self.tried.sufficient == "yes" else self.left
        return str(further or "nothing further")


def normalize_name(text: str) -> str:
    """A text as names are compared: letter case and spaces aside."""
    return " ".join(text.split()).casefold()


def combine_names(values: Sequence[Value]) -> str:
    """What several vertices are called in a question: "Dune", "Dune | Tenet", "Dune | 11 others".

    "and" would not do: many a name has it inside.
    """
    labels = [" ".join(value.label.split()).translate(BRACKET_REPLACEMENTS) for value in values]
    return " | ".join(labels if len(labels) <= 2 else (labels[0], f"{len(labels) - 1} others"))


BRACKET_REPLACEMENTS = str.maketrans("[]|", "()/")
"""What sets names off in a question, and what stands for it inside a name."""


if not TYPE_CHECKING:  # a type checker would take every name for known
    __getattr__ = renamed_names(__name__)
