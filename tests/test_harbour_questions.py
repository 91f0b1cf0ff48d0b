"""The further questions for harbour: the form of the files, and every query over the graph where it is there."""

import sys
from pathlib import Path

import engines

from kgwb.bench.formats import load_questions

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

from harbour import check

FOLDER = check.HERE


def test_there_are_twenty_dialogues_of_four_turns_which_the_bench_reads() -> None:
    questions = load_questions(FOLDER / "dialogues.jsonl")
    turns: dict[str | None, list[int]] = {}
    for question in questions:
        turns.setdefault(question.dialogue, []).append(question.turn)
        assert question.standalone
        assert question.answers
    assert len(turns) == 20
    assert all(numbers == [1, 2, 3, 4] for numbers in turns.values())


def test_every_query_returns_what_its_entry_says() -> None:
    assert list(check.find_problems(engines.harbour())) == []
