"""What is asserted of the answer to a question beside its gold, and whether it holds.

A row of a results file has what was asserted (``kgwb.bench.questions.Assertions``) and all that is needed
to check it, so an assertion can be changed after its question was asked.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from kgwb.bench.cost import Prices
from kgwb.bench.metrics import is_iri, normalize_value
from kgwb.bench.questions import Assertions, BenchQuestion
from kgwb.errors import GraphError, InputError, QueryError
from kgwb.kg.algebra import analyze_query
from kgwb.kg.base import Graph
from kgwb.kg.term_text import TermIds

NOT_KNOWN = "not known"
"""Found in place of an amount that no server reported or no price is known for, and of queries that were not kept."""

_WRAPPED = re.compile(r'"(.*)"|<([A-Za-z][\w+.-]*:[^\s<>]+)>', re.DOTALL)
"""A literal in quotes, or an IRI in brackets."""


class Check(NamedTuple):
    """An assertion on one answer."""

    name: str
    """That of the field of ``Assertions``."""
    value: str
    """What is asserted, in words."""
    found: str
    """What was found instead; "" if the assertion holds."""

    def __str__(self) -> str:
        return f"assertion {self.name} {self.value}: {self.found or 'holds'}"


def resolve_assertions(questions: Iterable[BenchQuestion], kg: Graph) -> list[BenchQuestion]:
    """Return the questions, with CURIEs in their assertions replaced by IRIs. What was replaced stays as it is.

    The prefixes are those of the graph's files, and well-known ones. Raises InputError, which names the
    question, for another prefix, and for a predicate that is no IRI.
    """
    prefixes = {}
    for namespace, prefix in getattr(kg, "prefixes", {}).items():
        prefixes[prefix] = str(namespace)
    ids = TermIds(tuple(prefixes.items()))
    resolved = []
    for question in questions:
        changes: dict[str, tuple[str, ...]] = {}
        for name, values in question.assertions:
            if not values or not isinstance(values, tuple):
                continue
            try:
                changes[name] = tuple(_resolve(value, ids, "predicate" in name) for value in values)
            except QueryError as exc:
                known = ", ".join(sorted(dict(ids.namespaces)))
                raise InputError(
                    f"the assertion {name} of the question {question.id!r} cannot be checked: {exc.message}",
                    hint="write an IRI in angle brackets, a text in quotes, or use one of these prefixes: "
                    f"{known}",
                ) from exc
        if not changes:
            resolved.append(question)
            continue
        assertions = question.assertions.model_copy(update=changes)
        resolved.append(question.model_copy(update={"assertions": assertions}))
    return resolved


def _resolve(text: str, ids: TermIds, must_be_iri: bool) -> str:
    """Return the IRI that a text stands for; the text itself if that is a literal.

    An IRI is written in full, in brackets, or as a CURIE. A literal that looks like a CURIE is written in
    quotes. Quotes stay, and so do the brackets of an IRI that would look like a CURIE, since rows are
    resolved again by a retry. Raises QueryError for an unknown prefix, and for a literal if it
    ``must_be_iri``.
    """
    try:
        iri = str(ids.parse_id(text))
    except QueryError:
        if must_be_iri:
            raise QueryError(f"{text!r} is no IRI") from None
        return text
    if is_iri(iri):
        return iri
    if text.startswith("<"):
        return text
    raise QueryError(f"the prefix of {text!r} is not known")


def _unwrap(text: str) -> str:
    """Return a text without the quotes or the brackets that it stands in."""
    wrapped = _WRAPPED.fullmatch(text)
    return wrapped[wrapped.lastindex or 0] if wrapped else text


def check_assertions(row: Mapping[str, Any]) -> Iterator[Check]:
    """Yield each assertion on the answer of a row. After an error none holds."""
    if not row.get("assertions"):
        return
    asserted = Assertions.model_validate(row["assertions"])
    for kind, find_present in (("contains", _answers_of), ("uses_predicate", _predicates_of)):
        for name, is_wanted in ((kind, True), (f"not_{kind}", False)):
            for value in getattr(asserted, name):
                found = NOT_KNOWN
                present = find_present(row)
                if present is not None:
                    is_there = normalize_value(_unwrap(value)) in present
                    found = ""
                    if is_there != is_wanted:
                        found = "found" if is_there else "missing"
                yield Check(name, value, row["error"] or found)
    for name, amount in _amounts_of(row).items():
        limit = getattr(asserted, name)
        if limit is not None:
            found = ""
            if amount is None:
                found = NOT_KNOWN
            elif amount > limit:
                found = f"{amount:,.6g}"
            yield Check(name, f"{limit:,.6g}", row["error"] or found)


def list_failed(row: Mapping[str, Any]) -> list[str]:
    """Return each assertion on the answer of a row that does not hold, in words."""
    return [str(check) for check in check_assertions(row) if check.found]


def count_held(rows: Iterable[Mapping[str, Any]]) -> tuple[int, int]:
    """Return of how many rows all assertions hold, and how many rows have any."""
    held = asserted = 0
    for row in rows:
        if row.get("assertions"):
            asserted += 1
            held += not list_failed(row)
    return held, asserted


def _answers_of(row: Mapping[str, Any]) -> set[Hashable]:
    return set(map(normalize_value, row["answers"]))


def _predicates_of(row: Mapping[str, Any]) -> set[Hashable] | None:
    """Return the predicates of the queries that an answer came from, and of the triples that support it.

    None if not all are known. Some systems take predicates as values of a variable, or send no query.
    """
    if "answer_queries" not in row:
        return None
    predicates = set(map(normalize_value, row.get("support_predicates", ())))
    try:
        for sparql in row["answer_queries"]:
            for _, predicate, _ in analyze_query(sparql).steps:
                predicates.add(normalize_value(predicate.strip("<>")))
    except GraphError:
        return None
    return predicates


def _amounts_of(row: Mapping[str, Any]) -> dict[str, float | None]:
    """Return what the question of a row used, by the assertion that limits it; None for what is not known."""
    tokens = None
    with suppress(InputError):
        tokens = Prices(currency="").compute_amount(row, "tokens")
    return {
        "max_model_calls": row["model_calls"],
        "max_tokens": tokens,
        "max_seconds": row["seconds"],
        "max_cost": row.get("money"),
    }
