"""The survey of a large graph: what is asked first, what it costs, and what is said to be missing."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from small import films, iri

from kgwb.errors import GraphTimeoutError, GraphUnreachableError, QueryError
from kgwb.kg import survey as survey_module
from kgwb.kg import survey_queries
from kgwb.kg.base import QueryLimits, ResultSet
from kgwb.kg.local import LocalGraph
from kgwb.kg.survey import SurveyBuilder, survey_graph
from kgwb.kg.survey_queries import (
    NO_TIME_LEFT,
    REFUSED,
    ROWS_MISSING,
    TOOK_TOO_LONG,
    path_over,
)
from kgwb.kg.survey_records import Survey
from kgwb.kg.survey_text import SurveyWriter

MANY = (
    "@prefix : <http://example.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> ."
    + "".join(
        f':k{kind}n{n} a :K{kind} ; rdfs:label "thing {n}"@en, "Ding {n}"@de ; :size{kind} {n} ;'
        f" :next :k{kind}n{n + 1} ."
        for kind in range(5)
        for n in range(6 + kind)
    )
)
"""Five classes, the smallest with 6 instances and the largest with 10."""
SECONDS_OF_QUERY = 5.0


@pytest.fixture(autouse=True)
def _everything_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(survey_module, "LARGE_GRAPH_TRIPLES", 20)


class Engine:
    """A graph whose queries are watched, and which may be slow or refuse some of them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, turtle: str = MANY) -> None:
        self.kg: Any = films(turtle)
        self.sent: list[str] = []
        self.limits: list[float] = []
        self.left: list[float] = []
        self.now = 0.0
        self.seconds = 0.0
        self.refuses: Callable[[str], bool] = lambda query: False
        self.error: Exception = QueryError("it is too complex", hint="")
        self.row_limit: int | None = None
        select = LocalGraph.select

        def watched(kg: LocalGraph, query: str) -> ResultSet:
            self.sent.append(query)
            self.limits.append(kg.limits.query_timeout_s)
            self.left.append(survey_queries.SURVEY_TIMEOUT_S - self.now)
            self.now += self.seconds
            if self.refuses(query):
                raise self.error
            result = select(kg, query)
            if self.row_limit is not None and len(result.rows) > self.row_limit:
                return replace(result, rows=result.rows[: self.row_limit], cut=True)
            return result

        monkeypatch.setattr(LocalGraph, "select", watched)
        monkeypatch.setattr(survey_queries, "time", SimpleNamespace(perf_counter=lambda: self.now))

    def survey(self) -> Survey:
        return SurveyBuilder(self.kg).build()


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Engine:
    return Engine(monkeypatch)


def described(survey: Survey) -> set[str]:
    """The classes whose predicates are in a survey."""
    return {kind.name for kind in survey.classes if kind.properties}


def test_every_class_has_its_predicates_from_a_sample_of_few_instances_a_query(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(survey_module, "MAX_INSTANCES_PER_QUERY", 8)
    monkeypatch.setattr(survey_module, "SAMPLED_INSTANCES", 20)
    survey = engine.survey()
    assert described(survey) == {f"K{kind}" for kind in range(5)}
    assert (survey.sample_limit, survey.lacks) == (4, ())
    listed = [query for query in engine.sent if "VALUES (?v ?c)" in query]
    pairs = [len(re.findall(r"\(<[^>]*> <[^>]*>\)", query)) for query in listed]
    assert pairs and max(pairs) <= 8
    largest = survey.classes[0]
    assert (largest.name, largest.size) == ("K4", 10)
    assert {prop.things for prop in largest.properties} == {10}
    assert survey.languages == (("de", 40), ("en", 40))
    assert any("at most 4 instances" in remark for remark in SurveyWriter(survey).remarks())


def test_what_no_time_is_left_for_is_said_and_the_largest_classes_come_first(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(survey_module, "MAX_INSTANCES_PER_QUERY", 10)
    engine.seconds = SECONDS_OF_QUERY
    survey = engine.survey()
    # Sizes, superclasses and names of classes are known, then what the largest classes have.
    assert [kind.total for kind in survey.classes] == [10, 9, 8, 7, 6]
    assert described(survey) == {"K2", "K3", "K4"}
    lacks = dict(survey.lacks)
    assert lacks["the predicates of 2 classes"] == NO_TIME_LEFT
    assert "the instances of each class" not in lacks
    assert len(engine.sent) * SECONDS_OF_QUERY >= survey_queries.SURVEY_TIMEOUT_S
    assert (len(engine.sent) - 1) * SECONDS_OF_QUERY < survey_queries.SURVEY_TIMEOUT_S
    writer = SurveyWriter(survey)
    assert any("the predicates of 2 classes" in remark for remark in writer.remarks())
    smallest = writer.groups[-1]
    assert writer.format_group(smallest).splitlines()[1:] == ["  its predicates are not known"]


def test_a_query_gets_half_of_the_time_that_is_left_at_most(engine: Engine) -> None:
    engine.kg.limits = QueryLimits(query_timeout_s=20)
    engine.seconds = 2 * SECONDS_OF_QUERY
    engine.survey()
    expected = [min(20, left / 2) for left in engine.left]
    assert engine.limits == pytest.approx(expected)
    assert engine.limits[0] == 20
    assert engine.limits[-1] == 5
    assert engine.kg.limits.query_timeout_s == 20


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (QueryError("it is too complex", hint=""), REFUSED),
        (GraphTimeoutError("10 s are over", hint=""), TOOK_TOO_LONG),
    ],
)
def test_the_survey_goes_on_after_a_query_that_is_refused(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, error: Exception, reason: str
) -> None:
    monkeypatch.setattr(survey_module, "MAX_INSTANCES_PER_QUERY", 10)
    engine.error = error
    engine.refuses = lambda query: "?things" in query and "k3n1" in query
    survey = engine.survey()
    assert described(survey) == {"K0", "K1", "K2", "K4"}
    assert survey.lacks == (("the predicates of 1 class", reason),)
    # What is missing is asked for when a question needs it.
    engine.refuses = lambda query: False
    engine.sent.clear()
    more = survey_graph(engine.kg, [iri("K3")])
    assert described(survey.with_classes_of(more)) == {f"K{kind}" for kind in range(5)}
    assert not any(query.startswith("SELECT (COUNT(*)") for query in engine.sent)


