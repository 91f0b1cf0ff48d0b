"""Prompt files: found, checked and filled."""

import importlib
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel
from small import workbench
from tables import read_table

from kgwb.cli import main
from kgwb.errors import PromptError
from kgwb.kg import sample_path
from kgwb.llm import Scripted
from kgwb.run.ask import schema_of
from kgwb.run.prompts import VARIABLE, Prompts, parse_prompt, shipped_folder
from kgwb.run.systems import load_system

HERE = Path(__file__).parent

SHIPPED = sorted(
    path.relative_to(shipped_folder()).with_suffix("").as_posix()
    for path in shipped_folder().rglob("*.md")
)
HEAD = "---\npurpose: p\n\nstrategy: s\nvariables: a, b\nreply: R\nsource: s\n---\n"


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_prompt_is_filled_and_shows_the_fields_of_its_reply(name: str) -> None:
    loaded = Prompts().load(name)
    messages = loaded.fill({variable: f"<{variable}>" for variable in loaded.variables})
    text = "\n".join(message.content for message in messages)
    assert messages[0].role == "system"
    assert messages[-1].role == "user"
    assert all(f"<{variable}>" in text for variable in loaded.variables)
    assert not VARIABLE.search(text)
    assert all(loaded.header.values())
    fields: Iterable[str] = ("thought", "action")
    if loaded.header["reply"] != "ActionReply":  # of a prompt of ``act``, which is made of tools
        [reply] = reply_classes(name.partition("/")[0], loaded.header["reply"])
        fields = schema_of(reply)["properties"]
    shown = loaded.messages[0].content
    assert [field for field in fields if f'"{field}"' not in shown] == []


def reply_classes(system: str, name: str) -> Iterator[type[BaseModel]]:
    root = Path(__file__).parents[2] / "kgwb"
    for path in sorted((*(root / "systems" / system).glob("*.py"), root / "run" / "linking.py")):
        module = importlib.import_module(
            ".".join(path.relative_to(root.parent).with_suffix("").parts)
        )
        if getattr(getattr(module, name, None), "__module__", "") == module.__name__:
            yield getattr(module, name)


@pytest.mark.parametrize(
    ("text", "problems"),
    read_table(HERE / "wrong_prompts.jsonl"),
)
def test_a_wrong_prompt_file_is_refused_with_all_its_problems(
    text: str, problems: list[str]
) -> None:
    with pytest.raises(PromptError) as caught:
        parse_prompt("x/y", text)
    for problem in problems:
        assert problem in str(caught.value)
    assert caught.value.hint


def test_a_prompt_without_a_header_has_the_variables_of_its_messages() -> None:
    prompt = parse_prompt("x/y", "\n[system]\nIn {{place}}.\n[user]\n{{question}}\n---\n")
    assert prompt.variables == ("place", "question")
    assert prompt.header == {}
    system, user = prompt.fill({"place": "Ulm", "question": "Who?"})
    assert (system.content, user.content) == ("In Ulm.", "Who?\n---")


def test_an_error_lists_all_missing_and_unknown_variables() -> None:
    loaded = parse_prompt("x/y", HEAD + "[user]\n{{a}} {{b}}")
    with pytest.raises(PromptError) as caught:
        loaded.fill({"a": "1", "c": "2", "d": "3"})
    for part in ("gets no value for b", "does not declare c", "does not declare d"):
        assert part in caught.value.message


@pytest.mark.parametrize(
    ("body", "values", "content"),
    read_table(HERE / "filled_prompts.jsonl"),
)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_variable_is_filled_once_and_other_braces_mean_themselves(
    body: str, values: dict[str, object], content: str, end: str
) -> None:
    [message] = parse_prompt("x/y", f"{HEAD}[user]\n{body}".replace("\n", end)).fill(values)
    assert message.content == content


def test_a_prompt_file_is_read_again_when_it_was_changed(tmp_path: Path) -> None:
    file = tmp_path / "x.md"
    file.write_text("\ufeff[user]\none", encoding="utf-8")
    assert Prompts(tmp_path).text("x") == "[user]\none"
    file.write_text("\ufeff[user]\ntwo", encoding="utf-8")  # as long as before
    changed_ns = file.stat().st_mtime_ns + 1_000_000_000
    os.utime(file, ns=(changed_ns, changed_ns))
    assert Prompts(tmp_path).text("x") == "[user]\ntwo"


