"""The reply of an endpoint to one query, and how its result is read.

``kgwb.kg.result_formats`` reads the formats.
"""

from __future__ import annotations

import csv
import logging
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from rdflib import XSD, Literal

from kgwb.errors import GraphError, GraphTimeoutError
from kgwb.kg.base import ResultSet
from kgwb.kg.result_formats import TIME_LIMIT, ResultData, Rows, find_codec, find_reader
from kgwb.kg.sparql import LONE_SURROGATE
from kgwb.terms import Term, term_from_data
from kgwb.text import mask_secrets, truncate_at_word

VIRTUOSO_ASK_COLUMN = "__ASK_RETVAL"
VIRTUOSO_TRUTH_VALUES = {"1": True, "0": False}
REPLACEMENT_CHARACTER = "\ufffd"
_CHECK_ENDPOINT_HINT = (
    "ask again, and check that the URL is the SPARQL endpoint itself, not its web page"
)
SERVER_TIME_HINT = "give the query a LIMIT or fewer patterns; the time limit is that of the server"
_END_BYTES = 30_000
"""How much of the end of a broken body is searched: a stack trace of Java may be this long."""
_log = logging.getLogger("kgwb")


@dataclass(frozen=True, slots=True)
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

    def require_valid_text(self) -> None:
        """Raise GraphError if the body has characters that cannot be read."""
        _, error = find_codec(self.body, self.charset)
        if error is not None:
            raise self.invalid_response_error(f"not UTF-8 throughout: {error}") from error

    def parse_result_set(self, variables: Sequence[str], row_limit: int) -> ResultSet:
        """Return the rows of a SELECT result.

        ``variables`` are those that the query asks for; empty for those that the reply names. The
        result is marked as cut if the reply is partial, or has more rows than the row limit or as
        many as the endpoint sends at most. Raises GraphError for a cell that is not an RDF term,
        and if the rows bind none of the variables. Characters that cannot be read are replaced.
        """
        codec = self._find_codec()
        variables = tuple(variables) or self._read_table(codec, Rows(_parse_nothing, 0))
        parse_row = partial(_parse_row, variables=variables)
        rows = Rows(parse_row, row_limit)
        self._read_table(codec, rows)
        if rows.names and rows.names.isdisjoint(variables):
            listed = ", ".join(variables)
            raise self.invalid_response_error(f"it has no column of {listed}")
        max_rows = row_limit + 1
        if self.max_rows:
            max_rows = min(max_rows, self.max_rows)
        is_cut = self.is_partial or rows.count >= max_rows
        return ResultSet(variables, tuple(rows.parsed), is_cut)

    def parse_boolean(self) -> bool:
        """Return the truth value of an ASK result.

        Virtuoso 7 sends a table with the column VIRTUOSO_ASK_COLUMN instead: "1" is true, "0" or no
        row is false. Raises GraphError for anything else.
        """
        rows = Rows(_parse_virtuoso_truth, sys.maxsize)
        data = self._read(self._find_codec(), rows)
        truth = data.get("boolean")
        if isinstance(truth, bool):
            return truth
        variables = self._check_table(data, rows)
        if variables != (VIRTUOSO_ASK_COLUMN,):
            raise self.invalid_response_error("neither true nor false")
        return any(rows.parsed)

    def _find_codec(self) -> str:
        """Return the codec of the body. A warning is logged if there are characters that cannot be read."""
        codec, bad_text = find_codec(self.body, self.charset)
        if bad_text is not None:
            _log.warning("not UTF-8 throughout: %s; broken characters are replaced", bad_text)
        return codec

    def _read_table(self, codec: str, rows: Rows[Any]) -> tuple[str, ...]:
        """Return the variables of a SELECT result, and add its rows to ``rows``.

        Raises GraphError if they are not lists of names and of objects, or a row cannot be parsed.
        """
        data = self._read(codec, rows)
        return self._check_table(data, rows)

    def _check_table(self, data: Mapping[str, Any], rows: Rows[Any]) -> tuple[str, ...]:
        """Return the variables that a SELECT result names, and check what was read of its rows.

        Raises GraphError if the variables are not a list of names, the rows not a list of objects,
        or if a row could not be parsed.
        """
        try:
            names = data["head"]["vars"]
            bindings = data["results"]["bindings"]
        except (KeyError, TypeError) as error:
            raise self.invalid_response_error(error) from error
        if not _is_list_of_texts(names):
            raise self.invalid_response_error("its variables are no list of names")
        if not isinstance(bindings, list) or rows.has_other_items:
            raise self.invalid_response_error("its rows are no list of rows")
        if rows.problem is not None:
            raise self.invalid_response_error(rows.problem) from rows.problem
        return tuple(names)

    def _read(self, codec: str, rows: Rows[Any]) -> ResultData:
        """Return the result in the body, with an empty list in place of its rows.

        The rows are added to ``rows`` one by one. Characters that cannot be read are replaced by
        U+FFFD. Raises GraphError for anything but a result, and for one that reports an error in
        "error" or "exception"; it is GraphTimeoutError if the endpoint says that its time was over.
        """
        read = find_reader(self.body, self.media_type)
        try:
            data = read(self.body, codec, rows)
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


def _is_list_of_texts(value: object) -> bool:
    """Return whether a value is a list in which every item is a str; an empty list is one."""
    if not isinstance(value, list):
        return False
    return all(isinstance(item, str) for item in value)


def _parse_nothing(binding: Mapping[str, Any]) -> None:
    """Stand for the parser of rows that are not needed."""


def _parse_virtuoso_truth(binding: Mapping[str, Any]) -> bool:
    """Return the truth value in a row of Virtuoso 7. Raises KeyError or TypeError for another row."""
    cell = binding[VIRTUOSO_ASK_COLUMN]
    return VIRTUOSO_TRUTH_VALUES[cell["value"]]


def _parse_row(binding: Mapping[str, Any], variables: Iterable[str]) -> tuple[Term | None, ...]:
    """Return the terms of the variables in a row of a SELECT result, None if unbound.

    Raises ValueError for a cell that is not an RDF term, or is one with a broken character that is
    not a string.
    """
    cells = []
    for variable in variables:
        data = binding.get(variable)
        cells.append(None if data is None else parse_cell(data))
    return tuple(cells)


def parse_cell(data: Any) -> Term:
    """Return the term of a cell of a SELECT result, given as data of JSON or as a term.

    In a string, half a surrogate pair is replaced by U+FFFD. In an IRI or another literal, a
    replaced character would make another term than was meant. So ValueError is raised for one that
    has a lone surrogate or U+FFFD, and for anything that is not an RDF term.
    """
    term = term_from_data(data)
    is_broken = LONE_SURROGATE.search(term) or REPLACEMENT_CHARACTER in term
    if not is_broken:
        return term
    if not isinstance(term, Literal) or term.datatype not in (None, XSD.string):
        raise ValueError(f"not an RDF term, as a character is broken: {data!r}")
    return Literal(LONE_SURROGATE.sub(REPLACEMENT_CHARACTER, term), lang=term.language)
