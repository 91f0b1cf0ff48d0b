"""The hand-ins of a class: found in the folders of learning platforms, checked again, summed up, graded."""

import csv
import json
import os
import subprocess
import sys
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from lab_classes import collect, hand_in, write_zip

import kgwb
from kgwb.cli import main
from kgwb.errors import InputError
from kgwb.labs import LabWork
from kgwb.labs.collecting import collect_hand_ins
from kgwb.labs.one import open_lost_run
from kgwb.labs.pages import render_class_page
from kgwb.labs.points import Grading, save_points
from kgwb.labs.roster import Pseudonyms

QUERY = """SELECT ?film WHERE {{ ?film fl:director fl:Stanley_Kubrick ; fl:runtime ?m {}}} ORDER BY DESC(?m) LIMIT 1"""
PREFIX = "PREFIX fl: <https://kgwb.example/films/> "
EXPLODING_QUERY = PREFIX + "SELECT (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l }"


def do_lab(*, right: bool = True) -> LabWork:
    """Return the work of an honest student."""
    work = kgwb.lab(1, None)
    work.check("1.1", [1])
    if right:
        work.check("1.1", [2, 4, 5])
    work.check("1.4", "https://kgwb.example/films/Solaris_novel")
    run = open_lost_run(4)
    facts = [{"subject": "?answer", "relation": "composer", "object": "Joe Hisaishi"}]
    work.check("1.10", run.override("qir", {"facts": facts, "target": "?answer"}).go())
    return work


def edit(path: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    """Change the JSON of a hand-in as somebody with an editor does."""
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))
    return path


def set_task(task: str, **values: Any) -> Callable[[dict[str, Any]], None]:
    """Return a change that sets values of a task, which is made if it is missing."""
    return lambda data: data["tasks"].setdefault(task, {}).update(values)


@pytest.mark.long
def test_a_forged_answer_disagrees_and_does_not_count(tmp_path: Path) -> None:
    work = do_lab(right=False)
    file = edit(work.hand_in("Ada", tmp_path), set_task("1.1", state="solved"))
    [unchecked] = collect_hand_ins(tmp_path)
    assert unchecked.count_solved("1.1") == 1
    [collected] = collect_hand_ins(tmp_path, check=True)
    assert collected.count_solved("1.1") == 0 and collected.count_solved("1.10") == 1
    assert set(collected.works[0].disagreements) == {"1.1"}
    assert "disagrees" in render_class_page([collected], Grading())
    edit(file, lambda data: data["tasks"]["1.10"]["data"]["run"]["overrides"].clear())
    [again] = collect_hand_ins(tmp_path, check=True)
    assert set(again.works[0].disagreements) == {"1.1", "1.10"}


def test_equal_answers_are_checked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    batches: list[int] = []
    run_process = kgwb.labs.rechecking._run_process  # type: ignore[attr-defined]

    def count(lab: Any, answers: Any) -> Any:
        batches.append(len(answers))
        return run_process(lab, answers)

    monkeypatch.setattr("kgwb.labs.rechecking._run_process", count)
    for number, query in enumerate((QUERY.format(""), QUERY.format("."), QUERY.format(""))):
        work = kgwb.lab(1, None)
        work.check("1.1", [2, 4, 5])
        work.check("1.6", PREFIX + query)
        work.hand_in(f"Student {number}", tmp_path)
    collect_hand_ins(tmp_path, check=True)
    assert batches == [3]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="limits of copies need fork")
@pytest.mark.long
def test_an_answer_that_exceeds_its_limits_takes_no_other_answer_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kgwb.labs.rechecking.PROCESSOR_S", 2)
    work = kgwb.lab(1, None)
    work.check("1.1", [2, 4, 5])
    work.check("1.4", "https://kgwb.example/films/Solaris_novel")
    forged = set_task("1.6", data={"value": EXPLODING_QUERY}, state="solved")
    edit(work.hand_in("Ada", tmp_path), forged)
    [collected] = collect_hand_ins(tmp_path, check=True)
    assert set(collected.works[0].disagreements) == {"1.6"}


def check_in_one_copy(lab: Path, answers: list[Any], setting: str = "") -> list[Any]:
    """What the process that checks a class writes of some answers, which are all in one copy of it."""
    request = {"lab": str(lab), "language": "", "processor_s": 10, "answers": answers}
    one_copy = "import os; os.cpu_count = lambda: 1"
    program = f"{one_copy}\nfrom kgwb.labs import rechecking\n{setting}\nrechecking.main()"
    process = subprocess.run(
        [sys.executable, "-c", program],
        input=json.dumps(request),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return list(map(json.loads, process.stdout.splitlines()))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="limits of copies need fork")
@pytest.mark.parametrize("ending", ["import time; time.sleep(300)", "raise SystemExit"])
def test_a_check_that_does_not_end_well_takes_no_other_with_it(tmp_path: Path, ending: str) -> None:
    lab = tmp_path / "ends.py"
    lab.write_text(
        "from kgwb.labs.tasks import Lab\nLAB = Lab('ends', 'Ends')\n@LAB.task('One')\n"
        f"def check(number: int) -> str:\n    if number == 1:\n        {ending}\n    return ''\n"
    )
    ends, right = (["ends.1", json.dumps({"value": value})] for value in (1, 2))
    setting = "rechecking.ANSWER_TIMEOUT_S = 1"
    assert check_in_one_copy(lab, [right, ends, right], setting) == [[0, ""], [2, ""]]


