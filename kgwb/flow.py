"""The records that several systems pass between their agents, in the order of a question's flow.

``docs/run_format.md`` has their JSON form.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from rdflib import URIRef

from kgwb.deprecated import renamed_names
from kgwb.records import (
    MAX_SUMMARY_PARTS,
    NO_NAMES,
    Explanation,
    Hidden,
    QueryPart,
    Record,
    Role,
    Score,
    Sparql,
    one_line,
    summarize_fields,
)
from kgwb.terms import DisplayNames, Iri, Term, Triple, format_triple
from kgwb.text import first_items, list_first, pluralize, shorten, single_line

AnswerKind = Literal["list", "count", "boolean"]
"""What a question asks for: the values, their number, or whether something is so."""
Direction = Literal["out", "in"]
"""How a predicate is followed: from subject to object, or from object to subject."""

NOT_IN_GRAPH = "not in this graph"
"""The reason of an answer begins with this if the graph was asked and holds no answer."""
CANNOT_EXPRESS = "cannot express"
"""The reason begins with this if the graph was not asked: the system cannot express the question."""
UNGROUNDED_NOTE = "not grounded: from the model's own knowledge, not from the graph"
"""Shown with every ungrounded answer."""

MAX_SUMMARY_VALUES = 5
"""Values of an answer that its summary shows, unless told otherwise."""
MAX_NEAREST_CANDIDATES = 5
"""Candidates named where a mention has no vertex."""


@dataclass(frozen=True, slots=True)
class Turn(Record):
    """One earlier question of a dialogue with its answer (Chatty-KG, Definition 3.1)."""

    question: str
    answers: tuple[str, ...] = ()
    """Labels of the answer's values, or their lexical forms. In a Context at most L of them."""
    standalone: str = ""
    """The self-contained question that was answered; empty if it was the question itself."""
    entities: tuple[str, ...] = ()
    """The mentions that were linked in that turn, as written."""
    linked: tuple[Iri, ...] = ()
    """The vertex of each of these mentions, in their order. Later turns link the mention to it."""
    vertices: tuple[Iri, ...] = ()
    """The vertices of the answer and its support. The word "else" in a later turn excludes them."""

    def __str__(self) -> str:
        return f"{self.standalone or self.question} {list_first(self.answers)}"


@dataclass(frozen=True, slots=True)
class Dialogue(Record):
    """The earlier turns, oldest first."""

    turns: tuple[Turn, ...] = ()

    def __str__(self) -> str:
        return pluralize(len(self.turns), "earlier turn")


@dataclass(frozen=True, slots=True)
class Question(Record):
    """A question, in the words of the person and in the words that the agents work on."""

    text: str
    original: str = ""
    """The words before translation; empty if nothing was translated."""

    def __str__(self) -> str:
        if self.original:
            return f"{self.text}, translated from: {self.original}"
        return self.text


@dataclass(frozen=True, slots=True)
class Context(Record):
    """The dialogue as the rephraser sees it (Chatty-KG, section 4.1, C_q)."""

    turns: tuple[Turn, ...] = ()
    """With at most L answers each."""
    cut: int = 0
    """The number of answers that were left out, over all turns."""

    def __str__(self) -> str:
        if not self.turns:
            return "no earlier turn"
        turns = pluralize(len(self.turns), "earlier turn")
        if self.cut:
            return f"{turns}, {pluralize(self.cut, 'answer')} left out"
        return turns


@dataclass(frozen=True, slots=True)
class Candidate(Record):
    """A vertex that a mention may refer to."""

    iri: Iri
    label: str
    score: Score = 0.0
    """How well the label fits the mention; 1 if they are equal, letter case aside."""
    types: tuple[str, ...] = ()
    """Names of its classes."""
    description: str = ""
    relations: tuple[str, ...] = ()
    """Names of its predicates, where several vertices share a label.

    A system may add where they lead: "member of: Marketing".
    """

    def __str__(self) -> str:
        types = f" ({', '.join(self.types)})" if self.types else ""
        return f"{self.label}{types} <{self.iri}>"

    @property
    def name(self) -> str:
        return self.label


@dataclass(frozen=True, slots=True)
class RetrievedCandidates(Record):
    """The candidates that the label search found for a mention, best first."""

    entity: str
    """The mention, as the question writes it."""
    candidates: tuple[Candidate, ...]
    how: Explanation = ""
    """The stage of the label search that found them."""
    query: Hidden[str] = ""
    """The search as it was sent."""
    found: Hidden[int] = 0
    """The number of vertices found within v_limit. Only the best of them become candidates."""

    def __str__(self) -> str:
        candidates = pluralize(len(self.candidates), "candidate")
        if self.found > len(self.candidates):
            return f"{candidates} of {self.found:,} found"
        return candidates


