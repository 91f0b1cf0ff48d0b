"""Old names of public things, which still work for one release and warn.

``docs/renamed.md`` lists all renamed things, also those that were never public.
"""

from __future__ import annotations

import pkgutil
import warnings
from collections.abc import Callable, Mapping
from typing import Any

RENAMED: Mapping[str, Mapping[str, str]] = {
    "kgwb.bench": {
        "Bench": "kgwb.bench:Benchmark",
        "Setup": "kgwb.bench:BenchSetup",
        "compare": "kgwb.bench:compare_results",
        "costs": "kgwb.bench:summarize_costs",
        "retention": "kgwb.bench:compute_retention",
        "where_lost": "kgwb.bench:locate_losses",
        "with_gold": "kgwb.bench:add_gold_answers",
        "with_queries": "kgwb.bench:add_gold_queries",
    },
    "kgwb.bench.figures": {
        "Measured": "kgwb.bench.figures:LoadedResults",
        "quality": "kgwb.bench.figures:make_quality_table",
    },
    "kgwb.bench.lab": {
        "Lab": "kgwb.bench.lab:RetryExperiment",
    },
    "kgwb.flow": {
        "Kind": "kgwb.flow:AnswerKind",
        "NOT_HERE": "kgwb.flow:NOT_IN_GRAPH",
        "Retrieved": "kgwb.flow:RetrievedCandidates",
        "Titled": "kgwb.records:Record",
        "Triples": "kgwb.terms:Triples",
        "UNGROUNDED": "kgwb.flow:UNGROUNDED_NOTE",
        "from_data": "kgwb.records:from_data",
        "to_data": "kgwb.records:to_data",
    },
    "kgwb.kg": {
        "Found": "kgwb.kg:SearchResult",
        "Limits": "kgwb.kg:QueryLimits",
        "Rows": "kgwb.kg:ResultSet",
        "SAMPLES": "kgwb.kg:SAMPLE_NAMES",
        "is_endpoint": "kgwb.kg:is_endpoint_url",
    },
    "kgwb.kg.queries": {
        "degrees": "kgwb.kg.queries:count_degrees",
        "describe": "kgwb.kg.queries:describe_vertices",
        "predicates": "kgwb.kg.queries:find_predicates",
        "support": "kgwb.kg.queries:find_support_by_value",
        "support_of": "kgwb.kg.queries:find_support_by_row",
    },
    "kgwb.kg.survey": {
        "survey": "kgwb.kg.survey:survey_graph",
        "tries": "kgwb.kg.suggested_questions:suggest_questions",
    },
    "kgwb.labs.recorded": {
        "of_system": "kgwb.labs.recorded:answers_of_system",
        "questions": "kgwb.labs.recorded:load_questions",
        "systems": "kgwb.labs.recorded:recorded_systems",
    },
    "kgwb.llm": {
        "Asked": "kgwb.llm:PendingRequest",
        "available": "kgwb.llm:check_models",
    },
    "kgwb.run": {
        "remembered": "kgwb.run:remember_turn",
    },
    "kgwb.systems": {
        "names": "kgwb.systems:list_systems",
        "system": "kgwb.systems:load_system",
    },
    "kgwb.systems.chatty_kg.records": {
        "Classified": "kgwb.systems.chatty_kg.records:Classification",
        "Generated": "kgwb.systems.chatty_kg.records:GeneratedQueries",
        "Linked": "kgwb.systems.chatty_kg.records:LinkingResult",
        "Rephrased": "kgwb.systems.chatty_kg.records:RephrasedQuestion",
        "Selection": "kgwb.systems.chatty_kg.records:QuerySelection",
    },
    "kgwb.systems.dog.records": {
        "Filled": "kgwb.systems.dog.records:FilledTriples",
        "Filtered": "kgwb.systems.dog.records:FilteredRelation",
        "Focus": "kgwb.systems.dog.records:HopInput",
        "Simplified": "kgwb.systems.dog.records:SimplifiedQuestion",
        "Solved": "kgwb.systems.dog.records:SolvedHop",
        "Topics": "kgwb.systems.dog.records:TopicEntities",
        "Tried": "kgwb.systems.dog.records:TriedAnswer",
    },
    "kgwb.systems.linking": {
        "problems": "kgwb.systems.linking:find_link_problems",
        "retrieve": "kgwb.systems.linking:retrieve_candidates",
        "select": "kgwb.systems.linking:select_vertex",
    },
    "kgwb.systems.queries": {
        "labels_of": "kgwb.systems.queries:label_terms",
        "result_of": "kgwb.systems.queries:execute_sparql",
        "supports": "kgwb.systems.queries:find_row_support",
    },
    "kgwb.systems.ragonite.records": {
        "Cited": "kgwb.systems.ragonite.records:CitedAnswer",
    },
}
"""For each module: the present place of its old names, as "module:name"."""


def renamed_names(module: str) -> Callable[[str], Any]:
    """Return a ``__getattr__`` for a module, by which its old names in ``RENAMED`` still work.

    It returns what an old name is called now, with a DeprecationWarning, and raises AttributeError
    for any other name.
    """

    def __getattr__(name: str) -> Any:
        """Return what has replaced the old name, and warn. Raises AttributeError for others."""
        place = RENAMED.get(module, {}).get(name)
        if place is None:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        _warn(f"{module}.{name}", place.replace(":", "."), stacklevel=3)
        return pkgutil.resolve_name(place)

    return __getattr__


class RenamedAttribute:
    """An old name of an attribute or method. Using it warns, and returns the one of the new name.

    A class keeps an old name by ``forget = RenamedAttribute("forget", "new_dialogue")``.
    """

    def __init__(self, old_name: str, new_name: str) -> None:
        self.old_name = old_name
        self.new_name = new_name

    def __get__(self, instance: object, owner: type) -> Any:
        class_name = owner.__name__
        _warn(f"{class_name}.{self.old_name}", f"{class_name}.{self.new_name}", stacklevel=3)
        return getattr(owner if instance is None else instance, self.new_name)


def _warn(old_name: str, new_name: str, stacklevel: int) -> None:
    """Warn that an old name is used, and name the new one (DeprecationWarning).

    ``stacklevel`` is as for ``warnings.warn``: it leads to the line that uses the old name.
    """
    warnings.warn(
        f"{old_name} is now {new_name}; the old name will be removed in the next release",
        DeprecationWarning,
        stacklevel=stacklevel,
    )
