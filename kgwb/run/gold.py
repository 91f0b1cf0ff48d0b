"""Gold queries taken apart, and what a system's agents should have decided according to them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from difflib import SequenceMatcher
from functools import partial
from itertools import chain, permutations, product
from typing import Any, Generic, NamedTuple, TypeVar

from rdflib import URIRef

from kgwb.errors import GraphError
from kgwb.kg.algebra import TriplePattern, analyze_query
from kgwb.kg.base import AnswerKind, Direction, Vocabulary
from kgwb.records import Record, frozen
from kgwb.run.answers import Answer
from kgwb.text import list_first, tell_apart


@frozen
class GoldQuery:
    """A gold query, taken apart."""

    sparql: str
    kind: AnswerKind
    target: str
    """The unknown that is asked for ("?x"); empty for a boolean question."""
    patterns: tuple[TriplePattern, ...]
    """Its triple patterns (terms in N-Triples form, unknowns as "?x").

    Patterns that only say a type or a name are left out.
    """
    names: Mapping[str, str] = field(default_factory=dict)
    """Display names of its IRIs."""
    standalone: str = ""
    """What the question means outside its dialogue; empty if it is in none."""

    @property
    def vertices(self) -> frozenset[str]:
        """The IRIs that are subject or object of a pattern."""
        ends = _ends_of(self.patterns)
        return frozenset(end[1:-1] for end in ends if end.startswith("<"))

    @property
    def predicates(self) -> frozenset[str]:
        """The IRIs of its predicates."""
        return frozenset(predicate[1:-1] for _, predicate, _ in self.patterns)


@frozen
class RightAnswer:
    """What is known to be the right answer to the question of a run."""

    is_right: Callable[[Answer], bool]
    """Returns whether an answer is exactly the right one."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """The label of each right value, by the value as question files write it."""

    def text_beside(self, answer: Answer | None) -> str:
        """Return the first right values in one line, to be shown beside an answer.

        A label that another right value or a value of the answer has too is followed by the value
        itself in brackets: "Dune (http://e/dune2)".
        """
        labels = dict(self.labels)
        if answer is not None:
            for value in answer.values:
                labels.setdefault(str(value.term), value.label)

        def label_with_value(value: str) -> str:
            """Return "LABEL (VALUE)"; the value alone if the label is the same."""
            if labels[value] == value:
                return value
            return f"{labels[value]} ({value})"

        names = tell_apart(labels, (labels.__getitem__, label_with_value))
        return list_first(names[value] for value in self.labels)


class LinkedIris(NamedTuple):
    """What a run linked, and what it could have linked, as IRIs."""

    vertices: frozenset[str]
    predicates: frozenset[str]
    vertex_candidates: frozenset[str]
    predicate_candidates: frozenset[str]


class Rung(NamedTuple):
    """Gold values for some steps of a run."""

    agent: str
    """The agent to blame if these values are what makes the answer right."""
    values: Mapping[str, Any]
    """By step key."""
    stage: str = ""
    """The stage to blame; empty if it is the one of the agent, see ``System.stage_by_agent``."""


@frozen
class GoldDecisions:
    """What a gold query means to the agents of a system."""

    ladder: Mapping[str, Callable[[Any, GoldQuery], Rung | None]]
    """The rungs of the oracle ladder by name, in flow order.

    Each function gets a Run that has the gold values of all earlier rungs. It returns None if the
    run decided as gold does.
    """
    linked: Callable[[Any], LinkedIris]
    """Returns what a Run linked, as far as it was executed."""
    stages: Mapping[str, str] = field(default_factory=dict)
    """The agents of each stage, with spaces between, where a paper counts other stages than
    ``System.agents`` has. A supervisor of several stages is in none."""


def collect_iris(outputs: Iterable[Any], read: Callable[[Any], Iterable[Any]]) -> frozenset[str]:
    """Return the IRIs of what a function reads from any of some outputs, as texts.

    It reads IRIs, or things with an ``iri``.
    """
    things = chain.from_iterable(map(read, outputs))
    return frozenset(str(getattr(thing, "iri", thing)) for thing in things)


def get_output(run: Any, key: str) -> Any:
    """Return the output of a step of a Run; None if there is no such step or it is not done."""
    step = run.steps_by_key.get(key)
    if step is None or not step.done:
        return None
    return step.output


def list_outputs(run: Any, agent: str) -> list[Any]:
    """Return the outputs of the steps of an agent that are done, in the order of a Run."""
    return [step.output for step in run.steps if step.agent == agent and step.done]


def parse_gold_query(sparql: str, vocabulary: Vocabulary) -> GoldQuery | None:
    """Take a gold query apart into triple patterns and the unknown that is asked for.

    Patterns whose predicate is a variable, or is a label, a description or noise in the vocabulary,
    are left out. The target is the first selected variable that is subject or object of one of the
    other patterns, else the first unknown in them; a boolean query has none.

    Returns None for a query that cannot be taken apart, or that has no pattern or no target.
    """
    try:
        parts = analyze_query(sparql)
    except GraphError:
        return None
    patterns = [each for each in parts.patterns if _is_about_question(each, vocabulary)]
    if not patterns:
        return None

    target = ""
    if parts.kind != "boolean":
        unknowns = [end for end in _ends_of(patterns) if end.startswith("?")]
        candidates = [name for name in parts.projected_variables if name in unknowns]
        candidates += unknowns
        if not candidates:
            return None
        target = candidates[0]
    return GoldQuery(sparql, parts.kind, target, tuple(patterns))


def _is_about_question(pattern: TriplePattern, vocabulary: Vocabulary) -> bool:
    """Return whether the predicate of a pattern is an IRI that the vocabulary does not exclude."""
    _, predicate, _ = pattern
    if not predicate.startswith("<"):
        return False
    return URIRef(predicate[1:-1]) not in vocabulary.excluded_predicates


def _ends_of(patterns: Iterable[TriplePattern]) -> list[str]:
    """Return subject and object of each pattern, in order; ends that occur again are repeated."""
    ends = []
    for subject, _, object_ in patterns:
        ends += [subject, object_]
    return ends


MAX_ALIGNED_FACTS = 4
"""Facts that are compared with a gold query in every order."""


@frozen
class WordedFact(Record):
    """What a system read in a question: a relation between two ends in words, unknowns as "?x"."""

    subject: str
    relation: str
    object: str

    @property
    def ends(self) -> tuple[str, str]:
        """The subject and the object."""
        return self.subject, self.object

    @property
    def as_tuple(self) -> tuple[str, str, str]:
        """Subject, relation and object."""
        return self.subject, self.relation, self.object

    def __str__(self) -> str:
        return f"⟨{self.subject}, {self.relation}, {self.object}⟩"


F = TypeVar("F", bound=WordedFact)


@frozen
class Alignment(Generic[F]):
    """A way in which facts are the patterns of a gold query."""

    ends: Mapping[str, str]
    """The gold term of each end of the facts."""
    facts: Mapping[F, tuple[TriplePattern, Direction]]
    """For each fact a pattern, and the direction from the fact's subject."""


