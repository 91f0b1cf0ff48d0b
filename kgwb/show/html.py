"""HTML that cannot be broken out of, and the parts of every view: icons, states, buttons, bars, marks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from functools import cache, lru_cache
from html import escape
from itertools import takewhile, zip_longest
from operator import eq
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from kgwb.text import MAX_LABEL_CHARS, and_more, remove_controls, shorten

T = TypeVar("T")
MAX_ROWS = 60
"""Rows of a table that are shown; the last line shows how many more there are."""
MAX_TEXT_CHARS = 50_000
"""Letters shown of any text; where there are more, their number is shown."""
MAX_ALIGNED_ITEMS = 1_000
"""Items of a list that difflib compares: its time grows with the square of their number."""
MAX_COMPARED_CHARS = 2_000
"""Letters of a line that are compared and shown; its length is shown where it has more."""
MIN_SHARED_RATIO = 0.35
"""Share of the shorter text's letters that two texts must have in common for single words to be marked."""
NO_TEX_CLASSES = "tex2jax_ignore mathjax_ignore"
"""JupyterLab and MathJax set no text inside these classes as TeX."""
VOID_ELEMENTS = frozenset({"br", "input"})
ICON_PATHS = {
    "model": "M8 1.8 9.5 6.5 14.2 8 9.5 9.5 8 14.2 6.5 9.5 1.8 8 6.5 6.5Z",
    "search": "M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9ZM10.3 10.3 14 14",
    "sparql": "M3.2 12.8a1.7 1.7 0 1 0 0-.1ZM9.4 3.6a1.7 1.7 0 1 0 3.4 0 1.7 1.7 0 1 0-3.4 0Z"
    "M10.9 12.6a1.5 1.5 0 1 0 3 0 1.5 1.5 0 1 0-3 0ZM6 11.4l4-6.3M6.6 12.8h4.2",
    "code": "M5.5 4.5 2 8l3.5 3.5M10.5 4.5 14 8l-3.5 3.5",
    "person": "M8 7.6a2.8 2.8 0 1 0 0-5.6 2.8 2.8 0 0 0 0 5.6ZM2.6 14c.5-3 2.6-4.4 5.4-4.4s4.9 1.4 5.4 4.4",
    "group": "M4 6l4 4 4-4",
    "ok": "M3 8.6 6.4 12 13 4.6",
    "none": "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12ZM3.8 3.8l8.4 8.4",
    "bad": "M4 4l8 8M12 4l-8 8",
    "stale": "M13 8a5 5 0 1 1-1.6-3.7M13 2v3h-3",
    "hand": "M3 13l.7-2.8 7.2-7.2a1.4 1.4 0 0 1 2 2L5.8 12.3Z",
    "run": "M5 3.2v9.6L12.6 8Z",
    "step": "M3.5 3.5v9L10 8ZM12.5 3.5v9",
    "back": "M12.5 3.5v9L6 8ZM3.5 3.5v9",
    "start": "M8 3.5v9L2.5 8ZM13.5 3.5v9L8 8Z",
    "stop": "M4.5 4.5h7v7h-7Z",
    "wait": "M8 2a6 6 0 1 1-6 6",
    "off": "M4 8h8",
    "open": "M6 3.5 10.5 8 6 12.5",
    "plus": "M8 3v10M3 8h10",
}
"""Paths of 16 by 16, drawn by stroke in the colour of the text."""
AGENT_KIND_LABELS = {
    "model": "model",
    "search": "graph search",
    "sparql": "SPARQL",
    "code": "plain code",
    "person": "you",
    "group": "supervisor",
}
"""What each kind of agent is called."""


class Html(str):
    """Markup that is safe to show. Everything else is escaped where it is put into a page."""

    __slots__ = ()

    def __html__(self) -> str:
        """Let Jinja know that this is not to be escaped."""
        return str(self)


def safe(content: object) -> Html:
    """Markup as it is; the text of anything else, escaped, of at most MOST_TEXT letters and harmless."""
    if isinstance(content, Html):
        return content
    text = shorten(str(content), MAX_TEXT_CHARS)
    return _escape_text(text) if len(text) <= MAX_LABEL_CHARS else _escape_text.__wrapped__(text)


@lru_cache(maxsize=8192)
def _escape_text(text: str) -> Html:
    """Kept for short texts: a widget that is drawn again has the same."""
    return Html(escape(remove_controls(text), quote=True))


