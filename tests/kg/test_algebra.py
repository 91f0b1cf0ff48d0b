"""The parts of a query: its patterns, filters and steps, however it is spaced and spelled."""

from __future__ import annotations

import pytest
from rdflib import XSD, Literal, URIRef

from kgwb.errors import QueryError
from kgwb.kg.algebra import (
    analyze_query,
    extract_patterns,
    find_iris,
    patterns_and_filters_to_sparql,
    term_from_text,
    variables_of,
)
from kgwb.kg.sparql import string_literal

A, B, TYPE = "<http://e/a>", "<http://e/b>", f"<{XSD.integer}>"
SPELLINGS = {
    '"x"@en': ['"x" @en', '"x"\n@en', '"x"# a title\n @en', "'x'@en", '"""x"""@en', '"\\u0078"@en'],
    f'"5"^^{TYPE}': ["5", '"5" ^^x:integer', '"5"^^# a\nx:integer', f"'5'\t^^ {TYPE}"],
    f'"-1.5"^^<{XSD.decimal}>': ["-1.5", '"-1.5"^^x:decimal'],
    f'"2.50"^^<{XSD.decimal}>': ["2.50"],
    "<http://e/b>": ["e:b", "e:b#\n", "<\\u0062>", "<b>"],
    "<http://e/b.~c>": ["e:b\\.\\~c"],
}
SUBQUERY = "VALUES or a query in the query"
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
    [
        (f"?s{A}*?o", [("?s", A, "?o")]),
        (f"?s {A} * ?o", [("?s", A, "?o")]),
        (f"?s ({A}/{B}) + ?o", [("?s", A, "?.1"), ("?.1", B, "?o")]),
        (f"?s ^ {A}|{B} ? ?o", [("?o", A, "?s"), ("?s", B, "?o")]),
        (f"?s {A} ?o FILTER NOT EXISTS {{ ?o {B} ?s }}", [("?s", A, "?o"), ("?o", B, "?s")]),
    ],
)
def test_paths_are_taken_apart(where: str, steps: list[tuple[str, str, str]]) -> None:
    assert set(analyze_query(f"ASK {{ {where} }}").steps) == set(steps)


@pytest.mark.parametrize(
    ("query", "kind", "variables", "patterns", "feature"),
    [
        (f"SELECT ?s {{ ?s {A} {B} . ?s {A} {B} }}", "list", ("?s",), 1, ""),
        ("SELECT (COUNT(?o) AS ?n) { ?s ?p ?o }", "count", ("?o",), 1, "BIND, AS or an aggregate"),
        ("SELECT ?n { { SELECT (COUNT(?o) AS ?n) { ?s ?p ?o } } }", "list", ("?n",), 1, SUBQUERY),
        (f"ASK {{ ?s {A} ?o MINUS {{ ?o {A} ?s }} }}", "boolean", (), 1, "MINUS"),
        ("ASK { ?s ?p ?o OPTIONAL { ?o ?p ?s } }", "boolean", (), 2, "OPTIONAL"),
        ("ASK { { ?s ?p ?o } UNION { ?o ?p ?s } }", "boolean", (), 2, "UNION"),
        (f"ASK {{ ?s {A}+ ?o }}", "boolean", (), 1, "a property path"),
        (f"ASK {{ ?s {A} +1 ; a +.5 }}", "boolean", (), 2, ""),
        ("ASK { ?s ?p ?o FILTER(?s + 1 > 2) }", "boolean", (), 1, "arithmetic or a foreign function"),
        ("ASK { ?s ?p ?o FILTER(?s<2&&?o>1) }", "boolean", (), 1, ""),
        ("SELECT DISTINCT ?s { ?s ?p ?o } ORDER BY ?s LIMIT 3", "list", ("?s",), 1, ""),
    ],
)  # fmt: skip
def test_kind_variables_and_what_a_query_has_besides_patterns(
    query: str, kind: str, variables: tuple[str, ...], patterns: int, feature: str
) -> None:
    parts = analyze_query(query)
    assert (parts.kind, parts.projected_variables) == (kind, variables)
    assert (len(parts.patterns), parts.unsupported_feature) == (patterns, feature)


def test_texts_like_the_numbers_of_iris_are_kept() -> None:
    texts = ["<urn:0:b>", '"7700770077000"^^<http://www.w3.org/2001/XMLSchema#integer>']
    for literal in (*map(string_literal, texts), f'"7700770077005"^^<{XSD.integer}>'):
        patterns, filters = extract_patterns(f"ASK {{ {A} {B} {literal} FILTER({literal} = {B}) }}")
        assert (patterns, filters) == (((A, B, literal),), f"FILTER(({literal} = {B})) ")


@pytest.mark.parametrize(
    ("query", "iris"),
    [
        ("prefix e: <http://e/> ASK { e:a ex:b <http://e/c> . x:d ?p 'e:f <http://e/g>' } # e:h",
         ["http://e/a", "http://x/b", "http://e/c"]),
        ("BASE <http://e/> PREFIX ex: <http://e/> SELECT ex:b\\-c", ["http://e/b-c"]),
        ("ASK { ex:a <http://e/b> 'Schindler's List' }", ["http://x/a", "http://e/b"]),
    ],
)  # fmt: skip
def test_the_iris_of_a_query_are_found_by_its_prefixes_and_others(
    query: str, iris: list[str]
) -> None:
    assert find_iris(query, {"ex": "http://x/"}) == set(map(URIRef, iris))


@pytest.mark.parametrize("where", ["", "{ ?s ?p ?o } UNION { ?o ?p ?s }", "?s e:p ?o"])
def test_other_queries_cannot_be_taken_apart(where: str) -> None:
    with pytest.raises(QueryError):
        extract_patterns(f"ASK {{ {where} }}")


@pytest.mark.parametrize(
    ("text", "term"),
    [
        (A, URIRef("http://e/a")),
        ("<urn:x:é>", URIRef("urn:x:é")),
        ('"Dune"', Literal("Dune")),
        ('"Dune"@de', Literal("Dune", lang="de")),
        (f'"7"^^{TYPE}', Literal(7)),
        ('"a \\"b\\""', Literal('a "b"')),
    ],
)
def test_terms_are_read_from_their_n_triples_form(text: str, term: object) -> None:
    assert term_from_text(text) == term


def test_patterns_are_written_with_those_filters_whose_variables_they_have() -> None:
    patterns = [("?b", A, "?a"), ("?a", B, "?b")]
    assert variables_of(patterns) == ("?b", "?a")
    written = f"?b {A} ?a . ?a {B} ?b . "
    for filters in ("FILTER(?a < ?b) ", ""):
        assert patterns_and_filters_to_sparql(patterns, filters) == written + filters
    assert patterns_and_filters_to_sparql(patterns, "FILTER(?c) ") == written
