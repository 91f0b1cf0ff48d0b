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
MAX_SIGNS = 10_000
"""Brackets inside each other, and signs outside strings and IRIs: many more overflow Oxigraph's stack."""
MAX_FRAMES = 15_000
"""Python frames while a query is parsed: rdflib takes 49 for a bracket and 11 for a triple pattern."""
MAX_EXPLAINED = 120
"""Tokens of a broken query whose error Oxigraph explains: beyond, planning what it can parse takes long."""

Form = Literal["select", "ask", "construct", "describe"]

_NOT_MONOTONE = {"OptionalGraphPattern", "MinusGraphPattern", "Builtin_EXISTS", "Builtin_NOTEXISTS"}
_BASE = (
    "A-Za-zÀ-ÖØ-öø-\u02ff\u0370-\u037d\u037f-\u1fff\u200c\u200d\u2070-\u218f\u2c00-\u2fef\u3001-\ud7ff"
    "\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
_U = _BASE + "_"
_CHARS = _U + "0-9\u00b7\u0300-\u036f\u203f\u2040\\-"
_PLX = r"%[0-9A-Fa-f]{2}|\\[_~.\-!$&'()*+,;=/?\#@%]"
_UNICODE = r"\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8}"
_ECHAR = rf"\\[tbnrf\"'\\]|{_UNICODE}"
# SPARQL 1.1, section 19.8; the longest match wins. A word is as long as a prefix would be, and digits that
# are no number stand together: nothing is read again from its next letter on.
_TOKEN = re.compile(
    rf"""
    (?P<space> [ \t\n]+ )
  | (?P<comment> \#[^\n]* )
  | (?P<string> \"\"\"(?:"{{0,2}}(?:[^"\\]|{_ECHAR}))*\"\"\" | '''(?:'{{0,2}}(?:[^'\\]|{_ECHAR}))*'''
      | "(?:[^"\\\n]|{_ECHAR})*"(?!") | '(?:[^'\\\n]|{_ECHAR})*'(?!') )
  | (?P<iri> <(?:[^<>"{{}}|^`\\\x00-\x20]|{_UNICODE})*> )
  | (?P<blank> _:[{_U}0-9](?:\.*[{_CHARS}])* )
  | (?P<name> (?P<prefix> (?:[{_BASE}](?:\.*[{_CHARS}])*)? ) :
      (?: (?:[{_U}:0-9]|{_PLX}) (?:\.*(?:[{_CHARS}:]|{_PLX}))* )? )
  | (?P<variable> [?$][{_U}0-9]+ )
  | (?P<tag> @[A-Za-z]+(?:-[A-Za-z0-9]+)* )
  | (?P<number> (?P<double>(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)[eE][+-]?[0-9]++) (?!\.?\w)
      | (?P<decimal>[0-9]*+\.[0-9]++) (?!\.?\w) | [0-9]++ (?!\.?\w) )
  | (?P<word> (?:[^\W\d]|[{_BASE}])(?:\.*[\w{_CHARS}])* )
  | (?P<other> [0-9]+ | [^"'\\\#\x00-\x1f\x7f] )
    """,
    re.VERBOSE,
)
_ESCAPE = re.compile(rf"(?<!\\)(?:\\\\)*({_UNICODE})")
_AMBIGUOUS = re.compile(r"(?<!\\)(?:\\\\)+(?:u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8})")
_READABLE = r'"[^"]+"|(?!LATERAL|SERVICE)[A-Z ]+|The SELECT[\w ]+'
_UNESCAPED = "write the character itself"
_PUBLIC = re.compile("<(?:https?|urn|tag):", re.IGNORECASE)
"""Names that do not reach into an engine, as Virtuoso's ``bif:`` and ``sql:`` and Jena's ``java:`` do."""
_READING = re.compile("bif:(?:contains|st_[a-z_]+)", re.IGNORECASE)
"""Functions of Virtuoso that only read, for search and for places."""
_UPDATE = re.compile(
    r"(?:^|[;}>])\s*(INSERT|DELETE|LOAD|CLEAR|CREATE|DROP|COPY|MOVE|ADD|WITH)\b", re.IGNORECASE
)
_AS = re.compile(r"\((.*)\bAS\s+[?$](\w+)\s*\)", re.DOTALL | re.IGNORECASE)
HALF = re.compile("[\ud800-\udfff]")
_BAD_IRI = re.compile(r'[<>"{}|^`\\\x00-\x20\ud800-\udfff]')
LANGUAGE = re.compile(r"[A-Za-z]+(?:-[A-Za-z0-9]+)*")
_QUOTED = str.maketrans(
    {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}
)
_PLACEHOLDERS = {"space": " ", "comment": " ", "string": '"s"', "iri": "<%>", "number": "1"}
"""What stands for a token in the shape of a query: an IRI may not be read as less-than there."""
NO_QUERY = (ParseBaseException, TypeError, ValueError)
"""What rdflib's parser raises for a text that is no query."""
_parser = Lock()


@dataclass(frozen=True, slots=True)
class Checked:
    """A query that passed the gate."""

    form: Form
    unlimited: bool
    """Whether a LIMIT fits at its end: it is no ASK, has none, and no VALUES clause, after which none may
    follow."""
    monotone: bool
    """Whether every row found in a part of the graph is a row of the whole: nothing in it counts, ranks and
    limits, or asks for what is not there."""
    variables: tuple[str, ...]
    """Names of the columns of a SELECT; none for ``*``, and of other forms."""
    services: int
    """SERVICE clauses in it."""
    text: str = ""
    """What to send: the query with comments blanked out and line ends as ``\\n``, of the same layout."""
    shape: str = ""
    """The text with a placeholder for each string, IRI and number."""
    undeclared: tuple[str, ...] = ()
    """Prefixes used without a declaration; some endpoints know them, a file does not."""


@lru_cache(maxsize=128)  # an endpoint asks twice for each query; long ones must not pile up
def checked(query: str, *forms: Form, allow_service: bool = False, magic: str = "") -> Checked:
    """What the gate learns of a query that only reads, and is of one of the ``forms`` if any are named.

    ``magic`` is the IRI of the engine's own service, without brackets, that kgwb's own search of labels may
    use where others need leave; it never comes with a query from elsewhere. Raises QueryRefusedError for an
    update, and (without leave) for SERVICE and for functions by which an engine runs code of its own, and
    QueryError where it is of another form or does not parse, with line and column.
    """
    query = query.replace("\r\n", "\n").replace("\r", "\n")
    if not query.isascii() and (half := HALF.search(query)):
        raise _wrong(query, half.start(), "there is half a character", "read the text as UTF-8")
    # Engines expand codepoint escapes before or after reading tokens: pass those where this is the same
    if escape := _AMBIGUOUS.search(query):
        raise _wrong(query, escape.start(), "it is unclear whether this is an escape", _UNESCAPED)
    for escape in _ESCAPE.finditer(query):
        code = int(escape[1][2:], 16)
        harmless = (
            chr(code).isalnum() if code < 0x80 else code >= 0xA0 and not 0xD800 <= code < 0xE000
        )
        if not harmless or code > 0x10FFFF:
            raise _wrong(
                query, escape.start(1), f"the escape {escape[1]} may end a token", _UNESCAPED
            )
    tokens, text, shape = lexed(query)
    if not allow_service and (function := _reaching_function(tokens)):
        raise _needs_leave(f"calls {function}, by which an engine may do more than read")
    # The tokens are searched too, so that no way of reading "a<b" can hide the clause from the parse.
    words = {token[0].upper() for token in tokens if token.lastgroup == "word"}
    words = {word for word in words if "SERVICE" in word}
    after = [(before[0].upper(), token) for before, token in pairwise(tokens)]
    services = [token[0] for before, token in after if before == "SERVICE"]
    known = magic and words == {"SERVICE"} and set(services) == {f"<{magic}>"}
    if words and not allow_service and not known:
        raise _needs_leave("asks another endpoint (SERVICE)")
    declared = {token["prefix"] for before, token in after if before == "PREFIX"}
    prefixes = dict.fromkeys(token["prefix"] for token in tokens if token.lastgroup == "name")
    undeclared = tuple(prefix for prefix in prefixes if prefix not in declared)
    try:
        try:
            parsed = _parsed(shape)
        except (
            NO_QUERY
        ):  # a "<" without spaces may be less-than in the text and an IRI in the shape
            parsed = _parsed(re.sub(_UNICODE, "u", text))
    except NO_QUERY:
        raise _broken(text, shape, undeclared, bool(words)) from None
    except RecursionError:
        raise _too_large() from None
    if parsed.services and not allow_service and not (known and parsed.services == len(services)):
        raise _needs_leave("asks another endpoint (SERVICE)")
    if forms and parsed.form not in forms:
        wanted = " or ".join(map(str.upper, forms))
        raise QueryError(f"this is no {wanted} query but {parsed.form.upper()}")
    return replace(parsed, text=text, shape=shape, undeclared=undeclared)


@dataclass(frozen=True, slots=True)
class Outline:
    """The parts of a SELECT or ASK that stand outside of each other."""

    prologue: str
    dataset: str
    """FROM clauses."""
    where: str
    """What stands in the outermost braces."""
    rest: str
    """What follows: groups, order, limit, VALUES."""
    aliases: tuple[tuple[str, str], ...]
    """Expressions with the names that SELECT or GROUP BY gives them (AS)."""


def outline(query: str) -> Outline:
    """A SELECT or ASK in its parts. Raises what ``checked`` raises."""
    text = checked(query, "select", "ask").text
    marks: dict[str, int] = {}
    aliases: list[tuple[str, str]] = []
    depth = opened = 0
    for token in lexed(text)[0]:
        sign = token[0].upper()
        depth -= sign in ("}", ")", "]")
        if depth == 0:
            marks.setdefault(sign, token.start())
            opened = token.start() if sign == "(" else opened
            if sign == ")" and (part := _AS.fullmatch(text, opened, token.end())):
                aliases.append((part[1], part[2]))
        depth += sign in ("{", "(", "[")
    begin, brace, end = marks.get("SELECT", marks.get("ASK", 0)), marks["{"], marks["}"]
    dataset = text[marks.get("FROM", brace) : marks.get("WHERE", brace)] if "FROM" in marks else ""
    return Outline(text[:begin], dataset, text[brace + 1 : end], text[end + 1 :], tuple(aliases))


def n3(term: Term) -> str:
    """The term as it is written in a query.

    Raises QueryError for an IRI or a language tag that cannot be written, and for a blank node: in a query it
    would be a variable.
    """
    if isinstance(term, URIRef):
        if not writable(term):
            raise QueryError(
                f"{str(term)!r} is not an IRI", hint="percent-encode what an IRI may not hold"
            )
        return f"<{term}>"
    if isinstance(term, BNode):
        raise QueryError(
            f"the blank node _:{term} cannot be asked for", hint="ask by an IRI or a literal"
        )
    if term.language:
        if not LANGUAGE.fullmatch(term.language):
            raise QueryError(f"{term.language!r} is not a language tag")
        return f"{quoted(term)}@{term.language}"
    return f"{quoted(term)}^^{n3(term.datatype)}" if term.datatype else quoted(term)


def one_of(variable: str, terms: Iterable[Term]) -> str:
    """A VALUES clause that binds the variable to each of the terms."""
    return f"VALUES {variable} {{ {' '.join(map(n3, dict.fromkeys(terms)))} }}"


def nodes(tree: Any, skipped: Collection[str] = ()) -> Iterator[CompValue]:
    """The nodes of rdflib's parse or algebra of a query, in order.

    Those named in ``skipped`` are left out with what is in them; of a MINUS that is its right side.
    """
    left = [tree]
    while left:
        node = left.pop()
        if isinstance(node, CompValue):
            if node.name == "Minus" and "Minus" in skipped:
                left.append(node.p1)
            elif node.name not in skipped:
                yield node
                left.extend(reversed(list(node.values())))
        elif not isinstance(node, str) and hasattr(node, "__iter__"):
            left.extend(reversed(list(node)))


def writable(iri: str) -> bool:
    """Whether an IRI can stand in a query: some engines hold IRIs that cannot."""
    return not _BAD_IRI.search(iri)


def sayable(term: Term) -> bool:
    """Whether a term can stand in a query: not a blank node, and no IRI that is not writable."""
    return not isinstance(term, BNode) and (not isinstance(term, URIRef) or writable(term))


def quoted(text: str) -> str:
    """The text as a string literal of a query; raises QueryError for a lone surrogate."""
    if HALF.search(text):
        raise QueryError(f"{text!r} holds half a character", hint="read the text as UTF-8")
    # A backslash before a "u" is kept apart from an escape by escaping the letter (see _AMBIGUOUS).
    escaped = re.sub(
        r"\\\\([uU])", lambda match: rf"\\\u00{ord(match[1]):02X}", str(text).translate(_QUOTED)
    )
    return f'"{escaped}"'


def lexed(query: str) -> tuple[list[re.Match[str]], str, str]:
    """The tokens but for spaces and comments, the text to send, and its shape."""
    tokens: list[re.Match[str]] = []
    text, shape = [], []
    position = signs = depth = 0
    while position < len(query):
        token = _TOKEN.match(query, position)
        if token is None and query[position : position + 2] in ("\\u", "\\U"):
            hint = "escapes are read inside strings and IRIs only; write the characters themselves"
            place = _place(query, position)
            raise QueryRefusedError(
                f"the query hides what it says behind an escape {place}", hint=hint
            )
        if token is None:
            char = query[position]
            what = "a string that does not end" if char in "\"'" else f"the character {char!r}"
            raise _wrong(query, position, f"there is {what}")
        kind, part = token.lastgroup or "", token[0]
        if kind == "other":
            signs += 1
            depth += (part in "([{") - (part in ")]}")
            if signs > MAX_SIGNS or depth > MAX_DEPTH:
                raise _too_large()
        if kind not in ("space", "comment"):
            tokens.append(token)
        text.append(" " * len(part) if kind == "comment" else part)
        # rdflib cannot parse a negative decimal; the grammar lets a double stand wherever a decimal may
        fraction = token["double"] or token["decimal"]
        shape.append("1e0" if fraction else _PLACEHOLDERS.get(kind, part))
        position = token.end()
    return tokens, "".join(text), "".join(shape)


def _reaching_function(tokens: list[re.Match[str]]) -> str:
    """The name of a function that may do more than read; empty if none is called."""
    inside = {"bif", "sql"}
    for word, name, iri in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if word[0].upper() == "PREFIX" and not _PUBLIC.match(iri[0]):
            inside.add(name["prefix"])
    for name, bracket in pairwise(tokens):
        reaching = name["prefix"] in inside or (name["iri"] and not _PUBLIC.match(name[0]))
        if bracket[0] == "(" and reaching and not _READING.fullmatch(name[0]):
            return name[0]
    return ""


@contextmanager
def parsing() -> Iterator[None]:
    """rdflib's parser for one thread at a time, with frames for long and deep queries wherever it is called.

    The parser completes itself at first use: two threads doing so at once spoil it for good.
    """
    with _parser:
        before = sys.getrecursionlimit()
        sys.setrecursionlimit(max(before, MAX_FRAMES))
        try:
            yield
        finally:
            sys.setrecursionlimit(before)


@lru_cache(maxsize=4096)
def _parsed(shape: str) -> Checked:
    """What rdflib's parse says of all queries of a shape."""
    with parsing():
        query = parseQuery(shape)[1]
    kinds = Counter(node.name for node in nodes(query))
    ranked = {"OrderClause", "LimitOffsetClauses"} <= kinds.keys()
    limited = query.limitoffset and query.limitoffset.limit is not None
    return Checked(
        form=query.name.removesuffix("Query").lower(),
        unlimited=not (query.name == "AskQuery" or limited or query.valuesClause),
        monotone=not ranked
        and not any(kind in _NOT_MONOTONE or "Aggregate_" in kind for kind in kinds),
        variables=tuple(str(column.var or column.evar) for column in query.projection or ()),
        services=kinds["ServiceGraphPattern"],
    )


def _broken(text: str, shape: str, undeclared: tuple[str, ...], service: bool) -> GraphError:
    """What to say of a text that is no query; Oxigraph's parser knows best where it breaks."""
    if update := _UPDATE.search(shape):
        hint = "only SELECT, ASK, CONSTRUCT and DESCRIBE are sent"
        return QueryRefusedError(
            f"the query would change the graph ({update[1].upper()})", hint=hint
        )
    position, expected = len(text), "SELECT, ASK, CONSTRUCT or DESCRIBE" if not text.strip() else ""
    tokens = sum(token.lastgroup != "space" for token in _TOKEN.finditer(shape))
    try:
        if not service and tokens <= MAX_EXPLAINED:
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
                item for item in match[3].split(", ") if re.fullmatch(_READABLE, item)
            )
    return _wrong(
        text, position, f"expected {expected}" if expected else "what follows cannot stand here"
    )


def _too_large() -> QueryError:
    most = f"about 1,000 patterns, {MAX_SIGNS:,} signs and {MAX_DEPTH} brackets inside each other at most"
    message = "the query is too long or nested too deeply to be checked"
    return QueryError(message, hint=f"ask in several queries, of {most}")


def _needs_leave(what: str) -> QueryRefusedError:
    return QueryRefusedError(
        f"the query {what}", hint="open the graph with allow_service=True to allow it"
    )


def _place(text: str, position: int) -> str:
    line = text.count("\n", 0, position) + 1
    return f"at line {line}, column {position - text.rfind(chr(10), 0, position)}"


def _wrong(text: str, position: int, what: str, hint: str = "") -> QueryError:
    near = text[position : position + 30].partition("\n")[0]
    message = f"the query does not parse {_place(text, position)}: {what}"
    return QueryError(f"{message} (near {near!r})" if near else message, hint=hint)
