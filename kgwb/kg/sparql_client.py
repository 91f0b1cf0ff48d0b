"""Queries to a SPARQL endpoint, and what counts as an answer to them."""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import partial

import pyoxigraph

from kgwb.errors import GraphError, GraphTimeoutError, QueryError
from kgwb.kg.base import QueryLimits, ResultSet, Vocabulary, vocabulary_for_url
from kgwb.kg.local import read_triples
from kgwb.kg.muting import rewrite_without
from kgwb.kg.parsing import parse_response
from kgwb.kg.responses import EndpointResponse
from kgwb.kg.sparql import QueryForm, ValidatedQuery, validate_query
from kgwb.kg.transport import EndpointUrl, send_query
from kgwb.terms import Triple, Triples

VIRTUOSO_SORT_LIMIT_ERROR = "SR353"
"""Virtuoso sorts at most 10,000 rows in a query with a LIMIT, and any number in one without."""
VIRTUOSO_MIN_TIMEOUT_MS = 1000
MIN_SILENT_ROW_LIMIT = 100
"""The smallest number of rows that is taken for a possible limit of an endpoint."""
_TIMEOUT_HINT = (
    "give the query a LIMIT or fewer patterns, or raise query_timeout_s (--query-timeout)"
)
_log = logging.getLogger("kgwb")


