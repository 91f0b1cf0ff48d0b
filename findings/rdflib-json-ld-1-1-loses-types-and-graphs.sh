#!/usr/bin/env bash
# rdflib: of three parts of JSON-LD 1.1 types are lost, numbers are texts, and graphs are mixed.
#
# Expected. JSON-LD 1.1, 4.6.4 (node type indexing): each key of a map with "@container": "@type" is
# the type of all nodes under it, one or a list. 4.2.3, and the API, 5.3: "@type": "@none" is no
# coercion, so that 5 is an xsd:integer. 4.9.1 (graph containers): what stands under "@container":
# "@graph" is in a named graph of its own.
#
# Seen (rdflib 7.6.0; PyLD 3.3.0 follows the standard). In a list under a type none of the nodes gets
# it. "@none" becomes the datatype of each value, an IRI made with "@vocab", so that no number is one.
# What a source claims is read into the default graph, as if it were so, and the named graph is empty.
# There is no error.
#
#                                                       PyLD                         rdflib
#   "places": {"City": [{"@id": "Rome"}, ...]}          2 nodes of the type City     none
#   "area": 1287, with "@type": "@none"                 xsd:integer                  <http://example.org/@none>
#   "claims": {...}, with "@container": "@graph"        1 triple in a named graph    1 in the default graph
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -qq --disable-pip-version-check \
    rdflib==7.6.0 PyLD==3.3.0

venv/bin/python - <<'PY'
import json
from importlib.metadata import version

from pyld import jsonld
from rdflib import Dataset

print("rdflib", version("rdflib"), "PyLD", version("PyLD"))
NAMESPACE = "http://example.org/"
DOCUMENT = {
    "@context": {
        "@vocab": NAMESPACE,
        "@base": NAMESPACE,
        "places": {"@container": "@type"},
        "area": {"@type": "@none"},
        "claims": {"@container": "@graph"},
    },
    "@id": "source",
    "places": {"City": [{"@id": "Rome"}, {"@id": "Oslo"}]},
    "area": 1287,
    "claims": {"@id": "Rome", "capitalOf": {"@id": "Italy"}},
}
QUERIES = {
    "cities": "SELECT ?x { ?x a :City }",
    "type of area": "SELECT ?x { ?s :area ?n BIND(DATATYPE(?n) AS ?x) }",
    "claims in the default graph": "SELECT ?x { ?x :capitalOf ?y }",
    "claims in a named graph": "SELECT ?x { GRAPH ?g { ?x :capitalOf ?y } }",
}
by_pyld, by_rdflib = Dataset(), Dataset()
by_pyld.parse(data=jsonld.to_rdf(DOCUMENT, {"format": "application/n-quads"}), format="nquads")
by_rdflib.parse(data=json.dumps(DOCUMENT), format="json-ld")
seen = {}
for name, query in QUERIES.items():
    told = []
    for dataset in (by_pyld, by_rdflib):
        rows = dataset.query(f"PREFIX : <{NAMESPACE}> {query}")
        told.append(sorted(str(row.x).removeprefix(NAMESPACE) for row in rows))
    seen[name] = told
    print(name.ljust(28), "PyLD", *told[0], "| rdflib", *told[1])
if seen != {
    "cities": [["Oslo", "Rome"], []],
    "type of area": [["http://www.w3.org/2001/XMLSchema#integer"], ["@none"]],
    "claims in the default graph": [[], ["Rome"]],
    "claims in a named graph": [["Rome"], []],
}:
    raise SystemExit("the behaviour has changed")
PY
