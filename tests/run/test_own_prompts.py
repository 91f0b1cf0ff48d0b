"""A system outside of kgwb has prompts of its own: in a folder beside its module, or in its code."""

from __future__ import annotations

from pathlib import Path

import pytest

import kgwb
from kgwb.cli import main
from kgwb.errors import PromptError
from kgwb.llm import Scripted
from kgwb.run import Run, System
from kgwb.run.prompts import Prompts
from kgwb.run.systems import resolve_system

PROMPT = """---
purpose: Say something.
strategy: zero-shot
variables: question
reply: SayReply
source: ours
---
[user]
{{question}}
"""
MODULE = """
from rdflib import Literal
from kgwb.build import Answer, Reply, System, Value, agent, ask_model

class SayReply(Reply):
    word: str

@agent(kind="model")
def say(question, run):
    return ask_model("sayer/say", {"question": question}, SayReply, run).word

def answer(question, dialogue, run):
    return Answer("list", (Value(Literal("x"), say(question.text, run)),))

SYSTEM = System("sayer", answer, [say]PROMPTS)
"""
SCRIPT = 'SCRIPT = {"sayer/say": [{"word": "hello"}, {"word": "again"}]}\n'


def write_system(folder: Path, prompts: str = "") -> Path:
    """A file of a system with prompts given as text of its code."""
    file = folder / "sayer.py"
    file.write_text(MODULE.replace("PROMPTS", prompts))
    return file


@pytest.fixture
def beside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A system in a file, with a folder of prompts beside it."""
    monkeypatch.chdir(tmp_path)
    prompts = tmp_path / "prompts" / "sayer"
    prompts.mkdir(parents=True)
    (prompts / "say.md").write_text(PROMPT)
    (tmp_path / "script.py").write_text(SCRIPT)
    return write_system(tmp_path)


def ask(system: System | str | Path, **options: object) -> Run:
    model = Scripted({"sayer/say": [{"word": "hello"}, {"word": "again"}]})
    workbench = kgwb.Workbench("films", model, system=system, **options)  # type: ignore[arg-type]
    return workbench.ask("Who?")


def test_prompts_beside_the_module_are_found_edited_and_saved(beside: Path) -> None:
    run = ask(beside)
    assert run.answer and run.answer.labels == ("hello",)
    run.edit_prompt("sayer/say", PROMPT + "Think.\n").go()
    assert run.answer and run.answer.labels == ("again",)
    saved = run.prompts.save("sayer/say", PROMPT + "Saved.\n")
    assert saved == beside.parent / "prompts" / "sayer" / "say.md"
    assert "Saved." in saved.read_text()


def test_prompts_in_the_code_are_edited_and_saved_where_the_person_says(tmp_path: Path) -> None:
    system = resolve_system(write_system(tmp_path, f", prompts={{'sayer/say': {PROMPT!r}}}"))
    run = ask(system)
    assert run.answer and run.answer.labels == ("hello",)
    run.edit_prompt("sayer/say", PROMPT + "Think.\n").go()
    assert run.answer and run.answer.labels == ("again",)
    with pytest.raises(PromptError, match="is written in the code"):
        run.prompts.save("sayer/say", PROMPT)
    folder = tmp_path / "mine"
    folder.mkdir()
    saved = ask(system, prompts=folder).prompts.save("sayer/say", PROMPT + "Mine.\n")
    assert saved == folder / "sayer" / "say.md"
    other = ask(system, prompts=folder)
    assert "Mine." in other.record.used_prompts["sayer/say"]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("variables: question", "variables: query", r"uses \{\{question\}\}"),
        ("SayReply", "Wrong", "its agent asks for SayReply"),
    ],
)
def test_a_wrong_prompt_in_the_code_is_said(tmp_path: Path, old: str, new: str, said: str) -> None:
    wrong = PROMPT.replace(old, new)
    with pytest.raises(PromptError, match=said):
        ask(write_system(tmp_path, f", prompts={{'sayer/say': {wrong!r}}}"))


def test_a_script_is_not_opened_on_the_word_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "evil.py").write_text("raise SystemExit('executed')")
    with pytest.raises(kgwb.errors.KgwbError, match="no model named"):
        kgwb.model(f"scripted:{tmp_path / 'evil.py'}")


@pytest.mark.parametrize("spec", ["scripted:missing.py", "scripted:", "scripted:sayer.py"])
def test_a_script_that_is_none_is_said(
    beside: Path, spec: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["ask", "--kg", "films", "--system", "sayer.py", "--model", spec, "Who?"])
    assert code == 2
    assert "What to do" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("[user]", "[system]\nBe brief.\n[usr]", "[usr]"),
        ("{{question}}", "{{question}}\n[Example]\nNo.", "[Example]"),
        ("SayReply", "Foo", "Foo"),
    ],
)
def test_a_head_that_is_not_known_and_another_reply_are_refused_before_a_call(
    old: str, new: str, named: str, beside: Path
) -> None:
    system = resolve_system(str(beside))
    folder = beside.parent / "mine"
    (folder / "sayer").mkdir(parents=True)
    file = folder / "sayer" / "say.md"
    file.write_text(f"{PROMPT}\n[table]\n[1]\n")
    system.check_prompts(Prompts(folder))
    file.write_text(PROMPT.replace(old, new))
    with pytest.raises(PromptError) as caught:
        system.check_prompts(Prompts(folder))
    assert named in str(caught.value)
