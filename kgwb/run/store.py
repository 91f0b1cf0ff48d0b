"""A store of calls on disk, by content: no run that shares it asks the same twice.

It is one SQLite file, which several processes may use at the same time. It holds nothing that cannot
be asked again, so it may be deleted whenever no run uses it.
"""

from __future__ import annotations

import json
import sqlite3
import threading
import uuid
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from time import sleep
from types import TracebackType
from typing import Any

from filelock import BaseFileLock, FileLock, Timeout

from kgwb.errors import InputError, RunFileError
from kgwb.run.calls import Call
from kgwb.run.run_file import DAMAGED_FILE_ERRORS, RunFile
from kgwb.threads import POLL_INTERVAL_S

STORE_FILE = "kgwb-calls.sqlite"
MAX_STORE_BYTES = 2_000_000_000
"""When a store holds more than this, its oldest calls are dropped."""
DROPPED_SHARE = 0.1
"""The share of the calls that is dropped then."""
BUSY_TIMEOUT_S = 60.0
"""How long one process waits for another one that is writing."""
QUICK_CALL_S = 0.01
"""A call that takes less is written together with others, because writing it alone takes as long."""
MAX_UNWRITTEN_CALLS = 20
"""After so many quick calls they are written."""
_locks: dict[Path, threading.Lock] = {}
"""By store: one thread of this process uses it at a time. SQLite would let the others sleep up to 0.1 s."""
_SCHEMA = """
CREATE TABLE IF NOT EXISTS calls (
    place INTEGER PRIMARY KEY AUTOINCREMENT, address TEXT UNIQUE NOT NULL, data BLOB NOT NULL
);
CREATE TABLE IF NOT EXISTS claims (address TEXT PRIMARY KEY, owner TEXT NOT NULL);
"""


def find_store(folder: Path) -> Path:
    """Return the store of a folder: its own, or that of the nearest folder above it that has one.

    If there is none, this is where its own store will be.
    """
    folder = folder.absolute()
    for place in (folder, *folder.parents):
        if (place / STORE_FILE).is_file():
            return place / STORE_FILE
    return folder / STORE_FILE


