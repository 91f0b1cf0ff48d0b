"""Reading a question with the help of the graph: what it asks for, and what was not understood of it.

The grammar reads a question by its words alone. Where the relations that it reads do not exist in
the graph, the words are compared with the predicates of the name in both directions, and with those
of its values that have no name of their own. A question that asks for something else stays
unanswered.

Every content word of the question must be accounted for: by a name, by a predicate that the query
asks for, by a class, or by the kind of value that is asked for. Otherwise the query asks for
something else than the question, and the question must not be answered.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, combinations, pairwise, product
from weakref import ref

from rdflib import Literal, URIRef

from kgwb.errors import ModelError
from kgwb.kg.base import Direction, Graph
from kgwb.kg.embeddings import Embeddings
from kgwb.kg.label_search import UNIT_WORDS, names_unit, normalize
from kgwb.kg.queries import find_exact_values
from kgwb.kg.sparql import values_clause
from kgwb.llm.rules import words as en
from kgwb.llm.rules.classes import (
    CLASS_RELATION,
    MAX_CLASS_WORDS,
    members_of,
    normal_noun,
    read_members,
    read_members_loosely,
)
from kgwb.llm.rules.conditions import (
    ANY_EVENT,
    NON_CONTENT_WORDS,
    SUPERLATIVE_ENDING,
    TRUE,
    YEAR,
    Condition,
    fetch_things,
    find_condition,
    find_likely_conditions,
    is_comparing,
    texts_in,
    with_conditions,
)
from kgwb.llm.rules.grammar import (
    IS_A_RELATION,
    ORIGIN_VERB,
    SHARING_WORDS,
    UNKNOWN_RELATION,
    Fact,
    ParsedQuestion,
    Unread,
    expected_value_type,
    find_unsupported_word,
    is_part_of_verb,
    parse_question,
    parse_tokens,
    remove_filler_phrases,
)
from kgwb.llm.rules.predicates import (
    AGENT_ENDINGS,
    MIN_RELATION_SIMILARITY,
    NAME_SEPARATOR,
    SPELLING_WEIGHT,
    Predicates,
    VertexPredicate,
    Vertices,
    asked_kind,
    fetch_class_names,
    fetch_classes_of_graph,
    fetch_predicates,
    fetch_values,
    find_similar_predicates,
    has_neighbour_of_two_types,
    has_text_with,
    kinds_of_value,
    leads_to_kind,
    max_similarity,
    names_of_classes,
    names_of_predicates,
    predicates_within_two_steps,
    with_superclasses,
    without_time_and_place,
    write_name_list,
)
from kgwb.llm.rules.words import (
    IRREGULAR_FORMS,
    KIN_GROUPS,
    LETTER_OR_DIGIT,
    MEANINGS,
    MIN_STEM_CHARS,
    NAME,
    RELATION_PHRASES,
    RIVALS,
    Mention,
    Mentions,
    Token,
    Words,
    are_kin,
    are_rivals,
    bracketed_mentions,
    compare_wordings,
    find_mentions,
    find_wording,
    have_same_relation,
    kept_by_graph,
    leads_to_agent,
    looks_english,
    relation_phrase,
    singularize,
    stem,
    tokenize,
    words_saying,
    words_without_names,
)
from kgwb.terms import Term
from kgwb.text import shorten

MIN_PREDICATE_SIMILARITY = 0.45
"""Similarity from which a word of the question asks for a predicate."""
MIN_CLASS_SIMILARITY = 0.5
"""Similarity from which a word of the question names a class."""
MIN_MEANING = 0.33
"""Similarity of the whole question from which it may ask for a predicate that no word of it says."""
MIN_MEANING_OF_KIND = 0.25
"""The same where the predicate must lead to a time, a place, a person or a number."""
MEANING_LEAD = 0.05
"""How much more like it that predicate must be than the next one."""
KIN_LEAD = 0.35
"""How much more like it a predicate of other things may be than one that a word of the question may say."""
LIKE_CLASS_SIMILARITY = 0.38
"""Similarity from which a word is taken for a class that no class of the graph is named by."""
A_TRUTH_VALUE = "a truth value"
"""The kind of value that a yes-or-no question about one thing asks for."""
MAX_PARTIAL_MATCHES = 3
"""How many labels are looked at that may begin or end with a name."""
MAX_TIED_LABELS = 5
"""How many labels that have the words of a name are compared."""
MAX_CHOICE_CHARS = 80
"""Letters of a label that a reason shows."""
EMPTY_WORDS = NON_CONTENT_WORDS | en.VAGUE_WORDS | en.NEUTRAL_WORDS | en.POLITE_SUBJECTS
"""Words that need nothing in the query to stand for them."""
_WORDS_OF_PHRASES = " ".join(RELATION_PHRASES.values()).split()
RELATION_WORDS = en.TIME_WORDS.union(en.PLACE_WORDS, _WORDS_OF_PHRASES, ["by"])
"""Words of known relations. Relations of these words alone are not looked up in the graph."""
UNSPECIFIC_WORDS = en.FUNCTION_WORDS | en.TIME_WORDS | {"place", "location", "type", "part"}
"""Words that two relations may have in common and still be different."""
PASSING_TIMES = [["night"], ["week"], ["month"], ["year"], ["weekend"], ["summer"], ["time"]]
PASSIVE_TO = re.compile(r"\w+ed to")
"""The name of a predicate that does not tell who is at its ends: tasks and persons are "assigned to" each other."""
NICKNAME = "nickname"
"""A word that is kin of the predicates that lead to other names of a thing."""
WHY_WORDS = ("why", "why's")
TIME_AND_PLACE_ENDINGS = ("at", "in", "on")
EACH_OF = "each of "
"""Before a list of names it asks for what each of them has, and not for what they have in common."""
LIST_JOINT = re.compile(r"(,|,? and) (the )?", re.I)
"""What stands between two names of a list: "A, B and the C"."""
VALUE_KINDS = ("a time", "a place", "a number")
"""What is asked for of each of several things, and seldom in common."""
DIRECT = "direct"
"""As an adjective it asks for nothing more: every triple says something direct."""
WHO_WORDS = frozenset(("who", "whom", "who's"))
WORDS_BEFORE_ASKED_NOUN = ("what", "which", "many")
SKIPPED_WORDS = en.BE_FORMS | en.DETERMINERS | en.ACTIVE_AUXILIARIES
"""Words that may stand between these and the noun: "what is the"."""
ADDS_CONDITION = re.compile(
    rf"^(?!{'|'.join(en.AUXILIARIES)}).* and ({'|'.join(en.AUXILIARIES)}) ", re.I
)
"""A question that says something else of what it asks for: "which carpets did X weave and are red"."""
BARE_CONDITION = re.compile(rf" and ({'|'.join(en.AUXILIARIES)})\s*[?.]?\s*$", re.I)
"""What is left of a condition whose text or class was taken out of the question."""
CLAUSE_SIGNS = re.compile(r"[,;:.?!…–—][\"'”)]*\s+$|\s-+\s+$")
MAX_OPENING_WORDS = 3
"""Words at the beginning of a clause of which one may be its question word: "and in which"."""


def ground_question(question: str, kg: Graph | None, embeddings: Embeddings) -> ParsedQuestion:
    """Read a question with the grammar, and correct the reading by the predicates of its name.

    If the graph has no predicates like the relations that are read, the reading becomes one triple:
    of the name, and its predicate most like the words of the question. ``_LookUp.read`` has the
    details. The grammar's reading is returned as it is without a graph, and if not exactly one name is
    found in the graph. A yes-or-no question about two names is read by what may join them.
    It is kept for the questions asked last.

    Raises ModelError if the grammar cannot read the question.
    """
    if kg is None:
        return parse_question(question, kg)
    return _ground_question(kg, (question, ref(embeddings)))


@kept_by_graph
def _ground_question(kg: Graph, asked: tuple[str, ref[Embeddings]]) -> ParsedQuestion:
    """Return what ``ground_question`` returns, for a question with embeddings, which are not kept."""
    question, embeddings_ref = asked
    embeddings = embeddings_ref()
    assert embeddings is not None, "the caller holds them"
    question = remove_filler_phrases(question)
    tokens = tokenize(question)
    mentions = find_named(question, kg)
    reading = parse_tokens(tokens, mentions, kg)
    vertices = find_vertices(mentions, kg)
    named = [mention for mention in mentions if mention in vertices]
    if reading.kind == "boolean":
        if len(named) == 2 == len(mentions):
            predicates = fetch_predicates(kg, vertices[named[0]])
            read = _with_worded_direction(reading, tokens, named, predicates, embeddings)
            question_words = _QuestionWords(words_without_names(mentions, tokens), embeddings)
            return _with_joining_kin(read, question_words, vertices, kg)
        if len(named) == 1 == len(mentions):
            [thing] = named
            predicates = fetch_predicates(kg, vertices[thing])
            own = fetch_things(kg, values_clause("?s", vertices[thing]))
            condition = find_condition(question, named, kg, own)
            if condition is not None and not condition.is_incoming:  # is the status of X open
                fact = (thing.text, condition.predicate, condition.value)
                return reading._replace(facts=(fact,), target=thing.text)
            return _with_worded_direction(reading, tokens, named, predicates, embeddings)
        return reading
    things = [each for each, ends in vertices.items() if not _are_texts(ends)]
    mention = _only_mention(things or vertices)
    if mention is None:
        return reading
    words = words_without_names([mention], tokens)
    if mention.start > 1 and words[mention.start - 2] in en.DETERMINERS:
        words[mention.start - 1] = ""  # a word that belongs to the name: the contract X
    look_up = _LookUp(words, reading, mention.text, vertices[mention], kg, embeddings)
    read = look_up.read()
    return _with_worded_direction(read, tokens, [mention], look_up.predicates, embeddings)


def find_named(question: str, kg: Graph | None) -> Mentions:
    """Return the names in a question, each with the words beside it that say its class.

    "The Polar Carrier ship" and "purchase order 12" are names with their classes. A thing that is
    called by another name of it has its label. They are kept for the questions asked last.
    """
    return find_mentions(question, kg) if kg is None else _find_named(kg, question)


@kept_by_graph
def _find_named(kg: Graph, question: str) -> Mentions:
    """Return the names in a question with the words for their classes."""
    words = [token.lowercase for token in tokenize(question)]
    named = []
    year = "".join(YEAR.findall(question)[:1])
    for mention in [_with_label(each, year, kg) for each in find_mentions(question, kg)]:
        after = words[mention.end : mention.end + 1]
        before = words[: mention.start]
        if NON_CONTENT_WORDS.issuperset([*before[-1:], *after]):
            named.append(mention)
            continue
        vertices = find_vertices([mention], kg).get(mention, ())
        names = with_superclasses(kg, fetch_class_names(kg, vertices))
        classes = [normalize(name).split() for name in names]
        sizes = [len(each) for each in classes if len(each) > 1 and before[-len(each) :] == each]
        is_said_after = any(after == each[-1:] for each in classes)
        start, end = mention.start - max(sizes, default=0), mention.end + is_said_after
        named.append(Mention(start, end, mention.text))
    return tuple(named)


def _with_label(mention: Mention, year: str, kg: Graph) -> Mention:
    """Return a name with the label of the only thing that has it as its nickname or alias, by the predicate's name."""
    if kg.exact([mention.text]):
        return mention
    of_year = [
        hit.label
        for hit in kg.search(f"{mention.text} {year}", 2).hits
        if year and year in hit.label and mention.text in hit.label
    ]
    if len(of_year) == 1:
        return mention._replace(text=of_year[0])
    spellings = [mention.text, f"the {mention.text}", f"The {mention.text}"]
    subjects: set[URIRef] = set()
    for match in find_exact_values(kg, spellings):
        if are_kin(NICKNAME, normalize(kg.names([match.predicate])[match.predicate])):
            subjects.update(match.subjects)
    labels = list(kg.names(sorted(subjects)).values())
    is_clear = len(labels) == 1 and len(kg.exact(labels).get(labels[0], ())) == 1
    return mention._replace(text=labels[0]) if is_clear else mention


