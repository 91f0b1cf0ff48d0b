"""The questions of a benchmark, whatever format they came in (kgwb.bench.formats), and their gold answers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import pairwise
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, model_validator
from rdflib import Literal, URIRef

from kgwb.errors import GraphError
from kgwb.flow import Answer
from kgwb.kg.base import Graph
from kgwb.kg.sparql import is_valid_iri, n3, validate_query
from kgwb.run.gold import GoldQuery, parse_gold_query
from kgwb.terms import Term


def _to_lexical_form(value: object) -> object:
    """Booleans and numbers as graphs write them."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value


LexicalForm = Annotated[str, BeforeValidator(_to_lexical_form)]


class BenchQuestion(BaseModel, frozen=True):
    """One question; as JSON data, one line of kgwb's own question files."""

    id: LexicalForm
    question: str
    answers: tuple[LexicalForm, ...] | None = None
    """Gold: IRIs, or lexical forms of literals; "true" or "false" of a boolean question; of a table all its
    values. None: not known."""
    answer_labels: tuple[str, ...] = ()
    """What the gold answers are called; MetaQA's released files hold no more."""
    columns: tuple[str, ...] = ()
    """Of gold that is a table: what its columns are."""
    rows: tuple[tuple[LexicalForm | None, ...], ...] = ()
    """Gold that is a table."""
    sparql: str | None = None
    """The gold query, as the question set has it."""
    gold_error: str | None = None
    """Why gold could not be had from the gold query or the labels."""
    language: str | None = None
    """Of ``question``, as the set writes it; None if it does not say."""
    translations: tuple[tuple[str, str], ...] = ()
    """Every wording of the question with its language, where the set has several."""
    hops: int | str | None = None
    type: str | None = None
    topic_entity: str | None = None
    """The vertex (or its label) that the question is about, where the set names it (MetaQA)."""
    path: str | None = None
    """The relations from the topic entity to the answers, where the set names them (MetaQA)."""
    dialogue: LexicalForm | None = None
    """Turns of one dialogue are asked in order, each with what was answered before."""
    turn: int = 0
    standalone: str | None = None
    """What the question means outside its dialogue."""

    @model_validator(mode="before")
    @classmethod
    def _read_rows(cls, data: Any) -> Any:
        """Gold that is a table is kept as its rows and as all their values; ``kind`` is read as ``type``."""
        if not isinstance(data, dict):
            return data
        data = ({"type": data["kind"]} if isinstance(data.get("kind"), str) else {}) | data
        answers = data.get("answers")
        lists = [isinstance(row, list) for row in answers] if isinstance(answers, list) else []
        if any(lists):
            rows = [row if isinstance(row, list) else [row] for row in answers]
            data |= {"rows": rows} if all(lists) and max(map(len, rows)) > 1 else {}
            cells = (_to_lexical_form(cell) for row in rows for cell in row if cell is not None)
            data["answers"] = list(dict.fromkeys(cells))
        return data

    @property
    def gold(self) -> list[str] | None:
        """The gold answers as results files write them."""
        return None if self.answers is None else list(self.answers)


def make_standalone_questions(questions: Iterable[BenchQuestion]) -> list[BenchQuestion]:
    """The same questions outside their dialogues: what ``retention`` sets the dialogues against."""
    alone: dict[str, Any] = {"dialogue": None, "turn": 0}
    return [
        each.model_copy(update={"question": each.standalone or each.question, **alone})
        for each in questions
    ]


def group_by_dialogue(questions: Iterable[BenchQuestion]) -> Iterator[tuple[BenchQuestion, ...]]:
    """The questions parted into what is asked in order: a dialogue by its turns, any other alone."""
    dialogues: dict[str, list[BenchQuestion]] = {}
    for question in questions:
        key = f"id {question.id}" if question.dialogue is None else f"dialogue {question.dialogue}"
        dialogues.setdefault(key, []).append(question)
    for turns in dialogues.values():
        yield tuple(sorted(turns, key=lambda question: question.turn))


def answer_to_strings(answer: Answer | None) -> list[str]:
    """The values of an answer as question files write them; of a table all its cells."""
    values = answer.values if answer else ()
    return list(dict.fromkeys(term_to_string(term) for value in values for term in value.terms))


def term_to_string(term: Term) -> str:
    """A term as question files write it: the IRI, the lexical form, "true" or "false"."""
    if isinstance(term, Literal) and isinstance(term.value, bool):
        return str(term.value).lower()
    return str(term)


# --- gold answers that a question set leaves to be found in the graph

_BARE_COUNT = re.compile(
    r"\b(?P<select>SELECT\s+(?:DISTINCT\s+)?)COUNT\s*\(\s*(?P<distinct>DISTINCT\s+)?(?P<what>[?$]\w+|\*)"
    r"(?:\s+AS\s+[?$]\w+)?\s*\)",
    re.IGNORECASE,
)
METAQA_RELATIONS = {
    "director": "directed_by",
    "writer": "written_by",
    "actor": "starred_actors",
    "year": "release_year",
    "genre": "has_genre",
    "language": "in_language",
    "tags": "has_tags",
    "tag": "has_tags",
    "imdbrating": "has_imdb_rating",
    "imdbvotes": "has_imdb_votes",
}
"""The relation of MetaQA's graph that each word of its question types stands for, from a movie."""


