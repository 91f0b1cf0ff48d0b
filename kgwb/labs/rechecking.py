"""Checking the answers of a class again, each student's in a process of its own with limits.

The processes are started by ``check_process``. Equal answers of several students are checked once.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, NamedTuple

from kgwb.errors import InputError
from kgwb.labs.check_process import JOB_TIMEOUT_S
from kgwb.labs.hand_ins import HandIn
from kgwb.labs.tasks import Lab

NOT_KEPT = "the file has no answer that can be checked again"
NOT_ENDED = "the check of its answer did not end within its limits of time and memory"
IS_WRONG = "when checked again, the answer is wrong: {}"
IS_RIGHT = "when checked again, the answer is right"
PROCESSOR_S = 10
"""Seconds of processor time for the answers of one student. All tasks of a lab take about 3."""
START_TIMEOUT_S = 120.0
"""Seconds for the start of a process and what all checks need."""


class _Answer(NamedTuple):
    """A task and the JSON of an answer to it. Equal ones have one result."""

    task: str
    data: str


def check_again(lab: Lab, hand_ins: Sequence[HandIn]) -> list[dict[str, str]]:
    """Check the stored answers of a class again, in processes of their own, and return where states disagree.

    For each hand-in, in order, there is a dictionary: by task, why its state in the file is not
    that of its answer; empty if all agree. A task without a stored answer counts only if it is
    solved in the file: it is a disagreement then. So is an answer whose check exceeds its limits,
    also at a second turn alone. Raises InputError if no process can be started.
    """
    answers_of = [_answers_of(lab, hand_in) for hand_in in hand_ins]
    jobs = _make_jobs(answers_of)
    results = _run_jobs(lab, jobs)
    # An answer that exceeds the limits takes others of its student with it: each has another turn.
    missing_jobs = []
    for answer in chain.from_iterable(jobs):
        if answer not in results:
            missing_jobs.append([answer])
    results |= _run_jobs(lab, missing_jobs)
    found = []
    for hand_in, answers in zip(hand_ins, answers_of, strict=True):
        by_task = {}
        for answer in answers:
            by_task[answer.task] = results.get(answer, NOT_ENDED)
        found.append(_compare_states(lab, hand_in, by_task))
    return found


def _answers_of(lab: Lab, hand_in: HandIn) -> list[_Answer]:
    """Return the answers of a hand-in that are stored as data, in the order of the lab's tasks.

    Those of tasks without data are left out. Equal data have equal JSON.
    """
    answers = []
    for name in lab.tasks:
        stored = hand_in.progress(name).data
        if stored:
            data = json.dumps(stored.model_dump(mode="json"), sort_keys=True)
            answers.append(_Answer(name, data))
    return answers


def _make_jobs(answers_of: Iterable[Sequence[_Answer]]) -> list[list[_Answer]]:
    """Return a job for each student: the answers that no student before has. Students without any get no job."""
    seen: set[_Answer] = set()
    jobs = []
    for answers in answers_of:
        new_answers = [answer for answer in answers if answer not in seen]
        seen.update(new_answers)
        if new_answers:
            jobs.append(new_answers)
    return jobs


def _run_jobs(lab: Lab, jobs: Sequence[Sequence[_Answer]]) -> dict[_Answer, str]:
    """Check the answers of the jobs, and return what is wrong with each, "" if it is right.

    An answer whose check did not end is missing in the result. Where a process can be copied, one
    process checks all jobs. Elsewhere, as on Windows, a process is started for each job. Raises
    InputError if one cannot be started.
    """
    results: dict[_Answer, str] = {}
    batches: list[Sequence[Sequence[_Answer]]] = [jobs] if jobs else []
    if not hasattr(os, "fork"):
        batches = [[job] for job in jobs]
    for batch in batches:
        results |= _run_process(lab, batch)
    return results


def _run_process(lab: Lab, jobs: Sequence[Sequence[_Answer]]) -> dict[_Answer, str]:
    """Start a process that checks some jobs, wait for it, and return what is wrong with each answer.

    It is stopped after START_TIMEOUT_S and JOB_TIMEOUT_S for each job; the results that it wrote
    until then count. Its error output is dropped. Raises InputError if it cannot be started.
    """
    language = lab.texts.language
    request = json.dumps(
        {"lab": lab.source, "language": language, "processor_s": PROCESSOR_S, "jobs": jobs}
    )
    command = [sys.executable, "-m", "kgwb.labs.check_process"]
    try:
        process = subprocess.run(
            command,
            input=request.encode(),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=START_TIMEOUT_S + JOB_TIMEOUT_S * len(jobs),
            check=False,
        )
        output = process.stdout
    except subprocess.TimeoutExpired as exc:
        output = exc.stdout or b""
    except OSError as exc:
        hint = "close other programs to free memory, or collect without --check"
        raise InputError(
            f"the answers cannot be checked: the process for it cannot be started: {exc}", hint=hint
        ) from exc
    results = {}
    for line in output.splitlines():
        result: dict[str, Any] = json.loads(line)
        answer = jobs[result["job"]][result["answer"]]
        results[answer] = result["problem"]
    return results


def _compare_states(lab: Lab, hand_in: HandIn, by_task: dict[str, str]) -> dict[str, str]:
    """Return, by task, why the state in a file disagrees with the check of its answer; empty if all agree.

    ``by_task`` has what is wrong with each checked answer. A solved task without one, a check that
    did not end, a solved task with a wrong answer, and an unsolved one with a right answer
    disagree.
    """
    disagreements = {}
    for name in lab.tasks:
        is_solved = hand_in.progress(name).state == "solved"
        problem = by_task.get(name)
        if problem is None:
            if is_solved:
                disagreements[name] = NOT_KEPT
        elif problem == NOT_ENDED:
            disagreements[name] = NOT_ENDED
        elif is_solved and problem:
            disagreements[name] = IS_WRONG.format(problem)
        elif not is_solved and not problem:
            disagreements[name] = IS_RIGHT
    return disagreements
