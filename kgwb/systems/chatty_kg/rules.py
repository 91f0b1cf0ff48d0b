"""How the model ``rules`` answers the prompts of Chatty-KG."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from kgwb.build import (
    AUXILIARIES,
    MEN,
    NOT_UNDERSTOOD,
    PERSON_NOUNS,
    PERSONAL_PRONOUNS,
    PREPOSITIONS,
    PROFESSIONS,
    PRONOUNS,
    WH_WORDS,
    WOMEN,
    Embeddings,
    Graph,
    Mention,
    ParsedQuestion,
    ReplyData,
    Rule,
    Token,
    can_be_answered,
    fetch_classes_of_graph,
    find_gender,
    find_kind,
    find_mentions,
    find_similar_predicates,
    ground_question,
    has_said,
    is_called,
    is_verb,
    leads_to_agent,
    name_ends,
    name_members,
    read_with_doubts,
    tokenize,
)
from kgwb.systems.chatty_kg.chat import has_excluding_word
from kgwb.systems.chatty_kg.predicate_selection import REVERSE
from kgwb.systems.chatty_kg.records import LEFT_OUT
from kgwb.systems.chatty_kg.relation_linking import OVER_NODE

POSSESSIVE_PRONOUNS = ("his", "her", "its", "their")
GENDER_OF_PRONOUN = {"she": "she", "her": "she", "he": "he", "him": "he", "his": "he"}
NOT_CALLED = re.compile(rf"she .*\b({'|'.join(MEN)})\b|he .*\b({'|'.join(WOMEN)})\b")
"""A pronoun before a question that names a relative of the other gender."""
ASKS_WHETHER_HAS = re.compile(
    r"\w+ (?P<owner>.+?) (?:also )?(?:have|has|own) (?:a|an|any) (?P<had>\w+)\W*", re.I
)
"""A question whether somebody has a relative, or anything of a kind: "does X have a sister"."""
RELATIVE_OF = rf"(?P<owner>{{}})['’]s (?P<had>{'|'.join(WOMEN | MEN)})\b"
"""A relative of a name, of whom something is asked: "when was X's sister born"."""
PLURAL_PRONOUNS = frozenset("they them their theirs these those".split())
DEMONSTRATIVES = frozenset(("this", "that", "these", "those"))
WORDS_BEFORE_DEMONSTRATIVES = AUXILIARIES | PREPOSITIONS | WH_WORDS
WORDS_WITHOUT_CONTENT = WORDS_BEFORE_DEMONSTRATIVES | {"many", "much", "the"}
FOLLOW_UP_OPENING = re.compile(r"^((and|but|or|what about|how about|also)\b[\s,]*)+", re.I)
MAX_ELLIPTICAL_TOKENS = 7
"""Length up to which a question with a FOLLOW_UP_OPENING is taken for incomplete."""
MAX_FRAGMENT_TOKENS = 3
"""Length up to which a question for members of a class may mean those of before: "how many ferries"."""
OWNED_FRAGMENT = re.compile(rf"({'|'.join(POSSESSIVE_PRONOUNS)}) ([\w ]+?)(['’]s)?[?!. ]*", re.I)
"""A fragment of a question such as "her sister": of a relative, what was asked of the person."""
NAMES_RELATION_OF = re.compile(r"['’]s\b|\bof\b")
"""A question for somebody's relative or part, instead of which a fragment asks for another."""
QUESTION_OPENING = re.compile(r"^(\w+ )?(whom?|what|which|when|where|how)\b( year)?", re.I)
ACTIVE_WHO_QUESTION = re.compile(r"^who (?P<verb>\w+) (?P<object>.*?)[?!. ]*$", re.I)
TYPE_NOUNS = "film|movie|book|novel|series|paper|article|song|album|car|model"
INSERTION_POINT = re.compile(rf"\bthe ({TYPE_NOUNS})\b(?! of)|(?<![?!. ])(?=[?!. ]*$)", re.I)
"""Where a name is inserted in a question without one: after "the film", else at the end."""
PERSON_OPENING = re.compile(r"(?:by )?(?:whom?|(?:which|what) (\w+))\b", re.I)
ASKS_FOR_THING = re.compile(rf"^(\w+ )?(which|what) (?!({'|'.join(AUXILIARIES)})\b)\w", re.I)
"""The beginning of a question that asks for what "it", "there" or "they" may stand for."""
ASKS_HOW_MANY = re.compile(
    r"(and )?how many( of (them|these|those))?( (are|were) (there|they|those))?\W*", re.I
)
COUNTED_OPENING = re.compile(
    rf"^(?:who (?:are|were) the (\w+s )|who |(?:which|what) (?!(?:{'|'.join(AUXILIARIES)})\b)((?:\w+ )?\w+s )"
    r"|(?:list|name|show me|give me)(?: all)?(?: the)? (\w+s )(?:(?:that|which|who) )?)",
    re.I,
)
"""The beginning of a question whose answers can be counted."""
SELECTS_FROM_THEM = re.compile(
    r"(and )?((which|who|what|(?P<many>how many))( ones?)?"
    r" of (them|the two|both|(these|those)( \w+s(?= (are|is|was|were|have|has|can|do)\b))?)"
    r"|which ones?|which(?= (is|was|are|were)( the)?( most| least)? \w+\W*$))(?= )",
    re.I,
)
"""The beginning of a question for some of the answers: "which of them are", "which is the oldest"."""
ASKS_WHETHER_ANY = re.compile(
    rf"(?:and )?({'|'.join(AUXILIARIES)}) any(?: one)? of (?:them|these|those)(?: \w+s)?(?= )", re.I
)
"""The beginning of a question whether something holds of any of the answers."""
WHETHER_ANY = "Are there any of these: "
"""Before a question for several things it asks whether there are any, see ``read_with_doubts``."""
COUNTING_OPENING = re.compile(r"how many(?! of)", re.I)
COUNTS_CLASS = re.compile(r"how many ([\w -]+?)(?: (?:are|were) there)?\W*", re.I)
"""A question that counts all members of a class, without a condition."""
ASKS_WHICH_THEY_ARE = re.compile(
    r"(and |but )?((which|who|what)( ones)?( (are|were) (they|these|those)( called)?)?|(list|name) them"
    r"|what are their names)\W*",
    re.I,
)
"""A question for what was counted."""
ASKS_OF_EACH = re.compile(
    r"(who|whom|what|which|how many(?! of))\b(?!.* (of them|both|common|together)\b)", re.I
)
"""A question that is answered for each of several things, one by one."""
EACH_ALONE = re.compile(
    r"\beach(?: one)?(?=\W*$)|(?<=\bdoes )each(?= \w+\W*$)|(?<=\bdid )each(?= \w+\W*$)", re.I
)
DEFINITE_NOUN = re.compile(
    r"(?<!^who is )(?<!^what is )\b(the|this|that) (\w*[a-rt-z])\b(?! of\b)", re.I
)
"""A thing that was named before, called by its class: "how long is the ferry", "that company"."""
DEFINITE_OWNER = re.compile(r"\bthe (\w+)['’]s ([\w-]+)", re.I)
PLACES = {
    "first": 0,
    "former": 0,
    "second": 1,
    "third": 2,
    "fourth": 3,
    "fifth": 4,
    "latter": -1,
}
"""For an ordinal, its place among several answers."""
SUPERLATIVE = re.compile(r"\b(most|least|\w{3,}est)\b", re.I)
THE_MOST = re.compile(r"\bthe (?:(?:most|least) \w+(?<!s)|\w{3,}est)\b", re.I)
"""A superlative of a quality, and not "the most films"."""
ASKS_FOR_MOST = re.compile(
    r"^(?:(?:and|but|what about|how about),? )?(?:(?:who|what|which)(?: one)? (?:is|was|are|were) )?"
    r"(the (?:(?:most|least) \w+|\w{3,}est))(?: ones?)?(?: of (?:them|these|those|all|the two))?(?=\W*$)",
    re.I,
)
"""A question for one of the answers by a measure: "and the oldest?", "who is the youngest of them?"."""
WHO = re.compile(r"\bwho\b", re.I)
ORDINAL = "the ({})".format("|".join(PLACES))
ORDINAL_ONE = re.compile(
    rf"^{ORDINAL}(?=\W*$)|\b{ORDINAL} one\b(?! (?:to|\w+ed)\b)"
    r"|\bthe former(?=( born| built| \w+ed)?\W*$)|\bthe latter\b",
    re.I,
)
ARE_THERE = re.compile(r"(?<=\w) (is|are|was|were) there(?=\W*$)", re.I)
"""The end of a question for what a thing has: "how many entries were there"."""
NO_TOPIC = re.compile(rf"{SUPERLATIVE.pattern}|{ORDINAL_ONE.pattern}|\b(both|there)\b", re.I)
"""What is said of all things, or of those that were named."""
STANDS_FOR_ANSWERS = re.compile(
    rf"{EACH_ALONE.pattern}|\bof (the two|both)\b|\b{ORDINAL} one\b|\bthe latter\b", re.I
)
PLURAL_NOUN = re.compile(r"[a-z ]+s\W*")
YEAR = re.compile(r"\b\d{4}\b")
NUMBER_OR_DATE = re.compile(r"[-+\d.,:TZ/]+|true|false")
TurnData = Mapping[str, Any]
"""An earlier turn: "question", "answers" and "about", the names that it was asked about."""
Names = Sequence[str]
Dialogue = Sequence[TurnData]
"""The earlier turns, the oldest first."""


