"""What the names in a question mean in the graph, and whether that is clear."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from rdflib import Literal, URIRef

from kgwb.kg.base import Graph
from kgwb.kg.label_search import normalize
from kgwb.kg.queries import find_exact_values
from kgwb.llm.rules.conditions import (
    NON_CONTENT_WORDS,
    YEAR,
)
from kgwb.llm.rules.predicates import (
    Vertices,
    fetch_class_names,
    with_superclasses,
)
from kgwb.llm.rules.words import (
    Mention,
    Mentions,
    are_kin,
    find_mentions,
    kept_by_graph,
    tokenize,
)
from kgwb.terms import Term
from kgwb.text import shorten

MAX_PARTIAL_MATCHES = 3
"""How many labels are looked at that may begin or end with a name."""
MAX_TIED_LABELS = 5
"""How many labels that have the words of a name are compared."""
MAX_CHOICE_CHARS = 80
"""Letters of a label that a reason shows."""
NICKNAME = "nickname"
"""A word that is kin of the predicates that lead to other names of a thing."""


def find_named(question: str, kg: Graph | None) -> Mentions:
    """Return the names in a question, each with the words beside it that say its class.

    "The Polar Carrier ship" and "purchase order 12" are names with their classes. A thing that is
    called by another name of it has its label. They are kept for the questions asked last.
    """
    return find_mentions(question, kg) if kg is None else _find_named(kg, question)


@kept_by_graph
def _find_named(kg: Graph, question: str) -> Mentions:
    """Return the names in a question with the words for their classes."""
    words = [token.lowercase for token in tokenize(question)]
    named = []
    year = "".join(YEAR.findall(question)[:1])
    for mention in [_with_label(each, year, kg) for each in find_mentions(question, kg)]:
        after = words[mention.end : mention.end + 1]
        before = words[: mention.start]
        if NON_CONTENT_WORDS.issuperset([*before[-1:], *after]):
            named.append(mention)
            continue
        vertices = find_vertices([mention], kg).get(mention, ())
        names = with_superclasses(kg, fetch_class_names(kg, vertices))
        classes = [normalize(name).split() for name in names]
        sizes = [len(each) for each in classes if len(each) > 1 and before[-len(each) :] == each]
        is_said_after = any(after == each[-1:] for each in classes)
        start, end = mention.start - max(sizes, default=0), mention.end + is_said_after
        named.append(Mention(start, end, mention.text))
    return tuple(named)


def _with_label(mention: Mention, year: str, kg: Graph) -> Mention:
    """Return a name with the label of the only thing that has it as its nickname or alias, by the predicate's name."""
    if kg.exact([mention.text]):
        return mention
    of_year = []
    for hit in kg.search(f"{mention.text} {year}", MAX_PARTIAL_MATCHES).hits if year else ():
        if year in hit.label and mention.text in hit.label:
            of_year.append(hit.label)
    if len(of_year) == 1:
        return mention._replace(text=of_year[0])
    spellings = [mention.text, f"the {mention.text}", f"The {mention.text}"]
    subjects: set[URIRef] = set()
    for match in find_exact_values(kg, spellings):
        if are_kin(NICKNAME, normalize(kg.names([match.predicate])[match.predicate])):
            subjects.update(match.subjects)
    labels = list(kg.names(sorted(subjects)).values())
    is_clear = len(labels) == 1 and len(kg.exact(labels).get(labels[0], ())) == 1
    return mention._replace(text=labels[0]) if is_clear else mention


def are_texts(vertices: Vertices) -> bool:
    """Return whether these are texts or numbers of the graph, and no things."""
    return bool(vertices) and all(isinstance(vertex, Literal) for vertex in vertices)


def find_vertices(mentions: Mentions, kg: Graph) -> dict[Mention, Vertices]:
    """Return the vertices of each name that the graph has, by name.

    They are those with the name as their label, else the values that are this text, else those with
    a label that begins or ends with it. Names that are not found are left out.
    """
    if not mentions:
        return {}
    exact = kg.exact([mention.text for mention in mentions])
    vertices_of: dict[Mention, Vertices] = {}
    for mention in mentions:
        vertices: Collection[Term] = exact.get(mention.text, ())
        vertices = vertices or [each.value for each in find_exact_values(kg, [mention.text])]
        vertices = vertices or _find_partial_matches(mention.text, kg)
        if vertices:
            vertices_of[mention] = tuple(dict.fromkeys(vertices))
    return vertices_of


def _find_partial_matches(name: str, kg: Graph) -> list[URIRef]:
    """Return the vertices whose labels begin or end with the words of a name.

    They are among the first MAX_PARTIAL_MATCHES hits of a label search. Letter case and punctuation
    do not count. The order is that of the hits.
    """
    words = f" {normalize(name)} "
    vertices = []
    for hit in kg.search(name, MAX_PARTIAL_MATCHES).hits:
        label = f" {normalize(hit.label)} "
        if label.startswith(words) or label.endswith(words):
            vertices.append(hit.iri)
    return vertices


def only_mention(mentions: Iterable[Mention]) -> Mention | None:
    """Return the only name with a capital letter; None if there are several.

    Without capitals it is the last name; None if there is no name at all.
    """
    found = list(mentions)
    capitalized = [mention for mention in found if mention.text != mention.text.casefold()]
    found = capitalized or found[-1:]
    return found[0] if len(found) == 1 else None


def find_unclear_name(
    mentions: Mentions, vertices_of: Mapping[Mention, Vertices], kg: Graph
) -> list[str]:
    """Return the reason that a name may mean several things; [] if each name is clear.

    A name is unclear if it is no whole label, and only a part of different labels of several things
    of one class. If the graph has no label that begins or ends with any of the names, these things
    are those whose labels are equally like a name. The first unclear name is reported, with these
    labels.
    """
    for mention in mentions:
        vertices = vertices_of.get(mention, ())
        label_of: Mapping[URIRef, str] = {}
        if not vertices_of:
            hits = kg.search(mention.text, MAX_TIED_LABELS).hits
            label_of = {hit.iri: hit.label for hit in hits if hit.score == hits[0].score}
        elif len(vertices) > 1 and not kg.exact([mention.text]):
            label_of = kg.names([vertex for vertex in vertices if isinstance(vertex, URIRef)])
        labels = sorted(set(label_of.values()))
        if len(labels) < 2:
            continue
        first, *others = [fetch_class_names(kg, (vertex,)) for vertex in label_of]
        if all(names == first for names in others):
            choices = dict.fromkeys(shorten(label, MAX_CHOICE_CHARS) for label in labels)
            return [f"“{mention.text}” may be {' or '.join(choices)}"]
    return []
