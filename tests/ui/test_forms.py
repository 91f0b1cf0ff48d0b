"""The editors of results, driven as a person drives them."""

from __future__ import annotations

from typing import Any

import ipywidgets as widgets
import pytest

from kgwb.errors import OverrideError
from kgwb.flow import QIR, Classified, Fact, Generated, Link, LinkedRelation, Selection
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
    assert [row["subject"] for row in form.value()] == ["a", "d"]
    press(form, "Remove", 0)
    assert form.value() == [{"subject": "d", "relation": "e", "object": "f"}]


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


# --- every result


def test_an_editor_that_nobody_touched_yields_the_result() -> None:
    session = directed()
    for key, step in session.steps.items():
        made, panel = edit(session, key)
        assert isinstance(made.widget, widgets.Widget)
        assert (made.value(), panel.message.value) == (step.output, ""), key


def test_a_step_without_a_result_gets_a_blank_form() -> None:
    session = directed()
    for step in session.steps.values():
        bare = Step(step.key, step.agent, step.subject, step.parent, step.inputs, step.form)
        made = editor(bare, session, Panel())
        assert isinstance(made.value(), step.form), step.key


def test_a_blank_form_knows_what_came_in() -> None:
    session = directed()
    for key in ("entity_retriever[Dune]", next(key for key in session.steps if key.startswith("relation"))):
        step = session.steps[key]
        bare = Step(step.key, step.agent, step.subject, step.parent, step.inputs, step.form)
        made = editor(bare, session, Panel()).value()
        [name] = {"entity", "fact"} & set(step.inputs)
        assert getattr(made, name) == step.inputs[name]


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
    assert made.value() == "Who directed Arrival?"
    made, _ = edit(session, "classifier")
    inside(made.widget, widgets.Dropdown)[0].value = "dependent"
    assert made.value() == Classified("dependent", "nothing was said before")


def test_triples_and_target_of_a_qir() -> None:
    session = directed()
    made, _ = edit(session, "qir")
    subject, relation, object_, target = inside(made.widget, widgets.Text)
    subject.value, relation.value, object_.value = " Arrival ", "author", "?who"
    with pytest.raises(OverrideError, match=r"the target"):
        session.replace("qir", made.value())
    target.value = "?who"
    assert made.value() == QIR((Fact("Arrival", "author", "?who"),), "?who")
    session.replace("qir", made.value()).result(10)


def test_half_a_character_is_refused() -> None:
    session = directed()
    for key, step in session.steps.items():
        made, _ = edit(session, key)
        typed = [one for one in inside(made.widget, widgets.Text) if one.value and step.form is not Link]
        for text in [*typed, *inside(made.widget, widgets.Textarea)]:
            before, text.value = text.value, '"\\ud800"' if text.placeholder == "JSON" else "\ud800"
            with pytest.raises(OverrideError, match=r"half a character|not an IRI|no number"):
                made.value()
            text.value = before
    made, _ = edit(session, "vertex_selection[Dune]")
    made.reason.value = "\ud800"
    with pytest.raises(OverrideError, match="why: it holds half a character"):
        made.value()


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
    assert "this is <b>Arrival</b>" in made._known.value
    link = made.value()
    assert (link.vertex.iri, link.vertex.label) == (iri("arrival"), "Arrival")
    made.iri.value = EX + "nowhere"
    assert "no triple of this graph has it" in made._known.value
    made.iri.value = EX + "not an iri"
    assert "is not an IRI" in panel.message.value
    with pytest.raises(OverrideError, match="not an IRI"):
        made.value()
    made.iri.value = ""
    session.replace("vertex_selection[Dune]", made.value()).result(10)


def test_of_a_candidate_and_an_iri_what_was_said_last_counts() -> None:
    made, _ = edit(directed(), "vertex_selection[Dune]")
    first = made.choice.value
    made.iri.value = EX + "arrival"
    assert made.choice.value is None  # no candidate is marked beside it, so that each can be chosen
    made.choice.value = first
    assert (made.iri.value, "Arrival" in made._known.value) == ("", False)
    assert made.value().vertex == made.offered[first]
    made.iri.value = "not an iri"
    made.choice.value = -1
    assert (made.iri.value, made.value().vertex) == ("", None)
    made.iri.value = EX + "arrival"
    assert made.value().vertex.iri == iri("arrival")
    made.iri.value = " "
    assert made.choice.value == first


def test_what_a_vertex_is_called_cannot_run() -> None:
    from tests.small import films

    graph = films(
        '<http://example.org/x> <http://www.w3.org/2000/01/rdf-schema#label> "<script>x</script>" .'
    )
    session = session_of(chatty("Who directed Dune?", Scripted(HOMONYMS)).go().fork(kg=graph))
    made = editor(directed().steps["vertex_selection[Dune]"], session, Panel())
    made.iri.value = EX + "x"
    assert "&lt;script&gt;" in made._known.value
    assert "<script>" not in made._known.value


