"""The states of the machine, and metacognition, as agents that ask a model; the answer."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain
from typing import Annotated, Any, Literal, TypeVar, Union

import rdflib
from pydantic import BaseModel, ConfigDict, PlainSerializer, PlainValidator, create_model
from rdflib import URIRef

from kgwb.build import (
    NOT_IN_GRAPH,
    UNLIMITED,
    Agent,
    Answer,
    AnswerKind,
    Check,
    Explanation,
    GoldQuery,
    Graph,
    GraphError,
    Record,
    Reply,
    ResultSet,
    Run,
    Rung,
    Term,
    Tool,
    Triple,
    Value,
    agent,
    ask_model,
    execute_unrecorded,
    existing_triples,
    find_support_by_row,
    get_names_in_rows,
    get_output,
    list_first,
    patterns_to_sparql,
    pluralize,
    read_values,
)
from kgwb.systems.robodata.records import (
    TRANSITIONS,
    LocalGraph,
    Observation,
    Position,
    Produced,
    ProducedKind,
    Sentence,
    State,
)
from kgwb.systems.robodata.settings import RoboDataSettings
from kgwb.systems.robodata.tools import FETCHING_TOOLS, LOCAL_TOOLS, REMOTE_TOOLS, UPDATE_TOOLS

ReplyClass = TypeVar("ReplyClass", bound=BaseModel)
STATES_AFTER_REMOTE: dict[str, tuple[State, ...]] = {
    "remote_or_eval_remote": ("REMOTE", "EVAL_REMOTE"),
    "eval_remote": ("EVAL_REMOTE",),
    "remote_or_eval_local": ("REMOTE", "EVAL_LOCAL"),
}
"""The states that may follow REMOTE, for each value of the setting ``after_remote``."""


TOOLS_BY_STATE: dict[State, tuple[type[Tool], ...]] = {
    "LOCAL": LOCAL_TOOLS,
    "REMOTE": REMOTE_TOOLS,
    "UPDATE": UPDATE_TOOLS,
}


def tools_of_state(state: State, settings: RoboDataSettings) -> tuple[type[Tool], ...]:
    """Return the tools that a state offers; UPDATE removes only with the setting ``removes``."""
    if state == "UPDATE" and not settings.removes:
        return FETCHING_TOOLS
    return TOOLS_BY_STATE.get(state, ())


TOOLS_BY_NAME = {tool.spec.name: tool for tool in chain.from_iterable(TOOLS_BY_STATE.values())}


def _parse_action(data: Any) -> Tool:
    """Return the tool use that a JSON object, or its text, describes; a tool use is returned as it is.

    Raises ValueError for an unknown tool, wrong arguments, or what is no such object.
    """
    if isinstance(data, Tool):
        return data
    fields = data
    if isinstance(data, str):
        fields = json.loads(data)
    if not isinstance(fields, dict) or fields.get("tool") not in TOOLS_BY_NAME:
        names = ", ".join(TOOLS_BY_NAME)
        raise ValueError(f"a use of a tool is an object with a tool among {names}")
    return TOOLS_BY_NAME[fields["tool"]].model_validate(fields)


Action = Annotated[
    Tool, PlainValidator(_parse_action), PlainSerializer(Tool.model_dump_json, return_type=str)
]
"""A use of a tool. In files and forms it is the JSON text that a model writes."""


@dataclass(frozen=True, slots=True)
class Decision(Record):
    """The tool uses that a state decides on, and the next state."""

    thought: Explanation
    next: State
    actions: tuple[Action, ...] = ()

    def __str__(self) -> str:
        """Return the names of the first tools and the next state: "fetch_node → EVAL_LOCAL"."""
        names = list_first((action.spec.name for action in self.actions), 3)
        return f"{names} → {self.next}".strip()


VARIANT = re.compile("(_unreflected|_published|_listed)+$")
"""What stands behind the name of an agent in that of another prompt of it."""
REFLECTING_STATES = ("EVAL_LOCAL", "LOCAL", "EVAL_REMOTE")
"""States whose prompt invites to self-reflection. Each has a second prompt without that."""
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
URGENCY_INSTRUCTIONS = {
    "low": "explore as the question needs it",
    "medium": "consolidate the local graph: fetch what connects its parts, before anything new",
    "high": "look for nothing that the answer can do without; connect every node that stands alone",
}
"""What is to be done at each urgency, if the setting ``urgency`` has instructions."""
TEMPERATURES = {
    "eval_local": 0.8,
    "eval_remote": 0.8,
    "remote": 0.8,
    "local": 0.1,
    "update": 0.1,
    "produce": 0.1,
    "assessment": 0.8,
    "observation": 0.7,
}
"""The temperature of each agent if the setting ``temperatures`` is "by_state" (reference code)."""
AFTER_REMOTE = {
    "remote_or_eval_remote": '"REMOTE" if you will have to look further once you see the results '
    '(after a search, mostly), or "EVAL_REMOTE" if the results should be what is missing.',
    "eval_remote": '"EVAL_REMOTE".',
    "remote_or_eval_local": '"REMOTE" if you will have to look further once you see the results '
    '(after a search, mostly), or "EVAL_LOCAL" to judge whether the local graph is enough. Only '
    "build_local_graph adds to the local graph.",
}
"""What REMOTE is told of the next states, for each value of the setting ``after_remote``."""
STATES_OF_RESULTS: dict[State, tuple[State, ...]] = {
    "EVAL_LOCAL": ("LOCAL",),
    "LOCAL": ("LOCAL",),
    "EVAL_REMOTE": ("REMOTE",),
    "UPDATE": ("REMOTE",),
}
"""The states whose results the prompt of a state has, as the paper lists them (Stateful Orchestrator)."""
NEIGHBOUR_LIMITS = {True: "0}: all triples", False: "20}: triples"}
"""What REMOTE is told of the neighbours of an entity, by whether all are retrieved without a limit."""
REMOVING_TOOLS = (
    '- {"tool": "remove_node", "node": ID}, {"tool": "remove_edge", "subject": ID, "predicate": ID,'
    ' "object": ID or text}: take out what does not belong'
)
MAX_NAMED_UNPROVED = 6
"""Things without proof that an answer names."""


# Decisions


def ask_at_temperature(
    prompt: str,
    variables: dict[str, str],
    reply_class: type[ReplyClass],
    run: Run,
    checks: Sequence[Check[ReplyClass]] = (),
) -> ReplyClass:
    """Ask the model, and return its valid reply.

    ``prompt`` is that of an agent, or another one of it with VARIANT behind the agent's name. With
    the setting ``temperatures`` "by_state" the model is asked at the temperature of the agent, else
    at that of the run. Raises what ``ask_model`` raises.
    """
    temperature = None
    if RoboDataSettings.of_run(run).temperatures == "by_state":
        temperature = TEMPERATURES[VARIANT.sub("", prompt)]
    prompt = f"robodata/{prompt}"
    return ask_model(prompt, variables, reply_class, run, checks=checks, temperature=temperature)


@lru_cache
def _make_reply_class(
    state: State, next_states: tuple[State, ...], tools: tuple[type[Tool], ...]
) -> type[BaseModel]:
    """Return the pydantic class of a state's reply: "thought", "actions" if it has tools, and "next".

    Other fields make a reply invalid, and so does a next state that is not one of ``next_states``.
    The same arguments give the same class.
    """
    fields: dict[str, Any] = {"thought": (str, ...)}
    if tools:
        action: Any = Union[tools]  # noqa: UP007  # a tuple of types
        fields["actions"] = (list[action], ...)
    next_state: Any = Literal[next_states]
    fields["next"] = (next_state, ...)
    name = f"{state.title().replace('_', '')}Reply"
    config = ConfigDict(extra="forbid")
    return create_model(name, __config__=config, __module__=__name__, **fields)


REPLY_CLASS_BY_STATE = {
    state: _make_reply_class(state, following, TOOLS_BY_STATE.get(state, ()))
    for state, following in TRANSITIONS.items()
}
EvalLocalReply, LocalReply, RemoteReply, EvalRemoteReply, UpdateReply = (
    REPLY_CLASS_BY_STATE.values()
)


def find_next_states(state: State, settings: RoboDataSettings) -> tuple[State, ...]:
    """Return the states that may follow a state: those of TRANSITIONS, for REMOTE by ``after_remote``."""
    if state == "REMOTE":
        return STATES_AFTER_REMOTE[settings.after_remote]
    return TRANSITIONS[state]


def is_remote_changed(settings: RoboDataSettings) -> bool:
    """Return whether ``search_hits`` or ``after_remote`` differ from the profile ``fast``.

    REMOTE then has another prompt. The prompt "robodata/remote" has no variables for them: recorded
    runs bring their own texts of it, which lack these variables.
    """
    fast = RoboDataSettings()
    return settings.search_hits != fast.search_hits or settings.after_remote != fast.after_remote


def decide_without_model(position: Position, settings: RoboDataSettings) -> Decision | None:
    """Return the decision that needs no model, or None if the model must be asked.

    In the first turn it is REMOTE, as the local graph is empty. Later only EVAL_LOCAL has any
    (paper: Local Data Evaluation): REMOTE if the local graph is empty and ``empty_graph`` is
    "remote"; LOCAL if the local graph does not fit into a prompt and LOCAL has not looked into it
    since it changed, unless ``large_graph`` leaves it to the model.
    """
    if not position.visits:
        return Decision("the local graph is empty", "REMOTE")
    if position.state != "EVAL_LOCAL":
        return None
    if not position.local and settings.empty_graph == "remote":
        return Decision("the local graph is still empty", "REMOTE")
    is_whole = fits_in_prompt(position.local, settings.shown_chars)
    if not is_whole and not position.was_looked_into and settings.large_graph == "local":
        return Decision("the local graph is too large to be shown whole", "LOCAL")
    return None


def find_decision_problems(decision: Decision, place: str, position: Position) -> Iterator[str]:
    """Yield what is wrong with a decision that a person put in.

    Its next state must be one that may follow, and its tool uses must be of the state's tools.
    """
    state = position.state
    following = TRANSITIONS[state]
    if state == "REMOTE":
        following = tuple(chain.from_iterable(STATES_AFTER_REMOTE.values()))
    if decision.next not in following:
        yield f"{state} does not lead to {decision.next}"
    if not all(isinstance(action, TOOLS_BY_STATE.get(state, ())) for action in decision.actions):
        yield f"{state} has no such tool"


def decide(position: Position, run: Run) -> Decision:
    """Return the decision of the present state: that which needs no model, else the model's.

    The model is asked for tool uses and the next state. A state with tools may use at most the
    setting ``tool_uses``; another one is shown the advice of metacognition. Raises InvalidReplyError.
    """
    settings = RoboDataSettings.of_run(run)
    state = position.state
    unasked = decide_without_model(position, settings)
    if unasked is not None:
        return unasked
    variables = make_prompt_variables(position, run)
    is_listed = settings.ingredients == "listed"
    if is_listed and state in STATES_OF_RESULTS:
        states = STATES_OF_RESULTS[state]
        variables["results"] = position.format_results(settings.shown_chars, states)
    checks: list[Check[Any]] = []
    if state in TOOLS_BY_STATE:
        variables["tool_uses"] = str(settings.tool_uses)
        checks.append(_limit_tool_uses(settings.tool_uses))
    else:
        variables["advice"] = position.advice or "none"
    next_states = find_next_states(state, settings)
    prompt = state.lower()
    if state in REFLECTING_STATES and not settings.self_reflection:
        prompt += "_unreflected"
    is_changed = state == "REMOTE" and (is_listed or is_remote_changed(settings))
    if is_listed:
        prompt += "_listed"
    elif is_changed:
        prompt += "_published"
    if is_listed and state == "UPDATE":
        variables["removing_tools"] = REMOVING_TOOLS if settings.removes else ""
    if is_listed and state == "REMOTE":
        variables["neighbour_limit"] = NEIGHBOUR_LIMITS[settings.default_neighbours == UNLIMITED]
    if is_changed:
        variables["search_hits"] = str(min(settings.search_hits, settings.v_limit))
        variables["after_remote"] = AFTER_REMOTE[settings.after_remote]
        variables["next_example"] = next_states[0]
    reply_class = _make_reply_class(state, next_states, tools_of_state(state, settings))
    reply: Any = ask_at_temperature(prompt, variables, reply_class, run, checks)
    actions = tuple(getattr(reply, "actions", ()))
    return Decision(" ".join(reply.thought.split()), reply.next, actions)


def _limit_tool_uses(limit: int) -> Check[Any]:
    """Return the check that a reply has at most so many tool uses."""

    def find_problem(reply: Any) -> str:
        if len(reply.actions) > limit:
            return f"more than {limit}"
        return ""

    return Check("not too many tool uses", find_problem)


@agent("eval_local", subject="place", check=find_decision_problems, kind="model")
def decide_eval_local(place: str, position: Position, run: Run) -> Decision:
    """Decide whether the local graph is enough to answer."""
    return decide(position, run)


@agent("local", subject="place", check=find_decision_problems, kind="model")
def decide_local(place: str, position: Position, run: Run) -> Decision:
    """Look closer at a local graph that is too large to be shown whole."""
    return decide(position, run)


@agent("remote", subject="place", check=find_decision_problems, kind="model")
def decide_remote(place: str, position: Position, run: Run) -> Decision:
    """Look for what is missing in the remote graph."""
    return decide(position, run)


@agent("eval_remote", subject="place", check=find_decision_problems, kind="model")
def decide_eval_remote(place: str, position: Position, run: Run) -> Decision:
    """Decide whether the results belong into the local graph."""
    return decide(position, run)


@agent("update", subject="place", check=find_decision_problems, kind="model")
def decide_update(place: str, position: Position, run: Run) -> Decision:
    """Choose what is fetched into the local graph."""
    return decide(position, run)


DECIDERS: dict[State, Agent] = {
    "EVAL_LOCAL": decide_eval_local,
    "LOCAL": decide_local,
    "REMOTE": decide_remote,
    "EVAL_REMOTE": decide_eval_remote,
    "UPDATE": decide_update,
}
"""The agent of each state but PRODUCE. Its name is that of the state in lower case."""


def make_prompt_variables(
    position: Position, run: Run, *, is_metacognition: bool = False
) -> dict[str, str]:
    """Return the variables that every prompt has, as texts by name.

    They are question, last thought, memory, local graph, results and turns left; with
    ``ingredients`` "listed" the last two only for metacognition, which then has no thought. Memory,
    local graph and results are cut by the settings. Without self-reflection there are no thoughts.
    With ``urgency`` "metacognition", only the prompts of metacognition are told the turns left.
    """
    settings = RoboDataSettings.of_run(run)
    is_listed = settings.ingredients == "listed"
    variables = {"question": position.question}
    if not is_listed or not is_metacognition:
        variables["thought"] = "none"
        if position.visits and settings.self_reflection:
            variables["thought"] = position.visits[-1].thought
    variables["memory"] = position.format_memory(
        settings.memory_chars, with_thoughts=settings.self_reflection, with_rows=is_listed
    )
    variables["graph"] = format_graph(position, settings.shown_chars)
    if not is_listed or is_metacognition:
        variables["results"] = position.format_results(settings.shown_chars)
        variables["turns"] = describe_turns_left(position, settings)
        if settings.urgency == "metacognition" and not is_metacognition:
            variables["turns"] = "How many turns are left is not told."
    return variables


def describe_turns_left(position: Position, settings: RoboDataSettings) -> str:
    """Return a text for a prompt: how many turns are left, how urgent that is, and what is to be done.

    The urgency is high at HIGH_URGENCY_TURNS, medium at MEDIUM_URGENCY_TURNS, else low. Unless
    ``urgency`` is "word" there is an instruction, and the parts of the local graph that are not
    connected are named as soon as the urgency is not low.
    """
    turns_left = settings.turns - len(position.visits)
    urgency = "low"
    if turns_left <= MEDIUM_URGENCY_TURNS:
        urgency = "medium"
    if turns_left <= HIGH_URGENCY_TURNS:
        urgency = "high"
    parts = [f"{pluralize(turns_left, 'turn')} left, PRODUCE with them", f"urgency {urgency}"]
    if settings.urgency != "word":
        parts[-1] += f": {URGENCY_INSTRUCTIONS[urgency]}"
    if turns_left <= LAST_TURNS:
        parts.append("only connect what is there already, and produce")
    if settings.urgency != "word" and urgency != "low":
        parts.append(position.local.describe_parts())
    return "; ".join(filter(None, parts))


# Metacognition


class AssessmentReply(Reply):
    """The strategy that the turns show."""

    strategy: str


class ObservationReply(Reply):
    """What to do otherwise; nothing if the strategy is sound."""

    judgement: str
    advice: str


@agent("assessment", subject="place", kind="model")
def assess_strategy(place: str, position: Position, run: Run) -> str:
    """Ask the model which strategy the turns of a position show, and return its text (paper: strategic assessment).

    The model sees what every prompt shows (``make_prompt_variables``), and the statistics of the
    position. With ``ingredients`` "listed" it sees what the paper lists, the tools too. Else, unless
    ``observation_memory`` is "latest_advice", it also sees the outcome. ``place`` only names the
    step. Raises InvalidReplyError without a valid reply.
    """
    settings = RoboDataSettings.of_run(run)
    variables = make_prompt_variables(position, run, is_metacognition=True)
    variables["statistics"] = f"{position.statistics}. {position.usage_counts}"
    prompt = "assessment"
    if settings.ingredients == "listed":
        prompt = "assessment_listed"
        variables["tools"] = describe_tools(run)
    elif settings.observation_memory != "latest_advice":
        prompt = "assessment_published"
        variables |= {"outcome": position.outcome, "tools": describe_tools(run)}
    return ask_at_temperature(prompt, variables, AssessmentReply, run).strategy


@agent("observation", subject="place", kind="model")
def observe_strategy(place: str, position: Position, strategy: str, run: Run) -> Observation:
    """Ask the model what to do differently (paper: meta-observation).

    It is shown the assessed strategy, and of earlier observations what the setting
    ``observation_memory`` says. Raises InvalidReplyError without a valid reply.
    """
    settings = RoboDataSettings.of_run(run)
    observation_memory = settings.observation_memory
    variables = make_prompt_variables(position, run, is_metacognition=True)
    variables["strategy"] = strategy
    prompt = "observation"
    if settings.ingredients == "listed":
        prompt = "observation_listed"
    elif observation_memory != "latest_advice":
        prompt = "observation_published"
    if prompt != "observation":
        variables |= {"outcome": position.outcome, "tools": describe_tools(run)}
    texts = []
    for number, observation in enumerate(position.observations, 1):
        texts.append(observation.format_for_prompt(number))
    if observation_memory == "last_observation":
        texts = texts[-1:]
    if observation_memory == "latest_advice":
        texts = [position.advice]
    variables["previous"] = "\n".join(texts) or "none"
    reply = ask_at_temperature(prompt, variables, ObservationReply, run)
    return Observation(strategy, reply.judgement, reply.advice.strip())


def describe_tools(run: Run) -> str:
    """Return the tools that all states offer, a line each, with their arguments and what they are for."""
    settings = RoboDataSettings.of_run(run)
    lines = []
    for state in TOOLS_BY_STATE:
        for tool in tools_of_state(state, settings):
            arguments = ", ".join(name for name in tool.model_fields if name != "tool")
            lines.append(f"{state}: {tool.spec.name}({arguments}): {tool.spec.purpose}")
    return "\n".join(lines)


# PRODUCE


class SentenceReply(Reply):
    """A sentence with its support set: triples of three ids, or single nodes."""

    text: str
    support: list[list[str]]


class ProduceReply(Reply):
    """The answer in sentences, and as nodes."""

    thought: str
    sentences: list[SentenceReply]
    kind: ProducedKind
    answers: list[str]
    missing: str


def find_answer_problems(produced: Produced, position: Position) -> Iterator[str]:
    """Yield a problem for each element of a person's answer that is not in the local graph.

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

    If the local graph is empty, the model is not asked, and the kind is "nothing", unless the
    setting ``empty_graph`` is "remote". Answers that are not nodes of the local graph are left out
    and noted. An answer that several nodes have as their text stands for all of them, which is noted
    too. Raises InvalidReplyError.
    """
    local = position.local
    settings = RoboDataSettings.of_run(run)
    if not local and settings.empty_graph == "asked":
        return Produced((), "nothing", missing="nothing in the graph was found to answer it")
    variables = make_prompt_variables(position, run)
    prompt = "produce"
    if settings.ingredients == "listed":
        prompt = "produce_listed"
    reply = ask_at_temperature(prompt, variables, ProduceReply, run)
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
    """Return a sentence with the triples and nodes of the local graph that its support set names by IDs.

    Elements that the local graph does not have are in ``failed``, as the model wrote them. White
    space in the text becomes single spaces.
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
    out of the support and marked beside its sentence. What no sentence proves is in doubt; see
    ``describe_unproved``. An answer without values has a reason, and its sentences with their support
    as the evidence. If the turns were used up, the text or the reason says so.
    """
    used = _join_support(produced.sentences)
    existing = existing_triples(run.kg, used) if used else set()
    local = position.local
    sentences = []
    for sentence in produced.sentences:
        sentences.append(drop_missing_support(sentence, local, existing))
    text = " ".join(f"{sentence} ({n})" for n, sentence in enumerate(sentences, 1))

    limit_note = ""
    if position.state != "PRODUCE":
        limit = RoboDataSettings.of_run(run).turns
        limit_note = f"ended at the limit of {limit} turns, with what was found by then"
    values = _make_values(position, produced, sentences)
    if not values:
        missing = produced.missing or text or "no answer is a node of the local graph"
        reason = f"{NOT_IN_GRAPH}: {missing}"
        if limit_note:
            reason = f"{missing}; {limit_note}"
        evidence = _join_support(sentences)
        return Answer("list", text=text, reason=reason, evidence=evidence)
    if limit_note:
        text += f" ({limit_note})"
    doubt = ""
    if RoboDataSettings.of_run(run).doubts_unproved:
        doubt = describe_unproved(produced, local, sentences)
    kind = ANSWER_KINDS[produced.kind]
    answer = Answer(kind, tuple(values), text=text, reason=produced.missing, doubt=doubt)
    return read_values(run.kg, answer)


def _make_values(
    position: Position, produced: Produced, sentences: Collection[Sentence]
) -> list[Value]:
    """Return the values of an answer with their support; empty if there is no answer.

    For "things" they are the answering nodes, each supported by the sentences that have a triple at
    it. They are in the order of their first sentences, so that their numbers in lists of triples
    are those of the sentences where each has one. Those without a sentence come last, in the order of the local graph.
    Otherwise there is one value, a count or a truth value, supported by all sentences. A count is
    the number of answering nodes, not what the model says.
    """
    if produced.kind == "nothing":
        return []
    if produced.kind != "things":
        result = len(produced.answers) if produced.kind == "count" else produced.kind == "yes"
        support = _join_support(sentences)
        return [Value(rdflib.Literal(result), str(result).lower(), support)]
    values = []
    first_places: dict[Term, int] = {}
    for value in position.local.values:
        if value.term in produced.answers:
            about = []
            for place, sentence in enumerate(sentences):
                if any(value.term in triple[::2] for triple in sentence.support):
                    about.append(sentence)
                    first_places.setdefault(value.term, place)
            values.append(replace(value, support=_join_support(about)))
    values.sort(key=lambda value: first_places.get(value.term, len(sentences)))
    return values


def describe_unproved(produced: Produced, local: LocalGraph, sentences: Sequence[Sentence]) -> str:
    """Return what of an answer its support sets do not prove; "" if they prove all of it.

    A sentence proves something if its support set has a triple and every element of it is in the
    graph. A thing, or a thing that is counted, is proved if such a sentence has a triple at it. Yes,
    no and a count of nothing are proved if every sentence proves something, and there is one. At most
    MAX_NAMED_UNPROVED things are named.
    """
    proving = [sentence for sentence in sentences if sentence.support and not sentence.problem]
    if produced.kind in ("yes", "no") or not produced.answers:
        if proving and len(proving) == len(sentences):
            return ""
        said: str = produced.kind
        if produced.kind == "count":
            said = "0"
        return f"{said} is not proved: not every sentence has a whole support set"
    proved: set[Term] = set()
    for sentence in proving:
        for subject, _, object_ in sentence.support:
            proved |= {subject, object_}
    labels = {value.term: value.label for value in local.values}
    unproved = [labels[term] for term in produced.answers if term not in proved]
    if not unproved:
        return ""
    return f"not proved by the triples that are cited: {list_first(unproved, MAX_NAMED_UNPROVED)}"


def _join_support(sentences: Collection[Sentence]) -> tuple[Triple, ...]:
    """Return the triples that support any of the sentences, each once."""
    support = chain.from_iterable(sentence.support for sentence in sentences)
    return tuple(dict.fromkeys(support))


def drop_missing_support(
    sentence: Sentence, local: LocalGraph, existing: Collection[Triple]
) -> Sentence:
    """Return a copy of the sentence without the triples that are not in ``existing``, which are ``failed`` then.

    ``existing`` are the triples that the remote graph has; a local graph may have others, which a
    person put in. Nodes are not checked.
    """
    kept = []
    failed = list(sentence.failed)
    for triple in sentence.support:
        if triple in existing:
            kept.append(triple)
        else:
            failed.append(" | ".join(map(local.id_mapping.format_id, triple)))
    return replace(sentence, support=tuple(kept), failed=tuple(failed))


NON_WORD = re.compile(r"[\W_]+")


def format_graph(position: Position, max_chars: int) -> str:
    """Return the local graph as text for a prompt, of fewer than about ``max_chars`` characters.

    A graph that fits is shown whole. Otherwise its triples come first, the most relevant before the
    others (``rank_triples``), and the entities and relations that these triples name after them.
    """
    local = position.local
    if fits_in_prompt(local, max_chars):
        return local.format_for_prompt(max_chars)
    return _format_best_triples(position, max_chars)


def fits_in_prompt(local: LocalGraph, max_chars: int) -> bool:
    """Return whether the whole text of a local graph has fewer than ``max_chars`` characters."""
    return sum(map(len, local.format_lines())) < max_chars


def _format_best_triples(position: Position, max_chars: int) -> str:
    """Return the most relevant triples, and the names of their terms, as far as ``max_chars`` allow.

    A triple is shown only together with the names of its terms, but a name that the ID says already
    is left out. Entities without a triple come last. How many triples are not shown is written
    below the others. Line ends are not counted.
    """
    local = position.local
    ids = local.id_mapping
    names: dict[Term, str] = dict(local.names)
    triples = []
    entities: dict[Term, str] = {}
    relations: dict[Term, str] = {}
    chars = 0
    for triple in rank_triples(position):
        line = " | ".join(map(ids.format_id, triple))
        subject, predicate, object_ = triple
        new_entities = _format_names(local, names, [subject, object_], entities)
        new_relations = _format_names(local, names, [predicate], relations)
        name_lines = chain(new_entities.values(), new_relations.values())
        new_chars = len(line) + sum(map(len, name_lines))
        if chars + new_chars < max_chars:
            chars += new_chars
            triples.append(line)
            entities.update(new_entities)
            relations.update(new_relations)
    omitted = len(local.support) - len(triples)
    for node in _nodes_without_triples(local):
        line = ids.format_named_id(node)
        if chars + len(line) < max_chars:
            chars += len(line)
            entities[node] = line
    lines = ["Triples", *triples]
    if omitted:
        lines.append(f"({pluralize(omitted, 'more line')}, not shown)")
    return "\n".join([*lines, "Entities", *entities.values(), "Relations", *relations.values()])


def _format_names(
    local: LocalGraph, names: dict[Term, str], terms: list[Term], known: dict[Term, str]
) -> dict[Term, str]:
    """Return the line with ID and name of each term that needs one, by term.

    Left out are literals, terms in ``known``, terms without a name, and those whose ID has the
    words of the name.
    """
    lines: dict[Term, str] = {}
    for term in terms:
        name = names.get(term, "")
        if isinstance(term, rdflib.Literal) or term in known or not name:
            continue
        _, _, local_part = local.id_mapping.format_id(term).partition(":")
        if _words(local_part) != _words(name):
            lines[term] = local.id_mapping.format_named_id(term)
    return lines


def _nodes_without_triples(local: LocalGraph) -> list[Term]:
    """Return the nodes that are in no triple, the newest first."""
    connected = set(chain.from_iterable(triple[::2] for triple in local.support))
    return [node for node in reversed(local.nodes) if node not in connected]


def rank_triples(position: Position) -> list[Triple]:
    """Return the triples of the local graph, the most relevant first.

    Those that LOCAL found come first, the latest before the others. Then come those with more terms
    that are asked about: that LOCAL has found, or that the question or the last thought names. Then
    those that were added last come first.
    """
    newest_first = position.local.support[::-1]
    known = set(newest_first)
    found: dict[Triple, int] = {}
    added: dict[Triple, int] = {}
    asked = _named_terms(position)
    for number, visit in enumerate(position.visits, 1):
        for row in chain.from_iterable(result.rows for result in visit.results):
            if visit.state == "LOCAL" and row in known:
                found[row] = number
            elif visit.state == "LOCAL":
                asked.update(cell for cell in row if cell is not None)
            elif row in known:
                added.setdefault(row, number)

    def sort_key(triple: Triple) -> tuple[int, int, int]:
        """Return the key by which triples are sorted: found by LOCAL, number of asked terms, time."""
        named = sum(term in asked for term in triple)
        return (-found.get(triple, 0), -named, -added.get(triple, 0))

    return sorted(newest_first, key=sort_key)


def _named_terms(position: Position) -> set[Term]:
    """Return the terms in the triples of the local graph that the question or the last thought names.

    A text names a term by its ID, or by its name as whole words regardless of letter case; a
    literal by its text alone.
    """
    thoughts = [visit.thought for visit in position.visits]
    text = " ".join([position.question, *thoughts[-1:]])
    all_words = f" {_words(text)} "
    local = position.local
    ids = local.id_mapping
    names: dict[Term, str] = dict(local.names)
    named = set()
    for term in set(chain.from_iterable(local.support)):
        if isinstance(term, rdflib.Literal):
            name = str(term)
            has_id = False
        else:
            name = names.get(term, "")
            has_id = _has_id(text, ids.format_id(term))
        words = _words(name)
        if has_id or (words and f" {words} " in all_words):
            named.add(term)
    return named


def _has_id(text: str, term_id: str) -> bool:
    """Return whether a text has an ID that no letter or digit follows: wd:Q4 is not in wd:Q42."""
    if term_id not in text:  # which is faster
        return False
    return re.search(rf"{re.escape(term_id)}(?!\w)", text) is not None


def _words(text: str) -> str:
    """Return the words of a text in lower case, with single spaces between them."""
    return NON_WORD.sub(" ", text).strip().casefold()


def list_observed(position: Position) -> list[tuple[Term | None, ...]]:
    """Return the rows of all results of tools, of all turns up to a position, in order."""
    results = chain.from_iterable(visit.results for visit in position.visits)
    return list(chain.from_iterable(result.rows for result in results))


def _find_gold_triples(kg: Graph, gold: GoldQuery) -> list[Triple]:
    """Execute the gold query, and return the distinct triples that its rows are derived from.

    Empty if the graph cannot execute it. A boolean query is taken as one row.
    """
    try:
        result = ResultSet((), ((),))
        if gold.kind != "boolean":
            result = kg.select(gold.sparql)
        support = find_support_by_row(kg, gold.sparql, result.variables, result.rows)
    except GraphError:
        return []
    return list(dict.fromkeys(chain.from_iterable(support.values())))


def make_graph_rung(run: Run, gold: GoldQuery) -> Rung | None:
    """Return the local graph with the missing gold triples added, to put in after the last turn.

    The machine is then in the state PRODUCE. UPDATE is blamed if tools had shown all missing
    triples, else REMOTE, which did not look for them. Returns None if none is missing, if no turn
    has ended, or without a graph that can be asked anew.
    """
    kg = run.unrecorded_graph
    turns = [step for step in run.steps if step.agent == "turn" and step.done]
    if kg is None or not turns:
        return None
    last = turns[-1]
    position: Position = last.output
    support = position.local.support
    missing = [triple for triple in _find_gold_triples(kg, gold) if triple not in support]
    if not missing:
        return None
    observed = {row[:3] for row in list_observed(position)}
    blamed = "remote"
    if observed.issuperset(missing):
        blamed = "update"
    names = get_names_in_rows(missing, kg)
    local = position.local.with_triples((), missing)
    local = local.with_names(names.items())
    corrected = replace(position, state="PRODUCE", local=local)
    return Rung(blamed, {last.key: corrected})


def make_answer_rung(run: Run, gold: GoldQuery) -> Rung | None:
    """Return the answer that the gold query gives, to put in at "produce".

    Returns None if the run gave the same, if it has produced none, or if the query cannot be
    executed. Asks the graph outside of the record.
    """
    kg = run.unrecorded_graph
    produced: Produced | None = get_output(run, "produce")
    if kg is None or produced is None:
        return None
    query = gold.sparql
    if gold.kind == "count":  # the nodes that are counted are the answers
        query = f"SELECT DISTINCT {gold.target} WHERE {{ {patterns_to_sparql(gold.patterns)} }}"
    result = execute_unrecorded(query, run)
    if result is None:
        return None
    kind: ProducedKind = "things"
    if gold.kind == "count":
        kind = "count"
    answers: tuple[Term, ...] = ()
    if result is True:
        kind = "yes"
    elif result is False:
        kind = "no"
    else:
        cells = chain.from_iterable(result.rows)
        answers = tuple(dict.fromkeys(cell for cell in cells if cell is not None))
    if produced.kind == kind and set(produced.answers) == set(answers):
        return None
    sentence = Sentence("gold", tuple(_find_gold_triples(kg, gold)))
    return Rung("produce", {"produce": Produced((sentence,), kind, answers)})
