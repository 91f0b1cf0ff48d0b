"""Short ids for the terms of a graph, and names for tables and columns."""

from __future__ import annotations

import re
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import closing, suppress
from urllib.parse import quote, urlsplit

from rdflib import BNode, URIRef

from kgwb.build import Term, Triple, local_part, name_from_iri

MAX_IDENTIFIER_CHARS = 60
"""Characters of an id, or of the name of a table or column, before a number is added."""
FORBIDDEN_TABLE_PREFIXES = ("_", "sqlite_", "pragma_")
"""Beginnings of the names of tables that a query may not read: those of SQLite, and helpers."""
SEPARATORS = re.compile(r"[\s,'\"]+")
"""Characters that no id has. A comma separates ids in a result of group_concat."""
TermNames = Mapping[Term, str]
"""Display names by IRI."""


def assign_ids(
    triples: Iterable[Triple], names: TermNames, table_by_term: Mapping[Term, str]
) -> dict[Term, str]:
    """Return a distinct id for each IRI in ``names`` and each blank node in the triples.

    The id of an IRI in a table is its local part, that of another IRI its display name, without
    SEPARATORS and cut after MAX_IDENTIFIER_CHARS. The id of a blank node is the name of its table,
    or "node". The id of an IRI whose name is the IRI is the IRI itself. Equal ids get numbers. Terms
    are taken in a fixed order, IRIs in tables first, so that the ids do not depend on the order of
    the triples.
    """
    used_ids: set[str] = set()
    ids: dict[Term, str] = {}
    for iri in sorted(names, key=lambda iri: (iri not in table_by_term, iri)):
        if iri in table_by_term:
            text = SEPARATORS.sub("_", local_part(iri) or iri)
        elif names[iri] == str(iri):
            ids[iri] = make_unique(text_of_page(iri), used_ids)
            continue
        else:
            text = SEPARATORS.sub(" ", names[iri])
        ids[iri] = make_unique(text[:MAX_IDENTIFIER_CHARS], used_ids)
    for node in _blank_nodes_by_triples(triples):
        table = table_by_term.get(node, "node")
        ids[node] = make_unique(f"{table}_1", used_ids)
    return ids


def text_of_page(iri: str) -> str:
    """Return an IRI as an id: whole, but for characters that no id has, which are escaped."""
    return SEPARATORS.sub(lambda found: quote(found[0], safe=""), iri)


def find_pages(triples: Iterable[Triple], names: TermNames) -> set[URIRef]:
    """Return the IRIs that lead out of a graph, such as the page of a car: they are kept whole.

    They are objects only, have no display name but the one that is made of the IRI, and are at no
    host that an IRI of a subject or a predicate is at.
    """
    own_hosts: set[str] = set()
    objects: set[URIRef] = set()
    own_terms: set[Term] = set()
    for subject, predicate, object_ in triples:
        own_terms.update((subject, predicate))
        if isinstance(object_, URIRef):
            objects.add(object_)
    for term in own_terms:
        if isinstance(term, URIRef):
            own_hosts.add(_host_of(term))
    pages = set()
    for iri in objects - own_terms:
        is_web_page = str(iri).startswith(("http://", "https://"))
        if is_web_page and names.get(iri) == name_from_iri(iri) and _host_of(iri) not in own_hosts:
            pages.add(iri)
    return pages


def _host_of(iri: str) -> str:
    """Return the host of an IRI; empty if it has none, or is malformed."""
    try:
        return urlsplit(iri).netloc.lower()
    except ValueError:
        return ""


def _blank_nodes_by_triples(triples: Iterable[Triple]) -> list[BNode]:
    """Return the blank nodes in the triples, sorted by the predicates and neighbours of each.

    So their order does not depend on their labels, which a parser may choose at random, unless they
    have equal triples. A neighbour that is a blank node does not count.
    """
    descriptions: dict[BNode, list[str]] = defaultdict(list)
    for subject, predicate, object_ in triples:
        for node, neighbour in ((subject, object_), (object_, subject)):
            if isinstance(node, BNode):
                is_named = not isinstance(neighbour, BNode)
                descriptions[node].append(f"{predicate} {neighbour}" if is_named else "")
    return sorted(descriptions, key=lambda node: (sorted(descriptions[node]), node))


def make_unique(text: str, used: set[str]) -> str:
    """Return a text that is not used yet, and add it to ``used`` in lower case.

    If the text is used, it gets a number: "film_2". A text that ends in "_1" counts as the first of
    such a series. Upper and lower case are not distinguished, because SQL names do not.
    """
    base = text.removesuffix("_1")
    number = 1
    while text.casefold() in used:
        number += 1
        text = f"{base}_{number}"
    used.add(text.casefold())
    return text


def make_identifier(text: str, used: set[str]) -> str:
    """Return a valid SQL name for a table or column that is not in ``used``, and add it there.

    It is the text in lower case with "_" between words, so that it needs no quotes. Where SQLite
    does not accept that as a name, such as "select" or "1st", "_" is added behind it or "x_" before
    it. The last resort, also for a text without words, is "x".
    """
    name = _join_words(text) or "x"
    for candidate in (name, f"{name}_", f"x_{name}"):
        with closing(sqlite3.connect(":memory:")) as scratch, suppress(sqlite3.Error):
            scratch.execute(f"CREATE TABLE {candidate} ({candidate} TEXT)")
            return make_unique(candidate, used)
    return make_unique("x", used)


def make_table_name(text: str, used: set[str]) -> str:
    """Return a name for a table as ``make_identifier`` does, but one that queries may read.

    A name that begins like those of FORBIDDEN_TABLE_PREFIXES gets "x_" before it.
    """
    if _join_words(text).startswith(FORBIDDEN_TABLE_PREFIXES):
        text = f"x {text}"
    return make_identifier(text, used)


def _join_words(text: str) -> str:
    """Return the words of a text in lower case with "_" between them, cut after the limit."""
    words = re.sub(r"\W+", "_", text.lower()).strip("_")
    return words[:MAX_IDENTIFIER_CHARS]
