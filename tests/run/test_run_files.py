"""A run on disk: replayed without a network, resumed after a kill, and read with care."""

import json
import socket
import threading
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import surveying
from rdflib import BNode, Literal, URIRef
from small import (
    CALLS,
    DIRECTED,
    HOMONYMS,
    KEYS,
    MADE_UP,
    SCRIPT,
    TEXTS,
    chatty,
    films,
    keys,
    made_up,
    system_of,
)
from tables import read_table

import kgwb
from kgwb.build import agent
from kgwb.errors import EmbeddingError, NotRecordedError, RunFileError, SettingError
from kgwb.kg.base import ResultSet
from kgwb.llm import ChatRequest, Scripted
from kgwb.records import JsonObject, encode_compact, to_data
from kgwb.run import Run
from kgwb.run.models import Replay
from kgwb.run.record import RunFile
from kgwb.run.run import read_only_run
from kgwb.run.steps import Call, call_key
from kgwb.terms import Iri

# --- replay


def test_a_run_that_is_opened_over_another_graph_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run = kgwb.Workbench(films(), "rules").ask("Who directed Arrival?")
    path = run.save(tmp_path / "run.jsonl")
    with caplog.at_level("WARNING", "kgwb"):
        kgwb.load_run(path, kg=films(), model="rules")
        kgwb.load_run(path)
        assert caplog.records == []
        kgwb.load_run(path, kg=kgwb.open_kg("cars"), model="rules")
    [record] = caplog.records
    assert "cars" in record.getMessage()


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("the network was used")

    monkeypatch.setattr(socket.socket, "connect", refuse)


@pytest.mark.usefixtures("no_network")
def test_a_saved_run_replays_without_model_and_graph(tmp_path: Path) -> None:
    run = chatty("Who directed Dune?", Scripted(HOMONYMS)).go()
    again = kgwb.load_run(run.save(tmp_path / "run.jsonl"))
    assert again.unrecorded_graph is None
    assert again.answer == run.answer
    assert [(s.key, s.output, s.calls, s.attempts) for s in again.steps] == [
        (s.key, s.output, s.calls, s.attempts) for s in run.steps
    ]
    assert again.totals.live_model_calls == 0
    assert {difference.status for difference in run.diff(again)} == {"same"}


@pytest.mark.usefixtures("no_network")
def test_a_replay_and_its_fork_keep_overrides_and_the_recorded_prompts(
    tmp_path: Path,
) -> None:
    run = made_up(Scripted(SCRIPT)).override("look_up[Dune]", "a book").go()
    run.edit_prompt("made_up/split", TEXTS["made_up/split"] + "!")  # not used before it is saved
    loaded = Run.load(run.save(tmp_path / "run.jsonl"), MADE_UP)
    assert loaded.prompts.texts == {**TEXTS, "made_up/split": TEXTS["made_up/split"] + "!"}
    run.edit_prompt("made_up/split", TEXTS["made_up/split"])
    again = Run.load(run.save(tmp_path / "run.jsonl"), MADE_UP).go()
    fork = again.fork(path=tmp_path / "fork.jsonl").go()
    for replay in (again, fork, Run.load(tmp_path / "fork.jsonl", MADE_UP).go()):
        assert (replay.answer, replay.output("look_up[Dune]")) == (run.answer, "a book")
        assert replay["look_up[Dune]"].origin == "by hand"


# --- killed


@pytest.mark.parametrize("last", [2, 5])
@pytest.mark.parametrize(
    "torn", [b"", b'{"call": {"key": "ab', '{"prompt":{"text":"ü'.encode()[:-1]]
)
def test_a_killed_run_resumes_and_asks_nothing_twice(
    tmp_path: Path, last: int, torn: bytes
) -> None:
    path, left = tmp_path / "run.jsonl", list[bytes]()
    replies = Scripted(SCRIPT)

    def reply(request: ChatRequest) -> Any:
        left.append(path.read_bytes())  # what a kill would leave while this is asked
        return replies.complete(request, None, threading.Event())

    first = Scripted(reply)
    made_up(first, path=path).go()
    path.write_bytes(left[last - 1] + torn)
    replied = Counter(request.task for request in first.requests[: last - 1])
    model = Scripted(
        {**SCRIPT, "made_up/guess": SCRIPT["made_up/guess"][replied["made_up/guess"] :]}
    )
    resumed = Run.load(path, MADE_UP, kg=films(), models=model, append=True).go()
    assert (keys(resumed), str(resumed.answer)) == (KEYS, "three")
    assert model.call_count() == CALLS - (
        last - 1
    )  # the one it was killed in has to be asked again
    assert model.requests[0] == first.requests[last - 1]
    assert Run.load(path, MADE_UP).go().answer == resumed.answer  # and the file is whole


