"""How ``rules`` reads a question with a graph: words, values, predicates, what is not understood."""

from __future__ import annotations

import gc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from weakref import WeakSet

import pytest
from rdflib import BNode, Literal, URIRef
from small import films
from tables import read_table

from kgwb.kg import Graph
from kgwb.kg.embeddings import Embeddings
from kgwb.llm.rules.grammar import IS_A_RELATION
from kgwb.llm.rules.predicates import asked_kind, find_similar_predicates, kinds_of_value
from kgwb.llm.rules.reading import find_unread, ground_question
from kgwb.llm.rules.words import (
    MAX_KEPT,
    are_rivals,
    find_mentions,
    kept_by_graph,
    looks_english,
    singularize,
    stem,
)
from kgwb.systems.dog.rules import choose_relation

LEXICAL = Embeddings("lexical")
BOATS = films("""
@prefix : <http://e/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:a a :Boat ; rdfs:label "Sea Otter" ; :crew 5 ; :captain :j ; :refit "Friday" ; :skipper :z .
:z rdfs:label "Tarn" . :skipper rdfs:label "skipper" .
:b a :Boat ; rdfs:label "Sea Eagle" . :c a :Boat ; rdfs:label "River Eagle" .
:j a :Person ; rdfs:label "Jo Frost" ; :born "Hull" ; :motto "sail on" .
:k a :Person ; rdfs:label "Bo Frost" . :q rdfs:label "Queen of the Sound" . :o rdfs:label "otter" .
:poet rdfs:label "poet" .
:captain rdfs:label "captain" . :refit rdfs:label "refitted on" . :crew rdfs:label "crew size" .
:born rdfs:label "place of birth" . :motto rdfs:label "motto" .
:Boat rdfs:label "boat" . :Person rdfs:label "person" .
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
:s1 a :Street ; rdfs:label "Same" ; skos:altLabel "Old Blue Path North" ; :length 1 .
:s2 a :Street ; rdfs:label "Same" ; skos:altLabel "New Blue Path South" ; :length 2 .
:r1 a :Street ; rdfs:label "Ash Street" ; skos:altLabel "Old Rose Way North" ; :length 3 .
:r2 a :Street ; rdfs:label "Oak Street" ; skos:altLabel "New Rose Way South" ; :length 4 .
""")


@pytest.mark.parametrize(
    ("word", "singular", "stemmed"), read_table(Path(__file__).with_name("stems.jsonl"))
)
def test_a_word_has_a_singular_and_a_stem(word: str, singular: str, stemmed: str) -> None:
    assert (singularize(word), stem(word)) == (singular, stemmed)


@pytest.mark.parametrize(
    ("first", "second", "are"),
    [
        ("opening", "closed", True),
        ("opened", "opening", False),
        ("mother", "film", False),
        ("mother", "opening", False),
    ],
)
def test_opposites_are_told_from_forms_of_one_word(first: str, second: str, are: bool) -> None:
    assert are_rivals(first, second) == are_rivals(second, first) == are


@pytest.mark.parametrize(
    ("text", "is_english"),
    [
        ("Who wrote La La Land?", True), ("Wer schrieb das Buch?", False), ("La La Land", False),
        ("Zürich", False), ("Zurich?", True),
    ],
)  # fmt: skip
def test_a_language_is_told_by_common_words(text: str, is_english: bool) -> None:
    assert looks_english(text) == is_english


@pytest.mark.parametrize(
    ("value", "kinds"),
    [
        (URIRef("http://e/a"), "person place"), (BNode("b"), "person place"),
        (Literal("1987"), "number time"), (Literal("2013-03-21"), "number time"),
        (Literal("3 May 1987 at noon"), "number time"), (Literal("12:30"), "number time"),
        (Literal(1987), "number time"), (Literal("12"), "number"), (Literal(5), "number"),
        (Literal("Room 5"), "number person place"), (Literal("Jo Frost"), "person place"),
        (Literal("jo"), "place"), (Literal("Friday"), "time"), (Literal("spring"), "time"),
        (Literal("true"), ""), (Literal("Mayor"), "person place"),
    ],
)  # fmt: skip
def test_a_value_can_be_of_several_kinds(value: URIRef | BNode | Literal, kinds: str) -> None:
    assert sorted(kinds_of_value(value)) == [f"a {kind}" for kind in kinds.split()]


@pytest.mark.parametrize(
    ("question", "kind"), read_table(Path(__file__).with_name("asked_kinds.jsonl"))
)
def test_a_question_asks_for_a_kind_of_value(question: str, kind: str) -> None:
    assert asked_kind(question.split()) == kind


@pytest.mark.parametrize(
    ("relation", "names", "similar"),
    [
        ("director", "Director, director of photography", "Director"),
        ("directors", "director, directed by, editor", "director"),
        ("p1", "p18, p1 of, p", "p1 of"),
        ("part 1", "part 2, part", "part"),
        ("a, b", "a, c, b", "a, b"),
        ("birth date", "burial date, birth day, birth place, born by, date", "birth day, date"),
        ("genre", "gender, genres, genre type", "genres, genre type"),
        (IS_A_RELATION, "occupation, position, held by, type", "occupation, position, type"),
        ("genre", "captain", ""),
    ],
)
def test_predicates_are_like_a_relation(relation: str, names: str, similar: str) -> None:
    found = find_similar_predicates(relation, names.split(", "), LEXICAL)
    assert ", ".join(found) == similar


