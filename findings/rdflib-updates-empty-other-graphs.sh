#!/usr/bin/env bash
# rdflib: an update of the default graph empties the named graphs, and one of these the default graph.
#
# Expected. SPARQL 1.1 Update, 3.1.2 and 3.1.3.3: DELETE DATA and DELETE WHERE without GRAPH are for
# the default graph. 3.1.5 and 3.2.2: "DEFAULT" in CLEAR, DROP and COPY is the default graph and
# "NAMED" the named ones. 3.2.3: COPY puts all data of one graph into another, and "Data from the
# input graph is not affected".
#
# Seen (rdflib 7.6.0, pyoxigraph 0.5.13). In a Dataset the first five reach all graphs. After COPY of
# a named graph to the default graph nothing is left anywhere, the copied data too. DROP DEFAULT does
# nothing. No error is reported. A correction of one fact also takes it out of the graphs that keep
# sources or older versions; an experiment that starts with CLEAR DEFAULT has lost its data. DELETE
# ... WHERE in its long form is right. pyoxigraph follows the standard in all.
#
#   triples before: default graph 2, :g1 1, :g2 1         rdflib             Oxigraph
#   DELETE DATA { :Rome :mayor :Ann }                     1, 0, 1            1, 1, 1
#   DELETE WHERE { :Rome :mayor ?m }                      1, 0, 1            1, 1, 1
#   CLEAR DEFAULT                                         0, 0, 0            0, 1, 1
#   DROP NAMED                                            0, 0, 0            2, 0, 0
#   COPY :g1 TO DEFAULT                                   0, 0, 0            1, 1, 1
#   DROP DEFAULT                                          2, 1, 1            0, 1, 1
#   DELETE { :Rome :mayor ?m } WHERE { ... }              1, 1, 1            1, 1, 1
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
from rdflib import Dataset

print("rdflib", version("rdflib"), "pyoxigraph", version("pyoxigraph"))
PREFIX = "PREFIX : <http://example.org/> "
DATA = """PREFIX : <http://example.org/>
:Rome :mayor :Ann . :Rome :area 1287 .
GRAPH :g1 { :Rome :mayor :Ann } GRAPH :g2 { :Oslo :mayor :Ben }"""
COUNTS = tuple(
    f"{PREFIX} SELECT (COUNT(*) AS ?n) {{ {pattern} }}"
    for pattern in ("?s ?p ?o", "GRAPH :g1 { ?s ?p ?o }", "GRAPH :g2 { ?s ?p ?o }")
)
seen = {}
for update in (
    "DELETE DATA { :Rome :mayor :Ann }",
    "DELETE WHERE { :Rome :mayor ?m }",
    "CLEAR DEFAULT",
    "DROP NAMED",
    "COPY :g1 TO DEFAULT",
    "DROP DEFAULT",
    "DELETE { :Rome :mayor ?m } WHERE { :Rome :mayor ?m }",
):
    dataset = Dataset().parse(data=DATA, format="trig")
    dataset.update(PREFIX + update)
    store = pyoxigraph.Store()
    store.load(DATA.encode(), format=pyoxigraph.RdfFormat.TRIG)
    store.update(PREFIX + update)
    left, right = [], []
    for query in COUNTS:
        left.extend(int(row.n) for row in dataset.query(query))
        right.extend(int(row["n"].value) for row in store.query(query))
    seen[update] = (left, right)
    print(update.ljust(54), "rdflib", *left, "Oxigraph", *right)
if seen != {
    "DELETE DATA { :Rome :mayor :Ann }": ([1, 0, 1], [1, 1, 1]),
    "DELETE WHERE { :Rome :mayor ?m }": ([1, 0, 1], [1, 1, 1]),
    "CLEAR DEFAULT": ([0, 0, 0], [0, 1, 1]),
    "DROP NAMED": ([0, 0, 0], [2, 0, 0]),
    "COPY :g1 TO DEFAULT": ([0, 0, 0], [1, 1, 1]),
    "DROP DEFAULT": ([2, 1, 1], [0, 1, 1]),
    "DELETE { :Rome :mayor ?m } WHERE { :Rome :mayor ?m }": ([1, 1, 1], [1, 1, 1]),
}:
    raise SystemExit("the behaviour has changed")
PY
