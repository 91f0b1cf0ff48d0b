"""The labels of a local graph: which of its IRIs have which names, and which can be searched."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from pyoxigraph import Literal, Quad, RdfFormat, parse, serialize
from rdflib import URIRef
from rdflib.namespace import RDF

from kgwb.kg.base import SCHEMA_CLASSES, SCHEMA_NAMESPACES, WIKIBASE_NAMESPACE, Vocabulary
from kgwb.kg.label_index import Label
from kgwb.kg.sparql import n3, string_literal
from kgwb.kg.text import language_rank
from kgwb.terms import name_from_iri

_CLAIM_PREDICATES = {
    URIRef(WIKIBASE_NAMESPACE + name)
    for name in ("directClaim", "claim", "statementProperty", "qualifier")
}
"""Predicates of Wikibase from a property entity to the predicates of its triples."""
_SCHEMA_CLASSES_AS_WRITTEN = {f"<{iri}>".encode() for iri in SCHEMA_CLASSES}
_NAMES_OF_NAME_PREDICATES = ("name", "full name", "label", "title")
"""What a graph calls a label predicate of its own, the preferred first: ``:name``, ``:fullName``."""
_LINE = re.compile(rb"([^ ]+) ([^ ]+) (<[^ <]+|)(.*)\n")
"""A line of N-Quads: the subject, the predicate, the object if it is an IRI, and the rest."""
_PLAIN_LITERAL = re.compile(rb'"([^"\\]*)"(?:@([A-Za-z]+(?:-[A-Za-z0-9]+)*))?')
"""A literal without escaped characters: its text and its language."""
_BUFFER_BYTES = 1 << 20
"""Lines are read from so many bytes at once."""
LabelRank = tuple[bool, int, int, str]
"""By which the labels of an IRI are sorted, the preferred first.

