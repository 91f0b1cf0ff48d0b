#!/usr/bin/env bash
# outlines-core: what a model may write by its expression is not what the JSON schema says.
#
# Expected. build_regex_from_schema makes the expression that binds a model to a JSON schema. A schema
# that it cannot express is refused ("Unsupported JSON Schema structure"), as for a bare "minimum".
#
# Seen (outlines_core 0.2.14). Beside "type", the bounds of a number are dropped without a word: 99
# passes for 1 to 5, and so do two equal items for "uniqueItems". The other way round, valid replies
# are impossible: a date-time with an offset, a number such as 1e5, an item beside the named ones where
# "additionalProperties" is true, and a "pattern" must match the whole text, where JSON schema looks
# for it anywhere. A model that is bound so answers within other limits than those that it was told.
#
#   schema                                    text                          outlines_core  jsonschema
#   integer, minimum 1, maximum 5             99                            may            must not
#   array, uniqueItems                        [1,1]                         may            must not
#   string, pattern [0-9]                     "a1b"                         cannot         may
#   string, format date-time                  "2024-02-03T10:00:00+02:00"   cannot         may
#   number                                    1e5                           cannot         may
#   object, additionalProperties true         {"a":"x","b":1}               cannot         may
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -qq --disable-pip-version-check \
    outlines_core==0.2.14 jsonschema==4.25.1

venv/bin/python - <<'PY'
import json
import re
from importlib.metadata import version

from jsonschema import Draft202012Validator, FormatChecker
from outlines_core.json_schema import build_regex_from_schema

print("outlines_core", version("outlines_core"), "jsonschema", version("jsonschema"))
A = {"a": {"type": "string"}}
CASES = [
    ({"type": "integer", "minimum": 1, "maximum": 5}, "99"),
    ({"type": "array", "items": {"type": "integer"}, "uniqueItems": True}, "[1,1]"),
    ({"type": "string", "pattern": "[0-9]"}, '"a1b"'),
    ({"type": "string", "format": "date-time"}, '"2024-02-03T10:00:00+02:00"'),
    ({"type": "number"}, "1e5"),
    ({"type": "object", "properties": A, "required": ["a"], "additionalProperties": True},
     '{"a":"x","b":1}'),
    ({"type": "integer"}, "3"),
]
seen = []
for schema, text in CASES:
    expression = build_regex_from_schema(json.dumps(schema))
    can = re.fullmatch(expression, text) is not None
    checker = Draft202012Validator(schema, format_checker=FormatChecker())
    may = checker.is_valid(json.loads(text))
    seen.append((can, may))
    print(f"{text:30} by the expression: {can}, by the schema: {may}")
other = [(True, False)] * 2 + [(False, True)] * 4
if seen != [*other, (True, True)]:
    raise SystemExit("the behaviour has changed")
PY