def translate_question(question: str) -> ReplyData:
    """Return the question as it is: the grammar reads English alone."""
    return {"question": question}


def extract_qir(question: str, kg: Graph | None, embeddings: Embeddings) -> ReplyData:
    """Return the triples that ``ground_question`` reads, and what of the question they leave out.

    What they leave out is "beyond": a list with one text that begins with NOT_UNDERSTOOD, and then
    the question is not answered; or else texts that begin with LEFT_OUT. A question of a form that ``rules``
    does not read gives no triples. Without a graph only the form is looked at, not the words. The
    other keys are those of ``_describe_qir``.
    """
    reading, unread = read_with_doubts(question, kg, embeddings)
    beyond = [LEFT_OUT + doubt for doubt in unread.doubts]
    if unread.reasons:
        beyond = [f"{NOT_UNDERSTOOD}: {'; '.join(unread.reasons)}"]
    return _describe_qir(reading) | {"beyond": beyond}


def extract_published_qir(question: str, kg: Graph | None, embeddings: Embeddings) -> ReplyData:
    """Return the triples that ``ground_question`` reads, with entities, unknowns, target and type.

    The target is "" for a yes-or-no question. Raises ModelError if the grammar cannot read the
    question. Entities and unknowns stand once each, in the order of the triples.
    """
    return _describe_qir(ground_question(question, kg, embeddings))


