#!/usr/bin/env bash
# maplib: a triple whose value is "1"^^xsd:boolean, or a long whole number, is gone when read.
#
# Expected. XML Schema gives xsd:boolean the spellings true, false, 1 and 0, and xsd:integer no
# greatest value. maplib's read() and reads() say that they read the triples of a file or a text.
# A value that it cannot hold is an error, or the triple stays with the text that it has.
#
# Seen (maplib 0.20.26). The triple is not in the model: the count of all triples is smaller, the
# subject may be missing, and what is written again has no line for it. With checked=True, the
# default, nothing is reported either. Flags that are exported as 1 and 0 are gone, and so "which
# of them is no capital" names the capital: its flag is not there, and Lyon is not either.
# pyoxigraph and rdflib have all six triples and the right answer.
#
#   triples        file 6, rdflib 6, Oxigraph 6; maplib 3, and 3 when written
#   no capital     rdflib and Oxigraph Lyon; maplib Rome
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
TURTLE = """@prefix : <http://example.org/> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
:Rome :capital "1"^^xsd:boolean ; :twin :Lyon .
:Lyon :capital "0"^^xsd:boolean ; :grains 99999999999999999999 .
:Oslo :capital true ; :grains 12 ."""
COUNT = "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }"
OTHERS = (
    "PREFIX : <http://example.org/> "
    "SELECT DISTINCT ?s { ?s ?p ?o FILTER NOT EXISTS { ?s :capital ?c FILTER(?c) } }"
)
model = maplib.Model()
model.reads(TURTLE, format="turtle", checked=True)
graph = rdflib.Graph().parse(data=TURTLE, format="turtle")
store = pyoxigraph.Store()
store.load(TURTLE.encode(), format=pyoxigraph.RdfFormat.TURTLE)
written = model.writes(format="ntriples")
lines = [line for line in written.splitlines() if line.strip()]
counts = (model.query(COUNT).rows()[0][0], len(lines), len(graph), len(store))
print("triples: maplib {}, written {}, rdflib {}, Oxigraph {}".format(*counts))
print(*lines, sep="\n")
others = [
    sorted(str(row[0]).strip("<>").rsplit("/", 1)[-1] for row in rows)
    for rows in (model.query(OTHERS).rows(), graph.query(OTHERS), store.query(OTHERS))
]
print("no capital: maplib {}, rdflib {}, Oxigraph {}".format(*others))
if (counts, others) != ((3, 3, 6, 6), [["Rome"], ["Lyon"], ["Lyon"]]):
    raise SystemExit("the behaviour has changed")
PY
