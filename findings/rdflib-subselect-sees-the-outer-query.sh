#!/usr/bin/env bash
# rdflib: a subselect sees the variables of the query around it, so "above the mean" finds nothing.
#
# Expected. SPARQL 1.1, 12 (subqueries): they are evaluated first, on their own; only what they
# project is visible outside, and what is outside is not visible in them. The order of the parts
# of a group does not matter to a join.
#
# Seen (rdflib 7.6.0). A subselect that stands behind a pattern is evaluated once for each solution
# of the pattern, with its bindings put in, also for variables that it does not project. ?n inside
# is then the ?n outside: the mean of all cities is each city's own number. With the subselect in
# front of the pattern the result is right. pyoxigraph 0.5.13 is right both ways.
#
#   cities above the mean, pattern first:   rdflib none,  Oxigraph c
#   cities above the mean, subselect first: rdflib c,     Oxigraph c
#   number of cities, counted next to ?city: rdflib 1, Oxigraph 3
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -qq --disable-pip-version-check \
    rdflib==7.6.0 pyoxigraph==0.5.13

venv/bin/python - <<'PY'
from importlib.metadata import version

import pyoxigraph
from rdflib import Graph

print("rdflib", version("rdflib"), "pyoxigraph", version("pyoxigraph"))
DATA = "@prefix : <http://example.org/> . :a :population 1 . :b :population 2 . :c :population 9 ."
PATTERN = "?city :population ?n ."
MEAN = "{ SELECT (AVG(?n) AS ?mean) { ?other :population ?n } }"
COUNT = "{ SELECT (COUNT(?city) AS ?cities) { ?city :population ?any } }"
QUERIES = {
    "pattern first": f"SELECT ?city {{ {PATTERN} {MEAN} FILTER(?n > ?mean) }}",
    "subselect first": f"SELECT ?city {{ {MEAN} {PATTERN} FILTER(?n > ?mean) }}",
    "number of cities": f"SELECT DISTINCT ?cities {{ {PATTERN} {COUNT} }}",
}
graph = Graph().parse(data=DATA, format="turtle")
store = pyoxigraph.Store()
store.load(DATA.encode(), format=pyoxigraph.RdfFormat.TURTLE)
seen = {}
for name, query in QUERIES.items():
    text = "PREFIX : <http://example.org/> " + query
    ours = sorted(str(row[0]).rsplit("/")[-1] for row in graph.query(text))
    theirs = sorted(row[0].value.rsplit("/")[-1] for row in store.query(text))
    seen[name] = (ours, theirs)
    print(f"{name:16} rdflib {ours} Oxigraph {theirs}")
if seen != {
    "pattern first": ([], ["c"]),
    "subselect first": (["c"], ["c"]),
    "number of cities": (["1"], ["3"]),
}:
    raise SystemExit("the behaviour has changed")
PY
