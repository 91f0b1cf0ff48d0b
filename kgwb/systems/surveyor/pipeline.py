"""Surveyor as a table of contents: survey, draft, run, read what came back, revise."""

from __future__ import annotations

from collections.abc import Sequence

from rdflib import Literal, URIRef

from kgwb.flow import Answer, Dialogue, Question, Term, Turn, Value, to_data
from kgwb.kg.survey import Survey, survey
from kgwb.run import Run, System, agent, remembered
from kgwb.systems.linking import retrieve
from kgwb.systems.surveyor import views as _views  # noqa: F401  # its records show themselves by them
from kgwb.systems.surveyor.drafter import draft
from kgwb.systems.surveyor.executor import execute, facts_of
from kgwb.systems.surveyor.mention_finder import find_names, find_values, valued
from kgwb.systems.surveyor.part import class_names, of_query, relevant
from kgwb.systems.surveyor.records import Draft, Executed, Mentions, Review
from kgwb.systems.surveyor.reviewer import review
from kgwb.systems.surveyor.settings import SurveyorSettings, settings_of
from kgwb.systems.surveyor.support import support_of

NOT_HERE = "not in this graph"


def answer(question: Question, dialogue: Dialogue, run: Run) -> Answer:
    """Survey the graph, draft a query, and revise it by what comes back."""
    seen = look(run)
    names = find_names(question.text, dialogue, tuple(class_names(seen)), run)
    retrieved = run.map(retrieve, [mention.name for mention in names.found])
    predicates = valued(seen, run.kg.vocabulary.labels)
    mentions = Mentions(
        names.question, tuple(find_values(each.entity, each, predicates, run) for each in retrieved), names.classes, names.reason
    )
    left = settings_of(run).reviews
    part = relevant(seen, mentions, run)
    drafted = draft(mentions, part, run)
    if drafted.more:
        left -= 1
        drafted = draft(mentions, relevant(seen, mentions, run, drafted.more), run)
    if not drafted.sparql:
        return Answer("list", reason=f"{NOT_HERE}: {drafted.missing or drafted.reason}")
    facts = facts_of(seen)
    executed = execute("draft", drafted.sparql, facts, run)
    for turn in range(1, left + 1):
        place = "draft" if turn == 1 else f"revision {turn - 1}"
        verdict = review(place, mentions, of_query(seen, part, drafted.sparql, run), drafted, executed, run)
        if verdict.verdict == "not in this graph":
            return Answer("list", queries=(drafted.sparql,), reason=f"{NOT_HERE}: {verdict.reason}")
        if verdict.draft is None or verdict.draft.sparql == drafted.sparql:
            break
        drafted, before = verdict.draft, executed
        executed = execute(f"revision {turn}", drafted.sparql, facts, run)
        if executed.error and turn == left and not before.error:
            executed = before  # what could be run stands
    return conclude(drafted, executed, run)


@agent("surveyor", kind="sparql")
def look(run: Run) -> Survey:
    """What there is in the graph; the same for every question, and kept with the graph."""
    graph = run.graph
    asked = {"graph": run.kg.identity, "vocabulary": to_data(run.kg.vocabulary)}
    return run.call("survey", asked, (lambda: survey(graph)) if graph else None, Survey)


@agent("answer", kind="sparql")
def conclude(drafted: Draft, executed: Executed, run: Run) -> Answer:
    """The rows as the answer, each with triples that it stands on."""
    if executed.error:
        return Answer("list", queries=(executed.sparql,), reason=f"no query could be run: {executed.error}")
    assumed = "; ".join(drafted.assumptions)
    if executed.truth is not None:
        stands_on = support_of(executed.sparql, (), (), run).get((), ()) if executed.truth else ()
        value = Value(Literal(executed.truth), str(executed.truth).lower(), stands_on)
        return _named(Answer("boolean", (value,), (executed.sparql,), reason=assumed), run)
    if not any(cell is not None for row in executed.rows for cell in row):
        why = "; ".join(map(str, executed.findings))
        return Answer(
            "list", queries=(executed.sparql,), reason=f"{NOT_HERE}: nothing fits{f' ({why})' if why else ''}"
        )
    names = dict(executed.names)
    supports = support_of(executed.sparql, executed.columns, executed.rows, run)
    values = tuple(
        _value(row, names, supports.get(row, ()))
        for row in dict.fromkeys(executed.rows)
        if any(cell is not None for cell in row)
    )
    kind = "count" if drafted.asked == "count" else "list"
    columns = tuple(drafted.columns) if len(drafted.columns) == len(executed.columns) else executed.columns
    shown = columns if len(executed.columns) > 1 else ()
    return _named(Answer(kind, values, (executed.sparql,), reason=assumed, columns=shown), run)


def _value(row: Sequence[Term | None], names: dict[URIRef, str], triples: tuple) -> Value:  # type: ignore[type-arg]
    cells = [
        names.get(cell, str(cell)) if isinstance(cell, URIRef) else "" if cell is None else str(cell)
        for cell in row
    ]
    term = next(cell for cell in row if cell is not None)
    return Value(
        term, " · ".join(cells) if len(row) > 1 else cells[0], triples, tuple(row) if len(row) > 1 else ()
    )


def _named(answer: Answer, run: Run) -> Answer:
    from dataclasses import replace

    iris = {term for triple in answer.support for term in triple if isinstance(term, URIRef)}
    iris |= {cell for value in answer.values for cell in (value.term, *value.row) if isinstance(cell, URIRef)}
    return replace(answer, names=tuple(sorted(run.kg.names(sorted(iris)).items())))


def remember(run: Run) -> Turn:
    """The question as it was read alone."""
    mentions = next(
        (step.output for step in run.steps if step.done and isinstance(step.output, Mentions)), None
    )
    return remembered(run, standalone=mentions.question if mentions else "")


SYSTEM = System(
    "surveyor",
    answer,
    (look, find_names, retrieve, find_values, draft, execute, review, conclude),
    stages=(
        ("Look", ("surveyor", "mention_finder", "entity_retriever", "value_finder")),
        ("Draft", ("drafter", "executor")),
        ("Review ↻", ("reviewer",)),
        ("Answer", ("answer",)),
    ),
    remember=remember,
    settings=SurveyorSettings,
)
__all__ = ["SYSTEM", "Review"]
