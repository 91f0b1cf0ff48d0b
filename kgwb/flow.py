"""The records passed between agents, in flow order.

All are frozen and slotted; collections are tuples; RDF terms are rdflib terms. Because they carry their
types, ``to_data`` and ``from_data`` turn any of them into plain JSON data and back (docs/run_format.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import PlainSerializer, PlainValidator, TypeAdapter
from rdflib import RDF, BNode, URIRef
from rdflib import Literal as RdfLiteral

Kind = Literal["list", "count", "boolean"]
Direction = Literal["out", "in"]


def term_to_data(term: URIRef | RdfLiteral | BNode) -> dict[str, str]:
    """A term in the form of SPARQL 1.1 Query Results JSON (section 3.2.2)."""
    if isinstance(term, URIRef):
        return {"type": "uri", "value": str(term)}
    if isinstance(term, BNode):
        return {"type": "bnode", "value": str(term)}
    data = {"type": "literal", "value": str(term)}
    if term.language:
        data["xml:lang"] = term.language
    elif term.datatype:
        data["datatype"] = str(term.datatype)
    return data


def term_from_data(data: Any) -> URIRef | RdfLiteral | BNode:
    """The term of its SPARQL JSON form; an rdflib term passes through. Raises ValueError on anything else."""
    if isinstance(data, URIRef | RdfLiteral | BNode):
        return data
    if not isinstance(data, Mapping) or not isinstance(data.get("value"), str):
        raise ValueError(f"not an RDF term: {data!r}")
    value = data["value"]
    match data.get("type"):
        case "uri":
            return URIRef(value)
        case "bnode":
            return BNode(value)
        case "literal" | "typed-literal":
            return literal(value, data.get("datatype") or "", data.get("xml:lang") or "")
    raise ValueError(f"not an RDF term: {data!r}")


def literal(text: str, datatype: str = "", language: str = "") -> RdfLiteral:
    """A literal, lexical form untouched. Raises ValueError for what is no datatype or language."""
    kind = _iri(datatype) if datatype and not language else None
    if kind in (RDF.XMLLiteral, RDF.HTML):
        made = RdfLiteral(text)  # made in two steps, as rdflib parses these: 1 MB takes 200 MB
        made.__setstate__((None, {"language": None, "datatype": kind}))
        return made
    return RdfLiteral(text, lang=str(language or "") or None, datatype=kind, normalize=False)


def _iri(data: object) -> URIRef:
    if not isinstance(data, str):
        raise ValueError(f"not an IRI: {data!r}")
    return URIRef(data)


Term: TypeAlias = Annotated[
    URIRef | RdfLiteral | BNode,
    PlainValidator(term_from_data),
    PlainSerializer(term_to_data, when_used="json"),
]
Iri: TypeAlias = Annotated[URIRef, PlainValidator(_iri), PlainSerializer(str, when_used="json")]
Triple: TypeAlias = tuple[Term, Iri, Term]


@dataclass(frozen=True, slots=True)
class Turn:
    """One earlier question of a dialogue with what was answered (Chatty-KG, Definition 3.1)."""

    question: str
    answers: tuple[str, ...] = ()
    """Labels of the answer values, or their lexical forms; cut to L in a Context."""
    standalone: str = ""
    """The self-contained form that was answered; empty if it was the question itself."""
    entities: tuple[str, ...] = ()
    """The mentions that were linked in that turn, as written."""
    linked: tuple[Iri, ...] = ()
    """The vertex of each of those entities, in their order; the name keeps it in later turns."""
    vertices: tuple[Iri, ...] = ()
    """The vertices that the turn's answer stood on; what "else" leaves out."""


