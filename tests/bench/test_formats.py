"""Every question set is told apart by its content, and every question of it read."""

import json
import os
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from kgwb.bench import load_questions, save_questions
from kgwb.bench.questions import BenchQuestion
from kgwb.errors import InputError

DATA = Path(os.environ.get("KGWB_DATA") or Path(__file__).parents[2] / "../shared/data").resolve()
SAMPLES = Path(__file__).parents[2] / "sample_kgs"
DIRECTOR = "SELECT ?d WHERE { <http://e.org/f> <http://e.org/director> ?d }"


def qald(**changes: Any) -> dict[str, Any]:
    texts = [("de", " Wer? "), ("de", "Wer nur?"), ("en", "Who?"), ("pt_BR", "Quem?")]
    wordings = [{"language": language, "string": text} for language, text in texts]
    answers = [results({"d": {"type": "uri", "value": "http://e.org/v"}}, head={"vars": ["d"]})]
    question = {"id": 7, "question": [*wordings, {"language": "ru"}], "query": {"sparql": DIRECTOR}}
    return {
        "dataset": {"id": "made-up"},
        "questions": [{**question, "answers": answers, **changes}],
    }


def results(*rows: Any, **others: Any) -> dict[str, Any]:
    return {"results": {"bindings": list(rows)}, **others}


def lcquad(**fields: Any) -> list[dict[str, Any]]:
    return [
        {"uid": 5, "sparql_wikidata": "ASK { ?s ?p ?o }", "NNQT_question": "Is {it} <so>", **fields}
    ]


def dialogues(**changes: Any) -> dict[str, Any]:
    turns = {"dialogue": ["Who?", "When?"], "original": ["Who made it?", "When was he born?"]}
    return {"seeds_used": 1, "data": [{**turns, "queries": [DIRECTOR] * 2, **changes}]}


def read(folder: Path, content: Any, language: str | None = None) -> list[BenchQuestion]:
    """The questions of a file whose name says nothing."""
    path = folder / "file"
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return load_questions(path, language)


# --- what is read


def test_qald(tmp_path: Path) -> None:
    said = (("de", "Wer?"), ("de", "Wer nur?"), ("en", "Who?"), ("pt_BR", "Quem?"))
    [question] = read(tmp_path, qald())
    gold: dict[str, Any] = {"sparql": DIRECTOR, "answers": ("http://e.org/v",), "type": "factoid"}
    assert question == BenchQuestion(
        id="7", question="Who?", language="en", translations=said, **gold
    )


@pytest.mark.parametrize(
    ("language", "chosen"),
    [
        ("de", "Wer?"),
        ("pt", "Quem?"),
        ("pt-br", "Quem?"),
        ("ru", "Who?"),
        ("en-GB", "Who?"),
        (None, "Who?"),
    ],
)
def test_the_nearest_language_is_chosen(tmp_path: Path, language: str | None, chosen: str) -> None:
    [question] = read(tmp_path, qald(), language)
    assert question.question == chosen
    assert (question.language, chosen) in question.translations


def test_questions_with_one_wording_are_selected_by_language(
    tmp_path: Path,
) -> None:
    rows = [{"id": language, "question": "Who?", "language": language} for language in ("en", "de")]
    lines = "\n".join(map(json.dumps, rows))
    assert [question.id for question in read(tmp_path, lines, "de")] == ["de"]
    assert len(read(tmp_path, lines)) == 2
    with pytest.raises(InputError, match=r"\bfr\b") as caught:
        read(tmp_path, lines, "fr")
    assert caught.value.hint.endswith(" de, en")


CELL = {"type": "uri", "value": "y"}


