"""Forms: from a schema to fields, as HTML, and back from what was typed."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from debate import QUESTION, TWO_HOPS
from hypothesis import given
from hypothesis import strategies as st
from page import Page
from pydantic import BaseModel
from small import HOMONYMS, chatty, dog

from kgwb.errors import OverrideError
from kgwb.llm import Scripted
from kgwb.run.ask import schema_of
from kgwb.run.steps import Step
from kgwb.show.form import (
    MANUAL_REASON,
    MAX_FORM_ROWS,
    FormField,
    OutputForm,
    add_or_remove_row,
    choose_option,
    empty_data,
    field_for_schema,
    field_for_type,
    fit_field,
    parse_form_values,
    to_form_values,
    validate_record,
)
from kgwb.systems.chatty_kg.qir import QirReply
from kgwb.systems.chatty_kg.records import QIR, LinkedRelation


class Part(BaseModel):
    name: str
    weight: float
    tags: list[str]


class Everything(BaseModel):
    """A field of each type."""

    plain: str
    count: int
    share: float
    sure: bool
    label: Literal["yes", "no"]
    only: Literal["this"]
    maybe: str | None
    number: int | None = None
    choice: Literal["a"] | None
    words: list[str]
    numbers: list[int]
    lists: list[list[str]]
    parts: list[Part]
    part: Part
    either: int | str
    table: dict[str, int]
    pair: tuple[int, str]
    nested: list[dict[str, list[int]]]
    inner: Everything | None = None


FIELD = field_for_schema(schema_of(Everything))


def parts_by_name(field: FormField) -> dict[str, FormField]:
    return {part.name: part for part in field.subfields}


def test_a_schema_becomes_fields_and_what_has_no_form_becomes_json() -> None:
    names: dict[str, set[str]] = {}
    for part in FIELD.subfields:
        names.setdefault(part.kind, set()).add(part.name)
    assert names == {
        "text": {"plain"},
        "number": {"count", "share"},
        "flag": {"sure"},
        "choice": {"label", "only"},
        "json": {"maybe", "number", "choice", "either", "table", "pair", "nested", "inner"},
        "texts": {"words"},
        "table": {"numbers", "lists", "parts"},
        "group": {"part"},
    }


def test_labels_choices_and_an_empty_form_come_from_the_schema() -> None:
    parts = parts_by_name(FIELD)
    assert parts["label"].choices == ("yes", "no")
    assert parts["only"].choices == ("this",)
    assert [column.name for column in parts["parts"].subfields] == ["name", "weight", "tags"]
    assert empty_data(parts["maybe"]) is None

    reply = field_for_type(QirReply)
    assert parts_by_name(reply)["question_type"].label == "question type"
    assert empty_data(reply) == {
        "entities": [],
        "unknowns": [],
        "triples": [],
        "beyond": [],
        "target": "",
        "question_type": "list",
    }
    assert parts_by_name(field_for_type(QIR))["comparisons"].kind == "table"


def example_data() -> dict[str, Any]:
    part = Part(name="p", weight=1.5, tags=["a", "b"])
    value = Everything(
        plain="x", count=3, share=0.5, sure=True, label="no", only="this", maybe=None, choice="a",
        words=["one", "two"], numbers=[1, 2], lists=[["a", "b"], []], parts=[part, part], part=part,
        either=1, table={"a": 1}, pair=(1, "x"), nested=[{"a": [1]}],
    )  # fmt: skip
    return value.model_dump(mode="json")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("count", 3),
        ("words", ["two\nlines"]),
        ("words", ["a", ""]),
        ("plain", " x"),
        ("label", "neither"),
        ("numbers", [1, True]),
        ("count", "2"),
        ("part", {"name": "p"}),
        ("parts", [{"name": "p", "weight": 1, "tags": ["a\nb"]}]),
        ("lists", [["a"]] * (MAX_FORM_ROWS + 1)),
    ],
)
def test_data_that_a_field_would_lose_is_edited_as_json(name: str, value: Any) -> None:
    data = example_data() | {name: value}
    field = fit_field(FIELD, data)
    assert parse_form_values(field, to_form_values(field, data)) == data

    parts = parts_by_name(field)
    assert parts.pop(name).kind == ("number" if value == 3 else "json")
    other_parts = parts_by_name(fit_field(FIELD, example_data()))
    del other_parts[name]
    assert parts == other_parts


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(name=st.sampled_from(sorted(example_data())), value=JSON)
def test_a_fitted_form_loses_nothing_of_any_data(name: str, value: Any) -> None:
    data = example_data() | {name: value}
    field = fit_field(FIELD, data)
    assert parse_form_values(field, to_form_values(field, data)) == data


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"count": "x"}, "count: 'x' is not a number"),
        ({"plain": "\ud83d"}, "plain: it contains half a character"),
        ({"either": '"\\ud800"'}, "either: it contains half a character"),
        ({"words": "a\n\udc00"}, "words: it contains half a character"),
        ({"share": "1e999"}, "share: '1e999' is not a number"),
        ({"share": "nan"}, "share: 'nan' is not a number"),
        ({"label": "9"}, "label: '9' is not one of these: yes, no"),
        ({"either": "{"}, "either: this is not JSON"),
        ({"parts.1.1": "abc"}, "parts, row 2, weight: 'abc' is not a number"),
        ({"count": "", "share": ""}, "count: '' is not a number; share: "),
        ({"numbers.1.0": "?"}, "numbers, row 2: '?' is not a number"),
    ],
)
def test_a_wrong_field_is_named(change: dict[str, Any], problem: str) -> None:
    field = fit_field(FIELD, example_data())
    values = to_form_values(field, example_data()) | change
    with pytest.raises(OverrideError) as caught:
        parse_form_values(field, values)
    assert problem in caught.value.message


@pytest.mark.parametrize(
    "text", ["based on", "", "example.org/x", "<http://x/a b>", "http://x/\ud800"]
)
def test_a_text_that_is_not_an_iri_is_refused_before_a_graph_gets_it(text: str) -> None:
    predicates = parts_by_name(field_for_type(LinkedRelation))["predicates"]
    names = [part.name for part in predicates.subfields]
    row = {
        "iri": " <http://x/a> ",
        "name": "a",
        "direction": "0",
        "similarity": "1",
        "onward_direction": "0",
    }
    values = {f"0.{number}": row[name] for number, name in enumerate(names) if name in row}
    assert parse_form_values(predicates, values)[0]["iri"] == "http://x/a"

    row["iri"] = text
    values |= {f"1.{number}": row[name] for number, name in enumerate(names) if name in row}
    with pytest.raises(OverrideError, match="predicates, row 2, IRI: "):
        parse_form_values(predicates, values)


def test_a_record_without_a_field_names_the_field() -> None:
    fact = {"subject": "a", "relation": "b", "object": "c"}
    with pytest.raises(OverrideError, match="predicates, row 1, name: "):
        validate_record({"fact": fact, "predicates": [{"iri": "x:a"}]}, LinkedRelation)


def example_steps() -> list[Step]:
    """Every step of a run of Chatty-KG and of a run of DoG."""
    two_hops = dog(QUESTION, Scripted(TWO_HOPS)).go().steps
    return [*chatty("Who directed Dune?", Scripted(HOMONYMS)).go().steps, *two_hops]


def test_an_untouched_form_yields_the_output_of_every_agent() -> None:
    for step in example_steps():
        form = OutputForm(step)
        page = Page(f"<form>{form.render()}</form>")
        element = next(element for element in page.elements if element.tag == "form")
        values = page.values(element)
        assert parse_form_values(form.field, values) == form.data, step.key
        assert form.parse(values) == step.output, step.key


def test_records_of_the_inputs_are_options() -> None:
    steps = {step.key: step for step in example_steps()}

    step = steps["vertex_selection[Dune]"]
    chosen = choose_option(step, 1)
    assert (chosen.vertex, chosen.reason) == (step.output.candidates[1], MANUAL_REASON)
    assert choose_option(step, -1).vertex is None
    form = OutputForm(step)
    without_vertex = form.parse({**form.initial_values, "vertex": "0"})
    assert (without_vertex.vertex, without_vertex.reason) == (None, MANUAL_REASON)

    filtering = steps["relation_filtering[hop 1/Arrival]"]
    labels = OutputForm(filtering).choice_fields["relation"].choice_labels
    assert labels[1:3] == ("based on", "director")
    assert choose_option(filtering, 0).relation.name == "based on"

    selection = OutputForm(steps["predicate_selection"])
    both = selection.parse({"queries.0": "on", "queries.1": "on"})
    assert both.predicates == ("director", "starring")


def qir_form() -> OutputForm:
    return OutputForm(next(step for step in example_steps() if step.agent == "qir"))


def test_a_row_is_added_and_removed() -> None:
    form = qir_form()
    longer = add_or_remove_row(form.field, form.initial_values, "facts")
    longer |= {"facts.1.0": "?person", "facts.1.1": "birth place", "facts.1.2": "?place"}
    assert [fact.relation for fact in form.parse(longer).facts] == ["directed by", "birth place"]
    shorter = add_or_remove_row(form.field, longer, "facts.1", remove=True)
    assert shorter == form.initial_values


@pytest.mark.parametrize(("path", "remove"), [("", False), ("1", True), ("target", False)])
def test_only_a_table_has_rows(path: str, remove: bool) -> None:
    form = qir_form()
    with pytest.raises(OverrideError, match="row"):
        add_or_remove_row(form.field, form.initial_values, path, remove=remove)


def test_an_option_must_exist() -> None:
    form = qir_form()
    with pytest.raises(OverrideError, match="kind: '9'"):
        form.parse({**form.initial_values, "kind": "9"})
