"""The one widget: its state is HTML made in Python, and what a person does comes back as plain messages."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import anywidget
from traitlets import Unicode

from kgwb.errors import KgwbError, SettingError
from kgwb.masking import mask_url, mask_urls_in_text
from kgwb.show.html import Html, div, join, load_style, note, section, static_section, tag
from kgwb.text import single_line
from kgwb.ui.session import Worker

HERE = Path(__file__).parent
API_KEY_PATTERN = re.compile(r"\b(sk|gsk|hf|xai|AIza)[-_\w]{16,}", re.I)
"""What looks like a key; texts of widgets are saved with a notebook."""
Event = dict[str, Any]
"""``do`` names the action, ``scope`` the part it was done in; ``arg``, ``value``, ``form`` may come too."""


@cache
def load_script() -> str:
    """Idiomorph, then kgwb's own script."""
    files = (HERE / "vendor" / "idiomorph.min.js", HERE / "live.js")
    return "\n".join(file.read_text(encoding="utf-8") for file in files)


class Part:
    """What is shown in a widget: ``view()`` is its HTML, and each event in it goes to a ``do_`` method.

    What that method returns is shown as a remark, what it raises as a failure.
    """

    parent: Part | None = None
    """What it is shown inside of, which draws it."""
    workers: tuple[Worker, ...] = ()
    """The workers whose changes it shows."""

    def view(self) -> Html:
        """The contents as they stand."""
        raise NotImplementedError

    def children(self) -> Mapping[str, Part]:
        """What is shown inside of this, by its scope."""
        return {}

    def find_component(self, scope: str) -> Part | None:
        """The part of that scope, at any depth."""
        for name, part in self.children().items():
            if (inner := part if name == scope else part.find_component(scope)) is not None:
                return inner
        return None

    def render_child(self, name: str) -> Html:
        """One of the parts; what is done in it is its own."""
        return div("inside-part", self.children()[name].view(), data_scope=name)

    def subscribe_to(self, *workers: Worker) -> None:
        """Draw whenever one of the workers changes."""
        self.workers += workers
        for worker in workers:
            worker.subscribe(self.redraw)

    def redraw(self) -> None:
        """Draw the latest state; on any thread."""
        if self.parent is not None:
            self.parent.redraw()


