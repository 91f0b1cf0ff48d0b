"""The row of one question in a results file: its answer, scores, cost, and linked elements.

A row can be scored again by another gold, since it has the answers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import asdict, fields
from itertools import chain
from typing import Any

from rdflib import URIRef

from kgwb.bench.cost import list_served_models, sum_seconds_by_stage, sum_usage
from kgwb.bench.metrics import (
    FROM_GRAPH,
    OWN_KNOWLEDGE,
    ZERO_SCORES,
    Scores,
    score_answers,
    score_columns,
)
from kgwb.bench.questions import (
    BenchQuestion,
    answer_to_strings,
    read_gold_query_of,
    row_to_strings,
    to_standard_sparql,
)
from kgwb.bench.results import BenchRow, Results
from kgwb.errors import GraphError
from kgwb.flow import Answer, Reading
from kgwb.kg.algebra import analyze_query
from kgwb.run import Run
from kgwb.run.diagnostics import find_cut_result
from kgwb.run.steps import used_calls

_FIELDS_OF_GOLD = frozenset(
    (
        "hops type language dialogue turn standalone right sparql predicates columns gold_table by_column labels "
        "linking asks asks_before"
    ).split()
) | {score.name for score in fields(Scores)}
"""Fields of a row that are left out if the present question does not give them."""
QUESTION_FIELDS = (
    "id question hops type language dialogue turn standalone right sparql columns".split()
)
"""Fields of a row that a question has by the same name."""


def make_row(question: BenchQuestion, run: Run | None, error: str | None) -> BenchRow:
    """Return the row of a question for a results file: question, answers, gold, scores, and usage.

    ``run`` is None if the question could not be asked; then nothing was used. With an ``error``
    there is no answer and all scores are 0. Without gold there are no scores. What the system
    itself doubts is kept, and "cut_rows" if a limit cut the result of one of its queries. A table has
    its rows, too, and if the gold is a table, the F1 of each of its columns. Labels of IRIs are added if any is known.
    """
    answer = None
    if run and error is None:
        answer = run.answer
    recorded: BenchRow = {"answers": answer_to_strings(answer), "error": error}
    if run and run.settings.own_knowledge:
        recorded["source"] = FROM_GRAPH
        if answer is not None and answer.ungrounded:
            recorded["source"] = OWN_KNOWLEDGE
    if answer is not None and answer.columns:
        recorded["table"] = []
        for value in answer.values:
            cells = row_to_strings(value.row)
            recorded["table"].append(list(cells))
    labels = _labels_of_answer(answer)
    row = _score_answer(question, recorded, labels)
    if answer is not None and answer.doubt:
        row["doubt"] = answer.doubt
    cut_rows = _count_cut_rows(run, answer)
    if cut_rows:
        row["cut_rows"] = cut_rows
    row.update(_describe_usage(question, run))
    row["error"] = error
    return row


def _count_cut_rows(run: Run | None, answer: Answer | None) -> int:
    """Return at how many rows a limit cut the result of one of an answer's queries; 0 if none was cut."""
    if run is None or answer is None:
        return 0
    calls = used_calls(run.steps, run.calls)
    result = find_cut_result(answer, calls, run.kg.muted)
    return 0 if result is None else len(result.rows)


def describe_reading(reading: Reading, run: Run | None, error: str | None) -> BenchRow:
    """Return what was answered with a question read in another way, as a row keeps it."""
    answer = run.answer if run and error is None else None
    described: BenchRow = {"other": reading.other, "answers": answer_to_strings(answer)}
    if answer is not None and answer.columns:
        described["table"] = [list(row_to_strings(value.row)) for value in answer.values]
    if error is not None:
        described["error"] = error
    return described


def rescore_row(row: BenchRow, question: BenchQuestion, run: Run | None = None) -> BenchRow:
    """Return a copy of a row, scored by the present gold of its question. Nothing is asked.

    The answers are those of the row. What depends on neither the question nor its gold stays, such
    as usage. Linking is counted anew in ``run``, which must be finished; without it, it is left
    out.
    """
    rescored = _score_answer(question, row, row.get("labels", {}))
    for name, value in row.items():
        if name not in _FIELDS_OF_GOLD:
            rescored.setdefault(name, value)
    linking = _count_linked(question, run) if run else {}
    if linking:
        rescored["linking"] = linking
    return rescored


