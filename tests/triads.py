"""Triad on the graph of two dozen triples: replies of a scripted model, and runs with it."""

from __future__ import annotations

from typing import Any

from small import films, iri, run_of

from kgwb.kg import Graph
from kgwb.llm import Scripted
from kgwb.run import Run
from kgwb.run.systems import load_system

TRIAD = load_system("triad")
QUESTION = "Where was the director of Dune born?"
TEMPLATE = (
    "SELECT DISTINCT ?city WHERE { <Dune> <directed by> ?person . ?person <born in> ?city . }"
)


def triplets(*parts: str) -> dict[str, Any]:
    """The reply for triplets written "Dune | directed by | ?person"."""
    return {
        "reason": "so",
        "triplets": [[part.strip() for part in text.split("|")] for text in parts],
    }


def template(sparql: str = TEMPLATE) -> dict[str, str]:
    return {"reason": "so", "sparql": sparql}


def choice(*numbers: int) -> dict[str, Any]:
    return {"reason": "it fits", "numbers": [*numbers]}


TWO_HOPS = triplets("Dune | directed by | ?person", "?person | born in | ?city")
SCRIPT: dict[str, Any] = {
    "triad/triplets": TWO_HOPS,
    "triad/entity_choice": choice(1, 2),
    "triad/relation_choice": choice(1),
    "triad/template": template(),
    "triad/query_choice_judgement": choice(2),
    "triad/query_choice": choice(2),
    "triad/answer_type": {"type": "select"},
}
"""Two films are called Dune, and both have a director: six model calls."""
KEYS = [
    "attempt[try 1/parsing]",
    "triplets[try 1/parsing]",
    "entity_retriever[try 1/parsing/Dune]",
    "entity_choice[try 1/parsing/Dune]",
    "relations[try 1/parsing/⟨Dune, directed by, ?person⟩]",
    "relation_choice[try 1/parsing/⟨Dune, directed by, ?person⟩]",
    "relations[try 1/parsing/⟨?person, born in, ?city⟩]",
    "relation_choice[try 1/parsing/⟨?person, born in, ?city⟩]",
    "template[try 1/parsing]",
    "queries[try 1/parsing]",
    "query_choice[try 1/parsing]",
    "answer",
]


def triad(model: Any, question: str = QUESTION, **options: Any) -> Run:
    """A run of Triad, not executed yet."""
    return run_of(TRIAD, question, model, **options)


def answered(
    question: str = QUESTION, /, *, settings: Any = (), kg: Graph | None = None, **replies: Any
) -> tuple[Run, Scripted]:
    """An executed run and its model. ``replies`` by agent differ from those of SCRIPT.

    ``settings`` are the settings of the run, by name.
    """
    run, model = begun(question, settings=settings, kg=kg, **replies)
    return run.go(), model


def begun(
    question: str, *, settings: Any = (), kg: Graph | None = None, **replies: Any
) -> tuple[Run, Scripted]:
    """The same, not executed yet."""
    model = Scripted(SCRIPT | {f"triad/{name}": reply for name, reply in replies.items()})
    chosen = TRIAD.settings(**dict(settings))
    return triad(model, question, settings=chosen, kg=kg), model


# --- as published: URIs and SPARQL are offered, and one reply is all that is asked for


def uris(*names: str) -> dict[str, Any]:
    """The reply that chooses these vertices or predicates of the graph."""
    return {"uris": [str(iri(name)) for name in names]}


def filled(film: str) -> dict[str, str]:
    """The reply that chooses the query about a film, filled with URIs."""
    first = f"<{iri(film)}> <{iri('director')}> ?person"
    return {
        "sparql": f"SELECT DISTINCT ?city WHERE {{ {first} . ?person <{iri('birthPlace')}> ?city . }}"
    }


def of_type(answer_type: str) -> dict[str, str]:
    """The reply of the generalist that classifies the answer."""
    return {"reason": "so", "type": f"<{answer_type}>"}


def lynchs_or_first(listed: str) -> dict[str, str]:
    """The reply that chooses the query about Lynch's film, or the first if it is not in the list."""
    wanted = filled("lynchs_dune")["sparql"]
    queries = listed.splitlines()
    return {"sparql": wanted if wanted in queries else queries[0]}


