#!/usr/bin/env bash
# rdflib's "pretty-xml": the texts and numbers of a list become IRIs.
#
# Expected. RDF/XML: rdf:parseType="Collection" can only hold resources; a list with literals is
# written out with rdf:first and rdf:rest. A serializer keeps the triples or refuses. rdflib's
# plain "xml" keeps them.
#
# Seen (rdflib 7.6.0). format="pretty-xml" writes every closed list as a Collection and each
# literal in it as rdf:about. Read back, the list of names holds relative IRIs, resolved against
# wherever the file lies; the datatype and the language are gone. The file is well-formed. The one
# warning is that statements on the list's nodes beside rdf:first and rdf:rest are ignored, of
# which there are none here; it comes for a list of IRIs too, which is written rightly. SHACL's
# sh:in and sh:languageIn, OWL's enumerations of data and any ordered list of names or numbers are
# of this kind.
#
#   in    ( "en" "fr"@fr 7 )
#   out   <http://example.org/base/en> <http://example.org/base/fr> <http://example.org/base/7>
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -qq --disable-pip-version-check \
    rdflib==7.6.0

venv/bin/python - <<'PY'
import warnings
from importlib.metadata import version

from rdflib import Graph, URIRef
from rdflib.collection import Collection

warnings.simplefilter("ignore")  # see above
print("rdflib", version("rdflib"))
graph = Graph().parse(
    format="turtle", data='@prefix : <http://example.org/> . :x :items ( "en" "fr"@fr 7 ) .'
)
ITEMS = URIRef("http://example.org/items")


def items(graph: Graph) -> list[str]:
    return [item.n3() for item in Collection(graph, next(graph.objects(predicate=ITEMS)))]


def through(format: str) -> list[str]:
    written = graph.serialize(format=format)
    base = "http://example.org/base/"
    return items(Graph().parse(data=written, format="xml", publicID=base))


before, plain, pretty = items(graph), through("xml"), through("pretty-xml")
print("in memory:         ", *before)
print("through xml:       ", *plain)
print("through pretty-xml:", *pretty)
expected = [f"<http://example.org/base/{name}>" for name in ("en", "fr", "7")]
if (plain, pretty) != (before, expected):
    raise SystemExit("the behaviour has changed")
PY
