"""A line of text that says when Enter is pressed in it, and that takes no key."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from typing import Any

import ipywidgets as widgets

from kgwb.errors import SettingError
from kgwb.masking import masked, shown
from kgwb.ui.kit import Panel

KEY = re.compile(r"\b(sk|gsk|hf|xai|AIza)[-_\w]{16,}", re.I)
"""What looks like a key; texts of widgets are saved with a notebook."""
SOON_S = 0.2
"""How long after the Enter key the text itself may arrive."""


class Entry(widgets.Text):
    """A text field; ``action`` is done when Enter is pressed, not when it is left; failures are the panel's.

    The browser tells of the key before it sends the text, and sends the text only if it has changed.
    """

    def __init__(self, panel: Panel, action: Callable[[], Any], **traits: Any) -> None:
        self.value: str
        super().__init__(continuous_update=False, **traits)
        self._panel, self._action = panel, action
        self._waiting: threading.Timer | None = None
        self.on_msg(self._on_key)
        self.observe(lambda _: self._enter(), "value")

    def _on_key(self, _: Any, content: Any, __: Any) -> None:
        if isinstance(content, dict) and content.get("event") == "submit" and self._waiting is None:
            self._waiting = threading.Timer(SOON_S, self._enter)
            self._waiting.daemon = True
            self._waiting.start()

    def _enter(self) -> None:
        """Enter was pressed and the text is here, or will not change; a text without the key is only kept."""
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            waiting.cancel()
            with self._panel.message.guarding():
                self._action()

    def spoken(self) -> str:
        """The text, trimmed; raises SettingError, and takes the text away, if it seems to hold a secret."""
        text = self.value.strip()
        if KEY.search(text) or masked(text) != text or (" " not in text and shown(text) != text):
            self.value = ""
            raise SettingError(
                "what was written looks as if it held a key or a password, and was taken away again",
                hint="a notebook saves what its widgets hold: set keys in the environment before JupyterLab "
                "starts, and open an address that has a password in a cell",
            )
        return text