@pytest.mark.parametrize(
    ("question", "names"), read_table(Path(__file__).with_name("found_names.jsonl"))
)
def test_names_are_found_in_a_question(question: str, names: str) -> None:
    assert ", ".join(mention.text for mention in find_mentions(question, BOATS)) == names


@pytest.mark.parametrize(
    ("question", "fact", "problem"),
    [
        ("Who is the captain of Sea Otter?", "Sea Otter | captain | ?answer", ""),
        ("Who is the captain of Otter?", "Otter | captain | ?answer", ""),
        ("Who is captain of the boat Sea Otter?", "Sea Otter | captain | ?answer", ""),
        ("What is the direct captain of Sea Otter?", "Sea Otter | direct captain | ?answer", ""),
        ("What is the motto of Jo Frost?", "Jo Frost | motto | ?answer", ""),
        ("Where was Jo Frost born?", "Jo Frost | birth place | ?answer", ""),
        ("When was Sea Otter refitted?", "Sea Otter | refitted date | ?answer", ""),
        ("Who is the captain of the Sea?", "", "Sea Eagle or Sea Otter"),
        ("Where was Frost born?", "", "Bo Frost or Jo Frost"),
        ("What is the length of Blue Path?", "", "New Blue Path South or Old Blue Path North"),
        ("What is the length of Rose Way?", "", "New Rose Way South or Old Rose Way North"),
        ("Where was [Frost] born?", "Frost | birth place | ?answer", ""),
        ("Wer ist der Kapitän von Sea Otter?", "", "English"),
        ("Why was Sea Otter refitted?", "", "why"),
        ("Was Sea Otter refitted after Sea Eagle?", "", "after"),
        ("Who is the captain of Sea Otter and who built it?", "", "two questions"),
        ("How is Sea Otter built?", "", "manner"),
        ("What is it?", "", "no name"),
        ("Who is the oldest captain of Sea Otter?", "", "oldest"),
        ("Who is the better captain of Sea Otter?", "", "better"),
        ("Where was Sea Otter refitted?", "", "a place"),
        ("Who refitted Sea Otter?", "", "a person"),
        ("Who is the motto of Jo Frost?", "", "a person"),
        ("When was Jo Frost born?", "", "birth date"),
        ("Did Jo Frost refit Sea Eagle?", "", "does not say of Jo Frost"),
        ("Who is the skipper of Sea Otter?", "Sea Otter | skipper | ?answer", ""),
        ("Who is the crew size of Sea Otter?", "Sea Otter | who | ?answer", ""),
        ("How many crew does Sea Otter have?", "Sea Otter | crew | ?answer", ""),
        ("What is the Hull captain of Sea Otter?", "", "hull"),
        ("On Friday, who is the captain of Sea Otter?", "", "friday"),
        ("What is the Friday Sea Otter captain?", "Sea Otter | captain | ?answer", ""),
        ("Was Jo Frost a poet?", f"Jo Frost | {IS_A_RELATION} | poet", ""),
        ("Who is the most captain of Sea Otter?", "", "most"),
        ("What is the price of Sea Otter?", "Sea Otter | price | ?answer", ""),
    ],
)
def test_a_question_is_read_or_the_problem_is_named(question: str, fact: str, problem: str) -> None:
    problems = find_unread(question, BOATS, LEXICAL).problems
    if problem:
        assert problem in " ".join(problems)
    else:
        assert problems == []
        assert [" | ".join(each) for each in ground_question(question, BOATS, LEXICAL).facts] == [
            fact
        ]


@pytest.mark.parametrize(
    ("question", "relation"),
    [
        ("Who has [Jo Frost] as captain?", "~captain"),
        ("Who has [Jo Frost] as captain in Hull?", ""),
    ],
)
def test_a_walk_goes_on_from_things_where_a_person_is_asked_for(
    question: str, relation: str
) -> None:
    reply = choose_relation(question, "Jo Frost", ["captain", "~captain"], BOATS, LEXICAL)
    assert reply["relation"] == relation
    assert find_unread(question, BOATS, LEXICAL).problems


def test_the_last_findings_of_a_graph_are_kept_and_those_of_another_are_not() -> None:
    found: list[int] = []

    @kept_by_graph
    def find(_: Graph, number: int) -> int:
        found.append(number)
        return number

    first, second = films(), films()
    for number in (*range(MAX_KEPT + 1), MAX_KEPT, 1):
        assert find(first, number) == number
    assert len(found) == MAX_KEPT + 1
    find(first, 0)
    find(second, MAX_KEPT)
    assert found[MAX_KEPT + 1 :] == [0, MAX_KEPT]


def test_a_slow_thread_leaves_what_another_found_meanwhile() -> None:
    found: list[str] = []
    has_begun, may_end = Event(), Event()

    @kept_by_graph
    def find(_: Graph, name: str) -> str:
        found.append(name)
        if name == "slow":
            has_begun.set()
            may_end.wait(10)
        return name

    kg = films()
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(find, kg, "slow")
        has_begun.wait(10)
        find(kg, "fast")
        may_end.set()
        slow.result()
    find(kg, "slow")
    find(kg, "fast")
    assert found == ["slow", "fast"]


def test_embeddings_are_dropped_though_the_graph_stays() -> None:
    used: WeakSet[Embeddings] = WeakSet()
    for _ in range(5):
        embeddings = Embeddings("lexical")
        used.add(embeddings)
        ground_question("Who is the captain of Sea Otter?", BOATS, embeddings)
    del embeddings
    gc.collect()
    assert not used
