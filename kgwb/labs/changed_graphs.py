"""Whether triples say what a question says: in other words too, and also on a changed copy of the sample graph.

A query or a triple can give the right answer by chance: because it names the answer, because the
alphabet has the order of the running times, or because everything by one director was also written
by this person. On a graph in which these go apart, it gives another answer than the right one. And
a triple can be right, but in words that the linking does not know. ``right_answers.toml`` has what is
known of each question.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import chain
from typing import cast

from pydantic import BaseModel

from kgwb import disk
from kgwb.errors import OverrideError
from kgwb.kg import Graph
from kgwb.kg.local import LocalGraph
from kgwb.labs.recorded import set_triples
from kgwb.labs.tasks import open_sample
from kgwb.labs.texts import Problem, say
from kgwb.records import to_data
from kgwb.run import Run
from kgwb.run.answers import Link
from kgwb.terms import CAMEL_CASE_BOUNDARY

WORD = re.compile(r"\w+")
YEAR = re.compile(r"\d{4}")
PREFIXES = """PREFIX fl: <https://kgwb.example/films/>
PREFIX sc: <https://kgwb.example/scholars/>
PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
"""
"""What an update need not declare."""
NEGATION = re.compile(r"\b(no|not|never|without|kein\w*|nicht|nie|ohne)\b|n['’]t\b", re.IGNORECASE)
FROM_SMALLER_RANK = re.compile(
    r"\b(by|on|upon|from|director|composer|author|writer|actors?|starring|stars?|cast|member|features?"
    r"|source|(adapt\w*|version|remake|sequel|prequel|film) of)$"
)
"""Ends of relations from a work to what it is by, on or from: ("?film", "directed by", "?person")."""
FROM_GREATER_RANK = re.compile(
    r"\b(in|into|of|for|directed|directs|composed|composes|wrote|writes|acts|acted|plays|played)$"
)
"""Ends of other relations, in the other direction: ("?person", "directed", "?film")."""
FILM, WORK, PERSON = range(3)
"""Kinds of things, by their rank: that of a film is below that of the work that it is based on."""
CLASS_RELATION = re.compile(r"(rdf:?\s?)?type|(is\s?)?(an?)?|(is )?(an )?instance of|class|kind")
"""Relations that say what kind of thing the subject is."""
CLASS_NAMES = (
    re.compile(r"(feature |motion )?(films?|movies?|pictures?)|works?"),
    re.compile(r"novels?|books?|stor(y|ies)|works?|(book|film)s?"),
    re.compile(r"persons?|people|humans?|\w+(or|er|ist)s?"),
)
"""What the things of each kind are called; the last counts for greater ones too."""


class RightAnswer(BaseModel, extra="forbid", frozen=True):
    """The right answer to a question over a sample graph, and what triples must say to get it."""

    question: str
    labels: tuple[str, ...]
    names: dict[str, int] = {}
    """The kind of each name in the question, in lower case."""
    target: int = WORK
    """The kind of the unknown that is asked for."""
    relations: dict[str, str] = {}
    """For two kinds, as in "0 2", the label of the predicate that the question says."""
    year_relation: str = ""
    """The label of the predicate of a year in the question."""
    year_triple: tuple[str, str] = ("", "")
    """The relation and the object of what has this year."""
    sample: str = "films"
    update: str
    """A SPARQL update of the sample graph, without the declarations of PREFIXES."""
    changed_labels: tuple[str, ...]
    """The labels of the right answer on the graph after the update."""

    def open_changed(self) -> Graph:
        """Return the changed graph."""
        return change_sample(self.sample, self.update)

    def is_of(self, run: Run) -> bool:
        """Return whether a run has this answer."""
        return answer_labels(run) == set(self.labels)


DATA = disk.read_table("labs/right_answers.toml")
RIGHT_ANSWERS = {row["question"]: RightAnswer(**row) for row in DATA["answers"]}
"""By question."""
MEANINGS: dict[str, re.Pattern[str]] = {
    label: re.compile(rf"\b({words})") for label, words in DATA["meanings"].items()
}
"""A pattern for each label of a predicate that students' words mean, in the order in which they are tried."""


