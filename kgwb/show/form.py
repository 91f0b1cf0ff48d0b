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
from kgwb.kg.sparql import LONE_SURROGATE, is_valid_iri
from kgwb.llm.base import ChatRequest
from kgwb.records import field_marks, from_data, one_line, to_data, type_adapter
from kgwb.run.prompts import VARIABLE
from kgwb.run.steps import Step
from kgwb.show import html as h
from kgwb.show.html import Html
from kgwb.text import display_name, pluralize, shorten

InputKind = Literal[
    "text", "iri", "number", "flag", "choice", "texts", "table", "group", "json", "ticks"
]
"""``texts`` is a text a line, ``table`` a group a row; ``choice`` is one of several, ``ticks`` are any."""
FormValues = Mapping[str, str]
"""What stands in the inputs by their names; a box that is not ticked has none."""
MAX_FORM_ROWS = 60
"""A longer table is typed as JSON."""
KINDS_BY_JSON_TYPE: Mapping[str, InputKind] = {
    "string": "text",
    "number": "number",
    "integer": "number",
    "boolean": "flag",
}
DEFAULTS_BY_KIND: Mapping[InputKind, Any] = {
    "text": "",
    "iri": "",
    "number": 0,
    "flag": False,
    "texts": [],
    "table": [],
}
PLACEHOLDERS = {"texts": "one a line", "json": "JSON", "number": "a number", "iri": "http://..."}
MANUAL_REASON = "chosen by hand"
MISSING = object()
TEMPLATE_VARIABLE_PATTERN = VARIABLE.pattern.replace("(", "(?:", 1)


@dataclass(frozen=True, slots=True)
class FormField:
    """One part of a form."""

    name: str
    kind: InputKind
    choices: tuple[Any, ...] = ()
    """JSON data to choose from."""
    subfields: tuple[FormField, ...] = ()
    """Parts of a group, columns of a table; a column without a name stands for the whole row."""
    default: Any = MISSING
    choice_labels: tuple[str, ...] = ()
    """Of the choices, where these do not speak for themselves."""

    @property
    def label(self) -> str:
        return "IRI" if self.name == "iri" else display_name(self.name)


def field_for_type(value_type: Any) -> FormField:
    """The form of a type, without the fields that follow from others."""
    whole = field_for_schema(type_adapter(value_type).json_schema(mode="serialization"))
    if whole.kind != "group" or not is_dataclass(value_type):
        return whole
    marks = field_marks(value_type)  # type: ignore[arg-type]
    return replace(
        whole, subfields=tuple(part for part in whole.subfields if marks.get(part.name) != "hidden")
    )


def field_for_schema(
    schema: Mapping[str, Any], name: str = "", defs: Mapping[str, Any] | None = None, *seen: str
) -> FormField:
    """The form of what a JSON schema describes; ``defs`` and ``seen`` are of the schema it is part of."""
    defs = schema.get("$defs", {}) if defs is None else defs
    as_json = FormField(name, "json", default=schema.get("default", MISSING))
    if reference := schema.get("$ref"):
        if reference in seen:  # a form without an end
            return as_json
        target = {**defs[reference.removeprefix("#/$defs/")], **schema}
        del target["$ref"]
        return field_for_schema(target, name, defs, *seen, reference)
    if "const" in schema or "enum" in schema:
        return replace(
            as_json, kind="choice", choices=tuple(schema.get("enum", [schema.get("const")]))
        )
    if isinstance(schema.get("items"), Mapping):
        item = field_for_schema(schema["items"], "", defs, *seen)
        if item.kind in ("json", "text"):
            return as_json if item.kind == "json" else replace(as_json, kind="texts")
        columns = item.subfields if item.kind == "group" else (item,)
        fitting = (
            replace(column, kind="json")
            if column.name and column.kind in ("group", "table")
            else column
            for column in columns
        )
        return replace(as_json, kind="table", subfields=tuple(fitting))
    parts = tuple(
        field_for_schema(part, key, defs, *seen)
        for key, part in schema.get("properties", {}).items()
    )
    kind: InputKind = "group" if parts else KINDS_BY_JSON_TYPE.get(schema.get("type", ""), "json")
    return replace(
        as_json, kind="iri" if (name, kind) == ("iri", "text") else kind, subfields=parts
    )


