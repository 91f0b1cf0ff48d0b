"""Whether values of an answer may be missing, because the result of a query was cut."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace

from kgwb.errors import GraphError
from kgwb.flow import Answer
from kgwb.kg.base import ResultSet
from kgwb.kg.muting import rewrite_without
from kgwb.run.calls import Call
from kgwb.terms import Triples


def doubt_cut_results(answer: Answer, used_calls: Iterable[Call], muted: Triples) -> Answer:
    """Return an answer with a doubt if the result of one of its queries was cut, else as it is.

    An answer without values, or of the kind "boolean", has no such doubt. The arguments are those
    of ``find_cut_result``.
    """
    if not answer.values or answer.kind == "boolean":
        return answer
    result = find_cut_result(answer, used_calls, muted)
    if result is None:
        return answer
    cut = f"the result of its query was cut at {len(result.rows):,} rows, so more may be missing"
    doubts = filter(None, [answer.doubt, cut])
    return replace(answer, doubt="; ".join(doubts))


def find_cut_result(answer: Answer, used_calls: Iterable[Call], muted: Triples) -> ResultSet | None:
    """Return the first result of an answer's queries that was cut; None if none was.

    For a count only the last query is looked at: a system counts again, by another query, where a
    list was cut. ``used_calls`` are the recorded calls that the answer was made from, and ``muted``
    the triples that the graph was read without.
    """
    cut_calls = list(filter(_is_cut, used_calls))
    if not cut_calls:
        return None
    queries = answer.queries
    if answer.kind == "count":
        queries = queries[-1:]
    sent_queries = [_as_sent(query, muted) for query in queries]
    for call in cut_calls:
        if _is_one_of(call.request["query"], sent_queries):
            result: ResultSet = call.result
            return result
    return None


def _as_sent(query: str, muted: Triples) -> str:
    """Return a query as it was sent for a graph without some triples."""
    sent = query
    if muted:
        with suppress(GraphError):
            sent = rewrite_without(query, muted)
    return sent.strip()


def _is_cut(call: Call) -> bool:
    """Return whether a call is a SELECT whose rows were cut."""
    return call.kind == "select" and isinstance(call.result, ResultSet) and call.result.cut


def _is_one_of(sent: str, queries: Sequence[str]) -> bool:
    """Return whether a query that was sent is one of these, perhaps with PREFIX lines before it."""
    return any(query and sent.strip().endswith(query) for query in queries)
