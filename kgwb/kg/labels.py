"""The labels of a local graph: which of its IRIs have which names, and which can be searched.

They are read from lines of N-Quads in the form in which Oxigraph writes them: single spaces, and no
comments. N-Triples in this form are N-Quads, too. One regular expression reads a line, because
nothing else in Python is as fast.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import islice
from typing import NamedTuple

from pyoxigraph import Literal, Quad, RdfFormat, parse, serialize
from rdflib import URIRef
from rdflib.namespace import RDF

from kgwb.kg.base import (
    NAME_LINKS,
    NAME_TEXTS,
    SCHEMA_CLASSES,
    SCHEMA_NAMESPACES,
    WIKIBASE_NAMESPACE,
    WIKIBASE_PROPERTY,
    Vocabulary,
)
from kgwb.kg.label_search import Label, language_rank
from kgwb.kg.sparql import n3, string_literal
from kgwb.terms import name_from_iri

_CLAIM_PREDICATES = {
    URIRef(WIKIBASE_NAMESPACE + name)
    for name in ("directClaim", "claim", "statementProperty", "qualifier")
}
"""Predicates of Wikibase from a property entity to the predicates of its triples."""
_SCHEMA_CLASSES_AS_WRITTEN = {f"<{iri}>".encode() for iri in SCHEMA_CLASSES}
_WIKIBASE_PROPERTY_AS_WRITTEN = f"<{WIKIBASE_PROPERTY}>".encode()
NAMES_OF_NAME_PREDICATES = ("name", "full name", "label", "title")
"""What a graph calls a label predicate of its own, the preferred first: ``:name``, ``:fullName``."""
_QUADS_AT_ONCE = 10_000
_Preference = tuple[bool, int, int]
"""Whether the language of a label is not preferred, and where its predicate and language stand.

