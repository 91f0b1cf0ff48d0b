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
    """What changes how DoG answers."""

    PAPER: ClassVar = {**Settings.PAPER, "debate_rounds": 3, "ablation": "none"}

    iteration_limit: Count = 3
    """Hops after which the walk gives up (reference code)."""
    debate_rounds: Count = 1
    """Rounds in which the three roles simplify a question; the paper allows 3, and finds 1 mostly best."""
    fan_out: Count = 100
    """Vertices kept of a hop, and triples of it that a model sees; the step notes what was cut."""
    ablation: Ablation = "unneeded_roles"
    """What it goes without: nothing, as published; focusing and simplifying, roles, or the debate, as in the
    paper's Table 2; or the roles that would come after a question which passes the checks."""
