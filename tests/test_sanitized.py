"""What GitHub, Colab and VS Code leave of the HTML in a notebook still reads well.

GitHub renders the HTML of an output without styles, classes, scripts, forms and inline pictures. Colab shows it in a
frame of its own, with styles and without a kernel. VS Code shows it with styles, once the notebook is trusted. So
GitHub's way is the poorest: what reads well there reads well in all three.
"""

from __future__ import annotations

import re
from html import escape
from html.parser import HTMLParser

import pytest

import kgwb
from kgwb.show.comparison import to_html
from kgwb.show.static_form import make_static
from kgwb.ui.live import Live

KEPT = frozenset(
    "a b bdi br caption code dd del details div dl dt em h1 h2 h3 h4 hr i img ins kbd li mark ol p pre s span strong "
    "sub summary sup table tbody td th thead tr ul".split()
)
"""Elements that GitHub keeps; of the others the contents stay, but not those of GONE."""
GONE = frozenset({"script", "style", "svg", "math", "iframe", "button", "input", "textarea"})
"""Elements that are left out with their contents."""
KEPT_ATTRIBUTES = frozenset({"alt", "src", "href", "title", "width", "open"})
VOID = frozenset({"br", "hr", "img", "input"})
BLOCKS = frozenset("br div li tr p pre h2 h3 table ul ol details summary dd dt".split())


class Sanitizer(HTMLParser):
    """Reads HTML and keeps what GitHub keeps."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.kept: list[str] = []
        self.words: list[str] = []
        self.pictures: list[str] = []
        self._gone_depth = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in GONE:
            self._gone_depth += tag not in VOID
        if self._gone_depth or tag not in KEPT:
            return
        if tag in BLOCKS:
            self.words.append("\n")
        if tag in ("td", "th"):
            self.words.append(" | ")
        attributes = "".join(
            f' {name}="{escape(value or "")}"' for name, value in attrs if name in KEPT_ATTRIBUTES
        )
        self.kept.append(f"<{tag}{attributes}>")
        if tag == "img":
            self.pictures.append(dict(attrs).get("alt") or "")

    def handle_endtag(self, tag: str) -> None:
        if tag in GONE and tag not in VOID:
            self._gone_depth -= 1
        elif not self._gone_depth and tag in KEPT and tag not in VOID:
            self.kept.append(f"</{tag}>")
            if tag in BLOCKS:
                self.words.append("\n")

    def handle_data(self, data: str) -> None:
        if not self._gone_depth:
            self.kept.append(escape(data))
            self.words.append(data)

    @property
    def text(self) -> str:
        """The words as a reader sees them, spaces and breaks as one space each."""
        return " ".join("".join(self.words).split())


@pytest.fixture(scope="module")
def workbench() -> kgwb.Workbench:
    made = kgwb.Workbench(kgwb.open_kg("films"), "rules")
    made.ask("Who is the author of Harry Potter?")
    made.ask("When was its first movie released?")
    return made


def sanitized(shown: Live | object) -> Sanitizer:
    """What is left of the HTML of a widget or a record."""
    markup = shown.static_html() if isinstance(shown, Live) else to_html(shown)
    sanitizer = Sanitizer()
    sanitizer.feed(markup)
    sanitizer.close()
    return sanitizer


def test_a_run_reads_as_sentences(workbench: kgwb.Workbench) -> None:
    text = sanitized(workbench.runs[-1]).text
    assert "Harry Potter — first movie → Harry Potter and the Philosopher's Stone" in text
    assert text.index("2001-11-16") < text.index("translator") < text.index("execution")


def test_every_widget_keeps_its_words_apart_and_has_no_button(workbench: kgwb.Workbench) -> None:
    run = workbench.runs[-1]
    shown = {
        "debugger": workbench.debug(),
        "chat": workbench.chat(),
        "cell": workbench.cell("qir"),
        "comparison": kgwb.compare(run, run.fork(settings=kgwb.profile("paper")).go()),
    }
    for name, widget in shown.items():
        left = sanitized(widget)
        assert left.text, name
        assert not re.search(r"Continue|Try once|Reword", left.text), name
        run_together = re.findall(r"\b(?:Answered|done|live)(?=[A-Za-z])\w+", left.text)
        assert run_together == [], name


def test_the_picture_of_a_graph_is_an_image_with_its_triples_as_text(
    workbench: kgwb.Workbench,
) -> None:
    left = sanitized(workbench.subgraph())
    [told] = left.pictures
    assert "Harry Potter (Harry_Potter) — first movie → " in told
    assert "<table>" in "".join(left.kept)


def test_an_input_that_is_left_out_takes_nothing_after_it_along() -> None:
    assert make_static('<p><input class="btn"><b>kept</b></p>') == "<p><b>kept</b></p>"
