"""The dialogue as models are shown it: all earlier questions with their answers (section 2.1)."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

from kgwb.build import Dialogue, Run, Turn, pluralize, remember_turn
from kgwb.systems.ragonite.records import BRACKETS, CHARS_PER_TOKEN
from kgwb.systems.ragonite.settings import RagoniteSettings

CITATION = re.compile(rf"\s*{BRACKETS.pattern}")
"""Numbers of sources in the text of an answer, with the blanks before them."""


def remember_with_text(run: Run) -> Turn:
    """Return what a dialogue remembers of a run: also the text of the answer, with or without values.

    The numbers of its sources are left out, since a later turn has other sources.
    """
    text = run.answer.text if run.answer is not None else ""
    return replace(remember_turn(run), text=CITATION.sub("", text).strip())


def list_earlier_turns(dialogue: Dialogue, settings: RagoniteSettings) -> list[dict[str, Any]]:
    """Return the turns of a dialogue as JSON data, the oldest first: question, answers, text.

    They have room for ``settings.dialogue_tokens``. If they need more, the oldest turns are left
    out, and the first entry says how many. The latest turn is always there; of its answers as many
    as there is room for, and it says how many are left out. The text is left out where a turn has
    none.
    """
    room = settings.dialogue_tokens * CHARS_PER_TOKEN
    shown: list[dict[str, Any]] = []
    for turn in reversed(dialogue.turns):
        data = _to_data(turn)
        if not shown:
            data = _cut_answers(data, room)
        room -= _size(data)
        if shown and room < 0:
            break
        shown.insert(0, data)
    omitted = len(dialogue.turns) - len(shown)
    if omitted:
        shown.insert(0, {"left out": pluralize(omitted, "earlier turn")})
    return shown


def _to_data(turn: Turn) -> dict[str, Any]:
    """Return a turn as JSON data."""
    data: dict[str, Any] = {"question": turn.question, "answers": list(turn.answers)}
    if turn.text:
        data["text"] = turn.text
    return data


def _cut_answers(data: dict[str, Any], room: int) -> dict[str, Any]:
    """Return a turn with as many of its answers as there is room for, and the number of the others.

    The text comes first: it is cut only if it has no room alone.
    """
    if _size(data) <= room:
        return data
    cut = {**data, "answers": []}
    if "text" in cut:
        cut["text"] = cut["text"][: max(0, room)]
    left = room - _size(cut)
    for answer in data["answers"]:
        left -= _size(answer)
        if left < 0:
            break
        cut["answers"].append(answer)
    omitted = len(data["answers"]) - len(cut["answers"])
    if omitted:
        cut["left out"] = pluralize(omitted, "answer")
    return cut


def _size(data: Any) -> int:
    """Return how many characters data takes in a prompt."""
    return len(json.dumps(data, ensure_ascii=False))
