#!/usr/bin/env bash
# maplib: two labels are equal when they have the same text OR the same language.
#
# Expected. SPARQL 1.1, 17.4.1.7: "=" is true of two literals with a language tag only when they
# are the same term, so when the text and the language agree. maplib's query() promises SPARQL,
# and names SELECT and CONSTRUCT as the forms that it takes.
#
# Seen (maplib 0.20.26). "=" between two variables is true when one of the two agrees: "Rome"@en =
# "Lyon"@en, and "Lyon"@en = "Lyon"@fr. "!=" is true when both differ. So "which cities share a
# label with another" names cities that share none, and `?l != "Rome"@en` keeps no English label. A
# label that stands in the query is found rightly by "=", which hides it. There is no error. rdflib
# and Oxigraph agree with each other on all three.
#
#   cities that share a label    Oxigraph, rdflib none    maplib Lyon, Oslo, Rome
#   labels != "Rome"@en          Oxigraph, rdflib 4       maplib 2: "Lyon"@fr, "Oslo"@nb
#   labels  = "Rome"@en          all 1
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -qq --no-compile --disable-pip-version-check \
    maplib==0.20.26 polars==2.1.0 pyoxigraph==0.5.13 rdflib==7.6.0

venv/bin/python - <<'PY'
from importlib.metadata import version

import maplib
import pyoxigraph
import rdflib

print(*(f"{name} {version(name)}" for name in ("maplib", "polars", "pyoxigraph", "rdflib")))
TURTLE = """@prefix : <http://example.org/> .
:Rome :label "Rome"@en . :Lyon :label "Lyon"@en, "Lyon"@fr . :Oslo :label "Oslo"@en, "Oslo"@nb ."""
PREFIX = "PREFIX : <http://example.org/> "
QUERIES = (
    "SELECT DISTINCT ?c { ?c :label ?l . ?other :label ?m FILTER(?c != ?other && ?l = ?m) }",
    'SELECT ?l { ?c :label ?l FILTER(?l != "Rome"@en) }',
    'SELECT ?l { ?c :label ?l FILTER(?l = "Rome"@en) }',
)
store = pyoxigraph.Store()
store.load(TURTLE.encode(), format=pyoxigraph.RdfFormat.TURTLE)
graph = rdflib.Graph().parse(data=TURTLE, format="turtle")
seen = []
for query in QUERIES:
    model = maplib.Model()
    model.reads(TURTLE, format="turtle")
    by_maplib = sorted(str(row[0]) for row in model.query(PREFIX + query).rows())
    by_oxigraph = sorted(str(row[0]) for row in store.query(PREFIX + query))
    by_rdflib = sorted(row[0].n3() for row in graph.query(PREFIX + query))
    print(query, "| maplib", *by_maplib, "| Oxigraph", *by_oxigraph, "| rdflib", *by_rdflib)
    seen.append((len(by_maplib), len(by_oxigraph), len(by_rdflib)))
if seen != [(3, 0, 0), (2, 4, 4), (1, 1, 1)]:
    raise SystemExit("the behaviour has changed")
PY
