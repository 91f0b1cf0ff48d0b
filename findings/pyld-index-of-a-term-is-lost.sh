#!/usr/bin/env bash
# PyLD: an index that is named by a term is lost, and with it what tells the values apart.
#
# Expected. JSON-LD 1.1, 4.6.1.1 (property-based data indexing): with "@container": "@index" and
# "@index": "role" the keys of the map are values of the property "role". JSON-LD 1.1 API, 5.1.2: the
# name of the index is expanded as an IRI is, so a term of the context, or "@vocab", gives the
# property.
#
# Seen (PyLD 3.3.0, rdflib 7.6.0, pyoxigraph 0.5.13). The term is taken as it stands. Expanding gives
# a property "role" that is no IRI, and to_rdf and normalize leave it out without a word: who is the
# director of the film is gone. With the whole IRI in "@index" it is right. rdflib and Oxigraph read
# both.
#
#   "crew": {"director": {"name": "Ann"}, "editor": {"name": "Ben"}}      triples with :role
#                                                                         PyLD   rdflib   Oxigraph
#   "@index": "role", a term                                              0      2        2
#   "@index": "http://example.org/role"                                   2      2        2
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -qq --disable-pip-version-check \
    PyLD==3.3.0 rdflib==7.6.0 pyoxigraph==0.5.13

venv/bin/python - <<'PY'
import json
from importlib.metadata import version

import pyoxigraph
from pyld import jsonld
from rdflib import Graph, URIRef

print(*(f"{name} {version(name)}" for name in ("PyLD", "rdflib", "pyoxigraph")))
NAMESPACE = "http://example.org/"
ROLE = NAMESPACE + "role"
seen = {}
for index in ("role", ROLE):
    document = {
        "@context": {
            "name": NAMESPACE + "name",
            "role": ROLE,
            "crew": {"@id": NAMESPACE + "crew", "@container": "@index", "@index": index},
        },
        "@id": NAMESPACE + "film",
        "crew": {"director": {"name": "Ann"}, "editor": {"name": "Ben"}},
    }
    text = json.dumps(document)
    lines = jsonld.to_rdf(document, {"format": "application/n-quads"})
    graph = Graph().parse(data=text, format="json-ld")
    quads = pyoxigraph.parse(text.encode(), format=pyoxigraph.RdfFormat.JSON_LD)
    seen[index] = (
        lines.count(f"<{ROLE}>"),
        len(list(graph.triples((None, URIRef(ROLE), None)))),
        sum(quad.predicate.value == ROLE for quad in quads),
    )
    print(index.ljust(24), "PyLD", seen[index][0], "rdflib", seen[index][1], end=" ")
    print("Oxigraph", seen[index][2])
if seen != {"role": (0, 2, 2), ROLE: (2, 2, 2)}:
    raise SystemExit("the behaviour has changed")
PY
