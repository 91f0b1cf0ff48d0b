"""The settings of Triad; what the paper leaves open is one of them."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic.dataclasses import dataclass

from kgwb.settings import STRICT_CONFIG, Count, Settings


@dataclass(frozen=True, kw_only=True, config=STRICT_CONFIG)
class TriadSettings(Settings):
    """What changes how Triad answers."""

    PAPER: ClassVar = {
        **Settings.PAPER,
        "exemplars": 3,
        "as_written": True,
        "retry_from": "parsing",
    }

    exemplars: Count = 3
    """Examples that the generalist learns each task from (the paper's N)."""
    entities: Count = 2
    """Vertices chosen for a mention, at most (K)."""
    relations: Count = 2
    """Relations chosen for a triplet, at most (K)."""
    tries: Count = 3
    """Times that a query is looked for (T)."""
    shown_relations: Count = 40
    """Relations of a triplet that may be chosen from, those named most like its own; the paper names none."""
    join_sample: Count = 50
    """Vertices that stand for an unknown, to find what relations lead on from it."""
    query_limit: Count = 40
    """Queries run in a try, those of first choices before others."""
    as_written: bool = False
    """Read each relation in the direction of its triplet, as published; else as the graph has it."""
    retry_from: Literal["fault", "parsing", "linking", "construction"] = "fault"
    """The phase that a retry goes back to: where nothing came of it, or always the same."""
    ablation: Literal[
        "none", "no_uri_choice", "no_query_choice", "no_fallback", "boolean_fallback"
    ] = "none"
    """What it goes without (Table 3): the choice of vertices and relations, for which the nearest by name are
    taken; that of the query, for which the first is; or, of ``own_knowledge``, all or facts."""
