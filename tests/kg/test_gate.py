"""The gate: a query that only reads passes, and every other one is refused, however it is written."""

from __future__ import annotations

import json
import re
import sys
import time
from contextlib import nullcontext, suppress
from dataclasses import astuple
from pathlib import Path

import pyoxigraph
import pytest
from hostile.corpus import FORBIDDEN, HALVES, NO_IRIS
from hypothesis import given
from hypothesis import strategies as st
from rdflib import XSD, BNode, Literal, URIRef
from small import films, queries_with_strings
from tables import read_table

from kgwb.errors import QueryError, QueryRefusedError
from kgwb.kg.local import term_from_oxigraph
from kgwb.kg.sparql import (
    is_serializable,
    match_both_strings,
    n3,
    parse_query,
    select_also,
    split_clauses,
    validate_query,
)

HERE = Path(__file__).parent

JUDGED = [*read_table(HERE / "judged_queries.jsonl"), *((each, "refused") for each in FORBIDDEN)]
"""Queries with their form, or whether they are refused or broken."""
LARGE = {
    "patterns": "SELECT * { " + "?s ?p ?o . " * 800 + "}",
    "template": "CONSTRUCT { " + "?s ?p ?o . " * 800 + "} { ?s ?p ?o }",
    "groups": "SELECT * " + "{" * 100 + "?s ?p ?o" + "}" * 100,
    "subqueries": "SELECT * { " + "{ SELECT * { " * 45 + "?s ?p ?o" + " } }" * 45 + " }",
    "functions": "SELECT * { FILTER(" + "<http://e/f>(" * 90 + "1" + ")" * 90 + ") }",
    "sums": "SELECT * { FILTER(" + "(1 + " * 90 + "1" + ")" * 90 + ") }",
}
TOO_LARGE = [
    ("SELECT * { " + "?s ?p ?o . " * 3000 + "}", True),
    ("()" * 101 + "(" * 100, False),
    ("()" + "(" * 101, True),
    ("+ " * 10_000, False),
    ("+ " * 10_001, True),
]
"""Texts that are not valid, and whether that is because of their size."""
SLOW = {
    "dotted words": "a." * 9000 + "b" * 100_000,
    "digits": "1" * 100_000,
    "digits before a letter": "1" * 30_000 + "a",
    "signs that begin a prefix": "™." * 9000 + "b" * 100_000,
    "patterns that only Oxigraph parses": "SELECT * { " + "?s ?p ?o . " * 300 + "LATERAL { } }",
    "quotation marks in a string without an end": '"\\' * 60_000,
    "a list that only Oxigraph parses": "SELECT * { ?s ?p (" + "1 " * 300 + ") LATERAL { } }",
}


def verdict(query: str) -> str:
    """Return the form of a query, or whether it is refused or broken."""
    try:
        return validate_query(query).form
    except QueryRefusedError:
        return "refused"
    except QueryError as error:
        assert error.hint and error.hint not in error.message
        return "broken"


@pytest.mark.parametrize(("query", "judged"), JUDGED)
def test_a_query_passes_with_its_form_or_is_refused_or_does_not_parse(
    query: str, judged: str
) -> None:
    assert verdict(query) == judged
    if judged != "broken" and "#" not in query:
        assert _verdict(query, query) == _verdict(query, f"{query}\n# a comment")


def form_on_a_deep_stack(frames: int, query: str) -> str:
    """Return the form of a query, validated with this many frames on the stack."""
    return form_on_a_deep_stack(frames - 1, query) if frames else validate_query(query).form


@pytest.mark.parametrize("name", LARGE)
def test_long_and_deep_queries_pass_on_a_deep_stack(name: str) -> None:
    limit = sys.getrecursionlimit()
    assert form_on_a_deep_stack(880, LARGE[name]) in ("select", "construct")
    assert sys.getrecursionlimit() == limit


@pytest.mark.parametrize(("query", "is_too_large"), TOO_LARGE)
def test_a_query_that_is_too_large_is_an_error_of_its_own(query: str, is_too_large: bool) -> None:
    with pytest.raises(QueryError) as caught:
        validate_query(query)
    assert ("about 1,000 patterns" in caught.value.hint) == is_too_large


@pytest.mark.parametrize("name", SLOW)
def test_no_text_takes_long_to_validate(name: str) -> None:
    begun = time.process_time()
    with pytest.raises(QueryError):
        validate_query(SLOW[name])
    assert time.process_time() - begun < 10  # it was up to minutes