def _describe_qir(reading: ParsedQuestion) -> dict[str, Any]:
    """Return a reading as data: "entities", "unknowns", "triples", "target" and "question_type".

    Entities and unknowns stand once each, in the order of the triples. The target is "" for a
    yes-or-no question.
    """
    ends: dict[str, None] = {}
    triples = []
    for subject, relation, object_ in reading.facts:
        triples.append({"subject": subject, "predicate": relation, "object": object_})
        ends |= {subject: None, object_: None}
    target = reading.target
    if reading.kind == "boolean":
        target = ""
    data: dict[str, Any] = {}
    if reading.comparisons:
        data["comparisons"] = [comparison._asdict() for comparison in reading.comparisons]
    unknowns = [end for end in ends if end.startswith("?")]
    return data | {
        "entities": [end for end in ends if end not in unknowns],
        "unknowns": unknowns,
        "triples": triples,
        "target": target,
        "question_type": reading.kind,
    }


def select_predicates(relations: Sequence[Any], embeddings: Embeddings) -> ReplyData:
    """Return for each triple the predicates whose names are most like its relation, possibly none.

    Each of ``relations`` has a "triple" and its candidate "predicates": names, or entries with a
    "name". Of a predicate that is offered in both directions, the first one is taken, and both if
    the relation is as vague as "relatives" and means several predicates. A way over a node is not
    taken to an unknown: names do not tell whose birth date it leads to. The lists of names are in
    "predicates", in the order of the triples, beside "reasoning".
    """
    predicates = []
    for relation in relations:
        subject, name, object_ = relation["triple"]
        has_unknown = subject.startswith("?") or object_.startswith("?")
        offered: dict[str, list[str]] = {}
        for entry in relation["predicates"]:
            shown = entry
            if not isinstance(entry, str):
                shown = entry["name"]
            if not (has_unknown and OVER_NODE in shown):
                offered.setdefault(shown.removesuffix(REVERSE), []).append(shown)
        chosen = find_similar_predicates(name, list(offered), embeddings)
        similar = [shown for each in chosen for shown in offered[each]]
        if len(chosen) == 1:
            similar = similar[:1]
        predicates.append(similar)
    return {"reasoning": "the names most like each relation", "predicates": predicates}


def select_pooled_predicates(
    question: str, predicates: Sequence[str], kg: Graph | None, embeddings: Embeddings
) -> ReplyData:
    """Return the predicates whose names are most like any relation of the question, each once.

    ``predicates`` are the names to choose from; none may be like it. The names are in "predicates",
    in the order of the relations, beside "reasoning". Raises ModelError if the grammar cannot read
    the question.
    """
    reading = ground_question(question, kg, embeddings)
    selected: dict[str, None] = {}
    for _, relation, _ in reading.facts:
        similar = find_similar_predicates(relation, predicates, embeddings)
        selected |= dict.fromkeys(similar)
    return {"reasoning": "the names most like each relation", "predicates": list(selected)}


def write_sentence(question: str, answer: Sequence[str]) -> ReplyData:
    """Return the question, followed by its answers."""
    sentence = " ".join([question, *answer])
    return {"sentence": sentence}


def answer_nothing() -> ReplyData:
    """Return no answers: the rules know nothing without the graph."""
    return {"answers": []}


