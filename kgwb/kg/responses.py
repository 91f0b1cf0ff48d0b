"""The reply of an endpoint to one query, and how its result is read."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rdflib import XSD, Literal

from kgwb.errors import GraphError
from kgwb.kg.base import ResultSet
from kgwb.kg.sparql import LONE_SURROGATE
from kgwb.masking import mask_secrets, truncate_at_word
from kgwb.terms import Term, term_from_data

VIRTUOSO_ASK_COLUMN = "__ASK_RETVAL"
VIRTUOSO_TRUTH_VALUES = {"1": True, "0": False}
REPLACEMENT_CHARACTER = "\ufffd"
_CHECK_ENDPOINT_HINT = (
    "ask again, and check that the URL is the SPARQL endpoint itself, not its web page"
)
_log = logging.getLogger("kgwb")


@dataclass(frozen=True, slots=True)
class EndpointResponse:
    """A reply with status 200 or 206. Its methods raise GraphError if it is not a result."""

    body: bytes
    media_type: str
    """The Content-Type without parameters."""
    is_partial: bool
    """Whether the endpoint says that this is only a part of the result."""
    max_rows: int | None = None
    """The number of rows that the endpoint sends at most, if it says so."""
    server: str = ""
    """The Server header: the name of the software."""
    secrets: Sequence[str] = field(default=(), repr=False)
    """Passwords and keys that were sent. They are masked in error messages."""

    def require_valid_text(self) -> None:
        """Raise GraphError if the body is not UTF-8 throughout."""
        try:
            self.body.decode("utf-8")
        except UnicodeDecodeError as error:
            raise self.invalid_response_error(f"not UTF-8 throughout: {error}") from error

    def parse_json(self) -> dict[str, Any]:
        """Return the JSON object in the body.

        Bytes that are not UTF-8 are replaced by U+FFFD, with a warning in the log. GraphError is
        raised for anything but a JSON object, and for one that reports an error in "error" or
        "exception".
        """
        try:
            text = self.body.decode("utf-8")
        except UnicodeDecodeError as error:
            _log.warning("not UTF-8 throughout: %s; broken characters of texts are replaced", error)
            text = self.body.decode("utf-8", errors="replace")
        try:
            data = json.loads(text, strict=False)
        except (ValueError, RecursionError) as error:
            raise self.invalid_response_error(f"broken JSON: {error}") from error
        if not isinstance(data, dict):
            raise self.invalid_response_error("JSON of another kind")
        reported = data.get("error") or data.get("exception")
        if reported:
            raise self.invalid_response_error(f"it says {reported!r}")
        return data

    def parse_result_set(self, variables: Sequence[str], row_limit: int) -> ResultSet:
        """Return the rows of a SELECT result in JSON.

        ``variables`` are those that the query asks for; empty for those that the reply names. The
        result is marked as cut if the reply is partial, or has more rows than the row limit or as
        many as the endpoint sends at most. Raises GraphError for a cell that is not an RDF term,
        and if the rows bind none of the variables.
        """
        columns, bindings = self._read_bindings()
        variables = tuple(variables) or columns
        bound = set[str]().union(*bindings)
        if bound and bound.isdisjoint(variables):
            listed = ", ".join(variables)
            raise self.invalid_response_error(f"it has no column of {listed}")
        rows = []
        try:
            for binding in bindings[:row_limit]:
                rows.append(_parse_row(binding, variables))
        except ValueError as error:
            raise self.invalid_response_error(error) from error
        max_rows = row_limit + 1
        if self.max_rows:
            max_rows = min(max_rows, self.max_rows)
        is_cut = self.is_partial or len(bindings) >= max_rows
        return ResultSet(variables, tuple(rows), is_cut)

    def _read_bindings(self) -> tuple[tuple[str, ...], list[dict[str, Any]]]:
        """Return the variables of a SELECT result in JSON, and for each row its cells by variable.

        Raises GraphError if they are not lists of names and of objects. Cells are not checked.
        """
        data = self.parse_json()
        try:
            names = data["head"]["vars"]
            bindings = data["results"]["bindings"]
        except (KeyError, TypeError) as error:
            raise self.invalid_response_error(error) from error
        if not _is_list_of(str, names):
            raise self.invalid_response_error("its variables are no list of names")
        if not _is_list_of(dict, bindings):
            raise self.invalid_response_error("its rows are no list of rows")
        return tuple(names), bindings

    def parse_boolean(self) -> bool:
        """Return the truth value of an ASK result in JSON.

        Virtuoso 7 sends a table with the column VIRTUOSO_ASK_COLUMN instead: "1" is true, "0" or no
        row is false. Raises GraphError for anything else.
        """
        truth = self.parse_json().get("boolean")
        if isinstance(truth, bool):
            return truth
        variables, bindings = self._read_bindings()
        try:
            values = [binding[VIRTUOSO_ASK_COLUMN]["value"] for binding in bindings]
            truths = [VIRTUOSO_TRUTH_VALUES[value] for value in values]
        except (KeyError, TypeError) as error:
            raise self.invalid_response_error(error) from error
        if variables != (VIRTUOSO_ASK_COLUMN,):
            raise self.invalid_response_error("neither true nor false")
        return any(truths)

    def invalid_response_error(self, problem: object) -> GraphError:
        """Return the error to raise for a reply that is not a result.

        Its message has the media type, whether the reply is a web page, the first 200 characters,
        and the problem. Secrets are masked.
        """
        start = self.body[:1000].decode("utf-8", errors="replace").strip()
        is_xml = self.media_type.endswith("xml")
        seen = "what is no SPARQL result"
        if start.startswith("<") and not is_xml:
            seen = "a web page"
        excerpt = truncate_at_word(start, 200)
        message = f"the endpoint sent {seen} ({self.media_type}): {excerpt!r}; {problem}"
        masked = mask_secrets(message, self.secrets)
        return GraphError(masked, hint=_CHECK_ENDPOINT_HINT)


def _is_list_of(item_type: type, value: object) -> bool:
    if not isinstance(value, list):
        return False
    return all(isinstance(item, item_type) for item in value)


def _parse_row(binding: Mapping[str, Any], variables: Iterable[str]) -> tuple[Term | None, ...]:
    """Return the terms of the variables in a row of a SELECT result in JSON, None if unbound.

    Raises ValueError as ``parse_cell`` does.
    """
    cells = []
    for variable in variables:
        cell = None
        if variable in binding:
            cell = parse_cell(binding[variable])
        cells.append(cell)
    return tuple(cells)


def parse_cell(data: Any) -> Term:
    """Return the term of a cell of a SELECT result in JSON.

    In a string, half a surrogate pair is replaced by U+FFFD. In an IRI or another literal, a
    replaced character would make another term than was meant. So ValueError is raised for one that
    has a lone surrogate or U+FFFD, and for anything that is not an RDF term.
    """
    term = term_from_data(data)
    is_broken = LONE_SURROGATE.search(term) or REPLACEMENT_CHARACTER in term
    if not is_broken:
        return term
    is_string = isinstance(term, Literal) and term.datatype in (None, XSD.string)
    if not is_string:
        raise ValueError(f"not an RDF term, as a character is broken: {data!r}")
    text = LONE_SURROGATE.sub(REPLACEMENT_CHARACTER, term)
    return term_from_data({**data, "value": text})
