"""Lab 1: from a question to SPARQL. Students act as the agents of Chatty-KG, and repair five runs."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from functools import partial
from typing import Any, NamedTuple

from rdflib import URIRef

from kgwb.flow import Answer
from kgwb.kg.queries import describe_vertices
from kgwb.labs.forms import AnswerTriples, NamedChoice, NumberedChoice, expand_iri
from kgwb.labs.material import DIALOGUE
from kgwb.labs.repairs import find_first_edited_steps, find_first_wrong_agents, open_lost_run
from kgwb.labs.tasks import Lab, Stage, compare_choices, open_sample, open_samples
from kgwb.records import to_data
from kgwb.run import Run
from kgwb.terms import Term
from kgwb.text import pluralize
from kgwb.workbench import Workbench, recording

LAB = Lab(1, "From question to SPARQL", prepare=open_samples)
PRONOUNS = {"it", "its", "he", "she", "his", "her", "their", "they", "this", "that"}
TWO_FILMS_QUESTION = "Which films directed by Christopher Nolan star Michael Caine?"
STORY_QUESTION = "From which story was the film Stalker taken?"
STORY_TRIPLE = ("Stalker", "story taken from", "?story")
"""What the QIR agent writes for it."""
STORY = "Roadside Picnic"
"""The label of the right answer."""
FIRST_MOVIE_WORDS = {"first", "debut", "earliest", "initial", "opening"}
MOVIE_WORDS = {"movie", "movies", "film", "films", "picture"}
RELEASE_WORDS = set("release released releases premiere premiered out date debuted shown".split())
OTHER_QUESTION_WORDS = {"who", "whom", "whose", "why", "where", "how", "which"}
NAME_WORDS = {"the", "harry", "potter", "potter's", "s", "series"} | MOVIE_WORDS | FIRST_MOVIE_WORDS
"""Words that the name Harry Potter may have beside it."""
FILMS_NAMESPACE = "https://kgwb.example/films/"


class LostAnswer(NamedTuple):
    """The right answer of a recorded run that lost it."""

    labels: tuple[str, ...]
    stage: Stage
    """The stage of the first wrong step."""
    last_hint: str


LOST_ANSWERS = {
    1: LostAnswer(
        ("Louisa May Alcott",),
        "understand",
        "Two films and a novel have one name. Who had to say which of them is meant, or to choose?",
    ),
    2: LostAnswer(
        ("Bernard Herrmann",), "understand", "How many unknowns does this question have?"
    ),
    3: LostAnswer(
        ("Francis Ford Coppola",),
        "understand",
        "In which language are the words that are looked up?",
    ),
    4: LostAnswer(
        ("Howl's Moving Castle", "My Neighbor Totoro", "Spirited Away", "The Boy and the Heron"),
        "understand",
        "Who writes music? Compare the words of the relation with those of the question.",
    ),
    5: LostAnswer(
        ("Geoffrey Hinton", "Yann LeCun", "Yoshua Bengio"),
        "query",
        "Which word of the question is in no triple and in no query? Look at all triples of one "
        "winner to see how the graph says it.",
    ),
}
"""The recorded runs of the last tasks, by their number in the folder recordings/lost/chatty_kg."""


@LAB.task(
    "Which questions need the dialogue?",
    "Read each question as if it were the first one. Do you know what it is about?",
    "Look for words that refer to something else: its, he, the one.",
    "Three of the five questions depend on an earlier one.",
    stage="understand",
)
def check_dependent_questions(numbers: NumberedChoice) -> str:
    """Return "" for the numbers of the questions that cannot be understood alone, else feedback.

    The questions are those of DIALOGUE, numbered from 1; the right ones are 2, 4 and 5, in any
    order.
    """
    return compare_choices(
        numbers,
        (2, 4, 5),
        range(1, len(DIALOGUE) + 1),
        unknown="there is no question {}; the questions have the numbers 1 to 5",
        wrong="question {} can be understood alone",
        missing="there is another question that cannot be understood alone",
    )


@LAB.task(
    "Rephrase 'When was its first movie released?'",
    "Somebody who has not heard the first question must understand the new one.",
    "Which words of the question are clear only to somebody who heard the first one?",
    "Say what these words stand for, and leave the rest of the question as it is.",
    stage="understand",
)
def check_rephrased_question(question: str) -> str:
    """Return "" if a question asks when the first Harry Potter movie was released, else feedback.

    Its words are looked at, but not their order, and what Chatty-KG takes for the names in it: the
    only name is Harry Potter. The first problem found is returned.
    """
    words = set(re.findall(r"\w+", question.casefold()))
    pronouns = sorted(words & PRONOUNS)
    if pronouns:
        return f"{pronouns[0]!r} still refers to something that was said before"
    if not words >= {"harry", "potter"}:
        return "the question does not name what the first question is about"
    if words.isdisjoint(FIRST_MOVIE_WORDS) or words.isdisjoint(MOVIE_WORDS):
        return "the question does not ask for the first movie"
    asks_for_date = not words.isdisjoint({"when", "date"}) or words >= {"what", "year"}
    asks_for_date = asks_for_date or words >= {"which", "year"}
    if not asks_for_date or words.isdisjoint(RELEASE_WORDS):
        return "the question does not ask when the movie was released"
    other_questions = words & OTHER_QUESTION_WORDS - {"which"}
    if other_questions:
        return f"the question asks {min(other_questions)!r}, but the original one asks when"
    run = Workbench(open_sample("films"), "rules").begin(question).go(until="qir")
    return _find_other_names(run)


def _find_other_names(run: Run) -> str:
    """Return a problem if a question names something besides Harry Potter, for Chatty-KG."""
    for name in run.output("qir").entities:
        if not set(name.casefold().split()) <= NAME_WORDS:
            return f"Chatty-KG takes {name!r} for a name, which the original question does not have"
    return ""


@LAB.task(
    "The triples of a question",
    "How many things does the question say about the films? Each of them is one triple.",
    "Both triples have the same unknown, ?film, because both are about the same films.",
    'Write a relation in the words of the question: ("?film", "directed by", "Christopher Nolan").',
    stage="understand",
    is_free=True,
)
def check_triples(facts: AnswerTriples) -> str:
    """Return "" if Chatty-KG gives the right answer with these triples, else feedback.

    They take the place of what the QIR agent writes for TWO_FILMS_QUESTION. They must name both
    persons, and have a single unknown. Only the films of the answer count, not how the triples are
    written.
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
        return f"no triple has {missing_names[0].title()} as its subject or object"
    if not unknowns:
        return "there is no unknown; an unknown begins with a question mark, as in ?film"
    if len(unknowns) > 1:
        return f"there are {len(unknowns)} unknowns; how many different things are asked for?"
    run = _run_with_triples(TWO_FILMS_QUESTION, facts, unknowns.pop())
    films = ("Inception", "Interstellar", "The Dark Knight", "The Prestige")
    return _compare_answer(run.answer, films)


