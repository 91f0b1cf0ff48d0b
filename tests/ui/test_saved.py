"""What a notebook keeps of its widgets when it is saved, and when it is opened without a kernel."""

import json
import re
import subprocess
import sys
import zlib
from base64 import b64encode
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

STATE_MIME_TYPE = "application/vnd.jupyter.widget-state+json"
VIEW_MIME_TYPE = "application/vnd.jupyter.widget-view+json"


@pytest.fixture(scope="module")
def saved() -> ModuleType:
    """Return the module. It imports Jupyter's server, which takes a process seconds."""
    from kgwb.ui import saved

    return saved


def notebook(**state: Any) -> dict[str, Any]:
    html = "<section data-static>{} as displayed</section>"
    outputs: list[Any] = [
        {"data": {VIEW_MIME_TYPE: {"model_id": name}, "text/html": html.format(name)}}
        for name in ("mine", "old")
    ]
    outputs += [
        {"data": {VIEW_MIME_TYPE: {"model_id": "slider"}, "text/plain": "Slider()"}},
        {"text": "printed"},
    ]
    cells = [{"cell_type": "markdown"}, {"cell_type": "code", "outputs": outputs}]
    return {
        "cells": cells,
        "metadata": {"widgets": {STATE_MIME_TYPE: {"state": state}}} if state else {},
    }


def test_a_saved_notebook_has_the_latest_html_of_its_widgets_and_not_their_state(
    saved: ModuleType,
) -> None:
    mine = {
        "_anywidget_id": "kgwb.ui.debugger.Debugger",
        "layout": "IPY_MODEL_l",
        "script_id": "s",
        "_esm": "",
    }
    packed = zlib.compress(b'<section class="kg" id="kg-1">now</section>')
    buffer = {"encoding": "base64", "path": ["packed"], "data": b64encode(packed).decode()}
    others = {"l": {"state": {}}, "s": {"state": {}}}
    now = {"state": mine, "buffers": [buffer]}
    kept = notebook(mine=now, slider={"state": {"value": 3}}, **others)
    saved.embed_widget_html(kept)
    first, second, *_ = kept["cells"][1]["outputs"]
    assert "data-static" in first["data"]["text/html"]
    assert first["data"]["text/html"].endswith("now</section>")
    assert "<style>" in first["data"]["text/html"]
    assert "old as displayed" in second["data"]["text/html"]
    assert kept["metadata"]["widgets"][STATE_MIME_TYPE]["state"] == {
        "slider": {"state": {"value": 3}}
    }
    undrawn = {"state": mine, "buffers": [{**buffer, "data": ""}]}
    older = {"state": {**mine, "html": '<section class="kg">older</section>'}}
    for widget, shown in [
        ({"state": mine}, "mine as displayed</section>"),
        (undrawn, "mine as displayed</section>"),
        (older, "older</section>"),
    ]:
        alone = notebook(mine=widget, **others)
        saved.embed_widget_html(alone)
        assert alone["metadata"] == {}
        assert alone["cells"][1]["outputs"][0]["data"]["text/html"].endswith(shown)


@pytest.mark.parametrize(
    ("known_ids", "expected"),
    [(set(), [False, False, True, False]), ({"mine"}, [True, False, True, False])],
)
def test_widgets_that_no_kernel_knows_are_left_out_if_they_have_html(
    saved: ModuleType, known_ids: set[str], expected: list[bool]
) -> None:
    opened = notebook()
    saved.remove_widget_views(opened, frozenset(known_ids))
    views = [VIEW_MIME_TYPE in output.get("data", {}) for output in opened["cells"][1]["outputs"]]
    assert views == expected


def test_a_notebook_opens_whose_view_names_no_widget(saved: ModuleType) -> None:
    opened = notebook()
    data = opened["cells"][1]["outputs"][0]["data"]
    data[VIEW_MIME_TYPE] = {"version_major": 2}
    saved.remove_widget_views(opened, frozenset({"mine"}))
    assert VIEW_MIME_TYPE not in data


@pytest.mark.long
def test_a_page_of_nbconvert_has_the_html_of_the_widgets_as_the_docs_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (Path(__file__).parents[2] / "docs/how-to/widgets.md").read_text(encoding="utf-8")
    [command] = re.findall(r"^jupyter (nbconvert .* )NOTEBOOK.ipynb$", page, re.MULTILINE)
    source = "import kgwb\nw = kgwb.Workbench('films')\nw.ask('Who directed Arrival?')\nw.debug()"
    cell = {"cell_type": "code", "id": "a", "metadata": {}, "source": source, "outputs": []}
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    written = {
        "cells": [{**cell, "execution_count": None}],
        "metadata": {"kernelspec": kernel},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    path = tmp_path / "n.ipynb"
    path.write_text(json.dumps(written))
    for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR"):
        monkeypatch.setenv(name, str(tmp_path))
    subprocess.run([sys.executable, "-m", *command.split(), str(path)], check=True)
    html = path.with_suffix(".html").read_text(encoding="utf-8")
    shown = re.sub(r"(?s)<(script|style)\b.*?</\1>", "", html)
    assert "Denis Villeneuve" in shown
