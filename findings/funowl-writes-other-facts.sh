#!/usr/bin/env bash
# funowl: a fact with an inverse property, or with quotation marks, is another one in RDF.
#
# Expected. OWL 2 Mapping to RDF Graphs, 2.1, table 1: ObjectPropertyAssertion( ObjectInverseOf(:p) :a
# :b ) is the triple  :b :p :a . OWL 2 functional-style syntax, 2.4: in a quoted text \" stands for a
# quotation mark and \\ for a backslash. to_rdf of funowl is to give the graph of an ontology.
#
# Seen (funowl 0.2.3, py-horned-owl 2.0.0, rdflib 7.6.0). The fact becomes a triple whose predicate is
# a blank node: no query for capitals finds it, and what rdflib writes of it is no valid N-Triples. A
# text is taken as it stands in the file, so that "the \"city\"" has two backslashes in the graph, and
# more of them in a file that funowl writes again. There is no error. py-horned-owl reads the same
# ontology rightly in both.
#
#                                                            funowl                py-horned-owl
#   ObjectPropertyAssertion(
#       ObjectInverseOf(:capitalOf) :Italy :Rome)            :Italy [...] :Rome    :Rome :capitalOf :Italy
#   DataPropertyAssertion(:said :Ann "the \"city\"")         the \"city\"          the "city"
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -qq --disable-pip-version-check \
    funowl==0.2.3 py-horned-owl==2.0.0 rdflib==7.6.0

venv/bin/python - <<'PY'
from importlib.metadata import version

import pyhornedowl
from funowl.converters.functional_converter import to_python
from rdflib import BNode, Graph, URIRef

print(*(f"{name} {version(name)}" for name in ("funowl", "py-horned-owl", "rdflib")))
NAMESPACE = "http://example.org/"
ONTOLOGY = r"""Prefix(:=<http://example.org/>)
Ontology(<http://example.org/ontology>
Declaration(ObjectProperty(:capitalOf))
Declaration(DataProperty(:said))
ObjectPropertyAssertion(ObjectInverseOf(:capitalOf) :Italy :Rome)
DataPropertyAssertion(:said :Ann "the \"city\"")
)"""
by_funowl = Graph()
to_python(ONTOLOGY).to_rdf(by_funowl)
by_horned = Graph().parse(
    data=pyhornedowl.open_ontology_from_string(ONTOLOGY, "ofn").save_to_string("rdf"), format="xml"
)
italy, rome, capital_of, said = (
    URIRef(NAMESPACE + name) for name in ("Italy", "Rome", "capitalOf", "said")
)
seen = {}
for name, graph in (("funowl", by_funowl), ("py-horned-owl", by_horned)):
    between = [isinstance(predicate, BNode) for predicate in graph.predicates(italy, rome)]
    seen[name] = (
        (rome, capital_of, italy) in graph,
        between,
        [str(text) for text in graph.objects(predicate=said)],
    )
    print(name.ljust(14), "Rome is the capital:", seen[name][0], *seen[name][2])
    print("  blank node as predicate:", any(between))
if seen != {
    "funowl": (False, [True], [r"the \"city\""]),
    "py-horned-owl": (True, [], ['the "city"']),
}:
    raise SystemExit("the behaviour has changed")
PY