def scores_of_row(row: BenchRow) -> dict[str, float]:
    """Return all scores of a row with gold, by measure."""
    return {score.name: row[score.name] for score in fields(Scores)}


def has_gold_of(row: BenchRow, question: BenchQuestion) -> bool:
    """Return whether a row was scored by the present gold of its question.

    The rows of a gold table are compared too, unless the row has none, as in early versions.
    """
    if row["gold"] != question.gold:
        return False
    if "gold_table" not in row:
        return True
    before = [list(cells) for cells in row["gold_table"]]
    present = [list(cells) for cells in question.rows]
    return before == present


def rescore_results(
    results: Results,
    questions: Sequence[BenchQuestion],
    load_run: Callable[[BenchRow], Run | None] = lambda row: None,
) -> int:
    """Score the rows of questions whose gold has changed again, write the results file, and return how many.

    ``load_run`` returns the finished run of a row, if it was saved. Rows of another wording are
    left as they are; without changes nothing is written. Raises InputError if the file cannot be
    written.
    """
    rescored = []
    for question in questions:
        row = results.rows.get(question.id)
        if row and row["question"] == question.question and not has_gold_of(row, question):
            rescored.append(rescore_row(row, question, load_run(row)))
    if rescored:
        results.replace_rows(rescored)
    return len(rescored)


def question_of_row(row: BenchRow) -> BenchQuestion:
    """Return the question of a row, with the gold that it was scored by and the labels of the gold.

    A gold value without a label is its own label. Rows of earlier versions do not have the gold
    query.
    """
    data = {}
    for name in QUESTION_FIELDS:
        if name in row:
            data[name] = row[name]
    data["answers"] = row["gold"]
    data["rows"] = row.get("gold_table", ())
    labels = row.get("labels", {})
    if labels:
        gold = row["gold"] or ()
        data["answer_labels"] = [labels.get(value, value) for value in gold]
    return BenchQuestion(**data)


def _score_answer(
    question: BenchQuestion, recorded: BenchRow, answer_labels: Mapping[str, str]
) -> BenchRow:
    """Return the fields of a row that describe the question, its gold, the answer, and the scores.

    ``recorded`` has the answers, the error, and the table and the source if there are any. With an
    error all scores are 0; without gold there are no scores.
    """
    row = _describe_question(question)
    if "source" in recorded:
        row["source"] = recorded["source"]
    answers = recorded["answers"]
    row["question"] = question.question
    row["answers"] = answers
    row["gold"] = question.gold
    table = recorded.get("table", [])
    if "table" in recorded:
        row["table"] = table
    if question.rows:
        row["columns"] = question.columns
        row["gold_table"] = question.rows
        row["by_column"] = score_columns(question.columns, question.rows, table)
    labels = _collect_labels(question, answers, answer_labels)
    if labels:
        row["labels"] = labels
    if question.answers is not None:
        scores = ZERO_SCORES
        if recorded["error"] is None:
            scores = score_answers(answers, question.answers, table, labels)
        row.update(asdict(scores))
    return row


def _describe_question(question: BenchQuestion) -> BenchRow:
    """Return the fields of a row that identify and classify a question, as far as they are known.

    These are id, number of words, hops, type, language, dialogue, turn, standalone wording, what
    counts as right, and the gold query with its number of predicates.
    """
    row: BenchRow = {"id": question.id, "words": len(question.question.split())}
    for name in ("hops", "type", "language", "dialogue", "standalone", "right", "sparql"):
        value = getattr(question, name)
        if value is not None:
            row[name] = value
    if question.turn:
        row["turn"] = question.turn
    predicates = count_gold_predicates(question)
    if predicates:
        row["predicates"] = predicates
    return row


def count_gold_predicates(question: BenchQuestion) -> int:
    """Return how many triple patterns of the gold query have a predicate that is no variable.

    This is "Preds" in Chatty-KG, Table 8. It is 0 without a gold query, or if it cannot be read.
    """
    if not question.sparql:
        return 0
    try:
        patterns = analyze_query(to_standard_sparql(question.sparql)).patterns
    except GraphError:
        return 0
    return sum(not predicate.startswith("?") for _, predicate, _ in patterns)


