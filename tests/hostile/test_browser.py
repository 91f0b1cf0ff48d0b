"""Hostile runs in a real browser: a script that ran would set a flag, and nothing does."""

from __future__ import annotations

import json
import re
from pathlib import Path

from browser.harness import CHROMIUM, WAIT_MS, browsing
from engines import leave_out
from playwright.sync_api import Page

from hostile.corpus import texts
from hostile.runs import bundles, hostile_run
from hostile.test_shown import shown_by_widgets, static_forms
from kgwb.run import Run
from kgwb.show.static_form import load_style
from kgwb.ui.live import load_script
from kgwb.ui.session import session_of
from kgwb.ui.subgraph import SubgraphPanel

SHOWN = 24
"""Runs of 8 texts each on the page; their texts are the first, those that stand for a family each."""
FRAMES = 6
EVENTS = """
for (const one of document.querySelectorAll("*"))
  for (const name of ["mouseover", "focus", "toggle", "load", "error"]) one.dispatchEvent(new Event(name));
"""
TOOLTIP = (
    "id => { document.body.append(nodes.get(id).title); return nodes.get(id).title.textContent; }"
)
ODD = (
    "script, img:not([src^='data:image/svg+xml;base64,']), iframe, object, embed, base, link, template, "
    "meta:not([charset])"
)
MODEL = """
const given = %s;
given.packed = new Uint8Array(given.packed);
const el = document.createElement("div");
document.body.append(el);
window.render({ el, model: { get: (name) => given[name], set() {}, send() {}, on() {}, off() {} } });
"""


def test_nothing_runs_in_a_browser(tmp_path: Path) -> None:
    if not CHROMIUM:
        leave_out("Chromium is not here; on Debian and Ubuntu: apt install chromium")
    runs = [
        hostile_run(bundle, number)
        for number, bundle in zip(range(SHOWN), bundles(texts()), strict=False)
    ]
    saved = tmp_path / "page.html"
    forms = [html for run in runs for _, html in static_forms(run, runs[0])]
    forms += [html for run in runs[::12] for html in shown_by_widgets(run)]
    bare = re.sub("<style>.*?</style>", "", "".join(forms), flags=re.S)  # hundreds of them are slow
    head = f"<!DOCTYPE html><meta charset=utf-8><style>{load_style()}</style>"
    saved.write_text(f"{head}<body>{bare}</body>", encoding="utf-8")
    asked: list[str] = []
    dialogs: list[str] = []
    with browsing() as browser:
        page = browser.new_page()
        page.set_default_timeout(WAIT_MS)
        page.on("request", lambda request: asked.append(request.url))
        page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
        page.goto(saved.as_uri())
        page.evaluate("document.querySelectorAll('details').forEach((one) => one.open = true)")
        page.evaluate(EVENTS)
        links = page.evaluate("[...document.querySelectorAll('a')].map((one) => one.protocol)")
        assert set(links) <= {"http:", "https:"}
        assert links
        assert page.locator(ODD).count() == 0
        show_frames(page, runs)
        assert [frame.evaluate("typeof window.ran") for frame in page.frames] == ["undefined"] * (
            FRAMES + 1
        )
        assert page.evaluate("typeof ran") == "undefined"
        # had a script been let in, it would have run and been seen
        page.goto(saved.as_uri())
        page.evaluate(
            "document.body.insertAdjacentHTML('beforeend', '<img src=x: onerror=window.ran=1>')"
        )
        page.wait_for_function("window.ran === 1")
    assert dialogs == []
    assert [
        url for url in asked if not url.startswith(("file:", "about:", "blob:", "data:", "x:"))
    ] == []


def show_frames(page: Page, runs: list[Run]) -> None:
    """Subgraphs as the widget's own script shows them, each node pointed at until its tooltip is there."""
    page.add_script_tag(
        content=load_script().replace("export default { render };", "window.render = render;"),
        type="module",
    )
    page.wait_for_function("typeof window.render === 'function'")
    page.evaluate("document.body.replaceChildren()")
    for run in runs[:: SHOWN // FRAMES][:FRAMES]:
        made = SubgraphPanel(session_of(run))
        made.update({"do": "drawn", "arg": "graph"})
        page.evaluate(
            MODEL % json.dumps({"packed": list(made.packed), "frame_page": made.frame_page})
        )
    page.wait_for_function(
        "count => document.querySelectorAll('iframe').length === count", arg=FRAMES
    )
    tooltips = 0
    for frame, element in zip(page.frames[1:], page.locator("iframe").all(), strict=True):
        frame.wait_for_function("typeof nodes !== 'undefined' && nodes.length > 0")
        frame.wait_for_function("document.querySelector('canvas').height > 0")
        for number in range(int(frame.evaluate("nodes.length"))):
            frame.evaluate("id => network.body.emitter.emit('hoverNode', {node: id})", number)
            text = frame.evaluate(TOOLTIP, number)
            tooltips += bool(text)
            assert (
                frame.evaluate(
                    "document.querySelectorAll('img, iframe, script:not([nonce])').length"
                )
                == 0
            )
        assert element.get_attribute("sandbox") == "allow-scripts"
    assert tooltips > FRAMES
