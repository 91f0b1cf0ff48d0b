"""The questions that a person can ask about a result."""

import html
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from page import record_html
from rdflib import Graph as Triples
from rdflib import Literal
from small import EX, FILMS, alone, films, iri

from kgwb import open_kg
from kgwb.errors import QueryError, QueryRefusedError
from kgwb.kg import Graph
from kgwb.kg.algebra import TriplePattern
from kgwb.kg.base import AnswerKind, Direction
from kgwb.kg.queries import CandidateQuery
from kgwb.run.answers import Answer, Candidate, Link, RetrievedCandidates, Value
from kgwb.run.steps import Step
from kgwb.show import explain
from kgwb.show.explain import (
    authors_of,
    edit_candidate_query,
    execute_query,
    find_examples,
    locate_vertices,
    reasons_for_no_answer,
)
from kgwb.systems.chatty_kg.query_planning import generate_queries
from kgwb.systems.chatty_kg.records import (
    QIR,
    Fact,
    GeneratedQueries,
    LinkedRelation,
    LinkingResult,
    RankedPredicate,
)

DIRECTOR, STARRING, PLACE = (iri(name).n3() for name in ("director", "starring", "birthPlace"))
DENIS, AMY, LYNCH = (iri(name).n3() for name in ("denis", "amy", "lynch"))
BY_DENIS, WITH_AMY, BY_AMY = ("?x", DIRECTOR, DENIS), ("?x", STARRING, AMY), ("?x", DIRECTOR, AMY)
BY_LYNCH, ALSO_BY_AMY = ("?x", DIRECTOR, LYNCH), ("?y", DIRECTOR, AMY)
NOT_HIS = f"FILTER(?x != {iri('lynchs_dune').n3()})"


# --- why a query has no rows


@pytest.mark.parametrize(
    ("patterns", "filters", "culprits", "unmatched"),
    [
        ([BY_AMY], "", (), (BY_AMY,)),
        ([BY_DENIS, BY_AMY], "", (BY_AMY,), (BY_AMY,)),
        ([BY_LYNCH, WITH_AMY], "", (BY_LYNCH, WITH_AMY), ()),
        ([BY_AMY, ("?x", PLACE, LYNCH)], "", (), (BY_AMY, ("?x", PLACE, LYNCH))),
        ([BY_LYNCH, ("?x", STARRING, "?who"), WITH_AMY], "", (BY_LYNCH,), ()),
        ([BY_LYNCH], f"{NOT_HIS} ", (NOT_HIS,), ()),
        ([WITH_AMY, ALSO_BY_AMY], f"FILTER(?y != {DENIS})", (ALSO_BY_AMY,), (ALSO_BY_AMY,)),
    ],
)
def test_the_parts_that_block_a_query_are_found(
    patterns: Any, filters: str, culprits: Any, unmatched: Any
) -> None:
    found = explain.explain_empty_result(films(), patterns, filters)
    assert found.is_empty
    assert (found.blocking_patterns, found.unmatched_patterns) == (culprits, unmatched)


def test_an_empty_query_without_a_single_blocking_pattern_is_explained() -> None:
    assert not explain.explain_empty_result(films(), [BY_DENIS]).is_empty
    kg = films(FILMS + ":a :p :b . :c :q :d . :e :r :f .")
    alone = explain.explain_empty_result(kg, [("?x", iri(name).n3(), "?y") for name in "pqr"])
    assert (alone.blocking_patterns, alone.unmatched_patterns) == ((), ())
    assert "stays empty" in record_html(alone)


@pytest.mark.parametrize(
    ("before", "after", "excluding"),
    [
        ("", "OFFSET 100", "OFFSET 100"),
        ("", "ORDER BY ?x LIMIT 0", "ORDER BY ?x LIMIT 0"),
        (f"FROM <{EX}nowhere>", "", f"FROM <{EX}nowhere>"),
        ("", "LIMIT 1", ""),
    ],
)
def test_clauses_around_the_patterns_that_leave_out_all_matches_are_named(
    before: str, after: str, excluding: str
) -> None:
    subject, predicate, object_ = BY_DENIS
    query = f"SELECT ?x {before} WHERE {{ {subject} {predicate} {object_} }} {after}"
    found = explain.explain_empty_query(films(), query, ())
    assert (found.is_empty, found.excluding_clauses) == (bool(excluding), excluding)
    assert found.is_empty == (not films().select(query).rows)
    if excluding:
        assert html.escape(excluding) in record_html(found)


