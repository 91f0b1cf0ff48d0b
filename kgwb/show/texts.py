"""Texts beside the graph that support an answer, as HTML. They are marked, and look like no triple."""

from __future__ import annotations

from collections.abc import Sequence

from kgwb.flow import CitedText
from kgwb.show.html import Html, div, muted_text, omitted_count, span, tag
from kgwb.text import shorten

MAX_SHOWN_TEXTS = 5
"""Texts that are shown of one value."""
MAX_CITED_CHARS = 1_000
"""Characters of a text that are shown."""


def render_texts(texts: Sequence[CitedText]) -> Html:
    """Render texts with the mark "text", their file and place, and their words.

    At most MAX_SHOWN_TEXTS are shown, and then how many more there are.
    """
    parts = [render_text(cited) for cited in texts[:MAX_SHOWN_TEXTS]]
    return div("stack tight", *parts, omitted_count(len(texts) - MAX_SHOWN_TEXTS))


def render_text(cited: CitedText) -> Html:
    """Render one text with its mark and its place."""
    head = div("row", span("chip", "text"), muted_text(str(cited)))
    words = tag("bdi", shorten(cited.text, MAX_CITED_CHARS))
    return div("", head, words)
