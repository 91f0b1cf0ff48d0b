"""Lab 1: from a question to SPARQL. Students act as the agents of Chatty-KG, and repair five runs."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

from rdflib import URIRef

from kgwb.kg.embeddings import EmbeddingIndex, Embeddings
from kgwb.kg.queries import describe_vertices
from kgwb.labs.answers import AnswerTriples, NamedChoice, NumberedChoice, expand_iri
from kgwb.labs.material import DIALOGUE
from kgwb.labs.recorded import (
    find_first_edited_steps,
    find_first_wrong_agents,
    open_lost_run,
    set_triples,
)
from kgwb.labs.tasks import Lab, Stage, compare_choices, open_sample, open_samples
from kgwb.labs.texts import Problem, say
from kgwb.records import to_data
from kgwb.run import Run
from kgwb.run.answers import Answer
from kgwb.terms import Term
from kgwb.workbench import Workbench, recording

LAB = Lab(1, "lab1.title", prepare=open_samples)
TWO_FILMS_QUESTION = "Which films directed by Christopher Nolan star Michael Caine?"
STORY_QUESTION = "From which story was the film Stalker taken?"
STORY_TRIPLE = ("Stalker", "story taken from", "?story")
"""What the QIR agent writes for it."""
STORY = "Roadside Picnic"
"""The label of the right answer."""
NAME = "harry potter"
"""The only name in the question of the second task."""
RIGHT_SUBJECTS = ("Harry Potter's first movie", "the first Harry Potter film")
OTHER_SUBJECTS = (
    "Harry Potter",
    "the Harry Potter movie",
    "Harry Potter's second movie",
    "the third Harry Potter film",
    "the next Harry Potter movie",
    "Harry Potter's last movie",
    "Harry Potter's first book",
    "the first book of Harry Potter",
    "Harry Potter's first actor",
)
"""What a question near the right one is about instead."""
RELEASE_QUESTIONS = (
    "When was {} released?",
    "When did {} come out?",
    "What is the release date of {}?",
    "In which year was {} released?",
)
OTHER_QUESTIONS = (
    "Who released {}?",
    "Why was {} released?",
    "Where was {} released?",
    "How was {} released?",
    "Was {} released?",
    "Who directed {}?",
    "Who starred in {}?",
    "What is {}?",
    "When was {} filmed?",
    "How long is {}?",
    "{}",
)
"""What is asked about the right thing instead."""
FILMS_NAMESPACE = "https://kgwb.example/films/"


class LostAnswer(NamedTuple):
    """The right answer of a recorded run that lost it."""

    labels: tuple[str, ...]
    stage: Stage
    """The stage of the first wrong step."""


LOST_ANSWERS = {
    1: LostAnswer(("Louisa May Alcott",), "understand"),
    2: LostAnswer(("Bernard Herrmann",), "understand"),
    3: LostAnswer(("Francis Ford Coppola",), "understand"),
    4: LostAnswer(
        ("Howl's Moving Castle", "My Neighbor Totoro", "Spirited Away", "The Boy and the Heron"),
        "understand",
    ),
    5: LostAnswer(("Geoffrey Hinton", "Yann LeCun", "Yoshua Bengio"), "query"),
}
"""The recorded runs of the last tasks, by their number in the folder recordings/lost/chatty_kg."""


@LAB.task(
    stage="understand",
)
def check_dependent_questions(numbers: NumberedChoice) -> Problem:
    """Return "" for the numbers of the questions that cannot be understood alone, else feedback.

    The questions are those of DIALOGUE, numbered from 1; the right ones are 2, 4 and 5, in any
    order. Feedback names a number that is none or wrong, or says that one is missing.
    """
    return compare_choices(
        numbers,
        (2, 4, 5),
        range(1, len(DIALOGUE) + 1),
        unknown="1.1.unknown",
        wrong="1.1.wrong",
        missing="1.1.missing",
    )


@LAB.task(
    stage="understand",
)
def check_rephrased_question(question: str) -> Problem:
    """Return "" if a question asks when the first Harry Potter movie was released, else feedback.

    It is judged by what Chatty-KG makes of it: after the first question of DIALOGUE its classifier
    must find the question self-contained, and it must take nothing but Harry Potter for a name. By
    the embeddings with which it links words, the question must be nearer to one for the date of the
    first movie than to any question beside that. The first problem found is returned.
    """
    workbench = Workbench(open_sample("films"), "rules")
    workbench.ask(DIALOGUE[0])
    run = workbench.begin(question).go(until="classifier")
    if run.output("classifier").label == "dependent":
        return "1.2.refers-back"
    if NAME not in " ".join(question.casefold().split()):
        return "1.2.no-name"
    for name in run.go(until="qir").output("qir").entities:
        if NAME not in name.casefold():
            return say("1.2.other-name", name=name)
    return _find_other_meaning(question)


def _find_other_meaning(question: str) -> Problem:
    """Return "" if a question means what is asked for, else the key of what it means instead.

    It means the same as the question of ``_list_meanings`` that is nearest to it by its embedding.
    """
    questions = _index_questions(Embeddings().name)
    [(nearest, _)] = questions.nearest(question, 1)
    return list(_list_meanings().values())[nearest]


@cache
def _index_questions(embeddings: str) -> EmbeddingIndex:
    """Return an index of the questions of ``_list_meanings``, made once for these embeddings."""
    return EmbeddingIndex(list(_list_meanings()), Embeddings(embeddings))


@cache
def _list_meanings() -> dict[str, str]:
    """Return, for each known question, "" if it asks for the release date of the first movie, else a problem's key.

    They are made of the constants above: right questions about right subjects, right questions
    about other subjects ("1.2.no-first-movie"), and other questions about right subjects
    ("1.2.no-date").
    """
    meanings = dict.fromkeys(_combine(RELEASE_QUESTIONS, RIGHT_SUBJECTS), "")
    meanings |= dict.fromkeys(_combine(RELEASE_QUESTIONS, OTHER_SUBJECTS), "1.2.no-first-movie")
    meanings |= dict.fromkeys(_combine(OTHER_QUESTIONS, RIGHT_SUBJECTS), "1.2.no-date")
    return meanings


def _combine(questions: Sequence[str], subjects: Sequence[str]) -> list[str]:
    """Return each question template filled with each subject, by question first."""
    return [question.format(subject) for question in questions for subject in subjects]


@LAB.task(
    stage="understand",
    is_free=True,
)
def check_triples(facts: AnswerTriples) -> Problem:
    """Return "" if Chatty-KG gives the right answer with these triples, else feedback.

    They take the place of the QIR agent's for TWO_FILMS_QUESTION; all other agents use ``rules``.
    They must name both persons, in any case, and have exactly one unknown ("?x"). Only the films of
    the answer count, not how the triples are written.
    """
    names: set[str] = set()
    unknowns: set[str] = set()
    for fact in facts:
        for term in (fact[0], fact[2]):
            if term.startswith("?"):
                unknowns.add(term)
            else:
                names.add(" ".join(term.casefold().split()))

    missing_names = sorted({"christopher nolan", "michael caine"} - names)
    if missing_names:
        return say("1.3.no-name", name=missing_names[0].title())
    if not unknowns:
        return "1.3.no-unknown"
    if len(unknowns) > 1:
        return say("1.3.unknowns", number=len(unknowns))
    run = _run_with_triples(TWO_FILMS_QUESTION, facts, unknowns.pop())
    films = ("Inception", "Interstellar", "The Dark Knight", "The Prestige")
    return _compare_answer(run.answer, films)


@LAB.task(
    stage="link",
)
def check_vertex(iri: str) -> Problem:
    """Return "" for the IRI of the novel Solaris in the sample graph films, else feedback.

    It may be in angle brackets, or have the prefix fl: or none; case does not count. It must be one
    of a vertex with the label "Solaris". The feedback on another such vertex names its types.
    """
    films = open_sample("films")
    candidates = films.exact(["Solaris"]).get("Solaris", ())
    iri = expand_iri(iri, FILMS_NAMESPACE)
    wanted = iri.casefold()
    chosen = [vertex for vertex in candidates if str(vertex).casefold() == wanted]
    if not chosen:
        return say("1.4.no-candidate", number=len(candidates), end=iri[-20:])
    described = describe_vertices(films, chosen)[chosen[0]]
    for name in described.types:
        if "novel" in name.casefold():
            return ""
    types = ", ".join(described.types)
    return say("1.4.other-type", types=types)


@LAB.task(
    stage="link",
)
def check_predicates(names: NamedChoice) -> Problem:
    """Return "" if the candidate queries with these predicates give the right answer, else feedback.

    The queries are those for STORY_QUESTION that have at least one of the predicates, which are
    given by display name or IRI in any case. Each must be in one of these queries. The chosen
    queries take the place of the predicate selection's, and the run is continued.
    """
    run = _run_with_triples(
        STORY_QUESTION, [STORY_TRIPLE], STORY_TRIPLE[2], until="query_generator"
    )
    chosen = {_to_display_name(name) for name in names}
    queries = []
    used_names: set[str] = set()
    for query in run.output("query_generator").queries:
        query_names = {_to_display_name(name) for name in query.predicates}
        if not chosen.isdisjoint(query_names):
            queries.append(to_data(query))
            used_names |= query_names
    unknown = sorted(chosen - used_names)
    if unknown or not queries:
        return say("1.5.unknown", name=unknown[0][:80]) if unknown else "1.5.no-name"
    run.override("predicate_selection", {"predicates": names, "queries": queries})
    return _compare_answer(run.go().answer, [STORY])


def _to_display_name(name: str) -> str:
    """Return the last part of a predicate's IRI, or a display name, as words in lower case: "based on"."""
    end = expand_iri(name, FILMS_NAMESPACE).rpartition("/")[2]
    return _split_words(end)


