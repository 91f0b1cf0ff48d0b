"""Lab 1: from a question to SPARQL. The student plays each agent of Chatty-KG and finds five lost answers."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from kgwb.flow import Answer
from kgwb.kg.queries import describe_vertices
from kgwb.labs.tasks import Lab, open_sample
from kgwb.records import to_data
from kgwb.run import Run
from kgwb.text import pluralize
from kgwb.workbench import Workbench, recording

LAB = Lab(1, "From question to SPARQL")
DIALOGUE = (
    "Who is the author of Harry Potter?",
    "When was its first movie released?",
    "Which films directed by Christopher Nolan star Michael Caine?",
    "And the one from 2019?",
    "What else has he starred in?",
)
"""The questions of the first task, numbered from 1."""
TWO_FILMS_QUESTION = "Which films directed by Christopher Nolan star Michael Caine?"
MUSIC_QUESTION = "By whom was the music for Vertigo composed?"
LONGEST = "Which film by Stanley Kubrick is the longest?"
LOST_ANSWERS = {
    1: ("Louisa May Alcott", ("rephraser", "vertex_selection")),
    2: ("Bernard Herrmann", ("qir",)),
    3: ("Francis Ford Coppola", ("translator",)),
    4: (
        "Howl's Moving Castle, My Neighbor Totoro, Spirited Away, The Boy and the Heron",
        ("qir", "predicate_selection"),
    ),
    5: ("Geoffrey Hinton, Yann LeCun, Yoshua Bengio", ("query_generator",)),
}
"""For each lost answer the right one, and the agents at which it may be put right."""
EXTRA_HINTS = {
    1: " There are two films and a novel of one name. Which of them is the question about?",
    5: " How does the graph say who won in which year? Ask it for all that it says of one winner.",
}
"""What the last hint adds."""
AnswerTriples = Sequence[Sequence[str]]


@LAB.task(
    "Which questions need the dialogue?",
    "Read each question as if you had heard nothing before it. Do you know what it is about?",
    "Look for words that stand for something else: its, he, the one.",
    "Three of the five need what was said before.",
)
def check_dependent_questions(numbers: Sequence[int]) -> str:
    right, answer = {2, 4, 5}, set(numbers)
    if strange := sorted(answer - set(range(1, 6))):
        return f"there is no question {strange[0]}: they have the numbers 1 to 5"
    if extra := sorted(answer - right):
        return f"question {extra[0]} can be understood alone"
    return "one more of them cannot be understood alone" if answer != right else ""


@LAB.task(
    "Rephrase 'When was its first movie released?'",
    "The rewritten question must be understood by somebody who heard nothing before it.",
    "Only one word of it has to be replaced: which one, and by what of the question before?",
    "Whose first movie? Put the name, with 's, where the pronoun stands. Add nothing else.",
)
def check_rephrased_question(question: str) -> str:
    words = re.findall(r"\w+", question.casefold())
    if left := {"it", "its", "he", "she", "his", "her", "their", "they", "this", "that"} & {*words}:
        return f"{sorted(left)[0]!r} still stands for something said before"
    if not {"harry", "potter"} <= {*words}:
        return "it does not name what the first question was about"
    if not {"first"} <= {*words} or not {"movie", "film"} & {*words}:
        return "it asks for something else than the first movie"
    if not re.search(r"\b(released?|come|came|out|year|date)\b", question, re.I):
        return "it does not ask when the movie was released any more"
    return ""


@LAB.task(
    "The triples of a question",
    "How many things does the question say of the films that it asks for? Each is one triple.",
    "The unknown, ?film, stands in both triples; so both are said of the same films.",
    'Write a relation in the words of the question, as in ("?film", "directed by", "Christopher Nolan").',
)
def check_triples(facts: AnswerTriples) -> str:
    if any(len(fact) != 3 for fact in facts):
        return 'a triple has three parts, such as ("?film", "relation", "name")'
    unknowns = {end for s, _, o in facts for end in (s, o) if end.startswith("?")}
    named = {end.casefold() for s, _, o in facts for end in (s, o) if not end.startswith("?")}
    if missing := {"christopher nolan", "michael caine"} - named:
        return f"no triple says anything of {sorted(missing)[0].title()}"
    if not unknowns:
        return "there is no unknown; one begins with a question mark, as in ?film"
    if len(unknowns) > 1:
        return f"there are {len(unknowns)} unknowns; how many different things are asked for?"
    qir = {"facts": [dict(zip(("subject", "relation", "object"), f, strict=True)) for f in facts]}
    run = _run_with_overrides(TWO_FILMS_QUESTION, qir=qir | {"target": unknowns.pop()})
    return _compare_answer(
        run.answer, ["Inception", "Interstellar", "The Dark Knight", "The Prestige"]
    )


@LAB.task(
    "Choose the vertex for 'Solaris'",
    "Several things in the graph have this label. What does the question say that it is?",
    "Look at the types and descriptions of the candidates.",
    "A novel, not a film.",
)
def check_vertex(iri: str) -> str:
    films = open_sample("films")
    known = films.exact(["Solaris"]).get("Solaris", ())
    chosen = next((each for each in known if iri.strip("<> ") == str(each)), None)
    if chosen is None:
        return (
            f"that is none of the {pluralize(len(known), 'candidate')}: copy the whole IRI of one"
        )
    types = describe_vertices(films, [chosen])[chosen].types
    return "" if "novel" in " ".join(types).casefold() else f"that one is a {' and a '.join(types)}"


@LAB.task(
    "Choose the predicates for 'music for Vertigo composed'",
    "Which of the predicates around Vertigo leads to whoever made its music?",
    "The question says what was done (composed); graphs often name who did it.",
    "It is a single predicate, a noun made from the verb of the question.",
)
def check_predicates(names: list[str]) -> str:
    qir = {
        "facts": [{"subject": "Vertigo", "relation": "composed", "object": "?who"}],
        "target": "?who",
    }
    run = _run_with_overrides(MUSIC_QUESTION, until="query_generator", qir=qir)
    queries = [
        query for query in run.output("query_generator").queries if set(query.predicates) & {*names}
    ]
    if not queries:
        return f"no candidate query has a predicate named {', '.join(names)[:80] or 'so'}"
    chosen = {"predicates": names, "queries": [to_data(query) for query in queries]}
    return _compare_answer(
        run.override("predicate_selection", chosen).go().answer, ["Bernard Herrmann"]
    )


@LAB.task(
    "Write the SPARQL for the longest film by Kubrick",
    "First list all films by Stanley Kubrick with their running times.",
    "What puts rows in order, and what keeps the first of them?",
    "SELECT ?film WHERE { ... } ORDER BY DESC(?minutes) LIMIT 1",
)
def check_longest_film(sparql: str) -> str:
    rows = open_sample("films").select(sparql).rows
    cells = {str(cell) for row in rows for cell in row if cell is not None}
    if not rows:
        return "it yields no rows; a director stands in the graph as an IRI, not as a name"
    if len(rows) != 1:
        return f"it yields {pluralize(len(rows), 'row')}, and one film is the longest"
    if any(cell.replace("_", " ").endswith("The Shining") for cell in cells):
        return ""
    return "its row names no film" if all(map(str.isdecimal, cells)) else "its row is another film"


def _add_fix_task(number: int) -> None:
    answer, agents = LOST_ANSWERS[number]

    @LAB.task(
        f"Find and fix lost answer {number}",
        "Go through the steps in their order. At which one is something wrong for the first time?",
        "Everything after the first wrong step only follows from it: leave the later steps alone.",
        f"Look at what {agents[0].replace('_', ' ')} made of what it was given.{EXTRA_HINTS.get(number, '')}",
    )
    def fixed(run: Run) -> str:
        original = recording(f"lost/chatty_kg/{number}")
        if run.question != original.question:
            return f"this run answers another question than {original.question!r}"
        edited = {key.partition("[")[0] for key in run.overrides}
        if not edited:
            return "nothing was put in by hand: run.override(step, value), then run.go()"
        wrong = _compare_answer(run.answer, answer.split(", "))
        if not wrong and not edited <= {*agents}:
            strange = sorted(edited - {*agents})[0]
            return f"the answer is right, but {strange} was not the first step that went wrong"
        return (
            f"that step is worth the change, but {wrong}"
            if wrong and edited <= {*agents}
            else wrong
        )


for _number in LOST_ANSWERS:
    _add_fix_task(_number)


def _run_with_overrides(question: str, *, until: str | None = None, **values: object) -> Run:
    """A question to Chatty-KG with ``rules``, with values put in by hand."""
    run = Workbench(open_sample("films"), "rules").begin(question)
    for step, value in values.items():
        run.override(step, value)
    return run.go(until=until)


def _compare_answer(answer: Answer | None, right: Collection[str]) -> str:
    """What is wrong with an answer, without the right one."""
    if answer is None:
        return "the run has no answer yet: run.go()"
    labels = set(answer.labels)
    if labels == set(right):
        return ""
    if not labels:
        return f"it leads to no answer: {answer.reason or 'nothing fits'}"
    counts = {"too many": len(labels - set(right)), "missing": len(set(right) - labels)}
    wrong = (f"{number} {what}" for what, number in counts.items() if number)
    return f"it leads to {answer}: {' and '.join(wrong)}"
