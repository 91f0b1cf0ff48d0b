"""What the decision-maker chooses from: relations one hop around, and filled templates that have results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice, product
from typing import Any

from rdflib import BNode, URIRef

from kgwb.errors import GraphTimeoutError, QueryError
from kgwb.flow import CandidateQuery, Direction, Term
from kgwb.kg.algebra import conjunction, parts_of
from kgwb.kg.queries import predicates
from kgwb.kg.sparql import n3
from kgwb.run import Run, agent
from kgwb.systems.triad.generalist import fill
from kgwb.systems.triad.records import (
    Filled,
    Linked,
    Phase,
    Queries,
    Relation,
    RelationChoice,
    Triplet,
    Triplets,
)
from kgwb.systems.triad.settings import settings_of

Ends = Mapping[str, Sequence[Term]]
TURNED: Mapping[Direction, Direction] = {"out": "in", "in": "out"}
MOST_COMBINATIONS, FEW = 20_000, 3
"""Combinations that are put in order; values shown of a query, and empty queries looked into."""


@agent("relations", subject="triplet", kind="sparql")
def traverse(triplet: Triplet, ends: Ends, run: Run) -> tuple[Relation, ...]:
    """The relations one hop around what its ends may be, those named most like the triplet's own first."""
    settings = settings_of(run)
    found: dict[tuple[URIRef, Direction], None] = {}
    for end, terms in ends.items():
        for iri, way in predicates(run.kg, *(term for term in terms if not isinstance(term, BNode))):
            turned = way if end == triplet.subject else TURNED[way]
            found[iri, "out" if settings.as_written else turned] = None
    names = run.kg.names(sorted({iri for iri, _ in found}))
    distinct = sorted(set(names.values()))
    near = dict(zip(distinct, run.similarity(triplet.relation, distinct), strict=True)) if distinct else {}
    relations = [Relation(iri, names[iri], way, near[names[iri]]) for iri, way in found]
    relations.sort(key=lambda each: (-each.similarity, each.iri, each.direction == "in"))
    return tuple(relations[: settings.shown_relations])


def reached(choice: RelationChoice, ends: Ends, run: Run) -> Mapping[str, Sequence[Term]]:
    """A sample of what the chosen relations lead to at the end of a triplet that is not known yet."""
    new = [end for end in choice.triplet.ends if end not in ends]
    known = [end for end in choice.triplet.ends if end in ends]
    if len(new) != 1 or not known or not choice.chosen:
        return {}
    terms = " ".join(n3(term) for term in ends[known[0]] if not isinstance(term, BNode))
    ways = []
    for each in choice.chosen:
        forward = (each.direction == "out") == (known[0] == choice.triplet.subject)
        first, last = ("?_v", "?_x") if forward else ("?_x", "?_v")
        ways.append(f"{{ {first} {n3(each.iri)} {last} }}")
    body = f"VALUES ?_v {{ {terms} }} {' UNION '.join(ways)}"
    rows = run.kg.select(f"SELECT DISTINCT ?_x WHERE {{ {body} }} LIMIT {settings_of(run).join_sample}").rows
    return {new[0]: tuple(row[0] for row in rows if row[0] is not None)}


@agent("queries", kind="sparql")
def build(template: str, triplets: Triplets, linked: Linked, run: Run) -> Queries:
    """The template with every choice in every slot, each run, and those without a result set apart."""
    pools: list[Sequence[Any]] = [each.chosen for each in (*linked.entities, *linked.relations)]
    ranks = islice(product(*(range(len(pool)) for pool in pools)), MOST_COMBINATIONS)
    in_order = sorted(ranks, key=lambda places: (sum(places), places))
    if len(in_order) > settings_of(run).query_limit:
        run.note(f"{len(in_order)} queries, {settings_of(run).query_limit} run (query_limit)")
    filled = []
    for places in in_order[: settings_of(run).query_limit]:
        chosen = [pool[place] for pool, place in zip(pools, places, strict=True)]
        filled.append(_filled(template, triplets, chosen, run))
    kept, empty = [each for each in filled if each.rows], [each for each in filled if not each.rows]
    if not kept and template[:3].upper() == "ASK":  # that it is not so is an answer too
        kept, empty = filled[:1], filled[1:]
    heads = (*triplets.mentions, *map(str, triplets.found))
    return Queries(template, heads, tuple(kept), tuple(empty))


def _filled(template: str, triplets: Triplets, chosen: Sequence[Any], run: Run) -> Filled:
    entities, relations = chosen[: len(triplets.mentions)], chosen[len(triplets.mentions) :]
    ways = [(n3(each.iri), each.direction) for each in relations]
    sparql = fill(template, triplets, [n3(each.iri) for each in entities], ways)
    names = [", ".join((each.label, *each.types, *each.description.split()[:FEW])) for each in entities]
    ways = [(f"<{each.name}>", each.direction) for each in relations]
    reads = fill(template, triplets, [f"<{name}>" for name in names], ways)
    parts = parts_of(sparql)
    predicates = tuple(each.name for each in relations)
    query = CandidateQuery(sparql, parts.patterns, predicates, 1.0, parts.filters)
    results = _results(sparql, run)
    return Filled(query, (*names, *map(str, relations)), reads, results[:FEW], len(results))


def _results(sparql: str, run: Run) -> tuple[str, ...]:
    """The values of a query by name; none for no, for a count of 0, and for what the graph cannot run."""
    try:
        if sparql[:3].upper() == "ASK":
            return ("true",) if run.kg.ask(sparql) else ()
        cells = dict.fromkeys(row[0] for row in run.kg.select(sparql).rows if row[0] is not None)
    except (QueryError, GraphTimeoutError) as error:
        run.note(f"a query could not be run: {error.message}")
        return ()
    if parts_of(sparql).kind == "count" and [*map(str, cells)] == ["0"]:
        return ()
    names = run.kg.names(sorted(cell for cell in cells if isinstance(cell, URIRef)))
    return tuple(names[cell] if isinstance(cell, URIRef) else str(cell) for cell in cells)


def fault_of(queries: Queries, run: Run) -> tuple[Phase, str]:
    """Where nothing came: in the template, if the triples of a query hold by themselves; else in the links."""
    for each in queries.empty[:FEW]:
        if run.kg.ask(f"ASK {{ {conjunction(each.query.patterns)} }}"):
            return "construction", f"the triples of {each.reads} hold, but it has no result"
    tried = "; ".join(each.reads for each in queries.empty[:FEW])
    return "linking", f"no query has a result: {tried}"
