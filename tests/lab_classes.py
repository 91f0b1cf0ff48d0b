"""What tests of a class share: works that are handed in, zips, and what is collected from them."""

import csv
from io import BytesIO
from pathlib import Path
from typing import TypeVar
from zipfile import ZipFile

import kgwb
from kgwb.cli import main

RIGHT = [2, 4, 5]
"""The right answer to task 1.1."""


def hand_in(student: str, folder: Path, *answers: list[int]) -> Path:
    """Hand in a work of lab 1 with these answers to its first task, and return the file."""
    work = kgwb.lab(1, None)
    for answer in answers:
        work.check("1.1", answer)
    return work.hand_in(student, folder)


F = TypeVar("F", Path, BytesIO)


def write_zip(target: F, files: dict[str, bytes]) -> F:
    """Write a zip of these files, and return where."""
    with ZipFile(target, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return target


def collect(hand_ins: Path, *options: str) -> list[dict[str, str]]:
    """Collect a class with the command, and return the rows of the table of points."""
    table, page = hand_ins.with_name("points.csv"), hand_ins.with_name("class.html")
    command = ["labs", "collect", str(hand_ins), "--csv", str(table), "--out", str(page)]
    assert main([*command, *options]) == 0
    with table.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))
