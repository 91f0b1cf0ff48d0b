"""The record of a run, the file that it is written to, and files of conversations.

``Record`` has the calls of a run, and what a person put in. ``SavedRun`` is what a run file says, and
``RunFile`` the file with its JSON lines, which ``docs/run_format.md`` describes. A ``ConversationFile``
has a turn of a conversation on each line. Of several lines for the same turn the last one counts, so
that a turn which was asked again is written again.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from pydantic import ValidationError

from kgwb import disk
from kgwb.background import shielded
from kgwb.disk import __version__
from kgwb.errors import InputError, RunFileError
from kgwb.kg.base import Graph, Vocabulary
from kgwb.llm.base import DataNotice, Message
from kgwb.records import (
    JsonObject,
    describe_validation_error,
    encode_data,
    from_data,
    frozen,
    to_data,
    to_json,
)
from kgwb.run.answers import Answer, Dialogue, Turn
from kgwb.run.steps import HTTP_KIND, Call, CallSource, Status, Totals, utc_now
from kgwb.terms import Triples
from kgwb.text import pluralize, shorten, single_line

K = TypeVar("K")
V = TypeVar("V")

FORMAT_VERSION = 1
"""Raised by a change that older programs cannot read."""
DAMAGED_FILE_ERRORS = (
    LookupError,
    ValueError,
    TypeError,
    AttributeError,
    ArithmeticError,
    RecursionError,
)
"""What reading raises if the entries of a file lack their form, or contradict each other."""
_HEADER_START = b'{"kgwb_run":'
RUN_FILE_HINT = "give a file that Run.save or kgwb ask --save wrote"


@dataclass(frozen=True, kw_only=True)
class Header:
    """The first line of a run file: what the run is."""

    kgwb_run: int = FORMAT_VERSION
    kgwb: str = __version__
    id: str
    created: str
    system: str
    system_from: str = ""
    """Where a system from outside of kgwb came from."""
    question: str
    dialogue: Dialogue
    settings: JsonObject
    models: dict[str, str]
    """The names of the models, by agent."""
    embeddings: str
    graph: str
    """The identity of the graph."""
    source: str = ""
    muted: Triples = ()
    vocabulary: Vocabulary
    prompts: dict[str, str]
    """The texts that were used, and the person's own."""

    def to_json(self) -> str:
        """Return the header as JSON text, without ``system_from`` and ``muted`` if they are empty."""
        optional = ("system_from", "muted")
        return to_json(self, omitted={name for name in optional if not getattr(self, name)})


@dataclass(frozen=True)
class End:
    """How the latest execution ended."""

    status: Status
    position: int
    answer: Answer | JsonObject | None = None
    """From a file it is JSON data."""
    error: str = ""
    totals: Totals = field(default_factory=Totals)

    def to_json(self) -> str:
        """Return the entry of the end as JSON text."""
        return f'{{"end":{to_json(self)}}}'


Messages = tuple[Message, ...]


