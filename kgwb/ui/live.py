"""The base of all widgets: their state is HTML made in Python, and the page sends back events.

live.js shows the HTML, and sends what the person does.
"""

from __future__ import annotations

import re
import threading
import zlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import anywidget
from ipywidgets import Widget
from traitlets import Bytes, Unicode

from kgwb.errors import KgwbError, SettingError
from kgwb.show import html as h
from kgwb.show.html import Html
from kgwb.show.run import render_notices
from kgwb.show.static_form import load_style
from kgwb.text import MAX_LABEL_CHARS, mask_url, mask_urls_in_text, shorten, single_line
from kgwb.ui.worker import Worker

FOLDER = Path(__file__).parent
API_KEY_PATTERN = re.compile(r"\b(sk|gsk|hf|xai|AIza)[-_\w]{16,}", re.I)
"""What looks like an API key. Texts in widgets are saved with the notebook."""
SILENT_EVENTS = ("draft", "shown", "gone")
"""Events after which the message about the event before them stays."""
Event = dict[str, Any]
"""An event of the page.

``do`` is its name, and ``scope`` the part of the widget that it belongs to. It may also have
``arg``, ``value``, ``form`` (the values of the form's fields by name), and ``seq`` (its number).
"""

TabOption = tuple[str, str, object]
"""A tab: its name, its label, and a number beside the label; empty for none."""


def read_scripts(*names: str) -> str:
    """Return JavaScript files of the folder kgwb/ui, one below the other, without lines of comments."""
    scripts = [(FOLDER / name).read_text(encoding="utf-8") for name in names]
    return re.sub(r"(?m)^\s*//.*\n", "", "\n".join(scripts))


@cache
def load_script() -> str:
    """Return the JavaScript of the widgets: Idiomorph, and then kgwb's own scripts."""
    return read_scripts("vendor/idiomorph.min.js", "nearest.js", "live.js")


class SharedScript(Widget):
    """The script and the style sheet of all widgets, which a page loads once, see loader.js.

    anywidget would send both again with every widget: 60 kB each time.
    """

    script = Unicode(load_script()).tag(sync=True)
    style = Unicode(load_style()).tag(sync=True)


@cache
def shared_script() -> SharedScript:
    """Return the shared script of this process. The first call tells pages of it."""
    return SharedScript()


def render_page(template: str, /, **values: object) -> Html:
    """Render a template of the folder ui/templates."""
    return h.render_template(f"ui/templates/{template}", **values)


class Part:
    """A part of a widget: ``view`` renders it, and its ``do_`` methods handle its events.

    An event "run" calls ``do_run(event)``. A text that the method returns is shown as a message,
    and an error that it raises as a failure.
    """

    parent: Part | None = None
    """The part that this one is shown in, and that draws it; None for a whole widget."""
    workers: tuple[Worker, ...] = ()
    """The workers whose changes this part shows."""

    def view(self) -> Html:
        """Render the present state."""
        raise NotImplementedError

    def children(self) -> Mapping[str, Part | None]:
        """Return the parts inside this one by their scopes; None for one that is not shown."""
        return {}

    def find_component(self, scope: str) -> Part | None:
        """Return the part named ``scope`` at any depth below this one, depth first; else None."""
        for name, child in self.children().items():
            if name == scope:
                return child
            found = child and child.find_component(scope)
            if found is not None:
                return found
        return None

    def render_child(self, name: str, *, focus: str = "") -> Html:
        """Render one of the children, if it is shown. Events inside it are sent with its scope.

        If ``focus`` is another text than before, the child gets the focus and comes into view.
        """
        child = self.children().get(name)
        if child is None:
            return Html()
        attributes: dict[str, object] = {}
        if focus:
            attributes = {"data_focus": focus, "tabindex": "-1"}
        return h.div("inside-part", child.view(), data_scope=name, **attributes)

    def subscribe_to(self, *workers: Worker) -> None:
        """Draw this part again whenever one of the workers changes."""
        self.workers += workers
        for worker in workers:
            worker.subscribe(self.redraw)

    def redraw(self) -> None:
        """Draw the present state. It may be called on any thread."""
        if self.parent is not None:
            self.parent.redraw()