def empty_data(field: FormField) -> Any:
    """The data of a form in which nothing was typed yet."""
    if field.default is not MISSING:
        return field.default
    if field.kind == "group":
        return {part.name: empty_data(part) for part in field.subfields}
    return field.choices[0] if field.kind == "choice" else DEFAULTS_BY_KIND.get(field.kind)


def fit_field(field: FormField, data: Any) -> FormField:
    """The form that shows this data and loses nothing of it; parts that would are typed as JSON."""
    if field.kind == "ticks":  # in an order of their own
        return field
    if field.kind == "group" and isinstance(data, Mapping):
        field = replace(
            field, subfields=tuple(fit_field(part, data.get(part.name)) for part in field.subfields)
        )
    if field.kind == "table" and isinstance(data, list) and len(data) > MAX_FORM_ROWS:
        return replace(field, kind="json")
    with suppress(OverrideError, TypeError, KeyError, ValueError, AttributeError):
        # equal as JSON: in Python, True is 1
        if json.dumps(
            parse_form_values(field, to_form_values(field, data)), sort_keys=True
        ) == json.dumps(data, sort_keys=True):
            return field
    return replace(field, kind="json")


def _join_path(path: str, *parts: object) -> str:
    return ".".join(filter(None, (path, *map(str, parts))))


def to_form_values(field: FormField, data: Any, path: str = "") -> dict[str, str]:
    """What somebody would have typed for ``data``, which the field must be fitted to."""
    name = path or "value"
    match field.kind:
        case "group":
            parts = [
                to_form_values(part, data[part.name], _join_path(path, part.name))
                for part in field.subfields
            ]
        case "table":
            parts = [
                to_form_values(
                    column, row[column.name] if column.name else row, _join_path(path, n, k)
                )
                for n, row in enumerate(data)
                for k, column in enumerate(field.subfields)
            ]
        case "ticks":
            parts = [{_join_path(path, field.choices.index(choice)): "on" for choice in data}]
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


def parse_form_values(field: FormField, values: FormValues) -> Any:
    """The data of what was typed. Raises OverrideError with what is wrong in each wrong field."""
    problems: list[str] = []

    def part(field: FormField, path: str, *above: str) -> Any:
        place, name = (*above, field.label), path or "value"
        match field.kind:
            case "group":
                return {
                    member.name: part(member, _join_path(path, member.name), *place)
                    for member in field.subfields
                }
            case "table":
                rows = []
                for number, n in enumerate(_row_numbers(values, path), 1):
                    columns = enumerate(field.subfields)
                    cells = {
                        c.name: part(c, _join_path(path, n, k), *place, f"row {number}")
                        for k, c in columns
                    }
                    rows.append(cells.get("", cells))
                return rows
            case "ticks":
                return [
                    choice
                    for n, choice in enumerate(field.choices)
                    if _join_path(path, n) in values
                ]
            case "flag":
                return name in values
        try:
            return _parse_input(field, values.get(name, "").replace("\r\n", "\n"))
        except ValueError as exc:
            problems.append(": ".join(filter(None, (", ".join(filter(None, place)), str(exc)))))

    data = part(field, "")
    if problems:
        raise OverrideError(
            "; ".join(problems), hint="fix these fields; the others stay as they are"
        )
    return data


def _row_numbers(values: FormValues, path: str) -> list[int]:
    """The numbers of the rows of a table."""
    places = (re.match(rf"{re.escape(_join_path(path, ''))}\.?(\d+)\.", name) for name in values)
    return sorted({int(place[1]) for place in places if place})


def _parse_input(field: FormField, text: str) -> Any:
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
            if not (re.match(r"[A-Za-z][\w+.-]*:.", value) and is_valid_iri(value)):
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
    if LONE_SURROGATE.search(json.dumps(value, ensure_ascii=False)):
        raise ValueError("it holds half a character, such as half an emoji; write the whole one")
    return value


