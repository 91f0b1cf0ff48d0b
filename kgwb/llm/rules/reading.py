"""Reading a question with the help of the graph: what it asks for, and how sure that is.

The grammar reads a question by its words alone. Where the relations that it reads do not exist in
the graph, the words are compared with the predicates of the name in both directions, and with those
of its values that have no name of their own. What is only near in meaning is read with a doubt. A
question that asks for something else stays unanswered.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple
from weakref import ref

from rdflib import URIRef

from kgwb.errors import ModelError
from kgwb.kg.base import Graph
from kgwb.kg.embeddings import Embeddings
from kgwb.kg.label_search import normalize
from kgwb.kg.queries import find_exact_values
from kgwb.kg.sparql import values_clause
from kgwb.llm.rules import words as en
from kgwb.llm.rules.classes import (
    CLASS_RELATION,
    fetch_classes,
    members_of,
    normal_noun,
    read_members,
    read_members_loosely,
)
from kgwb.llm.rules.conditions import (
    NON_CONTENT_WORDS,
    YEAR,
    Condition,
    doubts_of,
    fetch_things,
    find_condition,
    find_likely_conditions,
    texts_in,
    with_conditions,
)
from kgwb.llm.rules.coverage import Coverage
from kgwb.llm.rules.grammar import (
    UNKNOWN_RELATION,
    Comparison,
    Fact,
    ParsedQuestion,
    Read,
    Unread,
    find_unsupported_word,
    parse_question,
    parse_tokens,
    remove_filler_phrases,
)
from kgwb.llm.rules.look_up import (
    A_TRUTH_VALUE,
    VALUE_KINDS,
    LookUp,
    QuestionWords,
    fact_of,
    has_other_direction,
    is_lookup,
    predicates_like,
)
from kgwb.llm.rules.predicates import (
    SPELLING_WEIGHT,
    Predicates,
    VertexPredicate,
    Vertices,
    are_texts,
    asked_kind,
    fetch_class_names,
    fetch_classes_of_graph,
    fetch_ends,
    fetch_predicates,
    names_of_classes,
    names_of_predicates,
    things_at,
    with_superclasses,
)
from kgwb.llm.rules.words import (
    NAME,
    Mention,
    Mentions,
    Token,
    Words,
    are_kin,
    bracketed_mentions,
    compare_wordings,
    find_labelled,
    find_mentions,
    find_wording,
    has_word_of_stem,
    have_same_words,
    kept_by_graph,
    leads_elsewhere,
    looks_english,
    lowercase_words,
    only,
    tokenize,
    words_of,
    words_without_names,
)
from kgwb.terms import CAMEL_CASE_BOUNDARY, Term
from kgwb.text import shorten

PASSIVE_TO = re.compile(r"\w+ed to")
"""The name of a predicate that does not tell who is at its ends: tasks and persons are "assigned to" each other."""
WHY_WORDS = en.word_list("why")
EACH_OF = "each of "
"""Before a list of names it asks for what each of them has, and not for what they have in common."""
ONLY_THING = re.compile(r"\b(?:the|your|our)(?: whole| entire)? (\w+)", re.I)
BEFORE_YEAR = en.word_list("before_years")
ANY_OF = en.word_list("any_of")
"""Words before or between several names of which not all are meant."""
ENDS_OF_WAY = en.word_list("ends_of_ways")
NAMING_WORDS = en.RELATIVES | {"in", "at", "of", "near", "on"}
"""Words between a name and another one that says which thing of the first name is meant."""
LIST_JOINT = re.compile(r"(,|,? and) (the )?", re.I)
"""What stands between two names of a list: "A, B and the C"."""
ADDS_CONDITION = re.compile(
    rf"^(?!{'|'.join(en.AUXILIARIES)}).* and ({'|'.join(en.AUXILIARIES)}) ", re.I
)
"""A question that says something else of what it asks for: "which carpets did X weave and are red"."""
CLAUSE_SIGNS = re.compile(r"[,;:.?!…–—][\"'”)]*\s+$|\s-+\s+$")
WHETHER_ANY = "Are there any of these: "
"""Before a question for several things it asks whether there are any."""
MAX_OPENING_WORDS = 3
"""Words at the beginning of a clause of which one may be its question word: "and in which"."""


def ground_question(question: str, kg: Graph | None, embeddings: Embeddings) -> ParsedQuestion:
    """Read a question with the grammar, and correct the reading by the predicates of its name.

    If the graph has no predicates like the relations that are read, the reading becomes one triple:
    of the name, and its predicate most like the words of the question. ``LookUp.read`` has the
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
    named = _find_words(question, kg)
    reading = parse_tokens(named.tokens, named.mentions, kg)
    vertices = find_vertices(named.mentions, kg)
    if reading.kind == "boolean":
        return _ground_truth(named, reading, vertices, kg, embeddings)
    things = [each for each, ends in vertices.items() if not are_texts(ends)]
    mention = only_mention(things or vertices)
    if mention is None:
        return reading
    words = words_without_names([mention], named.tokens)
    if mention.start > 1 and words[mention.start - 2] in en.DETERMINERS:
        words[mention.start - 1] = ""  # a word that belongs to the name: the contract X
    look_up = LookUp(words, reading, mention.text, vertices[mention], kg, embeddings)
    read = look_up.read(_last_question(named.tokens, words))
    read = _with_worded_direction(read, named.tokens, [mention], look_up.predicates, embeddings)
    return look_up.with_stated_number(read)


