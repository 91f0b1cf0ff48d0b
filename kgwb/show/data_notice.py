"""The notice of what leaves the machine, as HTML."""

from __future__ import annotations

from kgwb.llm.notice import SHOWN_ONCE, DataNotice
from kgwb.show.html import Html, div, join, note, static_section, tag


def render_notice(notice: DataNotice) -> Html:
    """Render which model is asked where, and below it what leaves the machine with its prompts."""
    host = tag("b", notice.host)
    lead = div("", "The prompts of ", notice.model, " leave this machine, to ", host, ".")
    listed = "; ".join(notice.sent)
    contents = div("soft", "They may hold: ", listed, ".")
    once = div("soft small", SHOWN_ONCE)
    return note(lead, contents, once)


def render_notice_page(notice: DataNotice) -> str:
    """Render a notice as HTML that stands alone."""
    body = div("body", render_notice(notice))
    return static_section(body)


def render_notices(notices: tuple[DataNotice, ...]) -> Html:
    """Render notices below each other; nothing without any."""
    if not notices:
        return Html()
    return div("body notes", join(*map(render_notice, notices)), role="status")
