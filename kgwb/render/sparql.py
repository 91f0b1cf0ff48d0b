"""SPARQL as a person reads it: laid out a triple pattern a line, its parts told apart."""

from __future__ import annotations

from collections.abc import Iterator

from pygments.lexers.rdf import SparqlLexer
from pygments.token import Comment, Keyword, Literal, Name, Punctuation, _TokenType

from kgwb.kg.text import local_name
from kgwb.render.html import Html, safe, tag
from kgwb.render.words import Names

CLASSES: dict[_TokenType, str] = {
    Keyword: "kgwb-keyword",
    Name.Function: "kgwb-keyword",
    Name.Variable: "kgwb-variable",
    Name.Label: "kgwb-iri",
    Name.Namespace: "kgwb-iri",
    Name.Tag: "kgwb-iri",
    Literal: "kgwb-literal",
    Comment: "kgwb-aside",
}
"""Class of each kind of token; the style gives it a colour of the theme and a form besides."""
INDENT = "  "


def sparql(text: str, names: Names | None = None) -> Html:
    """A query laid out and highlighted; what an IRI is called shows under the pointer."""
    parts = [_part(kind, word, names or {}) for kind, word in _tokens(laid_out(text))]
    return tag("pre", *parts, class_="kgwb-pre")


def laid_out(text: str) -> str:
    """A query of one line with a line for each triple pattern; any other as its author laid it out."""
    if "\n" in text.strip():
        return text
    lines, depth = [(0, "")], 0
    for kind, word in _tokens(text):
        if kind is Keyword and word.upper() == "FILTER":
            lines.append((depth, ""))
        for part in word if kind is Punctuation else (word,):  # the lexer gives signs together: "}."
            depth += (part == "{") - (part == "}")
            if part == "}":
                lines.append((depth, ""))
            lines[-1] = (lines[-1][0], lines[-1][1] + part)
            if kind is Punctuation and part in "{.":
                lines.append((depth, ""))
    return "\n".join(INDENT * deep + line.strip() for deep, line in lines if line.strip())


def _part(kind: _TokenType, word: str, names: Names) -> Html:
    known = next((name for group, name in CLASSES.items() if kind[: len(group)] == group), "")
    if kind is Name.Label:
        return tag("span", word, class_=known, title=names.get(word[1:-1]) or local_name(word[1:-1]))
    return tag("span", word, class_=known) if known else safe(word)


def _tokens(text: str) -> Iterator[tuple[_TokenType, str]]:
    return iter(SparqlLexer(stripnl=False, ensurenl=False).get_tokens(text))
