"""The panel of the linked subgraph, and the page that it frames; tests/browser draws that."""

import json
import re
from pathlib import Path

import pytest
from page import page as page_of
from page import press, settle, text
from small import DIRECTED, chatty
from test_subgraph import born

from kgwb import load_run
from kgwb.llm import Scripted
from kgwb.run import Run
from kgwb.ui.debugger import Debugger
from kgwb.ui.session import Session
from kgwb.ui.subgraph import SubgraphPanel, frame_page


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


@pytest.mark.parametrize("picked", ["300", "-1", "x"])
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
