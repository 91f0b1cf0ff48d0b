"""Questions about graphs that ``rules`` was not made on; ``strangers_asked.py`` measures them in full."""

import pytest
from strangers_asked import FOLDER, ask_half, count

from kgwb import Workbench, open_kg


@pytest.fixture(autouse=True)
def default_embeddings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KGWB_EMBEDDINGS")


@pytest.mark.parametrize(
    ("graph", "question", "labels"),
    [
        ("railway", "Which stations did Edmund Hale design?", ["Aldermoor Junction"]),
        ("library", "Which maps are kept in the South Room?", ["Map of the Fens"]),
        ("library", "How many books are kept in the South Room?", ["1"]),
    ],
)
def test_the_answers_have_the_class_that_the_question_names(
    graph: str, question: str, labels: list[str]
) -> None:
    answer = Workbench(open_kg(FOLDER / f"{graph}.ttl"), "rules").ask(question).answer
    assert answer is not None
    assert list(answer.labels) == labels


def test_a_class_is_not_asked_for_where_things_have_several_types() -> None:
    bench = Workbench(open_kg("wikidata_slice"), "rules")
    answer = bench.ask("Which cities are twinned with Munich?").answer
    assert answer is not None
    assert sorted(answer.labels) == ["Sapporo", "Verona"]


def test_most_answers_to_the_questions_for_tuning_are_right() -> None:
    figures = count(list(ask_half("tune")))
    assert figures.precision >= 0.9
    assert figures.coverage >= 0.9
