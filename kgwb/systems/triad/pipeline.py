"""Triad as a table of contents: four phases, and retries from an earlier one (Figure 2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kgwb.flow import NOT_HERE, Answer, Candidate, Dialogue, Question, Term
from kgwb.run import Run, System, agent
from kgwb.systems.linking import retrieve
from kgwb.systems.triad import roles
from kgwb.systems.triad.memory import build, fault_of, reached, traverse
from kgwb.systems.triad.records import Attempt, Choice, Triplet
from kgwb.systems.triad.roles import Triplets, mentions
from kgwb.systems.triad.settings import TriadSettings


def answer(question: Question, dialogue: Dialogue, run: Run) -> Answer:
    """Look for a query with results, at most ``tries`` times; then answer by the type that is asked for."""
    tries: list[Attempt] = []
    while not tries or (tries[-1].back and len(tries) < TriadSettings.of_run(run).tries):
        phase = tries[-1].back if tries else "parsing"
        tries.append(attempt(f"try {len(tries) + 1}/{phase}", question.text, tuple(tries), run))
    asked = roles.classify(question.text, run)
    if query := tries[-1].query:
        return roles.conclude(query, asked, run)
    reason = f"{NOT_HERE}: {tries[-1].fault}"
    if run.settings.own_knowledge and TriadSettings.of_run(run).ablation != "no_fallback":
        return roles.remember(question.text, asked, reason, run)
    return Answer("list", reason=reason)


@agent("attempt", subject="place")
def attempt(place: str, question: str, before: tuple[Attempt, ...], run: Run) -> Attempt:
    """One try from the phase that the one before went back to; what came before that phase stays."""
    phase = before[-1].back if before else "parsing"
    failed = tuple(each.fault for each in before)
    stays = phase != "parsing" and before
    triplets = before[-1].triplets if stays else roles.parse(question, failed, run)
    linked = before[-1].linked if phase == "construction" else link(triplets, question, failed, run)
    if missing := "; ".join(f"{each} ({each.reason})" for each in linked if not each.chosen):
        return _advised(Attempt(triplets, linked, fault=missing, back="parsing"), before, run)
    template = roles.write_template(triplets, question, failed, run)
    queries = build(template, triplets, linked, run)
    chosen = roles.choose_query(queries, question, run).chosen if queries.kept else ()
    back, fault = (None, "") if chosen else fault_of(queries, run)
    query = next((each.query for each in queries.kept if each in chosen), None)
    return _advised(Attempt(triplets, linked, template, query, fault, back), before, run)


def _advised(tried: Attempt, before: Sequence[Attempt], run: Run) -> Attempt:
    """With what a retry changed, and the phase to go back to; what is at fault twice is parsed anew."""
    back, wanted = tried.back, TriadSettings.of_run(run).retry_from
    if back and tried.template and wanted != "fault":
        back = wanted
    elif back in {each.back for each in before}:
        back = "parsing"
    old = before[-1].parts if before else ()
    changed = tuple(part for part in tried.parts if before and part not in old)
    return replace(tried, changed=changed, back=back if changed or not before else None)


def link(triplets: Triplets, question: str, failed: tuple[str, ...], run: Run) -> tuple[Choice, ...]:
    """The choice for each mention, then for each triplet, for those at a mention first."""
    names = mentions(triplets)
    found = zip(run.map(retrieve, names), names, strict=True)
    entities = [roles.choose_entities(*each, question, failed, run) for each in found]
    ends: dict[str, Sequence[Term]] = {}
    for name, each in zip(names, entities, strict=True):
        ends[name] = tuple(c.iri for c in each.chosen if isinstance(c, Candidate))
    choices: dict[Triplet, Choice] = {}
    while len(choices) < len(triplets) and all(ends[name] for name in names):
        waiting = [triplet for triplet in triplets if triplet not in choices]
        nearest = max(waiting, key=lambda each: max((end in ends) + (end in names) for end in each.ends))
        near = [end for end in nearest.ends if end in names] or [end for end in nearest.ends if end in ends]
        relations = traverse(nearest, {end: ends[end] for end in near}, run)
        choices[nearest] = roles.choose_relations(relations, nearest, question, failed, run)
        ends |= reached(nearest, choices[nearest], ends, run)
    return (*entities, *(choices[triplet] for triplet in triplets if triplet in choices))


SYSTEM = System(
    "triad",
    answer,
    {
        "Parsing": (attempt, roles.parse),
        "Linking": (retrieve, roles.choose_entities, traverse, roles.choose_relations),
        "Construction": (roles.write_template, build, roles.choose_query),
        "Answering": (roles.classify, roles.conclude, roles.remember),
    },
    supervisors={"attempt": ("triplets", "template", "queries", "query_choice")},
    settings=TriadSettings,
)
