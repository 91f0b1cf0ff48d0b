"""An archive of results: packed, opened in another place, replayed there, and valid as an RO-Crate."""

from __future__ import annotations

import gc
import hashlib
import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from commands import FILMS_QUESTIONS, bench, once, retry, write_questions
from engines import ROOT, leave_out

import kgwb
from kgwb.bench import Report
from kgwb.bench import exports as artifact
from kgwb.bench.exports import METADATA_FILE, pack_results, unpack_results
from kgwb.bench.figures import LoadedResults
from kgwb.bench.papers import describe_setups
from kgwb.cli import main
from kgwb.errors import InputError

Capture = pytest.CaptureFixture[str]
VALIDATOR = ROOT / ".venv-crate"
CONTEXT = "https://w3id.org/ro/crate/1.3/context"
FILL_CACHE = """
import sys
from pathlib import Path
from requests import Request
from requests_cache import CachedResponse, CachedSession
session = CachedSession(sys.argv[1])
response = CachedResponse(url=sys.argv[2], status_code=200, headers={"Content-Type": "application/ld+json"})
response._content = Path(sys.argv[3]).read_bytes()
request = session.prepare_request(Request("GET", sys.argv[2]))
session.cache.save_response(response, session.cache.create_key(request))
"""
"""Puts the JSON-LD context of RO-Crate, which the package rocrate has, where the validator keeps what it fetched."""


working_folder = once(
    lambda: bench("--limit", "5", "--save-runs", questions=FILMS_QUESTIONS),
)


@pytest.fixture
def measured(working_folder: Path) -> Path:
    """Five questions of films, with their runs, in the folder r."""
    return working_folder / "r"


def names_in(archive: str = "a.zip") -> list[str]:
    with zipfile.ZipFile(archive) as opened:
        return opened.namelist()