@pytest.mark.skipif(sys.platform != "linux", reason="a copy's memory is limited on Linux")
def test_memory_that_an_earlier_check_has_kept_is_no_problem_of_a_later_answer(
    tmp_path: Path,
) -> None:
    lab = tmp_path / "keeps.py"
    lab.write_text(
        "from kgwb.labs.rechecking import MEMORY_BYTES\nfrom kgwb.labs.tasks import Lab\n"
        "PAGES = int(open('/proc/self/statm').read().split()[0])\n"
        "MOST = (MEMORY_BYTES - 4096 * PAGES) * 6 // 10\nKEPT = []\n"
        "LAB = Lab('keeps', 'Keeps')\n@LAB.task('One')\n"
        "def check(number: int) -> str:\n    taken = bytearray(MOST)\n"
        "    if number == 1:\n        KEPT.append(taken)\n    return ''\n"
    )
    keeps, takes = (["keeps.1", json.dumps({"value": value})] for value in (1, 2))
    assert check_in_one_copy(lab, [keeps, takes, takes]) == [[0, ""], [2, ""]]


@pytest.mark.parametrize(
    ("place", "student_id", "late"),
    [
        ("lovelaceada_LATE_1234_56789_lab1-Ada.json", "1234", "yes"),
        ("Abgaben/Lovelace_Ada_alovelace_77/lab1.json", "alovelace", ""),
        ("ada+lab1+2026-11-24 19:30:00.1234 UTC+x1/lab1.json", "ada", ""),
        ("alovelace/notebooks/labs/lab1.json", "alovelace", ""),
        ("lab1.json", "", ""),
    ],
)
def test_the_students_id_is_read_from_each_platforms_folders(
    tmp_path: Path, place: str, student_id: str, late: str
) -> None:
    data = hand_in("Ada", tmp_path / "made").read_bytes()
    [row] = collect(write_zip(tmp_path / "all.zip", {place: data}))
    assert (row["student"], row["id"], row["late"]) == ("Ada", student_id, late)


def test_links_broken_zips_and_submissions_without_a_file_are_said(tmp_path: Path) -> None:
    secret = hand_in("Secret", tmp_path / "elsewhere")
    folder = tmp_path / "class"
    folder.mkdir()
    data = hand_in("Ada", tmp_path / "made").read_bytes()
    (folder / "link.json").symlink_to(secret)
    (folder / "linked").symlink_to(secret.parent)
    (folder / "broken.zip").write_bytes(b"PK\x03\x04 no zip")
    (folder / "Bob_7_assignsubmission_file").mkdir()
    nested = write_zip(tmp_path / "nested.zip", {"lab1.json": data})
    write_zip(folder / "all.zip", {"Cleo_8_assignsubmission_file/mine.zip": nested.read_bytes()})
    [collected] = collect_hand_ins(folder)
    assert [work.student_id for work in collected.works] == ["8"]
    assert {work.place for work in collected.missing} == {
        "link.json",
        "linked",
        "broken.zip",
        "Bob_7_assignsubmission_file",
    }


def test_a_zip_that_unpacks_to_gigabytes_is_not_read_whole(tmp_path: Path) -> None:
    write_zip(tmp_path / "bomb.zip", {"lab1.json": b"[" * 50_000_000})
    [collected] = collect_hand_ins(tmp_path)
    [row] = collected.missing
    assert row.place == "bomb.zip/lab1.json" and "large" in row.problem


def test_points_are_weighted_and_lateness_is_told_by_the_time_of_the_platform(
    tmp_path: Path,
) -> None:
    work = do_lab()
    work.hint("1.2")
    for student, time in (("Ada", "24 17:59:00"), ("=cmd()", "25 18:01:00")):
        work.hand_in(student, tmp_path / "class" / f"{student}+lab1+2026-11-{time} UTC")
    options = ["--due=2026-11-24T18:00+00:00", "--points=1.10=2.5", "--late-percent=20"]
    second, first = collect(tmp_path / "class", *options)
    assert (first["late"], second["late"]) == ("no", "yes")
    assert (first["1.10"], first["1.2"], first["total"]) == ("2.5", "0", "4.5")
    assert (first["tries"], first["hints"]) == ("4", "1")
    assert second["total"] == "2.7" and "2 days late" in second["remarks"]
    assert second["student"] == "'=cmd()"  # a spreadsheet must not compute it