class Record:
    """What a run has recorded. It can be used by several threads at the same time."""

    def __init__(self) -> None:
        self.calls: dict[str, Call] = {}
        """By key, in the order in which they ended."""
        self.notices: list[DataNotice] = []
        """What left the machine with these calls."""
        self.outdated: set[str] = set()
        """Keys of calls that are made again when they are next needed."""
        self.live_seconds: dict[tuple[str, frozenset[str]], float] = {}
        """How long a step took when its calls were made, by its key and the keys of its calls.

        The calls of the steps below it count, too."""
        self.overrides: JsonObject = {}
        """Values that a person put in, by step key."""
        self.edited_messages: dict[tuple[str, int], tuple[Message, ...]] = {}
        """Messages that a person put in place of an agent's, by step key and number of the call."""
        self.edited_replies: dict[tuple[str, int], str] = {}
        """Texts that a person put in place of a model's replies, by step key and number of the call."""
        self.used_prompts: dict[str, str] = {}
        """The texts of the prompts that were used, by name."""
        self.models: dict[str, str] = {}
        """For a run from a file: the names of its models, by agent."""
        self.store: CallSource | None = None
        """Where calls that are not recorded are looked for, and kept; None for nowhere."""
        self.file: RunFile | None = None
        """The file that every call is written to as it ends."""
        self._pending: dict[str, Future[Call] | None] = {}
        """By key: calls that a thread is making, with a Future if another thread waits for them."""
        self._lock = threading.Lock()
        self._file_lock = threading.RLock()

    def take_over(self, other: Record) -> None:
        """Add the calls, notices and edits of another record, and use its store and its models."""
        self.calls.update(other.calls)
        self.notices.extend(other.notices)
        self.live_seconds.update(other.live_seconds)
        self.overrides.update(other.overrides)
        self.edited_messages.update(other.edited_messages)
        self.edited_replies.update(other.edited_replies)
        self.models = other.models
        self.store = other.store

    # Calls

    def add_notice(self, notice: DataNotice) -> bool:
        """Add a notice of what left the machine, and return whether it is new here."""
        with self._lock:
            is_new = notice not in self.notices
            if is_new:
                self.notices.append(notice)
        return is_new

    def find(self, key: str) -> Call | None:
        """Return the call with this key from the record, else from the store.

        None if neither has it, or if it is outdated, so that it has to be made again.
        """
        if key in self.outdated:
            return None
        call = self.calls.get(key)
        if call is None and self.store is not None:
            return self.store.find(key)
        return call

    def find_or_make(
        self, key: str, kind: str, make: Callable[[], Call], poll: Callable[[], object]
    ) -> tuple[Call, bool]:
        """Return the call with this key, and whether it is new in the record.

        A call that is missing or outdated is taken from the store, else from ``make``, and then
        recorded. If another thread is making it already, this one waits and returns that call,
        which is not new. While another process makes it, ``poll()`` is called.

        Raises what ``make`` and ``poll`` raise, on all threads that wait for the call; nothing is
        recorded then.
        """
        with self._lock:
            call = None if key in self.outdated else self.calls.get(key)
            if call is not None:
                return call, False
            future = None
            if key in self._pending:
                future = self._pending[key] or Future()
            self._pending[key] = future
        if future is not None:
            return future.result(), False

        try:
            call = self._take_or_make(key, kind, make, poll)
        except BaseException as error:
            with self._lock:
                future = self._pending.pop(key)
            if future is not None:
                future.set_exception(error)
            raise
        with self._lock:
            self.calls[key] = call
            self.outdated.discard(key)
            future = self._pending.pop(key)
        if future is not None:
            future.set_result(call)
        return call, True

    def _take_or_make(
        self, key: str, kind: str, make: Callable[[], Call], poll: Callable[[], object]
    ) -> Call:
        """Return the call from the store; without a store, or if the call is outdated, make it.

        A call that is made is added to the store, if there is one. One of HTTP_KIND is not: what it
        returns may change from run to run.
        """
        if self.store is None or kind == HTTP_KIND:
            return make()
        if key in self.outdated:
            return self.store.make(make)
        return self.store.find_or_make(key, kind, make, poll)

    # The file

    def append(self, **entry: Any) -> None:
        """Add an entry, such as ``notice={...}``, to the run's file; without a file, do nothing."""
        if self.file:
            self.append_json(encode_data(entry))

    def append_json(self, entry: str) -> None:
        """Add an entry that is JSON text to the run's file; without a file, do nothing."""
        if self.file:
            self.write(self.file.append_json, entry)

    def write(self, write: Callable[..., None], *arguments: Any) -> None:
        """Call ``write`` where no interrupt can hit it, and on one thread at a time.

        So a save is never left half done, and an earlier one does not replace a later one.
        """
        shielded(partial(self._write_alone, write, *arguments))

    def _write_alone(self, write: Callable[..., None], *arguments: Any) -> None:
        """Call ``write`` while the lock of the file is held."""
        with self._file_lock:
            write(*arguments)