def _number(text: str) -> int | float:
    for form in (int, float):
        with suppress(ValueError, OverflowError):
            if math.isfinite(number := form(text)):
                return number
    raise ValueError(f"{text!r} is no number")


def validate_record(data: Any, value_type: Any) -> Any:
    """The typed record of JSON data. Raises OverrideError with the parts that have not the form."""
    try:
        return from_data(data, value_type)
    except ValidationError as exc:
        wrong = []
        for error in exc.errors(include_url=False)[:5]:
            parts = (
                f"row {part + 1}" if isinstance(part, int) else str(part) for part in error["loc"]
            )
            wrong.append(": ".join(filter(None, (", ".join(parts), error["msg"]))))
        raise OverrideError("; ".join(wrong), hint="fix these fields") from exc


def add_or_remove_row(
    field: FormField, values: FormValues, path: str, *, remove: bool = False
) -> dict[str, str]:
    """What was typed, with a row more at the end of a table, or without the row of that path."""
    parts = [part for part in path.split(".") if part not in ("", "value")]
    row = parts.pop() if remove and parts else ""
    for name in parts:
        field = next((part for part in field.subfields if part.name == name), field)
    if field.kind != "table":
        raise OverrideError(f"{path!r} is not a row of a table", hint="press a button beside a row")
    table = _join_path("", *parts)
    if remove:
        return {
            name: text
            for name, text in values.items()
            if not name.startswith(f"{_join_path(table, row)}.")
        }
    end = max(_row_numbers(values, table), default=-1) + 1
    cells = ((k, fit_field(column, empty_data(column))) for k, column in enumerate(field.subfields))
    added = [
        to_form_values(column, empty_data(column), _join_path(table, end, k)) for k, column in cells
    ]
    return {**values, **{name: text for cell in added for name, text in cell.items()}}


def render_fields(field: FormField, values: FormValues, path: str = "", revision: int = 0) -> Html:
    """The inputs of a field with what stands in them."""
    match field.kind:
        case "group":
            parts = []
            for part in field.subfields:
                single = part.kind not in ("group", "table", "ticks", "flag")
                contents = render_fields(part, values, _join_path(path, part.name), revision)
                caption = h.span("b", part.label)
                parts.append(h.tag("label" if single else "div", caption, contents, class_="f"))
            return h.div("stack", *parts)
        case "table":
            grid = f"grid-template-columns: repeat({len(field.subfields)}, minmax(0, 1fr)) 24px"
            heads = h.div(
                "triple-in",
                *(h.span("caption", each.label) for each in field.subfields),
                style=grid,
            )
            lines = []
            for n in _row_numbers(values, path):
                columns = enumerate(field.subfields)
                cells = (
                    render_fields(column, values, _join_path(path, n, k), revision)
                    for k, column in columns
                )
                less = h.button(
                    "take this row out", "less", "bad", "ghost square", arg=_join_path(path, n)
                )
                lines.append(h.div("triple-in", *cells, less, style=grid))
            more = h.button("Another row", "more", "plus", "ghost", arg=path or "value")
            return h.div("stack tight", heads, *lines, more)
        case "ticks":
            ticks = []
            for n, label in enumerate(field.choice_labels):
                box = h.tag(
                    "input",
                    type="checkbox",
                    name=_join_path(path, n),
                    checked=_join_path(path, n) in values,
                )
                ticks.append(h.tag("label", box, " ", h.tag("bdi", label), class_="tick"))
            return h.div("stack tight scroll", *ticks)
    return _render_input(field, values, path, revision)


def _render_input(field: FormField, values: FormValues, path: str, revision: int) -> Html:
    rows = [part for part in path.split(".") if part.isdigit()]
    label = f"{field.label} {int(rows[0]) + 1}" if rows and field.name else field.label or "value"
    name = path or "value"
    named = {"name": name, "id": f"field-{path}", "aria_label": label, "data_rev": revision}
    if field.kind == "flag":
        return h.tag("input", type="checkbox", checked=name in values, **named)
    value, hint = values.get(name, ""), PLACEHOLDERS.get(field.kind)
    if field.kind == "choice":
        labels = enumerate(field.choice_labels or map(str, field.choices))
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


