"""The widget of an error analysis: one question after the other, each kept at once."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from page import press, text
from small import films, predicates, qir

import kgwb
from kgwb.bench import Benchmark, BenchSetup, Results
from kgwb.bench.questions import BenchQuestion
from kgwb.errors import InputError
from kgwb.llm import Scripted
from kgwb.llm.base import ChatRequest

KG = films()


def reply(request: ChatRequest) -> Mapping[str, Any]:
    if request.task == "chatty_kg/predicate_selection":
        return predicates(["director"])
    return qir("Arrival | directed by | ?x")


MODEL = Scripted(reply)
QUESTIONS = [
    BenchQuestion(id=name, question=f"Who directed {name}?", answers=("http://example.org/nobody",))
    for name in ("Arrival", "Sicario", "Dune")
]


@pytest.fixture
def measured(tmp_path: Path) -> Path:
    setup = BenchSetup.from_workbench(kgwb.Workbench(KG, MODEL))
    Benchmark(setup, Results(tmp_path / "r", setup.to_config()), save_runs=True).run(QUESTIONS)
    return tmp_path / "r"


def test_each_category_is_kept_at_once_and_the_next_question_opens(measured: Path) -> None:
    coding = kgwb.ErrorCoding(measured, "ann", kg=KG, model=MODEL)
    assert "0 of 3 coded" in text(coding)
    first = coding.selected_id
    press(coding, "Save and next")
    assert isinstance(coding.event_error, InputError)
    press(coding, "Save and next", category="qir", note="dropped the year")
    assert coding.selected_id != first and "1 of 3 coded" in text(coding)
    assert coding.debugger is not None
    assert coding.debugger.run.question == f"Who directed {coding.selected_id}?"

    again = kgwb.ErrorCoding(measured, "ann", kg=KG, model=MODEL)
    assert again.codings[first].note == "dropped the year" and again.selected_id != first
    other = kgwb.ErrorCoding(measured, "bob", kg=KG, model=MODEL)
    assert other.sample == coding.sample and other.codings == {}
    assert "dropped the year" not in text(other)

    press(again, "Save and next", category="gold is wrong")
    press(again, "Save and next", category="gold is wrong")
    assert "All are coded" in again.message
    assert "3 of 3" in repr(again)


def test_a_coded_question_can_be_opened_and_coded_again(measured: Path) -> None:
    coding = kgwb.ErrorCoding(measured, "ann", kg=KG, model=MODEL)
    first = coding.selected_id
    press(coding, "Save and next", category="qir")
    coding.update({"do": "go", "arg": first})
    assert coding.selected_id == first
    press(coding, "Save and next", category="other")
    assert coding.codings[first].category == "other"
    coding.update({"do": "go", "arg": "unknown"})
    assert "<form" not in str(coding.render_static())


def test_a_person_without_a_name_is_refused(measured: Path) -> None:
    with pytest.raises(InputError):
        kgwb.ErrorCoding(measured, " ")


def test_pages_are_told_of_the_widget_that_they_display_and_of_no_part_of_it(
    measured: Path,
) -> None:
    coding = kgwb.ErrorCoding(measured, "ann", kg=KG, model=MODEL)
    assert coding.comm is None
    view = coding._repr_mimebundle_()[0]["application/vnd.jupyter.widget-view+json"]
    assert view["model_id"] == coding.model_id
    assert "0 of 3 coded" in text(coding)
    assert coding.debugger is not None
    assert coding.debugger.comm is None
