"""The settings of RoboData."""

from __future__ import annotations

from pydantic.dataclasses import dataclass

from kgwb.settings import STRICT_CONFIG, Count, Settings


@dataclass(frozen=True, kw_only=True, config=STRICT_CONFIG)
class RoboDataSettings(Settings):
    """What changes how RoboData answers."""

    turn_limit: Count = 30
    """States visited, PRODUCE with them, which the last turn forces (paper: 30, with metacognition 50)."""
    metacognition: bool = False
    """Whether a strategy is inferred and corrected before each evaluation from the second turn on."""
    tool_uses: Count = 12
    """Tool uses in one reply."""
    memory_chars: Count = 6_000
    """Letters of memory in a prompt: the latest turns whole, earlier ones in a line each."""
    shown_chars: Count = 16_000
    """Letters of the local graph in a prompt, and of tool results; LOCAL looks at what is cut."""