Whether its language is not preferred, the position of its predicate in the vocabulary, the position
of its language there, and the text.
"""


class _Role(NamedTuple):
    """What the triples of a predicate tell about labels."""

    is_fact: bool
    label_order: int | None
    """The position among the label predicates of the vocabulary; None for another predicate."""
    is_type: bool
    """Whether an object is a class."""
    declares: bool
    """Whether it is rdf:type, so that a subject may be declared to be a class or a predicate."""
    is_claim: bool
    """Whether it is one of _CLAIM_PREDICATES."""
    is_own_name: bool
    """Whether the graph calls it as a label predicate is called: one of _NAMES_OF_NAME_PREDICATES."""


_ONLY_FACT = _Role(
    True, label_order=None, is_type=False, declares=False, is_claim=False, is_own_name=False
)


class LabelReader:
    """Reads the labels of a graph from its N-Quads, in the form in which Oxigraph writes them.

    This is several times as fast as asking the store for them, which looks up the text of each
    term. IRIs are kept as they are written, in bytes with "<" and ">".

    It can be used as an output stream.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._excluded = set(vocabulary.excluded_predicates)
        self._roles: dict[bytes, _Role] = {}
        """The role of each predicate that was read."""
        self._only_facts: set[bytes] = set()
        """Those whose triples are facts and tell nothing else: most."""
        self._rank_starts: dict[tuple[int, bytes], tuple[bool, int, int]] = {}
        """What the ranks of a predicate, by its position, and a language begin with."""
        self._ranked: dict[bytes, list[LabelRank]] = defaultdict(list)
        """The labels so far by IRI, each as the key that it is sorted by, unsorted."""
        self._without_text: set[bytes] = set()
        """IRIs with a label that is blank or no literal."""
        self._in_facts: set[bytes] = set()
        """IRIs that are subject or object of a fact."""
        self._classes: set[bytes] = set()
        """The types of vertices, and the instances of SCHEMA_CLASSES."""
        self._claims: dict[tuple[bytes, bytes], None] = {}
        """Predicates of Wikidata's triples, each with the property entity that has its label."""
        self._own_names: dict[bytes, list[tuple[bytes, str, bytes]]] = defaultdict(list)
        """By predicate with a name of a label predicate: IRI, text and language of each value."""
        self._pieces: list[bytes] = []
        self._buffered_bytes = 0
        self.may_be_nested = False
        """Whether a triple in a triple may have been read."""

    def write(self, data: bytes) -> int:
        """Add the labels of a piece of N-Quads, which may end anywhere, and return its length."""
        self._pieces.append(data)
        self._buffered_bytes += len(data)
        if self._buffered_bytes >= _BUFFER_BYTES:
            self.flush()
        return len(data)

    def flush(self) -> None:
        """Read the lines that are complete, and keep the rest for the next time."""
        lines, newline, rest = b"".join(self._pieces).rpartition(b"\n")
        self.read(lines + newline)
        self._pieces = [rest]
        self._buffered_bytes = len(rest)

    def read(self, lines: bytes) -> None:
        """Add the labels of whole lines of N-Quads."""
        if b"<<(" in lines:
            self.may_be_nested = True
        in_facts = self._in_facts
        last_subject = b""
        for subject, predicate, iri, rest in _LINE.findall(lines):
            if predicate not in self._only_facts:
                is_fact = self._read_more(subject, predicate, iri, rest)
                if not is_fact:
                    continue
            # Most lines have the subject of the line before.
            if subject != last_subject and subject.startswith(b"<"):
                last_subject = subject
                in_facts.add(subject)
            if iri:
                in_facts.add(iri)

    def _find_role(self, predicate: bytes) -> _Role:
        """Return what the triples of a predicate tell about labels, and keep it."""
        iri = _to_text(predicate)
        term = URIRef(iri)
        is_fact = term not in self._excluded and not iri.startswith(SCHEMA_NAMESPACES)
        label_order = None
        if term in self._vocabulary.labels:
            label_order = self._vocabulary.labels.index(term)
        is_type = term in self._vocabulary.types
        declares = term == RDF.type
        is_claim = term in _CLAIM_PREDICATES
        name = name_from_iri(iri).casefold()
        is_own_name = label_order is None and name in _NAMES_OF_NAME_PREDICATES
        role = _Role(is_fact, label_order, is_type, declares, is_claim, is_own_name)
        self._roles[predicate] = role
        if role == _ONLY_FACT:
            self._only_facts.add(predicate)
        return role

    def _read_more(self, subject: bytes, predicate: bytes, iri: bytes, rest: bytes) -> bool:
        """Add what a line tells besides a fact, and return whether it is a fact too.

        ``iri`` is empty for an object that is no IRI.
        """
        role = self._roles.get(predicate) or self._find_role(predicate)
        if role.is_type and iri:
            self._classes.add(iri)
        if not subject.startswith(b"<"):
            return role.is_fact
        if role.label_order is not None:
            self._read_label(role.label_order, subject, rest)
        if role.declares and iri in _SCHEMA_CLASSES_AS_WRITTEN:
            self._classes.add(subject)
        if role.is_claim and iri:
            self._claims[iri, subject] = None
        if role.is_own_name:
            text, language = _read_literal(rest)
            if text:
                self._own_names[predicate].append((subject, text, language))
        return role.is_fact

    def _read_label(self, order: int, subject: bytes, rest: bytes) -> None:
        """Add a label. ``order`` is the position of its predicate in the vocabulary."""
        text, language = _read_literal(rest)
        if not text:
            self._without_text.add(subject)
            return
        start = self._rank_starts.get((order, language))
        if start is None:
            rank = rank_label("", language.decode(), order, self._vocabulary)
            start = rank[:-1]
            self._rank_starts[order, language] = start
        self._ranked[subject].append((*start, text))

    def labels(self) -> Iterator[Label]:
        """Yield the labels of all IRIs that have one, or that are subject or object of a fact.

        A fact is a triple whose predicate is not excluded by the vocabulary, as labels are, and not
        in a schema's namespace. An IRI without a label is named by its values of a predicate with
        one of _NAMES_OF_NAME_PREDICATES, else by its local part, or, if it is a predicate of
        Wikidata, by its property entity. Predicates and classes are not searchable, unless they are
        also subject or object of a fact. An IRI has each text once. The first is its display name,
        by the order of ``rank_label``.

        This can be done once: what was read is dropped, because the store that is being loaded
        meanwhile needs the memory.
        """
        self.flush()
        ranked = self._ranked
        self._ranked = defaultdict(list)
        schema = self._roles.keys() | self._classes
        not_searchable = {iri for iri in schema if iri not in self._in_facts}
        unlabelled = self._in_facts - ranked.keys() - self._without_text
        self._in_facts = set()
        for iri, ranks in ranked.items():
            is_searchable = iri not in not_searchable
            if len(ranks) == 1:  # most IRIs
                yield Label(_to_text(iri), ranks[0][-1], True, is_searchable)
            else:
                yield from _label_iri(iri, ranks, is_searchable=is_searchable)

        own_names = self._rank_own_names(unlabelled)
        for iri in unlabelled:
            ranks = own_names.get(iri, [])
            if ranks:
                yield from _label_iri(iri, ranks, is_searchable=True)
            else:
                text = _to_text(iri)
                yield Label(text, name_from_iri(text), True, True)
        for predicate, entity in self._claims:
            has_name = predicate in ranked or predicate in unlabelled
            if entity in ranked and not has_name:
                best = min(ranked[entity])
                yield Label(_to_text(predicate), best[-1], True, False)

    def _rank_own_names(self, unlabelled: set[bytes]) -> dict[bytes, list[LabelRank]]:
        """Return the names of IRIs without a label by name predicates of the graph's own, as keys.

        Many small graphs have such a predicate, ``:name``, and no label at all.
        """

        def preference(predicate: bytes) -> tuple[int, str]:
            """Return the sort key of a predicate: by its name, then by its IRI."""
            iri = _to_text(predicate)
            name = name_from_iri(iri).casefold()
            return _NAMES_OF_NAME_PREDICATES.index(name), iri

        own_names: dict[bytes, list[LabelRank]] = defaultdict(list)
        for order, predicate in enumerate(sorted(self._own_names, key=preference)):
            for iri, text, language in self._own_names[predicate]:
                if iri in unlabelled:
                    rank = rank_label(text, language.decode(), order, self._vocabulary)
                    own_names[iri].append(rank)
        return own_names


