"""The retries of a results folder: when each was made, why, and what became of its questions."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from kgwb import disk
from kgwb.bench.changes import find_outcomes
from kgwb.bench.figures import LoadedResults, show_folder_name
from kgwb.bench.lab import RETRIES_FOLDER
from kgwb.bench.results import CONFIG_FILE, RESULTS_FILE
from kgwb.errors import InputError
from kgwb.text import pluralize, single_line

NOTE_FILE = "note.txt"
"""The file in a retry's folder with what the person wrote about it."""


@dataclass(frozen=True, slots=True)
class PastRetry:
    """A retry that was made."""

    folder: Path
    began: datetime
    note: str
    """"" if the person wrote none."""
    counts: Counter[str]
    """The number of questions by outcome (``kgwb.bench.changes``)."""

    @property
    def name(self) -> str:
        """What was changed, as the folder's name says it for people."""
        return show_folder_name(self.folder)

    @property
    def effect(self) -> str:
        """How many questions were fixed and broken, of how many."""
        questions = pluralize(self.counts.total(), "question")
        fixed = self.counts["fixed"]
        broken = self.counts["broken"]
        return f"{fixed} fixed, {broken} broken of {questions}"

    def __str__(self) -> str:
        date = self.began.isoformat(" ", "minutes")
        text = f"{date}  {self.name}: {self.effect}"
        if self.note:
            text += f"; {self.note}"
        return single_line(text)


def list_retries(results: LoadedResults) -> list[PastRetry]:
    """Return the retries inside a results folder, the latest first.

    A retry began when its configuration was written. Folders that hold no results, or damaged ones,
    are left out.
    """
    retries = []
    retries_folder = results.folder / RETRIES_FOLDER
    for config_file in retries_folder.glob(f"*/{CONFIG_FILE}"):
        folder = config_file.parent
        if not (folder / RESULTS_FILE).is_file():
            continue
        try:
            after = LoadedResults.read(folder)
        except InputError:
            continue
        began = datetime.fromtimestamp(config_file.stat().st_mtime)
        outcomes = find_outcomes(results, after)
        counts = Counter(outcomes.values())
        retries.append(PastRetry(folder, began, read_note(folder), counts))
    return sorted(retries, key=lambda retry: (retry.began, retry.name), reverse=True)


def read_note(folder: Path) -> str:
    """Return what was written about a retry; "" if nothing was, or it cannot be read."""
    try:
        return disk.read_text(folder / NOTE_FILE).strip()
    except (OSError, UnicodeDecodeError):
        return ""


def write_note(folder: Path, note: str) -> None:
    """Write what a person says about a retry into its folder; an empty note changes nothing.

    Raises InputError if it cannot be written.
    """
    if not note.strip():
        return
    with disk.os_errors_as_input_error(
        f"cannot write to {folder}", "free some space, and check that you may write there"
    ):
        disk.write_atomically(folder / NOTE_FILE, [note.strip(), "\n"], disk.JSON_ENCODING_ERRORS)
