"""Gold answers that a question set leaves to be found in the graph."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise

from rdflib import Literal, URIRef

from kgwb.bench.questions import BenchQuestion, term_string
from kgwb.errors import GraphError
from kgwb.kg.base import Graph
from kgwb.kg.sparql import checked, n3, writable

_BARE_COUNT = re.compile(
    r"\b(?P<select>SELECT\s+(?:DISTINCT\s+)?)COUNT\s*\(\s*(?P<distinct>DISTINCT\s+)?(?P<what>[?$]\w+|\*)"
    r"(?:\s+AS\s+[?$]\w+)?\s*\)",
    re.IGNORECASE,
)
METAQA = {
    **{"director": "directed_by", "writer": "written_by", "actor": "starred_actors", "year": "release_year"},
    **{"genre": "has_genre", "language": "in_language", "tags": "has_tags", "tag": "has_tags"},
    **{"imdbrating": "has_imdb_rating", "imdbvotes": "has_imdb_votes"},
}
"""The relation of MetaQA's graph that each word of its question types stands for, from a movie."""


def with_gold(questions: Iterable[BenchQuestion], kg: Graph) -> list[BenchQuestion]:
    """The same questions, those without gold answers with what the graph gives.

    That is the first variable of the gold query (sent through the gate like any query), or else the vertices
    that bear the gold labels. Where this fails ``answers`` stays None and ``gold_error`` says why.
    """
    return [_found(one, kg) if one.answers is None else one for one in questions]


def with_queries(questions: Iterable[BenchQuestion], kg: Graph) -> list[BenchQuestion]:
    """The same questions; those with a topic entity and a path of MetaQA's also with the gold query it means.

    Relations are known by their local names. The topic entity is no answer of a path that leads back to it.
    """
    questions = list(questions)
    if not any(one.path and not one.sparql for one in questions):
        return questions
    terms = (term for (term,) in kg.select("SELECT DISTINCT ?p WHERE { ?s ?p ?o }").rows)
    named = {re.split("[/#]", term)[-1]: n3(term) for term in terms if isinstance(term, URIRef)}
    relations = {word: named[name] for word, name in METAQA.items() if name in named}
    queries = ((one, None if one.sparql else _of_path(one, relations)) for one in questions)
    return [one.model_copy(update={"sparql": query}) if query else one for one, query in queries]


def _of_path(question: BenchQuestion, relations: dict[str, str]) -> str | None:
    words = (question.path or "").split("_to_")
    steps = [(word, relations.get(later if word == "movie" else word)) for word, later in pairwise(words)]
    entity = question.topic_entity or ""
    known = "://" in entity and writable(URIRef(entity))
    if not (known and steps and all(relation for _, relation in steps)):
        return None  # the entity is given by its label, or a relation is not in the graph
    topic = n3(URIRef(entity))
    ends = [topic, *(f"?x{number}" for number in range(1, len(steps))), "?x"]
    patterns = [
        f"{here} {relation} {there} ." if word == "movie" else f"{there} {relation} {here} ."
        for (word, relation), (here, there) in zip(steps, pairwise(ends), strict=True)
    ]
    return f"SELECT DISTINCT ?x WHERE {{ {' '.join(patterns)} FILTER(?x != {topic}) }}"


def standard(sparql: str) -> str:
    """A gold query in SPARQL 1.1: LC-QuAD and QALD count as Virtuoso does, SELECT DISTINCT COUNT(?uri)."""
    return _BARE_COUNT.sub(r"\g<select>(COUNT(\g<distinct>\g<what>) AS ?count)", sparql, count=1)


def _found(question: BenchQuestion, kg: Graph) -> BenchQuestion:
    try:
        if question.sparql and question.sparql.strip():
            answers = tuple(dict.fromkeys(_of_query(standard(question.sparql), kg)))
        elif question.answer_labels:
            answers = tuple(dict.fromkeys(_of_labels(question.answer_labels, kg)))
        else:
            raise _NoGoldError("the question set gives neither answers nor a gold query")
    except (_NoGoldError, GraphError) as exc:
        return question.model_copy(update={"gold_error": exc.args[0]})
    return question.model_copy(update={"answers": answers, "gold_error": None})


class _NoGoldError(Exception):
    pass


def _of_query(sparql: str, kg: Graph) -> Iterable[str]:
    if checked(sparql).form == "ask":
        return [term_string(Literal(kg.ask(sparql)))]
    found = kg.select(sparql)
    if found.cut:
        raise _NoGoldError(f"the gold query has more than {len(found.rows)} rows: open the graph with more")
    return [term_string(row[0]) for row in found.rows if row[0] is not None]


def _of_labels(labels: Iterable[str], kg: Graph) -> Iterable[str]:
    """The one vertex of each label; where several differ in letter case, the one that is written so."""
    bearers = kg.exact(tuple(labels))
    for label in labels:
        vertices = bearers.get(label, ())
        if len(vertices) > 1:
            names = kg.names(vertices)
            vertices = tuple(vertex for vertex in vertices if names[vertex] == label)
        if len(vertices) != 1:
            raise _NoGoldError(f"{len(bearers.get(label, ()))} vertices of the graph are called {label!r}")
        yield str(vertices[0])