def step(key: str, output: object, parent: str = "") -> Step:
    return Step(key, key.partition("[")[0], "", parent, {}, type(output), output, done=True)


def directed(score: float, fact: Fact) -> LinkedRelation:
    return LinkedRelation(fact, (RankedPredicate(iri("director"), "director", "out", score),))


FACT = Fact("?x", "by", "D")
LINK = Link("D", Candidate(iri("denis"), "Denis"))
STEPS = (
    step("matching", None),
    step("link[D]", LINK, "matching"),
    step("choose[D]", LINK, "link[D]"),
    step("relate[f]", directed(1.0, FACT), "matching"),
    step("generate", GeneratedQueries((CandidateQuery("", (), (), 1.0, "FILTER(?x != 1) "),), 1)),
)


def authors(steps: Sequence[Step], part: TriplePattern | str) -> list[list[str]]:
    """Return the step and the kind and name of what it wrote, for each author of a part."""
    return [text.split(" wrote the ") for text in authors_of(steps, part, {})]


def test_the_authors_of_a_part_are_known_by_their_outputs() -> None:
    linked = LinkingResult((STEPS[1].output,), (STEPS[3].output,))
    steps = (replace(STEPS[0], output=linked), *STEPS[1:])
    predicate = ["relate[f]", "predicate director"]
    assert authors(steps, BY_DENIS) == [predicate, ["choose[D]", "vertex denis"]]
    assert authors(STEPS, "FILTER(?x != 1)") == [["generate", "filters"]]
    assert authors(STEPS, "FILTER(?x != 2)") == []
    assert authors(STEPS, (*BY_AMY[:2], "?y")) == [predicate]
    assert authors(STEPS, ("?x", PLACE, "?y")) == []


ATLAS = Candidate(iri("a"), "Atlas", 0.4)


@pytest.mark.parametrize(
    ("record", "words"),
    [
        (Link("Atlantis", None, (ATLAS,)), "no vertex for “Atlantis”: nearest are Atlas (0.40)"),
        (Link("Atlantis", None), "no vertex for “Atlantis”: the graph has no label like it"),
        (LinkedRelation(FACT, ()), "no predicate for “by”: no linked vertex leads to it"),
        (directed(0.31, FACT), "D has nothing like “by”: nearest are director (0.31)"),
    ],
)
def test_an_empty_answer_has_the_reasons_of_its_steps(record: object, words: str) -> None:
    steps = [*STEPS, step("lost", record), step("again", record)]
    assert reasons_for_no_answer(Answer("list"), steps) == [words]
    assert reasons_for_no_answer(Answer("boolean", (Value(Literal("true"), "true"),)), steps) == []


@pytest.mark.parametrize(
    ("relation", "ending"),
    [
        (
            "number of children",
            "The graph has the predicate “number of children”, but no value of it here",
        ),
        ("shoe size", "The graph has no predicate “shoe size”"),
    ],
)
def test_what_a_thing_lacks_is_told_from_what_the_graph_lacks(relation: str, ending: str) -> None:
    steps = [step("lost", directed(0.31, Fact("Arrival", relation, "?x")))]
    [reason] = reasons_for_no_answer(Answer("list"), steps, films())
    beginning = f"Arrival has nothing like “{relation}”: nearest are director (0.31)"
    assert reason == f"{beginning}. {ending}"
    [unasked] = reasons_for_no_answer(Answer("list"), steps)
    assert unasked == beginning


@pytest.mark.parametrize(("row_limit", "is_known"), [(100, True), (5, False)])
def test_no_predicate_is_missing_from_a_graph_that_cuts_their_list(
    row_limit: int, is_known: bool
) -> None:
    kg = open_kg(Triples().parse(data=FILMS, format="turtle"), row_limit=row_limit)
    steps = [step("lost", directed(0.31, Fact("Arrival", "shoe size", "?x")))]
    [reason] = reasons_for_no_answer(Answer("list"), steps, kg)
    assert ("has no predicate" in reason) == is_known


# --- where a vertex is

