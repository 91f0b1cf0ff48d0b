"""The settings of Chatty-KG."""

from __future__ import annotations

from typing import ClassVar

from pydantic.dataclasses import dataclass

from kgwb.settings import STRICT_CONFIG, Count, Settings


@dataclass(frozen=True, kw_only=True, config=STRICT_CONFIG)
class ChattySettings(Settings):
    """What changes how Chatty-KG answers."""

    PAPER: ClassVar = {
        "spelling": 0.0,
        "exemplars": 10,
        "repair": "ask_afresh",
        "predicates_per_relation": 21,
        "candidate_texts": "labels",
        "vertex_choice": "label",
        "unasked_choice": "only_candidate",
        "keeps_links": False,
    }
    REFERENCE: ClassVar = PAPER

    answers_in_context: Count = 100
    """L: answers of an earlier turn that the rephraser sees."""
    query_num: Count = 40
    """Candidate queries kept by truncation."""
    predicates_per_relation: Count = 5
    """Ranked predicates kept for a relation; the reference code keeps 21."""
    join_sample: Count = 200
    """Vertices sampled to find the predicates of a relation between two unknowns (``fast``)."""
    multi_turn: bool = True
    """False skips classifier and rephraser (system mode of the paper, section 6)."""
    reword_answer: bool = False
    """Let the chat agent turn short answers into a sentence (off in the paper's evaluation)."""
    translate: bool = True
    """Translate questions that are not in English first."""
