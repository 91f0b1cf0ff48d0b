"""Run files and recordings from a stranger: data, whatever they say."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import ipywidgets as widgets
import pytest
from hypothesis import strategies as st
from small import HOMONYMS, chatty
from tables import read_table

import kgwb
from hostile.corpus import outcomes, texts
from hostile.runs import Page, bundles, hostile_run
from hostile.servers import serving
from hostile.test_replies import JUNK
from kgwb.errors import InputError, KgwbError, NotRecordedError, PromptError, RunFileError
from kgwb.llm import Scripted
from kgwb.run.models import Replay
from kgwb.run.prompts import Prompts, shipped_folder
from kgwb.run.steps import call_key
from kgwb.show.comparison import to_html
from kgwb.text import CONTROL_CHARACTERS
from kgwb.ui.debugger import VIEW_LABELS, Debugger
from kgwb.ui.session import session_of

MUTATED = 600
"""Spoilt run files that are loaded; each tenth that loads is shown in every form."""
WATCHERS: list[list[tuple[str, Any]]] = []
"""Who is told what the process does; a hook of the interpreter can never be taken away."""


WATCHED = {"open", "import", "exec", "compile", "socket.connect", "socket.getaddrinfo", "os.system"}
WATCHED |= {"subprocess.Popen", "os.remove", "os.rename", "os.mkdir"}


def _hook(event: str, args: Any) -> None:
    if WATCHERS and event in WATCHED:
        WATCHERS[-1].append((event, args))


sys.addaudithook(_hook)


@contextmanager
def watched() -> Iterator[list[tuple[str, Any]]]:
    """What the process does meanwhile."""
    WATCHERS.append([])
    try:
        yield WATCHERS[-1]
    finally:
        WATCHERS.pop()


SOURCE = Path(kgwb.__file__).parent


def assert_harmless(content: bytes, folder: Path, *, widgets_too: bool = False) -> Any:
    """The run of a file, or the error that said it cannot be; no more was done than to read.

    That is the file, kgwb's own prompts, and its source, which a traceback shows.
    """
    path = folder / "run.jsonl"
    path.write_bytes(content)
    with watched() as seen:
        made = load(path)
    for event, args in seen:
        opened = Path(str(args[0]))
        known = event == "open" and (
            opened == path
            or shipped_folder() in opened.parents
            or (opened.suffix == ".py" and SOURCE in opened.parents)
        )
        assert known and args[1] in ("r", "rb", None), (event, args[:2])
    if not isinstance(made, KgwbError):
        assert_shown(made, widgets_too=widgets_too)
    return made


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The lines of a real run file: homonyms, an edited prompt, an override."""
    run = chatty("Who directed Dune?", Scripted(HOMONYMS)).go()
    run.edit_prompt("chatty_kg/qir", run.prompts.text("chatty_kg/qir") + "\n")
    run.override("qir", run.output("qir"))
    path = run.go().save(tmp_path_factory.mktemp("runs") / "run.jsonl")
    load(path)  # imports what loading imports
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    unknown = path.with_name("unknown.jsonl")
    header = json.loads(lines[0]) | {"system": "unknown"}
    unknown.write_text("".join([json.dumps(header) + "\n", *lines[1:]]), encoding="utf-8")
    load(unknown)  # also where the system is missing
    return lines


def load(path: Path) -> Any:
    """The loaded run, or the error that said it cannot be."""
    try:
        return kgwb.load_run(path)
    except (RunFileError, NotRecordedError, InputError) as error:
        assert str(error)
        return error


# --- what a file may say


HEADERS: list[dict[str, Any]] = [
    *read_table(Path(__file__).with_name("odd_headers.jsonl")),
    {"settings": {"theta": 10**400}},
    {"question": "x" * 10**6},
    {"question": "a " * 10**4},
]
"""Fields that lead somewhere or are odd; other kinds of values come with the spoilt files."""


@pytest.mark.parametrize("header", HEADERS, ids=lambda header: json.dumps(header)[:50])
def test_whatever_a_header_says_nothing_is_opened(
    header: dict[str, Any], saved: list[str], tmp_path: Path
) -> None:
    with serving() as server:
        told = json.loads(json.dumps(header).replace("{url}", server.url.removeprefix("http://")))
        entry = json.dumps({**json.loads(saved[0]), **told})
        assert_harmless("".join([entry + "\n", *saved[1:]]).encode(), tmp_path)
        assert server.seen == []


@pytest.mark.parametrize(
    "entry",
    read_table(Path(__file__).with_name("odd_entries.jsonl")),
    ids=lambda entry: json.dumps(entry)[:60],
)
def test_whatever_an_entry_says_nothing_is_opened(
    entry: Any, saved: list[str], tmp_path: Path
) -> None:
    prompt = json.dumps(json.loads(saved[0])["prompts"]["chatty_kg/qir"])
    line = json.dumps(entry).replace('"{prompt}"', prompt)
    assert_harmless("".join([*saved, line + "\n"]).encode(), tmp_path)


