"""What endpoints really send: results in four formats and other charsets, with null in them, or broken off."""

from __future__ import annotations

import json
import tracemalloc
from operator import itemgetter
from pathlib import Path
from typing import Any

import pyoxigraph as ox
import pytest
from hostile.servers import Said, Seen, said, serving
from hypothesis import example, given
from hypothesis import strategies as st
from rdflib import Literal
from tables import read_table

from kgwb.errors import GraphError, GraphTimeoutError, GraphUnreachableError
from kgwb.kg.base import ResultSet
from kgwb.kg.endpoint import Endpoint
from kgwb.kg.responses import TIME_LIMIT_SIGNS, EndpointResponse, JsonReader

HERE = Path(__file__).parent
JSON, XML = "application/sparql-results+json", "application/sparql-results+xml"
TSV, CSV = "text/tab-separated-values", "text/csv"
FORMATS = {
    JSON: ox.QueryResultsFormat.JSON,
    XML: ox.QueryResultsFormat.XML,
    TSV: ox.QueryResultsFormat.TSV,
    CSV: ox.QueryResultsFormat.CSV,
}
SELECT = "SELECT ?x ?y { ?x ?p ?y }"


def reply(body: str | bytes, kind: str = JSON, charset: str = "") -> EndpointResponse:
    sent = body.encode() if isinstance(body, str) else body
    return EndpointResponse(sent, kind, is_partial=False, charset=charset)


def rows_of(body: str | bytes, kind: str = JSON, charset: str = "") -> list[list[Any]]:
    """The rows of a result with the columns x and y."""
    return [list(row) for row in reply(body, kind, charset).parse_result_set("xy", 100).rows]


def in_json(*rows: Any) -> str:
    return json.dumps({"head": {"vars": ["x", "y"]}, "results": {"bindings": rows}})


X = {"x": {"type": "literal", "value": "a"}}
HEAD = (
    '<sparql xmlns="http://www.w3.org/2005/sparql-results#"><head><variable name="x"/>'
    '<variable name="y"/></head><results>'
)


def in_xml(*cells: str) -> str:
    rows = (f'<result><binding name="x">{cell}</binding></result>' for cell in cells)
    return f"{HEAD}{''.join(rows)}</results></sparql>"


A, B = Literal("a"), Literal("b")


@pytest.mark.parametrize("row", read_table(HERE / "results.toml"), ids=itemgetter("body"))
def test_a_result_is_read_as_it_is_meant(row: dict[str, Any]) -> None:
    found = rows_of(row["body"], row["kind"])
    assert [["" if cell is None else cell.n3() for cell in cells] for cells in found] == row["rows"]


def test_a_cell_of_a_table_may_be_long() -> None:
    assert rows_of(f"x,y\n{'a' * 200_000},b\n", CSV) == [[Literal("a" * 200_000), B]]


@pytest.mark.parametrize("kind", [TSV, CSV, XML])
def test_a_table_of_one_column_has_rows_without_a_value(kind: str) -> None:
    result: Any = ox.Store().query("SELECT ?x { VALUES ?x { UNDEF 'a' UNDEF } }")
    body = result.serialize(format=FORMATS[kind])
    found = reply(body, kind).parse_result_set(["x"], 9).rows
    assert found == ((None,), (A,), (None,))


@pytest.mark.parametrize(
    ("body", "kind", "value"),
    read_table(HERE / "truth_values.jsonl"),
)
def test_a_truth_value_is_read_in_each_format(body: str, kind: str, value: bool) -> None:
    assert reply(body, kind).parse_boolean() is value


ACCENT = in_json(X).replace('"a"', '"é"')


