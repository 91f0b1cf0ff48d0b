"""A question about one name, read by what the graph says of it where the grammar finds nothing to go along.

The predicates of the name in both directions, and those behind its values that have no name of their own, are
compared with the words of the question. A word that asks for something else keeps it from being answered.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import pairwise
from typing import NamedTuple

from rdflib import URIRef

from kgwb.kg.base import Graph
from kgwb.kg.embeddings import Embeddings
from kgwb.kg.sparql import n3, values_clause
from kgwb.kg.text import normalize
from kgwb.llm.rules import (
    MIN_RELATION_SIMILARITY,
    SPELLING_WEIGHT,
    find_similar_predicates,
    grammar,
)
from kgwb.llm.rules import words as en
from kgwb.llm.rules.words import RELATION_PHRASES, find_mentions, tokenize

MIN_PREDICATE_SIMILARITY, MIN_CLASS_SIMILARITY = 0.45, 0.5
"""Similarity from which words of the question ask for a predicate, and name a class."""
MAX_PARTIAL_MATCHES, MAX_SAMPLED_TRIPLES = 3, 100_000
"""Vertices whose labels begin or end with a name, and triples in each direction that are looked at."""
NON_CONTENT_WORDS = en.NON_NAME_WORDS | {""}
RELATION_WORDS = (
    en.TIME_WORDS | en.PLACE_WORDS | {"by", *" ".join(RELATION_PHRASES.values()).split()}
)
"""Words of relations that somebody asks for, and that nobody says in passing."""
WHO_WORDS = frozenset(("who", "whom", "who's"))
NUMBER_AND_TIME_DATATYPES = en.TIME_WORDS | {
    "boolean",
    "decimal",
    "double",
    "duration",
    "float",
    "integer",
}
"""Words in the names of datatypes that are nobody's."""


class VertexPredicate(NamedTuple):
    """What is said of a name: a predicate, whether it leads to the name, and what its other end can be."""

    name: str
    is_incoming: bool
    value_types: Collection[str]  # the names of classes and datatypes
    inner_predicates: Sequence[str]  # the predicates of values that have no name


def ground_question(
    question: str, kg: Graph | None, embeddings: Embeddings
) -> grammar.ParsedQuestion:
    """What the grammar reads if the graph says such things of the name, else what the graph suggests."""
    question = grammar.remove_filler_phrases(question)
    tokens = tokenize(question)
    names = find_mentions(question, tokens, kg)
    reading = grammar.parse_tokens(tokens, names, kg)
    if kg is None or reading.kind == "boolean":
        return reading
    exact = kg.exact([name.text for name in names]) if names else {}
    vertices = {
        n: called
        for n in names
        if (called := exact.get(n.text) or _find_partial_matches(n.text, kg))
    }
    written = [name for name in vertices if name.text != name.text.casefold()] or [*vertices][-1:]
    if len(written) != 1:
        return reading
    name, predicates = written[0].text, _fetch_predicates(kg, vertices[written[0]])
    words = [token.lowercase for token in tokens]
    first, last = written[0].start, written[0].end
    first -= first > 1 and words[first - 2] in en.DETERMINERS  # the contract X
    words[first:last] = [""] * (last - first)
    asked = QuestionWords(words, embeddings)
    at_name = [says for subject, says, object_ in reading.facts if name in (subject, object_)][:1]
    figures: list[str] = []
    if (
        WHO_WORDS & {*words}
        and not grammar.expected_value_type(words)[0]
        and len(reading.facts) == 1
    ):
        people = [
            each
            for each in predicates
            if not each.value_types or not all(map(_is_number_or_time, each.value_types))
        ]
        predicates, figures = people, [each.name for each in predicates if each not in people]
    named = [each.name for each in predicates]
    relations = [says.removesuffix(" by") for says in at_name]
    kept = [
        called for says in relations for called in find_similar_predicates(says, named, embeddings)
    ]
    figure = any(find_similar_predicates(says, figures, embeddings) for says in relations)
    counted = next(
        (b for a, b in pairwise(words) if a == "many" and RELATION_PHRASES.get(b) not in at_name),
        "",
    )
    kinds = [
        each
        for each in predicates
        if each.name in kept and each.value_types and len(reading.facts) == 1
    ]
    uncounted = counted not in NON_CONTENT_WORDS and not any(
        asked.names_value_type(counted, each) for each in kinds
    )
    if (kinds and uncounted) or (figure and not kept):
        return reading._replace(facts=((name, counted or "who", "?answer"),), target="?answer")
    strange = [says for _, says, _ in reading.facts if not {*says.split()} <= RELATION_WORDS]
    far = (
        _predicates_within_two_steps(kg, vertices[written[0]])
        if strange and len(reading.facts) > 1
        else ()
    )
    close = (max(embeddings.similarity(says, [*kept, *far], SPELLING_WEIGHT)) for says in strange)
    if kept and not figure and all(c >= MIN_PREDICATE_SIMILARITY for c in close):
        return reading
    starts = [0, *(n for n, token in enumerate(tokens) if n and token.begins_sentence), len(tokens)]
    questions = [words[a:b] for a, b in pairwise(starts) if en.WH_WORDS & {*words[a:b]}]
    in_question = (
        QuestionWords(questions[-1], embeddings).best_predicate(predicates) if questions else None
    )
    best = in_question or asked.best_predicate(predicates)
    if best is None:
        return reading
    end = "?x1" if best.inner_predicates else "?answer"
    facts = [(end, best.name, name) if best.is_incoming else (name, best.name, end)]
    facts += [(end, ", ".join(best.inner_predicates), "?answer")] * bool(best.inner_predicates)
    return reading._replace(facts=tuple(facts), target="?answer")