class _NamedQuestion(NamedTuple):
    """A question without phrases that change nothing, and the names in it."""

    text: str
    tokens: Sequence[Token]
    mentions: Mentions
    words: list[str]
    """Its words in lower case, with "" in the place of names."""


def _find_words(question: str, kg: Graph | None) -> _NamedQuestion:
    """Return a question with its words and names."""
    text = remove_filler_phrases(question)
    tokens = tokenize(text)
    mentions = find_mentions(text, kg) if kg is None else _find_named(kg, text)
    words = words_without_names(mentions, tokens)
    return _NamedQuestion(text, tokens, mentions, words)


def _ground_truth(
    question: _NamedQuestion,
    reading: ParsedQuestion,
    vertices_of: Mapping[Mention, Vertices],
    kg: Graph,
    embeddings: Embeddings,
) -> ParsedQuestion:
    """Return the reading of a yes-or-no question, by what the graph has if it has its one or two names."""
    mentions = question.mentions
    if len(mentions) not in (1, 2) or not vertices_of.keys() >= set(mentions):
        return reading
    first = mentions[0]
    vertices = vertices_of[first]
    if len(mentions) == 1:
        own = fetch_things(kg, values_clause("?s", vertices))
        condition = find_condition(question.text, mentions, kg, own)
        if condition is not None and not condition.is_incoming:  # is the status of X open
            fact = (first.text, condition.predicate, condition.value)
            return reading._replace(facts=(fact,), target=first.text)
    predicates = fetch_predicates(kg, vertices)
    if len(mentions) == 2:
        predicates = _find_joining(predicates, question.words, vertices_of[mentions[1]], kg)
    read = _with_worded_direction(reading, question.tokens, mentions, predicates, embeddings)
    if len(mentions) == 1:
        return read
    question_words = QuestionWords(question.words, kg, embeddings)
    return _with_joining_kin(read, question_words, vertices_of, kg)


def _find_joining(
    predicates: Sequence[VertexPredicate], words: Words, vertices: Vertices, kg: Graph
) -> list[VertexPredicate]:
    """Return the predicates of a name that may join it to other vertices, by the words of a question.

    The vertices have them, too. One whose name the question says is kept, also without that; who X was
    given to is not who it was "given by".
    """
    others = {each.name for each in fetch_predicates(kg, vertices)}
    joining = []
    for predicate in predicates:
        is_asked = set(words).issuperset(words_of(predicate.name))
        may_join = predicate.name in others and not leads_elsewhere(predicate.name, words)
        if is_asked or may_join:
            joining.append(predicate)
    return joining


def _read_added_condition(question: str, kg: Graph, embeddings: Embeddings) -> Read | None:
    """Return a reading of a question that says something else of what it asks for, at its end; None if it does not.

    "Which carpets did X weave and are red" is read as "which carpets did X weave", and what is said
    of carpets by X.
    """
    asked, _, added = question.rpartition(" and ")
    opening = tokenize(asked)[:1]
    added_words = tokenize(added)
    is_name = any(
        each.looks_like_name or each.lowercase in en.DETERMINERS for each in added_words[:1]
    )
    if not opening or is_name or opening[0].lowercase in en.AUXILIARIES:
        return None
    reading, unread = read_with_doubts(asked, kg, embeddings)
    pattern = _pattern_of(reading, kg, embeddings)
    if unread.reasons or not pattern:
        return None

    content = [each.text for each in added_words if each.lowercase not in NON_CONTENT_WORDS]
    name = normal_noun(" ".join(content))
    classes = names_of_classes(kg)
    for class_name in [name] if name in classes else sorted(classes):
        if class_name == name or are_kin(name, class_name):
            of_class = Condition(CLASS_RELATION, class_name, set())
            return with_conditions(reading, [of_class]), Unread((), unread.doubts)
    things = fetch_things(kg, pattern)
    conditions = find_likely_conditions(added, set(), "", things, kg, embeddings)
    if not conditions:
        return None
    doubts = [*unread.doubts, *doubts_of(conditions)]
    return with_conditions(reading, conditions), Unread((), doubts)


