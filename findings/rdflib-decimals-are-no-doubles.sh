#!/usr/bin/env bash
# rdflib: 1.85 is not equal to 1.85e0, and "at most 1.85" leaves out what is 1.85 high.
#
# Expected. SPARQL 1.1, 17.2.1: "Numeric arguments are promoted as necessary", and 17.3 takes = and <
# from XPath, where a decimal beside an xsd:double becomes a double (XPath 2.0, B.1). A query's 1.85
# is a decimal, so it is equal to 1.85e0.
#
# Seen (rdflib 7.6.0). Decimal and double are compared exactly, as Python does it, and a double such
# as 1.85 is a little more than the decimal. Equality is never met, <= and >= go by the last bit, and
# of two things with one height one is "higher". Only halves, quarters and the like are right, and
# whole numbers, which hides it. DBpedia's heights and lengths are doubles. pyoxigraph 0.5.13 follows
# the standard.
#
#   :Ann :height 1.85e0 . :Ben :height 1.5e0         rdflib     Oxigraph
#   FILTER(?h = 1.85)                                none       Ann
#   FILTER(?h <= 1.85)                               Ben        Ann, Ben
#   FILTER(?h > 1.85)                                Ann        none
#   FILTER(?h = 1.5)                                 Ben        Ben
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
NAMESPACE = "http://example.org/"
DATA = f"@prefix : <{NAMESPACE}> . :Ann :height 1.85e0 . :Ben :height 1.5e0 ."
graph = Graph().parse(data=DATA, format="turtle")
store = pyoxigraph.Store()
store.load(DATA.encode(), format=pyoxigraph.RdfFormat.TURTLE)
seen = {}
for condition in ("?h = 1.85", "?h <= 1.85", "?h > 1.85", "?h = 1.5"):
    query = f"SELECT ?x {{ ?x <{NAMESPACE}height> ?h FILTER({condition}) }}"
    seen[condition] = (
        sorted(str(row.x).removeprefix(NAMESPACE) for row in graph.query(query)),
        sorted(row["x"].value.removeprefix(NAMESPACE) for row in store.query(query)),
    )
    print(condition.ljust(12), "rdflib", seen[condition][0], "Oxigraph", seen[condition][1])
if seen != {
    "?h = 1.85": ([], ["Ann"]),
    "?h <= 1.85": (["Ben"], ["Ann", "Ben"]),
    "?h > 1.85": (["Ann"], []),
    "?h = 1.5": (["Ben"], ["Ben"]),
}:
    raise SystemExit("the behaviour has changed")
PY
