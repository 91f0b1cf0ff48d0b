"""Reads the field's question sets, recognized by what is in them and never by their names; writes kgwb's own.

QALD 7 to 10 (JSON), TEXT2SPARQL (YAML), LC-QuAD 1.0 and 2.0, the dialogue sets of Chatty-KG, MetaQA as
released (text), and kgwb's own JSON lines, whose fields are those of ``BenchQuestion``.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import AliasChoices, AliasPath, BaseModel, BeforeValidator, Field, ValidationError

from kgwb import disk
from kgwb.bench.questions import BenchQuestion, LexicalForm
from kgwb.errors import InputError

SUPPORTED_FORMATS = (
    "kgwb reads QALD JSON, LC-QuAD 1.0 and 2.0, TEXT2SPARQL YAML, MetaQA text, Chatty-KG dialogues, and JSON "
    "lines with id, question and answers (a list of IRIs or lexical forms) or sparql"
)
# what does [Joe Thomas] appear in<TAB>The Inbetweeners Movie|The Inbetweeners 2
_METAQA_LINE = re.compile(r"([^\t\[]*)\[([^\]\t]+)\]([^\t]*)\t([^\t]*[^\s|][^\t]*)")
_LC_QUAD_TEXT_FIELDS = (
    "corrected_question",
    "paraphrased_question",
    "NNQT_question",
    "intermediary_question",
)
_QUERY_FORM = re.compile(
    r"\s*(?:(?:PREFIX\s+\S*\s*|BASE\s*)<[^>]*>\s*)*(\w+)([^{]*)", re.IGNORECASE
)


def load_questions(path: str | Path, language: str | None = None) -> list[BenchQuestion]:
    """Every question of a file, in its order.

    Where a set has several languages the question is in ``language`` (None: English; in kgwb's own files the
    one that was saved), else in English, else in the first there is; each question's ``language`` says which,
    its ``translations`` keep all. Of a set whose questions have one wording each, those in ``language`` are
    taken. Without gold a question keeps its place, with ``answers`` None: see ``with_gold``. The second
    question with an id gets "#2" after it; in kgwb's own files that is an error.
    Raises InputError naming the file and the entry that cannot be used.
    """
    path = Path(path)
    form, noun, entries = _read_entries(path)
    own = form is _KgwbEntry
    questions: list[BenchQuestion] = []
    ids: Counter[str] = Counter()
    for number, entry in entries:
        where = f"{path}, {noun} {number}"
        for question in _parse_entry(form, entry, number, where):
            id_ = question.id
            if id_ in ids and own:
                raise InputError(f"{where}: the id {id_!r} was used before", hint="make ids unique")
            while id_ in ids:
                ids[question.id] += 1
                id_ = f"{question.id}#{ids[question.id]}"
            ids[id_] = 1
            changes = {"id": id_}
            if question.translations and (language or not own):
                changes["language"], changes["question"] = _choose_wording(
                    question.translations, language or "en"
                )
            questions.append(question.model_copy(update=changes))
    if not questions:
        raise InputError(f"{path} holds no question", hint=SUPPORTED_FORMATS)
    if language and not any(question.translations for question in questions):
        languages = {question.language for question in questions if question.language}
        wanted = _split_language_tag(language)[0]
        questions = [
            each
            for each in questions
            if not each.language or _split_language_tag(each.language)[0] == wanted
        ]
        if not questions:
            hint = f"its questions are in {', '.join(sorted(languages))}"
            raise InputError(f"{path} holds no question in {language}", hint=hint)
    return questions


def save_questions(questions: Iterable[BenchQuestion], path: str | Path) -> None:
    """Write kgwb's own JSON lines, which ``load_questions`` reads back the same. Raises InputError."""
    rows = (
        json.dumps(each.model_dump(exclude_defaults=True), ensure_ascii=False) for each in questions
    )
    with disk.os_errors_as_input_error(f"cannot write to {path}", "give another file"):
        disk.write_atomically(Path(path), (row + "\n" for row in rows), disk.JSON_ENCODING_ERRORS)


def _choose_wording(texts: Iterable[tuple[str, str]], language: str) -> tuple[str, str]:
    """The language and text nearest to what is wanted: "pt" takes "pt_BR" before English."""
    wanted = _split_language_tag(language)

    def distance(text: tuple[str, str]) -> tuple[bool, bool, bool]:
        parts = _split_language_tag(text[0])
        return parts != wanted, parts[0] != wanted[0], parts != ["en"]

    return min(texts, key=distance)


