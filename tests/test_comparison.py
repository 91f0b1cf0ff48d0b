"""Two executions side by side: aligned lines, marked words, and what is the same collapsed."""

import re
import time

import pytest
from page import Page, settle, text
from small import DIRECTED, chatty, predicates, qir

import kgwb
from kgwb.llm import Scripted
from kgwb.run import Run
from kgwb.run.differences import compare_steps
from kgwb.run.steps import Step
from kgwb.show.comparison import (
    NO_DIFFERENCE,
    NO_STEP,
    ComparedRun,
    render_comparison,
    render_differences_page,
    to_html,
)
from kgwb.show.html import (
    MAX_COMPARED_CHARS,
    MAX_ROWS,
    align_lists,
    mark_changed_words,
    render_line_diff,
)
from kgwb.show.run_state import RunState
from kgwb.ui.debugger import ComparisonPanel
from kgwb.ui.session import session_of

QUESTION = "Who directed Arrival?"
STARRING = DIRECTED | {
    "chatty_kg/qir": qir("Arrival | starring | ?person"),
    "chatty_kg/predicate_selection": predicates(["starring"]),
}


def side(name: str, run: Run) -> ComparedRun:
    """Return a run as one side of a comparison."""
    return ComparedRun(name, RunState.of(run))


@pytest.fixture
def runs() -> tuple[Run, Run]:
    first = chatty(QUESTION, Scripted(DIRECTED)).go()
    return first, first.fork(models=Scripted(STARRING, name="other")).go()


@pytest.mark.parametrize(
    ("first", "second", "marked"),
    [
        ("the same", "the same", ("the same", "the same")),
        (
            "who directed it",
            "who wrote it",
            ("who <del>directed</del> it", "who <ins>wrote</ins> it"),
        ),
        ("Denis Villeneuve", "Amy Adams", ("<del>Denis Villeneuve</del>", "<ins>Amy Adams</ins>")),
        ("", "new", ("", "<ins>new</ins>")),
        ("!!!", "???", ("<del>!!!</del>", "<ins>???</ins>")),
        ("<img onerror=a()>", "", ("<del>&lt;img onerror=a()&gt;</del>", "")),
    ],
)
def test_the_words_that_differ_are_marked(first: str, second: str, marked: tuple[str, str]) -> None:
    assert mark_changed_words(first, second) == marked


def test_lines_that_differ_are_below_each_other_and_omitted_ones_are_counted() -> None:
    number, shown = render_line_diff(["a", "one film", "b"], ["a", "one book", "b", "c"])
    assert number == 2
    lines = ("- one <del>film</del>", "+ one <ins>book</ins>", "+ c")
    assert re.findall("<(?:del|ins)>(.*)\n", shown) == list(lines)
    number, shown = render_line_diff([f"row {n}" for n in range(MAX_ROWS + 7)], [])
    assert (number, shown.count("<del>")) == (MAX_ROWS + 7, MAX_ROWS)
    assert "and 7 more" in shown
    assert (
        f"({MAX_COMPARED_CHARS + 1:,} letters)"
        in render_line_diff(["x" * (MAX_COMPARED_CHARS + 1)], ["y"])[1]
    )


def test_items_that_occur_once_in_long_lists_are_aligned() -> None:
    first = [*"abc" * 50, "one", *"de" * 50, "two", "three", *"f" * 200]
    second = [*"abc" * 40, "one", *"ed" * 50, "three", "two", *"g" * 200]
    parts = align_lists(first, second)
    for position, wanted in ((1, first), (2, second)):
        items = [item for part in parts for item in part[position]]  # type: ignore[attr-defined]
        assert items == wanted  # each item once, in order
    same = [item for alike, items, _ in parts if alike for item in items]
    assert same == [item for alike, _, items in parts if alike for item in items]
    assert same.count("a") == 40
    assert ("one" in same, "two" in same, "three" in same) in (
        (True, True, False),
        (True, False, True),
    )


