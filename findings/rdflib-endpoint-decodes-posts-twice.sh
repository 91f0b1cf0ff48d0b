#!/usr/bin/env bash
# rdflib-endpoint: a query that is posted as a form is decoded twice, so IRIs with % are not found.
#
# Expected. SPARQL 1.1 Protocol, 2.1: a query may come by GET, by POST as a form, or by POST as it is; it
# is the same query each time. A form is decoded once. "%C3%A3" in an IRI belongs to the IRI (RDF 1.1
# Concepts, 3.2: IRIs are equal only when they are the same characters).
#
# Seen (rdflib-endpoint 0.6.3, rdflib 7.6.0, SPARQLWrapper 2.0.0). The form is decoded when it is taken
# apart, and its query is decoded again. The IRI <.../S%C3%A3o_Paulo> becomes <.../São_Paulo>, the text
# "100%25" becomes "100%". The status is 200, with no rows. So an answer depends on the client's
# method: SPARQLWrapper finds the city by GET and, with setMethod(POST), which long queries need, it
# does not.
#
#   SELECT ?n { <http://example.org/S%C3%A3o_Paulo> :name ?n }    GET          "São Paulo"
#                                                                 POST, form   none
#                                                                 POST, as is  "São Paulo"
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
from SPARQLWrapper import GET, JSON, POST, POSTDIRECTLY, URLENCODED, SPARQLWrapper

print(*(f"{name} {version(name)}" for name in ("rdflib-endpoint", "rdflib", "SPARQLWrapper")))
dataset = Dataset(default_union=True)
dataset.parse(
    data='<http://example.org/S%C3%A3o_Paulo> <http://example.org/name> "S\u00e3o Paulo" .',
    format="turtle",
)
QUERY = "SELECT ?n { <http://example.org/S%C3%A3o_Paulo> <http://example.org/name> ?n }"
server = uvicorn.Server(
    uvicorn.Config(SparqlEndpoint(graph=dataset), host="127.0.0.1", port=0, log_level="error")
)
threading.Thread(target=server.run, daemon=True).start()
while not server.started:
    time.sleep(0.1)
port = server.servers[0].sockets[0].getsockname()[1]
seen = {}
for name, method, form in (
    ("GET", GET, URLENCODED),
    ("POST, form", POST, URLENCODED),
    ("POST, as is", POST, POSTDIRECTLY),
):
    client = SPARQLWrapper(f"http://127.0.0.1:{port}/", returnFormat=JSON)
    client.setMethod(method)
    client.setRequestMethod(form)
    client.setQuery(QUERY)
    rows = client.queryAndConvert()["results"]["bindings"]
    seen[name] = [row["n"]["value"] for row in rows]
    print(f"{name:12}", seen[name])
server.should_exit = True
if seen != {"GET": ["S\u00e3o Paulo"], "POST, form": [], "POST, as is": ["S\u00e3o Paulo"]}:
    raise SystemExit("the behaviour has changed")
PY
