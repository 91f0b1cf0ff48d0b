"""The triples of an answer for other programs: as a networkx graph, JSON, GraphML and Cypher."""

from __future__ import annotations

import json
from collections.abc import Mapping

import networkx as nx
from rdflib import Literal, URIRef

from kgwb.flow import Answer
from kgwb.terms import Term, name_from_iri, term_to_data
from kgwb.text import remove_controls


def to_networkx(answer: Answer) -> nx.MultiDiGraph[str]:
    """Vertices and literals as nodes with id, type and label, triples as edges with id and label."""
    graph: nx.MultiDiGraph[str] = nx.MultiDiGraph()
    names: Mapping[Term, str] = dict(answer.names) | {
        value.term: value.label for value in answer.values
    }

    def node(term: Term) -> str:
        key = json.dumps(term_to_data(term))
        label = names.get(term) or (name_from_iri(term) if isinstance(term, URIRef) else str(term))
        kind = "literal" if isinstance(term, Literal) else "entity"
        graph.add_node(key, id=remove_controls(term), type=kind, label=remove_controls(label))
        return key

    for term in (term for value in answer.values for term in value.terms):
        node(term)
    for subject, predicate, object_ in answer.support:
        label = remove_controls(names.get(predicate) or name_from_iri(predicate))
        graph.add_edge(node(subject), node(object_), id=remove_controls(predicate), label=label)
    return graph


def to_json(answer: Answer) -> str:
    """networkx's node-link form: lists of nodes and edges."""
    return json.dumps(nx.node_link_data(to_networkx(answer), edges="edges"), ensure_ascii=False)


def to_graphml(answer: Answer) -> str:
    """GraphML, as networkx, Gephi and yEd read it."""
    return "\n".join(nx.generate_graphml(to_networkx(answer)))


def to_cypher(answer: Answer) -> str:
    """One CREATE statement for Neo4j and its like, every text of the graph in a string; empty of nothing."""
    graph = to_networkx(answer)
    names = {key: f"n{place}" for place, key in enumerate(graph)}

    def written(data: Mapping[str, str]) -> str:
        return f"{{id: {json.dumps(data['id'])}, label: {json.dumps(data['label'])}}}"

    parts = [
        f"({names[key]}:{data['type'].title()} {written(data)})"
        for key, data in graph.nodes.items()
    ]
    for start, end, data in graph.edges(data=True):
        parts.append(f"({names[start]})-[:RELATION {written(data)}]->({names[end]})")
    return "CREATE " + ",\n  ".join(parts) + ";\n" if parts else ""
