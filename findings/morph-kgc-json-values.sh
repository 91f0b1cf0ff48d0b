#!/usr/bin/env bash
# morph-kgc: the values of JSON are rewritten on their way through pandas.
#
# Expected. RML over JSON, no datatype in the mapping: the literal is the value in the source, as a
# text or, where an engine derives datatypes, as "true"^^xsd:boolean and "180"^^xsd:integer. What
# comes of one record does not depend on the others.
#
# Seen (morph-kgc 2.10.0, pandas 2.3.3). JSON's true and false become the texts "True" and
# "False" without a datatype, Python's spelling and none of XML Schema's. A whole number gets ".0"
# as soon as another record has a fraction in the same field, so an identifier or a count joins
# nothing any more, and the IRIs that a template makes of it are others. With whole numbers only
# it is right.
#
#   {"married": true}                                  "True"
#   {"height": 180} next to {"height": 171.5}          "180.0", <http://example.org/h/180.0>
#   {"height": 180} next to {"height": 171}            "180",   <http://example.org/h/180>
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -qq --disable-pip-version-check \
    morph-kgc==2.10.0 pandas==2.3.3

venv/bin/python - <<'PY'
import json
import logging
import pathlib
from importlib.metadata import version

import morph_kgc

logging.disable(logging.WARNING)
print("morph-kgc", version("morph-kgc"), "pandas", version("pandas"))
pathlib.Path("map.ttl").write_text("""
@prefix rr: <http://www.w3.org/ns/r2rml#> . @prefix rml: <http://semweb.mmlab.be/ns/rml#> .
@prefix ql: <http://semweb.mmlab.be/ns/ql#> . @prefix : <http://example.org/> .
<#People> a rr:TriplesMap ;
  rml:logicalSource [ rml:source "people.json" ; rml:referenceFormulation ql:JSONPath ;
                      rml:iterator "$[*]" ] ;
  rr:subjectMap [ rr:template "http://example.org/{name}" ] ;
  rr:predicateObjectMap [ rr:predicate :married ; rr:objectMap [ rml:reference "married" ] ] ;
  rr:predicateObjectMap [ rr:predicate :height ; rr:objectMap [ rml:reference "height" ] ] ;
  rr:predicateObjectMap [ rr:predicate :tall ;
                          rr:objectMap [ rr:template "http://example.org/h/{height}" ] ] .
""")


def of_ada(height_of_the_other: float) -> list[str]:
    people = [
        {"name": "ada", "married": True, "height": 180},
        {"name": "bea", "married": False, "height": height_of_the_other},
    ]
    pathlib.Path("people.json").write_text(json.dumps(people))
    graph = morph_kgc.materialize("[People]\nmappings: map.ttl\n")
    return sorted(o.n3() for s, o in graph.subject_objects() if s.endswith("ada"))


mixed, whole = of_ada(171.5), of_ada(171)
print("next to 171.5:", *mixed)
print("next to 171:  ", *whole)
if (mixed, whole) != (
    ['"180.0"', '"True"', "<http://example.org/h/180.0>"],
    ['"180"', '"True"', "<http://example.org/h/180>"],
):
    raise SystemExit("the behaviour has changed")
PY
