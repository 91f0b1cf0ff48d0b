"""The one widget: its state is HTML made in Python, and what a person does comes back as plain messages."""

from __future__ import annotations

import re
import threading
from functools import cache
from pathlib import Path
from typing import Any

import anywidget
from traitlets import Unicode

from kgwb.errors import KgwbError, SettingError
from kgwb.masking import masked, shown
from kgwb.show.html import Html, clean, div, join, note, section, style, tag, with_style

HERE = Path(__file__).parent
KEY = re.compile(r"\b(sk|gsk|hf|xai|AIza)[-_\w]{16,}", re.I)
"""What looks like a key; texts of widgets are saved with a notebook."""
Event = dict[str, Any]
"""``do`` says what was done, ``scope`` in which part; ``arg``, ``value``, ``form`` may come too."""


@cache
def script() -> str:
    """Idiomorph, then kgwb's own script."""
    files = (HERE / "vendor" / "idiomorph.min.js", HERE / "live.js")
    return "\n".join(file.read_text(encoding="utf-8") for file in files)


class Live(anywidget.AnyWidget):
    """Shows ``view()`` and hands every event to its ``do_`` method; ``redraw`` may be called on any thread.

    Where there is no kernel, and wherever widgets are not drawn, ``static()`` is what is seen.
    """

    _esm = script()
    _css = style()
    html = Unicode().tag(sync=True)
    page = Unicode().tag(sync=True)
    """What frames in the view load, see pyvis_page."""

    def __init__(self) -> None:
        self.problem: BaseException | None = None
        """What the latest event raised."""
        self.remark = ""
        """What is said of the latest event."""
        self._seen, self._drawing, self._again = 0, False, False
        self._lock, self._acting = threading.Lock(), threading.RLock()
        super().__init__()
        self.on_msg(lambda _, event, __: self.update(event))

    # --- what a widget says of itself

    def view(self) -> Html:
        """The contents as they stand."""
        raise NotImplementedError

    def spoken(self) -> str:
        """What is read out when it changes."""
        return ""

    def static_view(self) -> Html:
        """The contents for where no kernel is."""
        return self.view()

    @property
    def working(self) -> bool:
        """Whether something is being done that the person waits for."""
        return False

    def part(self, name: str) -> Live | None:
        """The widget that is shown inside of this one under a name."""
        return None

    def take_in(self, part: Live) -> None:
        """Show another widget inside of this one, by ``inside``."""
        part.observe(lambda _: self.redraw(), "html")
        part.observe(lambda change: self.set_trait("page", change["new"]), "page")

    # --- events and drawing

    def update(self, event: Event) -> None:
        """Do what the person did; a failure is shown in the widget, for there is nowhere else."""
        if not isinstance(event, dict):
            return
        number = event.get("seq", 0)
        does = getattr(self, f"do_{event.get('do')}", None)
        with self._acting:
            self._seen = max(self._seen, number if isinstance(number, int) else 0)
            try:
                if event.get("do") != "draft":
                    self.problem, self.remark = None, ""
                if (inner := self.part(str(event.get("scope")))) is not None:
                    inner.update({**event, "scope": ""})
                    self.problem, self.remark = inner.problem, inner.remark
                elif does is not None:
                    does(event)
            except Exception as exc:  # noqa: BLE001  # whatever a callback raises is shown
                self.problem = exc
        self.redraw()

    def redraw(self) -> None:
        """Draw the latest state; whoever draws already does it once more, so the last state wins."""
        with self._lock:
            self._again = True
            if self._drawing:
                return
            self._drawing = True
        while True:
            with self._lock:
                if not self._again:
                    self._drawing = False
                    return
                self._again, seen = False, self._seen
            try:
                self.html = str(self._framed(seen))
            except BaseException:  # an interrupt too: what is drawn next must not wait for this
                self._drawing = False
                raise

    def _framed(self, seen: int) -> Html:
        try:
            body = self.view()
        except Exception as exc:  # noqa: BLE001  # a bug in a view must be seen, and must not stop the drawing
            body = div("body", failure(exc))
        said = div("band", note(self.remark, kind="calm"), role="status") if self.remark else ""
        failed = div("band", failure(self.problem), role="alert") if self.problem else ""
        busy = str(self.working).lower()
        return section(
            body,
            said,
            failed,
            data_seen=seen,
            data_say=clean(self.spoken()) or None,
            aria_busy=busy,
            id=f"kg-{id(self):x}",
        )

    def static(self) -> str:
        """The same as HTML that stands alone."""
        return with_style(section(self.static_view(), data_static=True))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        bundle = super()._repr_mimebundle_(**kwargs)
        data = bundle[0] if isinstance(bundle, tuple) else bundle
        if data is not None:
            data["text/plain"], data["text/html"] = repr(self), self.static()
        return bundle


def typed_name(event: Event, field: str) -> str:
    """What was typed to name something. Raises SettingError for what looks like a key or a password."""
    text = str(event["form"].get(field) or "").strip()
    if KEY.search(text) or masked(text) != text or (" " not in text and shown(text) != text):
        raise SettingError(
            "what was written looks as if it held a key or a password, and was taken away again",
            hint="a notebook saves what its widgets hold: set keys in the environment before JupyterLab "
            "starts, and open an address that has a password in a cell",
        )
    return text


def inside(name: str, part: Live) -> Html:
    """A widget inside of another; what is done in it is its own."""
    return div("inside-part", part.view(), data_scope=name)


def failure(error: BaseException) -> Html:
    """What was seen, and what to do next."""
    what = error.message if isinstance(error, KgwbError) else f"{type(error).__name__}: {error}"
    hint = getattr(error, "hint", "")
    return note(
        tag("b", "Failed: "), what, join(tag("br"), f"What to do: {hint}") if hint else "", kind="bad"
    )