def choice_fields(step: Step) -> dict[str, FormField]:
    """The fields of a step's result that are a choice among what came in, by their names."""
    fields: dict[str, FormField] = {}
    if not is_dataclass(step.output_type):
        return fields
    marks = field_marks(step.output_type)  # type: ignore[arg-type]
    for name, hint in get_type_hints(step.output_type).items():
        wanted = next(
            (arg for arg in get_args(hint) if isinstance(arg, type) and is_dataclass(arg)), None
        )
        if wanted is None or marks[name] == "hidden":
            continue
        offered = [
            record for source in step.inputs.values() for record in _find_options(source, wanted)
        ]
        now = getattr(step.output, name) if step.done else ()
        if isinstance(now, tuple):
            fits = all(record in offered for record in now)
        else:
            fits = type(None) in get_args(hint)
            offered += _find_options(step.output, wanted)
            offered += [now] if offered and now is not None else []
        if fits and offered:
            options = dict.fromkeys(offered)
            among, labels = tuple(map(to_data, options)), tuple(map(one_line, options))
            if get_origin(hint) is tuple:
                fields[name] = FormField(name, "ticks", among, choice_labels=labels)
            else:
                fields[name] = FormField(
                    name, "choice", (None, *among), choice_labels=("none", *labels)
                )
    return fields


def _find_options(source: Any, wanted: type) -> list[Any]:
    """The records of a type in the tuples of a record, or in a tuple."""
    parts: Sequence[Any] = [source]
    if is_dataclass(source) and not isinstance(source, type):
        parts = [getattr(source, name) for name in field_marks(type(source))]
    tuples = (part for part in parts if isinstance(part, tuple))
    return [record for records in tuples for record in records if isinstance(record, wanted)]


class OutputForm:
    """The form of a step's result: its fields, and what stands in them at first."""

    def __init__(self, step: Step) -> None:
        self.step, self.choice_fields = step, choice_fields(step)
        whole = field_for_type(step.output_type)
        initial_data = to_data(step.output, step.output_type) if step.done else empty_data(whole)
        if whole.kind == "group":
            if not step.done:
                names = {part.name for part in whole.subfields} - self.choice_fields.keys()
                came_in = {name: step.inputs[name] for name in names & step.inputs.keys()}
                initial_data |= {
                    name: to_data(value) for name, value in came_in.items() if value is not None
                }
            initial_data = {part.name: initial_data[part.name] for part in whole.subfields}
            fields = tuple(self.choice_fields.get(part.name, part) for part in whole.subfields)
            whole = replace(whole, subfields=fields)
        self.field = fit_field(whole, initial_data)
        self.initial_values = to_form_values(self.field, initial_data)
        self.data = parse_form_values(self.field, self.initial_values)

    def render(self, values: FormValues | None = None, revision: int = 0) -> Html:
        return render_fields(
            self.field, self.initial_values if values is None else values, "", revision
        )

    def parse(self, values: FormValues) -> Any:
        """The record of what was typed; the step's own result if nothing was. Raises OverrideError."""
        data, step = parse_form_values(self.field, values), self.step
        if step.done and data == self.data:
            return step.output
        if self.field.kind == "group":
            rechosen = step.done and any(
                data[name] != self.data[name] for name in self.choice_fields
            )
            data = {**(to_data(step.output, step.output_type) if step.done else {}), **data}
            if rechosen and data.get("reason") == getattr(step.output, "reason", MISSING):
                data["reason"] = MANUAL_REASON
        return update_derived_fields(validate_record(data, step.output_type))


def update_derived_fields(value: Any) -> Any:
    """A record with what follows from the fields that were edited."""
    follow = getattr(value, "with_derived_fields", None)
    return follow() if follow else value