def _pattern_of(reading: ParsedQuestion, kg: Graph, embeddings: Embeddings) -> str:
    """Return a graph pattern of what a reading asks for, as ?s; "" if it is not one predicate of a name, or a class."""
    for subject, relation, object_ in reading.facts:
        if relation == CLASS_RELATION:
            class_iri = fetch_classes(kg).find(normal_noun(object_))
            return members_of(class_iri, kg) if class_iri else ""
        if reading.target not in (subject, object_):
            continue
        name = object_ if subject == reading.target else subject
        ends = _vertices_of(kg, name)
        similar = predicates_like(relation, fetch_predicates(kg, ends), embeddings)
        things = things_at(kg, ends, similar)
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
    first, *others = [mention.text for mention in mentions]
    worded = find_wording(_words_with_names(tokens, mentions))
    name = worded and _find_told(worded, predicates, embeddings)
    if not worded or not name:
        return _as_found(reading, first, predicates, embeddings)
    relation, is_first_subject = worded
    direction, certainty = compare_wordings(relation, name)
    if certainty == "either":
        return reading

    is_subject = is_first_subject == (direction == "out")
    for subject, own, _ in reading.facts[:1]:
        own_direction, own_certainty = compare_wordings(own, name)
        is_same = (subject == first) == (is_subject == (own_direction == "out"))
        is_found = any(p.name == name and p.is_incoming != is_subject for p in predicates)
        is_guessed = own_certainty == "guessed" and reading.kind != "boolean"
        if is_same and (own_certainty == certainty or (is_guessed and is_found)):
            return reading
    if certainty == "open":
        name = relation
        is_subject = is_first_subject
    other = others[0] if others else reading.target
    fact = (first, name, other) if is_subject else (other, name, first)
    classes = [each for each in reading.facts if each[1] == CLASS_RELATION]
    return reading._replace(facts=(fact, *classes))


def _find_told(
    worded: tuple[str, bool], predicates: Predicates, embeddings: Embeddings
) -> str | None:
    """Return the name of the predicate most like a relation of which it tells the ends; None if none does.

    ``worded`` is that of ``_has_worded``.
    """
    relation, _ = worded
    phrase, _, last = relation.rpartition(" ")
    has_preposition = last in en.PREPOSITIONS
    names = {each.name for each in predicates if not each.has_only_numbers}
    if " of " in relation:  # the head of government of X, or the head of the school of X
        names = {name for name in names if have_same_words(phrase, name)}
    told = []
    for name in sorted(names):
        is_open = compare_wordings(relation, name).certainty == "guessed"
        if is_open or PASSIVE_TO.fullmatch(normalize(name)):
            continue
        # Who runs X is not what runs on X.
        if has_preposition or not name.endswith((" on", " at", " in", " to")):
            told.append(name)
    if not told:
        return None
    told = [name for name in told if _has_worded(name, worded, predicates)] or told
    similarities = embeddings.similarity(relation, told, SPELLING_WEIGHT)
    _, name = max(zip(similarities, told, strict=True))
    return name


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
    question: QuestionWords,
    vertices_of: Mapping[Mention, Vertices],
    kg: Graph,
) -> ParsedQuestion:
    """Return a yes-or-no question about the predicate that joins its two names, if the kin of a word says that.

    "Was X a student at Y" may ask for "alumnus of". A predicate that is like the relation and joins
    the names comes first. If nothing joins them and none is like the relation, the question is about
    the only kin that X has. The answer will be in doubt. Where no word says a relation, "is X in Y" may
    ask for each predicate that ends in "in".
    """
    if len(reading.facts) != 1:
        return reading
    [(_, relation, _)] = reading.facts
    (first, vertices), (second, others) = vertices_of.items()
    predicates = fetch_predicates(kg, vertices)
    similar = predicates_like(relation, predicates, question.embeddings)
    kin = []
    for predicate in predicates:
        if predicate not in similar and _is_unsaid_kin(predicate, relation, question):
            kin.append(predicate)
    if not kin:
        return reading
    joining = []
    for predicate in (*similar, *kin):
        if not set(others).isdisjoint(fetch_ends(kg, vertices, predicate)):
            joining.append(predicate)
    chosen = joining if joining or similar else kin
    if len(chosen) != 1 or chosen[0] in similar:
        return reading
    fact = fact_of(first.text, chosen[0], second.text)
    return reading._replace(facts=(fact,))


def _is_unsaid_kin(predicate: VertexPredicate, relation: str, question: QuestionWords) -> bool:
    """Return whether a word is kin of a predicate's name, or is its last preposition if there is no relation.

    No such word may be a form of one of its words.
    """
    said = [question.words[position] for position in question.kin_positions()]
    is_said = any(has_word_of_stem(predicate.name, word) for word in said)
    if is_said or predicate.has_only_numbers:
        return False
    if relation == UNKNOWN_RELATION:  # is there any X in Y
        last_word = words_of(predicate.name)[-1]
        return last_word in en.PREPOSITIONS and last_word in question.words
    return any(are_kin(word, predicate.name) for word in said)