def test_a_status_of_a_broken_server_is_a_refusal_unless_it_stays(engine: Engine) -> None:
    engine.error = GraphUnreachableError("it fails (HTTP 503)", hint="")
    engine.refuses = lambda query: "?things" in query
    assert engine.survey().lacks == (("the predicates of 5 classes", REFUSED),)
    engine.refuses = lambda query: len(engine.sent) > 2
    engine.sent.clear()
    with pytest.raises(GraphUnreachableError):
        engine.survey()
    assert len(engine.sent) == 2 + survey_queries.MAX_UNREACHABLE


def test_every_query_of_a_large_graph_may_be_refused(engine: Engine) -> None:
    engine.survey()
    whole = list(engine.sent)
    for refused in whole[1:]:
        engine.refuses = partial(str.__eq__, refused)
        survey = engine.survey()
        assert survey.triples
        assert survey.lacks


def test_predicates_of_types_are_all_asked_for_if_it_is_not_known_which_there_are(
    engine: Engine,
) -> None:
    engine.refuses = lambda query: "FILTER EXISTS" in query
    survey = engine.survey()
    assert described(survey) == {f"K{kind}" for kind in range(5)}
    assert path_over(engine.kg.vocabulary.types) in engine.sent[2]


def test_it_is_said_that_rows_are_missing(engine: Engine) -> None:
    engine.row_limit = 4
    lacks = dict(engine.survey().lacks)
    assert lacks["the instances of each class"] == ROWS_MISSING


def test_classes_beyond_the_largest_are_said_to_have_no_sample(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(survey_module, "MAX_SAMPLED_CLASSES", 2)
    survey = engine.survey()
    assert described(survey) == {"K3", "K4"}
    [(part, reason)] = survey.lacks
    assert part == "the predicates of 3 classes"
    assert "2 largest" in reason


def test_a_survey_that_lacked_time_is_used_for_a_while_only(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.seconds = 2 * SECONDS_OF_QUERY
    first = survey_graph(engine.kg)
    assert first.lacks
    engine.seconds = 0
    assert survey_graph(engine.kg) is first
    monkeypatch.setattr(survey_module, "INCOMPLETE_LIFETIME_S", 0.0)
    whole = survey_graph(engine.kg)
    assert (described(whole), whole.lacks) == ({f"K{kind}" for kind in range(5)}, ())
    engine.sent.clear()
    assert (survey_graph(engine.kg), engine.sent) == (whole, [])


def test_a_survey_that_had_more_time_is_another_one(engine: Engine) -> None:
    engine.seconds = 2 * SECONDS_OF_QUERY
    short = survey_graph(engine.kg)
    assert short.lacks
    longer = survey_graph(engine.kg, timeout_s=10_000.0)
    assert not longer.lacks
    assert survey_graph(engine.kg) == short


@pytest.mark.parametrize(
    ("errors", "is_kept"),
    [
        ([QueryError("it is too complex", hint="")], True),
        ([GraphTimeoutError("10 s are over", hint="")], False),
        # The reason that is told is that of the first one.
        ([QueryError("no", hint=""), GraphTimeoutError("10 s are over", hint="")], False),
    ],
)
def test_a_survey_is_kept_after_a_refusal_but_not_after_a_query_that_took_too_long(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, errors: list[Exception], is_kept: bool
) -> None:
    monkeypatch.setattr(survey_module, "MAX_INSTANCES_PER_QUERY", 10)
    monkeypatch.setattr(survey_module, "INCOMPLETE_LIFETIME_S", 0.0)
    waiting = list(errors)

    def refuses(query: str) -> bool:
        is_refused = bool(waiting) and "?things" in query
        if is_refused:
            engine.error = waiting.pop(0)
        return is_refused

    engine.refuses = refuses
    first = survey_graph(engine.kg)
    assert first.lacks and not waiting
    assert (survey_graph(engine.kg) == first) == is_kept
