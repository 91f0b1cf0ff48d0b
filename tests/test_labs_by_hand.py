"""Open answers: points and comments by hand, two graders, hidden checks, and feedback to students."""

import html
import shlex
from dataclasses import replace
from pathlib import Path
from zipfile import ZipFile

import pytest
from lab_classes import collect, hand_in
from page import press, text

import kgwb
from kgwb.cli import main
from kgwb.errors import InputError
from kgwb.labs.collecting import collect_hand_ins
from kgwb.labs.hand_grades import HandGrade, HandGrades, OpenAnswer
from kgwb.labs.hand_grading import HandGrading
from kgwb.labs.pages import save_student_pages
from kgwb.labs.tasks import load_lab, make_lab_opener

LAB = """from kgwb.labs.tasks import Lab

LAB = Lab("essays", "Essays")


@LAB.task("What is a triple?", rubric={"says what it has": 2, "gives an example": 1})
def check_text(text: str) -> str:
    return "" if "subject" in text else "it has a subject"


@LAB.task("How many parts?")
def check_number(number: int) -> str:
    return "" if number == 3 else "count again"
"""
HIDDEN = """from pathlib import Path

from kgwb.labs.tasks import find_lab

LAB = find_lab(str(Path(__file__).with_name("essays.py")))


@LAB.hidden("essays.1")
def check_length(text: str) -> str:
    return "" if len(text) > 20 else "it is too short"
"""
ANSWERS = {
    "Ada": ["it has a subject, a predicate and an object", 3],
    "Bob": ["a subject", 2],
    "Cleo": ["a subject", 3],
    "Dan": ["<b>a line</b>", None],
}


@pytest.fixture
def lab(here: Path) -> Path:
    """The file of a lab, beside the hand-ins of four students, two of whom wrote the same."""
    file = here / "essays.py"
    file.write_text(LAB)
    for name, (essay, number) in ANSWERS.items():
        work = kgwb.lab(file, None)
        work.check("essays.1", essay)
        work.check("essays.2", number)
        if name == "Dan":
            work.discuss("essays.1", "It depends.")
        work.hand_in(name, here / "hand_ins" / name)
    return file


def grade_all(grading: HandGrading, subject: str = "1") -> None:
    """Grade the three answers; ``subject`` is what the short one has for the first criterion."""
    for first, second in (("0", "0"), (subject, "0"), ("2", "1")):
        press(grading, "Save and next", **{"points-0": first, "points-1": second})
        assert grading.event_error is None


def test_answers_are_graded_one_by_one_without_names_and_equal_ones_once(lab: Path) -> None:
    grading = HandGrading("hand_ins", "ann", lab=lab)
    assert [answer.answer for answer in grading.answers] == sorted({a for a, _ in ANSWERS.values()})
    seen = ""
    for number in range(len(grading.answers)):
        grading.update({"do": "go", "arg": number})
        seen += text(grading)
    assert not [name for name in ANSWERS if name in seen]
    assert "handed in by 2 students" in seen and "It depends." in seen
    assert "<b>a line" not in str(grading.view())
    grading.update({"do": "go", "arg": 0})
    grade_all(grading, "0.5")
    assert "All are graded" in grading.message and "3 of 3" in repr(grading)
    _, *arguments = shlex.split(grading.message.partition("Give the points: ")[2])
    assert main(arguments) == 0  # it can be copied
    assert 'data-do="' not in grading.static_html()


def test_a_grade_without_points_or_with_too_many_is_refused(lab: Path) -> None:
    grading = HandGrading("hand_ins", "ann", lab=lab)
    for first, second in (
        ("", "1"),
        ("3", "1"),
        ("-1", "1"),
        ("nan", "0"),
        ("1", "x"),
        ("first", "0"),
        ("100 %", "0"),
    ):
        press(grading, "Save and next", **{"points-0": first, "points-1": second})
        assert isinstance(grading.event_error, InputError), (first, second)
    assert not grading.grades
    with pytest.raises(InputError):
        HandGrading("hand_ins", " ", lab=lab)


def test_a_grade_is_kept_at_once_and_can_be_taken_back(lab: Path) -> None:
    grading = HandGrading("hand_ins", "ann", lab=lab)
    first = grading.selected
    press(grading, "Save and next", **{"points-0": "1,5", "points-1": "0", "comment": "short"})
    again = HandGrading("hand_ins", "ann", lab=lab)
    assert again.grades[first].total == 1.5 and again.selected != first
    again.update({"do": "go", "arg": again.answers.index(first)})
    press(again, "Save and next", **{"points-0": "2", "points-1": "0"})
    press(again, "Undo")
    assert again.selected == first and again.grades[first].comment == "short"
    press(again, "Undo")
    press(again, "Undo")
    assert not again.grades and isinstance(again.event_error, InputError)


