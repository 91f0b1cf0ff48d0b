"""Reading the question sets of the field, and writing kgwb's own question files.

A file's format is recognized by its content, never by its name: QALD 7 to 10 (JSON), TEXT2SPARQL
(YAML), LC-QuAD 1.0 and 2.0, the dialogue sets of Chatty-KG, MetaQA as released (text), the sets on
Freebase that DoG is measured on (WebQSP, CWQ, WebQuestions and GrailQA, as their authors published
them and as the repository of DoG has them), and kgwb's own JSON lines, whose fields are those of
``BenchQuestion``. question_sets.toml has the sets whose fields are found by their paths alone.

A question set of one's own has answers that a person found right, or corrected, kept as gold. Each
line also has who kept it (``who``) and when (``when``), and the gold that it had before it was
corrected (``earlier_gold``).
"""

from __future__ import annotations

import getpass
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import yaml
from pydantic import AliasPath, BaseModel, BeforeValidator, Field, ValidationError
from rdflib import Literal

from kgwb import disk
from kgwb.bench.questions import (
    BOOLEANS,
    Assertions,
    BenchQuestion,
    LexicalForm,
    answer_to_strings,
    row_to_strings,
    to_lexical_form,
    to_standard_sparql,
)
from kgwb.errors import InputError
from kgwb.kg.sparql import split_clauses, validate_query
from kgwb.records import JsonObject, describe_validation_error
from kgwb.run import Run
from kgwb.run.answers import Answer
from kgwb.text import shorten

SUPPORTED_FORMATS = (
    "kgwb reads QALD JSON, LC-QuAD 1.0 and 2.0, TEXT2SPARQL YAML, MetaQA text, Chatty-KG dialogues, WebQSP, "
    "CWQ, WebQuestions and GrailQA JSON, and JSON lines with id, question and answers (a list of IRIs or "
    "lexical forms) or sparql"
)
# what does [Joe Thomas] appear in<TAB>The Inbetweeners Movie|The Inbetweeners 2
_METAQA_LINE = re.compile(r"([^\t\[]*)\[([^\]\t]+)\]([^\t]*)\t([^\t]*[^\s|][^\t]*)")
_METAQA_FOLDER = re.compile("([123])-hop")
_QUERY_FORM = re.compile(
    r"\s*(?:(?:PREFIX\s+\S*\s*|BASE\s*)<[^>]*>\s*)*(\w+)([^{]*)", re.IGNORECASE
)
"""The form of a query (SELECT, ASK), and what follows it up to the first brace."""
FREEBASE = "http://rdf.freebase.com/ns/"
_MACHINE_ID = re.compile(r"[mg]\.\w+")
"""A Freebase id, such as m.03_r3, which sets use in the place of an IRI."""
_DESCRIPTION = re.compile(r'\(description (?:"((?:[^"\\]|\\.)*)"|([^()]*))\)')
"""An answer in the targetValue of WebQuestions: (description "Jamaican English")."""


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
    return {question.id: place for place, question in _read_questions(Path(path), None)}


def _read_questions(path: Path, language: str | None) -> Iterator[tuple[str, BenchQuestion]]:
    """Yield every question of a file, in its order, after its place in the file, such as "line 6".

    Wordings and ids are chosen as ``load_questions`` says.
    """
    file = _read_file(path)
    is_own = file.read is _read_own
    if not language and not is_own:
        language = "en"
    ids: Counter[str] = Counter()
    for number, entry in file.entries:
        place = f"{file.noun} {number}"
        for question in _parse_entry(file.read, entry, number, f"{path}, {place}"):
            if is_own and question.id in ids:
                raise InputError(
                    f"{path}, {place}: the id {question.id!r} occurs a second time",
                    hint="give each question of the file an id of its own",
                )
            changes = {"id": _take_id(question.id, ids)}
            if question.translations and language:
                changes |= _choose_wording(question.translations, language)
            yield place, question.model_copy(update=changes)


