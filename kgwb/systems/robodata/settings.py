"""The settings of RoboData."""

from __future__ import annotations

from pydantic.dataclasses import dataclass

from kgwb.build import STRICT_CONFIG, Count, Settings


@dataclass(frozen=True, kw_only=True, config=STRICT_CONFIG)
class RoboDataSettings(Settings):
    """The settings that RoboData has besides those of every system."""

    turn_limit: Count = 30
    """How many states are visited at most. The last of them is PRODUCE.

    The paper has 30, and 50 with metacognition.
    """
    metacognition: bool = False
    """Whether the strategy is assessed and corrected before each evaluation but the first."""
    tool_uses: Count = 12
    """How many tools one reply may use."""
    memory_chars: Count = 6_000
    """Characters of memory in a prompt. The latest turns are whole, earlier ones are shortened."""
    shown_chars: Count = 16_000
    """Characters of the local graph in a prompt, and of tool results.

    The tools of LOCAL read what is cut from the local graph.
    """
