"""What the graph replied to questions of a person about a record, as HTML."""

from __future__ import annotations

from collections.abc import Mapping

from kgwb.kg.queries import EmptyResultCause
from kgwb.run.agents import View
from kgwb.show.explain import (
    PredicateExamples,
    QueryFailure,
    QueryResult,
    render_blocking,
    render_examples,
    render_query_failure,
    render_query_result,
)
from kgwb.show.html import Html, div
from kgwb.show.terms import RenderContext

REPLY_VIEWS: Mapping[type, View] = {
    EmptyResultCause: render_blocking,
    PredicateExamples: render_examples,
    QueryFailure: render_query_failure,
    QueryResult: render_query_result,
}
"""How replies of the graph that are records are rendered."""


def render_graph_result(question: str, context: RenderContext) -> Html:
    """Render what the graph replied to a question; nothing if it was not asked.

    ``question`` is a name in ``context.graph_results``. A reply is a list of lines, or a record of
    a class in REPLY_VIEWS. Raises KeyError for a reply of any other class.
    """
    if question not in context.graph_results:
        return Html()
    reply = context.graph_results[question]
    if isinstance(reply, list):
        lines = [div("", line) for line in reply]
        return div("well", *lines)
    view = REPLY_VIEWS[type(reply)]
    return div("well", Html(view(reply, context)))
