"""Verbalization: the triples of a graph as passages of sentences (RAGonite, section 2.2).

Names are labels, where the published code takes the local parts of IRIs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from rdflib import BNode, Literal, URIRef

from kgwb.build import Term, choose_prefix, local_part, normalize, split_iri, tell_apart, to_curie
from kgwb.systems.ragonite.induction import DatabaseBuilder
from kgwb.systems.ragonite.settings import RagoniteSettings

MAX_PASSAGE_CHARS = 900
MAX_OBJECTS_PER_SENTENCE = 12
MAX_NESTED_TRIPLES = 4
"""Triples of an instance that is only a part of a value, such as a number with its unit."""


class Fact(NamedTuple):
    """One or more triples as words: the relation of a subject to an object.

    A triple that the title of the passage already says is a fact without words.
    """

    relation: str
    object: str
    triples: Sequence[int]
    """The numbers of the triples."""
    reverse: str = ""
    """The name of the predicate if the reverse of the fact follows it, else empty."""


class Passage(NamedTuple):
    """Sentences about one term, and the numbers of the triples that they say."""

    text: str
    triples: Sequence[int]


class PassageWriter:
    """Writes the triples of a database as passages, which are added to it."""

    def __init__(self, database: DatabaseBuilder, settings: RagoniteSettings) -> None:
        """Index the triples. The settings say how they are written."""
        self.database = database
        self.by_fact = settings.verbalization == "facts"
        self.reverse_facts = settings.reverse_facts
        self.reverse_literals = settings.reverse_literals
        self._outgoing: dict[Term, list[int]] = defaultdict(list)
        """The numbers of the triples by their subject."""
        self._incoming: dict[Term, list[int]] = defaultdict(list)
        """The numbers of the triples by their object."""
        for number, (subject, _, object_) in enumerate(database.triples):
            self._outgoing[subject].append(number)
            self._incoming[object_].append(number)
        self._written_triples: set[int] = set()
        self._shown_names: Mapping[Term, str] = {}
        """The texts of the terms in the passage that is being written, where these are needed."""
        self._passage_count = 0
        self._predicate_names = self._name_predicates()
        self._type_relation = "is" if self.by_fact else "is a"
        self._relation_ranks = {self._type_relation: 0}
        """The relations that come before all others in a passage: types, then descriptions."""
        for iri in database.vocabulary.descriptions:
            if iri in self._predicate_names:
                self._relation_ranks[f"has {self._predicate_names[iri]}"] = 1

    def _name_predicates(self) -> Mapping[URIRef, str]:
        """Return the name of each predicate of the database, by IRI.

        It is the display name; where several have the same, the CURIE stands behind it in brackets.
        """
        predicates = sorted({predicate for _, predicate, _ in self.database.triples})
        prefixes: dict[str, str] = {}
        for predicate in predicates:
            namespace, _ = split_iri(predicate)
            if namespace not in prefixes:
                prefixes[namespace] = choose_prefix(namespace, prefixes.values())
        names = self.database.names

        def format_with_curie(predicate: URIRef) -> str:
            return f"{names[predicate]} ({to_curie(predicate, prefixes)})"

        return tell_apart(predicates, (names.__getitem__, format_with_curie))

    def write_passages(self) -> int:
        """Write the passages of all subjects, and of all objects that have reverse facts there.

        Nested terms come last, because most of them are written in the passages of other terms.
        """
        terms: Iterable[Term] = self._outgoing
        if self.reverse_facts and not self.by_fact:
            terms = dict.fromkeys((*self._outgoing, *self._incoming))
        described = [term for term in terms if not isinstance(term, Literal)]
        for term in sorted(described, key=self._is_nested):
            self._write_passages_of(term)
        return self._passage_count

    def _is_nested(self, term: Term) -> bool:
        """Return whether a term only holds the parts of a value, such as a number and a unit.

        That is a blank node, or a term in a table without a label that has 1 to MAX_NESTED_TRIPLES
        triples and is the object of exactly one.
        """
        if isinstance(term, BNode):
            return True
        outgoing = self._outgoing.get(term, ())
        incoming = self._incoming.get(term, ())
        if not 0 < len(outgoing) <= MAX_NESTED_TRIPLES or len(incoming) != 1:
            return False
        predicates = {self.database.triples[number][1] for number in outgoing}
        has_label = not predicates.isdisjoint(self.database.vocabulary.labels)
        return not has_label and term in self.database.table_by_term

    def _write_passages_of(self, term: Term) -> None:
        """Write the facts about a term, in one passage or in several, as the settings say.

        Types come first, then descriptions, then other facts. The facts of a nested term that are
        in another passage are not written again. The title is the name with the id in brackets.
        """
        is_nested = self._is_nested(term)
        self._shown_names = self._name_neighbours(term)
        facts = []
        for number in self._outgoing.get(term, ()):
            if not (is_nested and number in self._written_triples):
                facts.append(self._make_fact(number, frozenset([term])))
        facts.sort(key=lambda fact: self._relation_ranks.get(fact.relation, 2))
        name = self._name_of(term)
        id_ = self.database.id_by_term[term]
        title = name if name == id_ else f"{name} [{id_}]"
        if self.by_fact:
            passages = [join_facts(name, facts)]
        else:
            is_schema_term = term in self.database.classes.schema_terms
            if self.reverse_facts and not is_nested and not is_schema_term:
                facts += self._make_reverse_facts(term)
            passages = list(split_into_passages(name, facts))
        for passage in passages:
            if passage.triples:
                self._write_passage(title, passage)

    def _name_neighbours(self, term: Term) -> Mapping[Term, str]:
        """Return a text for each term that a triple connects with this one; texts of different terms differ.

        It is the literal or the name; where several would look the same, a literal has its datatype
        behind it, and anything else its id in square brackets. Subjects of incoming triples count
        only with reverse facts.
        """
        neighbours = [self.database.triples[number][2] for number in self._outgoing.get(term, ())]
        if self.reverse_facts and not self.by_fact:
            for number in self._incoming.get(term, ()):
                neighbours.append(self.database.triples[number][0])
        return tell_apart(neighbours, (self._name_of, self._name_fully, self._name_exactly))

    def _make_fact(self, number: int, path: frozenset[Term]) -> Fact:
        """Return a triple as a fact: "is a" for a type, else "has" with the predicate's name.

        ``number`` is that of the triple. A nested object is written as its own facts, in brackets.
        ``path`` has the terms that the triple is nested in; these are written by name, since blank
        nodes may lead to each other in a circle. The display name of the subject is a fact without
        words.
        """
        triple = self.database.triples[number]
        _, predicate, object_ = triple
        if self.database.is_display_name(triple):
            return Fact("", "", [number])
        if predicate in self.database.vocabulary.types:
            return Fact(self._type_relation, self._show(object_), [number])
        name = self._relation_name(predicate)
        relation = f"has {name}"
        if object_ in path or not self._is_nested(object_):
            is_reversed = self._is_reversed_beside(object_)
            return Fact(relation, self._show(object_), [number], name if is_reversed else "")

        parts = []
        numbers = [number]
        for nested_number in self._outgoing[object_]:
            nested = self._make_fact(nested_number, path | {object_})
            parts.append(f"{nested.relation.removeprefix('has ')} {nested.object}")
            numbers += nested.triples
        return Fact(relation, f"({'; '.join(parts)})", numbers)

    def _is_reversed_beside(self, object_: Term) -> bool:
        """Return whether the reverse of a fact with this object follows it in its passage.

        "125 kW is engine performance of BMW 120 Sport" does with ``reverse_literals``. The reverse
        of a link does if there is a passage for each subject only (section 2.2); else it is in the
        passage of the object.
        """
        if isinstance(object_, Literal):
            return self.reverse_literals
        return self.by_fact and self.reverse_facts

    def _make_reverse_facts(self, term: Term) -> Iterator[Fact]:
        """Yield the facts that lead to a term, in the order of the triples: "is director of Dune".

        Types and facts about blank nodes are left out.
        """
        for number in self._incoming.get(term, ()):
            subject, predicate, _ = self.database.triples[number]
            is_type = predicate in self.database.vocabulary.types
            if not is_type and not isinstance(subject, BNode):
                relation = f"is {self._relation_name(predicate)} of"
                yield Fact(relation, self._show(subject), [number])

    def _relation_name(self, predicate: URIRef) -> str:
        """Return the display name of a predicate without "has " before it."""
        return self._predicate_names[predicate].removeprefix("has ")

    def _show(self, term: Term) -> str:
        """Return a term as the passage that is being written shows it."""
        return self._shown_names.get(term) or self._name_of(term)

    def _name_of(self, term: Term) -> str:
        """Return a literal with its language in brackets, or the display name or id of a term."""
        if isinstance(term, Literal):
            return f"{term} ({term.language})" if term.language else str(term)
        return self.database.names.get(term) or self.database.id_by_term[term]

    def _name_fully(self, term: Term) -> str:
        """Return a literal with its language or datatype, or a name with the id in brackets.

        A literal without a datatype is returned as it is named.
        """
        name = self._name_of(term)
        if not isinstance(term, Literal):
            return f"{name} [{self.database.id_by_term[term]}]"
        if term.datatype and not term.language:
            return f"{name} ({local_part(term.datatype)})"
        return name

    def _name_exactly(self, term: Term) -> str:
        """Return what ``_name_fully`` does, but with the IRI of a datatype."""
        if isinstance(term, Literal) and term.datatype and not term.language:
            return f"{term} ({term.datatype})"
        return self._name_fully(term)

    def _write_passage(self, title: str, passage: Passage) -> None:
        """Insert a passage with its triples into the database, and add it to the index of words.

        It gets the next number, from 0. Title and text are indexed in their normal form. Its
        triples count as written from then on.
        """
        number = self._passage_count
        self._passage_count += 1
        self._written_triples.update(passage.triples)
        execute = self.database.connection.execute
        execute("INSERT INTO _passages VALUES (?, ?, ?)", (number, title, passage.text))
        words = (number, normalize(title), normalize(passage.text))
        execute("INSERT INTO _words (rowid, title, key) VALUES (?, ?, ?)", words)
        for triple_number in passage.triples:
            execute("INSERT INTO _facts VALUES (?, ?)", (number, triple_number))


def split_into_passages(name: str, facts: Iterable[Fact]) -> Iterator[Passage]:
    """Yield the facts about a term as passages of about MAX_PASSAGE_CHARS characters.

    Facts with the same relation are one sentence, or several if they are more than
    MAX_OBJECTS_PER_SENTENCE. A sentence is never divided. The first of a passage begins with the
    name of the term, the others with "It". The reverse of a fact follows the sentence. If no fact
    has words, the name is the only passage. Without facts there is none.
    """
    facts_by_relation: dict[str, list[Fact]] = {"": []}
    for fact in facts:
        facts_by_relation.setdefault(fact.relation, []).append(fact)
    triples: list[int] = []
    for fact in facts_by_relation.pop(""):
        triples += fact.triples

    text = ""
    for relation, group in facts_by_relation.items():
        for start in range(0, len(group), MAX_OBJECTS_PER_SENTENCE):
            part = group[start : start + MAX_OBJECTS_PER_SENTENCE]
            objects = ", ".join(fact.object for fact in part)
            sentence = f"{relation} {objects}."
            for fact in part:
                if fact.reverse:
                    sentence += f" {fact.object} is {fact.reverse} of {name}."
            if text and len(text) + len(sentence) > MAX_PASSAGE_CHARS:
                yield Passage(text, triples)
                text = ""
                triples = []
            text += f" It {sentence}" if text else f"{name} {sentence}"
            for fact in part:
                triples += fact.triples
    if triples:
        yield Passage(text or name, triples)


def join_facts(name: str, facts: Iterable[Fact]) -> Passage:
    """Return all facts about a term as one passage (section 2.2).

    Each fact is a sentence with the name of the term; its reverse is the next sentence. If no fact
    has words, the name is the passage. Without facts it has no triples.
    """
    sentences = []
    triples: list[int] = []
    for fact in facts:
        triples += fact.triples
        if fact.relation:
            sentences.append(f"{name} {fact.relation} {fact.object}.")
        if fact.reverse:
            sentences.append(f"{fact.object} is {fact.reverse} of {name}.")
    return Passage(" ".join(sentences) or name, triples)
