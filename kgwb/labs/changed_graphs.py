"""Changed copies of the sample graphs, on which answers are found out that are right for another reason.

A query or a triple can give the right answer by chance: because it names the answer, because the
alphabet has the order of the running times, or because everything by one director was also written
by this person. On a graph in which these go apart, it gives another answer than the right one.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

import rdflib

from kgwb.kg import Graph
from kgwb.kg.local import LocalGraph
from kgwb.labs.tasks import open_sample
from kgwb.labs.texts import Problem, say
from kgwb.run import Run
from kgwb.run.answers import Link

WORD = re.compile(r"\w+")
ALL_TRIPLES = "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }"
PREFIXES = """PREFIX fl: <https://kgwb.example/films/>
PREFIX sc: <https://kgwb.example/scholars/>
PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
"""
"""What an update need not declare."""


class ChangedGraph(NamedTuple):
    """A change of a sample graph, and what is the right answer to a question then."""

    sample: str
    update: str
    """A SPARQL update, without the declarations of PREFIXES."""
    labels: tuple[str, ...]
    """The labels of the right answer."""


@cache
def change_sample(sample: str, update: str) -> Graph:
    """Return a copy of a sample graph after a SPARQL update; it is made once for all checks.

    The update must change something, and no labels of things. Raises what rdflib raises for an update
    that does not parse.
    """
    original = open_sample(sample)
    changed = rdflib.Graph()
    for triple in original.construct(ALL_TRIPLES):
        changed.add(triple)
    changed.update(PREFIXES + update)
    return LocalGraph.from_rdflib(changed, vocabulary=original.vocabulary)


def find_other_reason(run: Run, change: ChangedGraph) -> Problem:
    """Return "" if a run with the right answer has the right one on a changed graph too, else feedback.

    A name that is that of nothing in the graph, for which a similar one was taken, is another
    reason, too. A fork of a run of Chatty-KG is executed on the changed graph, with its overrides
    and its triples: the question is not read again. The feedback has the triples and both answers.
    Raises what the execution raises.
    """
    for step in run.steps:
        if step.agent == "vertex_selection":
            problem = _find_other_name(step.output)
            if problem:
                return problem
    changed = run.fork(kg=change_sample(change.sample, change.update))
    changed.override("qir", run.output("qir"))
    answer = changed.go().answer
    if answer and set(answer.labels) == set(change.labels):
        return ""
    return say(
        "result.other-reason",
        triples=list_triples(run),
        right=", ".join(change.labels),
        answer=answer or say("result.nothing"),
    )


def list_triples(run: Run) -> str:
    """Return the triples that the QIR agent of a run returned, as text; "–" if there are none."""
    return ", ".join(map(str, run.output("qir").facts)) or "–"


def _find_other_name(selection: Link) -> Problem:
    """Return "" if all words of a name are in the label or the types of its vertex, else feedback."""
    name, vertex = selection.entity, selection.vertex
    if vertex is None:
        return ""
    known = " ".join((vertex.label, *vertex.types))
    if set(WORD.findall(name.casefold())) <= set(WORD.findall(known.casefold())):
        return ""
    return say("result.other-name", name=name, label=vertex.label)
