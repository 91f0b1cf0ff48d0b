"""What a person can choose from, as HTML: candidates of entity linking, and other options."""

from __future__ import annotations

from collections.abc import Sequence

from kgwb.flow import Candidate, Link, RetrievedCandidates
from kgwb.show.fields import render_explanation
from kgwb.show.html import (
    MAX_ROWS,
    Html,
    bar,
    button,
    collapsible,
    div,
    join,
    muted_text,
    span,
    state_badge,
    tag,
)
from kgwb.show.terms import RenderContext, render_candidate
from kgwb.text import and_more, shorten

MAX_DEGREE = 1_000
"""Degrees of vertices are counted up to this number."""
NO_CANDIDATE_LABEL = "none of these: it is not in the graph"


def render_choices(
    options: Sequence[object], selected: int, none_label: str, context: RenderContext
) -> Html:
    """Render a row for each option, and a last row for choosing none of them.

    The option at position ``selected`` is marked; -1 is none. In an interactive context, a click
    on a row chooses it.
    """
    rows = []
    for position, option in enumerate(options):
        rows.append(_render_choice(position, option, position == selected, context))
    no_option = span("soft", none_label)
    rows.append(_render_choice(-1, no_option, selected == -1, context))
    return tag("ol", *rows, class_="rows")


def _render_choice(
    position: int, option: object, is_selected: bool, context: RenderContext
) -> Html:
    """Render an option as a row that sends the event "take" with its position."""
    attributes: dict[str, object] = {"type": "button", "aria_pressed": str(is_selected).lower()}
    action: object = ""
    if context.is_interactive:
        attributes["data_do"] = "take"
        attributes["data_arg"] = position
        attributes["id"] = f"take-{position}"
        action = span("btn ghost", "take none" if position == -1 else "take this one")
    if is_selected:
        action = state_badge("ok", "taken")
    parts = [span("mark"), span("grow", option), span("take", action)]
    row = tag("button", *parts, class_="cand", **attributes)
    return tag("li", row, class_="taken" if is_selected else None)


def render_link(link: Link, context: RenderContext) -> Html:
    """Render the candidates of a mention with the vertex chosen; a click chooses another one.

    At most MAX_ROWS candidates are shown. A chosen vertex that is no candidate comes last.
    """
    candidates = list(dict.fromkeys(link.candidates))
    if link.vertex and link.vertex not in candidates:
        candidates.append(link.vertex)
    shown = candidates[:MAX_ROWS]
    selected = shown.index(link.vertex) if link.vertex in shown else -1
    options = [_render_candidate_with_degree(candidate, context) for candidate in shown]
    parts = [
        render_choices(options, selected, NO_CANDIDATE_LABEL, context),
        _render_omitted(len(link.candidates) - len(shown)),
    ]
    if link.reason:
        parts.append(div("band", render_explanation(link.reason)))
    parts.append(_render_candidate_queries(link, context))
    return join(*parts)


def render_retrieved(retrieved: RetrievedCandidates, context: RenderContext) -> Html:
    """Render the candidates that the label search found, with their scores, and the search.

    At most MAX_ROWS candidates are shown.
    """
    rows = []
    for rank, candidate in enumerate(retrieved.candidates[:MAX_ROWS], 1):
        rows.append(_render_ranked_candidate(rank, candidate, context))
    method = f" by {retrieved.how}" if retrieved.how else ""
    parts = [
        div("band", tag("b", str(retrieved)), span("soft", method)),
        tag("ol", *rows, class_="rows"),
        _render_omitted(len(retrieved.candidates) - MAX_ROWS),
    ]
    if retrieved.query:
        query = span("id", shorten(retrieved.query))
        parts.append(div("band", collapsible(muted_text("the search as it was sent"), query)))
    parts.append(_render_candidate_queries(retrieved, context))
    return join(*parts)


def _render_ranked_candidate(rank: int, candidate: Candidate, context: RenderContext) -> Html:
    """Render a candidate with its rank before it and its score after it."""
    score = span("num", f"{candidate.score:.2f}")
    score_bar = span("minibar", bar(candidate.score))
    label = span("grow", _render_candidate_with_degree(candidate, context))
    row = div("cand plain", span("num", rank), label, span("take row", score_bar, score))
    return tag("li", row)


def _render_omitted(number: int) -> Html:
    return div("band soft", and_more(number)) if number > 0 else Html()


def _render_candidate_with_degree(candidate: Candidate, context: RenderContext) -> Html:
    """Render a candidate, and below it its number of triples, if the person asked for that."""
    shown = render_candidate(candidate, context)
    degrees = context.graph_results.get("degrees", {})
    degree = degrees.get(candidate.iri)
    if degree is None:
        return shown
    is_limit = degree >= MAX_DEGREE
    text = f"degree {degree:,}+" if is_limit else f"degree {degree:,}"
    return join(shown, span("under soft", text))


def _render_candidate_queries(record: RetrievedCandidates | Link, context: RenderContext) -> Html:
    """Render the questions about candidates that a person can put to the graph, and the replies.

    One looks for a vertex by its name or IRI (event "where"), the other asks for the degrees of the
    candidates. Without a graph to ask nothing is rendered.
    """
    if not context.is_interactive:
        return Html()
    label = f"Is this among the candidates for “{record.entity}”?"
    field = tag(
        "input",
        type="text",
        name="name",
        placeholder="a name or an IRI",
        id="among",
        aria_label=label,
    )
    controls = [
        tag("label", span("", label), field, class_="f grow"),
        button("Look for it", "where"),
    ]
    if record.candidates and "degrees" not in context.graph_results:
        controls.append(button("Show degrees", "degrees"))
    form = tag("form", *controls, class_="row ends controls", data_do="where")
    return div("band stack", form, render_graph_result("where", context))


def render_graph_result(question: str, context: RenderContext) -> Html:
    """Render what the graph replied to a question; nothing if it was not asked.

    ``question`` is a name in ``context.graph_results``. A reply is a list of lines, or a record.
    """
    # Not at the top of the file: the module of views imports this one.
    from kgwb.show.records import render

    if question not in context.graph_results:
        return Html()
    reply = context.graph_results[question]
    if isinstance(reply, list) and reply:
        lines = [div("", line) for line in reply]
        return div("well", *lines)
    return div("well", render(reply, context))