def save_questions(questions: Iterable[BenchQuestion], path: str | Path) -> None:
    """Write kgwb's own JSON lines, which ``load_questions`` reads back as the same questions.

    A file that is there is replaced. Raises InputError if the file cannot be written.
    """
    entries = [question.model_dump(exclude_defaults=True) for question in questions]
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
        return tag != wanted, tag[0] != wanted[0], tag != ["en"]

    nearest_language, text = min(wordings, key=distance)
    return {"language": nearest_language, "question": text}


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
        tag = question.language or ""
        languages.add(tag)
        if not tag or _split_language_tag(tag)[0] == wanted:
            selected.append(question)
    if not selected:
        raise InputError(
            f"{path} contains no question in the language {language}",
            hint=f"choose a language of the file: {', '.join(sorted(languages))}",
        )
    return selected


def _split_language_tag(tag: str) -> list[str]:
    """Return the parts of a language tag in lower case: ["pt", "br"] of "pt_BR"."""
    return re.split("[-_]", tag.lower())


ReadEntry = Callable[[Any, int], Iterable[BenchQuestion]]
"""Returns the questions of an entry with its number, several for a dialogue; raises ValueError if it has none."""


def _parse_entry(read: ReadEntry, entry: object, number: int, place: str) -> list[BenchQuestion]:
    """Return the questions of an entry. In any format it may have assertions; of a dialogue, each turn has them.

    ``place`` names the file and the entry in errors. Raises InputError for an entry that lacks what
    its format needs, or that is a ValueError, by which the reader says that it cannot be read.
    """
    try:
        if isinstance(entry, ValueError):
            raise entry
        questions = list(read(entry, number))
        if isinstance(entry, dict) and "assert" in entry:
            assertions = Assertions.model_validate(entry["assert"])
            changes = {"assertions": assertions}
            questions = [question.model_copy(update=changes) for question in questions]
        return questions
    except ValueError as exc:
        problem = describe_validation_error(exc)
        hint = "correct this entry of the file, or remove it"
        if exc is not entry:
            hint += f"; {SUPPORTED_FORMATS}"
        raise InputError(f"{place}: {problem}", hint=hint) from exc


def _read_own(entry: Any, number: int) -> list[BenchQuestion]:
    """Return the question of a line of kgwb's own files."""
    return [BenchQuestion.model_validate(entry)]


# --- QALD, TEXT2SPARQL, and dialogues


class _Wording(BaseModel):
    language: str
    string: str | None = None


class _Cell(BaseModel):
    value: LexicalForm


def _read_bindings(bindings: Any) -> Any:
    """Return the rows of a result in their standard form: a list of cells by variable.

    Some files have one row without the list, cells in the place of rows, "?" before variables, or
    null for a cell or a row. Anything else is returned as it is.
    """
    if isinstance(bindings, dict):
        bindings = [bindings]
    if not isinstance(bindings, list):
        return bindings
    rows = []
    for row in bindings:
        cells = row or {}
        if isinstance(cells, dict):
            if "value" in cells and not isinstance(cells["value"], dict):
                cells = {"": row}
            cells = {name.lstrip("?$"): cell for name, cell in cells.items() if cell is not None}
        rows.append(cells)
    return rows


class _SparqlResults(BaseModel):
    """SPARQL 1.1 Query Results JSON. QALD also has an empty ``results`` beside a ``boolean``."""

    variables: tuple[str, ...] | None = Field(None, validation_alias=AliasPath("head", "vars"))
    bindings: Annotated[
        tuple[dict[str, _Cell], ...] | None,
        Field(validation_alias=AliasPath("results", "bindings")),
        BeforeValidator(_read_bindings),
    ] = None
    boolean: bool | None = None

    def first_column(self) -> list[str] | None:
        """Return the values of the first variable, or ["true"] or ["false"] of a boolean; None without results.

        The first variable is the first of the header that a row has; if none is, the first one of
        each row. Rows without the variable are left out. Rows without any cell are no results.
        """
        if self.boolean is not None:
            return [str(self.boolean).lower()]
        if self.bindings is None or (self.bindings and not any(self.bindings)):
            return None
        bound = set(chain.from_iterable(self.bindings))
        named = [variable.lstrip("?$") for variable in self.variables or ()]
        column = next((variable for variable in named if variable in bound), None)
        values = []
        for binding in self.bindings:
            variable = column
            if column is None:
                variable = next(iter(binding), "")
            if variable in binding:
                values.append(binding[variable].value)
        return values