class Live(Part, anywidget.AnyWidget):
    """A widget that shows ``view()`` wherever a page displays it.

    ``render_static()`` is shown where no kernel is, or where widgets are not drawn.
    """

    _esm = read_scripts("loader.js")
    script_id = Unicode().tag(sync=True)
    """The ``model_id`` of the shared script; empty until pages are told of the widget."""
    html = ""
    """The HTML of the present state; empty until a page displays the widget."""
    packed = Bytes().tag(sync=True)
    """The same HTML as it is sent to the page: UTF-8, compressed by zlib."""
    frame_page = Unicode().tag(sync=True)
    """The page that frames in the view load, see ``kgwb.ui.subgraph``."""

    def __init__(self, *followed: Worker) -> None:
        """Make a widget that is drawn again whenever one of these workers changes."""
        self.event_error: BaseException | None = None
        """The error of the latest event; None if it succeeded."""
        self.message = ""
        """The message about the latest event."""
        self._last_sequence = 0
        """The number of the latest event. The page learns from it which clicks are handled."""
        self._redraw_requested = False
        self._displays: set[str] = set()
        """Where the widget is displayed, by names that the pages chose.

        Nothing is drawn while this is empty.
        """
        self._draw_lock = threading.Lock()
        self._event_lock = threading.RLock()
        super().__init__()
        self.subscribe_to(*followed)
        self.on_msg(lambda _widget, event, _buffers: self.update(event))

    def open(self) -> None:
        """Do nothing: pages are told of a widget when its ``model_id`` is first asked for.

        A widget may be drawn as a part of another one, as the debuggers of an error analysis are, and
        no page ever displays it. It would still load the script of such a widget, and on a slow
        machine give up and report an error.
        """

    @property
    def model_id(self) -> str:
        """The id by which pages know the widget. They are told of the widget the first time."""
        if self.comm is None:
            if shared_script().comm is None:  # somebody has closed all widgets
                shared_script.cache_clear()
            self.script_id = shared_script().model_id
            super().open()
        return str(super().model_id)

    def close(self) -> None:
        """Stop following the workers, and remove the widget from the page."""
        for worker in self.workers:
            worker.unsubscribe(self.redraw)
        super().close()

    def announcement(self) -> str:
        """Return the text that a screen reader reads out whenever it changes."""
        return ""

    def render_static(self) -> Html:
        """Render the contents for where no kernel is."""
        return self.view()

    @property
    def is_busy(self) -> bool:
        """Whether the person waits for a task."""
        return any(worker.current_task for worker in self.workers)

    # From the page

    def update(self, event: Event) -> None:
        """Handle an event of the page, and draw the state after it.

        The part that the event's "scope" names handles it, or the widget itself. An error is shown
        in the widget, since a callback has no other place for it. If the event submitted a task,
        the worker draws the widget soon, and it is not drawn here. Anything but a dict is ignored.
        """
        if not isinstance(event, dict):
            return
        part = self.find_component(str(event.get("scope"))) or self
        workers = (*self.workers, *part.workers)
        quiet_workers = [worker for worker in workers if not worker.has_pending_notification]
        with self._event_lock:
            self._displays = self._displays or {""}  # a page that sends events displays the widget
            sequence = event.get("seq", 0)
            if isinstance(sequence, int):
                self._last_sequence = max(self._last_sequence, sequence)
            for worker in workers:
                worker.prioritize(self.redraw, part.redraw)
            self._handle(event, part)
        will_be_drawn_soon = any(worker.has_pending_notification for worker in quiet_workers)
        if self.event_error is not None or not will_be_drawn_soon:
            self.redraw()

    def _handle(self, event: Event, part: Part) -> None:
        """Call the part's method for an event, if it has one; keep its message, or its error.

        A part handles the event NAME by its method ``do_NAME``; without one, nothing happens.
        Events of SILENT_EVENTS keep the message and error that are shown.
        """
        name = event.get("do")
        handler = getattr(part, f"do_{name}", None)
        if name not in SILENT_EVENTS:
            self.event_error = None
            self.message = ""
        if handler is None:
            return
        try:
            self.message = handler(event) or self.message
        except Exception as exc:  # noqa: BLE001  # whatever a callback raises is shown
            self.event_error = exc

    def do_shown(self, event: Event) -> None:
        """Note that a page displays the widget; the event has the id of the display."""
        display = str(event.get("display"))
        self._displays = {*self._displays, display} - {""}

    def do_gone(self, event: Event) -> None:
        """Note that a page does not display the widget any more; undisplayed it is not drawn."""
        display = str(event.get("display"))
        self._displays = self._displays - {display}

    # To the page

    def redraw(self) -> None:
        """Draw the present state, if a page displays the widget. It may be called on any thread.

        If another thread is drawing, that thread draws once more, and this one does not wait. So
        the latest state is always drawn last.
        """
        if self.parent is not None:
            self.parent.redraw()
            return
        if not self._displays:
            return
        self._redraw_requested = True
        while self._redraw_requested and self._draw_lock.acquire(blocking=False):
            try:
                # Before the state is read: a change after this point requests another drawing.
                self._redraw_requested = False
                self.html = str(self._render_section(self._last_sequence))
                self.packed = zlib.compress(self.html.encode())
            finally:
                self._draw_lock.release()

    def _render_section(self, sequence: int) -> Html:
        """Render the view, and below it the message or the error of the latest event.

        ``sequence`` is the number of the latest event that the view takes into account. An error of
        the view itself is rendered in its place, and not raised.
        """
        try:
            body = self.view()
        except Exception as exc:  # noqa: BLE001  # a bug in a view must be seen, and must not stop the drawing
            body = h.div("body", render_failure(exc))
        parts = [body]
        if self.message:
            parts.append(h.div("band", h.note(self.message, level="calm"), role="status"))
        if self.event_error is not None:
            parts.append(h.div("band", render_failure(self.event_error), role="alert"))
        return h.section(
            *parts,
            data_seen=sequence,
            data_say=single_line(self.announcement()) or None,
            id=f"kg-{id(self):x}",
            aria_busy=str(self.is_busy).lower(),
            role="group",
            aria_label=shorten(single_line(self.accessible_name), MAX_LABEL_CHARS),
        )

    @property
    def accessible_name(self) -> str:
        """What a screen reader calls the widget, and what tells it apart from others of its kind."""
        return repr(self)

    def static_html(self) -> str:
        """Return the static rendering as HTML that stands alone."""
        return h.static_section(self.render_static())

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        """Return what Jupyter displays: the widget, its static HTML, and its repr as text.

        Displaying it draws the present state.
        """
        self._displays = self._displays or {""}
        self.redraw()
        bundle = super()._repr_mimebundle_(**kwargs)
        data: Any = bundle[0] if isinstance(bundle, tuple) else bundle
        if data is not None:
            data["text/plain"] = repr(self)
            data["text/html"] = self.static_html()
        return bundle