def _as_found(
    reading: ParsedQuestion, name: str, predicates: Predicates, embeddings: Embeddings
) -> ParsedQuestion:
    """Return a look-up in the direction of the only predicate that the name has for its relation.

    The words of the question do not tell the direction, and the grammar took one.
    """
    if not is_lookup(reading):
        return reading
    read, *others = reading.facts
    _, relation, _ = read
    similar = predicates_like(relation, predicates, embeddings)
    if len(similar) != 1 or not has_other_direction(read, name, similar[0]):
        return reading
    fact = fact_of(name, similar[0], reading.target)
    return reading._replace(facts=(fact, *others))


def _words_with_names(tokens: Sequence[Token], mentions: Mentions) -> list[str]:
    """Return the words of a question in lower case, with NAME in the place of each name."""
    words = lowercase_words(tokens)
    for mention in reversed(mentions):
        words[mention.start : mention.end] = [NAME]
    return words


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
    named = _find_words(question, kg)
    ends: set[str] = set()
    for subject, _, object_ in reading.facts:
        ends.update((subject, object_))
    mentions = [mention for mention in named.mentions if mention.text in ends]
    if reading.kind == "boolean":
        if len(mentions) > 1 and not ANY_OF.isdisjoint(named.words):
            return Unread(["it asks whether something holds of any of several things"])
        dropped = find_vertices([each for each in named.mentions if each not in mentions], kg)
        for each in dropped:
            return Unread([f"nothing in the query stands for “{each.text}”"])
    words = words_without_names(mentions, named.tokens)
    texts = texts_in(named.text, named.tokens, words)
    mentions += [text for text in texts if text.text in ends][:1]
    vertices = find_vertices(mentions, kg)
    if not bracketed_mentions(named.text):  # else a person has said what the name is
        unread = find_unclear_name(mentions, vertices, kg)
    if unread or not vertices:
        return Unread(unread)
    words = words_without_names(mentions, named.tokens)
    capitalized = [place for place, token in enumerate(named.tokens) if token.looks_like_name]
    coverage = Coverage(words, capitalized, reading, vertices, kg, embeddings)
    return coverage.find_unread_parts(_asking_clause(named))


def can_be_answered(question: str, kg: Graph, embeddings: Embeddings) -> bool:
    """Return whether a question is understood, and the graph has the first relation of a look-up."""
    try:
        unread = find_unread(question, kg, embeddings)
    except ModelError:
        return False
    is_selection = unread.reasons or WHETHER_ANY in question or ADDS_CONDITION.search(question)
    if not is_selection and _has_relation(question, kg, embeddings):
        return True
    return _read_selection(question, kg, embeddings) is not None


def _has_relation(question: str, kg: Graph, embeddings: Embeddings) -> bool:
    """Return whether a question is read as triples, and its only name has the relation that leads from it."""
    reading = ground_question(question, kg, embeddings)
    mentions = _find_words(question, kg).mentions
    if reading.kind == "boolean" or len(mentions) != 1:
        return bool(reading.facts)
    if not reading.facts:
        return False
    [_, relation, _] = reading.facts[0]
    ends = _vertices_of(kg, mentions[0].text)
    return bool(predicates_like(relation, fetch_predicates(kg, ends), embeddings))


def read_with_doubts(question: str, kg: Graph | None, embeddings: Embeddings) -> Read:
    """Return the reading of ``ground_question`` with what it leaves out; else the nearest by meaning.

    The latter is in doubt. It is tried where a question about one name is not understood, or the
    name has nothing like the relation that is read. A question for a value of each of several
    things has an unknown for each. A form that is not read gives no triples.
    """
    read = None
    if kg is not None and EACH_OF in question:
        read = _read_for_each(question, kg, embeddings)
    elif kg is not None and ADDS_CONDITION.search(question.removeprefix(WHETHER_ANY)):
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
    if kg is not None and unread.has_left_out:
        read = _read_two_steps(question, reading, kg, embeddings)
        if read is not None:
            return read
    if kg is None or (is_read and _has_relation(question, kg, embeddings)):
        return reading, unread
    return (
        _read_selection(question, kg, embeddings)
        or _read_two_steps(question, reading, kg, embeddings)
        or _read_record(question, kg, embeddings)
        or _read_by_meaning(question, reading, kg, embeddings)
        or _read_for_each(question, kg, embeddings)
        or read_members_loosely(question, kg, embeddings)
        or _read_of_only(question, kg, embeddings)
        or (reading, unread)
    )


