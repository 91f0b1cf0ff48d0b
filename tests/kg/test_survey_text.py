"""A survey as text for a model: groups of classes, values, and names that a query can contain."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from rdflib import RDF, RDFS, Literal, URIRef
from small import EX, films, iri
from tables import read_table

from kgwb.kg.survey import survey_graph
from kgwb.kg.survey_records import (
    MAX_SUMMARY_PREDICATES,
    ClassSurvey,
    PropertySurvey,
    Survey,
    ValueSurvey,
)
from kgwb.kg.survey_text import (
    MAX_INCOMING,
    MAX_KEPT_WRITERS,
    MAX_UNUSED,
    MAX_VALUE_TYPES,
    SurveyWriter,
    writer_of_survey,
)
from kgwb.kg.term_text import (
    add_missing_prefixes,
    bracket_iri,
    format_value,
    quote_text,
    short_name,
    to_curie,
)

HERE = Path(__file__).parent

SHOP = """
@prefix : <http://example.org/> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:Machine a owl:Class ; rdfs:label "Machine" ; rdfs:comment "what does work" .
:Tractor rdfs:subClassOf :Machine .
:Crane rdfs:subClassOf :Machine . :Gantry rdfs:subClassOf :Crane ; rdfs:label "Ship-to-shore crane" .
:colour a owl:DatatypeProperty . :status rdfs:comment 'whether it "runs"' .
:a a :Gantry ; :status "running" ; :built 1999 ; :nextTo :b ; :port <http://elsewhere.org/R(1)> ;
    :weight [ :value 9.5 ; :unit :kg ] .
