"""Entity linking: a name is linked to a vertex, else to a text of the graph."""

from rdflib import Literal
from small import (
    BOATS,
    answer_of,
    films,
    qir,
    vertex,
    workbench,
)

from kgwb.kg.queries import find_literal
from kgwb.llm import Scripted

PHONE = qir("Sam | phone | ?number")


def test_a_name_is_linked_anew_if_another_vertex_is_meant() -> None:
    script = {
        "chatty_kg/qir": PHONE,
        "chatty_kg/classifier": {"reason": "", "label": "self-contained"},
        "linking/vertex_selection": [vertex(2, "Sam"), vertex(1, "Sam")],
    }
    bench = workbench(Scripted(script), films(BOATS))
    for words, number in ((" from Marketing", "2"), ("", "2"), (" from Sales", "1")):
        run = bench.ask(f"What is the phone number of Sam{words}?")
        assert answer_of(run).labels == (number,)


def test_a_truth_value_is_found_by_its_word() -> None:
    kg = films("@prefix : <http://example.org/> . :b1 :shorePower true . :b2 :shorePower false .")
    assert find_literal(kg, "True") == Literal(True)
    assert find_literal(kg, "yes") is None


def test_a_literal_is_found_whatever_its_words_begin_with() -> None:
    kg = films('@prefix : <http://example.org/> . :ann :jobTitle "Harbour Master" .')
    assert find_literal(kg, "harbour master") == Literal("Harbour Master")
