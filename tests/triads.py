"""Triad on the graph of two dozen triples: replies of a scripted model, and runs with it."""

from __future__ import annotations

from typing import Any

from small import iri, run_of

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
CALLS = 6
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


def answered(question: str = QUESTION, /, **replies: Any) -> tuple[Run, Scripted]:
    """An executed run and its model. ``replies`` by agent differ from those of SCRIPT.

    ``settings`` are the settings of the run, by name.
    """
    settings = TRIAD.settings(**replies.pop("settings", {}))
    model = Scripted(SCRIPT | {f"triad/{name}": reply for name, reply in replies.items()})
    return triad(model, question, settings=settings).go(), model


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


PUBLISHED: dict[str, Any] = {
    "triad/triplets_published": TWO_HOPS,
    "triad/entity_choice_published": uris("dune", "lynchs_dune"),
    "triad/relation_choice_published": [uris("director"), uris("birthPlace")] * 3,
    "triad/template_published": template(),
    "triad/query_choice_published": filled("lynchs_dune"),
    "triad/answer_type_published": {"type": "select"},
    "triad/own_knowledge_fact_published": {"answer": "Moscow"},
    "triad/own_knowledge_truth_published": {"answer": "True"},
}


def as_published(question: str = QUESTION, /, **replies: Any) -> tuple[Run, Scripted]:
    """An executed run in profile ``paper``, and its model; see ``answered``.

    ``replies`` are those to the published prompts.
    """
    settings = TRIAD.settings.of_profile("paper", **replies.pop("settings", {}))
    kg = replies.pop("kg", None)
    changed = {f"triad/{name}_published": reply for name, reply in replies.items()}
    model = Scripted(PUBLISHED | changed)
    return triad(model, question, settings=settings, kg=kg).go(), model


def requests_of(model: Scripted, prompt: str) -> list[Any]:
    """The requests with a prompt of Triad."""
    return [request for request in model.requests if request.task == f"triad/{prompt}"]
