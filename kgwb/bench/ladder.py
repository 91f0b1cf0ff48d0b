"""Where an answer was lost: gold put in at one agent after another, until the answer comes right.

Each rung of a system's ladder (``kgwb.systems.<name>.gold``) adds gold to what the rungs before put in. The
first whose gold fixes the answer names the agent. Calls that the gold does not change come from the record.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from rdflib import URIRef

from kgwb.bench.metrics import score_answers
from kgwb.bench.questions import (
    BenchQuestion,
    add_gold_answers,
    answer_to_strings,
    group_by_dialogue,
    read_gold_query_of,
)
from kgwb.bench.results import BenchRow, Results, RowFile, RowSchema, find_run_file, is_lost
from kgwb.bench.runner import BenchSetup, RunCanceller, Task, run_tasks
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

LADDER_FILE = "ladder.jsonl"
NO_GOLD_QUERY = "there is no gold query that can be read"
GOLD_NOT_REPRODUCED = "the graph does not give the gold answers to the gold query"
NOT_FIXED_BY_GOLD = "not even the gold query mends it"


class LossRowSchema(RowSchema):
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


def locate_losses(
    setup: BenchSetup,
    results: Results,
    questions: Sequence[BenchQuestion],
    *,
    workers: int = 1,
    on_row: Callable[[BenchRow], object] = lambda row: None,
) -> list[BenchRow]:
    """The lines of ``ladder.jsonl``, one for each lost answer among these questions; goes on where it was.

    Saved runs are used where there are any; else the question is asked again. Raises InputError if the system
    does not say what gold means to its agents.
    """
    gold_decisions_of(setup.system)
    rows = {row["id"]: row for row in results.rows_for(questions)}
    lines = RowFile(results.folder / LADDER_FILE, LossRowSchema)
    watch, folder = RunCanceller(), results.folder.resolve()

    def work(question: BenchQuestion, dialogue: Dialogue) -> Task:
        line = yield locate_loss, setup, question, rows[question.id], dialogue, folder, watch
        lines.append(line)
        on_row(line)

    missed = {key: row for key, row in rows.items() if is_lost(row)}
    works = []
    for turns in group_by_dialogue(questions):
        dialogue = Dialogue()
        for question in turns:
            if question.id in missed and not is_current(
                lines.rows.get(question.id), missed[question.id]
            ):
                works.append(work(question, dialogue))
            turn = from_data(rows.get(question.id, {}).get("remembered"), Turn | None)
            dialogue = Dialogue((*dialogue.turns, turn)) if turn else dialogue
    run_tasks(works, workers, watch)
    return [lines.rows[each.id] for each in questions if each.id in missed]


def is_current(loss_row: BenchRow | None, row: BenchRow | None) -> bool:
    """Whether a line is about this result, and not about one that was asked again since."""
    if loss_row is None or row is None:
        return False
    return (loss_row.get("f1"), loss_row["error"]) == (row.get("f1"), row["error"])


def locate_loss(
    setup: BenchSetup,
    question: BenchQuestion,
    row: BenchRow,
    dialogue: Dialogue,
    folder: Path,
    watch: RunCanceller,
) -> BenchRow:
    """The line of one lost answer. Raises Cancelled, and what says nothing about any agent."""
    line: BenchRow = {
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
    if (gold := load_gold_query(question, setup.kg)) is None:
        return line | {"why": NO_GOLD_QUERY}
    try:
        if file := find_run_file(folder, row):
            run = Run.load(file, setup.system, kg=setup.kg, models=setup.models)
            run = run.fork(prompts=setup.prompts, embeddings=setup.embeddings)
        else:
            run = setup.begin(question.question, dialogue)
    except QuestionError:
        return line | {"why": "it cannot be asked"}
    if _execute_and_score(run, question, watch) == 1:
        return line | {"why": "it came right when it was asked again"}
    return line | apply_rungs(run, gold, question, setup, watch)


def load_gold_query(question: BenchQuestion, kg: Graph) -> GoldQuery | None:
    """The gold query of a question taken apart, its IRIs named; None if there is none that can be read."""
    gold = read_gold_query_of(question, kg)
    if gold is None:
        return None
    names = kg.names(sorted(URIRef(iri) for iri in gold.vertices | gold.predicates))
    standalone = (question.standalone or "") if question.dialogue is not None else ""
    return replace(
        gold, names={f"<{iri}>": name for iri, name in names.items()}, standalone=standalone
    )


def apply_rungs(
    run: Run, gold: GoldQuery, question: BenchQuestion, setup: RunSetup, watch: RunCanceller
) -> BenchRow:
    """What the rungs did to a run that lost its answer."""
    known = gold_decisions_of(setup.system)
    rungs: dict[str, float] = {}
    refused, calls = [], 0
    for name, put in known.ladder.items():
        if (rung := put(run, gold)) is None:
            continue
        higher = run.fork()
        for step, value in rung.values.items():  # what is wrong with a value shows when it runs
            higher.override(step, value)
        f1 = _execute_and_score(higher, question, watch)
        calls += higher.totals.live_model_calls
        if isinstance(higher.error, OverrideError):
            refused.append(f"{name} refused: {higher.error.message}")
            continue
        run, rungs[name] = higher, f1
        if f1 == 1:
            blame = {"agent": rung.agent, "stage": known.stages.get(rung.agent), "mended_by": name}
            return {**blame, "rungs": rungs, "model_calls": calls, "why": "; ".join(refused)}
    (asked,) = add_gold_answers([question.model_copy(update={"answers": None})], setup.kg)
    right = (
        asked.answers is not None and score_answers(asked.answers, question.answers or ()).f1 == 1
    )
    why = [NOT_FIXED_BY_GOLD if right else GOLD_NOT_REPRODUCED, *refused]
    return {"rungs": rungs, "model_calls": calls, "why": "; ".join(why)}


def _execute_and_score(run: Run, question: BenchQuestion, watch: RunCanceller) -> float:
    """The F1 of a run once it is executed; 0 after an error. Raises what says nothing of any agent."""
    error = watch.execute(run)
    if isinstance(run.error, ModelUnreachableError | GraphUnreachableError):
        raise run.error
    return (
        0.0
        if error is not None
        else score_answers(answer_to_strings(run.answer), question.answers or ()).f1
    )


def compute_linking_recall(
    rows: Sequence[BenchRow], element: str, count: str = "linked"
) -> float | None:
    """The average share of the gold ``what`` (vertices, predicates) that was linked, or among ``candidates``.

    Over the questions whose gold query has any; None if there is none.
    """
    linked = [
        counts for row in rows if (counts := row.get("linking", {}).get(element)) and counts["gold"]
    ]
    return sum(each[count] / each["gold"] for each in linked) / len(linked) if linked else None
