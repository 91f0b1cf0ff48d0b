"""The panel of a person who plays an agent, driven without a browser."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ipywidgets as widgets
import pytest

from kgwb.errors import InvalidReplyError, ModelError, SettingError
from kgwb.llm import Human, Scripted, model
from kgwb.run import Run
from kgwb.ui.human import HumanPanel, side_by_side
from kgwb.ui.played import beside, played
from kgwb.ui.session import Session, session_of
from kgwb.workbench import load_run
from tests.small import DIRECTED, SCRIPT, chatty, made_up, predicates, qir, vertex
from tests.ui.test_forms import inside, press


class Desk:
    """A run whose agents a person plays, and the panel."""

    def __init__(
        self, question: str = "Who directed Arrival?", run: Run | None = None, **options: Any
    ) -> None:
        self.human = Human()
        self.run = run.fork(models=self.human) if run else chatty(question, self.human, **options)  # type: ignore[arg-type]
        self.session: Session = session_of(self.run)
        self.panel = HumanPanel(self.human, self.session)

    def wait(self, task: str) -> None:
        until(lambda: self.panel.reply and self.panel.reply.asked.request.task == f"chatty_kg/{task}")

    def say(self, data: Any) -> None:
        """Reply as JSON text."""
        assert self.panel.reply
        self.panel.reply.as_json.value = True
        self.panel.reply.raw.value = json.dumps(data)
        shown = self.panel.reply
        self.panel.reply.send_button.click()
        until(lambda: self.panel.reply is not shown)

    def text(self) -> str:
        """All markup that is shown."""
        return "".join(
            html.value for html in inside(self.panel, widgets.HTML) if html.layout.display != "none"
        )


def until(true: Callable[[], Any]) -> None:
    end = time.monotonic() + 10
    while not true():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.005)


@pytest.fixture
def desk() -> Iterator[Desk]:
    made = Desk()
    yield made
    made.session.cancel()


def type_triple(desk: Desk, *cells: str) -> None:
    """Fill the first row of the QIR's reply form, a new one if there is none."""
    assert desk.panel.reply
    form = desk.panel.reply.form
    if not inside(form, widgets.GridBox)[0].children[1:]:
        press(form, "Add row")
    texts = inside(inside(form, widgets.GridBox)[0], widgets.Text)
    for text, cell in zip(texts, cells, strict=True):
        text.value = cell


def test_nothing_waits_at_first(desk: Desk) -> None:
    assert "Nothing waits for you now" in desk.text()
    assert desk.human.listeners == []
    assert "Nothing waits" in desk.panel.static()


def test_a_whole_question_is_played_by_a_person(desk: Desk) -> None:
    done = desk.session.go()
    desk.wait("qir")
    assert "Waiting for you: qir, attempt 1" in desk.text()
    assert "Question: Who directed Arrival?" in desk.text()
    assert "prompt: system" in desk.text()
    type_triple(desk, "Arrival", "directed by", "Denis")
    first = desk.panel.reply
    press(desk.panel, "Send")
    until(lambda: desk.panel.reply is not first and desk.panel.reply)
    assert "Waiting for you: qir, attempt 2" in desk.text()
    assert "at least one unknown unless boolean: no triple has an unknown" in desk.text()
    type_triple(desk, "Arrival", "directed by", "?person")  # what was typed before is still there
    assert desk.panel.reply
    assert desk.panel.reply.form.value()["triples"][0]["object"] == "?person"
    press(desk.panel, "Send")
    desk.wait("predicate_selection")
    desk.say(predicates(["director"]))
    done.result(10)
    assert str(desk.run.answer) == "Denis Villeneuve"
    assert [attempt.accepted for attempt in desk.run["qir"].attempts] == [False, True]
    assert "Nothing waits for you now" in desk.text()
    assert desk.human.listeners == []


