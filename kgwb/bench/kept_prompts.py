"""A person's folder of prompts, with the history of what was kept there.

The history is the file ``history.jsonl`` in the folder, one line for each change. A line has the
whole text of each prompt before and after the change, so every earlier state can be restored. The
prompts themselves are files ``SYSTEM/AGENT.md``, which ``--prompts`` reads.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from kgwb import disk, systems
from kgwb.bench.changes import ResultsComparison, load_prompt_texts
from kgwb.bench.figures import LoadedResults, ReportTable
from kgwb.bench.gold_set import time_now
from kgwb.bench.results import parse_json_lines
from kgwb.bench.runner import fingerprint
from kgwb.errors import InputError
from kgwb.run.agents import System
from kgwb.run.prompts import PROMPT_NAME, Prompts
from kgwb.show.html import div, static_page, tag
from kgwb.systems import SystemSource
from kgwb.text import list_first, pluralize, single_line

HISTORY_FILE = "history.jsonl"
PromptTexts = Mapping[str, str | None]
"""The texts of prompts by name; None for a prompt whose file is missing, so that kgwb's own is used."""


class KeptChange(BaseModel, frozen=True):
    """One change of a folder of prompts."""

    number: int
    """Counted from 1."""
    date: str
    """In ISO 8601, with the time zone."""
    note: str = ""
    source: str = ""
    """The results folder that the prompts come from; "" for a change that was undone."""
    models: dict[str, str] = {}
    """The models that the prompts were measured with, by agent; "" is the default."""
    effect: str = ""
    """What the prompts did, in words; "" if they were compared with nothing."""
    fixed: tuple[str, ...] = ()
    """The ids of the questions that the prompts fixed."""
    broken: tuple[str, ...] = ()
    before: dict[str, str | None]
    """The texts that were replaced, as PromptTexts."""
    after: dict[str, str | None]

    @property
    def model_names(self) -> str:
        """The models, each once."""
        return ", ".join(dict.fromkeys(self.models.values()))

    @property
    def questions(self) -> str:
        """A text with the first ids of the questions that were fixed and broken: "fixed a, b; broken c".

        "" without any.
        """
        parts = []
        for word, ids in (("fixed", self.fixed), ("broken", self.broken)):
            if ids:
                parts.append(f"{word} {list_first(ids)}")
        return "; ".join(parts)

    def __str__(self) -> str:
        changed = ", ".join(self.after)
        text = f"{self.number}. {self.date}: {changed}"
        for part in (self.note, self.effect, self.questions, self.model_names):
            if part:
                text += f"; {part}"
        return single_line(text)


class MeasuredPrompts(BaseModel, frozen=True):
    """The prompts of a results folder, with what they did."""

    texts: dict[str, str | None]
    """As PromptTexts, for all prompts of the system whose text is known."""
    unknown_names: tuple[str, ...]
    """Prompts that were changed, but that no saved run used: their text is not known."""
    source: str
    models: dict[str, str]
    effect: str
    fixed: tuple[str, ...]
    broken: tuple[str, ...]


def read_measured_prompts(
    folder: str | Path,
    base: str | Path | None = None,
    system: SystemSource | None = None,
) -> MeasuredPrompts:
    """Read the prompts of a results folder, and compare its results with those of ``base``.

    ``base`` is by default the folder that a retry belongs to. A folder of ``kgwb bench`` without a
    ``base`` is compared with nothing. ``system`` must be given if what was measured is not a system
    by name. Nothing is written. Raises InputError if a folder holds no results.
    """
    results = LoadedResults.read(Path(folder))
    if system is None:
        system = systems.load_system(str(results.config.get("system")))
    base_folder = Path(base) if base else find_base_folder(results.folder)
    effect = ""
    ids: dict[str, list[str]] = {}
    if base_folder is not None:
        comparison = ResultsComparison(LoadedResults.read(base_folder), results)
        effect = _describe_effect(comparison)
        for change in comparison.changes:
            ids.setdefault(change.outcome, []).append(change.before["id"])
    texts, unknown_names = _read_texts(results, systems.resolve_system(system))
    return MeasuredPrompts(
        texts=texts,
        unknown_names=tuple(unknown_names),
        source=str(results.folder),
        models=results.model_specs,
        effect=effect,
        fixed=tuple(ids.get("fixed", ())),
        broken=tuple(ids.get("broken", ())),
    )


