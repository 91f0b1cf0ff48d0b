"""What the notebooks of the labs show. It has no solutions, so that students may look at all of it."""

from __future__ import annotations

import json
from collections.abc import Sequence

from kgwb.systems.chatty_kg.qir import QirReply, TripleReply

__all__ = ["CLAIMS", "DIALOGUE", "REPLIES", "QirReply", "TripleReply"]

DIALOGUE = (
    "Who is the author of Harry Potter?",
    "When was its first movie released?",
    "Which films directed by Christopher Nolan star Michael Caine?",
    "And the one from 2019?",
    "What else has he starred in?",
)
"""The questions of the first task. Students number them from 1."""


def format_reply(entities: Sequence[str], *triples: tuple[str, str, str]) -> str:
    """Return a reply of the QIR agent as JSON text, with these entities and (subject, predicate, object) triples.

    The only unknown and target is ?who, and the question type is "list".
    """
    parts = ("subject", "predicate", "object")
    reply = {
        "entities": entities,
        "unknowns": ["?who"],
        "triples": [dict(zip(parts, triple, strict=True)) for triple in triples],
        "target": "?who",
        "question_type": "list",
        "beyond": [],
    }
    return json.dumps(reply)


REPLIES = (
    format_reply(["Psycho"]),
    format_reply(["Psycho"], ("Psycho", "shoe size", "?who")),
    "Sure! The composer of Psycho is Bernard Herrmann.",
    format_reply([], ("?film", "composer", "?who")),
    f"Here you are:\n```json\n{format_reply(['Psycho'], ('Psycho', 'composer', '?who'))}\n```",
    format_reply(["Psycho"], ("Psycho", "composer", "?who")).replace('"list"', '"person"'),
    format_reply(["Psycho"], ("Psycho", "composer", "")),
    format_reply(["Psycho"], ("?who", "composer", "Psycho")),
    format_reply(["Psycho"], ("Psycho", "composer", "?who")).replace(', "beyond": []', ""),
)
"""The replies of the third task of lab 2. Students number them from 1, and find those that are rejected."""
CLAIMS = ("A", "B", "C", "D", "E", "F")
"""Letters of the claims of the papers. The text of a claim has the key "claims.A" and so on."""
