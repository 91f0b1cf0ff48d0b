"""Slow work that can be left behind."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from kgwb.aside import aside
from kgwb.errors import Cancelled


def test_what_the_work_returns_or_raises_comes_back() -> None:
    assert aside(lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        aside(lambda: 1 // 0)


def test_work_that_takes_too_long_is_left_behind() -> None:
    done = threading.Event()
    with pytest.raises(TimeoutError):
        aside(lambda: done.wait(30), most_s=0.1)
    done.set()


def test_whoever_watches_can_leave() -> None:
    done = threading.Event()

    def watch() -> None:
        raise Cancelled

    with pytest.raises(Cancelled):
        aside(lambda: done.wait(30), watch=watch)
    done.set()


def test_a_process_ends_when_the_work_that_an_interrupt_left_behind_has_ended() -> None:
    code = """
import _thread, signal, threading, time
from kgwb import aside
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
aside.ENDING_S = 0.1
def work():
    _thread.interrupt_main()
    time.sleep(1)
    print("ended", flush=True)
try:
    aside.undisturbed(work)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["interrupted", "ended"]


def test_a_forked_process_does_not_wait_for_what_its_parent_left_behind() -> None:
    code = """
import _thread, os, signal, sys, threading, time
from kgwb import aside
signal.signal(signal.SIGINT, signal.default_int_handler)
aside.ENDING_S, ended = 0.1, threading.Event()
def work():
    _thread.interrupt_main()
    ended.wait()
try:
    aside.undisturbed(work)
except KeyboardInterrupt:
    pass
if os.fork() == 0:
    sys.exit()
began = time.monotonic()
os.wait()
ended.set()
print(time.monotonic() - began < aside.EXIT_S / 2)
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["True"]


def test_threads_without_work_end() -> None:
    before = threading.active_count()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: aside(lambda: time.sleep(0.05)), range(16)))
    until = time.monotonic() + 60
    while threading.active_count() > before and time.monotonic() < until:
        time.sleep(0.1)
    assert threading.active_count() <= before
    assert aside(lambda: "more") == "more"
