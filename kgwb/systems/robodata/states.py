"""The states that ask a model, each an agent whose reply names the next one, and metacognition."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, Union

from pydantic import BaseModel, ConfigDict, create_model

from kgwb.flow import counted
from kgwb.run import Run, agent
from kgwb.run.agents import Agent
from kgwb.run.ask import Check, Reply, ask
from kgwb.systems.robodata.records import NEXT, TOOLS, Decision, Position, State
from kgwb.systems.robodata.settings import settings_of

PROMPTS: dict[State, tuple[str, str]] = {
    "EVAL_LOCAL": ("robodata/eval_local", "Whether the local graph is enough to answer."),
    "LOCAL": ("robodata/local", "A closer look at a local graph that is too large to be shown whole."),
    "REMOTE": ("robodata/remote", "A look into the remote graph for what is missing."),
    "EVAL_REMOTE": ("robodata/eval_remote", "Whether what was found belongs into the local graph."),
    "UPDATE": ("robodata/update", "What is fetched into the local graph."),
}
"""The prompt of each state that asks, and what it is for."""


def _reply(state: State) -> type[BaseModel]:
    """What a model replies in a state: a thought, uses of its tools, and the next state."""
    after: Any = Literal[NEXT[state]]
    fields: dict[str, Any] = {"thought": (str, ...)}
    if state in TOOLS:
        action: Any = Union[TOOLS[state]]  # noqa: UP007  # of a tuple
        fields["actions"] = (list[action], ...)
    fields["next"] = (after, ...)
    name, config = f"{state.title().replace('_', '')}Reply", ConfigDict(extra="forbid")
    return create_model(name, __config__=config, __module__=__name__, **fields)


REPLIES = {state: _reply(state) for state in PROMPTS}
EvalLocalReply, LocalReply, RemoteReply, EvalRemoteReply, UpdateReply = REPLIES.values()


def decider(state: State) -> Agent:
    """The agent of a state."""

    def problems(decision: Decision, place: str, position: Position) -> Iterator[str]:
        if decision.next not in NEXT[state]:
            yield f"{state} does not lead to {decision.next}"
        if not all(isinstance(action, TOOLS.get(state, ())) for action in decision.actions):
            yield f"{state} has no such tool"

    def decide(place: str, position: Position, run: Run) -> Decision:
        if not position.visits:  # the local graph is empty, and nothing was looked for
            return Decision("the local graph is empty", "REMOTE")
        most, given = settings_of(run).tool_uses, variables(position, run)
        given |= {"tool_uses": str(most)} if state in TOOLS else {"advice": position.advice or "none"}
        few = Check[Any]("not too many tool uses", lambda r: f"more than {most}" * (len(r.actions) > most))
        checks = (few,) if state in TOOLS else ()
        reply: Any = ask(PROMPTS[state][0], given, REPLIES[state], run, checks=checks)
        return Decision(" ".join(reply.thought.split()), reply.next, tuple(getattr(reply, "actions", ())))

    decide.__doc__ = PROMPTS[state][1]
    return agent(state.lower(), subject="place", check=problems, kind="model")(decide)


DECIDERS: dict[State, Agent] = {state: decider(state) for state in PROMPTS}


def variables(position: Position, run: Run) -> dict[str, str]:
    """What every state is shown: self-reflection, memory, the local graph, results, and the turns left."""
    settings = settings_of(run)
    left = settings.turn_limit - len(position.visits)
    urgency = "high" if left <= 6 else "medium" if left <= 10 else "low"
    only = "; only connect what is there already, and produce" if left <= 3 else ""
    return {
        "question": position.question,
        "thought": position.visits[-1].thought if position.visits else "none",
        "memory": position.memory(settings.memory_chars),
        "graph": position.local.listing(settings.shown_chars),
        "results": position.results(settings.shown_chars),
        "turns": f"{counted(left, 'turn')} left, PRODUCE with them; urgency {urgency}{only}",
    }


class AssessmentReply(Reply):
    """The strategy that the turns show."""

    strategy: str


class ObservationReply(Reply):
    """What to do otherwise; nothing if the strategy is sound."""

    judgement: str
    advice: str


@agent("assessment", subject="place", kind="model")
def assess(place: str, position: Position, run: Run) -> str:
    """The strategy that the turns show so far (paper: strategic assessment)."""
    given = variables(position, run) | {"statistics": f"{position.statistics}. {position.counts}"}
    return ask("robodata/assessment", given, AssessmentReply, run).strategy


@agent("observation", subject="place", kind="model")
def observe(place: str, position: Position, strategy: str, run: Run) -> str:
    """What to do otherwise (paper: meta-observation); empty if nothing."""
    given = variables(position, run) | {"strategy": strategy, "previous": position.advice or "none"}
    return ask("robodata/observation", given, ObservationReply, run).advice
