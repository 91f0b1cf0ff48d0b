"""Forms to edit a prompt, a record, or to reply in the place of a model: fields made of a JSON schema.

What a person types is what a page sends: a text for the name of each input, which is its place in the data
("facts.0.1" is the second column of the first fact). ``read(field, typed(field, data)) == data`` holds for
the fields that ``fitted`` returns; whatever a form cannot show is typed as JSON, that part only.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, is_dataclass, replace
from typing import Any, Literal, get_args, get_origin, get_type_hints

from pydantic import ValidationError

from kgwb.errors import OverrideError
from kgwb.kg.sparql import HALF, writable
from kgwb.llm.base import ChatRequest
from kgwb.records import field_marks, from_data, one_line, to_data, type_adapter
from kgwb.run.prompts import VARIABLE
from kgwb.run.steps import Step
from kgwb.show import html as h
from kgwb.show.html import Html
from kgwb.text import display_name, pluralize, shorten

Kind = Literal[
    "text", "iri", "number", "flag", "choice", "texts", "table", "group", "json", "ticks"
]
"""``texts`` is a text a line, ``table`` a group a row; ``choice`` is one of several, ``ticks`` are any."""
Typed = Mapping[str, str]
"""What stands in the inputs by their names; a box that is not ticked has none."""
MOST_FORM_ROWS = 60
"""A longer table is typed as JSON."""
PLAIN: Mapping[str, Kind] = {
    "string": "text",
    "number": "number",
    "integer": "number",
    "boolean": "flag",
}
EMPTY: Mapping[Kind, Any] = {
    "text": "",
    "iri": "",
    "number": 0,
    "flag": False,
    "texts": [],
    "table": [],
}
HINTS = {"texts": "one a line", "json": "JSON", "number": "a number", "iri": "http://..."}
BY_HAND = "chosen by hand"
NO_DATA = object()
TEMPLATE_VARIABLE = VARIABLE.pattern.replace("(", "(?:", 1)


@dataclass(frozen=True, slots=True)
class Field:
    """One part of a form."""

    name: str
    kind: Kind
    choices: tuple[Any, ...] = ()
    """JSON data to choose from."""
    fields: tuple[Field, ...] = ()
    """Parts of a group, columns of a table; a column without a name stands for the whole row."""
    default: Any = NO_DATA
    labels: tuple[str, ...] = ()
    """Of the choices, where these do not speak for themselves."""

    @property
    def label(self) -> str:
        return "IRI" if self.name == "iri" else display_name(self.name)


def form_of(form: Any) -> Field:
    """The form of a type, without the fields that follow from others."""
    whole = field_of(type_adapter(form).json_schema(mode="serialization"))
    if whole.kind != "group" or not is_dataclass(form):
        return whole
    marks = field_marks(form)  # type: ignore[arg-type]
    return replace(
        whole, fields=tuple(part for part in whole.fields if marks.get(part.name) != "hidden")
    )


def field_of(
    schema: Mapping[str, Any], name: str = "", defs: Mapping[str, Any] | None = None, *seen: str
) -> Field:
    """The form of what a JSON schema describes; ``defs`` and ``seen`` are of the schema it is part of."""
    defs = schema.get("$defs", {}) if defs is None else defs
    as_json = Field(name, "json", default=schema.get("default", NO_DATA))
    if reference := schema.get("$ref"):
        if reference in seen:  # a form without an end
            return as_json
        target = {**defs[reference.removeprefix("#/$defs/")], **schema}
        del target["$ref"]
        return field_of(target, name, defs, *seen, reference)
    if "const" in schema or "enum" in schema:
        return replace(
            as_json, kind="choice", choices=tuple(schema.get("enum", [schema.get("const")]))
        )
    if isinstance(schema.get("items"), Mapping):
        item = field_of(schema["items"], "", defs, *seen)
        if item.kind in ("json", "text"):
            return as_json if item.kind == "json" else replace(as_json, kind="texts")
        columns = item.fields if item.kind == "group" else (item,)
        fitting = (
            replace(column, kind="json")
            if column.name and column.kind in ("group", "table")
            else column
            for column in columns
        )
        return replace(as_json, kind="table", fields=tuple(fitting))
    parts = tuple(
        field_of(part, key, defs, *seen) for key, part in schema.get("properties", {}).items()
    )
    kind: Kind = "group" if parts else PLAIN.get(schema.get("type", ""), "json")
    return replace(as_json, kind="iri" if (name, kind) == ("iri", "text") else kind, fields=parts)


def blank(field: Field) -> Any:
    """The data of a form in which nothing was typed yet."""
    if field.default is not NO_DATA:
        return field.default
    if field.kind == "group":
        return {part.name: blank(part) for part in field.fields}
    return field.choices[0] if field.kind == "choice" else EMPTY.get(field.kind)


def fitted(field: Field, data: Any) -> Field:
    """The form that shows this data and loses nothing of it; parts that would are typed as JSON."""
    if field.kind == "ticks":  # in an order of their own
        return field
    if field.kind == "group" and isinstance(data, Mapping):
        field = replace(
            field, fields=tuple(fitted(part, data.get(part.name)) for part in field.fields)
        )
    if field.kind == "table" and isinstance(data, list) and len(data) > MOST_FORM_ROWS:
        return replace(field, kind="json")
    with suppress(OverrideError, TypeError, KeyError, ValueError, AttributeError):
        # equal as JSON: in Python, True is 1
        if json.dumps(read(field, typed(field, data)), sort_keys=True) == json.dumps(
            data, sort_keys=True
        ):
            return field
    return replace(field, kind="json")


def _at(path: str, *parts: object) -> str:
    return ".".join(filter(None, (path, *map(str, parts))))


def typed(field: Field, data: Any, path: str = "") -> dict[str, str]:
    """What somebody would have typed for ``data``, which the field must be fitted to."""
    name = path or "value"
    match field.kind:
        case "group":
            parts = [typed(part, data[part.name], _at(path, part.name)) for part in field.fields]
        case "table":
            parts = [
                typed(column, row[column.name] if column.name else row, _at(path, n, k))
                for n, row in enumerate(data)
                for k, column in enumerate(field.fields)
            ]
        case "ticks":
            parts = [{_at(path, field.choices.index(choice)): "on" for choice in data}]
        case "flag":
            parts = [{name: "on"} if data else {}]
        case "choice":
            parts = [{name: str(field.choices.index(data))}]
        case "texts":
            parts = [{name: "\n".join(data)}]
        case _:
            parts = [
                {name: json.dumps(data, ensure_ascii=False) if field.kind == "json" else str(data)}
            ]
    return {key: text for part in parts for key, text in part.items()}


def read(field: Field, values: Typed) -> Any:
    """The data of what was typed. Raises OverrideError with what is wrong in each wrong field."""
    problems: list[str] = []

    def part(field: Field, path: str, *above: str) -> Any:
        place, name = (*above, field.label), path or "value"
        match field.kind:
            case "group":
                return {
                    member.name: part(member, _at(path, member.name), *place)
                    for member in field.fields
                }
            case "table":
                rows = []
                for number, n in enumerate(_rows(values, path), 1):
                    columns = enumerate(field.fields)
                    cells = {
                        c.name: part(c, _at(path, n, k), *place, f"row {number}")
                        for k, c in columns
                    }
                    rows.append(cells.get("", cells))
                return rows
            case "ticks":
                return [choice for n, choice in enumerate(field.choices) if _at(path, n) in values]
            case "flag":
                return name in values
        try:
            return _read_text(field, values.get(name, "").replace("\r\n", "\n"))
        except ValueError as exc:
            problems.append(": ".join(filter(None, (", ".join(filter(None, place)), str(exc)))))

    data = part(field, "")
    if problems:
        raise OverrideError(
            "; ".join(problems), hint="fix these fields; the others stay as they are"
        )
    return data


def _rows(values: Typed, path: str) -> list[int]:
    """The numbers of the rows of a table."""
    places = (re.match(rf"{re.escape(_at(path, ''))}\.?(\d+)\.", name) for name in values)
    return sorted({int(place[1]) for place in places if place})


def _read_text(field: Field, text: str) -> Any:
    """Raises ValueError with what is wrong."""
    value: Any = text
    match field.kind:
        case "text":
            value = text.strip()
        case "texts":
            value = [line for line in text.split("\n") if line]
        case "json":
            try:
                value = json.loads(text)
            except (ValueError, RecursionError) as exc:
                raise ValueError(f"this is no JSON: {exc}") from exc
        case "iri":
            value = text.strip().removeprefix("<").removesuffix(">")
            if not (re.match(r"[A-Za-z][\w+.-]*:.", value) and writable(value)):
                source = "copy one from a table of results or from your graph"
                raise ValueError(
                    f"{text!r} is not an IRI; {source}, as in http://example.org/Arrival"
                )
        case "number":
            value = _number(text.strip())
        case "choice":
            if not text.isdecimal() or int(text) >= len(field.choices):
                raise ValueError(f"{text!r} is none of {', '.join(map(str, field.choices))}")
            value = field.choices[int(text)]
    if HALF.search(json.dumps(value, ensure_ascii=False)):
        raise ValueError("it holds half a character, such as half an emoji; write the whole one")
    return value


def _number(text: str) -> int | float:
    for form in (int, float):
        with suppress(ValueError, OverflowError):
            if math.isfinite(number := form(text)):
                return number
    raise ValueError(f"{text!r} is no number")


def record_of(data: Any, form: Any) -> Any:
    """The typed record of JSON data. Raises OverrideError with the parts that have not the form."""
    try:
        return from_data(data, form)
    except ValidationError as exc:
        wrong = []
        for error in exc.errors(include_url=False)[:5]:
            parts = (
                f"row {part + 1}" if isinstance(part, int) else str(part) for part in error["loc"]
            )
            wrong.append(": ".join(filter(None, (", ".join(parts), error["msg"]))))
        raise OverrideError("; ".join(wrong), hint="fix these fields") from exc


def with_row(field: Field, values: Typed, path: str, *, less: bool = False) -> dict[str, str]:
    """What was typed, with a row more at the end of a table, or without the row of that path."""
    parts = [part for part in path.split(".") if part not in ("", "value")]
    row = parts.pop() if less and parts else ""
    for name in parts:
        field = next((part for part in field.fields if part.name == name), field)
    if field.kind != "table":
        raise OverrideError(f"{path!r} is not a row of a table", hint="press a button beside a row")
    table = _at("", *parts)
    if less:
        return {
            name: text
            for name, text in values.items()
            if not name.startswith(f"{_at(table, row)}.")
        }
    end = max(_rows(values, table), default=-1) + 1
    cells = ((k, fitted(column, blank(column))) for k, column in enumerate(field.fields))
    added = [typed(column, blank(column), _at(table, end, k)) for k, column in cells]
    return {**values, **{name: text for cell in added for name, text in cell.items()}}


def inputs(field: Field, values: Typed, path: str = "", revision: int = 0) -> Html:
    """The inputs of a field with what stands in them."""
    match field.kind:
        case "group":
            parts = []
            for part in field.fields:
                single = part.kind not in ("group", "table", "ticks", "flag")
                contents = inputs(part, values, _at(path, part.name), revision)
                caption = h.span("b", part.label)
                parts.append(h.tag("label" if single else "div", caption, contents, class_="f"))
            return h.div("stack", *parts)
        case "table":
            grid = f"grid-template-columns: repeat({len(field.fields)}, minmax(0, 1fr)) 24px"
            heads = h.div(
                "triple-in", *(h.span("caption", each.label) for each in field.fields), style=grid
            )
            lines = []
            for n in _rows(values, path):
                columns = enumerate(field.fields)
                cells = (inputs(column, values, _at(path, n, k), revision) for k, column in columns)
                less = h.button(
                    "take this row out", "less", "bad", "ghost square", arg=_at(path, n)
                )
                lines.append(h.div("triple-in", *cells, less, style=grid))
            more = h.button("Another row", "more", "plus", "ghost", arg=path or "value")
            return h.div("stack tight", heads, *lines, more)
        case "ticks":
            ticks = []
            for n, label in enumerate(field.labels):
                box = h.tag(
                    "input", type="checkbox", name=_at(path, n), checked=_at(path, n) in values
                )
                ticks.append(h.tag("label", box, " ", h.tag("bdi", label), class_="tick"))
            return h.div("stack tight scroll", *ticks)
    return _input(field, values, path, revision)


def _input(field: Field, values: Typed, path: str, revision: int) -> Html:
    rows = [part for part in path.split(".") if part.isdigit()]
    label = f"{field.label} {int(rows[0]) + 1}" if rows and field.name else field.label or "value"
    name = path or "value"
    named = {"name": name, "id": f"field-{path}", "aria_label": label, "data_rev": revision}
    if field.kind == "flag":
        return h.tag("input", type="checkbox", checked=name in values, **named)
    value, hint = values.get(name, ""), HINTS.get(field.kind)
    if field.kind == "choice":
        labels = enumerate(field.labels or map(str, field.choices))
        options = (
            h.tag("option", shorten(text, 120), value=n, selected=str(n) == value)
            for n, text in labels
        )
        return h.tag("select", *options, **named)
    if field.kind not in ("texts", "json") and len(value) <= 80 and "\n" not in value:
        return h.tag(
            "input", type="text", value=value, placeholder=hint, autocomplete="off", **named
        )
    height = min(max(value.count("\n") + 1, len(value) // 80, 2), 12)
    return h.tag("textarea", "\n", value, rows=height, placeholder=hint, **named)


def choices(step: Step) -> dict[str, Field]:
    """The fields of a step's result that are a choice among what came in, by their names."""
    fields: dict[str, Field] = {}
    if not is_dataclass(step.output_type):
        return fields
    marks = field_marks(step.output_type)  # type: ignore[arg-type]
    for name, hint in get_type_hints(step.output_type).items():
        wanted = next(
            (arg for arg in get_args(hint) if isinstance(arg, type) and is_dataclass(arg)), None
        )
        if wanted is None or marks[name] == "hidden":
            continue
        offered = [record for source in step.inputs.values() for record in _offered(source, wanted)]
        now = getattr(step.output, name) if step.done else ()
        if isinstance(now, tuple):
            fits = all(record in offered for record in now)
        else:
            fits = type(None) in get_args(hint)
            offered += _offered(step.output, wanted)
            offered += [now] if offered and now is not None else []
        if fits and offered:
            options = dict.fromkeys(offered)
            among, labels = tuple(map(to_data, options)), tuple(map(one_line, options))
            if get_origin(hint) is tuple:
                fields[name] = Field(name, "ticks", among, labels=labels)
            else:
                fields[name] = Field(name, "choice", (None, *among), labels=("none", *labels))
    return fields