def _split_language_tag(language: str) -> list[str]:
    return re.split("[-_]", language.lower())


def _parse_entry(
    entry_class: type[_Entry], entry: object, number: int, where: str
) -> list[BenchQuestion]:
    try:
        if isinstance(entry, ValueError):
            raise entry
        return list(entry_class.model_validate(entry).to_questions(number))
    except ValidationError as exc:
        errors = exc.errors(include_url=False)
        problems = "; ".join(
            f"{'.'.join(map(str, error['loc']))}: {error['msg']}" for error in errors
        )
        raise InputError(
            f"{where}: {problems}", hint=f"fix the entry; {SUPPORTED_FORMATS}"
        ) from exc
    except ValueError as exc:
        raise InputError(f"{where}: {exc}", hint="fix the entry, or leave it out") from exc


# --- the forms of entries


class _Wording(BaseModel):
    language: str
    string: str | None = None


class _Cell(BaseModel):
    value: LexicalForm


class _SparqlResults(BaseModel):
    """SPARQL 1.1 Query Results JSON, with ``results`` empty beside a ``boolean``."""

    variables: tuple[str, ...] | None = Field(None, validation_alias=AliasPath("head", "vars"))
    bindings: Annotated[
        tuple[dict[str, _Cell], ...] | None,
        Field(validation_alias=AliasPath("results", "bindings")),
    ] = None
    boolean: bool | None = None

    def first_column(self) -> list[str] | None:
        """The values of the first variable, or the truth; None if there is neither."""
        if self.boolean is not None:
            return [str(self.boolean).lower()]
        if self.bindings is None:
            return None
        cells = (row.get(next(iter(self.variables or row), "")) for row in self.bindings)
        return [cell.value for cell in cells if cell]


def _wordings_to_list(question: object) -> object:
    listed = question.items() if isinstance(question, dict) else ()
    return [{"language": language, "string": text} for language, text in listed] or question


class _Qald(BaseModel):
    """A question of QALD, and of TEXT2SPARQL, which has no answers and maps languages to texts."""

    id: LexicalForm
    question: Annotated[tuple[_Wording, ...], BeforeValidator(_wordings_to_list)]
    query: dict[str, Any] | None = None
    answers: tuple[_SparqlResults, ...] = ()

    def to_questions(self, number: int) -> Iterator[BenchQuestion]:
        texts = [
            (each.language, text) for each in self.question if (text := (each.string or "").strip())
        ]
        if not texts:
            raise ValueError("question: there is no text in any language")
        values = [
            values for result in self.answers if (values := result.first_column()) is not None
        ]
        answers = tuple(dict.fromkeys(chain(*values))) if values else None
        sparql = (self.query or {}).get("sparql")
        asks = any(result.boolean is not None for result in self.answers)
        gold: dict[str, Any] = {"sparql": sparql, "answers": answers}
        gold["type"] = "boolean" if asks else _classify_query(sparql)
        yield BenchQuestion(id=self.id, question=texts[0][1], translations=tuple(texts), **gold)


class _LcQuad(BaseModel, extra="allow"):
    """A question of LC-QuAD 1.0 or 2.0; 2.0 leaves some of its wordings out, or writes "n/a" or []."""

    id: LexicalForm = Field(validation_alias=AliasChoices("_id", "uid"))
    sparql: str | None = Field(
        None,
        validation_alias=AliasChoices(
            "sparql_query", "sparql_wikidata", "sparql_dbpedia18", "query"
        ),
    )

    def to_questions(self, number: int) -> Iterator[BenchQuestion]:
        names = (_LC_QUAD_TEXT_FIELDS[0], "question", *_LC_QUAD_TEXT_FIELDS[1:])
        wordings = [(self.model_extra or {}).get(name) for name in names]
        texts = [text.strip() for text in wordings if isinstance(text, str)]
        text = next((text for text in texts if text.lower() not in ("", "n/a")), None)
        if text is None:
            raise ValueError(f"there is no text in any of {', '.join(names)}")
        kind = _classify_query(self.sparql)
        yield BenchQuestion(id=self.id, question=text, language="en", sparql=self.sparql, type=kind)


