"""The survey of a graph, and how it is written for a model.

``docs/reference/build_parts.md`` tells each name.
"""

from kgwb.kg.findings import SchemaFacts, extract_schema_facts
from kgwb.kg.survey import CACHE_LIFETIME_S, GENERIC_CLASSES, survey_graph
from kgwb.kg.survey_records import ClassGroup, Survey
from kgwb.kg.survey_text import SurveyWriter, writer_of_survey

__all__ = [
    "CACHE_LIFETIME_S",
    "GENERIC_CLASSES",
    "ClassGroup",
    "SchemaFacts",
    "Survey",
    "SurveyWriter",
    "extract_schema_facts",
    "survey_graph",
    "writer_of_survey",
]
