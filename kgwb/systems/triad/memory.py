"""What the decision-maker chooses from: relations one hop around, and filled templates with results (3.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice, product
from typing import Any

from rdflib import BNode, URIRef

from kgwb.errors import GraphTimeoutError, QueryError
from kgwb.flow import CandidateQuery, Direction, Term
from kgwb.kg.algebra import conjunction, parts_of
from kgwb.kg.queries import predicates
from kgwb.kg.sparql import n3, one_of
from kgwb.run import Run, agent
from kgwb.systems.linking import likeness
from kgwb.systems.queries import labels_of
from kgwb.systems.triad.records import Choice, Filled, Phase, Queries, Relation, Triplet
from kgwb.systems.triad.roles import Triplets, fill, mentions
from kgwb.systems.triad.settings import TriadSettings

Ends = Mapping[str, Sequence[Term]]
"""The vertices that an end of a triplet may be."""
TURNED: Mapping[Direction, Direction] = {"out": "in", "in": "out"}
MOST_COMBINATIONS, FEW = 20_000, 3
"""Combinations that are put in order; values shown of a query, and empty queries looked into."""


@agent("relations", subject="triplet", kind="sparql")
def traverse(triplet: Triplet, ends: Ends, run: Run) -> tuple[Relation, ...]:
    """The relations one hop around what its ends may be, those named most like the triplet's own first."""
    settings = TriadSettings.of_run(run)
    found: dict[tuple[URIRef, Direction], None] = {}
    for end, terms in ends.items():
        for iri, way in predicates(run.kg, *(term for term in terms if not isinstance(term, BNode))):
            turned = way if end == triplet.subject else TURNED[way]
            found[iri, "out" if settings.as_written else turned] = None
    names = run.kg.names(sorted({iri for iri, _ in found}))
    near = likeness(triplet.relation, names.values(), run) if names else {}
    relations = [Relation(iri, names[iri], way, near[names[iri]]) for iri, way in found]
    relations.sort(key=lambda each: (-each.similarity, each.iri, each.direction == "in"))
    return tuple(relations[: settings.shown_relations])


def reached(triplet: Triplet, choice: Choice, ends: Ends, run: Run) -> Ends:
    """A sample of what the chosen relations lead to, at the end of a triplet that is not known yet."""
    known, new = ([end for end in triplet.ends if (end in ends) == there] for there in (True, False))
    if len(known) != 1 or not choice.chosen:
        return {}
    relations, ways = [each for each in choice.chosen if isinstance(each, Relation)], []
    for relation in relations:
        subject_first = (relation.direction == "out") == (known[0] == triplet.subject)
        pair = ("?_v", "?_x") if subject_first else ("?_x", "?_v")
        ways.append(f"{{ {pair[0]} {n3(relation.iri)} {pair[1]} }}")
    terms = one_of("?_v", (term for term in ends[known[0]] if not isinstance(term, BNode)))
    where, most = f"{terms} {' UNION '.join(ways)}", TriadSettings.of_run(run).join_sample
    rows = run.kg.select(f"SELECT DISTINCT ?_x WHERE {{ {where} }} LIMIT {most}").rows
    return {new[0]: tuple(row[0] for row in rows if row[0] is not None)}


@agent("queries", kind="sparql")
def build(template: str, triplets: Triplets, linked: tuple[Choice, ...], run: Run) -> Queries:
    """The template with every choice in every slot, each run, and those without a result set apart."""
    combinations = islice(product(*(range(len(choice.chosen)) for choice in linked)), MOST_COMBINATIONS)
    in_order = sorted(combinations, key=lambda places: (sum(places), places))
    limit, filled = TriadSettings.of_run(run).query_limit, []
    if len(in_order) > limit:
        run.note(f"{len(in_order)} queries, {limit} run (query_limit)")
    for places in in_order[:limit]:
        chosen: list[Any] = [choice.chosen[place] for choice, place in zip(linked, places, strict=True)]
        entities, relations = chosen[: -len(triplets)], chosen[-len(triplets) :]
        ways = [(n3(each.iri), each.direction) for each in relations]
        sparql = fill(template, triplets, [n3(each.iri) for each in entities], ways)
        about = [", ".join(filter(None, (e.name, *e.types, e.description[:80]))) for e in entities]
        named = [(f"<{each.name}>", each.direction) for each in relations]
        reads = fill(template, triplets, [f"<{text}>" for text in about], named)
        parts, names = parts_of(sparql), tuple(each.name for each in relations)
        query = CandidateQuery(sparql, parts.patterns, names, 1.0, parts.filters)
        slots, results = (*about, *map(str, relations)), _results(sparql, run)
        filled.append(Filled(query, slots, reads, results[:FEW], len(results)))
    kept, empty = [each for each in filled if each.rows], [each for each in filled if not each.rows]
    if filled and not kept and parts_of(filled[0].query.sparql).kind == "boolean":  # "no" is an answer too
        kept, empty = filled[:1], filled[1:]
    return Queries(template, (*mentions(triplets), *map(str, triplets)), tuple(kept), tuple(empty))


def _results(sparql: str, run: Run) -> tuple[str, ...]:
    """The values of a query by name; none for no, for a count of 0, and for what the graph cannot run."""
    kind = parts_of(sparql).kind
    try:
        if kind == "boolean":
            return ("true",) if run.kg.ask(sparql) else ()
        cells = dict.fromkeys(row[0] for row in run.kg.select(sparql).rows if row[0] is not None)
    except (QueryError, GraphTimeoutError) as error:
        run.note(f"a query could not be run: {error.message}")
        return ()
    if kind == "count" and [*map(str, cells)] == ["0"]:
        return ()
    return tuple(labels_of(cells, run).values())


def fault_of(queries: Queries, run: Run) -> tuple[Phase, str]:
    """Where nothing came: in the template, if a query's triples alone hold; else in what was linked."""
    for each in queries.empty[:FEW]:
        if _results(f"ASK {{ {conjunction(each.query.patterns)} }}", run):
            return "construction", f"the triples of {each.reads} hold, but it has no result"
    return "linking", f"no result: {'; '.join(each.reads for each in queries.empty[:FEW])}"
