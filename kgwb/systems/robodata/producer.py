"""Producer: the answer in sentences, each with a support set, every element of which is checked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal

from pydantic import BaseModel, ConfigDict
from rdflib import Literal as Text

from kgwb.flow import Answer, Kind, Term, Triple, Value
from kgwb.kg.support import named, there
from kgwb.run import Run, agent
from kgwb.run.ask import ask
from kgwb.systems.robodata.local_graph import LocalGraph
from kgwb.systems.robodata.records import Position, Produced, Sentence
from kgwb.systems.robodata.settings import settings_of
from kgwb.systems.robodata.states import variables

NOT_HERE = "not in this graph"


class SentenceReply(BaseModel):
    """A sentence with its support set: triples of three ids, or single nodes."""

    model_config = ConfigDict(extra="forbid")
    text: str
    support: list[list[str]]


class ProduceReply(BaseModel):
    """The answer in sentences, and as nodes."""

    model_config = ConfigDict(extra="forbid")
    thought: str
    sentences: list[SentenceReply]
    kind: Literal["things", "count", "yes", "no", "nothing"]
    answers: list[str]
    missing: str


def problems(produced: Produced, position: Position) -> Iterator[str]:
    """What is wrong with an answer put in by hand."""
    used = {triple for sentence in produced.sentences for triple in sentence.support}
    nodes = {*produced.answers, *(node for sentence in produced.sentences for node in sentence.nodes)}
    for each in (*(used - {*position.local.support}), *(nodes - {*position.local.nodes})):
        yield f"{each} is not in the local graph"


@agent("produce", check=problems, kind="model")
def produce(position: Position, run: Run) -> Produced:
    """Sentences with their support sets, of the local graph alone."""
    if not position.local:
        return Produced((), "nothing", missing="nothing of the graph was found to answer it")
    reply = ask("robodata/produce", variables(position, run), ProduceReply, run)
    nodes = {text: position.local.node(text) for text in reply.answers}
    if lost := [text for text, node in nodes.items() if node is None]:
        run.note(f"no node of the local graph, and left out of the answers: {', '.join(lost)}")
    answers = tuple(dict.fromkeys(node for node in nodes.values() if node is not None))
    sentences = tuple(checked(each, position.local) for each in reply.sentences)
    return Produced(sentences, reply.kind, answers, reply.missing)


def checked(reply: SentenceReply, local: LocalGraph) -> Sentence:
    """A sentence with the elements of its support set that the local graph has, and those that it has not."""
    sentence = Sentence(" ".join(reply.text.split()))
    for element in reply.support:
        triples, node = local.edge(element), local.node(element[0]) if len(element) == 1 else None
        failed = () if triples or node is not None else (" | ".join(element),)
        sentence = replace(
            sentence,
            support=(*sentence.support, *triples),
            nodes=(*sentence.nodes, *([node] if node is not None else [])),
            failed=(*sentence.failed, *failed),
        )
    return sentence


@agent("answer", kind="sparql")
def conclude(position: Position, produced: Produced, run: Run) -> Answer:
    """The answer with the triples it stands on, checked against the graph itself too."""
    used = dict.fromkeys(triple for sentence in produced.sentences for triple in sentence.support)
    held = there(run.kg, used) if used else set()
    sentences = [in_graph(sentence, position.local, held) for sentence in produced.sentences]
    support = tuple(triple for triple in used if triple in held)
    if produced.kind == "things":
        values = tuple(value_of(node, position.local, sentences) for node in produced.answers)
    elif produced.kind == "nothing":
        values = ()
    else:
        count = len(produced.answers) if produced.kind == "count" else produced.kind == "yes"
        values = (Value(Text(count), str(count).lower(), support),)
    ended = (
        "" if position.state == "PRODUCE" else f"ended at the limit of {settings_of(run).turn_limit} turns"
    )
    text = " ".join([*(f"{each} ({number})" for number, each in enumerate(sentences, 1))])
    if not values:
        why = produced.missing or text or "no answer is a node of the local graph"
        return Answer("list", reason="; ".join(filter(None, (f"{NOT_HERE}: {why}", ended))))
    kind: Kind = "list" if produced.kind == "things" else "count" if produced.kind == "count" else "boolean"
    whole = f"{text} ({ended}, with what was found by then)" if ended else text
    return named(run.kg, Answer(kind, values, text=whole, reason=produced.missing))


def in_graph(sentence: Sentence, local: LocalGraph, held: set[Triple]) -> Sentence:
    """The sentence with only that support which the graph has: a local graph may be edited by hand."""
    lost = (" | ".join(map(local.write, triple)) for triple in sentence.support if triple not in held)
    kept = tuple(triple for triple in sentence.support if triple in held)
    return replace(sentence, support=kept, failed=(*sentence.failed, *lost))


def value_of(node: Term, local: LocalGraph, sentences: Sequence[Sentence]) -> Value:
    """A node with the support of the sentences whose support names it."""
    sets = (s.support for s in sentences if any(node in triple[::2] for triple in s.support))
    label = next((value.label for value in local.values if value.term == node), str(node))
    return Value(node, label, tuple(dict.fromkeys(triple for support in sets for triple in support)))
