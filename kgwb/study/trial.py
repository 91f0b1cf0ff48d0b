"""Trying systems on a model before an experiment: one question each over a sample graph.

The result tells what the model's server refuses, what was done about it, and what an experiment costs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kgwb.bench.cost import Prices, sum_usage
from kgwb.bench.figures import ReportTable
from kgwb.errors import InputError, KgwbError
from kgwb.kg.base import Graph
from kgwb.kg.embeddings import Embeddings
from kgwb.llm import ChatModel, RemoteModel
from kgwb.llm.remote import ServerBehaviour
from kgwb.run import Run, System
from kgwb.run.ask import JSON_CHECK_NAME, SCHEMA_CHECK_NAME
from kgwb.run.calls import Call
from kgwb.run.models import open_model
from kgwb.study.papers import Paper, count_questions, load_papers
from kgwb.text import format_seconds, pluralize, shorten

TRIAL_GRAPH = "films"
TRIAL_QUESTION = "When did Spirited Away come out?"
"""A question of the sample films that every system of kgwb can answer, in one to six calls."""
MAX_ANSWER_CHARS = 40
MAX_SAID_CHARS = 120
PRICE_UNKNOWN = "price not known"
FORM_CHECKS = (JSON_CHECK_NAME, SCHEMA_CHECK_NAME)
"""The checks that a reply of the schema's form cannot fail."""


class Usage(NamedTuple):
    """What one question takes."""

    calls: float
    prompt_tokens: float
    completion_tokens: float

    @property
    def tokens(self) -> float:
        """Tokens of prompts and completions together."""
        return self.prompt_tokens + self.completion_tokens

    @property
    def tokens_text(self) -> str:
        """The tokens as text; "not known" if there were calls, and none was reported."""
        if self.calls and not self.tokens:
            return "not known"
        return f"{self.tokens:,.0f}"

    def times(self, number: float) -> Usage:
        """Return what so many questions take."""
        return Usage(*(number * amount for amount in self))

    def describe(self, model: str, prices: Prices) -> str:
        """Return calls, tokens and price as text; the price is PRICE_UNKNOWN if the table has none."""
        calls = pluralize(round(self.calls), "call")
        return f"{calls}, tokens {self.tokens_text}, {self.describe_price(model, prices)}"

    def describe_price(self, model: str, prices: Prices) -> str:
        """Return what the tokens cost: "0.52 USD"; PRICE_UNKNOWN if the table has no price of the model."""
        try:
            price = prices.find_price(model)
        except InputError:
            return PRICE_UNKNOWN
        if self.calls and not self.tokens and (price.input or price.output):
            return PRICE_UNKNOWN  # the server reports no tokens
        input_money = price.input * self.prompt_tokens
        output_money = price.output * self.completion_tokens
        money = (input_money + output_money) / 1e6
        amount = f"{money:,.2f}" if money >= 1 else f"{money:.2g}"
        return f"{amount} {prices.currency}"


def usage_of_calls(calls: Sequence[Call]) -> Usage:
    """Return the model calls among calls, and their tokens."""
    counts = sum_usage(calls)
    return Usage(counts["model_calls"], counts["prompt_tokens"], counts["completion_tokens"])


class Finding(NamedTuple):
    """Something about a model, and what kgwb does about it."""

    what: str
    done: str


