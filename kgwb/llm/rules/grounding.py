"""A question about one name, read by what the graph says of it where the grammar finds nothing to go along.

The predicates of the name in both directions, and those behind values that have no name of their own, are compared
with the words of the question. A word that asks for something else keeps it from being answered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from rdflib import RDF, XSD, URIRef

from kgwb.kg.base import Graph
from kgwb.kg.embeddings import Embeddings
from kgwb.kg.sparql import n3, one_of
from kgwb.kg.text import normal
from kgwb.llm.rules import RELEVANT, SPELLING, grammar, like
from kgwb.llm.rules import words as en
from kgwb.llm.rules.words import SENSE_OF, mentions, tokens_of

SURE = 0.45
"""Similarity with words of the question from which a predicate is what they ask for."""
SAME = 0.5
"""Similarity with the name of a class from which a word names it."""
NEAREST = 3
"""Vertices whose labels hold all words of a name, where none is called so."""
FUNCTIONAL = en.FUNCTION_WORDS | en.LIGHT_VERBS | en.PRONOUNS | en.SMALL_TALK
FAMILIES = en.TIMES | en.PLACES | {"by", *" ".join(SENSE_OF.values()).split()}
"""Words of relations that somebody asks for, and that nobody says in passing."""


class Said(NamedTuple):
    """What is said of a name: a predicate, whether it leads to the name, and what its other end can be."""

    name: str
    back: bool
    kinds: frozenset[str]
    """The names of classes and datatypes."""
    literal: bool
    parts: frozenset[str]
    """The predicates of values that have no name."""


def read(question: str, kg: Graph | None, embeddings: Embeddings) -> grammar.Reading:
    """What the grammar reads if the graph says such things of the name, else what the graph suggests."""
    reading = grammar.read(question, kg)
    question = grammar.plain(question)
    tokens = tokens_of(question)
    names = mentions(question, tokens, kg) if kg and reading.kind != "boolean" else []
    vertices = {name: found for name in names if kg and (found := _vertices(name.text, kg))}
    written = [name for name in vertices if name.text != name.text.casefold()] or [*vertices][-1:]
    if not kg or len(written) != 1:
        return reading
    name, said = written[0].text, _said(kg, vertices[written[0]])
    words = [token.lower for token in tokens]
    first, last = written[0].first, written[0].last
    first -= first > 1 and words[first - 2] in en.DETERMINERS  # the contract X
    words[first:last] = [""] * (last - first)
    starts = [0, *(n for n, token in enumerate(tokens) if n and token.opens), len(tokens)]
    sentences = [words[a:b] for a, b in pairwise(starts)]
    asking = [sentence for sentence in sentences if en.WH & {*sentence}]
    asked = _Asked(words, embeddings)
    relations = [says for subject, says, object_ in reading.facts if name in (subject, object_)]
    kept = like((relations or [""])[0].removesuffix(" by"), [each.name for each in said], embeddings)
    if len(relations) == len(reading.facts) == 1:
        kinds = [each for each in said if each.name in kept and each.kinds]
        counted = words[words.index("many") + 1 :][:1] if "many" in words else []
        if counted and counted[0] not in FUNCTIONAL and kinds and not any(asked.kind(SENSE_OF.get(counted[0], counted[0]), each) for each in kinds):
            return reading._replace(facts=((name, counted[0], "?answer"),), target="?answer")
        sure = {*relations[0].split()} <= FAMILIES or max(embeddings.similarity(relations[0], kept, SPELLING), default=0) >= SURE
        if kept and sure:
            return reading
    elif kept and _along(reading, kg, vertices[written[0]], embeddings):
        return reading
    best = next(filter(None, (_Asked(sentence, embeddings).best(said) for sentence in asking[-1:])), None) or asked.best(said)
    if best is None:
        return reading
    end = "?x1" if best.parts else "?answer"
    facts = [(end, best.name, name) if best.back else (name, best.name, end)]
    facts += [(end, ", ".join(sorted(best.parts)), "?answer")] * bool(best.parts)
    return reading._replace(facts=tuple(facts), target="?answer")


def _vertices(name: str, kg: Graph) -> Sequence[URIRef]:
    if exact := kg.exact([name]).get(name):
        return exact
    ends = (normal(name) + " ", " " + normal(name))
    hits = kg.search(name, NEAREST).hits
    return [
        hit.iri
        for hit in hits
        if normal(hit.label).startswith(ends[0]) or normal(hit.label).endswith(ends[1])
    ]


def _along(reading: grammar.Reading, kg: Graph, vertices: Sequence[URIRef], embeddings: Embeddings) -> bool:
    """Whether every relation of a chain is of a known family, or like a predicate one or two steps away."""
    strange = [says for _, says, _ in reading.facts if not {*says.split()} <= FAMILIES]
    if not strange:
        return bool(reading.facts)
    steps = " ".join(f"{{ ?{a} ?{p} ?{b} }} UNION {{ ?{b} ?{p} ?{a} }}" for a, p, b in ("vpx", "xqy"))
    hidden = ", ".join(map(n3, sorted(kg.vocabulary.hidden)))
    rows = kg.select(
        f"SELECT DISTINCT ?p ?q WHERE {{ {one_of('?v', vertices)} {steps} FILTER(?p NOT IN ({hidden})) }}"
    ).rows
    names = kg.names(sorted({term for row in rows for term in row if isinstance(term, URIRef)} - kg.vocabulary.hidden))
    close = (embeddings.similarity(says, [*names.values()], SPELLING) for says in strange)
    return all(max(each, default=0.0) >= SURE for each in close)


def _said(kg: Graph, vertices: Sequence[URIRef]) -> list[Said]:
    """What is said of vertices, by predicate; hidden predicates are left out."""
    these, types = one_of("?v", vertices), one_of("?t", kg.vocabulary.types)
    rows = kg.select(
        f'SELECT DISTINCT ?p ?d ?kind ?part WHERE {{ {{ {these} ?v ?p ?o BIND("out" AS ?d) }}'
        f' UNION {{ {these} ?o ?p ?v BIND("in" AS ?d) }}'
        f" OPTIONAL {{ {types} ?o ?t ?c }} OPTIONAL {{ ?o ?part ?x FILTER(isBlank(?o)) }}"
        f" BIND(IF(isLiteral(?o), DATATYPE(?o), ?c) AS ?kind) }}"
    ).rows
    hidden = kg.vocabulary.hidden
    names = kg.names(sorted({term for row in rows for term in row if isinstance(term, URIRef)}))
    ends: dict[tuple[URIRef, bool], list[Sequence[object]]] = {}
    for predicate, way, *end in rows:
        if isinstance(predicate, URIRef) and predicate not in hidden:
            ends.setdefault((predicate, str(way) == "in"), []).append(end)
    return [
        Said(
            names[predicate],
            back,
            frozenset(names[kind] for kind, _ in pairs if isinstance(kind, URIRef)),
            any(str(kind).startswith((str(XSD), str(RDF))) for kind, _ in pairs),
            frozenset(names[part] for _, part in pairs if isinstance(part, URIRef) and part not in hidden),
        )
        for (predicate, back), pairs in sorted(ends.items(), key=str)
    ]


class _Asked:
    """The words of a question that say something, by their number, and what they are like."""

    def __init__(self, words: Sequence[str], embeddings: Embeddings) -> None:
        self.words, self.embeddings = words, embeddings
        pairs = enumerate(zip(words, [*words[1:], ""], strict=True))
        self.content = [n for n, (a, b) in pairs if a not in {"", *FUNCTIONAL} or f"{a}_{b}" in SENSE_OF]

    def best(self, said: Sequence[Said]) -> Said | None:
        """What is most like words of the question; None where another word asks for something else."""
        date = grammar.wanted(self.words)[0] == "date"
        eligible = [
            each
            for each in said
            if not (each.literal and "who" in self.words)
            if not date or en.TIMES & {*" ".join([each.name, *each.kinds]).lower().split()}
        ]
        close = [{n: self._closeness(n, each) for n in self.content} for each in eligible]
        sure = [n for n, each in enumerate(close) if max(each.values(), default=0.0) >= SURE]
        sure.sort(key=lambda n: -sum(close[n].values()))
        guessed = not sure
        if not sure:  # there is one thing, or one of the kind that is asked for
            kinds = [number for number, each in enumerate(eligible) if any(self.kind(self.words[n], each) for n in self.content)]
            sure = kinds or [*range(len(eligible))]
            sure = sure if len(sure) == 1 else []
        if not sure:
            return None
        chosen, close_to = eligible[sure[0]], close[sure[0]]
        unlike = {
            n
            for n in self.content
            if close_to[n] < RELEVANT and not self.kind(self.words[n], chosen)
            if not date or self.words[n] not in en.TIMES
        }
        return None if (guessed and unlike) or any(self._asks(n, close_to) for n in unlike) else chosen

    def kind(self, word: str, said: Said) -> bool:
        """Whether a word is like the name of a class at the other end."""
        return max(self.embeddings.similarity(word, [*said.kinds], SPELLING), default=0.0) >= SAME

    def _asks(self, n: int, close: Mapping[int, float]) -> bool:
        """Whether a word asks for something else: what is it, which is it, it of something, or it is known to."""
        before = [word for word in self.words[:n] if word not in en.BEING | en.DETERMINERS | en.ACTIVE]
        asked = before[-1:] and before[-1] in ("what", "which", "many")
        behind = n - 1 in close and close[n - 1] < SURE and self._asks(n - 1, close)
        of = self.words[n + 1 : n + 2] == ["of"] and not en.WH & {*self.words[n + 2 : n + 3]}
        return self.words[n] not in en.VAGUE and (bool(asked) or behind or of or self.words[n] in SENSE_OF)

    def _closeness(self, n: int, said: Said) -> float:
        """How like a word, alone or with a neighbour, is to a predicate or to one behind it."""
        word = self.words[n]
        phrases = [word, SENSE_OF.get(word, word)]
        for pair in ((n - 1, n), (n, n + 1)):
            both = [self.words[m] for m in pair if 0 <= m < len(self.words)]
            known = SENSE_OF.get("_".join(both), "")
            phrases += [known or " ".join(both)] if known or {*pair} <= {*self.content} else []
        names = [said.name, *said.parts]
        return max(max(self.embeddings.similarity(phrase, names, SPELLING)) for phrase in phrases)