@pytest.mark.parametrize(
    ("answers", "gold"),
    [
        ([results({"c": {"type": "literal", "value": 5}})], ("5",)),
        ([results({"b": {"value": "x"}, "a": {"value": "y"}}, head={"vars": ["a", "b"]})], ("y",)),
        (
            [results({"a": {"value": "y"}}, {"b": {"value": "x"}}, head={"vars": ["a", "b"]})],
            ("y",),
        ),
        ([results({"x": {"value": "1"}}), results({"x": {"value": "2"}})], ("1", "2")),
        # the query decides:
        ([results()], None),
        ([results({})], None),
        ([results({}, {}, head={"vars": ["a"]})], None),
        ([results({"a": None})], None),
        ([results(None)], None),
        ([{"head": {}, "results": {}, "boolean": False}], None),
        ([{"head": {}, "results": {}}], None),
        ([{"results": None}], None),
        ([{"results": {"bindings": None}}], None),
        ([{}], None),
        ([None], None),
        ([], None),
        (None, None),
        # other forms of the same:
        ([results({"a": CELL}, head={"vars": ["?a"]})], ("y",)),
        ([results({"?a": CELL}, head={"vars": ["a"]})], ("y",)),
        ([results({"a": CELL}, head={"vars": ["other"]})], ("y",)),
        ([results({"a": CELL}, head={"vars": ["other", "a"]})], ("y",)),
        ([results({"a": CELL}, head={"vars": []})], ("y",)),
        ([results({"a": CELL}, {}, {"a": None})], ("y",)),
        ([results(CELL)], ("y",)),
        ([results(CELL, head={"vars": ["a"]})], ("y",)),
        ([results({"value": CELL}, head={"vars": ["value"]})], ("y",)),
        ([{"results": {"bindings": {"a": CELL}}}], ("y",)),
        (results({"a": CELL}), ("y",)),
    ],
)
def test_the_gold_of_qald(tmp_path: Path, answers: Any, gold: tuple[str, ...] | None) -> None:
    [question] = read(tmp_path, qald(answers=answers))
    assert question.answers == gold


ASK = "ASK { ?s ?p ?o }"
TRUE = {"head": {}, "results": {}, "boolean": True}


@pytest.mark.parametrize(
    ("sparql", "answers", "gold"),
    [
        (None, results(), ()),
        ("OUT OF SCOPE", results(), ()),
        (ASK, TRUE, ("true",)),
        (ASK, results({"c": {"type": "literal", "value": True}}), ("true",)),
        (ASK, results({"a": CELL}), None),
        (ASK, results(), None),
        (DIRECTOR, TRUE, None),
        (None, TRUE, ("true",)),
    ],
)
def test_gold_that_contradicts_its_query_is_left_to_the_query(
    sparql: str | None, answers: Any, gold: tuple[str, ...] | None, tmp_path: Path
) -> None:
    [question] = read(tmp_path, qald(query={"sparql": sparql}, answers=[answers]))
    assert question.answers == gold


@pytest.mark.parametrize(
    ("sparql", "kind"),
    [
        ("PREFIX a: <http://a/{x>\nASK { ?s ?p ?o }", "boolean"),
        ("prefix : <x>base <y> select (count(distinct ?x) as ?n) { ?x ?p ?o }", "count"),
        ("SELECT DISTINCT COUNT(?x) WHERE { }", "count"),
        ("SELECT ?x { ?x ?p ?o } GROUP BY ?x HAVING (COUNT(?o) > 2)", "factoid"),
        ("OUT OF SCOPE", "factoid"),
        (None, None),
    ],
)
def test_the_type_follows_from_the_gold_query(
    tmp_path: Path, sparql: str | None, kind: str | None
) -> None:
    assert read(tmp_path, qald(query={"sparql": sparql}))[0].type == kind


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"question": "Is it?", "paraphrased_question": "So?"}, "Is it?"),
        ({"question": None, "paraphrased_question": "So?"}, "So?"),
        ({"question": "n/a", "paraphrased_question": []}, "Is {it} <so>"),
        ({"_id": "5", "corrected_question": "Right?", "intermediary_question": "<x>?"}, "Right?"),
        ({"uid": 0, "question": " Is it? "}, "Is it?"),
    ],
)
def test_lc_quad(tmp_path: Path, fields: dict[str, Any], text: str) -> None:
    [question] = read(tmp_path, lcquad(**fields))
    assert (question.id, question.question, question.type, question.answers) == (
        str(fields.get("uid", 5)),
        text,
        "boolean",
        None,
    )


