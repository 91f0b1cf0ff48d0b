"""JSON schemas in the strict subset that OpenAI-compatible servers can enforce word for word.

The subset: the root is an object, objects list all their fields, require them all and take no others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_NOT_STRICT = frozenset(
    {
        "contains", "dependentRequired", "dependentSchemas", "else", "if", "maxContains", "minContains",
        "not", "patternProperties", "prefixItems", "propertyNames", "then", "unevaluatedItems",
        "unevaluatedProperties", "uniqueItems",
    }
)  # fmt: skip
_DROPPED = frozenset({"default", "discriminator", "examples"})


class _CannotBeStrictError(ValueError):
    """The schema says something that the subset has no words for."""


def strict_schema(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """A strict copy of a pydantic schema, or None where there is none (free-form objects, tuples, ...).

    Defaults go and every field becomes required, so whatever fits the copy fits the schema too.
    """
    if schema.get("type") != "object":
        return None
    try:
        return _strict(schema)
    except _CannotBeStrictError:
        return None


def _strict(node: Mapping[str, Any]) -> dict[str, Any]:
    if "$ref" in node:
        return {"$ref": node["$ref"]}  # nothing may stand beside a reference
    if _NOT_STRICT & node.keys():
        raise _CannotBeStrictError
    if "allOf" in node:
        return _strict(_only(node["allOf"]))
    copy = {_renamed(key): _strict_value(key, value) for key, value in node.items() if key not in _DROPPED}
    if node.get("type") == "object":
        if node.get("additionalProperties") or "properties" not in node:
            raise _CannotBeStrictError
        copy["required"] = list(copy["properties"])
        copy["additionalProperties"] = False
    return copy


def _renamed(key: str) -> str:
    return "anyOf" if key == "oneOf" else key


def _strict_value(key: str, value: Any) -> Any:
    if key in ("properties", "$defs"):
        return {name: _strict(node) for name, node in value.items()}
    if key in ("anyOf", "oneOf"):
        return [_strict(node) for node in value]
    return _strict(value) if key == "items" else value


def _only(nodes: list[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Older pydantic wraps a reference that has a description into an allOf of one."""
    if len(nodes) != 1:
        raise _CannotBeStrictError
    return nodes[0]