def collect_labels(quads: Iterable[Quad], vocabulary: Vocabulary) -> list[Label]:
    """Return the labels of a graph, as ``LabelReader.labels`` does, from all of its quads."""
    reader = LabelReader(vocabulary)
    output: Any = reader  # it is written to, and flushed
    serialize(quads, output, RdfFormat.N_QUADS)
    return list(reader.labels())


def _label_iri(iri: bytes, ranks: list[LabelRank], *, is_searchable: bool) -> Iterator[Label]:
    """Yield the labels of an IRI, each text once, the preferred first."""
    text = _to_text(iri)
    distinct_texts = dict.fromkeys(rank[-1] for rank in sorted(ranks))
    for position, label in enumerate(distinct_texts):
        is_preferred = position == 0
        yield Label(text, label, is_preferred, is_searchable)


def _read_literal(rest: bytes) -> tuple[str, bytes]:
    """Return the text and the language of a literal at the beginning of the rest of a line.

    The text is without white space around it, and empty if there is no literal.
    """
    if not rest.startswith(b'"'):
        return "", b""
    plain = _PLAIN_LITERAL.match(rest)
    if plain:
        text, language = plain.groups(b"")
        return text.decode().strip(), language
    for quad in parse(b"<x:s> <x:p> " + rest, RdfFormat.N_QUADS, lenient=True):
        literal = quad.object
        if isinstance(literal, Literal):
            return literal.value.strip(), (literal.language or "").encode()
    return "", b""


def _to_text(iri: bytes) -> str:
    """Return an IRI as text, without the "<" and ">" around it."""
    return iri[1:-1].decode()


def rank_label(text: str, language: str | None, order: int, vocabulary: Vocabulary) -> LabelRank:
    """Return the key that a label of an IRI is sorted by: the smallest is the best.

    Labels in the vocabulary's languages come before others. Then the predicate decides, of which
    ``order`` is the position in the vocabulary, then the language, then the alphabet.
    """
    languages = vocabulary.languages
    position = language_rank(language or "", languages)
    is_foreign = position >= len(languages)
    return is_foreign, order, position, text


def fact_condition(vocabulary: Vocabulary) -> str:
    """Return a SPARQL condition that is true if the predicate ?p is that of a fact.

    A predicate that the vocabulary excludes, and one in the namespaces of RDF, RDFS, OWL and
    Wikibase, is not that of a fact. The condition holds for any graph, so it is written without
    looking at one.
    """
    excluded = ", ".join(map(n3, sorted(vocabulary.excluded_predicates)))
    condition = f"?p NOT IN ({excluded})"
    for namespace in SCHEMA_NAMESPACES:
        condition += f" && !STRSTARTS(STR(?p), {string_literal(namespace)})"
    return condition
