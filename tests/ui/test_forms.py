"""The editors of results, driven as a person drives them."""

from __future__ import annotations

from typing import Any

import ipywidgets as widgets
import pytest

from kgwb.errors import OverrideError
from kgwb.flow import QIR, Classified, Fact, Generated, Link, LinkedRelation, Retrieved, Selection
from kgwb.llm import Scripted
from kgwb.record import Step
from kgwb.ui import forms
from kgwb.ui.fields import form_field
from kgwb.ui.forms import editor
from kgwb.ui.kit import Panel
from kgwb.ui.schema_form import SchemaForm
from kgwb.ui.session import Session, session_of
from tests.small import DIRECTED, EX, HOMONYMS, SCRIPT, MadeUp, chatty, iri, made_up


def directed() -> Session:
    """Who directed Dune? Two films have that label."""
    return session_of(chatty("Who directed Dune?", Scripted(HOMONYMS)).go())


def inside(widget: widgets.Widget, kind: type) -> list[Any]:
    below = [one for child in getattr(widget, "children", ()) for one in inside(child, kind)]
    return [widget, *below] if isinstance(widget, kind) else below


def press(widget: widgets.Widget, text: str, place: int = 0) -> None:
    [button, *_] = [one for one in inside(widget, widgets.Button) if one.description == text][place:]
    button.click()


def edit(session: Session, key: str) -> tuple[Any, Panel]:
    panel = Panel()
    return editor(session.steps[key], session, panel), panel


# --- the form of a schema


def test_a_table_gets_and_loses_rows() -> None:
    facts = form_field(QIR).fields[0]
    form = SchemaForm(facts, [], Panel())
    assert form.value() == []
    press(form, "Add row")
    press(form, "Add row")
    cells = inside(form, widgets.Text)
    for cell, text in zip(cells, "abcdef", strict=True):
        cell.value = text
    press(form, "Up", 1)
    assert [row["subject"] for row in form.value()] == ["d", "a"]
    press(form, "Down", 0)
    press(form, "Remove", 1)
    assert form.value() == [{"subject": "a", "relation": "b", "object": "c"}]
    press(form, "Up")  # the first stays the first
    assert form.value()[0]["subject"] == "a"


def test_every_kind_of_field_has_a_widget_and_a_label() -> None:
    data = {"fact": {"subject": "a", "relation": "b", "object": "c"}, "predicates": []}
    form = SchemaForm(form_field(LinkedRelation), data, Panel())
    assert [text.description for text in inside(form, widgets.Text)] == ["subject", "relation", "object"]
    assert "predicates" in "".join(html.value for html in inside(form, widgets.HTML))
    assert form.value() == data


def test_what_is_typed_wrong_stays_and_is_named() -> None:
    data = [{"iri": EX, "name": "x", "direction": "out", "similarity": 0.5}]
    form = SchemaForm(form_field(LinkedRelation).fields[1], data, Panel())
    cell = next(text for text in inside(form, widgets.Text) if text.value == "0.5")
    cell.value = "abc"
    with pytest.raises(OverrideError, match="predicates, row 1, similarity: 'abc' is no number"):
        form.value()
    assert cell.value == "abc"


def test_changes_are_told() -> None:
    told: list[int] = []
    form = SchemaForm(
        form_field(QIR), {"facts": [], "target": "", "kind": "list"}, Panel(), lambda: told.append(1)
    )
    assert told == []
    press(form, "Add row")
    inside(form, widgets.Text)[0].value = "Arrival"
    assert len(told) == 2


# --- every result


def test_an_editor_that_nobody_touched_yields_the_result() -> None:
    session = directed()
    for key, step in session.steps.items():
        made, panel = edit(session, key)
        assert isinstance(made.widget, widgets.Widget)
        assert (made.changed, made.value(), panel.message.value) == (False, step.output, ""), key


def test_a_step_without_a_result_gets_a_blank_form() -> None:
    session = directed()
    for step in session.steps.values():
        bare = Step(step.key, step.agent, step.subject, step.parent, step.inputs, step.form)
        made = editor(bare, session, Panel())
        assert isinstance(made.value(), step.form), step.key
        assert not made.changed


