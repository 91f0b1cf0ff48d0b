"""Surveyor as a table of contents: survey, draft, run, read what came back, revise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rdflib import Literal, URIRef

from kgwb.flow import NOT_IN_GRAPH, Answer, AnswerKind, Dialogue, Question, Turn, Value
from kgwb.kg.findings import extract_schema_facts
from kgwb.kg.queries import with_display_names
from kgwb.kg.survey import survey_graph
from kgwb.kg.survey_records import Survey
from kgwb.kg.survey_text import SurveyWriter
from kgwb.records import to_data
from kgwb.run import Run, System, agent, remember_turn
from kgwb.systems.linking import retrieve_candidates
from kgwb.systems.queries import find_row_support
from kgwb.systems.rules import RULES
from kgwb.systems.surveyor.drafter import (
    draft_query,
    excerpt_for_query,
    excerpt_for_question,
    execute_draft,
    find_mentions,
    find_values,
    review_draft,
)
from kgwb.systems.surveyor.records import Draft, Executed, Mentions
from kgwb.systems.surveyor.settings import SurveyorSettings
from kgwb.systems.surveyor.views import VIEWS
from kgwb.terms import local_part


def answer_question(question: Question, dialogue: Dialogue, run: Run) -> Answer:
    """Survey the graph, draft a query, and revise it by what comes back."""
    seen = make_survey(run)
    writer = SurveyWriter(seen)
    names = find_mentions(question.text, dialogue, writer.class_names(), run)
    retrieved = run.map(retrieve_candidates, [mention.name for mention in names.found])
    predicates = seen.predicates_with_name_values(
        (*run.kg.vocabulary.labels, *run.kg.vocabulary.descriptions)
    )
    with_values = tuple(find_values(each.entity, each, predicates, run) for each in retrieved)
    mentions = replace(names, found=with_values)
    left = SurveyorSettings.of_run(run).reviews
    part = excerpt_for_question(writer, mentions, run)
    drafted = draft_query(mentions, part, run)
    if drafted.more:
        left, seen = left - 1, extend_survey(seen, drafted.more, run)
        writer = SurveyWriter(seen)
        drafted = draft_query(
            mentions, excerpt_for_question(writer, mentions, run, drafted.more), run
        )
    if not drafted.sparql:
        return Answer("list", reason=f"{NOT_IN_GRAPH}: {drafted.missing or drafted.reason}")
    facts = extract_schema_facts(seen)
    executed = execute_draft("draft", drafted.sparql, facts, run)
    ran = drafted, executed
    for turn in range(1, left + 1):
        place = "draft" if turn == 1 else f"revision {turn - 1}"
        verdict = review_draft(
            place, mentions, excerpt_for_query(writer, drafted.sparql, run), drafted, executed, run
        )
        if verdict.verdict == NOT_IN_GRAPH:
            return Answer(
                "list", queries=(drafted.sparql,), reason=f"{NOT_IN_GRAPH}: {verdict.reason}"
            )
        if verdict.draft is None or verdict.draft.sparql == drafted.sparql:
            break
        drafted = verdict.draft
        executed = execute_draft(f"revision {turn}", drafted.sparql, facts, run)
        ran = ran if executed.error and not ran[1].error else (drafted, executed)
    return build_answer(*ran, run)  # what could be run stands


@agent("surveyor", kind="sparql")
def make_survey(run: Run) -> Survey:
    """What there is in the graph; the same for every question, and kept with the graph."""
    return _get_survey(run)


def extend_survey(survey: Survey, class_names: Sequence[str], run: Run) -> Survey:
    """The survey with the classes named, of a graph so large that it does not tell what all of them use."""
    wanted = {name.casefold().rpartition(":")[2] for name in class_names}
    bare = [kind for kind in survey.classes if kind.iri and not kind.properties]
    near = [
        k.iri for k in bare if k.iri and wanted & {k.name.casefold(), local_part(k.iri).casefold()}
    ]
    return survey.with_classes_of(_get_survey(run, *near)) if near else survey


def _get_survey(run: Run, *class_iris: URIRef) -> Survey:
    graph = run.unrecorded_graph
    asked = {
        "graph": run.kg.identity,
        "vocabulary": to_data(run.kg.vocabulary),
        "only": [*class_iris],
    }
    return run.call(
        "survey", asked, (lambda: survey_graph(graph, class_iris)) if graph else None, Survey
    )


@agent("answer", kind="sparql")
def build_answer(drafted: Draft, executed: Executed, run: Run) -> Answer:
    """The rows as the answer, each with triples that it stands on."""
    queries, assumed = (executed.sparql,), "; ".join(drafted.assumptions)
    if executed.error:
        return Answer("list", queries=queries, reason=f"no query could be run: {executed.error}")
    rows = [row for row in dict.fromkeys(executed.rows) if any(cell is not None for cell in row)]
    if executed.truth is None and not rows:
        why = f" ({'; '.join(map(str, executed.findings))})" if executed.findings else ""
        return Answer("list", queries=queries, reason=f"{NOT_IN_GRAPH}: nothing fits{why}")
    holds = executed.truth is not False
    standing = find_row_support(executed.sparql, executed.columns, rows, run) if holds else {}
    if executed.truth is not None:
        value = Value(Literal(executed.truth), str(executed.truth).lower(), standing.get((), ()))
        return with_display_names(run.kg, Answer("boolean", (value,), queries, reason=assumed))
    names, values = dict(executed.names), []
    for row in rows:  # the first cell stands for it
        texts = ["" if cell is None else names.get(URIRef(cell), str(cell)) for cell in row]
        first = next(cell for cell in row if cell is not None)
        whole = row if len(row) > 1 else ()
        values.append(Value(first, " · ".join(texts), standing.get(row, ()), whole))
    columns = drafted.columns if len(drafted.columns) == len(executed.columns) else executed.columns
    columns = columns if len(executed.columns) > 1 else ()
    kind: AnswerKind = (
        "count" if drafted.asked == "count" and len(rows) == 1 and not columns else "list"
    )
    return with_display_names(
        run.kg, Answer(kind, tuple(values), queries, reason=assumed, columns=columns)
    )


def make_turn(run: Run) -> Turn:
    """The question as it was read alone."""
    read = (
        step.output.question
        for step in run.steps
        if step.done and isinstance(step.output, Mentions)
    )
    return remember_turn(run, standalone=next(read, ""))


SYSTEM = System(
    "surveyor",
    answer_question,
    {
        "Look": (make_survey, find_mentions, retrieve_candidates, find_values),
        "Draft": (draft_query, execute_draft),
        "Review ↻": (review_draft,),
        "Answer": (build_answer,),
    },
    remember=make_turn,
    settings=SurveyorSettings,
    views=VIEWS,
    rules=RULES,
)