@LAB.task(
    "Choose the vertex for 'Solaris'",
    "Several things in the graph have this label. What kind of thing is the question about?",
    "Look at the types and the descriptions of the candidates.",
    "Read the question once more: one of its words names the type of the thing that is meant.",
    stage="link",
)
def check_vertex(iri: str) -> str:
    """Return "" for the IRI of the novel Solaris, else feedback.

    It may be in angle brackets, or have the prefix fl: or none. It must be one of a vertex of the
    sample graph films that is called "Solaris". The feedback on another one names its types.
    """
    films = open_sample("films")
    candidates = films.exact(["Solaris"]).get("Solaris", ())
    iri = expand_iri(iri, FILMS_NAMESPACE)
    chosen = [vertex for vertex in candidates if str(vertex).casefold() == iri.casefold()]
    if not chosen:
        number = pluralize(len(candidates), "candidate")
        return f"this is not one of the {number}; copy the IRI of one of them: it ends as {iri[-20:]!r} does not"
    types = describe_vertices(films, chosen)[chosen[0]].types
    if any("novel" in name.casefold() for name in types):
        return ""
    return f"this vertex is a {' and a '.join(types)}"


@LAB.task(
    "Choose the predicates for 'the story that a film was taken from'",
    "Read the names of the candidates, and leave out those that say something else about a film.",
    "Run the candidate queries one by one: films.select(query.sparql). What do they return?",
    "The answer is a story. Which candidate returns the title of a book?",
    stage="link",
)
def check_predicates(names: NamedChoice) -> str:
    """Return "" if the candidate queries with these predicates give the right answer.

    The queries are those for STORY_QUESTION that have one or more of the predicates, which are
    given by their display names or IRIs in any case. Otherwise return feedback.
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
        shown_name = unknown[0][:80] if unknown else "no name"
        return f"no candidate query has a predicate with this name: {shown_name}"
    run.override("predicate_selection", {"predicates": names, "queries": queries})
    return _compare_answer(run.go().answer, [STORY])


def _to_display_name(name: str) -> str:
    """Return the display name, in lower case, of a predicate that is given by it or by its IRI."""
    end = expand_iri(name, FILMS_NAMESPACE).rpartition("/")[2]
    return _split_words(end)


def _split_words(name: str) -> str:
    """Return a name such as "basedOn" or "based_on" as words in lower case: "based on"."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|_", " ", name).casefold()


