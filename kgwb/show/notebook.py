"""The objects of kgwb as HTML in a notebook.

Runs, steps, differences and records stand below this room, and cannot import it. So they have no
``_repr_html_``; ``import kgwb`` tells IPython to show them with ``to_html``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kgwb.kg.survey_records import Survey
from kgwb.llm.base import DataNotice
from kgwb.records import Record
from kgwb.run import Run
from kgwb.run.differences import Differences
from kgwb.run.steps import Step
from kgwb.show import html as h
from kgwb.show.comparison import render_differences_page
from kgwb.show.records import render
from kgwb.show.run import render_notice_page, render_run_page, render_step_page
from kgwb.show.survey import render_survey_page
from kgwb.show.terms import RenderContext


def render_record_page(record: Record) -> str:
    """Render a record as HTML that stands alone."""
    return h.static_section(render(record, RenderContext()))


RENDERERS: Mapping[type, Callable[[Any], str]] = {
    Run: render_run_page,
    Step: render_step_page,
    Differences: render_differences_page,
    Survey: render_survey_page,
    DataNotice: render_notice_page,
    Record: render_record_page,
}
"""How objects are shown in a notebook. A class comes before those it derives from."""


def to_html(value: object) -> str:
    """Render a run, a step, differences, a survey or any other record as HTML that stands alone.

    The first class of RENDERERS that the value is an instance of decides.

    Raises TypeError for anything else.
    """
    for shown_type, function in RENDERERS.items():
        if isinstance(value, shown_type):
            return function(value)
    raise TypeError(f"kgwb does not show a {type(value).__name__} as HTML")
