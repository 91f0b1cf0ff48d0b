"""A table in all its forms: text in a terminal, HTML in a page, and LaTeX, Markdown or CSV for a paper."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any

from kgwb.errors import InputError
from kgwb.show.html import Html, collapsible, div, join, muted_text, static_page, tag
from kgwb.show.html import table as html_table
from kgwb.text import single_line

SIGNIFICANT = "†"
"""The mark of a value that differs from a baseline by more than chance."""
LATEX_ESCAPES = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": "$<$",
    ">": "$>$",
    "\N{NO-BREAK SPACE}": "~",
    "–": "--",
    "→": r"$\rightarrow$",
    "\N{MINUS SIGN}": "$-$",
    SIGNIFICANT: r"\textsuperscript{\dag}",
}
_LATEX_TABLE = str.maketrans(LATEX_ESCAPES)
_MARKDOWN_SPECIAL = re.compile(r"([\\|*_`<>\[\]])")


class Best(str):
    """The text of a cell that is the best of its column, which is bold in print and said in a page."""

    __slots__ = ()


def escape_latex(text: object) -> str:
    """Return a text as LaTeX shows it: no character in it is a command. What is best is bold."""
    escaped = single_line(text).translate(_LATEX_TABLE)
    return rf"\textbf{{{escaped}}}" if isinstance(text, Best) else escaped


def _escape_markdown(text: object) -> str:
    """Return a text as Markdown shows it: no character in it is markup. What is best is bold."""
    escaped = _MARKDOWN_SPECIAL.sub(r"\\\1", single_line(text))
    return f"**{escaped}**" if isinstance(text, Best) else escaped


def _render_cell(cell: object) -> object:
    """Render what is best in bold and with that word; any other cell stays as it is."""
    if not isinstance(cell, Best):
        return cell
    return join(tag("b", str(cell)), " ", tag("b", "best"))


def import_pandas() -> Any:
    """Return the module pandas. Raises InputError, with the command that installs it, if it is missing."""
    try:
        import pandas
    except ImportError as exc:
        raise InputError(
            "the package pandas is not installed, which kgwb needs for this table or figure",
            hint="install it: pip install 'kgwb[figures]'",
        ) from exc
    return pandas


@dataclass(frozen=True, repr=False)
class Table:
    """A table. Its cells may be any objects; the text of each is shown.

    The first column has names, the others values.
    """

    headers: Sequence[object]
    rows: Sequence[Sequence[object]]
    caption: str = ""
    """What a paper prints with it."""
    folds_equal_columns: bool = False
    """Whether a column with the numbers of one before it is folded in HTML."""

    def __repr__(self) -> str:
        """Return the table as text with aligned columns: the first one to the left, the others to the right."""
        lines = self._map_cells(single_line)
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        texts = []
        for first, *others in lines:
            cells = [first.ljust(widths[0])]
            cells += map(str.rjust, others, widths[1:])
            texts.append("  ".join(cells))
        return "\n".join(texts)

    def _map_cells(self, form: Callable[[object], str]) -> list[list[str]]:
        """Return the headers and the rows with the text of each cell, as ``form`` writes it."""
        return [list(map(form, row)) for row in (self.headers, *self.rows)]

    def with_caption(self, caption: str) -> Table:
        """Return a copy of the table that has a caption."""
        return replace(self, caption=caption)

    def _repr_html_(self) -> str:
        return static_page(div("across", self.render()))

    def render(self) -> Html:
        """Render the table as HTML. Without rows the result is empty.

        With ``folds_equal_columns``, columns with the numbers of an earlier one are left out, and
        the whole table is in a fold below.
        """
        rows = [list(map(_render_cell, row)) for row in self.rows]
        whole = html_table(self.headers, rows)
        kept = self._different_columns()
        if not self.folds_equal_columns or len(kept) == len(self.headers):
            return whole
        select = itemgetter(*kept)
        folded = []
        for column, header in enumerate(self.headers):
            if column not in kept:
                folded.append(str(header))
        summary = muted_text(f"the same numbers as one of these: {', '.join(folded)}")
        different = html_table(select(self.headers), map(select, rows))
        return join(different, collapsible(summary, whole))

    def _different_columns(self) -> list[int]:
        """Return the positions of the columns, but for those with the same numbers as an earlier one.

        The first column has labels and is always kept. Of a cell only the text before the first
        space counts, so that an interval does not.
        """
        kept = [0]
        seen = set()
        for column in range(1, len(self.headers)):
            texts = [str(row[column]) for row in self.rows]
            numbers = tuple(text.partition(" ")[0] for text in texts)
            if numbers not in seen:
                kept.append(column)
            seen.add(numbers)
        return kept

    # --- other forms

    def to_frame(self) -> Any:
        """Return the table as a DataFrame of pandas. Raises InputError if pandas is not installed."""
        pandas = import_pandas()
        rows = [list(row) for row in self.rows]
        return pandas.DataFrame(rows, columns=list(self.headers))

    def to_latex(self) -> str:
        """Return the source of a LaTeX table with its caption and the rules of booktabs; all text is escaped.

        Raises InputError if pandas is not installed.
        """
        headers, *rows = self._map_cells(escape_latex)
        frame = Table(headers, rows).to_frame()
        text: str = frame.style.hide(axis="index").to_latex(
            column_format="l" + "r" * (len(headers) - 1),
            position_float="centering",
            hrules=True,
            caption=escape_latex(self.caption),
        )
        return text

    def to_markdown(self) -> str:
        """Return the table as a Markdown table, with its caption below."""
        headers, *rows = self._map_cells(_escape_markdown)
        rules = ["---"] + ["---:"] * (len(headers) - 1)
        lines = []
        for cells in (headers, rules, *rows):
            lines.append(f"| {' | '.join(cells)} |")
        caption = _escape_markdown(self.caption)
        return "\n".join([*lines, "", caption, ""])

    def to_csv(self) -> str:
        """Return the table as CSV text with a line of headers. The caption and what is best are left out."""
        file = io.StringIO()
        csv.writer(file, lineterminator="\n").writerows(self._map_cells(str))
        return file.getvalue()

    def to_format(self, name: str) -> str:
        """Return the table in one of TABLE_FORMATS. Raises what ``check_table_format`` raises."""
        check_table_format(name)
        return TABLE_FORMATS[name](self)


TABLE_FORMATS: Mapping[str, Callable[[Table], str]] = {
    "latex": Table.to_latex,
    "markdown": Table.to_markdown,
    "csv": Table.to_csv,
}


def check_table_format(name: str) -> None:
    """Raise InputError, which lists the formats, unless the name is one of TABLE_FORMATS.

    It is raised too if "latex" is named and pandas is not installed.
    """
    if name not in TABLE_FORMATS:
        raise InputError(
            f"a table cannot be written as {name!r}",
            hint=f"name one of these formats: {', '.join(TABLE_FORMATS)}",
        )
    if name == "latex":
        import_pandas()
