"""The form in which a person edits a prompt, and the messages that are sent to a model."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kgwb.llm.base import ChatRequest, Message
from kgwb.run.prompts import HEADER_FENCE, VARIABLE, Prompt, parse_prompt
from kgwb.run.steps import Step
from kgwb.show.html import (
    Html,
    collapsible,
    div,
    highlight_pattern,
    join,
    muted_text,
    preformatted,
    render_line_diff,
    render_template,
    span,
)
from kgwb.text import pluralize

TEMPLATE_VARIABLE_PATTERN = VARIABLE.pattern.replace("(", "(?:", 1)
"""A variable of a template, without the group that ``highlight_pattern`` does not allow."""
CHARS_PER_TOKEN = 4
"""A rule of thumb for English text."""
MIN_VARIABLE_CHARS = 2
"""A value of one character is not marked in a request: it would be marked in other words too."""


def split_prompt(text: str) -> tuple[str, str]:
    """Return the header of a prompt file with its fences, and the template below it.

    The header is empty if the text does not have one. Empty lines around the template are removed.
    """
    parts = HEADER_FENCE.split(text, maxsplit=2)
    if len(parts) < 3:
        return "", text
    _, values, template = parts
    return f"---{values}---\n", template.strip("\n")


def replace_template(text: str, template: str) -> str:
    """Return the text of a prompt file with another template below its header."""
    header, _ = split_prompt(text)
    changed = f"{header}{template}".replace("\r\n", "\n")
    return changed.rstrip("\n") + "\n"


def _header_values(header: str) -> dict[str, str]:
    """Return the values in the header of a prompt file, by their names.

    Lines without a colon, such as the fences, are skipped.
    """
    values = {}
    for line in header.splitlines():
        name, separator, value = line.partition(":")
        if separator:
            values[name] = value.strip()
    return values


DEFAULT_FOLDER = "my_prompts"
"""The folder, in the working directory, that is proposed for a prompt that is saved."""


def render_prompt_form(  # noqa: PLR0913  # what stands in a form
    name: str,
    file_text: str | None,
    used_text: str,
    draft: str | None,
    *,
    request: ChatRequest | None,
    problem: str,
    note: str,
    revision: int,
    needs_folder: bool,
    reply: object,
    left_out: Sequence[str],
) -> Html:
    """Render the template of a prompt in an editor, with buttons to try, save or reset it.

    ``file_text`` is the text of the prompt file, or None if the file is missing. ``used_text`` is
    the text that the run uses, and ``draft`` a template that was typed in place of that. The
    changes from the file to the editor are shown, and ``request``, which is the request as it will
    be sent. ``problem`` is why the prompt cannot be used, and ``note`` a remark. With
    ``needs_folder`` the form asks for the folder in which the prompt is saved. ``reply`` is what
    trying it gave, below the buttons. ``left_out`` is what was cut from the request for lack of
    room. What a person is typing stays in the editor until ``revision`` changes.
    """
    header, template = split_prompt(used_text)
    text = template if draft is None else draft
    values = _header_values(header)
    file_template = None
    if file_text is not None:
        _, file_template = split_prompt(file_text)

    state = "as in the file"
    if file_template is None:
        state = "the file is missing"
    elif text != file_template:
        state = "edited"
    changes = Html()
    if file_template is not None:
        changes = render_template_diff(file_template, text)
    prompt = None
    if request is not None:
        prompt = parse_prompt(name, replace_template(used_text, text))
    sent = Html()
    if not problem:
        sent = render_request(request, prompt=prompt, left_out=left_out)
    return render_template(
        "show/templates/prompt_form.html",
        name=name,
        values=values,
        is_edited=text != (file_template or ""),
        state=state,
        note=note,
        editor=render_template_editor(text, revision),
        variables=re.findall(r"\w+", values.get("variables", "")),
        problem=problem,
        folder=DEFAULT_FOLDER if needs_folder else "",
        reply=reply,
        changes=changes,
        request=sent,
    )


def render_messages_form(text: str, is_edited: bool, revision: int, reply: object) -> Html:
    """Render the messages of an agent without a prompt file in an editor, to try them once.

    ``text`` has each message below a line with its role. ``is_edited`` says whether a person has
    changed it. What a person is typing stays in the editor until ``revision`` changes. ``reply`` is
    what trying the messages gave, below the button.
    """
    return render_template(
        "show/templates/prompt_form.html",
        name="",
        is_edited=is_edited,
        state="edited" if is_edited else "as the agent wrote it",
        editor=render_template_editor(text, revision),
        reply=reply,
    )


def render_template_diff(before: str, after: str) -> Html:
    """Render the changed lines of a template below their number; nothing if there are none.

    At most MAX_ROWS changed lines are shown.
    """
    old_lines = before.splitlines()
    new_lines = after.splitlines()
    number, lines = render_line_diff(old_lines, new_lines)
    if not number:
        return Html()
    title = join("What you changed ", muted_text(pluralize(number, "line")))
    return collapsible(title, lines, expanded=True, key="diff")


def render_template_editor(text: str, revision: object) -> Html:
    """Render a template in an editor with its variables marked.

    The page sends what is typed as the event "draft", and in a form as "template". The text that is
    typed stays when the page is rendered again, until ``revision`` changes.
    """
    return render_template(
        "show/templates/template_editor.html",
        marked=highlight_pattern(text, TEMPLATE_VARIABLE_PATTERN, "var"),
        text=text,
        revision=revision,
    )


def find_left_out(step: Step | None) -> list[str]:
    """Return what the inputs of a step say was left out of them for lack of room.

    An input is a record with a text ``left_out``, such as candidates or the excerpt of a survey.
    """
    if step is None:
        return []
    texts = []
    for value in step.inputs.values():
        text = getattr(value, "left_out", "")
        if text and isinstance(text, str):
            texts.append(text)
    return texts


def render_request(
    request: ChatRequest | None,
    *,
    title: str = "As it will be sent",
    prompt: Prompt | None = None,
    left_out: Sequence[str] = (),
) -> Html:
    """Render the messages that a model gets, collapsed below their length.

    The length is in characters, with an estimate of tokens. With the ``prompt`` that was filled,
    the tokens of its parts are listed: instructions, examples, and each variable; and what was
    ``left_out`` for lack of room. The values of variables are marked in the messages of the user.
    If ``request`` is None, a text explains why there may be nothing to send.
    """
    if request is None:
        reason = "Run the agents before this one first. An agent without a model sends nothing."
        return div("soft", f"Nothing to send yet. {reason}")
    values = _marked_values(request)
    parts = [_render_message(message, values) for message in request.messages]
    text = f"{_count_chars(request):,} characters, about {estimate_tokens(request):,} tokens"
    if prompt is not None:
        sizes = prompt.measure_parts(request.messages, request.variables)
        listed = []
        for name, size in sizes.items():
            tokens = max(1, size // CHARS_PER_TOKEN)
            listed.append(f"{name} {tokens:,}")
        text += f": {', '.join(listed)}"
    if left_out:
        text += f"; left out for room: {', '.join(left_out)}"
    heading = join(f"{title} ", muted_text(text))
    return collapsible(heading, preformatted(*parts), key="sent")


def estimate_tokens(request: ChatRequest) -> int:
    """Return about how many tokens the messages of a request have."""
    return _count_chars(request) // CHARS_PER_TOKEN


def _count_chars(request: ChatRequest) -> int:
    """Return how many characters the messages of a request have."""
    return sum(len(message.content) for message in request.messages)


def _marked_values(request: ChatRequest) -> str:
    """Return a regular expression for the texts that a prompt was filled with.

    Longer texts come first, so that they are not marked in part. Texts of less than
    MIN_VARIABLE_CHARS characters are left out. Empty if there are none.
    """
    values = []
    for value in request.variables.values():
        if isinstance(value, str) and len(value) >= MIN_VARIABLE_CHARS:
            values.append(value)
    longest_first = sorted(values, key=len, reverse=True)
    return "|".join(map(re.escape, longest_first))


def _render_message(message: Message, values: str) -> Html:
    """Render the content of a message below its role.

    ``values`` is a regular expression for what is marked in it if the role is "user".
    """
    pattern = values if message.role == "user" else ""
    text = highlight_pattern(message.content, pattern)
    return join(span("role", message.role), text, "\n")
