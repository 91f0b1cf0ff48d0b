"""Every notebook runs from a fresh kernel, and carries what it then shows as static HTML."""

import json
import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from notebook_outputs import FOLDER, VIEW, digests, executed, static

from kgwb.ui.saved import SHIPPED_NOTEBOOKS, is_shipped

NOTEBOOKS = [pytest.param(path, id=path.stem) for path in sorted(FOLDER.glob("*.ipynb"))]
MOST_BYTES = 400_000
"""Of a notebook with what it carries."""
OF_THIS_MACHINE = re.compile(r"(?<![\w.])/(home|root|tmp|work|Users)/")


@pytest.mark.parametrize("path", NOTEBOOKS)
def test_the_notebook_runs_and_shows_what_it_carries(path: Path) -> None:
    notebook = executed(path)
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    # a widget's callback that fails leaves an error output, and the execution goes on
    assert [output for output in outputs if output.output_type == "error"] == []
    assert [output for output in outputs if output.get("name") == "stderr"] == []
    pages = [output.get("data", {}).get("text/html", "") for output in outputs]
    assert [page for page in pages if 'role="alert"' in page] == []
    hint = "make them anew: python tests/notebook_outputs.py"
    assert shape(static(notebook)) == shape(nbformat.read(path, as_version=4)), hint


@pytest.mark.parametrize("path", NOTEBOOKS)
def test_what_the_notebook_carries_needs_no_kernel_and_tells_of_no_machine(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert not [output for output in outputs if VIEW in output.get("data", {})]
    assert "widgets" not in notebook.metadata
    assert path.stat().st_size <= MOST_BYTES
    assert not OF_THIS_MACHINE.search(path.read_text())


def test_a_system_in_a_notebook_takes_at_most_150_lines() -> None:
    notebook = nbformat.read(FOLDER / "14_your_own_system.ipynb", as_version=4)
    titles = [cell.source.startswith("## A pipeline that") for cell in notebook.cells]
    cells = notebook.cells[: titles.index(True)]
    code = [cell.source for cell in cells if cell.cell_type == "code"]
    lines = [line for source in code for line in source.splitlines() if line.strip()]
    assert len(lines) <= 150
    assert max(source.count("@agent") for source in code) == 1


def test_each_notebook_is_known_as_kgwbs_own_and_a_changed_one_is_not() -> None:
    hint = "write them down anew: python tests/notebook_outputs.py --digests"
    assert json.loads(SHIPPED_NOTEBOOKS.read_text(encoding="utf-8")) == digests(), hint
    notebook = nbformat.read(FOLDER / "00_start.ipynb", as_version=4)
    assert is_shipped(notebook)
    notebook.cells[1].outputs[0].data["text/html"] = "<script>alert(1)</script>"
    assert not is_shipped(notebook)


def shape(notebook: Any) -> list[list[list[str]]]:
    """For each cell the kinds of its outputs."""
    return [
        [sorted(output.get("data", {output.get("name", ""): ""})) for output in cell.outputs]
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]
