"""The oracle ladder: which agent lost an answer.

Gold is put in at one agent after another, until the answer is right. Each rung of a system's ladder
(``kgwb.systems.<name>.gold``) adds gold values to those of the rungs before it. The first agent
whose gold makes the answer right is to blame. Calls that the gold does not change come from the
record of the run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from rdflib import URIRef

from kgwb.bench.metrics import score_answers
from kgwb.bench.questions import (
    BenchQuestion,
    add_gold_answers,
    group_by_dialogue,
    read_gold_query_of,
)
from kgwb.bench.results import (
    BenchRow,
    Results,
    RowFile,
    RowSchema,
    add_remembered_turn,
    compute_answer_f1,
    is_lost,
)
from kgwb.bench.runner import (
    AskPlaces,
    BenchSetup,
    RunCanceller,
    Task,
    begin_question,
    open_store,
    raise_if_unreachable,
    run_tasks,
)
from kgwb.errors import InputError, OverrideError, QuestionError
from kgwb.kg.base import Graph
from kgwb.records import JsonObject, to_data
from kgwb.run import Run, System
from kgwb.run import Setup as RunSetup
from kgwb.run.answers import Dialogue
from kgwb.run.gold import GoldDecisions, GoldQuery
from kgwb.run.store import find_store

LADDER_FILE = "ladder.jsonl"
# These texts are stored in the ladder's file, so they must not change.
NO_GOLD_QUERY = "there is no gold query that can be read"
GOLD_NOT_REPRODUCED = "the graph does not give the gold answers to the gold query"
NOT_FIXED_BY_GOLD = "not even the gold query mends it"


class LossRowSchema(RowSchema):
    """The fields of a row of the ladder's file that kgwb reads."""

    agent: str | None
    """The agent to blame; None if none is known."""
    stage: str | None
    step: str | None = None
    """The key of the step to blame; None if none is known."""
    first_wrong_step: str | None = None
    """The key of the first step that decided otherwise than gold; None if none is known."""
    gold_value: Any = None
    """What gold has at the step to blame, as JSON data; None if no agent is known."""
    why: str
    """Why no agent is known, and which gold values were refused by an agent's own check."""


def gold_decisions_of(system: System) -> GoldDecisions:
    """Return the system's gold decisions: its stages and the rungs of its ladder.

    Raises InputError if the system has none.
    """
    if system.gold is None:
        raise InputError(
            f"the system {system.name} has no gold decisions, and the ladder needs them",
            hint="leave out the ladder (--ladder), or give the system gold decisions: System(..., gold=...)",
        )
    return system.gold


def locate_losses(
    setup: BenchSetup,
    results: Results,
    questions: Sequence[BenchQuestion],
    *,
    workers: int = 1,
    store: Path | None = None,
    on_row: Callable[[BenchRow], object] = lambda row: None,
) -> list[BenchRow]:
    """Find the agent to blame for each lost answer among these questions, and return a ladder's row for each.

    New rows are written to ``ladder.jsonl``; rows that are there already are kept, if they are
    about the present result. What was asked comes from the ``store`` of calls, by default that of
    the folder, or from a saved run; the rest is asked, ``workers`` questions at a time. ``on_row``
    is called with every new row. The rows returned are in the order of the questions. Raises
    InputError if the system has no gold decisions, and what ``run_tasks`` raises.
    """
    gold_decisions_of(setup.system)
    loss_file = RowFile(results.folder / LADDER_FILE, LossRowSchema)
    canceller = RunCanceller()
    folder = results.folder.resolve()
    places = AskPlaces(folder, store or find_store(folder))

    def locate(question: BenchQuestion, row: BenchRow, dialogue: Dialogue) -> Task:
        """Run ``locate_loss`` on a worker, append its row to the ladder's file, and report it."""
        loss_row = yield locate_loss, setup, question, row, dialogue, places, canceller
        loss_file.append(loss_row)
        on_row(loss_row)

    tasks = []
    lost_ids = set()
    rows = {row["id"]: row for row in results.rows_for(questions)}
    for question, dialogue in _with_dialogues(questions, rows):
        row = rows.get(question.id)
        if row is None or not is_lost(row):
            continue
        lost_ids.add(question.id)
        if not is_current(loss_file.rows.get(question.id), row):
            tasks.append(locate(question, row, dialogue))
    with closing(loss_file):
        run_tasks(tasks, workers, canceller)
    return [loss_file.rows[question.id] for question in questions if question.id in lost_ids]