def typed_text(value: object) -> str:
    """Return a text that was typed into a text area. Forms send "\\r\\n", which becomes "\\n"."""
    return str(value).replace("\r\n", "\n")


def form_of(event: Event) -> dict[str, str]:
    """Return the values of the form in which an event happened; empty outside of forms."""
    form: dict[str, str] = event.get("form", {})
    return form


def argument_of(event: Event) -> str:
    """Return the argument of an event, such as the name of the tab that was clicked."""
    return str(event["arg"])


def read_name(event: Event, field: str) -> str:
    """Return the name typed into a field of the event's form; empty if nothing was typed.

    Blanks around it are removed.

    Raises SettingError for a text that looks like an API key, or an address with a password.
    """
    typed = event["form"].get(field)
    text = str(typed or "").strip()
    if _has_secret(text):
        raise SettingError(
            "the text was removed, since it looks like a key or a password",
            hint="a notebook saves what its widgets hold: set keys in the environment before "
            "starting JupyterLab, and open an address with a password in a cell",
        )
    return text


def _has_secret(text: str) -> bool:
    """Return whether a text has an API key, or an address with a password.

    A text of one word is taken as an address as a whole.
    """
    if API_KEY_PATTERN.search(text):
        return True
    if mask_urls_in_text(text) != text:
        return True
    if " " in text:
        return False
    return mask_url(text) != text


def render_failure(error: BaseException) -> Html:
    """Render the message of an error, and its hint after "What to do:" if it has one.

    An error that is no KgwbError is shown with the name of its class.
    """
    message = f"{type(error).__name__}: {error}"
    if isinstance(error, KgwbError):
        message = error.message
    return render_page("failure.html", message=message, hint=getattr(error, "hint", ""))


def render_progress(worker: Worker) -> Html:
    """Render a worker's notices, its current task, its queue, and the failure of its latest task.

    For an idle worker whose latest task succeeded only the notices are rendered.
    """
    notices = render_notices(worker.notices)
    # Each is read once: the worker may change meanwhile, on its own thread.
    task = worker.current_task
    queued_tasks = worker.queued_tasks
    error = worker.failure
    failure = Html()
    if error is not None and not task:
        failure = render_failure(error)
    if not (task or queued_tasks or failure):
        return notices
    progress = render_page("progress.html", task=task, queued_tasks=queued_tasks, failure=failure)
    return h.join(notices, progress)