@pytest.mark.parametrize(
    ("body", "charset", "text"),
    [
        (ACCENT.encode("latin-1"), "iso-8859-1", "é"),
        (in_json(X).replace('"a"', '"’"').encode("cp1252"), "windows-1252", "’"),
        (ACCENT.encode("utf-16"), "utf-16", "é"),
        # A server announces its default, but sends UTF-8 as JSON must be.
        (ACCENT.encode(), "iso-8859-1", "é"),
        (ACCENT.encode("latin-1"), "", "\ufffd"),
        (ACCENT.encode("latin-1"), "no-such-charset", "\ufffd"),
        # Python has codecs that are no character sets, and that replace nothing.
        (ACCENT.encode("latin-1"), "idna", "\ufffd"),
        (ACCENT.encode("latin-1"), "punycode", "\ufffd"),
        (("\ufeff" + ACCENT).encode("utf-16-le"), "utf-16-le", "é"),
        (in_xml("<literal>é</literal>").encode("latin-1"), "iso-8859-1", "é"),
        (
            b"<?xml version='1.0' encoding='ISO-8859-1'?>"
            + in_xml("<literal>é</literal>").encode("latin-1"),
            "",
            "é",
        ),
        # XML that is UTF-16 need not say so, and may say something else.
        (in_xml("<literal>é</literal>").encode("utf-16"), "", "é"),
        (in_xml("<literal>é</literal>").encode("utf-16-le"), "", "é"),
        (in_xml("<literal>é</literal>").encode("utf-16-be"), "iso-8859-1", "é"),
    ],
)
def test_text_is_read_in_the_charset_that_it_is_in(body: bytes, charset: str, text: str) -> None:
    assert rows_of(body, charset=charset) == [[Literal(text), None]]


# --- an endpoint whose time is over

TRACE = "SPARQL-QUERY: queryStr=SELECT\njava.util.concurrent.TimeoutException\n" + "\tat x\n" * 900
QUERIES = {"select": SELECT, "ask": "ASK { ?x ?p ?y }", "construct": "DESCRIBE <http://e/a>"}


@pytest.mark.parametrize("row", read_table(HERE / "broken_off.toml"), ids=itemgetter("body"))
def test_an_endpoint_that_ran_out_of_time_says_so_anywhere(row: dict[str, Any]) -> None:
    method = row.get("method", "select")
    query = QUERIES[method] if row.get("columns") != 1 else "SELECT ?x { ?x ?p ?y }"
    body = row["body"].replace("TRACE", TRACE)
    reply = said(body, row.get("kind", JSON), row.get("status", 200))
    with serving(lambda _: reply) as server, pytest.raises(GraphTimeoutError) as caught:
        getattr(Endpoint(server.url), method)(query)
    assert "LIMIT" in caught.value.hint


@pytest.mark.parametrize("sign", TIME_LIMIT_SIGNS)
def test_a_text_about_time_in_the_data_is_no_error(sign: str) -> None:
    text = json.dumps(sign)
    assert rows_of(in_json(X).replace('"a"', text)) == [[Literal(sign), None]]
    assert rows_of(f"x,y\n{text},b\n", CSV) == [[Literal(sign), B]]
    assert rows_of(f'?x\t?y\n{text}\t"b"\n', TSV) == [[Literal(sign), B]]


@pytest.mark.parametrize(
    ("body", "kind"),
    read_table(HERE / "unread_results.jsonl"),
)
def test_what_is_no_result_is_an_error(body: str, kind: str) -> None:
    with pytest.raises(GraphError) as caught:
        rows_of(body, kind)
    assert not isinstance(caught.value, GraphTimeoutError)


# --- the way in which a query is sent

MIDDLE = SELECT.replace("}", "FILTER(?y != '" + "y" * 1_500 + "') }")
LONG = SELECT.replace("}", "FILTER(?y != '" + "y" * 2_500 + "') }")


def behind(refusals: dict[str, Said], longest: int = 1_500) -> Any:
    """An endpoint that refuses a method, GET only for long addresses."""

    def answer(seen: Seen) -> Said:
        refusal = refusals.get(seen.method)
        if refusal and (seen.method == "POST" or len(seen.path) > longest):
            return refusal
        return said(in_json(X))

    return answer


PAGE = "<html><h1>{}</h1></html>"
TOO_LONG = [
    said(PAGE.format("414 Request-URI Too Large"), "text/html", 414),
    said("", "text/html", 413),
    said(PAGE.format("Request header is too large"), "text/html", 400),
    said("The request line is too long", "text/plain", 400),
    said("The query string is too long", "text/html", 404),
]
NO_POST = [said("no", "text/plain", status) for status in (501, 405, 403, 411, 415)]


