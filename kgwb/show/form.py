"""The form to edit a record, or to reply in the place of a model: fields made of the JSON schema of a type.

What a person types is text (``typed``): ``read(field, typed(field, data)) == data`` holds for the fields that
``fitted`` returns. Whatever a form cannot show is typed as JSON, that part only.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, is_dataclass, replace
from typing import Any, Literal, get_args, get_type_hints

from pydantic import ValidationError

from kgwb.errors import OverrideError
from kgwb.flow import adapter, from_data, marks_of, to_data
from kgwb.kg.sparql import HALF, writable
from kgwb.run.record import Step
from kgwb.show.html import Html, button, div, short, span, spoken, tag
from kgwb.show.tell import line

Kind = Literal["text", "iri", "number", "flag", "choice", "texts", "table", "group", "json", "pick", "ticks"]
"""``texts`` is a text a line, ``table`` a group a row; ``pick`` and ``ticks`` choose among what came in."""
MOST_FORM_ROWS = 60
"""A longer table is typed as JSON."""
PLAIN: Mapping[str, Kind] = {"string": "text", "number": "number", "integer": "number", "boolean": "flag"}
EMPTY: Mapping[Kind, Any] = {"text": "", "iri": "", "number": 0, "flag": False, "texts": [], "table": []}
HINTS = {"texts": "one a line", "json": "JSON", "number": "a number", "iri": "http://..."}
BY_HAND = "chosen by hand"
NO_DATA = object()


@dataclass(frozen=True, slots=True)
class Field:
    """One part of a form."""

    name: str
    kind: Kind
    choices: tuple[Any, ...] = ()
    """JSON values to choose from, or what came in; of a choice only."""
    fields: tuple[Field, ...] = ()
    """Parts of a group, columns of a table; a column without a name stands for the whole row."""
    default: Any = NO_DATA

    @property
    def label(self) -> str:
        return "IRI" if self.name == "iri" else spoken(self.name)


def field_of(schema: Mapping[str, Any]) -> Field:
    """The form of what a JSON schema describes."""
    return _field(schema, "", schema.get("$defs", {}), ())


def form_of(form: Any) -> Field:
    """The form of a type, without the fields that follow from others."""
    whole = field_of(adapter(form).json_schema(mode="serialization"))
    if whole.kind != "group" or not is_dataclass(form):
        return whole
    marks = marks_of(form)  # type: ignore[arg-type]
    return replace(whole, fields=tuple(part for part in whole.fields if marks.get(part.name) != "hidden"))


def blank(field: Field) -> Any:
    """The data of a form in which nothing was typed yet."""
    if field.default is not NO_DATA:
        return field.default
    if field.kind == "group":
        return {part.name: blank(part) for part in field.fields}
    return field.choices[0] if field.kind == "choice" else EMPTY.get(field.kind)


def fitted(field: Field, data: Any) -> Field:
    """The form that shows this data and loses nothing of it; parts that would are typed as JSON."""
    if field.kind in ("pick", "ticks"):
        return field
    if field.kind == "group" and isinstance(data, Mapping):
        field = replace(field, fields=tuple(fitted(part, data.get(part.name)) for part in field.fields))
        if any(part.kind in ("pick", "ticks") for part in field.fields):
            return field
    return field if _fits(field, data) else replace(field, kind="json")


def typed(field: Field, data: Any) -> Any:
    """What somebody would have typed to say ``data``, which the field must be fitted to."""
    if field.kind == "group":
        return {part.name: typed(part, data[part.name]) for part in field.fields}
    if field.kind == "table":
        return [[typed(part, row[part.name] if part.name else row) for part in field.fields] for row in data]
    if field.kind == "json":
        return json.dumps(data, ensure_ascii=False)
    if field.kind == "texts":
        return "\n".join(data)
    return str(data) if field.kind == "number" else data


def read(field: Field, values: Any) -> Any:
    """The data of what was typed. Raises OverrideError that says for each wrong field what is wrong."""
    problems: list[str] = []
    data = _read(field, values, field.label, problems)
    if problems:
        raise OverrideError("; ".join(problems), hint="fix these fields; the others stay as they are")
    return data


def record_of(data: Any, form: Any) -> Any:
    """The typed record of JSON data. Raises OverrideError that says which part has not the form."""
    try:
        return from_data(data, form)
    except ValidationError as exc:
        wrong = (f"{_place(error['loc'])}{error['msg']}" for error in exc.errors(include_url=False)[:5])
        raise OverrideError("; ".join(wrong), hint="fix these fields") from exc


# --- from a schema


def _field(schema: Mapping[str, Any], name: str, defs: Mapping[str, Any], seen: tuple[str, ...]) -> Field:
    made = Field(name, "json", default=schema.get("default", NO_DATA))
    if reference := schema.get("$ref"):
        if reference in seen:  # a form without an end
            return made
        target = {**defs[reference.removeprefix("#/$defs/")], **schema}
        del target["$ref"]
        return _field(target, name, defs, (*seen, reference))
    if "const" in schema or "enum" in schema:
        return replace(made, kind="choice", choices=tuple(schema.get("enum", [schema.get("const")])))
    if isinstance(schema.get("items"), Mapping):
        return _array(_field(schema["items"], "", defs, seen), made)
    parts = tuple(_field(part, key, defs, seen) for key, part in schema.get("properties", {}).items())
    kind: Kind = "group" if parts else PLAIN.get(schema.get("type", ""), "json")
    return replace(made, kind="iri" if (name, kind) == ("iri", "text") else kind, fields=parts)


def _array(item: Field, made: Field) -> Field:
    if item.kind == "json":
        return made
    if item.kind == "text":
        return replace(made, kind="texts")
    parts = item.fields if item.kind == "group" else (item,)
    nested = ("group", "table")
    columns = (replace(one, kind="json") if one.kind in nested and one.name else one for one in parts)
    return replace(made, kind="table", fields=tuple(columns))


# --- from data, and from what was typed


def _fits(field: Field, data: Any) -> bool:
    if field.kind == "table" and isinstance(data, list) and len(data) > MOST_FORM_ROWS:
        return False
    try:
        again = read(field, typed(field, data))
    except (OverrideError, TypeError, KeyError, ValueError, AttributeError):
        return False
    # equal as JSON: in Python, True is 1
    return json.dumps(again, sort_keys=True) == json.dumps(data, sort_keys=True)


def _read(field: Field, values: Any, where: str, problems: list[str]) -> Any:
    def parts(typed: Iterable[Any], where: str) -> dict[str, Any]:
        pairs = zip(field.fields, typed, strict=True)
        return {part.name: _read(part, one, _path(where, part.label), problems) for part, one in pairs}

    if field.kind == "group":
        return parts((values[part.name] for part in field.fields), where)
    if field.kind == "table":
        rows = [parts(row, _path(where, f"row {number}")) for number, row in enumerate(values, 1)]
        return [row.get("", row) for row in rows]
    try:
        return _read_plain(field, values)
    except ValueError as exc:
        problems.append(_path(where, str(exc), ": "))
        return None


def _read_plain(field: Field, value: Any) -> Any:
    """Raises ValueError that says what is wrong."""
    if field.kind == "text":
        value = value.strip()
    elif field.kind == "texts":
        value = [line for line in value.split("\n") if line]
    elif field.kind == "json":
        value = _json(value)
    elif field.kind == "iri":
        value = iri_of(value)
    elif field.kind == "number":
        value = _number(value.strip())
    elif field.kind == "choice" and value not in field.choices:
        raise ValueError(f"{value!r} is none of {', '.join(map(str, field.choices))}")
    if HALF.search(json.dumps(value, ensure_ascii=False)):
        raise ValueError("it holds half a character, such as half an emoji; write the whole one")
    return value


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise ValueError(f"this is no JSON: {exc}") from exc


def iri_of(text: str) -> str:
    """The IRI that was typed. Raises ValueError if it is none."""
    plain = text.strip().removeprefix("<").removesuffix(">")
    if re.match(r"[A-Za-z][\w+.-]*:.", plain) and writable(plain):
        return plain
    source = "copy one from a table of results or from your graph, as in http://example.org/Arrival"
    raise ValueError(f"{text!r} is not an IRI; {source}")


def _number(text: str) -> int | float:
    for made in (int, float):
        with suppress(ValueError, OverflowError):
            if math.isfinite(number := made(text)):
                return number
    raise ValueError(f"{text!r} is no number")


def _path(where: str, part: str, between: str = ", ") -> str:
    return between.join(filter(None, (where, part)))


def _place(location: tuple[int | str, ...]) -> str:
    """Where an error is, counted from 1 as a person counts."""
    parts = (f"row {part + 1}" if isinstance(part, int) else str(part) for part in location)
    return ", ".join(parts) + ": " if location else ""


# --- as HTML, and back from the names of inputs


def inputs(field: Field, values: Any, path: str = "", revision: int = 0) -> Html:
    """The inputs of a field, named by their places: "facts.0.1" is the second column of the first fact."""
    match field.kind:
        case "group":
            parts = (
                _labelled(part, inputs(part, values[part.name], _at(path, part.name), revision))
                for part in field.fields
            )
            return div("stack", *parts)
        case "table":
            return _table(field, values, path, revision)
        case "ticks":
            rows = (
                tag(
                    "label",
                    tag("input", type="checkbox", name=_at(path, str(n)), checked=n in values),
                    " ",
                    tag("bdi", line(one)),
                    class_="tick",
                )
                for n, one in enumerate(field.choices)
            )
            return div("stack tight scroll", *rows)
    return _input(field, values, path, revision)


def _labelled(field: Field, contents: Html) -> Html:
    single = field.kind not in ("group", "table", "ticks", "flag")
    return tag("label" if single else "div", span("b", field.label), contents, class_="f")


def _input(field: Field, value: Any, path: str, revision: int) -> Html:
    named = {
        "name": path or "value",
        "id": f"field-{path}",
        "aria_label": _spoken_path(field, path),
        "data_rev": revision,
    }
    if field.kind in ("choice", "pick"):
        options = [("", NO_DATA)] if field.kind == "choice" else [("none", -1)]
        options += [
            (line(one) if field.kind == "pick" else str(one), n) for n, one in enumerate(field.choices)
        ]
        now = field.choices.index(value) if field.kind == "choice" and value in field.choices else value
        made = (
            tag("option", short(text, 120), value=n, selected=n == now)
            for text, n in options
            if n is not NO_DATA
        )
        return tag("select", *made, **named)
    if field.kind == "flag":
        return tag("input", type="checkbox", checked=bool(value), **named)
    if field.kind not in ("texts", "json") and len(value) <= 80 and "\n" not in value:
        return tag(
            "input", type="text", value=value, placeholder=HINTS.get(field.kind), autocomplete="off", **named
        )
    rows = min(max(value.count("\n") + 1, len(value) // 80, 2), 12)
    return tag("textarea", "\n", value, rows=rows, placeholder=HINTS.get(field.kind), **named)


def _spoken_path(field: Field, path: str) -> str:
    parts = [part for part in path.split(".") if part.isdigit()]
    return f"{field.label} {int(parts[0]) + 1}" if parts and field.name else field.label or "value"


def _table(field: Field, rows: Sequence[Sequence[Any]], path: str, revision: int) -> Html:
    columns = field.fields
    grid = f"grid-template-columns: repeat({len(columns)}, minmax(0, 1fr)) 24px"
    heads = (span("caption", column.label) for column in columns)
    lines = (
        div(
            "triple-in",
            *(
                inputs(column, cell, _at(path, f"{n}.{place}"), revision)
                for place, (column, cell) in enumerate(zip(columns, row, strict=True))
            ),
            button("take this row out", "less", "bad", "ghost square", arg=_at(path, str(n))),
            style=grid,
        )
        for n, row in enumerate(rows)
    )
    more = button("Another row", "more", "plus", "ghost", arg=path or "value")
    return div("stack tight", div("triple-in", *heads, style=grid), *lines, more)


def _at(path: str, part: str) -> str:
    return f"{path}.{part}" if path else part


def typed_in(field: Field, form: Mapping[str, str], path: str = "") -> Any:  # noqa: PLR0911  # a case a kind
    """What stands in the inputs of a field, by the values of the page's form."""
    match field.kind:
        case "group":
            return {part.name: typed_in(part, form, _at(path, part.name)) for part in field.fields}
        case "table":
            found = (
                re.match(rf"{re.escape(path or 'value')}\.(\d+)\.|{re.escape(path)}\.?(\d+)\.", name)
                for name in form
            )
            rows = sorted({int(match[1] or match[2]) for match in found if match})
            return [
                [typed_in(column, form, _at(path, f"{row}.{n}")) for n, column in enumerate(field.fields)]
                for row in rows
            ]
        case "ticks":
            return [n for n in range(len(field.choices)) if _at(path, str(n)) in form]
        case "flag":
            return (path or "value") in form
    text = form.get(path or "value", "").replace("\r\n", "\n")
    if field.kind == "pick":
        return int(text or -1)
    if field.kind == "choice":
        return field.choices[int(text)] if text.isdigit() and int(text) < len(field.choices) else text
    return text