@cache
def _template_environment() -> Environment:
    package = Path(__file__).parent.parent
    return Environment(
        loader=FileSystemLoader(package),
        autoescape=True,
        finalize=safe,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def render_template(name: str, **values: object) -> Html:
    """Render a page from its template, such as "show/templates/run.html".

    Values that are no Html are escaped.
    """
    return Html(_template_environment().get_template(name).render(**values))


def tag(element: str, /, *contents: object, **attributes: object) -> Html:
    """An element; ``class_`` is the attribute class, ``data_do`` data-do. All values are escaped.

    An attribute that is None or False is left out; True stands for one without a value.
    """
    written = ""
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        shown = "" if value is True else round(value, 1) if isinstance(value, float) else value
        name = key.rstrip("_").replace("_", "-")
        written += f' {name}="{safe(shown)}"'
    end = "" if element in VOID_ELEMENTS else f"</{element}>"
    return Html(f"<{element}{written}>{join(*contents)}{end}")


def join(*contents: object) -> Html:
    """Contents one after another; None and "" are nothing."""
    return Html("".join(safe(content) for content in contents if content is not None))


def div(class_: str, *contents: object, **attributes: object) -> Html:
    return tag("div", *contents, class_=class_ or None, **attributes)


def span(class_: str, *contents: object, **attributes: object) -> Html:
    return tag("span", *contents, class_=class_ or None, **attributes)


def join_with_dots(*items: object) -> Html:
    """Parts with dots between them; empty ones are left out."""
    return join_with(span("soft", " · "), filter(None, items))


def join_with(separator: object, items: Iterable[object]) -> Html:
    """Parts with a sign between them."""
    return join(*(join(separator if place else "", part) for place, part in enumerate(items)))


def section(*contents: object, **attributes: object) -> Html:
    """The outermost element of every view; in it, no text is set as TeX."""
    return tag("section", *contents, class_=f"kg {NO_TEX_CLASSES}", **attributes)


def static_section(*contents: object, **attributes: object) -> Html:
    """A section with the style it needs, for where no widget is."""
    return embed_style(section(*contents, data_static=True, **attributes))


def static_page(*contents: object) -> Html:
    """Contents one below the other, with the style they need."""
    return static_section(div("body stack", *contents))


def embed_style(markup: Html) -> Html:
    """A section with the rules of the style sheet for the classes that occur in it."""
    there = {
        name for names in set(re.findall(r'class="([^"]*)"', markup)) for name in names.split()
    }
    rules = "".join(rule for classes, rule in _css_rules() if not classes or classes & there)
    return Html(markup.replace(">", f"><style>{rules}</style>", 1))


@cache
def load_style() -> str:
    """The style sheet, without comments and line ends."""
    text = Path(__file__).with_name("look.css").read_text(encoding="utf-8")
    return re.sub(r"\s*\n\s*", " ", re.sub(r"/\*.*?\*/", "", text, flags=re.S)).strip()


@cache
def _css_rules() -> tuple[tuple[frozenset[str], str], ...]:
    """The rules of the style sheet, each with the classes that its selectors name."""
    rules, anywhere = [], {"kg", "light", "dark", "theme-light", "theme-dark"}
    for rule in re.findall(r"[^{}]+\{(?:[^{}]|\{[^{}]*\})*\}", load_style()):
        names = re.sub(
            r"\{[^{}]*\}|:not\([^()]*\)", " ", rule
        )  # what must not occur need not be there
        rules.append((frozenset(re.findall(r"\.([A-Za-z][\w-]*)", names)) - anywhere, rule.strip()))
    return tuple(rules)


def icon(name: str, class_: str = "") -> Html:
    path = tag("path", d=ICON_PATHS[name])
    return tag("svg", path, class_=f"i {class_}".strip(), viewBox="0 0 16 16", aria_hidden="true")


def agent_kind_badge(kind: str, *, small: bool = False, outlined: bool = False) -> Html:
    """The tile of a kind of agent; an outline only means that its model was not asked."""
    words = AGENT_KIND_LABELS[kind] + (", but it was not asked" if outlined else "")
    classes = f"kind {kind}{' sm' if small else ''}{' hollow' if outlined else ''}"
    return span(classes, icon(kind), title=words)


def state_badge(state: str, label: str, *, pill: bool = False) -> Html:
    """A state by icon, colour and word."""
    turning = state == "wait"
    sign = icon(state, "spin" if turning else "")
    return span(f"st {'run' if turning else state}{' pill' if pill else ''}", sign, label)


def button(
    label: str,
    event: str,
    icon_name: str = "",
    class_: str = "",
    *,
    shortcut: str = "",
    disabled: bool = False,
    **attributes: Any,
) -> Html:
    """A button that sends ``do``, and ``arg`` with it; one that is ``off`` stays, and does nothing.

    ``square`` shows its icon alone, and ``fold`` does so where there is little room.
    """
    square = "square" in class_.split()
    alone = square or (icon_name and "fold" in class_.split())
    text = "" if square else span("long", label) if alone else label
    sent = {
        "type": "button",
        "data_do": event,
        "data_arg": attributes.pop("arg", None),
        "data_key": shortcut or None,
    }
    state = {"aria_keyshortcuts": shortcut or None, "aria_disabled": "true" if disabled else None}
    words = {
        "title": label if alone else None,
        "aria_label": label if alone else None,
        **attributes,
    }
    signs = (icon(icon_name) if icon_name else "", text)
    return tag("button", *signs, class_=f"btn {class_}".strip(), **sent, **state, **words)


def tabs(
    options: Iterable[tuple[str, str, object]],
    selected_name: str,
    event: str,
    *,
    borderless: bool = False,
) -> Html:
    """Views to choose from: each name, its label, and a number beside it."""

    def tab(name: str, label: str, number: object) -> Html:
        text = join(label, join(" ", span("n", number)) if number else "")
        sent = {"data_do": event, "data_arg": name, "id": f"{event}-{name}"}
        selected = str(name == selected_name).lower()
        return tag("button", text, role="tab", type="button", **sent, aria_selected=selected)

    return div(
        f"tabs{' bare' if borderless else ''}",
        *(tab(*option) for option in options),
        role="tablist",
    )


def bar(fraction: float) -> Html:
    """A number from 0 to 1 as a bar."""
    return div("bar", tag("i", style=f"width:{max(0.0, min(fraction, 1.0)) * 100:.1f}%"))


def score_bar(score: float) -> Html:
    """A bar with the number beside it."""
    return span("row", div("grow", bar(score)), span("num", f"{score:.2f}"))


def collapsible(summary: object, *contents: object, expanded: bool = False, key: str = "") -> Html:
    """A summary that opens; only the summary if there is nothing in it."""
    if not any(contents):
        return div("", summary)
    return tag(
        "details", tag("summary", summary), div("", *contents), open=expanded, id=key or None
    )


def table(headings: Sequence[object], rows: Iterable[Sequence[object]], *, total: int = 0) -> Html:
    """A table of at most MOST_ROWS rows; ``of`` is how many there are where ``rows`` are only the first."""
    rows = list(rows)
    if not rows:
        return Html()
    head = tag("tr", *(tag("th", text) for text in headings)) if any(headings) else ""
    lines = (tag("tr", *(tag("td", cell) for cell in row)) for row in rows[:MAX_ROWS])
    return join(tag("table", head, *lines), omitted_count(max(total, len(rows)) - MAX_ROWS))


def preformatted(*texts: object) -> Html:
    """A text with its line ends and spaces kept."""
    return tag("pre", *texts, class_="src")


def muted_text(text: object) -> Html:
    """A text that stands back."""
    return span("soft", text)


def omitted_count(number: int) -> Html:
    """How many more there are than are shown; nothing where that is all."""
    return muted_text(and_more(number)) if number > 0 else Html()


def note(*contents: object, level: str = "") -> Html:
    """A remark; ``kind`` is "bad" for a failure, "calm" for what only explains."""
    return div(f"note {level}".strip(), *contents)


def iri_link(value: str, label: str, class_: str | None = None) -> Html:
    """An IRI, as a link if a browser can follow it."""
    value = str(value)  # rdflib's own startswith takes no tuple
    if not value.startswith(("http://", "https://")) or len(value) > MAX_TEXT_CHARS:
        return tag("span", shorten(label), class_=class_, title=shorten(value))
    link = {"href": value, "target": "_blank", "rel": "noopener noreferrer"}
    return tag("a", shorten(label), class_=class_, title=shorten(value), **link)


class ChartBar(NamedTuple):
    """A figure of a chart; a line is drawn across the bar's end from ``low`` to ``high``."""

    label: str
    value: float
    value_text: str
    """The figure in words, at the end of the line."""
    interval_low: float
    interval_high: float
    series: int = 0


def bar_chart(title: str, bars: Sequence[ChartBar], max_value: float = 0.0) -> Html:
    """A horizontal bar for each figure, from 0 to ``most`` or the largest of them. Nothing of none."""
    if not bars:
        return Html()
    max_value = (
        max([max_value, *(max(figure.value, figure.interval_high) for figure in bars)]) or 1.0
    )
    rows = []
    for figure in bars:
        numbers = figure.value, figure.interval_low, figure.interval_high - figure.interval_low
        value, low, width = (f"{number / max_value * 100:.1f}%" for number in numbers)
        drawn = div(
            "bar", tag("i", style=f"width:{value}"), tag("s", style=f"left:{low};width:{width}")
        )
        name = span("cut", figure.label, title=figure.label)
        series = ("sparql", "person", "ok", "code")[figure.series % 4]
        rows.append(div(f"hbar {series}", name, drawn, span("num", figure.value_text)))
    return tag("figure", span("caption", title), *rows, class_="bars")


def align_lists(first: list[str], second: list[str]) -> list[tuple[bool, list[str], list[str]]]:
    """The parts of two lists, in order, and whether they are the same in both.

    Where much lies between their ends, it has nothing in common.
    """
    begin = _common_prefix_length(first, second)
    end = _common_prefix_length(first[begin:][::-1], second[begin:][::-1])
    old, new = first[begin : len(first) - end], second[begin : len(second) - end]
    middle = [(False, old, new)]
    if max(len(old), len(new)) <= MAX_ALIGNED_ITEMS:
        codes = SequenceMatcher(None, old, new).get_opcodes()
        middle = [(what == "equal", old[i:j], new[k:m]) for what, i, j, k, m in codes]
    tail = first[len(first) - end :]
    return [(True, first[:begin], first[:begin]), *middle, (True, tail, tail)]


def _common_prefix_length(first: list[str], second: list[str]) -> int:
    """How many items both begin with."""
    return sum(takewhile(bool, map(eq, first, second)))


def mark_changed_words(before: str, after: str) -> tuple[Html, Html]:
    """Two texts, each with the words marked that the other has not; whole if they have little in common."""
    parts = align_lists(re.findall(r"\w+|\W", before), re.findall(r"\w+|\W", after))
    shared = sum(len(word) for same, words, _ in parts if same for word in words if word.isalnum())
    if before != after and shared <= MIN_SHARED_RATIO * min(len(before), len(after)):
        return tag("del", before) if before else Html(), tag("ins", after) if after else Html()
    sides: tuple[list[Html], list[Html]] = ([], [])
    for same, *words in parts:
        for side, mark, text in zip(sides, ("del", "ins"), map("".join, words), strict=True):
            side.append(safe(text) if same or not text else tag(mark, text))
    return join(*sides[0]), join(*sides[1])


def render_word_diff(before: str, after: str) -> Html:
    """A text before and after it was changed, each beside its heading."""
    old, new = mark_changed_words(before, after)
    return div("kv", span("soft", "before"), span("", old), span("soft", "after"), span("b", new))


def render_line_diff(before: list[str], after: list[str]) -> tuple[int, Html]:
    """How many lines differ, and the first of them below each other with the words marked that differ."""
    rows: list[Html] = []
    unequal = ((old, new) for same, old, new in align_lists(before, after) if not same)
    pairs = [pair for old, new in unequal for pair in zip_longest(old, new)]
    for old, new in pairs[:MAX_ROWS]:
        first, second = mark_changed_words(
            shorten(old or "", MAX_COMPARED_CHARS), shorten(new or "", MAX_COMPARED_CHARS)
        )
        rows += [div("del", first, data_s="−")] if old is not None else []
        rows += [div("ins", second, data_s="+")] if new is not None else []
    return len(pairs), div("diff", *rows, omitted_count(len(pairs) - MAX_ROWS))


def highlight_pattern(text: str, pattern: str, class_: str = "filled") -> Html:
    """A text with all marked that a regular expression without groups matches; nothing by an empty one."""
    parts = re.split(f"({pattern})", text) if pattern else [text]
    return join(
        *(tag("mark", part, class_=class_) if n % 2 else safe(part) for n, part in enumerate(parts))
    )


def highlight_words(text: str, words: Iterable[str]) -> Html:
    """A text with some of its words marked, letter case aside."""
    wanted = "|".join(re.escape(word) for word in words if word.strip())
    return highlight_pattern(text, rf"(?i:(?<!\w)(?:{wanted})(?!\w))" if wanted else "")