@pytest.mark.parametrize("depth", [300, 900, *range(960, 1_020, 3), 1_100])
def test_a_file_nested_to_any_depth(depth: int, saved: list[str], tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    nested = '{"a":' * depth + "1" + "}" * depth
    request = f'"kind": "model", "request": {nested}, "repeat": 0'
    call = f'{{"call": {{{request}, "key": "x", "reply": {nested}}}}}\n'
    path.write_text(saved[0] + call + saved[1], encoding="utf-8")
    assert isinstance(load(path), RunFileError)
    with pytest.raises(RunFileError):
        Replay.from_file(path)


def test_spoilt_run_files_load_or_are_refused(saved: list[str], tmp_path: Path) -> None:
    def loaded(number: int) -> str:
        made = assert_harmless(
            spoilt(saved, random.Random(number)), tmp_path, widgets_too=number % 20 == 0
        )
        return type(made).__name__

    assert {"Run", "RunFileError"} <= {*outcomes(MUTATED, st.integers(0, 2**60), loaded)}


def spoilt(lines: list[str], chance: random.Random) -> bytes:
    """A run file with something done to a line of it, or to its bytes."""
    lines = list(lines)
    for _ in range(chance.choice((1, 1, 2, 4))):
        place = chance.randrange(len(lines))
        match chance.randrange(6):
            case 0:
                del lines[place]
            case 1:
                lines.insert(chance.randrange(len(lines) + 1), lines[place])
            case 2:
                lines[place] = lines[place][: chance.randrange(len(lines[place]))]
            case _:
                with suppress(ValueError):
                    lines[place] = json.dumps(changed(json.loads(lines[place]), chance)) + "\n"
        lines = lines or [""]
    raw = bytearray("".join(lines).encode("utf-8", "surrogatepass"))
    if chance.random() < 0.15 and raw:
        raw[chance.randrange(len(raw))] = chance.randrange(256)
    return bytes(raw)


def changed(entry: Any, chance: random.Random) -> Any:
    """Something inside an entry is another thing; the key of a call is made to fit its content again."""
    at = entry
    while isinstance(at, dict | list) and at:
        key = chance.choice(list(at) if isinstance(at, dict) else range(len(at)))
        if not isinstance(at[key], dict | list) or not at[key] or chance.random() < 0.15:
            odd = chance.choices(texts(1_000, halves=True), k=20)
            at[key] = chance.choice((*JUNK, *odd, at[key], "x" * 100_000))
            break
        at = at[key]
    call = entry.get("call") if isinstance(entry, dict) else None
    if isinstance(call, dict) and chance.random() < 0.7:
        with suppress(KeyError, TypeError, ValueError):
            call["key"] = call_key(call["kind"], call["request"], call["repeat"])
    return entry


def assert_shown(run: Any, *, widgets_too: bool = False) -> None:
    """What a stranger's run shows is text."""
    page = Page(to_html(run))
    assert page.odd == []
    assert not CONTROL_CHARACTERS.search(repr(run))
    if widgets_too:
        debugger = Debugger(session_of(run))
        for view in VIEW_LABELS:
            debugger.update({"do": "view", "arg": view})
        assert Page(debugger.static_html()).odd == []
        widgets.Widget.close_all()


# --- paths


NAMES = ["", "a\x00b", "a\nb", *"../x /etc/x a/../../x .. a//b a/ ~/x a\\..\\x C:x".split()]


@pytest.mark.parametrize("name", NAMES)
def test_the_name_of_a_prompt_does_not_lead_out_of_its_folder(name: str, tmp_path: Path) -> None:
    text = Prompts().text("chatty_kg/qir")
    folder = tmp_path / "in" / "prompts"
    folder.mkdir(parents=True)
    for change in (Prompts(folder).save, Prompts(folder).with_text):
        with pytest.raises(PromptError, match="not the name of a prompt"):
            change(name, text)
    assert [*tmp_path.rglob("*")] == [tmp_path / "in", folder]


def test_saving_a_strangers_run_writes_where_the_person_says(
    saved: list[str], tmp_path: Path
) -> None:
    path, out = tmp_path / "run.jsonl", tmp_path / "out.jsonl"
    header = {**json.loads(saved[0]), "id": "../../evil", "source": "/etc/evil"}
    path.write_text("".join([json.dumps(header) + "\n", *saved[1:]]), encoding="utf-8")
    kgwb.load_run(path).save(out)
    assert sorted(tmp_path.iterdir()) == [out, path]


def test_a_hostile_run_comes_back_as_it_was_and_can_be_shown(tmp_path: Path) -> None:
    for number, bundle in [*enumerate(bundles(texts()))][::6]:
        run = hostile_run(bundle, number)
        again = kgwb.load_run(run.save(tmp_path / f"{number}.jsonl"))
        assert again.answer == run.answer
        assert to_html(again).encode()
        assert_shown(again)