def _are_texts(vertices: Vertices) -> bool:
    """Return whether these are texts or numbers of the graph, and no things."""
    return bool(vertices) and all(isinstance(vertex, Literal) for vertex in vertices)


def _read_added_condition(
    question: str, kg: Graph, embeddings: Embeddings
) -> tuple[ParsedQuestion, Unread] | None:
    """Return a reading of a question that says something else of what it asks for, at its end; None if it does not.

    "Which carpets did X weave and are red" is read as "which carpets did X weave", and what is said
    of carpets by X.
    """
    asked, _, added = question.rpartition(" and ")
    first = tokenize(added)[:1]
    is_name = any(each.looks_like_name or each.lowercase in en.DETERMINERS for each in first)
    if not asked or is_name or tokenize(asked)[0].lowercase in en.AUXILIARIES:
        return None
    reading, unread = read_with_doubts(asked, kg, embeddings)
    pattern = _pattern_of(reading, kg, embeddings)
    if unread.reasons or not pattern:
        return None
    words = [token.lowercase for token in tokenize(added)]
    name = normal_noun(" ".join(word for word in words if word not in NON_CONTENT_WORDS))
    if name in names_of_classes(kg):
        conditions: Sequence[Condition] | None = [Condition(CLASS_RELATION, name, set())]
    else:
        things = fetch_things(kg, pattern)
        conditions = find_likely_conditions(added, set(), "", things, kg, embeddings)
    if not conditions:
        return None
    of_conditions = chain.from_iterable(condition.doubts for condition in conditions)
    doubts = [*unread.doubts, *of_conditions]
    return with_conditions(reading, conditions), Unread((), doubts)


def _pattern_of(reading: ParsedQuestion, kg: Graph, embeddings: Embeddings) -> str:
    """Return a graph pattern of what a reading asks for, as ?s; "" if it is not one predicate of a name, or a class."""
    for subject, relation, object_ in reading.facts:
        if relation == CLASS_RELATION:
            [class_iri] = [
                i
                for i, name in fetch_classes_of_graph(kg).items()
                if normal_noun(name) == normal_noun(object_)
            ][:1] or [None]
            return members_of(class_iri, kg) if class_iri else ""
        if reading.target not in (subject, object_):
            continue
        name = object_ if subject == reading.target else subject
        vertices = find_vertices([Mention(0, 1, name)], kg).values()
        ends = tuple(chain.from_iterable(vertices))
        values: list[Term] = []
        for each in _predicates_like(relation, fetch_predicates(kg, ends), embeddings):
            values += fetch_values(kg, ends, [each.iri], is_incoming=each.is_incoming)
        things = [value for value in values if isinstance(value, URIRef)]
        return values_clause("?s", things) if things else ""
    return ""


def _with_worded_direction(
    reading: ParsedQuestion,
    tokens: Sequence[Token],
    mentions: Mentions,
    predicates: Predicates,
    embeddings: Embeddings,
) -> ParsedQuestion:
    """Return a reading whose first fact has the direction that the words of the question tell.

    Of ``predicates``, which the first of one or two names has, the one most like the words decides.
    The reading stays if its fact says the same, and the graph or its own relation tells so.
    """
    worded = find_wording(_words_with_names(tokens, mentions))
    if worded is None:
        return _as_found(reading, mentions[0].text, predicates, embeddings)
    relation, is_first_subject = worded
    names = sorted({each.name for each in predicates if not each.has_only_numbers})
    told = [name for name in names if compare_wordings(relation, name).certainty != "guessed"]
    told = [name for name in told if not PASSIVE_TO.fullmatch(normalize(name))]
    if relation.split()[-1] not in en.PREPOSITIONS:  # who runs X is not what runs on X
        told = [name for name in told if not name.endswith((" on", " at", " in", " to"))]
    if not told:
        return _as_found(reading, mentions[0].text, predicates, embeddings)
    told = [name for name in told if _has_worded(name, worded, predicates)] or told
    similarities = embeddings.similarity(relation, told, SPELLING_WEIGHT)
    _, name = max(zip(similarities, told, strict=True))
    direction, certainty = compare_wordings(relation, name)
    if certainty == "either":
        return reading

    is_subject = is_first_subject == (direction == "out")
    first, *others = [mention.text for mention in mentions]
    for subject, own, _ in reading.facts[:1]:
        own_direction, own_certainty = compare_wordings(own, name)
        is_same = (subject == first) == (is_subject == (own_direction == "out"))
        is_found = any(p.name == name and p.is_incoming != is_subject for p in predicates)
        is_guessed = own_certainty == "guessed" and reading.kind != "boolean"
        is_told = own_certainty == certainty or (is_guessed and is_found)
        if is_same and is_told:
            return reading
    if certainty == "open":
        name, is_subject = relation, is_first_subject
    other = others[0] if others else reading.target
    fact = (first, name, other) if is_subject else (other, name, first)
    classes = [each for each in reading.facts if each[1] == CLASS_RELATION]
    return reading._replace(facts=(fact, *classes))


def _has_worded(name: str, worded: tuple[str, bool], predicates: Predicates) -> bool:
    """Return whether a predicate of a name is there in the direction that a relation tells.

    ``worded`` is the relation, and whether the name whose predicates these are is its subject.
    """
    relation, is_subject = worded
    direction, certainty = compare_wordings(relation, name)
    is_incoming = is_subject != (direction == "out")
    directions = {each.is_incoming for each in predicates if each.name == name}
    return certainty == "either" or is_incoming in directions


def _with_joining_kin(
    reading: ParsedQuestion,
    question: _QuestionWords,
    vertices_of: Mapping[Mention, Vertices],
    kg: Graph,
) -> ParsedQuestion:
    """Return a yes-or-no question about the predicate that joins its two names, if the kin of a word says that.

    "Was X a student at Y" may ask for "alumnus of". A predicate that is like the relation and joins
    the names comes first. If nothing joins them and none is like the relation, the question is about
    the only kin that X has. The answer will be in doubt. Where no word says a relation, "is X in Y" may
    ask for each predicate that ends in "in".
    """
    (first, vertices), (second, others) = vertices_of.items()
    predicates = fetch_predicates(kg, vertices)
    _, relation, _ = reading.facts[0]
    similar = _predicates_like(relation, predicates, question.embeddings)
    said = [question.words[position] for position in question.kin_positions()]
    stems = set(map(stem, said))
    kin = []
    for predicate in predicates:
        is_kin = any(are_kin(word, normalize(predicate.name)) for word in said)
        if relation == UNKNOWN_RELATION:  # is there any X in Y
            _, _, last_word = normalize(predicate.name).rpartition(" ")
            is_kin = last_word in en.PREPOSITIONS.intersection(question.words)
        is_said = not stems.isdisjoint(_stems_of(predicate.name))
        if is_kin and not (is_said or predicate.has_only_numbers or predicate in similar):
            kin.append(predicate)
    joining = [each for each in (*similar, *kin) if kin and _joins(each, vertices, others, kg)]
    chosen = joining if joining or similar else kin
    if len(reading.facts) != 1 or len(chosen) != 1 or chosen[0] in similar:
        return reading
    [predicate] = chosen
    fact = (first.text, predicate.name, second.text)
    return reading._replace(facts=(fact[::-1] if predicate.is_incoming else fact,))


def _joins(predicate: VertexPredicate, vertices: Vertices, others: Vertices, kg: Graph) -> bool:
    """Return whether a predicate of vertices leads to one of some others."""
    values = fetch_values(kg, vertices, [predicate.iri], is_incoming=predicate.is_incoming)
    return not set(others).isdisjoint(values)


def _as_found(
    reading: ParsedQuestion, name: str, predicates: Predicates, embeddings: Embeddings
) -> ParsedQuestion:
    """Return a look-up in the direction of the only predicate that the name has for its relation.

    The words of the question do not tell the direction, and the grammar took one.
    """
    if not _is_lookup(reading):
        return reading
    read, *others = reading.facts
    _, relation, _ = read
    similar = _predicates_like(relation, predicates, embeddings)
    if len(similar) != 1 or not _has_other_direction(read, name, *similar):
        return reading
    [predicate] = similar
    fact = (name, predicate.name, reading.target)
    if predicate.is_incoming:
        fact = fact[::-1]
    return reading._replace(facts=(fact, *others))


def _has_other_direction(fact: Fact, name: str, predicate: VertexPredicate) -> bool:
    """Return whether a fact leads another way than a predicate of its name, as wordings tell or leave open."""
    subject, relation, _ = fact
    direction: Direction = "out" if predicate.is_incoming != (subject == name) else "in"
    return compare_wordings(relation, predicate.name).contradicts(direction)


def _words_with_names(tokens: Sequence[Token], mentions: Mentions) -> list[str]:
    """Return the words of a question in lower case, with NAME in the place of each name."""
    words = [token.lowercase for token in tokens]
    for mention in reversed(mentions):
        words[mention.start : mention.end] = [NAME]
    return words


def find_not_understood(question: str, kg: Graph | None, embeddings: Embeddings) -> list[str]:
    """Return what ``find_unread`` finds but for guesses, where an answer cannot be in doubt."""
    unread = find_unread(question, kg, embeddings)
    doubts = () if unread.is_guess else unread.doubts
    return [*unread.reasons, *doubts]


def find_unread(question: str, kg: Graph | None, embeddings: Embeddings) -> Unread:
    """Return why a question is not understood, by its form or by what its reading leaves out.

    A reason is the form of the question, a name that may mean several things, words that nothing in
    the reading stands for, or values of a kind that was not asked for. Of names that stand in the
    middle of labels, only the first is a reason. Words that may be left out are doubts. Without a
    graph only the form is looked at. Raises ModelError if the grammar cannot read the question.
    """
    unread = find_unread_form(question, kg)
    if unread or kg is None:
        return Unread(unread)
    reading = ground_question(question, kg, embeddings)
    question = remove_filler_phrases(question)
    tokens = tokenize(question)
    ends = set(chain.from_iterable(fact[::2] for fact in reading.facts))
    mentions = [mention for mention in find_named(question, kg) if mention.text in ends]
    words = words_without_names(mentions, tokens)
    mentions += [text for text in texts_in(question, tokens, words) if text.text in ends][:1]
    vertices = find_vertices(mentions, kg)
    if not bracketed_mentions(question):  # else a person has said what the name is
        unread = _find_unclear_name(mentions, vertices, kg)
    if unread or not vertices:
        return Unread(unread)
    words = words_without_names(mentions, tokens)
    capitalized = [position for position, token in enumerate(tokens) if token.looks_like_name]
    coverage = _Coverage(words, capitalized, reading, vertices, kg, embeddings)
    return coverage.find_unread_parts(_asking_clause(question, tokens))


def can_be_answered(question: str, kg: Graph, embeddings: Embeddings) -> bool:
    """Return whether a question is understood, and the graph has the first relation of a look-up."""
    try:
        unread = find_unread(question, kg, embeddings)
    except ModelError:
        return False
    if (
        ADDS_CONDITION.search(question)
        or unread.reasons
        or not _has_relation(question, kg, embeddings)
    ):
        return _read_selection(question, kg, embeddings) is not None
    return True


