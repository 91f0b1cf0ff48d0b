"""The settings of Surveyor."""

from __future__ import annotations

from pydantic.dataclasses import dataclass

from kgwb.settings import STRICT_CONFIG, Count, Settings


@dataclass(frozen=True, kw_only=True, config=STRICT_CONFIG)
class SurveyorSettings(Settings):
    """What changes how Surveyor answers."""

    survey_tokens: Count = 2_400
    """Room in a prompt for the survey, in tokens of 4 letters; of a larger one what is nearest is shown."""
    reviews: Count = 3
    """Times the reviewer is asked, at most; a second draft counts as one."""
    name_candidates: Count = 6
    """Vertices, and values of texts, shown for a name of the question."""
    shown_rows: Count = 8
    """Rows of a result that the reviewer sees."""