@dataclass
class SavedRun:
    """What a run file says. Of several entries for the same prompt or step the last one counts."""

    header: Header
    record: Record = field(default_factory=Record)
    """Calls, notices and what a person put in; the values put in are JSON data."""
    prompts: dict[str, str] = field(default_factory=dict)
    """Texts of prompts that were written after the header."""
    settings: JsonObject | None = None
    """Settings that were written after the header."""
    steps: list[JsonObject] = field(default_factory=list)
    """The data of the steps, see ``Step.to_data``."""
    end: End | None = None
    has_later_calls: bool = False
    """Whether calls come after the end: the execution that made them was killed."""

    @classmethod
    def read(cls, path: str | Path, *kinds: str) -> SavedRun:
        """Return what a run file says; with ``kinds``, only of its header and these entries.

        Raises RunFileError if the file cannot be read, is damaged, or is no run file.
        """
        entries = RunFile(Path(path)).entries()
        header = next(entries)
        with damage_errors(path):
            saved = cls(from_data(header, Header))
            saved.add_entries(entries, kinds)
            return saved

    def add_entries(self, entries: Iterable[JsonObject], kinds: Collection[str]) -> None:
        """Add what the entries of a run file of these kinds say; of all kinds if none is given.

        Entries of an unknown kind are ignored. Raises DAMAGED_FILE_ERRORS for another form.
        """
        for entry in entries:
            for kind, data in entry.items():
                if not kinds or kind in kinds:
                    self._read_entry(kind, data)

    def _read_entry(self, kind: str, data: Any) -> None:
        """Add what an entry says. Raises DAMAGED_FILE_ERRORS for another form."""
        match kind:
            case "call":
                call = Call.from_data(data)
                self.record.calls[call.key] = call
                self.has_later_calls = self.end is not None
            case "notice":
                self.record.add_notice(from_data(data, DataNotice))
            case "prompt":
                self.prompts[data["name"]] = data["text"]
            case "settings":
                self.settings = from_data(data, JsonObject)
            case "override":
                put_or_remove(self.record.overrides, data["step"], data["value"])
            case "messages":
                messages = _read_messages(data["value"])
                put_or_remove(self.record.edited_messages, _read_place(data), messages)
            case "reply":
                text = from_data(data["value"], str | None)
                put_or_remove(self.record.edited_replies, _read_place(data), text)
            case "step":
                self.steps.append(from_data(data, JsonObject))
            case "end":
                self.end = from_data(data, End)
                self.has_later_calls = False

    def entries(self) -> Iterator[str]:
        """Yield the entries of a file as JSON: header, notices, calls, what was put in, steps, end.

        An output that is the reply of one of its step's calls is written once (``_without_reply``).
        """
        yield self.header.to_json()
        for call in list(self.record.calls.values()):
            yield f'{{"call":{call.to_json()}}}'
        for entry in self._other_entries():
            yield encode_data(entry)
        if self.end is not None:
            yield self.end.to_json()

    def _other_entries(self) -> Iterator[JsonObject]:
        """Yield the entries that are neither the header nor calls nor the end."""
        for notice in self.record.notices:
            yield {"notice": to_data(notice)}
        for key, value in self.record.overrides.items():
            yield {"override": {"step": key, "value": value}}
        for (key, number), messages in self.record.edited_messages.items():
            yield messages_entry(key, number, messages)
        for (key, number), text in self.record.edited_replies.items():
            yield {"reply": {"step": key, "call": number, "value": text}}
        for step in self.steps:
            yield {"step": _without_reply(step, self.record.calls)}


def messages_entry(key: str, number: int, messages: Iterable[Message] | None) -> JsonObject:
    """Return the entry for messages that a person put in for a model call; None removes them."""
    data = None
    if messages is not None:
        data = [[message.role, message.content] for message in messages]
    return {"messages": {"step": key, "call": number, "value": data}}


def _read_place(data: Any) -> tuple[str, int]:
    """Return the step and the number of the model call that an entry is for."""
    return from_data(data["step"], str), from_data(data["call"], int)


def _read_messages(data: Any) -> Messages | None:
    """Return the messages of an entry, given as pairs of role and text; None for None."""
    if data is None:
        return None
    return tuple(from_data({"role": role, "content": text}, Message) for role, text in data)


def put_or_remove(values: dict[K, V], key: K, value: V | None) -> None:
    """Set the value under a key; None removes it."""
    if value is None:
        values.pop(key, None)
    else:
        values[key] = value


def _without_reply(step: JsonObject, calls: Mapping[str, Call]) -> JsonObject:
    """Return the data of a step, without an output that is the reply of one of its own calls.

    In its place ``output_of_call`` has the key of the first such call, and ``output`` is None: the
    survey of a graph is as large as all the rest of a run. ``calls`` are by key. An output that
    is empty, or no list or object, stays.
    """
    output = step["output"]
    if isinstance(output, dict | list) and output:
        for key in step["calls"]:
            if key in calls and calls[key].reply_to_data() == output:
                return {**step, "output": None, "output_of_call": key}
    return step