def classify_question(question: str, kg: Graph | None, embeddings: Embeddings) -> ReplyData:
    """Return whether a question is "dependent" on the dialogue or "self-contained", in "label", with "reason".

    It is dependent if a pronoun refers back, if nothing is named and it does not ask for members of a
    class in more than MAX_FRAGMENT_TOKENS words, or if it begins like "and" or "what about" and has
    at most MAX_ELLIPTICAL_TOKENS words. A pronoun refers to a name before it
    in the question, if there is one, unless the question begins with an auxiliary.
    """
    tokens = tokenize(question)
    mentions = find_mentions(question, kg)
    end = len(tokens)
    if mentions and tokens[0].lowercase not in AUXILIARIES:
        end = mentions[0].start
    referring = [tokens[place].text for place in range(end) if _pronoun_kind(tokens, place)]
    standing = STANDS_FOR_ANSWERS.search(question)
    if standing:
        referring.append(standing[0])
    if referring:
        reason = f"{referring[0]!r} stands for something said before"
        return {"reason": reason, "label": "dependent"}

    is_incomplete = FOLLOW_UP_OPENING.match(question) and len(tokens) <= MAX_ELLIPTICAL_TOKENS
    is_whole = not mentions and not is_incomplete and len(tokens) > MAX_FRAGMENT_TOKENS
    if is_whole and kg is not None and can_be_answered(question, kg, embeddings):
        return {"reason": "it asks for members of a class", "label": "self-contained"}
    if not mentions or is_incomplete:
        return {"reason": "it does not say all that it could be about", "label": "dependent"}
    name = mentions[0].text
    return {"reason": f"it names {name!r}", "label": "self-contained"}


def rephrase_question(
    question: str, dialogue: Dialogue, kg: Graph | None, embeddings: Embeddings
) -> ReplyData:
    """Return the question so that it can be understood without the dialogue, in the key "question".

    An elliptical question ("and where?") is completed from the previous one. Otherwise pronouns
    outside of names are replaced by what they stand for. If there are neither pronouns nor names,
    the most recent thing of the dialogue is inserted where the question asks for something that it
    has. "How many are there" counts the previous answers. "The second one" is the second of the
    latest answers that are several. A pronoun that nothing said before fits stays, and the answer
    asks what it stands for. The result begins with a capital letter. Without a dialogue, or a graph, the
    question stays as it is.
    """
    if not dialogue or kg is None:
        return {"question": question}
    asked: str = dialogue[-1]["question"]
    counted = _count_answers(asked)
    if counted and ASKS_HOW_MANY.fullmatch(question):
        return {"question": counted}
    selected = _ask_for_other_most(question, dialogue) or _select_from_answers(question, dialogue)
    if selected and can_be_answered(selected, kg, embeddings):
        return {"question": selected}
    shortened = FOLLOW_UP_OPENING.sub("", question)
    shortened = EACH_ALONE.sub("each of them", shortened)
    shortened = _name_what_is_called(shortened, dialogue, kg)
    shortened = ORDINAL_ONE.sub(lambda found: _find_answer_at(found[0], dialogue), shortened)
    if shortened != question and OWNED_FRAGMENT.fullmatch(shortened) and shortened[:3] == "its":
        shortened = f"What is {shortened}"  # a part of a thing is asked for, not asked about
    mentions = find_mentions(shortened, kg)
    tokens = tokenize(shortened)
    outside = set(range(len(tokens)))
    for mention in mentions:
        outside.difference_update(range(mention.start, mention.end))

    words = {tokens[position].lowercase for position in outside}
    content = words - WORDS_WITHOUT_CONTENT - PRONOUNS
    kinds = _find_pronouns(tokens, sorted(outside))
    pronouns = list(kinds)
    has_verb = any(map(is_verb, words)) or not AUXILIARIES.isdisjoint(words)
    has_verb = has_verb and not shortened.endswith(("'s?", "’s?"))
    is_fragment = not has_verb and (bool(mentions) or pronouns in ([], [0]))
    asked_before = set(asked.casefold().split())
    repeats = bool(mentions) and words <= asked_before & WORDS_WITHOUT_CONTENT
    is_continued = shortened != question or QUESTION_OPENING.fullmatch(question.rstrip("?!. "))
    if is_continued and (is_fragment or repeats):
        completed = _ask_of_relative(shortened, dialogue, kg)
        completed = completed or _complete_from(dialogue[-1], shortened, mentions, kg)
        if completed:
            return {"question": completed}

    rephrased = shortened
    # From right to left, so that the positions of the tokens before a pronoun stay
    for place in reversed(pronouns):
        options = []
        kind = kinds[place]
        pronoun = tokens[place].lowercase
        referents = _find_counted(asked, kind, kg) or list(
            _find_referents(dialogue, kind, kg, pronoun)
        )
        # of which one the graph says it in these words
        referents.sort(key=lambda names: not has_said(kg, names[0], content))
        for names in referents:
            name = _join_names(names)
            if len(names) > 1 and ASKS_OF_EACH.match(shortened):
                name = f"each of {name}"
            options.append(_replace_pronoun(rephrased, tokens, place, name))
        if len(set(options)) > 1:
            answerable = (each for each in options if can_be_answered(each, kg, embeddings))
            options = [next(answerable, options[0])]
        rephrased = "".join(options[:1]) or rephrased
    if not pronouns and not mentions:
        # Without a topic an "and" at the beginning stays: it is not known what it goes on with.
        rephrased = _insert_topic(rephrased, dialogue, kg, embeddings) or question
    rephrased = rephrased[:1].upper() + rephrased[1:]
    return {"question": rephrased}


