"""Templates: their slots are names, and nothing else is in them."""

import pytest

from kgwb.systems.triad.generalist import fill_template, find_template_problems
from kgwb.systems.triad.records import Triplet

FOUND = (Triplet("Dune", "directed by", "?p"), Triplet("?p", "born in", "?c"))


GOOD = "SELECT ?c WHERE { <Dune> <directed by> ?p . ?p <born in> ?c . }"


@pytest.mark.parametrize(
    ("sparql", "problem"),
    [
        (GOOD, ""),
        (GOOD.replace("?p . ?p", "?p.\n ?p").replace("<Dune>", "< dune >"), ""),
        (GOOD.replace(" }", " FILTER(?c != <Dune>) }"), ""),
        (GOOD.replace("SELECT ?c", "SELECT (COUNT(DISTINCT ?c) AS ?n)"), ""),
        (GOOD.replace("?p <born in> ?c .", ""), "lacks <?p> <born in> <?c>"),
        (GOOD.replace("<Dune>", "<http://example.org/dune>"), "lacks <Dune>"),
        (GOOD.replace(" }", " ?c a <http://e/City> }"), "<http://e/City> is no entity"),
        (GOOD.replace(" }", " ?c a ?k }"), "none of the triplets"),
        (GOOD.replace(" }", ' BIND(IRI("http://e/x") AS ?y) }'), "IRI( is no entity"),
        (GOOD.replace(" }", " SERVICE <Dune> { ?a ?b ?c } }"), "SERVICE"),
        (GOOD.replace("SELECT ?c", "SELECT *"), "exactly one variable"),
        ("DELETE WHERE { <Dune> <directed by> ?p . ?p <born in> ?c . }", "change the graph"),
        ("PREFIX e: <http://e/> " + GOOD, "<http://e/> is no entity"),
        ("Which?", "lacks"),
    ],
)
def test_a_template_has_the_triplets_and_no_other_iri(sparql: str, problem: str) -> None:
    found = "; ".join(find_template_problems(sparql, FOUND))
    assert problem in found
    assert bool(problem) == bool(found)


def test_a_name_with_sparql_in_it_is_only_a_slot() -> None:
    name = 'x> } ; DROP ALL # "<script>'
    filled = fill_template(
        f"ASK {{ <{name}> <by> ?x }}", (Triplet(name, "by", "?x"),), ["<e:e>"], [("<e:p>", "in")]
    )
    assert filled == "ASK { ?x <e:p> <e:e> }"


PAIR = (
    Triplet("Plato", "admires", "Aristotle"),
    Triplet("Aristotle", "admires", "Plato"),
)


BOTH = "ASK { <Plato> <admires> <Aristotle> . <Aristotle> <admires> <Plato> . }"


def test_two_triplets_that_are_each_others_reverse_are_a_pair() -> None:
    assert list(find_template_problems(BOTH, PAIR)) == []
    filled = fill_template(BOTH, PAIR, ["<e:p>", "<e:a>"], [("<e:1>", "out"), ("<e:2>", "in")])
    assert filled == "ASK { <e:p> <e:1> <e:a> . <e:p> <e:2> <e:a> . }"
    once = "ASK { <Plato> <admires> <Aristotle> . }"
    [problem] = find_template_problems(once, PAIR)
    assert "<Aristotle> <admires> <Plato>" in problem


FRUIT = (Triplet("Orange", "named after", "orange"),)


@pytest.mark.parametrize(
    "sparql",
    [
        "ASK { <Orange> <named after> <orange> }",
        "ASK { < Orange >  <Named After> <orange> }",
    ],
)
def test_names_that_differ_in_letter_case_are_slots_of_their_own(sparql: str) -> None:
    assert list(find_template_problems(sparql, FRUIT)) == []
    filled = fill_template(sparql, FRUIT, ["<e:city>", "<e:fruit>"], [("<e:p>", "out")])
    assert filled == "ASK { <e:city> <e:p> <e:fruit> }"


def test_a_name_that_is_put_in_is_no_slot_itself() -> None:
    sparql = "SELECT ?y { ?x <wrote> <Plato> ; <by> ?y }"
    triplets = (Triplet("?x", "wrote", "Plato"), Triplet("?x", "by", "?y"))
    names = (("<by>", "out"), ("<creator>", "out"))
    filled = fill_template(sparql, triplets, ["<by>"], names, fills_all=True)
    assert filled == "SELECT ?y { ?x <by> <by> ; <creator> ?y }"


def test_a_slot_that_may_be_either_of_two_names_is_none() -> None:
    [lacking, *_] = find_template_problems("ASK { <ORANGE> <named after> <orange> }", FRUIT)
    assert "lacks" in lacking
