"""What a person sees of a step's result, and what the graph says when asked about it."""

from __future__ import annotations

import html
import re
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import ipywidgets as widgets
import pytest
from small import DIRECTED, FILMS, films, iri, predicates, qir, workbench

from kgwb.errors import GraphTimeoutError
from kgwb.kg import Graph, Rows
from kgwb.llm import Scripted
from kgwb.ui.kit import Panel
from kgwb.ui.results import result_view
from kgwb.ui.session import Session

EMPTY = {
    "chatty_kg/qir": qir("?film | directed by | David Lynch", "?film | starring | Amy Adams"),
    "chatty_kg/predicate_selection": predicates(["director"], ["starring"]),
}
"""Which film by David Lynch stars Amy Adams? None."""


class View:
    """A result on a panel, as a test presses and reads it."""

    def __init__(self, session: Session, key: str) -> None:
        self.panel = Panel()
        [step] = session.steps_of(key)
        self.root = result_view(step, session, self.panel)
        self.panel.show(self.root)

    def all(self, kind: type[Any]) -> list[Any]:
        return [widget for widget in parts(self.root) if isinstance(widget, kind)]

    def button(self, text: str) -> Any:
        [button] = [button for button in self.all(widgets.Button) if button.description == text]
        return button

    def press(self, text: str) -> None:
        self.button(text).click()
        wait_for(lambda: not self.button(text).disabled)

    def shows(self, text: str) -> bool:
        return any(button.description == text and visible(button) for button in self.all(widgets.Button))

    @property
    def text(self) -> str:
        return plain("\n".join(one.value for one in self.all(widgets.HTML)))

    @property
    def out(self) -> str:
        return plain(self.all(widgets.HTML)[-1].value)

    @property
    def message(self) -> str:
        return plain(self.panel.message.value)


def parts(widget: Any) -> Iterator[Any]:
    yield widget
    for child in getattr(widget, "children", ()):
        yield from parts(child)


def visible(widget: Any) -> bool:
    return widget.layout.display != "none"


def plain(markup: str) -> str:
    return html.unescape(" ".join(re.sub(r"<[^>]*>", " ", markup).split()))