def _names_in(question: str, kg: Graph | None) -> list[str]:
    """Return the names in a question, in their order."""
    return [mention.text for mention in find_mentions(question, kg)]


def _ask_of_relative(fragment: str, dialogue: Dialogue, kg: Graph) -> str:
    """Return the previous question, asked of "her sister" in place of her; "" for other fragments.

    After a question for a relative, "her sister" is asked for herself.
    """
    owned = OWNED_FRAGMENT.fullmatch(fragment)
    asked: str = dialogue[-1]["question"]
    if owned is None or (NAMES_RELATION_OF.search(asked) and not owned[3]):
        return ""
    pronoun, relative = owned[1].casefold(), owned[2]
    for names in _find_referents(dialogue, _pronoun_kind(tokenize(fragment), 0), kg, pronoun):
        if names[0] in asked:
            return asked.replace(names[0], f"{names[0]}'s {relative}")
    return ""


def _ask_for_other_most(question: str, dialogue: Dialogue) -> str:
    """Return the latest question with a superlative, with another one ("and the newest?" after "the oldest ship").

    "" if it has several, or if a later question found several things: the newest is one of these then.
    """
    most = ASKS_FOR_MOST.match(question)
    for turn in reversed(dialogue):
        superlatives = THE_MOST.findall(turn["question"])
        if most and WHO.search(most[0]) and not _asks_for_person(turn["question"]):
            break
        if most and len(superlatives) == 1:
            return THE_MOST.sub(most[1], turn["question"])
        if superlatives or len(turn["answers"]) > 1:
            break
    return ""


def _select_from_answers(question: str, dialogue: Dialogue) -> str:
    """Return a question for those of the latest answers that a question selects: "which of them are red".

    It is the question that they answer, with what is said of them: "which carpets did X weave and
    are red". "" if the question does not select, or counts what their question has no noun for.
    """
    if not SUPERLATIVE.search(dialogue[-1]["question"]):
        question = ASKS_FOR_MOST.sub(r"which is \1", question)
    questions = [dialogue[-1]["question"]]
    if COUNTING_OPENING.match(questions[0]) is None:
        questions = [turn["question"] for turn in dialogue if len(turn["answers"]) > 1]
    if not questions:
        return ""
    last = questions[-1].rstrip("?!. ")
    asked = COUNTING_OPENING.sub("Which", last)
    if ASKS_WHICH_THEY_ARE.fullmatch(question):
        return asked if asked != last else ""
    whether = ASKS_WHETHER_ANY.match(question)
    if whether:
        return f"{WHETHER_ANY}{asked} and {whether[1].lower()}{question[whether.end() :]}"
    selecting = SELECTS_FROM_THEM.match(question)
    if selecting is None:
        return ""
    if selecting["many"]:
        asked = _count_answers(asked)
        if not asked:
            return ""
    said = question[selecting.end() :].strip()
    verb, _, _ = said.partition(" ")
    joint = "and" if verb in AUXILIARIES else "and do"
    return f"{asked} {joint} {said}"


def _count_answers(asked: str) -> str:
    """Return the question how many answers a question has; "" if they are of no kind that is counted."""
    opening = COUNTED_OPENING.match(asked)
    if opening is None:
        return ""
    noun = opening[1] or opening[2] or opening[3] or "people "
    return f"How many {noun}{asked[opening.end() :]}"


def rephrase_published(
    question: str, dialogue: Dialogue, kg: Graph | None, embeddings: Embeddings
) -> ReplyData:
    """Return what ``rephrase_question`` returns, for turns without the names that they were about.

    These names are those that the question of a turn mentions in its standalone form, which is made
    as that of the question itself where it is not there. An answer to "who else?" that was named
    before is left out: it is none.
    """
    turns: list[TurnData] = []
    named: set[str] = set()
    for turn in dialogue:
        asked = turn.get("rephrased")
        if not asked:
            asked = rephrase_question(turn["question"], turns, kg, embeddings)["question"]
        about = _names_in(asked, kg)
        answers = list(turn.get("answers", []))
        if has_excluding_word(asked):
            answers = [answer for answer in answers if answer not in named]
        turns.append({"question": asked, "answers": answers, "about": about})
        named.update(about, answers)
    return rephrase_question(question, turns, kg, embeddings)


