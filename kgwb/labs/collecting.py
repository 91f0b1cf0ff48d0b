"""The hand-ins of a class: read, the latest of each work kept, remarked on, and checked again on wish."""

from __future__ import annotations

import os.path
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from kgwb.disk import __version__
from kgwb.labs.copies import find_copies
from kgwb.labs.hand_ins import HandIn
from kgwb.labs.pseudonyms import Pseudonyms
from kgwb.labs.rechecking import check_again
from kgwb.labs.roster import Roster
from kgwb.labs.rows import CollectedHandIns, CollectedWork, Remark, group, remark_on
from kgwb.labs.submissions import FoundFile, read_submissions
from kgwb.labs.tasks import Lab, load_lab
from kgwb.text import list_first, look_of

MAX_FOUND = 8
"""Files that are named of a submission without a hand-in."""


def collect_hand_ins(
    folder: str | Path,
    *,
    check: bool = False,
    open_lab: Callable[[int | str], Lab] = load_lab,
    pseudonyms: Pseudonyms | None = None,
    roster: Roster | None = None,
    skipped: Collection[Path] = (),
) -> list[CollectedHandIns]:
    """Read the submissions in a folder or a zip, and return their rows by lab, sorted by the student's name.

    Of several files of one work by one student, the latest counts. Who handed in is part of what a
    work is: a file that two students handed in has two rows. Files of different works are all
    listed, also if their students have the same name; files of earlier versions, which do not name
    their work, are each taken for one. Submissions without a hand-in are listed with the first lab,
    or with lab 1 if there is no hand-in at all. With ``check`` the answers are checked again. With
    ``pseudonyms``, names, ids and files are replaced by them. With a ``roster``, a submission is of
    the student whom it names, and each student without one has a row. ``skipped`` are absolute
    paths of files and folders that nobody handed in. Raises InputError if the folder cannot be
    read or has no files.
    """
    works: list[CollectedWork] = []
    missing: list[CollectedWork] = []
    files = read_submissions(Path(folder), open_lab, skipped)
    for submission in group(files, lambda file: file.student_id or file.place):
        handed_in = _works_of(submission)
        works += handed_in
        if not handed_in:
            missing.append(_make_missing_row(submission))
    if roster:
        works = [replace(work, listed=roster.find(work.file)) for work in works]
        missing = [replace(work, listed=roster.find(work.file)) for work in missing]
    collected: list[CollectedHandIns] = []
    works.sort(key=lambda work: str(work.hand_in.kgwb_lab))
    for lab_works in group(works, lambda work: work.hand_in.kgwb_lab) or [[]]:
        lab = open_lab(lab_works[0].hand_in.kgwb_lab if lab_works else 1)
        if roster:
            missing += _list_absent(roster, [*lab_works, *missing])
        collected.append(
            _collect_lab(lab, lab_works, missing, pseudonyms, check=check, is_listed=bool(roster))
        )
        missing = []
    return collected


def _list_absent(roster: Roster, rows: Sequence[CollectedWork]) -> list[CollectedWork]:
    """Return a row for each student of the class who has none."""
    present = {row.listed for row in rows}
    absent = []
    for student in roster.students:
        if student not in present:
            absent.append(CollectedWork(FoundFile(""), HandIn(kgwb_lab=1), listed=student))
    return absent


def _works_of(submission: Sequence[FoundFile]) -> list[CollectedWork]:
    """Return a row for each hand-in of a student's files. What could not be read stands in the first one."""
    unread = tuple(file for file in submission if file.problem)
    works = []
    for file in submission:
        if file.hand_in:
            works.append(CollectedWork(file, file.hand_in, others=unread))
            unread = ()
    return works


def _make_missing_row(submission: Sequence[FoundFile]) -> CollectedWork:
    """Return the row of a student's files without a hand-in. Its place is their folder, or the only file."""
    first = submission[0]
    places = [file.place for file in submission]
    place = os.path.commonpath(places) or first.student_id
    found = tuple(file for file in submission if not file.place.endswith("/"))
    return CollectedWork(replace(first, place=place), HandIn(kgwb_lab=1), others=found)


def _describe_missing(lab: Lab, work: CollectedWork) -> str:
    """Return what was found in a submission without a hand-in, and which file to ask for."""
    if not work.file.place:
        return "nothing was handed in"
    found = []
    for file in work.others:
        found.append(f"{file.name} ({file.problem})" if file.problem else file.name)
    listed = list_first(found, MAX_FOUND) or "nothing"
    asked = f'{lab.file_stem}-NAME-ID.json, which lab.hand_in("NAME") writes'
    return f"no hand-in, found: {listed}; ask for the file {asked}"


def _with_pseudonyms(
    works: Sequence[CollectedWork], pseudonyms: Pseudonyms | None
) -> list[CollectedWork]:
    """Return copies of the works with pseudonyms for students' names and ids and for the files' paths.

    A student without a name is told apart by the path. Without ``pseudonyms`` they stay as they
    are.
    """
    if pseudonyms is None:
        return list(works)
    hidden = []
    for work in works:
        student = pseudonyms.of_student(work.student or work.file.place, work.file.student_id)
        place = work.file.place and pseudonyms.of_file(work.file.place)
        file = replace(work.file, place=place, hand_in=None, student_id=student, student_name="")
        others = [replace(file, place=pseudonyms.of_file(file.place)) for file in work.others]
        hand_in = work.hand_in.model_copy(update={"student": student})
        listed = work.listed and replace(work.listed, name=student, keys=frozenset())
        hidden.append(
            replace(work, file=file, hand_in=hand_in, listed=listed, others=tuple(others))
        )
    return hidden


