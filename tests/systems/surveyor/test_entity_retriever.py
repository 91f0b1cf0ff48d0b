"""The vertices found for a name: which longer names stay beside an exact one."""

from __future__ import annotations

import pytest
import rdflib
from small import EX
from surveying import (
    names_shown,
)

TITLED = f"""
@prefix : <{EX}> . @prefix rdfs: <{rdflib.RDFS}> .
:Nurse rdfs:subClassOf :Person . :Doctor rdfs:subClassOf :Person .
:n a :Nurse ; rdfs:label "Anna Keller" ; :phone "1" . :d a :Doctor ; rdfs:label "Dr Anna Keller" .
:s a :Ship ; rdfs:label "Anna Keller II" . :t a :Nurse ; rdfs:label "Anna Keller 17" .
:q a :Doctor ; rdfs:label "Prof Dr med Anna Keller" .
"""


@pytest.mark.parametrize(
    ("name", "classes", "found"),
    [
        ("Anna Keller", [], ["n", "d"]),
        ("anna keller", [], ["n", "d"]),
        ("Anna Keller", ["Ship"], ["n", "d", "s"]),
        ("Dr Anna Keller", [], ["d", "q"]),
        ("Anna Keller II", ["Nurse"], ["s"]),
    ],
)
def test_an_exact_name_does_not_hide_a_longer_one_of_the_same_kind(
    name: str, classes: list[str], found: list[str]
) -> None:
    [_, *lines] = names_shown(name, data=TITLED, classes=classes)
    assert [line.split()[0] for line in lines] == [f"org:{each}" for each in found]
    assert ("[org:phone" in lines[0]) == (found[0] == "n")