Both are positions in the vocabulary.
"""
LabelRank = tuple[_Preference, str]
"""By which the labels of an IRI are sorted, the preferred first. The second is the text."""


class _Role(NamedTuple):
    """What the lines of a predicate tell about labels."""

    is_fact: bool
    readers: tuple[Callable[[LabelReader, Line], None], ...]
    """They add what a line tells besides a fact. There are none for most predicates."""


class LabelReader:
    """Reads the labels of a graph from its N-Quads, in the form in which Oxigraph writes them.

    This is several times as fast as asking the store for them, which looks up the text of each
    term. IRIs are kept as they are written, in bytes with "<" and ">".
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._excluded = set(vocabulary.excluded_predicates)
        self._roles: dict[bytes, _Role] = {}
        """The role of each predicate that was read."""
        self._only_facts: set[bytes] = set()
        """Those whose triples are facts and tell nothing else: most."""
        self._preferences: dict[tuple[bytes, bytes], _Preference] = {}
        """What the ranks of a predicate and a language begin with."""
        self._first_labels: dict[bytes, LabelRank] = {}
        """By IRI the first label that was read. Most IRIs have one label."""
        self._more_labels: dict[bytes, list[LabelRank]] = defaultdict(list)
        """By IRI the other labels, in the order in which they were read."""
        self._without_text: set[bytes] = set()
        """IRIs with a label of the vocabulary that is blank or no literal."""
        self._in_facts: set[bytes] = set()
        """IRIs that are subject or object of a fact."""
        self._classes: set[bytes] = set()
        """The types of vertices, and the property entities of Wikidata."""
        self._declared: set[bytes] = set()
        """The instances of SCHEMA_CLASSES. Those that nothing uses are vertices: an ontology is about them."""
        self._claims: dict[tuple[bytes, bytes], None] = {}
        """Predicates of Wikidata's triples, each with the property entity that has its label."""
        self._name_links: list[tuple[bytes, bytes, int]] = []
        """Things, each with a name that is a thing of its own, and the place of the predicate."""
        self._name_texts: dict[bytes, list[tuple[str, bytes]]] = defaultdict(list)
        """The texts of such names, each with its language."""
        self._own_names: dict[bytes, list[tuple[bytes, str, bytes]]] = defaultdict(list)
        """By predicate with a name of a label predicate: IRI, text and language of each value."""
        self._has_name_texts = False
        """Whether a predicate of NAME_TEXTS was read."""
        self.may_be_nested = False
        """Whether a triple in a triple may have been read."""

    def read(self, lines: bytes) -> None:
        """Add the labels of whole lines of N-Quads."""
        if b"<<(" in lines:
            self.may_be_nested = True
        self.read_lines(split_lines(lines))
        if self._has_name_texts and b"_:" in lines:
            for line in _compile(_TEXT_OF_BLANK_NODE).findall(lines):
                self._read_name_text(line)

    def read_lines(self, lines: Iterable[Line]) -> None:
        """Add the labels of lines."""
        only_facts = self._only_facts
        # At first in a set of their own, which fits the processor's cache.
        in_facts = set()
        last_subject = b""
        for line in lines:
            subject, predicate, iri, _, _, _ = line
            if predicate not in only_facts:
                is_fact, readers = self._roles.get(predicate) or self._find_role(predicate)
                for read in readers:
                    read(self, line)
                if not is_fact:
                    continue
            # Most lines have the subject of the line before.
            if subject and subject != last_subject:
                last_subject = subject
                in_facts.add(subject)
            if iri:
                in_facts.add(iri)
        self._in_facts |= in_facts

    def _find_role(self, predicate: bytes) -> _Role:
        """Return what the triples of a predicate tell about labels, and keep it."""
        iri = _to_text(predicate)
        term = URIRef(iri)
        is_fact = term not in self._excluded and not iri.startswith(SCHEMA_NAMESPACES)
        name = name_from_iri(iri).casefold()
        readers = []
        if term in self._vocabulary.types:
            readers.append(LabelReader._read_class)
        if term == RDF.type:
            readers.append(LabelReader._read_declaration)
        if term in _CLAIM_PREDICATES:
            readers.append(LabelReader._read_claim)
        if term in NAME_LINKS:
            readers.append(LabelReader._read_name_link)
        if term in NAME_TEXTS:
            self._has_name_texts = True
            readers.append(LabelReader._read_name_text)
        if term in self._vocabulary.all_labels:
            readers.append(LabelReader._read_label)
        elif name in NAMES_OF_NAME_PREDICATES:
            readers.append(LabelReader._read_own_name)
        role = _Role(is_fact, tuple(readers))
        self._roles[predicate] = role
        if is_fact and not readers:
            self._only_facts.add(predicate)
        return role

    def _read_class(self, line: Line) -> None:
        """Add the class of a line with a type."""
        iri = line[2]
        if iri:
            self._classes.add(iri)

    def _read_declaration(self, line: Line) -> None:
        """Add the subject if it is declared to be a class or a predicate."""
        subject, _, iri, _, _, _ = line
        if not subject:
            return
        if iri == _WIKIBASE_PROPERTY_AS_WRITTEN:
            self._classes.add(subject)
        elif iri in _SCHEMA_CLASSES_AS_WRITTEN:
            self._declared.add(subject)

    def _read_claim(self, line: Line) -> None:
        """Add a predicate of Wikidata's triples, and the property entity that has its label."""
        subject, _, iri, _, _, _ = line
        if iri and subject:
            self._claims[iri, subject] = None

    def _read_name_link(self, line: Line) -> None:
        """Add a name that is a thing of its own, an IRI or a blank node, to the subject."""
        subject, predicate, iri, _, _, rest = line
        if subject:
            order = NAME_LINKS.index(URIRef(_to_text(predicate)))
            self._name_links.append((subject, iri or rest, order))

    def _read_name_text(self, line: Line) -> None:
        """Add the text of a name that is a thing of its own."""
        text, language = _read_literal(line)
        if text:
            self._name_texts[line[0]].append((text, language))

    def _read_own_name(self, line: Line) -> None:
        """Add the value of a predicate with a name of a label predicate."""
        subject, predicate, _, _, _, _ = line
        text, language = _read_literal(line)
        if text and subject:
            self._own_names[predicate].append((subject, text, language))

    def _read_label(self, line: Line) -> None:
        """Add a label."""
        subject, predicate, _, _, _, _ = line
        if not subject:
            return
        text, language = _read_literal(line)
        if not text:
            if URIRef(_to_text(predicate)) in self._vocabulary.labels:
                self._without_text.add(subject)
            return
        preference = self._preferences.get((predicate, language))
        if preference is None:
            order = self._vocabulary.all_labels.index(URIRef(_to_text(predicate)))
            preference, _ = rank_label("", language.decode(), order, self._vocabulary)
            self._preferences[predicate, language] = preference
        self._add_label(subject, (preference, text))

    def _add_label(self, subject: bytes, rank: LabelRank) -> None:
        """Add a label with its rank."""
        if self._first_labels.setdefault(subject, rank) is not rank:
            self._more_labels[subject].append(rank)

    def labels(self) -> Iterator[Label]:
        """Yield the labels of all IRIs that have one, that are subject or object of a fact, or declared.

        A fact is a triple whose predicate is not excluded by the vocabulary, as labels are, and not
        in a schema's namespace. An IRI without a label is named by its values of a predicate with
        one of NAMES_OF_NAME_PREDICATES, else by its local part, or, if it is a predicate of
        Wikidata, by its property entity. Predicates and classes that triples use are not
        searchable, unless they are also subject or object of a fact. An IRI has each text once. The
        first is its display name, by the order of ``rank_label``.

        This can be done once: what was read is dropped, because the store that is being loaded
        meanwhile needs the memory.
        """
        self._add_linked_names()
        schema = self._roles.keys() | self._classes
        not_searchable = schema - self._in_facts
        unlabelled = self._in_facts | (self._declared - schema)
        self._in_facts = set()
        unlabelled.difference_update(self._first_labels)
        unlabelled -= self._without_text
        unlabelled.difference_update(self._name_texts)
        yield from self._label_claims(unlabelled)
        while self._first_labels:
            iri, rank = self._first_labels.popitem()
            is_searchable = iri not in not_searchable
            others = self._more_labels.pop(iri, None)
            if others is None:
                yield Label(_to_text(iri), rank[-1], True, is_searchable)
            else:
                yield from _label_iri(iri, [rank, *others], is_searchable=is_searchable)

        own_names = self._rank_own_names(unlabelled)
        for iri in unlabelled:
            ranks = own_names.get(iri, [])
            if ranks:
                yield from _label_iri(iri, ranks, is_searchable=True)
            else:
                text = _to_text(iri)
                yield Label(text, name_from_iri(text), True, True)

    def _add_linked_names(self) -> None:
        """Add the texts of names that are things of their own to the things that have them."""
        first_order = len(self._vocabulary.all_labels)
        for subject, name, order in self._name_links:
            for text, language in self._name_texts.get(name, ()):
                rank = rank_label(text, language.decode(), first_order + order, self._vocabulary)
                self._add_label(subject, rank)

    def _label_claims(self, unlabelled: set[bytes]) -> Iterator[Label]:
        """Yield the labels of Wikidata's predicates without one, which are those of their properties."""
        labels = self._first_labels
        for predicate, entity in self._claims:
            has_name = predicate in labels or predicate in unlabelled
            if entity in labels and not has_name:
                ranks = [labels[entity], *self._more_labels.get(entity, [])]
                _, best = min(ranks)
                yield Label(_to_text(predicate), best, True, False)

    def _rank_own_names(self, unlabelled: set[bytes]) -> dict[bytes, list[LabelRank]]:
        """Return the names of IRIs without a label by name predicates of the graph's own, as keys.

        Many small graphs have such a predicate, ``:name``, and no label at all.
        """

        def preference(predicate: bytes) -> tuple[int, str]:
            """Return the sort key of a predicate: by its name, then by its IRI."""
            iri = _to_text(predicate)
            name = name_from_iri(iri).casefold()
            return NAMES_OF_NAME_PREDICATES.index(name), iri

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
    remaining = iter(quads)
    while piece := list(islice(remaining, _QUADS_AT_ONCE)):
        reader.read(serialize(piece, format=RdfFormat.N_QUADS) or b"")
    return list(reader.labels())