def test_a_form_that_is_filled_in_outlives_news(desk: Desk) -> None:
    desk.session.go()
    desk.wait("qir")
    type_triple(desk, "Arrival", "by", "")
    desk.session.tell()
    desk.panel.refresh()
    assert desk.panel.reply
    assert desk.panel.reply.form.value()["triples"] == [
        {"subject": "Arrival", "predicate": "by", "object": ""}
    ]


def test_the_reply_as_json_text_and_back(desk: Desk) -> None:
    desk.session.go()
    desk.wait("qir")
    reply = desk.panel.reply
    assert reply
    type_triple(desk, "a", "b", "c")
    reply.as_json.value = True
    assert json.loads(reply.raw.value)["triples"] == [{"subject": "a", "predicate": "b", "object": "c"}]
    reply.raw.value = '{"entities": ['
    reply.as_json.value = False
    assert reply.as_json.value
    assert "this is no JSON" in desk.text()
    assert reply.raw.value == '{"entities": ['
    reply.raw.value = json.dumps(qir("Dune | directed by | ?x"))
    reply.as_json.value = False
    assert reply.form
    assert reply.form.value()["target"] == "?x"
    assert "this is no JSON" not in desk.text()
    reply.as_json.value = True
    reply.raw.value = "I do not know"
    reply.send()  # the checks judge it, as they judge a model
    until(lambda: desk.panel.reply is not reply and desk.panel.reply)
    assert "well-formed JSON: no JSON" in desk.text()


def test_a_reply_for_free_text_is_a_text() -> None:
    from kgwb.llm import ChatRequest, Message

    desk = Desk()
    desk.session.busy = "testing"
    desk.panel.refresh()
    request = ChatRequest("some/task", (Message("user", "<b>Say</b> something"),))
    replies: list[str] = []
    thread = threading.Thread(
        target=lambda: replies.append(desk.human.complete(request, None, threading.Event()).text)
    )
    thread.start()
    until(lambda: desk.panel.reply)
    assert "&lt;b&gt;Say" in desk.text()
    assert desk.panel.reply
    desk.panel.reply.raw.value = "hello"
    press(desk.panel, "Send")
    thread.join(10)
    assert replies == ["hello"]


def test_a_cancel_while_it_waits(desk: Desk) -> None:
    done = desk.session.go()
    desk.wait("qir")
    desk.say(qir("Arrival | directed by | ?person"))
    desk.wait("predicate_selection")
    desk.session.cancel()
    done.result(10)
    assert (desk.run.status, desk.run.output("qir").target) == ("cancelled", "?person")
    assert (desk.panel.reply, desk.human.waiting) == (None, ())
    done = desk.session.go()
    desk.wait("predicate_selection")
    desk.say(predicates(["director"]))
    done.result(10)
    assert (str(desk.run.answer), len(desk.run["qir"].attempts)) == ("Denis Villeneuve", 1)


