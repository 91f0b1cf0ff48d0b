"""Records as a person reads them: as text for a terminal, as static HTML for a notebook. No widgets here."""

from kgwb.render.comparison import difference_html
from kgwb.render.records import record_html
from kgwb.render.text import difference_text, summary, tree
from kgwb.render.views import answer_html, run_html, step_html

__all__ = [
    "answer_html",
    "difference_html",
    "difference_text",
    "record_html",
    "run_html",
    "step_html",
    "summary",
    "tree",
]
