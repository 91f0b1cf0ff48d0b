"""The interface of knowledge graphs, the results of their queries, and their vocabularies."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Annotated, Literal, Protocol
from urllib.parse import urlsplit

from pydantic import AfterValidator, ConfigDict, Field, ValidationError
from pyoxigraph import NamedNode
from rdflib import URIRef
from rdflib.namespace import DCTERMS, FOAF, OWL, RDF, RDFS, SKOS

from kgwb import disk
from kgwb.errors import SettingError
from kgwb.network import MAX_TIMEOUT_S
from kgwb.records import describe_validation_error, from_data, frozen, to_data
from kgwb.terms import Iri, Term, Triple, Triples, split_iri

AnswerKind = Literal["list", "count", "boolean"]
"""What a question asks for: values, their number, or whether something is true."""
Direction = Literal["out", "in"]
"""How a predicate is followed: from subject to object, or from object to subject."""
OPPOSITE_DIRECTION: Mapping[Direction, Direction] = {"out": "in", "in": "out"}

SCHEMA_ORG = "http://schema.org/"
WIKIBASE_NAMESPACE = "http://wikiba.se/ontology#"
SCHEMA_NAMESPACES = (str(RDF), str(RDFS), str(OWL), WIKIBASE_NAMESPACE)
"""Namespaces of predicates that describe the schema: their triples are not facts."""
SCHEMA_CLASSES = (
    RDF.Property,
    RDFS.Class,
    OWL.Class,
    OWL.ObjectProperty,
    OWL.DatatypeProperty,
    OWL.AnnotationProperty,
)
"""Instances of these classes are predicates or classes themselves."""
WIKIBASE_PROPERTY = URIRef(WIKIBASE_NAMESPACE + "Property")
"""The class of the entities of Wikidata that stand for a predicate, and have its label."""


MAX_SUPPORTED_ROWS = 60
"""Values of an answer, or rows of a result, whose support systems look for, from the first one."""
MAX_KEPT_ANSWERS = 4_096
"""The IRIs for which it is remembered whether they are in a PredicateSet: rows have the same few."""


class PredicateSet(frozenset[URIRef]):
    """A set of predicates in which an IRI that ends in "/", "#" or "." stands for others.

    With "/" or "#" it is a namespace, and the set contains every predicate directly in it. With "."
    it is a domain of Freebase: the set contains every predicate that begins so, up to the first
    "." of its local part. Iterating over the set yields only the IRI itself.
    """

    @lru_cache(maxsize=MAX_KEPT_ANSWERS)  # noqa: B019 (there are few sets, one for a vocabulary)
    def __contains__(self, iri: object) -> bool:
        if super().__contains__(iri):
            return True
        namespace, name = split_iri(str(iri))
        if super().__contains__(URIRef(namespace)):
            return True
        domain, dot, _ = name.partition(".")
        if not dot:
            return False
        return super().__contains__(URIRef(f"{namespace}{domain}."))


def _validate_iri(iri: URIRef) -> URIRef:
    """Return an IRI as it is. Raises ValueError for a text that is not an IRI."""
    return URIRef(NamedNode(iri).value)


_ValidatedIri = Annotated[Iri, AfterValidator(_validate_iri)]
_LanguageTag = Annotated[str, Field(pattern=r"^([A-Za-z]+(-[A-Za-z0-9]+)*)?$")]


@frozen
class Vocabulary:
    """Which predicates of a graph mean label, description, type or noise.

    ``VOCABULARIES`` has those of well-known graphs. A JSON file can hold one: an object with some
    of these fields, which are lists of texts.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")
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

    An IRI that ends in "/" or "#" stands for every predicate directly in that namespace, and one
    that ends in "." for a domain of Freebase, such as ".../ns/common.".
    """
    languages: tuple[_LanguageTag, ...] = ("en", "")
    """Preferred languages of labels, best first; "" is for a literal without a language.

    Labels in other languages are used where there is none in these.
    """

    @property
    def all_labels(self) -> tuple[URIRef, ...]:
        """Every predicate from a thing to a name by which it is found, the preferred first.

        After ``labels`` come those that are the same for all vocabularies, in ``names.toml``.
        """
        return _join_labels(self.labels)

    @property
    def excluded_predicates(self) -> PredicateSet:
        """The predicates that relation linking leaves out: noise, labels and descriptions."""
        return _make_predicate_set(self.noise, self.labels, self.descriptions)

    def with_added(self, **additions: Iterable[str]) -> Vocabulary:
        """Return this vocabulary with values added at the end of fields that do not have them yet.

        ``with_added(noise=["http://example.org/"])`` adds a namespace to the noise. Raises
        pydantic's ValidationError, a ValueError, for a value that is not an IRI or a language tag.
        This vocabulary does not change. Raises KeyError for a field that it does not have.
        """
        data = to_data(self)
        for name, added in additions.items():
            values = [*data[name], *map(str, added)]
            data[name] = list(dict.fromkeys(values))
        vocabulary: Vocabulary = from_data(data, Vocabulary)
        return vocabulary


_NAMES = disk.read_table("kg/names.toml")
FURTHER_LABELS = tuple(map(URIRef, _NAMES["labels"]))
"""Label predicates that hold for all graphs, after those of a vocabulary."""
NAME_LINKS = tuple(map(URIRef, _NAMES["links"]))
"""Predicates from a thing to a name that is a thing of its own, as in SKOS-XL."""
NAME_TEXTS = tuple(map(URIRef, _NAMES["texts"]))
"""Predicates from such a name to its text."""


@lru_cache(maxsize=64)
def _join_labels(labels: tuple[URIRef, ...]) -> tuple[URIRef, ...]:
    """Return label predicates and FURTHER_LABELS, each once. It is asked for with each row of some results."""
    return tuple(dict.fromkeys((*labels, *FURTHER_LABELS)))


@lru_cache(maxsize=64)
def _make_predicate_set(*groups: tuple[URIRef, ...]) -> PredicateSet:
    """Return the set of the predicates in some groups.

    It is kept, since the same vocabulary is asked for it with each row of some results.
    """
    return PredicateSet(chain.from_iterable(groups))


# Vocabularies of well-known graphs

_VOCABULARY_BY_HOST: Mapping[str, str] = _NAMES["vocabularies_of_hosts"]
"""Names of vocabularies by domain. They hold for its subdomains too."""
_QLEVER_HOSTS = ("qlever.dev", "qlever.cs.uni-freiburg.de")
"""Hosts of QLever, where the graph of the vocabulary NAME is at /api/NAME."""
VOCABULARIES = {"default": Vocabulary()}
"""Vocabularies by name. ``VOCABULARIES["mine"] = ...`` adds one."""
_VOCABULARIES_FILE = Path(__file__).with_name("vocabularies.json")
for _name, _data in json.loads(_VOCABULARIES_FILE.read_text(encoding="utf-8")).items():
    _languages = tuple(_data.pop("languages"))
    _groups = {group: tuple(map(URIRef, iris)) for group, iris in _data.items()}
    # They are not checked here: pydantic would take longer to build the checks than all else takes.
    VOCABULARIES[_name] = Vocabulary(languages=_languages, **_groups)


def vocabulary_for_url(url: str) -> Vocabulary:
    """Return the vocabulary of the well-known graph at an endpoint's URL, else the default.

    A graph is known by its host or a domain above it; on the hosts of QLever, by the last part of
    the path.
    """
    parts = urlsplit(url)
    domain = (parts.hostname or "").lower()
    if domain in _QLEVER_HOSTS:
        path = parts.path.rstrip("/")
        _, _, graph_name = path.rpartition("/")
        return VOCABULARIES.get(graph_name, VOCABULARIES["default"])
    while domain and domain not in _VOCABULARY_BY_HOST:
        _, _, domain = domain.partition(".")
    name = _VOCABULARY_BY_HOST.get(domain, "default")
    return VOCABULARIES[name]


def load_vocabulary(name: str) -> Vocabulary:
    """Return one of VOCABULARIES by name, or the vocabulary in a JSON file.

    The name of a file ends in ".json". Fields that it does not have are those of the default.
    Raises SettingError for another name, and for a file that cannot be read or has a wrong field.
    """
    if name in VOCABULARIES:
        return VOCABULARIES[name]
    names = ", ".join(VOCABULARIES)
    field_names = ", ".join(field.name for field in fields(Vocabulary))
    hint = f"choose one of {names}, or a .json file with any of {field_names}"
    if not name.endswith(".json"):
        raise SettingError(f"kgwb has no vocabulary named {name!r}", hint=hint)
    try:
        text = disk.read_text(Path(name))
        vocabulary: Vocabulary = from_data(json.loads(text), Vocabulary)
        return vocabulary
    except ValidationError as error:
        first, *_ = error.errors()
        place = ".".join(map(str, first["loc"])) or "it"
        message = first["msg"]
        value = first["input"]
        problem = f"{message} in {place}: {value!r}"
    except (OSError, ValueError, RecursionError) as error:
        problem = describe_validation_error(error)
    raise SettingError(f"the vocabulary {name} cannot be used: {problem}", hint=hint)


# What a graph is asked, and what it answers


@frozen
class QueryLimits:
    """What one query may cost and do. Raises SettingError for an impossible value."""

    query_timeout_s: float = 30.0
    row_limit: int = 10_000
    """How many rows, or triples, of a result are read. A longer result is cut."""
    allow_service: bool = False
    """Whether queries may ask other endpoints (SERVICE), and call functions that may write."""
    byte_limit: int = 32_000_000
    """How long an endpoint's reply may be. A longer one raises GraphError."""

    def __post_init__(self) -> None:
        timeout_s = self.query_timeout_s
        if not isinstance(timeout_s, int | float) or not 0 < timeout_s < MAX_TIMEOUT_S:
            raise SettingError(
                f"query_timeout_s cannot be {timeout_s!r}",
                hint="give it (--query-timeout) a number of seconds above 0, such as 60",
            )
        if not isinstance(self.row_limit, int) or self.row_limit <= 0:
            raise SettingError(
                f"row_limit cannot be {self.row_limit!r}",
                hint="give it a whole number of rows above 0, such as 10000",
            )


