"""Topic entity: the names that a question is about, marked in it with square brackets."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches

from kgwb.flow import Context, Link, Value
from kgwb.run import Run, agent
from kgwb.run.ask import Check, Reply, ask
from kgwb.systems.dog.records import MARKED, Focus, Head, Topics, plain
from kgwb.systems.linking import link_entity


class TopicReply(Reply):
    """The names in the question, as written there."""

    entities: list[str]


def problems(topics: Topics, question: str) -> Iterator[str]:
    """What is wrong with topic entities put in by hand: each must be marked in the question, and no other."""
    marked = MARKED.findall(topics.question)
    if not topics.entities:
        yield "no topic entity: a walk over the graph has to begin somewhere"
    yield from (f"[{name}] is not in the question" for name in topics.entities if name not in marked)
    yield from (f"[{name}] is marked and no topic entity" for name in marked if name not in topics.entities)


@agent("topic_entity", check=problems, kind="model")
def find_topics(question: str, run: Run) -> Topics:
    """All topic entities, not only the first; a question that marks its own costs no model call."""
    if run.dialogue.turns:
        run.note("DoG has no dialogue: the question is read alone")
    if marked := MARKED.findall(question):
        return Topics(question, tuple(dict.fromkeys(marked)))
    checks, last = checks_of(question), lambda reply: bool(_usable(question, reply, run))
    reply = ask("dog/topic_entity", {"question": question}, TopicReply, run, checks=checks, last_resort=last)
    names = _usable(question, reply, run)
    if names != _names(reply):
        run.note(f"taken instead, from the graph's names in the question: {', '.join(names)}")
    return mark(question, names)


def _names(reply: TopicReply) -> list[str]:
    return list(dict.fromkeys(" ".join(name.split()) for name in reply.entities))


def _usable(question: str, reply: TopicReply, run: Run) -> list[str]:
    """The names that stand in the question; for one that does not, the nearest of the graph's that does."""
    names = _names(reply)
    refused = [name for name in names if not name or not _places(question, name)]
    nearest = {name: _nearest(name, question, run) for name in refused}
    written = dict.fromkeys(filter(None, (nearest.get(name, name) for name in names)))
    return [name for name in written if not any(name != longer and name in longer for longer in written)]


def _nearest(name: str, question: str, run: Run) -> str:
    """The name of the graph in the question that is spelled most like this one; empty if none is like it."""
    words = [match.span() for match in re.finditer(r"\w+", question)]
    starts = enumerate(words)
    spans = [question[a:b] for n, (a, _) in starts for _, b in words[n : n + MOST_WORDS]]
    there = {plain(label): label for label in run.kg.exact(spans)}
    sought = plain(name)[:MOST_LETTERS]
    inside = [label for label in there if {*label.split()} <= {*re.findall(r"\w+", sought)}]
    near = get_close_matches(sought, there, 1) or sorted(inside, key=len)[-1:]
    return there[near[0]] if near else ""


MOST_WORDS, MOST_LETTERS = 8, 200
"""Words of a name of the graph that is looked for in a question, and letters of the name it shall be like."""


def checks_of(question: str) -> tuple[Check[TopicReply], ...]:
    """At least one name, as a walk has to begin somewhere; each in the question, and none inside another."""
    problem = f"no entity is named: name what {question!r} is about"

    def written(reply: TopicReply) -> str:
        names = [" ".join(name.split()) for name in reply.entities]
        lost = [name for name in names if not name or not _places(question, name)]
        if lost:
            return f"{', '.join(map(repr, lost))} is not in the question: copy the names from {question!r}"
        inside = [name for name in names for longer in names if name != longer and name in longer]
        return f"{inside[0]!r} is part of another name" if inside else ""

    at_least_one = Check[TopicReply]("at least one entity", lambda reply: "" if reply.entities else problem)
    return at_least_one, Check("copied from the question", written)


def mark(question: str, names: Sequence[str]) -> Topics:
    """The question with the first mention of each name in brackets, spelled as the question spells it."""
    spelled = []
    for name in sorted(names, key=len, reverse=True):
        start, end = _places(question, name)[0]
        spelled.append(question[start:end])
        question = f"{question[:start]}[{question[start:end]}]{question[end:]}"
    return Topics(question, tuple(sorted(dict.fromkeys(spelled), key=question.index)))


def _places(question: str, name: str) -> list[tuple[int, int]]:
    """Where a name stands as whole words, else anywhere; letter case aside."""
    written = re.escape(name)
    for pattern in (rf"(?<!\w){written}(?!\w)", written):
        if spans := [match.span() for match in re.finditer(pattern, question, re.IGNORECASE)]:
            return spans
    return []


def begin(topics: Topics, run: Run) -> tuple[Focus, tuple[Link, ...]]:
    """Where the walk begins: the vertex of each topic entity, and the links of all."""
    links = run.map(link_entity, topics.entities, MARKED.sub(r"\1", topics.question), Context())
    heads = (
        Head(link.entity, (Value(link.vertex.iri, link.vertex.label),), (link.vertex.iri,))
        for link in links
        if link.vertex
    )
    return Focus(topics.question, tuple(heads)), links
