#!/usr/bin/env bash
# outlines-core: bounds of a JSON schema are passed over, without a word.
#
# Expected. A grammar made of a schema lets a model write what is valid by it, or the schema is
# refused. outlines-core refuses some keywords that it does not know. llguidance, which is used in
# the same place, keeps minimum, maximum and multipleOf, and names uniqueItems and "not" as not
# implemented.
#
# Seen (outlines-core 0.2.14, llguidance 1.9.1). The regular expression is the same with and
# without minimum, maximum, exclusiveMinimum, multipleOf, uniqueItems and "not". A model that must
# choose from rows 1 to 5 may answer 9, or one row twice, and the reply is taken to be valid
# because the form was enforced.
#
#   {"type": "integer", "minimum": 1, "maximum": 5}       lets 9 pass
#   {"type": "integer", "multipleOf": 5}                  lets 3 pass
#   {"type": "array", ..., "uniqueItems": true}           lets [1, 1] pass
#   {"type": "string", "not": {"const": "a"}}             lets "a" pass
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -qq --disable-pip-version-check \
    outlines-core==0.2.14 llguidance==1.9.1

venv/bin/python - <<'PY'
import json
import re
from importlib.metadata import version

from llguidance import LLMatcher
from outlines_core.json_schema import build_regex_from_schema

for package in ("outlines-core", "llguidance"):
    print(package, version(package))
NUMBERS = {"type": "array", "items": {"type": "integer"}}
CASES = [
    ({"type": "integer"}, {"minimum": 1, "maximum": 5}, "9"),
    ({"type": "integer"}, {"exclusiveMinimum": 0}, "0"),
    ({"type": "integer"}, {"multipleOf": 5}, "3"),
    (NUMBERS, {"uniqueItems": True}, "[1, 1]"),
    ({"type": "string"}, {"not": {"const": "a"}}, '"a"'),
]
seen = []
for schema, bounds, text in CASES:
    bounded = json.dumps({**schema, **bounds})
    regex = build_regex_from_schema(bounded)
    is_same = regex == build_regex_from_schema(json.dumps(schema))
    passes = re.fullmatch(regex, text) is not None
    other = LLMatcher.validate_grammar(LLMatcher.grammar_from_json_schema(bounded)) or "accepted"
    print(f"{bounds}: the same expression {is_same}, {text} passes {passes}; llguidance: {other}")
    seen.append((is_same, passes, other == "accepted"))
if seen != [(True, True, True)] * 3 + [(True, True, False)] * 2:
    raise SystemExit("the behaviour has changed")
PY