LINES = 10_000
REPLIES = {
    "every other": (
        [f"row {n}" for n in range(LINES)],
        [f"row {n + n % 2 * LINES}" for n in range(LINES)],
    ),
    "turned round": (
        [f"row {n}" for n in range(LINES)],
        [f"row {n}" for n in reversed(range(LINES))],
    ),
    "one line": (["a b " * LINES], ["b a " * LINES]),
    "long lines": (["a b " * 500] * 500, ["b a " * 501] * 500),
}


@pytest.mark.parametrize("kind", REPLIES)
def test_runs_with_long_replies_are_compared_in_time(kind: str) -> None:
    replies = ("\n".join(lines) for lines in REPLIES[kind])
    models = [
        Scripted(DIRECTED | {"chatty_kg/qir": [reply, DIRECTED["chatty_kg/qir"]]})
        for reply in replies
    ]
    first, second = (chatty(QUESTION, model).go() for model in models)
    begun = time.process_time()
    shown = to_html(first.diff(second))
    assert time.process_time() - begun < 20  # it was minutes
    assert "replies differ" in shown
    assert len(shown) < 2_000_000


def test_steps_of_the_first_run_alone_come_before_those_of_the_second_alone() -> None:
    def steps(keys: str) -> dict[str, Step]:
        return {key: Step(key, key, "", "", {}, str) for key in keys}

    def order(first: str, second: str) -> str:
        return "".join(one.key for one in compare_steps(steps(first), steps(second)))

    pairs = {("abcz", "axyz"): "abcxyz", ("ab", "axby"): "axby", ("abz", "xaz"): "xabz"}
    assert {pair: order(*pair) for pair in pairs} == pairs


def test_answers_cost_and_the_first_decision_come_first_then_every_step(
    runs: tuple[Run, Run],
) -> None:
    markup = render_comparison(side("before", runs[0]), side("after", runs[1]))
    page = Page(markup).text
    first_decision = "First decision that differs"
    order = ["before", "Denis Villeneuve", "after", "Amy Adams", first_decision, "qir"]
    places = [page.index(part) for part in [*order, "steps the same"]]
    assert places == sorted(places)
    for part in ("2 model calls", "3 steps the same", NO_STEP):
        assert part in page
    assert re.search("<del>directed( by)?</del>", markup)
    assert "input generated as in the output of query generator" in page
    assert "select: SELECT DISTINCT ?_out ?_in WHERE { { org:arrival ?_out" in page
    differences = runs[0].diff(runs[1])
    assert len(differences) == 15
    assert differences.first_difference is not None
    assert differences.first_difference.key == "qir"


def test_the_comparison_of_equal_runs_says_so(runs: tuple[Run, Run]) -> None:
    markup = render_differences_page(runs[0].diff(runs[0].fork().go()))
    assert NO_DIFFERENCE in markup
    assert 'class="decide"' not in markup
    assert "<del" not in markup


def test_the_widget_follows_a_session(runs: tuple[Run, Run]) -> None:
    panel = kgwb.compare(*runs, names=("film", "cast"))
    assert "2 model calls" in text(panel)
    assert 'class="decide"' in panel.static_html()
    assert "film and cast" in repr(panel)
    session = session_of(runs[0].fork())
    following = ComparisonPanel(runs[0], session)
    assert 'class="answer off"' in following.static_html()
    assert NO_STEP in text(following)
    session.go()
    settle(session)
    assert 'class="answer off"' not in following.static_html()
    assert 'class="decide"' not in following.static_html()


def test_results_that_look_the_same_in_short_are_not_called_the_same(runs: tuple[Run, Run]) -> None:
    first, second = runs
    pairs = compare_steps(first.steps_by_key, second.steps_by_key).leaves
    alike = []
    for pair in pairs:
        if not (pair.first and pair.second and pair.changes_decision):
            continue
        if pair.first.outcome == pair.second.outcome:
            alike.append(pair.key)
    assert "qir" in alike
    shown = Page(render_comparison(side("A", first), side("B", second))).text
    assert shown.count("the results differ") == len(alike)
