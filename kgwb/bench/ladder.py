"""Where an answer was lost: gold put in at one agent after another, until the answer comes right.

Each rung of a system's ladder (``kgwb.systems.<name>.gold``) adds gold to what the rungs before put in. The
first whose gold mends the answer names the agent. Calls that the gold does not change come from the record.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from pathlib import Path

from rdflib import URIRef

from kgwb.bench.gold import standard, with_gold
from kgwb.bench.metrics import score
from kgwb.bench.questions import BenchQuestion, conversations, term_string
from kgwb.bench.results import Line, Lines, Results, Row, run_file
from kgwb.bench.runner import Setup, Task, Watch, go, lost, work_off
from kgwb.errors import (
    GraphUnreachableError,
    InputError,
    ModelUnreachableError,
    OverrideError,
    QuestionError,
)
from kgwb.flow import Dialogue, Turn, from_data
from kgwb.run import Run
from kgwb.show.html import clean
from kgwb.systems import oracle
from kgwb.systems.gold import Gold, Rung, read

LADDER = "ladder.jsonl"
NO_GOLD = "there is no gold query that can be read"
GRAPH_OR_GOLD = "the graph does not give the gold answers to the gold query"
POST_PROCESSING = "not even the gold query mends it"


class Lost(Line):
    """What is read of a line of the ladder's file."""

    agent: str | None
    stage: str | None
    why: str


def where_lost(
    setup: Setup,
    results: Results,
    questions: Sequence[BenchQuestion],
    *,
    workers: int = 1,
    executor: Executor | None = None,
    finished: Callable[[Row], object] = lambda row: None,
) -> list[Row]:
    """The lines of ``ladder.jsonl``, one for each lost answer among these questions; goes on where it was.

    Saved runs are used where there are any; else the question is asked again. Raises InputError if the system
    does not say what gold means to its agents.
    """
    if oracle(setup.system.name) is None:
        hint = f"write kgwb/systems/{setup.system.name}/gold.py"
        raise InputError(f"{setup.system.name} does not say what gold means to its agents", hint=hint)
    rows = {row["id"]: row for row in results.of(questions)}
    missed = [question for question in questions if question.id in rows and lost(rows[question.id])]
    lines = Lines(results.folder / LADDER, Lost)
    held, watch, folder = _dialogues(questions, rows), Watch(), results.folder.resolve()

    def then(line: Row) -> None:
        lines.add(line)
        finished(line)

    left = [one for one in missed if not _same(lines.rows.get(one.id), rows[one.id])]
    calls = [(climb, setup, one, rows[one.id], held[one.id], folder, watch) for one in left]
    work_off((Task(call, then) for call in calls), executor or workers, watch)
    return [lines.rows[one.id] for one in missed]


def _same(line: Row | None, row: Row) -> bool:
    """Whether a line is about this result, and not one that was asked again since."""
    return line is not None and (line.get("f1"), line["error"]) == (row["f1"], row["error"])


def _dialogues(questions: Sequence[BenchQuestion], rows: Mapping[str, Row]) -> dict[str, Dialogue]:
    """What was said before each question, as the lines remember it."""
    found = {}
    for turns in conversations(questions):
        earlier: tuple[Turn, ...] = ()
        for question in turns:
            found[question.id] = Dialogue(earlier)
            turn = from_data(rows.get(question.id, {}).get("remembered"), Turn | None)
            earlier = (*earlier, turn) if turn else earlier
    return found


# --- one lost answer


def climb(
    setup: Setup, question: BenchQuestion, row: Row, dialogue: Dialogue, folder: Path, watch: Watch
) -> Row:
    """The line of one lost answer. Raises Cancelled."""
    run, gold = _again(setup, question, row, dialogue, folder), _gold(question, setup)
    line: Row = {name: row[name] for name in ("id", "hops", "type", "question", "f1", "error") if name in row}
    line |= {"agent": None, "stage": None, "mended_by": None, "rungs": {}, "model_calls": 0, "why": ""}
    if run is None or gold is None:
        return line | {"why": NO_GOLD if gold is None else "it cannot be asked"}
    if _f1(run, _go(run, watch), question) == 1:
        return line | {"why": "it came right when it was asked again"}
    return line | _climbed(run, gold, question, setup, watch)


def _gold(question: BenchQuestion, setup: Setup) -> Gold | None:
    """The gold query with what its IRIs are called."""
    gold = read(standard(question.sparql), setup.kg.vocabulary) if question.sparql else None
    if gold is None:
        return None
    terms = {term for pattern in gold.patterns for term in pattern if term.startswith("<")}
    names = setup.kg.names(sorted(URIRef(term[1:-1]) for term in terms))
    standalone = (question.standalone or "") if question.dialogue is not None else ""
    return replace(gold, names={f"<{iri}>": name for iri, name in names.items()}, standalone=standalone)


