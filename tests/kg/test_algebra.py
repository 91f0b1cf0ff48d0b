"""The parts of a query: its patterns, filters and steps, however it is spaced and spelled."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pyoxigraph
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
from kgwb.kg.sparql import string_literal, tokenize, validate_query

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
    assert find_iris(query, {"ex": "http://x/"}) == set(map(URIRef, iris))


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


# --- the same query in other words. Oxigraph, which reads all of the grammar, says which are valid

PROLOGUE = "BASE <http://e/> PREFIX : <http://e/> PREFIX x.y: <http://e/p/> "
QUERIES = [
    'SELECT ?x { ?x :p "Arrival"@en , "a"@en-US , "116"^^<http://e/i> , \'b\'^^:i ; :q """c""", \'\'\'d\'\'\' }',
    "SELECT DISTINCT ?x (COUNT(DISTINCT *) AS ?n) FROM :g FROM NAMED :h WHERE { ?x a :C . } "
    "GROUP BY ?x HAVING(COUNT(*) > 1) ORDER BY DESC(?n) ASC(?x) LIMIT 10 OFFSET 5",
    "SELECT * { ?x :p/:q|^:r ?y . ?y !(:p|^:q) ?z . ?z (:p/:q)* ?a . ?a :p+ ?b . ?b ^(:p)? ?c . ?c !a ?d }",
    "SELECT ?x { { ?x :p 1 } UNION { ?x :p 1.5 , -2 , +3.0 , 1e3 , -1.5E-3 , true , false } MINUS { ?x :q _:b , [] } }",
    "SELECT ?x { GRAPH ?g { ?x :p [ :q 1 ; :r (1 :a ?b) ] } "
    "OPTIONAL { ?x :q ?y FILTER(?y < 3 && ?y >= 1 || !(?y != 2)) } }",
    'ASK { ?x :p ?y FILTER(REGEX(STR(?y), "^a\\\\b", "i") && ?y IN (1, 2) && ?y NOT IN (:a) && LANG(?y) = "") }',
    "SELECT ?x { VALUES (?x ?y) { (:a UNDEF) (UNDEF 'b') } BIND(IF(BOUND(?y), ?y + 1 * 2 - 3 / 4, -?y) AS ?z) }",
    "SELECT ?x { ?x :p ?y FILTER NOT EXISTS { ?y :q ?x } FILTER EXISTS { ?x :p ?z } } VALUES ?x { :a <b> }",
    "SELECT ?x { ?x x.y:a%20b ?y ; :a\\,b ?z ; :1 ?w ; :a.b:c ?v ; $t ?u }",
    "SELECT (GROUP_CONCAT(DISTINCT ?y ; SEPARATOR=', ') AS ?t) (SUM(?y)/COUNT(?y) AS ?m) { ?x :p ?y }",
    "SELECT ?x { { SELECT ?x { ?x :p ?y } ORDER BY ?y LIMIT 1 } ?x :q ?z . FILTER(?z = :a || COALESCE(?z, 1) = 1) }",
    "CONSTRUCT { ?x :p ?y } WHERE { ?x :q ?y }",
    "DESCRIBE ?x :a WHERE { ?x :p :b }",
    "ASK {}",
]
GAPS = (" ", "\n", "\t", "\r\n", "\r", " \n ", "# x\n", "#\"'<{\n", " # ASK { } \n", "#\n#\n")
OPERATORS = ("&&", "||", "!=", "<=", ">=", "^^")
KEYWORD = re.compile(r"[A-Z_]{2,}")


def spelled(query: str, chance: random.Random) -> str:
    """The same query, spelled in another way."""
    parts: list[str] = []
    end = 0
    for number, token in enumerate(tokenize(query).tokens):
        text = token[0]
        if token.lastgroup == "word" and KEYWORD.fullmatch(text):
            text = "".join(chance.choice((letter, letter.lower())) for letter in text)
        if token.lastgroup in ("string", "iri") and chance.random() < 0.5:
            letter = re.search(r"(?<![\\\\\w])[a-zA-Z]", text)
            if letter:
                escape = chance.choice((f"\\u{ord(letter[0]):04X}", f"\\U{ord(letter[0]):08x}"))
                text = f"{text[: letter.start()]}{escape}{text[letter.end() :]}"
        is_operator = parts and parts[-1][-1] + text in OPERATORS
        is_signed = parts and parts[-1][-1] in "+-" and token.lastgroup == "number"
        was_adjacent = token.start() == end
        end = token.end()
        if was_adjacent and (is_operator or is_signed):
            parts.append(text)
            continue
        was_apart = number and query[token.start() - 1].isspace()
        if was_apart or (number and chance.random() < 0.5):
            parts.append(chance.choice(GAPS))
        parts.append(text)
    return "".join(parts)


def is_valid(query: str) -> bool:
    try:
        pyoxigraph.Store().query(query)
    except SyntaxError:
        return False
    return True


def analysis(query: str) -> str:
    """The analysis, in which the blank nodes of the query have no names."""
    made = repr(analyze_query(query))
    return re.sub(r"_:\w+", "_:b", made)


@pytest.mark.parametrize("query", QUERIES, ids=range(len(QUERIES)))
def test_a_query_means_the_same_however_it_is_spelled(query: str) -> None:
    query = PROLOGUE + query
    expected = validate_query(query)
    tried = 0
    for seed in range(25):
        spelling = spelled(query, random.Random(seed))
        if not is_valid(spelling):
            continue
        tried += 1
        found = validate_query(spelling)
        assert (found.form, found.variables, found.is_monotonic) == (
            expected.form,
            expected.variables,
            expected.is_monotonic,
        ), spelling
        if expected.form in ("select", "ask"):
            assert analysis(spelling) == analysis(query), spelling
    assert tried > 5


@pytest.mark.parametrize("escape", ["\\u0061bcde", "\\U00000061bcde", "\\u0061\\u0062cde"])
def test_an_escape_ends_after_its_digits(escape: str) -> None:
    """rdflib takes up to eight digits after a small u."""
    query = f'SELECT ?x {{ ?x <http://e/{escape}> "{escape}" }}'
    assert analyze_query(query).patterns == (("?x", "<http://e/abcde>", '"abcde"'),)
    assert {str(iri) for iri in find_iris(query, {})} == {"http://e/abcde"}
