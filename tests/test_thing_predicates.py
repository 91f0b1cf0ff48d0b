"""A refused question names the predicates of its thing, and one click shows the values of one."""

from page import press, settle, text
from rdflib import Literal
from small import films

import kgwb
from kgwb.run.answers import Answer, Value
from kgwb.show.explain import question_about, things_of_refusal, values_of
from kgwb.ui.chat import Chat
from kgwb.ui.debugger import Debugger
from kgwb.ui.session import session_of

REFUSED = Answer("list", reason="not in this graph")
QUESTION = "Who is the warden of Arrival?"


def bench() -> kgwb.Workbench:
    return kgwb.Workbench(kgwb.open_kg("films"), "rules")


def test_the_things_of_a_refusal_are_those_that_were_linked_or_that_the_question_names() -> None:
    kg = films()
    [thing] = things_of_refusal(REFUSED, QUESTION, (), kg)
    assert thing.label == "Arrival"
    names = [(predicate.name, predicate.direction) for predicate in thing.predicates]
    assert ("director", "out") in names
    assert names == sorted(names, key=lambda pair: (pair[1] == "in", pair[0]))
    answered = Answer("list", (Value(Literal("1"), "1"),))
    assert things_of_refusal(answered, QUESTION, (), kg) == ()
    assert things_of_refusal(REFUSED, "who is the warden of nothing?", (), kg) == ()
    assert things_of_refusal(REFUSED, QUESTION, (), None) == ()


def test_each_predicate_has_a_question_and_its_values() -> None:
    kg = films()
    [thing] = things_of_refusal(REFUSED, QUESTION, (), kg)
    director = next(each for each in thing.predicates if each.name == "director")
    assert question_about(thing, director) == "What is the director of Arrival?"
    [triple] = values_of(kg, thing.iri, director).triples
    assert triple[:2] == (thing.iri, director.iri)


def test_a_click_in_the_debugger_and_in_a_cell_shows_the_values() -> None:
    run = bench().ask(QUESTION)
    session = session_of(run)
    debugger = Debugger(session)
    debugger.update({"do": "view", "arg": "answer"})
    assert "director" in text(debugger)
    assert "Denis Villeneuve" not in text(debugger)
    press(debugger, "director")
    settle(debugger.graph_worker)
    assert "Denis Villeneuve" in text(debugger)
    debugger.update({"do": "values", "arg": "7 7"})
    assert debugger.event_error is not None


def test_a_click_in_the_chat_puts_a_question_that_is_answered() -> None:
    workbench = bench()
    workbench.ask(QUESTION)
    chat = Chat(workbench)
    press(chat, "director")
    assert chat.draft == "What is the director of Arrival?"
    press(chat, "Ask", question=chat.draft)
    settle(chat.conversation)
    assert "Denis Villeneuve" in text(chat)
