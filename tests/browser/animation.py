"""The animated picture of the README: a wrong answer in the debugger, an edit, and the right answer.

cd tests && ../.venv/bin/python -m browser.animation    writes docs/images/debugger.gif
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

from browser.harness import Cell, Site, browsing
from browser.servers import serving

FILE = Path(__file__).parent.parent.parent / "docs" / "images" / "debugger.gif"
SETUP = """
import kgwb

workbench = kgwb.Workbench(kgwb.open_kg("films"), "rules")
"""
DEBUGGER = 'workbench.debug("By whom was the music for Vertigo composed?")'
WIDTH, HEIGHT = 900, 600
"""Pixels of a frame, without its caption."""
BESIDE = 432
"""Pixels that JupyterLab needs beside a widget."""
CAPTION_HEIGHT = 40
FRAME_MS = 2_600
LAST_FRAME_MS = 5_000
MAX_COLORS = 96


def scenes(cell: Cell) -> Iterator[str]:
    """Do what the picture shows. Yields the caption of each frame when the page shows it."""
    yield "1. Open a question in the debugger"
    for agent in ("context", "classifier", "rephraser", "qir"):
        cell.click("Step")
        cell.wait(agent)
    cell.click("Step").wait("1 candidate")
    yield "2. Step through the agents"
    cell.click("Continue").wait("Psycho")
    yield "3. Continue: the answer is wrong"
    cell.row("qir").click()
    cell.wait("as a table")
    yield "4. Find the step that lost it: its triples are wrong"
    cell.tab("Edit as a form").wait("Use this result")
    cell.click(cell.button("Remove this row").last)
    cell.output.get_by_label("subject 2").wait_for(state="detached")
    cell.fill("subject 1", "Vertigo").fill("object 1", "?answer")
    yield "5. Edit its result"
    cell.click("Use this result").wait("stale")
    yield "6. What comes after the edit is stale"
    cell.click("Continue").wait("stands on 1 triple")
    yield "7. Continue: only what depends on the edit is asked again"
    cell.tab("Answer").wait("Where the time went")
    yield "8. See the triples that the answer is derived from"


def take_frame(cell: Cell, caption: str, folder: Path) -> Image.Image:
    """Return a frame: the widget as it is now, below a line that says what is done."""
    picture = Image.open(cell.picture(folder / "frame.png", most=HEIGHT)).convert("RGB")
    frame = Image.new("RGB", (WIDTH, CAPTION_HEIGHT + HEIGHT), "white")
    frame.paste(picture.crop((0, 0, WIDTH, HEIGHT)), (0, CAPTION_HEIGHT))
    font = ImageFont.load_default(size=20)
    ImageDraw.Draw(frame).text((12, 8), caption, fill="#1f2328", font=font)
    return frame


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--file", type=Path, default=FILE)
    file = parser.parse_args().file
    frames = []
    with (
        browsing() as browser,
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as copy,
        serving("lab", Path(copy)) as server,
    ):
        notebook = server.write("animation.ipynb", SETUP, DEBUGGER)
        window = {"width": WIDTH + BESIDE, "height": 1500}
        with Site(server, browser).visit(notebook, **window) as page:
            page.cell(0).run()
            cell = page.cell(1).run()
            for caption in scenes(cell):
                frames.append(take_frame(cell, caption, Path(copy)))
    save(frames, file)


def save(frames: list[Image.Image], file: Path) -> None:
    """Write the frames as a GIF that repeats."""
    reduced = [frame.quantize(MAX_COLORS, dither=Image.Dither.NONE) for frame in frames]
    durations = [*[FRAME_MS] * (len(frames) - 1), LAST_FRAME_MS]
    reduced[0].save(
        file, save_all=True, append_images=reduced[1:], duration=durations, loop=0, optimize=True
    )


if __name__ == "__main__":
    main()