def test_a_run_that_blocks_its_cell_fails_although_a_panel_is_open(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kgwb.llm.human.ALONE_S", 0.1)
    with pytest.raises(ModelError, match="nobody is here"):
        chatty("Who directed Dune?", desk.human).go()  # type: ignore[arg-type]
    assert desk.panel.reply is None


def test_what_a_person_replied_is_replayed(desk: Desk, tmp_path: Path) -> None:
    done = desk.session.go()
    desk.wait("qir")
    desk.say(qir("Arrival | directed by | ?person"))
    desk.wait("predicate_selection")
    desk.say(predicates(["director"]))
    done.result(10)
    path = desk.run.save(tmp_path / "run.jsonl")
    again = load_run(path)
    assert (str(again.answer), again.model_name("qir")) == ("Denis Villeneuve", "human")
    assert '"model":"human"' in path.read_text(encoding="utf-8")
    assert [step.key for step in played(session_of(again))] == ["qir", "predicate_selection"]


def answered() -> Desk:
    """Both agents were played; the QIR at the second attempt."""
    desk = Desk()
    done = desk.session.go()
    desk.wait("qir")
    desk.say(qir("Arrival | made by | Denis"))
    desk.wait("qir")
    desk.say(qir("Arrival | made by | ?maker"))
    desk.wait("predicate_selection")
    desk.say(predicates(["director"]))
    done.result(10)
    return desk


def test_a_model_plays_the_same_step_beside() -> None:
    desk = answered()
    theirs = beside(desk.run, "qir", Scripted(DIRECTED, name="other"))
    assert [step.output.target for step in (desk.run["qir"], theirs)] == ["?maker", "?person"]
    assert len(desk.run["qir"].attempts) == 2
    table = side_by_side(desk.run["qir"], theirs, "other")
    assert "<th>you</th><th>other</th>" in table
    assert table.count("passed: well-formed JSON") == 3
    assert table.count("failed: at least one unknown unless boolean") == 1
    assert (desk.run.status, desk.run.model_name("qir")) == ("done", "human")


def test_a_result_put_in_by_hand_is_not_the_models() -> None:
    desk = answered()
    mine = desk.run.output("qir")
    desk.run.replace("qir", mine).go("qir")
    assert beside(desk.run, "qir", Scripted(DIRECTED)).output != mine


def test_a_model_that_fails_stands_beside_too() -> None:
    desk = answered()
    theirs = beside(desk.run, "qir", Scripted({"chatty_kg/qir": "no idea"}))
    assert (theirs.done, len(theirs.attempts)) == (False, 3)
    assert "no valid reply in 3 attempts" in side_by_side(desk.run["qir"], theirs, "other")
    theirs = beside(desk.run, "qir", Scripted({}))
    assert "the script has nothing" in side_by_side(desk.run["qir"], theirs, "other")


def test_a_model_that_never_comes_to_the_step() -> None:
    run = made_up(Scripted(SCRIPT)).go()
    hasty = Scripted({"made_up/guess": {"guess": "at once", "sure": True}}, name="hasty")
    with pytest.raises(SettingError, match="step guess#3 was not reached"):
        beside(run, "guess#3", hasty)
    with pytest.raises(InvalidReplyError):
        beside(run, "guess#3", Scripted({"made_up/guess": "?"}, name="dull"))


def test_what_would_a_model_say() -> None:
    desk = answered()
    comparison = desk.panel.comparison
    assert comparison.layout.display == ""
    assert comparison.step.options == ("qir", "predicate_selection")
    comparison.step.value = "qir"
    press(comparison, "What would a model say?")
    until(lambda: not comparison.ask_button.disabled)
    assert "<th>you</th><th>rules</th>" in desk.text()
    assert "?maker" in desk.text()
    assert "<th>rules</th>" in desk.panel.static()
    comparison.model.value = "gpt"
    press(comparison, "What would a model say?")
    assert "no model named" in desk.panel.message.value
    assert not comparison.ask_button.disabled


def test_nothing_to_compare_before_a_reply(desk: Desk) -> None:
    assert desk.panel.comparison.layout.display == "none"


def test_vertices_are_played_in_the_order_they_came() -> None:
    desk = Desk("Which story are Dune and Dune part based on?")
    done = desk.session.go()
    desk.wait("qir")
    desk.say(qir("Dune | based on | ?story", "Dune part | based on | ?story"))
    until(lambda: len(desk.human.waiting) == 2)
    until(lambda: "(and 1 more after this)" in desk.text())
    names = []
    for _ in range(2):
        assert desk.panel.reply
        names.append(desk.panel.reply.name)
        desk.say(vertex(0, ""))
    done.result(10)
    assert set(names) == {f"vertex_selection[{name}], attempt 1" for name in ("Dune", "Dune part")}


def test_the_person_of_every_agent_is_the_same() -> None:
    run = Run(Desk().run.system, "Who?", kg=None, models={"qir": model("human"), "": model("human")})
    assert run.model_for("qir") is run.model_for("classifier")
