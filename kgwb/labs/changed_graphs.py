"""Whether triples say what a question says: in other words too, and also on a changed copy of the sample graph.

A query or a triple can give the right answer by chance: because it names the answer, because the
alphabet has the order of the running times, or because everything by one director was also written
by this person. On a graph in which these go apart, it gives another answer than the right one. And
a triple can be right, but in words that the linking does not know. ``right_answers.toml`` has what is
known of each question.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import cast

from pydantic import BaseModel

from kgwb.errors import KgwbError, OverrideError
from kgwb.kg import Graph
from kgwb.kg.local import LocalGraph
from kgwb.labs.answers import NEGATION
from kgwb.labs.recorded import DATA, answer_labels, set_triples
from kgwb.labs.tasks import TriedQuestion, open_sample
from kgwb.labs.texts import Problem, say
from kgwb.records import to_data
from kgwb.run import Run
from kgwb.run.answers import Link
from kgwb.terms import CAMEL_CASE_BOUNDARY

WORD = re.compile(r"\w+")
YEAR = re.compile(r"\d{4}")
FILMS_NAMESPACE = "https://kgwb.example/films/"
PREFIXES = """PREFIX fl: <https://kgwb.example/films/>
PREFIX sc: <https://kgwb.example/scholars/>
PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
"""
"""What an update need not declare."""
FILM, WORK, PERSON = range(3)
"""Kinds of things, by their rank: that of a film is below that of the work that it is based on."""


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

    def is_of(self, run: Run) -> bool:
        """Return whether a run has this answer."""
        return answer_labels(run) == set(self.labels)


RIGHT_ANSWERS = {row["question"]: RightAnswer(**row) for row in DATA["answers"]}
"""By question."""
WORDS: dict[str, str] = DATA["words"]
"""Patterns of the words for classes and directions."""


@cache
def change_sample(sample: str, update: str) -> Graph:
    """Return a copy of a sample graph after a SPARQL update; it is made once for all checks.

    The update must change something. Raises SyntaxError for an update that does not parse.
    """
    return cast(LocalGraph, open_sample(sample)).updated(PREFIXES + update)


def judge_live(run: Run, right_labels: set[str]) -> TriedQuestion:
    """Execute a run, and return its answer, the attempts of the QIR agent, and whether the labels are right.

    A run that fails with a KgwbError has the error's message as its answer, 0 attempts, and is
    wrong.
    """
    try:
        run.go()
    except KgwbError as exc:
        return TriedQuestion(run.question, 0, exc.message, is_right=False)
    attempts = len(run["qir"].attempts)
    is_right = answer_labels(run) == right_labels
    return TriedQuestion(run.question, attempts, str(run.answer), is_right)


# One judge of triples, for all tasks in which students write some


def judge_triples(run: Run, *, may_reword: bool = True) -> Problem | None:
    """Return "" if a run has the right answer because its triples say its question; None if it has another answer.

    With ``may_reword``, the answer that the triples have in the graph's words counts too. Feedback is on
    a triple that is the wrong way round, on a right answer for another reason, and on a triple with
    another relation than that of the question.
    """
    right = RIGHT_ANSWERS[run.question]
    triples = Triples(run)
    right_run: Run | None = run
    if may_reword and not right.is_of(run):
        right_run = triples.reword()
    if right_run is None or not right.is_of(right_run):
        return None
    return (
        triples.find_wrong_one()
        or _find_other_name(right_run)
        or _find_other_reason(right_run, right)
        or triples.find_other_relation()
    )


def list_triples(run: Run) -> str:
    """Return the triples that the QIR agent of a run returned, as text; "–" if there are none."""
    return ", ".join(map(str, run.output("qir").facts)) or "–"


def find_unknowns(*triples: tuple[str, str, str]) -> list[str]:
    """Return the ends of triples that are unknowns, without spaces around them, each as often as it is an end."""
    unknowns = []
    for subject, _, object_ in triples:
        ends = (subject.strip(), object_.strip())
        unknowns += [end for end in ends if end.startswith("?")]
    return unknowns


def split_words(name: str) -> str:
    """Return a name such as "basedOn" or "based_on" as words in lower case: "based on"."""
    return CAMEL_CASE_BOUNDARY.sub(" ", name).replace("_", " ").casefold()


def to_display_name(name: str) -> str:
    """Return a display name, or a predicate's IRI without the graph's namespace, as words: "based on"."""
    return split_words(expand_iri(name).removeprefix(FILMS_NAMESPACE))


def expand_iri(text: str) -> str:
    """Return the IRI that a text stands for; angle brackets, quotes, points, commas and spaces around it are removed.

    A text with "://" is a whole IRI. Otherwise "fl:" is dropped if it is there, spaces become "_", and
    the namespace is put before it. So another prefix makes another IRI.
    """
    text = text.strip().strip("<> \"'.,`")
    if "://" in text:
        return text
    end = text.removeprefix("fl:")
    return FILMS_NAMESPACE + end.replace(" ", "_")


class Triples:
    """The triples that the QIR agent of a run returned, with the kinds of their terms."""

    def __init__(self, run: Run) -> None:
        """Rank the terms. What shares a triple with a person who is named in the question is a film."""
        self.run = run
        self.right = RIGHT_ANSWERS[run.question]
        output = run.output("qir")
        self.facts: list[tuple[str, str, str]] = [fact.as_tuple for fact in output.facts]
        self.ranks: dict[str, int] = {}
        for subject, _, object_ in self.facts:
            ends = (subject.casefold(), object_.casefold())
            if max(self.right.names.get(end, FILM) for end in ends) >= PERSON:
                self.ranks |= dict.fromkeys(ends, FILM)
        target = output.target.casefold()
        self.ranks[target] = self.right.target
        self.ranks |= self.right.names

    def rank_of(self, term: str) -> int:
        """Return the kind of a term. Those of which nothing is known are works."""
        return self.ranks.get(term.casefold(), WORK)

    # In other words

    def reword(self) -> Run | None:
        """Return a fork of the run with its triples in the graph's words; None if they cannot be executed.

        Relations are the labels of the predicates that they mean, from the smaller kind to the
        greater, and triples that only say the class of a thing are left out. A year is looked up by a
        filter, which triples cannot say.
        """
        output = self.run.output("qir")
        if self.run.answer is None or output.beyond:
            return None
        facts = []
        years: dict[str, str] = {}
        for subject, relation, object_ in self.facts:
            if self.says_class(subject, relation, object_):
                continue
            meaning = self.find_meaning(subject, relation, object_)
            if self.right.year_relation and YEAR.fullmatch(object_):
                unknown = f"?year{len(years)}"
                years[unknown] = object_
                other_relation = meaning.removeprefix(self.right.year_triple[0])
                year_relation = other_relation or self.right.year_relation
                facts.append((subject, year_relation, unknown))
                facts.append((subject, *self.right.year_triple))
            elif meaning and self.rank_of(object_) < self.rank_of(subject):
                facts.append((object_, meaning, subject))
            else:
                facts.append((subject, meaning or relation, object_))

        reworded = self.run.fork()
        try:
            set_triples(reworded, dict.fromkeys(facts), output.target)
            if years:
                _filter_years(reworded, years)
            return reworded.go()
        except OverrideError:
            return None

    def says_class(self, subject: str, relation: str, name: str) -> bool:
        """Return whether a triple says the class that its subject has by its kind: ("?film", "is a", "film")."""
        if not re.fullmatch(WORDS["class"], split_words(relation)):
            return False
        names = DATA["class_names"][min(self.rank_of(subject), PERSON)]
        return bool(re.fullmatch(names, to_display_name(name)))

    # Right by chance

    def find_wrong_one(self) -> Problem:
        """Return "" if no triple is the wrong way round or has a NEGATION, else feedback on the first one that is.

        Relations that end in none of the WORDS of a direction are right in both. So are all in a run
        that is to be repaired: of its question no relations are known.
        """
        for triple in self.facts:
            words = split_words(triple[1])
            if NEGATION.search(words):
                return say("result.negated", triple=triple)
            if not self.right.relations or re.fullmatch(WORDS["class"], words):
                continue
            subject, _, object_ = triple
            rise = self.rank_of(object_) - self.rank_of(subject)
            if re.search(WORDS["to_greater"], words):
                rise = -rise
            elif not re.search(WORDS["to_smaller"], words):
                continue
            if rise > 0:
                return say("result.reversed", triple=triple)
        return ""

    def find_other_relation(self) -> Problem:
        """Return "" if the triples say no other relation than the question, else feedback on the first that does.

        A triple does if its words do, or if an end of it is an unknown work that no other triple has.
        """
        if not self.right.relations:
            return ""
        unknowns = find_unknowns(*self.facts)
        for fact in self.facts:
            for unknown in find_unknowns(fact):
                if unknowns.count(unknown) == 1 and unknown.casefold() not in self.ranks:
                    return say("result.other-relation", triple=fact)
            subject, _, object_ = fact
            asked = self.find_asked(subject, object_)
            if asked and self.find_meaning(*fact) not in ("", asked):
                return say("result.other-relation", triple=fact)
        return ""

    def find_asked(self, subject: str, object_: str) -> str:
        """Return the label of the predicate that the question says between such things; "" if it is not known."""
        smaller, greater = sorted([self.rank_of(subject), self.rank_of(object_)])
        return self.right.relations.get(f"{smaller} {greater}", "")

    def find_meaning(self, subject: str, relation: str, object_: str) -> str:
        """Return the label of the predicate that the words of a relation mean; "" if they are not known.

        A preposition means the relation that the question says there, if it fits that.
        """
        words = split_words(relation)
        asked = self.find_asked(subject, object_)
        preposition = DATA["prepositions"].get(asked)
        if preposition and re.fullmatch(preposition, words):
            return asked
        for label, pattern in DATA["meanings"].items():
            if re.search(rf"\b({pattern})", words):
                return str(label)
        return ""


def _filter_years(run: Run, years: Mapping[str, str]) -> None:
    """Execute a run up to the query generator, and let each unknown in its queries be this year."""
    run.go(until="query_generator")
    generated = to_data(run.output("query_generator"))
    for query in generated["queries"]:
        for unknown, year in years.items():
            body, _, _ = query["sparql"].rpartition("}")
            query["sparql"] = f'{body} FILTER(STR({unknown}) = "{year}") }}'
    run.override("query_generator", generated)


def _find_other_name(run: Run) -> Problem:
    """Return "" if all words of each name are in the label or the types of its vertex, else feedback."""
    for step in run.steps:
        link = step.output
        if not isinstance(link, Link) or link.vertex is None:
            continue
        known = " ".join((link.vertex.label, *link.vertex.types))
        known_words = WORD.findall(known.casefold())
        words = WORD.findall(link.entity.casefold())
        if not set(words).issubset(known_words):
            return say("result.other-name", name=link.entity, label=link.vertex.label)
    return ""


def _find_other_reason(run: Run, right: RightAnswer) -> Problem:
    """Return "" if a run with the right answer has the right one on the changed graph too, else feedback.

    A fork of a run of Chatty-KG is executed on the changed graph, with its overrides and its triples:
    the question is not read again. The feedback has the triples and both answers. Raises what the
    execution raises.
    """
    changed = run.fork(kg=change_sample(right.sample, right.update))
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
