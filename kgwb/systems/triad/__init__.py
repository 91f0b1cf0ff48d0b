"""Triad: one model in three roles, generalist, decision-maker and advisor (Zong et al., 2024).

System triad

| agent | kind | function | prompt | view | gold | test |
| --- | --- | --- | --- | --- | --- | --- |
| attempt | group | attempt_query |  |  |  | test_attempt.py |
| triplets | model | generalist.extract_triplets | triplets* |  | parsing | test_triplets.py |
| entity_retriever | search | kgwb.run.linking.retrieve_candidates |  |  | linking | ../linking/test_entity_retriever.py |
| entity_choice | model | decision_maker.choose_entities | entity_choice* | render_choice | linking | test_entity_choice.py |
| relations | sparql | decision_maker.find_relations |  |  | linking | test_relations.py |
| relation_choice | model | decision_maker.choose_relations | relation_choice* | render_choice | linking | test_relation_choice.py |
| template | model | generalist.write_template | template* |  | construction | test_template.py |
| queries | sparql | decision_maker.build_queries |  | render_filled_templates | construction | test_queries.py |
| query_choice | model | decision_maker.choose_query | query_choice* | render_choice | construction | test_query_choice.py |
| written_query | model | generalist.write_query | written_query |  | construction | test_written_query.py |
| answer_type | model | generalist.classify_answer_type | answer_type* |  | answering | test_answer_type.py |
| answer | sparql | advisor.build_answer |  |  | answering | test_answer.py |
| own_knowledge | model | advisor.answer_from_own_knowledge | own_knowledge* |  | answering | test_own_knowledge.py |
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from kgwb.build import (
    CANNOT_EXPRESS,
    LINKING_RULES,
    NOT_IN_GRAPH,
    Answer,
    CandidateQuery,
    Dialogue,
    InvalidReplyError,
    Question,
    Run,
    System,
    agent,
    analyze_query,
    has_form,
    retrieve_candidates,
)
from kgwb.systems.triad.advisor import answer_from_own_knowledge, build_answer
from kgwb.systems.triad.decision_maker import (
    build_queries,
    choose_entities,
    choose_query,
    choose_relations,
    diagnose_fault,
    fetch_terms,
    find_relations,
    link_triplets,
)
from kgwb.systems.triad.generalist import (
    classify_answer_type,
    extract_triplets,
    list_mentions,
    write_query,
    write_template,
)
from kgwb.systems.triad.gold import GOLD
from kgwb.systems.triad.records import (
    ANSWER_TYPE_BY_KIND,
    KIND_BY_ANSWER_TYPE,
    AnswerType,
    Attempt,
    Faults,
    Phase,
)
from kgwb.systems.triad.rules import RULES
from kgwb.systems.triad.settings import TriadSettings

HOW_MANY_QUESTION = re.compile(
    r"^(\w+ )?how many\b|^(what|give|tell).{0,12}\bnumber of\b", re.IGNORECASE
)
"""A question for a number: how many things there are, or a number that the graph has."""


def answer_question(question: Question, dialogue: Dialogue, run: Run) -> Answer:
    """Look for a query with a result in at most ``tries`` attempts, and answer the question.

    Triad has no dialogue: each question is read alone. If there is no query and the setting
    ``own_knowledge`` is on, the model answers without the graph, by the type of the answer, unless
    ``ablation`` is "no_fallback" (section 3.3). Otherwise the answer has no values and a reason:
    that Triad cannot express the question if the last attempt failed for invalid replies, that the
    answer is not in the graph if it was looked up there, else the fault of the last attempt.
    """
    settings = TriadSettings.of_run(run)
    attempts: list[Attempt] = []
    phase: Phase | None = "parsing"
    while phase and len(attempts) < settings.tries:
        place = f"try {len(attempts) + 1}/{phase}"
        attempt = attempt_query(place, question.text, tuple(attempts), run)
        attempts.append(attempt)
        phase = attempt.back

    last = attempts[-1]
    if last.query:
        return build_answer(last.query, _find_answer_type(last.query, question.text, run), run)
    answer_type = classify_answer_type(question.text, run)
    reason = last.fault
    if last.has_invalid_reply:
        reason = f"{CANNOT_EXPRESS}: {reason}"
    elif last.was_looked_up:
        reason = f"{NOT_IN_GRAPH}: {reason}"
    if settings.own_knowledge and settings.ablation != "no_fallback":
        return answer_from_own_knowledge(question.text, answer_type, reason, run)
    return Answer(KIND_BY_ANSWER_TYPE[answer_type], reason=reason)


def _find_answer_type(query: CandidateQuery, question: str, run: Run) -> AnswerType:
    """Return the type of the answer: that of the query, or the model's with ``answer_type_from`` "model".

    A query that lists values is one for a count if the question asks how many (HOW_MANY_QUESTION).
    The values are then counted, or are the answer if they are numbers themselves
    (``build_answer``).
    """
    if TriadSettings.of_run(run).answer_type_from != "query":
        return classify_answer_type(question, run)
    answer_type = ANSWER_TYPE_BY_KIND[analyze_query(query.sparql).kind]
    if answer_type == "select" and HOW_MANY_QUESTION.search(question):
        return "count"
    return answer_type


@agent("attempt", subject="place")
def attempt_query(place: str, question: str, before: tuple[Attempt, ...], run: Run) -> Attempt:
    """Make one attempt to find a query with a result.

    It begins at the phase that the last attempt in ``before`` goes back to, or at parsing if it is
    the first. What earlier phases made is taken from the last attempt. ``place`` names the attempt
    and its first phase. The result has a query, or else the fault, and the phase to go back to.

    An agent whose replies stay invalid is a fault like another: it is tried again from parsing, and
    then the advisor answers (section 3.3). Raises InvalidReplyError only if the replies have not
    even the right form and ``own_knowledge`` is off: then the model has failed, not the question.
    """
    if run.dialogue.turns and not before:
        run.note("Triad answers each question alone; the earlier turns are not used")
    failed = tuple(earlier.fault for earlier in before)
    attempt = _begin_attempt(before)
    try:
        if not attempt.triplets:
            attempt = replace(attempt, triplets=extract_triplets(question, failed, run))
        if not attempt.linked:
            attempt = _link_attempt(attempt, question, failed, run)
        if not attempt.fault:
            if TriadSettings.of_run(run).ablation == "no_query_choice":
                attempt = _write_executable_query(attempt, question, failed, run)
            else:
                attempt = _choose_filled_query(attempt, question, failed, run)
    except InvalidReplyError as error:
        if not has_form(error) and not TriadSettings.of_run(run).own_knowledge:
            raise
        attempt = replace(attempt, fault=error.message, back="parsing", has_invalid_reply=True)
    return _plan_retry(attempt, before, run)


def _begin_attempt(before: Sequence[Attempt]) -> Attempt:
    """Return a new attempt that keeps what the last one in ``before`` made ahead of the phase to go back to.

    It has the triplets if that phase is linking, the choices too if it is construction, and nothing
    if it is parsing or there is no attempt before.
    """
    if not before or before[-1].back == "parsing":
        return Attempt((), ())
    last = before[-1]
    if last.back == "linking":
        return Attempt(last.triplets, ())
    return Attempt(last.triplets, last.linked)


def _link_attempt(attempt: Attempt, question: str, failed: Faults, run: Run) -> Attempt:
    """Link the triplets of an attempt, and return it with the choices.

    If a mention or triplet that was looked for has no link, the attempt has this as its fault, and
    the next one begins at parsing.
    """
    linked = link_triplets(attempt.triplets, question, failed, run)
    missing = []
    for choice in linked:
        if choice.was_looked_for and not choice.chosen:
            missing.append(f"{choice} ({choice.reason})")
    attempt = replace(attempt, linked=linked)
    if missing:
        has_vertices = len(linked) > len(list_mentions(attempt.triplets))
        fault = "; ".join(missing)
        return replace(attempt, fault=fault, back="parsing", was_looked_up=has_vertices)
    return attempt


def _choose_filled_query(attempt: Attempt, question: str, failed: Faults, run: Run) -> Attempt:
    """Have a template written and filled, and one of the queries chosen (sections 3.1 and 3.2).

    Returns the attempt with its template and the query that was chosen, the first one of several.
    If none is, the attempt has the fault and the phase to go back to (``diagnose_fault``). No model
    chooses if no query has a result.
    """
    template = write_template(attempt.triplets, question, failed, run)
    attempt = replace(attempt, template=template)
    queries = build_queries(template, attempt.triplets, attempt.linked, run)
    choice = None
    if queries.kept:
        choice = choose_query(queries, question, failed, run)
        for filled in queries.kept:
            if filled in choice.chosen:
                return replace(attempt, query=filled.query)
    back, fault = diagnose_fault(queries, choice, run)
    return replace(attempt, fault=fault, back=back, was_looked_up=choice is None)


def _write_executable_query(attempt: Attempt, question: str, failed: Faults, run: Run) -> Attempt:
    """Have an executable query written in place of a template, run it, and return the attempt with it.

    A SELECT without a result is a fault of construction; an ASK never is. Source: section 4.3,
    without D-query.
    """
    query = write_query(attempt.triplets, attempt.linked, question, failed, run)
    sparql = query.sparql
    written = replace(attempt, template=sparql)
    is_boolean = analyze_query(sparql).kind == "boolean"
    if is_boolean or fetch_terms(sparql, run):
        return replace(written, query=query)
    fault = f"no result: {sparql}"
    return replace(written, fault=fault, back="construction", was_looked_up=True)


def _plan_retry(attempt: Attempt, before: Sequence[Attempt], run: Run) -> Attempt:
    """Return an attempt with the decisions that changed, and the phase that the next one begins at.

    Changed are the decisions that the last attempt in ``before`` did not make; with the setting
    ``stop_unchanged`` an attempt after which nothing changed is the last (``back`` is None). The
    next one begins at the phase at fault, or at parsing if an earlier attempt went back to that
    phase. If a template was written, the setting ``retry_from`` may name another phase.
    """
    back = attempt.back
    settings = TriadSettings.of_run(run)
    if back and attempt.template and settings.retry_from != "fault":
        back = settings.retry_from
    elif back in {earlier.back for earlier in before}:
        back = "parsing"
    if not before:
        return replace(attempt, back=back)
    earlier_decisions = before[-1].decisions
    changed = [decision for decision in attempt.decisions if decision not in earlier_decisions]
    if settings.stop_unchanged and not changed:
        back = None
    return replace(attempt, changed=tuple(changed), back=back)


SYSTEM = System(
    "triad",
    answer_question,
    {
        "Parsing": (attempt_query, extract_triplets),
        "Linking": (retrieve_candidates, choose_entities, find_relations, choose_relations),
        "Construction": (write_template, build_queries, choose_query, write_query),
        "Answering": (classify_answer_type, build_answer, answer_from_own_knowledge),
    },
    roles={
        "generalist": ("triplets", "template", "written_query", "answer_type"),
        "decision-maker": (
            "entity_retriever",
            "entity_choice",
            "relations",
            "relation_choice",
            "queries",
            "query_choice",
        ),
        "advisor": ("answer", "own_knowledge"),
    },
    supervisors={"attempt": ("triplets", "template", "queries", "query_choice", "written_query")},
    settings=TriadSettings,
    views="kgwb.systems.triad.views",
    rules={**LINKING_RULES, **RULES},
    gold=GOLD,
)