def _split_words(name: str) -> str:
    """Return a name such as "basedOn" or "based_on" as words in lower case: "based on"."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|_", " ", name).casefold()


@LAB.task(
    stage="query",
    is_free=True,
)
def check_longest_film(sparql: str) -> Problem:
    """Return "" if a SELECT on the graph films finds Stanley Kubrick's longest film, else feedback.

    It must have one row that names the film by a label in any language or its IRI, in any column.
    It is then run on the graph without the film's running time, where it must find the next film:
    so a query that names the film itself is wrong. Raises a GraphError if the query fails.
    """
    films = open_sample("films")
    by_length = films.select(LONGEST_FILMS).rows
    longest, minutes = map(require_term, by_length[0])
    second = by_length[1][0]
    problem = _find_film_problem(films.select(sparql).rows, longest, sparql)
    if problem:
        return problem
    changed = films.without((longest, URIRef(FILMS_NAMESPACE + "runtime"), minutes))
    if _find_film_problem(changed.select(sparql).rows, second, sparql):
        return "1.6.not-by-time"
    return ""


def require_term(term: Term | None) -> Term:
    """Return a term of a row of LONGEST_FILMS, which all have a value."""
    assert term is not None
    return term


LONGEST_FILMS = f"""PREFIX fl: <{FILMS_NAMESPACE}>
SELECT ?film ?minutes WHERE {{
  ?film fl:director fl:Stanley_Kubrick ; fl:runtime ?minutes
}} ORDER BY DESC(?minutes)"""
"""All films of the task, the longest first."""


def _find_film_problem(rows: Sequence[Sequence[Any]], film: Any, sparql: str) -> Problem:
    """Return "" if the rows of a query are the film alone, else the feedback for what is wrong.

    The one row must have the film's IRI or one of its labels in a cell. ``sparql`` is the query:
    one without rows that writes the director as a plain text gets a feedback of its own.
    """
    if not rows:
        names_director = re.search(r'"[^"]*kubrick[^"]*"(?![^\s]*@)', sparql, re.IGNORECASE)
        return "1.6.director-is-text" if names_director else "1.6.no-rows"
    if len(rows) > 1:
        return say("1.6.rows", number=len(rows))
    cells = [str(cell) for cell in rows[0] if cell is not None]
    iri = str(film)
    local_name = iri.rpartition("/")[2]
    names = {iri, local_name.replace("_", " ")}
    labels = open_sample("films").select(LABELS.format(film))
    for (label,) in labels.rows:
        names.add(str(label))
    if names.intersection(cells):
        return ""
    if all(cell.replace(".", "").isdecimal() for cell in cells):
        return "1.6.no-film"
    return "1.6.other-film"


LABELS = "SELECT ?label WHERE {{ <{}> <http://www.w3.org/2000/01/rdf-schema#label> ?label }}"


def _add_repair_task(number: int) -> None:
    """Add a task to LAB: to repair the run of LOST_ANSWERS with this number. Its check gets the student's run."""
    lost = LOST_ANSWERS[number]

    @LAB.task(
        stage=lost.stage,
        is_free=True,
        open_run=partial(open_lost_run, number),
    )
    def check_repaired_run(run: Run) -> Problem:
        """Return "" if the student's run is the lost run, rightly repaired, else feedback."""
        return _check_repaired_run(run, number)


