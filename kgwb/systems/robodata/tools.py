"""The tools of the states LOCAL, REMOTE and UPDATE. Each use of a tool is a step.

Parameters before the ``*`` are given by the model. Nodes, entities and predicates are given by the
ids that results and the local graph show. A tool returns what is to be added to the local graph or
removed from it; the agent "local_graph" does that after all tools of a turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial, wraps
from itertools import chain, groupby, zip_longest

import rdflib
from pydantic import StrictInt
from rdflib import URIRef
from rdflib.namespace import RDFS

from kgwb.build import (
    UNLIMITED,
    AgentKind,
    Graph,
    GraphError,
    GraphUnreachableError,
    JsonObject,
    NotRecordedError,
    RecordedGraph,
    Run,
    Term,
    Tool,
    Triple,
    add_missing_prefixes,
    describe_vertices,
    execute_sparql,
    find_triples,
    get_names_in_rows,
    n3,
    open_kg,
    quote_text,
    to_data,
    tool_from_function,
    validate_query,
)
from kgwb.systems.robodata.records import TRIPLE_COLUMNS, LocalGraph, Observed
from kgwb.systems.robodata.settings import RoboDataSettings

MAX_ARGUMENT_CHARS = 120
"""Characters of an argument in the text of a tool use."""
MAX_ERROR_CHARS = 300


def graph_tool(kind: AgentKind = "sparql") -> Callable[[Callable[..., Observed]], type[Tool]]:
    """Return a decorator that makes a tool of a function that returns an Observed.

    The tool adds the text of the use and the names of IRIs to the result. An error of the graph,
    such as that of an invalid query, becomes a result with the error's text, so that the model can
    react to it. Only GraphUnreachableError ends the run.
    """

    def decorate(function: Callable[..., Observed]) -> type[Tool]:
        """Return the tool with the name, the arguments and the docstring of the function."""

        @wraps(function)
        def use(*, local: LocalGraph, run: Run, **arguments: str | list[str]) -> Observed:
            """Call the function, and return its result or error with the text of the use and the names of IRIs."""
            is_short = RoboDataSettings.of_run(run).shortens_uses
            max_chars = MAX_ARGUMENT_CHARS if is_short else UNLIMITED
            texts = []
            for argument in arguments.values():
                text = str(argument)
                if isinstance(argument, list):
                    text = ", ".join(argument)
                texts.append(quote_text(text, max_chars))
            use_text = f"{function.__name__}({', '.join(texts)})"
            try:
                observed = function(**arguments, local=local, run=run)
            except GraphUnreachableError:
                raise
            except (GraphError, NotRecordedError) as error:
                message = _record_error(error, use_text, arguments, local, run)
                return Observed(error=message, use=use_text)
            names = get_names_in_rows(observed.rows, run.kg)
            return replace(observed, use=use_text, names=tuple(names.items()))

        return tool_from_function(use, kind=kind)

    return decorate


def _record_error(
    error: GraphError | NotRecordedError,
    use_text: str,
    arguments: Mapping[str, str | list[str]],
    local: LocalGraph,
    run: Run,
) -> str:
    """Record the text of an error as a call "robodata.error", and return the text.

    A failed call of the graph is not recorded, so a replay gets NotRecordedError in its place; the
    text is then taken from the record. Raises NotRecordedError if it is not there either.
    """
    local_data = to_data(local)
    for name in ("doubt", "read_names"):  # which recorded requests do not have
        del local_data[name]
    request: JsonObject = {"graph": run.kg.identity, "use": use_text, "local": local_data}
    whole_request = request
    if "…" in use_text:
        # The text cuts an argument: two long queries that begin alike are two calls.
        whole_request = {**request, "arguments": dict(arguments)}
    make = None
    if isinstance(error, GraphError):
        make = partial(quote_text, error.message, MAX_ERROR_CHARS)
    try:
        return run.call("robodata.error", whole_request, make, str)
    except NotRecordedError:
        # Runs that were saved before have only the text of the use.
        return run.call("robodata.error", request, None, str)


def query_graph(kg: Graph, sparql: str, local: LocalGraph, run: Run) -> Observed:
    """Execute a query, and return its first rows or triples, or the truth value as a row.

    As many are returned as the setting ``query_rows`` says. Prefixes of the local graph's IDs need
    not be declared. The result also has the number of all rows, and whether these are complete,
    which is not known of triples. Raises GraphError.
    """
    limit = RoboDataSettings.of_run(run).query_rows
    query = add_missing_prefixes(sparql, local.id_mapping.namespaces)
    if validate_query(query).form in ("construct", "describe"):
        triples = kg.construct(query)
        return Observed(TRIPLE_COLUMNS, triples[:limit], len(triples), whole=False)
    result = execute_sparql(kg, query)
    if isinstance(result, bool):
        truth = rdflib.Literal(result)
        return Observed(("truth",), ((truth,),), 1)
    return Observed(result.variables, result.rows[:limit], len(result.rows), not result.cut)


def group_by_predicate(triples: Iterable[Triple]) -> list[list[Triple]]:
    """Return the distinct triples in a list for each predicate, in the order of the predicates."""
    ordered = sorted(dict.fromkeys(triples), key=lambda triple: triple[1])
    return [list(group) for _, group in groupby(ordered, lambda triple: triple[1])]


def sample_triples(triples: Iterable[Triple], limit: int, is_complete: bool = True) -> Observed:
    """Return at most ``limit`` of the triples, with as many predicates as possible, sorted by predicate.

    The predicates take turns in giving a triple until there are ``limit``, which is at least 1. The
    result has the number of all. ``is_complete`` says whether the triples are all that the graph
    has.
    """
    by_predicate = group_by_predicate(triples)
    turns = chain.from_iterable(zip_longest(*by_predicate))
    in_turn = list(filter(None, turns))
    sample = sorted(in_turn[:limit], key=lambda triple: (triple[1], str(triple)))
    return Observed(TRIPLE_COLUMNS, tuple(sample), len(in_turn), is_complete)


DEFAULT_PROPERTY_TRIPLES = 5
"""Triples that ``get_property_info`` shows."""
MAX_READ_TRIPLES = 1_000
"""Triples that are read to be counted and sampled."""
MAX_HOPS = 2
"""Steps of ``build_local_graph`` (reference code)."""
MAX_NODES = 100
"""Triples that ``build_local_graph`` adds, and nodes from which its second step goes on.

