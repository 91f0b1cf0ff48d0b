#!/usr/bin/env bash
# networkx GraphML of an rdflib graph: different terms become one node, and triples are gone.
#
# Expected. rdflib.extras turns a graph into a networkx multigraph whose nodes are the RDF terms,
# where the IRI <http://example.org/> and the text "http://example.org/" are two, as are "chat"@fr
# and "chat"@en (RDF 1.1: terms are equal when kind, text, datatype and language are). Writing
# GraphML and reading it back should keep nodes and edges apart, or say that it cannot.
#
# Seen (networkx 3.6.1, rdflib 7.6.0). write_graphml names each node by str(), which for rdflib's
# terms leaves out kind, language and datatype. The file has several nodes with one id, and
# read_graphml merges them without a word: of 7 nodes and 6 edges 4 and 4 are
# left. The same texts stand as ids in node_link_data once it is saved as JSON. Counts, degrees
# and paths computed from the file are of another graph: a talk that mentions an address as text is
# now linked to the thing that has this address as its IRI.
#
#   in memory: 7 nodes, 6 edges; from the file: 4 nodes, 4 edges
#   path from :talk to :cat: in memory no, from the file yes
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -qq --disable-pip-version-check \
    networkx==3.6.1 rdflib==7.6.0

venv/bin/python - <<'PY'
import io
from importlib.metadata import version

import networkx
from rdflib import Graph, URIRef
from rdflib.extras.external_graph_libs import rdflib_to_networkx_multidigraph

print("networkx", version("networkx"), "rdflib", version("rdflib"))
graph = Graph().parse(
    format="turtle",
    data="""@prefix : <http://example.org/> .
    :cat :name "chat"@fr , "chat"@en , "chat" .
    :talk :name "chat"@en .
    :talk :text "http://example.org/cat" .
    <http://example.org/cat> :size 1 .""",
)
before = rdflib_to_networkx_multidigraph(graph)
file = io.BytesIO()
networkx.write_graphml(before, file)
after = networkx.read_graphml(io.BytesIO(file.getvalue()), force_multigraph=True)
ids = [node["id"] for node in networkx.node_link_data(before)["nodes"]]
sizes = [(g.number_of_nodes(), g.number_of_edges()) for g in (before, after)]
cat, talk = (URIRef(f"http://example.org/{name}") for name in ("cat", "talk"))
linked = (networkx.has_path(before, talk, cat), networkx.has_path(after, str(talk), str(cat)))
print("triples", len(graph), "| in memory (nodes, edges)", sizes[0], "| from the file", sizes[1])
print("a path from talk to cat: in memory", linked[0], "| from the file", linked[1])
print("node_link_data:", len(ids), "nodes,", len({str(i) for i in ids}), "different ids as text")
if (sizes, linked) != ([(7, 6), (4, 4)], (False, True)):
    raise SystemExit("the behaviour has changed")
PY