@cache
def change_sample(sample: str, update: str) -> Graph:
    """Return a copy of a sample graph after a SPARQL update; it is made once for all checks.

    The update must change something. Raises SyntaxError for an update that does not parse.
    """
    return cast(LocalGraph, open_sample(sample)).updated(PREFIXES + update)


def answer_labels(run: Run) -> set[str]:
    """Return the labels of a run's answer; empty without an answer."""
    return set(run.answer.labels) if run.answer else set()


# Triples in other words


def find_right_run(run: Run, right: RightAnswer) -> Run | None:
    """Return the run if its answer is right, else a fork with its triples in the graph's words if that is; else None.

    In the fork, relations are the labels of the predicates that they mean, from the smaller kind to the
    greater, and triples that only say the class of a thing are left out. A year is looked up by a
    filter, which triples cannot say.
    """
    if right.is_of(run):
        return run
    if run.answer is None or run.output("qir").beyond:
        return None
    ranks = rank_terms(run, right)
    facts = []
    years: dict[str, str] = {}
    for fact in list_facts(run):
        subject, relation, object_ = fact
        if _says_class(fact, ranks):
            continue
        meaning = find_meaning(relation)
        if right.year_relation and YEAR.fullmatch(object_):
            unknown = f"?year{len(years)}"
            years[unknown] = object_
            other_relation = meaning.removeprefix(right.year_triple[0])
            facts.append((subject, other_relation or right.year_relation, unknown))
            facts.append((subject, *right.year_triple))
        elif meaning and _rise_of(fact, ranks) < 0:
            facts.append((object_, meaning, subject))
        else:
            facts.append((subject, meaning or relation, object_))
    reworded = run.fork()
    try:
        set_triples(reworded, dict.fromkeys(facts), run.output("qir").target)
        if years:
            _filter_years(reworded, years)
        reworded.go()
    except OverrideError:
        return None
    return reworded if right.is_of(reworded) else None


def _filter_years(run: Run, years: Mapping[str, str]) -> None:
    """Execute a run up to the query generator, and let each unknown in its queries be this year."""
    generated = to_data(run.go(until="query_generator").output("query_generator"))
    for query in generated["queries"]:
        for unknown, year in years.items():
            body = query["sparql"].rpartition("}")[0]
            query["sparql"] = f'{body} FILTER(STR({unknown}) = "{year}") }}'
    run.override("query_generator", generated)


def _says_class(fact: Sequence[str], ranks: Mapping[str, int]) -> bool:
    """Return whether a triple says the class that its subject has by its kind: ("?film", "is a", "film")."""
    subject, relation, name = map(split_words, fact)
    names = CLASS_NAMES[min(ranks.get(subject, WORK), PERSON)]
    return bool(CLASS_RELATION.fullmatch(relation) and names.fullmatch(name))


def _rise_of(fact: Sequence[str], ranks: Mapping[str, int]) -> int:
    """Return by how much the kind of a triple's object is above that of its subject."""
    subject, _, object_ = fact
    return ranks.get(object_.casefold(), WORK) - ranks.get(subject.casefold(), WORK)


def find_meaning(relation: str) -> str:
    """Return the label of the predicate that the words of a relation mean; "" if they are not known."""
    words = split_words(relation)
    for label, pattern in MEANINGS.items():
        if pattern.search(words):
            return label
    return ""


def rank_terms(run: Run, right: RightAnswer) -> dict[str, int]:
    """Return the kind of the terms in a run's triples, in lower case; those that are missing are works.

    What shares a triple with a person who is named in the question is a film.
    """
    ranks: dict[str, int] = {}
    for subject, _, object_ in list_facts(run):
        ends = (subject.casefold(), object_.casefold())
        if max(right.names.get(end, FILM) for end in ends) >= PERSON:
            ranks |= dict.fromkeys(ends, FILM)
    target = run.output("qir").target.casefold()
    return ranks | {target: right.target} | right.names


def list_facts(run: Run) -> list[tuple[str, str, str]]:
    """Return the triples that the QIR agent of a run returned."""
    return [fact.as_tuple for fact in run.output("qir").facts]