def _label_iri(iri: bytes, ranks: list[LabelRank], *, is_searchable: bool) -> Iterator[Label]:
    """Yield the labels of an IRI, each text once, the preferred first."""
    text = _to_text(iri)
    distinct_texts = dict.fromkeys(rank[-1] for rank in sorted(ranks))
    for position, label in enumerate(distinct_texts):
        is_preferred = position == 0
        yield Label(text, label, is_preferred, is_searchable)


def _read_literal(line: Line) -> tuple[str, bytes]:
    """Return the text and the language of the literal that is the object of a line.

    The text is without white space around it, and empty if there is no literal.
    """
    _, _, _, text, language, rest = line
    if text:
        return text.decode().strip(), language
    if rest.startswith(b'"'):
        for quad in parse(b"<x:s> <x:p> " + rest + b" .", RdfFormat.N_QUADS, lenient=True):
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
    ``order`` is the position in ``all_labels``, then the language, then the alphabet. A predicate
    after those of the vocabulary is like a foreign language: the label of any other is better.
    """
    languages = vocabulary.languages
    position = language_rank(language or "", languages)
    is_foreign = position >= len(languages) or order >= len(vocabulary.labels)
    return (is_foreign, order, position), text


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


Line = tuple[bytes, bytes, bytes, bytes, bytes, bytes]
"""What tells of a line whether and how it names something.