def with_row(field: Field, values: Any, path: str, *, less: bool = False) -> Any:
    """What was typed, with a row more at the end of a table, or without the row of that path."""
    parts = [part for part in path.split(".") if part not in ("", "value")]
    row = int(parts.pop()) if less else -1

    def at(field: Field, values: Any, rest: Sequence[str]) -> Any:
        if rest:
            inner = next(part for part in field.fields if part.name == rest[0])
            return {**values, rest[0]: at(inner, values[rest[0]], rest[1:])}
        if field.kind != "table":
            raise OverrideError(f"{path!r} is not a row of a table", hint="press a button beside a row")
        if less:
            return [one for n, one in enumerate(values) if n != row]
        return [*values, [typed(fitted(column, blank(column)), blank(column)) for column in field.fields]]

    return at(field, values, parts)


# --- the result of a step


def choices(step: Step) -> dict[str, tuple[Any, ...]]:
    """For each field of a step's result that is a choice among what came in, what there is to choose from."""
    if not is_dataclass(step.form):
        return {}
    found: dict[str, tuple[Any, ...]] = {}
    marks = marks_of(step.form)  # type: ignore[arg-type]
    for name, hint in get_type_hints(step.form).items():
        wanted = next((one for one in get_args(hint) if isinstance(one, type) and is_dataclass(one)), None)
        if wanted is None or marks[name] == "hidden":
            continue
        came_in = [one for source in step.inputs.values() for one in _offered(source, wanted)]
        now = getattr(step.output, name) if step.done else ()
        if isinstance(now, tuple):
            if came_in and all(one in came_in for one in now):
                found[name] = tuple(dict.fromkeys(came_in))
        elif type(None) in get_args(hint):
            kept = _offered(step.output, wanted) if step.done else []
            options = dict.fromkeys((*came_in, *kept, *([now] if now is not None else [])))
            if came_in or kept:
                found[name] = tuple(options)
    return found