def _has_relation(question: str, kg: Graph, embeddings: Embeddings) -> bool:
    """Return whether a question is read as triples, and its only name has the relations that lead from it."""
    reading = ground_question(question, kg, embeddings)
    mentions = find_named(question, kg)
    if reading.kind == "boolean" or len(mentions) != 1:
        return bool(reading.facts)
    [mention] = mentions
    ends = find_vertices(mentions, kg).get(mention, ())
    facts = reading.facts[:1] if _is_lookup(reading) else reading.facts
    similar: Predicates = ()
    for number, (_, relation, _) in enumerate(facts):
        if number:  # the ends of the fact before
            values = [
                fetch_values(kg, ends, [each.iri], is_incoming=each.is_incoming) for each in similar
            ]
            ends = tuple(value for value in chain(*values) if isinstance(value, URIRef))
        similar = _predicates_like(relation, fetch_predicates(kg, ends), embeddings)
        if not similar:
            return False
    return bool(facts)


def read_with_doubts(
    question: str, kg: Graph | None, embeddings: Embeddings
) -> tuple[ParsedQuestion, Unread]:
    """Return the reading of ``ground_question`` with what it leaves out; else the nearest by meaning.

    The latter is in doubt. It is tried where a question about one name is not understood, or the
    name has nothing like the relation that is read. A question for a value of each of several
    things has an unknown for each. A form that is not read gives no triples.
    """
    read = None
    if kg is not None and EACH_OF in question:
        read = _read_for_each(question, kg, embeddings)
    elif kg is not None and ADDS_CONDITION.search(question):
        read = _read_selection(question, kg, embeddings)
    elif kg is not None:
        read = _read_class(question, kg)
        if read is None and not _names_things(question, kg):
            read = read_members(question, kg, embeddings)
    if read is not None:
        return read
    unread = find_unread(question, kg, embeddings)
    reading = ParsedQuestion((), "", "list")
    if not unread.reasons or not find_unread_form(question, kg):
        reading = ground_question(question, kg, embeddings)
    is_read = not (unread.reasons or unread.is_guess)
    if kg is None or (is_read and _has_relation(question, kg, embeddings)):
        return reading, unread
    return (
        _read_selection(question, kg, embeddings)
        or _read_two_steps(question, reading, kg, embeddings)
        or _read_by_meaning(question, reading, kg, embeddings)
        or _read_for_each(question, kg, embeddings)
        or read_members_loosely(question, kg, embeddings)
        or (reading, unread)
    )


def _read_selection(
    question: str, kg: Graph, embeddings: Embeddings
) -> tuple[ParsedQuestion, Unread] | None:
    """Return a reading of a question for those of several things that are described; None for another question.

    They are what a question about a name asks for, or the members of a class.
    """
    return read_members(question, kg, embeddings) or _read_added_condition(question, kg, embeddings)


def _names_things(question: str, kg: Graph) -> bool:
    """Return whether a question has the name of a thing, and not only of classes and texts."""
    vertices = find_vertices(find_mentions(remove_filler_phrases(question), kg), kg)
    named = {end for ends in vertices.values() for end in ends if isinstance(end, URIRef)}
    return not named.issubset(fetch_classes_of_graph(kg))


def _read_class(question: str, kg: Graph) -> tuple[ParsedQuestion, Unread] | None:
    """Return the reading of "is X a film", where the graph has films and says what X is; else None."""
    question = remove_filler_phrases(question)
    mentions = find_named(question, kg)
    if len(mentions) != 1:
        return None
    [thing] = mentions
    first, *others = words_without_names(mentions, tokenize(question))
    name = " ".join(word for word in others if word not in en.DETERMINERS | {""})
    if first not in en.BE_FORMS or name not in names_of_classes(kg):
        return None
    if not fetch_class_names(kg, find_vertices(mentions, kg).get(thing, ())):
        return None
    fact = (thing.text, CLASS_RELATION, name)
    return ParsedQuestion((fact,), thing.text, "boolean"), Unread()


def _read_for_each(
    question: str, kg: Graph, embeddings: Embeddings
) -> tuple[ParsedQuestion, Unread] | None:
    """Return a reading with an unknown for each of several things; None if one of them cannot be asked for.

    "When were X and Y born?" asks for two times: each as a question about one name does. An unknown
    is called like the thing that it is of.
    """
    question = remove_filler_phrases(question)
    tokens = tokenize(question)
    mentions = find_named(question, kg)
    words = words_without_names(mentions, tokens)
    if len(mentions) < 2 or not (EACH_OF in question or asked_kind(words) in VALUE_KINDS):
        return None
    for mention, following in pairwise(mentions):
        between = question[tokens[mention.end - 1].end : tokens[following.start].start]
        if not LIST_JOINT.fullmatch(between):
            return None
    first, last = mentions[0], mentions[-1]
    before, after = question[: tokens[first.start].start], question[tokens[last.end - 1].end :]
    before = before.replace(EACH_OF, "")
    facts: list[Fact] = []
    targets: list[str] = []
    doubts: list[str] = []
    for mention in mentions:
        asked = before + mention.text + after
        reading, unread = read_with_doubts(asked, kg, embeddings)
        is_value = reading.kind == "list" and len(reading.facts) == 1
        if unread.reasons or not is_value:
            return None
        unknown = "?" + re.sub(r"\W+", "_", mention.text)
        [(subject, relation, object_)] = reading.facts
        is_object = object_ == reading.target
        facts.append((subject, relation, unknown) if is_object else (unknown, relation, object_))
        targets.append(unknown)
        doubts += unread.doubts
    return ParsedQuestion(tuple(facts), ", ".join(targets), "list"), Unread((), doubts)


def _read_by_meaning(
    question: str, reading: ParsedQuestion, kg: Graph, embeddings: Embeddings
) -> tuple[ParsedQuestion, Unread] | None:
    """Return a reading of a question about one name by its meaning, with a doubt; None if there is none.

    The name may be a text of the graph, too: "Which stations are in Westshire?" A question of a form
    that is not read even with such a name has no reading.
    """
    if find_unread_form(question, None):
        return None
    question = remove_filler_phrases(question)
    tokens = tokenize(question)
    mentions = find_named(question, kg)
    if not reading.facts:
        reading = parse_tokens(tokens, mentions, kg)
    words = words_without_names(mentions, tokens)
    is_about_person = not en.PERSONAL_PRONOUNS.isdisjoint(words)
    others = [token for token, word in zip(tokens, words, strict=True) if word]
    has_other_name = any(each.looks_like_name and not each.begins_sentence for each in others)
    if len(mentions) != 1 or is_about_person or has_other_name:
        return None
    [mention] = mentions
    vertices = find_vertices(mentions, kg)
    if _find_unclear_name(mentions, vertices, kg):
        return None
    ends = vertices.get(mention, ())
    look_up = _LookUp(words, reading, mention.text, ends, kg, embeddings)
    nearest = look_up.read_by_meaning()
    if nearest is None or look_up.kind == A_TRUTH_VALUE:
        return nearest
    coverage = _Coverage(words, (), nearest[0], {mention: ends}, kg, embeddings)
    return None if coverage.find_wrong_values() else nearest


def _read_two_steps(
    question: str, reading: ParsedQuestion, kg: Graph, embeddings: Embeddings
) -> tuple[ParsedQuestion, Unread] | None:
    """Return a reading of a question about something of a name, such as "the owner of X"; None if there is none.

    The noun must say one predicate of the name, or the class that it leads to. What is asked of its
    values is read by its meaning, with a doubt.
    """
    question = remove_filler_phrases(question)
    tokens = tokenize(question)
    mentions = find_named(question, kg)
    if len(mentions) != 1 or reading.kind != "list" or find_unread_form(question, kg):
        return None
    [mention] = mentions
    words = words_without_names(mentions, tokens)
    span = _noun_of_name(words, mention)
    ends = find_vertices(mentions, kg).get(mention, ())
    predicate = _predicate_said_by(words[span.start] if span else "", fetch_predicates(kg, ends))
    if not span or predicate is None:
        return None
    values = fetch_values(kg, ends, [predicate.iri], is_incoming=predicate.is_incoming)
    things = tuple(value for value in values if isinstance(value, URIRef))
    words[min(span.start, mention.start) : max(span.start + 1, mention.end)] = [""]
    look_up = _LookUp(words, ParsedQuestion((), "?answer", "list"), "?x1", things, kg, embeddings)
    is_said = any(not look_up._is_asked_noun(each) for each in look_up.positions)
    nearest = look_up.read_by_meaning() if is_said else None
    if nearest is None:
        return None
    rest, unread = nearest
    first = (mention.text, predicate.name, "?x1")
    return rest._replace(
        facts=(first[::-1] if predicate.is_incoming else first, *rest.facts)
    ), unread


def _noun_of_name(words: Words, mention: Mention) -> range:
    """Return where the noun stands that says something of a name: "owner" of "the owner of X", or "X's owner"."""
    if words[mention.end : mention.end + 1] == ["'s"]:
        return range(mention.end + 1, min(mention.end + 2, len(words)))
    before = mention.start - 1
    while before > 0 and words[before] in en.DETERMINERS:
        before -= 1
    is_joined = before > 0 and words[before] in ("of", "at", "in")
    return range(before - 1, before) if is_joined else range(0)


def _predicate_said_by(noun: str, predicates: Predicates) -> VertexPredicate | None:
    """Return the only predicate that a noun says by its stem, else by the class it leads to, else as kin; or None."""
    by_name = [each for each in predicates if _has_word_of_stem(each.name, noun)]
    by_class = [
        each
        for each in predicates
        if any(_has_word_of_stem(name, noun) for name in each.value_types)
    ]
    by_kin = []
    for each in predicates:
        wording = compare_wordings(f"{noun} of", each.name)  # whose boss X is, X does not report to
        if are_kin(noun, normalize(each.name)) and not wording.contradicts(
            "out" if each.is_incoming else "in"
        ):
            by_kin.append(each)
    found = by_name or by_class or by_kin
    return found[0] if len(found) == 1 and noun not in NON_CONTENT_WORDS else None


def _asking_clause(question: str, tokens: Sequence[Token]) -> range:
    """Return the positions of the last clause that begins with a question; of all words if none does.

    A clause begins after a sign of CLAUSE_SIGNS, and goes on to the end of the sentence. It begins
    with a question if one of its first MAX_OPENING_WORDS words is a question word. What stands
    before it in its sentence belongs to it if that begins with a preposition: "on Friday, who".
    """
    end = len(tokens)
    clause = range(0)
    for start in range(end - 1, -1, -1):
        is_sentence = tokens[start].begins_sentence
        before = question[tokens[start - 1].start : tokens[start].start]
        opening = {token.lowercase for token in tokens[start : min(start + MAX_OPENING_WORDS, end)]}
        begins_clause = is_sentence or CLAUSE_SIGNS.search(before)
        if not clause and begins_clause and not en.WH_WORDS.isdisjoint(opening):
            clause = range(start, end)
        if is_sentence and clause:
            is_adjunct = tokens[start].lowercase in en.PREPOSITIONS
            return range(start, end) if is_adjunct else clause
        if is_sentence:
            end = start
    return range(len(tokens))


def find_unread_form(question: str, kg: Graph | None) -> list[str]:
    """Return the reason why a question is of a language or form that is not read; [] if it is read.

    At most one reason is returned: it is not in English, has an unsupported word or one of
    WHY_WORDS, is two questions at once, asks for a manner ("how does"), or has no name of the
    graph. Words of names do not count. Without a graph, only names with capitals or in brackets are
    found.
    """
    question = remove_filler_phrases(question)
    mentions = find_named(question, kg)
    words = words_without_names(mentions, tokenize(question))
    if not looks_english(" ".join(words)):
        return ["the question is not in English"]
    unread = find_unsupported_word(words) or next(filter(WHY_WORDS.__contains__, words), "")
    if unread:
        return [f"questions with “{unread}” are not read"]
    is_kind = not en.DESCRIBING_VERBS.isdisjoint(words)
    for word, following in pairwise([*words, ""]):
        if word == "and" and following in en.WH_WORDS and words[0] in en.WH_WORDS:
            return ["two questions at once are not read"]
        if word == "how" and following in en.AUXILIARIES and not is_kind:  # how is it made
            return ["questions for a manner are not read"]
    return _find_missing_name(words, mentions) if kg is not None else []