class CallStore:
    """The calls of one store, as a run uses them.

    A model call is found by its key, and another call by its key and its graph. Each has the number
    of the ask, too: a question that is asked several times gets new replies each time.

    What is being asked is claimed in the store, so that other threads and processes wait for the
    reply. Each user of a store holds a lock while it has claims. A claim whose lock is free is one of
    a process that was killed; it passes to the next one.

    A model call is in the file when it ends. Quick calls of a graph are written together, so that a
    process that is killed loses at most MAX_UNWRITTEN_CALLS of them.
    """

    def __init__(
        self, path: Path, graph: str, ask: int = 0, max_bytes: int = MAX_STORE_BYTES
    ) -> None:
        """Open a store, which is made if there is none.

        ``graph`` is the identity of the graph, and ``ask`` how often the question was asked before.
        Raises InputError if the file cannot be used.
        """
        self.path = path
        self.made_calls: list[Call] = []
        """Calls that were made for this user, since the store did not have them."""
        self.reused_keys: set[str] = set()
        """Keys of model calls that the store had."""
        self.error: InputError | None = None
        """The first failure to read or write. The calls were then made as without a store."""
        digest = sha256(graph.encode("utf-8", "surrogatepass"))
        self._graph = digest.hexdigest()[:16]
        self._ask = ask
        self._max_bytes = max_bytes
        self._unwritten: dict[str, bytes] = {}
        """The data of calls that are not in the file yet, by address."""
        self._lock = _locks.setdefault(path.absolute(), threading.Lock())
        self._name = uuid.uuid4().hex
        self._owner_lock: BaseFileLock | None = None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._database = sqlite3.connect(
                path, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
            )
            # The mode of the journal is the default: a write-ahead log does not work on the shared
            # drives of several machines. What is lost if the power fails can be asked again.
            self._database.execute("PRAGMA synchronous = OFF")
            self._database.executescript(_SCHEMA)
        except (sqlite3.Error, OSError) as exc:
            raise self._as_input_error(exc) from exc

    def __enter__(self) -> CallStore:
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Write what is not written yet, close the file, and end all claims."""
        self._write_unwritten()
        with self._lock:
            self._database.close()
            if self._owner_lock:
                self._remove_lock(self._owner_lock)
                self._owner_lock = None

    def find(self, key: str) -> Call | None:
        """Return the call with this key; None if the store does not have it, or cannot be read.

        A model call that is found is noted in ``reused_keys``.
        """
        of_model = self._address(key, "model")
        of_graph = self._address(key, "")
        with self._errors_kept():
            data = self._unwritten.get(of_graph)
            if data is None:
                row = self._query(
                    "SELECT data FROM calls WHERE address IN (?, ?)", of_model, of_graph
                )
                data = row[0] if row else None
            if data is not None:
                text = zlib.decompress(data)
                call = Call.from_data(json.loads(text))
                if call.kind == "model":
                    self.reused_keys.add(key)
                return call
        return None

    def find_or_make(
        self, key: str, kind: str, make: Callable[[], Call], poll: Callable[[], object]
    ) -> Call:
        """Return the call with this key; if the store does not have it, make it and store it.

        Of several processes that share the store only one makes a model call; the others wait, and
        call ``poll()`` every POLL_INTERVAL_S. Other calls are made without waiting. Raises what
        ``make`` and ``poll`` raise; nothing is stored then.
        """
        if kind != "model":
            return self.find(key) or self.make(make)
        address = self._address(key, kind)
        while not self._claim(address):
            poll()
            sleep(POLL_INTERVAL_S)
        try:
            return self.find(key) or self.make(make)
        finally:
            with self._errors_kept():
                self._query("DELETE FROM claims WHERE address = ?", address)

    def make(self, make: Callable[[], Call]) -> Call:
        """Make a call, add it to ``made_calls``, and store it in place of one with the same key.

        Raises what ``make`` raises.
        """
        call = make()
        self.made_calls.append(call)
        self._unwritten[self._address(call.key, call.kind)] = _pack(call)
        is_quick = call.kind != "model" and call.seconds < QUICK_CALL_S
        if not is_quick or len(self._unwritten) >= MAX_UNWRITTEN_CALLS:
            self._write_unwritten()
        return call

    def add_run_file(self, path: Path) -> None:
        """Add the calls of a run file that the store does not have yet.

        A file that is missing or damaged adds nothing, or its calls before the damage.
        """
        packed: dict[str, bytes] = {}
        with suppress(RunFileError, *DAMAGED_FILE_ERRORS):
            for entry in RunFile(path).entries():
                if "call" in entry:
                    call = Call.from_data(entry["call"])
                    packed[self._address(call.key, call.kind)] = _pack(call)
        with self._errors_kept():
            self._write(packed, "IGNORE")

    def _address(self, key: str, kind: str) -> str:
        """Return the key of a call's row in the store, "ASK:GRAPH:KEY".

        ASK is how often the question was asked before. GRAPH is empty for a model call, and else
        the digest of the graph that was asked.
        """
        graph = "" if kind == "model" else self._graph
        return f"{self._ask}:{graph}:{key}"

    def _write_unwritten(self) -> None:
        """Write the calls that are not in the file yet. After an error they are tried again."""
        unwritten = dict(self._unwritten)
        with self._errors_kept():
            self._write(unwritten, "REPLACE")
            for address in unwritten:
                self._unwritten.pop(address, None)

    def _write(self, packed: Mapping[str, bytes], conflict: str) -> None:
        """Write calls, by address. Known ones are replaced for "REPLACE", and stay for "IGNORE".

        Raises sqlite3.Error. Then none is written.
        """
        if not packed:
            return
        with self._lock, self._database:
            self._database.execute("BEGIN IMMEDIATE")
            self._database.executemany(
                f"INSERT OR {conflict} INTO calls (address, data) VALUES (?, ?)", packed.items()
            )
        self._keep_within_bound()

    def _keep_within_bound(self) -> None:
        """Drop the oldest calls while the store is too large. The file itself keeps its size."""
        (pages,) = self._query("PRAGMA page_count") or (0,)
        (page_bytes,) = self._query("PRAGMA page_size") or (0,)
        if pages * page_bytes <= self._max_bytes:
            return
        while True:
            (free_pages,) = self._query("PRAGMA freelist_count") or (0,)
            if (pages - free_pages) * page_bytes <= self._max_bytes:
                return
            (count,) = self._query("SELECT count(*) FROM calls") or (0,)
            if not count:
                return
            self._query(
                "DELETE FROM calls WHERE place IN (SELECT place FROM calls ORDER BY place LIMIT ?)",
                max(1, int(count * DROPPED_SHARE)),
            )

    def _query(self, sql: str, *parameters: object) -> tuple[Any, ...] | None:
        """Execute a statement, and return its first row, if it has one. Raises sqlite3.Error."""
        with self._lock:
            row: tuple[Any, ...] | None = self._database.execute(sql, parameters).fetchone()
            return row

    # Claims

    def _claim(self, address: str) -> bool:
        """Claim a call unless a living user has; return whether this user may make it now.

        The claim of a user that has ended is taken over. If the store cannot be written, the result
        is True, so that the call is made.
        """
        self._hold_owner_lock()
        with self._errors_kept():
            owner = self._insert_claim(address)
            if owner == self._name:
                return True
            if owner is None or not self._is_gone(owner):
                return False
            self._query("DELETE FROM claims WHERE address = ? AND owner = ?", address, owner)
            return self._insert_claim(address) == self._name
        return True

    def _insert_claim(self, address: str) -> str | None:
        """Claim a call if nobody has, and return the name of its owner.

        None if another user's claim ended just now.
        """
        self._query("INSERT OR IGNORE INTO claims VALUES (?, ?)", address, self._name)
        row = self._query("SELECT owner FROM claims WHERE address = ?", address)
        if not row:
            return None
        return str(row[0])

    def _hold_owner_lock(self) -> None:
        """Lock a file, unless it is locked already, by which others see that this user is alive."""
        with self._lock:
            if self._owner_lock is None:
                lock = FileLock(self._lock_path(self._name))
                lock.acquire()
                self._owner_lock = lock

    def _is_gone(self, owner: str) -> bool:
        """Return whether a claim's owner has ended or was killed; then remove its lock file."""
        lock = FileLock(self._lock_path(owner))
        try:
            lock.acquire(blocking=False)
        except Timeout:
            return False
        self._remove_lock(lock)
        return True

    def _lock_path(self, owner: str) -> Path:
        """Return the file that a user of the store locks while it lives."""
        return self.path.with_name(f".{STORE_FILE}-{owner}.lock")

    @staticmethod
    def _remove_lock(lock: BaseFileLock) -> None:
        """Release a lock, and delete its file."""
        lock.release()
        with suppress(OSError):
            Path(lock.lock_file).unlink()

    # Errors

    @contextmanager
    def _errors_kept(self) -> Iterator[None]:
        """Catch errors of the database in the code inside, and keep the first one in ``error``."""
        try:
            yield
        except (sqlite3.Error, zlib.error, *DAMAGED_FILE_ERRORS) as exc:
            self.error = self.error or self._as_input_error(exc)

    def _as_input_error(self, exc: Exception) -> InputError:
        """Return the InputError to show for an error of the database."""
        return InputError(
            f"the store of calls {self.path} cannot be used: {exc}",
            hint="check the free space and that you may write this file, and do the same again: it "
            "continues from there; if it is damaged, move it elsewhere: its calls are then asked again",
        )


def _pack(call: Call) -> bytes:
    """Return a call as it is in the file: compressed JSON."""
    text = call.to_json()
    return zlib.compress(text.encode("utf-8", "surrogatepass"), 1)
