#!/usr/bin/env bash
# COUNT of an expression: rdflib counts the errors too, and in Oxigraph one error takes the number away.
#
# Expected. SPARQL 1.1, 18.5.1.2: COUNT "counts the number of times a given expression has a bound,
# and non-error value within the aggregate group". So COUNT(IF(?n > 1, 1, ?none)), where nothing binds
# ?none, is the number of those above 1, a usual way to count several things in one query.
#
# Seen (rdflib 7.6.0, pyoxigraph 0.5.13). rdflib counts each row, whatever the condition: an error
# that is not a lone unbound variable is taken for a value. In Oxigraph an unbound result is passed
# over, but a true error (a division by zero, STRLEN of a number) leaves the whole count unbound, so
# that there is no row in a chart and nothing passes HAVING. For a lone unbound variable both are
# right.
#
#   numbers 1, 2, 3                 standard   rdflib   Oxigraph
#   COUNT(IF(?n > 1, 1, ?none))     2          3        2
#   COUNT(6 / (?n - 1))             2          3        unbound
#   COUNT(STRLEN(?n))               0          3        unbound
#   COUNT(?none)                    0          0        0
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
graph, store = Graph(), pyoxigraph.Store()
seen = {}
for expression in ("IF(?n > 1, 1, ?none)", "6 / (?n - 1)", "STRLEN(?n)", "?none"):
    query = f"SELECT (COUNT({expression}) AS ?count) {{ VALUES ?n {{ 1 2 3 }} }}"
    (row,) = graph.query(query)
    (other,) = store.query(query)
    counted = other["count"] and int(other["count"].value)
    seen[expression] = (int(row["count"]), counted)
    print(f"COUNT({expression})".ljust(30), "rdflib", row["count"], "Oxigraph", counted)
if seen != {
    "IF(?n > 1, 1, ?none)": (3, 2),
    "6 / (?n - 1)": (3, None),
    "STRLEN(?n)": (3, None),
    "?none": (0, 0),
}:
    raise SystemExit("the behaviour has changed")
PY
