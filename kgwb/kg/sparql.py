"""The gate: every query is checked here, and only SPARQL 1.1 that reads a graph reaches it.

A query is judged by its parse, not by its first word. The text that is checked is the text that is
sent, and it means the same to every engine: comments are replaced by spaces (engines disagree on
where a comment ends), line ends are ``\\n``, and a codepoint escape is accepted only inside a
string or an IRI, for a character that could not end it. This file also writes terms and clauses as
SPARQL.
"""

from __future__ import annotations

import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import pairwise
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import pyoxigraph
from rdflib import XSD, BNode, URIRef

from kgwb.errors import GraphError, QueryError, QueryRefusedError
from kgwb.records import frozen
from kgwb.terms import KNOWN_PREFIXES, Term

if TYPE_CHECKING:
    from rdflib.plugins.sparql.parserutils import CompValue

MAX_DEPTH = 100
"""Brackets inside each other. Many more overflow the stack of Oxigraph."""
MAX_SYMBOLS = 10_000
"""Signs outside strings and IRIs. Many more overflow the stack of Oxigraph."""
PARSER_RECURSION_LIMIT = 15_000
"""Python frames that are allowed while a query is parsed.

rdflib takes 49 for a bracket and 11 for a triple pattern.
"""
SYNTAX_HINT = "correct the query there; only SPARQL 1.1 that reads a graph is sent"
PARSE_ERRORS = (TypeError, ValueError)
"""The exceptions of ``parse_query`` for a text that is not a query."""
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
_UCHAR = re.compile(UCHAR)
_ECHAR = rf"\\[tbnrf\"'\\]|{UCHAR}"
_STRING = rf'"(?:[^"\\\n]++|{_ECHAR})*+"(?!")'
_IRI = rf"<(?:[^<>\"{{}}|^`\\\x00-\x20]++|{UCHAR})*+>"
_OUTLINED_STRING = re.compile(_STRING)
_OUTLINED_IRI = re.compile(_IRI)
_ODD_SIGN = re.compile(r"[\#'\\\x00]")
"""Outside of strings and IRIs, a sign of a comment or another string, or one that no query may have."""
_PLACEHOLDERS = {"string": '"s"', "iri": "<%>", "number": "1"}
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
    """The query, spaced as in ``respace``, with a placeholder for each string, IRI and number.

    Queries that differ only in these have the same skeleton.
    """