def find_base_folder(folder: Path) -> Path | None:
    """Return the results folder that a retry belongs to: FOLDER of FOLDER/retries/NAME.

    Returns None for a folder that stands elsewhere.
    """
    from kgwb.bench.lab import RETRIES_FOLDER

    parent = folder.resolve().parent
    return parent.parent if parent.name == RETRIES_FOLDER else None


def _describe_effect(comparison: ResultsComparison) -> str:
    """Return the outcomes and the F1 of a comparison's summary as one text, without the folder's name."""
    outcomes, *lines = comparison.summary_lines()
    parts = [outcomes.removeprefix(f"{comparison.after.name}: ")]
    for line in lines:
        text = line.strip()
        if text.startswith("F1"):
            parts.append(text)
    return "; ".join(parts)


def _read_texts(results: LoadedResults, system: System) -> tuple[dict[str, str | None], list[str]]:
    """Return the texts of the prompts that were measured, by name, and the names of those that are not known.

    A prompt that is the system's present own one has the text None. The text of another one is that
    of the first saved run that used it, if it has the measured fingerprint; otherwise it is not
    known.
    """
    measured = results.config.get("prompts") or {}
    own = Prompts().for_system(system.prompts)
    names = [name for name in sorted(system.prompt_names) if name in measured]
    sent_texts = load_prompt_texts(results, names)
    texts: dict[str, str | None] = {}
    unknown_names = []
    for name in names:
        own_text = own.text(name)
        sent_text = sent_texts.get(name, "")
        if fingerprint(own_text) == measured[name]:
            texts[name] = None
        elif fingerprint(sent_text) == measured[name]:
            texts[name] = sent_text
        else:
            unknown_names.append(name)
    return texts, unknown_names


