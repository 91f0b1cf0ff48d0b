#!/usr/bin/env bash
# LangChain's RdfGraph on rdflib: every ASK and every CONSTRUCT comes back as an empty list.
#
# Expected. RdfGraph.query (langchain-community) promises to query the graph and names no form of
# query that it does not take; SPARQL has four, of which ASK answers true or false. For a form that
# it cannot handle, an error. GraphSparqlQAChain runs what the model wrote for a question through
# this method, unchecked, and hands the result to the model as the context of its answer.
#
# Seen (langchain-community 0.4.2, rdflib 7.6.0). The method keeps the rows that are instances of
# rdflib's ResultRow. rdflib iterates an ASK as one bool and a CONSTRUCT as plain triples, so
# nothing is left: a true ASK, a false ASK and a graph of results are all [], which in a prompt
# reads as "nothing was found": whether Rome is a capital, the model is told nothing, or no.
#
#   ASK of a fact that holds: rdflib True, RdfGraph.query []
#   CONSTRUCT of one triple: rdflib 1 triple, RdfGraph.query []
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -qq --disable-pip-version-check \
    langchain-community==0.4.2 rdflib==7.6.0

venv/bin/python - <<'PY'
import logging
import pathlib
import warnings
from importlib.metadata import version

warnings.simplefilter("ignore")  # notices of deprecation
logging.disable(logging.WARNING)
from langchain_community.graphs import RdfGraph

print("langchain-community", version("langchain-community"), "rdflib", version("rdflib"))
file = pathlib.Path("capitals.ttl")
file.write_text("@prefix : <http://example.org/> . :Rome a :Capital ; :of :Italy .")
graph = RdfGraph(source_file=str(file), standard="rdf")
PREFIX = "PREFIX : <http://example.org/> "
ASK_TRUE, ASK_FALSE = PREFIX + "ASK { :Rome a :Capital }", PREFIX + "ASK { :Rome a :Village }"
SELECT = PREFIX + "SELECT ?x { ?x a :Capital }"
CONSTRUCT = PREFIX + "CONSTRUCT { ?y :capital ?x } { ?x :of ?y }"
by_rdflib = [bool(graph.graph.query(q)) for q in (ASK_TRUE, ASK_FALSE)]
triples = len(graph.graph.query(CONSTRUCT))
seen = {q: graph.query(q) for q in (SELECT, ASK_TRUE, ASK_FALSE, CONSTRUCT)}
print("rdflib: ASK", by_rdflib, "| CONSTRUCT", triples, "triple")
for query, rows in seen.items():
    print(query.removeprefix(PREFIX), "->", rows)
lost = all(seen[q] == [] for q in (ASK_TRUE, ASK_FALSE, CONSTRUCT))
if (by_rdflib, triples, len(seen[SELECT]), lost) != ([True, False], 1, 1, True):
    raise SystemExit("the behaviour has changed")
PY
