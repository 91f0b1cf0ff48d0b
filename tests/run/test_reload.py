"""A module that is edited and loaded again: its new functions are used from the next execution on."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from small import films

from kgwb.run import Run, System
from kgwb.show.comparison import to_html

SOURCE = """
from dataclasses import dataclass

from kgwb.run.answers import (Answer)
from kgwb.llm.base import ChatModel
from kgwb.records import Record
from kgwb.run import System, agent
from kgwb.run.ask import ask
from kgwb.run.ask import Reply
from kgwb.show.html import div


@dataclass(frozen=True, slots=True)
class Noun(Record):
    text: str


class NounReply(Reply):
    noun: str


@agent("noun", kind="model")
def find_noun(question, run) -> Noun:
    reply = ask("chatty_kg/qir", {"question": question, "types": ""}, NounReply, run)
    return Noun(f"agent VERSION, {reply.noun}")


def noun_rule(question):
    return {"noun": "rule VERSION"}


def render_noun(noun, context):
    return div("", "view VERSION")


def answer(question, dialogue, run):
    noun = find_noun(question.text, run)
    return Answer("list", reason=f"not in this graph: {noun}")


SYSTEM = System(
    "nouns",
    answer,
    (find_noun,),
    views={Noun: render_noun},
    rules={"chatty_kg/qir": noun_rule},
)
"""


@pytest.fixture
def module_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield tmp_path / "nouns.py"
    sys.modules.pop("nouns", None)


def test_agents_views_and_rules_of_a_module_that_is_loaded_again_are_used(
    module_file: Path,
) -> None:
    module_file.write_text(SOURCE.replace("VERSION", "1"))
    module = importlib.import_module("nouns")
    system: System = module.SYSTEM
    prompt = "---\npurpose: p\nstrategy: s\nvariables: question types\nreply: r\nsource: s\n---\n"
    run = Run(system, "Who?", kg=films(), models="rules")
    run.edit_prompt("chatty_kg/qir", f"{prompt}[user]\n{{{{question}}}} {{{{types}}}}")
    run.go()
    assert str(run.output("noun")) == "agent 1, rule 1"
    assert "view 1" in to_html(run["noun"])

    module_file.write_text(SOURCE.replace("VERSION", "22"))
    importlib.invalidate_caches()
    importlib.reload(module)
    run.refresh("noun").go()
    assert str(run.output("noun")) == "agent 22, rule 22"
    assert "view 22" in to_html(run["noun"])
    assert run.system is system