def test_results_of_any_system_have_editors() -> None:
    session = session_of(made_up(Scripted(SCRIPT)).go())
    assert isinstance(session.run.system, MadeUp)
    for key, step in session.steps.items():
        assert edit(session, key)[0].value() == step.output


def test_a_text_and_a_plain_record_are_typed_in_fields() -> None:
    session = directed()
    made, _ = edit(session, "understanding")
    [text] = inside(made.widget, widgets.Text)
    text.value = "Who directed Arrival?"
    assert (made.changed, made.value()) == (True, "Who directed Arrival?")
    made, _ = edit(session, "classifier")
    inside(made.widget, widgets.Dropdown)[0].value = "dependent"
    assert made.value() == Classified("dependent", "nothing was said before")


def test_triples_and_target_of_a_qir() -> None:
    session = directed()
    made, _ = edit(session, "qir")
    subject, relation, object_ = inside(made.widget, widgets.Text)
    assert "entities: Dune; unknowns: ?person" in inside(made.widget, widgets.HTML)[-1].value
    object_.value = "?who"
    assert (made.target.value, made.value().target) == ("?who", "?who")
    subject.value, relation.value = " Arrival ", "author"
    assert made.value() == QIR((Fact("Arrival", "author", "?who"),), "?who")
    press(made.widget, "Add row")  # a row without a word in it is none
    assert len(made.value().facts) == 1
    made.kind.value = "boolean"
    assert (made.target.disabled, made.value().target) == (True, "")
    made.kind.value = "list"
    assert made.target.options == ("?who",)


def test_the_target_survives_a_second_unknown() -> None:
    made, _ = edit(directed(), "qir")
    press(made.widget, "Add row")
    cells = inside(made.widget, widgets.Text)
    for cell, text in zip(cells[3:], ("?person", "born in", "?place"), strict=True):
        cell.value = text
    assert (made.target.options, made.target.value) == (("?person", "?place"), "?person")
    made.target.value = "?place"
    cells[0].value = "Arrival"
    assert made.value().target == "?place"


def test_another_candidate_or_none_is_chosen() -> None:
    session = directed()
    made, _ = edit(session, "vertex_selection[Dune]")
    assert made.choice.options[0][0].startswith("Dune (Film) <")
    made.choice.value = 1 - made.choice.value
    link: Link = made.value()
    assert link.vertex in link.candidates
    assert (link.vertex, link.reason) != (session.steps["vertex_selection[Dune]"].output.vertex, "it fits")
    assert link.reason == forms.BY_HAND
    made.reason.value = "the newer one"
    assert made.value().reason == "the newer one"
    made.choice.value = -1
    assert made.value().vertex is None


def test_a_vertex_is_typed_by_its_iri() -> None:
    session = directed()
    made, panel = edit(session, "vertex_selection[Dune]")
    made.iri.value = f"<{EX}arrival>"
    assert "this is <b>Arrival</b>" in made._told.value
    link = made.value()
    assert (link.vertex.iri, link.vertex.label) == (iri("arrival"), "Arrival")
    made.iri.value = EX + "nowhere"
    assert "no triple of this graph has it" in made._told.value
    made.iri.value = EX + "not an iri"
    assert "is not an IRI" in panel.message.value
    with pytest.raises(OverrideError, match="not an IRI"):
        made.value()
    made.iri.value = ""
    session.replace("vertex_selection[Dune]", made.value()).result(10)


def test_what_a_vertex_is_called_cannot_run() -> None:
    from tests.small import films

    graph = films(
        '<http://example.org/x> <http://www.w3.org/2000/01/rdf-schema#label> "<script>x</script>" .'
    )
    session = session_of(chatty("Who directed Dune?", Scripted(HOMONYMS)).go().fork(kg=graph))
    made = editor(directed().steps["vertex_selection[Dune]"], session, Panel())
    made.iri.value = EX + "x"
    assert "&lt;script&gt;" in made._told.value
    assert "<script>" not in made._told.value


