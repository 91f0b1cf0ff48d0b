"""The command ``kgwb labs``: what a lecturer does with the teaching labs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import kgwb
from kgwb import disk
from kgwb.arguments import option, parse_assignments, positional
from kgwb.errors import InputError

if TYPE_CHECKING:
    from kgwb.labs.tasks import Lab

POINTS_SYNTAX = "TASK=POINTS"


@dataclass(kw_only=True)
class LabsCommand:
    """collect the hand-ins of the teaching labs: one page of the class; or export the labs"""

    out: Path = option("FILE", "the page (default: labs.html)", Path("labs.html"))
    check: bool = option(
        "", "check the answers again, and mark what disagrees with the file", False
    )
    csv: Path | None = option("FILE", "also write a table of the points, for a spreadsheet")
    points: list[str] = option(
        POINTS_SYNTAX, "points of a solved task in the table (default: 1)", []
    )
    due: str | None = option("TIME", "when the hand-ins were due, as 2026-11-24T18:00")
    pseudonyms: Path | None = option(
        "FILE", "name no students; the file says whose pseudonym is whose, and is kept up to date"
    )
    lab: Path | None = option("FILE", "collect the hand-ins of a lab of your own, as my_lab.py")
    students: bool = option("", "export what students get: the labs without solutions", False)
    action: str = positional("ACTION", "collect, export or new")
    folder: Path = positional(
        "FOLDER", "where the students' files are, a folder or a zip; or what to write to"
    )

    def run(self) -> None:
        """Collect the hand-ins of a class, export the labs for students, or write an example of a lab.

        The hand-ins are those in ``folder``, lab by lab: they are printed, and their page is
        written to ``out``. Raises InputError for another action, for an export that is not for
        students, and if there are no hand-ins.
        """
        if self.action == "collect":
            self._collect()
        elif self.action == "export" and self.students:
            self._export()
        elif self.action == "new":
            self._write_example()
        else:
            raise InputError(
                f"kgwb labs has no action {self.action!r} in this form",
                hint="give collect FOLDER, export --students FOLDER, or new FOLDER",
            )

    def _lab_opener(self) -> Callable[[int | str], Lab]:
        """Return what opens a lab by the name in a hand-in: the lab of one's own, or one of kgwb.

        Raises InputError or SettingError if the file of ``lab`` has no lab.
        """
        from kgwb.labs.tasks import load_lab

        if self.lab is None:
            return load_lab
        own = load_lab(str(self.lab))
        return lambda name: own if name == own.number else load_lab(name)

    def _write_example(self) -> None:
        """Write a lab of three tasks and its test to the folder. Raises InputError if one is there."""
        templates = Path(__file__).parent / "labs" / "new_lab"
        for template in sorted(templates.glob("*.txt")):
            path = self.folder / template.stem
            if path.exists():
                raise InputError(f"{path} already exists", hint="choose another folder")
            with disk.os_errors_as_input_error(f"cannot write {path}", "choose another folder"):
                disk.write_atomically(path, [disk.read_text(template)])
            print(path)

    def _export(self) -> None:
        """Copy the notebooks of the labs to the folder. Its files of these names are replaced."""
        package = Path(kgwb.__file__).parent
        installed_folder = package / "_data" / "notebooks"
        notebooks = installed_folder if installed_folder.is_dir() else package.parent / "notebooks"
        with disk.os_errors_as_input_error(
            f"cannot copy the labs to {self.folder}", "choose another folder"
        ):
            for notebook in sorted((notebooks / "labs").glob("*.ipynb")):
                copy = self.folder / notebook.name
                disk.write_atomically(copy, [notebook.read_text(encoding="utf-8")])
                print(copy)

    def _collect(self) -> None:
        """Collect the hand-ins, and write the files that the options name."""
        from kgwb.labs.collecting import collect_hand_ins
        from kgwb.labs.pages import save_class_page
        from kgwb.labs.points import parse_due, parse_points, save_points
        from kgwb.labs.pseudonyms import Pseudonyms

        points = parse_points(parse_assignments(self.points, POINTS_SYNTAX))
        due = parse_due(self.due) if self.due else None
        pseudonyms = Pseudonyms(self.pseudonyms) if self.pseudonyms else None
        collected = collect_hand_ins(
            self.folder, check=self.check, open_lab=self._lab_opener(), pseudonyms=pseudonyms
        )
        print(*collected, sep="\n")
        print(f"the page of the class: {save_class_page(collected, self.out)}")
        if self.csv:
            print(f"the points: {save_points(collected, self.csv, points=points, due=due)}")
        if pseudonyms:
            pseudonyms.save()
            print(f"whose pseudonyms they are: {pseudonyms.path}")
