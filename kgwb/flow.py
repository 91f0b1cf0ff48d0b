"""The records passed between agents, in flow order.

All are frozen and slotted; collections are tuples; RDF terms are rdflib terms. Because they carry their
types, ``to_data`` and ``from_data`` turn any of them into plain JSON data and back (docs/run_format.md).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import lru_cache
from typing import Annotated, Any, Literal, TypeAlias, TypeVar, get_type_hints

from pydantic import PlainSerializer, PlainValidator, TypeAdapter
from rdflib import RDF, XSD, BNode, URIRef
from rdflib import Literal as RdfLiteral

from kgwb.text import list_first, pluralize

T = TypeVar("T")
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
    plain = not datatype or language or datatype == str(XSD.string)
    kind = None if plain else _iri(datatype)
    if kind in (RDF.XMLLiteral, RDF.HTML):
        term = RdfLiteral(text)  # made in two steps, as rdflib parses these: 1 MB takes 200 MB
        term.__setstate__((None, {"language": None, "datatype": kind}))
        return term
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
Triples: TypeAlias = tuple[Triple, ...]


@dataclass(frozen=True, slots=True)
class Mark:
    """What a field is to a person; ``marks_of`` finds it."""

    name: Literal["explanation", "score", "sparql", "hidden"]


Explanation: TypeAlias = Annotated[str, Mark("explanation")]
"""Why something was decided: shown, but no decision."""
Score: TypeAlias = Annotated[float, Mark("score")]
"""A number from 0 to 1, shown as a bar; no decision."""
Sparql: TypeAlias = Annotated[str, Mark("sparql")]
"""A query; who edits it edits the record that it stands in."""
Hidden = Annotated[T, Mark("hidden")]
"""What follows from other fields, and is not shown by itself."""


@lru_cache(maxsize=256)
def marks_of(form: type) -> Mapping[str, str]:
    """The mark of each field of a record by the field's name; empty for a field without one."""
    hints = get_type_hints(form, include_extras=True)
    marks = {name: getattr(hint, "__metadata__", ()) for name, hint in hints.items()}
    return {
        field.name: next((mark.name for mark in marks[field.name] if isinstance(mark, Mark)), "")
        for field in fields(form)
    }


def decision(value: Any) -> Any:
    """What a value decides: without explanations and scores, unknowns named in their order."""
    known: dict[str, str] = {}

    def part(value: Any) -> Any:
        if isinstance(value, str):
            rename = lambda match: known.setdefault(match[0], f"?{len(known)}")  # noqa: E731
            return re.sub(r"\?[A-Za-z_]\w*", rename, value) if "?" in value else str(value)
        if isinstance(value, list | tuple):
            return tuple(map(part, value))
        if is_dataclass(value) and not isinstance(value, type):
            marks = marks_of(type(value))
            kept = [name for name, mark in marks.items() if mark in ("", "sparql")]
            return (type(value).__name__, *(part(getattr(value, name)) for name in kept))
        return value

    return part(value)


class Titled:
    """A record whose line is its first field."""

    __slots__: tuple[str, ...] = ()

    def __str__(self) -> str:
        return str(getattr(self, self.__slots__[0]))


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

    def __str__(self) -> str:
        return f"{self.standalone or self.question} {list_first(self.answers)}"


@dataclass(frozen=True, slots=True)
class Dialogue:
    """The turns so far, oldest first."""

    turns: tuple[Turn, ...] = ()

    def __str__(self) -> str:
        return pluralize(len(self.turns), "earlier turn")


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, in the words of the person and in the words the agents work on."""

    text: str
    original: str = ""
    """The words before translation; empty if nothing was translated."""

    def __str__(self) -> str:
        return f"{self.text}, translated from: {self.original}" if self.original else self.text

    @property
    def outcome(self) -> str:
        return "translated" if self.original else "already English"


@dataclass(frozen=True, slots=True)
class Context:
    """The dialogue as the rephraser sees it: at most L answers a turn (Chatty-KG, section 4.1, C_q)."""

    turns: tuple[Turn, ...] = ()
    cut: int = 0
    """How many answers were left out over all turns."""

    def __str__(self) -> str:
        cut = f", {pluralize(self.cut, 'answer')} left out" if self.cut else ""
        return self.outcome + cut

    @property
    def outcome(self) -> str:
        return pluralize(len(self.turns), "earlier turn") if self.turns else "no earlier turn"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A vertex that a mention may mean."""

    iri: Iri
    label: str
    score: Score = 0.0
    """Of the label search, 0 to 1; 1 is the mention itself, letter case aside."""
    types: tuple[str, ...] = ()
    description: str = ""
    relations: tuple[str, ...] = ()
    """Names of its predicates, where several vertices share a label: a film has others than its novel.

    A system may add what they lead to: "member of: Marketing".
    """

    def __str__(self) -> str:
        types = f" ({', '.join(self.types)})" if self.types else ""
        return f"{self.label}{types} <{self.iri}>"

    @property
    def name(self) -> str:
        return self.label


