"""A dialogue: ask, open, word otherwise, cancel, run the later turns again."""

from types import SimpleNamespace
from typing import Any

import pytest
import surveying
from IPython.core.events import EventManager, available_events
from page import page, press, settle, text, wait_for
from small import FILMS, answer_of, asked, films, qir, workbench
from surveying import script

import kgwb
from kgwb.errors import ModelError
from kgwb.llm import Scripted
from kgwb.llm.base import ChatRequest
from kgwb.systems.chatty_kg.records import QIR, Fact
from kgwb.ui import chat as chats
from kgwb.ui.chat import Chat, Conversation
from kgwb.ui.session import session_of

KG = films(FILMS + ':ted :birthPlace :port . :port rdfs:label "Port Jefferson" .')
FIRST, SECOND = "Who directed Arrival?", "Where was he born?"
WRITER = "Who wrote Story of Your Life?"
BY_HAND = QIR((Fact("Story of Your Life", "author", "?person"),), "?person")


def knows(request: ChatRequest) -> Any:
    """A model that follows the dialogue, and whose server is gone where it is asked to fail."""
    said = request.messages[-1].content
    if "fail" in said:
        return ModelError("the server is gone", hint="restart")
    person = "Ted Chiang" if "Ted Chiang" in said else "Denis Villeneuve"
    if request.task.endswith("rephraser"):
        return {"question": f"Where was {person} born?"}
    if "born" in said:
        return qir(f"{person} | birth place | ?place")
    return qir("Story of Your Life | author | ?x" if "wrote" in said else "Arrival | director | ?x")


LATEST = "Which film of Denis Villeneuve is the latest?"
REFUSED_HERE = script() | {
    "chatty_kg/qir": qir(
        "?film | director | Denis Villeneuve", target="?film", beyond=["the latest"]
    )
}


TAKEN = {"taken": "films that he directed", "others": ["the film that Lynch directed"]}
LYNCH = surveying.draft("SELECT ?film { ?film org:director org:lynch }")
READ_OTHERWISE = script([surveying.draft(assumptions=[TAKEN]), LYNCH])
"""Replies of Surveyor's model to a question that is read in two ways."""


def chat_with(model: Scripted | None = None, *questions: str) -> Chat:
    chat = Chat(workbench(model or Scripted(knows), KG))
    for question in questions:
        say(chat, question)
    return chat


def say(chat: Chat, question: str) -> None:
    press(chat, "Ask", question=question)
    settle(chat.conversation)


def typed(chat: Chat) -> str:
    return page(chat).values(page(chat).find("Ask").form)["question"]


def answers(conversation: Conversation) -> list[str]:
    return [str(run.answer) for run in conversation.runs]


@pytest.fixture
def chat() -> Chat:
    """Two turns, the second about the answer of the first."""
    return chat_with(None, FIRST, SECOND)


def test_turns_are_asked_one_after_another_the_newest_in_view(chat: Chat) -> None:
    assert answers(chat.conversation) == ["Denis Villeneuve", "Gentilly"]
    shown = text(chat)
    for part in (
        FIRST,
        "understood as Where was Denis Villeneuve born?",
        "Gentilly",
        "stands on 1 triple",
    ):
        assert part in shown
    assert ('data-follow="2"' in chat.html, typed(chat)) == (True, "")
    assert repr(chat).startswith("Chat(2 turns on ")
    assert "Gentilly" in chat.static_html()


def test_a_question_asked_while_another_is_answered_waits_its_turn_and_is_said_to() -> None:
    chat = chat_with(Scripted(knows, remote=True, delay_s=0.2))
    press(chat, "Ask", question=FIRST)
    press(chat, "Ask", question=SECOND)
    wait_for(lambda: f"queued: answering “{SECOND}”" in text(chat))
    wait_for(lambda: len(chat.conversation.runs) == 1)
    settle(chat.conversation)
    # the second question is understood by the answer of the first
    assert answers(chat.conversation) == ["Denis Villeneuve", "Gentilly"]
    assert "queued" not in text(chat)


def test_a_cancelled_turn_can_go_on_and_what_waited_is_dropped() -> None:
    chat = chat_with(Scripted(knows, remote=True, delay_s=0.3))
    press(chat, "Ask", question=FIRST)
    press(chat, "Ask", question=SECOND)
    wait_for(lambda: chat.conversation.runs and chat.conversation.runs[0].steps)
    wait_for(lambda: "Cancel" in text(chat))
    press(chat, "Cancel")
    settle(chat.conversation)
    assert [run.status for run in chat.conversation.runs] == ["cancelled"]
    press(chat, "Resume")
    settle(chat.conversation)
    assert answers(chat.conversation) == ["Denis Villeneuve"]


def test_examples_are_of_this_graph_and_were_answered() -> None:
    chat = chat_with()
    assert chat.overview is not None
    settle(chat.overview)
    example = next(iter(chat.overview.example_answers))
    press(chat, example)
    assert typed(chat) == example


def test_a_turn_that_a_cell_asked_is_shown_once_the_cell_has_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cells = EventManager(None, available_events)
    monkeypatch.setattr(chats, "get_ipython", lambda: SimpleNamespace(events=cells))
    bench = workbench(Scripted(knows), KG)
    chat = Chat(bench)
    assert FIRST not in text(chat)
    bench.ask(FIRST)
    cells.trigger("post_run_cell", None)
    assert FIRST in text(chat)
    session_of(bench.runs[0]).replace("qir", BY_HAND).result()
    assert "Stale" in text(chat)  # from now on it is heard like the others