def choose_option(step: Step, position: int) -> Any:
    """A step's result with another choice: of the first field that is one, the option at a place, or none."""
    form = OutputForm(step)
    name = next(iter(form.choice_fields))
    part = next(part for part in form.field.subfields if part.name == name)
    kept = {key: text for key, text in form.initial_values.items() if key.partition(".")[0] != name}
    chosen = {name: str(position + 1)} if part.kind == "choice" else {f"{name}.{position}": "on"}
    return form.parse(kept | chosen)


# --- a prompt: its template with its variables marked, what was changed, and what is sent


def split_prompt(text: str) -> tuple[str, str]:
    """The front matter of a prompt file with its lines, and the template."""
    parts = re.split(r"^---\s*$", text, maxsplit=2, flags=re.MULTILINE)
    return (f"---{parts[1]}---\n", parts[2].strip("\n")) if len(parts) == 3 else ("", text)


def replace_template(text: str, template: str) -> str:
    """The text of a prompt file with another template."""
    return f"{split_prompt(text)[0]}{template}".replace("\r\n", "\n").rstrip("\n") + "\n"


def render_prompt_form(  # noqa: PLR0913  # what stands in a form
    name: str,
    file_text: str | None,
    used_text: str,
    draft: str | None,
    *,
    request: ChatRequest | None,
    problem: str = "",
    note: str = "",
    revision: int = 0,
) -> Html:
    """The template in its editor, with what may be done to it.

    ``file`` is the text of the file, None if there is none now; ``used`` is what the run uses, and ``draft``
    what was typed over it.
    """
    front, template = split_prompt(used_text)
    text = template if draft is None else draft
    original = split_prompt(file_text)[1] if file_text is not None else ""
    edited = text != original
    header = dict(line.split(":", 1) for line in front.splitlines() if ":" in line)
    strategy, reply, source = (
        header.get(key, "").strip() for key in ("strategy", "reply", "source")
    )
    state = "no such file now" if file_text is None else "edited" if edited else "as in the file"
    about = (
        h.span("mono", f"prompts/{name}.md"),
        h.muted_text(f"· {strategy} · reply {reply} ·"),
        h.span("soft cut grow", source, title=source),
        h.state_badge("hand" if edited else "off", state, pill=True),
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
        h.note(note, level="calm") if note else "",
        render_template_editor(text, revision),
        h.div("row small", h.muted_text("filled in by the agent:"), *variables),
        h.note(h.tag("b", "This prompt cannot be used: "), problem, level="bad") if problem else "",
        h.div("row controls", *actions),
        render_template_diff(original, text) if file_text is not None else "",
        render_request(request),
        class_="body stack",
        data_do="try",
        id="prompt-form",
    )


def render_template_diff(before: str, after: str) -> Html:
    """What was changed in a template, unfolded; nothing where nothing was."""
    number, lines = h.render_line_diff(before.splitlines(), after.splitlines())
    title = h.join("What you changed ", h.muted_text(pluralize(number, "line")))
    return h.collapsible(title, lines, expanded=True, key="diff") if number else Html()


def render_template_editor(text: str, revision: object) -> Html:
    """A template to edit, its variables marked; what is typed is sent as ``draft``."""
    named = {"name": "template", "id": "template", "class_": "ed", "data_input": "draft"}
    kept = {"spellcheck": "false", "aria_label": "the template of the prompt", "data_rev": revision}
    behind = h.tag(
        "pre",
        h.highlight_pattern(text, TEMPLATE_VARIABLE_PATTERN, "var"),
        "\n",
        aria_hidden="true",
        class_="ed",
    )
    return h.div("edit", behind, h.tag("textarea", "\n", text, **named, **kept))


def render_request(request: ChatRequest | None, *, title: str = "As it will be sent") -> Html:
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
        text = h.highlight_pattern(message.content, filled_in if message.role == "user" else "")
        parts.append(h.join(h.span("role", message.role), text, "\n"))
    total = sum(len(message.content) for message in request.messages)
    size = h.muted_text(f"{total:,} characters, about {total // 4:,} tokens")
    return h.collapsible(h.join(f"{title} ", size), h.preformatted(*parts), key="sent")
