"""A benchmark in a notebook: its questions, and the debugger on the run of one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import ipywidgets as widgets

from kgwb.errors import InputError
from kgwb.render.html import short
from kgwb.render.words import clean
from kgwb.systems import load_run
from kgwb.ui.debugger import Debugger
from kgwb.ui.kit import Panel, field, row
from kgwb.ui.session import session_of

if TYPE_CHECKING:
    from kgwb.bench.report import Report

SHOWN = {"what was lost": True, "all questions": False}


class ReportPanel(Panel):
    """The questions of a report; the run of the chosen one opens in the debugger, without model or graph."""

    def __init__(self, report: Report) -> None:
        super().__init__()
        self.report = report
        self._shown = widgets.ToggleButtons(options=SHOWN)
        self._list = widgets.Select(rows=10, layout=widgets.Layout(width="100%"))
        self._opened = widgets.VBox()
        self.watch(self._shown, lambda _: self._fill())
        self._fill()
        head = row(
            field("Show", self._shown),
            self.button("Open in the debugger", self.open_run),
            align_items="flex-end",
        )
        self.show(head, field("Question", self._list), self._opened)

    def open_run(self) -> None:
        """Open the run of the chosen question. Raises InputError if it was not kept, and RunFileError."""
        if self._list.value is None:
            raise InputError("no question is chosen", hint="choose one in the list")
        number, key = self._list.value
        one = self.report.sets[number]
        if (file := one.run_file(one.rows[key])) is None:
            raise InputError(
                f"the run of {key!r} was not kept", hint="measure with --save-runs (save_runs=True)"
            )
        self.message.clear()
        self._opened.children = (Debugger(session_of(load_run(file))),)

    def static(self) -> str:
        """See Panel."""
        return self.report._repr_html_()

    def __repr__(self) -> str:
        return f"ReportPanel({self.report!r})"

    def _fill(self) -> None:
        from kgwb.bench.runner import lost

        self._list.options = [
            (short(clean(f"{'✗' if lost(row) else '✓'} {key}{one.tail}: {row['question']}")), (number, key))
            for number, one in enumerate(self.report.sets)
            for key, row in one.rows.items()
            if lost(row) or not self._shown.value
        ]
