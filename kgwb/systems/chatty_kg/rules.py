"""What the model ``rules`` does for the agents of Chatty-KG."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from kgwb.kg.base import Graph
from kgwb.kg.embeddings import Embeddings
from kgwb.llm.rules import like, rule
from kgwb.llm.rules.grounding import read
from kgwb.llm.rules.words import AUXILIARIES, PREPOSITIONS, WH, Token, is_verb, mentions, tokens_of

PERSONAL = frozenset("he she him her his hers himself herself".split())
THING = frozenset("it its itself they them their theirs".split())
OPENERS = re.compile(r"^(and|but|or|what about|how about|and what about|also)\b[\s,]*", re.I)
ASKING = re.compile(r"^((in|on|at|by|for|of|from) )?(who|whom|what|which|when|where|how)\b( year)?", re.I)
WHOLE = re.compile(r"\bthe (film|movie|book|novel|series|paper|article|song|album|car|model)\b(?! of)", re.I)
PERSONS = re.compile(r"^(by )?(whom?|(which|what) (?!paper|number|river)\w*(or|er|ist|ian|man)s?)\b", re.I)
THINGS = re.compile(r"^((in|on|at|of|for) )?(what|which|name)\b", re.I)
YEAR = re.compile(r"\b\d{4}\b")
Turn = Mapping[str, Any]


@rule("chatty_kg/translator")
def translate(question: str) -> dict[str, Any]:
    """The question as it is: only English is read."""
    return {"question": question}


@rule("chatty_kg/qir")
def extract(question: str, kg: Graph | None, embeddings: Embeddings) -> dict[str, Any]:
    """The triples that the grammar reads; what it does not read it refuses by itself."""
    return extract_published(question, kg, embeddings) | {"beyond": []}


@rule("chatty_kg/qir_published")
def extract_published(question: str, kg: Graph | None, embeddings: Embeddings) -> dict[str, Any]:
    """The triples that the grammar reads."""
    facts, target, kind = read(question, kg, embeddings)
    ends = [*dict.fromkeys(end for subject, _, object_ in facts for end in (subject, object_))]
    return {
        "entities": [end for end in ends if not end.startswith("?")],
        "unknowns": [end for end in ends if end.startswith("?")],
        "triples": [{"subject": s, "predicate": p, "object": o} for s, p, o in facts],
        "target": "" if kind == "boolean" else target,
        "question_type": kind,
    }


@rule("chatty_kg/predicate_selection")
def by_triple(relations: Sequence[Any], embeddings: Embeddings) -> dict[str, Any]:
    """For each triple the predicates named most like its relation; none if none is like enough."""
    kept = [like(each["triple"][1], each["predicates"], embeddings) for each in relations]
    return {"reasoning": "the names most like each relation", "predicates": kept}


@rule("chatty_kg/predicate_selection_published")
def pooled(
    question: str, predicates: Sequence[str], kg: Graph | None, embeddings: Embeddings
) -> dict[str, Any]:
    """The predicates named most like any relation of the question."""
    relations = [relation for _, relation, _ in read(question, kg, embeddings).facts]
    kept = [name for relation in relations for name in like(relation, predicates, embeddings)]
    return {"reasoning": "the names most like each relation", "predicates": list(dict.fromkeys(kept))}


@rule("chatty_kg/answer_writer")
def write(question: str, answer: Sequence[str]) -> dict[str, Any]:
    """The question and its answers in a row."""
    return {"sentence": " ".join([question, *answer])}


@rule("chatty_kg/classifier")
def classify(question: str, kg: Graph | None) -> dict[str, Any]:
    """Dependent if a pronoun has no name before it, something is left out, or nothing is named at all."""
    tokens = tokens_of(question)
    named = mentions(question, tokens, kg)
    for number, token in enumerate(tokens):
        inside = tokens[0].lower not in AUXILIARIES and any(name.first <= number for name in named)
        if _kind(tokens, number) and not inside:
            return {"reason": f"{token.text!r} stands for something said before", "label": "dependent"}
    if OPENERS.match(question) and len(tokens) < 8:
        return {"reason": f"{tokens[0].text!r} continues an earlier question", "label": "dependent"}
    if not named:
        return {"reason": "it names nothing that it could be about", "label": "dependent"}
    return {"reason": f"it names {named[0].text!r}", "label": "self-contained"}


@rule("chatty_kg/rephraser")
def rephrase(question: str, dialogue: Sequence[Turn], kg: Graph | None) -> dict[str, Any]:
    """The question with its pronouns replaced by what they most likely stand for."""
    if not dialogue:
        return {"question": question}
    asked = OPENERS.sub("", question)
    tokens = tokens_of(asked)
    named = mentions(asked, tokens, kg)
    previous, about = str(dialogue[-1]["question"]), dialogue[-1].get("about")
    if asked != question and len(tokens) < 8:
        year = YEAR.search(asked)
        if named and about:  # and X?
            return {"question": previous.replace(str(about[0]), named[-1].text)}
        if year and YEAR.search(previous):  # and the one from 2019?
            return {"question": YEAR.sub(year.group(), previous)}
        if len(tokens) <= 3 and not any(is_verb(t.text) or t.lower in AUXILIARIES for t in tokens):
            return {"question": asked.rstrip("?!. ").capitalize() + ASKING.sub("", previous)}  # and where?
    rewritten, end = "", 0
    for number, token in enumerate(tokens):
        kind = _kind(tokens, number)
        if kind and not any(name.first <= number < name.last for name in named):
            after = tokens[number + 1 : number + 2]
            owns = "'s" if token.lower in ("his", "her", "its", "their") and after else ""
            rewritten += asked[end : token.start] + "in " * (kind == "place") + _meant(dialogue, kind) + owns
            end = after[0].end if kind == "pointed at" and after else token.end
    rewritten += asked[end:]
    if not end and not named:  # it names nothing: what it is about comes after "the film", else at the end
        whole, thing = WHOLE.search(rewritten), _meant(dialogue, "thing")
        place = whole.end() if whole else len(rewritten.rstrip("?!. "))
        rewritten = f"{rewritten[:place]}{'' if whole else ' of'} {thing}{rewritten[place:]}"
    return {"question": rewritten[:1].upper() + rewritten[1:]}


def _kind(tokens: Sequence[Token], number: int) -> str:
    """What a word stands for if it is a pronoun: a person, a thing, a place, or a thing that it points at."""
    word, before = tokens[number].lower, tokens[number - 1].lower if number else "of"
    if word in PERSONAL or word in THING:
        return "person" if word in PERSONAL else "thing"
    if word == "there" and number > 1:
        return "place"
    pointing = is_verb(before) or before in AUXILIARIES | PREPOSITIONS | WH  # no clause: "films that share"
    return "pointed at" if pointing and word in ("this", "that", "these", "those") else ""


def _meant(dialogue: Sequence[Turn], kind: str) -> str:
    """The newest single answer or name asked about that can be what such a pronoun stands for."""
    persons = {a for turn in dialogue if PERSONS.match(turn["question"]) for a in turn["answers"]}
    for turn in reversed(dialogue):
        about = list(turn.get("about", ()))
        single = [a for a in turn["answers"] if not re.fullmatch(r"[-+\d.,:TZ/]+|true|false", str(a))]
        single = single if len(turn["answers"]) == 1 else []
        if kind == "person":
            meant = single if PERSONS.match(turn["question"]) else about[::-1]
        else:
            single = single if kind == "place" or THINGS.match(turn["question"]) else []
            meant = [name for name in (*single, *about) if kind == "place" or name not in persons]
        if meant:
            return str(meant[0])
    return "" if kind == "place" else _meant(dialogue, "place")