def _find_missing_name(words: Words, mentions: Mentions) -> list[str]:
    """Return the reason that a question has no name, or "she" before its first one; else [].

    ``words`` are in lower case.
    """
    end = mentions[0].start if mentions else len(words)
    for word in words[:end]:
        if word in en.PERSONAL_PRONOUNS:
            return [f"it is not clear who “{word}” is; ask again with the name"]
    return [] if mentions else ["no name of the graph is in the question"]


# The vertices that names mean


def find_vertices(mentions: Mentions, kg: Graph) -> dict[Mention, Vertices]:
    """Return the vertices of each name that the graph has, by name.

    They are those with the name as their label, else the values that are this text, else those with
    a label that begins or ends with it. Names that are not found are left out.
    """
    if not mentions:
        return {}
    exact = kg.exact([mention.text for mention in mentions])
    vertices_of: dict[Mention, Vertices] = {}
    for mention in mentions:
        vertices: Collection[Term] = exact.get(mention.text, ())
        vertices = vertices or [each.value for each in find_exact_values(kg, [mention.text])]
        vertices = vertices or _find_partial_matches(mention.text, kg)
        if vertices:
            vertices_of[mention] = tuple(dict.fromkeys(vertices))
    return vertices_of


def _find_partial_matches(name: str, kg: Graph) -> list[URIRef]:
    """Return the vertices whose labels begin or end with the words of a name.

    They are among the first MAX_PARTIAL_MATCHES hits of a label search. Letter case and punctuation
    do not count. The order is that of the hits.
    """
    words = f" {normalize(name)} "
    vertices = []
    for hit in kg.search(name, MAX_PARTIAL_MATCHES).hits:
        label = f" {normalize(hit.label)} "
        if label.startswith(words) or label.endswith(words):
            vertices.append(hit.iri)
    return vertices


def _only_mention(mentions: Iterable[Mention]) -> Mention | None:
    """Return the only name with a capital letter; None if there are several.

    Without capitals it is the last name; None if there is no name at all.
    """
    found = list(mentions)
    capitalized = [mention for mention in found if mention.text != mention.text.casefold()]
    found = capitalized or found[-1:]
    return found[0] if len(found) == 1 else None


def _find_unclear_name(
    mentions: Mentions, vertices_of: Mapping[Mention, Vertices], kg: Graph
) -> list[str]:
    """Return the reason that a name may mean several things; [] if each name is clear.

    A name is unclear if it is no whole label, and only a part of different labels of several things
    of one class. If the graph has no label that begins or ends with any of the names, these things
    are those whose labels are equally like a name. The first unclear name is reported, with these
    labels.
    """
    for mention in mentions:
        vertices = vertices_of.get(mention, ())
        label_of: Mapping[URIRef, str] = {}
        if not vertices_of:
            hits = kg.search(mention.text, MAX_TIED_LABELS).hits
            label_of = {hit.iri: hit.label for hit in hits if hit.score == hits[0].score}
        elif len(vertices) > 1 and not kg.exact([mention.text]):
            label_of = kg.names([vertex for vertex in vertices if isinstance(vertex, URIRef)])
        labels = sorted(set(label_of.values()))
        if len(labels) < 2:
            continue
        first, *others = [fetch_class_names(kg, (vertex,)) for vertex in label_of]
        if all(names == first for names in others):
            choices = dict.fromkeys(shorten(label, MAX_CHOICE_CHARS) for label in labels)
            return [f"“{mention.text}” may be {' or '.join(choices)}"]
    return []


# Words


class _QuestionWords:
    """The words of a question about names of a graph, and how like its predicates and classes they are."""

    def __init__(self, words: Words, embeddings: Embeddings) -> None:
        """Keep the words in lower case, with "" in the place of names."""
        self.words = words
        self.embeddings = embeddings
        self.value_type, _ = expected_value_type(words)
        self.kind = asked_kind(words)
        self.positions: list[int] = []
        """Where words stand that may ask for a relation.

        Words of NON_CONTENT_WORDS do not, unless they begin a known relation of two words.
        """
        for position, (word, following) in enumerate(pairwise([*words, ""])):
            if f"{word}_{following}" in RELATION_PHRASES or word not in NON_CONTENT_WORDS:
                self.positions.append(position)

    def _phrases_at(self, position: int) -> list[str]:
        """Return the phrases that the word at a position may ask for.

        These are the word, its relation phrase, and the relation phrases of the word with what is
        asked for or with a neighbour. If the word with "of" or "from" after it names a relation,
        only that is returned: "made of" does not ask for a maker.
        """
        word = self.words[position]
        following = self.words[position + 1 : position + 2]
        word_and_next = "_".join([word, *following])
        if following in (["of"], ["from"]) and word_and_next in RELATION_PHRASES:
            return [RELATION_PHRASES[word_and_next]]
        pairs = [word, word_and_next, f"{word}_{self.value_type}", f"who_{word}"]
        if position > 0:
            pairs.append(f"{self.words[position - 1]}_{word}")
        return [word, *(RELATION_PHRASES[pair] for pair in pairs if pair in RELATION_PHRASES)]

    def kin_positions(self) -> list[int]:
        """Return where words stand that may say a relation by their kin."""
        last = len(self.words) - 1
        positions = []
        for position, word in enumerate(self.words):
            is_vague = word in en.VAGUE_WORDS and position < last  # what does X play
            if stem(word) in KIN_GROUPS and word not in NON_CONTENT_WORDS and not is_vague:
                positions.append(position)
        return positions

    def asked_phrases(self) -> list[str]:
        """Return the phrases of up to MAX_CLASS_WORDS words after "which", "what" or "many".

        They are in normal form with the last word in the singular, the longest first. The first such
        word of the question counts. Returns nothing without one.
        """
        for position, word in enumerate(self.words, start=1):
            if word in WORDS_BEFORE_ASKED_NOUN:
                ends = range(min(position + MAX_CLASS_WORDS, len(self.words)), position, -1)
                phrases = [normal_noun(" ".join(self.words[position:end])) for end in ends]
                return list(filter(None, phrases))
        return []

    def _is_asked_noun(self, position: int) -> bool:
        """Return whether a word stands right after "which", "what" or "many"."""
        return position > 0 and self.words[position - 1] in WORDS_BEFORE_ASKED_NOUN

    def _is_type(self, word: str, types: Collection[str]) -> bool:
        """Return whether a word is a form of the name of a class or datatype, or like it."""
        if any(_has_word_of_stem(each, word) for each in types):
            return True
        likeness = max_similarity(relation_phrase(word), list(types), self.embeddings)
        return likeness >= MIN_CLASS_SIMILARITY

    def _says(self, predicate: VertexPredicate, position: int) -> bool:
        """Return whether a predicate's name says the word at a position, as it is or by a known relation."""
        is_asked = self._is_asked_noun(position)
        if is_asked and self._is_any_class(self.words[position], predicate.value_types):
            return True
        said = _stems_of(predicate.name)
        for phrase in self._phrases_at(position):
            if not said.isdisjoint(map(stem, set(phrase.split()) - UNSPECIFIC_WORDS)):
                return True
        word = self.words[position]
        is_vague = word in en.VAGUE_WORDS | en.TIME_WORDS
        return not is_asked and (is_vague or _says_maker(word, predicate))

    def _is_any_class(self, phrase: str, names: Iterable[str]) -> bool:
        """Return whether a phrase means one of these classes.

        It does if its last word has the stem of a word of the class or is its kin, or if its
        similarity with one of them is at least MIN_CLASS_SIMILARITY, as it is or in the singular.
        """
        listed = list(names)
        for word in normalize(phrase).split()[-1:]:
            for name in map(normalize, listed):
                if stem(word) in map(stem, name.split()) or are_kin(word, name):
                    return True
        for form in (phrase, singularize(phrase)):
            if max_similarity(form, listed, self.embeddings) >= MIN_CLASS_SIMILARITY:
                return True
        return False


def _has_word_of_stem(name: str, word: str) -> bool:
    """Return whether a word of a name is a form of another word."""
    return stem(word) in _stems_of(name)


def _stems_of(name: str) -> set[str]:
    """Return the stems of the words of a name."""
    return set(map(stem, normalize(name).split()))


# The predicate that is asked for