def _with_dialogues(
    questions: Sequence[BenchQuestion], rows: dict[str, BenchRow]
) -> Iterator[tuple[BenchQuestion, Dialogue]]:
    """Yield each question with the dialogue before it, made of the turns that the rows remember.

    Questions come dialogue by dialogue. Turns without a row, or that were not answered, are
    missing; outside of dialogues it is empty.
    """
    for turns in group_by_dialogue(questions):
        dialogue = Dialogue()
        for question in turns:
            yield question, dialogue
            dialogue = add_remembered_turn(dialogue, rows.get(question.id))


def is_current(loss_row: BenchRow | None, row: BenchRow | None) -> bool:
    """Return whether a row of the ladder is about this result: whether F1, error and gold are equal.

    False if one of the two is missing. Rows of earlier versions do not have the gold, which is then
    not compared.
    """
    if loss_row is None or row is None:
        return False
    if loss_row.get("gold", row["gold"]) != row["gold"]:
        return False
    has_same_f1 = loss_row.get("f1") == row.get("f1")
    return has_same_f1 and loss_row["error"] == row["error"]


def agent_or_reason(loss_row: Mapping[str, Any]) -> str:
    """Return the agent to blame for a loss, or the reason that none is known, without its details."""
    reason: str = loss_row["why"].partition(";")[0]
    return loss_row["agent"] or reason


def locate_loss(
    setup: BenchSetup,
    question: BenchQuestion,
    row: BenchRow,
    dialogue: Dialogue,
    places: AskPlaces,
    canceller: RunCanceller,
) -> BenchRow:
    """Return the ladder's row of one lost answer: the question, the agent to blame, and the rungs.

    The question is executed again with this dialogue and with what was asked before; then the rungs
    are applied (``apply_rungs``). Without a gold query, if the question cannot be asked, or if the
    answer is right this time, "why" has this reason and no rung is applied.

    Raises Cancelled, and the error if the model or the graph cannot be reached.
    """
    loss_row: BenchRow = {}
    for name in ("id", "hops", "type", "question", "gold", "f1", "error"):
        if name in row:
            loss_row[name] = row[name]
    unknown = ("agent", "stage", "step", "first_wrong_step", "mended_by")
    loss_row |= {**dict.fromkeys(unknown), "rungs": {}, "model_calls": 0, "why": ""}
    gold = load_gold_query(question, setup.kg)
    if gold is None:
        return loss_row | {"why": NO_GOLD_QUERY}
    with open_store(setup, question, places) as store:
        try:
            run = begin_question(setup, question, dialogue)
        except QuestionError:
            return loss_row | {"why": "it cannot be asked"}
        run.use_store(store)
        if _execute_and_score(run, question, canceller) == 1:
            return loss_row | {"why": "it came right when it was asked again"}
        return loss_row | apply_rungs(run, gold, question, setup, canceller)


def load_gold_query(question: BenchQuestion, kg: Graph) -> GoldQuery | None:
    """Return the parts of a question's gold query, with the display names of its IRIs from the graph.

    In a dialogue it has the gold standalone wording, too. Returns None without a query that can be
    taken apart. One request for names is sent.
    """
    gold = read_gold_query_of(question, kg)
    if gold is None:
        return None
    iris = sorted(map(URIRef, gold.vertices | gold.predicates))
    names = {}
    for iri, name in kg.names(iris).items():
        names[f"<{iri}>"] = name
    standalone = ""
    if question.dialogue is not None and question.standalone:
        standalone = question.standalone
    return replace(gold, names=names, standalone=standalone)


