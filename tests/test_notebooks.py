"""Every notebook runs from a fresh kernel, and is committed without outputs."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

FOLDER = Path(__file__).parent.parent / "notebooks"
NOTEBOOKS = [pytest.param(path, id=path.stem) for path in sorted(FOLDER.glob("*.ipynb"))]


def test_there_is_a_notebook_to_start_with() -> None:
    assert (FOLDER / "00_start.ipynb").is_file()


@pytest.mark.parametrize("path", NOTEBOOKS)
def test_the_notebook_runs(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(
        notebook, timeout=100, kernel_name="python3", resources={"metadata": {"path": str(FOLDER)}}
    ).execute()
    # a widget's callback that fails leaves an error output, and the execution goes on
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert [output for output in outputs if output.output_type == "error"] == []
    assert [output for output in outputs if output.get("name") == "stderr"] == []
    assert [told for told in told_by_widgets(notebook) if 'role="alert"' in told] == []


@pytest.mark.parametrize("path", NOTEBOOKS)
def test_the_notebook_is_committed_without_outputs(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.source for cell in code if cell.outputs or cell.execution_count] == []
    assert "widgets" not in notebook.metadata


def told_by_widgets(notebook: nbformat.NotebookNode) -> list[str]:
    """The markup and the texts that widgets show, as nbclient keeps them beside the outputs."""
    kept = notebook.metadata.get("widgets", {}).get("application/vnd.jupyter.widget-state+json", {})
    return [str(widget["state"].get("value", "")) for widget in kept.get("state", {}).values()]