@pytest.mark.parametrize("refusal", TOO_LONG)
def test_a_query_that_is_too_long_for_get_is_sent_by_post(refusal: Said) -> None:
    with serving(behind({"GET": refusal})) as server:
        kg = Endpoint(server.url)
        for query in (MIDDLE, MIDDLE, SELECT):
            assert kg.select(query).rows == ((A, None),)
    # The length is kept in mind: the second one goes by POST at once.
    assert [seen.method for seen in server.seen] == ["GET", "POST", "POST", "GET"]


@pytest.mark.parametrize("refusal", NO_POST)
def test_a_query_is_sent_by_get_where_post_is_refused(refusal: Said) -> None:
    with serving(behind({"POST": refusal}, 9_999)) as server:
        kg = Endpoint(server.url)
        for _ in range(2):
            assert kg.select(LONG).rows == ((A, None),)
    assert [seen.method for seen in server.seen] == ["POST", "GET", "GET"]


@pytest.mark.parametrize(
    ("get", "post", "error", "words"),
    [
        (said("long", status=414), said("no post", status=405), GraphUnreachableError, "414"),
        (said("long", status=414), said("bad query", status=400), GraphError, "bad query"),
        (said("bad query", status=400), None, GraphError, "bad query"),
    ],
)
def test_the_error_is_that_of_the_way_that_could_have_worked(
    get: Said, post: Said | None, error: type[GraphError], words: str
) -> None:
    refusals = {"GET": get} if post is None else {"GET": get, "POST": post}
    with serving(behind(refusals)) as server, pytest.raises(error, match=words):
        Endpoint(server.url).select(MIDDLE)
    assert len(server.seen) == (1 if post is None else 2)


def test_every_format_is_accepted_and_json_is_preferred() -> None:
    with serving(lambda seen: said(in_json(X))) as server:
        result: ResultSet = Endpoint(server.url).select(SELECT)
    [seen] = server.seen
    accepted = seen.headers["Accept"]
    assert seen.headers["User-Agent"].startswith("kgwb/")
    assert result.rows == ((A, None),)
    assert accepted.index(JSON) < accepted.index(XML) < accepted.index(TSV) < accepted.index(CSV)


# --- JSON, part by part


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


@given(st.text('{}[]",:1e-.tru\\ \n', max_size=12))
@example('{"a": [1, {"b": []}, "é"], "": {}}')
@example("[ \n1.5 ,\t-2e3\r]")
@example("[1 1]")
@example('{"e",1}')
@example("{1:1}")
def test_a_text_is_accepted_if_and_only_if_json_accepts_it(text: str) -> None:
    try:
        expected = json.loads(text, strict=False)
    except ValueError:
        with pytest.raises(ValueError):  # its message is not the point
            read_whole(text)
    else:
        assert read_whole(text) == expected


def test_the_head_of_a_result_may_come_last_and_the_last_of_two_lists_counts() -> None:
    first = json.dumps({"bindings": [X, X]})
    last = json.dumps({"bindings": [{"y": X["x"]}], "more": [1]})
    text = f'{{"results": {first}, "results": {last}, "head": {{"vars": ["x", "y"]}}}}'
    for variables in ((), ("x", "y")):
        result = reply(text).parse_result_set(variables, 10)
        assert (result.variables, result.rows) == (("x", "y"), ((None, Literal("a")),))


def test_rows_beyond_the_limit_take_no_memory() -> None:
    row, many = '{"x": {"type": "bnode", "value": "b"}}', 8_000
    text = f'{{"head": {{"vars": ["x"]}}, "results": {{"bindings": [{",".join([row] * many)}]}}}}'
    sent = reply(text)
    tracemalloc.start()
    try:
        result = sent.parse_result_set(("x",), 10)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert result.cut and len(result.rows) == 10
    assert peak < 2 * len(text)


def test_a_broken_text_is_an_error_with_its_place() -> None:
    with pytest.raises(GraphError, match=r"\(char 30\)"):
        reply('{"head": {"vars": ["x"]},     oh').parse_result_set(("x",), 10)
    with pytest.raises(GraphError, match="broken JSON"):
        reply("[" * 100_000).parse_boolean()
