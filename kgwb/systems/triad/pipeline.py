"""Triad's four phases as a table of contents, with what the decision-maker chooses from (3.2, Figure 2).

It chooses among relations one hop around what was linked, then among filled templates with their results.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice, product
from typing import Any

from rdflib import BNode, URIRef

from kgwb.errors import GraphTimeoutError, QueryError
from kgwb.flow import NOT_IN_GRAPH, Answer, Candidate, CandidateQuery, Dialogue, Direction, Question
from kgwb.kg.algebra import analyze_query, patterns_to_sparql
from kgwb.kg.queries import find_predicates
from kgwb.kg.sparql import n3, values_clause
from kgwb.run import Run, System, agent
from kgwb.systems.linking import compute_similarities, retrieve_candidates
from kgwb.systems.queries import label_terms
from kgwb.systems.rules import RULES as LINKING_RULES
from kgwb.systems.triad import roles
from kgwb.systems.triad.records import Attempt, Choice, Filled, Phase, Queries, Relation, Triplet
from kgwb.systems.triad.roles import Triplets, fill_template, list_mentions
from kgwb.systems.triad.rules import RULES
from kgwb.systems.triad.settings import TriadSettings
from kgwb.systems.triad.views import VIEWS
from kgwb.terms import Term

TermsByEnd = Mapping[str, Sequence[Term]]
"""The vertices that an end of a triplet may be."""
OPPOSITE_DIRECTION: Mapping[Direction, Direction] = {"out": "in", "in": "out"}
MAX_COMBINATIONS, MAX_SHOWN_VALUES = 20_000, 3
"""Combinations that are put in order; values shown of a query, and empty queries looked into."""


def answer_question(question: Question, dialogue: Dialogue, run: Run) -> Answer:
    """Look for a query with results, at most ``tries`` times; then answer by the type that is asked for."""
    tries: list[Attempt] = []
    while not tries or (tries[-1].back and len(tries) < TriadSettings.of_run(run).tries):
        phase = tries[-1].back if tries else "parsing"
        tries.append(
            attempt_query(f"try {len(tries) + 1}/{phase}", question.text, tuple(tries), run)
        )
    asked = roles.classify_answer_type(question.text, run)
    if query := tries[-1].query:
        return roles.build_answer(query, asked, run)
    reason = f"{NOT_IN_GRAPH}: {tries[-1].fault}"
    if run.settings.own_knowledge and TriadSettings.of_run(run).ablation != "no_fallback":
        return roles.answer_from_own_knowledge(question.text, asked, reason, run)
    return Answer("list", reason=reason)


@agent("attempt", subject="place")
def attempt_query(place: str, question: str, before: tuple[Attempt, ...], run: Run) -> Attempt:
    """One try from the phase that the one before went back to; what came before that phase stays."""
    phase = before[-1].back if before else "parsing"
    failed = tuple(each.fault for each in before)
    stays = phase != "parsing" and before
    triplets = before[-1].triplets if stays else roles.extract_triplets(question, failed, run)
    linked = (
        before[-1].linked
        if phase == "construction"
        else link_triplets(triplets, question, failed, run)
    )
    if missing := "; ".join(f"{each} ({each.reason})" for each in linked if not each.chosen):
        return _plan_retry(Attempt(triplets, linked, fault=missing, back="parsing"), before, run)
    template = roles.write_template(triplets, question, failed, run)
    queries = build_queries(template, triplets, linked, run)
    chosen = roles.choose_query(queries, question, run).chosen if queries.kept else ()
    back, fault = (None, "") if chosen else diagnose_fault(queries, run)
    query = next((each.query for each in queries.kept if each in chosen), None)
    return _plan_retry(Attempt(triplets, linked, template, query, fault, back), before, run)


def _plan_retry(tried: Attempt, before: Sequence[Attempt], run: Run) -> Attempt:
    """With what a retry changed, and the phase to go back to; what is at fault twice is parsed anew."""
    back, wanted = tried.back, TriadSettings.of_run(run).retry_from
    if back and tried.template and wanted != "fault":
        back = wanted
    elif back in {each.back for each in before}:
        back = "parsing"
    old = before[-1].decisions if before else ()
    changed = tuple(part for part in tried.decisions if before and part not in old)
    return replace(tried, changed=changed, back=back if changed or not before else None)


def link_triplets(
    triplets: Triplets, question: str, failed: tuple[str, ...], run: Run
) -> tuple[Choice, ...]:
    """The choice for each mention, then for each triplet, for those at a mention first."""
    names = list_mentions(triplets)
    retrieved = zip(run.map(retrieve_candidates, names), names, strict=True)
    entities = [roles.choose_entities(*each, question, failed, run) for each in retrieved]
    ends: dict[str, Sequence[Term]] = {}
    for name, each in zip(names, entities, strict=True):
        ends[name] = tuple(c.iri for c in each.chosen if isinstance(c, Candidate))
    choices: dict[Triplet, Choice] = {}
    while len(choices) < len(triplets) and all(ends[name] for name in names):
        waiting = [triplet for triplet in triplets if triplet not in choices]
        nearest = max(
            waiting, key=lambda each: max((end in ends) + (end in names) for end in each.ends)
        )
        near = [end for end in nearest.ends if end in names] or [
            end for end in nearest.ends if end in ends
        ]
        relations = find_relations(nearest, {end: ends[end] for end in near}, run)
        choices[nearest] = roles.choose_relations(relations, nearest, question, failed, run)
        ends |= sample_reached_terms(nearest, choices[nearest], ends, run)
    return (*entities, *(choices[triplet] for triplet in triplets if triplet in choices))


@agent("relations", subject="triplet", kind="sparql")
def find_relations(triplet: Triplet, ends: TermsByEnd, run: Run) -> tuple[Relation, ...]:
    """The relations one hop around what its ends may be, those named most like the triplet's own first."""
    settings = TriadSettings.of_run(run)
    ways: dict[tuple[URIRef, Direction], None] = {}
    for end, terms in ends.items():
        for iri, way in find_predicates(
            run.kg, *(term for term in terms if not isinstance(term, BNode))
        ):
            turned = way if end == triplet.subject else OPPOSITE_DIRECTION[way]
            ways[iri, "out" if settings.as_written else turned] = None
    names = run.kg.names(sorted({iri for iri, _ in ways}))
    near = compute_similarities(triplet.relation, names.values(), run) if names else {}
    relations = [Relation(iri, names[iri], way, near[names[iri]]) for iri, way in ways]
    relations.sort(key=lambda each: (-each.similarity, each.iri, each.direction == "in"))
    return tuple(relations[: settings.shown_relations])