def _read_results(answers: Any) -> Any:
    """Return the results of a QALD question as a list. null is no result; an object is one."""
    if isinstance(answers, dict):
        answers = [answers]
    return list(filter(None, answers)) if isinstance(answers, list) else answers or ()


def _wordings_to_list(question: object) -> object:
    """Return wordings given as {language: text} in QALD's form, a list of objects."""
    if not question or not isinstance(question, dict):
        return question
    return [{"language": language, "string": text} for language, text in question.items()]


class _Qald(BaseModel):
    """A question of QALD or TEXT2SPARQL. The latter has no answers, and maps languages to texts."""

    id: LexicalForm
    question: Annotated[tuple[_Wording, ...], BeforeValidator(_wordings_to_list)]
    query: JsonObject | None = None
    answers: Annotated[tuple[_SparqlResults, ...], BeforeValidator(_read_results)] = ()


def _read_qald(entry: Any, number: int) -> Iterator[BenchQuestion]:
    """Yield one question in its first language, with all wordings as ``translations``.

    Its answers are the distinct values in the first columns of all results. They are None without
    results, and if there is a gold query which they contradict: it has no values, or is an ASK and
    they are no truth value, or the reverse. Then the query decides. A question is boolean if a
    result is, else it has the type of its gold query. Raises ValueError if all texts are empty.
    """
    qald = _Qald.model_validate(entry)
    translations = []
    for wording in qald.question:
        text = (wording.string or "").strip()
        if text:
            translations.append((wording.language, text))
    if not translations:
        raise ValueError("question: there is no text in any language")
    columns = [result.first_column() for result in qald.answers]
    known_columns = [column for column in columns if column is not None]
    values = tuple(dict.fromkeys(chain.from_iterable(known_columns)))
    sparql = (qald.query or {}).get("sparql")
    type_of_query = _classify_query(sparql)
    is_boolean = any(result.boolean is not None for result in qald.answers)
    is_truth_value = len(values) == 1 and values[0] in BOOLEANS
    has_query = isinstance(sparql, str) and "{" in sparql  # QALD has "OUT OF SCOPE" as well
    is_contradicted = not values or is_truth_value != (type_of_query == "boolean")
    is_known = bool(known_columns) and not (has_query and is_contradicted)
    yield BenchQuestion(
        id=qald.id,
        question=translations[0][1],
        translations=tuple(translations),
        sparql=sparql,
        answers=values if is_known else None,
        type="boolean" if is_boolean else type_of_query,
    )


class _Dialogue(BaseModel):
    """A dialogue of Chatty-KG's sets (section 7.1)."""

    dialogue: tuple[str, ...]
    """The turns."""
    original: tuple[str, ...]
    """The standalone form of each turn."""
    queries: tuple[str, ...]


def _read_dialogue(entry: Any, number: int) -> Iterator[BenchQuestion]:
    """Yield a question for each turn, with its standalone wording and its gold query.

    ``number`` is that of the dialogue in its file; the id is "DIALOGUE-TURN", and turns count from
    1. Raises ValueError if the three lists differ in length.
    """
    dialogue = _Dialogue.model_validate(entry)
    if not len(dialogue.dialogue) == len(dialogue.original) == len(dialogue.queries):
        raise ValueError("dialogue, original and queries differ in length")
    turns = zip(dialogue.dialogue, dialogue.original, dialogue.queries, strict=True)
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


# --- sets whose fields are found by their paths


