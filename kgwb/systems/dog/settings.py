"""The settings of DoG."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic.dataclasses import dataclass

from kgwb.settings import STRICT_CONFIG, Count, Settings

Ablation = Literal[
    "none", "no_focusing", "expert_only", "no_linguist", "fused_agent", "unneeded_roles"
]


@dataclass(frozen=True, kw_only=True, config=STRICT_CONFIG)
class DogSettings(Settings):
    """The settings of DoG, beside those that every system has."""

    PAPER: ClassVar = {
        "debate_rounds": 3,
        "ablation": "none",
        "exemplars": 10,
        "spelling": 0.0,
        "candidate_texts": "labels",
        "vertex_choice": "label",
        "unasked_choice": "only_candidate",
        "keeps_links": False,
    }
    REFERENCE: ClassVar = PAPER

    iteration_limit: Count = 3
    """After how many hops the walk ends without an answer (reference code)."""
    debate_rounds: Count = 1
    """How many rounds the roles debate to shorten a question.

    The paper allows 3, and finds that 1 is best on most question sets.
    """
    fan_out: Count = 100
    """How many tails of a head are kept after a hop, and how many of its triples a model sees.

    Where more were found, the step has a note.
    """
    ablation: Ablation = "unneeded_roles"
    """What is left out of the system. All values but "unneeded_roles" are rows of Table 2.

    - "none": nothing.
    - "no_focusing": trying to answer after each hop, and simplifying the question. The model tries
      once, at the end, with the triples of all hops.
    - "expert_only", "no_linguist": the other roles of the debate.
    - "fused_agent": the debate; one agent has the tasks of all three roles.
    - "unneeded_roles": the roles that would speak after a question that passes the checks.
    """