class _Dialogue(BaseModel):
    """A dialogue of Chatty-KG's sets (section 7.1): its turns, what they mean alone, and their queries."""

    dialogue: tuple[str, ...]
    original: tuple[str, ...]
    queries: tuple[str, ...]

    def to_questions(self, number: int) -> Iterator[BenchQuestion]:
        if not len(self.dialogue) == len(self.original) == len(self.queries):
            raise ValueError("dialogue, original and queries differ in length")
        turns = zip(self.dialogue, self.original, self.queries, strict=True)
        for turn, (text, standalone, sparql) in enumerate(turns, 1):
            place = {"id": f"{number}-{turn}", "dialogue": str(number), "turn": turn}
            wording = {"question": text, "standalone": standalone}
            yield BenchQuestion(**place, **wording, sparql=sparql, type=_classify_query(sparql))


class _KgwbEntry(BenchQuestion):
    def to_questions(self, number: int) -> Iterator[BenchQuestion]:
        yield BenchQuestion(**dict(self))


_Entry = _Qald | _LcQuad | _Dialogue | _KgwbEntry


def _classify_query(sparql: object) -> str | None:
    """boolean, count or factoid, as the gold query asks; None if it is no query."""
    if not isinstance(sparql, str) or not (query := _QUERY_FORM.match(sparql)):
        return None
    if query[1].upper() == "ASK":
        return "boolean"
    return "count" if re.search(r"\bCOUNT\s*\(", query[2], re.IGNORECASE) else "factoid"


# --- what a file is


def _read_entries(path: Path) -> tuple[type[_Entry], str, Iterable[tuple[int, object]]]:
    """The form of a file's entries, what one is called, and each with its number."""
    try:
        text = disk.read_text(path, "utf-8-sig")
    except (OSError, UnicodeDecodeError) as exc:
        hint = "give a file of questions, in UTF-8"
        raise InputError(f"cannot read the questions {path}: {exc}", hint=hint) from exc
    lines = [
        (number, line.strip()) for number, line in enumerate(text.split("\n"), 1) if line.strip()
    ]
    if not lines:
        raise InputError(f"{path} holds no question", hint=SUPPORTED_FORMATS)
    first = lines[0][1]
    if _METAQA_LINE.fullmatch(first):
        folder = next(
            (part for part in reversed(path.parts) if re.fullmatch("[123]-hop", part)), ""
        )
        fields: dict[str, Any] = {"language": "en", "hops": int(folder[0]) if folder else None}
        asked: list[tuple[int, object]] = []
        for number, line in lines:
            if parts := _METAQA_LINE.fullmatch(line):
                before, topic, after, answers = parts.groups()
                about = {"id": number, "question": before + topic + after, "topic_entity": topic}
                asked.append((number, {**fields, **about, "answer_labels": answers.split("|")}))
            else:
                why = "not a question with its [topic], a tab, and the answers parted by |"
                asked.append((number, ValueError(why)))
        return _KgwbEntry, "line", asked
    match data := _parse_data(text):
        case {"questions": [*entries]}:
            return _Qald, "question", enumerate(entries, 1)
        case {"data": [*entries]}:
            return _Dialogue, "dialogue", enumerate(entries, 1)
        case [*entries] if any(
            isinstance(entry, dict) and {*_LC_QUAD_TEXT_FIELDS} & {*entry} for entry in entries
        ):
            return _LcQuad, "question", enumerate(entries, 1)
    if first[0] == "{" and isinstance(_parse_data(first), dict):
        return _KgwbEntry, "line", [(number, _parse_data(line)) for number, line in lines]
    reason = f": {data}" if isinstance(data, ValueError) else ""
    raise InputError(f"{path} is no question set that kgwb knows{reason}", hint=SUPPORTED_FORMATS)


def _parse_data(text: str) -> object:
    """The data of JSON or, where it does not begin like that, of YAML; a ValueError where it is neither."""
    try:
        return json.loads(text) if text.lstrip()[0] in "{[" else yaml.safe_load(text)
    except (ValueError, RecursionError, yaml.YAMLError) as exc:
        return ValueError(f"not {'YAML' if isinstance(exc, yaml.YAMLError) else 'JSON'}: {exc}")
