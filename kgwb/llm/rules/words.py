"""The little English that rules knows: function words, word forms, and where the names in a question are."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from kgwb.kg.base import Graph

LEXICON = tomllib.loads((Path(__file__).parent / "lexicon.toml").read_text(encoding="utf-8"))


def _listed(*names: str) -> Iterator[frozenset[str]]:
    return (frozenset(LEXICON["words"][name].split()) for name in names)


WH, AUXILIARIES, HAVING, NATIONS = _listed("wh", "auxiliaries", "having", "nations")
LIGHT_VERBS, VERB_FORMS, BEING, ACTIVE = _listed("light_verbs", "verb_forms", "being", "active")
DETERMINERS, PREPOSITIONS, RELATIVES, FILLERS = _listed(
    "determiners", "prepositions", "relatives", "fillers"
)
IMPERATIVES, JOINING, NOUN_NEXT, ASKING = _listed("imperatives", "joining", "noun_next", "asking")
TIMES, PLACES, PRONOUNS, SMALL_TALK = _listed("times", "places", "pronouns", "small_talk")
POLITE, VAGUE = _listed("polite", "vague")
EVENTS = [*_listed("located", "sited")]
FUNCTION_WORDS = WH | AUXILIARIES | DETERMINERS | PREPOSITIONS | RELATIVES | FILLERS
NAMELESS = FUNCTION_WORDS | LIGHT_VERBS | PRONOUNS | SMALL_TALK
"""Words that name nothing, also where they begin a sentence."""
SENSE_OF = {word: name for name, words in LEXICON["senses"].items() for word in words.split()}
"""For a word of a known family the phrase that a graph tends to name the relation by."""
PUNCTUATION = r"\s\"'“”‘’«»()\[\]{}¿¡,;:?!"
MARKED = re.compile(r"\[([^\[\]]+)\]")
WORD = re.compile(rf"[^{PUNCTUATION}](?:\S*[^{PUNCTUATION}])?")


class Token(NamedTuple):
    """A word of the question without the punctuation around it, and where it stands."""

    text: str
    start: int
    end: int
    opens: bool = False
    """Whether a sentence begins with it."""

    @property
    def lower(self) -> str:
        return self.text.casefold()


class Mention(NamedTuple):
    """Tokens ``first`` to ``last`` (exclusive) that name something."""

    first: int
    last: int
    text: str


def tokens_of(text: str) -> list[Token]:
    """The words of a text; a possessive "'s" is a word of its own."""
    tokens: list[Token] = []
    for match in WORD.finditer(text):
        core, start = match.group(), match.start()
        opens = not tokens or text[:start].rstrip().endswith((".", "?", "!", ":"))
        owner = re.fullmatch(r"(.+)['’]s", core)
        if owner and core.casefold() not in WH:
            cut = start + len(owner[1])
            tokens += [Token(owner[1], start, cut, opens), Token("'s", cut, match.end())]
        else:
            core = core[:-1] if core.endswith(".") and core.count(".") == 1 else core
            tokens += [Token(core, start, start + len(core), opens)] if core else []
    return tokens


def singular(word: str) -> str:
    """The singular of a regular plural."""
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    return word[:-1] if word.endswith("s") and not word.endswith("ss") and len(word) > 3 else word


def is_verb(word: str) -> bool:
    """Whether a word looks like a verb form."""
    word = word.casefold()
    return word in VERB_FORMS or (word.endswith(("ed", "ing")) and len(word) > 4)


def mentions(text: str, tokens: Sequence[Token], kg: Graph | None) -> list[Mention]:
    """The names in a question, left to right: whole labels of the graph, and other capitalised runs.

    Square brackets settle it: what is marked is a name, and nothing else.
    """
    if settled := marked(text, tokens):
        return settled
    edges = [n for n, token in enumerate(tokens) if any(map(str.isalnum, token.text))]
    spans = [(a, b + 1) for a in edges for b in edges if a <= b < a + 18]
    texts = {(a, b): text[tokens[a].start : tokens[b - 1].end] for a, b in spans}
    labels = kg.exact(list(texts.values())) if kg else {}
    whole = [span for span in spans if texts[span] in labels and not of_nation(span, tokens)]
    likely = [span for span in whole if _means_a_name(tokens[slice(*span)])]
    runs = [
        run
        for run in _capital_runs(tokens)
        if not of_nation(run, tokens)
        and not (run[1] - run[0] == 1 and tokens[run[0]].lower in SENSE_OF)
        and (not _overlaps(run, likely) or (kg and kg.search(texts[run], 3).how == "all words"))
    ]
    chosen: list[tuple[int, int]] = []
    for span in sorted([*likely, *runs], key=lambda span: (span[1] - span[0], span), reverse=True):
        chosen += [] if _overlaps(span, chosen) else [span]
    chosen = chosen or _plain_name(tokens, whole)
    return [Mention(a, b, texts[a, b]) for a, b in sorted(chosen)]


def marked(text: str, tokens: Sequence[Token]) -> list[Mention]:
    """The names in square brackets."""
    return [
        Mention(inside[0], inside[-1] + 1, mark[1])
        for mark in MARKED.finditer(text)
        if (
            inside := [
                n for n, token in enumerate(tokens) if mark.start() <= token.start < mark.end()
            ]
        )
    ]


def _overlaps(span: tuple[int, int], others: Iterable[tuple[int, int]]) -> bool:
    return any(a < span[1] and span[0] < b for a, b in others)


def of_nation(span: tuple[int, int], tokens: Sequence[Token]) -> bool:
    """Whether a span is an adjective such as "German" before a noun; it names nothing."""
    word = tokens[span[0]].text
    nation = word[0].isupper() and (word.endswith(("ian", "ean", "ish", "ese")) or word in NATIONS)
    after = tokens[span[1]].text if span[1] - span[0] == 1 and span[1] < len(tokens) else ""
    return nation and after.islower() and after not in FUNCTION_WORDS and not is_verb(after)


def _means_a_name(words: Sequence[Token]) -> bool:
    """Whether words that are a label are meant as a name: by capitals, digits, or several unlikely words."""
    plain = any(w.lower in FUNCTION_WORDS or w.lower in SENSE_OF or is_verb(w.text) for w in words)
    return any(map(_named, words)) or (len(words) > 1 and not plain)


def _named(word: Token) -> bool:
    """Whether a word is written like part of a name; no function word that begins a sentence is."""
    unnamed = NAMELESS if word.opens else {"i"}
    return word.lower not in unnamed and any(char.isupper() or char.isdigit() for char in word.text)


def _capital_runs(tokens: Sequence[Token]) -> list[tuple[int, int]]:
    """Runs of capitalised words, joined by small words between them; not the first word of the question."""
    runs: list[tuple[int, int]] = []
    for n, token in enumerate(tokens):
        joined = n > 1 and tokens[n - 1].lower in JOINING
        if n and _named(token) and runs and runs[-1][1] >= n - joined and n - runs[-1][0] < 18:
            runs[-1] = (runs[-1][0], n + 1)
        elif (
            _named(token) and not token.text.isdigit() and (n or any(map(str.isdigit, token.text)))
        ):
            runs.append((n, n + 1))
    return runs


def _plain_name(tokens: Sequence[Token], whole: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """In a question without capitals: the longest label, the last of equals; no word for a kind of thing."""
    kinds = [n for n, token in enumerate(tokens) if token.lower in WH | DETERMINERS | PRONOUNS]
    kinds += [n for n in range(len(tokens)) if of_nation((n, n + 1), tokens)]
    names = [(a, b) for a, b in whole if tokens[a].lower not in FUNCTION_WORDS]
    names = [(a, b) for a, b in names if b - a > 1 or a - 1 not in kinds]
    return sorted(names, key=lambda span: (span[1] - span[0], span))[-1:]
