"""The seam between kgwb and knowledge graphs, and which predicates of them carry names and noise."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Protocol
from urllib.parse import urlsplit

from pydantic import AfterValidator, ConfigDict, Field, ValidationError
from pyoxigraph import NamedNode
from rdflib import URIRef
from rdflib.namespace import DCTERMS, FOAF, OWL, RDF, RDFS, SKOS

from kgwb import disk
from kgwb.errors import SettingError
from kgwb.network import MAX_TIMEOUT_S
from kgwb.records import from_data, to_data
from kgwb.terms import Iri, Term, Triple, Triples

SCHEMA_ORG = "http://schema.org/"
WIKIBASE_NAMESPACE = "http://wikiba.se/ontology#"
SCHEMA_NAMESPACES = (str(RDF), str(RDFS), str(OWL), WIKIBASE_NAMESPACE)
"""What these say of a predicate or class are no facts about it."""
SCHEMA_CLASSES = (
    RDF.Property,
    RDFS.Class,
    OWL.Class,
    OWL.ObjectProperty,
    OWL.DatatypeProperty,
    OWL.AnnotationProperty,
    URIRef(WIKIBASE_NAMESPACE + "Property"),
)


class PredicateSet(frozenset[URIRef]):
    """A set of predicates; an IRI that ends in "/" or "#" stands for all that lie directly in it."""

    def __contains__(self, iri: object) -> bool:
        text = str(iri)
        space = text[: max(text.rfind("/"), text.rfind("#")) + 1]
        return super().__contains__(iri) or super().__contains__(URIRef(space))


_ValidatedIri = Annotated[Iri, AfterValidator(lambda iri: URIRef(NamedNode(iri).value))]
_LanguageTag = Annotated[str, Field(pattern=r"^([A-Za-z]+(-[A-Za-z0-9]+)*)?$")]


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Which predicates of a graph carry names, descriptions and noise."""

    __pydantic_config__ = ConfigDict(extra="forbid")  # of a file
    labels: Annotated[tuple[_ValidatedIri, ...], Field(min_length=1)] = (
        RDFS.label,
        SKOS.prefLabel,
        SKOS.altLabel,
        URIRef(SCHEMA_ORG + "name"),
        URIRef("https://schema.org/name"),
        FOAF.name,
        DCTERMS.title,
    )
    """Label predicates, the preferred first."""
    descriptions: tuple[_ValidatedIri, ...] = (
        URIRef(SCHEMA_ORG + "description"),
        DCTERMS.description,
        RDFS.comment,
        URIRef("http://dbpedia.org/ontology/abstract"),
    )
    types: tuple[_ValidatedIri, ...] = (RDF.type, URIRef("http://www.wikidata.org/prop/direct/P31"))
    noise: tuple[_ValidatedIri, ...] = (RDF.type, OWL.sameAs, RDFS.seeAlso)
    """Predicates that never answer a question; labels and descriptions count as noise too.

    An IRI that ends in "/" or "#" stands for every predicate directly in that namespace.
    """
    languages: tuple[_LanguageTag, ...] = ("en", "")
    """Preferred languages of labels, best first; "" is a literal without a language. Others come last."""

    @property
    def excluded_predicates(self) -> PredicateSet:
        """Predicates that relation linking leaves out."""
        return PredicateSet((*self.noise, *self.labels, *self.descriptions))

    def with_added(self, **additions: Iterable[str]) -> Vocabulary:
        """This vocabulary with ``more`` at the end of the fields named: ``plus(noise=["http://..."])``."""
        data = to_data(self)
        data |= {
            name: [*dict.fromkeys([*data[name], *map(str, added)])]
            for name, added in additions.items()
        }
        vocabulary: Vocabulary = from_data(data, Vocabulary)
        return vocabulary


# --- vocabularies of well-known graphs