class MappedSet(NamedTuple):
    """A published set: how its entries are recognized, and where the fields of a question stand in them.

    A path has names with dots between. "0" takes the first item of a list, "*" all items, and
    "kind=entity" only those with this value. Of several paths, with "|" between, the first at which
    something stands is taken.
    """

    marks: Sequence[Sequence[str]]
    """Groups of fields by which an entry is recognized: it has all of one group."""
    paths: Mapping[str, str]
    """By the field of ``BenchQuestion``. Without "id", the number in the file is the id."""
    answers: str = ""
    """The path of the gold answers, which are objects."""
    value: str = ""
    """The path of the value inside an answer: a Freebase id or a lexical form."""
    label: str = ""
    """The path of the name inside an answer."""
    may_lack_value: bool = False
    """Whether an answer without a value is left out. Otherwise it is an error."""
    has_padded_questions: bool = False
    """Whether blanks around a question are left out."""
    has_query_type: bool = False
    """Whether the type of a question is that of its gold query."""

    def has(self, entry: object) -> bool:
        """Return whether an entry is of this set."""
        return isinstance(entry, dict) and any(set(group) <= entry.keys() for group in self.marks)


MAPPED_SETS = [MappedSet(**entry) for entry in disk.read_table("bench/question_sets.toml")["sets"]]


def _find_all(data: object, path: str) -> list[Any]:
    """Return what stands at a path of ``MappedSet``, without "|"; a field that is null is like a missing one.

    Raises ValueError if a value on the way is not the list or the object that the path needs.
    """
    found = [data]
    for step in path.split("."):
        name, equals, wanted = step.partition("=")
        needed = list if step in ("*", "0") else dict
        inside: list[Any] = []
        for value in found:
            if not isinstance(value, needed):
                kind = "a list" if needed is list else "an object"
                raise ValueError(f"{path}: this is not {kind}: {shorten(str(value))}")
            if isinstance(value, list):
                inside += value if step == "*" else value[:1]
            elif equals:
                inside += [value] if value.get(name) == wanted else []
            elif value.get(name) is not None:
                inside.append(value[name])
        found = inside
    return found


def _is_given(value: object) -> bool:
    """Return whether a value says something: 0 and false do."""
    return value not in ("", [], {})


def _find_first(data: object, paths: str, is_wanted: Callable[[object], bool] = _is_given) -> Any:
    """Return the first value at any of several paths that is wanted; None if there is none."""
    for path in paths.split("|"):
        for value in filter(is_wanted, _find_all(data, path)):
            return value
    return None


def _read_mapped(mapped: MappedSet, entry: Any, number: int) -> list[BenchQuestion]:
    """Return the question of an entry, by the paths of its set.

    The gold answers are IRIs or lexical forms, with their names as labels. Without any they are
    None, for not known: the test questions of some sets are published so. Raises ValueError, which
    names the field of the set, if the id, the question or the value of an answer is missing, or if
    a field has another form.
    """
    fields: JsonObject = {"id": number, "language": "en"}
    for name, paths in mapped.paths.items():
        value = _find_first(entry, paths, _is_wording if name == "question" else _is_given)
        if value is not None:
            fields[name] = READERS.get(paths, READERS.get(name, to_lexical_form))(value)
        elif name == "question" and "|" in paths:
            raise ValueError(f"there is no text in any of {paths.replace('|', ', ')}")
        elif name in ("id", "question"):
            raise ValueError(f"{paths.partition('|')[0]}: Field required")
    if mapped.has_padded_questions:
        fields["question"] = fields["question"].strip()
    if mapped.has_query_type:
        fields["type"] = _classify_query(fields.get("sparql"))
    labels = {}
    for answer in _find_all(entry, mapped.answers):
        value = to_lexical_form(_find_first(answer, mapped.value))
        if value is None and mapped.may_lack_value:
            continue
        if not isinstance(value, str):
            raise ValueError(f"{mapped.value}: an answer has no such text")
        label = _find_first(answer, f"{mapped.label}|{mapped.value}")
        labels[to_freebase_iri(value)] = to_lexical_form(label)
    if labels:
        fields |= {"answers": list(labels), "answer_labels": list(labels.values())}
    try:
        return [BenchQuestion(**fields)]
    except ValidationError as exc:
        field = str(exc.errors()[0]["loc"][0])
        raise ValueError(
            f"{mapped.paths.get(field, mapped.answers)}: {describe_validation_error(exc)}"
        ) from exc


