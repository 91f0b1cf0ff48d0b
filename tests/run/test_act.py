"""What a system of another kind needs of the run: typed tools in a loop, calls of its own kinds, an index."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest
from rdflib import Literal as Text
from small import films, keys, prompt

from kgwb.errors import InvalidReplyError, NotRecordedError
from kgwb.kg.embeddings import EmbeddingIndex, Embeddings
from kgwb.llm import Scripted
from kgwb.run import Run, System, agent
from kgwb.run.answers import Answer, Dialogue, Question, Value
from kgwb.run.ask import Tool, ToolUse, act, tool, tool_from_function, use_tool
from kgwb.run.prompts import Prompts

PASSAGES = ("Arrival is a film", "Dune is a film", "Denis Villeneuve directed Arrival")
TEXTS = {"toolbox/act": prompt("question, so_far, left", "{{question}}\n{{so_far}}\n{{left}} left")}


@dataclass(frozen=True, slots=True)
class Passage:
    place: int
    text: str

    def __str__(self) -> str:
        return f"[{self.place}] {self.text}"


@tool("search", kind="search")
class Search(Tool):
    tool: Literal["search"]
    words: str

    def use(self, run: Run) -> tuple[Passage, ...]:
        """Passages near these words."""
        [(place, _)] = run.nearest(self.words, EmbeddingIndex(PASSAGES, Embeddings("lexical")), 1)
        return run.call(
            "toolbox.read",
            {"place": place},
            lambda: (Passage(place, PASSAGES[place]),),
            tuple[Passage, ...],
        )


@tool("finish", ends=True)
class Finish(Tool):
    tool: Literal["finish"]
    answer: str

    def use(self, run: Run) -> str:
        """The answer."""
        return self.answer


@agent("searching", kind="model")
def search(question: str, run: Run) -> str:
    """Search until the answer is known."""
    uses = act("toolbox/act", {"question": question}, (Search, Finish), run, limit=3)
    return str(uses[-1].result) if uses[-1].tool.ends else "no answer"


def answer(question: Question, dialogue: Dialogue, run: Run) -> Answer:
    text = search(question.text, run)
    return Answer("list", (Value(Text(text), text),))


TOOLBOX = System("toolbox", answer, (search, Search, Finish))
SEARCH = {"thought": "look", "action": {"tool": "search", "words": "who directed Arrival"}}
FINISH = {"thought": "there it is", "action": {"tool": "finish", "answer": "Denis Villeneuve"}}


def begin(*replies: Any) -> tuple[Run, Scripted]:
    model = Scripted({"toolbox/act": list(replies)})
    run = Run(TOOLBOX, "Who?", kg=films(), models=model, prompts=Prompts(texts=TEXTS))
    return run, model


def test_each_use_of_a_tool_is_a_step_and_a_replay_computes_nothing(
    tmp_path: Path,
) -> None:
    run, model = begin(SEARCH, FINISH)
    assert str(run.go().answer) == "Denis Villeneuve"
    assert keys(run) == ["searching", "search[turn 1]", "finish[turn 2]"]
    assert run.output("search") == (Passage(2, PASSAGES[2]),)
    [_, use] = model.requests[1].messages[-1].content.split("1. ")
    assert use.splitlines()[::2] == ["look", f"[2] {PASSAGES[2]}"]
    assert str(ToolUse("then", Finish(tool="finish", answer="x"), "done")).endswith("\ndone")
    assert run.system.agent_kind("search[turn 1]") == "search"
    path = run.save(tmp_path / "run.jsonl")
    again = Run.load(path, TOOLBOX).go()
    assert (again.answer, again.output("search")) == (run.answer, run.output("search"))
    assert all(step.origin == "record" for step in again.steps)
    saved_again = Run.load(again.save(tmp_path / "again.jsonl"), TOOLBOX).go()
    assert saved_again.output("search") == run.output("search")
    with pytest.raises(NotRecordedError, match="searching"):
        Run.load(path, TOOLBOX).override("search[turn 1]", [{"place": 0, "text": "other"}]).go()


def test_a_function_is_a_tool_and_its_keywords_come_from_the_system() -> None:
    def add(first: int, second: list[int], *, run: Run) -> int:
        """The sum."""
        run.note("added")
        return first + sum(second)

    form = tool_from_function(add, kind="code")
    assert {*form.model_fields} == {"tool", "first", "second"}
    assert (form.spec.name, form.spec.purpose, form.spec.output_type, form.ends) == (
        "add",
        "The sum.",
        int,
        False,
    )

    def adding(question: Question, dialogue: Dialogue, run: Run) -> Answer:
        result = use_tool(
            form.model_validate({"tool": "add", "first": 1, "second": [2, 3]}), "use 1", run
        )
        return Answer("list", (Value(Text(result), str(result)),))

    run = Run(System("adder", adding, (form,)), "Sum?", kg=films(), models=Scripted({})).go()
    assert (run.output("add[use 1]"), run["add"].notes) == (6, ["added"])


def test_the_turns_end_at_the_limit_and_an_unknown_tool_is_refused() -> None:
    run, model = begin(SEARCH, SEARCH, SEARCH)
    assert str(run.go().answer) == "no answer"
    assert "1 left" in model.requests[-1].messages[-1].content
    run, _ = begin(*[{"thought": "", "action": {"tool": "delete", "words": "all"}}] * 3)
    with pytest.raises(InvalidReplyError, match="the reply's form"):
        run.go()
