"""What an answer does not say by itself: that a name of the question names other things as well."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from kgwb.flow import Answer, Candidate, Link
from kgwb.kg.text import exact_form
from kgwb.run.steps import Step
from kgwb.text import list_first, shorten

MAX_NAME_CHARS = 80
"""Letters of a name that a remark shows."""


def remark_on_twins(answer: Answer, steps: Collection[Step]) -> Answer:
    """Return an answer with a remark for each vertex that was chosen among things of its name.

    Such a thing has the same label and the same types, and is not meant together with the vertex.
    There is no remark on a vertex that a person put in.
    """
    by_hand: set[str] = set()
    for step in steps:
        if step.origin == "by hand":
            by_hand.update(str(vertex.iri) for vertex in _vertices_of(step))
    remarks = dict.fromkeys(answer.remarks)
    for step in steps:
        for vertex in _vertices_of(step):
            twins = _find_twins(vertex, step.output)
            if twins and str(vertex.iri) not in by_hand:
                remarks[_describe_twins(vertex, twins)] = None
    if len(remarks) == len(answer.remarks):
        return answer
    return replace(answer, remarks=tuple(remarks))


def _vertices_of(step: Step) -> tuple[Candidate, ...]:
    """Return the vertices that a step chose for a mention; empty for any other step."""
    if step.done and isinstance(step.output, Link):
        return step.output.vertices
    return ()


def _find_twins(vertex: Candidate, link: Link) -> list[Candidate]:
    """Return the candidates that were not chosen, and have label and types of the vertex."""
    chosen = {each.iri for each in link.vertices}
    label = exact_form(vertex.label)
    types = set(vertex.types)
    twins = []
    for candidate in link.candidates:
        is_alike = exact_form(candidate.label) == label and set(candidate.types) == types
        if is_alike and candidate.iri not in chosen:
            twins.append(candidate)
    return twins


def _describe_twins(vertex: Candidate, twins: Collection[Candidate]) -> str:
    """Return a remark that names the vertex, and the things that have its name."""
    name = shorten(vertex.label_with_types, MAX_NAME_CHARS)
    others = list_first([f"<{twin.iri}>" for twin in twins])
    return f"{len(twins) + 1} things are named {name}: this is about <{vertex.iri}>, not {others}"