def test_a_file_killed_within_its_header_is_a_run_file_that_is_written_anew(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    made_up(Scripted(SCRIPT), path=path)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(RunFileError):
        Run.load(path, MADE_UP)
    run = made_up(Scripted(SCRIPT), path=path).go()
    assert Run.load(path, MADE_UP).go().answer == run.answer


EX = URIRef("https://example.org/ü")
ROWS = ResultSet(("a", "b"), ((EX, None), (Literal("\x00\u2028 é", lang="en"), BNode("b1"))), False)


@pytest.mark.parametrize(
    ("kind", "request_", "result", "type_"),
    [
        ("select", {"query": 'SELECT "ü\n"', "muted": [["a", "b"]]}, ROWS, ResultSet),
        ("select", {}, ResultSet(("a",), ((Literal("half \ud800"),),), True), ResultSet),
        ("ask", {"query": "ASK {}"}, True, bool),
        ("exact", {"labels": ["a"]}, {"a": (EX,)}, dict[str, tuple[Iri, ...]]),
        ("similarity", {"spelling": 0.00001}, (0.00001, -0.0, 1e22), tuple[float, ...]),
        ("my.tool", {"a": [1, {"b": None}]}, {"a": [0.1, "\udfff"]}, None),
    ],
)
def test_a_call_is_encoded_in_the_form_of_a_run_file(
    kind: str, request_: JsonObject, result: Any, type_: Any
) -> None:
    key = call_key(kind, request_, 0)
    response = {"status": 200}
    call = Call(key, kind, 'a "step"', request_, 0, result, "2026", 0.0000123, type_, response)
    data = {
        "key": key,
        "kind": kind,
        "step": 'a "step"',
        "repeat": 0,
        "taken_at": "2026",
        "seconds": 0.000012,
        "response": response,
        "request": request_,
        "reply": json.loads(encode_compact(to_data(result, type_))),
    }
    assert json.loads(call.to_json()) == data
    assert Call.from_data(json.loads(call.to_json())).result == Call.from_data(data).result


def test_a_paused_run_is_loaded_paused_and_can_be_resumed(tmp_path: Path) -> None:
    run = chatty("Who directed Arrival?", Scripted(DIRECTED)).go(until="qir")
    path = run.save(tmp_path / "run.jsonl")
    again = kgwb.load_run(path)
    assert (again.status, again.position) == ("paused", run.position)
    assert [(step.key, step.output) for step in again.steps] == [
        (s.key, s.output) for s in run.steps
    ]
    model = Scripted({**DIRECTED, "chatty_kg/qir": []})
    resumed = kgwb.load_run(path, kg=films(), model=model)
    assert (resumed.status, str(resumed.go().answer)) == ("paused", "Denis Villeneuve")
    resumed.save(path)
    with_lines(path, lambda lines: [line for line in lines if '"task":"chatty_kg/qir"' not in line])
    with pytest.raises(NotRecordedError, match="chatty_kg/qir"):  # though the run is finished
        kgwb.load_run(path)


# --- run files


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    return made_up(Scripted(SCRIPT)).go().save(tmp_path / "run.jsonl")


def with_lines(path: Path, change: Any) -> Path:
    lines = path.read_text().splitlines()
    path.write_text("\n".join(change(lines)) + "\n")
    return path


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "is empty"),
        (b'{"kgwb_run":1', "is not a kgwb run file"),
        (b'{"kgwb_run":true}\n', "is not a kgwb run file"),
        (b"\x89PNG\r\n\x1a\n", "is not a kgwb run file"),
        (b'{"kgwb_run":1}\n', "is damaged: "),
        (b'{"kgwb_run": 1, "question": "\\ud800"}\n', "is damaged: "),
        (b"9" * 10_000, "run.jsonl"),
        (b"[" * 100_000, "run.jsonl"),
        (b"\n" * 10**5, "run.jsonl"),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_a_file_that_is_no_run_file_is_refused(
    tmp_path: Path, content: bytes, problem: str
) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(content)
    with pytest.raises(RunFileError, match=problem) as caught:
        kgwb.load_run(path)
    assert caught.value.hint
    recording = content.startswith((b'{"kgwb_run":1}', b'{"kgwb_run": 1'))
    with nullcontext() if recording else pytest.raises(RunFileError, match=path.name):
        Replay.from_file(path)


@pytest.mark.parametrize(
    ("old", "new", "problem"), read_table(Path(__file__).with_name("damaged_files.jsonl"))
)
def test_damage_in_the_middle_and_another_version_are_found(
    saved: Path, old: str, new: str, problem: str
) -> None:
    text = saved.read_text()
    assert old in text
    saved.write_text(text.replace(old, new, 1))
    with pytest.raises((RunFileError, SettingError), match=problem) as caught:
        Run.load(saved, MADE_UP)
    assert caught.value.hint


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "none.jsonl", tmp_path):
        with pytest.raises(RunFileError, match=path.name):
            kgwb.load_run(path)
    for path in (tmp_path / "run.jsonl.gz", tmp_path):
        with pytest.raises(RunFileError, match=path.name):
            made_up(Scripted(SCRIPT)).save(path)


