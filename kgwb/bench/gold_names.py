"""Gold texts that are names of things in the graph: a system that answers with the thing scores 0 by them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from unicodedata import normalize

from kgwb.bench.questions import BenchQuestion, find_query_answers
from kgwb.bench.values import is_iri
from kgwb.errors import GraphError
from kgwb.kg.base import Graph
from kgwb.text import and_more, list_first, pluralize

MAX_SHOWN_NAMES = 3
"""Gold texts that are shown with their things."""
NAMED_GOLD_HINT = (
    "write the IRI of the thing that is meant in the question file; keep the text if the text itself "
    "is asked for"
)
BOOLEANS = ("true", "false")


@dataclass(frozen=True, slots=True)
class NamedGold:
    """A gold text that is the name of a thing, or of several, in the graph."""

    id: str
    """That of the question."""
    text: str
    iris: tuple[str, ...]
    """The things with this name. Of several, the text does not say which is meant."""


def find_named_gold(questions: Iterable[BenchQuestion], kg: Graph) -> list[NamedGold]:
    """Return the gold texts of the questions that are exactly the name of a thing in the graph.

    A right answer with the thing is not equal to such a gold. Looked at are gold answers that the
    question set has. Texts without a letter, such as numbers, are no names here, nor is a text that
    the question's gold query gives. Empty if the graph cannot be asked.
    """
    texts_by_id: dict[str, list[str]] = {}
    queries: dict[str, str | None] = {}
    for question in questions:
        texts = [text for text in question.answers or () if _may_be_name(text)]
        if texts:
            texts_by_id[question.id] = texts
            queries[question.id] = question.sparql
    if not texts_by_id:
        return []
    all_texts = set(chain.from_iterable(texts_by_id.values()))
    try:
        things = _find_things(all_texts, kg)
    except GraphError:
        return []
    found = []
    for id_, texts in texts_by_id.items():
        named = [text for text in texts if text in things]
        if not named:
            continue
        given_by_query = find_query_answers(queries[id_], kg)
        for text in named:
            if text not in given_by_query:
                found.append(NamedGold(id_, text, things[text]))
    return found


def _may_be_name(text: str) -> bool:
    """Return whether a gold value may be a name: it is no IRI and no boolean, and has a letter."""
    has_letter = any(map(str.isalpha, text))
    return has_letter and text not in BOOLEANS and not is_iri(text)


def _find_things(texts: Iterable[str], kg: Graph) -> dict[str, tuple[str, ...]]:
    """Return the things whose display name is exactly a text, by the text. Others are left out."""
    vertices_by_text = kg.exact(sorted(texts))
    vertices = set(chain.from_iterable(vertices_by_text.values()))
    names = kg.names(sorted(vertices))
    things = {}
    for text, candidates in vertices_by_text.items():
        wanted = normalize("NFC", text)
        iris = [str(iri) for iri in candidates if normalize("NFC", names[iri]) == wanted]
        if iris:
            things[text] = tuple(iris)
    return things


def describe_named_gold(found: Sequence[NamedGold], places: Mapping[str, str]) -> str:
    """Return what is wrong with gold texts that are names, as a sentence with the first of them.

    ``places`` says where a question stands in its file, by its id: "line 6".
    """
    questions = pluralize(len({named.id for named in found}), "question")
    verb = "has" if questions.startswith("1 ") else "have"
    examples = []
    for named in found[:MAX_SHOWN_NAMES]:
        place = places.get(named.id)
        where = f"{named.id} ({place})" if place else named.id
        things = list_first([f"<{iri}>" for iri in named.iris], MAX_SHOWN_NAMES)
        number = "" if len(named.iris) == 1 else f"{len(named.iris)} things, "
        examples.append(f"{where}: {named.text!r} is {number}{things}")
    shown = "; ".join(examples)
    more = and_more(len(found) - MAX_SHOWN_NAMES)
    if more:
        shown += f"; {more}"
    return (
        f"{questions} {verb} a text as gold that is the name of a thing in the graph, so that an answer "
        f"with the thing is wrong: {shown}"
    )
