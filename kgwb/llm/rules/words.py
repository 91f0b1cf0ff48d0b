"""The little English that rules knows: function words, word forms, and where the names in a question are."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from kgwb.kg.base import Graph

LEXICON = tomllib.loads((Path(__file__).parent / "lexicon.toml").read_text(encoding="utf-8"))


def _word_sets(*names: str) -> Iterator[frozenset[str]]:
    return (frozenset(LEXICON["words"][name].split()) for name in names)


WH_WORDS, AUXILIARIES, HAVE_FORMS, NATIONALITIES = _word_sets(
    "wh", "auxiliaries", "having", "nations"
)
LIGHT_VERBS, VERB_FORMS, BE_FORMS, ACTIVE_AUXILIARIES = _word_sets(
    "light_verbs", "verb_forms", "being", "active"
)
DETERMINERS, PREPOSITIONS, RELATIVES, FILLERS = _word_sets(
    "determiners", "prepositions", "relatives", "fillers"
)
IMPERATIVES, NAME_CONNECTORS, WORDS_BEFORE_NOUNS, QUESTION_WORDS = _word_sets(
    "imperatives", "joining", "noun_next", "asking"
)
TIME_WORDS, PLACE_WORDS, PRONOUNS, SMALL_TALK_WORDS = _word_sets(
    "times", "places", "pronouns", "small_talk"
)
POLITE_SUBJECTS, VAGUE_WORDS = _word_sets("polite", "vague")
EVENT_WORDS = [*_word_sets("located", "sited")]
FUNCTION_WORDS = WH_WORDS | AUXILIARIES | DETERMINERS | PREPOSITIONS | RELATIVES | FILLERS
NON_NAME_WORDS = FUNCTION_WORDS | LIGHT_VERBS | PRONOUNS | SMALL_TALK_WORDS
"""Words that name nothing, also where they begin a sentence."""
RELATION_PHRASES = {
    word: name for name, words in LEXICON["senses"].items() for word in words.split()
}
"""For a word of a known family the phrase that a graph tends to name the relation by."""
PUNCTUATION = r"\s\"'“”‘’«»()\[\]{}¿¡,;:?!"
BRACKETED_NAME = re.compile(r"\[([^\[\]]+)\]")
WORD = re.compile(rf"[^{PUNCTUATION}](?:\S*[^{PUNCTUATION}])?")


class Token(NamedTuple):
    """A word of the question without the punctuation around it, and where it stands."""

    text: str
    start: int
    end: int
    begins_sentence: bool = False
    """Whether a sentence begins with it."""

    @property
    def lowercase(self) -> str:
        return self.text.casefold()


class Mention(NamedTuple):
    """Tokens ``first`` to ``last`` (exclusive) that name something."""

    start: int
    end: int
    text: str


def tokenize(text: str) -> list[Token]:
    """The words of a text; a possessive "'s" is a word of its own."""
    tokens: list[Token] = []
    for match in WORD.finditer(text):
        core, start = match.group(), match.start()
        opens = not tokens or text[:start].rstrip().endswith((".", "?", "!", ":"))
        owner = re.fullmatch(r"(.+)['’]s", core)
        if owner and core.casefold() not in WH_WORDS:
            cut = start + len(owner[1])
            tokens += [Token(owner[1], start, cut, opens), Token("'s", cut, match.end())]
        else:
            core = core[:-1] if core.endswith(".") and core.count(".") == 1 else core
            tokens += [Token(core, start, start + len(core), opens)] if core else []
    return tokens


def singularize(word: str) -> str:
    """The singular of a regular plural."""
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    return word[:-1] if word.endswith("s") and not word.endswith("ss") and len(word) > 3 else word


def is_verb(word: str) -> bool:
    """Whether a word looks like a verb form."""
    word = word.casefold()
    return word in VERB_FORMS or (word.endswith(("ed", "ing")) and len(word) > 4)


def find_mentions(text: str, tokens: Sequence[Token], kg: Graph | None) -> list[Mention]:
    """The names in a question, left to right: whole labels of the graph, and other capitalised runs.

    Square brackets settle it: what is marked is a name, and nothing else.
    """
    if settled := bracketed_mentions(text, tokens):
        return settled
    edges = [n for n, token in enumerate(tokens) if any(map(str.isalnum, token.text))]
    spans = [(a, b + 1) for a in edges for b in edges if a <= b < a + 18]
    texts = {(a, b): text[tokens[a].start : tokens[b - 1].end] for a, b in spans}
    labels = kg.exact(list(texts.values())) if kg else {}
    whole = [
        span
        for span in spans
        if texts[span] in labels and not is_nationality_adjective(span, tokens)
    ]
    likely = [span for span in whole if _is_likely_name(tokens[slice(*span)])]
    runs = [
        run
        for run in _capitalized_runs(tokens)
        if not is_nationality_adjective(run, tokens)
        and not (run[1] - run[0] == 1 and tokens[run[0]].lowercase in RELATION_PHRASES)
        and (not _overlaps(run, likely) or (kg and kg.search(texts[run], 3).how == "all words"))
    ]
    chosen: list[tuple[int, int]] = []
    for span in sorted([*likely, *runs], key=lambda span: (span[1] - span[0], span), reverse=True):
        chosen += [] if _overlaps(span, chosen) else [span]
    chosen = chosen or _find_lowercase_name(tokens, whole)
    return [Mention(a, b, texts[a, b]) for a, b in sorted(chosen)]


def bracketed_mentions(text: str, tokens: Sequence[Token]) -> list[Mention]:
    """The names in square brackets."""
    return [
        Mention(inside[0], inside[-1] + 1, mark[1])
        for mark in BRACKETED_NAME.finditer(text)
        if (
            inside := [
                n for n, token in enumerate(tokens) if mark.start() <= token.start < mark.end()
            ]
        )
    ]


def _overlaps(span: tuple[int, int], others: Iterable[tuple[int, int]]) -> bool:
    return any(a < span[1] and span[0] < b for a, b in others)


def is_nationality_adjective(span: tuple[int, int], tokens: Sequence[Token]) -> bool:
    """Whether a span is an adjective such as "German" before a noun; it names nothing."""
    word = tokens[span[0]].text
    nation = word[0].isupper() and (
        word.endswith(("ian", "ean", "ish", "ese")) or word in NATIONALITIES
    )
    after = tokens[span[1]].text if span[1] - span[0] == 1 and span[1] < len(tokens) else ""
    return nation and after.islower() and after not in FUNCTION_WORDS and not is_verb(after)


def _is_likely_name(words: Sequence[Token]) -> bool:
    """Whether words that are a label are meant as a name: by capitals, digits, or several unlikely words."""
    plain = any(
        w.lowercase in FUNCTION_WORDS or w.lowercase in RELATION_PHRASES or is_verb(w.text)
        for w in words
    )
    return any(map(_looks_like_name, words)) or (len(words) > 1 and not plain)


def _looks_like_name(word: Token) -> bool:
    """Whether a word is written like part of a name; no function word that begins a sentence is."""
    unnamed = NON_NAME_WORDS if word.begins_sentence else {"i"}
    return word.lowercase not in unnamed and any(
        char.isupper() or char.isdigit() for char in word.text
    )


def _capitalized_runs(tokens: Sequence[Token]) -> list[tuple[int, int]]:
    """Runs of capitalised words, joined by small words between them; not the first word of the question."""
    runs: list[tuple[int, int]] = []
    for n, token in enumerate(tokens):
        joined = n > 1 and tokens[n - 1].lowercase in NAME_CONNECTORS
        if (
            n
            and _looks_like_name(token)
            and runs
            and runs[-1][1] >= n - joined
            and n - runs[-1][0] < 18
        ):
            runs[-1] = (runs[-1][0], n + 1)
        elif (
            _looks_like_name(token)
            and not token.text.isdigit()
            and (n or any(map(str.isdigit, token.text)))
        ):
            runs.append((n, n + 1))
    return runs


def _find_lowercase_name(
    tokens: Sequence[Token], whole: Sequence[tuple[int, int]]
) -> list[tuple[int, int]]:
    """In a question without capitals: the longest label, the last of equals; no word for a kind of thing."""
    kinds = [
        n for n, token in enumerate(tokens) if token.lowercase in WH_WORDS | DETERMINERS | PRONOUNS
    ]
    kinds += [n for n in range(len(tokens)) if is_nationality_adjective((n, n + 1), tokens)]
    names = [(a, b) for a, b in whole if tokens[a].lowercase not in FUNCTION_WORDS]
    names = [(a, b) for a, b in names if b - a > 1 or a - 1 not in kinds]
    return sorted(names, key=lambda span: (span[1] - span[0], span))[-1:]