@lru_cache(maxsize=1)
def _token_pattern() -> re.Pattern[str]:
    """Return the terminals of SPARQL 1.1, section 19.8, where the longest match wins.

    A word takes all characters that a prefix may have, and digits that are not a number are one
    token: no text is scanned again from its second character on, which would take time quadratic in
    its length. Compiling it takes some 15 ms, so that is done when a query is first read.
    """
    return re.compile(
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


def word_of(token: Token) -> str:
    """Return a token in upper case, as keywords are compared."""
    return token[0].upper()


def words_of(tokens: Iterable[Token]) -> set[str]:
    """Return the words among some tokens, in upper case. Names, strings and variables are none."""
    return {word_of(token) for token in tokens if token.lastgroup == "word"}


def find_tokens(text: str) -> Iterator[Token]:
    """Yield the tokens of a query that need not be valid, without spaces and comments.

    What is no token is left out.
    """
    for token in _token_pattern().finditer(text):
        if token.lastgroup not in ("space", "comment"):
            yield token


def tokenize(query: str) -> TokenizedQuery:
    """Split a query into the tokens of SPARQL 1.1.

    Returned are the tokens without spaces and comments, the text with comments blanked out, and the
    skeleton, in which strings, IRIs and numbers are placeholders.

    Raises QueryError if a part of it is not a token, or if it exceeds MAX_SYMBOLS or MAX_DEPTH, and
    QueryRefusedError for a codepoint escape outside of strings and IRIs.
    """
    match = _token_pattern().match
    tokens = []
    text = []
    position = 0
    symbols = 0
    depth = 0
    while position < len(query):
        token = match(query, position)
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
    return TokenizedQuery(tokens, "".join(text), respace(tokens, _placeholder))


def respace(tokens: Iterable[Token], write: Callable[[Token], str]) -> str:
    """Return the texts that ``write`` gives the tokens of a query, spaced so that rdflib can read them.

    SPARQL allows space, or none, where rdflib's grammar does not: it wants none before a language, a
    datatype, and the sign that repeats a path, and it wants one between ":p" and "?x", and between
    1 and LIMIT.
    """
    parts: list[str] = []
    before = None
    for token in tokens:
        if before is not None and not _stand_together(before, token):
            parts.append(" ")
        parts.append(write(token))
        before = token
    return "".join(parts)


def _stand_together(before: Token, token: Token) -> bool:
    """Return whether rdflib wants no space between two tokens, one after the other."""
    sign = token[0]
    is_path_or_bracket = before.lastgroup in ("iri", "name") or before[0] in (")", "a")
    if sign in ("*", "+", "?") and is_path_or_bracket:
        following = token.string[token.end() : token.end() + 1]
        is_signed_number = sign == "+" and (following.isdigit() or following == ".")
        return not is_signed_number
    if token.lastgroup == "tag" or sign == "^":
        is_adjacent_caret = before[0] == "^" and before.end() == token.start()
        return before.lastgroup == "string" or is_adjacent_caret
    if before[0] == "^":
        return token.lastgroup in ("iri", "name")
    are_signs = before.lastgroup == "other" and token.lastgroup in ("other", "number")
    return are_signs and before.end() == token.start()


def outline_of(query: str) -> str | None:
    """Return a query with a placeholder for each string and IRI, and else as it is written.

    Queries with the same outline have the same tokens but for the content of strings and IRIs. None
    if that cannot be told without reading all tokens: if there is a comment, a string in other
    quotes, a quotation mark in a string, or a backslash elsewhere.
    """
    if r"\"" in query:  # many in a string without an end would take time quadratic in its length
        return None
    # No IRI has a quotation mark, so the strings can be told apart first.
    outline, strings = _OUTLINED_STRING.subn(_PLACEHOLDERS["string"], query)
    outline = _OUTLINED_IRI.sub(_PLACEHOLDERS["iri"], outline)
    if _ODD_SIGN.search(outline) or outline.count('"') > 2 * strings:
        return None
    return outline


def _placeholder(token: Token) -> str:
    """Return the text of a token in the skeleton of its query.

    That is '"s"' for a string, "<%>" for an IRI, "1" for an integer, and "1e0" for a decimal or a
    double. Other tokens stay as they are.
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
    what = f"the character {char!r}"
    if char in "\"'":
        what = "a string that does not end"
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


def parse_query(sparql: str) -> Any:
    """Return rdflib's parse of a query: its prologue and its body.

    rdflib's grammar is imported only here and where its algebra is made, because that takes as long
    as importing the rest of rdflib. The caller must hold ``exclusive_parser``. Raises one of
    PARSE_ERRORS, or RecursionError.
    """
    from pyparsing import ParseBaseException
    from rdflib.plugins.sparql.parser import parseQuery

    try:
        return parseQuery(sparql)
    except ParseBaseException as error:
        raise ValueError(str(error)) from error


def walk_nodes(tree: Any, skip: Collection[str] = ()) -> Iterator[CompValue]:
    """Yield the nodes of rdflib's parse or algebra of a query, each before the nodes inside it.

    Nodes named in ``skip`` are left out with all that is inside them. Of a skipped "Minus", only
    the right side is left out: the left side is the pattern that MINUS is applied to.
    """
    from rdflib.plugins.sparql.parserutils import CompValue

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


QUERY_PATTERN = re.compile(
    r"\s*(?:(?:#[^\n]*\n|PREFIX\s+[^\s<]*\s*<[^>]*>|BASE\s*<[^>]*>)\s*)*"
    r"(?:SELECT|ASK|CONSTRUCT|DESCRIBE)\b[^{]{0,2000}\{",
    re.IGNORECASE,
)
"""How a query begins."""
FENCE_PATTERN = re.compile(r"\s*```(?:sparql)?[^\S\n]*\n(.*?)```\s*", re.DOTALL | re.IGNORECASE)


def is_query(text: str) -> bool:
    """Return whether a text is one query, by how it begins; it may stand in a code fence."""
    return QUERY_PATTERN.match(without_fence(text)) is not None


def without_fence(text: str) -> str:
    """Return a text without the code fence around it, if there is one."""
    match = FENCE_PATTERN.fullmatch(text)
    if match is None:
        return text
    return match[1]


MAX_EXPLAINED_TOKENS = 120
"""Oxigraph explains the syntax errors of queries up to this size.

It plans what it can parse before it reports an error, and that takes long for a large query.
"""

QueryForm = Literal["select", "ask", "construct", "describe"]

_NON_MONOTONIC_NODES = {
    "OptionalGraphPattern",
    "MinusGraphPattern",
    "Builtin_EXISTS",
    "Builtin_NOTEXISTS",
}
_CODEPOINT_ESCAPE = re.compile(rf"(?<!\\)(?:\\\\)*({UCHAR})")
"""A codepoint escape, but not one whose backslash is itself escaped."""
_AMBIGUOUS_ESCAPE = re.compile(r"(?<!\\)(?:\\\\)+(?:u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8})")
"""An escaped backslash before "u".

Engines that expand codepoint escapes before they read tokens take it for one.
"""
_READABLE_EXPECTATION = r'"[^"]+"|(?!LATERAL|SERVICE)[A-Z ]+|The SELECT[\w ]+'
"""The expectations of Oxigraph's parser that help a person.

The names of its grammar rules, and of its extensions, are left out.
"""
_ESCAPE_HINT = "write the character itself"
_STANDARD_SCHEME = re.compile("<(?:https?|urn|tag):", re.IGNORECASE)
"""IRIs of functions that are not code of an engine.

Virtuoso's ``bif:`` and ``sql:`` are such code, and Jena's ``java:``.
"""
_READ_ONLY_FUNCTION = re.compile("bif:(?:contains|st_[a-z_]+)", re.IGNORECASE)
"""Functions of Virtuoso that only read: full-text search and geometry."""
_UPDATE_KEYWORD = re.compile(
    r"(?:^|[;}>])\s*(INSERT|DELETE|LOAD|CLEAR|CREATE|DROP|COPY|MOVE|ADD|WITH)\b", re.IGNORECASE
)
_ALIAS_EXPRESSION = re.compile(r"\((.*)\bAS\s+[?$](\w+)\s*\)", re.DOTALL | re.IGNORECASE)
_VARIABLE_IN_BRACKETS = re.compile(r"[(\s]*[?$]\w+[)\s]*")
MODIFIERS = ("GROUP", "HAVING", "ORDER", "LIMIT", "OFFSET", "VALUES")
"""The words that begin the parts after the outermost braces."""
_GROUP = r"[ ]\{(?:[^{}]++|\{(?:[^{}]++|\{[^{}]*+\})*+\})*+\}"
"""A group in a skeleton, with at most two levels of groups inside."""
_REPEATS = re.compile(
    rf"""
    (?P<values> [ ](?i:VALUES)[ ](?:[?$][^ ]+|\([^(){{}}]*\))[ ]\{{
        (?P<value> [ ]<%>|[ ]"s"|[ ]\([^(){{}}]*\)) ) (?P=value)+
  | (?P<in> [ ](?i:IN)[ ]\( (?P<member> [ ](?:<%>|"s")[ ],) ) (?P=member)+
  | (?P<filter> [ ](?i:FILTER)[ ]\([^(){{}}]*\) ) (?P=filter)+
  | (?P<union> (?:[ ](?i:UNION){_GROUP}){{1,4}}? ) (?P=union)+
    """,
    re.VERBOSE,
)
"""Parts of a skeleton that stand in it several times in a row, where the grammar allows any number.

They are the values of VALUES and IN, filters, and the branches of a union after its first one. Only
keywords are compared without case: "a" is one, and "A" is none.
"""
LONE_SURROGATE = re.compile("[\ud800-\udfff]")
"""Half a character of UTF-16, which cannot be encoded as UTF-8."""
_INVALID_IRI_CHARACTER = re.compile(r'[<>"{}|^`\\\x00-\x20\ud800-\udfff]')
LANGUAGE_TAG = re.compile(r"[A-Za-z]+(?:-[A-Za-z0-9]+)*")
_STRING_ESCAPES = str.maketrans(
    {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}
)


class ValidatedQuery(NamedTuple):
    """A query that passed the gate."""

    form: QueryForm
    accepts_limit: bool
    """Whether a LIMIT can be added at its end.

    It cannot to an ASK, after another LIMIT, or after a VALUES clause.
    """
    is_monotonic: bool
    """Whether every row found in a part of the graph is also a row of the whole graph.

    It is False if the query has an aggregate, OPTIONAL, MINUS or EXISTS, or both ORDER BY and
    LIMIT.
    """
    variables: tuple[str, ...]
    """Names of the columns of a SELECT, without "?"; empty for ``SELECT *`` and other forms."""
    service_count: int
    """Number of SERVICE clauses."""
    text: str = ""
    """The text to send: the query with spaces in place of comments, and ``\\n`` as line ends."""
    skeleton: str = ""
    """The text with a placeholder for each string, IRI and number."""
    undeclared_prefixes: tuple[str, ...] = ()
    """Prefixes that are used without a declaration. Some endpoints know them, a file does not."""


# An endpoint validates each query twice. The cache is small, because queries can be long.
@lru_cache(maxsize=128)
def validate_query(
    query: str, *forms: QueryForm, allow_service: bool = False, allowed_service_iri: str = ""
) -> ValidatedQuery:
    """Check that a query only reads, and return its form and other properties.

    If ``forms`` are given, the query must have one of them. ``allow_service`` permits SERVICE, and
    functions by which an engine runs code of its own. ``allowed_service_iri`` permits SERVICE of
    this one IRI; it is for the label search of kgwb itself, and never for queries from elsewhere.

    Raises QueryRefusedError for an update and for a SERVICE or function without permission, and
    QueryError if the query has another form or does not parse, with line and column.
    """
    query = query.replace("\r\n", "\n").replace("\r", "\n")
    _check_characters(query)
    outline = outline_of(query)
    alike = outline and _validate_outline(outline)
    if alike:
        parsed = alike._replace(text=query)  # a dataclass would take ten times as long
    else:
        parsed = _validate_tokens(query, allow_service, allowed_service_iri)
    if forms and parsed.form not in forms:
        wanted = " or ".join(map(str.upper, forms))
        raise QueryError(
            f"this is no {wanted} query but {parsed.form.upper()}", hint=f"write it as {wanted}"
        )
    return parsed


@lru_cache(maxsize=1024)
def _validate_outline(outline: str) -> ValidatedQuery | None:
    """Return what all queries with an outline share; ``text`` is that of the outline.

    None if the query must be judged by itself: its outline does not parse, it asks another
    endpoint, or it calls a function whose IRI, or the IRI of whose prefix, stands in it.

    The cache matters: agents send many queries of few outlines. Reading the tokens of one takes
    about 0.1 ms, half as long as its execution.
    """
    try:
        tokenized = tokenize(outline)
        tokens = tokenized.tokens
        if "SERVICE" in outline.upper():
            return None
        parsed = _parse_skeleton(_without_repeats(tokenized.skeleton))
        # The placeholder of an IRI is none of a standard scheme, so it is unsafe here.
        unsafe_function = _find_unsafe_function(tokens)
    except (GraphError, RecursionError, *PARSE_ERRORS):
        return None
    if unsafe_function or parsed.service_count:
        return None
    return parsed._replace(
        text=tokenized.text,
        skeleton=tokenized.skeleton,
        undeclared_prefixes=_find_undeclared_prefixes(tokens),
    )


def _without_repeats(skeleton: str) -> str:
    """Return a skeleton in which what may stand any number of times in a row stands once.

    The queries of kgwb itself have as many values or branches as there are candidates. So they are
    parsed once for all these numbers: rdflib takes 30 ms for a query of ten branches. The skeleton
    is valid as it was, and means the same but for the number of its SERVICE clauses.
    """
    return _REPEATS.sub(lambda match: match[match.lastgroup or 0], skeleton)


def _validate_tokens(query: str, allow_service: bool, allowed_service_iri: str) -> ValidatedQuery:
    """Return the properties of a query from all its tokens; see ``validate_query``."""
    tokenized = tokenize(query)
    tokens = tokenized.tokens
    unsafe_function = _find_unsafe_function(tokens)
    if unsafe_function and not allow_service:
        raise _permission_error(
            f"calls {unsafe_function}, by which an engine may do more than read"
        )

    # The word is looked for among the tokens, and the clause in the parse. So a text in which "a<b"
    # can be read in two ways cannot hide the clause.
    service_words = {word for word in words_of(tokens) if "SERVICE" in word}
    services = [token[0] for token in _tokens_after(tokens, "SERVICE")]
    own_services = 0
    if allowed_service_iri and service_words == {"SERVICE"}:
        own_service = f"<{allowed_service_iri}>"
        if set(services) == {own_service}:
            own_services = len(services)
    if service_words and not (own_services or allow_service):
        raise _permission_error("asks another endpoint (SERVICE)")

    undeclared_prefixes = _find_undeclared_prefixes(tokens)
    try:
        parsed = _parse(tokenized)
    except PARSE_ERRORS:
        raise _syntax_error(tokenized, undeclared_prefixes, bool(service_words)) from None
    except RecursionError:
        # rdflib reads the outer SERVICE again from within the inner one, without end.
        if len(services) > 1:
            raise QueryError(
                "the query has a SERVICE within a SERVICE, which cannot be checked",
                hint="ask the two endpoints one after the other, in two queries",
            ) from None
        raise too_large_error() from None
    if parsed.service_count != own_services and not allow_service:
        raise _permission_error("asks another endpoint (SERVICE)")
    return parsed._replace(
        text=tokenized.text,
        skeleton=tokenized.skeleton,
        undeclared_prefixes=undeclared_prefixes,
    )


def find_lone_surrogate(text: str) -> re.Match[str] | None:
    """Return where a text has its first LONE_SURROGATE; None without one, as in all ASCII."""
    if text.isascii():  # which Python knows without reading the text
        return None
    return LONE_SURROGATE.search(text)


def _check_characters(query: str) -> None:
    """Raise QueryError, with line and column, for characters that engines may read differently.

    These are half a surrogate pair, an escape such as u0041 that follows an escaped backslash, and
    an escape for a character that may end a string or an IRI. Some engines expand escapes before
    they read tokens, others afterwards.
    """
    surrogate = find_lone_surrogate(query)
    if surrogate:
        position = surrogate.start()
        raise error_at(
            query,
            position,
            "there is half a character",
            "read the file or reply that it comes from as UTF-8",
        )
    if "\\" not in query:
        return
    ambiguous = _AMBIGUOUS_ESCAPE.search(query)
    if ambiguous:
        problem = "it is unclear whether this is an escape"
        raise error_at(query, ambiguous.start(), problem, _ESCAPE_HINT)
    for match in _CODEPOINT_ESCAPE.finditer(query):
        escape = match[1]
        codepoint = int(escape[2:], 16)
        if _may_end_token(codepoint):
            problem = f"the escape {escape} may end a token"
            raise error_at(query, match.start(1), problem, _ESCAPE_HINT)


def _may_end_token(codepoint: int) -> bool:
    """Return whether a character could end a string or an IRI, or does not exist.

    ASCII letters and digits cannot, and nothing from U+00A0 on that is a character.
    """
    if codepoint < 0x80:
        return not chr(codepoint).isalnum()
    is_surrogate = 0xD800 <= codepoint < 0xE000
    return is_surrogate or codepoint < 0xA0 or codepoint > 0x10FFFF


def _tokens_after(tokens: Sequence[Token], keyword: str) -> list[Token]:
    """Return each token that directly follows a keyword, in order.

    ``keyword`` is in upper case; the query may have it in any case.
    """
    return [token for before, token in pairwise(tokens) if word_of(before) == keyword]


def _find_undeclared_prefixes(tokens: Sequence[Token]) -> tuple[str, ...]:
    """Return the prefixes that are used but not declared, each once, by their first use.

    A declaration counts wherever it stands. The empty prefix is "".
    """
    declared = {token["prefix"] for token in _tokens_after(tokens, "PREFIX")}
    used = dict.fromkeys(token["prefix"] for token in tokens if token.lastgroup == "name")
    return tuple(prefix for prefix in used if prefix not in declared)


def names_dataset(query: ValidatedQuery) -> bool:
    """Return whether a query has a FROM or a FROM NAMED."""
    return "FROM" in words_of(tokenize(query.text).tokens)


def undeclared_prefix_error(prefixes: Sequence[str]) -> QueryError:
    """Return, without raising it, the error of a query that uses prefixes it does not declare."""
    written = ", ".join(f"{prefix}:" for prefix in prefixes)
    first = prefixes[0]
    namespace = "http://example.org/"
    for known, usual_prefix in KNOWN_PREFIXES.items():
        if usual_prefix == first:
            namespace = known
    return QueryError(
        f"the query does not declare {written}",
        hint=f"begin it with lines such as PREFIX {first}: <{namespace}>, or write the IRIs out",
    )


def expand_escapes(text: str) -> str:
    """Return a text of a query with the characters in the place of its codepoint escapes."""
    return _UCHAR.sub(lambda escape: chr(int(escape[0][2:], 16)), text)


def _find_unsafe_function(tokens: Sequence[Token]) -> str:
    """Return the name of the first called function that may do more than read; "" if none may.

    A function is a name or an IRI before "(". It may do more if its IRI is not in http:, https:,
    urn: or tag:, or if its prefix is "bif" or "sql", which Virtuoso knows without a declaration.
    Those in _READ_ONLY_FUNCTION are known to read only.
    """
    unsafe_prefixes = {"bif", "sql"}  # Virtuoso knows these without a declaration
    for keyword, declared, iri in zip(tokens, tokens[1:], tokens[2:], strict=False):
        is_declaration = word_of(keyword) == "PREFIX"
        if is_declaration and not _STANDARD_SCHEME.match(expand_escapes(iri[0])):
            unsafe_prefixes.add(declared["prefix"])
    for function, bracket in pairwise(tokens):
        name = function[0]
        if bracket[0] != "(" or _READ_ONLY_FUNCTION.fullmatch(name):
            continue
        if function["prefix"] in unsafe_prefixes:
            return name
        if function["iri"] and not _STANDARD_SCHEME.match(expand_escapes(name)):
            return name
    return ""


def _parse(tokenized: TokenizedQuery) -> ValidatedQuery:
    """Return the properties of a query from the parse of its skeleton, else of its text.

    Raises one of PARSE_ERRORS if neither parses.
    """
    try:
        return _parse_skeleton(tokenized.skeleton)
    except PARSE_ERRORS:
        # A "<" without spaces around it may be less-than in the text and part of an IRI in the
        # skeleton.
        text = re.sub(UCHAR, "u", tokenized.text)
        return _parse_skeleton(text)


@lru_cache(maxsize=4096)
def _parse_skeleton(skeleton: str) -> ValidatedQuery:
    """Return what all queries with a skeleton share: form, variables, number of SERVICE clauses.

    A skeleton is a query with placeholders for strings, IRIs and numbers. Nothing is sent.
    ``accepts_limit`` is False for an ASK, and for a query that has a LIMIT or a VALUES clause at
    its end. ``is_monotonic`` is False where a larger graph could give fewer rows: with ORDER BY and
    LIMIT, an aggregate, or a negation. Raises one of PARSE_ERRORS. Results are cached, because a
    parse takes about 2 ms and agents send many queries of few skeletons.
    """
    with exclusive_parser():
        query = parse_query(skeleton)[1]
    form = query.name.removesuffix("Query").lower()
    has_limit = query.limitoffset and query.limitoffset.limit is not None
    refuses_limit = form == "ask" or has_limit or query.valuesClause
    kinds = Counter(node.name for node in walk_nodes(query))
    is_ranked = {"OrderClause", "LimitOffsetClauses"}.issubset(kinds)
    has_aggregate = any("Aggregate_" in kind for kind in kinds)
    has_absence = not _NON_MONOTONIC_NODES.isdisjoint(kinds)
    variables = [str(column.var or column.evar) for column in query.projection or ()]
    return ValidatedQuery(
        form=form,
        accepts_limit=not refuses_limit,
        is_monotonic=not (is_ranked or has_aggregate or has_absence),
        variables=tuple(variables),
        service_count=kinds["ServiceGraphPattern"],
    )


def _syntax_error(
    tokenized: TokenizedQuery, undeclared_prefixes: Sequence[str], has_service: bool
) -> GraphError:
    """Return the error for a text that does not parse.

    It is a QueryRefusedError if the text looks like an update, else a QueryError with the place and
    what was expected there. The place comes from Oxigraph, whose parser reports it best. It is the
    end of the text if the query is too long to be given to Oxigraph, has a SERVICE (which Oxigraph
    might call), or is valid there.
    """
    update = _UPDATE_KEYWORD.search(tokenized.skeleton)
    if update:
        return QueryRefusedError(
            f"the query would change the graph ({update[1].upper()})",
            hint="it was not sent; write a SELECT, ASK, CONSTRUCT or DESCRIBE, which only read",
        )
    text = tokenized.text
    position = len(text)
    expected = ""
    if not text.strip():
        expected = "SELECT, ASK, CONSTRUCT or DESCRIBE"
    elif not has_service and len(tokenized.tokens) <= MAX_EXPLAINED_TOKENS:
        located = _locate_error(text, undeclared_prefixes)
        if located:
            position, expected = located
    problem = "what follows cannot stand here"
    if expected:
        problem = f"expected {expected}"
    return error_at(text, position, problem)


def _locate_error(text: str, undeclared_prefixes: Sequence[str]) -> tuple[int, str] | None:
    """Return the position of a syntax error in a text, and what Oxigraph expected there.

    Expectations that people cannot read are left out, and are "" if none is left. None if Oxigraph
    finds no error, or does not say where. ``undeclared_prefixes`` are declared for it, so that they
    are not the error.
    """
    prefixes = dict.fromkeys(undeclared_prefixes, "x:")
    try:
        pyoxigraph.Store().query(text, prefixes=prefixes)
        return None
    except (RuntimeError, ValueError, OSError):  # it parses in Oxigraph, but cannot be executed
        return None
    except SyntaxError as error:
        message = error.msg
    found = re.match(r"error at (\d+):(\d+): expected (?:one of )?(.*)", message, re.DOTALL)
    if not found:
        return None
    line = int(found[1])
    column = int(found[2])
    lines_before = text.split("\n")[: line - 1]
    line_start = len(lines_before)  # of the line breaks
    line_start += sum(map(len, lines_before))
    position = line_start + column - 1
    expectations = []
    for expectation in found[3].split(", "):
        if re.fullmatch(_READABLE_EXPECTATION, expectation):
            expectations.append(expectation)
    return position, ", ".join(expectations)


def _permission_error(what: str) -> QueryRefusedError:
    """Return the error for a query that needs ``allow_service=True``.

    ``what`` says what the query does, as in "asks another endpoint".
    """
    hint = "it was not sent; to allow such queries, open the graph in Python: "
    hint += "kgwb.open_kg(..., allow_service=True)"
    return QueryRefusedError(f"the query {what}", hint=hint)


@frozen
class QueryClauses:
    """The outermost parts of a SELECT or ASK, as texts."""

    prologue: str
    """The text before SELECT or ASK: BASE and PREFIX."""
    dataset: str
    """FROM clauses."""
    where: str
    """The text inside the outermost braces."""
    modifiers: str
    """The text after the outermost braces: GROUP BY, HAVING, ORDER BY, LIMIT and VALUES."""
    aliases: tuple[tuple[str, str], ...]
    """Each expression to which SELECT or GROUP BY gives a name (AS), with this name without "?"."""
    group_by: tuple[str, ...]
    """What GROUP BY groups by: variables and expressions."""
    order_by: tuple[str, ...]
    """What ORDER BY orders by: variables, and expressions without ASC and DESC."""
    limit: int | None
    """The LIMIT; None without one, and where VALUES follows it."""
    words: frozenset[str]
    """The words inside the outermost braces, such as OPTIONAL and STR, in upper case."""


def split_clauses(query: str) -> QueryClauses:
    """Return the outermost parts of a SELECT or ASK, as they are written, without comments.

    ``prologue`` is all before SELECT or ASK, ``dataset`` the FROM clauses, ``where`` the inside of
    the outermost braces, and ``modifiers`` all after them. ``aliases`` are the pairs (expression,
    ?name) of "(expression AS ?name)" outside of WHERE. Raises the errors of ``validate_query``.
    """
    text = validate_query(query, "select", "ask").text
    all_tokens = tokenize(text).tokens
    tokens = list(_tokens_outside_brackets(all_tokens))
    first: dict[str, int] = {}
    aliases = []
    opening = 0
    for token in tokens:
        sign = word_of(token)
        first.setdefault(sign, token.start())
        if sign == "(":
            opening = token.start()
        elif sign == ")":
            alias = _ALIAS_EXPRESSION.fullmatch(text, opening, token.end())
            if alias:
                aliases.append((alias[1], alias[2]))

    begin = first.get("SELECT", first.get("ASK"))
    brace = first["{"]
    end = first["}"]
    dataset = ""
    if "FROM" in first:
        dataset = text[first["FROM"] : first.get("WHERE", brace)]
    inner_tokens = [token for token in all_tokens if brace < token.start() < end]
    after = _tokens_by_modifier(tokens)
    limit = None
    if after["LIMIT"] and not after["VALUES"]:
        limit = int(after["LIMIT"][0][0])
    return QueryClauses(
        prologue=text[:begin],
        dataset=dataset,
        where=text[brace + 1 : end],
        modifiers=text[end + 1 :],
        aliases=tuple(aliases),
        group_by=_split_keys(after["GROUP"][1:], text),
        order_by=_split_keys(after["ORDER"][1:], text),
        limit=limit,
        words=frozenset(words_of(inner_tokens)),
    )


def _tokens_by_modifier(tokens: Iterable[Token]) -> defaultdict[str, list[Token]]:
    """Return the tokens after each of MODIFIERS, up to the next one. The tokens are the outermost."""
    found: defaultdict[str, list[Token]] = defaultdict(list)
    current = ""
    for token in tokens:
        word = word_of(token)
        if word in MODIFIERS:
            current = word
        else:
            found[current].append(token)
    return found


def _split_keys(tokens: Iterable[Token], text: str) -> tuple[str, ...]:
    """Return the keys of a GROUP BY or ORDER BY as they are written, without ASC and DESC.

    A key is a variable, or a call or an expression in brackets; what names an expression stays.
    """
    keys = []
    start = None
    opening = 0
    for token in tokens:
        if token.lastgroup == "variable":
            keys.append(token[0])
            continue
        if start is None:
            start = token.start()
        if token[0] == "(":
            opening = token.start()
        elif token[0] == ")":
            key = text[start : token.end()]
            if text[start:opening].strip().upper() in ("", "ASC", "DESC"):
                key = text[opening + 1 : token.start()].strip()
            if _VARIABLE_IN_BRACKETS.fullmatch(key):
                key = key.strip("() ")
            keys.append(key)
            start = None
    return tuple(keys)


def select_also(query: str, columns: str, limit: int | None = None) -> str:
    """Return a SELECT with more columns before its own, as they are written there.

    ``limit`` is put in the place of its own LIMIT, if it has one. Raises the errors of
    ``validate_query``.
    """
    text = validate_query(query, "select").text
    outermost = list(_tokens_outside_brackets(tokenize(text).tokens))
    if limit is not None:
        for keyword, number in pairwise(outermost):
            if word_of(keyword) == "LIMIT":
                text = f"{text[: keyword.start()]}LIMIT {limit}{text[number.end() :]}"
    selected = [token for token in outermost if word_of(token) not in ("DISTINCT", "REDUCED")]
    [first_column] = _tokens_after(selected, "SELECT")
    start = first_column.start()
    if not columns:
        return text
    return f"{text[:start]}{columns} {text[start:]}"


def match_both_strings(query: str) -> str:
    """Return a query that matches a text with the datatype xsd:string and without one alike.

    Both are one term in RDF 1.1, but two to Virtuoso. A text that stands as an object, in VALUES for
    one variable, behind IN, or behind "=" or "!=" gets the other form beside it. Objects of a
    ``SELECT *`` are left as they are: it would show the variables that stand for them. So is a
    CONSTRUCT, whose template may be its pattern.
    """
    tokens = tokenize(query).tokens
    words = [word_of(token) for token in tokens]
    if "CONSTRUCT" in words:
        return query
    before_star = {word for word, following in pairwise(words) if following == "*"}
    selects_all = not before_star.isdisjoint(("SELECT", "DISTINCT", "REDUCED"))
    brackets: list[int] = []
    edits: list[tuple[int, int, str]] = []
    for position, token in enumerate(tokens):
        text = token[0]
        if text in ("{", "(", "["):
            brackets.append(position)
        elif text in ("}", ")", "]"):
            brackets.pop()
        end = _end_of_string(tokens, position)
        if not end:
            continue
        start = token.start()
        typed = f"{text}^^<{XSD.string}>"
        bracket = brackets[-1]
        before_last, before = words[position - 2 : position]
        if words[bracket - 2] == "VALUES":
            edits.append((start, end, f"{text} {typed}"))
        elif words[bracket - 1] == "IN":
            edits.append((start, end, f"{text}, {typed}"))
        elif before == "=" and before_last == "!":
            edits.append((tokens[position - 2].start(), end, f" NOT IN ({text}, {typed})"))
        elif before == "=" and before_last not in ("<", ">"):
            edits.append((tokens[position - 1].start(), end, f" IN ({text}, {typed})"))
        elif words[bracket] in ("{", "[") and not (selects_all or "BIF:" in before):
            variable = f"?kgwb_string{start}"
            group = max(each for each in brackets if words[each] == "{")
            values = f" VALUES {variable} {{ {text} {typed} }} "
            edits += [(tokens[group].end(), tokens[group].end(), values), (start, end, variable)]
    for start, end, text in sorted(edits, reverse=True):
        query = query[:start] + text + query[end:]
    return query


def _end_of_string(tokens: Sequence[Token], position: int) -> int:
    """Return where a text without a language ends, with its datatype if that is xsd:string; else 0."""
    token = tokens[position]
    following = [each[0] for each in tokens[position + 1 : position + 4]]
    if token.lastgroup != "string" or following[0].startswith("@"):
        return 0
    if following[0] != "^":
        return token.end()
    if following[2] in ("xsd:string", f"<{XSD.string}>"):
        return tokens[position + 3].end()
    return 0


def _tokens_outside_brackets(tokens: Iterable[Token]) -> Iterator[Token]:
    """Yield the tokens that are not inside brackets, and the outermost brackets themselves.

    Brackets are "{", "(" and "[" with their closing ones. The order stays.
    """
    depth = 0
    for token in tokens:
        if token[0] in ("}", ")", "]"):
            depth -= 1
        if depth == 0:
            yield token
        if token[0] in ("{", "(", "["):
            depth += 1


# Terms and clauses as SPARQL


def n3(term: Term) -> str:
    """Return a term as it is written in a query.

    Raises QueryError for an IRI with invalid characters, for a text with a lone surrogate, and for a
    blank node, which would be a variable in a query.
    """
    if isinstance(term, URIRef):
        if not is_valid_iri(term):
            hint = "percent-encode the characters that an IRI may not have, such as %20 for a blank"
            raise QueryError(f"{str(term)!r} is not an IRI", hint=hint)
        return f"<{term}>"
    if isinstance(term, BNode):
        hint = "ask for what is around it, by an IRI or a literal"
        raise QueryError(f"the blank node _:{term} cannot be asked for", hint=hint)
    suffix = ""
    if term.language:
        suffix = f"@{term.language}"
    elif term.datatype:
        suffix = f"^^{n3(term.datatype)}"
    return string_literal(term) + suffix


def values_clause(variable: str, terms: Iterable[Term]) -> str:
    """Return a VALUES clause that binds a variable ("?x") to each of the distinct terms."""
    distinct_terms = dict.fromkeys(terms)
    values = " ".join(map(n3, distinct_terms))
    return f"VALUES {variable} {{ {values} }}"


def union_clause(groups: Iterable[str]) -> str:
    """Return group patterns, each put in braces, joined by UNION."""
    return " UNION ".join(f"{{ {group} }}" for group in groups)


def union_over_predicates(pattern: str, subject: str, predicates: Iterable[URIRef]) -> str:
    """Return a union that binds ?p to each predicate that a subject ("?v") has, and ?l to its values.

    ``pattern`` binds the subject. Each predicate has a branch of its own, with the whole pattern:
    engines look a constant predicate up. Where it is a variable, even one that VALUES binds,
    Oxigraph reads all triples of each predicate.
    """
    branches = []
    for predicate in map(n3, predicates):
        branches.append(f"{pattern} {subject} {predicate} ?l BIND({predicate} AS ?p)")
    return union_clause(branches)


def is_valid_iri(iri: str) -> bool:
    """Return whether an IRI can stand in a query; some engines hold IRIs that cannot."""
    return not _INVALID_IRI_CHARACTER.search(iri)


def is_serializable(term: Term) -> bool:
    """Return whether a term can stand in a query: not a blank node, nor an invalid IRI."""
    if isinstance(term, URIRef):
        return is_valid_iri(term)
    return not isinstance(term, BNode)


def string_literal(text: str) -> str:
    """Return a text as a string literal of a query, in double quotes with escapes.

    It is written so that no engine takes a backslash in it for a codepoint escape. Raises
    QueryError for a lone surrogate.
    """
    if find_lone_surrogate(text):
        raise QueryError(
            f"{text!r} holds half a character",
            hint="it has one half of a surrogate pair: read the text as UTF-8, or remove this character",
        )
    escaped = str(text).translate(_STRING_ESCAPES)
    # A backslash before a "u" looks like a codepoint escape to some engines (see
    # _AMBIGUOUS_ESCAPE), so the letter is written as an escape.
    escaped = escaped.replace(r"\\u", r"\\\u0075").replace(r"\\U", r"\\\u0055")
    return f'"{escaped}"'
