"""What endpoints really send: results in four formats and other charsets, with null in them, or broken off."""

from __future__ import annotations

import json
from typing import Any

import pyoxigraph as ox
import pytest
from hostile.servers import Said, Seen, serving
from rdflib import XSD, BNode, Literal, URIRef

from kgwb.errors import GraphError, GraphTimeoutError, GraphUnreachableError
from kgwb.kg.base import ResultSet
from kgwb.kg.endpoint import Endpoint
from kgwb.kg.responses import TIME_LIMIT_SIGNS, EndpointResponse
from kgwb.terms import make_literal, term_to_data

JSON, XML = "application/sparql-results+json", "application/sparql-results+xml"
TSV, CSV = "text/tab-separated-values", "text/csv"
FORMATS = {
    JSON: ox.QueryResultsFormat.JSON,
    XML: ox.QueryResultsFormat.XML,
    TSV: ox.QueryResultsFormat.TSV,
    CSV: ox.QueryResultsFormat.CSV,
}
SELECT, ASK = "SELECT ?x ?y { ?x ?p ?y }", "ASK { ?x ?p ?y }"


def said(body: Any, kind: str = JSON, status: int = 200, **headers: str) -> Said:
    return status, {"Content-Type": kind, **headers}, body


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
TERMS = [Literal("a", lang="en"), make_literal("1.50", str(XSD.decimal))]
TAGGED, TYPED = map(term_to_data, TERMS)


@pytest.mark.parametrize(
    ("body", "kind", "rows"),
    [
        (in_json(X, None, {}, []), JSON, [[A, None], *[[None, None]] * 3]),
        (in_json({**X, "z": {"type": "literal", "value": "c"}}), JSON, [[A, None]]),
        ("\ufeff" + in_json(X), JSON, [[A, None]]),
        (in_json(X), "text/plain", [[A, None]]),
        (in_xml("<literal>a</literal>"), JSON, [[A, None]]),
        ("\ufeff<?xml version='1.0'?>\n" + in_xml("<literal>a</literal>"), XML, [[A, None]]),
        (in_xml("<literal>a</literal>").replace(' xmlns="', ' xmlns:o="'), XML, [[A, None]]),
        (in_xml("<literal> a\n </literal>"), XML, [[Literal(" a\n "), None]]),
        (in_xml("\n <uri>\n http://e/a </uri> "), XML, [[URIRef("http://e/a"), None]]),
        (in_xml("<literal/>", "<unbound/>"), XML, [[Literal(""), None], [None, None]]),
        (in_xml("<bnode>n</bnode>"), XML, [[BNode("n"), None]]),
        (in_xml("<literal>&lt;&amp;&#233;<!-- no --></literal>"), XML, [[Literal("<&é"), None]]),
        ('?x\t?y\n"a"\t\n\t"b"\n', TSV, [[A, None], [None, B]]),
        ("?x\t?y\n01\t<http://e/a>\n", TSV, [[make_literal("01", str(XSD.integer)), URIRef("http://e/a")]]),
        ("x,y\r\na,\r\n,b\r\n", CSV, [[A, None], [None, B]]),
        ("?x,?y\na,b", CSV, [[A, B]]),
        ('x,y\n"a ""b"",\nc",b\n', CSV, [[Literal('a "b",\nc'), B]]),
        ("x,y\nhttp://e/a,_:n\n", CSV, [[URIRef("http://e/a"), BNode("n")]]),
        ("x,y\nhttp: a note,urn:a b\n", CSV, [[Literal("http: a note"), Literal("urn:a b")]]),
        ("x,y\n" + "a" * 200_000 + ",b\n", CSV, [[Literal("a" * 200_000), B]]),
        ("x,y\n", CSV, []),
        (in_json({"x": TAGGED, "y": TYPED}), JSON, [TERMS]),
        (in_xml('<literal xml:lang="en">a</literal></binding><binding name="y">'
                f'<literal datatype="{XSD.decimal}">1.50</literal>'), XML, [TERMS]),
        ('?x\t?y\n"a"@en\t1.50\n"a\\t\\"b"\t"1"^^<http://e/t>\n', TSV,
         [TERMS, [Literal('a\t"b'), make_literal("1", "http://e/t")]]),
    ],
)  # fmt: skip
def test_a_result_is_read_as_it_is_meant(body: str, kind: str, rows: list[list[Any]]) -> None:
    assert [list(map(repr, row)) for row in rows_of(body, kind)] == [
        list(map(repr, row)) for row in rows
    ]


@pytest.mark.parametrize("kind", [TSV, CSV, XML])
def test_a_table_of_one_column_has_rows_without_a_value(kind: str) -> None:
    result: Any = ox.Store().query("SELECT ?x { VALUES ?x { UNDEF 'a' UNDEF } }")
    body = result.serialize(format=FORMATS[kind])
    found = reply(body, kind).parse_result_set(["x"], 9).rows
    assert found == ((None,), (A,), (None,))