@dataclass(frozen=True)
class SystemTrial:
    """What came of the question of one system."""

    system: str
    model: str
    run: Run | None = None
    """None if the system or its model could not be opened."""
    error: str = ""
    """Why there is no answer."""
    server: RemoteModel | None = None
    """The model, if it is behind a server."""

    @property
    def behaviour(self) -> ServerBehaviour:
        """What the model has seen of its server; nothing for a model without one."""
        return self.server.behaviour if self.server else ServerBehaviour()

    @property
    def usage(self) -> Usage:
        """What the question took, with the replies that could not be used."""
        calls = list(self.run.calls.values()) if self.run else []
        return usage_of_calls(calls)

    @property
    def seconds(self) -> float:
        """How long the question took."""
        return self.run.totals.seconds if self.run else 0.0

    @property
    def invalid_replies(self) -> tuple[int, int]:
        """How many replies failed a check, and how many were checked."""
        failed = 0
        checked = 0
        for step in self.run.steps if self.run else ():
            for attempt in step.attempts:
                checked += 1
                failed += bool(attempt.problems)
        return failed, checked

    def findings(self) -> Iterator[Finding]:
        """Yield what the model's server refused or did not do, and what was done about it."""
        for refusal in self.behaviour.refusals:
            yield Finding(f"refuses {refusal.part}", refusal.done)
        replies = [call.result for call in self._model_calls()]
        if self._breaks_schema():
            yield Finding(
                "takes the JSON schema, and does not keep to it", "the checks find it; asked again"
            )
        if self.server and replies and not any(reply.prompt_tokens for reply in replies):
            yield Finding("reports no tokens", "its tokens count as 0")
        finish_reasons = Counter(reply.finish_reason for reply in replies)
        if finish_reasons["length"]:
            yield Finding(
                f"ends {pluralize(finish_reasons['length'], 'reply')} by length",
                "not used; raise the setting max_output_tokens",
            )
        if self.behaviour.reasoning_tokens:
            yield Finding("reasons before it replies", "counts that as tokens of the reply")

    def _breaks_schema(self) -> bool:
        """Return whether a reply whose form the server was to enforce by JSON schema has another form."""
        if self.run is None:
            return False
        for step in self.run.steps:
            for attempt in step.attempts:
                reply = self.run.calls[attempt.call].result
                if reply.mode != "schema" or reply.finish_reason != "stop":
                    continue
                if any(check.name in FORM_CHECKS for check in attempt.problems):
                    return True
        return False

    def _model_calls(self) -> list[Call]:
        """Return the model calls of the run."""
        calls = self.run.calls.values() if self.run else ()
        return [call for call in calls if call.kind == "model"]


def try_system(system: System, spec: ChatModel | str, graph: Graph) -> SystemTrial:
    """Ask a system TRIAL_QUESTION with its profile ``fast``, and return what came of it.

    A specification is opened anew, so that the model learns for each system what its server
    refuses. Nothing is raised for a model that cannot be opened and for a run that fails.
    """
    run = None
    name = str(spec)
    server = None
    error = ""
    try:
        model = open_model(spec)
        name = model.name
        if isinstance(model, RemoteModel):
            server = model
        run = Run(system, TRIAL_QUESTION, kg=graph, models=model, embeddings=Embeddings())
        run.go_explained()
    except KgwbError as exc:
        error = str(exc)
    return SystemTrial(system.name, name, run, error, server)


def try_tools(trials: Sequence[SystemTrial]) -> str:
    """Send the server of a trial that has answered a small request with a tool, and return what came of it.

    It is one line: whether the server takes tools, with its own words if it does not. It is empty
    if no trial with a server has answered.
    """
    for trial in trials:
        if trial.server is None or trial.error:
            continue
        try:
            words = trial.server.refuses_tools()
        except KgwbError as exc:
            return f"tools: not known: {exc.message}"
        if words:
            return f"tools: refused: {shorten(words, MAX_SAID_CHARS)}"
        return "tools: taken"
    return ""


def make_trial_table(trials: Sequence[SystemTrial], prices: Prices) -> ReportTable:
    """Return a table with a row for each system: its answer, and what the question took."""
    rows = []
    for trial in trials:
        answer = "failed"
        if trial.run is not None and trial.run.answer is not None and not trial.error:
            answer = shorten(str(trial.run.answer), MAX_ANSWER_CHARS)
        tokens = trial.usage.tokens_text
        if trial.behaviour.reasoning_tokens:
            tokens += f" ({trial.behaviour.reasoning_tokens:,} reasoning)"
        failed, checked = trial.invalid_replies
        waits = trial.behaviour.waits
        waited = sum(wait.seconds for wait in waits)
        rows.append(
            (
                trial.system,
                answer,
                round(trial.usage.calls),
                tokens,
                format_seconds(trial.seconds),
                f"{failed} of {checked}",
                f"{len(waits)}, {format_seconds(waited)}" if waits else "0",
                trial.usage.describe_price(trial.model, prices),
            )
        )
    headers = ("system", "answer", "calls", "tokens", "time", "not valid", "waits", "price")
    return ReportTable(headers, rows)