def _collect_lab(
    lab: Lab,
    works: Sequence[CollectedWork],
    missing: Sequence[CollectedWork],
    pseudonyms: Pseudonyms | None,
    *,
    check: bool,
    is_listed: bool,
) -> CollectedHandIns:
    """Return the rows of one lab, one for each work, sorted by name and with their remarks.

    With ``check`` the answers are checked again, which starts processes. ``is_listed`` says that
    there is a list of the class.
    """
    remarks = []
    latest = []
    for states in _group_states(works):
        *before, last = _with_pseudonyms(states, pseudonyms)
        latest.append(last)
        for earlier in before:
            if earlier.hand_in.tasks != last.hand_in.tasks:
                text = f"not counted: {earlier.file.place}, an earlier state"
                remarks.append(Remark(text, (last.file.place,)))
    named = _with_distinct_names(latest)
    remarks += _remark_on_names(named)
    remarks += find_copies(lab, named)
    if check:
        found = check_again(lab, [work.hand_in for work in named])
        checked = []
        for work, disagreements in zip(named, found, strict=True):
            checked.append(replace(work, disagreements=disagreements))
        named = checked
    for work in named:
        remarks += [Remark(text, (work.file.place,)) for text in _remark_on_work(lab, work)]
        if is_listed and not work.listed:
            remarks.append(Remark("not clear who of the class it is", (work.file.place,)))
    remarked = []
    for work in named:
        concern = [remark.text for remark in remarks if work.file.place in remark.places]
        remarked.append(replace(work, remarks=tuple(concern)))

    missing_rows = []
    for work in _with_distinct_names(_with_pseudonyms(missing, pseudonyms)):
        missing_rows.append(replace(work, problem=_describe_missing(lab, work)))
    return CollectedHandIns(lab, tuple(remarked), tuple(missing_rows), tuple(remarks))


def _oldest_first(work: CollectedWork) -> tuple[str, str, str]:
    """Return what works are sorted by: when they were written, then their files."""
    return work.when, work.file.changed, work.file.place


def _remark_on_work(lab: Lab, work: CollectedWork) -> Iterator[str]:
    """Yield the remarks on one hand-in: another version, unread files, impossible states, failed checks.

    Impossible is a solved task without tries, an open one with tries, and more answers than tries.
    """
    hand_in = work.hand_in
    version = hand_in.kgwb_version
    if version and version != __version__:
        yield f"written by kgwb {version}; this is {__version__}"
    for file in work.others:
        yield f"{file.name} was not read: {file.problem}"
    for name in lab.tasks:
        progress = hand_in.progress(name)
        if progress.state == "solved" and not progress.tries:
            yield f"{name} is solved without a try"
        elif progress.state == "open" and progress.tries:
            yield f"{name} is open after {progress.tries} tries"
        if len(progress.answers) > progress.tries:
            yield f"{name} has more answers than tries"
    for name, problem in work.disagreements.items():
        state = hand_in.progress(name).state
        yield f"{name} is {state} in the file: {problem}"


def _group_states(works: Sequence[CollectedWork]) -> list[list[CollectedWork]]:
    """Return the files of each work of each student in a list, the oldest first.

    A student is who handed in and the name in the file; names are compared by their looks. A file
    without a work's identity is one of its own. A file without a name, as it is kept beside a
    notebook, is left out if a named one of the same work and submission is there.
    """

    def key_of(work: CollectedWork) -> tuple[str, str, str]:
        work_id = work.hand_in.work_id or work.file.place
        return work_id, work.file.student_id, _look_of_name(work.hand_in.student)

    named = {key_of(work)[:2] for work in works if work.hand_in.student}
    counted = []
    for work in sorted(works, key=_oldest_first):
        if work.hand_in.student or key_of(work)[:2] not in named:
            counted.append(work)
    return group(counted, key_of)


def _remark_on_names(works: Sequence[CollectedWork]) -> list[Remark]:
    """Return remarks on several hand-ins that share a student's name or a work's identity.

    Names are compared by their looks. Empty if all are distinct.
    """
    remarks = []
    for alike in group(works, _key_of_name):
        if len(alike) > 1:
            remarks.append(remark_on(alike, f"{len(alike)} hand-ins have one name"))
    for alike in group(works, lambda work: work.hand_in.work_id or work.file.place):
        if len(alike) > 1:
            remarks.append(remark_on(alike, f"one work was handed in {len(alike)} times"))
    return remarks


def _with_distinct_names(works: Sequence[CollectedWork]) -> list[CollectedWork]:
    """Return copies of the works with the name to show, sorted by it regardless of case.

    A name that several works have is followed by the file's path in brackets. A hand-in without a
    name gets the path.
    """
    named = []
    for same_name in group(works, _key_of_name):
        for work in same_name:
            name = work.student
            if not look_of(name):
                name = work.file.place
            elif len(same_name) > 1:
                name = f"{name} ({work.file.place})"
            named.append(replace(work, name=name))
    return sorted(named, key=lambda work: (work.name.casefold(), work.name))


def _look_of_name(student: str) -> str:
    """Return a form of a name that is equal for names that look the same but for letter case."""
    return look_of(student).casefold()


def _key_of_name(work: CollectedWork) -> tuple[str, str]:
    """Return the look of the student's name as a key; of a work without a name, the file's path."""
    name = _look_of_name(work.student)
    return (name, "") if name else ("", work.file.place)
