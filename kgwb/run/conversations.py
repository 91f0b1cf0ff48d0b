"""Conversations that are kept in a file: listed, opened, and gone on with.

The file is JSON Lines. A line has one turn of a conversation. Of several lines for the same turn the
last one counts, so that a turn which was asked again is written again.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from kgwb import disk
from kgwb.errors import InputError
from kgwb.kg.base import Graph
from kgwb.records import from_data, to_data
from kgwb.run.answers import Dialogue, Turn
from kgwb.run.calls import utc_now
from kgwb.text import pluralize, shorten, single_line

FORMAT_VERSION = 1
ID_CHARS = 8
MAX_TITLE_CHARS = 60


class KeptConversation(NamedTuple):
    """A conversation in a file."""

    id: str
    saved_at: str
    """When the last of its turns was written, in UTC."""
    system: str
    """The system that answered the last of its turns."""
    graph: str
    """The identity of the graph."""
    source: str
    """Where the graph came from, for people."""
    turns: tuple[Turn, ...]

    @property
    def title(self) -> str:
        """The first question, shortened."""
        return shorten(single_line(self.turns[0].question), MAX_TITLE_CHARS)

    @property
    def length(self) -> str:
        """How many turns it has: "3 turns"."""
        return pluralize(len(self.turns), "turn")

    def __str__(self) -> str:
        """Return the conversation in one line: id, time, title and number of turns."""
        return f"{self.id}  {self.saved_at[:16]}  {self.title} ({self.length}, {self.system})"


@dataclass(frozen=True, slots=True)
class ConversationLine:
    """A line of a file: one turn, and the conversation that it belongs to."""

    kgwb_conversation: int
    id: str
    saved_at: str
    system: str
    graph: str
    source: str
    number: int
    """The number of the turn, from 0."""
    turns: int
    """How many turns the conversation has."""
    turn: Turn


def new_conversation_id() -> str:
    """Return an id for a conversation, which no other has."""
    return uuid.uuid4().hex[:ID_CHARS]


class ConversationFile:
    """A file of conversations. It need not exist yet."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).expanduser()

    def __repr__(self) -> str:
        return f"ConversationFile({str(self.path)!r})"

    def read(self) -> tuple[KeptConversation, ...]:
        """Return the conversations in the file, the one that was written last at the end.

        None if there is no file. Raises InputError, which names the line, for another content.
        """
        if not self.path.exists():
            return ()
        lines_by_id: dict[str, list[ConversationLine]] = {}
        for line in self._read_lines():
            earlier = lines_by_id.pop(line.id, [])
            lines_by_id[line.id] = [*earlier, line]
        return tuple(_join_lines(lines) for lines in lines_by_id.values())

    def _read_lines(self) -> list[ConversationLine]:
        """Return the lines of the file. Raises InputError, which names the line, for another content."""
        hint = "name a file of conversations that kgwb has written, or one that is not there yet"
        lines = []
        number = 0
        try:
            for number, data in disk.read_json_lines(self.path):  # noqa: B007  # read below
                lines.append(_read_line(data))
        except OSError as error:
            reason = error.strerror or error
            raise InputError(
                f"the conversations {self.path} cannot be read: {reason}", hint=hint
            ) from error
        except ValueError as error:
            number = getattr(error, "line_number", number)
            raise InputError(
                f"line {number} of {self.path} is no turn of a conversation", hint=hint
            ) from error
        return lines

    def find(self, id_: str) -> KeptConversation:
        """Return a conversation by its id. Raises InputError if the file does not have it."""
        conversations = self.read()
        for conversation in conversations:
            if conversation.id == id_:
                return conversation
        known = ", ".join(conversation.id for conversation in conversations) or "none"
        raise InputError(
            f"the file {self.path} has no conversation {single_line(shorten(id_, MAX_TITLE_CHARS))!r}",
            hint=f"choose one of these: {known}",
        )

    def keep(
        self, id_: str, dialogue: Dialogue, numbers: Sequence[int], system: str, kg: Graph
    ) -> None:
        """Write the turns of a conversation that have these numbers, at the end of the file.

        Raises InputError if the file has another content, or cannot be written.
        """
        if not numbers:
            return
        self.read()
        texts = []
        for number in numbers:
            line = ConversationLine(
                FORMAT_VERSION,
                id_,
                utc_now(),
                system,
                kg.identity,
                kg.source,
                number,
                len(dialogue.turns),
                dialogue.turns[number],
            )
            texts.append(disk.to_json_line(to_data(line)))
        problem = f"the conversation cannot be written to {self.path}"
        with disk.os_errors_as_input_error(problem, "name a file in another folder"):
            disk.truncate_unfinished_line(self.path)
            disk.append_text(self.path, "".join(texts), disk.JSON_ENCODING_ERRORS)


def _read_line(data: Any) -> ConversationLine:
    """Return the line that JSON data describes. Raises ValueError if it is none of this version."""
    line: ConversationLine = from_data(data, ConversationLine)
    if line.kgwb_conversation != FORMAT_VERSION or not 0 <= line.number < line.turns:
        raise ValueError("another version, or a turn that cannot be")
    return line


def _join_lines(lines: Sequence[ConversationLine]) -> KeptConversation:
    """Return the conversation that the lines of one id describe, at least one, in their order."""
    last = lines[-1]
    turns = {line.number: line.turn for line in lines}
    kept = tuple(turns[number] for number in sorted(turns) if number < last.turns)
    return KeptConversation(last.id, last.saved_at, last.system, last.graph, last.source, kept)
