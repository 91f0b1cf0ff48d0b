"""Classifier and rephraser of rules: pronouns and omissions, resolved from the earlier turns."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from kgwb.kg.base import Graph
from kgwb.llm.rules.words import AUXILIARIES, PREPOSITIONS, WH, Mention, Token, is_verb, mentions, tokens_of

PERSONAL = frozenset(("he", "she", "him", "her", "his", "hers", "himself", "herself"))
THING = frozenset(("it", "its", "itself", "they", "them", "their", "theirs"))
POSSESSIVE = frozenset(("his", "her", "its", "their"))
POINTING = frozenset(("this", "that", "these", "those"))
OPENERS = re.compile(r"^(and|but|or|what about|how about|and what about|also)\b[\s,]*", re.IGNORECASE)
QUESTION_WORDS = re.compile(
    r"^((in|on|at|by|for|of|from) )?(who|whom|what|which|when|where|how)\b( year)?", re.I
)
WHOLE = re.compile(
    r"\bthe (film|movie|book|novel|story|series|paper|article|song|album|car|model|city|company)\b(?! of)",
    re.I,
)
PERSONS = re.compile(
    r"^(by )?(who|whom|(which|what) (?!paper|number|chapter|river)\w*(or|er|ist|ian|man|woman|person)s?)\b",
    re.I,
)
THINGS = re.compile(r"^((in|on|at|of|for) )?(what|which|name)\b", re.I)
Turn = Mapping[str, Any]


def classify(question: str, kg: Graph | None) -> dict[str, str]:
    """Dependent if a pronoun has no name before it, something is left out, or nothing is named at all."""
    tokens = tokens_of(question)
    named = mentions(question, tokens, kg)
    for number, token in enumerate(tokens):
        pointing = (token.lower == "there" and number > 1) or _points(tokens, number)
        inside = tokens[0].lower not in AUXILIARIES and any(name.first <= number for name in named)
        if (token.lower in PERSONAL | THING or pointing) and not inside:
            return {"reason": f"{token.text!r} stands for something said before", "label": "dependent"}
    if OPENERS.match(question) and len(tokens) < 8:
        return {"reason": f"{tokens[0].text!r} continues an earlier question", "label": "dependent"}
    if not named:
        return {"reason": "it names nothing that it could be about", "label": "dependent"}
    return {"reason": f"it names {named[0].text!r}", "label": "self-contained"}


def rephrase(question: str, dialogue: Sequence[Turn], kg: Graph | None) -> dict[str, str]:
    """The question with its pronouns replaced by what they most likely stand for."""
    if not dialogue:
        return {"question": question}
    asked = OPENERS.sub("", question)
    tokens = tokens_of(asked)
    named = mentions(asked, tokens, kg)
    previous = str(dialogue[-1]["question"])
    year = re.search(r"\b\d{4}\b", asked)
    if asked != question and len(tokens) < 8:
        if named and dialogue[-1].get("about"):  # and X?
            return {"question": previous.replace(str(dialogue[-1]["about"][0]), named[-1].text)}
        if year and re.search(r"\b\d{4}\b", previous):  # and the one from 2019?
            return {"question": re.sub(r"\b\d{4}\b", year.group(), previous)}
        if len(tokens) <= 3 and not any(
            is_verb(token.text) or token.lower in AUXILIARIES for token in tokens
        ):
            rest = QUESTION_WORDS.sub("", previous)  # and where?
            return {"question": asked[:1].upper() + asked[1:].rstrip("?!. ") + rest}
    made = _replaced(asked, tokens, named, dialogue)
    if made == asked and not named:
        made = _completed(asked, _thing(dialogue))
    return {"question": made[:1].upper() + made[1:]}


def _completed(question: str, about: str) -> str:
    """A question that names nothing, with what it is about: after "the film", else at the end."""
    whole = WHOLE.search(question)
    if whole and about:
        return f"{question[: whole.end()]} {about}{question[whole.end() :]}"
    return f"{question.rstrip('?!. ')} of {about}?" if about else question


def _replaced(
    question: str, tokens: Sequence[Token], named: Sequence[Mention], dialogue: Sequence[Turn]
) -> str:
    parts: list[str] = []
    end = 0
    for number, token in enumerate(tokens):
        if token.start < end or any(name.first <= number < name.last for name in named):
            continue
        stands_for, until = "", token.end
        if token.lower in PERSONAL:
            stands_for = _person(dialogue)
        elif token.lower in THING:
            stands_for = _thing(dialogue)
        elif token.lower == "there" and number > 1:
            stands_for = f"in {_latest(dialogue)}"
        elif _points(tokens, number):
            stands_for = _thing(dialogue)
            until = tokens[number + 1].end if number + 1 < len(tokens) else until
        if stands_for:
            owns = token.lower in POSSESSIVE and number + 1 < len(tokens)
            parts += [question[end : token.start], stands_for + ("'s" if owns else "")]
            end = until
    return "".join(parts) + question[end:]


def _person(dialogue: Sequence[Turn]) -> str:
    """The last answer to a "who", else what the last question was about."""
    for turn in reversed(dialogue):
        if PERSONS.match(str(turn["question"])) and len(turn["answers"]) == 1:
            return str(turn["answers"][0])
        if turn.get("about") and not PERSONS.match(str(turn["question"])):
            return str(turn["about"][-1])
    return _latest(dialogue)


def _thing(dialogue: Sequence[Turn]) -> str:
    """The last single thing answered to "what" or "which", else the last asked about that is no person."""
    asking = [turn for turn in dialogue if PERSONS.match(str(turn["question"]))]
    persons = {str(answer) for turn in asking for answer in turn["answers"]}
    for turn in reversed(dialogue):
        answers = [str(answer) for answer in turn["answers"]]
        if (
            THINGS.match(str(turn["question"]))
            and turn not in asking
            and len(answers) == 1
            and not _number(answers[0])
        ):
            return answers[0]
        things = [str(name) for name in turn.get("about", ()) if name not in persons]
        if things:
            return things[0]
    return _latest(dialogue)


def _latest(dialogue: Sequence[Turn]) -> str:
    for turn in reversed(dialogue):
        if len(turn["answers"]) == 1 and not _number(str(turn["answers"][0])):
            return str(turn["answers"][0])
        if turn.get("about"):
            return str(turn["about"][0])
    return ""


def _number(text: str) -> bool:
    return bool(re.fullmatch(r"[-+\d.,:TZ/]+|true|false", text))


def _points(tokens: Sequence[Token], number: int) -> bool:
    """Whether a word points ("that film") and does not open a clause ("films that share")."""
    before = tokens[number - 1].lower if number else "of"
    return tokens[number].lower in POINTING and (is_verb(before) or before in AUXILIARIES | PREPOSITIONS | WH)
