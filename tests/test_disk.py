"""Files that a person names: only regular files are read, and they are replaced as a whole."""

from __future__ import annotations

import errno
import gzip
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from small import SCRIPT, made_up

import kgwb
from kgwb import disk
from kgwb.bench import load_questions, save_questions
from kgwb.bench.questions import BenchQuestion
from kgwb.cli import main
from kgwb.disk import cache_dir
from kgwb.errors import InputError, RunFileError
from kgwb.llm import Scripted
from kgwb.run.steps import Step

QUESTION = "Who directed Arrival?"
ASK = ("ask", "--kg", "films")
BENCH = ("bench", "--kg", "films", "--out", "out")


@pytest.fixture
def pipes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Make pipes where files are expected; reading one is stopped after 30 s.

    They are pipes of the test, because a test that runs as root could replace a device.
    """
    monkeypatch.chdir(tmp_path)
    for name in ("q.jsonl", "measured/config.json", "measured/results.jsonl"):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(
            "" if "results" in name else json.dumps({"id": "1", "question": QUESTION})
        )
    for name in ("pipe", "pipe.json", "out/config.json", "out/.lock"):
        Path(name).parent.mkdir(exist_ok=True)
        os.mkfifo(name)
    before = signal.signal(signal.SIGALRM, lambda *_: pytest.fail("a pipe is read"))
    signal.alarm(30)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize(
    "command",
    [
        (*ASK, "--save", "pipe", QUESTION),
        (*ASK, "--history", "pipe", QUESTION),
        (*ASK, "--model", "replay:pipe", QUESTION),
        (*ASK, "--vocabulary", "pipe.json", QUESTION),
        (*BENCH, "--questions", "pipe"),
        (*BENCH, "--questions", "q.jsonl", "--prices", "pipe"),
        (*BENCH, "--questions", "q.jsonl"),
        ("report", "out"),
        ("report", "measured", "--prices", "pipe"),
    ],
    ids=" ".join,
)
@pytest.mark.usefixtures("pipes")
def test_pipe_is_refused(command: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(command) == 2
    assert "pipe, not" in capsys.readouterr().err
    assert Path("pipe").is_fifo()


def test_file_replaced_by_two_writers_is_complete(tmp_path: Path) -> None:
    path, first, second = (
        tmp_path / "q.jsonl",
        *(BenchQuestion(id=id_, question="?") for id_ in "12"),
    )

    def questions_while_another_writes() -> Iterator[BenchQuestion]:
        yield first
        save_questions([second], path)
        assert load_questions(path) == [second]
        yield second

    save_questions(questions_while_another_writes(), path)
    assert load_questions(path) == [first, second]
    path.chmod(0o600)
    save_questions([first], path)
    assert [(one.name, one.stat().st_mode & 0o777) for one in tmp_path.iterdir()] == [
        ("q.jsonl", 0o600)
    ]


def test_failed_replacement_leaves_no_draft(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError, match="cannot write"):
        save_questions([], tmp_path / "folder")
    with pytest.raises(RunFileError, match="folder"):
        made_up(Scripted(SCRIPT)).save(tmp_path / "folder")
    assert [one.name for one in tmp_path.iterdir()] == ["folder"]


def test_the_cache_folder_follows_the_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert cache_dir() == tmp_path / "cache"
    monkeypatch.delenv("KGWB_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_dir() == tmp_path / "xdg" / "kgwb"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (gzip.compress(b"[1]\n" * 1_000)[:-9], "breaks off"),
        (gzip.compress(b"[1]\n") + gzip.compress(b"[2]\n")[:-4], "breaks off"),
        (b"", "breaks off"),
        (gzip.compress(b"[1]\n")[:-8] + bytes(8), "broken"),
        (b"[1]\n", "broken"),
    ],
    ids=["cut", "a cut second member", "empty", "a wrong checksum", "not gzip"],
)
def test_a_damaged_gzip_file_is_not_taken_for_a_full_disk(
    tmp_path: Path, data: bytes, reason: str
) -> None:
    file = tmp_path / "lines.jsonl.gz"
    file.write_bytes(data)
    with pytest.raises(OSError, match=reason) as caught:
        list(disk.read_json_lines(file))
    assert caught.value.errno not in disk.DISK_FULL_ERRNOS
    with pytest.raises(RunFileError, match=reason):
        kgwb.load_run(file)


def test_a_gzip_file_that_unpacks_to_too_much_is_said_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk, "MAX_UNPACKED_BYTES", 1_000)
    file = tmp_path / "lines.jsonl.gz"
    file.write_bytes(gzip.compress(b"[1]\n" * 250))
    assert len(list(disk.read_json_lines(file))) == 250
    file.write_bytes(gzip.compress(b"[1]\n" * 251))
    with pytest.raises(OSError, match="too large"):
        list(disk.read_json_lines(file))


def test_a_file_stays_open_from_one_text_to_the_next(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file, opened = disk.AppendedFile(tmp_path / "lines"), []
    open_file = os.open

    def counted(*arguments: Any) -> int:
        opened.append(arguments[0])
        return open_file(*arguments)

    monkeypatch.setattr(os, "open", counted)
    for text in ("a\n", "ü\n", ""):
        file.append(text)
    file.close()
    assert (file.path.read_bytes(), len(opened)) == ("a\nü\n".encode(), 1)
    file.append("b")
    file.close()
    file.close()
    assert (file.path.read_bytes(), len(opened)) == ("a\nü\nb".encode(), 2)


@pytest.mark.parametrize("is_replaced", [True, False])
def test_a_text_goes_to_the_file_that_is_at_the_path_now(tmp_path: Path, is_replaced: bool) -> None:
    path = tmp_path / "folder" / "lines"
    file = disk.AppendedFile(path)
    file.append("old\n")
    path.unlink()
    if is_replaced:
        disk.write_atomically(path, ["new\n"])
    file.append("more\n")
    file.close()
    assert path.read_text(encoding="utf-8") == ("new\nmore\n" if is_replaced else "more\n")


def test_a_text_follows_a_file_that_is_moved(tmp_path: Path) -> None:
    """A new file at the old path would lack the beginning, as the header of a run."""
    file = disk.AppendedFile(tmp_path / "lines")
    file.append("old\n")
    moved = file.path.rename(tmp_path / "moved")
    file.append("more\n")
    file.close()
    assert moved.read_text(encoding="utf-8") == "old\nmore\n"
    assert not file.path.exists()


def test_a_run_saved_to_its_own_file_while_it_is_executed_goes_on_in_it(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    run = made_up(Scripted(SCRIPT), path=path)
    saved: list[Path] = []

    def save(event: str, step: Step) -> None:
        if event == "end" and not saved:
            saved.append(run.save(path))

    run.listeners.append(save)
    run.go()
    assert saved == [path]
    entries = [entry for _, entry in disk.read_json_lines(path)]
    keys = [entry["call"]["key"] for entry in entries if "call" in entry]
    assert keys == list(run.calls)
    assert entries[-1]["end"]["status"] == "done"


def test_a_new_file_is_written_and_one_that_is_there_is_left(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "new"
    file = disk.AppendedFile(path)
    assert file.create("ü\n")
    file.close()
    assert not file.create("other\n")
    assert path.read_text(encoding="utf-8") == "ü\n"


def test_a_new_file_that_cannot_be_written_is_not_left(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def write_half(descriptor: int, data: bytes) -> int:
        monkeypatch.setattr(os, "write", disk_full)
        return write(descriptor, data[:2])

    def disk_full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "no space")

    write = os.write
    monkeypatch.setattr(os, "write", write_half)
    with pytest.raises(OSError, match="no space"):
        disk.AppendedFile(tmp_path / "new").create("text")
    assert not list(tmp_path.iterdir())
