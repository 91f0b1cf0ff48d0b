"""Conversations in a file: kept when asked to, listed, opened, and gone on with, of any system."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from small import FILMS, films

import kgwb
from kgwb.cli import main
from kgwb.errors import InputError, SettingError
from kgwb.run.answers import Dialogue, Turn
from kgwb.run.record import ConversationFile
from kgwb.ui.chat import Chat
from kgwb.workbench import Workbench

QUESTION = "Who directed Arrival?"
NEXT = "Who directed Sicario?"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "chats" / "chats.jsonl"


def rules(file: Path | None, **options: Any) -> Workbench:
    return Workbench(films(), "rules", conversations=file, **options)


def questions(turns: tuple[Turn, ...]) -> list[str]:
    return [turn.question for turn in turns]


def test_nothing_is_kept_unless_asked_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    bench = rules(None)
    bench.ask(QUESTION)
    assert list(tmp_path.iterdir()) == []
    assert bench.conversations == ()
    with pytest.raises(SettingError):
        bench.open_conversation("1")


@pytest.mark.parametrize("system", ["chatty_kg", "dog"])
def test_a_conversation_is_kept_listed_opened_and_gone_on_with(file: Path, system: str) -> None:
    first = rules(file, system=system)
    first.ask(QUESTION)
    first.ask(NEXT)
    first.new_dialogue()
    first.ask(NEXT)
    [old, new] = first.conversations
    assert (questions(old.turns), questions(new.turns)) == ([QUESTION, NEXT], [NEXT])
    assert (old.system, old.title) == (system, QUESTION)

    second = rules(file, system=system)
    second.open_conversation(old.id)
    assert second.dialogue == Dialogue(old.turns)
    run = second.ask(QUESTION)
    assert run.dialogue == Dialogue(old.turns)
    last = second.conversations[-1]
    assert (last.id, questions(last.turns)) == (old.id, [QUESTION, NEXT, QUESTION])
    assert len(second.conversations) == 2


def test_any_text_is_kept_as_it_was_and_letters_can_be_read_in_the_file(file: Path) -> None:
    turn = Turn("Wer führte Regie? \ud800 \u2028 \x00", ("Jürgen",))
    ConversationFile(file).keep("1", Dialogue((turn,)), [0], "dog", films())
    [kept] = ConversationFile(file).read()
    assert kept.turns == (turn,)
    assert "Jürgen" in file.read_text(encoding="utf-8")


# The chat


def send(chat: Chat, event: str, arg: str = "", **form: str) -> None:
    getattr(chat, f"do_{event}")({"do": event, "arg": arg, "form": form})
    chat.conversation.submit("waiting", lambda: None).result(60)


def test_the_chat_lists_opens_and_goes_on(file: Path) -> None:
    chat = rules(file).chat()
    send(chat, "ask", question=QUESTION)
    [kept] = chat.conversation.workbench.conversations
    assert "Earlier conversations" not in chat.view()

    other = rules(file).chat()
    assert QUESTION not in other.view()
    send(other, "conversations")
    assert QUESTION in other.view()
    send(other, "open_conversation", kept.id)
    page = other.view()
    assert QUESTION in page and "Denis Villeneuve" in page
    send(other, "ask", question=NEXT)
    [kept] = other.conversation.workbench.conversations
    assert questions(kept.turns) == [QUESTION, NEXT]


def test_a_reworded_turn_replaces_the_one_before_in_the_file(file: Path) -> None:
    chat = rules(file).chat()
    send(chat, "ask", question=QUESTION)
    send(chat, "correct", "0", question=NEXT)
    [kept] = chat.conversation.workbench.conversations
    assert questions(kept.turns) == [NEXT]


def test_a_recalled_dialogue_is_the_same_conversation(file: Path) -> None:
    chat = rules(file).chat()
    send(chat, "ask", question=QUESTION)
    send(chat, "forget")
    send(chat, "recall")
    send(chat, "ask", question=NEXT)
    [kept] = chat.conversation.workbench.conversations
    assert questions(kept.turns) == [QUESTION, NEXT]


# Files that do not fit


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("not JSON\n", "line 1"),
        ('{"id": "a"}\n', "line 1"),
        ("[]\n", "line 1"),
        ("\n[]\n", "line 2"),
        ("\n[\n", "line 2"),
    ],
)
def test_another_file_is_refused_and_stays_as_it_is(
    tmp_path: Path, content: str, problem: str
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(content)
    bench = rules(path)
    with pytest.raises(InputError, match=problem):
        _ = bench.conversations
    with pytest.raises(InputError, match=problem):
        bench.ask(QUESTION)
    assert path.read_text() == content


def test_another_version_another_graph_and_an_unknown_id_are_refused(file: Path) -> None:
    bench = rules(file)
    bench.ask(QUESTION)
    with pytest.raises(InputError, match="no conversation"):
        bench.open_conversation("x")
    other = Workbench(kgwb.open_kg("films"), "rules", conversations=file)
    with pytest.raises(SettingError, match="another graph"):
        other.open_conversation(bench.conversation_id)
    line = json.loads(file.read_text())
    file.write_text(json.dumps({**line, "kgwb_conversation": 2}) + "\n")
    with pytest.raises(InputError, match="line 1"):
        ConversationFile(file).read()


def test_a_half_written_line_is_dropped(file: Path) -> None:
    bench = rules(file)
    bench.ask(QUESTION)
    with file.open("a") as opened:
        opened.write('{"half')
    bench.ask(NEXT)
    [kept] = rules(file).conversations
    assert questions(kept.turns) == [QUESTION, NEXT]


# The command


def test_the_command_goes_on_with_the_last_conversation(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    graph, path = tmp_path / "films.ttl", tmp_path / "chats.jsonl"
    graph.write_text(FILMS)
    ask = ["ask", "--kg", str(graph), "--chats", str(path)]
    assert main([*ask, QUESTION]) == 0
    assert main([*ask, NEXT]) == 0
    assert main([*ask, "--chat", "new", NEXT]) == 0
    first, second = ConversationFile(path).read()
    assert (questions(first.turns), questions(second.turns)) == ([QUESTION, NEXT], [NEXT])
    assert main([*ask, "--chat", first.id, QUESTION]) == 0
    assert len(ConversationFile(path).find(first.id).turns) == 3
    capsys.readouterr()
    assert main(["chats", str(path)]) == 0
    listed = capsys.readouterr().out
    assert first.id in listed and second.id in listed
    assert main(["chats", str(path), "--show", first.id]) == 0
    assert "Denis Villeneuve" in capsys.readouterr().out
    assert main(["ask", "--kg", str(graph), "--chat", "new", QUESTION]) == 2
    assert main([*ask, "--chat", "gone", QUESTION]) == 2
