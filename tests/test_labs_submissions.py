"""One class in each form in which platforms give submissions out: the same rows, and none with another's points."""

import csv
import json
import os
import re
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZipFile, ZipInfo

import pytest
from lab_classes import RIGHT, hand_in, write_zip

from kgwb.labs.collecting import collect_hand_ins
from kgwb.labs.pages import render_class_page
from kgwb.labs.points import Grading, save_points
from kgwb.labs.rows import CollectedHandIns

Files = dict[str, bytes]
"""The files of a submission by their names."""


class Works:
    """Hand-ins as bytes, each work with its own identity."""

    def __init__(self, folder: Path) -> None:
        self._data = json.loads(hand_in("nobody", folder, [1], RIGHT).read_text())
        self._count = 0

    def write(self, student: str, **values: Any) -> bytes:
        """A new work of a student, with some values of the file changed."""
        self._count += 1
        data = self._data | {"student": student, "work_id": f"{self._count:08x}"} | values
        written = f"2026-11-24T18:{self._count:02}:00.000+00:00"
        return json.dumps({**data, "written": values.get("written", written)}).encode()

    def hand_in(self, student: str, **values: Any) -> tuple[str, Files]:
        """The submission of a new work, whose file has the student's name."""
        return student, {f"{student}.json": self.write(student, **values)}


def write_submissions(works: Works) -> Iterator[tuple[str, Files]]:
    """Yield 36 submissions of 25 kinds, each with who handed in."""
    for number in range(10):
        yield works.hand_in(f"Honest {number}")
    tried = {"1.1": {"state": "tried", "tries": 1, "answers": ["[1]"]}}
    yield works.hand_in("Wrong", tasks=tried)
    yield "Windows", {"Windows.json": works.write("Windows").decode().encode("utf-16")}
    yield works.hand_in("Newer", kgwb_version="9.9.9")
    yield works.hand_in("Newest", kgwb_version="9.9.9", mood="good")
    older = {f"Older{end}.json": works.write("Older", work_id="") for end in ("", " (1)")}
    yield "Older", older
    yield "Unnamed", {"Unnamed.json": works.write("")}
    original = works.write("Original")
    yield "Original", {"Original.json": original}
    yield "Unchanged", {"Unchanged.json": original}
    lent = works.write("Lender")
    yield "Lender", {"Lender.json": lent}
    yield "Borrower", {"Borrower.json": lent.replace(b"Lender", b"Borrower")}
    early = works.write("TWICE", tasks={}, work_id="twice")
    late = works.write("Twice", work_id="twice")
    yield "Twice", {"Twice.json": early, "Twice (1).json": late}
    kept = works.write("", work_id="kept")
    yield "Kept", {"Kept.json": kept, "Kept (1).json": works.write("Kept", work_id="kept")}
    yield "Anew", {"Anew.json": works.write("Anew"), "Anew (1).json": works.write("Anew")}
    yield "Twin A", {"Twin A.json": works.write("Twin")}
    yield "Twin B", {"Twin B.json": works.write("Twin")}
    yield "Notebook", {"Notebook.ipynb": b"{}"}
    yield "Text", {"Text.txt": b"my answers: 2, 4, 5"}
    yield "Archive", {"Archive.tar.gz": b"\x1f\x8b"}
    yield "Nothing", {}
    yield "Cut", {"Cut.json": works.write("Cut")[:100]}
    yield "Large", {"Large.json": b"[" * 1_000_001}
    yield "Zero", {"Zero.json": b""}
    yield works.hand_in("Other lab", kgwb_lab=99)
    yield works.hand_in("Forged", tasks={"1.1": {"state": "solved"}})
    yield "Zipped", {"Zipped.zip": to_zip({"mine.json": works.write("Zipped")})}
    yield "=1+1", {"=1+1.json": works.write("=1+1\n\nnext")}


def to_zip(files: Files) -> bytes:
    data = BytesIO()
    write_zip(data, files)
    return data.getvalue()


def write_files(folder: Path, files: Files) -> Path:
    """Write files, and of a name that ends in "/" a folder."""
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith("/"):
            path.mkdir()
        else:
            path.write_bytes(data)
    return folder


Submissions = list[tuple[str, Files]]


def place(submissions: Submissions, pattern: str, *, flat: bool = False) -> Files:
    """The files of a class, each in the folder that a pattern names; a flat folder has only empty ones."""
    placed: Files = {}
    for number, (student, files) in enumerate(submissions):
        folder = pattern.format(student=student, number=number)
        if flat and files:
            placed |= files
        else:
            placed[folder] = b""
            placed |= {folder + name: data for name, data in files.items()}
    return placed


def to_otter(submissions: Submissions) -> Files:
    """A zip of each student, as otter exports it."""
    added = {"__zip_filename__": b"lab1_2026_11_24T19_30_00_123456.zip", ".OTTER_LOG": b"x"}
    return {f"{student}.zip": to_zip(files | added) for student, files in submissions}


