"""Two runs side by side in a notebook: the first decision that differs on top, then every step."""

from __future__ import annotations

from kgwb.run import Run
from kgwb.run.record import difference
from kgwb.show.compare import Side, comparison
from kgwb.show.html import Html, clean, div, join, tabs
from kgwb.show.run import Standing
from kgwb.show.text import differing
from kgwb.ui.live import Event, Live
from kgwb.ui.session import Session


class ComparisonPanel(Live):
    """Two executions, each a run or a session, side by side by step; it follows what is done to them."""

    def __init__(
        self, first: Run | Session, second: Run | Session, names: tuple[str, str] = ("first", "second")
    ) -> None:
        self.sides, self.names = (first, second), names
        self.all_steps = False
        super().__init__(*(side for side in self.sides if isinstance(side, Session)))

    def _side(self, number: int) -> Side:
        side = self.sides[number]
        return Side(self.names[number], side.standing() if isinstance(side, Session) else Standing.of(side))

    def view(self) -> Html:
        options = (("differ", "What differs", ""), ("all", "All steps", ""))
        choice = tabs(options, "all" if self.all_steps else "differ", "show", bare=True)
        sides = comparison(self._side(0), self._side(1), all_steps=self.all_steps)
        return join(div("band row controls", choice), sides)

    def static_view(self) -> Html:
        return comparison(self._side(0), self._side(1))

    def do_show(self, event: Event) -> None:
        self.all_steps = event["arg"] == "all"

    def __repr__(self) -> str:
        first, second = self._side(0), self._side(1)
        text = differing(difference(first.standing.steps, second.standing.steps))
        return f"{type(self).__name__}({clean(first.name)} and {clean(second.name)}: {text})"
