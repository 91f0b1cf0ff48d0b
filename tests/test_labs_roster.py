"""The list of a class: who did not hand in, whose a submission is, and the grades in the forms of Moodle and Canvas."""

import csv
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from lab_classes import RIGHT, collect, hand_in

import kgwb
from kgwb.cli import main
from kgwb.errors import InputError
from kgwb.labs.collecting import collect_hand_ins
from kgwb.labs.hand_ins import HandIn, TaskProgress
from kgwb.labs.pages import render_class_page
from kgwb.labs.points import Grading
from kgwb.labs.roster import Pseudonyms, Roster
from kgwb.labs.rows import Submission
from kgwb.labs.tasks import load_lab
from kgwb.run.steps import utc_now

WORKSHEET = (
    "\ufeffIdentifier,Full name,Email address,Status,Grade,Maximum grade,Last modified (submission),"
    "Feedback comments\r\n"
    'Participant 11,Ada Lovelace,ada@uni.example,"Submitted for grading - 1 day late",,5.00,-,\r\n'
    "Participant 12,Bob Frost,bob@uni.example,Submitted for grading,,5.00,-,keep this\r\n"
    "Participant 13,Cleo Moore,cleo@uni.example,No submission,,5.00,-,\r\n"
)
GRADES_OF_MOODLE = (
    "First name;Last name;ID number;Email address;Assignment: Lab 1 (Real)\n"
    "Ada;Lovelace;11;ada@uni.example;-\n"
    "Bob;Frost;12;bob@uni.example;-\n"
    "Cleo;Moore;13;cleo@uni.example;-\n"
)
CANVAS = (
    "Student,ID,SIS User ID,SIS Login ID,Section,Lab 1 (98765)\n"
    "    Points Possible,,,,,5\n"
    '"Lovelace, Ada",11,s1,ada,S1,\n'
    '"Frost, Bob",12,s2,bob,S1,\n'
    '"Moore, Cleo",13,s3,cleo,S1,\n'
)
WORKSHEET_IN_POLISH = WORKSHEET.replace(
    "Identifier,Full name,Email address,Status,Grade,Maximum grade",
    "Identyfikator,Imię i nazwisko,Adres e-mail,Status,Ocena,Maksymalna ocena",
).replace("Participant", "Uczestnik")
PARTICIPANTS_IN_FINNISH = (
    "Etunimi,Sukunimi,ID-numero,Sähköposti,Ryhmät\n"
    "Ada,Lovelace,11,ada@uni.example,A\n"
    "Bob,Frost,12,bob@uni.example,A\n"
    "Cleo,Moore,13,cleo@uni.example,B\n"
)
OWN = "name\nAda Lovelace\nBob Frost\nCleo Moore\n"
ROSTERS = {
    "worksheet": (WORKSHEET, "Grade"),
    "grades of Moodle": (GRADES_OF_MOODLE, "Assignment: Lab 1 (Real)"),
    "worksheet in Polish": (WORKSHEET_IN_POLISH, "Ocena"),
    "participants in Finnish": (PARTICIPANTS_IN_FINNISH, "Lab 1"),
    "Canvas": (CANVAS, "Lab 1 (98765)"),
    "own": (OWN, "Lab 1"),
}
CLASSES = {
    "moodle": {
        11: "Ada Lovelace_11_assignsubmission_file/",
        12: "Bob Frost_12_assignsubmission_file/",
    },
    "canvas": {11: "lovelaceada_11_501_", 12: "frostbob_LATE_12_502_"},
    "names": {11: "", 12: ""},
}


def write_class(folder: Path, places: dict[int, str]) -> Path:
    """The work of Ada, who solved a task, and of Bob, who did not."""
    for number, (name, answer) in {
        11: ("Ada Lovelace", RIGHT),
        12: ("bob  frost", [1]),
    }.items():
        started = utc_now()
        while utc_now() == started:  # the next work has another time
            pass
        made = hand_in(name, folder / "made", answer)
        target = folder / "class" / f"{places[number]}{made.name}"
        target.parent.mkdir(parents=True, exist_ok=True)
        made.rename(target)
    return folder / "class"


