"""The settings of RAGonite."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from kgwb.build import STRICT_CONFIG, Count, Settings


@dataclass(frozen=True, kw_only=True, config=STRICT_CONFIG)
class RagoniteSettings(Settings):
    """The settings that RAGonite has besides those of every system."""

    rounds: Count = 3
    """How often a model may use a tool (section 2.3).

    A tool that was not used by then is offered once more.
    """
    passages: Count = 5
    """How many passages a search returns."""
    rows: Count = 50
    """How many rows of a query's result are kept. The model is shown all of them."""
    sql_timeout_s: Annotated[float, Field(gt=0, le=3600)] = 5.0
    schema_tokens: Count = 6_000
    """The room for the schema in a prompt, in tokens of 4 characters.

    Tables that do not fit are only named.
    """
    max_triples: Count = 200_000
    """A graph with more triples, or a part of it with more, is not turned into a database."""
    part: str = ""
    """IRIs of classes, separated by blanks. The database then has only their instances."""
    annotations: str = ""
    """A file in which a person renames, drops and comments tables and columns (section 2.1).

    RAGonite's cell writes it.
    """
    documents: str = ""
    """A folder of texts that are searched beside the graph: text, Markdown, HTML, JSON lines, PDF.

    Its paragraphs become passages, which are cited by file and line (section 2.6).
    """
    reverse_facts: bool = True
    """Whether the passage of an object also has the facts that lead to it (section 2.2)."""
    ablation: Literal["none", "sql_only", "passages_only", "sparql_only"] = "none"
    """The one tool that is offered in place of SQL and passages (section 4)."""
