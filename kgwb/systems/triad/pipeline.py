"""Triad as a table of contents: four phases, and retries from an earlier one (Figure 2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kgwb.flow import Answer, Dialogue, Question, Term
from kgwb.run import Run, System, agent
from kgwb.systems.linking import retrieve
from kgwb.systems.triad import decision_maker, generalist
from kgwb.systems.triad import rules as _rules  # noqa: F401  # the model rules answers its agents by them
from kgwb.systems.triad import views as _views  # noqa: F401  # its records show themselves by them
from kgwb.systems.triad.advisor import conclude, remember
from kgwb.systems.triad.memory import build, fault_of, reached, traverse
from kgwb.systems.triad.records import Attempt, Linked, RelationChoice, Triplet, Triplets
from kgwb.systems.triad.settings import TriadSettings, settings_of


def answer(question: Question, dialogue: Dialogue, run: Run) -> Answer:
    """Look for a query with results, at most ``tries`` times; then answer by the type that is asked for."""
    tries: list[Attempt] = []
    while not tries or (tries[-1].back and len(tries) < settings_of(run).tries):
        phase = tries[-1].back if tries else "parsing"
        tries.append(attempt(f"try {len(tries) + 1}/{phase}", question.text, tuple(tries), run))
    kind = generalist.classify(question.text, run)
    if query := tries[-1].query:
        return conclude(query, kind, run)
    reason = f"not in this graph: {tries[-1].fault}"
    if run.settings.own_knowledge and settings_of(run).ablation != "no_fallback":
        return remember(question.text, kind, reason, run)
    return Answer("list", reason=reason)


@agent("attempt", subject="place")
def attempt(place: str, question: str, before: tuple[Attempt, ...], run: Run) -> Attempt:
    """One try from the phase that the one before went back to; what came before that phase stays."""
    last, failed = before[-1] if before else None, tuple(each.fault for each in before)
    phase = last.back if last and last.back else "parsing"
    triplets = last.triplets if last and phase != "parsing" else generalist.parse(question, failed, run)
    linked = last.linked if last and phase == "construction" else link(triplets, question, failed, run)
    tried = Attempt(place, triplets, linked, fault=linked.missing, back="parsing")
    if not linked.missing:
        template = generalist.write_template(triplets, question, failed, run)
        queries = build(template, triplets, linked, run)
        if queries.kept:
            query = decision_maker.choose_query(queries, question, run).kept[0].query
            tried = Attempt(place, triplets, linked, template, query)
        else:
            back, fault = fault_of(queries, run)
            tried = Attempt(place, triplets, linked, template, fault=fault, back=back)
    return _advised(tried, before, run)


def _advised(tried: Attempt, before: Sequence[Attempt], run: Run) -> Attempt:
    """The try with what it changed, and the phase to go back to: no phase at fault is gone back to twice."""
    back, wanted = tried.back, settings_of(run).retry_from
    if back and wanted != "fault" and not (wanted != "parsing" and tried.linked.missing):
        back = wanted
    elif back in {each.back for each in before}:
        back = "parsing"
    old = before[-1].parts if before else ()
    changed = tuple(part for part in tried.parts if part not in old) if before else ()
    return replace(tried, changed=changed, back=back if changed or not before else None)


@agent("linking")
def link(triplets: Triplets, question: str, failed: tuple[str, ...], run: Run) -> Linked:
    """Vertices for each mention, then relations for each triplet, those at a mention before others."""
    entities = run.map(decision_maker.link_entity, triplets.mentions, question, failed)
    ends: dict[str, Sequence[Term]] = {each.entity: [c.iri for c in each.chosen] for each in entities}
    choices: dict[Triplet, RelationChoice] = {}
    while len(choices) < len(triplets.found) and all(ends.values()):
        waiting = [triplet for triplet in triplets.found if triplet not in choices]
        known = max(waiting, key=lambda each: max((end in ends) + (end[0] != "?") for end in each.ends))
        near = [end for end in known.ends if not end.startswith("?")] or known.ends
        relations = traverse(known, {end: ends[end] for end in near if end in ends}, run)
        choices[known] = decision_maker.choose_relations(relations, known, question, failed, run)
        ends |= reached(choices[known], ends, run)
    return Linked(entities, tuple(choices[each] for each in triplets.found if each in choices))


SYSTEM = System(
    "triad",
    answer,
    (
        attempt,
        generalist.parse,
        link,
        decision_maker.link_entity,
        retrieve,
        decision_maker.choose_entities,
        traverse,
        decision_maker.choose_relations,
        generalist.write_template,
        build,
        decision_maker.choose_query,
        generalist.classify,
        conclude,
        remember,
    ),
    stages=(
        ("Parsing", ("triplets",)),
        ("Linking", ("entity_retriever", "entity_choice", "relations", "relation_choice")),
        ("Construction", ("template", "queries", "query_choice")),
        ("Answering", ("answer_type", "answer", "own_knowledge")),
    ),
    supervisors={
        "attempt": ("triplets", "linking", "template", "queries", "query_choice"),
        "linking": ("entity_linking", "relations", "relation_choice"),
        "entity_linking": ("entity_retriever", "entity_choice"),
    },
    settings=TriadSettings,
)
