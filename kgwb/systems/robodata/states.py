"""The states of the machine, and metacognition, as agents that ask a model; the answer."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from itertools import chain
from typing import Any, Literal, Union

import rdflib
from pydantic import BaseModel, ConfigDict, create_model
from rdflib import URIRef

from kgwb.build import (
    NOT_IN_GRAPH,
    Agent,
    Answer,
    AnswerKind,
    Check,
    Reply,
    Run,
    Term,
    Triple,
    Value,
    agent,
    ask_model,
    schema_config,
)
from kgwb.build.graph import existing_triples, with_display_names
from kgwb.build.text import pluralize
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

PROMPT_BY_STATE: dict[State, str] = {
    "EVAL_LOCAL": "robodata/eval_local",
    "LOCAL": "robodata/local",
    "REMOTE": "robodata/remote",
    "EVAL_REMOTE": "robodata/eval_remote",
    "UPDATE": "robodata/update",
}
"""The prompts of the states that ask a model for a decision."""
PURPOSE_BY_STATE: dict[State, str] = {
    "EVAL_LOCAL": "Decide whether the local graph is enough to answer.",
    "LOCAL": "Look closer at a local graph that is too large to be shown whole.",
    "REMOTE": "Look for what is missing in the remote graph.",
    "EVAL_REMOTE": "Decide whether the results belong into the local graph.",
    "UPDATE": "Choose what is fetched into the local graph.",
}
"""The docstrings of the agents of these states."""
ANSWER_KINDS: dict[str, AnswerKind] = {
    "things": "list",
    "count": "count",
    "yes": "boolean",
    "no": "boolean",
}
"""The kind of an answer by the kind that PRODUCE replies."""
HIGH_URGENCY_TURNS = 6
MEDIUM_URGENCY_TURNS = 10
"""The urgency is high with so many turns left, or medium (reference code)."""
LAST_TURNS = 3
"""With so many turns left, nothing new is to be looked for (reference code)."""


# Decisions


def _make_reply_class(state: State) -> type[BaseModel]:
    """Return the reply class of a state: a thought, uses of its tools if any, the next state.

    Other fields make a reply invalid.
    """
    fields: dict[str, Any] = {"thought": (str, ...)}
    if state in TOOLS_BY_STATE:
        action: Any = Union[TOOLS_BY_STATE[state]]  # noqa: UP007  # a tuple of types
        fields["actions"] = (list[action], ...)
    next_state: Any = Literal[TRANSITIONS[state]]
    fields["next"] = (next_state, ...)
    name = state.title().replace("_", "")
    config = ConfigDict(extra="forbid")
    return create_model(f"{name}Reply", __config__=config, __module__=__name__, **fields)


REPLY_CLASS_BY_STATE = {state: _make_reply_class(state) for state in PROMPT_BY_STATE}
EvalLocalReply, LocalReply, RemoteReply, EvalRemoteReply, UpdateReply = (
    REPLY_CLASS_BY_STATE.values()
)


def make_decider(state: State) -> Agent:
    """Return the agent of a state: it asks the model for tool uses and the next state.

    In the first turn it goes to REMOTE without asking, because the local graph is empty (paper). A
    state with tools may use at most the setting ``tool_uses``; another one is shown the advice. The
    agent's check refuses a decision whose next state or tools are not those of the state.
    """
    tools = TOOLS_BY_STATE.get(state, ())

    def find_decision_problems(decision: Decision, place: str, position: Position) -> Iterator[str]:
        """Yield what is wrong with a decision that a person put in.

        Its next state must be one that may follow, and its tool uses must be of the state's tools.
        """
        if decision.next not in TRANSITIONS[state]:
            yield f"{state} does not lead to {decision.next}"
        if not all(isinstance(action, tools) for action in decision.actions):
            yield f"{state} has no such tool"

    def decide(place: str, position: Position, run: Run) -> Decision:
        """Return the decision of the model, or to go to REMOTE in the first turn."""
        if not position.visits:
            return Decision("the local graph is empty", "REMOTE")
        variables = make_prompt_variables(position, run)
        checks: list[Check[Any]] = []
        if tools:
            limit = RoboDataSettings.of_run(run).tool_uses
            variables["tool_uses"] = str(limit)
            checks.append(_limit_tool_uses(limit))
        else:
            variables["advice"] = position.advice or "none"
        prompt = PROMPT_BY_STATE[state]
        reply: Any = ask_model(prompt, variables, REPLY_CLASS_BY_STATE[state], run, checks=checks)
        thought = " ".join(reply.thought.split())
        actions = tuple(reply.actions) if tools else ()
        return Decision(thought, reply.next, actions)

    decide.__doc__ = PURPOSE_BY_STATE[state]
    decorate = agent(state.lower(), subject="place", check=find_decision_problems, kind="model")
    return decorate(decide)


def _limit_tool_uses(limit: int) -> Check[Any]:
    """Return the check that a reply has at most so many tool uses."""

    def find_problem(reply: Any) -> str:
        return f"more than {limit}" if len(reply.actions) > limit else ""

    return Check("not too many tool uses", find_problem)


DECIDERS: dict[State, Agent] = {state: make_decider(state) for state in PROMPT_BY_STATE}


def make_prompt_variables(position: Position, run: Run) -> dict[str, str]:
    """Return the variables that every prompt has.

    They are the question, the last thought, memory, local graph, results and turns left. Memory,
    local graph and results are cut by the settings. The number of turns left has its urgency with
    it; in the published code only metacognition is shown this.
    """
    settings = RoboDataSettings.of_run(run)
    turns_left = settings.turn_limit - len(position.visits)
    urgency = "low"
    if turns_left <= MEDIUM_URGENCY_TURNS:
        urgency = "medium"
    if turns_left <= HIGH_URGENCY_TURNS:
        urgency = "high"
    turns = f"{pluralize(turns_left, 'turn')} left, PRODUCE with them; urgency {urgency}"
    if turns_left <= LAST_TURNS:
        turns += "; only connect what is there already, and produce"
    return {
        "question": position.question,
        "thought": position.visits[-1].thought if position.visits else "none",
        "memory": position.format_memory(settings.memory_chars),
        "graph": position.local.format_for_prompt(settings.shown_chars),
        "results": position.format_results(settings.shown_chars),
        "turns": turns,
    }


# Metacognition


class AssessmentReply(Reply):
    """The strategy that the turns show."""

    model_config = schema_config("AssessmentReply", "The strategy that the turns show.")

    strategy: str


class ObservationReply(Reply):
    """What to do differently. Empty if the strategy is good."""

    model_config = schema_config(
        "ObservationReply", "What to do otherwise; nothing if the strategy is sound."
    )

    judgement: str
    advice: str


@agent("assessment", subject="place", kind="model")
def assess_strategy(place: str, position: Position, run: Run) -> str:
    """Ask the model which strategy the turns so far show (paper: strategic assessment)."""
    variables = make_prompt_variables(position, run)
    variables["statistics"] = f"{position.statistics}. {position.usage_counts}"
    return ask_model("robodata/assessment", variables, AssessmentReply, run).strategy


@agent("observation", subject="place", kind="model")
def advise_strategy(place: str, position: Position, strategy: str, run: Run) -> str:
    """Ask the model what to do differently (paper: meta-observation).

    It is shown the assessed strategy and its previous advice. Returns "" if the strategy is good.
    Raises InvalidReplyError without a valid reply.
    """
    variables = make_prompt_variables(position, run)
    variables["strategy"] = strategy
    variables["previous"] = position.advice or "none"
    return ask_model("robodata/observation", variables, ObservationReply, run).advice


# PRODUCE


class SentenceReply(Reply):
    """A sentence with its support set. An element is a triple of three ids, or a single node."""

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
    """Yield the elements that are not in the local graph, of an answer that a person put in.

    Elements are the answers, and the triples and nodes of the support sets. Each is named once.
    """
    elements: list[Any] = [*produced.answers]
    for sentence in produced.sentences:
        elements += (*sentence.support, *sentence.nodes)
    for element in dict.fromkeys(elements):
        if element not in (*position.local.support, *position.local.nodes):
            yield f"{element} is not in the local graph"


@agent("produce", check=find_answer_problems, kind="model")
def produce_answer(position: Position, run: Run) -> Produced:
    """Ask the model for sentences, each with its support set, from the local graph alone.

    If the local graph is empty, the model is not asked, and the kind is "nothing". Answers that are
    not nodes of the local graph are left out and noted. An answer that several nodes have as their
    text stands for all of them, which is noted too. Raises InvalidReplyError.
    """
    local = position.local
    if not local:
        return Produced((), "nothing", missing="nothing in the graph was found to answer it")
    reply = ask_model("robodata/produce", make_prompt_variables(position, run), ProduceReply, run)
    answers: dict[Term, None] = {}
    unknown = []
    for id_ in reply.answers:
        nodes = local.find_elements([id_])
        if not nodes:
            unknown.append(id_)
        if len(nodes) > 1:
            run.note(f"{id_} is the text of {len(nodes)} nodes; all of them are taken as answers")
        answers.update(dict.fromkeys(node for (node,) in nodes))
    if unknown:
        run.note(
            f"answers that are not nodes of the local graph were left out: {', '.join(unknown)}"
        )
    sentences = [resolve_support(sentence, local) for sentence in reply.sentences]
    return Produced(tuple(sentences), reply.kind, tuple(answers), reply.missing)


def resolve_support(reply: SentenceReply, local: LocalGraph) -> Sentence:
    """Return a sentence with the triples and nodes of the local graph that its support set names.

    Elements that the local graph does not have are in ``failed``. Spaces in the text become single
    ones.
    """
    triples: list[Triple] = []
    nodes: list[Term] = []
    failed = []
    for ids in reply.support:
        elements = local.find_elements(ids)
        if not elements:
            failed.append(" | ".join(ids))
        for element in elements:
            if len(element) == 3:
                subject, predicate, object_ = element
                triples.append((subject, URIRef(predicate), object_))
            else:
                nodes.append(element[0])
    text = " ".join(reply.text.split())
    return Sentence(text, tuple(triples), tuple(nodes), tuple(failed))


@agent("answer", kind="sparql")
def build_answer(position: Position, produced: Produced, run: Run) -> Answer:
    """Return the answer with its support, after checking the support against the remote graph.

    The text has the sentences with numbers. A triple that the remote graph does not have is left
    out of the support and marked beside its sentence. An answer without values has a reason, and no
    text. If the turns were used up, the text or the reason says so.
    """
    used = _join_support(produced.sentences)
    existing = existing_triples(run.kg, used) if used else set()
    sentences = []
    for sentence in produced.sentences:
        sentences.append(drop_missing_support(sentence, position.local, existing))
    text = " ".join(f"{sentence} ({n})" for n, sentence in enumerate(sentences, 1))

    limit_note = ""
    if position.state != "PRODUCE":
        limit = RoboDataSettings.of_run(run).turn_limit
        limit_note = f"ended at the limit of {limit} turns, with what was found by then"
    values = _make_values(position, produced, sentences)
    if not values:
        missing = produced.missing or text or "no answer is a node of the local graph"
        reason = f"{NOT_IN_GRAPH}: {missing}"
        return Answer("list", reason=f"{reason}; {limit_note}" if limit_note else reason)
    if limit_note:
        text += f" ({limit_note})"
    kind = ANSWER_KINDS[produced.kind]
    answer = Answer(kind, tuple(values), text=text, reason=produced.missing)
    return with_display_names(run.kg, answer)


def _make_values(
    position: Position, produced: Produced, sentences: Collection[Sentence]
) -> list[Value]:
    """Return the values of an answer with their support.

    They are the answering nodes, in the order of the local graph, each supported by the sentences
    that have a triple at it; or a count or a truth value, supported by all sentences. A count is
    the number of answering nodes, not what the model says. Empty if there is no answer.
    """
    if produced.kind == "nothing":
        return []
    if produced.kind != "things":
        result = len(produced.answers) if produced.kind == "count" else produced.kind == "yes"
        support = _join_support(sentences)
        return [Value(rdflib.Literal(result), str(result).lower(), support)]
    values = []
    for value in position.local.values:
        if value.term in produced.answers:
            about = []
            for sentence in sentences:
                if any(value.term in triple[::2] for triple in sentence.support):
                    about.append(sentence)
            values.append(replace(value, support=_join_support(about)))
    return values


def _join_support(sentences: Collection[Sentence]) -> tuple[Triple, ...]:
    """Return the triples that support any of the sentences, each once."""
    support = chain.from_iterable(sentence.support for sentence in sentences)
    return tuple(dict.fromkeys(support))


def drop_missing_support(
    sentence: Sentence, local: LocalGraph, existing: Collection[Triple]
) -> Sentence:
    """Return the sentence with its support in the remote graph, the other triples being ``failed``.

    A local graph may have triples that a person put in. Nodes are not checked.
    """
    kept = []
    failed = list(sentence.failed)
    for triple in sentence.support:
        if triple in existing:
            kept.append(triple)
        else:
            failed.append(" | ".join(map(local.id_mapping.format_id, triple)))
    return replace(sentence, support=tuple(kept), failed=tuple(failed))
