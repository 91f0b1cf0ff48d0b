#!/usr/bin/env bash
# rdflib: a whole number that JSON-LD writes with a point is an xsd:double, and no xsd:integer.
#
# Expected. JSON-LD 1.1 API, 8.2.2 (object to RDF conversion): a JSON number without a fractional part
# becomes an xsd:integer, so that 10 and 10.0 are one number, as they are in JSON and in JavaScript.
# A double is written in its canonical form (1.0E-1).
#
# Seen (rdflib 7.6.0). The type is that which Python's json gives the number: 10.0 is
# "10.0"^^xsd:double, beside 10 as an integer. Programs that write floats (pandas, a column with an
# empty cell) make other terms of the same document: joins find nothing, COUNT(DISTINCT ?n) counts two.
# Numbers typed as xsd:double keep the form "5". PyLD 3.3.0 and pyoxigraph 0.5.13 agree with the
# standard.
#
#   {"@id": "s", "p": [10, 10.0]}   rdflib 2 triples, PyLD 1, Oxigraph 1
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -qq --disable-pip-version-check \
    rdflib==7.6.0 PyLD==3.3.0 pyoxigraph==0.5.13

venv/bin/python - <<'PY'
import json
from importlib.metadata import version

import pyoxigraph
from pyld import jsonld
from rdflib import Graph

print("rdflib", version("rdflib"), "PyLD", version("PyLD"), "pyoxigraph", version("pyoxigraph"))
document = {
    "@context": {"@vocab": "http://example.org/"},
    "@id": "http://example.org/s",
    "p": [10, 10.0],
}
text = json.dumps(document)
by_rdflib = {str(o) for _, _, o in Graph().parse(data=text, format="json-ld")}
lines = jsonld.to_rdf(document, {"format": "application/n-quads"}).splitlines()
by_pyld = {line.split('"')[1] for line in lines}
quads = pyoxigraph.parse(text.encode(), pyoxigraph.RdfFormat.JSON_LD)
by_oxigraph = {quad.object.value for quad in quads}
print("rdflib", sorted(by_rdflib), "PyLD", sorted(by_pyld), "Oxigraph", sorted(by_oxigraph))
if (by_rdflib, by_pyld, by_oxigraph) != ({"10", "10.0"}, {"10"}, {"10"}):
    raise SystemExit("the behaviour has changed")
PY
