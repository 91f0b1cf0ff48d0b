"""What endpoints really send: results in four formats and other charsets, with null in them, or broken off."""

from __future__ import annotations

import json
from typing import Any

import pyoxigraph as ox
import pytest
from hostile.servers import Said, Seen, serving
from hypothesis import given
from hypothesis import strategies as st
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


@pytest.mark.parametrize(
    ("body", "kind", "rows"),
    [
        (in_json(X, None, {}, []), JSON, [[A, None], *[[None, None]] * 3]),
        (in_json({**X, "y": None}), JSON, [[A, None]]),
        (in_json({**X, "z": {"type": "literal", "value": "c"}}), JSON, [[A, None]]),
        ("\ufeff" + in_json(X), JSON, [[A, None]]),
        (in_json(X), "text/plain", [[A, None]]),
        (in_xml("<literal>a</literal>"), JSON, [[A, None]]),
        (in_xml("<literal>a</literal>"), "text/xml", [[A, None]]),
        (in_xml("<literal>a</literal>"), "text/html", [[A, None]]),
        ("\ufeff<?xml version='1.0'?>\n" + in_xml("<literal>a</literal>"), XML, [[A, None]]),
        (in_xml("<literal>a</literal>").replace(' xmlns="', ' xmlns:o="'), XML, [[A, None]]),
        (in_xml("<literal> a\n </literal>"), XML, [[Literal(" a\n "), None]]),
        (in_xml("\n <uri>\n http://e/a </uri> "), XML, [[URIRef("http://e/a"), None]]),
        (in_xml("<literal/>", "<unbound/>"), XML, [[Literal(""), None], [None, None]]),
        (in_xml("<bnode>n</bnode>"), XML, [[BNode("n"), None]]),
        (in_xml("<literal>&lt;&amp;&#233;<!-- no --></literal>"), XML, [[Literal("<&é"), None]]),
        (HEAD + "<result/><result></result></results></sparql>", XML, [[None, None]] * 2),
        ('?x\t?y\n"a"\t\n\t"b"\n', TSV, [[A, None], [None, B]]),
        ("?x\t?y\n01\t<http://e/a>\n", TSV, [["01", URIRef("http://e/a")]]),
        ('?y\t?x\n"b"\t"a"\n', TSV, [[A, B]]),
        ("x,y\r\na,\r\n,b\r\n", CSV, [[A, None], [None, B]]),
        ("x,y\na,b\n", CSV, [[A, B]]),
        ("?x,?y\na,b", CSV, [[A, B]]),
        ('x,y\n"a ""b"",\nc",b\n', CSV, [[Literal('a "b",\nc'), B]]),
        ("x,y\nhttp://e/a,_:n\n", CSV, [[URIRef("http://e/a"), BNode("n")]]),
        ("x,y\nhttp: a note,urn:a b\n", CSV, [[Literal("http: a note"), Literal("urn:a b")]]),
        ("x,y\n" + "a" * 200_000 + ",b\n", CSV, [[Literal("a" * 200_000), B]]),
        ("x,y\n", CSV, []),
    ],
)  # fmt: skip
def test_a_result_is_read_as_it_is_meant(body: str, kind: str, rows: list[list[Any]]) -> None:
    found = rows_of(body, kind)
    assert [[None if cell is None else str(cell) for cell in row] for row in found] == [
        [None if cell is None else str(cell) for cell in row] for row in rows
    ]
    for found_row, row in zip(found, rows, strict=True):
        kinds = [type(cell) for cell in row if not isinstance(cell, str) or type(cell) is not str]
        assert [type(cell) for cell in found_row][: len(kinds)] == kinds or kind == TSV


@pytest.mark.parametrize("kind", [TSV, CSV, XML])
def test_a_table_of_one_column_has_rows_without_a_value(kind: str) -> None:
    variables = [ox.Variable("x")]
    result: Any = ox.Store().query("SELECT ?x { VALUES ?x { UNDEF 'a' UNDEF } }")
    assert [variable.value for variable in result.variables] == [v.value for v in variables]
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


