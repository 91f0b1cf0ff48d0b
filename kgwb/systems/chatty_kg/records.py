"""The records of Chatty-KG, in the order of a question's flow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Literal

from kgwb.build import (
    CANNOT_EXPRESS,
    MAX_SUMMARY_PARTS,
    NO_NAMES,
    AnswerKind,
    CandidateQuery,
    Direction,
    DisplayNames,
    Explanation,
    Hidden,
    Iri,
    Link,
    QueryPart,
    Record,
    Score,
    WordedFact,
    frozen,
    list_first,
    one_line,
    pluralize,
)

MIN_EXPECTED_SIMILARITY = 0.6
"""If a question has no answer, best predicates that are less similar to their relation are named."""
MAX_NEAREST_PREDICATES = 3
"""How many predicates are named if none is similar enough."""
OCCUPATION_RELATIONS = frozenset(("occupation", "profession"))
"""Relations whose object is a class in some graphs, and a vertex in others."""
LEFT_OUT = "left out: "
"""A part that ``rules`` says is beyond triples begins with this if it can be left out, with a doubt."""
TYPE_RELATIONS = OCCUPATION_RELATIONS | {"type", "instance of", "is a", "kind", "class"}
"""Relations whose object may be a class."""


@frozen
class Classification(Record):
    """Whether a question can be understood alone (Chatty-KG, section 4.2.1)."""

    label: Literal["self-contained", "dependent"]
    reason: Explanation = ""


@frozen
class RephrasedQuestion(Record):
    """The standalone form of a question (Chatty-KG, section 4.2.2)."""

    question: str
    original: str


def is_unknown(name: str) -> bool:
    """Return whether a name in a QIR is an unknown ("?x") and not an entity."""
    return name.startswith("?")


@frozen
class Fact(WordedFact):
    """One relational fact of a QIR: a relation between two ends, each an entity or an unknown."""

    @property
    def states_type(self) -> bool:
        """Whether the fact says what kind of thing its subject is.

        Its object is then an entity that may be a class of the graph.
        """
        return self.relation.casefold() in TYPE_RELATIONS and not is_unknown(self.object)


ComparisonOperator = Literal["<", "<=", ">", ">=", "!=", "max", "min"]


@frozen
class Comparison(Record):
    """A condition on the values of an unknown that no triple says: "more than 200", "the highest"."""

    unknown: str
    operator: ComparisonOperator
    """"max" keeps the greatest of all values, and "min" the least."""
    value: str = ""
    """A number, a year, a date or a text. It is not used by "max" and "min"."""

    def __str__(self) -> str:
        return f"{self.unknown} {self.operator} {self.value}".strip()


@frozen
class QIR(Record):
    """Question intermediate representation (E, U, R, RF) (Chatty-KG, Definition 3.2)."""

    facts: tuple[Fact, ...]
    target: str = ""
    """The unknown that is asked for; empty for a boolean question."""
    kind: AnswerKind = "list"
    beyond: tuple[str, ...] = ()
    """The parts of the question that triples cannot express, such as an order or a comparison.

    A question with such a part is not answered.
    """
    columns: tuple[str, ...] = ()
    """The unknowns that are asked for together, such as id and name; the first is the target.

    Empty if only the target is asked for.
    """
    doubts: tuple[str, ...] = ()
    """What the triples leave out of the question, so that the answer is in doubt."""
    comparisons: tuple[Comparison, ...] = ()
    """Conditions on the values of unknowns; language models are not asked for them."""

    @property
    def selected(self) -> tuple[str, ...]:
        """The unknowns that a query selects: the columns, or else the target."""
        return self.columns or (self.target,)

    @property
    def ends(self) -> tuple[str, ...]:
        """The entities and unknowns, each once, in order of appearance."""
        ends: list[str] = []
        for fact in self.facts:
            ends += fact.ends
        return tuple(dict.fromkeys(ends))

    @property
    def entities(self) -> tuple[str, ...]:
        """The entities, each once, in order of appearance."""
        return tuple(end for end in self.ends if not is_unknown(end))

    @property
    def unknowns(self) -> tuple[str, ...]:
        """The unknowns, each once, in order of appearance."""
        return tuple(filter(is_unknown, self.ends))

    @property
    def type_mentions(self) -> tuple[str, ...]:
        """The entities that name a kind of thing: "tanker" in ⟨?ship, type, tanker⟩."""
        mentions = [fact.object for fact in self.facts if fact.states_type]
        return tuple(dict.fromkeys(mentions))

    def __str__(self) -> str:
        """Return the number of triples and what is asked for.

        If triples cannot express the question, or none is valid, only that.
        """
        if self.beyond:
            return f"{CANNOT_EXPRESS}: {'; '.join(self.beyond)}"
        if not self.facts:
            return "no valid triples"
        asked_for = ", ".join(self.selected) or "yes or no"
        conditions = "".join(f", {comparison}" for comparison in self.comparisons)
        return f"{pluralize(len(self.facts), 'triple')}{conditions}, asks for {asked_for}"

    def summary(
        self, names: DisplayNames = NO_NAMES, *, limit: int | None = MAX_SUMMARY_PARTS
    ) -> str:
        """Return the facts, what is asked for, and what triples cannot express, in one line.

        All facts are in it: ``names`` and ``limit`` have no effect.
        """
        asked_for = {
            "list": ", ".join(self.selected),
            "count": f"how many {self.target}",
            "boolean": "yes or no",
        }
        facts = " ".join(map(str, (*self.facts, *self.comparisons)))
        line = f"{facts} asks for {asked_for[self.kind]}"
        if self.beyond:
            line += f", {self}"
        return one_line(line)


ARROWS: Mapping[Direction, str] = {"out": "→", "in": "←"}


@frozen
class RankedPredicate(Record):
    """A predicate that the relation of a fact may mean."""

    iri: Iri
    name: str
    direction: Direction
    """"out" if the fact's subject is the subject of the triple, "in" if it is the object."""
    similarity: Score = 1.0
    classes: tuple[Iri, ...] = ()
    """For a type predicate: the class that is meant and its subclasses, if they have instances."""
    onward: Iri | None = None
    """A second predicate, if a node stands between subject and object that the question does not
    name. The first one leads from the subject to the node, this one from the node to the object."""
    onward_direction: Direction = "out"
    """The direction of the second predicate: "out" if the node is the subject of its triple."""

    def __str__(self) -> str:
        text = f"{ARROWS[self.direction]} {self.name} <{self.iri}>"
        if self.onward is not None:
            text += f" {ARROWS[self.onward_direction]} <{self.onward}>"
        return text