def make_findings_table(trials: Sequence[SystemTrial]) -> ReportTable:
    """Return a table of what the model refuses or does not do, what was done, and for which systems."""
    systems: dict[Finding, list[str]] = {}
    for trial in trials:
        for finding in trial.findings():
            systems.setdefault(finding, []).append(trial.system)
    rows = []
    for finding, names in systems.items():
        listed = "all" if len(names) == len(trials) else ", ".join(names)
        rows.append((finding.what, finding.done, listed))
    return ReportTable(("the model", "what kgwb did", "systems"), rows)


def list_server_words(trials: Sequence[SystemTrial]) -> list[str]:
    """Return the server's own words on each part that it refused, each part once."""
    words: dict[str, str] = {}
    for trial in trials:
        for refusal in trial.behaviour.refusals:
            words.setdefault(
                refusal.part, f"{refusal.part}: {shorten(refusal.said, MAX_SAID_CHARS)}"
            )
    return list(words.values())


def make_limits_table(trials: Sequence[SystemTrial]) -> ReportTable:
    """Return a table of the rate limits that were seen: the latest header values, and each kind of wait."""
    limits: dict[str, str] = {}
    waits: Counter[str] = Counter()
    for trial in trials:
        limits.update(trial.behaviour.limits)
        waits.update(str(wait) for wait in trial.behaviour.waits)
    rows: list[tuple[str, str]] = list(limits.items())
    for wait, number in waits.items():
        rows.append((wait, f"{number} times"))
    return ReportTable(("rate limit", "seen"), rows)


def make_costs_table(trials: Sequence[SystemTrial], prices: Prices) -> ReportTable:
    """Return a table of what the experiments of the papers cost with the model, for the tried systems.

    A question takes what the paper's ``cost`` says, in the trial's proportion of prompts and
    completions, and without that what the trial took. Failed systems and experiments that cannot
    be repeated are left out.
    """
    rows = []
    for paper_name, paper in load_papers().items():
        for trial in trials:
            if trial.system != paper.system or trial.error:
                continue
            question = _usage_of_question(paper, trial)
            for experiment in paper.experiments:
                if experiment.cannot:
                    continue
                number = count_questions(paper, experiment)
                usage = question.times(number)
                rows.append(
                    (
                        f"{paper_name}.{experiment.id}",
                        f"{number:,}",
                        f"{usage.calls:,.0f}",
                        usage.tokens_text,
                        usage.describe_price(trial.model, prices),
                    )
                )
    return ReportTable(("kgwb experiment", "questions", "calls", "tokens", "price"), rows)


def _usage_of_question(paper: Paper, trial: SystemTrial) -> Usage:
    """Return what a question of a paper's experiments takes; see ``make_costs_table``."""
    tried = trial.usage
    if paper.cost is None:
        return tried
    if not tried.tokens:
        return Usage(paper.cost.calls, paper.cost.tokens, 0.0)
    scale = paper.cost.tokens / tried.tokens
    return Usage(paper.cost.calls, tried.prompt_tokens * scale, tried.completion_tokens * scale)


def list_expected_costs(
    systems: Sequence[System], expected: Mapping[str, Usage], model: str, prices: Prices
) -> list[str]:
    """Return a line for each system with what TRIAL_QUESTION takes, and a last line with the sum.

    ``expected`` is by the name of the system; a system that is not in it has no known cost.
    """
    lines = []
    total = Usage(0, 0, 0)
    unknown = []
    for system in systems:
        usage = expected.get(system.name)
        if usage is None:
            unknown.append(system.name)
            lines.append(f"  {system.name:<14} calls not known")
            continue
        total = Usage(*(first + second for first, second in zip(total, usage, strict=True)))
        lines.append(f"  {system.name:<14} {usage.describe(model, prices)}")
    more = f", and what {', '.join(unknown)} takes" if unknown else ""
    lines.append(f"  {'in all':<14} {total.describe(model, prices)}{more}")
    return lines
