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
from kgwb.show import form as fields
from kgwb.show.form import (
    OutputForm,
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
    """One of each."""

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


def parts(field: fields.FormField) -> dict[str, fields.FormField]:
    return {part.name: part for part in field.subfields}


def test_a_schema_becomes_fields_and_what_has_no_form_becomes_json() -> None:
    kinds: dict[str, list[str]] = {}
    for part in FIELD.subfields:
        kinds.setdefault(part.kind, []).append(part.name)
    assert {kind: " ".join(names) for kind, names in kinds.items()} == {
        "text": "plain",
        "number": "count share",
        "flag": "sure",
        "choice": "label only",
        "json": "maybe number choice either table pair nested inner",
        "texts": "words",
        "table": "numbers lists parts",
        "group": "part",
    }


def test_labels_choices_and_a_blank_form_come_from_the_schema() -> None:
    assert (parts(FIELD)["label"].choices, parts(FIELD)["only"].choices) == (
        ("yes", "no"),
        ("this",),
    )
    assert parts(field_for_type(QirReply))["question_type"].label == "question type"
    assert [column.name for column in parts(FIELD)["parts"].subfields] == ["name", "weight", "tags"]
    lists: dict[str, Any] = {name: [] for name in ("entities", "unknowns", "triples", "beyond")}
    assert empty_data(field_for_type(QirReply)) == lists | {"target": "", "question_type": "list"}
    assert empty_data(field_for_type(QIR)) == {
        "facts": [],
        "target": "",
        "kind": "list",
        "beyond": [],
    }
    assert empty_data(parts(FIELD)["maybe"]) is None


def filled() -> dict[str, Any]:
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
        ("lists", [["a"]] * (fields.MAX_FORM_ROWS + 1)),
    ],
)
def test_what_a_field_would_lose_is_typed_as_json(name: str, value: Any) -> None:
    data = filled() | {name: value}
    field = fit_field(FIELD, data)
    assert parse_form_values(field, to_form_values(field, data)) == data
    assert parts(field)[name].kind == ("number" if value == 3 else "json")
    others = {key: part for key, part in parts(field).items() if key != name}
    assert others == {
        key: part for key, part in parts(fit_field(FIELD, filled())).items() if key != name
    }


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


@given(name=st.sampled_from(sorted(filled())), value=JSON)
def test_whatever_data_come_nothing_is_lost(name: str, value: Any) -> None:
    data = filled() | {name: value}
    field = fit_field(FIELD, data)
    assert parse_form_values(field, to_form_values(field, data)) == data


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"count": "x"}, "count: 'x' is no number"),
        ({"plain": "\ud83d"}, "plain: it holds half a character"),
        ({"either": '"\\ud800"'}, "either: it holds half a character"),
        ({"words": "a\n\udc00"}, "words: it holds half a character"),
        ({"share": "1e999"}, "share: '1e999' is no number"),
        ({"share": "nan"}, "share: 'nan' is no number"),
        ({"label": "9"}, "label: '9' is none of yes, no"),
        ({"either": "{"}, "either: this is no JSON"),
        ({"parts.1.1": "abc"}, "parts, row 2, weight: 'abc' is no number"),
        ({"count": "", "share": ""}, "count: '' is no number; share: "),
        ({"numbers.1.0": "?"}, "numbers, row 2: '?' is no number"),
    ],
)
def test_a_wrong_field_is_named(change: dict[str, Any], message: str) -> None:
    field = fit_field(FIELD, filled())
    with pytest.raises(OverrideError) as caught:
        parse_form_values(field, to_form_values(field, filled()) | change)
    assert message in caught.value.message


@pytest.mark.parametrize(
    "text", ["based on", "", "example.org/x", "<http://x/a b>", "http://x/\ud800"]
)
def test_what_is_no_iri_is_said_before_a_graph_sees_it(text: str) -> None:
    predicates = parts(field_for_type(LinkedRelation))["predicates"]
    good = {"0.0": "http://x/a", "0.1": "a", "0.2": "0", "0.3": "1"}
    assert parse_form_values(predicates, good | {"0.0": " <http://x/a> "})[0]["iri"] == "http://x/a"
    with pytest.raises(OverrideError, match=r"predicates, row 2, IRI: .* is not an IRI; copy one"):
        parse_form_values(predicates, {**good, "1.0": text, "1.1": "a", "1.2": "1", "1.3": "1"})


def test_a_record_that_has_not_the_form_says_where() -> None:
    data = {
        "fact": {"subject": "a", "relation": "b", "object": "c"},
        "predicates": [{"iri": "x:a"}],
    }
    with pytest.raises(OverrideError, match="predicates, row 1, name: Field required"):
        validate_record(data, LinkedRelation)


def steps() -> list[Step]:
    two_hops = dog(QUESTION, Scripted(TWO_HOPS)).go().steps
    return [*chatty("Who directed Dune?", Scripted(HOMONYMS)).go().steps, *two_hops]


def test_a_form_that_nobody_touched_yields_the_result_of_every_agent() -> None:
    for step in steps():
        made = OutputForm(step)
        shown = Page(f"<form>{made.render()}</form>")
        form = shown.values(next(one for one in shown.elements if one.tag == "form"))
        assert parse_form_values(made.field, form) == made.data, step.key
        assert made.parse(form) == step.output, step.key


def test_what_came_in_is_chosen_from() -> None:
    made = {step.agent: step for step in steps()}

    step = next(step for step in steps() if step.key == "vertex_selection[Dune]")
    other = choose_option(step, 1)
    assert (other.vertex, other.reason) == (step.output.candidates[1], "chosen by hand")
    assert choose_option(step, -1).vertex is None
    form = OutputForm(step)
    values = {**form.initial_values, "vertex": "0"}
    assert (form.parse(values).vertex, form.parse(values).reason) == (None, "chosen by hand")
    filtering = next(step for step in steps() if step.key == "relation_filtering[hop 1/Arrival]")
    assert OutputForm(filtering).choice_fields["relation"].choice_labels[1:3] == (
        "based on",
        "director",
    )
    assert choose_option(filtering, 0).relation.name == "based on"
    taken_two = OutputForm(made["predicate_selection"]).parse(
        {"queries.0": "on", "queries.1": "on"}
    )
    assert taken_two.predicates == ("director", "starring")


def test_a_row_more_and_a_row_less() -> None:
    qir = next(step for step in steps() if step.agent == "qir")
    form = OutputForm(qir)
    longer = fields.add_or_remove_row(form.field, form.initial_values, "facts")
    longer |= {"facts.1.0": "?person", "facts.1.1": "birth place", "facts.1.2": "?place"}
    assert [fact.relation for fact in form.parse(longer).facts] == ["directed by", "birth place"]
    assert (
        fields.add_or_remove_row(form.field, longer, "facts.1", remove=True) == form.initial_values
    )
    for path, less in (("", False), ("1", True), ("target", False)):
        with pytest.raises(OverrideError, match="not a row of a table"):
            fields.add_or_remove_row(form.field, form.initial_values, path, remove=less)
    with pytest.raises(OverrideError, match="none of"):
        form.parse({**form.initial_values, "kind": "9"})
