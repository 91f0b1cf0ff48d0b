"""The record of a run: its calls, what a person put in, and the file that both are written to."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any

from kgwb.background import shielded
from kgwb.llm.base import Message
from kgwb.llm.notice import DataNotice
from kgwb.records import encode_data
from kgwb.run.calls import HTTP_KIND, Call, CallSource
from kgwb.run.run_file import RunFile


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
        self.overrides: dict[str, Any] = {}
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
        """Add an entry, such as ``end={...}``, to the run's file; without a file, do nothing."""
        if self.file:
            self.append_json(encode_data(entry))

    def append_json(self, entry: str) -> None:
        """Add an entry that is JSON text to the run's file; without a file, do nothing."""
        if self.file:
            self.write(partial(self.file.append_json, entry))

    def write(self, write: Callable[[], None]) -> None:
        """Call ``write`` where no interrupt can hit it, and on one thread at a time.

        So a save is never left half done, and an earlier one does not replace a later one.
        """

        def write_alone() -> None:
            """Call ``write`` while the lock of the file is held."""
            with self._file_lock:
                write()

        shielded(write_alone)
