"""Values, descriptions and candidates of a name, as the drafter is shown them."""

from __future__ import annotations

import pytest
import rdflib
from small import EX
from surveying import (
    names_shown,
)


def test_an_exact_value_of_any_predicate_comes_first_and_likeness_of_codes_is_no_match() -> None:
    [heading, found] = names_shown("patient A-0003")
    assert heading == '"patient A-0003"'
    assert found.split()[0] == '"A-0003"' and "org:number" in found and found.endswith("org:p17")


HEADS = f"""
@prefix : <{EX}> . @prefix rdfs: <{rdflib.RDFS}> .
:h1 a :Post ; rdfs:label "Head of Procurement" . :h2 a :Post ; rdfs:label "Master of the port" .
:h3 a :Firm ; rdfs:label "IBM" .
"""


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("date of birth", []),
        ("head of the port", ["h1", "h2"]),
        ("office of procurment", ["h1"]),
        ("of the", ["h2"]),
        ("IBM Germany", ["h3"]),
    ],
)
def test_a_word_such_as_of_alone_is_no_match(name: str, found: list[str]) -> None:
    [_, *lines] = names_shown(name, data=HEADS)
    assert sorted(line.split()[0] for line in lines) == [f"org:{each}" for each in found]


def test_a_name_that_only_a_description_has_is_found() -> None:
    [heading, found] = names_shown("X8")
    assert heading == '"X8"' and "org:state" in found and "X8 is in hospital" in found


def test_classes_and_predicates_of_a_name_are_written_as_a_query_needs_them() -> None:
    [_, found] = names_shown("West")
    assert found == '  org:w1 "West" a org:Ward [^org:ward "lies in"]'
