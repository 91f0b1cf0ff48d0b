"""Two executions side by side: rows are aligned, words marked, and what is the same folded away."""

from __future__ import annotations

import re
import time

import pytest
from page import Page, press, settle, text
from rdflib import URIRef
from small import DIRECTED, chatty, iri, predicates, qir

import kgwb
from kgwb.flow import Answer, Candidate, Link, Retrieved, Value
from kgwb.llm import Scripted
from kgwb.run import Run
from kgwb.run.record import Step, difference
from kgwb.show.compare import MOST_LETTERS, Side, beside, comparison, difference_html, marked
from kgwb.show.html import MOST_ROWS
from kgwb.show.run import Standing
from kgwb.show.tell import compared
from kgwb.show.text import differing
from kgwb.show.texts import aligned
from kgwb.systems.chatty_kg.records import QIR, Fact, Generated
from kgwb.ui.comparison import ComparisonPanel
from kgwb.ui.session import session_of

QUESTION = "Who directed Arrival?"
STARRING = DIRECTED | {
    "chatty_kg/qir": qir("Arrival | starring | ?person"),
    "chatty_kg/predicate_selection": predicates(["starring"]),
}


def side(name: str, run: Run) -> Side:
    return Side(name, Standing.of(run))


@pytest.fixture
def runs() -> tuple[Run, Run]:
    first = chatty(QUESTION, Scripted(DIRECTED)).go()
    return first, first.fork(models=Scripted(STARRING, name="other")).go()


def texts(element: str, shown: str) -> list[str]:
    return re.findall(f"<{element}(?: class=[^>]*)?>(?:[−+] )?(.*?)</{element}>", shown)


# --- words


def test_only_the_words_that_differ_are_marked() -> None:
    first, second = marked("who directed the film", "who wrote the film")
    assert first == "who <del>directed</del> the film"
    assert second == "who <ins>wrote</ins> the film"


@pytest.mark.parametrize(
    ("first", "second"),
    [("Denis Villeneuve", "Amy Adams, Jeremy Renner"), ("", "new"), ("!!!", "???")],
)
def test_texts_with_little_in_common_are_marked_as_a_whole(first: str, second: str) -> None:
    one, other = marked(first, second)
    assert one == (f"<del>− {first}</del>" if first else "")
    assert other == f"<ins>+ {second}</ins>"


@pytest.mark.parametrize("letters", ["Dune ", "?! ", "a"])
def test_long_texts_are_cut_before_they_are_compared_and_that_is_told(letters: str) -> None:
    long = letters * 300_000
    begun = time.perf_counter()
    for one, other in (marked(long, "X" + long), marked(long, long + "X")):
        assert f"… ({len(long):,} letters)" in re.sub("<.*?>", "", one)
        assert f"… ({len(long) + 1:,} letters)" in re.sub("<.*?>", "", other)
        assert len(one) < MOST_LETTERS * 2
        assert "<ins" in other
    assert time.perf_counter() - begun < 5  # it was minutes


def test_in_long_lists_what_stands_once_is_aligned() -> None:
    first = [*"abc" * 50, "one", *"de" * 50, "two", "three", *"f" * 200]
    second = [*"abc" * 40, "one", *"ed" * 50, "three", "two", *"g" * 200]
    parts = list(aligned(first, second))
    for side, wanted in (([part.first for part in parts], first), ([part.second for part in parts], second)):
        assert [item for where in side for item in wanted[where]] == wanted, "each item once, in order"
    same = [item for part in parts if part.same for item in first[part.first]]
    assert same == [item for part in parts if part.same for item in second[part.second]]
    assert same.count("a") == 40
    assert ("one" in same, "two" in same, "three" in same) in ((True, True, False), (True, False, True))


LINES = 10_000
REPLIES = {
    "equal": (["the same"] * LINES, ["the same"] * LINES),
    "one more": (["the same"] * LINES, ["the same"] * (LINES + 1)),
    "ends differ": (["a", *["the same"] * LINES, "b"], ["c", *["the same"] * (LINES + 5), "d"]),
    "every other": ([f"row {n}" for n in range(LINES)], [f"row {n + n % 2 * LINES}" for n in range(LINES)]),
    "nothing": (["the same"] * LINES, ["another"] * LINES),
    "turned round": ([f"row {n}" for n in range(LINES)], [f"row {n}" for n in reversed(range(LINES))]),
    "one line": (["a b " * LINES], ["b a " * LINES]),
    "long lines": (["a b " * 500] * 500, ["b a " * 501] * 500),
    "digits": (["1" * 2000] * 2000, ["2" * 2000] * 2000),
}


@pytest.mark.parametrize("kind", REPLIES)
def test_runs_with_long_replies_are_compared_in_time(kind: str) -> None:
    replies = ("\n".join(lines) for lines in REPLIES[kind])
    models = [Scripted(DIRECTED | {"chatty_kg/qir": [reply, DIRECTED["chatty_kg/qir"]]}) for reply in replies]
    first, second = (chatty(QUESTION, model).go() for model in models)
    begun = time.perf_counter()
    shown = first.diff(second)._repr_html_()
    assert time.perf_counter() - begun < 20  # it was minutes
    assert "replies differ" in shown or kind == "equal"
    assert len(shown) < 2_000_000


