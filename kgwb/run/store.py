"""A store of calls on disk, by content: no run that shares it asks the same twice.

It is one SQLite file, which several processes may use at the same time. It holds nothing that cannot
be asked again, so it may be deleted whenever no run uses it.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from time import sleep
from typing import Any, ClassVar

from filelock import BaseFileLock, FileLock, Timeout

from kgwb.background import POLL_INTERVAL_S
from kgwb.errors import InputError, RunFileError
from kgwb.run.record import DAMAGED_FILE_ERRORS, RunFile
from kgwb.run.steps import RESULT_TYPES, Call

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
MAX_REMEMBERED_CALLS = 10_000
"""Calls that a process remembers of a store. When there are more, all are dropped."""
MAX_REMEMBERED_BYTES = 4_000
"""A call that takes more in the file is not remembered."""
_WINDOW_BITS = 12
_MEMORY_LEVEL = 5
"""How a call is compressed. It is short, and zlib would take 80 us to set up what it uses by default."""
_READ_ERRORS = (sqlite3.Error, zlib.error, *DAMAGED_FILE_ERRORS)
"""What using a store raises if its file is damaged, or cannot be read or written."""
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


class _StoreFile:
    """The file of a store, which all its users in this process share.

    It is open as long as somebody uses it: opening a database, and locking a file, takes longer than
    ten calls. One thread uses it at a time; SQLite would let the others sleep up to 0.1 s.
    """

    _open_files: ClassVar[dict[Path, _StoreFile]] = {}
    """By path."""
    _of_parent: ClassVar[list[_StoreFile]] = []
    """Files of the process that this one was forked from. They are never used, and never closed."""
    _opening: ClassVar[threading.Lock] = threading.Lock()
    """Held while a file is opened or closed."""

    def __init__(self, path: Path) -> None:
        """Open the file, which is made if there is none. Raises sqlite3.Error and OSError."""
        self.path = path
        self.claimed: dict[str, threading.Event] = {}
        """What threads of this process are asking, by address. The event is set when that ends."""
        self.users = 0
        self._remembered: dict[str, Call] = {}
        """Calls that this process has written or read, by address. Reading one takes longer than most work."""
        self._lock = threading.Lock()
        self._owner_name = os.urandom(16).hex()
        self._owner_lock: BaseFileLock | None = None
        path.parent.mkdir(parents=True, exist_ok=True)
        self._database = sqlite3.connect(
            path, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
        )
        # A write-ahead log would be faster, but does not work on the shared drives of several
        # machines. What is lost if the power fails can be asked again.
        self._database.execute("PRAGMA synchronous = OFF")
        self._database.execute("PRAGMA journal_mode = TRUNCATE")  # not a new file for each write
        self._database.executescript(_SCHEMA)
        self._page_bytes = self._number("PRAGMA page_size")

    @classmethod
    def acquire(cls, path: Path) -> _StoreFile:
        """Return the open file of a store, which is opened for its first user.

        Raises what opening it raises.
        """
        path = path.absolute()
        with cls._opening:
            file = cls._open_files.get(path)
            if file is None:
                file = cls(path)
                cls._open_files[path] = file
            file.users += 1
        return file

    def release(self) -> None:
        """Close the file if its last user has ended, and end all claims of this process."""
        with self._opening:
            self.users -= 1
            if self.users or self._open_files.get(self.path) is not self:
                return
            del self._open_files[self.path]
            with self._lock:
                with suppress(sqlite3.Error):  # it would be left, empty, beside the store
                    self._database.execute("PRAGMA journal_mode = DELETE")
                self._database.close()
                if self._owner_lock:
                    _remove_lock(self._owner_lock)

    @classmethod
    def after_fork(cls) -> None:
        """Forget the files of the process that this one was forked from: SQLite cannot share them."""
        cls._of_parent.extend(cls._open_files.values())
        cls._open_files.clear()
        cls._opening = threading.Lock()

    def remember(self, address: str, call: Call, size: int) -> None:
        """Remember a call that takes ``size`` bytes in the file, if what it holds cannot be changed."""
        if call.kind in RESULT_TYPES and size <= MAX_REMEMBERED_BYTES:
            if len(self._remembered) >= MAX_REMEMBERED_CALLS:
                self._remembered.clear()
            self._remembered[address] = call.__copy__()

    def find(self, *addresses: str) -> Call | None:
        """Return a copy of the first call that is remembered at one of two addresses, or is in the file.

        Raises what ``_unpack`` raises, and sqlite3.Error.
        """
        for address in addresses:
            call = self._remembered.get(address)
            if call is not None:
                return call.__copy__()
        row = self.query("SELECT address, data FROM calls WHERE address IN (?, ?)", *addresses)
        if row is None:
            return None
        address, data = row
        call = _unpack(data)
        self.remember(address, call, len(data))
        return call

    def _number(self, sql: str) -> int:
        """Return the number that a statement has as its result. Raises sqlite3.Error."""
        row = self.query(sql)
        return int(row[0]) if row else 0

    def query(self, sql: str, *parameters: object) -> tuple[Any, ...] | None:
        """Execute a statement, and return its first row, if it has one. Raises sqlite3.Error."""
        with self._lock:
            row: tuple[Any, ...] | None = self._database.execute(sql, parameters).fetchone()
            return row

    def write(self, packed: Mapping[str, bytes], conflict: str, ended_claim: str = "") -> int:
        """Write calls, by address, and end a claim, all or nothing; return the size in bytes.

        Known calls are replaced for "REPLACE", and stay for "IGNORE". Raises sqlite3.Error.
        """
        with self._lock, self._database:
            self._database.execute("BEGIN IMMEDIATE")
            self._database.executemany(
                f"INSERT OR {conflict} INTO calls (address, data) VALUES (?, ?)", packed.items()
            )
            if ended_claim:
                self._database.execute("DELETE FROM claims WHERE address = ?", (ended_claim,))
            (pages,) = self._database.execute("PRAGMA page_count").fetchone()
            return int(pages) * self._page_bytes

    def keep_within(self, max_bytes: int) -> None:
        """Drop the oldest calls while the store is too large. The file itself keeps its size."""
        while True:
            pages = self._number("PRAGMA page_count") - self._number("PRAGMA freelist_count")
            count = self._number("SELECT count(*) FROM calls")
            if pages * self._page_bytes <= max_bytes or not count:
                return
            self._remembered.clear()
            self.query(
                "DELETE FROM calls WHERE place IN (SELECT place FROM calls ORDER BY place LIMIT ?)",
                max(1, int(count * DROPPED_SHARE)),
            )

    # Claims

    def claim(self, address: str) -> bool:
        """Claim a call unless a living process has; return whether this process may make it now.

        The claim of a process that has ended is taken over. Raises sqlite3.Error.
        """
        self._hold_owner_lock()
        if self._insert_claim(address):
            return True
        row = self.query("SELECT owner FROM claims WHERE address = ?", address)
        if row is None:  # it ended just now
            return False
        owner = str(row[0])
        if owner == self._owner_name:
            return True
        if not self._is_gone(owner):
            return False
        self.query("DELETE FROM claims WHERE address = ? AND owner = ?", address, owner)
        return self._insert_claim(address)

    def _insert_claim(self, address: str) -> bool:
        """Claim a call, and return whether nobody else had."""
        with self._lock:
            cursor = self._database.execute(
                "INSERT OR IGNORE INTO claims VALUES (?, ?)", (address, self._owner_name)
            )
            return cursor.rowcount == 1

    def end_claim(self, address: str) -> None:
        """End the claim of a call. Raises sqlite3.Error."""
        self.query("DELETE FROM claims WHERE address = ?", address)

    def _hold_owner_lock(self) -> None:
        """Lock a file, unless it is locked already, by which others see that this process lives."""
        with self._lock:
            if self._owner_lock is None:
                # Any thread may be the last that uses the store, and releases it
                lock = FileLock(self._lock_path(self._owner_name), thread_local=False)
                lock.acquire()
                self._owner_lock = lock

    def _is_gone(self, owner: str) -> bool:
        """Return whether a claim's owner has ended or was killed; then remove its lock file."""
        lock = FileLock(self._lock_path(owner))
        try:
            lock.acquire(blocking=False)
        except Timeout:
            return False
        _remove_lock(lock)
        return True

    def _lock_path(self, owner: str) -> Path:
        """Return the file that a process locks while it uses the store."""
        return self.path.with_name(f".{STORE_FILE}-{owner}.lock")


