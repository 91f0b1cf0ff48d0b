"""The HTML of a widget for where no kernel answers, and perhaps no style sheet is.

An untrusted notebook in JupyterLab, and a notebook on GitHub, show HTML without ``<style>`` and
``<svg>``. What stands there reads well all the same: words apart, no button that nobody answers,
lists and tables, and a picture as an image.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from functools import cache
from html import escape, unescape
from pathlib import Path
from typing import NamedTuple

TOKEN = re.compile(r"<[^>]*>|[^<]+")
"""A tag or a text. Attributes of kgwb's HTML have no ">" in them, since it is escaped."""
TAG_NAME = re.compile(r"</?([A-Za-z][\w-]*)")
ATTRIBUTE = re.compile(r'\s([\w-]+)(?:="([^"]*)")?')
DROPPED_CLASSES = frozenset({"btn", "controls", "gut", "keys", "ask"})
"""Classes of elements that only serve to do something."""
DROPPED_ELEMENTS = frozenset({"iframe", "select"})
ELEMENTS_INSTEAD = {"button": "span", "form": "div", "textarea": "pre"}
"""The elements that stand in place of those that a person presses or types into."""
KEPT_ATTRIBUTES = frozenset({"class", "style", "title"})
"""Attributes of those elements that mean something elsewhere."""
NEEDLESS_ATTRIBUTES = frozenset({"id", "rel", "target"})
"""Attributes that are dropped from every element.

Ids come again in the next output of the same page. How a link is opened is decided by what shows the
notebook, which also says where it leads: so a title that is the address is dropped, too.
"""
TEXT_ELEMENTS = frozenset({"pre", "textarea"})
"""Elements in which a space is a part of the text."""
BLOCK_ELEMENTS = frozenset({"details", "div", "li", "summary", "table", "tr"})
"""Elements that begin on a line of their own, without a style sheet too."""
VOID_ELEMENTS = frozenset({"br", "img", "input"})
"""Elements that have no content and no end tag."""
SVG_NAMESPACE = "http://www.w3.org/2000/svg"
TITLE = re.compile(r"<title>(.*?)</title>", re.DOTALL)
DESCRIPTION = re.compile(r"<desc>(.*?)</desc>", re.DOTALL)
ICON = (
    rf"""url("data:image/svg+xml,<svg xmlns='{SVG_NAMESPACE}' viewBox='0 0 16 16' fill='none' """
    r"""stroke='black' stroke-width='1.7' stroke-linecap='round' stroke-linejoin='round'>"""
    r"""<path d='\1'/></svg>")"""
)
"""What stands in the style sheet for ``icon("PATH")``: the path as a picture."""
MAX_WIDTH = re.compile(r"max-width:(\d+)px")
LEAST_SIZE = re.compile(r"(min-width:\d+px;max-height:\d+px)")
SIZE = re.compile(r'viewBox="0 0 (\d+) (\d+)"')


class Tag(NamedTuple):
    """A start tag of HTML."""

    name: str
    attributes: dict[str, str]
    """Values as they are written, so with escapes."""

    @property
    def classes(self) -> frozenset[str]:
        """The class names of the element."""
        names = self.attributes.get("class", "")
        return frozenset(names.split())

    @property
    def is_dropped(self) -> bool:
        """Whether the element is left out of the static form, with all that is in it.

        That is so for DROPPED_ELEMENTS, DROPPED_CLASSES, pages of their own, and tabs that are not
        selected, because nobody can select them.
        """
        if self.name in DROPPED_ELEMENTS or self.classes & DROPPED_CLASSES:
            return True
        if "data-page" in self.attributes:
            return True
        is_tab = self.attributes.get("role") == "tab"
        return is_tab and self.attributes.get("aria-selected") != "true"


def make_static(markup: str) -> str:
    """Return a section of kgwb's HTML as it stands where no kernel is.

    What a person would press or type into is gone, or text. Pictures are images. Between two
    elements there is a space.
    """
    return "".join(_Rewriter(markup).pieces())


class _Rewriter:
    """Reads the tokens of a section one after another, and writes what stands in their place."""

    def __init__(self, markup: str) -> None:
        self._tokens = TOKEN.findall(markup)
        self._position = 0
        self._open: list[Tag] = []
        """The elements around the present position, the outermost first."""

    def pieces(self) -> Iterator[str]:
        """Yield the pieces of the static form: texts as they are, elements rewritten.

        A blank is put between two elements where their words would run together without a style
        sheet.
        """
        previous = ""
        while self._position < len(self._tokens):
            token = self._tokens[self._position]
            if self._needs_space(previous, token):
                yield " "
            if not token.startswith("<"):
                self._position += 1
                yield token
            elif token.startswith("</"):
                self._position += 1
                yield _end_tag(self._open.pop())
            else:
                yield self._rewrite_element(token)
            previous = token

    def _needs_space(self, previous: str, token: str) -> bool:
        """Return whether an inline element begins right after the end of another element.

        False inside of preformatted text, where a blank would show.
        """
        name = _element_name(token)
        is_between = previous.startswith("</") and not token.startswith("</")
        if not is_between or not name or name in BLOCK_ELEMENTS:
            return False
        return not any(tag.name in TEXT_ELEMENTS for tag in self._open)

    def _rewrite_element(self, token: str) -> str:
        """Return the static form of the element at ``token``, and move the position on.

        A dropped element gives "", and a picture or an input is replaced whole; the position is
        then behind it. Of any other element only the start tag is returned, and the element is put
        on the stack of open ones.
        """
        tag = Tag(_element_name(token), dict(ATTRIBUTE.findall(token)))
        if tag.is_dropped:
            self._take_element()
            return ""
        if tag.name == "svg":
            return _as_image(self._take_element())
        self._position += 1
        if tag.name == "input":
            return _typed_text(tag)
        if tag.name not in VOID_ELEMENTS:
            self._open.append(tag)
        return _start_tag(tag)

    def _take_element(self) -> str:
        """Return the element at the present position, and move behind it."""
        start = self._position
        self._position = _element_end(self._tokens, start)
        return "".join(self._tokens[start : self._position])