def add_gold_answers(questions: Iterable[BenchQuestion], kg: Graph) -> list[BenchQuestion]:
    """The same questions, those without gold answers with what the graph gives.

    That is the first variable of the gold query (sent through the gate like any query), all of them where
    the question has several columns, or else the vertices that bear the gold labels. Gold vertices get their
    labels. Where this fails ``answers`` stays None and ``gold_error`` says why.
    """
    answered = [_add_gold_answer(each, kg) if each.answers is None else each for each in questions]
    values = dict.fromkeys(
        value for each in answered for value in each.answers or () if "://" in value
    )
    names: dict[str, str] = {}
    with suppress(GraphError):  # without labels, the last parts of the IRIs are shown
        iris = [iri for value in values if is_valid_iri(iri := URIRef(value))]
        names = {str(iri): name for iri, name in kg.names(iris).items()}
    return [
        each
        if each.answer_labels or names.keys().isdisjoint(each.answers or ())
        else each.model_copy(
            update={"answer_labels": tuple(names.get(v, v) for v in each.answers or ())}
        )
        for each in answered
    ]


def add_gold_queries(questions: Iterable[BenchQuestion], kg: Graph) -> list[BenchQuestion]:
    """The same questions; those with a topic entity and a path of MetaQA's also with the gold query it means.

    Relations are known by their local names. The topic entity is no answer of a path that leads back to it.
    """
    questions = list(questions)
    if not any(each.path and not each.sparql for each in questions):
        return questions
    terms = (term for (term,) in kg.select("SELECT DISTINCT ?p WHERE { ?s ?p ?o }").rows)
    named = {re.split("[/#]", term)[-1]: n3(term) for term in terms if isinstance(term, URIRef)}
    relations = {word: named[name] for word, name in METAQA_RELATIONS.items() if name in named}
    for place, each in enumerate(questions):
        words = (each.path or "").split("_to_")
        steps = [
            (word, relations.get(later if word == "movie" else word))
            for word, later in pairwise(words)
        ]
        entity = each.topic_entity or ""  # it may be given by its label
        known = "://" in entity and is_valid_iri(URIRef(entity))
        if known and steps and all(relation for _, relation in steps) and not each.sparql:
            topic = n3(URIRef(entity))
            ends = [topic, *(f"?x{number}" for number in range(1, len(steps))), "?x"]
            patterns = [
                f"{here} {relation} {there} ."
                if word == "movie"
                else f"{there} {relation} {here} ."
                for (word, relation), (here, there) in zip(steps, pairwise(ends), strict=True)
            ]
            query = f"SELECT DISTINCT ?x WHERE {{ {' '.join(patterns)} FILTER(?x != {topic}) }}"
            questions[place] = each.model_copy(update={"sparql": query})
    return questions


def read_gold_query_of(question: BenchQuestion, kg: Graph) -> GoldQuery | None:
    """The gold query of a question taken apart; None if there is none that can be read."""
    return (
        parse_gold_query(to_standard_sparql(question.sparql), kg.vocabulary)
        if question.sparql
        else None
    )


def to_standard_sparql(sparql: str) -> str:
    """A gold query in SPARQL 1.1: LC-QuAD and QALD count as Virtuoso does, SELECT DISTINCT COUNT(?uri)."""
    return _BARE_COUNT.sub(r"\g<select>(COUNT(\g<distinct>\g<what>) AS ?count)", sparql, count=1)


def _add_gold_answer(question: BenchQuestion, kg: Graph) -> BenchQuestion:
    try:
        if question.sparql and question.sparql.strip():
            sparql = to_standard_sparql(question.sparql)
            if validate_query(sparql).form == "ask":
                rows: list[list[str | None]] = [[term_to_string(Literal(kg.ask(sparql)))]]
            else:
                result = kg.select(sparql)
                rows = [
                    [None if cell is None else term_to_string(cell) for cell in row]
                    for row in result.rows
                ]
                if result.cut:
                    many = f"the gold query has more than {len(rows)} rows"
                    raise GraphError(f"{many}: open the graph with more")
            if len(question.columns) > 1:
                question = question.model_copy(update={"rows": tuple(map(tuple, rows))})
            rows = rows if question.rows else [row[:1] for row in rows]
            answers = [cell for row in rows for cell in row if cell is not None]
        elif question.answer_labels:
            answers = _find_vertices_by_label(question.answer_labels, kg)
        else:
            raise GraphError("the question set gives neither answers nor a gold query")
    except GraphError as exc:
        return question.model_copy(update={"gold_error": exc.message})
    return question.model_copy(
        update={"answers": tuple(dict.fromkeys(answers)), "gold_error": None}
    )


def _find_vertices_by_label(labels: tuple[str, ...], kg: Graph) -> list[str]:
    """The one vertex of each label; where several differ in letter case, the one that is written so."""
    bearers, answers = kg.exact(labels), []
    for label in labels:
        vertices = bearers.get(label, ())
        if len(vertices) > 1:
            names = kg.names(vertices)
            vertices = tuple(vertex for vertex in vertices if names[vertex] == label)
        if len(vertices) != 1:
            raise GraphError(
                f"{len(bearers.get(label, ()))} vertices of the graph are called {label!r}"
            )
        answers.append(str(vertices[0]))
    return answers