if hasattr(os, "register_at_fork"):  # Windows cannot fork
    os.register_at_fork(after_in_child=_StoreFile.after_fork)


class CallStore:
    """The calls of one store, as a run uses them.

    A model call is found by its key, and another call by its key and its graph. Each has the number
    of the ask, too: a question that is asked several times gets new replies each time.

    What is being asked is claimed, among the threads of a process in memory and among processes in
    the store, so that the others wait for the reply. Each process holds a lock once it has claims. A
    claim whose lock is free is one of a process that was killed; it passes to the next one.

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
        self._is_closed = False
        try:
            self._file = _StoreFile.acquire(path)
        except (sqlite3.Error, OSError) as exc:
            raise _as_input_error(path, exc) from exc

    def __enter__(self) -> CallStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Write what is not written yet, and close the file unless others of this process use it.

        Closing it again does nothing.
        """
        if self._is_closed:
            return
        self._is_closed = True
        self._write_unwritten()
        self._file.release()

    def find(self, key: str) -> Call | None:
        """Return the call with this key; None if the store does not have it, or cannot be read.

        A model call that is found is noted in ``reused_keys``.
        """
        of_model = self._address(key, "model")
        of_graph = self._address(key, "")
        data = self._unwritten.get(of_graph)
        call = None
        try:
            call = self._file.find(of_model, of_graph) if data is None else _unpack(data)
        except _READ_ERRORS as exc:
            self._keep_error(exc)
        if call is not None and call.kind == "model":
            self.reused_keys.add(key)
        return call

    def find_or_make(
        self, key: str, kind: str, make: Callable[[], Call], poll: Callable[[], object]
    ) -> Call:
        """Return the call with this key; if the store does not have it, make it and store it.

        Of several processes that share the store only one makes a model call; the others wait, and
        call ``poll()`` every POLL_INTERVAL_S. Other calls are made without waiting. Raises what
        ``make`` and ``poll`` raise; nothing is stored then.
        """
        call = self.find(key)
        if call is not None:
            return call
        if kind != "model":
            return self.make(make)
        address = self._address(key, kind)
        with self._claimed_in_process(address, poll), self._claimed_among_processes(address, poll):
            call = self.find(key)  # another one may have made it meanwhile
            if call is None:
                call = make()
                self._keep(call)
        return call

    @contextmanager
    def _claimed_in_process(self, address: str, poll: Callable[[], object]) -> Iterator[None]:
        """Claim a call among the threads of this process, while the code inside runs.

        While another one has claimed it, ``poll()`` is called every POLL_INTERVAL_S.
        """
        claims = self._file.claimed
        ended = threading.Event()
        while (other := claims.setdefault(address, ended)) is not ended:
            other.wait(POLL_INTERVAL_S)
            poll()
        try:
            yield
        finally:
            del claims[address]
            ended.set()

    @contextmanager
    def _claimed_among_processes(self, address: str, poll: Callable[[], object]) -> Iterator[None]:
        """Claim a call in the file while the code inside runs, which adds it to what is not written yet.

        While another process has claimed it, ``poll()`` is called every POLL_INTERVAL_S. The call is
        written, and the claim ended, in one transaction.
        """
        while not self._claim_in_file(address):
            poll()
            sleep(POLL_INTERVAL_S)
        try:
            yield
        finally:
            self._write_unwritten(address)

    def _claim_in_file(self, address: str) -> bool:
        """Claim a call among processes; return whether it may be made now.

        If the store cannot be written, the result is True, so that the call is made.
        """
        with self._errors_kept():
            return self._file.claim(address)
        return True

    def make(self, make: Callable[[], Call]) -> Call:
        """Make a call, add it to ``made_calls``, and store it in place of one with the same key.

        Raises what ``make`` raises.
        """
        call = make()
        self._keep(call)
        is_quick = call.kind != "model" and call.seconds < QUICK_CALL_S
        if not is_quick or len(self._unwritten) >= MAX_UNWRITTEN_CALLS:
            self._write_unwritten()
        return call

    def _keep(self, call: Call) -> None:
        """Add a call that was made to ``made_calls``, and to what is not written yet."""
        self.made_calls.append(call)
        address = self._address(call.key, call.kind)
        data = _pack(call)
        self._unwritten[address] = data
        self._file.remember(address, call, len(data))

    def add_run_file(self, path: Path) -> None:
        """Add the calls of a run file that the store does not have yet.

        A file that is missing adds nothing, and neither does a damaged line.
        """
        packed: dict[str, bytes] = {}
        with suppress(RunFileError):
            for entry in RunFile(path).entries(damaged=[]):
                with suppress(*DAMAGED_FILE_ERRORS):
                    call = Call.from_data(entry["call"])  # a LookupError for any other entry
                    address = self._address(call.key, call.kind)
                    packed[address] = _pack(call)
        with self._errors_kept():
            self._write(packed, "IGNORE")

    def _address(self, key: str, kind: str) -> str:
        """Return the key of a call's row in the store, "ASK:GRAPH:KEY".

        ASK is how often the question was asked before. GRAPH is empty for a model call, and else
        the digest of the graph that was asked.
        """
        graph = "" if kind == "model" else self._graph
        return f"{self._ask}:{graph}:{key}"

    def _write_unwritten(self, ended_claim: str = "") -> None:
        """Write the calls that are not in the file yet, and end a claim.

        After an error the calls are tried again with the next ones; the claim is ended all the same.
        """
        unwritten = dict(self._unwritten)
        with self._errors_kept():
            self._write(unwritten, "REPLACE", ended_claim)
            for address in unwritten:
                self._unwritten.pop(address, None)
            return
        if ended_claim:
            with self._errors_kept():
                self._file.end_claim(ended_claim)

    def _write(self, packed: Mapping[str, bytes], conflict: str, ended_claim: str = "") -> None:
        """Write calls, by address, and drop the oldest ones if the store is too large then.

        Raises sqlite3.Error. If writing fails, none is written.
        """
        if packed or ended_claim:
            size = self._file.write(packed, conflict, ended_claim)
            if size > self._max_bytes:
                self._file.keep_within(self._max_bytes)

    # Errors

    @contextmanager
    def _errors_kept(self) -> Iterator[None]:
        """Catch errors of the database in the code inside, and keep the first one in ``error``."""
        try:
            yield
        except _READ_ERRORS as exc:
            self._keep_error(exc)

    def _keep_error(self, error: Exception) -> None:
        """Keep an error of the database in ``error``, if it is the first one."""
        self.error = self.error or _as_input_error(self.path, error)


