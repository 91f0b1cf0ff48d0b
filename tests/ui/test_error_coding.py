"""The widget of an error analysis: one question after the other, each kept at once."""

import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from page import press, text
from small import films, predicates, qir

import kgwb
from kgwb.bench import Benchmark, BenchSetup, Results
from kgwb.bench.figures import LoadedResults
from kgwb.bench.judgements import ErrorAnalysis
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


def open_coding(measured: Path, coder: str, **options: Any) -> kgwb.ErrorCoding:
    return kgwb.ErrorCoding(measured, coder, kg=KG, model=MODEL, **options)


def test_each_category_is_kept_at_once_and_the_next_question_opens(measured: Path) -> None:
    coding = open_coding(measured, "ann")
    assert "0 of 3 coded" in text(coding)
    first = coding.selected_id
    press(coding, "Save and next")
    assert isinstance(coding.event_error, InputError)
    press(coding, "Save and next", category="qir", note="dropped the year")
    assert coding.selected_id != first and "1 of 3 coded" in text(coding)
    assert coding.debugger is not None
    assert coding.debugger.run.question == f"Who directed {coding.selected_id}?"

    again = open_coding(measured, "ann")
    assert again.codings[first].note == "dropped the year" and again.selected_id != first
    other = open_coding(measured, "bob")
    assert other.sample == coding.sample and other.codings == {}
    assert "dropped the year" not in text(other)

    press(again, "Save and next", category="gold is wrong")
    press(again, "Save and next", category="gold is wrong")
    assert "All are coded" in again.message
    assert "3 of 3" in repr(again)


def test_a_coded_question_can_be_opened_and_coded_again(measured: Path) -> None:
    coding = open_coding(measured, "ann")
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
    coding = open_coding(measured, "ann")
    assert coding.comm is None
    view = coding._repr_mimebundle_()[0]["application/vnd.jupyter.widget-view+json"]
    assert view["model_id"] == coding.model_id
    assert "0 of 3 coded" in text(coding)
    assert coding.debugger is not None
    assert coding.debugger.comm is None


def test_questions_that_are_shared_out_are_given_once_and_conflicts_come_together(
    measured: Path,
) -> None:
    open_for = partial(open_coding, measured, coders=1)
    ann, bob = open_for("ann"), open_for("bob")
    first, second = ann.selected_id, bob.selected_id
    assert first != second
    assert open_for("ann").selected_id == first  # what was given to a person stays the person's
    ann.update({"do": "go", "arg": second})
    assert ann.selected_id == first
    press(ann, "Save and next", category="qir")
    assert {first, second, ann.selected_id} == set(ann.sample.ids)
    with pytest.raises(InputError, match="carl"):
        open_for("carl")
    press(bob, "Save and next", category="other")
    assert "given to others" in bob.message
    queue = measured / "queue.jsonl"
    queue.write_text(re.sub(r'(?<="when": ")\d+', "2000", queue.read_text()))  # the hour is over
    assert open_for("carl").selected_id == ann.selected_id
    analysis = ErrorAnalysis.read(LoadedResults.read(measured))
    assert analysis.conflicts == [] and {*analysis.codings} == {"ann", "bob"}


def test_what_two_people_say_otherwise_comes_once_both_are_done(measured: Path) -> None:
    people = [open_coding(measured, name) for name in ("ann", "bob")]
    for person, categories in zip(
        people, (("qir", "qir", "qir"), ("qir", "other", "qir")), strict=True
    ):
        for category in categories:
            assert "Others gave" not in text(person)
            press(person, "Save and next", category=category, note=f"by {person.coder}")
    bob = people[1]
    assert bob.selected_id == bob.sample.ids[1] and "ann: qir: by ann" in text(bob)
    for id_ in bob.sample.ids[:2]:  # who looks elsewhere meanwhile has seen it all the same
        bob.update({"do": "go", "arg": id_})
        assert ("ann: qir: by ann" in text(bob)) == (id_ == bob.sample.ids[1])
    press(bob, "Save and next", category="other", note="still")
    assert "All are coded" in bob.message
    again = open_coding(measured, "ann")
    assert again.selected_id == bob.selected_id and "bob: other: still" in text(again)
    press(again, "Save and next", category="other")
    assert not list(measured.glob("queue*"))
    analysis = ErrorAnalysis.read(LoadedResults.read(measured))
    assert analysis.conflicts == []
    [(_, agreed, _)] = analysis.make_agreement_table().rows
    assert agreed == "2 of 3"  # as they said before they saw each other's
