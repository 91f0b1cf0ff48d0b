"""The values of an answer as a person reads them: lists as their members, each value once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Mapping
from dataclasses import replace
from itertools import chain
from typing import Any

from rdflib import RDF, RDFS, BNode, Literal

from kgwb.kg.base import Graph
from kgwb.kg.nodes import Nodes, read_nodes
from kgwb.run.answers import Answer, Value, with_display_names
from kgwb.terms import Term, describe_term, is_number, local_part, value_of_term
from kgwb.text import list_first


def read_values(
    kg: Graph,
    answer: Answer,
    known: Mapping[Any, str] | None = None,
    *,
    reads_numbers: bool = False,
    shows_units: bool = False,
) -> Answer:
    """Return a copy of an answer with its values as a person reads them, and with display names.

    A container is replaced by its members, in their order. A blank node is labelled by its name, or
    by what it has. With ``reads_numbers``, a node that stands for a number is replaced by it. With
    ``shows_units``, a number that a blank node has is labelled with its units. Values that differ in
    language, datatype or spelling only are one value, and so is a member that stands in a list
    several times: remarks say so. If nothing but empty containers was found, the answer is a text
    that says so. The graph is asked about blank nodes, if there are any, and for names unless
    ``known`` has all of them.
    """
    answer = with_display_names(kg, answer, known)
    terms = chain(*answer.support, *(value.terms for value in answer.values))
    if not any(isinstance(term, BNode) or term == RDF.nil for term in terms):
        return _merge_equal_values(answer)
    nodes = read_nodes(kg, answer.support, {str(iri): name for iri, name in answer.names})
    values: list[Value] = []
    remarks = list(answer.remarks)
    for value in answer.values:
        members = None if value.row else nodes.members(value.term)
        if members is None:
            values.append(_read_value(value, nodes, reads_numbers))
            continue
        for member, times in Counter(members).items():
            label = nodes.describe(member)
            support = (*value.support, (value.term, RDFS.member, member))
            values.append(replace(value, term=member, label=label, support=support))
            if times > 1:
                remarks.append(f"{label} stands {times} times in {nodes.describe(value.term)}")
    if shows_units:
        values = [_with_unit(value, nodes, answer.labels) for value in values]
    names = tuple(sorted(nodes.display_names().items()))
    read = replace(answer, values=tuple(values), remarks=tuple(remarks), names=names)
    if answer and not values:
        return replace(read, text="none: the list is empty", evidence=answer.support)
    return _merge_equal_values(read)


def _read_value(value: Value, nodes: Nodes, reads_numbers: bool) -> Value:
    """Return a value with a label for its blank nodes, or the numbers that they stand for.

    What the graph says of them supports it, too.
    """
    if not any(isinstance(term, BNode) for term in value.terms):
        return value
    cells: list[Term | None] = []
    support = dict.fromkeys(value.support)
    for cell in value.row or (value.term,):
        number = None
        if isinstance(cell, BNode):
            support.update(dict.fromkeys((cell, *fact) for fact in nodes.facts(cell)))
            number = nodes.number(cell) if reads_numbers else None
        cells.append(cell if number is None else number)
    bound = [cell for cell in cells if cell is not None]
    row = tuple(cells) if value.row else ()
    label = " · ".join(map(nodes.describe, bound))
    return replace(value, term=bound[0], label=label, row=row, support=tuple(support))


def _with_unit(value: Value, nodes: Nodes, labels: Collection[str]) -> Value:
    """Return a number with the units that its blank nodes have in its label, but for those of ``labels``."""
    if value.row or not is_number(value.term):
        return value
    units = set()
    for subject, _, object_ in value.support:
        if object_ == value.term and isinstance(subject, BNode):
            units.add(nodes.unit(subject))
    shown = " / ".join(sorted(units.difference(labels, [""])))
    return replace(value, label=f"{value.label} {shown}".strip())


def _merge_equal_values(answer: Answer) -> Answer:
    """Return an answer in which each value stands once, with the triples of all its forms.

    Forms of one value differ in language, datatype or spelling (``value_of_term``). The shortest is
    taken, and a remark names the others. Rows of a table stay as they are.
    """
    groups: dict[Hashable, list[Value]] = {}
    for value in answer.values:
        groups.setdefault(value.row or value_of_term(value.term), []).append(value)
    if len(groups) == len(answer.values):
        return answer
    values = []
    remarks = list(answer.remarks)
    for same in groups.values():
        plainest = min(same, key=lambda value: len(value.label))
        support = dict.fromkeys(chain.from_iterable(value.support for value in same))
        values.append(replace(plainest, support=tuple(support)))
        forms = dict.fromkeys(value.term for value in same)
        if len(forms) > 1:
            described = [f"{form} ({local_part(describe_term(form))})" for form in forms]
            remarks.append(
                f"{plainest.label} is one value in {len(forms)} forms: {list_first(described)}"
            )
    return replace(answer, values=tuple(values), remarks=tuple(remarks))


def count_values(answer: Answer) -> Answer:
    """Return the number of values of an answer as an answer, which stands on their triples."""
    number = len(answer.values)
    value = Value(Literal(number), str(number), answer.support)
    return replace(answer, kind="count", values=(value,), text="", evidence=())
