"""``kgwb chats``: the conversations that a file has."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kgwb.cli.arguments import option, positional
from kgwb.text import single_line


@dataclass(kw_only=True)
class ChatsCommand:
    """list the conversations that a file has, or print one"""

    show: str = option("ID", "print the questions and answers of this conversation", "")
    file: Path = positional("FILE", "the file of --chats FILE")

    def run(self) -> None:
        """Print a line for each conversation, or the turns of one. Raises InputError."""
        from kgwb.run.conversations import ConversationFile

        conversations = ConversationFile(self.file)
        if not self.show:
            lines = map(str, conversations.read())
            print("\n".join(lines) or "no conversation was kept yet")
            return

        conversation = conversations.find(self.show)
        for number, turn in enumerate(conversation.turns, 1):
            question = single_line(turn.question)
            answers = ", ".join(turn.answers) or "no answer"
            answer_line = single_line(answers)
            print(f"{number}  {question}")
            print(f"   {answer_line}")
