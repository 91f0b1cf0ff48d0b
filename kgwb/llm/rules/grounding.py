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
from kgwb.kg.sparql import n3, one_of
from kgwb.kg.text import normal
from kgwb.llm.rules import RELEVANT, SPELLING, grammar, like
from kgwb.llm.rules import words as en
from kgwb.llm.rules.words import SENSE_OF, mentions, tokens_of

SURE, SAME = 0.45, 0.5
"""Similarity from which words of the question ask for a predicate, and name a class."""
NEAREST, SAMPLE = 3, 100_000
"""Vertices whose labels begin or end with a name, and triples in each direction that are looked at."""
FUNCTIONAL = en.NAMELESS | {""}
FAMILIES = en.TIMES | en.PLACES | {"by", *" ".join(SENSE_OF.values()).split()}
"""Words of relations that somebody asks for, and that nobody says in passing."""
WHO = frozenset(("who", "whom", "who's"))
FIGURES = en.TIMES | {"boolean", "decimal", "double", "duration", "float", "integer"}
"""Words in the names of datatypes that are nobody's."""


class Predicate(NamedTuple):
    """What is said of a name: a predicate, whether it leads to the name, and what its other end can be."""

    name: str
    back: bool
    kinds: Collection[str]  # the names of classes and datatypes
    parts: Sequence[str]  # the predicates of values that have no name


def read(question: str, kg: Graph | None, embeddings: Embeddings) -> grammar.Reading:
    """What the grammar reads if the graph says such things of the name, else what the graph suggests."""
    question = grammar.plain(question)
    tokens = tokens_of(question)
    names = mentions(question, tokens, kg)
    reading = grammar.read_tokens(tokens, names, kg)
    if kg is None or reading.kind == "boolean":
        return reading
    exact = kg.exact([name.text for name in names]) if names else {}
    vertices = {
        n: called for n in names if (called := exact.get(n.text) or _nearly_called(n.text, kg))
    }
    written = [name for name in vertices if name.text != name.text.casefold()] or [*vertices][-1:]
    if len(written) != 1:
        return reading
    name, predicates = written[0].text, _predicates(kg, vertices[written[0]])
    words = [token.lower for token in tokens]
    first, last = written[0].first, written[0].last
    first -= first > 1 and words[first - 2] in en.DETERMINERS  # the contract X
    words[first:last] = [""] * (last - first)
    asked = Asked(words, embeddings)
    at_name = [says for subject, says, object_ in reading.facts if name in (subject, object_)][:1]
    figures: list[str] = []
    if WHO & {*words} and not grammar.wanted(words)[0] and len(reading.facts) == 1:
        people = [
            each for each in predicates if not each.kinds or not all(map(_is_figure, each.kinds))
        ]
        predicates, figures = people, [each.name for each in predicates if each not in people]
    named = [each.name for each in predicates]
    relations = [says.removesuffix(" by") for says in at_name]
    kept = [called for says in relations for called in like(says, named, embeddings)]
    figure = any(like(says, figures, embeddings) for says in relations)
    counted = next(
        (b for a, b in pairwise(words) if a == "many" and SENSE_OF.get(b) not in at_name), ""
    )
    kinds = [
        each for each in predicates if each.name in kept and each.kinds and len(reading.facts) == 1
    ]
    uncounted = counted not in FUNCTIONAL and not any(
        asked.names_kind(counted, each) for each in kinds
    )
    if (kinds and uncounted) or (figure and not kept):
        return reading._replace(facts=((name, counted or "who", "?answer"),), target="?answer")
    strange = [says for _, says, _ in reading.facts if not {*says.split()} <= FAMILIES]
    far = _two_steps_away(kg, vertices[written[0]]) if strange and len(reading.facts) > 1 else ()
    close = (max(embeddings.similarity(says, [*kept, *far], SPELLING)) for says in strange)
    if kept and not figure and all(c >= SURE for c in close):
        return reading
    starts = [0, *(n for n, token in enumerate(tokens) if n and token.opens), len(tokens)]
    questions = [words[a:b] for a, b in pairwise(starts) if en.WH & {*words[a:b]}]
    in_question = Asked(questions[-1], embeddings).best(predicates) if questions else None
    best = in_question or asked.best(predicates)
    if best is None:
        return reading
    end = "?x1" if best.parts else "?answer"
    facts = [(end, best.name, name) if best.back else (name, best.name, end)]
    facts += [(end, ", ".join(best.parts), "?answer")] * bool(best.parts)
    return reading._replace(facts=tuple(facts), target="?answer")


def _is_figure(datatype: str) -> bool:
    return not FIGURES.isdisjoint(datatype.lower().split())


def _nearly_called(name: str, kg: Graph) -> Sequence[URIRef]:
    """The vertices whose labels begin or end with a name."""
    padded = f" {normal(name)} "
    hits = [(hit.iri, f" {normal(hit.label)} ") for hit in kg.search(name, NEAREST).hits]
    return [iri for iri, label in hits if label.startswith(padded) or label.endswith(padded)]


def _two_steps_away(kg: Graph, vertices: Sequence[URIRef]) -> Collection[str]:
    """The names of predicates one or two steps away from vertices."""
    steps = " ".join(
        f"{{ ?{a} ?{p} ?{b} }} UNION {{ ?{b} ?{p} ?{a} }}" for a, p, b in ("vpx", "xqy")
    )
    hidden = ", ".join(map(n3, sorted(kg.vocabulary.hidden)))
    query = f"SELECT DISTINCT ?p ?q WHERE {{ {one_of('?v', vertices)} {steps} FILTER(?p NOT IN ({hidden})) }}"
    ends = {term for row in kg.select(query).rows for term in row if isinstance(term, URIRef)}
    return kg.names(sorted(ends - kg.vocabulary.hidden)).values()


