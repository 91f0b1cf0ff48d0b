"""Question files: JSON lines with ``id``, ``question`` and ``answers``; other fields are kept out."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ValidationError
from rdflib import Literal

from kgwb.errors import InputError
from kgwb.flow import Term

FIELDS = (
    "each line needs id, question and answers (a list of IRIs or lexical forms); "
    "hops, type, dialogue and turn are optional"
)


def _lexical(value: object) -> object:
    """Booleans and numbers as graphs write them."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value


Lexical = Annotated[str, BeforeValidator(_lexical)]


class BenchQuestion(BaseModel):
    """One line of a question file."""

    model_config = {"frozen": True}
    id: Lexical
    question: str
    answers: tuple[Lexical, ...]
    """Gold: IRIs, or lexical forms of literals; "true" or "false" of a boolean question."""
    hops: int | str | None = None
    type: str | None = None
    dialogue: Lexical | None = None
    """Turns of one dialogue are asked in order, each with what was answered before."""
    turn: int = 0


def read_questions(path: Path, limit: int | None = None) -> list[BenchQuestion]:
    """The questions of a file, at most ``limit``. Raises InputError naming the line that cannot be used."""
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as exc:
        raise InputError(
            f"cannot read the questions {path}: {exc}", hint="give a file of JSON lines"
        ) from exc
    questions: dict[str, BenchQuestion] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        question = _question(line, f"{path}, line {number}")
        if question.id in questions:
            where = f"{path}, line {number}"
            raise InputError(f"{where}: the id {question.id!r} was used before", hint="make ids unique")
        questions[question.id] = question
    if not questions:
        raise InputError(f"{path} holds no question", hint=FIELDS)
    return list(questions.values())[:limit]


def _question(line: str, where: str) -> BenchQuestion:
    try:
        return BenchQuestion.model_validate(json.loads(line))
    except ValidationError as exc:
        errors = exc.errors(include_url=False)
        problems = (f"{'.'.join(map(str, error['loc']))}: {error['msg']}" for error in errors)
        raise InputError(f"{where}: {'; '.join(problems)}", hint=FIELDS) from exc
    except ValueError as exc:
        raise InputError(f"{where} is not JSON: {exc}", hint=FIELDS) from exc


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
