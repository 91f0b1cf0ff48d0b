#!/usr/bin/env bash
# sheXer, pySHACL: shapes made from a graph check no datatype, and refuse the graph.
#
# Expected. sheXer extracts "shape expressions (ShEx) or Shapes Constraint Language (SHACL) for a
# target RDF graph". SHACL names the type of literals sh:datatype, so what each city has as an
# integer must be one. With a threshold of 0, by which each form that was seen is kept, as optional
# where not all have it, the graph conforms to its own shapes.
#
# Seen (sheXer 2.7.3.1, pySHACL 0.40.1, rdflib 7.6.0). The shapes have sh:dataType, which is no word
# of SHACL; a shape may have other properties, so nothing complains, and no type of a literal is
# ever checked: "many" is a number of districts. Two forms of one property, integer and string, are
# two shapes of the same path with at most one value each: a city with one of each is refused. And
# the second class of one city, "rdf:type [:Capital] ?" in ShEx, is demanded of all of them.
#
#   violations of the shapes                           as written  with sh:datatype
#   "many" districts, where the graph has integers     0           1
#   the graph itself, one form of each property        0           0
#   the graph itself, a code of two types              2           5
#   the graph itself, one city also a capital          9           9
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -qq --disable-pip-version-check \
    shexer==2.7.3.1 pyshacl==0.40.1 rdflib==7.6.0

venv/bin/python -W ignore - <<'PY'
from importlib.metadata import version

import pyshacl
from rdflib import RDF, SH, Graph
from shexer.consts import SHACL_TURTLE, SHEXC, TURTLE
from shexer.shaper import Shaper

for package in ("shexer", "pyshacl", "rdflib"):
    print(package, version(package))
PREFIXES = "@prefix : <http://example.org/> . "
ONE_CLASS = ":Oslo a :City ; :districts 15 . :Rome a :City ; :districts 15 ."
TWO_FORMS = ":Oslo a :City ; :code 15 . :Rome a :City ; :code 15, 'RM' ."
TWO_CLASSES = ":Bergen a :City ; :districts 8 . :Oslo a :City, :Capital ; :districts 15 ."
WRONG = ":Bern a :City ; :districts 'many' ."


def shapes(data: str, form: str) -> str:
    shaper = Shaper(
        all_classes_mode=True,
        raw_graph=PREFIXES + data,
        input_format=TURTLE,
        instantiation_property=str(RDF.type),
        namespaces_dict={"http://example.org/": "", str(RDF): "rdf"},
    )
    return shaper.shex_graph(string_output=True, output_format=form, acceptance_threshold=0)


def violations(data: str, shacl: str) -> int:
    graph = Graph().parse(data=PREFIXES + data, format="turtle")
    report = pyshacl.validate(graph, shacl_graph=Graph().parse(data=shacl, format="turtle"))[1]
    return len(list(report.subjects(RDF.type, SH.ValidationResult)))


print(shapes(TWO_CLASSES, SHEXC))
shacl = shapes(ONE_CLASS, SHACL_TURTLE)
print(shacl)
seen = {}
for name, source, data in (
    ("'many' districts", ONE_CLASS, WRONG),
    ("one form", ONE_CLASS, ONE_CLASS),
    ("a code of two types", TWO_FORMS, TWO_FORMS),
    ("a city and capital", TWO_CLASSES, TWO_CLASSES),
):
    written = shapes(source, SHACL_TURTLE)
    mended = written.replace("sh:dataType", "sh:datatype")
    seen[name] = violations(data, written), violations(data, mended)
    print(f"{name:<19} violations as written {seen[name][0]}, with sh:datatype {seen[name][1]}")
words = shacl.count("sh:datatype"), shacl.count("sh:dataType")
print("sh:datatype, sh:dataType:", words)
if (words, list(seen.values())) != ((0, 1), [(0, 1), (0, 0), (2, 5), (9, 9)]):
    raise SystemExit("the behaviour has changed")
PY
