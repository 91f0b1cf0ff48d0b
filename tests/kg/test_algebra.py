"""The parts of a query: its patterns, filters and steps, however it is spaced and spelled."""

from __future__ import annotations

from pathlib import Path

import pytest
from rdflib import XSD, URIRef
from tables import read_table

from kgwb.errors import QueryError
from kgwb.kg.algebra import (
    analyze_query,
    extract_patterns,
    find_iris,
    patterns_and_filters_to_sparql,
    variables_of,
)
from kgwb.kg.sparql import string_literal

HERE = Path(__file__).parent

A, B, TYPE = "<http://e/a>", "<http://e/b>", f"<{XSD.integer}>"
SPELLINGS = {
    '"x"@en': ['"x" @en', '"x"\n@en', '"x"# a title\n @en', "'x'@en", '"""x"""@en', '"\\u0078"@en'],
    f'"5"^^{TYPE}': ["5", '"5" ^^x:integer', '"5"^^# a\nx:integer', f"'5'\t^^ {TYPE}"],
    f'"-1.5"^^<{XSD.decimal}>': ["-1.5", '"-1.5"^^x:decimal'],
    f'"2.50"^^<{XSD.decimal}>': ["2.50"],
    "<http://e/b>": ["e:b", "e:b#\n", "<\\u0062>", "<b>"],
    "<http://e/b.~c>": ["e:b\\.\\~c"],
}
START = "BASE <http://e/x> PREFIX x: <http://www.w3.org/2001/XMLSchema#> PREFIX e: <http://e/> "


@pytest.mark.parametrize(
    ("term", "spelling"),
    [(term, one) for term, all_of_it in SPELLINGS.items() for one in all_of_it],
)
def test_a_term_is_read_however_it_is_written(term: str, spelling: str) -> None:
    parts = analyze_query(f"{START}SELECT ?s {{ ?s <http://e/a> {spelling} }}")
    assert parts.patterns == parts.steps == (("?s", A, term),)
    parts = analyze_query(f"{START}SELECT ?s {{ ?s e:a ?o FILTER(?o != {spelling}) }}")
    is_negative = spelling.startswith("-")  # a sign is arithmetic there
    assert parts.filters == ("" if is_negative else f"FILTER((?o != {term})) ")


@pytest.mark.parametrize(
    ("where", "steps"),
    read_table(HERE / "paths.jsonl"),
)
def test_paths_are_taken_apart(where: str, steps: list[list[str]]) -> None:
    assert set(analyze_query(f"ASK {{ {where} }}").steps) == set(map(tuple, steps))


@pytest.mark.parametrize(
    ("query", "kind", "variables", "patterns", "feature"),
    read_table(HERE / "query_kinds.jsonl"),
)  # fmt: skip
def test_kind_variables_and_what_a_query_has_besides_patterns(
    query: str, kind: str, variables: list[str], patterns: int, feature: str
) -> None:
    parts = analyze_query(query)
    assert (parts.kind, list(parts.projected_variables)) == (kind, variables)
    assert (len(parts.patterns), parts.unsupported_feature) == (patterns, feature)


def test_texts_like_the_numbers_of_iris_are_kept() -> None:
    texts = ["<urn:0:b>", '"7700770077000"^^<http://www.w3.org/2001/XMLSchema#integer>']
    for literal in (*map(string_literal, texts), f'"7700770077005"^^<{XSD.integer}>'):
        patterns, filters = extract_patterns(f"ASK {{ {A} {B} {literal} FILTER({literal} = {B}) }}")
        assert (patterns, filters) == (((A, B, literal),), f"FILTER(({literal} = {B})) ")


@pytest.mark.parametrize(
    ("query", "iris"),
    read_table(HERE / "iris_of_queries.jsonl"),
)  # fmt: skip
def test_the_iris_of_a_query_are_found_by_its_prefixes_and_others(
    query: str, iris: list[str]
) -> None:
    assert find_iris(query) == set(map(URIRef, iris))


@pytest.mark.parametrize("where", ["", "{ ?s ?p ?o } UNION { ?o ?p ?s }", "?s e:p ?o"])
def test_other_queries_cannot_be_taken_apart(where: str) -> None:
    with pytest.raises(QueryError):
        extract_patterns(f"ASK {{ {where} }}")


def test_patterns_are_written_with_those_filters_whose_variables_they_have() -> None:
    patterns = [("?b", A, "?a"), ("?a", B, "?b")]
    assert variables_of(patterns) == ("?b", "?a")
    written = f"?b {A} ?a . ?a {B} ?b . "
    for filters in ("FILTER(?a < ?b) ", ""):
        assert patterns_and_filters_to_sparql(patterns, filters) == written + filters
    assert patterns_and_filters_to_sparql(patterns, "FILTER(?c) ") == written