@frozen
class LinkedRelation(Record):
    """The ranked predicates of one fact, best first (Chatty-KG, section 5.1.3)."""

    fact: Fact
    predicates: tuple[RankedPredicate, ...]

    def __str__(self) -> str:
        """Return the best predicate and the number of predicates, or that there is none."""
        if not self.predicates:
            return f"no predicate for {self.fact}"
        number = pluralize(len(self.predicates), "predicate")
        return f"→ {self.predicates[0].name}, best of {number}"

    def query_parts(self) -> Iterable[QueryPart]:
        """Return the predicates, in order.

        Each is followed by the one that leads on from it, if any.
        """
        parts = []
        for predicate in self.predicates:
            parts.append(QueryPart("predicate", f"<{predicate.iri}>"))
            if predicate.onward is not None:
                parts.append(QueryPart("predicate", f"<{predicate.onward}>"))
        return parts

    def missing_from_graph(self) -> str:
        """Return a text that says that the relation has no predicate, or none that is similar; "" if one is.

        Similar is a best predicate with a similarity of at least MIN_EXPECTED_SIMILARITY. Otherwise
        up to MAX_NEAREST_PREDICATES predicates of the things that the fact is about are named.
        """
        relation = self.fact.relation
        if not self.predicates:
            return f"no predicate for “{relation}”: no linked vertex leads to it"
        if not self.missing_relation():
            return ""
        nearest = []
        for predicate in self.predicates[:MAX_NEAREST_PREDICATES]:
            nearest.append(f"{predicate.name} ({predicate.similarity:.2f})")
        entities = [end for end in self.fact.ends if not is_unknown(end)]
        things = list_first(entities) or "what was found before"
        listed = ", ".join(nearest)
        return f"{things} has nothing like “{relation}”: nearest are {listed}"

    def missing_relation(self) -> str:
        """Return the relation if it has predicates and none of them is similar, else ""."""
        if not self.predicates or self.predicates[0].similarity >= MIN_EXPECTED_SIMILARITY:
            return ""
        return self.fact.relation