class Live(Part, anywidget.AnyWidget):
    """Shows ``view()`` where a page displays it.

    Where there is no kernel, and wherever widgets are not drawn, ``static()`` is what is seen.
    """

    _esm = load_script()
    _css = load_style()
    html = Unicode().tag(sync=True)
    frame_page = Unicode().tag(sync=True)
    """What frames in the view load, see ui/subgraph."""

    def __init__(self, *follows: Worker) -> None:
        self.event_error: BaseException | None = None  # what the latest event raised
        self.message = ""  # the message about the latest event
        self._last_sequence, self._redraw_requested = 0, False
        self._displays: set[str] = set()
        """The places that display it, by a name of the page's; nothing is drawn while there are none."""
        self._draw_lock, self._event_lock = threading.Lock(), threading.RLock()
        super().__init__()
        self.subscribe_to(*follows)
        self.on_msg(lambda _, event, __: self.update(event))

    def close(self) -> None:
        """Stop following, and leave the page."""
        for worker in self.workers:
            worker.unsubscribe(self.redraw)
        super().close()

    def announcement(self) -> str:
        """What is read out when it changes."""
        return ""

    def render_static(self) -> Html:
        """The contents for where no kernel is."""
        return self.view()

    @property
    def is_busy(self) -> bool:
        """Whether something is being done that the person waits for."""
        return any(worker.current_task for worker in self.workers)

    def update(self, event: Event) -> None:
        """Do what the person did; a failure is shown in the widget, for there is nowhere else.

        What works for long, or on another thread, draws when it has got somewhere.
        """
        if not isinstance(event, dict):
            return
        number = event.get("seq", 0)
        part = self.find_component(str(event.get("scope"))) or self
        does = getattr(part, f"do_{event.get('do')}", None)
        followed = {
            worker
            for worker in (*self.workers, *part.workers)
            if not worker.has_pending_notification
        }
        with self._event_lock:
            self._displays = self._displays or {""}  # who sends events is displayed
            self._last_sequence = max(self._last_sequence, number if isinstance(number, int) else 0)
            for worker in (*self.workers, *part.workers):
                worker.prioritize(self.redraw, part.redraw)
            try:
                if event.get("do") not in ("draft", "shown", "gone"):
                    self.event_error, self.message = None, ""
                if does is not None:
                    self.message = does(event) or self.message
            except Exception as exc:  # noqa: BLE001  # whatever a callback raises is shown
                self.event_error = exc
        if self.event_error or not any(worker.has_pending_notification for worker in followed):
            self.redraw()

    def do_shown(self, event: Event) -> None:
        self._displays = {*self._displays, str(event.get("display"))} - {""}

    def do_gone(self, event: Event) -> None:
        self._displays = self._displays - {str(event.get("display"))}

    def redraw(self) -> None:
        """Draw the latest state; whoever draws already does it once more, so the last state wins."""
        if self.parent is not None:
            return self.parent.redraw()
        if not self._displays:
            return
        self._redraw_requested = True
        while self._redraw_requested and self._draw_lock.acquire(blocking=False):
            try:
                self._redraw_requested = False  # before it is looked at what there is to draw
                self.html = str(self._render_section(self._last_sequence))
            finally:
                self._draw_lock.release()

    def _render_section(self, seen: int) -> Html:
        try:
            body = self.view()
        except Exception as exc:  # noqa: BLE001  # a bug in a view must be seen, and must not stop the drawing
            body = div("body", render_failure(exc))
        remark = (
            div("band", note(self.message, level="calm"), role="status") if self.message else ""
        )
        failed = (
            div("band", render_failure(self.event_error), role="alert") if self.event_error else ""
        )
        about = {
            "data_seen": seen,
            "data_say": single_line(self.announcement()) or None,
            "id": f"kg-{id(self):x}",
        }
        return section(body, remark, failed, **about, aria_busy=str(self.is_busy).lower())

    def static_html(self) -> str:
        """The same as HTML that stands alone."""
        return static_section(self.render_static())

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        self._displays = self._displays or {""}
        self.redraw()
        bundle = super()._repr_mimebundle_(**kwargs)
        data = bundle[0] if isinstance(bundle, tuple) else bundle
        if data is not None:
            data["text/plain"], data["text/html"] = repr(self), self.static_html()
        return bundle


def text_input(name: str, label: str, value: object = "", **attributes: object) -> Html:
    """A line to type into."""
    about = {"aria_label": label, "autocomplete": "off", "id": f"typed-{name}", **attributes}
    return tag("input", type="text", name=name, value=value, **about)


def read_name(event: Event, field: str) -> str:
    """What was typed to name something. Raises SettingError for what looks like a key or a password."""
    text = str(event["form"].get(field) or "").strip()
    if (
        API_KEY_PATTERN.search(text)
        or mask_urls_in_text(text) != text
        or (" " not in text and mask_url(text) != text)
    ):
        raise SettingError(
            "what was written looks as if it held a key or a password, and was taken away again",
            hint="a notebook saves what its widgets hold: set keys in the environment before JupyterLab "
            "starts, and open an address that has a password in a cell",
        )
    return text


def render_failure(error: BaseException) -> Html:
    """What was seen, and what to do next."""
    what = error.message if isinstance(error, KgwbError) else f"{type(error).__name__}: {error}"
    hint = getattr(error, "hint", "")
    todo = join(tag("br"), f"What to do: {hint}") if hint else ""
    return note(tag("b", "Failed: "), what, todo, level="bad")


def render_progress(worker: Worker) -> Html:
    """What a worker does now, what waits for its turn, and what stopped the latest work."""
    lines = [div("soft", f"{worker.current_task} …")] if worker.current_task else []
    lines += [div("soft", f"waits its turn: {label}") for label in worker.queued_tasks]
    lines += [render_failure(worker.failure)] if worker.failure and not worker.current_task else []
    return div("band stack tight", *lines) if lines else Html()
