"""A query means the same however it is spelled: white space, comments, letter case and escapes between any tokens.

Oxigraph, which reads all of SPARQL's grammar, says which spellings are valid.
"""

from __future__ import annotations

import random
import re

import pyoxigraph
import pytest

from kgwb.kg.algebra import analyze_query, find_iris
from kgwb.kg.sparql import tokenize, validate_query

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
    assert {str(iri) for iri in find_iris(query)} == {"http://e/abcde"}