They are more with a larger setting ``shown_triples``.
"""
SUBCLASS_PREDICATES = (RDFS.subClassOf, URIRef("http://www.wikidata.org/prop/direct/P279"))


def add_details(id_: str, observed: Observed, local: LocalGraph, run: Run) -> Observed:
    """Return a result of triples with the names and descriptions of what it is about before them.

    They are read from the remote graph, in all languages: first MAX_READ_TRIPLES, and if there are
    more, as many as a use may show. Only the setting ``details`` "described" adds them.
    """
    settings = RoboDataSettings.of_run(run)
    if settings.details != "described":
        return observed
    vocabulary = run.kg.vocabulary
    predicates = [*vocabulary.labels, *vocabulary.descriptions]
    iri = local.id_mapping.parse_id(id_)
    described, has_all = find_triples(run.kg, [iri], predicates, (), MAX_READ_TRIPLES)
    if not has_all:
        most = settings.shown_triples
        described, has_all = find_triples(run.kg, [iri], predicates, (), most)
    rows: list[tuple[Term | None, ...]] = list(described)
    if len(observed.columns) > len(TRIPLE_COLUMNS):  # the last one counts triples
        rows = []
        for triple in described:
            rows.append((*triple, rdflib.Literal(1)))
    rows += observed.rows
    found = observed.found + len(described)
    return replace(observed, rows=tuple(rows), found=found, whole=observed.whole and has_all)


# LOCAL


@graph_tool("code")
def get_node(node: str, *, local: LocalGraph, run: Run) -> Observed:
    """Return the triples of the local graph at one of its nodes, or none if it has no such node.

    Both directions count. The triples are a sample of at most the setting ``shown_triples``, see
    ``sample_triples``.
    """
    nodes = [term for (term,) in local.find_elements([node])]
    triples = []
    for triple in local.support:
        subject, _, object_ = triple
        if subject in nodes or object_ in nodes:
            triples.append(triple)
    limit = RoboDataSettings.of_run(run).shown_triples
    sample = sample_triples(triples, limit)
    if not nodes:
        return sample
    return add_details(node, sample, local, run)


@graph_tool("code")
def get_edge(predicate: str, *, local: LocalGraph, run: Run) -> Observed:
    """Return the triples of the local graph with a predicate.

    The triples are a sample of at most the setting ``shown_triples``, see ``sample_triples``.
    """
    iri = local.id_mapping.parse_id(predicate)
    triples = [triple for triple in local.support if triple[1] == iri]
    limit = RoboDataSettings.of_run(run).shown_triples
    sample = sample_triples(triples, limit)
    if not triples:
        return sample
    return add_details(predicate, sample, local, run)


@graph_tool()
def query_local(sparql: str, *, local: LocalGraph, run: Run) -> Observed:
    """Run a SPARQL query on the local graph, and return its first rows.

    Names of the local graph's IDs may be used as prefixes. The paper has Cypher in place of SPARQL.
    """
    graph = rdflib.Graph()
    for triple in local.support:
        graph.add(triple)
    return query_graph(RecordedGraph(open_kg(graph), run.call), sparql, local, run)


# REMOTE


@graph_tool("search")
def search_entities(name: str, *, local: LocalGraph, run: Run) -> Observed:
    """Search entities by a name, and return the best with their types and descriptions.

    As many as the setting ``search_hits`` are returned. They are counted up to ``v_limit``.
    """
    settings = RoboDataSettings.of_run(run)
    hits = run.kg.search(name, settings.v_limit).hits
    iris = [hit.iri for hit in hits[: settings.search_hits]]
    rows = []
    for iri, described in describe_vertices(run.kg, iris).items():
        types = rdflib.Literal(", ".join(described.types))
        description = rdflib.Literal(described.description)
        rows.append((iri, types, description))
    columns = ("entity", "types", "description")
    return Observed(columns, tuple(rows), len(hits))


@graph_tool()
def get_entity_info(entity: str, *, local: LocalGraph, run: Run) -> Observed:
    """Return one triple for each predicate and direction at an entity, and how many there are.

    Outgoing triples come first. At most MAX_READ_TRIPLES of each direction are counted, and as many
    rows returned as the setting ``shown_triples``. Labels, descriptions and noise count only with
    the setting ``details`` "described".
    """
    iri = local.id_mapping.parse_id(entity)
    settings = RoboDataSettings.of_run(run)
    noise = settings.details == "described"
    outgoing, incoming, is_complete = _find_adjacent_triples(iri, [], run, noise=noise)
    groups = (*group_by_predicate(outgoing), *group_by_predicate(incoming))
    rows = []
    for group in groups:
        number = rdflib.Literal(len(group))
        rows.append((*group[0], number))
    columns = (*TRIPLE_COLUMNS, "triples like it")
    observed = Observed(columns, tuple(rows[: settings.shown_triples]), len(rows), is_complete)
    return add_details(entity, observed, local, run)


def _find_adjacent_triples(
    iri: URIRef, predicates: list[URIRef], run: Run, *, noise: bool = False
) -> tuple[list[Triple], list[Triple], bool]:
    """Return the triples that leave a vertex, those that lead to it, and whether these are all.

    ``predicates`` are the predicates to follow; if empty, all are, but without ``noise`` not those
    of labels, descriptions and noise. At most MAX_READ_TRIPLES of each direction are read, with a
    query each, or as many as a use may show.
    """
    limit = max(MAX_READ_TRIPLES, RoboDataSettings.of_run(run).shown_triples)
    outgoing, has_all_outgoing = find_triples(run.kg, [iri], predicates, (), limit, noise=noise)
    incoming, has_all_incoming = find_triples(run.kg, (), predicates, [iri], limit, noise=noise)
    return outgoing, incoming, has_all_outgoing and has_all_incoming


@graph_tool()
def get_property_info(property: str, *, local: LocalGraph, run: Run) -> Observed:
    """Return some triples with a property, and how many there are.

    At most DEFAULT_PROPERTY_TRIPLES are returned, as a sample of those read. They are counted up to
    MAX_READ_TRIPLES. With the setting ``details`` "described" all that are read are returned, and
    before them what the graph says of the property itself, such as its domain.
    """
    settings = RoboDataSettings.of_run(run)
    iri = local.id_mapping.parse_id(property)
    triples, is_complete = find_triples(run.kg, (), [iri], (), MAX_READ_TRIPLES)
    if settings.details != "described":
        return sample_triples(triples, DEFAULT_PROPERTY_TRIPLES, is_complete)
    outgoing, incoming, _ = _find_adjacent_triples(iri, [], run)
    sample = sample_triples([*outgoing, *incoming, *triples], settings.shown_triples, is_complete)
    return add_details(property, sample, local, run)


@graph_tool()
def sparql_query(sparql: str, *, local: LocalGraph, run: Run) -> Observed:
    """Run a SPARQL query on the remote graph, and return its first rows."""
    return query_graph(run.kg, sparql, local, run)


@graph_tool()
def explore_entity_neighbors(
    entity: str, predicate: str, limit: StrictInt, *, local: LocalGraph, run: Run
) -> Observed:
    """Return triples that leave an entity or lead to it, with one predicate or with any.

    ``predicate`` is empty for any predicate. A ``limit`` below 1 stands for the setting
    ``default_neighbours``; if that is UNLIMITED, so does any limit. At most as many triples are
    returned as ``shown_triples``.
    """
    iri = local.id_mapping.parse_id(entity)
    predicates = []
    if predicate.strip():
        predicates.append(local.id_mapping.parse_id(predicate))
    outgoing, incoming, is_complete = _find_adjacent_triples(iri, predicates, run)
    settings = RoboDataSettings.of_run(run)
    wanted = settings.default_neighbours
    if limit > 0 and wanted != UNLIMITED:
        wanted = limit
    shown = min(wanted, settings.shown_triples)
    return sample_triples([*outgoing, *incoming], shown, is_complete)


@graph_tool()
def build_local_graph(
    entity: str, predicates: list[str], *, local: LocalGraph, run: Run
) -> Observed:
    """Find the triples that lead away from an entity in two steps, to be added.

    There are MAX_HOPS steps. ``predicates`` are followed, or without any, types and superclasses.
    The second step goes on from IRIs alone. MAX_NODES limits both. The published code only shows
    the triples.
    """
    parse_id = local.id_mapping.parse_id
    followed = list(map(parse_id, predicates))
    if not followed:
        followed = [*run.kg.vocabulary.types, *SUBCLASS_PREDICATES]
    heads = [parse_id(entity)]
    limit = max(MAX_NODES, RoboDataSettings.of_run(run).shown_triples)
    max_read = max(limit, MAX_READ_TRIPLES)
    added: dict[Triple, None] = {}
    is_complete = True
    for _ in range(MAX_HOPS):
        if heads:  # find_triples would take no subjects for any subject
            triples, has_all = find_triples(run.kg, heads, followed, (), max_read)
            added.update(dict.fromkeys(triples))
            is_complete = is_complete and has_all
            objects = dict.fromkeys(triple[2] for triple in triples)
            heads = [term for term in objects if isinstance(term, URIRef)][:limit]
    return Observed(TRIPLE_COLUMNS, tuple(added)[:limit], len(added), is_complete, "added")


# UPDATE


@graph_tool()
def fetch_node(node: str, *, local: LocalGraph, run: Run) -> Observed:
    """Find a node in the remote graph, to be added to the local graph without its triples.

    There is no row if the remote graph has no triple with it as subject or object.
    """
    iri = local.id_mapping.parse_id(node)
    term = n3(iri)
    rows: tuple[tuple[Term], ...] = ()
    if run.kg.ask(f"ASK {{ {{ {term} ?p ?o }} UNION {{ ?s ?p {term} }} }}"):
        rows = ((iri,),)
    return Observed(("node",), rows, len(rows), effect="added")


@graph_tool()
def fetch_relationship_from_node(
    nodes: list[str], predicate: str, others: list[str], *, local: LocalGraph, run: Run
) -> Observed:
    """Fetch triples that lead away from nodes to any object, or to some others, to be added."""
    return _fetch_triples(nodes, predicate, others, len(set(nodes)), local, run)


@graph_tool()
def fetch_relationship_to_node(
    nodes: list[str], predicate: str, others: list[str], *, local: LocalGraph, run: Run
) -> Observed:
    """Fetch triples that lead to nodes from any subject, or from some others, to be added."""
    return _fetch_triples(others, predicate, nodes, len(set(nodes)), local, run)


def _fetch_triples(
    subject_ids: list[str],
    predicate_id: str,
    object_ids: list[str],
    node_count: int,
    local: LocalGraph,
    run: Run,
) -> Observed:
    """Read the triples with one of the subjects, the predicate and one of the objects, to be added.

    An empty list stands for any subject or object. At most ``fetched_per_node`` for each of the
    ``node_count`` nodes and ``fetched_per_use`` in all are returned, and none if there is no node.
    The result says how many were found, up to MAX_READ_TRIPLES or this limit.
    """
    settings = RoboDataSettings.of_run(run)
    parse_id = local.id_mapping.parse_id
    predicates = [parse_id(predicate_id)]
    if not node_count:
        return Observed(TRIPLE_COLUMNS, effect="added")
    subjects = list(map(parse_id, subject_ids))
    objects = list(map(parse_id, object_ids))
    limit = min(settings.fetched_per_node * node_count, settings.fetched_per_use)
    max_read = max(limit, MAX_READ_TRIPLES)
    triples, is_complete = find_triples(run.kg, subjects, predicates, objects, max_read)
    return Observed(TRIPLE_COLUMNS, tuple(triples[:limit]), len(triples), is_complete, "added")


@graph_tool("code")
def remove_node(node: str, *, local: LocalGraph, run: Run) -> Observed:
    """Find a node of the local graph, to be removed with all triples at it."""
    return _make_removal(("node",), local.find_elements([node]))


@graph_tool("code")
def remove_edge(
    subject: str, predicate: str, object: str, *, local: LocalGraph, run: Run
) -> Observed:
    """Find a triple of the local graph, to be removed."""
    return _make_removal(TRIPLE_COLUMNS, local.find_elements([subject, predicate, object]))


def _make_removal(columns: tuple[str, ...], elements: tuple[tuple[Term, ...], ...]) -> Observed:
    """Return the elements as a result whose effect is that they are removed from the local graph."""
    return Observed(columns, elements, len(elements), effect="removed")


LOCAL_TOOLS = (get_node, get_edge, query_local)
REMOTE_TOOLS = (
    search_entities,
    get_entity_info,
    get_property_info,
    sparql_query,
    explore_entity_neighbors,
    build_local_graph,
)
FETCHING_TOOLS = (fetch_node, fetch_relationship_from_node, fetch_relationship_to_node)
UPDATE_TOOLS = (*FETCHING_TOOLS, remove_node, remove_edge)