class RunFile:
    """A run on disk, to which lines are only ever appended. A gzipped file can be read.

    A killed process loses at most its last line.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._is_gzip = path.suffix == ".gz"
        self._file = disk.AppendedFile(path, "surrogatepass")
        self._unwritten = ""
        """Lines that could not be written yet."""

    def close(self) -> None:
        """Close the file. An entry that is appended later opens it again."""
        self._file.close()

    def append_json(self, entry: str) -> None:
        """Write an entry that is JSON text as one line at the end of the file.

        The file stays open. Raises RunFileError if that fails; the line is then written together
        with the next one.
        """
        self._refuse_gzip()
        self._unwritten += entry + "\n"
        with self._write_errors():
            self._file.append(self._unwritten)
        self._unwritten = ""

    def create(self, entries: Iterable[str]) -> bool:
        """Write a new file with these entries, given as JSON, unless something is at the path.

        Returns whether it was written; it is open then. Raises RunFileError if writing fails; there
        is then no file.
        """
        self._refuse_gzip()
        lines = "".join(f"{entry}\n" for entry in entries)
        with self._write_errors():
            return self._file.create(lines)

    def write(self, entries: Iterable[str]) -> None:
        """Write a new file with these entries, given as JSON, or replace a run file by it.

        The old file stays until the new one is complete. Raises RunFileError if writing fails, and
        if there is a file of another kind, which is not changed.
        """
        self._refuse_gzip()
        with self._write_errors():
            if self._is_other_file():
                raise RunFileError(
                    f"the run was not saved: {self.path} exists and is not a kgwb run file",
                    hint="choose another name for the run; this file was left as it is",
                )
            lines = (f"{entry}\n" for entry in entries)
            disk.write_atomically(self.path, lines, "surrogatepass")

    def entries(self, damaged: list[int] | None = None) -> Iterator[JsonObject]:
        """Yield the entries of the file, the header first.

        An unfinished last line is left out. Raises RunFileError if the file cannot be read, is
        empty, is no run file or one of another version, or has a line that is not JSON; if
        ``damaged`` is given, the numbers of these lines are added to it instead.
        """
        header: Any = None
        try:
            for _, entry in disk.read_json_lines(self.path, damaged):
                if header is None and not damaged:
                    self._check_header(entry)
                    header = entry
                yield entry
        except OSError as exc:
            raise RunFileError(
                f"cannot read the run file {self.path}: {exc.strerror or exc}",
                hint=f"check the path; {RUN_FILE_HINT}",
            ) from exc
        except disk.NotJsonError as exc:
            if header is None:
                self._check_header(None)
            raise RunFileError(
                f"the run file {self.path} is damaged: line {exc.line_number} is not JSON",
                hint="restore the file from a copy, or ask the question again",
            ) from exc
        if header is None and not damaged:
            raise RunFileError(f"the run file {self.path} is empty", hint=RUN_FILE_HINT)

    def _is_other_file(self) -> bool:
        """Return whether the path is that of a folder, or of a file that is not a run file.

        A run file is known by "kgwb_run" in its first line, which a killed process may have left
        unfinished; an empty file counts as one. False if nothing is at the path.
        """
        if not self.path.exists():
            return False
        if self.path.is_file():
            with self.path.open("rb") as file:
                start = file.read(len(_HEADER_START))
            if start in (b"", _HEADER_START):
                return False
        first_entry = None
        with suppress(IsADirectoryError, disk.NotJsonError):
            lines = disk.read_json_lines(self.path)
            _, first_entry = next(lines, (0, None))
        if not isinstance(first_entry, dict):
            return True
        return "kgwb_run" not in first_entry

    def _check_header(self, header: Any) -> None:
        """Raise RunFileError unless the first entry of a file is the header of a run file.

        It must be an object in which "kgwb_run" is FORMAT_VERSION. The error for another number
        names the version of kgwb that wrote the file.
        """
        version = None
        if isinstance(header, dict):
            version = header.get("kgwb_run")
        if type(version) is not int:  # a boolean is no version
            raise RunFileError(f"{self.path} is not a kgwb run file", hint=RUN_FILE_HINT)
        if version != FORMAT_VERSION:
            age = "an older" if version < FORMAT_VERSION else "a newer"
            writer = header.get("kgwb", "unknown version")
            raise RunFileError(
                f"{self.path} was written in run format {version}, by {age} kgwb ({writer}); "
                f"this kgwb reads format {FORMAT_VERSION}",
                hint="open it with the version that wrote it, or ask the question again",
            )

    def _refuse_gzip(self) -> None:
        """Raise RunFileError for a name that ends in ".gz": run files are written uncompressed."""
        if self._is_gzip:
            raise RunFileError(
                f"cannot write the run to {self.path}: run files are written uncompressed",
                hint="give a name without .gz, and gzip the file when the run has ended",
            )

    def _write_errors(self) -> AbstractContextManager[None]:
        """Raise RunFileError if the code inside cannot write the file."""
        return disk.os_errors_as_input_error(
            f"cannot write the run to {self.path}",
            "free some space or save elsewhere; what is in memory is not lost",
            RunFileError,
        )


@contextmanager
def damage_errors(path: str | Path) -> Iterator[None]:
    """Raise RunFileError, "FILE is damaged", in place of errors of the code inside.

    The code inside reads the entries of the run file ``path``. DAMAGED_FILE_ERRORS and InputErrors
    are replaced; a RunFileError is raised as it is.
    """
    try:
        yield
    except RunFileError:
        raise
    except (*DAMAGED_FILE_ERRORS, InputError) as exc:
        raise damaged_file_error(path, exc) from exc


def damaged_file_error(path: str | Path, error: BaseException) -> RunFileError:
    """Return, without raising it, the error of a run file whose entries lack their form.

    An unknown status, origin or kind may come from another version of kgwb, as the hint says.
    """
    problem = repr(error)
    hint = "restore the file from a copy, or ask the question again"
    if isinstance(error, ValidationError):
        problem = describe_validation_error(error)
        if error.errors()[0]["type"] == "literal_error":
            hint = "restore the file from a copy, or open it with the kgwb that wrote it"
    return RunFileError(f"the run file {path} is damaged: {problem}", hint=hint)


def current_settings(settings: Mapping[str, Any], system: str) -> JsonObject:
    """Return the settings that a file of an earlier version names, as they are called now.

    ``earlier_settings.toml`` says how. An old value is replaced by the settings that mean the same,
    unless ``settings`` has these itself. A setting that the file lacks has the value that says what
    was done before it was added.
    """
    table = disk.read_table("run/earlier_settings.toml")
    present = dict(table["added"].get(system, {}))
    replacements: JsonObject = {}
    for name, value in settings.items():
        present[name] = value
        for replaced in table["replaced"]:
            if [name, value] == replaced["was"]:
                del present[name]
                replacements.update(replaced["is"])
    return replacements | present


# Conversations


CONVERSATION_VERSION = 1
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


@frozen
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
    return os.urandom(ID_CHARS // 2).hex()


class ConversationFile:
    """A file of conversations. It need not exist yet."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).expanduser()

    def read(self) -> tuple[KeptConversation, ...]:
        """Return the conversations in the file, the one that was written last at the end.

        They are none if there is no file. Raises InputError, which names the line, for another content.
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
        problem = f"the conversations {self.path} cannot be read"
        try:
            with disk.os_errors_as_input_error(problem, hint):
                for number, data in disk.read_json_lines(self.path):  # noqa: B007  # read below
                    lines.append(_read_line(data))
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
                CONVERSATION_VERSION,
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
    if line.kgwb_conversation != CONVERSATION_VERSION or not 0 <= line.number < line.turns:
        raise ValueError("another version, or a turn that cannot be")
    return line


def _join_lines(lines: Sequence[ConversationLine]) -> KeptConversation:
    """Return the conversation that the lines of one id describe, at least one, in their order."""
    last = lines[-1]
    turns = {line.number: line.turn for line in lines}
    kept = [turns[number] for number in sorted(turns) if number < last.turns]
    return KeptConversation(
        last.id,
        last.saved_at,
        last.system,
        last.graph,
        last.source,
        tuple(kept),
    )