@LAB.task(
    "Write the SPARQL for the longest film by Kubrick",
    "First list all films by Stanley Kubrick with their running times.",
    "Which clause of SPARQL sorts the rows, and which one keeps only the first of them?",
    "SELECT ?film WHERE { ... } ORDER BY DESC(?minutes) LIMIT 1",
    stage="query",
    is_free=True,
)
def check_longest_film(sparql: str) -> str:
    """Return "" if a SELECT on the graph films finds the longest film, also after a change of it.

    It must have one row that names the film by a label in any language or its IRI, in any column.
    The graph is then read as if it did not have the film's running time: the query must find the
    next film. Otherwise return feedback. Raises a GraphError if the query fails.
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
        return (
            "the row names the film, but if its running time were not in the graph, the query would "
            "not find the next one: it must find the film by the running times"
        )
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


def _find_film_problem(rows: Sequence[Sequence[Any]], film: Any, sparql: str) -> str:
    """Return what is wrong with the rows of a query that should be the film alone; "" if nothing."""
    if not rows:
        if re.search(r'"[^"]*kubrick[^"]*"(?![^\s]*@)', sparql, re.IGNORECASE):
            return "the query has no rows; in the graph a director is an IRI, not a text"
        return "the query has no rows; take away one condition after the other until it has some"
    if len(rows) > 1:
        return f"the query has {pluralize(len(rows), 'row')}, but only one film is the longest"
    cells = [str(cell) for cell in rows[0] if cell is not None]
    names = {str(film), str(film).rpartition("/")[2].replace("_", " ")}
    for (label,) in open_sample("films").select(LABELS.format(film)).rows:
        names.add(str(label))
    if names.intersection(cells):
        return ""
    if all(cell.replace(".", "").isdecimal() for cell in cells):
        return "the row does not name a film"
    return "the row names something else"


LABELS = "SELECT ?label WHERE {{ <{}> <http://www.w3.org/2000/01/rdf-schema#label> ?label }}"


def _add_repair_task(number: int) -> None:
    """Add the task to repair one of the LOST_ANSWERS, by its number, to the lab.

    The check gets the student's run.
    """
    lost = LOST_ANSWERS[number]

    @LAB.task(
        f"Find and fix lost answer {number}",
        "Go through the steps in their order. Which one is the first that is wrong?",
        "All steps after the first wrong one follow from it. Leave them as they are.",
        lost.last_hint,
        stage=lost.stage,
        is_free=True,
        open_run=partial(open_lost_run, number),
    )
    def check_repaired_run(run: Run) -> str:
        return _check_repaired_run(run, number)


for _number in LOST_ANSWERS:
    _add_repair_task(_number)


def _check_repaired_run(run: Run, number: int) -> str:
    """Return "" if a run has the right answer because its first wrong step was repaired.

    ``number`` is that of the lost run. Otherwise return feedback: on another question, a run
    without edits or with edits that were not executed, a wrong answer, or a first edit that is not
    at the first wrong step.
    """
    question = recording(f"lost/chatty_kg/{number}").question
    if run.question != question:
        return f"the question of this run is not {question!r}"
    if not run.overrides:
        return "no step was changed; use run.override(step, value), then run.go()"
    if run.has_pending_edits:
        return "press Continue, or run.go(): what is shown is from before your edit"
    return _judge_repair(run, number)


def _judge_repair(run: Run, number: int) -> str:
    """Return "" if the first edit of a run is at a first wrong step, and the answer is right."""
    problem = _compare_answer(run.answer, LOST_ANSWERS[number].labels)
    edited = find_first_edited_steps(run, number)
    if not edited:
        return "the value that was put in is the one that the step had"
    is_first = not set(edited).isdisjoint(find_first_wrong_agents(number))
    if is_first and problem:
        return f"this is a step to change, but {problem}"
    if not is_first and not problem:
        return f"the answer is right, but {edited[0]} was not the first step that is wrong"
    return problem


def _run_with_triples(
    question: str, triples: AnswerTriples, target: str, *, until: str | None = None
) -> Run:
    """Ask Chatty-KG with the model ``rules``, with these triples in place of the QIR agent's.

    ``target`` is the unknown that is asked for. The run stops after the step ``until``.
    """
    parts = ("subject", "relation", "object")
    facts = [dict(zip(parts, triple, strict=True)) for triple in triples]
    run = Workbench(open_sample("films"), "rules").begin(question)
    run.override("qir", {"facts": facts, "target": target})
    return run.go(until=until)


def _compare_answer(answer: Answer | None, right_labels: Collection[str]) -> str:
    """Return what is wrong with an answer; "" if its labels are exactly the right ones.

    Their order does not count. The text says how many are too many and how many are missing, but
    not which. An answer that is missing or empty has a text of its own.
    """
    if answer is None:
        return "the run has no answer yet; use run.go()"
    labels = set(answer.labels)
    if not labels:
        return f"there is no answer: {answer.reason or 'nothing was found'}"
    problems = []
    extra = labels.difference(right_labels)
    if extra:
        problems.append(f"{len(extra)} too many")
    missing = set(right_labels) - labels
    if missing:
        problems.append(f"{len(missing)} missing")
    if not problems:
        return ""
    return f"the answer is {answer}: {' and '.join(problems)}"