def test_candidates_are_removed_and_moved() -> None:
    session = directed()
    made, _ = edit(session, "entity_retriever[Dune]")
    first, second = made.before.candidates
    made.list.value = (1,)
    press(made.widget, "Up")
    assert made.value().candidates == (second, first)
    press(made.widget, "Up")
    assert (made.list.value, made.value().candidates) == ((1,), (second, first))
    press(made.widget, "Down")
    assert not made.changed
    press(made.widget, "Remove")
    assert (made.value().candidates, made.changed) == ((first,), True)
    press(made.widget, "Put all back")
    assert made.value() == made.before


def test_several_candidates_move_together() -> None:
    before = directed().steps["entity_retriever[Dune]"]
    many = Retrieved("Dune", before.output.candidates * 3)
    step = Step("k", "entity_retriever", "Dune", "", before.inputs, Retrieved, many, True)
    made = editor(step, directed(), Panel())
    made.list.value = (2, 3)
    press(made.widget, "Up")
    assert made.order == [0, 2, 3, 1, 4, 5]
    press(made.widget, "Down")
    press(made.widget, "Down")
    assert made.order == [0, 1, 4, 2, 3, 5]


def test_predicates_are_added_by_iri_and_named_by_the_graph() -> None:
    session = directed()
    [key] = [key for key in session.steps if key.startswith("relation_linking")]
    made, _ = edit(session, key)
    before: LinkedRelation = made.value()
    press(made.widget, "Add row")
    added = inside(made.widget, widgets.Text)[-3:]
    assert [cell.value for cell in added] == ["1.0", "", ""]
    added[2].value = EX + "basedOn"
    press(made.widget, "Up", -1)
    value: LinkedRelation = made.value()
    new = value.predicates[-2]
    assert (new.iri, new.name, new.direction, new.similarity) == (iri("basedOn"), "based on", "out", 1.0)
    assert (len(value.predicates), value.fact) == (len(before.predicates) + 1, before.fact)
    added[2].value = "based on"
    with pytest.raises(OverrideError, match="not an IRI"):
        made.value()


def test_queries_are_ticked() -> None:
    session = directed()
    made, _ = edit(session, "predicate_selection")
    generated: Generated = session.steps["query_generator"].output
    assert len(made.ticks) == len(generated.queries) > 1
    assert "director" in made.ticks[0].description
    for tick in made.ticks:
        tick.value = True
    names = {name for query in generated.queries for name in query.predicates}
    assert (made.value().queries, set(made.value().predicates)) == (generated.queries, names)
    for tick in made.ticks:
        tick.value = False
    assert made.value() == Selection((), ())


def test_the_sparql_of_a_query_is_edited() -> None:
    session = directed()
    made, _ = edit(session, "query_generator")
    before: Generated = made.value()
    made.which.value = 1
    assert made.sparql.value == before.queries[1].sparql
    made.sparql.value = before.queries[1].sparql.replace(before.queries[1].patterns[0][1], f"<{EX}author>")
    assert "edited: query 2<" in made._told.value
    assert made.changed
    after: Generated = made.value()
    assert after.queries[0] == before.queries[0]
    assert after.queries[1].patterns[0][1] == f"<{EX}author>"
    made.which.value = 0
    made.which.value = 1
    assert "author" in made.sparql.value  # what was typed is not lost on the way


@pytest.mark.parametrize("sparql", ["SELECT ?x WHERE {", "DELETE WHERE { ?s ?p ?o }"])
def test_sparql_that_cannot_be_used_is_refused(sparql: str) -> None:
    made, _ = edit(directed(), "query_generator")
    made.sparql.value = sparql
    with pytest.raises(OverrideError, match="query 1: "):
        made.value()
    assert made.sparql.value == sparql


def test_an_edited_result_leads_to_another_answer() -> None:
    session = session_of(chatty("Who directed Arrival?", Scripted(DIRECTED)).go())
    made, _ = edit(session, "query_generator")
    made.sparql.value = made.sparql.value.replace("director", "starring")
    session.replace("query_generator", made.value()).result(10)
    session.go("predicate_selection").result(10)  # the model knows nothing of the new predicate
    made, _ = edit(session, "predicate_selection")
    made.ticks[0].value = True
    assert made.ticks[0].description.endswith("starring")
    session.replace("predicate_selection", made.value()).result(10)
    session.go().result(10)
    assert session.failure is None
    assert set(session.run.answer.labels) == {"Amy Adams", "Jeremy Renner"}
