"""``rules`` in DoG's roles: a baseline that reads no graph's relations by heart."""

from __future__ import annotations

import json
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from kgwb import open_kg, profile
from kgwb.errors import KgwbError
from kgwb.kg import SAMPLES, sample_path
from kgwb.kg.embeddings import DEFAULT
from kgwb.llm.rules import walking
from kgwb.workbench import Workbench

TARGETS = {1: 0.90, 2: 0.75, 3: 0.60}
"""Hits@1 by number of hops."""
EVERY = 25
"""One in so many questions of each number of hops is asked here; all of them take a minute."""
ENOUGH = 0.8
"""Share of a sample's questions for names that must be answered exactly."""


def solved(entity: str, found: str, relation: str = "r") -> list[dict[str, str]]:
    return [{"entity": entity, "relation": relation, "found": found}]


# --- the debate


def debated(question: str, entity: str, found: str) -> list[str]:
    """What expert, critic and linguist propose."""
    given: dict[str, Any] = {"question": question, "solved": solved(entity, found), "debate": []}
    for role in (walking.expert, walking.critic, walking.linguist):
        said = role(given, None)
        given = {**given, "debate": [*given["debate"], said]}
    return [said["question"] for said in given["debate"]]


@pytest.mark.parametrize(
    ("question", "entity", "found", "left"),
    [
        ("Where was the director of [Echo] born?", "Echo", "Ada", "Where was [Ada] born?"),
        (
            "who directed the films written by [Ada]",
            "Ada",
            "Echo | 2 others",
            "who directed [Echo | 2 others]",
        ),
        ("who directed films that share actors with [Echo]", "Echo", "Ada | Bo", None),
        ("who acted together with [Ada]", "Ada", "Echo", "who acted in [Echo]"),
        ("what are the genres of the films with [Ada]", "Ada", "Echo", "what are the genres of [Echo]"),
        (
            "Who wrote films by the director of [In the Name of the Sun]?",
            "In the Name of the Sun",
            "Bo",
            None,
        ),
    ],
)
def test_three_roles_leave_a_question_one_hop_shorter(
    question: str, entity: str, found: str, left: str | None
) -> None:
    last = debated(question, entity, found)[-1]
    before, after = (walking.chains(text, None) for text in (question, last))
    assert len(after[found]) == len(before[entity]) - 1
    assert f"[{entity}]" not in last
    assert left in (last, None)


def test_the_critic_rewords_what_does_not_say_what_is_left() -> None:
    question = "who directed films that share actors with [Echo]"
    proposed = [{"question": question.replace("Echo", "Ada")}]
    told = walking.critic({"question": question, "solved": solved("Echo", "Ada"), "debate": proposed}, None)
    assert told["question"] == debated(question, "Echo", "Ada")[0] != proposed[0]["question"]


def test_what_nobody_can_reword_keeps_its_wording_and_goes_on_from_what_was_found() -> None:
    assert debated("[Echo] [Fog]", "Echo", "Ada")[-1] == "[Ada] [Fog]"


# --- relations and answers


def like(says: str, names: Any) -> list[str]:
    return [name for name in names if {*says.split()} & {*name.split()}]


@pytest.mark.parametrize(
    ("question", "relations", "chosen"),
    [
        ("who directed [Echo]", ["directed by", "written by"], "directed by"),
        ("films directed by [Ada]", ["~directed by", "~written by"], "~directed by"),
        ("who influenced [Ada]", ["influenced by", "~influenced by"], "influenced by"),
        ("who was influenced by [Ada]", ["influenced by", "~influenced by"], "~influenced by"),
        ("who directed [Echo]", ["genre"], ""),
        ("[Echo]", ["genre"], ""),
    ],
)
def test_a_relation_is_chosen_by_name_and_direction(question: str, relations: list[str], chosen: str) -> None:
    entity = question.partition("[")[2].partition("]")[0]
    influence = lambda says, names: [n for n in names if "influenced" in says] or like(says, names)  # noqa: E731
    told = walking.relation({"question": question, "entity": entity, "relations": relations}, None, influence)
    assert told["relation"] == chosen