DUNES = RetrievedCandidates("Dune", (Candidate(iri("dune"), "Dune", 1.0),))


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("dune", "is candidate 1"),
        (str(iri("dune")), "is candidate 1"),
        (iri("dune").n3(), "is candidate 1"),
        ("Sicario", "search for 'Dune' does not find"),
        (str(iri("lynchs_dune")), "is found at rank 2, but only the best 1 became candidates"),
        (str(iri("nowhere")), f"no vertex called '{iri('nowhere')}'"),
        ("Arival", "no vertex called 'Arival'; nearest are Arrival"),
        ("", "no vertex called ''"),
    ],
)
def test_the_vertices_of_a_name_are_located(name: str, place: str) -> None:
    assert place in "\n".join(locate_vertices(films(), name, DUNES, 600))


def test_every_vertex_of_a_name_is_located() -> None:
    candidate, other = locate_vertices(films(), "Dune", DUNES, 600)
    assert "candidate 1" in candidate
    assert "rank 2" in other
    [beyond] = locate_vertices(films(), str(iri("lynchs_dune")), DUNES, 1)
    assert "v_limit of 1" in beyond
    kg = films(FILMS + ':dune rdfs:label "Dune: Part One" .')
    [other_label] = locate_vertices(kg, "Dune: Part One", DUNES, 600)
    assert "candidate 1" in other_label
    assert "label 'Dune'" in other_label


# --- what a predicate holds


LINKED = [
    step(f"link[{name}]", Link(name, Candidate(iri(name), name)))
    for name in ("arrival", "denis", "sicario")
]


def examples(
    kg: Graph, subject: str, predicate: str, direction: Direction
) -> explain.PredicateExamples:
    return find_examples(kg, (subject, "?x"), iri(predicate), direction, LINKED)


def test_examples_are_of_the_linked_vertex_or_else_of_any() -> None:
    found = examples(films(), "arrival", "starring", "out")
    assert not found.from_anywhere
    assert {triple[2] for triple in found.triples} == {iri("amy"), iri("jeremy")}
    assert dict(found.names)[iri("amy")] == "Amy Adams"
    incoming = examples(films(), "denis", "director", "in").triples
    assert {triple[1:] for triple in incoming} == {(iri("director"), iri("denis"))}
    elsewhere = examples(films(), "sicario", "starring", "out")
    assert (elsewhere.from_anywhere, len(elsewhere.triples)) == (True, 3)
    assert examples(films(), "nowhere", "nothing", "out").triples == ()


# --- a query that a person typed


@pytest.mark.parametrize(
    ("sparql", "patterns", "filters"),
    [
        ("SELECT DISTINCT ?x WHERE { ?x :director :denis }", [BY_DENIS], ""),
        ("ASK { ?x :director :denis ; :starring :amy . }", [BY_DENIS, WITH_AMY], ""),
        (
            "SELECT ?x { {?x :director :denis} {?x :starring :amy} } ORDER BY ?x",
            [BY_DENIS, WITH_AMY],
            "",
        ),
        ("SELECT ?x { ?x :director :denis } LIMIT 3", [BY_DENIS], ""),
        ('SELECT ?x { ?x :birthPlace "a \\"b\\""@en }', [("?x", PLACE, '"a \\"b\\""@en')], ""),
        (
            "SELECT ?x { ?x :director :denis FILTER(?x != :amy && !isLiteral(?x)) }",
            *([BY_DENIS], f"FILTER(((?x != {AMY}) && !(isLITERAL(?x)))) "),
        ),
        (
            'SELECT ?x { ?x :director :denis FILTER(str(?x) IN ("a", "b") || regex(?x, "c", "i")) }',
            *([BY_DENIS], 'FILTER(((STR(?x) IN ("a", "b")) || REGEX(?x, "c", "i"))) '),
        ),
    ],
)
def test_the_patterns_of_a_typed_query(sparql: str, patterns: Any, filters: str) -> None:
    assert explain.extract_patterns(f"PREFIX : <{iri('')}> {sparql}") == (tuple(patterns), filters)