class _LookUp(_QuestionWords):
    """A question about one name, read by the predicates that the name has in the graph."""

    def __init__(
        self,
        words: Words,
        reading: ParsedQuestion,
        name: str,
        vertices: Vertices,
        kg: Graph,
        embeddings: Embeddings,
    ) -> None:
        """Keep the words, the grammar's reading, the name, and the vertices that have the name."""
        super().__init__(words, embeddings)
        if reading.kind == "boolean":
            self.kind = A_TRUTH_VALUE
        self.reading = reading
        self.name = name
        self.vertices = vertices
        self.kg = kg
        self.predicates = fetch_predicates(kg, vertices)

    def read(self) -> ParsedQuestion:
        """Return a reading of the question that the graph can answer, else the grammar's reading.

        The grammar's reading is kept if the graph has predicates like its relations. Otherwise the
        predicate of the name that is most like the words becomes its only relation; if no predicate
        is like them, the grammar's reading is kept as well. A "how many" or "who" question that the
        predicates cannot answer gets a relation that no predicate is like, and so has no answer.
        Predicates that have only numbers are no answer to "who" or for a place; nor are "made at"
        to "who", and "made by" for a place.
        A fact with the class that is asked for is added where ``_with_asked_class`` says so.
        """
        self.reading = self._without_class_relation()
        reading = self._read_by_predicates()
        return self._with_asked_class(self._with_asked_parts(reading))

    def _read_by_predicates(self) -> ParsedQuestion:
        """Return the reading of ``read``, without parts and the class that is asked for."""
        facts = self.reading.facts
        whole = self._find_compound() if len(facts) > 1 else self._find_inverse()
        if whole is not None:
            return self._reading_of_predicate(whole)

        unfit: list[VertexPredicate] = []
        predicates = list(self.predicates)
        asks_who = not WHO_WORDS.isdisjoint(self.words) and not self.value_type
        if len(facts) == 1 and (asks_who or self.value_type == "place"):
            unfit = [each for each in predicates if self._is_unfit(each, asks_who)]
            predicates = [predicate for predicate in predicates if predicate not in unfit]

        relation = next((each for first, each, last in facts if self.name in (first, last)), "")
        similar = _predicates_like(relation, predicates, self.embeddings)
        similar_unfit = _predicates_like(relation, unfit, self.embeddings)
        noun = self._counted_noun(relation)
        is_only_unfit = similar_unfit and not similar
        closest = None
        if len(similar) > 1 and len(facts) == 1:
            closest = self._choose_similar(similar)
        elif asks_who and is_only_unfit:
            closest = self._find_kin(predicates)
        if closest is not None:
            return self._reading_of_predicate(closest)
        if (asks_who and is_only_unfit) or self._counts_something_else(noun, similar):
            return self._with_facts((self.name, noun or "who", "?answer"))
        if similar and not similar_unfit and self._has_all_relations(similar):
            return self.reading

        predicate = _AskedPredicate(self.words, self.embeddings).find(predicates)
        is_said = predicate and any(self._says(predicate, each) for each in self.positions)
        if len(facts) == 1 and not is_said:
            predicate = self._find_kin(predicates) or predicate
        if predicate is None:
            return self.reading
        return self._reading_of_predicate(predicate)

    def _find_inverse(self) -> VertexPredicate | None:
        """Return the only predicate whose declared inverse is what a reading of one fact asks for, else None.

        It is not looked for where the name has a predicate like the relation.
        """
        inverses: dict[VertexPredicate, VertexPredicate] = {}
        for predicate in self.predicates:
            name = predicate.inverse_name
            inverse = replace(predicate, name=name, is_incoming=not predicate.is_incoming)
            if name:
                inverses[inverse] = predicate
        if not inverses or len(self.reading.facts) != 1:
            return None
        [fact] = self.reading.facts
        if _predicates_like(fact[1], self.predicates, self.embeddings):
            return None
        asked = _predicates_like(fact[1], list(inverses), self.embeddings)
        asked = [each for each in asked if not _has_other_direction(fact, self.name, each)]
        return inverses[asked[0]] if len(asked) == 1 else None

    def _is_unfit(self, predicate: VertexPredicate, asks_who: bool) -> bool:
        """Return whether a predicate is no answer to "who", or else for a place, by its name and values.

        Who "runs" a line is not what "runs on" it.
        """
        last_word = normalize(predicate.name).rpartition(" ")[2]
        if predicate.has_only_numbers:
            return True
        if not asks_who:
            return last_word == "by"
        if not predicate.is_incoming:
            return last_word == "at" or self._has_verb_of_another(predicate)
        is_joined = last_word not in ("by", "of") and last_word in en.PREPOSITIONS
        return is_joined and en.PREPOSITIONS.isdisjoint(self.words)

    def _has_verb_of_another(self, predicate: VertexPredicate) -> bool:
        """Return whether a predicate has the verb after "who", and leads to somebody else.

        Who "recorded" X is not its "record label", and who "prescribed" X not whom it is "prescribed
        to". Who "was prescribed" X is not whom it is "prescribed by".
        """
        name = normalize(predicate.name)
        last_word = name.rpartition(" ")[2]
        is_passive = not en.BE_FORMS.isdisjoint(self.words)
        for word, verb in pairwise(each for each in self.words if each not in en.BE_FORMS):
            if word in WHO_WORDS and verb not in en.AUXILIARIES and _has_word_of_stem(name, verb):
                is_whole = last_word in TIME_AND_PLACE_ENDINGS or stem(last_word) == stem(verb)
                if is_passive:
                    return en.is_verb(verb) and leads_to_agent(name)
                return not (is_whole or leads_to_agent(name))
        return False

    def _choose_similar(self, predicates: Predicates) -> VertexPredicate | None:
        """Return the predicate of several like ones that the question means; None if nothing tells.

        It is the only one of the asked kind that has a form of a word of the question, or else the
        only kin of a word, or the only one for a time or not.
        """
        said = {self.words[position] for position in self.positions} - UNSPECIFIC_WORDS
        stems = set(map(stem, said))
        found = []
        for predicate in predicates:
            is_said = not stems.isdisjoint(_stems_of(predicate.name))
            if is_said and self._leads_to_asked_kind(predicate):
                found.append(predicate)
        named = found[0] if len(found) == 1 else None
        return named or self._find_kin(predicates) or self._find_only_timely(predicates)

    def _find_only_timely(self, predicates: Predicates) -> VertexPredicate | None:
        """Return the only predicate for a time, or the only other one, as is asked for; None if there are more.

        "What did X die of" asks for no date.
        """
        if not en.TIME_WORDS.isdisjoint(self.words):
            return None
        asks_when = self.kind == "a time"
        found = [predicate for predicate in predicates if predicate.is_temporal == asks_when]
        return found[0] if len(found) == 1 else None

    def _find_kin(self, predicates: Predicates) -> VertexPredicate | None:
        """Return the only predicate that a word of the question may say, by its kin; None if none is.

        It must lead to the kind of value that is asked for. The answer will be in doubt.
        """
        words = [self.words[position] for position in self.kin_positions()]
        found = []
        for predicate in predicates:
            leads_elsewhere = self.kind == "a place" and predicate.name.endswith(AGENT_ENDINGS)
            if predicate.is_temporal != (self.kind == "a time") or leads_elsewhere:
                continue
            if any(are_kin(word, normalize(predicate.name)) for word in words):
                found.append(predicate)
        numbers = [predicate for predicate in found if predicate.has_only_numbers]
        if numbers and "many" in self.words:  # how many people live in X
            found = numbers
        return found[0] if len(found) == 1 else None

    def read_by_meaning(self) -> tuple[ParsedQuestion, Unread] | None:
        """Return a reading by the predicate that is nearest to the question in meaning, with a doubt.

        The question without the name is compared with the predicates that lead to what is asked for:
        with their names, and with these beside the class that they lead to. If some are kin of a word,
        only these count. The nearest one must have MEANING_LEAD over the next name. If it is no kin, it
        must have MIN_MEANING, too, and no predicate of other things be nearer: what the graph says of
        others, it would say of this thing, too. The only one that leads to the class that is asked for
        needs none of this.

        None if there is no such predicate, if a word selects or compares, or if the question has
        another clause ("what was ... when ...") or seems to have several relations.
        """
        said = [word for word in self.words if word not in EMPTY_WORDS]
        is_lookup = _is_lookup(self.reading) or self.kind == A_TRUTH_VALUE
        is_several = len(said) > 1 and not is_lookup and self._is_of_name()
        is_selected = any(is_comparing(word) or word in en.ORDINALS for word in self.words)
        has_clause = sum(word in en.WH_WORDS for word in self.words) > 1
        if is_several or is_selected or has_clause:
            return None
        of_class = self._predicates_of_asked_class()
        fitting = self._fitting_predicates(of_class)
        if not fitting:
            return None
        kin = [each for each in fitting if self._is_kin(each)]
        if any(are_rivals(one.name, other.name) for one, other in combinations(kin, 2)):
            return None  # relatives are not only fathers
        text = self._text_without_name()
        stems = set(chain.from_iterable(_stems_of(each.name) for each in fitting))
        ranked = sorted((self._meaning(each, text), each.name) for each in kin or fitting)
        likeness, name = ranked[-1]
        names = {each.name for each in fitting}
        if of_class is None or len(names) > 1:
            nearer = {other for near, other in ranked if near > likeness - MEANING_LEAD}
            says_other = self.kind == "" or any(stem(word) in KIN_GROUPS for word in said)
            is_near = likeness >= (MIN_MEANING if says_other else MIN_MEANING_OF_KIND)
            others = self._likeness_of_others(text)
            is_generic = (
                self.kind == "a time" and set(map(stem, stems)) <= ANY_EVENT and len(names) == 1
            )
            is_known = is_generic or (is_near and others <= likeness + MEANING_LEAD)
            if len(nearer) > 1 or not (is_known or (kin and others <= likeness + KIN_LEAD)):
                return None
        predicate = next(each for each in fitting if each.name == name)
        if self._is_about_else(predicate):
            return None
        reading = self._with_asked_parts(self._reading_of_predicate(predicate))
        reading = self._with_asked_class(reading)
        if self.kind == A_TRUTH_VALUE:
            reading = self.reading._replace(facts=((self.name, name, TRUE),), target=self.name)
        taken = f"“{' '.join(said)}”" if said else "the question"
        stems = _stems_of(name)
        is_whole = stems.issuperset(map(stem, said)) and stems.issubset(map(stem, self.words))
        doubts = [] if is_whole else [f"{taken} was read as “{name}”"]
        return reading, Unread((), doubts)

    def _is_of_name(self) -> bool:
        """Return whether the question is about something of the name: "the cook of X", "X's cook"."""
        place = self.words.index("")
        before = [word for word in self.words[:place] if word not in en.DETERMINERS]
        return before[-1:] == ["of"] or "'s" in self.words[place:]

    def _fitting_predicates(self, of_class: Predicates | None) -> Predicates:
        """Return the predicates that lead to what is asked for: to things of a class, or a kind of value."""
        counts = of_class is None and self.kind == "" and "many" in self.words
        fitting = []
        for predicate in self.predicates if of_class is None else of_class:
            is_counted = predicate.has_only_numbers or not counts
            if is_counted and self._leads_to_asked_kind(predicate):
                fitting.append(predicate)
        return fitting

    def _is_kin(self, predicate: VertexPredicate) -> bool:
        """Return whether a word of the question may say a predicate, by its stem or by its kin."""
        stems = _stems_of(predicate.name)
        name = normalize(predicate.name)
        for position in {*self.positions, *self.kin_positions()}:
            word = self.words[position]
            is_telling = en.is_verb(word) or self._is_asked_noun(position)
            if are_kin(word, name) or (is_telling and stem(word) in stems):
                return True
        return False

    def _text_without_name(self) -> str:
        """Return the words of the question, those for a known relation by its phrase."""
        phrases = [self._phrases_at(place)[0] for place, word in enumerate(self.words) if word]
        return " ".join(phrases)

    def _meaning(self, predicate: VertexPredicate, text: str) -> float:
        """Return how near a predicate is to a text in meaning, by its name alone or with a class beside it."""
        names = [predicate.name]
        classes = [] if predicate.has_only_numbers else sorted(predicate.value_types)[:1]
        for each in classes:
            joined = [each, predicate.name] if predicate.is_incoming else [predicate.name, each]
            names.append(" ".join(joined))
        return max(self.embeddings.similarity(text, names))

    def _likeness_of_others(self, text: str) -> float:
        """Return how near the predicates that only other things have are to a text; 1.0 if the question says one."""
        own = {each.name for each in self.predicates}
        names = names_of_predicates(self.kg)
        others = [name for name in names if name not in own]
        said = {stem(word) for word in self.words if word not in EMPTY_WORDS}
        if any(said.issuperset(_stems_of(name)) for name in others):
            return 1.0
        return max(self.embeddings.similarity(text, others), default=0.0)

    def _is_about_else(self, predicate: VertexPredicate) -> bool:
        """Return whether a predicate is not what is asked for, though it is near in meaning.

        It is the rival of a word, or has another direction than the question. Or one word says it,
        and another makes that something else: a population density is no population, and women who
        were influenced are not all who were. A noun after the name may belong to the name.
        """
        name_words = words_saying(normalize(predicate.name))
        stems = _stems_of(predicate.name)
        expected = [predicate.name, *predicate.value_types]
        is_said = not stems.isdisjoint(stem(self.words[place]) for place in self.positions)
        may_be_person = leads_to_kind(self.kg, self.vertices, predicate, "a person")
        for position, (word, following) in enumerate(pairwise([*self.words, ""])):
            if any(are_rivals(word, other) for other in name_words):
                return True
            is_noun = following not in EMPTY_WORDS and not en.is_verb(following)
            is_subject = not en.ACTIVE_AUXILIARIES.isdisjoint(self.words[:position])
            joins_name = word == "" and not is_subject and self.kind != A_TRUTH_VALUE
            if is_noun and (joins_name or (stem(word) in stems and stem(following) not in stems)):
                return True
            is_asked = self._is_asked_noun(position) and position in self.positions
            if is_asked and is_said and not self._is_any_class(word, expected):
                return may_be_person or normal_noun(word) in names_of_classes(self.kg)
        facts = self.reading.facts
        return bool(facts) and _has_other_direction(facts[0], self.name, predicate)

    def _predicates_of_asked_class(self) -> Predicates | None:
        """Return the predicates that lead to the class after "which" or "how many"; None without one."""
        classes = names_of_classes(self.kg)
        phrases = self.asked_phrases()
        asked = [phrase for phrase in phrases if _is_class_called(phrase, classes)]
        if not asked:
            return None
        leading = []
        for predicate in self.predicates:
            types = map(normalize, with_superclasses(self.kg, predicate.value_types))
            if _is_class_called(asked[0], types):
                leading.append(predicate)
        before_name = self.words[max(self.words.index("") - 1, 0)]
        incoming = [predicate for predicate in leading if predicate.is_incoming]
        if before_name in en.PREPOSITIONS and len(incoming) == 1:
            return incoming  # which mountains are in X, and not its highest mountain
        return leading

    def _leads_to_asked_kind(self, predicate: VertexPredicate) -> bool:
        """Return whether a predicate leads to the kind of value that the question words ask for, if any."""
        if self.kind == A_TRUTH_VALUE:
            return "boolean" in predicate.value_types
        return not self.kind or leads_to_kind(self.kg, self.vertices, predicate, self.kind)

    def _find_compound(self) -> VertexPredicate | None:
        """Return the only predicate whose name says all content words of a question, at least two.

        "Since when has X been a member" asks for "member since", and not for the date of a member.
        "Who is the author of the script of X" asks for "written by": both words say it. The noun
        after "which" may also be a class that the predicate leads to. Forms of one word are a
        chain: "directed by the director of X".
        """
        words = [self.words[position] for position in self.positions]
        stems = set(map(stem, words))
        if len(stems) < len(words) or len(words) < 2 or not SHARING_WORDS.isdisjoint(words):
            return None
        found = []
        for predicate in self.predicates:
            if all(self._says(predicate, position) for position in self.positions):
                found.append(predicate)
        return found[0] if len(found) == 1 else None

    def _counted_noun(self, relation: str) -> str:
        """Return the word after the first "many" whose relation phrase is not the relation, else "".

        A word without a relation phrase counts, too.
        """
        for word, next_word in pairwise(self.words):
            if word == "many" and RELATION_PHRASES.get(next_word) != relation:
                return next_word
        return ""

    def _counts_something_else(self, noun: str, predicates: Predicates) -> bool:
        """Return whether "how many" asks for things that these predicates do not lead to.

        ``noun`` is what is counted. It is so if one relation is read, some of the predicates have
        value types, and no value type is like the noun. False for a noun of NON_CONTENT_WORDS,
        which includes "".
        """
        if noun in NON_CONTENT_WORDS or len(self.reading.facts) != 1:
            return False
        types = _types_of(predicates)
        return bool(types) and not self._is_type(noun, types)

    def _has_all_relations(self, similar: Predicates) -> bool:
        """Return whether the graph has predicates like all relations of the grammar's reading.

        Relations of RELATION_WORDS alone are not looked up. ``similar`` are the predicates like
        the relation at the name. If several relations are read, all predicates within two triples
        of the name count too.
        """
        unusual = []
        for _, relation, _ in self.reading.facts:
            if not RELATION_WORDS.issuperset(relation.split()):
                unusual.append(relation)
        names = [predicate.name for predicate in similar]
        if unusual and len(self.reading.facts) > 1:
            names.extend(predicates_within_two_steps(self.kg, self.vertices))
        return all(
            max_similarity(relation, names, self.embeddings) >= MIN_PREDICATE_SIMILARITY
            for relation in unusual
        )

    def _with_facts(self, *facts: Fact) -> ParsedQuestion:
        """Return the reading with other facts, which ask for "?answer"."""
        return self.reading._replace(facts=facts, target="?answer")

    def _reading_of_predicate(self, predicate: VertexPredicate) -> ParsedQuestion:
        """Return a reading that asks for the other end of a predicate of the name.

        If that is a blank node, a second fact asks for its values by all its predicates.
        """
        if predicate.is_incoming:
            return self._with_facts(("?answer", predicate.name, self.name))
        if not predicate.inner_predicates:
            return self._with_facts((self.name, predicate.name, "?answer"))
        return self._reading_of_parts(predicate, predicate.inner_predicates)

    def _reading_of_parts(self, predicate: VertexPredicate, parts: Sequence[str]) -> ParsedQuestion:
        """Return a reading that asks for values of the blank nodes that a predicate leads to."""
        first = (self.name, predicate.name, "?x1")
        return self._with_facts(first, ("?x1", write_name_list(parts), "?answer"))

    def _with_asked_parts(self, reading: ParsedQuestion) -> ParsedQuestion:
        """Return a reading that asks for those parts of a value without a name that are asked for.

        A reading that asks for another value stays as it is, and so does one for the whole value.
        """
        if not _is_lookup(reading):
            return reading
        _, relation, _ = reading.facts[0]
        similar = _predicates_like(relation, self.predicates, self.embeddings)
        if len(similar) == 1 and not similar[0].is_incoming:
            parts = self._find_asked_parts(similar[0].inner_predicates, similar[0].name)
            if parts:
                return self._reading_of_parts(similar[0], parts)
        return reading

    def _find_asked_parts(self, inner: Sequence[str], outer: str) -> list[str]:
        """Return the predicates of a blank node that the question asks for; [] if it asks for all.

        ``outer`` is the name of the predicate that leads to the node. It names no part.
        They are those that a word of the question names, or another word for a place. If none is
        named, they are all but the units: a length is asked for without its unit.
        """
        named: set[str] = set()
        for word in self.words:
            named_by_word = []
            if word not in (*NON_CONTENT_WORDS, outer):
                named_by_word = [name for name in inner if _has_word_of_stem(name, word)]
            if word in en.PLACE_WORDS and not named_by_word:
                best = max(MIN_PREDICATE_SIMILARITY, max_similarity(word, inner, self.embeddings))
                named_by_word = [
                    name for name in inner if max_similarity(word, [name], self.embeddings) == best
                ][:1]
            named.update(named_by_word)
        parts = [name for name in inner if name in named]
        without_units = [name for name in inner if not names_unit(name)]
        if not parts and len(without_units) < len(inner):
            return without_units
        return [] if UNIT_WORDS.issuperset(parts) else parts

    def _without_class_relation(self) -> ParsedQuestion:
        """Return the grammar's reading, without its second relation if that is the name of a class.

        In "which maps are kept in X", "maps" is not a relation of what is kept in X if the graph
        has a class of that name, and no predicate of that name within two triples of X. The
        relation must be the second of two, stand after the question word, and lead to what is asked
        for. Otherwise the reading stays.
        """
        reading = self.reading
        if len(reading.facts) != 2:
            return reading
        first, (subject, relation, target) = reading.facts
        if not subject.startswith("?") or target != reading.target:
            return reading
        noun = normal_noun(relation)
        if noun not in self.asked_phrases() or noun not in names_of_classes(self.kg):
            return reading
        for name in predicates_within_two_steps(self.kg, self.vertices):
            if noun in map(singularize, normalize(name).split()):
                return reading
        return reading._replace(facts=(first,), target=subject)

    def _with_asked_class(self, reading: ParsedQuestion) -> ParsedQuestion:
        """Add the class of the answers that the question names to a reading of one fact.

        In "which stations did X design", the class stands after the question word. A fact that
        states it is added if the predicate also leads to things of other classes or without a
        class. The reading is returned as it is if it has several facts, if the predicate is named
        like the class, or if things near the name have two types: a city may be typed as a big city
        alone.
        """
        if len(reading.facts) != 1:
            return reading
        [(_, relation, _)] = reading.facts
        predicates = _predicates_like(relation, self.predicates, self.embeddings)
        names = [normalize(predicate.name) for predicate in predicates]
        types = set(map(normalize, _types_of(predicates)))
        has_untyped = any(predicate.has_untyped_values for predicate in predicates)
        if not types or all(predicate.has_only_numbers for predicate in predicates):
            return reading
        for phrase in self.asked_phrases():
            is_only_type = types == {phrase} and not has_untyped
            if phrase in names or is_only_type:
                return reading
            is_class_name = phrase in types or phrase in names_of_classes(self.kg)
            if is_class_name and not has_neighbour_of_two_types(self.kg, self.vertices):
                fact = (reading.target, CLASS_RELATION, phrase)
                return reading._replace(facts=(*reading.facts, fact))
        return reading


