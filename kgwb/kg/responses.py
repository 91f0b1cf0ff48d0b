"""The reply of an endpoint to one query, and how its result is read: W3C's JSON, XML, TSV and CSV.

``READERS`` has the formats. A reader adds the rows of a result to ``Rows`` one by one, and returns
the rest as data of the JSON format. The result of a query with many short cells takes 30 times as
much memory when it is parsed whole.
"""

from __future__ import annotations

import csv
import json
import logging
import re
import sys
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import field
from io import StringIO
from typing import Any
from xml.etree.ElementTree import Element, iterparse

import pyoxigraph
from rdflib import XSD, Literal

from kgwb.errors import GraphError, GraphTimeoutError
from kgwb.kg.base import ResultSet
from kgwb.kg.local import term_from_oxigraph
from kgwb.kg.sparql import LONE_SURROGATE, find_lone_surrogate
from kgwb.records import JsonObject, frozen
from kgwb.terms import Term, term_from_data
from kgwb.text import mask_secrets, truncate_at_word

ResultData = dict[str, Any]
"""A result as in JSON, with an empty list in place of its rows."""
_XML_NAMESPACE = "{http://www.w3.org/2005/sparql-results#}"
_XML_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"
_XML_ENCODING = re.compile(rb"""\s*<\?xml[^>]*?\sencoding\s*=\s*["']([\w.-]+)""")
_UTF16_STARTS = {
    BOM_UTF16_LE: "utf-16",
    BOM_UTF16_BE: "utf-16",
    b"<\0": "utf-16-le",
    b"\0<": "utf-16-be",
}
"""How a body in UTF-16 begins: with a byte order mark, or as XML without one. A codec for each."""
_CSV_IRI = re.compile(r"(?:https?|ftp)://\S+|(?:urn|mailto|tel|file):\S+")
"""What is taken for an IRI in CSV, which does not distinguish IRIs from texts."""


TIME_LIMIT_SIGNS = (
    "TimeoutException",  # of Java: Blazegraph, and so Wikidata
    "deadline is expired",  # Blazegraph
    "operation has been cancelled",  # Oxigraph
    "timed out",  # Fuseki, QLever, AllegroGraph
    "cancelled due to timeout",  # Fuseki
    "QueryInterruptedException",  # RDF4J, and so GraphDB
    "evaluation took too long",  # RDF4J
    "exceeded specified timeout",  # GraphDB
    "exceeded query timeout",  # Stardog
    "TimeLimitExceeded",  # Neptune
    "deadline exceeded",  # Neptune, and proxies
    "estimated execution time",  # Virtuoso, which refuses a query by its own estimate
)
"""How engines say that the time for a query is over, in the body of a reply."""
TIME_LIMIT = re.compile("|".join(TIME_LIMIT_SIGNS), re.IGNORECASE)


class Rows:
    """The rows of a result, each parsed when it is read, so that no row is kept unparsed."""

    def __init__(self, variables: Collection[str], limit: int) -> None:
        """Prepare to parse the first rows, at most ``limit``; further rows are only counted.

        Only cells of these variables are parsed; without any, all are.
        """
        self._variables = variables
        self._limit = limit
        self.clear()

    def clear(self) -> None:
        """Remove all rows, with their count, names and problem, as if none had been added."""
        self.parsed: list[dict[str, Term]] = []
        """The terms of each row by their variables, without those that are unbound."""
        self.count = 0
        self.names: set[str] = set()
        """The variables that any row binds."""
        self.has_other_items = False
        """Whether something was added that is no row."""
        self.problem: Exception | None = None
        """The first error of parsing a row; none is parsed after it."""

    def add(self, item: object) -> None:
        """Add an item of the list of rows, which should be an object.

        A row without any cell may also be null, or an empty list, as PHP writes an empty object.
        Every item is counted. Only the first ``limit`` rows are parsed, and none after one that
        fails: the error is kept in ``problem`` and not raised.
        """
        self.count += 1
        if item is None or item == []:
            item = {}
        if not isinstance(item, dict):
            self.has_other_items = True
            return
        self.names.update(item)
        if self.count > self._limit or self.problem is not None:
            return
        row = {}
        try:
            for name in self._variables or item:
                if item.get(name) is not None:
                    row[name] = parse_cell(item[name])
        except (KeyError, TypeError, ValueError) as error:
            self.problem = error
        self.parsed.append(row)