def _complete_from(turn: TurnData, fragment: str, mentions: Sequence[Mention], kg: Graph) -> str:
    """Return the question of a turn, changed as a fragment of a question asks; "" if it cannot be.

    A name in the fragment replaces the first one of its kind that the turn was about ("and X?"). After
    "the red ferry", "and the blue?" is the blue ferry.
    Otherwise a year replaces the year ("and the one from 2019?"), or a question word replaces the
    beginning ("and where?"); "who founded X" becomes "when was X founded".
    """
    previous: str = turn["question"]
    about = turn.get("about") or _names_in(previous, kg)
    year = YEAR.search(fragment)
    opening = COUNTED_OPENING.match(previous)
    if opening and opening[2] and PLURAL_NOUN.fullmatch(fragment):
        return previous.replace(opening[2].strip(), fragment.rstrip("?!. "), 1)
    if mentions:
        name = mentions[-1].text
        kind = find_kind(kg, name)
        for replaced in about:
            own_kind = find_kind(kg, replaced)
            if replaced in previous and (kind == own_kind or not kind or not own_kind):
                whole = f"{name} {replaced.split()[-1]}"
                is_adjective = f"the {name}" in fragment and name.islower()
                if is_adjective and kg.exact([whole]):
                    name = whole
                return previous.replace(replaced, name)
    if year and YEAR.search(previous):
        return YEAR.sub(year.group(), previous)
    phrase = re.sub("^the ones? ", "", fragment)
    preposition, _, _ = phrase.partition(" ")
    before, found, _ = previous.rpartition(f" {preposition} ")
    if found and preposition in PREPOSITIONS:
        return f"{before} {phrase}"
    if QUESTION_OPENING.match(fragment):
        beginning = fragment.rstrip("?!. ").capitalize()
        rest = QUESTION_OPENING.sub("", previous)
        active = ACTIVE_WHO_QUESTION.match(previous)
        if active and is_verb(active["verb"]):
            rest = f" was {active['object']} {active['verb']}?"
        return beginning + rest
    return ""


def _replace_pronoun(question: str, tokens: Sequence[Token], position: int, name: str) -> str:
    """Return a question in which a name replaces the pronoun at the position of a token.

    A demonstrative is replaced together with the noun after it ("this film"). "There" becomes "in
    X", and a possessive "X's".
    """
    pronoun = tokens[position]
    following = tokens[position + 1 : position + 2]
    is_joined = position > 0 and tokens[position - 1].lowercase in PREPOSITIONS
    if _pronoun_kind(tokens, position) == "place" and not is_joined:
        name = f"in {name}"
    end = pronoun.end
    if following and pronoun.lowercase in POSSESSIVE_PRONOUNS:
        name = f"{name}'s"
    elif pronoun.lowercase in DEMONSTRATIVES and not any(
        is_verb(each.lowercase) or each.lowercase in AUXILIARIES for each in following
    ):
        end = [pronoun, *following][-1].end
    return question[: pronoun.start] + name + question[end:]


def _find_pronouns(tokens: Sequence[Token], places: Sequence[int]) -> dict[int, str]:
    """Return the kind of each pronoun at some places; beside "there", "it" is none: "how cold is it there"."""
    kinds = {}
    for place in places:
        kind = _pronoun_kind(tokens, place)
        if kind:
            kinds[place] = kind
    if "place" in kinds.values():
        kinds = {place: kind for place, kind in kinds.items() if tokens[place].lowercase != "it"}
    return kinds


def _name_what_is_called(question: str, dialogue: Dialogue, kg: Graph) -> str:
    """Return a question with the latest thing that its DEFINITE_NOUN calls by a class in the noun's place.

    "The sister's captain" is that of the answer, if the sister was asked for.
    Beside a name, "the ferry" may be another one. Of several answers of one turn none is meant.
    """
    owner = DEFINITE_OWNER.search(question)
    asked: str = dialogue[-1]["question"]
    answers = dialogue[-1]["answers"]
    if owner and len(answers) == 1 and owner[1] in asked.split():  # the sister's captain
        return question.replace(f"the {owner[1]}", answers[0], 1)
    noun = DEFINITE_NOUN.search(question)
    if noun is None or (noun[1] == "the" and find_mentions(question, kg)):
        return question
    for turn in reversed(dialogue):
        if noun[2] in turn["question"] and not turn["answers"]:
            return question  # it was asked for, and not found
        for names in (turn["answers"], turn.get("about", ())):
            called: list[str] = [name for name in names if is_called(kg, name, noun[2])]
            if len(called) == 1:
                return question[: noun.start()] + called[0] + question[noun.end() :]
            if called:
                return question
    return question


def _find_answer_at(ordinal: str, dialogue: Dialogue) -> str:
    """Return the answer that "the second one" counts in the latest turn with several; else the ordinal."""
    place = ordinal.casefold().split()[1]
    counted: Names = ()
    for turn in dialogue:
        if len(turn["answers"]) > 1:
            counted = turn["answers"][PLACES[place] :]
    return "".join(counted[:1]) or ordinal


def _insert_topic(question: str, dialogue: Dialogue, kg: Graph, embeddings: Embeddings) -> str:
    """Return a question with the most recent thing or person inserted at its INSERTION_POINT.

    That is after "the film" or the like, or else, with " of " before the name, at the end, if the
    graph has what is asked for. Of several, the latest for which it does is taken. A question with
    a superlative is about all things. "" is returned if nothing can be inserted. "The
    producer's phone" is that of the producer of the thing.
    """
    question = DEFINITE_OWNER.sub(r"the \2 of the \1", question)
    question = ARE_THERE.sub("", question)
    match = INSERTION_POINT.search(question)
    if match is None or NO_TOPIC.search(question):
        return ""
    joint = match[0] or " of"
    for end in range(len(dialogue), 0, -1):
        for kind in ("thing", "person"):
            for names in _find_referents(dialogue[:end], kind, kg):
                name = _join_names(names)
                option = f"{question[: match.start()]}{joint} {name}{question[match.end() :]}"
                if match[0] or can_be_answered(option, kg, embeddings):
                    return option
    return ""


