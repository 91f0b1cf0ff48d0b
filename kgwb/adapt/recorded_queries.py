"""Queries of a pipeline's own graph or endpoint as the queries of a run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kgwb.adapt.replays import missing_calls_noted
from kgwb.records import JsonObject
from kgwb.run import Run


def record_query(
    run: Run,
    form: str,
    identity: str,
    query: str,
    make: Callable[[], Any],
    *,
    parameters: JsonObject | None = None,
) -> Any:
    """Return the recorded result of a query; without one, call ``make`` and record what it returns.

    ``form`` is "select", "ask" or "construct": the result is a ResultSet, a bool, or triples.
    ``identity`` is that of the pipeline's graph. ``query`` is recorded with the triples that are
    muted in the run and, if given, ``parameters``. ``make`` is not called in a replay.

    Raises NotRecordedError in a replay that lacks the query, and what ``make`` raises.
    """
    request: JsonObject = {"graph": identity, "query": query, **run.kg.muted_data}
    if parameters:
        request["parameters"] = parameters
    with missing_calls_noted(run):
        return run.call(form, request, None if run.is_replay else make)
