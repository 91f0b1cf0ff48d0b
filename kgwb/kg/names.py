"""How a name that was asked for and a label relate: the same, near, or different.

``compare_names`` decides it by the rules of ``docs/explanation/names.md``. It looks at texts only,
so what it says does not depend on the graph, or on the model that chose the thing.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Literal, NamedTuple

from kgwb.text import common_prefix_length

Nearness = Literal["same", "near", "different"]


class Likeness(NamedTuple):
    """How near a label is to a name, and in what they differ."""

    nearness: Nearness
    difference: str = ""
    """What they differ in: "a number", "letters"; empty for the same name."""

    @property
    def distance(self) -> int:
        """0 for the same, 1 for near, 2 for different."""
        return ("same", "near", "different").index(self.nearness)


SAME = Likeness("same")
MAX_COMPARED_CHARS = 300
"""How much of a name is compared. Time grows with the square of it."""
MAX_OTHER_LETTERS = 2
"""Letters by which two near names may differ; they must be fewer than half of a word, too."""
MAX_MORE_WORDS = 2
"""Words that the longer one of two near names may have more, such as a title."""
MAX_ACRONYM_CHARS = 5
"""Letters of a word in capitals in which each letter counts, such as USB."""
MIN_REST_CHARS = 3
"""Letters behind a prefix, and of a word without its plural s, at least."""

# What is one sign, and what is one letter

_ONE_SIGN = str.maketrans(
    dict.fromkeys("’‘‚‛ʼʹ´`′", "'")
    | dict.fromkeys("“”„‟«»″", '"')
    | dict.fromkeys("‐‑‒–—―−﹣", "-")
    | dict.fromkeys("∕⁄", "/")
    | dict.fromkeys("•∙・", "·")
    | {"٫": ",", "،": ",", "٪": "%", "˚": "°", "♯": "#", "_": " "}
    | dict.fromkeys("\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff\ufe0e\ufe0f\u0640")
)
"""For variants of a sign, the plainest one; what is not seen is left out."""
_KEPT_FORMS = ("<super>", "<fraction>")
"""Compatibility forms that mean something else than the plain characters: 10² is not 102."""
_ONE_LETTER = str.maketrans(
    "łøđðıςаеорсухіјѕквнтмαβεζηικορτυχةىکی", "loddiσaeopcyxijskbhtmabezhikoptyxهيكي"
) | {ord("þ"): "th", ord("æ"): "ae", ord("œ"): "oe", ord("ß"): "ss"}
"""Letters for which others are written, or that look like others in another script."""
_KATAKANA = re.compile("[ァ-ヶ]")
_KATAKANA_OFFSET = 0x60
"""From a letter of hiragana to the same one of katakana."""
_UMLAUT = re.compile("(?<=[aou])e")
"""The letter behind another one that stands for an umlaut: "ue" for "ü"."""
_IDEOGRAPH = r"[\u3400-\u9fff]"
"""Text, not compiled at the import: so wide a range takes a millisecond."""
_POINT = re.compile(r"(?<=[^\W\d])\.(?!\S)")
"""The point of an abbreviation."""
_ARTICLE = re.compile(r"^(?:the|an?) (?=\w)", re.IGNORECASE)
_QUALIFIED = re.compile(r"(.*\S)\s*[(\[]([^()\[\]]+)[)\]]", re.DOTALL)
"""A name with a qualifier behind it: "Mercury (planet)"."""

# What names one of a series, or one of two

_LETTER = (
    r"(?:(?!\d)[\w\u0300-\u036f\u0483-\u0489\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    r"\u06d6-\u06ed\u0900-\u0965\u0981-\u0dff\u0e31-\u0e4e\u0eb1-\u0ece\u0f71-\u0f87\u102b-\u103e"
    r"\u3099\u309a])"
)
"""A letter, or a mark of one: vowels of Indic scripts, points of Hebrew and Arabic."""

_TOKEN = (
    r"(?i)(?P<number>\d+(?:[.,:/]\d+)*)(?:(?:st|nd|rd|th)\b)?"
    rf"|(?P<word>{_LETTER}+(?:'{_LETTER}+)*)"
    r"|(?P<sign>(?<!\S)-(?=\d)|(?<=\w)-(?!\S)|(?<=\d)['\"]|[^\w\s.,:;!?¡¿'\"()\[\]/&·®™©@|\\~…-])"
)
"""The numbers, words and signs of a name, as a text. Punctuation is left out; a hyphen may be a minus."""
_BETWEEN_GROUPS = re.compile(r"(?<=\d)[, ](?=(?:\d{3}[, ])*\d{3}(?![\d.,]))")
"""What stands between groups of three digits: 10,000."""
_ROMAN = re.compile("(?=[ivxl]|[mdcxlvi]{4})m{0,3}(cm|cd|d?c{0,3})(xc|xl|l?x{0,3})(ix|iv|v?i{0,3})")
_ROMAN_DIGITS = {"i": 1, "v": 5, "x": 10, "l": 50, "c": 100, "d": 500, "m": 1000}
_CARDINALS = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen
fifteen sixteen seventeen eighteen nineteen"""
_ORDINALS = """zeroth first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth
thirteenth fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth"""
_TENS = "_ _ twenty thirty forty fifty sixty seventy eighty ninety hundred"
_NUMBER_WORDS = {
    word: str(number * factor)
    for factor, words in ((1, _CARDINALS), (1, _ORDINALS), (10, _TENS))
    for number, word in enumerate(words.split())
}
_SIGN_WORDS = dict(
    zip(
        "%+#°$€abγδω",
        "percent plus sharp degrees dollar euro alpha beta gamma delta omega".split(),
        strict=True,
    )
)
"""Signs and Greek letters, which are folded, with the words for them."""
_ONE_OF_TWO = frozenset(
    """north south east west northern southern eastern western northeast northwest southeast southwest
    new old upper lower inner outer left right front rear top bottom central middle mid
    greater lesser major minor first last early late before after inside outside
    internal external interior exterior import export maximum minimum max min
    male female man woman boy girl anti non pre post ex sub super vice
    monday tuesday wednesday thursday friday saturday sunday
    nord süd sud ost est ouest sur norte este oeste neu neue alt alte ober unter nuevo nueva nouveau
    nouvelle""".split()
)
"""Words for a direction, a size, an age or a sex: with one more, less, or another one, it is another thing."""
_PREFIXES = """north south east west nord süd sud ost ober unter anti non pre post sub super hyper hypo
inter intra micro macro mini maxi mega nano ultra infra over under contra neo proto pseudo semi mono
poly bi tri endo exo ecto homo hetero iso cis trans""".split()
"""Beginnings of words that do the same."""
FUNCTION_WORDS = frozenset(
    "the an of and for in on at de la le der die das von van del di du et und".split()
)
"""Words that may be there or not."""
_SHORT_FORMS = dict(
    pair.split(":")
    for pair in """saint:st street:st mount:mt doctor:dr professor:prof mister:mr junior:jr senior:sr
    number:no company:co corporation:corp incorporated:inc limited:ltd university:univ
    department:dept brother:bro versus:vs fort:ft men:man women:woman
    children:child mice:mouse geese:goose feet:foot teeth:tooth people:person""".split()
)


