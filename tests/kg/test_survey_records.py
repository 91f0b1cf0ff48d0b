"""What a survey puts together, and the thresholds by which it does."""

from __future__ import annotations

from pathlib import Path

import pytest
from rdflib import RDFS, XSD, Literal, URIRef
from small import EX, films, iri
from tables import read_table

from kgwb.kg.survey import survey_graph
from kgwb.kg.survey_queries import holds_structure
from kgwb.kg.survey_records import (
    ClassSurvey,
    PropertySurvey,
    Survey,
    ValueSurvey,
    format_percent,
    group_classes,
    merge_values,
)

PREFIXES = f"@prefix : <{EX}> . @prefix rdfs: <{RDFS}> . "


def survey_of(turtle: str) -> Survey:
    return survey_graph(films(PREFIXES + turtle))


@pytest.mark.parametrize(
    ("number", "total", "shown"),
    [
        (0, 5, "0%"),
        (1, 101, "<1%"),
        (1, 100, "1%"),
        (999, 1000, "99%"),
        (5, 5, "100%"),
        (6, 5, "100%"),
    ],
)
def test_a_share_is_all_or_nothing_only_if_it_is(number: int, total: int, shown: str) -> None:
    assert format_percent(number, total) == shown


@pytest.mark.parametrize(
    ("classes", "with_usual", "is_one"),
    [(5, 3, True), (7, 4, False), (4, 2, False), (4, 3, True), (2, 2, True)],
)
def test_classes_are_one_group_if_they_have_most_predicates_in_common(
    classes: int, with_usual: int, is_one: bool
) -> None:
    surveyed = [ClassSurvey(iri("Top"), "Top", 0, classes)]
    for number in range(classes):
        name = "usual" if number < with_usual else f"own{number}"
        used = PropertySurvey(iri(name), 1, 1)
        surveyed.append(ClassSurvey(iri(f"C{number}"), f"C{number}", 1, 1, (iri("Top"),), (used,)))
    groups = group_classes(Survey(1, 1, 1, tuple(surveyed), None, ()))
    # If not, the superclass is a group without members beside those of its subclasses.
    assert len(groups) == (1 if is_one else classes + 1)


def values(examples: range, distinct: int = 0, *, whole: bool = True) -> ValueSurvey:
    terms = tuple(map(Literal, examples))
    return ValueSurvey("integer", XSD.integer, 20, distinct or len(terms), terms, whole)


@pytest.mark.parametrize(
    ("sorts", "triples", "distinct", "is_whole", "at_least", "shown"),
    [
        ([values(range(3), 9, whole=False)], 20, 9, False, False, 3),
        ([values(range(6)), values(range(6, 12))], 40, 12, True, False, 12),
        ([values(range(6)), values(range(4, 13))], 40, 13, False, True, 3),
        ([values(range(6)), values(range(2), 7, whole=False)], 40, 7, False, True, 3),
        ([values(range(2)), values(range(2))], 40, 2, True, False, 2),
    ],
)
def test_values_of_several_classes_are_whole_if_all_are_known_and_few(
    sorts: list[ValueSurvey],
    triples: int,
    distinct: int,
    is_whole: bool,
    at_least: bool,
    shown: int,
) -> None:
    [merged] = merge_values(sorts)
    assert (merged.triples, merged.distinct) == (triples, distinct)
    assert (merged.whole, merged.at_least, len(merged.examples)) == (is_whole, at_least, shown)


@pytest.mark.parametrize(
    ("literals", "things", "label", "expected"),
    read_table(Path(__file__).with_name("structural_literals.jsonl")),
)
def test_few_literals_and_at_most_one_thing_hold_structure(
    literals: int, things: int, label: bool, expected: bool
) -> None:
    literal = ValueSurvey("string", XSD.string, 1, 1, ())
    thing = ValueSurvey("class", iri("C"), 1, 1, ())
    used = {iri(f"p{number}"): [literal] for number in range(literals)}
    used |= {iri(f"q{number}"): [thing] for number in range(things)}
    if label:
        used[URIRef(RDFS.label)] = [literal]
    assert holds_structure(used, [RDFS.label]) == expected


@pytest.mark.parametrize(
    ("agree", "things", "is_found"),
    [(2, 2, True), (1, 1, False), (2, 4, True), (2, 5, False), (1, 2, False)],
)
def test_a_text_stands_for_what_a_link_leads_to_if_half_of_them_agree(
    agree: int, things: int, is_found: bool
) -> None:
    turtle = ""
    for number in range(things):
        text = f"Person {number}" if number < agree else f"Other {number}"
        turtle += f':t{number} a :T ; :owner :p{number} ; :user "{text}" .'
        turtle += f' :p{number} a :P ; rdfs:label "A Person {number}" ; :age {number} .'
    found = survey_of(turtle).texts_of_links
    assert [(each.both, each.same) for each in found] == [(things, agree)] * is_found


def test_the_link_that_most_agree_with_is_that_of_the_text() -> None:
    turtle = "".join(
        f':t{number} a :T ; :town :a{number} ; :region :b{number} ; :place "Aa{number}berg" .'
        f' :a{number} a :A ; rdfs:label "Aa{number}berg" . :b{number} a :B ;'
        f' rdfs:label "{"Greater Aa" if number else "Bb"}{number}berg" .'
        for number in range(3)
    )
    [found] = survey_of(turtle).texts_of_links
    assert (found.link, found.same) == (iri("town"), 3)


@pytest.mark.parametrize(("triples", "is_counted"), [(10, True), (11, False)])
def test_a_predicate_is_counted_both_ways_if_a_tenth_of_it_is_within_a_class(
    triples: int, is_counted: bool
) -> None:
    others = "".join(f":a :knows :b{number} . :b{number} a :B ." for number in range(triples - 1))
    counted = survey_of(f":a a :A ; :knows :c . :c a :A . {others}").both_ways
    assert counted == (((iri("knows"), triples, 0),) if is_counted else ())


def test_values_that_are_not_all_known_are_not_whole() -> None:
    turtle = ':a a :T ; :p 1, 2, 3, "x" ; :q [ :r 1 ], "y" . :b a :T ; :q "y" .'
    [surveyed] = [each for each in survey_of(turtle).classes if each.name == "T"]
    whole = {
        (prop.predicate, values.sort): values.whole
        for prop in surveyed.properties
        for values in prop.values
    }
    assert whole == {
        (iri("p"), "integer"): False,
        (iri("p"), "string"): True,
        (iri("q"), "node"): False,
        (iri("q"), "string"): True,
    }
