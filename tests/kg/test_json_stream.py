"""A JSON text in parts is read as ``json`` reads it whole, and a long result takes little memory."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rdflib import Literal

from kgwb.errors import GraphError
from kgwb.kg.responses import EndpointResponse, JsonStream

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20
)
CELL = {"type": "literal", "value": "a"}


def in_parts(text: str, size: int) -> Iterator[str]:
    for start in range(0, len(text), size):
        yield text[start : start + size]


def read(stream: JsonStream) -> Any:
    """Read any value through the methods for objects and arrays as far as they go."""
    if stream.next_character() == "{":
        return {name: read(stream) for name in stream.read_members()}
    if stream.next_character() == "[":
        return [read(stream) for _ in stream.read_items()]
    return stream.read_value()


def read_whole(text: str, size: int) -> Any:
    stream = JsonStream(in_parts(text, size))
    value = read(stream)
    stream.read_end()
    return value


@given(VALUES, st.integers(1, 9), st.sampled_from([None, 1]))
def test_any_value_in_parts_of_any_size_is_read_as_a_whole(
    value: Any, size: int, indent: int | None
) -> None:
    text = json.dumps(value, indent=indent)
    assert read_whole(text, size) == value
    assert JsonStream(in_parts(text, size)).read_value() == value


@given(st.text('{}[]",:1e-.tru\\ \n', max_size=12), st.integers(1, 4))
def test_a_text_is_accepted_if_and_only_if_json_accepts_it(text: str, size: int) -> None:
    try:
        expected = json.loads(text, strict=False)
    except ValueError:
        with pytest.raises(ValueError):  # its message is not the point
            read_whole(text, size)
    else:
        assert read_whole(text, size) == expected


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
    assert peak < 300_000


def test_a_broken_text_is_an_error_with_its_place() -> None:
    with pytest.raises(GraphError, match="at character 31"):
        response('{"head": {"vars": ["x"]},     oh').parse_result_set(("x",), 10)
    with pytest.raises(GraphError, match="broken JSON"):
        response("[" * 100_000).parse_boolean()