_MARKED = re.compile(
    r"""(?<!\w)(?:(["'`*_]{1,3})(\S.{0,2000}?\S)\1"""
    r"|[“”„‟‘’‚‛«»‹›「『《〈【[{<] ?(\S.{0,2000}?\S) ?[“”‘’«»‹›」』》〉】\]}>])(?!\w)"
)
"""Text in quotes, brackets but round ones, or signs of Markdown, up to 2,000 characters.

Without this bound a text of many marks that do not end takes time quadratic in its length.
"""


def replace_marks(text: str, mark: str) -> str:
    """Return a text with a character in the place of each mark around a name: quotes, [ ], < >, `, *.

    The other characters keep their positions. An apostrophe, and a sign on one side only, is no mark.
    """

    def replace(match: re.Match[str]) -> str:
        """Return a name with a character in the place of each of its marks."""
        name = match[2] or match[3]
        before, _, after = match[0].partition(name)
        return mark * len(before) + name + mark * len(after)

    return _MARKED.sub(replace, text)


def compare_names(name: str, label: str) -> Likeness:
    """Return how near a label is to a name that was asked for.

    What comes first in this list decides:

    1. Written alike, but for letter case: the same. Variants of one sign, spaces, compatibility
       forms, a leading article and the point of an abbreviation do not count. Where one of both is
       all in capitals, and the other is not, they are near.
    2. Another qualifier in brackets: different. One more or less: near, if the rest is.
    3. The same letters with other accents, look-alikes or punctuation: near.
    4. Other numbers or signs: different, unless they are only written in another way.
    5. Other hyphens or spaces, or the initials: near.
    6. A word for one of a series or of two, more or less: different.
    7. One or two other letters, one or two words more, another order, a short form: near.
    8. Anything else: different.
    """
    if name == label:
        return SAME
    return _compare(name[:MAX_COMPARED_CHARS], label[:MAX_COMPARED_CHARS])