def _offered(source: Any, wanted: type) -> list[Any]:
    """The records of a type in the tuples of a record, or in a tuple."""
    parts: Sequence[Any] = [source]
    if is_dataclass(source) and not isinstance(source, type):
        parts = [getattr(source, name) for name in field_marks(type(source))]
    tuples = (part for part in parts if isinstance(part, tuple))
    return [record for records in tuples for record in records if isinstance(record, wanted)]


class StepForm:
    """The form of a step's result: its fields, and what stands in them at first."""

    def __init__(self, step: Step) -> None:
        self.step, self.offered = step, choices(step)
        whole = form_of(step.output_type)
        data = to_data(step.output, step.output_type) if step.done else blank(whole)
        if whole.kind == "group":
            if not step.done:
                names = {part.name for part in whole.fields} - self.offered.keys()
                came_in = {name: step.inputs[name] for name in names & step.inputs.keys()}
                data |= {
                    name: to_data(value) for name, value in came_in.items() if value is not None
                }
            data = {part.name: data[part.name] for part in whole.fields}
            fields = tuple(self.offered.get(part.name, part) for part in whole.fields)
            whole = replace(whole, fields=fields)
        self.field = fitted(whole, data)
        self.first = typed(self.field, data)
        self.data = read(self.field, self.first)

    def html(self, values: Typed | None = None, revision: int = 0) -> Html:
        return inputs(self.field, self.first if values is None else values, "", revision)

    def value(self, values: Typed) -> Any:
        """The record of what was typed; the step's own result if nothing was. Raises OverrideError."""
        data, step = read(self.field, values), self.step
        if step.done and data == self.data:
            return step.output
        if self.field.kind == "group":
            rechosen = step.done and any(data[name] != self.data[name] for name in self.offered)
            data = {**(to_data(step.output, step.output_type) if step.done else {}), **data}
            if rechosen and data.get("reason") == getattr(step.output, "reason", NO_DATA):
                data["reason"] = BY_HAND
        return followed(record_of(data, step.output_type))


