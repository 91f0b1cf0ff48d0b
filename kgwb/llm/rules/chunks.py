"""Splitting the words around a name into chunks, and choosing the chunks that are relations.

A chunk is a group of content words between function words. It is either a relation (a verb, or a
noun with "of", a possessive or a form of "be") or the type of something ("films" in "films directed
by").
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kgwb.llm.rules import words as en
from kgwb.llm.rules.words import RELATION_PHRASES, Words, is_verb, relation_phrase

END_OF_QUESTION = "."
MENTIONED_NAME = "@"
CHUNK_SEPARATORS = en.FUNCTION_WORDS | en.LIGHT_VERBS | {"their"}
SHARING_WORDS = frozenset(("same", "share", "shares", "shared", "common"))
WORDS_AFTER_TYPE_NOUNS = frozenset(
    ("share", "shares", "co", "verb", "that", "which", "who", "whose", "where")
)
"""``Chunk.after`` of nouns that are a type: "films that", "films directed"."""
SUBJECT_PRONOUNS = frozenset(("i", "you", "we", "they"))
WORDS_CONTINUING_QUESTION = en.DETERMINERS | en.FILLERS | {"of"}
"""Words that may stand between a question word and its noun: "which of the films"."""


@dataclass(slots=True)
class Chunk:
    """Content words that belong together, and the words before and after them."""

    words: list[str] = field(default_factory=list)
    is_verb: bool = False
    before: str = ""
    """The function word before the chunk, "noun" after another chunk, "" at the beginning."""
    after: str = ""
    """The function word after it, or END_OF_QUESTION, MENTIONED_NAME, "verb", "noun" or "co"."""
    is_with_question_word: bool = False
    """Whether it is the noun of a question word, as in "which films"."""
    is_shared: bool = False
    """Whether the relation leads there and back: "films that share an actor with X"."""
    is_after_subject: bool = False
    """Whether a pronoun that is the subject of a verb stands right before it: "do you sow"."""
    joining_word: str = ""
    """The first word before it that is not a determiner or filler; "" for the object of a verb."""
    is_before_name: bool = False

    @property
    def phrase(self) -> str:
        """The words as a relation: the phrase of all of them in RELATION_PHRASES, if there is one.

        Otherwise the last word is replaced by its phrase. No word stands twice.
        """
        phrase = RELATION_PHRASES.get("_".join(self.words))
        if phrase is None:
            *others, last = self.words
            phrase = " ".join([*others, relation_phrase(last)])
        unique_words = dict.fromkeys(phrase.split())
        return " ".join(unique_words)

    @property
    def begins_with_verb(self) -> bool:
        """Whether the first word is a verb form that no word before it marks as a noun."""
        if self.before in en.WORDS_BEFORE_NOUNS:
            return False
        return self.is_after_subject or is_verb(self.words[0])

    @property
    def is_made_by(self) -> bool:
        """Whether it is a noun that "by" or "with" joins to the name after it: "papers by X"."""
        if self.is_verb or self.is_shared:
            return False
        return self.is_before_name and self.after in ("by", "with")


Chunks = list[Chunk]


def split_into_chunks(words: Words, end: str) -> Chunks:
    """Return the content words of a part of a question, in chunks that function words separate.

    A verb form is a chunk of its own. Function words and numbers are left out: a year tells
    homonyms apart, and is not a relation. Each chunk knows what stood before and after it; after
    the last one that is ``end``, END_OF_QUESTION or MENTIONED_NAME.
    """
    splitter = _Splitter()
    for word in words:
        splitter.add(word)
    splitter.close_chunk(end)
    return splitter.chunks


class _Splitter:
    """The chunks of the words so far, and the chunk that is still open."""

    def __init__(self) -> None:
        self.chunks: Chunks = []
        self.open = Chunk()
        self.last_words = ("", "")
        """The two words before the next one."""

    def add(self, word: str) -> None:
        """Add the next word: to the open chunk, as the beginning of a new one, or as a separator.

        Function words and light verbs separate chunks. A verb form begins a chunk of its own. A
        word that begins with "co-", or follows one of SHARING_WORDS, is shared; "in common" and
        "together" make the chunk before them shared. Numbers are left out. The order of the
        criteria counts: a word that meets several is treated by the first.
        """
        has_chunk = self.open.words or self.chunks
        auxiliary, subject = self.last_words
        self.last_words = (subject, word)
        if word.startswith("co-"):
            self.close_chunk("co")
            self.open.words = [word[3:]]
            self.open.is_shared = True
        elif word in ("common", "together") and has_chunk:  # have an actor in common with X
            self.close_chunk(word)
            self.chunks[-1].is_shared = True
        elif word in SHARING_WORDS:
            self.close_chunk(word)
            self.open.is_shared = True
            self.open.before = word
        elif word in CHUNK_SEPARATORS:
            self.close_chunk(word)
            self._add_separator(word)
        elif self.open.words and (is_verb(word) or self.open.begins_with_verb):
            self.close_chunk("verb" if is_verb(word) else "noun")
            self.open.words.append(word)
        elif not word.isdigit():
            is_verb_of_subject = auxiliary in en.AUXILIARIES and subject in SUBJECT_PRONOUNS
            if is_verb_of_subject and word not in en.SMALL_TALK_WORDS:
                self.open.is_after_subject = True
            self.open.words.append(word)

    def close_chunk(self, after: str) -> None:
        """End the open chunk and begin a new one; nothing happens if the open one has no words.

        ``after`` is what follows the chunk. A chunk of one word that is a verb form becomes a verb.
        """
        chunk = self.open
        if chunk.words:
            chunk.after = after
            chunk.is_verb = len(chunk.words) == 1 and chunk.begins_with_verb
            self.chunks.append(chunk)
            self.open = Chunk(before="noun")

    def _add_separator(self, word: str) -> None:
        """Note a function word on the open chunk, as the word before the chunk's own words.

        ``before`` is the last such word, ``joining_word`` the first. Fillers are noted as neither,
        and determiners are not a joining word. The chunk stands with a question word if only
        WORDS_CONTINUING_QUESTION come between.
        """
        chunk = self.open
        if word in en.QUESTION_WORDS:
            chunk.is_with_question_word = True
        elif word not in WORDS_CONTINUING_QUESTION:
            chunk.is_with_question_word = False
        if word in en.FILLERS:
            return
        chunk.before = word
        if word not in en.DETERMINERS and not chunk.joining_word:
            chunk.joining_word = word


def relations_before_name(chunks: Chunks) -> Chunks:
    """Return the chunks before a name that are relations, in the order of the words.

    Nouns that are the type of something are left out. A noun right after a verb replaces the verb's
    words if it names a known relation ("won the award"). After "the same" a noun makes the verb a
    shared relation ("acted in the same film as X"). The chunks are changed by this.
    """
    relations: Chunks = []
    for position, chunk in enumerate(chunks):
        follows_verb = relations and relations[-1].is_verb
        is_object = follows_verb and not chunk.is_verb and not chunk.joining_word
        later = chunks[position + 1 :]
        if follows_verb and chunk.before == "same":
            relations[-1].is_shared = True
        elif is_object and chunk.words[-1] in RELATION_PHRASES:
            relations[-1].words = chunk.words
        elif chunk.joining_word == "for" and chunk.after == "of":  # films for the director of X
            chunk.is_shared = True
            relations.append(chunk)
        elif not _is_type_noun(chunk, later, has_relation=bool(relations)):
            relations.append(chunk)
    return relations


def relations_after_name(chunks: Chunks) -> Chunks:
    """Return the chunks after a name that are relations.

    If there are verbs, it is the first verb alone; it becomes shared if any chunk is. Otherwise
    these are the nouns without a question word, or all nouns if each has one. Empty without chunks.
    """
    verbs = [chunk for chunk in chunks if chunk.is_verb]
    if verbs:
        verb = verbs[0]
        verb.is_shared = any(chunk.is_shared for chunk in chunks)
        return [verb]
    return without_question_words(chunks) or chunks


def without_question_words(chunks: Chunks) -> Chunks:
    """Return the chunks that are not the noun of a question word."""
    return [chunk for chunk in chunks if not chunk.is_with_question_word]


def _is_defined_by(chunk: Chunk, later: Chunks) -> bool:
    """Return whether the next chunk is a noun with "the" and "of" that says what one thing is.

    It does not after a preposition: "in which province is the city of" asks for a place.
    """
    if chunk.joining_word not in en.QUESTION_WORDS or chunk.after not in ("is", "was") or not later:
        return False
    following = later[0]
    return following.before == "the" and following.after == "of" and not following.is_verb


def _is_type_noun(chunk: Chunk, later: Chunks, *, has_relation: bool) -> bool:
    """Return whether a chunk before a name is the type of something, and not a relation.

    Verbs, shared relations, and nouns before "by" or "with" never are. For others the first of these
    criteria that applies decides. After "their" it is; after "whose" it is not. With a question word
    it is before "have" or a light verb, and if a later chunk has the same phrase or says what it is
    ("which company is the operator of"). The object of a verb is, unless "of" follows. Right before
    the name it is, unless it is the first relation and "of" stands before it. Otherwise it is before
    one of WORDS_AFTER_TYPE_NOUNS, before an auxiliary with a verb, and a place is if there is a
    relation before it.

    ``later`` are the chunks between it and the name. ``has_relation`` is whether there is a relation
    before it.
    """
    if chunk.is_verb or chunk.is_shared or chunk.after in ("by", "with"):
        return False
    if chunk.before in ("whose", "their"):
        return chunk.before == "their"
    if chunk.is_with_question_word:
        is_named_again = any(other.phrase == chunk.phrase for other in later)
        has_type_verb = chunk.after in en.HAVE_FORMS | en.LIGHT_VERBS  # which cars have X
        if is_named_again or has_type_verb or _is_defined_by(chunk, later):
            return True
    if has_relation and not chunk.joining_word:  # the object of a verb
        return chunk.after != "of"
    if chunk.after == MENTIONED_NAME:  # an apposition: the film X
        return has_relation or chunk.before != "of"

    is_type = chunk.after in WORDS_AFTER_TYPE_NOUNS
    if chunk.after in en.AUXILIARIES:
        is_before_verb = bool(later) and later[0].is_verb  # films that were directed
        is_type = is_before_verb or (has_relation and chunk.before == "of")
    is_place = has_relation and chunk.words[-1] in en.PLACE_WORDS  # born in the city of X
    return is_type or is_place
