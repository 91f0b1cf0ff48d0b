"""The question sets on Freebase, in the form in which they were published, and as DoG has them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kgwb.bench import load_questions, save_questions
from kgwb.bench.questions import BenchQuestion
from kgwb.errors import InputError

NS = "http://rdf.freebase.com/ns/"
QUERY = (
    "PREFIX ns: <http://rdf.freebase.com/ns/>\nSELECT DISTINCT ?x\n"
    "WHERE { ns:m.03_r3 ns:location.country.languages_spoken ?x . }"
)

WEBQSP_ENTRY: dict[str, Any] = {
    "QuestionId": "WebQTest-0",
    "RawQuestion": "what does jamaican people speak?",
    "ProcessedQuestion": "what does jamaican people speak",
    "Parses": [
        {
            "ParseId": "WebQTest-0.P0",
            "AnnotatorId": 0,
            "AnnotatorComment": {
                "ParseQuality": "Complete",
                "QuestionQuality": "Good",
                "Confidence": "Normal",
                "FreeFormComment": "First-round parse verification",
            },
            "Sparql": QUERY,
            "PotentialTopicEntityMention": "jamaican",
            "TopicEntityName": "Jamaica",
            "TopicEntityMid": "m.03_r3",
            "InferentialChain": ["location.country.languages_spoken"],
            "Constraints": [],
            "Time": None,
            "Order": None,
            "Answers": [
                {
                    "AnswerType": "Entity",
                    "AnswerArgument": "m.01428y",
                    "EntityName": "Jamaican English",
                },
                {
                    "AnswerType": "Entity",
                    "AnswerArgument": "m.04ygk0",
                    "EntityName": "Jamaican Creole English Language",
                },
            ],
        },
        {
            "ParseId": "WebQTest-0.P1",
            "Sparql": "SELECT 1",
            "TopicEntityMid": "m.03_r3",
            "InferentialChain": None,
            "Answers": [
                {"AnswerType": "Value", "AnswerArgument": "1962-08-06", "EntityName": None},
                {
                    "AnswerType": "Entity",
                    "AnswerArgument": "m.01428y",
                    "EntityName": "Jamaican English",
                },
            ],
        },
    ],
}
WEBQSP = {"Version": "1.0", "FreebaseVersion": "2015-08-09", "Questions": [WEBQSP_ENTRY]}
CWQ_ENTRY = {
    "ID": "WebQTest-832_c334509bb5e02cacae1ba2e80c176499",
    "answers": [
        {"aliases": ["2014 Fall Classic"], "answer": "2014 World Series", "answer_id": "m.0117q3yz"}
    ],
    "composition_answer": "san francisco giants",
    "compositionality_type": "composition",
    "created": "2018-02-13T04:12:57",
    "machine_question": "when is the last time the the team has a team moscot named Lou Seal won the world series",
    "question": "Lou Seal is the mascot for the team that last won the World Series when?",
    "sparql": (
        "PREFIX ns: <http://rdf.freebase.com/ns/>\nSELECT DISTINCT ?x\nWHERE {\n"
        "?c ns:sports.sports_team.team_mascot ns:m.03_dwn . \n"
        "?c ns:sports.sports_team.championships ?x .\n}\nLIMIT 1\n"
    ),
    "webqsp_ID": "WebQTest-832",
    "webqsp_question": "when is the last time the giants won the world series",
}
WEB_QUESTIONS_ENTRY = {
    "url": "http://www.freebase.com/view/en/justin_bieber",
    "targetValue": '(list (description "Jazmyn Bieber") (description "Jaxon \\"JB\\" Bieber") (description Padme))',
    "utterance": "what is the name of justin bieber brother?",
}
GRAILQA_ENTRY = {
    "qid": 2101960008000,
    "question": "which play is produced by the illusion?",
    "answer": [
        {
            "answer_type": "Entity",
            "answer_argument": "m.0yrltsn",
            "entity_name": "The Illusion",
        },
        {"answer_type": "Value", "answer_argument": "1.5"},
    ],
    "function": "none",
    "num_node": 2,
    "num_edge": 1,
    "graph_query": {
        "nodes": [
            {
                "nid": 0,
                "node_type": "class",
                "id": "theater.play",
                "class": "theater.play",
                "friendly_name": "Play",
                "question_node": 1,
                "function": "none",
            },
            {
                "nid": 1,
                "node_type": "entity",
                "id": "m.0yrlqjm",
                "class": "theater.theater_production",
                "friendly_name": "The Illusion",
                "question_node": 0,
                "function": "none",
            },
        ],
        "edges": [
            {
                "start": 0,
                "end": 1,
                "relation": "theater.play.productions",
                "friendly_name": "Productions",
            }
        ],
    },
    "sparql_query": (
        "PREFIX : <http://rdf.freebase.com/ns/> \nSELECT (?x0 AS ?value) WHERE {\nSELECT DISTINCT ?x0  "
        "WHERE { \n?x0 :type.object.type :theater.play . \nVALUES ?x1 { :m.0yrlqjm } \n"
        "?x0 :theater.play.productions ?x1 . \n}\n}"
    ),
    "domains": ["theater"],
    "level": "i.i.d.",
    "s_expression": "(AND theater.play (JOIN theater.play.productions m.0yrlqjm))",
}


def without(entry: dict[str, Any], *names: str, **added: Any) -> dict[str, Any]:
    """The entry without some of its fields, and with others."""
    return {name: value for name, value in entry.items() if name not in names} | added


def read(folder: Path, content: Any) -> list[BenchQuestion]:
    """The questions of a file whose name says nothing; they are the same after saving."""
    path = folder / "file"
    path.write_text(json.dumps(content), encoding="utf-8")
    questions = load_questions(path)
    save_questions(questions, folder / "saved")
    assert load_questions(folder / "saved") == questions
    return questions


def test_webqsp_has_the_answers_of_all_parses(tmp_path: Path) -> None:
    [question] = read(tmp_path, WEBQSP)
    assert question == BenchQuestion(
        id="WebQTest-0",
        question="what does jamaican people speak?",
        language="en",
        sparql=QUERY,
        hops=1,
        topic_entity=f"{NS}m.03_r3",
        answers=(f"{NS}m.01428y", f"{NS}m.04ygk0", "1962-08-06"),
        answer_labels=("Jamaican English", "Jamaican Creole English Language", "1962-08-06"),
    )
    as_dog_has_it = without(WEBQSP_ENTRY, topic_entity={"m.03_r3": "Jamaica"})
    assert read(tmp_path, [as_dog_has_it]) == [question]


def test_cwq_has_ids_of_answers_or_one_name(tmp_path: Path) -> None:
    [question] = read(tmp_path, [CWQ_ENTRY])
    assert question == BenchQuestion(
        id=str(CWQ_ENTRY["ID"]),
        question=str(CWQ_ENTRY["question"]),
        language="en",
        sparql=str(CWQ_ENTRY["sparql"]),
        type="composition",
        answers=(f"{NS}m.0117q3yz",),
        answer_labels=("2014 World Series",),
    )
    as_dog_has_it = without(
        CWQ_ENTRY, "answers", answer="2014 World Series", topic_entity={"m.03_dwn": "Lou Seal"}
    )
    [question] = read(tmp_path, [as_dog_has_it])
    assert (question.answers, question.answer_labels) == (None, ("2014 World Series",))
    assert question.topic_entity == f"{NS}m.03_dwn"
    [test_question] = read(tmp_path, [without(CWQ_ENTRY, "answers")])
    assert (test_question.answers, test_question.answer_labels) == (None, ())


def test_webquestions_has_names_alone(tmp_path: Path) -> None:
    [question] = read(tmp_path, [WEB_QUESTIONS_ENTRY])
    assert question == BenchQuestion(
        id="1",
        question="what is the name of justin bieber brother?",
        language="en",
        topic_entity="justin bieber",
        answer_labels=("Jazmyn Bieber", 'Jaxon "JB" Bieber', "Padme"),
    )
    as_dog_has_it = {
        "url": "http://www.freebase.com/view/en/jamaica",
        "question": "what does jamaican people speak?",
        "answers": ["Jamaican Creole English Language", "Jamaican English"],
        "topic_entity": {"m.03_r3": "Jamaica"},
        "qid_topic_entity": {"Q766": "Jamaica"},
    }
    [question] = read(tmp_path, [as_dog_has_it])
    assert question.answer_labels == ("Jamaican Creole English Language", "Jamaican English")
    assert question.topic_entity == f"{NS}m.03_r3"


def test_grailqa_has_its_topic_entity_in_the_graph_query(tmp_path: Path) -> None:
    [question] = read(tmp_path, [GRAILQA_ENTRY])
    assert question == BenchQuestion(
        id="2101960008000",
        question="which play is produced by the illusion?",
        language="en",
        sparql=str(GRAILQA_ENTRY["sparql_query"]),
        type="i.i.d.",
        hops=1,
        topic_entity=f"{NS}m.0yrlqjm",
        answers=(f"{NS}m.0yrltsn", "1.5"),
        answer_labels=("The Illusion", "1.5"),
    )
    [test_question] = read(tmp_path, [{"qid": 1, "question": "who?"}])
    assert (test_question.id, test_question.answers, test_question.type) == ("1", None, None)


WIKIDATA = "http://www.wikidata.org/entity/Q1"
GRAIL_ZEROS = without(
    GRAILQA_ENTRY,
    qid=0,
    num_edge=0,
    answer=[{"answer_argument": 0}, {"answer_argument": False, "entity_name": "no"}],
)


@pytest.mark.parametrize(
    ("entry", "fields"),
    [
        (without(CWQ_ENTRY, topic_entity={WIKIDATA: "x"}), {"topic_entity": WIKIDATA}),
        (
            without(WEBQSP_ENTRY, Parses=[{"TopicEntityMid": WIKIDATA}]),
            {"topic_entity": WIKIDATA, "answers": None, "hops": None},
        ),
        (without(WEB_QUESTIONS_ENTRY, url="/view/en/jamaica_b"), {"topic_entity": "jamaica b"}),
        (
            GRAIL_ZEROS,
            {"id": "0", "hops": 0, "answers": ("0", "false"), "answer_labels": ("0", "no")},
        ),
        (
            without(CWQ_ENTRY, answers=[{"answer_id": None, "answer": None}, {"answer": 0}]),
            {"answers": ("0",), "answer_labels": ("0",)},
        ),
        (without(CWQ_ENTRY, answers=[{}]), {"answers": None, "answer_labels": ()}),
        (without(WEB_QUESTIONS_ENTRY, targetValue="(list)"), {"answer_labels": ()}),
        (
            without(CWQ_ENTRY, "answers", answer="(description X)"),
            {"answer_labels": ("(description X)",)},
        ),
        (without(CWQ_ENTRY, question=" Who? "), {"question": " Who? "}),
    ],
)
def test_a_value_is_read_as_its_set_means_it(
    tmp_path: Path, entry: dict[str, Any], fields: dict[str, Any]
) -> None:
    [question] = read(tmp_path, [entry])
    assert {name: getattr(question, name) for name in fields} == fields


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ({"Questions": [without(WEBQSP_ENTRY, "RawQuestion")]}, "RawQuestion"),
        ([without(CWQ_ENTRY, "question")], "question"),
        ([without(GRAILQA_ENTRY, answer=[{"answer_type": "Entity"}])], "answer_argument"),
        ([without(WEB_QUESTIONS_ENTRY, targetValue={"x": 5})], "targetValue"),
        ([without(GRAILQA_ENTRY, answer="m.05")], "answer.*not a list: m.05"),
        ([without(GRAILQA_ENTRY, answer={"answer_argument": "m.05"})], "answer.*not a list"),
        ([without(WEBQSP_ENTRY, Parses=[{"Answers": {}}])], "Answers.*not a list"),
        ([without(CWQ_ENTRY, answers={"answer": "x"})], "answers.*not a list"),
        ([without(CWQ_ENTRY, answers=["x"])], "answer.*not an object: x"),
        ([without(CWQ_ENTRY, answers=[None])], "answer.*not an object: None"),
    ],
)
def test_an_entry_that_lacks_what_its_set_needs_is_named(
    tmp_path: Path, content: Any, problem: str
) -> None:
    with pytest.raises(InputError, match=f"question 1.*{problem}"):
        read(tmp_path, content)