@dataclass(frozen=True, slots=True)
class Retrieved:
    """What the entity retriever found for an entity of the QIR, best first."""

    entity: str
    candidates: tuple[Candidate, ...]
    how: Explanation = ""
    """Which stage of the label search found them."""
    query: Hidden[str] = ""
    """The search as it was sent."""
    found: Hidden[int] = 0
    """Vertices found within v_limit; more than there are candidates if only the best are shown."""

    def __str__(self) -> str:
        of = f" of {self.found:,} found" if self.found > len(self.candidates) else ""
        return f"{self.outcome}{of}"

    @property
    def outcome(self) -> str:
        return pluralize(len(self.candidates), "candidate")


@dataclass(frozen=True, slots=True)
class Link:
    """The vertex chosen for an entity of the QIR; no vertex if the graph has no candidate."""

    entity: str
    vertex: Candidate | None
    candidates: Hidden[tuple[Candidate, ...]] = ()
    reason: Explanation = ""

    def __str__(self) -> str:
        return f"{self.entity} → {self.vertex or 'no vertex'}"

    @property
    def outcome(self) -> str:
        """What the vertex is, where its label only repeats the entity."""
        if self.vertex is None:
            return "no vertex"
        same = self.vertex.label == self.entity and self.vertex.types
        return self.vertex.types[0] if same else self.vertex.label


@dataclass(frozen=True, slots=True)
class CandidateQuery:
    """A SPARQL query that may answer the question, and its triple patterns (subject, predicate, object)."""

    sparql: Sparql
    patterns: Hidden[tuple[tuple[str, str, str], ...]]
    """Terms in N-Triples form, variables as "?x"."""
    predicates: tuple[str, ...]
    """The predicate's name for each fact, in the QIR's order; namespaces do not show in a name."""
    score: Score
    """Geometric mean of the similarities of its predicates, 0 to 1."""
    filters: Hidden[str] = ""
    """FILTERs that stand beside the patterns; they hold for the support too."""

    def __str__(self) -> str:
        return self.sparql


@dataclass(frozen=True, slots=True)
class Value:
    """One value of an answer with the triples it stands on."""

    term: Term
    label: str
    support: tuple[Triple, ...] = ()
    row: tuple[Term | None, ...] = ()
    """Of an answer that is a table: its cells, the first of them in ``term``."""

    def __str__(self) -> str:
        return self.label

    @property
    def terms(self) -> tuple[Term, ...]:
        """All its terms."""
        return tuple(cell for cell in self.row if cell is not None) or (self.term,)


@dataclass(frozen=True, slots=True)
class Answer:
    """What the system answers; no value but a ``reason``: NOT_HERE, or CANNOT_EXPRESS."""

    kind: Kind
    values: tuple[Value, ...] = ()
    queries: tuple[Sparql, ...] = ()
    """The SPARQL the values came from, in order of execution."""
    text: str = ""
    """The answer as a sentence, if asked for; otherwise the labels."""
    reason: Explanation = ""
    names: Hidden[tuple[tuple[Iri, str], ...]] = ()
    """What the IRIs of the support are called, so that a replay shows them too."""
    columns: tuple[str, ...] = ()
    """Of a table: what its columns are."""
    ungrounded: bool = False
    """Whether it comes from what the model knows by itself: no triple of the graph is behind it."""

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(value.label for value in self.values)

    @property
    def support(self) -> tuple[Triple, ...]:
        return tuple(dict.fromkeys(triple for value in self.values for triple in value.support))

    @property
    def vertices(self) -> tuple[URIRef, ...]:
        """The IRIs at the ends of its support, then those among its values."""
        terms = [end for triple in self.support for end in triple[::2]]
        terms += [value.term for value in self.values]
        return tuple(dict.fromkeys(term for term in terms if isinstance(term, URIRef)))

    def __bool__(self) -> bool:
        return bool(self.values)

    def __str__(self) -> str:
        text = self.text or list_first(self.labels) or self.reason or "no answer"
        return f"{text} ({UNGROUNDED})" if self.ungrounded else text

    @property
    def outcome(self) -> str:
        return list_first(self.labels, 2) or "nothing"


NOT_HERE = "not in this graph"
"""Begins the reason where the graph was asked, and nothing fits."""
CANNOT_EXPRESS = "cannot express"
"""Begins the reason where the graph was not asked, as the system cannot say what the question asks."""
UNGROUNDED = "not grounded: from the model's own knowledge, not from the graph"
"""Shown with every ungrounded answer."""


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
