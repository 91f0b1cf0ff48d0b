"""What every widget here is made of: markup, messages, guarded buttons, and the style of all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import ipywidgets as widgets

from kgwb.errors import KgwbError
from kgwb.render.html import STYLE as RECORD_STYLE
from kgwb.render.html import Html, body, join, tag
from kgwb.render.words import clean

# Every colour is a variable of the theme with a fallback that holds on light and dark pages.
STYLE = """
.kgwb-panel { border: 1px solid var(--jp-border-color1, rgba(128,128,128,.5)); border-radius: 4px;
  padding: 8px 10px; color: var(--jp-ui-font-color1, inherit);
  background: var(--jp-layout-color1, transparent) }
.kgwb-panel .widget-html-content, .kgwb-panel .jupyter-widgets.widget-html > .widget-html-content {
  line-height: 1.45 }
.kgwb-panel .kgwb-head { font-size: 1.1em; font-weight: 600 }
.kgwb-panel .kgwb-stale { border-left: 3px solid var(--jp-warn-color1, #b26a00); padding-left: .4em }
.kgwb-panel .widget-button, .kgwb-panel .widget-toggle-button { width: auto; padding: 0 .8em }
.kgwb-panel .widget-toggle-buttons .widget-toggle-button { width: auto }
.kgwb-panel .widget-textarea, .kgwb-panel .widget-dropdown, .kgwb-panel .widget-text {
  max-width: calc(100% - 4px) }
.kgwb-panel .kgwb-dim { opacity: .5 }
.kgwb-panel .kgwb-added { background: color-mix(in srgb, var(--jp-success-color1, #2e9e44) 22%, transparent) }
.kgwb-panel .kgwb-removed { background: color-mix(in srgb, var(--jp-error-color1, #d64545) 22%, transparent) }
.kgwb-panel textarea { font-family: var(--jp-code-font-family, monospace); line-height: 1.4 }
.kgwb-panel :focus-visible { outline: 2px solid var(--jp-brand-color1, #3b82c4); outline-offset: 1px }
"""


def markup(*contents: object) -> widgets.HTML:
    """A widget that shows markup; what is not ``Html`` is escaped."""
    return widgets.HTML(body(*contents), layout=widgets.Layout(width="auto", margin="2px 0"))


class Message(widgets.HTML):
    """The line of a panel that says what happened: progress, a remark, or a failure with its remedy."""

    def __init__(self) -> None:
        super().__init__(layout=widgets.Layout(width="auto", display="none"))

    def say(self, text: object) -> None:
        """Show a remark."""
        self._show(tag("div", text, class_="kgwb-note", role="status"))

    def fail(self, error: BaseException) -> None:
        """Show a failure: what was seen, and what to do next."""
        what = error.message if isinstance(error, KgwbError) else f"{type(error).__name__}: {error}"
        hint = getattr(error, "hint", "")
        todo = tag("div", f"What to do: {hint}") if hint else ""
        self._show(tag("div", tag("b", "Failed: "), what, todo, class_="kgwb-bad", role="alert"))

    def clear(self) -> None:
        """Show nothing."""
        self.value, self.layout.display = "", "none"

    def _show(self, content: Html) -> None:
        self.value, self.layout.display = body(content), ""

    @contextmanager
    def guarding(self) -> Iterator[None]:
        """Show any failure of the block here: a widget's callback has nowhere else to tell of it."""
        try:
            yield
        except Exception as exc:  # noqa: BLE001  # the one catch-all: whatever a callback raises is shown
            self.fail(exc)


class Panel(widgets.VBox):
    """The frame of every widget here; ``message`` says what happened, ``static`` shows it without widgets.

    In a notebook that has no kernel, and wherever widgets are not drawn, ``static()`` is what is seen.
    """

    def __init__(self, *children: widgets.Widget) -> None:
        self.message = Message()
        self._style = widgets.HTML(
            f"<style>{RECORD_STYLE}{STYLE}</style>", layout=widgets.Layout(display="none")
        )
        super().__init__((self._style, *children, self.message))
        self.add_class("kgwb-panel")

    def static(self) -> str:
        """The same as HTML that stands alone."""
        return ""

    def show(self, *children: widgets.Widget) -> None:
        """Replace what the panel holds."""
        self.children = (self._style, *children, self.message)

    def button(self, text: str, action: Callable[[], Any], **traits: Any) -> widgets.Button:
        """A button with a visible label; a failure of its action is shown in this panel."""
        made = widgets.Button(description=text, **traits)

        def clicked(_: widgets.Button) -> None:
            with self.message.guarding():
                action()

        made.on_click(clicked)
        return made

    def watch(self, widget: widgets.Widget, action: Callable[[Any], Any], trait: str = "value") -> None:
        """Call ``action`` with the new value whenever a trait of a widget changes; failures are shown."""

        def changed(change: Any) -> None:
            with self.message.guarding():
                action(change["new"])

        widget.observe(changed, trait)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        bundle = super()._repr_mimebundle_(**kwargs)
        data = bundle[0] if isinstance(bundle, tuple) else bundle
        if data is not None:
            data["text/plain"] = repr(self)
            if told := self.static():
                data["text/html"] = told
        return bundle


def dim(button: widgets.Button, dimmed: bool) -> None:
    """Show that a button would do nothing now; disabling it would take the keyboard's focus away."""
    (button.add_class if dimmed else button.remove_class)("kgwb-dim")


def row(*children: widgets.Widget, **layout: Any) -> widgets.HBox:
    """Widgets beside each other, folded onto the next line where there is no room."""
    wanted = {"flex_flow": "row wrap", "align_items": "center", "grid_gap": "4px", **layout}
    return widgets.HBox(children, layout=widgets.Layout(**wanted))


def field(text: str, widget: widgets.Widget) -> widgets.VBox:
    """A widget under a visible label, which is its accessible name too."""
    if not isinstance(widget, widgets.Box) and not widget.tooltip:  # a box with a tooltip cannot be drawn
        widget.tooltip = clean(text)
    label = markup(tag("div", text, class_="kgwb-aside"))
    return widgets.VBox((label, widget), layout=widgets.Layout(width="auto"))


__all__ = ["Html", "Message", "Panel", "body", "dim", "field", "join", "markup", "row", "tag"]