def _is_wording(text: object) -> bool:
    """Return whether a text can be a question. LC-QuAD writes "n/a" for wordings that are missing."""
    return isinstance(text, str) and text.strip().lower() not in ("", "n/a")


def to_freebase_iri(machine_id: str) -> str:
    """Return the IRI of a Freebase id; any other text is returned as it is."""
    if _MACHINE_ID.fullmatch(machine_id):
        return FREEBASE + machine_id
    return machine_id


def _read_topic(topic: Any) -> Any:
    """Return a topic entity; of names by Freebase id the first id. An id is returned as an IRI."""
    if isinstance(topic, dict):
        topic = next(filter(None, topic), None)
    return to_freebase_iri(topic) if isinstance(topic, str) else topic


def _read_address(address: Any) -> Any:
    """Return the name in the address of a Freebase page, "jamaica b" of ".../en/jamaica_b"; None without one."""
    if not isinstance(address, str):
        return address
    return address.rpartition("/")[2].replace("_", " ") or None


def _count_hops(hops: Any) -> Any:
    """Return the number of predicates of a chain; any other value is returned as it is.

    A node without a name lies between some of them, so that two can be one hop of a walk.
    """
    return len(hops) if isinstance(hops, list) else hops


def _read_descriptions(value: Any) -> Any:
    """Return the names in a targetValue: (list (description "A B") (description C)).

    Escapes inside quotes are those of JSON. Any other value than a text is returned as it is. Raises
    ValueError for quotes that are not JSON.
    """
    if not isinstance(value, str):
        return value
    names = []
    for quoted, plain in _DESCRIPTION.findall(value):
        names.append(json.loads(f'"{quoted}"') if quoted else plain.strip())
    return names


READERS: Mapping[str, Callable[[Any], Any]] = {
    "url": _read_address,
    "targetValue": _read_descriptions,
    "answer": lambda name: [to_lexical_form(name)],
    "topic_entity": _read_topic,
    "hops": _count_hops,
}
"""How a value is read that sets write in their own form, by its paths, or by the field of ``BenchQuestion``."""


# --- recognizing a file's format


class _QuestionFile(NamedTuple):
    """The entries of a file, not yet validated."""

    read: ReadEntry
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
    with disk.os_errors_as_input_error(
        f"cannot read the file of questions {path}",
        "check the path, that you may read the file, and that it is saved as UTF-8",
    ):
        text = disk.read_text(path, "utf-8-sig")
    lines = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            lines.append((number, line.strip()))
    if not lines:
        raise InputError(f"{path} holds no question", hint=SUPPORTED_FORMATS)
    first_line = lines[0][1]
    if _METAQA_LINE.fullmatch(first_line):
        return _QuestionFile(_read_own, "line", _read_metaqa(path, lines))
    data = _parse_data(text)
    set_file = _recognize_set(data)
    if set_file is not None:
        return set_file
    if first_line.startswith("{") and isinstance(_parse_data(first_line), dict):
        own_entries = [(number, _parse_data(line)) for number, line in lines]
        return _QuestionFile(_read_own, "line", own_entries)
    reason = f": {data}" if isinstance(data, ValueError) else ""
    raise InputError(
        f"{path} is not a question set that kgwb can read{reason}", hint=SUPPORTED_FORMATS
    )


def _recognize_set(data: object) -> _QuestionFile | None:
    """Return the numbered entries of a published set, from data of JSON or YAML; None if it is no known set.

    QALD and dialogues are recognized by where their entries are, the others by MAPPED_SETS.
    """
    match data:
        case {"questions": [*entries]}:
            return _QuestionFile(_read_qald, "question", enumerate(entries, 1))
        case {"data": [*entries]}:
            return _QuestionFile(_read_dialogue, "dialogue", enumerate(entries, 1))
        case {"Questions": [*entries]} | [*entries]:
            for mapped in MAPPED_SETS:
                if any(map(mapped.has, entries)):
                    read = partial(_read_mapped, mapped)
                    return _QuestionFile(read, "question", enumerate(entries, 1))
    return None


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
        entry = {
            "id": number,
            "question": before + topic + after,
            "language": "en",
            "hops": hops,
            "topic_entity": topic,
            "answer_labels": answers.split("|"),
        }
        yield number, entry


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


