"""The model ``rules`` as the agents of the systems."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest
from rules_asked import check_metaqa, check_sample
from small import films
from tables import read_table

from kgwb import Workbench, open_kg
from kgwb.errors import ModelError
from kgwb.kg import SAMPLE_NAMES, Graph
from kgwb.kg.embeddings import DEFAULT_MODEL, Embeddings
from kgwb.llm.base import ChatRequest
from kgwb.llm.rules import RulesModel
from kgwb.run.systems import load_system
from kgwb.systems.dog.rules import read_chains


def reply(task: str, kg: Graph | None = None, **variables: Any) -> Any:
    folder, _, _ = task.partition("/")
    rule = load_system("chatty_kg" if folder == "linking" else folder).rule(task)
    request = ChatRequest(task=task, variables=variables, messages=(), rule=rule)
    return json.loads(
        RulesModel(Embeddings("lexical")).complete(request, kg, threading.Event()).text
    )


@pytest.mark.parametrize(
    ("name", "first"), [("ragonite", "tool_selector"), ("surveyor", "mention_finder")]
)
def test_rules_refuses_systems_whose_agents_write_queries(name: str, first: str) -> None:
    workbench = Workbench(films(), "rules", system=name)
    with pytest.raises(ModelError, match=name) as refused:
        workbench.ask("Which films did Denis Villeneuve direct?")
    assert first in refused.value.hint
    assert workbench.runs[-1].steps == []


@pytest.mark.parametrize(
    ("sample", "name", "every"),
    [
        ("films", "triad", 6),
        *(pytest.param(sample, "triad", 6, marks=pytest.mark.long) for sample in SAMPLE_NAMES[1:]),
        *(pytest.param(sample, "dog", 2, marks=pytest.mark.long) for sample in SAMPLE_NAMES),
    ],
)
def test_rules_answers_enough_of_a_sample_and_invents_nothing(
    sample: str, name: str, every: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ask one in ``every`` questions for names. DoG finds neither booleans nor counts."""
    monkeypatch.setenv("KGWB_EMBEDDINGS", DEFAULT_MODEL)
    check_sample(Workbench(open_kg(sample), "rules", system=name), sample, every)


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "settings", "every", "targets"),
    [
        ("dog", {"debate_rounds": 1}, 25, {1: 0.90, 2: 0.75, 3: 0.60}),
        ("triad", {}, 50, {1: 0.85, 2: 0.70, 3: 0.70}),
    ],
)
def test_rules_reaches_the_targets_on_metaqa(
    name: str,
    settings: Any,
    every: int,
    targets: Any,
    metaqa: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ask one in ``every`` questions. Targets are Hits@1 by number of hops."""
    monkeypatch.setenv("KGWB_EMBEDDINGS", DEFAULT_MODEL)
    chosen = load_system(name).settings.of_profile("fast", **settings)
    bench = Workbench(open_kg(metaqa), "rules", system=name, settings=chosen)
    check_metaqa(bench, metaqa, every, targets)


# --- in Chatty-KG: the dialogue, homonyms and predicates

EARLIER = [
    {"question": "Who directed Echo in 1987?", "answers": ["Ada Byron"], "about": ["Echo"]},
    {"question": "What is Echo based on?", "answers": ["Fog over Elm"], "about": ["Echo"]},
]
HOMONYMS = [
    {
        "number": 1,
        "label": "Echo",
        "type": "film",
        "description": "of 1987",
        "relations": ["director"],
    },
    {
        "number": 2,
        "label": "Echo",
        "type": "novel",
        "description": "novel by A",
        "relations": ["author"],
    },
]


KG = films(
    "@prefix : <http://e/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> ."
    ' :a rdfs:label "Ada Byron" . :e rdfs:label "Echo" . :f rdfs:label "Fog over Elm" .'
    ' :o rdfs:label "Orion" . :p rdfs:label "poet" .'
)


@pytest.mark.parametrize(
    ("question", "turns", "standalone"),
    [
        ("Where was she born?", 1, "Where was Ada Byron born?"),
        ("When was it released?", 1, "When was Echo released?"),
        ("When was this released?", 1, "When was Echo released?"),
        ("And who wrote that?", 2, "Who wrote Fog over Elm?"),
        ("And the one from 1999?", 1, "Who directed Echo in 1999?"),
        ("What about Orion?", 1, "Who directed Orion in 1987?"),
        ("And when?", 2, "When is Echo based on?"),
        ("How long is the film?", 1, "How long is the film Echo?"),
        ("Who is her sister?", 1, "Who is Ada Byron's sister?"),
    ],
)
def test_a_follow_up_is_made_standalone(question: str, turns: int, standalone: str) -> None:
    assert reply("chatty_kg/classifier", KG, question=question)["label"] == "dependent"
    rephrased = reply("chatty_kg/rephraser", KG, question=question, dialogue=EARLIER[:turns])
    assert rephrased == {"question": standalone}


@pytest.mark.parametrize(
    ("question", "answers", "standalone"),
    [
        ("Who sold it?", ["Orion"], "Who sold Echo?"),
        ("Who sold the first one?", ["Fog over Elm", "Echo"], "Who sold Fog over Elm?"),
        ("Who sold the second one?", ["Fog over Elm", "Echo"], "Who sold Echo?"),
        ("Who sold the third one?", ["Fog over Elm", "Echo"], "Who sold the third one?"),
    ],
)
def test_the_published_dialogue_is_read_from_its_beginning(
    question: str, answers: list[str], standalone: str
) -> None:
    dialogue = [
        {"question": "Who directed Echo?", "answers": ["Ada Byron"]},
        {"question": "Where was it shown?", "answers": answers},
    ]
    rephrased = reply("chatty_kg/rephraser_published", KG, question=question, dialogue=dialogue)
    assert rephrased == {"question": standalone}


@pytest.mark.parametrize(
    ("asked", "question", "standalone"),
    [
        ("Who else?", "When was she born?", "When was Orion born?"),
        ("Which films did Ada Byron direct besides?", "Who sold it?", "Who sold Orion?"),
    ],
)
def test_what_was_named_before_is_no_answer_to_what_else(
    asked: str, question: str, standalone: str
) -> None:
    dialogue = [
        {"question": "Who directed Echo?", "answers": ["Ada Byron"]},
        {"question": asked, "answers": ["Echo", "Ada Byron", "Orion"]},
    ]
    rephrased = reply("chatty_kg/rephraser_published", KG, question=question, dialogue=dialogue)
    assert rephrased == {"question": standalone}


def test_a_long_question_with_a_name_stands_alone_whatever_it_begins_with() -> None:
    question = "And who directed the film Echo that Ada Byron wrote?"
    assert reply("chatty_kg/classifier", KG, question=question)["label"] == "self-contained"


@pytest.mark.parametrize(
    ("question", "facts", "sparql"),
    [
        ("Who directed Echo?", ["Echo|director|?answer"],
         "SELECT DISTINCT ?answer WHERE { <Echo> <director> ?answer . }"),
        ("Did Ada Byron direct Echo?", ["Echo|director|Ada Byron"], "ASK { <Echo> <director> <Ada Byron> . }"),
        ("Who wrote films like Echo?", ["Echo|genre|?x", "?answer|genre|?x"],
         "SELECT DISTINCT ?answer WHERE { <Echo> <genre> ?x . ?answer <genre> ?x . FILTER(?answer != <Echo>) }"),
    ],
)  # fmt: skip
def test_triad_fills_a_template(question: str, facts: list[str], sparql: str) -> None:
    triplets = [fact.split("|") for fact in facts]
    assert reply("triad/template", KG, question=question, triplets=triplets)["sparql"] == sparql


def test_a_question_with_a_name_stands_alone() -> None:
    question = "Films that share a poet with Echo?"
    assert reply("chatty_kg/classifier", KG, question=question)["label"] == "self-contained"
    assert reply("chatty_kg/rephraser", KG, question=question, dialogue=[]) == {
        "question": question
    }


@pytest.mark.parametrize(
    "question", ["", "?!", "who " * 400, "\u202e\u0000 𝕎𝕙𝕠 wrote it\u200b", "?x a <http://evil>"]
)
def test_hostile_text_does_no_harm(question: str) -> None:
    reply("chatty_kg/rephraser", KG, question=question, dialogue=EARLIER)
    reply("chatty_kg/classifier", None, question=question)


@pytest.mark.parametrize(
    ("question", "number"),
    [
        ("Who wrote the novel Echo?", 2),
        ("Who made Echo of 1987?", 1),
        ("Who is the author of the novel Echo of 1987?", 1),
    ],
)
def test_homonyms_are_told_apart_by_year_and_description(question: str, number: int) -> None:
    vertex = reply(
        "linking/vertex_selection", KG, question=question, entity="Echo", candidates=HOMONYMS
    )
    assert vertex["number"] == number


@pytest.mark.parametrize(
    ("entity", "label"),
    [
        ("Fog over Elms", "Fog over Elm"),
        ("Elm", "Fog over Elm"),
        ("Ecko", "Echo"),
        ("Ecka", ""),
        ("ECHO", "Echo"),
    ],
)
def test_a_label_must_be_like_the_name(entity: str, label: str) -> None:
    candidates = [
        {"number": number, "label": text, "type": "", "description": ""}
        for number, text in enumerate(("Fog over Elm", "Echo"), start=1)
    ]
    chosen = reply(
        "linking/vertex_selection", KG, question="", entity=entity, candidates=candidates
    )
    assert chosen["label"] == label


@pytest.mark.parametrize(
    ("names", "kept"), [(["director", "shoe size"], ["director"]), (["shoe size"], [])]
)
def test_a_predicate_must_be_like_the_relation(names: list[str], kept: list[str]) -> None:
    relations = [{"triple": ["Echo", "director", "?answer"], "predicates": names}]
    assert reply("chatty_kg/predicate_selection", question="", relations=relations)[
        "predicates"
    ] == [kept]


# --- in DoG: the debate, relations and answers


def solved(entity: str, answer: str) -> list[dict[str, str]]:
    return [{"entity": entity, "relation": "r", "found": answer}]


def debated(question: str, entity: str, answer: str) -> list[str]:
    """Return the questions that expert, critic and linguist propose."""
    debate: list[Any] = []
    for role in ("simplifying_expert", "critic", "linguist"):
        debate.append(
            reply(f"dog/{role}", question=question, solved=solved(entity, answer), debate=debate)
        )
    return [remark["question"] for remark in debate]


@pytest.mark.parametrize(
    ("question", "entity", "found", "left"),
    read_table(Path(__file__).with_name("shorter_questions.jsonl")),
)
def test_three_roles_leave_a_question_one_hop_shorter(
    question: str, entity: str, found: str, left: str | None
) -> None:
    last = debated(question, entity, found)[-1]
    assert len(read_chains(last, None)[found]) == len(read_chains(question, None)[entity]) - 1
    assert f"[{entity}]" not in last
    assert left in (last, None)


def test_the_critic_rewords_a_wrong_proposal() -> None:
    question = "who directed films that share actors with [Echo]"
    proposed = [{"question": question.replace("Echo", "Ada")}]
    remark = reply("dog/critic", question=question, solved=solved("Echo", "Ada"), debate=proposed)
    assert remark["question"] == debated(question, "Echo", "Ada")[0] != proposed[0]["question"]
    fused = reply("dog/fused_agent", question=question, solved=solved("Echo", "Ada"), debate=[])
    assert fused["question"] == debated(question, "Echo", "Ada")[-1]
    assert debated("[Echo] [Fog]", "Echo", "Ada")[-1] == "[Ada] [Fog]"  # no rewording is found


@pytest.mark.parametrize(
    ("question", "relations", "chosen"),
    read_table(Path(__file__).with_name("chosen_relations.jsonl")),
)
def test_a_relation_is_chosen_by_name_and_direction(
    question: str, relations: list[str], chosen: str
) -> None:
    entity = question.partition("[")[2].partition("]")[0]
    filtered = reply(
        "dog/relation_filtering", question=question, entity=entity, relations=relations
    )
    assert filtered["relation"] == chosen


@pytest.mark.parametrize(
    ("question", "triples", "answers"), read_table(Path(__file__).with_name("tried_answers.jsonl"))
)
def test_an_answer_is_tried(question: str, triples: list[str], answers: list[str]) -> None:
    split = [triple.split("|") for triple in triples]
    heads = dict.fromkeys(triple[0] for triple in split)
    results = [
        {"entity": head, "triples": [t for t in split if t[0] == head], "note": ""}
        for head in heads
    ]
    tried = reply("dog/answer_trying", question=question, found=results)
    assert (tried["sufficient"], tried["answers"]) == ("yes" if answers else "no", answers)


@pytest.mark.parametrize(
    ("question", "label", "pronoun"),
    read_table(Path(__file__).parent / "chatty_kg" / "classified_questions.jsonl"),
)
def test_a_question_is_dependent_by_its_pronouns_its_beginning_and_its_names(
    question: str, label: str, pronoun: str
) -> None:
    said = reply("chatty_kg/classifier", films(), question=question, dialogue=EARLIER)
    quoted = said["reason"].partition(" stands for ")[0] if " stands for " in said["reason"] else ""
    assert [said["label"], quoted.strip("'")] == [label, pronoun]