Reader = Callable[[str, Rows], ResultData]
"""Reads the text of a body: adds its rows to ``Rows``, and returns the rest of it."""


def find_reader(text: str, media_type: str) -> Reader:
    """Return the reader for the text of a body.

    What begins like JSON or XML is read as such, whatever the media type. A body of an unknown type
    is read as JSON.
    """
    start = text[:1000].lstrip()
    if start.startswith("{"):
        return read_json
    if start.startswith("<"):
        return read_xml
    return READERS.get(media_type, read_json)


def read_json(text: str, rows: Rows) -> ResultData:
    """Read a result in JSON. A bare true or false is a result, too.

    Raises ValueError or RecursionError, with the place, for what is not JSON.
    """
    reader = JsonReader(text)
    data: ResultData = {}
    if reader.next_character() == "{":
        for name in reader.read_members():
            data[name] = _read_member(reader, name, rows)
    else:
        value = reader.read_value()
        if not isinstance(value, bool):
            raise ValueError("JSON of another kind")
        data["boolean"] = value
    if reader.next_character():
        raise reader.error("expected the end")
    return data


def _read_member(reader: JsonReader, name: str, rows: Rows) -> Any:
    """Return the value of a member of a reply; "results" without its rows.

    The rows are the list "bindings" in "results". They are added to ``rows`` one by one, so that
    they are never in memory together as JSON, and an empty list stands in their place. A second
    such list replaces the first, as in ``json``.
    """
    if name != "results" or reader.next_character() != "{":
        return reader.read_value()
    results: JsonObject = {}
    for inner_name in reader.read_members():
        if inner_name == "bindings" and reader.next_character() == "[":
            rows.clear()
            for _ in reader.read_parts("[", "]"):
                rows.add(reader.read_value())
            results[inner_name] = []
        else:
            results[inner_name] = reader.read_value()
    return results


def read_xml(text: str, rows: Rows) -> ResultData:
    """Read a result in XML. Raises ValueError or ParseError for what is not such XML."""
    names: list[Any] = []
    data = _table_of(names)
    row: JsonObject = {}
    path: list[Element] = []
    for event, element in iterparse(StringIO(text), ("start", "end")):
        tag = element.tag.removeprefix(_XML_NAMESPACE)
        if event == "start":
            if not path and tag != "sparql":
                raise ValueError(f"XML with the root {tag}, which is no result")
            path.append(element)
            continue
        path.pop()
        if tag == "variable":
            names.append(element.get("name"))
        elif tag == "boolean":
            data = {"boolean": (element.text or "").strip() == "true"}
        elif tag == "binding":
            for cell in element:
                row[element.get("name", "")] = _parse_xml_cell(cell)
        elif tag == "result":
            rows.add(row)
            row = {}
            path[-1].clear()
    return data


def _parse_xml_cell(element: Element) -> JsonObject | None:
    """Return a cell in XML as in JSON; None for the element "unbound" of the format before 2007."""
    kind = element.tag.removeprefix(_XML_NAMESPACE)
    if kind == "unbound":
        return None
    value = element.text or ""
    if kind != "literal":
        value = value.strip()
    cell = {"type": kind, "value": value, "datatype": element.get("datatype")}
    return {**cell, "xml:lang": element.get(_XML_LANGUAGE)}


def read_tsv(text: str, rows: Rows) -> ResultData:
    """Read a result in TSV. Raises SyntaxError for what is not such a table."""
    parsed = pyoxigraph.parse_query_results(text, pyoxigraph.QueryResultsFormat.TSV)
    if isinstance(parsed, pyoxigraph.QueryBoolean):
        return {"boolean": bool(parsed)}
    names = [variable.value for variable in parsed.variables]
    try:
        for solution in parsed:
            row = {}
            for name, term in zip(names, solution, strict=True):
                if term is not None:
                    row[name] = term_from_oxigraph(term)
            rows.add(row)
    finally:
        del parsed  # an error would hold it, and it must not be let go of on another thread
    return _table_of(names)


