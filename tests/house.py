"""How the files of kgwb stand on one another, and the picture of it in docs/explanation/the-house.md.

    .venv/bin/python tests/house.py

draws the picture anew.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from html import escape
from pathlib import Path

ROOT = Path(__file__).parent.parent
PICTURE = ROOT / "docs" / "images" / "house.svg"
Graph = Mapping[str, Collection[str]]
"""What each file or room imports, by its name."""
WAY_OF_A_QUESTION = ("cli", "workbench", "systems", "run", "kg", "llm")
FLOOR_PX, ROOM_PX, GAP_PX = 64, 92, 16
FONT = 'font-family="sans-serif" font-size="14" text-anchor="middle"'
COLOURS = {True: ("#1f5f99", "#ffffff"), False: ("#dfe6ec", "#1b2733")}
"""The colours of a box and of its text, by whether a question passes through the room."""


def module_paths(package: Path) -> dict[str, Path]:
    """Every file of a package by its dotted name."""
    parts = {
        path: path.relative_to(package.parent).with_suffix("").parts
        for path in package.rglob("*.py")
    }
    return {
        ".".join(name[:-1] if name[-1] == "__init__" else name): path
        for path, name in parts.items()
    }


def imported(tree: ast.Module, paths: Mapping[str, Path]) -> Iterator[str]:
    """The modules of the package that a file imports anywhere, also inside functions or for types alone."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in paths)
        elif (
            isinstance(node, ast.ImportFrom)
            and node.module
            and node.module.partition(".")[0] == "kgwb"
        ):
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield whole if whole in paths else node.module


def imports_of_files(package: Path) -> dict[str, set[str]]:
    """The files that each file of a package imports."""
    paths = module_paths(package)
    graph = {}
    for name, path in sorted(paths.items()):
        graph[name] = set(imported(ast.parse(path.read_text()), paths)) - {name}
    return graph


def room(name: str) -> str:
    """`run` of kgwb.run.record: a folder of the package, or a file beside these; `kgwb` of the package itself."""
    return [*name.split("."), "kgwb"][1]


def imports_of_rooms(files: Graph) -> dict[str, set[str]]:
    """The rooms that the files of each room import."""
    rooms: dict[str, set[str]] = {room(name): set() for name in files}
    for name, theirs in files.items():
        rooms[room(name)] |= {room(other) for other in theirs} - {room(name)}
    return rooms


def circle_in(graph: Graph) -> list[str]:
    """Names that import one another in a circle; empty if there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def floors_of(graph: Graph) -> list[list[str]]:
    """The names on each floor, from the ground up: each stands one above the highest that it imports."""
    floor: dict[str, int] = {}
    for name in TopologicalSorter(graph).static_order():
        floor[name] = 1 + max((floor[below] for below in graph[name]), default=-1)
    floors: list[list[str]] = [[] for _ in range(max(floor.values()) + 1)]
    for name in sorted(floor):
        floors[floor[name]].append(name)
    return floors


def ranks_in(page: str) -> dict[str, int]:
    """The place of each room in the table of CONTRIBUTING.md."""
    table = page.partition("| room |")[2].partition("\n\n")[0]
    ranks = {}
    for rank, line in enumerate(table.splitlines()):
        for name in re.findall(r"`(\w+)", line.split("|")[1] if line.startswith("|") else ""):
            ranks[name] = rank
    return ranks


def draw(rooms: Graph) -> str:
    """The rooms by floors as SVG. A line leads to what a room stands on: what it imports directly below."""
    floors = floors_of(rooms)
    step = ROOM_PX + GAP_PX
    width = max(map(len, floors)) * step + GAP_PX
    height = len(floors) * FLOOR_PX + GAP_PX
    middles = {}
    for number, names in enumerate(floors):
        for place, name in enumerate(names):
            left = (width - len(names) * step + GAP_PX) / 2 + place * step
            middles[name] = (left + ROOM_PX / 2, height - number * FLOOR_PX - FLOOR_PX / 2)
    lines, boxes = [], []
    for number, names in enumerate(floors):
        for name in names:
            x, y = middles[name]
            fill, ink = COLOURS[name in WAY_OF_A_QUESTION]
            boxes.append(
                f'<rect x="{x - ROOM_PX / 2:g}" y="{y - 16:g}" width="{ROOM_PX}" height="32" rx="4" fill="{fill}"/>'
                f'<text x="{x:g}" y="{y + 5:g}" fill="{ink}" {FONT}>{escape(name)}</text>'
            )
            for below in sorted(rooms[name] & set(floors[number - 1]) if number else ()):
                x2, y2 = middles[below]
                lines.append(f'<path d="M{x:g} {y:g}L{x2:g} {y2:g}" stroke="#8a97a3"/>')
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    return "\n".join(
        [f'<svg xmlns="http://www.w3.org/2000/svg" {size}>', *lines, *boxes, "</svg>\n"]
    )


if __name__ == "__main__":
    PICTURE.write_text(draw(imports_of_rooms(imports_of_files(ROOT / "kgwb"))), encoding="utf-8")
