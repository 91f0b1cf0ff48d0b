"""What a person does to widgets: find a button by its label, press it, read what is shown."""

from __future__ import annotations

import html
import re
import time
from collections.abc import Callable, Iterator

import ipywidgets as widgets


def everything(widget: widgets.Widget) -> Iterator[widgets.Widget]:
    """A widget and all that it holds, in order."""
    yield widget
    for child in getattr(widget, "children", ()):
        yield from everything(child)


def button(within: widgets.Widget, label: str, number: int = 0) -> widgets.Button:
    buttons = [
        one for one in everything(within) if isinstance(one, widgets.Button) and one.description == label
    ]
    return buttons[number]


def press(within: widgets.Widget, label: str, number: int = 0) -> None:
    button(within, label, number).click()


def markup_of(within: widgets.Widget) -> str:
    """All markup that is shown."""
    shown = (
        one.value
        for one in everything(within)
        if isinstance(one, widgets.HTML) and one.layout.display != "none"
    )
    return "".join(shown)


def text_of(within: widgets.Widget) -> str:
    """What is read there."""
    return plain(markup_of(within))


def plain(markup: str) -> str:
    markup = re.sub("<style>.*?</style>", "", markup, flags=re.S)
    return html.unescape(re.sub("<[^>]+>", " ", markup))


def wait_for(true: Callable[[], object], most_s: float = 10.0) -> None:
    until = time.monotonic() + most_s
    while not true():
        assert time.monotonic() < until, "it did not come to that"
        time.sleep(0.01)