@pytest.mark.parametrize(
    ("option", "typed", "repeated"),
    [
        ("--points", "1.1=x", "'x'"),
        ("--points", "1.1=-2", "'-2'"),
        ("--points", "9.9=1", "'9.9'"),
        ("--due", "soon", "'soon'"),
        ("--late-percent", "101", "'101'"),
        ("--late-percent", "ten", "'ten'"),
        ("--by-hand", "nowhere", "nowhere"),
    ],
)
def test_wrong_points_and_times_are_errors_that_repeat_what_was_typed(
    tmp_path: Path, option: str, typed: str, repeated: str, capsys: pytest.CaptureFixture[str]
) -> None:
    hand_in("Ada", tmp_path)
    page = ["--out", str(tmp_path / "x.html")]
    assert main(["labs", "collect", str(tmp_path), option, typed, *page]) == 2
    message, _, _ = capsys.readouterr().err.partition("What to do")
    assert repeated in message


def test_a_misspelt_field_of_a_grading_is_told() -> None:
    with pytest.raises(InputError, match="late_percents"):
        Grading.parse(late_percents=20)


def test_with_pseudonyms_no_name_is_shown_and_a_student_keeps_the_pseudonym(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "class"
    for number, name in enumerate(("Ada Lovelace", "Bob Frost")):
        target = folder / f"{name}_{number}_assignsubmission_file"
        do_lab().hand_in(name, target)
    (folder / "Cleo Broken.json").write_text("{")
    file = tmp_path / "pseudonyms.csv"
    shown = []
    for _ in range(2):
        pseudonyms = Pseudonyms(file)
        [collected] = collect_hand_ins(folder, pseudonyms=pseudonyms)
        page = render_class_page([collected], Grading())
        table = save_points([collected], tmp_path / "points.csv", Grading()).read_text()
        assert not [name for name in ("Ada", "Lovelace", "Frost", "Cleo") if name in page + table]
        shown.append([work.name for work in collected.works])
        pseudonyms.save()
    assert shown[0] == shown[1]
    assert ",Ada Lovelace," in file.read_text()


STUDENTS = ["Ada", "Bob", "Cleo"]
FORMULAS = ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "'=1", "''=1", "'quoted'", "O'Neil", "'"]


@pytest.mark.parametrize("deleted", [[], ["Bob"], ["Cleo"], STUDENTS])
def test_a_pseudonym_is_never_given_to_a_second_student_and_is_no_formula(
    deleted: list[str], tmp_path: Path
) -> None:
    file = tmp_path / "pseudonyms.csv"
    earlier = Pseudonyms(file)
    given = {name: earlier.of_student(name, name) for name in (*FORMULAS, *STUDENTS)}
    earlier.save()
    rows = list(csv.reader(StringIO(file.read_text())))
    assert not [cell for row in rows for cell in row if cell.startswith(("=", "+", "-", "@", "\t"))]
    with file.open("w", newline="") as stream:
        csv.writer(stream).writerows(row for row in rows if row[1] not in deleted)
    later = Pseudonyms(file)
    kept = given.keys() - deleted
    assert {name: later.of_student(name, name) for name in kept} == {n: given[n] for n in kept}
    new = {later.of_student(name, "") for name in ("Dora", "Emil")}
    assert len(new - set(given.values())) == 2


def test_pseudonyms_of_earlier_versions_are_kept_and_one_given_twice_is_an_error(
    tmp_path: Path,
) -> None:
    file = tmp_path / "pseudonyms.csv"
    rows = "pseudonym,student,id\nstudent 2,Bob,\n\nFalcon,Cleo,\nstudent 7,Emil,\n"
    file.write_text(rows)
    pseudonyms = Pseudonyms(file)
    assert pseudonyms.of_student("Cleo", "") == "Falcon"
    assert pseudonyms.of_student("Dora", "") == "student 8"
    file.write_text(f"{rows}student 2,Dora,\n")
    with pytest.raises(InputError, match="student 2"):
        Pseudonyms(file)


def test_the_page_sums_up_by_stage_and_by_the_agent_blamed_first(tmp_path: Path) -> None:
    work = kgwb.lab(1, None)
    run = open_lost_run(4)
    selected = run.output("predicate_selection")
    work.check("1.10", run.override("predicate_selection", selected).go())
    work.check("1.4", "https://kgwb.example/films/Solaris_novel")
    work.discuss("1.1", "It <depends>")
    work.hand_in("Ada", tmp_path)
    [collected] = collect_hand_ins(tmp_path)
    assert "It &lt;depends&gt;" in render_class_page([collected], Grading())
    assert collected.agents_blamed_first("1.10") == [("predicate_selection", 1)]
    assert collected.solved_by_stage()["link"] == (1, 2)
    page = render_class_page([collected], Grading())
    assert "To teach again: understand," in page and "predicate selection 1" in page


def test_the_students_copy_has_the_labs_and_no_solutions(tmp_path: Path) -> None:
    assert main(["labs", "export", "--students", str(tmp_path / "copy")]) == 0
    files = sorted((tmp_path / "copy").iterdir())
    assert [file.name[:2] for file in files] == ["1_", "2_", "3_"]
    text = "".join(file.read_text() for file in files)
    assert "VERIFIABLE" not in text and "labs_solutions" not in text
    assert not [name for name in ("one", "two", "three") if f"kgwb.labs.{name}" in text]
    assert main(["labs", "export", str(tmp_path)]) == 2