_VOCABULARY_BY_HOST = {
    "dbpedia.org": "dbpedia",
    "wikidata.org": "wikidata",
    "yago-knowledge.org": "yago",
    "dblp.org": "dblp",
    "makg.org": "mag",
    "ma-graph.org": "mag",
}
_QLEVER_HOSTS = ("qlever.dev", "qlever.cs.uni-freiburg.de")  # where /api/NAME is a graph


_VOCABULARY_DATA = json.loads(
    Path(__file__).with_name("vocabularies.json").read_text(encoding="utf-8")
)
VOCABULARIES: dict[str, Vocabulary] = {"default": Vocabulary()} | {
    name: from_data(data, Vocabulary) for name, data in _VOCABULARY_DATA.items()
}
"""By name. ``VOCABULARIES["dbpedia"].plus(noise=[...])`` adds to one; yours: ``VOCABULARIES["mine"] =``."""


def vocabulary_for_url(url: str) -> Vocabulary:
    """The vocabulary of the well-known graph at an endpoint's URL; the default for any other."""
    parts = urlsplit(url)
    host, path = (parts.hostname or "").lower(), parts.path.rstrip("/").rpartition("/")[2]
    if host in _QLEVER_HOSTS:
        return VOCABULARIES.get(path, VOCABULARIES["default"])
    domains = (".".join(host.split(".")[-number:]) for number in range(2, host.count(".") + 2))
    return VOCABULARIES[
        next(
            (_VOCABULARY_BY_HOST[domain] for domain in domains if domain in _VOCABULARY_BY_HOST),
            "default",
        )
    ]


def load_vocabulary(name: str) -> Vocabulary:
    """The vocabulary of a name, or of a JSON file: an object with fields of Vocabulary, lists of texts.

    What the file leaves out is as in the default. Raises SettingError.
    """
    if name in VOCABULARIES:
        return VOCABULARIES[name]
    names = ", ".join(field.name for field in fields(Vocabulary))
    hint = f"choose one of {', '.join(VOCABULARIES)}, or a .json file with any of {names}"
    if not name.endswith(".json"):
        raise SettingError(f"no vocabulary named {name!r}", hint=hint)
    try:
        vocabulary: Vocabulary = from_data(json.loads(disk.read_text(Path(name))), Vocabulary)
        return vocabulary
    except ValidationError as error:
        first = error.errors()[0]
        problem = (
            f"{first['msg']} in {'.'.join(map(str, first['loc'])) or 'it'}: {first['input']!r}"
        )
    except (OSError, ValueError, RecursionError) as error:
        problem = str(error)
    raise SettingError(f"the vocabulary {name} cannot be used: {problem}", hint=hint)


# --- what a graph is, and what it answers


@dataclass(frozen=True, slots=True)
class QueryLimits:
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
        if not (isinstance(seconds, int | float) and 0 < seconds < MAX_TIMEOUT_S):
            raise SettingError(
                f"query_timeout_s cannot be {seconds!r}", hint="give seconds, above 0"
            )
        if not (isinstance(rows, int) and rows > 0):
            raise SettingError(
                f"row_limit cannot be {rows!r}", hint="give a whole number of rows, above 0"
            )


@dataclass(frozen=True, slots=True)
class ResultSet:
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
class SearchResult:
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

    def select(self, query: str) -> ResultSet:
        """The rows of a SELECT query, at most the row limit."""

    def ask(self, query: str) -> bool:
        """The truth of an ASK query."""

    def construct(self, query: str) -> tuple[Triple, ...]:
        """The triples of a CONSTRUCT or DESCRIBE query, at most the row limit."""

    def search(self, text: str, limit: int) -> SearchResult:
        """At most ``limit`` vertices whose label holds the words of ``text``: all, else relaxed."""

    def exact(self, labels: Sequence[str]) -> Mapping[str, tuple[URIRef, ...]]:
        """For each text that is the whole label of a vertex, those vertices by IRI; others are left out."""

    def names(self, iris: Sequence[URIRef]) -> Mapping[URIRef, str]:
        """A display name for every IRI: its preferred label, else its local name split into words."""
