"""Run files: a run on disk as JSON lines, read and written. ``docs/run_format.md`` describes them.

``SavedRun`` is what a file says, and ``RunFile`` the file with its lines.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from kgwb import disk
from kgwb.disk import __version__
from kgwb.errors import InputError, RunFileError
from kgwb.kg.base import Vocabulary
from kgwb.llm.base import Message
from kgwb.llm.notice import DataNotice
from kgwb.records import (
    JsonObject,
    describe_validation_error,
    encode_compact,
    encode_data,
    from_data,
    to_data,
)
from kgwb.run.answers import Dialogue
from kgwb.run.calls import Call
from kgwb.run.steps import Status, Totals
from kgwb.terms import Triples

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
EARLIER_SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "chatty_kg": {"shows_units": False, "whole_graph": False, "kind_from": "words"},
    "dog": {
        "whole_graph": False,
        "answer_words": "copied",
        "own_knowledge_at": "any_end",
        "role_triples": 3,
    },
    "ragonite": {
        "reads_units": True,
        "writes_comments": True,
        "whole_values": False,
        "last_sees_results": False,
    },
    "robodata": {
        "ingredients": "all",
        "details": "triples",
        "removes": True,
        "assesses_first_turn": False,
        "default_neighbours": 20,
        "query_rows": 50,
    },
    "triad": {
        "whole_graph": False,
        "asks_about_single": False,
        "free_templates": False,
        "links_own_answers": False,
        "relation_examples": False,
        "merge_results": False,
        "may_refuse_queries": False,
        "answer_type_from": "model",
    },
}
"""For each system: settings that a file may not have, with what was done before they were added.

