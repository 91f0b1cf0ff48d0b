"""Records as HTML: by a view of their system, by a view of kgwb, or by the types of their fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kgwb.flow import Answer, Link, RetrievedCandidates
from kgwb.kg.sparql import is_query, without_fence
from kgwb.kg.survey_records import Survey
from kgwb.records import MAX_LINE_CHARS, is_record, summarize
from kgwb.run.agents import View, current_version
from kgwb.show.answers import render_answer
from kgwb.show.candidates import render_link, render_retrieved
from kgwb.show.fields import render_fields, render_object, render_table
from kgwb.show.graph_results import REPLY_VIEWS
from kgwb.show.html import Html, div, preformatted, tag
from kgwb.show.survey import render_survey
from kgwb.show.terms import RenderContext, render_query
from kgwb.text import shorten

BUILT_IN_VIEWS: Mapping[type, View] = {
    Answer: render_answer,
    Link: render_link,
    RetrievedCandidates: render_retrieved,
    Survey: render_survey,
    **REPLY_VIEWS,
}
"""How records that several systems share, and replies of the graph, are rendered."""


def render(value: Any, context: RenderContext) -> Html:
    """Render a record, or any other value, by the first of these that applies.

    A view of the system for the record's class, or one that it derives from; then one of
    BUILT_IN_VIEWS. A list is a table, or "nothing" if it is empty. A record is shown by the types
    of its fields, and an object of JSON as a table of its fields. Anything else is its text: a
    query is highlighted, a text with line ends keeps them, and another one is cut at
    MAX_LINE_CHARS.
    """
    view = find_view(type(value), context.views)
    if view is not None:
        return Html(view(value, context))
    if isinstance(value, list | tuple):
        if not value:
            return div("body soft", "nothing")
        return div("body", render_table(value, context))
    if is_record(value):
        return render_fields(value, context)
    if isinstance(value, dict) and value:
        return div("body", render_object(value, context))
    return div("body", _render_text(value, context))


def _render_text(value: Any, context: RenderContext) -> Html:
    """Render a value as its text.

    A query is highlighted, a text with line ends is kept as it is, and another one is cut at
    MAX_LINE_CHARS.
    """
    text = str(value)
    if is_query(text):
        return render_query(without_fence(text), context)
    if "\n" in text:
        return preformatted(value)
    return tag("bdi", shorten(text, MAX_LINE_CHARS))


def find_view(record_class: type, views: Mapping[type, View]) -> View | None:
    """Return the view of a class or of the nearest class it derives from; None if there is none.

    A view among ``views`` comes before the built-in view of the same class. If the module of the
    view was loaded again, its new version is returned.
    """
    for candidate in record_class.__mro__:
        view = _view_of_class(candidate, views) or BUILT_IN_VIEWS.get(candidate)
        if view is not None:
            return current_version(view)
    return None


def _view_of_class(record_class: type, views: Mapping[type, View]) -> View | None:
    """Return the view of exactly this class; None if there is none.

    A class is found by module and name, because its module may have been loaded again since.
    """
    if record_class in views:
        return views[record_class]
    place = (record_class.__module__, record_class.__qualname__)
    for other, view in views.items():
        if (other.__module__, other.__qualname__) == place:
            return view
    return None


def has_details(value: Any, context: RenderContext) -> bool:
    """Return whether rendering a value shows more than its one line.

    That is so for a dictionary, a query, a value whose type has a view, and a value whose summary has
    several lines.
    """
    if isinstance(value, dict):
        return True
    if isinstance(value, str) and is_query(value):
        return True
    has_view = find_view(type(value), context.views) is not None
    return has_view or "\n" in summarize(value)
