"""What ``rules`` is asked of the members of a class: all, some by a value or a comparison, and the most of all."""

from pathlib import Path

import pytest
import rdflib
from rules_asked import ask as ask_in_dialogue

from kgwb import Workbench, open_kg
from kgwb.kg import Graph
from kgwb.run.answers import Answer

FOLDER = Path(__file__).parents[1] / "newcomers" / "kinds"
ALDER, MILL, QUAY = "Alder Bridge", "Mill Bridge", "Quay Bridge"
Rows = dict[str, list[str]]


@pytest.fixture(autouse=True)
def default_embeddings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KGWB_EMBEDDINGS")


@pytest.fixture(scope="module")
def bridges() -> Graph:
    return open_kg(FOLDER / "bridges.ttl")


@pytest.fixture(scope="module")
def satellites() -> Graph:
    return open_kg(FOLDER / "satellites.ttl")


def ask(kg: Graph, *questions: str) -> Answer:
    """Return the answer to the last question of a dialogue; one without values if it is not read."""
    bench = Workbench(kg, "rules")
    return [ask_in_dialogue(bench, question) for question in questions][-1]


BRIDGES: Rows = {
    # all members
    "How many bridges are there?": ["3"],
    "Which road bridges are there?": [ALDER, MILL, QUAY],  # a swing bridge is a road bridge
    "List all swing bridges.": [QUAY],
    "Which of the bridges are swing bridges?": [QUAY],
    "bridges": [ALDER, MILL, QUAY],
    "How many toll booths do we have on record?": ["2"],
    "Show me every river": ["Great Ousel", "Sorrow Beck"],
    "List each Straßenbrücke in the graph": [ALDER, MILL, QUAY],
    "Are there any swing bridges?": ["true"],
    # a value
    "Which bridges are under repair?": [MILL, QUAY],
    "How many bridges are under repair?": ["2"],
    "Which bridges have lighting?": [ALDER, QUAY],
    "Which bridges do not have lighting?": [MILL],
    "Which bridges are not under repair?": [ALDER],
    "Which bridges have a surface of tarmac?": [MILL, QUAY],
    "Which bridges with lighting are under repair?": [QUAY],
    "Which bridges are under repair and not lit?": [MILL],
    # a comparison
    "Which bridges are longer than 100 metres?": [ALDER, QUAY],
    "Which bridges have a length of at most 85.5 m?": [MILL],
    "Which bridges have more than 2 spans?": [ALDER, QUAY],
    "Which bridges have a toll below 2 euros?": [MILL],
    "Which bridges opened before 1980?": [ALDER, MILL],
    "Which bridges were opened after 1978?": [QUAY],
    "Which bridges opened since 1978?": [MILL, QUAY],
    "Which bridges opened in 1978?": [MILL],
    "Which bridges opened between 1930 and 1978?": [ALDER, MILL],
    "Which bridges opened before 1978-11-20?": [ALDER],
    "Which bridges are older than 1950?": [ALDER],
    "Which bridges are under repair and longer than 100 metres?": [QUAY],
    # the most of all
    "What is the longest bridge?": [ALDER, QUAY],
    "the longest swing bridge": [QUAY],
    "Which bridge has the fewest spans?": [MILL],
    "Which bridge is the oldest?": [ALDER],
    "Who is the youngest engineer?": ["Omar Haddad"],
    # with a name
    "What is the oldest bridge designed by Omar Haddad?": [MILL],
    "Which bridges designed by Omar Haddad are longer than 100 metres?": [QUAY],
}
SATELLITES: Rows = {
    "How many satellites are there?": ["3"],
    "Which satellites are operational?": ["Aurel 1", "Courier"],
    "Which satellites are in safe mode?": ["Aurel 2", "Courier"],
    "Is there a satellite in safe mode?": ["true"],
    "Which satellites were launched before 2009?": ["Aurel 1", "Aurel 2"],
    "the lightest weather satellite": ["Aurel 1"],
    "Which satellite has the highest orbit?": ["Courier"],
    "Which satellites have a mass of at least 710 kg?": ["Aurel 2", "Courier"],
    "Which agency has the most staff?": ["Meteo Union"],
    "newest satellite": ["Courier"],
}


@pytest.mark.parametrize(
    ("graph", "question", "labels"),
    [("bridges", *row) for row in BRIDGES.items()]
    + [("satellites", *row) for row in SATELLITES.items()],
)
def test_members_are_found_in_plain(
    graph: str, question: str, labels: list[str], request: pytest.FixtureRequest
) -> None:
    answer = ask(request.getfixturevalue(graph), question)
    assert sorted(answer.labels) == labels
    assert not answer.doubt
    assert answer.support


