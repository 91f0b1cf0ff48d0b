"""The command ``kgwb labs``: what a lecturer does with the teaching labs."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from kgwb import disk
from kgwb.cli.arguments import (
    flag,
    option,
    parse_assignments,
    positional,
    print_tables,
    write_and_print,
)
from kgwb.errors import InputError
from kgwb.labs.collecting import collect_hand_ins
from kgwb.labs.hand_grades import GRADES_FILES, HandGrades
from kgwb.labs.hand_ins import write_file
from kgwb.labs.pages import render_class_page, save_student_pages
from kgwb.labs.points import Grading, save_grades, save_points
from kgwb.labs.roster import Pseudonyms, Roster
from kgwb.labs.tasks import make_lab_opener
from kgwb.labs.texts import CATALOGUE_SUFFIX, list_lab_notebooks, load_texts, translate_notebook
from kgwb.text import pluralize

POINTS_SYNTAX = "TASK=POINTS"


@dataclass(kw_only=True)
class LabsCommand:
    """The arguments of ``kgwb labs``, and its work."""

    out: Path = option("FILE", "the page (default: labs.html)", Path("labs.html"))
    check: bool = flag("check the answers again, and mark what disagrees with the file")
    csv: Path | None = option("FILE", "also write a table of the points, for a spreadsheet")
    points: list[str] = option(
        POINTS_SYNTAX, "points of a solved task in the table (default: 1)", []
    )
    due: str | None = option("TIME", "when the hand-ins were due, as 2026-11-24T18:00")
    late_percent: str = option(
        "PERCENT", "what is taken off the points for each day that a hand-in is late", "0"
    )
    roster: Path | None = option(
        "FILE", "the list of the class, as Moodle or Canvas exports it: who did not hand in"
    )
    grades: Path | None = option("FILE", "also write this list with the points in it, to import it")
    pseudonyms: Path | None = option(
        "FILE", "name no students; the file says whose pseudonym is whose, and is kept up to date"
    )
    by_hand: Path | None = option(
        "FOLDER",
        "count the points given by hand, which kgwb.labs.hand_grading keeps in this folder",
    )
    feedback: Path | None = option("FOLDER", "also write a page of feedback for each student")
    lab: Path | None = option("FILE", "collect the hand-ins of a lab of your own, as my_lab.py")
    students: bool = flag("export what students get: the labs without solutions")
    language: str = option(
        "LANGUAGE",
        "the language of the labs: en, de, or a catalogue, as fr.po (default: KGWB_LANGUAGE, else en)",
        "",
    )
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
                f"kgwb labs cannot do {self.action!r} as it was given",
                hint="write kgwb labs collect FOLDER, kgwb labs export --students FOLDER, or kgwb labs new "
                "FOLDER",
            )

    def _write_example(self) -> None:
        """Write the example of a lab, its German catalogue and its test to the folder, and print their paths.

        Raises InputError at the first of them that is there already; those before it have been
        written.
        """
        templates = Path(__file__).parent.parent / "labs" / "new_lab"
        hint = "name another folder: kgwb labs new FOLDER"
        for template in sorted(templates.glob("*.txt")):
            path = self.folder / template.stem
            if path.exists():
                raise InputError(
                    f"the example was not written: {path} already exists",
                    hint=hint,
                )
            write_and_print(path, disk.read_text(template), hint)

    def _export(self) -> None:
        """Write the notebooks of the labs in ``language`` to the folder, and print their paths.

        A catalogue that is a file of one's own is copied beside them. Files of these names are
        replaced. Raises InputError if there is no such language, or a file cannot be written.
        """
        texts = load_texts(self.language)
        copies = {}
        if texts.language.endswith(CATALOGUE_SUFFIX):
            catalogue = Path(texts.language).expanduser()
            copies[catalogue.name] = disk.read_text(catalogue)
        for notebook in list_lab_notebooks():
            copies[notebook.name] = translate_notebook(notebook, texts)
        for name, text in copies.items():
            write_and_print(self.folder / name, text, "choose another folder")

    def _collect(self) -> None:
        """Read the hand-ins in the folder, print their summary, and write the page and the files of the options.

        The page goes to ``out``; with ``csv`` the table of points is written, with ``pseudonyms``
        the table of names. Paths are printed. Raises InputError for points, a due time or a percentage
        of another form, and if there are no hand-ins or a file cannot be written.
        """
        by_hand = HandGrades(self.by_hand) if self.by_hand else None
        if self.by_hand and not any(self.by_hand.glob(GRADES_FILES)):
            raise InputError(
                f"there are no points given by hand in {self.by_hand}",
                hint="name the folder of the files grades.NAME.jsonl, which HandGrading writes",
            )
        grading = Grading.parse(
            points=parse_assignments(self.points, POINTS_SYNTAX),
            due=self.due,
            late_percent=self.late_percent,
            by_hand=by_hand,
        )
        roster = Roster(self.roster) if self.roster else None
        if self.grades and roster is None:
            raise InputError(
                "--grades needs the list of the class", hint="name it with --roster FILE"
            )
        pseudonyms = Pseudonyms(self.pseudonyms) if self.pseudonyms else None
        own_files = [self.out, self.csv, self.pseudonyms, self.roster, self.grades]
        own_files += [self.by_hand, self.feedback]
        collected = collect_hand_ins(
            self.folder,
            check=self.check,
            open_lab=make_lab_opener(self.lab, self.language),
            pseudonyms=pseudonyms,
            roster=roster,
            skipped={path.resolve() for path in own_files if path},
        )
        grading.require_tasks(list(chain.from_iterable(each.lab.tasks for each in collected)))
        print(*collected, sep="\n")
        if by_hand:
            print_tables(*by_hand.list_tables())
        if self.feedback:
            count = save_student_pages(collected, self.feedback, by_hand)
            print(f"feedback for {pluralize(count, 'student')}: {self.feedback}")
        page = write_file(self.out, render_class_page(collected, grading))
        print(f"the page of the class: {page}")
        if self.csv:
            print(f"the points: {save_points(collected, self.csv, grading)}")
        if self.grades and roster:
            print(f"the grades: {save_grades(roster, collected, self.grades, grading)}")
        if pseudonyms:
            pseudonyms.save()
            print(f"whose pseudonyms they are: {pseudonyms.path}")