def _read_of_only(question: str, kg: Graph, embeddings: Embeddings) -> Read | None:
    """Return a reading, in doubt, of a question about the only thing whose name ends in a noun: "the park"; or None."""
    if _names_things(question, kg):
        return None
    for found in ONLY_THING.finditer(question):
        noun = found[1].casefold()
        hits = kg.search(noun, MAX_TIED_LABELS).hits
        labels = {hit.label for hit in hits if normalize(hit.label).endswith(f" {noun}")}
        if len(labels) == 1:
            [label] = labels
            named = f"{question[: found.start()]}{label}{question[found.end() :]}"
            if not _names_things(named, kg):
                # It would be read here again: "the Truce" ends in "Truce" as well.
                return None
            reading, unread = read_with_doubts(named, kg, embeddings)
            doubt = f"“{found[0]}” was read as “{label}”"
            return None if unread.reasons else (reading, Unread((), [*unread.doubts, doubt]))
    return None


def _read_selection(question: str, kg: Graph, embeddings: Embeddings) -> Read | None:
    """Return a reading of a question for those of several things that are described; None for another question.

    They are what a question about a name asks for, or the members of a class. After WHETHER_ANY it
    is a yes-or-no question.
    """
    asked = question.removeprefix(WHETHER_ANY)
    read = read_members(asked, kg, embeddings) or _read_added_condition(asked, kg, embeddings)
    if read is None or asked == question:
        return read
    reading, unread = read
    return reading._replace(kind="boolean"), unread


def _names_things(question: str, kg: Graph) -> bool:
    """Return whether a question has the name of a thing, and not only of classes and texts."""
    vertices = find_vertices(find_mentions(remove_filler_phrases(question), kg), kg)
    named = {end for ends in vertices.values() for end in ends if isinstance(end, URIRef)}
    return not named.issubset(fetch_classes_of_graph(kg))


def _read_class(question: str, kg: Graph) -> Read | None:
    """Return the reading of "is X a film", where the graph has films and says what X is; else None."""
    named = _find_words(question, kg)
    if len(named.mentions) != 1:
        return None
    [thing] = named.mentions
    first, *others = named.words
    name = " ".join(word for word in others if word and word not in en.DETERMINERS)
    if first not in en.BE_FORMS or name not in names_of_classes(kg):
        return None
    if not fetch_class_names(kg, _vertices_of(kg, thing.text)):
        return None
    fact = (thing.text, CLASS_RELATION, name)
    return ParsedQuestion((fact,), thing.text, "boolean"), Unread()


def _read_for_each(question: str, kg: Graph, embeddings: Embeddings) -> Read | None:
    """Return a reading with an unknown for each of several things; None if one of them cannot be asked for.

    "When were X and Y born?" asks for two times: each as a question about one name does. An unknown
    is called like the thing that it is of.
    """
    question, tokens, mentions, words = _find_words(question, kg)
    if len(mentions) < 2 or not (EACH_OF in question or asked_kind(words) in VALUE_KINDS):
        return None
    for mention, following in pairwise(mentions):
        between = question[tokens[mention.end - 1].end : tokens[following.start].start]
        if not LIST_JOINT.fullmatch(between):
            return None
    before = question[: tokens[mentions[0].start].start].replace(EACH_OF, "")
    after = question[tokens[mentions[-1].end - 1].end :]
    facts: list[Fact] = []
    targets: list[str] = []
    doubts: list[str] = []
    for mention in mentions:
        asked = before + mention.text + after
        reading, unread = read_with_doubts(asked, kg, embeddings)
        if unread.reasons or reading.kind == "boolean" or len(reading.facts) != 1:
            return None
        unknown = "?" + re.sub(r"\W+", "_", mention.text)
        [(subject, relation, object_)] = reading.facts
        predicates = fetch_predicates(kg, _vertices_of(kg, mention.text))
        similar = predicates_like(relation, predicates, embeddings)
        if not similar:
            doubts.append(f"nothing is said of {mention.text}")
            continue
        if reading.kind == "count" and not all(each.has_only_numbers for each in similar):
            return None
        if object_ == reading.target:
            facts.append((subject, relation, unknown))
        else:
            facts.append((unknown, relation, object_))
        targets.append(unknown)
        doubts += unread.doubts
    if not facts:
        return None
    return ParsedQuestion(tuple(facts), ", ".join(targets), "list"), Unread((), doubts)