def _collect_labels(
    question: BenchQuestion, answers: Sequence[str], answer_labels: Mapping[str, str]
) -> dict[str, str]:
    """Return the known labels of the IRIs among the gold and the answers, by IRI.

    The labels of the answer go before those of the gold. Labels of the gold count only if there is
    one for each value.
    """
    gold = question.answers or ()
    labels: dict[str, str] = {}
    if len(gold) == len(question.answer_labels):
        labels.update(zip(gold, question.answer_labels, strict=True))
    labels.update(answer_labels)
    shown = {*gold, *answers}
    shown_labels = {}
    for iri, label in labels.items():
        if iri in shown and "://" in iri:
            shown_labels[iri] = label
    return shown_labels


def _labels_of_answer(answer: Answer | None) -> dict[str, str]:
    """Return the labels of the IRIs in an answer: those of its values, else its display names.

    Empty without an answer.
    """
    labels: dict[str, str] = {}
    if answer is None:
        return labels
    for iri, name in answer.names:
        labels[str(iri)] = name
    for value in answer.values:
        if value.term_label and isinstance(value.term, URIRef):
            labels[str(value.term)] = value.term_label
    return labels


def _describe_usage(question: BenchQuestion, run: Run | None) -> dict[str, Any]:
    """Return what a run used: the fields of ``sum_usage``, with the seconds of each stage.

    "seconds" are those of the whole run, and "stages" add up to them. "model_seconds" and
    "stage_model_seconds" are the parts of them in which the run waited for models. "queries" are
    all that the graph was asked, and "executed_queries" those of the answer (Chatty-KG, Figure 5).
    "linking" is added if it is known (``_count_linked``), and "served" if servers say more of their
    models than the names (``list_served_models``). Without a run, seconds and numbers of calls are
    0.
    """
    if run is None:
        return {"seconds": 0.0, "model_calls": 0, "queries": 0}
    keys = chain.from_iterable(step.calls for step in run.steps)
    calls = [run.calls[key] for key in dict.fromkeys(keys) if key in run.calls]
    usage = sum_usage(calls)
    served = list_served_models(calls)
    if served:
        usage["served"] = served
    total_s = run.totals.seconds
    usage["seconds"] = round(total_s, 6)
    stages = {}
    stage_model_seconds = {}
    times = sum_seconds_by_stage(run.system, run.steps, run.calls, total_s)
    for stage, time in times.items():
        stages[stage] = time.seconds
        stage_model_seconds[stage] = time.model_seconds
    usage["model_seconds"] = round(sum(stage_model_seconds.values()), 6)
    usage["stages"] = stages
    usage["stage_model_seconds"] = stage_model_seconds
    if run.answer:
        usage["executed_queries"] = len(run.answer.queries)
    linking = _count_linked(question, run)
    if linking:
        usage["linking"] = linking
    return usage


def _count_linked(question: BenchQuestion, run: Run) -> dict[str, dict[str, int]]:
    """Return how many vertices and predicates the gold query has, and how many of them the run linked.

    For "vertices" and "predicates" there are the numbers "gold", "linked", and "candidates": those
    that the run linked or could have chosen. Empty if the system has no gold decisions, or the
    question no gold query that can be taken apart.
    """
    decisions = run.system.gold
    if decisions is None:
        return {}
    gold = read_gold_query_of(question, run.kg)
    if gold is None:
        return {}
    links = decisions.linked(run)
    return {
        "vertices": _count_overlap(gold.vertices, links.vertices, links.vertex_candidates),
        "predicates": _count_overlap(gold.predicates, links.predicates, links.predicate_candidates),
    }


def _count_overlap(gold: Set[str], linked: Set[str], candidates: Set[str]) -> dict[str, int]:
    """Return the numbers of gold IRIs ("gold"), of linked ones ("linked"), and of linked or candidate ones.

    The last is under "candidates"; both count gold IRIs only.
    """
    return {
        "gold": len(gold),
        "linked": len(gold & linked),
        "candidates": len(gold & (linked | candidates)),
    }
