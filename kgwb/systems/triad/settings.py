"""The settings of Triad. What the paper leaves open is a setting."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic.dataclasses import dataclass

from kgwb.settings import STRICT_CONFIG, Count, Settings


@dataclass(frozen=True, kw_only=True, config=STRICT_CONFIG)
class TriadSettings(Settings):
    """The settings of Triad, beside those that every system has."""

    PAPER: ClassVar = {
        "as_written": True,
        "retry_from": "parsing",
        "spelling": 0.0,
        "candidate_texts": "labels",
        "unasked_choice": "never",
    }

    exemplars: Count = 3
    """How many examples of each task the generalist is shown (N in Table 4)."""
    entities: Count = 2
    """How many vertices are chosen for a mention at most (K in Table 4)."""
    relations: Count = 2
    """How many relations are chosen for a triplet at most (K in Table 4)."""
    tries: Count = 3
    """How many attempts are made to find a query (T in Table 4)."""
    shown_relations: Count = 40
    """How many relations the model may choose from for a triplet: the most similar by name.

    The paper gives no number.
    """
    join_sample: Count = 50
    """How many terms stand for an unknown when the relations around it are looked for."""
    query_limit: Count = 40
    """How many queries are run in an attempt. Those with the best options come first."""
    as_written: bool = False
    """Whether relations have the direction of their triplet, as published, or that of the graph."""
    retry_from: Literal["fault", "parsing", "linking", "construction"] = "fault"
    """The phase that a further attempt goes back to: the one at fault, or always the same."""
    ablation: Literal[
        "none", "no_uri_choice", "no_query_choice", "no_fallback", "boolean_fallback"
    ] = "none"
    """What is left out of the system (Table 3).

    - "none": nothing.
    - "no_uri_choice": the choice of vertices and relations; the most similar by name are taken.
    - "no_query_choice": the choice of the query; the first is taken.
    - "no_fallback": answers from own knowledge, also with the setting ``own_knowledge``.
    - "boolean_fallback": facts from own knowledge, but not truth values.
    """
