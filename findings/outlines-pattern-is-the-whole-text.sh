#!/usr/bin/env bash
# outlines-core: a pattern of a JSON schema must be the whole text.
#
# Expected. "Regular expressions are not implicitly anchored" (JSON Schema, Validation, 6.3.3 and
# Core, 6.4): "pattern" is found anywhere in the text, as pydantic's Field(pattern=...) and
# jsonschema do.
#
# Seen (outlines-core 0.2.14, jsonschema 4.26.0, pydantic 2.14.4). The grammar lets nothing stand
# before or after the match. A model that is asked for an IRI with {"pattern": "Q[0-9]+"} can write
# no IRI, only "Q42": what is valid cannot be said, and what is said is another thing.
#
#   pattern "Q[0-9]+"    "http://www.wikidata.org/entity/Q42"    jsonschema, pydantic: valid
#                                                                outlines-core: cannot be written
#   pattern "^Q[0-9]+"   "Q42-Douglas"                           the same
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -qq --disable-pip-version-check \
    outlines-core==0.2.14 jsonschema==4.26.0 pydantic==2.14.4

venv/bin/python - <<'PY'
import json
import re
from importlib.metadata import version

import jsonschema
from outlines_core.json_schema import build_regex_from_schema
from pydantic import Field, TypeAdapter, ValidationError
from typing import Annotated

for package in ("outlines-core", "jsonschema", "pydantic"):
    print(package, version(package))
IRI = "http://www.wikidata.org/entity/Q42"
CASES = [("Q[0-9]+", IRI), ("^Q[0-9]+", "Q42-Douglas"), ("[0-9]$", IRI), ("^Q[0-9]+$", "Q42")]
seen = []
for pattern, text in CASES:
    schema = {"type": "string", "pattern": pattern}
    regex = build_regex_from_schema(json.dumps(schema))
    can_be_written = re.fullmatch(regex, json.dumps(text)) is not None
    by_jsonschema = jsonschema.Draft202012Validator(schema).is_valid(text)
    try:
        TypeAdapter(Annotated[str, Field(pattern=pattern)]).validate_python(text)
        by_pydantic = True
    except ValidationError:
        by_pydantic = False
    print(f"{pattern:<10} {text:<36} jsonschema {by_jsonschema} pydantic {by_pydantic} outlines-core {can_be_written}")
    seen.append((by_jsonschema, by_pydantic, can_be_written))
if seen != [(True, True, False)] * 3 + [(True, True, True)]:
    raise SystemExit("the behaviour has changed")
PY