def read_calls(path: Path) -> Iterator[Call]:
    """Yield the calls of a store, the oldest first. Nothing is written, and no lock is left.

    Raises InputError if there is no store, or if it cannot be read.
    """
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as database:
            for (data,) in database.execute("SELECT data FROM calls ORDER BY place"):
                yield _unpack(data)
    except _READ_ERRORS as exc:
        raise _as_input_error(path, exc) from exc


def _as_input_error(path: Path, exc: Exception) -> InputError:
    """Return the InputError to show for an error of a store's file."""
    return InputError(
        f"the store of calls {path} cannot be used: {exc}",
        hint="check the free space and that you may write this file, and do the same again: it "
        "continues from there; if it is damaged, move it elsewhere: its calls are then asked again",
    )


def _remove_lock(lock: BaseFileLock) -> None:
    """Release a lock, and delete its file."""
    lock.release()
    with suppress(OSError):
        Path(lock.lock_file).unlink()


def _pack(call: Call) -> bytes:
    """Return a call as it is in the file: JSON, compressed as zlib does it."""
    text = call.to_json()
    compressor = zlib.compressobj(1, zlib.DEFLATED, _WINDOW_BITS, _MEMORY_LEVEL)
    return compressor.compress(text.encode("utf-8", "surrogatepass")) + compressor.flush()


def _unpack(data: bytes) -> Call:
    """Return the call of ``_pack``. Raises zlib.error and DAMAGED_FILE_ERRORS."""
    return Call.from_data(json.loads(zlib.decompress(data)))