def _offered(source: Any, wanted: type) -> list[Any]:
    """The records of a type in the tuples of a record, or in a tuple."""
    parts = [source] if isinstance(source, tuple) else []
    if is_dataclass(source) and not isinstance(source, type):
        parts = [getattr(source, name) for name in marks_of(type(source))]
    return [one for part in parts if isinstance(part, tuple) for one in part if isinstance(one, wanted)]


class StepForm:
    """The form of a step's result: its fields, and what stands in them at first."""

    def __init__(self, step: Step) -> None:
        self.step, self.offered = step, choices(step)
        whole = form_of(step.form)
        data = to_data(step.output, step.form) if step.done else blank(whole)
        if whole.kind == "group":
            if not step.done:
                known = {part.name: step.inputs.get(part.name) for part in whole.fields}
                data |= {name: to_data(value) for name, value in known.items() if value is not None}
            whole = replace(whole, fields=tuple(map(self._choice, whole.fields)))
            data = {part.name: data[part.name] for part in whole.fields}
            data |= {name: self._chosen(name) for name in self.offered}
        self.field = fitted(whole, data)
        self.first = typed(self.field, data)

    def _choice(self, part: Field) -> Field:
        if part.name not in self.offered:
            return part
        many = get_type_hints(self.step.form)[part.name]
        kind: Kind = "ticks" if getattr(many, "__origin__", None) is tuple else "pick"
        return Field(part.name, kind, self.offered[part.name])

    def _chosen(self, name: str) -> Any:
        options, now = self.offered[name], getattr(self.step.output, name, None)
        if isinstance(now, tuple):
            return [n for n, one in enumerate(options) if one in now]
        return options.index(now) if now in options else -1

    def html(self, values: Any = None, revision: int = 0) -> Html:
        return inputs(self.field, self.first if values is None else values, "", revision)

    def value(self, values: Any) -> Any:
        """The record of what was typed; the step's own result if nothing was. Raises OverrideError."""
        if self.step.done and values == self.first:
            return self.step.output
        data = read(self.field, values)
        if self.field.kind != "group":
            return record_of(data, self.step.form)
        hidden = to_data(self.step.output, self.step.form) if self.step.done else {}
        picked = {name: data.pop(name) for name in self.offered}
        kept = {**hidden, **data}
        for name, place in picked.items():
            options = self.offered[name]
            many = isinstance(place, list)
            kept[name] = (
                to_data(tuple(options[n] for n in place))
                if many
                else to_data(options[place])
                if place >= 0
                else None
            )
        explained = {name for name, mark in marks_of(self.step.form).items() if mark == "explanation"}
        changed = self.step.done and any(picked[name] != self._chosen(name) for name in picked)
        for name in explained if changed else ():
            kept[name] = BY_HAND if kept.get(name) == getattr(self.step.output, name) else kept[name]
        return followed(record_of(kept, self.step.form))


def followed(value: Any) -> Any:
    """A record with what follows from the fields that were edited."""
    follow = getattr(value, "follow", None)
    return follow() if follow else value


def taken(step: Step, place: int) -> Any:
    """A step's result with another choice: of the first field that is one, the option at a place, or none."""
    name, options = next(iter(choices(step).items()))
    now = getattr(step.output, name)
    one = options[place] if place >= 0 else None
    chosen = ((one,) if one is not None else ()) if isinstance(now, tuple) else one
    reasons = {
        field: BY_HAND
        for field, mark in marks_of(step.form).items()
        if mark == "explanation" and field == "reason"
    }
    return followed(replace(step.output, **{name: chosen, **reasons}))