DOUBTED = [
    ("bridges", "Which bridges were inspected before 2022?", [ALDER, QUAY], "last inspected on"),
    ("bridges", "Which bridges cost less than 2 euros?", [MILL], "toll in euros"),
    ("bridges", "Which bridges have the lowest toll?", [MILL], "1 of 3"),
    ("satellites", "What's the heaviest satellite we have?", ["Courier"], "left out"),
    ("satellites", "Which spacecraft has been up there the longest?", ["Aurel 1"], "spacecraft"),
    ("satellites", "Which agency employs the fewest people?", ["Lanternet"], "staff"),
]


@pytest.mark.parametrize(("graph", "question", "labels", "named"), DOUBTED)
def test_what_is_only_like_a_predicate_or_a_class_and_missing_values_are_doubts(
    graph: str, question: str, labels: list[str], named: str, request: pytest.FixtureRequest
) -> None:
    answer = ask(request.getfixturevalue(graph), question)
    assert sorted(answer.labels) == labels
    assert named in answer.doubt


NOT_ANSWERED = [
    "Are there any tunnels?",
    "What is a bridge?",
    "What are bridges?",
    "Which bridge?",
    "Who is the engineer?",
    "Where are the bridges?",
    "How long are the bridges?",
    "How many bridges does each engineer have?",
    "List three bridges.",
    "Which bridges and rivers are there?",
    "Which bridges cross the same river?",
    "Which bridges were designed?",
    "What is the length of the longest bridge?",
    "What is the average length of the bridges?",
    "Which engineer designed the most bridges?",
    "Which is the biggest bridge?",
    "Which bridge has the highest weight limit?",  # texts do not compare
    "Which bridges are longer than 100 feet?",  # another unit
    "Which bridges are not longer than the Mill Bridge?",
    "Which bridges were closed before 1990?",  # a rival of opening
    "Which bridges opened before 1980 and after 1970?",
    "Which engineers that taught Lena Fors were born after 1930?",  # it is the other way round
    "Which bridges painted by Omar Haddad are longer than 50 metres?",
]


@pytest.mark.parametrize("question", NOT_ANSWERED)
def test_another_question_about_members_is_not_answered(bridges: Graph, question: str) -> None:
    answer = ask(bridges, question)
    assert not answer.values, answer.doubt


DIALOGUES = {
    ("Who designed the Alder Bridge?", "How many bridges are under repair?"): ["2"],
    ("Which bridges did Omar Haddad design?", "Which of them is the oldest?"): [MILL],
    ("How many bridges are under repair?", "Which of them is the longest?"): [QUAY],
    ("Which bridges are under repair?", "Who designed them?"): ["Omar Haddad"],
}


@pytest.mark.parametrize(("questions", "labels"), DIALOGUES.items())
def test_a_question_about_members_stands_alone_in_a_dialogue(
    bridges: Graph, questions: tuple[str, ...], labels: list[str]
) -> None:
    assert sorted(ask(bridges, *questions).labels) == labels


LAMPS = """@prefix : <http://e.example/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:Lamp rdfs:label "lamp" . :priceText rdfs:label "price" .
:a a :Lamp ; rdfs:label "Alba" ; :on true ; :wanted false ; :price 5 ; :priceText "5 EUR" .
:b a :Lamp ; rdfs:label "Boro" ; :on false ; :wanted true ; :price 7 ; :priceText "7 EUR" ."""
LAMPS_ASKED: Rows = {
    "Which lamps are on?": ["Alba"],  # said by a word without a content of its own
    "Which lamps are wanted?": ["Boro"],
    "What is the dearest thing on our shelves?": ["Boro"],  # two predicates are called "price"
    "?! and is Alba": [],
}


@pytest.mark.parametrize(("question", "labels"), LAMPS_ASKED.items())
def test_names_that_say_little_are_read_without_an_error(question: str, labels: list[str]) -> None:
    lamps = open_kg(rdflib.Graph().parse(data=LAMPS))
    assert list(ask(lamps, question).labels) == labels


def test_a_class_that_is_a_name_too_is_a_doubt() -> None:
    text = """@prefix : <http://e.example/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
    :Plum rdfs:label "plum" . :a a :Plum ; rdfs:label "Opal" . :c a :Colour ; rdfs:label "plums" ."""
    answer = ask(open_kg(rdflib.Graph().parse(data=text)), "How many plums are there?")
    assert answer.labels == ("1",)
    assert answer.doubt


@pytest.mark.parametrize(
    ("predicate", "is_doubted"),
    [("maker", True), ("owner", True), ("location", False), ("storedIn", False), ("city", False)],
)
def test_that_a_predicate_leads_to_a_place_is_said_by_its_name_or_is_a_doubt(
    predicate: str, is_doubted: bool
) -> None:
    text = f"""@prefix : <http://e.example/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
    :a rdfs:label "Alba" ; :{predicate} :o ; :price 5 . :o a :Company ; rdfs:label "Ott" ."""
    answer = ask(open_kg(rdflib.Graph().parse(data=text)), "Where is Alba?")
    assert answer.labels == ("Ott",)
    assert bool(answer.doubt) == is_doubted
