"""What the model ``rules`` does for the agents of Chatty-KG."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from kgwb.kg.base import Graph
from kgwb.kg.embeddings import Embeddings
from kgwb.llm.base import Rule
from kgwb.llm.rules import find_similar_predicates
from kgwb.llm.rules.grounding import ground_question
from kgwb.llm.rules.words import (
    AUXILIARIES,
    PREPOSITIONS,
    PRONOUNS,
    WH_WORDS,
    Token,
    find_mentions,
    is_verb,
    tokenize,
)

PERSONAL_PRONOUNS = frozenset("he she him her his hers himself herself".split())
DEMONSTRATIVES = frozenset(("this", "that", "these", "those"))
FOLLOW_UP_OPENING = re.compile(
    r"^(and|but|or|what about|how about|and what about|also)\b[\s,]*", re.I
)
QUESTION_OPENING = re.compile(r"^(\w+ )?(whom?|what|which|when|where|how)\b( year)?", re.I)
TYPE_NOUNS = "film|movie|book|novel|series|paper|article|song|album|car|model"
INSERTION_POINT = re.compile(rf"\bthe ({TYPE_NOUNS})\b(?! of)|(?<![?!. ])(?=[?!. ]*$)", re.I)
"""What a name is put behind in a question that names nothing: "the film", else its last word."""
ASKS_FOR_PERSON = re.compile(
    r"^(by )?(whom?|(which|what) (?!paper|number|river)\w*(or|er|ist|ian|man)s?)\b", re.I
)
ASKS_FOR_THING = re.compile(r"^(\w+ )?(what|which|name)\b", re.I)
YEAR = re.compile(r"\b\d{4}\b")
NUMBER_OR_DATE = re.compile(r"[-+\d.,:TZ/]+|true|false")
TurnData = Mapping[str, Any]


def translate_question(question: str) -> dict[str, Any]:
    """The question as it is: only English is read."""
    return {"question": question}


def extract_qir(question: str, kg: Graph | None, embeddings: Embeddings) -> dict[str, Any]:
    """The triples that the grammar reads; what it does not read it refuses by itself."""
    return extract_published_qir(question, kg, embeddings) | {"beyond": []}


def extract_published_qir(
    question: str, kg: Graph | None, embeddings: Embeddings
) -> dict[str, Any]:
    """The triples that the grammar reads."""
    facts, target, kind = ground_question(question, kg, embeddings)
    ends = [*dict.fromkeys(end for subject, _, object_ in facts for end in (subject, object_))]
    return {
        "entities": [end for end in ends if not end.startswith("?")],
        "unknowns": [end for end in ends if end.startswith("?")],
        "triples": [{"subject": s, "predicate": p, "object": o} for s, p, o in facts],
        "target": "" if kind == "boolean" else target,
        "question_type": kind,
    }


def select_predicates(relations: Sequence[Any], embeddings: Embeddings) -> dict[str, Any]:
    """For each triple the predicates named most like its relation; none if none is like enough."""
    kept = [
        find_similar_predicates(each["triple"][1], each["predicates"], embeddings)
        for each in relations
    ]
    return {"reasoning": "the names most like each relation", "predicates": kept}


def select_pooled_predicates(
    question: str, predicates: Sequence[str], kg: Graph | None, embeddings: Embeddings
) -> dict[str, Any]:
    """The predicates named most like any relation of the question."""
    relations = [relation for _, relation, _ in ground_question(question, kg, embeddings).facts]
    kept = [
        name
        for relation in relations
        for name in find_similar_predicates(relation, predicates, embeddings)
    ]
    return {
        "reasoning": "the names most like each relation",
        "predicates": list(dict.fromkeys(kept)),
    }


def write_sentence(question: str, answer: Sequence[str]) -> dict[str, Any]:
    """The question and its answers in a row."""
    return {"sentence": " ".join([question, *answer])}


def classify_question(question: str, kg: Graph | None) -> dict[str, Any]:
    """Dependent if a pronoun has no name before it, something is left out, or nothing is named at all."""
    tokens = tokenize(question)
    named = find_mentions(question, tokens, kg)
    for number, token in enumerate(tokens):
        inside = tokens[0].lowercase not in AUXILIARIES and any(
            name.start <= number for name in named
        )
        if _classify_pronoun(tokens, number) and not inside:
            return {
                "reason": f"{token.text!r} stands for something said before",
                "label": "dependent",
            }
    if not named or (FOLLOW_UP_OPENING.match(question) and len(tokens) < 8):
        return {"reason": "it does not say all that it could be about", "label": "dependent"}
    return {"reason": f"it names {named[0].text!r}", "label": "self-contained"}


def rephrase_question(
    question: str, dialogue: Sequence[TurnData], kg: Graph | None
) -> dict[str, Any]:
    """The question with its pronouns replaced by what they most likely stand for."""
    if not dialogue:
        return {"question": question}
    asked = FOLLOW_UP_OPENING.sub("", question)
    tokens = tokenize(asked)
    named = find_mentions(asked, tokens, kg)
    outside = [
        n for n in range(len(tokens)) if not any(name.start <= n < name.end for name in named)
    ]
    words = {tokens[n].lowercase for n in outside}
    if asked != question and not (
        words & AUXILIARIES or any(map(is_verb, words))
    ):  # it leaves the rest out
        previous, about, year = (
            dialogue[-1]["question"],
            dialogue[-1].get("about"),
            YEAR.search(asked),
        )
        if named and about:  # and X?
            return {"question": previous.replace(about[0], named[-1].text)}
        if year and YEAR.search(previous):  # and the one from 2019?
            return {"question": YEAR.sub(year.group(), previous)}
        if QUESTION_OPENING.match(asked):  # and where?
            return {
                "question": asked.rstrip("?!. ").capitalize() + QUESTION_OPENING.sub("", previous)
            }
    pronouns = [n for n in outside if _classify_pronoun(tokens, n)]
    for n in reversed(pronouns):
        token, after, kind = tokens[n], tokens[n + 1 : n + 2], _classify_pronoun(tokens, n)
        owns = "'s" if token.lowercase in ("his", "her", "its", "their") and after else ""
        end = after[0].end if token.lowercase in DEMONSTRATIVES and after else token.end
        put = "in " * (kind == "place") + _resolve_pronoun(dialogue, kind) + owns
        asked = asked[: token.start] + put + asked[end:]
    if not pronouns and not named:
        asked = INSERTION_POINT.sub(
            lambda match: f"{match[0] or ' of'} {_resolve_pronoun(dialogue, 'thing')}",
            asked,
            count=1,
        )
    return {"question": asked[:1].upper() + asked[1:]}


def _classify_pronoun(tokens: Sequence[Token], number: int) -> str:
    """What a word stands for if it is a pronoun: a person, a thing or a place."""
    word, before = tokens[number].lowercase, tokens[number - 1].lowercase if number else "is"
    clause = word in DEMONSTRATIVES and not (
        is_verb(before) or before in AUXILIARIES | PREPOSITIONS | WH_WORDS
    )
    if clause or word not in PRONOUNS or (word == "there" and before in AUXILIARIES):
        return ""  # films that share; are there films
    return "person" if word in PERSONAL_PRONOUNS else "place" if word == "there" else "thing"


def _resolve_pronoun(dialogue: Sequence[TurnData], kind: str) -> str:
    """The newest single answer or name asked about that can be what such a pronoun stands for."""
    persons = {
        a for turn in dialogue if ASKS_FOR_PERSON.match(turn["question"]) for a in turn["answers"]
    }
    mentions: list[tuple[str, str]] = []
    for turn in reversed(dialogue):
        person, thing = (
            ASKS_FOR_PERSON.match(turn["question"]),
            ASKS_FOR_THING.match(turn["question"]),
        )
        asks = "person" if person else "thing" if thing else "place"
        single = turn["answers"] if len(turn["answers"]) == 1 else []
        mentions += [(asks, answer) for answer in single if not NUMBER_OR_DATE.fullmatch(answer)]
        about = "thing" if person else kind  # who directed it
        mentions += [
            ("person" if name in persons else about, name) for name in turn.get("about", ())
        ]
    fitting = [name for what, name in mentions if kind in (what, "place")]
    return next(iter(fitting or [name for _, name in mentions]), "")


RULES: Mapping[str, Rule] = {
    "chatty_kg/translator": translate_question,
    "chatty_kg/qir": extract_qir,
    "chatty_kg/qir_published": extract_published_qir,
    "chatty_kg/predicate_selection": select_predicates,
    "chatty_kg/predicate_selection_published": select_pooled_predicates,
    "chatty_kg/answer_writer": write_sentence,
    "chatty_kg/classifier": classify_question,
    "chatty_kg/rephraser": rephrase_question,
}
"""For each prompt, the function by which the model ``rules`` answers it."""
