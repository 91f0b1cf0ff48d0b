"""One step's call, asked many times: the replies, grouped by the decision that they lead to."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kgwb.errors import InvalidReplyError
from kgwb.kg.base import Graph
from kgwb.llm.base import ChatModel, ChatReply, ChatRequest, seed_of_repeat
from kgwb.records import decision_of, frozen
from kgwb.run.differences import output_lines
from kgwb.run.models import StandIn, check_times
from kgwb.run.prompts import Prompts
from kgwb.run.run import Run
from kgwb.text import shorten, single_line

NO_VALID_REPLY = "no valid reply"
MAX_DECISION_CHARS = 200


@dataclass(slots=True)
class SampledDecision:
    """A decision that some of the replies lead to."""

    text: str
    """The output of the step on one line, or NO_VALID_REPLY."""
    output: Any
    """The step's output of the first of these replies; None without a valid reply."""
    models: Counter[str] = field(default_factory=Counter)
    """The number of replies by model."""
    asked: Counter[str] = field(default_factory=Counter)
    """How often each model was asked."""

    @property
    def is_valid(self) -> bool:
        """Whether there is an output that can be taken."""
        return self.text != NO_VALID_REPLY

    def __str__(self) -> str:
        """Return "4 of 5 director", and for several models "m1 4 of 5, m2 1 of 5: director"."""
        if len(self.asked) == 1:
            return f"{self.models.total()} of {self.asked.total()} {self.text}"
        counts = []
        for model, times in self.asked.items():
            counts.append(f"{model} {self.models[model]} of {times}")
        return f"{', '.join(counts)}: {self.text}"


class _Varied(StandIn):
    """A model that gets another seed each time, and counts its calls and tokens."""

    def __init__(self, model: ChatModel, number: int, usage: Counter[str]) -> None:
        super().__init__(model, model.name)
        self.number = number
        """0 for the first time, which has the seed of the request."""
        self.usage = usage

    def complete(
        self, request: ChatRequest, kg: Graph | None, cancel: threading.Event
    ) -> ChatReply:
        """Ask the model with the seed of this repeat, if there is any; count the call and tokens."""
        if request.seed is not None:
            request = replace(request, seed=seed_of_repeat(request.seed, self.number))
        reply = super().complete(request, kg, cancel)
        self.usage["calls"] += 1
        self.usage["tokens"] += reply.prompt_tokens + reply.completion_tokens
        return reply


@frozen
class StepSample:
    """What came of a step that was asked many times."""

    decisions: tuple[SampledDecision, ...]
    """The most frequent first."""
    calls: int
    """The calls that were made, with further attempts after invalid replies."""
    tokens: int


def sample_step(  # what is asked, and how often
    run: Run,
    step: str,
    models: Sequence[ChatModel],
    times: int,
    *,
    prompts: Prompts | None = None,
    check: Callable[[], object] = lambda: None,
) -> StepSample:
    """Ask the models of one step ``times`` times each, and group the replies by decision.

    The run does not change, and no step after this one is executed. What comes before is taken from
    the record of the run. The first time has the run's seed, each further one another. ``prompts``
    are used in place of the run's. ``check`` is called before each time, and may raise to stop.
    Decisions are compared as two runs are: explanations and scores do not count. Replies that are
    not valid are one group. The most frequent decision comes first.

    Raises SettingError unless ``times`` is 1 to MAX_TIMES, what ``Run.fork_to_ask`` raises, and
    what the models raise.
    """
    check_times(times)
    decisions: list[SampledDecision] = []
    asked = Counter({model.name: times for model in models})
    usage: Counter[str] = Counter()
    for model in models:
        for number in range(times):
            check()
            varied = _Varied(model, number, usage)
            text, output = _decide(run, step, varied, prompts)
            decision = _find_decision(decisions, text, output)
            if decision is None:
                decision = SampledDecision(text, output, asked=asked)
                decisions.append(decision)
            decision.models[model.name] += 1
    decisions.sort(key=lambda decision: -decision.models.total())
    return StepSample(tuple(decisions), usage["calls"], usage["tokens"])


def _decide(run: Run, step: str, model: ChatModel, prompts: Prompts | None) -> tuple[str, Any]:
    """Execute a copy of a run up to a step that asks this model, and return what the step decided.

    That is its output on one line, cut at MAX_DECISION_CHARS, and as it is. Without a valid reply
    they are NO_VALID_REPLY and None.
    """
    copy = run.fork_to_ask(step, model, prompts=prompts)
    try:
        copy.go(step)
    except InvalidReplyError:
        return NO_VALID_REPLY, None
    done = copy[step]
    lines = output_lines(done, run.display_names())
    return shorten(single_line("; ".join(lines)), MAX_DECISION_CHARS), done.output


def _find_decision(
    decisions: Sequence[SampledDecision], text: str, output: Any
) -> SampledDecision | None:
    """Return the decision in the list that is equal to an output; None if there is none.

    ``text`` is NO_VALID_REPLY for an output without a valid reply.
    """
    for decision in decisions:
        is_same_kind = decision.is_valid == (text != NO_VALID_REPLY)
        if is_same_kind and decision_of(decision.output) == decision_of(output):
            return decision
    return None