def _read_by_meaning(
    question: str, reading: ParsedQuestion, kg: Graph, embeddings: Embeddings
) -> Read | None:
    """Return a reading of a question about one name by its meaning, with a doubt; None if there is none.

    Else it is the only way to the class that is asked for. The name may be a text of the graph,
    too: "Which stations are in Westshire?" A question of a form that is not read even with such a
    name has no reading.
    """
    if find_unread_form(question, None):
        return None
    _, tokens, mentions, words = _find_words(question, kg)
    if not reading.facts:
        reading = parse_tokens(tokens, mentions, kg)
    if len(mentions) != 1 or not en.PERSONAL_PRONOUNS.isdisjoint(words):
        return None
    for token, word in zip(tokens, words, strict=True):
        if word and token.looks_like_name and not token.begins_sentence:
            return None  # another name
    [mention] = mentions
    vertices = find_vertices(mentions, kg)
    if find_unclear_name(mentions, vertices, kg):
        return None
    ends = vertices.get(mention, ())
    look_up = LookUp(words, reading, mention.text, ends, kg, embeddings)
    nearest = look_up.read_by_meaning()
    by_two = None
    if nearest is None or look_up.asked_class():
        by_two = look_up.read_by_two()
    if by_two or nearest is None or look_up.kind == A_TRUTH_VALUE:
        return by_two or nearest
    coverage = Coverage(words, (), nearest[0], {mention: ends}, kg, embeddings)
    return None if coverage.find_wrong_values().reasons else nearest


def _read_two_steps(
    question: str, reading: ParsedQuestion, kg: Graph, embeddings: Embeddings
) -> Read | None:
    """Return a reading of a question about something of a name, such as "the owner of X"; None if there is none.

    The noun must say one predicate of the name, or the class that it leads to. What is asked of its
    values is read by its meaning, with a doubt.
    """
    _, _, mentions, words = _find_words(question, kg)
    if len(mentions) != 1 or reading.kind == "boolean" or find_unread_form(question, kg):
        return None
    [mention] = mentions
    noun = _noun_of_name(words, mention)
    if noun is None:
        return None
    ends = _vertices_of(kg, mention.text)
    predicate = _predicate_said_by(words[noun], fetch_predicates(kg, ends))
    if predicate is None:
        return None
    things = things_at(kg, ends, [predicate])
    words[min(noun, mention.start) : max(noun + 1, mention.end)] = [""]
    unread_rest = ParsedQuestion((), "?answer", "list")
    look_up = LookUp(words, unread_rest, "?x1", things, kg, embeddings)
    if all(look_up.is_asked_noun(position) for position in look_up.positions):
        return None
    nearest = look_up.read_by_meaning()
    if nearest is None:
        return None
    rest, unread = nearest
    first = fact_of(mention.text, predicate, "?x1")
    return rest._replace(facts=(first, *rest.facts)), unread


def _read_record(question: str, kg: Graph, embeddings: Embeddings) -> Read | None:
    """Return a reading, in doubt, of a question about what one thing of a year says of a name; None if there is none.

    "How many visitors did X have in 2019" asks for the visitors of a record of X whose only time is in
    2019. The words without the year are read about these records as about a name.
    """
    _, _, mentions, words = _find_words(question, kg)
    place = only([place for place, word in enumerate(words) if YEAR.fullmatch(word)])
    if len(mentions) != 1 or place is None or find_unread_form(question, None):
        return None
    year = words[place]
    if words[place - 1] not in BEFORE_YEAR:
        return None  # up to 2019, in May 2019
    words[place - 1 : place + 1] = []
    [mention] = mentions
    ends = _vertices_of(kg, mention.text)
    found = []
    for first in fetch_predicates(kg, ends):
        records, when = _find_records(things_at(kg, ends, [first]), year, kg)
        if not records:
            continue
        classes = " ".join(first.value_types)
        rest_words = [word for word in words if not (word and has_word_of_stem(classes, word))]
        unread_rest = ParsedQuestion((("?x1", "", "?answer"),), "?answer", "list")
        look_up = LookUp(rest_words, unread_rest, "?x1", records, kg, embeddings)
        nearest = look_up.read_by_meaning()
        if nearest is None:
            continue
        rest, unread = nearest
        facts = (fact_of(mention.text, first, "?x1"), ("?x1", when, "?year"), *rest.facts)
        of_year = (
            Comparison("?year", ">=", year),
            Comparison("?year", "<", str(int(year) + 1)),
        )
        doubt = f"“{year}” was read as the “{when}” of what “{first.name}” leads to"
        reading = rest._replace(facts=facts, comparisons=of_year)
        found.append((reading, Unread((), [*unread.doubts, doubt])))
    return only(found)


def _find_records(things: Sequence[URIRef], year: str, kg: Graph) -> tuple[tuple[URIRef, ...], str]:
    """Return those of some things whose time is in a year, and the name of the only predicate for it."""
    when = None
    if things:
        attributes = fetch_things(kg, values_clause("?s", things)).attributes
        when = only([each for each in attributes if each.is_time])
    if when is None:
        return (), ""
    where = f"{values_clause('?s', things)} ?s <{when.iri}> ?time"
    rows = kg.select(f"SELECT DISTINCT ?s ?time WHERE {{ {where} }}").rows
    of_year = {thing for thing, time in rows if str(time).startswith(year)}
    return tuple(thing for thing in things if thing in of_year), when.name