def _is_number_or_time(datatype: str) -> bool:
    return not NUMBER_AND_TIME_DATATYPES.isdisjoint(datatype.lower().split())


def _find_partial_matches(name: str, kg: Graph) -> Sequence[URIRef]:
    """The vertices whose labels begin or end with a name."""
    padded = f" {normalize(name)} "
    hits = [
        (hit.iri, f" {normalize(hit.label)} ") for hit in kg.search(name, MAX_PARTIAL_MATCHES).hits
    ]
    return [iri for iri, label in hits if label.startswith(padded) or label.endswith(padded)]


def _predicates_within_two_steps(kg: Graph, vertices: Sequence[URIRef]) -> Collection[str]:
    """The names of predicates one or two steps away from vertices."""
    steps = " ".join(
        f"{{ ?{a} ?{p} ?{b} }} UNION {{ ?{b} ?{p} ?{a} }}" for a, p, b in ("vpx", "xqy")
    )
    hidden = ", ".join(map(n3, sorted(kg.vocabulary.excluded_predicates)))
    query = f"SELECT DISTINCT ?p ?q WHERE {{ {values_clause('?v', vertices)} {steps} FILTER(?p NOT IN ({hidden})) }}"
    ends = {term for row in kg.select(query).rows for term in row if isinstance(term, URIRef)}
    return kg.names(sorted(ends - kg.vocabulary.excluded_predicates)).values()


def _fetch_predicates(kg: Graph, vertices: Sequence[URIRef]) -> list[VertexPredicate]:
    """What is said of vertices, by predicate; hidden predicates are left out."""
    ways = " UNION ".join(
        f'{{ SELECT ?p ?o ("{way}" AS ?d) WHERE {{ {values_clause("?v", vertices)} {triple} }}'
        f" LIMIT {MAX_SAMPLED_TRIPLES} }}"
        for way, triple in (("out", "?v ?p ?o"), ("in", "?o ?p ?v"))
    )
    rows = kg.select(
        f"SELECT DISTINCT ?p ?d ?kind WHERE {{ {ways}"
        f" OPTIONAL {{ {values_clause('?t', kg.vocabulary.types)} ?o ?t ?c }}"
        f" BIND(IF(isLiteral(?o), DATATYPE(?o), ?c) AS ?kind) }}"
    ).rows
    inside = kg.select(  # a query of its own: Virtuoso loses rows of two OPTIONALs
        f"SELECT DISTINCT ?p ?q WHERE {{ {values_clause('?v', vertices)} ?v ?p ?o . ?o ?q ?x FILTER(isBlank(?o)) }}"
    ).rows
    names = kg.names(
        sorted({term for row in (*rows, *inside) for term in row if isinstance(term, URIRef)})
    )
    hidden = kg.vocabulary.excluded_predicates
    parts = [(p, q) for p, q in inside if isinstance(q, URIRef) and q not in hidden]
    kinds: dict[tuple[URIRef, bool], set[URIRef]] = {}
    for predicate, way, kind in rows:
        if isinstance(predicate, URIRef) and predicate not in hidden:
            known = kinds.setdefault((predicate, str(way) == "in"), set())
            known |= {kind} if isinstance(kind, URIRef) else set()
    return [
        VertexPredicate(
            names[predicate],
            back,
            frozenset(names[iri] for iri in known),
            sorted(names[q] for p, q in parts if p == predicate and not back),
        )
        for (predicate, back), known in sorted(kinds.items())
    ]


