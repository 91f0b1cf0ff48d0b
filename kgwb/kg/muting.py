"""Queries of a graph as if it lacked some triples: the query changes, the graph does not.

Each triple pattern that could match a muted triple gets a FILTER in its own group, which is why the same
rewriting holds in OPTIONAL, UNION, MINUS, EXISTS, subqueries and below aggregates. Blank nodes and property
paths have no variables to filter by: they are written out first, in a subquery, which adds no column.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set
from functools import lru_cache
from itertools import count
from typing import Any

from rdflib import XSD, BNode, Literal, URIRef, Variable
from rdflib.paths import AlternativePath, InvPath, NegatedPath, Path, SequencePath
from rdflib.plugins.sparql.algebra import translateQuery
from rdflib.plugins.sparql.parser import parseQuery
from rdflib.plugins.sparql.sparql import SPARQLError

from kgwb.errors import QueryError
from kgwb.kg.sparql import (
    PARSE_ERRORS,
    exclusive_parser,
    n3,
    string_literal,
    tokenize,
    validate_query,
    walk_nodes,
)
from kgwb.terms import Term, Triple, Triples

_NUMERIC_DATATYPES = {XSD.integer, XSD.decimal, XSD.double, XSD.float}
_PATTERN_KEYWORDS = {"A", "TRUE", "FALSE"}
"""The only words that stand in triple patterns."""
_BRACKET_KEYWORDS = {"CONSTRUCT", "WHERE", "VALUES", "SERVICE", "GRAPH", "FILTER", "BIND"}
_REWRITE_HINT = "write it more plainly, or ask the graph as it is"
RdflibPattern = tuple[Any, Any, Any]
"""A triple pattern in rdflib's terms."""


def add_muted(muted: Triples, triples: Sequence[Triple]) -> Triples:
    """Triples to mute beside others. Raises QueryError for a blank node, which no query names, and a text."""
    for triple in triples:
        if not all(isinstance(term, URIRef | BNode | Literal) for term in triple):
            hint = (
                "take a triple of value.support, or write each of its terms as rdflib.URIRef(...)"
            )
            raise QueryError(f"{triple!s:.200} is no triple of IRIs and literals", hint=hint)
        _ = [n3(term) for term in triple]
    return tuple(dict.fromkeys((*muted, *triples)))


