"""Checking the answers of a class again, each within limits, in processes of their own.

Equal answers of several students are checked once. This module is also the program of the process
that checks, ``python -m kgwb.labs.rechecking``: standard input is JSON, the lab, its language, the
seconds of processor time that an answer has, and the answers. The process copies itself for each
processor. Each answer has limits on its time, its processor time, its memory and the files it writes; a
copy that exceeds them ends. Standard output gets a line of JSON for each answer whose check ended: its
number, and what is wrong with it.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from math import ceil
from tempfile import TemporaryFile
from traceback import format_exc
from typing import Any, NamedTuple

from kgwb.errors import InputError
from kgwb.kg.parser_process import set_resource_limit
from kgwb.labs.answers import CheckFailedError, StoredAnswer, check_stored_answer
from kgwb.labs.hand_ins import HandIn
from kgwb.labs.rows import Submission
from kgwb.labs.tasks import Lab, Task, load_lab

ANSWER_TIMEOUT_S = 60
"""Seconds for an answer."""
MEMORY_BYTES = 2_000_000_000
"""Address space of a copy. What the process has before an answer is some 1,000 MB."""
WRITTEN_BYTES = 1_000_000
"""The greatest size of a file that a check may write."""
NUMBER_BYTES = 4
"""Bytes of an answer's number."""
MAX_PROBLEM_CHARS = 500
"""Characters of a problem: a line of output is then written at once, also beside another copy's."""
MAX_TRACEBACK_CHARS = 2_000
"""Characters of the traceback of a check that fails in itself, counted from its end."""


class Answer(NamedTuple):
    """A task and the JSON of an answer to it. Equal ones have one result."""

    task: str
    data: str


def main() -> None:
    """Read the request from standard input, and write the results of all its answers to standard output.

    What a check prints goes to standard error, since it is no result. Where a process cannot be
    copied, as on Windows, the answers are checked in this process, one after the other and without
    limits.
    """
    request: dict[str, Any] = json.load(sys.stdin)
    answers = [Answer(*answer) for answer in request["answers"]]
    output = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what a check prints is no result
    lab = load_lab(request["lab"], request["language"])
    if hasattr(os, "fork"):
        check_in_copies(lab, answers, output, request["processor_s"])
        return
    for number, answer in enumerate(answers):
        check(lab, number, answer, output)


def check_in_copies(lab: Lab, answers: Sequence[Answer], output: int, processor_s: int) -> None:
    """Check the answers in a copy of this process for each processor, and wait for all.

    What the checks make and keep, such as embeddings, serves all answers of a copy. A copy takes the next
    answer from a file that all copies read on. If it ends at an answer's limits or with an error, another
    one goes on.
    """
    gc.freeze()  # the collector would write to each object, and so copy the memory that the copies share
    with TemporaryFile(buffering=0) as numbers:
        for number in range(len(answers)):
            numbers.write(number.to_bytes(NUMBER_BYTES))
        numbers.seek(0)

        def check_next() -> None:
            """Check answers until there is none left."""
            while taken := numbers.read(NUMBER_BYTES):
                number = int.from_bytes(taken)
                set_limits(processor_s)
                check(lab, number, answers[number], output)

        running = min(len(answers), os.cpu_count() or 1)
        for _ in range(running):
            start_copy(check_next)
        while running:
            _, status = os.waitpid(-1, 0)
            if status == 0:
                running -= 1
            else:
                start_copy(check_next)


def start_copy(action: Callable[[], None]) -> None:
    """Start a copy of this process that does something and ends.

    Its exit code is 0 only if there was no error. Raises NotImplementedError on Windows, which
    cannot copy a process.
    """
    if sys.platform == "win32":
        raise NotImplementedError
    if os.fork():
        return
    try:
        action()
        os._exit(0)
    finally:
        os._exit(1)


def set_limits(processor_s: int) -> None:
    """Limit what this process may use from now on: ANSWER_TIMEOUT_S, MEMORY_BYTES, WRITTEN_BYTES, processor time."""
    if sys.platform != "win32":
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(ANSWER_TIMEOUT_S)
    set_resource_limit("RLIMIT_CPU", ceil(time.process_time()) + processor_s)
    set_resource_limit("RLIMIT_AS", MEMORY_BYTES)
    set_resource_limit("RLIMIT_FSIZE", WRITTEN_BYTES)
    set_resource_limit("RLIMIT_CORE", 0)


def check(lab: Lab, number: int, answer: Answer, output: int) -> None:
    """Check an answer, and write a line of JSON to ``output``.

    The line has the number of the answer, and what is wrong with it, "" if nothing, cut at
    MAX_PROBLEM_CHARS. For a check that fails in itself it has the end of the traceback. Raises
    CheckFailedError if the memory does not suffice.
    """
    stored = StoredAnswer.model_validate_json(answer.data)
    try:
        problem = check_with_hidden(lab.tasks[answer.task], stored)[:MAX_PROBLEM_CHARS]
    except CheckFailedError as exc:
        if isinstance(exc.__cause__, MemoryError):  # an earlier answer may have kept the memory
            raise
        traceback = format_exc()[-MAX_TRACEBACK_CHARS:]
        problem = f"{exc}\n{traceback}"
    line = json.dumps([number, problem]) + "\n"
    os.write(output, line.encode())