def align_facts(facts: Sequence[F], target: str, gold: GoldQuery) -> Alignment[F] | None:
    """Return the alignment of facts with the patterns of a gold query whose names are most similar.

    ``target`` is the unknown that the facts ask for; empty if it is not known. Every order of the
    patterns and every direction is tried. None is returned if none fits, and for a gold query of
    another number of patterns, of more than MAX_ALIGNED_FACTS patterns, or with a literal. Of
    equally similar ones the first is returned.
    """
    number = len(gold.patterns)
    if number != len(facts) or number > MAX_ALIGNED_FACTS:
        return None
    if any(map(has_literal, gold.patterns)):
        return None
    alignments = _find_alignments(facts, target, gold)
    similarity = partial(_name_similarity, names=gold.names)
    return max(alignments, key=similarity, default=None)


def _find_alignments(facts: Sequence[F], target: str, gold: GoldQuery) -> Iterator[Alignment[F]]:
    """Yield each way in which facts can be the patterns of a gold query.

    Each order of the patterns is tried with each direction of every fact, see ``_align_ends``.
    """
    both: tuple[Direction, Direction] = ("out", "in")
    for patterns in permutations(gold.patterns):
        for directions in product(both, repeat=len(patterns)):
            pairs = zip(patterns, directions, strict=True)
            pattern_of = dict(zip(facts, pairs, strict=True))
            ends = _align_ends(pattern_of, target, gold)
            if ends:
                yield Alignment(ends, pattern_of)


