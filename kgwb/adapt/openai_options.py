"""The parameters of a request of openai: which were given, and which of them are recorded."""

from __future__ import annotations

from kgwb.adapt.clients import json_options
from kgwb.records import JsonObject

DELIVERY_OPTIONS = frozenset({"extra_headers", "timeout"})
"""Parameters that say how a request is sent; they are not recorded, and may hold secrets."""


def given_options(options: JsonObject) -> JsonObject:
    """Return the parameters that have a value, without openai's marks for those that have none."""
    import openai

    missing = (openai.NotGiven, openai.Omit)
    return {key: value for key, value in options.items() if not isinstance(value, missing)}


def recorded_options(options: JsonObject) -> JsonObject:
    """Return the parameters that decide the reply, as JSON data."""
    return json_options(
        {key: value for key, value in options.items() if key not in DELIVERY_OPTIONS}
    )