class SparqlClient:
    """Sends queries to an endpoint. Its methods wait for the reply, and raise GraphError.

    An endpoint that runs out of time may send the part of a result that it has by then. This part
    is used only where it cannot be wrong: the rows of a monotonic query
    (``ValidatedQuery.is_monotonic``) are returned and marked as cut, and an ASK that is true is
    true. In all other cases GraphTimeoutError is raised: for no rows, counts, the first rows of an
    order, negation, a false ASK, triples, which cannot be marked as cut, and ``select_complete``.

    An endpoint may also have a limit of rows of its own and not say so. A result with a round
    number of rows is therefore looked into by one more query, see ``_has_unsent_row``.
    """

    muted: Triples = ()
    server = ""
    """The name of the server's software, known after the first query."""
    is_virtuoso = False
    """Whether the server is known to be Virtuoso, which can be told to stop in time."""

    def __init__(self, url: str, vocabulary: Vocabulary | None, limits: QueryLimits | None) -> None:
        self._address = EndpointUrl(url)
        self.source = self._address.source
        self.identity = self._address.identity
        self.vocabulary = vocabulary or vocabulary_for_url(url)
        self.limits = limits or QueryLimits()

    def select(self, query: str) -> ResultSet:
        """Run a SELECT query and return its rows, at most the row limit.

        Raises GraphTimeoutError if the endpoint ran out of time, unless it sent rows and the query
        is monotonic: then they are returned, marked as cut.
        """
        request, reply = self._validate_and_send(query, ("select",))
        result = self._parse_rows(request, reply)
        if reply.is_partial:
            is_usable = request.is_monotonic and result.rows
            if not is_usable:
                raise self._timeout_error()
        return result

    def select_complete(
        self, query: str, allowed_service_iri: str = "", *, require_valid_text: bool = False
    ) -> ResultSet:
        """Run a SELECT query whose rows must not be partial, and return them.

        It is for results that are used where nothing could show that rows are missing. Raises
        GraphTimeoutError if the endpoint ran out of time, even if it sent rows. The row limit still
        cuts the result, which is then marked as cut. The query may have SERVICE of
        ``allowed_service_iri`` only, which is for the label search of kgwb itself. With
        ``require_valid_text``, bytes that are not UTF-8 raise GraphError instead of being replaced.
        """
        request, reply = self._validate_and_send(query, ("select",), allowed_service_iri)
        if require_valid_text:
            reply.require_valid_text()
        result = self._parse_rows(request, reply)
        if reply.is_partial:
            raise self._timeout_error()
        return result

    def ask(self, query: str) -> bool:
        """Run an ASK query and return its truth value.

        Raises GraphTimeoutError if the endpoint ran out of time, unless the value is true and the
        query is monotonic.
        """
        request, reply = self._validate_and_send(query, ("ask",))
        is_true = reply.parse_boolean()
        is_usable = request.is_monotonic and is_true
        if reply.is_partial and not is_usable:
            raise self._timeout_error()
        return is_true

    def construct(self, query: str) -> tuple[Triple, ...]:
        """Run a CONSTRUCT or DESCRIBE query and return its triples, at most the row limit.

        The reply is parsed in another process. Raises GraphTimeoutError if the endpoint ran out of
        time or parsing takes longer than ``query_timeout_s``, and GraphError if the reply does not
        parse, or has no triple but the word "error".
        """
        _, reply = self._validate_and_send(query, ("construct", "describe"))
        if reply.is_partial:
            raise self._timeout_error()
        timeout_s = self.limits.query_timeout_s
        try:
            rdf_format = _rdf_format(reply.media_type)
            quads = parse_response(reply.body, rdf_format, self._address.url, timeout_s)
            triples = read_triples(quads, max_triples=self.limits.row_limit)
        except TimeoutError:
            raise GraphTimeoutError(
                f"parsing what {self.source} sent took longer than {timeout_s:g} s",
                hint=_TIMEOUT_HINT,
            ) from None
        except (SyntaxError, ValueError) as error:
            raise reply.invalid_response_error(getattr(error, "msg", error)) from error
        if not triples and b"error" in reply.body.lower():
            # Some engines report an error in a comment, or in JSON-LD that holds no triple.
            raise reply.invalid_response_error("no triples, but an error")
        return triples

    def _parse_rows(self, request: ValidatedQuery, reply: EndpointResponse) -> ResultSet:
        """Return the rows of the reply to a SELECT, at most the row limit.

        They are marked as cut where rows are missing, also where the endpoint left them out without
        a word.
        """
        result = reply.parse_result_set(request.variables, self.limits.row_limit)
        if result.cut or not self._has_unsent_row(request, len(result.rows)):
            return result
        return replace(result, cut=True)

    def _has_unsent_row(self, request: ValidatedQuery, row_count: int) -> bool:
        """Return whether a query has a row after the first ``row_count``, which were sent.

        One row after them is asked for, if their number may be a limit of the endpoint. False if
        the query takes no OFFSET, or if the endpoint fails or does not heed OFFSET and LIMIT.
        """
        if not request.accepts_limit or not _may_be_row_limit(row_count):
            return False
        next_row = f"{request.text}\nOFFSET {row_count}\nLIMIT 1"
        try:
            validate_query(next_row, allow_service=True)
            reply = self._send(next_row, request.form)
            found = reply.parse_result_set(request.variables, 1)
        except GraphError as error:
            _log.debug("not known whether %s has more rows: %s", self.source, error.message)
            return False
        return len(found.rows) == 1 and not found.cut

    def _validate_and_send(
        self, query: str, forms: tuple[QueryForm, ...], allowed_service_iri: str = ""
    ) -> tuple[ValidatedQuery, EndpointResponse]:
        """Send a query of one of these forms, rewritten for the muted triples, with a LIMIT.

        The LIMIT is one above the row limit, so that one row more shows that rows are missing. It
        is left out where the query does not accept one, and where Virtuoso then refuses to sort.
        Returns what the gate found out about the query, and the reply. Raises QueryRefusedError or
        QueryError if it does not pass the gate.
        """
        validate = partial(
            validate_query,
            allow_service=self.limits.allow_service,
            allowed_service_iri=allowed_service_iri,
        )
        request = validate(query, *forms)
        if self.muted:
            request = validate(rewrite_without(request.text, self.muted))
        if not request.accepts_limit:
            return request, self._send(request.text, request.form)
        limited = f"{request.text}\nLIMIT {self.limits.row_limit + 1}"
        try:
            return request, self._send(limited, request.form)
        except QueryError as error:
            if VIRTUOSO_SORT_LIMIT_ERROR not in error.message:
                raise
            return request, self._send(request.text, request.form)

    def _send(self, text: str, form: QueryForm) -> EndpointResponse:
        """Send a validated query, keep the name of the server's software, and return the reply.

        A server that is known to be Virtuoso is told to stop after half of ``query_timeout_s``, at
        least VIRTUOSO_MIN_TIMEOUT_MS: it takes up to twice the time that it is given, and then
        sends the part of the result that it has, which is better than no reply. Raises what
        ``send_query`` does.
        """
        parameters = list(self._address.parameters)
        if self.is_virtuoso:
            half_time_ms = int(self.limits.query_timeout_s * 500)
            timeout_ms = max(VIRTUOSO_MIN_TIMEOUT_MS, half_time_ms)
            parameters.append(("timeout", str(timeout_ms)))
        reply = send_query(self._address, text, form, self.limits, parameters)
        self.server = reply.server
        if "virtuoso" in reply.server.lower():
            self.is_virtuoso = True
        return reply

    def _timeout_error(self) -> GraphTimeoutError:
        """Return the error for a partial result that cannot be used; it names the endpoint."""
        return GraphTimeoutError(
            f"{self.source} reached its time limit and sent only a part of the result",
            hint=_TIMEOUT_HINT,
        )


def _may_be_row_limit(row_count: int) -> bool:
    """Return whether a number of rows looks like a limit: so many hundreds, or a power of two."""
    if row_count < MIN_SILENT_ROW_LIMIT:
        return False
    is_power_of_two = row_count & (row_count - 1) == 0
    return row_count % 100 == 0 or is_power_of_two


def _rdf_format(media_type: str) -> pyoxigraph.RdfFormat:
    """Return the format of a CONSTRUCT result. It is Turtle for an unknown media type.

    It is Turtle for application/json too, though that could be JSON-LD: an error in JSON would be
    valid JSON-LD without triples, but is not valid Turtle.
    """
    if media_type == "application/json":
        return pyoxigraph.RdfFormat.TURTLE
    return pyoxigraph.RdfFormat.from_media_type(media_type) or pyoxigraph.RdfFormat.TURTLE