def split_words(name: str) -> str:
    """Return a name such as "basedOn" or "based_on" as words in lower case: "based on"."""
    return CAMEL_CASE_BOUNDARY.sub(" ", name).replace("_", " ").casefold()


# Triples that are right by chance


def find_triple_problem(run: Run, right_run: Run, right: RightAnswer) -> Problem:
    """Return "" if a run has the right answer because its triples say the question, else feedback.

    ``right_run`` is what ``find_right_run`` returns for the run. Feedback is on a triple that is the
    wrong way round, a right answer for another reason, and a triple with another relation than that
    of the question.
    """
    ranks = rank_terms(run, right)
    facts = list_facts(run)
    return (
        find_wrong_triple(facts, ranks)
        or find_other_reason(right_run, right)
        or _find_other_relation(facts, ranks, right)
    )


def find_wrong_triple(triples: Iterable[Sequence[str]], ranks: Mapping[str, int]) -> Problem:
    """Return "" if no triple is the wrong way round or has a NEGATION, else feedback on the first one that is.

    ``ranks`` has the kind of each term, in lower case. Relations that end in no word of
    FROM_SMALLER_RANK or FROM_GREATER_RANK are right in both directions.
    """
    for triple in triples:
        words = split_words(triple[1])
        if NEGATION.search(words):
            return say("result.negated", triple=triple)
        if CLASS_RELATION.fullmatch(words):
            continue
        rise = _rise_of(triple, ranks)
        if FROM_SMALLER_RANK.search(words):
            is_reversed = rise < 0
        else:
            is_reversed = rise > 0 and bool(FROM_GREATER_RANK.search(words))
        if is_reversed:
            return say("result.reversed", triple=triple)
    return ""


def _find_other_relation(
    facts: Sequence[tuple[str, str, str]], ranks: Mapping[str, int], right: RightAnswer
) -> Problem:
    """Return "" if the triples say no other relation than the question, else feedback on the first that does.

    A triple does if its words do, or if an end of it is an unknown work that no other triple has.
    """
    ends = Counter(chain.from_iterable(fact[::2] for fact in facts))
    for fact in facts:
        kinds = []
        for end in fact[::2]:
            kinds.append(str(ranks.get(end.casefold(), WORK)))
            if end.startswith("?") and ends[end] == 1 and end.casefold() not in ranks:
                return say("result.other-relation", triple=fact)
        wanted = right.relations.get(" ".join(sorted(kinds)), "")
        if wanted and find_meaning(fact[1]) not in ("", wanted):
            return say("result.other-relation", triple=fact)
    return ""


def find_other_reason(run: Run, right: RightAnswer) -> Problem:
    """Return "" if a run with the right answer has the right one on the changed graph too, else feedback.

    A name that is that of nothing in the graph, for which a similar one was taken, is another
    reason, too. A fork of a run of Chatty-KG is executed on the changed graph, with its overrides
    and its triples: the question is not read again. The feedback has the triples and both answers.
    Raises what the execution raises.
    """
    for step in run.steps:
        if step.agent == "vertex_selection":
            problem = _find_other_name(step.output)
            if problem:
                return problem
    changed = run.fork(kg=right.open_changed())
    changed.override("qir", run.output("qir"))
    changed.go()
    if answer_labels(changed) == set(right.changed_labels):
        return ""
    return say(
        "result.other-reason",
        triples=list_triples(run),
        right=", ".join(right.changed_labels),
        answer=changed.answer or say("result.nothing"),
    )


def list_triples(run: Run) -> str:
    """Return the triples that the QIR agent of a run returned, as text; "–" if there are none."""
    return ", ".join(map(str, run.output("qir").facts)) or "–"


def _find_other_name(selection: Link) -> Problem:
    """Return "" if all words of a name are in the label or the types of its vertex, else feedback."""
    name, vertex = selection.entity, selection.vertex
    if vertex is None:
        return ""
    known = " ".join((vertex.label, *vertex.types))
    if set(WORD.findall(name.casefold())) <= set(WORD.findall(known.casefold())):
        return ""
    return say("result.other-name", name=name, label=vertex.label)
