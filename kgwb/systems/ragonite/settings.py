"""The settings of RAGonite."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from kgwb.settings import STRICT_CONFIG, Count, Settings


@dataclass(frozen=True, kw_only=True, config=STRICT_CONFIG)
class RagoniteSettings(Settings):
    """What changes how RAGonite answers."""

    rounds: Count = 3
    """Uses of tools at most (section 2.3); a tool that was not used by then is offered once more."""
    passages: Count = 5
    """Passages that a search gives."""
    rows: Count = 50
    """Rows kept of a query's result; the model sees all of them."""
    sql_timeout_s: Annotated[float, Field(gt=0, le=3600)] = 5.0
    schema_tokens: Count = 6_000
    """Room in a prompt for the schema, in tokens of 4 letters; tables that do not fit are only named."""
    max_triples: Count = 200_000
    """A graph, or part of one, with more triples is not induced."""
    part: str = ""
    """IRIs of classes, separated by blanks: only their instances are induced."""
    reverse_facts: bool = True
    """Whether the passage of an object also has the facts that lead to it (section 2.2)."""
    ablation: Literal["none", "sql_only", "passages_only", "sparql_only"] = "none"
    """Which tool it has instead of both (section 4)."""
