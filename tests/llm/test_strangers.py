"""Questions about graphs that ``rules`` was not made on; ``strangers_asked.py`` measures them in full."""

import pytest
import rdflib
from strangers_asked import FOLDER, ask_half, count

from kgwb import Workbench, open_kg
from kgwb.run.answers import CANNOT_EXPRESS


@pytest.fixture(autouse=True)
def default_embeddings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KGWB_EMBEDDINGS")


@pytest.mark.parametrize(
    ("graph", "question", "labels"),
    [
        ("railway", "Which stations did Edmund Hale design?", ["Aldermoor Junction"]),
        ("library", "Which maps are kept in the South Room?", ["Map of the Fens"]),
        ("library", "How many books are kept in the South Room?", ["1"]),
        ("railway", "Which engineers were born in Pell Bay?", []),
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


@pytest.mark.long
@pytest.mark.parametrize("half", ["tune", "sealed", "newcomers/tune", "newcomers/sealed"])
def test_most_answers_to_the_questions_for_tuning_are_right(half: str) -> None:
    figures = count(list(ask_half(half)))
    assert figures.precision >= 0.95
    assert figures.doubted_wrong <= 2
    assert figures.coverage >= 0.9


@pytest.mark.long
@pytest.mark.parametrize(
    ("half", "doubted_wrong", "coverage"),
    [
        ("newcomers/sealed2", 0, 0.9),
        ("newcomers/sealed3", 3, 0.8),
        ("newcomers/sealed4", 4, 0.84),
        ("newcomers/sealed5", 7, 0.79),
        ("newcomers/sealed6", 5, 0.75),
        ("newcomers/sealed7", 8, 0.7),
        ("newcomers/sealed8", 5, 0.77),
        ("newcomers/sealed9", 9, 0.76),
        ("newcomers/sealed10", 7, 0.71),
        ("newcomers/sealed11", 3, 0.89),
        ("newcomers/sealed12", 2, 0.91),
        ("newcomers/tune2", 3, 0.85),
        ("newcomers/tune3", 1, 0.85),
    ],
)
def test_of_further_questions_most_are_answered_and_rightly(
    half: str, doubted_wrong: int, coverage: float
) -> None:
    figures = count(list(ask_half(half)))
    assert figures.precision >= 0.97
    assert figures.doubted_wrong <= doubted_wrong
    assert figures.coverage >= coverage


HUTS = FOLDER.parent / "newcomers" / "huts.ttl"
ANSWERED = {
    "Which mountain huts are in Valais?": ["Hörnli Hut", "Monte Rosa Hut"],
    "How many huts are located in Bern?": ["2"],
    "Which peaks are in Bern?": ["Eiger"],
    "How high is the Matterhorn?": ["4478"],
    "Where is the Matterhorn located?": ["Valais"],
    "Who is the warden of the Mittellegi Hut?": ["Heidi Bohren"],
    "When was the Mittellegi Hut built?": ["1924"],
    "Which canton is the Eiger in?": ["Bern"],
    "Is the Eiger in Valais?": ["false"],
}
REFUSED = {
    "Wie hoch ist der Eiger?": "not in English",
    "Where was Charles Barrington born?": "birth place",
    "Who built the Mittellegi Hut?": "a person",
    "When was the first ascent of the Matterhorn?": "a time",
    "Was Charles Barrington born in London?": "Charles Barrington",
    "Who was the second warden of the Hörnli Hut?": "second",
    "Which peaks are higher than the Eiger?": "than",
    "Why is the Eiger in Bern?": "why",
    "Who is the warden of the Hörnli Hut and where was she born?": "two questions",
    "What is the elevation of the Hut?": "Monte Rosa Hut",
}
UNANSWERED = (
    "Who is the warden of the Monte Rosa Hut?",
    "How old is Edward Whymper?",
    "How much does a night in the Monte Rosa Hut cost?",
    "Which persons are in Bern?",
    "What is the elevation of the roof of the Hörnli Hut?",
)


@pytest.mark.parametrize(("question", "labels"), ANSWERED.items())
def test_a_newcomers_look_up_is_answered(question: str, labels: list[str]) -> None:
    answer = Workbench(open_kg(HUTS), "rules").ask(question).answer
    assert answer is not None
    assert sorted(answer.labels) == labels


@pytest.mark.parametrize(("question", "named"), REFUSED.items())
def test_a_question_that_was_not_understood_is_not_answered_and_the_reason_names_why(
    question: str, named: str
) -> None:
    answer = Workbench(open_kg(HUTS), "rules").ask(question).answer
    assert answer is not None
    assert not answer.values
    assert answer.reason.startswith(CANNOT_EXPRESS)
    assert named in answer.reason


@pytest.mark.parametrize("question", UNANSWERED)
def test_a_question_for_what_the_graph_lacks_is_not_answered(question: str) -> None:
    answer = Workbench(open_kg(HUTS), "rules").ask(question).answer
    assert answer is not None
    assert not answer.values


BREWERY = """
@prefix : <http://brewery.example/> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
:a a :Ale ; :title "Harvest Gold" ; :brewedBy :quint ; :bitterness [ :value 38 ; :unit "IBU" ] ;
  :soldSince "2014"^^xsd:gYear .
:b a :Stout ; :title "Black Otter" ; :owner :quint ; :maltMaker :fell ; :bottledOn "Friday" .
:quint a :Brewer ; :title "Nora Quint" ; :address [ :street "Mill Lane" ; :city "Ghent" ] .
:fell :title "Fell Maltings" . :hop a :Hop ; :title "bramling hop" ; :pickedIn "September" .
:line a :Line ; :title "Coast Line" ; :operator :rail ; :operatedFrom :town .
:rail :title "Northrail" . :town a :Town ; :title "Skel" .
"""
NAMED = {
    "Who brewed Harvest Gold?": ["Nora Quint"],
    "How bitter is Harvest Gold?": ["38 IBU"],
    "What is the unit of the bitterness of Harvest Gold?": ["IBU"],
    "In which city is Nora Quint?": ["Ghent"],
    "In which town is Nora Quint?": ["Ghent"],
    "Since when has Harvest Gold been sold?": ["2014"],
    "Who made the malt of Black Otter?": ["Fell Maltings"],
    "Which stouts belong to Nora Quint?": ["Black Otter"],
    "When is Black Otter bottled?": ["Friday"],
    "When do you pick bramling hops?": ["September"],
    "Which company is the operator of the Coast Line?": ["Northrail"],
    "When was Harvest Gold brewed?": [],
    "Who wrote Harvest Gold?": [],
}


@pytest.mark.parametrize(("question", "labels"), NAMED.items())
def test_a_graph_with_names_of_its_own_is_asked_in_many_forms(
    question: str, labels: list[str]
) -> None:
    graph = rdflib.Graph().parse(data=BREWERY, format="turtle")
    answer = Workbench(open_kg(graph), "rules").ask(question).answer
    assert answer is not None
    assert sorted(answer.labels) == labels


@pytest.mark.parametrize(
    ("question", "labels"),
    [
        ("Which museums are in Ghent?", ["Mill Museum"]),  # and a university that has no class
        ("Who made the Golden Pendulum?", ["Jan Huys"]),
        ("What is the Golden Pendulum made of?", ["brass"]),
        ("How heavy is the Golden Pendulum?", ["4.2"]),
    ],
)
def test_a_word_near_another_does_not_stand_for_it(question: str, labels: list[str]) -> None:
    answer = Workbench(open_kg(HUTS.with_name("museums.ttl")), "rules").ask(question).answer
    assert answer is not None
    assert list(answer.labels) == labels
