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
from kgwb.kg.queries import describe_vertices, find_triples
from kgwb.kg.sparql import n3
from kgwb.kg.term_text import add_missing_prefixes, quote_text
from kgwb.records import Hidden, Record, to_data
from kgwb.run import Run
from kgwb.run.agents import AgentKind
from kgwb.run.replay import RecordedGraph
from kgwb.run.tools import Tool, tool_from_function
from kgwb.systems.queries import execute_sparql, get_names_in_rows
from kgwb.systems.robodata.local_graph import LocalGraph
from kgwb.terms import Iri, Term, Triple
from kgwb.text import pluralize

DEFAULT_HITS, DEFAULT_NEIGHBOURS, MAX_QUERY_ROWS, MAX_TRIPLES_PER_NODE, MAX_READ_TRIPLES = (
    5,
    20,
    50,
    50,
    1_000,
)
"""Rows that tools show or add of what they find (reference code); triples read to find and count them."""
MAX_SHOWN_TRIPLES, MAX_FETCHED_TRIPLES, MAX_NODES, MAX_HOPS = 100, 500, 100, 2
SUBCLASS_PREDICATES = (RDFS.subClassOf, URIRef("http://www.wikidata.org/prop/direct/P279"))
TRIPLE_COLUMNS = ("subject", "predicate", "object")


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

    def format_lines(self, local: LocalGraph) -> list[str]:
        """As a model reads it: ids, with names in quotes."""
        named = local.id_mapping.with_names(self.names).format_named_id
        head = f"{self}: {' | '.join(self.columns)}" if self.rows else str(self)
        return [head, *("  " + " | ".join(map(named, row)) for row in self.rows)]


def graph_tool(kind: AgentKind = "sparql") -> Callable[[Callable[..., Observed]], type[Tool]]:
    """Make a tool of a function. What the graph refuses is a result too; only one that is gone ends a run."""

    def decorate(function: Callable[..., Observed]) -> type[Tool]:
        @wraps(function)
        def use(*, local: LocalGraph, run: Run, **arguments: str | list[str]) -> Observed:
            texts = (
                ", ".join(each) if isinstance(each, list) else str(each)
                for each in arguments.values()
            )
            text = f"{function.__name__}({', '.join(quote_text(each, 120) for each in texts)})"
            try:
                seen = function(**arguments, local=local, run=run)
            except GraphUnreachableError:
                raise
            except (GraphError, NotRecordedError) as error:
                message = (
                    "" if isinstance(error, NotRecordedError) else quote_text(error.message, 300)
                )
                asked = {"graph": run.kg.identity, "use": text, "local": to_data(local)}
                known = run.call(
                    "robodata.error", asked, (lambda: message) if message else None, str
                )
                return Observed(error=known, use=text)
            return replace(seen, use=text, names=tuple(get_names_in_rows(seen.rows, run).items()))

        return tool_from_function(use, kind=kind)

    return decorate


def group_by_predicate(triples: Iterable[Triple]) -> list[list[Triple]]:
    ordered = sorted(dict.fromkeys(triples), key=lambda triple: triple[1])
    return [list(group) for _, group in groupby(ordered, lambda triple: triple[1])]


def sample_triples(
    triples: Iterable[Triple], is_complete: bool = True, limit: int = MAX_SHOWN_TRIPLES
) -> Observed:
    """Some of these triples, of each predicate in its turn."""
    in_turn = [
        triple
        for triple in chain.from_iterable(zip_longest(*group_by_predicate(triples)))
        if triple
    ]
    rows = sorted(
        in_turn[: max(1, min(limit, MAX_SHOWN_TRIPLES))],
        key=lambda triple: (triple[1], str(triple)),
    )
    return Observed(TRIPLE_COLUMNS, tuple(rows), len(in_turn), is_complete)