def apply_rungs(
    run: Run, gold: GoldQuery, question: BenchQuestion, setup: RunSetup, canceller: RunCanceller
) -> JsonObject:
    """Apply the rungs of the system's ladder to a run that lost its answer, until it is right.

    Returns fields of a ladder's row: the F1 of each rung, the model calls made, the key of the first
    step that decided otherwise than gold ("first_wrong_step"), and either the agent to blame with its
    stage, its step, what gold has there ("gold_value") and its rung ("mended_by"), or in "why" the
    reason that none is known. A rung is left out if the run decided like gold there, or if an agent's
    own check refuses the gold.
    """
    decisions = gold_decisions_of(setup.system)
    f1_by_rung: dict[str, float] = {}
    refusals = []
    model_calls = 0
    first_wrong_step = None
    blamed: JsonObject = {}
    for name, make_rung in decisions.ladder.items():
        rung = make_rung(run, gold)
        if rung is None:
            continue
        next_run = run.fork()
        for step_key, value in rung.values.items():
            next_run.override(step_key, value)  # checked when the step is executed
        f1 = _execute_and_score(next_run, question, canceller)
        model_calls += next_run.totals.live_model_calls
        if isinstance(next_run.error, OverrideError):
            refusals.append(f"{name} refused: {next_run.error.message}")
            continue
        run = next_run
        f1_by_rung[name] = f1
        step, gold_value = next(iter(rung.values.items()))
        first_wrong_step = first_wrong_step or step
        if f1 == 1:
            blamed = {
                "agent": rung.agent,
                "stage": rung.stage or setup.system.stage_by_agent.get(rung.agent),
                "step": step,
                "gold_value": to_data(gold_value),
                "mended_by": name,
            }
            break
    if not blamed:
        reason = GOLD_NOT_REPRODUCED
        if _reproduces_gold(question, setup.kg):
            reason = NOT_FIXED_BY_GOLD
        refusals.insert(0, reason)
    return {
        **blamed,
        "first_wrong_step": first_wrong_step,
        "rungs": f1_by_rung,
        "model_calls": model_calls,
        "why": "; ".join(refusals),
    }


def _reproduces_gold(question: BenchQuestion, kg: Graph) -> bool:
    """Execute the gold query, and return whether it gives exactly the gold answers; False if it cannot run."""
    unanswered = question.model_copy(update={"answers": None})
    [answered] = add_gold_answers([unanswered], kg)
    if answered.answers is None:
        return False
    scores = score_answers(answered.answers, question.answers or ())
    return scores.f1 == 1


def _execute_and_score(run: Run, question: BenchQuestion, canceller: RunCanceller) -> float:
    """Execute a run to its end, and return the F1 of its answer; 0 if it failed.

    Raises the error if the model or the graph cannot be reached, and Cancelled.
    """
    error = canceller.execute(run)
    raise_if_unreachable(run)
    if error is not None:
        return 0.0
    return compute_answer_f1(run.answer, question.answers or ())


def compute_linking_recall(
    rows: Sequence[BenchRow], element: str, count: str = "linked"
) -> float | None:
    """Return the mean recall of linking over the questions whose gold query has such elements, 0 to 1.

    ``element`` is "vertices" or "predicates". The recall of a question is the share of its gold
    elements that was linked, or with ``count`` "candidates" that was linked or a candidate. Returns
    None if there is no such question.
    """
    shares: list[float] = []
    for row in rows:
        counts = row.get("linking", {}).get(element)
        if counts and counts["gold"]:
            shares.append(counts[count] / counts["gold"])
    if not shares:
        return None
    return sum(shares) / len(shares)