def read_csv(text: str, rows: Rows) -> ResultData:
    """Read a result in CSV, which keeps neither datatypes nor languages.

    A cell that looks like an absolute IRI or a blank node is one, an empty one is unbound, and any
    other is a text. Raises ValueError or csv.Error for what is not such a table.
    """
    csv.field_size_limit(max(csv.field_size_limit(), len(text)))
    table = csv.reader(StringIO(text, newline=""))
    names = [name.lstrip("?") for name in next(table, ())]
    for number, cells in enumerate(table, 1):
        if len(cells) != len(names) and (cells or len(names) != 1):
            raise ValueError(f"row {number} has {len(cells)} cells, the head {len(names)}")
        row = {}
        for name, cell in zip(names, cells, strict=False):
            if cell:
                row[name] = _parse_csv_cell(cell)
        rows.add(row)
    if len(names) == 1:
        last_line = text[text.rfind("\n") + 1 :]
        if TIME_LIMIT.search(last_line):
            raise ValueError("the last row is a sentence")
    if names in (["true"], ["false"]) and rows.count == 0:
        return {"boolean": names == ["true"]}
    return _table_of(names)


def _parse_csv_cell(cell: str) -> dict[str, str]:
    """Return a cell in CSV as in JSON."""
    if _CSV_IRI.fullmatch(cell):
        return {"type": "uri", "value": cell}
    if cell.startswith("_:"):
        return {"type": "bnode", "value": cell[2:]}
    return {"type": "literal", "value": cell}


def _table_of(names: list[Any]) -> ResultData:
    """Return a table with these variables, without its rows."""
    return {"head": {"vars": names}, "results": {"bindings": []}}


READERS: dict[str, Reader] = {
    "application/sparql-results+json": read_json,
    "application/sparql-results+xml": read_xml,
    "text/tab-separated-values": read_tsv,
    "text/csv": read_csv,
}
"""The readers by media type."""


def decode_body(body: bytes, charset: str) -> tuple[str, UnicodeDecodeError | None]:
    """Return the text of a body, and the first error if it is not UTF-8 and nothing says what it is.

    UTF-8, and UTF-16 that begins so, count whatever is announced, since servers announce their
    default. What is neither is read by ``charset``, else by the declaration of its XML, else as
    UTF-8. Characters that cannot be read are replaced by U+FFFD.
    """
    body = body.removeprefix(BOM_UTF8)
    codec = _UTF16_STARTS.get(body[:2])
    if codec is not None:
        return body.decode(codec, "replace"), None
    declared = _XML_ENCODING.match(body)
    if not charset and declared:
        charset = declared[1].decode()
    try:
        return body.decode(), None
    except UnicodeDecodeError as error:
        try:
            text = body.decode(charset, "replace")
        except (LookupError, ValueError):  # no codec, or one of Python's that is no character set
            return body.decode(errors="replace"), error
        return text.removeprefix("\ufeff"), None


_BLANKS = re.compile(r"[ \t\n\r]*")


