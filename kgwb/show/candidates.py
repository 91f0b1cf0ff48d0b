"""What a person can choose from, as HTML: candidates of entity linking, and other options."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from kgwb.flow import Candidate, Link, RetrievedCandidates
from kgwb.show.fields import render_explanation
from kgwb.show.graph_results import render_graph_result
from kgwb.show.html import (
    MAX_ROWS,
    Html,
    bar,
    button,
    div,
    join,
    render_template,
    span,
    state_badge,
)
from kgwb.show.terms import RenderContext, render_candidate
from kgwb.text import and_more, shorten

MAX_DEGREE = 1_000
"""Degrees of vertices are counted up to this number."""
NO_CANDIDATE_LABEL = "none of these: it is not in the graph"


class Choice(NamedTuple):
    """An option that a person can choose, as the template shows it."""

    position: int
    """-1 for choosing none of the options."""
    label: object
    action: str
    is_selected: bool


def render_choices(
    options: Sequence[object],
    selected: Collection[int],
    none_label: str,
    context: RenderContext,
) -> Html:
    """Render a row for each option, and a last row for choosing none of them.

    The options at the positions ``selected`` are marked as taken; -1 is none. In an interactive context,
    the other rows say "take this one", and a click on a row sends the event "take" with its
    position. ``options`` are HTML or texts; ``none_label`` stands in the last row.
    """
    choices = []
    for position, option in enumerate(options):
        choices.append(Choice(position, option, "take this one", position in selected))
    no_option = span("soft", none_label)
    choices.append(Choice(-1, no_option, "take none", -1 in selected))
    return render_template(
        "show/templates/choices.html",
        choices=choices,
        selected_badge=state_badge("kept", "taken"),
        is_interactive=context.is_interactive,
    )


def render_link(link: Link, context: RenderContext) -> Html:
    """Render the candidates of a mention, the chosen ones marked, and the reason for the choice.

    In an interactive context, a click chooses another candidate, or none, and questions about
    candidates can be put to the graph. At most MAX_ROWS candidates are shown. A chosen vertex that
    is not among the candidates comes last.
    """
    candidates = list(dict.fromkeys(link.candidates))
    candidates += [vertex for vertex in link.vertices if vertex not in candidates]
    shown = candidates[:MAX_ROWS]
    selected = []
    for vertex in link.vertices:
        if vertex in shown:
            selected.append(shown.index(vertex))
    if not selected:
        selected = [-1]
    options = [_render_candidate_with_degree(candidate, context) for candidate in shown]
    omitted = len(link.candidates) - len(shown)
    parts = [
        render_choices(options, selected, NO_CANDIDATE_LABEL, context),
        _render_omitted(omitted),
    ]
    if link.reason:
        explanation = render_explanation(link.reason)
        parts.append(div("band", explanation))
    parts.append(_render_candidate_queries(link, context))
    return join(*parts)


class RankedCandidate(NamedTuple):
    """A candidate with its score, as the template shows it."""

    label: Html
    score: str
    score_bar: Html


def render_retrieved(retrieved: RetrievedCandidates, context: RenderContext) -> Html:
    """Render the candidates that the label search found, with their scores, and how it searched.

    At most MAX_ROWS candidates are shown, each with its score as a number and a bar, and then how
    many more there are. In an interactive context, questions about candidates can be asked below.
    """
    candidates = []
    for candidate in retrieved.candidates[:MAX_ROWS]:
        ranked = RankedCandidate(
            label=_render_candidate_with_degree(candidate, context),
            score=f"{candidate.score:.2f}",
            score_bar=bar(candidate.score),
        )
        candidates.append(ranked)
    return render_template(
        "show/templates/retrieved.html",
        summary=str(retrieved),
        method=f" by {retrieved.how}" if retrieved.how else "",
        candidates=candidates,
        omitted=_render_omitted(len(retrieved.candidates) - MAX_ROWS),
        query=shorten(retrieved.query),
        candidate_queries=_render_candidate_queries(retrieved, context),
    )


def _render_omitted(number: int) -> Html:
    """Render "and N more"; nothing if the number is not positive."""
    if number <= 0:
        return Html()
    return div("band soft", and_more(number))


def _render_candidate_with_degree(candidate: Candidate, context: RenderContext) -> Html:
    """Render a candidate, and below it its degree, if the person has asked for the degrees.

    Degrees are counted up to MAX_DEGREE, which is shown as "degree 1,000+".
    """
    shown = render_candidate(candidate, context)
    degrees = context.graph_results.get("degrees", {})
    degree = degrees.get(candidate.iri)
    if degree is None:
        return shown
    text = f"degree {degree:,}"
    if degree >= MAX_DEGREE:  # where counting stopped
        text += "+"
    return join(shown, span("under soft", text))


def _render_candidate_queries(record: RetrievedCandidates | Link, context: RenderContext) -> Html:
    """Render the questions about candidates that a person can put to the graph, and the replies.

    One looks for a vertex by its name or IRI, and sends the event "where". The other, which is
    offered once, asks for the degrees of all candidates. Nothing is rendered if the context is not
    interactive.
    """
    if not context.is_interactive:
        return Html()
    degrees_button = Html()
    if record.candidates and "degrees" not in context.graph_results:
        degrees_button = button("Show degrees", "degrees")
    return render_template(
        "show/templates/candidate_queries.html",
        label=f"Is this among the candidates for “{record.entity}”?",
        search_button=button("Look for it", "where"),
        degrees_button=degrees_button,
        reply=render_graph_result("where", context),
    )
