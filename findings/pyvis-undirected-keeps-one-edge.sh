#!/usr/bin/env bash
# pyvis: a directed networkx graph in a Network left undirected loses edges, labels and all.
#
# Expected. Network.from_nx says that it translates the networkx graph that it is given. The
# nodes and edges of a DiGraph or MultiDiGraph are all in the picture; a Network that is not
# directed draws them without arrows. vis-network draws any number of edges between two nodes.
#
# Seen (pyvis 0.3.2, networkx 3.6.1). A Network is undirected unless told otherwise, and then
# add_edge drops an edge whose two nodes have one already, in either direction, whatever its
# label. Of five relations two are drawn: that Rome is the capital of Italy stays, that Italy
# contains Rome and that Rome is its largest city are gone. Nothing is returned or logged.
# With directed=True all five are there.
#
#   networkx 5 edges; Network() 2: capitalOf, borders; Network(directed=True) 5
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -qq --disable-pip-version-check \
    pyvis==0.3.2 networkx==3.6.1

venv/bin/python - <<'PY'
from importlib.metadata import version

import networkx
from pyvis.network import Network

print("pyvis", version("pyvis"), "networkx", version("networkx"))
graph = networkx.MultiDiGraph()
for subject, relation, thing in (
    ("Rome", "capitalOf", "Italy"),
    ("Rome", "largestCityOf", "Italy"),
    ("Italy", "contains", "Rome"),
    ("Italy", "borders", "France"),
    ("France", "importsFrom", "Italy"),
):
    graph.add_edge(subject, thing, label=relation)


def drawn(network: Network) -> list[str]:
    network.from_nx(graph)
    return [edge["label"] for edge in network.get_edges()]


undirected, directed = drawn(Network()), drawn(Network(directed=True))
print("networkx:", graph.number_of_edges(), "edges")
print("Network():", *undirected)
print("Network(directed=True):", *directed)
if (undirected, len(directed)) != (["capitalOf", "borders"], 5):
    raise SystemExit("the behaviour has changed")
PY
