"""The hand-ins of a class: read, the latest of each work kept, remarked on, and checked again on wish."""

from __future__ import annotations

import os.path
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from kgwb.disk import __version__
from kgwb.labs.copies import find_copies
from kgwb.labs.rechecking import check_again
from kgwb.labs.roster import Pseudonyms, Roster
from kgwb.labs.rows import CollectedHandIns, Remark, Submission, group, remark_on
from kgwb.labs.submissions import read_submissions
from kgwb.labs.tasks import Lab, LabOpener, load_shipped_lab
from kgwb.text import list_first, look_of, tell_apart


def collect_hand_ins(
    folder: str | Path,
    *,
    check: bool = False,
    open_lab: LabOpener = load_shipped_lab,
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
    rows: list[Submission] = []
    files = read_submissions(Path(folder), open_lab, skipped)
    for submission in group(files, lambda file: file.student_id or file.place):
        rows += _make_rows(submission)
    if roster:
        rows = [replace(row, listed=roster.find(*row.names)) for row in rows]
    missing = [row for row in rows if row.is_missing]
    labs = {row.hand_in.kgwb_lab for row in rows if not row.is_missing}
    collected = []
    for name in sorted(labs or {1}, key=str):
        works = [row for row in rows if row.hand_in.kgwb_lab == name]
        if roster:
            present = {row.listed for row in (*works, *missing)}
            for student in roster.students:
                if student not in present:
                    missing.append(Submission("", listed=student))
        of_lab = _collect_lab(
            open_lab(name),
            works,
            missing,
            pseudonyms,
            check=check,
            is_listed=bool(roster),
        )
        collected.append(of_lab)
        missing = []
    return collected


def _make_rows(submission: Sequence[Submission]) -> list[Submission]:
    """Return a row for each hand-in of a student's files. What could not be read stands in the first one.

    Files without a hand-in have one row, whose place is their folder, or the only file.
    """
    handed_in = [file for file in submission if not file.is_missing]
    if handed_in:
        unread = tuple(file for file in submission if file.problem)
        first, *more = handed_in
        return [replace(first, others=unread), *more]
    first = submission[0]
    places = [file.place for file in submission]
    place = os.path.commonpath(places) or first.student_id
    found = tuple(file for file in submission if not file.place.endswith("/"))
    return [replace(first, place=place, others=found)]


def _describe_missing(lab: Lab, work: Submission) -> str:
    """Return what was found in a submission without a hand-in, and which file to ask for."""
    if not work.place:
        return "nothing was handed in"
    found = []
    for file in work.others:
        described = file.file_name
        if file.problem:
            described += f" ({file.problem})"
        found.append(described)
    listed = list_first(found) or "nothing"
    asked = f'{lab.file_stem}-NAME-ID.json, which lab.hand_in("NAME") writes'
    return f"no hand-in, found: {listed}; ask for the file {asked}"


def _hide(work: Submission, pseudonyms: Pseudonyms | None) -> Submission:
    """Return a copy of a row with pseudonyms for the student's name and id and for the files' paths.

    A student without a name is told apart by the path. Without ``pseudonyms`` the row stays as it
    is.
    """
    if pseudonyms is None:
        return work
    student = pseudonyms.of_student(work.shown_name, work.student_id)
    others = []
    for other in work.others:
        place = pseudonyms.of_file(other.place)
        others.append(replace(other, place=place))
    return replace(
        work,
        place=work.place and pseudonyms.of_file(work.place),
        hand_in=work.hand_in.model_copy(update={"student": student}),
        student_id=student,
        student_name="",
        others=tuple(others),
        listed=work.listed and replace(work.listed, name=student, keys=frozenset()),
    )


def _collect_lab(
    lab: Lab,
    works: Sequence[Submission],
    missing: Sequence[Submission],
    pseudonyms: Pseudonyms | None,
    *,
    check: bool,
    is_listed: bool,
) -> CollectedHandIns:
    """Return the rows of one lab, one for each work, sorted by name, and the remarks on them.

    With ``check`` the answers are checked again, which starts processes. ``is_listed`` says that
    there is a list of the class.
    """
    remarks = []
    latest = []
    for states in _group_states(works):
        *before, last = [_hide(state, pseudonyms) for state in states]
        latest.append(last)
        for earlier in before:
            if earlier.hand_in.tasks != last.hand_in.tasks:
                text = f"not counted: {earlier.place}, an earlier state"
                remarks.append(remark_on([last], text))
    named = _with_distinct_names(latest)
    if check:
        named = check_again(lab, named)
    remarks += _remark_on_alike(named)
    remarks += find_copies(lab, named)
    for work in named:
        for text in _remark_on_work(lab, work):
            remarks.append(remark_on([work], text))
        if is_listed and not work.listed:
            remarks.append(remark_on([work], "not clear who of the class it is"))

    hidden = [_hide(row, pseudonyms) for row in missing]
    described = []
    for row in _with_distinct_names(hidden):
        problem = _describe_missing(lab, row)
        described.append(replace(row, problem=problem))
    return CollectedHandIns(lab, tuple(named), tuple(described), tuple(remarks))


def _remark_on_work(lab: Lab, work: Submission) -> Iterator[str]:
    """Yield the remarks on one hand-in: another version, unread files, impossible states, failed checks.

    Impossible is a solved task without tries, an open one with tries, and more answers than tries.
    """
    hand_in = work.hand_in
    version = hand_in.kgwb_version
    if version and version != __version__:
        yield f"written by kgwb {version}; this is {__version__}"
    for file in work.others:
        yield f"{file.file_name} was not read: {file.problem}"
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


def _group_states(works: Sequence[Submission]) -> list[list[Submission]]:
    """Return the files of each work of each student in a list, the oldest first.

    A student is who handed in and the name in the file; names are compared by their looks. A file
    without a work's identity is one of its own. A file without a name, as it is kept beside a
    notebook, is left out if a named one of the same work and submission is there.
    """
    counted = []
    for files in group(works, lambda work: (work.identity, work.student_id)):
        counted += [file for file in files if file.hand_in.student] or files
    counted.sort(key=lambda work: (work.when, work.changed, work.place))
    return group(
        counted,
        lambda work: (work.identity, work.student_id, _look(work.hand_in.student)),
    )


def _remark_on_alike(works: Sequence[Submission]) -> list[Remark]:
    """Return remarks on several hand-ins that share a student's name, by its looks, or a work's identity.

    Empty if all are distinct.
    """
    kinds: dict[str, Callable[[Submission], str]] = {
        "{} hand-ins have one name": lambda work: _look(work.shown_name),
        "one work was handed in {} times": lambda work: work.identity,
    }
    remarks = []
    for text, key_of in kinds.items():
        for alike in group(works, key_of):
            if len(alike) > 1:
                remarks.append(remark_on(alike, text.format(len(alike))))
    return remarks


def _with_distinct_names(works: Sequence[Submission]) -> list[Submission]:
    """Return copies of the works with the name to show, sorted by it regardless of case.

    A name that several works have is followed by the file's path in brackets. A hand-in without a
    name gets the path.
    """
    forms = (
        lambda number: works[number].shown_name,
        lambda number: f"{works[number].shown_name} ({works[number].place})",
    )
    names = tell_apart(range(len(works)), forms, fold_case=True)
    named = [replace(work, name=names[number]) for number, work in enumerate(works)]
    return sorted(named, key=lambda work: (work.name.casefold(), work.name))


def _look(student: str) -> str:
    """Return a form of a name that is equal for names that look the same but for letter case."""
    return look_of(student).casefold()