def test_equal_texts_are_not_marked() -> None:
    assert marked("the same", "the same") == ("the same", "the same")


def test_markup_in_a_text_stays_text() -> None:
    for shown in marked("<img src=x onerror=a()>", "<img src=x onerror=b()>"):
        assert "<img" not in shown
        assert "&lt;" in shown


# --- rows


def test_rows_about_the_same_stand_beside_each_other() -> None:
    one, two = Candidate(iri("dune"), "Dune", 0.9), Candidate(iri("story"), "Story", 0.5)
    better = Candidate(iri("dune"), "Dune", 0.8)
    shown = beside(
        compared(Retrieved("Dune", (one, two)), {}), compared(Retrieved("Dune", (better,)), {}), ("a", "b")
    )
    assert texts("del", shown)[-2:] == ["90", f"0.50 Story &lt;{iri('story')}&gt;"]
    assert texts("ins", shown)[-1] == "80"


def test_many_equal_rows_are_folded_and_counted() -> None:
    same = [f"row {number}" for number in range(5)]
    shown = beside([*same, "old"], [*same, "new"], ("a", "b"))
    assert "5 lines the same" in shown
    assert texts("del", shown) == ["old"]


def test_more_rows_than_fit_are_cut_with_a_number() -> None:
    many = [f"row {number}" for number in range(MOST_ROWS + 7)]
    shown = beside(many, [], ("a", "b"))
    assert len(texts("del", shown)) == MOST_ROWS
    assert "and 7 more lines" in shown


@pytest.mark.parametrize(
    ("record", "keys"),
    [
        (QIR((Fact("Dune", "director", "?x"), Fact("?x", "born", "?y")), "?y"), 3),
        (Link("Dune", Candidate(iri("dune"), "Dune"), (Candidate(iri("dune"), "Dune"),), "the only one"), 2),
        (Generated((), 0), 1),
        (Answer("list", (Value(URIRef(iri("dune")), "Dune"),), ("SELECT ?x {}",)), 1),
        (("one", "two"), 2),
    ],
)
def test_every_part_of_a_record_has_a_row(record: object, keys: int) -> None:
    assert len(set(compared(record, {}))) == keys


# --- runs


def test_where_both_runs_have_steps_of_their_own_the_firsts_stand_first() -> None:
    def steps(keys: str) -> dict[str, Step]:
        return {key: Step(key, key, "", "", {}, str) for key in keys}

    def order(first: str, second: str) -> str:
        return "".join(one.key for one in difference(steps(first), steps(second)))

    assert order("abcz", "axyz") == "abcxyz"
    assert order("ab", "axby") == "axby"
    assert order("abz", "xaz") == "xabz"


def test_a_summary_says_how_many_steps_differ_and_the_first_decision(runs: tuple[Run, Run]) -> None:
    told = differing(runs[0].diff(runs[1]))
    assert re.fullmatch(r"\d+ of 15 steps differ; the first decision that differs is qir", told)


def test_answers_cost_and_the_first_decision_come_first_then_every_step(runs: tuple[Run, Run]) -> None:
    shown = comparison(side("before", runs[0]), side("after", runs[1]))
    read = Page(shown).text
    order = (
        "before",
        "Denis Villeneuve",
        "after",
        "Amy Adams",
        "First decision that differs",
        "qir",
        "steps the same",
    )
    places = [read.index(part) for part in order]
    assert places == sorted(places)
    assert "2 model calls" in read
    assert {"directed", "directed by"} & set(texts("del", shown))
    assert "3 steps the same" in read
    assert "no such step" in read
    assert "classifier" in Page(comparison(side("a", runs[0]), side("b", runs[1]), all_steps=True)).text


def test_equal_runs_are_said_to_be(runs: tuple[Run, Run]) -> None:
    shown = difference_html(runs[0].diff(runs[0].fork().go()))
    assert "No step differs" in shown
    assert "<del" not in shown


def test_the_widget_follows_a_session_and_shows_all_steps_when_asked(runs: tuple[Run, Run]) -> None:
    panel = kgwb.compare(*runs, names=("film", "cast"))
    assert "2 model calls" in text(panel)
    press(panel, "All steps", ("button",))
    assert "steps the same" not in text(panel)
    assert "First decision that differs" in panel.static()
    assert repr(panel).startswith("ComparisonPanel(film and cast: ")
    session = session_of(runs[0].fork())
    following = ComparisonPanel(runs[0], session)
    assert "Not run yet" in text(following)
    session.go()
    settle(session)
    assert "No step differs" in text(following) or "No decision differs" in text(following)


def test_what_a_graph_or_model_says_cannot_break_out() -> None:
    evil = "<script>alert(1)</script>"
    says = DIRECTED | {"chatty_kg/qir": qir(f"Arrival | {evil} | ?person")}
    first = chatty(QUESTION, Scripted(DIRECTED)).go()
    second = first.fork(models=Scripted(says, name="evil")).go()
    shown = comparison(side(evil, first), side("after", second), all_steps=True)
    assert "<script" not in shown
    assert "&lt;script&gt;" in shown
