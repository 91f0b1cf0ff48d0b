"""HTML that cannot be broken out of: whatever is not ``Html`` already is escaped on its way in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from kgwb.errors import harmless

MOST_ROWS = 60
"""Rows of a table that are shown; the last line says how many more there are."""
MOST_LETTERS, MOST_TEXT = 300, 50_000
"""Letters shown of a label or literal, and of any text; where there are more, their number is said."""

LETTER_FOR_LETTER = "tex2jax_ignore mathjax_ignore"
"""Classes of what MathJax leaves alone, version 2 (nbconvert's pages) and 3 (JupyterLab, Notebook, Voila)."""

# Colours come from JupyterLab's theme; without one from the page around it, so that dark pages stay dark.
STYLE = """
.kgwb-record { color: var(--jp-ui-font-color1, inherit); font-size: var(--jp-ui-font-size1, 13px);
  line-height: 1.45; padding-left: 6px; overflow-x: auto }
.kgwb-record :is(a, b, bdi, del, ins, mark, span, summary, td, th) { unicode-bidi: isolate }
.kgwb-record .kgwb-aside { color: var(--jp-ui-font-color2, inherit) }
.kgwb-record .kgwb-answer { font-size: 1.25em; font-weight: 600; margin: .2em 0 .4em }
.kgwb-record .kgwb-badge { border: 1px solid var(--jp-border-color1, rgba(128,128,128,.5));
  border-radius: 3px; padding: 0 .35em; margin-left: .4em; font-size: .9em; white-space: nowrap }
.kgwb-record .kgwb-good { border-left: 3px solid var(--jp-success-color1, #2e9e44); padding-left: .4em }
.kgwb-record .kgwb-bad { border-left: 3px solid var(--jp-error-color1, #d64545); padding-left: .4em }
.kgwb-record .kgwb-note { border-left: 3px solid var(--jp-info-color1, #5c9fd6); padding-left: .4em }
.kgwb-record details { margin: .15em 0 .15em 1.1em }
.kgwb-record summary { cursor: pointer; margin-left: -1.1em; overflow-wrap: anywhere }
.kgwb-record .kgwb-table { border-collapse: collapse; margin: .3em 0; font-size: inherit; width: auto }
.kgwb-record .kgwb-table th, .kgwb-record .kgwb-table td { text-align: left; vertical-align: top;
  border: 1px solid var(--jp-border-color2, rgba(128,128,128,.35)); padding: .15em .6em;
  white-space: normal; overflow-wrap: break-word; max-width: 42em }
.kgwb-record .kgwb-table th { background: var(--jp-layout-color2, rgba(128,128,128,.14)); font-weight: 600 }
.kgwb-record .kgwb-table .kgwb-chosen td:nth-child(-n+3) { font-weight: 600 }
.kgwb-record div pre.kgwb-pre, .kgwb-record pre.kgwb-pre {
  background: var(--jp-layout-color2, rgba(128,128,128,.14)); color: inherit;
  border: 1px solid var(--jp-border-color2, rgba(128,128,128,.35));
  padding: .4em .6em; margin: .2em 0; white-space: pre-wrap; word-break: normal; overflow-wrap: anywhere;
  max-height: 40em; overflow: auto;
  font-family: var(--jp-code-font-family, monospace); font-size: var(--jp-code-font-size, 12px) }
.kgwb-record .kgwb-bar { display: inline-block; height: .7em; margin-right: .4em; vertical-align: baseline;
  background: var(--jp-brand-color1, #3b82c4) }
.kgwb-record .kgwb-iri { font-size: .92em; overflow-wrap: anywhere;
  color: var(--jp-content-link-color, inherit) }
.kgwb-record .kgwb-whole { display: inline-block; min-width: 18em }
.kgwb-record pre .kgwb-iri { font-size: inherit }
.kgwb-record .kgwb-keyword { font-weight: 600; color: var(--jp-mirror-editor-keyword-color, inherit) }
.kgwb-record .kgwb-variable { font-style: italic; color: var(--jp-mirror-editor-variable-2-color, inherit) }
.kgwb-record .kgwb-literal { color: var(--jp-mirror-editor-string-color, inherit) }
.kgwb-record .kgwb-entity { border: 1px solid var(--jp-border-color1, rgba(128,128,128,.5)); padding: 0 .3em }
.kgwb-record .kgwb-said { border: 1px solid var(--jp-border-color1, rgba(128,128,128,.5));
  border-radius: 6px; padding: .2em .6em; margin: .4em 0; width: fit-content; max-width: min(100%, 52em) }
.kgwb-record .kgwb-said.kgwb-now { border-width: 2px; border-color: var(--jp-brand-color1, #1565c0) }
.kgwb-record .kgwb-turn-1 { margin-left: 2em }
.kgwb-record .kgwb-turn-2 { margin-left: 4em }
.kgwb-record .kgwb-label { margin-left: 0; font-weight: 600 }
.kgwb-record .kgwb-picture { display: block; max-width: 100%; height: auto; margin: .4em 0;
  font-family: inherit; fill: var(--jp-ui-font-color1, #212121) }
.kgwb-record del { text-decoration: line-through; color: var(--jp-error-color1, #d64545) }
.kgwb-record ins { text-decoration: underline; text-decoration-thickness: 2px; font-weight: 600;
  color: var(--jp-success-color1, #2e9e44) }
.kgwb-record mark { color: inherit; background: none; font-weight: 600;
  border-bottom: 2px solid var(--jp-warn-color1, #b26a00) }
"""


class Html(str):
    """Markup that is safe to show."""

    __slots__ = ()


def safe(content: object) -> Html:
    """Markup as it is; the text of anything else, escaped, of at most MOST_TEXT letters and harmless."""
    if isinstance(content, Html):
        return content
    return Html(escape(harmless(short(str(content), MOST_TEXT)), quote=True))


def short(text: str, most: int = MOST_LETTERS) -> str:
    """A text, or its beginning with its length: "Once upon a time… (1,000,000 letters)"."""
    return text if len(text) <= most else f"{text[:most]}… ({len(text):,} letters)"


def tag(name: str, *contents: object, **attributes: object) -> Html:
    """An element; ``class_`` is the attribute class, ``text_anchor`` text-anchor. All values are escaped."""
    told = ""
    for key, value in attributes.items():
        shown = round(value, 1) if isinstance(value, float) else value
        told += f' {key.rstrip("_").replace("_", "-")}="{safe(shown)}"'
    return Html(f"<{name}{told}>{join(*contents)}</{name}>")


def join(*contents: object) -> Html:
    """Contents one after another."""
    return Html("".join(map(safe, contents)))


def page(*contents: object) -> Html:
    """Contents with the style they need, in a scope of their own."""
    return body(Html(f"<style>{STYLE}</style>"), *contents)


def body(*contents: object, class_: str = "") -> Html:
    """Contents in the scope of the style, which ``page`` or a panel brings; no text is taken for TeX."""
    return tag("div", *contents, class_=f"kgwb-record {LETTER_FOR_LETTER} {class_}".strip())


def fold(summary: object, *contents: object, unfolded: bool = False) -> Html:
    """A summary that opens; only the summary if there is nothing in it."""
    if not any(contents):
        return tag("div", summary)
    opened = {"open": ""} if unfolded else {}
    return tag("details", tag("summary", summary), *contents, **opened)


def table(heads: Sequence[str], rows: Iterable[Sequence[object]], *, chosen: int = -1, of: int = 0) -> Html:
    """A table of at most MOST_ROWS rows; the row ``chosen`` stands out. Nothing if there are no rows.

    ``of`` is how many there are where ``rows`` are only the first of them.
    """
    rows = list(rows)
    if not rows:
        return Html()
    shown = [tag("tr", *(tag("th", text) for text in heads))]
    for number, row in enumerate(rows[:MOST_ROWS]):
        class_ = "kgwb-chosen" if number == chosen else "kgwb-row"
        shown.append(tag("tr", *(tag("td", cell) for cell in row), class_=class_))
    left = max(of, len(rows)) - MOST_ROWS
    return join(tag("table", *shown, class_="kgwb-table"), aside(f"and {left:,} more") if left > 0 else "")


def preformatted(text: object) -> Html:
    """A text with its line ends and spaces kept."""
    return tag("pre", text, class_="kgwb-pre")


def aside(text: object) -> Html:
    """A text that stands back."""
    return tag("span", text, class_="kgwb-aside")


def badges(texts: Iterable[str]) -> Html:
    """Short texts, each in a frame."""
    return join(*(tag("span", text, class_="kgwb-badge") for text in texts))


def bar(share: float) -> Html:
    """A number from 0 to 1 as a bar, with the number beside it."""
    width = f"width: {max(0.0, min(share, 1.0)) * 6:.2f}em"
    return join(tag("span", class_="kgwb-bar", style=width), f"{share:.3f}")


def iri(value: str, label: str = "") -> Html:
    """An IRI, as a link if a browser can follow it."""
    value = str(value)  # rdflib's own startswith takes no tuple
    told = {"class_": "kgwb-iri" if label else "kgwb-iri kgwb-whole", "title": short(value)}
    text = short(label or value)
    if not value.startswith(("http://", "https://")) or len(value) > MOST_TEXT:
        return tag("span", text, **told)
    return tag("a", text, **told, href=value, target="_blank", rel="noopener noreferrer")
