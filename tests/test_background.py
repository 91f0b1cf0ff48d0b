"""Work on background threads that its caller can stop waiting for."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from unittest.mock import Mock

import pytest

from kgwb import background
from kgwb.background import run_in_thread
from kgwb.errors import Cancelled


def test_run_in_thread_returns_the_result_of_the_work_or_raises_its_error() -> None:
    assert run_in_thread(lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        run_in_thread(lambda: 1 // 0)


@pytest.mark.parametrize(
    ("how", "error"),
    [({"timeout_s": 0.1}, TimeoutError), ({"poll": Mock(side_effect=Cancelled)}, Cancelled)],
    ids=["timeout", "poll raises"],
)
def test_the_caller_can_stop_waiting(how: dict[str, Any], error: type[BaseException]) -> None:
    done = threading.Event()
    with pytest.raises(error):
        run_in_thread(lambda: done.wait(30), **how)
    done.set()


@pytest.mark.parametrize("is_told", [False, True])
def test_an_abandoned_work_is_told_once_however_many_interrupts_come(
    is_told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = threading.Event()
    tell, start = Mock(side_effect=told.set), background._start
    further = [KeyboardInterrupt, KeyboardInterrupt]

    def start_interrupted(task: Any) -> None:
        """Let an interrupt come before the work is told, or just after that."""
        if is_told or not further:
            start(task)
        if further:
            raise further.pop()

    def interrupt() -> None:
        monkeypatch.setattr(background, "_start", start_interrupted)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_in_thread(lambda: told.wait(30), poll=interrupt, on_abandon=tell)
    assert told.wait(5)
    assert not further
    time.sleep(0.1)  # on another thread it would be told again
    tell.assert_called_once_with()


def test_a_long_wait_is_polled_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    done = threading.Event()
    now = 0.0
    intervals = []

    def wait(_task: object, seconds: float) -> bool:
        nonlocal now
        now += seconds
        intervals.append(seconds)
        return False

    monkeypatch.setattr(background._Task, "wait", wait)
    monkeypatch.setattr(background.time, "monotonic", lambda: now)
    with pytest.raises(TimeoutError):
        run_in_thread(lambda: done.wait(30), timeout_s=60.25)
    done.set()
    assert intervals[0] == background.POLL_INTERVAL_S
    assert intervals[-2] == background.MAX_POLL_INTERVAL_S
    assert sum(intervals) == pytest.approx(60.25)
    assert intervals[:-1] == sorted(intervals[:-1])
    assert len(intervals) < 200  # not 1,205


def printed(code: str) -> list[str]:
    """Return the words that a program prints. It has to define ``work``, which is interrupted.

    The work can wait for the event ``ended``.
    """
    start = """
import _thread, os, signal, sys, threading, time
from kgwb import background
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
background.ABANDON_TIMEOUT_S, ended = 0.1, threading.Event()
"""
    left = """
try:
    background.shielded(lambda: (_thread.interrupt_main(), work()))
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""
    command = [sys.executable, "-W", "ignore", "-c", start + code.replace("# interrupt", left)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


def test_a_process_waits_for_abandoned_work_before_it_ends() -> None:
    code = """
def work():
    time.sleep(1)
    print("ended", flush=True)
# interrupt
"""
    assert printed(code) == ["interrupted", "ended"]


def test_a_forked_process_does_not_wait_for_the_abandoned_work_of_its_parent() -> None:
    code = """
work = ended.wait
# interrupt
if os.fork() == 0:
    sys.exit()
began = time.monotonic()
os.wait()
ended.set()
print(time.monotonic() - began < background.EXIT_TIMEOUT_S / 2)
"""
    assert printed(code) == ["interrupted", "True"]


def test_threads_without_work_end() -> None:
    before = threading.active_count()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: run_in_thread(lambda: time.sleep(0.05)), range(16)))
    until = time.monotonic() + 60
    while threading.active_count() > before and time.monotonic() < until:
        time.sleep(0.1)
    assert threading.active_count() <= before
    assert run_in_thread(lambda: "more") == "more"
