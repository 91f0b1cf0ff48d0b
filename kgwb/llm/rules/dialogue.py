"""Classifier and rephraser of rules: pronouns and omissions, resolved from the earlier turns."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from kgwb.kg.base import Graph
from kgwb.llm.rules.words import mentions, singular, tokens_of

PERSONAL = frozenset("he she him her his hers himself herself".split())
THING = frozenset("it its itself they them their theirs".split())
POSSESSIVE = frozenset("his her its their".split())
POINTING = frozenset("this that these those".split())
OPENERS = re.compile(r"^(and|but|or|what about|how about|and what about|also)\b[\s,]*", re.IGNORECASE)
QUESTION_WORDS = re.compile(r"^((in|on|at|by|for|of|from) )?(who|whom|what|which|when|where|how)\b", re.IGNORECASE)
THINGS = frozenset(
    "film movie book novel story series paper article work song album car model engine city town country company "
    "university journal conference person".split()
)
Turn = Mapping[str, Any]


def classify(question: str, kg: Graph | None) -> dict[str, str]:
    """Dependent if a pronoun has no name before it, something is left out, or nothing is named at all."""
    tokens = tokens_of(question)
    named = mentions(question, tokens, kg)
    for number, token in enumerate(tokens):
        pointing = token.lower == "there" or (token.lower in POINTING and not _relative(tokens, number))
        if token.lower in PERSONAL | THING or pointing:
            if not any(name.last <= number for name in named) and not _inside(named, number):
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
    tokens = tokens_of(question)
    named = mentions(question, tokens, kg)
    elliptic = OPENERS.match(question)
    previous = str(dialogue[-1]["question"])
    if elliptic and named and len(tokens) < 8 and dialogue[-1].get("about"):
        return {"question": previous.replace(str(dialogue[-1]["about"][0]), named[-1].text)}
    asked = question[elliptic.end() :].rstrip("?!. ") if elliptic else question
    if elliptic and not named and len(asked.split()) <= 3 and QUESTION_WORDS.match(previous):
        return {"question": asked[:1].upper() + asked[1:] + QUESTION_WORDS.sub("", previous)}
    made, replaced = _replace(question, dialogue, [n for n, _ in enumerate(tokens) if not _inside(named, n)])
    if not replaced and not named:
        made = _completed(question, _thing(dialogue))
    return {"question": OPENERS.sub("", made) if elliptic else made}


def _completed(question: str, about: str) -> str:
    """A question that names nothing, with what it is about: after "the film" or "the book", else at the end."""
    if not about:
        return question
    whole = re.search(r"\bthe (\w+)\b(?! of)", question, re.IGNORECASE)
    if whole and singular(whole.group(1).casefold()) in THINGS:
        return f"{question[: whole.end()]} {about}{question[whole.end() :]}"
    return f"{question.rstrip('?!. ')} of {about}?"


def _replace(question: str, dialogue: Sequence[Turn], free: Sequence[int]) -> tuple[str, bool]:
    tokens = tokens_of(question)
    parts: list[str] = []
    end = 0
    for number in free:
        token = tokens[number]
        stands_for, until = "", token.end
        if token.lower in PERSONAL:
            stands_for = _person(dialogue)
        elif token.lower in THING:
            stands_for = _thing(dialogue)
        elif token.lower == "there":
            stands_for = f"in {_latest(dialogue)}"
        elif token.lower in POINTING and not _relative(tokens, number):
            stands_for = _thing(dialogue)
            until = tokens[number + 1].end if number + 1 < len(tokens) else until
        if stands_for and token.start >= end:
            possessive = token.lower in POSSESSIVE and not (token.lower == "her" and number == len(tokens) - 1)
            parts += [question[end : token.start], stands_for + ("'s" if possessive else "")]
            end = until
    return "".join(parts) + question[end:], bool(parts)


def _person(dialogue: Sequence[Turn]) -> str:
    """The last answer to a "who", else what the last question was about."""
    for turn in reversed(dialogue):
        if _asks(turn, "who", "by whom") and len(turn["answers"]) == 1:
            return str(turn["answers"][0])
        if turn.get("about") and not _asks(turn, "who"):
            return str(turn["about"][-1])
    return _latest(dialogue)


def _thing(dialogue: Sequence[Turn]) -> str:
    """The last single thing answered to a "what" or "which", else the last that was asked about and is no person."""
    persons = {str(answer) for turn in dialogue if _asks(turn, "who", "by whom") for answer in turn["answers"]}
    for turn in reversed(dialogue):
        answers = [str(answer) for answer in turn["answers"]]
        if _asks(turn, "what", "which", "name") and len(answers) == 1 and not _number(answers[0]):
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


def _asks(turn: Turn, *words: str) -> bool:
    return any(re.match(rf"(in |on |at |of )?{word}\b", str(turn["question"]), re.IGNORECASE) for word in words)


def _number(text: str) -> bool:
    return bool(re.fullmatch(r"[-+\d.,:TZ/]+|true|false", text))


def _relative(tokens: Sequence[Any], number: int) -> bool:
    """Whether "that" opens a clause ("films that share") and does not point ("that film")."""
    return tokens[number].lower == "that" and number > 0 and tokens[number - 1].lower not in ("in", "of", "is", "was", "did", "wrote", "made")


def _inside(named: Sequence[Any], number: int) -> bool:
    return any(name.first <= number < name.last for name in named)
