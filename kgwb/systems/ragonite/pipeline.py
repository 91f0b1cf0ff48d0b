"""RAGonite as a table of contents: induce a database, gather with the tools, answer from what they gave."""

from __future__ import annotations

from kgwb.flow import Answer, Dialogue, Question
from kgwb.run import Run, System, agent
from kgwb.systems.ragonite import views as _views  # noqa: F401  # its records show themselves by them
from kgwb.systems.ragonite.answerer import conclude, write
from kgwb.systems.ragonite.records import Schema
from kgwb.systems.ragonite.settings import RagoniteSettings
from kgwb.systems.ragonite.tools import Finish, Passages, Sparql, Sql, gather, recorded


def answer(question: Question, dialogue: Dialogue, run: Run) -> Answer:
    """Look things up with the tools, then write one answer from all sources."""
    schema = induce(run)
    sources = gather(question.text, dialogue, schema, run)
    return conclude(question.text, write(question.text, dialogue, sources, run), run)


@agent("ragonite")
def induce(run: Run) -> Schema:
    """The database induced from the graph; the same for every question, and kept with the graph."""
    schema: Schema = recorded("schema", {}, lambda known: known.schema, Schema, run)
    return schema


SYSTEM = System(
    "ragonite",
    answer,
    {"Induce": (induce,), "Gather ↻": (gather, Sql, Passages, Sparql, Finish), "Answer": (write, conclude)},
    settings=RagoniteSettings,
)