@dataclass(frozen=True, slots=True)
class Dialogue:
    """The turns so far, oldest first."""

    turns: tuple[Turn, ...] = ()


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, in the words of the person and in the words the agents work on."""

    text: str
    original: str = ""
    """The words before translation; empty if nothing was translated."""


@dataclass(frozen=True, slots=True)
class Context:
    """The dialogue as the rephraser sees it: at most L answers a turn (Chatty-KG, section 4.1, C_q)."""

    turns: tuple[Turn, ...] = ()
    cut: int = 0
    """How many answers were left out over all turns."""


@dataclass(frozen=True, slots=True)
class Classified:
    """Whether a question can be understood alone (Chatty-KG, section 4.2.1)."""

    label: Literal["self-contained", "dependent"]
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Rephrased:
    """The standalone form of a question (Chatty-KG, section 4.2.2)."""

    question: str
    original: str


@dataclass(frozen=True, slots=True)
class Fact:
    """One relational fact of a QIR; a name that begins with "?" is an unknown, any other an entity."""

    subject: str
    relation: str
    object: str

    @property
    def ends(self) -> tuple[str, str]:
        return self.subject, self.object

    @property
    def words(self) -> tuple[str, str, str]:
        return self.subject, self.relation, self.object

    def __str__(self) -> str:
        return f"⟨{self.subject}, {self.relation}, {self.object}⟩"


def is_unknown(name: str) -> bool:
    """Whether a name of a QIR is an unknown ("?x") and not an entity."""
    return name.startswith("?")


@dataclass(frozen=True, slots=True)
class QIR:
    """Question intermediate representation (E, U, R, RF) (Chatty-KG, Definition 3.2)."""

    facts: tuple[Fact, ...]
    target: str = ""
    """The unknown that is asked for; empty for a boolean question."""
    kind: Kind = "list"

    @property
    def entities(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(end for fact in self.facts for end in fact.ends if not is_unknown(end)))

    @property
    def unknowns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(end for fact in self.facts for end in fact.ends if is_unknown(end)))

    @property
    def relations(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(fact.relation for fact in self.facts))


@dataclass(frozen=True, slots=True)
class Candidate:
    """A vertex that a mention may mean."""

    iri: Iri
    label: str
    score: float = 0.0
    """Of the label search, 0 to 1; 1 is the mention itself, letter case aside."""
    types: tuple[str, ...] = ()
    description: str = ""
    relations: tuple[str, ...] = ()
    """Names of its predicates, where several vertices share a label: they tell a film from its novel."""


@dataclass(frozen=True, slots=True)
class Retrieved:
    """What the entity retriever found for an entity of the QIR, best first."""

    entity: str
    candidates: tuple[Candidate, ...]
    how: str = ""
    """Which stage of the label search found them."""
    query: str = ""
    """The search as it was sent."""
    found: int = 0
    """Vertices found within v_limit; more than there are candidates if only the best are shown."""


@dataclass(frozen=True, slots=True)
class Link:
    """The vertex chosen for an entity of the QIR; no vertex if the graph has no candidate."""

    entity: str
    vertex: Candidate | None
    candidates: tuple[Candidate, ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True)
class RankedPredicate:
    """A predicate that a relation may mean, seen from the fact's subject: "out" is subject to object."""

    iri: Iri
    name: str
    direction: Direction
    similarity: float


@dataclass(frozen=True, slots=True)
class LinkedRelation:
    """The ranked predicates of one fact, best first (Chatty-KG, section 5.1.3)."""

    fact: Fact
    predicates: tuple[RankedPredicate, ...]


@dataclass(frozen=True, slots=True)
class Linked:
    """What the matching agent hands on: EntToVertex and RelToPred (Chatty-KG, Algorithm 2)."""

    links: tuple[Link, ...]
    relations: tuple[LinkedRelation, ...]

    def vertex(self, entity: str) -> URIRef | None:
        """The vertex linked to an entity, or None."""
        return next((link.vertex.iri for link in self.links if link.entity == entity and link.vertex), None)


@dataclass(frozen=True, slots=True)
class CandidateQuery:
    """A SPARQL query that may answer the question, and its triple patterns (subject, predicate, object)."""

    sparql: str
    patterns: tuple[tuple[str, str, str], ...]
    """Terms in N-Triples form, variables as "?x"."""
    predicates: tuple[str, ...]
    """The predicate's name for each fact, in the QIR's order; namespaces do not show in a name."""
    score: float
    """Geometric mean of the similarities of its predicates, 0 to 1."""
    filters: str = ""
    """FILTERs that stand beside the patterns; they hold for the support too."""


@dataclass(frozen=True, slots=True)
class Generated:
    """The candidate queries after truncation, and how many there were before."""

    queries: tuple[CandidateQuery, ...]
    before_truncation: int


@dataclass(frozen=True, slots=True)
class Selection:
    """The queries kept for execution, and the predicate names judged relevant (Chatty-KG, Algorithm 3)."""

    queries: tuple[CandidateQuery, ...]
    predicates: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Value:
    """One value of an answer with the triples it stands on."""

    term: Term
    label: str
    support: tuple[Triple, ...] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """What the system answers; no value and ``reason`` filled in means: not in this graph."""

    kind: Kind
    values: tuple[Value, ...] = ()
    queries: tuple[str, ...] = ()
    """The SPARQL the values came from, in order of execution."""
    text: str = ""
    """The answer as a sentence, if asked for; otherwise the labels."""
    reason: str = ""
    names: tuple[tuple[Iri, str], ...] = ()
    """What the IRIs of the support are called, so that a replay shows them too."""
    ungrounded: bool = False
    """Whether it comes from what the model knows by itself: no triple of the graph is behind it."""

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(value.label for value in self.values)

    @property
    def support(self) -> tuple[Triple, ...]:
        return tuple(dict.fromkeys(triple for value in self.values for triple in value.support))

    def __bool__(self) -> bool:
        return bool(self.values)

    def __str__(self) -> str:
        told = self.text or ", ".join(self.labels) or self.reason
        return f"{told} ({UNGROUNDED})" if self.ungrounded else told


UNGROUNDED = "not grounded: from the model's own knowledge, not from the graph"
"""What is said of an ungrounded answer wherever it is shown."""


@lru_cache(maxsize=256)
def adapter(form: Any) -> TypeAdapter[Any]:
    """The pydantic adapter of a type, made once."""
    return TypeAdapter(form)


def to_data(value: Any, form: Any = None) -> Any:
    """Plain JSON data of a flow record (or of any value of type ``form``)."""
    wanted: Any = form or type(value)
    return adapter(wanted).dump_python(value, mode="json")


def from_data(data: Any, form: Any) -> Any:
    """The value of type ``form`` that ``data`` describes. Raises pydantic's ValidationError, a ValueError."""
    return adapter(form).validate_python(data)
