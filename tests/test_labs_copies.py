"""Copied works are found, and honest ones with the natural solution are not called copied."""

from typing import Any

import pytest
from simulated_classes import count_found, simulate_class

from kgwb.labs.answers import StoredAnswer
from kgwb.labs.copies import RIGHT, TIMES, TRIES, WRONG, find_copies
from kgwb.labs.hand_ins import HandIn, TaskProgress
from kgwb.labs.rows import Remark, Submission
from kgwb.labs.tasks import load_lab

LAB = load_lab(1)
SEEDS = range(1001, 1011)
"""The method was fixed on the classes of the seeds 1 to 40."""
NATURAL = (
    "SELECT ?film WHERE { ?film fl:director fl:Stanley_Kubrick ; fl:runtime ?m } ORDER BY DESC(?m)"
)
RARE = NATURAL.replace("ORDER BY", "FILTER(?m > 107) ORDER BY")


def solve(*answers: str, second: int = 0) -> TaskProgress:
    """A task that was solved by the last of some answers, one each second."""
    times = [f"2026-11-24T18:00:{second + place:02}.123+00:00" for place in range(len(answers))]
    data = StoredAnswer(value=answers[-1])
    return TaskProgress(
        state="solved", tries=len(answers), answers=list(answers), times=times, data=data
    )


def make_row(name: str, **tasks: TaskProgress) -> Submission:
    """The row of a work; tasks are named as t1 for 1.1."""
    by_name = {f"1.{key[1:]}": progress for key, progress in tasks.items()}
    hand_in = HandIn(kgwb_lab=1, student=name, tasks=by_name)
    return Submission(name, hand_in=hand_in, name=name)


def copied(remarks: list[Remark]) -> list[set[str]]:
    return [set(remark.places) for remark in remarks if remark.text.startswith("probably copied")]


@pytest.mark.long
def test_of_ten_simulated_classes_nearly_all_copies_are_found_and_no_honest_pair_more_than_once() -> (
    None
):
    counted = count_found(SEEDS)
    assert counted.groups >= 10 and counted.honest_pairs > 5_000
    assert counted.found_groups >= 0.95 * counted.groups
    assert counted.found_pairs >= 0.95 * counted.pairs
    assert counted.accused_pairs <= 1


def test_a_class_without_copies_has_no_remark_on_copies() -> None:
    works, groups = simulate_class(7)
    honest = [work for work in works if not any(work.name in members for members in groups)]
    assert len(honest) > 10
    assert copied(find_copies(LAB, honest)) == []


@pytest.mark.parametrize("size", [2, 3, 5, 40])
def test_students_with_the_natural_solution_are_not_accused(size: int) -> None:
    works = []
    for number in range(size):
        tasks: dict[str, Any] = {f"t{task}": solve("x", second=number) for task in range(1, 12)}
        works.append(make_row(f"student {number}", **tasks | {"t6": solve(NATURAL, second=number)}))
    assert copied(find_copies(LAB, works)) == []


OTHERS = [
    make_row(f"other {n}", t1=solve(f"[{n}]", "x", second=2 * n), t6=solve(NATURAL, second=2 * n))
    for n in range(11)
]


@pytest.mark.parametrize("size", [3, 5])
def test_copied_works_among_others_are_one_group_with_one_remark(size: int) -> None:
    names = [f"copy {number}" for number in range(size)]
    works = []
    for name in names:
        tasks = {"t1": solve("[7, 9]", "[9, 1]", "x", second=50), "t6": solve("a", RARE)}
        works.append(make_row(name, **tasks))
    [remark] = find_copies(LAB, [*OTHERS, *works])
    assert copied([remark]) == [set(names)]
    assert all(kind in remark.text for kind in (TIMES, WRONG, TRIES, RIGHT))


def test_a_disguised_right_answer_alone_is_remarked_on_in_other_words() -> None:
    disguised = RARE.replace("?m", "?minutes").replace(" ", "\n").lower()
    works = [
        make_row("Ada", t6=solve(RARE, second=30)),
        make_row("Bob", t1=solve("x"), t6=solve("y", disguised, second=40)),
    ]
    [remark] = find_copies(LAB, [*OTHERS, *works])
    assert copied([remark]) == [] and remark.places == ("Ada", "Bob")


def test_equal_times_say_more_than_equal_answers() -> None:
    """Two who tried the same, at other times, and two whose tries were at the same milliseconds."""
    answers = ("[7]", "x")
    works = [
        make_row("Ada", t1=solve(*answers, second=30)),
        make_row("Bob", t1=solve(*answers, second=30)),
        make_row("Cleo", t1=solve("p", "x", second=40), t2=solve(*answers, second=30)),
        make_row("Dora", t1=solve("s", "x", second=50), t2=solve(*answers, second=40)),
    ]
    assert copied(find_copies(LAB, [*OTHERS, *works])) == [{"Ada", "Bob"}]