DEFAULT_FILE = "my_questions.jsonl"
GOLD_FIELDS = ("answers", "sparql", "columns", "who", "when")


class Gold(NamedTuple):
    """What a person takes to be right."""

    answers: Sequence[str | Sequence[str | None]] | None
    """IRIs or lexical forms, or rows of them; None if the query has to find them."""
    sparql: str = ""
    """The gold query, if one is known."""
    columns: Sequence[str] = ()
    """What each column holds, if the answers are rows."""

    @classmethod
    def of_run(cls, run: Run) -> Gold:
        """Return the answer of a finished run as gold, with its query if that gives just this answer.

        An answer with columns is kept as rows. Raises InputError if the run has no answer yet, or
        was not finished.
        """
        answer = run.answer
        if answer is None or run.status != "done":
            raise InputError(
                "nothing can be kept as gold: this run has no answer yet",
                hint="continue the run to its end, for example with run.go()",
            )
        sparql = _find_gold_query(run, answer)
        if answer.columns:
            rows = [row_to_strings(value.row) for value in answer.values]
            return cls(rows, sparql, answer.columns)
        return cls(answer_to_strings(answer), sparql)

    def to_text(self) -> str:
        """Return the answers for a text area: one a line, the cells of a row apart by tabs."""
        lines = []
        for answer in self.answers or ():
            if isinstance(answer, str):
                lines.append(answer)
                continue
            cells = [cell or "" for cell in answer]
            lines.append("\t".join(cells))
        return "\n".join(lines)

    @classmethod
    def from_text(cls, text: str, sparql: str = "", columns: Sequence[str] = ()) -> Gold:
        """Return the gold in a text that ``to_text`` wrote and a person edited: an answer in each line.

        With several ``columns``, a line is a row with its cells apart by tabs. Empty lines are left
        out. If no answer is left and there is a query, ``answers`` is None: the query has to find
        them. Raises QueryError or QueryRefusedError for a query that the gate refuses.
        """
        sparql = sparql.strip()
        if sparql:
            validate_query(to_standard_sparql(sparql))
        answers: list[str | Sequence[str | None]] = []
        is_table = len(columns) > 1
        for line in text.splitlines():
            if not line.strip():
                continue
            if is_table:
                cells = line.split("\t")
                answers.append([cell.strip() or None for cell in cells])
            else:
                answers.append(line.strip())
        if not answers and sparql:
            return cls(None, sparql)
        if not is_table:
            columns = ()
        return cls(answers, sparql, columns)


def _find_gold_query(run: Run, answer: Answer) -> str:
    """Return the only query of an answer, if its recorded result is the answer; else "".

    Of values that the system has counted, it is the query that counts them in the graph. A query whose
    result the run does not have is returned as it is, and so is that of a yes or no.
    """
    if len(answer.queries) != 1:
        return ""
    sparql = str(answer.queries[0])
    result = None
    for call in list(run.calls.values()):
        if call.kind == "select" and call.request["query"] == sparql:
            result = call.result
    if result is None:
        return sparql
    if answer.columns:
        rows = {value.row for value in answer.values}
        found_rows = {row for row in result.rows if any(cell is not None for cell in row)}
        return sparql if rows == found_rows else ""
    values = {value.term for value in answer.values}
    found = {row[0] for row in result.rows if row[0] is not None}
    if values == found:
        return sparql
    is_count = values == {Literal(len(found))} and not result.cut
    if answer.kind == "count" and is_count:
        return _to_counting_query(sparql, result.variables[0])
    return ""


def _to_counting_query(sparql: str, variable: str) -> str:
    """Return a query that counts the distinct values of a variable of a query; "" if that has modifiers."""
    clauses = split_clauses(sparql)
    if clauses.modifiers.strip():
        return ""
    counted = f"SELECT (COUNT(DISTINCT ?{variable}) AS ?count)"
    return f"{clauses.prologue}{counted} {clauses.dataset}WHERE {{ {clauses.where.strip()} }}"