def query_graph(kg: Graph, sparql: str, local: LocalGraph) -> Observed:
    """The rows of a SELECT, or the truth of an ASK."""
    result = execute_sparql(kg, add_missing_prefixes(sparql, local.id_mapping.namespaces))
    if isinstance(result, bool):
        return Observed(("truth",), ((rdflib.Literal(result),),), 1)
    return Observed(
        result.variables, result.rows[:MAX_QUERY_ROWS], len(result.rows), not result.cut
    )


# --- LOCAL


@graph_tool("code")
def get_node(node: str, *, local: LocalGraph, run: Run) -> Observed:
    """All triples of the local graph at one of its nodes."""
    return sample_triples(
        triple
        for triple in local.support
        for (term,) in local.find_elements([node])
        if term in triple[::2]
    )


@graph_tool("code")
def get_edge(predicate: str, *, local: LocalGraph, run: Run) -> Observed:
    """All triples of the local graph with one predicate."""
    return sample_triples(
        triple for triple in local.support if triple[1] == local.id_mapping.parse_id(predicate)
    )


@graph_tool()
def query_local(sparql: str, *, local: LocalGraph, run: Run) -> Observed:
    """A query over the local graph, where the paper has Cypher."""
    graph = rdflib.Graph()
    for triple in local.support:
        graph.add(triple)
    return query_graph(RecordedGraph(open_kg(graph), run.call), sparql, local)


# --- REMOTE


def _find_adjacent_triples(
    iris: list[URIRef], predicates: list[URIRef], run: Run
) -> tuple[list[Triple], list[Triple], bool]:
    """The triples that leave and that reach them, of these predicates or of all; whether these are all."""
    out, all_out = find_triples(run.kg, iris, predicates, (), MAX_READ_TRIPLES)
    into, all_into = find_triples(run.kg, (), predicates, iris, MAX_READ_TRIPLES)
    return out, into, all_out and all_into


@graph_tool("search")
def search_entities(name: str, *, local: LocalGraph, run: Run) -> Observed:
    """Entities by a name, with their types and descriptions."""
    hits = run.kg.search(name, run.settings.v_limit).hits
    about = describe_vertices(run.kg, [hit.iri for hit in hits[:DEFAULT_HITS]])
    texts = ((iri, ", ".join(known.types), known.description) for iri, known in about.items())
    rows = tuple((iri, rdflib.Literal(types), rdflib.Literal(text)) for iri, types, text in texts)
    return Observed(("entity", "types", "description"), rows, len(hits))


@graph_tool()
def get_entity_info(entity: str, *, local: LocalGraph, run: Run) -> Observed:
    """Each predicate of an entity, in both directions, with how many triples and one of them."""
    out, into, whole = _find_adjacent_triples([local.id_mapping.parse_id(entity)], [], run)
    rows = tuple(
        (*way[0], rdflib.Literal(len(way)))
        for way in (*group_by_predicate(out), *group_by_predicate(into))
    )
    return Observed(
        (*TRIPLE_COLUMNS, "triples like it"), rows[:MAX_SHOWN_TRIPLES], len(rows), whole
    )


@graph_tool()
def get_property_info(property: str, *, local: LocalGraph, run: Run) -> Observed:
    """Some triples of a property, and how many there are."""
    return sample_triples(
        *find_triples(run.kg, (), [local.id_mapping.parse_id(property)], (), MAX_READ_TRIPLES),
        DEFAULT_HITS,
    )


@graph_tool()
def sparql_query(sparql: str, *, local: LocalGraph, run: Run) -> Observed:
    """A query over the remote graph."""
    return query_graph(run.kg, sparql, local)


@graph_tool()
def explore_entity_neighbors(
    entity: str, predicate: str, limit: StrictInt, *, local: LocalGraph, run: Run
) -> Observed:
    """Triples at an entity in both directions, of one predicate or of all."""
    iri, only = (
        [local.id_mapping.parse_id(entity)],
        [local.id_mapping.parse_id(predicate)] if predicate.strip() else [],
    )
    out, into, whole = _find_adjacent_triples(iri, only, run)
    return sample_triples([*out, *into], whole, limit if limit > 0 else DEFAULT_NEIGHBOURS)


