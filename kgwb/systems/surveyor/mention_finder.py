"""Mention finder: what a question names, looked up in the graph's labels and values."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from pydantic import BaseModel, ConfigDict
from rdflib import URIRef

from kgwb.errors import GraphError
from kgwb.flow import Candidate, Dialogue, Retrieved
from kgwb.kg.queries import describe, holding
from kgwb.run import Run, agent
from kgwb.run.ask import ask
from kgwb.systems.linking import relations_of
from kgwb.systems.surveyor.records import Mention, Mentions
from kgwb.systems.surveyor.settings import settings_of

MOST_NAMES, TURNS = 8, 4
"""Names looked up, and earlier turns that a question may point back to."""
LONGEST_NAME, FULLY_SHOWN = 200, 2
"""Letters of a name, and candidates of which it is told which predicates they have."""


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
    turns = dialogue.turns[-TURNS:]
    earlier = [{"question": t.standalone or t.question, "answers": list(t.answers[:5])} for t in turns]
    variables = {"question": question, "earlier": earlier, "classes": list(classes)}
    reply = ask("surveyor/mention_finder", variables, MentionReply, run)
    names = dict.fromkeys(filter(None, (" ".join(name.split())[:LONGEST_NAME] for name in reply.names)))
    known = {name.casefold(): name for name in classes}
    chosen = dict.fromkeys(known[name.casefold()] for name in reply.classes if name.casefold() in known)
    alone = " ".join(reply.question.split()) or question
    return Mentions(alone, tuple(map(Mention, names))[:MOST_NAMES], tuple(chosen), reply.reason)


@agent("value_finder", subject="name", kind="search")
def find_values(name: str, retrieved: Retrieved, predicates: tuple[URIRef, ...], run: Run) -> Mention:
    """The name with its candidates, the best of each type first, and the values that hold its words."""
    most = settings_of(run).name_candidates
    alike = Counter[tuple[str, ...]]()
    ranks: dict[Candidate, tuple[bool, int]] = {}
    for each in retrieved.candidates:
        ranks[each] = each.score < 1, alike[each.types]
        alike[each.types] += 1
    candidates = tuple(sorted(ranks, key=ranks.__getitem__))
    try:
        values = holding(run.kg, predicates, name)[:most]
    except GraphError as error:
        run.note(f"values were not searched for {name!r}: {error.message}")
        values = ()
    known = {each.iri for each in retrieved.candidates}
    shown = candidates[:most]
    if len(shown) <= FULLY_SHOWN:
        iris = [each.iri for each in shown]
        kinds, uses = describe(run.kg, iris), relations_of(iris, run) if iris else {}
        shown = tuple(replace(c, types=kinds[c.iri].types, relations=uses[c.iri]) for c in shown)
    return Mention(name, shown, tuple(v for v in values if v.value not in known))
