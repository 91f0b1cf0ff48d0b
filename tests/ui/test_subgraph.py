"""The panel of the linked subgraph, without a browser; then its page in Chromium."""

import json
import re
import shutil
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from engines import leave_out
from page import page as page_of
from page import press, settle, text, wait_for
from small import DIRECTED, chatty
from test_subgraph import born

from kgwb import load_run
from kgwb.llm import Scripted
from kgwb.run import Run
from kgwb.show.subgraph import Subgraph, build_subgraph
from kgwb.ui.debugger import Debugger
from kgwb.ui.live import load_script
from kgwb.ui.session import Session
from kgwb.ui.subgraph import SubgraphPanel, frame_page, to_vis_network

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)


def panel(run: Run | None = None) -> SubgraphPanel:
    made = SubgraphPanel(Session(run or born()))
    page_of(made)  # it is displayed
    return made


def labels(made: SubgraphPanel) -> list[str]:
    return [node.label for node in made.subgraph.nodes]


def click(made: SubgraphPanel, node: int) -> None:
    made.update({"do": "node", "arg": str(node)})
    settle(made.worker)


# --- the panel


def test_the_answers_path_is_lit_at_once() -> None:
    made = panel()
    assert labels(made)[:3] == ["Arrival", "Denis Villeneuve", "Gentilly"]
    assert {"Amy Adams", "Sicario"} <= set(labels(made)[3:])  # pale, around the path
    assert made.html.count('class="ed lit"') == 2
    assert "✓ birth place" in text(made)
    press(made, "no highlight")
    assert "✓" not in text(made)


def test_it_is_the_same_inside_of_the_debugger() -> None:
    made = Debugger(Session(born()))
    press(made, "Subgraph")
    made.update({"do": "node", "arg": "1", "scope": "graph"})
    assert made.subgraph_panel is not None
    settle(made.subgraph_panel.worker)
    assert "denis" in text(made)
    made.update({"do": "drawn", "arg": "graph", "scope": "graph"})
    assert "Content-Security-Policy" in made.frame_page


def test_a_click_shows_the_node_and_marks_what_supports_an_answer() -> None:
    made = panel()
    press(made, "no highlight")
    click(made, 0)
    assert "Film" in text(made)
    assert "linked to “Arrival”" in text(made)
    click(made, 2)
    assert made.highlighted_answer is not None
    assert made.highlighted_answer.label == "Gentilly"


@pytest.mark.parametrize("picked", ["300", "-1", "-2", "1000000000", "x"])
def test_a_page_cannot_name_what_is_not_there(picked: str) -> None:
    made = panel()
    made.update({"do": "node", "arg": picked})
    assert 'class="well' not in made.html


def test_expanding_adds_neighbours_and_says_how_many() -> None:
    made = panel()
    assert {"Dune", "Sicario", "3"} <= set(labels(made))
    assert "all 3 more" in text(made)
    story = labels(made).index("Story of Your Life")
    click(made, story)
    press(made, "Expand one hop")
    settle(made.worker)
    assert "all 1 more" in text(made)
    assert "Ted Chiang" in labels(made)


def test_a_replay_cannot_be_expanded_and_says_why(tmp_path: Path) -> None:
    replay = panel(load_run(born().save(tmp_path / "run.jsonl")))
    assert labels(replay) == ["Arrival", "Denis Villeneuve", "Gentilly"]  # nobody is asked for more
    click(replay, 0)
    press(replay, "Expand one hop")
    assert "load_run" in text(replay)


def test_it_follows_the_run_and_does_nothing_if_nothing_changed() -> None:
    session = Session(chatty("Who directed Arrival?", Scripted(DIRECTED)))
    made = SubgraphPanel(session)
    assert "No vertex" in text(made)
    session.go("matching").result(10)
    assert labels(made) == ["Arrival"]
    session.go().result(10)
    assert labels(made)[:2] == ["Arrival", "Denis Villeneuve"]
    before = made.subgraph
    session.notify()
    assert made.subgraph is before
    made.close()
    assert made.redraw not in session.listeners


