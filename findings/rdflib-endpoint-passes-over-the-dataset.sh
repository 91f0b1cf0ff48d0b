#!/usr/bin/env bash
# rdflib-endpoint: the graphs that a request names are passed over, and the answer is of all graphs.
#
# Expected. SPARQL 1.1 Protocol, 2.1.4: default-graph-uri and named-graph-uri of a request say which
# graphs a query is asked of, in place of FROM in the text; when both are there, those of the request
# count. For graphs that a service will not take, an error.
#
# Seen (rdflib-endpoint 0.6.3, rdflib 7.6.0, SPARQLWrapper 2.0.0). The parameters are not read. What
# SPARQLWrapper's addDefaultGraph and addNamedGraph name makes no difference: status 200, and rows of
# graphs that were not asked, such as old versions beside the new one. FROM in the text is obeyed, so
# that one question has two answers by the way in which its graph is named.
#
#   :y2020 { :Rome :population 2783809 }  :y1900 { :Rome :population 422411 }
#     FROM :y2020, in the text                 2783809
#     addDefaultGraph(:y2020)                  422411 2783809
#     addNamedGraph(:y2020), with GRAPH ?g     422411 2783809
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -qq --disable-pip-version-check \
    rdflib-endpoint==0.6.3 rdflib==7.6.0 SPARQLWrapper==2.0.0 fastapi==0.165.0 uvicorn

venv/bin/python - <<'PY'
import threading
import time
from importlib.metadata import version

import uvicorn
from rdflib import Dataset
from rdflib_endpoint import SparqlEndpoint
from SPARQLWrapper import JSON, SPARQLWrapper

print(*(f"{name} {version(name)}" for name in ("rdflib-endpoint", "rdflib", "SPARQLWrapper")))
NAMESPACE = "http://example.org/"
PREFIX = f"PREFIX : <{NAMESPACE}> "
DATA = PREFIX + ":y2020 { :Rome :population 2783809 } :y1900 { :Rome :population 422411 }"
dataset = Dataset(default_union=True).parse(data=DATA, format="trig")
server = uvicorn.Server(
    uvicorn.Config(SparqlEndpoint(graph=dataset), host="127.0.0.1", port=0, log_level="error")
)
threading.Thread(target=server.run, daemon=True).start()
while not server.started:
    time.sleep(0.1)
port = server.servers[0].sockets[0].getsockname()[1]


def populations(query: str, default: str = "", named: str = "") -> list[int]:
    client = SPARQLWrapper(f"http://127.0.0.1:{port}/", returnFormat=JSON)
    if default:
        client.addDefaultGraph(NAMESPACE + default)
    if named:
        client.addNamedGraph(NAMESPACE + named)
    client.setQuery(PREFIX + query)
    rows = client.queryAndConvert()["results"]["bindings"]
    return sorted(int(row["n"]["value"]) for row in rows)


seen = {
    "FROM": populations("SELECT ?n FROM :y2020 { :Rome :population ?n }"),
    "addDefaultGraph": populations("SELECT ?n { :Rome :population ?n }", default="y2020"),
    "addNamedGraph": populations("SELECT ?n { GRAPH ?g { :Rome :population ?n } }", named="y2020"),
}
server.should_exit = True
for name, found in seen.items():
    print(name.ljust(16), *found)
if seen != {
    "FROM": [2783809],
    "addDefaultGraph": [422411, 2783809],
    "addNamedGraph": [422411, 2783809],
}:
    raise SystemExit("the behaviour has changed")
PY
