"""``rules`` in Triad's roles: the grammar's triplets, and names most like each other."""

from __future__ import annotations

from pathlib import Path

import pytest
from rules_asked import check_metaqa, check_sample

from kgwb import open_kg
from kgwb.kg import SAMPLES
from kgwb.kg.embeddings import DEFAULT
from kgwb.workbench import Workbench

TARGETS = {1: 0.85, 2: 0.70, 3: 0.70}
"""Hits@1 by number of hops."""
EVERY = 50
"""One in so many questions of each number of hops is asked here."""


@pytest.mark.parametrize("sample", SAMPLES)
def test_rules_answers_enough_of_a_sample_and_invents_nothing(
    sample: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KGWB_EMBEDDINGS", DEFAULT)
    check_sample(Workbench(open_kg(sample), "rules", system="triad"), sample, every=6)


def test_rules_reaches_the_targets_on_metaqa(metaqa: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KGWB_EMBEDDINGS", DEFAULT)
    check_metaqa(Workbench(open_kg(metaqa), "rules", system="triad"), metaqa, EVERY, TARGETS)
