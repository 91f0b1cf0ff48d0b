"""Candidate queries: joins that lose no triple, their selection, one answer of all results."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest
import rdflib
from rdflib import Literal, URIRef
from small import EX, FILMS, PAPER, alone, answer_of, chatty, films, iri, predicates, qir

from kgwb import open_kg, profile
from kgwb.errors import InvalidReplyError, OverrideError
from kgwb.flow import Answer, AnswerKind, Candidate, CandidateQuery, Direction, Link
from kgwb.kg.algebra import patterns_to_sparql
from kgwb.llm import Scripted
from kgwb.settings import Settings
from kgwb.systems.chatty_kg.queries import execute_queries, generate_queries, select_queries
from kgwb.systems.chatty_kg.records import (
    QIR,
    Fact,
    GeneratedQueries,
    LinkedRelation,
    LinkingResult,
    QuerySelection,
    RankedPredicate,
)


def predicate(name: str, similarity: float = 1.0, direction: Direction = "out") -> RankedPredicate:
    return RankedPredicate(iri(name.replace(" ", "_")), name, direction, similarity)


def generated(
    facts: list[tuple[str, str, str, list[RankedPredicate]]],
    *,
    target: str = "?x",
    kind: Any = "list",
    unlinked: frozenset[str] = frozenset(),
    settings: Settings | None = None,
) -> GeneratedQueries:
    """Queries of facts with their predicates; the entity "dune" is linked to :dune, unless ``unlinked``."""
    relations = tuple(LinkedRelation(Fact(s, r, o), tuple(ranked)) for s, r, o, ranked in facts)
    qir = QIR(tuple(relation.fact for relation in relations), target, kind)
    vertices = {
        name: None if name in unlinked else Candidate(iri(name), name) for name in qir.entities
    }
    linked = LinkingResult(
        tuple(Link(name, vertex) for name, vertex in vertices.items()), relations
    )
    result: GeneratedQueries = alone(
        lambda run: generate_queries(qir, linked, run), settings=settings
    )[0]
    return result


def short(generated: GeneratedQueries) -> list[str]:
    """The queries without the namespace, for reading."""
    return [
        query.sparql.replace(f"<{EX}", "").replace(">", "").replace(" }", "}")
        for query in generated.queries
    ]


DIRECTOR, STARRING, PLACE = (
    [predicate("director")],
    [predicate("starring")],
    [predicate("birthPlace")],
)


@pytest.mark.parametrize(
    "facts",
    [
        "dune director ?x",
        "dune director ?p . ?p birthPlace ?x",
        # what the reference code loses: parallel relations, cycles, joins at an entity, branches
        "dune director ?x . dune starring ?x",
        "?x director ?y . ?y birthPlace ?z . ?z starring ?x",
        "?x director dune . dune starring ?y",
        "?x director dune . ?x starring arrival . ?x birthPlace ?y",
    ],
)
@pytest.mark.parametrize("settings", [Settings(), PAPER])
def test_no_triple_is_lost(facts: str, settings: Settings) -> None:
    parts = [fact.split() for fact in facts.split(" . ")]
    [query] = short(generated([(s, p, o, [predicate(p)]) for s, p, o in parts], settings=settings))
    assert query.startswith("SELECT DISTINCT ?x WHERE { ")
    assert f"{facts} ." in query


def test_a_boolean_question_is_an_ask() -> None:
    facts = [("dune", "director", "denis", [predicate("director"), predicate("director", 1, "in")])]
    assert short(generated(facts, target="", kind="boolean")) == [
        "ASK { dune director denis .}",
        "ASK { denis director dune .}",
    ]


def test_the_best_score_comes_first_before_truncation() -> None:
    facts = [
        ("dune", "a", "?p", [predicate("a1", 0.9), predicate("a2", 0.8)]),
        ("?p", "b", "?x", [predicate("b1", 0.5), predicate("b2", 0.4), predicate("b3", 0.1)]),
    ]
    best = generated(facts, settings=profile("fast", query_num=3))
    assert [query.predicates for query in best.queries] == [
        ("a1", "b1"),
        ("a2", "b1"),
        ("a1", "b2"),
    ]
    assert [query.score for query in best.queries] == [0.6708, 0.6325, 0.6]
    assert best.before_truncation == 6
    natural = generated(facts, settings=PAPER.with_changes(query_num=3))
    assert [query.predicates for query in natural.queries] == [
        ("a1", "b1"),
        ("a1", "b2"),
        ("a1", "b3"),
    ]


def test_equal_scores_go_by_iri() -> None:
    facts = [
        ("dune", "a", "?x", [predicate("z", 0.5), predicate("b", 0.5), predicate("b", 0.5, "in")])
    ]
    assert [query.patterns[0] for query in generated(facts).queries] == [
        (iri("dune").n3(), iri("b").n3(), "?x"),
        ("?x", iri("b").n3(), iri("dune").n3()),
        (iri("dune").n3(), iri("z").n3(), "?x"),
    ]


def test_a_relation_without_predicate_gives_no_query_in_fast_and_is_left_out_in_paper() -> None:
    facts = [("dune", "a", "?x", DIRECTOR), ("?x", "b", "?y", [])]
    assert generated(facts) == GeneratedQueries((), 0)
    assert short(generated(facts, settings=PAPER)) == [
        "SELECT DISTINCT ?x WHERE { dune director ?x .}"
    ]


def test_an_entity_without_vertex_is_a_variable() -> None:
    facts = [("dune", "a", "?x", DIRECTOR), ("?x", "b", "xyzzy", PLACE)]
    [query] = generated(facts, unlinked=frozenset({"xyzzy"}), settings=PAPER).queries
    assert query.patterns[1][2].startswith("?unlinked")


def test_what_was_asked_about_is_no_answer_to_a_chain() -> None:
    facts = [("dune", "a", "?p", DIRECTOR), ("?x", "b", "?p", DIRECTOR)]
    [query] = generated(facts).queries
    assert f"FILTER(?x != {iri('dune').n3()})" in query.sparql
    [published] = generated(facts, settings=PAPER).queries
    assert "FILTER" not in published.sparql
    kg = films()
    values = {row[0] for row in kg.select(query.sparql).rows}
    assert (iri("dune") in values, iri("arrival") in values) == (False, True)


def test_same_queries_are_kept_once() -> None:
    same = RankedPredicate(URIRef(EX + "director"), "other", "out", 0.5)
    assert len(generated([("dune", "a", "?x", [predicate("director"), same])]).queries) == 1


# --- predicate selection


def of_names(*names: str) -> CandidateQuery:
    return CandidateQuery(f"SELECT {names}", (), names, 1.0)


OFFERED = (
    of_names("director", "birth place"),
    of_names("director", "birth date"),
    of_names("writer", "birth place"),
)
FACTS = (Fact("Dune", "directed by", "?p"), Fact("?p", "born in", "?x"))


def selected(
    *replies: Any, offered: tuple[CandidateQuery, ...] = OFFERED, settings: Settings | None = None
) -> Any:
    """The selection among queries whose predicates are all as near to their relation."""
    by_fact = zip(*(query.predicates for query in offered), strict=True)
    relations = tuple(
        LinkedRelation(fact, tuple(predicate(name, 0.5) for name in dict.fromkeys(names)))
        for fact, names in zip(FACTS, by_fact, strict=False)
    )
    linked, generated = LinkingResult((), relations), GeneratedQueries(offered, len(offered))
    prompt = "predicate_selection_published" if settings is PAPER else "predicate_selection"
    work = lambda run: select_queries(generated, "Who?", linked, run)  # noqa: E731
    return alone(work, {prompt: list(replies)}, settings=settings)


def pooled(*names: str) -> dict[str, Any]:
    return {"reasoning": "", "predicates": list(names)}


@pytest.mark.parametrize("settings", [Settings(), PAPER])
def test_without_queries_nobody_is_asked(settings: Settings) -> None:
    selection, _, model = selected(offered=(), settings=settings)
    assert (selection, model.call_count()) == (QuerySelection((), ()), 0)


def test_each_triple_is_shown_with_its_own_predicates_and_as_published_they_are_one_list() -> None:
    _, _, model = selected(predicates(["director"], ["birth place"]))
    assert model.requests[0].variables["relations"] == [
        {"triple": ["Dune", "directed by", "?p"], "predicates": ["director", "writer"]},
        {"triple": ["?p", "born in", "?x"], "predicates": ["birth place", "birth date"]},
    ]
    _, _, model = selected(pooled("director"), settings=PAPER)
    assert model.requests[0].variables["predicates"] == [
        "director",
        "birth place",
        "birth date",
        "writer",
    ]


@pytest.mark.parametrize(
    ("settings", "reply", "kept"),
    [
        (Settings(), predicates(["director"], ["birth place"]), [0]),
        (Settings(), predicates(["director", "writer"], ["birth place"]), [0, 2]),
        (Settings(), predicates(["director", "made up"], ["birth date"]), [1]),
        (Settings(), predicates(["writer"], ["birth date"]), []),
        (Settings(), predicates([], ["birth place"]), []),
        (Settings(), predicates([], []), []),
        (PAPER, pooled("director"), [0, 1]),
        (PAPER, pooled("birth place"), [0, 2]),
        (PAPER, pooled("writer", "birth date"), [1, 2]),
        (PAPER, pooled("made up", "writer"), [2]),
    ],
)
def test_a_query_must_be_right_in_every_triple_and_as_published_in_one(
    settings: Settings, reply: Any, kept: list[int]
) -> None:
    selection, _, model = selected(reply, settings=settings)
    assert (selection.queries, model.call_count()) == (tuple(OFFERED[number] for number in kept), 1)
    assert "made up" not in selection.predicates


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        (predicates(["director"]), "1 lists for 2 triples"),
        (
            predicates(["made up"], ["birth place"]),
            "none of triple 1's predicates is in its list: 'made up'",
        ),
        (predicates(["birth place"], ["director"]), "none of triple 1's predicates is in its list"),
        (pooled("director"), "predicates.0: Input should be a valid list"),
    ],
)
def test_a_reply_outside_the_lists_is_turned_away(reply: Any, problem: str) -> None:
    selection, run, _ = selected(reply, predicates(["director"], ["birth place"]))
    assert len(selection.queries) == 1
    assert problem in run["predicate_selection"].attempts[0].checks[-1].problem
    with pytest.raises(InvalidReplyError):
        selected(reply, reply, reply)


@pytest.mark.parametrize(
    ("name", "similarities", "calls"),
    [
        ("Directed by", (0.5, 0.5), 0),  # the relation's very name
        ("director", (0.8, 0.5), 0),  # by far the nearest
        ("director", (0.8, 0.6), 1),
        ("director", (0.6, 0.1), 1),
    ],
)
def test_what_is_beyond_doubt_needs_no_model(
    name: str, similarities: tuple[float, float], calls: int
) -> None:
    relation = LinkedRelation(FACTS[0], tuple(map(predicate, (name, "writer"), similarities)))
    generated, linked = (
        GeneratedQueries((of_names(name), of_names("writer")), 2),
        LinkingResult((), (relation,)),
    )
    replies = {"predicate_selection": predicates([name])}
    selection, run, model = alone(
        lambda run: select_queries(generated, "Who?", linked, run), replies
    )
    assert ([query.predicates for query in selection.queries], model.call_count()) == (
        [(name,)],
        calls,
    )
    note = "for every relation one predicate is beyond doubt: no model was asked"
    assert run["predicate_selection"].notes == ([] if calls else [note])


@pytest.mark.parametrize("reply", [pooled(), pooled("made up"), "none of them"])
def test_as_published_nothing_relevant_is_asked_again_and_at_last_nothing_is_selected(
    reply: Any,
) -> None:
    selection, _, model = selected(reply, pooled("director"), settings=PAPER)
    assert (len(selection.queries), model.call_count()) == (2, 2)
    with pytest.raises(InvalidReplyError) if isinstance(reply, str) else nullcontext():
        selection, _, model = selected(reply, reply, reply, settings=PAPER)
        assert (selection.queries, selection.predicates, model.call_count()) == ((), (), 3)


def test_by_hand_only_candidate_queries_can_be_selected() -> None:
    _, run, _ = selected(predicates(["director"], ["birth place"]))
    with pytest.raises(OverrideError, match="not a candidate query"):
        run.override("predicate_selection", QuerySelection((of_names("other"),), ("other",)))
    run.override("predicate_selection", QuerySelection(OFFERED[1:2], ("birth date",)))


# --- execution


GRAPH = rdflib.Graph().parse(data=FILMS, format="turtle")


def query(*patterns: str, score: float = 1.0, ask: bool = False) -> CandidateQuery:
    """A query of patterns written "dune director ?x"."""
    split: Any = [pattern.split() for pattern in patterns]
    full = tuple(
        tuple(end if end.startswith("?") else iri(end).n3() for end in pattern) for pattern in split
    )
    head = "ASK" if ask else "SELECT DISTINCT ?x WHERE"
    names = tuple(name for _, name, _ in split)
    return CandidateQuery(f"{head} {{ {patterns_to_sparql(full)} }}", full, names, score)


A = Candidate(iri("a"), "A")


def executed(
    *queries: CandidateQuery,
    kind: AnswerKind = "list",
    vertex: Candidate | None = A,
    ranked: tuple[RankedPredicate, ...] = (predicate("r"),),
    **options: Any,
) -> Any:
    """The answer of selected queries to ⟨A, r, ?x⟩, and its run."""
    qir = QIR((Fact("A", "r", "?x"),), "" if kind == "boolean" else "?x", kind)
    linked = LinkingResult((Link("A", vertex),), (LinkedRelation(qir.facts[0], ranked),))
    selection = QuerySelection(queries, ())
    answer, run, _ = alone(lambda run: execute_queries(selection, qir, linked, run), **options)
    return answer, run


def stands_on_the_graph(answer: Answer) -> bool:
    return all(
        value.support and all(triple in GRAPH for triple in value.support)
        for value in answer.values
    )


HIS_FILMS = ("Arrival", "Dune", "Sicario")
DIRECTED = query("?x director denis")
APART = f"FILTER(?x != {iri('dune').n3()}) "


@pytest.mark.parametrize("settings", [Settings(), PAPER])
def test_values_come_by_label_with_their_triples(settings: Settings) -> None:
    answer, run = executed(DIRECTED, settings=settings)
    assert answer.labels == HIS_FILMS
    assert answer.values[0].support == ((iri("arrival"), iri("director"), iri("denis")),)
    assert stands_on_the_graph(answer)
    assert answer.queries == (DIRECTED.sparql,)
    assert run.totals.queries == 1


@pytest.mark.parametrize("settings", [Settings(), PAPER])
def test_the_values_of_all_queries_are_united(settings: Settings) -> None:
    twice = query("?x director ?someone", "?x starring amy", score=0.99)
    others = query("?y author ted", "?x basedOn ?y", "?x starring ?x2")
    answer, _ = executed(DIRECTED, others, twice, settings=settings)
    assert answer.labels == HIS_FILMS
    assert stands_on_the_graph(answer)
    stands_on = ("story author ted", "arrival starring amy", "arrival director denis")
    assert {tuple(map(iri, triple.split())) for triple in stands_on} <= {*answer.values[0].support}


def test_every_value_of_a_long_join_stands_on_the_graph_and_a_literal_is_a_value_too() -> None:
    answer, _ = executed(query("?f starring amy", "?f director ?d", "?x director ?d"))
    assert answer.labels == HIS_FILMS
    assert stands_on_the_graph(answer)
    assert all(len(value.support) >= 2 for value in answer.values)
    answer, _ = executed(query("arrival runtime ?x"))
    assert [(value.term, value.label) for value in answer.values] == [(Literal(116), "116")]
    assert stands_on_the_graph(answer)


# --- counts


@pytest.mark.parametrize(
    ("pattern", "settings", "labels", "support"),
    [
        ("?x director denis", Settings(), ("3",), 3),
        ("?x director denis", PAPER, HIS_FILMS, 3),  # nothing is counted
        ("denis numberOfChildren ?x", Settings(), ("3",), 1),  # a stored number
        ("lynch starring ?x", Settings(), (), 0),
    ],
)
def test_a_count_without_a_stored_number_is_counted(
    pattern: str, settings: Settings, labels: tuple[str, ...], support: int
) -> None:
    answer, _ = executed(query(pattern), kind="count", settings=settings)
    assert (answer.labels, len(answer.support)) == (labels, support)
    assert stands_on_the_graph(answer)
    assert bool(answer) == (answer.reason != "not in this graph: no selected query has rows")


def test_cut_results_are_counted_together_by_the_graph() -> None:
    _, run = executed(DIRECTED, kind="count", kg=open_kg(GRAPH, row_limit=2))
    assert "the result was cut at 2 rows" in run["execution"].notes
    starring = query("?x starring amy")
    answer, _ = executed(DIRECTED, starring, kind="count", kg=open_kg(GRAPH, row_limit=1))
    assert answer.labels == ("3",)  # Arrival is in both


@pytest.mark.parametrize(
    "typed",
    [
        "SELECT DISTINCT ?x\nWHERE {{ {body} }}",
        "select distinct ?x where {{ {body} }}",
        "SELECT DISTINCT ?x {{ {body} }}",
        "SELECT DISTINCT ?x WHERE {{ {body} }} LIMIT 200",
    ],
)
def test_a_cut_result_is_counted_however_its_query_is_written(typed: str) -> None:
    text = typed.format(body=f"{patterns_to_sparql(DIRECTED.patterns)} {APART}")
    query = replace(DIRECTED, sparql=text, filters=APART)
    answer, _ = executed(query, kind="count", kg=open_kg(GRAPH, row_limit=1))
    assert answer.labels == ("2",)


def test_queries_that_differ_in_direction_alone_are_not_united() -> None:
    married = FILMS + ":lynch :influenced :denis . :ted :influenced :lynch ."
    out, back = query("lynch influenced ?x"), query("?x influenced lynch", score=0.98)
    assert executed(out, back, kg=films(married))[0].labels == ("Denis Villeneuve",)
    published, _ = executed(out, back, kg=films(married), settings=PAPER)
    assert published.labels == ("Denis Villeneuve", "Ted Chiang")


# --- booleans


@pytest.mark.parametrize("settings", [Settings(), PAPER])
@pytest.mark.parametrize(
    ("patterns", "truth", "support"),
    [
        (["arrival director denis"], "true", 1),
        (["arrival director ?p", "?p birthPlace gentilly"], "true", 2),
        (["arrival director lynch"], "false", 0),
    ],
)
def test_a_yes_stands_on_triples_and_a_no_is_an_answer(
    patterns: list[str], truth: str, support: int, settings: Settings
) -> None:
    answer, _ = executed(query(*patterns, ask=True), kind="boolean", settings=settings)
    assert (answer.labels, len(answer.support), bool(answer)) == ((truth,), support, True)
    assert all(triple in GRAPH for triple in answer.support)
    assert answer.values[0].term == Literal(truth == "true")


def test_one_true_query_is_enough() -> None:
    no, yes = query("arrival basedOn amy", ask=True), query("arrival starring amy", ask=True)
    answer, run = executed(no, yes, no, kind="boolean")
    assert (answer.labels, answer.queries) == (("true",), (no.sparql, yes.sparql))
    assert run.totals.queries == 2


# --- nothing found


@pytest.mark.parametrize("kind", ["list", "count", "boolean"])
@pytest.mark.parametrize("settings", [Settings(), PAPER])
def test_no_query_is_not_in_this_graph(kind: AnswerKind, settings: Settings) -> None:
    answer, _ = executed(kind=kind, settings=settings)
    assert not answer
    assert str(answer) == "not in this graph: no predicate fits the question"


@pytest.mark.parametrize(
    ("vertex", "reason"), [(None, "no vertex for A"), (A, "no predicate for ⟨A, r, ?x⟩")]
)
def test_what_is_missing_is_named(vertex: Candidate | None, reason: str) -> None:
    answer, _ = executed(vertex=vertex, ranked=())
    assert answer.reason == f"not in this graph: {reason}"


def test_a_stored_false_is_no_yes() -> None:
    kg = films(FILMS + ":arrival :subtitled false . :sicario :subtitled true .")
    for film, truth in (("Arrival", "false"), ("Sicario", "true")):
        script = {"chatty_kg/qir": qir(f"{film} | subtitled | ?x", target="?x")}
        run = chatty(f"Is {film} subtitled?", Scripted(script), kg).go()
        assert answer_of(run).labels == (truth,)