@pytest.mark.parametrize(
    ("body", "kind", "value"),
    [
        ('{"head": {}, "boolean": true}', JSON, True),
        (f"{HEAD.partition('<head>')[0]}<head/><boolean> false </boolean></sparql>", XML, False),
        ("true", "text/boolean", True),
        ("false\n", "text/plain", False),
        ("true", CSV, True),
        ("false", TSV, False),
    ],
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
        (in_xml("<literal>é</literal>").encode("latin-1"), "iso-8859-1", "é"),
        (
            b"<?xml version='1.0' encoding='ISO-8859-1'?>"
            + in_xml("<literal>é</literal>").encode("latin-1"),
            "",
            "é",
        ),
    ],
)
def test_text_is_read_in_the_charset_that_it_is_in(body: bytes, charset: str, text: str) -> None:
    assert rows_of(body, charset=charset) == [[Literal(text), None]]


# --- an endpoint whose time is over

TRACE = "SPARQL-QUERY: queryStr=SELECT\njava.util.concurrent.TimeoutException\n" + "\tat x\n" * 900
OXIGRAPH = "The SPARQL operation has been cancelled"
ROWS = in_json(X, X)
XML_ROWS = in_xml("<literal>a</literal>", "<literal>b</literal>")
BROKEN_OFF: list[tuple[str, Said]] = [
    (SELECT, said(ROWS[:-30] + TRACE)),
    (SELECT, said(ROWS[:-3] + OXIGRAPH)),
    (SELECT, said(TRACE, "text/plain")),
    (SELECT, said("<html><h1>Query timed out</h1></html>", "text/html")),
    (SELECT, said(XML_ROWS[:-30] + TRACE, XML)),
    (SELECT, said(XML_ROWS[:-19] + OXIGRAPH, XML)),
    (SELECT, said('?x\t?y\n"a"\t"b"\n' + OXIGRAPH, TSV)),
    (SELECT, said("x,y\r\na,b\r\n" + OXIGRAPH, CSV)),
    ("SELECT ?x { ?x ?p ?y }", said('?x\n"a"\n' + OXIGRAPH, TSV)),
    (SELECT, said('{"exception": "Operation timed out.", "status": "ERROR"}')),
    (SELECT, said('{"error": "Query timed out"}', "application/json")),
    (ASK, said(OXIGRAPH, "text/plain", 500)),
    (ASK, said(OXIGRAPH)),
    (SELECT, said("Query evaluation took too long", "text/plain", 500)),
    (SELECT, said("org.eclipse.rdf4j.query.QueryInterruptedException", "text/plain", 503)),
    (SELECT, said({"code": "TimeLimitExceededException"}, "application/json", 500)),
    (SELECT, said("Virtuoso 42000 Error The estimated execution time 900 (sec)", status=500)),
    ("DESCRIBE <http://e/a>", said("<http://e/a> a <http://e/B> .\n" + OXIGRAPH, "text/turtle")),
    ("DESCRIBE <http://e/a>", said("<http://e/a> a <http://e/B> .\n" + TRACE, "text/turtle")),
]


@pytest.mark.parametrize(("query", "sent"), BROKEN_OFF)
def test_an_endpoint_that_ran_out_of_time_says_so_anywhere(query: str, sent: Said) -> None:
    with serving(lambda seen: sent) as server:
        kg = Endpoint(server.url)
        method = {"SELECT": kg.select, "ASK": kg.ask, "DESCRIBE": kg.construct}[
            query.split(maxsplit=1)[0]
        ]
        with pytest.raises(GraphTimeoutError) as caught:
            method(query)
    assert "LIMIT" in caught.value.hint


@pytest.mark.parametrize("sign", TIME_LIMIT_SIGNS)
def test_a_text_about_time_in_the_data_is_no_error(sign: str) -> None:
    text = json.dumps(sign)
    assert rows_of(in_json(X).replace('"a"', text)) == [[Literal(sign), None]]
    assert rows_of(f"x,y\n{text},b\n", CSV) == [[Literal(sign), B]]
    assert rows_of(f'?x\t?y\n{text}\t"b"\n', TSV) == [[Literal(sign), B]]


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (ROWS[:-30], JSON),
        (XML_ROWS[:-30], XML),
        ("?x\t?y\na b\n", TSV),
        ("x,y\na,b\nc\n", CSV),
        ("<html><body>Welcome</body></html>", "text/html"),
        ("<error>no memory</error>", "text/xml"),
        (in_xml("<triple/>"), XML),
        ("no memory", "text/plain"),
    ],
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
