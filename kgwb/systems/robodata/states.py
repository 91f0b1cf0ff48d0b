"""The states, each an agent that asks a model: those that lead on, PRODUCE, and metacognition."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Any, Literal, Union

import rdflib
from pydantic import BaseModel, ConfigDict, create_model
from rdflib import URIRef

from kgwb.flow import NOT_IN_GRAPH, Answer, AnswerKind, Value
from kgwb.kg.queries import existing_triples, with_display_names
from kgwb.run import Run, agent
from kgwb.run.agents import Agent
from kgwb.run.ask import Check, Reply, ask, schema_config
from kgwb.systems.robodata.local_graph import LocalGraph
from kgwb.systems.robodata.records import (
    TOOLS_BY_STATE,
    TRANSITIONS,
    Decision,
    Position,
    Produced,
    Sentence,
    State,
)
from kgwb.systems.robodata.settings import RoboDataSettings
from kgwb.terms import Triple
from kgwb.text import pluralize

PROMPT_BY_STATE: dict[State, tuple[str, str]] = {
    "EVAL_LOCAL": ("robodata/eval_local", "Whether the local graph is enough to answer."),
    "LOCAL": (
        "robodata/local",
        "A closer look at a local graph that is too large to be shown whole.",
    ),
    "REMOTE": ("robodata/remote", "A look into the remote graph for what is missing."),
    "EVAL_REMOTE": ("robodata/eval_remote", "Whether what was found belongs into the local graph."),
    "UPDATE": ("robodata/update", "What is fetched into the local graph."),
}
"""The prompt of each state that asks, and what it is for."""


def _make_reply_class(state: State) -> type[BaseModel]:
    """What a model replies in a state: a thought, uses of its tools, and the next state."""
    after: Any = Literal[TRANSITIONS[state]]
    fields: dict[str, Any] = {"thought": (str, ...)}
    if state in TOOLS_BY_STATE:
        action: Any = Union[TOOLS_BY_STATE[state]]  # noqa: UP007  # of a tuple
        fields["actions"] = (list[action], ...)
    fields["next"] = (after, ...)
    name, config = f"{state.title().replace('_', '')}Reply", ConfigDict(extra="forbid")
    return create_model(name, __config__=config, __module__=__name__, **fields)


REPLY_CLASS_BY_STATE = {state: _make_reply_class(state) for state in PROMPT_BY_STATE}
EvalLocalReply, LocalReply, RemoteReply, EvalRemoteReply, UpdateReply = (
    REPLY_CLASS_BY_STATE.values()
)


def make_decider(state: State) -> Agent:
    """The agent of a state."""

    def problems(decision: Decision, place: str, position: Position) -> Iterator[str]:
        if decision.next not in TRANSITIONS[state]:
            yield f"{state} does not lead to {decision.next}"
        if not all(
            isinstance(action, TOOLS_BY_STATE.get(state, ())) for action in decision.actions
        ):
            yield f"{state} has no such tool"

    def decide(place: str, position: Position, run: Run) -> Decision:
        if not position.visits:  # the local graph is empty, and nothing was looked for
            return Decision("the local graph is empty", "REMOTE")
        most, known = RoboDataSettings.of_run(run).tool_uses, make_prompt_variables(position, run)
        known |= (
            {"tool_uses": str(most)}
            if state in TOOLS_BY_STATE
            else {"advice": position.advice or "none"}
        )
        few = Check[Any](
            "not too many tool uses", lambda r: f"more than {most}" * (len(r.actions) > most)
        )
        checks = (few,) if state in TOOLS_BY_STATE else ()
        reply: Any = ask(
            PROMPT_BY_STATE[state][0], known, REPLY_CLASS_BY_STATE[state], run, checks=checks
        )
        return Decision(
            " ".join(reply.thought.split()), reply.next, tuple(getattr(reply, "actions", ()))
        )

    decide.__doc__ = PROMPT_BY_STATE[state][1]
    return agent(state.lower(), subject="place", check=problems, kind="model")(decide)


DECIDERS: dict[State, Agent] = {state: make_decider(state) for state in PROMPT_BY_STATE}


def make_prompt_variables(position: Position, run: Run) -> dict[str, str]:
    """What every state is shown: self-reflection, memory, the local graph, results, and the turns left."""
    settings = RoboDataSettings.of_run(run)
    left = settings.turn_limit - len(position.visits)
    urgency = "high" if left <= 6 else "medium" if left <= 10 else "low"
    only = "; only connect what is there already, and produce" if left <= 3 else ""
    return {
        "question": position.question,
        "thought": position.visits[-1].thought if position.visits else "none",
        "memory": position.format_memory(settings.memory_chars),
        "graph": position.local.format_for_prompt(settings.shown_chars),
        "results": position.format_results(settings.shown_chars),
        "turns": f"{pluralize(left, 'turn')} left, PRODUCE with them; urgency {urgency}{only}",
    }


class AssessmentReply(Reply):
    """The strategy that the turns show."""

    model_config = schema_config("AssessmentReply", "The strategy that the turns show.")

    strategy: str


class ObservationReply(Reply):
    """What to do otherwise; nothing if the strategy is sound."""

    model_config = schema_config(
        "ObservationReply", "What to do otherwise; nothing if the strategy is sound."
    )

    judgement: str
    advice: str


@agent("assessment", subject="place", kind="model")
def assess_strategy(place: str, position: Position, run: Run) -> str:
    """The strategy that the turns show so far (paper: strategic assessment)."""
    known = make_prompt_variables(position, run) | {
        "statistics": f"{position.statistics}. {position.usage_counts}"
    }
    return ask("robodata/assessment", known, AssessmentReply, run).strategy


@agent("observation", subject="place", kind="model")
def advise_strategy(place: str, position: Position, strategy: str, run: Run) -> str:
    """What to do otherwise (paper: meta-observation); empty if nothing."""
    known = make_prompt_variables(position, run) | {
        "strategy": strategy,
        "previous": position.advice or "none",
    }
    return ask("robodata/observation", known, ObservationReply, run).advice


# --- PRODUCE: the answer in sentences, each with a support set, every element of which is checked


class SentenceReply(Reply):
    """A sentence with its support set: triples of three ids, or single nodes."""

    model_config = schema_config(
        "SentenceReply", "A sentence with its support set: triples of three ids, or single nodes."
    )

    text: str
    support: list[list[str]]


class ProduceReply(Reply):
    """The answer in sentences, and as nodes."""

    model_config = schema_config("ProduceReply", "The answer in sentences, and as nodes.")

    thought: str
    sentences: list[SentenceReply]
    kind: Literal["things", "count", "yes", "no", "nothing"]
    answers: list[str]
    missing: str


def find_answer_problems(produced: Produced, position: Position) -> Iterator[str]:
    """What is wrong with an answer put in by hand."""
    used = {part for each in produced.sentences for part in (*each.support, *each.nodes)}
    for part in {*used, *produced.answers} - {*position.local.support, *position.local.nodes}:
        yield f"{part} is not in the local graph"


@agent("produce", check=find_answer_problems, kind="model")
def produce_answer(position: Position, run: Run) -> Produced:
    """Sentences with their support sets, of the local graph alone."""
    local = position.local
    if not local:
        return Produced((), "nothing", missing="nothing in the graph was found to answer it")
    reply = ask("robodata/produce", make_prompt_variables(position, run), ProduceReply, run)
    if lost := [text for text in reply.answers if not local.find_elements([text])]:
        run.note(f"no node of the local graph, and left out of the answers: {', '.join(lost)}")
    answers = dict.fromkeys(
        node for text in reply.answers for (node,) in local.find_elements([text])[:1]
    )
    sentences = tuple(resolve_support(each, local) for each in reply.sentences)
    return Produced(sentences, reply.kind, tuple(answers), reply.missing)


def resolve_support(reply: SentenceReply, local: LocalGraph) -> Sentence:
    """A sentence with the elements of its support set that the local graph has, and those that it has not."""
    parts = [part for element in reply.support for part in local.find_elements(element)]
    triples = tuple((part[0], URIRef(part[1]), part[2]) for part in parts if len(part) == 3)
    nodes = tuple(part[0] for part in parts if len(part) == 1)
    failed = (" | ".join(element) for element in reply.support if not local.find_elements(element))
    return Sentence(" ".join(reply.text.split()), triples, nodes, tuple(failed))


@agent("answer", kind="sparql")
def build_answer(position: Position, produced: Produced, run: Run) -> Answer:
    """The answer with the triples it stands on, checked against the graph itself too."""
    used = dict.fromkeys(triple for sentence in produced.sentences for triple in sentence.support)
    held = existing_triples(run.kg, used) if used else set()
    sentences = [
        drop_missing_support(sentence, position.local, held) for sentence in produced.sentences
    ]
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
    turns = RoboDataSettings.of_run(run).turn_limit
    limit = f"ended at the limit of {turns} turns, with what was found by then"
    ended = "" if position.state == "PRODUCE" else limit
    text = " ".join(f"{each} ({number})" for number, each in enumerate(sentences, 1))
    if not values:
        why = produced.missing or text or "no answer is a node of the local graph"
        return Answer("list", reason="; ".join(filter(None, (f"{NOT_IN_GRAPH}: {why}", ended))))
    kinds: dict[str, AnswerKind] = {"things": "list", "count": "count"}
    text, kind = f"{text} ({ended})" if ended else text, kinds.get(produced.kind, "boolean")
    return with_display_names(run.kg, Answer(kind, values, text=text, reason=produced.missing))


def drop_missing_support(
    sentence: Sentence, local: LocalGraph, existing_triples: Collection[Triple]
) -> Sentence:
    """The sentence with only that support which the graph has: a local graph may be edited by hand."""
    kept = tuple(triple for triple in sentence.support if triple in existing_triples)
    lost = (
        " | ".join(map(local.id_mapping.format_id, triple))
        for triple in sentence.support
        if triple not in existing_triples
    )
    return replace(sentence, support=kept, failed=(*sentence.failed, *lost))