def _element_name(token: str) -> str:
    """Return the name of the element that a start or end tag names; "" for a text."""
    match = TAG_NAME.match(token)
    return match[1] if match else ""


def _element_end(tokens: list[str], start: int) -> int:
    """Return the position after the end tag of the element that begins at ``start``.

    Elements of the same name inside it are skipped. Without an end tag it is the end of the tokens.
    """
    name = _element_name(tokens[start])
    if name in VOID_ELEMENTS:
        return start + 1
    depth = 0
    for position in range(start, len(tokens)):
        token = tokens[position]
        if _element_name(token) != name:
            continue
        depth += -1 if token.startswith("</") else 1
        if depth == 0:
            return position + 1
    return len(tokens)


def _start_tag(tag: Tag) -> str:
    """Return a start tag without the attributes that send events.

    An element of ELEMENTS_INSTEAD is replaced by another one.
    """
    name = ELEMENTS_INSTEAD.get(tag.name, tag.name)
    is_replaced = name != tag.name
    kept = ""
    for key, value in tag.attributes.items():
        if key.startswith("data-") and key != "data-static":
            continue
        if key in NEEDLESS_ATTRIBUTES or (key == "title" and value == tag.attributes.get("href")):
            continue
        if is_replaced and key not in KEPT_ATTRIBUTES:
            continue
        kept += f' {key}="{value}"'
    return f"<{name}{kept}>"


def _typed_text(tag: Tag) -> str:
    """Return what was typed into a field of one line; "" for any other kind of input."""
    if tag.attributes.get("type", "text") != "text":
        return ""
    return tag.attributes.get("value", "")


def _end_tag(tag: Tag) -> str:
    """Return the end tag of an element, or of the one that replaces it."""
    name = ELEMENTS_INSTEAD.get(tag.name, tag.name)
    return f"</{name}>"


# Pictures


def _as_image(svg: str) -> str:
    """Return an img element for an SVG picture; its alt text is the title and description.

    The size limits of the picture are kept.
    """
    texts = filter(None, (_first_group(TITLE, svg), _first_group(DESCRIPTION, svg)))
    text = escape(". ".join(texts), quote=True)
    box = ""
    size = SIZE.search(svg)
    if size:
        width, height = size.groups()
        box = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    namespace = f'xmlns="{SVG_NAMESPACE}"'
    style = f"<style>{_picture_style()}</style>"
    document = f'<svg {namespace} class="kg" {box}>{style}{svg}</svg>'
    data = base64.b64encode(document.encode()).decode()
    shown_width = ""
    for name, pattern in (("width", MAX_WIDTH), ("style", LEAST_SIZE)):
        limit = _first_group(pattern, svg)
        if limit:
            shown_width += f' {name}="{limit}"'
    source = f"data:image/svg+xml;base64,{data}"
    return f'<img class="picture"{shown_width} alt="{text}" src="{source}">'


def _first_group(pattern: re.Pattern[str], text: str) -> str:
    """Return the first group of a pattern's first match, unescaped; "" without a match."""
    match = pattern.search(text)
    return unescape(match[1]) if match else ""


@cache
def load_style() -> str:
    """Return the style sheet of all views with its icons, without comments and needless spaces."""
    file = Path(__file__).with_name("look.css")
    text = file.read_text(encoding="utf-8")
    without_comments = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    dense = re.sub(r"\s*([{};,])\s*|(?<=:)\s+|\n", r"\1", without_comments)
    return re.sub(r'icon\("(.*?)"\)', ICON, dense)


@cache
def _picture_style() -> str:
    """Return the CSS rules for pictures as escaped text, with the colours of the light theme.

    They are read from the style sheet once.
    """
    text = load_style()
    light_theme, _, _ = text.partition("container:")
    colours = "".join(re.findall(r"--[\w-]+:[^;{}]+;", light_theme))
    rules = ""
    for rule in re.findall(r"[^{}]*\{[^{}]*\}", text):
        stripped = rule.strip()
        selector, _, declarations = stripped.partition("{")
        is_class = re.fullmatch(r"\.kg \.\w+", selector) is not None
        is_state = is_class and declarations.startswith("--c")
        if is_state or "svg.graph" in selector:
            rules += stripped
    style = f".kg{{color-scheme:light;{colours}}}{rules}"
    return escape(re.sub(r"\s+", " ", style), quote=False)
