#!/usr/bin/env bash
# oxrdflib: FROM in a query is passed over; the answer comes from other graphs, or there is none.
#
# Expected. A FROM says which graphs a query is asked of, "in place of any dataset that the query
# service would use" without it (SPARQL 1.1 Query, 13.2). rdflib does so for a Dataset, with
# default_union and without. oxrdflib calls its store a drop-in replacement of rdflib's own, and lists
# the differences; this is none of them.
#
# Seen (oxrdflib 0.5.0, rdflib 7.6.0, pyoxigraph 0.5.13). rdflib hands the store its own default graph
# with each query, oxrdflib hands it on as default_graph or use_default_graph_as_union, and in
# pyoxigraph these arguments go before FROM, on purpose, like those of a SPARQL protocol request. So
# nobody asked for them, and no text's FROM ever counts: over the default graph the rows are gone, over
# the union those of other graphs are there too. ASK, CONSTRUCT and DESCRIBE are no different. The same
# text from prepareQuery goes to rdflib's engine, and pyoxigraph called by hand without these arguments
# obeys too.
#
#   SELECT ?n FROM :y2020 { :Rome :population ?n }, with :y2020 2783809 and :y1900 422411
#                             rdflib's store   oxrdflib          oxrdflib, prepared
#   Dataset()                 2783809          -                 2783809
#   ... default_union=True    2783809          422411 2783809    2783809
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -qq --disable-pip-version-check \
    oxrdflib==0.5.0 rdflib==7.6.0 pyoxigraph==0.5.13

venv/bin/python - <<'PY'
from importlib.metadata import version

import pyoxigraph
import rdflib
from rdflib.plugins.sparql import prepareQuery

print(*(f"{p} {version(p)}" for p in ("oxrdflib", "rdflib", "pyoxigraph")))
DATA = """
PREFIX : <http://example.org/>
GRAPH :y1900 { :Rome :population 422411 }
GRAPH :y2020 { :Rome :population 2783809 }
"""
PREFIX = "PREFIX : <http://example.org/> "
SELECT = PREFIX + "SELECT ?n FROM :y2020 { :Rome :population ?n }"
ASK = PREFIX + "ASK FROM :y2020 { :Rome :population 422411 }"


def seen(store: str, union: bool) -> tuple[list[int], list[int], bool]:
    dataset = rdflib.Dataset(store=store, default_union=union)
    dataset.parse(data=DATA, format="trig")
    text = sorted(int(row.n) for row in dataset.query(SELECT))
    prepared = sorted(int(row.n) for row in dataset.query(prepareQuery(SELECT)))
    return text, prepared, bool(dataset.query(ASK))


results = {}
for store in ("default", "Oxigraph"):
    for union in (False, True):
        results[store, union] = text, prepared, asked = seen(store, union)
        print(f"store {store:8} default_union={union!s:5} text {text} prepared {prepared}", end=" ")
        print("was it 422411 in 2020:", asked)
by_hand = pyoxigraph.Store()
by_hand.load(DATA.encode(), format=pyoxigraph.RdfFormat.TRIG)
alone = [int(row["n"].value) for row in by_hand.query(SELECT)]
print("pyoxigraph by hand:", alone)
if (results, alone) != (
    {
        ("default", False): ([2783809], [2783809], False),
        ("default", True): ([2783809], [2783809], False),
        ("Oxigraph", False): ([], [2783809], False),
        ("Oxigraph", True): ([422411, 2783809], [2783809], True),
    },
    [2783809],
):
    raise SystemExit("the behaviour has changed")
PY
