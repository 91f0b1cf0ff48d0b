"""A widget's HTML as a page: press what is on it, type into it, read it; without a browser."""

from __future__ import annotations

import base64
import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

from kgwb.run.systems import load_system
from kgwb.show.html import static_section
from kgwb.show.records import render
from kgwb.show.terms import RenderContext
from kgwb.ui.live import Live
from kgwb.ui.worker import Worker

VOID = {"br", "input"}


@dataclass
class Element:
    tag: str
    attributes: dict[str, str]
    form: Element | None
    scope: str
    """The part of the widget that it belongs to."""
    texts: list[str] = field(default_factory=list)
    inputs: list[Element] = field(default_factory=list)
    """Of a form; the options of a select."""

    @property
    def text(self) -> str:
        return " ".join("".join(self.texts).split())

    @property
    def label(self) -> str:
        return self.attributes.get("aria-label") or self.text


class Page(HTMLParser):
    """What stands on a page: its text, and every element with what it belongs to."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[Element] = []
        self._open: list[Element] = []
        self._texts: list[str] = []
        self.feed(re.sub("<style>.*?</style>", "", html, flags=re.S))

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        form = next((one for one in reversed(self._open) if one.tag == "form"), None)
        scopes = (one.attributes.get("data-scope", "") for one in reversed(self._open))
        scope = next(filter(None, scopes), "")
        made = Element(tag, {name: value or "" for name, value in attrs}, form, scope)
        self.elements.append(made)
        if not any(one.tag in ("pre", "bdi", "del", "ins", "mark") for one in [*self._open, made]):
            self.handle_data(" ")
        above = next((one for one in reversed(self._open) if one.tag in ("form", "select")), None)
        if tag in ("input", "textarea", "select", "option") and above:
            above.inputs.append(made)
        if tag not in VOID:
            self._open.append(made)

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop().tag != tag:
            pass

    def handle_data(self, data: str) -> None:
        self._texts.append(data)
        for one in self._open:
            one.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join("".join(self._texts).split())

    @property
    def last_event(self) -> int:
        """The number of the latest event that is taken into account."""
        return int(self.elements[0].attributes["data-seen"])

    def find(self, label: str, tags: tuple[str, ...] = ("button", "summary")) -> Element:
        """The element of that label, or the first whose label begins so."""
        there = [one for one in self.elements if one.tag in tags]
        same = [one for one in there if one.label == label] or [
            one for one in there if one.label.startswith(label)
        ]
        assert same, f"no {label!r} among {[one.label for one in there]}"
        return same[0]

    def values(self, form: Element | None) -> dict[str, str]:
        """What a browser sends of a form."""
        sent = {}
        for one in form.inputs if form else ():
            kind, name = one.attributes.get("type"), one.attributes.get("name", "")
            if (
                one.tag == "option"
                or not name
                or (kind in ("checkbox", "radio") and "checked" not in one.attributes)
            ):
                continue
            if one.tag == "select":
                chosen = [two for two in one.inputs if "selected" in two.attributes] or one.inputs[
                    :1
                ]
                sent[name] = chosen[0].attributes["value"]
            elif one.tag == "textarea":
                sent[name] = "".join(one.texts).removeprefix("\n")
            else:
                sent[name] = one.attributes.get("value", "on" if kind else "")
        return sent


def page(widget: Live) -> Page:
    """What a page shows of a widget; the first time, it says that it does.

    A task may have ended while another thread still draws what was there before: that is waited for.
    """
    if not widget.html:
        widget.update({"do": "shown", "display": "page"})
    wait_for(lambda: not widget._redraw_requested and not widget._draw_lock.locked())
    return Page(widget.html)


def text(widget: Live) -> str:
    """All that is read on a widget."""
    return page(widget).text


def press(
    widget: Live, label: str, tags: tuple[str, ...] = ("button",), **typed: str | None
) -> None:
    """Press the button of that label as a person can, with these values typed over those of its form.

    None takes a value away, as unticking a box does. Another thread may be drawing: what it draws after the
    press is waited for, which the page knows by the number of the press.
    """
    wait_for(lambda: page(widget).find(label, tags).attributes.get("aria-disabled") != "true")
    shown = page(widget)
    found = shown.find(label, tags)
    form = {**shown.values(found.form), **typed}
    sent = {
        name.removeprefix("data-"): value
        for name, value in found.attributes.items()
        if name.startswith("data-")
    }
    sent["scope"] = found.scope
    number = shown.last_event + 1
    values = {name: value for name, value in form.items() if value is not None}
    widget.update({**sent, "seq": number, "form": values})
    wait_for(lambda: page(widget).last_event >= number)


def settle(*workers: Worker) -> None:
    """Wait until workers have done what they were told, and it is drawn: by them, or by a timer."""
    for worker in workers:
        if worker.thread is not None:
            worker.thread.join(timeout=60)
            assert not worker.thread.is_alive()
    for thread in threading.enumerate():
        if isinstance(thread, threading.Timer):
            thread.join(timeout=60)


def wait_for(condition: Callable[[], object], timeout_s: float = 60.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)


def pictures(markup: str) -> str:
    """Return the pictures of a page without a kernel, as SVG."""
    encoded = re.findall(r'src="data:image/svg\+xml;base64,([^"]*)"', markup)
    return "\n".join(base64.b64decode(data).decode() for data in encoded)


def record_html(
    value: object,
    names: Mapping[str, str] | None = None,
    of_system: str = "chatty_kg",
    inputs: tuple[object, ...] = (),
) -> str:
    """A record as HTML that stands alone; ``names`` are display names by IRI."""
    views = load_system(of_system).views
    return static_section(render(value, RenderContext(names or {}, views=views, inputs=inputs)))


def do(widget: Any, *labels: str, **typed: str | None) -> None:
    """Press buttons of a cell or debugger one after another, each when the work of the one before is done."""
    for label in labels:
        press(widget, label, **typed)
        settle(widget.session, widget.graph_worker)
