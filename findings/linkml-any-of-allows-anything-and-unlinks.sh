#!/usr/bin/env bash
# LinkML: with any_of, the shapes allow what the JSON Schema forbids, and a link becomes a text.
#
# Expected. In LinkML any_of "holds if at least one of the expressions hold", and exactly_one_of,
# all_of and none_of accordingly; each can be put on a slot. One schema is the source of the JSON
# Schema, of the SHACL shapes and of the RDF, so data that one of them allows is allowed by the
# other, and a value whose range is a class or a date is an IRI or an xsd:date, with any_of as
# without.
#
# Seen (linkml and linkml-runtime 1.12.1, pySHACL 0.40.1, rdflib 7.6.0). gen-shacl writes any_of of
# bounds or patterns as sh:or of empty shapes, without the datatype too, and leaves out
# exactly_one_of, all_of and none_of: everything conforms (its page calls gen-shacl a beta).
# gen-json-schema has them all. The other way round rdflib_dumper, where any_of has a class or a
# date, writes a text: Oslo is no node, a query that follows the link finds nothing, and the shapes
# of the same schema refuse the data. Nothing is reported.
#
#   slot, value                                 JSON Schema  shapes    RDF
#   age 7: any_of maximum 5, minimum 10         invalid      conforms  7
#   code "c": any_of pattern ^a, ^b             invalid      conforms  "c"
#   one "ab": exactly_one_of pattern ^a, b$     invalid      conforms  "ab"
#   both "ac": all_of pattern ^a, b$            invalid      conforms  "ac"
#   other "x": none_of equals_string x          invalid      conforms  "x"
#   twin ex:Oslo: any_of range City, integer    valid        refused   "ex:Oslo"
#   since 2020-01-02: any_of range date, City   valid        refused   "2020-01-02"
#   near ex:Oslo: range City                    valid        conforms  ex:Oslo
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -qq --disable-pip-version-check \
    linkml==1.12.1 linkml-runtime==1.12.1 pyshacl==0.40.1 rdflib==7.6.0 jsonschema==4.26.0

cat > schema.yaml <<'YAML'
id: http://example.org/schema
name: schema
prefixes: {linkml: https://w3id.org/linkml/, ex: http://example.org/}
default_prefix: ex
default_range: string
imports: [linkml:types]
classes:
  City:
    tree_root: true
    attributes:
      id: {identifier: true, range: uriorcurie}
      age: {range: integer, any_of: [{maximum_value: 5}, {minimum_value: 10}]}
      code: {any_of: [{pattern: "^a"}, {pattern: "^b"}]}
      one: {exactly_one_of: [{pattern: "^a"}, {pattern: "b$"}]}
      both: {all_of: [{pattern: "^a"}, {pattern: "b$"}]}
      other: {none_of: [{equals_string: x}]}
      twin: {any_of: [{range: City}, {range: integer}]}
      since: {any_of: [{range: date}, {range: City}]}
      near: {range: City}
YAML
venv/bin/python -W ignore - <<'PY'
import json
import logging
from importlib.metadata import version

logging.disable(logging.WARNING)
import jsonschema
import pyshacl
from linkml.generators.jsonschemagen import JsonSchemaGenerator
from linkml.generators.pythongen import PythonGenerator
from linkml.generators.shaclgen import ShaclGenerator
from linkml_runtime.dumpers import rdflib_dumper
from linkml_runtime.utils.schemaview import SchemaView
from rdflib import Graph, URIRef

for package in ("linkml", "linkml-runtime", "pyshacl", "rdflib", "jsonschema"):
    print(package, version(package))
FILE, EX = "schema.yaml", "http://example.org/"
view = SchemaView(FILE)
classes = PythonGenerator(FILE).compile_module()
shapes = Graph().parse(data=ShaclGenerator(FILE).serialize(), format="turtle")
json_schema = json.loads(JsonSchemaGenerator(FILE).serialize())
DATA = {
    "age": 7,
    "code": "c",
    "one": "ab",
    "both": "ac",
    "other": "x",
    "twin": "ex:Oslo",
    "since": "2020-01-02",
    "near": "ex:Oslo",
}
seen = {}
for slot, value in DATA.items():
    city = {"id": "ex:Rome", slot: value}
    valid = jsonschema.Draft201909Validator(json_schema).is_valid(city)
    graph = Graph().parse(data=rdflib_dumper.dumps(classes.City(**city), view), format="turtle")
    term = graph.value(URIRef(EX + "Rome"), URIRef(EX + slot))
    graph.parse(data=f"<{EX}Oslo> a <{EX}City> .", format="turtle")
    conforms = pyshacl.validate(graph, shacl_graph=shapes)[0]
    seen[slot] = valid, conforms, term.n3(graph.namespace_manager)
    print(f"{slot:<6} {value!s:<11} JSON Schema: valid {valid!s:<6} shapes: conforms {conforms!s:<6}", end="")
    print("RDF:", seen[slot][2])
if seen != {
    "age": (False, True, '"7"^^xsd:integer'),
    "code": (False, True, '"c"'),
    "one": (False, True, '"ab"'),
    "both": (False, True, '"ac"'),
    "other": (False, True, '"x"'),
    "twin": (True, False, '"ex:Oslo"'),
    "since": (True, False, '"2020-01-02"'),
    "near": (True, True, "ex:Oslo"),
}:
    raise SystemExit("the behaviour has changed")
PY
