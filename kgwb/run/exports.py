"""The triples of an answer for other programs: as a networkx graph, JSON, GraphML and Cypher."""

from __future__ import annotations

import json
from collections.abc import Mapping

import networkx as nx
from rdflib import Literal, URIRef

from kgwb.run.answers import Answer
from kgwb.terms import Term, name_from_iri, term_to_data
from kgwb.text import remove_controls


def to_networkx(answer: Answer) -> nx.MultiDiGraph[str]:
    """Return the values of an answer and its supporting triples as a networkx graph.

    The nodes are vertices and literals, with the attributes id (the IRI or the lexical form), type
    ("entity" or "literal") and label. Their keys are the JSON forms of the terms. The edges are
    triples, with id (the IRI of the predicate) and label. Control characters are removed. Values
    without a triple are nodes without an edge.
    """
    graph: nx.MultiDiGraph[str] = nx.MultiDiGraph()
    labels: dict[Term, str] = dict(answer.names)
    for value in answer.values:
        if value.term_label:
            labels[value.term] = value.term_label
    for value in answer.values:
        for term in value.terms:
            _add_node(graph, term, labels)
    for subject, predicate, object_ in answer.support:
        start = _add_node(graph, subject, labels)
        end = _add_node(graph, object_, labels)
        graph.add_edge(start, end, **_described(predicate, labels))
    return graph


def _add_node(graph: nx.MultiDiGraph[str], term: Term, labels: Mapping[Term, str]) -> str:
    """Add the node of a term to the graph, unless it is there, and return the node's key."""
    data = term_to_data(term)
    key = json.dumps(data)
    node_type = "entity"
    if isinstance(term, Literal):
        node_type = "literal"
    graph.add_node(key, **_described(term, labels), type=node_type)
    return key


def _described(term: Term, labels: Mapping[Term, str]) -> dict[str, str]:
    """Return id and label of a term; without a label, the name of an IRI, or the text of the term."""
    name: str = term
    if isinstance(term, URIRef):
        name = name_from_iri(term)
    label = labels.get(term) or name
    return {"id": remove_controls(term), "label": remove_controls(label)}


def to_json(answer: Answer) -> str:
    """Return the graph of an answer as lists of nodes and edges: networkx's node-link form."""
    graph = to_networkx(answer)
    data = nx.node_link_data(graph, edges="edges")
    return json.dumps(data, ensure_ascii=False)


def to_graphml(answer: Answer) -> str:
    """Return the graph of an answer as GraphML, which networkx, Gephi and yEd read."""
    graph = to_networkx(answer)
    return "\n".join(nx.generate_graphml(graph))


def to_cypher(answer: Answer) -> str:
    """Return a CREATE statement for Neo4j that makes the graph of an answer: values and support.

    Nodes have the label Entity or Literal, and all edges have the type RELATION. Texts of the graph
    occur only inside of quoted strings, so that they cannot be read as Cypher. Returns "" for an
    answer without values and support.
    """
    graph = to_networkx(answer)
    if not graph:
        return ""
    variables = {key: f"n{number}" for number, key in enumerate(graph)}
    parts = []
    for key, data in graph.nodes.items():
        label = data["type"].title()
        properties = _cypher_properties(data)
        parts.append(f"({variables[key]}:{label} {properties})")
    for start, end, data in graph.edges(data=True):
        relation = f"[:RELATION {_cypher_properties(data)}]"
        parts.append(f"({variables[start]})-{relation}->({variables[end]})")
    created = ",\n  ".join(parts)
    return f"CREATE {created};\n"


def _cypher_properties(data: Mapping[str, str]) -> str:
    """Return id and label of a node or an edge as a map of Cypher."""
    text = json.dumps(data["id"])
    label = json.dumps(data["label"])
    return f"{{id: {text}, label: {label}}}"