PUBLISHED: dict[str, Any] = {
    "triad/triplets_published": TWO_HOPS,
    "triad/entity_choice_published": uris("dune", "lynchs_dune"),
    "triad/relation_choice_published": [uris("director"), uris("birthPlace")] * 3,
    "triad/template_published": template(),
    "triad/query_choice_published": lambda request: lynchs_or_first(request.variables["queries"]),
    "triad/answer_type_reasoned": of_type("select"),
    "triad/own_knowledge_fact_published": {"answer": "Moscow"},
    "triad/own_knowledge_truth_published": {"answer": "True"},
}


def as_published(
    question: str = QUESTION, /, *, settings: Any = (), kg: Graph | None = None, **replies: Any
) -> tuple[Run, Scripted]:
    """An executed run in profile ``paper``, and its model; see ``answered``.

    ``replies`` are those to the prompts of this profile, some of which have a name of their own.
    """
    script = dict(PUBLISHED)
    for name, reply in replies.items():
        for suffix in ("", "_published", "_reasoned"):
            script[f"triad/{name}{suffix}"] = reply
    model = Scripted(script)
    chosen = TRIAD.settings.of_profile("paper", **dict(settings))
    return triad(model, question, settings=chosen, kg=kg).go(), model


def requests_of(model: Scripted, prompt: str) -> list[Any]:
    """The requests with a prompt of Triad."""
    return [request for request in model.requests if request.task == f"triad/{prompt}"]


# --- a thing between two things, and things of one name

OFFERS = """
@prefix : <http://example.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:Offer rdfs:label "Offer" .
:bolt rdfs:label "Bolt M8" ; :width 8 ; :offered_in :offer1 . :nut rdfs:label "Nut" ; :fits :bolt .
:offer1 a :Offer ; rdfs:label "Offer 17" ; :supplier :acme . :acme rdfs:label "Acme" .
"""


def on_offers(answer: Any, **settings: Any) -> tuple[Run, Scripted]:
    model = Scripted(answer)
    kg = films(OFFERS)
    settings_ = TRIAD.settings(**settings)
    question = "Who is the supplier of the Bolt M8?"
    return triad(model, question, kg=kg, settings=settings_).go(), model


TWINS = """
@prefix : <http://example.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:orange_city rdfs:label "Orange" ; :near :x ; :close :x .
:orange_river rdfs:label "Orange" ; :near :y ; :close :y .
:orange_fruit rdfs:label "orange" ; :near :z ; :x_near :z .
:near rdfs:label "near" . :close rdfs:label "near" . :x_near rdfs:label "Near" .
:x rdfs:label "Echo" . :y rdfs:label "Echo" . :z rdfs:label "Echo" .
"""
"""Three things of one name, with relations of one name, to three things of one name."""
ONE = {
    "triad/triplets": triplets("Orange | near | ?what"),
    "triad/template": template("SELECT ?what WHERE { <Orange> <near> ?what . }"),
    "triad/answer_type": {"type": "select"},
}


def on_twins(settings: dict[str, Any], **replies: Any) -> tuple[Run, Scripted]:
    """An executed run on the twins, and its model. ``replies`` by prompt take the options."""

    def answer(request: Any) -> Any:
        name = request.task.removeprefix("triad/")
        if name in replies:
            return replies[name](request.variables)
        return ONE[request.task.removesuffix("_published")]

    model = Scripted(answer)
    run = triad(model, "?", kg=films(TWINS), settings=TRIAD.settings(**settings))
    return run.go(), model


CASE = {"entities": 3, "relations": 9, "merge_results": False, "query_limit": 1000}
NUMBERS = {
    "entity_choice": lambda shown: choice(*range(1, len(shown["candidates"]) + 1)),
    "relation_choice": lambda shown: choice(*range(1, len(shown["relations"]) + 1)),
    "query_choice_judgement": lambda shown: choice(1),
}
URIS = {
    "entity_choice_published": lambda shown: {"uris": shown["uris"].splitlines()},
    "relation_choice_published": lambda shown: {"uris": shown["uris"].splitlines()},
    "query_choice_published": lambda shown: {"sparql": shown["queries"].splitlines()[0]},
}
AS_URIS = {"entity_options": "uris", "relation_options": "uris", "query_options": "sparql"}