@pytest.mark.parametrize(
    ("question", "triples", "answers"),
    [
        (
            "who directed [Echo]",
            [["Echo", "directed by", "Ada"], ["Echo", "directed by", "Bo"]],
            ["Ada", "Bo"],
        ),
        ("where was the director of [Echo] born", [["Echo", "directed by", "Ada"]], []),
        ("did Ada direct [Echo]", [["Echo", "directed by", "Ada"]], []),
        ("how many films did [Ada] direct", [["Ada", "~directed by", "Echo"]], []),
        ("how long is [Echo]", [["Echo", "duration", "90.5"]], ["90.5"]),
        (
            "films with both [Ada] and [Bo]",
            [["Ada", "~starring", "Echo"], ["Bo", "~starring", "Echo"], ["Bo", "~starring", "Fog"]],
            ["Echo"],
        ),
        ("who directed [Echo]", [["Echo", "genre", "noir"]], []),  # its only relation
        (
            "who is married to [Ada]",
            [["Ada", "marriage", "…", "spouse", "Bo"], ["Ada", "marriage", "…", "year", "1990"]],
            ["Bo"],
        ),
    ],
)
def test_an_answer_is_tried(question: str, triples: list[list[str]], answers: list[str]) -> None:
    heads = dict.fromkeys(triple[0] for triple in triples)
    found = [
        {"entity": head, "triples": [one for one in triples if one[0] == head], "note": ""} for head in heads
    ]
    told = walking.trying({"question": question, "found": found}, None, like)
    assert (told["sufficient"], told["answers"]) == ("yes" if answers else "no", answers)


# --- the samples, and MetaQA


def answers(bench: Workbench, question: str) -> list[str]:
    bench.forget()
    try:
        answer = bench.ask(question).answer
    except KgwbError:  # a question that names nothing has no topic entity
        return []
    return [str(value.term) for value in answer.values] if answer else []


@pytest.mark.parametrize("sample", SAMPLES)
def test_rules_answers_enough_of_a_sample_and_invents_nothing(
    sample: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every other question for names; a boolean or a count is no walk's answer."""
    monkeypatch.setenv("KGWB_EMBEDDINGS", DEFAULT)
    bench = Workbench(open_kg(sample), "rules", system="dog")
    lines = Path(sample_path(sample)).with_suffix(".questions.jsonl").read_text().splitlines()
    entries = [entry for entry in map(json.loads, lines) if not entry.get("dialogue")]
    right: dict[str, bool] = {}
    for entry in [one for one in entries if one["type"] in ("factoid", "list", "unanswerable")][::2]:
        got = answers(bench, entry["question"])
        right[entry["question"]] = sorted(got) == sorted(entry["answers"])
        assert entry["type"] != "unanswerable" or not got, entry["question"]
    assert sum(right.values()) >= ENOUGH * len(right), [one for one in right if not right[one]]


def test_rules_reaches_the_targets_on_metaqa(metaqa: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sample of metaqa_dev; ``kgwb bench`` asks all of it."""
    monkeypatch.setenv("KGWB_EMBEDDINGS", DEFAULT)
    kg = open_kg(metaqa)
    entries = list(map(json.loads, metaqa.with_name("metaqa_dev.jsonl").read_text().splitlines()))
    bench = Workbench(kg, "rules", system="dog", settings=profile("fast", debate_rounds=1))
    for hops, group in groupby(entries, key=lambda entry: entry["hops"]):
        asked = list(group)[::EVERY]
        hits = [answers(bench, entry["question"])[:1] for entry in asked]
        right = sum(bool({*hit} & {*entry["answers"]}) for hit, entry in zip(hits, asked, strict=True))
        assert right >= TARGETS[hops] * len(asked), f"{hops} hops: {right} of {len(asked)}"
