#!/usr/bin/env bash
# rdflib: a dateTime without a time zone is before every one with a zone, whatever the years.
#
# Expected. XML Schema compares a time with and one without a zone as undecided only when they are
# less than 14 hours apart; XPath, to whose operator SPARQL's < refers, adds the zone of the
# engine. In both, 2030 is after 2021.
#
# Seen (rdflib 7.6.0). Times are sorted by "has a zone" first. FILTER, ORDER BY and MAX all put
# 2030-01-01T00:00:00 before 2021-01-01T00:00:00Z, and the latest event of mixed data is the wrong
# one. pyoxigraph 0.5.13 takes 2030. It passes on: pySHACL 0.40.1 finds sh:lessThan satisfied by
# a start in 2030 and an end in 2021, a shape that exists to catch just that.
#
#   latest of the two:  rdflib 2021, Oxigraph 2030
#   start 2030 (no zone), end 2021Z, sh:lessThan: conforms
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -qq --disable-pip-version-check \
    rdflib==7.6.0 pyoxigraph==0.5.13 pyshacl==0.40.1

venv/bin/python - <<'PY'
from importlib.metadata import version

import pyoxigraph
import pyshacl
from rdflib import Graph

print(*(f"{name} {version(name)}" for name in ("rdflib", "pyoxigraph", "pyshacl")))
PREFIXES = """@prefix : <http://example.org/> . @prefix sh: <http://www.w3.org/ns/shacl#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> . """
DATA = (
    PREFIXES
    + """
:trip :start "2030-01-01T00:00:00"^^xsd:dateTime ; :end "2021-01-01T00:00:00Z"^^xsd:dateTime ."""
)
SHAPE = (
    ":S a sh:NodeShape ; sh:targetNode :trip ; sh:property [ sh:path :start ; sh:lessThan :end ] ."
)
EITHER = ":trip :start|:end ?t"
QUERIES = {
    "latest": f"SELECT (YEAR(MAX(?t)) AS ?y) {{ {EITHER} }}",
    "last in order": f"SELECT (YEAR(?t) AS ?y) {{ {EITHER} }} ORDER BY DESC(?t) LIMIT 1",
    "start after end": "SELECT (YEAR(?s) AS ?y) { :trip :start ?s ; :end ?e FILTER(?s > ?e) }",
}
graph = Graph().parse(data=DATA, format="turtle")
store = pyoxigraph.Store()
store.load(DATA.encode(), format=pyoxigraph.RdfFormat.TURTLE)
seen = {}
for name, query in QUERIES.items():
    text = "PREFIX : <http://example.org/> " + query
    seen[name] = (
        [str(row.y) for row in graph.query(text)],
        [row["y"].value for row in store.query(text)],
    )
    print(f"{name:16} rdflib {seen[name][0]} Oxigraph {seen[name][1]}")
conforms = pyshacl.validate(
    graph, shacl_graph=Graph().parse(data=PREFIXES + SHAPE, format="turtle")
)[0]
print("pySHACL, start before end: conforms", conforms)
if (seen, conforms) != (
    {
        "latest": (["2021"], ["2030"]),
        "last in order": (["2021"], ["2030"]),
        "start after end": ([], ["2030"]),
    },
    True,
):
    raise SystemExit("the behaviour has changed")
PY
