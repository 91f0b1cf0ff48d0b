"""The notebooks that `kgwb lab` saves and opens, with the HTML of kgwb's widgets.

JupyterLab shows "model not found" for a widget of an earlier kernel, although its output also has
HTML. So a saved notebook gets the latest HTML of each widget in place of the widget's state. A
notebook is delivered without the widgets that its kernel does not know, so that JupyterLab shows
their HTML. It shows HTML in full only if the notebook is trusted, which kgwb's own
notebooks are as long as they are as they came.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from base64 import b64decode
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from jupyter_server.services.contents.largefilemanager import AsyncLargeFileManager

from kgwb.show.html import Html, div, embed_style, note
from kgwb.show.static_form import make_static

VIEW_MIME_TYPE = "application/vnd.jupyter.widget-view+json"
"""Of the data of an output that refers to a widget."""
STATE_MIME_TYPE = "application/vnd.jupyter.widget-state+json"
"""Of the states of all widgets in the metadata of a notebook."""

RESTARTED_NOTE = div("band", note("The kernel was restarted: run this cell again."))
"""What stands above the HTML of a widget that no kernel knows any more; also in live.js."""

KERNEL_REPLY_S = 2.0
"""How long a kernel has to say which widgets it knows. A busy one says nothing."""

SHIPPED_NOTEBOOKS = Path(__file__).with_name("shipped_notebooks.json")
"""The digest of each notebook that comes with kgwb, by its path below the folder "notebooks"."""


class Notebooks(AsyncLargeFileManager):
    """The contents manager of the server. It treats kgwb's widgets in notebooks specially."""

    def mark_trusted_cells(self, nb: Any, path: str = "") -> None:
        """Mark the cells as trusted if the notebook is signed; kgwb's own ones are signed first.

        A notebook is kgwb's own if its content is that of a shipped one, wherever it is.
        """
        if is_shipped(nb) and not self.notary.check_signature(nb):  # type: ignore[no-untyped-call]
            self.notary.sign(nb)  # type: ignore[no-untyped-call]
        super().mark_trusted_cells(nb, path)  # type: ignore[no-untyped-call]

    async def save(self, model: dict[str, Any], path: str = "") -> Any:
        """Save a file; in a notebook, replace the state of kgwb's widgets by their HTML.

        The HTML is smaller.
        """
        if model.get("type") == "notebook" and model.get("content"):
            embed_widget_html(model["content"])
        return await super().save(model, path)  # type: ignore[no-untyped-call]

    async def get(self, path: str, content: bool = True, *args: Any, **options: Any) -> Any:
        """Return the model of a file, as Jupyter's contents API has it.

        kgwb's widgets that the notebook's kernel does not know are left out, and their HTML stays. No
        widget is known without a kernel, or after the kernel was restarted. All are, if the kernel
        does not reply in KERNEL_REPLY_S, since it is busy then.
        """
        model = await super().get(path, content, *args, **options)  # type: ignore[no-untyped-call]
        if not content or model["type"] != "notebook":
            return model
        known_ids = await self._find_widgets(path.strip("/"))
        if known_ids is not None:
            remove_widget_views(model["content"], known_ids)
        return model

    async def _find_widgets(self, path: str) -> frozenset[str] | None:
        """Return the ids of the widgets that the kernel of a notebook knows; None if it is busy."""
        server: Any = self.parent
        if not await server.session_manager.session_exists(path):
            return frozenset()
        session = await server.session_manager.get_session(path=path)
        client = server.kernel_manager.get_kernel(session["kernel"]["id"]).client()
        client.start_channels(iopub=False, stdin=False, hb=False, control=False)
        try:
            reply = await client.comm_info(
                target_name="jupyter.widget", reply=True, timeout=KERNEL_REPLY_S
            )
        except TimeoutError:
            return None
        finally:
            client.stop_channels()
        return frozenset(reply["content"]["comms"])


def is_shipped(notebook: Any) -> bool:
    """Return whether a notebook, with its outputs, is as it came with kgwb."""
    return notebook_digest(notebook) in _shipped_digests()


def notebook_digest(notebook: Any) -> str:
    """Return the SHA-256 digest of a notebook's content. It does not depend on how JSON is written."""
    text = json.dumps(notebook, sort_keys=True)
    digest = hashlib.sha256(text.encode())
    return digest.hexdigest()


@cache
def _shipped_digests() -> frozenset[str]:
    """Return the digests of the notebooks that come with kgwb."""
    text = SHIPPED_NOTEBOOKS.read_text(encoding="utf-8")
    digests = json.loads(text)
    return frozenset(digests.values())


def embed_widget_html(notebook: dict[str, Any]) -> None:
    """Put the HTML of kgwb's widgets into the outputs that show them, and remove their states.

    The HTML is taken from the widget states that the page saved in the notebook's metadata. The
    notebook is changed in place. Widgets of other packages stay.
    """
    metadata = notebook.get("metadata", {})
    saved = metadata.get("widgets", {})
    widgets = saved.get(STATE_MIME_TYPE, {}).get("state", {})
    shown = _kgwb_widgets(widgets)
    for data in _output_data(notebook):
        view = data.get(VIEW_MIME_TYPE, {})
        html = _html_of(shown.get(view.get("model_id"), {}))
        if html:
            static = html.replace("<section", "<section data-static", 1)
            data["text/html"] = embed_style(Html(make_static(static)))
    for widget_id, widget in shown.items():
        state = widget["state"]
        layout = str(state.get("layout"))
        for saved_id in (widget_id, layout.removeprefix("IPY_MODEL_"), state.get("script_id")):
            widgets.pop(saved_id, None)
    if not widgets:
        metadata.pop("widgets", None)


def _kgwb_widgets(widgets: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return those of all saved widgets that are kgwb's, by their ids.

    A widget of kgwb is known by the name of its class (``_anywidget_id``).
    """
    found = {}
    for widget_id, widget in widgets.items():
        class_name = str(widget.get("state", {}).get("_anywidget_id"))
        if class_name.startswith("kgwb."):
            found[widget_id] = widget
    return found


def _html_of(widget: dict[str, Any]) -> str:
    """Return the HTML of a saved widget; empty for one that no page has displayed.

    It is in the buffer of the trait ``packed``. A kernel with an older kgwb has it as the trait ``html``.
    """
    for buffer in widget.get("buffers", ()):
        if buffer["path"] == ["packed"] and buffer["data"]:
            packed = b64decode(buffer["data"])
            return zlib.decompress(packed).decode()
    state = widget.get("state", {})
    return str(state.get("html", ""))


def remove_widget_views(notebook: dict[str, Any], known_ids: frozenset[str]) -> None:
    """Remove the widget from every output that also has kgwb's static HTML, but the known ones.

    RESTARTED_NOTE is put above the HTML.
    """
    for data in _output_data(notebook):
        html = "".join(data.get("text/html", ""))
        view = data.get(VIEW_MIME_TYPE, {})
        if view and "data-static" in html and view.get("model_id") not in known_ids:
            data.pop(VIEW_MIME_TYPE)
            data["text/html"] = html.replace("</style>", f"</style>{RESTARTED_NOTE}", 1)


def _output_data(notebook: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the data of each output by MIME type, for outputs that have any."""
    for cell in notebook.get("cells", ()):
        for output in cell.get("outputs", ()):
            if "data" in output:
                yield output["data"]