@pytest.mark.parametrize(
    ("sparql", "feature"),
    [
        ("SELECT ?x { ?x ?p ?y OPTIONAL { ?y ?q ?z } }", "OPTIONAL"),
        ("SELECT ?x { ?x ?p ?y FILTER(?y + 1 > 3) }", "arithmetic"),
        ("SELECT ?x { }", "no triple pattern"),
        ("SELECT ?x { ?x foo:p ?y }", "does not declare foo"),
        ("DESCRIBE <http://a>", "no SELECT or ASK"),
        ("SELECT ?x { ?x ?p", "does not parse"),
    ],
)
def test_what_cannot_be_taken_apart_is_named(sparql: str, feature: str) -> None:
    with pytest.raises(QueryError, match=feature):
        explain.extract_patterns(sparql)


@pytest.mark.parametrize(
    ("prefix", "line"),
    [
        ("rdfs", "PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>"),
        ("foo", "PREFIX foo: <http://example.org/>"),
    ],
)
def test_the_line_that_declares_a_prefix_is_said(prefix: str, line: str) -> None:
    with pytest.raises(QueryError) as refused:
        explain.extract_patterns(f"SELECT ?x {{ ?x {prefix}:p ?y }}")
    assert line in str(refused.value.hint)


def test_an_edited_query_takes_its_patterns_from_the_text() -> None:
    query = CandidateQuery(
        f"SELECT ?x WHERE {{ ?x {DIRECTOR} {DENIS} . }}", (BY_DENIS,), ("made by",), 0.5
    )
    made = edit_candidate_query(
        query, f"SELECT ?x WHERE {{ ?x {DIRECTOR} {DENIS} ; {STARRING} ?who . }}"
    )
    assert made.patterns == (BY_DENIS, ("?x", STARRING, "?who"))
    assert (made.predicates, made.score) == (("made by", "starring"), 0.5)
    with pytest.raises(QueryRefusedError):
        edit_candidate_query(query, "DELETE WHERE { ?s ?p ?o }")
    for other in ("ASK { ?x ?p ?y }", "SELECT ?y WHERE { ?x ?p ?y }"):
        with pytest.raises(QueryError, match=r"SELECT of \?x is expected"):
            edit_candidate_query(query, other)


@pytest.mark.parametrize("kind", ["boolean", "list"])
def test_a_query_that_the_system_wrote_can_be_edited(kind: AnswerKind) -> None:
    target = "" if kind == "boolean" else "?x"
    facts = (Fact("Arrival", "by", "?x"), Fact("?x", "by", "Dune"))
    relation = directed(1.0, facts[0])
    links = tuple(Link(name, Candidate(iri(name.lower()), name)) for name in ("Arrival", "Dune"))
    linked = LinkingResult(links, (relation, replace(relation, fact=facts[1])))
    generated, _, _ = alone(lambda run: generate_queries(QIR(facts, target, kind), linked, run))
    [query] = generated.queries
    made = edit_candidate_query(query, query.sparql.replace(" }", "\n}"))
    assert sorted(made.patterns) == sorted(query.patterns)
    again = edit_candidate_query(query, f"{query.sparql.partition('FILTER')[0]} {made.filters}}}")
    assert again.filters == made.filters != ""


def test_a_query_is_executed_and_its_terms_have_names() -> None:
    rows = execute_query(films(), f"SELECT ?x WHERE {{ ?x {DIRECTOR} {LYNCH} }}")
    assert dict(rows.names) == {iri("lynchs_dune"): "Dune"}
    assert not rows.is_empty
    assert execute_query(films(), f"ASK {{ ?x {DIRECTOR} {AMY} }}").ask_result is False
    assert "<b>false</b>" in record_html(execute_query(films(), f"ASK {{ ?x {DIRECTOR} {AMY} }}"))
    with pytest.raises(QueryRefusedError):
        execute_query(films(), "DROP ALL")


# --- limits and failures


def test_every_request_to_the_graph_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    kg, asked = films(), list[str]()
    construct, search = kg.construct, kg.search
    monkeypatch.setattr(kg, "construct", lambda query: asked.append(query) or construct(query))
    monkeypatch.setattr(
        kg, "search", lambda text, limit: asked.append(f"LIMIT {limit}") or search(text, limit)
    )
    locate_vertices(kg, "Sicario", DUNES, 600)
    examples(kg, "sicario", "starring", "out")
    assert len(asked) == 3
    assert all("LIMIT" in query for query in asked)