def keep_as_gold(
    run: Run,
    file: str | Path = DEFAULT_FILE,
    gold: Gold | Sequence[str] | None = None,
    who: str | None = None,
) -> JsonObject:
    """Write the question of a run with its gold to a question set, and return the entry.

    The file is made if it is missing. ``gold`` is by default the answer of the run; a list has IRIs
    or lexical forms. In a dialogue the question is kept in its standalone wording. ``who`` is by
    default the user's name. A question that the file has already keeps its id and its other fields;
    the gold that it had is added to its ``earlier_gold``. Raises InputError if the run has no
    answer, or if the file is not one of kgwb's own form or cannot be written.
    """
    if gold is None:
        gold = Gold.of_run(run)
    elif not isinstance(gold, Gold):
        gold = Gold(list(gold))
    path = Path(file)
    entries = _read_entries(path)
    question = _standalone_question(run)
    same_question = [entry for entry in entries if entry["question"] == question]
    if same_question:
        kept = same_question[0]
        _move_earlier_gold(kept)
    else:
        kept = {"id": _next_id(entries), "question": question}
        entries.append(kept)
    if who is None:
        who = user_name()
    kept.update(_gold_to_data(gold, who))
    with disk.os_errors_as_input_error(
        f"cannot write the question set {path}", "name another file"
    ):
        disk.write_json_lines(path, entries)
    return kept


def _move_earlier_gold(entry: JsonObject) -> None:
    """Move the gold of an entry to its earlier gold, and remove what belongs to it."""
    if "answers" in entry or "sparql" in entry:
        earlier = {}
        for name in GOLD_FIELDS:
            if name in entry:
                earlier[name] = entry.pop(name)
        entry.setdefault("earlier_gold", []).append(earlier)
    for name in ("rows", "answer_labels", "gold_error"):
        entry.pop(name, None)


def _gold_to_data(gold: Gold, who: str) -> JsonObject:
    """Return the fields of an entry that hold the gold, who says so, and the present time.

    Parts of the gold that are empty have no field.
    """
    data: JsonObject = {"who": who, "when": time_now()}
    if gold.answers is not None:
        data["answers"] = list(gold.answers)
    if gold.columns:
        data["columns"] = list(gold.columns)
    if gold.sparql:
        data["sparql"] = gold.sparql
    return data


def _standalone_question(run: Run) -> str:
    """Return a run's question in the wording that needs no earlier turn.

    That is the standalone one if the run has earlier turns and remembers one, else the question
    itself.
    """
    if run.dialogue.turns and run.turn is not None and run.turn.standalone:
        return run.turn.standalone
    return run.question


def user_name() -> str:
    """Return the name under which the user is logged in; "" if there is none."""
    with suppress(OSError, KeyError, ImportError):  # a container may have no name for its user
        return getpass.getuser()
    return ""


def time_now() -> str:
    """Return the time in ISO 8601, to the second, with the time zone."""
    now = datetime.now().astimezone()
    return now.isoformat(timespec="seconds")


def _read_entries(path: Path) -> list[JsonObject]:
    """Return the entries of a question set as JSON data with all their fields; an empty list without a file.

    Raises InputError if it is not a file of kgwb's own form, or cannot be read.
    """
    if not path.exists():
        return []
    load_questions(path)
    entries = []
    with disk.os_errors_as_input_error(f"cannot read the question set {path}", "name another file"):
        try:
            for number, entry in disk.read_json_lines(path):
                if not isinstance(entry, dict) or "question" not in entry:
                    raise ValueError(f"line {number} has no question")
                entries.append(entry)
        except ValueError as exc:
            raise InputError(
                f"no question was added to {path}: it is not a question set in JSON lines",
                hint="name a question set in JSON lines, or a new file, such as my_questions.jsonl",
            ) from exc
    return entries


def _next_id(entries: Sequence[Mapping[str, Any]]) -> str:
    """Return a number, as text, that is no id yet: the first free one above the number of entries."""
    ids = {str(entry.get("id")) for entry in entries}
    number = len(entries) + 1
    while str(number) in ids:
        number += 1
    return str(number)
