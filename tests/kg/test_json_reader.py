"""A JSON text is read part by part as ``json`` reads it whole, and a long result takes little memory."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rdflib import Literal

from kgwb.errors import GraphError
from kgwb.kg.responses import EndpointResponse, JsonReader

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20
)
CELL = {"type": "literal", "value": "a"}


def read(reader: JsonReader) -> Any:
    """Read any value through the methods for objects and arrays as far as they go."""
    if reader.next_character() == "{":
        return {name: read(reader) for name in reader.read_members()}
    if reader.next_character() == "[":
        return [read(reader) for _ in reader.read_parts("[", "]")]
    return reader.read_value()


def read_whole(text: str) -> Any:
    reader = JsonReader(text)
    value = read(reader)
    if reader.next_character():
        raise reader.error("expected the end")
    return value


@given(VALUES, st.sampled_from([None, 1]))
def test_any_value_is_read_as_json_reads_it(value: Any, indent: int | None) -> None:
    text = json.dumps(value, indent=indent)
    assert read_whole(text) == value


@given(st.text('{}[]",:1e-.tru\\ \n', max_size=12))
def test_a_text_is_accepted_if_and_only_if_json_accepts_it(text: str) -> None:
    try:
        expected = json.loads(text, strict=False)
    except ValueError:
        with pytest.raises(ValueError):  # its message is not the point
            read_whole(text)
    else:
        assert read_whole(text) == expected


def response(text: str) -> EndpointResponse:
    return EndpointResponse(text.encode(), "application/sparql-results+json", is_partial=False)


def test_the_head_of_a_result_may_come_last_and_the_last_of_two_lists_counts() -> None:
    first = json.dumps({"bindings": [{"x": CELL}, {"x": CELL}]})
    last = json.dumps({"bindings": [{"y": CELL}], "more": [1]})
    text = f'{{"results": {first}, "results": {last}, "head": {{"vars": ["x", "y"]}}}}'
    for variables in ((), ("x", "y")):
        result = response(text).parse_result_set(variables, 10)
        assert (result.variables, result.rows) == (("x", "y"), ((None, Literal("a")),))


def test_rows_beyond_the_limit_take_no_memory() -> None:
    row, many = '{"x": {"type": "bnode", "value": "b"}}', 8_000
    text = f'{{"head": {{"vars": ["x"]}}, "results": {{"bindings": [{",".join([row] * many)}]}}}}'
    reply = response(text)
    tracemalloc.start()
    try:
        result = reply.parse_result_set(("x",), 10)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert result.cut and len(result.rows) == 10
    assert peak < 2 * len(text)


def test_a_broken_text_is_an_error_with_its_place() -> None:
    with pytest.raises(GraphError, match=r"\(char 30\)"):
        response('{"head": {"vars": ["x"]},     oh').parse_result_set(("x",), 10)
    with pytest.raises(GraphError, match="broken JSON"):
        response("[" * 100_000).parse_boolean()