@graph_tool()
def build_local_graph(
    entity: str, predicates: list[str], *, local: LocalGraph, run: Run
) -> Observed:
    """The triples that lead away from an entity in two steps, along types and superclasses by default."""
    along = [*map(local.id_mapping.parse_id, predicates)] or [
        *run.kg.vocabulary.types,
        *SUBCLASS_PREDICATES,
    ]
    heads, kept, whole = [local.id_mapping.parse_id(entity)], dict[Triple, None](), True
    for _ in range(MAX_HOPS):
        triples, all_of_them = (
            find_triples(run.kg, heads, along, (), MAX_READ_TRIPLES) if heads else ([], True)
        )
        kept.update(dict.fromkeys(triples))
        whole &= all_of_them
        heads = list(dict.fromkeys(o for _, _, o in triples if isinstance(o, URIRef)))[:MAX_NODES]
    return Observed(TRIPLE_COLUMNS, tuple(kept)[:MAX_NODES], len(kept), whole, "added")


# --- UPDATE


@graph_tool()
def fetch_node(node: str, *, local: LocalGraph, run: Run) -> Observed:
    """A node of the remote graph, added to the local one."""
    iri = local.id_mapping.parse_id(node)
    known = run.kg.ask(f"ASK {{ {{ {n3(iri)} ?p ?o }} UNION {{ ?s ?p {n3(iri)} }} }}")
    return Observed(("node",), ((iri,),) if known else (), int(known), effect="added")


def fetch_triples(
    subjects: list[str], predicate: str, objects: list[str], nodes: int, local: LocalGraph, run: Run
) -> Observed:
    ends, only = (
        ([*map(local.id_mapping.parse_id, ids)] for ids in (subjects, objects)),
        [local.id_mapping.parse_id(predicate)],
    )
    triples, whole = (
        find_triples(run.kg, next(ends), only, next(ends), MAX_READ_TRIPLES)
        if nodes
        else ([], True)
    )
    most = min(MAX_TRIPLES_PER_NODE * nodes, MAX_FETCHED_TRIPLES)
    return Observed(TRIPLE_COLUMNS, tuple(triples[:most]), len(triples), whole, "added")


@graph_tool()
def fetch_relationship_from_node(
    nodes: list[str], predicate: str, others: list[str], *, local: LocalGraph, run: Run
) -> Observed:
    """Triples that lead away from nodes, added to the local graph: all, or those to the others."""
    return fetch_triples(nodes, predicate, others, len(nodes), local, run)


@graph_tool()
def fetch_relationship_to_node(
    nodes: list[str], predicate: str, others: list[str], *, local: LocalGraph, run: Run
) -> Observed:
    """Triples that lead to nodes, added to the local graph: all, or those from the others."""
    return fetch_triples(others, predicate, nodes, len(nodes), local, run)


@graph_tool("code")
def remove_node(node: str, *, local: LocalGraph, run: Run) -> Observed:
    """A node of the local graph, removed with all triples at it."""
    return Observed(("node",), rows := local.find_elements([node]), len(rows), effect="removed")


@graph_tool("code")
def remove_edge(
    subject: str, predicate: str, object: str, *, local: LocalGraph, run: Run
) -> Observed:
    """A triple of the local graph, removed."""
    return Observed(
        TRIPLE_COLUMNS,
        rows := local.find_elements([subject, predicate, object]),
        len(rows),
        effect="removed",
    )


LOCAL_TOOLS = (get_node, get_edge, query_local)
REMOTE_TOOLS = (
    *(search_entities, get_entity_info, get_property_info, sparql_query, explore_entity_neighbors),
    build_local_graph,
)
UPDATE_TOOLS = (
    fetch_node,
    fetch_relationship_from_node,
    fetch_relationship_to_node,
    remove_node,
    remove_edge,
)
