"""Executor: a query is run, and what is odd about its result is said in plain words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from rdflib import XSD, BNode, Literal, URIRef

from kgwb.errors import GraphError, GraphUnreachableError
from kgwb.flow import Iri, Term, counted, first_few
from kgwb.kg.algebra import PATH, Parts, Pattern, conjunction, parts_of, unknowns_of
from kgwb.kg.queries import counted as number_of
from kgwb.kg.sparql import checked
from kgwb.kg.survey import Survey, local_part
from kgwb.kg.text import local_name
from kgwb.run import Run, agent
from kgwb.systems.surveyor.records import Executed, Finding

MOST_PATTERNS = 8
"""Patterns of an empty query that are asked for one by one."""
NUMBER = re.compile(r"[-+]?\d+([.,]\d+)?")
LIMIT = re.compile(r"\bLIMIT\s+(\d+)\s*$", re.IGNORECASE)
ORDER = re.compile(r"ORDER\s+BY\s+(?:(?:ASC|DESC)\s*\(\s*)?(\?\w+)\s*\)?(?:\s|$)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Facts:
    """What of a survey the executor compares a query with."""

    one_way: tuple[Iri, ...] = ()
    """Predicates within a class that are not asserted both ways."""
    units: tuple[tuple[Iri, Iri, int], ...] = ()
    """A predicate of an amount, that of its unit or currency beside it, and how many of these there are."""

    def __str__(self) -> str:
        return f"{counted(len(self.one_way), 'predicate')} in one direction, {counted(len(self.units), 'amount')}"


def facts_of(survey: Survey) -> Facts:
    """The predicates of one direction, and the amounts that stand beside a unit or currency."""
    one_way = tuple(predicate for predicate, n, both in survey.both_ways if both < n)
    units: dict[tuple[URIRef, URIRef], int] = {}
    for kind in survey.classes:
        for node in [kind.properties, *(p.inner for p in kind.properties)]:
            if not 1 < len(node) <= 4:
                continue
            numbers = [p for p in node if any(v.of and v.of in NUMERIC for v in p.values)]
            for beside in node:
                kinds = sum(v.distinct for v in beside.values)
                if len(numbers) == 1 and beside not in numbers and 1 < kinds <= 12:
                    units[numbers[0].predicate, beside.predicate] = kinds
    return Facts(one_way, tuple((a, b, n) for (a, b), n in units.items()))


NUMERIC = frozenset(XSD[name] for name in ("decimal", "double", "float", "integer", "int", "long"))


@agent("executor", subject="place", kind="sparql")
def execute(place: str, sparql: str, facts: Facts, run: Run) -> Executed:
    """The rows of a query, or why it has none; an error of the graph is a finding, not the end."""
    try:
        form = checked(sparql).form
        if form not in ("select", "ask"):
            return Executed(sparql, error=f"it is a {form.upper()}; write a SELECT or an ASK")
        if form == "ask":
            truth = run.kg.ask(sparql)
            found = () if truth else tuple(_empty(sparql, run))
            return Executed(sparql, truth=truth, findings=(*found, *_direction(sparql, facts)))
        result = run.kg.select(sparql)
    except GraphUnreachableError:
        raise
    except GraphError as error:
        return Executed(sparql, error=error.message)
    rows = result.rows
    findings = [Finding(f"the result was cut at {counted(len(rows), 'row')}", True)] if result.cut else []
    findings += [] if rows else list(_empty(sparql, run))
    findings += [*_cells(result.variables, rows), *_level(sparql, rows, run)]
    findings += [*_direction(sparql, facts), *_units(sparql, facts)]
    if rows and all(str(cell) == "0" for row in rows for cell in row):
        findings += list(_empty(sparql, run))
    named = sorted({cell for row in rows for cell in row if isinstance(cell, URIRef)})
    names = tuple(sorted(run.kg.names(named).items())) if named else ()
    return Executed(sparql, result.variables, rows, tuple(findings), names=names)


def _cells(columns: Sequence[str], rows: Sequence[Sequence[Term | None]]) -> Iterator[Finding]:
    """What is odd about the cells: empty, twice, numbers as text."""
    for place, column in enumerate(columns):
        cells = [row[place] for row in rows]
        if empty := sum(cell is None for cell in cells):
            yield Finding(
                f"?{column} is empty in {empty} of {counted(len(cells), 'row')}", empty == len(cells)
            )
        texts = [c for c in cells if isinstance(c, Literal) and c.datatype in (None, XSD.string)]
        if texts and len(texts) == len(cells) and all(NUMBER.fullmatch(text) for text in texts):
            yield Finding(
                f"?{column} holds numbers that the graph keeps as texts: compared as they are, 9 comes after 10"
            )
    if twice := len(rows) - len({tuple(row) for row in rows}):
        yield Finding(f"{counted(twice, 'row')} repeat another one; DISTINCT would leave them out", True)


def _level(sparql: str, rows: Sequence[Sequence[Term | None]], run: Run) -> Iterator[Finding]:
    """Whether rows beyond a LIMIT are level with the last one within it."""
    limit, order = LIMIT.search(sparql), ORDER.search(sparql)
    if not (limit and order and len(rows) == int(limit[1])):
        return
    name = order[1]
    columns = checked(sparql).variables
    wider = f"{sparql[: limit.start()]}LIMIT {int(limit[1]) + 20}"
    if name[1:] not in columns:
        wider = re.sub(
            r"\bSELECT\s+(DISTINCT\s+)?", rf"SELECT \1{name} ", wider, count=1, flags=re.IGNORECASE
        )
    with suppress(GraphError):
        more = run.kg.select(wider)
        place = more.variables.index(name[1:])
        values = [row[place] for row in more.rows]
        level = [value for value in values[len(rows) :] if value == values[len(rows) - 1]]
        if level:
            yield Finding(
                f"the LIMIT cuts among equals: {counted(len(level), 'more row')} have the same {name}",
                int(limit[1]) == 1,
            )


def _empty(sparql: str, run: Run) -> Iterator[Finding]:
    """Which pattern leaves a query empty, and whether the other direction holds."""
    try:
        parts: Parts = parts_of(sparql)
    except GraphError:
        return
    patterns = [pattern for pattern in parts.patterns if PATH not in pattern][:MOST_PATTERNS]
    lonely = [pattern for pattern in patterns if not _holds(pattern, run)]
    for s, p, o in lonely:
        turned = not o.startswith('"') and _holds((o, p, s), run)
        other = "; in the other direction it holds" if turned else ""
        yield Finding(f"nothing in the graph matches {_words((s, p, o), run)}{other}", True)
    if lonely or parts.other or len(patterns) < 2:
        return
    for pattern in patterns:
        rest = [other for other in patterns if other != pattern]
        held = set(re.findall(r"\?\w+", parts.filters)) <= set(unknowns_of(rest))
        body = f"{conjunction(rest)} {parts.filters if held else ''}"
        with suppress(GraphError):
            n = number_of(run.kg.select(f"SELECT (COUNT(*) AS ?n_) WHERE {{ {body} }}").rows[0][0])
            if n:
                yield Finding(f"without {_words(pattern, run)} there are {counted(n, 'match')}")
    if parts.filters:
        with suppress(GraphError):
            if run.kg.ask(f"ASK {{ {conjunction(patterns)} }}"):
                yield Finding(f"without the filters there are matches: {parts.filters[:300].strip()}")


def _holds(pattern: Pattern, run: Run) -> bool:
    with suppress(GraphError):
        return run.kg.ask(f"ASK {{ {conjunction([pattern])} }}")
    return True


def _words(pattern: Pattern, run: Run) -> str:
    """A pattern with the names of its terms."""
    iris = [URIRef(end[1:-1]) for end in pattern if end.startswith("<")]
    names = run.kg.names(iris) if iris else {}
    return " ".join(
        f"{local_part(end[1:-1])} “{names.get(URIRef(end[1:-1])) or local_name(end[1:-1])}”"
        if end.startswith("<")
        else end
        for end in pattern
    )


def _direction(sparql: str, facts: Facts) -> Iterator[Finding]:
    """Predicates that are asserted one way, and followed one way."""
    with suppress(GraphError):
        used = [p[1:-1] for _, p, _ in parts_of(sparql).patterns if p.startswith("<")]
        once = [iri for iri in facts.one_way if used.count(str(iri)) == 1]
        for iri in once:
            yield Finding(
                f"{local_part(iri)} is asserted in one direction only, and followed in one direction here"
            )


def _units(sparql: str, facts: Facts) -> Iterator[Finding]:
    """Amounts whose unit or currency the query does not look at."""
    text = " ".join(re.findall(r"[\w:/#.-]+", sparql))
    for amount, unit, kinds in facts.units:
        if re.search(rf"[:#/]{re.escape(local_part(amount))}\b", text) and not re.search(
            rf"[:#/]{re.escape(local_part(unit))}\b", text
        ):
            yield Finding(
                f"{local_part(amount)} stands beside {local_part(unit)}, of which there are {kinds}; the query does not look at it",
                True,
            )


def result_text(executed: Executed, most: int) -> str:
    """A result as a reviewer reads it: the findings, and the first rows with labels in quotes."""
    if executed.error:
        return f"! It could not be run: {executed.error}"
    names = dict(executed.names)
    lines = (
        [str(executed.truth).lower()] if executed.truth is not None else [counted(len(executed.rows), "row")]
    )
    lines += [f"{'! ' if finding.wrong else '- '}{finding}" for finding in executed.findings]

    def cell(term: Term | None) -> str:
        if isinstance(term, URIRef):
            return f"{local_part(term)} {Literal(names.get(term, '')[:60]).n3()}"
        return "" if term is None else "[]" if isinstance(term, BNode) else Literal(str(term)[:80]).n3()

    if executed.rows:
        lines.append(" | ".join(f"?{column}" for column in executed.columns))
        lines += [" | ".join(map(cell, row)) for row in executed.rows[:most]]
        if len(executed.rows) > most:
            lines.append(f"and {counted(len(executed.rows) - most, 'more row')}")
    return "\n".join(lines)


__all__ = ["Facts", "execute", "facts_of", "first_few", "result_text"]
