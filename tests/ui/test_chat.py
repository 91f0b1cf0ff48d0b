"""A dialogue: ask, open, correct, cancel, run the later turns again."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from IPython.core.events import EventManager, available_events
from small import FILMS, asked, films, qir, workbench

from kgwb.errors import ModelError, QuestionError, SettingError
from kgwb.flow import QIR, Fact
from kgwb.llm import Scripted
from kgwb.llm.base import ChatRequest
from kgwb.ui import chat as chats
from kgwb.ui.chat import Chat
from kgwb.ui.dialogue import Conversation
from kgwb.ui.entry import SOON_S, Entry
from kgwb.ui.kit import Panel
from kgwb.ui.session import session_of
from ui.press import button, markup_of, plain, press, text_of, wait_for

KG = films(FILMS + ':ted :birthPlace :port . :port rdfs:label "Port Jefferson" .')
FIRST, SECOND = "Who directed Arrival?", "Where was he born?"
WRITER = "Who wrote Story of Your Life?"
BY_HAND = QIR((Fact("Story of Your Life", "author", "?person"),), "?person")


def knows(request: ChatRequest) -> Any:
    """A model that follows the dialogue, and whose server is gone where it is asked to fail."""
    said = request.messages[-1].content
    if "fail" in said:
        return ModelError("the server is gone", hint="start it again")
    person = "Ted Chiang" if "Ted Chiang" in said else "Denis Villeneuve"
    if request.task.endswith("rephraser"):
        return {"question": f"Where was {person} born?"}
    if "born" in said:
        return qir(f"{person} | birth place | ?place")
    return qir("Story of Your Life | author | ?x" if "wrote" in said else "Arrival | director | ?x")


def chat_with(model: Scripted | None = None) -> Chat:
    return Chat(workbench(model or Scripted(knows), KG))


def say(chat: Chat, question: str) -> None:
    chat._entry.value = question
    chat.ask().result()


def answers(conversation: Conversation) -> list[str]:
    return [str(run.answer) for run in conversation.turns]


@pytest.fixture
def chat() -> Chat:
    """Two turns, the second about the answer of the first."""
    made = chat_with()
    say(made, FIRST)
    say(made, SECOND)
    return made


# --- asking


def test_turns_are_asked_one_after_another_and_told(chat: Chat) -> None:
    assert answers(chat.conversation) == ["Denis Villeneuve", "Gentilly"]
    told = text_of(chat)
    for part in (f"1. {FIRST}", f"2. {SECOND}", "Gentilly", "stands on 1 triple", "scripted", "2 turns on"):
        assert part in told
    assert chat._entry.value == ""
    assert repr(chat).startswith("Chat(2 turns on ")
    assert "Gentilly" in plain(chat.static())


def test_a_dialogue_held_before_the_chat_is_in_it() -> None:
    bench = workbench(Scripted(knows), KG)
    bench.ask(FIRST)
    chat = Chat(bench)
    say(chat, SECOND)
    assert answers(chat.conversation) == ["Denis Villeneuve", "Gentilly"]


def test_a_turn_that_a_cell_asked_is_shown_once_the_cell_has_run(monkeypatch: pytest.MonkeyPatch) -> None:
    cells = EventManager(None, available_events)
    monkeypatch.setattr(chats, "get_ipython", lambda: SimpleNamespace(events=cells))
    bench = workbench(Scripted(knows), KG)
    chat = Chat(bench)
    bench.ask(FIRST)
    cells.trigger("post_run_cell", None)
    assert "1. Who directed Arrival?" in text_of(chat)
    session_of(bench.runs[0]).replace("qir", BY_HAND).result()
    assert "◐ stopped on the way" in text_of(chat)  # from now on it is heard like the others


def test_a_question_that_cannot_be_asked_stays_in_the_field() -> None:
    chat = chat_with()
    with pytest.raises(QuestionError):
        chat.ask()
    chat._entry.value = "word " * 2000
    press(chat, "Ask")
    assert "at most 1,000 are taken" in text_of(chat.message)
    assert chat._entry.value.startswith("word")
    assert chat.conversation.turns == ()


def test_a_turn_that_fails_says_what_to_do_and_the_dialogue_goes_on() -> None:
    chat = chat_with()
    say(chat, FIRST)
    say(chat, "Does Arrival fail?")
    assert "failed:  the server is gone" in text_of(chat)
    assert "What to do: start it again" in text_of(chat)
    say(chat, SECOND)
    assert answers(chat.conversation)[2] == "Gentilly"
    assert len(chat.conversation.turns[2].dialogue.turns) == 1


def test_a_cancelled_turn_is_said_to_be_and_can_go_on() -> None:
    chat = chat_with(Scripted(knows, remote=True, delay_s=0.3))
    chat._entry.value = FIRST
    asking = chat.ask()
    wait_for(lambda: chat.conversation.turns[0].steps)
    assert not chat._cancel.disabled
    press(chat, "Cancel")
    asking.result()
    assert chat.conversation.turns[0].status == "cancelled"
    assert "■ cancelled" in text_of(chat)
    assert chat._cancel.disabled
    press(chat, "Go on")
    wait_for(lambda: answers(chat.conversation) == ["Denis Villeneuve"])


def test_one_turn_is_run_at_a_time_and_what_was_written_stays() -> None:
    chat = chat_with(Scripted(knows, remote=True, delay_s=0.3))
    chat._entry.value = FIRST
    asking = chat.ask()
    chat._entry.value = SECOND
    press(chat, "Ask")
    assert "the dialogue is busy: answering" in text_of(chat.message)
    assert chat._entry.value == SECOND
    with pytest.raises(SettingError):
        chat.conversation.correct(0, WRITER)
    chat.conversation.cancel()
    asking.result()


# --- correcting


def test_other_words_for_a_turn_make_the_later_ones_stale_until_they_are_run_again(chat: Chat) -> None:
    chat.conversation.correct(0, WRITER).result()
    assert answers(chat.conversation) == ["Ted Chiang", "Gentilly"]
    assert [chat.conversation.stale(number) for number in (0, 1)] == [False, True]
    assert "↻ stale" in text_of(chat)
    assert chat._rerun.layout.display == ""
    chat.conversation.rerun().result()
    assert answers(chat.conversation) == ["Ted Chiang", "Port Jefferson"]
    assert "stale" not in text_of(chat)
    assert "before: Gentilly" in text_of(chat)
    assert f"before: “{FIRST}”: Denis Villeneuve" in text_of(chat)
    assert chat._rerun.layout.display == "none"


def test_only_what_changed_is_asked_again() -> None:
    model = Scripted(knows)
    chat = chat_with(model)
    for question in (FIRST, SECOND, FIRST):
        say(chat, question)
    before = asked(model)
    chat.conversation.correct(0, WRITER).result()
    chat.conversation.rerun().result()
    again = asked(model) - before
    assert again == {"qir": 2, "rephraser": 1}  # the third turn asks what it has asked already


def test_a_turn_edited_by_hand_makes_the_later_ones_stale(chat: Chat) -> None:
    first = session_of(chat.conversation.turns[0])
    first.replace("qir", BY_HAND).result()
    assert "◐ stopped on the way" in text_of(chat)
    assert chat.conversation.stale(1)
    first.go().result()
    press(chat, "Run the later turns again")
    wait_for(lambda: answers(chat.conversation) == ["Ted Chiang", "Port Jefferson"])


def test_values_put_in_by_hand_stay_in_a_turn_run_again_but_not_under_other_words(chat: Chat) -> None:
    second = session_of(chat.conversation.turns[1])
    second.replace("rephraser", {"question": "Where was Amy Adams born?", "original": SECOND}).result()
    second.go().result()
    chat.conversation.correct(0, WRITER).result()
    chat.conversation.rerun().result()
    assert "rephraser" in chat.conversation.turns[1].overrides
    chat.conversation.correct(1, "Where was she born?").result()
    assert chat.conversation.turns[1].overrides == {}


def test_a_turn_is_corrected_with_its_buttons(chat: Chat) -> None:
    press(chat, "Correct")
    words = chat._rows[0]._words
    assert words.value == FIRST
    words.value = WRITER
    press(chat, "Ask it so")
    wait_for(lambda: answers(chat.conversation)[0] == "Ted Chiang")


def test_a_cancel_ends_running_the_later_turns_again() -> None:
    model = Scripted(knows, remote=True)
    chat = chat_with(model)
    for question in (FIRST, SECOND, SECOND):
        say(chat, question)
    chat.conversation.correct(0, WRITER).result()
    model._delay_s = 0.3
    again = chat.conversation.rerun()
    wait_for(lambda: chat.conversation.turns[1].status == "running")
    chat.conversation.cancel()
    again.result()
    assert [run.status for run in chat.conversation.turns] == ["done", "cancelled", "done"]
    assert chat.conversation.stale(2)


# --- opening


def test_a_turn_is_opened_beside_the_others_and_follows_its_run(chat: Chat) -> None:
    press(chat, "Open", 1)
    assert "Turn 2 : Where was he born?" in text_of(chat._opened)
    assert "Answer: Gentilly" in text_of(chat._opened)
    before = chat._opened.children[1]
    chat.conversation.correct(1, "Where was Denis Villeneuve born?").result()
    assert "Turn 2 : Where was Denis Villeneuve born?" in text_of(chat._opened)
    assert chat._opened.children[1] is not before


def test_what_opens_a_turn_is_given_its_session_once() -> None:
    opened: list[object] = []

    def open_turn(session: Any) -> Panel:
        opened.append(session)
        return Panel()

    chat = Chat(workbench(Scripted(knows), KG), open_turn)
    say(chat, FIRST)
    press(chat, "Open")
    press(chat, "Open")
    assert opened == [session_of(chat.conversation.turns[0])]


def test_a_new_dialogue_keeps_the_runs_of_the_old_one(chat: Chat) -> None:
    press(chat, "Open")
    press(chat, "New dialogue")
    assert chat.conversation.turns == ()
    assert len(chat.conversation.ended[0]) == 2
    assert chat._opened.children == ()
    say(chat, FIRST)
    assert chat.conversation.turns[0].dialogue.turns == ()


# --- what is shown


def test_markup_in_questions_and_labels_stays_text() -> None:
    evil = "<img src=x onerror=alert(1)>"
    kg = films(FILMS.replace('"Denis Villeneuve"', f'"{evil}"'))
    chat = Chat(workbench(Scripted(knows), kg))
    say(chat, f"Who directed Arrival? {evil}")
    press(chat, "Open")
    assert "<img" not in markup_of(chat)
    assert "&lt;img" in markup_of(chat)
    assert "<img" not in chat.static()


def test_long_texts_are_cut_with_a_number() -> None:
    chat = chat_with()
    say(chat, f"Who directed Arrival{'!' * 5_000}?")
    assert "!!!…" in text_of(chat)
    assert "5,021 letters" in text_of(chat)


# --- the Enter key


def entry() -> tuple[Entry, list[str]]:
    heard: list[str] = []
    made = Entry(Panel(), lambda: heard.append(made.value))
    return made, heard


def key(of: Entry) -> None:
    """What the browser sends when Enter is pressed."""
    of._handle_custom_msg({"event": "submit"}, [])


def test_enter_is_heard_with_the_text_that_follows_it() -> None:
    made, heard = entry()
    key(made)
    made.value = "a question"
    assert heard == ["a question"]


def test_enter_is_heard_where_the_text_was_there_before() -> None:
    made, heard = entry()
    made.value = "a question"
    assert heard == []  # the field was only left
    key(made)
    wait_for(lambda: heard == ["a question"], SOON_S * 20)


def test_enter_asks_in_the_chat() -> None:
    chat = chat_with()
    key(chat._entry)
    chat._entry.value = FIRST
    wait_for(lambda: answers(chat.conversation) == ["Denis Villeneuve"])
    assert button(chat, "Open") is not None