def compare_labels(name: str, labels: Iterable[str]) -> Likeness:
    """Return how near the nearest of the labels of a thing is to a name; all languages count."""
    likenesses = [compare_names(name, label) for label in labels]
    return min(likenesses, key=lambda likeness: likeness.distance)


@lru_cache(maxsize=4096)
def _compare(name: str, label: str) -> Likeness:
    """Return how near a label is to another name; see ``compare_names``."""
    name = _write_plainly(name)
    label = _write_plainly(label)
    first = _POINT.sub("", name)
    second = _POINT.sub("", label)
    if _lower(first) == _lower(second):
        is_in_capitals = _is_in_capitals(first) or _is_in_capitals(second)
        return Likeness("near", "capitals") if is_in_capitals and first != second else SAME

    first, qualifier = _split_qualifier(name)
    second, label_qualifier = _split_qualifier(label)
    if qualifier and label_qualifier:
        if _compare(qualifier, label_qualifier).nearness == "different":
            return Likeness("different", "a qualifier in brackets")
    elif qualifier or label_qualifier:
        likeness = _compare(first, second)
        if likeness == SAME:
            return Likeness("near", "a qualifier in brackets")
        return likeness
    if _is_more_specific(second, first):
        return Likeness("near", "a word more or less")
    return _compare_parts(_Parts.of(first), _Parts.of(second))


def _write_plainly(text: str) -> str:
    """Return a name with each sign in its plainest form, single spaces, and no article before it."""
    text = text.translate(_ONE_SIGN)
    if not text.isascii():
        chars = []
        for char in unicodedata.normalize("NFC", text):
            is_kept = unicodedata.decomposition(char).startswith(_KEPT_FORMS)
            chars.append(char if is_kept else unicodedata.normalize("NFKC", char))
        text = unicodedata.normalize("NFC", "".join(chars))
    return _ARTICLE.sub("", " ".join(text.split()))


def _lower(text: str) -> str:
    """Return a text in lower case. Unlike a folded one, it keeps ß."""
    return text.replace("ẞ", "ß").lower()


def _is_in_capitals(text: str) -> bool:
    """Return whether a name has two letters or more, and only capitals."""
    return text.isupper() and sum(map(str.isalpha, text)) > 1


def _split_qualifier(text: str) -> Sequence[str]:
    """Return a name without the qualifier in brackets behind it, and the qualifier, "" if it has none."""
    match = _QUALIFIED.fullmatch(text)
    return match.groups() if match else (text, "")


class _Word(NamedTuple):
    """A word of a name."""

    written: str
    folded: str
    """See ``_fold``."""
    has_point: bool
    """Whether it is written as an abbreviation."""
    is_beside_digit: bool
    """Whether a digit stands beside it without a space."""

    @property
    def is_code(self) -> bool:
        """Whether each letter counts: it is beside a digit, or an acronym."""
        is_acronym = self.written.isupper() and 1 < len(self.written) <= MAX_ACRONYM_CHARS
        return self.is_beside_digit or is_acronym

    @property
    def stem(self) -> str:
        """The folded word in the singular, without apostrophes, or its short form."""
        word = self.folded.replace("'", "")
        if len(word) > MIN_REST_CHARS and not word.endswith("ss"):
            is_ies = word.endswith("ies")
            word = word.removesuffix("s").removesuffix("ie")
            if is_ies:
                word += "y"
        return _SHORT_FORMS.get(word, word)

    @property
    def number(self) -> str:
        """The number in digits that it stands for, in a language's words or in Roman; "" if none."""
        lower = self.written.lower()
        is_roman = _ROMAN.fullmatch(lower) and self.written in (lower, self.written.upper())
        if not is_roman:
            return _NUMBER_WORDS.get(lower, "")
        digits = [_ROMAN_DIGITS[letter] for letter in lower]
        total = digits[-1]
        for digit, following in pairwise(digits):
            total += digit if digit >= following else -digit
        return str(total)

    @property
    def is_one_of_several(self) -> bool:
        """Whether it is a letter, a number, or a word for one of two, and no initial."""
        if len(self.folded) == 1:
            return not self.has_point
        return self.stem in _ONE_OF_TWO or bool(self.number)