@pytest.mark.parametrize(("query", "with_one_iri", "with_all"), read_table(HERE / "services.jsonl"))
def test_service_and_functions_pass_with_permission_only(
    query: str, with_one_iri: bool, with_all: bool
) -> None:
    for permission, passes in (
        ({"allowed_service_iri": "http://e/s"}, with_one_iri),
        ({"allow_service": True}, with_all),
    ):
        with nullcontext() if passes else pytest.raises(QueryRefusedError):
            assert validate_query(query, **permission).text == query  # type: ignore[arg-type]
    if query.startswith("SELECT"):
        with pytest.raises(QueryRefusedError):
            validate_query(query)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (
            "SELECT *\nWHERE { ?s ?p } LIMIT" + " " * 30,
            r"line 2, column 17: .*\(near 'LIMIT {25}'\)",
        ),
        ('\n?s ?p "\ud83d" }', "line 2, column 8: there is half a character"),
        ("SELECT * { ?s ?p 'it }", "a string that does not end"),
        (" ", "line 1, column 2: expected SELECT, ASK, CONSTRUCT or DESCRIBE"),
        ("ASK { " + "?s ?p ?o ." * 29 + "?s }", "expected"),
        ("ASK { " + "?s ?p ?o ." * 29 + "?s ?p }", "(?s)^(?!.*expected)"),
        # Oxigraph is not asked where the error is: it might call the endpoint.
        ("SELECT * { SERVICE <http://e/s> { ?s ?p ?o } } LIMIT", "(?s)^(?!.*expected)"),
        ("ASK { SERVICE <http://e/s> { " + "?s ?p ?o . " * 3000 + "} }", "too long"),
        ("ASK { SERVICE <http://e/s> { SERVICE <http://e/t> { } } }", "a SERVICE within a SERVICE"),
    ],
)
def test_the_error_names_the_place(query: str, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        validate_query(query, allow_service=True)


def test_undeclared_prefixes_are_listed() -> None:
    query = "PREFIX a: <http://e/> SELECT * { a:x b:y c:z, b:w }"
    assert validate_query(query).undeclared_prefixes == ("b", "c")


def test_comments_become_spaces_in_the_text_to_send() -> None:
    found = validate_query('SELECT * { # all\r\n ?s ?p "#kept" }# end')
    assert found.text == 'SELECT * {      \n ?s ?p "#kept" }     '


@pytest.mark.parametrize(
    ("query", "accepts_limit", "is_monotonic"),
    read_table(HERE / "limits.jsonl"),
)
def test_whether_a_limit_can_be_added_and_whether_more_triples_give_more_rows(
    query: str, accepts_limit: bool, is_monotonic: bool
) -> None:
    parsed = validate_query(query)
    assert (parsed.accepts_limit, parsed.is_monotonic) == (accepts_limit, is_monotonic)


@pytest.mark.parametrize(
    ("query", "clauses"),
    read_table(HERE / "clauses.jsonl"),
)  # fmt: skip
def test_the_clauses_of_a_query_are_told_apart(query: str, clauses: list[object]) -> None:
    *found, _ = astuple(split_clauses(query))
    assert json.loads(json.dumps(found)) == clauses


def test_the_words_of_a_query_are_those_in_its_braces_alone() -> None:
    query = "SELECT (STR(?bind) AS ?x) { ?union <http://e/MINUS> 'EXISTS' Filter(isiri(?s)) } GROUP BY ?s"
    assert split_clauses(query).words == {"FILTER", "ISIRI"}


@pytest.mark.parametrize(
    ("query", "more"),
    [
        ("SELECT ?s { } LIMIT 5", "SELECT ?n ?s { } LIMIT 7"),
        ("SELECT DISTINCT  ?s{}limit  5 OFFSET 1", "SELECT DISTINCT  ?n ?s{}LIMIT 7 OFFSET 1"),
        ("SELECT(1 AS ?x) { { SELECT REDUCED ?s { } LIMIT 5 } }",
         "SELECT?n (1 AS ?x) { { SELECT REDUCED ?s { } LIMIT 5 } }"),
    ],
)  # fmt: skip
def test_more_can_be_selected(query: str, more: str) -> None:
    assert select_also(query, "?n", 7) == more
    assert select_also(query, "") == query


def value_in_oxigraph(written: str) -> object:
    """Return the term that Oxigraph reads where a query has this text."""
    allowed = validate_query(f"SELECT ?x {{ VALUES ?x {{ {written} }} }}")
    ((term,),) = pyoxigraph.Store().query(allowed.text)  # type: ignore[misc, str-unpack]
    return term_from_oxigraph(term)


@given(st.text(alphabet="\"'\\#<>{}\r\n us0042SERVICE", max_size=60))
def test_a_string_that_passes_is_a_string_for_oxigraph(text: str) -> None:
    for quote in ('"', "'", '"""', "'''"):
        query = f"SELECT * {{ ?s ?p {quote}{text}{quote} }}"
        with suppress(QueryError, QueryRefusedError):
            # Oxigraph reads it the same way: a pattern over an empty store, no call to another endpoint.
            assert list(pyoxigraph.Store().query(validate_query(query).text)) == []  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "term",
    [
        Literal('a "b" \\ \n\r\t\b\f é 😀 \x00'),
        Literal("C:\\users\\U0001F600 \\u0041"),
        Literal("hello", lang="en-GB"),
        Literal("1791", datatype=URIRef("http://www.w3.org/2001/XMLSchema#gYear")),
        URIRef("http://example.org/café?q=1#x"),
    ],
)
def test_terms_are_read_as_they_were_written(term: Literal | URIRef) -> None:
    assert value_in_oxigraph(n3(term)) == term
    assert is_serializable(term)