def _pronoun_kind(tokens: Sequence[Token], position: int) -> str:
    """Return what the pronoun at a position stands for; "" if it is no pronoun.

    That is "person", "thing", "place" or "several". "This conductor" is a person.

    "There" is not one after an auxiliary ("are there films") or at the beginning. A demonstrative
    is one only after a verb, auxiliary, preposition or question word, or at the beginning;
    elsewhere it begins a clause ("films that share").
    """
    word = tokens[position].lowercase
    if word not in PRONOUNS:
        return ""
    # The beginning of the question is like a place after "is"
    word_before = "is"
    if position > 0:
        word_before = tokens[position - 1].lowercase
    begins_clause = not is_verb(word_before) and word_before not in WORDS_BEFORE_DEMONSTRATIVES
    is_last = position == len(tokens) - 1
    if word in DEMONSTRATIVES and begins_clause and not is_last:
        return ""
    if word == "there":
        return "" if word_before in AUXILIARIES else "place"
    if word in PLURAL_PRONOUNS:
        return "several"
    following = {token.lowercase for token in tokens[position + 1 : position + 2]}
    is_profession = word in DEMONSTRATIVES and not following.isdisjoint(PERSON_NOUNS | PROFESSIONS)
    if word in PERSONAL_PRONOUNS or is_profession:
        return "person"
    return "thing"


def _find_referents(dialogue: Dialogue, kind: str, kg: Graph, pronoun: str = "") -> Sequence[Names]:
    """Return what a pronoun of a kind may stand for, the likeliest first; each is one name or several.

    A person whose gender in the graph is another than that of ``pronoun`` is left out. They are of
    the latest turn that has any. Nothing is returned if it has several persons and one is meant, or
    if what was asked for in it is of the kind, and was not found.
    """
    gender = GENDER_OF_PRONOUN.get(pronoun, "")
    persons: set[str] = set()
    for turn in dialogue:
        if _asks_for_person(turn["question"]):
            persons.update(turn["answers"])
    for turn in reversed(dialogue):
        had = _find_what_one_has(turn, kind, gender, kg)
        if had:
            return had
        said = _select_said(turn, kind, gender, kg)
        if said is None:
            return []
        asked_kind = _kind_asked_for(turn["question"])
        fitting = _select_fitting(said, kind, persons, asked_kind, kg)
        answers = [name for name in fitting if not NUMBER_OR_DATE.fullmatch(name)]
        if kind == "person" and asked_kind != kind:  # a text is nobody
            answers = list(kg.exact(answers))
        # What the question for a person is about is a thing, if the graph does not say more.
        own_kind = ""
        if asked_kind == "person":
            own_kind = "thing"
        about = turn.get("about") or _names_in(turn["question"], kg)
        about = _without_other_gender(about, gender, kg)
        classes = fetch_classes_of_graph(kg).values()
        named = [name for name in about if name not in classes]  # of a class its members are meant
        topics = _select_fitting(named, kind, persons, own_kind, kg)
        named_persons = [name for name in topics if find_kind(kg, name) == kind]
        if kind == "person" and len(answers or named_persons) > 1:
            return []
        counts = kind == "several" and turn["question"].casefold().startswith("how many")
        if counts and [find_kind(kg, name) for name in topics] == ["person"]:
            return []  # they are those who were counted
        # The graph says nothing of an only answer that is a text or number.
        has_label = len(said) != 1 or bool(kg.exact(said))
        is_topic = asked_kind in ("person", "place") or not has_label
        options = _rank_referents(kind, answers, topics, len(said) == 1, is_topic)
        if options:
            return options
    return []


def _find_counted(asked: str, kind: str, kg: Graph) -> list[Names]:
    """Return the members of the class that the previous question counted, if "they" may stand for them; else []."""
    counted_class = COUNTS_CLASS.fullmatch(asked)
    if counted_class is None or kind != "several":
        return []
    members = name_members(kg, counted_class[1])
    return [members] if members else []


def _select_said(turn: TurnData, kind: str, gender: str, kg: Graph) -> Names | None:
    """Return the answers of a turn that a pronoun may stand for; None if it asked for its kind in vain."""
    question = turn["question"]
    asked_kind = _kind_asked_for(question)
    if asked_kind == "person" and NOT_CALLED.match(f"{gender} {question}"):
        return []
    asks_for_kind = asked_kind == "person" and kind in ("person", "several")
    if kind != "person":
        asks_for_kind |= bool(ASKS_FOR_THING.match(question))
    if asks_for_kind and not turn["answers"]:
        return None
    return _without_other_gender(turn["answers"], gender, kg)


