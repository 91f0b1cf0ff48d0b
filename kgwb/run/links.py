"""The vertices that the mentions of a question may refer to, and those chosen for them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from kgwb.records import (
    MAX_SUMMARY_PARTS,
    NO_NAMES,
    Explanation,
    Hidden,
    QueryPart,
    Record,
    Role,
    Score,
    one_line,
    summarize_fields,
)
from kgwb.terms import DisplayNames, Iri, Term, Triple
from kgwb.text import (
    list_first,
    pluralize,
)

MAX_NEAREST_CANDIDATES = 5
"""How many candidates are named if a mention has no vertex."""


@dataclass(frozen=True, slots=True)
class Candidate(Record):
    """A vertex that a mention may refer to."""

    iri: Iri
    label: str
    score: Score = 0.0
    """How well the label fits the mention; 1 if they are equal but for letter case."""
    types: tuple[str, ...] = ()
    """Names of its classes."""
    description: str = ""
    relations: tuple[str, ...] = ()
    """Names of its predicates, where several vertices share a label.

    A system may add where they lead: "member of: Marketing".
    """

    def __str__(self) -> str:
        return f"{self.label_with_types} <{self.iri}>"

    @property
    def name(self) -> str:
        return self.label

    @property
    def label_with_types(self) -> str:
        """The label, with the names of the classes in parentheses if there are any."""
        if not self.types:
            return self.label
        types = ", ".join(self.types)
        return f"{self.label} ({types})"


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
    may_be_several: Hidden[bool] = False
    """Whether several candidates may be meant together: the mention names what they have in common."""

    @property
    def left_out(self) -> str:
        """What was found and a model is not shown for lack of room; empty if nothing."""
        count = self.found - len(self.candidates)
        if count <= 0:
            return ""
        return f"{count:,} of {self.found:,} candidates for {self.entity!r}"

    def __str__(self) -> str:
        candidates = pluralize(len(self.candidates), "candidate")
        if self.found > len(self.candidates):
            return f"{candidates} of {self.found:,} found"
        return candidates


@dataclass(frozen=True, slots=True)
class Link(Record):
    """The vertex chosen for a mention, or the vertices that are meant together."""

    entity: str
    """The mention, as the question writes it."""
    vertex: Candidate | None
    """None if no candidate is meant."""
    candidates: Hidden[tuple[Candidate, ...]] = ()
    """The vertices it was chosen from."""
    reason: Explanation = ""
    value: Term | None = None
    """A literal that is the mention, if no vertex is meant: a town that is only part of an address."""
    others: Hidden[tuple[Candidate, ...]] = ()
    """Further vertices that are meant together with the first: "coal" may be two kinds of coal."""

    @property
    def vertices(self) -> tuple[Candidate, ...]:
        """All vertices that are meant; empty if none is."""
        if self.vertex is None:
            return ()
        return (self.vertex, *self.others)

    @property
    def is_linked(self) -> bool:
        """Whether the mention has a vertex, or a literal in place of one."""
        return self.vertex is not None or self.value is not None

    def __str__(self) -> str:
        if self.value is not None:
            return f"{self.entity} → the text “{self.value}”"
        if self.vertex is None:
            return f"{self.entity} → no vertex"
        labels = [vertex.label_with_types for vertex in self.vertices]
        listed = list_first(labels)
        return f"{self.entity} → {listed}"

    def with_derived_fields(self) -> Link:
        """Return the link with its vertex alone: in a form, a person chooses one."""
        return replace(self, others=())

    def summary(
        self, names: DisplayNames = NO_NAMES, *, limit: int | None = MAX_SUMMARY_PARTS
    ) -> str:
        """Return the mention and its vertices with IRIs on one line, then the other fields.

        ``names`` and ``limit`` are as for ``Record.summary``.
        """
        fields = summarize_fields(self, names, limit=limit)
        lines = fields.splitlines()
        vertices = ", ".join(map(str, self.vertices)) or "no vertex"
        lines[0] = one_line(f"{self.entity} → {vertices}")
        return "\n".join(lines)

    def roles(self) -> Iterable[tuple[Term | Triple, Role]]:
        """Return the vertices with the role "linked" to their mention; nothing without a vertex."""
        role = Role("linked", self.entity)
        return [(vertex.iri, role) for vertex in self.vertices]

    def query_parts(self) -> Iterable[QueryPart]:
        """Return the IRIs of the vertices, or the literal; nothing if there is neither."""
        if self.value is not None:
            literal = self.value.n3()
            return (QueryPart("vertex", literal),)
        return [QueryPart("vertex", f"<{vertex.iri}>") for vertex in self.vertices]

    def missing_from_graph(self) -> str:
        """Return that the mention has no vertex, with at most MAX_NEAREST_CANDIDATES candidates.

        "" if there is a vertex, or a literal in its place.
        """
        if self.is_linked:
            return ""
        nearest = []
        for candidate in self.candidates[:MAX_NEAREST_CANDIDATES]:
            label = candidate.label
            nearest.append(f"{label} ({candidate.score:.2f})")
        if not nearest:
            return f"no vertex for “{self.entity}”: the graph has no label like it"
        listed = ", ".join(nearest)
        return f"no vertex for “{self.entity}”: nearest are {listed}"
