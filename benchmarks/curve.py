"""Lines over logarithmic axes as SVG, on a page that opens offline."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kgwb.show.html import Html, tag

COLOURS = ("#1565c0", "#b25d00", "#2e7d32", "#6a1b9a", "#c62828")
WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 720, 400, 70, 40, 180, 60


@dataclass(frozen=True, slots=True)
class Line:
    """One curve: its name and its points, both coordinates above 0."""

    name: str
    points: tuple[tuple[float, float], ...]


def page(path: Path, charts: Sequence[tuple[str, str, str, Sequence[Line]]]) -> None:
    """Write charts (title, name of the x axis, of the y axis, lines) as one HTML file."""
    drawn = [chart(*given) for given in charts if any(line.points for line in given[-1])]
    head = tag("head", tag("meta", charset="utf-8"), tag("title", "kgwb: how it grows"))
    body = tag("body", *drawn, style="font-family: system-ui, sans-serif; background: #ffffff")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"<!DOCTYPE html>\n{tag('html', head, body, lang='en')}\n", encoding="utf-8")


def chart(title: str, across: str, up: str, lines: Sequence[Line]) -> Html:
    """Lines as SVG; both axes are logarithmic, with a mark at each power of ten."""
    xs, ys = (
        [math.log10(max(point[axis], 1e-6)) for line in lines for point in line.points]
        for axis in (0, 1)
    )
    low_x, high_x, low_y, high_y = *_range(xs), *_range(ys)

    def place(x: float, y: float) -> tuple[float, float]:
        return (
            LEFT + (x - low_x) / (high_x - low_x) * (WIDTH - LEFT - RIGHT),
            HEIGHT - BOTTOM - (y - low_y) / (high_y - low_y) * (HEIGHT - TOP - BOTTOM),
        )

    parts = [tag("title", title), _text(title, LEFT, 22, size=15)]
    for power in range(low_x, high_x + 1):
        x, _ = place(power, low_y)
        parts += [
            _rule(x, TOP, x, HEIGHT - BOTTOM),
            _text(f"{10**power:,}", x, HEIGHT - BOTTOM + 18, "middle"),
        ]
    for power in range(low_y, high_y + 1):
        _, y = place(low_x, power)
        parts += [
            _rule(LEFT, y, WIDTH - RIGHT, y),
            _text(f"{10.0**power:g}", LEFT - 8, y + 4, "end"),
        ]
    parts += [
        _text(across, (LEFT + WIDTH - RIGHT) / 2, HEIGHT - BOTTOM + 40, "middle"),
        _text(up, LEFT - 60, TOP - 8),
    ]
    names = _apart(
        [place(0, math.log10(max(line.points[-1][1], 1e-6)))[1] for line in lines if line.points]
    )
    for colour, line, name_y in zip(
        COLOURS, (line for line in lines if line.points), names, strict=False
    ):
        dots = [place(math.log10(x), math.log10(max(y, 1e-6))) for x, y in line.points]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in dots)
        parts.append(tag("polyline", points=path, fill="none", stroke=colour, stroke_width=2))
        for (x, y), (_, value) in zip(dots, line.points, strict=True):
            parts.append(
                tag(
                    "circle",
                    tag("title", f"{line.name}: {value:.3g}"),
                    cx=x,
                    cy=y,
                    r=3.5,
                    fill=colour,
                )
            )
        parts.append(
            _text(
                f"{line.name}: {line.points[-1][1]:.3g}",
                dots[-1][0] + 10,
                name_y + 4,
                colour=colour,
            )
        )
    size = {"width": WIDTH, "height": HEIGHT, "viewBox": f"0 0 {WIDTH} {HEIGHT}"}
    white = tag("rect", width="100%", height="100%", fill="#ffffff")  # a page may be dark
    return tag("svg", white, *parts, role="img", xmlns="http://www.w3.org/2000/svg", **size)


def _range(logarithms: Sequence[float]) -> tuple[int, int]:
    low, high = math.floor(min(logarithms)), math.ceil(max(logarithms))
    return low, max(high, low + 1)


def _apart(heights: Sequence[float], room: float = 15) -> list[float]:
    """The same heights, moved so that texts at them do not lie over each other."""
    found = list(heights)
    last = -math.inf
    for place in sorted(range(len(found)), key=found.__getitem__):
        found[place] = last = max(found[place], last + room)
    return found


def _rule(x: float, y: float, to_x: float, to_y: float) -> Html:
    return tag("line", x1=x, y1=y, x2=to_x, y2=to_y, stroke="#dddddd")


def _text(
    text: str, x: float, y: float, anchor: str = "start", *, size: int = 12, colour: str = "#212121"
) -> Html:
    return tag("text", text, x=x, y=y, text_anchor=anchor, font_size=size, fill=colour)