@pytest.mark.parametrize("keep", [True, False])
def test_a_file_of_another_kind_is_not_overwritten(tmp_path: Path, keep: bool) -> None:
    notes = tmp_path / "notes.md"
    notes.write_text("my notes")
    with pytest.raises(RunFileError, match=notes.name):
        made_up(Scripted(SCRIPT), path=notes) if keep else made_up(Scripted(SCRIPT)).save(notes)
    assert (notes.read_text(), [*tmp_path.glob("*.*")]) == ("my notes", [notes])


def test_a_run_file_is_json_lines_that_any_program_can_read(saved: Path) -> None:
    entries = [json.loads(line) for line in saved.read_text().splitlines()]
    assert [next(iter(entry)) for entry in entries] == [
        "kgwb_run",
        *["call"] * (CALLS + 2),
        *["step"] * len(KEYS),
        "end",
    ]
    assert [entry["step"]["key"] for entry in entries if "step" in entry] == KEYS
    assert entries[-1]["end"]["answer"]["values"][0]["term"] == {
        "type": "literal",
        "value": "three",
    }


@pytest.mark.parametrize(
    ("damage", "taken", "unread"),
    [
        ({}, 4, 0),
        ({0: '{"kgwb_run":1}'}, 4, 0),
        ({0: '{"kgwb_run":1,"question'}, 4, 1),
        ({2: '{"call":{"key":"ab"}}'}, 3, 1),
        ({2: '{"call":{"key":', 3: "7"}, 2, 2),
        ({2: '{"end":{"status":"asleep"}}'}, 3, 1),
        ({2: '{"end":{"status":"done","position":3}}'}, 0, 0),
        ({0: '{"kgwb_run":1,"question":"Another?"}'}, 0, 0),
    ],
)
def test_a_new_run_takes_over_what_can_be_read_of_a_file_unless_it_was_finished(
    saved: Path,
    damage: dict[int, str],
    taken: int,
    unread: int,
    caplog: pytest.LogCaptureFixture,
) -> None:
    header, *entries = saved.read_text().splitlines()
    calls = [line for line in entries if line.startswith('{"call"')]
    lines = [header, *calls[:4]]
    for number, line in damage.items():
        lines[number] = line
    with_lines(saved, lambda _: lines)
    again = made_up(Scripted(SCRIPT), path=saved)
    assert len(again.calls) == len(Run.load(saved, MADE_UP).calls) == taken
    warnings = [record.getMessage().split()[0] for record in caplog.records]
    assert warnings == [str(unread)] * bool(unread)


def test_the_last_end_of_a_run_that_is_only_read_counts_though_calls_come_after_it(
    saved: Path,
) -> None:
    calls = [line for line in saved.read_text().splitlines() if line.startswith('{"call"')]
    with_lines(saved, lambda lines: [*lines, calls[0]])
    run = read_only_run(saved, "the system")
    assert (run.status, run.recorded_status) == ("done", "")
    assert run.answer is not None


def test_embeddings_named_by_a_file_are_not_loaded(saved: Path) -> None:
    with_lines(saved, lambda lines: [lines[0].replace('"lexical"', '"somebody/model"'), *lines[1:]])
    run = Run.load(saved, MADE_UP, kg=films(), models=Scripted({}))
    with pytest.raises(EmbeddingError, match="somebody/model"):
        run.embeddings.similarity("a", ["b"])


# --- a survey is as large as all the rest


def test_an_output_that_is_the_reply_of_a_call_is_in_the_file_once(tmp_path: Path) -> None:
    run, _ = surveying.answered()
    file = run.save(tmp_path / "run.jsonl")
    assert file.read_text().count('"both_ways":') == 1
    [step] = [entry["step"] for entry in RunFile(file).entries() if key_of(entry) == "surveyor"]
    assert (step["output"], step["done"]) == (None, True)
    [call] = [run.calls[key] for key in run.calls if key == step["output_of_call"]]
    assert call.kind == "survey"

    loaded = kgwb.load_run(file)
    assert [step.output for step in loaded.steps] == [step.output for step in run.steps]
    again = loaded.save(tmp_path / "again.jsonl")
    assert again.read_text().count('"both_ways":') == 1
    shown = read_only_run(file, "for a test")
    assert to_data(shown.output("surveyor")) == to_data(run.output("surveyor"))


@pytest.mark.parametrize(
    ("kind", "query", "output"),
    [("ask", "ASK { }", True), ("construct", "CONSTRUCT WHERE { ?s <http://e/none> ?o }", [])],
)
def test_an_output_that_is_short_stays_though_it_is_the_reply_of_a_call(
    kind: str, query: str, output: Any, tmp_path: Path
) -> None:
    @agent
    def look(text: str, run: Run) -> Any:
        return getattr(run.kg, kind)(query)

    run = Run(system_of(look), "Who?", kg=films(), models=None).go()
    entries = RunFile(run.save(tmp_path / "run.jsonl")).entries()
    [step] = [entry["step"] for entry in entries if key_of(entry) == "look"]
    assert (step["output"], len(step["calls"])) == (output, 1)


def key_of(entry: dict[str, Any]) -> str:
    """The key of the step that an entry of a file describes; "" for any other entry."""
    return str(entry.get("step", {}).get("key", ""))
