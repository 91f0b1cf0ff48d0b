"""What is known of a graph while it is loaded: how far it is, its labels so far, and whether to stop."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, TypeVar

from kgwb.kg.base import Vocabulary
from kgwb.kg.labels import LabelReader
from kgwb.progress import transient_bar
from kgwb.threads import run_in_thread

T = TypeVar("T")
READING_SHARE = 0.25
"""The share of reading in the time of loading a graph into the cache, estimated from profiles."""
STORING_SHARE = 0.6
"""The share of all up to the triples in the store."""
LABELS_SHARE = 0.85
"""The share of all up to the labels. The rest is their index."""
_BAR_FORMAT = "{desc}: {percentage:3.0f}%|{bar}|{postfix}, {remaining} left"
_LABELLED_BYTES = 1 << 20
"""The labels are read from so many bytes at once."""


class LoadStoppedError(Exception):
    """Loading was stopped, because nobody waits for it any more."""


class Load:
    """Loading a graph. One thread loads it, and others may ask how far it is, or stop it."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self._stopped = threading.Event()
        self.restart()

    def restart(self) -> None:
        """Begin from the start: nothing is read yet."""
        self.task = "reading"
        self.triples = 0
        """How many were read so far."""
        self.share = 0.0
        """How much of the work is done, from 0 to 1. It is estimated."""
        self.labels = LabelReader(self.vocabulary)
        self.may_be_nested = False
        """Whether a triple in a triple may have been read."""

    def stop(self) -> None:
        """Make the thread that loads the graph end soon, with LoadStoppedError."""
        self._stopped.set()

    def begin(self, task: str, share: float) -> None:
        """Begin another part of the work, when ``share`` of all is done.

        Raises LoadStoppedError after ``stop``.
        """
        self.check()
        self.task = task
        self.share = share

    def check(self) -> None:
        """Raise LoadStoppedError after ``stop``, else do nothing."""
        if self._stopped.is_set():
            raise LoadStoppedError

    def watch_positions(self, sizes: Sequence[int]) -> Callable[[int, int], None]:
        """Return a function that is told the number of a file, and how many of its bytes were read.

        ``sizes`` are the bytes of all files.
        """
        total = max(1, sum(sizes))

        def tell(number: int, position: int) -> None:
            """Note that so many bytes of the file with this number were read."""
            read = sum(sizes[:number]) + position
            self.share = READING_SHARE * read / total

        return tell


class WatchedNQuads:
    """N-Quads that are read from a stream, and while they are, counted and searched for labels."""

    def __init__(self, stream: IO[bytes], load: Load) -> None:
        self._stream = stream
        self._load = load
        self._pieces: list[bytes] = []
        self._bytes = 0

    def read(self, size: int = -1) -> bytes:
        """Return at most ``size`` bytes, none at the end. Raises LoadStoppedError after ``stop``."""
        self._load.check()
        data = self._stream.read(size)
        self._load.triples += data.count(b"\n")
        self._pieces.append(data)
        self._bytes += len(data)
        if self._bytes >= _LABELLED_BYTES or not data:
            self._read_labels()
        return data

    def write_to(self, file: Path) -> None:
        """Write all to a file. Raises LoadStoppedError after ``stop``, and OSError."""
        with file.open("wb") as output:
            while data := self.read(_LABELLED_BYTES):
                output.write(data)

    def _read_labels(self) -> None:
        """Read the labels of the lines that are complete, and keep the rest for the next time."""
        lines, newline, rest = b"".join(self._pieces).rpartition(b"\n")
        if b"<<(" in lines:
            self._load.may_be_nested = True
        self._load.labels.read(lines + newline)
        self._pieces = [rest]
        self._bytes = len(rest)


def load_with_bar(work: Callable[[Load], T], name: str, vocabulary: Vocabulary) -> T:
    """Return what ``work`` returns, and show a progress bar meanwhile if it takes long.

    The work is done on another thread, so that an interrupt can stop it at any time. Only the main
    thread has interrupts and shows a bar; other threads do the work themselves. Raises what the
    work raises.
    """
    load = Load(vocabulary)
    if threading.current_thread() is not threading.main_thread():
        return work(load)
    with transient_bar(total=1.0, bar_format=_BAR_FORMAT) as bar:

        def show() -> None:
            """Draw the bar as far as the work is done."""
            bar.set_description(f"{name}: {load.task}", refresh=False)
            bar.set_postfix_str(f" {load.triples:,} triples", refresh=False)
            bar.update(load.share - bar.n)

        return run_in_thread(lambda: work(load), poll=show, on_abandon=load.stop)
