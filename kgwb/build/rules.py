"""How the model ``rules`` reads a question: its words, mentions and grammar.

``docs/reference/build_parts.md`` tells each name.
"""

from kgwb.llm.rules.grammar import ParsedQuestion, RelationStep, leads_to_agent, parse_question
from kgwb.llm.rules.mentions import Mention, bracketed_mentions, find_mentions
from kgwb.llm.rules.predicates import (
    NAME_SEPARATOR,
    SPELLING_WEIGHT,
    TIME_AND_PLACE_WORDS,
    find_similar_predicates,
)
from kgwb.llm.rules.reading import (
    CLASS_RELATION,
    find_not_understood,
    find_unread_form,
    find_unread_parts,
    ground_question,
)
from kgwb.llm.rules.words import (
    AUXILIARIES,
    DETERMINERS,
    FILLERS,
    FUNCTION_WORDS,
    POLITE_SUBJECTS,
    PREPOSITIONS,
    PRONOUNS,
    RELATIVES,
    WH_WORDS,
    Token,
    is_verb,
    looks_english,
    tokenize,
)
from kgwb.systems.rules import RULES, choose_vertex

__all__ = [
    "AUXILIARIES",
    "CLASS_RELATION",
    "DETERMINERS",
    "FILLERS",
    "FUNCTION_WORDS",
    "NAME_SEPARATOR",
    "POLITE_SUBJECTS",
    "PREPOSITIONS",
    "PRONOUNS",
    "RELATIVES",
    "RULES",
    "SPELLING_WEIGHT",
    "TIME_AND_PLACE_WORDS",
    "WH_WORDS",
    "Mention",
    "ParsedQuestion",
    "RelationStep",
    "Token",
    "bracketed_mentions",
    "choose_vertex",
    "find_mentions",
    "find_not_understood",
    "find_similar_predicates",
    "find_unread_form",
    "find_unread_parts",
    "ground_question",
    "is_verb",
    "leads_to_agent",
    "looks_english",
    "parse_question",
    "tokenize",
]