class JsonReader:
    """Reads a JSON text from its beginning to its end, so that a long list is never in memory as a whole.

    Its methods raise ValueError, with the place, if the text is not JSON there. As in ``json`` with
    ``strict=False``, strings may contain control characters.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0
        """How much of the text is read."""
        self._decoder = json.JSONDecoder(strict=False)

    def next_character(self) -> str:
        """Return the first character of what comes next, without reading it; "" at the end."""
        blanks = _BLANKS.match(self._text, self._position)
        assert blanks is not None
        self._position = blanks.end()
        return self._text[self._position : self._position + 1]

    def read_value(self) -> Any:
        """Read a value with all that is inside of it, and return it as Python data.

        Raises RecursionError if it is too deep.
        """
        self.next_character()
        value, self._position = self._decoder.raw_decode(self._text, self._position)
        return value

    def read_members(self) -> Iterator[str]:
        """Read a JSON object: yield the name of each member; the caller must then read its value."""
        for _ in self.read_parts("{", "}"):
            name = self.read_value()
            if not isinstance(name, str):
                raise self.error("expected a name")
            self._read_sign(":")
            yield name

    def read_parts(self, opening: str, closing: str) -> Iterator[None]:
        """Read an object or an array: yield before each part; the caller must then read that part.

        The brackets and the commas are read here.
        """
        self._read_sign(opening)
        if self.next_character() == closing:
            self._position += 1
            return
        while True:
            yield
            if self._read_sign(",", closing) == closing:
                return

    def _read_sign(self, *allowed: str) -> str:
        """Read one of these signs, and return it. Blanks before it are skipped."""
        sign = self.next_character()
        if sign not in allowed:
            expected = " or ".join(map(repr, allowed))
            raise self.error(f"expected {expected}")
        self._position += 1
        return sign

    def error(self, problem: str) -> ValueError:
        """Return the error for what comes next."""
        return json.JSONDecodeError(problem, self._text, self._position)


VIRTUOSO_ASK_COLUMN = "__ASK_RETVAL"
REPLACEMENT_CHARACTER = "\ufffd"
_CHECK_ENDPOINT_HINT = (
    "ask again, and check that the URL is the SPARQL endpoint itself, not its web page"
)
SERVER_TIME_HINT = "give the query a LIMIT or fewer patterns; the time limit is that of the server"
_END_BYTES = 30_000
"""How much of the end of a broken body is searched: a stack trace of Java may be this long."""
_log = logging.getLogger("kgwb")


@frozen
class EndpointResponse:
    """A reply with status 200 or 206. Its methods raise GraphError if it is not a result."""

    body: bytes
    media_type: str
    """The Content-Type without parameters."""
    charset: str = field(default="", kw_only=True)
    """The charset that the Content-Type announces; "" without one."""
    is_partial: bool
    """Whether the endpoint says that this is only a part of the result."""
    max_rows: int | None = None
    """The number of rows that the endpoint sends at most, if it says so."""
    server: str = ""
    """The Server header: the name of the software."""
    by_post: bool = False
    """Whether it answers a POST."""
    secrets: Sequence[str] = field(default=(), repr=False)
    """Passwords and keys that were sent. They are masked in error messages."""

    def parse_result_set(self, variables: Sequence[str], row_limit: int) -> ResultSet:
        """Return the rows of a SELECT result.

        ``variables`` are those that the query asks for; empty for those that the reply names. The
        result is marked as cut if the reply is partial, or has more rows than the row limit or as
        many as the endpoint sends at most. Raises GraphError for a cell that is not an RDF term,
        and if the rows bind none of the variables. Characters that cannot be read are replaced.
        """
        rows = Rows(variables, row_limit)
        named = self._check_table(self._read(rows), rows)
        variables = tuple(variables) or named
        if rows.names and rows.names.isdisjoint(variables):
            listed = ", ".join(variables)
            raise self.invalid_response_error(f"it has no column of {listed}")
        max_rows = row_limit + 1
        if self.max_rows:
            max_rows = min(max_rows, self.max_rows)
        is_cut = self.is_partial or rows.count >= max_rows
        table = [tuple(map(row.get, variables)) for row in rows.parsed]
        return ResultSet(variables, tuple(table), is_cut)

    def parse_boolean(self) -> bool:
        """Return the truth value of an ASK result.

        Virtuoso 7 sends a table with the column VIRTUOSO_ASK_COLUMN instead: "1" is true, "0" or no
        row is false. Raises GraphError for anything else.
        """
        rows = Rows((VIRTUOSO_ASK_COLUMN,), sys.maxsize)
        data = self._read(rows)
        truth = data.get("boolean")
        if isinstance(truth, bool):
            return truth
        variables = self._check_table(data, rows)
        values = {str(row.get(VIRTUOSO_ASK_COLUMN)) for row in rows.parsed}
        if variables != (VIRTUOSO_ASK_COLUMN,) or not values <= {"0", "1"}:
            raise self.invalid_response_error("neither true nor false")
        return "1" in values

    def _check_table(self, data: Mapping[str, Any], rows: Rows) -> tuple[str, ...]:
        """Return the variables that a SELECT result names, and check what was read of its rows.

        Raises GraphError if the variables are not a list of names, the rows not a list of objects,
        or if a row could not be parsed.
        """
        try:
            names = data["head"]["vars"]
            bindings = data["results"]["bindings"]
        except (KeyError, TypeError) as error:
            raise self.invalid_response_error(error) from error
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise self.invalid_response_error("its variables are no list of names")
        if not isinstance(bindings, list) or rows.has_other_items:
            raise self.invalid_response_error("its rows are no list of rows")
        if rows.problem is not None:
            raise self.invalid_response_error(rows.problem) from rows.problem
        return tuple(names)

    def _read(self, rows: Rows) -> ResultData:
        """Return the result in the body, with an empty list in place of its rows.

        The rows are added to ``rows`` one by one. Characters that cannot be read are replaced by
        U+FFFD, and a warning is logged. Raises GraphError for anything but a result, and for one
        that reports an error in "error" or "exception"; it is GraphTimeoutError if the endpoint
        says that its time was over.
        """
        text, bad_text = decode_body(self.body, self.charset)
        if bad_text is not None:
            _log.warning("not UTF-8 throughout: %s; broken characters are replaced", bad_text)
        read = find_reader(text, self.media_type)
        try:
            data = read(text, rows)
        except (ValueError, SyntaxError, RecursionError, csv.Error) as error:
            format_name = read.__name__.removeprefix("read_").upper()
            raise self.broken_response_error(f"broken {format_name}: {error}") from error
        reported = data.get("error") or data.get("exception")
        if reported:
            raise self.broken_response_error(f"it says {reported!r}")
        return data

    def broken_response_error(self, problem: object) -> GraphError:
        """Return the error to raise for a body that breaks off, or that is something else.

        An endpoint whose time is over after it has sent the status can only say so in the body. The
        rows before that are not all, so none is used.
        """
        end = self.body[-_END_BYTES:].decode("utf-8", errors="replace")
        sign = TIME_LIMIT.search(end)
        if sign:
            around = end[max(0, sign.start() - 60) : sign.end() + 60]
            message = f"the endpoint ran out of time in the middle of the result: {around!r}"
            return GraphTimeoutError(mask_secrets(message, self.secrets), hint=SERVER_TIME_HINT)
        return self.invalid_response_error(problem)

    def invalid_response_error(self, problem: object) -> GraphError:
        """Return the error to raise for a reply that is not a result.

        Its message has the media type, whether the reply is a web page, the first 200 characters,
        and the problem. Secrets are masked.
        """
        first_bytes = self.body[:1000]
        decoded = first_bytes.decode("utf-8", errors="replace")
        start = decoded.strip()
        is_xml = self.media_type.endswith("xml")
        seen = "what is no SPARQL result"
        if start.startswith("<") and not is_xml:
            seen = "a web page"
        excerpt = truncate_at_word(start, 200)
        message = f"the endpoint sent {seen} ({self.media_type}): {excerpt!r}; {problem}"
        masked = mask_secrets(message, self.secrets)
        return GraphError(masked, hint=_CHECK_ENDPOINT_HINT)


def parse_cell(data: Any) -> Term:
    """Return the term of a cell of a SELECT result, given as data of JSON or as a term.

    In a string, half a surrogate pair is replaced by U+FFFD. In an IRI or another literal, a
    replaced character would make another term than was meant. So ValueError is raised for one that
    has a lone surrogate or U+FFFD, and for anything that is not an RDF term.
    """
    term = term_from_data(data)
    is_broken = find_lone_surrogate(term) or REPLACEMENT_CHARACTER in term
    if not is_broken:
        return term
    if not isinstance(term, Literal) or term.datatype not in (None, XSD.string):
        raise ValueError(f"not an RDF term, as a character is broken: {data!r}")
    return Literal(LONE_SURROGATE.sub(REPLACEMENT_CHARACTER, term), lang=term.language)
