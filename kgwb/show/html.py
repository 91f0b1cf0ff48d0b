"""HTML that text cannot break out of, and the parts that all views are made of.

Markup is an ``Html``. Anything else is escaped where it is put into an element.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from functools import cache, lru_cache
from html import escape
from itertools import groupby, zip_longest
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from jinja2.ext import Extension
from markupsafe import Markup

from kgwb.show.static_form import VOID_ELEMENTS, load_style, make_static
from kgwb.text import (
    MAX_LABEL_CHARS,
    and_more,
    common_prefix_length,
    display_name,
    pluralize,
    remove_controls,
    shorten,
    single_line,
)

MAX_ROWS = 60
"""Rows of a table that are shown; the number of the others stands below it."""
MAX_TEXT_CHARS = 50_000
"""Characters shown of any text. A longer text is cut, and its length is shown."""
MAX_ALIGNED_ITEMS = 1_000
"""Items of a list that difflib compares: its time grows with the square of their number."""
MAX_COMPARED_CHARS = 2_000
"""Characters of a line that are compared and shown. The length of a longer line is shown."""
MIN_SHARED_RATIO = 0.35
"""Single words are marked only if two texts share more than this part of the shorter one."""
NO_TEX_CLASSES = "tex2jax_ignore mathjax_ignore"
"""JupyterLab and MathJax set no text inside these classes as TeX."""
CLASSES_OF_ALL_VIEWS = {"kg", "light", "dark", "theme-light", "theme-dark"}
AGENT_KIND_LABELS = {
    "model": "model",
    "search": "graph search",
    "sparql": "SPARQL",
    "sql": "SQL",
    "code": "plain code",
    "person": "you",
    "group": "supervisor",
}
"""The name of each kind of agent, as people see it."""
TABS_LABELS = {
    "view": "views",
    "role": "roles",
    "section": "parts of the step",
    "which": "steps of the agent",
    "lit": "highlighted answer",
    "drawn": "kinds of picture",
    "prompt": "prompts",
}
"""What a screen reader calls a row of tabs, by the event that its tabs send."""
SERIES_CLASSES = ("sparql", "person", "model", "code")
"""The CSS classes that give the series of a chart their colours."""


class Html(str):
    """Markup that is safe to show."""

    __slots__ = ()

    def __html__(self) -> str:
        """Return the markup; Jinja calls this instead of escaping it."""
        return str(self)


def safe(content: object) -> Html:
    """Return Html as it is, and anything else as escaped text.

    A text longer than MAX_TEXT_CHARS is cut there, with its length behind it. Control characters
    are replaced.
    """
    if isinstance(content, Html):
        return content
    text = shorten(str(content), MAX_TEXT_CHARS)
    if len(text) <= MAX_LABEL_CHARS:
        return _escape_short_text(text)
    return _escape_text(text)


def _escape_text(text: str) -> Html:
    """Return a text escaped for content and attributes, with its control characters replaced."""
    return Html(escape(remove_controls(text), quote=True))


_escape_short_text = lru_cache(maxsize=8192)(_escape_text)
"""Remembers its results: a widget that is rendered again has the same labels."""


_BLOCK_TAG = r"</?(?:details|div|form|h[1-6]|li|ol|option|p|section|summary|table|td|th|tr|ul)\b"
_BREAK_BEFORE_BLOCK = re.compile(rf"\s*\n\s*(?={_BLOCK_TAG})")
_BREAK_AFTER_BLOCK = re.compile(rf"({_BLOCK_TAG}[^<>]*>)\s*\n\s*")


class WithoutBreaksAtBlocks(Extension):
    """Leaves out the line breaks of a template, with their indentation, beside tags of block elements.

    A browser shows nothing for them, but makes text nodes of them. With these, the comparison in
    live.js takes one line of a list for another, and makes most lines anew at each step.
    """

    def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:
        """Return the source of a template without these line breaks."""
        source = _BREAK_BEFORE_BLOCK.sub("", source)
        return _BREAK_AFTER_BLOCK.sub(r"\1", source)


def _finalize(value: object) -> str:
    """Return what a template shows of a value: the result of a macro, which is escaped already, as it is."""
    return value if isinstance(value, Markup) else safe(value)


@cache
def _template_environment() -> Environment:
    """Return the Jinja environment for the templates of the package.

    Every value of a template is escaped unless it is Html, and a missing one raises UndefinedError.
    A template is read once in a process: to look for a newer file at every use costs time, above
    all while another thread computes. The functions of this module are there as ``h``:
    ``{{ h.button("Run", "run") }}``.
    """
    package = Path(__file__).parent.parent
    environment = Environment(
        loader=FileSystemLoader(package),
        auto_reload=False,
        autoescape=True,
        finalize=_finalize,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=[WithoutBreaksAtBlocks],
    )
    environment.globals.update(
        h=sys.modules[__name__],
        display_name=display_name,
        pluralize=pluralize,
        shorten=shorten,
        single_line=single_line,
    )
    return environment


def render_template(name: str, /, **values: object) -> Html:
    """Render a template of the package, such as "show/templates/run.html".

    Values are escaped unless they are Html. Raises jinja2's UndefinedError if a value is missing.
    """
    template = _template_environment().get_template(name)
    return Html(template.render(**values))


# Elements


def tag(element: str, /, *contents: object, **attributes: object) -> Html:
    """Render an element; contents and attributes are escaped.

    ``class_`` becomes the attribute class, and ``data_do`` becomes data-do. An attribute that is
    None or False is left out, and one that is True has an empty value. A float is rounded to one
    decimal. Contents of VOID_ELEMENTS are ignored.
    """
    start = f"<{element}"
    for key, value in attributes.items():
        if value is not None and value is not False:
            name = key.rstrip("_").replace("_", "-")
            start += f' {name}="{_attribute_text(value)}"'
    if element in VOID_ELEMENTS:
        return Html(f"{start}>")
    return Html(f"{start}>{join(*contents)}</{element}>")


def _attribute_text(value: object) -> Html:
    """Return the value of an attribute as escaped text.

    True becomes an empty text, and a float is rounded to one decimal.
    """
    if value is True:
        return Html()
    if isinstance(value, float):
        return safe(round(value, 1))
    return safe(value)


def join(*contents: object) -> Html:
    """Return contents one after another as one piece of markup. None is left out."""
    return Html("".join(safe(content) for content in contents if content is not None))


def div(class_: str, *contents: object, **attributes: object) -> Html:
    """Render a div with a CSS class, or "" for none; contents and attributes as in ``tag``."""
    return tag("div", *contents, class_=class_ or None, **attributes)


def span(class_: str, *contents: object, **attributes: object) -> Html:
    """Render a span with a CSS class, or "" for none; contents and attributes as in ``tag``."""
    return tag("span", *contents, class_=class_ or None, **attributes)


def join_with_dots(*items: object) -> Html:
    """Return items with dots between them. Empty items are left out."""
    return join_with(" · ", filter(None, items))


def join_with(separator: object, items: Iterable[object]) -> Html:
    """Return items with a separator between them."""
    return Html(safe(separator).join(map(safe, items)))


# Sections and their style


def section(*contents: object, **attributes: object) -> Html:
    """Render the outermost element of a view. In it, no text is set as TeX."""
    return tag("section", *contents, class_=f"kg {NO_TEX_CLASSES}", **attributes)


def static_section(*contents: object, **attributes: object) -> Html:
    """Render a section with the style that it needs, for a page without a widget.

    It has nothing that only a kernel could answer, see ``kgwb.show.static_form``.
    """
    markup = section(*contents, data_static=True, **attributes)
    return embed_style(Html(make_static(markup)))


def static_page(*contents: object) -> Html:
    """Render contents below each other, with the style that they need."""
    return static_section(div("body stack", *contents))


def embed_style(markup: Html) -> Html:
    """Return a section with a style element at the beginning of its content.

    The style has those rules of the style sheet that can apply in the section, and they apply to
    static sections alone. A page may also have widgets, whose own style sheet stands before this
    one. The markup itself is not changed otherwise.
    """
    names = re.findall(r'(?<=<)\w+|(?<=class=")[^"]*', markup)
    used_names = set(" ".join(names).split())
    style = ""
    for condition, rules in groupby(_css_rules(), key=attrgetter("condition")):
        kept = "".join(rule.reduce_to(used_names) for rule in rules)
        if condition and kept:
            kept = f"{condition}{{{kept}}}"
        style += kept
    start = f"><style>.kg[data-static]{{{style}}}</style>"
    return Html(markup.replace(">", start, 1))


SELECTOR_COMMA = re.compile(r",(?!(?:[^()]|\([^()]*\))*\))")
"""A comma between selectors, and not one inside of :is(), :not() and the like, even within each other."""


class CssRule(NamedTuple):
    """A rule of the style sheet. ``condition`` is the at-rule around it, such as @media, or empty."""

    condition: str
    selectors: tuple[tuple[str, frozenset[str]], ...]
    """Each selector inside of a static section, with the names without which it selects nothing."""
    declarations: str

    def reduce_to(self, used_names: set[str]) -> str:
        """Return the rule with the selectors that need these names only; empty without any."""
        kept = [selector for selector, names in self.selectors if names <= used_names]
        if not kept:
            return ""
        return ",".join(kept) + self.declarations


@cache
def _css_rules() -> tuple[CssRule, ...]:
    """Return the rules of the style sheet in their order, those inside of at-rules too."""
    rules = []
    for head, body in re.findall(r"([^{}]+)(\{(?:[^{}]|\{[^{}]*\})*\})", load_style()):
        condition = ""
        inner_rules = [(head, body)]
        if head.lstrip().startswith("@"):
            condition = head.strip()
            inner_rules = re.findall(r"([^{}]+)(\{[^{}]*\})", body[1:-1])
        for selectors, declarations in inner_rules:
            parsed = tuple(map(_parse_selector, SELECTOR_COMMA.split(selectors)))
            rules.append(CssRule(condition, parsed, declarations))
    return tuple(rules)


def _parse_selector(selector: str) -> tuple[str, frozenset[str]]:
    """Return a selector as it is nested in the rule for static sections, and the names it needs.

    Names are those of classes and elements without which it selects nothing. CLASSES_OF_ALL_VIEWS
    and what is inside of :is(), :not() and the like are left out.
    """
    plain = re.sub(r":[\w-]+(\([^()]*\))?|\[[^]]*\]", " ", selector)
    names = re.findall(r"[A-Za-z][\w-]*", plain)
    nested = re.sub(r"(?<!\.kg)\.kg(?![\w-])", "&", selector.strip())
    return nested.removeprefix("& "), frozenset(names) - CLASSES_OF_ALL_VIEWS


# Icons, states and controls


def icon(name: str) -> Html:
    """Render an icon, in the colour of the text. Screen readers skip it.

    ``look.css`` has a class with a picture for each name.
    """
    return tag("i", class_=f"i i-{name}")


@lru_cache(maxsize=256)
def agent_kind_badge(kind: str, *, small: bool = False, outlined: bool = False) -> Html:
    """Render the icon of a kind of agent, with the name of the kind as the tooltip.

    ``outlined`` is for an agent whose model was not asked: the icon is drawn hollow, and the
    tooltip says so. ``kind`` is one of AGENT_KIND_LABELS. The results are cached: a view has dozens of
    badges, of few kinds.
    """
    classes = f"kind {kind}"
    tooltip = AGENT_KIND_LABELS[kind]
    if small:
        classes += " sm"
    if outlined:
        classes += " hollow"
        tooltip += ", but it was not asked"
    return span(classes, icon(kind), title=tooltip)


def state_badge(state: str, label: str, *, pill: bool = False) -> Html:
    """Render a state as an icon and a label in the colour of the state.

    ``state`` is the name of an icon. The icon of "wait" turns. A ``pill`` has a background.
    """
    classes = f"st {state}"
    if pill:
        classes += " pill"
    return span(classes, icon(state), label)


def button(
    label: str,
    event: str,
    icon_name: str = "",
    class_: str = "",
    *,
    arg: object = None,
    shortcut: str = "",
    disabled: bool = False,
    **attributes: object,
) -> Html:
    """Render a button that sends an event with its argument ``arg`` to the widget.

    The class "square" shows the icon alone. With the class "fold" and an icon, the label is hidden
    where there is little room. In both cases the label is also the tooltip, unless ``attributes``
    have a title. ``shortcut`` is a key that presses the button, such as "Control+Enter". A disabled
    button stays on the page, but sends nothing.
    """
    class_names = class_.split()
    is_square = "square" in class_names
    may_fold = bool(icon_name) and "fold" in class_names
    contents: list[str] = []
    if icon_name:
        contents.append(icon(icon_name))
    if may_fold and not is_square:
        contents.append(span("long", label))
    elif not is_square:
        contents.append(label)
    hidden_label = label if is_square or may_fold else None
    key = shortcut or None
    named = {"title": hidden_label, "aria_label": hidden_label, **attributes}
    return tag(
        "button",
        *contents,
        class_=f"btn {class_}".strip(),
        type="button",
        data_do=event,
        data_arg=arg,
        data_key=key,
        aria_keyshortcuts=key,
        aria_disabled="true" if disabled else None,
        **named,
    )


def text_input(name: str, label: str, value: object = "", **attributes: object) -> Html:
    """Render a text field of one line. ``label`` is read out by screen readers."""
    attributes = {"autocomplete": "off", "id": f"typed-{name}", **attributes}
    return tag("input", type="text", name=name, value=value, aria_label=label, **attributes)


def tabs(
    options: Iterable[tuple[str, str, object]],
    selected_name: str,
    event: str,
    panel_id: str,
    *,
    borderless: bool = False,
) -> Html:
    """Render views to choose from as tabs. A tab sends the event with its name as the argument.

    An option is a name, a label, and a number that is shown beside the label unless it is 0 or "".
    ``selected_name`` is the name of the tab that is marked as open. ``panel_id`` is the id of what
    it shows, which must be the only one on the page.
    """
    buttons = []
    for name, label, number in options:
        contents: list[object] = [label]
        if number:
            contents += [" ", span("n", number)]
        is_selected = name == selected_name
        tab = tag(
            "button",
            *contents,
            role="tab",
            type="button",
            data_do=event,
            data_arg=name,
            id=f"{event}-{name}",
            aria_selected=str(is_selected).lower(),
            aria_controls=panel_id if is_selected else None,
        )
        buttons.append(tab)
    classes = "tabs"
    if borderless:
        classes += " bare"
    return div(classes, *buttons, role="tablist", aria_label=TABS_LABELS.get(event))


def collapsible(summary: object, *contents: object, expanded: bool = False, key: str = "") -> Html:
    """Render a summary that shows or hides contents; the summary alone if they are empty.

    It is collapsed at first unless ``expanded``. ``key`` is the id by which a widget keeps it open
    when it is rendered again.
    """
    if not any(contents):
        return div("", summary)
    head = tag("summary", summary)
    body = div("", *contents)
    return tag("details", head, body, open=expanded, id=key or None)


# Texts, links and tables


def table(
    headings: Sequence[object],
    rows: Iterable[Sequence[object]],
    *,
    total: int = 0,
    max_rows: int = MAX_ROWS,
) -> Html:
    """Render a table of at most ``max_rows`` rows, and below it how many more there are.

    ``total`` is the number of all rows where ``rows`` are only the first. Returns nothing if there
    are no rows. The head is left out if all headings are empty.
    """
    rows = list(rows)
    if not rows:
        return Html()
    lines = []
    if any(headings):
        lines.append(_table_row("th", headings))
    for row in rows[:max_rows]:
        lines.append(_table_row("td", row))
    number = max(total, len(rows))
    omitted = omitted_count(number - max_rows)
    return join(tag("table", *lines), omitted)


def _table_row(element: str, cells: Iterable[object]) -> Html:
    """Render a row of a table; ``element`` is that of each cell, "th" or "td".

    An empty cell is a "td" in each row, since a screen reader cannot name an empty heading.
    """
    rendered = [tag(element if cell else "td", cell) for cell in cells]
    return tag("tr", *rendered)


def preformatted(*texts: object) -> Html:
    """Render texts in one block, with their line ends and spaces.

    One that may be too high for its block can be focused, so that keys scroll it.
    """
    content = join(*texts)
    is_high = len(content) > 1_000 or content.count("\n") > 15
    return tag("pre", content, class_="src", tabindex="0" if is_high else None)


def muted_text(text: object) -> Html:
    """Render a text in a soft colour."""
    return span("soft", text)


def omitted_count(number: int) -> Html:
    """Render "and 3 more"; nothing if the number is 0 or less."""
    if number <= 0:
        return Html()
    return muted_text(and_more(number))


def note(*contents: object, level: str = "") -> Html:
    """Render a remark. Its level is "bad" for a failure, or "calm" for an explanation."""
    return div(f"note {level}".strip(), *contents)


def iri_link(value: str, label: str, class_: str | None = None) -> Html:
    """Render a label with its IRI as the tooltip; both are shortened.

    It is a link, which opens a new page, if the IRI begins with http:// or https:// and has at most
    MAX_TEXT_CHARS characters. Otherwise it is plain text.
    """
    iri = str(value)  # the startswith of an rdflib URIRef takes no tuple
    text = shorten(label)
    tooltip = shorten(iri)
    is_web_address = iri.startswith(("http://", "https://"))
    if not is_web_address or len(iri) > MAX_TEXT_CHARS:
        return tag("span", text, class_=class_, title=tooltip)
    return tag(
        "a",
        text,
        class_=class_,
        title=tooltip,
        href=iri,
        target="_blank",
        rel="noopener noreferrer",
    )


# Bars and charts


def bar(fraction: float) -> Html:
    """Render a number from 0 to 1 as a bar. A number outside of that is drawn as 0 or 1."""
    width = _percent(max(0.0, min(fraction, 1.0)))
    return span("bar", tag("i", style=f"width:{width}"))


def score_bar(score: float | None) -> Html:
    """Render a score from 0 to 1 as a bar, with the number beside it; None is "not scored"."""
    if score is None:
        return span("soft", "not scored")
    number = span("num", f"{score:.2f}")
    return span("row", span("grow", bar(score)), number)


def _percent(fraction: float) -> str:
    """Return a fraction as a CSS length with one decimal: "12.5%"."""
    return f"{fraction * 100:.1f}%"


class ChartBar(NamedTuple):
    """A bar of a chart, with an interval that is drawn as a line across the end of the bar."""

    label: str
    value: float
    value_text: str
    """The value as people read it; it stands behind the bar."""
    interval_low: float
    interval_high: float
    series: int = 0
    """The number of its series, which decides its colour."""


def bar_chart(title: str, bars: Sequence[ChartBar], max_value: float = 0.0) -> Html:
    """Render a chart with a horizontal bar for each value; nothing if there are no bars.

    A bar over the full width stands for ``max_value``, or for the largest value or end of an
    interval if that is more. The title stands above the bars.
    """
    if not bars:
        return Html()
    ends = [max(each.value, each.interval_high) for each in bars]
    full_line = max(max_value, *ends)

    def percent(value: float) -> str:
        """Return the length of a value in the chart."""
        return _percent(value / (full_line or 1.0))

    return render_template(
        "show/templates/bar_chart.html",
        title=title,
        bars=bars,
        colours=SERIES_CLASSES,
        percent=percent,
    )


# Differences between texts


class AlignedPart(NamedTuple):
    """A part of two lists that were aligned."""

    is_equal: bool
    first: list[str]
    """Its items in the first list."""
    second: list[str]
    """Its items in the second list."""


def align_lists(first: list[str], second: list[str]) -> list[AlignedPart]:
    """Divide two lists into parts that are equal in both, and parts that differ.

    The parts are in order, and together they hold every item of both lists. Equal items at the
    beginning and at the end are found first. What is between them is compared by difflib, or is one
    part that differs if a list has more than MAX_ALIGNED_ITEMS items there. The first and the last
    part are equal in both, and may be empty.
    """
    start = common_prefix_length(first, second)
    first_rest = first[start:]
    second_rest = second[start:]
    end_length = common_prefix_length(first_rest[::-1], second_rest[::-1])
    first_end = len(first) - end_length
    second_end = len(second) - end_length
    first_middle = first[start:first_end]
    second_middle = second[start:second_end]

    common_start = first[:start]
    common_end = first[first_end:]
    return [
        AlignedPart(True, common_start, common_start),
        *_align_middles(first_middle, second_middle),
        AlignedPart(True, common_end, common_end),
    ]


def _align_middles(first: list[str], second: list[str]) -> Iterator[AlignedPart]:
    """Yield the parts of two lists that difflib finds to be equal or to differ, in order.

    If one of the lists has more than MAX_ALIGNED_ITEMS items, they are one part that differs.
    """
    longer = max(len(first), len(second))
    if longer > MAX_ALIGNED_ITEMS:
        yield AlignedPart(False, first, second)
        return
    matcher = SequenceMatcher(None, first, second)
    for operation, start, end, second_start, second_end in matcher.get_opcodes():
        yield AlignedPart(
            is_equal=operation == "equal",
            first=first[start:end],
            second=second[second_start:second_end],
        )


def mark_changed_words(before: str, after: str) -> tuple[Html, Html]:
    """Render two texts, and mark in each the words that the other one does not have.

    They are marked with "del" in the first text, and with "ins" in the second. Each text is marked
    as a whole if the letters and digits of shared words are at most MIN_SHARED_RATIO of the shorter
    text. Spaces and punctuation count as words.
    """
    words_before = _split_words(before)
    words_after = _split_words(after)
    parts = align_lists(words_before, words_after)
    min_shared = MIN_SHARED_RATIO * min(len(before), len(after))
    if before != after and _count_shared_letters(parts) <= min_shared:
        return _mark("del", before), _mark("ins", after)

    old: list[str] = []
    new: list[str] = []
    for part in parts:
        old_text = "".join(part.first)
        new_text = "".join(part.second)
        if part.is_equal:
            old.append(old_text)
            new.append(new_text)
        else:
            old.append(_mark("del", old_text))
            new.append(_mark("ins", new_text))
    return join(*old), join(*new)


def _split_words(text: str) -> list[str]:
    """Return the words of a text and every other character by itself, in order."""
    return re.findall(r"\w+|\W", text)


def _count_shared_letters(parts: Iterable[AlignedPart]) -> int:
    """Return how many letters and digits are in the words of the parts that are equal.

    Other words, such as spaces and punctuation, do not count.
    """
    equal_words = [word for part in parts if part.is_equal for word in part.first]
    return sum(len(word) for word in equal_words if word.isalnum())


def _mark(element: str, text: str) -> Html:
    """Return a text in an element; nothing for an empty text."""
    return tag(element, text) if text else Html()


def render_word_diff(before: str, after: str) -> Html:
    """Render a text before and after a change, each beside its caption, with changed words marked.

    The text after the change is bold.
    """
    old, new = mark_changed_words(before, after)
    return div(
        "kv",
        muted_text("before"),
        span("", old),
        muted_text("after"),
        span("b", new),
    )


def render_line_diff(before: list[str], after: list[str]) -> tuple[int, Html]:
    """Return how many lines differ, and the first MAX_ROWS of them as HTML.

    Lines in the same place of a part that differs stand below each other, with changed words
    marked, and count as one. A line of one list alone has no marks. Each line is cut at
    MAX_COMPARED_CHARS. A note says how many are left out.
    """
    pairs: list[tuple[str | None, str | None]] = []
    for part in align_lists(before, after):
        if not part.is_equal:
            pairs += zip_longest(part.first, part.second)
    rows = []
    for old, new in pairs[:MAX_ROWS]:
        old_line = shorten(old or "", MAX_COMPARED_CHARS)
        new_line = shorten(new or "", MAX_COMPARED_CHARS)
        if old and new:
            old_line, new_line = mark_changed_words(old_line, new_line)
        if old is not None:
            rows.append(tag("del", "- ", old_line, "\n"))
        if new is not None:
            rows.append(tag("ins", "+ ", new_line, "\n"))
    lines = tag("pre", *rows, class_="diff")
    return len(pairs), join(lines, omitted_count(len(pairs) - MAX_ROWS))


def highlight_pattern(text: str, pattern: str, class_: str = "filled") -> Html:
    """Render a text, and mark everything that a regular expression matches.

    The expression must not have groups. An empty one marks nothing.
    """
    if not pattern:
        return safe(text)
    parts: list[str] = []
    for position, piece in enumerate(re.split(f"({pattern})", text)):
        is_match = position % 2 == 1  # texts and matches take turns
        if is_match:
            parts.append(tag("mark", piece, class_=class_))
        else:
            parts.append(piece)
    return join(*parts)


def highlight_words(text: str, words: Iterable[str]) -> Html:
    """Render a text, and mark every whole word that is one of some words, in upper or lower case.

    Words that are blank are ignored; if no others are given, nothing is marked.
    """
    escaped = [re.escape(word) for word in words if word.strip()]
    if not escaped:
        return safe(text)
    any_word = "|".join(escaped)
    pattern = rf"(?i:(?<!\w)(?:{any_word})(?!\w))"
    return highlight_pattern(text, pattern)
