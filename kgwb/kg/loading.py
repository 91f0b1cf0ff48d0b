"""What is known of a graph while it is loaded: how far it is, its labels so far, and whether to stop."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, TypeVar

from kgwb.kg.base import Vocabulary
from kgwb.kg.labels import LabelReader
from kgwb.kg.nquads import split_plain_lines
from kgwb.progress import transient_bar
from kgwb.threads import run_in_thread

T = TypeVar("T")
READING_SHARE = 0.25
"""The share of reading in the time of loading a graph into the cache, estimated from profiles."""
STORING_SHARE = 0.9
"""The share of all up to the triples in the store, and the labels in their index."""
_BAR_FORMAT = "{desc}{percentage:3.0f}%|{bar}| {remaining} left"  # the description ends with ": "
_READ_BYTES = 1 << 16
"""So many bytes of N-Quads are read at once. More are slower: they do not fit the processor's cache."""


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

    def is_stopped(self) -> bool:
        """Return whether ``stop`` was called."""
        return self._stopped.is_set()

    def check(self) -> None:
        """Raise LoadStoppedError after ``stop``, else do nothing."""
        if self.is_stopped():
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


def read_nquads(stream: IO[bytes], load: Load) -> Iterator[bytes]:
    """Yield the lines of a stream of N-Quads, some at once, which are counted and searched for labels.

    Raises LoadStoppedError after ``load.stop``.
    """
    while data := stream.read(_READ_BYTES):
        load.check()
        data += stream.readline()
        load.triples += data.count(b"\n")
        load.labels.read(data)
        yield data


def read_if_plain(
    file: Path, load: Load, on_position: Callable[[int], object] = lambda position: None
) -> bool:
    """Read the labels of a file of N-Triples or N-Quads, if it has the form that Oxigraph writes.

    In this form a line has single spaces between its terms, and no blank nodes, comments, triples
    in triples, or escaped characters in IRIs. It can be loaded as it is, and its labels read as
    ``LabelReader`` does. Returns whether the file has this form; if not, a part of it was read.
    Whether IRIs and literals are valid is not checked. ``on_position`` is told how many bytes were
    read. Raises LoadStoppedError after ``load.stop``, and OSError.
    """
    with file.open("rb") as stream:
        while data := stream.read(_READ_BYTES):
            load.check()
            data += stream.readline()
            lines = split_plain_lines(data)
            if lines is None:
                return False
            load.labels.read_lines(lines)
            load.triples += len(lines)
            on_position(stream.tell())
    return True


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
            text = f"{name}: {load.task}, {load.triples:,} triples"
            bar.set_description(text, refresh=False)
            bar.update(load.share - bar.n)

        return run_in_thread(lambda: work(load), poll=show, on_abandon=load.stop)