def _again(setup: Setup, question: BenchQuestion, row: Row, dialogue: Dialogue, folder: Path) -> Run | None:
    """The saved run of a line, or else one that is asked anew; None of a question that cannot be asked."""
    file = run_file(folder, row)
    try:
        if file:
            saved = Run.load(file, setup.system, kg=setup.kg, models=setup.models)
            return saved.fork(prompts=setup.prompts, embeddings=setup.embeddings)
        return setup.begin(question.question, dialogue)
    except QuestionError:
        return None


def _climbed(run: Run, gold: Gold, question: BenchQuestion, setup: Setup, watch: Watch) -> Row:
    """What the rungs did to a run that lost its answer."""
    told = oracle(setup.system.name)
    rungs: dict[str, float] = {}
    refused, calls = [], 0
    for name, put in told.LADDER.items() if told else ():
        if (rung := put(run, gold)) is None:
            continue
        higher, error = _higher(run, rung, watch)
        calls += higher.totals.live_model_calls
        if isinstance(higher.error, OverrideError):
            refused.append(f"{name} refused: {error}")
            continue
        run, rungs[name] = higher, _f1(higher, error, question)
        if rungs[name] == 1:
            stage = told.STAGES.get(rung.agent) if told else None
            named = {"agent": rung.agent, "stage": stage, "mended_by": name}
            return {**named, "rungs": rungs, "model_calls": calls, "why": "; ".join(refused)}
    (asked,) = with_gold([question.model_copy(update={"answers": None})], setup.kg)
    right = asked.answers is not None and score(asked.answers, question.answers or ()).f1 == 1
    why = [POST_PROCESSING if right else GRAPH_OR_GOLD, *refused]
    return {"rungs": rungs, "model_calls": calls, "why": "; ".join(why)}


def _higher(run: Run, rung: Rung, watch: Watch) -> tuple[Run, str | None]:
    """The run with a rung's gold in it, executed, and the error it ended in."""
    higher = run.fork()
    for step, value in rung.values.items():
        higher.replace(step, value)  # a fork has no steps yet: what is wrong with a value shows when it runs
    return higher, _go(higher, watch)


def _go(run: Run, watch: Watch) -> str | None:
    """Execute a run; the error it ended in, or None. Raises what says nothing about any agent."""
    error = go(run, watch)
    if isinstance(run.error, ModelUnreachableError | GraphUnreachableError):
        raise run.error
    return error


def _f1(run: Run, error: str | None, question: BenchQuestion) -> float:
    if error is not None or run.answer is None:
        return 0.0
    return score([term_string(value.term) for value in run.answer.values], question.answers or ()).f1


# --- what came of it


@dataclass(frozen=True, slots=True)
class Loss:
    """Lost answers that one agent is to blame for, or that none is."""

    name: str
    """The agent; where none is named, why."""
    stage: str | None
    answers: int
    by_hops: Mapping[str, int]


def losses(lines: Sequence[Row], agents: Sequence[str] = ()) -> list[Loss]:
    """Lost answers by agent, in the order of ``agents`` (a system's, in flow order), those of none last."""
    named: dict[tuple[str, str | None], list[Row]] = {}
    for line in lines:
        named.setdefault((line["agent"] or line["why"].partition(";")[0], line["stage"]), []).append(line)
    order = {name: place for place, name in enumerate(agents)}
    told = [
        Loss(name, stage, len(some), Counter(str(line["hops"]) for line in some if "hops" in line))
        for (name, stage), some in named.items()
    ]
    return sorted(told, key=lambda loss: (order.get(loss.name, len(order)), loss.name))


def loss_table(told: Sequence[Loss], understanding: str = "understanding") -> str:
    """Losses as a table of text, with the paper's split: question understanding, or other."""
    hops = sorted({hop for loss in told for hop in loss.by_hops})
    split = {
        f"question {understanding}": [loss for loss in told if loss.stage == understanding],
        "other": [loss for loss in told if loss.stage != understanding],
    }
    lines = [(clean(loss.name), [loss]) for loss in told]
    lines += [("all lost answers", list(told)), *((f"  {name}", some) for name, some in split.items())]
    width = max(len(name) for name, _ in lines)
    table = ["  ".join([f"{'lost at':<{width}}", "answers", *(f"hops {clean(hop)}" for hop in hops)])]
    for name, some in lines:
        counts = [f"{sum(loss.by_hops.get(hop, 0) for loss in some):>{len(hop) + 5}}" for hop in hops]
        table.append("  ".join([f"{name:<{width}}", f"{sum(loss.answers for loss in some):>7}", *counts]))
    return "\n".join(table)


def recall(rows: Sequence[Row], what: str, of: str = "linked") -> float | None:
    """The average share of the gold ``what`` (vertices, predicates) that was linked, or among ``candidates``.

    Over the questions whose gold query has any; None if there is none.
    """
    told = [row["linking"][what] for row in rows if "linking" in row and row["linking"][what]["gold"]]
    return sum(one[of] / one["gold"] for one in told) / len(told) if told else None