class QuestionWords:
    """The words of a question that say something, by their number, and what they are like."""

    def __init__(self, words: Sequence[str], embeddings: Embeddings) -> None:
        self.words, self.embeddings = words, embeddings
        pairs = enumerate(zip(words, [*words[1:], ""], strict=True))
        self.content_positions = [
            n for n, (a, b) in pairs if a not in NON_CONTENT_WORDS or f"{a}_{b}" in RELATION_PHRASES
        ]

    def best_predicate(self, predicates: Sequence[VertexPredicate]) -> VertexPredicate | None:
        """What is most like the words; where nothing is, the one thing of the kind that is asked for.

        None where a word asks for something else.
        """
        if grammar.expected_value_type(self.words)[0] == "date":
            texts = [" ".join([each.name, *each.value_types]).lower() for each in predicates]
            predicates = [
                p
                for p, text in zip(predicates, texts, strict=True)
                if en.TIME_WORDS & {*text.split()}
            ]
        close = [
            {n: self._similarity(n, each) for n in self.content_positions} for each in predicates
        ]
        like_it = [
            n
            for n, each in enumerate(close)
            if max(each.values(), default=0.0) >= MIN_PREDICATE_SIMILARITY
        ]
        fitting = like_it
        if not like_it:
            kinds = [
                any(self.names_value_type(self.words[m], each) for m in self.content_positions)
                for each in predicates
            ]
            fitting = [n for n, named in enumerate(kinds) if named] or [*range(len(predicates))]
            if len(fitting) != 1:
                return None
        chosen = max(fitting, key=lambda n: sum(close[n].values()))
        near = close[chosen]
        words = [
            n
            for n in self.content_positions
            if near[n] < MIN_RELATION_SIMILARITY and self.words[n] not in en.TIME_WORDS
        ]
        unlike = [n for n in words if not self.names_value_type(self.words[n], predicates[chosen])]
        refused = any(map(self._asks_for_something_else, unlike)) if like_it else unlike
        return None if refused else predicates[chosen]

    def names_value_type(self, word: str, predicate: VertexPredicate) -> bool:
        """Whether a word is like the name of a class at the other end."""
        close = self.embeddings.similarity(
            RELATION_PHRASES.get(word, word), [*predicate.value_types], SPELLING_WEIGHT
        )
        return max(close, default=0.0) >= MIN_CLASS_SIMILARITY

    def _asks_for_something_else(self, n: int) -> bool:
        """Whether a word asks for something else: after "what", before "of", or as one that is known to."""
        before = [
            word
            for word in self.words[:n]
            if word not in en.BE_FORMS | en.DETERMINERS | en.ACTIVE_AUXILIARIES
        ]
        asked = bool(before) and before[-1] in ("what", "which", "many")
        of = self.words[n + 1 : n + 2] == ["of"] and not en.WH_WORDS & {*self.words[n + 2 : n + 3]}
        return self.words[n] not in en.VAGUE_WORDS and (
            asked or of or self.words[n] in RELATION_PHRASES
        )

    def _similarity(self, n: int, predicate: VertexPredicate) -> float:
        """How like a word, alone or with a neighbour, is to a predicate or to one behind it."""
        phrases = [self.words[n], RELATION_PHRASES.get(self.words[n], self.words[n])]
        for a, b in ((n - 1, n), (n, n + 1)):
            both = self.words[max(a, 0) : b + 1]
            phrases.append(RELATION_PHRASES.get("_".join(both)) or " ".join(both))
        names = [predicate.name, *predicate.inner_predicates]
        return max(
            max(self.embeddings.similarity(phrase, names, SPELLING_WEIGHT)) for phrase in phrases
        )