def _noun_of_name(words: Words, mention: Mention) -> int | None:
    """Return where the noun stands that says something of a name: "owner" of "the owner of X", or "X's owner"."""
    after = mention.end
    if words[after : after + 1] == ["'s"]:
        return after + 1 if after + 1 < len(words) else None
    before = mention.start - 1
    while before > 0 and words[before] in en.DETERMINERS:
        before -= 1
    if before > 0 and words[before] in ("of", "at", "in"):
        return before - 1
    return None


def _predicate_said_by(noun: str, predicates: Predicates) -> VertexPredicate | None:
    """Return the only predicate that a noun says by its stem, else by the class it leads to, else as kin; or None."""
    if noun in NON_CONTENT_WORDS:
        return None
    by_name = []
    by_class = []
    by_kin = []
    for predicate in predicates:
        if has_word_of_stem(predicate.name, noun):
            by_name.append(predicate)
        if any(has_word_of_stem(name, noun) for name in predicate.value_types):
            by_class.append(predicate)
        # Whose boss X is, X does not report to.
        wording = compare_wordings(f"{noun} of", predicate.name)
        is_reversed = wording.contradicts("out" if predicate.is_incoming else "in")
        if are_kin(noun, predicate.name) and not is_reversed:
            by_kin.append(predicate)
    return only(by_name or by_class or by_kin)


def _asking_clause(question: _NamedQuestion) -> range:
    """Return the positions of the last clause that begins with a question; of all words if none does.

    A clause begins after a sign of CLAUSE_SIGNS, and goes on to the end of the sentence. It begins
    with a question if one of its first MAX_OPENING_WORDS words is a question word. What stands
    before it in its sentence belongs to it if that begins with a preposition: "on Friday, who".
    """
    tokens = question.tokens
    end = len(tokens)
    clause = range(0)
    for start in range(end - 1, -1, -1):
        token = tokens[start]
        before = question.text[tokens[start - 1].start : token.start]
        opening = tokens[start : min(start + MAX_OPENING_WORDS, end)]
        asks = any(each.lowercase in en.WH_WORDS for each in opening)
        begins_clause = token.begins_sentence or CLAUSE_SIGNS.search(before)
        if not clause and begins_clause and asks:
            clause = range(start, end)
        if token.begins_sentence:
            if clause and token.lowercase in en.PREPOSITIONS:
                return range(start, end)
            if clause:
                return clause
            end = start
    return range(len(tokens))


def find_unread_form(question: str, kg: Graph | None) -> list[str]:
    """Return the reason why a question is of a language or form that is not read; [] if it is read.

    At most one reason is returned: it is not in English, has an unsupported word or one of
    WHY_WORDS, is two questions at once, asks for a manner ("how does"), or has no name of the
    graph. Words of names do not count. Without a graph, only names with capitals or in brackets are
    found.
    """
    _, _, mentions, words = _find_words(question, kg)
    if not looks_english(" ".join(words)):
        return ["the question is not in English"]
    unread = find_unsupported_word(words)
    for word in words:
        if word in WHY_WORDS:
            unread = unread or word
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


def _last_question(tokens: Sequence[Token], words: Words) -> Words:
    """Return the words of the last sentence with a question word; [] if there is none.

    Of words that are part of the name, "" is returned. The first token must begin a sentence.
    """
    sentences: list[list[str]] = []
    for token, word in zip(tokens, words, strict=True):
        if token.begins_sentence:
            sentences.append([])
        sentences[-1].append(word)
    for sentence in reversed(sentences):
        if not en.WH_WORDS.isdisjoint(sentence):
            return sentence
    return []


# What names mean

MAX_PARTIAL_MATCHES = 3
"""How many labels are looked at that may begin or end with a name."""
MAX_TIED_LABELS = 5
"""How many labels that have the words of a name are compared."""
MAX_CHOICE_CHARS = 80
"""Letters of a label that a reason shows."""
NICKNAME = "nickname"
"""A word that is kin of the predicates that lead to other names of a thing."""


