"""The seam between kgwb and knowledge graphs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from rdflib import URIRef
from rdflib.namespace import DCTERMS, FOAF, OWL, RDF, RDFS, SKOS

from kgwb.errors import SettingError
from kgwb.flow import Iri, Term, Triple, Triples, from_data, to_data
from kgwb.network import LONGEST_S

SCHEMA = "http://schema.org/"
WIKIBASE = "http://wikiba.se/ontology#"
SCHEMA_SPACES = (str(RDF), str(RDFS), str(OWL), WIKIBASE)
"""What these say of a predicate or class are no facts about it."""
SCHEMA_CLASSES = (
    RDF.Property,
    RDFS.Class,
    OWL.Class,
    OWL.ObjectProperty,
    OWL.DatatypeProperty,
    OWL.AnnotationProperty,
    URIRef(WIKIBASE + "Property"),
)


class Predicates(frozenset[URIRef]):
    """A set of predicates; an IRI that ends in "/" or "#" stands for all that lie directly in it."""

    def __contains__(self, iri: object) -> bool:
        text = str(iri)
        space = text[: max(text.rfind("/"), text.rfind("#")) + 1]
        return super().__contains__(iri) or super().__contains__(URIRef(space))


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Which predicates of a graph carry names, descriptions and noise."""

    labels: tuple[Iri, ...] = (
        RDFS.label,
        SKOS.prefLabel,
        SKOS.altLabel,
        URIRef(SCHEMA + "name"),
        URIRef("https://schema.org/name"),
        FOAF.name,
        DCTERMS.title,
    )
    """Label predicates, the preferred first."""
    descriptions: tuple[Iri, ...] = (
        URIRef(SCHEMA + "description"),
        DCTERMS.description,
        RDFS.comment,
        URIRef("http://dbpedia.org/ontology/abstract"),
    )
    types: tuple[Iri, ...] = (RDF.type, URIRef("http://www.wikidata.org/prop/direct/P31"))
    noise: tuple[Iri, ...] = (RDF.type, OWL.sameAs, RDFS.seeAlso)
    """Predicates that never answer a question; labels and descriptions count as noise too.

    An IRI that ends in "/" or "#" stands for every predicate directly in that namespace.
    """
    languages: tuple[str, ...] = ("en", "")
    """Preferred languages of labels, best first; "" is a literal without a language. Others come last."""

    @property
    def hidden(self) -> Predicates:
        """Predicates that relation linking leaves out."""
        return Predicates((*self.noise, *self.labels, *self.descriptions))

    def plus(self, **more: Iterable[str]) -> Vocabulary:
        """This vocabulary with ``more`` at the end of the fields named: ``plus(noise=["http://..."])``."""
        fields = to_data(self)
        fields |= {name: [*dict.fromkeys([*fields[name], *map(str, added)])] for name, added in more.items()}
        vocabulary: Vocabulary = from_data(fields, Vocabulary)
        return vocabulary


@dataclass(frozen=True, slots=True)
class Limits:
    """What one query may cost and do."""

    query_timeout_s: float = 30.0
    row_limit: int = 10_000
    """Rows, or triples, read of a result; more are cut."""
    allow_service: bool = False
    """Whether SERVICE clauses are sent, and calls of functions by which an engine may do more than read."""
    byte_limit: int = 32_000_000
    """Bytes read of an endpoint's reply; a longer one is an error."""

    def __post_init__(self) -> None:
        seconds, rows = self.query_timeout_s, self.row_limit
        if not (isinstance(seconds, int | float) and 0 < seconds < LONGEST_S):
            raise SettingError(f"query_timeout_s cannot be {seconds!r}", hint="give seconds, above 0")
        if not (isinstance(rows, int) and rows > 0):
            raise SettingError(f"row_limit cannot be {rows!r}", hint="give a whole number of rows, above 0")


@dataclass(frozen=True, slots=True)
class Rows:
    """The result of a SELECT: a tuple of terms (None where unbound) for each row, in ``variables``' order."""

    variables: tuple[str, ...]
    rows: tuple[tuple[Term | None, ...], ...]
    cut: bool = False
    """Whether the row limit cut the result, or the endpoint sent what it had when its time was over."""


@dataclass(frozen=True, slots=True)
class Hit:
    """One vertex that a label search found."""

    iri: Iri
    label: str
    """The label that matched."""
    score: float
    """0 to 1; 1 is the text searched for itself, letter case, accents and punctuation aside."""


@dataclass(frozen=True, slots=True)
class Found:
    """The result of a label search, best hit first."""

    hits: tuple[Hit, ...]
    how: str
    """Which stage found them: "all words", "prefix", "any word", "close spelling" or "nothing"."""
    query: str
    """The search as it was sent, for the person to read."""


class Graph(Protocol):
    """A knowledge graph that can only be read. Terms in and out are rdflib terms.

    Every method raises a GraphError: refused query, engine error, timeout, unreachable.
    """

    source: str
    """Where the graph came from, for people; never holds a password."""
    identity: str
    """What makes it this graph: a fingerprint of the content or the endpoint's URL; keys recorded calls."""
    vocabulary: Vocabulary
    remote: bool
    """Whether a query goes over the network."""
    muted: Triples
    """Triples that it is read without; identity and survey are those of the whole graph."""

    @property
    def whole_graph(self) -> Graph:
        """The graph that was opened: itself, unless triples are muted."""

    def without(self, *triples: Triple) -> Graph:
        """This graph, read as if it lacked these triples too; nothing in it changes.

        A query that cannot be asked so (see ``muting.hide``) is a QueryError, and so is a triple with a blank
        node, which no query can name.
        """

    def select(self, query: str) -> Rows:
        """The rows of a SELECT query, at most the row limit."""

    def ask(self, query: str) -> bool:
        """The truth of an ASK query."""

    def construct(self, query: str) -> tuple[Triple, ...]:
        """The triples of a CONSTRUCT or DESCRIBE query, at most the row limit."""

    def search(self, text: str, limit: int) -> Found:
        """At most ``limit`` vertices whose label holds the words of ``text``: all, else relaxed."""

    def exact(self, labels: Sequence[str]) -> Mapping[str, tuple[URIRef, ...]]:
        """For each text that is the whole label of a vertex, those vertices by IRI; others are left out."""

    def names(self, iris: Sequence[URIRef]) -> Mapping[URIRef, str]:
        """A display name for every IRI: its preferred label, else its local name split into words."""
