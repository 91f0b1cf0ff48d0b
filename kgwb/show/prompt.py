"""A prompt as a person edits it: the template with its variables marked, what was changed, what is sent."""

from __future__ import annotations

import re

from kgwb.llm.base import ChatRequest
from kgwb.run.prompts import VARIABLE
from kgwb.show.html import Html, aside, button, count, div, fold, join, note, span, state_sign, tag
from kgwb.show.texts import changes, highlighted

TEMPLATE_VARIABLE = VARIABLE.pattern.replace("(", "(?:", 1)


def split_prompt(text: str) -> tuple[str, str]:
    """The front matter of a prompt file with its lines, and the template."""
    parts = re.split(r"^---\s*$", text, maxsplit=2, flags=re.MULTILINE)
    return (f"---{parts[1]}---\n", parts[2].strip("\n")) if len(parts) == 3 else ("", text)


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
    strategy, reply, source = (header.get(key, "").strip() for key in ("strategy", "reply", "source"))
    state = "no such file now" if file is None else "edited" if edited else "as in the file"
    about = (
        span("mono", f"prompts/{name}.md"),
        aside(f"· {strategy} · reply {reply} ·"),
        span("soft cut grow", source, title=source),
        state_sign("hand" if edited else "off", state, pill=True),
    )
    words = re.findall(r"\w+", header.get("variables", ""))
    variables = (tag("mark", "{{" + word + "}}", class_="var mono") for word in words)
    actions = (
        button("Try once", "try", "run", "primary", title="in this run only; the file stays as it is"),
        button("Save to file", "save"),
        button("Back to the file", "revert"),
        span("hint", "Try runs this agent again; what follows becomes stale."),
    )
    return tag(
        "form",
        div("row small", *about),
        note(remark, kind="calm") if remark else "",
        editor(text, revision),
        div("row small", aside("filled in by the agent:"), *variables),
        note(tag("b", "This prompt cannot be used: "), problem, kind="bad") if problem else "",
        div("row controls", *actions),
        changed_lines(original, text) if file is not None else "",
        sent(request),
        class_="body stack",
        data_do="try",
        id="prompt-form",
    )


def changed_lines(before: str, after: str) -> Html:
    """What was changed in a template, unfolded; nothing where nothing was."""
    number, lines = changes(before.splitlines(), after.splitlines())
    title = join("What you changed ", aside(count(number, "line")))
    return fold(title, lines, unfolded=True, key="diff") if number else Html()


def editor(text: str, revision: object) -> Html:
    """A template to edit, its variables marked; what is typed is sent as ``draft``."""
    named = {"name": "template", "id": "template", "class_": "ed", "data_input": "draft"}
    kept = {"spellcheck": "false", "aria_label": "the template of the prompt", "data_rev": revision}
    behind = tag("pre", highlighted(text, TEMPLATE_VARIABLE, "var"), "\n", aria_hidden="true", class_="ed")
    return div("edit", behind, tag("textarea", "\n", text, **named, **kept))


def sent(request: ChatRequest | None, *, what: str = "As it will be sent") -> Html:
    """The messages as the model gets them, folded, with their size."""
    if request is None:
        words = "Nothing to send yet: the agents before this one must run first, or it asks no model."
        return div("soft", words)
    values = [value for value in request.variables.values() if isinstance(value, str) and len(value) > 1]
    filled_in = "|".join(map(re.escape, sorted(values, key=len, reverse=True)))
    parts = []
    for message in request.messages:
        text = highlighted(message.content, filled_in if message.role == "user" else "")
        parts.append(join(span("role", message.role), text, "\n"))
    total = sum(len(message.content) for message in request.messages)
    size = aside(f"{total:,} characters, about {total // 4:,} tokens")
    return fold(join(f"{what} ", size), tag("pre", *parts, class_="src"), key="sent")
