"""What a page draws of a widget's states and of a subgraph in its frame, with a model in place of a kernel's."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Error, Page, expect
from test_subgraph import born

from kgwb.show.subgraph import Subgraph, build_subgraph
from kgwb.ui.live import load_script, read_scripts
from kgwb.ui.subgraph import frame_page, to_vis_network

RESTARTED = "The kernel was restarted: run this cell again."
WIDGET = """async (script) => {
    const load = (text) => import(URL.createObjectURL(new Blob([text], { type: "text/javascript" })));
    const listeners = {};
    const state = {};
    window.sent = [];
    window.model = {
        get: (name) => state[name], set() {}, off() {},
        on: (name, does) => { listeners[name] = does },
        send: (message) => { sent.push(message) },
    };
    window.change = (packed, isTold = true) => {
        state.packed = new DataView(new Uint8Array(packed).buffer);
        if (isTold) listeners["change:packed"]?.();
    };
    window.draw = async () => {
        const el = document.createElement("div");
        document.body.replaceChildren(el);
        return (await load(script)).default.render({ model, el });
    };
    window.show = async (script, times) => {
        const { default: widget } = await load(script);
        document.body.replaceChildren();
        for (let count = 0; count < times; count++) {
            const el = document.body.appendChild(document.createElement("div"));
            await widget.render({ model, el }).catch(() => {});
        }
    };
}"""


def state(text: str) -> list[int]:
    """A state as Python packs it."""
    return list(zlib.compress(f'<section class="kg" data-say="{text}">{text}</section>'.encode()))


@pytest.fixture
def blank(chromium: Browser) -> Iterator[Any]:
    context = chromium.new_context()
    opened = context.new_page()
    wrong: list[str] = []
    opened.on("pageerror", lambda error: wrong.append(str(error)))
    opened.evaluate(WIDGET, load_script())
    yield opened
    assert wrong == []
    context.close()


def test_of_two_states_in_a_row_the_latter_is_drawn_and_an_equal_one_hides_none(
    blank: Page,
) -> None:
    blank.evaluate("async (first) => { change(first); await draw() }", state("first"))
    expect(blank.locator(".kg")).to_have_text("first")
    blank.evaluate("states => states.forEach(one => change(one))", [state("2"), state("3")])
    expect(blank.locator(".kg")).to_have_text("3")
    # Backbone tells of no change if a state is sent once more, as revive() asks for.
    blank.evaluate("packed => { change(packed); change(packed, false) }", state("4"))
    expect(blank.locator(".kg")).to_have_text("4")


def test_a_state_that_came_before_the_kernel_was_lost_is_drawn_with_the_note(blank: Page) -> None:
    blank.evaluate(
        """async (packed) => {
            model.send = () => { throw new Error("the kernel is gone") };
            change(packed);
            await draw();
        }""",
        state("drawn before"),
    )
    expect(blank.locator(".kg")).to_have_text(f"{RESTARTED}drawn before")
    expect(blank.get_by_role("status")).to_have_text(RESTARTED)
    expect(blank.locator(".kg")).to_have_attribute("aria-busy", "false")


def test_a_view_that_is_removed_before_it_is_drawn_sends_nothing_more(blank: Page) -> None:
    blank.evaluate(
        """async (packed) => {
            change(packed);
            const remove = await draw();
            document.body.replaceChildren();
            remove();
        }""",
        state("gone"),
    )
    blank.wait_for_function("sent.length === 2")
    assert blank.evaluate("sent.map(({ do: name }) => name)") == ["shown", "gone"]


def test_the_script_is_loaded_once_and_a_widget_without_it_says_so_until_it_is_there(
    blank: Page,
) -> None:
    loader = read_scripts("loader.js")
    blank.evaluate(
        """([packed, script]) => {
            change(packed);
            window.asked = 0;
            const shared = { script, style: ".kg { color: rgb(1, 2, 3) }" };
            model.widget_manager = { get_model: async () => {
                if (!asked++) throw new Error("widget model not found");
                return { get: (name) => shared[name] };
            } };
        }""",
        [state("drawn"), load_script()],
    )
    blank.evaluate("loader => show(loader, 1)", loader)
    expect(blank.get_by_text("widget model not found")).to_be_visible()
    blank.evaluate("loader => show(loader, 2)", loader)
    expect(blank.locator(".kg")).to_have_text(["drawn", "drawn"])
    expect(blank.locator(".kg").first).to_have_css("color", "rgb(1, 2, 3)")
    assert blank.evaluate("asked") == 2
    assert blank.locator("style").count() == 1

    blank.evaluate(
        "loader => { delete globalThis.DecompressionStream; kgwbLoaded.clear(); return show(loader, 1) }",
        loader,
    )
    expect(blank.get_by_text("DecompressionStream")).to_be_visible()


class Frame:
    """The page of a subgraph in a sandboxed frame, with all that the browser said."""

    def __init__(self, page: Page, found: Subgraph) -> None:
        self.page, self.said, self.asked = page, list[str](), list[str]()
        page.on("console", lambda message: self.said.append(message.text))
        page.on("request", lambda request: self.asked.append(request.url))
        page.evaluate(FRAME, frame_page())
        self.frame = page.frames[1]
        # After the page's own listener, so that what a message brings is there when it is counted
        self.frame.evaluate("window.told = 0; addEventListener('message', () => { told += 1 })")
        self.tell(graph=to_vis_network(found))

    def tell(self, **what: Any) -> None:
        """Send the frame a message, and wait until it has drawn what came of it."""
        told = self.frame.evaluate("told")
        self.page.evaluate(
            "what => document.querySelector('iframe').contentWindow.postMessage({kgwb: what}, '*')",
            what,
        )
        self.frame.wait_for_function("number => told > number", arg=told)
        self.rest()

    def rest(self) -> None:
        """Let the frame draw, fit what it has drawn, and draw that."""
        self.frame.evaluate(
            "async () => { for (let n = 0; n < 4; n++) await new Promise(requestAnimationFrame) }"
        )

    def sides(self) -> list[tuple[float, float]]:
        """Where the boxes begin and end from left to right, in pixels of the frame."""
        return sorted((left, right) for left, right in self.frame.evaluate(SIDES))


FRAME = """(html) => new Promise((loaded) => {
    window.heard = [];
    addEventListener("message", (event) => window.heard.push(event.data));
    const frame = document.createElement("iframe");
    frame.setAttribute("sandbox", "allow-scripts");
    frame.style = "width: 880px; height: 400px";
    frame.onload = loaded;
    frame.srcdoc = html;
    document.body.replaceChildren(frame);
})"""
SIDES = """() => nodes.getIds().map((id) => network.getBoundingBox(id)).map((box) =>
    [box.left, box.right].map((x) => network.canvasToDOM({ x, y: 0 }).x))"""
PLACE = "id => network.canvasToDOM(network.getPositions([id])[id])"


def test_a_subgraph_is_drawn_answers_messages_and_runs_nothing_else(blank: Page) -> None:
    found = build_subgraph(born())
    shown = Frame(blank, found)
    assert shown.frame.evaluate("nodes.length") == 3
    shown.frame.locator("canvas").click(position=shown.frame.evaluate(PLACE, 1))
    blank.wait_for_function("heard.length")
    assert blank.evaluate("heard") == [{"kgwb": {"picked": 1}}]

    shown.tell(lit={"nodes": [0, 1], "edges": [0]})
    assert shown.frame.evaluate("edges.get(0).label") == "✓ director"
    assert shown.frame.evaluate("edges.get(0).width > edges.get(1).width") is True
    shown.tell(lit={})
    assert shown.frame.evaluate("edges.get(0).label") == "director"

    blank.evaluate("document.querySelector('iframe').style.width = '250px'")
    shown.frame.wait_for_function("innerWidth === 250")
    shown.rest()
    assert shown.frame.evaluate("network.getScale()") == pytest.approx(0.6)
    assert 0 < shown.sides()[0][0] < 20
    assert shown.sides()[-1][1] > 250  # to be panned to

    shown.tell(graph=to_vis_network(Subgraph(found.nodes[:1])), picked=0)
    assert shown.frame.evaluate("[nodes.length, network.getSelectedNodes()]") == [1, [0]]
    assert shown.said == []

    # The last line of defence: were markup to get in, it would be dead.
    with blank.expect_console_message():  # that the browser refused
        shown.frame.evaluate(
            "document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.ran=1\">')"
        )
    assert shown.frame.evaluate("window.ran === undefined") is True
    assert shown.asked == []
    with pytest.raises(Error, match=r"cross-origin|Blocked a frame"):
        shown.frame.evaluate("parent.document.title")