class _AskedPredicate(_QuestionWords):
    """The words of a question, by which the predicate that it asks for is found."""

    def find(self, predicates: Predicates) -> VertexPredicate | None:
        """Return the predicate that the question asks for; None if none fits.

        Of the predicates with MIN_PREDICATE_SIMILARITY to a word, it is the one with the largest
        sum over all words; None if a word that it does not explain asks for something else. If no
        word is that like a predicate, it is the only one whose value type is named, or else the
        only predicate; None if it leaves any word unexplained. For a question for a date, only
        predicates of time are looked at.
        """
        if self.value_type == "date":
            predicates = [predicate for predicate in predicates if predicate.is_temporal]
        matches = [(predicate, self._likeness(predicate)) for predicate in predicates]
        similar = []
        for predicate, likeness in matches:
            if max(likeness.values(), default=0.0) >= MIN_PREDICATE_SIMILARITY:
                similar.append((predicate, likeness))
        if similar:
            best, likeness = max(similar, key=lambda match: sum(match[1].values()))
            unexplained = self._unexplained(best, likeness)
            return None if any(map(self._asks_for_something_else, unexplained)) else best
        words = [self.words[position] for position in self.positions]
        of_named_type = []
        for predicate, likeness in matches:
            if any(self._is_type(word, predicate.value_types) for word in words):
                of_named_type.append((predicate, likeness))
        fitting = of_named_type or matches
        if len(fitting) != 1 or self._unexplained(*fitting[0]):
            return None
        return fitting[0][0]

    def _likeness(self, predicate: VertexPredicate) -> dict[int, float]:
        """Return the similarity of each content word with a predicate of the name, by position.

        A word is compared with its phrases, and with each neighbour; the best counts. It is equal to
        the predicate's own name if that has the word, or says the same known relation.
        """
        names = [predicate.name, *predicate.inner_predicates]
        own_name = normalize(predicate.name)
        likeness = {}
        for position in self.positions:
            word = self.words[position]
            if have_same_relation(word, own_name) or _has_word_of_stem(own_name, word):
                likeness[position] = 1.0
                continue
            pairs = [self.words[max(position - 1, 0) : position + 1]]
            pairs.append(self.words[position : position + 2])
            phrases = [*self._phrases_at(position), *map(" ".join, pairs)]
            likeness[position] = max(
                max_similarity(phrase, names, self.embeddings) for phrase in phrases
            )
        return likeness

    def _unexplained(self, predicate: VertexPredicate, likeness: Mapping[int, float]) -> list[int]:
        """Return the positions of the content words that a predicate does not explain.

        It explains words with MIN_RELATION_SIMILARITY, words for a time, and those that name the
        class or datatype that it leads to.
        """
        unexplained = []
        for position in self.positions:
            word = self.words[position]
            is_explained = likeness[position] >= MIN_RELATION_SIMILARITY or word in en.TIME_WORDS
            if not is_explained and not self._is_type(word, predicate.value_types):
                unexplained.append(position)
        return unexplained

    def _asks_for_something_else(self, position: int) -> bool:
        """Return whether a word that a predicate does not explain asks for another relation.

        It does if it is in RELATION_PHRASES, stands after "what", "which" or "many" (with
        SKIPPED_WORDS between), or before "of" without a question word after that. Words of
        VAGUE_WORDS never do.
        """
        word = self.words[position]
        if word in en.VAGUE_WORDS or word in RELATION_PHRASES:
            return word not in en.VAGUE_WORDS
        before = [other for other in self.words[:position] if other not in SKIPPED_WORDS]
        if before and before[-1] in WORDS_BEFORE_ASKED_NOUN:
            return True
        following = self.words[position + 1 : position + 3]
        return "of" in following[:1] and en.WH_WORDS.isdisjoint(following)


