"""Reading SPARQL: tokens, errors that point at a place in a query, and rdflib's parser."""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any, NamedTuple

from pyparsing import ParseBaseException
from rdflib.plugins.sparql.parserutils import CompValue

from kgwb.errors import QueryError, QueryRefusedError

MAX_DEPTH = 100
"""Brackets inside each other. Many more overflow the stack of Oxigraph."""
MAX_SYMBOLS = 10_000
"""Signs outside strings and IRIs. Many more overflow the stack of Oxigraph."""
PARSER_RECURSION_LIMIT = 15_000
"""Python frames that are allowed while a query is parsed.

rdflib takes 49 for a bracket and 11 for a triple pattern.
"""
SYNTAX_HINT = "correct the query there; only SPARQL 1.1 that reads a graph is sent"
PARSE_ERRORS = (ParseBaseException, TypeError, ValueError)
"""The exceptions of rdflib's parser for a text that is not a query."""
_parser_lock = Lock()

_PN_CHARS_BASE = (
    "A-Za-zÀ-ÖØ-öø-\u02ff\u0370-\u037d\u037f-\u1fff\u200c\u200d\u2070-\u218f\u2c00-\u2fef\u3001-\ud7ff"
    "\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
_PN_CHARS_U = _PN_CHARS_BASE + "_"
_PN_CHARS = _PN_CHARS_U + "0-9\u00b7\u0300-\u036f\u203f\u2040\\-"
_PLX = r"%[0-9A-Fa-f]{2}|\\[_~.\-!$&'()*+,;=/?\#@%]"
UCHAR = r"\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8}"
"""A codepoint escape, as a regular expression."""
_ECHAR = rf"\\[tbnrf\"'\\]|{UCHAR}"
_STRING = rf'"(?:[^"\\\n]|{_ECHAR})*"(?!")'
_IRI = rf"<(?:[^<>\"{{}}|^`\\\x00-\x20]|{UCHAR})*>"
# The terminals of SPARQL 1.1, section 19.8, where the longest match wins. A word takes all
# characters that a prefix may have, and digits that are not a number are one token: no text is
# scanned again from its second character on, which would take time quadratic in its length.
_TOKEN = re.compile(
    rf"""
    (?P<space> [ \t\n]+ )
  | (?P<comment> \#[^\n]* )
  | (?P<string> \"\"\"(?:"{{0,2}}(?:[^"\\]|{_ECHAR}))*\"\"\" | '''(?:'{{0,2}}(?:[^'\\]|{_ECHAR}))*'''
      | {_STRING} | '(?:[^'\\\n]|{_ECHAR})*'(?!') )
  | (?P<iri> {_IRI} )
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
_OUTLINED = re.compile(rf"""(?P<string>{_STRING})|(?P<iri>{_IRI})|(?P<odd>[\#"'\\])""")
"""The strings and IRIs of a query, and outside of them the signs of comments and other strings."""
_ODD_SIGN = "\x00"
"""Stands in an outline for what ``_OUTLINED`` calls odd. No query may have it."""
_PLACEHOLDERS = {"space": " ", "comment": " ", "string": '"s"', "iri": "<%>", "number": "1"}
"""The placeholder of a token in the skeleton, by the kind of the token.

An IRI keeps its brackets, so that "<" is not read as less-than.
"""


Token = re.Match[str]
"""A token. ``lastgroup`` is its kind; a name also has the group ``prefix``."""


class TokenizedQuery(NamedTuple):
    """A query in tokens, and two texts made of them."""

    tokens: list[Token]
    """All but spaces and comments."""
    text: str
    """The query with spaces in place of comments, so that every position is the same."""
    skeleton: str
    """The query with a placeholder for each string, IRI and number.

    Queries that differ only in these have the same skeleton.
    """


def tokenize(query: str) -> TokenizedQuery:
    """Split a query into the tokens of SPARQL 1.1.

    Returned are the tokens without spaces and comments, the text with comments blanked out, and the
    skeleton, in which strings, IRIs and numbers are placeholders.

    Raises QueryError if a part of it is not a token, or if it exceeds MAX_SYMBOLS or MAX_DEPTH, and
    QueryRefusedError for a codepoint escape outside of strings and IRIs.
    """
    tokens = []
    text = []
    skeleton = []
    position = 0
    symbols = 0
    depth = 0
    while position < len(query):
        token = _TOKEN.match(query, position)
        if token is None:
            raise _token_error(query, position)
        position = token.end()
        kind = token.lastgroup or ""
        part = token[0]
        if kind == "other":
            symbols += 1
            if part in "([{":
                depth += 1
            elif part in ")]}":
                depth -= 1
            if symbols > MAX_SYMBOLS or depth > MAX_DEPTH:
                raise too_large_error()
        if kind not in ("space", "comment"):
            tokens.append(token)
        text.append(" " * len(part) if kind == "comment" else part)
        skeleton.append(_placeholder(token))
    return TokenizedQuery(tokens, "".join(text), "".join(skeleton))


def outline_of(query: str) -> str | None:
    """Return a query with a placeholder for each string and IRI, and else as it is written.

    Queries with the same outline have the same tokens but for the content of strings and IRIs. None
    if that cannot be told without reading all tokens: if there is a comment, a string in other
    quotes, or a backslash elsewhere.
    """
    outline = _OUTLINED.sub(_outline_placeholder, query)
    if _ODD_SIGN in outline:
        return None
    return outline


def _outline_placeholder(match: re.Match[str]) -> str:
    """Return the placeholder of a string or an IRI, and _ODD_SIGN for any other match."""
    return _PLACEHOLDERS.get(match.lastgroup or "", _ODD_SIGN)


def _placeholder(token: Token) -> str:
    """Return the text of a token in the skeleton of its query.

    That is '"s"' for a string, "<%>" for an IRI, a number for a number, and one space for spaces or
    a comment. Other tokens stay as they are.
    """
    if token["double"] or token["decimal"]:
        # rdflib cannot parse a negative decimal. The grammar allows a double wherever it allows a
        # decimal, so both become a double.
        return "1e0"
    kind = token.lastgroup or ""
    return _PLACEHOLDERS.get(kind, token[0])


def _token_error(query: str, position: int) -> QueryError | QueryRefusedError:
    """Return the error for a position at which no token begins.

    It is QueryRefusedError for a codepoint escape, else QueryError.
    """
    if query[position : position + 2] in ("\\u", "\\U"):
        place = _line_and_column(query, position)
        return QueryRefusedError(
            f"the query has an escape outside of a string or an IRI, {place}",
            hint="escapes are read inside strings and IRIs only; write the characters themselves",
        )
    char = query[position]
    what = "a string that does not end" if char in "\"'" else f"the character {char!r}"
    return error_at(query, position, f"there is {what}")


def error_at(text: str, position: int, problem: str, hint: str = SYNTAX_HINT) -> QueryError:
    """Return the error for a query that is invalid at a position.

    It names line and column, and shows the text there. Models are sent the message of such an
    error, and not the hint, which is for people.
    """
    place = _line_and_column(text, position)
    message = f"the query does not parse {place}: {problem}"
    rest = text[position : position + 30]
    near = rest.partition("\n")[0]
    if near:
        message += f" (near {near!r})"
    return QueryError(message, hint=hint)


def _line_and_column(text: str, position: int) -> str:
    """Return "at line L, column C" for a position in a text; both are counted from 1."""
    line = text.count("\n", 0, position) + 1
    last_line_break = text.rfind("\n", 0, position)
    column = position - last_line_break
    return f"at line {line}, column {column}"


def too_large_error() -> QueryError:
    """Return the error for a query that is longer or deeper than the parsers can take."""
    limits = f"about 1,000 patterns, {MAX_SYMBOLS:,} signs and {MAX_DEPTH} brackets inside each other at most"
    message = "the query is too long or nested too deeply to be checked"
    return QueryError(message, hint=f"ask in several queries, of {limits}")


# rdflib's parser


@contextmanager
def exclusive_parser() -> Iterator[None]:
    """Let only this thread use rdflib's parser, and raise Python's recursion limit meanwhile.

    The parser builds itself at its first use. If two threads did that at once, it would stay broken
    for the rest of the process.
    """
    with _parser_lock:
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(max(limit, PARSER_RECURSION_LIMIT))
        try:
            yield
        finally:
            sys.setrecursionlimit(limit)


def walk_nodes(tree: Any, skip: Collection[str] = ()) -> Iterator[CompValue]:
    """Yield the nodes of rdflib's parse or algebra of a query, each before the nodes inside it.

    Nodes named in ``skip`` are left out with all that is inside them. Of a skipped "Minus", only
    the right side is left out: the left side is the pattern that MINUS is applied to.
    """
    pending = [tree]
    while pending:
        node = pending.pop()
        children: Iterable[Any] = ()
        if isinstance(node, CompValue):
            if node.name not in skip:
                yield node
                children = node.values()
            elif node.name == "Minus":
                children = [node.p1]
        elif not isinstance(node, str) and hasattr(node, "__iter__"):
            children = node
        pending.extend(reversed(list(children)))