for _number in LOST_ANSWERS:
    _add_repair_task(_number)


def _check_repaired_run(run: Run, number: int) -> Problem:
    """Return "" if a run has the right answer because its first wrong step was repaired.

    ``number`` is that of the lost run. Otherwise return feedback: on another question, a run
    without edits or with edits that were not executed, a wrong answer, or a first edit that is not
    at the first wrong step.
    """
    question = recording(f"lost/chatty_kg/{number}").question
    if run.question != question:
        return say("lost.other-question", question=question)
    if not run.overrides:
        return "lost.not-changed"
    if run.has_pending_edits:
        return "lost.not-executed"
    return _judge_repair(run, number)


def _judge_repair(run: Run, number: int) -> Problem:
    """Return "" if the first edit of a run is at a first wrong step and the answer is right, else feedback.

    Feedback says that no edit changes a value, that the step is right but not the new value, that
    the step is too late though the answer is right, or what is wrong with the answer.
    """
    problem = _compare_answer(run.answer, LOST_ANSWERS[number].labels)
    edited = find_first_edited_steps(run, number)
    if not edited:
        return "lost.same-value"
    is_first = not set(edited).isdisjoint(find_first_wrong_agents(number))
    if is_first and problem:
        return say("lost.right-step", problem=problem)
    if not is_first and not problem:
        return say("lost.later-step", agent=edited[0])
    return problem


def _run_with_triples(
    question: str, triples: AnswerTriples, target: str, *, until: str | None = None
) -> Run:
    """Execute Chatty-KG with the model ``rules`` on films, with these triples as the QIR agent's output.

    ``target`` is the unknown that is asked for. The run stops after the step ``until``; None runs
    it to its end.
    """
    run = Workbench(open_sample("films"), "rules").begin(question)
    set_triples(run, triples, target)
    return run.go(until=until)


def _compare_answer(answer: Answer | None, right_labels: Collection[str]) -> Problem:
    """Return "" if the labels of an answer are exactly the right ones, in any order, else feedback.

    The feedback says how many are too many and how many are missing, but not which. An answer that
    is missing or empty has a feedback of its own.
    """
    if answer is None:
        return "result.none-yet"
    labels = set(answer.labels)
    if not labels:
        return say("result.empty", reason=answer.reason or say("result.nothing-found"))
    extra = len(labels.difference(right_labels))
    missing = len(set(right_labels) - labels)
    if extra and missing:
        return say("result.differs", answer=answer, extra=extra, missing=missing)
    if extra:
        return say("result.too-many", answer=answer, extra=extra)
    if missing:
        return say("result.too-few", answer=answer, missing=missing)
    return ""
