"""The tools of LOCAL, REMOTE and UPDATE: each use is a step, its result capped and counted."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import wraps
from itertools import chain, groupby, zip_longest
from typing import Literal

import rdflib
from pydantic import StrictInt
from rdflib import URIRef
from rdflib.namespace import RDFS

from kgwb.errors import GraphError, GraphUnreachableError, NotRecordedError
from kgwb.kg import open_kg
from kgwb.kg.base import Graph
from kgwb.kg.queries import describe, triples_at
from kgwb.kg.sparql import n3
from kgwb.kg.survey_text import quoted, with_prefixes
from kgwb.records import Hidden, Record, to_data
from kgwb.run import Run
from kgwb.run.agents import AgentKind
from kgwb.run.replay import RecordedGraph
from kgwb.run.tools import Tool, tool_from_function
from kgwb.systems.queries import names_in, result_of
from kgwb.systems.robodata.local_graph import LocalGraph
from kgwb.terms import Iri, Term, Triple
from kgwb.text import pluralize

HITS, NEIGHBOURS, ROWS, FETCHED, LOOK = 5, 20, 50, 50, 1_000
"""Rows that tools show or add of what they find (reference code); triples read to find and count them."""
MOST_SHOWN, MOST_FETCHED, MOST_NODES, STEPS = 100, 500, 100, 2
SUBCLASS = (RDFS.subClassOf, URIRef("http://www.wikidata.org/prop/direct/P279"))
SPO = ("subject", "predicate", "object")


@dataclass(frozen=True, slots=True)
class Observed(Record):
    """What one use of a tool gave."""

    columns: tuple[str, ...] = ()
    rows: tuple[tuple[Term | None, ...], ...] = ()
    """Of what changes the local graph: its nodes and triples, in one cell or three."""
    found: int = 0
    """Rows there are, of which the first are here."""
    whole: bool = True
    """Whether all there are were counted."""
    effect: Literal["shown", "added", "removed"] = "shown"
    error: str = ""
    use: str = ""
    """The tool with its arguments, as the model gave them."""
    names: Hidden[tuple[tuple[Iri, str], ...]] = ()

    def __str__(self) -> str:
        of = (
            f" of {'' if self.whole else 'at least '}{self.found:,}"
            if self.found > len(self.rows)
            else ""
        )
        rows = f"{pluralize(len(self.rows), 'row')}{of}{'' if self.effect == 'shown' else f' {self.effect}'}"
        return f"{self.use}: {f'error: {self.error}' if self.error else rows}"

    def lines(self, local: LocalGraph) -> list[str]:
        """As a model reads it: ids, with names in quotes."""
        named = local.ids.knowing(self.names).named
        head = f"{self}: {' | '.join(self.columns)}" if self.rows else str(self)
        return [head, *("  " + " | ".join(map(named, row)) for row in self.rows)]


def usable(kind: AgentKind = "sparql") -> Callable[[Callable[..., Observed]], type[Tool]]:
    """Make a tool of a function. What the graph refuses is a result too; only one that is gone ends a run."""

    def decorate(function: Callable[..., Observed]) -> type[Tool]:
        @wraps(function)
        def use(*, local: LocalGraph, run: Run, **arguments: str | list[str]) -> Observed:
            texts = (
                ", ".join(each) if isinstance(each, list) else str(each)
                for each in arguments.values()
            )
            text = f"{function.__name__}({', '.join(quoted(each, 120) for each in texts)})"
            try:
                seen = function(**arguments, local=local, run=run)
            except GraphUnreachableError:
                raise
            except (GraphError, NotRecordedError) as error:
                message = "" if isinstance(error, NotRecordedError) else quoted(error.message, 300)
                asked = {"graph": run.kg.identity, "use": text, "local": to_data(local)}
                known = run.call(
                    "robodata.error", asked, (lambda: message) if message else None, str
                )
                return Observed(error=known, use=text)
            return replace(seen, use=text, names=tuple(names_in(seen.rows, run).items()))

        return tool_from_function(use, kind=kind)

    return decorate


def by_predicate(triples: Iterable[Triple]) -> list[list[Triple]]:
    ordered = sorted(dict.fromkeys(triples), key=lambda triple: triple[1])
    return [list(group) for _, group in groupby(ordered, lambda triple: triple[1])]


def shown(triples: Iterable[Triple], whole: bool = True, most: int = MOST_SHOWN) -> Observed:
    """Some of these triples, of each predicate in its turn."""
    in_turn = [
        triple for triple in chain.from_iterable(zip_longest(*by_predicate(triples))) if triple
    ]
    rows = sorted(
        in_turn[: max(1, min(most, MOST_SHOWN))], key=lambda triple: (triple[1], str(triple))
    )
    return Observed(SPO, tuple(rows), len(in_turn), whole)


def selected(kg: Graph, sparql: str, local: LocalGraph) -> Observed:
    """The rows of a SELECT, or the truth of an ASK."""
    result = result_of(kg, with_prefixes(sparql, local.ids.spaces))
    if isinstance(result, bool):
        return Observed(("truth",), ((rdflib.Literal(result),),), 1)
    return Observed(result.variables, result.rows[:ROWS], len(result.rows), not result.cut)


# --- LOCAL


@usable("code")
def get_node(node: str, *, local: LocalGraph, run: Run) -> Observed:
    """All triples of the local graph at one of its nodes."""
    return shown(
        triple for triple in local.support for (term,) in local.found([node]) if term in triple[::2]
    )


@usable("code")
def get_edge(predicate: str, *, local: LocalGraph, run: Run) -> Observed:
    """All triples of the local graph with one predicate."""
    return shown(triple for triple in local.support if triple[1] == local.ids.read(predicate))


@usable()
def query_local(sparql: str, *, local: LocalGraph, run: Run) -> Observed:
    """A query over the local graph, where the paper has Cypher."""
    graph = rdflib.Graph()
    for triple in local.support:
        graph.add(triple)
    return selected(RecordedGraph(open_kg(graph), run.call), sparql, local)


# --- REMOTE


def _at(
    iris: list[URIRef], only: list[URIRef], run: Run
) -> tuple[list[Triple], list[Triple], bool]:
    """The triples that leave and that reach them, of these predicates or of all; whether these are all."""
    out, all_out = triples_at(run.kg, iris, only, (), LOOK)
    into, all_into = triples_at(run.kg, (), only, iris, LOOK)
    return out, into, all_out and all_into


@usable("search")
def search_entities(name: str, *, local: LocalGraph, run: Run) -> Observed:
    """Entities by a name, with their types and descriptions."""
    hits = run.kg.search(name, run.settings.v_limit).hits
    about = describe(run.kg, [hit.iri for hit in hits[:HITS]])
    texts = ((iri, ", ".join(known.types), known.description) for iri, known in about.items())
    rows = tuple((iri, rdflib.Literal(types), rdflib.Literal(text)) for iri, types, text in texts)
    return Observed(("entity", "types", "description"), rows, len(hits))


@usable()
def get_entity_info(entity: str, *, local: LocalGraph, run: Run) -> Observed:
    """Each predicate of an entity, in both directions, with how many triples and one of them."""
    out, into, whole = _at([local.ids.read(entity)], [], run)
    rows = tuple(
        (*way[0], rdflib.Literal(len(way))) for way in (*by_predicate(out), *by_predicate(into))
    )
    return Observed((*SPO, "triples like it"), rows[:MOST_SHOWN], len(rows), whole)


@usable()
def get_property_info(property: str, *, local: LocalGraph, run: Run) -> Observed:
    """Some triples of a property, and how many there are."""
    return shown(*triples_at(run.kg, (), [local.ids.read(property)], (), LOOK), HITS)


@usable()
def sparql_query(sparql: str, *, local: LocalGraph, run: Run) -> Observed:
    """A query over the remote graph."""
    return selected(run.kg, sparql, local)


@usable()
def explore_entity_neighbors(
    entity: str, predicate: str, limit: StrictInt, *, local: LocalGraph, run: Run
) -> Observed:
    """Triples at an entity in both directions, of one predicate or of all."""
    iri, only = [local.ids.read(entity)], [local.ids.read(predicate)] if predicate.strip() else []
    out, into, whole = _at(iri, only, run)
    return shown([*out, *into], whole, limit if limit > 0 else NEIGHBOURS)


@usable()
def build_local_graph(
    entity: str, predicates: list[str], *, local: LocalGraph, run: Run
) -> Observed:
    """The triples that lead away from an entity in two steps, along types and superclasses by default."""
    along = [*map(local.ids.read, predicates)] or [*run.kg.vocabulary.types, *SUBCLASS]
    heads, kept, whole = [local.ids.read(entity)], dict[Triple, None](), True
    for _ in range(STEPS):
        triples, all_of_them = triples_at(run.kg, heads, along, (), LOOK) if heads else ([], True)
        kept.update(dict.fromkeys(triples))
        whole &= all_of_them
        heads = list(dict.fromkeys(o for _, _, o in triples if isinstance(o, URIRef)))[:MOST_NODES]
    return Observed(SPO, tuple(kept)[:MOST_NODES], len(kept), whole, "added")


# --- UPDATE


@usable()
def fetch_node(node: str, *, local: LocalGraph, run: Run) -> Observed:
    """A node of the remote graph, added to the local one."""
    iri = local.ids.read(node)
    known = run.kg.ask(f"ASK {{ {{ {n3(iri)} ?p ?o }} UNION {{ ?s ?p {n3(iri)} }} }}")
    return Observed(("node",), ((iri,),) if known else (), int(known), effect="added")


def fetched(
    subjects: list[str], predicate: str, objects: list[str], nodes: int, local: LocalGraph, run: Run
) -> Observed:
    ends, only = (
        ([*map(local.ids.read, ids)] for ids in (subjects, objects)),
        [local.ids.read(predicate)],
    )
    triples, whole = triples_at(run.kg, next(ends), only, next(ends), LOOK) if nodes else ([], True)
    most = min(FETCHED * nodes, MOST_FETCHED)
    return Observed(SPO, tuple(triples[:most]), len(triples), whole, "added")


@usable()
def fetch_relationship_from_node(
    nodes: list[str], predicate: str, others: list[str], *, local: LocalGraph, run: Run
) -> Observed:
    """Triples that lead away from nodes, added to the local graph: all, or those to the others."""
    return fetched(nodes, predicate, others, len(nodes), local, run)


@usable()
def fetch_relationship_to_node(
    nodes: list[str], predicate: str, others: list[str], *, local: LocalGraph, run: Run
) -> Observed:
    """Triples that lead to nodes, added to the local graph: all, or those from the others."""
    return fetched(others, predicate, nodes, len(nodes), local, run)


@usable("code")
def remove_node(node: str, *, local: LocalGraph, run: Run) -> Observed:
    """A node of the local graph, removed with all triples at it."""
    return Observed(("node",), rows := local.found([node]), len(rows), effect="removed")


@usable("code")
def remove_edge(
    subject: str, predicate: str, object: str, *, local: LocalGraph, run: Run
) -> Observed:
    """A triple of the local graph, removed."""
    return Observed(
        SPO, rows := local.found([subject, predicate, object]), len(rows), effect="removed"
    )


LOCAL = (get_node, get_edge, query_local)
REMOTE = (
    *(search_entities, get_entity_info, get_property_info, sparql_query, explore_entity_neighbors),
    build_local_graph,
)
UPDATE = (
    fetch_node,
    fetch_relationship_from_node,
    fetch_relationship_to_node,
    remove_node,
    remove_edge,
)