def _find_what_one_has(turn: TurnData, kind: str, gender: str, kg: Graph) -> list[Names]:
    """Return X's sister if a turn was about her, and a pronoun stands for her and not for X; else [].

    It asked something of her, or found that X has one: a relative, or anything else. ``kind`` and ``gender``
    are those of the pronoun. The name of the only sister comes second: it can stand where "X's sister" is
    not read.
    """
    asked = ASKS_WHETHER_HAS.fullmatch(turn["question"])
    if asked and list(turn["answers"]) != ["true"]:
        return []
    if asked is None and not _asks_for_person(turn["question"]):
        names = "|".join(map(re.escape, turn.get("about") or _names_in(turn["question"], kg)))
        asked = re.search(RELATIVE_OF.format(names), turn["question"]) if names else None
    if asked is None:
        return []
    owner, had = asked["owner"], asked["had"].casefold()
    is_of_person = find_kind(kg, owner) == "person"
    if had in WOMEN | MEN:
        stands_for_it = had in {"she": WOMEN, "he": MEN}.get(gender, ())
    elif kind == "several":
        stands_for_it = had.endswith("s") or had == "children"
    elif kind == "person":
        stands_for_it = leads_to_agent(had) and not is_of_person
    else:
        stands_for_it = is_of_person and not leads_to_agent(had)
    if not stands_for_it:
        return []
    called = [f"{owner}'s {had}"]
    ends = name_ends(kg, owner, had)
    is_known = len(ends) == 1 and find_gender(kg, ends[0]) == gender
    return [called, ends] if is_known else [called]


def _select_fitting(
    names: Names, kind: str, persons: set[str], asked_kind: str, kg: Graph
) -> list[str]:
    """Return the names that a pronoun of a kind can stand for.

    What the graph does not tell the kind of is a person if it is one of ``persons``, the answers to
    questions for a person, else of the kind ``asked_kind``. What is of no known kind fits every
    pronoun, and a person is neither "it" nor "there": but who makes something may be a company.
    """
    fitting = []
    for name in names:
        known = find_kind(kg, name)
        own_kind = known or ("person" if name in persons else asked_kind)
        if kind == "person" and find_gender(kg, name):
            own_kind = kind
        if kind in ("thing", "place"):
            may_be_firm = kind == "thing" and not known
            fits = own_kind != "person" or may_be_firm
        else:
            fits = kind == "several" or own_kind in ("", kind)
        if fits:
            fitting.append(name)
    return fitting


def _rank_referents(
    kind: str, answers: Names, topics: Names, has_one_answer: bool, is_topic: bool
) -> Sequence[Names]:
    """Return what a pronoun of a kind may stand for after a turn, the likeliest first.

    "They" are all answers, or all names that the turn was about. Otherwise it is the only answer,
    else the first name. If it ``is_topic``, after a question for a person or place, or one with a
    text as its answer, "it" is likelier what that is of. "They" may be one answer or name.
    """
    if kind == "several":
        for names in (answers, topics):
            if len(names) > 1:
                return [names]
    answer = []
    if has_one_answer and answers:
        answer = [answers]
    topic = []
    if topics:
        topic = [topics[:1]]
    if kind == "several":
        return [*answer, *topic]
    if kind == "thing" and is_topic:
        return [*topic, *answer]
    return (answer or topic)[:1]


def _without_other_gender(names: Names, gender: str, kg: Graph) -> Names:
    """Return the names without those of which the graph says another gender than "she" or "he"."""
    if not gender:
        return names
    return [name for name in names if find_gender(kg, name) in ("", gender)]


def _join_names(names: Names) -> str:
    """Return names as a list: "A, B and C"."""
    *others, last = names
    if others:
        return f"{', '.join(others)} and {last}"
    return last


def _kind_asked_for(question: str) -> str:
    """Return whether a question asks for a "person" or a "place"; "" for anything else."""
    if question.casefold().startswith("where"):
        return "place"
    return "person" if _asks_for_person(question) else ""


def _asks_for_person(question: str) -> bool:
    """Return whether a question begins with "who", or with a noun for who does something."""
    opening = PERSON_OPENING.match(question)
    if opening is None:
        return False
    noun = opening[1]
    return noun is None or leads_to_agent(noun) or noun.endswith(("man", "men"))


RULES: Mapping[str, Rule] = {
    "chatty_kg/translator": translate_question,
    "chatty_kg/qir": extract_qir,
    "chatty_kg/qir_published": extract_published_qir,
    "chatty_kg/predicate_selection": select_predicates,
    "chatty_kg/predicate_selection_published": select_pooled_predicates,
    "chatty_kg/answer_writer": write_sentence,
    "chatty_kg/model_alone": answer_nothing,
    "chatty_kg/classifier": classify_question,
    "chatty_kg/classifier_published": classify_question,
    "chatty_kg/rephraser": rephrase_question,
    "chatty_kg/rephraser_published": rephrase_published,
}
"""For each prompt, the function by which the model ``rules`` answers it."""