MOODLE = "{student}_{number}_assignsubmission_file/"
NBGRADER = "submitted/{student}/lab1/"
FORMS: dict[str, Callable[[Submissions, Path], Path]] = {
    "folder": lambda all_of, path: write_files(path, place(all_of, "{student}/")),
    "flat folder": lambda all_of, path: write_files(path, place(all_of, "{student}/", flat=True)),
    "folder of groups": lambda all_of, path: write_files(
        path,
        place(all_of[:20], "A/{student}/")
        | place(all_of[20:32], "B/{student}/")
        | place(all_of[32:], "of three/{student}/"),
    ),
    "folder with a name like those of ILIAS": lambda all_of, path: write_files(
        path, place(all_of, "class_lab_1/{student}/")
    ),
    "Moodle zip": lambda all_of, path: (
        write_files(path, {"all.zip": to_zip(place(all_of, MOODLE))}) / "all.zip"
    ),
    "nbgrader zip": lambda all_of, path: write_files(
        path, {"course.zip": to_zip(place(all_of, NBGRADER))}
    ),
    "otter zips": lambda all_of, path: write_files(path, to_otter(all_of)),
}


def describe(collected: CollectedHandIns, folder: Path) -> list[tuple[str, ...]]:
    """The cells of the table without what the form of a class changes: ids, paths, and times of the disk."""
    places = {row.place: row.file_name for row in collected.rows}
    rows = []
    table = save_points([collected], folder / "points.csv", Grading()).read_text(encoding="utf-8")
    for row in csv.DictReader(table.splitlines()):
        remarks = re.sub("(not counted: )[^,]*/", r"\1", row["remarks"])
        for path in sorted(places, key=len, reverse=True):
            remarks = remarks.replace(path, places[path])
        assert not set("\r\n") & set("".join(row.values()))
        assert not any(cell.startswith(("=", "+", "-", "@")) for cell in row.values())
        rows.append((row["student"], row["1.1"], row["total"], row["tries"], remarks))
    return sorted(rows)


@pytest.fixture(scope="module")
def submissions(tmp_path_factory: pytest.TempPathFactory) -> Submissions:
    return list(write_submissions(Works(tmp_path_factory.mktemp("works"))))


@pytest.fixture(scope="module")
def in_folders(
    submissions: Submissions, tmp_path_factory: pytest.TempPathFactory
) -> list[tuple[str, ...]]:
    """The rows of the class in a folder with a folder for each student."""
    path = tmp_path_factory.mktemp("folders")
    [collected] = collect_hand_ins(FORMS["folder"](submissions, path / "class"))
    return describe(collected, path)


@pytest.mark.timeout(10)
def test_a_name_of_many_spaces_is_read_at_once(tmp_path: Path) -> None:
    name = "a" + " " * 60_000 + "b.json"
    with ZipFile(tmp_path / "all.zip", "w") as archive:
        archive.write(hand_in("Ada", tmp_path / "made"), name)
    (tmp_path / "made").rename(tmp_path.parent / f"{tmp_path.name} made")
    [collected] = collect_hand_ins(tmp_path)
    assert [work.file_name for work in collected.works] == [name]


@pytest.mark.parametrize("form", FORMS)
def test_a_class_has_the_same_rows_in_every_form(
    submissions: Submissions, in_folders: list[tuple[str, ...]], form: str, tmp_path: Path
) -> None:
    [collected] = collect_hand_ins(FORMS[form](submissions, tmp_path / "class"))
    assert describe(collected, tmp_path) == in_folders


def test_each_submission_has_a_row_and_none_has_the_points_of_another(
    submissions: Submissions, in_folders: list[tuple[str, ...]]
) -> None:
    points: dict[str, list[str]] = {}
    for student, _, total, _, _ in in_folders:
        points.setdefault(student, []).append(total)
    shown = {"=1+1": "'=1+1 next", "Unchanged": "Original", "Twin A": "Twin", "Twin B": "Twin"}
    expected = {shown.get(student, student): ["1"] for student, _ in submissions}
    for student in ("Original", "Twin", "Anew", "Older"):  # each file or work has a row
        expected[student] = ["1", "1"]
    without = "Wrong,Newest,Notebook,Text,Archive,Nothing,Cut,Large,Zero,Other lab"
    assert points == expected | {student: ["0"] for student in without.split(",")}


