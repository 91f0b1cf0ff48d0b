"""The first agents of Surveyor: the names that a question mentions, and what they may refer to."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from functools import cached_property, lru_cache
from typing import Self

from rdflib import Literal, URIRef

from kgwb.build import (
    Candidate,
    ClassGroup,
    Dialogue,
    GoldQuery,
    GraphError,
    Iri,
    Prefixes,
    Reply,
    RetrievedCandidates,
    Run,
    Rung,
    SurveyWriter,
    Term,
    ValueMatch,
    agent,
    ask_model,
    bracket_iri,
    collect_iris,
    find_exact_values,
    find_values_containing,
    format_exactly,
    format_typed_literal,
    get_output,
    is_exact_match,
    list_outputs,
    local_part,
    normalize,
    pluralize,
    quote_text,
    quote_unless_number,
    search_candidates,
    tell_apart,
    to_curie,
    values_clause,
)
from kgwb.systems.surveyor.records import Mention, Mentions, UsedTerms
from kgwb.systems.surveyor.settings import SurveyorSettings

MAX_TITLES = 150
"""Classes that a model can choose from."""
MAX_KEPT_NAMES = 8
"""Surveys whose class names are kept: those that questions are asked over at one time."""
NamedClasses = tuple[tuple[Iri, str], ...]
"""Classes, each with its display name."""
TITLE_ENDING = re.compile(r" \((?:[\w-]+:[\w-]+|<[^<>\s]+>)\)$")
"""The CURIE or IRI that tells a class from another one of its name."""


class ClassNames:
    """Some classes with their names. Several of them may have one name."""

    def __init__(self, classes: NamedClasses, prefixes: Mapping[str, str]) -> None:
        """Name the classes. ``prefixes`` has the prefix of each namespace."""
        self._name_of = dict(classes)
        self._prefixes = prefixes
        self.titles: Mapping[URIRef, str] = tell_apart(
            self._name_of, (self._name_of.__getitem__, self._format_with_curie), fold_case=True
        )
        """The name of each class, with the CURIE behind it where other classes have that name.

        Letter case does not tell names apart, because models do not keep it.
        """

    def _format_with_curie(self, iri: URIRef) -> str:
        """Return the name of a class with its CURIE in brackets."""
        return f"{self._name_of[iri]} ({to_curie(iri, self._prefixes)})"

    @cached_property
    def _classes_by_text(self) -> tuple[Mapping[str, Mapping[URIRef, None]], ...]:
        """The classes by the texts that mean them: identities, names, and all in lower case.

        These are three mappings, to be looked up in this order. In the last, letter case does not
        count, and local parts are texts, too.
        """
        by_identity: dict[str, dict[URIRef, None]] = defaultdict(dict)
        by_name: dict[str, dict[URIRef, None]] = defaultdict(dict)
        by_folded_text: dict[str, dict[URIRef, None]] = defaultdict(dict)
        for iri, name in self._name_of.items():
            curie = to_curie(iri, self._prefixes)
            shown = f"{curie} {quote_text(name)}"
            identities = (curie, str(iri), bracket_iri(iri), shown, self.titles[iri])
            for text in identities:
                by_identity[text][iri] = None
            by_name[name][iri] = None
            for text in (*identities, name, local_part(iri)):
                by_folded_text[text.casefold()][iri] = None
        return by_identity, by_name, by_folded_text

    @classmethod
    @lru_cache(maxsize=MAX_KEPT_NAMES)
    def of_survey(cls, writer: SurveyWriter) -> Self:
        """Return the names of all classes of a survey that have an IRI, by IRI.

        The prefixes are those of the writer. The names are kept, because each question needs them
        several times.
        """
        classes = []
        for each in writer.survey.classes:
            if each.iri:
                classes.append((each.iri, each.name))
        return cls(tuple(classes), writer.prefixes)

    def find(self, text: str) -> tuple[URIRef, ...]:
        """Return the classes that a text means; an empty tuple if it means none.

        A CURIE, an IRI, or a title means one class. Another name means all classes that have it,
        and a text that is none of these all classes that it is a CURIE, a name or the local part
        of, but for letter case. The number of instances behind the text, as a survey shows it, does
        not count.
        """
        text = " ".join(text.split())
        without_number = re.sub(r" \d+$", "", text)
        by_identity, by_name, by_folded_text = self._classes_by_text
        for wanted in (text, without_number):
            found = (
                by_identity.get(wanted)
                or by_name.get(wanted)
                or by_folded_text.get(wanted.casefold())
            )
            if found:
                return tuple(found)
        return ()

    def find_all(self, texts: Iterable[str]) -> tuple[URIRef, ...]:
        """Return the classes that any of the texts means, each once.

        The order is that of the texts. Texts that mean no class are left out.
        """
        found: dict[URIRef, None] = {}
        for text in texts:
            found.update(dict.fromkeys(self.find(text)))
        return tuple(found)


def titles_to_choose_from(writer: SurveyWriter) -> tuple[str, ...]:
    """Return the titles of classes that a model may choose, at most MAX_TITLES, of the largest groups first.

    The group of things without a class has none.
    """
    title_of = ClassNames.of_survey(writer).titles
    titles: dict[str, None] = {}
    for group in writer.groups:
        if group.top_class.iri:
            for iri in iris_of(group):
                titles[title_of[iri]] = None
    return tuple(titles)[:MAX_TITLES]


def iris_of(group: ClassGroup) -> list[URIRef]:
    """Return the classes that a group describes; empty for the things without a class."""
    return [surveyed.iri for surveyed in group.classes if surveyed.iri]


def choose_titles(names: Iterable[str], titles: Iterable[str]) -> tuple[str, ...]:
    """Return those of the titles that the names mean, each once, in the order of the names.

    A name means the title that it is, else the one that it is but for letter case, else all titles
    that are this name with a CURIE. Names that mean no title are dropped.
    """
    known_titles = dict.fromkeys(titles)
    titles_by_folded: dict[str, list[str]] = defaultdict(list)
    titles_by_name: dict[str, list[str]] = defaultdict(list)
    for title in known_titles:
        titles_by_folded[title.casefold()].append(title)
        titles_by_name[TITLE_ENDING.sub("", title).casefold()].append(title)
    chosen: dict[str, None] = {}
    for name in names:
        if name in known_titles:
            meant = [name]
        else:
            folded = name.casefold()
            meant = titles_by_folded.get(folded) or titles_by_name.get(folded) or []
        chosen.update(dict.fromkeys(meant))
    return tuple(chosen)


MAX_NAMES = 8
"""Names of a question that are looked up."""
MAX_NAME_CHARS = 200
"""Characters of a name that are kept."""
MAX_EARLIER_TURNS = 4
"""Earlier turns that the model sees, the latest ones."""
MAX_EARLIER_ANSWERS = 5
"""Answers of an earlier turn that the model sees."""
MAX_CANDIDATES_WITH_RELATIONS = 2
"""The predicates of candidates are looked up only if a name has at most so many candidates."""
MAX_SHOWN_TYPES = 2
MAX_COMMENTS = 2
"""Descriptions of classes and predicates that are kept for a name."""
MAX_COMMENT_CHARS = 300
MAX_SHOWN_RELATIONS = 16
MAX_WEAK_WORD_CHARS = 3
"""Letters of the longest word, such as "of", that alone makes no label like a name."""
MIN_WORD_LIKENESS = 0.75
"""How similar (difflib's ratio) a word of a label must be to count as another spelling of one in a name."""


class MentionReply(Reply):
    """What to look up, and the classes the question is about."""

    reason: str
    question: str
    names: list[str]
    classes: list[str]


@agent("mention_finder", kind="model")
def find_mentions(
    question: str, dialogue: Dialogue, classes: tuple[str, ...], run: Run
) -> Mentions:
    """Ask the model for the names that a question mentions, and for the classes it is about.

    The model sees the latest turns of the dialogue, and completes a question that depends on them.
    ``classes`` are the titles of the graph's classes; others that the model replies are dropped. At
    most MAX_NAMES names are kept. They have no candidates yet. Raises InvalidReplyError if no reply
    has the right form.
    """
    earlier = _describe_turns(dialogue)
    variables = {"question": question, "earlier": earlier, "classes": list(classes)}
    reply = ask_model("surveyor/mention_finder", variables, MentionReply, run)
    names = _clean_names(reply.names)[:MAX_NAMES]
    full_question = " ".join(reply.question.split()) or question
    known_classes = choose_titles(reply.classes, classes)
    mentions = tuple(map(Mention, names))
    return Mentions(full_question, mentions, known_classes, reply.reason)


def _describe_turns(dialogue: Dialogue) -> list[dict[str, object]]:
    """Return the last MAX_EARLIER_TURNS turns as data for the prompt, oldest first.

    A turn has its question, in full if that is known, and its first MAX_EARLIER_ANSWERS answers. If
    it has more, ``more_answers`` says how many, so that they are not taken for all.
    """
    described: list[dict[str, object]] = []
    for turn in dialogue.turns[-MAX_EARLIER_TURNS:]:
        answers = list(turn.answers[:MAX_EARLIER_ANSWERS])
        question = turn.standalone or turn.question
        data: dict[str, object] = {"question": question, "answers": answers}
        if len(turn.answers) > len(answers):
            data["more_answers"] = len(turn.answers) - len(answers)
        described.append(data)
    return described


def _clean_names(names: Iterable[str]) -> list[str]:
    """Return names in one line each, cut at MAX_NAME_CHARS; without empty and repeated ones."""
    cleaned = []
    for name in names:
        cleaned.append(" ".join(name.split())[:MAX_NAME_CHARS])
    return list(dict.fromkeys(filter(None, cleaned)))


@agent("entity_retriever", subject="entity", kind="search")
def retrieve_named(entity: str, run: Run) -> RetrievedCandidates:
    """Search the labels of the graph for a name; see ``search_candidates``.

    Longer names, such as those with a title, stay beside an exact one.
    """
    return search_candidates(entity, run, keeps_longer=True)


def drop_unrelated(
    retrieved: RetrievedCandidates, chosen: Iterable[str], writer: SurveyWriter
) -> RetrievedCandidates:
    """Return what was retrieved, without noise and longer names of things of another kind.

    Noise are candidates that share no more with the name than weak words, and words of the names of
    classes: "Department", see ``_shares_only_weak_words``. Beside exact candidates, one with a longer
    name stays if it has a class in the group of a class of these, or of one of the ``chosen``
    classes. The survey tells the groups. Without an exact candidate, all others stay.
    """
    kinds: set[str] = set()
    for surveyed in writer.survey.classes:
        kinds.update(normalize(surveyed.name).split())
    fitting = []
    for candidate in retrieved.candidates:
        if not _shares_only_weak_words(retrieved.entity, candidate.label, kinds):
            fitting.append(candidate)
    exact = [candidate for candidate in fitting if is_exact_match(candidate)]
    if not exact or len(exact) == len(fitting):
        return replace(retrieved, candidates=tuple(fitting))
    names = ClassNames.of_survey(writer)
    wanted = list(chosen)
    for candidate in exact:
        wanted += candidate.types
    classes = set(names.find_all(wanted))
    related = set(classes)
    for group in writer.groups:
        members = iris_of(group)
        if not classes.isdisjoint(members):
            related.update(members)
    kept = []
    for candidate in fitting:
        if candidate in exact or not related.isdisjoint(names.find_all(candidate.types)):
            kept.append(candidate)
    if len(kept) == 1:
        # There is nothing left to tell it apart from.
        kept = [replace(kept[0], types=(), description="", relations=())]
    return replace(retrieved, candidates=tuple(kept))


@agent("value_finder", subject="name", kind="search")
def find_values(
    name: str,
    retrieved: RetrievedCandidates,
    predicates: tuple[URIRef, ...],
    comments: tuple[tuple[URIRef, str], ...],
    run: Run,
) -> Mention:
    """Select the best candidates for a name, and search the graph for values that are or contain it.

    Candidates with exactly this label come first, and different types before several of one type. A
    number or code of the name must be in a candidate's label: one that is only alike is another
    one.

    Values that are the name, or a code in it, are searched at any predicate; values that contain it
    at ``predicates``. Those that are candidates are left out. ``comments`` are descriptions of
    classes and predicates that have the name. If the graph raises an error, there are no values,
    and the step has a note. The setting ``name_candidates`` limits both. The classes of the
    candidates are looked up, and the predicates of MAX_CANDIDATES_WITH_RELATIONS at most.
    """
    limit = SurveyorSettings.of_run(run).name_candidates
    fitting = []
    for candidate in retrieved.candidates:
        if _has_codes_of(name, candidate.label):
            fitting.append(candidate)
    candidates = _alternate_types(fitting)[:limit]
    candidate_iris = {candidate.iri for candidate in retrieved.candidates}
    values: dict[tuple[URIRef, Term], ValueMatch] = {}
    try:
        exact = find_exact_values(run.kg, (name, *_codes_in(name)))
        for match in (*exact, *find_values_containing(run.kg, predicates, name)):
            if match.value not in candidate_iris:
                values.setdefault((match.predicate, match.value), match)
    except GraphError as error:
        run.note(f"values that contain {name!r} could not be searched: {error.message}")
    described, used = _look_up_terms(candidates, run)
    found = tuple(values.values())[:limit]
    return Mention(name, tuple(described), found, used, comments)


def _codes_in(name: str) -> list[str]:
    """Return the parts of a name that have a digit, such as "A-0003" in "patient A-0003".

    A name of one part has none besides itself, and a part of one letter is none.
    """
    parts = name.split()
    if len(parts) == 1:
        return []
    return [part for part in parts if len(part) > 1 and any(map(str.isdigit, part))]


def _has_codes_of(name: str, label: str) -> bool:
    """Return whether a label has all words of the codes in a name, in one place each."""
    label_words = f" {normalize(label)} "
    codes = _codes_in(name)
    if not codes and any(map(str.isdigit, name)):
        codes = [name]
    return all(f" {normalize(code)} " in label_words for code in codes)


def _shares_only_weak_words(name: str, label: str, kinds: Collection[str]) -> bool:
    """Return whether a label has a weak word of a name, and none that is like another word of it.

    A weak word is one of ``kinds``, or has at most MAX_WEAK_WORD_CHARS letters of a to z, all small:
    "of", but not "IBM". A name of weak words only shares no others, and counts. A word is like a part
    of the label, or one in another spelling.
    """
    label_words = normalize(label).split()
    weak = []
    strong = []
    for written in name.split():
        is_plain = written.isascii() and written.isalpha() and written.islower()
        if normalize(written) in kinds or (is_plain and len(written) <= MAX_WEAK_WORD_CHARS):
            weak.append(normalize(written))
        else:
            strong += normalize(written).split()
    if not strong or not set(weak).intersection(label_words):
        return False
    for word in strong:
        is_part = word in " ".join(label_words)
        if is_part or get_close_matches(word, label_words, 1, MIN_WORD_LIKENESS):
            return False
    return True


def find_comments(name: str, notes: Iterable[tuple[URIRef, str]]) -> tuple[tuple[URIRef, str], ...]:
    """Return the classes and predicates whose description has a name as whole words."""
    words = normalize(name)
    if len(words) < 2:
        return ()
    found = []
    for iri, note in notes:
        if f" {words} " in f" {normalize(note)} ":
            found.append((iri, note))
    return tuple(found[:MAX_COMMENTS])


def _alternate_types(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Return candidates sorted so that different types alternate, those with an exact label first.

    Both parts begin with the first candidate of each combination of types, then come the second
    ones, and so on, so that a limit does not cut off a type because another one has many
    candidates.
    """
    ranks: dict[Candidate, tuple[bool, int]] = {}
    counts = Counter[tuple[str, ...]]()
    for candidate in candidates:
        is_inexact = candidate.score < 1
        ranks[candidate] = (is_inexact, counts[candidate.types])
        counts[candidate.types] += 1
    return sorted(ranks, key=ranks.__getitem__)


def _look_up_terms(
    candidates: Sequence[Candidate], run: Run
) -> tuple[Sequence[Candidate], tuple[UsedTerms, ...]]:
    """Return candidates with the names of their classes and predicates, and these terms by IRI.

    Predicates are looked up only of MAX_CANDIDATES_WITH_RELATIONS candidates at most, of which only
    exact ones count if there are any. Those that the vocabulary excludes are left out. Raises a
    GraphError if the graph fails.
    """
    if not candidates:
        return candidates, ()
    iris = [candidate.iri for candidate in candidates]
    vocabulary = run.kg.vocabulary
    listed = values_clause("?v", iris)
    types = values_clause("?p", vocabulary.types)
    queries = {"classes": f"SELECT DISTINCT ?v ?x WHERE {{ {listed} {types} ?v ?p ?x }}"}
    exact = [candidate.iri for candidate in candidates if is_exact_match(candidate)]
    related = exact or iris
    if len(related) <= MAX_CANDIDATES_WITH_RELATIONS:
        listed = values_clause("?v", related)
        queries["predicates"] = f"SELECT DISTINCT ?v ?x WHERE {{ {listed} ?v ?x ?o }}"
        queries["incoming"] = f"SELECT DISTINCT ?v ?x WHERE {{ {listed} ?s ?x ?v }}"
    terms: dict[tuple[str, Term | None], set[URIRef]] = defaultdict(set)
    for kind, query in queries.items():
        for vertex, term in run.kg.select(query).rows:
            if isinstance(term, URIRef) and term not in vocabulary.excluded_predicates:
                terms[kind, vertex].add(term)
    names = run.kg.names(sorted(set().union(*terms.values())))

    used = []
    described = []
    for candidate in candidates:
        named = {}
        for kind in queries:
            found = sorted(terms[kind, candidate.iri])
            named[kind] = tuple((term, names[term]) for term in found)
        used.append(UsedTerms(candidate.iri, **named))
        relations = [name for _, name in named.get("predicates", ())]
        relations += [f"{name} (incoming)" for _, name in named.get("incoming", ())]
        types_of_it = dict.fromkeys(name for _, name in named["classes"])
        new_candidate = replace(
            candidate,
            types=tuple(types_of_it) or candidate.types,
            relations=tuple(dict.fromkeys(relations)) or candidate.relations,
        )
        described.append(new_candidate)
    return described, tuple(used)


# Mentions as a model reads them


def format_mentions(mentions: Mentions, prefixes: Prefixes) -> str:
    """Return what was found for each name, as text for the drafter and the reviewer; "none" without names.

    A name has one line, and each of its candidates and values has an indented line below it. IRIs
    are CURIEs. Everything that the graph or the question says is in quotes, so that it cannot pass
    for an instruction. Different values never look the same.
    """
    prefix_of = {namespace: prefix for prefix, namespace in prefixes}
    values: dict[Term, None] = {}
    for mention in mentions.found:
        values.update(dict.fromkeys(match.value for match in mention.values))
    text_of = _format_values(values, prefix_of)
    lines = []
    for mention in mentions.found:
        used = {terms.iri: terms for terms in mention.used}
        heading = quote_text(mention.name)
        if not mention.candidates and not mention.values and not mention.comments:
            heading += ": nothing found"
        lines.append(heading)
        exact_values = []
        other_values = []
        for match in mention.values:
            text = _format_value(match, text_of[match.value], prefix_of)
            if match.exact:
                exact_values.append(f"  {text}")
            else:
                other_values.append(f"  {text}")
        lines += exact_values
        for candidate in mention.candidates:
            text = _format_candidate(candidate, used.get(candidate.iri), prefix_of)
            lines.append(f"  {text}")
        lines += other_values
        for iri, comment in mention.comments:
            said = quote_text(comment, MAX_COMMENT_CHARS)
            lines.append(f"  stands in the description of {to_curie(iri, prefix_of)}: {said}")
    return "\n".join(lines) or "none"


def _format_value(match: ValueMatch, text: str, prefix_of: Mapping[str, str]) -> str:
    """Return a value with its predicate and how many triples have both; an exact one also with things."""
    predicate = to_curie(match.predicate, prefix_of)
    number = pluralize(match.triples, "triple")
    if not match.exact:
        return f"{text} is a value of {predicate}, {number}"
    things = ", ".join(to_curie(subject, prefix_of) for subject in match.subjects)
    if match.triples > len(match.subjects):
        things = f"such as {things}"
    return f"{text} is exactly the value of {predicate}, {number}: {things}"


def _format_values(values: Iterable[Term], prefix_of: Mapping[str, str]) -> dict[Term, str]:
    """Return a text for each value: the CURIE of an IRI, or a literal in quotes; no two are the same.

    Literals that would read the same have their language or datatype behind them. ``prefix_of`` has
    the prefix of each namespace.
    """

    def format_shortly(value: Term) -> str:
        if isinstance(value, URIRef):
            return to_curie(value, prefix_of)
        return quote_unless_number(value)

    def format_fully(value: Term) -> str:
        if isinstance(value, Literal):
            return format_typed_literal(value, prefix_of)
        return format_exactly(value)

    return tell_apart(values, (format_shortly, format_fully, format_exactly))


def _format_candidate(
    candidate: Candidate, used: UsedTerms | None, prefix_of: Mapping[str, str]
) -> str:
    """Return a candidate as its CURIE, label and description, with its classes and predicates.

    Label and description are in quotes. Classes are CURIEs as in the survey; where they are not
    known, the names of the types stand in their place. Predicates are CURIEs in brackets, "^" before
    those that lead to the candidate. ``prefix_of`` has the prefix of each namespace.
    """
    quoted = [quote_text(text) for text in (candidate.label, candidate.description) if text]
    text = f"{to_curie(candidate.iri, prefix_of)} {', '.join(quoted)}".rstrip()
    if used is None:
        types = ", ".join(quote_text(name) for name in candidate.types[:MAX_SHOWN_TYPES])
        if types:
            return f"{text}, {types}"
        return text
    if used.classes:
        classes = []
        for iri, _ in used.classes[:MAX_SHOWN_TYPES]:
            classes.append(to_curie(iri, prefix_of))
        text += f" a {', '.join(classes)}"
    predicates = [_format_predicate(*term, prefix_of) for term in used.predicates]
    predicates += [f"^{_format_predicate(*term, prefix_of)}" for term in used.incoming]
    if predicates:
        text += f" [{', '.join(predicates[:MAX_SHOWN_RELATIONS])}]"
    return text


def _format_predicate(iri: URIRef, name: str, prefix_of: Mapping[str, str]) -> str:
    """Return the CURIE of a predicate, followed by its name in quotes if that says more."""
    curie = to_curie(iri, prefix_of)
    if normalize(name).replace(" ", "") == normalize(local_part(iri)).replace(" ", ""):
        return curie
    return f"{curie} {quote_text(name)}"


def list_offered_vertices(run: Run) -> frozenset[str]:
    """Return the IRIs of the vertices that the names of the question may refer to."""
    return collect_iris(list_outputs(run, "value_finder"), lambda mention: mention.candidates)


def make_vertex_rung(run: Run, gold: GoldQuery) -> Rung | None:
    """Return the gold vertices that no name of the question was found to mean, to put in as candidates.

    Where the question's names have the vertex's name, the search for it is blamed, else the agent
    that finds names. Returns None if all were found, or if no names were looked for yet.
    """
    mentions: Mentions | None = get_output(run, "mention_finder")
    missing = sorted(gold.vertices - list_offered_vertices(run))
    if mentions is None or not missing:
        return None
    names = {name.casefold(): name for name in mentions.names}
    blamed = "entity_retriever"
    added = []
    values: dict[str, object] = {}
    for iri in missing:
        label = gold.names.get(f"<{iri}>", iri)
        name = names.get(label.casefold())
        if name is None:
            name = label
            blamed = "mention_finder"
            added.append(Mention(name))
        found: Mention = get_output(run, f"value_finder[{name}]") or Mention(name)
        candidates = (Candidate(URIRef(iri), label), *found.candidates)
        values[f"value_finder[{name}]"] = replace(found, candidates=candidates)
    if added:
        values = {"mention_finder": replace(mentions, found=(*mentions.found, *added)), **values}
    return Rung(blamed, values)