@pytest.mark.parametrize(
    "term",
    [
        *map(URIRef, NO_IRIS),
        BNode("b0"),
        *map(Literal, HALVES),
    ],
)
def test_terms_that_cannot_be_written_are_errors(term: URIRef | BNode | Literal) -> None:
    with pytest.raises(QueryError):
        n3(term)
    assert not is_serializable(term) or isinstance(term, Literal)


def _verdict(query: str, commented: str) -> object:
    """What the gate says about a query that may have a comment, but for the place of an error."""
    try:
        passed = validate_query(commented)
    except (QueryError, QueryRefusedError) as error:
        return type(error)
    assert passed.text[: len(query)] == query
    return passed._replace(text="", skeleton=passed.skeleton.strip())


@given(
    st.lists(st.sampled_from(read_table(HERE / "pieces_of_queries.jsonl")), max_size=12).map(
        "".join
    )
)
def test_a_query_is_judged_alike_with_a_comment_which_makes_the_gate_read_all_tokens(
    query: str,
) -> None:
    assert _verdict(query, query) == _verdict(query, f"{query}\n# a comment")


@pytest.mark.parametrize(("start", "repeated", "end"), read_table(HERE / "repeated_parts.jsonl"))
def test_what_stands_several_times_in_a_row_is_judged_as_it_is_written(
    start: str, repeated: str, end: str
) -> None:
    for times in range(5):
        query = start + repeated * times + end
        assert _verdict(query, query) == _verdict(query, f"{query}\n# a comment"), times


def test_a_query_is_parsed_once_for_any_number_of_values_and_branches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parsed: list[str] = []

    def parse_and_note(text: str) -> object:
        parsed.append(text)
        return parse_query(text)

    monkeypatch.setattr("kgwb.kg.sparql.parse_query", parse_and_note)
    for times in range(3, 9):
        values = " ".join(f"<http://e/{n}>" for n in range(times))
        branches = " UNION ".join(f"{{ <http://e/{n}> ?many ?o }}" for n in range(times))
        validate_query(f"SELECT ?many {{ VALUES ?many {{ {values} }} {branches} }}")
    assert len(parsed) == 1


@pytest.mark.parametrize("query", queries_with_strings())
def test_both_forms_of_a_string_are_one_to_an_engine_of_rdf_1_1(query: str) -> None:
    kg = films("""<http://e/a> <http://e/code> "D1" ; <http://e/name> "Alpha unit" .
        <http://e/b> <http://e/code> "D2" . <http://e/c> <http://e/code> "D3"@en .""")
    both = match_both_strings(query)
    texts = re.findall(r"""(["'])[\w ]+\1(?!@)""", query)
    assert both.count(XSD.string) == len(texts)  # each has its typed form beside it
    assert set(kg.select(both).rows) == set(kg.select(query).rows)


@pytest.mark.parametrize(
    "query",
    [
        """SELECT ?s { ?l <bif:contains> "'D1'" . ?s ?p ?l }""",
        """SELECT ?s { ?s <http://e/code> "D1"@en , "1"^^<http://e/unit> }""",
        """SELECT * { ?s <http://e/code> "D1" }""",
        """SELECT REDUCED * { ?s <http://e/code> "D1" }""",
        """CONSTRUCT WHERE { ?s <http://e/code> "D1" }""",
        """SELECT ?s { ?s ?p ?l FILTER(CONTAINS(?l, "D1") || ?l >= "D1") }""",
    ],
)
def test_no_other_string_gets_a_datatype(query: str) -> None:
    assert match_both_strings(query) == query