class _Parts(NamedTuple):
    """The parts of a name, in order."""

    text: str
    numbers: list[str]
    signs: list[str]
    """Those that mean something."""
    words: list[_Word]
    tokens: list[str]
    """Numbers, signs and folded words."""

    @classmethod
    def of(cls, text: str) -> _Parts:
        """Take a name apart."""
        parts = cls(text, [], [], [], [])
        for chunk in text.split():
            has_digit = any(map(str.isdigit, chunk))
            for match in re.finditer(_TOKEN, chunk):
                kind = match.lastgroup or ""
                token = match[kind]
                if kind == "word":
                    folded = _fold(token)
                    if not folded:  # an accent without a letter
                        continue
                    has_point = chunk[match.end() :].startswith(".")
                    parts.words.append(_Word(token, folded, has_point, has_digit))
                    token = folded
                elif kind == "number":
                    token = "".join(str(unicodedata.decimal(char, char)) for char in token)
                    parts.numbers.append(token)
                else:
                    parts.signs.append(token)
                parts.tokens.append(token)
        return parts

    @property
    def joined(self) -> str:
        """Its tokens without what stands between them, and without apostrophes."""
        return "".join(self.tokens).replace("'", "")

    @property
    def content_words(self) -> list[_Word]:
        """Its words without function words; all of them if it has no others."""
        words = [word for word in self.words if word.folded not in FUNCTION_WORDS]
        return words or self.words

    @property
    def spelled(self) -> tuple[Sequence[str], Sequence[str]]:
        """Its numbers in digits, in order, and its other words and its signs in words, in no order."""
        spelled_words = {word.folded: word.number or word.folded for word in self.words}
        numbers = []
        others = []
        for token in self.tokens:
            spelled = _SIGN_WORDS.get(token, token)
            if spelled in FUNCTION_WORDS:
                continue
            spelled = spelled_words.get(spelled, spelled)
            if spelled[0].isdigit():
                numbers.append(spelled)
            else:
                others.append(spelled)
        return numbers, sorted(others)

    @property
    def readings_of_numbers(self) -> Sequence[list[str]]:
        """Its numbers with commas as decimal points, and with commas and spaces between groups left out."""
        ungrouped = _BETWEEN_GROUPS.sub("", self.text)
        decimals = [number.replace(",", ".") for number in self.numbers]
        numbers = []
        for match in re.finditer(_TOKEN, ungrouped):
            if match["number"]:
                numbers.append(match["number"])
        return decimals, numbers


def _fold(word: str) -> str:
    """Return a word in lower case and without accents; letters that look or sound alike become one."""
    folded = _lower(word)
    if not folded.isascii():
        decomposed = unicodedata.normalize("NFKD", folded.translate(_ONE_LETTER))
        folded = decomposed.translate(_ONE_LETTER)
        folded = _KATAKANA.sub(lambda match: chr(ord(match[0]) - _KATAKANA_OFFSET), folded)
        without_accents = [char for char in folded if not unicodedata.combining(char)]
        folded = "".join(without_accents)
    return _UMLAUT.sub("", folded)


def _compare_parts(first: _Parts, second: _Parts) -> Likeness:
    """Return how near two names are that have no qualifier, and are not written alike."""
    if not first.tokens or not second.tokens:
        return Likeness("different", "a sign")
    if first.tokens == second.tokens:
        return Likeness("near", "accents or punctuation")
    if first.spelled == second.spelled:
        return Likeness("near", "the order or the form of words")
    if first.signs != second.signs:
        return Likeness("different", "a sign")
    return _compare_numbers_and_words(first, second)


def _compare_numbers_and_words(first: _Parts, second: _Parts) -> Likeness:
    """Return how near two names with the same signs are."""
    readings = second.readings_of_numbers
    if not any(reading in readings for reading in first.readings_of_numbers):
        return Likeness("different", "a number")
    if first.joined == second.joined:
        with_apostrophe = ["'" in "".join(each.tokens) for each in (first, second)]
        if with_apostrophe[0] != with_apostrophe[1]:
            return Likeness("near", "an apostrophe")
        return Likeness("near", "a hyphen or a space")
    return _compare_words(first.content_words, second.content_words)


