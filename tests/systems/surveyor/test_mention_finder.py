"""The names and classes that a question is about."""

from __future__ import annotations

import pytest
from small import films
from surveying import (
    ONE_CLASS,
    WRITER,
    ask_twins,
    draft,
    mention,
    part_of,
    script,
)

import kgwb
from kgwb.llm import Scripted
from kgwb.run.answers import Dialogue, Turn
from kgwb.systems.surveyor.mentions import titles_to_choose_from


def test_a_long_earlier_answer_is_not_taken_for_all_of_it() -> None:
    model = Scripted(script([draft()], names=[mention("Denis Villeneuve")]))
    bench = kgwb.Workbench(films(), model, system="surveyor")
    earlier = Turn("Which films are there?", tuple(f"film {number}" for number in range(8)))
    bench.setup.begin("Which of them are his?", Dialogue((earlier,))).go()
    [turn] = model.requests[0].variables["earlier"]
    assert len(turn["answers"]) + turn["more_answers"] == len(earlier.answers)


OFFERED_TITLES = titles_to_choose_from(WRITER)


@pytest.mark.parametrize("title", OFFERED_TITLES)
def test_each_class_that_the_mention_finder_is_offered_can_be_chosen(title: str) -> None:
    assert len({offered.casefold() for offered in OFFERED_TITLES}) == len(OFFERED_TITLES)
    for name in (title, title.upper()):
        run, _ = ask_twins(names=mention(classes=[name]), settings=ONE_CLASS)
        assert run.output("mention_finder").classes == (title,)
        assert part_of(run).classes[0] in (title, "Ship")  # one group with Vessel


def test_a_name_without_its_curie_means_all_classes_of_that_name() -> None:
    run, _ = ask_twins(names=mention(classes=["Film"]))
    titles = ("Film (a:Film)", "film (a:Picture)", "Film (b:Film)")
    assert sorted(run.output("mention_finder").classes) == sorted(titles)
    assert sorted(part_of(run).classes[:3]) == sorted(titles)