@dataclass(frozen=True, slots=True)
class Link(Record):
    """The vertex chosen for a mention."""

    entity: str
    """The mention, as the question writes it."""
    vertex: Candidate | None
    """None if no candidate is meant."""
    candidates: Hidden[tuple[Candidate, ...]] = ()
    """The vertices it was chosen from."""
    reason: Explanation = ""

    def __str__(self) -> str:
        if self.vertex is None:
            return f"{self.entity} → no vertex"
        types = f" ({', '.join(self.vertex.types)})" if self.vertex.types else ""
        return f"{self.entity} → {self.vertex.label}{types}"

    def summary(
        self, names: DisplayNames = NO_NAMES, *, limit: int | None = MAX_SUMMARY_PARTS
    ) -> str:
        """Return the line with the IRI of the vertex, and the reason."""
        _, *rest = summarize_fields(self, names, limit=limit).splitlines()
        return "\n".join([one_line(f"{self.entity} → {self.vertex or 'no vertex'}"), *rest])

    def roles(self) -> Iterable[tuple[Term | Triple, Role]]:
        if self.vertex is None:
            return ()
        return ((self.vertex.iri, Role("linked", self.entity)),)

    def query_parts(self) -> Iterable[QueryPart]:
        if self.vertex is None:
            return ()
        return (QueryPart("vertex", f"<{self.vertex.iri}>"),)

    def missing_from_graph(self) -> str:
        if self.vertex is not None:
            return ""
        nearest = [
            f"{candidate.label} ({candidate.score:.2f})"
            for candidate in self.candidates[:MAX_NEAREST_CANDIDATES]
        ]
        if not nearest:
            return f"no vertex for “{self.entity}”: the graph has no label like it"
        return f"no vertex for “{self.entity}”: nearest are {', '.join(nearest)}"


@dataclass(frozen=True, slots=True)
class CandidateQuery(Record):
    """A SPARQL query that may answer the question, and its triple patterns."""

    sparql: Sparql
    patterns: Hidden[tuple[tuple[str, str, str], ...]]
    """Subject, predicate and object in N-Triples form; variables as "?x"."""
    predicates: tuple[str, ...]
    """The name of the predicate of each fact, in the order of the QIR."""
    score: Score
    """Geometric mean of the similarities of its predicates, 0 to 1."""
    filters: Hidden[str] = ""
    """The FILTERs of the query. They hold for the support too."""

    def __str__(self) -> str:
        return self.sparql


@dataclass(frozen=True, slots=True)
class Value(Record):
    """One value of an answer with the triples that support it."""

    has_nested_records: ClassVar[bool] = False

    term: Term
    label: str
    support: tuple[Triple, ...] = ()
    row: tuple[Term | None, ...] = ()
    """For an answer that is a table, the cells of one row; the first of them is ``term``."""

    def __str__(self) -> str:
        return self.label

    @property
    def terms(self) -> tuple[Term, ...]:
        """The terms of the row without empty cells; the one term where there is no row."""
        return tuple(cell for cell in self.row if cell is not None) or (self.term,)


@dataclass(frozen=True, slots=True)
class Answer(Record):
    """What a system answers. An answer without values has a reason instead."""

    kind: AnswerKind
    values: tuple[Value, ...] = ()
    queries: tuple[Sparql, ...] = ()
    """The SPARQL queries that the values came from, in order of execution."""
    text: str = ""
    """The answer as a sentence, if one was asked for."""
    reason: Explanation = ""
    """Why there is no value; it begins with NOT_HERE or CANNOT_EXPRESS."""
    names: Hidden[tuple[tuple[Iri, str], ...]] = ()
    """Display names of the IRIs in the support, so that a replay shows them too."""
    columns: tuple[str, ...] = ()
    """For an answer that is a table, what each column holds."""
    ungrounded: bool = False
    """Whether the model answered from its own knowledge, without a triple of the graph."""

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(value.label for value in self.values)

    @property
    def support(self) -> tuple[Triple, ...]:
        """The triples that support any of the values, each once."""
        triples: dict[Triple, None] = {}
        for value in self.values:
            triples.update(dict.fromkeys(value.support))
        return tuple(triples)

    @property
    def vertices(self) -> tuple[URIRef, ...]:
        """The IRIs at the ends of the support, then those among the values, each once."""
        terms = [end for triple in self.support for end in triple[::2]]
        terms += [value.term for value in self.values]
        return tuple(dict.fromkeys(term for term in terms if isinstance(term, URIRef)))

    def __bool__(self) -> bool:
        return bool(self.values)

    def __str__(self) -> str:
        text = self.text or list_first(self.labels) or self.reason or "no answer"
        return f"{text} ({UNGROUNDED_NOTE})" if self.ungrounded else text

    def summary(
        self, names: DisplayNames = NO_NAMES, *, limit: int | None = MAX_SUMMARY_PARTS
    ) -> str:
        """Return the answer, and for each value the triples that support it."""
        known_names = {str(iri): name for iri, name in self.names} | dict(names)
        triples_shown = len(self.support) if limit is None else limit
        values_shown = len(self.values) if limit is None else MAX_SUMMARY_VALUES

        def value_line(value: Value) -> str:
            triples = first_items(
                value.support, triples_shown, lambda triple: format_triple(triple, known_names)
            )
            return single_line(f"{shorten(value.label)}: {'; '.join(triples) or 'no triple'}")

        return "\n".join([one_line(self), *first_items(self.values, values_shown, value_line)])


if not TYPE_CHECKING:  # a type checker would take every name for known
    __getattr__ = renamed_names(__name__)