:b a :Gantry ; :status "running" ; :built 2001 ; :nextTo :a ; :weight [ :value 120.0 ; :unit :t ] .
:d a :Crane ; :status "running" ; :built 2010 ; :nextTo :b .
:c a :Tractor ; :status "broken" ; :built 2020 ; :nextTo :a .
:kg a :Unit ; rdfs:label "kilogram" . :t a :Unit ; rdfs:label "tonne" .
:sold a :Sale ; :of :c ; :price "12"@en , "zwölf"@de .
"""


def writer(turtle: str = SHOP) -> SurveyWriter:
    return SurveyWriter(survey_graph(films(turtle)))


def test_similar_classes_are_written_as_one_group() -> None:
    written = writer()
    machine, unit, sale = (written.format_group(group) for group in written.groups)
    assert machine.splitlines() == [
        "org:Machine 4 instances: ?x a org:Machine finds none,"
        " ?x rdf:type/rdfs:subClassOf* org:Machine finds 4; subclasses:"
        ' org:Crane 1 (with its own subclasses 3), org:Gantry "Ship-to-shore crane" 2,'
        ' org:Tractor 1 ("what does work")',
        "  org:built: all integer: only 1999, 2001, 2010, 2020",
        "  org:nextTo: all -> org:Gantry: only org:a, org:b; 2 of its 4 triples also the other way round",
        '  org:status: all string: only "broken", "running" ("whether it \\"runs\\"")',
        '  org:weight: 2 -> node with org:unit -> org:Unit: only org:kg "kilogram", org:t "tonne"; '
        "org:value decimal: only 9.5, 120",
        "  org:port: 1 -> IRI that the graph says nothing about: only <http://elsewhere.org/R(1)>",
        "  led to by org:of of org:Sale",
    ]
    assert unit.splitlines()[0] == "org:Unit 2 instances"
    assert 'org:price: all (2 triples) text@de: only "zwölf" or text@en: only "12"' in sale
    assert list(written.remarks()) == ["Declared, but without any triple: org:colour"]


@pytest.mark.parametrize(
    ("types", "patterns"),
    [
        # The superclass is stated for all, for some, and for none of the instances.
        (":A, :B", "?x a org:A finds 3; subclasses: org:B 2"),
        (
            ":B",
            "?x a org:A finds 1, ?x rdf:type/rdfs:subClassOf* org:A finds 3; subclasses: org:B 2",
        ),
    ],
)
def test_a_title_says_what_each_pattern_finds(types: str, patterns: str) -> None:
    turtle = f":B rdfs:subClassOf :A . :x a :A ; :p 1 . :y a {types} ; :p 2 . :z a {types} ; :p 3 ."
    [text] = described(turtle).values()
    assert text.splitlines()[:2] == [
        f"org:A 3 instances: {patterns}",
        "  org:p: all integer: only 1, 2, 3",
    ]


def test_a_superclass_whose_subclasses_differ_is_described_apart_from_them() -> None:
    turtle = (
        ":B rdfs:subClassOf :A . :C rdfs:subClassOf :A . :D rdfs:subClassOf :A ."
        " :x a :B ; :p 1 ; :q 1 . :y a :C ; :r 1 ; :s 1 . :z a :D ; :t 1 ; :u 1 ."
    )
    texts = described(turtle)
    assert texts.keys() == {"org:A", "org:B", "org:C", "org:D"}
    assert texts["org:A"] == (
        "org:A 3 instances: ?x a org:A finds none, ?x rdf:type/rdfs:subClassOf* org:A finds 3;"
        " subclasses: org:B 1, org:C 1, org:D 1, described apart"
    )


def test_a_thing_and_its_text_are_shown_together() -> None:
    turtle = (
        ':o a :Town ; rdfs:label "Oslo" ; :size 1 . :r a :Town ; rdfs:label "Roma" ; :size 2 .'
        ' :a a :Firm ; :in :o ; :town "Oslo" . :b a :Firm ; :in :r ; :town "Roma" .'
        ' :c a :Firm ; :in :r ; :town "Rome" . :d a :Firm ; :town "Oslo" . :e a :Firm ; :in :o .'
    )
    lines = described(turtle)["org:Firm"].splitlines()
    assert lines[1:] == [
        '  org:in: 4 -> org:Town: only org:o "Oslo", org:r "Roma"',
        '    the same as a text, org:town: 4 string: only "Oslo", "Roma", "Rome"; 3 have both'
        " (in 2 of these the name of the thing contains the text), 1 only the text, 1 only the thing",
    ]


def test_a_predicate_that_is_the_text_of_one_and_the_link_of_another_has_its_own_line() -> None:
    towns = ':o a :Town ; rdfs:label "Oslo" . :r a :Town ; rdfs:label "Roma" . '
    firms = (
        ':a a :Firm ; :in :o, "Oslo" ; :town :o, "Oslo" . :b a :Firm ; :in :r ; :town :r, "Roma" .'
    )
    more = ' :b :in "Roma" . :a :name "Oslo" . :b :name "Roma" . :c a :Firm ; :in :o .'
    lines = described(towns + firms + more)["org:Firm"].splitlines()
    assert [line.split(":")[1] for line in lines[1:]] == ["in", "name", "town"]


@pytest.mark.parametrize(
    ("values", "expected"),
    read_table(HERE / "shown_values.jsonl"),
)
def test_an_iri_is_told_from_a_literal_and_from_a_thing(values: str, expected: str) -> None:
    shown = described(f":a a :T ; :p {values} . :said :size 1 . :typed a :K ; :size 1 .")["org:T"]
    _, _, after_count = line_of("p", shown).partition(": ")
    assert after_count.removeprefix("all ").removeprefix("(2 triples) ") == expected


def test_an_outline_with_room_has_lines_for_the_predicates_that_most_instances_have() -> None:
    written = writer()
    assert written.outline(2) == "org:Sale 1: org:of, org:price"
    title, *lines = written.outline(0, 200).splitlines()
    assert title == "org:Machine 4: org:status, org:weight, org:port"
    assert lines == written.group_text(0).splitlines()[1:3]
    assert "org:port: 1 -> IRI" in written.outline(0, 10_000)


def test_a_unit_has_its_factor_wherever_it_is_named() -> None:
    written = writer(
        f"@prefix : <{EX}> . @prefix rdfs: <{RDFS}> ."
        ' :foot a :Unit ; rdfs:label "foot" ; :factor 0.3048 .'
        ' :metre a :Unit ; rdfs:label "metre" ; :factor 1.0 .'
        " :a a :Ship ; :length [ :value 9 ; :unit :foot ] ."
        " :b a :Ship ; :length [ :value 4 ; :unit :metre ] ."
    )
    texts = {group.top_class.name: written.format_group(group) for group in written.groups}
    assert "org:Unit: only org:foot (org:factor 0.3048), org:metre (org:factor 1)" in texts["Ship"]
    assert line_of("factor", texts["Unit"]) == ("  org:factor: all decimal: only 0.3048, 1")


def test_superclasses_between_are_among_the_classes_of_a_group() -> None:
    written = writer()
    names = [surveyed.name for surveyed in written.groups[0].classes]
    assert (names[0], set(names)) == (
        "Machine",
        {"Machine", "Crane", "Ship-to-shore crane", "Tractor"},
    )


def test_many_values_are_written_as_the_least_and_the_greatest_and_texts_as_one_between() -> None:
    many = "".join(
        f':n{n} a :N ; :size {n} ; :day "20{n:02}-01-01" ; :name "n{n}" .' for n in range(40)
    )
    written = writer(f"@prefix : <{EX}> . {many}")
    [text] = map(written.format_group, written.groups)
    assert "org:size: all integer 0 … 39" in text
    assert 'org:name: all string "n3", "n0"' in text


def test_a_deep_and_tangled_class_hierarchy_stays_short() -> None:
    use = PropertySurvey(iri("p"), 1, 1, (ValueSurvey("integer", None, 1, 1, (Literal(1),)),))
    names = [iri(f"c{number}") for number in range(1_500)]
    classes = tuple(
        ClassSurvey(name, short_name(name), 1, 1, tuple(names[max(0, number - 3) : number]), (use,))
        for number, name in enumerate(names)
    )
    written = SurveyWriter(Survey(1, 1, 1, classes, 0, ()))
    assert sum(len(group.members) for group in written.groups) == len(names)
    assert all(len(written.format_group(group)) < 100_000 for group in written.groups)


def test_a_circle_of_classes_ends_and_unknown_values_are_left_out() -> None:
    a, b, use = iri("A"), iri("B"), (PropertySurvey(iri("p"), 1, 1, (), (), 3),)
    written = SurveyWriter(
        Survey(
            1,
            1,
            1,
            (ClassSurvey(a, "A", 1, 2, (b,), use), ClassSurvey(b, "B", 1, 2, (a,), use)),
            0,
            (),
        )
    )
    [lines] = (written.format_group(group).splitlines() for group in written.groups)
    assert (
        lines[0]
        == "org:A 2 instances: ?x a org:A finds 1, ?x rdf:type/rdfs:subClassOf* org:A finds 2;"
        " subclasses: org:B 1 (with its own subclasses 2)"
    )
    assert lines[1].rstrip() == "  org:p: all"


def described(turtle: str) -> dict[str, str]:
    """The lines of each class that has lines of its own, by its CURIE."""
    written = writer(f"@prefix : <{EX}> . @prefix rdfs: <{RDFS}> . {turtle}")
    lines = {}
    for group in written.groups:
        if not written.is_inlined(group):
            lines[written.format_title(group).rpartition(" ")[0]] = written.format_group(group)
    return lines


PERSON_AND_NODE = (
    ":b1 a :Book ; :author :p1 . :b4 a :Book ; :author [ :called 'Anon' ] . :p1 a :Person"
)
LABELLED = ' ; rdfs:label "Ann" ; :age 3 . :b5 a :Book ; :author [ rdfs:label "Anon" ; :age 4 ]'
AMOUNTS = (
    ":a a :Sale ; :price :n1 . :b a :Sale ; :price :n2 . :n1 a :Amount ; :value 1 ; :unit 'kg' . "
)
SECOND = ":n2 a :Amount ; :value 2 ; :unit 't' . "


@pytest.mark.parametrize(
    ("turtle", "expected"),
    [
        (f"{PERSON_AND_NODE} .", {"org:Book", "org:Person"}),
        (f"{PERSON_AND_NODE} {LABELLED} .", {"org:Book", "org:Person"}),
        (f"{PERSON_AND_NODE} ; :called 'Ann' .", {"org:Book", "org:Person"}),
        (f"{AMOUNTS} {SECOND}", {"org:Sale"}),
        (f"{AMOUNTS} {SECOND} :c a :Sale ; :price [ :value 5 ; :unit 'kg' ] .", {"org:Sale"}),
        # An instance that nothing leads to, and one with a predicate that is not shown elsewhere
        (f"{AMOUNTS} {SECOND} :n3 a :Amount ; :value 3 ; :unit 'g' .", {"org:Sale", "org:Amount"}),
        (f"{AMOUNTS} {SECOND} :n2 rdfs:label 'two tonnes' .", {"org:Sale", "org:Amount"}),
        # Things without a class beside blank nodes
        (":a a :Sale ; :price [ :value 5 ] . :x :y 3 .", {"org:Sale", "without a class"}),
    ],
)
def test_a_class_has_lines_unless_all_its_instances_only_hold_structure(
    turtle: str, expected: set[str]
) -> None:
    assert described(turtle).keys() == expected


def line_of(predicate: str, text: str) -> str:
    [line] = [line for line in text.splitlines() if line.startswith(f"  org:{predicate}: ")]
    return line


def test_all_sorts_of_values_are_told_beside_nodes() -> None:
    sale = described(":s a :Sale ; :price 10, 20, 30 , [ :amount 5 ] .")["org:Sale"]
    assert (
        line_of("price", sale)
        == "  org:price: all (4 triples) integer 10 … 30 or -> node (1) with org:amount integer: only 5"
    )
    book = described(f"{PERSON_AND_NODE} .")["org:Book"]
    assert (
        line_of("author", book) == "  org:author: all -> org:Person (1): only org:p1 or -> node (1)"
        ' with org:called string: only "Anon"'
    )


def test_what_a_limit_cuts_is_counted() -> None:
    languages = ["de", "en", "es", "fr", "it", "ja", "pt"]
    titles = " , ".join(f'"{language}"@{language}' for language in languages)
    leading = " ".join(f"; :p{number} :x" for number in range(MAX_INCOMING + 2))
    turtle = f":x a :Person ; :title {titles} . :a a :Film ; :name 1 {leading} ."
    lines = described(turtle)["org:Person"].splitlines()
    assert lines[-1].count("org:Film") == MAX_INCOMING
    assert lines[-1].endswith("; and 2 more")
    [title] = [line for line in lines if line.startswith("  org:title: ")]
    assert title.count("text@") == MAX_VALUE_TYPES
    assert title.endswith(" or 2 other kinds of values")


def test_declarations_beyond_the_limit_are_counted() -> None:
    declared = " ".join(f":p{number} a owl:ObjectProperty ." for number in range(MAX_UNUSED + 3))
    owl = "@prefix owl: <http://www.w3.org/2002/07/owl#> ."
    written = writer(f"@prefix : <{EX}> . {owl} {declared} :a a :T ; :q 1 .")
    [remark] = written.remarks()
    assert remark.count("org:p") == MAX_UNUSED
    assert remark.endswith(", and 3 more")


def test_a_summary_counts_the_predicates_that_it_leaves_out() -> None:
    predicates = " ".join(f"; :p{number} 1" for number in range(7))
    survey = survey_graph(films(f"@prefix : <{EX}> . :a a :T {predicates} ."))
    [line] = [line for line in survey.summary().splitlines() if line.startswith("T ")]
    assert line.count("100%") == MAX_SUMMARY_PREDICATES
    assert line.endswith(", and 2 more")


def test_datatypes_of_one_local_name_are_told_apart() -> None:
    turtle = (
        '@prefix o: <http://o.example/> . :a a :T ; :day "1"^^:day , "2"^^o:day ;'
        ' :kind "x"^^:class , "y"^^:node , "z"^^:string , "v" .'
    )
    thing = described(turtle)["org:T"]
    assert line_of("day", thing).endswith('org:day: only "1" or example:day: only "2"')
    kinds = line_of("kind", thing)
    assert "->" not in kinds
    for part in ('org:class: only "x"', 'org:node: only "y"', 'org:string: only "z"', '"v"'):
        assert part in kinds


@pytest.mark.parametrize(
    ("value", "written"),
    read_table(HERE / "written_iris.jsonl"),
)
def test_a_query_can_contain_the_name_of_any_iri(value: str, written: str) -> None:
    assert to_curie(value, {EX: "ex"}) == written
    query = add_missing_prefixes(f"ASK {{ {written} ?p ?o }}", (("ex", EX), ("other", "http://e/")))
    assert query.startswith(f"PREFIX ex: <{EX}>\nASK" if written.startswith("ex:") else "ASK")


def test_terms_are_unquoted_or_in_quotes_or_in_brackets() -> None:
    assert [
        format_value(term)
        for term in (None, Literal(3), Literal("2001-02-03"), Literal('a\n"b"'), iri("a"))
    ] == [*("nothing", "3", "2001-02-03", '"a \\"b\\""', f"<{EX}a>")]
    assert quote_text("word " * 20, 12) == '"word word wo…"'
    assert (short_name(iri("a")), short_name("mailto:a@b")) == ("a", "<mailto:a@b>")
    assert bracket_iri(str(RDF.type)) == f"<{RDF.type}>"
    assert SurveyWriter(
        Survey(0, 0, 0, (ClassSurvey(URIRef("http://e/>x/A"), "A", 1, 1),), 0, ())
    ).prefixes.keys() == {
        "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
        "http://www.w3.org/2000/01/rdf-schema#",
        "http://www.w3.org/2001/XMLSchema#",
    }


def test_the_writer_of_a_survey_is_kept_with_its_texts() -> None:
    survey = survey_graph(films(SHOP))
    kept = writer_of_survey(survey)
    assert writer_of_survey(survey) is kept
    assert kept.group_text(1) is kept.group_text(1) == kept.format_group(kept.groups[1])
    assert writer_of_survey(survey, [iri("name")]) is not kept
    for number in range(MAX_KEPT_WRITERS):
        writer_of_survey(replace(survey, seconds=float(number)))
    assert writer_of_survey(survey) is not kept  # the oldest went
