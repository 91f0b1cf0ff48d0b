"""A person who plays an agent, driven without a browser."""

import json
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from page import page, press, settle, text, wait_for
from small import DIRECTED, chatty, predicates, qir, vertex

from kgwb.errors import ModelError, OverrideError, UnknownModelError
from kgwb.llm import Human, Scripted
from kgwb.show.run_state import answer_view
from kgwb.ui.cell import AgentCell
from kgwb.ui.session import session_of
from kgwb.workbench import load_run

RIGHT = qir("Arrival | directed by | ?person")


class Desk:
    """A run whose agents a person plays, and the cell that shows it."""

    def __init__(self, question: str = "Who directed Arrival?", human: Human | None = None) -> None:
        self.human = human or Human()
        self.run = chatty(question, self.human)  # type: ignore[arg-type]
        self.session = session_of(self.run)
        self.cell = AgentCell(self.session, "qir")
        page(self.cell)  # it is displayed

    @property
    def text(self) -> str:
        return text(self.cell)

    @property
    def form(self) -> dict[str, str]:
        return page(self.cell).values(page(self.cell).find("Send").form)

    def go(self, task: str = "qir") -> Future[None]:
        going = self.session.go()
        self.wait(task)
        return going

    def wait(self, task: str) -> None:
        def there() -> bool:
            asked: Any = self.cell.human_reply.shown_request
            waits = asked in self.human.pending_requests and f"reply-{id(asked)}" in self.cell.html
            return waits and asked.request.task == f"chatty_kg/{task}"

        wait_for(there)

    def say(self, data: Any) -> None:
        """Reply as JSON text."""
        asked = self.cell.human_reply.shown_request
        if not self.cell.human_reply.is_json:
            press(self.cell, "Reply as JSON")
        press(self.cell, "Send", value=json.dumps(data))
        wait_for(lambda: self.cell.human_reply.shown_request is not asked)


@pytest.fixture
def desk() -> Iterator[Desk]:
    made = Desk()
    yield made
    made.session.cancel()


def test_a_whole_question_is_played_by_a_person(desk: Desk, tmp_path: Path) -> None:
    assert "No reply" in desk.text
    assert desk.human.listeners == {}
    done = desk.go()
    shown = desk.text
    assert (
        shown.index("waiting for your reply")
        < shown.index("Who directed Arrival?")
        < shown.index("Send")
    )
    assert desk.session.run_state().step_state("qir") == "waiting"
    assert answer_view(desk.session.run_state()).label == "Waiting for your reply"
    assert desk.cell.html.count("Question: <mark") == 1  # the prompt stands there once, folded
    press(desk.cell, "Add a row")
    triple = {"triples.0.0": "Arrival", "triples.0.1": "directed by", "triples.0.2": "Denis"}
    press(desk.cell, "Send", **triple)
    wait_for(lambda: "attempt 2 of 3" in desk.text)
    [problem] = desk.cell.human_reply.started_steps["qir"].attempts[0].problems
    assert desk.text.index(problem.problem) < desk.text.index("The question")
    assert desk.form["triples.0.1"] == "directed by"
    press(desk.cell, "Send", **{"triples.0.2": "?person"})
    desk.wait("predicate_selection")
    desk.say(predicates(["director"]))
    done.result(10)
    assert desk.session.run_state().step_state("qir") == "done"
    assert str(desk.run.answer) == "Denis Villeneuve"
    assert [attempt.accepted for attempt in desk.run["qir"].attempts] == [False, True]
    assert "Your reply was used" in desk.text
    assert desk.human.listeners == {}
    again = load_run(desk.run.save(tmp_path / "run.jsonl"))
    assert (str(again.answer), again.model_name("qir")) == ("Denis Villeneuve", "human")


def test_a_model_plays_the_same_step_beside(desk: Desk) -> None:
    going = desk.go()
    desk.say(qir("Arrival | directed by | ?maker", target="?maker"))
    desk.wait("predicate_selection")
    desk.say(predicates(["director"]))
    going.result(10)
    press(desk.cell, "Ask the model", model="rules")
    settle(desk.cell.human_reply.worker)
    wait_for(lambda: "the names most like each relation" in desk.text)
    assert desk.run.output("qir").target == "?maker"
    press(desk.cell, "Ask the model", model="nobody")
    assert isinstance(desk.cell.event_error, UnknownModelError)


