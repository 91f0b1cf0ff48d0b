#!/usr/bin/env bash
# pySHACL on rdflib: sh:datatype accepts what Python can read, not what XML Schema allows.
#
# Expected. SHACL, sh:datatype: for the datatypes that SPARQL 1.1 supports, a literal whose text
# is not in the datatype's lexical space (an ill-typed literal) is a violation, and one whose text
# is in it is none. XML Schema: an integer is an optional sign and the digits 0 to 9; a decimal
# has no exponent; a dateTime may have a negative year or more than four digits of year, and the
# hour 24:00:00.
#
# Seen (pySHACL 0.40.1, rdflib 7.6.0). The test is whether rdflib could make a Python value, so
# both errors happen: bad data conforms and good data is refused. The load also rewrites the bad
# text ("1_000" is 1000 afterwards), so it is not found later. Oxigraph (pyoxigraph 0.5.13), asked
# whether it can compute with the literal, agrees with XML Schema on all six.
#
#   "1_000"^^xsd:integer                  conforms, and is the number 1000
#   "1e3"^^xsd:decimal                    conforms, and is the number 1000
#   "-0044-03-15T00:00:00Z"^^xsd:dateTime violation
#   "12024-01-01T00:00:00Z"^^xsd:dateTime violation
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -qq --disable-pip-version-check \
    pyshacl==0.40.1 rdflib==7.6.0 pyoxigraph==0.5.13

venv/bin/python - <<'PY'
import logging
from importlib.metadata import version

import pyoxigraph
import pyshacl
from rdflib import Graph

logging.disable(logging.WARNING)  # rdflib logs the values that it cannot make
print(*(f"{name} {version(name)}" for name in ("pyshacl", "rdflib", "pyoxigraph")))
PREFIXES = """@prefix : <http://example.org/> . @prefix sh: <http://www.w3.org/ns/shacl#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> . """
VALID_IN_XML_SCHEMA = {
    '"1000"^^xsd:integer': True,
    '"1_000"^^xsd:integer': False,
    '"1e3"^^xsd:decimal': False,
    '"2024-01-01T00:00:00Z"^^xsd:dateTime': True,
    '"-0044-03-15T00:00:00Z"^^xsd:dateTime': True,
    '"12024-01-01T00:00:00Z"^^xsd:dateTime': True,
}


def conforms(literal: str) -> bool:
    datatype = literal.split("^^")[1]
    data = Graph().parse(data=f"{PREFIXES} :x :value {literal} .", format="turtle")
    property_shape = f"[ sh:path :value ; sh:datatype {datatype} ]"
    shape = f":S a sh:NodeShape ; sh:targetNode :x ; sh:property {property_shape} ."
    return pyshacl.validate(
        data, shacl_graph=Graph().parse(data=PREFIXES + shape, format="turtle")
    )[0]


def computes(literal: str) -> bool:
    kind = "YEAR" if "dateTime" in literal else "ABS"
    prefix = "PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>"
    [row] = pyoxigraph.Store().query(f"{prefix} SELECT ({kind}({literal}) AS ?v) {{}}")
    return row["v"] is not None


seen = {literal: conforms(literal) for literal in VALID_IN_XML_SCHEMA}
oxigraph = {literal: computes(literal) for literal in VALID_IN_XML_SCHEMA}
for literal, valid in VALID_IN_XML_SCHEMA.items():
    print(
        f"{literal:40} valid {valid!s:5} pySHACL {seen[literal]!s:5} Oxigraph {oxigraph[literal]}"
    )
plain = Graph().parse(data=PREFIXES + ':x :value "1_000"^^xsd:integer .', format="turtle")
[rewritten] = plain.objects()
print("after loading:", rewritten)
wrong = [literal for literal, valid in VALID_IN_XML_SCHEMA.items() if seen[literal] != valid]
if (len(wrong), oxigraph, str(rewritten)) != (4, VALID_IN_XML_SCHEMA, "1000"):
    raise SystemExit("the behaviour has changed")
PY
