"""What a person writes wrongly in a system is said, where it is written or where it happens."""

from __future__ import annotations

import typing
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pytest
from rdflib import Literal
from small import films, system_of

import kgwb
from kgwb.errors import OutputError, SettingError
from kgwb.llm import Scripted
from kgwb.records import Record, Score, line_with_scores, one_line
from kgwb.run import Run, System, agent
from kgwb.run.answers import Answer, Value
from kgwb.run.diagnostics import matches_type
from kgwb.run.systems import resolve_system
from kgwb.show.records import render
from kgwb.show.terms import RenderContext


@dataclass(frozen=True, slots=True)
class Mention(Record):
    name: str


@agent
def mention(text: str, run: Run) -> Mention:
    return Mention(text)


def answer(question: Any, dialogue: Any, run: Run) -> Answer:
    return Answer("list", (Value(Literal("x"), mention(question.text, run).name),))


def run_of(system: System) -> Run:
    return Run(system, "Who?", kg=films(), models=Scripted({}))


# --- when the system is made


@agent
def run_first(run: Run, text: str) -> str:
    return text


@agent
def run_named_r(text: str, r: Run) -> str:
    return text


class Thing:
    """What cannot be saved."""


@agent
def unsaved(text: str, run: Run) -> Thing:
    return Thing()


@agent
def missing(text: str, run: Run) -> Missing:  # type: ignore[name-defined]  # noqa: F821
    return text


def plain(text: str, run: Run) -> str:
    return text


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"agents": [run_first]}, "write the parameter run last"),
        ({"agents": [run_named_r]}, "its parameter r is a Run: name it run"),
        ({"agents": [unsaved]}, "Thing cannot be saved"),
        ({"agents": [missing]}, "annotations name Missing"),
        ({"agents": [plain]}, "plain is not an agent: write @agent above it"),
        ({"agents": [mention, mention]}, "two agents are named mention"),
        ({"agents": mention}, "[mention]"),
        ({"supervisors": {"mention": ("mentions",)}}, "supervisors name 'mentions'"),
        ({"supervisors": {"x": ()}}, "supervisors name 'x'"),
        ({"roles": {"any": ("mentions",)}}, "roles name 'mentions'"),
        ({"answer": "answer"}, "answer is str"),
        ({"answer": lambda question: question}, "answer(question, dialogue, run)"),
        ({"settings": kgwb.profile("fast")}, "a subclass of Settings"),
        ({"views": {"Mention": str}}, "for each record class"),
        ({"rules": {"wrong/mention": {"name": "x"}}}, "the rule of wrong/mention is dict"),
        ({"agents": [run_first, run_named_r]}, "run last; agent run_named_r"),
    ],
)
def test_what_is_wrong_is_said_when_the_system_is_made(wrong: dict[str, Any], said: str) -> None:
    arguments: dict[str, Any] = {"answer": answer, "agents": [mention], **wrong}
    with pytest.raises(SettingError) as error:
        System("wrong", **arguments)
    assert said in str(error.value)


def test_an_answer_function_may_be_compiled_so_that_python_knows_no_signature() -> None:
    assert System("compiled", max, [mention]).answer is max


def test_a_misspelt_subject_is_said_where_it_is_written() -> None:
    with pytest.raises(SettingError, match="subject='txt'") as error:

        @agent("wrong", subject="txt")
        def wrong(text: str, run: Run) -> str:
            return text

    assert "text" in error.value.hint


def test_a_system_may_have_another_name_than_its_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "from kgwb.build import Answer, System, agent\n\n"
        "@agent\ndef look(text, run):\n    return text\n\n"
        "def answer(question, dialogue, run):\n"
        "    return Answer('list', reason=look(question.text, run))\n\n"
        "SYSTEM = System('another', answer, [look])\n"
    )
    system = resolve_system(file)
    assert system.name == "another"
    assert "| look | code | look |  |  |  | test_look.py |" in repr(system)
    run = run_of(system).go()
    loaded = kgwb.load_run(run.save(tmp_path / "run.jsonl"), system=file)
    assert loaded.answer == run.answer


# --- when it happens


def test_an_agent_outside_of_the_system_is_said_with_the_function_to_add() -> None:
    @agent("another")
    def other(text: str, run: Run) -> str:
        return text

    def calls_other(question: Any, dialogue: Any, run: Run) -> Answer:
        return Answer("list", reason=other("x", run))

    run = run_of(System("forgot", calls_other, [mention]))
    with pytest.raises(SettingError, match="another is not among the agents of forgot") as error:
        run.go()
    assert "[..., other]" in error.value.hint
    assert isinstance(run.error, SettingError)


@pytest.mark.parametrize("returned", [None, "a text", ["list"]])
def test_a_step_fails_that_returns_another_type_than_it_promises(returned: Any) -> None:
    @agent
    def wrong(text: str, run: Run) -> Mention:
        return returned  # type: ignore[no-any-return]

    run = run_of(system_of(wrong))
    with pytest.raises(OutputError, match="wrong promises Mention and returned"):
        run.go()
    [step] = run.steps
    assert (step.done, bool(step.error), run.status) == (False, True, "failed")
    assert run.error is not None


@pytest.mark.parametrize(
    ("value", "promised", "is_one"),
    [
        (("a", 1), tuple[str, int], True),
        (("a", 1), tuple[str, ...], False),
        (("a",), tuple[str, str], False),
        (("a",), tuple[None], False),
        (1, float, True),
        ("c", typing.Literal["a"], False),
        ("a", Annotated[int, ""], False),
        ("a", int | None, False),
    ],
)
def test_a_value_is_of_a_type_with_brackets_or_not(
    value: object, promised: object, is_one: bool
) -> None:
    assert matches_type(value, promised) == is_one


@pytest.mark.parametrize("returned", [None, "Denis Villeneuve", ()])
def test_a_pipeline_that_returns_no_answer_fails(returned: Any) -> None:
    run = run_of(System("wrong", lambda question, dialogue, run: returned, [mention]))
    with pytest.raises(OutputError, match="not an Answer"):
        run.go()
    assert run.status == "failed"


# --- what is shown


@dataclass(frozen=True, slots=True)
class Ranked(Record):
    name: str
    score: Score | None = None


def test_a_tuple_shows_its_items_and_a_missing_score_is_not_zero() -> None:
    assert one_line(("Dune", "Arrival")) == "2 items: Dune; Arrival"
    assert one_line(()) == "0 items"
    assert line_with_scores(Ranked("Dune")) == "not scored Dune"
    assert line_with_scores(Ranked("Dune", 0.5)) == "0.50 Dune"
    page = str(render((Ranked("Dune"), Ranked("Arrival", 0.5)), RenderContext({})))
    assert "not scored" in page
    pairs = str(render((("Dune", 1), ("Arrival", 2)), RenderContext({})))
    assert "Arrival" in pairs
    assert "(&#39;" not in pairs


def test_group_concat_of_iris_is_said() -> None:
    query = (
        "SELECT ?film (GROUP_CONCAT(?who) AS ?names) "
        "WHERE { ?film <https://kgwb.example/films/director> ?who } GROUP BY ?film"
    )

    @agent(kind="sparql")
    def look(question: str, run: Run) -> str:
        return str(len(run.kg.select(query).rows))

    run = Run(system_of(look), "Who?", kg="films", models=None).go()
    [note] = run["look"].notes
    assert "STR(?who)" in note
