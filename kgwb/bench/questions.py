"""The questions of a benchmark, whatever format they came in (kgwb.bench.formats)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated

from pydantic import BaseModel, BeforeValidator
from rdflib import Literal

from kgwb.flow import Term


def _lexical(value: object) -> object:
    """Booleans and numbers as graphs write them."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value


Lexical = Annotated[str, BeforeValidator(_lexical)]


class BenchQuestion(BaseModel):
    """One question; as JSON data, one line of kgwb's own question files."""

    model_config = {"frozen": True}
    id: Lexical
    question: str
    answers: tuple[Lexical, ...] | None = None
    """Gold: IRIs, or lexical forms of literals; "true" or "false" of a boolean question. None: not known."""
    answer_labels: tuple[str, ...] = ()
    """What the gold answers are called; MetaQA's released files tell no more."""
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
    dialogue: Lexical | None = None
    """Turns of one dialogue are asked in order, each with what was answered before."""
    turn: int = 0
    standalone: str | None = None
    """What the question means outside its dialogue."""

    @property
    def gold(self) -> list[str] | None:
        """The gold answers as results files write them."""
        return None if self.answers is None else list(self.answers)


def standalone_forms(questions: Iterable[BenchQuestion]) -> list[BenchQuestion]:
    """The same questions outside their dialogues: what ``retention`` sets the dialogues against."""
    return [
        one.model_copy(update={"question": one.standalone or one.question, "dialogue": None, "turn": 0})
        for one in questions
    ]


def conversations(questions: Iterable[BenchQuestion]) -> Iterator[tuple[BenchQuestion, ...]]:
    """The questions parted into what is asked in order: a dialogue by its turns, any other alone."""
    dialogues: dict[str, list[BenchQuestion]] = {}
    for question in questions:
        key = f"id {question.id}" if question.dialogue is None else f"dialogue {question.dialogue}"
        dialogues.setdefault(key, []).append(question)
    for turns in dialogues.values():
        yield tuple(sorted(turns, key=lambda question: question.turn))


def term_string(term: Term) -> str:
    """A term as question files write it: the IRI, the lexical form, "true" or "false"."""
    if isinstance(term, Literal) and isinstance(term.value, bool):
        return str(term.value).lower()
    return str(term)