def test_text2sparql(tmp_path: Path) -> None:
    text = 'questions:\n- id: 1\n  question: {en: "Who?", es: "¿Quién?"}\n  query: {sparql: "ASK {}"}\n'
    [question] = read(tmp_path, text, "es")
    assert (question.id, question.question, question.sparql) == ("1", "¿Quién?", "ASK {}")
    assert question.translations == (("en", "Who?"), ("es", "¿Quién?"))


def test_dialogues(tmp_path: Path) -> None:
    first, second = read(tmp_path, dialogues())
    assert (first.dialogue, second.dialogue, first.turn, second.turn) == ("1", "1", 1, 2)
    assert (second.id, second.question, second.standalone) == ("1-2", "When?", "When was he born?")


def test_metaqa_as_released(tmp_path: Path) -> None:
    folder = tmp_path / "2-hop"
    folder.mkdir()
    one, two = read(folder, "who made [Dune] and why\tA|B C\n\n[X] is what\t2014\n")
    assert (one.id, one.question, one.topic_entity, one.hops) == (
        "1",
        "who made Dune and why",
        "Dune",
        2,
    )
    assert (one.answers, one.answer_labels, two.answer_labels) == (None, ("A", "B C"), ("2014",))


def test_gold_may_be_written_as_json_booleans_and_numbers(tmp_path: Path) -> None:
    [question] = read(
        tmp_path,
        '\ufeff{"id": 7, "question": "?", "answers": [true, 3, "x"], "mine": "ignored"}\n\n',
    )
    assert (question.id, question.answers) == ("7", ("true", "3", "x"))


# --- what is not


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("", "no question"),
        ("[]", "not a question set"),
        ({"questions": []}, "no question"),
        ("{", "not JSON.*line 1 column 2"),
        (json.dumps(qald(), indent=1)[:-9], r"not JSON.*line \d\d"),
        ("questions:\n\t- x", "not YAML"),
        ("Who directed Arrival?", "not a question set"),
        ({"rows": []}, "line 1: id: Field required"),
        ('{"id": "1", "question": "?"}\n{', "line 2: not JSON"),
        (
            '{"id": "1", "question": "?", "answers": "x"}',
            "line 1: answers: Input should be a valid list",
        ),
        ('{"id": "1", "question": "?"}\n' * 2, "line 2: the id '1' occurs a second time"),
        ({"questions": [*qald()["questions"], {"id": 8}]}, "question 2: question: Field required"),
        ({"questions": ["x"]}, "question 1: Input should be an object in braces"),
        (
            qald(question=[{"language": "en"}]),
            "question 1: question: there is no text in any language",
        ),
        (
            qald(answers=[{"head": {"vars": [["x"]]}, "results": {"bindings": [{}]}}]),
            "question 1: .*vars",
        ),
        (
            qald(answers=[{"results": {"bindings": [{"x": {"type": "uri"}}]}}]),
            "question 1: .*value",
        ),
        ([*lcquad(), {"uid": 6}], "question 2: there is no text in any of corrected_question, q"),
        ([*lcquad(), "x"], "question 2: .*not an object: x"),
        ([{"corrected_question": "Who?"}], "question 1: _id: Field required"),
        (dialogues(queries=["x"]), "dialogue 1: dialogue, original and queries differ in length"),
        ({"data": [{"dialogue": ["x"]}]}, "dialogue 1: original: Field required"),
        ("who made [Dune]\tA\nwho made [Dune]\n", "line 2: not a question with its"),
        ("who made [Dune]\tA\nwho made [Dune]\t | \n", "line 2: not a question with its"),
        ("questions:\n- id: 1\n  query: {sparql: x}", "question 1: question: Field required"),
    ],
)
def test_an_invalid_file_is_named_with_its_entry(
    tmp_path: Path, content: Any, complaint: str
) -> None:
    with pytest.raises(InputError) as caught:
        read(tmp_path, content)
    assert caught.value.message.startswith((f"{tmp_path / 'file'}, ", f"{tmp_path / 'file'} "))
    assert re.search(complaint, caught.value.message, re.DOTALL)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("ids", "unique_ids"),
    [
        (["7", "7", "7"], ["7", "7#2", "7#3"]),
        (["1", "1", "1#2"], ["1", "1#2", "1#2#2"]),
        (["1#2", "1", "1", "1"], ["1#2", "1", "1#3", "1#4"]),
        (["1", 1, "2"], ["1", "1#2", "2"]),
    ],
)
def test_repeated_ids_get_numbers(tmp_path: Path, ids: list[Any], unique_ids: list[str]) -> None:
    content = {"questions": [one for id_ in ids for one in qald(id=id_)["questions"]]}
    assert [question.id for question in read(tmp_path, content)] == unique_ids


