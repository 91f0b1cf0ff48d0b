"""The row of one question in a results file: its answer, scores, cost, and linked elements."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import asdict
from typing import Any

from rdflib import URIRef

from kgwb.bench.cost import sum_seconds_by_stage, sum_usage
from kgwb.bench.metrics import (
    FROM_GRAPH,
    OWN_KNOWLEDGE,
    ZERO_SCORES,
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
from kgwb.bench.results import BenchRow
from kgwb.errors import GraphError
from kgwb.flow import Answer
from kgwb.kg.algebra import analyze_query
from kgwb.run import Run


def make_row(question: BenchQuestion, run: Run | None, error: str | None) -> BenchRow:
    """Return the row of a question for a results file: answers, gold, scores, and usage.

    ``run`` is None if the question could not be asked; then nothing was used. With an ``error``
    there is no answer and all scores are 0. Without gold there are no scores. A table has its rows,
    too, and if the gold is a table, the F1 of each of its columns. Labels of IRIs are added if any
    is known.
    """
    answer = run.answer if run and error is None else None
    row = _describe_question(question)
    if run and run.settings.own_knowledge:
        is_ungrounded = answer is not None and answer.ungrounded
        row["source"] = OWN_KNOWLEDGE if is_ungrounded else FROM_GRAPH
    answers = answer_to_strings(answer)
    row["question"] = question.question
    row["answers"] = answers
    row["gold"] = question.gold
    table = []
    if answer is not None and answer.columns:
        table = [list(row_to_strings(value.row)) for value in answer.values]
        row["table"] = table
    if question.rows:
        row["columns"] = question.columns
        row["gold_table"] = question.rows
        row["by_column"] = score_columns(question.columns, question.rows, table)
    labels = _collect_labels(question, answer, answers)
    if labels:
        row["labels"] = labels
    if question.answers is not None:
        scores = ZERO_SCORES
        if error is None:
            scores = score_answers(answers, question.answers, table, labels)
        row.update(asdict(scores))
    row.update(_describe_usage(question, run))
    row["error"] = error
    return row


def _describe_question(question: BenchQuestion) -> BenchRow:
    """Return what identifies and classifies a question, as far as it is known.

    These are id, number of words, hops, type, language, dialogue, turn, and predicates of the gold
    query.
    """
    row: BenchRow = {"id": question.id, "words": len(question.question.split())}
    for name in ("hops", "type", "language", "dialogue"):
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
    """Return how many predicates the gold query has; 0 without one, or if it cannot be read.

    Each triple pattern with a predicate counts (Chatty-KG, Table 8, "Preds").
    """
    if not question.sparql:
        return 0
    try:
        patterns = analyze_query(to_standard_sparql(question.sparql)).patterns
    except GraphError:
        return 0
    return sum(not predicate.startswith("?") for _, predicate, _ in patterns)


def _collect_labels(
    question: BenchQuestion, answer: Answer | None, answers: list[str]
) -> dict[str, str]:
    """Return the labels of the IRIs among the gold and the answers, as far as they are known.

    The label in an answer's value goes before the answer's display names, and these before the
    labels of the gold. Labels of the gold count only if there is one for each value.
    """
    gold = question.answers or ()
    labels: dict[str, str] = {}
    if len(gold) == len(question.answer_labels):
        labels.update(zip(gold, question.answer_labels, strict=True))
    if answer:
        for iri, name in answer.names:
            labels[str(iri)] = name
        for value in answer.values:
            if value.term_label and isinstance(value.term, URIRef):
                labels[str(value.term)] = value.term_label
    shown_iris = {text for text in (*gold, *answers) if "://" in text}
    return {iri: label for iri, label in labels.items() if iri in shown_iris}


def _describe_usage(question: BenchQuestion, run: Run | None) -> dict[str, Any]:
    """Return what a run used: the fields of ``sum_usage``, with the seconds of each stage.

    "seconds" are those of the whole run, and "stages" add up to them. "model_seconds" and
    "stage_model_seconds" are the parts of them in which the run waited for models. "queries" are
    all that the graph was asked, and "executed_queries" those of the answer (Chatty-KG, Figure 5).
    "linking" is added if it is known (``_count_linked``).
    Without a run, seconds and numbers of calls are 0.
    """
    if run is None:
        return {"seconds": 0.0, "model_calls": 0, "queries": 0}
    keys: dict[str, None] = {}
    for step in run.steps:
        keys.update(dict.fromkeys(step.calls))
    usage = sum_usage([run.calls[key] for key in keys if key in run.calls])
    usage["seconds"] = round(run.totals.seconds, 6)
    times = sum_seconds_by_stage(run.system, run.steps, run.calls, run.totals.seconds)
    usage["model_seconds"] = round(sum(time.model_seconds for time in times.values()), 6)
    usage["stages"] = {stage: time.seconds for stage, time in times.items()}
    usage["stage_model_seconds"] = {stage: time.model_seconds for stage, time in times.items()}
    if run.answer:
        usage["executed_queries"] = len(run.answer.queries)
    linking = _count_linked(question, run)
    if linking:
        usage["linking"] = linking
    return usage


def _count_linked(question: BenchQuestion, run: Run) -> dict[str, dict[str, int]]:
    """Count the vertices and predicates of the gold query, and those that the run linked.

    Returns for "vertices" and "predicates" the numbers "gold", "linked", and "candidates": those
    that the run linked or could have chosen. The dictionary is empty if the system has no gold
    decisions, or the question no gold query that can be taken apart.
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
    """Count the gold IRIs, those that were linked, and those that were linked or candidates."""
    return {
        "gold": len(gold),
        "linked": len(gold & linked),
        "candidates": len(gold & (linked | candidates)),
    }
