"""Producer: the answer in sentences, each with a support set, every element of which is checked."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Literal

import rdflib

from kgwb.flow import NOT_HERE, Answer, Kind, Triple, Value
from kgwb.kg.queries import named, there
from kgwb.run import Run, agent
from kgwb.run.ask import Reply, ask
from kgwb.systems.robodata.local_graph import LocalGraph
from kgwb.systems.robodata.records import Position, Produced, Sentence
from kgwb.systems.robodata.settings import settings_of
from kgwb.systems.robodata.states import variables


class SentenceReply(Reply):
    """A sentence with its support set: triples of three ids, or single nodes."""

    text: str
    support: list[list[str]]


class ProduceReply(Reply):
    """The answer in sentences, and as nodes."""

    thought: str
    sentences: list[SentenceReply]
    kind: Literal["things", "count", "yes", "no", "nothing"]
    answers: list[str]
    missing: str


def problems(produced: Produced, position: Position) -> Iterator[str]:
    """What is wrong with an answer put in by hand."""
    used = {part for each in produced.sentences for part in (*each.support, *each.nodes)}
    for part in {*used, *produced.answers} - {*position.local.support, *position.local.nodes}:
        yield f"{part} is not in the local graph"


@agent("produce", check=problems, kind="model")
def produce(position: Position, run: Run) -> Produced:
    """Sentences with their support sets, of the local graph alone."""
    local = position.local
    if not local:
        return Produced((), "nothing", missing="nothing in the graph was found to answer it")
    reply = ask("robodata/produce", variables(position, run), ProduceReply, run)
    if lost := [text for text in reply.answers if not local.found([text])]:
        run.note(f"no node of the local graph, and left out of the answers: {', '.join(lost)}")
    answers = dict.fromkeys(node for text in reply.answers for (node,) in local.found([text])[:1])
    sentences = tuple(checked(each, local) for each in reply.sentences)
    return Produced(sentences, reply.kind, tuple(answers), reply.missing)


def checked(reply: SentenceReply, local: LocalGraph) -> Sentence:
    """A sentence with the elements of its support set that the local graph has, and those that it has not."""
    found = [part for element in reply.support for part in local.found(element)]
    triples = tuple((s, rdflib.URIRef(p), o) for s, p, o in (part for part in found if len(part) == 3))
    nodes = tuple(part[0] for part in found if len(part) == 1)
    failed = (" | ".join(element) for element in reply.support if not local.found(element))
    return Sentence(" ".join(reply.text.split()), triples, nodes, tuple(failed))


@agent("answer", kind="sparql")
def conclude(position: Position, produced: Produced, run: Run) -> Answer:
    """The answer with the triples it stands on, checked against the graph itself too."""
    used = dict.fromkeys(triple for sentence in produced.sentences for triple in sentence.support)
    held = there(run.kg, used) if used else set()
    sentences = [in_graph(sentence, position.local, held) for sentence in produced.sentences]
    supports = [sentence.support for sentence in sentences]
    whole = tuple(triple for triple in used if triple in held)
    values: tuple[Value, ...] = ()
    if produced.kind == "things":
        chosen = [value for value in position.local.values if value.term in produced.answers]
        for v in chosen:
            near = (s for s in supports if any(v.term in t[::2] for t in s))
            values = (*values, replace(v, support=tuple(dict.fromkeys(t for s in near for t in s))))
    elif produced.kind != "nothing":
        result = len(produced.answers) if produced.kind == "count" else produced.kind == "yes"
        values = (Value(rdflib.Literal(result), str(result).lower(), whole),)
    limit = f"ended at the limit of {settings_of(run).turn_limit} turns, with what was found by then"
    ended = "" if position.state == "PRODUCE" else limit
    text = " ".join(f"{each} ({number})" for number, each in enumerate(sentences, 1))
    if not values:
        why = produced.missing or text or "no answer is a node of the local graph"
        return Answer("list", reason="; ".join(filter(None, (f"{NOT_HERE}: {why}", ended))))
    kinds: dict[str, Kind] = {"things": "list", "count": "count"}
    text, kind = f"{text} ({ended})" if ended else text, kinds.get(produced.kind, "boolean")
    return named(run.kg, Answer(kind, values, text=text, reason=produced.missing))


def in_graph(sentence: Sentence, local: LocalGraph, held: Collection[Triple]) -> Sentence:
    """The sentence with only that support which the graph has: a local graph may be edited by hand."""
    kept = tuple(triple for triple in sentence.support if triple in held)
    lost = (" | ".join(map(local.ids.write, triple)) for triple in sentence.support if triple not in held)
    return replace(sentence, support=kept, failed=(*sentence.failed, *lost))
