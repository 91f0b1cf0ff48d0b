#!/usr/bin/env bash
# owlrl: owl:hasKey compares all keys but the last, so a single key makes every pair "the same".
#
# Expected. OWL 2 RL, rule prp-key: two members of the class are owl:sameAs when they agree on a
# value of EVERY property of the key. Countries with the codes "FR" and "DE" stay two things.
#
# Seen (owlrl 7.6.2 on rdflib 7.6.0). The loop over the properties stops one short. A key of one
# property compares nothing, and a thing that has a value for it is the same as every other member
# of the class: France owl:sameAs Germany. The rules for owl:sameAs then copy all statements, so
# each of the two has both capitals. A key of two properties compares the first
# only. No error is reported.
#
#   key (code):         France sameAs Germany; capitals of France: Berlin, Paris
#   key (name, born):   the two with one name and two birth years are the same
#   key (born, name):   they are not
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -qq --disable-pip-version-check \
    owlrl==7.6.2 rdflib==7.6.0

venv/bin/python - <<'PY'
from importlib.metadata import version

import owlrl
from rdflib import OWL, Graph, Namespace

print("owlrl", version("owlrl"), "rdflib", version("rdflib"))
E = Namespace("http://example.org/")
PREFIXES = "@prefix : <http://example.org/> . @prefix owl: <http://www.w3.org/2002/07/owl#> . "
COUNTRIES = """
:Country owl:hasKey ( :code ) .
:France a :Country ; :code "FR" ; :capital :Paris .
:Germany a :Country ; :code "DE" ; :capital :Berlin ."""
PEOPLE = """
:Person owl:hasKey ( KEY ) .
:elder a :Person ; :name "Strauss" ; :born 1804 .
:younger a :Person ; :name "Strauss" ; :born 1825 ."""


def closed(turtle: str) -> Graph:
    graph = Graph().parse(data=PREFIXES + turtle, format="turtle")
    owlrl.DeductiveClosure(owlrl.OWLRL_Semantics).expand(graph)
    return graph


graph = closed(COUNTRIES)
capitals = sorted(c.removeprefix(E) for c in graph.objects(E.France, E.capital))
one_key = (E.France, OWL.sameAs, E.Germany) in graph
pair = (E.elder, OWL.sameAs, E.younger)
name_first = pair in closed(PEOPLE.replace("KEY", ":name :born"))
born_first = pair in closed(PEOPLE.replace("KEY", ":born :name"))
print("key (code): France sameAs Germany:", one_key, "| capitals of France:", *capitals)
print("key (name born): same person:", name_first, "| key (born name):", born_first)
if (one_key, capitals, name_first, born_first) != (True, ["Berlin", "Paris"], True, False):
    raise SystemExit("the behaviour has changed")
PY
