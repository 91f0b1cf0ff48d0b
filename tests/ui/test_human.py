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
from kgwb.ui.human import HumanPanel, ReplyForm, side_by_side
from kgwb.ui.played import beside, played
from kgwb.ui.session import Session, session_of
from kgwb.workbench import load_run
from tests.small import DIRECTED, SCRIPT, chatty, made_up, predicates, qir, vertex
from tests.ui.test_forms import inside, press


class Desk:
    """A run whose agents a person plays, and the panel."""

    def __init__(
        self,
        question: str = "Who directed Arrival?",
        human: Human | None = None,
    ) -> None:
        self.human = human or Human()
        self.run = chatty(question, self.human)  # type: ignore[arg-type]
        self.session: Session = session_of(self.run)
        self.panel = HumanPanel(self.human, self.session)

    def wait(self, task: str) -> None:
        until(lambda: self.panel.reply and self.panel.reply.asked.request.task == f"chatty_kg/{task}")

    def say(self, data: Any) -> None:
        """Reply as JSON text."""
        shown = self.panel.reply
        assert shown
        type_json(shown, json.dumps(data))
        shown.send_button.click()
        until(lambda: self.panel.reply is not shown)

    def text(self) -> str:
        """All markup that is shown."""
        return "".join(
            html.value for html in inside(self.panel, widgets.HTML) if html.layout.display != "none"
        )


def type_json(reply: ReplyForm, text: str) -> None:
    reply.as_json.value = True
    inside(reply.form, widgets.Textarea)[0].value = text


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
    assert desk.human.listeners == {}


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
    assert desk.human.listeners == {}


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
    [text] = inside(reply.form, widgets.Textarea)
    assert json.loads(text.value)["triples"] == [{"subject": "a", "predicate": "b", "object": "c"}]
    text.value = '{"entities": ['
    reply.as_json.value = False
    assert reply.as_json.value
    assert "this is no JSON" in desk.text()
    assert inside(reply.form, widgets.Textarea)[0].value == '{"entities": ['
    text.value = json.dumps(qir("Dune | directed by | ?x"))
    reply.as_json.value = False
    assert reply.form.value()["target"] == "?x"
    assert "this is no JSON" not in desk.text()
    type_json(reply, "I do not know")
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
        target=lambda: replies.append(desk.human.complete(request, None, desk.run._cancel).text)
    )
    thread.start()
    until(lambda: desk.panel.reply)
    assert "&lt;b&gt;Say" in desk.text()
    assert desk.panel.reply
    inside(desk.panel.reply.form, widgets.Text)[0].value = "hello"
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
    assert table.index("<b>you</b>") < table.index("?maker") < table.index("<b>other</b>") < len(table)
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
    assert [key for _, key in comparison.step.options] == ["qir", "predicate_selection"]
    comparison.step.value = "qir"
    press(comparison, "What would a model say?")
    until(lambda: not comparison.ask_button.disabled)
    assert "<b>you</b>" in desk.text()
    assert "<b>rules</b>" in desk.text()
    assert "?maker" in desk.text()
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


def test_each_run_has_its_panel_although_the_person_is_one() -> None:
    first = Desk()
    second = Desk("Who directed Sicario?", first.human)
    done = [first.session.go()]
    first.wait("qir")
    done.append(second.session.go())
    second.wait("qir")
    assert ["Sicario" in desk.text() for desk in (first, second)] == [False, True]
    second.say(qir("Sicario | directed by | ?person"))
    until(lambda: second.run["qir"].done)
    second.session.cancel()
    first.say(qir("Arrival | directed by | ?person"))
    first.wait("predicate_selection")
    first.session.cancel()
    for future in done:
        future.result(10)
    assert first.run.output("qir").entities == ("Arrival",)
    assert second.run.output("qir").entities == ("Sicario",)


def test_a_fork_of_a_run_is_not_answered_in_its_panel(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kgwb.llm.human.ALONE_S", 0.1)
    desk.session.go()
    desk.wait("qir")
    with pytest.raises(ModelError, match="nobody is here"):
        desk.run.fork().go()
    assert len(desk.human.waiting) == 1
    assert "more after this" not in desk.text()


def test_a_panel_made_while_a_reply_is_awaited_knows_the_step(desk: Desk) -> None:
    desk.session.go()
    desk.wait("qir")
    desk.say({"bad": 1})
    desk.wait("qir")
    desk.panel = HumanPanel(desk.human, desk.session)
    assert "Waiting for you: qir, attempt 2" in desk.text()
    assert "Your reply before cannot be used" in desk.text()
    assert "bad" in inside(desk.panel.reply, widgets.Textarea)[0].value
    desk.say({"bad": 2})
    desk.wait("qir")
    assert "Waiting for you: qir, attempt 3" in desk.text()


def test_after_too_many_invalid_replies_it_says_what_to_do(desk: Desk) -> None:
    done = desk.session.go()
    for number in range(3):
        desk.wait("qir")
        desk.say({"bad": number})
    done.result(10)
    for _ in range(2):
        told = "No reply of yours to qir passed its checks: press “Ask anew” on this step to try again."
        assert told in desk.text()
        desk.session.go().result(10)  # fails at once, from the record
    again = desk.session.refresh("qir")
    desk.wait("qir")
    assert "Ask anew" not in desk.text()
    desk.say(qir("Arrival | directed by | ?person"))
    again.result(10)
    assert "Nothing waits for you now" in desk.text()


def test_what_a_model_failed_at_is_not_said_to_the_person() -> None:
    desk = Desk()
    desk.run.models = {"": desk.human, "qir": Scripted({"chatty_kg/qir": "no idea"})}
    desk.session.go().result(10)
    assert isinstance(desk.session.failure, InvalidReplyError)
    assert "Nothing waits for you now" in desk.text()


def test_the_person_of_every_agent_is_the_same() -> None:
    run = Run(Desk().run.system, "Who?", kg=None, models={"qir": model("human"), "": model("human")})
    assert run.model_for("qir") is run.model_for("classifier")
