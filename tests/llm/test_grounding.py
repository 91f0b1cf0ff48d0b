"""``rules`` on a graph that it was not made for: questions about one name, read by its predicates."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import rdflib
from rules_asked import answers
from small import answer_of, films

from kgwb import open_kg
from kgwb.kg import Graph
from kgwb.kg.embeddings import DEFAULT_MODEL, Embeddings
from kgwb.llm.rules.reading import ground_question
from kgwb.llm.rules.words import find_mentions
from kgwb.workbench import Workbench

REWORDED = Path(__file__).parents[2] / "benchmarks" / "metaqa_reworded.jsonl"
EVERY = 4
PREDICATES = {
    "flag": "flag state", "imo": "IMO number", "owner": "owned by", "leads": "leads", "hired": "hired on",
    "phone": "phone", "berth": "berthed at", "maker": "manufacturer", "reach": "outreach", "unit": "unit",
    "value": "value", "until": "valid until", "from": "valid from", "year": "year built",
    "began": "founded", "by": "founder", "signer": "signatory",
    "Vessel": "Vessel", "Person": "Person", "Crane": "Crane", "Port": "Port",
}  # fmt: skip
HARBOUR = """
@prefix : <http://e/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
:polar a :Vessel ; rdfs:label "Polar Carrier" ; :flag :no ; :imo "9578250" ; :owner :firm .
:polar :year 2007 ; :berth :hafen . :hafen a :Port ; rdfs:label "Old Harbour" .
:no rdfs:label "Norway" . :firm rdfs:label "Tarn Shipping" . :ft rdfs:label "foot" .
:ada a :Person ; rdfs:label "Ada Byron" ; :phone "+44 1" ; :hired "2013-03-21"^^xsd:date .
:ada :leads :office . :office rdfs:label "Procurement" .
:crane a :Crane ; rdfs:label "QC-7 Quay Crane" ; :maker :firm ; :reach [ :value 183.5 ; :unit :ft ] .
:paper rdfs:label "CTR-12 Fender repair" ; :from "2020-01-01"^^xsd:date ; :until "2026-04-12"^^xsd:date .
:paper :signer "Jo Frost" . :firm :began "1987"^^xsd:gYear .
:dock :began 1843 ; rdfs:label "New Harbour" ; :by "Ida Moss" .
""" + "".join(f':{name} rdfs:label "{label}" .\n' for name, label in PREDICATES.items())


@pytest.fixture(autouse=True)
def _the_default_embeddings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KGWB_EMBEDDINGS", DEFAULT_MODEL)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("graph") / "harbour.ttl"
    path.write_text(HARBOUR, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def kg(file: Path) -> Graph:
    return open_kg(file)


ANSWERED = {
    "Polar Carrier - which flag?": ["Norway"],
    "Under which flag does the Polar Carrier sail?": ["Norway"],
    "I need the IMO number of the Polar Carrier, please.": ["9578250"],
    "We saw the Polar Carrier today. Any idea whose ship that is? I mean the owner.": [
        "Tarn Shipping"
    ],
    "In what year was the Polar Carrier built?": ["2007"],
    "Who built QC-7?": ["Tarn Shipping"],
    "Who is in charge of Procurement?": ["Ada Byron"],
    "What number do I ring to reach Ada Byron?": ["+44 1"],
    "When does the contract CTR-12 run out?": ["2026-04-12"],
    "How far out does QC-7 reach? With the unit, please.": ["183.5", "foot"],
    "Which vessels are in the Old Harbour?": ["Polar Carrier"],
    "Does anyone know who owns the Polar Carrier?": ["Tarn Shipping"],
    "Who is the signatory of CTR-12?": ["Jo Frost"],
    "When was Tarn Shipping founded?": ["1987"],
    "Who founded the New Harbour?": ["Ida Moss"],
    "When was the New Harbour founded?": ["1843"],
}
UNANSWERABLE = (
    "Who is captain of the Polar Carrier?",
    "What is the call sign of the Polar Carrier?",
    "How many crew does the Polar Carrier sail with?",
    "When is Ada Byron's birthday?",
    "What pay grade is Ada Byron on?",
    "What was the weather like when the Polar Carrier was built?",
    "What is the favourite food of the owner of the Polar Carrier?",
    "When was the owner of the Polar Carrier born?",
    "Who manages the Old Harbour?",
    "Who founded Tarn Shipping?",
    "Who was the Tarn Shipping company founded by?",
)


@pytest.mark.parametrize(("question", "values"), ANSWERED.items())
def test_a_question_is_read_by_what_the_graph_says(
    question: str, values: list[str], kg: Graph
) -> None:
    assert list(answer_of(Workbench(kg, "rules").ask(question)).labels) == values


@pytest.mark.parametrize("question", UNANSWERABLE)
@pytest.mark.parametrize("system", ["chatty_kg", "dog", "triad"])
def test_a_question_that_the_graph_cannot_answer_has_no_answer(
    question: str, system: str, kg: Graph
) -> None:
    answer = answer_of(Workbench(kg, "rules", system=system).ask(question))
    assert not answer.values
    gave_up = "gave up in hop 2" if system == "dog" else "not in this graph"
    assert answer.reason.startswith(("not in this graph", gave_up))


def test_without_a_graph_the_grammar_reads_alone() -> None:
    assert ground_question("Who directed Echo?", None, Embeddings("lexical")).facts


@pytest.mark.long
@pytest.mark.parametrize("kept", ["held back a", "held back b"])
def test_reworded_questions_over_a_graph_it_was_not_made_on(kept: str, metaqa: Path) -> None:
    """Ask one in EVERY questions of each held-back set; `kgwb bench` asks all 600."""
    lines = metaqa.with_name("metaqa_dev.jsonl").read_text(encoding="utf-8").splitlines()
    gold = {entry["id"]: entry["answers"] for entry in map(json.loads, lines)}
    rows = map(json.loads, REWORDED.read_text("utf-8").splitlines())
    asked = [row for row in rows if row["set"] == kept][::EVERY]
    bench = Workbench(open_kg(metaqa), "rules")
    right = 0
    for row in asked:
        bench.new_dialogue()
        right += sorted(answers(bench, row["question"])) == sorted(gold[row["id"]])
    assert right >= 0.6 * len(asked) > 10  # it abstains where a word is unaccounted for


def test_the_shorter_of_two_names_may_end_a_question() -> None:
    text = """@prefix : <http://e/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
    :a rdfs:label "old bridge" . :b rdfs:label "ss" ; :near :a . :near rdfs:label "near" ."""
    kg = open_kg(rdflib.Graph().parse(data=text))
    found = find_mentions("what is near the old bridge, ss", kg)
    assert "old bridge" in [mention.text for mention in found]


SIGNS = """
@prefix : <http://e/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:c rdfs:label "C" . :cpp rdfs:label "C++" . :sport rdfs:label "Man's Favorite Sport?" .
:up rdfs:label "Up" .
"""


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("Who designed C++?", "C++"),
        ("Who designed C?", "C"),
        ("Who directed Man's Favorite Sport?", "Man's Favorite Sport?"),
        ("What genre does Man's Favorite Sport? fall under", "Man's Favorite Sport?"),
        ("Who directed Up?", "Up"),
        ("Who directed Up, and when?", "Up"),
    ],
)
def test_the_signs_after_a_name_belong_to_it_if_it_is_a_label_with_them(
    question: str, name: str
) -> None:
    assert [mention.text for mention in find_mentions(question, films(SIGNS))] == [name]


STATIONS = """
@prefix : <http://e/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:anna a :Person ; rdfs:label 'Anna Weber' . :bob a :Person ; rdfs:label 'Bob Stone' .
:operator rdfs:label 'operator' .
"""


def test_what_an_unclear_name_may_mean_is_listed_in_short(tmp_path: Path) -> None:
    lines = []
    for number in range(30):
        label = f"Station {number} of the {'very ' * 99} long name"
        lines.append(f":s{number} a :Station ; rdfs:label '{label}' ; :operator :anna .")
    path = tmp_path / "stations.ttl"
    path.write_text(STATIONS + "\n".join(lines))
    run = Workbench(open_kg(path), "rules").ask("Who is the operator of Station?")
    assert run.answer is not None
    assert "“Station” may be Station 0 of the" in run.answer.reason
    assert len(run.answer.reason) < 500


@pytest.mark.parametrize(
    ("labels", "is_unclear"),
    [
        (("Old Station One", "Old Station Two"), True),
        (("Harbour Station Hall", "Bus Stop"), False),
        (("Harbour Station Hall", "Another Station Of The Second Line"), False),  # less like it
    ],
)
def test_of_labels_that_are_equally_like_a_name_none_is_chosen(
    tmp_path: Path, labels: tuple[str, str], is_unclear: bool
) -> None:
    path = tmp_path / "stations.ttl"
    first, second = labels
    path.write_text(
        f"{STATIONS}:s1 a :Stop ; rdfs:label '{first}' ; :operator :anna .\n"
        f":s2 a :Stop ; rdfs:label '{second}' ; :operator :bob ."
    )
    run = Workbench(open_kg(path), "rules").ask("Who is the operator of Station?")
    assert run.answer is not None
    assert (run.answer.labels == ()) == is_unclear
    assert all(label in run.answer.reason for label in labels) == is_unclear