def test_a_vertex_is_chosen_by_its_row() -> None:
    human = Human()
    run = chatty(
        "Who directed Dune?", Scripted(DIRECTED | {"chatty_kg/qir": qir("Dune | directed by | ?x")})
    )
    run.models["vertex_selection"] = human
    session = session_of(run)
    cell = AgentCell(session, "vertex_selection")
    page(cell)
    going = session.go("vertex_selection")
    wait_for(lambda: "none of these" in text(cell))
    press(cell, "Send", option="1", reason="older")
    going.result(10)
    link = run.output("vertex_selection")
    assert (link.vertex, link.reason) == (link.candidates[1], "older")


def test_the_reply_as_json_text_and_back(desk: Desk) -> None:
    desk.go()
    press(desk.cell, "Reply as JSON")
    press(desk.cell, "As a form", value='{"entities": [')
    assert isinstance(desk.cell.event_error, OverrideError)
    assert desk.form["value"] == '{"entities": ['
    press(desk.cell, "As a form", value=json.dumps(qir("Dune | directed by | ?x")))
    assert desk.form["target"] == "?x"
    press(desk.cell, "Reply as JSON")
    press(desk.cell, "Send", value="I do not know")  # the checks judge it, as they judge a model
    wait_for(lambda: "well-formed JSON: no JSON" in desk.text)


def test_a_cancel_while_it_waits(desk: Desk) -> None:
    done = desk.go()
    desk.say(RIGHT)
    desk.wait("predicate_selection")
    press(desk.cell, "Cancel")
    done.result(10)
    assert (desk.run.status, desk.run.output("qir").target) == ("cancelled", "?person")
    assert desk.human.pending_requests == ()
    done = desk.go("predicate_selection")
    desk.say(predicates(["director"]))
    done.result(10)
    assert (str(desk.run.answer), len(desk.run["qir"].attempts)) == ("Denis Villeneuve", 1)


def test_a_run_from_elsewhere_fails_although_a_cell_is_open(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kgwb.llm.base.LISTENER_TIMEOUT_S", 0.1)
    with pytest.raises(ModelError, match="human") as caught:
        chatty("Who directed Dune?", desk.human).go()  # type: ignore[arg-type]
    assert "workbench.debug" in caught.value.hint
    desk.go()
    with pytest.raises(ModelError, match="human"):
        desk.run.fork().go()
    assert len(desk.human.pending_requests) == 1


def test_vertices_are_played_in_the_order_they_came() -> None:
    desk = Desk("Which story are Dune and Dune part based on?")
    done = desk.go()
    desk.say(qir("Dune | based on | ?story", "Dune part | based on | ?story"))
    wait_for(lambda: len(desk.human.pending_requests) == 2)
    wait_for(lambda: "and 1 more after this" in desk.text)
    for _ in range(2):
        desk.say(vertex(0, ""))
    done.result(10)
    keys = ("vertex_selection[Dune]", "vertex_selection[Dune part]")
    assert [desk.run.output(key).vertex for key in keys] == [None, None]


def test_each_run_has_its_cell_although_the_person_is_one() -> None:
    first = Desk()
    second = Desk("Who directed Sicario?", first.human)
    done = [desk.go() for desk in (first, second)]
    assert ["Sicario" in desk.text for desk in (first, second)] == [False, True]
    second.say(qir("Sicario | directed by | ?person"))
    wait_for(lambda: second.run["qir"].done)
    for desk, going in zip((first, second), done, strict=True):
        desk.session.cancel()
        going.result(10)
    assert second.run.output("qir").entities == ("Sicario",)


def test_after_too_many_invalid_replies_it_says_what_to_do(desk: Desk) -> None:
    done = desk.go()
    for number in range(3):
        desk.wait("qir")
        desk.say({"bad": number})
    done.result(10)
    assert "your replies" in desk.text
    press(desk.cell, "Ask anew")
    desk.wait("qir")
    desk.say(RIGHT)
    settle(desk.session)
    assert "Your reply was used" in desk.text