def test_an_archive_is_opened_elsewhere_and_its_runs_are_replayed(
    measured: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    assert main(["pack", "r", "--to", "a.zip"]) == 0
    assert "left out: r: the store of calls" in capsys.readouterr().out
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    shutil.move("a.zip", elsewhere)
    shutil.rmtree(measured)
    monkeypatch.chdir(elsewhere)
    assert main(["report", "a.zip"]) == 0
    assert "5 questions: 5 right" in capsys.readouterr().out
    results = elsewhere / "a" / "results" / "r"
    assert (results / "report.html").is_file()
    measured_run = Report(results).measured_run("films-001")
    assert measured_run.run.answer
    graph = kgwb.open_kg(elsewhere / "a" / "graphs" / "films.ttl")
    assert graph.identity == json.loads((results / "config.json").read_text())["kg"]
    assert (results / "prompts" / "chatty_kg" / "qir.md").is_file()
    assert main(["report", "a.zip"]) == 0  # it is unpacked already


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
def test_a_full_disk_is_one_error(
    measured: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    @contextmanager
    def full(path: Path) -> Iterator[Path]:
        yield Path("/dev/full")

    unraisable: list[object] = []
    monkeypatch.setattr(artifact.disk, "draft_of", full)
    monkeypatch.setattr(sys, "unraisablehook", unraisable.append)
    assert main(["pack", "r", "--to", "a.zip"]) == 2
    gc.collect()
    assert unraisable == []
    assert "No space left" in capsys.readouterr().err
    assert not Path("a.zip").exists()


def test_an_unpacked_archive_has_the_caption_of_the_results(measured: Path, tmp_path: Path) -> None:
    day = datetime(2026, 1, 31, 12, tzinfo=UTC).timestamp()
    os.utime(measured / "results.jsonl", (day, day))
    caption = describe_setups([LoadedResults.read(measured)])
    assert "2026-01-31" in caption
    pack_results([measured], Path("a.zip"))
    [folder] = unpack_results(Path("a.zip"), tmp_path / "elsewhere")
    assert describe_setups([LoadedResults.read(folder)]) == caption


def test_the_archive_says_what_it_has_and_its_licence(measured: Path) -> None:
    packed = pack_results([measured], Path("a.zip"), license_iri="https://example.org/licence")
    assert packed.file_count == len(names_in()) - 1
    with zipfile.ZipFile("a.zip") as archive:
        metadata = json.loads(archive.read(METADATA_FILE))
    [root] = [entity for entity in metadata["@graph"] if entity["@id"] == "./"]
    assert "https://example.org/licence" in str(root["license"])
    assert "5 questions" in root["description"]


def test_a_graph_that_is_too_large_and_runs_that_were_not_saved_are_left_out_and_said(
    measured: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.rmtree(measured / "runs")
    packed = pack_results([measured], Path("a.zip"), max_graph_mb=0)
    said = " ".join(packed.left_out)
    assert "5 questions" in said and "films.ttl" in said
    assert not [name for name in names_in() if name.startswith(("graphs/", "results/r/runs"))]


def test_a_graph_that_has_changed_is_not_packed_as_the_measured_one(here: Path) -> None:
    graph = here / "films.ttl"
    shutil.copy(ROOT / "sample_kgs" / "films.ttl", graph)
    write_questions()
    assert bench(kg=str(graph)) == 0
    assert bench("--vocabulary", "wikidata", kg=str(graph), out="other") == 0
    for folder in ("r", "other"):
        assert "films.ttl" not in " ".join(pack_results([Path(folder)], Path("a.zip")).left_out)
    graph.write_text(graph.read_text() + '<http://e/a> <http://e/p> "b" .')
    packed = pack_results([Path("r")], Path("a.zip"))
    assert "films.ttl" in " ".join(packed.left_out)
    assert "graphs/films.ttl" not in names_in()


def test_scores_are_packed_and_retries_are_said_to_be_left_out(measured: Path) -> None:
    assert main(["score", "r", "--right", "films-001", "--questions", "q.jsonl"]) == 0
    assert main(["score", "r", "--scorer", "labels:q.jsonl"]) == 0
    assert retry("--set", "spelling=0", "--only", "all") == 0
    packed = pack_results([measured], Path("a.zip"))
    assert "1 retry" in " ".join(packed.left_out)
    assert "results/r/scores.jsonl" in names_in()


def test_a_key_never_leaves(measured: Path) -> None:
    (measured / "ratings.ann.jsonl").write_text(
        '{"note": "sk-abcdefghijklmnopqrstuvwxyz0123456789"}\n'
    )
    with pytest.raises(InputError, match="line 1"):
        pack_results([measured], Path("a.zip"))
    assert not Path("a.zip").exists()


def test_two_graphs_whose_files_have_one_name_are_both_packed(measured: Path) -> None:
    other = measured.parent / "other"
    graph = other / "films.ttl"
    graph.parent.mkdir()
    graph.write_text('<http://e/a> <http://e/p> "b" .')
    write_questions()
    assert bench(kg=str(graph), out="r2") == 0
    pack_results([measured, Path("r2")], Path("a.zip"))
    with zipfile.ZipFile("a.zip") as archive:
        assert archive.read("graphs/films.ttl") == (ROOT / "sample_kgs/films.ttl").read_bytes()
        assert archive.read("graphs/r2/films.ttl") == graph.read_bytes()


def test_what_cannot_be_packed_is_refused(measured: Path) -> None:
    Path("notes.txt").write_text("mine")
    for folders, path in (
        ([], "a.zip"),
        ([measured, measured], "a.zip"),
        ([measured], "notes.txt"),
    ):
        with pytest.raises(InputError):
            pack_results(folders, Path(path))
    assert Path("notes.txt").read_text() == "mine"


def rewrite(source: Path, target: Path, changes: dict[str, bytes]) -> None:
    """Copy an archive with other contents of some files, or further files."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for name in {*old.namelist(), *changes}:
            new.writestr(name, changes[name] if name in changes else old.read(name))


def test_a_damaged_or_hostile_archive_is_refused_and_nothing_is_written(
    measured: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pack_results([measured], Path("a.zip"))
    rewrite(Path("a.zip"), Path("damaged.zip"), {"results/r/results.jsonl": b"{}\n"})
    data = b"here"
    entity = {"@id": "x", "name": "../../out.txt", "sha256": hashlib.sha256(data).hexdigest()}
    metadata = json.dumps({"@graph": [entity]}).encode()
    rewrite(Path("a.zip"), Path("hostile.zip"), {METADATA_FILE: metadata, "../../out.txt": data})
    rewrite(Path("a.zip"), Path("nothing.zip"), {METADATA_FILE: b"[]"})
    Path("text.zip").write_text("no archive")
    for name in ("damaged", "hostile", "nothing", "text"):
        with pytest.raises(InputError):
            unpack_results(Path(f"{name}.zip"), Path("out"))
        assert not Path("out").exists()
    monkeypatch.setattr(artifact, "MAX_UNPACKED_BYTES", 10)
    with pytest.raises(InputError, match="GB"):
        unpack_results(Path("a.zip"), Path("out"))
    Path("full").mkdir()
    with pytest.raises(InputError, match="something else"):
        unpack_results(Path("a.zip"), Path("full"))


@pytest.mark.long
def test_an_archive_is_a_valid_ro_crate(measured: Path) -> None:
    if not (VALIDATOR / ".ready").exists():
        leave_out(
            "no roc-validator: install it with `make crate-validator`, once, in half a minute"
        )
    import rocrate

    context = Path(rocrate.__file__).parent / "data" / "ro-crate.jsonld"
    pack_results([measured], Path("a.zip"))
    python = str(VALIDATOR / "bin" / "python")
    subprocess.run([python, "-c", FILL_CACHE, "cache", CONTEXT, str(context)], check=True)
    command = [python, str(VALIDATOR / "bin" / "rocrate-validator"), "--disable-color", "validate"]
    command += "--no-paging --offline --cache-path cache --requirement-severity required".split()
    ended = subprocess.run([*command, "a.zip"], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
