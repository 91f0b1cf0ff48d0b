"""Induction: every triple is in a passage, and in a row or on the list of those that are in none."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from conftest import harbour_folder
from small import films

import kgwb
from kgwb.disk import cache_dir
from kgwb.flow import term_from_data
from kgwb.kg import Graph
from kgwb.kg.embeddings import Embeddings
from kgwb.systems.ragonite.database import Database, database
from kgwb.systems.ragonite.settings import RagoniteSettings

HARBOUR = Path("/work/shared/data/harbour")


def induced(kg: Graph, **settings: Any) -> tuple[Database, sqlite3.Connection]:
    """The database of a graph, and its file."""
    known = database(kg, RagoniteSettings(**settings), Embeddings("lexical"))
    newest = max(cache_dir().glob("ragonite-*.sqlite"), key=lambda path: path.stat().st_mtime_ns)
    return known, sqlite3.connect(newest)


def lost(kg: Graph) -> list[Any]:
    """The triples of a graph that are in no passage, or neither in a row nor on the list, as they should."""
    known, file = induced(kg)
    query = "SELECT ?s ?p ?o WHERE { ?s ?p ?o } LIMIT 10000 OFFSET "
    pages = [kg.select(f"{query}{start}").rows for start in range(0, known.schema.triples + 1, 10_000)]
    triples = {triple for page in pages for triple in page}
    told = {}
    sql = "SELECT triple, title, text FROM _facts JOIN _passages ON n = passage"
    for n, title, text in file.execute(sql):
        told[n] = told.get(n, "") + title + text
    reasons, wrong = Counter[str](), []
    sql = (
        "SELECT n, term, predicate, value, place, subject, cell, low, ifnull(name, cell) FROM _triples"
        " JOIN _terms s ON s.id = subject LEFT JOIN (SELECT id AS o, name FROM _terms) ON o = object"
    )
    sql = (
        "SELECT n, s.term, predicate, value, place, subject, cell, low, o.name FROM _triples"
        " JOIN _terms s ON s.id = subject LEFT JOIN _terms o ON o.id = object"
    )
    for n, term, predicate, value, place, subject, cell, low, name in file.execute(sql).fetchall():
        whole = term_from_data(json.loads(term)), kgwb.kg.base.URIRef(predicate), term_from_data(json.loads(value))
        in_passage = n in told and (name or cell) in told[n] or (n in told and name is not None and "_" in cell)
        table, dot, column = place.partition(".")
        if dot:
            keys = [c[1] for c in file.execute(f"PRAGMA table_info({table})")]
            stored = {str(r[0]) for r in file.execute(f"SELECT {column} FROM {table} WHERE {keys[0]} = ?", (subject,))}
            expected = subject if column == "id" else cell
            in_row = bool({expected, str(low), str(float(low)) if low is not None else ""} & stored)
        else:
            reasons[place] += 1
            in_row = True
        if whole not in triples or not in_passage or not in_row:
            wrong.append((whole, place, in_passage, in_row))
        triples.discard(whole)
    assert tuple(sorted(reasons.items())) == known.schema.only_passages
    return wrong + sorted(triples)
