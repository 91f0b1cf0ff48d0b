#!/usr/bin/env bash
# pyjelly and rdflib's TriX: the default graph of a file is gone when it is read into a Graph.
#
# Expected. A file of quads may have triples in its default graph (RDF 1.1 Concepts, 4; Jelly's
# QUADS and GRAPHS streams have RdfDefaultGraph for them). Read into an rdflib Graph, N-Quads, TriG,
# JSON-LD and HexTuples give these triples, and leave out the named graphs.
#
# Seen (pyjelly 0.8.2, rdflib 7.6.0). Written by rdflib as Jelly or TriX, the same Dataset read into a
# Graph is empty, without an error or a warning. Read into a Dataset it is complete. So a program that
# counts or queries a Graph answers "nothing" for a file that has what is asked for, and only in these
# two formats.
#
#   triples in the default graph, 1 in another     nquads  trig  json-ld  hext  jelly  trix
#   read into a Graph                              2       2     2        2     0      0
#   read into a Dataset                            3       3     3        3     3      3
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -qq --disable-pip-version-check \
    "pyjelly[rdflib]==0.8.2" rdflib==7.6.0

venv/bin/python - <<'PY'
from importlib.metadata import version

import rdflib

print("pyjelly", version("pyjelly"), "rdflib", version("rdflib"))
DATA = """
<http://e/a> <http://e/p> "x" , "y" .
<http://e/g> { <http://e/a> <http://e/p> "z" }
"""
dataset = rdflib.Dataset()
dataset.parse(data=DATA, format="trig")
seen = {}
for name in ("nquads", "trig", "json-ld", "hext", "jelly", "trix"):
    written = dataset.serialize(format=name, encoding="utf-8")
    graph = rdflib.Graph().parse(data=written, format=name)
    again = rdflib.Dataset()
    again.parse(data=written, format=name)
    seen[name] = (len(graph), len(list(again.quads())))
    print(f"{name:8} in a Graph {seen[name][0]}, in a Dataset {seen[name][1]}")
kept = dict.fromkeys(("nquads", "trig", "json-ld", "hext"), (2, 3))
if seen != kept | dict.fromkeys(("jelly", "trix"), (0, 3)):
    raise SystemExit("the behaviour has changed")
PY