def wait_for(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < until, "the graph's answer did not arrive"
        time.sleep(0.005)


def session(replies: dict[str, Any], kg: Graph | None = None) -> Session:
    made = Session(workbench(Scripted(replies), kg).begin("What is asked?"))
    made.go().result()
    assert made.failure is None
    return made


@pytest.fixture(scope="module")
def directed() -> Session:
    return session(DIRECTED)


@pytest.fixture(scope="module")
def empty() -> Session:
    return session(EMPTY)


# --- every step


def test_every_step_has_a_view(directed: Session) -> None:
    for key in directed.steps:
        assert View(directed, key).text


def test_a_result_without_questions_is_its_static_form(directed: Session) -> None:
    view = View(directed, "qir")
    assert isinstance(view.root, widgets.HTML)
    assert "unknown, asked for" in view.text


def test_a_step_that_is_not_done_says_so(directed: Session) -> None:
    paused = Session(workbench(Scripted(DIRECTED)).begin("What is asked?"))
    paused.go(before="qir").result()
    view = View(paused, "qir")
    assert view.text == "not done"


def test_a_recording_says_that_it_has_no_graph(directed: Session) -> None:
    run = directed.run.fork(kg=None).go()
    replay = Session(run)
    view = View(replay, "execution")
    assert "A recording without its graph" in view.text
    assert not view.all(widgets.Button)


# --- candidates


@pytest.mark.parametrize("key", ["entity_retriever", "vertex_selection"])
def test_a_name_is_looked_for(directed: Session, key: str) -> None:
    view = View(directed, key)
    [name] = view.all(widgets.Text)
    name.value = "arrival"
    view.press("Look for it")
    assert "is candidate 1" in view.out
    name.value = "Dune"
    view.press("Look for it")
    assert "no label of it is found by the words of 'Arrival'" in view.out
    assert view.message == ""


def test_nothing_to_look_for_is_said(directed: Session) -> None:
    view = View(directed, "entity_retriever")
    view.press("Look for it")
    assert "type a name or an IRI" in view.message


def test_degrees_are_shown_in_the_table(directed: Session) -> None:
    view = View(directed, "entity_retriever")
    assert "degree " not in view.text.partition("show")[0]
    view.press("Show degrees")
    assert "degree IRI 1 Arrival" in view.text
    assert " 7 http" in view.text  # six triples from it and its label


# --- predicates


def test_examples_of_a_predicate(directed: Session) -> None:
    view = View(directed, "relation_linking")
    [choice] = view.all(widgets.Dropdown)
    choice.value = next(p for _, p in choice.options if p.iri == iri("starring"))
    view.press("Examples of its values")
    assert "Arrival — starring → Amy Adams" in view.out


# --- queries


def test_a_query_is_run_and_its_rows_are_shown(directed: Session) -> None:
    before = dict(directed.run.calls)
    view = View(directed, "execution")
    view.press("Run query")
    assert view.out == "1 row ?person Denis Villeneuve"
    assert directed.run.calls == before
    assert not view.shows("Why is it empty?")


def test_an_edited_query_is_highlighted_and_run(directed: Session) -> None:
    view = View(directed, "query_generator")
    [editor] = view.all(widgets.Textarea)
    editor.value = f"ASK {{ {iri('dune').n3()} {iri('director').n3()} ?who }}"
    assert any('<span class="kgwb-keyword">ASK</span>' in one.value for one in view.all(widgets.HTML))
    view.press("Run query")
    assert view.out == "true (ASK)"


def test_what_was_typed_is_kept_while_another_query_is_looked_at(directed: Session) -> None:
    view = View(directed, "query_generator")
    [editor], [choice] = view.all(widgets.Textarea), view.all(widgets.Dropdown)
    editor.value = "ASK { ?a ?b ?c }"
    choice.value = 1
    assert editor.value.startswith("SELECT")
    choice.value = 0
    assert editor.value == "ASK { ?a ?b ?c }"


@pytest.mark.parametrize(
    ("sparql", "said"),
    [
        ("SELECT ?x WHERE { ?x ?p ", "does not parse at line 1"),
        ("DELETE WHERE { ?s ?p ?o }", "would change the graph"),
        ("DESCRIBE <http://example.org/dune>", "no SELECT query"),
    ],
)
def test_a_bad_query_is_told_of_with_a_remedy(directed: Session, sparql: str, said: str) -> None:
    view = View(directed, "execution")
    [editor] = view.all(widgets.Textarea)
    view.press("Run query")
    editor.value = sparql
    view.press("Run query")
    assert said in view.message
    assert view.out == ""
    editor.value = "ASK { ?a ?b ?c }"
    view.press("Run query")
    assert (view.out, view.message) == ("true (ASK)", "")


def test_many_rows_are_cut_with_their_number() -> None:
    kg = films(FILMS + "".join(f":v{n} :tag {n} ." for n in range(200)))
    view = View(session(DIRECTED, kg), "execution")
    [editor] = view.all(widgets.Textarea)
    editor.value = f"SELECT ?v WHERE {{ ?v {iri('tag').n3()} ?n }}"
    view.press("Run query")
    assert view.out.startswith("200 rows")
    assert view.out.endswith("and 140 more")


def test_an_empty_answer_says_which_pattern_blocks_it_and_who_wrote_it(empty: Session) -> None:
    view = View(empty, "execution")
    assert view.shows("Why is it empty?")
    view.press("Why is it empty?")
    assert "?film — starring → Amy Adams : without it the query has rows." in view.out
    assert "vertex_selection[Amy Adams] wrote the vertex Amy Adams" in view.out
    assert "relation_linking[⟨?film, starring, Amy Adams⟩] wrote the predicate starring" in view.out


def test_a_typed_query_without_rows_can_be_asked_why(directed: Session) -> None:
    view = View(directed, "execution")
    [editor] = view.all(widgets.Textarea)
    editor.value = f"SELECT ?x WHERE {{ ?x {iri('director').n3()} {iri('amy').n3()} }}"
    view.press("Run query")
    assert view.out == "0 rows"
    view.press("Why is it empty?")
    assert "?x — director → amy : nothing in the graph matches it." in view.out
    editor.value = "SELECT ?x WHERE { ?x ?p ?y OPTIONAL { ?y ?q ?x } }"
    view.press("Why is it empty?")
    assert "the query holds OPTIONAL" in view.message


def test_markup_in_a_graph_stays_text() -> None:
    kg = films(FILMS.replace('"Denis Villeneuve"', '"<img src=x onerror=alert(1)>"'))
    view = View(session(DIRECTED, kg), "execution")
    view.press("Run query")
    assert "<img" in view.out
    assert not any("<img" in one.value for one in view.all(widgets.HTML))


# --- a slow graph


class Remote:
    """A graph far away that answers once its gate is open."""

    remote = True

    def __init__(self) -> None:
        self.inner, self.gate = films(), threading.Event()
        self.threads: list[threading.Thread] = []
        self.failure: Exception = GraphTimeoutError("the query took longer than 30 s", hint="ask for less")

    def select(self, query: str) -> Rows:
        self.threads.append(threading.current_thread())
        self.gate.wait(10)
        raise self.failure

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


@pytest.fixture
def slow() -> tuple[Remote, View]:
    made, remote = session(DIRECTED), Remote()
    made.run.kg.inner = remote  # type: ignore[attr-defined]
    return remote, View(made, "execution")


def test_a_remote_graph_is_never_asked_on_the_clicks_thread(slow: tuple[Remote, View]) -> None:
    remote, view = slow
    button = view.button("Run query")
    button.click()
    assert button.disabled
    assert "asking the graph" in view.message
    remote.gate.set()
    wait_for(lambda: not button.disabled)
    assert "longer than 30 s What to do: ask for less" in view.message
    assert threading.current_thread() not in remote.threads


def test_a_query_that_takes_for_ever_is_stopped(slow: tuple[Remote, View]) -> None:
    remote, view = slow
    assert view.button("Stop").disabled
    view.button("Run query").click()
    assert not view.button("Stop").disabled
    view.button("Stop").click()
    wait_for(lambda: not view.button("Run query").disabled)
    assert "stopped: nobody waits for the graph any more" in view.message
    assert view.button("Stop").disabled
    [editor] = view.all(widgets.Textarea)
    editor.value = "ASK { ?a ?b ?c }"
    view.press("Run query")
    assert (view.out, view.message) == ("true (ASK)", "")
    remote.gate.set()  # what was left behind says nothing any more
    for thread in remote.threads:
        thread.join(10)
    assert (view.out, view.message) == ("true (ASK)", "")


def test_a_bug_in_the_background_is_shown_too(slow: tuple[Remote, View]) -> None:
    remote, view = slow
    remote.failure = RuntimeError("boom")
    remote.gate.set()
    view.press("Run query")
    assert "RuntimeError: boom" in view.message