def _is_more_specific(label: str, name: str) -> bool:
    """Return whether a label has the whole name and one or two words more, such as a version: 3.0, T8.

    A whole number is none: it names one of a series.
    """
    more = Counter(_lower(label).split())
    more.subtract(_lower(name).split())
    if min(more.values()) < 0 or more.total() > MAX_MORE_WORDS:
        return False
    is_of_series = any(map(str.isdigit, more.elements()))
    parts = _Parts.of(" ".join(more.elements()))
    words = [word for word in parts.words if not word.is_beside_digit]
    is_of_several = any(word.is_one_of_several for word in words)
    return not (parts.signs or is_of_series or is_of_several)


def _compare_words(words: Sequence[_Word], label_words: Sequence[_Word]) -> Likeness:
    """Return how near two names are, by their content words. Their numbers and signs are the same."""
    if _are_initials(words, label_words) or _are_initials(label_words, words):
        return Likeness("near", "an abbreviation")
    more = _words_without(words, label_words)
    less = _words_without(label_words, words)
    for word, other in zip(list(more), list(less), strict=False):
        if _is_short_for(word, other) or _is_short_for(other, word):
            more.remove(word)
            less.remove(other)
    unpaired = [*more, *less]
    for word in unpaired:
        if word.is_one_of_several:
            return Likeness("different", f"“{word.written}”")
    if more and less:
        return _compare_spelling(more, less)
    if len(unpaired) > MAX_MORE_WORDS or any(word.is_beside_digit for word in unpaired):
        return Likeness("different", "words")
    if unpaired:
        return Likeness("near", "a word more or less")
    return Likeness("near", "the order or the form of words")


def _words_without(words: Iterable[_Word], others: Iterable[_Word]) -> list[_Word]:
    """Return the words that others do not have, as often as they are more."""
    left = Counter(word.stem for word in others)
    remaining = []
    for word in words:
        left[word.stem] -= 1
        if left[word.stem] < 0:
            remaining.append(word)
    return remaining


def _are_initials(short: Sequence[_Word], words: Sequence[_Word]) -> bool:
    """Return whether a name is one acronym, of the initials of another one: "UN" of "United Nations"."""
    if len(short) != 1 or not short[0].is_code or len(words) < 2:
        return False
    return short[0].folded == "".join(word.folded[0] for word in words)


def _is_short_for(short: _Word, word: _Word) -> bool:
    """Return whether a word with a point is the beginning of another one: "J." of "John"."""
    return short.has_point and word.folded.startswith(short.folded)


def _compare_spelling(more: Sequence[_Word], less: Sequence[_Word]) -> Likeness:
    """Return how near two names are by the words that only one of them has."""
    pairs = [(word.folded, other.folded) for word, other in zip(more, less, strict=False)]
    if len(more) != len(less):
        pairs = [(_join(more), _join(less))]
    if any(word.is_code for word in (*more, *less)):
        return Likeness("different", "a code")
    count = 0
    for word, other in pairs:
        letters = _count_other_letters(word, other, MAX_OTHER_LETTERS)
        count += letters
        is_half = 2 * letters >= max(len(word), len(other))
        if (
            is_half
            or re.search(_IDEOGRAPH, word + other)
            or not _rests_of(word).isdisjoint(_rests_of(other))
        ):
            return Likeness("different", "a word")
    if count > MAX_OTHER_LETTERS:
        return Likeness("different", "letters")
    return Likeness("near", "letters")


def _join(words: Iterable[_Word]) -> str:
    return "".join(word.folded for word in words)


def _rests_of(word: str) -> set[str]:
    """Return a word, and what is behind each of _PREFIXES that it begins with."""
    rests = {word.removeprefix(prefix) for prefix in _PREFIXES}
    return {rest for rest in rests if len(rest) >= MIN_REST_CHARS}


def _count_other_letters(first: str, second: str, limit: int) -> int:
    """Return how many letters must be changed, added or left out to make one text of another one.

    It is ``limit`` + 1 if they are more than that.
    """
    start = common_prefix_length(first, second)
    first, second = first[start:], second[start:]
    if not first or not second or not limit:
        return min(max(len(first), len(second)), limit + 1)
    first_rest = first[1:]
    second_rest = second[1:]
    return 1 + min(
        _count_other_letters(first_rest, second_rest, limit - 1),
        _count_other_letters(first_rest, second, limit - 1),
        _count_other_letters(first, second_rest, limit - 1),
    )
