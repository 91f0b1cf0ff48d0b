"""The flow of Surveyor: survey the graph, write a query, execute it, review its result, revise it.

System surveyor

| agent | kind | function | prompt | view | gold | test |
| --- | --- | --- | --- | --- | --- | --- |
| surveyor | sparql | make_survey |  |  | look | test_surveyor.py |
| mention_finder | model | mentions.find_mentions | mention_finder | render_mentions | look | test_mention_finder.py |
| entity_retriever | search | mentions.retrieve_named |  |  | look | test_entity_retriever.py |
| value_finder | search | mentions.find_values |  | render_mention | look | test_value_finder.py |
| drafter | model | drafter.draft_query | drafter | render_draft | draft | test_drafter.py |
| executor | sparql | drafter.execute_draft |  | render_query_result | draft | test_executor.py |
| reviewer | model | drafter.review_draft | reviewer | render_review | review | test_reviewer.py |
| answer | sparql | build_answer |  |  | answer | test_answer.py |
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import chain

from rdflib import Literal, URIRef

from kgwb.build import (
    NOT_IN_GRAPH,
    Answer,
    AnswerKind,
    Dialogue,
    GoldDecisions,
    GraphError,
    JsonObject,
    LinkedIris,
    Question,
    Reading,
    Row,
    Run,
    Survey,
    SurveyWriter,
    System,
    Term,
    TriplePattern,
    Triples,
    Turn,
    Value,
    agent,
    analyze_query,
    extract_schema_facts,
    find_contradictions,
    find_row_support,
    list_outputs,
    read_values,
    remember_turn,
    survey_graph,
    to_data,
    writer_of_survey,
)
from kgwb.systems.surveyor.drafter import (
    draft_query,
    excerpt_for_question,
    execute_draft,
    is_open,
    make_draft_rung,
    make_review_rung,
    review_draft,
)
from kgwb.systems.surveyor.mentions import (
    ClassNames,
    drop_unrelated,
    find_comments,
    find_mentions,
    find_values,
    list_offered_vertices,
    make_vertex_rung,
    retrieve_named,
    titles_to_choose_from,
)
from kgwb.systems.surveyor.readings import choose_readings, rewrite_draft
from kgwb.systems.surveyor.records import Asked, Draft, Executed, Mentions, format_row
from kgwb.systems.surveyor.settings import DEFAULT_SURVEY_SECONDS, SurveyorSettings


def answer_question(question: Question, dialogue: Dialogue, run: Run) -> Answer:
    """Survey the graph, draft a query for the question, revise it by its result, and answer with it.

    The drafter is asked again if it has to see other classes first; that takes the place of one
    review. A query is only reviewed if something about it is open, see ``is_open``. Revising ends
    when the reviewer accepts the query or repeats it, or after ``reviews`` reviews. An answer
    without values says why: the drafter or the reviewer may find that the graph does not have what
    the question asks for. Of several queries, the last one that could be executed is answered with.
    """
    labels = run.kg.vocabulary.labels
    writer = writer_of_survey(make_survey(run), labels)
    mentions = look_up_mentions(question, dialogue, writer, run)
    settings = SurveyorSettings.of_run(run)
    reviews = settings.reviews
    excerpt = excerpt_for_question(writer, mentions, run)
    draft = draft_query(mentions, excerpt, run)
    if draft.more:
        reviews -= 1
        requested = ClassNames.of_survey(writer).find_all(draft.more)
        writer = SurveyWriter(extend_survey(writer.survey, requested, run), labels)
        excerpt = excerpt_for_question(writer, mentions, run, requested)
        # Classes can be asked for once only: without any, the drafter has to decide.
        draft = draft_query(mentions, replace(excerpt, unseen=()), run)
    if not draft.sparql:
        return Answer("list", reason=f"{NOT_IN_GRAPH}: {draft.missing or draft.reason}")

    place = "draft"
    executed = check_and_execute(place, draft, mentions, writer, run)
    best = (draft, executed)
    for number in range(1, reviews + 1):
        is_reviewed = settings.always_reviews or is_open(mentions, draft, executed)
        if draft.chosen or not is_reviewed:
            break
        review = review_draft(place, mentions, excerpt, draft, executed, run)
        if review.verdict == NOT_IN_GRAPH:
            reason = f"{NOT_IN_GRAPH}: {review.reason}"
            return Answer("list", queries=(draft.sparql,), reason=reason)
        if review.draft is None or review.draft.sparql == draft.sparql:
            break
        draft = review.draft
        place = f"revision {number}"
        executed = check_and_execute(place, draft, mentions, writer, run)
        # A revision that fails does not replace a query that could be executed.
        if not executed.error or best[1].error:
            best = (draft, executed)
    rewritten = tuple(rewrite_draft(*best, writer, run.kg.vocabulary))
    return build_answer(*best, rewritten, run)


def check_and_execute(
    place: str, draft: Draft, mentions: Mentions, writer: SurveyWriter, run: Run
) -> Executed:
    """Hold a query against the survey, then execute it. ``place`` is as in ``execute_draft``."""
    classes = {}
    for mention in mentions.found:
        for terms in mention.used:
            classes[terms.iri] = [iri for iri, _ in terms.classes]
    sparql = draft.sparql
    contradictions = find_contradictions(sparql, writer, classes, run.kg.vocabulary)
    facts = extract_schema_facts(writer.survey)
    return execute_draft(place, sparql, tuple(contradictions), facts, run)


def look_up_mentions(
    question: Question, dialogue: Dialogue, writer: SurveyWriter, run: Run
) -> Mentions:
    """Find the names that a question mentions, search the graph for each of them, and return all mentions.

    Each mention has candidates, found by their labels, values of other predicates, and descriptions
    of classes and predicates. The mentions are in the order of the question as the model named them.
    """
    mentions = find_mentions(question.text, dialogue, titles_to_choose_from(writer), run)
    retrieved = run.map(retrieve_named, mentions.names)
    # Labels are searched by the retriever already.
    predicates = writer.survey.predicates_with_name_values(run.kg.vocabulary.labels)
    found = []
    for all_candidates in retrieved:
        candidates = drop_unrelated(all_candidates, mentions.classes, writer)
        name = candidates.entity
        comments = find_comments(name, writer.survey.notes)
        found.append(find_values(name, candidates, predicates, comments, run))
    return replace(mentions, found=tuple(found))


@agent("surveyor", kind="sparql")
def make_survey(run: Run) -> Survey:
    """Survey the graph: its classes, the predicates that their instances use, and their values.

    The survey does not depend on the question. It is made once and kept with the graph.
    """
    return _survey_classes((), run)


def extend_survey(survey: Survey, classes: Iterable[URIRef], run: Run) -> Survey:
    """Return the survey of a large graph with the predicates of some classes added, which it lacks.

    It is returned as it is if each of them is unknown or has its predicates already.
    """
    wanted = set(classes)
    iris = []
    for surveyed in survey.classes:
        if surveyed.iri in wanted and not surveyed.properties:
            iris.append(surveyed.iri)
    if not iris:
        return survey
    return survey.with_classes_of(_survey_classes(tuple(iris), run))


def _survey_classes(class_iris: tuple[URIRef, ...], run: Run) -> Survey:
    """Survey these classes, or the whole graph if there are none, as a recorded call of the run.

    The request has the time limit if it is not the default, so that another limit is another call.
    Raises NotRecordedError in a replay that lacks the call.
    """
    request: JsonObject = {
        "graph": run.kg.identity,
        "vocabulary": to_data(run.kg.vocabulary),
        "only": list(class_iris),
    }
    seconds = SurveyorSettings.of_run(run).survey_seconds
    if seconds != DEFAULT_SURVEY_SECONDS:
        request["seconds"] = seconds
    graph = run.unrecorded_graph
    make = None
    if graph is not None:
        make = partial(survey_graph, graph, class_iris, timeout_s=float(seconds))
    return run.call("survey", request, make, Survey)


@agent("answer", kind="sparql")
def build_answer(
    drafted: Draft, executed: Executed, rewritten: tuple[Reading, ...], run: Run
) -> Answer:
    """Turn the result of the query into an answer, with the triples that support each value.

    An ASK gives true or false. Of a SELECT, each different row is a value; rows without any term
    are left out. If there is no value, the reason of the answer is the error, or that the graph has
    no result, with the findings. ``rewritten`` are readings to offer if they have other rows, see
    ``choose_readings``.
    """
    queries = (executed.sparql,)
    remarks = tuple(str(finding) for finding in executed.findings if finding.told)
    assumptions = "; ".join(drafted.assumptions)
    if executed.error:
        return Answer("list", queries=queries, reason=f"no query could be run: {executed.error}")
    readings = choose_readings(drafted, executed, rewritten, run)
    if executed.truth is not None:
        value = _truth_value(executed, run)
        answer = Answer("boolean", (value,), queries, reason=assumptions, readings=readings)
        return read_values(run.kg, answer)

    values = _row_values(executed, run)
    if not values:
        reason = f"{NOT_IN_GRAPH}: the query has no result"
        if executed.findings:
            reason += f" ({'; '.join(map(str, executed.findings))})"
        return Answer("list", queries=queries, reason=reason, readings=readings)
    columns = _column_titles(drafted, executed)
    is_count = drafted.asked == "count" and len(values) == 1 and not columns
    kind: AnswerKind = "list"
    if is_count:
        kind = "count"
    answer = Answer(
        kind,
        tuple(values),
        queries,
        reason=assumptions,
        columns=columns,
        readings=readings,
        measure=executed.measure,
        remarks=remarks,
    )
    return read_values(run.kg, answer)


def _truth_value(executed: Executed, run: Run) -> Value:
    """Return the result of an ASK as a value; if it is true, with the triples of one match as support.

    If the graph fails to answer for these, the support is empty, and the step has a note.
    """
    support: Triples = ()
    if executed.truth:
        supports = find_row_support(executed.sparql, (), (), run)
        support = supports.get((), ())
    label = str(executed.truth).lower()
    return Value(Literal(executed.truth), label, support)


def _row_values(executed: Executed, run: Run) -> list[Value]:
    """Return a value with its support for each different row that has a term, in the order of the rows.

    The term of the value is the first one in the row. Its label has the names of all cells, with "
    · " between them; an unbound cell is empty there. The row itself is kept if there are several
    columns. The measure of a row is that of the value; of equal rows it is that of the first, by
    which the value is in the result.
    """
    measures: dict[Row, Term | None] = {}
    if executed.measured:
        for row, measure in zip(executed.rows, executed.measured, strict=True):
            measures.setdefault(row, measure)
    rows = [row for row in dict.fromkeys(executed.rows) if set(row) - {None}]
    if not rows:
        return []
    supports = find_row_support(executed.sparql, executed.columns, rows, run)
    names = dict(executed.names)
    values = []
    for row in rows:
        term = next(cell for cell in row if cell is not None)
        cells = row if len(row) > 1 else ()
        support = supports.get(row, ())
        label = format_row(row, names)
        values.append(Value(term, label, support, cells, measure=measures.get(row)))
    return values


def _column_titles(drafted: Draft, executed: Executed) -> tuple[str, ...]:
    """Return a title for each column of a result; empty if it has a single column.

    These are the draft's titles if it has one for each column, else the variables of the query.
    """
    if len(executed.columns) <= 1:
        return ()
    if len(drafted.columns) == len(executed.columns):
        return drafted.columns
    return executed.columns


def make_turn(run: Run) -> Turn:
    """Return the turn that the dialogue remembers of a run, with the question in full.

    The question in full is that of the first step that found mentions; "" if there is none.
    """
    standalone = ""
    for step in run.steps:
        if step.done and isinstance(step.output, Mentions):
            standalone = step.output.question
            break
    return remember_turn(run, standalone=standalone)


def read_as(run: Run, reading: Reading) -> Run:
    """Return a fork of a run in which the question is read in another way.

    The query of a reading is put in as the draft, and is not reviewed. Without one, the query is
    drafted anew: the model sees the query before, so that what it assumed about other words stays,
    and all readings that were chosen. What was found for the question stays.
    """
    mentions: Mentions = run.output("mention_finder")
    draft: Draft = run.output("drafter")
    *_, executed = list_outputs(run, "executor")
    readings = (*mentions.readings, f"{reading.other} (before: {reading.taken})")
    before = Draft(executed.sparql).sparql_without_prefixes
    fork = run.fork().override(
        "mention_finder", replace(mentions, readings=readings, before=before)
    )
    if reading.sparql:
        asked: Asked = "list" if draft.asked == "yes or no" else draft.asked
        fork.override("drafter", Draft(reading.sparql, asked, chosen=True))
    return fork


def collect_linked_iris(run: Run) -> LinkedIris:
    """Return the IRIs in the last query that was executed, and those that its drafter could choose from.

    Candidates are the vertices found for the names of the question, and the predicates of the
    survey.
    """
    patterns: list[TriplePattern] = []
    for executed in list_outputs(run, "executor")[-1:]:
        with suppress(GraphError):  # a query that cannot be taken apart
            patterns += analyze_query(executed.sparql).patterns
    ends = chain.from_iterable(pattern[::2] for pattern in patterns)
    surveyed = chain.from_iterable(survey.classes for survey in list_outputs(run, "surveyor"))
    predicates = chain.from_iterable(each.predicates for each in surveyed)
    return LinkedIris(
        frozenset(end[1:-1] for end in ends if end.startswith("<")),
        frozenset(predicate.strip("<>") for _, predicate, _ in patterns),
        list_offered_vertices(run),
        frozenset(map(str, predicates)),
    )


GOLD = GoldDecisions(
    {"vertices": make_vertex_rung, "draft": make_draft_rung, "review": make_review_rung},
    collect_linked_iris,
)
"""The survey and its excerpts have no gold: no query says which classes a model would have to see."""

SYSTEM = System(
    "surveyor",
    answer_question,
    {
        "Look": (make_survey, find_mentions, retrieve_named, find_values),
        "Draft": (draft_query, execute_draft),
        "Review ↻": (review_draft,),
        "Answer": (build_answer,),
    },
    remember=make_turn,
    read_as=read_as,
    settings=SurveyorSettings,
    views="kgwb.systems.surveyor.views",
    gold=GOLD,
)
