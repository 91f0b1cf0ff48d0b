"""Where an answer was lost: gold put in at one agent after another, until the answer comes right.

Each rung of a system's ladder (``kgwb.systems.<name>.gold``) adds gold to what the rungs before put in. The
first whose gold fixes the answer names the agent. Calls that the gold does not change come from the record.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from rdflib import URIRef

from kgwb.bench.metrics import score
from kgwb.bench.questions import BenchQuestion, answer_strings, conversations, read_gold, with_gold
from kgwb.bench.results import Line, Lines, Results, Row, lost, run_file
from kgwb.bench.runner import Setup, Watch, Work, work_off
from kgwb.errors import (
    GraphUnreachableError,
    InputError,
    ModelUnreachableError,
    OverrideError,
    QuestionError,
)
from kgwb.flow import Dialogue, Turn
from kgwb.kg.base import Graph
from kgwb.records import from_data
from kgwb.run import Run, System
from kgwb.run import Setup as RunSetup
from kgwb.run.gold import GoldDecisions, GoldQuery

LADDER = "ladder.jsonl"
NO_GOLD = "there is no gold query that can be read"
GRAPH_OR_GOLD = "the graph does not give the gold answers to the gold query"
POST_PROCESSING = "not even the gold query mends it"


class Lost(Line):
    """What is read of a line of the ladder's file."""

    agent: str | None
    stage: str | None
    why: str


def gold_decisions_of(system: System) -> GoldDecisions:
    """Return what gold means to the agents of a system. Raises InputError if it does not say."""
    if system.gold is None:
        raise InputError(
            f"{system.name} does not say what gold means to its agents",
            hint="leave the ladder out, or give the System its gold decisions",
        )
    return system.gold


def where_lost(
    setup: Setup,
    results: Results,
    questions: Sequence[BenchQuestion],
    *,
    workers: int = 1,
    finished: Callable[[Row], object] = lambda row: None,
) -> list[Row]:
    """The lines of ``ladder.jsonl``, one for each lost answer among these questions; goes on where it was.

    Saved runs are used where there are any; else the question is asked again. Raises InputError if the system
    does not say what gold means to its agents.
    """
    gold_decisions_of(setup.system)
    rows = {row["id"]: row for row in results.of(questions)}
    lines = Lines(results.folder / LADDER, Lost)
    watch, folder = Watch(), results.folder.resolve()

    def work(question: BenchQuestion, dialogue: Dialogue) -> Work:
        line = yield climb, setup, question, rows[question.id], dialogue, folder, watch
        lines.add(line)
        finished(line)

    missed = {key: row for key, row in rows.items() if lost(row)}
    works = []
    for turns in conversations(questions):
        dialogue = Dialogue()
        for question in turns:
            if question.id in missed and not stands(
                lines.rows.get(question.id), missed[question.id]
            ):
                works.append(work(question, dialogue))
            turn = from_data(rows.get(question.id, {}).get("remembered"), Turn | None)
            dialogue = Dialogue((*dialogue.turns, turn)) if turn else dialogue
    work_off(works, workers, watch)
    return [lines.rows[each.id] for each in questions if each.id in missed]


def stands(line: Row | None, row: Row | None) -> bool:
    """Whether a line is about this result, and not about one that was asked again since."""
    if line is None or row is None:
        return False
    return (line.get("f1"), line["error"]) == (row.get("f1"), row["error"])


def climb(
    setup: Setup, question: BenchQuestion, row: Row, dialogue: Dialogue, folder: Path, watch: Watch
) -> Row:
    """The line of one lost answer. Raises Cancelled, and what says nothing about any agent."""
    line: Row = {
        name: row[name] for name in ("id", "hops", "type", "question", "f1", "error") if name in row
    }
    line |= {
        "agent": None,
        "stage": None,
        "mended_by": None,
        "rungs": {},
        "model_calls": 0,
        "why": "",
    }
    if (gold := gold_of(question, setup.kg)) is None:
        return line | {"why": NO_GOLD}
    try:
        if file := run_file(folder, row):
            run = Run.load(file, setup.system, kg=setup.kg, models=setup.models)
            run = run.fork(prompts=setup.prompts, embeddings=setup.embeddings)
        else:
            run = setup.begin(question.question, dialogue)
    except QuestionError:
        return line | {"why": "it cannot be asked"}
    if _executed(run, question, watch) == 1:
        return line | {"why": "it came right when it was asked again"}
    return line | climbed(run, gold, question, setup, watch)


def gold_of(question: BenchQuestion, kg: Graph) -> GoldQuery | None:
    """The gold query of a question taken apart, its IRIs named; None if there is none that can be read."""
    gold = read_gold(question, kg)
    if gold is None:
        return None
    names = kg.names(sorted(URIRef(iri) for iri in gold.vertices | gold.predicates))
    standalone = (question.standalone or "") if question.dialogue is not None else ""
    return replace(
        gold, names={f"<{iri}>": name for iri, name in names.items()}, standalone=standalone
    )


def climbed(
    run: Run, gold: GoldQuery, question: BenchQuestion, setup: RunSetup, watch: Watch
) -> Row:
    """What the rungs did to a run that lost its answer."""
    known = gold_decisions_of(setup.system)
    rungs: dict[str, float] = {}
    refused, calls = [], 0
    for name, put in known.ladder.items():
        if (rung := put(run, gold)) is None:
            continue
        higher = run.fork()
        for step, value in rung.values.items():  # what is wrong with a value shows when it runs
            higher.replace(step, value)
        f1 = _executed(higher, question, watch)
        calls += higher.totals.live_model_calls
        if isinstance(higher.error, OverrideError):
            refused.append(f"{name} refused: {higher.error.message}")
            continue
        run, rungs[name] = higher, f1
        if f1 == 1:
            blame = {"agent": rung.agent, "stage": known.stages.get(rung.agent), "mended_by": name}
            return {**blame, "rungs": rungs, "model_calls": calls, "why": "; ".join(refused)}
    (asked,) = with_gold([question.model_copy(update={"answers": None})], setup.kg)
    right = asked.answers is not None and score(asked.answers, question.answers or ()).f1 == 1
    why = [POST_PROCESSING if right else GRAPH_OR_GOLD, *refused]
    return {"rungs": rungs, "model_calls": calls, "why": "; ".join(why)}


def _executed(run: Run, question: BenchQuestion, watch: Watch) -> float:
    """The F1 of a run once it is executed; 0 after an error. Raises what says nothing of any agent."""
    error = watch.execute(run)
    if isinstance(run.error, ModelUnreachableError | GraphUnreachableError):
        raise run.error
    return (
        0.0 if error is not None else score(answer_strings(run.answer), question.answers or ()).f1
    )


def recall(rows: Sequence[Row], what: str, of: str = "linked") -> float | None:
    """The average share of the gold ``what`` (vertices, predicates) that was linked, or among ``candidates``.

    Over the questions whose gold query has any; None if there is none.
    """
    linked = [
        counts for row in rows if (counts := row.get("linking", {}).get(what)) and counts["gold"]
    ]
    return sum(each[of] / each["gold"] for each in linked) / len(linked) if linked else None