def _predicates_like(
    relation: str, predicates: Predicates, embeddings: Embeddings
) -> list[VertexPredicate]:
    """Return the predicates that are like a relation, without regard to a " by" at its end.

    Without a relation there are none.
    """
    names = [predicate.name for predicate in predicates]
    if relation not in names:
        relation = relation.removesuffix(" by")
    similar = find_similar_predicates(relation, names, embeddings) if relation else []
    return [predicate for predicate in predicates if predicate.name in similar]


def _is_class_called(phrase: str, classes: Iterable[str]) -> bool:
    """Return whether one of some classes has a name, or has it after an adjective or noun: "ferry", "car ferry"."""
    return any(each == phrase or each.endswith(f" {phrase}") for each in classes)


def _says_maker(word: str, predicate: VertexPredicate) -> bool:
    """Return whether a word for making may stand beside the name of a predicate: "wrote" beside "lyrics by"."""
    return predicate.name.endswith(AGENT_ENDINGS) and are_kin(word, "make")


def _types_of(predicates: Predicates) -> set[str]:
    """Return the names of the classes and datatypes that predicates lead to."""
    names: set[str] = set()
    for predicate in predicates:
        names |= predicate.value_types
    return names


def _is_lookup(reading: ParsedQuestion) -> bool:
    """Return whether a reading asks for one predicate of one name, and is not a yes-or-no question.

    Further facts may state the class of the answers, or ask for the values behind blank nodes.
    """
    if reading.kind == "boolean" or not reading.facts:
        return False
    further = [relation for _, relation, _ in reading.facts[1:]]
    return all(relation == CLASS_RELATION or NAME_SEPARATOR in relation for relation in further)


# What is left over