def test_missing_and_unreadable_prompts_are_named(tmp_path: Path) -> None:
    with pytest.raises(PromptError, match="chatty_kg/qri") as caught:
        Prompts(tmp_path).text("chatty_kg/qri")
    assert str(tmp_path / "chatty_kg" / "qri.md") in caught.value.hint
    (tmp_path / "x.md").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(PromptError, match="cannot read") as caught:
        Prompts(tmp_path).text("x")
    assert "UTF-8" in caught.value.hint
    own = tmp_path / "chatty_kg" / "qir.md"
    own.parent.mkdir()
    own.symlink_to(own)  # as a folder that may not be entered: whether it is there is not known
    for look in (Prompts(tmp_path).text, Prompts(tmp_path).has_own):
        with pytest.raises(PromptError, match=re.escape(str(own))):
            look("chatty_kg/qir")
    with pytest.raises(PromptError, match="none"):
        workbench(Scripted({}), prompts=tmp_path / "none")


EXAMPLES = HEAD + "[system]\n{{a}}\n[example]\none {{a}}\n[example]\ntwo\n[user]\n{{b}}\n"


@pytest.mark.parametrize(
    ("shown", "system"), [(None, ["one {{a}}", "two"]), (1, ["one {{a}}"]), (0, [])]
)
def test_at_most_so_many_examples_follow_their_message(
    shown: int | None, system: list[str]
) -> None:
    first, last = parse_prompt("x/y", EXAMPLES).fill({"a": "A", "b": "B"}, shown)
    assert first.content == "\n\n".join(["A", *(f"Example\n{example}" for example in system)])
    assert (last.role, last.content) == ("user", "B")


# --- a person's prompts, before anything is asked


QIR = "chatty_kg/qir"
FEWER = (
    Prompts().text(QIR).replace("{{question}}", "it").replace("variables: question", "variables:")
)


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        ({QIR: ""}, "has no header"),
        ({QIR: Prompts().text(QIR).replace("{{question}}", "{question}")}, "never uses it"),
        ({QIR: Prompts().text(QIR).replace("question}}", "qestion}}")}, "qestion"),
        ({QIR: FEWER}, "lacks {{question}}"),
        ({"chatty_kg/qri": Prompts().text(QIR)}, "did you mean chatty_kg/qir.md?"),
        ({"chaty_kg/qir": Prompts().text(QIR)}, "did you mean chatty_kg/qir.md?"),
        ({"qir": Prompts().text(QIR)}, "did you mean chatty_kg/qir.md?"),
    ],
)
def test_wrong_prompts_are_refused(files: dict[str, str], problem: str, here: Path) -> None:
    for name, text in files.items():
        file = here / "mine" / f"{name}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    with pytest.raises(PromptError) as caught:
        load_system("chatty_kg").check_prompts(Prompts.of("mine"))
    assert problem in str(caught.value)


def test_a_benchmark_with_wrong_prompts_asks_no_question(here: Path) -> None:
    file = here / "mine" / "qir.md"
    file.parent.mkdir()
    file.write_text(Prompts().text(QIR))
    questions = str(sample_path("films").with_suffix(".questions.jsonl"))
    command = ["bench", "--kg", "films", "--questions", questions, "--out", "r", "--limit", "1"]
    assert main([*command, "--prompts", "mine"]) == 2
    assert not Path("r").exists()
    assert main([*command, "--save-runs"]) == 0
    assert main(["retry", "r", "--only", "all", "--prompts", "mine"]) == 2
    assert not Path("r/retries").exists()


def test_files_that_are_no_prompts_and_prompts_of_other_systems_are_let_be(here: Path) -> None:
    for name in ("README", "dog/critic", "chatty_kg/qir"):
        file = here / "mine" / f"{name}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("Mine" if name == "README" else Prompts().text(name))
    load_system("chatty_kg").check_prompts(Prompts.of("mine"))


def test_saving_never_overwrites_a_shipped_prompt_and_keeps_the_file_before(tmp_path: Path) -> None:
    shipped = Prompts().text(QIR)
    changed = shipped + "Be brief.\n"
    with pytest.raises(PromptError, match="not overwritten"):
        Prompts().save(QIR, changed)
    assert Prompts().text(QIR) == shipped
    mine = Prompts(tmp_path)
    path = mine.save(QIR, changed)
    assert mine.text(QIR) == changed
    mine.save(QIR, shipped)
    mine.save(QIR, changed)
    kept = [path.with_name(f"qir.md.{number}").read_text() for number in (1, 2)]
    assert kept == [changed, shipped]
    assert mine.own_names() == {QIR}


def test_the_size_of_a_filled_prompt_is_known_by_its_parts() -> None:
    text = "[system]\nAnswer briefly.\n\n[example]\nA: b\n\n[example]\nC: d\n\n[user]\n{{question}} {{rows}} {{rows}}\n"
    prompt = parse_prompt("made_up/x", text)
    variables = {"question": "Who?", "rows": [1, 2]}
    parts = prompt.measure_parts(prompt.fill(variables, 1), variables)
    assert parts == {"instructions": 17, "examples": 4, "question": 4, "rows": 12}
    assert "examples" not in prompt.measure_parts(prompt.fill(variables, 0), variables)
