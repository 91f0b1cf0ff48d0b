#!/usr/bin/env bash
# pySHACL: NaN, booleans and dates keep bounds that they cannot be compared with, and IRIs sh:lessThan.
#
# Expected. SHACL, 4.3.1 to 4.3.4: each value for which the SPARQL comparison with the bound "does not
# return true" is a violation; 4.5.3 (sh:lessThan): so is a pair "where the two values cannot be
# compared". In SPARQL each comparison with NaN is false, and one of a boolean with a number, of a
# date with a dateTime or of two IRIs is an error.
#
# Seen (pySHACL 0.40.1, rdflib 7.6.0, pyoxigraph 0.5.13). All of these conform: rdflib's order of all
# terms is asked in place of SPARQL's comparison. A score of NaN, which a table has for an empty cell,
# passes "at most 100", and so does a date in the wrong datatype, or a start and an end that are
# things in place of numbers. pyoxigraph, asked the same comparison, gives true for none of them.
#
#   value                    constraint                                conforms   in SPARQL
#   "NaN"^^xsd:double        sh:maxInclusive 100                         yes      false
#   true                     sh:maxInclusive 5                           yes      error
#   "2020-01-01"^^xsd:date   sh:maxInclusive "2021-01-01T00:00:00Z"      yes      error
#   :a                       sh:lessThan, of :b                          yes      error
#   "x"                      sh:maxInclusive 5                           no       error
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -qq --disable-pip-version-check \
    pyshacl==0.40.1 rdflib==7.6.0 pyoxigraph==0.5.13

venv/bin/python - <<'PY'
from importlib.metadata import version

import pyoxigraph
import pyshacl
from rdflib import Graph

print(*(f"{name} {version(name)}" for name in ("pyshacl", "rdflib", "pyoxigraph")))
NAMES = {
    "": "http://example.org/",
    "sh": "http://www.w3.org/ns/shacl#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
}
TURTLE = "".join(f"@prefix {prefix}: <{name}> . " for prefix, name in NAMES.items())
SPARQL = "".join(f"PREFIX {prefix}: <{name}> " for prefix, name in NAMES.items())
MIDNIGHT = '"2021-01-01T00:00:00Z"^^xsd:dateTime'
DATE = '"2020-01-01"^^xsd:date'
CASES = (
    ('"NaN"^^xsd:double', "sh:maxInclusive 100", "<= 100"),
    ("true", "sh:maxInclusive 5", "<= 5"),
    (DATE, f"sh:maxInclusive {MIDNIGHT}", f"<= {MIDNIGHT}"),
    (":a", "sh:lessThan :end", "< :b"),
    ('"x"', "sh:maxInclusive 5", "<= 5"),
)
seen = []
for value, constraint, comparison in CASES:
    data = Graph().parse(data=f"{TURTLE} :x :value {value} ; :end :b .", format="turtle")
    shapes = Graph().parse(
        data=f"{TURTLE} :S a <{NAMES['sh']}NodeShape> ; sh:targetNode :x ;"
        f" sh:property [ sh:path :value ; {constraint} ] .",
        format="turtle",
    )
    conforms = pyshacl.validate(data, shacl_graph=shapes)[0]
    ask = f"{SPARQL} ASK {{ VALUES ?value {{ {value} }} FILTER(?value {comparison}) }}"
    true_in_sparql = bool(pyoxigraph.Store().query(ask))
    seen.append((conforms, true_in_sparql))
    print(f"{value:24} {constraint:55} conforms {conforms}, true in SPARQL {true_in_sparql}")
if seen != [(True, False)] * 4 + [(False, False)]:
    raise SystemExit("the behaviour has changed")
PY
