#!/usr/bin/env bash
# kglab: in the igraph graph the edges lie between other things than in the RDF graph.
#
# Expected. SubgraphMatrix.build_ig_graph is to populate an igraph graph by the subgraph's own
# numbering of the nodes ("using transforms in this subgraph"), as build_nx_graph does for networkx.
# So the names at the ends of an edge are those of one row of the query.
#
# Seen (kglab 1.0.1, igraph 1.0.0, rdflib 7.6.0). The vertices get their names from a sorted list of
# all nodes, the edges their numbers from the order in which the rows came. The two agree only by
# luck. There is no error, and the number of vertices and edges is right; degrees, paths and
# communities are told for the wrong things. build_nx_graph of the same object is right.
#
#   SELECT ?subject ?object { ?subject :capitalOf ?object }
#     networkx   Rome -> Italy, Berlin -> Germany, Oslo -> Norway
#     igraph     Berlin -> Germany, Italy -> Norway, Oslo -> Rome
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
# kglab asks for JupyterLab and much more; this is what importing it takes.
venv/bin/pip install -qq --disable-pip-version-check \
    igraph==1.0.0 networkx==3.6.1 rdflib==7.6.0 pandas scipy owlrl pyshacl \
    pyvis csvwlib chocolate apeye icecream tqdm cryptography nvidia-ml-py python-dateutil requests
venv/bin/pip install -qq --disable-pip-version-check --no-deps kglab==1.0.1

venv/bin/python - <<'PY'
from importlib.metadata import version

import igraph
import kglab
import networkx

print(*(f"{name} {version(name)}" for name in ("kglab", "igraph", "networkx", "rdflib")))
NAMESPACE = "http://example.org/"
DATA = """@prefix : <http://example.org/> .
:Rome :capitalOf :Italy . :Berlin :capitalOf :Germany . :Oslo :capitalOf :Norway ."""
QUERY = "SELECT ?subject ?object { ?subject <http://example.org/capitalOf> ?object }"
graph = kglab.KnowledgeGraph(namespaces={"": NAMESPACE}).load_rdf_text(DATA)
part = kglab.SubgraphMatrix(graph, QUERY)
drawn = part.build_nx_graph(networkx.DiGraph())
labels = drawn.nodes(data="label")
in_networkx = sorted(
    f"{labels[start].strip(':')} -> {labels[end].strip(':')}" for start, end in drawn.edges
)
counted = part.build_ig_graph(igraph.Graph(directed=True))
names = [name.removeprefix(NAMESPACE) for name in counted.vs["name"]]
in_igraph = sorted(f"{names[edge.source]} -> {names[edge.target]}" for edge in counted.es)
print("networkx", *in_networkx, sep="\n  ")
print("igraph", *in_igraph, sep="\n  ")
if (in_networkx, in_igraph) != (
    ["Berlin -> Germany", "Oslo -> Norway", "Rome -> Italy"],
    ["Berlin -> Germany", "Italy -> Norway", "Oslo -> Rome"],
):
    raise SystemExit("the behaviour has changed")
PY
