"""The little English that rules knows: function words, word forms, and where the names in a question are."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kgwb.kg.base import Graph

LEXICON = tomllib.loads((Path(__file__).parent / "lexicon.toml").read_text(encoding="utf-8"))


def _listed(name: str) -> frozenset[str]:
    return frozenset(LEXICON["words"][name].split())


def _by_word(families: Mapping[str, str]) -> dict[str, str]:
    return {word: name for name, words in families.items() for word in words.split()}


WH, AUXILIARIES, HAVING, BEING, ACTIVE = map(_listed, ("wh", "auxiliaries", "having", "being", "active"))
LIGHT_VERBS, VERB_FORMS, VERBS_ONLY = map(_listed, ("light_verbs", "verb_forms", "verbs_only"))
PHASES, BELONG, MAKING, IMPERATIVES = map(_listed, ("phases", "belong", "making", "imperatives"))
DETERMINERS, PREPOSITIONS, RELATIVES = map(_listed, ("determiners", "prepositions", "relatives"))
FILLERS, PRONOUNS, NATIONS = map(_listed, ("fillers", "pronouns", "nations"))
TIMES, PLACES, GENERAL_NOUNS = map(_listed, ("times", "places", "general_nouns"))
FUNCTION_WORDS = WH | AUXILIARIES | DETERMINERS | PREPOSITIONS | RELATIVES | FILLERS
MEASURES = _by_word(LEXICON["measures"])
SENSE_OF = _by_word(LEXICON["senses"])
"""For a word of a known family the phrase that a graph tends to name the relation by."""


def tied_to_place(site: str) -> frozenset[str]:
    """Verbs that say at which place something happened, and not yet in which city or country that is."""
    return frozenset(LEXICON["events"]["city" if site in ("city", "town") else "country"].split())


@dataclass(frozen=True, slots=True)
class Token:
    """A word of the question without the punctuation around it, and where it stands."""

    text: str
    start: int
    end: int

    @property
    def lower(self) -> str:
        return self.text.casefold()


@dataclass(frozen=True, slots=True)
class Mention:
    """Tokens ``first`` to ``last`` (exclusive) that name something."""

    first: int
    last: int
    text: str
    known: bool
    """Whether it is the whole label of some vertex."""


def tokens_of(text: str) -> list[Token]:
    """The words of a text; a possessive "'s" is a word of its own."""
    found: list[Token] = []
    for match in re.finditer(r"\S+", text):
        word = match.group()
        left = len(word) - len(word.lstrip("\"'“”‘’«»([{¿¡,"))
        core = word[left:].rstrip("\"'“”’»)]},;:?!") if left < len(word) else ""
        if core.endswith(".") and core.count(".") == 1:
            core = core[:-1]
        start = match.start() + left
        possessive = re.search(r"(?<=.)['’]s$", core)
        if possessive and core.casefold() not in WH:
            found.append(Token(core[: possessive.start()], start, start + possessive.start()))
            found.append(Token("'s", start + possessive.start(), start + len(core)))
        elif core:
            found.append(Token(core, start, start + len(core)))
    return found


def stem(word: str) -> str:
    """A crude stem, enough to see that films and film, directs and directed, studies and study are one."""
    word = word.casefold()
    for ending, put in (("ies", "y"), ("sses", "ss"), ("es", "e"), ("s", ""), ("ing", ""), ("ed", "")):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):
            return word[: len(word) - len(ending)] + put
    return word


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
    """The names in a question, left to right: whole labels of the graph, and other capitalised runs."""
    spans = [(a, b) for a in range(len(tokens)) for b in range(a + 1, min(len(tokens), a + 18) + 1)]
    texts = {span: text[tokens[span[0]].start : tokens[span[1] - 1].end] for span in spans}
    labels = kg.exact(list(texts.values())) if kg else {}
    quoted = [(m.start(), m.end()) for m in re.finditer(r"[\"“«][^\"”»]+[\"”»]", text)]
    whole = [span for span in spans if texts[span] in labels and not of_nation(span, tokens)]
    weights = {span: _weight(span, tokens, text, quoted) for span in whole}
    runs = [
        run
        for run in _capital_runs(tokens)
        if run not in weights and not of_nation(run, tokens) and _worth(run, tokens, texts, weights, kg)
    ]
    weights.update({run: run[1] - run[0] + 0.1 for run in runs})
    chosen: list[tuple[int, int]] = []
    for span in sorted(weights, key=lambda span: (weights[span], span), reverse=True):
        if weights[span] > 0 and all(span[1] <= a or span[0] >= b for a, b in chosen):
            chosen.append(span)
    if not chosen:
        chosen = _plain_names(tokens, whole)
    return [Mention(a, b, texts[a, b], texts[a, b] in labels) for a, b in sorted(chosen)]


def of_nation(span: tuple[int, int], tokens: Sequence[Token]) -> bool:
    """Whether a span is an adjective such as "German" before a noun; it names nothing."""
    word = tokens[span[0]].text
    alone = span[1] - span[0] == 1 and span[1] < len(tokens) and word[0].isupper()
    nation = word.endswith(("ian", "ean", "ish", "ese")) or word in NATIONS
    after = tokens[span[1]].text if alone else ""
    return nation and after.islower() and after not in FUNCTION_WORDS and not is_verb(after)


def _worth(
    run: tuple[int, int],
    tokens: Sequence[Token],
    texts: Mapping[tuple[int, int], str],
    whole: Mapping[tuple[int, int], float],
    kg: Graph | None,
) -> bool:
    """Whether a capitalised run that is no label is a name: no word of a relation, and around labels only if
    the graph knows all its words together."""
    if run[1] - run[0] == 1 and tokens[run[0]].lower in SENSE_OF:
        return False
    if not any(weight > 0 and a < run[1] and run[0] < b for (a, b), weight in whole.items()):
        return True
    return kg is not None and run[1] - run[0] < 18 and kg.search(texts[run], 3).how == "all words"


def _weight(
    span: tuple[int, int], tokens: Sequence[Token], text: str, quoted: Iterable[tuple[int, int]]
) -> float:
    """How surely a span that is a label is meant as a name: by quotes, capitals, digits and length."""
    words = tokens[span[0] : span[1]]
    if any(start < words[0].start and words[-1].end < end for start, end in quoted):
        inside = next((s, e) for s, e in quoted if s < words[0].start and words[-1].end < e)
        return 100.0 if text[inside[0] + 1 : words[0].start].strip() == "" else 1.0
    capitals = sum(_named(word, first=span[0] == 0 and number == 0) for number, word in enumerate(words))
    if not capitals:
        small = len(words) > 1 and not any(w.lower in FUNCTION_WORDS or w.lower in SENSE_OF for w in words)
        return 0.5 if small and not any(is_verb(word.text) for word in words) else 0.0
    if words[0].text[0].islower() and words[0].lower in FUNCTION_WORDS - DETERMINERS:
        return 0.0
    return capitals + 0.6 * (len(words) - capitals)


def _named(word: Token, *, first: bool) -> bool:
    """Whether a word is written like part of a name; the first word only if it is no function word."""
    if not (word.text[0].isupper() or any(char.isdigit() for char in word.text)):
        return False
    return not first or word.lower not in FUNCTION_WORDS | LIGHT_VERBS


def _capital_runs(tokens: Sequence[Token]) -> list[tuple[int, int]]:
    """Runs of capitalised words, joined by small words between them; not the first word of the question."""
    runs: list[tuple[int, int]] = []
    start = 1
    while start < len(tokens):
        if not _named(tokens[start], first=False) or tokens[start].text.isdigit():
            start += 1
            continue
        end = start + 1
        while end < len(tokens):
            joins = tokens[end].lower in (
                "of",
                "the",
                "and",
                "de",
                "van",
                "von",
                "for",
                "in",
                "on",
                "a",
                "to",
                "&",
            )
            if _named(tokens[end], first=False):
                end += 1
            elif joins and end + 1 < len(tokens) and tokens[end + 1].text[0].isupper():
                end += 2
            else:
                break
        runs.append((start, end))
        start = end
    return runs


def _plain_names(tokens: Sequence[Token], whole: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """In a question without capitals: labels of several words, else the last single word that is a label."""

    def plain(span: tuple[int, int]) -> bool:
        words = [token.lower for token in tokens[span[0] : span[1]]]
        earlier = tokens[max(span[0] - 1, 0)].lower
        kind = len(words) == 1 and span[0] > 0 and earlier in WH | DETERMINERS | PRONOUNS
        kind = kind or (len(words) == 1 and span[0] > 0 and of_nation((span[0] - 1, span[0]), tokens))
        inner = all(word in FUNCTION_WORDS for word in words) or words[0] in FUNCTION_WORDS - DETERMINERS
        return not kind and not inner

    chosen: list[tuple[int, int]] = []
    for span in sorted(filter(plain, whole), key=lambda span: (span[1] - span[0], span[0]), reverse=True):
        if not chosen or (span[1] - span[0] > 1 and all(span[1] <= a or span[0] >= b for a, b in chosen)):
            chosen.append(span)
    return chosen