def test_the_table_and_the_graph_to_move_around_in() -> None:
    made = panel()
    press(made, "Table")
    assert "“birth place”" in text(made)
    assert all(part in made.static_html() for part in ("<img", "<table", "Gentilly"))
    assert made.frame_page == ""  # half a megabyte that nobody asked for
    press(made, "Interactive")
    assert "Content-Security-Policy" in made.frame_page
    place = next(one for one in page_of(made).elements if "data-graph" in one.attributes)
    shown = json.loads(place.attributes["data-graph"])["graph"]["nodes"]
    assert shown[0]["label"].startswith("Arrival")


# --- the page


def test_the_page_names_no_address_to_load_from_and_leaves_no_trace(here: Path) -> None:
    html = frame_page()
    assert re.findall(r'<[^>]*(?:src|href)\s*=\s*["\']?\s*(?:https?:)?//', html) == []
    assert "bootstrap" not in html.lower()
    assert "default-src 'none'" in html
    assert html.count("</script>") == html.count("<script nonce=") == 2
    assert frame_page() != html  # the nonce cannot be guessed
    assert list(here.iterdir()) == []  # pyvis's own page writes files


# --- in Chromium


class Shown:
    """A page in a sandboxed frame, with all that the browser said."""

    def __init__(self, browser: Any, found: Subgraph) -> None:
        self.said: list[str] = []
        self.asked: list[str] = []
        self.page = browser.new_page(viewport={"width": 900, "height": 500})
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.said.append("dialog"), dialog.dismiss()))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.set_content("<body style='margin:0'></body>")
        self.page.evaluate(
            """(html) => new Promise((loaded) => {
                window.heard = [];
                addEventListener("message", (event) => window.heard.push(event.data));
                const frame = document.createElement("iframe");
                frame.setAttribute("sandbox", "allow-scripts");
                frame.style = "width: 880px; height: 400px";
                frame.onload = loaded;
                frame.srcdoc = html;
                document.body.append(frame);
            })""",
            frame_page(),
        )
        self.frame = self.page.frames[1]
        # After the page's own listener, so that what a message brings is there when it is counted
        self.frame.evaluate("window.told = 0; addEventListener('message', () => { told += 1 })")
        self.told = 0
        self.tell(graph=to_vis_network(found))

    def tell(self, **what: Any) -> None:
        """Send the frame a message, and wait until it has drawn what came of it."""
        post = "(what) => document.querySelector('iframe').contentWindow.postMessage({kgwb: what}, '*')"
        self.page.evaluate(post, what)
        self.told += 1
        self.frame.wait_for_function("number => told === number", arg=self.told)
        self.rest()

    def rest(self) -> None:
        """Let the frame draw, fit what it has drawn, and draw that."""
        frames = (
            "async () => { for (let n = 0; n < 4; n++) await new Promise(requestAnimationFrame) }"
        )
        self.frame.evaluate(frames)

    def colours(self) -> int:
        """How many pixels of the canvas are neither empty nor of the ground."""
        return int(
            self.frame.evaluate(
                """async () => {
                    await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
                    const canvas = document.querySelector("canvas");
                    const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
                    let count = 0;
                    for (let at = 0; at < data.length; at += 4)
                        count += data[at + 3] > 0 && data[at] + data[at + 1] + data[at + 2] < 720;
                    return count;
                }"""
            )
        )

    def style(self, **style: str) -> None:
        """Change how the frame is shown, as the widget around it does."""
        size = self.page.evaluate(
            """(style) => {
                const frame = document.querySelector("iframe");
                Object.assign(frame.style, style);
                return [frame.clientWidth, frame.clientHeight];
            }""",
            style,
        )
        self.frame.wait_for_function("([w, h]) => innerWidth === w && innerHeight === h", arg=size)
        self.rest()

    def sides(self) -> list[tuple[float, float]]:
        """Where the boxes begin and end from left to right, in pixels of the frame."""
        found = self.frame.evaluate(
            """() => nodes.getIds().map((id) => network.getBoundingBox(id)).map((box) =>
                [box.left, box.right].map((x) => network.canvasToDOM({ x, y: 0 }).x))"""
        )
        return sorted((left, right) for left, right in found)

    def place(self, node: int) -> dict[str, float]:
        at: dict[str, float] = self.frame.evaluate(
            "(id) => network.canvasToDOM(network.getPositions([id])[id])", node
        )
        return at