@lru_cache(maxsize=1024)
def rewrite_without(query: str, triples: Triples) -> str:
    """A query, so that no pattern of it matches a muted triple; the same if none could.

    A SERVICE asks another graph, and stays as it is. Raises what ``checked`` raises, and QueryError where a
    muted triple cannot be kept out: of DESCRIBE, and of paths over its predicate that are of any length,
    optional or negated.
    """
    if not triples:
        return query
    asked = validate_query(query, allow_service=True)
    if asked.form == "describe":
        raise _cannot_mute_error("what DESCRIBE gives is the engine's choice", "use CONSTRUCT")
    text, tokens = asked.text, tokenize(asked.text)[0]
    form = next(
        token for token in tokens if token[0].lower() == asked.form and token.lastgroup == "word"
    )
    blocks = _find_triples_blocks(tokens)
    parts: list[str] = []
    prologue, total, place = text[: form.start()], 0, 0
    for start, end in blocks:
        patterns = _parse_patterns(prologue, text[start:end].strip(" \n\t."))
        total += len(patterns)
        outside = text[:start] + text[end:]
        parts += (
            text[place:start],
            _TriplesBlock(patterns, triples, outside).rewrite(text[start:end]),
        )
        place = end
    with exclusive_parser():  # how many patterns rdflib reads, as a check on ``_blocks``
        try:
            parsed = parseQuery(asked.skeleton)[1]
        except PARSE_ERRORS:  # see ``checked``
            parsed = parseQuery(text)[1]
    read = (
        node for node in walk_nodes(parsed, ["ServiceGraphPattern"]) if node.name == "TriplesBlock"
    )
    if total != sum(sum(map(len, block.triples)) // 3 for block in read):
        raise _cannot_mute_error("its groups are not clear", 'write spaces around "<" and ">"')
    hidden = "".join([*parts, text[place:]])
    if hidden == text:
        return query
    following = tokens[tokens.index(form) + 1][0].upper()
    if asked.form == "construct" and following != "{":  # the short form takes no FILTER
        template = text[slice(*blocks[0])]
        return f"{hidden[: form.end()]} {{ {template} }} {hidden[form.end() :]}"
    return hidden


def _cannot_mute_error(why: str, hint: str = _REWRITE_HINT) -> QueryError:
    return QueryError(f"a muted triple cannot be kept out of this query: {why}", hint=hint)


# --- where the triple patterns stand


def _find_triples_blocks(tokens: Sequence[re.Match[str]]) -> list[tuple[int, int]]:
    """Where the runs of triple patterns stand; templates, VALUES and other endpoints have none."""
    spans: list[tuple[int, int]] = []
    run: list[re.Match[str]] = []
    inside = ["clause"]
    """What is open: a clause outside of groups, a group, an expression, or data, which has no patterns."""
    opening = ""
    """The word that says what the next bracket opens."""
    for token in tokens:
        sign = token[0].upper() if token.lastgroup in ("word", "other") else ""
        word = token.lastgroup == "word" and sign not in _PATTERN_KEYWORDS
        if inside[-1] == "group" and not (opening or word or sign in ("{", "}")):
            run.append(token)
            continue
        if run:
            spans.append((run[0].start(), run[-1].end()))
            run = []
        if sign == "{":
            data = inside[-1] == "data" or opening in ("CONSTRUCT", "VALUES", "SERVICE")
            inside.append("data" if data else "group")
            opening = ""
        elif sign == "(" and inside[-1] != "data":
            inside.append("expression")
            opening = opening if opening == "VALUES" else ""
        elif sign == "}" or (sign == ")" and inside[-1] == "expression"):
            inside.pop()
        elif sign == "SELECT" and inside[-1] == "group":
            inside[-1] = "clause"
        elif sign in _BRACKET_KEYWORDS:
            opening = sign
    return spans


def _parse_patterns(prologue: str, block: str) -> list[RdflibPattern]:
    """The triple patterns of a block, as rdflib reads them."""
    if not block:
        return []
    try:
        with exclusive_parser():
            node = translateQuery(parseQuery(f"{prologue}SELECT * WHERE {{ {block} }}")).algebra
    except (*PARSE_ERRORS, SPARQLError, NotImplementedError, RecursionError) as error:
        raise _cannot_mute_error(f"rdflib does not read {block[:80]!r} ({error})") from error
    return next(list(part.triples) for part in walk_nodes(node) if part.name == "BGP")


# --- what is filtered


class _TriplesBlock:
    """A run of triple patterns, and how it is written so that it passes over the muted triples."""

    def __init__(self, patterns: Sequence[RdflibPattern], muted: Triples, outside: str) -> None:
        self.patterns, self.muted, self.outside = patterns, muted, outside
        self.subjects = {s for s, _, _ in patterns}
        """They are no literals."""
        self._numbers = count(1)

    def rewrite(self, text: str) -> str:
        """The block as SPARQL: as it stands, with a FILTER for what could match, or written out anew."""
        touched = [pattern for pattern in self.patterns if self._may_match_muted(pattern)]
        if not any(isinstance(end, BNode | Path) for pattern in touched for end in pattern):
            filters = dict.fromkeys(
                line for pattern in touched for line in self._exclusion_filters(pattern)
            )
            return " ".join([text, *filters])
        for label in re.findall(r"_:[\w.-]*\w", text):
            if re.search(rf"{re.escape(label)}\b", self.outside):
                raise _cannot_mute_error(
                    f"the blank node {label} stands in several groups", "write a variable for it"
                )
        ends = [end for pattern in self.patterns for end in pattern]
        nodes = {
            node: self._new_variable()
            for node in dict.fromkeys(end for end in ends if isinstance(end, BNode))
        }
        self.subjects |= {nodes[node] for node in nodes if node in self.subjects}
        named = [(nodes.get(s, s), p, nodes.get(o, o)) for s, p, o in self.patterns]
        columns = " ".join(dict.fromkeys(f"?{end}" for end in ends if isinstance(end, Variable)))
        columns = columns or f"(1 AS ?{self._new_variable()})"
        return f"{{ SELECT {columns} WHERE {{ {' '.join(map(self._rewrite_pattern, named))} }} }}"

    def _new_variable(self) -> Variable:
        names = (f"hidden_{number}" for number in self._numbers)
        return Variable(next(name for name in names if name not in self.outside))

    def _may_match_muted(self, pattern: RdflibPattern) -> bool:
        """Whether a pattern could match a muted triple."""
        if isinstance(pattern[1], Path):
            return any(_path_uses(pattern[1], triple[1]) for triple in self.muted)
        return any(True for _ in self._exclusion_filters(pattern))

    def _exclusion_filters(self, pattern: RdflibPattern) -> Iterator[str]:
        """The conditions under which a pattern without a path passes over each muted triple."""
        for triple in self.muted:
            pairs = list(zip(pattern, triple, strict=True))
            if all(_can_match(end, term, self.subjects) for end, term in pairs):
                tests = dict.fromkeys(
                    _equality_condition(end, term)
                    for end, term in pairs
                    if isinstance(end, Variable)
                )
                yield f"FILTER(!({' && '.join(tests) or '1 = 1'}))"

    def _rewrite_pattern(self, pattern: RdflibPattern) -> str:
        """A pattern without blank nodes as SPARQL, with filters; a path over a muted predicate as steps."""
        s, p, o = pattern
        if not isinstance(p, Path) or not self._may_match_muted(pattern):
            filters = () if isinstance(p, Path) else self._exclusion_filters(pattern)
            return " ".join([*map(_node_to_sparql, pattern), ".", *filters])
        if isinstance(p, InvPath):
            return self._rewrite_pattern((o, p.arg, s))
        if isinstance(p, SequencePath):
            between = [self._new_variable() for _ in p.args[1:]]
            self.subjects |= {*between}
            ends = [s, *between, o]
            return " ".join(map(self._rewrite_pattern, zip(ends, p.args, ends[1:], strict=False)))
        if isinstance(p, AlternativePath):
            return " UNION ".join(f"{{ {self._rewrite_pattern((s, way, o))} }}" for way in p.args)
        raise _cannot_mute_error(
            f"the path {p.n3()} leads over its predicate", "use / | ^ instead of * + ? ! in it"
        )


def _can_match(end: Any, term: Term, subjects: Set[Any]) -> bool:
    """Whether a term of a pattern can stand for a term of the graph: literals match by value too."""
    if isinstance(end, Variable | BNode):
        return not (isinstance(term, Literal) and end in subjects)
    if not (isinstance(end, Literal) and isinstance(term, Literal)):
        return bool(end == term)
    kinds = [(each.language, each.datatype or XSD.string) for each in (end, term)]
    equal = str(end) == str(term) or (end.value is not None and end.value == term.value)
    return kinds[0] == kinds[1] and equal


def _equality_condition(variable: Variable, term: Term) -> str:
    if not isinstance(
        term, Literal
    ):  # not sameTerm, which Virtuoso denies of IRIs that VALUES binds
        return f"?{variable} = {n3(term)}"
    # Virtuoso compares what may be an IRI with a literal only after it was asked which of them it is, and
    # denies that equal numbers and dates are the same term
    equal = f"sameTerm(?{variable}, {n3(term)})"
    if term.datatype in _NUMERIC_DATATYPES:
        equal = f"?{variable} = {n3(term)}"
    elif term.datatype:
        equal = f"STR(?{variable}) = {string_literal(term)}"
    kind = f"DATATYPE(?{variable}) = {n3(term.datatype)} && " if term.datatype else ""
    return f"isLiteral(?{variable}) && {kind}{equal}"


def _path_uses(path: Any, predicate: URIRef) -> bool:
    """Whether a path may take a triple of the predicate."""
    if not isinstance(path, Path):
        return bool(path == predicate)
    inner = getattr(path, "args", None) or [
        getattr(path, "arg", None) or getattr(path, "path", None)
    ]
    return isinstance(path, NegatedPath) or any(_path_uses(step, predicate) for step in inner)


def _node_to_sparql(term: Any) -> str:
    if isinstance(term, Path):
        return str(term.n3())
    return f"?{term}" if isinstance(term, Variable) else n3(term)