A setting is not here if its value in each profile does what was done before.
"""
SETTING_VALUES: Mapping[tuple[str, Any], Mapping[str, Any]] = {
    ("translate", True): {"translate": "by_words"},
    ("translate", False): {"translate": "never"},
    ("ablation", "unneeded_roles"): {
        "ablation": "none",
        "debate_end": "first_valid",
        "says_last_hop": False,
    },
}
"""For the name of a setting and a value that it no longer has, the settings that mean the same."""
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

    def to_data(self) -> JsonObject:
        """Return the header as JSON data, without ``system_from`` and ``muted`` if they are empty."""
        data: JsonObject = to_data(self)
        for name in ("system_from", "muted"):
            if not data[name]:
                del data[name]
        return data


@dataclass(frozen=True)
class End:
    """How the latest execution ended."""

    status: Status
    position: int
    answer: Any = None
    """JSON data of an Answer, or None."""
    error: str = ""
    totals: JsonObject = field(default_factory=dict)
    """JSON data of Totals."""

    @property
    def recorded_seconds(self) -> float:
        """How long the execution took when its calls were made; 0 if the file does not say."""
        totals: Totals = from_data(self.totals, Totals)
        return totals.live_seconds


Messages = tuple[Message, ...]


@dataclass
class SavedRun:
    """What a run file says. Of several entries for the same prompt or step the last one counts."""

    header: Header
    calls: list[Call] = field(default_factory=list)
    notices: list[DataNotice] = field(default_factory=list)
    prompts: dict[str, str] = field(default_factory=dict)
    """Texts of prompts that were written after the header."""
    settings: JsonObject | None = None
    """Settings that were written after the header."""
    overrides: dict[str, Any] = field(default_factory=dict)
    """Values put in, as JSON data, by step."""
    messages: dict[tuple[str, int], Messages] = field(default_factory=dict)
    """Messages put in, by step and number of the model call."""
    replies: dict[tuple[str, int], str] = field(default_factory=dict)
    """Texts put in for replies, by step and number of the model call."""
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
            return cls.of_entries(header, entries, kinds)

    @classmethod
    def of_entries(
        cls, header: JsonObject, entries: Iterable[JsonObject], kinds: Collection[str] = ()
    ) -> SavedRun:
        """Return what the entries of a run file say; with ``kinds``, only these.

        Entries of an unknown kind are ignored. Raises DAMAGED_FILE_ERRORS for another form.
        """
        saved = cls(from_data(header, Header))
        for entry in entries:
            for kind, data in entry.items():
                if not kinds or kind in kinds:
                    saved._read_entry(kind, data)
        return saved

    def _read_entry(self, kind: str, data: Any) -> None:
        """Add what an entry says. Raises DAMAGED_FILE_ERRORS for another form."""
        match kind:
            case "call":
                self.calls.append(Call.from_data(data))
                self.has_later_calls = self.end is not None
            case "notice":
                self.notices.append(from_data(data, DataNotice))
            case "prompt":
                self.prompts[data["name"]] = data["text"]
            case "settings":
                self.settings = from_data(data, JsonObject)
            case "override":
                _put_or_remove(self.overrides, data["step"], data["value"])
            case "messages":
                _put_or_remove(self.messages, _read_place(data), _read_messages(data["value"]))
            case "reply":
                text = from_data(data["value"], str | None)
                _put_or_remove(self.replies, _read_place(data), text)
            case "step":
                self.steps.append(from_data(data, JsonObject))
            case "end":
                self.end = from_data(data, End)
                self.has_later_calls = False

    def entries(self) -> Iterator[JsonObject]:
        """Yield the entries of a file: header, notices, calls, what was put in, steps, end.

        An output that is the reply of one of its step's calls is written once (``_without_reply``).
        """
        yield self.header.to_data()
        for notice in self.notices:
            yield {"notice": to_data(notice)}
        replies = {}
        for call in self.calls:
            data = call.to_data()
            replies[call.key] = data["reply"]
            yield {"call": data}
        for key, value in self.overrides.items():
            yield {"override": {"step": key, "value": value}}
        for (key, number), messages in self.messages.items():
            yield messages_entry(key, number, messages)
        for (key, number), text in self.replies.items():
            yield {"reply": {"step": key, "call": number, "value": text}}
        for step in self.steps:
            yield {"step": _without_reply(step, replies)}
        if self.end is not None:
            yield {"end": vars(self.end)}


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


def _put_or_remove(values: dict[K, V], key: K, value: V | None) -> None:
    """Set the value under a key; None removes it."""
    if value is None:
        values.pop(key, None)
    else:
        values[key] = value


def _without_reply(step: JsonObject, replies: Mapping[str, Any]) -> JsonObject:
    """Return the data of a step, without an output that is the reply of one of its own calls.

    In its place ``output_of_call`` has the key of the first such call, and ``output`` is None: the
    survey of a graph is as large as all the rest of a run. ``replies`` are by key. An output that
    is empty, or no list or object, stays.
    """
    output = step["output"]
    if isinstance(output, dict | list) and output:
        for key in step["calls"]:
            if replies.get(key) == output:
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
        self._is_kept_open = False
        """Whether the file stays open from one entry to the next."""
        self._unwritten: list[str] = []
        """Lines that could not be written yet."""

    def keep_open(self) -> None:
        """Let the file stay open from one entry to the next, until ``close``."""
        self._is_kept_open = True

    def close(self) -> None:
        """Close the file. An entry that is appended later opens and closes it."""
        self._is_kept_open = False
        self._file.close()

    def append_json(self, entry: str) -> None:
        """Write an entry that is JSON text as one line at the end of the file.

        Raises RunFileError if that fails; the line is then written together with the next one.
        """
        self._refuse_gzip()
        self._unwritten.append(entry + "\n")
        lines = "".join(self._unwritten)
        try:
            self._file.append(lines)
        except OSError as exc:
            raise self._as_run_file_error(exc) from exc
        finally:
            if not self._is_kept_open:
                self._file.close()
        self._unwritten.clear()

    def create(self, entries: Iterable[JsonObject]) -> bool:
        """Write a new file with these entries, unless something is at the path.

        Returns whether it was written. Raises RunFileError if writing fails; there is then no file.
        """
        with self._write_errors():
            lines = "".join(_to_line(entry) for entry in entries)
            return disk.create_file(self.path, lines, "surrogatepass")

    def write(self, entries: Iterable[JsonObject]) -> None:
        """Write a new file with these entries, or replace a run file by it.

        The old file stays until the new one is complete. Raises RunFileError if writing fails, and
        if there is a file of another kind, which is not changed.
        """
        with self._write_errors():
            if self._is_other_file():
                raise RunFileError(
                    f"the run was not saved: {self.path} exists and is not a kgwb run file",
                    hint="choose another name for the run; this file was left as it is",
                )
            lines = (_to_line(entry) for entry in entries)
            disk.write_atomically(self.path, lines, "surrogatepass")

    def entries(self) -> Iterator[JsonObject]:
        """Yield the entries of the file, the header first.

        An unfinished last line is left out. Raises RunFileError if the file cannot be read, is
        empty, is no run file or one of another version, or has a line that is not JSON.
        """
        header: Any = None
        try:
            for _, entry in disk.read_json_lines(self.path):
                if header is None:
                    self._check_header(entry)
                    header = entry
                yield entry
        except OSError as exc:
            raise RunFileError(
                f"cannot read the run file {self.path}: {exc.strerror or exc}",
                hint="check the path",
            ) from exc
        except disk.NotJsonError as exc:
            if header is None:
                self._check_header(None)
            raise RunFileError(
                f"the run file {self.path} is damaged: line {exc.line_number} is not JSON",
                hint="restore the file from a copy, or ask the question again",
            ) from exc
        if header is None:
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

    @contextmanager
    def _write_errors(self) -> Iterator[None]:
        """Raise RunFileError in place of an OSError of the code inside, which writes the file.

        For a name that ends in ".gz" it is raised before the code inside runs, because run files
        are written uncompressed.
        """
        self._refuse_gzip()
        try:
            yield
        except OSError as exc:
            raise self._as_run_file_error(exc) from exc

    def _refuse_gzip(self) -> None:
        """Raise RunFileError if the name ends in ".gz": run files are written uncompressed."""
        if self._is_gzip:
            raise RunFileError(
                f"cannot write the run to {self.path}: run files are written uncompressed",
                hint="give a name without .gz, and gzip the file when the run has ended",
            )

    def _as_run_file_error(self, exc: OSError) -> RunFileError:
        """Return the RunFileError to show for a file that could not be written."""
        return RunFileError(
            f"cannot write the run to {self.path}: {exc.strerror or exc}",
            hint="free some space or save elsewhere; what is in memory is not lost",
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


def current_settings(settings: Mapping[str, Any], system: str) -> dict[str, Any]:
    """Return the settings that a file of an earlier version names, as they are called now.

    An old value is replaced by the settings that mean the same (SETTING_VALUES), unless
    ``settings`` has these itself. A setting that the file lacks has its value of EARLIER_SETTINGS,
    if there is one for the system.
    """
    present = dict(EARLIER_SETTINGS.get(system, {}))
    replacements: dict[str, Any] = {}
    for name, value in settings.items():
        meaning = None
        if isinstance(value, Hashable):
            meaning = SETTING_VALUES.get((name, value))
        if meaning is None:
            present[name] = value
        else:
            replacements.update(meaning)
    return replacements | present


def _to_line(entry: JsonObject) -> str:
    """Return an entry as one line of JSON, with the line break at its end.

    The numbers of a call are written as in the text that its key is the hash of.
    """
    if "call" in entry:
        return encode_compact(entry) + "\n"
    return encode_data(entry) + "\n"
