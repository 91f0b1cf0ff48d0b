"""Checks of the answers of the model ``rules`` on the samples and on MetaQA."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import groupby
from pathlib import Path

from kgwb.errors import KgwbError
from kgwb.kg import sample_path
from kgwb.run.answers import Answer
from kgwb.workbench import Workbench

ENOUGH = 0.8
"""Share of a sample's questions for names that must be answered exactly."""


def answers(bench: Workbench, question: str) -> list[str]:
    bench.new_dialogue()
    try:
        answer = bench.ask(question).answer
    except KgwbError:  # a question that names nothing has no topic entity
        return []
    return [str(value.term) for value in answer.values] if answer else []


def ask(bench: Workbench, question: str) -> Answer:
    """Return the answer to a question; one without values if the grammar cannot read it."""
    try:
        answer = bench.ask(question).answer
    except KgwbError:
        return Answer("list")
    assert answer is not None
    return answer


def check_sample(bench: Workbench, sample: str, every: int) -> None:
    """Check that enough of a sample is answered, and no unanswerable question.

    Yes-or-no questions and counts are left out. One in ``every`` questions is asked.
    """
    lines = Path(sample_path(sample)).with_suffix(".questions.jsonl").read_text().splitlines()
    entries = [entry for entry in map(json.loads, lines) if not entry.get("dialogue")]
    right: dict[str, bool] = {}
    for entry in [
        entry for entry in entries if entry["type"] in ("factoid", "list", "unanswerable")
    ][::every]:
        got = answers(bench, entry["question"])
        right[entry["question"]] = sorted(got) == sorted(entry["answers"])
        assert entry["type"] != "unanswerable" or not got, entry["question"]
    assert sum(right.values()) >= ENOUGH * len(right), [
        entry for entry in right if not right[entry]
    ]


def check_metaqa(bench: Workbench, metaqa: Path, every: int, targets: Mapping[int, float]) -> None:
    """Check Hits@1 by number of hops on one in ``every`` questions of metaqa_dev."""
    entries = list(map(json.loads, metaqa.with_name("metaqa_dev.jsonl").read_text().splitlines()))
    for hops, group in groupby(entries, key=lambda entry: entry["hops"]):
        asked = list(group)[::every]
        hits = [answers(bench, entry["question"])[:1] for entry in asked]
        right = sum(
            bool({*hit} & {*entry["answers"]}) for hit, entry in zip(hits, asked, strict=True)
        )
        assert right >= targets[hops] * len(asked), f"{hops} hops: {right} of {len(asked)}"
