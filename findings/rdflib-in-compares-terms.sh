#!/usr/bin/env bash
# rdflib: IN and NOT IN compare terms, = compares values, so ?n IN (2) is not ?n = 2.
#
# Expected. SPARQL 1.1, 17.4.1.9 and 17.4.1.10: "?n IN (a, b)" is the same as "(?n = a) || (?n =
# b)", with the = of values; NOT IN is its negation.
#
# Seen (rdflib 7.6.0). The list is searched with Python's equality of terms. A number in another
# datatype (2.0, 2e0) is not found by IN, and NOT IN lets it through, where = and != answer as the
# standard says. pyoxigraph 0.5.13 follows the standard in all four.
#
#   data: 2, 2.0, 2e0, 3
#     = 2      rdflib 3 rows, Oxigraph 3
#     IN (2)   rdflib 1 row,  Oxigraph 3
#     != 2     rdflib 1 row,  Oxigraph 1
#     NOT IN   rdflib 3 rows, Oxigraph 1
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
DATA = "@prefix : <http://example.org/> . :a :n 2 . :b :n 2.0 . :c :n 2e0 . :d :n 3 ."
graph = Graph().parse(data=DATA, format="turtle")
store = pyoxigraph.Store()
store.load(DATA.encode(), format=pyoxigraph.RdfFormat.TURTLE)
seen = {}
for condition in ("?n = 2", "?n IN (2)", "?n != 2", "?n NOT IN (2)"):
    query = f"SELECT ?x {{ ?x <http://example.org/n> ?n FILTER({condition}) }}"
    seen[condition] = (
        "".join(sorted(str(row.x)[-1] for row in graph.query(query))),
        "".join(sorted(row["x"].value[-1] for row in store.query(query))),
    )
    print(f"{condition:14} rdflib {seen[condition][0]} Oxigraph {seen[condition][1]}")
if seen != {
    "?n = 2": ("abc", "abc"),
    "?n IN (2)": ("a", "abc"),
    "?n != 2": ("d", "d"),
    "?n NOT IN (2)": ("bcd", "d"),
}:
    raise SystemExit("the behaviour has changed")
PY
