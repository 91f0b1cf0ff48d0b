"""Reading the question sets of the field, and writing kgwb's own question files.

A file's format is recognized by its content, never by its name: QALD 7 to 10 (JSON), TEXT2SPARQL
(YAML), LC-QuAD 1.0 and 2.0, the dialogue sets of Chatty-KG, MetaQA as released (text), the sets on
Freebase (``freebase_formats``), and kgwb's own JSON lines, whose fields are those of
``BenchQuestion``.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import yaml
from pydantic import AliasChoices, AliasPath, BaseModel, BeforeValidator, Field, ValidationError

from kgwb import disk
from kgwb.bench.freebase_formats import FreebaseEntry, WebQspEntry, find_entry_class
from kgwb.bench.questions import BenchQuestion, LexicalForm
from kgwb.errors import InputError
from kgwb.records import describe_validation_error

SUPPORTED_FORMATS = (
    "kgwb reads QALD JSON, LC-QuAD 1.0 and 2.0, TEXT2SPARQL YAML, MetaQA text, Chatty-KG dialogues, WebQSP, "
    "CWQ, WebQuestions and GrailQA JSON, and JSON lines with id, question and answers (a list of IRIs or "
    "lexical forms) or sparql"
)
# what does [Joe Thomas] appear in<TAB>The Inbetweeners Movie|The Inbetweeners 2
_METAQA_LINE = re.compile(r"([^\t\[]*)\[([^\]\t]+)\]([^\t]*)\t([^\t]*[^\s|][^\t]*)")
_METAQA_FOLDER = re.compile("([123])-hop")
_LC_QUAD_TEXT_FIELDS = (
    "corrected_question",
    "question",
    "paraphrased_question",
    "NNQT_question",
    "intermediary_question",
)
"""The wordings of a question in LC-QuAD, the best first."""
_LC_QUAD_MARKS = frozenset(_LC_QUAD_TEXT_FIELDS) - {"question"}
"""Fields that only LC-QuAD has."""
_QUERY_FORM = re.compile(
    r"\s*(?:(?:PREFIX\s+\S*\s*|BASE\s*)<[^>]*>\s*)*(\w+)([^{]*)", re.IGNORECASE
)
"""The form of a query (SELECT, ASK), and what follows it up to the first brace."""


def load_questions(path: str | Path, language: str | None = None) -> list[BenchQuestion]:
    """Read every question of a file, in its order, and return them.

    If the set has several languages, the wording is the one in ``language`` (None: English, and in
    kgwb's own files the one that was saved), else the English one, else the first. ``language`` of
    the question names it, and ``translations`` keeps all. If each question has one wording, only
    the questions in ``language`` are returned. A question without gold answers has ``answers``
    None; see ``add_gold_answers``. If an id occurs again, "#2" is added to it; in kgwb's own files
    that is an error. Raises InputError, which names the file and the entry that cannot be used.
    """
    path = Path(path)
    questions = [question for _, question in _read_questions(path, language)]
    if not questions:
        raise InputError(f"{path} holds no question", hint=SUPPORTED_FORMATS)
    if language and not any(question.translations for question in questions):
        questions = _select_language(questions, language, path)
    return questions


def locate_questions(path: str | Path) -> dict[str, str]:
    """Return where each question stands in a file, by its id: "line 6", "entry 6".

    The ids are those of ``load_questions``, and it raises the same.
    """
    places = {}
    for place, question in _read_questions(Path(path), None):
        places[question.id] = place
    return places


def _read_questions(path: Path, language: str | None) -> Iterator[tuple[str, BenchQuestion]]:
    """Yield every question of a file, in its order, after its place in the file, such as "line 6".

    Wordings and ids are chosen as ``load_questions`` says.
    """
    file = _read_file(path)
    is_own = file.entry_class is _KgwbEntry
    if is_own and not language:
        preferred_language = ""
    else:
        preferred_language = language or "en"
    ids: Counter[str] = Counter()
    for number, entry in file.entries:
        place = f"{file.noun} {number}"
        for question in _parse_entry(file.entry_class, entry, number, f"{path}, {place}"):
            if is_own and question.id in ids:
                raise InputError(
                    f"{path}, {place}: the id {question.id!r} occurs a second time",
                    hint="give each question of the file an id of its own",
                )
            changes = {"id": _take_id(question.id, ids)}
            if question.translations and preferred_language:
                changes |= _choose_wording(question.translations, preferred_language)
            yield place, question.model_copy(update=changes)


def save_questions(questions: Iterable[BenchQuestion], path: str | Path) -> None:
    """Write kgwb's own JSON lines, which ``load_questions`` reads back as the same questions.

    A file that is there is replaced. Raises InputError if the file cannot be written.
    """
    entries = []
    for question in questions:
        entries.append(question.model_dump(exclude_defaults=True))
    with disk.os_errors_as_input_error(f"cannot write to {path}", "name another file"):
        disk.write_json_lines(Path(path), entries)


def _take_id(wanted: str, ids: Counter[str]) -> str:
    """Return an id that is not taken yet: the wanted one, or followed by "#2" or a higher number.

    ``ids`` has the ids that were taken, with counts; it is changed.
    """
    id_ = wanted
    while id_ in ids:
        ids[wanted] += 1
        id_ = f"{wanted}#{ids[wanted]}"
    ids[id_] = 1
    return id_


def _choose_wording(wordings: Iterable[tuple[str, str]], language: str) -> dict[str, str]:
    """Return the fields ``language`` and ``question`` with the wording nearest to a language tag.

    ``wordings`` are pairs of tag and text. The same tag is nearest, then another tag of the
    language ("pt_BR" for "pt"), then English, then any other. Of equally near wordings the first is
    taken.
    """
    wanted = _split_language_tag(language)

    def distance(wording: tuple[str, str]) -> tuple[bool, bool, bool]:
        tag = _split_language_tag(wording[0])
        is_other_tag = tag != wanted
        is_other_language = tag[0] != wanted[0]
        is_not_english = tag != ["en"]
        return is_other_tag, is_other_language, is_not_english

    nearest_language, text = min(wordings, key=distance)
    return {
        "language": nearest_language,
        "question": text,
    }


def _select_language(
    questions: list[BenchQuestion], language: str, path: Path
) -> list[BenchQuestion]:
    """Return the questions in a language, and those that do not say their language, in order.

    Only the first part of a language tag counts: "pt" for "pt_BR". ``path`` is for the error.
    Raises InputError, which names the languages that there are, if no question is left.
    """
    wanted, *_ = _split_language_tag(language)
    selected = []
    languages = set()
    for question in questions:
        is_wanted = True
        if question.language:
            languages.add(question.language)
            tag = _split_language_tag(question.language)
            is_wanted = tag[0] == wanted
        if is_wanted:
            selected.append(question)
    if not selected:
        known = ", ".join(sorted(languages))
        raise InputError(
            f"{path} contains no question in the language {language}",
            hint=f"choose a language of the file: {known}",
        )
    return selected


def _split_language_tag(tag: str) -> list[str]:
    """Return the parts of a language tag in lower case: ["pt", "br"] of "pt_BR"."""
    return re.split("[-_]", tag.lower())


def _parse_entry(
    entry_class: type[_Entry], entry: object, number: int, place: str
) -> list[BenchQuestion]:
    """Validate an entry, and return its questions: several for a dialogue.

    ``place`` names the file and the entry in errors. Raises InputError for an entry that lacks what
    its format needs, or that is a ValueError, by which the reader says that it cannot be read.
    """
    try:
        if isinstance(entry, ValueError):
            raise entry
        return list(entry_class.model_validate(entry).to_questions(number))
    except ValidationError as exc:
        problem = describe_validation_error(exc)
        hint = f"correct this entry of the file; {SUPPORTED_FORMATS}"
        raise InputError(f"{place}: {problem}", hint=hint) from exc
    except ValueError as exc:
        raise InputError(
            f"{place}: {exc}", hint="correct this entry of the file, or remove it"
        ) from exc


# --- the entries of each format


class _Wording(BaseModel):
    language: str
    string: str | None = None


class _Cell(BaseModel):
    value: LexicalForm


class _SparqlResults(BaseModel):
    """SPARQL 1.1 Query Results JSON. QALD also has an empty ``results`` beside a ``boolean``."""

    variables: tuple[str, ...] | None = Field(None, validation_alias=AliasPath("head", "vars"))
    bindings: Annotated[
        tuple[dict[str, _Cell], ...] | None,
        Field(validation_alias=AliasPath("results", "bindings")),
    ] = None
    boolean: bool | None = None

    def first_column(self) -> list[str] | None:
        """Return the values of the first variable, or ["true"] or ["false"] of a boolean; None without results.

        Without a header, the first variable of each row counts. Rows without the variable are left
        out.
        """
        if self.boolean is not None:
            return [str(self.boolean).lower()]
        if self.bindings is None:
            return None
        values = []
        for binding in self.bindings:
            variable = next(iter(self.variables or binding), "")
            if variable in binding:
                values.append(binding[variable].value)
        return values


def _wordings_to_list(question: object) -> object:
    """Return wordings given as {language: text} in QALD's form, a list of objects."""
    if not question or not isinstance(question, dict):
        return question
    return [{"language": language, "string": text} for language, text in question.items()]


class _Qald(BaseModel):
    """A question of QALD or TEXT2SPARQL. The latter has no answers, and maps languages to texts."""

    id: LexicalForm
    question: Annotated[tuple[_Wording, ...], BeforeValidator(_wordings_to_list)]
    query: dict[str, Any] | None = None
    answers: tuple[_SparqlResults, ...] = ()

    def to_questions(self, number: int) -> Iterator[BenchQuestion]:
        """Yield one question in its first language, with all wordings as ``translations``.

        Its answers are the distinct values in the first columns of all results, None without
        results. It is boolean if a result is, else it has the type of its gold query. ``number`` is
        not used. Raises ValueError if all texts are empty.
        """
        translations = []
        for wording in self.question:
            text = (wording.string or "").strip()
            if text:
                translations.append((wording.language, text))
        if not translations:
            raise ValueError("question: there is no text in any language")
        columns = [result.first_column() for result in self.answers]
        known_columns = [column for column in columns if column is not None]
        answers = None
        if known_columns:
            answers = tuple(dict.fromkeys(chain.from_iterable(known_columns)))
        sparql = (self.query or {}).get("sparql")
        is_boolean = any(result.boolean is not None for result in self.answers)
        yield BenchQuestion(
            id=self.id,
            question=translations[0][1],
            translations=tuple(translations),
            sparql=sparql,
            answers=answers,
            type="boolean" if is_boolean else _classify_query(sparql),
        )


class _LcQuad(BaseModel, extra="allow"):
    """A question of LC-QuAD 1.0 or 2.0.

    In 2.0 some wordings are missing, or are "n/a" or an empty list.
    """

    id: LexicalForm = Field(validation_alias=AliasChoices("_id", "uid"))
    sparql: str | None = Field(
        None,
        validation_alias=AliasChoices(
            "sparql_query", "sparql_wikidata", "sparql_dbpedia18", "query"
        ),
    )

    def to_questions(self, number: int) -> Iterator[BenchQuestion]:
        """Yield one question in English, with its gold query and the best wording that it has.

        That is the first of _LC_QUAD_TEXT_FIELDS with a text other than "n/a". ``number`` is not
        used. Raises ValueError if there is none.
        """
        fields = self.model_extra or {}
        for name in _LC_QUAD_TEXT_FIELDS:
            text = fields.get(name)
            if isinstance(text, str) and text.strip().lower() not in ("", "n/a"):
                yield BenchQuestion(
                    id=self.id,
                    question=text.strip(),
                    language="en",
                    sparql=self.sparql,
                    type=_classify_query(self.sparql),
                )
                return
        raise ValueError(f"there is no text in any of {', '.join(_LC_QUAD_TEXT_FIELDS)}")


class _Dialogue(BaseModel):
    """A dialogue of Chatty-KG's sets (section 7.1)."""

    dialogue: tuple[str, ...]
    """The turns."""
    original: tuple[str, ...]
    """The standalone form of each turn."""
    queries: tuple[str, ...]

    def to_questions(self, number: int) -> Iterator[BenchQuestion]:
        """Yield a question for each turn, with its standalone wording and its gold query.

        ``number`` is that of the dialogue in its file; the id is "DIALOGUE-TURN", and turns count
        from 1. Raises ValueError if the three lists differ in length.
        """
        if not len(self.dialogue) == len(self.original) == len(self.queries):
            raise ValueError("dialogue, original and queries differ in length")
        turns = zip(self.dialogue, self.original, self.queries, strict=True)
        for turn, (text, standalone, sparql) in enumerate(turns, 1):
            yield BenchQuestion(
                id=f"{number}-{turn}",
                question=text,
                standalone=standalone,
                dialogue=str(number),
                turn=turn,
                sparql=sparql,
                type=_classify_query(sparql),
            )


class _KgwbEntry(BenchQuestion):
    """A line of kgwb's own files."""

    def to_questions(self, number: int) -> Iterator[BenchQuestion]:
        """Yield the entry as a question."""
        yield BenchQuestion(**dict(self))


_Entry = _Qald | _LcQuad | _Dialogue | _KgwbEntry | FreebaseEntry


def _classify_query(sparql: object) -> str | None:
    """Return the type of a gold query: "boolean" for ASK, "count" if it selects a COUNT, else "factoid".

    Returns None for anything that is not a query.
    """
    query = _QUERY_FORM.match(sparql) if isinstance(sparql, str) else None
    if query is None:
        return None
    form, projection = query.groups()
    if form.upper() == "ASK":
        return "boolean"
    if re.search(r"\bCOUNT\s*\(", projection, re.IGNORECASE):
        return "count"
    return "factoid"


# --- recognizing a file's format


class _QuestionFile(NamedTuple):
    """The entries of a file, not yet validated."""

    entry_class: type[_Entry]
    noun: str
    """What an entry is called in messages."""
    entries: Iterable[tuple[int, object]]
    """Each entry with its number. An entry that cannot be read is a ValueError."""


def _read_file(path: Path) -> _QuestionFile:
    """Read a file, recognize its format by its content, and return its entries, which are not validated yet.

    MetaQA is recognized by its first line, published sets by their fields, and kgwb's own form by a
    first line that is an object. Entries are numbered from 1, own ones by their lines. Raises
    InputError for a file that is empty, or in none of the formats, or not in UTF-8.
    """
    try:
        text = disk.read_text(path, "utf-8-sig")
    except (OSError, UnicodeDecodeError) as exc:
        raise InputError(
            f"cannot read the file of questions {path}: {exc}",
            hint="check the path, that you may read the file, and that it is saved as UTF-8",
        ) from exc
    lines = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            lines.append((number, line.strip()))
    if not lines:
        raise InputError(f"{path} holds no question", hint=SUPPORTED_FORMATS)
    first_line = lines[0][1]
    if _METAQA_LINE.fullmatch(first_line):
        return _QuestionFile(_KgwbEntry, "line", _read_metaqa(path, lines))
    data = _parse_data(text)
    set_file = _recognize_set(data)
    if set_file is not None:
        return set_file
    if first_line.startswith("{") and isinstance(_parse_data(first_line), dict):
        own_entries = [(number, _parse_data(line)) for number, line in lines]
        return _QuestionFile(_KgwbEntry, "line", own_entries)
    reason = f": {data}" if isinstance(data, ValueError) else ""
    raise InputError(
        f"{path} is not a question set that kgwb can read{reason}", hint=SUPPORTED_FORMATS
    )


def _recognize_set(data: object) -> _QuestionFile | None:
    """Return the numbered entries of a published set, from data of JSON or YAML; None if it is no known set.

    WebQSP, QALD, dialogues, LC-QuAD and the Freebase sets are recognized by the names of their
    fields.
    """
    entries: list[object] = []
    entry_class: type[_Entry] | None = None
    noun = "question"
    match data:
        case {"Questions": [*entries]} if find_entry_class(entries):
            entry_class = WebQspEntry
        case {"questions": [*entries]}:
            entry_class = _Qald
        case {"data": [*entries]}:
            entry_class = _Dialogue
            noun = "dialogue"
        case [*entries] if any(map(_is_lc_quad, entries)):
            entry_class = _LcQuad
        case [*entries]:
            entry_class = find_entry_class(entries)
    if entry_class is None:
        return None
    return _QuestionFile(entry_class, noun, enumerate(entries, 1))


def _is_lc_quad(entry: object) -> bool:
    """Return whether an entry has a field that only LC-QuAD has."""
    return isinstance(entry, dict) and not _LC_QUAD_MARKS.isdisjoint(entry)


def _read_metaqa(path: Path, lines: Sequence[tuple[int, str]]) -> Iterator[tuple[int, object]]:
    """Yield the fields of a question for each line of a MetaQA file, with the line's number.

    The number of hops is that of the folder ("2-hop") that the file lies in. A line of another form
    yields a ValueError.
    """
    hops = None
    for folder in path.parts:
        if _METAQA_FOLDER.fullmatch(folder):
            hops = int(folder[0])
    for number, line in lines:
        parts = _METAQA_LINE.fullmatch(line)
        if parts is None:
            reason = "not a question with its [topic], a tab, and the answers separated by |"
            yield number, ValueError(reason)
            continue
        before, topic, after, answers = parts.groups()
        fields = {
            "id": number,
            "question": before + topic + after,
            "language": "en",
            "hops": hops,
            "topic_entity": topic,
            "answer_labels": answers.split("|"),
        }
        yield number, fields


def _parse_data(text: str) -> object:
    """Parse a text as JSON if it begins with a brace or a bracket, else as YAML, and return the data.

    If that fails, return (not raise) a ValueError with the reason.
    """
    is_json = text.lstrip().startswith(("{", "["))
    parse = json.loads if is_json else yaml.safe_load
    try:
        return parse(text)
    except (ValueError, RecursionError, yaml.YAMLError) as exc:
        form = "JSON" if is_json else "YAML"
        return ValueError(f"not {form}: {exc}")
