#!/usr/bin/env bash
# PyShEx: a set of languages takes languages that are not in it.
#
# Expected. ShEx 2.1, 5.4.6 (value sets): a language stem [@en~] is matched as a basic language range of
# RFC 4647, 3.3.1: "en" itself, or "en" followed by a hyphen and more; what stands behind a minus sign is
# left out. RFC 5646, 2.1.1: language tags do not distinguish case.
#
# Seen (PyShEx 0.9.0, rdflib 7.6.0). A stem is compared as the beginning of a text, so that [@en~] takes
# "enm", which is Middle English. Exclusions are not looked at where they are languages, though those of
# IRIs are. Tags are compared letter by letter, so that a schema with [@en-gb] refuses what is written as
# @en-GB.
#
#   value set              label                 expected       PyShEx
#   [@en~]                 "knyght"@enm          fails          conforms
#   [@en~ - @en-GB]        "lorry"@en-GB         fails          conforms
#   [@en~ - @en-GB~]       "lorry"@en-GB         fails          conforms
#   [@en-gb]               "lorry"@en-GB         conforms       fails
#   [:v~ - :v1]            :v1                   fails          fails
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -qq --disable-pip-version-check PyShEx==0.9.0 rdflib==7.6.0

venv/bin/python -W ignore - <<'PY'
from importlib.metadata import version

from pyshex import ShExEvaluator

print(*(f"{name} {version(name)}" for name in ("PyShEx", "rdflib")))
# The value set, the value, whether it conforms by the standard, and whether it does in PyShEx
ROWS = [
    ("[@en~]", '"lorry"@en-GB', True, True),
    ("[@en~]", '"knyght"@enm', False, True),
    ("[@en~ - @en-GB]", '"truck"@en-US', True, True),
    ("[@en~ - @en-GB]", '"lorry"@en-GB', False, True),
    ("[@en~ - @en-GB~]", '"lorry"@en-GB', False, True),
    ("[@en-GB]", '"lorry"@en-GB', True, True),
    ("[@en-gb]", '"lorry"@en-GB', True, False),
    ("[:v~ - :v1]", ":v1", False, False),
]
changed = False
for values, value, by_standard, seen in ROWS:
    # A line break says that this is a text and no name of a file.
    shapes = f"PREFIX : <http://example.org/>\n:Shape {{ :label {values} }}"
    data = f"@prefix : <http://example.org/> .\n:thing :label {value} ."
    evaluator = ShExEvaluator(
        data, shapes, focus="http://example.org/thing", start="http://example.org/Shape"
    )
    (result,) = evaluator.evaluate()
    print(f"{values:18} {value:16} by the standard {by_standard!s:5} PyShEx {result.result}")
    changed |= result.result != seen
if changed:
    raise SystemExit("the behaviour has changed")
PY
