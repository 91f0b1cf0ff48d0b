"""Mention finder: what a question names, looked up in the graph's labels and values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pydantic import BaseModel, ConfigDict
from rdflib import Literal, URIRef

from kgwb.errors import GraphError
from kgwb.flow import Dialogue, Retrieved
from kgwb.kg.queries import counted
from kgwb.kg.sparql import n3, quoted
from kgwb.kg.survey import Survey
from kgwb.kg.text import normal
from kgwb.run import Run, agent
from kgwb.run.ask import ask
from kgwb.systems.surveyor.records import Mention, Mentions, ValueFound
from kgwb.systems.surveyor.settings import settings_of

MOST_NAMES, TURNS = 8, 4
"""Names looked up, and earlier turns that a question may point back to."""
LONGEST_NAME = 200


class MentionReply(BaseModel):
    """What to look up, and the classes the question is about."""

    model_config = ConfigDict(extra="forbid")
    reason: str
    question: str
    names: list[str]
    classes: list[str]


@agent("mention_finder", kind="model")
def find_names(question: str, dialogue: Dialogue, classes: tuple[str, ...], run: Run) -> Mentions:
    """The names that a question has, and the classes it is about."""
    earlier = [
        {"question": t.standalone or t.question, "answers": list(t.answers[:5])} for t in dialogue.turns
    ]
    variables = {"question": question, "earlier": earlier[-TURNS:], "classes": list(classes)}
    reply = ask("surveyor/mention_finder", variables, MentionReply, run)
    names = dict.fromkeys(" ".join(name.split())[:LONGEST_NAME] for name in reply.names)
    known = {name.casefold(): name for name in classes}
    chosen = dict.fromkeys(known[name.casefold()] for name in reply.classes if name.casefold() in known)
    alone = " ".join(reply.question.split()) or question
    return Mentions(
        alone, tuple(Mention(name) for name in names if name)[:MOST_NAMES], tuple(chosen), reply.reason
    )


@agent("value_finder", subject="name", kind="search")
def find_values(name: str, retrieved: Retrieved, predicates: tuple[URIRef, ...], run: Run) -> Mention:
    """The name with its candidates, and the values without a label that hold its words."""
    most = settings_of(run).name_candidates
    found = tuple(_values(name, predicates, run))[:most]
    return Mention(name, retrieved.candidates[:most], found)


def valued(survey: Survey, labels: Sequence[URIRef]) -> tuple[URIRef, ...]:
    """The predicates among whose values a name may be: texts but for labels, and IRIs without a label."""
    if survey.sampled:
        return ()
    return tuple(
        sorted(
            {
                each.predicate
                for kind in survey.classes
                for prop in kind.properties
                for each in (prop, *prop.inner)
                if each.predicate not in labels
                and (each.unnamed or any(v.sort in ("string", "IRI") or "@" in v.sort for v in each.values))
            }
        )
    )


def _values(name: str, predicates: Sequence[URIRef], run: Run) -> Iterator[ValueFound]:
    """Texts, and IRIs by their local names, that hold a name; the shortest first."""
    text = normal(name)
    if not predicates or len(text) < 2:
        return
    these = " ".join(map(n3, predicates))
    held = f"CONTAINS(LCASE(REPLACE(STR(?o), '[_-]', ' ')), {quoted(name.lower())})"
    query = (
        f"SELECT ?p ?o (COUNT(*) AS ?n) WHERE {{ VALUES ?p {{ {these} }} ?s ?p ?o FILTER({held}) }}"
        f" GROUP BY ?p ?o ORDER BY STRLEN(STR(?o)) ?p LIMIT 20"
    )
    try:
        rows = run.kg.select(query).rows
    except GraphError as error:
        run.note(f"values were not searched for {name!r}: {error.message}")
        return
    labelled = {hit.iri for hit in run.kg.search(name, 20).hits}
    for predicate, value, number in rows:
        if isinstance(predicate, URIRef) and isinstance(value, URIRef | Literal) and value not in labelled:
            yield ValueFound(predicate, value, counted(number))
