"""The program of the process that checks answers again. ``kgwb.labs.rechecking`` starts it.

Standard input is JSON: the lab, its language, the seconds of processor time that a job has, and jobs, each of which
is a list of answers of one student. This
process makes what all checks need, and copies itself for each job. A copy has limits on its
processor time, its memory and the files it writes. Standard output gets a line of JSON for each
answer that was checked: the numbers of the job and of the answer, and what is wrong with it. A job
that exceeds its limits ends without the lines of its remaining answers.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence
from traceback import format_exc
from typing import Any

from kgwb.kg.parser_process import set_resource_limit
from kgwb.labs.answers import CheckFailedError, StoredAnswer, check_stored_answer
from kgwb.labs.tasks import Lab, load_lab

JOB_TIMEOUT_S = 60.0
"""Seconds for the answers of one student."""
MEMORY_BYTES = 2_000_000_000
"""Address space of a copy. What the process has before a job is some 1,000 MB."""
WRITTEN_BYTES = 1_000_000
"""The greatest size of a file that a check may write."""
MAX_PROBLEM_CHARS = 500
"""Characters of a problem: a line of output is then written at once, also beside another copy's."""
MAX_TRACEBACK_CHARS = 2_000
"""Characters of the traceback of a check that fails in itself, counted from its end."""
POLL_INTERVAL_S = 0.01

Job = Sequence[Sequence[str]]
"""The answers of one student: pairs of a task's name and the JSON of the answer."""


def main() -> None:
    """Read the request from standard input, and write the results of all its answers to standard output.

    What a check prints goes to standard error, since it is no result. Where a process cannot be
    copied, as on Windows, the jobs are checked in this process, one after the other and without
    limits.
    """
    request: dict[str, Any] = json.load(sys.stdin)
    jobs: list[Job] = request["jobs"]
    output = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what a check prints is no result
    lab = load_lab(request["lab"], request["language"])
    if not hasattr(os, "fork"):
        for number, job in enumerate(jobs):
            check_job(lab, number, job, output)
        return
    if lab.prepare:
        lab.prepare()
    run_copies(lab, jobs, output, request["processor_s"])


def run_copies(lab: Lab, jobs: Sequence[Job], output: int, processor_s: int) -> None:
    """Run each job in a copy of this process, as many at once as there are processors, and wait for all.

    A copy that takes longer than JOB_TIMEOUT_S is killed, and its remaining answers get no result.
    ``output`` is the file descriptor for the results, ``processor_s`` the processor seconds of a
    copy. Raises NotImplementedError on Windows, which cannot copy a process.
    """
    if sys.platform == "win32":
        raise NotImplementedError
    max_copies = os.cpu_count() or 1
    waiting = list(enumerate(jobs))
    deadlines: dict[int, float] = {}
    while waiting or deadlines:
        while waiting and len(deadlines) < max_copies:
            number, job = waiting.pop(0)
            copy = start_copy(lab, number, job, output, processor_s)
            deadlines[copy] = time.monotonic() + JOB_TIMEOUT_S
        for copy, deadline in list(deadlines.items()):
            ended, _ = os.waitpid(copy, os.WNOHANG)
            if ended:
                del deadlines[copy]
            elif time.monotonic() > deadline:
                os.kill(copy, 9)
        time.sleep(POLL_INTERVAL_S)


def start_copy(lab: Lab, number: int, job: Job, output: int, processor_s: int) -> int:
    """Start a copy of this process that checks one job, and return its process id at once.

    The copy is limited to ``processor_s`` seconds of processor time, MEMORY_BYTES and
    WRITTEN_BYTES. It always ends with exit code 0, also after an error. Raises NotImplementedError
    on Windows.
    """
    if sys.platform == "win32":
        raise NotImplementedError
    copy = os.fork()
    if copy:
        return copy
    try:
        set_resource_limit("RLIMIT_CPU", processor_s)
        set_resource_limit("RLIMIT_AS", MEMORY_BYTES)
        set_resource_limit("RLIMIT_FSIZE", WRITTEN_BYTES)
        set_resource_limit("RLIMIT_CORE", 0)
        check_job(lab, number, job, output)
    finally:
        os._exit(0)  # what the original has open is not closed by its copy


def check_job(lab: Lab, number: int, job: Job, output: int) -> None:
    """Check the answers of a job one after the other, and write a line of JSON to ``output`` for each.

    The line has the number of the job, the place of the answer, and what is wrong with it, "" if
    nothing, cut at MAX_PROBLEM_CHARS. For a check that fails in itself it has the end of the
    traceback.
    """
    for position, (task, data) in enumerate(job):
        stored = StoredAnswer.model_validate_json(data)
        try:
            problem = check_stored_answer(lab.tasks[task], stored)
            problem = problem[:MAX_PROBLEM_CHARS]
        except CheckFailedError as exc:
            traceback = format_exc()[-MAX_TRACEBACK_CHARS:]
            problem = f"{exc}\n{traceback}"
        result = {
            "job": number,
            "answer": position,
            "problem": problem,
        }
        line = json.dumps(result) + "\n"
        os.write(output, line.encode())


if __name__ == "__main__":
    main()