def test_one_person_in_two_windows_loses_no_grade(lab: Path) -> None:
    first, second = (HandGrading("hand_ins", "ann", lab=lab) for _ in range(2))
    second.update({"do": "go", "arg": 2})
    for window in (first, second):
        press(window, "Save and next", **{"points-0": "1", "points-1": "0"})
    assert len(HandGrades("grades").by_grader("ann")) == 2


def test_two_graders_do_not_see_each_other_and_their_agreement_is_told(lab: Path) -> None:
    grade_all(HandGrading("hand_ins", "ann", lab=lab))
    other = HandGrading("hand_ins", "bob", lab=lab)
    assert "0 of 3 answers graded" in text(other)
    grade_all(other, "2")
    grades = HandGrades("grades")
    agreement, different = grades.list_tables()
    [(names, agreed, kappa)] = agreement.rows
    assert (names, agreed) == ("ann, bob", "2 of 3") and 0.8 < float(kappa) < 1
    assert different.rows == [("essays.1 a subject", "1.0", "2.0")]


def test_points_by_hand_count_in_place_of_those_of_the_check(
    lab: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    grade_all(HandGrading("hand_ins", "ann", lab=lab))
    grade_all(HandGrading("hand_ins", "bob", lab=lab), "2")
    rows = collect(Path("hand_ins"), "--lab", str(lab), "--by-hand", "grades")
    assert "ann, bob" in capsys.readouterr().out
    points = {row["student"]: (row["essays.1"], row["total"]) for row in rows}
    expected = {"Ada": ("3", "4"), "Bob": ("1.5", "1.5"), "Cleo": ("1.5", "2.5"), "Dan": ("0", "0")}
    assert points == expected
    page = Path("class.html").read_text()
    assert page.count("1.5 by hand") == 2 and "<td>2.5</td>" in page
    collect(Path("hand_ins"), "--lab", str(lab))
    assert "by hand" not in Path("class.html").read_text()


def test_a_grade_holds_as_long_as_the_answer_is_the_same(lab: Path) -> None:
    grade_all(HandGrading("hand_ins", "ann", lab=lab))
    work = kgwb.lab(lab, None)
    work.check("essays.1", "a subject and more")
    grades = HandGrades("grades")
    changed = OpenAnswer.of_progress("essays.1", work.submission.progress("essays.1"))
    assert grades.points_of(changed) is None
    work.check("essays.1", "a subject")
    work.check("essays.1", "the right answer counts, and not this later one")
    same = OpenAnswer.of_progress("essays.1", work.submission.progress("essays.1"))
    assert grades.points_of(same) == 1


@pytest.mark.parametrize(
    ("graders", "means", "points"),
    [
        ([(2, 2), (1, 1, 1)], [1.5, 1.5, 1], 3.5),
        ([(1,), (2, 3)], [1.5, 3], 3),
        ([()], [], 0),
        ([(), (2,)], [2], 1),
        ([], [], None),
    ],
)
def test_graders_may_have_graded_by_other_numbers_of_criteria(
    here: Path, graders: list[tuple[float, ...]], means: list[float], points: float | None
) -> None:
    grades = HandGrades("grades")
    for number, given in enumerate(graders):
        grades.add(f"grader{number}", HandGrade(task="1.1", answer="x", points=given))
    answer = OpenAnswer("1.1", "x", "")
    assert (grades.mean_points(answer), grades.points_of(answer)) == (means, points)


def test_a_grade_by_fewer_criteria_is_shown(lab: Path) -> None:
    [answer, *_] = HandGrading("hand_ins", "ann", lab=lab).answers
    HandGrades("grades").add("ann", HandGrade(**answer._asdict(), points=(2,)))
    grading = HandGrading("hand_ins", "ann", lab=lab)
    grading.update({"do": "go", "arg": 0})
    assert grading.selected == answer and str(grading.view()).count('value="2"') == 1


def test_a_damaged_file_of_grades_names_the_line(lab: Path) -> None:
    grade = HandGrade(task="essays.1", answer="x", points=(1, 1))
    grades = HandGrades("grades")
    grades.add("ann", grade)
    with Path("grades", "grades.ann.jsonl").open("a") as stream:
        stream.write('{"task": 1}\n')
    with pytest.raises(InputError, match="line 2"):
        HandGrades("grades")
    with pytest.raises(InputError, match="line 2"):
        grades.add("ann", grade)
    assert len(Path("grades", "grades.ann.jsonl").read_text().splitlines()) == 2


def test_a_hidden_check_runs_at_collecting_only(
    lab: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert kgwb.lab(lab, None).check("essays.1", "a subject").state == "right"
    lab.with_name("collecting.py").write_text(HIDDEN)
    collect(Path("hand_ins"), "--check", "--lab", "essays.py")
    assert "too short" not in capsys.readouterr().out
    options = ["--check", "--lab=collecting.py", "--language=de", "--feedback=back"]
    rows = collect(Path("hand_ins"), *options)
    assert capsys.readouterr().out.count("Prüfung: it is too short") == 2  # Bob and Cleo
    [page] = [path.read_text() for path in Path("back/Cleo").iterdir()]
    assert "verborgene Prüfung: it is too short" in page
    assert page.count("gelöst") == page.count("versucht") == 1  # two tasks in the table
    points = {row["student"]: row["essays.1"] for row in rows}
    assert points == {"Ada": "1", "Bob": "0", "Cleo": "0", "Dan": "0"}


def test_hidden_checks_can_be_added_to_the_labs_of_kgwb(here: Path) -> None:
    file = here / "hidden.py"
    file.write_text(
        HIDDEN.replace('str(Path(__file__).with_name("essays.py"))', "1").replace("essays.1", "1.2")
    )
    hand_in("Ada", here / "hand_ins")
    [collected] = collect_hand_ins(here / "hand_ins", open_lab=make_lab_opener(file, "de"))
    assert collected.lab.tasks["1.2"].hidden_checks and not load_lab(1).tasks["1.2"].hidden_checks
    assert collected.lab.title == load_lab(1, "de").title


def test_each_student_gets_feedback_with_points_and_comments(lab: Path) -> None:
    grading = HandGrading("hand_ins", "ann", lab=lab)
    for answer in grading.answers:
        press(
            grading,
            "Save and next",
            **{"points-0": "1", "points-1": "0.5", "comment": answer.answer[:9] + " & so"},
        )
    options = ["--by-hand", "grades", "--feedback", "feedback"]
    collect(Path("hand_ins"), "--lab", str(lab), *options)
    pages = {path.parent.name: path.read_text() for path in Path("feedback").rglob("*.html")}
    assert set(pages) == set(ANSWERS)
    assert "1 of 2 points" in pages["Ada"] and "it has a  &amp; so" in pages["Ada"]
    assert "count again" in pages["Bob"] and "Cleo" not in pages["Bob"]
    assert "<b>a line" not in pages["Dan"]


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_no_page_of_feedback_takes_the_place_of_another_student_s(here: Path) -> None:
    """Zips have files of one name, and such that lead out of it; names differ in what a system does not allow."""
    students = {
        "Ada": "class/Ada.zip/lab1.json",
        "Bob": "class/Bob.zip/lab1.json",
        "Cleo": "class/Cleo/LAB1.json",
        "Dan": "class/Cleo/lab1.json",
        "Pat O'Brien": "class/Pat O'Brien_7_assignsubmission_file/lab1.json",
        "Eve": "class/all.zip/Eve?/lab1.json",
        "Flo": "class/all.zip/Eve*/lab1.json",
        "Gus": f"class/all.zip/{'ü' * 300}/lab1.json",
        "Hal": "class/two.zip/lab1.json",
        "Ida": "class/two.zip/lab1.json",
        "Jon": "class/bad.zip/x\\..\\..\\..\\up.json",
        "Kim": "class/bad.zip//root.json",
        "Lea": "class/bad.zip/C:\\x.json",
    }
    for student, place in students.items():
        handed_in = hand_in(student, here / "made")
        zipped, is_zip, name = place.partition(".zip/")
        if is_zip:
            (here / "class").mkdir(exist_ok=True)
            with ZipFile(f"{zipped}.zip", "a") as archive:
                archive.write(handed_in, name)
        else:
            Path(place).parent.mkdir(parents=True, exist_ok=True)
            handed_in.rename(place)
    feedback = here / "deep" / "feedback"
    count = save_student_pages(collect_hand_ins(here / "class"), feedback, None)
    pages = {path: path.read_text() for path in here.rglob("*.html")}
    assert all(path.is_relative_to(feedback) for path in pages)
    assert len({str(path).casefold() for path in pages}) == len(students) == count
    for student in students:
        assert sum(html.escape(student) in page for page in pages.values()) == 1
    assert {path.parent.name for path in pages if "lab1" in path.name} > {"Cleo", "feedback"}
    assert feedback / "Pat O'Brien_7_assignsubmission_file/lab1.html" in pages


@pytest.mark.parametrize(
    ("place", "page"),
    [
        ("a/b.c/lab1.v2.json", "a/b.c/lab1.v2.html"),
        ("a.zip/...", "feedback.html"),
        ("a.zip", "feedback.html"),
        ("a/..", "a.html"),
    ],
)
def test_every_place_of_a_hand_in_has_a_page(here: Path, place: str, page: str) -> None:
    hand_in("Ada", here / "made")
    [collected] = collect_hand_ins(here / "made")
    works = tuple(replace(work, place=place) for work in collected.works)
    save_student_pages([replace(collected, works=works)], here / "feedback", None)
    assert [
        path.relative_to("feedback").as_posix() for path in Path("feedback").rglob("*.html")
    ] == [page]
