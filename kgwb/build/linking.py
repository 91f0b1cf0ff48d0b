"""What systems choose between: candidates, labels and how alike they are.

``docs/reference/build_parts.md`` tells each name.
"""

from kgwb.kg.label_search import SAME_WORDS_SCORE, score_label
from kgwb.systems.linking import (
    CandidateNumber,
    compute_similarities,
    find_candidate,
    find_label,
    find_relation_names,
    is_decided_unasked,
    is_exact_match,
    number_candidates,
    search_candidates,
    tell_rows_apart,
)

__all__ = [
    "SAME_WORDS_SCORE",
    "CandidateNumber",
    "compute_similarities",
    "find_candidate",
    "find_label",
    "find_relation_names",
    "is_decided_unasked",
    "is_exact_match",
    "number_candidates",
    "score_label",
    "search_candidates",
    "tell_rows_apart",
]