@pytest.mark.parametrize(
    ("student", "said"),
    [
        ("Original", "one work"),
        ("Borrower", "one work"),
        ("Twin", "2 hand-ins have one name: Twin (Twin A.json), Twin (Twin B.json)"),
        ("Twice", "not counted: Twice.json"),
        ("Newer", "9.9.9"),
        ("Newest", "written by kgwb 9.9.9, this is"),
        ("Notebook", "Notebook.ipynb"),
        ("Archive", "Archive.tar.gz"),
        ("Nothing", "nothing"),
        ("Large", "too large"),
        ("Zero", "empty"),
        ("Other lab", "99"),
        ("Forged", "without a try"),
    ],
)
def test_each_row_says_what_is_remarkable_about_it(
    in_folders: list[tuple[str, ...]], student: str, said: str
) -> None:
    remarks = [row[-1] for row in in_folders if row[0] == student]
    assert remarks and all(said in remark for remark in remarks)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (b"2026-11-24 12:00:00.5 Europe/Berlin\n", "2026-11-24T11:00:00.500000+00:00"),
        (b"2026-11-24T12:00:00+01:00", "2026-11-24T11:00:00.000"),
        (b"2026-11-24 11:00:00", "2026-11-24T11:00:00.000"),
        (b"2026-11-24 11:00:00 Europe", "2026-11-24T18:"),
        (b"yesterday", "2026-11-24T18:"),
    ],
)
def test_the_time_of_nbgraders_file_counts(
    submissions: Submissions, tmp_path: Path, written: bytes, read: str
) -> None:
    files = place(submissions[:2], NBGRADER)
    files["submitted/Honest 0/lab1/timestamp.txt"] = written
    files["source/lab1/lab1.ipynb"] = b"{}"
    [collected] = collect_hand_ins(write_files(tmp_path, files))
    times = {row.name: row.when for row in collected.rows}
    assert times["Honest 0"].startswith(read)
    assert len(times) == 2 and times["Honest 1"].startswith("2026-11-24T18:")


@pytest.mark.parametrize(
    ("max_bytes", "problem"),
    [
        (20_000_000, "a zip in a zip in a zip"),
        (99, "too large: more than 99 bytes"),
    ],
)
def test_a_file_of_a_zip_may_have_no_name_be_too_large_or_too_deep(
    max_bytes: int,
    problem: str,
    submissions: Submissions,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("kgwb.labs.submissions.MAX_NESTED_BYTES", max_bytes)
    deep = to_zip({"b.zip": to_zip({"c.json": b"{}"})})
    with ZipFile(tmp_path / "all.zip", "w") as archive:
        archive.writestr(ZipInfo(""), b"x")
        for name, data in place(submissions[:2], "/{student}/").items():
            archive.writestr(name, data)
        archive.writestr("Deep/a.zip", deep)
        archive.writestr("Deep/", b"")
    [collected] = collect_hand_ins(tmp_path / "all.zip")
    assert [row.name for row in collected.works] == ["Honest 0", "Honest 1"]
    [row] = collected.missing
    assert problem in row.problem and "all.zip" in row.place


def test_of_a_zip_in_a_zip_not_every_file_is_read(
    submissions: Submissions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kgwb.labs.submissions.MAX_ZIP_FILES", 2)
    many = to_zip({f"{number}.txt": b"x" for number in range(3)})
    files = place(submissions[:4], "{student}/") | {"Dan/many.zip": many}
    write_zip(tmp_path / "all.zip", files)
    [collected] = collect_hand_ins(tmp_path / "all.zip")
    assert len(collected.works) == 4
    [dan] = collected.missing
    assert "many.zip (only its first 2 files were read), 0.txt, 1.txt;" in dan.problem
    flat = place(submissions[:4], "{student}", flat=True) | {"Dan.zip": many}
    [collected] = collect_hand_ins(write_files(tmp_path / "flat", flat))
    assert "only its first 2 files were read" in str([row.problem for row in collected.missing])


def test_the_file_beside_the_notebook_is_no_earlier_state_of_what_was_handed_in(
    tmp_path: Path,
) -> None:
    works = Works(tmp_path)
    files = {f"Ada/{name}": works.write("Ada", work_id="ada") for name in ("lab1.json", "Ada.json")}
    [collected] = collect_hand_ins(write_files(tmp_path / "class", files))
    assert not collected.remarks and len(collected.rows) == 1


def test_names_of_files_in_any_encoding_are_shown(tmp_path: Path) -> None:
    (tmp_path / "class").mkdir()
    for name in (b"\xff\xfe.ipynb", "é\u202e.txt".encode(), b"two\nlines.txt"):
        Path(os.fsdecode(os.fsencode(tmp_path / "class") + b"/" + name)).write_bytes(b"x")
    [collected] = collect_hand_ins(tmp_path / "class")
    assert len(collected.missing) == 3
    render_class_page([collected], Grading()).encode()
    table = save_points([collected], tmp_path / "points.csv", Grading()).read_text(encoding="utf-8")
    rows = list(csv.reader(table.split("\n")[:-1]))
    assert len(rows) == 4 and len(str(collected).splitlines()) == len(str(collected).split("\n"))