def sample_reached_terms(
    triplet: Triplet, choice: Choice, ends: TermsByEnd, run: Run
) -> TermsByEnd:
    """A sample of what the chosen relations lead to, at the end of a triplet that is not known yet."""
    known, new = (
        [end for end in triplet.ends if (end in ends) == there] for there in (True, False)
    )
    if len(known) != 1 or not choice.chosen:
        return {}
    relations, ways = [each for each in choice.chosen if isinstance(each, Relation)], []
    for relation in relations:
        subject_first = (relation.direction == "out") == (known[0] == triplet.subject)
        pair = ("?_v", "?_x") if subject_first else ("?_x", "?_v")
        ways.append(f"{{ {pair[0]} {n3(relation.iri)} {pair[1]} }}")
    terms = values_clause("?_v", (term for term in ends[known[0]] if not isinstance(term, BNode)))
    where, most = f"{terms} {' UNION '.join(ways)}", TriadSettings.of_run(run).join_sample
    rows = run.kg.select(f"SELECT DISTINCT ?_x WHERE {{ {where} }} LIMIT {most}").rows
    return {new[0]: tuple(row[0] for row in rows if row[0] is not None)}


@agent("queries", kind="sparql")
def build_queries(
    template: str, triplets: Triplets, linked: tuple[Choice, ...], run: Run
) -> Queries:
    """The template with every choice in every slot, each run, and those without a result set apart."""
    combinations = islice(
        product(*(range(len(choice.chosen)) for choice in linked)), MAX_COMBINATIONS
    )
    in_order = sorted(combinations, key=lambda places: (sum(places), places))
    limit, filled = TriadSettings.of_run(run).query_limit, []
    if len(in_order) > limit:
        run.note(f"{len(in_order)} queries, {limit} run (query_limit)")
    for places in in_order[:limit]:
        chosen: list[Any] = [
            choice.chosen[place] for choice, place in zip(linked, places, strict=True)
        ]
        entities, relations = chosen[: -len(triplets)], chosen[-len(triplets) :]
        ways = [(n3(each.iri), each.direction) for each in relations]
        sparql = fill_template(template, triplets, [n3(each.iri) for each in entities], ways)
        about = [", ".join(filter(None, (e.name, *e.types, e.description[:80]))) for e in entities]
        named = [(f"<{each.name}>", each.direction) for each in relations]
        reads = fill_template(template, triplets, [f"<{text}>" for text in about], named)
        parts, names = analyze_query(sparql), tuple(each.name for each in relations)
        query = CandidateQuery(sparql, parts.patterns, names, 1.0, parts.filters)
        slots, results = (*about, *map(str, relations)), _fetch_values(sparql, run)
        filled.append(Filled(query, slots, reads, results[:MAX_SHOWN_VALUES], len(results)))
    kept, empty = [each for each in filled if each.rows], [each for each in filled if not each.rows]
    if (
        filled and not kept and analyze_query(filled[0].query.sparql).kind == "boolean"
    ):  # "no" is an answer too
        kept, empty = filled[:1], filled[1:]
    return Queries(
        template, (*list_mentions(triplets), *map(str, triplets)), tuple(kept), tuple(empty)
    )


def _fetch_values(sparql: str, run: Run) -> tuple[str, ...]:
    """The values of a query by name; none for no, for a count of 0, and for what the graph cannot run."""
    kind = analyze_query(sparql).kind
    try:
        if kind == "boolean":
            return ("true",) if run.kg.ask(sparql) else ()
        cells = dict.fromkeys(row[0] for row in run.kg.select(sparql).rows if row[0] is not None)
    except (QueryError, GraphTimeoutError) as error:
        run.note(f"a query could not be run: {error.message}")
        return ()
    if kind == "count" and [*map(str, cells)] == ["0"]:
        return ()
    return tuple(label_terms(cells, run).values())


def diagnose_fault(queries: Queries, run: Run) -> tuple[Phase, str]:
    """Where nothing came: in the template, if a query's triples alone hold; else in what was linked."""
    for each in queries.empty[:MAX_SHOWN_VALUES]:
        if _fetch_values(f"ASK {{ {patterns_to_sparql(each.query.patterns)} }}", run):
            return "construction", f"the triples of {each.reads} hold, but it has no result"
    return (
        "linking",
        f"no result: {'; '.join(each.reads for each in queries.empty[:MAX_SHOWN_VALUES])}",
    )


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
