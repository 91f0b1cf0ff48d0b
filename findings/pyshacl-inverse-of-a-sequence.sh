#!/usr/bin/env bash
# pySHACL: the inverse of a sequence path is walked in the wrong order.
#
# Expected. SHACL (property paths) maps sh:inversePath of any well-formed path to SPARQL's ^path,
# and ^(:parent/:sibling) goes from the end of the sequence to its start: the last step back
# first. From an aunt it leads to the child.
#
# Seen (pySHACL 0.40.1 on rdflib 7.6.0). Each step is turned round but their order is kept, as in
# ^:parent/^:sibling. It finds no value node, so a shape that forbids such a child conforms and
# one that demands it is violated; rdflib's own SPARQL gives the child for the same path. Written
# by hand as a sequence of two inverse steps, it is right.
#
#   inverse of the sequence: forbidden -> conforms True,  demanded -> conforms False
#   sequence of the inverses: forbidden -> conforms False, demanded -> conforms True
#   SPARQL ^(:parent/:sibling): anna
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -qq --disable-pip-version-check \
    pyshacl==0.40.1 rdflib==7.6.0

venv/bin/python - <<'PY'
from importlib.metadata import version

import pyshacl
from rdflib import Graph

print("pySHACL", version("pyshacl"), "rdflib", version("rdflib"))
PREFIXES = "@prefix : <http://example.org/> . @prefix sh: <http://www.w3.org/ns/shacl#> . "
DATA = Graph().parse(data=PREFIXES + ":anna :parent :ben . :ben :sibling :cleo .", format="turtle")
INVERSE_OF_SEQUENCE = "[ sh:inversePath ( :parent :sibling ) ]"
SEQUENCE_OF_INVERSES = "( [ sh:inversePath :sibling ] [ sh:inversePath :parent ] )"
FORBIDDEN, DEMANDED = "sh:maxCount 0", "sh:minCount 1"


def conforms(path: str, constraint: str) -> bool:
    shape = (
        f":S a sh:NodeShape ; sh:targetNode :cleo ; sh:property [ sh:path {path} ; {constraint} ] ."
    )
    shapes = Graph().parse(data=PREFIXES + shape, format="turtle")
    return pyshacl.validate(DATA, shacl_graph=shapes)[0]


seen = {
    path: (conforms(path, FORBIDDEN), conforms(path, DEMANDED))
    for path in (INVERSE_OF_SEQUENCE, SEQUENCE_OF_INVERSES)
}
query = "PREFIX : <http://example.org/> SELECT ?x { :cleo ^(:parent/:sibling) ?x }"
children = [row.x.removeprefix("http://example.org/") for row in DATA.query(query)]
for path, (forbidden, demanded) in seen.items():
    print(path, "| forbidden: conforms", forbidden, "| demanded: conforms", demanded)
print("SPARQL:", *children)
if (seen[INVERSE_OF_SEQUENCE], seen[SEQUENCE_OF_INVERSES], children) != (
    (True, False),
    (False, True),
    ["anna"],
):
    raise SystemExit("the behaviour has changed")
PY
