"""The answer that a model writes from the sources: citations, kinds, and all rows of a source."""

from __future__ import annotations

import pytest
from page import record_html
from ragonite import (
    DIRECTED,
    FINISH,
    answered,
    cited,
    passages,
    ragonite,
    script,
    sql,
)
from rdflib import Literal
from small import answer_of, iri

from kgwb.errors import InvalidReplyError, OverrideError
from kgwb.llm import Scripted
from kgwb.records import to_data
from kgwb.systems.ragonite.records import CitedAnswer, Source


def test_all_rows_of_a_source_need_not_be_copied() -> None:
    query = sql("SELECT f.id AS ID, f.name, f.runtime FROM film f ORDER BY f.id")
    uses = (query, passages(), FINISH)
    wrong = cited(("all rows: id, budget", 1))
    wrong_source = cited(("all rows: id", 2))
    run, model = answered(*uses, answer=[wrong, wrong_source, cited(("all rows: id", 1))])
    assert "no column 'budget'" in model.requests[-2].messages[-1].content
    assert "source 2 has no column 'id'" in model.requests[-1].messages[-1].content
    copied = ["arrival", "dune", "lynchs_dune", "sicario"]
    same, _ = answered(*uses, answer=cited(*[(text, 1) for text in copied]))
    assert answer_of(run) == answer_of(same)
    assert len(answer_of(run).values) == 4
    several, _ = answered(*uses, answer=cited(("All rows: id, RUNTIME", 1)))
    terms = [value.term for value in answer_of(several).values]
    assert terms == [iri("arrival"), Literal(116), *map(iri, copied[1:])]
    both = {**cited(), "values": [{"value": "all rows: id", "sources": [1, 2]}]}
    with pytest.raises(InvalidReplyError, match="must cite one source"):
        answered(*uses, answer=[both] * 3)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("So [1]. And so [3]", [1, 3]),
        ("So [1, 3].", [1, 3]),
        ("So [2-4][1].", [2, 3, 4, 1]),
        ("In [4-2] and [1-999]", [4, 2, 1, 999]),
        ("No number [a], [] or 7", []),
    ],
)
def test_a_source_that_the_text_cites_is_shown_as_cited(text: str, numbers: list[int]) -> None:
    source = Source("passages", "t", "x")
    answer = CitedAnswer(text, "list", (), (source,) * 5)
    assert answer.cited_numbers == set(numbers)
    drawn = record_html(answer, of_system="ragonite")
    assert drawn.count("not cited") == 5 - len(set(numbers) & set(range(1, 6)))


def test_an_override_of_a_result_changes_the_answer() -> None:
    run = ragonite(Scripted(script())).go()
    source = Source("sql", DIRECTED, columns=("id",), rows=(("nothing",),))
    run.override("sql[turn 1]", to_data(source))
    run.models[""] = Scripted(script(passages(), FINISH, answer=cited(("nothing", 1))))
    run.go()
    assert answer_of(run).labels == ("nothing",)
    wrong = {**to_data(run.output("answerer")), "values": [{"value": "x", "sources": [9]}]}
    with pytest.raises(OverrideError, match="source 9"):
        run.override("answerer", wrong)