def _predicates(kg: Graph, vertices: Sequence[URIRef]) -> list[Predicate]:
    """What is said of vertices, by predicate; hidden predicates are left out."""
    ways = " UNION ".join(
        f'{{ SELECT ?p ?o ("{way}" AS ?d) WHERE {{ {one_of("?v", vertices)} {triple} }} LIMIT {SAMPLE} }}'
        for way, triple in (("out", "?v ?p ?o"), ("in", "?o ?p ?v"))
    )
    rows = kg.select(
        f"SELECT DISTINCT ?p ?d ?kind WHERE {{ {ways}"
        f" OPTIONAL {{ {one_of('?t', kg.vocabulary.types)} ?o ?t ?c }}"
        f" BIND(IF(isLiteral(?o), DATATYPE(?o), ?c) AS ?kind) }}"
    ).rows
    inside = kg.select(  # a query of its own: Virtuoso loses rows of two OPTIONALs
        f"SELECT DISTINCT ?p ?q WHERE {{ {one_of('?v', vertices)} ?v ?p ?o . ?o ?q ?x FILTER(isBlank(?o)) }}"
    ).rows
    names = kg.names(
        sorted({term for row in (*rows, *inside) for term in row if isinstance(term, URIRef)})
    )
    hidden = kg.vocabulary.hidden
    parts = [(p, q) for p, q in inside if isinstance(q, URIRef) and q not in hidden]
    kinds: dict[tuple[URIRef, bool], set[URIRef]] = {}
    for predicate, way, kind in rows:
        if isinstance(predicate, URIRef) and predicate not in hidden:
            known = kinds.setdefault((predicate, str(way) == "in"), set())
            known |= {kind} if isinstance(kind, URIRef) else set()
    return [
        Predicate(
            names[predicate],
            back,
            frozenset(names[iri] for iri in known),
            sorted(names[q] for p, q in parts if p == predicate and not back),
        )
        for (predicate, back), known in sorted(kinds.items())
    ]


class Asked:
    """The words of a question that say something, by their number, and what they are like."""

    def __init__(self, words: Sequence[str], embeddings: Embeddings) -> None:
        self.words, self.embeddings = words, embeddings
        pairs = enumerate(zip(words, [*words[1:], ""], strict=True))
        self.content = [n for n, (a, b) in pairs if a not in FUNCTIONAL or f"{a}_{b}" in SENSE_OF]

    def best(self, predicates: Sequence[Predicate]) -> Predicate | None:
        """What is most like the words; where nothing is, the one thing of the kind that is asked for.

        None where a word asks for something else.
        """
        if grammar.wanted(self.words)[0] == "date":
            texts = [" ".join([each.name, *each.kinds]).lower() for each in predicates]
            predicates = [
                p for p, text in zip(predicates, texts, strict=True) if en.TIMES & {*text.split()}
            ]
        close = [{n: self._closeness(n, each) for n in self.content} for each in predicates]
        like_it = [n for n, each in enumerate(close) if max(each.values(), default=0.0) >= SURE]
        fitting = like_it
        if not like_it:
            kinds = [
                any(self.names_kind(self.words[m], each) for m in self.content)
                for each in predicates
            ]
            fitting = [n for n, named in enumerate(kinds) if named] or [*range(len(predicates))]
            if len(fitting) != 1:
                return None
        chosen = max(fitting, key=lambda n: sum(close[n].values()))
        near = close[chosen]
        words = [n for n in self.content if near[n] < RELEVANT and self.words[n] not in en.TIMES]
        unlike = [n for n in words if not self.names_kind(self.words[n], predicates[chosen])]
        refused = any(map(self._asks, unlike)) if like_it else unlike
        return None if refused else predicates[chosen]

    def names_kind(self, word: str, predicate: Predicate) -> bool:
        """Whether a word is like the name of a class at the other end."""
        close = self.embeddings.similarity(SENSE_OF.get(word, word), [*predicate.kinds], SPELLING)
        return max(close, default=0.0) >= SAME

    def _asks(self, n: int) -> bool:
        """Whether a word asks for something else: after "what", before "of", or as one that is known to."""
        before = [
            word for word in self.words[:n] if word not in en.BEING | en.DETERMINERS | en.ACTIVE
        ]
        asked = bool(before) and before[-1] in ("what", "which", "many")
        of = self.words[n + 1 : n + 2] == ["of"] and not en.WH & {*self.words[n + 2 : n + 3]}
        return self.words[n] not in en.VAGUE and (asked or of or self.words[n] in SENSE_OF)

    def _closeness(self, n: int, predicate: Predicate) -> float:
        """How like a word, alone or with a neighbour, is to a predicate or to one behind it."""
        phrases = [self.words[n], SENSE_OF.get(self.words[n], self.words[n])]
        for a, b in ((n - 1, n), (n, n + 1)):
            both = self.words[max(a, 0) : b + 1]
            phrases.append(SENSE_OF.get("_".join(both)) or " ".join(both))
        names = [predicate.name, *predicate.parts]
        return max(max(self.embeddings.similarity(phrase, names, SPELLING)) for phrase in phrases)
