#!/usr/bin/env bash
# rdflib: with a SPARQLStore, what is bound at the start is compared at the end.
#
# Expected. Graph.query has initBindings, "initial variable bindings to use. A type of 'prepared
# queries' can be realized by providing these bindings". One query with one binding has the same
# answer whether the graph is in memory or, with SPARQLStore, behind an endpoint with the same
# triples.
#
# Seen (rdflib 7.6.0; the endpoint is pyoxigraph 0.5.13). SPARQLStore writes the bindings as a
# VALUES clause behind the query. By SPARQL (18.2.4.3) it is joined with the solutions of the WHERE
# clause, after grouping; so a variable that is not among them, as in an aggregate or only in a
# FILTER, has no value where it is used. A count for one city counts all, a comparison finds
# nothing, and an EXISTS looks for any city at all. In memory the value is there from the start. No
# error is reported; a variable that is projected or is in a triple of the outermost pattern is
# right in both.
#
#   query, bound to one city                                       in memory  SPARQLStore
#   SELECT (COUNT(*) AS ?c) { ?city :district ?d }, ?city          1          3
#   SELECT ?d { ?x :district ?d FILTER(?x = ?city) }, ?city        1 row      0 rows
#   SELECT ?d { ?x :size ?d FILTER(?d > ?least) }, ?least 5        1 row      0 rows
#   ASK { FILTER EXISTS { ?city :mayor ?m } }, ?city without       false      true
#   SELECT ?d { ?city :district ?d }, ?city                        1 row      1 row
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -qq --disable-pip-version-check \
    rdflib==7.6.0 pyoxigraph==0.5.13

venv/bin/python - <<'PY'
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import version
from urllib.parse import parse_qs, urlsplit

import pyoxigraph as ox
from rdflib import Graph, Literal, URIRef
from rdflib.plugins.stores.sparqlstore import SPARQLStore

print("rdflib", version("rdflib"), "pyoxigraph", version("pyoxigraph"))
EX = "http://example.org/"
DATA = f"""@prefix : <{EX}> .
:Rome :district :a, :b ; :mayor :m ; :size 9 . :Oslo :district :c ; :size 4 ."""
local = Graph().parse(data=DATA, format="turtle")
store = ox.Store()
store.load(DATA.encode(), format=ox.RdfFormat.TURTLE)


class Endpoint(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_GET(self):
        query = parse_qs(urlsplit(self.path).query)["query"][0]
        body = store.query(query).serialize(format=ox.QueryResultsFormat.JSON)
        self.send_response(200)
        self.send_header("Content-Type", "application/sparql-results+json")
        self.end_headers()
        self.wfile.write(body)


server = ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
threading.Thread(target=server.serve_forever, daemon=True).start()
remote = Graph(SPARQLStore(f"http://127.0.0.1:{server.server_port}/sparql", returnFormat="json"))
OSLO = {"city": URIRef(EX + "Oslo")}
CASES = [
    ("SELECT (COUNT(*) AS ?c) { ?city :district ?d }", OSLO),
    ("SELECT ?d { ?x :district ?d FILTER(?x = ?city) }", OSLO),
    ("SELECT ?d { ?x :size ?d FILTER(?d > ?least) }", {"least": Literal(5)}),
    ("ASK { FILTER EXISTS { ?city :mayor ?m } }", OSLO),
    ("SELECT ?d { ?city :district ?d }", OSLO),
]


def ask(graph: Graph, query: str, bindings: dict) -> bool | list[str]:
    result = graph.query(f"PREFIX : <{EX}> {query}", initBindings=bindings)
    return bool(result) if result.type == "ASK" else [str(row[0]).replace(EX, "") for row in result]


seen = []
for query, bindings in CASES:
    seen.append((ask(local, query, bindings), ask(remote, query, bindings)))
    print(query, "in memory", seen[-1][0], "SPARQLStore", seen[-1][1])
if seen != [(["1"], ["3"]), (["c"], []), (["9"], []), (False, True), (["c"], ["c"])]:
    raise SystemExit("the behaviour has changed")
PY
