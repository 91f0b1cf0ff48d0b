"""A question for each system, with the replies of a scripted model that answer it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import debate
import machine
import ragonite
import surveying
import triads
from small import DIRECTED

ASKED: Mapping[str, tuple[str, Any]] = {
    "chatty_kg": ("Who directed Arrival?", DIRECTED),
    "dog": (debate.QUESTION, debate.TWO_HOPS),
    "ragonite": (ragonite.QUESTION, ragonite.script()),
    "robodata": (machine.QUESTION, machine.script()),
    "surveyor": (surveying.QUESTION, surveying.script()),
    "triad": (triads.QUESTION, triads.SCRIPT),
}
"""For each system, a question and the replies of a scripted model to it."""
