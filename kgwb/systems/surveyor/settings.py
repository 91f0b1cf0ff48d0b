"""The settings of Surveyor."""

from __future__ import annotations

from datetime import date
from typing import Annotated

from pydantic import AfterValidator
from pydantic.dataclasses import dataclass

from kgwb.build import STRICT_CONFIG, Count, Settings

DEFAULT_SURVEY_SECONDS = 60


def _check_day(text: str) -> str:
    """Return the text of a day, or an empty one. Raises ValueError for any other."""
    if text:
        try:
            is_full = date.fromisoformat(text).isoformat() == text
        except ValueError:
            is_full = False
        if not is_full:
            raise ValueError("write it as 2026-01-31, or leave it empty")
    return text


Day = Annotated[str, AfterValidator(_check_day)]
"""A day in the form of ISO 8601, 2026-01-31; or an empty text."""


@dataclass(frozen=True, kw_only=True, config=STRICT_CONFIG)
class SurveyorSettings(Settings):
    """The settings of Surveyor: those of every system, and seven of its own."""

    survey_tokens: Count = 2_400
    """Tokens of a prompt that the survey may take, counted as 4 characters each.

    They are filled with the classes that the question names. For a model with a small context, 1,200
    of them and one of the ``exemplars`` leave room for the question.
    """
    survey_seconds: Count = DEFAULT_SURVEY_SECONDS
    """How many seconds the survey of a graph may take. It says what it lacks if that is not enough."""
    reviews: Count = 3
    """How often the reviewer is asked at most. A second draft takes the place of one review."""
    name_candidates: Count = 6
    """How many vertices, and how many values, are kept for a name of the question at most."""
    shown_rows: Count = 8
    """How many rows of a result the reviewer sees at most."""
    always_reviews: bool = False
    """Whether a query is reviewed also where nothing foretells that it is wrong, see ``is_open``."""
    today: Day = ""
    """The day on which a question is asked: the model is told, for "this year" or "in two months".

    It is a setting, and not the day of the clock, so that the prompts of a run are the same on
    another day. Empty, the model is told no day.
    """