@pytest.mark.parametrize("form", CLASSES)
@pytest.mark.parametrize("kind", ROSTERS)
def test_who_did_not_hand_in_has_a_row_and_the_grades_go_to_the_column_of_the_lab(
    tmp_path: Path, form: str, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text, column = ROSTERS[kind]
    folder = write_class(tmp_path, CLASSES[form])
    roster = folder / "class.csv"  # is none of the submissions
    roster.write_text(text, encoding="utf-8", newline="")
    options = ["--points", "1.1=5", "--grades", str(tmp_path / "grades.csv")]
    rows = collect(folder, "--roster", str(roster), *options)
    assert "Cleo" in capsys.readouterr().out
    totals = {row["student"].split()[-1].strip(","): (row["total"], row["remarks"]) for row in rows}
    expected = {"Lovelace": ("5", ""), "Frost": ("0", ""), "Moore": ("0", "nothing was handed in")}
    assert totals in (expected, dict(zip(("Ada", "Bob", "Cleo"), expected.values(), strict=True)))

    delimiter = ";" if ";" in text else ","
    before = list(csv.reader(text.removeprefix("\ufeff").splitlines(), delimiter=delimiter))
    written = (tmp_path / "grades.csv").read_text(encoding="utf-8")
    after = list(csv.reader(written.splitlines(), delimiter=delimiter))
    place = after[0].index(column)
    grades = [row[place] for row in after[1:] if "Points Possible" not in row[0]]
    assert grades[:2] == ["5", "0"] and grades[2:] in ([], [""], ["-"])
    for old, new in zip(before, after, strict=True):
        assert old[:place] == new[:place] and old[place + 1 :] == new[place + 1 :]


def test_a_work_counts_for_who_handed_it_in_whatever_name_it_has(tmp_path: Path) -> None:
    work = kgwb.lab(1, None)
    work.check("1.1", RIGHT)
    for place in CLASSES["moodle"].values():
        work.hand_in("Ada Lovelace", tmp_path / "class" / place)
    (tmp_path / "class.csv").write_text(WORKSHEET)
    [collected] = collect_hand_ins(tmp_path / "class", roster=Roster(tmp_path / "class.csv"))
    assert [row.name for row in collected.works] == ["Ada Lovelace", "Bob Frost"]
    assert all("one work" in " ".join(collected.remarks_on(row)) for row in collected.works)
    assert "one work" in str(collected) and "one work" in render_class_page([collected], Grading())


def test_a_folder_may_have_a_name_in_which_spaces_are_underscores(tmp_path: Path) -> None:
    (tmp_path / "class" / "Bob_Frost").mkdir(parents=True)
    (tmp_path / "class.csv").write_text(OWN)
    [collected] = collect_hand_ins(tmp_path / "class", roster=Roster(tmp_path / "class.csv"))
    assert sorted(row.name for row in collected.rows) == ["Ada Lovelace", "Bob Frost", "Cleo Moore"]


def test_who_is_not_in_the_class_or_has_a_namesake_is_said(tmp_path: Path) -> None:
    for name in ("Ada", "Emil"):
        hand_in(name, tmp_path / "class")
    (tmp_path / "class.csv").write_text("name,id\nAda,1\nAda,2\n")
    [collected] = collect_hand_ins(tmp_path / "class", roster=Roster(tmp_path / "class.csv"))
    assert [len(collected.remarks_on(row)) for row in collected.works] == [1, 1]
    assert len(collected.missing) == 2  # both of this name: it is not clear which of them


def test_absent_students_have_pseudonyms_too(tmp_path: Path) -> None:
    folder = write_class(tmp_path, CLASSES["moodle"])
    (tmp_path / "class.csv").write_text(WORKSHEET)
    pseudonyms = Pseudonyms(tmp_path / "pseudonyms.csv")
    roster = Roster(tmp_path / "class.csv")
    [collected] = collect_hand_ins(folder, pseudonyms=pseudonyms, roster=roster)
    assert {row.name for row in collected.rows} == {"student 1", "student 2", "student 3"}
    assert "Lovelace" not in f"{collected}{collected.rows}" and "Cleo" not in str(collected.rows)
    [absent] = collected.missing
    assert absent.problem == "nothing was handed in"


@pytest.mark.parametrize(
    ("hours", "total", "days"), [(-1, 5, 0), (0, 5, 0), (1, 4, 1), (25, 3, 2), (900, 0, 38)]
)
def test_points_are_taken_off_for_each_day_that_has_begun(
    hours: int, total: float, days: int
) -> None:
    due = datetime(2026, 1, 6, tzinfo=UTC)
    written = (due + timedelta(hours=hours)).isoformat()
    tasks = {"1.1": TaskProgress(state="solved")}
    work = Submission("Ada", hand_in=HandIn(kgwb_lab=1, written=written, tasks=tasks))
    grading = Grading(points={"1.1": 5}, due=due, late_percent=20)
    assert (grading.total_of(load_lab(1), work), grading.days_late(work)) == (total, days)


@pytest.mark.parametrize("open_table", [Roster, Pseudonyms])
@pytest.mark.parametrize(
    "data", ["name;id\nJürgen;1\n".encode("cp1252"), None, b"", b"a,b\n1,2\n", b"name\n"]
)
def test_a_table_that_cannot_be_read_is_an_error(
    tmp_path: Path, open_table: type[Roster | Pseudonyms], data: bytes | None
) -> None:
    path = tmp_path / "class.csv"
    if data is None:
        path.mkdir()
    else:
        path.write_bytes(data)
    with pytest.raises(InputError, match="class"):
        open_table(path)


def test_grades_need_the_list_of_the_class(tmp_path: Path) -> None:
    folder = write_class(tmp_path, CLASSES["names"])
    assert main(["labs", "collect", str(folder), "--grades", str(tmp_path / "grades.csv")]) == 2


@pytest.mark.parametrize("percent", ["-20", "101", "nan"])
def test_being_late_gives_no_points(percent: str) -> None:
    with pytest.raises(InputError):
        Grading.parse(late_percent=percent)
