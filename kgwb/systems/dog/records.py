"""The records of DoG in the order of a question's flow: the walk over the graph, and the debate."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Literal

from kgwb.build import (
    Answer,
    Direction,
    Explanation,
    Hidden,
    Iri,
    Record,
    Role,
    Term,
    Triple,
    Value,
    frozen,
    list_first,
    pluralize,
)

INVERSE_PREFIX = "~"
"""Marks a relation that is followed from object to subject (DoG, "Relation Filtering")."""
BRACKETED_NAME = re.compile(r"\[([^\[\]]+)\]")
"""A name in square brackets. In a question it is the name of a head."""


@frozen
class TopicEntities(Record):
    """The question with its topic entities in square brackets."""

    question: str
    entities: tuple[str, ...]
    """The names in brackets, each once, in their order in the question."""


@frozen
class Head(Record):
    """The vertices that the walk has reached from one topic entity, under one name."""

    name: str
    """What the vertices are called in the question, in brackets."""
    values: tuple[Value, ...]
    """The vertices. The support of each is the triples that lead to it from the topic entity."""
    start: tuple[Term, ...] = ()
    """The vertices of the topic entity. A hop never leads back to them: they are no answer."""


@frozen
class HopInput(Record):
    """The input of a hop: the question that is left, and the heads that it names in brackets."""

    question: str
    heads: tuple[Head, ...]
    before: tuple[str, ...] = ()
    """The longer questions that it was shortened from, oldest first."""


@frozen
class Relation(Record):
    """All predicates of a head that have one display name and one direction.

    A model sees the relation as its name, with "~" before it if the direction is "in".
    """

    name: str
    direction: Direction
    iris: tuple[Iri, ...]
    """The predicates."""

    def __str__(self) -> str:
        """Return the name, with "~" before it if the direction is "in"."""
        if self.direction == "in":
            return f"{INVERSE_PREFIX}{self.name}"
        return self.name


@frozen
class Relations(Record):
    """The relations of a head in both directions."""

    head: str
    found: tuple[Relation, ...]

    def find_relation(self, text: str) -> Relation | None:
        """Return the relation that a text names, with "~" for the direction "in".

        It is the one with exactly this name. Only if there is none, white space is ignored, and
        then letter case. Returns None if no relation has that name.
        """
        for normalize in (str, collapse_spaces, normalize_name):
            name = normalize(text)
            for relation in self.found:
                if normalize(str(relation)) == name:
                    return relation
        return None

    @property
    def step_subject(self) -> str:
        """The name of the head, which distinguishes the steps of several heads."""
        return self.head

    def __str__(self) -> str:
        count = pluralize(len(self.found), "relation")
        return f"[{self.head}]: {count}"


@frozen
class FilteredRelation(Record):
    """The relation of a head that the next hop follows."""

    head: str
    subquestion: Explanation
    """The first hop of the question as a question of its own, which decided the choice."""
    relation: Relation | None
    """None if no relation fits, or if another head comes first."""
    reason: Explanation = ""

    @property
    def step_subject(self) -> str:
        """The name of the head, as in ``Relations``."""
        return self.head

    def __str__(self) -> str:
        return f"[{self.head}] → {self.relation or 'no relation'}"


@frozen
class FilledTriples(Answer):
    """The triples of a head and its chosen relation, as an answer to that hop.

    The values are the tails: what the relation leads to.
    """

    head: str = ""
    relation: Relation | None = None
    triples: Hidden[tuple[tuple[str, ...], ...]] = ()
    """The triples in words, as a model sees them: the names of head, relation and tail.

    With a node without a name between head and tail there are five parts: head, relation, "…",
    relation, tail.
    """
    ends: Hidden[tuple[tuple[Term, Term], ...]] = ()
    """Head and tail of each of the triples as terms, since two vertices can have one name."""
    note: str = ""
    """Whether these are all triples, and which vertices of the head have none. A model sees it."""
    found: Hidden[int] = 0
    """How many tails were found. There are fewer values if ``fan_out`` cut them."""

    def __str__(self) -> str:
        found = list_first(self.labels, 3) or self.reason
        return f"[{self.head}] {self.relation or ''} → {found}"

    def roles(self) -> Iterable[tuple[Term | Triple, Role]]:
        """Return every tail with its role: reached by the relation."""
        role = Role("reached", str(self.relation))
        return [(tail.term, role) for tail in self.values]


@frozen
class TriedAnswer(Record):
    """The decision whether the triples of a hop answer the question."""

    sufficient: Literal["yes", "no"]
    reason: Explanation
    answers: tuple[str, ...] = ()
    """Names of heads or tails, as the triples have them; empty if the triples do not suffice."""

    def __str__(self) -> str:
        """Return "not enough", or "enough" with the answers."""
        if self.sufficient == "no":
            return "not enough"
        if not self.answers:
            return "enough"
        return f"enough: {', '.join(self.answers)}"


@frozen
class SolvedHop(Record):
    """A hop that is done, in words. The debate takes it out of the question."""

    entity: str
    """The name of the head, which the question has in brackets."""
    relation: str
    found: str
    """The name of the tails, which takes the place of the head in the question."""

    def __str__(self) -> str:
        return f"[{self.entity}] {self.relation} → [{self.found}]"


@frozen
class Remark(Record):
    """The contribution of one role to the debate."""

    role: str
    words: Explanation
    question: str
    """The shorter question that the role proposes."""

    def __str__(self) -> str:
        return self.question


@frozen
class SimplifiedQuestion(Record):
    """The question without the hops that are solved, and the debate that led to it."""

    question: str
    original: str
    debate: Hidden[tuple[Remark, ...]] = ()


@frozen
class Hop(Record):
    """The result of one hop: its triples, whether they answer the question, and what is left."""

    question: str
    filled: tuple[FilledTriples, ...]
    tried: TriedAnswer | None = None
    """None if no triple was found, or if this hop did not try to answer."""
    left: HopInput | None = None
    """The input of the next hop; None if the walk ends here."""
    before: tuple[str, ...] = ()
    """The longer questions that this one was shortened from, oldest first."""

    def __str__(self) -> str:
        """Return the decision if it is "yes", else the question that is left, if any."""
        if self.tried and self.tried.sufficient == "yes":
            return str(self.tried)
        return str(self.left or "nothing further")


def collapse_spaces(text: str) -> str:
    """Return a text with single spaces, and none at its ends."""
    return " ".join(text.split())


def remove_brackets(question: str) -> str:
    """Return a question with its names in brackets written without them."""
    return BRACKETED_NAME.sub(r"\1", question)


def normalize_name(text: str) -> str:
    """Return a name as it is compared: in lower case, with single spaces."""
    return collapse_spaces(text).casefold()


def make_relation_name(name: str, iri: Iri) -> str:
    """Return the name of a relation, which a reply can choose.

    It is the display name of its predicate without INVERSE_PREFIX at its beginning, which marks the
    direction. If nothing is left, it is the IRI, since no name means no relation.
    """
    chosen = name.strip().lstrip(INVERSE_PREFIX).strip()
    return chosen or str(iri)


BRACKET_REPLACEMENTS = str.maketrans("[]|", "()/")
"""Replaces the characters that set names off in a question, where a name itself has them."""


def combine_names(values: Sequence[Value]) -> str:
    """Return one name for several vertices: "Dune", "Dune | Tenet", or "Dune | 11 others".

    The first label alone is named if there are more than two. Brackets and bars inside a name are
    replaced (BRACKET_REPLACEMENTS), since they have a meaning in a question. The separator is not
    "and", since many names contain that word.
    """
    labels = []
    for value in values:
        label = collapse_spaces(value.label)
        labels.append(label.translate(BRACKET_REPLACEMENTS))
    if len(labels) > 2:
        return f"{labels[0]} | {len(labels) - 1} others"
    return " | ".join(labels)


def relabel_values(values: Iterable[Value], labels: Mapping[Term, str]) -> tuple[Value, ...]:
    """Return values with the label that ``labels`` has for the term; others keep their label."""
    relabelled = []
    for value in values:
        label = labels.get(value.term, value.label)
        relabelled.append(replace(value, label=label))
    return tuple(relabelled)


def collect_values(holders: Iterable[Head | FilledTriples]) -> list[Value]:
    """Return the values of several heads or results, in their order."""
    return list(chain.from_iterable(holder.values for holder in holders))