def check_with_hidden(task: Task, stored: StoredAnswer) -> str:
    """Check a stored answer by the task's check, then by its hidden ones, and return the first problem."""
    problem = check_stored_answer(task, stored)
    for check in task.hidden_checks:
        if problem:
            return problem
        hidden = check_stored_answer(replace(task, check=check), stored)
        problem = hidden and task.texts.get("again.hidden", problem=hidden)
    return problem


PROCESSOR_S = 20
"""Seconds of processor time for an answer. All tasks of a lab take about 3, the first time."""
ONE_THREAD = {"OMP_NUM_THREADS": "1"}
"""Lets a process compute with matrices on one thread. As many copies run at once as there are processors.

Each of them would start threads of its own again, which took a tenth of the processor time.
"""
START_TIMEOUT_S = 120.0
"""Seconds for the start of a process and what all checks need."""


def check_again(lab: Lab, works: Sequence[Submission]) -> list[Submission]:
    """Check the stored answers of a class again, in processes of their own, and return the works with the result.

    The ``disagreements`` of a work say, by task, why its state in the file is not that of its
    answer; they are empty if all agree. A task without a stored answer counts only if it is
    solved in the file: it is a disagreement then. So is an answer whose check exceeds its limits,
    also at a second turn. Raises InputError if no process can be started.
    """
    answers_of = [_answers_of(lab, work.hand_in) for work in works]
    answers = list(dict.fromkeys(chain.from_iterable(answers_of)))
    batches = [answers, answers]  # a second turn for those that other answers had left no memory
    if not hasattr(os, "fork"):
        batches = [*answers_of, *([answer] for answer in answers)]
    results: dict[Answer, str] = {}
    for batch in batches:
        unchecked = [answer for answer in dict.fromkeys(batch) if answer not in results]
        if unchecked:
            results |= _run_process(lab, unchecked)
    checked = []
    for work, of_student in zip(works, answers_of, strict=True):
        by_task = {answer.task: results.get(answer) for answer in of_student}
        disagreements = _compare_states(lab, work.hand_in, by_task)
        checked.append(replace(work, disagreements=disagreements))
    return checked


def _answers_of(lab: Lab, hand_in: HandIn) -> list[Answer]:
    """Return the answers of a hand-in that are stored as data, in the order of the lab's tasks.

    Those of tasks without data are left out. Equal data have equal JSON.
    """
    answers = []
    for name in lab.tasks:
        stored = hand_in.progress(name).data
        if stored:
            data = json.dumps(stored.model_dump(mode="json"), sort_keys=True)
            answers.append(Answer(name, data))
    return answers


def _run_process(lab: Lab, answers: Sequence[Answer]) -> dict[Answer, str]:
    """Start a process that checks answers, wait for it, and return what is wrong with each, "" if it is right.

    An answer whose check did not end is missing in the result. The process is stopped after START_TIMEOUT_S
    and ANSWER_TIMEOUT_S for each answer; the results that it wrote until then count. Its error output is
    dropped. Raises InputError if it cannot be started.
    """
    request = {
        "lab": lab.source,
        "language": lab.texts.language,
        "processor_s": PROCESSOR_S,
        "answers": answers,
    }
    command = [sys.executable, "-m", "kgwb.labs.rechecking"]
    try:
        process = subprocess.run(
            command,
            input=json.dumps(request).encode(),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=START_TIMEOUT_S + ANSWER_TIMEOUT_S * len(answers),
            check=False,
            env=os.environ | ONE_THREAD,
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
        number, problem = json.loads(line)
        results[answers[number]] = problem
    return results


def _compare_states(lab: Lab, hand_in: HandIn, by_task: Mapping[str, str | None]) -> dict[str, str]:
    """Return, by task, why the state in a file disagrees with the check of its answer; empty if all agree.

    ``by_task`` has what is wrong with each answer that is stored, and None if its check did not
    end. A solved task without one, a check that did not end, a solved task with a wrong answer, and
    an unsolved one with a right answer disagree.
    """
    disagreements = {}
    for name in lab.tasks:
        is_solved = hand_in.progress(name).state == "solved"
        problem = by_task.get(name)
        key = ""
        if name not in by_task:
            if is_solved:
                key = "again.not-kept"
        elif problem is None:
            key = "again.not-ended"
        elif problem and is_solved:
            key = "again.wrong"
        elif not problem and not is_solved:
            key = "again.right"
        if key:
            disagreements[name] = lab.texts.get(key, problem=problem)
    return disagreements


if __name__ == "__main__":
    main()