@pytest.fixture
def show(only_long: None) -> Iterator[Any]:
    if not CHROMIUM:
        leave_out("Chromium is not here; on Debian and Ubuntu: apt install chromium")
    from playwright.sync_api import sync_playwright

    arguments = ["--no-sandbox", "--disable-quic", "--disable-background-networking"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield lambda found: Shown(browser, found)
        browser.close()


@pytest.mark.long
def test_the_page_draws_answers_messages_and_asks_nothing(show: Any) -> None:
    found = build_subgraph(born())
    shown = show(found)
    assert shown.frame.evaluate("nodes.length") == 3
    plain = shown.colours()
    assert plain > 1_000
    assert show(Subgraph()).colours() == 0  # so that the count says something

    shown.frame.locator("canvas").click(position=shown.place(1))
    shown.page.wait_for_function("heard.length")
    assert shown.page.evaluate("heard") == [{"kgwb": {"picked": 1}}]

    shown.tell(lit={"nodes": [0, 1], "edges": [0]})
    assert shown.frame.evaluate("edges.get(0).label") == "✓ director"
    assert shown.frame.evaluate("edges.get(0).width > edges.get(1).width") is True
    shown.tell(lit={})
    assert shown.frame.evaluate("edges.get(0).label") == "director"

    shown.tell(graph=to_vis_network(Subgraph(found.nodes[:1])), picked=0)
    assert shown.frame.evaluate("[nodes.length, network.getSelectedNodes()]") == [1, [0]]
    assert shown.said == []
    assert shown.asked == []


@pytest.mark.long
def test_in_a_narrow_frame_labels_stay_readable_and_the_question_begins_at_the_left(
    show: Any,
) -> None:
    shown = show(build_subgraph(born()))
    shown.style(width="250px")
    assert shown.frame.evaluate("network.getScale()") == pytest.approx(0.6)
    assert 0 < shown.sides()[0][0] < 20
    assert shown.sides()[-1][1] > 250  # to be panned to
    shown.frame.locator("canvas").dblclick(position={"x": 5, "y": 5})
    wait_for(lambda: shown.sides()[-1][1] < 250)


WIDGET = """async ([script, state]) => {
    const address = URL.createObjectURL(new Blob([script], {type: "text/javascript"}));
    window.sent = [];
    const el = document.createElement("div");
    document.body.replaceChildren(el);
    state.packed = new Uint8Array(state.packed);
    const model = { get: (name) => state[name], set() {}, on() {}, off() {}, send: (message) => sent.push(message) };
    (await import(address)).default.render({ model, el });
}"""


@pytest.mark.long
def test_the_widget_frames_the_page_tells_it_the_graph_and_hears_a_click(show: Any) -> None:
    made = panel()
    press(made, "Interactive")
    shown = show(Subgraph())
    around = f'<section data-scope="graph">{made.html}</section>'  # as in the debugger
    state = {"packed": list(zlib.compress(around.encode())), "frame_page": made.frame_page}
    shown.page.evaluate(WIDGET, [load_script(), state])
    shown.page.wait_for_function("document.querySelector('iframe')?.told")
    shown.frame = shown.page.frames[1]
    shown.frame.wait_for_function("nodes.length > 3")
    shown.style(width="880px", height="480px")
    assert shown.page.locator("iframe").get_attribute("sandbox") == "allow-scripts"
    shown.frame.locator("canvas").click(position=shown.place(1))
    shown.page.wait_for_function("sent.length > 1")
    assert shown.page.evaluate("[sent[1].do, sent[1].arg, sent[1].scope]") == ["node", "1", "graph"]
    assert shown.colours() > 1_000


@pytest.mark.long
def test_the_page_may_run_and_load_nothing_else(show: Any) -> None:
    """The last line of defence: were markup to get in, it would be dead."""
    shown = show(build_subgraph(born()))
    shown.frame.evaluate(
        "document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.ran=1\">')"
    )
    while not shown.said:  # until the browser tells that it refused
        shown.page.wait_for_timeout(50)
    assert shown.frame.evaluate("window.ran === undefined") is True
    assert shown.asked == []
    assert (
        shown.frame.evaluate(
            "(() => { try { return !parent.document } catch { return 'refused' } })()"
        )
        == "refused"
    )
