#!/usr/bin/env bash
# DSPy: a model that gives null for an optional text, as it is told to, has answered "null".
#
# Expected. For a field of type Optional[str] the ChatAdapter tells the model that "the value you
# produce must adhere to the JSON schema" of a string or null. So the reply null is None, as it is
# for Optional[int] and in the JSONAdapter; "Rome" in quotation marks, which is that schema's text,
# is Rome; and 12 for str | int | None is a number, as for int | str.
#
# Seen (dspy 3.4.1, json-repair 0.64.6). A union with str and None is not read as JSON: null, and
# None and "None", which the prompt's "valid Python Union[str, NoneType]" asks for, are texts. "Is
# there a mayor?" by `is None` is answered yes, and the name is "null". A model has no way to say
# none. Quotation marks stay in the answer, and 12 is the text "12".
#
#   type                reply     ChatAdapter   JSONAdapter
#   Optional[str]       null      "null"        None
#   Optional[str]       "Rome"    "\"Rome\""    "Rome"
#   str | int | None    12        "12"          12
#   Optional[int]       null      None          None
#   int | str           12        12            12
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -qq --disable-pip-version-check \
    dspy==3.4.1 json-repair==0.64.6

venv/bin/python -W ignore - <<'PY'
import os

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
from importlib.metadata import version
from typing import Optional, Union

import dspy

for package in ("dspy", "json-repair"):
    print(package, version(package))
CASES = [
    (Optional[str], "null"),
    (Optional[str], "None"),
    (Optional[str], '"Rome"'),
    (Union[str, int, None], "12"),
    (Optional[int], "null"),
    (Union[int, str], "12"),
]
seen = []
for kind, reply in CASES:
    fields = {"question": (str, dspy.InputField()), "mayor": (kind, dspy.OutputField())}
    signature = dspy.Signature(fields)
    chat, by_json = dspy.ChatAdapter(), dspy.JSONAdapter()
    prompt = chat.format(signature, [], {"question": "Who is the mayor?"})[0]["content"]
    told = next(line for line in prompt.splitlines() if line.startswith("{mayor}")).partition("# note: ")[2]
    values = [chat.parse(signature, f"[[ ## mayor ## ]]\n{reply}\n\n[[ ## completed ## ]]")["mayor"]]
    if reply != "None":  # which is no JSON
        values.append(by_json.parse(signature, f'{{"mayor": {reply}}}')["mayor"])
    print(told, f"    reply {reply}: ChatAdapter {values[0]!r}, JSONAdapter {values[1:]}", sep="\n")
    seen.append(values)
if seen != [["null", None], ["None"], ['"Rome"', "Rome"], ["12", 12], [None, None], [12, 12]]:
    raise SystemExit("the behaviour has changed")
PY