@frozen
class ResultSet:
    """The result of a SELECT query."""

    variables: tuple[str, ...]
    rows: tuple[tuple[Term | None, ...], ...]
    """For each solution, the terms of the variables in their order; None where one is unbound."""
    cut: bool = False
    """Whether rows are missing: because of a row limit, or because the endpoint ran out of time."""


@frozen
class Hit:
    """A vertex that a label search found."""

    iri: Iri
    label: str
    """The label that matched."""
    score: float
    """0 to 1; it is 1 only if label and text differ in letter case at most."""


@frozen
class SearchResult:
    """The result of a label search, best hit first."""

    hits: tuple[Hit, ...]
    how: str
    """The stage that found them.

    It is "all words", "prefix", "any word" or "close spelling", or "nothing" if there is no hit.
    """
    query: str
    """The search as it was sent, for people to read."""


class Graph(Protocol):
    """A knowledge graph that can only be read. Terms that it takes and returns are rdflib terms.

    Every method raises GraphError: QueryRefusedError or QueryError for a query that is not sent or
    that the engine rejects, GraphTimeoutError, or GraphUnreachableError.
    """

    source: str
    """Where the graph came from, for people. It never has a password."""
    identity: str
    """A digest of the content, or an endpoint's URL. Recorded calls are found by it."""
    vocabulary: Vocabulary
    remote: bool
    """Whether queries go over the network."""
    muted: Triples
    """Triples that the graph is read without. Identity and survey are those of the whole graph."""

    @property
    def whole_graph(self) -> Graph:
        """The graph that was opened: this one, unless triples are muted."""

    def without(self, *triples: Triple) -> Graph:
        """Return a copy of this graph that does not have these triples either.

        The graph itself does not change. An endpoint cannot be copied, and raises GraphError. A
        triple with a blank node, which a query cannot name, raises QueryError.
        """

    def select(self, query: str) -> ResultSet:
        """Return the rows of a SELECT query, at most the row limit."""

    def ask(self, query: str) -> bool:
        """Return the truth value of an ASK query."""

    def construct(self, query: str) -> tuple[Triple, ...]:
        """Return the triples of a CONSTRUCT or DESCRIBE query, at most the row limit."""

    def search(self, text: str, limit: int) -> SearchResult:
        """Return at most ``limit`` vertices with a label that has the words of a text.

        All words are looked for first, then beginnings of words, then any of the words, then
        similar words, until something is found.
        """

    def exact(self, labels: Sequence[str]) -> Mapping[str, tuple[URIRef, ...]]:
        """Return the vertices that have each text as a label, sorted by IRI.

        Letter case does not count, but signs and accents do. Texts that are no label are left out.
        """

    def names(self, iris: Sequence[URIRef]) -> Mapping[URIRef, str]:
        """Return a display name for every IRI: its preferred label, else words from the IRI."""
