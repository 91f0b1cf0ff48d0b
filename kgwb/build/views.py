"""HTML of records: the parts that the views of systems are made of.

``docs/reference/build_parts.md`` tells each name.
"""

from kgwb.show.answers import render_answer_parts, render_query_block, with_unique_names
from kgwb.show.candidates import render_choices
from kgwb.show.explain import query_part_text
from kgwb.show.fields import render_explanation, render_table
from kgwb.show.graph_results import render_graph_result
from kgwb.show.html import (
    MAX_ROWS,
    Html,
    bar,
    button,
    collapsible,
    div,
    highlight_words,
    join,
    mark_changed_words,
    muted_text,
    note,
    omitted_count,
    preformatted,
    render_word_diff,
    score_bar,
    span,
    state_badge,
    table,
    tag,
)
from kgwb.show.records import render
from kgwb.show.terms import (
    RenderContext,
    lay_out,
    render_candidate,
    render_curie,
    render_query,
    render_term,
    render_term_labels,
    render_triples,
)
from kgwb.show.texts import render_text, render_texts

__all__ = [
    "MAX_ROWS",
    "Html",
    "RenderContext",
    "bar",
    "button",
    "collapsible",
    "div",
    "highlight_words",
    "join",
    "lay_out",
    "mark_changed_words",
    "muted_text",
    "note",
    "omitted_count",
    "preformatted",
    "query_part_text",
    "render",
    "render_answer_parts",
    "render_candidate",
    "render_choices",
    "render_curie",
    "render_explanation",
    "render_graph_result",
    "render_query",
    "render_query_block",
    "render_table",
    "render_term",
    "render_term_labels",
    "render_text",
    "render_texts",
    "render_triples",
    "render_word_diff",
    "score_bar",
    "span",
    "state_badge",
    "table",
    "tag",
    "with_unique_names",
]