def test_candidates_are_removed_and_added() -> None:
    session = directed()
    made, _ = edit(session, "entity_retriever[Dune]")
    first, second = session.steps["entity_retriever[Dune]"].output.candidates
    press(made.widget, "Remove")
    assert made.value().candidates == (second,)
    press(made.widget, "Add row")
    with pytest.raises(OverrideError, match="candidates, row 2, IRI: '' is not an IRI"):
        made.value()
    iri_of = next(one for one in inside(made.widget, widgets.Text)[::-1] if one.tooltip == "IRI")
    iri_of.value = first.iri
    assert [one.iri for one in made.value().candidates] == [second.iri, first.iri]


def test_predicates_are_added_by_iri_and_named_by_the_graph(caplog: pytest.LogCaptureFixture) -> None:
    session = directed()
    [key] = [key for key in session.steps if key.startswith("relation_linking")]
    made, _ = edit(session, key)
    before: LinkedRelation = made.value()
    press(made.widget, "Add row")
    added = inside(made.widget, widgets.Text)[-3:]
    assert [cell.value for cell in added] == ["", "", "1.0"]
    added[0].value = EX + "basedOn"
    value: LinkedRelation = made.value()
    new = value.predicates[-1]
    assert (new.iri, new.name, new.direction, new.similarity) == (iri("basedOn"), "based on", "out", 1.0)
    assert (len(value.predicates), value.fact) == (len(before.predicates) + 1, before.fact)
    with caplog.at_level("WARNING"):
        added[0].value = "based on"
        with pytest.raises(OverrideError, match="IRI: 'based on' is not an IRI"):
            made.value()
    assert caplog.messages == []  # rdflib was not asked


@pytest.mark.parametrize("similarity", ["7", "-1", "1e308"])
def test_a_similarity_is_from_0_to_1(similarity: str) -> None:
    session = directed()
    [key] = [key for key in session.steps if key.startswith("relation_linking")]
    made, _ = edit(session, key)
    first = next(one for one in inside(made.widget, widgets.Text) if one.tooltip == "similarity")
    first.value = similarity
    with pytest.raises(OverrideError, match=r"predicates, row 1: similarity .* is not between 0 and 1"):
        made.value()
    first.value = "0.5"
    assert made.value().predicates[0].similarity == 0.5


def test_queries_are_ticked() -> None:
    session = directed()
    made, _ = edit(session, "predicate_selection")
    generated: Generated = session.steps["query_generator"].output
    assert len(made.inputs) == len(generated.queries) > 1
    assert "director" in made.inputs[0].tooltip
    for tick in made.inputs:
        tick.value = True
    names = {name for query in generated.queries for name in query.predicates}
    assert (made.value().queries, set(made.value().predicates)) == (generated.queries, names)
    for tick in made.inputs:
        tick.value = False
    assert made.value() == Selection((), ())


def test_the_sparql_of_a_query_is_edited() -> None:
    session = directed()
    made, _ = edit(session, "query_generator")
    before: Generated = made.value()
    second = inside(made.widget, widgets.Textarea)[1]
    assert second.value == before.queries[1].sparql
    second.value = second.value.replace(before.queries[1].patterns[0][1], f"<{EX}author>")
    after: Generated = made.value()
    assert after.queries[0] == before.queries[0]
    assert after.queries[1].patterns[0][1] == f"<{EX}author>"


@pytest.mark.parametrize("sparql", ["SELECT ?x WHERE {", "DELETE WHERE { ?s ?p ?o }"])
def test_sparql_that_cannot_be_used_is_refused(sparql: str) -> None:
    made, _ = edit(directed(), "query_generator")
    made.inputs[0].value = sparql
    with pytest.raises(OverrideError, match="query 1: "):
        made.value()
    assert made.inputs[0].value == sparql


def test_an_edited_result_leads_to_another_answer() -> None:
    session = session_of(chatty("Who directed Arrival?", Scripted(DIRECTED)).go())
    made, _ = edit(session, "query_generator")
    made.inputs[0].value = made.inputs[0].value.replace("director", "starring")
    session.replace("query_generator", made.value()).result(10)
    session.go("predicate_selection").result(10)  # the model knows nothing of the new predicate
    made, _ = edit(session, "predicate_selection")
    made.inputs[0].value = True
    assert made.inputs[0].tooltip.endswith("starring")
    session.replace("predicate_selection", made.value()).result(10)
    session.go().result(10)
    assert session.failure is None
    assert set(session.run.answer.labels) == {"Amy Adams", "Jeremy Renner"}
