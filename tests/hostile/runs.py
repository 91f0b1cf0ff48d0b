"""Runs in which everything is hostile: question, labels, literals, what the model says; and their pages read.

``Page`` reads HTML as a parser does and complains of all that a harmless run does not show as well.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterator, Sequence
from html.parser import HTMLParser
from itertools import combinations
from typing import Any

import rdflib
from rdflib import RDF, RDFS, Literal, URIRef
from small import chatty, iri, qir

from hostile.corpus import IRIS, PLAIN
from kgwb import open_kg
from kgwb.errors import KgwbError
from kgwb.kg import Graph
from kgwb.llm import ChatRequest, Scripted
from kgwb.run import Run
from kgwb.show.static_form import VOID_ELEMENTS
from kgwb.text import remove_controls, shorten

EACH = 8
"""Texts that one run is made of."""


def graph(texts: Sequence[str], link: str = "http://example.org/link") -> Graph:
    """Two films of one name, a director, and a literal: every label, description and value is hostile."""
    made, director = rdflib.Graph(), iri("director")
    film, other, person = iri("film"), URIRef(link), iri("person")
    for subject, predicate, object_ in (
        (film, RDFS.label, Literal(texts[0])),
        (other, RDFS.label, Literal(texts[0])),
        (film, RDF.type, iri("Film")),
        (other, RDF.type, iri("Novel")),
        (film, RDFS.comment, Literal(texts[1])),
        (other, RDFS.comment, Literal(texts[3])),
        (film, director, person),
        (film, director, other),
        (film, director, Literal(texts[2])),
        (film, director, Literal(texts[5], lang="ar")),
        (other, iri("about"), film),
        (person, RDFS.label, Literal(texts[4])),
        (iri("Film"), RDFS.label, Literal(texts[5])),
        (iri("Novel"), RDFS.label, Literal(texts[2])),
        (director, RDFS.label, Literal(texts[6])),
    ):
        made.add((subject, predicate, object_))
    return open_kg(made)


def hostile_run(texts: Sequence[str], number: int = 0, **options: Any) -> Run:
    """A run that went as far as it could: question, graph and model say nothing but these texts."""
    model = Scripted(lambda request: parrot(request, texts))
    kg = graph(texts, IRIS[number % len(IRIS)])
    run = chatty(f"{texts[7]} {texts[0]} ?", model, kg, **options)
    try:
        run.go()
    except KgwbError:
        assert run.error
    return run


def parrot(request: ChatRequest, texts: Sequence[str]) -> dict[str, Any]:
    """Answers every task in its form, in hostile words."""
    said = request.variables
    match request.task.rpartition("/")[2]:
        case "qir":
            facts = [(texts[0], texts[6], "?x"), (texts[4], texts[3], "?x")][
                : 1 + len(texts[0]) % 2
            ]
            triples = [
                {"subject": s.lstrip("? ") or "x", "predicate": p.strip() or "p", "object": o}
                for s, p, o in facts
            ]
            form = qir(target="?x")
            return {**form, "entities": [texts[0]], "unknowns": [texts[1]], "triples": triples}
        case "vertex_selection":
            return {"reason": texts[3], "number": 1, "label": said["candidates"][0]["label"]}
        case "predicate_selection":
            return {
                "reasoning": texts[2],
                "predicates": [
                    [offered["name"] for offered in one["predicates"]] for one in said["relations"]
                ],
            }
        case "answer_writer":
            return {"sentence": f"{texts[1]} {' '.join(said['answer'])}"}
    return {"question": texts[7]}


def bundles(texts: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """The texts, EACH at a time; the last ones are repeated."""
    for start in range(0, len(texts), EACH):
        yield tuple((*texts[start : start + EACH], *texts[:EACH])[:EACH])


HARMLESS = (
    tuple(f"{text} {number}" for number, text in enumerate((*PLAIN[:7], *PLAIN[:9])))
    + ("A-b.c, d/e: f!",) * EACH
    + ("A-b.c, d/e: f",) * EACH  # of an odd length, so that there are two facts
)


LONG_TEXTS = ("(" * 5_000, "(" * 5_001)
"""Texts that no label is searched for, so that they are looked for among the values."""


def bundles_with_long_texts() -> Iterator[tuple[str, ...]]:
    """Harmless texts, of which one, two, three or all are too long to be searched for."""
    for count in (1, 2, 3, EACH):
        for places in combinations(range(EACH), count):
            for start, text in enumerate(LONG_TEXTS):
                bundle = list(HARMLESS[start : start + EACH])
                for place in places:
                    bundle[place] = text
                yield tuple(bundle)


PICTURE = "data:image/svg+xml;base64,"
"""How the address of a picture begins that a page holds itself."""


class Page(HTMLParser):
    """What a parser finds in HTML."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.parts: set[tuple[str, str]] = set()
        """Elements with their attributes."""
        self.odd: list[str] = []
        """What must not be, whatever a harmless page shows."""
        self.styles: set[str] = set()
        self._said: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        if self._open:
            self.odd.append(f"not closed: {self._open}")

    @property
    def text(self) -> str:
        """All that is read, white space as single spaces."""
        return plain("".join(self._said))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID_ELEMENTS:
            self._open.append(tag)
        self.parts |= {(tag, ""), *((tag, name) for name, _ in attrs)}
        for name, value in attrs:
            if tag == "img" and name == "src" and str(value).startswith(PICTURE):
                picture = Page(b64decode(str(value).removeprefix(PICTURE)).decode())
                self.odd += picture.odd
                continue
            if name.startswith("on") or name in (
                "src",
                "srcdoc",
                "action",
                "formaction",
                "xlink:href",
            ):
                self.odd.append(f"{tag} {name}={value}")
            if name == "href" and not re.match(r"https?://", value or ""):
                self.odd.append(f"a link to {value}")
            if name == "style" and re.search(r"url|expression|import|[<>@\\]", value or ""):
                self.odd.append(f"a style {value}")
            if name in ("title", "href"):
                self._said.append(f" {value} ")

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open.pop() != tag:
            self.odd.append(f"</{tag}> out of place")

    def handle_data(self, data: str) -> None:
        if self._open[-1:] == ["style"]:
            self.styles.add(data)
        else:
            self._said.append(data)

    def handle_comment(self, data: str) -> None:
        self.odd.append(f"a comment: {data}")

    handle_decl = handle_pi = unknown_decl = handle_comment


def plain(text: str) -> str:
    """A text with single spaces."""
    return " ".join(text.split())


def as_shown(text: str) -> str:
    """What of a text a person may see: all of its beginning, but nothing that acts."""
    return plain(remove_controls(shorten(text)))[:250]