class PromptHistory:
    """A folder of prompts with its history."""

    def __init__(self, folder: str | Path) -> None:
        """Read the history of a folder, which need not exist yet.

        A last line that was not written to its end is removed from the file. Raises InputError if
        the history cannot be read.
        """
        self.folder = Path(folder)
        self.changes: list[KeptChange] = []
        """The oldest first."""
        path = self.folder / HISTORY_FILE
        with disk.os_errors_as_input_error(
            f"{path} cannot be used", "name another folder for the kept prompts"
        ):
            disk.truncate_unfinished_line(path)
            if path.exists():
                hint = "correct this line of the file or remove it; the prompts themselves are in other files"
                problem = "is no change of prompts"
                self.changes += parse_json_lines(path, _parse_change, problem, hint)

    def keep(self, measured: MeasuredPrompts, note: str = "") -> KeptChange:
        """Write the prompts of results into the folder, and add a line to the history; return this change.

        With the folder, ``--prompts`` asks as the results did: a prompt that was kgwb's own there
        loses its file. Raises InputError if the folder has these prompts already, or cannot be
        written.
        """
        return self._change(
            measured.texts,
            note=note,
            source=measured.source,
            models=measured.models,
            effect=measured.effect,
            fixed=measured.fixed,
            broken=measured.broken,
        )

    def undo(self, number: int | None = None) -> KeptChange:
        """Restore the prompts as they were before a change, by default the latest one, and return the new change.

        All later changes are taken back, too. The history gets a line of its own for this, so it
        can be undone as well. Raises InputError if there is no such change, or if a file that would
        be replaced was edited by hand since.
        """
        count = len(self.changes)
        if number is None:
            number = count
        if not 1 <= number <= count:
            changes = pluralize(count, "change")
            raise InputError(
                f"the folder of kept prompts {self.folder} has no change {number} to undo",
                hint=f"it has {changes}; kgwb keep {self.folder} lists them",
            )
        wanted: dict[str, str | None] = {}
        for change in reversed(self.changes[number - 1 :]):
            wanted.update(change.before)
        self._check_not_edited(wanted)
        return self._change(wanted, note=f"undo of {number}")

    def _check_not_edited(self, names: Mapping[str, object]) -> None:
        """Raise InputError if the file of one of these prompts is not as the history last wrote it."""
        kept = self.texts_after(len(self.changes))
        for name in names:
            if self._present_text(name) != kept.get(name):
                raise InputError(
                    f"nothing was undone: {self.folder / name}.md was edited after it was kept, and the edit would "
                    "be lost",
                    hint=f"copy the edited file elsewhere, put the text that was kept (in {HISTORY_FILE}) "
                    "back into it, and undo again",
                )

    def _change(self, texts: PromptTexts, **about: Any) -> KeptChange:
        """Add a line to the history and write the prompts, in this order, so that no text can be lost.

        Only prompts that differ from the present files are written and named; None deletes a file.
        ``about`` are the further fields of the line. Returns the change. Raises InputError if none
        differs, or if the folder cannot be written.
        """
        before = {}
        after = {}
        for name, text in texts.items():
            present = self._present_text(name)
            if present != text:
                before[name] = present
                after[name] = text
        if not after:
            raise InputError(
                f"nothing was kept: {self.folder} already has exactly these prompts",
                hint="name results that were measured with other prompts",
            )
        change = KeptChange(
            number=len(self.changes) + 1,
            date=time_now(),
            before=before,
            after=after,
            **about,
        )
        hint = "name another folder for the kept prompts, or free some space"
        with disk.os_errors_as_input_error(f"cannot write to {self.folder}", hint):
            disk.append_json_line(self.folder / HISTORY_FILE, change.model_dump())
            for name, text in after.items():
                self._write(name, text)
        self.changes.append(change)
        return change

    def _present_text(self, name: str) -> str | None:
        """Return the text of a prompt's file; None without one. Raises PromptError if it is damaged."""
        prompts = Prompts(self.folder)
        if not prompts.has_own(name):
            return None
        return prompts.text(name)

    def _write(self, name: str, text: str | None) -> None:
        """Write the file FOLDER/NAME.md of a prompt, or delete it if the text is None. Raises OSError."""
        path = self.folder / f"{name}.md"
        if text is None:
            path.unlink(missing_ok=True)
        else:
            disk.write_atomically(path, [text])

    def texts_after(self, number: int) -> dict[str, str | None]:
        """Return the texts of all prompts that the history names, as they were after a change.

        0 stands for before the first change. A text is None for a prompt without a file.
        """
        texts: dict[str, str | None] = {}
        for change in reversed(self.changes):
            texts.update(change.before)
        for change in self.changes[:number]:
            texts.update(change.after)
        return texts

    def compare(self, first: int, second: int) -> Iterator[str]:
        """Yield the lines that differ between the states after two changes, as a unified diff.

        0 is the state before the first change. Raises InputError for a number that is no change.
        """
        count = len(self.changes)
        for number in (first, second):
            if not 0 <= number <= count:
                raise InputError(
                    f"the folder of kept prompts {self.folder} has no change {number}",
                    hint=f"give numbers from 0, the state before the first change, to {count}",
                )
        texts = self.texts_after(first)
        new_texts = self.texts_after(second)
        for name, text in texts.items():
            lines = _split_lines(text)
            new_lines = _split_lines(new_texts[name])
            titles = (f"{name}.md after {first}", f"{name}.md after {second}")
            yield from difflib.unified_diff(lines, new_lines, *titles, lineterm="")

    def to_table(self) -> ReportTable:
        """Return the history as a table with a row for each change, the latest first."""
        headers = ("", "date", "changed", "note", "effect", "questions", "model")
        rows = []
        for change in reversed(self.changes):
            rows.append(
                (
                    change.number,
                    change.date[:16].replace("T", " "),
                    ", ".join(change.after),
                    change.note,
                    change.effect,
                    change.questions,
                    change.model_names,
                )
            )
        return ReportTable(headers, rows)

    def __repr__(self) -> str:
        lines = [f"PromptHistory({str(self.folder)!r})"]
        lines += map(str, self.changes)
        if not self.changes:
            lines.append("nothing was kept yet")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        if not self.changes:
            folder = tag("code", str(self.folder))
            message = div("note calm", "Nothing was kept in ", folder, " yet.")
            return static_page(message)
        return self.to_table()._repr_html_()


def _split_lines(text: str | None) -> list[str]:
    """Return the lines of a prompt; none without a text."""
    if text is None:
        return []
    return text.splitlines()


def _parse_change(data: Any) -> KeptChange:
    """Return the change that the data of a line describe.

    Raises ValueError if they are none, or if a prompt's name leads out of the folder.
    """
    change = KeptChange.model_validate(data)
    for name in (*change.before, *change.after):
        if not PROMPT_NAME.fullmatch(name):
            raise ValueError(f"{name!r} is not the name of a prompt")
    return change