@pytest.mark.parametrize(
    "make", [lambda path: None, lambda path: path.mkdir(), lambda path: path.write_bytes(b"\xff")]
)
def test_a_file_that_cannot_be_read(tmp_path: Path, make: Any) -> None:
    make(tmp_path / "file")
    with pytest.raises(InputError, match="cannot read"):
        load_questions(tmp_path / "file")


# --- round trip, and the real files


SAVED = [qald(), qald(answers=[results()]), lcquad(), dialogues(), "who made [Du\u2028ne]\tA|B\n"]


@pytest.mark.parametrize("content", [*SAVED, {"id": 1, "question": "\ud800"}])
@pytest.mark.parametrize("language", [None, "de", "en-GB"])
def test_saved_questions_are_read_back_unchanged(
    tmp_path: Path, content: Any, language: str | None
) -> None:
    if language == "de" and content not in SAVED[:2]:
        language = None  # these are in English alone
    questions = read(tmp_path, content, language)
    save_questions(questions, tmp_path / "saved")
    assert load_questions(tmp_path / "saved") == questions


COUNTED = {
    "formats/qald-9-train-multilingual.json": (408, r'"answertype" :'),
    "formats/dblp100-qald.json": (100, r'"sparql":'),
    "formats/lcquad-1-test-first200.json": (200, r'"sparql_template_id":'),
    "formats/dialogues-example.json": (2, r'"SELECT '),
    "formats/text2sparql-example.yml": (1, r"^  - id:"),
    "metaqa/metaqa_dev.jsonl": (1500, r"^.*\S.*$"),
}
"""How many questions there are, and what each of them has in the file once."""


@pytest.mark.parametrize("name", COUNTED)
def test_every_question_of_the_published_files_is_read(tmp_path: Path, name: str) -> None:
    text = published(name).read_text(encoding="utf-8")
    count, mark = COUNTED[name]
    questions = load_questions(DATA / name)
    assert len(questions) == len(re.findall(mark, text, re.MULTILINE)) == count
    assert len({one.id for one in questions}) == count
    assert all(one.question for one in questions)
    save_questions(questions, tmp_path / "saved")
    assert load_questions(tmp_path / "saved") == questions


def test_the_answers_and_languages_of_qald_9_are_all_kept() -> None:
    path = published("formats/qald-9-train-multilingual.json")
    questions = load_questions(path)
    text = path.read_text(encoding="utf-8")
    assert sum(len(one.translations) for one in questions) == len(
        re.findall(r'"string" : "(?!\s*")', text)
    )
    assert sum(one.type == "boolean" for one in questions) == len(
        re.findall(r'"boolean" : (?:true|false)', text)
    )
    distinct = [
        len(set(re.findall(r'"value" : (".*")', part))) for part in text.split('"answertype" :')[1:]
    ]
    assert [len(one.answers or ()) for one in questions if one.type != "boolean"] == list(
        filter(None, distinct)
    )
    portuguese = Counter(one.language for one in load_questions(path, "pt"))
    assert portuguese == {"pt": 399, "en": 9}  # the four in "pt_BR" have no text


@pytest.mark.parametrize(
    "path", sorted(SAMPLES.glob("*.questions.jsonl")), ids=lambda path: path.name
)
def test_the_questions_of_samples_keep_all_fields(path: Path) -> None:
    raw = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    questions = load_questions(path)
    kept = [json.loads(one.model_dump_json()) for one in questions]
    assert all(
        kept[number][field] == value
        for number, row in enumerate(raw)
        for field, value in row.items()
    )


def published(name: str) -> Path:
    if not (path := DATA / name).exists():
        pytest.skip(f"no {path}: KGWB_DATA names the folder that holds formats/ and metaqa/")
    return path
