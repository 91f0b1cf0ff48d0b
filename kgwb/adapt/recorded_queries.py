"""Queries of a pipeline's own graph or endpoint as the queries of a run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kgwb.adapt.replays import missing_calls_noted
from kgwb.kg.muting import rewrite_without
from kgwb.records import JsonObject
from kgwb.run import Run


def record_query(
    run: Run,
    form: str,
    identity: str,
    query: str,
    make: Callable[[str], Any],
    *,
    shown_query: str = "",
    parameters: JsonObject | None = None,
) -> Any:
    """Return the recorded result of a query; without one, call ``make`` and record what it returns.

    ``form`` is "select", "ask" or "construct": the result is a ResultSet, a bool, or triples.
    ``identity`` is that of the pipeline's graph. ``make`` is given the query without the triples
    that are muted in the run; it is not called in a replay. ``shown_query`` is recorded in place of
    the query, if given, and ``parameters`` besides it.

    Raises QueryError if the muted triples cannot be left out, NotRecordedError in a replay that
    lacks the query, and what ``make`` raises.
    """
    muted = run.kg.muted
    rewritten = rewrite_without(query, muted)
    request: JsonObject = {"graph": identity, "query": rewritten}
    if shown_query:
        request["query"] = rewrite_without(shown_query, muted)
    if parameters:
        request["parameters"] = parameters

    def make_result() -> Any:
        """Send the query by the pipeline's own client."""
        return make(rewritten)

    with missing_calls_noted(run):
        return run.call(form, request, None if run.is_replay else make_result)
