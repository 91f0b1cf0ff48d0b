"""The gate every query passes: read-only SPARQL 1.1, known by its parse and never by its first word.

What is checked and what is sent are the same text, and it means the same to every engine: comments are
blanked out (engines disagree on where they end), line ends are ``\\n``, and a codepoint escape stands only
inside a string or an IRI, for a character that could not end it.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from threading import Lock
from typing import Any, Literal

import pyoxigraph
from pyparsing import ParseBaseException
from rdflib import BNode, URIRef
from rdflib.plugins.sparql.parser import parseQuery
from rdflib.plugins.sparql.parserutils import CompValue

from kgwb.errors import GraphError, QueryError, QueryRefusedError
from kgwb.terms import Term

MAX_DEPTH = 100
MAX_SYMBOLS = 10_000
"""Brackets inside each other, and signs outside strings and IRIs: many more overflow Oxigraph's stack."""
PARSER_RECURSION_LIMIT = 15_000
"""Python frames while a query is parsed: rdflib takes 49 for a bracket and 11 for a triple pattern."""
MAX_EXPLAINED_TOKENS = 120
"""Tokens of a broken query whose error Oxigraph explains: beyond, planning what it can parse takes long."""

QueryForm = Literal["select", "ask", "construct", "describe"]

_NON_MONOTONIC_NODES = {
    "OptionalGraphPattern",
    "MinusGraphPattern",
    "Builtin_EXISTS",
    "Builtin_NOTEXISTS",
}
_PN_CHARS_BASE = (
    "A-Za-zÀ-ÖØ-öø-\u02ff\u0370-\u037d\u037f-\u1fff\u200c\u200d\u2070-\u218f\u2c00-\u2fef\u3001-\ud7ff"
    "\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
_PN_CHARS_U = _PN_CHARS_BASE + "_"
_PN_CHARS = _PN_CHARS_U + "0-9\u00b7\u0300-\u036f\u203f\u2040\\-"
_PLX = r"%[0-9A-Fa-f]{2}|\\[_~.\-!$&'()*+,;=/?\#@%]"
_UCHAR = r"\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8}"
_ECHAR = rf"\\[tbnrf\"'\\]|{_UCHAR}"
# SPARQL 1.1, section 19.8; the longest match wins. A word is as long as a prefix would be, and digits that
# are no number stand together: nothing is read again from its next letter on.
_TOKEN = re.compile(
    rf"""
    (?P<space> [ \t\n]+ )
  | (?P<comment> \#[^\n]* )
  | (?P<string> \"\"\"(?:"{{0,2}}(?:[^"\\]|{_ECHAR}))*\"\"\" | '''(?:'{{0,2}}(?:[^'\\]|{_ECHAR}))*'''
      | "(?:[^"\\\n]|{_ECHAR})*"(?!") | '(?:[^'\\\n]|{_ECHAR})*'(?!') )
  | (?P<iri> <(?:[^<>"{{}}|^`\\\x00-\x20]|{_UCHAR})*> )
  | (?P<blank> _:[{_PN_CHARS_U}0-9](?:\.*[{_PN_CHARS}])* )
  | (?P<name> (?P<prefix> (?:[{_PN_CHARS_BASE}](?:\.*[{_PN_CHARS}])*)? ) :
      (?: (?:[{_PN_CHARS_U}:0-9]|{_PLX}) (?:\.*(?:[{_PN_CHARS}:]|{_PLX}))* )? )
  | (?P<variable> [?$][{_PN_CHARS_U}0-9]+ )
  | (?P<tag> @[A-Za-z]+(?:-[A-Za-z0-9]+)* )
  | (?P<number> (?P<double>(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)[eE][+-]?[0-9]++) (?!\.?\w)
      | (?P<decimal>[0-9]*+\.[0-9]++) (?!\.?\w) | [0-9]++ (?!\.?\w) )
  | (?P<word> (?:[^\W\d]|[{_PN_CHARS_BASE}])(?:\.*[\w{_PN_CHARS}])* )
  | (?P<other> [0-9]+ | [^"'\\\#\x00-\x1f\x7f] )
    """,
    re.VERBOSE,
)
_CODEPOINT_ESCAPE = re.compile(rf"(?<!\\)(?:\\\\)*({_UCHAR})")
_AMBIGUOUS_ESCAPE = re.compile(r"(?<!\\)(?:\\\\)+(?:u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8})")
_READABLE_EXPECTATION = r'"[^"]+"|(?!LATERAL|SERVICE)[A-Z ]+|The SELECT[\w ]+'
_ESCAPE_HINT = "write the character itself"
_STANDARD_SCHEME = re.compile("<(?:https?|urn|tag):", re.IGNORECASE)
"""Names that do not reach into an engine, as Virtuoso's ``bif:`` and ``sql:`` and Jena's ``java:`` do."""
_READ_ONLY_FUNCTION = re.compile("bif:(?:contains|st_[a-z_]+)", re.IGNORECASE)
"""Functions of Virtuoso that only read, for search and for places."""
_UPDATE_KEYWORD = re.compile(
    r"(?:^|[;}>])\s*(INSERT|DELETE|LOAD|CLEAR|CREATE|DROP|COPY|MOVE|ADD|WITH)\b", re.IGNORECASE
)
_ALIAS_EXPRESSION = re.compile(r"\((.*)\bAS\s+[?$](\w+)\s*\)", re.DOTALL | re.IGNORECASE)
LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_INVALID_IRI_CHARACTER = re.compile(r'[<>"{}|^`\\\x00-\x20\ud800-\udfff]')
LANGUAGE_TAG = re.compile(r"[A-Za-z]+(?:-[A-Za-z0-9]+)*")
_STRING_ESCAPES = str.maketrans(
    {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}
)
_PLACEHOLDERS = {"space": " ", "comment": " ", "string": '"s"', "iri": "<%>", "number": "1"}
"""What stands for a token in the shape of a query: an IRI may not be read as less-than there."""
PARSE_ERRORS = (ParseBaseException, TypeError, ValueError)
"""What rdflib's parser raises for a text that is no query."""
_parser_lock = Lock()


@dataclass(frozen=True, slots=True)
class ValidatedQuery:
    """A query that passed the gate."""

    form: QueryForm
    accepts_limit: bool
    """Whether a LIMIT fits at its end: it is no ASK, has none, and no VALUES clause, after which none may
    follow."""
    is_monotonic: bool
    """Whether every row found in a part of the graph is a row of the whole: nothing in it counts, ranks and
    limits, or asks for what is not there."""
    variables: tuple[str, ...]
    """Names of the columns of a SELECT; none for ``*``, and of other forms."""
    service_count: int
    """SERVICE clauses in it."""
    text: str = ""
    """What to send: the query with comments blanked out and line ends as ``\\n``, of the same layout."""
    skeleton: str = ""
    """The text with a placeholder for each string, IRI and number."""
    undeclared_prefixes: tuple[str, ...] = ()
    """Prefixes used without a declaration; some endpoints know them, a file does not."""


@lru_cache(maxsize=128)  # an endpoint asks twice for each query; long ones must not pile up
def validate_query(
    query: str, *forms: QueryForm, allow_service: bool = False, allowed_service_iri: str = ""
) -> ValidatedQuery:
    """What the gate learns of a query that only reads, and is of one of the ``forms`` if any are named.

    ``allowed_service_iri`` is the IRI of the engine's own service, without brackets, that kgwb's own search of
    labels may use where others need leave; it never comes with a query from elsewhere. Raises QueryRefusedError for an
    update, and (without leave) for SERVICE and for functions by which an engine runs code of its own, and
    QueryError where it is of another form or does not parse, with line and column.
    """
    query = query.replace("\r\n", "\n").replace("\r", "\n")
    if not query.isascii() and (half := LONE_SURROGATE.search(query)):
        raise _error_at(query, half.start(), "there is half a character", "read the text as UTF-8")
    # Engines expand codepoint escapes before or after reading tokens: pass those where this is the same
    if escape := _AMBIGUOUS_ESCAPE.search(query):
        raise _error_at(
            query, escape.start(), "it is unclear whether this is an escape", _ESCAPE_HINT
        )
    for escape in _CODEPOINT_ESCAPE.finditer(query):
        code = int(escape[1][2:], 16)
        harmless = (
            chr(code).isalnum() if code < 0x80 else code >= 0xA0 and not 0xD800 <= code < 0xE000
        )
        if not harmless or code > 0x10FFFF:
            raise _error_at(
                query, escape.start(1), f"the escape {escape[1]} may end a token", _ESCAPE_HINT
            )
    tokens, text, shape = tokenize(query)
    if not allow_service and (function := _find_unsafe_function(tokens)):
        raise _permission_error(f"calls {function}, by which an engine may do more than read")
    # The tokens are searched too, so that no way of reading "a<b" can hide the clause from the parse.
    words = {token[0].upper() for token in tokens if token.lastgroup == "word"}
    words = {word for word in words if "SERVICE" in word}
    after = [(before[0].upper(), token) for before, token in pairwise(tokens)]
    services = [token[0] for before, token in after if before == "SERVICE"]
    known = (
        allowed_service_iri
        and words == {"SERVICE"}
        and set(services) == {f"<{allowed_service_iri}>"}
    )
    if words and not allow_service and not known:
        raise _permission_error("asks another endpoint (SERVICE)")
    declared = {token["prefix"] for before, token in after if before == "PREFIX"}
    prefixes = dict.fromkeys(token["prefix"] for token in tokens if token.lastgroup == "name")
    undeclared = tuple(prefix for prefix in prefixes if prefix not in declared)
    try:
        try:
            parsed = _parse_skeleton(shape)
        except (
            PARSE_ERRORS
        ):  # a "<" without spaces may be less-than in the text and an IRI in the shape
            parsed = _parse_skeleton(re.sub(_UCHAR, "u", text))
    except PARSE_ERRORS:
        raise _syntax_error(text, shape, undeclared, bool(words)) from None
    except RecursionError:
        raise _too_large_error() from None
    if (
        parsed.service_count
        and not allow_service
        and not (known and parsed.service_count == len(services))
    ):
        raise _permission_error("asks another endpoint (SERVICE)")
    if forms and parsed.form not in forms:
        wanted = " or ".join(map(str.upper, forms))
        raise QueryError(f"this is no {wanted} query but {parsed.form.upper()}")
    return replace(parsed, text=text, skeleton=shape, undeclared_prefixes=undeclared)


@dataclass(frozen=True, slots=True)
class QueryClauses:
    """The parts of a SELECT or ASK that stand outside of each other."""

    prologue: str
    dataset: str
    """FROM clauses."""
    where: str
    """What stands in the outermost braces."""
    modifiers: str
    """What follows: groups, order, limit, VALUES."""
    aliases: tuple[tuple[str, str], ...]
    """Expressions with the names that SELECT or GROUP BY gives them (AS)."""


def split_clauses(query: str) -> QueryClauses:
    """A SELECT or ASK in its parts. Raises what ``checked`` raises."""
    text = validate_query(query, "select", "ask").text
    marks: dict[str, int] = {}
    aliases: list[tuple[str, str]] = []
    depth = opened = 0
    for token in tokenize(text)[0]:
        sign = token[0].upper()
        depth -= sign in ("}", ")", "]")
        if depth == 0:
            marks.setdefault(sign, token.start())
            opened = token.start() if sign == "(" else opened
            if sign == ")" and (part := _ALIAS_EXPRESSION.fullmatch(text, opened, token.end())):
                aliases.append((part[1], part[2]))
        depth += sign in ("{", "(", "[")
    begin, brace, end = marks.get("SELECT", marks.get("ASK", 0)), marks["{"], marks["}"]
    dataset = text[marks.get("FROM", brace) : marks.get("WHERE", brace)] if "FROM" in marks else ""
    return QueryClauses(
        text[:begin], dataset, text[brace + 1 : end], text[end + 1 :], tuple(aliases)
    )


def n3(term: Term) -> str:
    """The term as it is written in a query.

    Raises QueryError for an IRI or a language tag that cannot be written, and for a blank node: in a query it
    would be a variable.
    """
    if isinstance(term, URIRef):
        if not is_valid_iri(term):
            raise QueryError(
                f"{str(term)!r} is not an IRI", hint="percent-encode what an IRI may not hold"
            )
        return f"<{term}>"
    if isinstance(term, BNode):
        raise QueryError(
            f"the blank node _:{term} cannot be asked for", hint="ask by an IRI or a literal"
        )
    if term.language:
        if not LANGUAGE_TAG.fullmatch(term.language):
            raise QueryError(f"{term.language!r} is not a language tag")
        return f"{string_literal(term)}@{term.language}"
    return f"{string_literal(term)}^^{n3(term.datatype)}" if term.datatype else string_literal(term)


def values_clause(variable: str, terms: Iterable[Term]) -> str:
    """A VALUES clause that binds the variable to each of the terms."""
    return f"VALUES {variable} {{ {' '.join(map(n3, dict.fromkeys(terms)))} }}"


def walk_nodes(tree: Any, skip: Collection[str] = ()) -> Iterator[CompValue]:
    """The nodes of rdflib's parse or algebra of a query, in order.

    Those named in ``skipped`` are left out with what is in them; of a MINUS that is its right side.
    """
    left = [tree]
    while left:
        node = left.pop()
        if isinstance(node, CompValue):
            if node.name == "Minus" and "Minus" in skip:
                left.append(node.p1)
            elif node.name not in skip:
                yield node
                left.extend(reversed(list(node.values())))
        elif not isinstance(node, str) and hasattr(node, "__iter__"):
            left.extend(reversed(list(node)))


def is_valid_iri(iri: str) -> bool:
    """Whether an IRI can stand in a query: some engines hold IRIs that cannot."""
    return not _INVALID_IRI_CHARACTER.search(iri)


def is_serializable(term: Term) -> bool:
    """Whether a term can stand in a query: not a blank node, and no IRI that is not writable."""
    return not isinstance(term, BNode) and (not isinstance(term, URIRef) or is_valid_iri(term))


def string_literal(text: str) -> str:
    """The text as a string literal of a query; raises QueryError for a lone surrogate."""
    if LONE_SURROGATE.search(text):
        raise QueryError(f"{text!r} holds half a character", hint="read the text as UTF-8")
    # A backslash before a "u" is kept apart from an escape by escaping the letter (see _AMBIGUOUS).
    escaped = re.sub(
        r"\\\\([uU])",
        lambda match: rf"\\\u00{ord(match[1]):02X}",
        str(text).translate(_STRING_ESCAPES),
    )
    return f'"{escaped}"'


def tokenize(query: str) -> tuple[list[re.Match[str]], str, str]:
    """The tokens but for spaces and comments, the text to send, and its shape."""
    tokens: list[re.Match[str]] = []
    text, shape = [], []
    position = signs = depth = 0
    while position < len(query):
        token = _TOKEN.match(query, position)
        if token is None and query[position : position + 2] in ("\\u", "\\U"):
            hint = "escapes are read inside strings and IRIs only; write the characters themselves"
            place = _line_and_column(query, position)
            raise QueryRefusedError(
                f"the query hides what it says behind an escape {place}", hint=hint
            )
        if token is None:
            char = query[position]
            what = "a string that does not end" if char in "\"'" else f"the character {char!r}"
            raise _error_at(query, position, f"there is {what}")
        kind, part = token.lastgroup or "", token[0]
        if kind == "other":
            signs += 1
            depth += (part in "([{") - (part in ")]}")
            if signs > MAX_SYMBOLS or depth > MAX_DEPTH:
                raise _too_large_error()
        if kind not in ("space", "comment"):
            tokens.append(token)
        text.append(" " * len(part) if kind == "comment" else part)
        # rdflib cannot parse a negative decimal; the grammar lets a double stand wherever a decimal may
        fraction = token["double"] or token["decimal"]
        shape.append("1e0" if fraction else _PLACEHOLDERS.get(kind, part))
        position = token.end()
    return tokens, "".join(text), "".join(shape)


def _find_unsafe_function(tokens: list[re.Match[str]]) -> str:
    """The name of a function that may do more than read; empty if none is called."""
    inside = {"bif", "sql"}
    for word, name, iri in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if word[0].upper() == "PREFIX" and not _STANDARD_SCHEME.match(iri[0]):
            inside.add(name["prefix"])
    for name, bracket in pairwise(tokens):
        reaching = name["prefix"] in inside or (name["iri"] and not _STANDARD_SCHEME.match(name[0]))
        if bracket[0] == "(" and reaching and not _READ_ONLY_FUNCTION.fullmatch(name[0]):
            return name[0]
    return ""


@contextmanager
def exclusive_parser() -> Iterator[None]:
    """rdflib's parser for one thread at a time, with frames for long and deep queries wherever it is called.

    The parser completes itself at first use: two threads doing so at once spoil it for good.
    """
    with _parser_lock:
        before = sys.getrecursionlimit()
        sys.setrecursionlimit(max(before, PARSER_RECURSION_LIMIT))
        try:
            yield
        finally:
            sys.setrecursionlimit(before)


@lru_cache(maxsize=4096)
def _parse_skeleton(shape: str) -> ValidatedQuery:
    """What rdflib's parse says of all queries of a shape."""
    with exclusive_parser():
        query = parseQuery(shape)[1]
    kinds = Counter(node.name for node in walk_nodes(query))
    ranked = {"OrderClause", "LimitOffsetClauses"} <= kinds.keys()
    limited = query.limitoffset and query.limitoffset.limit is not None
    return ValidatedQuery(
        form=query.name.removesuffix("Query").lower(),
        accepts_limit=not (query.name == "AskQuery" or limited or query.valuesClause),
        is_monotonic=not ranked
        and not any(kind in _NON_MONOTONIC_NODES or "Aggregate_" in kind for kind in kinds),
        variables=tuple(str(column.var or column.evar) for column in query.projection or ()),
        service_count=kinds["ServiceGraphPattern"],
    )


def _syntax_error(text: str, shape: str, undeclared: tuple[str, ...], service: bool) -> GraphError:
    """What to say of a text that is no query; Oxigraph's parser knows best where it breaks."""
    if update := _UPDATE_KEYWORD.search(shape):
        hint = "only SELECT, ASK, CONSTRUCT and DESCRIBE are sent"
        return QueryRefusedError(
            f"the query would change the graph ({update[1].upper()})", hint=hint
        )
    position, expected = len(text), "SELECT, ASK, CONSTRUCT or DESCRIBE" if not text.strip() else ""
    tokens = sum(token.lastgroup != "space" for token in _TOKEN.finditer(shape))
    try:
        if not service and tokens <= MAX_EXPLAINED_TOKENS:
            with suppress(
                RuntimeError, ValueError, OSError
            ):  # it parses there, and cannot be executed
                pyoxigraph.Store().query(text, prefixes=dict.fromkeys(undeclared, "x:"))
    except SyntaxError as error:
        if match := re.match(
            r"error at (\d+):(\d+): expected (?:one of )?(.*)", error.msg, re.DOTALL
        ):
            lines = text.split("\n")[: int(match[1])]
            position = sum(len(line) + 1 for line in lines[:-1]) + int(match[2]) - 1
            expected = ", ".join(
                item for item in match[3].split(", ") if re.fullmatch(_READABLE_EXPECTATION, item)
            )
    return _error_at(
        text, position, f"expected {expected}" if expected else "what follows cannot stand here"
    )


def _too_large_error() -> QueryError:
    most = f"about 1,000 patterns, {MAX_SYMBOLS:,} signs and {MAX_DEPTH} brackets inside each other at most"
    message = "the query is too long or nested too deeply to be checked"
    return QueryError(message, hint=f"ask in several queries, of {most}")


def _permission_error(what: str) -> QueryRefusedError:
    return QueryRefusedError(
        f"the query {what}", hint="open the graph with allow_service=True to allow it"
    )


def _line_and_column(text: str, position: int) -> str:
    line = text.count("\n", 0, position) + 1
    return f"at line {line}, column {position - text.rfind(chr(10), 0, position)}"


def _error_at(text: str, position: int, what: str, hint: str = "") -> QueryError:
    near = text[position : position + 30].partition("\n")[0]
    message = f"the query does not parse {_line_and_column(text, position)}: {what}"
    return QueryError(f"{message} (near {near!r})" if near else message, hint=hint)
