"""What an answer does not say by itself: that a name of the question names other things as well."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import replace
from typing import TypeAlias

from rdflib import URIRef

from kgwb.flow import Answer, Candidate, Link, RetrievedCandidates
from kgwb.kg.label_search import exact_form
from kgwb.records import to_data
from kgwb.run.steps import Step
from kgwb.text import list_first, shorten

Candidates: TypeAlias = tuple[Candidate, ...]
MAX_NAME_CHARS = 80
"""Letters of a name that a remark shows."""


def remark_on_twins(answer: Answer, steps: Collection[Step]) -> Answer:
    """Return an answer with a remark for each vertex that was chosen among things of its name.

    Such a thing has the same label and the same types, and is not meant together with the vertex. A
    vertex was chosen if a step linked it, or if a query of the answer names it. There is no remark
    on a vertex that a person put in.
    """
    remarks: dict[URIRef, str] = {}
    for step in steps:
        candidates, chosen = _find_choice(step, answer)
        for vertex in chosen:
            twins = _find_twins(vertex, candidates, chosen)
            if twins and not _was_put_in(vertex, steps):
                remarks.setdefault(vertex.iri, _describe_twins(vertex, twins))
    if not remarks:
        return answer
    return replace(answer, remarks=(*answer.remarks, *remarks.values()))


def _find_choice(step: Step, answer: Answer) -> tuple[Candidates, Candidates]:
    """Return the candidates that a step has, and those of them that were chosen; else nothing."""
    output = step.output
    if isinstance(output, Link):
        return output.candidates, output.vertices
    if isinstance(output, RetrievedCandidates):
        queries = "\n".join(answer.queries)
        chosen = [each for each in output.candidates if f"<{each.iri}>" in queries]
        return output.candidates, tuple(chosen)
    return (), ()


def _find_twins(vertex: Candidate, candidates: Candidates, chosen: Candidates) -> list[Candidate]:
    """Return the candidates that were not chosen, and have label and types of the vertex."""
    chosen_iris = {each.iri for each in chosen}
    label = exact_form(vertex.label)
    types = set(vertex.types)
    twins = []
    for candidate in candidates:
        is_alike = exact_form(candidate.label) == label and set(candidate.types) == types
        if is_alike and candidate.iri not in chosen_iris:
            twins.append(candidate)
    return twins


def _was_put_in(vertex: Candidate, steps: Collection[Step]) -> bool:
    """Return whether a person put in a value that names the vertex."""
    for step in steps:
        if step.origin == "by hand":
            value = json.dumps(to_data(step.output))
            if json.dumps(str(vertex.iri)) in value:
                return True
    return False


def _describe_twins(vertex: Candidate, twins: Collection[Candidate]) -> str:
    """Return a remark that names the vertex, and the things that have its name."""
    name = shorten(vertex.label_with_types, MAX_NAME_CHARS)
    others = list_first([f"<{twin.iri}>" for twin in twins])
    return f"{len(twins) + 1} things are named {name}: this is about <{vertex.iri}>, not {others}"
