"""Pressing the buttons of a widget, and reading what it shows, without a browser."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from kgwb.ui.session import Session


def parts(widget: Any) -> list[Any]:
    """A widget and all it holds that can be seen."""
    if widget.layout.display == "none":
        return []
    return [widget, *(part for child in getattr(widget, "children", ()) for part in parts(child))]


def button(widget: Any, text: str) -> Any:
    """The one button with this text."""
    [found] = [one for one in parts(widget) if hasattr(one, "click") and one.description == text]
    return found


def press(widget: Any, text: str) -> None:
    """Press the one button with this text, as a person can."""
    found = button(widget, text)
    assert not found.disabled, f"{text} cannot be pressed"
    found.click()


def shown(widget: Any) -> str:
    """All the text that a widget shows now."""
    values = (getattr(one, "value", None) for one in parts(widget))
    return "\n".join(value for value in values if isinstance(value, str))


def settled(session: Session) -> None:
    """Wait until a session has done what it was told."""
    assert session.worker is not None
    session.worker.join(timeout=10)
    assert not session.worker.is_alive()


def wait_for(condition: Callable[[], object], timeout_s: float = 5.0) -> None:
    """Wait until something is true."""
    for _ in range(int(timeout_s * 100)):
        if condition():
            return
        threading.Event().wait(0.01)
    raise AssertionError("waited in vain")