class _Coverage(_QuestionWords):
    """A question about names of the graph, and what accounts for its words."""

    def __init__(
        self,
        words: Words,
        capitalized: Collection[int],
        reading: ParsedQuestion,
        vertices_of: Mapping[Mention, Vertices],
        kg: Graph,
        embeddings: Embeddings,
    ) -> None:
        """Keep the words, "" in the place of names, and find the predicates that the query may use.

        ``capitalized`` are the positions of words that are written like names. For a question about
        one predicate words may ask for the chosen predicates and those behind their blank nodes;
        for another question for all within two triples of the names.
        """
        super().__init__(words, embeddings)
        self.capitalized = capitalized
        self.reading = reading
        self.kg = kg
        self.vertices_of = vertices_of
        self.vertices = tuple(chain.from_iterable(vertices_of.values()))
        self.predicates = fetch_predicates(kg, self.vertices)
        self.is_lookup = _is_lookup(reading) and len(vertices_of) == 1
        """Whether one predicate of one name is asked for."""
        self.chosen = self._chosen_predicates()
        asked = self.chosen if self.is_lookup else self.predicates
        names: list[str] = []
        for predicate in asked:
            names += [predicate.name, predicate.inverse_name, *predicate.inner_predicates]
        if not self.is_lookup:
            names += predicates_within_two_steps(kg, self.vertices)
        self.predicate_names = list(dict.fromkeys(names))
        self.value_types = sorted(_types_of(asked))

    def _chosen_predicates(self) -> Predicates:
        """Return the predicates like the first relation of the reading, without " by" or with it."""
        if not self.reading.facts:
            return []
        _, relation, _ = self.reading.facts[0]
        similar = _predicates_like(relation, self.predicates, self.embeddings)
        if similar:
            return similar
        names = [predicate.name for predicate in self.predicates]
        names = find_similar_predicates(relation, names, self.embeddings)
        return [predicate for predicate in self.predicates if predicate.name in names]

    def find_unread_parts(self, clause: range) -> Unread:
        """Return a reason for each word that nothing accounts for, else for wrong values.

        Of a question about one predicate, words that may be left out are doubts. ``clause`` are the
        positions of the clause that asks: if it has a word for the predicate, what is said outside
        of it is said in passing. Nothing is returned if no predicate was chosen for a question
        about one predicate: the graph has no value then.
        """
        if self.is_lookup and not self.chosen:
            return Unread(self._find_other_predicate())
        unread = self._unread_positions()
        if self.is_lookup and self._is_supported(clause):
            unread = [each for each in unread if each in clause or self._selects(each)]
        left_out = [position for position in unread if self._may_be_left_out(position)]
        reasons = []
        for position in unread:
            if position not in left_out:
                reasons.append(f"nothing in the query stands for “{self.words[position]}”")
        if self.reading.kind == "boolean" and not reasons:
            doubted = [] if self._is_said() else self._kin_of_chosen()
            return Unread(self._find_unknown_truth(), list(map(self._doubt_of, doubted)))
        if not self.is_lookup and not reasons and self._asks_for_each():
            reasons = ["it asks for a value of each of several things"]
        if reasons or not self.is_lookup:
            return Unread(reasons)
        if not self._is_supported():
            kin = self._kin_of_chosen()
            if not kin and self.kind not in VALUE_KINDS:
                return Unread(["no word says which predicate is asked for"])
            left_out = sorted({*left_out, *kin})
        guessed = [] if left_out else self._guessed_positions()
        doubts = [*map(self._doubt_of, left_out), *self._find_unsaid_kind()]
        if guessed and not doubts:
            doubts = self._taken_as_chosen(guessed)
        doubts = doubts or self._find_events()
        return Unread(self.find_wrong_values(), doubts, bool(guessed))

    def _find_events(self) -> list[str]:
        """Return the doubt that an answer is an event, and not who or what takes part in it.

        What somebody ordered is no order: "ordered from" leads to one.
        """
        asks_for_noun = any(map(self._is_asked_noun, self.positions))
        is_action = not asks_for_noun and not en.ACTIVE_AUXILIARIES.isdisjoint(self.words)
        if self.kind or not (is_action and any(each.is_incoming for each in self.chosen)):
            return []
        stems = {stem(self.words[position]) for position in self.positions}
        for value_type in self.value_types:
            if not stems.isdisjoint(_stems_of(value_type)):
                return [f"the question was read as one for a “{value_type}”"]
        return []

    def _guessed_positions(self) -> list[int]:
        """Return where words stand that are only near to the chosen predicate in meaning, if no word says it.

        A kin that leads to the kind that is asked for says it.
        """
        if self._is_fully_named() or any(map(self._is_said_at, self.positions)):
            return []
        guessed = []
        for position in self.positions:
            word = self.words[position]
            is_class = any(_has_word_of_stem(each, word) for each in self.value_types)
            if self._is_content(position) and not is_class:
                guessed.append(position)
        return guessed

    def _is_said_at(self, position: int) -> bool:
        """Return whether the word at a position says the chosen predicate, as it is, by a known relation or as kin."""
        if self.kind and self._find_kin_name(position):
            return True
        word = self.words[position]
        phrase = RELATION_PHRASES.get(word, "")
        for predicate in self.chosen:
            names = normalize(f"{predicate.name} {predicate.inverse_name}").split()
            is_begun = len(word) > MIN_STEM_CHARS and any(each.startswith(word) for each in names)
            is_same = bool(phrase) and phrase in map(RELATION_PHRASES.get, names)
            if is_begun or is_same or self._says(predicate, position):
                return True
        return False

    def _taken_as_chosen(self, positions: Iterable[int]) -> list[str]:
        """Return the doubt that words were read as the chosen predicate."""
        words = " ".join(self.words[position] for position in positions)
        names = sorted(each.name for each in self.chosen)
        return [f"“{words}” was read as “{name}”" for name in names[:1]]

    def _find_unsaid_kind(self) -> list[str]:
        """Return the doubt that a predicate is not just what is said, where others lead to the same class.

        "The doctor of X" may be the "referring doctor", or who treats X.
        """
        if self._is_fully_named():
            return []
        others = [predicate for predicate in self.predicates if predicate not in self.chosen]
        classes = set(map(normalize, _types_of(self.chosen) & _types_of(others)))
        for predicate, position in product(self.chosen, self.positions):
            word = self.words[position]
            if word in classes and _has_word_of_stem(predicate.name, word):
                return [f"“{word}” was read as “{predicate.name}”"]
        return []

    def _is_said(self) -> bool:
        """Return whether a word of the question is like the name of a chosen predicate."""
        for position, predicate in product(self.positions, self.chosen):
            for phrase in self._phrases_at(position):
                if self._is_like(phrase, predicate.name, MIN_PREDICATE_SIMILARITY):
                    return True
        return False

    def _kin_of_chosen(self) -> list[int]:
        """Return where words stand that may say the only chosen predicate."""
        return [position for position in self.kin_positions() if self._find_kin_name(position)]

    def _asks_for_each(self) -> bool:
        """Return whether a value of each of several things is asked for: "When were X and Y born?"

        A query gives what all of them have in common.
        """
        relations = {relation for _, relation, _ in self.reading.facts}
        count = len(self.vertices_of)
        is_of_each = count > 1 and len(self.reading.facts) == len(relations) * count
        return is_of_each and self.kind in VALUE_KINDS

    def _doubt_of(self, position: int) -> str:
        """Return the sentence that says how a word that may be left out was taken."""
        word = self.words[position]
        if word == ORIGIN_VERB:
            word = "from"
        kin = self._find_kin_name(position)
        return f"“{word}” was read as “{kin}”" if kin else f"“{word}” was not read"

    def _find_kin_name(self, position: int) -> str:
        """Return the name of the chosen predicates, if they have one and the word at a position may say it; else ""."""
        name, *others = {predicate.name for predicate in self.chosen} or {""}
        return name if not others and are_kin(self.words[position], normalize(name)) else ""

    def _selects(self, position: int) -> bool:
        """Return whether a word selects among things wherever it stands: "second", "oldest".

        A word for a time after it makes it a part of a time: "last night".
        """
        word = self.words[position]
        is_superlative = word.endswith(SUPERLATIVE_ENDING) and is_comparing(word)
        is_of_time = self.words[position + 1 : position + 2] in PASSING_TIMES
        return is_superlative or (word in en.ORDINALS and not is_of_time)

    def _may_be_left_out(self, position: int) -> bool:
        """Return whether a word that nothing accounts for leaves the question much as it is.

        A word may if a chosen predicate is its kin. For others, the question must say the whole
        name of a chosen predicate. The word must be no relation of its own, and not select. Then a
        verb, an adjective that is said of the name, or the noun of an apposition ("the picture X")
        may: "under which genre would you file X". A word that belongs to a noun may not: "the
        second warden", "the population density".
        """
        word = self.words[position]
        following = self.words[position + 1 : position + 2]
        if not (self.is_lookup or self.reading.kind == "boolean") or is_comparing(word):
            return False
        if self._find_kin_name(position):
            return True
        if word == "first" and self.kind == "a time":
            return following == [""] or any(map(en.is_verb, following))
        is_kind = word in en.TIME_WORDS or word in en.PLACE_WORDS or self._is_asked_noun(position)
        if is_kind or not self.is_lookup or self.kind == "a place" or not self._is_fully_named():
            return False
        if self._selects(position) or word in RELATION_PHRASES or stem(word) in RIVALS:
            return False
        return self._is_verb_of_clause(position)

    def _is_verb_of_clause(self, position: int) -> bool:
        """Return whether a word is a verb or an adjective that is said of the subject, by its place.

        It stands after an auxiliary, a pronoun or the name. After an auxiliary, or without one
        before the name, it must look like a verb or be followed by no noun: "is responsible for".
        """
        word = self.words[position]
        before = list(self.words[:position])
        while before and before[-1] in en.ORDINALS | en.FILLERS:
            before.pop()
        following = self.words[position + 1 : position + 2]
        is_alone = not following or following[0] in en.FUNCTION_WORDS | {""}
        looks_like_verb = en.is_verb(word) or word in IRREGULAR_FORMS
        if before[-1:] == [""]:
            has_auxiliary = not en.ACTIVE_AUXILIARIES.isdisjoint(before)
            is_third_person = word.endswith("s") and en.BE_FORMS.isdisjoint(before)
            return has_auxiliary or looks_like_verb or is_third_person
        if before and before[-1] in en.AUXILIARIES | en.SUBJECTS | en.RELATIVES | {"to"}:
            return is_alone or looks_like_verb
        return (
            following == [""] and before[-1:] != ["'s"] and en.DETERMINERS.isdisjoint(before[-1:])
        )

    def _is_fully_named(self) -> bool:
        """Return whether the words of the question say every word of the name of a chosen predicate.

        Function words and words for a time or place need not be said, unless there are no others. A
        predicate that alone leads to the class that the question names is fully named, too.
        """
        if len(self.chosen) == 1:
            for position, word in enumerate(self.words):
                if self._is_asked_noun(position) and self._is_any_class(word, self.value_types):
                    return True
        said = set(map(stem, self.words))
        for position in self.positions:
            for phrase in self._phrases_at(position):
                said |= _stems_of(phrase)
        for predicate in self.chosen:
            name_words = set(normalize(predicate.name).split())
            content = name_words - UNSPECIFIC_WORDS - en.PLACE_WORDS or name_words
            if said.issuperset(map(stem, content)):
                return True
        return False

    def _find_other_predicate(self) -> list[str]:
        """Return that the graph has something else than a relation that no predicate is like.

        It is said only where a predicate looks like the relation, and a query might take it: who
        planted a tree is not when it was planted. Otherwise there is no value, which the answer
        will say.
        """
        _, relation, _ = self.reading.facts[0]
        # A time or place is of an event: "birth date" does not look like "release date".
        event = without_time_and_place(relation) or relation
        for predicate in self.predicates:
            other_event = without_time_and_place(predicate.name) or predicate.name
            if max_similarity(event, [other_event], self.embeddings) >= MIN_PREDICATE_SIMILARITY:
                return [f"it asks for “{relation}”, and the graph has “{predicate.name}”"]
        return []

    def _find_unknown_truth(self) -> list[str]:
        """Return the reason that the graph does not say whether a fact holds; else [].

        The graph says so if the first name has a predicate like the relation that may lead to the
        other: a person without a birth place in the graph may be born anywhere. Nothing is checked
        for what a thing is ("is X a chemist"), nor for a reading with another number of facts or
        names.
        """
        _, relation, _ = self.reading.facts[0]
        unknown = [f"the graph does not say what is asked with “{relation}”"]
        if len(self.vertices_of) == 1:
            return [] if self._is_fully_named() else unknown
        if len(self.reading.facts) != 1 or len(self.vertices_of) != 2:
            return []
        if relation == IS_A_RELATION:
            return []
        things = [name for name, ends in self.vertices_of.items() if not _are_texts(ends)]
        first = min(things or self.vertices_of)
        for predicate in fetch_predicates(self.kg, self.vertices_of[first]):
            is_unfit = predicate.has_only_numbers or predicate.is_temporal
            if is_unfit and len(things) == len(self.vertices_of):
                continue
            if find_similar_predicates(relation, [predicate.name], self.embeddings):
                return []
        return [f"the graph does not say of {first.text} what is asked with “{relation}”"]

    def _unread_positions(self) -> list[int]:
        """Return where content words stand that nothing accounts for (``_is_accounted_for``)."""
        unread = []
        for position in range(len(self.words)):
            if self._is_content(position) and not self._is_accounted_for(position):
                unread.append(position)
        return unread

    def _is_content(self, position: int) -> bool:
        """Return whether a word carries a meaning of its own; comparing words and superlatives do."""
        word = self.words[position]
        if is_comparing(word):
            return True
        before = self.words[max(position - 1, 0)]
        if (word == DIRECT and before in en.DETERMINERS) or is_part_of_verb(before, word):
            return False
        if word in en.PERSON_NOUNS and any(not each.has_only_numbers for each in self.chosen):
            return False
        return word not in EMPTY_WORDS and bool(LETTER_OR_DIGIT.search(word))

    def _is_accounted_for(self, position: int) -> bool:
        """Return whether something in the reading or the graph stands for the word at a position.

        That is a predicate or a class that is like the word, or a text of the thing that is asked
        about. In a question about one predicate, a word for a time stands for the kind of value that
        is asked for. For another question it may also be a relation of the reading or any label of
        the graph, and words for a time or place are not looked at. A comparing word or superlative
        must stand in the name of a predicate.
        """
        word = self.words[position]
        is_owned = self.words[max(position - 1, 0)] == "whose"
        own_classes = fetch_class_names(self.kg, self.vertices) if is_owned else ()
        if is_comparing(word) or self._is_any_class(word, own_classes):  # whose boat is X
            return self._stands_in_predicate(word)
        threshold = MIN_RELATION_SIMILARITY
        if not self.is_lookup or self._is_asked_noun(position):
            threshold = MIN_PREDICATE_SIMILARITY
        if self._is_like_predicate(position, threshold) or self._is_class(position):
            return True
        if word in en.TIME_WORDS or word in en.PLACE_WORDS:
            is_asked_time = self.kind == "a time" and singularize(word) in en.TIME_WORDS
            return is_asked_time or not self.is_lookup
        says_maker = any(_says_maker(word, each) for each in self.chosen)
        if self._describes_name(position) or (says_maker and self._is_fully_named()):
            return True
        if self.is_lookup:
            return self._is_class_of_untyped(position)
        return word in SHARING_WORDS or self._is_read_relation(word) or self._is_label(word)

    def _is_class_of_untyped(self, position: int) -> bool:
        """Return whether a word says of what class the values are that the question names itself.

        In "which company is the operator of X", "operator" says what is asked for. The graph must
        have a predicate of this name whose values have no class, or else it knows better.
        """
        following = self.words[position + 1 : position + 3]
        if not self._is_asked_noun(position) or len(following) < 2:
            return False
        be, determiner = following
        if be not in en.BE_FORMS or determiner != "the":
            return False
        later_words = self.words[position + 3 :]
        is_named = any(self._stands_in_predicate(word) for word in later_words if word)
        return is_named and not self.value_types

    def _describes_name(self, position: int) -> bool:
        """Return whether a word stands in a text of the thing that is asked about.

        It must stand beside the name and have a capital letter, as the family name after a first
        name that the graph has as a label. A word that tells several things of one name apart may
        stand anywhere.
        """
        word = self.words[position]
        if any(word in mention.text.split() for mention in self.vertices_of):
            return True  # of which year it is
        if len(self.vertices) > 1:
            return has_text_with(self.kg, self.vertices, word)
        if position not in self.capitalized:
            return False
        is_beside_name = "" in self.words[max(position - 1, 0) : position + 2]
        return is_beside_name and has_text_with(self.kg, self.vertices, word)

    def _stands_in_predicate(self, word: str) -> bool:
        """Return whether a word is one of the words of a predicate's name, in normal form."""
        return any(word in normalize(name).split() for name in self.predicate_names)

    def _is_like_predicate(self, position: int, threshold: float) -> bool:
        """Return whether a word, alone or with a neighbour, is like a predicate's name.

        It is if they have a stem in common, or if their similarity reaches ``threshold`` and no two
        words of them are rivals.
        """
        for phrase in self._phrases_at(position):
            for name in self.predicate_names:
                if self._is_like(phrase, name, threshold):
                    return True
        return False

    def _is_like(self, phrase: str, name: str, threshold: float) -> bool:
        """Return whether a phrase is a form of a word of a predicate's name, or like it in meaning.

        A stem in common is enough. Otherwise their similarity must reach ``threshold``, and no two
        words of them be rivals (see ``are_rivals``).
        """
        phrase_words = normalize(phrase).split()
        name_words = normalize(name).split()
        meanings = set(name_words)
        for word in name_words:
            meanings |= MEANINGS.get(stem(word), set())
        stems = {stem(word) for word in meanings - UNSPECIFIC_WORDS}
        if not stems.isdisjoint(map(stem, phrase_words)):
            return True
        for word in phrase_words:
            if any(are_rivals(word, other) for other in name_words):
                return False
        return max_similarity(phrase, [name], self.embeddings) >= threshold

    def _is_class(self, position: int) -> bool:
        """Return whether the word at a position names a class of the names or of the values.

        It does if a class is like it, and no other class of the graph is more like it. A word
        between a determiner and a name without a class in the graph does as well ("the contract
        X").
        """
        word = self.words[position]
        if self._is_any_class(word, self.value_types):
            return True
        own_classes = fetch_class_names(self.kg, self.vertices)
        if self._is_any_class(word, own_classes):
            return True
        if word in RELATION_PHRASES or en.is_verb(word):
            return False
        # Of all classes of the graph, the one most like the word must be among them
        classes = sorted(names_of_classes(self.kg))
        likeness = max_similarity(word, classes, self.embeddings)
        required = min(max(likeness, MIN_RELATION_SIMILARITY), LIKE_CLASS_SIMILARITY)
        expected = [*self.value_types, *own_classes]
        return max_similarity(word, expected, self.embeddings) >= required

    def _is_read_relation(self, word: str) -> bool:
        """Return whether a word names a relation of the reading."""
        relations = " ".join(relation for _, relation, _ in self.reading.facts)
        return word in relations or relation_phrase(word) in relations

    def _is_label(self, word: str) -> bool:
        """Return whether a word is a label of the graph, or like the name of a class.

        The word counts as it is and in the singular. The graph is asked for the label.
        """
        is_label = bool(self.kg.exact([word, singularize(word)]))
        return is_label or self._is_any_class(word, sorted(names_of_classes(self.kg)))

    def _is_supported(self, positions: Iterable[int] | None = None) -> bool:
        """Return whether a word at some positions, or any, is for the chosen predicate or its values.

        A content word, or a word of a known relation, must be like the predicate
        (MIN_PREDICATE_SIMILARITY), or like a class or datatype that it leads to. A class alone does
        not tell what a text of the graph is to its things: "which bands are from Turin".
        """
        types = [] if _are_texts(self.vertices) else self.value_types
        for position in range(len(self.words)) if positions is None else positions:
            word = self.words[position]
            pair = "_".join(self.words[position : position + 2])
            names_relation = pair in RELATION_PHRASES or word in RELATION_PHRASES
            if self._is_content(position) or names_relation:
                if self._is_like_predicate(position, MIN_PREDICATE_SIMILARITY):
                    return True
                if self._is_any_class(word, types):
                    return True
        return False

    def find_wrong_values(self) -> list[str]:
        """Return the reason that the values of the chosen predicates are of a wrong kind; else [].

        For predicates that lead to the name, the values are things, which are neither times nor
        numbers. For others, values are fetched from the graph and compared with the kind that is
        asked for.
        """
        if any(predicate.is_incoming for predicate in self.chosen):
            is_wrong = self.kind in ("a time", "a number")
            return [f"it asks for {self.kind}, and things were found"] if is_wrong else []
        is_temporal = any(predicate.is_temporal for predicate in self.chosen)
        if not self.kind or (self.kind == "a time" and is_temporal):
            return []
        iris = [predicate.iri for predicate in self.chosen]
        values = fetch_values(self.kg, self.vertices, iris)
        if not values or any(self.kind in kinds_of_value(value) for value in values):
            return []
        names = ", ".join(f"“{predicate.name}”" for predicate in self.chosen)
        return [f"it asks for {self.kind}, and the values of {names} are of another kind"]
