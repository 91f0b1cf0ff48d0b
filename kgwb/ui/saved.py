"""Notebooks that `kgwb lab` saves and opens: where no kernel fills a widget, its latest HTML is shown.

JupyterLab shows "model not found" for a widget of an earlier kernel, though its output has HTML besides. So
what a person saves gets each widget's HTML as it stands, and a notebook that is opened before it has a kernel
comes without the widgets that only its last one had.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jupyter_server.services.contents.largefilemanager import AsyncLargeFileManager

from kgwb.show.html import Html, embed_style

VIEW_MIME_TYPE, STATE_MIME_TYPE = (
    f"application/vnd.jupyter.widget-{name}+json" for name in ("view", "state")
)


class Notebooks(AsyncLargeFileManager):
    """The files of a server, notebooks with what their widgets showed."""

    async def save(self, model: dict[str, Any], path: str = "") -> Any:
        """Save a file; of kgwb's widgets their HTML is kept, and not their state, which is larger."""
        if model.get("type") == "notebook" and model.get("content"):
            embed_widget_html(model["content"])
        return await super().save(model, path)  # type: ignore[no-untyped-call]

    async def get(self, path: str, content: bool = True, *args: Any, **more: Any) -> Any:
        """Read a file; a notebook without a running kernel comes without kgwb's widgets."""
        server: Any = self.parent
        model = await super().get(path, content, *args, **more)  # type: ignore[no-untyped-call]
        notebook = content and model["type"] == "notebook"
        if notebook and not await server.session_manager.session_exists(path.strip("/")):
            remove_widget_views(model["content"])
        return model


def embed_widget_html(notebook: dict[str, Any]) -> None:
    """Put the HTML of kgwb's widgets from the state that a page saved into the outputs that show them."""
    saved = (
        notebook.get("metadata", {}).get("widgets", {}).get(STATE_MIME_TYPE, {}).get("state", {})
    )
    states = ((name, widget.get("state", {})) for name, widget in saved.items())
    mine = {
        name: state for name, state in states if str(state.get("_anywidget_id")).startswith("kgwb.")
    }
    for data in _output_data(notebook):
        state = mine.get(data.get(VIEW_MIME_TYPE, {}).get("model_id"), {})
        if html := state.get("html"):
            data["text/html"] = embed_style(
                Html(html.replace("<section", "<section data-static", 1))
            )
    for name, state in mine.items():
        for known in (name, str(state.get("layout")).removeprefix("IPY_MODEL_")):
            saved.pop(known, None)
    if not saved:
        notebook.get("metadata", {}).pop("widgets", None)


def remove_widget_views(notebook: dict[str, Any]) -> None:
    """Take the widget out of every output that has kgwb's HTML besides."""
    for data in _output_data(notebook):
        if "data-static" in "".join(data.get("text/html", "")):
            data.pop(VIEW_MIME_TYPE, None)


def _output_data(notebook: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The data of each output."""
    for cell in notebook.get("cells", ()):
        yield from (output["data"] for output in cell.get("outputs", ()) if "data" in output)