def _align_ends(
    facts: Mapping[F, tuple[TriplePattern, Direction]], target: str, gold: GoldQuery
) -> Mapping[str, str]:
    """Return the gold term of each end of the facts; an empty mapping if the patterns do not fit them.

    ``facts`` has a pattern and a direction for each fact. They fit if entities stand for vertices,
    unknowns for unknowns, ``target`` for the gold target, each end always for one term, and no two
    ends for the same term.
    """
    ends = {}
    if target:
        ends[target] = gold.target
    for fact, (pattern, direction) in facts.items():
        subject, _, object_ = pattern
        terms = (subject, object_) if direction == "out" else (object_, subject)
        for end, term in zip(fact.ends, terms, strict=True):
            if _is_unknown(end) != _is_unknown(term) or ends.setdefault(end, term) != term:
                return {}
    is_one_to_one = len(set(ends.values())) == len(ends)
    return ends if is_one_to_one else {}


def _name_similarity(alignment: Alignment[F], names: Mapping[str, str]) -> float:
    """Return the sum of the similarities of relations and entities to the names of their gold terms.

    Each similarity is the ratio of matching characters, 0 to 1, regardless of letter case. Unknowns
    do not count. A term without a name is compared as it is written.
    """
    pairs = []
    for fact, (pattern, _) in alignment.facts.items():
        pairs.append((fact.relation, pattern[1]))
    for end, term in alignment.ends.items():
        if not _is_unknown(end):
            pairs.append((end, term))
    similarity = 0.0
    for words, term in pairs:
        name = names.get(term, term)
        similarity += SequenceMatcher(None, words.casefold(), name.casefold()).ratio()
    return similarity


def has_literal(pattern: TriplePattern) -> bool:
    """Return whether a term of a pattern is neither an IRI nor an unknown."""
    return any(term[0] not in "<?" for term in pattern)


def reword_fact(
    fact: F, alignment: Alignment[F], question: str, names: Mapping[str, str]
) -> tuple[str, str, str]:
    """Return subject, relation and object of an aligned fact in words of the question.

    A relation keeps its words if the question has any of them, else it is replaced by the name of
    the gold predicate. Each end keeps its words or becomes the label of its gold vertex, as
    ``_choose_words`` decides. Letter case does not count.
    """
    question = question.casefold()
    (_, predicate, _), _ = alignment.facts[fact]
    ends = []
    for end in fact.ends:
        label = names.get(alignment.ends[end], end)
        ends.append(_choose_words(end, label, question))
    subject, object_ = ends
    relation = fact.relation
    if not _contains_word(relation, question):
        relation = names.get(predicate, relation)
    return subject, relation, object_


def _choose_words(words: str, label: str, question: str) -> str:
    """Return the words of an end, or the label of its gold vertex instead.

    The label is returned if the question has none of the words, or has the whole label: the fact
    then has too much or too little of it. An unknown is returned as it is. ``question`` is in lower
    case.
    """
    if _is_unknown(words) or words.casefold() == label.casefold():
        return words
    if label.casefold() in question or not _contains_word(words, question):
        return label
    return words


def _contains_word(words: str, question: str) -> bool:
    """Return whether a question has the beginning of one of the words: its first four letters.

    Words of less than three letters do not count. Four letters are enough, since the question may
    have another ending of the word. ``question`` is in lower case.
    """
    long_words = re.findall(r"\w{3,}", words.casefold())
    return any(word[:4] in question for word in long_words)


def _is_unknown(name: str) -> bool:
    return name.startswith("?")