def test_a_question_that_cannot_be_asked_stays_in_the_field() -> None:
    chat = chat_with()
    for question, said in (
        ("", "the question is empty"),
        ("word " * 2000, "at most 1,000 are taken"),
    ):
        say(chat, question)
        assert said in text(chat)
    assert typed(chat).startswith("word")
    assert chat.conversation.runs == ()


def test_a_turn_that_fails_says_what_to_do_and_the_dialogue_goes_on() -> None:
    chat = chat_with(None, FIRST, "Does Arrival fail?")
    assert "restart" in text(chat)
    say(chat, SECOND)
    assert answers(chat.conversation)[2] == "Gentilly"
    assert len(chat.conversation.runs[2].dialogue.turns) == 1


def test_other_words_for_a_turn_make_the_later_ones_stale_until_they_are_run_again() -> None:
    model = Scripted(knows)
    chat = chat_with(model, FIRST, SECOND, FIRST)
    before = asked(model)
    press(chat, "Reword")
    press(chat, "Ask this instead", question=WRITER)
    settle(chat.conversation)
    assert answers(chat.conversation)[:2] == ["Ted Chiang", "Gentilly"]
    assert "stale" in text(chat)
    press(chat, "Run the later turns again")
    settle(chat.conversation)
    assert answers(chat.conversation)[:2] == ["Ted Chiang", "Port Jefferson"]
    assert asked(model) - before == {"qir": 2, "rephraser": 1}  # the third turn has asked before
    shown = text(chat)
    assert ("stale" in shown, "before: Gentilly" in shown) == (False, True)
    assert f"before: “{FIRST}”: Denis Villeneuve" in shown


def test_values_put_in_by_hand_stay_in_a_turn_run_again_but_not_under_other_words(
    chat: Chat,
) -> None:
    second = session_of(chat.conversation.runs[1])
    second.replace(
        "rephraser", {"question": "Where was Amy Adams born?", "original": SECOND}
    ).result()
    second.go().result()
    chat.conversation.reword(0, WRITER).result()
    chat.conversation.rerun_stale().result()
    assert "rephraser" in chat.conversation.runs[1].overrides
    chat.conversation.reword(1, "Where was she born?").result()
    assert chat.conversation.runs[1].overrides == {}


def test_a_cancel_ends_running_the_later_turns_again() -> None:
    model = Scripted(knows, remote=True)
    chat = chat_with(model, FIRST, SECOND, SECOND)
    chat.conversation.reword(0, WRITER).result()
    model._delay_s = 0.3
    again = chat.conversation.rerun_stale()
    wait_for(lambda: chat.conversation.runs[1].status == "running")
    chat.conversation.cancel()
    again.result()
    assert [run.status for run in chat.conversation.runs] == ["done", "cancelled", "done"]
    assert chat.conversation.is_stale(2)


def test_a_turn_opens_to_its_triples_and_to_the_debugger_inside_of_the_chat(chat: Chat) -> None:
    press(chat, "Open")
    assert "Supporting triples Arrival" in text(chat)
    press(chat, "Open in the debugger")
    press(chat, "Subgraph")
    press(chat, "Table")  # a widget in a widget in a widget
    assert "<table" in chat.html
    chat.update({"do": "choose", "arg": "qir", "scope": "debugger"})
    assert "Arrival director ?x" in text(chat)
    chat.update({"do": "start", "scope": "debugger"})
    settle(session_of(chat.conversation.runs[0]))
    assert chat.conversation.runs[0].steps == []
    press(chat, "New dialogue")
    assert (chat.conversation.runs, len(chat.conversation.ended[0].runs)) == ((), 2)
    assert "entity retriever" not in text(chat)


def test_a_new_dialogue_can_be_undone_until_something_was_asked(chat: Chat) -> None:
    runs = chat.conversation.runs
    press(chat, "New dialogue")
    press(chat, "Back to the dialogue before")
    assert chat.conversation.runs == runs
    assert answers(chat.conversation) == ["Denis Villeneuve", "Gentilly"]
    assert "Back to the dialogue before" not in text(chat)
    press(chat, "New dialogue")
    press(chat, "Ask", question=FIRST)
    settle(chat.conversation)
    assert "Back to the dialogue before" not in text(chat)


def test_a_turn_that_cannot_be_expressed_is_asked_of_the_system_that_can() -> None:
    chat = chat_with(Scripted(REFUSED_HERE), LATEST)
    [refused] = chat.conversation.runs
    assert not answer_of(refused).values
    press(chat, "Ask surveyor")
    settle(chat.conversation)
    [run] = chat.conversation.runs
    assert (run.system.name, run.question) == ("surveyor", LATEST)
    assert sorted(answer_of(run).labels) == ["Arrival", "Dune", "Sicario"]
    assert "Ask surveyor" not in text(chat)


def test_another_reading_of_a_turn_is_one_click_away() -> None:
    chat = Chat(kgwb.Workbench(KG, Scripted(READ_OTHERWISE), system="surveyor"))
    say(chat, surveying.QUESTION)
    assert "understood as" not in text(chat)
    press(chat, "the film that Lynch directed")
    settle(chat.conversation)
    [run] = chat.conversation.runs
    assert answer_of(run).labels == ("Dune",)
    assert [reading.other for reading in run.readings] == ["their names as texts"]
