"""Lab 1: from a question to SPARQL. Students act as the agents of Chatty-KG, and repair five runs."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from functools import partial
from typing import NamedTuple

from kgwb.flow import Answer
from kgwb.kg.queries import describe_vertices
from kgwb.labs.material import DIALOGUE
from kgwb.labs.tasks import Lab, Stage, compare_choices, open_sample, open_samples
from kgwb.records import to_data
from kgwb.run import Run
from kgwb.run.agents import agent_of_key
from kgwb.text import display_name, pluralize
from kgwb.workbench import Workbench, recording

LAB = Lab(1, "From question to SPARQL", prepare=open_samples)
PRONOUNS = {"it", "its", "he", "she", "his", "her", "their", "they", "this", "that"}
TWO_FILMS_QUESTION = "Which films directed by Christopher Nolan star Michael Caine?"
MUSIC_QUESTION = "By whom was the music for Vertigo composed?"
AnswerTriples = Sequence[Sequence[str]]
"""Triples as students write them: subject, relation and object, with unknowns as "?x"."""


class LostAnswer(NamedTuple):
    """How a recorded run that lost its answer can be repaired."""

    labels: tuple[str, ...]
    """The labels of the right answer."""
    agents: tuple[str, ...]
    """The agents whose output may be replaced. The first of them is the first that is wrong."""
    stage: Stage
    """The stage of the first wrong agent."""
    last_hint: str = ""
    """What is added to the last hint."""


LOST_ANSWERS = {
    1: LostAnswer(
        ("Louisa May Alcott",),
        ("rephraser", "vertex_selection"),
        "understand",
        " Two films and a novel have the same name. Which of them is the question about?",
    ),
    2: LostAnswer(("Bernard Herrmann",), ("qir",), "understand"),
    3: LostAnswer(("Francis Ford Coppola",), ("translator",), "understand"),
    4: LostAnswer(
        ("Howl's Moving Castle", "My Neighbor Totoro", "Spirited Away", "The Boy and the Heron"),
        ("qir", "predicate_selection"),
        "understand",
    ),
    5: LostAnswer(
        ("Geoffrey Hinton", "Yann LeCun", "Yoshua Bengio"),
        ("query_generator",),
        "query",
        " How does the graph say who won in which year? Look at all triples of one winner.",
    ),
}
"""The recorded runs of the last tasks, by their number in the folder recordings/lost/chatty_kg."""
SCHOLARS_RUN = 5
"""The only one of them over the graph scholars; the others are over films."""


@LAB.task(
    "Which questions need the dialogue?",
    "Read each question as if it were the first one. Do you know what it is about?",
    "Look for words that refer to something else: its, he, the one.",
    "Three of the five questions depend on an earlier one.",
    stage="understand",
)
def check_dependent_questions(numbers: Sequence[int]) -> str:
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
    "Only one word has to be replaced. Which one, and by which words of the first question?",
    "Whose first movie is it? Put the name, followed by 's, in place of the pronoun. Add nothing else.",
    stage="understand",
)
def check_rephrased_question(question: str) -> str:
    """Return "" if a question names Harry Potter, its first movie and the release, else feedback.

    It must not have a pronoun. Its words are looked at, but not their order. The first problem
    found is returned.
    """
    words = set(re.findall(r"\w+", question.casefold()))
    pronouns = sorted(words & PRONOUNS)
    if pronouns:
        return f"{pronouns[0]!r} still refers to something that was said before"
    if not words >= {"harry", "potter"}:
        return "the question does not name what the first question is about"
    if "first" not in words or words.isdisjoint({"movie", "film"}):
        return "the question does not ask for the first movie"
    if words.isdisjoint({"release", "released", "come", "came", "out", "year", "date"}):
        return "the question does not ask when the movie was released"
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
        if len(fact) != 3:
            return 'a triple has three parts, such as ("?film", "relation", "name")'
        for term in (fact[0], fact[2]):
            if term.startswith("?"):
                unknowns.add(term)
            else:
                names.add(term.casefold())

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
    "The question is about a novel, not about a film.",
    stage="link",
)
def check_vertex(iri: str) -> str:
    """Return "" for the IRI of the novel Solaris, also in angle brackets, else feedback.

    The IRI must be one of a vertex of the sample graph films that is called "Solaris". The feedback
    on another one of these names its types.
    """
    films = open_sample("films")
    candidates = films.exact(["Solaris"]).get("Solaris", ())
    chosen = [vertex for vertex in candidates if str(vertex) == iri.strip("<> ")]
    if not chosen:
        number = pluralize(len(candidates), "candidate")
        return f"this is not one of the {number}; copy the whole IRI of one of them"
    types = describe_vertices(films, chosen)[chosen[0]].types
    if any("novel" in name.casefold() for name in types):
        return ""
    return f"this vertex is a {' and a '.join(types)}"


@LAB.task(
    "Choose the predicates for 'music for Vertigo composed'",
    "Which predicate of Vertigo leads to the person who made its music?",
    "The question says what was done (composed). Graphs often name the person who did it.",
    "It is a single predicate, a noun made from the verb of the question.",
    stage="link",
)
def check_predicates(names: list[str]) -> str:
    """Return "" if the candidate queries with these predicates give the right answer.

    The queries are those for MUSIC_QUESTION that have one or more of the predicates, which are
    given by their display names. Otherwise return feedback.
    """
    triples = [("Vertigo", "composed", "?who")]
    run = _run_with_triples(MUSIC_QUESTION, triples, "?who", until="query_generator")
    queries = []
    for query in run.output("query_generator").queries:
        if not set(names).isdisjoint(query.predicates):
            queries.append(to_data(query))
    if not queries:
        shown_names = ", ".join(names)[:80]
        return f"no candidate query has a predicate with this name: {shown_names or 'no name'}"
    run.override("predicate_selection", {"predicates": names, "queries": queries})
    return _compare_answer(run.go().answer, ["Bernard Herrmann"])


@LAB.task(
    "Write the SPARQL for the longest film by Kubrick",
    "First list all films by Stanley Kubrick with their running times.",
    "Which clause of SPARQL sorts the rows, and which one keeps only the first of them?",
    "SELECT ?film WHERE { ... } ORDER BY DESC(?minutes) LIMIT 1",
    stage="query",
    is_free=True,
)
def check_longest_film(sparql: str) -> str:
    """Return "" if a SELECT on the graph films has one row, with The Shining in it.

    It may be named by its label or its IRI, in any column. Otherwise return feedback. Raises a
    GraphError if the query fails.
    """
    rows = open_sample("films").select(sparql).rows
    if not rows:
        return "the query has no rows; in the graph a director is an IRI, not a text"
    if len(rows) > 1:
        return f"the query has {pluralize(len(rows), 'row')}, but only one film is the longest"
    cells = [str(cell) for cell in rows[0] if cell is not None]
    if any(cell.replace("_", " ").endswith("The Shining") for cell in cells):
        return ""
    if all(map(str.isdecimal, cells)):
        return "the row does not name a film"
    return "the row names another film"


def open_lost_run(number: int) -> Run:
    """Return one of the recorded runs that lost their answer, with its graph, to be repaired."""
    graph = "scholars" if number == SCHOLARS_RUN else "films"
    return recording(f"lost/chatty_kg/{number}", kg=open_sample(graph), model="rules")


def _add_repair_task(number: int) -> None:
    """Add the task to repair one of the LOST_ANSWERS, by its number, to the lab.

    The last of its three hints names the agent and has the answer's own hint. The check gets the
    student's run.
    """
    lost = LOST_ANSWERS[number]

    @LAB.task(
        f"Find and fix lost answer {number}",
        "Go through the steps in their order. Which one is the first that is wrong?",
        "All steps after the first wrong one follow from it. Leave them as they are.",
        f"Compare the input and the output of {display_name(lost.agents[0])}.{lost.last_hint}",
        stage=lost.stage,
        is_free=True,
        open_run=partial(open_lost_run, number),
    )
    def check_repaired_run(run: Run) -> str:
        return _check_repaired_run(run, lost, recording(f"lost/chatty_kg/{number}").question)


for _number in LOST_ANSWERS:
    _add_repair_task(_number)


def _check_repaired_run(run: Run, lost: LostAnswer, question: str) -> str:
    """Return "" if a run has the right answer because the right agents were overridden.

    Otherwise return feedback: on another question than this one, a run without overrides, a wrong
    answer, or an override of an agent that was not the first to be wrong.
    """
    if run.question != question:
        return f"the question of this run is not {question!r}"
    edited_agents = set(map(agent_of_key, run.overrides))
    if not edited_agents:
        return "no step was changed; use run.override(step, value), then run.go()"
    problem = _compare_answer(run.answer, lost.labels)
    other_agents = sorted(edited_agents.difference(lost.agents))
    if not other_agents and problem:
        return f"this is a step to change, but {problem}"
    if other_agents and not problem:
        return f"the answer is right, but {other_agents[0]} was not the first step that is wrong"
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