@pytest.mark.parametrize(
    ("body", "charset", "text"),
    [
        (in_json(X).replace('"a"', '"é"').encode("latin-1"), "iso-8859-1", "é"),
        (in_json(X).replace('"a"', '"é"').encode("latin-1"), "latin1", "é"),
        (in_json(X).replace('"a"', '"’"').encode("cp1252"), "windows-1252", "’"),
        (in_json(X).replace('"a"', '"é"').encode("utf-16"), "utf-16", "é"),
        # A server announces its default, but sends UTF-8 as JSON must be.
        (in_json(X).replace('"a"', '"é"').encode(), "iso-8859-1", "é"),
        (in_json(X).replace('"a"', '"é"').encode("latin-1"), "", "\ufffd"),
        (in_json(X).replace('"a"', '"é"').encode("latin-1"), "no-such-charset", "\ufffd"),
        (in_json(X).replace('"a"', '"é"').encode("latin-1"), "hex", "\ufffd"),
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
    if text != "\ufffd":
        reply(body, charset=charset).require_valid_text()


@pytest.mark.parametrize("kind", [TSV, CSV])
def test_a_table_is_read_in_its_charset(kind: str) -> None:
    body = {TSV: '?x\t?y\n"é"\t"b"\n', CSV: "x,y\né,b\n"}[kind].encode("latin-1")
    assert rows_of(body, kind, "iso-8859-1") == [[Literal("é"), B]]


NUMBERS = {"integer": ["1", "01", "+1", "-0"], "decimal": ["1.50", ".5"], "double": ["1e0", "INF"]}
TERMS = st.one_of(
    st.none(),
    st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=8).map(Literal),
    st.text(" \t\n'\"\\<>&,;é\U0001f600", max_size=8).map(Literal),
    st.sampled_from([Literal(" a ", lang="en"), Literal("a", lang="de-at"), BNode("n")]),
    st.sampled_from([URIRef("http://e/a"), URIRef("http://e/é"), URIRef("urn:a")]),
    st.sampled_from(
        [make_literal(text, str(XSD[name])) for name, texts in NUMBERS.items() for text in texts]
    ),
)


@given(rows=st.lists(st.tuples(TERMS, TERMS), max_size=4))
def test_formats_give_the_same_rows(rows: list[tuple[Any, Any]]) -> None:
    """What Oxigraph writes in each format comes out as it went in; in CSV, as far as that has it."""
    sent = [
        {name: term_to_data(term) for name, term in zip("xy", row, strict=True) if term is not None}
        for row in rows
    ]
    for kind, file_format in FORMATS.items():
        result: Any = ox.parse_query_results(in_json(*sent), ox.QueryResultsFormat.JSON)
        found = rows_of(result.serialize(format=file_format), kind)
        assert len(found) == len(rows)
        for found_row, row in zip(found, rows, strict=True):
            for cell, term in zip(found_row, row, strict=True):
                if kind == CSV:
                    assert str("" if cell is None else cell) == str("" if term is None else term)
                    assert isinstance(cell, URIRef) == isinstance(term, URIRef)
                elif not isinstance(term, BNode):
                    assert (cell, type(cell), str(cell)) == (term, type(term), str(term))
                else:
                    assert isinstance(cell, BNode)


# --- an endpoint whose time is over

TRACE = "SPARQL-QUERY: queryStr=SELECT\njava.util.concurrent.TimeoutException\n" + "\tat x\n" * 900
OXIGRAPH = "The SPARQL operation has been cancelled"
ROWS = in_json(X, X)
XML_ROWS = in_xml("<literal>a</literal>", "<literal>b</literal>")
BROKEN_OFF: list[tuple[str, Said]] = [
    (SELECT, said(ROWS[:-30] + TRACE)),
    (SELECT, said(ROWS[:-3] + OXIGRAPH)),
    (SELECT, said(ROWS[:-3] + "," + OXIGRAPH)),
    (SELECT, said(TRACE, "text/plain")),
    (SELECT, said("<html><h1>Query timed out</h1></html>", "text/html")),
    (SELECT, said(XML_ROWS[:-30] + TRACE, XML)),
    (SELECT, said(XML_ROWS[:-19] + OXIGRAPH, XML)),
    (SELECT, said('?x\t?y\n"a"\t"b"\n' + OXIGRAPH, TSV)),
    (SELECT, said("x,y\r\na,b\r\n" + OXIGRAPH, CSV)),
    ("SELECT ?x { ?x ?p ?y }", said("x\r\na\r\n" + OXIGRAPH, CSV)),
    ("SELECT ?x { ?x ?p ?y }", said('?x\n"a"\n' + OXIGRAPH, TSV)),
    (SELECT, said('{"exception": "Operation timed out.", "status": "ERROR"}')),
    (SELECT, said('{"error": "Query timed out"}', "application/json")),
    (ASK, said(OXIGRAPH, "text/plain", 500)),
    (ASK, said(OXIGRAPH)),
    (SELECT, said("Query timed out", "text/plain", 503)),
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

SHORT, LONG = SELECT, SELECT + " # " + "long " * 500
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
    said("", "text/html", 431),
    said("", "text/html", 413),
    said(PAGE.format("Request header is too large"), "text/html", 400),
    said(PAGE.format("URI Too Long"), "text/html", 400),
    said("The request line is too long", "text/plain", 400),
    said("The query string is too long", "text/html", 404),
]
NO_POST = [said("no", "text/plain", status) for status in (501, 405, 403, 411, 415)]


@pytest.mark.parametrize("refusal", TOO_LONG)
def test_a_query_that_is_too_long_for_get_is_sent_by_post(refusal: Said) -> None:
    with serving(behind({"GET": refusal})) as server:
        kg = Endpoint(server.url)
        for query in (MIDDLE, MIDDLE, SHORT):
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


def test_a_password_is_not_shown_by_either_way() -> None:
    with serving(behind({"GET": said("", status=414), "POST": said("s3cret", status=403)})) as one:
        url = one.url.replace("//", "//ada:s3cret@")
        with pytest.raises(GraphError) as caught:
            Endpoint(url).select(MIDDLE)
    assert "s3cret" not in str(caught.value)
    assert all("Authorization" in seen.headers for seen in one.seen)


def test_every_format_is_accepted_and_json_is_preferred() -> None:
    with serving(lambda seen: said(in_json(X))) as server:
        result: ResultSet = Endpoint(server.url).select(SELECT)
    [seen] = server.seen
    accepted = seen.headers["Accept"]
    assert result.rows == ((A, None),)
    assert accepted.index(JSON) < accepted.index(XML) < accepted.index(TSV) < accepted.index(CSV)


def test_characters_that_cannot_be_read_are_told_of_once(caplog: pytest.LogCaptureFixture) -> None:
    body = in_json({"x": {"type": "literal", "value": "?"}}).encode().replace(b"?", b"\xe9")
    result = reply(body).parse_result_set((), 9)
    assert result.rows == ((Literal("\ufffd"), None),)
    assert caplog.text.count("not UTF-8") == 1
