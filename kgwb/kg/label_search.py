"""Searching labels: how texts are compared on every graph, and the index of a local graph.

The index is an SQLite database with full-text search (FTS5). It holds labels in normal form.
"""

from __future__ import annotations

import json
import re
import sqlite3
import threading
import time
import unicodedata
import weakref
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from functools import lru_cache, partial
from heapq import nsmallest
from math import inf, log
from operator import itemgetter
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from rdflib import URIRef

from kgwb.errors import GraphFileError
from kgwb.kg.base import Hit, SearchResult
from kgwb.terms import name_from_iri

MAX_SEARCH_CHARS = 2_000
"""Characters of a searched text that are read; the rest is ignored."""
MAX_SEARCH_WORDS = 32
"""Distinct words of a searched text that are used; the rest is ignored."""

SAME_WORDS_SCORE = 0.995
"""The score of a label that has the words of the searched text, but other signs or accents."""

SimilarWords = Mapping[str, Mapping[str, float]]
"""For each word that is in no label, similar words of labels with a likeness from 0 to 1."""
NO_SIMILAR_WORDS: SimilarWords = MappingProxyType({})

_ASCII_SEPARATORS = bytes(byte for byte in range(128) if not chr(byte).isalnum())
_SEPARATORS_TO_SPACES = bytes.maketrans(_ASCII_SEPARATORS, b" " * len(_ASCII_SEPARATORS))
_LETTER_FOLDING = str.maketrans(
    {"ł": "l", "ø": "o", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe", "ı": "i"}
)
"""Letters that Unicode does not decompose into a basic letter and an accent."""


def normalize(text: str) -> str:
    """Return the normal form of a text: its words in lower case and without accents.

    A word is a run of letters and digits, and one space stands between words. A text without
    letters and digits is returned in lower case, without the spaces around it.
    """
    folded = text.casefold()
    if folded.isascii():
        separated = folded.encode().translate(_SEPARATORS_TO_SPACES)
        words = b" ".join(separated.split()).decode()
    else:
        words = " ".join(_split_words(folded))
    return words or folded.strip()


def exact_form(text: str) -> str:
    """Return a form of a text that is equal for texts that differ only in letter case.

    Signs and accents stay. Differences in white space, and in how Unicode composes a letter, do not
    count either. Source: The Unicode Standard, D145 (canonical caseless matching).
    """
    if text.isascii():
        folded = text.lower()
    else:
        decomposed = unicodedata.normalize("NFD", text)
        folded = unicodedata.normalize("NFD", decomposed.casefold())
    return " ".join(folded.split())


def _split_words(text: str) -> list[str]:
    """Return the words of a text in any script, in order, without accents.

    Letters are decomposed (NFKD), and those of _LETTER_FOLDING replaced. Vowel signs of Indic
    scripts stay. Every other character that is no letter or digit separates words.
    """
    decomposed = unicodedata.normalize("NFKD", text).translate(_LETTER_FOLDING)
    chars = []
    for char in decomposed:
        # Marks of combining class 0 are vowels of Indic scripts and belong to the word. The marks of
        # all other classes are accents.
        is_accent = unicodedata.combining(char) != 0
        if is_accent:
            continue
        if _is_word_character(char):
            chars.append(char)
        else:
            chars.append(" ")
    return "".join(chars).split()


def _is_word_character(char: str) -> bool:
    """Return whether a character is a letter, a digit or a mark."""
    return char.isalnum() or unicodedata.category(char).startswith("M")


UNIT_WORDS = frozenset("currency unit units".split())
"""Words in the names of predicates that say in what a number of the same node is counted."""


def names_unit(name: str) -> bool:
    """Return whether the name of a predicate says that it leads to the unit of a number: "unit text"."""
    return not UNIT_WORDS.isdisjoint(normalize(name).split())


def normalized_words(text: str) -> tuple[str, ...]:
    """Return the distinct words of a text in normal form and in order.

    Reads MAX_SEARCH_CHARS characters and returns MAX_SEARCH_WORDS words at most; none for a text
    without letters and digits.
    """
    searched = normalize(text[:MAX_SEARCH_CHARS])
    words = []
    for part in searched.split():
        # A text that has no words is its own normal form, so its parts are not words.
        if all(map(_is_word_character, part)):
            words.append(part)
    return _first_distinct(words)


def lowercase_words(text: str) -> tuple[str, ...]:
    """Return the distinct words of a text in lower case and in order, with their accents.

    This is for the indexes of engines, which may keep accents. Reads MAX_SEARCH_CHARS characters
    and returns MAX_SEARCH_WORDS words at most.
    """
    searched = text[:MAX_SEARCH_CHARS].lower()
    return _first_distinct(re.findall(r"[^\W_]+", searched))


def _first_distinct(words: Iterable[str]) -> tuple[str, ...]:
    """Return the first MAX_SEARCH_WORDS words, each once, in their order."""
    distinct = tuple(dict.fromkeys(words))
    return distinct[:MAX_SEARCH_WORDS]


def match_exactly(
    texts: Iterable[str], labels: Iterable[tuple[str, str]]
) -> dict[str, tuple[URIRef, ...]]:
    """Return the vertices that have each text as a label, sorted by IRI; texts without one are left out.

    ``labels`` are pairs of an IRI and one of its labels. They are compared by ``exact_form``.
    """
    iris_by_form: dict[str, set[str]] = defaultdict(set)
    for iri, label in labels:
        iris_by_form[exact_form(label)].add(iri)
    found = {}
    for text in texts:
        iris = iris_by_form.get(exact_form(text))
        if iris:
            found[text] = tuple(map(URIRef, sorted(iris)))
    return found


@lru_cache(maxsize=1024)
def language_rank(language: str, languages: tuple[str, ...]) -> int:
    """Return the position of a language tag in the preferred languages, 0 for the best.

    "en-GB" counts as "en" if only that is preferred. The rank of any other language is the number
    of preferred languages. Upper and lower case of ``language`` are the same.
    """
    language = language.lower()
    for rank, preferred in enumerate(languages):
        if language == preferred:
            return rank
        if preferred and language.startswith(f"{preferred}-"):
            return rank
    return len(languages)


def score_label(text: str, label: str) -> float:
    """Return how well a label fits a searched text, from 0 to 1.

    The score is 1 only for a label that is the text but for letter case (``exact_form``). It is
    SAME_WORDS_SCORE for one that is equal in normal form, such as "C#" for "C++" or "Cafe" for
    "Café". For others see ``_score_normal_forms``.
    """
    if exact_form(text) == exact_form(label):
        return 1.0
    return _score_normal_forms(normalize(text), normalize(label), NO_SIMILAR_WORDS)


def _score_normal_forms(text: str, label: str, similar_words: SimilarWords) -> float:
    """Return how well a label fits a searched text, from 0 to 1. Both are in normal form.

    Equal texts score SAME_WORDS_SCORE; 0 if either has no words. Otherwise the score is 0.99 times
    the share of the letters of both that ``_shared_letters`` counts as common (the Dice
    coefficient), times 0.9 unless the label contains the text as it stands. It is between 0.01 and
    0.99, with 6 digits.
    """
    if text == label:
        return SAME_WORDS_SCORE
    label_words = label.split()
    text_words = dict.fromkeys(text.split())
    if not text_words or not label_words:
        return 0.0

    shared = 0.0
    for word in text_words:
        shared += _shared_letters(word, label_words, similar_words.get(word, {}))
    letters = sum(map(len, [*text_words, *label_words]))
    dice = 2 * shared / letters
    score = 0.99 * dice
    if text not in label:
        score *= 0.9
    score = max(0.01, min(0.99, score))
    return round(score, 6)


def _shared_letters(
    word: str, label_words: Sequence[str], likeness_of: Mapping[str, float]
) -> float:
    """Return how many letters of a word count as found in a label.

    All if the label has the word, and 90 % if a word of the label begins with it. Otherwise the
    number of letters times the greatest value in ``likeness_of`` of a word of the label; 0 without
    one.
    """
    if word in label_words:
        return len(word)
    if any(label_word.startswith(word) for label_word in label_words):
        return 0.9 * len(word)
    likeness = max(likeness_of.get(label_word, 0.0) for label_word in label_words)
    return likeness * len(word)


def rank_labels(
    text: str,
    labels: Iterable[tuple[str, str, str]],
    limit: int,
    similar_words: SimilarWords = NO_SIMILAR_WORDS,
) -> list[Hit]:
    """Return the best ``limit`` hits of a search, by score and then by IRI.

    ``labels`` are (IRI, label, label in normal form). Scores are those of ``score_label``. Each IRI
    is returned once, with its best label; of labels with the same score, the first in the alphabet.
    """
    exact_text = exact_form(text)
    normal_text = normalize(text)
    best: dict[str, tuple[float, str, str]] = {}
    for iri, label, normal_label in labels:
        score = _score_normal_forms(normal_text, normal_label, similar_words)
        if exact_form(label) == exact_text:
            score = 1.0
        candidate = (-score, iri, label)
        if iri not in best or candidate < best[iri]:
            best[iri] = candidate
    hits = []
    ranked = sorted(best.values())
    for negative_score, iri, label in ranked[:limit]:
        hits.append(Hit(URIRef(iri), label, -negative_score))
    return hits


MIN_SPELLING_SIMILARITY = 0.75
"""How similar (difflib's ratio) a word must be to replace a word that no label has."""
SPELLING_SEARCH_TIMEOUT_S = 0.2
"""The longest time spent on finding similar spellings of one word."""
_MAX_SIMILAR_WORDS = 5
_MAX_CACHED_SPELLINGS = 10_000
_MAX_CACHED_NAMES = 10_000
_MAX_MATCHES_PER_WORD = 20_000
_MAX_SPELLED_OUT_WORDS = 16
"""A beginning of more words is not written out as all of them in a query."""
_LAST_CHARACTER = "\U0010ffff"
_TABLES_SQL = """
CREATE TABLE labels (id INTEGER PRIMARY KEY, length INTEGER, key TEXT, text TEXT, iri TEXT, shown INTEGER);
CREATE VIRTUAL TABLE words USING fts5(key, content='', detail=none, columnsize=0, tokenize=ascii);
CREATE VIRTUAL TABLE terms USING fts5vocab(words, row);
"""
# A query on ``terms`` counts the labels of every word, so its words and these numbers of labels are
# also kept in ``vocabulary``.
# The keys are already in normal form. So splitting them at ASCII blanks (tokenize=ascii) gives the
# same words as ``normalize``.
_INDEXES_SQL = """
CREATE INDEX by_iri ON labels (iri) WHERE shown;
CREATE INDEX by_key ON labels (key) WHERE length;
CREATE TABLE vocabulary (word TEXT PRIMARY KEY, labels INTEGER) WITHOUT ROWID;
INSERT INTO vocabulary SELECT term, doc FROM terms;
CREATE INDEX without_numbers ON vocabulary (word) WHERE word GLOB '*[^0-9]*';
"""
_CACHE_SIZE_SQL = "PRAGMA cache_size=-65536;"
"""In KiB. Building an index takes so much memory, however many labels there are."""
_STEPS_PER_CHECK = 10_000
"""After so many steps of SQLite it is asked whether building an index is to stop: some 1,000 labels."""
_LABELS_PER_CHECK = 1_000
"""After so many labels that were read it is asked, too."""
_LENGTH_CONDITION = "AND length(word) BETWEEN ? AND ?"
_WITHOUT_NUMBERS = "vocabulary INDEXED BY without_numbers"
_NO_NUMBER_CONDITION = "AND word GLOB '*[^0-9]*'"
"""Labels may have very many numbers. A word without digits is never like one of them."""
_MATCH_SQL = "SELECT rowid FROM words WHERE words MATCH ? LIMIT ?"
_SELECT_LABELS_SQL = "SELECT iri, text, key FROM labels WHERE "
_SELECT_MATCHING_SQL = """
SELECT iri, text, labels.key FROM words CROSS JOIN labels ON id = words.rowid WHERE words MATCH ?
"""
"""A CROSS JOIN reads the matches one by one, in the order of their ids, until there are enough."""
_GIVEN_VALUES_SQL = "(SELECT value FROM json_each(?))"


class Label(NamedTuple):
    """One label of an IRI."""

    iri: str
    text: str
    is_display_name: bool
    """Whether it is the name to show; true of one label of each IRI."""
    is_searchable: bool
    """Whether the IRI can be found by it."""


_Row = tuple[int, str, str, str, int]
"""A row of the table of labels.

It has the length of the key, the key, which is empty if the label is not searchable, the text, the
IRI, and whether the label is the display name.
"""


class LabelIndex:
    """Finds vertices by their labels, and names for IRIs. Threads may share it.

    It is made by ``build``, or opened from its file by ``open``. Both raise sqlite3.Error if the
    file cannot be used. ``close`` closes the database; it is also called when the index is deleted.
    """

    def __init__(self, connection: sqlite3.Connection, path: Path | None = None) -> None:
        self._connection = connection
        self._path = path
        # A lock is released even if an interrupt comes. A pool of connections could lose one.
        self._lock = threading.Lock()
        self._spellings: dict[str, dict[str, float]] = {}
        self._names: dict[str, str] = {}
        """Display names by IRI. They are kept, because each question asks for those of predicates."""
        self.close = weakref.finalize(self, connection.close)

    @classmethod
    def open(cls, path: Path) -> LabelIndex:
        """Open the index in an SQLite file, read-only, for several threads.

        Raises sqlite3.Error if the file is missing or is not an index.
        """
        uri = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
        connection = sqlite3.connect(uri, uri=True, check_same_thread=False)
        connection.execute("SELECT id FROM labels LIMIT 1").fetchall()
        return cls(connection, path)

    @classmethod
    def build(
        cls,
        labels: Iterable[Label],
        path: Path | None = None,
        is_stopped: Callable[[], bool] = lambda: False,
    ) -> LabelIndex:
        """Build an index of labels in a new SQLite file, or in memory without a path.

        Labels are stored from short to long, so that where matches are cut, the longest go. Only
        searchable labels are indexed by their words. ``is_stopped`` is asked from time to time,
        because reading and indexing many labels takes long. Raises sqlite3.Error
        if the index cannot be written, and once ``is_stopped`` returns True.
        """
        connection = sqlite3.connect(
            path or ":memory:", check_same_thread=False, isolation_level=None
        )
        try:
            connection.set_progress_handler(is_stopped, _STEPS_PER_CHECK)
            _write_labels(connection, labels, is_stopped, in_memory=path is None)
            connection.set_progress_handler(None, 0)
        except BaseException:
            connection.close()
            raise
        return cls(connection, path)

    def search(self, text: str, limit: int) -> SearchResult:
        """Return at most ``limit`` vertices whose labels match a text, the best first.

        Three ways are tried until one finds a label: all words of the text, all words as beginnings
        of words, and any word. In the last, a word that no label has is replaced by words with a
        similar spelling. Labels equal to the text are found in any case. How the vertices were
        found is in the result: "all words", "prefix", "any word", "close spelling" if all words
        were replaced, or "nothing". The text is cut at MAX_SEARCH_CHARS characters. For a text
        without words no vertex is found.

        Raises GraphFileError if the index cannot be read.
        """
        searched = text[:MAX_SEARCH_CHARS]
        key = normalize(searched)
        words = normalized_words(text)
        # All of them, since the exact ones among them may be the last.
        equal = self._fetch(
            f"{_SELECT_LABELS_SQL}length AND key = ? LIMIT ?", key, _MAX_MATCHES_PER_WORD
        )
        queries = {
            "all words": (_join_quoted(words, " "), self._match_words),
            "prefix": (_join_quoted(words, " ", suffix="*"), self._match_beginnings),
        }
        for how, (query, find_matching) in queries.items():
            matching = find_matching(words, 4 * limit)
            if matching or equal:
                hits = rank_labels(searched, equal + matching, limit)
                return SearchResult(tuple(hits), how, query or key)
        return self._search_any_word(searched, words, limit)

    def _match_words(self, words: Sequence[str], limit: int) -> list[Any]:
        """Return the rows of the first ``limit`` labels, by id, that have all of the words.

        There are none if there are no words.
        """
        if not words:
            return []
        select = f"{_SELECT_LABELS_SQL} id IN ({_MATCH_SQL})"
        return self._fetch(select, _join_quoted(words, " "), limit)

    def _match_beginnings(self, words: Sequence[str], limit: int) -> list[Any]:
        """Return the rows of the first ``limit`` labels, by id, with words that begin with each word.

        FTS5 reads all labels of a beginning before it returns the first. So a beginning of few words
        is written out as these words, whose labels are read only as far as needed. Of the others,
        only the one with the fewest labels is given to FTS5, if it is the rarest of all, and the rest
        is looked for in the texts.
        """
        spelled_out = []
        long_beginnings = []
        fewest_labels = inf
        for word in words:
            last = word + _LAST_CHARACTER
            extended = self._fetch(
                "SELECT word FROM vocabulary WHERE word BETWEEN ? AND ? LIMIT ?",
                word,
                last,
                _MAX_SPELLED_OUT_WORDS + 1,
            )
            if not extended:
                return []
            ((label_count,),) = self._fetch(
                "SELECT sum(labels) FROM vocabulary WHERE word BETWEEN ? AND ?", word, last
            )
            if len(extended) > _MAX_SPELLED_OUT_WORDS:
                long_beginnings.append((label_count, word))
                continue
            fewest_labels = min(fewest_labels, label_count)
            alternatives = _join_quoted((text for (text,) in extended), " OR ")
            spelled_out.append(f"({alternatives})")

        long_beginnings.sort()
        if long_beginnings and long_beginnings[0][0] < fewest_labels:
            _, rarest = long_beginnings.pop(0)
            spelled_out.insert(0, f'"{rarest}"*')
        if not spelled_out:
            return []
        query = " AND ".join(spelled_out)
        conditions = " AND instr(' ' || labels.key, ' ' || ?)" * len(long_beginnings)
        in_texts = [word for _, word in long_beginnings]
        select = f"{_SELECT_MATCHING_SQL}{conditions} LIMIT ?"
        return self._fetch(select, query, *in_texts, limit)

    def _search_any_word(self, text: str, words: Sequence[str], limit: int) -> SearchResult:
        """Return at most ``limit`` vertices whose labels have any of the words, the best first.

        A word that no label has is replaced by words with a similar spelling; if there is none, it
        is left out. The result's stage is "any word", "close spelling" if all words were replaced,
        or "nothing" if no vertex was found.
        """
        spellings = {}
        queries = []
        for word in words:
            alternatives = {word: 1.0}
            if not self._fetch("SELECT 1 FROM vocabulary WHERE word = ?", word):
                alternatives = self._similar_words(word)
                spellings[word] = alternatives
            if alternatives:
                queries.append(_join_quoted(alternatives, " OR "))

        best = self._rank_matches(queries, 4 * limit)
        select = f"{_SELECT_LABELS_SQL} id IN {_GIVEN_VALUES_SQL}"
        labels = self._fetch(select, json.dumps(best))
        if not labels:
            how = "nothing"
        elif len(spellings) < len(words):
            how = "any word"
        else:
            how = "close spelling"
        hits = rank_labels(text, labels, limit, spellings)
        return SearchResult(tuple(hits), how, " OR ".join(queries))

    def _rank_matches(self, queries: Sequence[str], limit: int) -> list[int]:
        """Return the ids of at most ``limit`` labels that match at least one query.

        Those that match the most queries come first, then those that match the rarest. A query's
        weight is 1 / ln(2 + its number of matches). Of each query at most _MAX_MATCHES_PER_WORD
        matches count. Equals come by id.
        """
        matched: dict[int, int] = {}
        weights = []
        for number, query in enumerate(queries):
            matches = self._fetch(_MATCH_SQL, query, _MAX_MATCHES_PER_WORD)
            weights.append(1 / log(2 + len(matches)))
            bit = 1 << number
            for (label_id,) in matches:
                matched[label_id] = matched.get(label_id, 0) | bit

        # Labels that match the same queries are ranked together: they are many, and the ranks few.
        ids_by_queries: dict[int, list[int]] = defaultdict(list)
        for label_id, bits in matched.items():
            ids_by_queries[bits].append(label_id)
        ids_by_rank: dict[tuple[int, float], list[int]] = defaultdict(list)
        for bits, label_ids in ids_by_queries.items():
            weight = 0.0
            for number, query_weight in enumerate(weights):
                if bits & 1 << number:
                    weight += query_weight
            ids_by_rank[-bits.bit_count(), -weight] += label_ids

        best: list[int] = []
        for rank in sorted(ids_by_rank):
            if len(best) >= limit:
                break
            best += nsmallest(limit - len(best), ids_by_rank[rank])
        return best

    def exact(self, labels: Sequence[str]) -> dict[str, tuple[URIRef, ...]]:
        """Return the vertices that have a label equal to a text, sorted, by text.

        Letter case does not count, but signs and accents do. Texts that no vertex has are left out.
        Raises GraphFileError if the index cannot be read.
        """
        keys = {label: normalize(label) for label in labels}
        select = f"{_SELECT_LABELS_SQL} length AND key IN {_GIVEN_VALUES_SQL}"
        found = []
        found_keys = set()
        rows = self._fetch(select, json.dumps(list(keys.values())))
        for iri, text, key in rows:
            found.append((iri, text))
            found_keys.add(key)
        # By far the most texts are no label.
        known = [label for label in labels if keys[label] in found_keys]
        return match_exactly(known, found)

    def names(self, iris: Sequence[URIRef]) -> dict[URIRef, str]:
        """Return the display name of each IRI: its preferred label, else its local part as words.

        Every IRI has a name.

        Raises GraphFileError if the index cannot be read.
        """
        known = self._names  # another thread may replace the dictionary meanwhile
        labels = {}
        unknown = []
        for iri in map(str, iris):
            if iri in known:
                labels[iri] = known[iri]
            else:
                unknown.append(iri)
        if unknown:
            new_names = self._read_names(unknown)
            self._keep_names(new_names)
            labels |= new_names
        return {iri: labels[str(iri)] for iri in iris}

    def _read_names(self, iris: Sequence[str]) -> dict[str, str]:
        """Return the display name of each IRI, as the file of the index has it."""
        select = f"SELECT iri, text FROM labels WHERE shown AND iri IN {_GIVEN_VALUES_SQL}"
        found = dict(self._fetch(select, json.dumps(iris)))
        names = {}
        for iri in iris:
            names[iri] = found.get(iri) or name_from_iri(iri)
        return names

    def _keep_names(self, names: Mapping[str, str]) -> None:
        """Keep display names, by IRI, and drop the earlier ones if there are too many."""
        if len(names) > _MAX_CACHED_NAMES:
            return
        if len(self._names) + len(names) > _MAX_CACHED_NAMES:
            self._names = {}  # another thread may be reading the earlier ones
        self._names.update(names)

    def _similar_words(self, word: str) -> dict[str, float]:
        """Return the words of the index spelled like this one, with their similarities.

        At most _MAX_SIMILAR_WORDS, the most similar first; each similarity is at least
        MIN_SPELLING_SIMILARITY. The lengths differ by a third of the word's length at most, or by
        one letter. Words with the same first letter are compared first; the search ends after
        SPELLING_SEARCH_TIMEOUT_S. The result is cached, up to _MAX_CACHED_SPELLINGS words. It is
        empty if no word is similar.
        """
        if word in self._spellings:
            return self._spellings[word]
        if len(self._spellings) > _MAX_CACHED_SPELLINGS:
            self._spellings.clear()
        end_time = time.monotonic() + SPELLING_SEARCH_TIMEOUT_S
        difference = max(1, len(word) // 3)
        table = "vocabulary"
        condition = _LENGTH_CONDITION
        if not re.search("[0-9]", word):
            table = _WITHOUT_NUMBERS
            condition += f" {_NO_NUMBER_CONDITION}"
        similar: list[tuple[str, float]] = []
        # By far most misspelled words have the right first letter, so these are compared first.
        for negation in ("", "NOT "):
            similar += self._fetch(
                f"SELECT word FROM {table} WHERE {negation}word BETWEEN ? AND ? {condition}",
                word[0],
                word[0] + _LAST_CHARACTER,
                len(word) - difference,
                len(word) + difference,
                read=partial(_filter_similar, word, end_time),
            )

        similar.sort()
        similar.sort(key=itemgetter(1), reverse=True)
        self._spellings[word] = dict(similar[:_MAX_SIMILAR_WORDS])
        return self._spellings[word]

    def _fetch(
        self, sql: str, *values: Any, read: Callable[[sqlite3.Cursor], list[Any]] = list
    ) -> list[Any]:
        """Return the rows of a query with these values, or what ``read`` makes of its cursor.

        Only one thread reads at a time. Raises GraphFileError if the database cannot be read.
        """
        try:
            with self._lock:
                return read(self._connection.execute(sql, values))
        except sqlite3.DatabaseError as error:
            # The cached file was damaged since it was opened.
            raise GraphFileError(
                f"the label index {self._path} cannot be read: {error}",
                hint="open the graph again: a damaged index is built again",
            ) from error


def _write_labels(
    connection: sqlite3.Connection,
    labels: Iterable[Label],
    is_stopped: Callable[[], bool],
    *,
    in_memory: bool,
) -> None:
    """Write the tables and indexes of labels to an empty database.

    Raises sqlite3.Error, also once ``is_stopped`` returns True.
    """
    rows = _collect_rows(labels, is_stopped)
    # Short labels come first: where matches are cut, the labels with the most other words go.
    rows.sort(reverse=True)
    # An index in memory must not sort on disk either: the disk may be full.
    sorting = ""
    if in_memory:
        sorting = "PRAGMA temp_store=MEMORY;"
    connection.executescript(
        f"PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; {sorting} {_CACHE_SIZE_SQL} {_TABLES_SQL}"
    )
    connection.execute("BEGIN")
    connection.executemany(
        "INSERT INTO labels (length, key, text, iri, shown) VALUES (?, ?, ?, ?, ?)",
        _take_from_end(rows),
    )
    connection.execute("INSERT INTO words (rowid, key) SELECT id, key FROM labels WHERE length")
    connection.execute("COMMIT")
    connection.executescript(_INDEXES_SQL)


def _collect_rows(labels: Iterable[Label], is_stopped: Callable[[], bool]) -> list[_Row]:
    """Return the rows of labels in the table of labels.

    Raises sqlite3.OperationalError soon after ``is_stopped`` returns True.
    """
    rows: list[_Row] = []
    for iri, text, is_display_name, is_searchable in labels:
        if len(rows) % _LABELS_PER_CHECK == 0 and is_stopped():
            raise sqlite3.OperationalError("interrupted")
        key = ""
        if is_searchable:
            key = normalize(text)
        # sqlite3 looks for an adapter of each bool, which takes longer than the rest of the row.
        rows.append((len(key), key, text, iri, int(is_display_name)))
    return rows


def _take_from_end(rows: list[_Row]) -> Iterator[_Row]:
    """Yield rows, the last first. They are removed, because the store is loaded meanwhile."""
    while rows:
        yield rows.pop()


def _join_quoted(words: Iterable[str], separator: str, suffix: str = "") -> str:
    """Return an FTS5 query of words in quotes. The suffix "*" makes them beginnings of words."""
    return separator.join(f'"{word}"{suffix}' for word in words)


def _filter_similar(
    word: str, end_time: float, rows: Iterable[tuple[str]]
) -> list[tuple[str, float]]:
    """Return the words among the rows that are spelled like this one, with their similarities.

    A similarity is difflib's ratio, and at least MIN_SPELLING_SIMILARITY. The order is that of the
    rows. Rows that could not be compared before ``end_time`` (monotonic) are left out.
    """
    letters = set(word)
    min_shared_letters = MIN_SPELLING_SIMILARITY * len(letters) - 1
    similar = []
    for number, (other,) in enumerate(rows):
        if number % 256 == 0 and time.monotonic() > end_time:
            break
        if len(letters & set(other)) < min_shared_letters:
            continue
        matcher = SequenceMatcher(None, word, other)
        # quick_ratio is an upper bound of the ratio, and much faster.
        if matcher.quick_ratio() < MIN_SPELLING_SIMILARITY:
            continue
        similarity = matcher.ratio()
        if similarity >= MIN_SPELLING_SIMILARITY:
            similar.append((other, similarity))
    return similar