@frozen
class LinkingResult(Record):
    """The output of the matching agent: EntToVertex and RelToPred (Chatty-KG, Algorithm 2)."""

    links: tuple[Link, ...]
    relations: tuple[LinkedRelation, ...]

    @property
    def unlinked_entities(self) -> tuple[str, ...]:
        """The entities without a vertex or literal."""
        return tuple(link.entity for link in self.links if not link.is_linked)

    @property
    def unlinked_facts(self) -> tuple[Fact, ...]:
        """The facts without a predicate."""
        return tuple(linked.fact for linked in self.relations if not linked.predicates)

    @property
    def linked_relations(self) -> tuple[LinkedRelation, ...]:
        """The relations that have a predicate: a query has a pattern for each of them."""
        return tuple(linked for linked in self.relations if linked.predicates)

    def __str__(self) -> str:
        """Return how many entities have a vertex, and how many relations have a predicate."""
        vertices = len(self.links) - len(self.unlinked_entities)
        entities = pluralize(len(self.links), "entity")
        relations = pluralize(len(self.relations), "relation")
        return f"{vertices} of {entities} and {len(self.linked_relations)} of {relations} linked"

    def relation_phrases(self) -> tuple[str, ...]:
        """Return the words of the relations that have a predicate."""
        return tuple(linked.fact.relation for linked in self.linked_relations)


@frozen
class GeneratedQueries(Record):
    """The candidate queries after truncation."""

    queries: tuple[CandidateQuery, ...]
    before_truncation: Hidden[int]
    """How many combinations of predicates there were."""

    def __str__(self) -> str:
        text = pluralize(len(self.queries), "candidate query")
        if self.before_truncation > len(self.queries):
            text += f" of {self.before_truncation:,}"
        return text

    def query_parts(self) -> Iterable[QueryPart]:
        """Return the filters of each query; the patterns were decided by other steps."""
        return [QueryPart("filters", query.filters.strip()) for query in self.queries]


def predicate_names(queries: Iterable[CandidateQuery]) -> tuple[str, ...]:
    """Return the names of the predicates of some queries, each once, in order of appearance."""
    names: list[str] = []
    for query in queries:
        names += query.predicates
    return tuple(dict.fromkeys(names))


def pattern_predicates(query: CandidateQuery) -> tuple[str, ...]:
    """Return the predicates in the patterns of a query, in N-Triples form.

    They are equal for queries that differ in directions only.
    """
    return tuple(predicate for _, predicate, _ in query.patterns)


@frozen
class QuerySelection(Record):
    """The queries that are executed (Chatty-KG, Algorithm 3)."""

    queries: tuple[CandidateQuery, ...]
    predicates: Hidden[tuple[str, ...]]
    """The names of the predicates that were judged relevant."""
    unites_directions: Hidden[bool] = False
    """Whether a predicate was chosen in both directions: then the results of both are united."""

    def __str__(self) -> str:
        text = f"{pluralize(len(self.queries), 'query')} kept"
        if self.predicates:
            text += f", relevant: {', '.join(self.predicates)}"
        return text

    def with_derived_fields(self) -> QuerySelection:
        """Return the selection with the predicates of its queries, which a person has chosen."""
        return replace(self, predicates=predicate_names(self.queries))