def followed(value: Any) -> Any:
    """A record with what follows from the fields that were edited."""
    follow = getattr(value, "follow", None)
    return follow() if follow else value


def taken(step: Step, place: int) -> Any:
    """A step's result with another choice: of the first field that is one, the option at a place, or none."""
    form = StepForm(step)
    name = next(iter(form.offered))
    part = next(part for part in form.field.fields if part.name == name)
    kept = {key: text for key, text in form.first.items() if key.partition(".")[0] != name}
    chosen = {name: str(place + 1)} if part.kind == "choice" else {f"{name}.{place}": "on"}
    return form.value(kept | chosen)


# --- a prompt: its template with its variables marked, what was changed, and what is sent


def split_prompt(text: str) -> tuple[str, str]:
    """The front matter of a prompt file with its lines, and the template."""
    parts = re.split(r"^---\s*$", text, maxsplit=2, flags=re.MULTILINE)
    return (f"---{parts[1]}---\n", parts[2].strip("\n")) if len(parts) == 3 else ("", text)


def with_template(text: str, template: str) -> str:
    """The text of a prompt file with another template."""
    return f"{split_prompt(text)[0]}{template}".replace("\r\n", "\n").rstrip("\n") + "\n"


def prompt_form(  # noqa: PLR0913  # what stands in a form
    name: str,
    file: str | None,
    used: str,
    draft: str | None,
    *,
    request: ChatRequest | None,
    problem: str = "",
    remark: str = "",
    revision: int = 0,
) -> Html:
    """The template in its editor, with what may be done to it.

    ``file`` is the text of the file, None if there is none now; ``used`` is what the run uses, and ``draft``
    what was typed over it.
    """
    front, template = split_prompt(used)
    text = template if draft is None else draft
    original = split_prompt(file)[1] if file is not None else ""
    edited = text != original
    header = dict(line.split(":", 1) for line in front.splitlines() if ":" in line)
    strategy, reply, source = (
        header.get(key, "").strip() for key in ("strategy", "reply", "source")
    )
    state = "no such file now" if file is None else "edited" if edited else "as in the file"
    about = (
        h.span("mono", f"prompts/{name}.md"),
        h.aside(f"· {strategy} · reply {reply} ·"),
        h.span("soft cut grow", source, title=source),
        h.state_sign("hand" if edited else "off", state, pill=True),
    )
    words = re.findall(r"\w+", header.get("variables", ""))
    variables = (h.tag("mark", "{{" + word + "}}", class_="var mono") for word in words)
    actions = (
        h.button(
            "Try once", "try", "run", "primary", title="in this run only; the file stays as it is"
        ),
        h.button("Save to file", "save"),
        h.button("Back to the file", "revert"),
        h.span("hint", "Try runs this agent again; what follows becomes stale."),
    )
    return h.tag(
        "form",
        h.div("row small", *about),
        h.note(remark, kind="calm") if remark else "",
        editor(text, revision),
        h.div("row small", h.aside("filled in by the agent:"), *variables),
        h.note(h.tag("b", "This prompt cannot be used: "), problem, kind="bad") if problem else "",
        h.div("row controls", *actions),
        changed_lines(original, text) if file is not None else "",
        sent(request),
        class_="body stack",
        data_do="try",
        id="prompt-form",
    )


