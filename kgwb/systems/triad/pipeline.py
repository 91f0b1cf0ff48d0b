"""Triad as a system: four phases, and attempts that go back to an earlier phase (Figure 2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kgwb.flow import NOT_IN_GRAPH, Answer, Dialogue, Question
from kgwb.run import Run, System, agent
from kgwb.systems.linking import retrieve_candidates
from kgwb.systems.rules import RULES as LINKING_RULES
from kgwb.systems.triad import roles
from kgwb.systems.triad.linking import find_relations, link_triplets
from kgwb.systems.triad.queries import build_queries, diagnose_fault
from kgwb.systems.triad.records import Attempt, Phase
from kgwb.systems.triad.rules import RULES
from kgwb.systems.triad.settings import TriadSettings
from kgwb.systems.triad.views import VIEWS


def answer_question(question: Question, dialogue: Dialogue, run: Run) -> Answer:
    """Look for a query with a result in at most ``tries`` attempts, and answer the question.

    Triad has no dialogue: each question is read alone. The model also says which type of answer is
    asked for. If there is no query, it answers without the graph with the setting
    ``own_knowledge``, unless ``ablation`` is "no_fallback". Otherwise the answer has no values and
    a reason.
    """
    settings = TriadSettings.of_run(run)
    attempts: list[Attempt] = []
    phase: Phase | None = "parsing"
    while phase and len(attempts) < settings.tries:
        place = f"try {len(attempts) + 1}/{phase}"
        attempt = attempt_query(place, question.text, tuple(attempts), run)
        attempts.append(attempt)
        phase = attempt.back

    answer_type = roles.classify_answer_type(question.text, run)
    last = attempts[-1]
    if last.query:
        return roles.build_answer(last.query, answer_type, run)
    reason = f"{NOT_IN_GRAPH}: {last.fault}"
    if settings.own_knowledge and settings.ablation != "no_fallback":
        return roles.answer_from_own_knowledge(question.text, answer_type, reason, run)
    return Answer("list", reason=reason)


@agent("attempt", subject="place")
def attempt_query(place: str, question: str, before: tuple[Attempt, ...], run: Run) -> Attempt:
    """Make one attempt to find a query with a result.

    It begins at the phase that the last attempt in ``before`` goes back to, or at parsing if it is
    the first. What earlier phases made is taken from the last attempt. ``place`` names the attempt
    and its first phase. The result has a query, or else the fault, and the phase to go back to.
    """
    phase = before[-1].back if before else "parsing"
    failed = tuple(attempt.fault for attempt in before)
    if phase == "parsing":
        triplets = roles.extract_triplets(question, failed, run)
    else:
        triplets = before[-1].triplets
    if phase == "construction":
        linked = before[-1].linked
    else:
        linked = link_triplets(triplets, question, failed, run)
    attempt = Attempt(triplets, linked)
    missing = [f"{choice} ({choice.reason})" for choice in linked if not choice.chosen]
    if missing:
        attempt = replace(attempt, fault="; ".join(missing), back="parsing")
        return _plan_retry(attempt, before, run)

    template = roles.write_template(triplets, question, failed, run)
    attempt = replace(attempt, template=template)
    queries = build_queries(template, triplets, linked, run)
    if queries.kept:
        choice = roles.choose_query(queries, question, run)
        for filled in queries.kept:
            if filled in choice.chosen:
                attempt = replace(attempt, query=filled.query)
                return _plan_retry(attempt, before, run)
    back, fault = diagnose_fault(queries, run)
    attempt = replace(attempt, fault=fault, back=back)
    return _plan_retry(attempt, before, run)


def _plan_retry(attempt: Attempt, before: Sequence[Attempt], run: Run) -> Attempt:
    """Return an attempt with the decisions that changed, and the phase that the next one begins at.

    Changed are the decisions that the last attempt in ``before`` did not make; an attempt after
    which nothing changed is the last. The next one begins at the phase at fault, or at parsing if
    an earlier attempt went back to that phase. If a template was written, the setting
    ``retry_from`` may name another phase.
    """
    back = attempt.back
    retry_from = TriadSettings.of_run(run).retry_from
    if back and attempt.template and retry_from != "fault":
        back = retry_from
    elif back in {earlier.back for earlier in before}:
        back = "parsing"
    if not before:
        return replace(attempt, back=back)
    earlier_decisions = before[-1].decisions
    changed = [decision for decision in attempt.decisions if decision not in earlier_decisions]
    if not changed:
        back = None
    return replace(attempt, changed=tuple(changed), back=back)


SYSTEM = System(
    "triad",
    answer_question,
    {
        "Parsing": (attempt_query, roles.extract_triplets),
        "Linking": (
            retrieve_candidates,
            roles.choose_entities,
            find_relations,
            roles.choose_relations,
        ),
        "Construction": (roles.write_template, build_queries, roles.choose_query),
        "Answering": (
            roles.classify_answer_type,
            roles.build_answer,
            roles.answer_from_own_knowledge,
        ),
    },
    supervisors={"attempt": ("triplets", "template", "queries", "query_choice")},
    settings=TriadSettings,
    views=VIEWS,
    rules={**LINKING_RULES, **RULES},
)