@kept_by_graph
def _find_named(kg: Graph, question: str) -> Mentions:
    """Return the names in a question, each with the words beside it that say its class.

    "The Polar Carrier ship" and "purchase order 12" are names with their classes. A thing that is
    called by another name of it has its label. So is what tells things of one name apart: "the St Anne in
    Oxley". They are kept for the questions asked last.
    """
    mentions = find_mentions(question, kg)
    words = words_without_names(mentions, tokenize(question))
    year = "".join(YEAR.findall(question)[:1])
    named: list[Mention] = []
    for found in mentions:
        mention = _with_label(found, year, kg)
        before = words[: mention.start]
        if len(named) == 1 and words[0] not in en.AUXILIARIES:
            [first] = named
            is_end = not ENDS_OF_WAY.isdisjoint(words[: first.start][-1:])
            if not is_end and _tells_apart(mention, first, before[first.end :], kg):
                named = [first._replace(end=mention.end)]
                continue
        after = words[mention.end : mention.end + 1]
        if NON_CONTENT_WORDS.issuperset([*before[-1:], *after]):
            named.append(mention)
            continue
        start = mention.start
        end = mention.end
        class_names = fetch_class_names(kg, _vertices_of(kg, mention.text))
        for name in with_superclasses(kg, class_names):
            class_words = list(words_of(name))
            size = len(class_words)
            if size > 1 and before[-size:] == class_words:
                start = min(start, mention.start - size)
            if after == class_words[-1:]:
                end = mention.end + 1
        named.append(Mention(start, end, mention.text))
    return tuple(named)


def _tells_apart(other: Mention, mention: Mention, between: Words, kg: Graph) -> bool:
    """Return whether another name, behind that of several things, is said to belong to one of them alone."""
    vertices = find_labelled(kg, mention.text)
    if len(vertices) < 2 or "and" in between or NAMING_WORDS.isdisjoint(between):
        return False
    ways = "{ ?v ?p ?o } UNION { ?o ?p ?v }"
    listed = f"{values_clause('?v', vertices)} {values_clause('?o', find_labelled(kg, other.text))}"
    joined = kg.select(f"SELECT DISTINCT ?v WHERE {{ {listed} {ways} }}").rows
    said = " ".join([*names_of_predicates(kg), *names_of_classes(kg)])
    is_said = all(word in NON_CONTENT_WORDS or has_word_of_stem(said, word) for word in between)
    return is_said and len(joined) == 1


def _with_label(mention: Mention, year: str, kg: Graph) -> Mention:
    """Return a name with the label of the only thing that has it as its nickname or alias, by the predicate's name.

    A part of a label with the year of the question is that label. "GreyWolf" is "Grey Wolf".
    """
    name = mention.text
    if find_labelled(kg, name):
        return mention
    spaced = CAMEL_CASE_BOUNDARY.sub(" ", name)
    if find_labelled(kg, spaced):
        return mention._replace(text=spaced)
    if year:
        name = name.removesuffix(f" in {year}")
        hits = kg.search(f"{name} {year}", MAX_PARTIAL_MATCHES).hits
        of_year = [hit.label for hit in hits if year in hit.label and name in hit.label]
        if len(of_year) == 1:
            return mention._replace(text=of_year[0])
    subjects: set[URIRef] = set()
    for match in find_exact_values(kg, [name, f"the {name}", f"The {name}"]):
        predicate_name = kg.names([match.predicate])[match.predicate]
        if are_kin(NICKNAME, predicate_name):
            subjects.update(match.subjects)
    labels = list(kg.names(sorted(subjects)).values())
    if len(labels) == 1 and len(find_labelled(kg, labels[0])) == 1:
        return mention._replace(text=labels[0])
    return mention


def find_vertices(mentions: Mentions, kg: Graph) -> dict[Mention, Vertices]:
    """Return the vertices of each name that the graph has, by name. Names that are not found are left out."""
    vertices_of = {}
    for mention in mentions:
        vertices = _vertices_of(kg, mention.text)
        if vertices:
            vertices_of[mention] = vertices
    return vertices_of


@kept_by_graph
def _vertices_of(kg: Graph, name: str) -> Vertices:
    """Return the vertices of a name; () if the graph does not have it.

    They are those with the name as their label, else the values that are this text, else those with
    a label that begins or ends with it.
    """
    vertices: Collection[Term] = find_labelled(kg, name)
    vertices = vertices or [each.value for each in find_exact_values(kg, [name])]
    vertices = vertices or _find_partial_matches(name, kg)
    return tuple(dict.fromkeys(vertices))


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


def only_mention(mentions: Iterable[Mention]) -> Mention | None:
    """Return the only name with a capital letter; None if there are several.

    Without capitals it is the last name; None if there is no name at all.
    """
    last = None
    capitalized = []
    for mention in mentions:
        last = mention
        if mention.text != mention.text.casefold():
            capitalized.append(mention)
    return only(capitalized) if capitalized else last


def find_unclear_name(
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
        elif len(vertices) > 1 and not find_labelled(kg, mention.text):
            label_of = kg.names([vertex for vertex in vertices if isinstance(vertex, URIRef)])
        labels = sorted(set(label_of.values()))
        if len(labels) < 2:
            continue
        first, *others = [fetch_class_names(kg, (vertex,)) for vertex in label_of]
        if all(names == first for names in others):
            choices = dict.fromkeys(shorten(label, MAX_CHOICE_CHARS) for label in labels)
            return [f"“{mention.text}” may be {' or '.join(choices)}"]
    return []
