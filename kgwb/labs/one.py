"""Lab 1: from a question to SPARQL. Students act as the agents of Chatty-KG, and repair five runs."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from functools import partial
from itertools import chain
from typing import Any

from kgwb.labs.answers import AnswerTriples, NamedChoice, NumberedChoice
from kgwb.labs.changed_graphs import (
    FILMS_NAMESPACE,
    RIGHT_ANSWERS,
    change_sample,
    expand_iri,
    find_unknowns,
    judge_triples,
    list_triples,
    to_display_name,
)
from kgwb.labs.material import DIALOGUE
from kgwb.labs.recorded import (
    DATA,
    LOST_RUNS,
    add_choice,
    find_first_edited_steps,
    open_lost_run,
    set_triples,
)
from kgwb.labs.tasks import (
    MARKS,
    Lab,
    drop_words,
    find_options,
    is_nearest,
    open_sample,
)
from kgwb.labs.texts import Problem, say
from kgwb.run import Run
from kgwb.workbench import Workbench

LAB = Lab(1, "lab1.title")
TWO_FILMS_QUESTION = "Which films directed by Christopher Nolan star Michael Caine?"
STORY = "Roadside Picnic"
"""The label of the story that the film Stalker was taken from."""
IRI = re.compile(r"""(?:https?://|\bfl:)[^\s<>"'`(),;]+""")
BESIDE_IRI = """
    iri vertex novel book i choose mine for lem since because a asked
    knoten roman buch ich wähle nehme für weil ein nach dem gefragt wird
    """
"""Words that may stand beside the IRI of the novel."""
NAME = "harry potter"
"""The only name in the question of the second task."""


add_choice(LAB, NumberedChoice, stage="understand")


@LAB.task(stage="understand")
def check_rephrased_question(question: str) -> Problem:
    """Return "" if a question asks when the first Harry Potter movie was released, else feedback.

    It must have the forms that ``right_answers.toml`` says, and no other. For the rest it is judged by what
    Chatty-KG makes of it: after the first question of DIALOGUE its classifier must find the question
    self-contained, and it must take nothing but Harry Potter for a name. By the embeddings with which
    Chatty-KG links words, it must be nearer to a question about the first movie than to one about
    anything else. The first problem found is returned.
    """
    question = re.sub(r"(?i)\b1st\b", "first", question)
    problem = _judge_forms(question, "forms")
    if problem:
        return problem
    workbench = Workbench(open_sample("films"), "rules")
    workbench.ask(DIALOGUE[0])
    run = workbench.begin(question).go(until="classifier")
    if run.output("classifier").label == "dependent":
        return "1.2.refers-back"
    if NAME not in " ".join(question.casefold().split()):
        return "1.2.no-name"
    problem = _judge_forms(question, "forms_of_more")
    if problem:
        return problem
    for name in run.go(until="qir").output("qir").entities:
        if NAME not in name.casefold():
            return say("1.2.other-name", name=name)
    problem = _judge_forms(question, "forms_of_others")
    if not is_nearest(question, _ask_of("subjects"), _ask_of("other_subjects")):
        problem = "1.2.no-first-movie"
    return problem


def _judge_forms(question: str, key: str) -> Problem:
    """Return "" if a question has the forms below a key of ``right_answers.toml`` as it should, else feedback."""
    for form in DATA["first_movie"][key]:
        found = re.search(form["pattern"], question, re.IGNORECASE | re.VERBOSE)
        if bool(found) != form["is_right"]:
            return say(form["feedback"], words=found and found[0].strip(" ?"))
    return ""


def _ask_of(subjects: str) -> list[str]:
    """Return the questions when each of these subjects of ``right_answers.toml`` was released."""
    data = DATA["first_movie"]
    asked = []
    for subject in data[subjects]:
        for question in data["questions"]:
            asked.append(question.format(subject))
    return asked


@LAB.task(stage="understand", is_free=True)
def check_triples(facts: AnswerTriples) -> Problem:
    """Return "" if Chatty-KG gives the right answer with these triples, else feedback.

    They take the place of the QIR agent's; all other agents use ``rules``. They must have the form that
    ``_find_form_problem`` checks, and are judged by ``judge_triples``.
    The feedback on triples without an answer names the first one that alone has none.
    """
    facts = [(subject.strip(), relation.strip(), end.strip()) for subject, relation, end in facts]
    problem = _find_form_problem(facts)
    if problem:
        return problem
    unknown = find_unknowns(*facts)[0]
    run = _run_with_triples(facts, unknown)
    judged = judge_triples(run)
    if judged is not None:
        return judged
    if not run.answer:
        for fact in facts:
            alone = _run_with_triples([fact], unknown)
            if not alone.answer:
                return say("1.3.not-found", triple=fact)
    return _compare_answer(run, RIGHT_ANSWERS[TWO_FILMS_QUESTION].labels)


def _find_form_problem(facts: AnswerTriples) -> Problem:
    """Return "" if no part of a triple is empty, both persons are named, and one unknown is in each, else feedback."""
    for fact in facts:
        if not all(fact):
            return say("1.3.no-part", triple=fact)
    ends = chain.from_iterable((subject, end) for subject, _, end in facts)
    names = {" ".join(end.casefold().split()) for end in ends}
    for name in RIGHT_ANSWERS[TWO_FILMS_QUESTION].names:
        if name not in names:
            return say("1.3.no-name", name=name.title())
    unknowns = set(find_unknowns(*facts))
    if not unknowns:
        return "1.3.no-unknown"
    if len(unknowns) > 1:
        return say("1.3.unknowns", number=len(unknowns))
    for fact in facts:
        if unknowns.isdisjoint(fact):
            return say("1.3.not-found", triple=fact)
    return ""


@LAB.task(stage="link")
def check_vertex(iri: str) -> Problem:
    """Return "" for the IRI of the novel Solaris in the sample graph films, else feedback.

    It may be in angle brackets, have the prefix fl: or none. With a prefix, it may be the only one in a
    sentence of words of BESIDE_IRI. It must be one of a vertex with the label "Solaris". The feedback on another
    such vertex names its types.
    """
    candidates: dict[str, str] = DATA["solaris"]
    named = set(map(expand_iri, IRI.findall(iri)))
    beside = drop_words(IRI.sub("", iri), BESIDE_IRI)
    if len(named) == 1 and not beside.strip(f"{MARKS}<>"):
        [iri] = named
    vertex = expand_iri(iri)
    types = candidates.get(vertex.removeprefix(FILMS_NAMESPACE))
    if types is None:
        return say("1.4.no-candidate", number=len(candidates), iri=vertex[:200])
    return types and say("1.4.other-type", types=types)


@LAB.task(stage="link")
def check_predicates(names: NamedChoice) -> Problem:
    """Return "" if the candidate queries with these predicates give the right answer, else feedback.

    The queries are those for a question after the story that Stalker was taken from, whose answers are in
    ``right_answers.toml``. The predicates are given by display name or IRI in any case.
    """
    answers: dict[str, list[str]] = DATA["story_answers"]
    labels: dict[str, None] = {}
    for said in names:
        name = to_display_name(drop_words(said, "predicate prädikat"))
        [predicate] = find_options(name, answers, "")
        if predicate not in answers:
            return say("1.5.unknown", name=name[:80])
        labels |= dict.fromkeys(answers[predicate])
    if not labels:
        return "1.5.no-name"
    return _compare_labels(labels, [STORY], ", ".join(labels))


@LAB.task(stage="query", is_free=True)
def check_longest_film(sparql: str) -> Problem:
    """Return "" if a SELECT on the graph films finds Stanley Kubrick's longest film, else feedback.

    It must have one row that names this film, and none of his others, by a label in any language or
    its IRI, in any column. It must find the longest film on each graph with changed running times too. Raises
    a GraphError if the query fails.
    """
    if "SELECT" not in sparql.upper():
        return "1.6.no-select"
    rows = open_sample("films").select(sparql).rows
    problem = _find_film_problem(rows, "The_Shining", sparql)
    if problem:
        return problem
    for row in DATA["running_times"]:
        changed = change_sample("films", SET_MINUTES + row["update"])
        longest = row["longest"]
        if _find_film_problem(changed.select(sparql).rows, longest, sparql):
            return say(row["feedback"], film=longest.replace("_", " "))
    return ""


SET_MINUTES = """DELETE { ?film fl:runtime ?minutes }
WHERE { ?film fl:director fl:Stanley_Kubrick ; fl:runtime ?minutes };
"""
"""The beginning of an update that gives the films other running times."""


def _find_film_problem(rows: Sequence[Sequence[Any]], film: str, sparql: str) -> Problem:
    """Return "" if the rows of a query are the film alone, else the feedback for what is wrong.

    ``film`` is the end of its IRI. The one row must have a name of it in a cell, and none of another
    film by him. ``sparql`` is the query: one without rows that writes the director as a plain
    text gets a feedback of its own.
    """
    if not rows:
        names_director = re.search(r'"[^"]*kubrick[^"]*"(?![^\s]*@)', sparql, re.IGNORECASE)
        return "1.6.director-is-text" if names_director else "1.6.no-rows"
    if len(rows) > 1:
        return say("1.6.rows", number=len(rows))
    cells = [str(cell) for cell in rows[0] if cell is not None]
    named = _find_films(cells)
    if named == {film}:
        return ""
    if film in named:
        return say("1.6.films", number=len(named))
    if all(cell.replace(".", "").isdecimal() for cell in cells):
        return "1.6.no-film"
    return "1.6.other-film"


def _find_films(names: Sequence[str]) -> set[str]:
    """Return the films by Stanley Kubrick with a title or an IRI among some texts, each as the end of its IRI."""
    known = set(map(to_display_name, names))
    found = set()
    for film, titles in DATA["kubrick_films"].items():
        if not known.isdisjoint(titles):
            found.add(film)
    return found


def _add_repair_task(number: int, lost: dict[str, Any]) -> None:
    """Add a task to LAB: to repair the run of LOST_RUNS with this number. Its check gets the student's run."""

    @LAB.task(
        stage=lost["stage"],
        is_free=True,
        open_run=partial(open_lost_run, number),
    )
    def check_repaired_run(run: Run) -> Problem:
        """Return "" if the student's run is the lost run, rightly repaired at a first wrong step, else feedback."""
        lost_run = open_lost_run(number)
        if run.question != lost_run.question:
            return say("lost.other-question", question=lost_run.question)
        if not run.overrides:
            return "lost.not-changed"
        if run.has_pending_edits:
            return "lost.not-executed"
        edited = find_first_edited_steps(run, lost_run)
        if not edited:
            return "lost.same-value"
        is_first = not set(edited).isdisjoint(lost["first_wrong"])
        return _judge_repair(run, edited[0], is_first=is_first)


for _number, _lost in enumerate(LOST_RUNS, 1):
    _add_repair_task(_number, _lost)


def _judge_repair(run: Run, edited: str, *, is_first: bool) -> Problem:
    """Return "" if the answer of a repaired run is right, and its first edit is at a first wrong step, else feedback.

    ``edited`` is the agent that was edited first. If that is the QIR agent, the answer of its triples in
    the graph's words counts too. Feedback says that the step is right but not the new value, that the
    step is too late though the answer is right, what is wrong with the answer, or what
    ``judge_triples`` finds.
    """
    judged = judge_triples(run, may_reword=edited == "qir")
    if edited == "query_generator" and not run.answer:
        return "lost.no-rows"
    if judged is not None:
        if is_first:
            return judged
        return say("lost.later-step", agent=edited)
    problem = _compare_answer(run, RIGHT_ANSWERS[run.question].labels)
    if is_first:
        return say("lost.right-step", problem=problem, triples=list_triples(run))
    return problem


def _run_with_triples(triples: AnswerTriples, target: str) -> Run:
    """Execute Chatty-KG with ``rules`` on TWO_FILMS_QUESTION, with these triples as the QIR agent's output.

    ``target`` is the unknown that is asked for.
    """
    run = Workbench(open_sample("films"), "rules").begin(TWO_FILMS_QUESTION)
    set_triples(run, triples, target)
    return run.go()


def _compare_answer(run: Run, right_labels: Collection[str]) -> Problem:
    """Return "" if the labels of a run's answer are exactly the right ones, in any order, else feedback.

    The feedback says how many are too many and how many are missing, but not which. An answer that
    is missing or empty has a feedback of its own.
    """
    answer = run.answer
    if answer is None:
        return say("result.none-yet")
    if not answer.labels:
        return say("result.empty", reason=answer.reason or say("result.nothing-found"))
    return _compare_labels(answer.labels, right_labels, str(answer))


def _compare_labels(labels: Collection[str], right_labels: Collection[str], answer: str) -> Problem:
    """Return "" if labels are exactly the right ones, else how many are too many and missing in the answer."""
    extra = len(set(labels).difference(right_labels))
    missing = len(set(right_labels).difference(labels))
    key = COMPARISONS[bool(extra), bool(missing)]
    return key and say(key, answer=answer, extra=extra, missing=missing)


COMPARISONS = {
    (False, False): "",
    (False, True): "result.too-few",
    (True, False): "result.too-many",
    (True, True): "result.differs",
}
"""The key of the feedback, by whether labels are too many and whether some are missing."""
