#!/usr/bin/env bash
# LangChain against openai: a "strict" tool of one model is two tools, one of them unusable.
#
# Expected. convert_to_openai_tool(model, strict=True) and openai's pydantic_function_tool(model)
# both promise the form for OpenAI's strict mode, in which every object closes its properties,
# free maps (dict[str, str]) are not supported, and recursion by $ref is. So: for the map an
# error, for the recursive model the same schema from both.
#
# Seen (langchain-core 1.8.3, openai 3.57.0, pydantic 2.14.4). For a map LangChain puts
# "additionalProperties": false over the type of the values. The schema is accepted and says that
# the only object is {}: a model held to it can bind no variable, ever. openai keeps the open map.
# For a model that contains itself LangChain replaces the recursion with {}, anything at all,
# which strict mode is there to exclude; openai keeps $ref. Neither says a word. Without strict,
# LangChain's schema of the map is right.
#
#   bindings: dict[str, str]   LangChain {"additionalProperties": false}, openai {"type": "string"}
#   parts: list["Plan"]        LangChain "items": {},                     openai "items": {"$ref": ...}
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -qq --disable-pip-version-check \
    langchain-core==1.8.3 openai==3.57.0 pydantic==2.14.4 jsonschema==4.26.0

venv/bin/python - <<'PY'
from importlib.metadata import version

from jsonschema import Draft202012Validator
from langchain_core.utils.function_calling import convert_to_openai_tool
from openai import pydantic_function_tool
from pydantic import BaseModel

print(*(f"{name} {version(name)}" for name in ("langchain-core", "openai", "pydantic")))


class Lookup(BaseModel):
    """Run a query with bindings."""

    query: str
    bindings: dict[str, str]


class Plan(BaseModel):
    """A step and its parts."""

    step: str
    parts: list["Plan"]


def schemas(model: type[BaseModel]) -> dict[str, dict]:
    tools = {
        "LangChain": convert_to_openai_tool(model),
        "LangChain, strict": convert_to_openai_tool(model, strict=True),
        "openai, strict": pydantic_function_tool(model),
    }
    return {name: tool["function"]["parameters"] for name, tool in tools.items()}


call = {"query": "SELECT ?y { ?x :capital ?y }", "bindings": {"x": ":France"}}
flawed = {"step": "find the country", "parts": [42]}
maps = {n: Draft202012Validator(s).is_valid(call) for n, s in schemas(Lookup).items()}
parts = {n: Draft202012Validator(s).is_valid(flawed) for n, s in schemas(Plan).items()}
for name in maps:
    kept = schemas(Lookup)[name]["properties"]["bindings"]["additionalProperties"]
    items = schemas(Plan)[name]["properties"]["parts"]["items"]
    print(f"{name:18} map of {kept}: a binding is allowed {maps[name]}")
    print(f"{'':18} parts of {items}: 42 is allowed as a plan {parts[name]}")
if (list(maps.values()), list(parts.values())) != ([True, False, True], [True, True, False]):
    raise SystemExit("the behaviour has changed")
PY