They are the subject if it is an IRI, the predicate, the object if it is an IRI, the text and the language of the
object if it is a literal without escaped characters, and the rest up to the " ." at the end. It
begins with the object if that is anything else. Each is empty if the line has no such part. IRIs
have their "<" and ">".
"""
_IRI = rb"<[^<>\"{}|^`\\\x00-\x20]*+>"
_TEXT = rb'"([^"\\\n\r]*+)"(?:@([A-Za-z]+(?:-[A-Za-z0-9]+)*+)|\^\^IRI)?+'
_ESCAPED = rb'"[^"\\\n\r]*+(?:\\.[^"\\\n\r]*+)*+"(?:@[A-Za-z0-9-]++|\^\^IRI)?+'


@cache
def _compile(pattern: bytes) -> re.Pattern[bytes]:
    """Return a regular expression in which IRI, TEXT and ESCAPED stand for those of these terms."""
    pattern = pattern.replace(b"TEXT", _TEXT).replace(b"ESCAPED", _ESCAPED)
    return re.compile(pattern.replace(b"IRI", _IRI), re.MULTILINE)


_LINE = rb"^(?:(<[^ ]+)|[^ ]+) ([^ ]+) (?:(<[^ <]+)|TEXT|)(.*) \.\n"
_PLAIN_LINE = rb"^(IRI) (IRI) (?:(IRI)|TEXT|(ESCAPED))(?: IRI)?+ \.\n"
"""A line without blank nodes and triples in triples. Its rest is a literal with escaped characters."""

_TEXT_OF_BLANK_NODE = b"^(_:[^ ]+) (%s) ()(?:TEXT|)(.*) \\.\n" % b"|".join(
    f"<{iri}>".encode() for iri in NAME_TEXTS
)
"""A line with the text of a name that is a blank node, in the form of ``Line``."""


def split_lines(data: bytes) -> list[Line]:
    """Return the parts of whole lines of N-Quads in the form in which Oxigraph writes them."""
    return _compile(_LINE).findall(data)


def split_plain_lines(data: bytes) -> list[Line] | None:
    """Return the parts of lines, or None if one is not in the form in which Oxigraph writes them.

    It is also None for blank nodes, triples in triples, escaped characters in IRIs, bytes that are
    not UTF-8, and a last line without its end. Whether IRIs and literals are valid is not checked.
    """
    lines = _compile(_PLAIN_LINE).findall(data)
    if len(lines) != data.count(b"\n") or not data.endswith(b"\n"):
        return None
    try:
        data.decode()
    except UnicodeDecodeError:
        return None
    return lines


def split_by_blank_nodes(data: bytes) -> tuple[bytes, bytes]:
    """Return the lines without blank nodes, and the others.

    A line where "_:" stands in an IRI or a literal may be among the others, too.
    """
    if b"_:" not in data:
        return data, b""
    without = []
    others = []
    for line in data.splitlines(keepends=True):
        if b"_:" in line:
            others.append(line)
        else:
            without.append(line)
    return b"".join(without), b"".join(others)