def changed_lines(before: str, after: str) -> Html:
    """What was changed in a template, unfolded; nothing where nothing was."""
    number, lines = h.changes(before.splitlines(), after.splitlines())
    title = h.join("What you changed ", h.aside(pluralize(number, "line")))
    return h.fold(title, lines, unfolded=True, key="diff") if number else Html()


def editor(text: str, revision: object) -> Html:
    """A template to edit, its variables marked; what is typed is sent as ``draft``."""
    named = {"name": "template", "id": "template", "class_": "ed", "data_input": "draft"}
    kept = {"spellcheck": "false", "aria_label": "the template of the prompt", "data_rev": revision}
    behind = h.tag(
        "pre", h.highlighted(text, TEMPLATE_VARIABLE, "var"), "\n", aria_hidden="true", class_="ed"
    )
    return h.div("edit", behind, h.tag("textarea", "\n", text, **named, **kept))


def sent(request: ChatRequest | None, *, what: str = "As it will be sent") -> Html:
    """The messages as the model gets them, folded, with their size."""
    if request is None:
        words = (
            "Nothing to send yet: the agents before this one must run first, or it asks no model."
        )
        return h.div("soft", words)
    values = [
        value for value in request.variables.values() if isinstance(value, str) and len(value) > 1
    ]
    filled_in = "|".join(map(re.escape, sorted(values, key=len, reverse=True)))
    parts = []
    for message in request.messages:
        text = h.highlighted(message.content, filled_in if message.role == "user" else "")
        parts.append(h.join(h.span("role", message.role), text, "\n"))
    total = sum(len(message.content) for message in request.messages)
    size = h.aside(f"{total:,} characters, about {total // 4:,} tokens")
    return h.fold(h.join(f"{what} ", size), h.preformatted(*parts), key="sent")
